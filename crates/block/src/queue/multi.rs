//! blk-mq: hardware queues with driver tags, scheduler tags, software queues and a residual list
//! (spec 1.2, 9.7).
//!
//! A run of a hardware queue first takes the residual list, then collects requests from the
//! scheduler (in bursts, on recent kernels) or from the software queues, and gives them to the
//! driver. A request that got no driver tag is parked in the residual list, where no scheduler sees
//! it any more.

use super::allocate::Allowance;
use super::context::{Context, Frame};
use super::{Core, Output, PlugFlush, RequestQueue, ShapeState, Work};
use crate::bio::{Bio, ContextId};
use crate::command::{Tag, Transport};
use crate::event::Action;
use crate::flush::FlushMachine;
use crate::kernel::{AfterHold, Dequeue, Kick, MultiQueue};
use crate::limits::Limits;
use crate::request::{Request, RequestId, RequestState};
use crate::scheduler::{Dispatched, HctxId};
use crate::tags::TagMap;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use base::{Arena, Duration, Instant};

/// A run of one hardware queue, as far as it has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunMulti {
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

impl RunMulti {
    fn new(hctx: u16) -> RunMulti {
        RunMulti { hctx, phase: Phase::Start }
    }

    /// Whether collected requests go to the driver now.
    pub fn is_issuing(self) -> bool {
        matches!(self.phase, Phase::Residual | Phase::Issue)
    }
}

/// One hardware queue.
struct Hctx {
    driver_tags: TagMap,
    /// Without a scheduler there are none: driver tags are allocated directly.
    scheduler_tags: Option<TagMap>,
    in_driver: Vec<Option<RequestId>>,
    residual: VecDeque<RequestId>,
    /// Run it when a command completes.
    restart: bool,
    /// A worker was asked to run it.
    wanted: bool,
    /// A worker runs it then, if none has before: its scheduler withheld.
    rerun: Option<Instant>,
    /// How often the driver refused lately (spec 9.7 rule 6).
    dispatch_busy: u32,
    /// The software queue to be served next, when they are served in turn.
    next_software: usize,
    flush: FlushMachine,
}

/// The state of blk-mq.
pub(super) struct Multi {
    rules: MultiQueue,
    hctxs: Vec<Hctx>,
    /// One per core; used without a scheduler.
    software: Vec<VecDeque<RequestId>>,
    depth: u32,
    has_budget: bool,
    /// The device hears of a list as a whole.
    rings_once: bool,
    /// Commands with the device.
    with_device: u32,
    /// The same, and budgets taken for commands to come.
    budget: u32,
}

impl Multi {
    pub fn new(rules: MultiQueue, limits: &Limits, cpus: u16, has_scheduler: bool) -> Multi {
        let depth = limits.facts.queue_depth;
        let has_budget = matches!(limits.facts.transport, Transport::Sata | Transport::Scsi);
        let map = |depth| TagMap::new(depth, cpus, rules.shallow).waking_on(rules.wakes_on);
        let hctx = |_| Hctx {
            driver_tags: map(if has_scheduler { depth } else { depth.min(limits.nr_requests) }),
            scheduler_tags: has_scheduler.then(|| map(limits.nr_requests)),
            in_driver: alloc::vec![None; depth as usize],
            residual: VecDeque::new(),
            restart: false,
            wanted: false,
            rerun: None,
            dispatch_busy: 0,
            next_software: 0,
            flush: FlushMachine::default(),
        };
        Multi {
            rules,
            hctxs: (0..limits.facts.hardware_queues.max(1)).map(hctx).collect(),
            software: alloc::vec![VecDeque::new(); usize::from(cpus)],
            depth,
            has_budget,
            rings_once: rules.kick == Kick::EachList && !has_budget,
            with_device: 0,
            budget: 0,
        }
    }

    pub fn rules(&self) -> MultiQueue {
        self.rules
    }

    pub fn hctx_count(&self) -> usize {
        self.hctxs.len()
    }

    pub fn flush_of(&mut self, hctx: u16) -> &mut FlushMachine {
        &mut self.hctxs[usize::from(hctx)].flush
    }

    /// The hardware queue of a core.
    fn hctx_of(&self, cpu: u16) -> u16 {
        cpu % self.hctxs.len() as u16
    }

