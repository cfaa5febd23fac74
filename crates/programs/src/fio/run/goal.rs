//! What a process looks for: the deepest queue that keeps a latency, or a steady rate.
//!
//! The rules of the search are those that fio 3.33 was seen to follow (`--debug=rate`): the depth
//! doubles while the latency is kept, then the interval between the deepest that kept it and the
//! shallowest that did not is halved; the depth found runs for one more window. With `latency_run`
//! it goes on, one deeper after three good windows.
//!
// Divergence: with group_reporting, steadiness is judged for each process, not for the group.

use base::{Duration, Instant};

use super::super::job::{LatencyTarget, Steady};

const SECOND: Duration = Duration::from_secs(1);
/// Hundred percent in the units of a percentile.
const ALL: u128 = 100_000_000;
/// Good windows in a row at one depth after which a deeper one is tried.
const GOOD_WINDOWS: u32 = 3;
/// fio counts bandwidth in KiB (assumed).
const KIB: u64 = 1024;

/// What comes of a look at the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Go on.
    GoOn,
    /// Go on at this depth.
    Depth(usize),
    /// The same depth once more, from an empty queue.
    FinalRun,
    /// The goal is reached.
    Reached,
}

/// The search for a depth.
pub(super) struct Search {
    target: LatencyTarget,
    deepest: usize,
    /// The deepest that kept the latency, or 1.
    low: usize,
    depth: usize,
    /// The shallowest that did not, or the deepest allowed.
    high: usize,
    since: Instant,
    kept: u64,
    missed: u64,
    good: u32,
    is_final: bool,
}

impl Search {
    pub fn new(target: LatencyTarget, deepest: usize, now: Instant) -> Search {
        Search {
            target,
            deepest,
            low: 1,
            depth: 1,
            high: deepest,
            since: now,
            kept: 0,
            missed: 0,
            good: 0,
            is_final: false,
        }
    }

    /// The depth that is tried, in the end the one that was found.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// A request took so long. One that was issued at another depth says nothing of this one.
    pub fn note(&mut self, issued: Instant, took: Duration) {
        if issued < self.since {
            return;
        }
        *(if took <= self.target.target { &mut self.kept } else { &mut self.missed }) += 1;
    }

    pub fn judge(&mut self, now: Instant) -> Verdict {
        let all = self.kept + self.missed;
        if all == 0 || now.saturating_since(self.since) < self.target.window {
            return Verdict::GoOn;
        }
        let is_good =
            u128::from(self.kept) * ALL >= u128::from(self.target.percentile) * u128::from(all);
        let before = self.depth;
        let was_final = std::mem::take(&mut self.is_final);
        (self.kept, self.missed, self.since) = (0, 0, now);
        if !is_good {
            self.go_down();
            return Verdict::Depth(self.depth);
        }
        self.go_up();
        match () {
            () if was_final => Verdict::Reached,
            () if self.depth == before && !self.target.run => {
                self.is_final = true;
                Verdict::FinalRun
            }
            () => Verdict::Depth(self.depth),
        }
    }

    fn go_up(&mut self) {
        self.good += 1;
        self.low = self.depth;
        if self.target.run && self.good >= GOOD_WINDOWS && self.high < self.deepest {
            self.high += 1;
            self.depth += 1;
            self.good = 0;
            return;
        }
        let next = match self.high == self.deepest {
            true => (self.depth * 2).min(self.deepest),
            false => self.low.midpoint(self.high),
        };
        if next != self.depth {
            self.good = 0;
        }
        self.depth = next;
    }

    fn go_down(&mut self) {
        self.good = 0;
        self.high = self.depth;
        if self.depth == self.low {
            self.low = (self.low - 1).max(1);
        }
        self.depth = self.low.midpoint(self.high);
        if self.depth == self.high {
            self.depth = self.low;
        }
    }
}

/// The watch over a rate that is to become steady.
pub(super) struct Watch {
    goal: Steady,
    /// When the second that is being counted is over.
    next: Instant,
    /// Nothing is collected before.
    begins: Instant,
    count: u64,
    /// Of the last seconds, the oldest to be overwritten next.
    seconds: Vec<u64>,
    oldest: usize,
}

