//! The request queue: bios and completions go in, commands and wake-ups come out.
//!
//! Code of the block layer always runs in the context of somebody: a task that submits, an
//! interrupt, a kernel worker. What such a context has still to do is a stack of frames, and
//! [`RequestQueue::step`] does the next atomic piece of it. So whoever drives the queue can charge
//! a core for each piece ([`RequestQueue::next_work`] tells which kind comes next), let pieces of
//! different contexts interleave, and put a context to sleep in the middle. Who does not care calls
//! [`RequestQueue::finish`].
//!
//! Outputs are values, acted upon by the caller after the step: a scheduler can never re-enter the
//! queue.

mod allocate;
mod complete;
mod context;
mod elevator;
mod flush;
mod guard;
pub mod guided;
mod log;
mod multi;
mod output;
mod qos;
mod replay;
mod settings;
mod single;
mod submit;
mod throttle;

use crate::bio::{Bio, BioRecord, CgroupId, ContextId, IoContextId};
use crate::command::{Facts, Tag};
use crate::event::EventLog;
use crate::input::{Input, Recorder};
use crate::kernel::{Kernel, Shape};
use crate::limits::Limits;
use crate::merge::MergeIndex;
use crate::plug::PlugFlush;
use crate::qos::Qos;
use crate::request::{Request, RequestId};
use crate::scheduler::{Cgroup, Cx, IoContext, RunQueue, Scheduler, Seen};
use crate::segments::Segments;
use crate::throttle::Throttle;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use base::{Arena, Duration, Instant, Rng};
use context::{ContextWork, Frame};
use guard::Guard;
use multi::Multi;
pub use output::{Output, Step, Work, Works};
use single::Single;

/// What is attached to a queue: one of the two shapes, with or without a scheduler.
pub struct Attach {
    /// The shape of the block layer.
    pub shape: Shape,
    /// The scheduler; `None` only for blk-mq.
    pub scheduler: Option<Box<dyn Scheduler>>,
}

impl Attach {
    /// A scheduler in the shape it lives in.
    pub fn scheduler(scheduler: Box<dyn Scheduler>) -> Attach {
        Attach { shape: scheduler.about().shape, scheduler: Some(scheduler) }
    }

    /// What a name stands for: a scheduler in its shape, or blk-mq without one.
    pub fn of(scheduler: Option<Box<dyn Scheduler>>) -> Attach {
        scheduler.map_or_else(Attach::none, Attach::scheduler)
    }

    /// blk-mq without a scheduler.
    pub fn none() -> Attach {
        Attach { shape: Shape::Multi, scheduler: None }
    }
}

/// The block layer of one disk.
pub struct RequestQueue {
    core: Core,
    scheduler: Option<Box<dyn Scheduler>>,
    shape: ShapeState,
}

#[expect(clippy::large_enum_variant, reason = "one per queue, never moved")]
enum ShapeState {
    Single(Single),
    Multi(Multi),
}

/// Everything but the scheduler and the shape.
struct Core {
    /// The part that a scheduler is shown while one of its hooks runs.
    seen: Seen,
    cpus: u16,
    bios: Arena<BioRecord>,
    contexts: Vec<ContextWork>,
    merge: MergeIndex,
    qos: Qos,
    throttle: Option<Throttle>,
    outputs: VecDeque<Output>,
    guard: Guard,
    recorder: Recorder,
    /// Contexts that wait for a change of scheduler or depth to finish.
    frozen: Vec<ContextId>,
    change: Option<settings::Change>,
    in_flight: u32,
    woken: Vec<ContextId>,
    paranoid: bool,
    /// Where searches for a tag begin, if that is left to chance.
    chance: Option<Rng>,
}