    /// The submitting core's software queue, newest request first.
    pub fn software_queue_from_newest(&self, cpu: u16) -> impl Iterator<Item = RequestId> + '_ {
        self.software[usize::from(cpu)].iter().rev().copied()
    }

    /// The head of the residual lists, taken off.
    pub fn take_residual(&mut self) -> Option<RequestId> {
        self.hctxs.iter_mut().find_map(|hctx| hctx.residual.pop_front())
    }

    /// The oldest request of the software queues, one queue after the other, taken off.
    pub fn take_software(&mut self) -> Option<RequestId> {
        self.software.iter_mut().find_map(VecDeque::pop_front)
    }

    /// Takes out everybody who sleeps for a tag.
    pub fn take_waiters(&mut self, woken: &mut Vec<ContextId>) {
        for hctx in &mut self.hctxs {
            hctx.driver_tags.take_waiters(woken);
            if let Some(tags) = &mut hctx.scheduler_tags {
                tags.take_waiters(woken);
            }
        }
    }

    /// A smaller limit on scheduler tags decides how many sleepers a freed tag wakes.
    pub fn set_min_depth(&mut self, min_depth: Option<u32>) {
        for hctx in &mut self.hctxs {
            if let Some(tags) = &mut hctx.scheduler_tags {
                tags.set_min_depth(min_depth);
            }
        }
    }

    pub fn join_waiters(&mut self, context: ContextId, bio: &Bio) {
        self.tags_of(bio).sleep(context);
    }

    /// Who had slept, or found no tag, has tried again.
    pub fn tried_again(&mut self, context: ContextId, bio: &Bio, got_tag: bool) {
        self.tags_of(bio).tried_again(context, got_tag);
    }

    /// The tags that a request for this bio needs.
    fn tags_of(&mut self, bio: &Bio) -> &mut TagMap {
        let hctx = usize::from(self.hctx_of(bio.origin.cpu));
        let hctx = &mut self.hctxs[hctx];
        hctx.scheduler_tags.as_mut().unwrap_or(&mut hctx.driver_tags)
    }

    /// A worker shall run every hardware queue.
    pub fn want_all(&mut self) {
        for hctx in &mut self.hctxs {
            hctx.wanted = true;
        }
    }

    /// Pushes a run of every hardware queue that a worker was asked to run.
    pub fn push_wanted_runs(
        &mut self,
        core: &mut Core,
        now: Instant,
        context: ContextId,
        cpu: u16,
    ) {
        let state = core.context(context);
        for (index, hctx) in self.hctxs.iter_mut().enumerate().rev() {
            let is_due = hctx.rerun.is_some_and(|due| due <= now);
            if core::mem::take(&mut hctx.wanted) || is_due {
                // It is one and the same piece of work.
                hctx.rerun = None;
                state.cpu = cpu;
                state.stack.push(Frame::RunMulti(RunMulti::new(index as u16)));
            }
        }
    }

    /// A request goes to the head of the residual list.
    pub fn place_front(&mut self, requests: &Arena<Request>, rq: RequestId) {
        let hctx = &mut self.hctxs[usize::from(requests[rq].hctx)];
        hctx.residual.push_front(rq);
    }

    /// A request goes to the tail of the residual list.
    pub fn append(&mut self, requests: &Arena<Request>, rq: RequestId) {
        let hctx = &mut self.hctxs[usize::from(requests[rq].hctx)];
        hctx.residual.push_back(rq);
    }

    /// A flush command goes to the head of the residual list, before requests that wait for a tag.
    /// Without a scheduler it borrows the driver tag of the first request it serves.
    // Spec 9.8 rule 4 names the list; that it is the head was observed on 6.12.117, and is assumed
    // for the others.
    pub fn place_flush(&mut self, core: &mut Core, command: RequestId, first: RequestId) {
        core.requests[command].driver_tag = core.requests[first].driver_tag;
        self.place_front(&core.requests, command);
    }

    /// Takes back what a freed request occupied; sleepers may go on.
    pub fn release(&mut self, core: &mut Core, rq: RequestId) {
        let request = &core.requests[rq];
        let hctx = &mut self.hctxs[usize::from(request.hctx)];
        if let Some(tag) = request.scheduler_tag {
            let tags = hctx.scheduler_tags.as_mut().expect("the tag came from here");
            tags.give(tag, &mut core.woken);
        }
        if let Some(tag) = request.driver_tag {
            let base = u32::from(request.hctx) * self.depth;
            hctx.driver_tags.give(tag.0 - base, &mut core.woken);
        }
    }

    /// Gives a request a driver tag, if one is free; requests without a scheduler have one already.
    fn get_driver_tag(&mut self, core: &mut Core, rq: RequestId) -> bool {
        let request = &mut core.requests[rq];
        if request.driver_tag.is_some() {
            return true;
        }
        let hctx = &mut self.hctxs[usize::from(request.hctx)];
        match hctx.driver_tags.take(request.origin.cpu, None) {
            Some(tag) => {
                request.driver_tag = Some(Tag(u32::from(request.hctx) * self.depth + tag));
                true
            }
            None => {
                hctx.restart = true;
                false
            }
        }
    }

    /// Whether the driver takes a request now, which has a tag then.
    fn can_issue(&mut self, core: &mut Core, rq: RequestId) -> bool {
        let over_budget = self.has_budget && self.with_device >= self.depth;
        !over_budget && self.get_driver_tag(core, rq)
    }

    /// Whether a run would find the head of the residual list without a driver tag and put
    /// everything back: the common case under a backlog, not worth the motions.
    fn cannot_issue_residual(&self, requests: &Arena<Request>, hctx: u16) -> bool {
        let state = &self.hctxs[usize::from(hctx)];
        state.residual.front().is_some_and(|head| {
            let head = &requests[*head];
            let owner = &self.hctxs[usize::from(head.hctx)];
            head.driver_tag.is_none() && owner.driver_tags.is_exhausted()
        })
    }

    /// A SCSI driver wants a budget before anything is taken from the scheduler.
    fn get_budget(&mut self, hctx: u16) -> bool {
        if self.has_budget && self.budget >= self.depth {
            self.hctxs[usize::from(hctx)].restart = true;
            return false;
        }
        self.budget += 1;
        true
    }

    /// Without a scheduler: the next requests of the software queues (spec 1.2 rule 4).
    fn take_from_software(&mut self, hctx: u16, into: &mut Context) {
        let count = self.hctxs.len();
        let mine = |cpu: &usize| cpu % count == usize::from(hctx);
        if self.hctxs[usize::from(hctx)].dispatch_busy == 0 {
            for cpu in (0..self.software.len()).filter(mine) {
                into.collected.append(&mut self.software[cpu]);
            }
            return;
        }
        let start = self.hctxs[usize::from(hctx)].next_software;
        let cpus = self.software.len();
        let found = (0..cpus)
            .map(|step| (start + step) % cpus)
            .filter(mine)
            .find(|cpu| !self.software[*cpu].is_empty());
        if let Some(cpu) = found {
            into.collected.extend(self.software[cpu].pop_front());
            self.hctxs[usize::from(hctx)].next_software = (cpu + 1) % cpus;
        }
    }

    fn note_busy(&mut self, hctx: u16, busy: bool) {
        let state = &mut self.hctxs[usize::from(hctx)].dispatch_busy;
        *state = (*state * 7 + if busy { 16 } else { 0 }) / 8;
    }
}

