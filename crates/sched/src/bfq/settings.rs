//! BFQ's tunables: their table and their values (rules bfq-settings).

use crate::choice::Ways;
use base::{Hz, Jiffies};
use block::{Flags, Tunable};

const INT_MAX: i64 = i32::MAX as i64;
const MILLI: i64 = 1_000_000;
const MICRO: i64 = 1_000;

/// The values. Those that the kernel keeps in nanoseconds are in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Async and sync, in nanoseconds.
    pub fifo_expire: [i64; 2],
    /// How requests of one queue are compared.
    pub ways: Ways,
    pub slice_idle: i64,
    /// Sectors; zero: as the disk's rate has it.
    pub max_budget: i64,
    pub timeout_sync: Jiffies,
    pub strict_guarantees: bool,
    pub low_latency: bool,
}

impl Settings {
    /// The defaults of the table.
    pub fn new(hz: Hz) -> Settings {
        Settings {
            fifo_expire: [250 * MILLI, 125 * MILLI],
            ways: Ways { back_max: 16_384, penalty: 2, favoured: Flags::META },
            slice_idle: 8 * MILLI,
            max_budget: 0,
            timeout_sync: Jiffies(u64::from(hz.get()) / 8),
            strict_guarantees: false,
            low_latency: true,
        }
    }

    /// A value as sysfs shows it, if it is one of these.
    pub fn get(&self, hz: Hz, name: &str) -> Option<i64> {
        Some(match name {
            "fifo_expire_sync" => self.fifo_expire[1] / MILLI,
            "fifo_expire_async" => self.fifo_expire[0] / MILLI,
            "back_seek_max" => self.ways.back_max,
            "back_seek_penalty" => self.ways.penalty,
            "slice_idle" => self.slice_idle / MILLI,
            "slice_idle_us" => self.slice_idle / MICRO,
            "max_budget" => self.max_budget,
            "timeout_sync" => hz.millis_from_jiffies(self.timeout_sync) as i64,
            "strict_guarantees" => i64::from(self.strict_guarantees),
            "low_latency" => i64::from(self.low_latency),
            _ => return None,
        })
    }

    /// Stores a value within its range; false if it is none of these.
    pub fn set(&mut self, hz: Hz, name: &str, value: i64) -> bool {
        match name {
            "fifo_expire_sync" => self.fifo_expire[1] = value * MILLI,
            "fifo_expire_async" => self.fifo_expire[0] = value * MILLI,
            "back_seek_max" => self.ways.back_max = value,
            "back_seek_penalty" => self.ways.penalty = value,
            "slice_idle" => self.slice_idle = value * MILLI,
            "slice_idle_us" => self.slice_idle = value * MICRO,
            "max_budget" => self.max_budget = value,
            "timeout_sync" => self.timeout_sync = hz.jiffies_from_millis(value as u64),
            "strict_guarantees" => {
                self.strict_guarantees = value != 0;
                if self.strict_guarantees {
                    self.slice_idle = self.slice_idle.max(8 * MILLI);
                }
            }
            "low_latency" => self.low_latency = value != 0,
            _ => return false,
        }
        true
    }
}

const fn tunable(
    name: &'static str,
    unit: &'static str,
    default: Option<i64>,
    (min, max): (i64, i64),
    effect: &'static str,
) -> Tunable {
    Tunable { name, unit, default, min, max, effect }
}

const SLICE_IDLE: &str = "how long a queue that has run empty is waited for";

/// The table of the specification, in the order of sysfs.
pub(super) const TUNABLES: [Tunable; 10] = [
    tunable(
        "fifo_expire_sync",
        "ms",
        Some(125),
        (1, INT_MAX),
        "age at which a synchronous request is served first",
    ),
    tunable(
        "fifo_expire_async",
        "ms",
        Some(250),
        (1, INT_MAX),
        "age at which an asynchronous one is",
    ),
    tunable(
        "back_seek_max",
        "KiB",
        Some(16_384),
        (0, INT_MAX),
        "longest way back that counts as near",
    ),
    tunable(
        "back_seek_penalty",
        "times",
        Some(2),
        (1, INT_MAX),
        "how much farther the way back counts",
    ),
    tunable("slice_idle", "ms", Some(8), (0, INT_MAX), SLICE_IDLE),
    tunable("slice_idle_us", "us", Some(8_000), (0, INT_MAX), SLICE_IDLE),
    tunable(
        "max_budget",
        "sectors",
        Some(0),
        (0, INT_MAX),
        "most that a queue may be served at a time; 0: what the disk does in timeout_sync",
    ),
    tunable("timeout_sync", "ms", None, (1, INT_MAX), "longest time in which a budget may be used"),
    tunable(
        "strict_guarantees",
        "bool",
        Some(0),
        (0, 1),
        "always wait for the queue in service, and give the disk one request at a time",
    ),
    tunable(
        "low_latency",
        "bool",
        Some(1),
        (0, 1),
        "raise the weight of what is interactive or plays in real time",
    ),
];

/// The table with the queue's `async_depth`, which came with 7.0.
pub(super) const WITH_ASYNC_DEPTH_TUNABLES: [Tunable; 11] = {
    let mut all = [tunable(
        "async_depth",
        "requests",
        None, // three quarters of nr_requests
        (1, INT_MAX),
        "scheduler tags that synchronous writes may use; others but synchronous reads, less",
    ); 11];
    let mut index = 0;
    while index < TUNABLES.len() {
        all[index] = TUNABLES[index];
        index += 1;
    }
    all
};
