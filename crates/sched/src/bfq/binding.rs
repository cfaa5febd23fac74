//! Whose request it is: contexts, their queues, priorities, groups and references (rules
//! bfq-bind and bfq-cgroup).

use super::budget::Reason;
use super::merge::Saved;
use super::queue::{Born, Queue, QueueId};
use super::wf2q::{Entity, Note};
use super::{Bfq, Class, LONG_AGO};
use crate::sector_tree::SectorTree;
use alloc::vec::Vec;
use base::Sector;
use block::scheduler::CpuPolicy;
use block::{CgroupId, ContextId, Cx, IoContextId, Ioprio, IoprioClass, RequestId};

/// Weight of a group that nobody gave one.
const GROUP_WEIGHT: u32 = 100;

/// A request as BFQ knows it.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    pub queue: QueueId,
    pub owner: IoContextId,
    pub expires: i64,
    /// It has been given to the disk from a queue.
    pub is_started: bool,
}

/// An io_context on this device.
#[derive(Clone, Default)]
pub(super) struct Bic {
    pub sync: Option<QueueId>,
    pub asyncs: Option<QueueId>,
    pub saved: Saved,
    /// With this queue its own may be merged when it has proved stable.
    pub stable: Option<QueueId>,
    pub is_stably_merged: bool,
    /// Requests that are not done.
    pub requests: u32,
    ioprio: Option<Ioprio>,
    cgroup: Option<CgroupId>,
}

/// All io_contexts.
#[derive(Clone, Default)]
pub(super) struct Contexts {
    all: Vec<Option<Bic>>,
}

impl Contexts {
    /// The context, which comes into being if it was never seen.
    #[inline]
    pub fn get(&mut self, id: IoContextId) -> &mut Bic {
        let n = id.0 as usize;
        if self.find(id).is_none() {
            self.create(n);
        }
        self.all[n].as_mut().expect("it is there now")
    }

    #[cold]
    fn create(&mut self, n: usize) {
        self.all.resize(self.all.len().max(n + 1), None);
        self.all[n] = Some(Bic::default());
    }

    fn take(&mut self, id: IoContextId) -> Option<Bic> {
        self.all.get_mut(id.0 as usize)?.take()
    }

    /// All that are there.
    pub fn iter(&self) -> impl Iterator<Item = &Bic> {
        self.all.iter().flatten()
    }

    fn find(&self, id: IoContextId) -> Option<&Bic> {
        self.all.get(id.0 as usize)?.as_ref()
    }

    pub fn async_queue(&self, id: IoContextId) -> Option<QueueId> {
        self.find(id)?.asyncs
    }

    pub fn is_stably_merged(&self, id: IoContextId) -> bool {
        self.find(id).is_some_and(|bic| bic.is_stably_merged)
    }
}

/// A control group.
#[derive(Clone)]
pub(super) struct Group {
    asyncs: [[Option<QueueId>; 8]; 2],
    async_idle: Option<QueueId>,
    /// Its queues by where they go on, and the sector at which each does.
    pub places: SectorTree<Queue, Sector>,
    /// Queues with requests that are not done.
    pub with_pending: u32,
    pub last_created: Option<QueueId>,
}

impl Group {
    /// The queues that all in it share.
    pub fn shared(&self) -> impl Iterator<Item = QueueId> {
        self.asyncs.iter().flatten().chain([&self.async_idle]).filter_map(|id| *id)
    }
}

impl Bfq {
    pub(super) fn group(&self, group: u32) -> &Group {
        self.groups[group as usize].as_ref().expect("a group that was seen")
    }

    pub(super) fn group_mut(&mut self, group: u32) -> &mut Group {
        self.groups[group as usize].as_mut().expect("a group that was seen")
    }

    /// The number of a control group, which comes into being here if need be.
    fn group_of(&mut self, cx: &Cx<'_>, cgroup: CgroupId) -> u32 {
        let n = cgroup.0 as usize;
        if self.groups.len() <= n {
            self.groups.resize(n + 1, None);
        }
        if self.groups[n].is_none() {
            let parent = cx.cgroup(cgroup).parent.map(|parent| self.group_of(cx, parent));
            let own = parent.map(|parent| {
                let weight = cx.cgroup(cgroup).weight.unwrap_or(GROUP_WEIGHT);
                let entity = Entity::of(parent, Some(cgroup.0), weight, Class::BestEffort);
                self.engine.insert(entity)
            });
            self.engine.add_group(cgroup.0, own);
            self.groups[n] = Some(Group {
                asyncs: Default::default(),
                async_idle: None,
                places: SectorTree::default(),
                with_pending: 0,
                last_created: None,
            });
        }
        cgroup.0
    }

