//! BFQ: the disk's service is divided among processes and groups, in sectors.
//!
//! Every process has a queue for what it waits for. The queue in service is served alone until its
//! budget, its time or its requests are at an end; whose turn it is then follows from virtual times
//! (`wf2q`, `tree`). What is interactive or plays in real time has its weight raised for a while.
//!
//! The reference is 6.13. One idea a file: whose request it is (`binding`), its queue (`queue`),
//! arrivals (`insert`), what is charged and how a service ends (`budget`), the disk's rate
//! (`peak_rate`), raising (`raise`), bursts (`burst`), waiting (`idle`), processes that work as one
//! (`merge`), requests of others meanwhile (`inject`), turns and what leaves (`select`).

mod backports;
mod binding;
mod budget;
mod burst;
mod changes;
mod checks;
mod depth;
mod idle;
mod inject;
mod inject_by_bandwidth;
mod insert;
mod merge;
mod messages;
mod peak_rate;
mod queue;
mod raise;
mod rules;
mod select;
mod settings;
mod tree;
mod wf2q;

use crate::async_depth::AsyncDepth;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
pub use backports::BACKPORTS;
use base::{Arena, Hz, Instant, Jiffies, Links, List, Sector, Side};
use binding::{Bound, Contexts, Group};
use block::scheduler::{Dispatched, HctxId, InsertAt, Merge};
use block::{
    About, Bio, CgroupId, ContextId, Cx, IoContextId, Kernel, MergeLookup, Request, RequestId,
    Scheduler, Shape, SharedLock, Tunable,
};
use burst::Burst;
pub use changes::CHANGES;
use depth::Depths;
use inject::Measured;
use peak_rate::PeakRate;
use queue::{Queue, QueueId};
use rules::Rules;
use settings::{Settings, TUNABLES, WITH_ASYNC_DEPTH_TUNABLES};
use wf2q::Wf2q;

static ABOUT: About = about(&TUNABLES);
static WITH_ASYNC_DEPTH: About = about(&WITH_ASYNC_DEPTH_TUNABLES);

const fn about(tunables: &'static [Tunable]) -> About {
    About {
        name: "bfq",
        shape: Shape::Multi,
        lock: SharedLock::All,
        lookup: MergeLookup::Index,
        summary: "divides the disk's service by weight, and raises what is interactive",
        tunables,
    }
}

/// What is fixed about BFQ, by kernel: on some the queue's `async_depth` counts.
pub fn about_on(kernel: &Kernel) -> &'static About {
    about_by(&Rules::of(kernel))
}

fn about_by(rules: &Rules) -> &'static About {
    if rules.has_async_depth { &WITH_ASYNC_DEPTH } else { &ABOUT }
}

/// "Long ago", for what has not happened yet, in jiffies or nanoseconds.
const LONG_AGO: i64 = -(1 << 40);
/// For how long what plays in real time is raised, in milliseconds.
const SRT_MAX_TIME: u64 = 300;

/// The number of the root group.
const ROOT: u32 = 0;

/// The class of service, in order of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    RealTime = 0,
    #[default]
    BestEffort = 1,
    Idle = 2,
}

impl Class {
    const ALL: [Class; 3] = [Class::RealTime, Class::BestEffort, Class::Idle];
}

/// What an arrival at an idle queue means for its weight.
#[derive(Clone, Copy, Debug, Default)]
struct Arrival {
    idle_long: bool,
    was_raised: bool,
    deserves: bool,
    interactive: bool,
    soft: bool,
}

/// The BFQ elevator.
#[derive(Clone)]
pub struct Bfq {
    rules: Rules,
    settings: Settings,
    hz: Hz,
    /// The time of the hook that runs, in both of the kernel's units.
    nanos: i64,
    jiffies: i64,
    is_rotational: bool,
    engine: Wf2q,
    queues: Arena<Queue>,
    /// By number of the control group.
    groups: Vec<Option<Group>>,
    contexts: Contexts,
    bound: Side<Request, Bound>,
    links: Links<Request>,
    /// Requests inserted at the head.
    heads: List<Request>,
    head_links: Links<Request>,
    in_service: Option<QueueId>,
    last_budget_start: i64,
    /// Busy queues, by class. One whose class changes meanwhile leaves another class than it
    /// joined, so that these counts wrap around; their sum does not.
    busy: [u32; 3],
    /// Busy queues that are raised.
    wr_busy: u32,
    groups_with_pending: u32,
    /// Requests in queues.
    queued: u32,
    in_driver: u32,
    max_in_driver: u32,
    /// Whether the disk takes several requests at once, if that is known.
    hw_tag: Option<bool>,
    hw_tag_samples: u32,
    /// On such a flash disk queues do not merge by position.
    nonrot_with_queueing: bool,
    last_position: Sector,
    in_serv_last_pos: Sector,
    last_completion: i64,
    last_completed: Option<QueueId>,
    rate: PeakRate,
    max_budget: u64,
    /// How often a queue came into service, until that is enough to know the disk's rate.
    budgets_assigned: u32,
    depths: Depths,
    async_depth: AsyncDepth,
    burst: Burst,
    measured: Measured,
    arrival: Arrival,
    timer: Option<Instant>,
    /// Nanoseconds.
    idling_start: i64,
    idling_start_jiffies: i64,
}

