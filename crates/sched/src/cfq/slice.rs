//! Turns: how long a queue may use the disk, and what is settled when its turn ends (rules
//! cfq-slice, cfq-place and cfq-group-8).

use super::queue::{Class, QueueId};
use super::{Cfq, GroupId, Kind};
use block::Cx;

/// Keys of the idle class follow each other by this.
const IDLE_KEY_STEP: i64 = 200_000_000;
/// A queue that preempts stands this much before the first.
const FRONT: i64 = 1_000_000_000;
/// A level is worth a fifth of the base.
const LEVELS: i64 = 5;

/// What a turn cost.
struct Used {
    time: i64,
    charge: i64,
}

impl Cfq {
    /// The length of a turn by level.
    pub(super) fn level_slice(&self, sync: bool, level: u8) -> i64 {
        let base = self.settings.slice[usize::from(sync)];
        base + base / LEVELS * (4 - i64::from(level))
    }

    /// The length of a turn, shortened when the group has many queues and little time.
    pub(super) fn scaled_slice(&mut self, id: QueueId) -> i64 {
        let queue = &self.queues[id];
        let slice = self.level_slice(queue.sync, queue.level);
        if !self.settings.low_latency {
            return slice;
        }
        let (group, is_real_time) = (queue.group, queue.class == Class::RealTime);
        let class = if is_real_time { Class::RealTime } else { Class::BestEffort };
        let queues = i64::from(self.average_queues(group, class));
        let base = self.settings.slice[1];
        let (expected, group_slice) = (base * queues, self.group_slice(group));
        if expected <= group_slice {
            return slice;
        }
        let low = slice.min(2 * self.settings.slice_idle * slice / base);
        (slice * group_slice / expected).max(low)
    }

    fn average_queues(&mut self, group: GroupId, class: Class) -> u32 {
        let group = self.group_mut(group);
        let (busy, average) = (group.busy(class), &mut group.queues_avg[class as usize]);
        let (least, most) = (busy.min(*average), busy.max(*average));
        *average = (3 * most + least + 2) / 4;
        *average
    }

    /// The first request of a turn has completed: the time begins to run.
    pub(super) fn set_slice(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let (now, slice) = (self.now(cx), self.scaled_slice(id));
        let queue = &mut self.queues[id];
        queue.slice_new = false;
        queue.slice_start = now;
        queue.slice_end = now + slice;
        queue.allocated_slice = slice;
        self.say(cx, id, format_args!("set_slice={slice}"));
    }

    /// The turn ends. `timed_out`: what is left of it counts for the next one.
    pub(super) fn expire(&mut self, cx: &mut Cx<'_>, id: QueueId, timed_out: bool) {
        self.say(cx, id, format_args!("slice expired t={}", u8::from(timed_out)));
        let now = self.now(cx);
        if self.queues[id].wait_request {
            self.timer = None;
        }
        let queue = &mut self.queues[id];
        queue.wait_request = false;
        queue.wait_busy = false;
        queue.split_coop |= queue.coop && queue.is_seeky();
        if timed_out {
            let is_new = queue.slice_new;
            let left = if is_new { self.scaled_slice(id) } else { self.queues[id].slice_end - now };
            self.queues[id].slice_resid = left;
            self.say(cx, id, format_args!("resid={left}"));
        }
        self.charge(cx, id);
        if self.queues[id].on_rr && self.queues[id].is_empty() {
            self.leave_rr(cx, id);
        }
        if self.queues[id].on_rr {
            self.resort(cx, id, false);
        }
        if self.active == Some(id) {
            self.active = None;
        }
        self.active_context = None;
    }

    /// The group pays for the turn, and what is left of its workload's time is remembered.
    fn charge(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let (now, used) = (self.now(cx), self.used(cx, id));
        let group = self.queues[id].group;
        self.charge_group(cx, group, used.charge);
        let left = self.workload_expires - now;
        let (class, kind) = (self.serving_class, self.serving_kind);
        self.group_mut(group).saved = (left > 0).then_some((left, class, kind));
        let (queue, iops) = (&self.queues[id], u8::from(self.counts_requests()));
        let (requests, sectors) = (queue.slice_dispatch, queue.sectors);
        let Used { time, charge } = used;
        self.say(
            cx,
            id,
            format_args!(
                "sl_used={time} disp={requests} charge={charge} iops={iops} sect={sectors}"
            ),
        );
    }

