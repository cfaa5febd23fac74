//! blk-mq: hardware queues with driver tags, scheduler tags, software queues and a residual list
//! (rules none and hctx); `runs` has what a run of one does.
//!
//! A run of a hardware queue first takes the residual list, then collects requests from the
//! scheduler (in bursts, on recent kernels) or from the software queues, and gives them to the
//! driver. A request that got no driver tag is parked in the residual list, where no scheduler sees
//! it any more.

mod runs;

pub(super) use runs::RunMulti;

use super::allocate::Allowance;
use super::context::{ContextWork, Frame};
use super::flush::FlushMachine;
use super::{Core, PlugFlush, RequestQueue, ShapeState, Work};
use crate::bio::{Bio, ContextId};
use crate::command::{Tag, Transport};
use crate::event::Action;
use crate::kernel::{Kick, MultiQueue};
use crate::limits::Limits;
use crate::request::{Request, RequestId, RequestState};
use crate::tags::{TagMap, bits_per_word};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use base::{Arena, Instant, Rng};

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
    /// How often the driver refused lately (rule hctx-5).
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
    /// What the flush machinery or the driver put back; no run sees it before the worker's.
    requeued: Vec<RequestId>,
    /// The worker was asked for a run before the first of these was requeued: it does that first.
    runs_before: bool,
    depth: u32,
    /// Commands that the device is given at a time, of all hardware queues together.
    device_depth: u32,
    has_budget: bool,
    /// The device hears of a list as a whole.
    rings_once: bool,
    /// Commands with the device.
    with_device: u32,
    /// The same, and budgets taken for commands to come.
    budget: u32,
}

impl Multi {
    /// The request that the device has under a tag.
    pub fn issued_as(&self, tag: u32) -> Option<RequestId> {
        let hctx = self.hctxs.get((tag / self.depth) as usize)?;
        *hctx.in_driver.get((tag % self.depth) as usize)?
    }

