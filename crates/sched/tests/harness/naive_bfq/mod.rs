//! BFQ of 6.1 to 7.3 once more, after the text of the specification and as slow as it is written
//! there: lists are searched for every question, references are not counted but looked for. It
//! shares no code with the scheduler.
//!
//! Not here are queues that merge (rules bfq-merge): which of two close queues is found depends on
//! the shape of a tree. So whoever compares keeps processes apart, on the disk and in time.

mod arrivals;
mod engine;
mod owners;
mod raising;
mod rate;
mod seam;
mod tree;
mod turns;

use block::scheduler::{CpuPolicy, IoContext};
use block::{CgroupId, Cx, Flags, Ioprio, IoprioClass, Kernel, RequestId, Version};
use engine::{Entity, Level};
use std::collections::BTreeMap;

const RT: usize = 0;
const BE: usize = 1;
const IDLE: usize = 2;
const MS: i64 = 1_000_000;
const NEVER: i64 = -(1 << 40);
/// Rule bfq-settings: until a rate is known.
const DEFAULT_BUDGET: i64 = 16_384;

fn is_after(one: u64, other: u64) -> bool {
    one.wrapping_sub(other) as i64 > 0
}

/// Rule bfq-insert-2.
#[derive(Clone, Copy, Default)]
struct Think {
    last_end: i64,
    samples: i64,
    total: i64,
}

#[derive(Clone)]
struct Queue {
    e: usize,
    name: String,
    sync: bool,
    level: i64,
    /// Processes that use it, and the group if it is shared.
    users: i64,
    owner: Option<u32>,
    busy: bool,
    pending: bool,
    just_created: bool,
    wait_request: bool,
    non_blocking: bool,
    fifo_checked: bool,
    short: bool,
    io_bound: bool,
    in_burst: bool,
    softrt_update: bool,
    fifo: Vec<RequestId>,
    next: Option<RequestId>,
    dispatched: i64,
    max_budget: i64,
    budget_timeout: i64,
    wr_max: i64,
    wr_last: i64,
    wr_switched: i64,
    soft_next: i64,
    last_backlogged: i64,
    backlogged: i64,
    from_wr: i64,
    think: Think,
    history: u32,
    last_end: u64,
    limit: i64,
    serv_time: i64,
    decreased: i64,
    waker: Option<usize>,
    tentative: Option<usize>,
    /// Where it is kept; the next one that is made takes the place of the last one that went.
    slot: usize,
    is_gone: bool,
    detections: i64,
    since: i64,
    woken: Vec<usize>,
    io_start: i64,
    idle_total: u64,
}

#[derive(Clone)]
struct Rq {
    queue: usize,
    process: u32,
    expires: i64,
    started: bool,
    at: (u64, u64),
}

#[derive(Clone, Default)]
struct Process {
    sync: Option<usize>,
    asyncs: Option<usize>,
    requests: i64,
    ioprio: Option<Ioprio>,
    group: Option<u32>,
}

/// Rule bfq-rate.
#[derive(Clone, Copy, Default)]
struct Rate {
    peak: i64,
    samples: i64,
    sequential: i64,
    total: i64,
    largest: i64,
    first: i64,
    last: i64,
    delta: i64,
}

/// BFQ written down twice.
pub struct NaiveBfq {
    hz: i64,
    nanos: i64,
    is_6_1: bool,
    is_7_3: bool,
    /// What depths are parts of: tags of a word or of all, when that last changed; on 7.3
    /// `async_depth`.
    full_depth: i64,
    async_depth: i64,
    nr_requests: i64,
    jiffies: i64,
    rotational: bool,
    fifo_expire: [i64; 2],
    back_max: u64,
    penalty: u64,
    slice_idle: i64,
    max_budget_set: i64,
    timeout: i64,
    strict: bool,
    low_latency: bool,
    entities: Vec<Entity>,
    levels: BTreeMap<u32, Level>,
    active_list: Vec<usize>,
    queues: Vec<Queue>,
    shared: BTreeMap<(u32, usize, i64), usize>,
    requests: BTreeMap<RequestId, Rq>,
    processes: BTreeMap<u32, Process>,
    heads: Vec<RequestId>,
    orders: u64,
    serving: Option<usize>,
    /// A queue is counted where it is when it becomes busy, and again when it is no more.
    busy_in_class: [i64; 3],
    timer: Option<i64>,
    last_budget_start: i64,
    in_driver: i64,
    max_in_driver: i64,
    hw_tag: i64,
    hw_samples: i64,
    queueing: bool,
    last_position: u64,
    last_completion: i64,
    last_completed: Option<usize>,
    free: Vec<usize>,
    rate: Rate,
    max_budget: i64,
    assigned: i64,
    burst: Vec<usize>,
    burst_size: i64,
    burst_is_large: bool,
    burst_group: u32,
    burst_last: i64,
    occupied: i64,
    wait_dispatch: bool,
    waited: Option<RequestId>,
    injected: bool,
    idling_start: i64,
    idling_jiffies: i64,
}

