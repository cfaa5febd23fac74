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
use super::pace::Pace;
use super::{RequestQueue, ShapeState};
use crate::bio::{Bio, BioId, ContextId, IoContextId};
use crate::event::Action;
use crate::plug::sort_for_flush;
use crate::reason::{DispatchReason, HoldReason};
use crate::request::{RequestId, RequestState};
use crate::scheduler::{Dispatched, HctxId, InsertAt, Merge};
use crate::segments::Segments;
use alloc::collections::VecDeque;
use alloc::string::String;
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

/// Merges that the queue would have done otherwise than was recorded, by their reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeDifferences {
    /// What was merged has fewer segments than pages: its memory is contiguous, which recordings
    /// do not tell.
    pub contiguous: u64,
    /// Several queued requests start, or end, where the bio does, and another was taken.
    pub equal_positions: u64,
    /// Anything else.
    pub unexplained: u64,
}

impl MergeDifferences {
    /// All of them.
    pub fn total(self) -> u64 {
        self.contiguous + self.equal_positions + self.unexplained
    }
}

/// A queue that follows a recorded one.
pub struct Replica {
    queue: RequestQueue,
    leads_joins: bool,
    differences: MergeDifferences,
    /// Where the queue would merge the bio that comes next.
    found: Option<(RequestId, Merge)>,
    /// What would absorb the request that arrives next.
    absorber: Option<Absorber>,
    /// Which requests the queue would join next, in order of their sectors.
    expected: Option<(RequestId, RequestId)>,
    /// That would be because the first of them has absorbed another on its arrival.
    is_chain: bool,
    /// A bio was merged, and whether the request is joined with its neighbour is not known yet.
    unsettled: Option<(RequestId, Bio, Merge)>,
    /// The scheduler asked for a run.
    wants_run: bool,
    /// Without a scheduler: what tasks held and now give to the driver, in this order.
    offered: VecDeque<RequestId>,
}

impl Replica {
    /// Lets `queue`, to which nothing was submitted yet, be led; `leads_joins`: it is told which
    /// requests were joined, with [`Replica::join`].
    pub fn new(queue: RequestQueue, leads_joins: bool) -> Replica {
        Replica {
            queue,
            leads_joins,
            differences: MergeDifferences::default(),
            found: None,
            absorber: None,
            expected: None,
            is_chain: false,
            unsettled: None,
            wants_run: false,
            offered: VecDeque::new(),
        }
    }

    /// Lets the scheduler's clock within hooks go as the kernel's did, of which it is known what it
    /// said when.
    pub fn follow(&mut self, said: impl IntoIterator<Item = (Instant, String)>) {
        self.queue.core.pace = Pace::new(said);
    }

    /// What was said from then on is about something else than what comes now.
    pub fn limit_pace(&mut self, until: Option<Instant>) {
        self.queue.core.pace.limit(until);
    }

    /// When the kernel's scheduler began to choose the request that was issued at `now`.
    pub fn beginning(&mut self, last: Instant, now: Instant) -> Option<Instant> {
        self.queue.core.pace.beginning(last, now)
    }

    /// When the scheduler began to deal with an event.
    pub fn dealt_with(&self, at: Instant) -> Instant {
        self.queue.core.pace.after(at).unwrap_or(at)
    }

    /// When the scheduler was asked next after an event, if it said anything then.
    pub fn asked_after(&self, at: Instant) -> Instant {
        self.queue.core.pace.next_after(at).unwrap_or(at)
    }

    /// The last task of an io_context is gone.
    pub fn exit(&mut self, now: Instant, io_context: IoContextId) {
        self.queue.exit_io_context(now, ContextId(0), io_context);
        self.discard_outputs();
    }

    /// The queue, for settings and descriptions.
    pub fn queue(&mut self) -> &mut RequestQueue {
        &mut self.queue
    }

    /// Merges that the queue would have done otherwise than was recorded.
    pub fn differences(&self) -> MergeDifferences {
        self.differences
    }

