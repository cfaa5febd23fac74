//! Rules bfq-select to bfq-complete, bfq-inject and bfq-queueing: turns, what
//! leaves, and what completions tell.

use super::{IDLE, MS, NaiveBfq};
use block::{Cx, RequestId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    TooIdle,
    Timeout,
    Exhausted,
    NoMore,
    Preempted,
}

impl NaiveBfq {
    pub(super) fn dispatch_one(&mut self, cx: &Cx<'_>) -> Option<RequestId> {
        if !self.heads.is_empty() {
            let rq = self.heads.remove(0);
            let q = self.requests[&rq].queue;
            self.queues[q].dispatched += 1;
            return self.start(rq);
        }
        if self.busy().is_empty() || self.strict && self.in_driver > 0 {
            return None;
        }
        let q = self.select(cx)?;
        let rq = self.queues[q].next.expect("a request to serve");
        self.served(q, self.charge_of(cx, q, rq));
        if self.serving == Some(q) && self.wait_dispatch {
            self.wait_dispatch = false;
            self.waited = Some(rq);
        }
        self.queues[q].dispatched += 1;
        self.note_dispatch(cx, rq);
        self.remove(cx, rq);
        if self.serving == Some(q) {
            self.update_raising(q);
            if self.busy().len() > 1 && self.entity(q).class == IDLE {
                self.expire(cx, q, false, Why::Exhausted);
            }
        } else if self.queues[q].fifo.is_empty() {
            self.leave_busy(q, false);
            self.entity_mut(q).budget = 0;
            self.entity_mut(q).service = 0;
        }
        self.start(rq)
    }

    fn start(&mut self, rq: RequestId) -> Option<RequestId> {
        self.in_driver += 1;
        self.requests.get_mut(&rq).expect("a request").started = true;
        Some(rq)
    }

    fn select(&mut self, cx: &Cx<'_>) -> Option<usize> {
        if let Some(q) = self.serving {
            if self.may_time_out(q) && !self.must_idle(q) {
                self.expire(cx, q, false, Why::Timeout);
            } else if let Some(found) = self.check(cx, q) {
                return found;
            }
        }
        loop {
            let e = self.next_queue()?;
            let q = self.queues.iter().position(|queue| queue.e == e).expect("a queue");
            self.set_in_service(q);
            if let Some(found) = self.check(cx, q) {
                return found;
            }
        }
    }

    /// Rules bfq-select-c to -e; none if its turn has ended.
    fn check(&mut self, cx: &Cx<'_>, q: usize) -> Option<Option<usize>> {
        if let Some(next) = self.queues[q].next {
            if self.charge_of(cx, q, next) > self.left(q) {
                self.expire(cx, q, false, Why::Exhausted);
                return None;
            }
            if std::mem::take(&mut self.queues[q].wait_request) {
                self.timer = None;
            }
            return Some(Some(q));
        }
        let waits = self.queues[q].wait_request;
        if waits || self.queues[q].dispatched > 0 && self.better_to_idle(q) {
            return Some(self.injection(cx, q));
        }
        self.expire(cx, q, false, Why::NoMore);
        None
    }

    fn fits(&self, cx: &Cx<'_>, q: usize) -> bool {
        let next = self.queues[q].next;
        next.is_some_and(|rq| self.charge_of(cx, q, rq) <= self.left(q))
    }

    fn injection(&mut self, cx: &Cx<'_>, q: usize) -> Option<usize> {
        let owner = self.queues[q].owner;
        let own = owner.and_then(|owner| self.processes[&owner].asyncs);
        let is_own = |rq: RequestId| Some(self.requests[&rq].process) == owner;
        let own = own.filter(|own| self.queues[*own].next.is_some_and(is_own));
        let woken = self.queues[q].woken.iter().copied().find(|woken| self.lives(*woken));
        let waker = self.queues[q].waker.filter(|waker| self.lives(*waker));
        for candidate in [own, waker, woken].into_iter().flatten() {
            if self.queues[candidate].busy && self.fits(cx, candidate) {
                return Some(candidate);
            }
        }
        let long = !self.queues[q].short;
        let may = !self.is_raised(q) || self.raised_busy() > 1 || long;
        if self.boosts(q) || !may {
            return None;
        }
        let mut limit = self.queues[q].limit;
        let nothing_known = limit == 0 && self.queues[q].serv_time == 0;
        let is_late = self.idling_jiffies + self.slice_idle <= self.jiffies;
        if nothing_known && self.queues[q].wait_request && is_late {
            limit = 1;
        }
        if self.in_driver >= limit {
            return None;
        }
        let open = !self.is_raised(q) || long;
        let found = self.active_list.iter().find_map(|e| {
            let other = self.queues.iter().position(|it| it.e == *e).expect("a queue");
            let next = self.queues[other].next?;
            let small = cx.request(next).sectors.0 < 64;
            let may = (open || self.is_raised(other))
                && self.fits(cx, other)
                && (self.rotational || small || self.in_driver == 0);
            may.then_some(other)
        });
        self.injected |= found.is_some();
        found
    }

