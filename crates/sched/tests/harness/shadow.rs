//! CFQ and its naive twin side by side: every answer is compared as it is given.

use super::naive_cfq::{Answer, NaiveCfq};
use base::Instant;
use block::scheduler::{Dispatched, HctxId, InsertAt, MayQueue, Merge};
use block::{About, Bio, CgroupId, ContextId, Cx, IoContextId, Kernel, RequestId, Scheduler};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// What the twin let go; the queue's events must say the same.
pub type Chosen = Arc<Mutex<VecDeque<RequestId>>>;

/// CFQ, watched by its twin.
pub struct Shadowed {
    real: Box<dyn Scheduler>,
    twin: NaiveCfq,
    chosen: Chosen,
}

impl Shadowed {
    /// A new CFQ with its twin.
    pub fn around(kernel: &'static Kernel, chosen: &Chosen) -> Box<dyn Scheduler> {
        let real = sched::build("cfq", kernel).expect("on its kernel").expect("not none");
        let (twin, chosen) = (NaiveCfq::new(kernel), Arc::clone(chosen));
        Box::new(Shadowed { real, twin, chosen })
    }

    fn compare(&self) {
        let timer = self.real.next_timer().map(|due| due.as_nanos() as i64);
        assert_eq!(timer, self.twin.timer, "the timer");
        assert_eq!(self.real.queued() as usize, self.twin.queued(), "requests in queues");
        assert_eq!(self.real.has_work(HctxId(0)), self.twin.busy() > 0, "somebody is busy");
    }
}

impl Scheduler for Shadowed {
    fn about(&self) -> &'static About {
        self.real.about()
    }

    fn get(&self, cx: &Cx<'_>, tunable: &str) -> i64 {
        self.real.get(cx, tunable)
    }

    fn set(&mut self, cx: &mut Cx<'_>, tunable: &str, value: i64) {
        self.twin.set(tunable, value);
        self.real.set(cx, tunable, value);
    }

    fn may_queue(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> MayQueue {
        let must = self.twin.may_queue(cx, bio);
        let answer = self.real.may_queue(cx, bio);
        assert_eq!(answer, if must { MayQueue::Must } else { MayQueue::May });
        answer
    }

    fn bind(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.twin.bind(cx, rq);
        self.real.bind(cx, rq);
        self.compare();
    }

    fn front_merge(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> Option<RequestId> {
        let found = self.real.front_merge(cx, bio);
        assert!(found.is_none_or(|rq| cx.request(rq).sector == bio.end()), "it starts there");
        found
    }

    fn allow_bio_merge(&mut self, cx: &mut Cx<'_>, rq: RequestId, bio: &Bio) -> bool {
        let allowed = self.real.allow_bio_merge(cx, rq, bio);
        assert_eq!(allowed, self.twin.allows(cx, rq, bio), "merging a bio");
        allowed
    }

    fn allow_request_merge(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) -> bool {
        let allowed = self.real.allow_request_merge(cx, rq, next);
        assert_eq!(allowed, self.twin.same_queue(rq, next), "merging requests");
        allowed
    }

    fn bio_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, bio: &Bio, merge: Merge) {
        if merge == Merge::Front {
            self.twin.moved(cx, rq);
        }
        self.real.bio_merged(cx, rq, bio, merge);
    }

    fn requests_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) {
        self.twin.joined(cx, rq, next);
        self.real.requests_merged(cx, rq, next);
        self.compare();
    }

    fn former(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        self.real.former(cx, rq)
    }

    fn latter(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        self.real.latter(cx, rq)
    }

    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, at: InsertAt) {
        self.twin.insert(cx, rq);
        self.real.insert(cx, rq, at);
        self.compare();
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>, hctx: HctxId, force: bool) -> Dispatched {
        let expected: Vec<RequestId> = match force {
            true => self.twin.drain(cx),
            false => match self.twin.dispatch(cx) {
                Answer::Issue(rq) => vec![rq],
                Answer::Nothing => Vec::new(),
            },
        };
        let answer = self.real.dispatch(cx, hctx, force);
        let left = match answer {
            Dispatched::Some(left) => left as usize,
            Dispatched::Hold(_) | Dispatched::Empty => 0,
        };
        assert_eq!(left, expected.len(), "{answer:?}, {}", self.real.describe(cx));
        self.chosen.lock().unwrap().extend(expected);
        self.compare();
        answer
    }

    fn activated(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.twin.activated(cx, rq);
        self.real.activated(cx, rq);
    }

    fn deactivated(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.twin.deactivated();
        self.real.deactivated(cx, rq);
    }

    fn completed(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.twin.completed(cx, rq);
        self.real.completed(cx, rq);
        self.compare();
    }

    fn finished(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.twin.finished(cx, rq);
        self.real.finished(cx, rq);
        self.compare();
    }

    fn next_timer(&self) -> Option<Instant> {
        self.real.next_timer()
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.twin.timer_fires(cx);
        self.real.timer(cx);
        self.compare();
    }

    fn io_context_exited(&mut self, cx: &mut Cx<'_>, io_context: IoContextId) {
        self.twin.exit(cx, io_context.0);
        self.real.io_context_exited(cx, io_context);
        self.compare();
    }

    fn cgroup_changed(&mut self, cx: &mut Cx<'_>, cgroup: CgroupId) {
        self.real.cgroup_changed(cx, cgroup);
    }

    fn cgroup_removed(&mut self, cx: &mut Cx<'_>, cgroup: CgroupId) {
        self.real.cgroup_removed(cx, cgroup);
    }

    fn attached(&mut self, cx: &mut Cx<'_>) {
        self.twin.attached(cx);
        self.real.attached(cx);
    }

    fn detached(&mut self, cx: &mut Cx<'_>) {
        self.twin.detached(cx);
        self.real.detached(cx);
    }

    fn waits_for(&self) -> Option<ContextId> {
        self.real.waits_for()
    }

    fn has_work(&self, hctx: HctxId) -> bool {
        self.real.has_work(hctx)
    }

    fn queued(&self) -> u32 {
        self.real.queued()
    }

    fn check(&self, cx: &Cx<'_>) {
        self.real.check(cx);
    }

    fn describe(&self, cx: &Cx<'_>) -> String {
        self.real.describe(cx)
    }
}
