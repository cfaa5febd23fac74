//! A queue that is led by what a kernel recorded.
//!
//! A [`RequestQueue`] is told of bios and completions and decides the rest. A [`Replica`] of a
//! kernel's queue is told of the rest as well: when a request was allocated, what was merged into
//! it, when it was inserted, when the driver took one, when it came back. Only one thing is left
//! to its own judgement: *which* request the driver gets. So the scheduler can be compared with
//! the kernel's, decision by decision, whatever tags, limits, budgets and processor time made of
//! the moments in between.
//!
//! What the queue would have merged is looked up all the same and compared with what was merged:
//! so a request that was found too full to be merged into is known to be, as in the kernel. Where
//! a recording does not tell which requests were joined (up to 5.10), the queue joins them itself.
//!
//! Left out: requests on their way through the flush machinery that no scheduler sees.

use super::allocate::Allowance;
use super::elevator::Absorber;
use super::{RequestQueue, ShapeState};
use crate::bio::{Bio, BioId, BioRecord, ContextId};
use crate::event::Action;
use crate::reason::{DispatchReason, HoldReason};
use crate::request::{RequestId, RequestState};
use crate::scheduler::{Dispatched, HctxId, InsertAt, Merge};
use alloc::vec::Vec;
use base::Instant;

/// What the driver gets where a kernel's driver got a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// A request that the scheduler let go.
    Chosen(RequestId, DispatchReason),
    /// A request that had left the scheduler before: it was given back or was parked.
    Waiting(RequestId),
    /// Nothing: the scheduler withholds what it has.
    Hold(HoldReason),
    /// Nothing: there is nothing.
    Empty,
}

/// A queue that follows a recorded one.
pub struct Replica {
    queue: RequestQueue,
    leads_joins: bool,
    merges_that_differ: u64,
    /// Where the queue would merge the bio that comes next.
    found: Option<(RequestId, Merge)>,
    /// What would absorb the request that arrives next.
    absorber: Option<Absorber>,
    /// Which requests the queue would join next, in order of their sectors.
    expected: Option<(RequestId, RequestId)>,
    /// A bio was merged, and whether the request is joined with its neighbour is not known yet.
    unsettled: Option<(RequestId, Bio, Merge)>,
}

impl Replica {
    /// Lets `queue`, to which nothing was submitted yet, be led; `leads_joins`: it is told which
    /// requests were joined, with [`Replica::join`].
    pub fn new(queue: RequestQueue, leads_joins: bool) -> Replica {
        Replica {
            queue,
            leads_joins,
            merges_that_differ: 0,
            found: None,
            absorber: None,
            expected: None,
            unsettled: None,
        }
    }

    /// The queue, for settings and descriptions.
    pub fn queue(&mut self) -> &mut RequestQueue {
        &mut self.queue
    }

    /// Bios that the queue would have merged elsewhere than was recorded.
    pub fn merges_that_differ(&self) -> u64 {
        self.merges_that_differ
    }

    /// Looks for a request that a bio is to be merged into, as the queue itself would. It is then
    /// told what became of the bio.
    pub fn find_merge(&mut self, now: Instant, bio: &Bio) -> Option<(RequestId, Merge)> {
        self.settle(now, None);
        let context = bio.origin.context;
        if !bio.is_mergeable() || self.queue.core.limits.nomerges == 2 {
            return None;
        }
        let held = self.queue.find_in_plug(context, bio);
        self.found = held.or_else(|| self.queue.find_beyond_plug(now, context, bio));
        self.found
    }

    /// A request was allocated for a bio, which was not merged into any other.
    pub fn allocate(&mut self, now: Instant, bio: &Bio) -> RequestId {
        self.settle(now, None);
        self.merges_that_differ += u64::from(self.found.take().is_some());
        let id = self.enter(now, bio);
        if let ShapeState::Single(single) = &mut self.queue.shape {
            single.count_recorded(bio);
        }
        let context = bio.origin.context;
        self.queue.core.context(context).cpu = bio.origin.cpu;
        let with = Allowance { scheduler_tag: None, driver_tag: None, hctx: 0 };
        let rq = self.queue.new_request(now, context, id, bio, with);
        self.queue.core.context(context).plug.requests.push(rq);
        rq
    }

