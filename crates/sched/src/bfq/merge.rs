//! Queues that work as one: processes that read close to each other share a queue until they part
//! (rules bfq-merge).

use super::queue::{Injection, Queue, QueueId};
use super::wf2q::Entity;
use super::{Bfq, LONG_AGO};
use crate::sector_tree::Found;
use crate::think::ThinkTime;
use base::Sector;
use block::{Cx, IoContextId};

/// So many sectors away is close.
const CLOSE: u64 = 8_192;
/// Queues that come into being so soon behind each other may belong together, in milliseconds.
const STABLE_CREATION: u64 = 600;
/// And so soon they do, in milliseconds.
const STABLE_BURST: u64 = 180;

/// What a process has of its own while it shares a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Saved {
    is_there: bool,
    weight: u32,
    think: ThinkTime,
    has_short_think: bool,
    io_bound: bool,
    io_start: i64,
    idle_total: u64,
    pub in_large_burst: bool,
    pub was_in_burst_list: bool,
    coefficient: u32,
    service_from_wr: u64,
    last_wr_start_finish: i64,
    wr_start_at_switch_to_srt: i64,
    wr_cur_max_time: i64,
    inject: Option<Injection>,
}

impl Bfq {
    /// Where the queue goes on may have changed.
    pub(super) fn update_place(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        self.leave_place(id);
        let queue = &self.queues[id];
        let entity = queue.entity;
        let is_out =
            self.nonrot_with_queueing || self.is_idle_class(entity) || self.is_too_late(id);
        let Some(next) = queue.next.filter(|_| !is_out) else { return };
        let (group, sector) = (self.engine[entity].group, cx.request(next).sector);
        if let Found::In(gap) = self.look_up_place(cx, group, sector) {
            self.group_mut(group).places.insert(id, sector, &gap);
            self.queues[id].has_place = true;
        }
    }

    pub(super) fn leave_place(&mut self, id: QueueId) {
        let queue = &mut self.queues[id];
        if core::mem::take(&mut queue.has_place) {
            let group = self.engine[queue.entity].group;
            self.group_mut(group).places.remove(id);
        }
    }

    /// It goes on elsewhere, and stays where it stands.
    pub(super) fn shift_place(&mut self, cx: &Cx<'_>, id: QueueId) {
        let queue = &self.queues[id];
        if let Some(next) = queue.next.filter(|_| queue.has_place) {
            let (group, sector) = (self.engine[queue.entity].group, cx.request(next).sector);
            self.group_mut(group).places.set_value(id, sector);
        }
    }

    fn look_up_place(&self, cx: &mut Cx<'_>, group: u32, sector: Sector) -> Found<Queue> {
        let found = self.group(group).places.search(|_, other| sector.cmp(&other));
        if cx.wants_messages() {
            let pid = match &found {
                Found::At(other) => self.queues[*other].pid,
                Found::In(_) => Some(block::ContextId(0)),
            };
            let (sector, pid) = (sector.0, PidOf(pid));
            self.message(cx, format_args!("rq_pos_tree_lookup {sector}: returning {pid}"));
        }
        found
    }

    /// It has been served for too long to be merged.
    fn is_too_late(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let time = i64::from(self.hz.get()) / 10;
        queue.service_from_backlogged > 0 && queue.first_io_time + time < self.jiffies
    }

    /// The queue with which this one works at a sector.
    pub(super) fn cooperator(
        &mut self,
        cx: &mut Cx<'_>,
        id: QueueId,
        sector: Sector,
        owner: IoContextId,
    ) -> Option<QueueId> {
        let is_late = self.nonrot_with_queueing || self.is_too_late(id);
        if self.rules.late_queues_part && is_late {
            return None;
        }
        if let Some(target) = self.queues[id].merges_into {
            return Some(if self.rules.follows_chains {
                self.end_of_chain(target)
            } else {
                target
            });
        }
        if let Some(stable) = self.stable_candidate(id, owner) {
            return self.merge_stably(cx, id, stable, owner);
        }
        if is_late || self.busy_queues() == 1 {
            return None;
        }
        // Who shares with nobody looks for others only to say that it has.
        if !self.may_share(id) && !cx.wants_messages() {
            return None;
        }
        let group = self.engine[self.queues[id].entity].group;
        if let Some(served) = self.in_service.filter(|served| *served != id) {
            let is_close = sector.0.abs_diff(self.in_serv_last_pos.0) <= CLOSE;
            let is_near = self.engine[self.queues[served].entity].group == group;
            if is_close && is_near && self.may_cooperate(id, served) {
                let target = self.plan_merge(cx, id, served);
                if target.is_some() {
                    return target;
                }
            }
        }
        let found = self.close_queue(cx, group, sector).filter(|found| *found != id)?;
        if self.may_cooperate(id, found) { self.plan_merge(cx, id, found) } else { None }
    }

