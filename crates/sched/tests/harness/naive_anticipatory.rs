//! Anticipatory once more, after the text of the specification (`docs/rules/anticipatory.md` has
//! what is implemented of it): unsorted lists, one method for each rule, no code shared with the
//! scheduler.

use super::shadow::Naive;
use base::Sector;
use block::{Bio, Cx, Direction, IoContextId, Kernel, RequestId};
use std::collections::BTreeMap;

const ASYNC: usize = 0;
const SYNC: usize = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Off,
    WaitReq,
    WaitNext,
    Finished,
}

/// Rules as-process: exponential, weight 1/8, fixed point 256.
#[derive(Clone, Copy, Default)]
struct Mean {
    samples: i64,
    total: i64,
    mean: i64,
}

/// An "aic".
#[derive(Clone, Copy, Default)]
struct Process {
    exited: bool,
    started: bool,
    running: bool,
    queued: i64,
    dispatched: i64,
    last_end_request: i64,
    last_pos: i64,
    think: Mean,
    seek: Mean,
}

#[derive(Clone, Copy)]
struct Rq {
    process: u32,
    fifo_time: i64,
    /// Where it stands: its first sector when it was sorted in.
    at: Sector,
}

/// Anticipatory, written down twice. Times are in jiffies.
pub struct NaiveAnticipatory {
    hz: i64,
    tick: i64,
    fifo_expire: [i64; 2],
    batch_expire: [i64; 2],
    antic_expire: i64,
    processes: BTreeMap<u32, Process>,
    requests: BTreeMap<RequestId, Rq>,
    /// By kind, in order of arrival.
    fifo: [Vec<RequestId>; 2],
    next: [Option<RequestId>; 2],
    last_sector: [i64; 2],
    last_check: [i64; 2],
    batch: usize,
    expires: i64,
    changed_batch: bool,
    new_batch: bool,
    write_count: i64,
    writes_left: i64,
    write_idled: bool,
    nr_dispatched: i64,
    status: Status,
    start: i64,
    awaited: Option<u32>,
    finished: bool,
    /// In nanoseconds.
    timer: Option<i64>,
    exit_prob: i64,
    exit_no_coop: i64,
    new_think: (i64, i64),
    new_seek: (i64, i64),
}

fn eighth(total: i64, sample: i64) -> i64 {
    (7 * total + 256 * sample) / 8
}

impl NaiveAnticipatory {
    pub fn new(kernel: &Kernel) -> NaiveAnticipatory {
        let hz = i64::from(kernel.hz.get());
        NaiveAnticipatory {
            hz,
            tick: 1_000_000_000 / hz,
            fifo_expire: [hz / 4, hz / 8],
            batch_expire: [hz / 8, hz / 2],
            antic_expire: (hz / 150).max(1),
            processes: BTreeMap::new(),
            requests: BTreeMap::new(),
            fifo: [Vec::new(), Vec::new()],
            next: [None, None],
            last_sector: [0, 0],
            // Long ago, as are ends of batches that there were not.
            last_check: [i64::from(i32::MIN); 2],
            batch: ASYNC,
            expires: 0,
            changed_batch: false,
            new_batch: false,
            write_count: (hz / 8 / 10).max(2),
            writes_left: 0,
            write_idled: false,
            nr_dispatched: 0,
            status: Status::Off,
            start: 0,
            awaited: None,
            finished: false,
            timer: None,
            exit_prob: 0,
            exit_no_coop: 0,
            new_think: (0, 0),
            new_seek: (0, 0),
        }
    }

    fn now(&self, cx: &Cx<'_>) -> i64 {
        cx.now.as_nanos() as i64 / self.tick
    }

    fn kind(cx: &Cx<'_>, rq: RequestId) -> usize {
        usize::from(cx.request(rq).is_sync())
    }

    fn waits(&self) -> bool {
        self.status == Status::WaitReq || self.status == Status::WaitNext
    }

