//! The tunables of CFQ before control groups (rules cfq-early-settings).

use super::rules::Rules;
use crate::choice::Ways;
use crate::settings::{from_millis, to_millis};
use base::{Hz, Jiffies};
use block::{About, Flags, Kernel, MergeLookup, Shape, SharedLock, Tunable};

/// Largest value of a C `unsigned int`.
const UINT_MAX: i64 = u32::MAX as i64;

/// The values; times are kept in jiffies, as the kernel keeps them.
pub(super) struct Settings {
    pub hz: Hz,
    pub quantum: i64,
    /// Async and sync.
    pub fifo_expire: [i64; 2],
    /// How requests of one queue are compared.
    pub ways: Ways,
    /// Async and sync.
    pub slice: [i64; 2],
    pub slice_async_rq: i64,
    pub slice_idle: i64,
    pub low_latency: bool,
}

impl Settings {
    /// The defaults: fractions of a second in whole ticks (rule cfq-early-settings-1).
    pub fn new(hz: Hz) -> Settings {
        let part = |of_second: i64| i64::from(hz.get()) / of_second;
        Settings {
            hz,
            quantum: 4,
            fifo_expire: [part(4), part(8)],
            ways: Ways { back_max: 16_384, penalty: 2, favoured: Flags::META },
            slice: [part(25).max(1), part(10)],
            slice_async_rq: 2,
            slice_idle: part(125).max(1),
            low_latency: true,
        }
    }

    /// The turn of a queue of this level (rule cfq-early-settings-3).
    pub fn turn(&self, sync: bool, level: u8) -> i64 {
        let base = self.slice[usize::from(sync)];
        base + base / 5 * (4 - i64::from(level))
    }

    /// Asynchronous requests that may go at once (rule cfq-early-settings-4).
    pub fn async_round(&self, level: u8) -> i64 {
        2 * (self.slice_async_rq + self.slice_async_rq * (7 - i64::from(level)))
    }

    /// How long a seeky process is waited for: 2 ms, rounded up (rule cfq-early-settings-2).
    pub fn short_idle(&self) -> i64 {
        self.slice_idle.min(self.hz.jiffies_from_millis(2).0 as i64)
    }

    /// A value as sysfs shows it, if it is one of these.
    pub fn get(&self, name: &str) -> Option<i64> {
        Some(match name {
            "quantum" => self.quantum,
            "back_seek_max" => self.ways.back_max,
            "back_seek_penalty" => self.ways.penalty,
            "slice_async_rq" => self.slice_async_rq,
            "low_latency" => i64::from(self.low_latency),
            "fifo_expire_sync" => self.shown(self.fifo_expire[1]),
            "fifo_expire_async" => self.shown(self.fifo_expire[0]),
            "slice_sync" => self.shown(self.slice[1]),
            "slice_async" => self.shown(self.slice[0]),
            "slice_idle" => self.shown(self.slice_idle),
            _ => return None,
        })
    }

    /// Stores a value within its range; false if it is none of these.
    pub fn set(&mut self, name: &str, value: i64) -> bool {
        let ticks = from_millis(self.hz, value).0 as i64;
        match name {
            "quantum" => self.quantum = value,
            "back_seek_max" => self.ways.back_max = value,
            "back_seek_penalty" => self.ways.penalty = value,
            "slice_async_rq" => self.slice_async_rq = value,
            "low_latency" => self.low_latency = value != 0,
            "fifo_expire_sync" => self.fifo_expire[1] = ticks,
            "fifo_expire_async" => self.fifo_expire[0] = ticks,
            "slice_sync" => self.slice[1] = ticks,
            "slice_async" => self.slice[0] = ticks,
            "slice_idle" => self.slice_idle = ticks,
            _ => return false,
        }
        true
    }

    fn shown(&self, stored: i64) -> i64 {
        to_millis(self.hz, Jiffies(stored as u64))
    }
}

/// What is fixed about CFQ on one of these kernels.
pub(in crate::cfq) fn about_on(kernel: &Kernel) -> &'static About {
    if Rules::of(kernel).has_low_latency { &ABOUT_2_6_32 } else { &ABOUT_2_6_28 }
}

static ABOUT_2_6_32: About = About {
    name: "cfq",
    shape: Shape::Single,
    lock: SharedLock::All,
    lookup: MergeLookup::Index,
    summary: "divides the disk's time among processes, and waits for sequential ones",
    tunables: &TUNABLES,
};

static ABOUT_2_6_28: About = About { tunables: TUNABLES.split_at(9).0, ..ABOUT_2_6_32 };

const fn tunable(
    name: &'static str,
    unit: &'static str,
    default: i64,
    min: i64,
    effect: &'static str,
) -> Tunable {
    Tunable { name, unit, default: Some(default), min, max: UINT_MAX, effect }
}

/// The table; the last one came after 2.6.28.
static TUNABLES: [Tunable; 10] = [
    tunable("quantum", "requests", 4, 1, "requests of one queue in flight while others are busy"),
    tunable("fifo_expire_sync", "ms", 125, 1, "age at which a synchronous request is served first"),
    tunable("fifo_expire_async", "ms", 250, 1, "age at which an asynchronous one is"),
    tunable("back_seek_max", "KiB", 16_384, 0, "longest way back that counts as near"),
    tunable("back_seek_penalty", "times", 2, 1, "how much farther the way back counts"),
    tunable("slice_sync", "ms", 100, 1, "turn of a synchronous queue of level 4"),
    tunable("slice_async", "ms", 40, 1, "turn of an asynchronous queue of level 4"),
    tunable("slice_async_rq", "requests", 2, 1, "asynchronous requests at once, before levels"),
    tunable("slice_idle", "ms", 8, 0, "how long a queue that has run empty is waited for"),
    Tunable {
        name: "low_latency",
        unit: "bool",
        default: Some(1),
        min: 0,
        max: 1,
        effect: "hold back asynchronous requests for a while after synchronous ones",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(hz: u16) -> Settings {
        Settings::new(Hz::new(hz).unwrap())
    }

    #[test]
    fn the_table_states_the_defaults() {
        for tunable in &TUNABLES {
            assert_eq!(settings(1000).get(tunable.name), tunable.default, "{}", tunable.name);
        }
    }

    #[test]
    fn turns_and_rounds_follow_levels() {
        // Rules cfq-slice-1 and cfq-early-settings.
        let turns = |sync| [0, 1, 4, 7].map(|level| settings(1000).turn(sync, level));
        assert_eq!(turns(true), [180, 160, 100, 40]);
        assert_eq!(turns(false), [72, 64, 40, 16]);
        assert_eq!([0, 4, 7].map(|level| settings(1000).async_round(level)), [32, 16, 4]);
    }

    #[test]
    fn slow_ticks_round_as_the_kernel_does() {
        // Rule cfq-early-settings-1.
        assert_eq!([1000, 250, 100].map(|hz| settings(hz).slice_idle), [8, 2, 1]);
        assert_eq!([1000, 250, 100].map(|hz| settings(hz).slice), [[40, 100], [10, 25], [4, 10]]);
        assert_eq!([1000, 250].map(|hz| settings(hz).short_idle()), [2, 1]);
    }
}
