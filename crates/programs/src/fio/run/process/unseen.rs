//! Requests that move no data, many at once.
//!
//! Calls that read from `/dev/zero` or write to nowhere come to no queue and stand in no log. Only
//! their number can tell, once a second or when time is over. So their process computes for many of
//! them together, and each counts as if it had been made alone.

use base::{Duration, Instant};

use super::super::super::job::{Direction, Directions, FileKind, Job};
use super::super::lanes::What;
use super::{Process, looks_before};

/// So many at most: a process sees that late that others have ended.
const AT_ONCE: u64 = 256;

/// Whether nothing depends on when each request of a job is made, as far as the job says.
pub(super) fn may_be(job: &Job) -> bool {
    let (pace, goal, durability) = (&job.pace, &job.goal, &job.durability);
    let is_unpaced = pace.think.is_none()
        && pace.flow.is_none()
        && pace.rate.iter().chain(&pace.rate_min).all(Option::is_none);
    let syncs =
        durability.fsync.is_some() || durability.fdatasync.is_some() || durability.range.is_some();
    let trims =
        matches!(job.pattern.directions, Directions::Only(Direction::Trim) | Directions::TrimWrite);
    is_unpaced
        && !(syncs || trims)
        && job.verify.is_none()
        && goal.latency.is_none()
        && !job.logs.are_written()
        && goal.max_latency.iter().all(Option::is_none)
        && job.files.list.iter().all(|file| file.kind == FileKind::Sink)
}

impl Process<'_> {
    /// The requests of one round; the answer is their number.
    pub(super) async fn transfer_unseen(&mut self) -> u64 {
        let mut requests = 0;
        while !self.is_done() && !self.must_end() {
            let (many, is_over) = self.some_unseen().await;
            requests += many;
            if is_over {
                break;
            }
            self.judge().await;
        }
        requests
    }

    /// Some of them, and whether there are no more.
    async fn some_unseen(&mut self) -> (u64, bool) {
        let clock = self.task.costs().clock;
        let (start, until) = (self.task.now(), self.next_look());
        let (mut time, mut requests) = (Duration::ZERO, 0);
        let mut is_over = false;
        while requests < AT_ONCE && start + time < until && !self.is_done() {
            let direction = self.walk.direction();
            let Some((direction, place)) = self.walk.next(direction) else {
                is_over = true;
                break;
            };
            requests += 1;
            self.count(direction, place);
            let habits = *self.habits();
            let looks = looks_before(&habits, What::Move(direction), false);
            let (moved, call) = self.lanes.unseen(direction, place).expect("it was asked before");
            let at = start + time + clock * u64::from(looks) + call;
            self.note_unseen(direction, moved, (at, place.length));
            time = at.since(start) + clock * u64::from(habits.after_call);
        }
        self.account.call(requests);
        self.task.memory_calls(requests, time).await;
        (requests, is_over)
    }

    /// When somebody asks how many requests there were.
    fn next_look(&self) -> Instant {
        let watched = self.watch.as_ref().map_or(Instant::FAR_FUTURE, |watch| watch.next());
        watched.min(self.deadline.unwrap_or(Instant::FAR_FUTURE))
    }

    fn note_unseen(&mut self, direction: Direction, moved: u64, (at, length): (Instant, u64)) {
        self.issued += 1;
        self.completed += 1;
        let (bytes, requests) = &mut self.done[direction as usize];
        *bytes += moved;
        *requests += 1;
        self.writes += u64::from(direction == Direction::Write);
        if let Some(watch) = &self.watch {
            watch.note(at, length);
        }
    }
}
