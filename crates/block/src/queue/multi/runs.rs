//! A run of a hardware queue: the residual list, then what the scheduler or the software queues
//! give, is issued to the driver until something is lacking (rules hctx).

use crate::bio::ContextId;
use crate::command::Tag;
use crate::event::Action;
use crate::input::Input;
use crate::kernel::{AfterHold, Dequeue};
use crate::queue::context::Frame;
use crate::queue::output::command_of;
use crate::queue::{Output, RequestQueue, ShapeState, Work};
use crate::request::{RequestId, RequestState};
use crate::scheduler::{Dispatched, HctxId};
use base::{Duration, Instant};

/// A run of one hardware queue, as far as it has come.
#[derive(Clone, Copy, Debug)]
pub(in crate::queue) struct RunMulti {
    hctx: u16,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Look at the residual list.
    Start,
    /// The residual list is being issued.
    Residual,
    /// Requests are being collected.
    Collect,
    /// What was collected is being issued.
    Issue,
}

/// What one round of a run did, and how the run goes on, unless it is over.
type Round = (Work, Option<RunMulti>);

impl RunMulti {
    pub(super) fn new(hctx: u16) -> RunMulti {
        RunMulti { hctx, phase: Phase::Start }
    }

    /// Whether collected requests go to the driver now.
    pub fn is_issuing(self) -> bool {
        matches!(self.phase, Phase::Residual | Phase::Issue)
    }
}

impl RequestQueue {
    /// Runs the hardware queue of a core in this context.
    #[inline]
    pub(in crate::queue) fn push_hctx_run(&mut self, context: ContextId, cpu: u16) {
        let frame = match &self.shape {
            ShapeState::Single(_) => Frame::RunSingle,
            ShapeState::Multi(multi) => Frame::RunMulti(RunMulti::new(multi.hctx_of(cpu))),
        };
        self.core.push_frame(context, cpu, frame);
    }

    /// Goes on with a run, until it is over or these pieces of work are done.
    pub(in crate::queue) fn run_multi(
        &mut self,
        now: Instant,
        context: ContextId,
        mut run: RunMulti,
        pieces: &mut u32,
    ) -> Work {
        loop {
            let (work, next) = match run.phase {
                Phase::Start => self.start_run(now, context, run),
                Phase::Residual | Phase::Issue => self.issue_step(now, context, run),
                Phase::Collect => self.collect_step(now, context, run),
            };
            let Some(next) = next else { return work };
            if *pieces == 1 {
                self.core.context(context).stack.push(Frame::RunMulti(next));
                return work;
            }
            self.after_step(now);
            *pieces -= 1;
            self.core.recorder.push(|| Input::Step(now, context));
            run = next;
        }
    }

    /// The residual list goes first; only when it was emptied is the scheduler asked.
    fn start_run(&mut self, now: Instant, context: ContextId, run: RunMulti) -> Round {
        let ShapeState::Multi(multi) = &mut self.shape else { panic!("this is a single queue") };
        if multi.cannot_issue_residual(&self.core.seen.requests, run.hctx) {
            multi.hctxs[usize::from(run.hctx)].restart = true;
            multi.note_busy(run.hctx, true);
            return (Work::Housekeeping, None);
        }
        let hctx = &mut multi.hctxs[usize::from(run.hctx)];
        let residual = &mut hctx.residual;
        multi.budget += residual.len() as u32;
        // Rule hctx-8.
        hctx.restart |= !residual.is_empty();
        let state = self.core.context(context);
        while let Some(rq) = residual.pop_front() {
            state.collected.push_back(rq);
        }
        if state.collected.is_empty() {
            return self.collect_step(now, context, RunMulti { phase: Phase::Collect, ..run });
        }
        (Work::Housekeeping, Some(RunMulti { phase: Phase::Residual, ..run }))
    }

    /// Takes one request from the scheduler, or what there is from the software queues.
    fn collect_step(&mut self, now: Instant, context: ContextId, run: RunMulti) -> Round {
        let goes_on = if self.scheduler.is_some() {
            self.collect_from_scheduler(now, context, run)
        } else {
            self.collect_from_software(context, run);
            false
        };
        let phase = match (goes_on, self.core.context(context).collected.is_empty()) {
            (true, _) => Phase::Collect,
            (false, false) => Phase::Issue,
            (false, true) => return (Work::Dispatch, None),
        };
        (Work::Dispatch, Some(RunMulti { phase, ..run }))
    }

