//! From a bio to a request, and on to the plug or the scheduler (rules request-3, plug, allocate
//! and hctx).
//!
//! A task that gets no request goes to sleep here, inside the queue: it joins the wait list, its
//! plug is flushed as for every task that blocks, and when it is woken it tries again.

use super::context::Frame;
use super::{Output, PlugFlush, RequestQueue, ShapeState, Work};
use crate::bio::{Bio, BioId, ContextId, Flags};
use crate::event::Action;
use crate::flush::{FlushSequence, data_flags};
use crate::kernel::{FlushData, PlugEnd, Plugging, TaskPlug};
use crate::plug::sort_for_flush;
use crate::request::{Request, RequestId, RequestState};
use crate::scheduler::InsertAt;
use base::Instant;

/// What a shape hands out with a new request.
pub(super) struct Allowance {
    /// The scheduler's tag (blk-mq with a scheduler).
    pub scheduler_tag: Option<u32>,
    /// The driver's tag (blk-mq without).
    pub driver_tag: Option<crate::command::Tag>,
    /// The hardware queue.
    pub hctx: u16,
}

impl RequestQueue {
    /// A task that got no request tries again.
    #[cold]
    pub(super) fn allocate_step(
        &mut self,
        now: Instant,
        context: ContextId,
        id: BioId,
        attempt: u8,
    ) -> Work {
        let bio = self.core.bios[id].bio;
        self.allocate(now, context, id, &bio, attempt)
    }

    /// Gets a request for a bio, or goes to sleep for one.
    pub(super) fn allocate(
        &mut self,
        now: Instant,
        context: ContextId,
        id: BioId,
        bio: &Bio,
        attempt: u8,
    ) -> Work {
        let woken = self.core.context(context).take_woken();
        if woken {
            self.resumed(now, context);
            if self.runs_queue_for_tag() {
                let retry = Frame::Allocate { bio: id, attempt: 1 };
                self.core.context(context).stack.push(retry);
                self.push_hctx_run(context, bio.origin.cpu);
                return Work::Housekeeping;
            }
        }
        let tries_again = woken || attempt > 0;
        let attempt = if woken { 0 } else { attempt };
        let allowance = self.allowance(now, context, bio);
        if let (true, ShapeState::Multi(multi)) = (tries_again, &mut self.shape) {
            multi.tried_again(context, bio, allowance.is_some());
        }
        match allowance {
            Some(allowance) => {
                self.build_request(now, context, id, bio, allowance);
                Work::Allocate
            }
            None => {
                self.wait_for_request(now, context, id, attempt);
                Work::Housekeeping
            }
        }
    }

    /// Asks the shape whether one more request may be allocated.
    fn allowance(&mut self, now: Instant, context: ContextId, bio: &Bio) -> Option<Allowance> {
        if self.core.change.is_some() {
            return None;
        }
        match &self.shape {
            ShapeState::Single(_) => self.single_allowance(now, context, bio),
            ShapeState::Multi(_) => self.multi_allowance(now, context, bio),
        }
    }

    /// Whether a task runs the hardware queue before it tries again to get a tag: when it got none
    /// and when it was woken (the second was observed on 6.12.117, and is assumed for the others).
    fn runs_queue_for_tag(&self) -> bool {
        self.core.change.is_none() && matches!(self.shape, ShapeState::Multi(_))
    }

    /// No request: blk-mq runs the hardware queue and tries once more; then the task sleeps.
    fn wait_for_request(&mut self, now: Instant, context: ContextId, id: BioId, attempt: u8) {
        let bio = self.core.bios[id].bio;
        if bio.flags.intersects(Flags::NOWAIT) {
            self.qos_cleanup(now, id);
            let record = self.core.bios.remove(id);
            assert!(record.parent.is_none(), "a NOWAIT bio is not split");
            let output = Output::WouldBlock { token: bio.token, context };
            self.core.outputs.push_back(output);
            return;
        }
        let retry = Frame::Allocate { bio: id, attempt: attempt + 1 };
        self.core.context(context).stack.push(retry);
        if attempt == 0 && self.runs_queue_for_tag() {
            self.push_hctx_run(context, bio.origin.cpu);
            return;
        }
        self.core.log_bio(now, Action::Sleep, id, None);
        if self.core.change.is_some() {
            // Whoever is the scheduler then is asked.
            self.core.context(context).limit = None;
            self.core.frozen.push(context);
        } else {
            self.join_waiters(context, id);
        }
        self.fall_asleep(context);
    }

    /// A task goes to sleep in the block layer; what it holds back goes out first.
    pub(super) fn fall_asleep(&mut self, context: ContextId) {
        let state = self.core.context(context);
        state.fall_asleep();
        if !state.plug.requests.is_empty() {
            state.stack.push(Frame::FlushPlug(PlugFlush::Blocks));
        }
        if self.is_device_plugged() {
            self.core.context(context).stack.push(Frame::Unplug { by_timer: false });
        }
    }

