//! Limits of control groups on bytes and bios a second (the kernel's blk-throttle, `io.max`;
//! rules throttle).
//!
//! A bio is shown to `Throttle` before it may become a part of a request. It goes through, or
//! stays here until its group and those above it may do so much. Timers of the kernel count ticks,
//! so it may wait for some of them longer. Then it is handed out to a worker, which submits it.
//!
//! It is a pure state machine: time comes in with the call, and who may go on is asked for.

mod account;
mod io_max;
mod message;
pub(crate) mod passage;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod recorded;
mod tree;
mod waiting;

pub use io_max::{IO_MAX_KEYS, IoMax, Limit};

use crate::bio::{BioId, CgroupId, Direction};
use crate::kernel::{Hierarchy, ThrottleRules};
use account::Pace;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use base::{Duration, Hz, Instant, TimerWheel};
use message::{Said, Text};
use tree::Node;
use waiting::{Stage, Waiter};

/// Bios of each direction that a group hands on before others have their turn (rule throttle-7).
const READS_AT_ONCE: u32 = 6;
const WRITES_AT_ONCE: u32 = 2;
/// Bios of a round.
const ROUND: u32 = 32;
/// Slices that a timer is set ahead at most.
const FARTHEST: u64 = 8;
/// What a discard counts for.
pub(crate) const DISCARD_BYTES: u64 = 512;

/// A group's place in the tree; [`TOP`] is above all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NodeId(usize);

/// The disk itself, which is not limited.
const TOP: NodeId = NodeId(0);

impl NodeId {
    fn of(group: CgroupId) -> NodeId {
        NodeId(group.0 as usize + 1)
    }
}

/// A bio that comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub bio: BioId,
    pub group: CgroupId,
    pub direction: Direction,
    /// What it counts for.
    pub bytes: u64,
    /// Its bytes were counted before it was split.
    pub is_paid: bool,
    /// Others wait for it whoever it is of (META): it goes through, and is made up for later.
    pub must_go: bool,
}

/// The limits of the groups of one disk.
pub(crate) struct Throttle {
    rules: ThrottleRules,
    wheel: TimerWheel,
    tick: Duration,
    hierarchy: Hierarchy,
    is_rotational: bool,
    /// Some group is limited.
    is_on: bool,
    nodes: Vec<Node>,
    /// How often something was put in an order of time.
    sequence: u64,
    /// What the worker has begun to submit.
    handed_out: VecDeque<BioId>,
    said: Said,
}

impl Throttle {
    /// Of a disk whose groups are not limited.
    ///
    /// What the disk was taken for when it was attached decides how long slices are: `rotational`
    /// in sysfs comes too late. Observed on 6.1.192 and 6.12.117.
    pub fn new(rules: ThrottleRules, hz: Hz, is_rotational: bool) -> Throttle {
        Throttle {
            rules,
            wheel: TimerWheel::new(hz, 0),
            tick: hz.tick(),
            hierarchy: rules.hierarchy,
            is_rotational,
            is_on: false,
            nodes: Vec::new(),
            sequence: 0,
            handed_out: VecDeque::new(),
            said: Said::default(),
        }
    }

    /// How long the machine had been up at time zero, in seconds. Ends of slices are multiples of
    /// the kernel's counter of ticks.
    pub fn set_uptime(&mut self, seconds: u64) {
        self.wheel = TimerWheel::new(self.wheel.hz(), seconds);
    }

    /// Which hierarchy groups are in; to be called before any is limited.
    pub fn set_hierarchy(&mut self, hierarchy: Hierarchy) {
        self.hierarchy = hierarchy;
    }

    /// A group is in the tree, below another one.
    pub fn define(&mut self, group: CgroupId, parent: Option<CgroupId>) {
        let parent = match (self.hierarchy, parent) {
            (Hierarchy::Unified, Some(parent)) => NodeId::of(parent),
            _ => TOP,
        };
        let index = NodeId::of(group).0;
        if self.nodes.len() <= index {
            self.nodes.resize_with(index + 1, Node::default);
        }
        let node = &mut self.nodes[index];
        (node.group, node.parent) = (Some(group), parent);
        self.find_ruled();
    }

    /// Whether any bio might have to wait.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether messages are wanted.
    pub fn want_messages(&mut self, wanted: bool) {
        self.said.want(wanted);
    }

    /// Whether anything was said since [`Throttle::take_messages`].
    #[inline]
    pub fn has_messages(&self) -> bool {
        self.said.has_any()
    }

    /// What was said since this was last asked, and of which group.
    pub fn take_messages(&mut self) -> Vec<(Option<CgroupId>, String)> {
        self.said.take()
    }

