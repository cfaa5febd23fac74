//! deadline: a one-way elevator in batches that prefers reads and lets nobody wait for ever.
//!
//! The disk is swept upwards in batches of one direction. Between batches the directions are
//! weighed (reads first, but writes at least every third time) and the oldest request of the
//! chosen direction is looked at: if its deadline has passed, the sweep starts again there.
//!
//! Its rules are named where they are followed (rules deadline). Zoned devices are left out.

mod rules;

use crate::settings::{Settings, TUNABLES};
use crate::sorted_fifo::SortedFifo;
use crate::starvation::Starvation;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use block::scheduler::{Dispatched, HctxId, InsertAt, Merge, Placement};
use block::{
    About, Bio, Cx, Direction, DispatchReason, Kernel, MergeLookup, RequestId, Scheduler, Shape,
    SharedLock,
};
use rules::Rules;

/// What is fixed about deadline.
pub const ABOUT: About = About {
    name: "deadline",
    shape: Shape::Single,
    lock: SharedLock::All,
    lookup: MergeLookup::Index,
    summary: "sweeps the disk in batches, prefers reads, bounds waiting",
    tunables: &TUNABLES,
};

/// The deadline elevator.
#[derive(Clone)]
pub struct Deadline {
    rules: Rules,
    settings: Settings,
    /// By direction.
    directions: [SortedFifo; 2],
    /// By direction: where the sweep goes on. At most one is set after a dispatch.
    next: [Option<RequestId>; 2],
    /// Requests dispatched in the current batch.
    batching: i64,
    starvation: Starvation,
}

/// Where a batch starts, and why there.
struct Choice {
    rq: RequestId,
    direction: Direction,
    reason: DispatchReason,
}

impl Deadline {
    /// The elevator of `kernel` with default settings.
    pub fn new(kernel: &Kernel) -> Deadline {
        Deadline {
            rules: Rules::of(kernel),
            settings: Settings::new(kernel.hz),
            directions: [SortedFifo::default(), SortedFifo::default()],
            next: [None; 2],
            batching: 0,
            starvation: Starvation::default(),
        }
    }

    fn lane_of(&self, cx: &Cx<'_>, rq: RequestId) -> &SortedFifo {
        &self.directions[cx.request(rq).direction() as usize]
    }

    /// Rule deadline-5: a batch that is not full goes on, whatever has expired meanwhile.
    fn continued(&self) -> Option<Choice> {
        let candidates = [Direction::Write, Direction::Read];
        let (direction, rq) = candidates
            .into_iter()
            .find_map(|direction| Some((direction, self.next[direction as usize]?)))?;
        let open = self.batching < self.settings.fifo_batch;
        open.then_some(Choice { rq, direction, reason: DispatchReason::BatchContinues })
    }

    /// Rules deadline-6 and deadline-7: which direction, and where its batch starts.
    fn start_batch(&mut self, cx: &Cx<'_>) -> Option<Choice> {
        let [reads, writes] = &self.directions;
        let direction = self.starvation.choose(
            !reads.is_empty(),
            !writes.is_empty(),
            self.settings.writes_starved,
        )?;
        let requests = &self.directions[direction as usize];
        let oldest = requests.oldest().expect("a direction is chosen only if it has requests");
        let now = cx.now.jiffies(cx.kernel().hz);
        let (rq, reason) = match self.next[direction as usize] {
            _ if now >= requests.deadline(oldest) => (oldest, DispatchReason::Expired),
            None => (oldest, DispatchReason::NoneAbove),
            Some(next) => (next, DispatchReason::BatchStarts),
        };
        self.batching = 0;
        Some(Choice { rq, direction, reason })
    }
}

impl Deadline {
    /// Rule deadline-5.
    fn take(&mut self, cx: &mut Cx<'_>, choice: Choice) {
        self.batching += 1;
        self.next = [None; 2];
        self.next[choice.direction as usize] =
            self.directions[choice.direction as usize].after(choice.rq);
        self.directions[choice.direction as usize].remove(choice.rq);
        cx.issue(choice.rq, Placement::Tail, choice.reason);
    }
}