impl NaiveBfq {
    pub fn new(kernel: &Kernel) -> NaiveBfq {
        let hz = i64::from(kernel.hz.get());
        NaiveBfq {
            hz,
            nanos: 0,
            is_6_1: kernel.version == Version::V6_1,
            is_7_3: kernel.version >= Version::V7_3,
            full_depth: 0,
            async_depth: 0,
            nr_requests: 0,
            jiffies: 0,
            rotational: true,
            fifo_expire: [250 * MS, 125 * MS],
            back_max: 16_384,
            penalty: 2,
            slice_idle: 8 * MS,
            max_budget_set: 0,
            timeout: hz / 8,
            strict: false,
            low_latency: true,
            entities: Vec::new(),
            levels: BTreeMap::new(),
            active_list: Vec::new(),
            queues: Vec::new(),
            shared: BTreeMap::new(),
            requests: BTreeMap::new(),
            processes: BTreeMap::new(),
            heads: Vec::new(),
            orders: 0,
            serving: None,
            busy_in_class: [0; 3],
            timer: None,
            last_budget_start: 0,
            in_driver: 0,
            max_in_driver: 0,
            hw_tag: -1,
            hw_samples: 0,
            queueing: false,
            last_position: 0,
            last_completion: 0,
            last_completed: None,
            free: Vec::new(),
            rate: Rate { peak: 14_000 * 2 / 3, ..Rate::default() },
            max_budget: DEFAULT_BUDGET,
            assigned: 0,
            burst: Vec::new(),
            burst_size: 0,
            burst_is_large: false,
            burst_group: 0,
            burst_last: NEVER,
            occupied: 0,
            wait_dispatch: false,
            waited: None,
            injected: false,
            idling_start: 0,
            idling_jiffies: 0,
        }
    }

    fn look_at_clock(&mut self, cx: &Cx<'_>) {
        self.note_gone();
        self.nanos = cx.clock.as_nanos() as i64;
        self.jiffies = cx.now.as_nanos() as i64 / (1_000_000_000 / self.hz);
    }

    /// Milliseconds in jiffies, upwards.
    fn ms(&self, millis: i64) -> i64 {
        (millis * self.hz + 999) / 1_000
    }

    fn entity(&self, q: usize) -> &Entity {
        &self.entities[self.queues[q].e]
    }

    fn entity_mut(&mut self, q: usize) -> &mut Entity {
        &mut self.entities[self.queues[q].e]
    }

    fn is_raised(&self, q: usize) -> bool {
        self.entity(q).raised > 1
    }

    fn busy(&self) -> Vec<usize> {
        (0..self.queues.len()).filter(|q| self.queues[*q].busy).collect()
    }

    fn raised_busy(&self) -> i64 {
        self.busy().into_iter().filter(|q| self.is_raised(*q)).count() as i64
    }

    fn queued(&self) -> i64 {
        self.queues.iter().map(|queue| queue.fifo.len() as i64).sum()
    }

    /// Somebody refers to it: a process, a request, a service tree or the weights.
    fn lives(&self, q: usize) -> bool {
        let entity = self.entity(q);
        let requests = self.requests.values().any(|rq| rq.queue == q);
        let is_served = self.serving == Some(q);
        self.queues[q].users > 0
            || requests
            || entity.on_st
            || entity.counted.is_some()
            || is_served
    }

    /// Queues that went make room for others.
    fn note_gone(&mut self) {
        for q in 0..self.queues.len() {
            if !self.queues[q].is_gone && !self.lives(q) {
                self.queues[q].is_gone = true;
                self.free.push(self.queues[q].slot);
            }
        }
    }

    fn seeky(&self, q: usize) -> bool {
        self.queues[q].history.count_ones() > 19
    }

    fn totally_seeky(&self, q: usize) -> bool {
        self.queues[q].history == u32::MAX
    }

