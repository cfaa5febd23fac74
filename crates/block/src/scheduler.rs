//! The seam: what a scheduler is asked, and what it may do.
//!
//! A [`Scheduler`] orders requests. It owns only its own state; requests belong to the queue and
//! are named by [`RequestId`]. Everything it may see or do comes through [`Cx`]. The queue is its
//! only caller, calls the hooks in the kernel's order (rules request-3 and request-4 for the single
//! queue, rules request-5 and request-6 for blk-mq) and checks the contract at every call
//! (`queue/guard.rs`).
//!
//! Start a new scheduler from `noop.rs` of crate `sched`; the whole trait is used by CFQ and BFQ,
//! whose walk through it is in `docs/scheduler-seam.md`.

use crate::bio::{Bio, CgroupId, ContextId, IoContextId};
pub use crate::command::HctxId;
use crate::event::{Action, Event, EventLog};
use crate::ioprio::Ioprio;
use crate::kernel::{Kernel, Shape};
use crate::limits::Limits;
use crate::reason::{DispatchReason, HoldReason};
use crate::request::{Request, RequestId};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use base::{Arena, Instant};
use core::fmt;

/// A policy that orders requests.
pub trait Scheduler {
    /// Its name in sysfs, where it lives, and its tunables.
    fn about(&self) -> &'static About;

    /// Reads a tunable as sysfs shows it. The queue asks only for names of [`About::tunables`].
    fn get(&self, _cx: &Cx<'_>, tunable: &str) -> i64 {
        panic!("{} has no tunable {tunable}", self.about().name)
    }

    /// Writes a tunable. The queue has checked name and range; what is stored may be rounded.
    fn set(&mut self, _cx: &mut Cx<'_>, tunable: &str, _value: i64) {
        panic!("{} has no tunable {tunable}", self.about().name)
    }

    /// Single queue: may this task allocate a request although the limit is reached?
    fn may_queue(&mut self, _cx: &mut Cx<'_>, _bio: &Bio) -> MayQueue {
        MayQueue::May
    }

    /// blk-mq: how many scheduler tags may be used for this bio, in the unit of the kernel's
    /// `shallow` rule; `None` for all of them. Asked once per allocation, not again after a sleep.
    fn limit_depth(&mut self, _cx: &mut Cx<'_>, _bio: &Bio) -> Option<u32> {
        None
    }

    /// blk-mq: the smallest number [`Scheduler::limit_depth`] may ever answer; it decides how many
    /// sleepers one freed tag wakes (rule tags-5). `None`: no limit is ever given.
    fn min_depth(&self, _cx: &Cx<'_>) -> Option<u32> {
        None
    }

    /// A bio arrives, before a request is looked for that it could be merged into (here BFQ notices
    /// that the submitter changed its control group).
    fn bio_submitted(&mut self, _cx: &mut Cx<'_>, _bio: &Bio) {}

    /// The request is bound to whoever it belongs to. Single queue: at allocation, before event G.
    /// blk-mq: at every insertion, before it is tried to append it to another one and before event
    /// I. Called exactly once for every later [`Scheduler::finished`] or [`Scheduler::requeued`];
    /// never for requests that bypass the scheduler on their way through the flush machinery.
    fn bind(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) {}

    /// A queued request that starts exactly where the bio ends, if front merges are wanted.
    fn front_merge(&mut self, _cx: &mut Cx<'_>, _bio: &Bio) -> Option<RequestId> {
        None
    }

    /// The queued requests, oldest first, whose newest [`COMPARED`] this bio is compared with; also
    /// `None` if it touches none of these. Asked where its [`About::lookup`] is
    /// [`MergeLookup::Recent`].
    fn recent(&self, _bio: &Bio) -> Option<&VecDeque<RequestId>> {
        None
    }

    /// May the bio be merged into this request? Generic checks have passed.
    fn allow_bio_merge(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, _bio: &Bio) -> bool {
        true
    }

    /// May `next` be appended to `rq`? Generic checks have passed.
    fn allow_request_merge(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, _next: RequestId) -> bool {
        true
    }

    /// A bio was merged into `rq`, and `rq` was not joined with its neighbour because of it. After
    /// a front merge `rq` starts earlier than before: reposition.
    fn bio_merged(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, _bio: &Bio, _merge: Merge) {}

    /// `next` was appended to `rq` and is about to disappear: `rq` has grown already, `next` can
    /// still be looked at and gets its [`Scheduler::finished`] afterwards. `next` may belong to
    /// somebody else, and may never have been inserted (it is absorbed at insertion).
    fn requests_merged(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, _next: RequestId) {}

    /// The queued request before `rq` in the order in which neighbours are joined.
    fn former(&self, _cx: &Cx<'_>, _rq: RequestId) -> Option<RequestId> {
        None
    }

    /// The queued request after `rq` in the order in which neighbours are joined.
    fn latter(&self, _cx: &Cx<'_>, _rq: RequestId) -> Option<RequestId> {
        None
    }

    /// A request arrives. In the single queue this hook and [`Scheduler::bio_merged`] may issue an
    /// older request with the same first sector (the alias rule of kernels up to 2.6.32).
    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, at: InsertAt);

