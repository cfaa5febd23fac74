//! What a recorded scheduler said, where ours follows it.
//!
//! Ours hears a message after it has dealt with what it was about. So the choice that comes next is
//! its own; the state from which it chooses is the kernel's as far as that was said.

use super::Run;
use crate::history::{Traced, What};
use crate::messages::Said;
use base::Duration;
use std::fmt::Write;

/// What is said of an arrival is said so soon (fitted: two messages of CFQ in the recordings of
/// 4.19.79).
const BEGINS: Duration = Duration::from_micros(12);

impl Run<'_> {
    /// What was said up to the next step, unless that is a choice: then it may be about the choice.
    pub(super) fn heed(&mut self, index: usize) {
        if !self.follows {
            return;
        }
        let (step, next) = (&self.history.steps[index], self.history.steps.get(index + 1));
        let (at, now) = (step.at, step.at + self.phase);
        // Of one moment nobody knows what was said before the choice.
        let is_over = |it: &&Said| match next {
            Some(next) if matches!(next.what, What::Issue) => it.at <= at && it.at < next.at,
            Some(next) => it.at < next.at,
            None => it.at <= at,
        };
        let mut ours = String::new();
        while let Some(said) = self.history.messages.get(self.heard).filter(is_over) {
            self.heard += 1;
            if self.in_our_numbers(&said.text, &mut ours).is_some() {
                self.replica.heed(now, &ours, None);
            }
        }
    }

    /// A request arrives: where it came to in the kernel.
    pub(super) fn heed_arrival(&mut self, index: usize, rq: Traced) {
        let step = self.history.steps[index];
        if !self.follows || self.history.requests[step.rq].given {
            return;
        }
        let next = self.history.steps.get(index + 1);
        let arrives = next.filter(|next| matches!(next.what, What::Insert { .. }));
        let until = arrives.map_or(step.at + BEGINS, |next| next.at.min(step.at + BEGINS));
        let rest = self.history.messages[self.heard..].iter();
        let mut near = rest.skip_while(|it| it.at < step.at).take_while(|it| it.at < until);
        let Some(said) = near.find(|it| it.text.ends_with("insert_request")) else { return };
        let mut ours = String::new();
        let known = self.in_our_numbers(&said.text, &mut ours);
        if let (Some(()), Some(id)) = (known, self.ids[rq]) {
            self.replica.heed(step.at + self.phase, &ours, Some(id));
        }
    }

    /// Writes a message with our number of the task in the name of the queue, if there is one.
    fn in_our_numbers(&self, text: &str, ours: &mut String) -> Option<()> {
        ours.clear();
        let Some(rest) = text.strip_prefix("cfq").filter(|it| !it.starts_with(' ')) else {
            ours.push_str(text);
            return Some(());
        };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let context = self.history.contexts.get(&rest[..digits].parse().ok()?)?;
        write!(ours, "cfq{}{}", context.0, &rest[digits..]).ok()
    }
}
