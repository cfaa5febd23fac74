//! What pgioperf says: of so many operations at a time the mean and the longest.

use base::{Duration, Histogram};
use std::cell::RefCell;

/// Operations of one kind of one process, since it last said something of them.
pub(super) struct Interval {
    kind: &'static str,
    /// It says something of so many.
    every: u64,
    count: u64,
    time: Duration,
    longest: Duration,
}

/// What no call alone shows and no line tells in full: how long the log's writer waited.
#[derive(Debug, Default)]
pub struct Account {
    /// Write calls of the log that an fsync follows, each with it.
    pub commits: RefCell<Histogram>,
}

impl Interval {
    pub const fn new(kind: &'static str, every: u64) -> Interval {
        Interval { kind, every, count: 0, time: Duration::ZERO, longest: Duration::ZERO }
    }

    /// One more operation; with the last one the line of the interval, which names the process.
    pub fn add(&mut self, took: Duration, process: u32) -> Option<String> {
        self.count += 1;
        self.time += took;
        self.longest = self.longest.max(took);
        if self.count < self.every {
            return None;
        }
        let Interval { kind, every, .. } = *self;
        let (mean, longest) = (millis(self.time / every), millis(self.longest));
        *self = Interval::new(kind, every);
        Some(format!("{kind}[{process}]: avg: {mean} msec; max: {longest} msec"))
    }
}

/// Milliseconds with one decimal.
fn millis(time: Duration) -> String {
    let tenths = (time.as_nanos() + 50_000) / 100_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_line_and_then_begins_anew() {
        let mut interval = Interval::new("commit", 3);
        let times = [10_000, 21_140, 2_000].map(Duration::from_micros);
        let said: Vec<_> = times.iter().map(|it| interval.add(*it, 7)).collect();
        let line = "commit[7]: avg: 11.0 msec; max: 21.1 msec";
        assert_eq!(said, [None, None, Some(line.to_string())]);
        let said = [40, 50, 60].map(|it| interval.add(Duration::from_micros(it), 7));
        let line = "commit[7]: avg: 0.1 msec; max: 0.1 msec";
        assert_eq!(said, [None, None, Some(line.to_string())]);
    }
}