    /// Chooses: requests leave by [`Cx::issue`]. blk-mq: exactly one; single queue: one or more.
    /// With `force` everything must leave, one call at a time, without waiting.
    fn dispatch(&mut self, cx: &mut Cx<'_>, hctx: HctxId, force: bool) -> Dispatched;

    /// Lets go of this request, which it holds, whatever it would choose itself: it follows
    /// somebody whose turns are known. False if it cannot.
    fn release(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) -> bool {
        false
    }

    /// What a recorded scheduler of this kind said, with our numbers of tasks: it takes over what
    /// that tells of a state which it could not follow. `rq`: the message is about this request,
    /// which is bound and arrives.
    fn heed(&mut self, _cx: &mut Cx<'_>, _said: &str, _rq: Option<RequestId>) {}

    /// Whether its last choice hangs on what [`Scheduler::release`] has shown to be wrong.
    fn is_in_doubt(&self) -> bool {
        false
    }

    /// Whether writes are not to be throttled while it is attached, unless somebody asked for it
    /// (rule wbt-14).
    fn disables_wbt(&self) -> bool {
        false
    }

    /// Another one in the same state, if there can be one: what is tried with it does not count.
    fn fork(&self) -> Option<Box<dyn Scheduler>> {
        None
    }

    /// Single queue: the driver has taken a first look at the request.
    fn activated(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) {}

    /// Single queue: the driver gave an activated request back to the dispatch list.
    fn deactivated(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) {}

    /// blk-mq: the driver gave the request back; it will be bound and inserted again, at the head.
    fn requeued(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) {}

    /// The device finished the request.
    fn completed(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) {}

    /// blk-mq: the last step of a flush sequence is done, whose request was allocated at `since`.
    /// Data of it that went through the scheduler had a [`Scheduler::completed`] of their own.
    fn flushed(&mut self, _cx: &mut Cx<'_>, _since: Instant, _has_data: bool) {}

    /// The request is freed: after completion, or when it was merged away. Exactly once per
    /// [`Scheduler::bind`] that was not undone by [`Scheduler::requeued`].
    fn finished(&mut self, _cx: &mut Cx<'_>, _rq: RequestId) {}

    /// The task for which requests were withheld just now, after [`Dispatched::Hold`]: whose turn
    /// it is, or who is waited for.
    fn waits_for(&self) -> Option<ContextId> {
        None
    }

    /// When [`Scheduler::timer`] wants to be called; the only way to ask for the future. Read anew
    /// after every hook; a scheduler that counts in jiffies rounds to ticks itself.
    fn next_timer(&self) -> Option<Instant> {
        None
    }

    /// The time asked for has come.
    fn timer(&mut self, _cx: &mut Cx<'_>) {}

    /// The last task of an io_context exited; its `tasks` is zero already.
    fn io_context_exited(&mut self, _cx: &mut Cx<'_>, _io_context: IoContextId) {}

    /// A control group's weight changed; called before the next hook.
    fn cgroup_changed(&mut self, _cx: &mut Cx<'_>, _cgroup: CgroupId) {}

    /// A control group disappears: no task and no group is in it any more. What it still has queued
    /// or on its way is served all the same; where, the scheduler decides.
    fn cgroup_removed(&mut self, _cx: &mut Cx<'_>, _cgroup: CgroupId) {}

    /// The scheduler was attached to a device, once, before anything else;
    /// [`Scheduler::depth_changed`] follows.
    fn attached(&mut self, _cx: &mut Cx<'_>) {}

    /// The scheduler, which holds nothing any more, is about to be detached.
    fn detached(&mut self, _cx: &mut Cx<'_>) {}

    /// `nr_requests` changed, or the scheduler was just attached. On kernels whose
    /// `depth_hook_sees_old` holds, `cx.limits()` still has the old value after a change.
    fn depth_changed(&mut self, _cx: &mut Cx<'_>) {}

    /// Whether [`Scheduler::dispatch`] might choose something for this hardware queue. In the
    /// single queue its negation is what the elevator calls "empty": it decides whether a device is
    /// plugged and whether merging is tried. It may hold with nothing queued (CFQ's idling queue).
    fn has_work(&self, _hctx: HctxId) -> bool {
        self.queued() > 0
    }

    /// Requests it holds.
    fn queued(&self) -> u32;

    /// Checks all its invariants; called after every step under `--paranoid`.
    fn check(&self, _cx: &Cx<'_>) {}

    /// A line or two about its inner state, for differences found by conformance tests.
    fn describe(&self, _cx: &Cx<'_>) -> String {
        alloc::format!("{}: {} queued", self.about().name, self.queued())
    }
}

/// What is fixed about a scheduler.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name in sysfs.
    pub name: &'static str,
    /// The shape of the block layer it lives in.
    pub shape: Shape,
    /// Which of its hooks take a lock that all cores share.
    pub lock: SharedLock,
    /// Where a request is looked for that a bio is merged into.
    pub lookup: MergeLookup,
    /// What it wants, in one sentence.
    pub summary: &'static str,
    /// Its tunables, in sysfs order.
    pub tunables: &'static [Tunable],
}

/// Which hooks of a scheduler take a lock that all cores share. On a single queue whatever runs
/// takes the queue's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedLock {
    /// None does: what it holds is held by core.
    Unused,
    /// All but the end of a command, where it has nothing to do.
    AllButCompletion,
    /// Every hook that is called.
    All,
}

/// Requests that a bio is compared with where only the newest are looked at (rule merge-6).
pub const COMPARED: usize = 8;

/// Where a request is looked for that a bio could be merged into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeLookup {
    /// In the elevator's index of all that are queued, and by [`Scheduler::front_merge`]; arriving
    /// requests are appended to queued ones likewise (rules merge-1 to merge-5).
    Index,
    /// Among the newest that [`Scheduler::recent`] names (rule merge-6).
    Recent,
}

/// A file below `/sys/block/X/queue/iosched/`.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// File name.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// Value after the scheduler was attached; `None` where it depends on the device or kernel.
    pub default: Option<i64>,
    /// Smallest accepted value.
    pub min: i64,
    /// Largest accepted value.
    pub max: i64,
    /// What it does, in one sentence.
    pub effect: &'static str,
}

/// The answer to "may this task allocate?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayQueue {
    /// Within the limits.
    May,
    /// Beyond the limits too.
    Must,
    /// Not now.
    No,
}

/// On which end a bio was merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Appended.
    Back,
    /// Prepended.
    Front,
}

/// Where an arriving request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertAt {
    /// Wherever the policy wants it.
    Sorted,
    /// Before everything else: it was with the driver already.
    Head,
}

/// Where in the dispatch list a request goes (single queue; rules dispatch-list-1 and
/// dispatch-list-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Sorted in by sector, from the last boundary on.
    Sorted,
    /// At the tail.
    Tail,
}

/// What came of a call of [`Scheduler::dispatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatched {
    /// This many requests left.
    Some(u32),
    /// Requests are queued but withheld, and something will end that: a completion, an arrival or
    /// the scheduler's timer.
    Hold(HoldReason),
    /// Nothing is queued.
    Empty,
}

/// When the queue should be run on behalf of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunQueue {
    /// By a kernel worker, soon.
    Async,
    /// Before the current step ends.
    Now,
}

/// What a task is to schedulers, apart from its io_context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoContext {
    /// The explicitly set priority.
    pub ioprio: Ioprio,
    /// Nice value of the task that used it last.
    pub nice: i8,
    /// How the processor scheduler treats that task; an unset priority is derived from it.
    pub policy: CpuPolicy,
    /// Tasks that use it.
    pub tasks: u32,
}

/// How the processor scheduler treats a task (rule owner-3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuPolicy {
    /// SCHED_OTHER or SCHED_BATCH: best effort, with a level derived from nice.
    #[default]
    Normal,
    /// SCHED_FIFO, SCHED_RR or SCHED_DEADLINE: real time.
    RealTime,
    /// SCHED_IDLE: idle.
    Idle,
}

