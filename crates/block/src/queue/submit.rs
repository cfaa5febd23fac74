//! A bio enters: splitting to the device's limits, merging into a plug, a software queue or the
//! scheduler, and else on to the allocation of a request (rules request-3 and request-5).

use super::context::Frame;
use super::{Core, Output, RequestQueue, ShapeState, Work};
use crate::bio::{Bio, BioId, BioRecord, ContextId, Flags, Op};
use crate::event::Action;
use crate::merge::may_merge_bio;
use crate::qos::Mark;
use crate::request::RequestId;
use crate::scheduler::{COMPARED, Merge};
use crate::segments::Segments;
use crate::throttle::passage::Passage;
use base::{Instant, Sectors};

impl RequestQueue {
    pub(super) fn submit_step(&mut self, now: Instant, context: ContextId, id: BioId) -> Work {
        let core = &mut self.core;
        let record = &mut core.bios[id];
        if record.bio.needs_flush_machinery() && !core.seen.limits.facts.volatile_cache {
            // There is nothing to flush: the flags are taken off, and a pure flush is done before
            // it began.
            let is_pure_flush = record.bio.sectors.is_zero();
            record.bio.flags = record.bio.flags.without(Flags::PREFLUSH.with(Flags::FUA));
            if is_pure_flush {
                core.context(context).done.push_back((id, now));
                self.deliver(now, context);
                return Work::Bio;
            }
        }
        if self.waits_for_limits(now, context, id) {
            return Work::Bio;
        }
        let core = &mut self.core;
        let record = &core.bios[id];
        let most = record.largest_part(&core.seen.limits);
        let id = if record.bio.sectors <= most || record.bio.op == Op::Discard {
            if record.parent.is_none() || !core.seen.kernel.splits_bios {
                core.log_bio(now, Action::Queue, id, None);
            }
            id
        } else if record.bio.flags.intersects(Flags::NOWAIT) {
            // Its parts might have to sleep.
            let token = record.bio.token;
            core.outputs.push_back(Output::WouldBlock { token, context });
            core.bios.remove(id);
            return Work::Bio;
        } else {
            self.split(now, context, id, most)
        };
        self.plug_single_bio(context);
        let &BioRecord { bio, segments, .. } = &self.core.bios[id];
        self.push_sync_unplug(context, &bio);
        if self.merge_bio(now, context, id, &bio, segments) {
            return Work::Bio;
        }
        if self.must_wait(now, context, id, &bio) {
            return Work::Housekeeping;
        }
        self.allocate(now, context, id, &bio, 0)
    }

    /// A bio without a plug gets one of its own, if the kernel does so.
    fn plug_single_bio(&mut self, context: ContextId) {
        let plugs = match &self.shape {
            ShapeState::Multi(multi) => multi.rules().plugs_each_bio,
            ShapeState::Single(_) => false,
        };
        let state = self.core.context(context);
        if plugs && !state.plug.is_active() {
            state.plug.start();
            state.stack.push(Frame::EndPlug);
        }
    }

    /// Cuts off the first `most` sectors, which the device can take at once, and returns them. The
    /// rest is submitted again after them (rule request-7).
    #[cold]
    fn split(&mut self, now: Instant, context: ContextId, id: BioId, most: Sectors) -> BioId {
        let splits = self.core.seen.kernel.splits_bios;
        if splits && self.core.bios[id].parent.is_none() {
            self.core.log_bio(now, Action::Queue, id, None);
        }
        let limits = &self.core.seen.limits;
        let record = &mut self.core.bios[id];
        let (bio, parent, queued_at) = (record.bio, record.parent, record.queued_at);
        let owner = record.owner;
        let first_pieces = record.pieces.cut(most);
        let rest_pieces = core::mem::take(&mut record.pieces);
        let (mut first, mut rest) = (bio, bio);
        first.sectors = most;
        if splits {
            first.flags = first.flags.with(Flags::NOMERGE);
        }
        rest.sector = bio.sector + most;
        rest.sectors = bio.sectors - most;
        let whole = parent.unwrap_or(id);
        let part = |bio: Bio, pieces: Segments| BioRecord {
            bio,
            segments: pieces.segments(bio.sectors, limits),
            pieces,
            queued_at,
            issued_at: now,
            owner,
            passage: Passage::Paid,
            qos: Mark::Nothing,
            next: None,
            parent: Some(whole),
            parts_left: 1,
        };
        let rest_id = if parent.is_none() {
            self.core.bios[id].parts_left = 2;
            self.core.bios.insert(part(rest, rest_pieces))
        } else {
            self.core.bios[whole].parts_left += 1;
            let record = &mut self.core.bios[id];
            record.bio = rest;
            record.segments = rest_pieces.segments(rest.sectors, limits);
            record.pieces = rest_pieces;
            record.passage = Passage::Paid;
            id
        };
        let first_id = self.core.bios.insert(part(first, first_pieces));
        self.core.context(context).stack.push(Frame::Submit(rest_id));
        let action = if splits { Action::Split { rest: rest.sector } } else { Action::Queue };
        self.core.log_bio(now, action, first_id, None);
        first_id
    }

