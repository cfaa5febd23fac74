//! What leaves: rounds of requests (2.6.28) or one (2.6.32), and what follows when they are done
//! (rules cfq-early-dispatch and cfq-early-idle).

use super::super::queue::Class;
use super::queue::QueueId;
use super::turn::Turn;
use super::{EarlyCfq, now};
use alloc::vec::Vec;
use block::scheduler::{Dispatched, RunQueue};
use block::{Cx, DispatchReason, HoldReason, RequestId};

impl EarlyCfq {
    /// Rules cfq-early-dispatch-2 and cfq-early-dispatch-7: several rounds, of several queues.
    pub(super) fn dispatch_rounds(&mut self, cx: &mut Cx<'_>) -> Dispatched {
        let mut left = 0;
        let outcome = loop {
            let id = match self.select(cx) {
                Ok(Some(id)) => id,
                Ok(None) => break Ok(()),
                Err(reason) => break Err(reason),
            };
            if let Err(reason) = self.may_begin_round(id) {
                break Err(reason);
            }
            left += self.round(cx, id);
        };
        cx.message(format_args!("cfq dispatched={left}"));
        match outcome {
            _ if left > 0 => Dispatched::Some(left),
            Ok(()) => Dispatched::Empty,
            Err(reason) => Dispatched::Hold(reason),
        }
    }

    fn may_begin_round(&self, id: QueueId) -> Result<(), HoldReason> {
        let queue = &self.queues[id];
        let (dispatched, most) = (i64::from(queue.dispatched), self.quantum(id));
        // A queue that is alone has four rounds in flight.
        let is_full = dispatched >= most && (self.busy_queues() > 1 || dispatched >= 4 * most);
        if is_full {
            return Err(HoldReason::Quantum);
        }
        if self.sync_flight > 0 && !queue.sync {
            return Err(HoldReason::SyncInFlight);
        }
        Ok(())
    }

    fn quantum(&self, id: QueueId) -> i64 {
        if self.queues[id].class == Class::Idle { 1 } else { self.settings.quantum }
    }

    fn round(&mut self, cx: &mut Cx<'_>, id: QueueId) -> u32 {
        self.stop_waiting(id);
        let most = self.quantum(id);
        let mut left = 0;
        while i64::from(left) < most && !self.queues[id].is_empty() {
            self.let_next_go(cx, id);
            left += 1;
        }
        self.end_after_requests(cx, id, i64::from(left));
        left
    }

    /// Item 29.
    pub(super) fn dispatch_one(&mut self, cx: &mut Cx<'_>) -> Dispatched {
        let id = match self.select(cx) {
            Ok(Some(id)) => id,
            Ok(None) => return Dispatched::Empty,
            Err(reason) => return Dispatched::Hold(reason),
        };
        if let Err(reason) = self.may_dispatch(cx, id) {
            return Dispatched::Hold(reason);
        }
        self.stop_waiting(id);
        self.let_next_go(cx, id);
        self.queues[id].must_dispatch = false;
        self.end_after_requests(cx, id, i64::from(self.queues[id].slice_dispatch));
        self.say(cx, id, format_args!("dispatched a request"));
        Dispatched::Some(1)
    }

    fn may_dispatch(&self, cx: &Cx<'_>, id: QueueId) -> Result<(), HoldReason> {
        let queue = &self.queues[id];
        if queue.idle_window && self.in_driver[0] > 0 {
            return Err(HoldReason::AsyncInFlight);
        }
        if self.sync_flight > 0 && !queue.sync {
            return Err(HoldReason::SyncInFlight);
        }
        let (dispatched, mut most) = (i64::from(queue.dispatched), self.quantum(id));
        if dispatched >= most {
            if queue.class == Class::Idle || self.busy_queues() > 1 {
                return Err(HoldReason::Quantum);
            }
            most *= 4;
        }
        if self.rules.throttles_async && !queue.sync && self.settings.low_latency {
            let ramp = (now(cx) - self.last_end_sync) / self.settings.slice[1].max(1);
            let ramp = if ramp == 0 && dispatched == 0 { 1 } else { ramp };
            if ramp < most && dispatched >= ramp {
                return Err(HoldReason::AsyncDepth);
            }
        }
        if dispatched < most { Ok(()) } else { Err(HoldReason::Quantum) }
    }

