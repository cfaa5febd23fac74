//! Whose turn it is, what leaves, and what a completion does (rules cfq-dispatch, cfq-idle,
//! cfq-select and cfq-queues).

use super::super::shadow::Naive;
use super::*;

impl NaiveCfq {
    /// Nothing rotates, and several commands are taken at once.
    fn fast(&self) -> bool {
        !self.rotational && self.hw_tag != Some(false)
    }

    pub(super) fn should_idle(&self, q: usize) -> bool {
        let queue = &self.queues[q];
        if self.slice_idle == 0 || queue.class == IDLE {
            return false;
        }
        if queue.idle_window && !self.fast() {
            return true;
        }
        let (class, kind) = match queue.place {
            Some((_, _, class, kind)) => (class, kind),
            None => (queue.class, self.kind(q)),
        };
        let tree = self.tree(queue.group, class, kind).len();
        let think =
            self.groups[&queue.group].tree_think[class][if class == IDLE { 0 } else { kind }];
        tree == 1 && queue.sync && !think.big(self.slice_idle)
    }

    pub(super) fn dispatch_one(&mut self, cx: &Cx<'_>) -> Option<RequestId> {
        if self.busy() == 0 {
            return None;
        }
        let q = self.select(cx)?;
        let mut late = None;
        if !self.queues[q].fifo_checked {
            self.queues[q].fifo_checked = true;
            let oldest = self.queues[q].fifo.first().copied();
            late = oldest.filter(|oldest| self.requests[oldest].expires <= now(cx));
            self.queues[q].must_dispatch |= late.is_some();
        }
        if !self.may_dispatch(cx, q) {
            return None;
        }
        let rq = late.or(self.queues[q].next).expect("the queue has requests");
        self.let_go(cx, q, rq);
        let level = self.queues[q].level;
        let queue = &mut self.queues[q];
        queue.slice_dispatch += 1;
        queue.must_dispatch = false;
        let full = !queue.sync && queue.slice_dispatch >= 2 * self.async_rq * (8 - level);
        if (full || queue.class == IDLE) && self.busy() > 1 {
            self.queues[q].slice_end = now(cx) + 1;
            self.expire(cx, q, false);
        }
        Some(rq)
    }

    pub(super) fn let_go(&mut self, cx: &Cx<'_>, q: usize, rq: RequestId) {
        self.queues[q].next = self.successor(cx, q, rq);
        self.remove(cx, rq);
        self.queues[q].dispatched += 1;
        let (id, sync) = (self.queues[q].group, self.queues[q].sync);
        self.group(id).dispatched += 1;
        self.in_flight[usize::from(sync)] += 1;
        self.active_process.get_or_insert(self.requests[&rq].process);
    }

    pub(super) fn may_dispatch(&self, cx: &Cx<'_>, q: usize) -> bool {
        let queue = &self.queues[q];
        if queue.must_dispatch {
            return true;
        }
        if self.should_idle(q) && self.in_flight[0] > 0 {
            return false;
        }
        if self.in_flight[1] > 0 && !queue.sync {
            return false;
        }
        let mut max = if queue.class == IDLE { 1 } else { (self.quantum / 2).max(1) };
        if queue.dispatched >= max {
            if queue.class == IDLE {
                return false;
            }
            let busy_sync = self.queues.iter().filter(|it| it.on_rr && it.sync).count();
            let promote = queue.sync && busy_sync == 1;
            let soon =
                queue.slice_new || now(cx) + self.slice_idle * queue.dispatched > queue.slice_end;
            if self.busy() > 1 && soon && !promote {
                return false;
            }
            max = if self.busy() == 1 || promote { i64::MAX } else { self.quantum };
        }
        if !queue.sync && self.low_latency {
            let mut depth = (now(cx) - self.last_delayed_sync) / self.slice[1];
            if depth == 0 && queue.dispatched == 0 {
                depth = 1;
            }
            max = max.min(depth);
        }
        queue.dispatched < max
    }

