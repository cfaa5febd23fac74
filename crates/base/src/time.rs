//! Instants and durations in nanoseconds, and the kernel's jiffies.
//!
//! `std::time::Instant` cannot be constructed, stored or replayed, so the project has its own.
//! Time starts at zero when a machine boots. Arithmetic that would leave the range of a `u64`
//! (584 years) is a bug and panics; subtraction of a later instant from an earlier one is a bug
//! too, unless it is asked for with [`Instant::saturating_since`].

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point in (virtual or real) time: nanoseconds since the machine booted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Duration(u64);

impl Instant {
    /// The moment the machine booted.
    pub const ZERO: Instant = Instant(0);
    /// Later than everything that happens; used as "never".
    pub const FAR_FUTURE: Instant = Instant(u64::MAX);

    /// The instant `nanos` nanoseconds after boot.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Nanoseconds since boot.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; panics when `earlier` is later.
    #[track_caller]
    pub fn since(self, earlier: Instant) -> Duration {
        match self.0.checked_sub(earlier.0) {
            Some(nanos) => Duration(nanos),
            None => panic!("{earlier} is not before {self}"),
        }
    }

    /// Time passed since `earlier`, zero when `earlier` is later.
    pub const fn saturating_since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// This instant plus `duration`, at most [`Instant::FAR_FUTURE`].
    pub const fn saturating_add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(duration.0))
    }

    /// The jiffies counter at this instant: whole ticks since boot.
    pub const fn jiffies(self, hz: Hz) -> Jiffies {
        Jiffies(self.0 / hz.tick().0)
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// Longer than everything that happens.
    pub const MAX: Duration = Duration(u64::MAX);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Duration(nanos)
    }

    /// `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Duration(micros * 1_000)
    }

    /// `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Duration(millis * 1_000_000)
    }

    /// `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Duration(secs * 1_000_000_000)
    }

    /// Length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Length in whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Length in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The difference, zero when `other` is longer.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, rhs: Duration) -> Instant {
        Instant(self.0.checked_add(rhs.0).expect("instant within 584 years of boot"))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, rhs: Duration) -> Instant {
        Instant(self.0.checked_sub(rhs.0).expect("instant not before boot"))
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, rhs: Duration) -> Duration {
        Duration(self.0.checked_add(rhs.0).expect("duration below 584 years"))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, rhs: Duration) -> Duration {
        Duration(self.0.checked_sub(rhs.0).expect("duration not negative"))
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, rhs: Duration) {
        *self = *self - rhs;
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, rhs: u64) -> Duration {
        Duration(self.0.checked_mul(rhs).expect("duration below 584 years"))
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    fn div(self, rhs: u64) -> Duration {
        Duration(self.0 / rhs)
    }
}

impl core::iter::Sum for Duration {
    fn sum<I: Iterator<Item = Duration>>(iter: I) -> Duration {
        iter.fold(Duration::ZERO, |total, next| total + next)
    }
}

impl fmt::Display for Instant {
    /// Seconds with nine decimals, as `blkparse` prints them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Display for Duration {
    /// The largest of ns, us, ms and s that leaves at least one whole unit, with three digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..1_000 => return write!(f, "{} ns", self.0),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let (whole, rest) = (self.0 / unit, self.0 % unit);
        match whole {
            0..10 => write!(f, "{whole}.{:02} {name}", rest * 100 / unit),
            10..100 => write!(f, "{whole}.{} {name}", rest * 10 / unit),
            _ => write!(f, "{whole} {name}"),
        }
    }
}

/// The frequency of the kernel's tick, in ticks per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hz(u16);

/// A count of ticks: a point on the tick counter or a number of ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Jiffies(pub u64);

impl Hz {
    /// The tick frequencies that Linux can be configured with.
    pub const CHOICES: [u16; 4] = [100, 250, 300, 1000];

    /// A frequency of `hz` ticks per second, if Linux can be configured with it.
    pub const fn new(hz: u16) -> Option<Hz> {
        match hz {
            100 | 250 | 300 | 1000 => Some(Hz(hz)),
            _ => None,
        }
    }

    /// Ticks per second.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The length of one tick.
    pub const fn tick(self) -> Duration {
        Duration(1_000_000_000 / self.0 as u64)
    }

    /// Milliseconds in jiffies, rounded up, as the kernel converts what is written to sysfs.
    pub const fn jiffies_from_millis(self, millis: u64) -> Jiffies {
        Jiffies((millis * self.0 as u64).div_ceil(1_000))
    }

    /// Jiffies in milliseconds, rounded down, as the kernel shows them in sysfs.
    pub const fn millis_from_jiffies(self, jiffies: Jiffies) -> u64 {
        jiffies.0 * 1_000 / self.0 as u64
    }

    /// The length of `jiffies` ticks.
    pub fn duration(self, jiffies: Jiffies) -> Duration {
        self.tick() * jiffies.0
    }
}

impl Add for Jiffies {
    type Output = Jiffies;
    fn add(self, rhs: Jiffies) -> Jiffies {
        Jiffies(self.0 + rhs.0)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn durations_print_with_three_digits() {
        let shown = |nanos| Duration::from_nanos(nanos).to_string();
        assert_eq!(shown(0), "0 ns");
        assert_eq!(shown(999), "999 ns");
        assert_eq!(shown(1_050), "1.05 us");
        assert_eq!(shown(8_000_000), "8.00 ms");
        assert_eq!(shown(48_300_000), "48.3 ms");
        assert_eq!(shown(123_456_789_000), "123 s");
    }

    #[test]
    fn instants_print_like_blkparse() {
        assert_eq!(Instant::from_nanos(1_000_000_042).to_string(), "1.000000042");
    }

    #[test]
    fn milliseconds_become_whole_ticks_rounded_up() {
        let hz = Hz::new(250).unwrap();
        assert_eq!(hz.jiffies_from_millis(125), Jiffies(32));
        assert_eq!(hz.jiffies_from_millis(500), Jiffies(125));
        assert_eq!(hz.millis_from_jiffies(Jiffies(31)), 124);
        assert_eq!(Instant::from_nanos(7_999_999).jiffies(hz), Jiffies(1));
    }

    #[test]
    #[should_panic(expected = "is not before")]
    fn an_interval_cannot_be_negative() {
        Instant::ZERO.since(Instant::from_nanos(1));
    }
}
