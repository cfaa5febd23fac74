//! Naive twins: the schedulers once more, over one unsorted `Vec`, as slow and as close to the text
//! of the specification as possible. [`super::watched::Watched`] runs a real scheduler and its twin
//! side by side and compares every answer.

use base::{Jiffies, Sector};
use block::kernel::ShallowDepth;
use block::{Direction, IoprioClass, Kernel, RequestId, Version};

/// A request as a twin sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub rq: RequestId,
    pub sector: Sector,
    pub direction: Direction,
    pub class: IoprioClass,
    /// Requeued: goes before everything.
    pub at_head: bool,
}

/// What a twin would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub rq: RequestId,
    /// The direction, if a new batch starts with it.
    pub starts_batch: Option<Direction>,
}

/// A scheduler written down twice.
pub trait Twin: Send {
    /// A request arrives; the older one that leaves because of it.
    fn insert(&mut self, now: Jiffies, rq: Seen) -> Option<RequestId>;
    /// A request starts elsewhere after a front merge.
    fn moved(&mut self, rq: RequestId, sector: Sector);
    /// `next` was appended to `rq`.
    fn joined(&mut self, rq: RequestId, next: RequestId);
    /// A request that starts at `sector`, for front merges.
    fn starting_at(
        &self,
        direction: Direction,
        class: IoprioClass,
        sector: Sector,
    ) -> Vec<RequestId>;
    /// The request before and the one after `rq`.
    fn neighbours(&self, rq: RequestId) -> (Option<RequestId>, Option<RequestId>);
    /// Chooses.
    fn dispatch(&mut self, now: Jiffies) -> Option<Choice>;
    /// A request is freed.
    fn finished(&mut self, rq: RequestId);
    /// A tunable is written; times in jiffies.
    fn set(&mut self, name: &str, value: i64);
    /// How deep a bio may go that is not a read.
    fn write_depth(&self, nr_requests: u32) -> Option<u32>;
    /// The queue has another number of requests.
    fn depth_changed(&mut self, _nr_requests: i64) {}
    /// A copy, to look ahead.
    fn copy(&self) -> Box<dyn Twin>;
    /// Requests held.
    fn queued(&self) -> usize;
}

/// The twin of a scheduler.
pub fn twin_of(name: &str, kernel: &'static Kernel, nr_requests: u32) -> Box<dyn Twin> {
    match name {
        "noop" => Box::new(Noop::default()),
        "deadline" => Box::new(Deadline::new(kernel)),
        "mq-deadline" => Box::new(MqDeadline::new(kernel, nr_requests)),
        _ => panic!("{name} has no twin"),
    }
}

/// Rules noop.
#[derive(Clone, Default)]
struct Noop(Vec<RequestId>);

impl Twin for Noop {
    fn insert(&mut self, _now: Jiffies, rq: Seen) -> Option<RequestId> {
        self.0.push(rq.rq);
        None
    }

    fn moved(&mut self, _rq: RequestId, _sector: Sector) {}

    fn joined(&mut self, _rq: RequestId, next: RequestId) {
        self.0.retain(|rq| *rq != next);
    }

    fn starting_at(&self, _: Direction, _: IoprioClass, _: Sector) -> Vec<RequestId> {
        Vec::new()
    }

    fn neighbours(&self, rq: RequestId) -> (Option<RequestId>, Option<RequestId>) {
        neighbours(&self.0, rq)
    }

    fn dispatch(&mut self, _now: Jiffies) -> Option<Choice> {
        let rq = (!self.0.is_empty()).then(|| self.0.remove(0))?;
        Some(Choice { rq, starts_batch: None })
    }

    fn finished(&mut self, _rq: RequestId) {}

    fn set(&mut self, _name: &str, _value: i64) {}

    fn write_depth(&self, _nr_requests: u32) -> Option<u32> {
        None
    }

    fn copy(&self) -> Box<dyn Twin> {
        Box::new(self.clone())
    }

    fn queued(&self) -> usize {
        self.0.len()
    }
}

/// A queued request of deadline or mq-deadline.
#[derive(Clone, Copy)]
struct Item {
    seen: Seen,
    /// Place among requests with the same sector.
    tree_order: u64,
    /// Place in the FIFO.
    fifo_order: u64,
    fifo_time: u64,
}

