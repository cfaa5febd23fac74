//! Closed-loop loads: tasks that go on when what they asked for is done, on a disk that takes its
//! time. What happens is a function of the load, and its [`Story`] can be told in a line.

use super::shadow::{Chosen, Shadowed};
use super::{Harness, KERNEL, Table};
use base::{Duration, Fingerprint, Instant, Sector, Sectors};
use block::scheduler::{Cgroup, CpuPolicy, IoContext};
use block::{
    Action, Bio, CgroupId, Command, CommandOp, ContextId, EventLog, Flags, IoContextId, Ioprio,
    Kernel, Op, Origin, PlugFlush, RequestId, Scheduler, Tag,
};
use sched::{Backport, Entry};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A load that does not end after so many moments is stuck.
const MOMENTS: u32 = 60_000;
/// Every so many moments the scheduler says what it holds.
const GLANCE: u32 = 16;

/// How a task goes through its part of the disk.
#[derive(Clone, Copy, Debug)]
pub enum Way {
    Forward,
    Backward,
    /// So many sectors from each request to the next.
    Stride(u64),
    /// Of each four in another order, so that some fill gaps.
    Filling,
    /// Anywhere among so many sectors.
    Random(u64),
}

/// A task; it begins, and goes on, when everything that it asked for is done.
#[derive(Clone, Debug)]
pub struct Task {
    pub op: Op,
    pub flags: Flags,
    /// Of a hundred bios so many are synchronous writes instead, or reads if it writes.
    pub mixed: u64,
    pub sectors: u32,
    pub way: Way,
    pub at: u64,
    /// Bios at once, and whether it plugs them.
    pub batch: u32,
    pub plugs: bool,
    /// So many microseconds between the bios of a batch.
    pub paces: u64,
    /// From when everything is done to when it goes on, in microseconds.
    pub thinks: u64,
    /// Up to so much longer.
    pub jitter: u64,
    /// It goes on by the clock, however long its requests take, `thinks` after it last went on.
    pub isochronous: bool,
    pub begins: u64,
    pub bios: u32,
    pub group: u32,
    pub ioprio: Ioprio,
    pub policy: CpuPolicy,
    /// It shares the io_context of another one.
    pub shares: Option<usize>,
    /// It does not go on by itself, but when this one's requests are done.
    pub woken_by: Option<usize>,
    pub exits: bool,
    pub cpu: u16,
}

impl Task {
    /// A sequential reader of 4 KiB, which never thinks.
    pub fn reader(at: u64) -> Task {
        Task {
            op: Op::Read,
            flags: Flags::NONE,
            mixed: 0,
            sectors: 8,
            way: Way::Forward,
            at,
            batch: 1,
            plugs: false,
            paces: 0,
            thinks: 50,
            jitter: 0,
            isochronous: false,
            begins: 0,
            bios: 100,
            group: 0,
            ioprio: Ioprio::NONE,
            policy: CpuPolicy::Normal,
            shares: None,
            woken_by: None,
            exits: false,
            cpu: 0,
        }
    }

    /// One that writes instead.
    pub fn writer(at: u64, flags: Flags) -> Task {
        Task { op: Op::Write, flags, ..Task::reader(at) }
    }
}

/// What happens at a time, from outside.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    Set(&'static str, i64),
    Priority {
        task: usize,
        ioprio: Ioprio,
    },
    Move {
        task: usize,
        group: u32,
    },
    Weigh {
        group: u32,
        weight: u32,
    },
    Remove(u32),
    /// With its requests out.
    Exit(usize),
    /// The oldest command is given back.
    Requeue,
    /// A writer of the page cache pauses.
    Pause,
    /// A task goes on elsewhere, in another way.
    Turn {
        task: usize,
        at: u64,
        way: Way,
    },
    Think {
        task: usize,
        micros: u64,
    },
    /// The scheduler goes, when all is done, and comes anew.
    Renew,
}

/// How long commands take.
#[derive(Clone, Copy, Debug)]
pub enum Service {
    /// One by one, with seeks of up to 8 ms and 100 MB/s.
    Disk,
    /// All at once, in 60 to 120 µs and at 500 MB/s each.
    Flash,
}

/// A load.
#[derive(Clone, Debug)]
pub struct Load {
    pub name: String,
    pub service: Service,
    pub table: Table,
    pub nr_requests: i64,
    /// The kernel throttles writeback by default.
    pub throttles: bool,
    /// Parent and weight; the first one is group 1.
    pub groups: Vec<(u32, u32)>,
    pub tasks: Vec<Task>,
    /// Microseconds, and what happens then.
    pub changes: Vec<(u64, Change)>,
    pub seed: u64,
}

