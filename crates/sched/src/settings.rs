//! The tunables that deadline and mq-deadline have in common: their table and their values.

use base::{Hz, Jiffies};
use block::Tunable;

/// Largest value of a C `int`.
pub(crate) const INT_MAX: i64 = i32::MAX as i64;
/// Smallest value of a C `int`.
pub(crate) const INT_MIN: i64 = i32::MIN as i64;

/// The values; times are kept in jiffies, as the kernel keeps them.
#[derive(Clone)]
pub(crate) struct Settings {
    /// By direction.
    pub expire: [Jiffies; 2],
    pub fifo_batch: i64,
    pub writes_starved: i64,
    pub front_merges: bool,
}

impl Settings {
    /// The defaults of the table.
    pub fn new(hz: Hz) -> Settings {
        Settings {
            expire: [hz.jiffies_from_millis(500), hz.jiffies_from_millis(5_000)],
            fifo_batch: 16,
            writes_starved: 2,
            front_merges: true,
        }
    }

    /// A value as sysfs shows it, if it is one of these.
    pub fn get(&self, hz: Hz, name: &str) -> Option<i64> {
        Some(match name {
            "read_expire" => to_millis(hz, self.expire[0]),
            "write_expire" => to_millis(hz, self.expire[1]),
            "fifo_batch" => self.fifo_batch,
            "writes_starved" => self.writes_starved,
            "front_merges" => i64::from(self.front_merges),
            _ => return None,
        })
    }

    /// Stores a value within its range; false if it is none of these.
    pub fn set(&mut self, hz: Hz, name: &str, value: i64) -> bool {
        match name {
            "read_expire" => self.expire[0] = from_millis(hz, value),
            "write_expire" => self.expire[1] = from_millis(hz, value),
            "fifo_batch" => self.fifo_batch = value,
            "writes_starved" => self.writes_starved = value,
            "front_merges" => self.front_merges = value != 0,
            _ => return false,
        }
        true
    }
}

/// What is stored of a time written to sysfs.
pub(crate) fn from_millis(hz: Hz, millis: i64) -> Jiffies {
    hz.jiffies_from_millis(u64::try_from(millis).expect("the queue checks ranges"))
}

/// What sysfs shows of a stored time.
pub(crate) fn to_millis(hz: Hz, stored: Jiffies) -> i64 {
    hz.millis_from_jiffies(stored) as i64
}

/// A tunable that is written in milliseconds and kept in jiffies.
pub(crate) const fn time(name: &'static str, default: i64, effect: &'static str) -> Tunable {
    Tunable { name, unit: "ms", default: Some(default), min: 0, max: INT_MAX, effect }
}

/// The table of rule deadline-11.
pub(crate) const TUNABLES: [Tunable; 5] = [
    time("read_expire", 500, "age at which the oldest read starts the next batch"),
    time("write_expire", 5_000, "age at which the oldest write starts the next batch"),
    Tunable {
        name: "fifo_batch",
        unit: "requests",
        default: Some(16),
        min: 0,
        max: INT_MAX,
        effect: "requests served in sector order before directions and ages are looked at again",
    },
    Tunable {
        name: "writes_starved",
        unit: "batches",
        default: Some(2),
        min: INT_MIN,
        max: INT_MAX,
        effect: "read batches that may go first while a write waits",
    },
    Tunable {
        name: "front_merges",
        unit: "bool",
        default: Some(1),
        min: 0,
        max: 1,
        effect: "look for a request that starts where a new bio ends",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_states_the_defaults() {
        let hz = Hz::new(250).unwrap();
        let settings = Settings::new(hz);
        for tunable in &TUNABLES {
            assert_eq!(settings.get(hz, tunable.name), tunable.default, "{}", tunable.name);
        }
    }

    #[test]
    fn times_are_kept_in_whole_ticks() {
        let hz = Hz::new(250).unwrap();
        let mut settings = Settings::new(hz);
        assert!(settings.set(hz, "read_expire", 499));
        assert_eq!(settings.get(hz, "read_expire"), Some(500));
    }
}
