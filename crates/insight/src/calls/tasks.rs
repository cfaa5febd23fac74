//! What each task did, as far back as somebody may ask: it computed, waited for a core, or slept.

use base::Instant;
use block::{CommitPhase, ContextId, SleepsFor};
use std::collections::VecDeque;

/// What a task does for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It has a core.
    Computes,
    /// It waits for one.
    Waits,
    /// It sleeps.
    Sleeps {
        /// For what.
        what: SleepsFor,
        /// It sleeps for a request because writeback is throttled.
        is_throttled: bool,
        /// Who has most of the requests, if it sleeps for one and that is somebody else.
        holder: Option<ContextId>,
        /// Who ended it, and the bio that did if it was an interrupt.
        woken: Option<Woken>,
    },
    /// It is not there yet, or not any more.
    Nothing,
}

/// Who ended a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// A task.
    By(ContextId),
    /// A bio that was done, by its number among all that were.
    Bio(u64),
    /// A timer.
    Timer,
}

/// A while of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct While {
    /// From when.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
    /// What it did.
    pub doing: Doing,
    /// The transaction that it committed meanwhile, and the phase of that.
    pub commit: Option<(u64, CommitPhase)>,
}

/// The last whiles of a task, one after the other without a gap.
#[derive(Debug)]
pub struct History {
    past: VecDeque<While>,
    since: Instant,
    now: Doing,
    commit: Option<(u64, CommitPhase)>,
}

impl History {
    /// A task that did nothing before.
    pub fn new(now: Doing) -> History {
        History { past: VecDeque::new(), since: Instant::ZERO, now, commit: None }
    }

    /// What it does now.
    pub fn now(&self) -> Doing {
        self.now
    }

    /// From now on it does something else. A sleep is told how it ended.
    pub fn turn(&mut self, at: Instant, ended_by: Option<Woken>, next: Doing) {
        let mut doing = self.now;
        if let Doing::Sleeps { woken, .. } = &mut doing {
            *woken = ended_by;
        }
        if at > self.since {
            let (from, commit) = (self.since, self.commit);
            self.past.push_back(While { from, to: at, doing, commit });
        }
        (self.since, self.now) = (at, next);
    }

    /// From now on it is in another phase of a commit, or in none.
    pub fn commits(&mut self, at: Instant, commit: Option<(u64, CommitPhase)>) {
        self.turn(at, None, self.now);
        self.commit = commit;
    }

    /// The whiles of an interval, cut to it, the earliest first.
    pub fn of(&self, from: Instant, to: Instant) -> impl Iterator<Item = While> + '_ {
        let first = self.past.partition_point(|it| it.to <= from);
        let last = While { from: self.since, to, doing: self.now, commit: self.commit };
        let open = (self.since < to).then_some(last);
        let all = self.past.range(first..).copied().chain(open);
        all.take_while(move |it| it.from < to)
            .map(move |it| While { from: it.from.max(from), to: it.to.min(to), ..it })
            .filter(|it| it.from < it.to)
    }

    /// What ended before a time is not asked for any more.
    pub fn forget(&mut self, before: Instant) {
        while self.past.front().is_some_and(|it| it.to <= before) {
            self.past.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Duration;

    fn at(nanos: u64) -> Instant {
        Instant::ZERO + Duration::from_nanos(nanos)
    }

    #[test]
    fn whiles_cover_an_interval_without_a_gap() {
        let mut history = History::new(Doing::Nothing);
        history.turn(at(10), None, Doing::Waits);
        history.turn(at(10), None, Doing::Computes);
        history.turn(at(30), None, Doing::Waits);
        let seen: Vec<_> = history.of(at(5), at(40)).map(|it| (it.from, it.to)).collect();
        assert_eq!(seen, [(at(5), at(10)), (at(10), at(30)), (at(30), at(40))]);
    }

    #[test]
    fn what_is_forgotten_is_what_ended_before() {
        let mut history = History::new(Doing::Computes);
        history.turn(at(10), None, Doing::Waits);
        history.turn(at(20), None, Doing::Computes);
        history.forget(at(10));
        assert_eq!(history.of(at(0), at(30)).next().map(|it| it.from), Some(at(10)));
    }
}
