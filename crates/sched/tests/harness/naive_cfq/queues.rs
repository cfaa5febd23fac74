//! What is in a queue, and what an arrival does (rules cfq-choose, cfq-insert and cfq-preempt).

use super::*;

impl NaiveCfq {
    pub(super) fn choose(
        &self,
        cx: &Cx<'_>,
        one: Option<RequestId>,
        two: Option<RequestId>,
        last: u64,
    ) -> Option<RequestId> {
        let (Some(one), Some(two)) = (one, two) else { return one.or(two) };
        let (a, b) = (cx.request(one), cx.request(two));
        if a.is_sync() != b.is_sync() {
            return Some(if a.is_sync() { one } else { two });
        }
        let prio = |flags: Flags| flags.intersects(Flags::PRIO);
        if prio(a.flags) != prio(b.flags) {
            return Some(if prio(a.flags) { one } else { two });
        }
        let distance = |Sector(at): Sector| match at.checked_sub(last) {
            Some(forward) => Some(forward as i64),
            None if last - at <= 2 * self.back_max as u64 => {
                Some((last - at) as i64 * self.penalty)
            }
            None => None,
        };
        let first = match (distance(a.sector), distance(b.sector)) {
            (Some(x), Some(y)) if x != y => x < y,
            (Some(_), Some(_)) => a.sector >= b.sector,
            (None, None) => a.sector <= b.sector,
            (x, _) => x.is_some(),
        };
        Some(if first { one } else { two })
    }

    pub(super) fn by_sector(&self, q: usize) -> Vec<RequestId> {
        let mut sorted = self.queues[q].fifo.clone();
        sorted.sort_by_key(|it| self.requests[it].at);
        sorted
    }

    /// What goes next when `rq` leaves.
    pub(super) fn successor(&self, cx: &Cx<'_>, q: usize, rq: RequestId) -> Option<RequestId> {
        let sorted = self.by_sector(q);
        let at = sorted.iter().position(|it| *it == rq).expect("it is queued");
        let after = sorted.get(at + 1).copied();
        let next = after.or_else(|| sorted.first().copied().filter(|it| *it != rq));
        let previous = at.checked_sub(1).map(|at| sorted[at]);
        self.choose(cx, next, previous, cx.request(rq).sector.0)
    }

    // Rules cfq-insert

    pub(super) fn insert_request(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let (q, process) = (self.requests[&rq].queue, self.requests[&rq].process);
        self.init_prio(cx, q, process);
        let request = cx.request(rq);
        let expires = now(cx) + self.fifo_expire[usize::from(request.is_sync())];
        self.requests.get_mut(&rq).expect("it is bound").expires = expires;
        self.queues[q].fifo.push(rq);
        self.add(cx, q, rq);
        let (wait, group_wait, id) = (self.slice_idle, self.group_idle, self.queues[q].group);
        if self.queues[q].sync {
            if let Some(process) = self.processes.get_mut(&process) {
                process.think.update(now(cx), wait);
            }
            self.tree_think(q).update(now(cx), wait);
        }
        self.group(id).think.update(now(cx), group_wait);
        let queue = &mut self.queues[q];
        let far = match self.rotational {
            true => queue.last_end != 0 && request.sector.0.abs_diff(queue.last_end) > 800,
            false => request.sectors.0 < 64,
        };
        queue.history = queue.history << 1 | u32::from(far);
        self.update_idle_window(cx, q, process);
        self.queues[q].last_end = request.end().0;
        if self.active == Some(q) {
            if self.queues[q].wait_request {
                if request.sectors.0 > 8 || self.busy() > 1 {
                    self.timer = None;
                    self.queues[q].wait_request = false;
                } else {
                    self.queues[q].must_dispatch = true;
                }
            }
        } else if self.should_preempt(cx, q, rq) {
            self.preempt(cx, q);
        }
    }

    pub(super) fn add(&mut self, cx: &Cx<'_>, q: usize, rq: RequestId) {
        let order = self.order();
        self.requests.get_mut(&rq).expect("it is bound").at = (cx.request(rq).sector, order);
        if !self.queues[q].on_rr {
            self.queues[q].on_rr = true;
            self.position(cx, q, false);
        }
        self.queues[q].next = self.choose(cx, self.queues[q].next, Some(rq), self.last_position);
    }

