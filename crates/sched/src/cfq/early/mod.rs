//! CFQ before control groups: 2.6.28 and 2.6.32.
//!
//! One tree of queues that take turns, no groups and no kinds of workload; times are in ticks. In
//! 2.6.28 a queue is waited for whoever else has what comes next on the disk. 2.6.32 looks for a
//! queue that goes on close by, and lets processes that do so share one.
//!
//! Its rules are named where they are followed (those of `docs/rules/cfq-early.md`). One idea a
//! file, as in the directory above.

mod binding;
mod cooperator;
mod depth;
mod dispatch;
mod idle;
mod insert;
mod queue;
mod rules;
mod seek;
mod settings;
mod turn;

pub(super) use settings::about_on;

use crate::sector_tree::SectorTree;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::{Arena, Instant, Links, Sector, Side};
use binding::{Bound, Cic};
use block::scheduler::{Dispatched, HctxId, InsertAt, MayQueue, Merge};
use block::{About, Bio, ContextId, Cx, IoContextId, Kernel, Request, RequestId, Scheduler};
use core::fmt;
use depth::Depth;
use queue::{Queue, QueueId};
use rules::Rules;
use settings::Settings;
use turn::Turn;

/// CFQ without groups. Times are in jiffies.
pub(super) struct EarlyCfq {
    about: &'static About,
    rules: Rules,
    settings: Settings,
    queues: Arena<Queue>,
    /// Busy queues in the order of their turns: rank of the class, key.
    tree: Vec<(u8, i64, QueueId)>,
    /// By level: queues by where they would go on (2.6.32).
    prio_trees: [SectorTree<Queue, ()>; 8],
    contexts: BTreeMap<IoContextId, Cic>,
    /// Real time and best effort by level, and idle: queues that asynchronous requests share.
    shared: [[Option<QueueId>; 8]; 3],
    bound: Side<Request, Bound>,
    links: Links<Request>,
    active: Option<QueueId>,
    /// Whose request was the first of the turn.
    active_context: Option<IoContextId>,
    turn: Turn,
    timer: Option<Instant>,
    /// Requests in queues.
    queued: u32,
    /// Requests of synchronous queues that left and are not done.
    sync_flight: u32,
    /// Requests that the driver has looked at and that are not done: asynchronous and synchronous.
    in_driver: [u32; 2],
    depth: Depth,
    /// Where the last request that the driver looked at ends.
    last_position: Sector,
    /// When a synchronous request was last done.
    last_end_sync: i64,
}

impl EarlyCfq {
    pub fn new(kernel: &Kernel) -> EarlyCfq {
        EarlyCfq {
            about: about_on(kernel),
            rules: Rules::of(kernel),
            settings: Settings::new(kernel.hz),
            queues: Arena::new(),
            tree: Vec::new(),
            prio_trees: Default::default(),
            contexts: BTreeMap::new(),
            shared: [[None; 8]; 3],
            bound: Side::new(),
            links: Links::new(),
            active: None,
            active_context: None,
            turn: Turn::Begins,
            timer: None,
            queued: 0,
            sync_flight: 0,
            in_driver: [0; 2],
            depth: Depth::default(),
            last_position: Sector(0),
            last_end_sync: 0,
        }
    }

    fn busy_queues(&self) -> u32 {
        self.tree.len() as u32
    }

    /// A message about a queue (rule cfq-message-1).
    fn say(&self, cx: &mut Cx<'_>, id: QueueId, text: fmt::Arguments<'_>) {
        let pid = self.queues[id].pid.0;
        cx.message(format_args!("cfq{pid} {text}"));
    }
}

impl Scheduler for EarlyCfq {
    fn about(&self) -> &'static About {
        self.about
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

    fn front_merge(&mut self, _cx: &mut Cx<'_>, bio: &Bio) -> Option<RequestId> {
        let id = self.queue_of_bio(bio)?;
        self.queues[id].sorted.find(bio.end())
    }

    /// Rule cfq-early-bind-3: only with the submitter's own requests.
    fn allow_bio_merge(&mut self, cx: &mut Cx<'_>, rq: RequestId, bio: &Bio) -> bool {
        let fits = !bio.is_sync() || cx.request(rq).is_sync();
        fits && self.queue_of_bio(bio) == Some(self.bound[rq].queue)
    }

    fn allow_request_merge(&mut self, _cx: &mut Cx<'_>, rq: RequestId, next: RequestId) -> bool {
        self.bound[rq].queue == self.bound[next].queue
    }