/// What both have in common: items, tunables, the count of starvation.
#[derive(Clone)]
struct Common {
    items: Vec<Item>,
    orders: u64,
    expire: [u64; 2],
    fifo_batch: i64,
    writes_starved: i64,
    front_merges: bool,
    starved: i64,
    batching: i64,
}

impl Common {
    fn new(kernel: &Kernel) -> Common {
        Common {
            items: Vec::new(),
            orders: 0,
            expire: [500, 5000].map(|millis| kernel.hz.jiffies_from_millis(millis).0),
            fifo_batch: 16,
            writes_starved: 2,
            front_merges: true,
            starved: 0,
            batching: 0,
        }
    }

    fn order(&mut self) -> u64 {
        self.orders += 1;
        self.orders
    }

    fn add(&mut self, now: Jiffies, seen: Seen) {
        let order = self.order();
        let fifo_time = now.0 + self.expire[seen.direction as usize];
        self.items.push(Item { seen, tree_order: order, fifo_order: order, fifo_time });
    }

    fn item(&self, rq: RequestId) -> Option<Item> {
        self.items.iter().find(|item| item.seen.rq == rq).copied()
    }

    fn drop(&mut self, rq: RequestId) {
        self.items.retain(|item| item.seen.rq != rq);
    }

    fn moved(&mut self, rq: RequestId, sector: Sector) {
        let order = self.order();
        let item = self.items.iter_mut().find(|item| item.seen.rq == rq).expect("is queued");
        item.seen.sector = sector;
        item.tree_order = order;
    }

    fn joined(&mut self, rq: RequestId, next: RequestId) {
        let Some(gone) = self.item(next) else { return };
        let survivor = self.items.iter_mut().find(|item| item.seen.rq == rq).expect("is queued");
        if gone.fifo_time < survivor.fifo_time {
            survivor.fifo_time = gone.fifo_time;
            survivor.fifo_order = gone.fifo_order;
        }
        self.drop(next);
    }

    /// The requests of a kind in sector order.
    fn tree(&self, of: impl Fn(&Seen) -> bool) -> Vec<Item> {
        let mut tree: Vec<Item> =
            self.items.iter().filter(|item| of(&item.seen)).copied().collect();
        tree.sort_by_key(|item| (item.seen.sector, item.tree_order));
        tree
    }

    /// The oldest request of a kind.
    fn fifo_head(&self, of: impl Fn(&Seen) -> bool) -> Option<Item> {
        let fifo = self.items.iter().filter(|item| of(&item.seen));
        fifo.min_by_key(|item| item.fifo_order).copied()
    }

    /// Rule deadline-6.
    fn direction(&mut self, of: impl Fn(&Seen) -> bool) -> Option<Direction> {
        let waits = |direction| {
            self.items.iter().any(|item| of(&item.seen) && item.seen.direction == direction)
        };
        let (reads, writes) = (waits(Direction::Read), waits(Direction::Write));
        if reads {
            if writes {
                self.starved += 1;
                if self.starved > self.writes_starved {
                    self.starved = 0;
                    return Some(Direction::Write);
                }
            }
            return Some(Direction::Read);
        }
        if writes {
            self.starved = 0;
            return Some(Direction::Write);
        }
        None
    }

    fn set(&mut self, name: &str, value: i64) {
        match name {
            "read_expire" => self.expire[0] = value as u64,
            "write_expire" => self.expire[1] = value as u64,
            "fifo_batch" => self.fifo_batch = value,
            // It compares as an unsigned number.
            "writes_starved" => self.writes_starved = i64::from(value as u32),
            "front_merges" => self.front_merges = value != 0,
            _ => panic!("no tunable {name}"),
        }
    }
}

/// Rules deadline.
#[derive(Clone)]
struct Deadline {
    common: Common,
    alias_leaves: bool,
    next: [Option<RequestId>; 2],
}

impl Deadline {
    fn new(kernel: &Kernel) -> Deadline {
        let alias_leaves = kernel.version <= Version::V2_6_32;
        Deadline { common: Common::new(kernel), alias_leaves, next: [None; 2] }
    }

