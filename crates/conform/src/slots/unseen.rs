//! Runs of the queue that are not in a recording, and what the scheduler was asked in them.
//!
//! A run that issues nothing leaves no record. What is known of runs tells when there was one: a
//! task runs the queue when it has inserted all it held, and when it finds no tag; a worker does
//! when a request was inserted otherwise, and a while after the scheduler withheld. What the
//! scheduler then chooses is parked if the driver could not take it.
//!
//! The times below were fitted to recordings of 6.12.117 in virtual time, where a record costs
//! 256 ns and computing costs nothing (`family`). On a machine whose work takes time they are too
//! short.

use super::said_runs::{is_aside, next_of};
use super::{Ours, Run};
use crate::history::{RunEvent, Step, What};
use crate::replica::Taken;
use crate::runs::Runs;
use base::{Duration, Instant};
use block::ContextId;

/// A driver that could have had a request and took none for so long was given none (fitted:
/// longer than a worker that runs the queue is kept from a core).
const WITHHELD_FOR: Duration = Duration::from_millis(1);

/// What is issued so soon after an insertion is issued by the run that followed it (fitted:
/// longer than a run takes to begin).
pub(super) const SAME_RUN: Duration = Duration::from_micros(100);

/// After so long without a record, nobody has anything to do (fitted: a few records of a
/// tracer's clock).
const PAUSE: Duration = Duration::from_micros(2);
/// After the record of an issue a worker reads the clock once more, for the start of the request
/// (observed on 6.1.192, 6.12.117 and 7.3.4 in virtual time, where that takes as long as a record:
/// issues of a list are 512 ns apart).
const START: Duration = Duration::from_nanos(256);
/// A run that issues again so soon after it was interrupted is still the same (fitted: a
/// few records of a tracer's clock).
const INTERRUPT: Duration = Duration::from_micros(1);