    fn build_request(
        &mut self,
        now: Instant,
        context: ContextId,
        id: BioId,
        bio: &Bio,
        with: Allowance,
    ) {
        let rq = self.new_request(now, context, id, bio, with);
        let frame = match self.holds_back(context, rq) {
            true => Frame::PlugAdd { rq, flushed: false },
            false => Frame::Insert(rq),
        };
        self.core.context(context).stack.push(frame);
    }

    /// Makes a request of a bio; the scheduler of the single queue binds it.
    pub(super) fn new_request(
        &mut self,
        now: Instant,
        context: ContextId,
        id: BioId,
        bio: &Bio,
        with: Allowance,
    ) -> RequestId {
        let core = &mut self.core;
        let segments = core.bios[id].segments;
        let facts = &core.seen.limits.facts;
        let sequence = bio
            .needs_flush_machinery()
            .then(|| FlushSequence::needed(bio.flags, bio.sectors, facts));
        let flags =
            if sequence.is_some() { data_flags(bio.op, bio.flags, facts) } else { bio.flags };
        let rq = core.seen.requests.insert(Request {
            op: bio.op,
            flags: flags.without(Flags::NOWAIT),
            sector: bio.sector,
            sectors: bio.sectors,
            ioprio: bio.ioprio,
            origin: bio.origin,
            allocated_at: now,
            issued_at: now,
            state: RequestState::Allocated,
            segments,
            first_bio: Some(id),
            last_bio: Some(id),
            no_merge: false,
            started: false,
            soft_barrier: false,
            bound: false,
            flush: sequence,
            in_flush_data: false,
            is_flush_command: false,
            qos: core.bios[id].qos,
            scheduler_tag: with.scheduler_tag,
            driver_tag: with.driver_tag,
            hctx: with.hctx,
        });
        let through_elevator = sequence.is_none() || self.flush_goes_through_elevator(rq);
        if through_elevator && matches!(self.shape, ShapeState::Single(_)) {
            self.bind(now, context, rq);
        }
        self.note_request_for(now, bio);
        self.core.log_request(now, context, Action::GetRequest, rq);
        rq
    }

    /// Whether a new request goes to the task's plug. Flush requests of blk-mq do not wait
    /// (rule flush-5).
    fn holds_back(&mut self, context: ContextId, rq: RequestId) -> bool {
        if !self.core.context(context).plug.is_active() || self.task_plug().is_none() {
            return false;
        }
        matches!(self.shape, ShapeState::Single(_)) || self.is_plain(rq)
    }

    /// Whether a new request goes the way of all others, which those do not that the flush
    /// machinery takes (rule flush-5).
    pub(super) fn is_plain(&self, rq: RequestId) -> bool {
        self.core.seen.requests[rq].flush.is_none() || self.flush_goes_through_elevator(rq)
    }

    #[inline(never)]
    pub(super) fn plug_add_step(
        &mut self,
        now: Instant,
        context: ContextId,
        rq: RequestId,
        flushed: bool,
    ) -> Work {
        if flushed {
            self.core.context(context).plug.forget_time();
        }
        let rules = self.task_plug().expect("only task plugs are added to");
        let queues = self.hardware_queues();
        let core = &mut self.core;
        let plug = &core.contexts[context.0 as usize].plug;
        if plug.is_full(&rules, &core.seen.requests, queues) {
            let stack = &mut core.contexts[context.0 as usize].stack;
            stack.push(Frame::PlugAdd { rq, flushed: true });
            stack.push(Frame::FlushPlug(PlugFlush::Explicit));
            return Work::Housekeeping;
        }
        if plug.requests.is_empty() {
            core.log_note(now, context, Action::Plug);
        }
        core.contexts[context.0 as usize].plug.hold(Some(now), rq);
        Work::Housekeeping
    }

    /// The plug of a single bio ends; what it held back is inserted.
    pub(super) fn end_plug_step(&mut self, context: ContextId) -> Work {
        let state = self.core.context(context);
        if state.plug.finish() && !state.plug.requests.is_empty() {
            state.stack.push(Frame::FlushPlug(PlugFlush::Explicit));
        }
        Work::Housekeeping
    }

    /// Takes the plug's list; the requests are inserted one by one by the next frame.
    #[inline(never)]
    pub(super) fn flush_plug_step(
        &mut self,
        now: Instant,
        context: ContextId,
        why: PlugFlush,
    ) -> Work {
        let sorts = self.task_plug().is_some_and(|rules| rules.sorts);
        let is_multi = matches!(self.shape, ShapeState::Multi(_));
        let core = &mut self.core;
        let state = &mut core.contexts[context.0 as usize];
        assert!(state.flushing.is_empty(), "a plug is flushed while its last list is inserted");
        if sorts {
            sort_for_flush(&mut state.plug.requests, &core.seen.requests);
        }
        let depth = state.plug.requests.len() as u32;
        for rq in &state.plug.requests {
            state.flushing.push_back(*rq);
        }
        state.plug.requests.clear();
        if depth > 0 {
            state.stack.push(Frame::Flushing { why, depth });
            if is_multi {
                core.log_note(now, context, unplug_action(why, depth));
            }
        }
        Work::Housekeeping
    }