    /// The weight of a group changes when it is next activated. One that was not seen yet has it
    /// from the start.
    pub(super) fn change_weight(&mut self, cx: &Cx<'_>, cgroup: CgroupId) {
        let is_seen = self.groups.get(cgroup.0 as usize).is_some_and(Option::is_some);
        if !is_seen {
            return;
        }
        let Some(own) = self.engine.own_entity(cgroup.0) else { return };
        let weight = cx.cgroup(cgroup).weight.unwrap_or(GROUP_WEIGHT);
        self.engine[own].new_weight = weight;
        self.engine[own].prio_changed = true;
    }

    /// A request is bound to the queue of whoever sent it.
    pub(super) fn bind_request(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let request = cx.request(rq);
        let (origin, sync) = (request.origin, request.is_sync());
        let owner = origin.io_context;
        self.look_at_ioprio(cx, owner, origin.cgroup);
        self.look_at_cgroup(cx, owner, origin.cgroup);
        let mut id = self.queue_of(cx, owner, origin.context, origin.cgroup, sync);
        let mut is_new_split = false;
        if self.wants_split(owner, id) {
            (id, is_new_split) = self.split(cx, owner, id, origin.context, origin.cgroup);
        }
        self.engine.add_allocated(self.queues[id].entity, 1);
        self.queues[id].refs += 1;
        self.contexts.get(owner).requests += 1;
        if cx.wants_messages() {
            let (rq, queue, refs) = (rq.to_bits(), id.to_bits(), self.queues[id].refs);
            self.say(cx, id, format_args!("get_request {rq:016x}: bfqq {queue:016x}, {refs}"));
        }
        let is_alone = !self.is_disowned(id) && self.process_refs(id) == 1;
        if is_alone && sync {
            self.queues[id].owner = Some(owner);
            if is_new_split {
                self.restore(owner, id);
            }
        }
        let may_burst = self.burst.size > 0 || self.may_burst();
        if self.queues[id].just_created && may_burst {
            self.handle_burst(id);
        }
        self.bound.set(rq, Bound { queue: id, owner, expires: LONG_AGO, is_started: false });
    }

    /// It is to be merged, and so nobody's own.
    fn is_disowned(&self, id: QueueId) -> bool {
        self.rules.plans_disown && self.queues[id].merges_into.is_some()
    }

    fn wants_split(&self, owner: IoContextId, id: QueueId) -> bool {
        let queue = &self.queues[id];
        queue.sync && queue.coop && queue.split_coop && !self.contexts.is_stably_merged(owner)
    }

    /// A process that shares a queue with others gets one of its own.
    fn split(
        &mut self,
        cx: &mut Cx<'_>,
        owner: IoContextId,
        id: QueueId,
        pid: ContextId,
        cgroup: CgroupId,
    ) -> (QueueId, bool) {
        if self.rules.messages.tells_parting {
            self.say(cx, id, format_args!("breaking apart bfqq"));
        }
        self.say(cx, id, format_args!("splitting queue"));
        let now = self.jiffies;
        let is_last = self.process_refs(id) == 1 && !self.is_disowned(id);
        if is_last {
            let queue = &mut self.queues[id];
            (queue.pid, queue.who) = (Some(pid), pid);
            queue.coop = false;
            queue.split_coop = false;
            return (id, true);
        }
        self.contexts.get(owner).sync = None;
        let waker = self.queues[id].wakers.waker;
        self.put_merge_chain(cx, id);
        self.release_process(cx, id);
        let group = self.group_of(cx, cgroup);
        let id = self.new_queue(cx, owner, group, pid, true);
        // What wakes those who shared a queue goes on to wake each.
        self.set_waker(id, waker.filter(|waker| self.queues.get(*waker).is_some()));
        self.get_queue(cx, id);
        self.queues[id].split_time = now;
        self.contexts.get(owner).sync = Some(id);
        (id, true)
    }