/// A control group as the block layer sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// Path from the root, which is "/".
    pub path: String,
    /// The group above it; `None` for the root.
    pub parent: Option<CgroupId>,
    /// Its weight, if one was set.
    pub weight: Option<u32>,
    /// The weight of the tasks directly in it against its children, if one was set (CFQ on v1).
    pub leaf_weight: Option<u32>,
}

/// What a queue shows its scheduler while a hook runs. Bios, tags, contexts, the dispatch list and
/// the guard are not among it: who has a [`Cx`] cannot reach them.
pub(crate) struct Seen {
    pub kernel: &'static Kernel,
    pub limits: Limits,
    pub tags_per_word: u32,
    pub requests: Arena<Request>,
    pub io_contexts: Vec<IoContext>,
    pub cgroups: Vec<Cgroup>,
    /// Control groups whose weight changed since the scheduler last learned of such.
    pub reweighed: Vec<CgroupId>,
    /// The core that each context runs on.
    pub runs_on: Vec<u16>,
    pub wishes: Wishes,
    pub log: EventLog,
}

/// What a scheduler asked for during a hook; the queue acts on it afterwards.
#[derive(Default)]
pub(crate) struct Wishes {
    pub issued: Vec<(RequestId, Placement, DispatchReason)>,
    pub run: Option<RunQueue>,
}

