//! Rules bfq-insert and bfq-busy: what arrives, and what follows what leaves.

use super::turns::Why;
use super::{IDLE, NaiveBfq};
use base::Sector;
use block::{Cx, RequestId};

impl NaiveBfq {
    // Rule bfq-insert

    pub(super) fn insert_request(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let q = self.requests[&rq].queue;
        let (sync, request) = (cx.request(rq).is_sync(), cx.request(rq));
        if self.queues[q].dispatched == 0 && !self.queues[q].busy {
            let (now, most) = (self.nanos, 2 * self.slice_idle as u64);
            let think = &mut self.queues[q].think;
            let elapsed = ((now - think.last_end) as u64).min(most) as i64;
            think.samples = (7 * think.samples + 256) / 8;
            think.total = (7 * think.total + 256 * elapsed) / 8;
        }
        self.look_at_think_time(q);
        let far =
            self.is_seek(self.queues[q].last_end, request.sector.0, i64::from(request.sectors.0));
        self.queues[q].history = self.queues[q].history << 1 | u32::from(far);
        self.end_soft_of_seeky(q);
        self.add(cx, q, rq);
        let expires = self.nanos + self.fifo_expire[usize::from(sync)];
        self.requests.get_mut(&rq).expect("it is bound").expires = expires;
        self.queues[q].last_end = request.end().0;
        if self.serving == Some(q) && self.queues[q].wait_request {
            let same = |it: &&RequestId| cx.request(**it).is_sync() == sync;
            let one = self.queues[q].fifo.iter().filter(same).count() == 1;
            let small = one && request.sectors.0 < 32;
            let timed_out = self.jiffies >= self.queues[q].budget_timeout;
            if small && self.boosts(q) && !timed_out {
                return;
            }
            self.queues[q].wait_request = false;
            self.timer = None;
            if timed_out {
                self.expire(cx, q, false, Why::Timeout);
            }
        }
    }

    fn look_at_think_time(&mut self, q: usize) {
        let queue = &self.queues[q];
        let may = queue.sync && self.entity(q).class != IDLE && self.slice_idle != 0;
        if !may {
            return;
        }
        let think = queue.think;
        let mean = (think.total + 128) / think.samples.max(1);
        let short = !(think.samples > 80 && mean > self.slice_idle / 2);
        let rested = queue.decreased + self.ms(100) <= self.jiffies;
        let resets = queue.short != short && queue.serv_time == 0 && (rested || !short);
        self.queues[q].short = short;
        if resets {
            self.reset_limit(q);
        }
    }

    fn reset_limit(&mut self, q: usize) {
        self.waited = None;
        let now = self.jiffies;
        let queue = &mut self.queues[q];
        queue.serv_time = 0;
        queue.limit = i64::from(!queue.short);
        queue.decreased = now;
    }

    /// Rule bfq-insert-5.
    fn add(&mut self, cx: &Cx<'_>, q: usize, rq: RequestId) {
        let was_empty = self.queues[q].fifo.is_empty();
        if self.queues[q].sync {
            if self.processes[&self.requests[&rq].process].requests <= 1 {
                self.measure(q);
            }
            self.update_intensity(q, was_empty);
        }
        self.orders += 1;
        let at = (cx.request(rq).sector.0, self.orders);
        self.requests.get_mut(&rq).expect("it is bound").at = at;
        self.queues[q].fifo.push(rq);
        let was_next = self.queues[q].next;
        let next = self.choose(cx, was_next, Some(rq), self.last_position);
        self.queues[q].next = next;
        let was_raised = self.is_raised(q);
        let mut interactive = false;
        if !self.queues[q].busy {
            interactive = self.become_busy(cx, q);
        } else {
            let late = self.queues[q].wr_last + self.ms(500) < self.jiffies;
            if self.low_latency && !was_raised && !cx.request(rq).is_sync() && late {
                self.raise(q);
                self.entity_mut(q).changed = true;
            }
            if next != was_next {
                self.next_is_another(cx, q);
            }
        }
        if self.low_latency && (!was_raised || !self.is_raised(q) || interactive) {
            self.queues[q].wr_last = self.jiffies;
        }
    }