    pub(super) fn complete(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let (q, process) = (self.requests[&rq].queue, self.requests[&rq].process);
        self.estimate_depth();
        self.in_driver -= 1;
        self.queues[q].dispatched -= 1;
        let (id, sync) = (self.queues[q].group, self.queues[q].sync);
        self.group(id).dispatched -= 1;
        self.in_flight[usize::from(sync)] -= 1;
        let request = cx.request(rq);
        if request.is_sync() {
            if let Some(process) = self.processes.get_mut(&process) {
                process.think.last_end = now(cx);
            }
            self.tree_think(q).last_end = now(cx);
            if request.allocated_at.as_nanos() as i64 + self.fifo_expire[1] <= now(cx) {
                self.last_delayed_sync = now(cx);
            }
        }
        self.group(id).think.last_end = now(cx);
        if self.active != Some(q) {
            return;
        }
        if self.queues[q].slice_new {
            let slice = self.scaled_slice(q);
            let queue = &mut self.queues[q];
            (queue.slice_new, queue.slice_start, queue.allocated) = (false, now(cx), slice);
            queue.slice_end = now(cx) + slice;
        }
        if self.should_wait_busy(cx, q) {
            let more = if self.slice_idle > 0 { self.slice_idle } else { self.group_idle };
            self.queues[q].slice_end = now(cx) + more;
            self.queues[q].wait_busy = true;
        }
        if self.used(cx, q) || self.queues[q].class == IDLE {
            self.expire(cx, q, true);
        } else if request.is_sync() && self.queues[q].fifo.is_empty() {
            self.arm(cx, q);
        }
    }

    /// Rules cfq-queues.
    pub(super) fn estimate_depth(&mut self) {
        self.deepest = self.deepest.max(self.in_driver);
        if self.hw_tag == Some(true) || self.queued() <= 5 && self.in_driver <= 5 {
            return;
        }
        if let Some(active) = self.active.map(|q| &self.queues[q])
            && active.idle_window
            && active.dispatched + (active.fifo.len() as i64) < 5
            && self.in_driver < 5
        {
            return;
        }
        self.samples += 1;
        if self.samples > 50 {
            self.hw_tag = Some(self.deepest >= 5);
        }
    }

    pub(super) fn should_wait_busy(&self, cx: &Cx<'_>, q: usize) -> bool {
        let (queue, group) = (&self.queues[q], &self.groups[&self.queues[q].group]);
        if !queue.fifo.is_empty() || group.queues > 1 || group.think.big(self.group_idle) {
            return false;
        }
        let left = queue.slice_end - now(cx);
        let think = self.active_process.and_then(|id| self.processes.get(&id)).map(|it| it.think);
        self.used(cx, q)
            || think.is_some_and(|think| think.valid() && left < think.mean)
            || left <= self.tick()
    }

    pub(super) fn arm(&mut self, cx: &Cx<'_>, q: usize) {
        if self.fast() && (self.group_idle == 0 || !self.late) {
            return;
        }
        let by_group = !self.should_idle(q);
        if by_group && self.group_idle == 0 {
            return;
        }
        let Some(owner) = self.active_process else { return };
        let tasks = cx.io_context(block::IoContextId(owner)).tasks;
        if self.queues[q].dispatched > 0 || tasks == 0 {
            return;
        }
        let left = (self.queues[q].slice_end - now(cx)) as u64;
        let think = self.processes.get(&owner).map(|it| it.think);
        if think.is_some_and(|think| think.valid() && left < think.mean as u64) {
            return;
        }
        let group_idle = self.group_idle;
        let alone = self.groups[&self.queues[q].group].queues == 1;
        if by_group && (!alone || self.tree_think(q).big(group_idle)) {
            return;
        }
        self.queues[q].wait_request = true;
        self.timer = Some(now(cx) + if by_group { group_idle } else { self.slice_idle });
    }

