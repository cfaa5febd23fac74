//! Least, mean and greatest of some durations.

use base::Duration;

/// Some durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// The shortest; zero if there is none.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
    /// All together, in nanoseconds.
    pub sum: u128,
}

impl Spread {
    /// Adds one.
    pub fn add(&mut self, time: Duration) {
        self.merge(&Spread { count: 1, min: time, max: time, sum: u128::from(time.as_nanos()) });
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Spread) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// The mean in nanoseconds; zero if there is none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// How long it is from each of these moments, counted from time zero, to this one.
    pub(crate) fn until(&self, nanos: u64) -> Spread {
        let left = |moment: Duration| Duration::from_nanos(nanos).saturating_sub(moment);
        let all = u128::from(self.count) * u128::from(nanos);
        let (min, max) = (left(self.max), left(self.min));
        Spread { count: self.count, min, max, sum: all.saturating_sub(self.sum) }
    }
}