    fn used(&self, cx: &Cx<'_>, id: QueueId) -> Used {
        let (now, queue) = (self.now(cx), &self.queues[id]);
        let time = if queue.slice_start == 0 || queue.slice_start == now {
            (now - queue.dispatch_start).max(self.jiffy(cx))
        } else {
            (now - queue.slice_start).min(queue.allocated_slice)
        };
        let charge = if self.counts_requests() {
            i64::from(queue.slice_dispatch)
        } else if !queue.sync && !self.group(queue.group).has_sync() {
            queue.allocated_slice
        } else {
            time
        };
        Used { time, charge }
    }

    /// Groups pay by requests and not by time: nobody waits, and the disk queues.
    pub(super) fn counts_requests(&self) -> bool {
        self.settings.slice_idle == 0 && self.depth.queues()
    }

    /// A queue has its first request.
    pub(super) fn join_rr(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        self.say(cx, id, format_args!("add_to_rr"));
        let queue = &mut self.queues[id];
        queue.on_rr = true;
        self.busy_queues += 1;
        self.busy_sync_queues += u32::from(queue.sync);
        self.resort(cx, id, false);
    }

    /// A queue has nothing more.
    pub(super) fn leave_rr(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        self.say(cx, id, format_args!("del_from_rr"));
        let queue = &mut self.queues[id];
        queue.on_rr = false;
        self.busy_queues -= 1;
        self.busy_sync_queues -= u32::from(queue.sync);
        let group = queue.group;
        self.leave_tree(id);
        self.leave_prio_tree(id);
        self.group_loses_queue(cx, group);
    }

    fn leave_tree(&mut self, id: QueueId) {
        let group = self.queues[id].group;
        if let Some((key, class, kind)) = self.queues[id].place.take() {
            self.group_mut(group).tree_mut(class, kind).remove(key, id);
        }
    }

    /// Moves a queue that waits to another place in its tree.
    pub(super) fn move_queue(&mut self, id: QueueId, key: i64) {
        let group = self.queues[id].group;
        let Some((_, class, kind)) = self.queues[id].place else { return };
        self.leave_tree(id);
        self.group_mut(group).tree_mut(class, kind).insert(key, id);
        self.queues[id].place = Some((key, class, kind));
    }

    /// Places a queue among those of its class and kind; `front`: before all of them.
    pub(super) fn resort(&mut self, cx: &mut Cx<'_>, id: QueueId, front: bool) {
        self.place(cx, id, front);
        self.update_prio_tree(cx, id);
    }

    /// Rules cfq-place.
    fn place(&mut self, cx: &Cx<'_>, id: QueueId, front: bool) {
        let queue = &self.queues[id];
        let (class, kind, group) = (queue.class, queue.kind(), queue.group);
        let key = self.key(cx, id, class, kind, front);
        self.queues[id].unsure = false;
        let (before, after) = (self.queues[id].place, Some((key, class, kind)));
        if before.is_some_and(|(old, c, k)| old == key && same_tree((c, k), (class, kind))) {
            return;
        }
        self.leave_tree(id);
        self.group_mut(group).tree_mut(class, kind).insert(key, id);
        self.queues[id].place = after;
        if before.is_none() && !front {
            self.group_gains_queue(cx, group);
        }
    }

    fn key(&mut self, cx: &Cx<'_>, id: QueueId, class: Class, kind: Kind, front: bool) -> i64 {
        let now = self.now(cx);
        let queue = &self.queues[id];
        let group = self.group(queue.group);
        let tree = group.tree(class, kind);
        if class == Class::Idle {
            let last = tree.last().filter(|(_, last)| *last != id);
            return IDLE_KEY_STEP + last.map_or(now, |(key, _)| key);
        }
        if front {
            return tree.first().map_or(now, |(key, _)| key) - FRONT;
        }
        let others = i64::from(group.queues) - 1;
        let (sync, level, resid) = (queue.sync, queue.level, queue.slice_resid);
        self.queues[id].slice_resid = 0;
        // Measured against the longest synchronous turn, for asynchronous queues too.
        now + others * (self.level_slice(true, 0) - self.level_slice(sync, level)) - resid
    }
}

/// Whether two pairs of class and kind mean the same tree: the idle class has only one.
fn same_tree(one: (Class, Kind), other: (Class, Kind)) -> bool {
    one.0 == other.0 && (one.1 == other.1 || one.0 == Class::Idle)
}