    /// The queue for requests of a context.
    fn queue_of(
        &mut self,
        cx: &mut Cx<'_>,
        owner: IoContextId,
        pid: ContextId,
        cgroup: CgroupId,
        sync: bool,
    ) -> QueueId {
        let bic = self.contexts.get(owner);
        if let Some(id) = if sync { bic.sync } else { bic.asyncs } {
            return id;
        }
        let group = self.group_of(cx, cgroup);
        if !sync {
            let id = self.async_queue(cx, owner, group, pid);
            self.contexts.get(owner).asyncs = Some(id);
            return id;
        }
        let id = self.new_queue(cx, owner, group, pid, true);
        self.get_queue(cx, id);
        self.contexts.get(owner).sync = Some(id);
        if self.rules.merges_stably { self.note_created(cx, id, owner) } else { id }
    }

    /// The queue that all of the same group and priority share.
    fn async_queue(
        &mut self,
        cx: &mut Cx<'_>,
        owner: IoContextId,
        group: u32,
        pid: ContextId,
    ) -> QueueId {
        let (class, level) = async_class_of(cx.io_context(owner).ioprio);
        let found = *self.async_place(group, class, level);
        let id = match found {
            Some(id) => id,
            None => {
                let id = self.new_queue(cx, owner, group, pid, false);
                self.queues[id].refs += 1;
                if cx.wants_messages() {
                    let (queue, refs) = (id.to_bits(), self.queues[id].refs);
                    self.say(
                        cx,
                        id,
                        format_args!("get_queue, bfqq not in async: {queue:016x}, {refs}"),
                    );
                }
                *self.async_place(group, class, level) = Some(id);
                id
            }
        };
        self.get_queue(cx, id);
        id
    }

    /// A process refers to a queue.
    fn get_queue(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        self.queues[id].refs += 1;
        if self.rules.messages.tells_queue && cx.wants_messages() {
            let (queue, refs) = (id.to_bits(), self.queues[id].refs);
            self.say(cx, id, format_args!("get_queue, at end: {queue:016x}, {refs}"));
        }
    }

    fn async_place(&mut self, group: u32, class: Class, level: u8) -> &mut Option<QueueId> {
        let group = self.group_mut(group);
        match class {
            Class::Idle => &mut group.async_idle,
            class => &mut group.asyncs[class as usize][usize::from(level)],
        }
    }

    fn new_queue(
        &mut self,
        cx: &mut Cx<'_>,
        owner: IoContextId,
        group: u32,
        pid: ContextId,
        sync: bool,
    ) -> QueueId {
        let context = cx.io_context(owner);
        let (class, level) = if sync { class_of(&context) } else { async_class_of(context.ioprio) };
        let weight = weight_of(level);
        let entity = self.engine.insert(Entity::of(group, None, weight, class));
        let max_budget = self.most_budget() * 2 / 3;
        let born = Born { jiffies: self.jiffies, nanos: self.nanos, level, max_budget };
        let id = self.queues.insert(Queue::new(entity, pid, sync, born));
        self.engine[entity].queue = Some(id);
        self.contexts.get(owner).ioprio = Some(context.ioprio);
        self.tell_priority(cx, level, weight);
        self.say(cx, id, format_args!("allocated"));
        id
    }

    /// The priority of a context may have changed.
    fn look_at_ioprio(&mut self, cx: &mut Cx<'_>, owner: IoContextId, cgroup: CgroupId) {
        let context = cx.io_context(owner);
        let bic = self.contexts.get(owner);
        if bic.ioprio.replace(context.ioprio).is_none_or(|old| old == context.ioprio) {
            return;
        }
        let (sync, asyncs) = (bic.sync, bic.asyncs.take());
        if let Some(old) = asyncs {
            let pid = cx.context;
            self.release_process(cx, old);
            let group = self.group_of(cx, cgroup);
            let id = self.async_queue(cx, owner, group, pid);
            self.contexts.get(owner).asyncs = Some(id);
        }
        if let Some(id) = sync {
            let (class, level) = class_of(&context);
            let weight = weight_of(level);
            self.queues[id].level = level;
            let entity = self.queues[id].entity;
            let it = &mut self.engine[entity];
            it.new_class = class;
            it.new_weight = weight;
            it.prio_changed = true;
            if class == Class::Idle {
                self.queues[id].has_short_think = false;
            }
            if self.rules.messages.tells_priority {
                self.say(cx, id, format_args!("new_ioprio {level} new_weight {weight}"));
            }
        }
    }

    /// The priority of a queue that is not made yet: it has no number, and is none that somebody
    /// waits for.
    fn tell_priority(&self, cx: &mut Cx<'_>, level: u8, weight: u32) {
        if self.rules.messages.tells_priority {
            cx.message(format_args!("bfq0A new_ioprio {level} new_weight {weight}"));
        }
    }

