//! The single queue: one lock, one dispatch list, request limits per direction (rules
//! dispatch-list, allocate and device-plug).

use super::allocate::Allowance;
use super::context::Frame;
use super::flush::FlushMachine;
use super::output::command_of;
use super::{Core, Output, RequestQueue, ShapeState, Work};
use crate::bio::{Bio, ContextId, is_sync};
use crate::command::{Tag, Transport};
use crate::event::Action;
use crate::input::Input;
use crate::kernel::{Plugging, ShallowDepth, SingleQueue};
use crate::limits::Limits;
use crate::request::{Request, RequestId, RequestState};
use crate::scheduler::{Dispatched, HctxId, MayQueue, Placement};
use crate::tags::TagMap;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use base::{Arena, Instant, Links, List, Sector};

/// Requests a batching task may allocate beyond the limit, and for how long: HZ/50
/// (rule allocate-2).
const BATCH_REQUESTS: u32 = 32;
const BATCH_TIME: base::Duration = base::Duration::from_millis(20);

/// The only hardware queue there is.
const HCTX: HctxId = HctxId(0);

/// The state of a single queue.
pub(super) struct Single {
    rules: SingleQueue,
    /// The dispatch list.
    list: List<Request>,
    links: Links<Request>,
    /// Where the last sorted sweep stands, and the request that will move it (rules dispatch-list-1
    /// and dispatch-list-2).
    boundary: Sector,
    boundary_request: Option<RequestId>,
    /// Request limits: one set, or one per control group.
    limits: Vec<RequestList>,
    /// The driver's tags: queue depth.
    tags: TagMap,
    in_driver: Vec<Option<RequestId>>,
    /// Requests allocated and not freed.
    allocated: u32,
    plugged_until: Option<Instant>,
    pub flush: FlushMachine,
}

/// Who may allocate: one of the two counters of a request list is for sync requests (or, on old
/// kernels, for reads... see [`SingleQueue::limits_by_direction`]).
#[derive(Default)]
struct RequestList {
    count: [u32; 2],
    full: [bool; 2],
    congested: [bool; 2],
    waiters: [VecDeque<ContextId>; 2],
}

impl Single {
    /// The request that the device has under a tag.
    pub fn issued_as(&self, tag: u32) -> Option<RequestId> {
        *self.in_driver.get(tag as usize)?
    }

    pub fn new(rules: SingleQueue, limits: &Limits) -> Single {
        let depth = limits.facts.queue_depth;
        let mut tags = TagMap::new(depth, 1, ShallowDepth::PerWord);
        tags.limit(limits.device_depth);
        Single {
            rules,
            list: List::new(),
            links: Links::new(),
            boundary: Sector(0),
            boundary_request: None,
            limits: alloc::vec![RequestList::default()],
            tags,
            in_driver: alloc::vec![None; depth as usize],
            allocated: 0,
            plugged_until: None,
            flush: FlushMachine::default(),
        }
    }

    /// The device is given so many commands at a time from now on.
    pub fn set_device_depth(&mut self, depth: u32) {
        self.tags.limit(depth);
    }

    pub fn rules(&self) -> SingleQueue {
        self.rules
    }

    pub fn unplug_at(&self) -> Option<Instant> {
        self.plugged_until
    }

    /// Puts a request that left the scheduler (or bypasses it) into the dispatch list.
    pub fn place(&mut self, requests: &Arena<Request>, rq: RequestId, placement: Placement) {
        match placement {
            Placement::Sorted => {
                let after = self.sorted_place(requests, rq);
                self.list.insert_after(&mut self.links, after, rq);
            }
            Placement::Tail => {
                self.list.push_back(&mut self.links, rq);
                self.boundary = requests[rq].end();
                self.boundary_request = Some(rq);
            }
        }
    }

    /// Appends a request of the flush machinery.
    pub fn append(&mut self, rq: RequestId) {
        self.list.push_back(&mut self.links, rq);
    }

    /// Puts a request in front of everything.
    pub fn place_front(&mut self, rq: RequestId) {
        self.list.push_front(&mut self.links, rq);
    }

    /// The element behind which a request belongs: ascending from the boundary, then wrapped to the
    /// part below it (rule dispatch-list-1).
    fn sorted_place(&self, requests: &Arena<Request>, rq: RequestId) -> Option<RequestId> {
        let new = &requests[rq];
        self.list.iter_rev(&self.links).find(|id| {
            let other = &requests[*id];
            if other.op != new.op || other.started || other.soft_barrier {
                return true;
            }
            if new.sector >= self.boundary {
                if other.sector < self.boundary {
                    return false;
                }
            } else if other.sector >= self.boundary {
                return true;
            }
            new.sector >= other.sector
        })
    }