    /// A bio was merged into a request, which is in a plug or with the scheduler.
    pub fn merge(&mut self, now: Instant, rq: RequestId, bio: &Bio, merge: Merge) {
        self.settle(now, None);
        self.merges_that_differ += u64::from(self.found.take() != Some((rq, merge)));
        let id = self.enter(now, bio);
        self.queue.absorb_bio(now, rq, id, merge);
        let context = bio.origin.context;
        if !self.is_queued(rq) || self.queue.scheduler.is_none() {
            return;
        }
        if self.leads_joins {
            self.expected = self.queue.find_neighbour(now, context, rq, merge);
            self.unsettled = Some((rq, *bio, merge));
        } else {
            self.queue.bio_merged(now, context, rq, bio, merge);
        }
    }

    /// A request was inserted; `joins`: queued ones may absorb it, or might have and did not.
    pub fn insert(&mut self, now: Instant, rq: RequestId, joins: bool) {
        self.settle(now, None);
        let context = self.unplug(rq);
        if self.queue.scheduler.is_none() {
            self.queue.insert_into_software(now, context, rq);
            return;
        }
        let absorbs = joins && !self.leads_joins;
        if joins && self.leads_joins && self.queue.core.requests[rq].is_mergeable() {
            let found = self.queue.find_absorber(now, context, rq, true);
            self.merges_that_differ += u64::from(found.is_some());
        }
        self.queue.insert_into_scheduler(now, context, rq, InsertAt::Sorted, absorbs);
    }

    /// Looks for requests that are to be joined, as the queue itself would: those that touch since
    /// a bio was merged, or the one that is inserted next and that which absorbs it.
    pub fn find_join(&mut self, now: Instant, next: RequestId) -> Option<(RequestId, RequestId)> {
        if self.is_queued(next) {
            return self.expected;
        }
        self.settle(now, None);
        let context = self.unplug(next);
        self.absorber = self.queue.find_absorber(now, context, next, true);
        self.absorber.map(|it| (it.rq, next))
    }

    /// `next`, which was queued or arrives, was appended to `rq`, which is queued.
    pub fn join(&mut self, now: Instant, rq: RequestId, next: RequestId) {
        let was_queued = self.is_queued(next);
        self.settle(now, Some((rq, next)).filter(|_| was_queued));
        let context = self.queue.core.requests[next].origin.context;
        let absorber = self.absorber.take();
        if !was_queued {
            self.queue.bind(now, context, next);
            self.merges_that_differ += u64::from(absorber.map(|it| it.rq) != Some(rq));
        }
        self.queue.join(now, context, rq, next);
        if !was_queued && absorber.is_none_or(|it| !it.is_last) {
            let further = self.queue.find_absorber(now, context, rq, false);
            self.expected = further.map(|it| (it.rq, rq));
        }
    }

    /// The driver takes a request.
    pub fn choose(&mut self, now: Instant) -> Chosen {
        self.settle(now, None);
        if let Some(rq) = self.take_waiting() {
            self.start(now, rq);
            return Chosen::Waiting(rq);
        }
        if self.queue.scheduler.is_none() {
            let ShapeState::Multi(multi) = &mut self.queue.shape else { return Chosen::Empty };
            let Some(rq) = multi.take_software() else { return Chosen::Empty };
            self.start(now, rq);
            return Chosen::Chosen(rq, DispatchReason::ArrivalOrder);
        }
        match self.ask(now) {
            Ok(reason) => {
                let rq = self.take_waiting().expect("the scheduler let a request go");
                self.start(now, rq);
                Chosen::Chosen(rq, reason)
            }
            Err(nothing) => nothing,
        }
    }

    /// The driver asks for a request that it cannot take yet: what is chosen is parked, out of the
    /// scheduler's sight, and goes before everything else. The answer is that of the scheduler.
    pub fn park(&mut self, now: Instant) -> Chosen {
        self.settle(now, None);
        if self.queue.scheduler.is_none() {
            return Chosen::Empty;
        }
        match self.ask(now) {
            Ok(reason) => {
                let rq = self.take_waiting().expect("the scheduler let a request go");
                self.place_front(rq);
                Chosen::Chosen(rq, reason)
            }
            Err(nothing) => nothing,
        }
    }

    /// The driver takes this very request, which was not inserted.
    pub fn take(&mut self, now: Instant, rq: RequestId) {
        self.settle(now, None);
        self.unplug(rq);
        self.queue.core.requests[rq].state = RequestState::Dispatched;
        self.start(now, rq);
    }

    /// The driver gave a request back.
    pub fn requeue(&mut self, now: Instant, rq: RequestId) {
        self.settle(now, None);
        let context = self.queue.core.requests[rq].origin.context;
        self.queue.core.in_flight -= 1;
        match &self.queue.shape {
            ShapeState::Single(_) => self.queue.requeue_single(now, context, rq),
            ShapeState::Multi(_) => self.queue.requeue_multi(now, context, rq),
        }
        self.discard_outputs();
    }