    /// Rules as-process.
    fn feed(&mut self, now: i64, id: u32, from: i64, end: i64) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        if process.running || process.started {
            let mut think = 0;
            if process.running && process.queued + process.dispatched == 0 {
                think = (now - process.last_end_request).min((self.hz + 49) / 50 - 1);
            }
            if process.think.samples == 0 {
                self.new_think.0 = eighth(self.new_think.0, think);
                self.new_think.1 = self.new_think.0 / 256;
                self.exit_prob = 7 * self.exit_prob / 8;
            }
            let mean = &mut process.think;
            mean.samples = eighth(mean.samples, 1);
            mean.total = eighth(mean.total, think);
            mean.mean = (mean.total + 128) / mean.samples;
            let mut distance = (from - process.last_pos).abs();
            let mean = &mut process.seek;
            if mean.samples == 0 {
                self.new_seek.0 = eighth(self.new_seek.0, distance);
                self.new_seek.1 = self.new_seek.0 / 256;
            }
            let far = if mean.samples <= 60 { 2 * 1024 * 1024 } else { 2 * 1024 * 64 };
            distance = distance.min(4 * mean.mean + far);
            mean.samples = eighth(mean.samples, 1);
            mean.total = eighth(mean.total, distance);
            mean.mean = (mean.total + mean.samples / 2) / mean.samples;
        }
        process.last_pos = end;
        process.started = true;
    }

    /// Rule as-order-1.
    fn choose(
        &self,
        cx: &Cx<'_>,
        one: Option<RequestId>,
        two: Option<RequestId>,
        kind: usize,
    ) -> Option<RequestId> {
        let (Some(a), Some(b)) = (one, two) else { return one.or(two) };
        let at = |rq| cx.request(rq).sector.0 as i64;
        let last = self.last_sector[kind];
        let wrapped = |s: i64| s < last && s + 1_048_576 < last;
        let distance = |s: i64| if s >= last { s - last } else { (last - s) * 2 };
        let (s1, s2) = (at(a), at(b));
        let first = match (wrapped(s1), wrapped(s2)) {
            (false, true) => true,
            (true, false) => false,
            (true, true) => s1 <= s2,
            (false, false) if distance(s1) == distance(s2) => s1 >= s2,
            (false, false) => distance(s1) < distance(s2),
        };
        Some(if first { a } else { b })
    }

    fn by_sector(&self, kind: usize) -> Vec<RequestId> {
        let mut sorted = self.fifo[kind].clone();
        sorted.sort_by_key(|rq| self.requests[rq].at);
        sorted
    }

    fn successor(&self, cx: &Cx<'_>, kind: usize, rq: RequestId) -> Option<RequestId> {
        let sorted = self.by_sector(kind);
        let at = sorted.iter().position(|it| *it == rq).expect("it is queued");
        let first = sorted.first().filter(|it| **it != rq);
        let next = sorted.get(at + 1).or(first).copied();
        let previous = at.checked_sub(1).map(|at| sorted[at]);
        self.choose(cx, next, previous, kind)
    }

    fn starting_at(&self, kind: usize, sector: Sector) -> Vec<RequestId> {
        let starts = |rq: &&RequestId| self.requests[*rq].at == sector;
        self.fifo[kind].iter().filter(starts).copied().collect()
    }

    /// Rule as-wait-2.
    fn stop(&mut self) {
        if self.waits() {
            self.timer = None;
            self.status = Status::Finished;
        }
    }

    fn arm(&mut self, cx: &Cx<'_>) {
        self.status = Status::WaitNext;
        let due = (self.start + self.antic_expire) * self.tick;
        self.timer = Some(due.max(cx.now.as_nanos() as i64));
    }

    /// Rule as-batch-7.
    fn let_go(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let (kind, id) = (Self::kind(cx, rq), self.requests[&rq].process);
        self.stop();
        self.status = Status::Off;
        self.last_sector[kind] = cx.request(rq).end().0 as i64;
        if kind == SYNC {
            self.awaited = Some(id);
        } else {
            self.awaited = None;
            self.writes_left = (self.writes_left - 1).max(0);
        }
        self.finished = false;
        self.next[kind] = self.successor(cx, kind, rq);
        self.fifo[kind].retain(|it| *it != rq);
        if let Some(process) = self.processes.get_mut(&id) {
            process.queued -= 1;
            process.dispatched += 1;
        }
        self.nr_dispatched += 1;
    }

    /// Rule as-batch-1.
    fn batch_expired(&self, now: i64) -> bool {
        let no_more = self.batch == ASYNC && self.writes_left == 0;
        !self.changed_batch && !self.new_batch && (now > self.expires || no_more)
    }

    /// Rule as-batch-6.
    fn fifo_expired(&mut self, now: i64, kind: usize) -> bool {
        if now - self.last_check[kind] < self.fifo_expire[kind] {
            return false;
        }
        self.last_check[kind] = now;
        self.fifo[kind].first().is_some_and(|rq| now > self.requests[rq].fifo_time)
    }

    /// Rules as-break-7 and as-break-8.
    fn close(&self, cx: &Cx<'_>, rq: RequestId) -> bool {
        let idle = self.status == Status::Off || !self.finished;
        let delay = if idle { 0 } else { self.now(cx) - self.start };
        let longest = (20 * self.hz + 999) / 1000;
        let delta = match delay {
            0 => 8192,
            _ if delay <= longest && delay <= self.antic_expire => 8192 << delay,
            _ => return true,
        };
        let last = self.last_sector[self.batch];
        let next = cx.request(rq).sector.0 as i64;
        if last <= next + delta / 2 && next <= last + delta {
            return true;
        }
        let process = self.awaited.and_then(|id| self.processes.get(&id));
        let expected = match process {
            Some(process) if process.seek.samples > 0 => process.seek.mean,
            _ => self.new_seek.1,
        };
        expected > (next - last).abs()
    }

    /// Rules as-break.
    fn can_break(&mut self, cx: &Cx<'_>, rq: Option<RequestId>) -> bool {
        let now = self.now(cx);
        let Some(awaited) = self.awaited else { return false };
        if rq.is_some_and(|rq| self.requests[&rq].process == awaited) {
            return true;
        }
        if self.finished && now - self.start >= self.antic_expire {
            return true;
        }
        let Some(process) = self.processes.get(&awaited).copied() else { return false };
        if process.queued > 0 || process.dispatched > 0 {
            return true;
        }
        let fresh = process.think.samples == 0;
        if process.exited && fresh {
            // In 12e and in 12f alike.
            self.exit_prob = eighth(self.exit_prob, 1);
        }
        if let Some(rq) = rq.filter(|rq| Self::kind(cx, *rq) == SYNC && self.close(cx, *rq)) {
            if process.exited {
                self.exit_no_coop = 7 * self.exit_no_coop / 8;
            }
            let request = cx.request(rq);
            self.feed(now, awaited, request.sector.0 as i64, request.end().0 as i64);
            return true;
        }
        if process.exited && self.exit_no_coop > 128 {
            return true;
        }
        if !fresh {
            return process.think.mean > self.antic_expire;
        }
        self.new_think.1 > self.antic_expire || self.exit_prob * self.exit_no_coop > 128 * 256
    }

    /// Rule as-batch-10.
    fn tune(&mut self, now: i64) {
        let batch = self.batch_expire[ASYNC];
        let took = (now - self.expires + batch).max(0);
        if took > batch && !self.write_idled {
            let halves = took > 3 * batch;
            self.write_count -= if halves { (self.write_count + 1) / 2 } else { 1 };
        } else if took < batch && self.writes_left == 0 {
            self.write_count += if 3 * took < batch { self.write_count } else { 1 };
        }
        self.write_count = self.write_count.max(1);
    }

    /// Rules as-batch.
    fn decide(&mut self, cx: &Cx<'_>) -> Option<RequestId> {
        let now = self.now(cx);
        let (reads, writes) = (!self.fifo[SYNC].is_empty(), !self.fifo[ASYNC].is_empty());
        if self.batch == ASYNC && !reads && (self.writes_left == 0 || !writes) {
            self.write_idled = true;
        }
        if !reads && !writes || self.waits() || self.changed_batch {
            return None;
        }
        let mut rq = None;
        if !(reads && writes && self.batch_expired(now)) {
            rq = self.next[self.batch];
            if self.batch == SYNC && self.antic_expire != 0 {
                if self.fifo_expired(now, SYNC) {
                    rq = self.fifo[SYNC].first().copied();
                } else if self.awaited.is_some()
                    && self.status != Status::Finished
                    && !self.can_break(cx, rq)
                {
                    if self.finished {
                        self.arm(cx);
                    } else {
                        self.status = Status::WaitReq;
                    }
                    return None;
                }
            }
            if rq.is_some() && reads && !writes {
                self.expires = now + self.batch_expire[SYNC];
            }
        }
        let mut rq = rq.unwrap_or_else(|| self.start_batch(now, reads, writes));
        if self.fifo_expired(now, self.batch) {
            rq = self.fifo[self.batch][0];
        }
        if self.changed_batch {
            if self.nr_dispatched > 0 {
                return None;
            }
            if self.batch == ASYNC {
                self.expires = now + self.batch_expire[ASYNC];
            } else {
                self.new_batch = true;
            }
            self.changed_batch = false;
        }
        Some(rq)
    }

    /// Rule as-batch-3.
    fn start_batch(&mut self, now: i64, reads: bool, writes: bool) -> RequestId {
        if reads && !(writes && self.batch == SYNC) {
            self.changed_batch |= self.batch == ASYNC;
            self.batch = SYNC;
        } else {
            if self.batch == SYNC {
                self.changed_batch = true;
                self.new_batch = false;
            }
            self.batch = ASYNC;
            self.writes_left = self.write_count;
            self.write_idled = false;
        }
        self.last_check[self.batch] = now;
        self.fifo[self.batch][0]
    }
}

