//! Groups in the order in which they are due, and rounds in which they hand bios on to their
//! parents (rules throttle-6 to throttle-8).

use super::account::Account;
use super::io_max::IoMax;
use super::message::Text;
use super::waiting::{Lists, Stage, Waiter};
use super::{BOTH, FARTHEST, NodeId, READS_AT_ONCE, ROUND, Ruled, TOP, Throttle, WRITES_AT_ONCE};
use crate::bio::{CgroupId, Direction};
use alloc::collections::BTreeSet;

/// A timer of the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    /// The tick with which it goes off, counted from time zero.
    pub tick: u64,
    /// What it is set to, by the kernel's counter.
    expires: u64,
    /// Of those of one tick the one that was set last goes first.
    sequence: u64,
}

/// A group, or the disk at the top.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub group: Option<CgroupId>,
    pub parent: NodeId,
    pub limits: IoMax,
    pub ruled: [Ruled; 2],
    accounts: [Account; 2],
    /// What waits here.
    pub lists: Lists,
    /// It is among the groups of its parent that have something waiting.
    pub is_pending: bool,
    /// A direction had nothing waiting when a bio came, and nobody has seen to that yet.
    pub was_empty: bool,
    /// When it may hand something on, and its place among those of one time.
    due: (u64, u64),
    /// Groups below that have something waiting, in the order in which they are due.
    pending: BTreeSet<((u64, u64), NodeId)>,
    /// When they are looked at.
    pub timer: Option<Timer>,
}

impl Default for NodeId {
    fn default() -> NodeId {
        TOP
    }
}

impl Node {
    /// What was done in a direction; whoever asks for it may change what there is room for.
    pub fn account(&mut self, direction: Direction) -> &mut Account {
        let account = &mut self.accounts[direction as usize];
        account.forget_room();
        account
    }

    /// Whether a bio goes through that nobody waits before, as the last one did in this tick.
    #[inline]
    pub fn has_room(&mut self, now: u64, direction: Direction, bytes: u64) -> bool {
        self.accounts[direction as usize].take_room(now, bytes)
    }
}

impl Throttle {
    /// A bio begins to wait in a group.
    pub(super) fn add(
        &mut self,
        level: NodeId,
        from: NodeId,
        direction: Direction,
        stage: Stage,
        it: Waiter,
    ) {
        let node = &mut self.nodes[level.0];
        if level != TOP && node.lists.of(direction).count() == 0 {
            node.was_empty = true;
        }
        node.lists.of(direction).push(from, stage, it);
        if level != TOP && !node.is_pending {
            node.is_pending = true;
            let parent = node.parent;
            self.insert(level, parent);
        }
    }

    /// Puts a group among those of its parent that have something waiting.
    fn insert(&mut self, id: NodeId, parent: NodeId) {
        self.sequence += 1;
        let due = &mut self.nodes[id.0].due;
        due.1 = self.sequence;
        let key = (*due, id);
        self.nodes[parent.0].pending.insert(key);
    }

    fn remove(&mut self, id: NodeId) {
        let node = &self.nodes[id.0];
        let (key, parent) = ((node.due, id), node.parent);
        self.nodes[parent.0].pending.remove(&key);
    }

    /// A group is due as soon as the first of either direction may go on.
    pub(super) fn update_due(&mut self, at: u64, id: NodeId) {
        let waits = BOTH.map(|direction| self.wait_of_first(at, id, direction));
        let wait = waits.into_iter().flatten().min().unwrap_or(0);
        self.remove(id);
        let node = &mut self.nodes[id.0];
        (node.due.0, node.was_empty) = (at + wait, false);
        let parent = node.parent;
        self.insert(id, parent);
    }

    /// Ticks that the first bio of a direction has still to wait for, if there is one.
    fn wait_of_first(&mut self, at: u64, id: NodeId, direction: Direction) -> Option<u64> {
        let (stage, waiter) = self.nodes[id.0].lists.of(direction).first()?;
        if stage == Stage::Bytes {
            let wait = self.wait_for(at, id, direction, Stage::Bytes, waiter);
            if wait > 0 {
                return Some(wait);
            }
            let node = &mut self.nodes[id.0];
            node.account(direction).charge_bytes(waiter.bytes);
            node.lists.of(direction).promote_first();
        }
        Some(self.wait_for(at, id, direction, Stage::Ios, waiter))
    }