    pub(super) fn timer_fired(&mut self, cx: &Cx<'_>) {
        self.timer = None;
        let Some(q) = self.active else { return };
        if self.queues[q].must_dispatch {
            return;
        }
        if !self.used(cx, q) {
            if !self.queues[q].fifo.is_empty() {
                return;
            }
            self.queues[q].deep = false;
        }
        self.expire(cx, q, false);
    }

    /// Rule cfq-select-10.
    pub(super) fn drain_all(&mut self, cx: &Cx<'_>) -> Vec<RequestId> {
        if let Some(active) = self.active {
            self.expire(cx, active, false);
        }
        let base = self.min_vdisktime;
        let mut groups: Vec<u32> =
            self.groups.iter().filter(|(_, it)| it.place.is_some()).map(|(id, _)| *id).collect();
        groups.sort_by_key(|id| {
            (self.groups[id].vdisktime.wrapping_sub(base) as i64, self.groups[id].place)
        });
        let mut queues = Vec::new();
        for id in groups {
            for class in [BE, RT] {
                for kind in [ASYNC, SYNC_NOIDLE, SYNC] {
                    queues.extend(self.tree(id, class, kind));
                }
            }
            queues.extend(self.tree(id, IDLE, 0));
        }
        let mut left = Vec::new();
        for q in queues {
            self.set_active(cx, q);
            while let Some(next) = self.queues[q].next {
                self.let_go(cx, q, next);
                left.push(next);
            }
            self.expire(cx, q, false);
        }
        left
    }

    // Rules cfq-select

    pub(super) fn select(&mut self, cx: &Cx<'_>) -> Option<usize> {
        if let Some(q) = self.active {
            if self.queued() == 0 {
                return None;
            }
            let queue = &self.queues[q];
            let (empty, id) = (queue.fifo.is_empty(), queue.group);
            let alone = self.groups[&id].queues == 1;
            let group_busy = self.group_idle > 0
                && alone
                && self.groups[&id].dispatched > 0
                && !self.groups[&id].think.big(self.group_idle);
            if queue.wait_busy && !empty {
            } else if !queue.must_dispatch && self.used(cx, q) {
                if alone && empty && queue.dispatched > 0 && self.should_idle(q) || group_busy {
                    return None;
                }
            } else if !empty {
                return Some(q);
            } else if self.timer.is_some() {
                return None;
            } else {
                let early =
                    queue.slice_new || queue.slice_end - now(cx) > now(cx) - queue.slice_start;
                if queue.history.count_ones() > 4 && queue.idle_window && early {
                    self.queues[q].deep = false;
                    self.queues[q].idle_window = false;
                }
                if self.queues[q].dispatched > 0 && self.should_idle(q) || group_busy {
                    return None;
                }
            }
            self.expire(cx, q, false);
        }
        self.choose_group(cx);
        let (class, kind) = self.serving;
        let first = self.serving_group.and_then(|id| self.tree(id, class, kind).first().copied());
        let q = first.filter(|_| self.queued() > 0)?;
        self.set_active(cx, q);
        Some(q)
    }

    pub(super) fn set_active(&mut self, cx: &Cx<'_>, q: usize) {
        let queue = &mut self.queues[q];
        queue.slice_start = 0;
        queue.dispatch_start = now(cx);
        queue.allocated = 0;
        queue.slice_end = 0;
        queue.slice_dispatch = 0;
        queue.wait_request = false;
        queue.must_dispatch = false;
        queue.must_alloc = false;
        queue.fifo_checked = false;
        queue.slice_new = true;
        self.timer = None;
        self.active = Some(q);
    }

