//! The life of a request: when each step of it was, and how its time splits into layers.

use crate::layer::Layer;
use base::{Duration, Instant, Sector, Sectors};
use block::bio::BioId;
use block::{ContextId, DispatchReason, Flags, Op};

/// How sure it is that a scheduler withheld requests where nothing says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// For long nothing was issued though requests were queued, and the device had room, going by
    /// the most that it ever had.
    Low,
    /// The same, and the device had nothing to do; or the scheduler had said that it would wait.
    Medium,
    /// Both.
    High,
}

impl Confidence {
    /// The name used in reports and files.
    pub const fn name(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }
}

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
    /// When its submitter was told, where that is known.
    pub told: Option<Instant>,
    /// Its bios that are known by name, the first one first.
    pub bios: Vec<BioId>,
    /// Where its time from `queued` to `end()` went; the parts add up to that. Each layer is there
    /// at most once, or else they are in the order in which they happened, if that was asked for.
    pub layers: Vec<(Layer, Duration)>,
    /// Of [`Layer::Others`]: who they were, the longest first, and no more than a few. It counts
    /// for whoever was chosen last.
    pub others: Vec<(ContextId, Duration)>,
    /// Some of the time it was held is a guess, of which this is the weakest.
    pub guess: Option<Confidence>,
}

impl Life {
    /// That of no request, to be filled in.
    pub(crate) const fn blank() -> Life {
        Life {
            context: ContextId(0),
            op: Op::Read,
            flags: Flags::NONE,
            sector: Sector(0),
            sectors: Sectors(0),
            queued: Instant::ZERO,
            allocated: Instant::ZERO,
            inserted: None,
            issued: Instant::ZERO,
            completed: Instant::ZERO,
            merged: 0,
            reason: None,
            told: None,
            bios: Vec::new(),
            layers: Vec::new(),
            others: Vec::new(),
            guess: None,
        }
    }

    /// The same, with time counted from when a recording begins.
    pub fn as_if_begun(self, begin: Instant) -> Life {
        let since = |at: Instant| Instant::ZERO + at.saturating_since(begin);
        Life {
            queued: since(self.queued),
            allocated: since(self.allocated),
            inserted: self.inserted.map(since),
            issued: since(self.issued),
            completed: since(self.completed),
            told: self.told.map(since),
            ..self
        }
    }

    /// Q2C: from the first bio's entering to the end.
    pub fn total(&self) -> Duration {
        self.completed.saturating_since(self.queued)
    }

    /// When it is over: its submitter was told, or else the device was done.
    pub fn end(&self) -> Instant {
        self.told.map_or(self.completed, |told| told.max(self.completed))
    }

    /// The time in a layer; zero if it was not there.
    pub fn time_in(&self, layer: Layer) -> Duration {
        self.layers.iter().filter(|part| part.0 == layer).map(|part| part.1).sum()
    }

    /// What it does, in a word: `read`, `write`, `discard`, or `flush` if it has no sectors.
    pub fn kind(&self) -> &'static str {
        match self.op {
            _ if self.sectors.is_zero() => "flush",
            Op::Read => "read",
            Op::Write => "write",
            Op::Discard => "discard",
        }
    }

    /// D2C: how long the device had it.
    pub fn service(&self) -> Duration {
        self.completed.saturating_since(self.issued)
    }
}