/// What a load came to.
#[derive(Default)]
pub struct Story {
    fingerprint: Fingerprint,
    dispatches: u32,
    merges: u32,
    holds: u32,
    sleeps: u32,
    messages: u32,
    text: String,
}

/// Of what has been taken down, what the load goes on by.
#[derive(Default)]
struct Told {
    dispatched: Vec<Option<RequestId>>,
    is_done: bool,
}

impl Story {
    /// Takes down what has happened.
    fn tell(&mut self, harness: &mut Harness) -> Told {
        let mut told = Told::default();
        for event in harness.take_events() {
            match event.action {
                Action::Dispatch(_) => {
                    self.dispatches += 1;
                    told.dispatched.push(event.request);
                }
                Action::BioDone { .. } => told.is_done = true,
                Action::BackMerge | Action::FrontMerge | Action::Join { .. } => self.merges += 1,
                Action::Hold { .. } => self.holds += 1,
                Action::Sleep | Action::Throttled { .. } => self.sleeps += 1,
                Action::Message { .. } => self.messages += 1,
                _ => {}
            }
            self.text.clear();
            write!(self.text, "{:?} of {:?}", event.action, event.context).expect("into memory");
            self.fingerprint.mix(event.at.as_nanos());
            self.fingerprint.mix(event.sector.0);
            self.fingerprint.mix_bytes(self.text.as_bytes());
        }
        let timer = harness.queue.next_timer().map_or(0, Instant::as_nanos);
        self.fingerprint.mix(timer);
        told
    }

    fn glance(&mut self, harness: &mut Harness) {
        let state = harness.queue.describe_scheduler(harness.now);
        self.fingerprint.mix_bytes(state.as_bytes());
    }

    /// What it was, in columns.
    fn line(&self, ended: Instant) -> String {
        let Story { dispatches, merges, holds, sleeps, messages, .. } = self;
        let millis = ended.as_nanos() / 1_000_000;
        format!(
            "{dispatches:5} dispatches {merges:4} merges {holds:5} holds {sleeps:4} sleeps \
             {messages:6} messages {millis:6} ms  {:016x}",
            self.fingerprint.finish()
        )
    }
}

/// A task as it goes on.
struct Going {
    task: Task,
    io_context: u32,
    /// When it goes on, unless it waits for its requests or to be woken.
    next: Option<u64>,
    /// Bios that it has not submitted, of all and of this batch.
    left: u32,
    due: u32,
    /// When the next one of the batch comes, if it does not yet.
    paced: Option<u64>,
    out: u32,
    plugged: bool,
    gone: bool,
}

struct Run<'l> {
    load: &'l Load,
    harness: Harness,
    build: Box<dyn Fn() -> Option<Box<dyn Scheduler>> + 'l>,
    chosen: Option<Chosen>,
    going: Vec<Going>,
    io_contexts: Vec<IoContext>,
    changes: Vec<(u64, Change)>,
    /// Of commands with the device, when they are done.
    dues: BTreeMap<Tag, u64>,
    head: u64,
    free_at: u64,
    rng: base::Rng,
    /// Bios that are not done, and whose they are.
    out: Vec<(u64, usize)>,
    tokens: u64,
    story: Story,
    ended: Instant,
}

impl Load {
    /// Does all of it with a scheduler that is given changes of later kernels; what it came to, in
    /// a line.
    pub fn run(
        &self,
        entry: &'static Entry,
        kernel: &'static Kernel,
        given: &[&'static Backport],
    ) -> String {
        let build = || entry.build_with(kernel, given).expect("the kernel has it");
        self.go(kernel, Box::new(build), None)
    }

    /// Does all of it beside the naive twin of the scheduler.
    pub fn run_beside_twin(&self, name: &'static str, kernel: &'static Kernel) {
        let chosen = Chosen::default();
        let watched = chosen.clone();
        let build = move || Some(Shadowed::around(name, kernel, &watched));
        self.go(kernel, Box::new(build), Some(chosen));
    }

    fn go<'l>(
        &'l self,
        kernel: &'static Kernel,
        build: Box<dyn Fn() -> Option<Box<dyn Scheduler>> + 'l>,
        chosen: Option<Chosen>,
    ) -> String {
        let mut harness = Harness::new(kernel, self.table, build());
        *harness.queue.log() = EventLog::with_messages();
        let mut changes = self.changes.clone();
        changes.sort_by_key(|change| change.0);
        let mut run = Run {
            load: self,
            harness,
            build,
            chosen,
            going: Vec::new(),
            io_contexts: Vec::new(),
            changes,
            dues: BTreeMap::new(),
            head: 0,
            free_at: 0,
            rng: base::Rng::stream(self.seed, &self.name),
            out: Vec::new(),
            tokens: 0,
            story: Story::default(),
            ended: Instant::ZERO,
        };
        run.begin();
        for moment in 0.. {
            assert!(moment < MOMENTS, "{}: it does not end", self.name);
            if moment % GLANCE == 0 {
                run.story.glance(&mut run.harness);
            }
            if !run.moment() {
                break;
            }
        }
        run.end();
        run.story.line(run.ended)
    }
}

