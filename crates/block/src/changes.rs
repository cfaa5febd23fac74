//! What changed between the kernels that judge, in words: a row for each field of a table of rules
//! whose value is not the same on all of them.
//!
//! Values are not repeated here. They are those that the table shows, so a row cannot be wrong
//! about them.

use crate::kernel::{Kernel, MultiQueue, ThrottleRules, Version};
use alloc::format;
use alloc::string::String;

/// A table of rules.
pub struct Table {
    /// What its rules are about.
    pub about: &'static str,
    /// Its fields and their values for a kernel, as `{:#?}` writes them.
    pub shows: fn(&Kernel) -> String,
    /// A row for each field that changed.
    pub rows: &'static [Change],
}

/// A field that changed.
pub struct Change {
    /// Its name.
    pub field: &'static str,
    /// What it says, in a sentence.
    pub says: &'static str,
    /// The kernels on which the value was observed; on others it is assumed.
    pub observed: &'static [Version],
}

/// A row.
pub const fn change(
    field: &'static str,
    says: &'static str,
    observed: &'static [Version],
) -> Change {
    Change { field, says, observed }
}

const ALL: &[Version] = &[Version::V6_1, Version::V6_12, Version::V7_3];
const OLDER: &[Version] = &[Version::V6_1, Version::V6_12];
const NEWER: &[Version] = &[Version::V6_12, Version::V7_3];

fn multi(kernel: &Kernel) -> MultiQueue {
    kernel.multi.expect("a kernel that judges has blk-mq")
}

fn throttle(kernel: &Kernel) -> ThrottleRules {
    kernel.throttle.expect("a kernel that judges limits groups")
}

/// The tables of the block layer.
pub static TABLES: [Table; 4] = [
    Table { about: "the whole kernel", shows: |kernel| format!("{kernel:#?}"), rows: &KERNEL },
    Table { about: "blk-mq", shows: |kernel| format!("{:#?}", multi(kernel)), rows: &MULTI },
    Table { about: "plugs", shows: |kernel| format!("{:#?}", multi(kernel).plug), rows: &PLUG },
    Table {
        about: "limits of groups",
        shows: |kernel| format!("{:#?}", throttle(kernel)),
        rows: &THROTTLE,
    },
];

const KERNEL: [Change; 4] = [
    change("sharing", "who of those that want a core gets it", ALL),
    change("flush_data", "which data of writes with a flush go through the elevator", ALL),
    change("max_sectors_cap", "default of `max_sectors_kb`, as a number of sectors", ALL),
    change("read_ahead", "default of `read_ahead_kb`, or so many of the largest requests", ALL),
];

const MULTI: [Change; 7] = [
    change("plugs_each_bio", "a bio without a plug gets one, so its task issues it", ALL),
    change("shallow", "what a limit of tags means: a number of all, or of each word", OLDER),
    change("wakes_on", "a batch of wake-ups goes on to the next wait queue", OLDER),
    change("split_looks", "how often the clock is read besides when a bio is split", OLDER),
    change("bio_reads_clock", "a bio reads the clock, besides its request", NEWER),
    change("depth_hook_sees_old", "the scheduler hears of `nr_requests` before it changes", &[]),
    change("async_depth_is_of_queue", "`async_depth` is an attribute of the queue", ALL),
];

const PLUG: [Change; 3] = [
    change("flush_tests", "which request of a plug must not have 128 KiB", OLDER),
    change("issues_first", "without a scheduler, which request of a plug is issued first", OLDER),
    change("remembers_time", "under a plug the clock is read once", OLDER),
];

const THROTTLE: [Change; 4] = [
    change("in_stages", "a bio waits for its bytes first, and for its turn then", ALL),
    change("short_on_flash", "slices have 20 ms on what does not turn", &[]),
    change("waits_for_one", "who waits for its turn does so for the time of one bio", ALL),
    change("carries_unsigned", "what is carried over to new limits has no sign", ALL),
];
