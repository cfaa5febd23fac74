//! A queue is a function of its inputs: a thousand random runs replay exactly, and none loses or
//! duplicates anything.

mod common;

use base::{Duration, Instant, Rng, Sector, Sectors};
use block::kernel::{Hierarchy, Shape};
use block::scheduler::{Cgroup, Placement};
use block::throttle::{IoMax, Limit};
use block::{
    Action, Attach, Bio, CgroupId, ContextId, Event, EventLog, Facts, Flags, IoContextId, Ioprio,
    IoprioClass, KERNELS, Kernel, Op, Origin, Output, PlugFlush, RequestQueue, Step, Tag,
    Transport,
};
use common::{Fifo, INTERRUPT, RELEASER, WORKER, facts, releaser};

/// What a run is made of, drawn from a seed.
struct Plan {
    kernel: &'static Kernel,
    facts: Facts,
    kind: u64,
    unified: bool,
}

impl Plan {
    fn draw(rng: &mut Rng) -> Plan {
        let kernel = &KERNELS[rng.below(KERNELS.len() as u64) as usize];
        let transports =
            [Transport::Sata, Transport::Scsi, Transport::Nvme, Transport::Virtio, Transport::Loop];
        let facts = Facts {
            transport: transports[rng.below(5) as usize],
            rotational: rng.below(2) == 0,
            volatile_cache: rng.below(2) == 0,
            fua: rng.below(2) == 0,
            queue_depth: 1 + rng.below(40) as u32,
            hardware_queues: 1 + rng.below(3) as u32,
            max_hw_sectors: Sectors(16 + rng.below(3000) as u32),
            chunk_sectors: Sectors(if rng.below(4) == 0 { 64 } else { 0 }),
            segment: Facts::PAGE,
            ..facts()
        };
        Plan { kernel, facts, kind: rng.below(3), unified: rng.below(2) == 0 }
    }

    fn attach(&self) -> Attach {
        let placement = if self.kind == 0 { Placement::Tail } else { Placement::Sorted };
        match (self.kernel.has(Shape::Single), self.kernel.has(Shape::Multi)) {
            (true, true) if self.kind == 2 => Fifo::attach(Shape::Multi, placement),
            (true, _) => Fifo::attach(Shape::Single, placement),
            (false, _) if self.kind == 1 => Attach::none(),
            (false, _) => Fifo::attach(Shape::Multi, placement),
        }
    }

    fn queue(&self) -> RequestQueue {
        let log = EventLog::with_messages();
        let mut queue = RequestQueue::new(self.kernel, self.facts.clone(), self.attach(), 2, log);
        queue.prepare_limits(self.kind, if self.unified { UNIFIED } else { SEPARATE });
        for group in 0..GROUPS as u32 {
            let parent = group.checked_sub(1).map(CgroupId);
            let path = format!("/{group}");
            queue.define_cgroup(CgroupId(group), Cgroup { path, parent, ..Cgroup::default() });
        }
        queue
    }
}

const TASKS: u64 = 5;
const GROUPS: u64 = 3;
const UNIFIED: Hierarchy = Hierarchy::Unified;
const SEPARATE: Hierarchy = Hierarchy::Separate;