    pub fn new(rules: MultiQueue, limits: &Limits, cpus: u16, has_scheduler: bool) -> Multi {
        let depth = limits.facts.queue_depth;
        let is_scsi = matches!(limits.facts.transport, Transport::Sata | Transport::Scsi);
        let has_budget = is_scsi || limits.device_depth < depth;
        let map = |depth| TagMap::of(&rules, depth, cpus);
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
            requeued: Vec::new(),
            runs_before: false,
            depth,
            device_depth: limits.device_depth,
            has_budget,
            rings_once: rules.kick == Kick::EachList && !is_scsi,
            with_device: 0,
            budget: 0,
        }
    }

    /// The device is given so many commands at a time from now on.
    pub fn set_device_depth(&mut self, depth: u32) {
        self.device_depth = depth;
        self.has_budget |= depth < self.depth;
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

    /// Tasks have slept for tags before, so many times each alone.
    pub fn note_waits(&mut self, waits: u32) {
        for hctx in &mut self.hctxs {
            let tags = hctx.scheduler_tags.as_mut().unwrap_or(&mut hctx.driver_tags);
            tags.note_waits(waits, ContextId(0));
        }
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

    /// Searches for a scheduler tag begin anywhere.
    pub fn scatter(&mut self, rng: &mut Rng) {
        let maps = self.hctxs.iter_mut().filter_map(|hctx| hctx.scheduler_tags.as_mut());
        maps.for_each(|tags| tags.scatter(rng));
    }

    /// Another `nr_requests`, while nothing is allocated; whether the maps have room for so many.
    pub fn resize(&mut self, requests: u32) -> bool {
        let depth = self.depth;
        self.hctxs.iter_mut().all(|hctx| match &mut hctx.scheduler_tags {
            Some(tags) => tags.resize(requests),
            None => hctx.driver_tags.resize(depth.min(requests)),
        })
    }

    /// Bits of a word of the scheduler's tag maps, if they are to have so many tags.
    pub fn tags_per_word(&self, requests: u32) -> u32 {
        match &self.hctxs[0].scheduler_tags {
            Some(tags) if tags.has_room(requests) => tags.word_bits(),
            _ => bits_per_word(requests),
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
        for (index, hctx) in self.hctxs.iter_mut().enumerate().rev() {
            let is_due = hctx.rerun.is_some_and(|due| due <= now);
            if core::mem::take(&mut hctx.wanted) || is_due {
                // It is one and the same piece of work.
                hctx.rerun = None;
                let run = Frame::RunMulti(RunMulti::new(index as u16));
                core.push_frame(context, cpu, run);
            }
        }
    }

    /// A request goes to the head of the residual list.
    pub fn place_front(&mut self, requests: &Arena<Request>, rq: RequestId) {
        let hctx = &mut self.hctxs[usize::from(requests[rq].hctx)];
        hctx.residual.push_front(rq);
    }

    /// A request goes before all others: on most kernels when the worker runs, and not before.
    pub fn requeue(&mut self, requests: &Arena<Request>, rq: RequestId) {
        match self.rules.requeues_by_worker {
            true => {
                if self.requeued.is_empty() {
                    self.runs_before = self.hctxs.iter().any(|it| it.wanted);
                }
                self.requeued.push(rq);
            }
            false => self.place_front(requests, rq),
        }
    }

    /// Whether anything was requeued since the worker ran.
    pub fn has_requeued(&self) -> bool {
        !self.requeued.is_empty()
    }

    /// Whether the worker has a run to do before it comes to what was requeued.
    pub fn runs_before_requeued(&self) -> bool {
        !self.requeued.is_empty() && self.runs_before
    }

    /// What was requeued since the worker ran, oldest first, taken off.
    pub fn take_requeued(&mut self) -> Vec<RequestId> {
        core::mem::take(&mut self.requeued)
    }

    /// A request goes to the tail of the residual list.
    pub fn append(&mut self, requests: &Arena<Request>, rq: RequestId) {
        let hctx = &mut self.hctxs[usize::from(requests[rq].hctx)];
        hctx.residual.push_back(rq);
    }

    /// A flush command goes to the head of the residual list, before requests that wait for a tag.
    /// Without a scheduler it borrows the driver tag of the first request it serves.
    // Rule flush-4 names the list; that it is the head was observed on 6.12.117, and is assumed
    // for the others.
    pub fn place_flush(&mut self, core: &mut Core, command: RequestId, first: RequestId) {
        core.seen.requests[command].driver_tag = core.seen.requests[first].driver_tag;
        self.requeue(&core.seen.requests, command);
    }

    /// Takes back what a freed request occupied; sleepers may go on.
    pub fn release(&mut self, core: &mut Core, rq: RequestId) {
        let request = &core.seen.requests[rq];
        let hctx = &mut self.hctxs[usize::from(request.hctx)];
        if let Some(tag) = request.scheduler_tag {
            let tags = hctx.scheduler_tags.as_mut().expect("the tag came from here");
            tags.give(request.origin.cpu, tag, &mut core.woken);
        }
        if let Some(tag) = request.driver_tag {
            let base = u32::from(request.hctx) * self.depth;
            hctx.driver_tags.give(request.origin.cpu, tag.0 - base, &mut core.woken);
        }
    }

    /// Gives a request a driver tag, if one is free; requests without a scheduler have one already.
    #[inline]
    fn get_driver_tag(&mut self, core: &mut Core, rq: RequestId) -> bool {
        let request = &mut core.seen.requests[rq];
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
        let over_budget = self.has_budget && self.with_device >= self.device_depth;
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
        if self.has_budget && self.budget >= self.device_depth {
            self.hctxs[usize::from(hctx)].restart = true;
            return false;
        }
        self.budget += 1;
        true
    }

    /// Without a scheduler: the next requests of the software queues (rule none-4).
    fn take_from_software(&mut self, hctx: u16, into: &mut ContextWork) {
        let count = self.hctxs.len();
        if self.hctxs[usize::from(hctx)].dispatch_busy == 0 {
            let mine = self.software.iter_mut().skip(usize::from(hctx)).step_by(count);
            for queue in mine.filter(|queue| !queue.is_empty()) {
                into.collected.append(queue);
            }
            return;
        }
        let mine = |cpu: &usize| cpu % count == usize::from(hctx);
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
        // It is asked once for a request, however often that is tried to get. Observed on 6.12.117:
        // BFQ's message comes once for a task that sleeps, and what it said holds.
        let limit = match self.core.context(context).limit.take() {
            Some(limit) => limit,
            None => self
                .with_scheduler(now, context, |scheduler, cx| scheduler.limit_depth(cx, bio))
                .flatten(),
        };
        let allowance = self.allowance_within(limit, bio);
        if allowance.is_none() {
            self.core.context(context).limit = Some(limit);
        }
        allowance
    }

    fn allowance_within(&mut self, limit: Option<u32>, bio: &Bio) -> Option<Allowance> {
        let multi = self.multi();
        let index = multi.hctx_of(bio.origin.cpu);
        let base = u32::from(index) * multi.depth;
        let hctx = &mut multi.hctxs[usize::from(index)];
        let cpu = bio.origin.cpu;
        Some(match &mut hctx.scheduler_tags {
            Some(tags) => Allowance {
                scheduler_tag: Some(tags.take(cpu, limit)?),
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
        if self.scheduler.is_some() || !self.is_plain(rq) {
            self.insert(now, context, rq, true);
            self.request_worker();
        } else {
            self.note_flush_data(rq);
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
            return;
        }
        self.note_flush_data(rq);
        if why == PlugFlush::Blocks {
            self.insert_into_software(now, context, rq);
        } else {
            self.offer_directly(now, context, rq);
        }
    }

    /// Without a scheduler: straight to the driver, unless it was busy lately
    /// (rules none-1 and none-2).
    fn offer_directly(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        let is_sync = self.core.seen.requests[rq].is_sync();
        let hctx = self.core.seen.requests[rq].hctx;
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
        let hctx = self.core.seen.requests[rq].hctx;
        let has_residual = !self.multi().hctxs[usize::from(hctx)].residual.is_empty();
        if has_residual || !self.multi().get_budget(hctx) {
            self.insert_into_software(now, context, rq);
            self.request_worker();
        } else {
            self.core.seen.requests[rq].state = RequestState::Dispatched;
            self.issue(now, context, rq);
            if !self.issues_list(context) {
                self.kick(context);
            }
            self.multi().note_busy(hctx, false);
        }
        Work::Issue
    }

    /// Whether the driver is being given a whole plug, of which the device hears when it ends.
    fn issues_list(&mut self, context: ContextId) -> bool {
        let is_flushing =
            matches!(self.core.context(context).stack.last(), Some(Frame::Flushing { .. }));
        is_flushing && self.issues_newest_first() && self.multi().rings_once
    }

    pub(super) fn insert_into_software(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        self.core.log_request(now, context, Action::Insert, rq);
        let request = &mut self.core.seen.requests[rq];
        request.state = RequestState::Dispatched;
        let cpu = usize::from(request.origin.cpu);
        self.multi().software[cpu].push_back(rq);
    }
}
