//! Cores: who runs where, for how long, and who waits for whom.
//!
//! A core is owned by one task at a time. Where computing is accounted for, who is next is decided
//! in `eevdf.rs`. Elsewhere runnable tasks without a core wait in one queue, first come, first
//! served, and take the first core that their affinity allows; a task that has computed for a whole
//! time slice while others wait goes to the end of that queue. The worker that runs the queue of
//! the disk is urgent, as the kernel's is: it goes before others that wait, and before one that was
//! woken by the same interrupt and has not begun. Interrupts run on a core ahead of its task
//! (`interrupts`), whose work is suspended meanwhile; they wait while the task holds the scheduler's
//! lock or spins for it, because it does so with interrupts disabled.
//!
//! The scheduler's lock is handed over first come, first served; who waits for it spins, and so
//! occupies its core. An interrupt may spin too: its holder is then on another core.
//!
// Divergence: where tasks take turns, a woken task never preempts one that runs, nice values do not
// weigh computing time, and there is one queue of runnable tasks instead of one for each core.

mod interrupts;
mod sharing;

use crate::clock::AgendaItem;
use crate::eevdf::Eevdf;
use crate::host::Costs;
use crate::simulation::Setup;
use crate::world::{Progress, World};
use base::{Duration, Instant, Ticket};
use block::{ContextId, Tag, Version, Work};
use std::collections::VecDeque;

/// A set of cores; core n is bit n of word n / 64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreSet(Vec<u64>);

impl CoreSet {
    /// The set of these cores.
    pub fn of(cores: impl IntoIterator<Item = u16>) -> CoreSet {
        let mut words = Vec::new();
        for core in cores {
            let word = usize::from(core / 64);
            if words.len() <= word {
                words.resize(word + 1, 0);
            }
            words[word] |= 1 << (core % 64);
        }
        CoreSet(words)
    }

    /// Whether a core is in the set.
    pub fn contains(&self, core: u16) -> bool {
        self.0.get(usize::from(core / 64)).is_some_and(|word| word & 1 << (core % 64) != 0)
    }

    /// Whether any of the first `cores` cores is in the set.
    pub fn fits(&self, cores: u16) -> bool {
        (0..cores).any(|core| self.contains(core))
    }
}

/// What a core did during a run; the rest of the time it was idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreUse {
    /// Time spent computing, for tasks and interrupts.
    pub computing: Duration,
    /// Time spent waiting for the scheduler's lock.
    pub spinning: Duration,
}

/// A core.
#[derive(Default)]
pub(crate) struct Core {
    /// What it did so far.
    pub used: CoreUse,
    /// Since when it spins.
    spins_since: Option<Instant>,
    /// The task that owns it.
    pub owner: Option<ContextId>,
    /// Since when.
    pub slice_start: Instant,
    /// It has done something since.
    pub has_begun: bool,
    /// It is to leave it to somebody who has had less.
    yields: bool,
    /// What it is busy with until when.
    charge: Option<(Ticket, Charge)>,
    /// Whether interrupt code runs.
    pub in_interrupt: bool,
    /// A driver moves the data of a command, with interrupts disabled.
    pub moves_data: bool,
    /// What its task was busy with when the interrupt came, and how much of it is left.
    suspended: Option<Charge>,
    /// Why it is interrupted, or will be.
    pending: VecDeque<Cause>,
}

/// Something a core is busy with.
#[derive(Clone, Copy)]
struct Charge {
    pays: Pays,
    length: Duration,
    until: Instant,
}

/// What is paid for with a core's time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pays {
    /// Computing that a context owes.
    Debt,
    /// The next piece of block-layer work, or its part that needs no lock.
    Work,
    /// Its part under the lock.
    Locked,
}

/// How much of the next piece of work has been paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Paid {
    #[default]
    Nothing,
    Unlocked,
    All,
}

