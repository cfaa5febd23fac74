//! How near dirty pages are to their limits, as a factor for the rate of writers (rules
//! writeback-limit-6 and writeback-limit-7).

/// A ratio of one is `1 << SHIFT`.
pub const SHIFT: u32 = 10;
const ONE: i64 = 1 << SHIFT;
/// The most that a device with little to do is favoured.
const MOST_RESERVE: u64 = 8;

/// Dirty pages and their limits, of all devices and of one. All in pages, but for the bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The dirty threshold.
    pub threshold: u64,
    /// The background threshold.
    pub background: u64,
    /// The hard limit.
    pub hard_limit: u64,
    /// Pages dirty or under writeback.
    pub dirty: u64,
    /// The device's part of the threshold.
    pub device_threshold: u64,
    /// The device's pages that are dirty or under writeback.
    pub device_dirty: u64,
    /// The device's average bandwidth, pages per second.
    pub average_bandwidth: u64,
}

impl Position {
    /// Up to so many dirty pages nobody is held back.
    pub fn freerun(&self) -> u64 {
        (self.threshold + self.background) / 2
    }

    /// Where the number of dirty pages is meant to settle.
    pub fn setpoint(&self) -> u64 {
        (self.freerun() + self.hard_limit) / 2
    }

    /// Whether the device is beyond its share while all are beyond the threshold (rule
    /// writeback-limit-10).
    pub fn exceeds(&self) -> bool {
        self.device_dirty > self.device_threshold && self.dirty > self.threshold
    }

    /// The factor: 1 at the setpoint, 0 at the hard limit.
    pub fn ratio(&self) -> u64 {
        if self.dirty >= self.hard_limit {
            return 0;
        }
        let ratio = self.of_device(self.cubic());
        self.reserved(ratio)
    }

    /// 1 + x^3, with x the distance from the setpoint in units of that to the hard limit.
    fn cubic(&self) -> u64 {
        let setpoint = self.setpoint() as i64;
        // One more keeps the divisor from being zero; so in all of these.
        let span = self.hard_limit as i64 - setpoint + 1;
        let x = (setpoint - self.dirty as i64) * ONE / span;
        let cube = (((x * x) >> SHIFT) * x) >> SHIFT;
        (ONE + cube).clamp(0, 2 * ONE) as u64
    }

    /// The same for the device alone, as a straight line.
    fn of_device(&self, ratio: u64) -> u64 {
        let own = self.device_threshold.min(self.threshold);
        let scaled = |pages: u64| (pages * ((own << 16) / (self.threshold + 1))) >> 16;
        let setpoint = scaled(self.setpoint());
        let span = scaled(self.threshold - own + 8 * self.average_bandwidth);
        let end = setpoint + span;
        if self.device_dirty < end - span / 4 {
            ratio * (end - self.device_dirty) / (span + 1)
        } else {
            ratio / 4
        }
    }

    /// A device that has less to do than half its share is favoured, lest it run dry.
    fn reserved(&self, ratio: u64) -> u64 {
        let half = self.device_threshold.min(self.threshold) / 2;
        if self.device_dirty >= half {
            ratio
        } else if self.device_dirty > half / MOST_RESERVE {
            ratio * half / self.device_dirty
        } else {
            ratio * MOST_RESERVE
        }
    }
}

#[cfg(test)]
impl Position {
    /// So many pages of one device are dirty (rule writeback-limit-6).
    pub fn of_one_device(dirty: u64) -> Position {
        Position {
            threshold: 200_000,
            background: 100_000,
            hard_limit: 200_000,
            dirty,
            device_threshold: 200_000,
            device_dirty: dirty,
            average_bandwidth: 25_600,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_falls_from_the_freerun_ceiling_to_the_hard_limit_as_in_the_table() {
        let cases = [
            (150_000, 2294),
            (160_000, 1335),
            (175_000, 1023),
            (180_000, 991),
            (190_000, 744),
            (195_000, 451),
            (199_999, 1),
            (200_000, 0),
            (250_000, 0),
        ];
        for (dirty, expected) in cases {
            assert_eq!(Position::of_one_device(dirty).ratio(), expected, "{dirty}");
        }
    }

    #[test]
    fn a_device_with_little_to_do_is_favoured_up_to_eight_times() {
        let busy_elsewhere =
            |device_dirty| Position { device_dirty, ..Position::of_one_device(175_000) };
        assert_eq!(busy_elsewhere(20_000).ratio(), 8990);
        assert!(busy_elsewhere(0).ratio() <= 8 * 2 * 1024);
    }

    #[test]
    fn a_device_beyond_its_setpoint_is_slowed_as_in_the_table() {
        let slow = Position {
            device_threshold: 50_000,
            average_bandwidth: 10_000,
            ..Position::of_one_device(175_000)
        };
        assert_eq!(Position { device_dirty: 43_750, ..slow }.ratio(), 1023);
        assert_eq!(Position { device_dirty: 60_000, ..slow }.ratio(), 734);
        assert_eq!(Position { device_dirty: 199_000, ..slow }.ratio(), 1024 / 4);
    }

    #[test]
    fn a_device_is_over_its_share_only_when_all_are_over_the_threshold() {
        assert!(!Position::of_one_device(200_000).exceeds());
        assert!(Position::of_one_device(200_001).exceeds());
        assert!(!Position { device_dirty: 1, ..Position::of_one_device(200_001) }.exceeds());
    }
}
