//! `steadystate`: whether a rate is steady, and what was seen of it.
//!
//! The rules are those that fio 3.33 was seen to follow: a sample a second; over the last samples
//! the slope of the line through them, or the largest deviation from their mean, is less than the
//! limit. Bandwidth is in bytes a second. Processes that report as a group are judged as one.

use std::cell::RefCell;

use base::{Duration, Instant};

use super::job::Steady;

const SECOND: Duration = Duration::from_secs(1);
/// A limit is in millionths, of one or of a percent of the mean.
const MILLION: i128 = 1_000_000;

/// What was done in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Requests.
    pub requests: u64,
    /// Bytes that they moved.
    pub bytes: u64,
}

/// What was seen of a rate that is to become steady.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steadiness {
    /// What counts as steady.
    pub goal: Steady,
    /// It became steady.
    pub attained: bool,
    /// The last seconds, the oldest first: as many as the window has at most.
    pub seconds: Vec<Second>,
}

impl Steadiness {
    /// Of a watch that begins.
    pub fn new(goal: Steady) -> Steadiness {
        Steadiness { goal, attained: false, seconds: Vec::new() }
    }

    /// How many seconds are judged together.
    pub fn window(&self) -> usize {
        (self.goal.duration.as_nanos() / SECOND.as_nanos()).max(2) as usize
    }

    /// How much the rate that is judged rises in a second; 0 before the window is full.
    pub fn slope(&self) -> f64 {
        if self.goal.slope { self.off() } else { 0.0 }
    }

    /// The largest deviation from the mean; 0 before the window is full.
    pub fn deviation(&self) -> f64 {
        if self.goal.slope { 0.0 } else { self.off() }
    }

    /// What is held against the limit, in the limit's unit.
    pub fn criterion(&self) -> f64 {
        let mean = self.rates().sum::<i128>() as f64 / self.window() as f64;
        match self.goal.percent {
            true if mean > 0.0 => 100.0 * self.off() / mean,
            true => 0.0,
            false => self.off(),
        }
    }

    fn off(&self) -> f64 {
        let (part, whole) = self.fraction();
        part as f64 / whole as f64
    }

    fn rates(&self) -> impl Iterator<Item = i128> {
        let of = |second: &Second| match self.goal.bandwidth {
            true => second.bytes,
            false => second.requests,
        };
        self.seconds.iter().map(move |second| i128::from(of(second)))
    }

    /// The slope or the largest deviation, as part of a whole.
    fn fraction(&self) -> (i128, i128) {
        let n = self.seconds.len() as i128;
        if self.seconds.len() < self.window() {
            return (0, 1);
        }
        let sum: i128 = self.rates().sum();
        if !self.goal.slope {
            return (self.rates().map(|rate| (n * rate - sum).abs()).max().unwrap_or(0), n);
        }
        let products: i128 = self.rates().zip(0..).map(|(rate, at)| rate * at).sum();
        let (times, squares) = (n * (n - 1) / 2, (n - 1) * n * (2 * n - 1) / 6);
        (n * products - times * sum, n * squares - times * times)
    }

    fn is_steady(&self) -> bool {
        let (part, whole) = self.fraction();
        let (part, limit) = (part.abs(), i128::from(self.goal.limit));
        let is_full = self.seconds.len() == self.window();
        is_full
            && if self.goal.percent {
                let sum: i128 = self.rates().sum();
                part * self.seconds.len() as i128 * 100 * MILLION < limit * whole * sum
            } else {
                part * MILLION < limit * whole
            }
    }
}

/// The watch over the rate of a process, or of those that report as a group.
#[derive(Debug)]
pub(super) struct Watch(RefCell<State>);

#[derive(Debug)]
struct State {
    /// When the second that is being counted is over.
    next: Instant,
    /// Nothing is collected before.
    begins: Instant,
    count: Second,
    seen: Steadiness,
}

impl Watch {
    /// Over a job that begins now.
    pub fn new(goal: Steady, now: Instant) -> Watch {
        let begins = now.saturating_add(goal.ramp);
        let next = begins + SECOND;
        let seen = Steadiness::new(goal);
        Watch(RefCell::new(State { next, begins, count: Second::default(), seen }))
    }

