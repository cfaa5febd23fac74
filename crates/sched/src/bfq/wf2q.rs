//! B-WF2Q+: whose turn it is, in virtual times that advance with service (rules bfq-wf2q).
//!
//! Queues and groups of queues are entities. Each competes within a group, in the tree of its
//! class. What an entity is served moves its own time on by the service divided by its weight, and
//! the time of its tree by the service divided by the sum of the weights in it. An entity may be
//! served when it has had no more than its share, that is, from its start on; of those that may,
//! the one goes first that would have used up its budget first.

use super::Class;
use super::queue::{Queue, QueueId};
use super::tree::{Nodes, Tree, is_after};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::{Arena, Id, Links, List};

/// Handle of an entity.
pub(super) type EntityId = Id<Entity>;

/// Virtual times have so many binary places.
const PLACES: u32 = 22;
const LEAST_WEIGHT: u32 = 1;
const MOST_WEIGHT: u32 = 1000;

/// A queue or a group, as one that competes.
#[derive(Clone, Debug, Default)]
pub(super) struct Entity {
    /// The group in which it competes.
    pub group: u32,
    /// The group it stands for; none for a queue.
    pub stands_for: Option<u32>,
    /// The queue it stands for; none for a group.
    pub queue: Option<QueueId>,
    pub start: u64,
    pub finish: u64,
    /// Sectors it was charged since it was activated.
    pub service: u64,
    /// Sectors it may be charged.
    pub budget: u64,
    pub weight: u32,
    /// What it is without raising.
    pub orig_weight: u32,
    /// What it becomes when that is next allowed.
    pub new_weight: u32,
    /// By how much its weight is raised.
    pub coefficient: u32,
    pub class: Class,
    pub new_class: Class,
    pub prio_changed: bool,
    /// Requests allocated in it.
    pub allocated: u32,
    place: Place,
    /// It counts in the sum of weights.
    pub is_counted: bool,
    /// The weight with which it is among those that have requests.
    has_weight: Option<u32>,
}

impl Entity {
    /// One that competes in a group with a weight and in a class.
    pub fn of(group: u32, stands_for: Option<u32>, weight: u32, class: Class) -> Entity {
        Entity {
            group,
            stands_for,
            weight,
            orig_weight: weight,
            new_weight: weight,
            coefficient: 1,
            class,
            new_class: class,
            prio_changed: stands_for.is_none(),
            ..Entity::default()
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Out,
    Active,
    Idle,
}

/// What happened to a queue while the engine worked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Note {
    /// Its finish time was computed.
    Finish { of: EntityId, service: u64, weight: u32, start: u64, finish: u64, delta: u64 },
    /// The engine refers to it.
    Get(EntityId),
    /// That is over.
    Put(EntityId),
    /// Its weight is among those that have requests.
    Weigh(EntityId),
    /// That is over.
    Unweigh(EntityId),
}

/// Entities of one class in one group.
#[derive(Clone, Default)]
struct ServiceTree {
    active: Tree,
    /// Those that used up their share, by finish.
    idle: Vec<(u64, EntityId)>,
    /// Who counts as the last of them. Of equal ones that is the one that came first; and once it
    /// is gone, it is the one before it, or nobody. (Observed on 7.3.4.)
    last_idle: Option<(u64, EntityId)>,
    vtime: u64,
    weights: u64,
}

/// What competes in one group.
#[derive(Clone)]
struct Level {
    /// The entity of the group itself; none for the root.
    own: Option<EntityId>,
    trees: [ServiceTree; 3],
    in_service: Option<EntityId>,
    next: Option<EntityId>,
    /// When the idle class was last given a chance, in jiffies; never at first.
    idle_class_served: Option<i64>,
}

/// All entities of a device.
#[derive(Clone, Default)]
pub(super) struct Wf2q {
    entities: Arena<Entity>,
    nodes: Nodes,
    /// By number of the group.
    levels: Vec<Option<Level>>,
    /// How many queues with requests have each weight; raised ones do not count.
    by_weight: BTreeMap<u32, u32>,
    notes: Vec<Note>,
    /// Queues in active trees, the one that was put there last first.
    active: List<Queue>,
    active_links: Links<Queue>,
    /// Whether anybody wants to know of finish times.
    pub tells_finish: bool,
    /// Jiffies now.
    pub now: i64,
    /// How long the idle class waits at most, in jiffies.
    pub idle_class_patience: i64,
}

impl Level {
    /// How many entities are active in it.
    fn active(&self) -> u32 {
        self.trees.iter().map(|tree| tree.active.count()).sum()
    }
}

impl Wf2q {
    pub fn insert(&mut self, entity: Entity) -> EntityId {
        self.entities.insert(entity)
    }

