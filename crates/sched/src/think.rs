//! Think time: how long somebody takes, after a request of theirs is done, to send the next one.
//!
//! Contexts, service trees and groups each have a record of it (rule cfq-insert-2).

/// Statistics count from so many samples on, in units of the exponential mean: the third one.
const VALID_SAMPLES: u64 = 80;

/// An exponential mean with weight 1/8.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThinkTime {
    /// When the last request was done.
    pub last_end: i64,
    samples: u64,
    total: u64,
}

impl ThinkTime {
    /// Nothing was done before `now`.
    pub fn since(now: i64) -> ThinkTime {
        ThinkTime { last_end: now, ..ThinkTime::default() }
    }

    /// A request arrives; `idle` is how long it would have been waited for.
    pub fn update(&mut self, now: i64, idle: i64) {
        // The kernel's numbers have no sign: what ends in the future ended long ago. (Observed on
        // 6.12.117: BFQ takes a queue to have ended a nanosecond after it was made.)
        let elapsed = ((now - self.last_end) as u64).min(2 * idle as u64);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * elapsed) / 8;
    }

    /// The mean, once there were enough samples.
    pub fn mean(&self) -> Option<i64> {
        self.is_known().then(|| ((self.total + 128) / self.samples) as i64)
    }

    /// Whether there were enough samples.
    pub fn is_known(&self) -> bool {
        self.samples > VALID_SAMPLES
    }

    /// Whether it is known to be longer than it would be waited for.
    pub fn is_big(&self, idle: i64) -> bool {
        // The mean is above `idle`, without a division: each request asks this.
        self.is_known() && self.total + 128 >= (idle as u64 + 1) * self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_sample_makes_it_count() {
        let mut think = ThinkTime::since(0);
        for round in 1..=2 {
            think.update(round * 1_000, 8_000);
            assert_eq!(think.mean(), None);
            think.last_end = round * 1_000;
        }
        think.update(3_000, 8_000);
        // (7/8 of 60,000 + 32,000 + 128) / 84 samples.
        assert_eq!(think.mean(), Some(1_007));
        assert!(think.is_big(1_006) && !think.is_big(1_007));
    }

    #[test]
    fn no_sample_is_longer_than_twice_the_wait() {
        let mut think = ThinkTime::since(0);
        (0..3).for_each(|_| think.update(1_000_000_000, 8_000));
        // 16,000, but for the rounding of the number of samples.
        assert_eq!(think.mean(), Some(16_096));
    }
}
