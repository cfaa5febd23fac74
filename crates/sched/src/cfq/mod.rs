//! CFQ: the disk's time is divided among processes, and among control groups.
//!
//! Every process has a queue of its own for what it waits for; writes that nobody waits for share
//! queues by priority. Queues take turns. A queue that runs empty in its turn is waited for a
//! while, so that a process that reads on sequentially keeps the disk's arm where it is.
//!
//! Its rules are named where they are followed (those of `docs/rules/cfq-*.md`); the reference is
//! 4.19. Kernels before control groups differ so much that they have a directory of their own
//! (`early`). One idea a file: whose request it is (`binding`), its queue (`queue`), arrivals
//! (`insert`), groups and what they pay (`group`), turns (`slice`), whose turn it is (`select`),
//! what leaves (`dispatch`), waiting (`idle`, `think`), processes that work as one (`cooperator`),
//! the disk's depth (`depth`), what a recorded one said (`heed`).

mod binding;
mod cooperator;
mod depth;
mod dispatch;
mod early;
mod group;
mod heed;
mod idle;
mod insert;
mod queue;
mod rules;
mod select;
mod settings;
mod slice;
mod tree;

use crate::sector_tree::SectorTree;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::{Arena, Instant, Links, Sector, Side};
use binding::{Bound, Contexts};
use block::scheduler::{Dispatched, HctxId, InsertAt, MayQueue, Merge};
use block::{
    About, Bio, CgroupId, ContextId, Cx, DispatchReason, IoContextId, Kernel, MergeLookup, Request,
    RequestId, Scheduler, Shape, SharedLock,
};
use core::fmt;
use depth::DepthProbe;
use group::{Group, GroupTree};
use heed::Heard;
use queue::{Class, Queue, QueueId};
use rules::Rules;
use settings::{Settings, TUNABLES};

/// What is fixed about CFQ with control groups.
pub const ABOUT: About = About {
    name: "cfq",
    shape: Shape::Single,
    lock: SharedLock::All,
    lookup: MergeLookup::Index,
    summary: "divides the disk's time among processes and groups, and waits for sequential ones",
    tunables: &TUNABLES,
};

/// What is fixed about CFQ on a kernel.
pub(crate) fn about_on(kernel: &Kernel) -> &'static About {
    if is_early(kernel) { early::about_on(kernel) } else { &ABOUT }
}

/// The elevator of a kernel.
pub(crate) fn build(kernel: &Kernel) -> Box<dyn Scheduler> {
    match is_early(kernel) {
        true => Box::new(early::EarlyCfq::new(kernel)),
        false => Box::new(Cfq::new(kernel)),
    }
}

/// Whether it is the CFQ before control groups.
fn is_early(kernel: &Kernel) -> bool {
    !Rules::of(kernel).has_groups
}

/// "Long ago", for what has not happened yet: a second.
const LONG_AGO: i64 = 1_000_000_000;

/// Number of a group: that of its control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GroupId(u32);

/// The kind of a queue's workload, in the order in which the kernel numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Nobody waits for it.
    Async = 0,
    /// Somebody does, but it is not worth waiting for the process.
    SyncNoIdle = 1,
    /// Somebody does, and it is.
    Sync = 2,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Async, Kind::SyncNoIdle, Kind::Sync];
}

/// How a turn came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Begins,
    /// This queue ended another's turn.
    Preempts(QueueId),
    Cooperates,
}

impl Turn {
    fn reason(self, id: QueueId) -> DispatchReason {
        match self {
            Turn::Preempts(by) if by == id => DispatchReason::Preempts,
            Turn::Begins | Turn::Preempts(_) => DispatchReason::TurnBegins,
            Turn::Cooperates => DispatchReason::Cooperates,
        }
    }
}

/// The CFQ elevator. Times are in nanoseconds since boot.
#[derive(Clone)]
pub struct Cfq {
    rules: Rules,
    settings: Settings,
    queues: Arena<Queue>,
    /// By number of the control group.
    groups: Vec<Option<Group>>,
    group_tree: GroupTree,
    /// By level.
    prio_trees: [SectorTree<Queue, ()>; 8],
    contexts: Contexts,
    bound: Side<Request, Bound>,
    links: Links<Request>,
    serving_group: Option<GroupId>,
    serving_class: Class,
    serving_kind: Kind,
    workload_expires: i64,
    active: Option<QueueId>,
    /// Whose request was the first of the turn.
    active_context: Option<IoContextId>,
    /// How the next turn came about.
    turn: Turn,
    timer: Option<Instant>,
    waits_for_group: bool,
    busy_queues: u32,
    busy_sync_queues: u32,
    /// Requests in queues.
    queued: u32,
    /// Requests that left and are not done: of asynchronous queues and of synchronous ones.
    in_flight: [u32; 2],
    /// Requests that the driver has looked at and that are not done.
    in_driver: u32,
    depth: DepthProbe,
    /// Where the last request that the driver looked at ends.
    last_position: Sector,
    /// When a synchronous request was last done that had taken too long.
    last_delayed_sync: i64,
    heard: Heard,
}

