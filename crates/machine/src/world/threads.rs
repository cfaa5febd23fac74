//! Threads of the kernel that are started while it runs.

use super::World;
use crate::tasks::KernelTask;
use block::ContextId;

/// Threads of the pool that are there before any job.
// observed on 6.12.117: kworker/u4:0 and u4:1
const WORKERS: usize = 2;

impl World {
    /// The workers of no core share threads.
    pub fn begin_pool(&mut self) {
        if !self.cpus.has_pool() {
            return;
        }
        let manager = self.spawn_kernel_task(KernelTask::Manager);
        let threads = (0..WORKERS).map(|_| self.spawn_kernel_task(KernelTask::Worker));
        let threads = threads.collect();
        self.cpus.begin_pool(manager, threads);
    }

    /// The running task puts work off.
    pub fn disturb(&mut self, context: ContextId) {
        self.cpus.disturb(&self.clock, context);
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
        self.started_worker = Some(thread);
        if let Some(manager) = self.cpus.worker_started() {
            self.wake_for_workers(thread, manager);
        }
    }

    /// The thread that has been started.
    pub fn take_started_worker(&mut self) -> Option<ContextId> {
        self.started_worker.take()
    }
}
