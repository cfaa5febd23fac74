//! The twin as whoever compares sees it.

use super::super::shadow::Naive;
use super::{MS, NaiveBfq, Rate};
use block::kernel::ShallowDepth;
use block::tags::bits_per_word;
use block::{Bio, Cx, Op, RequestId};

impl Naive for NaiveBfq {
    fn attached(&mut self, cx: &Cx<'_>) {
        self.look_at_clock(cx);
        self.rotational = cx.limits().facts.rotational;
        self.queueing = !self.rotational;
        let reference = if self.rotational { 14_000 } else { 33_000 };
        self.rate = Rate { peak: 2 * reference / 3, ..Rate::default() };
        self.depth_changed(cx);
        if self.is_7_3 {
            // What it has counts only from the first change on: first counts what `none` had.
            self.async_depth = (self.nr_requests * 3 / 4).max(1);
            self.full_depth = i64::from(cx.limits().facts.queue_depth).min(self.nr_requests);
        }
    }

    fn depth_changed(&mut self, cx: &Cx<'_>) {
        let before = core::mem::replace(&mut self.nr_requests, cx.limits().nr_requests.into());
        if !self.is_7_3 {
            self.full_depth = full_depth(cx);
        } else if self.nr_requests != before && before > 0 {
            self.set("async_depth", self.async_depth * self.nr_requests / before);
        }
    }

    fn detached(&mut self, _cx: &Cx<'_>) {
        self.timer = None;
    }

    fn set(&mut self, name: &str, value: i64) {
        match name {
            "async_depth" => {
                self.async_depth = value.clamp(1, self.nr_requests);
                self.full_depth = self.async_depth;
            }
            "fifo_expire_sync" => self.fifo_expire[1] = value * MS,
            "fifo_expire_async" => self.fifo_expire[0] = value * MS,
            "back_seek_max" => self.back_max = value as u64,
            "back_seek_penalty" => self.penalty = value as u64,
            "slice_idle" => self.slice_idle = value * MS,
            "slice_idle_us" => self.slice_idle = value * 1_000,
            "max_budget" => {
                self.max_budget_set = value;
                self.max_budget = value;
                self.tune_max_budget();
            }
            "timeout_sync" => {
                self.timeout = self.ms(value);
                self.tune_max_budget();
            }
            "strict_guarantees" => {
                self.strict = value != 0;
                if self.strict {
                    self.slice_idle = self.slice_idle.max(8 * MS);
                }
            }
            "low_latency" => {
                if self.low_latency && value == 0 {
                    let raised: Vec<usize> =
                        (0..self.queues.len()).filter(|q| self.is_raised(*q)).collect();
                    raised.into_iter().for_each(|q| self.end_raising(q));
                }
                self.low_latency = value != 0;
            }
            _ => panic!("no tunable {name}"),
        }
    }

    fn look_at_time(&mut self, cx: &Cx<'_>) {
        self.look_at_clock(cx);
    }

    fn may_queue(&mut self, _cx: &Cx<'_>, _bio: &Bio) -> bool {
        false
    }

    fn depth(&mut self, cx: &Cx<'_>, bio: &Bio) -> Option<u32> {
        let all = cx.limits().nr_requests;
        let depth = self.depth_of(bio, bio.op == Op::Read, full_depth(cx), all.into());
        depth.map(|depth| depth as u32)
    }

    fn submitted(&mut self, cx: &Cx<'_>, bio: &Bio) {
        self.look_at_group(cx, bio.origin.io_context.0, bio.origin.cgroup.0);
    }

    fn bind(&mut self, cx: &Cx<'_>, rq: RequestId) {
        self.levels.entry(0).or_default();
        self.bind_request(cx, rq);
    }

    fn fronts(&self, _cx: &Cx<'_>, bio: &Bio) -> Vec<RequestId> {
        let Some(known) = self.processes.get(&bio.origin.io_context.0) else { return Vec::new() };
        let Some(q) = (if bio.is_sync() { known.sync } else { known.asyncs }) else {
            return Vec::new();
        };
        let starts = |rq: &&RequestId| self.requests[*rq].at.0 == bio.end().0;
        self.queues[q].fifo.iter().filter(starts).copied().collect()
    }

