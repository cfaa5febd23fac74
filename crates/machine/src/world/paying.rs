//! Contexts do pieces of work for which their cores are charged with time.
//!
//! Mostly nothing else can happen before a core is done with what it is charged with. Then time
//! just moves on, and the context with it. Otherwise the agenda says when the core is done, the
//! context waits, and the machine takes a turn.

use super::{Progress, World};
use crate::cpus::{Charge, Pays};
use base::{Duration, Instant};
use block::{ContextId, Step, Work, Works};

/// So many events are handed to the observer at the latest before time moves on.
pub(super) const MOST_EVENTS: usize = 256;

impl World {
    /// Does what a context has to do in the block layer, as far as nobody else has to go on before.
    #[inline]
    pub fn drive(&mut self, context: ContextId) -> Progress {
        if self.cpus.is_suspended(context) {
            return Progress::Busy;
        }
        match self.storage.queue().is_idle(context) {
            true => Progress::Idle,
            false => self.do_work(context),
        }
    }

    #[inline(never)]
    fn do_work(&mut self, context: ContextId) -> Progress {
        loop {
            if self.cpus.is_wanted(context) {
                self.storage.queue_mut().leave_run(context);
                self.take_outputs(context);
            }
            let mut along = self.cpus.prices().along;
            let Some(work) = self.storage.queue().next_work(context) else {
                return Progress::Idle;
            };
            if !along.contains(work) {
                along = Works::NONE;
                if !self.pay(context, work) {
                    return Progress::Busy;
                }
            }
            let step = self.storage.queue_mut().proceed(self.clock.now(), context, along);
            self.take_outputs(context);
            match step {
                Step::Idle => return Progress::Idle,
                Step::Asleep => return Progress::Asleep,
                Step::Did(_) if self.cpus.prices().free => {}
                Step::Did(work) => {
                    let goes_on = self.end_piece(context, work);
                    let is_paid = self.pay_for(context, work);
                    if !goes_on || !is_paid {
                        return Progress::Busy;
                    }
                }
            }
        }
    }

    /// A context computes; false when others may have to go on before that is done.
    pub fn compute(&mut self, context: ContextId, time: Duration) -> bool {
        let until = self.clock.now() + time;
        if !self.cpus.nobody_is_ready() || !self.cpus.keeps_core(context, until) {
            self.cpus.owe(context, time);
            return false;
        }
        self.cpus.add_debt(context, time);
        self.charge(context, Pays::Debt, time)
    }

    /// A task looks at the clock until so much time has passed.
    pub fn look_for_as_long_as(&mut self, context: ContextId, time: Duration) {
        let until = self.clock.now() + time;
        self.cpus.look_until(&self.clock, context, until);
    }

    /// A task puts work off.
    pub fn disturb(&mut self, context: ContextId) {
        self.cpus.disturb(&self.clock, context);
    }

    /// Whether a task in the kernel that looks for that leaves its core to others.
    pub fn gives_way(&mut self, context: ContextId) -> bool {
        self.cpus.gives_way(&self.clock, context)
    }

    /// Whether a task can go on now. Not if its core is busy, if it has to leave it to others, or
    /// if it owes computing and others may have to go on before that is done.
    pub(super) fn goes_on(&mut self, context: ContextId) -> bool {
        while self.cpus.goes_on(&mut self.clock, context) {
            let Some(debt) = self.cpus.payable(&self.clock, context) else { return true };
            if !self.charge(context, Pays::Debt, debt) {
                return false;
            }
        }
        false
    }

    /// Whether the interrupts of a core have computed what they owe.
    pub(super) fn interrupt_goes_on(&mut self, core: usize) -> bool {
        let context = ContextId(core as u32);
        let debt = self.cpus.debt(context);
        debt.is_zero() || self.charge(context, Pays::Debt, debt)
    }