    pub(super) fn update_idle_window(&mut self, cx: &Cx<'_>, q: usize, process: u32) {
        let queue = &self.queues[q];
        if !queue.sync || queue.class == IDLE {
            return;
        }
        let deep = queue.deep || queue.fifo.len() >= 4;
        let seeky = queue.history.count_ones() > 4;
        let tasks = cx.io_context(block::IoContextId(process)).tasks;
        let think = self.processes.get(&process).map(|it| it.think);
        let enable = if queue.next.is_some_and(|next| noidle(cx, next))
            || tasks == 0
            || self.slice_idle == 0
            || (!deep && seeky)
        {
            false
        } else if let Some(think) = think.filter(Think::valid) {
            think.mean <= self.slice_idle
        } else {
            queue.idle_window
        };
        self.queues[q].deep = deep;
        self.queues[q].idle_window = enable;
    }

    pub(super) fn join(&mut self, cx: &Cx<'_>, rq: RequestId, next: RequestId) {
        let (q, other) = (self.requests[&rq].queue, self.requests[&next].queue);
        if !self.queues[other].fifo.contains(&next) {
            return;
        }
        let expires = self.requests[&next].expires;
        if q == other && expires < self.requests[&rq].expires {
            let fifo = &mut self.queues[q].fifo;
            fifo.retain(|it| *it != rq);
            let at = fifo.iter().position(|it| *it == next).expect("it is queued");
            fifo.insert(at, rq);
            self.requests.get_mut(&rq).expect("it is bound").expires = expires;
        }
        if self.queues[q].next == Some(next) {
            self.queues[q].next = Some(rq);
        }
        self.remove(cx, next);
        let queue = &self.queues[other];
        if queue.fifo.is_empty() && queue.on_rr && self.active != Some(other) {
            self.leave_rr(other);
        }
    }

    pub(super) fn remove(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let q = self.requests[&rq].queue;
        if self.queues[q].next == Some(rq) {
            self.queues[q].next = self.successor(cx, q, rq);
        }
        self.queues[q].fifo.retain(|it| *it != rq);
    }

    // Rules cfq-preempt

    pub(super) fn should_preempt(&self, cx: &Cx<'_>, n: usize, rq: RequestId) -> bool {
        let Some(active) = self.active else { return false };
        let (new, a, request) = (&self.queues[n], &self.queues[active], cx.request(rq));
        if new.class == IDLE {
            return false;
        }
        if a.class == IDLE {
            return true;
        }
        if a.class == RT && new.class != RT {
            return false;
        }
        if request.is_sync() && !a.sync && !a.must_dispatch {
            return true;
        }
        let mut above = Some(a.group);
        while above.is_some_and(|id| id != new.group) {
            above = self.groups[&above.expect("there is one")].parent;
        }
        if above.is_none() {
            return false;
        }
        if self.used(cx, active) || new.class == RT && a.class != RT {
            return true;
        }
        let empty = a.fifo.is_empty();
        if self.serving.1 == SYNC_NOIDLE && self.kind(n) == SYNC_NOIDLE && empty {
            return true;
        }
        let pending = a.fifo.iter().any(|it| cx.request(*it).flags.intersects(Flags::PRIO));
        if request.flags.intersects(Flags::PRIO) && !pending {
            return true;
        }
        if empty && !self.should_idle(active) {
            return true;
        }
        if self.active_process.is_none() || !a.wait_request {
            return false;
        }
        request.sector.0.abs_diff(self.last_position) <= 8192
    }

    pub(super) fn preempt(&mut self, cx: &Cx<'_>, n: usize) {
        let active = self.active.expect("somebody is preempted");
        let kind = self.kind(active);
        self.expire(cx, active, true);
        if kind != self.kind(n) {
            let id = self.queues[n].group;
            self.group(id).saved = None;
        }
        self.position(cx, n, true);
        self.queues[n].slice_end = 0;
        self.queues[n].slice_new = true;
    }
}
