//! Cooperators: processes that read close to each other in turns are taken for one (rules
//! cfq-cooperate).
//!
//! Queues of one level are sorted by where they would go on. The key is the sector at the time of
//! sorting, look-ups compare with where a queue would go on now; so a close one may be missed.

use super::Cfq;
use super::queue::{Class, Queue, QueueId};
use crate::sector_tree::Found;
use base::Sector;
use block::Cx;

/// So many sectors away is close.
const CLOSE: u64 = 8_192;

impl Cfq {
    pub(super) fn leave_prio_tree(&mut self, id: QueueId) {
        if let Some(level) = self.queues[id].prio_place.take() {
            self.prio_trees[level as usize].remove(id);
        }
    }

    /// Rules cfq-place: where a queue would go on may have changed.
    pub(super) fn update_prio_tree(&mut self, cx: &Cx<'_>, id: QueueId) {
        self.leave_prio_tree(id);
        let queue = &self.queues[id];
        let Some(next) = queue.next.filter(|_| queue.class != Class::Idle) else { return };
        let (level, sector) = (queue.own.1, cx.request(next).sector);
        if let Found::In(gap) = self.search(cx, level, sector) {
            self.prio_trees[level as usize].insert(id, (), &gap);
            self.queues[id].prio_place = Some(level);
        }
    }

    fn search(&self, cx: &Cx<'_>, level: u8, sector: Sector) -> Found<Queue> {
        let tree = &self.prio_trees[level as usize];
        tree.search(|id, ()| sector.cmp(&self.goes_on_at(cx, id)))
    }

    fn goes_on_at(&self, cx: &Cx<'_>, id: QueueId) -> Sector {
        let next = self.queues[id].next.expect("a queue in this tree has requests");
        cx.request(next).sector
    }

    /// Whether it is close to where the disk was left.
    pub(super) fn is_close(&self, sector: Sector) -> bool {
        sector.0.abs_diff(self.last_position.0) <= CLOSE
    }

    /// Another queue that would go on close to where this one stopped.
    pub(super) fn close_cooperator(&self, cx: &Cx<'_>, id: QueueId) -> Option<QueueId> {
        let queue = &self.queues[id];
        let alone = self.group(queue.group).queues == 1;
        if queue.class == Class::Idle || !queue.sync || queue.is_seeky() || alone {
            return None;
        }
        let found = self.close_queue(cx, queue.own.1)?;
        let other = &self.queues[found];
        let fits = other.group == queue.group && other.sync && !other.is_seeky();
        let same = (other.class == Class::RealTime) == (queue.class == Class::RealTime);
        (fits && same).then_some(found)
    }

    /// Exactly where the disk was left; or where the search for that ended; or on its other side.
    fn close_queue(&self, cx: &Cx<'_>, level: u8) -> Option<QueueId> {
        match self.search(cx, level, self.last_position) {
            Found::At(other) => Some(other),
            Found::In(gap) => gap.neighbours().find(|id| self.is_close(self.goes_on_at(cx, *id))),
        }
    }

    /// The processes of one queue shall use the other one from their next request on.
    pub(super) fn plan_merge(&mut self, id: QueueId, with: QueueId) {
        if self.queues[with].process_refs() == 0 {
            return;
        }
        let mut target = with;
        while let Some(next) = self.queues[target].merges_into {
            if next == id {
                return;
            }
            target = next;
        }
        let (own, others) = (self.queues[id].process_refs(), self.queues[target].process_refs());
        if own == 0 || others == 0 {
            return;
        }
        let (from, into, moving) =
            if others >= own { (id, target, own) } else { (target, id, others) };
        self.queues[from].merges_into = Some(into);
        self.queues[into].refs += moving;
    }
}
