//! Completions, requeues, the flush machinery, and telling submitters (rules request-4, request-6,
//! dispatch-list and flush).

use super::context::Frame;
use super::flush::FlushMachine;
use super::{Output, RequestQueue, ShapeState, Work};
use crate::bio::{BioId, BioRecord, ContextId, Flags, Op};
use crate::command::Tag;
use crate::event::Action;
use crate::flush::FlushStep;
use crate::kernel::FlushData;
use crate::qos::Mark;
use crate::request::{Request, RequestId, RequestState};
use crate::scheduler::{InsertAt, Placement};
use alloc::vec::Vec;
use base::{Duration, Instant, Sector, Sectors};

/// A queue whose device refused a request is run again after this time (rule request-11).
const RETRY: Duration = Duration::from_millis(3);

impl RequestQueue {
    pub(super) fn complete_step(&mut self, now: Instant, context: ContextId, tag: Tag) -> Work {
        self.push_run_after_completion(context);
        let rq = self.take_from_driver(tag);
        self.core.in_flight -= 1;
        let request = &self.core.seen.requests[rq];
        let (issued, is_flush_command) = (request.issued_at, request.is_flush_command);
        let has_sequence = request.flush.is_some();
        self.core.qos.completed(now, request);
        self.core.log_request(now, context, Action::Complete { issued }, rq);
        if is_flush_command {
            self.flush_command_done(now, context, rq);
        } else if has_sequence {
            self.flush_data_done(now, context, rq);
        } else {
            self.tell_completed(now, context, rq);
            self.end_request(now, context, rq);
        }
        if matches!(self.shape, ShapeState::Multi(_)) {
            self.restart_hardware_queues();
        }
        Work::Complete
    }

    /// The single queue is run by the completion itself, before submitters are told (rule
    /// dispatch-list-6); blk-mq is run by a worker, if a hardware queue is marked.
    fn push_run_after_completion(&mut self, context: ContextId) {
        if matches!(self.shape, ShapeState::Single(_)) {
            self.remove_device_plug();
            let stack = &mut self.core.context(context).stack;
            stack.push(Frame::Deliver);
            stack.push(Frame::RunSingle);
        }
    }

    /// The request that the device has under a tag.
    pub fn issued_as(&self, Tag(tag): Tag) -> Option<RequestId> {
        match &self.shape {
            ShapeState::Single(single) => single.issued_as(tag),
            ShapeState::Multi(multi) => multi.issued_as(tag),
        }
    }

    fn take_from_driver(&mut self, tag: Tag) -> RequestId {
        match &self.shape {
            ShapeState::Single(_) => self.take_from_single(tag),
            ShapeState::Multi(_) => self.take_from_multi(tag),
        }
    }

    // On the way of every request; the compiler would not choose to put it into its callers.
    #[inline(always)]
    pub(super) fn tell_completed(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        if self.core.seen.requests[rq].bound {
            self.with_scheduler(now, context, |scheduler, cx| scheduler.completed(cx, rq));
            self.settle(now, context);
        }
    }

    /// The request is done: its bios are delivered, by the single queue after its run, by blk-mq
    /// before anybody who waits for a tag is woken (observed on 6.12).
    pub(super) fn end_request(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        let request = &mut self.core.seen.requests[rq];
        let first = request.first_bio.take().expect("a request has bios");
        let issued_at = request.issued_at;
        request.last_bio = None;
        self.core.context(context).done.push_back((first, issued_at));
        if matches!(self.shape, ShapeState::Multi(_)) {
            self.deliver(now, context);
        }
        self.free_request(now, context, rq);
    }

    /// Tells the submitters of everything this context has finished.
    pub(super) fn deliver(&mut self, now: Instant, context: ContextId) -> Work {
        while let Some((first, issued_at)) = self.core.context(context).done.pop_front() {
            self.deliver_chain(now, first, issued_at);
        }
        Work::Deliver
    }

    /// Tells the submitters of a chain of bios.
    fn deliver_chain(&mut self, now: Instant, first: BioId, issued_at: Instant) {
        let mut next = Some(first);
        while let Some(id) = next {
            let record = &self.core.bios[id];
            next = record.next;
            match record.parent {
                None => self.bio_done(now, id, issued_at),
                Some(whole) => self.part_done(now, id, whole, issued_at),
            }
        }
    }

    /// A part of a split bio is done, and perhaps the whole.
    fn part_done(&mut self, now: Instant, part: BioId, whole: BioId, issued_at: Instant) {
        self.core.bios.remove(part);
        let record = &mut self.core.bios[whole];
        record.parts_left -= 1;
        record.issued_at = record.issued_at.max(issued_at);
        if record.parts_left == 0 {
            let last_issued_at = record.issued_at;
            self.bio_done(now, whole, last_issued_at);
        }
    }