    /// Ticks since time zero.
    fn tick(&self, now: Instant) -> u64 {
        now.as_nanos() / self.tick.as_nanos()
    }

    /// The kernel's counter of ticks.
    fn counter(&self, now: Instant) -> u64 {
        self.wheel.counter(self.tick(now))
    }

    fn pace(&self) -> Pace {
        let hz = u64::from(self.wheel.hz().get());
        let ThrottleRules { short_on_flash, waits_for_one, carries_unsigned, .. } = self.rules;
        let is_short = short_on_flash && !self.is_rotational;
        let slice = if is_short { hz / 50 } else { hz / 10 };
        Pace { hz, slice, waits_for_one, carries_unsigned }
    }

    /// Limits of a group are written (rule throttle-9).
    pub fn limit(&mut self, now: Instant, group: CgroupId, limits: IoMax) {
        let (at, pace, id) = (self.counter(now), self.pace(), NodeId::of(group));
        let in_place = self.rules.in_stages;
        let node = &mut self.nodes[id.0];
        self.said.about(node.group, None);
        let mut left = [(0, 0); 2];
        for (direction, left) in BOTH.into_iter().zip(&mut left) {
            let limit = node.limits.of(direction);
            if node.lists.of(direction).count() > 0 {
                *left = node.account(direction).left(at, limit, pace);
            }
            if !in_place {
                node.account(direction).carry(*left);
            }
        }
        let carried = match in_place {
            true => left,
            false => BOTH.map(|direction| node.account(direction).carried()),
        };
        let is_unsigned = self.rules.carries_unsigned;
        self.said.say(|| Text::Carry { amounts: carried, is_unsigned });
        node.limits = limits;
        self.said.say(|| Text::Limits(limits));
        for (direction, left) in BOTH.into_iter().zip(left) {
            self.said.about(node.group, Some(direction));
            node.account(direction).restart(at, pace, &mut self.said);
            if in_place {
                node.account(direction).begin_with(left);
            }
        }
        let (is_pending, parent) = (node.is_pending, node.parent);
        self.find_ruled();
        if is_pending {
            self.update_due(at, id);
            self.schedule(at, parent, true);
        }
    }

    /// Whether any group has limits, and which groups a bio of which direction has to be looked at
    /// for.
    fn find_ruled(&mut self) {
        for index in 0..self.nodes.len() {
            let mut ruled = [Ruled::default(); 2];
            let mut above = NodeId(index);
            while above != TOP {
                let node = &self.nodes[above.0];
                for (ruled, direction) in ruled.iter_mut().zip(BOTH) {
                    let limit = node.limits.of(direction);
                    ruled.bytes |= limit.bps.is_some();
                    ruled.ios |= limit.iops.is_some();
                }
                above = node.parent;
            }
            self.nodes[index].ruled = ruled;
        }
        let is_ruled = |it: &Ruled| it.bytes || it.ios;
        let waits = |node: &Node| !node.lists.is_empty() || node.ruled.iter().any(is_ruled);
        self.is_on = self.nodes.iter().any(waits);
    }

    /// A bio comes; whether it has to wait (rules throttle-2 and throttle-3).
    pub fn must_wait(&mut self, now: Instant, it: Arrival) -> bool {
        let own = NodeId::of(it.group);
        let Some(node) = self.nodes.get(own.0) else { return false };
        let ruled = node.ruled[it.direction as usize];
        if !(ruled.ios || ruled.bytes && !it.is_paid) {
            return false;
        }
        let at = self.counter(now);
        let waiter = Waiter { bio: it.bio, bytes: it.bytes, is_paid: it.is_paid };
        let (mut from, mut level) = (own, own);
        while level != TOP {
            if let Some(stage) = self.stops(at, level, it.direction, waiter) {
                if !it.must_go {
                    self.enqueue(at, level, from, it.direction, stage, waiter);
                    return true;
                }
                self.nodes[level.0].account(it.direction).borrow(it.bytes);
            }
            (from, level) = (level, self.nodes[level.0].parent);
        }
        false
    }

    /// The stage at which a bio that comes has to wait in a group, if it has to.
    fn stops(&mut self, at: u64, level: NodeId, direction: Direction, it: Waiter) -> Option<Stage> {
        let in_stages = self.rules.in_stages;
        let node = &mut self.nodes[level.0];
        if !it.is_paid && node.has_room(at, direction, it.bytes) {
            return None;
        }
        let waiting = node.lists.of(direction);
        let (no_bytes, no_ios) = (waiting.is_empty(Stage::Bytes), waiting.is_empty(Stage::Ios));
        if in_stages && !it.is_paid {
            if !no_bytes || self.wait_for(at, level, direction, Stage::Bytes, it) > 0 {
                return Some(Stage::Bytes);
            }
            self.nodes[level.0].account(direction).charge_bytes(it.bytes);
        }
        if !no_ios || self.wait_for(at, level, direction, Stage::Ios, it) > 0 {
            return Some(Stage::Ios);
        }
        self.go_through(level, direction, it);
        self.trim(at, level, direction);
        if !it.is_paid {
            let (pace, node) = (self.pace(), &mut self.nodes[level.0]);
            let limit = node.limits.of(direction);
            node.account(direction).note_room(at, limit, in_stages, pace);
        }
        None
    }

