//! How the workers come to be that finish asynchronous direct requests: the first such request
//! after a mount waits for them.
//!
//! A thread must be started, and a lock lets one task at a time have that done. Whoever finds no
//! workers wants some, until the first one has his thread. Those who come too late have theirs
//! stopped, and need the lock for that once more. Who runs may take it before one who was woken for
//! it.
// observed: sched_switch and sched_wakeup of two to four processes of fio that begin together, on
// 6.1.192, 6.12.117 and 7.3.4

use block::ContextId;
use std::collections::{BTreeMap, VecDeque};

/// Whether there are workers, and who has them started.
#[derive(Default)]
pub struct FirstWorkers {
    are_there: bool,
    /// Who has the lock, and who waits for it.
    holder: Option<ContextId>,
    waiting: VecDeque<ContextId>,
    /// The thread that was started for the holder.
    thread: Option<ContextId>,
    /// Threads that are to stop, and who waits for that.
    stopping: BTreeMap<ContextId, ContextId>,
}

impl FirstWorkers {
    /// Whether there are workers.
    pub fn are_there(&self) -> bool {
        self.are_there
    }

    /// A task wants the lock; false if it has to wait.
    pub fn lock(&mut self, task: ContextId) -> bool {
        if self.holder.is_none() {
            self.holder = Some(task);
            self.waiting.retain(|it| *it != task);
        } else if self.holder != Some(task) && !self.waiting.contains(&task) {
            self.waiting.push_back(task);
        }
        self.holder == Some(task)
    }

    /// The lock is free; answers with who is woken for it.
    pub fn unlock(&mut self) -> Option<ContextId> {
        self.holder = None;
        self.waiting.front().copied()
    }

    /// A thread was started; answers with who waits for it.
    pub fn started(&mut self, thread: ContextId) -> Option<ContextId> {
        self.thread = Some(thread);
        self.holder
    }

    /// A thread was woken, and stops if it is to; answers with who waits for that.
    pub fn stopped(&mut self, thread: ContextId) -> Option<ContextId> {
        self.stopping.remove(&thread)
    }

    /// The thread that was started for the holder of the lock, once it is there.
    pub fn take_thread(&mut self) -> Option<ContextId> {
        self.thread.take()
    }

    /// There are workers; the answer is whether there were some.
    pub fn begin(&mut self) -> bool {
        std::mem::replace(&mut self.are_there, true)
    }

    /// A task has a thread stopped.
    pub fn stop(&mut self, thread: ContextId, task: ContextId) {
        self.stopping.insert(thread, task);
    }

    /// Whether a thread has not stopped yet.
    pub fn is_stopping(&self, thread: ContextId) -> bool {
        self.stopping.contains_key(&thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_finds_no_workers_wants_some_until_the_first_has_them() {
        let (first, second) = (ContextId(2), ContextId(3));
        let mut workers = FirstWorkers::default();
        assert!(!workers.are_there());
        assert!(workers.lock(first) && !workers.lock(second));
        assert_eq!(workers.started(ContextId(10)), Some(first));
        assert_eq!(workers.take_thread(), Some(ContextId(10)));
        assert!(!workers.begin(), "the first");
        assert_eq!(workers.stopped(ContextId(10)), None, "it stays");
        assert_eq!(workers.unlock(), Some(second));
        assert!(workers.are_there());
        assert!(workers.lock(second));
        assert_eq!(workers.started(ContextId(11)), Some(second));
        assert!(workers.begin(), "too late");
        assert_eq!(workers.unlock(), None);
        workers.stop(ContextId(11), second);
        assert!(workers.is_stopping(ContextId(11)));
        assert_eq!(workers.stopped(ContextId(11)), Some(second));
        assert!(!workers.is_stopping(ContextId(11)));
    }

    #[test]
    fn who_runs_may_take_the_lock_before_one_who_was_woken_for_it() {
        let (first, second, third) = (ContextId(1), ContextId(2), ContextId(3));
        let mut workers = FirstWorkers::default();
        assert!(workers.lock(first) && !workers.lock(second) && !workers.lock(second));
        assert_eq!(workers.unlock(), Some(second));
        assert!(workers.lock(third) && !workers.lock(second));
        assert_eq!(workers.unlock(), Some(second));
        assert!(workers.lock(second));
        assert_eq!(workers.unlock(), None);
    }
}