impl RequestQueue {
    fn multi(&mut self) -> &mut Multi {
        match &mut self.shape {
            ShapeState::Multi(multi) => multi,
            ShapeState::Single(_) => panic!("this is a single queue"),
        }
    }

    pub(super) fn multi_allowance(
        &mut self,
        now: Instant,
        context: ContextId,
        bio: &Bio,
    ) -> Option<Allowance> {
        let limit =
            self.with_scheduler(now, context, |scheduler, cx| scheduler.limit_depth(cx, bio));
        let multi = self.multi();
        let index = multi.hctx_of(bio.origin.cpu);
        let base = u32::from(index) * multi.depth;
        let hctx = &mut multi.hctxs[usize::from(index)];
        let cpu = bio.origin.cpu;
        Some(match &mut hctx.scheduler_tags {
            Some(tags) => Allowance {
                scheduler_tag: Some(tags.take(cpu, limit.flatten())?),
                driver_tag: None,
                hctx: index,
            },
            None => Allowance {
                scheduler_tag: None,
                driver_tag: Some(Tag(base + hctx.driver_tags.take(cpu, None)?)),
                hctx: index,
            },
        })
    }

    pub(super) fn insert_unplugged_multi(
        &mut self,
        now: Instant,
        context: ContextId,
        rq: RequestId,
    ) {
        if self.core.requests[rq].flush.is_some() && !self.flush_goes_through_elevator(rq) {
            self.insert_flush(now, rq);
            self.request_worker();
        } else if self.scheduler.is_some() {
            self.insert(now, context, rq, true);
            self.request_worker();
        } else {
            self.offer_directly(now, context, rq);
        }
    }

    /// A request of a flushed plug: to the scheduler, or without one directly to the driver (to the
    /// software queue when its task is about to sleep).
    pub(super) fn insert_from_plug(
        &mut self,
        now: Instant,
        context: ContextId,
        rq: RequestId,
        why: PlugFlush,
    ) {
        if self.scheduler.is_some() {
            self.insert(now, context, rq, true);
        } else if why == PlugFlush::Blocks {
            self.insert_into_software(now, context, rq);
        } else {
            self.offer_directly(now, context, rq);
        }
    }