    /// The control group of a context may have changed.
    pub(super) fn look_at_cgroup(&mut self, cx: &mut Cx<'_>, owner: IoContextId, cgroup: CgroupId) {
        let bic = self.contexts.get(owner);
        if bic.cgroup.replace(cgroup).is_none_or(|old| old == cgroup) {
            return;
        }
        let (sync, asyncs) = (bic.sync, bic.asyncs);
        let group = self.group_of(cx, cgroup);
        if let Some(id) = asyncs
            && self.engine[self.queues[id].entity].group != group
        {
            self.contexts.get(owner).asyncs = None;
            self.release_process(cx, id);
        }
        let Some(id) = sync else { return };
        let queue = &self.queues[id];
        if self.engine[queue.entity].group == group {
            return;
        }
        if queue.coop || queue.merges_into.is_some() {
            self.put_merge_chain(cx, id);
            self.release_process(cx, id);
            self.contexts.get(owner).sync = None;
        } else {
            self.move_queue(cx, id, group);
        }
    }

    /// A queue goes into another group.
    fn move_queue(&mut self, cx: &mut Cx<'_>, id: QueueId, group: u32) {
        self.queues[id].refs += 1;
        if self.in_service == Some(id) {
            self.expire(cx, id, false, Reason::Preempted);
        }
        let entity = self.queues[id].entity;
        let was_busy = self.queues[id].is_busy;
        self.engine.deactivate(entity, false, false);
        self.follow_notes(cx);
        self.leave_place(id);
        let allocated = self.engine[entity].allocated as i32;
        if let Some(above) = self.engine.parent(entity) {
            self.engine.add_allocated(above, -allocated);
        }
        let was_pending = self.queues[id].is_pending;
        if was_pending {
            self.leave_pending(id);
        }
        self.engine[entity].group = group;
        if let Some(above) = self.engine.parent(entity) {
            self.engine.add_allocated(above, allocated);
        }
        if was_pending {
            self.join_pending(id);
        }
        if was_busy {
            if !self.queues[id].is_empty() {
                self.update_place(cx, id);
            }
            self.engine.activate(entity, false, false);
            self.follow_notes(cx);
        }
        if self.in_service.is_none() && self.in_driver == 0 {
            self.schedule(cx);
        }
        self.put_queue(cx, id);
    }

    /// What the engine did to queues: references, and messages.
    pub(super) fn follow_notes(&mut self, cx: &mut Cx<'_>) {
        if !self.engine.has_notes() {
            return;
        }
        let mut notes = self.engine.take_notes();
        for note in notes.drain(..) {
            match note {
                Note::Finish { of, service, weight, start, finish, delta } => {
                    if cx.wants_messages() {
                        let id = self.queue_with(of);
                        self.say(cx, id, format_args!("calc_finish: serv {service}, w {weight}"));
                        self.say(
                            cx,
                            id,
                            format_args!(
                                "calc_finish: start {start}, finish {finish}, delta {delta}"
                            ),
                        );
                    }
                }
                Note::Get(of) => {
                    let id = self.queue_with(of);
                    self.queues[id].refs += 1;
                    if cx.wants_messages() {
                        let (queue, refs) = (id.to_bits(), self.queues[id].refs);
                        self.say(cx, id, format_args!("get_entity: {queue:016x} {refs}"));
                    }
                }
                Note::Weigh(of) => {
                    let id = self.queue_with(of);
                    self.queues[id].refs += u32::from(self.rules.weights_refer);
                }
                Note::Unweigh(_) if !self.rules.weights_refer => {}
                Note::Put(of) | Note::Unweigh(of) => {
                    let id = self.queue_with(of);
                    self.put_queue(cx, id);
                }
            }
        }
        self.engine.give_back(notes);
    }

    fn queue_with(&self, entity: super::wf2q::EntityId) -> QueueId {
        self.engine[entity].queue.expect("the entity of a queue")
    }

    /// A request is freed.
    pub(super) fn unbind(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let bound = self.bound.take(rq).expect("a bound request");
        self.engine.add_allocated(self.queues[bound.queue].entity, -1);
        let bic = self.contexts.get(bound.owner);
        bic.requests = bic.requests.saturating_sub(1);
        self.put_queue(cx, bound.queue);
    }