    fn end_of_chain(&self, mut id: QueueId) -> QueueId {
        while let Some(next) = self.queues[id].merges_into {
            id = next;
        }
        id
    }

    /// Exactly there; or where the search ended; or on its other side.
    fn close_queue(&self, cx: &mut Cx<'_>, group: u32, sector: Sector) -> Option<QueueId> {
        let places = &self.group(group).places;
        if places.is_empty() {
            return None;
        }
        match self.look_up_place(cx, group, sector) {
            Found::At(other) => Some(other),
            Found::In(gap) => {
                let is_close = |at: Sector| sector.0.abs_diff(at.0) <= CLOSE;
                gap.neighbours().find(|other| is_close(places.value(*other)))
            }
        }
    }

    fn may_cooperate(&self, id: QueueId, other: QueueId) -> bool {
        let class = |id: QueueId| self.engine[self.queues[id].entity].class;
        let is_alike = class(id) == class(other);
        !self.is_too_late(other) && is_alike && self.may_share(id) && self.may_share(other)
    }

    /// It may share a queue with others like it.
    fn may_share(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        queue.sync && !queue.is_seeky() && !self.is_idle_class(queue.entity)
    }

    /// The processes of one queue shall use the other one from their next request on.
    fn plan_merge(&mut self, cx: &mut Cx<'_>, id: QueueId, with: QueueId) -> Option<QueueId> {
        if self.process_refs(with) == 0 {
            return None;
        }
        let mut target = with;
        while let Some(next) = self.queues[target].merges_into {
            if next == id {
                return None;
            }
            target = next;
        }
        let (own, others) = (self.process_refs(id), self.process_refs(target));
        let group = |id: QueueId| self.engine[self.queues[id].entity].group;
        if own == 0 || others == 0 || group(id) != group(target) {
            return None;
        }
        let name = PidOf(self.queues[target].pid);
        self.say(cx, id, format_args!("scheduling merge with queue {name}"));
        self.queues[id].merges_into = Some(target);
        self.queues[target].refs += own;
        Some(target)
    }

    /// A process goes on in `target`, and takes part in each merge on the way there: it has a
    /// reference to each queue of the chain.
    pub(super) fn merge_along(
        &mut self,
        cx: &mut Cx<'_>,
        owner: IoContextId,
        id: QueueId,
        target: QueueId,
    ) {
        let mut at = id;
        while at != target {
            let planned = self.queues[at].merges_into.filter(|_| self.rules.follows_chains);
            let next = planned.unwrap_or(target);
            self.merge(cx, owner, at, next);
            at = next;
        }
    }

    /// The merge is executed for a process.
    fn merge(&mut self, cx: &mut Cx<'_>, owner: IoContextId, id: QueueId, into: QueueId) {
        let name = PidOf(self.queues[into].pid);
        self.say(cx, id, format_args!("merging with queue {name}"));
        self.save(id);
        self.save(into);
        if self.queues[id].io_bound {
            self.queues[into].io_bound = true;
        }
        self.queues[id].io_bound = false;
        if self.queues[into].wakers.waker.is_none() {
            let waker = self.queues[id].wakers.waker.filter(|waker| *waker != into);
            self.set_waker(into, waker);
        }
        self.move_raising(cx, id, into);
        // Observed on 6.12.117 and 7.3.4: it waits no more for the queue that it has now.
        if self.contexts.get(owner).stable == Some(into) {
            self.contexts.get(owner).stable = None;
            self.put_stable(cx, into);
        }
        let group = self.engine[self.queues[id].entity].group;
        let last = &mut self.group_mut(group).last_created;
        if *last == Some(id) {
            // Observed on 6.12.117: who comes next is compared with what it became.
            *last = Some(into);
        }
        self.contexts.get(owner).sync = Some(into);
        self.queues[into].coop = true;
        self.queues[into].owner = None;
        if self.rules.messages.names_shared {
            self.queues[into].pid = None;
        }
        self.queues[id].owner = None;
        self.release_process(cx, id);
    }

