//! What leaves: one request of the queue whose turn it is, if it may (rules cfq-dispatch).

use super::binding::Bound;
use super::depth::Load;
use super::idle::is_noidle;
use super::queue::{Class, Queue, QueueId};
use super::select::Selected;
use super::{Cfq, Kind, Turn};
use alloc::vec::Vec;
use block::scheduler::{Dispatched, Placement, RunQueue};
use block::{Cx, DispatchReason, HoldReason, RequestId};
use core::hint::select_unpredictable;

impl Cfq {
    /// Rules cfq-dispatch-1 to cfq-dispatch-3, when somebody is busy.
    pub(super) fn dispatch_one(&mut self, cx: &mut Cx<'_>) -> Dispatched {
        let id = match self.select(cx) {
            Selected::Queue(id) => id,
            Selected::Hold(reason) => return Dispatched::Hold(reason),
            Selected::Nothing => return Dispatched::Empty,
        };
        let expired = self.check_fifo(cx, id);
        match self.may_dispatch(cx, id) {
            Ok(()) => self.dispatch_from(cx, id, expired),
            Err(reason) => Dispatched::Hold(reason),
        }
    }

    /// A request of this queue goes: the one that has waited too long, or the next.
    // Kept apart: twice as often the answer is no.
    #[inline(never)]
    fn dispatch_from(
        &mut self,
        cx: &mut Cx<'_>,
        id: QueueId,
        expired: Option<RequestId>,
    ) -> Dispatched {
        if expired.is_some() {
            self.say(cx, id, format_args!("fifo=(____ptrval____)"));
        }
        let queue = &self.queues[id];
        let next = queue.next.expect("the queue has requests");
        let reason = match (expired, queue.slice_dispatch) {
            (Some(_), _) => DispatchReason::Expired,
            (None, 0) => self.turn.reason(id),
            (None, _) => DispatchReason::TurnContinues,
        };
        self.let_go(cx, expired.unwrap_or(next), reason);
        self.turn = Turn::Begins;
        self.after_dispatch(cx, id);
        Dispatched::Some(1)
    }

    /// Rule cfq-dispatch-2: once a turn, whether the oldest request has waited too long.
    fn check_fifo(&mut self, cx: &Cx<'_>, id: QueueId) -> Option<RequestId> {
        let now = self.now(cx);
        let queue = &mut self.queues[id];
        if core::mem::replace(&mut queue.fifo_checked, true) {
            return None;
        }
        let expired = queue.fifo.head().filter(|oldest| self.bound[*oldest].expires <= now);
        queue.must_dispatch |= expired.is_some();
        expired
    }

    /// Rule cfq-dispatch-1: moves a request to the dispatch list.
    fn let_go(&mut self, cx: &mut Cx<'_>, rq: RequestId, reason: DispatchReason) {
        let bound = self.bound[rq];
        let id = bound.queue;
        self.say(cx, id, format_args!("dispatch_insert"));
        let follows = self.take_out(cx, id, rq);
        let queue = &mut self.queues[id];
        queue.next = follows;
        queue.dispatched += 1;
        queue.sectors += u64::from(cx.request(rq).sectors.0);
        let (sync, group) = (queue.sync, queue.group);
        self.group_mut(group).dispatched += 1;
        self.in_flight[usize::from(sync)] += 1;
        cx.issue(rq, Placement::Sorted, reason);
        self.active_context.get_or_insert(bound.io_context);
    }

    /// Follows somebody who let this request go: its queue has the turn. If it had not, or its time
    /// is over, that turn ends, and the queue's begins.
    pub(super) fn follow(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let id = self.bound[rq].queue;
        if self.active != Some(id) || !self.goes_on(cx, id) {
            if let Some(active) = self.active {
                self.expire(cx, active, false);
            }
            self.put_first(self.queues[id].group);
            self.serve(cx, id);
            self.doubt_first(id);
            self.set_active(cx, id);
        }
        self.queues[id].wait_request = false;
        self.timer = None;
        let goes_on = self.queues[id].slice_dispatch > 0;
        let reason = if goes_on { DispatchReason::TurnContinues } else { self.turn.reason(id) };
        self.let_go(cx, rq, reason);
        self.turn = Turn::Begins;
        self.after_dispatch(cx, id);
    }

    /// Rule cfq-dispatch-3: some turns end by the number of requests.
    fn after_dispatch(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let now = self.now(cx);
        let most = 2 * self.settings.slice_async_rq * (8 - i64::from(self.queues[id].level));
        let queue = &mut self.queues[id];
        queue.slice_dispatch += 1;
        queue.must_dispatch = false;
        let is_full = !queue.sync && i64::from(queue.slice_dispatch) >= most;
        if self.busy_queues > 1 && (is_full || queue.class == Class::Idle) {
            queue.slice_end = now + 1;
            self.expire(cx, id, false);
        }
        self.say(cx, id, format_args!("dispatched a request"));
    }