    /// Inserts the next request of a flushed plug; after the last one the queue is run.
    #[inline(never)]
    pub(super) fn flushing_step(
        &mut self,
        now: Instant,
        context: ContextId,
        why: PlugFlush,
        depth: u32,
    ) -> Work {
        let Some(rq) = self.core.context(context).flushing.pop_front() else {
            self.run_after_flush(now, context, why, depth);
            return Work::Housekeeping;
        };
        self.core.context(context).stack.push(Frame::Flushing { why, depth });
        match &self.shape {
            ShapeState::Single(_) => self.insert(now, context, rq, true),
            ShapeState::Multi(_) => self.insert_from_plug(now, context, rq, why),
        }
        Work::Insert
    }

    fn run_after_flush(&mut self, now: Instant, context: ContextId, why: PlugFlush, depth: u32) {
        if matches!(self.shape, ShapeState::Single(_)) {
            self.core.log_note(now, context, unplug_action(why, depth));
        }
        // Divergence: where the driver is given a list newest first, events tell of it in the order
        // in which the disk hears of it.
        if self.issues_newest_first() {
            self.kick(context);
        }
        let cpu = self.core.seen.cpu_of(context);
        match why {
            PlugFlush::Explicit => self.push_hctx_run(context, cpu),
            PlugFlush::Blocks => self.request_worker(),
        }
    }

    /// A request without a plug: inserted at once, and the queue is run.
    pub(super) fn insert_step(&mut self, now: Instant, context: ContextId, rq: RequestId) -> Work {
        match &self.shape {
            ShapeState::Single(_) => self.insert_unplugged_single(now, context, rq),
            ShapeState::Multi(_) => self.insert_unplugged_multi(now, context, rq),
        }
        Work::Insert
    }

    /// Gives a request to the flush machinery or the scheduler; `merge`: it may be absorbed.
    // On the way of every request; the compiler would not choose to put it into its callers.
    #[inline(always)]
    pub(super) fn insert(&mut self, now: Instant, context: ContextId, rq: RequestId, merge: bool) {
        if self.is_plain(rq) {
            self.note_flush_data(rq);
            self.insert_into_scheduler(now, context, rq, InsertAt::Sorted, merge);
        } else {
            self.insert_flush(now, rq);
        }
    }

    /// Data that a flush follows are on their way, which other flushes wait for.
    // Observed on 6.1.192, 6.12.117 and 7.3.4: of sixteen writes with FUA at once, each flushed
    // behind, one flush comes when the last is done.
    pub(super) fn note_flush_data(&mut self, rq: RequestId) {
        if self.core.seen.requests[rq].flush.is_some_and(|it| it.after) {
            self.count_flush_data(rq);
        }
    }

    /// Whether a request with a flush sequence starts with plain data that recent kernels give to
    /// the scheduler (rule flush-2).
    pub(super) fn flush_goes_through_elevator(&self, rq: RequestId) -> bool {
        let Some(sequence) = self.core.seen.requests[rq].flush else { return false };
        sequence.data
            && !sequence.before
            && match self.core.seen.kernel.flush_data {
                FlushData::BypassesElevator => false,
                FlushData::AloneThroughElevator => !sequence.after,
                FlushData::ThroughElevator => true,
            }
    }

    /// The rules of task plugs, if this kernel has them.
    pub(super) fn task_plug(&self) -> Option<TaskPlug> {
        match &self.shape {
            ShapeState::Single(single) => match single.rules().plugging {
                Plugging::Task(rules) => Some(rules),
                Plugging::Device { .. } => None,
            },
            ShapeState::Multi(multi) => Some(multi.rules().plug),
        }
    }

    /// Whether the driver is given a plug that ends as a list, newest first.
    pub(super) fn issues_newest_first(&self) -> bool {
        let rules = self.task_plug().filter(|_| self.scheduler.is_none());
        rules.is_some_and(|rules| rules.issues_first == PlugEnd::Newest)
    }

    fn hardware_queues(&self) -> usize {
        match &self.shape {
            ShapeState::Single(_) => 1,
            ShapeState::Multi(multi) => multi.hctx_count(),
        }
    }

    fn join_waiters(&mut self, context: ContextId, id: BioId) {
        let bio = self.core.bios[id].bio;
        match &mut self.shape {
            ShapeState::Single(single) => single.join_waiters(context, &bio),
            ShapeState::Multi(multi) => multi.join_waiters(context, &bio),
        }
    }

    fn resumed(&mut self, now: Instant, context: ContextId) {
        if matches!(self.shape, ShapeState::Single(_)) {
            self.start_batch(now, context);
        }
    }
}

fn unplug_action(why: PlugFlush, depth: u32) -> Action {
    match why {
        PlugFlush::Explicit => Action::Unplug { depth },
        PlugFlush::Blocks => Action::TimerUnplug { depth },
    }
}
