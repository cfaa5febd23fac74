//! A queue whose pieces of work are called by hand.
//!
//! [`RequestQueue::step`] decides what comes next: what is merged, who gets a request, when the
//! driver takes one. Somebody may know that already, because he follows a queue that did it. He
//! calls the pieces of a [`GuidedQueue`] himself, in any order that the life of a request allows.
//! Only the scheduler still decides for itself.
//!
//! No piece looks at tags or request limits, and none leaves work behind for a later step.
//! Requests that go through the flush machinery without the scheduler are not to be guided.

pub use super::elevator::Absorber;

use super::allocate::Allowance;
use super::{RequestQueue, ShapeState};
use crate::bio::{Bio, BioId, ContextId};
use crate::event::Mark;
use crate::plug::sort_for_flush;
use crate::reason::{DispatchReason, HoldReason};
use crate::request::{RequestId, RequestState};
use crate::scheduler::{Dispatched, HctxId, InsertAt, Merge, Scheduler};
use crate::segments::Segments;
use alloc::boxed::Box;
use alloc::vec::Vec;
use base::Instant;

/// Whoever runs the queue or fires a timer.
const KERNEL: ContextId = ContextId(0);

/// What the scheduler said when it was asked for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It lets this one go, for this reason.
    Issued(RequestId, DispatchReason),
    /// It withholds what it has.
    Hold(HoldReason),
    /// It has nothing.
    Empty,
}

/// All that a question to the scheduler changes: what it is like, and what it has said.
pub struct Saved {
    scheduler: Box<dyn Scheduler>,
    log: Mark,
}

/// A queue that is guided piece by piece.
pub struct GuidedQueue {
    queue: RequestQueue,
}

impl GuidedQueue {
    /// Guides a queue to which nothing was submitted yet.
    pub fn new(queue: RequestQueue) -> GuidedQueue {
        GuidedQueue { queue }
    }

    /// The queue, for settings, events and descriptions.
    pub fn queue(&mut self) -> &mut RequestQueue {
        &mut self.queue
    }

    /// The scheduler's state, if it can have two.
    pub fn save(&self) -> Option<Saved> {
        let scheduler = self.queue.scheduler.as_ref()?.fork()?;
        Some(Saved { scheduler, log: self.queue.core.seen.log.mark() })
    }

    /// The scheduler goes back to a state; it was asked since, and no answer was accepted.
    pub fn restore(&mut self, saved: &Saved) {
        let forked = saved.scheduler.fork();
        self.queue.scheduler = Some(forked.expect("what was forked can be forked"));
        let seen = &mut self.queue.core.seen;
        seen.wishes.issued.clear();
        seen.log.go_back(saved.log);
    }

    /// Lets the scheduler let this request go, which it has, as if that were its choice; false if
    /// it cannot. [`GuidedQueue::take_waiting`] has it.
    pub fn release(&mut self, now: Instant, rq: RequestId) -> bool {
        let queue = &mut self.queue;
        let released = queue.with_scheduler(now, KERNEL, |scheduler, cx| scheduler.release(cx, rq));
        queue.take_issued(now, KERNEL);
        queue.core.seen.wishes.run = None;
        released == Some(true)
    }

    /// Lets the scheduler hear what a recorded one said; [`Scheduler::heed`].
    pub fn heed(&mut self, now: Instant, said: &str, rq: Option<RequestId>) {
        self.queue.with_scheduler(now, KERNEL, |scheduler, cx| scheduler.heed(cx, said, rq));
        self.queue.core.seen.wishes.run = None;
    }

    /// [`Scheduler::is_in_doubt`].
    pub fn is_in_doubt(&self) -> bool {
        self.queue.scheduler.as_ref().is_some_and(|scheduler| scheduler.is_in_doubt())
    }

    /// Whether there is a scheduler.
    pub fn has_scheduler(&self) -> bool {
        self.queue.scheduler.is_some()
    }

    /// Whether it is the single queue.
    pub fn is_single(&self) -> bool {
        matches!(self.queue.shape, ShapeState::Single(_))
    }