    /// Takes the head off the dispatch list.
    pub fn take_head(&mut self) -> Option<RequestId> {
        self.list.pop_front(&mut self.links)
    }

    /// Counts a request that is allocated whatever the limits say, because a kernel did.
    pub fn count_recorded(&mut self, bio: &Bio) {
        let (list, side) = self.list_of(bio);
        self.limits[list].count[side] += 1;
        self.allocated += 1;
    }

    pub fn join_waiters(&mut self, context: ContextId, bio: &Bio) {
        let (list, side) = self.list_of(bio);
        self.limits[list].waiters[side].push_back(context);
    }

    /// Takes back what a freed request occupied; sleepers may go on.
    pub fn release(&mut self, core: &mut Core, rq: RequestId) {
        let request = &core.seen.requests[rq];
        if request.is_flush_command {
            return;
        }
        self.allocated -= 1;
        let (list, side) = self.place_in_limits(request.origin.cgroup.0, {
            if self.rules.limits_by_direction {
                request.direction() == crate::Direction::Read
            } else {
                request.is_sync()
            }
        });
        let list = &mut self.limits[list];
        let limit = core.seen.limits.nr_requests;
        list.count[side] -= 1;
        let count = list.count[side];
        if count < (limit - limit / 8 - limit / 16).saturating_sub(1) {
            list.congested[side] = false;
        }
        if count < limit {
            list.full[side] = false;
            if let Some(waiter) = list.waiters[side].pop_front() {
                core.woken.push(waiter);
            }
        }
    }

    /// Which request list and which of its two counters a bio uses.
    fn list_of(&mut self, bio: &Bio) -> (usize, usize) {
        let first = if self.rules.limits_by_direction {
            bio.direction() == crate::Direction::Read
        } else {
            is_sync(bio.op, bio.flags)
        };
        self.place_in_limits(bio.origin.cgroup.0, first)
    }

    fn place_in_limits(&mut self, cgroup: u32, first: bool) -> (usize, usize) {
        let list = if self.rules.limits_per_cgroup { cgroup as usize } else { 0 };
        if list >= self.limits.len() {
            self.limits.resize_with(list + 1, RequestList::default);
        }
        (list, usize::from(!first))
    }

    /// The limit test of rules allocate-2 and allocate-3.
    fn may_allocate(&mut self, limit: u32, bio: &Bio, must: bool, batching: bool) -> Verdict {
        let (list, side) = self.list_of(bio);
        let list = &mut self.limits[list];
        let count = list.count[side];
        let mut verdict = Verdict::Yes;
        if count + 1 > limit - limit / 8 {
            if count + 1 >= limit {
                if !list.full[side] {
                    list.full[side] = true;
                    verdict = Verdict::YesAndBatch;
                } else if !must && !batching {
                    return Verdict::No;
                }
            }
            list.congested[side] = true;
        }
        if count >= 3 * limit / 2 {
            return Verdict::No;
        }
        list.count[side] += 1;
        self.allocated += 1;
        verdict
    }

    fn is_congested(&self) -> bool {
        self.limits.iter().any(|list| list.congested.iter().any(|congested| *congested))
    }
}

enum Verdict {
    Yes,
    YesAndBatch,
    No,
}

impl RequestQueue {
    fn single(&mut self) -> &mut Single {
        match &mut self.shape {
            ShapeState::Single(single) => single,
            ShapeState::Multi(_) => panic!("this is blk-mq"),
        }
    }

    /// Whether writeback and read-ahead should hold back (rule allocate-2).
    pub fn is_congested(&self) -> bool {
        match &self.shape {
            ShapeState::Single(single) => single.is_congested(),
            ShapeState::Multi(_) => false,
        }
    }

    pub(super) fn single_allowance(
        &mut self,
        now: Instant,
        context: ContextId,
        bio: &Bio,
    ) -> Option<Allowance> {
        let answer =
            self.with_scheduler(now, context, |scheduler, cx| scheduler.may_queue(cx, bio));
        let must = match answer.expect("the single queue has a scheduler") {
            MayQueue::No => return None,
            MayQueue::Must => true,
            MayQueue::May => false,
        };
        let limit = self.core.seen.limits.nr_requests;
        let batching = self.use_batch(now, context);
        match self.single().may_allocate(limit, bio, must, batching) {
            Verdict::No => return None,
            Verdict::YesAndBatch => self.start_batch(now, context),
            Verdict::Yes => {}
        }
        Some(Allowance { scheduler_tag: None, driver_tag: None, hctx: 0 })
    }

