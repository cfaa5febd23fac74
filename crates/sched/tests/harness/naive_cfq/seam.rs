//! The twin as whoever compares sees it.

use super::super::shadow::Naive;
use super::*;

impl Naive for NaiveCfq {
    fn attached(&mut self, cx: &Cx<'_>) {
        self.last_delayed_sync = now(cx) - 1_000 * MS;
        self.rotational = cx.limits().facts.rotational;
        if !self.rotational {
            self.slice_idle = 0;
        }
    }

    fn detached(&mut self, cx: &Cx<'_>) {
        self.timer = None;
        if let Some(active) = self.active {
            self.expire(cx, active, false);
        }
    }

    fn set(&mut self, name: &str, value: i64) {
        let (base, unit) = match name.strip_suffix("_us") {
            Some(base) => (base, 1_000),
            None => (name, MS),
        };
        match base {
            "quantum" => self.quantum = value,
            "fifo_expire_sync" => self.fifo_expire[1] = value * unit,
            "fifo_expire_async" => self.fifo_expire[0] = value * unit,
            "back_seek_max" => self.back_max = value,
            "back_seek_penalty" => self.penalty = value,
            "slice_sync" => self.slice[1] = value * unit,
            "slice_async" => self.slice[0] = value * unit,
            "slice_async_rq" => self.async_rq = value,
            "slice_idle" => self.slice_idle = value * unit,
            "group_idle" => self.group_idle = value * unit,
            "low_latency" => self.low_latency = value != 0,
            "target_latency" => self.target = value * unit,
            _ => panic!("no tunable {name}"),
        }
    }

    fn may_queue(&mut self, cx: &Cx<'_>, bio: &Bio) -> bool {
        self.must_queue(cx, bio)
    }

    fn bind(&mut self, cx: &Cx<'_>, rq: RequestId) {
        self.bind_request(cx, rq);
    }

    fn fronts(&self, _cx: &Cx<'_>, bio: &Bio) -> Vec<RequestId> {
        let Some(q) = self.queue_of_bio(bio) else { return Vec::new() };
        let starts = |rq: &&RequestId| self.requests[*rq].at.0 == bio.end();
        self.queues[q].fifo.iter().filter(starts).copied().collect()
    }

    fn allows(&self, cx: &Cx<'_>, rq: RequestId, bio: &Bio) -> bool {
        let fits = !bio.is_sync() || cx.request(rq).is_sync();
        fits && self.queue_of_bio(bio) == Some(self.requests[&rq].queue)
    }

    fn allows_join(&self, rq: RequestId, next: RequestId) -> bool {
        self.requests[&rq].queue == self.requests[&next].queue
    }

    fn moved(&mut self, cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId> {
        let q = self.requests[&rq].queue;
        self.add(cx, q, rq);
        Vec::new()
    }

    fn joined(&mut self, cx: &Cx<'_>, rq: RequestId, next: RequestId) {
        self.join(cx, rq, next);
    }

    fn sorted(&self, _cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId> {
        self.by_sector(self.requests[&rq].queue)
    }

    fn insert(&mut self, cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId> {
        self.insert_request(cx, rq);
        Vec::new()
    }

    fn dispatch(&mut self, cx: &Cx<'_>) -> Vec<RequestId> {
        self.dispatch_one(cx).into_iter().collect()
    }

    fn drain(&mut self, cx: &Cx<'_>) -> Vec<RequestId> {
        self.drain_all(cx)
    }

    fn activated(&mut self, cx: &Cx<'_>, rq: RequestId) {
        self.in_driver += 1;
        self.last_position = cx.request(rq).end().0;
    }

    fn deactivated(&mut self, _rq: RequestId) {
        self.in_driver -= 1;
    }

    fn completed(&mut self, cx: &Cx<'_>, rq: RequestId) {
        self.complete(cx, rq);
    }

    fn finished(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let queue = self.requests.remove(&rq).expect("it was bound").queue;
        self.put(cx, queue);
    }

    fn timer(&self) -> Option<i64> {
        self.timer
    }

    fn timer_fires(&mut self, cx: &Cx<'_>) {
        self.timer_fired(cx);
    }

    fn exit(&mut self, cx: &Cx<'_>, io_context: u32) {
        let Some(mut gone) = self.processes.remove(&io_context) else { return };
        for q in gone.queues.iter_mut().filter_map(Option::take) {
            if self.active == Some(q) {
                self.expire(cx, q, false);
            }
            self.put(cx, q);
        }
    }

    /// The shared queues are nobody's any more; what is queued in them is served where it is.
    fn group_removed(&mut self, cx: &Cx<'_>, group: u32) {
        self.find_group(cx, group);
        let group = self.group(group);
        group.gone = true;
        for q in std::mem::take(&mut group.shared).into_values() {
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
