//! Rules bfq-wf2q: whose turn it is.

use super::tree::Tree;
use super::{IDLE, NaiveBfq, is_after};

#[derive(Clone, Default)]
pub(super) struct Entity {
    pub level: u32,
    pub inner: Option<u32>,
    pub start: u64,
    pub finish: u64,
    pub service: i64,
    pub budget: i64,
    pub weight: i64,
    pub orig: i64,
    pub new_weight: i64,
    pub raised: i64,
    pub class: usize,
    pub new_class: usize,
    pub changed: bool,
    pub allocated: i64,
    pub on_st: bool,
    /// Its weight among those of queues with requests.
    pub counted: Option<i64>,
}

#[derive(Clone, Default)]
pub(super) struct ServiceTree {
    pub active: Tree,
    /// In the order in which they came.
    pub idle: Vec<usize>,
    pub last_idle: Option<usize>,
    pub vtime: u64,
    pub wsum: i64,
}

#[derive(Clone, Default)]
pub(super) struct Level {
    pub own: Option<usize>,
    pub trees: [ServiceTree; 3],
    pub in_service: Option<usize>,
    pub next: Option<usize>,
    pub idle_served: Option<i64>,
}

fn delta(service: i64, weight: i64) -> u64 {
    ((service as u64) << 22) / weight as u64
}

impl NaiveBfq {
    fn st(&mut self, e: usize) -> &mut ServiceTree {
        let (level, class) = (self.entities[e].level, self.entities[e].class);
        &mut self.levels.get_mut(&level).expect("a level").trees[class]
    }

    fn level_of(&mut self, e: usize) -> &mut Level {
        let level = self.entities[e].level;
        self.levels.get_mut(&level).expect("a level")
    }

    pub(super) fn parent(&self, e: usize) -> Option<usize> {
        self.levels[&self.entities[e].level].own
    }

    pub(super) fn family(&self, e: usize) -> Vec<usize> {
        std::iter::successors(Some(e), |e| self.parent(*e)).collect()
    }

    fn serving(&self, e: usize) -> bool {
        self.levels[&self.entities[e].level].in_service == Some(e)
    }

    pub(super) fn is_active(&self, e: usize) -> bool {
        let level = &self.levels[&self.entities[e].level];
        level.trees.iter().any(|tree| tree.active.contains(e))
    }

    fn finish_after(&mut self, e: usize, service: i64) {
        let entity = &mut self.entities[e];
        entity.finish = entity.start.wrapping_add(delta(service, entity.weight));
    }

    /// Rule bfq-wf2q-1.
    fn activate(&mut self, e: usize, nb: bool) {
        let vtime = self.st(e).vtime;
        let finish = self.entities[e].finish;
        let backshift = nb && is_after(vtime, finish);
        let min_start = if backshift { finish } else { vtime };
        if self.st(e).idle.contains(&e) {
            self.leave_idle(e);
            let later = if is_after(min_start, finish) { min_start } else { finish };
            self.entities[e].start = later;
        } else {
            self.entities[e].start = min_start;
            self.st(e).wsum += self.entities[e].weight;
            self.entities[e].on_st = true;
        }
        self.enqueue(e, backshift);
    }

    fn enqueue(&mut self, e: usize, backshift: bool) {
        self.apply(e, true);
        self.finish_after(e, self.entities[e].budget);
        let vtime = self.st(e).vtime;
        if backshift && is_after(vtime, self.entities[e].finish) {
            let entity = &mut self.entities[e];
            let mut d = vtime.wrapping_sub(entity.finish);
            if entity.inner.is_none() {
                d /= entity.raised as u64;
            }
            entity.start = entity.start.wrapping_add(d);
            entity.finish = entity.finish.wrapping_add(d);
        }
        let (start, finish) = (self.entities[e].start, self.entities[e].finish);
        self.st(e).active.insert(e, start, finish);
        if self.entities[e].inner.is_none() {
            self.active_list.insert(0, e);
        }
    }

    fn leave_active(&mut self, e: usize) {
        if self.is_active(e) {
            self.st(e).active.remove(e);
            self.active_list.retain(|it| *it != e);
        }
    }