    /// Without a scheduler: straight to the driver, unless it was busy lately
    /// (spec 1.2 rules 1 and 2).
    fn offer_directly(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        let is_sync = self.core.requests[rq].is_sync();
        let hctx = self.core.requests[rq].hctx;
        let multi = self.multi();
        let busy = multi.hctxs[usize::from(hctx)].dispatch_busy > 0;
        if busy && (multi.hctxs.len() == 1 || !is_sync) {
            self.insert_into_software(now, context, rq);
            self.request_worker();
        } else {
            self.core.context(context).stack.push(Frame::DirectIssue(rq));
        }
    }

    pub(super) fn direct_issue_step(
        &mut self,
        now: Instant,
        context: ContextId,
        rq: RequestId,
    ) -> Work {
        let hctx = self.core.requests[rq].hctx;
        let has_residual = !self.multi().hctxs[usize::from(hctx)].residual.is_empty();
        if has_residual || !self.multi().get_budget(hctx) {
            self.insert_into_software(now, context, rq);
            self.request_worker();
        } else {
            self.core.requests[rq].state = RequestState::Dispatched;
            self.issue(now, context, rq);
            self.kick(context);
            self.multi().note_busy(hctx, false);
        }
        Work::Issue
    }

    pub(super) fn insert_into_software(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        self.core.log_request(now, context, Action::Insert, rq);
        let request = &mut self.core.requests[rq];
        request.state = RequestState::Dispatched;
        let cpu = usize::from(request.origin.cpu);
        self.multi().software[cpu].push_back(rq);
    }

    /// Runs the hardware queue of a core in this context.
    pub(super) fn push_hctx_run(&mut self, context: ContextId, cpu: u16) {
        let frame = match &self.shape {
            ShapeState::Single(_) => Frame::RunSingle,
            ShapeState::Multi(multi) => Frame::RunMulti(RunMulti::new(multi.hctx_of(cpu))),
        };
        self.core.push_frame(context, cpu, frame);
    }

    pub(super) fn run_multi_step(
        &mut self,
        now: Instant,
        context: ContextId,
        run: RunMulti,
    ) -> Work {
        match run.phase {
            Phase::Start => self.start_run(now, context, run),
            Phase::Residual | Phase::Issue => self.issue_step(now, context, run),
            Phase::Collect => self.collect_step(now, context, run),
        }
    }

    /// The residual list goes first; only when it was emptied is the scheduler asked.
    fn start_run(&mut self, now: Instant, context: ContextId, run: RunMulti) -> Work {
        let ShapeState::Multi(multi) = &mut self.shape else { panic!("this is a single queue") };
        if multi.cannot_issue_residual(&self.core.requests, run.hctx) {
            multi.hctxs[usize::from(run.hctx)].restart = true;
            multi.note_busy(run.hctx, true);
            return Work::Housekeeping;
        }
        let residual = &mut multi.hctxs[usize::from(run.hctx)].residual;
        multi.budget += residual.len() as u32;
        let state = self.core.context(context);
        while let Some(rq) = residual.pop_front() {
            state.collected.push_back(rq);
        }
        if state.collected.is_empty() {
            return self.collect_step(now, context, RunMulti { phase: Phase::Collect, ..run });
        }
        state.stack.push(Frame::RunMulti(RunMulti { phase: Phase::Residual, ..run }));
        Work::Housekeeping
    }

    /// Takes one request from the scheduler, or what there is from the software queues.
    fn collect_step(&mut self, now: Instant, context: ContextId, run: RunMulti) -> Work {
        let goes_on = if self.scheduler.is_some() {
            self.collect_from_scheduler(now, context, run)
        } else {
            self.collect_from_software(context, run);
            false
        };
        let state = self.core.context(context);
        let phase = match (goes_on, state.collected.is_empty()) {
            (true, _) => Phase::Collect,
            (false, false) => Phase::Issue,
            (false, true) => return Work::Dispatch,
        };
        state.stack.push(Frame::RunMulti(RunMulti { phase, ..run }));
        Work::Dispatch
    }

