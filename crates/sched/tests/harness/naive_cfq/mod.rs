//! CFQ of 4.10 and 4.19 once more, after the text of the specification (`docs/rules/cfq-*.md` have
//! what is implemented of it) and as slow as it is written there: every queue is looked at for
//! every question, nothing is kept in a tree. It shares no code with the scheduler.
//!
//! Not here are cooperators (rules cfq-cooperate): which of two close queues is found depends on
//! the shape of a tree. So whoever compares keeps processes apart.

mod groups;
mod queues;
mod seam;
mod turns;

use base::Sector;
use block::scheduler::{CpuPolicy, IoContext};
use block::{Bio, Cx, Flags, Ioprio, IoprioClass, Kernel, Op, RequestId, Version};
use std::collections::BTreeMap;

pub(super) const BE: usize = 0;
pub(super) const RT: usize = 1;
pub(super) const IDLE: usize = 2;
const ASYNC: usize = 0;
const SYNC_NOIDLE: usize = 1;
const SYNC: usize = 2;
const MS: i64 = 1_000_000;

/// Rule cfq-insert-2.
#[derive(Clone, Copy, Default)]
pub(super) struct Think {
    last_end: i64,
    samples: i64,
    total: i64,
    mean: i64,
}

impl Think {
    pub(super) fn update(&mut self, now: i64, wait: i64) {
        let elapsed = (now - self.last_end).clamp(0, (2 * wait).max(0));
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * elapsed) / 8;
        self.mean = (self.total + 128) / self.samples;
    }

    pub(super) fn valid(&self) -> bool {
        self.samples > 80
    }

    pub(super) fn big(&self, wait: i64) -> bool {
        self.valid() && self.mean > wait
    }
}

struct Process {
    queues: [Option<usize>; 2],
    think: Think,
    ioprio: Ioprio,
    group: Option<u32>,
}

#[derive(Default)]
pub(super) struct Group {
    parent: Option<u32>,
    gone: bool,
    vdisktime: u64,
    /// Place among equal times; none: not in the tree.
    place: Option<u64>,
    nr_active: i64,
    children_weight: i64,
    vfraction: i64,
    weight: i64,
    leaf_weight: i64,
    queues: i64,
    average: [i64; 2],
    saved: Option<(i64, usize, usize)>,
    dispatched: i64,
    think: Think,
    /// By class and type; the idle class has one.
    tree_think: [[Think; 3]; 3],
    shared: BTreeMap<(usize, u8), usize>,
}

#[derive(Clone)]
struct Queue {
    group: u32,
    sync: bool,
    class: usize,
    level: i64,
    own: (usize, i64),
    prio_changed: bool,
    refs: i64,
    idle_window: bool,
    on_rr: bool,
    /// Key, order among equal keys, class and type of the tree.
    place: Option<(i64, u64, usize, usize)>,
    fifo: Vec<RequestId>,
    next: Option<RequestId>,
    wait_request: bool,
    wait_busy: bool,
    must_dispatch: bool,
    must_alloc: bool,
    fifo_checked: bool,
    slice_new: bool,
    deep: bool,
    dispatch_start: i64,
    slice_start: i64,
    slice_end: i64,
    allocated: i64,
    slice_dispatch: i64,
    resid: i64,
    dispatched: i64,
    history: u32,
    last_end: u64,
}

struct Rq {
    queue: usize,
    process: u32,
    expires: i64,
    /// Where it stands: its first sector when it was sorted in, and the order of that.
    at: (Sector, u64),
}

/// CFQ written down twice.
pub struct NaiveCfq {
    late: bool,
    rotational: bool,
    hz: i64,
    quantum: i64,
    fifo_expire: [i64; 2],
    back_max: i64,
    penalty: i64,
    slice: [i64; 2],
    async_rq: i64,
    slice_idle: i64,
    group_idle: i64,
    low_latency: bool,
    target: i64,
    processes: BTreeMap<u32, Process>,
    groups: BTreeMap<u32, Group>,
    queues: Vec<Queue>,
    requests: BTreeMap<RequestId, Rq>,
    orders: u64,
    min_vdisktime: u64,
    serving_group: Option<u32>,
    serving: (usize, usize),
    workload_expires: i64,
    active: Option<usize>,
    active_process: Option<u32>,
    timer: Option<i64>,
    in_driver: i64,
    in_flight: [i64; 2],
    hw_tag: Option<bool>,
    deepest: i64,
    samples: i64,
    last_position: u64,
    last_delayed_sync: i64,
}

