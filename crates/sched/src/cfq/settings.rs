//! CFQ's tunables: their table and their values.
//!
//! Times are kept in nanoseconds, as kernels from 4.8 on keep them; sysfs shows most of them twice,
//! in milliseconds and in microseconds.

use crate::choice::Ways;
use block::{Flags, Tunable};

/// Largest value of a C `unsigned int`.
const UINT_MAX: i64 = u32::MAX as i64;

const MILLI: i64 = 1_000_000;
const MICRO: i64 = 1_000;

/// The values of rule cfq-settings-1.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub quantum: i64,
    /// Async and sync, in nanoseconds.
    pub fifo_expire: [i64; 2],
    /// How requests of one queue are compared.
    pub ways: Ways,
    /// Async and sync, in nanoseconds.
    pub slice: [i64; 2],
    pub slice_async_rq: i64,
    pub slice_idle: i64,
    pub group_idle: i64,
    pub low_latency: bool,
    pub target_latency: i64,
}

impl Settings {
    /// The defaults of the table, on a rotating disk.
    pub fn new() -> Settings {
        Settings {
            quantum: 8,
            fifo_expire: [250 * MILLI, 125 * MILLI],
            ways: Ways { back_max: 16_384, penalty: 2, favoured: Flags::PRIO },
            slice: [40 * MILLI, 100 * MILLI],
            slice_async_rq: 2,
            slice_idle: 8 * MILLI,
            group_idle: 8 * MILLI,
            low_latency: true,
            target_latency: 300 * MILLI,
        }
    }

    /// A value as sysfs shows it, if it is one of these.
    pub fn get(&self, name: &str) -> Option<i64> {
        Some(match name {
            "quantum" => self.quantum,
            "back_seek_max" => self.ways.back_max,
            "back_seek_penalty" => self.ways.penalty,
            "slice_async_rq" => self.slice_async_rq,
            "low_latency" => i64::from(self.low_latency),
            _ => {
                let (unit, base) = unit_of(name);
                *self.time(base)? / unit
            }
        })
    }

    /// Stores a value within its range; false if it is none of these.
    pub fn set(&mut self, name: &str, value: i64) -> bool {
        match name {
            "quantum" => self.quantum = value,
            "back_seek_max" => self.ways.back_max = value,
            "back_seek_penalty" => self.ways.penalty = value,
            "slice_async_rq" => self.slice_async_rq = value,
            "low_latency" => self.low_latency = value != 0,
            _ => {
                let (unit, base) = unit_of(name);
                match self.time_mut(base) {
                    Some(time) => *time = value * unit,
                    None => return false,
                }
            }
        }
        true
    }

    fn time(&self, name: &str) -> Option<&i64> {
        Some(match name {
            "fifo_expire_sync" => &self.fifo_expire[1],
            "fifo_expire_async" => &self.fifo_expire[0],
            "slice_sync" => &self.slice[1],
            "slice_async" => &self.slice[0],
            "slice_idle" => &self.slice_idle,
            "group_idle" => &self.group_idle,
            "target_latency" => &self.target_latency,
            _ => return None,
        })
    }

    fn time_mut(&mut self, name: &str) -> Option<&mut i64> {
        Some(match name {
            "fifo_expire_sync" => &mut self.fifo_expire[1],
            "fifo_expire_async" => &mut self.fifo_expire[0],
            "slice_sync" => &mut self.slice[1],
            "slice_async" => &mut self.slice[0],
            "slice_idle" => &mut self.slice_idle,
            "group_idle" => &mut self.group_idle,
            "target_latency" => &mut self.target_latency,
            _ => return None,
        })
    }
}

/// Nanoseconds in the unit of a file, and the name of the time it shows.
fn unit_of(name: &str) -> (i64, &str) {
    match name.strip_suffix("_us") {
        Some(base) => (MICRO, base),
        None => (MILLI, name),
    }
}

const fn tunable(
    name: &'static str,
    unit: &'static str,
    default: i64,
    min: i64,
    effect: &'static str,
) -> Tunable {
    Tunable { name, unit, default: Some(default), min, max: UINT_MAX, effect }
}

/// A tunable whose default depends on whether the disk rotates.
const fn idle(name: &'static str, unit: &'static str, effect: &'static str) -> Tunable {
    Tunable { name, unit, default: None, min: 0, max: UINT_MAX, effect }
}

const SLICE_IDLE: &str = "how long a queue that has run empty is waited for";
const GROUP_IDLE: &str = "how long a control group that has run empty is waited for";
const SLICE_SYNC: &str = "turn of a synchronous queue of level 4";
const SLICE_ASYNC: &str = "turn of an asynchronous queue of level 4";
const TARGET_LATENCY: &str = "time in which every queue should have had a turn";

/// The table of rule cfq-settings-1.
pub(super) const TUNABLES: [Tunable; 17] = [
    tunable("quantum", "requests", 8, 1, "requests of one queue in flight while others are busy"),
    tunable("fifo_expire_sync", "ms", 125, 1, "age at which a synchronous request is served first"),
    tunable("fifo_expire_async", "ms", 250, 1, "age at which an asynchronous one is"),
    tunable("back_seek_max", "KiB", 16_384, 0, "longest way back that counts as near"),
    tunable("back_seek_penalty", "times", 2, 1, "how much farther the way back counts"),
    tunable("slice_sync", "ms", 100, 1, SLICE_SYNC),
    tunable("slice_sync_us", "us", 100_000, 1, SLICE_SYNC),
    tunable("slice_async", "ms", 40, 1, SLICE_ASYNC),
    tunable("slice_async_us", "us", 40_000, 1, SLICE_ASYNC),
    tunable(
        "slice_async_rq",
        "requests",
        2,
        1,
        "asynchronous requests a turn, before levels count",
    ),
    idle("slice_idle", "ms", SLICE_IDLE),
    idle("slice_idle_us", "us", SLICE_IDLE),
    tunable("group_idle", "ms", 8, 0, GROUP_IDLE),
    tunable("group_idle_us", "us", 8_000, 0, GROUP_IDLE),
    Tunable {
        name: "low_latency",
        unit: "bool",
        default: Some(1),
        min: 0,
        max: 1,
        effect: "shorten turns when many queues are busy, and hold back asynchronous requests",
    },
    tunable("target_latency", "ms", 300, 1, TARGET_LATENCY),
    tunable("target_latency_us", "us", 300_000, 1, TARGET_LATENCY),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_states_the_defaults() {
        let settings = Settings::new();
        for tunable in &TUNABLES {
            let value = settings.get(tunable.name);
            assert!(value.is_some(), "{}", tunable.name);
            assert!(tunable.default.is_none() || value == tunable.default, "{}", tunable.name);
        }
    }

    #[test]
    fn a_time_is_shown_in_both_units() {
        let mut settings = Settings::new();
        assert!(settings.set("slice_idle_us", 2_500));
        assert_eq!(settings.get("slice_idle"), Some(2));
        assert_eq!(settings.get("slice_idle_us"), Some(2_500));
        assert!(!settings.set("slice", 1));
    }
}
