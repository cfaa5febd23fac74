//! What is known of a device that pages are written to: its bandwidth, and the rate that its
//! writers are held to (rules writeback-limit-8 and writeback-limit-9).

use super::position::SHIFT;
use base::Hz;

/// Pages per second at the start: 100 MiB/s (rule writeback-limit-8).
const START_RATE: u64 = 25_600;

/// The estimates, in pages per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The bandwidth.
    pub bandwidth: u64,
    /// The same, smoother.
    pub average: u64,
    /// What each writer is held to when as many pages are dirty as should be.
    pub ratelimit: u64,
    /// What the ratelimit is moving to.
    pub balanced: u64,
}

impl Estimate {
    /// What a kernel begins with.
    pub const START: Estimate = Estimate {
        bandwidth: START_RATE,
        average: START_RATE,
        ratelimit: START_RATE,
        balanced: START_RATE,
    };

    /// So many pages were completed in so many ticks (rule writeback-limit-8).
    pub fn written(&mut self, pages: u64, elapsed: u64, hz: Hz) {
        let hz = u64::from(hz.get());
        let period = (3 * hz).next_power_of_two();
        if elapsed > period {
            self.bandwidth = pages * hz / elapsed;
            self.average = self.bandwidth;
        } else {
            let old = self.bandwidth;
            let new = (pages * hz + old * (period - elapsed)) / period;
            if self.average > old && old >= new {
                self.average -= (self.average - old) / 8;
            }
            if self.average < old && old <= new {
                self.average += (old - self.average) / 8;
            }
            self.bandwidth = new;
        }
        self.bandwidth = self.bandwidth.max(1);
        self.average = self.average.max(1);
    }

    /// So many pages were dirtied in so many ticks, at a ratio of [`super::position::Position`];
    /// `is_below` is whether fewer are dirty than should be (rule writeback-limit-9).
    pub fn dirtied(&mut self, pages: u64, elapsed: u64, hz: Hz, ratio: u64, is_below: bool) {
        self.balance(pages * u64::from(hz.get()) / elapsed.max(1), ratio, is_below);
    }

    fn balance(&mut self, dirty_rate: u64, ratio: u64, is_below: bool) {
        let present = self.ratelimit;
        let task_rate = ((present * ratio) >> SHIFT) + 1;
        let balanced = (task_rate * self.average / (dirty_rate + 1)).min(self.average);
        let step = if is_below {
            self.balanced.min(balanced).min(task_rate).saturating_sub(present)
        } else {
            present.saturating_sub(self.balanced.max(balanced).max(task_rate))
        };
        // The nearer, the smaller the step.
        let shift = present / (2 * step + 1);
        let step = if shift < 64 { (step >> shift).div_ceil(8) } else { 0 };
        let moved = if present < balanced { present + step } else { present.saturating_sub(step) };
        self.ratelimit = moved.max(1);
        self.balanced = balanced;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hz() -> Hz {
        Hz::new(250).expect("a rate of ticks")
    }

    #[test]
    fn bandwidth_and_its_average_fall_as_in_the_table() {
        // Rule writeback-limit-8.
        let mut estimate = Estimate::START;
        let mut found = Vec::new();
        for _ in 0..6 {
            estimate.written(2000, 50, hz());
            found.push((estimate.bandwidth, estimate.average));
        }
        let expected = [
            (24838, 25600),
            (24113, 25505),
            (23423, 25331),
            (22767, 25093),
            (22143, 24803),
            (21550, 24471),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn after_more_than_a_period_only_the_last_counts() {
        let mut estimate = Estimate::START;
        estimate.written(1000, 2000, hz());
        assert_eq!((estimate.bandwidth, estimate.average), (125, 125));
        estimate.written(0, 5000, hz());
        assert_eq!((estimate.bandwidth, estimate.average), (1, 1));
    }

    #[test]
    fn the_ratelimit_moves_in_small_steps_and_only_when_all_signs_agree() {
        // Rule writeback-limit-9: dirty is 180000 or 170000, the setpoint 175000.
        let cases = [
            ((25600, 25600), false, 900, 25600, (25600, 11250)),
            ((25600, 12000), false, 900, 25600, (25575, 11250)),
            ((6000, 12800), true, 1100, 6000, (6001, 12800)),
            ((3000, 12800), true, 1500, 3000, (3088, 12800)),
        ];
        for ((ratelimit, balanced), is_below, ratio, dirty_rate, expected) in cases {
            let mut estimate = Estimate { bandwidth: 12800, average: 12800, ratelimit, balanced };
            estimate.balance(dirty_rate, ratio, is_below);
            assert_eq!((estimate.ratelimit, estimate.balanced), expected);
        }
        let mut estimate = Estimate { average: 12800, balanced: 12000, ..Estimate::START };
        estimate.dirtied(5120, 50, hz(), 900, false);
        assert_eq!((estimate.ratelimit, estimate.balanced), (25575, 11250));
    }
}
