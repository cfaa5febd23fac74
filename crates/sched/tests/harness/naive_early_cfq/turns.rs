//! Whose turn it is, what leaves, and when somebody is waited for (rules cfq-early-preempt,
//! cfq-early-select, cfq-early-dispatch, cfq-early-idle and cfq-early-end).

use super::super::shadow::Naive;
use super::*;

impl NaiveEarlyCfq {
    // Rules cfq-early-preempt

    pub(super) fn should_preempt(&self, cx: &Cx<'_>, n: usize, rq: RequestId) -> bool {
        let Some(active) = self.active else { return false };
        let (new, a, request) = (&self.queues[n], &self.queues[active], cx.request(rq));
        if self.used(cx, active) {
            return true;
        }
        if new.class == IDLE {
            return false;
        }
        if a.class == IDLE || request.is_sync() && !a.sync {
            return true;
        }
        let pending = a.fifo.iter().any(|it| cx.request(*it).flags.intersects(Flags::META));
        if request.flags.intersects(Flags::META) && !pending {
            return true;
        }
        if !self.first && new.class == RT && a.class != RT {
            return true;
        }
        let Some(owner) = self.active_process.filter(|_| a.wait_request) else { return false };
        let distance = (sector(request.sector) - self.last_position).abs();
        if self.first {
            let seek = self.processes.get(&owner).map(|process| process.seek);
            return seek.is_some_and(|seek| seek.is_valid() && distance <= seek.mean);
        }
        distance <= if a.seek.is_valid() { a.seek.mean } else { 8192 }
    }

    // Rules cfq-early-select and cfq-early-end

    pub(super) fn used(&self, cx: &Cx<'_>, q: usize) -> bool {
        !self.queues[q].slice_new && self.now(cx) >= self.queues[q].slice_end
    }

    pub(super) fn expire(&mut self, cx: &Cx<'_>, q: usize, timed_out: bool) {
        if std::mem::take(&mut self.queues[q].wait_request) {
            self.timer = None;
        }
        if timed_out && !self.queues[q].slice_new {
            self.queues[q].resid = self.queues[q].slice_end - self.now(cx);
        }
        if self.queues[q].place.is_some() {
            let busy = self.busy();
            self.put_in_order(cx, q, busy);
        }
        self.active = None;
        self.active_process = None;
    }

    pub(super) fn select(&mut self, cx: &Cx<'_>) -> Option<usize> {
        if let Some(q) = self.active {
            let queue = &self.queues[q];
            if queue.must_dispatch || !self.used(cx, q) {
                if !queue.fifo.is_empty() {
                    return Some(q);
                }
                if self.timer.is_some() || queue.dispatched > 0 && queue.idle_window {
                    return None;
                }
            }
            self.expire(cx, q, false);
        }
        let q = self.first_in_tree()?;
        let queue = &mut self.queues[q];
        queue.slice_end = 0;
        queue.slice_new = true;
        queue.moved_in_turn = 0;
        queue.must_alloc = false;
        queue.must_dispatch = false;
        queue.fifo_checked = false;
        self.active = Some(q);
        Some(q)
    }

    // Rules cfq-early-dispatch

    pub(super) fn move_next(&mut self, cx: &Cx<'_>, q: usize) -> RequestId {
        let mut rq = self.queues[q].next;
        if !std::mem::replace(&mut self.queues[q].fifo_checked, true) {
            let oldest = self.queues[q].fifo.first().copied();
            let due = oldest.filter(|rq| self.requests[rq].expires <= self.now(cx));
            rq = due.or(rq);
        }
        let rq = rq.expect("the queue has requests");
        self.let_go(cx, rq, None);
        self.queues[q].moved_in_turn += 1;
        self.active_process.get_or_insert(self.requests[&rq].process);
        rq
    }

    /// What a queue may have in flight.
    pub(super) fn most(&self, q: usize) -> i64 {
        if self.queues[q].class == IDLE { 1 } else { self.quantum }
    }