impl Cfq {
    /// The elevator of `kernel` with default settings.
    pub fn new(kernel: &Kernel) -> Cfq {
        Cfq {
            rules: Rules::of(kernel),
            settings: Settings::new(),
            queues: Arena::new(),
            groups: Vec::new(),
            group_tree: GroupTree::default(),
            prio_trees: Default::default(),
            contexts: Contexts::default(),
            bound: Side::new(),
            links: Links::new(),
            serving_group: None,
            serving_class: Class::BestEffort,
            serving_kind: Kind::Async,
            workload_expires: 0,
            active: None,
            active_context: None,
            turn: Turn::Begins,
            timer: None,
            waits_for_group: false,
            busy_queues: 0,
            busy_sync_queues: 0,
            queued: 0,
            in_flight: [0; 2],
            in_driver: 0,
            depth: DepthProbe::default(),
            last_position: Sector(0),
            last_delayed_sync: 0,
            heard: Heard::default(),
        }
    }

    fn now(&self, cx: &Cx<'_>) -> i64 {
        cx.now.as_nanos() as i64
    }

    /// A tick of the kernel's clock.
    fn jiffy(&self, cx: &Cx<'_>) -> i64 {
        cx.kernel().hz.tick().as_nanos() as i64
    }

    /// A message about a queue (rule cfq-message-1).
    #[inline]
    fn say(&self, cx: &mut Cx<'_>, id: QueueId, text: fmt::Arguments<'_>) {
        if cx.wants_messages() {
            self.write(cx, id, text);
        }
    }

    #[cold]
    fn write(&self, cx: &mut Cx<'_>, id: QueueId, text: fmt::Arguments<'_>) {
        let queue = &self.queues[id];
        let cgroup = CgroupId(queue.group.0);
        if self.rules.names_paths {
            let path = cx.cgroup(cgroup).path.clone();
            cx.group_message(cgroup, format_args!("{} {path} {text}", queue.name()));
        } else {
            cx.group_message(cgroup, format_args!("{} {text}", queue.name()));
        }
    }
}

impl Scheduler for Cfq {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn disables_wbt(&self) -> bool {
        true
    }

    fn get(&self, _cx: &Cx<'_>, tunable: &str) -> i64 {
        match self.settings.get(tunable) {
            Some(value) => value,
            None => panic!("cfq has no tunable {tunable}"),
        }
    }

    fn set(&mut self, _cx: &mut Cx<'_>, tunable: &str, value: i64) {
        let known = self.settings.set(tunable, value);
        assert!(known, "cfq has no tunable {tunable}");
    }

    fn may_queue(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> MayQueue {
        self.may_allocate(cx, bio)
    }

    fn bind(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.bind_request(cx, rq);
    }

    /// Rule cfq-bind-9: only among the submitter's own requests.
    fn front_merge(&mut self, _cx: &mut Cx<'_>, bio: &Bio) -> Option<RequestId> {
        let id = self.queue_of_bio(bio)?;
        self.queues[id].sorted.find(bio.end())
    }

    /// Rule cfq-bind-9: what somebody waits for does not go into what nobody waits for, nor into
    /// another's.
    fn allow_bio_merge(&mut self, cx: &mut Cx<'_>, rq: RequestId, bio: &Bio) -> bool {
        let fits = !bio.is_sync() || cx.request(rq).is_sync();
        fits && self.queue_of_bio(bio) == Some(self.queue_of(rq))
    }

    fn allow_request_merge(&mut self, _cx: &mut Cx<'_>, rq: RequestId, next: RequestId) -> bool {
        self.queue_of(rq) == self.queue_of(next)
    }

    fn bio_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, _bio: &Bio, merge: Merge) {
        if merge == Merge::Front {
            self.reposition(cx, rq);
        }
    }