    fn allows(&self, cx: &Cx<'_>, rq: RequestId, bio: &Bio) -> bool {
        let Some(known) = self.processes.get(&bio.origin.io_context.0) else { return false };
        let q = if bio.is_sync() { known.sync } else { known.asyncs };
        let fits = !bio.is_sync() || cx.request(rq).is_sync();
        fits && q == Some(self.requests[&rq].queue)
    }

    fn allows_join(&self, _rq: RequestId, _next: RequestId) -> bool {
        // Whosever they are. (Observed.)
        true
    }

    fn moved(&mut self, cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId> {
        self.moved_ahead(cx, rq);
        Vec::new()
    }

    fn joined(&mut self, cx: &Cx<'_>, rq: RequestId, next: RequestId) {
        self.join_requests(cx, rq, next);
    }

    fn sorted(&self, _cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId> {
        self.by_sector(self.requests[&rq].queue)
    }

    fn insert(&mut self, cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId> {
        self.insert_request(cx, rq);
        Vec::new()
    }

    fn insert_at_head(&mut self, _cx: &Cx<'_>, rq: RequestId) {
        self.heads.insert(0, rq);
    }

    fn dispatch(&mut self, cx: &Cx<'_>) -> Vec<RequestId> {
        self.dispatch_one(cx).into_iter().collect()
    }

    fn drain(&mut self, cx: &Cx<'_>) -> Vec<RequestId> {
        self.dispatch(cx)
    }

    fn activated(&mut self, _cx: &Cx<'_>, _rq: RequestId) {}

    fn deactivated(&mut self, _rq: RequestId) {}

    fn completed(&mut self, _cx: &Cx<'_>, _rq: RequestId) {}

    fn finished(&mut self, cx: &Cx<'_>, rq: RequestId) {
        if self.requests[&rq].started {
            self.complete(cx, rq);
        }
        self.forget_request(rq);
    }

    fn timer(&self) -> Option<i64> {
        self.timer
    }

    fn timer_fires(&mut self, cx: &Cx<'_>) {
        self.timer_fired(cx);
    }

    fn exit(&mut self, _cx: &Cx<'_>, io_context: u32) {
        self.exit_process(io_context);
    }

    fn group_removed(&mut self, cx: &Cx<'_>, group: u32) {
        if self.levels.contains_key(&group) {
            self.remove_group(cx, group);
        }
    }

    fn group_weighed(&mut self, cx: &Cx<'_>, group: u32) {
        self.weigh(cx, group);
    }

    fn queued(&self) -> usize {
        self.heads.len() + self.queues.iter().map(|queue| queue.fifo.len()).sum::<usize>()
    }

    fn has_work(&self) -> bool {
        Naive::queued(self) > 0
    }

    fn states(&self, cx: &Cx<'_>) -> Vec<String> {
        let name = |q: usize| self.queues[q].name.clone();
        let served = self.serving.map_or_else(|| String::from("nobody"), name);
        let mut said = vec![format!(
            "{} raised, {} queued, {} in the driver, in service {served}",
            self.raised_busy(),
            self.queues.iter().map(|queue| queue.fifo.len()).sum::<usize>(),
            self.in_driver
        )];
        for q in self.busy() {
            let (queue, entity) = (&self.queues[q], self.entity(q));
            said.push(format!(
                "{} {} queued, {} dispatched, next {:?}, budget {} of {}, weight {}, {} to {}",
                queue.name,
                queue.fifo.len(),
                queue.dispatched,
                queue.next.map(|rq| cx.request(rq).sector.0),
                entity.service,
                entity.budget,
                entity.weight,
                entity.start,
                entity.finish
            ));
        }
        said
    }
}

/// Tags of a word, or of all.
fn full_depth(cx: &Cx<'_>) -> i64 {
    let all = cx.limits().nr_requests;
    match cx.kernel().multi.expect("a kernel with blk-mq").shallow {
        ShallowDepth::WholeMap => all.into(),
        ShallowDepth::PerWord => bits_per_word(all).into(),
    }
}