    /// Rules cfq-dispatch-4 to cfq-dispatch-6.
    fn may_dispatch(&mut self, cx: &mut Cx<'_>, id: QueueId) -> Result<(), HoldReason> {
        let queue = &self.queues[id];
        if queue.must_dispatch {
            return Ok(());
        }
        // With nothing asynchronous in flight the answer only matters to who reads that it is no.
        let has_async = self.in_flight[0] > 0;
        if has_async || cx.wants_messages() {
            let is_worth_it = self.should_idle(cx, id);
            if has_async && is_worth_it {
                return Err(HoldReason::AsyncInFlight);
            }
        }
        if self.in_flight[1] > 0 && !queue.sync {
            return Err(HoldReason::SyncInFlight);
        }
        let dispatched = i64::from(queue.dispatched);
        let is_idle = queue.class == Class::Idle;
        let mut most = if is_idle { 1 } else { (self.settings.quantum / 2).max(1) };
        if dispatched >= most {
            if is_idle {
                return Err(HoldReason::Quantum);
            }
            let only_sync = queue.sync && self.busy_sync_queues == 1;
            if self.busy_queues > 1 && !only_sync && self.is_used_soon(cx, queue) {
                return Err(HoldReason::Quantum);
            }
            let is_free = self.busy_queues == 1 || only_sync;
            most = if is_free { i64::MAX } else { self.settings.quantum };
        }
        if !queue.sync && self.settings.low_latency {
            let since = self.now(cx) - self.last_delayed_sync;
            let ramp = since / self.settings.slice[1];
            let ramp = if ramp == 0 && dispatched == 0 { 1 } else { ramp };
            if ramp < most && dispatched >= ramp {
                return Err(HoldReason::AsyncDepth);
            }
        }
        if dispatched < most { Ok(()) } else { Err(HoldReason::Quantum) }
    }

    /// Whether what the queue has in flight will last until the end of its turn.
    fn is_used_soon(&self, cx: &Cx<'_>, queue: &Queue) -> bool {
        let lasts = self.settings.slice_idle * i64::from(queue.dispatched);
        queue.slice_new || self.now(cx) + lasts > queue.slice_end
    }

    /// Rules cfq-dispatch-7, cfq-slice-4, cfq-idle-2, cfq-idle-5 and cfq-idle-8.
    pub(super) fn complete(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let (bound, now) = (self.bound[rq], self.now(cx));
        let id = bound.queue;
        if cx.wants_messages() {
            let noidle = u8::from(is_noidle(cx, rq));
            self.say(cx, id, format_args!("complete rqnoidle {noidle}"));
        }
        self.probe_depth();
        self.in_driver -= 1;
        let queue = &mut self.queues[id];
        queue.dispatched -= 1;
        self.in_flight[usize::from(queue.sync)] -= 1;
        self.note_end(cx, rq, bound, now);
        if self.active == Some(id) {
            self.complete_of_active(cx, id);
        }
        if self.in_driver == 0 {
            self.schedule(cx);
        }
    }

    fn probe_depth(&mut self) {
        if self.depth.is_decided() {
            return;
        }
        let waiting = |id: QueueId| {
            let queue = &self.queues[id];
            queue.idle_window.then(|| queue.dispatched + queue.fifo.len())
        };
        let active = self.active.and_then(waiting);
        let load = Load { in_driver: self.in_driver, queued: self.queued, active };
        self.depth.completed(load);
    }

    /// Rule cfq-dispatch-7: the group has one less in flight, and from now on they think.
    fn note_end(&mut self, cx: &Cx<'_>, rq: RequestId, bound: Bound, now: i64) {
        let (request, queue) = (cx.request(rq), &self.queues[bound.queue]);
        let (class, kind) = queue.tree();
        let sync = queue.sync;
        let group = self.group_mut(queue.group);
        group.dispatched -= 1;
        group.think.last_end = now;
        if sync {
            group.tree_mut(class, kind).think.last_end = now;
            if let Some(cic) = self.contexts.get_mut(bound.io_context) {
                cic.think.last_end = now;
            }
            let due = request.allocated_at.as_nanos() as i64 + self.settings.fifo_expire[1];
            // Under load half of them are late, in no order: no branch.
            self.last_delayed_sync = select_unpredictable(due <= now, now, self.last_delayed_sync);
        }
    }

    /// Rules cfq-slice-4 and cfq-idle-2.
    fn complete_of_active(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        if self.queues[id].slice_new {
            self.set_slice(cx, id);
        }
        if self.should_wait_busy(cx, id) {
            let idle = self.settings.slice_idle;
            let extra = if idle > 0 { idle } else { self.settings.group_idle };
            self.queues[id].slice_end = self.now(cx) + extra;
            self.queues[id].wait_busy = true;
            self.say(cx, id, format_args!("will busy wait"));
        }
        let queue = &self.queues[id];
        if queue.is_slice_used(self.now(cx)) || queue.class == Class::Idle {
            self.expire(cx, id, true);
        } else if queue.sync && queue.is_empty() && self.close_cooperator(cx, id).is_none() {
            self.arm_timer(cx, id);
        }
    }

    /// Has a worker run the queue, if anybody is busy.
    pub(super) fn schedule(&mut self, cx: &mut Cx<'_>) {
        if self.busy_queues > 0 {
            cx.message(format_args!("cfq schedule dispatch"));
            cx.run_queue(RunQueue::Async);
        }
    }

    /// Rule cfq-select-10: everything leaves.
    #[cold]
    pub(super) fn drain(&mut self, cx: &mut Cx<'_>) -> Dispatched {
        if let Some(active) = self.active {
            self.expire(cx, active, false);
        }
        let mut left = 0;
        for id in self.everybody() {
            self.set_active(cx, id);
            while let Some(next) = self.queues[id].next {
                self.let_go(cx, next, DispatchReason::Drained);
                left += 1;
            }
            self.expire(cx, id, false);
        }
        cx.message(format_args!("cfq forced_dispatch={left}"));
        if left == 0 { Dispatched::Empty } else { Dispatched::Some(left) }
    }

    /// Busy queues, group by group and tree by tree.
    fn everybody(&self) -> Vec<QueueId> {
        let mut queues = Vec::new();
        for group in self.group_tree.iter() {
            let group = self.group(group);
            for class in [Class::BestEffort, Class::RealTime] {
                for kind in Kind::ALL {
                    queues.extend(group.tree(class, kind).iter().map(|(_, id)| id));
                }
            }
            queues.extend(group.idle_tree.iter().map(|(_, id)| id));
        }
        queues
    }
}
