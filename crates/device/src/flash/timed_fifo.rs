//! Things that finish in the order in which they began: cheaper than an agenda.

use std::collections::VecDeque;

use base::Instant;

/// A first-in-first-out queue of things with times that never go back.
pub(super) struct TimedFifo<T> {
    items: VecDeque<(Instant, T)>,
    /// When the first of them is due: that is asked for far more often than it changes.
    next_at: Instant,
}

impl<T> TimedFifo<T> {
    pub fn new() -> TimedFifo<T> {
        TimedFifo { items: VecDeque::new(), next_at: Instant::FAR_FUTURE }
    }

    pub fn push(&mut self, at: Instant, item: T) {
        debug_assert!(self.items.back().is_none_or(|(last, _)| *last <= at), "order of times");
        if self.items.is_empty() {
            self.next_at = at;
        }
        self.items.push_back((at, item));
    }

    /// When the next thing is due; [`Instant::FAR_FUTURE`] when there is none.
    pub fn next_at(&self) -> Instant {
        self.next_at
    }

    /// When the last thing is due; [`Instant::ZERO`] when there is none.
    pub fn last_at(&self) -> Instant {
        self.items.back().map_or(Instant::ZERO, |(at, _)| *at)
    }

    pub fn pop(&mut self) -> Option<(Instant, T)> {
        let first = self.items.pop_front();
        self.next_at = self.items.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
        first
    }
}
