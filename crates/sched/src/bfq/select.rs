//! Whose turn it is, and what leaves (rules bfq-select and bfq-complete).

use super::Bfq;
use super::budget::Reason;
use super::queue::QueueId;
use super::rules::OnFlash;
use block::scheduler::{Dispatched, Placement};
use block::{Cx, DispatchReason, HoldReason, RequestId};

impl Bfq {
    pub(super) fn dispatch_one(&mut self, cx: &mut Cx<'_>) -> Dispatched {
        if let Some(rq) = self.heads.pop_front(&mut self.head_links) {
            let id = self.queue_of_request(rq);
            self.queues[id].dispatched += 1;
            return self.start(cx, rq, DispatchReason::Requeued);
        }
        let busy = self.busy_queues();
        self.message(cx, format_args!("dispatch requests: {busy} busy queues"));
        if busy == 0 {
            return Dispatched::Empty;
        }
        if self.settings.strict_guarantees && self.in_driver > 0 {
            return self.held(HoldReason::TurnNotDone);
        }
        let before = self.in_service;
        let Some(id) = self.select(cx) else {
            return self.held(self.why_held());
        };
        let reason = match (self.in_service == Some(id), before == Some(id)) {
            (false, _) => DispatchReason::Injected,
            (true, true) => DispatchReason::TurnContinues,
            (true, false) => DispatchReason::TurnBegins,
        };
        let rq = self.dispatch_from(cx, id);
        self.start(cx, rq, reason)
    }

    /// Nothing is given. Older kernels ask as long as a queue is busy, and it may have nothing.
    fn held(&self, reason: HoldReason) -> Dispatched {
        if self.queued > 0 { Dispatched::Hold(reason) } else { Dispatched::Empty }
    }

    fn why_held(&self) -> HoldReason {
        let waits = self.in_service.is_some_and(|id| self.queues[id].wait_request);
        if waits { HoldReason::ProcessIdles } else { HoldReason::TurnNotDone }
    }

    fn start(&mut self, cx: &mut Cx<'_>, rq: RequestId, reason: DispatchReason) -> Dispatched {
        self.bound[rq].is_started = true;
        self.in_driver += 1;
        cx.issue(rq, Placement::Tail, reason);
        Dispatched::Some(1)
    }

    /// The queue that is served next.
    fn select(&mut self, cx: &mut Cx<'_>) -> Option<QueueId> {
        if let Some(id) = self.in_service {
            self.say(cx, id, format_args!("select_queue: already in-service queue"));
            if self.may_time_out(cx, id) && !self.must_idle(id) {
                self.expire(cx, id, false, Reason::BudgetTimeout);
            } else {
                match self.check_queue(cx, id) {
                    Checked::Serve(id) => return self.returned(cx, Some(id)),
                    Checked::Wait => return self.returned(cx, None),
                    Checked::Expired => {}
                }
            }
        }
        loop {
            let Some(entity) = self.engine.serve_next() else {
                return self.returned(cx, None);
            };
            let id = self.engine[entity].queue.expect("the entity of a queue");
            self.set_in_service(cx, id);
            self.say(cx, id, format_args!("select_queue: checking new queue"));
            match self.check_queue(cx, id) {
                Checked::Serve(id) => return self.returned(cx, Some(id)),
                Checked::Wait => return self.returned(cx, None),
                Checked::Expired => {}
            }
        }
    }

    fn returned(&self, cx: &mut Cx<'_>, id: Option<QueueId>) -> Option<QueueId> {
        match id {
            Some(id) => self.say(cx, id, format_args!("select_queue: returned this queue")),
            None => self.message(cx, format_args!("select_queue: no queue returned")),
        }
        id
    }

    /// What can be done with the queue in service.
    fn check_queue(&mut self, cx: &mut Cx<'_>, id: QueueId) -> Checked {
        if let Some(next) = self.queues[id].next {
            if self.charge_of(cx, id, next) as i64 > self.budget_left(id) {
                self.expire(cx, id, false, Reason::BudgetExhausted);
                return Checked::Expired;
            }
            if self.queues[id].wait_request {
                self.queues[id].wait_request = false;
                self.timer = None;
            }
            return Checked::Serve(id);
        }
        let queue = &self.queues[id];
        if queue.wait_request || queue.dispatched > 0 && self.is_better_to_idle(id) {
            return match self.injected(cx, id) {
                Some(other) => Checked::Serve(other),
                None => Checked::Wait,
            };
        }
        self.expire(cx, id, false, Reason::NoMoreRequests);
        Checked::Expired
    }

