//! A scheduler and its naive twin side by side: every answer is compared, and the bounds that the
//! scheduler promises are counted.

use super::twin::{Choice, Seen, Twin, twin_of};
use base::{Instant, Jiffies};
use block::scheduler::{Dispatched, HctxId, InsertAt, MayQueue, Merge};
use block::{
    About, Bio, CgroupId, ContextId, Cx, Direction, IoContextId, Kernel, Op, RequestId, Scheduler,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// What the test and the watched scheduler share.
#[derive(Default)]
pub struct Notes {
    /// What the twin chose; the queue's events must say the same.
    pub chosen: VecDeque<RequestId>,
    /// What the twin would do next, in the state after the last call.
    pub twin: Option<Box<dyn Twin>>,
}

/// Notes, shared.
pub type SharedNotes = Arc<Mutex<Notes>>;

/// A scheduler under observation.
pub struct Watched {
    real: Box<dyn Scheduler>,
    notes: SharedNotes,
    /// Requests held, by id: what was inserted and did not leave.
    held: BTreeMap<RequestId, Direction>,
    /// Read batches started since a write has been waiting without a batch of writes.
    passed_over: i64,
    /// The largest number allowed, where the scheduler promises one.
    bound: Option<i64>,
    hz: base::Hz,
}

impl Watched {
    /// A new scheduler, watched, with its twin.
    pub fn around(
        name: &str,
        kernel: &'static Kernel,
        nr_requests: u32,
        notes: &SharedNotes,
    ) -> Box<dyn Scheduler> {
        let real = sched::build(name, kernel).expect("on this kernel").expect("not none");
        notes.lock().unwrap().twin = Some(twin_of(name, kernel, nr_requests));
        let has_classes = real.about().tunables.iter().any(|t| t.name == "prio_aging_expire");
        let bound = real.about().tunables.iter().find(|t| t.name == "writes_starved");
        Box::new(Watched {
            real,
            notes: Arc::clone(notes),
            held: BTreeMap::new(),
            passed_over: 0,
            // With classes the count is shared, and the look of ageing at other classes moves it.
            bound: bound.filter(|_| !has_classes).and_then(|tunable| tunable.default),
            hz: kernel.hz,
        })
    }

    fn twin<R>(&self, call: impl FnOnce(&mut dyn Twin) -> R) -> R {
        let mut notes = self.notes.lock().unwrap();
        call(&mut **notes.twin.as_mut().expect("a twin"))
    }

    fn jiffies(&self, cx: &Cx<'_>) -> Jiffies {
        cx.now.jiffies(self.hz)
    }

    /// The promise of `writes_starved`.
    fn count_batches(&mut self, choice: Choice) {
        let direction = self.held.remove(&choice.rq).expect("held");
        let writes_wait = self.held.values().any(|held| *held == Direction::Write);
        match choice.starts_batch {
            Some(Direction::Read) if writes_wait => self.passed_over += 1,
            Some(Direction::Write) => self.passed_over = 0,
            _ => {}
        }
        if !writes_wait && direction == Direction::Read {
            self.passed_over = 0;
        }
        if let Some(bound) = self.bound {
            let bound = bound.max(0);
            assert!(
                self.passed_over <= bound,
                "writes were passed over {} times",
                self.passed_over
            );
        }
    }
}

impl Scheduler for Watched {
    fn about(&self) -> &'static About {
        self.real.about()
    }

    fn get(&self, cx: &Cx<'_>, tunable: &str) -> i64 {
        self.real.get(cx, tunable)
    }

    fn set(&mut self, cx: &mut Cx<'_>, tunable: &str, value: i64) {
        self.real.set(cx, tunable, value);
        let unit = self.about().tunables.iter().find(|t| t.name == tunable).expect("known").unit;
        let stored = match unit {
            "ms" => self.hz.jiffies_from_millis(value as u64).0 as i64,
            _ => value,
        };
        self.twin(|twin| twin.set(tunable, stored));
        if tunable == "writes_starved" {
            // The count so far was made under another bound. A negative one is huge.
            self.bound = self.bound.map(|_| i64::from(value as u32).max(self.passed_over));
        }
    }

    fn may_queue(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> MayQueue {
        self.real.may_queue(cx, bio)
    }

    fn limit_depth(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> Option<u32> {
        let limit = self.real.limit_depth(cx, bio);
        let expected = match bio.op {
            Op::Read => None,
            _ => self.twin(|twin| twin.write_depth(cx.limits().nr_requests)),
        };
        assert_eq!(limit, expected, "depth for {bio:?}");
        limit
    }

    fn min_depth(&self, cx: &Cx<'_>) -> Option<u32> {
        self.real.min_depth(cx)
    }

    fn bio_submitted(&mut self, cx: &mut Cx<'_>, bio: &Bio) {
        self.real.bio_submitted(cx, bio);
    }

    fn bind(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.real.bind(cx, rq);
    }

    fn front_merge(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> Option<RequestId> {
        let found = self.real.front_merge(cx, bio);
        let possible =
            self.twin(|twin| twin.starting_at(bio.direction(), bio.ioprio.class, bio.end()));
        // Which of several hangs on the shape of a tree, which the twin has not.
        assert_eq!(found.is_some(), !possible.is_empty(), "front merge of {bio:?}");
        assert!(found.is_none_or(|rq| possible.contains(&rq)), "front merge of {bio:?}");
        found
    }

    fn recent(&self, bio: &Bio) -> Option<&VecDeque<RequestId>> {
        self.real.recent(bio)
    }

    fn allow_bio_merge(&mut self, cx: &mut Cx<'_>, rq: RequestId, bio: &Bio) -> bool {
        self.real.allow_bio_merge(cx, rq, bio)
    }

    fn allow_request_merge(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) -> bool {
        self.real.allow_request_merge(cx, rq, next)
    }

    fn bio_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, bio: &Bio, merge: Merge) {
        self.real.bio_merged(cx, rq, bio, merge);
        if merge == Merge::Front {
            self.twin(|twin| twin.moved(rq, cx.request(rq).sector));
        }
    }

    fn requests_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) {
        self.real.requests_merged(cx, rq, next);
        self.twin(|twin| twin.joined(rq, next));
        self.held.remove(&next);
    }

    fn former(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        let former = self.real.former(cx, rq);
        assert_eq!(former, self.twin(|twin| twin.neighbours(rq)).0, "request before {rq:?}");
        former
    }

    fn latter(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        let latter = self.real.latter(cx, rq);
        assert_eq!(latter, self.twin(|twin| twin.neighbours(rq)).1, "request behind {rq:?}");
        latter
    }

    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, at: InsertAt) {
        self.real.insert(cx, rq, at);
        let request = cx.request(rq);
        let seen = Seen {
            rq,
            sector: request.sector,
            direction: request.direction(),
            class: request.ioprio.class,
            at_head: at == InsertAt::Head,
        };
        let now = self.jiffies(cx);
        self.held.insert(rq, seen.direction);
        if let Some(alias) = self.twin(|twin| twin.insert(now, seen)) {
            self.held.remove(&alias);
            self.notes.lock().unwrap().chosen.push_back(alias);
        }
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>, hctx: HctxId, force: bool) -> Dispatched {
        let answer = self.real.dispatch(cx, hctx, force);
        let now = self.jiffies(cx);
        let choice = self.twin(|twin| twin.dispatch(now));
        let state = || self.real.describe(cx);
        match (answer, choice) {
            (Dispatched::Some(1), Some(choice)) => {
                self.notes.lock().unwrap().chosen.push_back(choice.rq);
                self.count_batches(choice);
            }
            (Dispatched::Hold(_), None) => assert!(!self.held.is_empty(), "{}", state()),
            (Dispatched::Empty, None) => assert!(self.held.is_empty(), "{}", state()),
            _ => panic!("{answer:?}, but the twin says {choice:?}: {}", state()),
        }
        answer
    }

    fn activated(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.real.activated(cx, rq);
    }

    fn deactivated(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.real.deactivated(cx, rq);
    }

    fn requeued(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.real.requeued(cx, rq);
    }

    fn completed(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.real.completed(cx, rq);
    }

    fn finished(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.real.finished(cx, rq);
        self.twin(|twin| twin.finished(rq));
    }

    fn next_timer(&self) -> Option<Instant> {
        self.real.next_timer()
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.real.timer(cx);
    }

    fn io_context_exited(&mut self, cx: &mut Cx<'_>, io_context: IoContextId) {
        self.real.io_context_exited(cx, io_context);
    }

    fn cgroup_changed(&mut self, cx: &mut Cx<'_>, cgroup: CgroupId) {
        self.real.cgroup_changed(cx, cgroup);
    }

    fn cgroup_removed(&mut self, cx: &mut Cx<'_>, cgroup: CgroupId) {
        self.real.cgroup_removed(cx, cgroup);
    }

    fn attached(&mut self, cx: &mut Cx<'_>) {
        self.real.attached(cx);
    }

    fn detached(&mut self, cx: &mut Cx<'_>) {
        self.real.detached(cx);
    }

    fn depth_changed(&mut self, cx: &mut Cx<'_>) {
        self.real.depth_changed(cx);
        let requests = i64::from(cx.limits().nr_requests);
        if self.about().tunables.iter().any(|tunable| tunable.name == "async_depth") {
            self.twin(|twin| twin.depth_changed(requests));
        }
    }

    fn has_work(&self, hctx: HctxId) -> bool {
        let has_work = self.real.has_work(hctx);
        assert_eq!(has_work, !self.held.is_empty(), "has work");
        has_work
    }

    fn waits_for(&self) -> Option<ContextId> {
        self.real.waits_for()
    }

    fn queued(&self) -> u32 {
        let queued = self.real.queued();
        assert_eq!(queued as usize, self.held.len(), "requests held");
        queued
    }

    fn check(&self, cx: &Cx<'_>) {
        self.real.check(cx);
    }

    fn describe(&self, cx: &Cx<'_>) -> String {
        self.real.describe(cx)
    }
}