impl RequestQueue {
    /// Attaches a device. Panics when the kernel does not have the shape.
    pub fn new(
        kernel: &'static Kernel,
        facts: Facts,
        attach: Attach,
        cpus: u16,
        log: EventLog,
    ) -> RequestQueue {
        let Attach { shape, scheduler } = attach;
        assert!(kernel.has(shape), "Linux {} has no {shape:?} queue", kernel.version);
        let limits = Limits::new(facts, kernel, shape, scheduler.is_some());
        let throttle = kernel.throttle.map(|rules| {
            let mut throttle = Throttle::new(rules, kernel.hz, limits.facts.begins_rotational());
            throttle.want_messages(log.keeps_messages());
            throttle
        });
        let core = Core {
            seen: Seen::new(kernel, limits, log),
            cpus: cpus.max(1),
            bios: Arena::new(),
            contexts: Vec::new(),
            merge: MergeIndex::default(),
            qos: Qos::new(kernel),
            throttle,
            outputs: VecDeque::new(),
            guard: Guard::default(),
            recorder: Recorder::default(),
            frozen: Vec::new(),
            change: None,
            in_flight: 0,
            woken: Vec::new(),
            paranoid: false,
            chance: None,
        };
        let shape = ShapeState::new(&core, shape, scheduler.is_some());
        let mut queue = RequestQueue { core, scheduler, shape };
        queue.announce_attached(Instant::ZERO);
        queue
    }

    /// States what an io_context is; to be called before it is used and when it changes, but for
    /// the exit of its last task: see [`RequestQueue::exit_io_context`].
    pub fn define_io_context(&mut self, id: IoContextId, value: IoContext) {
        self.core.recorder.push(|| Input::IoContext(id, value));
        let index = id.0 as usize;
        if self.core.seen.io_contexts.len() <= index {
            self.core.seen.io_contexts.resize(index + 1, IoContext::default());
        }
        self.core.seen.io_contexts[index] = value;
    }

    /// The last task of an io_context exits, in `context`.
    pub fn exit_io_context(&mut self, now: Instant, context: ContextId, id: IoContextId) {
        self.core.recorder.push(|| Input::Exit(now, context, id));
        if let Some(value) = self.core.seen.io_contexts.get_mut(id.0 as usize) {
            value.tasks = 0;
        }
        self.with_scheduler(now, context, |scheduler, cx| scheduler.io_context_exited(cx, id));
        self.settle(now, context);
    }

    /// States what a control group is; to be called before it is used and when it changes.
    pub fn define_cgroup(&mut self, id: CgroupId, value: Cgroup) {
        self.core.recorder.push(|| Input::Cgroup(id, value.clone()));
        let index = id.0 as usize;
        if self.core.seen.cgroups.len() <= index {
            self.core.seen.cgroups.resize(index + 1, Cgroup::default());
        }
        if self.core.seen.cgroups[index].weight != value.weight {
            self.core.seen.reweighed.push(id);
        }
        if let Some(throttle) = &mut self.core.throttle {
            throttle.define(id, value.parent);
        }
        self.core.seen.cgroups[index] = value;
    }

    /// A control group disappears, in `context`: no task is in it any more, and no group. Bios that
    /// were submitted for it may still be on their way; its number is not given to another one.
    pub fn remove_cgroup(&mut self, now: Instant, context: ContextId, id: CgroupId) {
        self.core.recorder.push(|| Input::RemoveCgroup(now, context, id));
        self.with_scheduler(now, context, |scheduler, cx| scheduler.cgroup_removed(cx, id));
        self.settle(now, context);
    }

    /// Whether tasks hold requests back (and not the device).
    pub fn plugs_tasks(&self) -> bool {
        self.task_plug().is_some()
    }

    /// A task begins to hold requests back.
    pub fn start_plug(&mut self, context: ContextId) {
        self.core.recorder.push(|| Input::StartPlug(context));
        self.core.context(context).plug.start();
    }

    /// A task submits a bio; the work is done by [`RequestQueue::step`].
    pub fn submit(&mut self, now: Instant, bio: Bio) {
        self.submit_scattered(now, bio, Segments::default());
    }

