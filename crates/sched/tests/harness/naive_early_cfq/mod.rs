//! CFQ of 2.6.28 and 2.6.32 once more, after the text of the specification
//! (`docs/rules/cfq-early.md` has what is implemented of it): every queue is looked at for every
//! question. It shares no code with the scheduler.
//!
//! Not here are the cooperators of 2.6.32: which of two close queues is found depends on the shape
//! of a tree. So whoever compares keeps processes apart there; 2.6.28 needs no such care.

mod seam;
mod turns;

use super::naive_cfq::{BE, IDLE, RT, class_of};
use base::Sector;
use block::{Bio, Cx, Flags, IoContextId, Ioprio, IoprioClass, Kernel, RequestId, Version};
use std::collections::BTreeMap;

/// Rules cfq-early-think: exponential means of weight 1/8, fixed point 256.
#[derive(Clone, Copy, Default)]
struct Think {
    last_end: i64,
    samples: i64,
    total: i64,
    mean: i64,
}

#[derive(Clone, Copy, Default)]
struct Seek {
    last_end: i64,
    samples: i64,
    total: i64,
    mean: i64,
}

impl Seek {
    fn add(&mut self, distance: i64, end: i64) {
        let far = if self.samples <= 60 { 2_097_152 } else { 131_072 };
        let distance = distance.min(4 * self.mean + far);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * distance) / 8;
        self.mean = (self.total + self.samples / 2) / self.samples;
        self.last_end = end;
    }

    fn is_seeky(&self) -> bool {
        self.mean > 8192
    }

    fn is_valid(&self) -> bool {
        self.samples > 80
    }
}

struct Process {
    queues: [Option<usize>; 2],
    think: Think,
    seek: Seek,
    ioprio: Ioprio,
}

struct Queue {
    sync: bool,
    class: usize,
    level: i64,
    prio_changed: bool,
    refs: i64,
    idle_window: bool,
    /// Rank of its class, key, order among equal keys: while it has requests.
    place: Option<(u8, i64, u64)>,
    fifo: Vec<RequestId>,
    next: Option<RequestId>,
    wait_request: bool,
    must_dispatch: bool,
    must_alloc: bool,
    fifo_checked: bool,
    slice_new: bool,
    slice_end: i64,
    resid: i64,
    moved_in_turn: i64,
    dispatched: i64,
    seek: Seek,
}

struct Rq {
    queue: usize,
    process: u32,
    expires: i64,
    /// Where it stands: its first sector when it was sorted in.
    at: Sector,
}

/// CFQ without groups, written down twice. Times are in jiffies.
pub struct NaiveEarlyCfq {
    /// 2.6.28, and not 2.6.32.
    first: bool,
    tick: i64,
    hz: i64,
    quantum: i64,
    fifo_expire: [i64; 2],
    back_max: i64,
    penalty: i64,
    slice: [i64; 2],
    async_rq: i64,
    slice_idle: i64,
    low_latency: bool,
    processes: BTreeMap<u32, Process>,
    queues: Vec<Queue>,
    requests: BTreeMap<RequestId, Rq>,
    shared: BTreeMap<(usize, u8), usize>,
    orders: u64,
    active: Option<usize>,
    active_process: Option<u32>,
    timer: Option<i64>,
    /// By the queue's kind.
    in_driver: [i64; 2],
    sync_flight: i64,
    hw_tag: bool,
    peak: i64,
    samples: i64,
    last_position: i64,
    last_sync_end: i64,
}

fn sector(at: Sector) -> i64 {
    at.0 as i64
}

impl NaiveEarlyCfq {
    pub fn new(kernel: &Kernel) -> NaiveEarlyCfq {
        let hz = i64::from(kernel.hz.get());
        NaiveEarlyCfq {
            first: kernel.version < Version::V2_6_32,
            tick: 1_000_000_000 / hz,
            hz,
            quantum: 4,
            fifo_expire: [hz / 4, hz / 8],
            back_max: 16_384,
            penalty: 2,
            slice: [(hz / 25).max(1), hz / 10],
            async_rq: 2,
            slice_idle: (hz / 125).max(1),
            low_latency: true,
            processes: BTreeMap::new(),
            queues: Vec::new(),
            requests: BTreeMap::new(),
            shared: BTreeMap::new(),
            orders: 0,
            active: None,
            active_process: None,
            timer: None,
            in_driver: [0, 0],
            sync_flight: 0,
            hw_tag: true,
            peak: 0,
            samples: 0,
            last_position: 0,
            last_sync_end: 0,
        }
    }

    fn now(&self, cx: &Cx<'_>) -> i64 {
        cx.now.as_nanos() as i64 / self.tick
    }

