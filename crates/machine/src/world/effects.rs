//! Who goes on: notifying and waking on behalf of somebody, and what storage wants done with tasks.

use super::World;
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
        } else if self.tasks.wait(flusher) == Wait::Notification {
            self.arm_flusher(group, flusher);
        }
    }

    /// Whether it is time for the flusher of a group to look, or somebody wants it to write.
    pub fn flusher_is_due(&mut self, group: CgroupId) -> bool {
        let now = self.tick();
        let writeback = self.storage.cache_mut().writeback_of(group);
        writeback.is_asked || writeback.wakes.is_some_and(|wakes| wakes <= now)
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

    /// The data of an operation are on the disk, and something is left to do for it: a worker that
    /// has nothing to do finishes it.
    pub fn leave_to_finisher(&mut self, owner: ContextId, number: u64, by: ContextId) {
        let finishing = self.storage.files().finishing();
        if !finishing.is_due(owner, number) {
            return;
        }
        let idle = finishing.workers().find(|it| self.tasks.wait(*it) == Wait::Notification);
        if let Some(idle) = idle {
            self.notify_by(by, idle);
        }
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