impl Naive for NaiveAnticipatory {
    fn detached(&mut self, _cx: &Cx<'_>) {
        self.timer = None;
    }

    fn set(&mut self, name: &str, value: i64) {
        let jiffies = (value * self.hz + 999) / 1_000;
        match name {
            "read_expire" => self.fifo_expire[SYNC] = jiffies,
            "write_expire" => self.fifo_expire[ASYNC] = jiffies,
            "read_batch_expire" => self.batch_expire[SYNC] = jiffies,
            "write_batch_expire" => self.batch_expire[ASYNC] = jiffies,
            "antic_expire" => self.antic_expire = jiffies,
            _ => panic!("no tunable {name}"),
        }
    }

    fn may_queue(&mut self, _cx: &Cx<'_>, bio: &Bio) -> bool {
        self.waits() && self.awaited == Some(bio.origin.io_context.0)
    }

    fn bind(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let IoContextId(process) = cx.request(rq).origin.io_context;
        let fresh = Process { last_end_request: self.now(cx), ..Process::default() };
        self.processes.entry(process).or_insert(fresh);
        self.requests.insert(rq, Rq { process, fifo_time: 0, at: Sector(0) });
    }

    /// Rules as-wait-7 and as-wait-8: by direction, in the lists by kind.
    fn fronts(&self, _cx: &Cx<'_>, bio: &Bio) -> Vec<RequestId> {
        let place = if bio.direction() == Direction::Write { SYNC } else { ASYNC };
        self.starting_at(place, bio.end())
    }

