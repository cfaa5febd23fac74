//! A scheduler that knows processes, or Kyber, and its naive twin side by side: every answer is
//! compared as it is given.

use super::naive_anticipatory::NaiveAnticipatory;
use super::naive_bfq::NaiveBfq;
use super::naive_cfq::NaiveCfq;
use super::naive_early_cfq::NaiveEarlyCfq;
use super::naive_kyber::NaiveKyber;
use base::Instant;
use block::scheduler::{Dispatched, HctxId, InsertAt, MayQueue, Merge};
use block::{
    About, Bio, CgroupId, ContextId, Cx, IoContextId, Kernel, RequestId, Scheduler, Shape, Version,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// What the twin let go; the queue's events must say the same.
pub type Chosen = Arc<Mutex<VecDeque<RequestId>>>;

/// A scheduler written down once more, after the text of the specification and as slow as that is
/// written. What leaves is given in the order in which it leaves.
pub trait Naive {
    fn attached(&mut self, _cx: &Cx<'_>) {}
    fn detached(&mut self, cx: &Cx<'_>);
    /// There are more or fewer tags.
    fn depth_changed(&mut self, _cx: &Cx<'_>) {}
    fn set(&mut self, name: &str, value: i64);
    /// A hook begins.
    fn look_at_time(&mut self, _cx: &Cx<'_>) {}
    /// Whether a bio is allocated a request beyond the limit.
    fn may_queue(&mut self, cx: &Cx<'_>, bio: &Bio) -> bool;
    /// How many tags a bio may use, if that is limited.
    fn depth(&mut self, _cx: &Cx<'_>, _bio: &Bio) -> Option<u32> {
        None
    }
    fn submitted(&mut self, _cx: &Cx<'_>, _bio: &Bio) {}
    fn bind(&mut self, cx: &Cx<'_>, rq: RequestId);
    /// Requests that a bio is compared with, newest first, where that is not the elevator's search;
    /// none if it touches none of those.
    fn recent(&self, _bio: &Bio) -> Vec<RequestId> {
        Vec::new()
    }
    /// Requests that a bio may be put in front of, by the elevator's own search.
    fn fronts(&self, cx: &Cx<'_>, bio: &Bio) -> Vec<RequestId>;
    fn allows(&self, _cx: &Cx<'_>, _rq: RequestId, _bio: &Bio) -> bool {
        true
    }
    fn allows_join(&self, _rq: RequestId, _next: RequestId) -> bool {
        true
    }
    fn moved(&mut self, cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId>;
    fn joined(&mut self, cx: &Cx<'_>, rq: RequestId, next: RequestId);
    /// The requests by sector among which a queued one has its neighbours.
    fn sorted(&self, cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId>;
    fn insert(&mut self, cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId>;
    /// A request that was given back.
    fn insert_at_head(&mut self, _cx: &Cx<'_>, _rq: RequestId) {
        panic!("nothing is inserted at the head")
    }
    fn dispatch(&mut self, cx: &Cx<'_>) -> Vec<RequestId>;
    fn drain(&mut self, cx: &Cx<'_>) -> Vec<RequestId>;
    fn activated(&mut self, cx: &Cx<'_>, rq: RequestId);
    fn deactivated(&mut self, rq: RequestId);
    fn completed(&mut self, cx: &Cx<'_>, rq: RequestId);
    /// A flush sequence is over.
    fn flushed(&mut self, _cx: &Cx<'_>, _since: Instant, _has_data: bool) {}
    fn finished(&mut self, cx: &Cx<'_>, rq: RequestId);
    /// When the timer is due, in nanoseconds.
    fn timer(&self) -> Option<i64>;
    fn timer_fires(&mut self, cx: &Cx<'_>);
    fn exit(&mut self, cx: &Cx<'_>, io_context: u32);
    fn group_removed(&mut self, _cx: &Cx<'_>, _group: u32) {}
    fn group_weighed(&mut self, _cx: &Cx<'_>, _group: u32) {}
    fn queued(&self) -> usize;
    fn has_work(&self) -> bool;
    /// Part of what the scheduler says of its state.
    fn describes(&self) -> Option<String> {
        None
    }
    /// The same, in several parts.
    fn states(&self, _cx: &Cx<'_>) -> Vec<String> {
        Vec::new()
    }
}

/// The twin of a scheduler on a kernel.
fn twin_of(name: &str, kernel: &Kernel) -> Box<dyn Naive> {
    match name {
        "anticipatory" => Box::new(NaiveAnticipatory::new(kernel)),
        "bfq" => Box::new(NaiveBfq::new(kernel)),
        "cfq" if kernel.version <= Version::V2_6_32 => Box::new(NaiveEarlyCfq::new(kernel)),
        "cfq" => Box::new(NaiveCfq::new(kernel)),
        "kyber" => Box::new(NaiveKyber::new(kernel)),
        _ => panic!("{name} has no such twin"),
    }
}

/// A scheduler, watched by its twin.
pub struct Shadowed {
    real: Box<dyn Scheduler>,
    twin: Box<dyn Naive>,
    chosen: Chosen,
}

impl Shadowed {
    /// A new scheduler with its twin.
    pub fn around(name: &str, kernel: &'static Kernel, chosen: &Chosen) -> Box<dyn Scheduler> {
        let real = sched::build(name, kernel).expect("on its kernel").expect("not none");
        let (twin, chosen) = (twin_of(name, kernel), Arc::clone(chosen));
        Box::new(Shadowed { real, twin, chosen })
    }

    fn compare(&self, cx: &Cx<'_>) {
        let timer = self.real.next_timer().map(|due| due.as_nanos() as i64);
        assert_eq!(timer, self.twin.timer(), "the timer");
        assert_eq!(self.real.queued() as usize, self.twin.queued(), "requests in queues");
        assert_eq!(self.real.has_work(HctxId(0)), self.twin.has_work(), "somebody is busy");
        let parts = self.twin.describes().into_iter().chain(self.twin.states(cx));
        let mut state = None;
        for said in parts {
            let state = state.get_or_insert_with(|| self.real.describe(cx));
            assert!(state.contains(&said), "{said} is not in {state}");
        }
    }

    fn is_multi(&self) -> bool {
        self.real.about().shape == Shape::Multi
    }

    fn note(&self, left: Vec<RequestId>) {
        self.chosen.lock().unwrap().extend(left);
    }

    /// The neighbour of a queued request `step` further by sector.
    fn neighbour(&self, cx: &Cx<'_>, rq: RequestId, step: isize) -> Option<RequestId> {
        let sorted = self.twin.sorted(cx, rq);
        let at = sorted.iter().position(|it| *it == rq)?;
        sorted.get(at.checked_add_signed(step)?).copied()
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
        self.twin.look_at_time(cx);
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
        self.twin.look_at_time(cx);
        self.twin.bind(cx, rq);
        self.real.bind(cx, rq);
        self.compare(cx);
    }

    fn front_merge(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> Option<RequestId> {
        let (found, expected) = (self.real.front_merge(cx, bio), self.twin.fronts(cx, bio));
        assert_eq!(found.is_some(), !expected.is_empty(), "front merge of {bio:?}");
        assert!(found.is_none_or(|rq| expected.contains(&rq)), "front merge of {bio:?}");
        found
    }

    fn recent(&self, bio: &Bio) -> Option<&VecDeque<RequestId>> {
        let found = self.real.recent(bio);
        let newest: Vec<_> = found.iter().flat_map(|list| list.iter().rev().copied()).collect();
        assert_eq!(newest, self.twin.recent(bio), "before {bio:?}");
        found
    }

    fn allow_bio_merge(&mut self, cx: &mut Cx<'_>, rq: RequestId, bio: &Bio) -> bool {
        let allowed = self.real.allow_bio_merge(cx, rq, bio);
        assert_eq!(allowed, self.twin.allows(cx, rq, bio), "merging a bio");
        allowed
    }

    fn allow_request_merge(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) -> bool {
        let allowed = self.real.allow_request_merge(cx, rq, next);
        assert_eq!(allowed, self.twin.allows_join(rq, next), "merging requests");
        allowed
    }

    fn bio_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, bio: &Bio, merge: Merge) {
        self.twin.look_at_time(cx);
        if merge == Merge::Front {
            let left = self.twin.moved(cx, rq);
            self.note(left);
        }
        self.real.bio_merged(cx, rq, bio, merge);
        self.compare(cx);
    }

    fn requests_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) {
        self.twin.look_at_time(cx);
        self.twin.joined(cx, rq, next);
        self.real.requests_merged(cx, rq, next);
        self.compare(cx);
    }

    fn former(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        let former = self.real.former(cx, rq);
        assert_eq!(former, self.neighbour(cx, rq, -1), "the request before {rq:?}");
        former
    }

    fn latter(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        let latter = self.real.latter(cx, rq);
        assert_eq!(latter, self.neighbour(cx, rq, 1), "the request behind {rq:?}");
        latter
    }

    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, at: InsertAt) {
        self.twin.look_at_time(cx);
        match at {
            InsertAt::Head if self.is_multi() => self.twin.insert_at_head(cx, rq),
            _ => {
                let left = self.twin.insert(cx, rq);
                self.note(left);
            }
        }
        self.real.insert(cx, rq, at);
        self.compare(cx);
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>, hctx: HctxId, force: bool) -> Dispatched {
        self.twin.look_at_time(cx);
        let expected = if force { self.twin.drain(cx) } else { self.twin.dispatch(cx) };
        let answer = self.real.dispatch(cx, hctx, force);
        let left = match answer {
            Dispatched::Some(left) => left as usize,
            Dispatched::Hold(_) | Dispatched::Empty => 0,
        };
        assert_eq!(left, expected.len(), "{answer:?}, {}", self.real.describe(cx));
        self.note(expected);
        self.compare(cx);
        answer
    }

    fn activated(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.twin.activated(cx, rq);
        self.real.activated(cx, rq);
    }

    fn deactivated(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.twin.deactivated(rq);
        self.real.deactivated(cx, rq);
    }

    fn completed(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.twin.completed(cx, rq);
        self.real.completed(cx, rq);
        self.compare(cx);
    }

    fn flushed(&mut self, cx: &mut Cx<'_>, since: Instant, has_data: bool) {
        self.twin.flushed(cx, since, has_data);
        self.real.flushed(cx, since, has_data);
        self.compare(cx);
    }

    fn finished(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.twin.look_at_time(cx);
        self.twin.finished(cx, rq);
        self.real.finished(cx, rq);
        self.compare(cx);
    }

    fn next_timer(&self) -> Option<Instant> {
        self.real.next_timer()
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.twin.look_at_time(cx);
        self.twin.timer_fires(cx);
        self.real.timer(cx);
        self.compare(cx);
    }

    fn io_context_exited(&mut self, cx: &mut Cx<'_>, io_context: IoContextId) {
        self.twin.look_at_time(cx);
        self.twin.exit(cx, io_context.0);
        self.real.io_context_exited(cx, io_context);
        self.compare(cx);
    }

    fn limit_depth(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> Option<u32> {
        self.twin.look_at_time(cx);
        let expected = self.twin.depth(cx, bio);
        let depth = self.real.limit_depth(cx, bio);
        assert_eq!(depth, expected, "depth for {bio:?}");
        depth
    }

    fn depth_changed(&mut self, cx: &mut Cx<'_>) {
        self.twin.depth_changed(cx);
        self.real.depth_changed(cx);
    }

    fn min_depth(&self, cx: &Cx<'_>) -> Option<u32> {
        self.real.min_depth(cx)
    }

    fn bio_submitted(&mut self, cx: &mut Cx<'_>, bio: &Bio) {
        self.twin.look_at_time(cx);
        self.twin.submitted(cx, bio);
        self.real.bio_submitted(cx, bio);
        self.compare(cx);
    }

    fn requeued(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        if self.is_multi() {
            self.twin.look_at_time(cx);
            self.twin.finished(cx, rq);
        }
        self.real.requeued(cx, rq);
        self.compare(cx);
    }

    fn cgroup_changed(&mut self, cx: &mut Cx<'_>, cgroup: CgroupId) {
        self.twin.look_at_time(cx);
        self.twin.group_weighed(cx, cgroup.0);
        self.real.cgroup_changed(cx, cgroup);
    }

    fn cgroup_removed(&mut self, cx: &mut Cx<'_>, cgroup: CgroupId) {
        self.twin.look_at_time(cx);
        self.twin.group_removed(cx, cgroup.0);
        self.real.cgroup_removed(cx, cgroup);
        self.compare(cx);
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
