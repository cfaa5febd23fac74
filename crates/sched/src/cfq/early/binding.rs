//! Whose request it is: contexts, their queues, priorities, references (rules cfq-early-bind and
//! cfq-bind).

use super::super::queue::{Class, class_of};
use super::queue::{Queue, QueueId};
use super::seek::Seeks;
use super::{EarlyCfq, now};
use crate::think::ThinkTime;
use block::scheduler::MayQueue;
use block::{Bio, ContextId, Cx, Flags, IoContextId, Ioprio, IoprioClass, RequestId};

/// An io_context on this device.
pub(super) struct Cic {
    /// The asynchronous queue and the synchronous one.
    pub queues: [Option<QueueId>; 2],
    pub think: ThinkTime,
    /// Of its requests (2.6.28).
    pub seeks: Seeks,
    ioprio: Ioprio,
}

/// A request that was bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub queue: QueueId,
    pub io_context: IoContextId,
    /// When it is to be served first.
    pub expires: i64,
}

impl EarlyCfq {
    /// The queue that requests of the bio's kind by its submitter go to now.
    pub(super) fn queue_of_bio(&self, bio: &Bio) -> Option<QueueId> {
        self.queue_of_side(bio, bio.is_sync())
    }

    fn queue_of_side(&self, bio: &Bio, sync: bool) -> Option<QueueId> {
        self.contexts.get(&bio.origin.io_context)?.queues[usize::from(sync)]
    }

    /// Rule cfq-early-bind-2. In 2.6.28 plain reads, which carry no SYNC, never profit.
    pub(super) fn may_allocate(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> MayQueue {
        let by_flag = self.rules.may_queue_by_flag;
        let sync = if by_flag { bio.flags.intersects(Flags::SYNC) } else { bio.is_sync() };
        let Some(id) = self.queue_of_side(bio, sync) else { return MayQueue::May };
        self.init_priority(cx, id, bio.origin.io_context);
        let queue = &mut self.queues[id];
        if queue.wait_request && !queue.must_alloc {
            queue.must_alloc = true;
            return MayQueue::Must;
        }
        MayQueue::May
    }

    /// Rule cfq-early-bind-1: binds a request to the queue of who allocated it.
    pub(super) fn bind_request(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let request = cx.request(rq);
        let (origin, sync) = (request.origin, request.is_sync());
        let owner = origin.io_context;
        let ioprio = cx.io_context(owner).ioprio;
        let think = ThinkTime::since(now(cx));
        self.contexts.entry(owner).or_insert_with(|| Cic {
            queues: [None; 2],
            think,
            seeks: Seeks::default(),
            ioprio,
        });
        self.note_priority(cx, owner, ioprio);
        let id = self.queue_for(cx, owner, sync, origin.context);
        let queue = &mut self.queues[id];
        queue.allocated += 1;
        queue.refs += 1;
        self.bound.set(rq, Bound { queue: id, io_context: owner, expires: 0 });
    }

    fn note_priority(&mut self, cx: &mut Cx<'_>, owner: IoContextId, ioprio: Ioprio) {
        let cic = self.context(owner);
        if core::mem::replace(&mut cic.ioprio, ioprio) == ioprio {
            return;
        }
        let (dropped, sync) = (cic.queues[0].take(), cic.queues[1]);
        if let Some(sync) = sync {
            self.queues[sync].prio_changed = true;
        }
        if let Some(queue) = dropped {
            self.put_queue(cx, queue);
        }
    }

    fn queue_for(
        &mut self,
        cx: &mut Cx<'_>,
        owner: IoContextId,
        sync: bool,
        pid: ContextId,
    ) -> QueueId {
        let side = usize::from(sync);
        if let Some(id) = self.contexts[&owner].queues[side] {
            if !self.must_split(now(cx), id) {
                return self.follow_merge(cx, owner, id);
            }
            if self.queues[id].process_refs() == 1 {
                let queue = &mut self.queues[id];
                queue.pid = pid;
                queue.coop = false;
                queue.seeky_since = None;
                return self.follow_merge(cx, owner, id);
            }
            self.context(owner).queues[side] = None;
            self.put_merge_chain(cx, id);
            self.put_queue(cx, id);
        }
        let id = match sync {
            true => self.new_queue(cx, owner, pid, true),
            false => self.shared_queue(cx, owner, pid),
        };
        self.queues[id].refs += 1;
        self.context(owner).queues[side] = Some(id);
        id
    }

    /// The asynchronous queue that all of the same priority share; one that is not set is 4.
    fn shared_queue(&mut self, cx: &mut Cx<'_>, owner: IoContextId, pid: ContextId) -> QueueId {
        let ioprio = cx.io_context(owner).ioprio;
        let (class, level) = match ioprio.class {
            IoprioClass::None => (Class::BestEffort, 4),
            IoprioClass::BestEffort => (Class::BestEffort, ioprio.level),
            IoprioClass::RealTime => (Class::RealTime, ioprio.level),
            IoprioClass::Idle => (Class::Idle, 0),
        };
        let place = (class as usize, usize::from(level));
        if let Some(id) = self.shared[place.0][place.1] {
            return id;
        }
        let id = self.new_queue(cx, owner, pid, false);
        self.queues[id].refs += 1;
        self.shared[place.0][place.1] = Some(id);
        id
    }

    fn new_queue(
        &mut self,
        cx: &mut Cx<'_>,
        owner: IoContextId,
        pid: ContextId,
        sync: bool,
    ) -> QueueId {
        let mut queue = Queue::new(pid, sync);
        let (class, _) = class_of(&cx.io_context(owner));
        queue.idle_window = sync && class != Class::Idle;
        let id = self.queues.insert(queue);
        self.init_priority(cx, id, owner);
        self.say(cx, id, format_args!("alloced"));
        id
    }

    pub(super) fn init_priority(&mut self, cx: &Cx<'_>, id: QueueId, owner: IoContextId) {
        let queue = &mut self.queues[id];
        if !core::mem::take(&mut queue.prio_changed) {
            return;
        }
        let context = cx.io_context(owner);
        (queue.class, queue.level) = class_of(&context);
        if queue.class == Class::Idle {
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
        self.queues[id].refs -= 1;
        if self.queues[id].refs > 0 {
            return;
        }
        self.say(cx, id, format_args!("put_queue"));
        if self.active == Some(id) {
            self.expire(cx, id, false);
            self.schedule(cx);
        }
        assert!(self.queues[id].place.is_none(), "a queue that nobody uses is busy");
        self.leave_prio_tree(id);
        self.queues.remove(id);
    }

    /// The references that a queue held along the chain of those it merges into.
    fn put_merge_chain(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let mut at = self.queues[id].merges_into;
        while let Some(next) = at {
            at = self.queues[next].merges_into;
            self.put_queue(cx, next);
        }
    }

    /// Rule cfq-early-end-3: the last task of an io_context is gone.
    pub(super) fn exit_context(&mut self, cx: &mut Cx<'_>, owner: IoContextId) {
        let Some(cic) = self.contexts.remove(&owner) else { return };
        for id in cic.queues.into_iter().flatten() {
            if self.active == Some(id) {
                self.expire(cx, id, false);
                self.schedule(cx);
            }
            self.put_merge_chain(cx, id);
            self.put_queue(cx, id);
        }
    }

    pub(super) fn context(&mut self, owner: IoContextId) -> &mut Cic {
        self.contexts.get_mut(&owner).expect("a context that was seen")
    }
}
