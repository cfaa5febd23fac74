//! When the kernel gathers the statistics of control groups: every other second, in a worker. That
//! is put off until a tick comes, and none does while nothing runs for long (rule timers-6).

use super::World;
use crate::tasks::KernelTask;
use block::ContextId;

/// For so many seconds the timer is set each time.
// measured on 6.1.192, 6.12.117 and 7.3.4: timer_start of flush_memcg_stats_dwork, timeout=500 at
// HZ 250
const PERIOD: u64 = 2;

/// At which tick they are gathered at the earliest.
pub(super) struct Statistics {
    due: u64,
}

impl World {
    /// The boot has set the timer.
    pub(super) fn begin_statistics(&mut self) {
        let boot = &self.guest.boot;
        let depth = u64::from(self.storage.queue().limits().facts.queue_depth);
        let is_shallow = boot.shallow.0 <= depth && depth <= boot.shallow.1;
        let first = match self.storage.format() {
            Some(_) => boot.ticks_to_statistics_mounted,
            None if is_shallow => boot.ticks_to_statistics_shallow,
            None => boot.ticks_to_statistics,
        };
        let booted = self.storage.cache().wheel().booted();
        if let Some(due) = first.checked_sub(booted).filter(|_| first > 0) {
            self.statistics = Some(Statistics { due });
            self.spawn_unbound();
        }
    }

    /// A tick may have come while a task works: the worker is woken if it is time.
    pub(super) fn wake_gatherer(&mut self) {
        if let Some(gatherer) = self.clock.works().then(|| self.next_gathering()).flatten() {
            self.notify(gatherer);
        }
    }

    /// Somebody works again. If a tick has come meanwhile, the worker has done what was due then:
    /// nobody was in its way, and nobody saw it.
    pub(super) fn gathered_at_rest(&mut self) {
        self.next_gathering();
    }

    /// Sets the timer again if a tick has come at which it was due; whose work that was.
    fn next_gathering(&mut self) -> Option<ContextId> {
        let (last, wheel) = (self.clock.last_tick(), self.storage.cache().wheel());
        let it = self.statistics.as_mut().filter(|it| it.due <= last)?;
        it.due = wheel.after(last, PERIOD * u64::from(wheel.hz().get()));
        self.unbound
    }

    /// The worker is there from the beginning if it ever has something to do.
    pub(super) fn spawn_unbound(&mut self) {
        if self.unbound.is_none() {
            self.unbound = Some(self.spawn_kernel_task(KernelTask::Unbound));
        }
    }
}