    pub(super) fn choose_group(&mut self, cx: &Cx<'_>) {
        self.serving_group = self.leftmost();
        let Some(id) = self.serving_group else { return };
        let time = self.groups[&id].vdisktime;
        if time.wrapping_sub(self.min_vdisktime) as i64 > 0 {
            self.min_vdisktime = time;
        }
        let before = self.serving.0;
        let mut before_class = before;
        match self.groups[&id].saved {
            Some((left, class, kind)) => {
                self.workload_expires = now(cx) + left;
                self.serving = (class, kind);
                before_class = class;
            }
            None => self.workload_expires = now(cx) - 1,
        }
        let class = [RT, BE].into_iter().find(|class| self.count(id, *class) > 0);
        let Some(class) = class else {
            self.serving.0 = IDLE;
            self.workload_expires = now(cx) + self.tick();
            return;
        };
        let kind = self.serving.1;
        self.serving.0 = class;
        let going = !self.tree(id, class, kind).is_empty() && now(cx) <= self.workload_expires;
        if class == before_class && going {
            return;
        }
        let firsts = [ASYNC, SYNC_NOIDLE, SYNC].into_iter().filter_map(|kind| {
            let first = *self.tree(id, class, kind).first()?;
            Some((self.queues[first].place.expect("it is in the tree").0, kind))
        });
        let kind = firsts.min().map_or(SYNC_NOIDLE, |(_, kind)| kind);
        self.serving.1 = kind;
        let count = self.tree(id, class, kind).len() as i64;
        let of_class = self.groups[&id].average[class].max(self.count(id, class)).max(1);
        let mut slice = self.group_slice(id) * count / of_class;
        if kind == ASYNC {
            let asynchronous: i64 =
                [BE, RT].iter().map(|class| self.tree(id, *class, ASYNC).len() as i64).sum();
            let share = self.target * asynchronous / (self.busy() as i64).max(1);
            slice = slice.min(share) * self.slice[0] / self.slice[1];
        } else {
            slice = slice.max(2 * self.slice_idle);
        }
        self.workload_expires = now(cx) + slice.max(2 * self.tick());
    }

    pub(super) fn expire(&mut self, cx: &Cx<'_>, q: usize, timed_out: bool) {
        if self.queues[q].wait_request {
            self.timer = None;
        }
        self.queues[q].wait_request = false;
        self.queues[q].wait_busy = false;
        if timed_out {
            let left = match self.queues[q].slice_new {
                true => self.scaled_slice(q),
                false => self.queues[q].slice_end - now(cx),
            };
            self.queues[q].resid = left;
        }
        self.charge(cx, q);
        if self.queues[q].on_rr && self.queues[q].fifo.is_empty() {
            self.leave_rr(q);
        }
        if self.queues[q].on_rr {
            self.position(cx, q, false);
        }
        if self.active == Some(q) {
            self.active = None;
        }
        self.active_process = None;
    }

    pub(super) fn charge(&mut self, cx: &Cx<'_>, q: usize) {
        let queue = &self.queues[q];
        let id = queue.group;
        let used = if queue.slice_start == 0 || queue.slice_start == now(cx) {
            (now(cx) - queue.dispatch_start).max(self.tick())
        } else {
            (now(cx) - queue.slice_start).min(queue.allocated)
        };
        let asynchronous: i64 =
            [BE, RT].iter().map(|class| self.tree(id, *class, ASYNC).len() as i64).sum();
        let sync = self.groups[&id].queues - asynchronous - self.tree(id, IDLE, 0).len() as i64;
        let charge = if self.iops() {
            queue.slice_dispatch
        } else if !queue.sync && sync <= 0 {
            queue.allocated
        } else {
            used
        };
        let fraction = self.groups[&id].vfraction.max(1);
        let scaled = ((charge as i128) << 24) / i128::from(fraction);
        self.deactivate(id);
        let group = self.group(id);
        group.vdisktime = group.vdisktime.wrapping_add(scaled as u64);
        self.activate(cx, id);
        let left = self.workload_expires - now(cx);
        let (class, kind) = self.serving;
        self.group(id).saved = (left > 0).then_some((left, class, kind));
    }
}
