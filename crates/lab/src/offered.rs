//! Schedulers that only the kernel of the world `linux` has: what their names and tunables are
//! called there. They are attached in the guest, and nothing of them is simulated.

use block::{About, Kernel, Shape, SharedLock, Tunable, Version};
use sched::{Entry, Schedulers};

const KYBER: About = About {
    name: "kyber",
    shape: Shape::Multi,
    lock: SharedLock::Unused,
    summary: "limits depths to keep latency at its targets (in the world linux only)",
    tunables: &[
        tunable("read_lat_nsec", "ns", "target latency of reads"),
        tunable("write_lat_nsec", "ns", "target latency of synchronous writes"),
    ],
};

/// All of them.
pub static OFFERED: [Entry; 1] = [entry("kyber", |_| &KYBER)];

const OTHER_ABOUT: About = About {
    name: "other",
    shape: Shape::Multi,
    lock: SharedLock::All,
    summary: "a scheduler that only a kernel knows which was built",
    tunables: &[],
};

/// One of which nothing is known here: its tunables are asked of the kernel that has it.
pub static OTHER: Entry = entry("other", |_| &OTHER_ABOUT);

/// Files of a disk that only a guest has, for those who ask for one where it is not simulated (seen
/// on 6.12 and 7.3). Which a kernel really has it says itself.
pub const OFFERED_FILES: [&str; 13] = [
    "add_random",
    "async_depth",
    "discard_max_bytes",
    "io_poll",
    "io_poll_delay",
    "iostats",
    "max_bytes",
    "max_ratio",
    "min_ratio",
    "rq_affinity",
    "stable_writes",
    "strict_limit",
    "wbt_lat_usec",
];

const fn tunable(name: &'static str, unit: &'static str, effect: &'static str) -> Tunable {
    Tunable { name, unit, default: None, min: 0, max: i64::MAX, effect }
}

const fn entry(name: &'static str, about: fn(&Kernel) -> &'static About) -> Entry {
    Entry {
        name,
        about,
        since: Version::V4_19,
        until: None,
        default_kernel: crate::world::KERNEL,
        honours_weights: None,
        honours_ioprio: None,
        build: |_| None,
        backports: None,
    }
}

/// These schedulers and those that only the guest has.
pub fn with_offered(known: &Schedulers) -> Schedulers {
    let others = OFFERED.iter().filter(|entry| known.find(entry.name).is_none());
    others.fold(known.clone(), Schedulers::with)
}

/// Whether only the guest has such a scheduler.
pub fn is_offered(entry: &'static Entry) -> bool {
    OFFERED.iter().chain([&OTHER]).any(|it| std::ptr::eq(it, entry))
}
