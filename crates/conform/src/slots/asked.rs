//! Runs of the queue of which the kernel says when it was asked, and whether it gave something: BFQ
//! writes a message each time.

use super::{Ours, Run};
use crate::history::History;
use base::Instant;

/// It is asked.
const ASKED: &str = "bfq dispatch requests: ";
/// It gave something, or nothing.
const GAVE: &str = "select_queue: returned this queue";
const GAVE_NOTHING: &str = "select_queue: no queue returned";

/// Whether a recording has such messages.
pub(super) fn are_said(history: &History) -> bool {
    history.messages.iter().any(|said| said.text.starts_with(ASKED))
}

impl Run<'_> {
    /// What was said after a step and before the next: ours is asked where the kernel was.
    pub(super) fn follow_said_runs(&mut self, index: usize) {
        let next = self.history.steps.get(index + 1);
        let until = next.map_or(Instant::FAR_FUTURE, |next| next.at);
        let history = self.history;
        while let Some(said) = history.messages.get(self.heard).filter(|said| said.at < until) {
            self.heard += 1;
            if said.text.starts_with(ASKED) {
                let rest = &history.messages[self.heard..];
                let mut rest = rest.iter().take_while(|it| !it.text.starts_with(ASKED));
                let answer = rest
                    .find(|it| it.text.ends_with(GAVE) || it.text.ends_with(GAVE_NOTHING))
                    .map(|it| it.text.ends_with(GAVE));
                if let Some(gave) = answer {
                    self.ask_as_said(said.at + self.phase, gave);
                }
            }
        }
    }

    fn ask_as_said(&mut self, now: Instant, gave: bool) {
        while self.replica.pass_time(now).is_some() {
            self.replica.take_wants_run();
        }
        self.note_events();
        if gave {
            let taken = self.replica.park(now);
            let ours = self.understand(taken);
            self.asked.push_back(ours);
        } else {
            let saved = self.replica.save(now);
            let asked = self.replica.ask(now);
            let held = matches!(self.understand(asked), Ours::Held(_) | Ours::Nothing);
            self.outcome.withheld += 1;
            self.outcome.both_withheld += u64::from(held);
            if let Some(saved) = saved.filter(|_| !held) {
                self.replica.restore(&saved);
            }
        }
        self.note_events();
    }
}