    /// A process does not use the queue any more.
    pub(super) fn release_process(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let group = self.engine[self.queues[id].entity].group;
        if self.group(group).last_created == Some(id) {
            self.group_mut(group).last_created = None;
        }
        let queue = &self.queues[id];
        let is_idle = queue.is_busy && queue.is_empty() && self.in_service != Some(id);
        if is_idle {
            self.leave_busy(cx, id, false);
        }
        self.put_queue(cx, id);
    }

    /// A reference to a queue is gone; with the last one goes the queue.
    pub(super) fn put_queue(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        if cx.wants_messages() {
            let (queue, refs) = (id.to_bits(), self.queues[id].refs);
            self.say(cx, id, format_args!("put_queue: {queue:016x} {refs}"));
        }
        let queue = &mut self.queues[id];
        queue.refs -= 1;
        if queue.refs > 0 {
            return;
        }
        let was_listed = queue.in_burst_list;
        let is_owned = queue.owner.is_some();
        self.leave_burst(id);
        if was_listed && is_owned && self.burst.size > 0 {
            self.burst.size -= 1;
        }
        self.leave_place(id);
        self.set_waker(id, None);
        for woken in core::mem::take(&mut self.queues[id].wakers.woken) {
            self.queues[woken].wakers.waker = None;
        }
        if self.last_completed == Some(id) {
            self.last_completed = None;
        }
        let entity = self.queues[id].entity;
        self.engine.remove(entity);
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

    /// The last task of an io_context is gone.
    pub(super) fn exit_context(&mut self, cx: &mut Cx<'_>, owner: IoContextId) {
        let Some(bic) = self.contexts.take(owner) else { return };
        if let Some(stable) = bic.stable {
            self.put_stable(cx, stable);
        }
        for id in [bic.sync, bic.asyncs].into_iter().flatten() {
            if self.queues[id].owner == Some(owner) {
                self.queues[id].owner = None;
            }
            if self.in_service == Some(id) {
                self.expire_of_exit(cx, id);
                self.schedule(cx);
            }
            if cx.wants_messages() {
                let (queue, refs) = (id.to_bits(), self.queues[id].refs);
                self.say(cx, id, format_args!("exit_bfqq: {queue:016x}, {refs}"));
            }
            self.put_merge_chain(cx, id);
            self.release_process(cx, id);
        }
    }

    /// A control group disappears: its queues go to the root.
    pub(super) fn drop_group(&mut self, cx: &mut Cx<'_>, cgroup: CgroupId) {
        let n = cgroup.0 as usize;
        let Some(Some(group)) = self.groups.get_mut(n) else { return };
        let shared = core::mem::take(&mut group.asyncs);
        let idle = group.async_idle.take();
        for id in shared.into_iter().flatten().flatten().chain(idle) {
            self.put_queue(cx, id);
        }
        let inside: Vec<QueueId> = self
            .queues
            .iter()
            .filter(|(_, queue)| self.engine[queue.entity].group == cgroup.0)
            .map(|(id, _)| id)
            .collect();
        for id in inside {
            self.move_queue(cx, id, 0);
        }
    }
}

/// The class and level a priority means; one that is not set is derived.
fn class_of(context: &block::scheduler::IoContext) -> (Class, u8) {
    let derived = Ioprio::from_nice(context.nice).level;
    match (context.ioprio.class, context.policy) {
        (IoprioClass::RealTime, _) => (Class::RealTime, context.ioprio.level),
        (IoprioClass::BestEffort, _) => (Class::BestEffort, context.ioprio.level),
        (IoprioClass::Idle, _) => (Class::Idle, 7),
        (IoprioClass::None, CpuPolicy::Normal) => (Class::BestEffort, derived),
        (IoprioClass::None, CpuPolicy::RealTime) => (Class::RealTime, derived),
        (IoprioClass::None, CpuPolicy::Idle) => (Class::Idle, 7),
    }
}

/// The same for what nobody waits for: one that is not set is the default.
fn async_class_of(ioprio: Ioprio) -> (Class, u8) {
    match ioprio.class {
        IoprioClass::RealTime => (Class::RealTime, ioprio.level),
        IoprioClass::BestEffort => (Class::BestEffort, ioprio.level),
        IoprioClass::Idle => (Class::Idle, 7),
        IoprioClass::None => (Class::BestEffort, 4),
    }
}

fn weight_of(level: u8) -> u32 {
    (8 - u32::from(level)) * 10
}