/// Why a core is interrupted.
#[derive(Clone, Copy)]
pub(crate) enum Cause {
    /// The device finished a command.
    Completion(Tag),
    /// The block layer's timer.
    Timer,
    /// A tick, in the middle of a look at the clock.
    Tick,
    /// A task has slept long enough.
    Alarm(ContextId),
}

/// The scheduler's lock.
#[derive(Default)]
pub(crate) struct Lock {
    holder: Option<ContextId>,
    waiters: VecDeque<ContextId>,
}

/// Tasks that wait for a core, and who of them is next.
pub(crate) enum RunQueue {
    /// First come, first served.
    InTurn(VecDeque<ContextId>),
    /// As the kernel shares one core among them.
    Eevdf(Eevdf),
}

impl RunQueue {
    /// As the kernel shares a core, where the host accounts for computing.
    pub fn of(setup: &Setup) -> RunQueue {
        match setup.host.accounting {
            step if step.is_zero() || setup.kernel.version < Version::V6_12 => {
                RunQueue::InTurn(VecDeque::new())
            }
            step => RunQueue::Eevdf(Eevdf::new(step)),
        }
    }
}

/// Whether a context can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It owns a core (interrupts: it is not idle or may be at any time).
    Running,
    /// It waits for a core.
    Runnable,
    /// It sleeps.
    Blocked,
    /// It has exited.
    Gone,
}

impl World {
    /// Lets a context do what it can without taking time; true when its program is to be polled.
    pub fn advance(&mut self, context: ContextId) -> bool {
        let exec = self.context(context);
        exec.is_ready = false;
        let (state, core) = (exec.state, usize::from(exec.core));
        if context.0 < self.cores.len() as u32 {
            self.advance_interrupt(core);
            return false;
        }
        let busy = self.cores[core].in_interrupt || self.cores[core].charge.is_some();
        if state != State::Running || busy {
            return false;
        }
        if self.must_leave(context, core) {
            return false;
        }
        self.cores[core].has_begun = true;
        let debt = self.context(context).debt;
        if !debt.is_zero() {
            let slice_end = match &self.run_queue {
                RunQueue::InTurn(_) => self.cores[core].slice_start + self.time_slice,
                // A tick says so itself.
                RunQueue::Eevdf(_) if self.clock.is_coarse() => Instant::FAR_FUTURE,
                RunQueue::Eevdf(queue) => queue.step_end(self.clock.now()),
            };
            let most = slice_end.saturating_since(self.clock.now());
            let most = if most.is_zero() { self.time_slice } else { most };
            self.charge(core, Pays::Debt, debt.min(most));
            return false;
        }
        match self.drive(context) {
            Progress::Idle => true,
            Progress::Busy => false,
            Progress::Asleep => {
                self.block(context);
                false
            }
        }
    }

    /// The context has something to do when its turn comes.
    pub fn make_ready(&mut self, context: ContextId) {
        let exec = self.context(context);
        if !exec.is_ready {
            exec.is_ready = true;
            self.ready.push_back(context);
        }
    }

    /// A context has computed, or will have, for this long.
    pub fn owe(&mut self, context: ContextId, cost: Duration) {
        self.context(context).debt += cost;
        self.make_ready(context);
    }

    /// A running task goes to sleep and leaves its core.
    pub fn block(&mut self, context: ContextId) {
        let exec = self.context(context);
        assert_eq!(exec.state, State::Running, "task {} goes to sleep", context.0);
        exec.state = State::Blocked;
        let core = usize::from(exec.core);
        if let RunQueue::Eevdf(queue) = &mut self.run_queue {
            queue.sleep(self.clock.ticked(), false);
        }
        self.leave_core(core);
    }

    /// A task exits and leaves its core.
    pub fn leave(&mut self, context: ContextId) {
        let exec = self.context(context);
        exec.state = State::Gone;
        let core = usize::from(exec.core);
        if self.cores[core].owner == Some(context) {
            if let RunQueue::Eevdf(queue) = &mut self.run_queue {
                queue.sleep(self.clock.ticked(), true);
            }
            self.leave_core(core);
        }
    }

