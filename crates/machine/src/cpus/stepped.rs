//! One core whose computing is charged in steps: who computes next, by the kernel's rule.

use super::eevdf::Eevdf;
use super::fair::Fair;
use base::{Duration, Instant};
use block::ContextId;
use block::kernel::Sharing;

/// The tasks that are runnable.
pub(crate) enum Stepped {
    /// Who has had least goes first.
    Fair(Fair),
    /// The earliest virtual deadline goes first.
    Deadlines(Eevdf),
}

/// The same call for either.
macro_rules! either {
    ($stepped:expr, $queue:ident => $call:expr) => {
        match $stepped {
            Stepped::Fair($queue) => $call,
            Stepped::Deadlines($queue) => $call,
        }
    };
}

impl Stepped {
    /// An empty queue that charges computing in steps.
    pub fn new(sharing: Sharing, step: Duration) -> Stepped {
        match sharing {
            Sharing::LeastServed => Stepped::Fair(Fair::new(step)),
            Sharing::EarliestDeadline => Stepped::Deadlines(Eevdf::new(step)),
        }
    }

    /// When the step that has begun is over.
    pub fn step_end(&self, now: Instant) -> Instant {
        either!(self, queue => queue.step_end(now))
    }

    /// Whether the running task is to leave the core when it is not in the kernel.
    pub fn must_switch(&self) -> bool {
        either!(self, queue => queue.must_switch())
    }

    /// Charges the running task with the steps that ended.
    pub fn account(&mut self, now: Instant) {
        either!(self, queue => queue.account(now));
    }

    /// A task wakes, or `begins`: those of the kernel have slept since it was booted.
    pub fn wake(&mut self, now: Instant, context: ContextId, nice: i8, begins: bool) {
        match self {
            Stepped::Fair(queue) => queue.wake(now, context, nice, begins),
            Stepped::Deadlines(queue) => queue.wake(now, context, nice, begins),
        }
    }

    /// The running task falls asleep, or exits.
    pub fn sleep(&mut self, now: Instant, exits: bool) {
        match self {
            Stepped::Fair(queue) => queue.sleep(now),
            Stepped::Deadlines(queue) => queue.sleep(now, exits),
        }
    }

    /// The running task leaves the core and stays runnable.
    pub fn put_back(&mut self) {
        either!(self, queue => queue.put_back());
    }

    /// The running task puts work off, which a thread does as soon as it has the core.
    pub fn disturb(&mut self, now: Instant) {
        match self {
            Stepped::Fair(queue) => queue.disturb(),
            Stepped::Deadlines(queue) => queue.disturb(now),
        }
    }

    /// Gives the core to whoever is first.
    pub fn pick(&mut self, now: Instant) -> Option<ContextId> {
        either!(self, queue => queue.pick(now))
    }
}
