//! Bandwidth and rate over time, in windows of half a second as fio takes them.

use base::{Bytes, Duration, Instant};

/// The length of a window (fio 3.33: bwavgtime, iopsavgtime).
pub const WINDOW: Duration = Duration::from_millis(500);

/// Windows, summed up while they pass.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Of the bytes in a window.
    pub bytes: Spread,
    /// Of the operations in a window.
    pub operations: Spread,
    /// When the current window began.
    since: Option<Instant>,
    current: (u64, u64),
}

/// Extremes and sums over windows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// How many windows.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
    sum: u128,
    sum_of_squares: u128,
}

impl Samples {
    /// The first window begins, unless it has.
    pub fn start(&mut self, at: Instant) {
        self.since.get_or_insert(at);
    }

    /// An operation ended.
    pub fn add(&mut self, at: Instant, bytes: Bytes) {
        self.pass(at);
        self.current.0 += bytes.0;
        self.current.1 += 1;
    }

    /// Closes the windows that have passed; the last, unfinished one does not count.
    fn pass(&mut self, at: Instant) {
        let since = *self.since.get_or_insert(at);
        let passed = at.saturating_since(since).as_nanos() / WINDOW.as_nanos();
        if passed == 0 {
            return;
        }
        let (bytes, operations) = std::mem::take(&mut self.current);
        self.bytes.add(bytes, 1);
        self.operations.add(operations, 1);
        self.bytes.add(0, passed - 1);
        self.operations.add(0, passed - 1);
        self.since = Some(since + WINDOW * passed);
    }
}

impl Spread {
    /// The mean.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// The standard deviation of the population the windows are a sample of.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let mean = self.mean();
        let variance = self.sum_of_squares as f64 - mean * self.sum as f64;
        (variance.max(0.0) / (self.count - 1) as f64).sqrt()
    }

    fn add(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += times;
        self.sum += u128::from(value) * u128::from(times);
        self.sum_of_squares += u128::from(value).pow(2) * u128::from(times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_without_anything_count_too() {
        let mut samples = Samples::default();
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        samples.start(at(0));
        samples.add(at(100), Bytes(10));
        samples.add(at(200), Bytes(20));
        samples.add(at(1600), Bytes(5));
        assert_eq!((samples.bytes.count, samples.bytes.min, samples.bytes.max), (3, 0, 30));
        assert_eq!(samples.bytes.mean(), 10.0);
        assert_eq!(samples.operations.max, 2);
        assert!((samples.bytes.deviation() - 300.0_f64.sqrt()).abs() < 1e-9);
    }
}