fn now(cx: &Cx<'_>) -> i64 {
    cx.now.as_nanos() as i64
}

/// Rule cfq-bind-6.
pub(super) fn class_of(context: &IoContext) -> (usize, i64) {
    let derived = i64::from((i32::from(context.nice) + 20) / 5);
    let level = i64::from(context.ioprio.level);
    match context.ioprio.class {
        IoprioClass::RealTime => (RT, level),
        IoprioClass::BestEffort => (BE, level),
        IoprioClass::Idle => (IDLE, 7),
        IoprioClass::None => match context.policy {
            CpuPolicy::Normal => (BE, derived),
            CpuPolicy::RealTime => (RT, derived),
            CpuPolicy::Idle => (IDLE, derived),
        },
    }
}

fn noidle(cx: &Cx<'_>, rq: RequestId) -> bool {
    let request = cx.request(rq);
    request.op != Op::Read
        && request.flags.intersects(Flags::SYNC)
        && !request.flags.intersects(Flags::IDLE)
}

impl NaiveCfq {
    pub fn new(kernel: &Kernel) -> NaiveCfq {
        NaiveCfq {
            late: kernel.version >= Version::V4_19,
            rotational: true,
            hz: i64::from(kernel.hz.get()),
            quantum: 8,
            fifo_expire: [250 * MS, 125 * MS],
            back_max: 16384,
            penalty: 2,
            slice: [40 * MS, 100 * MS],
            async_rq: 2,
            slice_idle: 8 * MS,
            group_idle: 8 * MS,
            low_latency: true,
            target: 300 * MS,
            processes: BTreeMap::new(),
            groups: BTreeMap::new(),
            queues: Vec::new(),
            requests: BTreeMap::new(),
            orders: 0,
            min_vdisktime: 0,
            serving_group: None,
            serving: (BE, ASYNC),
            workload_expires: 0,
            active: None,
            active_process: None,
            timer: None,
            in_driver: 0,
            in_flight: [0, 0],
            hw_tag: None,
            deepest: 0,
            samples: 0,
            last_position: 0,
            last_delayed_sync: 0,
        }
    }

    pub(super) fn order(&mut self) -> u64 {
        self.orders += 1;
        self.orders
    }

    pub(super) fn tick(&self) -> i64 {
        1_000_000_000 / self.hz
    }

    pub(super) fn busy(&self) -> usize {
        self.queues.iter().filter(|queue| queue.on_rr).count()
    }

    pub(super) fn kind(&self, q: usize) -> usize {
        match (self.queues[q].sync, self.queues[q].idle_window) {
            (false, _) => ASYNC,
            (true, false) => SYNC_NOIDLE,
            (true, true) => SYNC,
        }
    }

    /// Queues of a tree in order.
    pub(super) fn tree(&self, group: u32, class: usize, kind: usize) -> Vec<usize> {
        let is_in = |q: &usize| {
            let queue = &self.queues[*q];
            let fits =
                queue.place.is_some_and(|(_, _, c, k)| c == class && (k == kind || c == IDLE));
            queue.group == group && fits
        };
        let mut tree: Vec<usize> = (0..self.queues.len()).filter(is_in).collect();
        tree.sort_by_key(|q| self.queues[*q].place.map(|(key, order, ..)| (key, order)));
        tree
    }

    pub(super) fn count(&self, group: u32, class: usize) -> i64 {
        let kinds = if class == IDLE { 1 } else { 3 };
        (0..kinds).map(|kind| self.tree(group, class, kind).len() as i64).sum()
    }

    pub(super) fn tree_think(&mut self, q: usize) -> &mut Think {
        let (class, kind) = match self.queues[q].place {
            Some((_, _, class, kind)) => (class, kind),
            None => (self.queues[q].class, self.kind(q)),
        };
        let kind = if class == IDLE { 0 } else { kind };
        let group = self.queues[q].group;
        &mut self.groups.get_mut(&group).expect("it is there").tree_think[class][kind]
    }

    pub(super) fn group(&mut self, id: u32) -> &mut Group {
        self.groups.get_mut(&id).expect("a group that was seen")
    }

    pub(super) fn find_group(&mut self, cx: &Cx<'_>, id: u32) {
        if !self.groups.contains_key(&id) {
            let parent = cx.cgroup(block::CgroupId(id)).parent.map(|parent| parent.0);
            if let Some(parent) = parent {
                self.find_group(cx, parent);
            }
            self.groups.insert(id, Group { parent, ..Group::default() });
        }
    }