    pub(super) fn may_go_28(&self, q: usize) -> bool {
        let (queue, most) = (&self.queues[q], self.most(q));
        let full = queue.dispatched >= most && self.busy() > 1 || queue.dispatched >= 4 * most;
        !full && (queue.sync || self.sync_flight == 0)
    }

    /// Rules cfq-early-dispatch.
    pub(super) fn may_go_32(&self, cx: &Cx<'_>, q: usize) -> bool {
        let queue = &self.queues[q];
        if queue.idle_window && self.in_driver[0] > 0 || !queue.sync && self.sync_flight > 0 {
            return false;
        }
        let mut most = self.most(q);
        if queue.dispatched >= most {
            if queue.class == IDLE || self.busy() > 1 {
                return false;
            }
            most = 4 * self.quantum;
        }
        if !queue.sync && self.low_latency {
            let mut depth = (self.now(cx) - self.last_sync_end) / self.slice[1];
            if depth == 0 && queue.dispatched == 0 {
                depth = 1;
            }
            most = most.min(depth);
        }
        queue.dispatched < most
    }

    pub(super) fn dispatch_rounds(&mut self, cx: &Cx<'_>) -> Vec<RequestId> {
        let mut left = Vec::new();
        while let Some(q) = self.select(cx) {
            if !self.may_go_28(q) {
                break;
            }
            self.queues[q].wait_request = false;
            self.timer = None;
            let mut round = 0;
            while round < self.most(q) && !self.queues[q].fifo.is_empty() {
                left.push(self.move_next(cx, q));
                round += 1;
            }
            self.end_by_number(cx, q, round);
        }
        left
    }

    pub(super) fn dispatch_one(&mut self, cx: &Cx<'_>) -> Vec<RequestId> {
        let Some(q) = self.select(cx) else { return Vec::new() };
        if !self.may_go_32(cx, q) {
            return Vec::new();
        }
        self.queues[q].wait_request = false;
        self.timer = None;
        let rq = self.move_next(cx, q);
        self.queues[q].must_dispatch = false;
        let moved = self.queues[q].moved_in_turn;
        self.end_by_number(cx, q, moved);
        vec![rq]
    }

    pub(super) fn end_by_number(&mut self, cx: &Cx<'_>, q: usize, number: i64) {
        let cap = 2 * (self.async_rq + self.async_rq * (7 - self.queues[q].level));
        let full = !self.queues[q].sync && number >= cap;
        if self.busy() > 1 && (full || self.queues[q].class == IDLE) {
            self.queues[q].slice_end = self.now(cx) + 1;
            self.expire(cx, q, false);
        }
    }

    // Rules cfq-early-idle

    pub(super) fn arm(&mut self, cx: &Cx<'_>, q: usize) {
        let fast = !cx.limits().facts.rotational && self.hw_tag;
        if fast || self.slice_idle == 0 || !self.queues[q].idle_window || self.in_driver != [0, 0] {
            return;
        }
        let Some(owner) = self.active_process else { return };
        if cx.io_context(IoContextId(owner)).tasks == 0 {
            return;
        }
        let think = self.processes.get(&owner).map(|process| process.think);
        let left = self.queues[q].slice_end - self.now(cx);
        if !self.first && think.is_some_and(|think| think.samples > 80 && left < think.mean) {
            return;
        }
        let seek = self.seek_of(owner, q);
        let seeky = seek.is_valid() && seek.is_seeky();
        let wait = if seeky { self.short_idle() } else { self.slice_idle };
        self.queues[q].wait_request = true;
        self.timer = Some(self.now(cx) + wait);
    }

    pub(super) fn estimate_depth(&mut self) {
        let in_driver = self.in_driver[0] + self.in_driver[1];
        self.peak = self.peak.max(in_driver);
        if self.queued() <= 5 && in_driver <= 5 {
            return;
        }
        self.samples += 1;
        if self.samples == 51 {
            self.hw_tag = self.peak >= 5;
            (self.peak, self.samples) = (0, 0);
        }
    }
}
