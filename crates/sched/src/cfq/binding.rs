//! Whose request it is: contexts, their queues, priorities, references (rules cfq-bind and
//! cfq-exit).

use super::queue::{Class, Queue, QueueId, class_of};
use super::{Cfq, GroupId};
use crate::think::ThinkTime;
use alloc::vec::Vec;
use block::scheduler::MayQueue;
use block::{Bio, CgroupId, ContextId, Cx, Flags, IoContextId, Ioprio, Origin, RequestId};

/// An io_context on this device.
#[derive(Clone)]
pub(super) struct Cic {
    /// The asynchronous queue and the synchronous one.
    pub queues: [Option<QueueId>; 2],
    pub think: ThinkTime,
    ioprio: Ioprio,
    cgroup: CgroupId,
}

/// All io_contexts on this device, by number: those are small, and each request asks several times.
#[derive(Clone, Default)]
pub(super) struct Contexts(Vec<Option<Cic>>);

impl Contexts {
    pub fn get(&self, id: IoContextId) -> Option<&Cic> {
        self.0.get(id.0 as usize)?.as_ref()
    }

    pub fn get_mut(&mut self, id: IoContextId) -> Option<&mut Cic> {
        self.0.get_mut(id.0 as usize)?.as_mut()
    }

    fn insert(&mut self, id: IoContextId, cic: Cic) {
        let place = id.0 as usize;
        if self.0.len() <= place {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place] = Some(cic);
    }

    fn remove(&mut self, id: IoContextId) {
        self.0[id.0 as usize] = None;
    }
}

/// A request that was bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub queue: QueueId,
    pub io_context: IoContextId,
    /// When it is to be served first.
    pub expires: i64,
}

impl Cfq {
    /// The queue that requests of the bio's kind by its submitter go to now.
    pub(super) fn queue_of_bio(&self, bio: &Bio) -> Option<QueueId> {
        let cic = self.contexts.get(bio.origin.io_context)?;
        cic.queues[usize::from(bio.is_sync())]
    }

    /// The queue of a bound request.
    pub(super) fn queue_of(&self, rq: RequestId) -> QueueId {
        self.bound[rq].queue
    }