    /// Rule bfq-insert-5a.
    fn measure(&mut self, q: usize) {
        self.look_for_waker(q);
        if self.queues[q].decreased + self.ms(1_000) <= self.jiffies {
            self.reset_limit(q);
        }
        let empty = self.in_driver == 0;
        let may = empty || self.queues[q].serv_time > 0 && self.injected;
        let rested = self.queues[q].decreased + self.ms(10) <= self.jiffies;
        if self.serving == Some(q) && may && rested {
            self.occupied = self.nanos;
            self.wait_dispatch = true;
            self.injected &= !empty;
        }
    }

    /// Rule bfq-inject.
    fn look_for_waker(&mut self, q: usize) {
        let last = self.last_completed.filter(|last| *last != q && self.lives(*last));
        let Some(last) = last else { return };
        let (now, idle) = (self.nanos, self.slice_idle);
        // What is done since the task read the clock is old. (Observed on 6.12.117.)
        let since_then = now.wrapping_sub(self.last_completion) as u64;
        if self.queues[q].short || since_then >= 4_000_000 {
            return;
        }
        let slot = self.queues[last].slot;
        let queue = &mut self.queues[q];
        let old = now > queue.since + 128 * idle;
        if queue.tentative != Some(slot) || old {
            queue.tentative = Some(slot);
            queue.detections = 1;
            queue.since = now;
            return;
        }
        queue.detections += 1;
        if queue.detections == 3 {
            queue.tentative = None;
            if let Some(before) = queue.waker.replace(last) {
                self.queues[before].woken.retain(|it| *it != q);
            }
            self.queues[last].woken.insert(0, q);
        }
    }

    /// Rule bfq-insert-5b.
    fn update_intensity(&mut self, q: usize, was_empty: bool) {
        let now = self.nanos;
        let queue = &mut self.queues[q];
        let total = now.wrapping_sub(queue.io_start) as u64;
        if was_empty && queue.dispatched == 0 {
            let idle = now.wrapping_sub(queue.think.last_end) as u64;
            queue.idle_total = queue.idle_total.wrapping_add(idle);
        }
        if queue.just_created {
            return;
        }
        queue.io_bound = queue.idle_total.wrapping_mul(5) <= total;
        if total > 200_000_000 {
            queue.io_start = now.wrapping_sub((total / 2) as i64);
            queue.idle_total /= 2;
        }
    }

    fn next_is_another(&mut self, cx: &Cx<'_>, q: usize) {
        let Some(next) = self.queues[q].next.filter(|_| self.serving != Some(q)) else { return };
        let most = self.queues[q].max_budget.max(self.charge_of(cx, q, next));
        let budget = most.max(self.entity(q).service);
        if budget != self.entity(q).budget {
            self.entity_mut(q).budget = budget;
            self.activate_up(self.queues[q].e, false, false);
        }
    }

    /// Rule bfq-busy.
    fn become_busy(&mut self, cx: &Cx<'_>, q: usize) -> bool {
        let in_time = self.nanos <= self.queues[q].think.last_end + 3 * self.slice_idle;
        let arrival = self.look_at_arrival(q);
        let charge = self.charge_of(cx, q, self.queues[q].next.expect("a request"));
        let most = self.queues[q].max_budget;
        let left = self.left(q);
        let wants = self.queues[q].non_blocking && in_time && left > 0;
        self.entity_mut(q).budget = if wants { left.min(most) } else { most.max(charge) };
        self.entity_mut(q).service = 0;
        let old = self.queues[q].budget_timeout + self.ms(10_000) < self.jiffies;
        if !self.queues[q].just_created && arrival.idle_long && old {
            self.burst.retain(|it| *it != q);
            self.queues[q].in_burst = false;
        }
        self.queues[q].just_created = false;
        if self.low_latency {
            self.raise_at_arrival(q, &arrival);
        }
        self.queues[q].last_backlogged = self.jiffies;
        self.queues[q].backlogged = 0;
        self.queues[q].softrt_update = false;
        self.queues[q].non_blocking = false;
        let e = self.queues[q].e;
        self.activate_up(e, wants, false);
        self.queues[q].busy = true;
        self.queues[q].pending |= self.queues[q].dispatched == 0;
        self.busy_in_class[self.entities[e].class] += 1;
        let weight = self.entities[e].weight;
        let may_count = self.queues[q].dispatched == 0 && !self.is_raised(q);
        if may_count && self.entities[e].counted.is_none() {
            self.entities[e].counted = Some(weight);
        }
        if let Some(waker) = self.queues[q].waker {
            self.queues[waker].woken.retain(|it| *it != q);
            self.queues[waker].woken.insert(0, q);
        }
        self.preempt(cx, q, wants);
        arrival.interactive
    }

