//! Rules bfq-charge, bfq-bind, bfq-cgroup and bfq-exit: whose request it is, how many he may
//! have, and who leaves.

use super::engine::Entity;
use super::turns::Why;
use super::{
    BE, IDLE, Level, NEVER, NaiveBfq, Process, Queue, RT, Rq, Think, class_of, group_weight,
};
use block::{Bio, CgroupId, Cx, IoContextId, RequestId};

impl NaiveBfq {
    fn find_level(&mut self, cx: &Cx<'_>, group: u32) {
        if self.levels.contains_key(&group) {
            return;
        }
        let parent = cx.cgroup(CgroupId(group)).parent;
        let own = parent.map(|parent| {
            self.find_level(cx, parent.0);
            let weight = group_weight(cx, group);
            self.new_entity(parent.0, Some(group), weight, BE)
        });
        self.levels.insert(group, Level { own, ..Level::default() });
    }

    fn new_entity(&mut self, level: u32, inner: Option<u32>, weight: i64, class: usize) -> usize {
        self.entities.push(Entity {
            level,
            inner,
            weight,
            orig: weight,
            new_weight: weight,
            raised: 1,
            class,
            new_class: class,
            changed: inner.is_none(),
            ..Entity::default()
        });
        self.entities.len() - 1
    }

    pub(super) fn weigh(&mut self, cx: &Cx<'_>, group: u32) {
        if let Some(own) = self.levels.get(&group).and_then(|level| level.own) {
            self.entities[own].new_weight = group_weight(cx, group);
            self.entities[own].changed = true;
        }
    }

    // Rule bfq-bind

    pub(super) fn bind_request(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let request = cx.request(rq);
        let (origin, sync) = (request.origin, request.is_sync());
        let (process, group) = (origin.io_context.0, origin.cgroup.0);
        self.look_at_ioprio(cx, process, group);
        self.look_at_group(cx, process, group);
        let q = self.queue_of(cx, process, group, origin.context.0, sync);
        for e in self.family(self.queues[q].e) {
            self.entities[e].allocated += 1;
        }
        self.processes.get_mut(&process).expect("it is known").requests += 1;
        if sync && self.queues[q].users == 1 {
            self.queues[q].owner = Some(process);
        }
        if self.queues[q].just_created && (self.burst_size > 0 || self.busy().is_empty()) {
            self.handle_burst(q);
        }
        self.requests.insert(rq, Rq { queue: q, process, expires: 0, started: false, at: (0, 0) });
    }

    fn queue_of(&mut self, cx: &Cx<'_>, process: u32, group: u32, pid: u32, sync: bool) -> usize {
        let known = self.processes.entry(process).or_default();
        if let Some(q) = if sync { known.sync } else { known.asyncs } {
            return q;
        }
        self.find_level(cx, group);
        let q = match sync {
            true => self.new_queue(cx, process, group, pid, true),
            false => self.shared_queue(cx, process, group, pid),
        };
        self.queues[q].users += 1;
        let known = self.processes.get_mut(&process).expect("it is known");
        *(if sync { &mut known.sync } else { &mut known.asyncs }) = Some(q);
        q
    }

    fn shared_queue(&mut self, cx: &Cx<'_>, process: u32, group: u32, pid: u32) -> usize {
        let (class, level) = class_of(&cx.io_context(IoContextId(process)), false);
        let key = (group, class, if class == IDLE { 0 } else { level });
        if let Some(q) = self.shared.get(&key) {
            return *q;
        }
        let q = self.new_queue(cx, process, group, pid, false);
        self.queues[q].users += 1;
        self.shared.insert(key, q);
        q
    }

    fn new_queue(&mut self, cx: &Cx<'_>, process: u32, group: u32, pid: u32, sync: bool) -> usize {
        let context = cx.io_context(IoContextId(process));
        let (class, level) = class_of(&context, sync);
        self.processes.get_mut(&process).expect("it is known").ioprio = Some(context.ioprio);
        let e = self.new_entity(group, None, (8 - level) * 10, class);
        let (now, jiffies) = (self.nanos, self.jiffies);
        let taken = self.queues.iter().filter(|it| !it.is_gone).count();
        let slot = self.free.pop().unwrap_or(taken);
        self.queues.push(Queue {
            slot,
            is_gone: false,
            e,
            name: format!("bfq{pid}{}", if sync { 'S' } else { 'A' }),
            sync,
            level,
            users: 0,
            owner: None,
            busy: false,
            pending: false,
            just_created: true,
            wait_request: false,
            non_blocking: false,
            fifo_checked: false,
            short: sync,
            io_bound: true,
            in_burst: false,
            softrt_update: false,
            fifo: Vec::new(),
            next: None,
            dispatched: 0,
            max_budget: 2 * self.most_budget() / 3,
            budget_timeout: NEVER,
            wr_max: 0,
            wr_last: jiffies,
            wr_switched: NEVER,
            soft_next: jiffies,
            last_backlogged: 0,
            backlogged: 0,
            from_wr: 0,
            think: Think { last_end: now + 1, ..Think::default() },
            history: 1,
            last_end: 0,
            limit: 0,
            serv_time: 0,
            decreased: jiffies,
            waker: None,
            tentative: None,
            detections: 0,
            since: 0,
            woken: Vec::new(),
            io_start: now,
            idle_total: 0,
        });
        self.queues.len() - 1
    }

