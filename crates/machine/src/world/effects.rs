//! Who goes on: notifying and waking on behalf of somebody, and what storage wants done with tasks.

use super::World;
use crate::cpus::State;
use crate::storage::Effect;
use crate::tasks::{KernelTask, Wait};
use block::{CgroupId, ContextId, Shape};

impl World {
    /// Sees to what storage wants done with tasks, on behalf of a context.
    pub fn apply(&mut self, by: ContextId, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Page(task, page) => self.wake_if(by, task, Wait::Page(page)),
                Effect::Journal(task) => self.wake_if(by, task, Wait::Journal),
                Effect::Notify(task) => self.notify_by(by, task),
                Effect::NotifyAtOnce(task) => self.notify(task),
            }
        }
    }

    /// Wakes tasks that waited for the journal or the log.
    pub fn wake_from_journal(&mut self, by: ContextId, tasks: Vec<ContextId>) {
        for task in tasks {
            self.wake_if(by, task, Wait::Journal);
        }
    }

    /// Tells the flusher of a group that it is wanted, now or some day.
    pub fn wake_flusher(&mut self, group: CgroupId) {
        let known = self.storage.flusher(group);
        let flusher = known.unwrap_or_else(|| self.spawn_flusher(group));
        if self.flusher_is_due(group) {
            self.notify(flusher);
        } else if self.flusher_rests(group) {
            self.arm_flusher(group, flusher);
        }
    }

    /// Whether the flusher of a group sleeps until somebody wants it, or until it looks.
    pub fn flusher_rests(&self, group: CgroupId) -> bool {
        let flusher = self.storage.flusher(group);
        flusher.is_some_and(|it| self.tasks.wait(it) == Wait::Notification)
    }

    /// Whether it is time for the flusher of a group to look, or somebody wants it to write.
    pub fn flusher_is_due(&mut self, group: CgroupId) -> bool {
        let now = self.tick();
        let writeback = self.storage.cache_mut().writeback_of(group);
        let is_wanted = writeback.is_asked || writeback.synced_for.is_some();
        is_wanted || writeback.wakes.is_some_and(|wakes| wakes <= now)
    }

    /// A flusher that sleeps wakes when it is time to look. Whoever makes something dirty sets the
    /// timer and does not wake it.
    pub fn arm_flusher(&mut self, group: CgroupId, flusher: ContextId) {
        let wakes = self.storage.cache_mut().writeback_of(group).wakes;
        if let Some(tick) = wakes.filter(|_| !self.clock.has_alarm(flusher)) {
            let at = self.start_of_tick(tick);
            self.clock.set_alarm(flusher, at);
        }
    }

    fn spawn_flusher(&mut self, group: CgroupId) -> ContextId {
        let number = self.storage.flushers() + 1;
        let flusher = self.spawn_kernel_task(KernelTask::Flusher(group, number));
        self.storage.add_flusher(group, flusher);
        flusher
    }

    /// The data of an operation are on the disk, and something is left to do for it.
    pub fn leave_to_finisher(&mut self, owner: ContextId, number: u64, by: ContextId) {
        if self.storage.files().finishing().is_due(owner, number) {
            self.wake_finisher(by);
        }
    }

    /// A worker that has nothing to do wakes if something is due and nobody works.
    fn wake_finisher(&mut self, by: ContextId) {
        if self.has_to_finish(by)
            && let Some(idle) = self.storage.files().finishing().next_idle()
            && self.tasks.wait(idle) == Wait::Notification
        {
            self.notify_by(by, idle);
        }
    }

    /// Whether something is due and no worker but perhaps this one works. One that was woken does
    /// not before it has the core (observed on 6.12.117).
    pub fn has_to_finish(&mut self, worker: ContextId) -> bool {
        let finishing = self.storage.files().finishing();
        let works = |it: ContextId| it != worker && self.cpus.state(it) == State::Running;
        finishing.has_due() && !finishing.busy().any(works)
    }

    /// A task falls asleep. If it is a worker, another one goes on with what is due.
    pub fn note_sleep_of_finisher(&mut self, context: ContextId) {
        if self.storage.format().is_some() && self.storage.files().finishing().is_busy(context) {
            self.wake_finisher(context);
        }
    }

    /// There are so many more workers that finish direct writes, and that have nothing to do.
    pub fn spawn_finishers(&mut self, count: usize) {
        for _ in 0..count {
            let worker = self.spawn_kernel_task(KernelTask::Finisher);
            self.storage.files().finishing().rests(worker);
        }
    }

    /// A worker is there; who waited for it goes on. The answer is whether somebody did.
    pub fn worker_started(&mut self, worker: ContextId) -> bool {
        let wanted_by = self.storage.files().finishing().started(worker);
        let is_wanted = wanted_by.is_some();
        wanted_by.into_iter().for_each(|task| self.wake_for_workers(worker, task));
        is_wanted
    }

    /// A thread for workers that finish direct writes is there: who waited for it goes on.
    pub fn thread_started(&mut self, thread: ContextId) {
        if let Some(task) = self.storage.files().first_workers().started(thread) {
            self.wake_for_workers(thread, task);
        }
    }

    /// It was woken, and has stopped if it is to: who waited for that goes on.
    pub fn thread_woken(&mut self, thread: ContextId) {
        if let Some(task) = self.storage.files().first_workers().stopped(thread) {
            self.wake_for_workers(thread, task);
        }
    }

    /// A task that waits for workers, or to have some started, goes on.
    pub fn wake_for_workers(&mut self, by: ContextId, task: ContextId) {
        self.wake_if(by, task, Wait::Workers);
    }

    /// Wakes a task that waits for this.
    fn wake_if(&mut self, by: ContextId, task: ContextId, wait: Wait) {
        if self.tasks.end_wait(task, wait) {
            self.wake_by(by, task);
        }
    }

    /// A task is given a word: it wakes from waiting for one, or does not fall asleep next time.
    pub fn notify(&mut self, context: ContextId) {
        if self.tasks.give_permit(context) {
            self.wake(context);
        }
    }

    /// The same on behalf of a context that still has something to do.
    pub fn notify_by(&mut self, by: ContextId, context: ContextId) {
        if self.tasks.give_permit(context) {
            self.wake_by(by, context);
        }
    }

    /// Wakes a task on behalf of a context that still has something to do.
    pub fn wake_by(&mut self, by: ContextId, context: ContextId) {
        match self.shape {
            Shape::Single if self.cpus.is_interrupt(by) => self.held_wakes.push(context),
            _ => self.wake(context),
        }
    }
}