    /// Sets the timer of a parent to when its first child is due. Not if that is now, unless it is
    /// to be set at any rate; false then.
    pub(super) fn schedule(&mut self, at: u64, id: NodeId, at_any_rate: bool) -> bool {
        let Some(&((due, _), _)) = self.nodes[id.0].pending.first() else { return true };
        if !at_any_rate && due <= at {
            return false;
        }
        let expires = due.min(at + FARTHEST * self.pace().slice);
        let delay = expires.saturating_sub(at);
        self.said.about(self.nodes[id.0].group, None);
        self.said.say(|| Text::Timer { delay, now: at });
        if self.nodes[id.0].timer.is_none_or(|timer| timer.expires != expires) {
            self.sequence += 1;
            let tick = self.wheel.after(at - self.wheel.counter(0), delay);
            self.nodes[id.0].timer = Some(Timer { tick, expires, sequence: self.sequence });
        }
        true
    }

    /// The next of the groups whose timers have gone off.
    pub(super) fn due(&self, tick: u64) -> Option<NodeId> {
        let timers = self.nodes.iter().enumerate().filter_map(|(id, it)| Some((it.timer?, id)));
        let due = timers.filter(|(timer, _)| timer.tick <= tick);
        let first = due.min_by_key(|(timer, _)| (timer.tick, u64::MAX - timer.sequence));
        first.map(|(_, id)| NodeId(id))
    }

    /// Lets children of a group hand on what may go on, and then the group itself if that made it
    /// due at once; whether anything has come to the top.
    pub(super) fn dispatch(&mut self, at: u64, first: NodeId) -> bool {
        let mut id = first;
        loop {
            if !self.dispatch_until_next(at, id) {
                return false;
            }
            if id == TOP {
                return true;
            }
            if !self.nodes[id.0].was_empty {
                return false;
            }
            self.update_due(at, id);
            let parent = self.nodes[id.0].parent;
            if self.schedule(at, parent, false) {
                return false;
            }
            id = parent;
        }
    }

    /// Rounds until no child is due; whether any bio was handed on.
    fn dispatch_until_next(&mut self, at: u64, id: NodeId) -> bool {
        let mut has_any = false;
        loop {
            let (group, lists) = (self.nodes[id.0].group, &self.nodes[id.0].lists);
            let waiting = if id == TOP { [0, 0] } else { lists.counts() };
            self.said.about(group, None);
            self.said.say(|| Text::Dispatch { waiting });
            let bios = self.round(at, id);
            if bios > 0 {
                self.said.about(group, None);
                self.said.say(|| Text::Dispatched(bios));
                has_any = true;
            }
            if self.schedule(at, id, false) {
                return has_any;
            }
        }
    }

    /// A round: the child that is due first has its turn, and again. How many bios were handed on.
    fn round(&mut self, at: u64, parent: NodeId) -> u32 {
        let mut bios = 0;
        while bios < ROUND {
            let Some(&((due, _), child)) = self.nodes[parent.0].pending.first() else { break };
            if due > at {
                break;
            }
            bios += self.turn(at, child, parent);
            if self.nodes[child.0].lists.is_empty() {
                self.remove(child);
                self.nodes[child.0].is_pending = false;
            } else {
                self.update_due(at, child);
            }
        }
        bios
    }

    /// A group hands on what it may: some reads, then some writes.
    fn turn(&mut self, at: u64, id: NodeId, parent: NodeId) -> u32 {
        let mut bios = 0;
        for (direction, most) in BOTH.into_iter().zip([READS_AT_ONCE, WRITES_AT_ONCE]) {
            for _ in 0..most {
                if self.wait_of_first(at, id, direction) != Some(0) {
                    break;
                }
                self.hand_on(at, id, parent, direction);
                bios += 1;
            }
        }
        bios
    }

    /// The first bio of a group goes on to its parent.
    fn hand_on(&mut self, at: u64, id: NodeId, parent: NodeId, direction: Direction) {
        let waiter = self.nodes[id.0].lists.of(direction).pop().expect("it may go on");
        self.go_through(id, direction, waiter);
        let has_stages = self.rules.in_stages && parent != TOP && !waiter.is_paid;
        let stage = if has_stages { Stage::Bytes } else { Stage::Ios };
        self.add(parent, id, direction, stage, waiter);
        if parent != TOP {
            let (pace, since) = (self.pace(), self.nodes[id.0].account(direction).start());
            let above = &mut self.nodes[parent.0];
            self.said.about(above.group, Some(direction));
            above.account(direction).credit(at, since, pace, &mut self.said);
        }
        self.trim(at, id, direction);
    }
}
