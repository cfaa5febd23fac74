//! What computing takes: cores are charged with time, and pieces of work are paid for, in part
//! under the scheduler's lock.

use super::{Cpus, RunQueue};
use crate::clock::{AgendaItem, Clock};
use crate::host::Costs;
use base::{Duration, Instant};
use block::{ContextId, Work};
use std::collections::VecDeque;

/// Something a core is busy with.
#[derive(Clone, Copy)]
pub(super) struct Charge {
    pub pays: Pays,
    pub length: Duration,
    pub until: Instant,
}

/// What is paid for with a core's time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pays {
    /// Computing that a context owes.
    Debt,
    /// The next piece of block-layer work, or its part that needs no lock.
    Work,
    /// Its part under the lock.
    Locked,
}

/// How much of the next piece of work has been paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Paid {
    #[default]
    Nothing,
    Unlocked,
    All,
}

/// The scheduler's lock.
#[derive(Default)]
pub(super) struct Lock {
    pub holder: Option<ContextId>,
    waiters: VecDeque<ContextId>,
}

impl Cpus {
    /// A context has computed, or will have, for this long.
    pub fn owe(&mut self, context: ContextId, cost: Duration) {
        self.of_mut(context).debt += cost;
        self.make_ready(context);
    }

    /// Whether a context has computed longer than its core was charged with.
    pub fn owes(&self, context: ContextId) -> bool {
        !self.of(context).debt.is_zero()
    }

    /// Whether nothing of the next piece of work of a context is paid for.
    pub fn is_unpaid(&self, context: ContextId) -> bool {
        self.of(context).paid == Paid::Nothing
    }

    /// Whether a look at the clock costs anything in the middle of a piece of work.
    pub fn charges_looks(&self, work: Work) -> bool {
        work != Work::Allocate && !self.prices.costs.kernel_clock.is_zero()
    }

    /// Pays for the part of the next piece of work that needs no lock, and perhaps for a look at
    /// the clock; false when that takes time.
    pub fn pay_unlocked(
        &mut self,
        clock: &mut Clock,
        context: ContextId,
        work: Work,
        looks: bool,
    ) -> bool {
        let look = if looks { self.prices.costs.kernel_clock } else { Duration::ZERO };
        let cost = self.prices.unlocked(work) + look;
        if !cost.is_zero() {
            let core = usize::from(self.core_of(context));
            self.charge(clock, core, Pays::Work, cost);
            return false;
        }
        self.of_mut(context).paid = Paid::Unlocked;
        true
    }

    /// Pays for the part under the lock, with so many requests queued; false when that takes time
    /// or the lock.
    pub fn pay_locked(
        &mut self,
        clock: &mut Clock,
        context: ContextId,
        work: Work,
        queued: impl FnOnce() -> u32,
    ) -> bool {
        if self.of(context).paid == Paid::Unlocked {
            if self.prices.is_locked(work) && !self.lock(clock, context) {
                return false;
            }
            let cost = self.prices.locked(work, queued());
            if !cost.is_zero() {
                let core = usize::from(self.core_of(context));
                self.charge(clock, core, Pays::Locked, cost);
                return false;
            }
        }
        true
    }

    /// What an allocation has cost that succeeded; `looks` says whether it looked at the clock, if
    /// that costs anything.
    pub fn allocation_cost(&self, looks: impl FnOnce() -> bool) -> Duration {
        let Costs { request, kernel_clock, .. } = self.prices.costs;
        if !kernel_clock.is_zero() && looks() { request + kernel_clock } else { request }
    }

    /// A piece of work is done: the lock is passed on. False when the context is interrupted now.
    pub fn unlock(&mut self, clock: &mut Clock, context: ContextId) -> bool {
        self.of_mut(context).paid = Paid::Nothing;
        if self.lock.holder != Some(context) {
            return true;
        }
        self.lock.holder = self.lock.waiters.pop_front();
        if let Some(next) = self.lock.holder {
            self.of_mut(next).spins = false;
            let core = &mut self.cores[usize::from(self.contexts[next.0 as usize].core)];
            if let Some(since) = core.spins_since.take() {
                core.used.spinning += clock.now().since(since);
            }
            self.make_ready(next);
        }
        let core = usize::from(self.core_of(context));
        if !self.is_interrupt(context) && !self.cores[core].pending.is_empty() {
            self.enter_interrupt(clock, core);
            return false;
        }
        true
    }

    /// Takes the lock, or waits for it.
    fn lock(&mut self, clock: &Clock, context: ContextId) -> bool {
        match self.lock.holder {
            Some(holder) if holder == context => true,
            None => {
                self.lock.holder = Some(context);
                true
            }
            Some(_) => {
                if !self.of(context).spins {
                    self.of_mut(context).spins = true;
                    let core = usize::from(self.core_of(context));
                    self.cores[core].spins_since = Some(clock.now());
                    self.lock.waiters.push_back(context);
                }
                false
            }
        }
    }

    /// The time a core was busy for is over.
    pub fn charged(&mut self, core: usize) {
        let (_, charge) = self.cores[core].charge.take().expect("a core was busy until now");
        self.cores[core].used.computing += charge.length;
        let context = self.running_on(core);
        self.note_served(context, charge.length);
        let computing = self.of_mut(context);
        match charge.pays {
            Pays::Debt => computing.debt -= charge.length,
            Pays::Work => computing.paid = Paid::Unlocked,
            Pays::Locked => computing.paid = Paid::All,
        }
        self.make_ready(context);
    }

    /// For how long a core can be charged before somebody else may have to go first.
    pub(super) fn longest_charge(&self, clock: &Clock, core: usize) -> Duration {
        let slice_end = match &self.run_queue {
            RunQueue::InTurn(_) => self.cores[core].slice_start + self.time_slice,
            // A tick says so itself.
            RunQueue::Eevdf(_) if clock.is_coarse() => Instant::FAR_FUTURE,
            RunQueue::Eevdf(queue) => queue.step_end(clock.now()),
        };
        let most = slice_end.saturating_since(clock.now());
        if most.is_zero() { self.time_slice } else { most }
    }

    pub(super) fn charge(&mut self, clock: &mut Clock, core: usize, pays: Pays, length: Duration) {
        let until = clock.now() + length;
        if let Some(tick) = clock.tick_within(until) {
            clock.schedule(tick, AgendaItem::Tick(core));
        }
        let ticket = clock.schedule(until, AgendaItem::Charged(core));
        let previous = self.cores[core].charge.replace((ticket, Charge { pays, length, until }));
        assert!(previous.is_none(), "core {core} is busy with two things");
    }

    /// Stops what a core is busy with; the answer is what is left of it.
    pub(super) fn stop_charge(&mut self, clock: &mut Clock, core: usize) -> Option<Charge> {
        let (ticket, charge) = self.cores[core].charge.take()?;
        clock.cancel(ticket);
        let left = charge.until.since(clock.now());
        self.cores[core].used.computing += charge.length - left;
        if let Some(task) = self.cores[core].owner {
            self.note_served(task, charge.length - left);
            if charge.pays == Pays::Debt {
                self.of_mut(task).debt -= charge.length - left;
            }
        }
        Some(Charge { length: left, ..charge })
    }

    fn running_on(&self, core: usize) -> ContextId {
        if self.cores[core].in_interrupt {
            return ContextId(core as u32);
        }
        self.cores[core].owner.expect("a busy core has an owner")
    }
}