    /// Rule bfq-wf2q-2.
    fn requeue(&mut self, e: usize) {
        if self.serving(e) {
            self.finish_after(e, self.entities[e].service);
            self.entities[e].start = self.entities[e].finish;
        }
        self.leave_active(e);
        self.enqueue(e, false);
    }

    /// Rule bfq-wf2q-3.
    pub(super) fn activate_up(&mut self, e: usize, nb: bool, expiration: bool) {
        // Observed: the groups of a queue that was late by little are late by it, too.
        let mut at = Some(e);
        while let Some(e) = at {
            if self.serving(e) || self.is_active(e) {
                self.requeue(e);
            } else {
                self.activate(e, nb);
            }
            if !self.update_next(self.entities[e].level, Some(e), expiration) && !expiration {
                return;
            }
            at = self.parent(e);
        }
    }

    /// Rule bfq-wf2q-4.
    pub(super) fn deactivate_up(&mut self, e: usize, keep_idle: bool, expiration: bool) {
        let (mut e, mut keep_idle) = (e, keep_idle);
        loop {
            if !self.entities[e].on_st {
                return;
            }
            self.deactivate(e, keep_idle);
            let level = self.entities[e].level;
            if self.levels[&level].next == Some(e) {
                self.update_next(level, None, expiration);
            }
            let Some(above) = self.levels[&level].own else { return };
            if self.levels[&level].next.is_some() || self.levels[&level].in_service.is_some() {
                return self.activate_up(above, false, expiration);
            }
            (e, keep_idle) = (above, true);
        }
    }

    fn deactivate(&mut self, e: usize, keep_idle: bool) {
        self.finish_after(e, self.entities[e].service);
        let was_serving = self.serving(e);
        if was_serving {
            self.level_of(e).in_service = None;
        } else {
            self.entities[e].service = 0;
        }
        self.leave_active(e);
        if !was_serving {
            self.leave_idle(e);
        }
        let finish = self.entities[e].finish;
        if keep_idle && is_after(finish, self.st(e).vtime) {
            let last = self.st(e).last_idle;
            if last.is_none_or(|last| is_after(finish, self.entities[last].finish)) {
                self.st(e).last_idle = Some(e);
            }
            self.st(e).idle.push(e);
        } else {
            self.forget(e);
        }
    }

    fn forget(&mut self, e: usize) {
        self.entities[e].on_st = false;
        self.st(e).wsum -= self.entities[e].weight;
    }

    /// Rule bfq-wf2q-5, the part of the engine.
    pub(super) fn charge(&mut self, e: usize, sectors: i64) {
        for e in self.family(e) {
            self.entities[e].service += sectors;
            let tree = self.st(e);
            tree.vtime = tree.vtime.wrapping_add(delta(sectors, tree.wsum));
            let (level, class) = (self.entities[e].level, self.entities[e].class);
            self.forget_idle(level, class);
        }
    }

    fn forget_idle(&mut self, level: u32, class: usize) {
        let idle = self.levels[&level].trees[class].idle.clone();
        let finish = |e: usize| self.entities[e].finish;
        let Some(first) = self.in_order(&idle).first().copied() else { return };
        let first_finish = finish(first);
        let last_finish = self.levels[&level].trees[class].last_idle.map(finish);
        let tree = &mut self.levels.get_mut(&level).expect("a level").trees[class];
        if let Some(last) = last_finish
            && tree.active.len() == 0
            && !is_after(last, tree.vtime)
        {
            tree.vtime = last;
        }
        if !is_after(first_finish, tree.vtime) {
            self.leave_idle(first);
            self.forget(first);
        }
    }

    fn leave_idle(&mut self, e: usize) {
        let idle = self.st(e).idle.clone();
        if self.st(e).last_idle == Some(e) {
            let before = self.in_order(&idle).into_iter().take_while(|it| *it != e).last();
            self.st(e).last_idle = before;
        }
        self.st(e).idle.retain(|it| *it != e);
    }

    /// By finish; of equal ones the one that came first is first.
    fn in_order(&self, entities: &[usize]) -> Vec<usize> {
        let mut sorted: Vec<usize> = Vec::new();
        for e in entities.iter().copied() {
            let finish = self.entities[e].finish;
            let is_before = |it: &usize| !is_after(self.entities[*it].finish, finish);
            let at = sorted.iter().take_while(|it| is_before(it)).count();
            sorted.insert(at, e);
        }
        sorted
    }

