//! Moments at which the queue may have been run, and what the recording says of them.
//!
//! A run that issues nothing leaves no record, but it may park a request. Often what comes later
//! shows that there was no run yet: the driver had room and issued nothing; something is merged
//! into the request that would have been parked; or another request is issued next. In the last
//! case the choice itself tells when the queue was run. Such a decision is not judged, if ours
//! agrees at one of the moments that are left.

use super::Run;
use crate::history::{History, Traced, What};
use crate::replica::Taken;
use base::Instant;
use block::{ContextId, RequestId};
use std::collections::{BTreeMap, BTreeSet};

/// What is assumed to be other than usual, by the step.
#[derive(Clone, Debug, Default)]
pub struct Assumed {
    /// Whether the queue was run just before it.
    pub runs: BTreeMap<usize, bool>,
    /// How often the scheduler was asked in vain once more, then.
    pub more: BTreeMap<usize, u32>,
    /// Whether from then on a worker has the core before the task that wakes it goes on.
    pub goes_first: BTreeMap<usize, bool>,
    /// In which word the search for a token begins, of a domain of Kyber that got another number of
    /// tokens before the step.
    pub words: BTreeMap<(usize, String), u32>,
}

impl Assumed {
    /// Everything is as usual.
    pub fn is_empty(&self) -> bool {
        let has_runs = !self.runs.is_empty() || !self.more.is_empty();
        !has_runs && self.goes_first.is_empty() && self.words.is_empty()
    }
}

/// What is not known of unseen runs, and hangs on nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The queue may have been run just before a step, and is thought to have been or not.
    Run(usize, bool),
    /// At a step the scheduler was asked and withheld. It may have been asked more often.
    Hold(usize),
    /// At a step it matters whether a worker has the core before the task that wakes it goes on,
    /// and what is thought of that.
    Turn(usize, bool),
    /// Before a step this domain of Kyber got another number of tokens. A search that would begin
    /// beyond it begins anywhere: the kernel draws where (rule tags-8).
    Search(usize, String),
}

/// What the recording says later.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// For each step, which request is issued next, at that step or later.
    issues: Vec<Option<Traced>>,
    /// For each request, the last step at which it grew or was joined to another.
    changes: Vec<Option<usize>>,
    /// Tasks that submit.
    submitters: BTreeSet<ContextId>,
}

impl Ahead {
    pub(super) fn of(history: &History) -> Ahead {
        let mut issues = vec![None; history.steps.len()];
        let mut changes = vec![None; history.requests.len()];
        let mut next = None;
        for (index, step) in history.steps.iter().enumerate().rev() {
            match step.what {
                // What goes around the scheduler says nothing of its choice.
                What::Issue if !history.requests[step.rq].bypasses => next = Some(step.rq),
                What::Merge(..) => {
                    changes[step.rq].get_or_insert(index);
                }
                What::Join { into, .. } => {
                    changes[step.rq].get_or_insert(index);
                    changes[into].get_or_insert(index);
                }
                _ => {}
            }
            issues[index] = next;
        }
        let submitters = history.requests.iter().map(|life| life.bio.origin.context).collect();
        Ahead { issues, changes, submitters }
    }

    /// Which request is issued next, at this step or later.
    pub(super) fn issued_from(&self, step: usize) -> Option<Traced> {
        self.issues.get(step).copied().flatten()
    }

    /// Whether a task is a worker: it submits nothing itself.
    pub(super) fn is_worker(&self, task: ContextId) -> bool {
        !self.submitters.contains(&task)
    }
}

