//! Who gets a core, and who has to leave it.

use super::paying::Paid;
use super::{Cpus, Pool, RunQueue, State};
use crate::clock::Clock;
use crate::host::Costs;
use base::{Duration, Instant};
use block::ContextId;
use std::collections::VecDeque;

impl Cpus {
    /// A sleeping task has to go on: it takes a core, or waits for one.
    pub fn wake(&mut self, clock: &mut Clock, context: ContextId) {
        let computing = self.of_mut(context);
        if computing.state != State::Blocked {
            return;
        }
        computing.state = State::Runnable;
        self.place(clock, context);
    }

    /// A task of the kernel was not there when it was booted.
    pub fn note_started(&mut self, context: ContextId) {
        self.of_mut(context).is_started = true;
    }

    /// Whether workers share their threads here: where computing is accounted for in steps, it
    /// matters which of them has missed what.
    pub fn has_pool(&self) -> bool {
        matches!(self.run_queue, RunQueue::Stepped(_))
    }

    /// The threads that workers share.
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// A running task goes to sleep and leaves its core; `rests` if it has nothing to do.
    pub fn block(&mut self, clock: &mut Clock, context: ContextId, rests: bool) {
        let computing = self.of_mut(context);
        assert_eq!(computing.state, State::Running, "task {} goes to sleep", context.0);
        computing.state = State::Blocked;
        let core = usize::from(computing.core);
        if rests && let Some(next) = self.pool.rests(context) {
            // Its thread goes on.
            self.call_thread(clock);
            return self.assign(clock, next, core);
        }
        if let RunQueue::Stepped(queue) = &mut self.run_queue {
            queue.sleep(clock.ticked(), false);
        }
        self.leave_core(clock, core);
    }

    /// A task exits and leaves its core.
    pub fn leave(&mut self, clock: &mut Clock, context: ContextId) {
        let computing = self.of_mut(context);
        computing.state = State::Gone;
        let core = usize::from(computing.core);
        if self.cores[core].owner == Some(context) {
            if let RunQueue::Stepped(queue) = &mut self.run_queue {
                queue.sleep(clock.ticked(), true);
            }
            self.leave_core(clock, core);
        }
    }

    /// Whether a task would leave its core if it went on.
    pub fn is_to_leave(&self, context: ContextId) -> bool {
        matches!(&self.run_queue, RunQueue::Stepped(queue) if queue.must_switch())
            && self.of(context).is_in_user_mode()
    }

    /// Whether others are to have the core of a task as soon as it is out of the kernel.
    pub fn is_wanted(&self, context: ContextId) -> bool {
        matches!(&self.run_queue, RunQueue::Stepped(queue) if queue.must_switch())
            && self.of(context).is_program
    }

    /// The task that runs is to leave its core for a moment.
    pub fn disturb(&mut self, clock: &Clock, context: ContextId) {
        if let RunQueue::Stepped(queue) = &mut self.run_queue {
            queue.disturb(clock.ticked());
        }
        self.make_ready(context);
    }

    /// The timer has fired for a sleeper. A tick of this instant came with it, and is accounted
    /// before the sleeper is there to be charged.
    // Observed on 6.1.192: hrtimer_expire_entry tells of a tick and of fio's main process at one
    // instant, and sched_stat_runtime of nobody.
    pub fn timer_fires(&mut self, clock: &mut Clock) {
        if let RunQueue::Stepped(queue) = &mut self.run_queue {
            queue.account(clock.ticked());
        }
        clock.fired();
    }

    /// The timer has fired for a job that begins, so much late. A tick of this instant came with
    /// it, and is accounted before anybody new is there to be charged.
    pub fn let_begin(&mut self, clock: &mut Clock, delay: Duration) {
        if let RunQueue::Stepped(queue) = &mut self.run_queue {
            queue.account(clock.now());
        }
        clock.lets_begin(delay);
    }

