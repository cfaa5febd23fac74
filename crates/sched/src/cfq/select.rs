//! Whose turn it is (rules cfq-select).

use super::queue::{Class, QueueId};
use super::{Cfq, GroupId, Kind, Turn};
use block::{Cx, HoldReason};

/// What selection came to.
pub(super) enum Selected {
    /// This queue is served.
    Queue(QueueId),
    /// Nobody is, although there are requests.
    Hold(HoldReason),
    /// There is nothing.
    Nothing,
}

/// What becomes of the active queue when it cannot simply go on.
enum Verdict {
    Waits(HoldReason),
    /// Its turn ends; a cooperator may have the next one.
    Ends(Option<QueueId>),
}

impl Cfq {
    pub(super) fn select(&mut self, cx: &mut Cx<'_>) -> Selected {
        match self.active {
            Some(_) if self.queued == 0 => Selected::Nothing,
            Some(id) if self.goes_on(cx, id) => Selected::Queue(id),
            _ => self.select_another(cx),
        }
    }

    /// Whether the active queue has requests and time left.
    pub(super) fn goes_on(&self, cx: &Cx<'_>, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let has_time = queue.must_dispatch || !queue.is_slice_used(self.now(cx));
        has_time && !queue.is_empty() && !queue.wait_busy
    }

    /// The active queue is judged, and perhaps followed by another.
    #[inline(never)]
    fn select_another(&mut self, cx: &mut Cx<'_>) -> Selected {
        let mut heir = None;
        if let Some(id) = self.active {
            match self.judge(cx, id) {
                Verdict::Waits(reason) => return Selected::Hold(reason),
                Verdict::Ends(next) => heir = next,
            }
            self.turn = if heir.is_some() { Turn::Cooperates } else { Turn::Begins };
            self.expire(cx, id, false);
        }
        if heir.is_none() {
            self.choose_group(cx);
        }
        match heir.or_else(|| self.first_of_workload()) {
            Some(id) => {
                self.heard.in_doubt |= core::mem::take(&mut self.queues[id].unsure);
                self.set_active(cx, id);
                Selected::Queue(id)
            }
            None if self.queued == 0 => Selected::Nothing,
            None => Selected::Hold(HoldReason::NobodyChosen),
        }
    }

    /// Rules cfq-select-1 to cfq-select-7, for a queue that does not simply go on.
    fn judge(&mut self, cx: &mut Cx<'_>, id: QueueId) -> Verdict {
        let queue = &self.queues[id];
        let (is_empty, dispatched) = (queue.is_empty(), queue.dispatched);
        if queue.wait_busy && !is_empty {
            return Verdict::Ends(None);
        }
        if !queue.must_dispatch && queue.is_slice_used(self.now(cx)) {
            let is_alone = self.group(queue.group).queues == 1;
            if is_alone && is_empty && dispatched > 0 && self.should_idle(cx, id) {
                return Verdict::Waits(HoldReason::TurnNotDone);
            }
            return self.judge_group(id);
        }
        if let Some(other) = self.close_cooperator(cx, id) {
            if self.queues[id].merges_into.is_none() {
                self.plan_merge(id, other);
            }
            return Verdict::Ends(Some(other));
        }
        if self.timer.is_some() {
            let by_group = self.waits_for_group;
            let reason = if by_group { HoldReason::GroupIdles } else { HoldReason::ProcessIdles };
            return Verdict::Waits(reason);
        }
        self.note_fast_disk(cx, id);
        if dispatched > 0 && self.should_idle(cx, id) {
            return Verdict::Waits(HoldReason::TurnNotDone);
        }
        self.judge_group(id)
    }

    /// Rule cfq-select-6: the disk is much faster than the process seeks.
    fn note_fast_disk(&mut self, cx: &Cx<'_>, id: QueueId) {
        let now = self.now(cx);
        let queue = &mut self.queues[id];
        let is_early = queue.slice_new || queue.slice_end - now > now - queue.slice_start;
        if queue.is_seeky() && queue.idle_window && is_early {
            queue.deep = false;
            queue.idle_window = false;
        }
    }

    /// The last queue of a group waits for what the group has in flight.
    fn judge_group(&self, id: QueueId) -> Verdict {
        let group = self.group(self.queues[id].group);
        let idle = self.settings.group_idle;
        let waits = idle > 0 && group.queues == 1 && group.dispatched > 0;
        if waits && !group.think.is_big(idle) {
            return Verdict::Waits(HoldReason::GroupNotDone);
        }
        Verdict::Ends(None)
    }