    /// Whether the scheduler has a request.
    pub fn is_queued(&self, rq: RequestId) -> bool {
        self.queue.core.seen.requests[rq].state == RequestState::Inserted
    }

    /// A bio arrives: the request that the queue would merge it into, which nothing is done to.
    pub fn find_merge(&mut self, now: Instant, bio: &Bio) -> Option<(RequestId, Merge)> {
        let context = bio.origin.context;
        if !bio.is_mergeable() || self.queue.core.seen.limits.nomerges == 2 {
            return None;
        }
        let segments = self.queue.core.seen.limits.segments(bio.sectors);
        let held = self.queue.find_in_plug(context, bio, segments);
        held.or_else(|| self.queue.find_beyond_plug(now, context, bio, segments))
    }

    /// Makes a request of a bio, which waits until it is inserted: in its task's plug, which
    /// remembers `time`, unless it is none.
    pub fn allocate(&mut self, now: Instant, bio: &Bio, time: Option<Instant>) -> RequestId {
        let id = self.enter(now, bio);
        let context = bio.origin.context;
        self.queue.core.context(context).plug.begin_bio();
        if let ShapeState::Single(single) = &mut self.queue.shape {
            single.count_recorded(bio);
            self.queue.with_scheduler(now, context, |scheduler, cx| scheduler.may_queue(cx, bio));
        }
        self.queue.core.context_on(context, bio.origin.cpu);
        let with = Allowance { scheduler_tag: None, driver_tag: None, hctx: 0 };
        let rq = self.queue.new_request(now, context, id, bio, with);
        if self.is_single() || self.queue.is_plain(rq) {
            self.queue.core.context(context).plug.hold(time, rq);
        }
        rq
    }

    /// The scheduler is asked how many tags a request may use. What it answered was heeded
    /// already; but it tells of it.
    pub fn limit_depth(&mut self, now: Instant, bio: &Bio) {
        let context = bio.origin.context;
        self.queue.with_scheduler(now, context, |scheduler, cx| scheduler.limit_depth(cx, bio));
    }

    /// Merges a bio into a request, which is in a plug or with the scheduler. If the scheduler has
    /// it, [`GuidedQueue::find_neighbour`] and [`GuidedQueue::join`] follow, or
    /// [`GuidedQueue::keep_merged`], or [`GuidedQueue::join_neighbour`] that does both.
    pub fn merge(&mut self, now: Instant, rq: RequestId, bio: &Bio, merge: Merge) {
        let id = self.enter(now, bio);
        self.queue.absorb_bio(now, rq, id, merge);
    }

    /// Two queued requests that touch since a bio was merged into `rq`, and may be joined.
    pub fn find_neighbour(
        &mut self,
        now: Instant,
        bio: &Bio,
        rq: RequestId,
        merge: Merge,
    ) -> Option<(RequestId, RequestId)> {
        self.queue.find_neighbour(now, bio.origin.context, rq, merge)
    }

    /// The request that a bio was merged into remains one of its own.
    pub fn keep_merged(&mut self, now: Instant, bio: &Bio, rq: RequestId, merge: Merge) {
        self.queue.keep_merged(now, bio.origin.context, rq, bio, merge);
    }

    /// The request that a bio was merged into is joined with its neighbour, if the queue would.
    pub fn join_neighbour(&mut self, now: Instant, bio: &Bio, rq: RequestId, merge: Merge) {
        self.queue.bio_merged(now, bio.origin.context, rq, bio, merge);
    }

    /// A kernel merged a bio into a request. If that has too many segments for it, as far as is
    /// known, its memory is contiguous: it is taken to be one segment from now on. Whether it was
    /// so.
    pub fn learn_of_bio(&mut self, rq: RequestId, bio: &Bio) -> bool {
        let segments = self.queue.core.seen.limits.segments(bio.sectors);
        self.learn_contiguity(rq, segments)
    }

    /// The same where a kernel appended `next` to `rq`.
    pub fn learn_of_request(&mut self, rq: RequestId, next: RequestId) -> bool {
        let segments = self.queue.core.seen.requests[next].segments;
        self.learn_contiguity(rq, segments)
    }

