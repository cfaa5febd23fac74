//! What differs between the kernels of Kyber, each difference a named field, and its domains.

use alloc::format;
use block::changes::{Table, change};
use block::{About, Kernel, MergeLookup, Op, Shape, SharedLock, Tunable, Version};

/// The differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// How tokens follow latencies, and with it what the domains are.
    pub control: Control,
    /// Which requests may not use every tag (rule kyber-9).
    pub limits: Limited,
    /// `async_depth` is an attribute of the queue, which can be set (rule kyber-9). Observed on
    /// 7.3.4: `queue/async_depth`; on 6.1.192 and 6.12.117 debugfs has the number, and no file can
    /// be written.
    pub has_async_depth: bool,
}

/// How the number of tokens follows latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// The mean latency of the device within a window (rule kyber-15; up to 4.19).
    Means,
    /// Percentiles of histograms (rules kyber-10 to kyber-14). Observed on 6.1.192, 6.12.117 and
    /// 7.3.4: the tracepoint kyber_latency. The specification has them in 5.4 and not in 4.19; 5.1
    /// and 5.2 are assumed to have them.
    Percentiles,
}

/// Which requests may not use every tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limited {
    /// Those for which nobody waits. Observed on 6.1.192 and 6.12.117: fio's direct writes have up
    /// to 63 of 64 tags.
    Async,
    /// All but synchronous reads. Observed on 7.3.4: fio's direct writes have 48 of 64 tags.
    AllButReads,
}

const OF_4_19: Rules =
    Rules { control: Control::Means, limits: Limited::Async, has_async_depth: false };

const OF_5_1: Rules = Rules { control: Control::Percentiles, ..OF_4_19 };

/// The specification has it in 6.18.35, and not in 6.18.9.
const OF_6_18: Rules = Rules { limits: Limited::AllButReads, ..OF_5_1 };

const OF_7_3: Rules = Rules { has_async_depth: true, ..OF_6_18 };

impl Rules {
    /// The rules of a kernel that has Kyber.
    pub fn of(kernel: &Kernel) -> Rules {
        match kernel.version {
            Version::V7_3 => OF_7_3,
            Version::V6_18 => OF_6_18,
            Version::V5_1 | Version::V5_2 | Version::V6_1 | Version::V6_12 => OF_5_1,
            _ => OF_4_19,
        }
    }

    /// Its domains, in the order in which they take turns.
    pub fn domains(self) -> &'static [Domain] {
        match self.control {
            Control::Means => &DOMAINS_OF_MEANS,
            Control::Percentiles => &DOMAINS,
        }
    }

    /// The domain of an operation (rule kyber-1).
    fn domain_of(self, op: Op, is_sync: bool) -> u8 {
        match (op, self.control) {
            (Op::Read, _) => 0,
            (Op::Write, Control::Percentiles) => 1,
            (Op::Write, Control::Means) if is_sync => 1,
            (Op::Write, Control::Means) | (Op::Discard, _) => 2,
        }
    }
}

/// Domains by operation, and by whether it is synchronous: nobody can foresee what comes next, so
/// it is looked up without a branch.
#[derive(Clone, Copy)]
pub(super) struct Kinds([[u8; 2]; 3]);

impl Kinds {
    /// The domains of a kernel.
    pub fn of(rules: Rules) -> Kinds {
        let both = |op| [rules.domain_of(op, false), rules.domain_of(op, true)];
        Kinds([Op::Read, Op::Write, Op::Discard].map(both))
    }

    /// The domain of an operation.
    // By reference: a copy would be read right after it was written, in another width.
    pub fn domain_of(&self, op: Op, is_sync: bool) -> u8 {
        self.0[op as usize][usize::from(is_sync)]
    }
}

/// What changed between the kernels that judge.
pub static CHANGES: Table = Table {
    about: "kyber",
    shows: |kernel| format!("{:#?}", Rules::of(kernel)),
    rows: &[
        change("limits", "which requests may not use every tag", JUDGES),
        change("has_async_depth", "how many tags those may use can be set, of the queue", JUDGES),
    ],
};

const JUDGES: &[Version] = &[Version::V6_1, Version::V6_12, Version::V7_3];

/// A kind of requests that share tokens.
pub(super) struct Domain {
    /// What the kernel's tracepoints call it.
    pub name: &'static str,
    /// Its tokens at first, and at most.
    pub tokens: u32,
    /// Requests that go one after the other before another domain has its turn.
    pub batch: u32,
    /// The latency that it should have, in nanoseconds; without one its tokens do not change.
    pub target: Option<u64>,
}

/// Domains of a kernel, at most.
pub(super) const MOST_DOMAINS: usize = 4;

const MILLI: u64 = 1_000_000;

/// The numbers are the specification's; debugfs of 6.12.117 and 7.3.4 shows the same tokens.
static DOMAINS: [Domain; 4] = [
    Domain { name: "READ", tokens: 256, batch: 16, target: Some(2 * MILLI) },
    Domain { name: "WRITE", tokens: 128, batch: 8, target: Some(10 * MILLI) },
    Domain { name: "DISCARD", tokens: 64, batch: 1, target: Some(5_000 * MILLI) },
    Domain { name: "OTHER", tokens: 16, batch: 1, target: None },
];

static DOMAINS_OF_MEANS: [Domain; 3] = [
    Domain { name: "READ", tokens: 256, batch: 16, target: Some(2 * MILLI) },
    Domain { name: "SYNC_WRITE", tokens: 128, batch: 8, target: Some(10 * MILLI) },
    Domain { name: "OTHER", tokens: 64, batch: 8, target: None },
];

const ASYNC_DEPTH: Tunable = Tunable {
    name: "async_depth",
    unit: "requests",
    default: None, // three quarters of nr_requests
    min: 1,
    max: crate::settings::INT_MAX,
    effect: "scheduler tags that everything except synchronous reads may use",
};

const TUNABLES: [Tunable; 3] = [
    latency("read_lat_nsec", 2_000_000, "latency that reads should have"),
    latency("write_lat_nsec", 10_000_000, "latency that writes should have"),
    ASYNC_DEPTH,
];

const fn latency(name: &'static str, default: i64, effect: &'static str) -> Tunable {
    Tunable { name, unit: "ns", default: Some(default), min: 0, max: i64::MAX, effect }
}

const ABOUT: About = About {
    name: "kyber",
    shape: Shape::Multi,
    lock: SharedLock::Unused,
    lookup: MergeLookup::Recent,
    summary: "lets as many reads and writes into the device as keep its latency at their targets",
    tunables: TUNABLES.first_chunk::<2>().expect("there are three"),
};
static WITHOUT_ASYNC_DEPTH: About = ABOUT;
static WITH_ASYNC_DEPTH: About = About { tunables: &TUNABLES, ..ABOUT };

/// What is fixed about Kyber in a kernel that has it.
pub fn about_on(kernel: &Kernel) -> &'static About {
    if Rules::of(kernel).has_async_depth { &WITH_ASYNC_DEPTH } else { &WITHOUT_ASYNC_DEPTH }
}
