//! Waiting for the next request of a process: when it begins, and what ends it (rules as-wait-2,
//! as-wait-3, as-wait-9 and as-break).

use super::{Anticipatory, Kind, now};
use base::{Instant, Jiffies};
use block::scheduler::RunQueue;
use block::{ContextId, Cx, HoldReason, IoContextId, RequestId};

/// How close is close at once, in sectors.
const CLOSE: i64 = 8_192;
/// While so long has not passed, closeness is a matter of distance; afterwards everything is close.
const CLOSE_MILLIS: u64 = 20;
/// Half, in 256ths.
const HALF: u64 = 128;

/// Whether somebody is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Status {
    #[default]
    Off,
    /// The request of the process is not done yet.
    WaitRequest,
    /// It is, and the process thinks; the timer runs.
    WaitNext,
    /// It was waited for, and that is over.
    Finished,
}

/// Whom, and since when.
#[derive(Clone, Debug, Default)]
pub(super) struct Wait {
    pub status: Status,
    /// Whose synchronous request left last.
    pub awaited: Option<IoContextId>,
    /// The task whose request left last.
    pub task: Option<ContextId>,
    /// That request is done.
    pub finished: bool,
    /// Since when.
    pub start: i64,
    pub timer: Option<Instant>,
}

impl Wait {
    pub fn is_on(&self) -> bool {
        matches!(self.status, Status::WaitRequest | Status::WaitNext)
    }

    /// Why requests are withheld, if they are because of it.
    pub fn hold(&self) -> Option<HoldReason> {
        match self.status {
            Status::WaitRequest => Some(HoldReason::TurnNotDone),
            Status::WaitNext => Some(HoldReason::ProcessIdles),
            Status::Off | Status::Finished => None,
        }
    }
}

impl Anticipatory {
    /// Rule as-wait-2.
    pub(super) fn stop_waiting(&mut self, cx: &mut Cx<'_>) {
        if self.wait.is_on() {
            self.wait.timer = None;
            self.wait.status = Status::Finished;
            cx.run_queue(RunQueue::Async);
        }
    }

    /// Rule as-wait-9: the disk is left alone from now on.
    pub(super) fn start_waiting(&mut self, cx: &Cx<'_>) -> HoldReason {
        self.wait.status = Status::WaitRequest;
        if self.wait.finished {
            self.await_next(cx);
        }
        self.wait.hold().expect("somebody is waited for")
    }

    /// The request is done: the process has so long.
    pub(super) fn await_next(&mut self, cx: &Cx<'_>) {
        self.wait.status = Status::WaitNext;
        let due = Jiffies((self.wait.start + self.settings.antic_expire) as u64);
        let due = Instant::ZERO + cx.kernel().hz.duration(due);
        self.wait.timer = Some(due.max(cx.now));
    }

    /// Rule as-wait-3: it did not come back.
    pub(super) fn timer_fired(&mut self, cx: &mut Cx<'_>) {
        self.wait.timer = None;
        if !self.wait.is_on() {
            return;
        }
        self.wait.status = Status::Finished;
        cx.run_queue(RunQueue::Async);
        let process = self.wait.awaited.and_then(|id| self.processes.get(&id));
        let Some(process) = process else { return };
        if process.think.samples == 0 {
            self.newcomers.note_exit();
        }
        if process.has_exited {
            self.newcomers.note_succession(false);
        }
    }

    /// Rule as-wait-9: whether the disk is left alone although `rq` could go next.
    pub(super) fn can_anticipate(&mut self, cx: &Cx<'_>, rq: Option<RequestId>) -> bool {
        self.wait.awaited.is_some()
            && self.wait.status != Status::Finished
            && !self.can_break(cx, rq)
    }

    /// Rules as-break: whether waiting makes no sense, or no longer does.
    pub(super) fn can_break(&mut self, cx: &Cx<'_>, rq: Option<RequestId>) -> bool {
        let now = now(cx);
        let Some(awaited) = self.wait.awaited else { return false };
        if rq.is_some_and(|rq| self.owners[rq] == awaited) {
            return true;
        }
        if self.wait.finished && now - self.wait.start >= self.settings.antic_expire {
            return true;
        }
        let process = &self.processes[&awaited];
        if process.queued > 0 || process.dispatched > 0 {
            return true;
        }
        let (has_exited, is_new) = (process.has_exited, process.think.samples == 0);
        if let Some(rq) = rq.filter(|rq| self.is_close(cx, *rq)) {
            if has_exited {
                if is_new {
                    self.newcomers.note_exit();
                }
                self.newcomers.note_succession(true);
            }
            let request = cx.request(rq);
            self.note_arrival(now, awaited, request.sector, request.end());
            return true;
        }
        self.thinks_too_long(awaited)
    }

    /// Rules as-break-5 and as-break-6.
    fn thinks_too_long(&mut self, awaited: IoContextId) -> bool {
        let process = &self.processes[&awaited];
        let (think, is_new) = (process.think.mean as i64, process.think.samples == 0);
        if process.has_exited {
            if is_new {
                self.newcomers.note_exit();
            }
            if self.newcomers.no_successor > HALF {
                return true;
            }
        }
        if !is_new {
            return think > self.settings.antic_expire;
        }
        let newcomers = &self.newcomers;
        newcomers.think > self.settings.antic_expire
            || newcomers.exit_probability * newcomers.no_successor > HALF * 256
    }

    /// Rules as-break-7 and as-break-8: whether it is as good as what is waited for; the longer
    /// that takes, the more is.
    fn is_close(&self, cx: &Cx<'_>, rq: RequestId) -> bool {
        let request = cx.request(rq);
        if Kind::of(request) == Kind::Async {
            return false;
        }
        let is_unfinished = self.wait.status == Status::Off || !self.wait.finished;
        let delay = if is_unfinished { 0 } else { now(cx) - self.wait.start };
        let most = cx.kernel().hz.jiffies_from_millis(CLOSE_MILLIS).0 as i64;
        if delay > most.min(self.settings.antic_expire) {
            return true;
        }
        // Twenty ticks at most: no overflow.
        let delta = CLOSE << delay;
        let next = request.sector.0 as i64;
        let last = self.last_sector[self.batch.kind as usize].0 as i64;
        if last <= next + delta / 2 && next <= last + delta {
            return true;
        }
        let process = self.wait.awaited.and_then(|id| self.processes.get(&id));
        let known = process.filter(|process| process.seek.samples > 0);
        known.map_or(self.newcomers.seek, |process| process.seek.mean) > next.abs_diff(last)
    }
}