    /// 2 ms, rounded up, for those that seek (rule cfq-early-settings-2).
    fn short_idle(&self) -> i64 {
        self.slice_idle.min((2 * self.hz + 999) / 1_000)
    }

    fn turn(&self, q: usize) -> i64 {
        let queue = &self.queues[q];
        let base = self.slice[usize::from(queue.sync)];
        base + base / 5 * (4 - queue.level)
    }

    fn busy(&self) -> i64 {
        self.queues.iter().filter(|queue| queue.place.is_some()).count() as i64
    }

    fn first_in_tree(&self) -> Option<usize> {
        let busy = (0..self.queues.len()).filter(|q| self.queues[*q].place.is_some());
        busy.min_by_key(|q| self.queues[*q].place)
    }

    fn last_in_tree(&self) -> Option<usize> {
        let busy = (0..self.queues.len()).filter(|q| self.queues[*q].place.is_some());
        busy.max_by_key(|q| self.queues[*q].place)
    }

    fn put_at(&mut self, q: usize, key: i64) {
        let rank = match self.queues[q].class {
            RT => 0,
            BE => 1,
            _ => 2,
        };
        if self.queues[q].place.is_none_or(|(r, k, _)| (r, k) != (rank, key)) {
            self.orders += 1;
            self.queues[q].place = Some((rank, key, self.orders));
        }
    }

    /// Rules cfq-early-place-2 and cfq-early-place-3; `busy` counts the queue itself.
    fn put_in_order(&mut self, cx: &Cx<'_>, q: usize, busy: i64) {
        let now = self.now(cx);
        if self.queues[q].class == IDLE {
            let last = self.last_in_tree().filter(|last| *last != q);
            let behind = last.map_or(now, |last| self.queues[last].place.expect("in the tree").1);
            self.put_at(q, behind + self.hz / 5);
            return;
        }
        let longest = self.slice[1] + self.slice[1] / 5 * 4;
        let resid = std::mem::take(&mut self.queues[q].resid);
        let key = now + (busy - 1) * (longest - self.turn(q));
        self.put_at(q, if self.first { key + resid } else { key - resid });
    }

    // Rules cfq-early-choose