    /// The same for a bio whose data lie in these pieces of memory.
    pub fn submit_scattered(&mut self, now: Instant, bio: Bio, pieces: Segments) {
        self.core.recorder.push(|| Input::Submit(now, bio, pieces.clone()));
        let id = self.core.keep_bio(now, bio, pieces);
        self.enter(bio.origin.context, bio.origin.cpu, id);
    }

    /// A task ends its plug, or is about to sleep.
    pub fn finish_plug(&mut self, now: Instant, context: ContextId, cpu: u16, why: PlugFlush) {
        self.core.recorder.push(|| Input::FinishPlug(now, context, cpu, why));
        let state = self.core.context_on(context, cpu);
        if why == PlugFlush::Explicit && !state.plug.finish() {
            return;
        }
        if !state.plug.requests.is_empty() {
            if why == PlugFlush::Blocks {
                // Observed on 6.12: who goes to sleep has the clock read again for these. But they
                // are inserted with the time of the first look.
                state.plug.read_clock_again();
            }
            state.stack.push(Frame::FlushPlug(why));
        }
        if self.is_device_plugged() {
            self.core.context(context).stack.push(Frame::Unplug { by_timer: false });
        }
    }

    /// The device finished a command; `context` is the interrupt's.
    pub fn complete(&mut self, now: Instant, context: ContextId, cpu: u16, tag: Tag) {
        self.core.recorder.push(|| Input::Complete(now, context, cpu, tag));
        self.core.push_frame(context, cpu, Frame::Complete(tag));
    }

    /// A kernel worker runs the queue, as [`Output::RunWorker`] asked.
    pub fn run(&mut self, now: Instant, context: ContextId, cpu: u16) {
        self.core.recorder.push(|| Input::Run(now, context, cpu));
        match &self.shape {
            ShapeState::Multi(multi) if multi.runs_before_requeued() => {
                self.core.push_frame(context, cpu, Frame::RunRequeued);
            }
            ShapeState::Multi(multi) if multi.has_requeued() => {
                self.insert_requeued(now, context);
            }
            _ => {}
        }
        self.push_run(now, context, cpu);
    }

    /// The worker comes to what was requeued after it was asked for a run: a piece of work of its
    /// own. Observed on 7.3.4: workqueue_execute_start, and what is issued in each.
    fn run_requeued(&mut self, now: Instant, context: ContextId) -> Work {
        self.insert_requeued(now, context);
        let ShapeState::Multi(multi) = &mut self.shape else { return Work::Housekeeping };
        multi.want_all();
        let cpu = self.core.seen.cpu_of(context);
        self.push_run(now, context, cpu);
        Work::Housekeeping
    }

    /// Others want the core of a context: if it has issued all that it took from the scheduler, it
    /// leaves the rest of the run to a kernel worker, where kernels do that.
    #[inline]
    pub fn leave_run(&mut self, context: ContextId) {
        if self.has_issued_list(context) {
            self.core.recorder.push(|| Input::LeaveRun(context));
            self.hand_run_over(context);
        }
    }

    /// The time of [`RequestQueue::next_timer`] has come.
    pub fn timer(&mut self, now: Instant, context: ContextId, cpu: u16) {
        self.core.recorder.push(|| Input::Timer(now, context, cpu));
        self.core.push_frame(context, cpu, Frame::Timer);
    }

    /// The driver gives a command back that the device did not do.
    pub fn requeue(&mut self, now: Instant, context: ContextId, cpu: u16, tag: Tag) {
        self.core.recorder.push(|| Input::Requeue(now, context, cpu, tag));
        self.core.push_frame(context, cpu, Frame::Requeue(tag));
    }

    /// When [`RequestQueue::timer`] is to be called, if at all.
    pub fn next_timer(&self) -> Option<Instant> {
        let scheduler = self.scheduler.as_ref().and_then(|scheduler| scheduler.next_timer());
        let unplug = match &self.shape {
            ShapeState::Multi(_) => None,
            ShapeState::Single(single) => single.unplug_at(),
        };
        let limits = self.core.throttle.as_ref().and_then(Throttle::next_timer);
        [scheduler, unplug, self.core.qos.next_timer(), limits].into_iter().flatten().min()
    }

