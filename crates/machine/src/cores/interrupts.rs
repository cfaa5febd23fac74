//! Interrupts: they run on a core ahead of its task, one after the other, and wait while it has them
//! disabled. On a core whose clock counts in steps they come when a look at the clock ends.

use super::{Cause, Pays, RunQueue};
use crate::clock::AgendaItem;
use crate::world::{Progress, World};
use base::Instant;
use block::ContextId;

impl World {
    /// Interrupts a core.
    pub fn interrupt(&mut self, core: usize, cause: Cause) {
        let end = self.end_of_look(core, &cause);
        self.cores[core].pending.push_back(cause);
        match end {
            Some(end) => {
                self.clock.schedule(end, AgendaItem::Unmasked(core));
            }
            None => self.enter_interrupt(core),
        }
    }

    /// Whether the context cannot do anything at the moment because its core is interrupted.
    pub fn is_suspended(&mut self, context: ContextId) -> bool {
        let core = usize::from(self.context(context).core);
        self.cores[core].in_interrupt && !self.is_interrupt(context)
    }

    /// Whether the context is that of a core's interrupts.
    pub fn is_interrupt(&self, context: ContextId) -> bool {
        context.0 < self.cores.len() as u32
    }

    /// Lets an interrupt begin, unless one runs or interrupts are disabled.
    pub(super) fn enter_interrupt(&mut self, core: usize) {
        let owner = self.cores[core].owner;
        let masked = owner.is_some_and(|task| {
            self.lock.holder == Some(task) || self.contexts[task.0 as usize].spins
        });
        if self.cores[core].in_interrupt || masked || self.cores[core].moves_data {
            return;
        }
        self.cores[core].suspended = self.stop_charge(core);
        self.cores[core].in_interrupt = true;
        let entry = self.prices.costs.interrupt;
        self.owe(ContextId(core as u32), entry);
    }

    /// Interrupts that had to wait begin.
    pub fn unmasked(&mut self, core: usize) {
        if !self.cores[core].pending.is_empty() {
            self.enter_interrupt(core);
        }
    }

    pub(super) fn advance_interrupt(&mut self, core: usize) {
        let context = ContextId(core as u32);
        if !self.cores[core].in_interrupt || self.cores[core].charge.is_some() {
            return;
        }
        loop {
            let debt = self.context(context).debt;
            if !debt.is_zero() {
                return self.charge(core, Pays::Debt, debt);
            }
            match self.drive(context) {
                Progress::Busy => return,
                Progress::Asleep => panic!("an interrupt on core {core} went to sleep"),
                Progress::Idle => {}
            }
            self.deliver_held_wakes();
            match self.cores[core].pending.pop_front() {
                Some(cause) => self.handle(core, cause),
                None => return self.leave_interrupt(core),
            }
        }
    }

    fn handle(&mut self, core: usize, cause: Cause) {
        let (context, cpu) = (ContextId(core as u32), core as u16);
        match cause {
            Cause::Completion(tag) => self.queue.complete(self.clock.now(), context, cpu, tag),
            Cause::Timer => {
                self.timer_raised = false;
                self.queue.timer(self.clock.now(), context, cpu);
            }
            Cause::Tick => {
                let ticked = self.clock.ticked();
                if let RunQueue::Eevdf(queue) = &mut self.run_queue {
                    queue.account(ticked);
                }
                self.clock.fired();
                // The time has been set meanwhile: whoever looked at the clock looks again.
                let look = self.prices.costs.kernel_clock;
                self.owe(context, look);
            }
            Cause::Alarm(sleeper) => {
                self.clock.fired();
                self.wake_sleeper(sleeper);
            }
        }
    }

    fn leave_interrupt(&mut self, core: usize) {
        self.cores[core].in_interrupt = false;
        let leaves = self.cores[core].owner.is_some_and(|owner| self.is_to_leave(owner));
        if let Some(charge) = self.cores[core].suspended.take().filter(|_| !leaves) {
            return self.charge(core, charge.pays, charge.length);
        }
        if let Some(task) = self.cores[core].owner {
            self.make_ready(task);
        }
    }

    /// When the look at the clock ends that a core is in the middle of; the interrupt comes after
    /// it. What the disk does at the end of a look is noticed in the next one.
    fn end_of_look(&self, core: usize, cause: &Cause) -> Option<Instant> {
        let (_, charge) = self.cores[core].charge.as_ref()?;
        let is_next = matches!(cause, Cause::Completion(_));
        let end = self.clock.end_of_look(charge.until - charge.length, is_next)?;
        let end = end.min(charge.until);
        (end > self.clock.now()).then_some(end)
    }

    /// Whether a look at the clock ends now; what the disk does at this instant comes later.
    pub fn has_looked(&self) -> bool {
        let charge = self.cores[0].charge.as_ref();
        self.clock.is_coarse() && charge.is_some_and(|(_, it)| it.until == self.clock.now())
    }

    /// A tick comes.
    pub fn tick_comes(&mut self, core: usize) {
        if self.cores[core].charge.is_some() && self.clock.is_new_tick() {
            self.interrupt(core, Cause::Tick);
        }
    }
}