    fn tree(&self, direction: Direction) -> Vec<RequestId> {
        let tree = self.common.tree(|seen| seen.direction == direction);
        tree.iter().map(|item| item.seen.rq).collect()
    }

    /// Rule deadline-5.
    fn take(&mut self, rq: RequestId) {
        let direction = self.common.item(rq).expect("is queued").seen.direction;
        let successor = neighbours(&self.tree(direction), rq).1;
        self.next = [None; 2];
        self.next[direction as usize] = successor;
        self.common.drop(rq);
    }
}

impl Twin for Deadline {
    fn insert(&mut self, now: Jiffies, rq: Seen) -> Option<RequestId> {
        let same = |seen: &Seen| seen.direction == rq.direction && seen.sector == rq.sector;
        let alias = self.common.tree(same).first().map(|item| item.seen.rq);
        let leaving = alias.filter(|_| self.alias_leaves);
        if let Some(alias) = leaving {
            self.take(alias);
        }
        self.common.add(now, rq);
        leaving
    }

    fn moved(&mut self, rq: RequestId, sector: Sector) {
        self.common.moved(rq, sector);
    }

    fn joined(&mut self, rq: RequestId, next: RequestId) {
        if let Some(item) = self.common.item(next) {
            let direction = item.seen.direction;
            if self.next[direction as usize] == Some(next) {
                self.next[direction as usize] = neighbours(&self.tree(direction), next).1;
            }
        }
        self.common.joined(rq, next);
    }

    fn starting_at(
        &self,
        direction: Direction,
        _class: IoprioClass,
        sector: Sector,
    ) -> Vec<RequestId> {
        if !self.common.front_merges {
            return Vec::new();
        }
        let found = self.common.tree(|seen| seen.direction == direction && seen.sector == sector);
        found.iter().map(|item| item.seen.rq).collect()
    }

    fn neighbours(&self, rq: RequestId) -> (Option<RequestId>, Option<RequestId>) {
        let direction = self.common.item(rq).expect("is queued").seen.direction;
        neighbours(&self.tree(direction), rq)
    }

    fn dispatch(&mut self, now: Jiffies) -> Option<Choice> {
        let candidate = self.next[1].or(self.next[0]);
        let mut starts_batch = None;
        let rq = match candidate {
            Some(next) if self.common.batching < self.common.fifo_batch => next,
            _ => {
                let direction = self.common.direction(|_| true)?;
                starts_batch = Some(direction);
                let head = self.common.fifo_head(|seen| seen.direction == direction)?;
                self.common.batching = 0;
                match self.next[direction as usize] {
                    Some(next) if now.0 < head.fifo_time => next,
                    _ => head.seen.rq,
                }
            }
        };
        self.common.batching += 1;
        self.take(rq);
        Some(Choice { rq, starts_batch })
    }

    fn finished(&mut self, _rq: RequestId) {}

    fn set(&mut self, name: &str, value: i64) {
        self.common.set(name, value);
    }

    fn write_depth(&self, _nr_requests: u32) -> Option<u32> {
        None
    }

    fn copy(&self) -> Box<dyn Twin> {
        Box::new(self.clone())
    }

    fn queued(&self) -> usize {
        self.common.items.len()
    }
}

/// Rules mq-deadline.
#[derive(Clone)]
struct MqDeadline {
    common: Common,
    kernel: &'static Kernel,
    aging: u64,
    async_depth: i64,
    nr_requests: i64,
    /// Requests inserted at the head, first out first, and when they were.
    heads: Vec<(Seen, u64)>,
    /// Of requests inserted and not freed: the class.
    counted: Vec<(RequestId, usize)>,
    last_direction: Direction,
    /// By class and direction.
    latest: [[u64; 2]; 3],
    /// By class and direction.
    next: [[Option<RequestId>; 2]; 3],
}

impl MqDeadline {
    fn new(kernel: &'static Kernel, nr_requests: u32) -> MqDeadline {
        MqDeadline {
            common: Common::new(kernel),
            kernel,
            aging: kernel.hz.jiffies_from_millis(10_000).0,
            async_depth: i64::from(nr_requests),
            nr_requests: i64::from(nr_requests.max(1)),
            heads: Vec::new(),
            counted: Vec::new(),
            last_direction: Direction::Write,
            latest: [[0; 2]; 3],
            next: [[None; 2]; 3],
        }
    }

