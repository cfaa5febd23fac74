//! Arrivals: insertion, merging, and whether an arrival ends another's turn (rules cfq-insert and
//! cfq-preempt).

use super::queue::{Class, QueueId};
use super::{Cfq, Kind, Turn};
use crate::choice::choose;
use base::page;
use block::scheduler::RunQueue;
use block::{Cx, Flags, RequestId};

impl Cfq {
    /// Rules cfq-insert.
    pub(super) fn add_request(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let now = self.now(cx);
        let request = cx.request(rq);
        let bound = &mut self.bound[rq];
        bound.expires = now + self.settings.fifo_expire[usize::from(request.is_sync())];
        let bound = *bound;
        let id = bound.queue;
        let queue = &mut self.queues[id];
        queue.fifo.push_back(&mut self.links, rq);
        queue.prio_pending += u32::from(request.flags.intersects(Flags::PRIO));
        queue.note_seek(cx, request);
        let has_new_priority = queue.prio_changed;
        self.queued += 1;
        self.say(cx, id, format_args!("insert_request"));
        if has_new_priority {
            self.init_priority(cx, id, bound.io_context);
        }
        self.add_sorted(cx, id, rq);
        self.note_think_times(cx, bound);
        self.update_idle_window(cx, bound);
        if self.active == Some(id) {
            self.serve_waiting(cx, id, rq);
        } else if self.should_preempt(cx, id, rq) {
            self.preempt(cx, id);
            cx.run_queue(RunQueue::Now);
        }
    }

    /// Rule cfq-insert-1: sorts a request in, and has its queue served.
    fn add_sorted(&mut self, cx: &mut Cx<'_>, id: QueueId, rq: RequestId) {
        let queue = &mut self.queues[id];
        queue.sorted.insert(cx.request(rq).sector, rq);
        let before = queue.next;
        if !queue.on_rr {
            self.join_rr(cx, id);
        }
        let next = choose(cx, &self.settings.ways, before, Some(rq), self.last_position);
        if before != next {
            self.queues[id].next = next;
            self.update_prio_tree(cx, id);
        }
    }

    /// Takes a request out of its queue, and says what follows it, measured from its first sector.
    pub(super) fn take_out(
        &mut self,
        cx: &Cx<'_>,
        id: QueueId,
        rq: RequestId,
    ) -> Option<RequestId> {
        let request = cx.request(rq);
        let has_prio = request.flags.intersects(Flags::PRIO);
        let queue = &mut self.queues[id];
        let (previous, next) = queue.sorted.remove_between(rq);
        queue.fifo.remove(&mut self.links, rq);
        queue.prio_pending -= u32::from(has_prio).min(queue.prio_pending);
        self.queued -= 1;
        let next = next.or_else(|| queue.sorted.first());
        let follows = choose(cx, &self.settings.ways, next, previous, request.sector);
        if queue.is_empty() {
            self.leave_prio_tree(id);
        }
        follows
    }

    /// A front merge: the request begins elsewhere.
    pub(super) fn reposition(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let id = self.queue_of(rq);
        self.queues[id].sorted.remove(rq);
        if self.queues[id].sorted.is_empty() {
            self.leave_prio_tree(id);
        }
        self.add_sorted(cx, id, rq);
    }

    /// `next` becomes a part of `rq`.
    pub(super) fn join(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) {
        if !self.links.contains(next) {
            return;
        }
        let (id, other) = (self.queue_of(rq), self.queue_of(next));
        let expires = self.bound[next].expires;
        if id == other && expires < self.bound[rq].expires {
            let queue = &mut self.queues[id];
            queue.fifo.remove(&mut self.links, rq);
            queue.fifo.insert_before(&mut self.links, next, rq);
            self.bound[rq].expires = expires;
        }
        if self.queues[id].next == Some(next) {
            self.queues[id].next = Some(rq);
        }
        let follows = self.take_out(cx, other, next);
        let queue = &mut self.queues[other];
        if queue.next == Some(next) {
            queue.next = follows;
        }
        if queue.is_empty() && queue.on_rr && self.active != Some(other) {
            self.leave_rr(cx, other);
        }
    }

    /// Rule cfq-insert-6: the queue that is being served gets a request.
    fn serve_waiting(&mut self, cx: &mut Cx<'_>, id: QueueId, rq: RequestId) {
        if !self.queues[id].wait_request {
            return;
        }
        // A request longer than a page does not wait for more.
        if cx.request(rq).sectors > page::SECTORS || self.busy_queues > 1 {
            self.timer = None;
            self.queues[id].wait_request = false;
            cx.run_queue(RunQueue::Now);
        } else {
            self.queues[id].must_dispatch = true;
        }
    }

    /// Rules cfq-preempt: whether an arrival at `new` ends the turn of the active queue.
    fn should_preempt(&mut self, cx: &mut Cx<'_>, new: QueueId, rq: RequestId) -> bool {
        let Some(active) = self.active else { return false };
        let (n, a) = (&self.queues[new], &self.queues[active]);
        if n.class == Class::Idle {
            return false;
        }
        if a.class == Class::Idle {
            return true;
        }
        if a.class == Class::RealTime && n.class != Class::RealTime {
            return false;
        }
        let request = cx.request(rq);
        if request.is_sync() && !a.sync && !a.must_dispatch {
            return true;
        }
        if !self.is_ancestor(n.group, a.group) {
            return false;
        }
        let is_slice_used = a.is_slice_used(self.now(cx));
        if is_slice_used || n.class == Class::RealTime && a.class != n.class {
            return true;
        }
        let among_seekers = self.serving_kind == Kind::SyncNoIdle && n.kind() == Kind::SyncNoIdle;
        if among_seekers && a.is_empty() {
            return true;
        }
        if request.flags.intersects(Flags::PRIO) && a.prio_pending == 0 {
            return true;
        }
        let (sector, is_empty, waits) = (request.sector, a.is_empty(), a.wait_request);
        if is_empty && !self.should_idle(cx, active) {
            return true;
        }
        self.active_context.is_some() && waits && self.is_close(sector)
    }

    /// The turn of the active queue ends, and `new` stands first in its tree.
    fn preempt(&mut self, cx: &mut Cx<'_>, new: QueueId) {
        self.say(cx, new, format_args!("preempt"));
        let active = self.active.expect("somebody is preempted");
        let kind = self.queues[active].kind();
        self.expire(cx, active, true);
        if kind != self.queues[new].kind() {
            let group = self.queues[new].group;
            self.group_mut(group).saved = None;
        }
        self.heard.preempted = self.queues[new].place.map(|(key, ..)| (new, key));
        self.resort(cx, new, true);
        self.queues[new].slice_end = 0;
        self.queues[new].slice_new = true;
        self.turn = Turn::Preempts(new);
    }
}
