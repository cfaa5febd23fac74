//! Arrivals: insertion, merging, and whether an arrival ends another's turn (rules
//! cfq-early-choose, cfq-early-insert and cfq-early-preempt).

use super::super::queue::Class;
use super::queue::QueueId;
use super::turn::Turn;
use super::{EarlyCfq, now};
use base::page;
use block::scheduler::{Placement, RunQueue};
use block::{Cx, DispatchReason, Flags, RequestId};

impl EarlyCfq {
    /// Rules cfq-early-insert.
    pub(super) fn add_request(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let bound = self.bound[rq];
        let id = bound.queue;
        self.say(cx, id, format_args!("insert_request"));
        self.init_priority(cx, id, bound.io_context);
        let request = cx.request(rq);
        let (allocated, has_meta) = (request.allocated_at, request.flags.intersects(Flags::META));
        let expire = self.settings.fifo_expire[usize::from(self.queues[id].sync)];
        self.bound[rq].expires = allocated.jiffies(self.settings.hz).0 as i64 + expire;
        self.queues[id].fifo.push_back(&mut self.links, rq);
        self.queued += 1;
        self.queues[id].meta_pending += u32::from(has_meta);
        self.add_sorted(cx, rq);
        self.note_arrival(cx, rq);
        self.update_idle_window(cx, rq);
        if self.active == Some(id) {
            self.serve_waiting(cx, id, rq);
        } else if self.should_preempt(cx, id, rq) {
            self.preempt(cx, id);
            cx.run_queue(RunQueue::Now);
        }
    }

    /// Sorts a request in, and has its queue served. One that starts at the same sector leaves.
    pub(super) fn add_sorted(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let id = self.bound[rq].queue;
        let sector = cx.request(rq).sector;
        if let Some(alias) = self.queues[id].sorted.find(sector) {
            self.let_go(cx, alias, DispatchReason::SameSector);
        }
        self.queues[id].sorted.insert(sector, rq);
        self.join_tree(cx, id);
        let next = self.nearer(cx, self.queues[id].next, Some(rq));
        if core::mem::replace(&mut self.queues[id].next, next) != next {
            self.update_prio_tree(cx, id);
        }
    }

    /// Takes a request out of its queue, which leaves the tree with its last one (rule
    /// cfq-early-place-1).
    fn remove_request(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let id = self.bound[rq].queue;
        if self.queues[id].next == Some(rq) {
            self.queues[id].next = self.successor(cx, id, rq);
        }
        let has_meta = cx.request(rq).flags.intersects(Flags::META);
        let queue = &mut self.queues[id];
        queue.sorted.remove(rq);
        queue.fifo.remove(&mut self.links, rq);
        queue.meta_pending -= u32::from(has_meta).min(queue.meta_pending);
        self.queued -= 1;
        if self.queues[id].is_empty() {
            self.leave_prio_tree(id);
            self.leave_tree(cx, id);
        }
    }

    /// Moves a request to the dispatch list.
    pub(super) fn let_go(&mut self, cx: &mut Cx<'_>, rq: RequestId, reason: DispatchReason) {
        let id = self.bound[rq].queue;
        self.say(cx, id, format_args!("dispatch_insert"));
        self.remove_request(cx, rq);
        let queue = &mut self.queues[id];
        queue.dispatched += 1;
        self.sync_flight += u32::from(queue.sync);
        cx.issue(rq, Placement::Sorted, reason);
    }

    /// `next` becomes a part of `rq`; neighbours are of one queue (rule cfq-early-bind-3).
    pub(super) fn join(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) {
        if !self.links.contains(next) {
            return;
        }
        let expires = self.bound[next].expires;
        if self.links.contains(rq) && expires < self.bound[rq].expires {
            let queue = &mut self.queues[self.bound[rq].queue];
            queue.fifo.remove(&mut self.links, rq);
            queue.fifo.insert_before(&mut self.links, next, rq);
            self.bound[rq].expires = expires;
        }
        self.remove_request(cx, next);
    }

    /// Rule cfq-early-insert-2: the queue that is being served gets a request.
    fn serve_waiting(&mut self, cx: &mut Cx<'_>, id: QueueId, rq: RequestId) {
        if !self.queues[id].wait_request {
            return;
        }
        let is_small = cx.request(rq).sectors <= page::SECTORS && self.tree.len() <= 1;
        if self.rules.small_goes_at_once || !is_small {
            self.timer = None;
            cx.run_queue(RunQueue::Now);
        }
        self.queues[id].must_dispatch = !self.rules.small_goes_at_once;
    }

    /// Rules cfq-early-preempt: whether an arrival at `new` ends the turn of the active queue.
    fn should_preempt(&self, cx: &Cx<'_>, new: QueueId, rq: RequestId) -> bool {
        let Some(active) = self.active else { return false };
        if self.is_slice_used(cx, active) {
            return true;
        }
        let (n, a) = (&self.queues[new], &self.queues[active]);
        if n.class == Class::Idle {
            return false;
        }
        if a.class == Class::Idle {
            return true;
        }
        let request = cx.request(rq);
        if request.is_sync() && !a.sync {
            return true;
        }
        if request.flags.intersects(Flags::META) && a.meta_pending == 0 {
            return true;
        }
        let is_higher = n.class == Class::RealTime && a.class != Class::RealTime;
        if is_higher && self.rules.real_time_preempts {
            return true;
        }
        let Some(owner) = self.active_context.filter(|_| a.wait_request) else { return false };
        if !self.rules.seeks_by_context {
            return self.is_close(active, request.sector);
        }
        let mean = self.contexts.get(&owner).and_then(|cic| cic.seeks.valid_mean());
        let distance = request.sector.0.abs_diff(self.last_position.0);
        mean.is_some_and(|mean| distance <= mean)
    }

    /// The turn of the active queue ends, and `new` stands first.
    fn preempt(&mut self, cx: &mut Cx<'_>, new: QueueId) {
        self.say(cx, new, format_args!("preempt"));
        let active = self.active.expect("somebody is preempted");
        self.expire(cx, active, true);
        self.move_to_front(now(cx), new);
        self.queues[new].slice_end = 0;
        self.queues[new].slice_new = true;
        self.turn = Turn::Preempts(new);
    }
}