    /// Tries every place a bio may be merged into, in the kernel's order.
    fn merge_bio(
        &mut self,
        now: Instant,
        context: ContextId,
        id: BioId,
        bio: &Bio,
        segments: u16,
    ) -> bool {
        if !bio.is_mergeable() || self.core.seen.limits.nomerges == 2 {
            return false;
        }
        if let Some((rq, merge)) = self.find_in_plug(context, bio, segments) {
            self.absorb_bio(now, rq, id, merge);
            return true;
        }
        let found = self.find_beyond_plug(now, context, bio, segments);
        if let Some((rq, merge)) = found {
            self.absorb_bio(now, rq, id, merge);
            if self.scheduler.is_some() {
                self.bio_merged(now, context, rq, bio, merge);
            }
        }
        found.is_some()
    }

    /// A request of the task's plug that the bio is to be merged into.
    pub(super) fn find_in_plug(
        &mut self,
        context: ContextId,
        bio: &Bio,
        segments: u16,
    ) -> Option<(RequestId, Merge)> {
        if self.core.context(context).plug.requests.is_empty() {
            return None;
        }
        let rules = self.task_plug()?;
        let mut tried = 0;
        loop {
            let plug = &self.core.context(context).plug;
            let rq = plug.candidates(&rules).nth(tried)?;
            tried += 1;
            if let Some(merge) = self.adjacency(rq, bio)
                && self.fits(rq, bio, segments)
            {
                return Some((rq, merge));
            }
        }
    }

    /// A request of the scheduler, or without one of a software queue, that the bio is to be
    /// merged into.
    pub(super) fn find_beyond_plug(
        &mut self,
        now: Instant,
        context: ContextId,
        bio: &Bio,
        segments: u16,
    ) -> Option<(RequestId, Merge)> {
        let found = if self.scheduler.is_some() {
            self.with_scheduler(now, context, |scheduler, cx| scheduler.bio_submitted(cx, bio));
            self.settle(now, context);
            match self.has_index() {
                // The scheduler is asked once more before the two become one. (Observed on 4.19.79,
                // 6.1.192, 6.12.117 and 7.3.4.)
                true => self
                    .find_merge(now, context, bio)
                    .filter(|(rq, _)| self.scheduler_allows(now, context, *rq, bio)),
                false => self.find_recent(bio),
            }
        } else {
            self.find_in_software_queue(bio)
        };
        found.filter(|(rq, _)| self.fits(*rq, bio, segments))
    }

    /// The look-up of rules merge: one-hit cache, back merges by hash, the scheduler's front merge.
    fn find_merge(
        &mut self,
        now: Instant,
        context: ContextId,
        bio: &Bio,
    ) -> Option<(RequestId, Merge)> {
        // The scheduler is asked before anybody looks whether the two touch. Observed on 6.12.117:
        // BFQ merges two queues then ("merging with queue" behind Q).
        if let Some(rq) = self.core.merge.last_merge()
            && may_merge_bio(self.core.seen.kernel, &self.core.seen.requests[rq], bio)
            && self.scheduler_allows(now, context, rq, bio)
            && let Some(merge) = self.adjacency(rq, bio)
        {
            return Some((rq, merge));
        }
        if self.core.seen.limits.nomerges == 1 {
            return None;
        }
        if let Some(rq) = self.core.merge.ending_at(&self.core.seen.requests, bio.sector)
            && may_merge_bio(self.core.seen.kernel, &self.core.seen.requests[rq], bio)
            && self.scheduler_allows(now, context, rq, bio)
        {
            return Some((rq, Merge::Back));
        }
        let rq =
            self.with_scheduler(now, context, |scheduler, cx| scheduler.front_merge(cx, bio))??;
        let allowed = self.adjacency(rq, bio) == Some(Merge::Front)
            && self.scheduler_allows(now, context, rq, bio);
        allowed.then_some((rq, Merge::Front))
    }