    fn move_raising(&mut self, cx: &mut Cx<'_>, id: QueueId, into: QueueId) {
        if self.is_raised(id) && !self.is_raised(into) {
            let coefficient = self.coefficient(id);
            self.set_coefficient(into, coefficient);
            let from = &self.queues[id];
            let (max, last, since) =
                (from.wr_cur_max_time, from.last_wr_start_finish, from.wr_start_at_switch_to_srt);
            let to = &mut self.queues[into];
            to.wr_cur_max_time = max;
            to.last_wr_start_finish = last;
            to.wr_start_at_switch_to_srt = since;
            self.wr_busy += u32::from(to.is_busy);
            let entity = to.entity;
            self.engine[entity].prio_changed = true;
        }
        if self.is_raised(id) {
            self.set_coefficient(id, 1);
            let queue = &self.queues[id];
            self.wr_busy -= u32::from(queue.is_busy);
            let entity = queue.entity;
            self.engine[entity].prio_changed = true;
        }
        let raised = self.wr_busy;
        self.say(cx, into, format_args!("merge_bfqqs: wr_busy {raised}"));
    }

    /// Keeps what a queue knows of its process.
    fn save(&mut self, id: QueueId) {
        let Some(owner) = self.queues[id].owner else { return };
        let queue = &self.queues[id];
        let entity: &Entity = &self.engine[queue.entity];
        let mut saved = Saved {
            is_there: true,
            weight: entity.orig_weight,
            think: queue.think,
            has_short_think: queue.has_short_think,
            io_bound: queue.io_bound,
            io_start: queue.io_start,
            idle_total: queue.idle_total,
            in_large_burst: queue.in_large_burst,
            was_in_burst_list: queue.in_burst_list,
            coefficient: entity.coefficient,
            service_from_wr: queue.service_from_wr,
            last_wr_start_finish: queue.last_wr_start_finish,
            wr_start_at_switch_to_srt: queue.wr_start_at_switch_to_srt,
            wr_cur_max_time: queue.wr_cur_max_time,
            inject: Some(queue.inject),
        };
        let is_new = queue.just_created && !queue.in_large_burst && self.settings.low_latency;
        if is_new {
            saved.coefficient = super::raise::INTERACTIVE;
            saved.wr_start_at_switch_to_srt = LONG_AGO;
            saved.wr_cur_max_time = self.raising_time();
            saved.last_wr_start_finish = self.jiffies;
        }
        self.contexts.get(owner).saved = saved;
    }

    /// A process has a queue of its own again.
    pub(super) fn restore(&mut self, owner: IoContextId, id: QueueId) {
        let saved = self.contexts.get(owner).saved.clone();
        if !saved.is_there {
            return;
        }
        let low_latency = self.settings.low_latency;
        self.restore_burst(id, saved.was_in_burst_list, saved.in_large_burst);
        let queue = &mut self.queues[id];
        queue.has_short_think = saved.has_short_think;
        queue.io_bound = saved.io_bound;
        queue.io_start = saved.io_start;
        queue.idle_total = saved.idle_total;
        queue.think = saved.think;
        if let Some(inject) = saved.inject.filter(|_| self.rules.saves_injection) {
            queue.inject = inject;
        }
        queue.service_from_wr = saved.service_from_wr;
        queue.wr_start_at_switch_to_srt = saved.wr_start_at_switch_to_srt;
        queue.last_wr_start_finish = saved.last_wr_start_finish;
        queue.wr_cur_max_time = saved.wr_cur_max_time;
        let entity = queue.entity;
        let (was_raised, is_busy) = (self.is_raised(id), self.queues[id].is_busy);
        let comes_back = low_latency || self.rules.restores_raising_always;
        let coefficient = if comes_back { saved.coefficient.max(1) } else { 1 };
        self.set_coefficient(id, coefficient);
        if self.rules.saves_weight {
            self.engine[entity].new_weight = saved.weight;
        }
        self.check_restored_raising(id);
        self.engine[entity].prio_changed = true;
        let is_raised = self.is_raised(id);
        if is_busy && was_raised != is_raised {
            if is_raised { self.wr_busy += 1 } else { self.wr_busy -= 1 }
        }
    }