impl Scheduler for Deadline {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn get(&self, cx: &Cx<'_>, tunable: &str) -> i64 {
        match self.settings.get(cx.kernel().hz, tunable) {
            Some(value) => value,
            None => panic!("deadline has no tunable {tunable}"),
        }
    }

    fn set(&mut self, cx: &mut Cx<'_>, tunable: &str, value: i64) {
        let known = self.settings.set(cx.kernel().hz, tunable, value);
        assert!(known, "deadline has no tunable {tunable}");
    }

    /// Rule deadline-2.
    fn front_merge(&mut self, _cx: &mut Cx<'_>, bio: &Bio) -> Option<RequestId> {
        if !self.settings.front_merges {
            return None;
        }
        self.directions[bio.direction() as usize].starting_at(bio.end())
    }

    /// Rule deadline-3. The sweep still goes on with this request if it was next.
    fn bio_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, _bio: &Bio, merge: Merge) {
        if merge == Merge::Front {
            let request = cx.request(rq);
            self.directions[request.direction() as usize].reposition(rq, request.sector);
        }
    }

    /// Rule deadline-4. A request that is absorbed on arrival is in no lane.
    fn requests_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) {
        let direction = cx.request(next).direction();
        if !self.directions[direction as usize].contains(next) {
            return;
        }
        if self.next[direction as usize] == Some(next) {
            self.next[direction as usize] = self.directions[direction as usize].after(next);
        }
        self.directions[direction as usize].join(rq, next);
    }

    fn former(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        self.lane_of(cx, rq).before(rq)
    }

    fn latter(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        self.lane_of(cx, rq).after(rq)
    }

    /// Rule deadline-1. Where the sweep goes on is not looked at.
    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, _at: InsertAt) {
        let request = cx.request(rq);
        let (direction, sector) = (request.direction(), request.sector);
        if self.rules.alias_leaves
            && let Some(alias) = self.directions[direction as usize].oldest_at(sector)
        {
            self.next = [None; 2];
            self.next[direction as usize] = self.directions[direction as usize].after(alias);
            self.directions[direction as usize].remove(alias);
            cx.issue(alias, Placement::Tail, DispatchReason::SameSector);
        }
        let now = cx.now.jiffies(cx.kernel().hz);
        let deadline = now + self.settings.expire[direction as usize];
        self.directions[direction as usize].insert(rq, sector, deadline);
    }

    /// Rule deadline-5: exactly one request. Rule deadline-9: forced or not.
    fn dispatch(&mut self, cx: &mut Cx<'_>, _hctx: HctxId, force: bool) -> Dispatched {
        let Some(choice) = self.continued().or_else(|| self.start_batch(cx)) else {
            return Dispatched::Empty;
        };
        let reason = if force { DispatchReason::Drained } else { choice.reason };
        self.take(cx, Choice { reason, ..choice });
        Dispatched::Some(1)
    }

    fn release(&mut self, cx: &mut Cx<'_>, rq: RequestId) -> bool {
        let direction = cx.request(rq).direction();
        let goes_on = self.continued().is_some_and(|choice| choice.rq == rq);
        if !goes_on {
            let [reads, writes] = self.directions.each_ref().map(|it| !it.is_empty());
            self.starvation.follow(direction, reads, writes);
            self.batching = 0;
        }
        self.take(cx, Choice { rq, direction, reason: DispatchReason::BatchStarts });
        true
    }

    fn fork(&self) -> Option<Box<dyn Scheduler>> {
        Some(Box::new(self.clone()))
    }

    fn queued(&self) -> u32 {
        self.directions[0].len() + self.directions[1].len()
    }

    fn check(&self, cx: &Cx<'_>) {
        for requests in &self.directions {
            requests.check(|rq| cx.request(rq).sector);
        }
        assert!(self.next.iter().flatten().count() <= 1, "the sweep goes on in one direction");
        for (requests, next) in self.directions.iter().zip(self.next) {
            assert!(next.is_none_or(|next| requests.contains(next)), "next {next:?} is queued");
        }
    }

    fn describe(&self, _cx: &Cx<'_>) -> String {
        format!(
            "deadline: {} reads, {} writes, next {:?}, batching {}, starved {}",
            self.directions[0].len(),
            self.directions[1].len(),
            self.next,
            self.batching,
            self.starvation.passed_over(),
        )
    }
}