    /// Takes a request out of its task's plug.
    pub fn unplug(&mut self, rq: RequestId) {
        let context = self.context_of(rq);
        self.queue.core.context(context).plug.requests.retain(|held| *held != rq);
    }

    /// Takes the first `count` requests out of the plug that has this one, in the order in which
    /// its task gives them away when it ends the plug.
    pub fn flush_plug(&mut self, rq: RequestId, count: usize) -> Vec<RequestId> {
        let sorts = self.queue.task_plug().is_some_and(|rules| rules.sorts);
        let newest_first = self.queue.issues_newest_first();
        let task = self.context_of(rq);
        let core = &mut self.queue.core;
        let held = &mut core.contexts[task.0 as usize].plug.requests;
        let mut flushed: Vec<RequestId> = held.drain(..count.min(held.len())).collect();
        if sorts {
            sort_for_flush(&mut flushed, &core.seen.requests);
        }
        if newest_first {
            flushed.reverse();
        }
        flushed
    }

    /// The queued request that would absorb `rq`, which `has_arrived` or has just absorbed another.
    pub fn find_absorber(
        &mut self,
        now: Instant,
        rq: RequestId,
        has_arrived: bool,
    ) -> Option<Absorber> {
        let context = self.context_of(rq);
        self.queue.find_absorber(now, context, rq, has_arrived)
    }

    /// Tells the scheduler whose request this is, which arrives and is absorbed.
    pub fn bind(&mut self, now: Instant, rq: RequestId) {
        let context = self.context_of(rq);
        self.queue.bind(now, context, rq);
    }

    /// Appends `next` to `rq`; `next` disappears.
    pub fn join(&mut self, now: Instant, rq: RequestId, next: RequestId) {
        let context = self.context_of(next);
        self.queue.join(now, context, rq, next);
    }

    /// Gives an unplugged request to the scheduler (or a software queue); `absorbs`: a queued one
    /// may absorb it. Whether the scheduler wants the queue to be run.
    pub fn insert(&mut self, now: Instant, rq: RequestId, absorbs: bool) -> bool {
        let context = self.context_of(rq);
        if !self.has_scheduler() {
            self.queue.insert_into_software(now, context, rq);
            return false;
        }
        self.queue.insert_into_scheduler(now, context, rq, InsertAt::Sorted, absorbs);
        let stack = &mut self.queue.core.context(context).stack;
        let wants_run = !stack.is_empty();
        stack.clear();
        wants_run
    }

    /// What the task of a request takes for the time while it gives away what it held back.
    pub fn remembered_time(&mut self, rq: RequestId) -> Option<Instant> {
        let context = self.context_of(rq);
        self.queue.remembered_time(context)
    }

    /// A task has not had its core all the time, and does not know any more what time it is.
    pub fn forget_time(&mut self, context: ContextId) {
        self.queue.core.context(context).plug.forget_time();
    }

    /// Asks the scheduler, of which there is one, for a request. Nothing has left it before
    /// [`GuidedQueue::accept`], which is called next, or [`GuidedQueue::restore`]. `clock` is what
    /// whoever asks takes for the time.
    pub fn ask(&mut self, now: Instant, clock: Instant) -> Answer {
        let queue = &mut self.queue;
        let answer = queue.with_scheduler(now, KERNEL, |scheduler, cx| {
            cx.clock = clock;
            scheduler.dispatch(cx, HctxId(0), false)
        });
        let wishes = &mut queue.core.seen.wishes;
        wishes.run = None;
        match answer.expect("there is a scheduler") {
            Dispatched::Some(_) => {
                let (rq, _, reason) = *wishes.issued.first().expect("something leaves it");
                Answer::Issued(rq, reason)
            }
            Dispatched::Hold(reason) => Answer::Hold(reason),
            Dispatched::Empty => Answer::Empty,
        }
    }

    /// What the scheduler let go when it was asked leaves it: [`GuidedQueue::take_waiting`] has it.
    pub fn accept(&mut self, now: Instant) {
        self.queue.take_issued(now, KERNEL);
    }