    /// One request with budget and driver tag; false when collecting ends here (rule hctx-3).
    fn collect_from_scheduler(&mut self, now: Instant, context: ContextId, run: RunMulti) -> bool {
        let hctx = HctxId(run.hctx);
        let work = self.scheduler.as_ref().is_some_and(|scheduler| scheduler.has_work(hctx));
        if !work || !self.multi().get_budget(run.hctx) {
            return false;
        }
        let dispatched = self.with_scheduler_in_task(now, context, |scheduler, cx| {
            scheduler.dispatch(cx, hctx, false)
        });
        match dispatched.expect("there is a scheduler") {
            Dispatched::Some(count) => {
                assert_eq!(count, 1, "a scheduler of blk-mq lets one request go at a time");
                assert_eq!(self.core.seen.wishes.issued.len(), 1, "miscounted dispatch");
            }
            Dispatched::Hold(reason) => {
                assert!(self.queued() > 0, "withheld although nothing is queued");
                self.multi().budget -= 1;
                self.run_after_hold(now, run.hctx);
                let idle = self.core.in_flight == 0;
                let is_idle = idle && self.core.context(context).collected.is_empty();
                self.note_hold(now, context, reason, is_idle);
                self.settle(now, context);
                return false;
            }
            Dispatched::Empty => {
                self.multi().budget -= 1;
                self.settle(now, context);
                return false;
            }
        }
        self.settle_collected(now, context, run)
    }

    /// The scheduler withheld: the hardware queue is run again at some time.
    fn run_after_hold(&mut self, now: Instant, hctx: u16) {
        let tick = self.core.seen.kernel.hz.tick().as_nanos();
        let multi = self.multi();
        let after_hold = multi.rules.after_hold;
        let hctx = &mut multi.hctxs[usize::from(hctx)];
        match after_hold {
            AfterHold::AtCompletion => hctx.restart = true,
            AfterHold::AfterMillis(_) if hctx.wanted || hctx.rerun.is_some() => {}
            AfterHold::AfterMillis(millis) => {
                let ticks = Duration::from_millis(millis).as_nanos().div_ceil(tick) + 1;
                let due = Instant::from_nanos((now.as_nanos() / tick + ticks) * tick);
                hctx.rerun = Some(due);
                self.core.outputs.push_back(Output::RunWorker { after: due.since(now) });
            }
        }
    }

    /// Gives what was just collected its driver tag; false when collecting ends here.
    fn settle_collected(&mut self, now: Instant, context: ContextId, run: RunMulti) -> bool {
        // As [`RequestQueue::settle`] does, without a call.
        self.take_issued(now, context);
        self.settle(now, context);
        let state = self.core.context(context);
        let rq = *state.collected.back().expect("a request was collected");
        let count = state.collected.len() as u32;
        let ShapeState::Multi(multi) = &mut self.shape else { panic!("this is a single queue") };
        if !multi.get_driver_tag(&mut self.core, rq) {
            return false;
        }
        let busy = multi.hctxs[usize::from(run.hctx)].dispatch_busy > 0;
        let most = match multi.rules.dequeue {
            Dequeue::One => 1,
            Dequeue::Burst if busy => 1,
            Dequeue::Burst => self.core.seen.limits.nr_requests,
        };
        count < most
    }

    fn collect_from_software(&mut self, context: ContextId, run: RunMulti) {
        let ShapeState::Multi(multi) = &mut self.shape else { panic!("this is a single queue") };
        let state = &mut self.core.contexts[context.0 as usize];
        multi.take_from_software(run.hctx, state);
        multi.budget += state.collected.len() as u32;
    }

    /// Gives the next collected request to the driver. One without a tag, and all behind it, go
    /// back to the residual list (rule hctx-4).
    fn issue_step(&mut self, now: Instant, context: ContextId, run: RunMulti) -> Round {
        let Some(&rq) = self.core.context(context).collected.front() else {
            return self.end_of_list(now, context, run);
        };
        let ShapeState::Multi(multi) = &mut self.shape else { panic!("this is a single queue") };
        if !multi.can_issue(&mut self.core, rq) {
            multi.hctxs[usize::from(run.hctx)].restart = true;
            self.park(context, run);
            return (Work::Issue, None);
        }
        let state = self.core.context(context);
        state.collected.pop_front();
        let is_last = state.collected.is_empty();
        self.issue(now, context, rq);
        if is_last || !self.multi().rings_once {
            self.kick(context);
        }
        (Work::Issue, Some(run))
    }

    /// Whether the next collected request of a run goes to the driver. It gets its tag now if one
    /// is free: the clock is read after that (observed on 6.12).
    pub(in crate::queue) fn can_issue_next(&mut self, context: ContextId) -> bool {
        let ShapeState::Multi(multi) = &mut self.shape else { return true };
        let state = &self.core.contexts[context.0 as usize];
        let next = state.collected.front().copied();
        let runs = matches!(state.stack.last(), Some(Frame::RunMulti(_)));
        next.filter(|_| runs).is_none_or(|rq| multi.can_issue(&mut self.core, rq))
    }

