//! Groups, and the lengths and places of turns (rules cfq-group, cfq-slice and cfq-place).

use super::*;

impl NaiveCfq {
    pub(super) fn group_slice(&self, id: u32) -> i64 {
        self.target * self.groups[&id].vfraction / 4096
    }

    pub(super) fn iops(&self) -> bool {
        self.slice_idle == 0 && self.hw_tag != Some(false)
    }

    pub(super) fn leftmost(&self) -> Option<u32> {
        let base = self.min_vdisktime;
        let key = |group: &Group| (group.vdisktime.wrapping_sub(base) as i64, group.place);
        let in_tree = self.groups.iter().filter(|(_, group)| group.place.is_some());
        in_tree.min_by_key(|(_, group)| key(group)).map(|(id, _)| *id)
    }

    pub(super) fn gains(&mut self, cx: &Cx<'_>, id: u32) {
        self.group(id).queues += 1;
        if self.groups[&id].place.is_some() {
            return;
        }
        let base = self.min_vdisktime;
        let in_tree = self.groups.values().filter(|group| group.place.is_some());
        let last = in_tree
            .max_by_key(|group| (group.vdisktime.wrapping_sub(base) as i64, group.place))
            .map(|group| group.vdisktime);
        let offset = if self.iops() && self.late { self.hz as u64 / 5 } else { 200_000_000 };
        self.group(id).vdisktime = last.map_or(base, |last| last.wrapping_add(offset));
        self.activate(cx, id);
    }

    pub(super) fn activate(&mut self, cx: &Cx<'_>, id: u32) {
        let order = self.order();
        let weights = |id: u32| {
            let group = cx.cgroup(block::CgroupId(id));
            let root = group.parent.is_none();
            let leaf = group.leaf_weight.or(group.weight.filter(|_| root));
            let leaf = leaf.unwrap_or(if root { 1000 } else { 500 });
            (i64::from(group.weight.unwrap_or(500)), i64::from(leaf))
        };
        let group = self.group(id);
        group.place = Some(order);
        group.leaf_weight = weights(id).1;
        let mut propagate = group.nr_active == 0;
        group.nr_active += 1;
        group.children_weight += group.leaf_weight;
        let mut fraction = 4096 * group.leaf_weight / group.children_weight;
        let mut at = id;
        while let Some(above) = self.groups[&at].parent {
            if propagate {
                self.group(at).weight = weights(at).0;
                let weight = self.groups[&at].weight;
                let parent = self.group(above);
                propagate = parent.nr_active == 0;
                parent.nr_active += 1;
                parent.children_weight += weight;
            }
            fraction = fraction * self.groups[&at].weight / self.groups[&above].children_weight;
            at = above;
        }
        self.group(id).vfraction = fraction.max(1);
    }

    pub(super) fn deactivate(&mut self, id: u32) {
        let group = self.group(id);
        group.place = None;
        group.children_weight -= group.leaf_weight;
        group.nr_active -= 1;
        let mut at = id;
        while self.groups[&at].nr_active == 0 {
            self.group(at).vfraction = 0;
            let (parent, weight) = (self.groups[&at].parent, self.groups[&at].weight);
            let Some(above) = parent else { break };
            let parent = self.group(above);
            parent.nr_active -= 1;
            parent.children_weight -= weight;
            at = above;
        }
    }

    // Rules cfq-slice

    pub(super) fn prio_slice(&self, sync: bool, level: i64) -> i64 {
        let base = self.slice[usize::from(sync)];
        base + base / 5 * (4 - level)
    }

    pub(super) fn scaled_slice(&mut self, q: usize) -> i64 {
        let queue = &self.queues[q];
        let slice = self.prio_slice(queue.sync, queue.level);
        if !self.low_latency {
            return slice;
        }
        let (id, class) = (queue.group, if queue.class == RT { RT } else { BE });
        let busy = self.count(id, class);
        let average = self.groups[&id].average[class];
        let average = (3 * average.max(busy) + average.min(busy) + 2) / 4;
        self.group(id).average[class] = average;
        let expect = self.slice[1] * average;
        let group_slice = self.group_slice(id);
        if expect <= group_slice {
            return slice;
        }
        let low = slice.min(2 * self.slice_idle * slice / self.slice[1]);
        (slice * group_slice / expect).max(low)
    }

    pub(super) fn used(&self, cx: &Cx<'_>, q: usize) -> bool {
        !self.queues[q].slice_new && now(cx) >= self.queues[q].slice_end
    }

    // Rules cfq-place

    pub(super) fn position(&mut self, cx: &Cx<'_>, q: usize, front: bool) {
        let (class, kind) = (self.queues[q].class, self.kind(q));
        let id = self.queues[q].group;
        let tree = self.tree(id, class, kind);
        let key_of = |q: usize| self.queues[q].place.expect("it is in the tree").0;
        let key = if class == IDLE {
            let last = tree.last().filter(|last| **last != q);
            200 * MS + last.map_or(now(cx), |last| key_of(*last))
        } else if front {
            tree.first().map_or(now(cx), |first| key_of(*first)) - 1_000 * MS
        } else {
            let others = self.groups[&id].queues - 1;
            let queue = &self.queues[q];
            let unit = self.prio_slice(true, 0) - self.prio_slice(queue.sync, queue.level);
            let key = now(cx) + others * unit - queue.resid;
            self.queues[q].resid = 0;
            key
        };
        let before = self.queues[q].place;
        let same = |(old, _, c, k): (i64, u64, usize, usize)| {
            old == key && c == class && (k == kind || c == IDLE)
        };
        if before.is_some_and(same) {
            return;
        }
        let order = self.order();
        self.queues[q].place = Some((key, order, class, kind));
        if before.is_none() && !front {
            self.gains(cx, id);
        }
    }

    pub(super) fn leave_rr(&mut self, q: usize) {
        self.queues[q].on_rr = false;
        self.queues[q].place = None;
        let id = self.queues[q].group;
        self.group(id).queues -= 1;
        if self.groups[&id].queues == 0 {
            self.deactivate(id);
            self.group(id).saved = None;
        }
    }
}