    /// When it judges next.
    pub fn next(&self) -> Instant {
        self.0.borrow().next
    }

    /// What it has seen.
    pub fn seen(&self) -> Steadiness {
        self.0.borrow().seen.clone()
    }

    /// A request is done.
    pub fn note(&self, at: Instant, bytes: u64) {
        let state = &mut *self.0.borrow_mut();
        if at >= state.begins {
            state.count.requests += 1;
            state.count.bytes += bytes;
        }
    }

    /// Whether the rate has become steady by now.
    pub fn judge(&self, now: Instant) -> bool {
        let state = &mut *self.0.borrow_mut();
        while now >= state.next && !state.seen.attained {
            if state.seen.seconds.len() == state.seen.window() {
                state.seen.seconds.remove(0);
            }
            state.seen.seconds.push(std::mem::take(&mut state.count));
            state.next += SECOND;
            state.seen.attained = state.seen.is_steady();
        }
        state.seen.attained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(slope: bool, limit: u64, percent: bool) -> Steady {
        Steady {
            bandwidth: false,
            slope,
            limit,
            percent,
            duration: Duration::from_secs(5),
            ramp: Duration::from_secs(2),
        }
    }

    /// The second after which the rate counts as steady.
    fn becomes_steady(goal: Steady, rate: impl Fn(u64) -> u64) -> Option<u64> {
        let watch = Watch::new(goal, Instant::ZERO);
        (0..50).find(|second| {
            for _ in 0..rate(*second) {
                watch.note(Instant::ZERO + SECOND * *second, 4096);
            }
            watch.judge(Instant::ZERO + SECOND * (*second + 1))
        })
    }

    #[test]
    fn a_constant_rate_is_steady_after_ramp_and_window() {
        for slope in [false, true] {
            assert_eq!(becomes_steady(steady(slope, 1, false), |_| 100), Some(6));
        }
    }

    #[test]
    fn a_growing_rate_is_steady_when_it_stops_to_grow() {
        let grows = |second: u64| 100 + 10 * second.min(20);
        assert_eq!(becomes_steady(steady(true, 10_000_001, false), grows), Some(6));
        assert_eq!(becomes_steady(steady(true, 1_000_000, false), grows), Some(24));
        // Within 1 % of a mean of 298: the largest deviation is 8 one second before.
        assert_eq!(becomes_steady(steady(false, 1_000_000, true), grows), Some(24));
        assert_eq!(becomes_steady(steady(false, 3_000_000, true), grows), Some(23));
    }

    /// What fio 3.33 said of seconds that it listed itself.
    #[test]
    fn figures_are_those_that_fio_prints() {
        let seen = |goal: Steady, rates: &[u64]| {
            let goal = Steady { duration: SECOND * rates.len() as u64, ..goal };
            let second = |rate: &u64| Second { requests: *rate, bytes: *rate };
            Steadiness { goal, attained: false, seconds: rates.iter().map(second).collect() }
        };
        let fell = seen(steady(true, 30_000_000, true), &[9534, 9630, 9574, 9526]);
        assert_eq!(fell.slope(), -8.0);
        assert_eq!(format!("{:.6}", fell.criterion()), "-0.083630");
        let even = seen(steady(false, 10, true), &[9630, 9605, 9768, 9791]);
        assert_eq!(even.deviation(), 93.5);
        assert_eq!(format!("{:.6}", even.criterion()), "0.964067");
        let bytes = Steady { bandwidth: true, ..steady(false, 0, false) };
        let moved = seen(bytes, &[39_221_557, 39_165_952, 39_209_257, 39_292_928]);
        assert_eq!((moved.deviation(), moved.criterion()), (70_504.5, 70_504.5));
    }

    #[test]
    fn a_window_that_is_not_full_has_no_figures() {
        let seen = Steadiness {
            seconds: vec![Second { requests: 5, bytes: 5 }],
            ..Steadiness::new(steady(false, 1, false))
        };
        assert_eq!((seen.deviation(), seen.slope(), seen.criterion()), (0.0, 0.0, 0.0));
    }
}