    fn preempt(&mut self, cx: &Cx<'_>, q: usize, wants: bool) {
        let Some(served) = self.serving else { return };
        let (new, old) = (self.entity(q), self.entity(served));
        let weight_of = |q: usize| {
            let e = self.queues[q].e;
            let above = self.parent(e).filter(|_| new.level != old.level);
            self.entities[above.unwrap_or(e)].weight
        };
        let goes_first = wants && new.raised >= old.raised
            || new.class < old.class
            || weight_of(q) > weight_of(served)
            || !self.better_to_idle(served);
        let root = &self.levels[&0];
        if goes_first && root.next != root.in_service {
            self.expire(cx, served, false, Why::Preempted);
        }
    }

    // Rule bfq-select, what follows a request that leaves

    pub(super) fn remove(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let q = self.requests[&rq].queue;
        let was_next = self.queues[q].next == Some(rq);
        if was_next {
            self.queues[q].next = self.successor(cx, q, rq);
        }
        self.queues[q].fifo.retain(|it| *it != rq);
        if was_next {
            self.next_is_another(cx, q);
        }
    }

    fn successor(&mut self, cx: &Cx<'_>, q: usize, rq: RequestId) -> Option<RequestId> {
        if !std::mem::replace(&mut self.queues[q].fifo_checked, true) {
            let oldest = self.queues[q].fifo[0];
            if oldest != rq && self.nanos >= self.requests[&oldest].expires {
                return Some(oldest);
            }
        }
        let sorted = self.by_sector(q);
        let place = sorted.iter().position(|it| *it == rq).expect("it is queued");
        let before = place.checked_sub(1).map(|place| sorted[place]);
        let behind = sorted.get(place + 1).or(sorted.first()).copied().filter(|it| *it != rq);
        self.choose(cx, behind, before, cx.request(rq).sector.0)
    }

    pub(super) fn moved_ahead(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let q = self.requests[&rq].queue;
        let sorted = self.by_sector(q);
        let place = sorted.iter().position(|it| *it == rq).expect("it is queued");
        let sector: Sector = cx.request(rq).sector;
        let before = place.checked_sub(1).map(|place| cx.request(sorted[place]).sector);
        self.orders += 1;
        self.requests.get_mut(&rq).expect("it is bound").at = (sector.0, self.orders);
        if before.is_some_and(|before| before > sector) {
            let was_next = self.queues[q].next;
            let next = self.choose(cx, was_next, Some(rq), self.last_position);
            self.queues[q].next = next;
            if next != was_next {
                self.next_is_another(cx, q);
            }
        }
    }

    pub(super) fn join_requests(&mut self, cx: &Cx<'_>, rq: RequestId, next: RequestId) {
        let (q, other) = (self.requests[&rq].queue, self.requests[&next].queue);
        if !self.queues[other].fifo.contains(&next) {
            return;
        }
        let expires = self.requests[&next].expires;
        let is_queued = self.queues[q].fifo.contains(&rq);
        if q == other && is_queued && expires < self.requests[&rq].expires {
            let fifo = &mut self.queues[q].fifo;
            fifo.retain(|it| *it != rq);
            let place = fifo.iter().position(|it| *it == next).expect("it is queued");
            fifo.insert(place, rq);
            self.requests.get_mut(&rq).expect("it is bound").expires = expires;
        }
        if self.queues[q].next == Some(next) {
            self.queues[q].next = Some(rq);
        }
        self.remove(cx, next);
        let queue = &self.queues[other];
        if queue.fifo.is_empty() && queue.busy && self.serving != Some(other) {
            self.leave_busy(other, false);
            self.entity_mut(other).budget = 0;
            self.entity_mut(other).service = 0;
        }
    }
}