    /// Whether a context has nothing to do.
    #[inline]
    pub fn is_idle(&self, context: ContextId) -> bool {
        let state = self.core.contexts.get(context.0 as usize);
        state.is_none_or(|state| state.stack.is_empty())
    }

    /// What the next step of a context will do; `None` when it has nothing to do.
    pub fn next_work(&self, context: ContextId) -> Option<Work> {
        let state = self.core.contexts.get(context.0 as usize)?;
        Some(self.work_of(state, *state.stack.last()?))
    }

    /// How often the kernel reads the clock for the next piece of work of a context. To be asked
    /// once for each piece; an allocation reads it when it has succeeded.
    pub fn looks_at_clock(&mut self, context: ContextId, work: Work) -> u32 {
        if work == Work::Issue && !self.can_issue_next(context) {
            return 0;
        }
        let rules = self.core.seen.kernel.multi;
        let state = &mut self.core.contexts[context.0 as usize];
        let looks = match (work, state.stack.last()) {
            (Work::Bio, Some(Frame::Submit(id))) => {
                self.core.bios[*id].looks_at_clock(rules.as_ref(), &self.core.seen.limits)
            }
            (Work::Issue | Work::Allocate, _) => 1,
            _ => 0,
        };
        if looks == 0 || rules.is_some_and(|it| !it.plug.remembers_time) {
            return looks;
        }
        u32::from(state.plug.looks_at_clock())
    }

    /// How often a task read the clock that has just found writeback throttled; to be asked once.
    // Observed on 6.12.117, who reads the clock: cutting a bio does unless the plug knows the time.
    // A part that gets its request at once reads it only there.
    #[inline]
    pub fn looks_for_policy(&mut self, context: ContextId) -> u32 {
        core::mem::take(&mut self.core.contexts[context.0 as usize].looks_for_policy)
    }

    /// Does the next atomic piece of what a context has to do.
    pub fn step(&mut self, now: Instant, context: ContextId) -> Step {
        self.work(now, context, 1, Works::NONE)
    }

    /// Does the next piece, which is of one of these kinds unless there are none, and those of
    /// these kinds behind it until something else is wanted done or one has turned out to be of
    /// another kind.
    pub fn proceed(&mut self, now: Instant, context: ContextId, along: Works) -> Step {
        self.work(now, context, 1, along)
    }

    /// Does everything that a context has to do; false when it went to sleep on the way.
    pub fn finish(&mut self, now: Instant, context: ContextId) -> bool {
        self.work(now, context, u32::MAX, Works::NONE) != Step::Asleep
    }

    /// Whether the queue wants anything done.
    #[inline]
    pub fn has_outputs(&self) -> bool {
        !self.core.outputs.is_empty()
    }

    /// The next thing the queue wants done.
    pub fn pop_output(&mut self) -> Option<Output> {
        self.core.outputs.pop_front()
    }

    /// The events since they were last cleared.
    pub fn log(&mut self) -> &mut EventLog {
        &mut self.core.seen.log
    }

