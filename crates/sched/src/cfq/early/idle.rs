//! Waiting for a process that has run out of requests (rules cfq-early-think, cfq-early-window,
//! cfq-early-idle-2 and cfq-early-idle-3).

use super::super::queue::Class;
use super::queue::QueueId;
use super::{EarlyCfq, now};
use base::{Instant, Jiffies};
use block::{Cx, RequestId};

impl EarlyCfq {
    /// Rules cfq-early-think: think time and seek of an arrival.
    pub(super) fn note_arrival(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let (now, bound, idle) = (now(cx), self.bound[rq], self.settings.slice_idle);
        let request = cx.request(rq);
        let (sector, end) = (request.sector, request.end());
        if let Some(cic) = self.contexts.get_mut(&bound.io_context) {
            cic.think.update(now, idle);
            cic.seeks.note(sector, end, true);
        }
        self.queues[bound.queue].seeks.note(sector, end, false);
        self.note_seeky(cx, bound.queue);
    }

    /// Whether requests of the queue, or of its context, are far from each other.
    fn is_seeky(&self, rq: RequestId) -> bool {
        let bound = self.bound[rq];
        match self.contexts.get(&bound.io_context) {
            Some(cic) if self.rules.seeks_by_context => cic.seeks.is_seeky(),
            _ => self.queues[bound.queue].seeks.is_seeky(),
        }
    }

    /// Rules cfq-early-window: whether the queue is worth waiting for.
    pub(super) fn update_idle_window(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let bound = self.bound[rq];
        let queue = &self.queues[bound.queue];
        if !queue.sync || queue.class == Class::Idle {
            return;
        }
        let (before, idle) = (queue.idle_window, self.settings.slice_idle);
        let minds_seeks = self.rules.seeks_by_context || !self.settings.low_latency;
        let scattered = minds_seeks && self.depth.queues && self.is_seeky(rq);
        // Only 2.6.32 waits for seeky processes on disks that queue commands, and shortly.
        let is_short = !self.rules.seeks_by_context && queue.seeks.is_known_seeky();
        let patience = if is_short { self.settings.short_idle() } else { idle };
        let think = self.contexts.get(&bound.io_context).and_then(|cic| cic.think.mean());
        let after = if cx.io_context(bound.io_context).tasks == 0 || idle == 0 || scattered {
            false
        } else {
            think.map_or(before, |mean| mean <= patience)
        };
        if after != before {
            self.say(cx, bound.queue, format_args!("idle={}", u8::from(after)));
            self.queues[bound.queue].idle_window = after;
        }
    }

    /// Rule cfq-early-idle-2.
    pub(super) fn arm_timer(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let is_fast = !cx.limits().facts.rotational && self.depth.queues;
        let queue = &self.queues[id];
        let is_busy = self.in_driver != [0, 0];
        if is_fast || self.settings.slice_idle == 0 || !queue.idle_window || is_busy {
            return;
        }
        let Some(owner) = self.active_context else { return };
        if cx.io_context(owner).tasks == 0 {
            return;
        }
        let cic = self.contexts.get(&owner);
        let left = queue.slice_end - now(cx);
        let think = cic.and_then(|cic| cic.think.mean());
        if self.rules.minds_rest_of_turn && think.is_some_and(|mean| left < mean) {
            return;
        }
        let is_seeky = match cic {
            Some(cic) if self.rules.seeks_by_context => cic.seeks.is_known_seeky(),
            _ => queue.seeks.is_known_seeky(),
        };
        let idle = self.settings.slice_idle;
        let wait = if is_seeky { self.settings.short_idle() } else { idle };
        self.queues[id].wait_request = true;
        let due = Jiffies((now(cx) + wait) as u64);
        self.timer = Some(Instant::ZERO + self.settings.hz.duration(due));
        if self.rules.finds_cooperators {
            self.say(cx, id, format_args!("arm_idle: {wait}"));
        } else {
            cx.message(format_args!("cfq arm_idle: {wait}"));
        }
    }

    /// Rule cfq-early-idle-3: nobody came.
    pub(super) fn timer_fired(&mut self, cx: &mut Cx<'_>) {
        cx.message(format_args!("cfq idle timer fired"));
        self.timer = None;
        let Some(id) = self.active else {
            self.schedule(cx);
            return;
        };
        let queue = &self.queues[id];
        if !queue.must_dispatch && !self.is_slice_used(cx, id) {
            if self.tree.is_empty() {
                return;
            }
            if queue.is_empty() {
                self.expire(cx, id, false);
            }
        } else if !queue.must_dispatch {
            self.expire(cx, id, false);
        }
        self.schedule(cx);
    }
}