    pub fn remove(&mut self, id: EntityId) {
        debug_assert!(self[id].place == Place::Out && !self[id].is_counted);
        self.entities.remove(id);
    }

    /// A group comes into being; `own` is its entity.
    pub fn add_group(&mut self, group: u32, own: Option<EntityId>) {
        let n = group as usize;
        self.levels.resize(self.levels.len().max(n + 1), None);
        self.levels[n] = Some(Level {
            own,
            trees: Default::default(),
            in_service: None,
            next: None,
            idle_class_served: None,
        });
    }

    pub fn take_notes(&mut self) -> Vec<Note> {
        core::mem::take(&mut self.notes)
    }

    /// The room of the notes that were taken, for others.
    pub fn give_back(&mut self, room: Vec<Note>) {
        debug_assert!(room.is_empty() && self.notes.is_empty());
        self.notes = room;
    }

    /// Whether anything is there that [`Wf2q::take_notes`] would give.
    pub fn has_notes(&self) -> bool {
        !self.notes.is_empty()
    }

    /// The entity of the group in which another one competes.
    pub fn parent(&self, id: EntityId) -> Option<EntityId> {
        self.level(self[id].group).own
    }

    /// Groups with something to be served, and the virtual times in them.
    pub fn describe_groups(&self) -> String {
        let mut text = String::new();
        for (number, level) in self.levels.iter().enumerate() {
            let Some(level) = level.as_ref().filter(|level| level.active() > 0) else { continue };
            let times = level.trees.each_ref().map(|tree| tree.vtime);
            text += &format!("; group {number} at {times:?}");
            if let Some(own) = level.own {
                let Entity { weight, start, finish, service, budget, .. } = self[own];
                text += &format!(" is {service} of {budget}, weight {weight}, {start} to {finish}");
            }
        }
        text
    }

    /// Panics unless sums of weights and counts of requests agree with the entities.
    pub fn check(&self) {
        let mut by_weight = BTreeMap::new();
        let mut weights = alloc::vec![[0; 3]; self.levels.len()];
        let mut allocated = alloc::vec![0; self.levels.len()];
        for (_, entity) in self.entities.iter() {
            let n = entity.group as usize;
            allocated[n] += entity.allocated;
            if entity.is_counted {
                weights[n][entity.class as usize] += u64::from(entity.weight);
            }
            if let Some(weight) = entity.has_weight {
                *by_weight.entry(weight).or_insert(0) += 1;
            }
        }
        assert_eq!(self.by_weight, by_weight, "queues with requests by weight");
        for (n, level) in self.levels.iter().enumerate() {
            let Some(level) = level else { continue };
            let known = level.trees.each_ref().map(|tree| tree.weights);
            assert_eq!(known, weights[n], "sums of weights in group {n}");
            for class in Class::ALL {
                let idle = level.trees[class as usize].idle.iter();
                let is_there = |it: &Entity, finish| {
                    (it.group as usize, it.class, it.place, it.finish)
                        == (n, class, Place::Idle, finish)
                };
                let all = idle.map(|(finish, id)| is_there(&self[*id], *finish));
                assert!(all.into_iter().all(|is_there| is_there), "idle in group {n}");
            }
            let requests = level.own.map_or(allocated[n], |own| self[own].allocated);
            assert_eq!(requests, allocated[n], "requests of group {n}");
        }
    }