    fn scheduler_allows(
        &mut self,
        now: Instant,
        context: ContextId,
        rq: RequestId,
        bio: &Bio,
    ) -> bool {
        let answer = self.with_scheduler_in_task(now, context, |scheduler, cx| {
            scheduler.allow_bio_merge(cx, rq, bio)
        });
        answer == Some(true)
    }

    /// Without a scheduler: the last few requests of the submitting core's software queue; the
    /// first adjacent one decides (rule none-5).
    fn find_in_software_queue(&self, bio: &Bio) -> Option<(RequestId, Merge)> {
        let ShapeState::Multi(multi) = &self.shape else { return None };
        multi
            .software_queue_from_newest(bio.origin.cpu)
            .take(COMPARED)
            .find_map(|rq| Some((rq, self.adjacency(rq, bio)?)))
    }

    /// The same among the last few requests of a list of the scheduler.
    fn find_recent(&self, bio: &Bio) -> Option<(RequestId, Merge)> {
        let newest = self.scheduler.as_deref()?.recent(bio)?.iter().rev().take(COMPARED);
        newest.copied().find_map(|rq| Some((rq, self.adjacency(rq, bio)?)))
    }

    /// On which end of the request the bio could be merged; `None` when they are not adjacent or
    /// not of one kind.
    #[inline]
    fn adjacency(&self, rq: RequestId, bio: &Bio) -> Option<Merge> {
        let request = &self.core.seen.requests[rq];
        let merge = if request.end() == bio.sector {
            Merge::Back
        } else if request.sector == bio.end() {
            Merge::Front
        } else {
            return None;
        };
        may_merge_bio(self.core.seen.kernel, request, bio).then_some(merge)
    }

    /// Whether the limits allow it; if not, the request is never merged into again (rule
    /// request-8).
    fn fits(&mut self, rq: RequestId, bio: &Bio, segments: u16) -> bool {
        let (request, limits) = (&self.core.seen.requests[rq], &self.core.seen.limits);
        let segments = request.segments + segments;
        let sector = request.sector.min(bio.sector);
        let fits = limits.allows(sector, request.sectors + bio.sectors, segments);
        if !fits {
            self.core.seen.requests[rq].no_merge = true;
            if self.core.merge.last_merge() == Some(rq) {
                self.core.merge.remove(rq);
            }
        }
        fits
    }

    /// Makes the bio part of the request.
    pub(super) fn absorb_bio(&mut self, now: Instant, rq: RequestId, id: BioId, merge: Merge) {
        let core = &mut self.core;
        let &BioRecord { bio, segments, .. } = &core.bios[id];
        let request = &mut core.seen.requests[rq];
        request.sectors += bio.sectors;
        request.segments += segments;
        if request.ioprio != bio.ioprio {
            request.ioprio = request.ioprio.better(bio.ioprio);
        }
        let action = match merge {
            Merge::Back => {
                let last = request.last_bio.replace(id).expect("a request has bios");
                core.bios[last].next = Some(id);
                Action::BackMerge
            }
            Merge::Front => {
                request.sector = bio.sector;
                core.bios[id].next = request.first_bio.replace(id);
                Action::FrontMerge
            }
        };
        core.log_bio(now, action, id, Some(rq));
    }

    /// On kernels where every bio with SYNC unplugs the device, it does so after it is in (rule
    /// device-plug-2). Plain reads have no such flag, readahead least of all (rule readahead-13).
    fn push_sync_unplug(&mut self, context: ContextId, bio: &Bio) {
        if self.unplugs_on_sync() && bio.flags.intersects(Flags::SYNC) {
            let frame = Frame::Unplug { by_timer: false };
            self.core.context(context).stack.push(frame);
        }
    }
}

impl Core {
    /// A bio that has come in from outside.
    #[inline]
    pub(super) fn keep_bio(&mut self, now: Instant, bio: Bio, pieces: Segments) -> BioId {
        self.bios.insert(BioRecord {
            bio,
            segments: pieces.segments(bio.sectors, &self.seen.limits),
            pieces,
            queued_at: now,
            issued_at: now,
            owner: bio.origin.context,
            passage: Passage::New,
            qos: Mark::Nothing,
            next: None,
            parent: None,
            parts_left: 1,
        })
    }
}