    fn set_in_service(&mut self, q: usize) {
        let now = self.jiffies;
        self.queues[q].fifo_checked = false;
        self.assigned = (7 * self.assigned + 256) / 8;
        let (is_soft, raised) = (self.is_soft(q), self.is_raised(q));
        let queue = &mut self.queues[q];
        if raised && is_soft && queue.wr_last < now && queue.budget_timeout < now {
            match queue.budget_timeout > queue.wr_last {
                true => queue.wr_last += now - queue.budget_timeout,
                false => queue.wr_last = now,
            }
        }
        let entity = self.entity(q);
        let coefficient = if is_soft { 1 } else { entity.weight / entity.orig };
        self.queues[q].budget_timeout = now + self.timeout * coefficient;
        self.last_budget_start = self.nanos;
        self.serving = Some(q);
    }

    fn may_time_out(&self, q: usize) -> bool {
        let enough = self.left(q) >= self.entity(q).budget / 3;
        (!self.queues[q].wait_request || enough) && self.jiffies >= self.queues[q].budget_timeout
    }

    pub(super) fn served(&mut self, q: usize, sectors: i64) {
        if self.is_raised(q) {
            self.queues[q].from_wr += sectors;
        }
        self.queues[q].backlogged += sectors;
        self.charge(self.queues[q].e, sectors);
    }

    /// Rule bfq-expire.
    pub(super) fn expire(&mut self, cx: &Cx<'_>, q: usize, compensate: bool, why: Why) {
        let (time, slow) = self.slowness(q, compensate);
        let enough = self.left(q) >= self.entity(q).budget / 3;
        if !self.is_raised(q) && (slow || why == Why::Timeout && enough) {
            let constant = (self.hz / 8) * 1_000 / self.hz;
            let t = (time / MS).min(constant);
            let service = self.entity(q).service;
            let total = (self.max_budget * t / constant).max(service);
            self.entity_mut(q).budget = self.entity(q).budget.max(total);
            self.served(q, total - service);
        }
        if self.low_latency {
            if !self.is_raised(q) {
                self.queues[q].wr_last = self.jiffies;
            }
            if self.queues[q].fifo.is_empty() {
                match self.queues[q].dispatched {
                    0 => self.queues[q].soft_next = self.next_soft_start(q),
                    _ => self.queues[q].softrt_update = true,
                }
            }
        }
        self.injected = false;
        self.wait_dispatch = false;
        self.waited = None;
        self.new_budget(cx, q, why);
        let stays = why == Why::Preempted && self.guarantees(q);
        self.give_up(q, stays);
        let keeps = !self.queues[q].busy && !matches!(why, Why::Timeout | Why::Exhausted);
        if keeps {
            self.queues[q].non_blocking = true;
        } else {
            self.entity_mut(q).service = 0;
        }
        for e in self.family(self.queues[q].e).into_iter().skip(1) {
            self.entities[e].service = 0;
        }
    }

    fn slowness(&self, q: usize, compensate: bool) -> (i64, bool) {
        if !self.queues[q].sync {
            return (0, false);
        }
        let end = if compensate { self.idling_start } else { self.nanos };
        let d = end - self.last_budget_start;
        if d < MS {
            return (if self.rotational { 8 * MS } else { 2 * MS }, self.seeky(q));
        }
        let slow =
            if d > 20 * MS { self.entity(q).service < self.max_budget / 2 } else { self.seeky(q) };
        (d, slow)
    }

    fn new_budget(&mut self, cx: &Cx<'_>, q: usize, why: Why) {
        let (min, max) = (self.min_budget(), self.max_budget);
        let raised = self.is_raised(q);
        let mut b = if raised { 2 * min } else { self.queues[q].max_budget };
        if !self.queues[q].sync {
            b = max;
        } else if !raised {
            b = match why {
                Why::TooIdle if self.queues[q].dispatched > 0 => (2 * b).min(max),
                Why::TooIdle if b > 5 * min => b - 4 * min,
                Why::TooIdle => min,
                Why::Timeout => (2 * b).min(max),
                Why::Exhausted => (4 * b).min(max),
                Why::NoMore => self.entity(q).service.max(min),
                Why::Preempted => return,
            };
        }
        if self.assigned >= 194 && self.max_budget_set == 0 {
            b = b.min(max);
        }
        self.queues[q].max_budget = b;
        if let Some(next) = self.queues[q].next {
            self.entity_mut(q).budget = b.max(self.charge_of(cx, q, next));
        }
    }