    /// The queue's entity and those of its groups, up to the root.
    pub fn lineage(&self, id: EntityId) -> impl Iterator<Item = EntityId> + '_ {
        core::iter::successors(Some(id), |id| self.parent(*id))
    }

    /// A queue and its groups have so many more requests, or fewer.
    pub fn add_allocated(&mut self, id: EntityId, requests: i32) {
        let mut at = Some(id);
        while let Some(id) = at {
            self[id].allocated = self[id].allocated.wrapping_add_signed(requests);
            at = self.parent(id);
        }
    }

    /// Queues in active trees, the one that was put there last first.
    pub fn active_queues(&self) -> impl Iterator<Item = QueueId> + '_ {
        self.active.iter(&self.active_links)
    }

    pub fn is_active(&self, id: EntityId) -> bool {
        self[id].place == Place::Active
    }

    pub fn is_in_service(&self, id: EntityId) -> bool {
        self.level(self[id].group).in_service == Some(id)
    }

    /// Rule bfq-wf2q-10: another one than the queue in service would be chosen.
    pub fn may_preempt(&self) -> bool {
        let root = self.level(0);
        root.next != root.in_service
    }

    /// The sum of weights in the tree of an entity of a class.
    pub fn weights(&self, id: EntityId, class: Class) -> u64 {
        self.level(self[id].group).trees[class as usize].weights
    }

    /// Rules bfq-wf2q-1 to bfq-wf2q-3: a queue has requests, or other ones than before, and so have
    /// the groups it is in. `back`: it may have been late by little; `expires`: it was in service
    /// till now.
    pub fn activate(&mut self, id: EntityId, back: bool, expires: bool) {
        // Observed on 6.12.117: the groups of a queue that was late by little are late by it, too.
        let mut at = Some(id);
        while let Some(id) = at {
            match self.is_in_service(id) || self.is_active(id) {
                true => self.requeue(id),
                false => self.activate_one(id, back),
            }
            let may_change = self.update_next(self[id].group, Some(id), expires);
            if !may_change && !expires {
                return;
            }
            at = self.parent(id);
        }
    }

    fn activate_one(&mut self, id: EntityId, back: bool) {
        let vtime = self.tree(id).vtime;
        let finish = self[id].finish;
        let is_late = back && is_after(vtime, finish);
        let least = if is_late { finish } else { vtime };
        if self[id].place == Place::Idle {
            self.leave_idle(id);
            self[id].start = if is_after(least, finish) { least } else { finish };
        } else {
            self[id].start = least;
            let weight = u64::from(self[id].weight);
            self.tree_mut(id).weights += weight;
            self[id].is_counted = true;
            if self[id].stands_for.is_none() {
                self.notes.push(Note::Get(id));
            }
        }
        self.enqueue(id, is_late);
    }

    /// Rule bfq-wf2q-2.
    fn requeue(&mut self, id: EntityId) {
        if self.is_in_service(id) {
            let service = self[id].service;
            self.set_finish(id, service);
            self[id].start = self[id].finish;
        }
        if self.is_active(id) {
            self.leave_active(id);
        }
        self.enqueue(id, false);
    }

    fn enqueue(&mut self, id: EntityId, is_late: bool) {
        self.apply_changes(id, true);
        let budget = self[id].budget;
        self.set_finish(id, budget);
        let vtime = self.tree(id).vtime;
        if is_late && is_after(vtime, self[id].finish) {
            let by = vtime.wrapping_sub(self[id].finish);
            let by = by / u64::from(self[id].coefficient.max(1));
            let entity = &mut self[id];
            entity.start = entity.start.wrapping_add(by);
            entity.finish = entity.finish.wrapping_add(by);
        }
        let Entity { group, class, start, finish, .. } = self[id];
        self[id].place = Place::Active;
        let level = self.levels[group as usize].as_mut().expect("a group that is there");
        level.trees[class as usize].active.insert(&mut self.nodes, id, start, finish);
        if let Some(queue) = self.entities[id].queue {
            self.active.push_front(&mut self.active_links, queue);
        }
    }

    /// Rule bfq-wf2q-4: an entity has nothing to be served. `keeps`: it stays near while it is
    /// ahead.
    pub fn deactivate(&mut self, id: EntityId, keeps: bool, expires: bool) {
        let (mut id, mut keeps) = (id, keeps);
        loop {
            let group = self[id].group;
            if !self.deactivate_one(id, keeps) {
                return;
            }
            if self.level(group).next == Some(id) {
                self.update_next(group, None, expires);
            }
            let level = self.level(group);
            let goes_on = level.next.is_some() || level.in_service.is_some();
            let Some(above) = level.own else { return };
            if goes_on {
                return self.requeue_upwards(above, expires);
            }
            (id, keeps) = (above, true);
        }
    }

    fn requeue_upwards(&mut self, mut id: EntityId, expires: bool) {
        loop {
            debug_assert!(self.is_in_service(id) || self.is_active(id));
            self.requeue(id);
            let may_change = self.update_next(self[id].group, Some(id), expires);
            if !may_change && !expires {
                return;
            }
            let Some(above) = self.parent(id) else { return };
            id = above;
        }
    }

    fn deactivate_one(&mut self, id: EntityId, keeps: bool) -> bool {
        if !self[id].is_counted {
            return false;
        }
        let is_in_service = self.is_in_service(id);
        let service = self[id].service;
        self.set_finish(id, service);
        if is_in_service {
            let group = self[id].group;
            self.level_mut(group).in_service = None;
        } else {
            self[id].service = 0;
        }
        match self[id].place {
            Place::Active => self.leave_active(id),
            Place::Idle if !is_in_service => self.leave_idle(id),
            _ => {}
        }
        let vtime = self.tree(id).vtime;
        if keeps && is_after(self[id].finish, vtime) {
            self.enter_idle(id);
        } else {
            self.forget(id, is_in_service);
        }
        true
    }

    /// It does not count any more; a reference remains while it is in service.
    fn forget(&mut self, id: EntityId, is_in_service: bool) {
        self[id].is_counted = false;
        let weight = u64::from(self[id].weight);
        self.tree_mut(id).weights -= weight;
        if self[id].stands_for.is_none() && !is_in_service {
            self.notes.push(Note::Put(id));
        }
    }

    /// Rule bfq-wf2q-5: a queue is charged so many sectors.
    pub fn served(&mut self, id: EntityId, sectors: u64) {
        let mut at = Some(id);
        while let Some(id) = at {
            self[id].service += sectors;
            let tree = self.tree_mut(id);
            tree.vtime = tree.vtime.wrapping_add((sectors << PLACES) / tree.weights);
            self.forget_idle(self[id].group, self[id].class);
            at = self.parent(id);
        }
    }

    fn forget_idle(&mut self, group: u32, class: Class) {
        let level = self.levels[group as usize].as_mut().expect("a group that is there");
        let tree = &mut level.trees[class as usize];
        let Some(&(first, id)) = tree.idle.first() else { return };
        if let Some((last, _)) = tree.last_idle
            && tree.active.is_empty()
            && !is_after(last, tree.vtime)
        {
            tree.vtime = last;
        }
        if !is_after(first, tree.vtime) {
            self.leave_idle(id);
            self.forget(id, false);
        }
    }

    /// Rule bfq-wf2q-6: a weight or class that was changed comes into force.
    pub fn apply_changes(&mut self, id: EntityId, may_change_class: bool) {
        if !self[id].prio_changed {
            return;
        }
        let weight = u64::from(self[id].weight);
        let old = (self[id].group, self[id].class);
        self.tree_of(old).weights -= weight;
        let entity = &mut self[id];
        if entity.new_weight != entity.orig_weight {
            entity.new_weight = entity.new_weight.clamp(LEAST_WEIGHT, MOST_WEIGHT);
            entity.orig_weight = entity.new_weight;
        }
        if may_change_class {
            entity.class = entity.new_class;
        }
        entity.prio_changed = entity.class != entity.new_class;
        let (was, now) = (entity.weight, entity.orig_weight * entity.coefficient.max(1));
        let is_queue = entity.stands_for.is_none();
        if is_queue && was != now {
            self.leave_weights(id);
        }
        self[id].weight = now;
        if is_queue && was != now && self[id].coefficient <= 1 {
            self.join_weights(id);
        }
        self.tree_mut(id).weights += u64::from(now);
        if old.1 != self[id].class {
            self[id].start = self.tree(id).vtime;
        }
    }

    /// A queue that is not raised has requests.
    pub fn join_weights(&mut self, id: EntityId) {
        if self[id].has_weight.is_none() {
            let weight = self[id].weight;
            self[id].has_weight = Some(weight);
            *self.by_weight.entry(weight).or_default() += 1;
            self.notes.push(Note::Weigh(id));
        }
    }

    /// A queue has none any more, or is raised.
    pub fn leave_weights(&mut self, id: EntityId) {
        if let Some(weight) = self[id].has_weight.take() {
            let count = self.by_weight.get_mut(&weight).expect("it is among them");
            *count -= 1;
            if *count == 0 {
                self.by_weight.remove(&weight);
            }
            self.notes.push(Note::Unweigh(id));
        }
    }

    /// Whether it is among those whose requests count.
    pub fn has_weight(&self, id: EntityId) -> bool {
        self[id].has_weight.is_some()
    }

    /// Queues with requests differ in weight; with `spares_lightest`, and this one's is not the
    /// least.
    pub fn weights_vary(&self, id: EntityId, spares_lightest: bool) -> bool {
        if self.by_weight.len() <= 1 {
            return false;
        }
        let least = self.by_weight.keys().next();
        let is_least = self[id].has_weight.as_ref() == least;
        !(spares_lightest && is_least)
    }

    /// Rule bfq-wf2q-7.
    fn look_up(&mut self, group: u32, expires: bool) -> Option<EntityId> {
        let (now, patience) = (self.now, self.idle_class_patience);
        let level = self.level_mut(group);
        let mut class = 0;
        if level.idle_class_served.is_none_or(|at| at + patience < now) {
            if !level.trees[Class::Idle as usize].active.is_empty() {
                class = Class::Idle as usize;
            }
            level.idle_class_served = Some(now);
        }
        (class..3).find_map(|class| self.first_of_class(group, class, expires))
    }

    fn first_of_class(&mut self, group: u32, class: usize, expires: bool) -> Option<EntityId> {
        let level = self.level(group);
        let tree = &level.trees[class];
        let earliest = tree.active.earliest_start(&self.nodes)?;
        let is_ahead = is_after(earliest, tree.vtime);
        let vtime = if is_ahead { earliest } else { tree.vtime };
        if level.in_service.is_none() || expires {
            let class = Class::ALL[class];
            self.tree_of((group, class)).vtime = vtime;
            if is_ahead {
                self.forget_idle(group, class);
            }
        }
        self.level(group).trees[class].active.first_eligible(&self.nodes, vtime)
    }

    /// Rule bfq-wf2q-8: who is next in a group, after `new` came or changed; whether that may
    /// matter to the group above.
    fn update_next(&mut self, group: u32, new: Option<EntityId>, expires: bool) -> bool {
        let current = self.level(group).next;
        let mut next = current;
        let mut looks_up = true;
        if let Some(new) = new.filter(|new| Some(*new) != current) {
            looks_up = false;
            if let Some(current) = current {
                let tree = self.tree(current);
                let (n, c) = (&self[new], &self[current]);
                let is_same_class = n.class == c.class;
                let goes_first = !is_after(n.start, tree.vtime) && is_after(c.finish, n.finish);
                looks_up = !(is_same_class && goes_first);
            }
            if !looks_up {
                next = Some(new);
            }
        }
        if looks_up {
            next = self.look_up(group, expires);
        }
        self.level_mut(group).next = next;
        let Some(next) = next else { return false };
        let may_change = current.is_none();
        let budget = self[next].budget;
        let Some(own) = self.level(group).own else { return may_change };
        let was = core::mem::replace(&mut self[own].budget, budget);
        may_change || was > budget
    }

    /// Rule bfq-wf2q-9: the queue that is next comes into service.
    pub fn serve_next(&mut self) -> Option<EntityId> {
        let mut group = 0;
        let queue = loop {
            let next = self.level(group).next?;
            self.level_mut(group).in_service = Some(next);
            let stands_for = self[next].stands_for;
            let is_last = stands_for.is_none_or(|inner| self.level(inner).active() == 1);
            if is_last && self.is_active(next) {
                self.leave_active(next);
            }
            match stands_for {
                Some(inner) => group = inner,
                None => break next,
            }
        };
        let mut at = Some(queue);
        while let Some(id) = at {
            if !self.update_next(self[id].group, None, false) {
                break;
            }
            at = self.parent(id);
        }
        Some(queue)
    }

    /// Nobody is in service any more.
    pub fn end_service(&mut self, queue: EntityId) {
        let mut at = Some(queue);
        while let Some(id) = at {
            let group = self[id].group;
            self.level_mut(group).in_service = None;
            at = self.parent(id);
        }
        if !self[queue].is_counted {
            self.notes.push(Note::Put(queue));
        }
    }

    /// The entity of a group itself; none of the root.
    pub fn own_entity(&self, group: u32) -> Option<EntityId> {
        self.level(group).own
    }

    /// The finish time after so much service from the start on.
    fn set_finish(&mut self, id: EntityId, service: u64) {
        let entity = &mut self[id];
        let delta = (service << PLACES) / u64::from(entity.weight);
        entity.finish = entity.start.wrapping_add(delta);
        let Entity { weight, start, finish, stands_for, .. } = *entity;
        if stands_for.is_none() && self.tells_finish {
            self.notes.push(Note::Finish { of: id, service, weight, start, finish, delta });
        }
    }

    fn leave_active(&mut self, id: EntityId) {
        let Entity { group, class, .. } = self[id];
        self[id].place = Place::Out;
        let level = self.levels[group as usize].as_mut().expect("a group that is there");
        level.trees[class as usize].active.remove(&mut self.nodes, id);
        if let Some(queue) = self.entities[id].queue {
            self.active.remove(&mut self.active_links, queue);
        }
    }

    fn enter_idle(&mut self, id: EntityId) {
        let finish = self[id].finish;
        self[id].place = Place::Idle;
        let tree = self.tree_mut(id);
        let at = tree.idle.partition_point(|it| !is_after(it.0, finish));
        tree.idle.insert(at, (finish, id));
        if tree.last_idle.is_none_or(|last| is_after(finish, last.0)) {
            tree.last_idle = Some((finish, id));
        }
    }

    fn leave_idle(&mut self, id: EntityId) {
        self[id].place = Place::Out;
        let tree = self.tree_mut(id);
        let at = tree.idle.iter().position(|it| it.1 == id).expect("it is idle");
        tree.idle.remove(at);
        if tree.last_idle.is_some_and(|last| last.1 == id) {
            tree.last_idle = at.checked_sub(1).map(|before| tree.idle[before]);
        }
    }

    fn level(&self, group: u32) -> &Level {
        self.levels[group as usize].as_ref().expect("a group that is there")
    }

    fn level_mut(&mut self, group: u32) -> &mut Level {
        self.levels[group as usize].as_mut().expect("a group that is there")
    }

    fn tree(&self, id: EntityId) -> &ServiceTree {
        &self.level(self[id].group).trees[self[id].class as usize]
    }

    fn tree_mut(&mut self, id: EntityId) -> &mut ServiceTree {
        self.tree_of((self[id].group, self[id].class))
    }

    fn tree_of(&mut self, (group, class): (u32, Class)) -> &mut ServiceTree {
        &mut self.level_mut(group).trees[class as usize]
    }
}

impl core::ops::Index<EntityId> for Wf2q {
    type Output = Entity;

    fn index(&self, id: EntityId) -> &Entity {
        &self.entities[id]
    }
}

impl core::ops::IndexMut<EntityId> for Wf2q {
    fn index_mut(&mut self, id: EntityId) -> &mut Entity {
        &mut self.entities[id]
    }
}
