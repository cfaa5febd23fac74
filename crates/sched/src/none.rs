//! none: no elevator at all.
//!
//! blk-mq hands requests to the driver without asking anybody for an order: directly where it can,
//! through the per-core software queues where the driver is busy (rules none). Those queues belong
//! to the block layer, so there is no `Scheduler` here, only what a list of schedulers shows.

use block::{About, MergeLookup, Shape, SharedLock};

/// What is fixed about the absence of an elevator.
pub const ABOUT: About = About {
    name: "none",
    shape: Shape::Multi,
    lock: SharedLock::Unused,
    lookup: MergeLookup::Index,
    summary: "hands requests to the device at once; the device orders them, if anybody does",
    tunables: &[],
};