    /// Looks for a request that a bio is to be merged into, as the queue itself would. It is then
    /// told what became of the bio.
    pub fn find_merge(&mut self, now: Instant, bio: &Bio) -> Option<(RequestId, Merge)> {
        self.settle(now, None);
        let context = bio.origin.context;
        if !bio.is_mergeable() || self.queue.core.limits.nomerges == 2 {
            return None;
        }
        let segments = self.queue.core.limits.segments(bio.sectors);
        let held = self.queue.find_in_plug(context, bio, segments);
        self.found = held.or_else(|| self.queue.find_beyond_plug(now, context, bio, segments));
        self.found
    }

    /// The bio that was looked up was not merged into any request.
    pub fn keep_apart(&mut self) {
        self.differences.unexplained += u64::from(self.found.take().is_some());
    }

    /// A request was allocated for a bio, which was kept apart.
    pub fn allocate(&mut self, now: Instant, bio: &Bio) -> RequestId {
        self.settle(now, None);
        let id = self.enter(now, bio);
        let context = bio.origin.context;
        if let ShapeState::Single(single) = &mut self.queue.shape {
            single.count_recorded(bio);
            self.queue.with_scheduler(now, context, |scheduler, cx| scheduler.may_queue(cx, bio));
        }
        self.queue.core.context(context).cpu = bio.origin.cpu;
        let with = Allowance { scheduler_tag: None, driver_tag: None, hctx: 0 };
        let rq = self.queue.new_request(now, context, id, bio, with);
        // In blk-mq, what needs the flush machinery goes past the plug.
        let is_single = matches!(self.queue.shape, ShapeState::Single(_));
        if is_single || !bio.needs_flush_machinery() {
            self.queue.core.context(context).plug.requests.push(rq);
        }
        rq
    }