impl Bfq {
    /// The elevator of `kernel` with default settings.
    pub fn new(kernel: &Kernel) -> Bfq {
        Bfq::with_rules(kernel, Rules::of(kernel))
    }

    fn with_rules(kernel: &Kernel, rules: Rules) -> Bfq {
        Bfq {
            rules,
            settings: Settings::new(kernel.hz),
            hz: kernel.hz,
            nanos: 0,
            jiffies: 0,
            is_rotational: true,
            engine: Wf2q::default(),
            queues: Arena::new(),
            groups: Vec::new(),
            contexts: Contexts::default(),
            bound: Side::new(),
            links: Links::new(),
            heads: List::new(),
            head_links: Links::new(),
            in_service: None,
            last_budget_start: LONG_AGO,
            busy: [0; 3],
            wr_busy: 0,
            groups_with_pending: 0,
            queued: 0,
            in_driver: 0,
            max_in_driver: 0,
            hw_tag: None,
            hw_tag_samples: 0,
            nonrot_with_queueing: false,
            last_position: Sector(0),
            in_serv_last_pos: Sector(0),
            last_completion: 0,
            last_completed: None,
            rate: PeakRate::default(),
            max_budget: budget::DEFAULT_MAX,
            budgets_assigned: 0,
            depths: Depths::default(),
            async_depth: AsyncDepth::default(),
            burst: Burst::default(),
            measured: Measured::default(),
            arrival: Arrival::default(),
            timer: None,
            idling_start: LONG_AGO,
            idling_start_jiffies: LONG_AGO,
        }
    }

    /// A hook begins.
    fn enter(&mut self, cx: &Cx<'_>) {
        self.nanos = cx.clock.as_nanos() as i64;
        self.jiffies = cx.now.jiffies(self.hz).0 as i64;
        self.is_rotational = cx.limits().facts.rotational;
        self.engine.now = self.jiffies;
        self.engine.tells_finish = cx.wants_messages();
        self.engine.idle_class_patience = i64::from(self.hz.get()) / 5;
    }

    /// Milliseconds in jiffies.
    fn ms(&self, millis: u64) -> i64 {
        self.hz.jiffies_from_millis(millis).0 as i64
    }

    fn to_millis(&self, jiffies: i64) -> u64 {
        self.hz.millis_from_jiffies(Jiffies(jiffies.max(0) as u64))
    }

    fn nanos_to_jiffies(&self, nanos: i64) -> i64 {
        nanos / self.hz.tick().as_nanos() as i64
    }

    fn busy_queues(&self) -> u32 {
        self.busy.iter().fold(0, |sum, busy| sum.wrapping_add(*busy))
    }

    /// A queue has requests again.
    fn join_busy(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        self.say(cx, id, format_args!("add to busy"));
        let queue = &mut self.queues[id];
        let (entity, back) = (queue.entity, queue.keeps_budget);
        self.engine.activate(entity, back, false);
        self.queues[id].keeps_budget = false;
        self.follow_notes(cx);
        self.queues[id].is_busy = true;
        let class = self.engine[entity].class as usize;
        self.busy[class] = self.busy[class].wrapping_add(1);
        if self.queues[id].dispatched == 0 {
            self.join_pending(id);
            if !self.is_raised(id) {
                self.engine.join_weights(entity);
                self.follow_notes(cx);
            }
        }
        self.wr_busy += u32::from(self.is_raised(id));
        if let Some(waker) = self.queues[id].wakers.waker {
            let woken = &mut self.queues[waker].wakers.woken;
            woken.retain(|other| *other != id);
            woken.insert(0, id);
        }
    }

