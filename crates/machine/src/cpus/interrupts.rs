//! Interrupts: they run on a core ahead of its task, one after the other, and wait while it has
//! them disabled. On a core whose clock counts in steps they come when a look at the clock ends.

use super::paying::Charge;
use super::{Cpus, RunQueue};
use crate::clock::{AgendaItem, Clock, KernelTimer};
use base::{Duration, Instant};
use block::{ContextId, Tag};

/// Why a core is interrupted.
#[derive(Clone, Copy)]
pub(crate) enum Cause {
    /// The device finished a command, perhaps at the instant at which it got it.
    Completion { tag: Tag, at_once: bool },
    /// The block layer's timer.
    Timer,
    /// A tick, in the middle of a look at the clock.
    Tick,
    /// A task has slept long enough.
    Alarm(ContextId),
    /// One of the kernel's own timers has fired.
    Kernel(KernelTimer),
}

impl Cpus {
    /// Interrupts a core.
    pub fn interrupt(&mut self, clock: &mut Clock, core: usize, cause: Cause) {
        let end = self.end_of_look(clock, core, &cause);
        self.cores[core].pending.push_back(cause);
        match end {
            Some(end) => {
                clock.schedule(end, AgendaItem::Unmasked(core));
            }
            None => self.enter_interrupt(clock, core),
        }
    }

    /// Whether the context cannot do anything at the moment because its core is interrupted.
    pub fn is_suspended(&self, context: ContextId) -> bool {
        let core = usize::from(self.core_of(context));
        self.cores[core].in_interrupt && !self.is_interrupt(context)
    }

    /// Whether the interrupts of a core have something to do and are not busy.
    pub fn interrupt_is_free(&self, core: usize) -> bool {
        self.cores[core].in_interrupt && self.cores[core].charge.is_none()
    }

    /// Why the interrupts of a core go on, if they do.
    pub fn next_cause(&mut self, core: usize) -> Option<Cause> {
        self.cores[core].pending.pop_front()
    }

    /// The task of a core goes on that was interrupted. The answer is what its core is to be
    /// charged with first, if it was busy for the task.
    pub fn leave_interrupt(&mut self, core: usize) -> Option<(ContextId, Charge)> {
        self.cores[core].in_interrupt = false;
        let suspended = self.cores[core].suspended.take();
        let task = self.cores[core].owner?;
        // Who looks at the clock sees that time has passed.
        let goes_on = !self.is_to_leave(task) && self.of(task).looks_until.is_none();
        let left = suspended.filter(|_| goes_on);
        if left.is_none() {
            self.make_ready(task);
        }
        left.map(|charge| (task, charge))
    }

    /// Interrupts that had to wait begin.
    pub fn unmasked(&mut self, clock: &mut Clock, core: usize) {
        if !self.cores[core].pending.is_empty() {
            self.enter_interrupt(clock, core);
        }
    }

    /// The core of a context moves the data of a command for so long, with interrupts disabled; the
    /// answer is which core that is.
    pub fn move_data(&mut self, by: ContextId, cost: Duration) -> usize {
        let core = usize::from(self.core_of(by));
        self.cores[core].moves_data = true;
        self.owe(by, cost);
        core
    }

    /// A core has moved the data of a command.
    pub fn data_moved(&mut self, clock: &mut Clock, core: usize) {
        self.cores[core].moves_data = false;
        self.unmasked(clock, core);
    }

    /// Whether a look at the clock ends now; what the disk does at this instant comes later.
    pub fn has_looked(&self, clock: &Clock) -> bool {
        let charge = self.cores[0].charge.as_ref();
        clock.is_coarse() && charge.is_some_and(|(_, it)| it.until == clock.now())
    }

    /// A tick comes.
    pub fn tick_comes(&mut self, clock: &mut Clock, core: usize) {
        if self.cores[core].charge.is_some() && clock.is_new_tick() {
            self.interrupt(clock, core, Cause::Tick);
        }
    }

    /// The interrupt of a tick: the time is set, and whoever looked at the clock looks again.
    pub fn account_tick(&mut self, clock: &mut Clock, core: usize) {
        if let RunQueue::Stepped(queue) = &mut self.run_queue {
            queue.account(clock.ticked());
        }
        clock.fired();
        let look = self.prices.costs.kernel_clock;
        self.owe(ContextId(core as u32), look);
    }

    /// Lets an interrupt begin, unless one runs or interrupts are disabled.
    pub(super) fn enter_interrupt(&mut self, clock: &mut Clock, core: usize) {
        let owner = self.cores[core].owner;
        let masked =
            owner.is_some_and(|task| self.lock.holder == Some(task) || self.of(task).spins);
        if self.cores[core].in_interrupt || masked || self.cores[core].moves_data {
            return;
        }
        self.cores[core].suspended = self.stop_charge(clock, core);
        self.cores[core].in_interrupt = true;
        let entry = self.prices.costs.interrupt;
        self.owe(ContextId(core as u32), entry);
    }

    /// When the look at the clock ends that a core is in the middle of; the interrupt comes after
    /// it. What the disk does at the end of a look is noticed in the next one, but for what takes
    /// no time: that is there before the next one begins (observed on 6.12: a flush with nothing
    /// to write).
    fn end_of_look(&self, clock: &Clock, core: usize, cause: &Cause) -> Option<Instant> {
        let (_, charge) = self.cores[core].charge.as_ref()?;
        let is_next = matches!(cause, Cause::Completion { at_once: false, .. });
        let end = clock.end_of_look(charge.until - charge.length, is_next)?;
        let end = end.min(charge.until);
        (end > clock.now()).then_some(end)
    }
}
