//! Arrivals: what a request tells of its queue, and what it changes
//! (rules bfq-insert and bfq-busy).

use super::Bfq;
use super::budget::Reason;
use super::queue::QueueId;
use super::rules::{IoBound, Preemption};
use crate::choice::choose;
use base::Sector;
use block::scheduler::InsertAt;
use block::{Cx, RequestId};

/// Shorter requests than this may be worth waiting for more, in sectors.
const SMALL: u32 = 32;

impl Bfq {
    pub(super) fn queue_of_request(&self, rq: RequestId) -> QueueId {
        self.bound[rq].queue
    }

    pub(super) fn add_request(&mut self, cx: &mut Cx<'_>, rq: RequestId, at: InsertAt) {
        if at == InsertAt::Head {
            self.heads.push_front(&mut self.head_links, rq);
            return;
        }
        let (mut id, owner) = (self.bound[rq].queue, self.bound[rq].owner);
        let (sector, sync) = (cx.request(rq).sector, cx.request(rq).is_sync());
        if self.queues[id].sync {
            let target = self.cooperator(cx, id, sector, owner);
            if let Some(target) = target.filter(|target| *target != id) {
                self.rebind(cx, rq, id, target);
                id = target;
            }
        }
        if !self.rules.looks_back {
            self.update_statistics(cx, id, rq);
        }
        let waits = self.in_service == Some(id) && self.queues[id].wait_request;
        self.enter_queue(cx, id, rq);
        let expires = self.nanos + self.settings.fifo_expire[usize::from(sync)];
        self.bound[rq].expires = expires;
        self.queues[id].fifo.push_back(&mut self.links, rq);
        if self.rules.looks_back {
            self.update_statistics(cx, id, rq);
        }
        self.queues[id].last_request_end = cx.request(rq).end();
        if waits {
            self.end_wait(cx, id, rq);
        }
    }

    /// The request goes into the queue of those who work with its sender.
    fn rebind(&mut self, cx: &mut Cx<'_>, rq: RequestId, id: QueueId, target: QueueId) {
        self.engine.add_allocated(self.queues[target].entity, 1);
        self.engine.add_allocated(self.queues[id].entity, -1);
        self.queues[target].refs += 1;
        let owner = self.bound[rq].owner;
        if self.contexts.get(owner).sync == Some(id) {
            self.merge_along(cx, owner, id, target);
        }
        self.queues[id].just_created = false;
        self.bound[rq].queue = target;
        self.put_queue(cx, id);
    }

    /// What the arrival tells of the queue.
    fn update_statistics(&mut self, cx: &mut Cx<'_>, id: QueueId, rq: RequestId) {
        self.update_think_time(id);
        self.update_short_think(cx, id);
        self.update_seeks(cx, id, rq);
        if self.rules.messages.tells_statistics {
            let queue = &self.queues[id];
            let (short, seeky) = (u8::from(queue.has_short_think), u8::from(queue.is_seeky()));
            let text = format_args!("rq_enqueued: has_short_ttime={short} (seeky {seeky})");
            self.say(cx, id, text);
        }
    }

    fn update_think_time(&mut self, id: QueueId) {
        let (now, idle) = (self.nanos, self.settings.slice_idle);
        let always = self.rules.looks_back;
        let queue = &mut self.queues[id];
        // The clock has gone on since the queue was made. (Observed on 4.19.79.)
        let now = if always { now.max(queue.think.last_end) } else { now };
        if always || queue.dispatched == 0 && !queue.is_busy {
            queue.think.update(now, idle);
        }
    }

    fn update_short_think(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let idle = self.settings.slice_idle;
        let queue = &self.queues[id];
        let is_idle_class = self.is_idle_class(queue.entity);
        let is_fresh = queue.split_time + self.ms(2_000) >= self.jiffies;
        if !queue.sync || is_idle_class || idle == 0 || is_fresh {
            return;
        }
        let most = if self.rules.looks_back { idle } else { idle / 2 };
        let is_short = !queue.think.is_big(most);
        let was_short = queue.has_short_think;
        if self.rules.messages.tells_statistics {
            let short = u8::from(is_short);
            self.say(cx, id, format_args!("update_has_short_ttime: has_short_ttime {short}"));
        }
        let queue = &mut self.queues[id];
        queue.has_short_think = is_short;
        if !self.rules.measuring.follows {
            return;
        }
        let inject = queue.inject;
        let is_rested = inject.decrease_time + self.ms(100) <= self.jiffies;
        if was_short != is_short && inject.last_serv_time == 0 && (is_rested || !is_short) {
            self.reset_injection(id);
        }
    }