    fn look_at_ioprio(&mut self, cx: &Cx<'_>, process: u32, group: u32) {
        let context = cx.io_context(IoContextId(process));
        let known = self.processes.entry(process).or_default();
        let old = known.ioprio.replace(context.ioprio);
        if old.is_none_or(|old| old == context.ioprio) {
            return;
        }
        let (sync, asyncs) = (known.sync, known.asyncs.take());
        if let Some(q) = asyncs {
            self.let_go(q);
            self.find_level(cx, group);
            let q = self.shared_queue(cx, process, group, cx.context.0);
            self.queues[q].users += 1;
            self.processes.get_mut(&process).expect("it is known").asyncs = Some(q);
        }
        if let Some(q) = sync {
            let (class, level) = class_of(&context, true);
            self.queues[q].level = level;
            self.queues[q].short &= class != IDLE;
            let entity = self.entity_mut(q);
            entity.new_class = class;
            entity.new_weight = (8 - level) * 10;
            entity.changed = true;
        }
    }

    // Rule bfq-cgroup

    pub(super) fn look_at_group(&mut self, cx: &Cx<'_>, process: u32, group: u32) {
        let known = self.processes.entry(process).or_default();
        if known.group.replace(group).is_none_or(|old| old == group) {
            return;
        }
        let (sync, asyncs) = (known.sync, known.asyncs);
        self.find_level(cx, group);
        if let Some(q) = asyncs.filter(|q| self.entity(*q).level != group) {
            self.processes.get_mut(&process).expect("it is known").asyncs = None;
            self.let_go(q);
        }
        if let Some(q) = sync.filter(|q| self.entity(*q).level != group) {
            self.move_queue(cx, q, group);
        }
    }

    fn move_queue(&mut self, cx: &Cx<'_>, q: usize, group: u32) {
        if self.serving == Some(q) {
            self.expire(cx, q, false, Why::Preempted);
        }
        let e = self.queues[q].e;
        self.deactivate_up(e, false, false);
        let allocated = self.entities[e].allocated;
        for above in self.family(e).into_iter().skip(1) {
            self.entities[above].allocated -= allocated;
        }
        self.entities[e].level = group;
        for above in self.family(e).into_iter().skip(1) {
            self.entities[above].allocated += allocated;
        }
        if self.queues[q].busy {
            self.activate_up(e, false, false);
        }
    }

    pub(super) fn remove_group(&mut self, cx: &Cx<'_>, group: u32) {
        for (key, q) in std::mem::take(&mut self.shared) {
            if key.0 == group {
                self.queues[q].users -= 1;
            } else {
                self.shared.insert(key, q);
            }
        }
        let inside = |q: &usize| self.entity(*q).level == group && self.lives(*q);
        let inside: Vec<usize> = (0..self.queues.len()).filter(inside).collect();
        inside.into_iter().for_each(|q| self.move_queue(cx, q, 0));
    }

    /// A process uses it no more.
    fn let_go(&mut self, q: usize) {
        let queue = &self.queues[q];
        if queue.busy && queue.fifo.is_empty() && self.serving != Some(q) {
            self.leave_busy(q, false);
        }
        self.queues[q].users -= 1;
    }

    // Rule bfq-exit

    pub(super) fn exit_process(&mut self, process: u32) {
        let Some(Process { sync, asyncs, .. }) = self.processes.remove(&process) else { return };
        for q in [sync, asyncs].into_iter().flatten() {
            if self.queues[q].owner == Some(process) {
                self.queues[q].owner = None;
            }
            if self.serving == Some(q) {
                self.give_up(q, false);
            }
            self.let_go(q);
        }
    }

    pub(super) fn forget_request(&mut self, rq: RequestId) {
        let Rq { queue, process, .. } = self.requests[&rq];
        for e in self.family(self.queues[queue].e) {
            self.entities[e].allocated -= 1;
        }
        if let Some(process) = self.processes.get_mut(&process) {
            process.requests -= 1;
        }
        self.requests.remove(&rq);
    }

    // Rule bfq-charge

    /// How deep a bio may go, where `full` is the depth that the kernel counts from.
    pub(super) fn depth_of(&self, bio: &Bio, is_read: bool, full: i64, all: i64) -> Option<i64> {
        // Of `async_depth` four thirds as much, as that is three quarters of all.
        let (parts, of_async) = match (bio.is_sync(), self.raised_busy() > 0) {
            (false, false) => (8, (2, 3)),
            (true, false) => (12, (1, 1)),
            (false, true) => (3, (1, 4)),
            (true, true) => (6, (1, 2)),
        };
        let depth = match self.is_7_3 {
            true => self.full_depth * of_async.0 / of_async.1,
            false => self.full_depth * parts / 16,
        };
        let depth = depth.max(1);
        let depth = (!(bio.is_sync() && is_read)).then_some(depth);
        let first = depth.map_or(all, |depth| all * depth / full);
        if self.has_its_share(bio, first) { Some(1) } else { depth }
    }

    fn has_its_share(&self, bio: &Bio, first: i64) -> bool {
        let Some(known) = self.processes.get(&bio.origin.io_context.0) else { return false };
        let Some(q) = (if bio.is_sync() { known.sync } else { known.asyncs }) else { return false };
        let family = self.family(self.queues[q].e);
        if family.iter().any(|e| !self.entities[*e].on_st) {
            return false;
        }
        let mut limit = first;
        for e in family.into_iter().rev() {
            let entity = &self.entities[e];
            let trees = &self.levels[&entity.level].trees;
            let sum = match entity.inner {
                Some(_) => trees[entity.class].wsum,
                None => (RT..=entity.class).fold(0, |sum, class| 8 * sum + trees[class].wsum),
            };
            limit = (limit * entity.weight + sum / 2) / sum;
            if entity.allocated >= limit {
                return true;
            }
        }
        false
    }
}