    /// Rule cfq-bind-7: a queue that is waited for may have one more, once a turn.
    pub(super) fn may_allocate(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> MayQueue {
        let Some(id) = self.queue_of_bio(bio) else { return MayQueue::May };
        self.init_priority(cx, id, bio.origin.io_context);
        let queue = &mut self.queues[id];
        if self.rules.boosts_by_prio {
            queue.boost(bio.flags.intersects(Flags::PRIO));
        }
        if queue.wait_request && !queue.must_alloc {
            queue.must_alloc = true;
            return MayQueue::Must;
        }
        MayQueue::May
    }

    /// Rules cfq-bind: binds a request to the queue of who allocated it.
    pub(super) fn bind_request(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let request = cx.request(rq);
        let (origin, sync) = (request.origin, request.is_sync());
        let owner = origin.io_context;
        let ioprio = cx.io_context(owner).ioprio;
        match self.contexts.get(owner) {
            None => {
                let (think, cgroup) = (ThinkTime::since(self.now(cx)), origin.cgroup);
                let cic = Cic { queues: [None; 2], think, ioprio, cgroup };
                self.contexts.insert(owner, cic);
            }
            Some(cic) if cic.ioprio != ioprio || cic.cgroup != origin.cgroup => {
                self.note_priority(cx, owner, ioprio);
                self.note_cgroup(cx, owner, origin.cgroup);
            }
            Some(_) => {}
        }
        let id = self.queue_for(cx, &origin, sync);
        let queue = &mut self.queues[id];
        queue.allocated += 1;
        queue.refs += 1;
        self.bound.set(rq, Bound { queue: id, io_context: owner, expires: 0 });
    }

    /// Rule cfq-bind-1.
    fn note_priority(&mut self, cx: &mut Cx<'_>, owner: IoContextId, ioprio: Ioprio) {
        let cic = self.context(owner);
        if cic.ioprio == ioprio {
            return;
        }
        cic.ioprio = ioprio;
        let dropped = cic.queues[0].take();
        if let Some(sync) = cic.queues[1] {
            self.queues[sync].prio_changed = true;
        }
        if let Some(queue) = dropped {
            self.put_queue(cx, queue);
        }
    }

    /// Rule cfq-bind-2.
    fn note_cgroup(&mut self, cx: &mut Cx<'_>, owner: IoContextId, cgroup: CgroupId) {
        let cic = self.context(owner);
        if core::mem::replace(&mut cic.cgroup, cgroup) == cgroup {
            return;
        }
        let dropped = core::mem::take(&mut cic.queues);
        for queue in dropped.into_iter().flatten() {
            self.say(cx, queue, format_args!("changed cgroup"));
            self.put_queue(cx, queue);
        }
    }

    /// Rules cfq-bind-3 and cfq-bind-4.
    fn queue_for(&mut self, cx: &mut Cx<'_>, origin: &Origin, sync: bool) -> QueueId {
        let (owner, pid, side) = (origin.io_context, origin.context, usize::from(sync));
        if let Some(id) = self.context(owner).queues[side] {
            if !self.leaves(id) {
                let stays = self.queues[id].merges_into.is_none();
                return if stays { id } else { self.follow_merge(cx, owner, id) };
            }
            self.say(cx, id, format_args!("breaking apart cfqq"));
            if self.queues[id].process_refs() == 1 {
                let queue = &mut self.queues[id];
                queue.pid = pid;
                queue.coop = false;
                queue.split_coop = false;
                return self.follow_merge(cx, owner, id);
            }
            self.context(owner).queues[side] = None;
            self.put_merge_chain(cx, id);
            self.put_queue(cx, id);
        }
        let group = self.group_of(cx, origin.cgroup);
        let group = self.living(group);
        let id = if sync {
            self.new_queue(cx, owner, group, pid, true)
        } else {
            self.async_queue(cx, owner, group, pid)
        };
        self.queues[id].refs += 1;
        self.context(owner).queues[side] = Some(id);
        id
    }

    /// Rule cfq-bind-4: processes of a queue that merges go over to the other one, one by one.
    fn follow_merge(&mut self, cx: &mut Cx<'_>, owner: IoContextId, id: QueueId) -> QueueId {
        let Some(into) = self.queues[id].merges_into else { return id };
        self.say(cx, id, format_args!("merging with queue {}", Token(into)));
        self.context(owner).queues[1] = Some(into);
        self.queues[into].coop = true;
        self.put_queue(cx, id);
        into
    }

    /// Rule cfq-bind-5: the asynchronous queue that all of the same group and priority share.
    fn async_queue(
        &mut self,
        cx: &mut Cx<'_>,
        owner: IoContextId,
        group: GroupId,
        pid: ContextId,
    ) -> QueueId {
        let (class, level) = class_of(&cx.io_context(owner));
        let place = |group: &mut super::group::Group| match class {
            Class::Idle => group.async_idle,
            _ => group.async_queues[class as usize][level as usize],
        };
        if let Some(id) = place(self.group_mut(group)) {
            return id;
        }
        let id = self.new_queue(cx, owner, group, pid, false);
        self.queues[id].refs += 1;
        let group = self.group_mut(group);
        match class {
            Class::Idle => group.async_idle = Some(id),
            _ => group.async_queues[class as usize][level as usize] = Some(id),
        }
        id
    }

    pub(super) fn new_queue(
        &mut self,
        cx: &mut Cx<'_>,
        owner: IoContextId,
        group: GroupId,
        pid: ContextId,
        sync: bool,
    ) -> QueueId {
        let mut queue = Queue::new(pid, group, sync);
        let (class, _) = class_of(&cx.io_context(owner));
        queue.idle_window = sync && class != Class::Idle;
        let id = self.queues.insert(queue);
        self.init_priority(cx, id, owner);
        self.say(cx, id, format_args!("alloced"));
        id
    }

    /// Rule cfq-bind-6.
    pub(super) fn init_priority(&mut self, cx: &Cx<'_>, id: QueueId, owner: IoContextId) {
        let queue = &mut self.queues[id];
        if !core::mem::take(&mut queue.prio_changed) {
            return;
        }
        let context = cx.io_context(owner);
        queue.own = class_of(&context);
        (queue.class, queue.level) = queue.own;
        if context.ioprio.class == block::IoprioClass::Idle {
            queue.idle_window = false;
        }
    }

    /// A bound request is freed.
    pub(super) fn release(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let bound = self.bound.take(rq).expect("a bound request");
        self.queues[bound.queue].allocated -= 1;
        self.put_queue(cx, bound.queue);
    }

    /// A reference to a queue is gone; with the last one goes the queue.
    pub(super) fn put_queue(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let queue = &mut self.queues[id];
        queue.refs -= 1;
        if queue.refs > 0 {
            return;
        }
        self.say(cx, id, format_args!("put_queue"));
        if self.active == Some(id) {
            self.expire(cx, id, false);
            self.schedule(cx);
        }
        assert!(!self.queues[id].on_rr, "a queue that nobody uses is busy");
        self.leave_prio_tree(id);
        self.queues.remove(id);
    }

    /// The references that a queue held along the chain of those it merges into.
    pub(super) fn put_merge_chain(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let mut at = self.queues[id].merges_into;
        while let Some(next) = at {
            at = self.queues[next].merges_into;
            self.put_queue(cx, next);
        }
    }

    /// Rules cfq-exit: the last task of an io_context is gone.
    pub(super) fn exit_context(&mut self, cx: &mut Cx<'_>, owner: IoContextId) {
        let Some(cic) = self.contexts.get_mut(owner) else { return };
        let queues = core::mem::take(&mut cic.queues);
        for id in queues.into_iter().flatten() {
            if self.active == Some(id) {
                self.expire(cx, id, false);
                self.schedule(cx);
            }
            self.put_merge_chain(cx, id);
            self.put_queue(cx, id);
        }
        // What it still has in flight looks for it at completion, and finds nobody.
        self.contexts.remove(owner);
    }

    /// Its control group disappears: what is queued is served where it is, and nobody shares its
    /// asynchronous queues any more.
    // assumed: the specification says nothing of groups that are removed.
    pub(super) fn drop_group(&mut self, cx: &mut Cx<'_>, cgroup: CgroupId) {
        let id = self.group_of(cx, cgroup);
        let group = self.group_mut(id);
        group.is_gone = true;
        let shared = core::mem::take(&mut group.async_queues);
        let idle = group.async_idle.take();
        for id in shared.into_iter().flatten().flatten().chain(idle) {
            self.put_queue(cx, id);
        }
    }

    fn context(&mut self, owner: IoContextId) -> &mut Cic {
        self.contexts.get_mut(owner).expect("a context that was seen")
    }
}

/// A queue as an address in messages: any stable token does (rule cfq-message-2).
struct Token(QueueId);

impl core::fmt::Display for Token {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:016x}", self.0.to_bits())
    }
}