    /// Gives the core to whoever goes first, if it is idle; false when nobody does.
    pub fn pick_next(&mut self, clock: &mut Clock) -> bool {
        let RunQueue::Stepped(queue) = &mut self.run_queue else { return false };
        if self.cores[0].owner.is_some() || self.cores[0].in_interrupt {
            return false;
        }
        let next = loop {
            let Some(thread) = queue.pick(clock.ticked()) else { return false };
            match self.pool.comes(thread) {
                Some(next) => break next,
                None => queue.sleep(clock.ticked(), false),
            }
        };
        if !clock.works() {
            clock.work();
        }
        self.call_thread(clock);
        self.assign(clock, next, 0);
        true
    }

    /// A thread of the pool wakes if something is left for one.
    fn call_thread(&mut self, clock: &Clock) {
        if let Some(thread) = self.pool.call() {
            self.wake_thread(clock, thread);
        }
    }

    fn wake_thread(&mut self, clock: &Clock, thread: ContextId) {
        let computing = &self.contexts[thread.0 as usize];
        if let RunQueue::Stepped(queue) = &mut self.run_queue {
            queue.wake(clock.ticked(), thread, computing.cpu_nice(), computing.is_started);
        }
    }

    /// Nothing is left to run for the moment.
    pub fn rest(&mut self, clock: &mut Clock) {
        if clock.works() && self.cores[0].owner.is_none() {
            clock.rest();
        }
    }

    /// Whether a context that goes on now would have its core until then if nothing happened, and
    /// owes nothing.
    pub fn keeps_core(&self, context: ContextId, until: Instant) -> bool {
        let core = &self.cores[usize::from(self.core_of(context))];
        let has_slice = || until < core.slice_start + self.time_slice && !core.yields;
        let takes_turns = matches!(self.run_queue, RunQueue::InTurn(_));
        !self.owes(context) && (self.is_interrupt(context) || (takes_turns && has_slice()))
    }

    /// Whether a task has to leave its core to others now, and does.
    pub(super) fn must_leave(&mut self, clock: &Clock, context: ContextId, core: usize) -> bool {
        if self.of(context).is_in_user_mode() && matches!(self.run_queue, RunQueue::Stepped(_)) {
            return self.gives_way(clock, context);
        }
        let RunQueue::Stepped(queue) = &mut self.run_queue else {
            return self.slice_is_over(clock, context, core);
        };
        queue.account(clock.ticked());
        false
    }

    /// Takes the core from a task in the kernel that looks whether others are to have it; whether
    /// they are. Where tasks take turns it loses the core anywhere.
    pub fn gives_way(&mut self, clock: &Clock, context: ContextId) -> bool {
        let core = usize::from(self.core_of(context));
        let RunQueue::Stepped(queue) = &mut self.run_queue else { return false };
        queue.account(clock.ticked());
        if !queue.must_switch() {
            return false;
        }
        queue.put_back();
        self.moves(clock, context, State::Runnable);
        self.cores[core].owner = None;
        true
    }

    fn slice_is_over(&mut self, clock: &Clock, context: ContextId, core: usize) -> bool {
        let elapsed = clock.now().saturating_since(self.cores[core].slice_start);
        let in_the_middle = self.of(context).paid != Paid::Nothing
            || self.lock.holder == Some(context)
            || self.cores[core].moves_data
            || self.of(context).spins;
        let is_over = elapsed >= self.time_slice || self.cores[core].yields;
        if !is_over || in_the_middle {
            return false;
        }
        let RunQueue::InTurn(queue) = &self.run_queue else { return false };
        if !queue.iter().any(|other| self.allows(*other, core)) {
            self.cores[core].yields = false;
            self.cores[core].slice_start = clock.now();
            return false;
        }
        self.moves(clock, context, State::Runnable);
        self.in_turn().push_back(context);
        self.leave_core(clock, core);
        true
    }

