//! When a kernel's timers go off: the farther ahead, the coarser.
//!
//! Ticks are counted from the start of what the caller times; the wheel knows how long the machine
//! had been up by then, for its slots lie at multiples of the kernel's own counter.

use crate::Hz;

/// The counter of ticks begins so many seconds before it overflows (observed on 6.12).
const BEFORE_OVERFLOW: u64 = 300;
/// Where it overflows.
const OVERFLOW: u64 = 1 << 32;
/// A timer this many ticks ahead is late by up to its step (observed on 6.12: 5 s and 30 s with
/// HZ=250).
const VERY_FAR: u64 = 4096;
const LARGE_STEP: u64 = 512;
const FAR: u64 = 512;
const STEP: u64 = 64;
const NEAR: u64 = 64;
const SMALL_STEP: u64 = 8;

/// The timer wheel of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerWheel {
    hz: Hz,
    /// The counter of ticks at tick zero.
    origin: u64,
    /// Ticks from the boot to tick zero.
    booted: u64,
}

impl TimerWheel {
    /// That of a machine with this rate of ticks which has been up for so many seconds at tick
    /// zero.
    pub fn new(hz: Hz, uptime: u64) -> TimerWheel {
        let per_second = u64::from(hz.get());
        TimerWheel {
            hz,
            origin: OVERFLOW + uptime * per_second - BEFORE_OVERFLOW * per_second,
            booted: uptime * per_second,
        }
    }

    /// The rate of ticks.
    pub fn hz(&self) -> Hz {
        self.hz
    }

    /// Ticks from the boot to tick zero.
    pub fn booted(&self) -> u64 {
        self.booted
    }

    /// What the kernel's own counter says at a tick.
    pub fn counter(&self, tick: u64) -> u64 {
        self.origin + tick
    }

    /// When a timer set at a tick for so many ticks later goes off.
    /// Observed on 6.12: the flusher wakes at multiples of 64 ticks.
    pub fn after(&self, now: u64, ticks: u64) -> u64 {
        let step = match ticks {
            VERY_FAR.. => LARGE_STEP,
            FAR.. => STEP,
            NEAR.. => SMALL_STEP,
            _ => 1,
        };
        let at = now + ticks + self.origin;
        (at + step) / step * step - self.origin
    }

    /// When a timer goes off that is set for so many seconds, rounded up to whole ones.
    /// Observed on 6.12: the commits of jbd2.
    pub fn at_second(&self, now: u64, seconds: u64) -> u64 {
        let hz = u64::from(self.hz.get());
        let at = (self.origin + now + seconds * hz).next_multiple_of(hz) - self.origin;
        self.after(now, at - now)
    }

    /// When a timer goes off that is set for so many seconds each time it has, the first time at a
    /// tick after the boot. Observed on 6.12: the worker of XFS's log.
    pub fn of_period(&self, last: Option<u64>, first: u64, seconds: u64) -> u64 {
        let period = seconds * u64::from(self.hz.get());
        match last {
            Some(last) => self.after(last, period),
            // Counted from tick zero, that was before.
            None => self.after(0, first + period - self.booted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wheel(uptime: u64) -> TimerWheel {
        TimerWheel::new(Hz::new(250).unwrap(), uptime)
    }

    #[test]
    fn a_look_for_late_requests_follows_the_one_before_as_observed() {
        // The counter of ticks is at 4294893569 and 4294895138 when the timer is set.
        let booted = (1 << 32) - 75_000;
        for (set, fires) in [(4_294_893_569, 4_294_895_104), (4_294_895_138, 4_294_896_704)] {
            assert_eq!(wheel(0).after(set - booted, 1506), fires - booted);
        }
    }

    #[test]
    fn the_flusher_wakes_at_the_ticks_that_were_observed() {
        // Jobs begin 4 s after the boot: 9.184 s, 12.512 s and, dirtied at 24 s, 29.152 s.
        let timer = |now| wheel(4).after(now, 1250);
        assert_eq!(timer(0) + 1000, 9_184 / 4);
        assert_eq!(timer(825) + 1000, 12_512 / 4);
        assert_eq!(timer(5000) + 1000, 29_152 / 4);
    }

    #[test]
    fn the_worker_of_xfs_comes_at_the_ticks_that_were_observed() {
        let wheel = wheel(12);
        let first = wheel.of_period(None, 2, 30);
        let second = wheel.of_period(Some(first), 2, 30);
        let third = wheel.of_period(Some(second), 2, 30);
        assert_eq!([first, second, third].map(|it| (it + 3000) * 4), [31_712, 62_432, 93_152]);
    }

    #[test]
    fn transactions_are_committed_at_the_ticks_that_were_observed() {
        // Milliseconds after the boot: the first handle, and the commit.
        let seen = [
            (12_608, 17_888),
            (23_980, 29_920),
            (35_352, 40_928),
            (46_724, 51_936),
            (58_096, 63_968),
            (69_472, 74_976),
            (80_848, 87_008),
            (92_224, 98_016),
            (103_604, 109_024),
        ];
        for (start, commit) in seen {
            assert_eq!(wheel(0).at_second(start / 4, 5), commit / 4, "{start}");
        }
    }
}
