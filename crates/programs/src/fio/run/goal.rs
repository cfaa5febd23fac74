//! What a process looks for: the deepest queue that keeps a latency.
//!
//! The rules of the search are those that fio 3.33 was seen to follow (`--debug=rate`): the depth
//! doubles while the latency is kept, then the interval between the deepest that kept it and the
//! shallowest that did not is halved; the depth found runs for one more window. With `latency_run`
//! it goes on, one deeper after three good windows.

use base::{Duration, Instant};

use super::super::job::LatencyTarget;

/// Hundred percent in the units of a percentile.
const ALL: u128 = 100_000_000;
/// Good windows in a row at one depth after which a deeper one is tried.
const GOOD_WINDOWS: u32 = 3;

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
}