    /// The kernel whose rules hold.
    pub fn kernel(&self) -> &'static Kernel {
        self.core.seen.kernel
    }

    /// Limits and facts.
    pub fn limits(&self) -> &Limits {
        &self.core.seen.limits
    }

    /// A request that is alive.
    pub fn request(&self, rq: RequestId) -> Option<&Request> {
        self.core.seen.requests.get(rq)
    }

    /// Requests that are alive, wherever they are.
    pub fn allocated(&self) -> usize {
        self.core.seen.requests.len()
    }

    /// Leaves to chance where searches for a scheduler tag begin, in maps that are there and in
    /// those to come, as kernels do. That decides something where a limit leaves few tags. Without
    /// it they begin at the first tag.
    pub fn scatter_tags(&mut self, rng: Rng) {
        self.core.chance = Some(rng);
        self.scatter();
    }

    fn scatter(&mut self) {
        if let (ShapeState::Multi(multi), Some(rng)) = (&mut self.shape, &mut self.core.chance) {
            multi.scatter(rng);
        }
    }

    /// The queue was in use before: tasks have slept for its tags so many times, each alone. That
    /// decides whose turn it is when several do. Of a single queue it decides nothing.
    pub fn note_waits(&mut self, waits: u32) {
        if let ShapeState::Multi(multi) = &mut self.shape {
            multi.note_waits(waits);
        }
    }

    /// Nothing is under way: no request is alive, and no bio waits to become a part of one.
    pub fn is_drained(&self) -> bool {
        self.core.seen.requests.is_empty() && self.core.bios.is_empty()
    }

    /// Commands with the device.
    pub fn in_flight(&self) -> u32 {
        self.core.in_flight
    }

    /// Requests with the scheduler.
    pub fn queued(&self) -> u32 {
        self.scheduler.as_ref().map_or(0, |scheduler| scheduler.queued())
    }

    /// Starts to record inputs; to be called before the first one.
    pub fn record_inputs(&mut self) {
        self.core.recorder.start();
    }

    /// The inputs recorded since [`RequestQueue::record_inputs`].
    pub fn take_inputs(&mut self) -> Vec<Input> {
        self.core.recorder.take()
    }

    /// Has the scheduler check all its invariants after every step.
    pub fn set_paranoid(&mut self, paranoid: bool) {
        self.core.paranoid = paranoid;
    }

    /// A line or two about the scheduler's inner state.
    pub fn describe_scheduler(&mut self, now: Instant) -> String {
        self.with_scheduler(now, ContextId(0), |scheduler, cx| scheduler.describe(cx))
            .unwrap_or_default()
    }

    /// Asserts that nothing is left: to be called when a run has ended and everything is done.
    pub fn assert_drained(&self) {
        assert!(
            self.core.seen.requests.is_empty(),
            "requests are left: {}",
            self.core.seen.requests.len()
        );
        assert!(self.core.bios.is_empty(), "bios are left: {}", self.core.bios.len());
        self.core.guard.assert_balanced();
    }

    /// Does at most so many pieces of what a context has to do, and then those that go along; what
    /// came of the last one.
    // The compiler puts steps into this loop, and then prepares at its entry what they need. Those
    // that few requests need are kept out of it.
    fn work(&mut self, now: Instant, context: ContextId, mut pieces: u32, along: Works) -> Step {
        loop {
            let state = self.core.contexts.get_mut(context.0 as usize);
            let Some(state) = state else { return Step::Idle };
            let Some(frame) = state.stack.pop() else { return Step::Idle };
            if matches!(frame, Frame::Allocate { .. } | Frame::Throttle(_)) && state.is_asleep() {
                state.stack.push(frame);
                return Step::Asleep;
            }
            self.core.recorder.push(|| Input::Step(now, context));
            let work = match frame {
                Frame::Submit(bio) => self.submit_step(now, context, bio),
                Frame::Throttle(bio) => self.throttle_step(now, context, bio),
                Frame::Allocate { bio, attempt } => self.allocate_step(now, context, bio, attempt),
                Frame::PlugAdd { rq, flushed } => self.plug_add_step(now, context, rq, flushed),
                Frame::Insert(rq) => self.insert_step(now, context, rq),
                Frame::EndPlug => self.end_plug_step(context),
                Frame::FlushPlug(why) => self.flush_plug_step(now, context, why),
                Frame::Flushing { why, depth } => self.flushing_step(now, context, why, depth),
                Frame::Unplug { by_timer } => self.unplug_step(now, context, by_timer),
                Frame::RunSingle => self.run_single(now, context, &mut pieces),
                Frame::RunMulti(run) => self.run_multi(now, context, run, &mut pieces),
                Frame::DirectIssue(rq) => self.direct_issue_step(now, context, rq),
                Frame::Complete(tag) => self.complete_step(now, context, tag),
                Frame::Requeue(tag) => self.requeue_step(now, context, tag),
                Frame::RunRequeued => self.run_requeued(now, context),
                Frame::Deliver => self.deliver(now, context),
                Frame::Timer => self.timer_step(now, context),
            };
            self.after_step(now);
            pieces -= 1;
            if pieces == 0 {
                if !along.contains(work) || !self.next_goes_along(context, along) {
                    return Step::Did(work);
                }
                pieces = 1;
            }
        }
    }

    /// Whether the next piece of a context is of these kinds, and nothing else is wanted done.
    #[inline]
    fn next_goes_along(&self, context: ContextId, along: Works) -> bool {
        let state = &self.core.contexts[context.0 as usize];
        let goes_along =
            |frame: &Frame| along == Works::ALL || along.contains(self.work_of(state, *frame));
        self.core.outputs.is_empty() && state.stack.last().is_some_and(goes_along)
    }

    fn work_of(&self, state: &ContextWork, frame: Frame) -> Work {
        match frame {
            Frame::Submit(_) => Work::Bio,
            Frame::Throttle(_) | Frame::Allocate { .. } => Work::Allocate,
            Frame::Insert(_) => Work::Insert,
            Frame::Flushing { .. } if state.flushing.is_empty() => Work::Housekeeping,
            Frame::Flushing { .. } => Work::Insert,
            Frame::DirectIssue(_) => Work::Issue,
            Frame::RunSingle => self.single_run_work(),
            Frame::RunMulti(run) => run.work(state),
            Frame::Complete(_) => Work::Complete,
            Frame::Deliver => Work::Deliver,
            Frame::PlugAdd { .. }
            | Frame::EndPlug
            | Frame::FlushPlug(_)
            | Frame::Unplug { .. }
            | Frame::Requeue(_)
            | Frame::RunRequeued
            | Frame::Timer => Work::Housekeeping,
        }
    }

    #[inline]
    pub(super) fn after_step(&mut self, now: Instant) {
        if self.core.change.is_some() {
            self.finish_change(now);
        }
        if self.core.paranoid {
            self.with_scheduler(now, ContextId(0), |scheduler, cx| scheduler.check(cx));
        }
    }

    #[cold]
    fn timer_step(&mut self, now: Instant, context: ContextId) -> Work {
        if self.unplug_is_due(now) {
            self.core.context(context).stack.push(Frame::Unplug { by_timer: true });
        }
        let due = self.scheduler.as_ref().and_then(|scheduler| scheduler.next_timer());
        if due.is_some_and(|due| due <= now) {
            self.with_scheduler(now, context, |scheduler, cx| scheduler.timer(cx));
            self.settle(now, context);
        }
        self.qos_timer(now, context);
        self.limits_timer(now, context);
        Work::Housekeeping
    }

    /// Calls the scheduler, if there is one.
    #[inline]
    fn with_scheduler<R>(
        &mut self,
        now: Instant,
        context: ContextId,
        call: impl FnOnce(&mut dyn Scheduler, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        let scheduler = self.scheduler.as_deref_mut()?;
        while let Some(cgroup) = self.core.seen.reweighed.pop() {
            scheduler.cgroup_changed(&mut Cx::new(now, context, &mut self.core.seen), cgroup);
        }
        Some(call(scheduler, &mut Cx::new(now, context, &mut self.core.seen)))
    }

    /// The same for what a task does itself, which knows the time that its plug remembers.
    fn with_scheduler_in_task<R>(
        &mut self,
        now: Instant,
        context: ContextId,
        call: impl FnOnce(&mut dyn Scheduler, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        let clock = self.remembered_time(context).unwrap_or(now);
        self.with_scheduler(now, context, |scheduler, cx| {
            cx.clock = clock;
            call(scheduler, cx)
        })
    }

    /// What a task that plugs takes for the time until all that it held back is on its way.
    fn remembered_time(&mut self, context: ContextId) -> Option<Instant> {
        let rules = self.core.seen.kernel.multi;
        let remembers = rules.is_some_and(|rules| rules.plug.remembers_time);
        if remembers { self.core.context(context).plug.time } else { None }
    }

    /// Acts on what the scheduler asked for during its last hook.
    #[inline]
    fn settle(&mut self, now: Instant, context: ContextId) {
        if !self.core.seen.wishes.issued.is_empty() || self.core.seen.wishes.run.is_some() {
            self.settle_wishes(now, context);
        }
    }

    #[inline(never)]
    fn settle_wishes(&mut self, now: Instant, context: ContextId) {
        self.take_issued(now, context);
        match self.core.seen.wishes.run.take() {
            Some(RunQueue::Now) => {
                self.remove_device_plug();
                let cpu = self.core.seen.cpu_of(context);
                self.push_hctx_run(context, cpu);
            }
            Some(RunQueue::Async) => self.request_worker(),
            None => {}
        }
    }

    /// Pushes the frames that run the queue in this context.
    // On the way of every request; the compiler would not choose to put it into its callers.
    #[inline(always)]
    fn push_run(&mut self, now: Instant, context: ContextId, cpu: u16) {
        match &mut self.shape {
            ShapeState::Single(_) => self.core.push_frame(context, cpu, Frame::RunSingle),
            ShapeState::Multi(multi) => multi.push_wanted_runs(&mut self.core, now, context, cpu),
        }
    }

    /// Asks for a run by a kernel worker.
    fn request_worker(&mut self) {
        if let ShapeState::Multi(multi) = &mut self.shape {
            multi.want_all();
        }
        self.core.outputs.push_back(Output::RunWorker { after: Duration::ZERO });
    }
}

impl ShapeState {
    fn new(core: &Core, shape: Shape, has_scheduler: bool) -> ShapeState {
        match shape {
            Shape::Single => {
                let rules = core.seen.kernel.single.expect("the kernel has this shape");
                ShapeState::Single(Single::new(rules, &core.seen.limits))
            }
            Shape::Multi => {
                let rules = core.seen.kernel.multi.expect("the kernel has this shape");
                ShapeState::Multi(Multi::new(rules, &core.seen.limits, core.cpus, has_scheduler))
            }
        }
    }

    fn shape(&self) -> Shape {
        match self {
            ShapeState::Single(_) => Shape::Single,
            ShapeState::Multi(_) => Shape::Multi,
        }
    }
}

impl Core {
    /// The state of a context, made when it is first named.
    #[inline]
    fn context(&mut self, id: ContextId) -> &mut ContextWork {
        let index = id.0 as usize;
        if index >= self.contexts.len() {
            return self.make_context(index);
        }
        &mut self.contexts[index]
    }

    #[cold]
    fn make_context(&mut self, index: usize) -> &mut ContextWork {
        self.contexts.resize_with(index + 1, ContextWork::default);
        self.seen.runs_on.resize(index + 1, 0);
        &mut self.contexts[index]
    }

    /// The state of a context that runs on a core from now on.
    #[inline]
    fn context_on(&mut self, id: ContextId, cpu: u16) -> &mut ContextWork {
        let index = id.0 as usize;
        if index >= self.contexts.len() {
            return self.make_context_on(index, cpu);
        }
        self.seen.runs_on[index] = cpu;
        &mut self.contexts[index]
    }

    #[cold]
    fn make_context_on(&mut self, index: usize, cpu: u16) -> &mut ContextWork {
        self.make_context(index);
        self.seen.runs_on[index] = cpu;
        &mut self.contexts[index]
    }

    fn push_frame(&mut self, context: ContextId, cpu: u16, frame: Frame) {
        self.context_on(context, cpu).stack.push(frame);
    }

    /// Tells everybody in `woken` that they may go on.
    #[inline]
    fn wake_all(&mut self) {
        if !self.woken.is_empty() {
            self.wake_some();
        }
    }

    fn wake_some(&mut self) {
        for index in 0..self.woken.len() {
            let context = self.woken[index];
            self.contexts[context.0 as usize].wake();
            self.outputs.push_back(Output::Wake(context));
        }
        self.woken.clear();
    }
}