    fn moved(&mut self, cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId> {
        let kind = Self::kind(cx, rq);
        let mut alias = self.starting_at(kind, cx.request(rq).sector);
        alias.retain(|it| *it != rq);
        alias.iter().for_each(|it| self.let_go(cx, *it));
        self.requests.get_mut(&rq).expect("bound").at = cx.request(rq).sector;
        alias
    }

    fn joined(&mut self, cx: &Cx<'_>, rq: RequestId, next: RequestId) {
        let kind = Self::kind(cx, next);
        if !self.fifo[kind].contains(&next) {
            return;
        }
        if self.next[kind] == Some(next) {
            self.next[kind] = self.successor(cx, kind, next);
        }
        let earlier = self.requests[&next].fifo_time;
        if self.fifo[kind].contains(&rq) && earlier < self.requests[&rq].fifo_time {
            self.fifo[kind].retain(|it| *it != rq);
            let at = self.fifo[kind].iter().position(|it| *it == next).expect("queued");
            self.fifo[kind][at] = rq;
            self.requests.get_mut(&rq).expect("bound").fifo_time = earlier;
        } else {
            self.fifo[kind].retain(|it| *it != next);
        }
        let owner = self.requests[&next].process;
        if let Some(process) = self.processes.get_mut(&owner) {
            process.queued -= 1;
        }
    }

    fn sorted(&self, cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId> {
        self.by_sector(Self::kind(cx, rq))
    }

    /// Rule as-wait-1.
    fn insert(&mut self, cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId> {
        let (kind, owner, now) = (Self::kind(cx, rq), self.requests[&rq].process, self.now(cx));
        let request = cx.request(rq);
        if kind == SYNC {
            self.feed(now, owner, request.sector.0 as i64, request.end().0 as i64);
        }
        if let Some(process) = self.processes.get_mut(&owner) {
            process.queued += 1;
        }
        let fifo_time = now + self.fifo_expire[kind];
        let alias = self.starting_at(kind, request.sector);
        alias.iter().for_each(|it| self.let_go(cx, *it));
        self.requests.insert(rq, Rq { process: owner, fifo_time, at: request.sector });
        self.fifo[kind].push(rq);
        self.next[kind] = self.choose(cx, Some(rq), self.next[kind], kind);
        if self.waits() && self.can_break(cx, Some(rq)) {
            self.stop();
        }
        alias
    }

    fn dispatch(&mut self, cx: &Cx<'_>) -> Vec<RequestId> {
        let chosen = self.decide(cx);
        if let Some(rq) = chosen {
            self.let_go(cx, rq);
        }
        chosen.into_iter().collect()
    }

    fn drain(&mut self, cx: &Cx<'_>) -> Vec<RequestId> {
        self.batch = SYNC;
        self.changed_batch = false;
        self.new_batch = false;
        let mut left = Vec::new();
        for kind in [SYNC, ASYNC] {
            while let Some(rq) = self.next[kind] {
                self.let_go(cx, rq);
                left.push(rq);
            }
        }
        left
    }

    fn activated(&mut self, _cx: &Cx<'_>, rq: RequestId) {
        if let Some(process) = self.processes.get_mut(&self.requests[&rq].process) {
            process.dispatched -= 1;
        }
    }

    fn deactivated(&mut self, rq: RequestId) {
        if let Some(process) = self.processes.get_mut(&self.requests[&rq].process) {
            process.dispatched += 1;
        }
    }

    /// Rules as-batch-5 and as-wait-6.
    fn completed(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let (kind, owner, now) = (Self::kind(cx, rq), self.requests[&rq].process, self.now(cx));
        if self.changed_batch && self.nr_dispatched == 1 {
            self.expires = now + self.batch_expire[self.batch];
            self.changed_batch = false;
            self.new_batch |= self.batch == SYNC;
        }
        self.nr_dispatched -= 1;
        if self.new_batch && kind == self.batch {
            self.tune(now);
            self.expires = now + self.batch_expire[SYNC];
            self.new_batch = false;
        }
        if self.awaited == Some(owner) {
            self.start = now;
            self.finished = true;
            if self.status == Status::WaitReq {
                self.arm(cx);
            }
        }
        if let Some(process) = self.processes.get_mut(&owner).filter(|_| kind == SYNC) {
            process.running = true;
            process.last_end_request = now;
        }
    }

    fn finished(&mut self, _cx: &Cx<'_>, rq: RequestId) {
        self.requests.remove(&rq);
    }

    fn timer(&self) -> Option<i64> {
        self.timer
    }

    /// Rule as-wait-3.
    fn timer_fires(&mut self, _cx: &Cx<'_>) {
        self.timer = None;
        if !self.waits() {
            return;
        }
        self.status = Status::Finished;
        let Some(process) = self.awaited.and_then(|id| self.processes.get(&id)) else { return };
        if process.think.samples == 0 {
            self.exit_prob = eighth(self.exit_prob, 1);
        }
        if process.exited {
            self.exit_no_coop = eighth(self.exit_no_coop, 1);
        }
    }

    fn exit(&mut self, _cx: &Cx<'_>, io_context: u32) {
        if let Some(process) = self.processes.get_mut(&io_context) {
            process.exited = true;
        }
    }

    fn queued(&self) -> usize {
        self.fifo[SYNC].len() + self.fifo[ASYNC].len()
    }

    fn has_work(&self) -> bool {
        self.queued() > 0
    }

    fn describes(&self) -> Option<String> {
        Some(format!("_probability: {}, no_successor: {},", self.exit_prob, self.exit_no_coop))
    }
}
