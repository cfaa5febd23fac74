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
    /// Who wants them and waits. A thread is started for the first.
    asking: VecDeque<ContextId>,
    /// That thread is there.
    is_started: bool,
}

impl Finishing {
    /// This task of the kernel's starts others.
    pub fn set_starter(&mut self, starter: ContextId) {
        self.starter = Some(starter);
    }

    /// A task wants workers; false if there can be some. Until the first who asked goes on, whoever
    /// comes has a thread started as well, in turn (observed on 6.12: of three processes each has,
    /// and two end theirs at once).
    pub fn ask_for_workers(&mut self, task: ContextId) -> bool {
        let must_ask = self.starter.is_some() && !self.has_workers;
        if must_ask {
            self.asking.push_back(task);
        }
        must_ask
    }

    /// Who is to start a thread, if this task is the first who wants one.
    pub fn starter_for(&self, task: ContextId) -> Option<ContextId> {
        self.starter.filter(|_| self.asking.front() == Some(&task))
    }

    /// A thread was started: for whom.
    pub fn started(&mut self) -> Option<ContextId> {
        self.is_started = true;
        self.asking.front().copied()
    }

    /// Whether the thread is there that was started for a task.
    pub fn is_started_for(&self, task: ContextId) -> bool {
        self.is_started && self.asking.front() == Some(&task)
    }

    /// The first who asked goes on; answers with who is to start a thread for the next, if somebody
    /// waits.
    pub fn go_on(&mut self) -> Option<ContextId> {
        (self.has_workers, self.is_started) = (true, false);
        self.asking.pop_front();
        self.starter.filter(|_| !self.asking.is_empty())
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
        assert!(!finishing.ask_for_workers(first), "nobody starts any");
        finishing.set_starter(starter);
        assert!(finishing.ask_for_workers(first));
        assert_eq!(finishing.starter_for(first), Some(starter));
        assert_eq!(finishing.started(), Some(first));
        assert!(finishing.ask_for_workers(second), "the first has not gone on");
        assert_eq!(finishing.starter_for(second), None);
        assert!(finishing.is_started_for(first) && !finishing.is_started_for(second));
        assert_eq!(finishing.go_on(), Some(starter));
        assert!(!finishing.is_started_for(second));
        assert!(!finishing.ask_for_workers(first), "there are some");
        assert_eq!(finishing.started(), Some(second));
        assert_eq!(finishing.go_on(), None);
    }
}
