//! Lists that an interrupt finds half issued.
//!
//! A run collects requests in a list and then issues them (rules hctx). Mostly nothing happens in
//! between, and it does not matter when each was chosen. When a completion comes in between, all
//! were chosen before it: mq-deadline asks which classes have requests that are not done. (Observed
//! on 6.1.192, where a record costs 256 ns.)

use super::said_runs::is_aside;
use super::unseen::SAME_RUN;
use super::{Ours, Run};
use crate::history::{RunEvent, Step, What};
use base::Instant;

impl Run<'_> {
    /// Ours gives the next request of a list.
    pub(super) fn next_of_list(&mut self, now: Instant) -> Ours {
        if let Some(ours) = self.list.pop_front() {
            return ours;
        }
        self.list_is_over = false;
        let was_parked = self.parked;
        let first = self.choose_in_run(now);
        let collects = self.runs.as_ref().is_some_and(|runs| !was_parked && runs.collects());
        let rest = Rest::of(&self.history.steps[self.index..]);
        if collects && rest.is_interrupted && matches!(first, Ours::Chose(..)) {
            self.collect(now, &rest);
        }
        first
    }

    /// Collects what is issued behind the first one, and asks once more.
    fn collect(&mut self, now: Instant, rest: &Rest) {
        let in_flight = self.in_flight;
        let room = self.depth.saturating_sub(in_flight) as usize;
        for _ in 0..rest.issues.min(room) {
            let ours = self.choose_in_run(now);
            if !matches!(ours, Ours::Chose(..)) {
                break;
            }
            self.list.push_back(ours);
        }
        self.in_flight += self.list.len() as u32;
        let is_empty = self.waiting.len() <= self.list.len() + 1;
        // The last of a list may get its tag only when it is its turn.
        let has_one_more = rest.issues > self.list.len();
        // Where the driver has room, a list ends because the scheduler withholds.
        let is_over = has_one_more || !rest.is_left || self.in_flight < self.depth;
        if is_over && !is_empty && self.may_ask() {
            self.ask_in_vain(now);
            self.list_is_over = !has_one_more;
        }
        self.in_flight = in_flight;
    }
}

/// What of a list is issued behind its first request.
#[derive(Debug, PartialEq, Eq)]
struct Rest {
    issues: usize,
    /// A completion comes before the last of them.
    is_interrupted: bool,
    /// Whoever issues leaves the rest to a worker, perhaps.
    is_left: bool,
}

impl Rest {
    /// That of the list whose first request is issued at the first step.
    fn of(steps: &[Step]) -> Rest {
        let mut rest = Rest { issues: 0, is_interrupted: false, is_left: false };
        let [first, after @ ..] = steps else { return rest };
        let (mut last, mut completes) = (first.at, false);
        let mut before = first.what;
        for step in after {
            let is_own = step.task == first.task;
            let follows_issue = matches!(std::mem::replace(&mut before, step.what), What::Issue);
            match step.what {
                What::Run(RunEvent::Wanted) if is_own && follows_issue => {
                    rest.is_left = true;
                    break;
                }
                What::Issue if is_own && step.at < last + SAME_RUN => {
                    rest.issues += 1;
                    rest.is_interrupted |= completes;
                    last = step.at;
                }
                What::Complete => completes = true,
                what if is_aside(what) => {}
                _ => break,
            }
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::step;
    use super::*;

    #[test]
    fn a_list_is_interrupted_by_a_completion_before_its_last_request() {
        let issue = |nanos| step(nanos, 2, What::Issue);
        let done = |nanos| step(nanos, 2, What::Complete);
        let of = |steps: &[Step]| {
            let Rest { issues, is_interrupted, is_left } = Rest::of(steps);
            (issues, is_interrupted, is_left)
        };
        assert_eq!(of(&[issue(0), done(256), issue(512), issue(768)]), (2, true, false));
        assert_eq!(
            of(&[issue(0), issue(256), done(512), step(768, 3, What::Issue)]),
            (1, false, false)
        );
        let wanted = step(512, 2, What::Run(RunEvent::Wanted));
        assert_eq!(of(&[issue(0), issue(256), wanted, issue(768)]), (1, false, true));
        let by_timer = step(512, 3, What::Run(RunEvent::Wanted));
        assert_eq!(of(&[issue(0), by_timer, done(600), issue(768)]), (1, true, false));
        assert_eq!(of(&[]), (0, false, false));
    }
}
