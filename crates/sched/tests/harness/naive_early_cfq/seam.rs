//! The twin as whoever compares sees it (rules cfq-early-choose, cfq-early-bind, cfq-early-insert
//! and cfq-early-idle).

use super::super::shadow::Naive;
use super::*;

impl Naive for NaiveEarlyCfq {
    /// Nothing synchronous was done for a second, as 4.2 says of later kernels.
    fn attached(&mut self, cx: &Cx<'_>) {
        self.last_sync_end = self.now(cx) - self.hz;
    }

    fn detached(&mut self, cx: &Cx<'_>) {
        self.timer = None;
        if let Some(active) = self.active {
            self.expire(cx, active, false);
        }
    }

    fn set(&mut self, name: &str, value: i64) {
        let jiffies = (value * self.hz + 999) / 1_000;
        match name {
            "quantum" => self.quantum = value,
            "back_seek_max" => self.back_max = value,
            "back_seek_penalty" => self.penalty = value,
            "slice_async_rq" => self.async_rq = value,
            "low_latency" => self.low_latency = value != 0,
            "fifo_expire_sync" => self.fifo_expire[1] = jiffies,
            "fifo_expire_async" => self.fifo_expire[0] = jiffies,
            "slice_sync" => self.slice[1] = jiffies,
            "slice_async" => self.slice[0] = jiffies,
            "slice_idle" => self.slice_idle = jiffies,
            _ => panic!("no tunable {name}"),
        }
    }

    fn may_queue(&mut self, cx: &Cx<'_>, bio: &Bio) -> bool {
        let sync = if self.first { bio.flags.intersects(Flags::SYNC) } else { bio.is_sync() };
        let Some(q) = self.queue_of(bio.origin.io_context, sync) else { return false };
        self.init_prio(cx, q, bio.origin.io_context);
        let queue = &mut self.queues[q];
        let must = queue.wait_request && !queue.must_alloc;
        queue.must_alloc |= must;
        must
    }

    fn bind(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let (id, sync) = (cx.request(rq).origin.io_context, cx.request(rq).is_sync());
        let ioprio = cx.io_context(id).ioprio;
        let think = Think { last_end: self.now(cx), ..Think::default() };
        let fresh = Process { queues: [None; 2], think, seek: Seek::default(), ioprio };
        let process = self.processes.entry(id.0).or_insert(fresh);
        if process.ioprio != ioprio {
            process.ioprio = ioprio;
            let dropped = process.queues[0].take();
            if let Some(q) = process.queues[1] {
                self.queues[q].prio_changed = true;
            }
            if let Some(q) = dropped {
                self.put(cx, q);
            }
        }
        let q = self.queue_of(id, sync).unwrap_or_else(|| {
            let q = self.get_queue(cx, id, sync);
            self.processes.get_mut(&id.0).expect("it is").queues[usize::from(sync)] = Some(q);
            self.queues[q].refs += 1;
            q
        });
        self.queues[q].refs += 1;
        self.requests.insert(rq, Rq { queue: q, process: id.0, expires: 0, at: Sector(0) });
    }

    fn fronts(&self, _cx: &Cx<'_>, bio: &Bio) -> Vec<RequestId> {
        let q = self.queue_of(bio.origin.io_context, bio.is_sync());
        let own = q.map(|q| self.queues[q].fifo.clone()).unwrap_or_default();
        own.into_iter().filter(|rq| self.requests[rq].at == bio.end()).collect()
    }

    fn allows(&self, cx: &Cx<'_>, rq: RequestId, bio: &Bio) -> bool {
        let fits = !bio.is_sync() || cx.request(rq).is_sync();
        let own = self.queue_of(bio.origin.io_context, bio.is_sync());
        fits && own == Some(self.requests[&rq].queue)
    }

    fn allows_join(&self, rq: RequestId, next: RequestId) -> bool {
        self.requests[&rq].queue == self.requests[&next].queue
    }

