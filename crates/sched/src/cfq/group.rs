//! Control groups and the tree in which they wait for the disk (rules cfq-group).
//!
//! Each group has a virtual time that advances by what it is charged, divided by its share of the
//! disk; the group whose time is least goes next. The share follows from the weights of the groups
//! that are busy now, from the group up to the root, where a group's own tasks count as one more
//! child with the leaf weight.

use super::queue::{Class, QueueId};
use super::tree::ServiceTree;
use super::{Cfq, GroupId, Kind};
use crate::think::ThinkTime;
use alloc::vec::Vec;
use block::{CgroupId, Cx};

/// 1.0 as a fixed-point number.
pub(super) const ONE: u64 = 1 << 12;
/// Weight of a group that nobody gave one; the root's is twice that. (Version 1 of control groups.)
const DEFAULT_WEIGHT: u32 = 500;
/// A new group starts behind the last one by this.
const NEW_GROUP_OFFSET: u64 = 200_000_000;

/// A control group on this device.
#[derive(Clone)]
pub(super) struct Group {
    parent: Option<GroupId>,
    /// Its control group was removed.
    pub is_gone: bool,
    vdisktime: u64,
    /// It was wrong once: one that had paid more had the turn.
    pub unsure: bool,
    in_tree: bool,
    /// Busy children, its own tasks included.
    nr_active: u32,
    children_weight: u64,
    /// Its share of the disk when it was activated last.
    pub fraction: u64,
    weight: u64,
    leaf_weight: u64,
    /// Busy queues.
    pub queues: u32,
    /// Exponential means of busy queues, by class.
    pub queues_avg: [u32; 2],
    /// By class and kind.
    pub trees: [[ServiceTree; 3]; 2],
    pub idle_tree: ServiceTree,
    /// What was left of its workload's time, and which workload that was.
    pub saved: Option<(i64, Class, Kind)>,
    /// Requests that left it and are not done.
    pub dispatched: u32,
    pub think: ThinkTime,
    /// Asynchronous queues, by class and level, and the idle one.
    pub async_queues: [[Option<QueueId>; 8]; 2],
    pub async_idle: Option<QueueId>,
}

impl Group {
    fn new(parent: Option<GroupId>) -> Group {
        Group {
            parent,
            is_gone: false,
            vdisktime: 0,
            unsure: false,
            in_tree: false,
            nr_active: 0,
            children_weight: 0,
            fraction: 0,
            weight: 0,
            leaf_weight: 0,
            queues: 0,
            queues_avg: [0; 2],
            trees: Default::default(),
            idle_tree: ServiceTree::default(),
            saved: None,
            dispatched: 0,
            think: ThinkTime::default(),
            async_queues: Default::default(),
            async_idle: None,
        }
    }

    pub fn tree(&self, class: Class, kind: Kind) -> &ServiceTree {
        match class {
            Class::Idle => &self.idle_tree,
            _ => &self.trees[class as usize][kind as usize],
        }
    }

    pub fn tree_mut(&mut self, class: Class, kind: Kind) -> &mut ServiceTree {
        match class {
            Class::Idle => &mut self.idle_tree,
            _ => &mut self.trees[class as usize][kind as usize],
        }
    }

    /// Busy queues of a class.
    pub fn busy(&self, class: Class) -> u32 {
        match class {
            Class::Idle => self.idle_tree.count(),
            _ => self.trees[class as usize].iter().map(ServiceTree::count).sum(),
        }
    }

    /// Busy asynchronous queues.
    pub fn busy_async(&self) -> u32 {
        self.trees.iter().map(|kinds| kinds[Kind::Async as usize].count()).sum()
    }

    /// Whether any of its busy queues is synchronous.
    pub fn has_sync(&self) -> bool {
        self.queues > self.busy_async() + self.idle_tree.count()
    }
}

/// The busy groups, the one to go next first.
#[derive(Clone, Default)]
pub(super) struct GroupTree {
    /// Virtual time, and whose.
    entries: Vec<(u64, GroupId)>,
    min_vdisktime: u64,
}