    /// The task of a core goes on that was interrupted.
    pub(super) fn leave_interrupt(&mut self, core: usize) {
        let Some((task, charge)) = self.cpus.leave_interrupt(core) else { return };
        if self.charge(task, charge.pays, charge.length) {
            self.cpus.make_ready(task);
        }
    }

    /// Pays for the next piece of work of a context; false when others may have to go on before
    /// that is done, or have the lock.
    fn pay(&mut self, context: ContextId, work: Work) -> bool {
        if self.cpus.is_unpaid(context) {
            let looks = match self.cpus.charges_looks(work) {
                true => self.storage.queue_mut().looks_at_clock(context, work),
                false => 0,
            };
            let cost = self.cpus.price_unlocked(work, looks);
            if cost.is_zero() {
                self.cpus.has_paid_unlocked(context);
            } else if !self.charge(context, Pays::Work, cost) {
                return false;
            }
        }
        if !self.cpus.lacks_lock(context) {
            return true;
        }
        let queued = || self.storage.queue().queued();
        if !self.cpus.locks(&self.clock, context, work, queued) {
            return false;
        }
        let cost = self.cpus.price_locked(context, work, queued);
        cost.is_zero() || self.charge(context, Pays::Locked, cost)
    }

    /// A piece of work is done: the lock is passed on, but not between two requests of a plug.
    /// False when the context is interrupted now.
    fn end_piece(&mut self, context: ContextId, work: Work) -> bool {
        let is_group =
            work == Work::Insert && self.storage.queue().next_work(context) == Some(Work::Insert);
        if is_group {
            self.cpus.keep_lock(context);
            return true;
        }
        self.cpus.unlock(&mut self.clock, context)
    }

    /// Pays for what a piece of work has cost besides: an allocation that succeeded, a look at the
    /// clock where writeback is throttled, or what the scheduler has written into the trace. False
    /// when others may have to go on before that is done.
    fn pay_for(&mut self, context: ContextId, work: Work) -> bool {
        if work == Work::Allocate {
            let queue = self.storage.queue_mut();
            let looks = || queue.looks_at_clock(context, Work::Allocate);
            let cost = self.cpus.allocation_cost(looks);
            if !cost.is_zero() {
                return self.compute(context, cost);
            }
        }
        let queue = self.storage.queue_mut();
        let looks = u64::from(queue.looks_for_policy(context));
        let messages = queue.log().take_written();
        let costs = self.cpus.costs();
        let cost = costs.message * messages + costs.kernel_clock * looks;
        let is_paid = cost.is_zero() || self.compute(context, cost);
        is_paid && !self.cpus.owes(context)
    }

    /// Charges the core of a context with time. If nothing else can happen before that is over, it
    /// is over at once; otherwise the answer is false.
    fn charge(&mut self, context: ContextId, pays: Pays, length: Duration) -> bool {
        let charge = Charge { pays, length, until: self.clock.now() + length };
        if !self.is_quiet(context, charge.until) {
            self.cpus.charge(&mut self.clock, context, charge);
            return false;
        }
        self.end_moment();
        while let Some(at) = self.disk.next_event().filter(|at| *at <= charge.until) {
            self.clock.advance(at);
            if self.disk.advance(at) {
                self.cpus.charge(&mut self.clock, context, charge);
                self.complete_commands();
                return false;
            }
        }
        self.clock.advance(charge.until);
        self.cpus.has_computed(context, charge);
        true
    }

    /// Whether nothing happens until then but what a context and the disk do. One that is to exit
    /// does so in a turn.
    fn is_quiet(&mut self, context: ContextId, until: Instant) -> bool {
        let is_later = |at: Option<Instant>| at.is_none_or(|at| at > until);
        self.cpus.nobody_is_ready()
            && is_later(self.clock.next_at())
            && is_later(self.next_timer())
            && self.end().is_none_or(|end| end >= until)
            && self.storage.queue_mut().log().events().len() < MOST_EVENTS
            && !self.clock.is_coarse()
            && !self.must_exit(context)
            && !self.is_over()
    }
}
