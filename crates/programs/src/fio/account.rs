//! What a process of fio counts that no event tells: how many requests it hands over and collects
//! at a time, and a line of its logs for each request.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use base::{Duration, Instant};

use super::job::{Direction, Logs};
use super::steady::{Steadiness, Watch};

/// Batches of so many at most are counted together, and larger ones.
pub const BATCHES: [usize; 6] = [0, 4, 8, 16, 32, 64];

/// Logs have lines for so many requests of a process at most: memory holds them until the end.
pub const MOST_SAMPLES: usize = 1 << 21;

/// How often batches of each size were handled; see [`BATCHES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batches(pub [u64; BATCHES.len() + 1]);

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When, from the start of the process.
    pub at: Duration,
    /// From building it to its submission, where that is not part of a call.
    pub submission: Option<Duration>,
    /// From there to its end.
    pub completion: Duration,
    /// What it did.
    pub direction: Direction,
    /// How much it moved.
    pub bytes: u64,
    /// Where in its file.
    pub offset: u64,
    /// Its priority, as the kernel is given it.
    pub priority: u16,
}

/// The account of one process.
#[derive(Debug)]
pub struct Account {
    /// What its results are called.
    pub label: String,
    /// Its number among all processes, from 0.
    pub number: u32,
    /// The logs that it writes.
    pub logs: Logs,
    /// How many requests it handed over at a time.
    pub submitted: Cell<Batches>,
    /// How many it collected at a time.
    pub completed: Cell<Batches>,
    /// How deep its queue was at most in the end.
    pub depth: Cell<usize>,
    watch: OnceCell<Rc<Watch>>,
    samples: RefCell<Vec<Sample>>,
    start: Instant,
    /// There was no room for a request.
    is_cut: Cell<bool>,
}

impl Batches {
    /// With so many more batches of `size`.
    fn with(mut self, size: usize, times: u64) -> Batches {
        self.0[BATCHES.partition_point(|most| *most < size)] += times;
        self
    }

    /// Those of two together.
    pub fn and(mut self, other: Batches) -> Batches {
        self.0.iter_mut().zip(other.0).for_each(|(mine, others)| *mine += others);
        self
    }
}

impl Account {
    /// Of a process that begins.
    pub(super) fn new(label: &str, number: u32, logs: Logs, start: Instant) -> Account {
        Account {
            label: label.to_string(),
            number,
            logs,
            submitted: Cell::default(),
            completed: Cell::default(),
            depth: Cell::new(0),
            watch: OnceCell::new(),
            samples: RefCell::default(),
            start,
            is_cut: Cell::new(false),
        }
    }

    /// What its logs are made of, in the order in which it came.
    pub fn samples(&self) -> Vec<Sample> {
        self.samples.borrow().clone()
    }

    /// What was seen of the rate of the process, or of its group, if that is to become steady.
    pub fn steadiness(&self) -> Option<Steadiness> {
        self.watch.get().map(|watch| watch.seen())
    }

    /// Its rate is watched.
    pub(super) fn watched_by(&self, watch: Rc<Watch>) {
        self.watch.get_or_init(|| watch);
    }

    /// It handed over so many at once.
    pub(super) fn submit(&self, size: usize) {
        self.submitted.set(self.submitted.get().with(size, 1));
    }

    /// It collected so many at once.
    pub(super) fn complete(&self, size: usize) {
        self.completed.set(self.completed.get().with(size, 1));
    }

    /// It made so many calls.
    pub(super) fn call(&self, times: u64) {
        self.submitted.set(self.submitted.get().with(1, times));
        self.completed.set(self.completed.get().with(1, times));
    }

    /// Whether somebody wants to know of each request.
    pub(super) fn is_logged(&self) -> bool {
        self.logs.are_written()
    }

    /// A request was done then. Whether it is the first one for which there is no room.
    pub(super) fn log(&self, at: Instant, sample: Sample) -> bool {
        let at = at.saturating_since(self.start);
        let mut samples = self.samples.borrow_mut();
        let has_room = samples.len() < MOST_SAMPLES;
        if has_room {
            samples.push(Sample { at, ..sample });
        }
        let is_first = !has_room && !self.is_cut.get();
        self.is_cut.set(!has_room);
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_counted_by_their_size() {
        let sizes = [0, 1, 4, 5, 8, 9, 64, 65, 1000];
        let counted = sizes.iter().fold(Batches::default(), |all, size| all.with(*size, 1));
        assert_eq!(counted.0, [1, 2, 2, 1, 0, 1, 2]);
        assert_eq!(counted.and(counted).0[0], 2);
    }
}
