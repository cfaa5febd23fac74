//! The threads of a pool of workers (`kworker/u4:0`, …), and whose work they do.
//!
//! Who has something to do is a context; the thread it computes as is that of the pool which fell
//! asleep last, with what that one has missed of the core. A thread that is through with its work
//! goes on with what else there is, and one that comes too late finds nothing
//! (Documentation/core-api/workqueue.rst: unbound pools).
//!
// Observed on 6.12.117, sched_switch: the flusher waits as kworker/u4:2, what ends writing is done
// by u4:1 meanwhile, and by u4:2 when the flusher has nothing to do.

use block::ContextId;
use std::collections::{BTreeMap, VecDeque};

/// Threads that share work.
#[derive(Default)]
pub(crate) struct Pool {
    /// The thread of each member that has one.
    threads: BTreeMap<ContextId, Option<ContextId>>,
    /// Those that have nothing to do; the last fell asleep last.
    idle: Vec<Idle>,
    /// Who has something to do and no thread, first come first served.
    waiting: VecDeque<ContextId>,
    /// The member that has threads started, whether it does, and the one that was started.
    manager: Option<ContextId>,
    manages: bool,
    started: Option<ContextId>,
}

/// A thread that has nothing to do.
struct Idle {
    thread: ContextId,
    /// It has been woken and has not come yet.
    is_called: bool,
}

impl Pool {
    /// There is one more context that has something to do at times.
    pub fn add(&mut self, member: ContextId) {
        self.threads.insert(member, None);
    }

    /// There is one more thread, which is idle.
    pub fn add_idle(&mut self, thread: ContextId) {
        self.idle.push(Idle { thread, is_called: false });
    }

    /// There is one more thread, which runs.
    pub fn add_running(&mut self, thread: ContextId) {
        self.threads.insert(thread, Some(thread));
    }

    /// This context has threads started when none is idle.
    pub fn set_manager(&mut self, manager: ContextId) {
        self.threads.insert(manager, None);
        self.manager = Some(manager);
    }

    /// Whether a thread is to be started.
    pub fn lacks_thread(&self) -> bool {
        self.manages
    }

    /// A thread has been started; answers with who had that done.
    pub fn thread_started(&mut self, thread: ContextId) -> Option<ContextId> {
        self.started = Some(thread);
        self.manager
    }

    /// The thread that was started, once it is there: no other one is wanted any more.
    pub fn take_started(&mut self) -> Option<ContextId> {
        let started = self.started.take()?;
        self.manages = false;
        Some(started)
    }

    /// The thread of a context: a member has one while it has something to do, others are their
    /// own.
    pub fn thread_of(&self, context: ContextId) -> Option<ContextId> {
        self.threads.get(&context).copied().unwrap_or(Some(context))
    }

    /// A member has something to do that no thread does yet. The answer is who is to be woken.
    pub fn has_work(&mut self, member: ContextId) -> Option<ContextId> {
        self.waiting.push_back(member);
        self.call()
    }

    /// The thread that is to be woken because something is left to do: the last one, once.
    pub fn call(&mut self) -> Option<ContextId> {
        let last = self.idle.last_mut().filter(|_| !self.waiting.is_empty())?;
        let is_new = !std::mem::replace(&mut last.is_called, true);
        is_new.then_some(last.thread)
    }

    /// A thread has the core: whose work it does, if there is something to do.
    pub fn comes(&mut self, thread: ContextId) -> Option<ContextId> {
        match self.idle.iter().position(|it| it.thread == thread) {
            Some(place) => {
                self.idle.remove(place);
                self.manages(thread).or_else(|| self.next(thread))
            }
            None => {
                let mut members = self.threads.iter();
                let member = members.find(|(_, it)| **it == Some(thread));
                Some(member.map_or(thread, |(member, _)| *member))
            }
        }
    }

    /// A member has nothing to do any more: whose work its thread does next.
    pub fn rests(&mut self, member: ContextId) -> Option<ContextId> {
        let thread = self.threads.get_mut(&member)?.take()?;
        self.next(thread)
    }