impl GroupTree {
    fn insert(&mut self, vdisktime: u64, group: GroupId) {
        let base = self.min_vdisktime;
        let key = |time: u64| time.wrapping_sub(base) as i64;
        let place = self.entries.partition_point(|entry| key(entry.0) <= key(vdisktime));
        self.entries.insert(place, (vdisktime, group));
    }

    fn remove(&mut self, group: GroupId) {
        self.entries.retain(|entry| entry.1 != group);
    }

    /// The virtual time that none is behind of.
    pub fn least(&self) -> u64 {
        self.min_vdisktime
    }

    /// Busy groups, in order.
    pub fn iter(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.entries.iter().map(|entry| entry.1)
    }
}

impl Cfq {
    /// The group of a control group, made when it is first seen, with those above it.
    pub(super) fn group_of(&mut self, cx: &Cx<'_>, cgroup: CgroupId) -> GroupId {
        let id = GroupId(cgroup.0);
        if self.groups.get(cgroup.0 as usize).is_some_and(Option::is_some) {
            return id;
        }
        let parent = cx.cgroup(cgroup).parent.map(|parent| self.group_of(cx, parent));
        if self.groups.len() <= cgroup.0 as usize {
            self.groups.resize_with(cgroup.0 as usize + 1, || None);
        }
        self.groups[cgroup.0 as usize] = Some(Group::new(parent));
        id
    }

    pub(super) fn group(&self, id: GroupId) -> &Group {
        self.groups[id.0 as usize].as_ref().expect("a group that was seen")
    }

    pub(super) fn group_mut(&mut self, id: GroupId) -> &mut Group {
        self.groups[id.0 as usize].as_mut().expect("a group that was seen")
    }

    /// The group itself, or the next one above it that was not removed: what was on its way to one
    /// that is gone goes there.
    // assumed: the specification says nothing of groups that are removed.
    pub(super) fn living(&self, id: GroupId) -> GroupId {
        let mut at = id;
        while let Some(above) = self.group(at).parent.filter(|_| self.group(at).is_gone) {
            at = above;
        }
        at
    }

    /// Whether `above` is `group` or stands over it.
    pub(super) fn is_ancestor(&self, above: GroupId, group: GroupId) -> bool {
        let mut at = Some(group);
        while let Some(id) = at {
            if id == above {
                return true;
            }
            at = self.group(id).parent;
        }
        false
    }

    /// Rule cfq-group-1: one of its queues has become busy.
    pub(super) fn group_gains_queue(&mut self, cx: &Cx<'_>, id: GroupId) {
        self.group_mut(id).queues += 1;
        if self.group(id).in_tree {
            return;
        }
        let last = self.group_tree.entries.last();
        let start = match last {
            Some((last, _)) => last.wrapping_add(self.new_group_offset(cx)),
            None => self.group_tree.min_vdisktime,
        };
        self.group_mut(id).vdisktime = start;
        self.activate_group(cx, id);
    }

    fn new_group_offset(&self, cx: &Cx<'_>) -> u64 {
        let in_requests = self.counts_requests() && self.rules.new_group_by_mode;
        if in_requests { u64::from(cx.kernel().hz.get()) / 5 } else { NEW_GROUP_OFFSET }
    }

    /// Rule cfq-group-3: one of its queues is no longer busy.
    pub(super) fn group_loses_queue(&mut self, cx: &mut Cx<'_>, id: GroupId) {
        self.group_mut(id).queues -= 1;
        if self.group(id).queues > 0 {
            return;
        }
        cx.group_message(CgroupId(id.0), format_args!("del_from_rr group"));
        self.deactivate_group(id);
        self.group_mut(id).saved = None;
    }

    /// Rule cfq-group-2.
    fn activate_group(&mut self, cx: &Cx<'_>, id: GroupId) {
        let vdisktime = self.group(id).vdisktime;
        self.group_tree.insert(vdisktime, id);
        let leaf_weight = leaf_weight(cx, id);
        let group = self.group_mut(id);
        group.in_tree = true;
        group.leaf_weight = leaf_weight;
        let mut propagate = group.nr_active == 0;
        group.nr_active += 1;
        group.children_weight += leaf_weight;
        let mut fraction = ONE * leaf_weight / group.children_weight;
        let mut at = id;
        while let Some(above) = self.group(at).parent {
            if propagate {
                let weight = weight(cx, at);
                self.group_mut(at).weight = weight;
                let parent = self.group_mut(above);
                propagate = parent.nr_active == 0;
                parent.nr_active += 1;
                parent.children_weight += weight;
            }
            fraction = fraction * self.group(at).weight / self.group(above).children_weight;
            at = above;
        }
        self.group_mut(id).fraction = fraction.max(1);
    }