    fn choose(
        &self,
        cx: &Cx<'_>,
        one: Option<RequestId>,
        two: Option<RequestId>,
    ) -> Option<RequestId> {
        let (Some(one), Some(two)) = (one, two) else { return one.or(two) };
        let (a, b) = (cx.request(one), cx.request(two));
        if a.is_sync() != b.is_sync() {
            return Some(if a.is_sync() { one } else { two });
        }
        let meta = |flags: Flags| flags.intersects(Flags::META);
        if meta(a.flags) != meta(b.flags) {
            return Some(if meta(a.flags) { one } else { two });
        }
        let distance = |at: Sector| {
            let ahead = sector(at) - self.last_position;
            match ahead {
                0.. => Some(ahead),
                _ if -ahead <= 2 * self.back_max => Some(-ahead * self.penalty),
                _ => None,
            }
        };
        let first = match (distance(a.sector), distance(b.sector)) {
            (None, None) => a.sector <= b.sector,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(x), Some(y)) if x == y => a.sector >= b.sector,
            (Some(x), Some(y)) => x < y,
        };
        Some(if first { one } else { two })
    }

    fn by_sector(&self, q: usize) -> Vec<RequestId> {
        let mut sorted = self.queues[q].fifo.clone();
        sorted.sort_by_key(|it| self.requests[it].at);
        sorted
    }

    /// Takes a request out; `arriving` is not among those that can follow it yet.
    fn remove(&mut self, cx: &Cx<'_>, rq: RequestId, arriving: Option<RequestId>) {
        let q = self.requests[&rq].queue;
        if self.queues[q].next == Some(rq) {
            let mut sorted = self.by_sector(q);
            sorted.retain(|it| Some(*it) != arriving);
            let at = sorted.iter().position(|it| *it == rq).expect("it is queued");
            let after = sorted.get(at + 1).or_else(|| sorted.first().filter(|it| **it != rq));
            let before = at.checked_sub(1).map(|at| sorted[at]);
            self.queues[q].next = self.choose(cx, after.copied(), before);
        }
        self.queues[q].fifo.retain(|it| *it != rq);
        if self.queues[q].fifo.is_empty() {
            self.queues[q].place = None;
        }
    }

    fn let_go(&mut self, cx: &Cx<'_>, rq: RequestId, arriving: Option<RequestId>) {
        let q = self.requests[&rq].queue;
        self.remove(cx, rq, arriving);
        self.queues[q].dispatched += 1;
        self.sync_flight += i64::from(self.queues[q].sync);
    }

    /// Sorts a request in; one of the queue with the same first sector leaves before.
    fn add(&mut self, cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId> {
        let q = self.requests[&rq].queue;
        let starts = cx.request(rq).sector;
        let mut others = self.queues[q].fifo.iter().filter(|it| **it != rq);
        let alias = others.find(|it| self.requests[it].at == starts).copied();
        if let Some(alias) = alias {
            self.let_go(cx, alias, Some(rq));
        }
        self.requests.get_mut(&rq).expect("bound").at = starts;
        if self.queues[q].place.is_none() {
            let busy = self.busy() + 1;
            self.put_in_order(cx, q, busy);
        }
        self.queues[q].next = self.choose(cx, self.queues[q].next, Some(rq));
        alias.into_iter().collect()
    }

    // Rules cfq-early-bind

    fn queue_of(&self, process: IoContextId, sync: bool) -> Option<usize> {
        self.processes.get(&process.0)?.queues[usize::from(sync)]
    }

    fn init_prio(&mut self, cx: &Cx<'_>, q: usize, process: IoContextId) {
        let queue = &mut self.queues[q];
        if std::mem::take(&mut queue.prio_changed) {
            (queue.class, queue.level) = class_of(&cx.io_context(process));
            queue.idle_window &= queue.class != IDLE;
        }
    }

    fn get_queue(&mut self, cx: &Cx<'_>, process: IoContextId, sync: bool) -> usize {
        let context = cx.io_context(process);
        let level = context.ioprio.level;
        let place = match context.ioprio.class {
            IoprioClass::None => (BE, 4),
            IoprioClass::BestEffort => (BE, level),
            IoprioClass::RealTime => (RT, level),
            IoprioClass::Idle => (IDLE, 0),
        };
        if !sync && let Some(q) = self.shared.get(&place) {
            return *q;
        }
        self.queues.push(Queue {
            sync,
            class: BE,
            level: 4,
            prio_changed: true,
            // A shared queue is kept by the device.
            refs: i64::from(!sync),
            idle_window: sync,
            place: None,
            fifo: Vec::new(),
            next: None,
            wait_request: false,
            must_dispatch: false,
            must_alloc: false,
            fifo_checked: false,
            slice_new: false,
            slice_end: 0,
            resid: 0,
            moved_in_turn: 0,
            dispatched: 0,
            seek: Seek::default(),
        });
        let q = self.queues.len() - 1;
        self.init_prio(cx, q, process);
        if !sync {
            self.shared.insert(place, q);
        }
        q
    }

    fn put(&mut self, cx: &Cx<'_>, q: usize) {
        self.queues[q].refs -= 1;
        if self.queues[q].refs == 0 && self.active == Some(q) {
            self.expire(cx, q, false);
        }
    }

    // Rules cfq-early-think and cfq-early-window

    fn note_arrival(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let (now, id) = (self.now(cx), self.requests[&rq].process);
        let q = self.requests[&rq].queue;
        let (start, end) = (sector(cx.request(rq).sector), sector(cx.request(rq).end()));
        if let Some(process) = self.processes.get_mut(&id) {
            let think = &mut process.think;
            let elapsed = (now - think.last_end).min(2 * self.slice_idle);
            think.samples = (7 * think.samples + 256) / 8;
            think.total = (7 * think.total + 256 * elapsed) / 8;
            think.mean = (think.total + 128) / think.samples;
            let distance = (start - process.seek.last_end).abs();
            process.seek.add(distance, end);
        }
        let seek = &mut self.queues[q].seek;
        let distance = if seek.last_end == 0 { 0 } else { (start - seek.last_end).abs() };
        seek.add(distance, end);
    }

    /// Of the io_context in 2.6.28, of the queue in 2.6.32.
    fn seek_of(&self, process: u32, q: usize) -> Seek {
        match self.processes.get(&process) {
            Some(process) if self.first => process.seek,
            _ => self.queues[q].seek,
        }
    }

    fn update_idle_window(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let (q, process) = (self.requests[&rq].queue, self.requests[&rq].process);
        if !self.queues[q].sync || self.queues[q].class == IDLE {
            return;
        }
        let seek = self.seek_of(process, q);
        let mut limit = self.slice_idle;
        if !self.first && seek.is_valid() && seek.is_seeky() {
            limit = self.short_idle();
        }
        let gone = cx.io_context(IoContextId(process)).tasks == 0;
        let minds = self.first || !self.low_latency;
        let think = self.processes.get(&process).map(|process| process.think);
        if gone || self.slice_idle == 0 || minds && self.hw_tag && seek.is_seeky() {
            self.queues[q].idle_window = false;
        } else if let Some(think) = think.filter(|think| think.samples > 80) {
            self.queues[q].idle_window = think.mean <= limit;
        }
    }
}