impl Run<'_> {
    /// Whether the queue was run just before this step, where it may have been. A worker that has
    /// not run yet when it usually would have does so when nobody else has anything to do.
    pub(super) fn assume(&mut self, now: Instant, usual: bool) -> bool {
        let then = self.last;
        self.is_late &= !self.is_pause(now);
        if self.is_late {
            return false;
        }
        let ran = self.assumed.runs.get(&self.index).copied().unwrap_or(usual);
        self.is_late = usual && !ran;
        if !self.parked && self.may_ask() && !self.is_impossible(then) {
            if self.turns_change && self.worker_wanted {
                self.outcome.moments.push(Moment::Turn(self.index, self.worker_goes_first));
            }
            self.outcome.moments.push(Moment::Run(self.index, ran));
        }
        ran
    }

    /// The scheduler has withheld, and may be asked more often than is usual.
    pub(super) fn ask_more(&mut self, now: Instant) {
        let hold = Moment::Hold(self.index);
        if self.follows || self.outcome.moments.last() == Some(&hold) {
            return;
        }
        self.outcome.moments.push(hold);
        for _ in 0..self.assumed.more.get(&self.index).copied().unwrap_or(0) {
            let Some(saved) = self.replica.save(now) else { return };
            if !matches!(self.replica.ask(now), Taken::Hold(_)) {
                self.replica.restore(&saved);
            }
        }
    }

    /// What the scheduler said, if that is that a domain has another number of tokens.
    pub(super) fn note_search(&mut self, text: &str) {
        let Some(said) = text.strip_prefix("kyber_adjust: ").filter(|_| !self.follows) else {
            return;
        };
        let domain = said.split(' ').next().unwrap_or_default().to_string();
        let key = (self.index, domain);
        if let Some(word) = self.assumed.words.get(&key) {
            self.replica.heed(self.last, &format!("kyber_searches_word: {} {word}", key.1), None);
        }
        self.outcome.moments.push(Moment::Search(key.0, key.1));
    }

    /// Whether the recording shows that the queue was not run at a moment at which it may have
    /// been.
    pub(super) fn is_refuted(&mut self, then: Instant) -> bool {
        self.is_refuted_from(self.index, then)
    }

    /// The same, if what is issued at this step or later is not issued yet.
    pub(super) fn is_refuted_from(&mut self, step: usize, then: Instant) -> bool {
        if self.is_impossible(then) {
            return true;
        }
        let has_room = self.in_flight < self.depth;
        if has_room || self.parked || self.requeued > 0 || self.follows || !self.may_ask() {
            return false;
        }
        let Some(rq) = self.would_give(then).map(|id| self.traced[&id]) else { return false };
        let is_other = self.ahead.issued_from(step).is_some_and(|next| self.is_other(rq, next));
        self.is_told |= is_other;
        is_other
    }

    /// Whether what is issued next is not `rq`. What is parked goes before all that is inserted,
    /// and after what the driver gave back.
    fn is_other(&mut self, rq: Traced, recorded: Traced) -> bool {
        let next = self.names[recorded];
        let looks = match self.is_waiting(next) {
            true => self.looks(next),
            // It comes later.
            false if !self.slots.contains_key(&next) => {
                let life = &self.history.requests[recorded];
                Some((life.bio.op, life.sector, life.sectors))
            }
            false => return false,
        };
        rq != next && self.looks(rq) != looks
    }

    /// Whether the driver had room and would have been given a request, but issued none; or would
    /// have been given one that has not grown to its size.
    pub(super) fn is_impossible(&mut self, then: Instant) -> bool {
        let has_room = self.in_flight < self.depth;
        if self.parked || !self.may_ask() {
            return self.parked && has_room;
        }
        let Some(id) = self.would_give(then) else { return false };
        has_room || self.changes_later(self.traced[&id])
    }

    fn changes_later(&self, rq: Traced) -> bool {
        let recorded = match self.names[rq] == rq {
            true => Some(rq),
            false => self.names.iter().position(|name| *name == rq),
        };
        let last = recorded.and_then(|recorded| self.ahead.changes[recorded]);
        last.is_some_and(|last| last >= self.index)
    }

    /// What our scheduler would give if it were asked.
    fn would_give(&mut self, then: Instant) -> Option<RequestId> {
        let saved = self.replica.save(then)?;
        let answer = self.replica.ask(then);
        self.replica.restore(&saved);
        match answer {
            Taken::Chosen(id, _) => Some(id),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Life, Step};
    use base::{Sector, Sectors};
    use block::scheduler::Merge;
    use block::{Bio, Flags, Op, Origin};

    #[test]
    fn what_comes_later_is_known_and_who_only_works_for_others() {
        let bio = Bio {
            op: Op::Read,
            flags: Flags::NONE,
            sector: Sector(0),
            sectors: Sectors(8),
            ioprio: block::Ioprio::default(),
            origin: Origin { context: ContextId(2), ..Origin::default() },
            token: 0,
        };
        let step = |rq, what| Step { at: Instant::ZERO, task: ContextId(2), rq, what };
        let steps = vec![
            step(1, What::Issue),
            step(0, What::Merge(bio, Merge::Back)),
            step(0, What::Issue),
            step(1, What::Complete),
        ];
        let mut history = History { steps, ..History::default() };
        history.requests.extend([Life::of(bio), Life::of(bio)]);
        let ahead = Ahead::of(&history);
        assert_eq!(ahead.issues, [Some(1), Some(0), Some(0), None]);
        assert_eq!(ahead.changes, [Some(1), None]);
        assert!(ahead.is_worker(ContextId(3)) && !ahead.is_worker(ContextId(2)));
    }
}