    /// The context that has a thread started now, as the last one that was idle.
    fn manages(&mut self, thread: ContextId) -> Option<ContextId> {
        if !self.idle.is_empty() || self.waiting.is_empty() || self.manages {
            return None;
        }
        let manager = self.manager?;
        self.manages = true;
        self.threads.insert(manager, Some(thread));
        Some(manager)
    }

    fn next(&mut self, thread: ContextId) -> Option<ContextId> {
        let Some(next) = self.waiting.pop_front() else {
            self.idle.push(Idle { thread, is_called: false });
            return None;
        };
        self.threads.insert(next, Some(thread));
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSHER: ContextId = ContextId(1);
    const CONVERTER: ContextId = ContextId(2);

    const THREADS: [ContextId; 2] = [ContextId(10), ContextId(11)];

    fn pool() -> Pool {
        let mut pool = Pool::default();
        pool.add(FLUSHER);
        pool.add(CONVERTER);
        THREADS.into_iter().for_each(|thread| pool.add_idle(thread));
        pool
    }

    #[test]
    fn who_is_in_no_pool_is_its_own_thread() {
        let mut pool = pool();
        assert_eq!(pool.thread_of(ContextId(7)), Some(ContextId(7)));
        assert_eq!(pool.comes(ContextId(7)), Some(ContextId(7)));
        assert_eq!(pool.thread_of(FLUSHER), None);
    }

    #[test]
    fn the_thread_that_fell_asleep_last_works_next() {
        let mut pool = pool();
        let first = pool.has_work(FLUSHER).expect("one is idle");
        assert_eq!(pool.comes(first), Some(FLUSHER));
        let second = pool.has_work(CONVERTER).expect("another is idle");
        assert_ne!(second, first);
        assert_eq!(pool.comes(second), Some(CONVERTER));
        assert_eq!(pool.rests(CONVERTER), None);
        assert_eq!(pool.rests(FLUSHER), None);
        assert_eq!(pool.has_work(CONVERTER), Some(first));
    }

    #[test]
    fn a_thread_goes_on_with_what_waits_and_one_that_comes_late_finds_nothing() {
        let mut pool = pool();
        let first = pool.has_work(FLUSHER).expect("one is idle");
        pool.comes(first);
        let late = pool.has_work(CONVERTER).expect("another is idle");
        assert_eq!(pool.rests(FLUSHER), Some(CONVERTER));
        assert_eq!(pool.thread_of(CONVERTER), Some(first));
        assert_eq!(pool.comes(late), None);
        assert_eq!(pool.rests(CONVERTER), None);
        assert_eq!(pool.has_work(FLUSHER), Some(first));
    }

    #[test]
    fn a_thread_that_is_called_is_not_called_twice_but_calls_another() {
        let mut pool = pool();
        let called = pool.has_work(FLUSHER).expect("one is idle");
        assert_eq!(pool.has_work(CONVERTER), None);
        assert_eq!(pool.comes(called), Some(FLUSHER));
        let other = pool.call().expect("something is left");
        assert_eq!(pool.comes(other), Some(CONVERTER));
        assert_eq!(pool.call(), None);
    }

    #[test]
    fn the_last_idle_thread_has_another_started_and_others_work_meanwhile() {
        let manager = ContextId(3);
        let mut pool = pool();
        pool.set_manager(manager);
        let first = pool.has_work(FLUSHER).expect("one is idle");
        assert_eq!(pool.comes(first), Some(FLUSHER));
        assert!(!pool.lacks_thread());
        let last = pool.has_work(CONVERTER).expect("another is idle");
        assert_eq!(pool.comes(last), Some(manager));
        assert!(pool.lacks_thread());
        assert_eq!(pool.rests(FLUSHER), Some(CONVERTER));
        assert_eq!(pool.rests(CONVERTER), None);
        assert_eq!(pool.thread_started(ContextId(12)), Some(manager));
        assert_eq!(pool.take_started(), Some(ContextId(12)));
        pool.add_running(ContextId(12));
        assert_eq!(pool.rests(manager), None);
        assert_eq!(pool.has_work(FLUSHER), Some(last));
        assert_eq!(pool.rests(ContextId(12)), Some(FLUSHER));
        assert!(!pool.lacks_thread());
    }
}
