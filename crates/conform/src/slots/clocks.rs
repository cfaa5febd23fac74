//! What tasks take for the time: who plugs looks at the clock once, and keeps to that until all it
//! held back is on its way (rule plug-8).

use super::Run;
use super::said_runs::is_aside;
use crate::history::{LOOK, RunEvent, Traced, What};
use base::Instant;
use block::ContextId;

/// Who has the core.
#[derive(Default)]
pub(super) struct Core {
    running: Option<ContextId>,
    /// Who flushes its plug, or has just done so.
    flusher: Option<ContextId>,
    /// When anything last happened.
    last: Instant,
}

impl Run<'_> {
    /// What happens next may end what tasks take for the time.
    pub(super) fn heed_clocks(&mut self, at: Instant, task: ContextId, what: What) {
        self.heed_switch(task, what);
        self.heed_flush(at, task, what);
    }

    /// Whoever lost the core and has it again looks at the clock once more. (Observed on 6.12.117.)
    fn heed_switch(&mut self, task: ContextId, what: What) {
        let goes_on = matches!(what, What::Ask(_)) || is_aside(what);
        if !goes_on && self.core.running.replace(task) != Some(task) {
            self.replica.forget_time(task);
        }
    }

    /// A task that flushes its plug asks for requests until somebody else has the core, or it does
    /// something else. Meanwhile only its looks at the clock take time.
    fn heed_flush(&mut self, at: Instant, task: ContextId, what: What) {
        let is_soon = at <= self.core.last + LOOK;
        self.core.last = at;
        match what {
            What::Insert { .. } | What::Join { .. } => self.core.flusher = Some(task),
            What::Issue if is_soon && self.core.flusher == Some(task) => {}
            What::Ask(_) | What::Complete | What::Run(RunEvent::Wanted) if is_soon => {}
            _ => {
                self.core.flusher = None;
                self.replica.end_flush();
            }
        }
    }

    /// When the task of a request that is recorded at `now` looked at the clock for it, if it
    /// remembers that.
    pub(super) fn looked_at_clock(&self, now: Instant, rq: Traced) -> Option<Instant> {
        let remembers = self.history.requests[rq].remembers;
        remembers.then(|| self.looks_at_clock.at(now, self.is_interrupted()))
    }

    /// Whether an interrupt came while the task looked at the clock for the record of this step.
    fn is_interrupted(&self) -> bool {
        let (before, step) = self.history.steps.split_at(self.index);
        let Some(step) = step.first() else { return false };
        let mut aside = before.iter().rev().take_while(|step| is_aside(step.what));
        aside.any(|other| other.task == step.task && other.at + LOOK == step.at)
    }
}
