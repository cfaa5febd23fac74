//! What differs between the kernels of mq-deadline, each difference a named field.

use crate::settings::{INT_MAX, TUNABLES, time};
use block::{About, Kernel, Shape, SharedLock, Tunable, Version};

/// The differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// Requests are kept apart by class of priority (5.14 and later).
    pub has_classes: bool,
    /// How the sweep remembers where it was.
    pub sweep: Sweep,
    /// Old requests of lower classes go first (`prio_aging_expire`; rule mq-deadline-5).
    pub ages: bool,
    /// Whatever is not a synchronous read uses only `async_depth` tags (rule mq-deadline-10).
    pub limits_async: bool,
    /// The smallest depth announced to the tag map (rule tags-5).
    pub announced_depth: Option<u32>,
}

/// How the sweep remembers where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sweep {
    /// By the request that comes next: later arrivals before it are not seen (up to 6.3).
    Request,
    /// By the start of the last dispatched request: whatever lies at or above it is next (6.8).
    Position,
}

/// Rules mq-deadline-1 to mq-deadline-3.
const WITHOUT_CLASSES: Rules = Rules {
    has_classes: false,
    sweep: Sweep::Request,
    ages: false,
    limits_async: false,
    announced_depth: None,
};

/// 6.12 lies between the kernels that were read, 6.8 and 6.13. What both have in common holds but
/// for requests inserted at the head, which wait in one list for all classes as in 6.18.3 (rule
/// mq-deadline-1): debugfs of 6.12.117 has a single file `dispatch`. 6.18 has nothing else
/// (measured in the linux world).
const WITH_CLASSES: Rules = Rules {
    has_classes: true,
    sweep: Sweep::Position,
    ages: true,
    // assumed: as in 6.13 (default nr_requests, scaled to words), not as in 6.8 (three quarters).
    limits_async: true,
    // assumed: as in 6.18.
    announced_depth: Some(1),
};

impl Rules {
    /// The rules of a kernel that has mq-deadline.
    pub fn of(kernel: &Kernel) -> Rules {
        match kernel.version {
            Version::V6_1 | Version::V6_12 | Version::V6_18 => WITH_CLASSES,
            // Observed on 7.3.4: of 32 requests four are freed before somebody is woken.
            Version::V7_3 => Rules { announced_depth: None, ..WITH_CLASSES },
            _ => WITHOUT_CLASSES,
        }
    }
}

const ALL_TUNABLES: [Tunable; 7] = [
    TUNABLES[0],
    TUNABLES[1],
    TUNABLES[2],
    TUNABLES[3],
    TUNABLES[4],
    time("prio_aging_expire", 10_000, "age at which a request of a lower class goes first"),
    Tunable {
        name: "async_depth",
        unit: "requests",
        default: None, // nr_requests
        min: 1,
        max: INT_MAX,
        effect: "scheduler tags that everything except synchronous reads may use",
    },
];

static WITH_CLASSES_ABOUT: About = About {
    name: "mq-deadline",
    shape: Shape::Multi,
    lock: SharedLock::AllButCompletion,
    summary: "within classes of priority: sweeps in batches, prefers reads, bounds waiting",
    tunables: &ALL_TUNABLES,
};

static WITHOUT_CLASSES_ABOUT: About = About {
    name: "mq-deadline",
    shape: Shape::Multi,
    lock: SharedLock::AllButCompletion,
    summary: "sweeps the disk in batches, prefers reads, bounds waiting",
    tunables: &TUNABLES,
};

/// What is fixed about mq-deadline in a kernel that has it.
pub fn about_on(kernel: &Kernel) -> &'static About {
    if Rules::of(kernel).has_classes { &WITH_CLASSES_ABOUT } else { &WITHOUT_CLASSES_ABOUT }
}
