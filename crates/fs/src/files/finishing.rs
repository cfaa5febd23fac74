//! What is left to do for asynchronous direct writes when their data are on the disk, and who does
//! it: workers of one pool.
//!
//! One works at a time. When it falls asleep with something left to do, the one wakes that has had
//! nothing to do for the shortest time. The last of those has one more started before it works.
// observed on 6.12.117: sched_wakeup and sched_switch while fio writes with libaio, iodepth=16 and
// sync=dsync on ext4

use super::Written;
use block::ContextId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Workers that a pool keeps however little there is to do.
// observed on 6.12.117: kworker/0:0 and kworker/0:1, after the boot
const POOL: usize = 2;

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
    /// Workers that have nothing to do. Who had something last stands last, and is asked first.
    idle: Vec<ContextId>,
    /// Workers that finish something, or sleep meanwhile.
    busy: BTreeSet<ContextId>,
    /// Who waits for one more worker.
    wanted_by: Option<ContextId>,
    /// That one, when it is there.
    started: Option<ContextId>,
    /// Operations of each file that are under way and will be due, or are not finished.
    begun: BTreeMap<usize, usize>,
    /// Who waits until none of a file is.
    waiting: Vec<(usize, ContextId)>,
}

impl Finishing {
    /// An operation of a task is to be finished.
    pub fn begin(&mut self, task: ContextId, number: u64, finish: Finish) {
        *self.begun.entry(finish.written.file).or_default() += 1;
        self.pending.insert((task, number), finish);
    }

    /// How many workers are to be there before the first operation is finished.
    pub fn lacking(&self) -> usize {
        if self.idle.is_empty() && self.busy.is_empty() { POOL } else { 0 }
    }

    /// The data of an operation are on the disk; false if nothing is left to do for it.
    pub fn is_due(&mut self, task: ContextId, number: u64) -> bool {
        let Some(finish) = self.pending.remove(&(task, number)) else { return false };
        self.due.push_back((task, number, finish));
        true
    }

    /// Whether something is due.
    pub fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Who is asked next, if anybody has nothing to do.
    pub fn next_idle(&self) -> Option<ContextId> {
        self.idle.last().copied()
    }

    /// Whether a task is a worker that finishes something.
    pub fn is_busy(&self, task: ContextId) -> bool {
        self.busy.contains(&task)
    }

    /// Workers that finish something.
    pub fn busy(&self) -> impl Iterator<Item = ContextId> {
        self.busy.iter().copied()
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

    /// A worker has woken to do something.
    pub fn wakes(&mut self, worker: ContextId) {
        self.idle.retain(|it| *it != worker);
    }

    /// A worker begins.
    pub fn works(&mut self, worker: ContextId) {
        self.busy.insert(worker);
    }

    /// A worker has nothing more to do.
    pub fn rests(&mut self, worker: ContextId) {
        self.wakes(worker);
        self.busy.remove(&worker);
        self.idle.push(worker);
    }

    /// A worker wants one more to be started.
    pub fn want(&mut self, worker: ContextId) {
        self.wanted_by = Some(worker);
    }

    /// One more is there. Answers with who waits for it.
    pub fn started(&mut self, worker: ContextId) -> Option<ContextId> {
        let wanted_by = self.wanted_by.take()?;
        self.started = Some(worker);
        Some(wanted_by)
    }

    /// The worker that was started, for who has waited for it.
    pub fn take_started(&mut self) -> Option<ContextId> {
        self.started.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_had_something_to_do_last_is_asked_first() {
        let mut finishing = Finishing::default();
        assert_eq!(finishing.lacking(), 2);
        let [first, second] = [1, 2].map(ContextId);
        finishing.rests(first);
        finishing.rests(second);
        assert_eq!((finishing.lacking(), finishing.next_idle()), (0, Some(second)));
        finishing.wakes(second);
        finishing.works(second);
        assert!(finishing.is_busy(second));
        assert_eq!(finishing.next_idle(), Some(first));
        finishing.rests(second);
        assert!(!finishing.is_busy(second));
        assert_eq!(finishing.next_idle(), Some(second));
    }

    #[test]
    fn the_last_one_waits_for_one_more() {
        let mut finishing = Finishing::default();
        let [last, more] = [1, 2].map(ContextId);
        assert_eq!(finishing.started(more), None, "nobody has asked");
        finishing.want(last);
        assert_eq!(finishing.started(more), Some(last));
        assert_eq!((finishing.take_started(), finishing.take_started()), (Some(more), None));
    }

    #[test]
    fn who_waits_for_a_file_goes_on_when_all_of_it_is_finished() {
        let mut finishing = Finishing::default();
        let written = |file| Written { file, blocks: 0..1, size: 4096 };
        let finish = |file| Finish { written: written(file), converts: true, durable: None };
        let [writer, waits] = [1, 2].map(ContextId);
        finishing.begin(writer, 1, finish(7));
        finishing.begin(writer, 2, finish(7));
        assert!(finishing.is_finished(8, waits) && !finishing.is_finished(7, waits));
        assert_eq!(finishing.end(7), []);
        assert_eq!(finishing.end(7), [waits]);
        assert!(finishing.is_finished(7, waits));
    }
}