    fn bio_done(&mut self, now: Instant, id: BioId, issued: Instant) {
        let BioRecord { bio, queued_at, owner, .. } = &self.core.bios[id];
        let (token, context) = (bio.token, *owner);
        let action = Action::BioDone { queued: *queued_at, issued };
        self.core.log_bio(now, action, id, None);
        self.core.bios.remove(id);
        self.core.outputs.push_back(Output::BioDone { token, context });
    }

    #[cold]
    pub(super) fn requeue_step(&mut self, now: Instant, context: ContextId, tag: Tag) -> Work {
        let rq = self.take_from_driver(tag);
        self.core.in_flight -= 1;
        self.core.qos.requeued(rq);
        self.core.log_request(now, context, Action::Requeue, rq);
        match &self.shape {
            ShapeState::Single(_) => self.requeue_single(now, context, rq),
            ShapeState::Multi(_) => self.requeue_multi(now, context, rq),
        }
        Work::Housekeeping
    }

    pub(super) fn requeue_single(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        if self.core.seen.requests[rq].bound {
            self.with_scheduler(now, context, |scheduler, cx| scheduler.deactivated(cx, rq));
            self.settle(now, context);
        }
        let request = &mut self.core.seen.requests[rq];
        request.started = false;
        request.soft_barrier = true;
        self.core.guard.requeue_bypassing(request);
        self.core.log_request(now, context, Action::Insert, rq);
        self.place_front(rq);
        self.core.outputs.push_back(Output::RunWorker { after: RETRY });
    }

    pub(super) fn requeue_multi(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        let was_bound = self.core.seen.requests[rq].bound;
        if was_bound {
            self.with_scheduler(now, context, |scheduler, cx| scheduler.requeued(cx, rq));
            self.settle(now, context);
            let request = &mut self.core.seen.requests[rq];
            request.bound = false;
            request.started = false;
            self.core.guard.requeue(request);
            self.insert_into_scheduler(now, context, rq, InsertAt::Head, false);
        } else {
            let request = &mut self.core.seen.requests[rq];
            request.started = false;
            self.core.guard.requeue_bypassing(request);
            self.place_front(rq);
        }
        self.request_worker();
    }

    /// A request goes before everything else that waits outside the scheduler.
    fn place_front(&mut self, rq: RequestId) {
        match &mut self.shape {
            ShapeState::Single(single) => single.place_front(rq),
            ShapeState::Multi(multi) => multi.requeue(&self.core.seen.requests, rq),
        }
    }

    /// The worker inserts what was requeued: at the head of the residual list, in the order in
    /// which it came, but the data of a flush sequence at that of the scheduler, where they go
    /// through it.
    // Observed on 6.12: block_rq_insert of the worker, and what is issued first when others wait.
    // On 6.1.192: in which order the worker issues writes with FUA of four tasks, and flushes.
    pub(super) fn insert_requeued(&mut self, now: Instant, context: ContextId) {
        let ShapeState::Multi(multi) = &mut self.shape else { return };
        let through_elevator = self.core.seen.kernel.flush_data == FlushData::ThroughElevator
            && self.scheduler.is_some();
        let requests = &mut self.core.seen.requests;
        let is_data = |rq: &RequestId| through_elevator && requests[*rq].in_flush_data;
        let (data, others): (Vec<_>, Vec<_>) = multi.take_requeued().into_iter().partition(is_data);
        for rq in others.into_iter().rev() {
            multi.place_front(requests, rq);
        }
        for rq in data {
            self.core.seen.requests[rq].state = RequestState::Allocated;
            self.insert_into_scheduler(now, context, rq, InsertAt::Head, false);
        }
    }

    /// A request begins its way through the flush machinery.
    pub(super) fn insert_flush(&mut self, now: Instant, rq: RequestId) {
        let sequence = self.core.seen.requests[rq].flush.expect("a flush sequence");
        self.core.seen.requests[rq].state = RequestState::Dispatched;
        match sequence.next() {
            Some(FlushStep::Before) => self.flush_of(rq).wait(now, rq),
            Some(FlushStep::Data) if sequence.after => {
                self.count_flush_data(rq);
                self.place_front(rq);
            }
            Some(FlushStep::Data) => match &mut self.shape {
                ShapeState::Single(single) => {
                    single.place(&self.core.seen.requests, rq, Placement::Tail);
                }
                ShapeState::Multi(multi) => multi.append(&self.core.seen.requests, rq),
            },
            _ => unreachable!("a sequence without steps is not built: {sequence:?}"),
        }
        self.kick_flush(now, rq);
    }

    /// The data of a flush sequence are on their way.
    pub(super) fn count_flush_data(&mut self, rq: RequestId) {
        self.core.seen.requests[rq].in_flush_data = true;
        self.flush_of(rq).data_in_flight += 1;
    }

