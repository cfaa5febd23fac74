//! Limits on what a guest may do, so that one that hangs does not take the caller with it.

use std::time::Duration as WallTime;

use base::{Duration, Instant};

use crate::error::RunError;

/// When a guest is given up. Neither limit changes what a guest does before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchdog {
    /// How long the guest may say nothing, in real time. A guest computes in no time at all of
    /// its own, so one whose programs spin without sleeping never comes back.
    pub silence: WallTime,
    /// How long the guest may live, in its own time.
    pub lifetime: Duration,
}

impl Default for Watchdog {
    /// A minute of silence, a day of life.
    fn default() -> Self {
        let (silence, lifetime) = (WallTime::from_secs(60), Duration::from_secs(86_400));
        Watchdog { silence, lifetime }
    }
}

impl Watchdog {
    pub(crate) fn check(&self, now: Instant) -> Result<(), RunError> {
        match now.saturating_since(Instant::ZERO) > self.lifetime {
            true => Err(RunError::Lifetime { lifetime: self.lifetime }),
            false => Ok(()),
        }
    }

    pub(crate) fn silent(&self, at: Option<Instant>) -> RunError {
        RunError::Silent { seconds: self.silence.as_secs(), at: at.unwrap_or(Instant::ZERO) }
    }
}