    /// A queue has none any more.
    fn leave_busy(&mut self, cx: &mut Cx<'_>, id: QueueId, expires: bool) {
        self.say(cx, id, format_args!("del from busy"));
        let entity = self.queues[id].entity;
        self.queues[id].is_busy = false;
        let class = self.engine[entity].class as usize;
        self.busy[class] = self.busy[class].wrapping_sub(1);
        self.wr_busy -= u32::from(self.is_raised(id));
        self.leave_place(id);
        self.queues[id].refs += 1;
        self.engine.deactivate(entity, true, expires);
        self.follow_notes(cx);
        self.queues[id].refs -= 1;
        if self.queues[id].dispatched == 0 {
            self.leave_pending(id);
            if self.engine.has_weight(entity) {
                self.engine.leave_weights(entity);
                self.follow_notes(cx);
            }
        }
    }

    /// A queue has requests that are not done, and had none.
    fn join_pending(&mut self, id: QueueId) {
        if core::mem::replace(&mut self.queues[id].is_pending, true) {
            return;
        }
        let group = self.engine[self.queues[id].entity].group;
        let it = self.group_mut(group);
        it.with_pending += 1;
        self.groups_with_pending += u32::from(self.group(group).with_pending == 1);
    }

    /// Whether a group has requests that are not done.
    fn is_pending(&self, group: u32) -> bool {
        let group = self.groups.get(group as usize).and_then(Option::as_ref);
        group.is_some_and(|group| group.with_pending > 0)
    }

    /// Of a queue whose request was given back when it was not busy any more this is known already.
    fn leave_pending(&mut self, id: QueueId) {
        if !core::mem::take(&mut self.queues[id].is_pending) {
            return;
        }
        let group = self.engine[self.queues[id].entity].group;
        let it = self.group_mut(group);
        it.with_pending -= 1;
        self.groups_with_pending -= u32::from(self.group(group).with_pending == 0);
    }

    /// The service of a queue ends because its process does.
    fn expire_of_exit(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let entity = self.queues[id].entity;
        if self.queues[id].is_empty() {
            if self.queues[id].dispatched == 0 {
                self.queues[id].budget_timeout = self.jiffies;
            }
            if self.queues[id].is_busy {
                self.leave_busy(cx, id, true);
            }
        } else {
            self.engine.activate(entity, false, true);
            self.follow_notes(cx);
        }
        self.leave_service(cx, id);
    }
}