    /// The data of a flush sequence is on the device.
    #[inline(never)]
    fn flush_data_done(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        let request = &mut self.core.seen.requests[rq];
        let through_elevator = request.bound;
        let counted = core::mem::take(&mut request.in_flush_data);
        let sequence = request.flush.as_mut().expect("a flush sequence");
        sequence.advance();
        let next = sequence.next();
        if counted {
            self.flush_of(rq).data_in_flight -= 1;
        }
        if through_elevator {
            self.tell_completed(now, context, rq);
            self.with_scheduler(now, context, |scheduler, cx| scheduler.finished(cx, rq));
            self.settle(now, context);
            self.core.seen.requests[rq].bound = false;
        }
        match next {
            Some(FlushStep::After) => {
                self.core.seen.requests[rq].state = RequestState::Dispatched;
                self.flush_of(rq).wait(now, rq);
            }
            None => {
                self.kick_flush(now, rq);
                self.tell_flushed(now, context, rq);
                self.end_request(now, context, rq);
                return;
            }
            Some(step) => unreachable!("{step:?} does not follow data"),
        }
        self.kick_flush(now, rq);
    }

    fn tell_flushed(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        let request = &self.core.seen.requests[rq];
        let (since, has_data) = (request.allocated_at, !request.sectors.is_zero());
        if matches!(self.shape, ShapeState::Multi(_)) {
            self.with_scheduler(now, context, |scheduler, cx| {
                scheduler.flushed(cx, since, has_data);
            });
        }
    }

    /// A flush command is done: everybody it served advances, one after the other. After each the
    /// next flush may begin, before the data of those behind it are on their way.
    // Observed on 6.12.117, block_rq_insert and block_rq_issue: a flush has served an fsync and
    // then the log; the next one is issued before the log's data. The specification has everybody
    // advance together (9.8, 3). Of older kernels nothing was observed.
    #[inline(never)]
    fn flush_command_done(&mut self, now: Instant, context: ContextId, command: RequestId) {
        let machine = self.flush_of(command);
        assert_eq!(machine.command.take(), Some(command), "another flush was under way");
        let served = core::mem::take(&mut machine.running);
        for rq in served.iter().copied() {
            let request = &mut self.core.seen.requests[rq];
            let sequence = request.flush.as_mut().expect("a flush sequence");
            sequence.advance();
            match sequence.next() {
                Some(FlushStep::Data) => {
                    self.count_flush_data(rq);
                    self.place_front(rq);
                }
                None => {
                    let issued = self.core.seen.requests[command].issued_at;
                    self.core.seen.requests[rq].issued_at = issued;
                    self.core.log_flushed(now, context, issued, rq);
                    self.tell_flushed(now, context, rq);
                    self.end_request(now, context, rq);
                    // Observed on 6.12.117, block_rq_issue: the worker first issues what waited for
                    // a tag, and then comes to the next flush.
                    self.restart_hardware_queues();
                }
                Some(step) => unreachable!("{step:?} does not follow a flush"),
            }
            self.kick_flush(now, command);
        }
        self.flush_of(command).reuse(served);
        self.core.seen.requests.remove(command);
        self.mark_for_run();
    }

    /// Issues a flush command if one is due.
    fn kick_flush(&mut self, now: Instant, near: RequestId) {
        let waits = self.flush_waits_for_data();
        if !self.flush_of(near).should_start(now, waits) {
            return;
        }
        let first = self.flush_of(near).pending[0];
        let (origin, ioprio, hctx) = {
            let request = &self.core.seen.requests[first];
            (request.origin, request.ioprio, request.hctx)
        };
        let command = self.core.seen.requests.insert(Request {
            op: Op::Write,
            flags: Flags::PREFLUSH.with(Flags::SYNC),
            sector: Sector(0),
            sectors: Sectors(0),
            ioprio,
            origin,
            allocated_at: now,
            issued_at: now,
            state: RequestState::Dispatched,
            segments: 0,
            first_bio: None,
            last_bio: None,
            no_merge: true,
            started: false,
            soft_barrier: false,
            bound: false,
            flush: None,
            in_flush_data: false,
            is_flush_command: true,
            qos: Mark::Nothing,
            scheduler_tag: None,
            driver_tag: None,
            hctx,
        });
        self.flush_of(near).start(command);
        match &mut self.shape {
            ShapeState::Single(single) => single.append(command),
            ShapeState::Multi(multi) => multi.place_flush(&mut self.core, command, first),
        }
        self.mark_for_run();
    }

    fn flush_waits_for_data(&self) -> bool {
        match &self.shape {
            ShapeState::Single(_) => true,
            ShapeState::Multi(multi) => multi.rules().flush_waits || self.scheduler.is_none(),
        }
    }

    fn flush_of(&mut self, rq: RequestId) -> &mut FlushMachine {
        match &mut self.shape {
            ShapeState::Single(single) => &mut single.flush,
            ShapeState::Multi(multi) => multi.flush_of(self.core.seen.requests[rq].hctx),
        }
    }

    /// The flush machinery put something into a list: blk-mq lets a worker run it, the single queue
    /// is run by whoever is at work anyway.
    fn mark_for_run(&mut self) {
        if matches!(self.shape, ShapeState::Multi(_)) {
            self.request_worker();
        }
    }
}
