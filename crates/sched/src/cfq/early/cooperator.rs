//! Cooperators of 2.6.32: processes that read close to each other in turns come to share a queue
//! (rules cfq-early-cooperate). 2.6.28 has none.

use super::super::queue::Class;
use super::queue::{Queue, QueueId};
use super::{EarlyCfq, now};
use crate::sector_tree::Found;
use base::Sector;
use block::{Cx, IoContextId};

impl EarlyCfq {
    pub(super) fn leave_prio_tree(&mut self, id: QueueId) {
        if let Some(level) = self.queues[id].prio_place.take() {
            self.prio_trees[level as usize].remove(id);
        }
    }

    /// Where a queue would go on may have changed.
    pub(super) fn update_prio_tree(&mut self, cx: &Cx<'_>, id: QueueId) {
        if !self.rules.finds_cooperators {
            return;
        }
        self.leave_prio_tree(id);
        let queue = &self.queues[id];
        let Some(next) = queue.next.filter(|_| queue.class != Class::Idle) else { return };
        let (level, sector) = (queue.level, cx.request(next).sector);
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

    /// Item 30: whether it is as close to where the disk was left as this queue's requests are.
    pub(super) fn is_close(&self, id: QueueId, sector: Sector) -> bool {
        sector.0.abs_diff(self.last_position.0) <= self.queues[id].seeks.close()
    }

    /// Another queue that would go on close to where this one stopped.
    pub(super) fn close_cooperator(&self, cx: &Cx<'_>, id: QueueId) -> Option<QueueId> {
        let queue = &self.queues[id];
        let may = self.rules.finds_cooperators && queue.sync && queue.class != Class::Idle;
        if !may || queue.seeks.is_seeky() {
            return None;
        }
        let found = self.close_queue(cx, id, queue.level)?;
        let other = &self.queues[found];
        let fits = found != id && other.sync && !other.seeks.is_seeky();
        let same = (other.class == Class::RealTime) == (queue.class == Class::RealTime);
        (fits && same).then_some(found)
    }

    /// Exactly where the disk was left; or where the search for that ended; or on its other side.
    fn close_queue(&self, cx: &Cx<'_>, id: QueueId, level: u8) -> Option<QueueId> {
        match self.search(cx, level, self.last_position) {
            Found::At(other) => Some(other),
            Found::In(gap) => {
                gap.neighbours().find(|other| self.is_close(id, self.goes_on_at(cx, *other)))
            }
        }
    }

    /// The processes of one queue shall use the other one from their next request on.
    pub(super) fn plan_merge(&mut self, id: QueueId, with: QueueId) {
        if self.queues[id].merges_into.is_some() || self.queues[with].process_refs() == 0 {
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

    /// Processes of a queue that merges go over to the other one, one by one.
    pub(super) fn follow_merge(
        &mut self,
        cx: &mut Cx<'_>,
        owner: IoContextId,
        id: QueueId,
    ) -> QueueId {
        let Some(into) = self.queues[id].merges_into else { return id };
        self.context(owner).queues[1] = Some(into);
        self.queues[into].coop = true;
        self.put_queue(cx, id);
        into
    }

    /// Item 37: whether processes that shared a queue have seeked for more than a second.
    pub(super) fn must_split(&self, now: i64, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let since = queue.seeky_since.filter(|_| queue.coop);
        since.is_some_and(|since| now - since > i64::from(self.settings.hz.get()))
    }

    /// Since when a shared queue seeks.
    pub(super) fn note_seeky(&mut self, cx: &Cx<'_>, id: QueueId) {
        let now = now(cx);
        let queue = &mut self.queues[id];
        queue.seeky_since = match queue.coop && queue.seeks.is_seeky() {
            true => queue.seeky_since.or(Some(now)),
            false => None,
        };
    }
}