    /// The device finished a request.
    pub fn complete(&mut self, now: Instant, rq: RequestId) {
        self.settle(now, None);
        let context = self.queue.core.requests[rq].origin.context;
        self.queue.core.in_flight -= 1;
        self.queue.tell_completed(now, context, rq);
        self.queue.end_request(now, context, rq);
        self.queue.deliver(now, context);
        self.discard_outputs();
    }

    /// The scheduler's timers that have passed are told to it.
    pub fn pass_time(&mut self, now: Instant) {
        let due = |queue: &RequestQueue| {
            queue.scheduler.as_ref().and_then(|scheduler| scheduler.next_timer())
        };
        while let Some(at) = due(&self.queue).filter(|at| *at <= now) {
            let context = ContextId(0);
            self.queue.with_scheduler(at, context, |scheduler, cx| scheduler.timer(cx));
            self.queue.take_issued(at, context);
            self.queue.core.wishes.run = None;
        }
    }

    /// Which requests were absorbed by which others since this was last asked; events up to now
    /// are forgotten.
    pub fn take_joins(&mut self) -> Vec<(RequestId, RequestId)> {
        let log = self.queue.log();
        let joins = log.events().iter().filter_map(|event| match event.action {
            Action::Join { into } => Some((event.request?, into)),
            _ => None,
        });
        let joins = joins.collect();
        log.clear();
        joins
    }

    /// Something else happens than what was expected after a merge, or just that.
    fn settle(&mut self, now: Instant, join: Option<(RequestId, RequestId)>) {
        self.merges_that_differ += u64::from(self.expected.take() != join);
        let Some((rq, bio, merge)) = self.unsettled.take() else { return };
        let is_joined = join.is_some_and(|(one, other)| one == rq || other == rq);
        if !is_joined && self.is_queued(rq) {
            self.queue.keep_merged(now, bio.origin.context, rq, &bio, merge);
        }
    }

    /// Whether the scheduler has it.
    pub fn is_queued(&self, rq: RequestId) -> bool {
        self.queue.core.requests[rq].state == RequestState::Inserted
    }

    /// Takes a request out of its task's plug.
    fn unplug(&mut self, rq: RequestId) -> ContextId {
        let context = self.queue.core.requests[rq].origin.context;
        self.queue.core.context(context).plug.requests.retain(|held| *held != rq);
        context
    }

    /// Asks the scheduler once.
    fn ask(&mut self, now: Instant) -> Result<DispatchReason, Chosen> {
        let context = ContextId(0);
        let queue = &mut self.queue;
        let answer = queue
            .with_scheduler(now, context, |scheduler, cx| scheduler.dispatch(cx, HctxId(0), false));
        let reason = queue.core.wishes.issued.first().map(|issued| issued.2);
        queue.take_issued(now, context);
        queue.core.wishes.run = None;
        match answer.expect("there is a scheduler") {
            Dispatched::Some(_) => Ok(reason.expect("something left the scheduler")),
            Dispatched::Hold(reason) => Err(Chosen::Hold(reason)),
            Dispatched::Empty => Err(Chosen::Empty),
        }
    }

    /// The next request that has left the scheduler and waits for the driver.
    fn take_waiting(&mut self) -> Option<RequestId> {
        match &mut self.queue.shape {
            ShapeState::Single(single) => single.take_head(),
            ShapeState::Multi(multi) => {
                let collected = &mut self.queue.core.context(ContextId(0)).collected;
                multi.take_residual().or_else(|| collected.pop_front())
            }
        }
    }

    fn place_front(&mut self, rq: RequestId) {
        match &mut self.queue.shape {
            ShapeState::Single(single) => single.place_front(rq),
            ShapeState::Multi(multi) => multi.place_front(&self.queue.core.requests, rq),
        }
    }

    fn start(&mut self, now: Instant, rq: RequestId) {
        let context = self.queue.core.requests[rq].origin.context;
        if matches!(self.queue.shape, ShapeState::Single(_)) {
            self.queue.activate(now, context, rq);
        }
        let request = &mut self.queue.core.requests[rq];
        request.started = true;
        request.issued_at = now;
        request.state = RequestState::Issued;
        self.queue.core.in_flight += 1;
    }

    fn enter(&mut self, now: Instant, bio: &Bio) -> BioId {
        self.queue.core.bios.insert(BioRecord {
            bio: *bio,
            queued_at: now,
            issued_at: now,
            next: None,
            parent: None,
            parts_left: 1,
        })
    }

    fn discard_outputs(&mut self) {
        while self.queue.pop_output().is_some() {}
    }
}