    fn dispatch_from(&mut self, cx: &mut Cx<'_>, id: QueueId) -> RequestId {
        let rq = self.queues[id].next.expect("a queue that is served has a request");
        let charge = self.charge_of(cx, id, rq);
        self.serve(cx, id, charge);
        if self.in_service == Some(id) && self.measured.wait_dispatch {
            self.measured.wait_dispatch = false;
            self.measured.waited = Some(rq);
        }
        self.queues[id].dispatched += 1;
        self.sample_dispatch(cx, id, rq);
        self.take_out(cx, id, rq);
        if self.in_service != Some(id) {
            self.note_injected(charge);
            if self.queues[id].is_empty() {
                self.leave_busy(cx, id, false);
            }
            return rq;
        }
        self.update_raising(cx, id);
        if self.busy_queues() > 1 && self.is_idle_class(self.queues[id].entity) {
            self.expire(cx, id, false, Reason::BudgetExhausted);
        }
        rq
    }

    /// A request of a queue is done, or given back.
    pub(super) fn complete(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let id = self.queue_of_request(rq);
        if self.measured.waited == Some(rq) {
            self.adapt_injection(id);
        }
        self.probe_depth();
        self.in_driver -= 1;
        self.queues[id].dispatched -= 1;
        let (now, nanos) = (self.jiffies, self.nanos);
        let queue = &self.queues[id];
        if queue.dispatched == 0 && !queue.is_busy {
            self.queues[id].budget_timeout = now;
            self.leave_pending(id);
            let entity = self.queues[id].entity;
            if self.engine.has_weight(entity) {
                self.engine.leave_weights(entity);
                self.follow_notes(cx);
            }
        }
        self.queues[id].think.last_end = nanos;
        self.look_for_gap(cx);
        self.last_completed = (!self.queues[id].coop).then_some(id);
        let queue = &self.queues[id];
        let is_done = queue.softrt_update && queue.dispatched == 0 && queue.is_empty();
        if is_done && self.may_play(id, false) {
            let start = self.next_soft_start(id);
            self.queues[id].soft_rt_next_start = start;
        }
        if self.in_service == Some(id) {
            if self.must_idle(id) {
                if self.queues[id].dispatched == 0 {
                    self.arm_timer(id);
                }
                return;
            }
            if self.may_time_out(cx, id) {
                self.expire(cx, id, false, Reason::BudgetTimeout);
            } else if self.queues[id].is_empty() {
                self.expire(cx, id, false, Reason::NoMoreRequests);
            }
        }
        if self.in_driver == 0 {
            self.schedule(cx);
        }
    }

    /// Whether the disk takes several requests at once.
    fn probe_depth(&mut self) {
        self.max_in_driver = self.max_in_driver.max(self.in_driver);
        if self.hw_tag == Some(true) || self.in_driver + self.queued <= 3 {
            return;
        }
        let served = self.in_service.map(|id| &self.queues[id]);
        let is_shallow = self.rules.knows_shallow
            && served.is_some_and(|queue| {
                let all = queue.dispatched + queue.queued[0] + queue.queued[1];
                queue.has_short_think && all < 3 && self.in_driver < 3
            });
        self.hw_tag_samples += u32::from(!is_shallow);
        if is_shallow || self.hw_tag_samples <= 32 {
            return;
        }
        self.hw_tag = Some(self.max_in_driver > self.rules.deep);
        self.max_in_driver = 0;
        self.hw_tag_samples = 0;
        self.set_nonrot_with_queueing();
    }

    pub(super) fn set_nonrot_with_queueing(&mut self) {
        let merges = self.rules.on_flash == OnFlash::Merge;
        self.nonrot_with_queueing = !merges && !self.is_rotational && self.hw_tag != Some(false);
    }
}

/// What came of looking at the queue in service.
enum Checked {
    Serve(QueueId),
    Wait,
    Expired,
}