    /// A sleeping task has to go on: it takes a core, or waits for one.
    pub fn wake(&mut self, context: ContextId) {
        let exec = self.context(context);
        if exec.state != State::Blocked {
            return;
        }
        exec.state = State::Runnable;
        self.place(context);
    }

    /// The time a core was busy for is over.
    pub fn charged(&mut self, core: usize) {
        let (_, charge) = self.cores[core].charge.take().expect("a core was busy until now");
        self.cores[core].used.computing += charge.length;
        let context = self.running_on(core);
        self.note_served(context, charge.length);
        let exec = self.context(context);
        match charge.pays {
            Pays::Debt => exec.debt -= charge.length,
            Pays::Work => exec.paid = Paid::Unlocked,
            Pays::Locked => exec.paid = Paid::All,
        }
        self.make_ready(context);
    }

    /// Pays for the next piece of work of a context; false when that takes time or the lock.
    pub fn pay(&mut self, context: ContextId, work: Work) -> bool {
        let core = usize::from(self.context(context).core);
        if self.context(context).paid == Paid::Nothing {
            let cost = self.prices.unlocked(work) + self.clock_look(context, work);
            if !cost.is_zero() {
                self.charge(core, Pays::Work, cost);
                return false;
            }
            self.context(context).paid = Paid::Unlocked;
        }
        if self.context(context).paid == Paid::Unlocked {
            if self.prices.is_locked(work) && !self.lock(context) {
                return false;
            }
            let cost = self.prices.locked(work, self.queue.queued());
            if !cost.is_zero() {
                self.charge(core, Pays::Locked, cost);
                return false;
            }
        }
        true
    }

    /// What reading the clock costs the kernel for a piece of work.
    pub fn clock_look(&mut self, context: ContextId, work: Work) -> Duration {
        let cost = self.prices.costs.kernel_clock;
        let looks = work != Work::Allocate && !cost.is_zero();
        if looks && self.queue.looks_at_clock(context, work) { cost } else { Duration::ZERO }
    }

    /// What an allocation has cost that succeeded.
    pub fn allocation_cost(&mut self, context: ContextId) -> Duration {
        let Costs { request, kernel_clock, .. } = self.prices.costs;
        let looks = !kernel_clock.is_zero() && self.queue.looks_at_clock(context, Work::Allocate);
        if looks { request + kernel_clock } else { request }
    }

    /// A piece of work is done: the lock is passed on. False when the context is interrupted now.
    pub fn unlock(&mut self, context: ContextId) -> bool {
        self.context(context).paid = Paid::Nothing;
        if self.lock.holder != Some(context) {
            return true;
        }
        self.lock.holder = self.lock.waiters.pop_front();
        if let Some(next) = self.lock.holder {
            self.context(next).spins = false;
            let core = &mut self.cores[usize::from(self.contexts[next.0 as usize].core)];
            if let Some(since) = core.spins_since.take() {
                core.used.spinning += self.clock.now().since(since);
            }
            self.make_ready(next);
        }
        let core = usize::from(self.context(context).core);
        if !self.is_interrupt(context) && !self.cores[core].pending.is_empty() {
            self.enter_interrupt(core);
            return false;
        }
        true
    }

    /// Takes the lock, or waits for it.
    fn lock(&mut self, context: ContextId) -> bool {
        match self.lock.holder {
            Some(holder) if holder == context => true,
            None => {
                self.lock.holder = Some(context);
                true
            }
            Some(_) => {
                if !self.context(context).spins {
                    self.context(context).spins = true;
                    let core = usize::from(self.context(context).core);
                    self.cores[core].spins_since = Some(self.clock.now());
                    self.lock.waiters.push_back(context);
                }
                false
            }
        }
    }