    fn has_classes(&self) -> bool {
        self.kernel.version >= Version::V6_1
    }

    /// 6.1: each class has a request that comes next in each direction, and a list for the head.
    fn classes_are_apart(&self) -> bool {
        self.kernel.version == Version::V6_1
    }

    fn class(&self, class: IoprioClass) -> usize {
        match class {
            IoprioClass::RealTime if self.has_classes() => 0,
            IoprioClass::Idle if self.has_classes() => 2,
            _ => 1,
        }
    }

    /// The class it was given when it was first inserted.
    fn class_of(&self, rq: RequestId) -> usize {
        self.counted.iter().find(|(other, _)| *other == rq).expect("was inserted").1
    }

    fn in_class(&self, class: usize, direction: Direction) -> Vec<Item> {
        self.common.tree(|seen| seen.direction == direction && self.class_of(seen.rq) == class)
    }

    fn unfinished(&self, class: usize) -> usize {
        self.counted.iter().filter(|(_, other)| *other == class).count()
    }

    fn old_enough(&self, fifo_time: u64, direction: Direction, latest: Option<i64>) -> bool {
        let start = fifo_time as i64 - self.common.expire[direction as usize] as i64;
        latest.is_none_or(|latest| start <= latest)
    }

    fn one_from(&mut self, class: usize, now: u64, latest: Option<i64>) -> Option<Choice> {
        let mine = |(seen, _): &(Seen, u64)| self.class_of(seen.rq) == class;
        if let Some(place) = self.heads.iter().position(mine) {
            let is_due = latest.is_none_or(|latest| self.heads[place].1 as i64 <= latest);
            return is_due.then(|| self.take_head(place));
        }
        let mut starts_batch = None;
        let going_on =
            self.next_in_batch(class).filter(|_| self.common.batching < self.common.fifo_batch);
        let rq = match going_on {
            Some(next) => next,
            None => {
                let counted = self.counted.clone();
                let mine = |seen: &Seen| counted.contains(&(seen.rq, class));
                let direction = self.common.direction(mine)?;
                starts_batch = Some(direction);
                let head = self
                    .common
                    .fifo_head(|seen| mine(seen) && seen.direction == direction)
                    .expect("somebody waits");
                self.last_direction = direction;
                self.common.batching = 0;
                match self.next_of(class, direction) {
                    Some(next) if now < head.fifo_time => next,
                    _ => head.seen.rq,
                }
            }
        };
        let item = self.common.item(rq).expect("is queued");
        if !self.old_enough(item.fifo_time, item.seen.direction, latest) {
            return None;
        }
        self.common.batching += 1;
        let tree = self.in_class(class, item.seen.direction);
        let tree: Vec<RequestId> = tree.iter().map(|item| item.seen.rq).collect();
        if !self.classes_are_apart() {
            self.next[class] = [None; 2];
        }
        self.next[class][item.seen.direction as usize] = neighbours(&tree, rq).1;
        self.latest[class][item.seen.direction as usize] = item.seen.sector.0;
        self.common.drop(rq);
        Some(Choice { rq, starts_batch })
    }

    fn next_in_batch(&self, class: usize) -> Option<RequestId> {
        if self.has_classes() {
            self.next_of(class, self.last_direction)
        } else {
            self.next[class][1].or(self.next[class][0])
        }
    }

    fn next_of(&self, class: usize, direction: Direction) -> Option<RequestId> {
        if !self.has_classes() || self.classes_are_apart() {
            return self.next[class][direction as usize];
        }
        let from = self.latest[class][direction as usize];
        let tree = self.in_class(class, direction);
        tree.iter().find(|item| item.seen.sector.0 >= from).map(|item| item.seen.rq)
    }

    fn take_head(&mut self, place: usize) -> Choice {
        let (seen, _) = self.heads.remove(place);
        let class = self.class_of(seen.rq);
        self.latest[class][seen.direction as usize] = seen.sector.0;
        Choice { rq: seen.rq, starts_batch: None }
    }
}

