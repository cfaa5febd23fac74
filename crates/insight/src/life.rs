//! The life of a request: when each step of it was, and how its time splits into layers.

use crate::layer::Layer;
use base::{Duration, Instant, Sector, Sectors};
use block::{ContextId, DispatchReason, Flags, Op};

/// A request that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// The task that allocated it: who asks.
    pub context: ContextId,
    /// What it does.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector.
    pub sector: Sector,
    /// Length, merged bios included.
    pub sectors: Sectors,
    /// Q: its first bio entered the block layer.
    pub queued: Instant,
    /// G: it was allocated.
    pub allocated: Instant,
    /// I: it was given to the scheduler; nothing if it passed the scheduler by.
    pub inserted: Option<Instant>,
    /// D: the device got it for the last time.
    pub issued: Instant,
    /// C: the device was done with it.
    pub completed: Instant,
    /// Bios in it besides the first.
    pub merged: u32,
    /// Why the scheduler chose it, where that is known.
    pub reason: Option<DispatchReason>,
    /// Where its time from `queued` to `completed` went; the parts add up to that, each layer at
    /// most once.
    pub layers: Vec<(Layer, Duration)>,
}

impl Life {
    /// Q2C: from the first bio's entering to the end.
    pub fn total(&self) -> Duration {
        self.completed.saturating_since(self.queued)
    }

    /// D2C: how long the device had it.
    pub fn service(&self) -> Duration {
        self.completed.saturating_since(self.issued)
    }
}