    pub(super) fn set_active(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let (class, kind) = (self.serving_class as u8, self.serving_kind as u8);
        self.say(cx, id, format_args!("set_active wl_class:{class} wl_type:{kind}"));
        let now = self.now(cx);
        let queue = &mut self.queues[id];
        queue.slice_start = 0;
        queue.dispatch_start = now;
        queue.allocated_slice = 0;
        queue.slice_end = 0;
        queue.slice_dispatch = 0;
        queue.sectors = 0;
        queue.wait_request = false;
        queue.must_dispatch = false;
        queue.must_alloc = false;
        queue.fifo_checked = false;
        queue.slice_new = true;
        self.timer = None;
        self.active = Some(id);
    }

    fn first_of_workload(&self) -> Option<QueueId> {
        let group = self.group(self.serving_group?);
        let first = group.tree(self.serving_class, self.serving_kind).first();
        first.map(|(_, id)| id).filter(|_| self.queued > 0)
    }

    /// The group that has had least, and which of its workloads.
    fn choose_group(&mut self, cx: &mut Cx<'_>) {
        let Some(id) = self.next_group() else {
            self.serving_group = None;
            return;
        };
        self.serving_group = Some(id);
        self.heard.in_doubt |= self.group(id).unsure;
        let now = self.now(cx);
        match self.group(id).saved {
            Some((left, class, kind)) => {
                self.workload_expires = now + left;
                self.serving_class = class;
                self.serving_kind = kind;
            }
            None => self.workload_expires = now - 1,
        }
        self.choose_workload(cx, id);
    }

    fn choose_workload(&mut self, cx: &mut Cx<'_>, id: GroupId) {
        let (now, before) = (self.now(cx), self.serving_class);
        let group = self.group(id);
        let classes = [Class::RealTime, Class::BestEffort];
        let Some(class) = classes.into_iter().find(|class| group.busy(*class) > 0) else {
            self.serving_class = Class::Idle;
            self.workload_expires = now + self.jiffy(cx);
            return;
        };
        let current = group.tree(class, self.serving_kind).count();
        let first = |kind: Kind| Some((group.tree(class, kind).first()?.0, kind));
        let best = Kind::ALL.into_iter().filter_map(first).min();
        self.serving_class = class;
        if class == before && current > 0 && now <= self.workload_expires {
            return;
        }
        self.serving_kind = best.map_or(Kind::SyncNoIdle, |(_, kind)| kind);
        let slice = self.workload_slice(cx, id, class);
        cx.message(format_args!("cfq workload slice:{slice}"));
        self.workload_expires = now + slice;
    }

    /// How long queues of a class and kind are served before others of the group are.
    fn workload_slice(&self, cx: &Cx<'_>, id: GroupId, class: Class) -> i64 {
        let group = self.group(id);
        let count = i64::from(group.tree(class, self.serving_kind).count());
        let of_class = group.queues_avg[class as usize].max(group.busy(class));
        let slice = self.group_slice(id) * count / i64::from(of_class.max(1));
        let slice = if self.serving_kind == Kind::Async {
            let queues = i64::from(group.busy_async());
            let busy = i64::from(self.busy_queues.max(1));
            let share = slice.min(self.settings.target_latency * queues / busy);
            share * self.settings.slice[0] / self.settings.slice[1]
        } else {
            slice.max(2 * self.settings.slice_idle)
        };
        slice.max(2 * self.jiffy(cx))
    }

    /// Somebody else has chosen a queue: its group, class and kind are those that are served.
    pub(super) fn serve(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let now = self.now(cx);
        let group = self.queues[id].group;
        let (class, kind) = self.queues[id].tree();
        let is_served = self.serving_group == Some(group)
            && (self.serving_class, self.serving_kind) == (class, kind);
        if is_served && now <= self.workload_expires {
            return;
        }
        self.serving_group = Some(group);
        let saved = self.group(group).saved.filter(|saved| (saved.1, saved.2) == (class, kind));
        (self.serving_class, self.serving_kind) = (class, kind);
        self.workload_expires = match saved {
            Some((left, ..)) => now + left,
            None if class == Class::Idle => now + self.jiffy(cx),
            None => now + self.workload_slice(cx, group, class),
        };
    }
}