    /// Where bios of a group go: up to the first that is there.
    fn living(&self, mut id: u32) -> u32 {
        while self.groups[&id].gone {
            id = self.groups[&id].parent.expect("the root is there");
        }
        id
    }

    // Rules cfq-bind

    pub(super) fn queue_of_bio(&self, bio: &Bio) -> Option<usize> {
        self.processes.get(&bio.origin.io_context.0)?.queues[usize::from(bio.is_sync())]
    }

    pub(super) fn must_queue(&mut self, cx: &Cx<'_>, bio: &Bio) -> bool {
        let id = bio.origin.io_context.0;
        let Some(q) = self.queue_of_bio(bio) else { return false };
        self.init_prio(cx, q, id);
        let queue = &mut self.queues[q];
        (queue.class, queue.level) = queue.own;
        if bio.flags.intersects(Flags::PRIO) {
            queue.class = if queue.class == IDLE { BE } else { queue.class };
            queue.level = queue.level.min(4);
        }
        let must = queue.wait_request && !queue.must_alloc;
        queue.must_alloc |= must;
        must
    }

    pub(super) fn init_prio(&mut self, cx: &Cx<'_>, q: usize, process: u32) {
        let context = cx.io_context(block::IoContextId(process));
        let queue = &mut self.queues[q];
        if queue.prio_changed {
            queue.prio_changed = false;
            queue.own = class_of(&context);
            (queue.class, queue.level) = queue.own;
            queue.idle_window &= context.ioprio.class != IoprioClass::Idle;
        }
    }

    pub(super) fn bind_request(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let request = cx.request(rq);
        let (id, group) = (request.origin.io_context.0, request.origin.cgroup.0);
        let sync = request.is_sync();
        let context = cx.io_context(request.origin.io_context);
        let fresh = Process {
            queues: [None; 2],
            think: Think { last_end: now(cx), ..Think::default() },
            ioprio: context.ioprio,
            group: None,
        };
        let process = self.processes.entry(id).or_insert(fresh);
        let mut dropped = Vec::new();
        if process.ioprio != context.ioprio {
            process.ioprio = context.ioprio;
            dropped.extend(process.queues[0].take());
            if let Some(q) = process.queues[1] {
                self.queues[q].prio_changed = true;
            }
        }
        if process.group.replace(group).is_some_and(|before| before != group) {
            dropped.extend(process.queues[0].take());
            dropped.extend(process.queues[1].take());
        }
        for q in dropped {
            self.put(cx, q);
        }
        self.find_group(cx, group);
        let group = self.living(group);
        let q = match self.processes[&id].queues[usize::from(sync)] {
            Some(q) => q,
            None => {
                let q = self.get_queue(cx, id, group, sync);
                self.processes.get_mut(&id).expect("it is").queues[usize::from(sync)] = Some(q);
                self.queues[q].refs += 1;
                q
            }
        };
        self.queues[q].refs += 1;
        let rq_state = Rq { queue: q, process: id, expires: 0, at: (Sector(0), 0) };
        self.requests.insert(rq, rq_state);
    }

    pub(super) fn get_queue(&mut self, cx: &Cx<'_>, process: u32, group: u32, sync: bool) -> usize {
        let (class, level) = class_of(&cx.io_context(block::IoContextId(process)));
        let shared = (class, if class == IDLE { 0 } else { level as u8 });
        if !sync && let Some(q) = self.group(group).shared.get(&shared) {
            return *q;
        }
        self.queues.push(Queue {
            group,
            sync,
            class: BE,
            level: 4,
            own: (BE, 4),
            prio_changed: true,
            refs: 0,
            idle_window: sync && class != IDLE,
            on_rr: false,
            place: None,
            fifo: Vec::new(),
            next: None,
            wait_request: false,
            wait_busy: false,
            must_dispatch: false,
            must_alloc: false,
            fifo_checked: false,
            slice_new: false,
            deep: false,
            dispatch_start: 0,
            slice_start: 0,
            slice_end: 0,
            allocated: 0,
            slice_dispatch: 0,
            resid: 0,
            dispatched: 0,
            history: 0,
            last_end: 0,
        });
        let q = self.queues.len() - 1;
        self.init_prio(cx, q, process);
        if !sync {
            self.group(group).shared.insert(shared, q);
            self.queues[q].refs += 1;
        }
        q
    }

    pub(super) fn put(&mut self, cx: &Cx<'_>, q: usize) {
        self.queues[q].refs -= 1;
        if self.queues[q].refs == 0 && self.active == Some(q) {
            self.expire(cx, q, false);
        }
    }
}
