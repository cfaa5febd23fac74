//! Fairness among tasks that take turns on one core, as kernels from 2.6.23 to 6.5 have it: the
//! task goes next that has had least of the core (sched-design-CFS). One that wakes has missed no
//! more than half a period, and stops the one that runs if that has had more by the granularity
//! of waking.
//!
// Divergence: nice values do not weigh; with several cores tasks simply take turns.

use super::{Cpus, RunQueue};
use base::Duration;
use block::ContextId;
use std::collections::VecDeque;

/// Half of the period in which every task has its turn, on one core.
// sysctl documentation: sched_latency_ns, 6 ms
const FORGIVEN: Duration = Duration::from_millis(3);
/// By how much more the running task must have had.
// sysctl documentation: sched_wakeup_granularity_ns, 1 ms on one core
const GRANULARITY: Duration = Duration::from_millis(1);

impl Cpus {
    /// A context has had the core.
    pub(super) fn note_served(&mut self, context: ContextId, time: Duration) {
        if self.is_interrupt(context) {
            return;
        }
        self.of_mut(context).served += time;
        if self.shares_fairly {
            let running = self.of(context).served;
            let RunQueue::InTurn(queue) = &self.run_queue else { return };
            let waiting = queue.iter().map(|task| self.of(*task).served);
            let least = waiting.fold(running, Duration::min);
            self.least_served = self.least_served.max(least);
        }
    }

    /// A task wakes: it is not owed for all the time it slept.
    pub(super) fn forgive(&mut self, context: ContextId) {
        let floor = self.least_served.saturating_sub(FORGIVEN);
        let computing = self.of_mut(context);
        computing.served = computing.served.max(floor);
    }

    /// Whether a task that wakes stops the one that runs.
    pub(super) fn goes_before_owner(&self, context: ContextId, core: usize) -> bool {
        let served = |task: ContextId| self.of(task).served;
        let owner = self.cores[core].owner;
        let late = |owner: ContextId| served(owner) > served(context) + GRANULARITY;
        self.shares_fairly && owner.is_some_and(late)
    }

    /// Whether a task goes before one that was given the idle core but has not begun: both were
    /// woken before anybody was chosen, and that is who has had less. Where nothing costs anything
    /// there is nothing to share.
    pub(super) fn goes_before_new_owner(&self, context: ContextId, core: usize) -> bool {
        let owner = self.cores[core].owner.filter(|_| !self.cores[core].has_begun);
        let has_had_more = |owner: ContextId| {
            !self.of(owner).is_urgent && self.of(owner).served > self.of(context).served
        };
        self.shares_fairly && !self.prices.free && owner.is_some_and(has_had_more)
    }

    /// The place in the queue of the task that has had least.
    pub(super) fn least_served(&self, queue: &VecDeque<ContextId>) -> Option<usize> {
        let key = |n: &usize| {
            let computing = self.of(queue[*n]);
            (!computing.is_urgent, computing.served)
        };
        (0..queue.len()).min_by_key(key)
    }
}
