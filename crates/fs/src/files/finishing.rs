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
    /// Operations of each file that are under way and will be due, or are not finished.
    begun: BTreeMap<usize, usize>,
    /// Who waits until none of a file is.
    waiting: Vec<(usize, ContextId)>,
}

impl Finishing {
    /// An operation of a task is to be finished; the answer is whether there are too few workers.
    pub fn begin(&mut self, task: ContextId, number: u64, finish: Finish) -> bool {
        *self.begun.entry(finish.written.file).or_default() += 1;
        self.pending.insert((task, number), finish);
        self.workers.len() < self.begun.values().sum()
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

    /// An operation of a file is finished. Answers with who waits for that.
    pub fn end(&mut self, file: usize) -> Vec<ContextId> {
        let begun = self.begun.get_mut(&file).expect("it was begun");
        *begun -= 1;
        if *begun > 0 {
            return Vec::new();
        }
        self.begun.remove(&file);
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (goes_on, waiting): (Vec<_>, _) =
            waiting.partition(|(waits_for, _)| *waits_for == file);
        self.waiting = waiting;
        goes_on.into_iter().map(|(_, task)| task).collect()
    }

    /// Whether no operation of a file is left to be finished. If one is, a task waits for it.
    pub fn is_finished(&mut self, file: usize, task: ContextId) -> bool {
        let is_finished = !self.begun.contains_key(&file);
        if !is_finished && !self.waiting.contains(&(file, task)) {
            self.waiting.push((file, task));
        }
        is_finished
    }

    /// A worker has nothing more to do.
    pub fn rests(&mut self, worker: ContextId) {
        self.workers.retain(|it| *it != worker);
        self.workers.push(worker);
    }
}
