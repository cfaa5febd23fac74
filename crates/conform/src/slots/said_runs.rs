//! Runs of the queue of which messages tell ([`trace::blktrace::runs`]): nothing is inferred.

use super::Run;
use crate::history::{RunEvent, Step, What};
use base::Instant;
use block::ContextId;

impl Run<'_> {
    /// Runs that issued nothing, as far as messages tell of them.
    pub(super) fn heed_run(&mut self, now: Instant, task: ContextId, what: What) {
        match what {
            What::Run(RunEvent::Begins) if !self.issues_next(task) => {
                self.run_in_vain(now + self.behind);
            }
            // Before it sleeps it runs the queue, and then inserts what it holds.
            What::Starve => {
                self.sleepers.remove(&task);
                let has_run = std::mem::take(&mut self.next_run_begun);
                if !has_run && !self.issues_next(task) {
                    self.run_in_vain(now + self.behind);
                }
            }
            // The first time it has done so already. When it is woken it runs the queue again.
            What::Run(RunEvent::Sleeps) if self.sleepers.insert(task) => {}
            What::Run(RunEvent::Sleeps) | What::Recover if self.issuer != Some(task) => {
                self.run_in_vain(now);
            }
            _ => {}
        }
        self.last = now;
        if !is_aside(what) {
            self.issuer = Some(task).filter(|_| matches!(what, What::Issue));
        }
    }

    /// Whether what a task issues at this step is of its next run: the scheduler withholds, and
    /// behind what the task issues it sleeps for a tag. Before that it runs the queue again. If so,
    /// the sleep brings no further run.
    pub(super) fn begins_next_run(&mut self) -> bool {
        let steps = &self.history.steps[self.index..];
        let [first, after @ ..] = steps else { return false };
        let mut after = after.iter().filter(|step| !is_aside(step.what));
        let next = after.find(|step| !matches!(step.what, What::Issue) || step.task != first.task);
        let starves = |next: &Step| matches!(next.what, What::Starve) && next.task == first.task;
        self.next_run_begun = self.history.tells_runs && next.is_some_and(starves);
        self.next_run_begun
    }

    /// Whether who issued at this step has a worker run the queue. It does when it leaves the rest
    /// of its run, and also when it parks a request.
    pub(super) fn is_left_to_worker(&self) -> bool {
        let at = |index: usize| self.history.steps.get(index);
        let (Some(step), Some(next)) = (at(self.index), at(self.index + 1)) else { return false };
        matches!(next.what, What::Run(RunEvent::Wanted)) && next.task == step.task
    }
}

/// Whether something happens in an interrupt, and whoever had the core goes on.
pub(super) fn is_aside(what: What) -> bool {
    matches!(what, What::Complete | What::Run(RunEvent::Wanted))
}

/// The next step at which whoever had the core goes on, or loses it.
pub(super) fn next_of(steps: &[Step]) -> Option<&Step> {
    steps.iter().find(|next| !is_aside(next.what))
}