    fn charge(&mut self, core: usize, pays: Pays, length: Duration) {
        let until = self.clock.now() + length;
        if let Some(tick) = self.clock.tick_within(until) {
            self.clock.schedule(tick, AgendaItem::Tick(core));
        }
        let ticket = self.clock.schedule(until, AgendaItem::Charged(core));
        let previous = self.cores[core].charge.replace((ticket, Charge { pays, length, until }));
        assert!(previous.is_none(), "core {core} is busy with two things");
    }

    fn running_on(&self, core: usize) -> ContextId {
        if self.cores[core].in_interrupt {
            return ContextId(core as u32);
        }
        self.cores[core].owner.expect("a busy core has an owner")
    }

    /// Whether a task has to leave its core to others now, and does.
    fn must_leave(&mut self, context: ContextId, core: usize) -> bool {
        let in_user_mode = self.is_in_user_mode(context);
        let RunQueue::Eevdf(queue) = &mut self.run_queue else {
            return self.slice_is_over(context, core);
        };
        queue.account(self.clock.ticked());
        if !queue.must_switch() || !in_user_mode {
            return false;
        }
        queue.put_back();
        self.context(context).state = State::Runnable;
        self.cores[core].owner = None;
        true
    }

    /// Whether a task could be made to leave its core. In the kernel it is not.
    fn is_in_user_mode(&self, context: ContextId) -> bool {
        let exec = &self.contexts[context.0 as usize];
        exec.job.is_some() && exec.acts_for.is_none() && !exec.in_call
    }

    /// Whether a task would leave its core if it went on.
    pub fn is_to_leave(&self, context: ContextId) -> bool {
        matches!(&self.run_queue, RunQueue::Eevdf(queue) if queue.must_switch())
            && self.is_in_user_mode(context)
    }

    /// The task that runs is to leave its core for a moment.
    pub fn disturb(&mut self) {
        if let RunQueue::Eevdf(queue) = &mut self.run_queue {
            queue.disturb();
        }
    }

    /// The timer has fired for a job that begins. A tick of this instant came with it, and is
    /// accounted before anybody new is there to be charged.
    pub fn let_begin(&mut self) {
        if let RunQueue::Eevdf(queue) = &mut self.run_queue {
            queue.account(self.clock.now());
        }
        self.clock.lets_begin(self.start_delay);
    }

    /// Gives the core to whoever goes first, if it is idle; false when nobody does.
    pub fn pick_next(&mut self) -> bool {
        let RunQueue::Eevdf(queue) = &mut self.run_queue else { return false };
        if self.cores[0].owner.is_some() || self.cores[0].in_interrupt {
            return false;
        }
        let Some(next) = queue.pick(self.clock.ticked()) else { return false };
        if !self.clock.works() {
            let next_alarm = self.next_alarm();
            self.clock.work(next_alarm);
        }
        self.assign(next, 0);
        true
    }

    /// Nothing is left to run for the moment.
    pub fn rest(&mut self) {
        if self.clock.works() && self.cores[0].owner.is_none() {
            self.clock.rest();
        }
    }

    fn slice_is_over(&mut self, context: ContextId, core: usize) -> bool {
        let elapsed = self.clock.now().saturating_since(self.cores[core].slice_start);
        let in_the_middle = self.context(context).paid != Paid::Nothing
            || self.lock.holder == Some(context)
            || self.cores[core].moves_data
            || self.context(context).spins;
        let is_over = elapsed >= self.time_slice || self.cores[core].yields;
        if !is_over || in_the_middle {
            return false;
        }
        let RunQueue::InTurn(queue) = &self.run_queue else { return false };
        if !queue.iter().any(|other| self.allows(*other, core)) {
            self.cores[core].yields = false;
            self.cores[core].slice_start = self.clock.now();
            return false;
        }
        self.context(context).state = State::Runnable;
        self.in_turn().push_back(context);
        self.leave_core(core);
        true
    }