impl Watch {
    pub fn new(goal: Steady, now: Instant) -> Watch {
        let begins = now.saturating_add(goal.ramp);
        let next = begins + SECOND;
        Watch { goal, next, begins, count: 0, seconds: Vec::new(), oldest: 0 }
    }

    /// When it judges next.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// A request is done.
    pub fn note(&mut self, at: Instant, bytes: u64) {
        if at >= self.begins {
            self.count += if self.goal.bandwidth { bytes } else { 1 };
        }
    }

    pub fn judge(&mut self, now: Instant) -> Verdict {
        while now >= self.next {
            let count = std::mem::take(&mut self.count);
            let window = (self.goal.duration.as_nanos() / SECOND.as_nanos()).max(2) as usize;
            let rate = if self.goal.bandwidth { count / KIB } else { count };
            if self.seconds.len() < window {
                self.seconds.push(rate);
            } else {
                self.seconds[self.oldest] = rate;
                self.oldest = (self.oldest + 1) % window;
            }
            self.next += SECOND;
            if self.seconds.len() == window && self.is_steady() {
                return Verdict::Reached;
            }
        }
        Verdict::GoOn
    }

    /// Whether the slope, or the largest deviation from the mean, is within the limit.
    fn is_steady(&self) -> bool {
        let n = self.seconds.len() as i128;
        let in_order = || {
            let (newer, older) = self.seconds.split_at(self.oldest);
            older.iter().chain(newer).map(|rate| i128::from(*rate))
        };
        let sum: i128 = in_order().sum();
        // The deviation or slope is `part / whole`.
        let (part, whole) = if self.goal.slope {
            let products: i128 = in_order().zip(0..).map(|(rate, at)| rate * at).sum();
            let (times, squares) = (n * (n - 1) / 2, (n - 1) * n * (2 * n - 1) / 6);
            ((n * products - times * sum).abs(), n * squares - times * times)
        } else {
            (in_order().map(|rate| (n * rate - sum).abs()).max().unwrap_or(0), n)
        };
        // Limits are in millionths, of one or of a percent of the mean.
        let limit = i128::from(self.goal.limit);
        if self.goal.percent {
            part * n * 100 * 1_000_000 < limit * whole * sum
        } else {
            part * 1_000_000 < limit * whole
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_millis(100);

    fn search(run: bool) -> Search {
        let target = LatencyTarget {
            target: Duration::from_millis(1),
            window: WINDOW,
            percentile: 90_000_000,
            run,
        };
        Search::new(target, 64, Instant::ZERO)
    }

    /// The depths that are tried, one a window, when those up to `most` keep the latency.
    fn depths(mut search: Search, most: usize, windows: usize) -> Vec<usize> {
        let mut tried = Vec::new();
        let mut now = Instant::ZERO;
        for _ in 0..windows {
            tried.push(search.depth());
            let took = Duration::from_millis(if search.depth() <= most { 1 } else { 2 });
            (0..10).for_each(|_| search.note(now, took));
            assert_eq!(search.judge(now), Verdict::GoOn);
            now += WINDOW;
            if search.judge(now) == Verdict::Reached {
                break;
            }
        }
        tried
    }

    #[test]
    fn the_depth_doubles_and_then_the_interval_is_halved() {
        let tried = depths(search(false), 11, 99);
        assert_eq!(tried, [1, 2, 4, 8, 16, 12, 10, 11, 11]);
        assert_eq!(depths(search(false), 99, 99), [1, 2, 4, 8, 16, 32, 64, 64]);
        assert_eq!(depths(search(false), 0, 4), [1, 1, 1, 1]);
    }

    #[test]
    fn a_search_that_goes_on_tries_deeper_after_three_good_windows() {
        let tried = depths(search(true), 9, 15);
        assert_eq!(tried, [1, 2, 4, 8, 16, 12, 10, 9, 9, 9, 10, 9, 9, 9, 10]);
    }

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
        let mut watch = Watch::new(goal, Instant::ZERO);
        (0..50).find(|second| {
            for _ in 0..rate(*second) {
                watch.note(Instant::ZERO + SECOND * *second, 4096);
            }
            watch.judge(Instant::ZERO + SECOND * (*second + 1)) == Verdict::Reached
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
}