    /// Rule bfq-wf2q-6.
    pub(super) fn apply(&mut self, e: usize, class_too: bool) {
        if !self.entities[e].changed {
            return;
        }
        self.st(e).wsum -= self.entities[e].weight;
        let old_class = self.entities[e].class;
        let entity = &mut self.entities[e];
        if entity.new_weight != entity.orig {
            entity.new_weight = entity.new_weight.clamp(1, 1000);
            entity.orig = entity.new_weight;
        }
        if class_too {
            entity.class = entity.new_class;
        }
        entity.changed = entity.class != entity.new_class;
        let old = entity.weight;
        entity.weight = entity.orig * entity.raised;
        if entity.inner.is_none() && entity.weight != old {
            entity.counted = (entity.raised == 1).then_some(entity.weight);
        }
        let (weight, class) = (entity.weight, entity.class);
        self.st(e).wsum += weight;
        if class != old_class {
            self.entities[e].start = self.st(e).vtime;
        }
    }

    /// Rule bfq-wf2q-7.
    fn lookup(&mut self, level: u32, expiration: bool) -> Option<usize> {
        let now = self.jiffies;
        let patience = self.hz / 5;
        let it = self.levels.get_mut(&level).expect("a level");
        let mut base = 0;
        if it.idle_served.is_none_or(|at| at + patience < now) {
            base = if it.trees[IDLE].active.len() > 0 { IDLE } else { 0 };
            it.idle_served = Some(now);
        }
        (base..3).find_map(|class| self.first_eligible(level, class, expiration))
    }

    fn first_eligible(&mut self, level: u32, class: usize, expiration: bool) -> Option<usize> {
        let it = self.levels.get_mut(&level).expect("a level");
        let nobody_served = it.in_service.is_none();
        let tree = &mut it.trees[class];
        let min_start = tree.active.min_start()?;
        let jumps = is_after(min_start, tree.vtime);
        let vtime = if jumps { min_start } else { tree.vtime };
        if jumps && (nobody_served || expiration) {
            tree.vtime = vtime;
            self.forget_idle(level, class);
        }
        self.levels[&level].trees[class].active.walk(vtime)
    }

    /// Rule bfq-wf2q-8.
    fn update_next(&mut self, level: u32, new: Option<usize>, expiration: bool) -> bool {
        let current = self.levels[&level].next;
        let next = match (new, current) {
            (Some(new), None) => Some(new),
            (Some(new), Some(current)) if new != current => {
                let (n, c) = (&self.entities[new], &self.entities[current]);
                let vtime = self.levels[&level].trees[c.class].vtime;
                let wins =
                    n.class == c.class && !is_after(n.start, vtime) && is_after(c.finish, n.finish);
                if wins { Some(new) } else { self.lookup(level, expiration) }
            }
            _ => self.lookup(level, expiration),
        };
        self.levels.get_mut(&level).expect("a level").next = next;
        let Some(next) = next else { return false };
        let Some(own) = self.levels[&level].own else { return current.is_none() };
        let budget = self.entities[next].budget;
        let decreased = self.entities[own].budget > budget;
        self.entities[own].budget = budget;
        current.is_none() || decreased
    }

    /// Rule bfq-wf2q-9.
    pub(super) fn next_queue(&mut self) -> Option<usize> {
        let mut level = 0;
        let chosen = loop {
            let e = self.levels[&level].next?;
            self.levels.get_mut(&level).expect("a level").in_service = Some(e);
            let members = |inner: u32| {
                self.levels[&inner].trees.iter().map(|tree| tree.active.len()).sum::<usize>()
            };
            if self.entities[e].inner.is_none_or(|inner| members(inner) == 1) {
                self.leave_active(e);
            }
            match self.entities[e].inner {
                Some(inner) => level = inner,
                None => break e,
            }
        };
        for e in self.family(chosen) {
            if !self.update_next(self.entities[e].level, None, false) {
                break;
            }
        }
        Some(chosen)
    }

    pub(super) fn nobody_serves(&mut self, e: usize) {
        for e in self.family(e) {
            self.level_of(e).in_service = None;
        }
    }
}
