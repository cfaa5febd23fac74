//! Between the queue and the scheduler: insertion, joining of requests, and what the scheduler lets
//! go (rules merge-4 to merge-9).

use super::{RequestQueue, ShapeState};
use crate::bio::{Bio, ContextId};
use crate::event::Action;
use crate::kernel::Shape;
use crate::merge::may_join;
use crate::reason::HoldReason;
use crate::request::{RequestId, RequestState};
use crate::scheduler::{InsertAt, Merge, MergeLookup};
use base::Instant;

/// A queued request that a newcomer is appended to.
#[derive(Clone, Copy, Debug)]
pub struct Absorber {
    /// Which.
    pub rq: RequestId,
    /// It is not in turn appended to another (rule merge-5: what the one-hit cache finds).
    pub is_last: bool,
}

impl RequestQueue {
    /// Gives a request to the scheduler, unless a queued one absorbs it.
    pub(super) fn insert_into_scheduler(
        &mut self,
        now: Instant,
        context: ContextId,
        rq: RequestId,
        at: InsertAt,
        merge: bool,
    ) {
        let is_single = self.shape.shape() == Shape::Single;
        if is_single {
            self.core.log_request(now, context, Action::Insert, rq);
        } else {
            self.bind(now, context, rq);
        }
        let is_mergeable = self.has_index() && self.core.seen.requests[rq].is_mergeable();
        if merge && is_mergeable && self.absorb_at_insertion(now, context, rq) {
            return;
        }
        if !is_single {
            self.core.log_request(now, context, Action::Insert, rq);
        }
        let request = &mut self.core.seen.requests[rq];
        self.core.guard.insert(request);
        if at == InsertAt::Sorted && is_mergeable {
            let end = request.end();
            self.core.merge.insert(rq, end);
        }
        self.with_scheduler_in_task(now, context, |scheduler, cx| scheduler.insert(cx, rq, at));
        self.settle(now, context);
    }

    /// Whether queued requests stand in the index.
    pub(super) fn has_index(&self) -> bool {
        let lookup = self.scheduler.as_ref().map(|scheduler| scheduler.about().lookup);
        lookup != Some(MergeLookup::Recent)
    }

    /// The scheduler takes note of whose request this is.
    // On the way of every request; the compiler would not choose to put it into its callers.
    #[inline(always)]
    pub(super) fn bind(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        let bound =
            self.with_scheduler_in_task(now, context, |scheduler, cx| scheduler.bind(cx, rq));
        self.core.seen.requests[rq].bound = bound.is_some();
        self.settle(now, context);
    }

    /// Appends an arriving, mergeable request to a queued one, and that perhaps to another
    /// (rule merge-5).
    fn absorb_at_insertion(&mut self, now: Instant, context: ContextId, rq: RequestId) -> bool {
        let mut newcomer = rq;
        while let Some(absorber) = self.find_absorber(now, context, newcomer, newcomer == rq) {
            self.join(now, context, absorber.rq, newcomer);
            newcomer = absorber.rq;
            if absorber.is_last {
                break;
            }
        }
        newcomer != rq
    }

    /// The queued request that `newcomer` is to be appended to; only a request that has just
    /// arrived is offered to the one-hit cache.
    pub(super) fn find_absorber(
        &mut self,
        now: Instant,
        context: ContextId,
        newcomer: RequestId,
        has_arrived: bool,
    ) -> Option<Absorber> {
        let nomerges = self.core.seen.limits.nomerges;
        if nomerges == 2 || !self.has_index() {
            return None;
        }
        let position = self.core.seen.requests[newcomer].sector;
        if has_arrived
            && let Some(last) = self.core.merge.last_merge()
            && self.core.seen.requests[last].end() == position
            && self.is_joinable(now, context, last, newcomer)
        {
            return Some(Absorber { rq: last, is_last: true });
        }
        if nomerges == 1 {
            return None;
        }
        let found = self.core.merge.ending_at(&self.core.seen.requests, position)?;
        let is_joinable = self.is_joinable(now, context, found, newcomer);
        is_joinable.then_some(Absorber { rq: found, is_last: false })
    }

    /// After a bio was merged into `rq`: perhaps it now touches its neighbour (rule merge-4).
    pub(super) fn bio_merged(
        &mut self,
        now: Instant,
        context: ContextId,
        rq: RequestId,
        bio: &Bio,
        merge: Merge,
    ) {
        match self.find_neighbour(now, context, rq, merge) {
            Some((first, second)) => self.join(now, context, first, second),
            None => self.keep_merged(now, context, rq, bio, merge),
        }
    }

    /// Two requests that touch since a bio was merged into `rq`, in order of their sectors.
    pub(super) fn find_neighbour(
        &mut self,
        now: Instant,
        context: ContextId,
        rq: RequestId,
        merge: Merge,
    ) -> Option<(RequestId, RequestId)> {
        let neighbour = self.with_scheduler(now, context, |scheduler, cx| match merge {
            Merge::Back => scheduler.latter(cx, rq),
            Merge::Front => scheduler.former(cx, rq),
        });
        let neighbour = neighbour.flatten()?;
        let (first, second) = match merge {
            Merge::Back => (rq, neighbour),
            Merge::Front => (neighbour, rq),
        };
        self.is_joinable(now, context, first, second).then_some((first, second))
    }