    fn update_seeks(&mut self, cx: &Cx<'_>, id: QueueId, rq: RequestId) {
        let is_seek = self.is_seek(cx, self.queues[id].last_request_end, rq);
        let queue = &mut self.queues[id];
        queue.seek_history = queue.seek_history << 1 | u32::from(is_seek);
        if self.only_jumps(id) && self.is_raised_for_real_time(id) {
            self.end_real_time(id);
        }
    }

    /// Rule add_request.
    fn enter_queue(&mut self, cx: &mut Cx<'_>, id: QueueId, rq: RequestId) {
        let sync = cx.request(rq).is_sync();
        self.say(cx, id, format_args!("add_request {}", u8::from(sync)));
        self.queues[id].queued[usize::from(sync)] += 1;
        self.queued += 1;
        if self.queues[id].sync {
            self.note_arrival_for_injection(cx, id, rq);
            self.update_intensity(id);
        }
        let was_next = self.queues[id].next;
        let sector = cx.request(rq).sector;
        self.queues[id].sorted.insert(sector, rq);
        let last = self.last_position;
        let next = choose(cx, &self.settings.ways, was_next, Some(rq), last);
        self.queues[id].next = next;
        if next != was_next && !self.nonrot_with_queueing {
            self.update_place(cx, id);
        }
        let was_raised = self.is_raised(id);
        let mut interactive = false;
        if !self.queues[id].is_busy {
            interactive = self.become_busy(cx, id, rq);
        } else {
            let is_late = self.queues[id].last_wr_start_finish + self.ms(500) < self.jiffies;
            if self.settings.low_latency && !was_raised && !sync && is_late {
                self.raise_interactively(id);
                self.wr_busy += 1;
                let entity = self.queues[id].entity;
                self.engine[entity].prio_changed = true;
            }
            if next != was_next {
                self.next_changed(cx, id);
            }
        }
        let is_raised = self.is_raised(id);
        if self.settings.low_latency && (!was_raised || !is_raised || interactive) {
            self.queues[id].last_wr_start_finish = self.jiffies;
        }
    }

    /// How much of the time the queue has something to do.
    fn update_intensity(&mut self, id: QueueId) {
        if self.rules.io_bound != IoBound::ByIntensity {
            return;
        }
        let now = self.nanos;
        let queue = &mut self.queues[id];
        // Without a sign too: a queue that is made after its task read the clock has been watched
        // for ever.
        let total = now.wrapping_sub(queue.io_start) as u64;
        if queue.queued[1] == 1 && queue.queued[0] == 0 && queue.dispatched == 0 {
            // Without a sign, and it wraps around: a queue that gets its first request in the
            // nanosecond in which it is made has been idle for ever. (Observed on 6.12.117.)
            let idle = now.wrapping_sub(queue.think.last_end) as u64;
            queue.idle_total = queue.idle_total.wrapping_add(idle);
        }
        // A queue that was made anew for its process keeps the times that were saved as they are.
        // (Observed on 6.1.192.)
        if queue.just_created {
            return;
        }
        queue.io_bound = queue.idle_total.wrapping_mul(5) <= total;
        if total > 200_000_000 {
            queue.io_start = now.wrapping_sub((total / 2) as i64);
            queue.idle_total /= 2;
        }
    }

    /// An idle queue gets a request, in time or late.
    fn note_arrival_in_time(&mut self, id: QueueId, in_time: bool) {
        let IoBound::After(enough) = self.rules.io_bound else { return };
        let queue = &mut self.queues[id];
        if !queue.io_bound {
            queue.in_time = if in_time { queue.in_time + 1 } else { 0 };
            queue.io_bound = queue.in_time >= enough;
        }
    }

    /// It was waited for in vain.
    pub(super) fn note_idleness(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        let entity = &self.engine[queue.entity];
        let is_little = entity.service <= 2 * entity.budget / 10;
        if self.rules.io_bound != IoBound::ByIntensity && is_little {
            queue.io_bound = false;
        }
    }

