//! Turns: their order, whose it is, and their end (rules cfq-early-place, cfq-early-select
//! and cfq-early-end).

use super::super::queue::Class;
use super::queue::QueueId;
use super::{EarlyCfq, now};
use block::{Cx, DispatchReason, HoldReason};

/// How the next turn came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Begins,
    /// This queue ended another's turn.
    Preempts(QueueId),
    Cooperates,
}

impl Turn {
    pub fn reason(self, id: QueueId) -> DispatchReason {
        match self {
            Turn::Preempts(by) if by == id => DispatchReason::Preempts,
            Turn::Begins | Turn::Preempts(_) => DispatchReason::TurnBegins,
            Turn::Cooperates => DispatchReason::Cooperates,
        }
    }
}

/// Real time goes first, idle last.
fn rank(class: Class) -> u8 {
    match class {
        Class::RealTime => 0,
        Class::BestEffort => 1,
        Class::Idle => 2,
    }
}

impl EarlyCfq {
    /// Rule cfq-early-place-1: a queue that gets a request has a turn to come.
    pub(super) fn join_tree(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        if self.queues[id].place.is_some() {
            return;
        }
        self.say(cx, id, format_args!("add_to_rr"));
        // It counts already when its key is computed.
        self.put_at_key(cx, id, self.tree.len() as i64 + 1);
    }

    pub(super) fn leave_tree(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        self.say(cx, id, format_args!("del_from_rr"));
        self.take_out(id);
    }

    fn take_out(&mut self, id: QueueId) {
        if self.queues[id].place.take().is_some() {
            self.tree.retain(|entry| entry.2 != id);
        }
    }

    fn put_in(&mut self, id: QueueId, key: i64) {
        let rank = rank(self.queues[id].class);
        let at = self.tree.partition_point(|entry| (entry.0, entry.1) <= (rank, key));
        self.tree.insert(at, (rank, key, id));
        self.queues[id].place = Some((rank, key));
    }

    /// Rules cfq-early-place-2 and cfq-early-place-3: later, the more queues are busy and the
    /// shorter its turns are.
    fn put_at_key(&mut self, cx: &Cx<'_>, id: QueueId, busy: i64) {
        let now = now(cx);
        let queue = &mut self.queues[id];
        let key = if queue.class == Class::Idle {
            let last = self.tree.last().filter(|entry| entry.2 != id);
            i64::from(self.settings.hz.get()) / 5 + last.map_or(now, |entry| entry.1)
        } else {
            let resid = core::mem::take(&mut queue.slice_resid);
            let longest = self.settings.turn(true, 0);
            let offset = (busy - 1) * (longest - self.settings.turn(queue.sync, queue.level));
            now + offset + if self.rules.adds_residual { resid } else { -resid }
        };
        self.move_to(id, key);
    }

    /// Rule cfq-early-place-2: who stands there already keeps its place among equals.
    fn move_to(&mut self, id: QueueId, key: i64) {
        let queue = &self.queues[id];
        if queue.place == Some((rank(queue.class), key)) {
            return;
        }
        self.take_out(id);
        self.put_in(id, key);
    }

    /// Rule cfq-early-place-4: before all others of its class.
    pub(super) fn move_to_front(&mut self, now: i64, id: QueueId) {
        let key = if self.rules.front_is_zero {
            0
        } else {
            let first = self.tree.first().map_or(now, |entry| entry.1);
            first - i64::from(self.settings.hz.get())
        };
        self.move_to(id, key);
    }

    /// Rule cfq-early-select-1.
    pub(super) fn is_slice_used(&self, cx: &Cx<'_>, id: QueueId) -> bool {
        let queue = &self.queues[id];
        !queue.slice_new && now(cx) >= queue.slice_end
    }

    /// Rules cfq-early-select: whose turn it is; `Err` with the reason why nobody's although there
    /// are requests.
    pub(super) fn select(&mut self, cx: &mut Cx<'_>) -> Result<Option<QueueId>, HoldReason> {
        let mut heir = None;
        if let Some(id) = self.active {
            let queue = &self.queues[id];
            let is_over = self.is_slice_used(cx, id) && !queue.must_dispatch;
            if !is_over && !queue.is_empty() {
                return Ok(Some(id));
            }
            if !is_over {
                heir = self.close_cooperator(cx, id);
                match heir {
                    Some(other) => self.plan_merge(id, other),
                    None if self.timer.is_some() => return Err(HoldReason::ProcessIdles),
                    None if queue.dispatched > 0 && queue.idle_window => {
                        return Err(HoldReason::TurnNotDone);
                    }
                    None => {}
                }
            }
            if self.turn == Turn::Begins && heir.is_some() {
                self.turn = Turn::Cooperates;
            }
            self.expire(cx, id, false);
        }
        let next = heir.or_else(|| self.tree.first().map(|entry| entry.2));
        if let Some(id) = next {
            self.set_active(cx, id);
        }
        Ok(next)
    }

    /// Rule cfq-early-select-2.
    pub(super) fn set_active(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        self.say(cx, id, format_args!("set_active"));
        let queue = &mut self.queues[id];
        queue.slice_end = 0;
        queue.slice_new = true;
        queue.slice_dispatch = 0;
        queue.must_alloc = false;
        queue.must_dispatch = false;
        queue.fifo_checked = false;
        self.active = Some(id);
    }

    /// Rule cfq-early-end-1: a turn ends.
    pub(super) fn expire(&mut self, cx: &mut Cx<'_>, id: QueueId, timed_out: bool) {
        self.say(cx, id, format_args!("slice expired t={}", u8::from(timed_out)));
        let now = now(cx);
        let queue = &mut self.queues[id];
        if core::mem::take(&mut queue.wait_request) {
            self.timer = None;
        }
        if timed_out && !queue.slice_new {
            queue.slice_resid = queue.slice_end - now;
            let resid = queue.slice_resid;
            self.say(cx, id, format_args!("resid={resid}"));
        }
        if self.queues[id].place.is_some() {
            self.put_at_key(cx, id, self.tree.len() as i64);
        }
        self.active = None;
        self.active_context = None;
    }
}