    fn leave_core(&mut self, clock: &Clock, core: usize) {
        self.cores[core].owner = None;
        let RunQueue::InTurn(queue) = &self.run_queue else { return };
        let next = match self.shares_fairly {
            true => self.least_served(queue),
            false => (0..queue.len()).find(|n| self.allows(queue[*n], core)),
        };
        match next.and_then(|n| self.in_turn().remove(n)) {
            Some(next) => self.assign(clock, next, core),
            None => self.cores[core].idled += 1,
        }
    }

    /// Finds a core for a task: the one it ran on last, another idle one, or none yet.
    fn place(&mut self, clock: &mut Clock, context: ContextId) {
        if let RunQueue::Stepped(_) = self.run_queue {
            let own = self.pool.thread_of(context);
            if let Some(thread) = own.or_else(|| self.pool.has_work(context)) {
                self.wake_thread(clock, thread);
            }
            return self.suspend_for_others(clock);
        }
        self.forgive(context);
        let last = usize::from(self.core_of(context));
        let idle = |cpus: &Cpus, core: usize| {
            cpus.cores[core].owner.is_none() && cpus.allows(context, core)
        };
        if idle(self, last) {
            return self.assign(clock, context, last);
        }
        match (0..self.cores.len()).find(|core| idle(self, *core)) {
            Some(core) => self.assign(clock, context, core),
            None if self.of(context).is_urgent || self.goes_before_new_owner(context, last) => {
                self.displace(clock, context, last)
            }
            None => {
                self.in_turn().push_back(context);
                self.cores[last].yields |= self.goes_before_owner(context, last);
            }
        }
    }

    /// A task that computes in user mode is stopped at once when it has to leave its core.
    fn suspend_for_others(&mut self, clock: &mut Clock) {
        let Some(owner) = self.cores[0].owner else { return };
        if self.cores[0].in_interrupt || !self.is_to_leave(owner) {
            return;
        }
        if self.stop_charge(clock, 0).is_some() {
            self.make_ready(owner);
        }
    }

    fn in_turn(&mut self) -> &mut VecDeque<ContextId> {
        match &mut self.run_queue {
            RunQueue::InTurn(queue) => queue,
            RunQueue::Stepped(_) => panic!("tasks do not take turns here"),
        }
    }

    /// An urgent task takes the core of one that has not begun, or is the next.
    fn displace(&mut self, clock: &Clock, context: ContextId, core: usize) {
        let owner = self.cores[core].owner.filter(|_| !self.cores[core].has_begun);
        match owner {
            Some(owner) => {
                self.moves(clock, owner, State::Runnable);
                self.in_turn().push_front(owner);
                self.assign(clock, context, core);
            }
            None => self.in_turn().push_front(context),
        }
    }

    fn allows(&self, context: ContextId, core: usize) -> bool {
        self.of(context).affinity.as_ref().is_none_or(|set| set.contains(core as u16))
    }

    fn assign(&mut self, clock: &Clock, context: ContextId, core: usize) {
        self.cores[core].owner = Some(context);
        self.cores[core].slice_start = clock.now();
        self.cores[core].has_begun = false;
        self.cores[core].yields = false;
        let switch = self.price_of_switch();
        let computing = self.of_mut(context);
        computing.core = core as u16;
        computing.debt += switch;
        self.moves(clock, context, State::Running);
        self.make_ready(context);
    }

    /// A task gets a core or loses it.
    fn moves(&mut self, clock: &Clock, context: ContextId, state: State) {
        self.of_mut(context).state = state;
        if let Some(moves) = &mut self.moves {
            moves.push((clock.now(), context, state));
        }
    }

    fn price_of_switch(&mut self) -> Duration {
        let Costs { switch, switch_spread, .. } = self.prices.costs;
        match switch_spread.as_nanos() {
            0 => switch,
            spread => switch + Duration::from_nanos(self.switches.below(spread + 1)),
        }
    }
}