    /// The next request of a busy queue is another one.
    pub(super) fn next_changed(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let Some(next) = self.queues[id].next else { return };
        if self.in_service == Some(id) {
            return;
        }
        let charge = self.charge_of(cx, id, next);
        let queue = &self.queues[id];
        let entity = queue.entity;
        let it = &self.engine[entity];
        let served = if self.rules.minds_rest { it.service } else { 0 };
        let budget = queue.max_budget.max(charge).max(served);
        if it.budget != budget {
            self.engine[entity].budget = budget;
            self.say(cx, id, format_args!("updated next rq: new budget {budget}"));
            self.engine.activate(entity, false, false);
            self.follow_notes(cx);
        }
    }

    /// A queue that had nothing has a request; whether it is interactive.
    fn become_busy(&mut self, cx: &mut Cx<'_>, id: QueueId, rq: RequestId) -> bool {
        let idle = self.settings.slice_idle;
        let in_time = self.nanos <= self.queues[id].think.last_end + 3 * idle;
        self.look_at_arrival(id, rq);
        let wants_preempt = self.set_budget_at_arrival(cx, id, in_time);
        self.note_arrival_in_time(id, in_time);
        let queue = &self.queues[id];
        let is_old = queue.budget_timeout + self.ms(10_000) < self.jiffies;
        if !queue.just_created && self.arrival.idle_long && is_old {
            self.leave_burst(id);
            self.queues[id].in_large_burst = false;
        }
        self.queues[id].just_created = false;
        let was_split_lately = self.queues[id].split_time + self.ms(2_000) >= self.jiffies;
        if self.settings.low_latency && !was_split_lately {
            let old = self.coefficient(id);
            self.update_raising_at_arrival(id);
            if old != self.coefficient(id) {
                let entity = self.queues[id].entity;
                self.engine[entity].prio_changed = true;
            }
        }
        let now = self.jiffies;
        let queue = &mut self.queues[id];
        queue.last_idle_bklogged = now;
        queue.service_from_backlogged = 0;
        queue.softrt_update = false;
        self.join_busy(cx, id);
        self.preempt(cx, id, wants_preempt);
        self.arrival.interactive
    }

    fn set_budget_at_arrival(&mut self, cx: &mut Cx<'_>, id: QueueId, in_time: bool) -> bool {
        let next = self.queues[id].next.expect("it has a request");
        let charge = self.charge_of(cx, id, next);
        let left = self.budget_left(id);
        let queue = &mut self.queues[id];
        let (entity, most) = (queue.entity, queue.max_budget);
        let keeps = queue.keeps_budget && in_time && (left > 0 || !self.rules.minds_rest);
        queue.keeps_budget = keeps;
        let it = &mut self.engine[entity];
        it.budget = if keeps { (left as u64).min(most) } else { most.max(charge) };
        it.service = 0;
        keeps
    }

    /// The queue in service may have to give way.
    fn preempt(&mut self, cx: &mut Cx<'_>, id: QueueId, wants: bool) {
        let Some(served) = self.in_service else { return };
        let (own, others) = (self.coefficient(id), self.coefficient(served));
        let goes_first = match self.rules.preemption {
            Preemption::ByRaising => (wants || self.arrival.deserves) && others < own,
            Preemption::ByWeight => {
                wants && others <= own
                    || self.is_higher(id, served)
                    || !self.is_better_to_idle(served)
            }
        };
        if goes_first && self.engine.may_preempt() {
            self.expire(cx, served, false, Reason::Preempted);
        }
    }

    /// Of a higher class, or with a greater weight.
    fn is_higher(&self, id: QueueId, served: QueueId) -> bool {
        let (one, two) = (self.queues[id].entity, self.queues[served].entity);
        if (self.engine[one].class as u8) < self.engine[two].class as u8 {
            return true;
        }
        let weight = |entity| self.engine[entity].weight;
        if self.engine[one].group == self.engine[two].group {
            return weight(one) > weight(two);
        }
        let above = |entity| weight(self.engine.parent(entity).unwrap_or(entity));
        above(one) > above(two)
    }

    /// The queue in service was waited for, and has a request.
    fn end_wait(&mut self, cx: &mut Cx<'_>, id: QueueId, rq: RequestId) {
        let sync = usize::from(cx.request(rq).is_sync());
        let is_small = self.queues[id].queued[sync] == 1 && cx.request(rq).sectors.0 < SMALL;
        let is_over = self.is_timed_out(id);
        let is_worth_more = self.rules.small_never_ends_wait || self.idling_boosts(id);
        if is_small && is_worth_more && !is_over {
            return;
        }
        self.queues[id].wait_request = false;
        self.timer = None;
        if is_over {
            self.expire(cx, id, false, Reason::BudgetTimeout);
        }
    }