    /// The task may allocate a batch beyond the limit from now on.
    pub(super) fn start_batch(&mut self, now: Instant, context: ContextId) {
        self.core.context(context).batch = Some((now, BATCH_REQUESTS));
    }

    /// Whether the task is batching; uses up one of its batch, the last one always works.
    fn use_batch(&mut self, now: Instant, context: ContextId) -> bool {
        let Some((since, left)) = &mut self.core.context(context).batch else { return false };
        let fresh = *left == BATCH_REQUESTS;
        let usable = fresh || (*left > 0 && now.saturating_since(*since) <= BATCH_TIME);
        *left = left.saturating_sub(1);
        usable
    }

    pub(super) fn insert_unplugged_single(
        &mut self,
        now: Instant,
        context: ContextId,
        rq: RequestId,
    ) {
        self.plug_device(now, context);
        self.insert(now, context, rq, false);
        if self.unplugs_now() {
            self.core.context(context).stack.push(Frame::Unplug { by_timer: false });
        } else if !self.is_device_plugged() {
            self.core.context(context).stack.push(Frame::RunSingle);
        }
    }

    /// A request inserted into an empty queue plugs the device (rule device-plug-1).
    fn plug_device(&mut self, now: Instant, context: ContextId) {
        let Plugging::Device { delay_ms, skips_nonrotational, .. } = self.single().rules.plugging
        else {
            return;
        };
        let exempt = skips_nonrotational && !self.core.seen.limits.facts.rotational;
        let busy = self.scheduler.as_ref().is_some_and(|scheduler| scheduler.has_work(HCTX));
        let delay = self.core.seen.kernel.unplug_delay(delay_ms);
        let single = self.single();
        if exempt || busy || !single.list.is_empty() || single.plugged_until.is_some() {
            return;
        }
        single.plugged_until = Some(now + delay);
        self.core.log_note(now, context, Action::Plug);
    }

    pub(super) fn is_device_plugged(&self) -> bool {
        match &self.shape {
            ShapeState::Single(single) => single.plugged_until.is_some(),
            ShapeState::Multi(_) => false,
        }
    }

    pub(super) fn unplug_is_due(&self, now: Instant) -> bool {
        match &self.shape {
            ShapeState::Single(single) => single.plugged_until.is_some_and(|at| at <= now),
            ShapeState::Multi(_) => false,
        }
    }

    /// The plug goes without a trace event: a completion, or the scheduler itself, runs the queue.
    pub(super) fn remove_device_plug(&mut self) {
        if let ShapeState::Single(single) = &mut self.shape {
            single.plugged_until = None;
        }
    }

    /// Whether enough requests wait that the device is unplugged.
    fn unplugs_now(&self) -> bool {
        let ShapeState::Single(single) = &self.shape else { return false };
        let Plugging::Device { threshold, .. } = single.rules.plugging else { return false };
        let waiting = single.allocated - single.tags.in_use().min(single.allocated);
        single.plugged_until.is_some() && waiting >= threshold
    }

    pub(super) fn unplugs_on_sync(&self) -> bool {
        let ShapeState::Single(single) = &self.shape else { return false };
        matches!(single.rules.plugging, Plugging::Device { sync_unplugs: true, .. })
    }

    #[inline(never)]
    pub(super) fn unplug_step(&mut self, now: Instant, context: ContextId, by_timer: bool) -> Work {
        if self.is_device_plugged() {
            self.remove_device_plug();
            let depth = self.single().allocated - self.single().tags.in_use();
            let action =
                if by_timer { Action::TimerUnplug { depth } } else { Action::Unplug { depth } };
            self.core.log_note(now, context, action);
            self.core.context(context).stack.push(Frame::RunSingle);
        }
        Work::Housekeeping
    }

    /// What the next step of a run will do.
    pub(super) fn single_run_work(&self) -> Work {
        match &self.shape {
            ShapeState::Single(single) if !single.list.is_empty() => Work::Issue,
            _ => Work::Dispatch,
        }
    }

    /// The driver's loop: round by round, until nothing more can be done or these pieces of work
    /// are used up, the last of which is the caller's to count.
    pub(super) fn run_single(
        &mut self,
        now: Instant,
        context: ContextId,
        pieces: &mut u32,
    ) -> Work {
        loop {
            let (work, goes_on) = self.run_single_round(now, context);
            if !goes_on {
                return work;
            }
            if *pieces == 1 {
                self.core.context(context).stack.push(Frame::RunSingle);
                return work;
            }
            self.after_step(now);
            *pieces -= 1;
            self.core.recorder.push(|| Input::Step(now, context));
        }
    }