impl Run<'_> {
    /// What the kernel's driver did after a step: it asked for a request that it could not take
    /// yet, or it was given none.
    pub(super) fn settle(&mut self, index: usize) {
        let wants_run = self.replica.take_wants_run();
        let has_run = self.has_run(index);
        if self.remembers {
            if has_run || wants_run {
                self.run_remembered(index);
            }
            return;
        }
        if self.requeued > 0 || !has_run {
            return;
        }
        let step = self.history.steps[index];
        let by_worker = matches!(step.what, What::Issue) && self.ahead.is_worker(step.task);
        let late = if by_worker && !self.behind.is_zero() { START } else { Duration::ZERO };
        let now = step.at + self.phase + self.behind + late;
        if self.runs.is_some() {
            let mut after = self.history.steps[index + 1..].iter();
            let next = after.find(|next| !matches!(next.what, What::Run(RunEvent::Wanted)));
            let issues = next.is_some_and(|next| {
                let may_be_its = !self.history.tells_runs || next.task == step.task;
                matches!(next.what, What::Issue) && next.at < step.at + SAME_RUN && may_be_its
            });
            match step.what {
                What::Issue => self.end_run(now),
                _ if issues => {}
                What::Complete if !self.restarts || self.is_refuted(now) => {}
                _ => self.run_in_vain(now),
            }
            return;
        }
        if self.parked || self.waiting.is_empty() {
            return;
        }
        if self.in_flight >= self.depth {
            if self.parks {
                self.parked = matches!(self.replica.park(now), Taken::Chosen(..));
            }
            return;
        }
        let mut following = self.history.steps[index + 1..].iter();
        let next = following.find(|step| !matches!(step.what, What::Allocate | What::Merge(..)));
        let is_withheld = next.is_some_and(|next| {
            !matches!(next.what, What::Issue) && next.at + self.phase >= now + WITHHELD_FOR
        });
        if is_withheld && self.around == 0 {
            self.ask_in_vain(now);
        }
    }

    /// Timers that fall due before a step; the worker that runs the queue then may issue nothing.
    pub(super) fn pass_time(&mut self, index: usize) {
        let step = self.history.steps[index];
        let now = step.at + self.phase;
        while let Some(at) = self.replica.pass_time(now) {
            self.note_events();
            let issues = matches!(step.what, What::Issue) && now < at + SAME_RUN;
            if self.replica.take_wants_run() && self.remembers && !issues {
                self.ask_remembering(at);
            }
        }
    }

    /// A run after a step; what it issues, the next step tells.
    fn run_remembered(&mut self, index: usize) {
        let step = self.history.steps[index];
        let next = self.history.steps.get(index + 1);
        // A request that is given back ends the run.
        let goes_on = next.is_some_and(|next| {
            let is_soon = next.at < step.at + SAME_RUN;
            // The driver copies data before it asks for more.
            let is_same_run = matches!(step.what, What::Issue) && next.task == step.task;
            matches!(next.what, What::Issue | What::Requeue) && (is_soon || is_same_run)
        });
        if !goes_on {
            let now = self.replica.asked_after(step.at + self.phase);
            self.ask_remembering(now);
        }
    }

    /// The driver of the single queue looks at one request more than it can take (rule
    /// dispatch-list-3).
    fn ask_remembering(&mut self, now: Instant) {
        let has_room = self.in_flight <= self.depth;
        if has_room && !self.parked && !self.waiting.is_empty() && self.requeued == 0 {
            self.ask_in_vain(now);
        }
    }

    /// Whether a run would ask the scheduler: it has something, nothing is parked before it, and
    /// the driver does not say beforehand that it can take no more.
    pub(super) fn may_ask(&self) -> bool {
        let has_room = self.in_flight < self.depth;
        !self.parked && !self.waiting.is_empty() && (has_room || self.parks)
    }

    /// The kernel's scheduler withheld, or its driver could take no more; ours is asked as well.
    pub(super) fn ask_in_vain(&mut self, now: Instant) -> bool {
        let is_withheld = self.in_flight < self.depth;
        let saved = self.follows.then(|| self.replica.save(now)).flatten();
        let chosen = match saved {
            None => {
                let chosen = self.replica.park(now);
                self.parked = matches!(chosen, Taken::Chosen(..));
                chosen
            }
            Some(saved) => {
                let chosen = self.replica.ask(now);
                if matches!(chosen, Taken::Chosen(..)) {
                    // It follows the kernel, whose driver took nothing, or parked what comes next.
                    self.replica.restore(&saved);
                    self.parked = !is_withheld && self.park_as_kernel(now);
                }
                chosen
            }
        };
        let holds = matches!(chosen, Taken::Hold(_));
        if holds {
            self.ask_more(now);
        }
        self.outcome.withheld += u64::from(is_withheld);
        self.outcome.both_withheld += u64::from(is_withheld && holds);
        holds
    }

    /// Ours parks what the kernel parked: what is issued next.
    fn park_as_kernel(&mut self, now: Instant) -> bool {
        let next = self.ahead.issued_from(self.index + 1).filter(|_| self.parks);
        let waits = next.map(|recorded| self.names[recorded]).filter(|rq| self.is_waiting(*rq));
        let id = waits.and_then(|rq| self.ids[rq]);
        id.is_some_and(|id| self.replica.park_this(now, id))
    }

    /// Ours gives a request within a run. A list ends when the scheduler withholds, and after the
    /// list was issued it is asked once more (by what mq-deadline of 6.12.117 counts).
    pub(super) fn choose_in_run(&mut self, now: Instant) -> Ours {
        let ours = self.choose(now);
        let withholds = matches!(ours, Ours::Held(_));
        let is_asked_again =
            withholds && self.runs.as_mut().is_some_and(|runs| runs.asked_in_vain(now));
        if is_asked_again || withholds && self.begins_next_run() {
            return self.choose(now);
        }
        ours
    }

    /// Whether whoever issued may have left the rest of the run to a worker: a task may, where the
    /// kernel has it so (field `hands_runs_over`). While the driver has room nothing is parked in
    /// any case, and the run may just go on.
    fn may_be_handed_over(&self) -> bool {
        let is_full = self.in_flight >= self.depth;
        is_full && self.hands_over && self.issuer.is_some_and(|task| !self.ahead.is_worker(task))
    }

    /// A run that has issued something ends.
    fn end_run(&mut self, now: Instant) {
        let is_left = self.history.tells_runs && self.is_left_to_worker();
        if is_left && self.in_flight < self.depth {
            // It was asked once more for the list that was just issued. What was parked is none.
            let is_over = std::mem::take(&mut self.list_is_over) || self.issued_parked;
            if !is_over && self.may_ask() && !self.is_impossible(now) {
                self.ask_in_vain(now);
            }
            self.leave_to_worker();
            return;
        }
        let may_be_left = is_left || !self.history.tells_runs;
        let is_refuted =
            may_be_left && self.may_be_handed_over() && self.is_refuted_from(self.index + 1, now);
        if is_refuted {
            self.leave_to_worker();
            return;
        }
        let Some(mut runs) = self.runs.take() else { return };
        if std::mem::take(&mut self.list_is_over) {
            runs.list_ends(!self.parked);
        }
        while self.may_ask() {
            if !self.ask_in_vain(now) {
                runs.list_ends(false);
                break;
            }
            if !runs.asked_in_vain(now) {
                break;
            }
        }
        if self.waiting.is_empty() {
            runs.list_ends(true);
        }
        self.runs = Some(runs);
    }

    fn leave_to_worker(&mut self) {
        self.worker_wanted = true;
        self.runs.iter_mut().for_each(|runs| runs.list_ends(true));
    }

    /// A run issues nothing.
    pub(super) fn run_in_vain(&mut self, now: Instant) {
        let Some(mut runs) = self.runs.take() else { return };
        if self.parked {
            runs.list_ends(false);
        } else if self.may_ask() {
            if self.ask_in_vain(now) {
                runs.asked_in_vain(now);
            } else {
                runs.list_ends(false);
            }
        }
        self.runs = Some(runs);
    }

    /// What ran the queue before this step, and left no trace: workers and tasks that slept for a
    /// tag, as soon as the tasks that went before had nothing more to do.
    pub(super) fn note_unseen(&mut self, now: Instant, task: ContextId, what: What) {
        let issues = matches!(what, What::Issue);
        if let Some(first) = self.assumed.goes_first.get(&self.index) {
            self.worker_goes_first = *first;
        }
        let usual = self.has_worker_run(now, what);
        let is_wanted = self.worker_wanted || self.woken > 0;
        if is_wanted && self.assume(now, usual) {
            self.run_unseen();
        }
        let is_first = issues && self.issuer != Some(task);
        if is_first && self.worker_wanted && self.ahead.is_worker(task) {
            // This is the run that was wanted.
            self.worker_wanted = false;
            self.runs.iter_mut().for_each(Runs::worker_runs);
        }
        if usual {
            self.rerun(now, issues);
        }
        self.last = now;
        let completes = matches!(what, What::Complete);
        self.restarts = completes && self.runs.as_mut().is_some_and(Runs::completed);
        match what {
            What::Starve => {
                self.sleepers.insert(task);
                // What its run issues comes next.
                if self.issues_next(task) {
                    self.starving = Some(task);
                } else {
                    self.run_in_vain(now);
                }
            }
            What::Recover => {
                self.sleepers.remove(&task);
                if self.issuer != Some(task) {
                    self.woken = self.woken.saturating_sub(1);
                    if !self.is_refuted(now) {
                        self.run_in_vain(now);
                    }
                }
            }
            // Who issues before it sleeps was not woken.
            What::Issue if self.starving.take() == Some(task) => {}
            What::Issue if self.issuer != Some(task) && self.sleepers.contains(&task) => {
                self.woken = self.woken.saturating_sub(1);
            }
            // A freed tag wakes one of those who sleep, which may find it taken.
            What::Complete if !self.sleepers.is_empty() => self.woken += 1,
            _ => {}
        }
        self.issuer = Some(task).filter(|_| issues);
    }

    /// Whether the next thing that a task does is to issue, and nobody else does anything before.
    pub(super) fn issues_next(&self, task: ContextId) -> bool {
        let next = next_of(&self.history.steps[self.index + 1..]);
        let now = self.history.steps[self.index].at;
        next.is_some_and(|next| {
            matches!(next.what, What::Issue) && next.task == task && next.at < now + SAME_RUN
        })
    }

    /// Whether nobody had anything to do just before.
    pub(super) fn is_pause(&self, now: Instant) -> bool {
        now >= self.last + PAUSE
    }

    /// Whether workers that were asked to run the queue have done so by now. Where they go before
    /// whoever asked, that is when his system call is over. What they issue is recorded: if they
    /// would issue something and it is not there, they have not run.
    fn has_worker_run(&mut self, now: Instant, what: What) -> bool {
        if self.is_pause(now) {
            return true;
        }
        if !self.worker_goes_first {
            return false;
        }
        if matches!(what, What::Issue) {
            self.worker_wanted = false;
        }
        let is_in_call = matches!(what, What::Insert { .. } | What::Join { .. });
        let has_room = self.in_flight < self.depth;
        self.worker_wanted && !is_in_call && (!has_room || self.would_withhold())
    }

    /// Whether our scheduler would give nothing if it were asked.
    fn would_withhold(&mut self) -> bool {
        let Some(saved) = self.replica.save(self.last) else { return false };
        let answer = self.replica.ask(self.last);
        self.replica.restore(&saved);
        matches!(answer, Taken::Hold(_))
    }

    fn run_unseen(&mut self) {
        let then = self.last;
        if self.worker_wanted && !self.is_refuted(then) {
            self.worker_wanted = false;
            self.runs.iter_mut().for_each(Runs::worker_runs);
            self.run_in_vain(then);
        }
        for _ in 0..std::mem::take(&mut self.woken) {
            if !self.is_refuted(then) {
                self.run_in_vain(then);
            }
        }
    }

    /// The queue is run again a while after the scheduler withheld.
    fn rerun(&mut self, now: Instant, issues: bool) {
        while let Some(due) = self.runs.as_mut().and_then(|runs| runs.rerun_until(now)) {
            // What it issued then is recorded.
            if !issues && !self.is_refuted(due.max(self.last)) {
                self.run_in_vain(due.max(self.last));
            }
        }
    }

    /// Whether the queue was run between this step and the next one: by the task that had inserted
    /// all it held, by a completion, or by a worker, which gets the core when the task is done.
    fn has_run(&mut self, index: usize) -> bool {
        let context = |step: &Step| self.history.requests[step.rq].bio.origin.context;
        let step = &self.history.steps[index];
        let Some(next) = self.history.steps.get(index + 1) else { return false };
        let arrives =
            |what: What| matches!(what, What::Insert { .. } | What::Join { runs: Some(_), .. });
        match step.what {
            What::Insert { runs: true, .. } | What::Join { runs: Some(true), .. } => {
                self.flushing = Some(context(step));
            }
            // What was inserted is appended to another in turn; an interrupt comes in between.
            What::Join { runs: None, .. } => {}
            what if is_aside(what) => {}
            _ => self.flushing = None,
        }
        if let Some(task) = self.flushing.filter(|_| !is_aside(step.what)) {
            let next = next_of(&self.history.steps[index + 1..]);
            return !next.is_some_and(|next| {
                // A task whose plug is full inserts what it held, runs the queue, and goes on: what
                // it inserts then is another list, before which the queue was run.
                let is_new = self.history.has_unplugged(task, step.at, next.at);
                let is_next = arrives(next.what) && context(next) == task && !is_new;
                is_next || matches!(next.what, What::Join { runs: None, .. })
            });
        }
        match step.what {
            What::Issue => self.remembers || !self.goes_on_issuing(index),
            What::Complete => self.remembers || !matches!(next.what, What::Issue),
            What::Requeue | What::Starve | What::Recover | What::Run(_) | What::Ask(_) => false,
            _ if self.runs.is_some() => {
                self.worker_wanted |= arrives(step.what);
                false
            }
            _ => {
                self.worker_wanted |= arrives(step.what);
                let goes_on = context(next) == context(step);
                let done = !goes_on || matches!(next.what, What::Issue | What::Complete);
                self.worker_wanted && done && {
                    self.worker_wanted = false;
                    true
                }
            }
        }
    }

    /// Whether the run that issued at this step issues more.
    fn goes_on_issuing(&self, index: usize) -> bool {
        goes_on_issuing(&self.history.steps[index..])
    }
}