fn micros(at: Instant) -> u64 {
    at.as_nanos().div_ceil(1_000)
}

fn context(task: usize) -> ContextId {
    ContextId(task as u32 + 1)
}

impl Run<'_> {
    fn begin(&mut self) {
        self.set("nr_requests", self.load.nr_requests);
        if self.load.throttles {
            self.harness.queue.throttle_by_default(self.harness.now);
        }
        for (at, (parent, weight)) in self.load.groups.iter().enumerate() {
            self.define_group(at as u32 + 1, *parent, *weight);
        }
        for task in &self.load.tasks {
            let io_context = match task.shares {
                Some(other) => self.going[other].io_context,
                None => self.io_contexts.len() as u32,
            };
            if task.shares.is_none() {
                let Task { ioprio, policy, .. } = *task;
                self.io_contexts.push(IoContext { ioprio, policy, tasks: 1, nice: 0 });
                self.define_io_context(io_context);
            }
            let next = task.woken_by.is_none().then_some(task.begins);
            let (task, left) = (task.clone(), task.bios);
            self.going.push(Going {
                task,
                io_context,
                next,
                left,
                due: 0,
                paced: None,
                out: 0,
                plugged: false,
                gone: false,
            });
        }
    }

    fn define_io_context(&mut self, id: u32) {
        let value = self.io_contexts[id as usize];
        self.harness.queue.define_io_context(IoContextId(id), value);
    }

    fn define_group(&mut self, id: u32, parent: u32, weight: u32) {
        let (path, parent) = (format!("/{id}"), Some(CgroupId(parent)));
        let value = Cgroup { path, parent, weight: Some(weight), leaf_weight: Some(weight) };
        self.harness.queue.define_cgroup(CgroupId(id), value);
    }

    /// Not every kernel has each tunable.
    fn set(&mut self, name: &str, value: i64) {
        let _ = self.harness.set(name, value);
    }

    /// The next moment at which something happens; false if nothing will.
    fn moment(&mut self) -> bool {
        let timer = self.harness.queue.next_timer().map(micros);
        let tasks = self.going.iter().flat_map(|it| it.next.into_iter().chain(it.paced));
        let changes = self.changes.first().map(|change| change.0);
        let now = micros(self.harness.now);
        // The driver tries again within this time, if it does.
        let again = self.harness.has_pending_run().then_some(now + 500);
        let events = tasks.chain(self.dues.values().copied()).chain(timer).chain(changes);
        let Some(next) = events.chain(again).min() else { return false };
        let then = Instant::ZERO + Duration::from_micros(next.max(now));
        self.harness.advance_to(then.max(self.harness.now));
        self.note();
        self.complete_due(next);
        while self.changes.first().is_some_and(|change| change.0 <= next) {
            let (_, change) = self.changes.remove(0);
            self.change(change);
            self.note();
        }
        for task in 0..self.going.len() {
            if self.going[task].next.is_some_and(|at| at <= next) {
                self.begin_batch(task, next);
            }
            self.going[task].paced.take_if(|at| *at <= next);
            self.submit_due(task);
        }
        true
    }

    fn complete_due(&mut self, now: u64) {
        loop {
            let due = self.dues.iter().filter(|it| *it.1 <= now);
            let Some((tag, _)) = due.min_by_key(|it| (*it.1, *it.0)) else { break };
            let tag = *tag;
            self.dues.remove(&tag);
            let at = self.harness.in_flight.iter().position(|command| command.tag == tag);
            self.harness.complete(at.expect("it is with the device"));
            self.ended = self.harness.now;
            self.note();
        }
    }

    /// What has happened: commands reach the device, and bios are done.
    fn note(&mut self) {
        let told = self.story.tell(&mut self.harness);
        if let Some(chosen) = &self.chosen {
            for request in told.dispatched {
                let expected = chosen.lock().unwrap().pop_front();
                assert_eq!(expected, request, "{}: who leaves", self.load.name);
            }
        }
        if self.harness.in_flight.len() > self.dues.len() {
            let known = |command: &Command| self.dues.contains_key(&command.tag);
            let commands = self.harness.in_flight.iter().copied();
            let fresh: Vec<Command> = commands.filter(|command| !known(command)).collect();
            for command in fresh {
                let due = self.serve(&command);
                self.dues.insert(command.tag, due);
            }
        }
        if told.is_done {
            let done = &self.harness.done;
            let is_done = |it: &mut (u64, usize)| done.contains_key(&it.0);
            let gone: Vec<_> = self.out.extract_if(.., is_done).collect();
            gone.into_iter().for_each(|(_, task)| self.bio_done(task));
        }
    }

    /// When a command is done that has reached the device now.
    fn serve(&mut self, command: &Command) -> u64 {
        let now = micros(self.harness.now);
        let (sector, sectors) = (command.sector.0, u64::from(command.sectors.0));
        if command.op == CommandOp::Flush {
            return now + 300;
        }
        match self.load.service {
            Service::Disk => {
                let way = sector.abs_diff(self.head);
                // Shorter than the longest way by the square root; then half a turn on average.
                let seek = match way {
                    0 => 0,
                    _ => 500 + way.isqrt().min(6_000) + sector % 97 * 20,
                };
                let done = self.free_at.max(now) + seek + sectors * 5 + 20;
                (self.head, self.free_at) = (sector + sectors, done);
                done
            }
            Service::Flash => now + 60 + sector / 8 % 61 + sectors,
        }
    }

    fn bio_done(&mut self, task: usize) {
        self.going[task].out -= 1;
        if self.going[task].out > 0 || self.going[task].due > 0 {
            return;
        }
        let now = micros(self.harness.now);
        self.go_on(task, now, false);
        for woken in 0..self.going.len() {
            if self.going[woken].task.woken_by == Some(task) {
                self.go_on(woken, now, true);
            }
        }
    }

    /// A task thinks, and then goes on, if it has something to do.
    fn go_on(&mut self, task: usize, now: u64, is_woken: bool) {
        let jitter = self.rng.below(self.going[task].task.jitter + 1);
        let it = &mut self.going[task];
        let waits = it.out > 0 || it.due > 0 || it.next.is_some();
        if it.task.woken_by.is_some() != is_woken || it.task.isochronous || waits || it.gone {
            return;
        }
        if it.left > 0 {
            it.next = Some(now + it.task.thinks + jitter);
        } else if it.task.exits {
            self.exit(task);
        }
    }

    fn begin_batch(&mut self, task: usize, now: u64) {
        let it = &mut self.going[task];
        it.next = None;
        if it.gone {
            return;
        }
        let batch = it.task.batch.min(it.left);
        it.left -= batch;
        it.due += batch;
        if it.task.isochronous && it.left > 0 {
            it.next = Some(now + it.task.thinks.max(1));
        }
        let is_awake = !self.harness.asleep.contains(&context(task));
        let it = &mut self.going[task];
        if it.task.plugs && !it.plugged && is_awake {
            it.plugged = true;
            self.harness.start_plug(context(task));
        }
    }

    /// Submits what is due, until the task falls asleep or pauses.
    fn submit_due(&mut self, task: usize) {
        while self.going[task].due > 0
            && self.going[task].paced.is_none()
            && !self.harness.asleep.contains(&context(task))
        {
            let now = micros(self.harness.now);
            let it = &mut self.going[task];
            it.due -= 1;
            it.out += 1;
            it.paced = (it.task.paces > 0 && it.due > 0).then_some(now + it.task.paces);
            let bio = self.next_bio(task);
            self.out.push((bio.token, task));
            self.harness.submit(bio);
            self.note();
        }
        self.unplug(task);
    }

    fn unplug(&mut self, task: usize) {
        let is_awake = !self.harness.asleep.contains(&context(task));
        let it = &mut self.going[task];
        if it.plugged && it.due == 0 && is_awake {
            it.plugged = false;
            let cpu = it.task.cpu;
            self.harness.finish_plug(context(task), cpu, PlugFlush::Explicit);
            self.note();
        }
    }

    fn next_bio(&mut self, task: usize) -> Bio {
        let is_mixed = self.rng.chance(self.going[task].task.mixed, 100);
        let draw = self.rng.next_u64();
        let Going { task: it, io_context, left, due, .. } = &mut self.going[task];
        let length = u64::from(it.sectors);
        let place = [2, 0, 1, 3][(*left + *due) as usize % 4];
        let sector = match it.way {
            Way::Random(span) => it.at + draw % span / 8 * 8,
            // Where the four begin whose places these are.
            Way::Filling => it.at / (4 * length) * 4 * length + place * length,
            _ => it.at,
        };
        match it.way {
            Way::Forward | Way::Filling => it.at += length,
            Way::Backward => it.at = it.at.saturating_sub(length),
            Way::Stride(step) => it.at += step,
            Way::Random(_) => {}
        }
        let (op, flags) = match (is_mixed, it.op) {
            (false, op) => (op, it.flags),
            (true, Op::Read) => (Op::Write, Flags::SYNC),
            (true, _) => (Op::Read, Flags::NONE),
        };
        self.tokens += 1;
        Bio {
            op,
            flags,
            sector: Sector(sector),
            sectors: Sectors(it.sectors),
            ioprio: Ioprio::NONE,
            origin: Origin {
                context: context(task),
                io_context: IoContextId(*io_context),
                cgroup: CgroupId(it.group),
                cpu: it.cpu,
            },
            token: self.tokens,
        }
    }
}