/// A run under way.
struct Run {
    plan: Plan,
    queue: RequestQueue,
    rng: Rng,
    now: Instant,
    device: Vec<Tag>,
    events: Vec<Event>,
    plugged: [bool; TASKS as usize],
    submitted: u64,
    done: u64,
    worker: bool,
    /// The worker of limits is asked for, or at work.
    releases: bool,
    releasing: bool,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut rng = Rng::stream(seed, "replay");
        let plan = Plan::draw(&mut rng);
        let mut queue = plan.queue();
        queue.record_inputs();
        Run {
            plan,
            queue,
            rng,
            now: Instant::ZERO,
            device: Vec::new(),
            events: Vec::new(),
            plugged: [false; TASKS as usize],
            submitted: 0,
            done: 0,
            worker: false,
            releases: false,
            releasing: false,
        }
    }

    fn step(&mut self) {
        self.now += Duration::from_nanos(self.rng.below(700_000));
        let task = self.rng.below(TASKS) as u32;
        let context = ContextId(task);
        let busy = self.queue.next_work(context).is_some();
        match self.rng.below(12) {
            0..=4 if !busy => {
                let bio = self.bio(task);
                self.submitted += 1;
                self.queue.submit(self.now, bio);
                self.pieces(context);
            }
            5 if !busy && !self.plugged[task as usize] => {
                self.plugged[task as usize] = true;
                self.queue.start_plug(context);
            }
            6 if !busy && self.plugged[task as usize] => self.unplug(task),
            7 if !self.device.is_empty() && self.rng.below(10) == 0 => {
                let tag = self.take_command();
                self.queue.requeue(self.now, INTERRUPT, 0, tag);
                self.drain(INTERRUPT);
            }
            8 if self.rng.below(40) == 0 => {
                let requests = 4 + self.rng.below(60) as i64;
                // Above what this queue accepts it is refused, which is fine.
                let _ = self.queue.set(self.now, "nr_requests", requests);
            }
            9 if self.rng.below(60) == 0 => {
                let mut attach = self.plan.attach();
                if attach.shape == Shape::Multi && self.rng.below(2) == 0 {
                    attach = Attach::none();
                }
                self.queue.switch(self.now, WORKER, attach);
                self.drain(WORKER);
            }
            10 if self.rng.below(30) == 0 => self.limit(),
            _ if !self.device.is_empty() => self.complete(),
            _ => self.pieces(context),
        }
        self.outputs();
        if self.queue.next_timer().is_some_and(|at| at <= self.now) {
            self.queue.timer(self.now, WORKER, 0);
            self.drain(WORKER);
        }
        self.release();
    }

    fn limit(&mut self) {
        let rng = &mut self.rng;
        let mut draw = || Limit {
            bps: (rng.below(2) == 0).then(|| 100_000 + rng.below(10_000_000)),
            iops: (rng.below(2) == 0).then(|| 20 + rng.below(1000) as u32),
        };
        let limits = IoMax { read: draw(), write: draw() };
        let group = CgroupId(self.rng.below(GROUPS) as u32);
        self.queue.limit_cgroup(self.now, group, limits);
    }

    /// The worker of limits does what it can.
    fn release(&mut self) {
        loop {
            self.drain(RELEASER);
            let sleeps = self.queue.next_work(RELEASER).is_some();
            if sleeps || !self.releasing && !std::mem::take(&mut self.releases) {
                return;
            }
            if !self.releasing {
                self.releasing = true;
                self.queue.begin_release();
                self.queue.start_plug(RELEASER);
            } else if !self.queue.release(self.now, releaser()) {
                self.releasing = false;
                self.queue.finish_plug(self.now, RELEASER, 0, PlugFlush::Explicit);
            }
        }
    }

    fn bio(&mut self, task: u32) -> Bio {
        let rng = &mut self.rng;
        let op = if rng.below(2) == 0 { Op::Read } else { Op::Write };
        let mut flags = if rng.below(2) == 0 { Flags::SYNC } else { Flags::NONE };
        if op == Op::Write && rng.below(4) == 0 {
            flags = flags.with(Flags::PREFLUSH);
        }
        if op == Op::Write && rng.below(4) == 0 {
            flags = flags.with(Flags::FUA);
        }
        let pure_flush = flags.intersects(Flags::PREFLUSH) && rng.below(2) == 0;
        let class = [IoprioClass::None, IoprioClass::RealTime, IoprioClass::Idle];
        Bio {
            op,
            flags: if pure_flush { Flags::PREFLUSH.with(Flags::SYNC) } else { flags },
            sector: Sector(if pure_flush { 0 } else { rng.below(64) * 8 }),
            sectors: Sectors(if pure_flush { 0 } else { 8 * (1 + rng.below(30) as u32) }),
            ioprio: Ioprio { class: class[rng.below(3) as usize], level: 0 },
            origin: Origin {
                context: ContextId(task),
                io_context: IoContextId(task),
                cpu: task as u16 % 2,
                cgroup: CgroupId(task % GROUPS as u32),
            },
            token: self.submitted,
        }
    }

    /// A few pieces of a context's work, perhaps not all.
    fn pieces(&mut self, context: ContextId) {
        for _ in 0..self.rng.below(12) {
            if !matches!(self.queue.step(self.now, context), Step::Did(_)) {
                return;
            }
        }
    }

    fn drain(&mut self, context: ContextId) {
        while matches!(self.queue.step(self.now, context), Step::Did(_)) {}
    }

    fn unplug(&mut self, task: u32) {
        self.plugged[task as usize] = false;
        let context = ContextId(task);
        self.queue.finish_plug(self.now, context, task as u16 % 2, PlugFlush::Explicit);
        self.pieces(context);
    }

    fn take_command(&mut self) -> Tag {
        let index = self.rng.below(self.device.len() as u64) as usize;
        self.device.swap_remove(index)
    }

    fn complete(&mut self) {
        let tag = self.take_command();
        self.queue.complete(self.now, INTERRUPT, 0, tag);
        self.drain(INTERRUPT);
    }

    fn outputs(&mut self) {
        loop {
            while let Some(output) = self.queue.pop_output() {
                match output {
                    Output::Issue(command) => self.device.push(command.tag),
                    Output::BioDone { .. } => self.done += 1,
                    Output::RunWorker { .. } => self.worker = true,
                    Output::Wake(_) => {}
                    Output::Release => self.releases = true,
                    Output::WouldBlock { .. } => unreachable!("nobody asked for NOWAIT"),
                }
            }
            self.events.extend_from_slice(self.queue.log().events());
            self.queue.log().clear();
            if !std::mem::take(&mut self.worker) {
                return;
            }
            self.queue.run(self.now, WORKER, 0);
            self.drain(WORKER);
        }
    }

    /// Lets everything end.
    fn end(&mut self) {
        for _ in 0..200_000 {
            self.now += Duration::from_micros(100);
            for task in 0..TASKS as u32 {
                self.drain(ContextId(task));
                if self.plugged[task as usize] && self.queue.next_work(ContextId(task)).is_none() {
                    self.unplug(task);
                    self.drain(ContextId(task));
                }
            }
            self.outputs();
            if !self.device.is_empty() {
                self.complete();
            }
            if self.queue.next_timer().is_some_and(|at| at <= self.now) {
                self.queue.timer(self.now, WORKER, 0);
                self.drain(WORKER);
            }
            self.outputs();
            self.release();
            self.outputs();
            if self.done == self.submitted {
                return;
            }
        }
        panic!("{} of {} bios are done, the rest is stuck", self.done, self.submitted);
    }
}

#[test]
fn a_thousand_random_runs_lose_nothing_and_replay_exactly() {
    for seed in 0..1000 {
        let mut run = Run::new(seed);
        for _ in 0..300 {
            run.step();
        }
        run.end();
        run.queue.assert_drained();
        let inputs = run.queue.take_inputs();
        let mut again = run.plan.queue();
        again.replay(&inputs, &mut |name| match name {
            "" => Attach::none(),
            _ => run.plan.attach(),
        });
        assert!(again.log().events() == run.events, "seed {seed} replays differently");
        let done = run.events.iter().filter(|e| matches!(e.action, Action::BioDone { .. })).count();
        assert_eq!(done as u64, run.submitted, "seed {seed}");
    }
}