impl Seen {
    /// Of a queue that is new.
    pub fn new(kernel: &'static Kernel, limits: Limits, log: EventLog) -> Seen {
        Seen {
            kernel,
            limits,
            tags_per_word: 0,
            requests: Arena::new(),
            io_contexts: Vec::new(),
            cgroups: alloc::vec![Cgroup { path: String::from("/"), ..Cgroup::default() }],
            reweighed: Vec::new(),
            runs_on: Vec::new(),
            wishes: Wishes::default(),
            log,
        }
    }

    /// The core a context runs on.
    #[inline]
    pub fn cpu_of(&self, id: ContextId) -> u16 {
        self.runs_on.get(id.0 as usize).copied().unwrap_or(0)
    }
}

/// Everything a scheduler may see and do while one of its hooks runs: a window on the queue.
pub struct Cx<'a> {
    /// The time; the same during one step.
    pub now: Instant,
    /// The time as the code that runs knows it: a task that plugs may have read the clock before.
    pub clock: Instant,
    /// In whose context the code runs.
    pub context: ContextId,
    seen: &'a mut Seen,
}

impl<'a> Cx<'a> {
    #[inline]
    pub(crate) fn new(now: Instant, context: ContextId, seen: &'a mut Seen) -> Cx<'a> {
        Cx { now, clock: now, context, seen }
    }

    /// The kernel whose rules hold.
    pub fn kernel(&self) -> &'static Kernel {
        self.seen.kernel
    }

    /// The queue's limits and the device's facts.
    pub fn limits(&self) -> &Limits {
        &self.seen.limits
    }

    /// blk-mq: tags in a word of the scheduler's tag maps, which keep their words when there are
    /// fewer requests than before (rule tags-1). [`Scheduler::depth_changed`] sees them as they
    /// will be.
    pub fn tags_per_word(&self) -> u32 {
        self.seen.tags_per_word
    }

    /// The core on which the code runs.
    pub fn cpu(&self) -> u16 {
        self.seen.cpu_of(self.context)
    }

    /// A request.
    #[track_caller]
    pub fn request(&self, rq: RequestId) -> &Request {
        &self.seen.requests[rq]
    }

    /// An io_context.
    pub fn io_context(&self, id: IoContextId) -> IoContext {
        self.seen.io_contexts.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// A control group.
    pub fn cgroup(&self, id: CgroupId) -> &Cgroup {
        &self.seen.cgroups[id.0 as usize]
    }

    /// Lets a request leave the scheduler.
    pub fn issue(&mut self, rq: RequestId, placement: Placement, reason: DispatchReason) {
        self.seen.wishes.issued.push((rq, placement, reason));
    }

    /// Asks for the queue to be run.
    pub fn run_queue(&mut self, when: RunQueue) {
        let run = &mut self.seen.wishes.run;
        *run = (*run).max(Some(when));
    }

    /// Whether anybody reads messages; who has to look something up for one asks first.
    #[inline]
    pub fn wants_messages(&self) -> bool {
        self.seen.log.wants_messages()
    }

    /// Writes a message into the trace, as the kernel's schedulers do; formatted only when wanted.
    #[inline]
    pub fn message(&mut self, text: fmt::Arguments<'_>) {
        if self.wants_messages() && self.seen.log.writes_message() {
            self.write_message(None, text);
        }
    }

    /// Writes a message about a control group; from 4.14 on the record carries the group's id.
    #[inline]
    pub fn group_message(&mut self, cgroup: CgroupId, text: fmt::Arguments<'_>) {
        if self.wants_messages() && self.seen.log.writes_message() {
            self.write_message(Some(cgroup), text);
        }
    }

    #[cold]
    fn write_message(&mut self, cgroup: Option<CgroupId>, text: fmt::Arguments<'_>) {
        let (at, context, cpu) = (self.now, self.context, self.cpu());
        let text = alloc::fmt::format(text);
        self.now = self.seen.log.time_after(at, &text);
        let action = Action::Message { text, cgroup };
        self.seen.log.push(|| Event { at, context, cpu, ..Event::note(action) });
    }
}

/// Why a tunable was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunableError {
    /// No tunable of this name; what there is.
    Unknown {
        /// Names of the scheduler's tunables and the queue's settings.
        known: Vec<&'static str>,
    },
    /// Outside its range.
    OutOfRange {
        /// Smallest accepted value.
        min: i64,
        /// Largest accepted value.
        max: i64,
        /// Unit of the value.
        unit: &'static str,
    },
}
