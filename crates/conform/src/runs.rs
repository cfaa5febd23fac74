//! Runs of a hardware queue that leave no trace.
//!
//! A recording tells what a run issued. It does not tell of a run that issued nothing, nor how
//! often a scheduler was asked in vain; and either may change what the scheduler remembers
//! (mq-deadline with several classes of priority), or park a request that it chose. What is known
//! of runs on kernels that collect requests in bursts (rules hctx) is kept here: how many requests
//! a list may have, and when the queue is run again after a scheduler withheld.
//!
//! Leaves out: several hardware queues.

use crate::setup::Setup;
use base::{Duration, Instant};

/// What is known of the runs of a queue.
#[derive(Clone, Debug)]
pub struct Runs {
    tick: Duration,
    /// How often the driver refused lately (rule hctx-5).
    busy: u32,
    /// Requests of the list that is being issued.
    listed: u32,
    /// When the queue is run again because the scheduler withheld.
    rerun: Option<Instant>,
    /// The next completion has a worker run the queue: something was parked.
    restart: bool,
    /// Whether that is so with this kernel.
    restarts: bool,
}

impl Runs {
    /// Those of a recorded queue, if it collects requests in bursts.
    pub fn of(setup: &Setup) -> Option<Runs> {
        let tick = setup.kernel.hz.tick();
        let restarts = setup.kernel.multi.is_some_and(|multi| multi.reruns_in_vain);
        let (busy, listed, rerun, restart) = (0, 0, None, false);
        setup.collects_lists().then_some(Runs { tick, busy, listed, rerun, restart, restarts })
    }

    /// A request was issued; one that was parked is a list of its own.
    pub fn issued(&mut self, was_parked: bool) {
        self.listed += 1;
        self.restart |= was_parked && self.restarts;
        if was_parked || self.busy > 0 {
            self.list_ends(true);
        }
    }

    /// Whether a list may have more than one request.
    pub fn collects(&self) -> bool {
        self.busy == 0
    }

    /// The list ends; whether all of it was issued.
    pub fn list_ends(&mut self, all_issued: bool) {
        self.listed = 0;
        self.busy = (self.busy * 7 + if all_issued { 0 } else { 16 }) / 8;
    }

    /// The scheduler had nothing to give; whether it is asked again, because what it gave before
    /// was issued as a list.
    pub fn asked_in_vain(&mut self, now: Instant) -> bool {
        // measured in the linux world: 3 ms, which end with the tick after the next.
        let next =
            Instant::from_nanos((now.as_nanos() / self.tick.as_nanos() + 2) * self.tick.as_nanos());
        // Not later because it withholds again (traced on 6.12.117: runs by the timer come in the
        // second tick after the first time that it withheld).
        self.rerun.get_or_insert(next);
        let again = self.listed > 0;
        if again {
            self.list_ends(true);
        }
        again
    }

    /// A request was completed; whether a worker runs the queue.
    pub fn completed(&mut self) -> bool {
        let runs = std::mem::take(&mut self.restart);
        if runs {
            self.worker_runs();
        }
        runs
    }

    /// A worker runs the queue, which it would have done later: it is one and the same piece of
    /// work.
    pub fn worker_runs(&mut self) {
        self.rerun = None;
    }

    /// When the queue is run again, if that is not after `until`; once.
    pub fn rerun_until(&mut self, until: Instant) -> Option<Instant> {
        let due = self.rerun.filter(|due| *due <= until)?;
        self.rerun = None;
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(restarts: bool) -> Runs {
        let tick = Duration::from_millis(4);
        Runs { tick, busy: 0, listed: 0, rerun: None, restart: false, restarts }
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_queue_whose_scheduler_withholds_is_run_again_after_the_first_time() {
        let mut runs = runs(false);
        assert!(!runs.asked_in_vain(at(1)));
        assert!(!runs.asked_in_vain(at(5)));
        assert_eq!(runs.rerun_until(at(7)), None);
        assert_eq!(runs.rerun_until(at(8)), Some(at(8)));
        assert_eq!(runs.rerun_until(at(20)), None, "once");
        assert!(!runs.asked_in_vain(at(9)));
        assert_eq!(runs.rerun_until(at(16)), Some(at(16)), "and again from then on");
    }

    #[test]
    fn a_worker_that_runs_for_another_reason_does_what_the_timer_would_have_had_done() {
        let mut runs = runs(true);
        runs.issued(true);
        assert!(!runs.asked_in_vain(at(2)));
        assert!(runs.completed(), "something had been parked");
        assert!(!runs.asked_in_vain(at(5)));
        assert_eq!(runs.rerun_until(at(11)), None, "not after the first time");
        assert_eq!(runs.rerun_until(at(12)), Some(at(12)), "but after the worker's");
        assert!(!runs.completed());
    }
}
