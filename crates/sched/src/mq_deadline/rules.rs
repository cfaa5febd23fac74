//! What differs between the kernels of mq-deadline, each difference a named field.

use crate::settings::{INT_MAX, TUNABLES, time};
use alloc::format;
use block::changes::{Table, change};
use block::{About, Kernel, MergeLookup, Shape, SharedLock, Tunable, Version};

/// The differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// Requests are kept apart by class of priority (5.14 and later).
    pub has_classes: bool,
    /// Where requests wait that are inserted at the head.
    pub heads: Heads,
    /// How the sweep remembers where it was.
    pub sweep: Sweep,
    /// Old requests of lower classes go first (`prio_aging_expire`; rule mq-deadline-5).
    pub ages: bool,
    /// How many tags whatever is not a synchronous read may use (rule mq-deadline-10).
    pub async_depth: Option<DepthChange>,
    /// The smallest depth announced to the tag map (rule tags-5).
    pub announces: Announced,
}

/// Where requests wait that are inserted at the head (rule mq-deadline-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heads {
    /// In one list for all classes, before everything. Observed on 6.12.117 and 7.3.4: debugfs has
    /// a single file `dispatch`.
    Common,
    /// In a list of their class, whose turn it must be. Observed on 6.1.192: debugfs has
    /// `dispatch0` to `dispatch2`.
    OfClass,
}

/// How the sweep remembers where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sweep {
    /// By the request that comes next, of one direction at a time: later arrivals before it are not
    /// seen (without classes).
    Request,
    /// By a request that comes next for each class and direction (up to 6.3). Observed on 6.1.192:
    /// debugfs has `read0_next_rq` to `write2_next_rq`, and a batch goes on in its direction.
    RequestOfEach,
    /// By the start of the last dispatched request: whatever lies at or above it is next (6.8).
    Position,
}

/// What `async_depth` is when `nr_requests` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DepthChange {
    /// `nr_requests`, whatever it was set to: it is the scheduler's. Observed on 6.1.192, 6.12.117.
    Reset,
    /// As large a part of `nr_requests` as before, and never more: it is the queue's.
    KeepsRatio,
}

/// The smallest depth that the tag map is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Announced {
    /// None.
    Nothing,
    /// Observed on 6.1.192 and 6.12.117: `min_shallow_depth` of `sched_tags` in debugfs is 1.
    One,
    /// Observed on 7.3.4: `min_shallow_depth` is what `async_depth` is, also when it was set.
    AsyncDepth,
}

/// Rules mq-deadline-1 to mq-deadline-3.
const WITHOUT_CLASSES: Rules = Rules {
    has_classes: false,
    heads: Heads::Common,
    sweep: Sweep::Request,
    ages: false,
    async_depth: None,
    announces: Announced::Nothing,
};

/// 6.12 lies between the kernels that were read, 6.8 and 6.13; 6.18 has nothing else (measured in
/// the linux world).
const WITH_CLASSES: Rules = Rules {
    has_classes: true,
    heads: Heads::Common,
    sweep: Sweep::Position,
    ages: true,
    async_depth: Some(DepthChange::Reset),
    announces: Announced::One,
};

const OF_6_1: Rules = Rules { heads: Heads::OfClass, sweep: Sweep::RequestOfEach, ..WITH_CLASSES };

const OF_7_3: Rules = Rules {
    async_depth: Some(DepthChange::KeepsRatio),
    announces: Announced::AsyncDepth,
    ..WITH_CLASSES
};

impl Rules {
    /// The rules of a kernel that has mq-deadline.
    pub fn of(kernel: &Kernel) -> Rules {
        match kernel.version {
            Version::V6_1 => OF_6_1,
            Version::V6_12 | Version::V6_18 => WITH_CLASSES,
            Version::V7_3 => OF_7_3,
            _ => WITHOUT_CLASSES,
        }
    }
}

/// What changed between the kernels that judge.
pub static CHANGES: Table = Table {
    about: "mq-deadline",
    shows: |kernel| format!("{:#?}", Rules::of(kernel)),
    rows: &[
        change("heads", "where requests wait that are inserted at the head", JUDGES),
        change("sweep", "how the sweep remembers where it was", OLDER),
        change("async_depth", "`async_depth` when `nr_requests` changes", JUDGES),
        change("announces", "the smallest depth that the tag map is told of", JUDGES),
    ],
};

const JUDGES: &[Version] = &[Version::V6_1, Version::V6_12, Version::V7_3];
const OLDER: &[Version] = &[Version::V6_1, Version::V6_12];

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
    lookup: MergeLookup::Index,
    summary: "within classes of priority: sweeps in batches, prefers reads, bounds waiting",
    tunables: &ALL_TUNABLES,
};

static WITHOUT_CLASSES_ABOUT: About = About {
    name: "mq-deadline",
    shape: Shape::Multi,
    lock: SharedLock::AllButCompletion,
    lookup: MergeLookup::Index,
    summary: "sweeps the disk in batches, prefers reads, bounds waiting",
    tunables: &TUNABLES,
};

/// What is fixed about mq-deadline in a kernel that has it.
pub fn about_on(kernel: &Kernel) -> &'static About {
    if Rules::of(kernel).has_classes { &WITH_CLASSES_ABOUT } else { &WITHOUT_CLASSES_ABOUT }
}
