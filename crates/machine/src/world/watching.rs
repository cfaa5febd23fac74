//! What observers are told of tasks, if they ask: when one falls asleep and for what, who wakes it,
//! and when it has a core. Scheduling of cores is the kernel's `sched_switch` and `sched_waking`.

use super::World;
use crate::cpus::State;
use block::{Action, CommitPhase, ContextId, Event, Tag};

impl World {
    /// A task goes to sleep.
    pub(super) fn tell_blocking(&mut self, context: ContextId) {
        if self.tells_tasks {
            self.tell_moves();
            self.tell(context, Action::Blocks(self.tasks.wait(context).told()));
        }
    }

    /// A sleeping task is woken.
    pub(super) fn tell_waking(&mut self, context: ContextId) {
        if self.tells_tasks && self.cpus.state(context) == State::Blocked {
            self.tell_moves();
            self.tell(context, Action::Wakes { by: self.acting });
        }
    }

    /// Tasks have got cores, or lost them.
    pub(super) fn tell_moves(&mut self) {
        for (at, context, state) in self.cpus.take_moves() {
            let action = if state == State::Running { Action::Runs } else { Action::Preempted };
            self.log(|| Event { at, context, ..Event::note(action) });
        }
    }

    /// A commit of the journal goes on to a phase, or is over.
    pub fn tell_commit(&mut self, who: ContextId, transaction: u64, phase: Option<CommitPhase>) {
        self.tell_asked(who, || Action::Commits { transaction, phase });
    }

    /// Tells what only those are told who ask.
    pub fn tell_asked(&mut self, who: ContextId, action: impl FnOnce() -> Action) {
        if self.tells_tasks {
            self.tell_moves();
            self.tell(who, action());
        }
    }

    /// The device is done with a command: tells what it did for it.
    pub(super) fn tell_served(&mut self, context: ContextId, tag: Tag) {
        if self.tells_tasks {
            let (at, stages) = (self.clock.now(), self.disk.take_stages(tag));
            let request = self.storage.queue().issued_as(tag).filter(|_| !stages.is_empty());
            request.inspect(|_| {
                self.log(|| Event { at, context, request, ..Event::note(Action::Served(stages)) });
            });
        }
    }

    fn tell(&mut self, context: ContextId, action: Action) {
        let at = self.clock.now();
        self.log(|| Event { at, context, ..Event::note(action) });
    }
}
