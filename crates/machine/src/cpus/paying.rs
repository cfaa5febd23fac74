//! What computing takes: cores are charged with time, and pieces of work are paid for, in part
//! under the scheduler's lock.

use super::{Core, Cpus, RunQueue};
use crate::clock::{AgendaItem, Clock};
use crate::host::Costs;
use base::{Duration, Instant};
use block::{ContextId, Work};
use std::collections::VecDeque;

/// Something a core is busy with.
#[derive(Clone, Copy)]
pub(crate) struct Charge {
    pub pays: Pays,
    pub length: Duration,
    pub until: Instant,
}

/// What is paid for with a core's time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pays {
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
    /// The holder waited for it, and has not paid for its coming.
    was_handed_over: bool,
}

/// Who had the last event of each kind: insertions, dispatches and completions touch different
/// parts of what the scheduler keeps.
pub(super) type Latest = [Option<u32>; 3];

/// The place of a kind of event there.
fn kind(work: Work) -> usize {
    match work {
        Work::Insert => 0,
        Work::Dispatch => 1,
        _ => 2,
    }
}

impl Cpus {
    /// A context has computed, or will have, for this long.
    pub fn owe(&mut self, context: ContextId, cost: Duration) {
        self.add_debt(context, cost);
        self.make_ready(context);
    }

    /// The same for a context whose core is charged with it now.
    pub fn add_debt(&mut self, context: ContextId, cost: Duration) {
        self.of_mut(context).debt += cost;
    }

    /// How much longer a context has computed than its core was charged with.
    pub fn debt(&self, context: ContextId) -> Duration {
        self.of(context).debt
    }

    /// Whether it has computed longer.
    pub fn owes(&self, context: ContextId) -> bool {
        !self.debt(context).is_zero()
    }

    /// A task begins to compute until it sees on the clock that this time has come.
    pub fn look_until(&mut self, clock: &Clock, context: ContextId, until: Instant) {
        self.of_mut(context).looks_until = Some(until);
        self.owe(context, until.saturating_since(clock.now()));
    }

    /// As much of what a task owes as its core can be charged with now, if it owes anything.
    pub fn payable(&mut self, clock: &Clock, context: ContextId) -> Option<Duration> {
        let core = usize::from(self.core_of(context));
        let computing = self.of_mut(context);
        if let Some(until) = computing.looks_until {
            computing.debt = computing.debt.min(until.saturating_since(clock.now()));
            computing.looks_until = Some(until).filter(|_| !computing.debt.is_zero());
        }
        let debt = self.debt(context);
        (!debt.is_zero()).then(|| debt.min(self.longest_charge(clock, core)))
    }

    /// Whether nothing of the next piece of work of a context is paid for.
    pub fn is_unpaid(&self, context: ContextId) -> bool {
        self.of(context).paid == Paid::Nothing
    }

    /// Whether a look at the clock costs anything in the middle of a piece of work.
    pub fn charges_looks(&self, work: Work) -> bool {
        work != Work::Allocate && !self.prices.costs.kernel_clock.is_zero()
    }

    /// What the part of a piece of work costs that needs no lock, and looks at the clock.
    pub fn price_unlocked(&self, work: Work, looks: u32) -> Duration {
        self.prices.unlocked(work) + self.prices.costs.kernel_clock * u64::from(looks)
    }

    /// The part of the next piece of work of a context that needs no lock is paid for.
    pub fn has_paid_unlocked(&mut self, context: ContextId) {
        self.of_mut(context).paid = Paid::Unlocked;
    }

    /// Whether the part of the next piece of work of a context under the lock is to be paid for.
    pub fn lacks_lock(&self, context: ContextId) -> bool {
        self.of(context).paid == Paid::Unlocked
    }

    /// Takes the lock for a piece of work that needs it, or waits for it.
    pub fn locks(
        &mut self,
        clock: &Clock,
        context: ContextId,
        work: Work,
        queued: impl FnOnce() -> u32,
    ) -> bool {
        !self.prices.is_locked(work, queued) || self.lock(clock, context)
    }

