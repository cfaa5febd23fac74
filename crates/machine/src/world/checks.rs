//! When the kernel looks for late requests. None is ever found, but the worker that runs the queue
//! wakes for it, and what it was ahead of others when it slept is forgotten (rule timers-5).

use super::World;
use crate::clock::AgendaItem;

impl World {
    /// What boot and mount have set the kernel's timers to.
    pub fn begin_checks(&mut self) {
        let boot = &self.guest.boot;
        let (own, other) = match self.storage.format() {
            Some(_) => boot.ticks_to_checks_mounted,
            None => boot.ticks_to_checks,
        };
        for (own, ticks) in [(true, own), (false, other)] {
            if let Some(tick) = ticks.checked_sub(self.storage.cache().wheel().booted())
                && ticks > 0
            {
                self.will_check |= own;
                self.clock.schedule(self.start_of_tick(tick), AgendaItem::Check { own });
            }
        }
    }

    /// A command is issued: the timer is set if it is not.
    pub fn arm_check(&mut self) {
        let ticks = self.guest.boot.ticks_to_next_check;
        if !self.will_check && ticks > 0 {
            self.will_check = true;
            let tick = self.storage.cache().wheel().after(self.tick(), ticks);
            self.clock.schedule(self.start_of_tick(tick), AgendaItem::Check { own: true });
        }
    }

    /// The tick has come at which the kernel looks.
    pub(super) fn check_comes(&mut self, own: bool) {
        let at = self.clock.fires();
        self.clock.schedule(at, AgendaItem::Checks { own });
    }

    /// The kernel looks: it has its worker do so.
    pub(super) fn check(&mut self, own: bool) {
        self.cpus.timer_fires(&mut self.clock);
        self.will_check &= !own;
        self.wake_sleeper(self.storage.worker());
    }
}
