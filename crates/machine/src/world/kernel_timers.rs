//! Timers of the kernel's own that wake its workers although nobody has anything for them to do.
//! What such a worker was ahead of others when it slept is forgotten, if it wakes alone
//! (rule timers-5).

use super::World;
use crate::clock::{AgendaItem, KernelTimer};
use crate::cpus::Cause;

impl World {
    /// What boot and mount have set the timers to; whether that of the flusher is among them. Of
    /// those of one tick it goes first.
    // observed on 6.12.117 and 7.3.4: timer_expire_entry at tick 1336
    pub fn begin_kernel_timers(&mut self) -> bool {
        let boot = &self.guest.boot;
        let ((own, other), root) = match self.storage.format() {
            Some(_) => (boot.ticks_to_checks_mounted, boot.ticks_to_root_flush.1),
            None => (boot.ticks_to_checks, boot.ticks_to_root_flush.0),
        };
        let flushes_root = self.begin_kernel_timer(KernelTimer::RootFlush, root);
        self.will_check = self.begin_kernel_timer(KernelTimer::Late { own: true }, own);
        self.begin_kernel_timer(KernelTimer::Late { own: false }, other);
        flushes_root
    }

    fn begin_kernel_timer(&mut self, timer: KernelTimer, ticks: u64) -> bool {
        let tick = self.tick_of_boot(ticks);
        tick.into_iter().for_each(|tick| self.set_kernel_timer(timer, tick));
        tick.is_some()
    }

    /// A command is issued: the timer is set if it is not.
    pub fn arm_check(&mut self) {
        let ticks = self.guest.boot.ticks_to_next_check;
        if !self.will_check && ticks > 0 {
            self.will_check = true;
            let tick = self.storage.cache().wheel().after(self.tick(), ticks);
            self.set_kernel_timer(KernelTimer::Late { own: true }, tick);
        }
    }

    /// The tick of a timer has come.
    pub(super) fn kernel_timer_comes(&mut self, timer: KernelTimer) {
        let now = self.clock.now();
        self.kernel_timers.retain(|at| *at > now);
        let at = self.clock.fires();
        self.clock.schedule(at, AgendaItem::KernelFires(timer));
    }

    /// The time of the block layer's timer has come. It fires as late as others where the clock
    /// counts in steps (observed on 6.12.117: timer_expire_entry of blk_stat_timer_fn).
    pub(super) fn queue_timer_comes(&mut self) {
        match self.clock.is_coarse() {
            true => {
                let at = self.clock.fires();
                self.clock.schedule(at, AgendaItem::QueueFires);
            }
            false => self.cpus.interrupt(&mut self.clock, 0, Cause::Timer),
        }
    }

    /// A timer has fired: a worker is to see to it.
    pub(super) fn kernel_timer(&mut self, timer: KernelTimer) {
        self.cpus.timer_fires(&mut self.clock);
        let worker = match timer {
            KernelTimer::Late { own } => {
                self.will_check &= !own;
                Some(self.storage.worker())
            }
            KernelTimer::RootFlush => {
                self.set_kernel_timer(timer, self.storage.cache().next_look(self.tick()));
                self.unbound
            }
        };
        if let Some(worker) = worker {
            self.wake_sleeper(worker);
        }
    }

    fn set_kernel_timer(&mut self, timer: KernelTimer, tick: u64) {
        let at = self.start_of_tick(tick);
        self.kernel_timers.push(at);
        self.clock.schedule(at, AgendaItem::Kernel(timer));
    }
}