    /// Takes a request out of its queue; what follows it by sector.
    pub(super) fn take_out(&mut self, cx: &mut Cx<'_>, id: QueueId, rq: RequestId) {
        let sync = usize::from(cx.request(rq).is_sync());
        if self.queues[id].next == Some(rq) {
            self.queues[id].next = self.follower(cx, id, rq);
            if !self.nonrot_with_queueing {
                // Its place follows from its next request, and that is another one.
                self.leave_place(id);
            }
            self.queues[id].sorted.remove(rq);
            self.queues[id].fifo.remove(&mut self.links, rq);
            self.queues[id].queued[sync] -= 1;
            self.queued -= 1;
            if self.queues[id].next.is_some() {
                self.next_changed(cx, id);
                if !self.nonrot_with_queueing {
                    self.update_place(cx, id);
                }
            }
            return;
        }
        self.queues[id].sorted.remove(rq);
        self.queues[id].fifo.remove(&mut self.links, rq);
        self.queues[id].queued[sync] -= 1;
        self.queued -= 1;
    }

    /// What goes next when a request has left: an old one, or the closest.
    fn follower(&mut self, cx: &mut Cx<'_>, id: QueueId, rq: RequestId) -> Option<RequestId> {
        if let Some(old) = self.expired(cx, id, rq) {
            return Some(old);
        }
        let queue = &self.queues[id];
        let previous = queue.sorted.previous(rq);
        let next = queue.sorted.next(rq);
        let next = next.or_else(|| queue.sorted.first().filter(|first| *first != rq));
        choose(cx, &self.settings.ways, next, previous, cx.request(rq).sector)
    }

    /// The oldest request, once in a service, if it is too old and not the one that leaves.
    fn expired(&mut self, cx: &mut Cx<'_>, id: QueueId, rq: RequestId) -> Option<RequestId> {
        if core::mem::replace(&mut self.queues[id].fifo_checked, true) {
            return None;
        }
        let oldest = self.queues[id].fifo.head()?;
        if oldest == rq || self.nanos < self.bound[oldest].expires {
            return None;
        }
        let pointer = oldest.to_bits();
        self.say(cx, id, format_args!("check_fifo: returned {pointer:016x}"));
        Some(oldest)
    }

    /// A front merge: the request begins elsewhere.
    pub(super) fn reposition(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let id = self.queue_of_request(rq);
        let sector: Sector = cx.request(rq).sector;
        // Where it still comes behind the one before it, nothing is done. (Observed on 6.12.117:
        // a request that was next because of its age stays so.)
        let before = self.queues[id].sorted.previous(rq);
        let is_in_order = before.is_none_or(|before| cx.request(before).sector <= sector);
        let was_next = self.queues[id].next;
        self.queues[id].sorted.remove(rq);
        self.queues[id].sorted.insert(sector, rq);
        if is_in_order {
            self.shift_place(cx, id);
            return;
        }
        let last = self.last_position;
        let next = choose(cx, &self.settings.ways, was_next, Some(rq), last);
        self.queues[id].next = next;
        if next != was_next {
            self.next_changed(cx, id);
        }
        if !self.nonrot_with_queueing {
            self.update_place(cx, id);
        }
    }

    /// `next` becomes a part of `rq`.
    pub(super) fn join(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) {
        if !self.links.contains(next) {
            return;
        }
        let (id, other) = (self.queue_of_request(rq), self.queue_of_request(next));
        let expires = self.bound[next].expires;
        if id == other && self.links.contains(rq) && expires < self.bound[rq].expires {
            let queue = &mut self.queues[id];
            queue.fifo.remove(&mut self.links, rq);
            queue.fifo.insert_before(&mut self.links, next, rq);
            self.bound[rq].expires = expires;
        }
        if self.queues[id].next == Some(next) {
            self.queues[id].next = Some(rq);
            self.shift_place(cx, id);
        }
        self.take_out(cx, other, next);
        let queue = &self.queues[other];
        if queue.is_empty() && queue.is_busy && self.in_service != Some(other) {
            self.leave_busy(cx, other, false);
        }
    }
}