    fn check_restored_raising(&mut self, id: QueueId) {
        let queue = &self.queues[id];
        let is_over = queue.last_wr_start_finish + queue.wr_cur_max_time < self.jiffies;
        if !self.is_raised(id) || !(queue.in_large_burst || is_over) {
            return;
        }
        let since = queue.wr_start_at_switch_to_srt;
        let may_fall_back = self.is_raised_for_real_time(id)
            && !queue.in_large_burst
            && since + self.raising_time() >= self.jiffies;
        if may_fall_back {
            self.raise_interactively(id);
            self.queues[id].last_wr_start_finish = since;
        } else {
            self.set_coefficient(id, 1);
        }
    }

    /// A new queue may belong to the one that was created before it.
    pub(super) fn note_created(
        &mut self,
        cx: &mut Cx<'_>,
        id: QueueId,
        owner: IoContextId,
    ) -> QueueId {
        let group = self.engine[self.queues[id].entity].group;
        let last = self.group(group).last_created;
        let Some(last) = last.filter(|last| self.queues.get(*last).is_some()) else {
            self.group_mut(group).last_created = Some(id);
            return id;
        };
        let (new, old) = (&self.queues[id], &self.queues[last]);
        let kind = |queue: &Queue| {
            let entity = &self.engine[queue.entity];
            // The older one may have gone into another group meanwhile.
            (queue.level, entity.new_class, entity.group)
        };
        let is_other = old.creation_time + self.ms(STABLE_CREATION) < new.creation_time
            || kind(new) != kind(old);
        if is_other {
            self.group_mut(group).last_created = Some(id);
        } else if old.creation_time + self.ms(STABLE_BURST) >= new.creation_time {
            if self.nonrot_with_queueing {
                return self.merge_new(cx, id, last, owner);
            }
            self.queues[last].refs += 1;
            self.queues[last].stable_refs += 1;
            if let Some(before) = self.contexts.get(owner).stable.replace(last) {
                self.put_stable(cx, before);
            }
        }
        id
    }

    fn merge_new(
        &mut self,
        cx: &mut Cx<'_>,
        id: QueueId,
        last: QueueId,
        owner: IoContextId,
    ) -> QueueId {
        if self.process_refs(last) == 0 {
            return id;
        }
        let Some(target) = self.plan_merge(cx, id, last) else { return id };
        self.contexts.get(owner).is_stably_merged = true;
        if let Some(other) = self.queues[target].owner {
            self.contexts.get(other).is_stably_merged = true;
        }
        self.queues[id].owner = Some(owner);
        self.merge(cx, owner, id, target);
        target
    }

    /// A context does not wait any more for a queue to prove stable.
    pub(super) fn put_stable(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        self.queues[id].stable_refs -= 1;
        self.put_queue(cx, id);
    }

    fn stable_candidate(&mut self, id: QueueId, owner: IoContextId) -> Option<QueueId> {
        let queue = &self.queues[id];
        let time = self.ms(STABLE_CREATION);
        let is_ripe = self.rules.merges_stably
            && !self.nonrot_with_queueing
            && queue.sync
            && !queue.just_created
            // One that a split made was split when it was made.
            && queue.creation_time + time < self.jiffies;
        if !is_ripe {
            return None;
        }
        self.contexts.get(owner).stable.take()
    }

    fn merge_stably(
        &mut self,
        cx: &mut Cx<'_>,
        id: QueueId,
        stable: QueueId,
        owner: IoContextId,
    ) -> Option<QueueId> {
        let refuses =
            self.idling_boosts(id) || self.process_refs(id) == 0 || self.process_refs(stable) == 0;
        let target = if refuses || stable == id { None } else { self.plan_merge(cx, id, stable) };
        self.put_stable(cx, stable);
        let target = target?;
        self.contexts.get(owner).is_stably_merged = true;
        if let Some(other) = self.queues[target].owner {
            self.contexts.get(other).is_stably_merged = true;
        }
        Some(target)
    }
}

/// A queue's number in messages.
pub(super) struct PidOf(pub Option<block::ContextId>);

impl core::fmt::Display for PidOf {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Some(pid) => write!(f, "{}", pid.0),
            None => f.write_str("-1"),
        }
    }
}