    fn leave_core(&mut self, core: usize) {
        self.cores[core].owner = None;
        let RunQueue::InTurn(queue) = &self.run_queue else { return };
        let next = match self.shares_fairly() {
            true => self.least_served(queue),
            false => (0..queue.len()).find(|n| self.allows(queue[*n], core)),
        };
        if let Some(next) = next.and_then(|n| self.in_turn().remove(n)) {
            self.assign(next, core);
        }
    }

    /// Finds a core for a task: the one it ran on last, another idle one, or none yet.
    fn place(&mut self, context: ContextId) {
        if let RunQueue::Eevdf(queue) = &mut self.run_queue {
            let nice = self.contexts[context.0 as usize].cpu_nice();
            queue.wake(self.clock.ticked(), context, nice);
            return self.suspend_for_others();
        }
        self.forgive(context);
        let last = usize::from(self.context(context).core);
        let idle = |world: &World, core: usize| {
            world.cores[core].owner.is_none() && world.allows(context, core)
        };
        if idle(self, last) {
            return self.assign(context, last);
        }
        match (0..self.cores.len()).find(|core| idle(self, *core)) {
            Some(core) => self.assign(context, core),
            None if self.context(context).is_urgent
                || self.goes_before_new_owner(context, last) =>
            {
                self.displace(context, last)
            }
            None => {
                self.in_turn().push_back(context);
                self.cores[last].yields |= self.goes_before_owner(context, last);
            }
        }
    }

    /// A task that computes in user mode is stopped at once when it has to leave its core.
    fn suspend_for_others(&mut self) {
        let Some(owner) = self.cores[0].owner else { return };
        if self.cores[0].in_interrupt || !self.is_to_leave(owner) {
            return;
        }
        if self.stop_charge(0).is_some() {
            self.make_ready(owner);
        }
    }

    fn in_turn(&mut self) -> &mut VecDeque<ContextId> {
        match &mut self.run_queue {
            RunQueue::InTurn(queue) => queue,
            RunQueue::Eevdf(_) => panic!("tasks do not take turns here"),
        }
    }

    /// An urgent task takes the core of one that has not begun, or is the next.
    fn displace(&mut self, context: ContextId, core: usize) {
        let owner = self.cores[core].owner.filter(|_| !self.cores[core].has_begun);
        match owner {
            Some(owner) => {
                self.context(owner).state = State::Runnable;
                self.in_turn().push_front(owner);
                self.assign(context, core);
            }
            None => self.in_turn().push_front(context),
        }
    }

    fn allows(&self, context: ContextId, core: usize) -> bool {
        let affinity = &self.contexts[context.0 as usize].affinity;
        affinity.as_ref().is_none_or(|set| set.contains(core as u16))
    }

    fn assign(&mut self, context: ContextId, core: usize) {
        self.cores[core].owner = Some(context);
        self.cores[core].slice_start = self.clock.now();
        self.cores[core].has_begun = false;
        self.cores[core].yields = false;
        let switch = self.price_of_switch();
        let exec = self.context(context);
        exec.core = core as u16;
        exec.state = State::Running;
        exec.debt += switch;
        self.make_ready(context);
    }

    fn price_of_switch(&mut self) -> Duration {
        let Costs { switch, switch_spread, .. } = self.prices.costs;
        match switch_spread.as_nanos() {
            0 => switch,
            spread => switch + Duration::from_nanos(self.switches.below(spread + 1)),
        }
    }

    /// Stops what a core is busy with; the answer is what is left of it.
    fn stop_charge(&mut self, core: usize) -> Option<Charge> {
        let (ticket, charge) = self.cores[core].charge.take()?;
        self.clock.cancel(ticket);
        let left = charge.until.since(self.clock.now());
        self.cores[core].used.computing += charge.length - left;
        if let Some(task) = self.cores[core].owner {
            self.note_served(task, charge.length - left);
            if charge.pays == Pays::Debt {
                self.context(task).debt -= charge.length - left;
            }
        }
        Some(Charge { length: left, ..charge })
    }
}