    fn requests_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) {
        self.join(cx, rq, next);
    }

    fn former(&self, _cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        self.queues[self.queue_of(rq)].sorted.previous(rq)
    }

    fn latter(&self, _cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        self.queues[self.queue_of(rq)].sorted.next(rq)
    }

    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, _at: InsertAt) {
        self.add_request(cx, rq);
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>, _hctx: HctxId, force: bool) -> Dispatched {
        match (self.busy_queues, force) {
            (0, _) => Dispatched::Empty,
            (_, true) => self.drain(cx),
            (_, false) => {
                self.heard.in_doubt = false;
                self.dispatch_one(cx)
            }
        }
    }

    fn release(&mut self, cx: &mut Cx<'_>, rq: RequestId) -> bool {
        self.follow(cx, rq);
        true
    }

    fn is_in_doubt(&self) -> bool {
        self.heard.in_doubt
    }

    fn heed(&mut self, cx: &mut Cx<'_>, said: &str, rq: Option<RequestId>) {
        self.take_over(cx, said, rq);
    }

    fn fork(&self) -> Option<Box<dyn Scheduler>> {
        Some(Box::new(self.clone()))
    }

    fn activated(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.in_driver += 1;
        if cx.wants_messages() {
            let drv = self.in_driver;
            self.say(cx, self.queue_of(rq), format_args!("activate rq, drv={drv}"));
        }
        self.last_position = cx.request(rq).end();
    }

    fn deactivated(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.in_driver -= 1;
        let drv = self.in_driver;
        self.say(cx, self.queue_of(rq), format_args!("deactivate rq, drv={drv}"));
    }

    fn completed(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.complete(cx, rq);
    }

    fn finished(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.release(cx, rq);
    }

    fn waits_for(&self) -> Option<ContextId> {
        self.active.map(|id| self.queues[id].pid)
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timer_due()
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.timer_fired(cx);
    }

    fn io_context_exited(&mut self, cx: &mut Cx<'_>, io_context: IoContextId) {
        self.exit_context(cx, io_context);
    }

    fn cgroup_removed(&mut self, cx: &mut Cx<'_>, cgroup: CgroupId) {
        self.drop_group(cx, cgroup);
    }

    /// Rule cfq-settings-2: nobody is waited for on a disk that does not rotate.
    fn attached(&mut self, cx: &mut Cx<'_>) {
        self.last_delayed_sync = self.now(cx) - LONG_AGO;
        if !cx.limits().facts.rotational {
            self.settings.slice_idle = 0;
        }
    }

    fn detached(&mut self, cx: &mut Cx<'_>) {
        self.timer = None;
        if let Some(active) = self.active {
            self.expire(cx, active, false);
        }
    }

    fn has_work(&self, _hctx: HctxId) -> bool {
        self.busy_queues > 0
    }

    fn queued(&self) -> u32 {
        self.queued
    }

    fn check(&self, cx: &Cx<'_>) {
        self.check_all(cx);
    }

    fn describe(&self, cx: &Cx<'_>) -> String {
        let active = self.active.map(|id| self.queues[id].name());
        let active = active.map_or_else(|| String::from("nobody"), |name| format!("{name}"));
        let mut text = format!(
            "cfq: {} busy, {} queued, {:?} in flight, active {}, timer {:?}, {:?} {:?} {:?}",
            self.busy_queues,
            self.queued,
            self.in_flight,
            active.trim_end(),
            self.timer,
            self.serving_group,
            self.serving_class,
            self.serving_kind,
        );
        for (_, queue) in self.queues.iter().filter(|(_, queue)| queue.on_rr) {
            let next = queue.next.map(|rq| cx.request(rq).sector.0);
            let name = format!("{}", queue.name());
            text += &format!(
                "; {} {:?} {} queued, {} dispatched, next {next:?}, place {:?}",
                name.trim_end(),
                queue.class,
                queue.fifo.len(),
                queue.dispatched,
                queue.place,
            );
        }
        text
    }
}

impl Cfq {
    /// Panics unless counts and places agree with what the queues hold.
    fn check_all(&self, cx: &Cx<'_>) {
        let sum = |of: fn(&Queue) -> u32| self.queues.iter().map(|(_, queue)| of(queue)).sum();
        assert_eq!(self.queued, sum(|queue| queue.fifo.len()), "requests in queues");
        assert_eq!(self.busy_queues, sum(|queue| u32::from(queue.on_rr)), "busy queues");
        let busy_sync = sum(|queue| u32::from(queue.on_rr && queue.sync));
        assert_eq!(self.busy_sync_queues, busy_sync, "busy synchronous queues");
        for (id, queue) in self.queues.iter() {
            assert_eq!(queue.sorted.len(), queue.fifo.len() as usize, "both orders of {id:?}");
            assert_eq!(queue.next.is_some(), !queue.is_empty(), "{id:?} has a next request");
            assert!(queue.is_empty() || queue.on_rr, "{id:?} has requests and is not served");
            assert_eq!(queue.on_rr, queue.place.is_some(), "{id:?} is busy and in a tree");
            let is_left = queue.is_empty() && self.active != Some(id);
            assert!(!queue.on_rr || !is_left, "{id:?} is busy with nothing");
            assert!(queue.refs >= queue.allocated, "references of {id:?}");
            for rq in queue.sorted.iter() {
                assert_eq!(queue.sorted.sector_of(rq), cx.request(rq).sector, "place of {rq:?}");
                assert_eq!(self.queue_of(rq), id, "queue of {rq:?}");
            }
        }
        let groups = self.groups.iter().flatten().map(|group| group.queues);
        assert_eq!(groups.sum::<u32>(), self.busy_queues, "busy queues of groups");
    }
}