    /// Asks the scheduler when the dispatch list is empty, else takes its head (rule
    /// dispatch-list-4); whether there is another round.
    fn run_single_round(&mut self, now: Instant, context: ContextId) -> (Work, bool) {
        let single = self.single();
        if single.plugged_until.is_some() {
            return (Work::Housekeeping, false);
        }
        match single.list.head() {
            None => self.ask_scheduler(now, context),
            Some(head) => self.feed_driver(now, context, head),
        }
    }

    fn ask_scheduler(&mut self, now: Instant, context: ContextId) -> (Work, bool) {
        let flush_blocks = self.core.seen.limits.facts.transport == Transport::Sata;
        if flush_blocks && self.single().flush.command.is_some() {
            return (Work::Housekeeping, false);
        }
        let force = self.core.change.is_some();
        (Work::Dispatch, self.dispatch(now, context, force))
    }

    /// Forced drain: everything the scheduler holds goes to the dispatch list.
    #[cold]
    pub(super) fn drain_scheduler(&mut self, now: Instant, context: ContextId) {
        while self.dispatch(now, context, true) {}
    }

    /// Asks the scheduler once; whether anything left it.
    // Of its two callers one is hot; the compiler would not choose to put it there.
    #[inline(always)]
    fn dispatch(&mut self, now: Instant, context: ContextId, force: bool) -> bool {
        let dispatched =
            self.with_scheduler(now, context, |scheduler, cx| scheduler.dispatch(cx, HCTX, force));
        let left = match dispatched.expect("the single queue has a scheduler") {
            Dispatched::Some(count) => {
                assert_eq!(
                    count as usize,
                    self.core.seen.wishes.issued.len(),
                    "miscounted dispatch"
                );
                true
            }
            Dispatched::Hold(reason) => {
                assert!(!force, "a scheduler that is drained may not withhold");
                assert!(self.core.guard.held() > 0, "withheld although nothing is queued");
                self.note_hold(now, context, reason, self.core.in_flight == 0);
                false
            }
            Dispatched::Empty => {
                self.core.guard.check_held(0);
                false
            }
        };
        self.settle(now, context);
        left
    }

    fn feed_driver(&mut self, now: Instant, context: ContextId, head: RequestId) -> (Work, bool) {
        if !self.core.seen.requests[head].started {
            self.activate(now, context, head);
        }
        let single = self.single();
        let Some(tag) = single.tags.take(0, None) else { return (Work::Housekeeping, false) };
        let head_again = single.list.pop_front(&mut single.links);
        assert_eq!(head_again, Some(head), "the head of the dispatch list moved");
        single.in_driver[tag as usize] = Some(head);
        let request = &mut self.core.seen.requests[head];
        request.driver_tag = Some(Tag(tag));
        request.state = RequestState::Issued;
        let command = command_of(request);
        self.core.in_flight += 1;
        self.core.outputs.push_back(Output::Issue(command));
        (Work::Issue, true)
    }

    /// The driver looks at the head for the first time: here the kernel traces D, even when the
    /// device then turns out to be full (rule dispatch-list-3).
    pub(super) fn activate(&mut self, now: Instant, context: ContextId, rq: RequestId) {
        if self.core.seen.requests[rq].bound {
            self.with_scheduler(now, context, |scheduler, cx| scheduler.activated(cx, rq));
            self.settle(now, context);
        }
        let request = &mut self.core.seen.requests[rq];
        request.started = true;
        request.issued_at = now;
        self.core.qos.issued(now, rq, request);
        let end = request.end();
        let single = self.single();
        if single.boundary_request.is_none() || single.boundary_request == Some(rq) {
            single.boundary = end;
            single.boundary_request = None;
        }
        self.core.log_request(now, context, Action::Issue, rq);
    }

    /// Frees the driver's tag of a finished command and says which request it was.
    pub(super) fn take_from_single(&mut self, tag: Tag) -> RequestId {
        let rq = self.single().in_driver[tag.0 as usize].take();
        let rq = rq.unwrap_or_else(|| panic!("tag {} is not with the device", tag.0));
        let mut nobody = Vec::new();
        self.single().tags.give(0, tag.0, &mut nobody);
        self.core.seen.requests[rq].driver_tag = None;
        rq
    }
}