    fn bio_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, _bio: &Bio, merge: Merge) {
        if merge == Merge::Front {
            self.queues[self.bound[rq].queue].sorted.remove(rq);
            self.add_sorted(cx, rq);
        }
    }

    fn requests_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) {
        self.join(cx, rq, next);
    }

    fn former(&self, _cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        self.queues[self.bound[rq].queue].sorted.previous(rq)
    }

    fn latter(&self, _cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        self.queues[self.bound[rq].queue].sorted.next(rq)
    }

    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, _at: InsertAt) {
        self.add_request(cx, rq);
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>, _hctx: HctxId, force: bool) -> Dispatched {
        match (self.tree.is_empty(), force) {
            (true, _) => Dispatched::Empty,
            (_, true) => self.drain(cx),
            (_, false) if self.rules.dispatches_rounds => self.dispatch_rounds(cx),
            (_, false) => self.dispatch_one(cx),
        }
    }

    fn activated(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let id = self.bound[rq].queue;
        self.in_driver[usize::from(self.queues[id].sync)] += 1;
        let drv = self.in_driver[0] + self.in_driver[1];
        self.say(cx, id, format_args!("activate rq, drv={drv}"));
        self.last_position = cx.request(rq).end();
    }

    fn deactivated(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let id = self.bound[rq].queue;
        self.in_driver[usize::from(self.queues[id].sync)] -= 1;
        let drv = self.in_driver[0] + self.in_driver[1];
        self.say(cx, id, format_args!("deactivate rq, drv={drv}"));
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
        self.timer
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.timer_fired(cx);
    }

    fn io_context_exited(&mut self, cx: &mut Cx<'_>, io_context: IoContextId) {
        self.exit_context(cx, io_context);
    }

    /// Nothing synchronous was done for a second: asynchronous requests are not held back (rule
    /// cfq-settings-4).
    fn attached(&mut self, cx: &mut Cx<'_>) {
        self.last_end_sync = now(cx) - i64::from(self.settings.hz.get());
    }

    fn detached(&mut self, cx: &mut Cx<'_>) {
        self.timer = None;
        if let Some(active) = self.active {
            self.expire(cx, active, false);
        }
    }

    /// A queue that is waited for and has nothing does not count: the elevator is empty.
    fn has_work(&self, _hctx: HctxId) -> bool {
        !self.tree.is_empty()
    }

    fn queued(&self) -> u32 {
        self.queued
    }

    fn check(&self, cx: &Cx<'_>) {
        self.check_all(cx);
    }

    fn describe(&self, cx: &Cx<'_>) -> String {
        let mut text = format!(
            "cfq: {} queued, {} + {} in driver, active {:?}, timer {:?}",
            self.queued,
            self.in_driver[0],
            self.in_driver[1],
            self.active.map(|id| self.queues[id].pid.0),
            self.timer,
        );
        for (_, key, id) in &self.tree {
            let queue = &self.queues[*id];
            text += &format!(
                "; cfq{} {:?} {} queued, {} dispatched, next {:?}, key {key}",
                queue.pid.0,
                queue.class,
                queue.fifo.len(),
                queue.dispatched,
                queue.next.map(|rq| cx.request(rq).sector.0),
            );
        }
        text
    }
}

impl EarlyCfq {
    /// Panics unless counts and places agree with what the queues hold.
    fn check_all(&self, cx: &Cx<'_>) {
        let queued: u32 = self.queues.iter().map(|(_, queue)| queue.fifo.len()).sum();
        assert_eq!(self.queued, queued, "requests in queues");
        for (id, queue) in self.queues.iter() {
            assert_eq!(queue.sorted.len(), queue.fifo.len() as usize, "both orders of {id:?}");
            assert_eq!(queue.next.is_some(), !queue.is_empty(), "{id:?} has a next request");
            assert_eq!(queue.is_empty(), queue.place.is_none(), "{id:?} has a turn to come");
            assert!(queue.refs >= queue.allocated, "references of {id:?}");
            let places = self.tree.iter().filter(|entry| entry.2 == id).count();
            assert_eq!(places, usize::from(queue.place.is_some()), "places of {id:?}");
            for rq in queue.sorted.iter() {
                assert_eq!(queue.sorted.sector_of(rq), cx.request(rq).sector, "place of {rq:?}");
                assert_eq!(self.bound[rq].queue, id, "queue of {rq:?}");
            }
        }
        let order: Vec<_> = self.tree.iter().map(|(rank, key, _)| (*rank, *key)).collect();
        assert!(order.is_sorted(), "queues in the order of their turns");
    }
}

/// The kernel's count of ticks.
fn now(cx: &Cx<'_>) -> i64 {
    cx.now.jiffies(cx.kernel().hz).0 as i64
}
