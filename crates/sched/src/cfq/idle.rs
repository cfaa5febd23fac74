//! Waiting for a process that has run out of requests, instead of moving the disk elsewhere
//! (rules cfq-insert and cfq-idle).

use super::Cfq;
use super::binding::Bound;
use super::queue::{Class, Queue, QueueId};
use base::{Duration, Instant, Sector};
use block::{Cx, Flags, Op, Request, RequestId};

/// Requests at once that make a queue deep.
const DEEP: u32 = 4;
/// Farther than this is a seek, in sectors.
const SEEK: u64 = 800;
/// Smaller than this is a small request where nothing rotates, in sectors.
const SMALL: u32 = 64;

/// A synchronous write after which nothing is expected.
pub(super) fn is_noidle(cx: &Cx<'_>, rq: RequestId) -> bool {
    let request = cx.request(rq);
    // Without a branch: which way it goes changes from request to request.
    (request.op != Op::Read)
        & request.flags.intersects(Flags::SYNC)
        & !request.flags.intersects(Flags::IDLE)
}

impl Queue {
    /// Rule cfq-insert-3: how far the request is from the one before.
    pub(super) fn note_seek(&mut self, cx: &Cx<'_>, request: &Request) {
        let before = core::mem::replace(&mut self.last_request_end, request.end());
        let far = if cx.limits().facts.rotational {
            before != Sector(0) && request.sector.0.abs_diff(before.0) > SEEK
        } else {
            request.sectors.0 < SMALL
        };
        self.seek_history = self.seek_history << 1 | u32::from(far);
    }
}

impl Cfq {
    /// Rule cfq-idle-1: whether the queue is worth waiting for.
    pub(super) fn should_idle(&self, cx: &mut Cx<'_>, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let idle = self.settings.slice_idle;
        if idle == 0 || queue.class == Class::Idle {
            return false;
        }
        if queue.idle_window && !self.is_fast(cx) {
            return true;
        }
        let (class, kind) = queue.tree();
        let tree = self.group(queue.group).tree(class, kind);
        if tree.count() == 1 && queue.sync && !tree.think.is_big(idle) {
            return true;
        }
        self.say(cx, id, format_args!("Not idling. st->count:{}", tree.count()));
        false
    }

    /// Nothing rotates, and the disk takes several requests at once.
    fn is_fast(&self, cx: &Cx<'_>) -> bool {
        !cx.limits().facts.rotational && self.depth.queues()
    }

    /// Rules cfq-idle-2 to cfq-idle-4.
    pub(super) fn arm_timer(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        if self.is_fast(cx) && (self.settings.group_idle == 0 || !self.rules.idles_groups_on_flash)
        {
            return;
        }
        let group_idle = match self.should_idle(cx, id) {
            true => 0,
            false if self.settings.group_idle > 0 => self.settings.group_idle,
            false => return,
        };
        let queue = &self.queues[id];
        let Some(owner) = self.active_context else { return };
        if queue.dispatched > 0 || cx.io_context(owner).tasks == 0 {
            return;
        }
        let think = self.contexts.get(owner).and_then(|cic| cic.think.mean());
        // The kernel compares without sign.
        let left = (queue.slice_end - self.now(cx)) as u64;
        if let Some(mean) = think.filter(|mean| left < *mean as u64) {
            self.say(cx, id, format_args!("Not idling. think_time:{mean}"));
            return;
        }
        let group = self.group(queue.group);
        let (_, class, kind) = queue.place.expect("the active queue is busy");
        let is_slow = group.tree(class, kind).think.is_big(self.settings.group_idle);
        if group_idle > 0 && (group.queues > 1 || is_slow) {
            return;
        }
        let wait = if group_idle > 0 { group_idle } else { self.settings.slice_idle };
        self.queues[id].wait_request = true;
        self.timer = Some(cx.now + Duration::from_nanos(wait as u64));
        self.waits_for_group = group_idle > 0;
        let by_group = u8::from(group_idle > 0);
        self.say(cx, id, format_args!("arm_idle: {wait} group_idle: {by_group}"));
    }

    /// Rule cfq-idle-5: whether the group is kept busy although the queue's turn is over.
    pub(super) fn should_wait_busy(&self, cx: &Cx<'_>, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let group = self.group(queue.group);
        if !queue.is_empty() || group.queues > 1 || group.think.is_big(self.settings.group_idle) {
            return false;
        }
        if queue.is_slice_used(self.now(cx)) {
            return true;
        }
        let left = queue.slice_end - self.now(cx);
        let think = self.active_context.and_then(|owner| self.contexts.get(owner));
        let thinks_longer = think.and_then(|cic| cic.think.mean()).is_some_and(|mean| left < mean);
        thinks_longer || left <= self.jiffy(cx)
    }

    /// The timer: nobody came.
    pub(super) fn timer_fired(&mut self, cx: &mut Cx<'_>) {
        cx.message(format_args!("cfq idle timer fired"));
        self.timer = None;
        let Some(id) = self.active else {
            self.schedule(cx);
            return;
        };
        let queue = &self.queues[id];
        if queue.must_dispatch {
            self.schedule(cx);
            return;
        }
        if !queue.is_slice_used(self.now(cx)) {
            if self.busy_queues == 0 {
                return;
            }
            if !self.queues[id].is_empty() {
                self.schedule(cx);
                return;
            }
            self.queues[id].deep = false;
        }
        self.expire(cx, id, false);
        self.schedule(cx);
    }

    /// When the timer is due.
    pub(super) fn timer_due(&self) -> Option<Instant> {
        self.timer
    }

    /// Rule cfq-insert-2: think times of the process, of its kind of queues, and of the group.
    pub(super) fn note_think_times(&mut self, cx: &Cx<'_>, bound: Bound) {
        let now = self.now(cx);
        let queue = &self.queues[bound.queue];
        let (place, sync) = (queue.place, queue.sync);
        let (idle, group_idle) = (self.settings.slice_idle, self.settings.group_idle);
        let group = self.group_mut(queue.group);
        group.think.update(now, group_idle);
        if sync {
            let (_, class, kind) = place.expect("a queue with a request is busy");
            group.tree_mut(class, kind).think.update(now, idle);
            if let Some(cic) = self.contexts.get_mut(bound.io_context) {
                cic.think.update(now, idle);
            }
        }
    }

    /// Rule cfq-insert-5: whether the queue is worth waiting for in its own right.
    pub(super) fn update_idle_window(&mut self, cx: &mut Cx<'_>, bound: Bound) {
        let queue = &mut self.queues[bound.queue];
        if !queue.sync || queue.class == Class::Idle {
            return;
        }
        queue.deep |= queue.fifo.len() >= DEEP;
        let idle = self.settings.slice_idle;
        let (before, scattered) = (queue.idle_window, !queue.deep && queue.is_seeky());
        let next_is_noidle = queue.next.is_some_and(|next| is_noidle(cx, next));
        let tasks = cx.io_context(bound.io_context).tasks;
        let thinks_briefly = match self.contexts.get(bound.io_context) {
            Some(cic) if cic.think.is_known() => !cic.think.is_big(idle),
            _ => before,
        };
        let is_useless = next_is_noidle | scattered | (tasks == 0) | (idle == 0);
        let after = thinks_briefly & !is_useless;
        if cx.wants_messages() && after != before {
            self.say(cx, bound.queue, format_args!("idle={}", u8::from(after)));
        }
        self.queues[bound.queue].idle_window = after;
    }
}