    /// Rules bfq-expire-5 and -6.
    pub(super) fn give_up(&mut self, q: usize, stays: bool) {
        if self.queues[q].fifo.is_empty() && !stays {
            if self.queues[q].dispatched == 0 {
                self.queues[q].budget_timeout = self.jiffies;
            }
            self.leave_busy(q, true);
        } else {
            self.activate_up(self.queues[q].e, false, true);
        }
        self.serving = None;
        self.queues[q].wait_request = false;
        self.timer = None;
        self.nobody_serves(self.queues[q].e);
    }

    pub(super) fn leave_busy(&mut self, q: usize, expiration: bool) {
        self.queues[q].busy = false;
        self.busy_in_class[self.entity(q).class] -= 1;
        self.deactivate_up(self.queues[q].e, true, expiration);
        if self.queues[q].dispatched == 0 {
            self.queues[q].pending = false;
            self.entity_mut(q).counted = None;
        }
    }

    /// Rule bfq-complete.
    pub(super) fn complete(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let (q, now) = (self.requests[&rq].queue, self.nanos);
        if self.waited == Some(rq) {
            self.adapt_limit(q);
        }
        self.look_at_depth();
        self.in_driver -= 1;
        self.queues[q].dispatched -= 1;
        if self.queues[q].dispatched == 0 && !self.queues[q].busy {
            self.queues[q].budget_timeout = self.jiffies;
            self.queues[q].pending = false;
            self.entity_mut(q).counted = None;
        }
        self.queues[q].think.last_end = now;
        let gap = (now - self.last_completion) / 1_000;
        if gap > 2_000 && (self.rate.largest << 16) / gap < 64 {
            // Observed: a gap ends an interval with an estimate.
            self.evaluate_rate(None);
        }
        self.last_completion = now;
        self.last_completed = Some(q);
        let queue = &self.queues[q];
        let is_done = queue.softrt_update && queue.dispatched == 0 && queue.fifo.is_empty();
        if is_done && self.entity(q).raised != 30 {
            self.queues[q].soft_next = self.next_soft_start(q);
        }
        if self.serving != Some(q) {
            return;
        }
        let idle = self.queues[q].dispatched == 0;
        if self.must_idle(q) {
            if idle {
                self.arm_timer(q);
            }
        } else if self.may_time_out(q) {
            self.expire(cx, q, false, Why::Timeout);
        } else if self.queues[q].fifo.is_empty() && (idle || !self.better_to_idle(q)) {
            self.expire(cx, q, false, Why::NoMore);
        }
    }

    fn arm_timer(&mut self, q: usize) {
        self.queues[q].wait_request = true;
        let mut t = self.slice_idle;
        if self.seeky(q) && !self.is_raised(q) && !self.asymmetric(q) {
            t = t.min(2 * MS);
        } else if self.is_raised(q) {
            t = t.max(20 * MS);
        }
        self.idling_start = self.nanos;
        self.idling_jiffies = self.jiffies;
        self.timer = Some(self.nanos + t);
    }

    pub(super) fn timer_fired(&mut self, cx: &Cx<'_>) {
        self.timer = None;
        let Some(q) = self.serving else { return };
        self.queues[q].wait_request = false;
        if self.jiffies >= self.queues[q].budget_timeout {
            self.expire(cx, q, true, Why::Timeout);
        } else if self.queues[q].fifo.is_empty() {
            self.expire(cx, q, true, Why::TooIdle);
        }
    }

    /// Rule bfq-inject, the update.
    fn adapt_limit(&mut self, q: usize) {
        let time = self.nanos - self.occupied;
        let (deepest, injected, alone) = (self.max_in_driver, self.injected, self.in_driver == 1);
        let (now, queue) = (self.jiffies, &mut self.queues[q]);
        let old = queue.limit;
        if queue.serv_time > 0 && injected {
            let threshold = queue.serv_time * 3 / 2;
            if time >= threshold && old > 0 {
                queue.limit -= 1;
                queue.decreased = now;
            } else if time < threshold && old <= deepest {
                queue.limit += 1;
            }
        }
        if queue.serv_time == 0 && alone || time < queue.serv_time {
            if queue.serv_time == 0 {
                queue.limit = old.max(1);
            }
            queue.serv_time = time;
        } else if !injected && alone {
            queue.serv_time = time;
        }
        self.waited = None;
        self.injected = false;
    }

    /// Rule bfq-queueing.
    fn look_at_depth(&mut self) {
        self.max_in_driver = self.max_in_driver.max(self.in_driver);
        if self.hw_tag == 1 || self.in_driver + self.queued() <= 3 {
            return;
        }
        let shallow = self.serving.is_some_and(|q| {
            let queue = &self.queues[q];
            queue.short && queue.dispatched + (queue.fifo.len() as i64) < 3 && self.in_driver < 3
        });
        if shallow {
            return;
        }
        self.hw_samples += 1;
        if self.hw_samples > 32 {
            self.hw_tag = i64::from(self.max_in_driver > 3);
            self.max_in_driver = 0;
            self.hw_samples = 0;
            self.queueing = !self.rotational && self.hw_tag != 0;
        }
    }
}