    fn stop_waiting(&mut self, id: QueueId) {
        self.queues[id].wait_request = false;
        self.timer = None;
    }

    /// The oldest if this turn's look at ages finds it due, else the nearest.
    fn let_next_go(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let due = self.due(cx, id);
        let rq = due.or(self.queues[id].next).expect("the queue has requests");
        let reason = match (due, self.queues[id].slice_dispatch) {
            (Some(_), _) => DispatchReason::Expired,
            (None, 0) => self.turn.reason(id),
            (None, _) => DispatchReason::TurnContinues,
        };
        let owner = self.bound[rq].io_context;
        self.let_go(cx, rq, reason);
        self.queues[id].slice_dispatch += 1;
        self.active_context.get_or_insert(owner);
        self.turn = Turn::Begins;
    }

    fn due(&mut self, cx: &mut Cx<'_>, id: QueueId) -> Option<RequestId> {
        let now = now(cx);
        let queue = &mut self.queues[id];
        if core::mem::replace(&mut queue.fifo_checked, true) {
            return None;
        }
        let due = queue.fifo.head().filter(|oldest| self.bound[*oldest].expires <= now);
        if due.is_some() {
            self.say(cx, id, format_args!("fifo=(____ptrval____)"));
        }
        due
    }

    /// Some turns end by the number of requests.
    fn end_after_requests(&mut self, cx: &mut Cx<'_>, id: QueueId, left: i64) {
        let queue = &self.queues[id];
        let is_full = !queue.sync && left >= self.settings.async_round(queue.level);
        if self.busy_queues() > 1 && (is_full || queue.class == Class::Idle) {
            self.queues[id].slice_end = now(cx) + 1;
            self.expire(cx, id, false);
        }
    }

    /// Rules cfq-early-idle.
    pub(super) fn complete(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let (bound, now) = (self.bound[rq], now(cx));
        let id = bound.queue;
        self.say(cx, id, format_args!("complete"));
        self.depth.completed(self.in_driver[0] + self.in_driver[1], self.queued);
        let queue = &mut self.queues[id];
        queue.dispatched -= 1;
        self.in_driver[usize::from(queue.sync)] -= 1;
        self.sync_flight -= u32::from(queue.sync);
        let is_sync = cx.request(rq).is_sync();
        if is_sync {
            self.last_end_sync = now;
            if let Some(cic) = self.contexts.get_mut(&bound.io_context) {
                cic.think.last_end = now;
            }
        }
        if self.active == Some(id) {
            self.complete_of_active(cx, id, is_sync);
        }
        if self.in_driver == [0, 0] {
            self.schedule(cx);
        }
    }

    /// Rule cfq-early-idle-1.
    fn complete_of_active(&mut self, cx: &mut Cx<'_>, id: QueueId, is_sync: bool) {
        let now = now(cx);
        let queue = &mut self.queues[id];
        if core::mem::take(&mut queue.slice_new) {
            let slice = self.settings.turn(queue.sync, queue.level);
            queue.slice_end = now + slice;
            self.say(cx, id, format_args!("set_slice={slice}"));
        }
        if self.is_slice_used(cx, id) || self.queues[id].class == Class::Idle {
            self.expire(cx, id, true);
        } else if is_sync && self.queues[id].is_empty() && self.close_cooperator(cx, id).is_none() {
            self.arm_timer(cx, id);
        }
    }

    /// Has a worker run the queue, if anybody is busy.
    pub(super) fn schedule(&mut self, cx: &mut Cx<'_>) {
        if !self.tree.is_empty() {
            cx.message(format_args!("cfq schedule dispatch"));
            cx.run_queue(RunQueue::Async);
        }
    }

    /// Rule cfq-early-dispatch-1: everything leaves, in the order of turns.
    pub(super) fn drain(&mut self, cx: &mut Cx<'_>) -> Dispatched {
        let everybody: Vec<QueueId> = self.tree.iter().map(|entry| entry.2).collect();
        let mut left = 0;
        for id in everybody {
            while let Some(next) = self.queues[id].next {
                self.let_go(cx, next, DispatchReason::Drained);
                left += 1;
            }
        }
        if let Some(active) = self.active {
            self.expire(cx, active, false);
        }
        cx.message(format_args!("cfq forced_dispatch={left}"));
        if left == 0 { Dispatched::Empty } else { Dispatched::Some(left) }
    }
}
