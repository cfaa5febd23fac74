//! When the kernel gathers the statistics of control groups: every other second, in a worker. That
//! is put off until a tick comes, and none does while nothing runs for long (rule timers-6).

use super::World;
use block::ContextId;

/// For so many seconds the timer is set each time.
// measured on 6.1.192, 6.12.117 and 7.3.4: timer_start of flush_memcg_stats_dwork, timeout=500 at
// HZ 250
const PERIOD: u64 = 2;

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
        self.statistics_due = self.tick_of_boot(first);
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
        let due = self.statistics_due.as_mut().filter(|due| **due <= last)?;
        *due = wheel.after(last, PERIOD * u64::from(wheel.hz().get()));
        self.unbound
    }
}