    /// Ticks that a bio has to wait for at a stage, as of now.
    fn wait_for(
        &mut self,
        at: u64,
        level: NodeId,
        direction: Direction,
        stage: Stage,
        it: Waiter,
    ) -> u64 {
        let (pace, in_stages) = (self.pace(), self.rules.in_stages);
        let node = &mut self.nodes[level.0];
        let limit = node.limits.of(direction);
        let asks_bytes = stage == Stage::Bytes || !in_stages;
        let asks_ios = stage == Stage::Ios;
        if (!asks_bytes || limit.bps.is_none()) && (!asks_ios || limit.iops.is_none()) {
            return 0;
        }
        let is_empty = node.lists.of(direction).count() == 0;
        self.said.about(node.group, Some(direction));
        let account = node.account(direction);
        account.refresh(at, is_empty, pace, &mut self.said);
        let mut wait = 0;
        if asks_bytes && !it.is_paid {
            wait = account.wait_for_bytes(at, limit.bps, it.bytes, pace);
        }
        if asks_ios {
            wait = wait.max(account.wait_for_ios(at, limit.iops, pace));
        }
        if wait > 0 {
            account.extend(at, at + wait, pace, &mut self.said);
        }
        wait
    }

    /// A bio does not wait in a group, or not any more.
    fn go_through(&mut self, level: NodeId, direction: Direction, it: Waiter) {
        let in_stages = self.rules.in_stages;
        let account = self.nodes[level.0].account(direction);
        if !in_stages && !it.is_paid {
            account.charge_bytes(it.bytes);
        }
        account.charge_io();
    }

    fn trim(&mut self, at: u64, level: NodeId, direction: Direction) {
        let (pace, keeps_one) = (self.pace(), self.rules.in_stages);
        let node = &mut self.nodes[level.0];
        let limit = node.limits.of(direction);
        self.said.about(node.group, Some(direction));
        node.account(direction).trim(at, limit, keeps_one, pace, &mut self.said);
    }

    /// A bio of a task begins to wait in a group.
    fn enqueue(
        &mut self,
        at: u64,
        level: NodeId,
        from: NodeId,
        direction: Direction,
        stage: Stage,
        it: Waiter,
    ) {
        let node = &mut self.nodes[level.0];
        let (limit, done) = (node.limits.of(direction), node.account(direction).done());
        let (waiting, parent) = (node.lists.counts(), node.parent);
        self.said.about(node.group, Some(direction));
        self.said.say(|| Text::Bio { done, bytes: it.bytes, limit, waiting });
        self.add(level, from, direction, stage, it);
        if self.nodes[level.0].was_empty {
            self.update_due(at, level);
            self.schedule(at, parent, true);
        }
    }

    /// When [`Throttle::timer`] is to be called, if at all.
    pub fn next_timer(&self) -> Option<Instant> {
        let tick = self.nodes.iter().filter_map(|node| node.timer).map(|it| it.tick).min()?;
        Some(Instant::from_nanos(tick * self.tick.as_nanos()))
    }

    /// Ticks have come at which bios may go on; whether the worker has something to submit
    /// (rule throttle-7).
    pub fn timer(&mut self, now: Instant) -> bool {
        let (tick, at) = (self.tick(now), self.counter(now));
        let mut has_any = false;
        while let Some(index) = self.due(tick) {
            self.nodes[index.0].timer = None;
            has_any |= self.dispatch(at, index);
        }
        has_any
    }

    /// The worker begins to submit what may go on: reads first (rule throttle-11).
    pub fn hand_out(&mut self) {
        let Some(top) = self.nodes.first_mut() else { return };
        for direction in BOTH {
            while let Some(waiter) = top.lists.of(direction).pop() {
                self.handed_out.push_back(waiter.bio);
            }
        }
    }

    /// The next bio that it submits, of those that it began with.
    pub fn next_handed_out(&mut self) -> Option<BioId> {
        self.handed_out.pop_front()
    }
}

/// Both directions, in the order in which they are looked at.
const BOTH: [Direction; 2] = [Direction::Read, Direction::Write];

/// What a bio is looked at for.
#[derive(Clone, Copy, Debug, Default)]
struct Ruled {
    bytes: bool,
    ios: bool,
}
