//! The commands that wait for the arm, and which goes first: the one the head can reach soonest,
//! unless another has been passed over for too long.

use base::{Duration, Instant, Sector};
use block::command::Command;

use super::geometry::Place;
use super::mechanics::{Arm, Mechanics};

/// How the drive orders what waits.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// How many of the oldest commands are compared.
    pub window: usize,
    /// A command that has waited this long goes next.
    pub ageing: Duration,
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

/// The waiting commands in the order in which they came.
pub(crate) struct Queue {
    waiting: Vec<Waiting>,
}

impl Queue {
    pub fn new(depth: usize) -> Queue {
        Queue { waiting: Vec::with_capacity(depth) }
    }

    pub fn push(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// Puts back a command that was taken out too early, as the oldest.
    pub fn put_back(&mut self, waiting: Waiting) {
        self.waiting.insert(0, waiting);
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
        is_write: impl Fn(&Waiting) -> bool,
    ) -> Option<Waiting> {
        let oldest = self.waiting.first()?;
        if self.waiting.len() == 1 || now.saturating_since(oldest.arrived) >= order.ageing {
            return Some(self.waiting.remove(0));
        }
        let window = self.waiting.len().min(order.window);
        let phase = now.as_nanos() % mechanics.revolution;
        let (mut best, mut least) = (0, u64::MAX);
        for (index, waiting) in self.waiting[..window].iter().enumerate() {
            let moving = mechanics.moving(arm, &waiting.place, is_write(waiting));
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
