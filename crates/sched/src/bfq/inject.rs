//! Injection: while a queue is waited for, a few requests of others may go (rules bfq-inject).

use super::Bfq;
use super::queue::QueueId;
use block::{Cx, RequestId};

/// Detections in a row that make a waker.
const DETECTIONS: u32 = 3;
/// A waker's request is done no longer ago, in nanoseconds.
const RECENT: i64 = 4_000_000;
/// A large request is injected only when the disk has nothing to do, in sectors.
const LARGE: u32 = 64;

/// What may go while a queue is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Injecting {
    /// Nothing (4.19; 5.19.4-2).
    Never,
    /// Ten times what the queue itself was served (4.20 to 5.1; A.1).
    ByBandwidth,
    /// As much as does not make its requests take much longer (5.2 on; A.3).
    ByServiceTime,
}

/// How service times tell how much is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measuring {
    /// Requests in the driver when one that is done was alone there. It still counts itself, so
    /// zero never happens, and nothing is known of what was asked for alone.
    pub alone: u32,
    /// The measure of what a queue does alone follows it, and so does a change of its think time
    /// (5.3 on; A.4-1, A.4-2).
    pub follows: bool,
    /// So long nothing is measured after the limit has fallen, in milliseconds (A.5-1).
    pub pause: u64,
    /// Only what was injected changes the limit (5.4 on; A.5-1, A.5-2).
    pub heeds_injected: bool,
    /// Arrivals count that find nothing queued, and not those that find nothing in flight.
    pub counts_queued: bool,
    /// A large request counts as one of the limit, instead of going to an empty disk only (5.19.3).
    pub large_is_one: bool,
}

impl Measuring {
    /// 5.15 and later.
    pub const REFERENCE: Measuring = Measuring {
        alone: 1,
        follows: true,
        pause: 10,
        heeds_injected: true,
        counts_queued: false,
        large_is_one: false,
    };
    /// As it was released: the limit is only ever 0 or 1, by think time (A.3-8).
    pub const IN_5_2: Measuring = Measuring {
        alone: 0,
        follows: false,
        pause: 100,
        heeds_injected: false,
        counts_queued: true,
        large_is_one: true,
    };
    /// As it first measured.
    pub const IN_5_3: Measuring = Measuring { alone: 1, follows: true, ..Measuring::IN_5_2 };
}

/// How a request's service time is measured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    /// Nanoseconds.
    pub last_empty_occupied: i64,
    pub wait_dispatch: bool,
    pub waited: Option<block::RequestId>,
    pub rqs_injected: bool,
}

impl Bfq {
    /// A request arrives at a synchronous queue, and is not in it yet.
    pub(super) fn note_arrival_for_injection(
        &mut self,
        cx: &mut Cx<'_>,
        id: QueueId,
        rq: RequestId,
    ) {
        if self.rules.injecting != Injecting::ByServiceTime {
            return;
        }
        let measuring = self.rules.measuring;
        let owner = self.bound[rq].owner;
        let is_only = match measuring.counts_queued {
            true => self.queues[id].is_empty(),
            false => self.contexts.get(owner).requests <= 1,
        };
        if !is_only {
            return;
        }
        if self.rules.has_wakers {
            self.look_for_waker(cx, id);
        }
        let now = self.jiffies;
        if self.queues[id].inject.decrease_time + self.ms(1_000) <= now {
            self.reset_injection(id);
        }
        let inject = self.queues[id].inject;
        let may_measure = self.in_driver == 0
            || inject.last_serv_time > 0 && self.measured.rqs_injected && self.in_driver > 0;
        let is_rested = inject.decrease_time + self.ms(measuring.pause) <= now;
        if self.in_service == Some(id) && may_measure && is_rested {
            self.measured.last_empty_occupied = self.nanos;
            self.measured.wait_dispatch = true;
            if self.in_driver == 0 || !measuring.heeds_injected {
                self.measured.rqs_injected = false;
            }
        }
    }

    pub(super) fn reset_injection(&mut self, id: QueueId) {
        self.measured.waited = None;
        let now = self.jiffies;
        let queue = &mut self.queues[id];
        queue.inject.last_serv_time = 0;
        queue.inject.limit = u32::from(!queue.has_short_think);
        queue.inject.decrease_time = now;
    }

    fn look_for_waker(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let Some(last) = self.last_completed.filter(|last| *last != id) else { return };
        // The kernel's difference has no sign: what is done since a task read the clock is old.
        let is_recent = (0..RECENT).contains(&(self.nanos - self.last_completion));
        if self.queues[id].has_short_think || !is_recent {
            return;
        }
        let (now, idle) = (self.nanos, self.settings.slice_idle);
        let wakers = &mut self.queues[id].wakers;
        let is_old = now > wakers.since + 128 * idle;
        if wakers.tentative != Some(last.index()) || is_old {
            wakers.tentative = Some(last.index());
            wakers.detections = 1;
            wakers.since = now;
            let name = self.queues[last].name();
            self.say(cx, id, format_args!("set tentative waker {name}"));
            return;
        }
        wakers.detections += 1;
        if wakers.detections == DETECTIONS {
            wakers.tentative = None;
            self.set_waker(id, Some(last));
            let name = self.queues[last].name();
            self.say(cx, id, format_args!("set waker {name}"));
        }
    }