/// Whether the run that issued at the first step issues more, perhaps after an interrupt. When
/// somebody else issues next, or nobody does for long, it had asked the scheduler in vain before
/// that (by what mq-deadline of 7.3.4 counts while a better class keeps the device busy).
fn goes_on_issuing(steps: &[Step]) -> bool {
    let [step, after @ ..] = steps else { return false };
    let next = next_of(after);
    let Some(next) = next.filter(|next| matches!(next.what, What::Issue)) else { return false };
    let is_interrupted = is_aside(after[0].what);
    let within = if is_interrupted { INTERRUPT } else { SAME_RUN };
    next.task == step.task && next.at < step.at + within
}

#[cfg(test)]
mod tests {
    use super::super::tests::step;
    use super::*;

    #[test]
    fn a_run_goes_on_while_the_same_task_issues() {
        let step = |micros: u64, task, what| step(micros * 1_000, task, what);
        let first = step(0, 2, What::Issue);
        let goes_on = |rest: &[Step]| goes_on_issuing(&[&[first], rest].concat());
        assert!(goes_on(&[step(1, 2, What::Issue)]));
        assert!(!goes_on(&[step(1, 3, What::Issue)]), "somebody else");
        assert!(!goes_on(&[step(4_000, 2, What::Issue)]), "much later");
        assert!(!goes_on(&[step(1, 2, What::Starve), step(2, 2, What::Issue)]));
        assert!(goes_on(&[step(0, 0, What::Complete), step(0, 2, What::Issue)]));
        assert!(!goes_on(&[step(1, 0, What::Complete), step(2, 2, What::Issue)]), "a new run");
        assert!(!goes_on(&[]));
    }
}
