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
    /// The task of the kernel's that starts others.
    starter: Option<ContextId>,
    /// There can be workers.
    has_workers: bool,
    /// Who has asked for them and waits, and whether what was asked for is there.
    asks: Option<(ContextId, bool)>,
    /// Who asks next.
    next: VecDeque<ContextId>,
}

/// What a task does before its asynchronous direct request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Nothing: there can be workers.
    Nothing,
    /// It tells this task so and waits for what it asked for.
    Asks(ContextId),
    /// It waits until it may ask.
    Waits,
}

impl Finishing {
    /// This task of the kernel's starts others.
    pub fn set_starter(&mut self, starter: ContextId) {
        self.starter = Some(starter);
    }

    /// A task wants workers. Whoever finds none asks for them, one after the other, even if there
    /// are some when it is their turn (observed on 6.12: of three processes each has kthreadd start
    /// a thread, and two end theirs at once).
    pub fn ask_for_workers(&mut self, task: ContextId, has_waited: bool) -> Ask {
        let Some(starter) = self.starter else { return Ask::Nothing };
        if self.has_workers && !has_waited {
            return Ask::Nothing;
        }
        if self.asks.is_some() {
            self.next.push_back(task);
            return Ask::Waits;
        }
        self.asks = Some((task, false));
        Ask::Asks(starter)
    }

    /// What was asked for is there: who waits for it.
    pub fn started(&mut self) -> Option<ContextId> {
        let (task, is_there) = self.asks.as_mut()?;
        *is_there = true;
        Some(*task)
    }

    /// Whether it is there, so that the task goes on.
    pub fn is_started(&self) -> bool {
        self.asks.is_some_and(|(_, is_there)| is_there)
    }

    /// Who has asked goes on: who may ask next.
    pub fn has_asked(&mut self) -> Option<ContextId> {
        (self.asks, self.has_workers) = (None, true);
        self.next.pop_front()
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_finds_no_workers_asks_for_them_in_turn() {
        let (starter, first, second) = (ContextId(1), ContextId(2), ContextId(3));
        let mut finishing = Finishing::default();
        assert_eq!(finishing.ask_for_workers(first, false), Ask::Nothing, "nobody starts any");
        finishing.set_starter(starter);
        assert_eq!(finishing.ask_for_workers(first, false), Ask::Asks(starter));
        assert_eq!(finishing.ask_for_workers(second, false), Ask::Waits);
        assert!(!finishing.is_started());
        assert_eq!(finishing.started(), Some(first));
        assert!(finishing.is_started());
        assert_eq!(finishing.has_asked(), Some(second));
        assert_eq!(finishing.ask_for_workers(second, true), Ask::Asks(starter));
        assert_eq!(finishing.started(), Some(second));
        assert_eq!(finishing.has_asked(), None);
        assert_eq!(finishing.ask_for_workers(first, false), Ask::Nothing);
    }
}
