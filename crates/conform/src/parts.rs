//! What was found in the parts of a recording, put together.

use crate::history::{Given, History};
use crate::slots::Outcome;
use crate::{Conformity, MergeDifferences, MessageAgreement};
use base::{Duration, Instant};

/// What is odd about a recording, or how it was replayed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Oddities {
    /// When the first step of a part was.
    start: Instant,
    /// Records that fit no request.
    unmatched: u64,
    /// What was left out at the beginning.
    left_out: Duration,
    /// Merges that came after ours had issued.
    too_late: u64,
    /// How often the driver gave requests back.
    requeues: u64,
    /// Parts beyond the first.
    further_parts: u64,
}

impl Oddities {
    pub fn of(history: &History, outcome: &Outcome) -> Oddities {
        Oddities {
            start: history.steps.first().map_or(Instant::ZERO, |step| step.at),
            unmatched: history.unmatched,
            left_out: history.left_out,
            too_late: outcome.too_late,
            requeues: outcome.requeues,
            further_parts: 0,
        }
    }
}

impl Conformity {
    /// Adds what the next part of the recording has.
    pub(crate) fn append(&mut self, next: Conformity) {
        if let Some(mut first) = next.first_difference.filter(|_| self.first_difference.is_none()) {
            first.number += self.dispatches as usize;
            first.at += next.oddities.start.saturating_since(self.oddities.start);
            self.first_difference = Some(first);
        }
        self.dispatches += next.dispatches;
        self.contested += next.contested;
        self.contested_deep += next.contested_deep;
        self.agreed += next.agreed;
        self.null_agreed += next.null_agreed;
        self.free_agreed += next.free_agreed;
        self.withheld.0 += next.withheld.0;
        self.withheld.1 += next.withheld.1;
        self.excluded += next.excluded;
        self.tick_phase = self.tick_phase.or(next.tick_phase);
        next.classes.into_iter().for_each(|it| *self.classes.entry(it.0).or_insert(0) += it.1);
        self.merges_that_differ.add(next.merges_that_differ);
        self.given.add(&next.given);
        match (&mut self.messages, next.messages) {
            (Some(messages), Some(next)) => messages.append(next),
            (messages, next) => *messages = messages.take().or(next),
        }
        self.oddities.unmatched += next.oddities.unmatched;
        self.oddities.left_out += next.oddities.left_out;
        self.oddities.too_late += next.oddities.too_late;
        self.oddities.requeues += next.oddities.requeues;
        self.oddities.further_parts += 1;
    }

    /// Says what is odd.
    pub(crate) fn with_remarks(mut self) -> Conformity {
        let Oddities { unmatched, left_out, too_late, requeues, further_parts, .. } = self.oddities;
        let mut say = |is_so: bool, text: String| self.remarks.extend(is_so.then_some(text));
        say(unmatched > 0, format!("{unmatched} records fit no request"));
        let left_out_ms = left_out.as_millis();
        let text = format!("begins amid requests: its first {left_out_ms} ms are left out");
        say(!left_out.is_zero(), text);
        say(too_late > 0, format!("{too_late} merges came after ours had issued"));
        self.remarks.extend(said_of(self.merges_that_differ));
        let mut say = |is_so: bool, text: String| self.remarks.extend(is_so.then_some(text));
        say(requeues > 0, format!("the driver gave requests back {requeues} times"));
        let parts = further_parts + 1;
        say(parts > 1, format!("is so long that it was judged in {parts} parts"));
        self
    }
}

impl MergeDifferences {
    fn add(&mut self, more: MergeDifferences) {
        self.contiguous += more.contiguous;
        self.equal_positions += more.equal_positions;
        self.unexplained += more.unexplained;
    }
}

impl Given {
    fn add(&mut self, more: &Given) {
        self.by_next_request += more.by_next_request;
        self.by_activations += more.by_activations;
        self.by_usual_time += more.by_usual_time;
        self.issues += more.issues;
        self.insertions += more.insertions;
        self.taken_out += more.taken_out;
    }
}

impl MessageAgreement {
    fn append(&mut self, next: MessageAgreement) {
        self.kernel += next.kernel;
        self.ours += next.ours;
        self.both += next.both;
        next.more.into_iter().for_each(|it| *self.more.entry(it.0).or_insert(0) += it.1);
        self.more.retain(|_, count| *count != 0);
        self.first = self.first.take().or(next.first);
    }
}

fn said_of(merges: MergeDifferences) -> Option<String> {
    let parts = [
        (merges.contiguous, "of contiguous memory"),
        (merges.equal_positions, "at equal positions"),
        (merges.unexplained, "unexplained"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, why)| format!("{count} {why}")).collect();
    let total = merges.total();
    let list = parts.join(", ");
    (total > 0).then(|| format!("{total} bios would have been merged otherwise: {list}"))
}