impl Scheduler for Bfq {
    fn about(&self) -> &'static About {
        about_by(&self.rules)
    }

    fn disables_wbt(&self) -> bool {
        true
    }

    fn get(&self, _cx: &Cx<'_>, tunable: &str) -> i64 {
        match self.settings.get(self.hz, tunable) {
            Some(value) => value,
            None if tunable == "async_depth" => self.async_depth.value(),
            None => panic!("bfq has no tunable {tunable}"),
        }
    }

    fn set(&mut self, cx: &mut Cx<'_>, tunable: &str, value: i64) {
        self.enter(cx);
        if tunable == "async_depth" {
            return self.set_async_depth(value);
        }
        let was_low_latency = self.settings.low_latency;
        let known = self.settings.set(self.hz, tunable, value);
        assert!(known, "bfq has no tunable {tunable}");
        match tunable {
            "max_budget" if value == 0 => self.adapt_max_budget(cx),
            "max_budget" => self.max_budget = value as u64,
            "timeout_sync" => self.adapt_max_budget(cx),
            "low_latency" if was_low_latency && value == 0 => self.end_all_raising(),
            _ => {}
        }
    }

    fn limit_depth(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> Option<u32> {
        self.depth_for(cx, bio)
    }

    /// One: that of whoever has more than its share.
    fn min_depth(&self, _cx: &Cx<'_>) -> Option<u32> {
        Some(1)
    }

    fn bio_submitted(&mut self, cx: &mut Cx<'_>, bio: &Bio) {
        self.enter(cx);
        self.look_at_cgroup(cx, bio.origin.io_context, bio.origin.cgroup);
    }

    fn bind(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.enter(cx);
        self.bind_request(cx, rq);
    }

    /// Only among the submitter's own requests.
    fn front_merge(&mut self, _cx: &mut Cx<'_>, bio: &Bio) -> Option<RequestId> {
        let bic = self.contexts.get(bio.origin.io_context);
        let id = if bio.is_sync() { bic.sync } else { bic.asyncs }?;
        self.queues[id].sorted.find(bio.end())
    }

    fn allow_bio_merge(&mut self, cx: &mut Cx<'_>, rq: RequestId, bio: &Bio) -> bool {
        self.enter(cx);
        if bio.is_sync() && !cx.request(rq).is_sync() {
            return false;
        }
        let owner = bio.origin.io_context;
        let bic = self.contexts.get(owner);
        let Some(mut id) = (if bio.is_sync() { bic.sync } else { bic.asyncs }) else {
            return false;
        };
        if self.queues[id].sync
            && let Some(target) = self.cooperator(cx, id, bio.sector, owner)
            && target != id
        {
            self.merge_along(cx, owner, id, target);
            id = target;
        }
        id == self.queue_of_request(rq)
    }

    /// Requests are joined whosever they are. (Observed on 4.19.79, of two groups even; on 6.12.117
    /// and 7.3.4 all merges of random loads are explained by it.)
    fn allow_request_merge(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, _next: RequestId) -> bool {
        true
    }

    fn bio_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, _bio: &Bio, merge: Merge) {
        self.enter(cx);
        if merge == Merge::Front {
            self.reposition(cx, rq);
        }
    }

    fn requests_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) {
        self.enter(cx);
        self.join(cx, rq, next);
    }

    fn former(&self, _cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        self.queues[self.queue_of_request(rq)].sorted.previous(rq)
    }

    fn latter(&self, _cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        self.queues[self.queue_of_request(rq)].sorted.next(rq)
    }

    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, at: InsertAt) {
        self.enter(cx);
        self.add_request(cx, rq, at);
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>, _hctx: HctxId, _force: bool) -> Dispatched {
        self.enter(cx);
        self.dispatch_one(cx)
    }

    fn requeued(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.enter(cx);
        self.finish(cx, rq);
    }

    fn finished(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.enter(cx);
        self.finish(cx, rq);
    }

    fn fork(&self) -> Option<Box<dyn Scheduler>> {
        Some(Box::new(self.clone()))
    }

    fn waits_for(&self) -> Option<ContextId> {
        self.in_service.map(|id| self.queues[id].who)
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timer
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.enter(cx);
        self.timer_fired(cx);
    }

    fn io_context_exited(&mut self, cx: &mut Cx<'_>, io_context: IoContextId) {
        self.enter(cx);
        self.exit_context(cx, io_context);
    }

    /// When does not matter.
    fn cgroup_changed(&mut self, cx: &mut Cx<'_>, cgroup: CgroupId) {
        self.change_weight(cx, cgroup);
    }

    fn cgroup_removed(&mut self, cx: &mut Cx<'_>, cgroup: CgroupId) {
        self.enter(cx);
        self.drop_group(cx, cgroup);
    }

    fn attached(&mut self, cx: &mut Cx<'_>) {
        self.enter(cx);
        self.set_nonrot_with_queueing();
        self.rate = PeakRate::new(self.is_rotational);
        self.attach_depths(cx);
    }

    fn depth_changed(&mut self, cx: &mut Cx<'_>) {
        self.adapt_depths(cx);
    }

    fn detached(&mut self, _cx: &mut Cx<'_>) {
        self.timer = None;
    }

    fn has_work(&self, _hctx: HctxId) -> bool {
        let is_busy = self.rules.busy_is_work && self.busy_queues() > 0;
        is_busy || self.queued > 0 || !self.heads.is_empty()
    }

    fn queued(&self) -> u32 {
        self.queued + self.heads.len()
    }

    fn check(&self, cx: &Cx<'_>) {
        self.check_all(cx);
    }

    fn describe(&self, cx: &Cx<'_>) -> String {
        let name = |id: QueueId| format!("{}", self.queues[id].name());
        let served = self.in_service.map_or_else(|| String::from("nobody"), name);
        let mut text = format!(
            "bfq: {:?} busy, {} raised, {} queued, {} in the driver, in service {served}, \
             timer {:?}",
            self.busy, self.wr_busy, self.queued, self.in_driver, self.timer
        );
        for (id, queue) in self.queues.iter().filter(|(_, queue)| queue.is_busy) {
            let entity = &self.engine[queue.entity];
            let next = queue.next.map(|rq| cx.request(rq).sector.0);
            text += &format!(
                "; {} {} queued, {} dispatched, next {next:?}, budget {} of {}, weight {}, \
                 {} to {}",
                name(id),
                queue.fifo.len(),
                queue.dispatched,
                entity.service,
                entity.budget,
                entity.weight,
                entity.start,
                entity.finish,
            );
        }
        text + &self.engine.describe_groups()
    }
}

impl Bfq {
    /// A request is freed or given back.
    fn finish(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        if self.bound[rq].is_started {
            self.complete(cx, rq);
        }
        self.unbind(cx, rq);
    }

    /// Nobody is raised any more.
    fn end_all_raising(&mut self) {
        let raised: Vec<QueueId> = self.queues.iter().map(|(id, _)| id).collect();
        for id in raised.into_iter().filter(|id| self.is_raised(*id)).collect::<Vec<_>>() {
            self.end_raising(id);
        }
    }
}
