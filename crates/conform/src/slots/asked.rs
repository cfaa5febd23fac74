//! Runs of the queue of which the scheduler says when it was asked, and what it answered: BFQ
//! writes a message each time.

use super::{Ours, Run};
use crate::history::Answer;
use base::Instant;

impl Run<'_> {
    /// Ours is asked where the kernel's was.
    pub(super) fn ask_as_said(&mut self, now: Instant, answer: Answer) {
        while self.replica.pass_time(now).is_some() {
            self.replica.take_wants_run();
        }
        self.note_events();
        match answer {
            Answer::Gives => {
                let taken = self.replica.park(now);
                let ours = self.understand(taken);
                self.asked.push_back(ours);
            }
            Answer::Withholds | Answer::Refuses => self.withhold_as_said(now),
        }
        self.note_events();
    }

    fn withhold_as_said(&mut self, now: Instant) {
        let saved = self.replica.save(now);
        let asked = self.replica.ask(now);
        let held = matches!(self.understand(asked), Ours::Held(_) | Ours::Nothing);
        self.outcome.withheld += 1;
        self.outcome.both_withheld += u64::from(held);
        if let Some(saved) = saved.filter(|_| !held) {
            self.replica.restore(&saved);
        }
    }
}