    /// Rule bfq-idle.
    fn asymmetric(&self, q: usize) -> bool {
        let mut weights: Vec<i64> = self.entities.iter().filter_map(|e| e.counted).collect();
        weights.sort_unstable();
        weights.dedup();
        let varied = weights.len() > 1 && self.entity(q).counted != weights.first().copied();
        let classes = self.busy_in_class.iter().filter(|busy| **busy != 0).count();
        let pending = self.queues.iter().filter(|queue| queue.pending);
        let mut groups: Vec<u32> = pending.map(|it| self.entities[it.e].level).collect();
        groups.sort_unstable();
        groups.dedup();
        // Observed on 6.1.192: there one group is enough, unless it is the root.
        let differ = groups.len() > 1 || self.is_6_1 && groups.iter().any(|group| *group != 0);
        varied || classes > 1 || differ
    }

    fn boosts(&self, q: usize) -> bool {
        let queue = &self.queues[q];
        let single = self.hw_tag == 0;
        let sequential =
            (self.rotational || single) && !self.seeky(q) && queue.io_bound && queue.short;
        queue.users > 0 && (self.rotational && single || sequential) && self.raised_busy() == 0
    }

    fn guarantees(&self, q: usize) -> bool {
        let busy = self.busy().len() as i64;
        let raised = self.is_raised(q)
            && (self.raised_busy() < busy || self.in_driver >= self.queues[q].dispatched + 4);
        self.queues[q].users > 0 && (raised || self.asymmetric(q) || busy == 1)
    }

    fn better_to_idle(&self, q: usize) -> bool {
        let queue = &self.queues[q];
        if queue.users == 0 || self.strict {
            return queue.users > 0;
        }
        let may = self.slice_idle != 0 && queue.sync && self.entity(q).class != IDLE;
        may && (self.boosts(q) || self.guarantees(q))
    }

    fn must_idle(&self, q: usize) -> bool {
        self.queues[q].fifo.is_empty() && self.better_to_idle(q)
    }

    /// Requests of a queue by sector, of equal ones the older first.
    fn by_sector(&self, q: usize) -> Vec<RequestId> {
        let mut all = self.queues[q].fifo.clone();
        all.sort_by_key(|rq| self.requests[rq].at);
        all
    }

    /// Rule bfq-insert-5c, the choice of CFQ with META in place of PRIO.
    fn choose(
        &self,
        cx: &Cx<'_>,
        one: Option<RequestId>,
        two: Option<RequestId>,
        last: u64,
    ) -> Option<RequestId> {
        let (Some(a), Some(b)) = (one, two) else { return one.or(two) };
        if a == b {
            return one;
        }
        let (first, second) = (cx.request(a), cx.request(b));
        if first.is_sync() != second.is_sync() {
            return if first.is_sync() { one } else { two };
        }
        let meta = [first, second].map(|request| request.flags.intersects(Flags::META));
        if meta[0] != meta[1] {
            return if meta[0] { one } else { two };
        }
        let (s1, s2) = (first.sector.0, second.sector.0);
        let far = |sector: u64| sector < last && last - sector > 2 * self.back_max;
        let way = |sector: u64| match sector >= last {
            true => sector - last,
            false => (last - sector) * self.penalty,
        };
        let first_wins = match (far(s1), far(s2)) {
            (false, true) => true,
            (true, false) => false,
            (true, true) => s1 <= s2,
            (false, false) if way(s1) == way(s2) => s1 >= s2,
            (false, false) => way(s1) < way(s2),
        };
        if first_wins { one } else { two }
    }

    fn charge_of(&self, cx: &Cx<'_>, q: usize, rq: RequestId) -> i64 {
        let length = i64::from(cx.request(rq).sectors.0);
        let once = self.queues[q].sync || self.is_raised(q) || self.asymmetric(q);
        if once { length } else { 3 * length }
    }

    fn min_budget(&self) -> i64 {
        self.most_budget() / 32
    }

    fn most_budget(&self) -> i64 {
        if self.assigned >= 194 { self.max_budget } else { DEFAULT_BUDGET }
    }

    fn left(&self, q: usize) -> i64 {
        self.entity(q).budget - self.entity(q).service
    }
}

/// Class and level, and the weight of that.
fn class_of(context: &IoContext, sync: bool) -> (usize, i64) {
    let derived = (i64::from(context.nice) + 20) / 5;
    let level = i64::from(context.ioprio.level);
    match context.ioprio.class {
        IoprioClass::RealTime => (RT, level),
        IoprioClass::BestEffort => (BE, level),
        IoprioClass::Idle => (IDLE, 7),
        IoprioClass::None if !sync => (BE, 4),
        IoprioClass::None => match context.policy {
            CpuPolicy::Normal => (BE, derived),
            CpuPolicy::RealTime => (RT, derived),
            CpuPolicy::Idle => (IDLE, 7),
        },
    }
}

fn group_weight(cx: &Cx<'_>, group: u32) -> i64 {
    i64::from(cx.cgroup(CgroupId(group)).weight.unwrap_or(100))
}
