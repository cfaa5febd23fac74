//! What only the kernel of the world `linux` has: schedulers that nobody has told of, which are
//! attached in the guest and not simulated, and files of its disks.

use block::{About, MergeLookup, Shape, SharedLock, Version};
use sched::Entry;

const OTHER_ABOUT: About = About {
    name: "other",
    shape: Shape::Multi,
    lock: SharedLock::All,
    lookup: MergeLookup::Index,
    summary: "a scheduler that only a kernel knows which was built",
    tunables: &[],
};

/// One of which nothing is known here: its tunables are asked of the kernel that has it.
pub static OTHER: Entry = Entry {
    name: "other",
    about: |_| &OTHER_ABOUT,
    since: Version::V4_19,
    until: None,
    default_kernel: crate::world::KERNEL,
    honours_weights: None,
    honours_ioprio: None,
    build: |_| None,
    backports: None,
};

/// Files of a disk that only a guest has, for those who ask for one where it is not simulated (seen
/// on 6.12 and 7.3). Which a kernel really has it says itself.
pub const OFFERED_FILES: [&str; 11] = [
    "add_random",
    "async_depth",
    "io_poll",
    "io_poll_delay",
    "iostats",
    "max_bytes",
    "max_ratio",
    "min_ratio",
    "rq_affinity",
    "stable_writes",
    "strict_limit",
];

/// Whether only the guest has such a scheduler.
pub fn is_offered(entry: &'static Entry) -> bool {
    std::ptr::eq(&OTHER, entry)
}