    pub(super) fn set_waker(&mut self, id: QueueId, waker: Option<QueueId>) {
        if let Some(old) = self.queues[id].wakers.waker.take() {
            self.queues[old].wakers.woken.retain(|other| *other != id);
        }
        if let Some(waker) = waker {
            self.queues[id].wakers.waker = Some(waker);
            self.queues[waker].wakers.woken.insert(0, id);
        }
    }

    /// A queue whose request may go while `id` is waited for.
    pub(super) fn injected(&mut self, cx: &Cx<'_>, id: QueueId) -> Option<QueueId> {
        match self.rules.injecting {
            Injecting::Never => None,
            Injecting::ByBandwidth => self.injected_by_bandwidth(cx, id),
            Injecting::ByServiceTime => self.injected_by_time(cx, id),
        }
    }

    fn injected_by_time(&mut self, cx: &Cx<'_>, id: QueueId) -> Option<QueueId> {
        let own = self.queues[id].owner.and_then(|owner| self.contexts.async_queue(owner));
        if let Some(own) = own {
            let next = self.queues[own].next;
            let is_own = next.is_some_and(|rq| Some(self.bound[rq].owner) == self.queues[id].owner);
            if self.queues[own].is_busy && is_own && self.fits(cx, own) {
                return Some(own);
            }
        }
        if let Some(waker) = self.queues[id].wakers.waker
            && self.queues[waker].is_busy
            && self.fits(cx, waker)
        {
            return Some(waker);
        }
        if let Some(woken) = self.queues[id].wakers.woken.first().copied()
            && self.queues[woken].is_busy
            && self.fits(cx, woken)
        {
            return Some(woken);
        }
        let queue = &self.queues[id];
        let is_allowed = !self.is_raised(id) || self.wr_busy > 1 || !queue.has_short_think;
        let is_open = !self.idling_boosts(id) && is_allowed;
        if is_open { self.any_injected(cx, id) } else { None }
    }

    /// Its next request is within its budget.
    pub(super) fn fits(&self, cx: &Cx<'_>, id: QueueId) -> bool {
        let next = self.queues[id].next;
        next.is_some_and(|rq| self.charge_of(cx, id, rq) as i64 <= self.budget_left(id))
    }

    fn any_injected(&mut self, cx: &Cx<'_>, id: QueueId) -> Option<QueueId> {
        let queue = &self.queues[id];
        let mut limit = queue.inject.limit;
        // The kernel compares with nanoseconds as if they were jiffies.
        let is_late = self.idling_start_jiffies + self.settings.slice_idle <= self.jiffies;
        if limit == 0 && queue.inject.last_serv_time == 0 && queue.wait_request && is_late {
            limit = 1;
        }
        if self.in_driver >= limit {
            return None;
        }
        let is_open = !self.is_raised(id) || !queue.has_short_think;
        let known = queue.inject.limit;
        let mut others = self.engine.active_queues();
        let found = others.find(|other| {
            let Some(next) = self.queues[*other].next else { return false };
            let is_open = is_open || self.is_raised(*other);
            if !is_open || !self.fits(cx, *other) {
                return false;
            }
            let is_large = !self.is_rotational && cx.request(next).sectors.0 >= LARGE;
            match (self.rules.measuring.large_is_one, is_large) {
                (false, false) => true,
                (false, true) => self.in_driver == 0,
                (true, _) => {
                    limit = if is_large { limit.min(1) } else { known };
                    self.in_driver < limit
                }
            }
        });
        if found.is_some() {
            self.measured.rqs_injected = true;
        }
        found
    }

    /// The request is done whose service time was measured.
    pub(super) fn adapt_injection(&mut self, id: QueueId) {
        let measuring = self.rules.measuring;
        let time = self.nanos - self.measured.last_empty_occupied;
        let (now, deepest) = (self.jiffies, self.max_in_driver);
        let injected = self.measured.rqs_injected;
        let alone = self.in_driver == measuring.alone;
        let heeds = measuring.heeds_injected;
        let most = if heeds { deepest + 1 } else { 2 * deepest };
        let inject = &mut self.queues[id].inject;
        let old = inject.limit;
        if inject.last_serv_time > 0 && (injected || !heeds) {
            let threshold = inject.last_serv_time * 3 / 2;
            if time >= threshold && old > 0 {
                inject.limit -= 1;
                inject.decrease_time = now;
            } else if time < threshold && old < most {
                inject.limit += 1;
            }
        }
        if inject.last_serv_time == 0 && alone || time < inject.last_serv_time {
            if inject.last_serv_time == 0 || !heeds {
                inject.limit = old.max(1);
            }
            inject.last_serv_time = time;
        } else if measuring.follows && !injected && alone {
            inject.last_serv_time = time;
        }
        self.measured.waited = None;
        if heeds {
            self.measured.rqs_injected = false;
        }
    }
}
