//! The tunables of anticipatory (rule as-process-1).

use crate::settings::{from_millis, time, to_millis};
use base::Hz;
use block::Tunable;

/// The values; times are kept in jiffies, as the kernel keeps them.
pub(super) struct Settings {
    pub hz: Hz,
    /// By kind: age at which the oldest goes first.
    pub fifo_expire: [i64; 2],
    /// By kind: how long a batch lasts.
    pub batch_expire: [i64; 2],
    /// How long a process is waited for at most; zero: not at all.
    pub antic_expire: i64,
}

impl Settings {
    /// The defaults: fractions of a second in whole ticks.
    pub fn new(hz: Hz) -> Settings {
        let part = |of_second: i64| i64::from(hz.get()) / of_second;
        Settings {
            hz,
            fifo_expire: [part(4), part(8)],
            batch_expire: [part(8), part(2)],
            antic_expire: part(150).max(1),
        }
    }

    /// A value as sysfs shows it.
    pub fn get(&self, hz: Hz, name: &str) -> Option<i64> {
        Some(to_millis(hz, base::Jiffies(*self.place(name)? as u64)))
    }

    /// Stores a value within its range; false if there is no such tunable.
    pub fn set(&mut self, hz: Hz, name: &str, value: i64) -> bool {
        match self.place_mut(name) {
            Some(place) => *place = from_millis(hz, value).0 as i64,
            None => return false,
        }
        true
    }

    fn place(&self, name: &str) -> Option<&i64> {
        Some(match name {
            "read_expire" => &self.fifo_expire[1],
            "write_expire" => &self.fifo_expire[0],
            "antic_expire" => &self.antic_expire,
            "read_batch_expire" => &self.batch_expire[1],
            "write_batch_expire" => &self.batch_expire[0],
            _ => return None,
        })
    }

    fn place_mut(&mut self, name: &str) -> Option<&mut i64> {
        Some(match name {
            "read_expire" => &mut self.fifo_expire[1],
            "write_expire" => &mut self.fifo_expire[0],
            "antic_expire" => &mut self.antic_expire,
            "read_batch_expire" => &mut self.batch_expire[1],
            "write_batch_expire" => &mut self.batch_expire[0],
            _ => return None,
        })
    }
}

/// The table of rule as-process-1, with HZ=1000.
pub(super) const TUNABLES: [Tunable; 5] = [
    time("read_expire", 125, "age at which the oldest synchronous request goes first"),
    time("write_expire", 250, "age at which the oldest asynchronous request goes first"),
    time("antic_expire", 6, "how long a process is waited for at most; 0: nobody is"),
    time("read_batch_expire", 500, "how long synchronous requests are served before others"),
    time("write_batch_expire", 125, "how long asynchronous ones are; becomes a number of requests"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_states_the_defaults() {
        let hz = Hz::new(1000).unwrap();
        let settings = Settings::new(hz);
        for tunable in &TUNABLES {
            assert_eq!(settings.get(hz, tunable.name), tunable.default, "{}", tunable.name);
        }
    }

    #[test]
    fn a_slow_tick_waits_one_tick() {
        // Rule as-process-1.
        for (hz, millis) in [(250, 4), (100, 10)] {
            let hz = Hz::new(hz).unwrap();
            assert_eq!(Settings::new(hz).get(hz, "antic_expire"), Some(millis));
        }
    }

    #[test]
    fn every_tunable_can_be_written() {
        let hz = Hz::new(1000).unwrap();
        let mut settings = Settings::new(hz);
        for (place, tunable) in TUNABLES.iter().enumerate() {
            assert!(settings.set(hz, tunable.name, place as i64 + 40));
        }
        for (place, tunable) in TUNABLES.iter().enumerate() {
            assert_eq!(settings.get(hz, tunable.name), Some(place as i64 + 40));
        }
        assert!(!settings.set(hz, "est_time", 1));
    }
}