impl Twin for MqDeadline {
    fn insert(&mut self, now: Jiffies, rq: Seen) -> Option<RequestId> {
        if !self.counted.iter().any(|(other, _)| *other == rq.rq) {
            let class = self.class(rq.class);
            self.counted.push((rq.rq, class));
        }
        if rq.at_head {
            self.heads.insert(0, (rq, now.0));
        } else {
            self.common.add(now, rq);
        }
        None
    }

    fn moved(&mut self, rq: RequestId, sector: Sector) {
        self.common.moved(rq, sector);
    }

    fn joined(&mut self, rq: RequestId, next: RequestId) {
        if let Some(item) = self.common.item(next) {
            let direction = item.seen.direction;
            let class = self.class_of(next);
            if self.next[class][direction as usize] == Some(next) {
                let tree = self.in_class(class, direction);
                let tree: Vec<RequestId> = tree.iter().map(|item| item.seen.rq).collect();
                self.next[class][direction as usize] = neighbours(&tree, next).1;
            }
        }
        self.common.joined(rq, next);
    }

    fn starting_at(
        &self,
        direction: Direction,
        class: IoprioClass,
        sector: Sector,
    ) -> Vec<RequestId> {
        if !self.common.front_merges {
            return Vec::new();
        }
        let tree = self.in_class(self.class(class), direction);
        tree.iter().filter(|item| item.seen.sector == sector).map(|item| item.seen.rq).collect()
    }

    fn neighbours(&self, rq: RequestId) -> (Option<RequestId>, Option<RequestId>) {
        let direction = self.common.item(rq).expect("is queued").seen.direction;
        let tree = self.in_class(self.class_of(rq), direction);
        neighbours(&tree.iter().map(|item| item.seen.rq).collect::<Vec<_>>(), rq)
    }

    fn dispatch(&mut self, now: Jiffies) -> Option<Choice> {
        if !self.heads.is_empty() && !self.classes_are_apart() {
            return Some(self.take_head(0));
        }
        let occupied = (0..3).filter(|class| self.unfinished(*class) > 0).count();
        if self.has_classes() && occupied >= 2 {
            let latest = now.0 as i64 - self.aging as i64;
            for class in [1, 2] {
                if let Some(choice) = self.one_from(class, now.0, Some(latest)) {
                    return Some(choice);
                }
            }
        }
        for class in if self.has_classes() { 0..3 } else { 1..2 } {
            let choice = self.one_from(class, now.0, None);
            if choice.is_some() || self.unfinished(class) > 0 {
                return choice;
            }
        }
        None
    }

    fn finished(&mut self, rq: RequestId) {
        self.counted.retain(|(other, _)| *other != rq);
    }

    fn set(&mut self, name: &str, value: i64) {
        match name {
            "prio_aging_expire" => self.aging = value as u64,
            "async_depth" if self.kernel.version == Version::V7_3 => {
                self.async_depth = value.min(self.nr_requests);
            }
            "async_depth" => self.async_depth = value,
            _ => self.common.set(name, value),
        }
    }

    fn depth_changed(&mut self, nr_requests: i64) {
        let nr_requests = nr_requests.max(1);
        self.async_depth = match self.kernel.version == Version::V7_3 {
            true => (self.async_depth * nr_requests / self.nr_requests).max(1),
            false => nr_requests,
        };
        self.nr_requests = nr_requests;
    }

    fn write_depth(&self, nr_requests: u32) -> Option<u32> {
        if !self.has_classes() {
            return None;
        }
        let depth = self.async_depth as u64;
        let multi = self.kernel.multi.expect("blk-mq");
        Some(match multi.shallow {
            ShallowDepth::WholeMap => depth as u32,
            ShallowDepth::PerWord => {
                let bits = u64::from(block::tags::bits_per_word(nr_requests));
                let requests = u64::from(nr_requests);
                (depth * bits).div_ceil(requests).min(u64::from(u32::MAX)) as u32
            }
        })
    }

    fn copy(&self) -> Box<dyn Twin> {
        Box::new(self.clone())
    }

    fn queued(&self) -> usize {
        self.common.items.len() + self.heads.len()
    }
}

fn neighbours(list: &[RequestId], rq: RequestId) -> (Option<RequestId>, Option<RequestId>) {
    let place = list.iter().position(|other| *other == rq).expect("is queued");
    (place.checked_sub(1).map(|before| list[before]), list.get(place + 1).copied())
}