    /// Whether a context runs a hardware queue and has issued a list that it took from the
    /// scheduler as a whole.
    #[inline]
    pub(in crate::queue) fn has_issued_list(&self, context: ContextId) -> bool {
        let Some(state) = self.core.contexts.get(context.0 as usize) else { return false };
        let issues = |it: &RunMulti| it.phase == Phase::Issue && state.collected.is_empty();
        let rules = self.core.seen.kernel.multi;
        self.scheduler.is_some()
            && rules.is_some_and(|it| it.hands_runs_over)
            && matches!(state.stack.last(), Some(Frame::RunMulti(run)) if issues(run))
    }

    /// A worker is to go on with the run of a context (rule hctx-9). It wakes although there may be
    /// nothing left.
    pub(in crate::queue) fn hand_run_over(&mut self, context: ContextId) {
        let Some(Frame::RunMulti(run)) = self.core.context(context).stack.pop() else { return };
        let multi = self.multi();
        multi.note_busy(run.hctx, false);
        multi.hctxs[usize::from(run.hctx)].wanted = true;
        self.core.outputs.push_back(Output::RunWorker { after: Duration::ZERO });
    }

    /// A list was issued as a whole: look again, unless nothing was found last time.
    fn end_of_list(&mut self, now: Instant, context: ContextId, run: RunMulti) -> Round {
        self.multi().note_busy(run.hctx, false);
        self.collect_step(now, context, RunMulti { phase: Phase::Collect, ..run })
    }

    /// What could not be issued waits in front of the residual list, in order.
    fn park(&mut self, context: ContextId, run: RunMulti) {
        self.kick(context);
        let ShapeState::Multi(multi) = &mut self.shape else { panic!("this is a single queue") };
        let residual = &mut multi.hctxs[usize::from(run.hctx)].residual;
        let state = self.core.context(context);
        multi.budget -= state.collected.len() as u32;
        while let Some(rq) = state.collected.pop_back() {
            residual.push_front(rq);
        }
        multi.note_busy(run.hctx, true);
    }

    /// The driver is given the request; the device hears of it with the next kick.
    #[inline]
    pub(super) fn issue(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        let request = &mut self.core.seen.requests[rq];
        request.state = RequestState::Issued;
        request.started = true;
        request.issued_at = now;
        self.core.qos.issued(now, rq, request);
        let (hctx, tag) = (request.hctx, request.driver_tag.expect("an issued request has a tag"));
        let multi = self.multi();
        multi.with_device += 1;
        let slot = (tag.0 - u32::from(hctx) * multi.depth) as usize;
        let occupant = multi.hctxs[usize::from(hctx)].in_driver[slot].replace(rq);
        assert!(occupant.is_none(), "tag {} is with the device already", tag.0);
        self.core.in_flight += 1;
        self.core.log_request(now, context, Action::Issue, rq);
        let command = command_of(&self.core.seen.requests[rq]);
        self.core.context(context).unkicked.push(command);
    }

    /// The driver tells the device what it was given.
    #[inline]
    pub(in crate::queue) fn kick(&mut self, context: ContextId) {
        let unkicked = &mut self.core.contexts[context.0 as usize].unkicked;
        // One by one: mostly there is only one.
        for command in unkicked.iter() {
            self.core.outputs.push_back(Output::Issue(*command));
        }
        unkicked.clear();
    }

    /// Frees the driver's tag of a finished command (with a scheduler; without one it goes with the
    /// request, and a flush command that is given back keeps the one it borrowed) and says which
    /// request it was.
    pub(in crate::queue) fn take_from_multi(&mut self, tag: Tag) -> RequestId {
        let ShapeState::Multi(multi) = &mut self.shape else { panic!("this is a single queue") };
        let (index, slot) = (tag.0 / multi.depth, tag.0 % multi.depth);
        let hctx = &mut multi.hctxs[index as usize];
        let rq = hctx.in_driver[slot as usize].take();
        let rq = rq.unwrap_or_else(|| panic!("tag {} is not with the device", tag.0));
        multi.budget -= 1;
        multi.with_device -= 1;
        if hctx.scheduler_tags.is_some() {
            let request = &mut self.core.seen.requests[rq];
            hctx.driver_tags.give(request.origin.cpu, slot, &mut self.core.woken);
            request.driver_tag = None;
            self.core.wake_all();
        }
        rq
    }

    /// After a completion: hardware queues that wait for one are run by a worker.
    pub(in crate::queue) fn restart_hardware_queues(&mut self) {
        let ShapeState::Multi(multi) = &mut self.shape else { return };
        let mut any = false;
        for hctx in &mut multi.hctxs {
            if core::mem::take(&mut hctx.restart) {
                hctx.wanted = true;
                any = true;
            }
        }
        if any {
            self.core.outputs.push_back(Output::RunWorker { after: Duration::ZERO });
        }
    }
}