    /// The next request that has left the scheduler and waits for the driver.
    pub fn take_waiting(&mut self) -> Option<RequestId> {
        match &mut self.queue.shape {
            ShapeState::Single(single) => single.take_head(),
            ShapeState::Multi(multi) => {
                let collected = &mut self.queue.core.context(KERNEL).collected;
                multi.take_residual().or_else(|| collected.pop_front())
            }
        }
    }

    /// The next request of the software queues, without a scheduler.
    pub fn take_software(&mut self) -> Option<RequestId> {
        match &mut self.queue.shape {
            ShapeState::Single(_) => None,
            ShapeState::Multi(multi) => multi.take_software(),
        }
    }

    /// A request that was taken goes back, before all others that wait for the driver.
    pub fn put_back(&mut self, rq: RequestId) {
        match &mut self.queue.shape {
            ShapeState::Single(single) => single.place_front(rq),
            ShapeState::Multi(multi) => multi.place_front(&self.queue.core.seen.requests, rq),
        }
    }

    /// The driver gives a request, which was taken, to the device.
    pub fn start(&mut self, now: Instant, rq: RequestId) {
        let context = self.context_of(rq);
        if self.is_single() {
            self.queue.activate(now, context, rq);
        }
        let request = &mut self.queue.core.seen.requests[rq];
        request.started = true;
        request.issued_at = now;
        request.state = RequestState::Issued;
        self.queue.core.in_flight += 1;
    }

    /// The driver gave a request back.
    pub fn requeue(&mut self, now: Instant, rq: RequestId) {
        let context = self.context_of(rq);
        self.queue.core.in_flight -= 1;
        match &self.queue.shape {
            ShapeState::Single(_) => self.queue.requeue_single(now, context, rq),
            ShapeState::Multi(_) => self.queue.requeue_multi(now, context, rq),
        }
        self.queue.insert_requeued(now, context);
    }

    /// The device finished a request.
    pub fn complete(&mut self, now: Instant, rq: RequestId) {
        let context = self.context_of(rq);
        self.queue.core.in_flight -= 1;
        self.queue.tell_completed(now, context, rq);
        self.queue.end_request(now, context, rq);
        self.queue.deliver(now, context);
    }

    /// A flush that has no data is done, which was allocated at `since`.
    pub fn flushed(&mut self, now: Instant, since: Instant) {
        self.queue.with_scheduler(now, KERNEL, |scheduler, cx| scheduler.flushed(cx, since, false));
    }

    /// The scheduler is told of its first timer that has passed, if there is one; when that was,
    /// and whether it wants the queue to be run.
    pub fn pass_time(&mut self, now: Instant) -> Option<(Instant, bool)> {
        let due = self.queue.scheduler.as_ref().and_then(|scheduler| scheduler.next_timer());
        let at = due.filter(|at| *at <= now)?;
        self.queue.with_scheduler(at, KERNEL, |scheduler, cx| scheduler.timer(cx));
        self.queue.take_issued(at, KERNEL);
        let wants_run = self.queue.core.seen.wishes.run.take().is_some();
        Some((at, wants_run))
    }

    fn enter(&mut self, now: Instant, bio: &Bio) -> BioId {
        self.queue.core.keep_bio(now, *bio, Segments::default())
    }

    fn context_of(&self, rq: RequestId) -> ContextId {
        self.queue.core.seen.requests[rq].origin.context
    }

    fn learn_contiguity(&mut self, rq: RequestId, more: u16) -> bool {
        let core = &mut self.queue.core;
        let request = &mut core.seen.requests[rq];
        let most = core.seen.limits.max_segments;
        let is_new = request.no_merge || request.segments.saturating_add(more) > most;
        if is_new {
            request.segments = 1;
            if core::mem::take(&mut request.no_merge) && request.state == RequestState::Inserted {
                let end = request.end();
                core.merge.remove(rq);
                core.merge.insert(rq, end);
            }
        }
        is_new
    }
}