    /// One request with budget and driver tag; false when collecting ends here (spec 9.7 rule 4).
    fn collect_from_scheduler(&mut self, now: Instant, context: ContextId, run: RunMulti) -> bool {
        let hctx = HctxId(run.hctx);
        let work = self.scheduler.as_ref().is_some_and(|scheduler| scheduler.has_work(hctx));
        if !work || !self.multi().get_budget(run.hctx) {
            return false;
        }
        let dispatched =
            self.with_scheduler(now, context, |scheduler, cx| scheduler.dispatch(cx, hctx, false));
        match dispatched.expect("there is a scheduler") {
            Dispatched::Some(count) => {
                assert_eq!(count, 1, "a scheduler of blk-mq lets one request go at a time");
                assert_eq!(self.core.wishes.issued.len(), 1, "miscounted dispatch");
            }
            Dispatched::Hold(reason) => {
                assert!(self.queued() > 0, "withheld although nothing is queued");
                self.multi().budget -= 1;
                self.run_after_hold(now, run.hctx);
                let idle = self.core.in_flight == 0;
                if idle && self.core.context(context).collected.is_empty() {
                    self.core.log_note(now, context, Action::Hold(reason));
                }
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
        let tick = self.core.kernel.hz.tick().as_nanos();
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
            Dequeue::Burst => self.core.limits.nr_requests,
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
    /// back to the residual list (spec 9.7 rule 5).
    fn issue_step(&mut self, now: Instant, context: ContextId, run: RunMulti) -> Work {
        let Some(&rq) = self.core.context(context).collected.front() else {
            return self.end_of_list(now, context, run);
        };
        let ShapeState::Multi(multi) = &mut self.shape else { panic!("this is a single queue") };
        if !multi.can_issue(&mut self.core, rq) {
            multi.hctxs[usize::from(run.hctx)].restart = true;
            self.park(context, run);
            return Work::Issue;
        }
        let state = self.core.context(context);
        state.collected.pop_front();
        let is_last = state.collected.is_empty();
        state.stack.push(Frame::RunMulti(run));
        self.issue(now, context, rq);
        if is_last || !self.multi().rings_once {
            self.kick(context);
        }
        Work::Issue
    }

    /// Whether the next collected request of a run goes to the driver. It gets its tag now if one
    /// is free: the clock is read after that. // observed on 6.12
    pub(super) fn can_issue_next(&mut self, context: ContextId) -> bool {
        let ShapeState::Multi(multi) = &mut self.shape else { return true };
        let state = &self.core.contexts[context.0 as usize];
        let next = state.collected.front().copied();
        let runs = matches!(state.stack.last(), Some(Frame::RunMulti(_)));
        next.filter(|_| runs).is_none_or(|rq| multi.can_issue(&mut self.core, rq))
    }

    /// A list was issued as a whole: look again, unless nothing was found last time.
    fn end_of_list(&mut self, now: Instant, context: ContextId, run: RunMulti) -> Work {
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
    fn issue(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        let request = &mut self.core.requests[rq];
        request.state = RequestState::Issued;
        request.started = true;
        request.issued_at = now;
        let (hctx, tag) = (request.hctx, request.driver_tag.expect("an issued request has a tag"));
        let multi = self.multi();
        multi.with_device += 1;
        let slot = (tag.0 - u32::from(hctx) * multi.depth) as usize;
        let occupant = multi.hctxs[usize::from(hctx)].in_driver[slot].replace(rq);
        assert!(occupant.is_none(), "tag {} is with the device already", tag.0);
        self.core.in_flight += 1;
        self.core.log_request(now, context, Action::Issue, rq);
        let command = self.core.command(rq);
        self.core.context(context).unkicked.push(command);
    }

    /// The driver tells the device what it was given.
    fn kick(&mut self, context: ContextId) {
        let commands = self.core.contexts[context.0 as usize].unkicked.drain(..);
        self.core.outputs.extend(commands.map(Output::Issue));
    }

    /// Frees the driver's tag of a finished command (with a scheduler; without one it goes with the
    /// request, and a flush command that is given back keeps the one it borrowed) and says which
    /// request it was.
    pub(super) fn take_from_multi(&mut self, tag: Tag) -> RequestId {
        let ShapeState::Multi(multi) = &mut self.shape else { panic!("this is a single queue") };
        let (index, slot) = (tag.0 / multi.depth, tag.0 % multi.depth);
        let hctx = &mut multi.hctxs[index as usize];
        let rq = hctx.in_driver[slot as usize].take();
        let rq = rq.unwrap_or_else(|| panic!("tag {} is not with the device", tag.0));
        multi.budget -= 1;
        multi.with_device -= 1;
        if hctx.scheduler_tags.is_some() {
            hctx.driver_tags.give(slot, &mut self.core.woken);
            self.core.requests[rq].driver_tag = None;
            self.core.wake_all();
        }
        rq
    }

    /// After a completion: hardware queues that wait for one are run by a worker.
    pub(super) fn restart_hardware_queues(&mut self) {
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