    /// Rule cfq-group-3.
    fn deactivate_group(&mut self, id: GroupId) {
        self.group_tree.remove(id);
        let group = self.group_mut(id);
        group.in_tree = false;
        group.children_weight -= group.leaf_weight;
        group.nr_active -= 1;
        let mut at = id;
        while self.group(at).nr_active == 0 {
            self.group_mut(at).fraction = 0;
            let (parent, weight) = (self.group(at).parent, self.group(at).weight);
            let Some(above) = parent else { break };
            let parent = self.group_mut(above);
            parent.nr_active -= 1;
            parent.children_weight -= weight;
            at = above;
        }
    }

    /// Rule cfq-group-4: which group goes next.
    pub(super) fn next_group(&mut self) -> Option<GroupId> {
        let tree = &mut self.group_tree;
        let (vdisktime, id) = *tree.entries.first()?;
        if (vdisktime.wrapping_sub(tree.min_vdisktime) as i64) > 0 {
            tree.min_vdisktime = vdisktime;
        }
        Some(id)
    }

    /// Somebody else has chosen this group: it had paid least.
    pub(super) fn put_first(&mut self, id: GroupId) {
        let Some((least, first)) = self.group_tree.entries.first().copied() else { return };
        if first == id || !self.group(id).in_tree {
            return;
        }
        self.group_mut(first).unsure = true;
        let vdisktime = least.wrapping_sub(1);
        self.group_tree.remove(id);
        self.group_mut(id).vdisktime = vdisktime;
        self.group_tree.insert(vdisktime, id);
    }

    /// A recorded group had paid so much, and the least that any had paid was known.
    pub(super) fn move_group(&mut self, id: GroupId, vdisktime: u64, least: u64) {
        let in_tree = self.group(id).in_tree;
        if in_tree {
            self.group_tree.remove(id);
        }
        let group = self.group_mut(id);
        (group.vdisktime, group.unsure) = (vdisktime, false);
        self.group_tree.min_vdisktime = least;
        if in_tree {
            self.group_tree.insert(vdisktime, id);
        }
    }

    /// Rule cfq-group-5: how long a group is served at a stretch.
    pub(super) fn group_slice(&self, id: GroupId) -> i64 {
        self.settings.target_latency * self.group(id).fraction as i64 / ONE as i64
    }

    /// Rule cfq-group-6: a group pays for what it got, and is placed anew.
    pub(super) fn charge_group(&mut self, cx: &mut Cx<'_>, id: GroupId, charge: i64) {
        let fraction = self.group(id).fraction.max(1);
        let scaled = ((charge as u128) << 24) / u128::from(fraction);
        self.deactivate_group(id);
        let group = self.group_mut(id);
        group.vdisktime = group.vdisktime.wrapping_add(scaled as u64);
        self.activate_group(cx, id);
        let (time, least) = (self.group(id).vdisktime, self.group_tree.min_vdisktime);
        cx.group_message(CgroupId(id.0), format_args!("served: vt={time} min_vt={least}"));
    }
}

/// What the tasks of a group weigh against its children; a change counts from the next activation.
fn leaf_weight(cx: &Cx<'_>, id: GroupId) -> u64 {
    let group = cx.cgroup(CgroupId(id.0));
    // On the root, the file "weight" is an alias of the leaf weight (rule cfq-group-7).
    let own = group.leaf_weight.or(group.weight.filter(|_| group.parent.is_none()));
    let default = if group.parent.is_none() { 2 * DEFAULT_WEIGHT } else { DEFAULT_WEIGHT };
    u64::from(own.unwrap_or(default))
}

fn weight(cx: &Cx<'_>, id: GroupId) -> u64 {
    u64::from(cx.cgroup(CgroupId(id.0)).weight.unwrap_or(DEFAULT_WEIGHT))
}
