//! What is left to do for asynchronous direct writes when their data are on the disk, and who does
//! it.

use super::Written;
use block::ContextId;
use std::collections::{BTreeMap, VecDeque};

/// What is left to do for a write whose data are on the disk.
#[derive(Clone, Debug)]
pub struct Finish {
    /// The write.
    pub written: Written,
    /// Its blocks come to say that they have their contents.
    pub converts: bool,
    /// What must be durable before it is done.
    pub durable: Option<Durable>,
}

/// What must be durable before a write is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// The data, and what finding them needs (O_DSYNC).
    Data,
    /// All that is known of the file as well (O_SYNC).
    All,
}

/// Operations that are to be finished, and who does.
#[derive(Default)]
pub struct Finishing {
    /// What is left to do for operations whose data are not on the disk yet.
    pending: BTreeMap<(ContextId, u64), Finish>,
    due: VecDeque<(ContextId, u64, Finish)>,
    /// Who had something to do last stands last, and is asked first.
    workers: Vec<ContextId>,
    /// Operations that are under way and will be due, or are not finished.
    begun: usize,
}

impl Finishing {
    /// An operation of a task is to be finished; the answer is whether there are too few workers.
    pub fn begin(&mut self, task: ContextId, number: u64, finish: Finish) -> bool {
        self.pending.insert((task, number), finish);
        self.begun += 1;
        self.workers.len() < self.begun
    }

    /// There is one more worker.
    pub fn add_worker(&mut self, worker: ContextId) {
        self.workers.push(worker);
    }

    /// The data of an operation are on the disk; false if nothing is left to do for it.
    pub fn is_due(&mut self, task: ContextId, number: u64) -> bool {
        let Some(finish) = self.pending.remove(&(task, number)) else { return false };
        self.due.push_back((task, number, finish));
        true
    }

    /// Workers, in the order in which they are asked.
    pub fn workers(&self) -> impl Iterator<Item = ContextId> {
        self.workers.iter().rev().copied()
    }

    /// What a worker does next: of which task and operation, and what.
    pub fn take(&mut self) -> Option<(ContextId, u64, Finish)> {
        self.due.pop_front()
    }

    /// An operation is finished.
    pub fn end(&mut self) {
        self.begun -= 1;
    }

    /// A worker has nothing more to do.
    pub fn rests(&mut self, worker: ContextId) {
        self.workers.retain(|it| *it != worker);
        self.workers.push(worker);
    }
}