    /// What the part of a piece of work costs the core of a context that may need the lock, with
    /// so many requests queued.
    pub fn price_locked(
        &mut self,
        context: ContextId,
        work: Work,
        queued: impl Fn() -> u32,
    ) -> Duration {
        let handover = match std::mem::take(&mut self.lock.was_handed_over) {
            true => self.prices.costs.handover,
            false => Duration::ZERO,
        };
        self.price_of_event(context, work, queued) + handover
    }

    /// What the scheduler's part of it costs.
    fn price_of_event(
        &mut self,
        context: ContextId,
        work: Work,
        queued: impl Fn() -> u32,
    ) -> Duration {
        let Some(cost) = self.prices.event(work, &queued) else { return Duration::ZERO };
        let core = usize::from(self.core_of(context));
        let is_shared = self.prices.is_locked(work, queued);
        if self.has_cached(work, core, is_shared) { cost.warm } else { cost.cold }
    }

    /// Whether a core that has an event of the scheduler now has in its caches what that needs:
    /// it has had one of this kind since it was idle and, if that `is_shared`, no other core has
    /// since. What needs no lock is a core's own.
    fn has_cached(&mut self, work: Work, core: usize, is_shared: bool) -> bool {
        let Core { idled, latest, .. } = &mut self.cores[core];
        let is_warm = latest[kind(work)].replace(*idled) == Some(*idled);
        if !is_shared {
            return is_warm;
        }
        let core = Some(core as u32);
        std::mem::replace(&mut self.latest[kind(work)], core) == core && is_warm
    }

    /// What an allocation has cost that succeeded; `looks` says how often it looked at the clock,
    /// if that costs anything.
    pub fn allocation_cost(&self, looks: impl FnOnce() -> u32) -> Duration {
        let Costs { request, kernel_clock, .. } = self.prices.costs;
        if kernel_clock.is_zero() { request } else { request + kernel_clock * u64::from(looks()) }
    }

    /// A piece of work is done, and the next one comes under the same lock.
    pub fn keep_lock(&mut self, context: ContextId) {
        self.of_mut(context).paid = Paid::Nothing;
    }

    /// A piece of work is done: the lock is passed on. False when the context is interrupted now.
    pub fn unlock(&mut self, clock: &mut Clock, context: ContextId) -> bool {
        self.of_mut(context).paid = Paid::Nothing;
        if self.lock.holder != Some(context) {
            return true;
        }
        self.lock.holder = self.lock.waiters.pop_front();
        self.lock.was_handed_over = self.lock.holder.is_some();
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
        let context = self.running_on(core);
        self.has_computed(context, charge);
        self.make_ready(context);
    }

    /// A context has had its core for as long as that was charged for it.
    pub fn has_computed(&mut self, context: ContextId, charge: Charge) {
        let computing = self.of_mut(context);
        match charge.pays {
            Pays::Debt => computing.debt -= charge.length,
            Pays::Work => computing.paid = Paid::Unlocked,
            Pays::Locked => computing.paid = Paid::All,
        }
        let core = usize::from(computing.core);
        self.cores[core].used.computing += charge.length;
        self.note_served(context, charge.length);
    }

    /// For how long a core can be charged before somebody else may have to go first.
    fn longest_charge(&self, clock: &Clock, core: usize) -> Duration {
        let slice_end = match &self.run_queue {
            RunQueue::InTurn(_) => self.cores[core].slice_start + self.time_slice,
            // A tick says so itself.
            RunQueue::Stepped(_) if clock.is_coarse() => Instant::FAR_FUTURE,
            RunQueue::Stepped(queue) => queue.step_end(clock.now()),
        };
        let most = slice_end.saturating_since(clock.now());
        if most.is_zero() { self.time_slice } else { most }
    }

    /// The core of a context is busy.
    pub fn charge(&mut self, clock: &mut Clock, of: ContextId, charge: Charge) {
        let core = usize::from(self.core_of(of));
        if let Some(tick) = clock.tick_within(charge.until) {
            clock.schedule(tick, AgendaItem::Tick(core));
        }
        let ticket = clock.schedule(charge.until, AgendaItem::Charged(core));
        let previous = self.cores[core].charge.replace((ticket, charge));
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