    /// After a bio was merged into `rq`, which remains a request of its own.
    pub(super) fn keep_merged(
        &mut self,
        now: Instant,
        context: ContextId,
        rq: RequestId,
        bio: &Bio,
        merge: Merge,
    ) {
        self.with_scheduler(now, context, |scheduler, cx| {
            scheduler.bio_merged(cx, rq, bio, merge);
        });
        self.settle(now, context);
        // A front merge leaves the end, and the request's place among those that end there.
        if !self.has_index() {
            return;
        }
        if merge == Merge::Back {
            let end = self.core.seen.requests[rq].end();
            self.core.merge.reposition(rq, end);
        }
        if self.core.seen.requests[rq].is_mergeable() {
            self.core.merge.set_last_merge(rq);
        }
    }

    /// Whether everybody agrees that `next` is appended to `rq`.
    fn is_joinable(
        &mut self,
        now: Instant,
        context: ContextId,
        rq: RequestId,
        next: RequestId,
    ) -> bool {
        let core = &self.core;
        let (first, second) = (&core.seen.requests[rq], &core.seen.requests[next]);
        if rq == next || !may_join(core.seen.kernel, &core.seen.limits, first, second) {
            return false;
        }
        let allowed = self.with_scheduler(now, context, |scheduler, cx| {
            scheduler.allow_request_merge(cx, rq, next)
        });
        allowed == Some(true)
    }

    /// Appends `next` to `rq`; `next` disappears.
    pub(super) fn join(
        &mut self,
        now: Instant,
        context: ContextId,
        rq: RequestId,
        next: RequestId,
    ) {
        self.append(rq, next);
        self.with_scheduler(now, context, |scheduler, cx| scheduler.requests_merged(cx, rq, next));
        self.settle(now, context);
        if self.core.seen.requests[next].state == RequestState::Inserted {
            self.core.guard.merge(&self.core.seen.requests[next]);
        }
        self.core.merge.remove(next);
        let end = self.core.seen.requests[rq].end();
        self.core.merge.reposition(rq, end);
        self.core.merge.set_last_merge(rq);
        self.core.log_request(now, context, Action::Join { into: rq }, next);
        self.free_request(now, context, next);
    }

    /// Moves the bios of `next` to the end of `rq`.
    fn append(&mut self, rq: RequestId, next: RequestId) {
        let core = &mut self.core;
        let second = &core.seen.requests[next];
        let (sectors, segments, ioprio) = (second.sectors, second.segments, second.ioprio);
        let (first_bio, last_bio) = (second.first_bio, second.last_bio);
        let allocated_at = second.allocated_at;
        let request = &mut core.seen.requests[rq];
        let last = request.last_bio.expect("a request has bios");
        request.sectors += sectors;
        request.segments += segments;
        request.last_bio = last_bio;
        // The earlier start time is inherited (rule merge-4).
        request.allocated_at = request.allocated_at.min(allocated_at);
        if request.ioprio != ioprio {
            request.ioprio = request.ioprio.better(ioprio);
        }
        core.bios[last].next = first_bio;
        core.seen.requests[next].first_bio = None;
        core.seen.requests[next].last_bio = None;
    }

    /// Takes over what the scheduler let go during its last hook.
    // On the way of every request; the compiler would not choose to put it into its callers.
    #[inline(always)]
    pub(super) fn take_issued(&mut self, now: Instant, context: ContextId) {
        for index in 0..self.core.seen.wishes.issued.len() {
            let (rq, placement, reason) = self.core.seen.wishes.issued[index];
            self.core.guard.issue(&mut self.core.seen.requests[rq]);
            self.core.merge.remove(rq);
            self.core.log_request(now, context, Action::Dispatch(reason), rq);
            match &mut self.shape {
                ShapeState::Single(single) => single.place(&self.core.seen.requests, rq, placement),
                ShapeState::Multi(_) => self.core.context(context).collected.push_back(rq),
            }
        }
        self.core.seen.wishes.issued.clear();
    }

    /// The scheduler withheld what it has, and says for whom. With the device busy only those who
    /// ask are told.
    pub(super) fn note_hold(
        &mut self,
        now: Instant,
        context: ContextId,
        reason: HoldReason,
        is_idle: bool,
    ) {
        if !is_idle && !self.core.seen.log.tells_all() {
            return;
        }
        let waits_for = self.scheduler.as_ref().and_then(|scheduler| scheduler.waits_for());
        let action = match is_idle {
            true => Action::Hold { reason, waits_for },
            false => Action::HoldsBack { reason, waits_for },
        };
        self.core.log_note(now, context, action);
    }

    /// A request is gone: the scheduler forgets it, and what it occupied is given back.
    pub(super) fn free_request(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        if self.core.seen.requests[rq].bound {
            self.with_scheduler(now, context, |scheduler, cx| scheduler.finished(cx, rq));
            self.settle(now, context);
        }
        self.qos_done(now, rq);
        match &mut self.shape {
            ShapeState::Single(single) => single.release(&mut self.core, rq),
            ShapeState::Multi(multi) => multi.release(&mut self.core, rq),
        }
        let request = self.core.seen.requests.remove(rq);
        assert!(request.first_bio.is_none(), "a freed request still has bios");
        self.core.wake_all();
    }
}
