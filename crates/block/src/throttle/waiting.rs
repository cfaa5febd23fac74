//! Bios that wait in a group, by whom they came from (rule throttle-8).

use super::NodeId;
use crate::bio::{BioId, Direction};
use alloc::collections::VecDeque;

/// A bio that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub bio: BioId,
    /// What it counts for.
    pub bytes: u64,
    /// Its bytes count no more: it is what is left of one that was split.
    pub is_paid: bool,
}

/// What a bio waits for, where kernels have it wait for one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// For its bytes.
    Bytes,
    /// For its turn as one bio; without stages for both.
    Ios,
}

/// Bios that came from one child, or from tasks of the group itself.
#[derive(Debug)]
struct Source {
    from: NodeId,
    bytes: VecDeque<Waiter>,
    ios: VecDeque<Waiter>,
}

/// The bios of one direction that wait in a group.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    sources: VecDeque<Source>,
    in_bytes: u32,
    in_ios: u32,
}

impl Waiting {
    /// How many there are.
    pub fn count(&self) -> u32 {
        self.in_bytes + self.in_ios
    }

    /// Whether none waits at a stage.
    pub fn is_empty(&self, stage: Stage) -> bool {
        match stage {
            Stage::Bytes => self.in_bytes == 0,
            Stage::Ios => self.in_ios == 0,
        }
    }

    /// One more, behind others from there.
    pub fn push(&mut self, from: NodeId, stage: Stage, waiter: Waiter) {
        let index = match self.sources.iter().position(|it| it.from == from) {
            Some(index) => index,
            None => {
                let source = Source { from, bytes: VecDeque::new(), ios: VecDeque::new() };
                self.sources.push_back(source);
                self.sources.len() - 1
            }
        };
        let source = &mut self.sources[index];
        match stage {
            Stage::Bytes => (source.bytes.push_back(waiter), self.in_bytes += 1),
            Stage::Ios => (source.ios.push_back(waiter), self.in_ios += 1),
        };
    }

    /// Whose turn it is. Who only waits for its turn goes before who waits for bytes.
    pub fn first(&self) -> Option<(Stage, Waiter)> {
        let source = self.sources.front()?;
        let ios = source.ios.front().map(|it| (Stage::Ios, *it));
        ios.or_else(|| source.bytes.front().map(|it| (Stage::Bytes, *it)))
    }

    /// The first has its bytes, and goes on to wait for its turn.
    pub fn promote_first(&mut self) {
        let source = self.sources.front_mut().expect("somebody waits");
        let waiter = source.bytes.pop_front().expect("the first waits for bytes");
        source.ios.push_back(waiter);
        (self.in_bytes, self.in_ios) = (self.in_bytes - 1, self.in_ios + 1);
    }

    /// Takes the first, which does not wait for bytes. Others take turns with who it came from.
    pub fn pop(&mut self) -> Option<Waiter> {
        let source = self.sources.front_mut()?;
        let waiter = source.ios.pop_front()?;
        self.in_ios -= 1;
        let has_more = !source.ios.is_empty() || !source.bytes.is_empty();
        let source = self.sources.pop_front().expect("it was there");
        if has_more {
            self.sources.push_back(source);
        }
        Some(waiter)
    }
}

/// Bios of both directions.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub read: Waiting,
    pub write: Waiting,
}

impl Lists {
    /// Those of a direction.
    pub fn of(&mut self, direction: Direction) -> &mut Waiting {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
        }
    }

    /// How many wait, reads and writes.
    pub fn counts(&self) -> [u32; 2] {
        [self.read.count(), self.write.count()]
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.counts() == [0, 0]
    }
}
