//! Threads of the kernel that are started while it runs.

use super::World;
use crate::tasks::KernelTask;
use block::ContextId;

impl World {
    /// The workers of no core share threads.
    pub fn begin_pool(&mut self) {
        if !self.cpus.has_pool() {
            return;
        }
        let manager = self.spawn_kernel_task(KernelTask::Manager);
        self.cpus.pool().set_manager(manager);
        for _ in 0..self.guest.boot.workers {
            let thread = self.spawn_kernel_task(KernelTask::Worker);
            self.cpus.pool().add_idle(thread);
        }
    }

    /// The task that starts threads.
    pub fn starter(&mut self) -> ContextId {
        if let Some(starter) = self.starter {
            return starter;
        }
        let starter = self.spawn_kernel_task(KernelTask::Starter);
        *self.starter.insert(starter)
    }

    /// A thread is to be started.
    pub fn want_thread(&mut self, what: KernelTask) {
        self.wanted_threads.push_back(what);
        let starter = self.starter();
        self.notify(starter);
    }

    /// What the task that starts threads starts next.
    pub fn next_wanted_thread(&mut self) -> Option<KernelTask> {
        self.wanted_threads.pop_front()
    }

    /// A thread of the pool has been started, and whoever had that done goes on.
    pub fn worker_is_there(&mut self, thread: ContextId) {
        if let Some(manager) = self.cpus.pool().thread_started(thread) {
            self.wake_for_workers(thread, manager);
        }
    }
}