    fn moved(&mut self, cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId> {
        self.add(cx, rq)
    }

    fn joined(&mut self, cx: &Cx<'_>, rq: RequestId, next: RequestId) {
        let q = self.requests[&next].queue;
        if !self.queues[q].fifo.contains(&next) {
            return;
        }
        let expires = self.requests[&next].expires;
        if self.queues[q].fifo.contains(&rq) && expires < self.requests[&rq].expires {
            self.queues[q].fifo.retain(|it| *it != rq);
            let at = self.queues[q].fifo.iter().position(|it| *it == next).expect("queued");
            self.queues[q].fifo.insert(at, rq);
            self.requests.get_mut(&rq).expect("bound").expires = expires;
        }
        self.remove(cx, next, None);
    }

    fn sorted(&self, _cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId> {
        self.by_sector(self.requests[&rq].queue)
    }

    fn insert(&mut self, cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId> {
        let (q, process) = (self.requests[&rq].queue, self.requests[&rq].process);
        self.init_prio(cx, q, IoContextId(process));
        let request = cx.request(rq);
        let allocated = request.allocated_at.as_nanos() as i64 / self.tick;
        let expires = allocated + self.fifo_expire[usize::from(self.queues[q].sync)];
        self.requests.get_mut(&rq).expect("bound").expires = expires;
        self.queues[q].fifo.push(rq);
        let left = self.add(cx, rq);
        self.note_arrival(cx, rq);
        self.update_idle_window(cx, rq);
        if self.active == Some(q) {
            if self.queues[q].wait_request {
                if self.first || request.sectors.0 > 8 || self.busy() > 1 {
                    self.timer = None;
                }
                self.queues[q].must_dispatch = !self.first;
            }
        } else if self.should_preempt(cx, q, rq) {
            let active = self.active.expect("somebody is preempted");
            self.expire(cx, active, true);
            let first = self.first_in_tree().expect("the new one is in it");
            let key = self.queues[first].place.expect("in the tree").1 - self.hz;
            self.put_at(q, if self.first { 0 } else { key });
            self.queues[q].slice_end = 0;
            self.queues[q].slice_new = true;
        }
        left
    }

    fn dispatch(&mut self, cx: &Cx<'_>) -> Vec<RequestId> {
        match (self.busy(), self.first) {
            (0, _) => Vec::new(),
            (_, true) => self.dispatch_rounds(cx),
            (_, false) => self.dispatch_one(cx),
        }
    }

    fn drain(&mut self, cx: &Cx<'_>) -> Vec<RequestId> {
        let mut left = Vec::new();
        while let Some(q) = self.first_in_tree() {
            while let Some(next) = self.queues[q].next {
                self.let_go(cx, next, None);
                left.push(next);
            }
        }
        if let Some(active) = self.active.filter(|_| !left.is_empty()) {
            self.expire(cx, active, false);
        }
        left
    }

    fn activated(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let q = self.requests[&rq].queue;
        self.in_driver[usize::from(self.queues[q].sync)] += 1;
        self.last_position = sector(cx.request(rq).end());
    }

    fn deactivated(&mut self, rq: RequestId) {
        let q = self.requests[&rq].queue;
        self.in_driver[usize::from(self.queues[q].sync)] -= 1;
    }

    fn completed(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let (q, process) = (self.requests[&rq].queue, self.requests[&rq].process);
        let now = self.now(cx);
        self.estimate_depth();
        self.queues[q].dispatched -= 1;
        let sync = self.queues[q].sync;
        self.in_driver[usize::from(sync)] -= 1;
        self.sync_flight -= i64::from(sync);
        let is_sync = cx.request(rq).is_sync();
        if is_sync {
            self.last_sync_end = now;
            if let Some(process) = self.processes.get_mut(&process) {
                process.think.last_end = now;
            }
        }
        if self.active != Some(q) {
            return;
        }
        if std::mem::take(&mut self.queues[q].slice_new) {
            self.queues[q].slice_end = now + self.turn(q);
        }
        if self.used(cx, q) || self.queues[q].class == IDLE {
            self.expire(cx, q, true);
        } else if is_sync && self.queues[q].fifo.is_empty() {
            self.arm(cx, q);
        }
    }

    fn finished(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let queue = self.requests.remove(&rq).expect("it was bound").queue;
        self.put(cx, queue);
    }

    fn timer(&self) -> Option<i64> {
        self.timer.map(|due| due * self.tick)
    }

    /// Rule cfq-early-idle-3; 2.6.32 as rules cfq-idle-6 and cfq-idle-7 where a request of the
    /// waiting queue came.
    fn timer_fires(&mut self, cx: &Cx<'_>) {
        self.timer = None;
        let Some(q) = self.active else { return };
        if self.queues[q].must_dispatch {
            return;
        }
        let others = self.busy() > 0 && self.queues[q].fifo.is_empty();
        if self.used(cx, q) || others {
            self.expire(cx, q, false);
        }
    }

    fn exit(&mut self, cx: &Cx<'_>, io_context: u32) {
        let Some(gone) = self.processes.remove(&io_context) else { return };
        for q in gone.queues.into_iter().flatten() {
            if self.active == Some(q) {
                self.expire(cx, q, false);
            }
            self.put(cx, q);
        }
    }

    fn queued(&self) -> usize {
        self.queues.iter().map(|queue| queue.fifo.len()).sum()
    }

    fn has_work(&self) -> bool {
        self.busy() > 0
    }
}
