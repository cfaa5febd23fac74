//! Steps in which computing is charged, as a kernel does whose clock counts in ticks.

use base::{Duration, Instant};

/// The steps in which computing is charged.
#[derive(Debug)]
pub(super) struct Steps {
    length: Duration,
    /// How many are charged until now, or were nobody's.
    charged: u64,
}

impl Steps {
    /// Steps of this length.
    pub fn of(length: Duration) -> Steps {
        Steps { length, charged: 0 }
    }

    /// How long one is, in nanoseconds.
    pub fn nanos(&self) -> i64 {
        self.length.as_nanos() as i64
    }

    /// When the step that has begun is over.
    pub fn end(&self, now: Instant) -> Instant {
        let length = self.length.as_nanos();
        Instant::from_nanos((now.as_nanos() / length + 1) * length)
    }

    /// How long the steps were that ended since this was asked last, in nanoseconds.
    pub fn charge(&mut self, now: Instant) -> i64 {
        let length = self.length.as_nanos();
        let steps = self.charged.max(now.as_nanos() / length);
        let ended = steps - std::mem::replace(&mut self.charged, steps);
        (ended * length) as i64
    }
}