    /// A bio was merged into a request, which is in a plug or with the scheduler.
    pub fn merge(&mut self, now: Instant, rq: RequestId, bio: &Bio, merge: Merge) {
        self.settle(now, None);
        let is_contiguous = self.learn_contiguity(rq, self.queue.core.limits.segments(bio.sectors));
        match self.found.take() {
            Some(found) if found == (rq, merge) => {}
            _ if is_contiguous => self.differences.contiguous += 1,
            Some((other, found)) if found == merge && self.are_equal(rq, other, merge) => {
                self.differences.equal_positions += 1;
            }
            _ => self.differences.unexplained += 1,
        }
        let id = self.enter(now, bio);
        self.queue.absorb_bio(now, rq, id, merge);
        let context = bio.origin.context;
        if !self.is_queued(rq) || self.queue.scheduler.is_none() {
            return;
        }
        if self.leads_joins {
            self.is_chain = false;
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
        self.offered.retain(|offered| *offered != rq);
        if self.queue.scheduler.is_none() {
            self.queue.insert_into_software(now, context, rq);
            return;
        }
        let absorbs = joins && !self.leads_joins;
        if joins && self.leads_joins && self.queue.core.requests[rq].is_mergeable() {
            let found = self.queue.find_absorber(now, context, rq, true);
            self.differences.unexplained += u64::from(found.is_some());
        }
        self.queue.insert_into_scheduler(now, context, rq, InsertAt::Sorted, absorbs);
        let stack = &mut self.queue.core.context(context).stack;
        self.wants_run |= !stack.is_empty();
        stack.clear();
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
        let segments = self.queue.core.requests[next].segments;
        if self.learn_contiguity(rq, segments) {
            // Whether they would be joined was not to be known.
            self.differences.contiguous += 1;
            self.expected = Some((rq, next)).filter(|_| was_queued);
            self.absorber = Some(Absorber { rq, is_last: false });
        }
        self.settle(now, Some((rq, next)).filter(|_| was_queued));
        let context = self.queue.core.requests[next].origin.context;
        let absorber = self.absorber.take();
        if !was_queued {
            self.queue.bind(now, context, next);
            self.differences.unexplained += u64::from(absorber.map(|it| it.rq) != Some(rq));
        }
        let is_chain =
            if was_queued { self.is_chain } else { !absorber.is_some_and(|it| it.is_last) };
        self.queue.join(now, context, rq, next);
        if is_chain {
            let further = self.queue.find_absorber(now, context, rq, false);
            self.expected = further.map(|it| (it.rq, rq));
        }
        self.is_chain = is_chain;
    }

    /// Without a scheduler: the request's plug was flushed, and its task gives the driver the first
    /// `count` of what was in it, in the order of a plug that is flushed.
    pub fn offer(&mut self, rq: RequestId, count: usize) {
        if self.is_offered(rq) {
            return;
        }
        let sorts = self.queue.task_plug().is_some_and(|rules| rules.sorts);
        let core = &mut self.queue.core;
        let task = core.requests[rq].origin.context;
        let held = &mut core.contexts[task.0 as usize].plug.requests;
        let mut flushed: Vec<RequestId> = held.drain(..count.min(held.len())).collect();
        if sorts {
            sort_for_flush(&mut flushed, &core.requests);
        }
        self.offered.extend(flushed);
    }

    /// Whether a task is giving it to the driver.
    pub fn is_offered(&self, rq: RequestId) -> bool {
        self.offered.contains(&rq)
    }

    /// The driver takes a request from the task that flushes its plug.
    pub fn choose_offered(&mut self, now: Instant) -> Chosen {
        let Some(rq) = self.offered.pop_front() else { return Chosen::Empty };
        self.queue.core.requests[rq].state = RequestState::Dispatched;
        self.start(now, rq);
        Chosen::Chosen(rq, DispatchReason::ArrivalOrder)
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

    /// The device finished a request; that may interrupt a merge.
    pub fn complete(&mut self, now: Instant, rq: RequestId) {
        let context = self.queue.core.requests[rq].origin.context;
        self.queue.core.in_flight -= 1;
        self.queue.tell_completed(now, context, rq);
        self.queue.end_request(now, context, rq);
        self.queue.deliver(now, context);
        self.discard_outputs();
    }

    /// The scheduler is told of its first timer that has passed, if there is one; when that was.
    pub fn pass_time(&mut self, now: Instant) -> Option<Instant> {
        let due = self.queue.scheduler.as_ref().and_then(|scheduler| scheduler.next_timer());
        let at = due.filter(|at| *at <= now)?;
        let context = ContextId(0);
        self.queue.with_scheduler(at, context, |scheduler, cx| scheduler.timer(cx));
        self.queue.take_issued(at, context);
        self.wants_run |= self.queue.core.wishes.run.take().is_some();
        Some(at)
    }

    /// Whether the scheduler asked for a run since this was last asked, for another reason than
    /// that a request was completed.
    pub fn take_wants_run(&mut self) -> bool {
        core::mem::take(&mut self.wants_run)
    }

    /// Which requests were absorbed by which others since this was last asked, and what the
    /// scheduler said; events up to now are forgotten.
    pub fn take_events(&mut self) -> (Vec<(RequestId, RequestId)>, Vec<String>) {
        let log = self.queue.log();
        let joins = log.events().iter().filter_map(|event| match event.action {
            Action::Join { into } => Some((event.request?, into)),
            _ => None,
        });
        let messages = log.events().iter().filter_map(|event| match &event.action {
            Action::Message { text, .. } => Some(text.clone()),
            _ => None,
        });
        let taken = (joins.collect(), messages.collect());
        log.clear();
        taken
    }

    /// Where memory is contiguous, requests have fewer segments than pages, and recordings do not
    /// tell: what was merged although it seemed too full was not.
    fn learn_contiguity(&mut self, rq: RequestId, more: u16) -> bool {
        let core = &mut self.queue.core;
        let request = &mut core.requests[rq];
        let is_new =
            request.no_merge || request.segments.saturating_add(more) > core.limits.max_segments;
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

    /// Whether two requests are at the same place for a merge.
    fn are_equal(&self, one: RequestId, other: RequestId, merge: Merge) -> bool {
        let (one, other) = (&self.queue.core.requests[one], &self.queue.core.requests[other]);
        match merge {
            Merge::Back => one.end() == other.end(),
            Merge::Front => one.sector == other.sector,
        }
    }

    /// Something else happens than what was expected after a merge, or just that.
    fn settle(&mut self, now: Instant, join: Option<(RequestId, RequestId)>) {
        self.differences.unexplained += u64::from(self.expected.take() != join);
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
        self.queue.core.keep_bio(now, *bio, Segments::default())
    }

    fn discard_outputs(&mut self) {
        while self.queue.pop_output().is_some() {}
    }
}