impl Run<'_> {
    fn change(&mut self, change: Change) {
        match change {
            Change::Set(name, value) => self.set(name, value),
            Change::Priority { task, ioprio } => {
                let id = self.going[task].io_context;
                self.io_contexts[id as usize].ioprio = ioprio;
                self.define_io_context(id);
            }
            Change::Move { task, group } => self.going[task].task.group = group,
            Change::Weigh { group, weight } => {
                let parent = self.load.groups[group as usize - 1].0;
                self.define_group(group, parent, weight);
            }
            Change::Remove(group) => self.remove(group),
            Change::Exit(task) => self.exit(task),
            Change::Requeue => {
                let commands = &self.harness.in_flight;
                let at = commands.iter().position(|command| command.op != CommandOp::Flush);
                if let Some(at) = at {
                    self.dues.remove(&self.harness.in_flight[at].tag);
                    self.harness.requeue(at);
                }
            }
            Change::Pause => self.harness.queue.note_dirty_pause(self.harness.now),
            Change::Turn { task, at, way } => {
                self.going[task].task.at = at;
                self.going[task].task.way = way;
            }
            Change::Think { task, micros } => self.going[task].task.thinks = micros,
            Change::Renew => {
                self.drain();
                let fresh = (self.build)();
                self.harness.switch(fresh);
            }
        }
    }

    /// As rmdir: nobody is in it any more.
    fn remove(&mut self, group: u32) {
        for it in &mut self.going {
            if it.task.group == group {
                it.task.group = 0;
            }
        }
        let now = self.harness.now;
        self.harness.queue.remove_cgroup(now, KERNEL, CgroupId(group));
        self.harness.settle(KERNEL);
    }

    /// Those that share its io_context go on with it.
    fn exit(&mut self, task: usize) {
        if std::mem::replace(&mut self.going[task].gone, true) {
            return;
        }
        self.going[task].next = None;
        let id = self.going[task].io_context;
        if self.going.iter().any(|other| other.io_context == id && !other.gone) {
            return;
        }
        self.io_contexts[id as usize].tasks = 0;
        let now = self.harness.now;
        self.harness.queue.exit_io_context(now, context(task), IoContextId(id));
        self.harness.settle(context(task));
        self.note();
    }

    /// Everything that was asked for is done.
    fn drain(&mut self) {
        for round in 0.. {
            assert!(
                round < 20_000,
                "{}: the queue does not run dry on {}: {} requests, {:?} sleep at {}",
                self.load.name,
                self.harness.queue.kernel().version,
                self.harness.queue.allocated(),
                self.harness.asleep,
                self.harness.now
            );
            for task in 0..self.going.len() {
                self.going[task].paced = None;
                self.submit_due(task);
            }
            if self.harness.queue.allocated() == 0 && self.harness.asleep.is_empty() {
                return;
            }
            let now = micros(self.harness.now);
            let timer = self.harness.queue.next_timer().map(micros);
            let next = self.dues.values().copied().chain(timer).min();
            let next = next.unwrap_or(now + 1_000).clamp(now, now + 1_000);
            let then = Instant::ZERO + Duration::from_micros(next);
            self.harness.advance_to(then.max(self.harness.now));
            self.note();
            self.complete_due(next);
        }
    }

    /// All has been done once, and all processes exit.
    fn end(&mut self) {
        self.drain();
        self.harness.queue.assert_drained();
        let once =
            (1..=self.tokens).all(|token| self.harness.done.get(&token).map(|it| it.0) == Some(1));
        assert!(once, "{}: each bio is done once", self.load.name);
        (0..self.going.len()).for_each(|task| self.exit(task));
        self.harness.advance_to(self.harness.now + Duration::from_secs(1));
        self.note();
        self.story.glance(&mut self.harness);
    }
}
