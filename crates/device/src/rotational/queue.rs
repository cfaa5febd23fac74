//! The commands that wait for the arm, and which goes first: the one the head can reach soonest,
//! unless others have been passed over for too long. Those go in the order in which they came.

use base::{Duration, Instant, Sector};
use block::command::{Command, CommandOp};

use super::geometry::Place;
use super::mechanics::{Arm, Mechanics};

/// How the drive orders what waits.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// How many of the oldest commands are compared.
    pub window: usize,
    /// A command that has waited this long goes next, whatever else could go sooner.
    pub ageing: Duration,
}

impl Order {
    /// Whether a command that came at `arrived` has waited too long.
    pub fn is_overdue(&self, now: Instant, arrived: Instant) -> bool {
        now.saturating_since(arrived) >= self.ageing
    }
}

/// A command that needs the platters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub command: Command,
    pub arrived: Instant,
    /// The first sector that is needed from the platters.
    pub from: u64,
    pub place: Place,
    /// When the data of a write has come from the host.
    pub ready: Instant,
}

impl Waiting {
    /// The sector after the last one.
    pub fn end(&self) -> u64 {
        let Sector(start) = self.command.sector;
        start + u64::from(self.command.sectors.0)
    }
}

/// The waiting commands in the order in which they came into the drive.
pub(crate) struct Queue {
    waiting: Vec<Waiting>,
}

impl Queue {
    pub fn new(depth: usize) -> Queue {
        Queue { waiting: Vec::with_capacity(depth) }
    }

    /// Adds a command at its place; one that was taken out before keeps its age.
    pub fn insert(&mut self, waiting: Waiting) {
        let at = self.waiting.partition_point(|other| other.arrived <= waiting.arrived);
        self.waiting.insert(at, waiting);
    }

    /// When the oldest command came.
    pub fn oldest(&self) -> Option<Instant> {
        self.waiting.first().map(|waiting| waiting.arrived)
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes out the command that goes next.
    pub fn take_next(
        &mut self,
        now: Instant,
        order: &Order,
        mechanics: &Mechanics,
        arm: Arm,
    ) -> Option<Waiting> {
        let oldest = self.waiting.first()?;
        if self.waiting.len() == 1 || order.is_overdue(now, oldest.arrived) {
            return Some(self.waiting.remove(0));
        }
        let window = self.waiting.len().min(order.window);
        let phase = now.as_nanos() % mechanics.revolution;
        let (mut best, mut least) = (0, u64::MAX);
        for (index, waiting) in self.waiting[..window].iter().enumerate() {
            let is_write = waiting.command.op == CommandOp::Write;
            let moving = mechanics.moving(arm, &waiting.place, is_write);
            if moving < least {
                let time = moving + mechanics.wait(phase + moving, waiting.place.angle);
                if time < least {
                    (best, least) = (index, time);
                }
            }
        }
        Some(self.waiting.remove(best))
    }
}
