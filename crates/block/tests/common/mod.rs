//! A bench for the queue: a scheduler that keeps arrival order, a device that finishes commands
//! when told to, and events as text.

// Each test file uses its own part of the bench.
#![allow(dead_code)]

use base::{Bytes, Duration, Instant, Links, List, Sector, Sectors};
use block::kernel::Shape;
use block::scheduler::{Dispatched, HctxId, InsertAt, Placement};
use block::{
    About, Action, Attach, Bio, Command, ContextId, Cx, DispatchReason, EventLog, Facts, Flags,
    IoContextId, Ioprio, Kernel, MergeLookup, Op, Origin, Output, PlugFlush, Request, RequestId,
    RequestQueue, Scheduler, SharedLock, Step, Transport, Version,
};

/// Arrival order in either shape.
pub struct Fifo {
    about: &'static About,
    list: List<Request>,
    links: Links<Request>,
    placement: Placement,
}

const fn about(shape: Shape) -> About {
    About {
        name: "fifo",
        shape,
        lock: SharedLock::All,
        lookup: MergeLookup::Index,
        summary: "arrival order",
        tunables: &[],
    }
}
static SINGLE: About = about(Shape::Single);
static MULTI: About = about(Shape::Multi);

impl Fifo {
    pub fn attach(shape: Shape, placement: Placement) -> Attach {
        let about = if shape == Shape::Single { &SINGLE } else { &MULTI };
        let fifo = Fifo { about, list: List::new(), links: Links::new(), placement };
        Attach::scheduler(Box::new(fifo))
    }
}

impl Scheduler for Fifo {
    fn about(&self) -> &'static About {
        self.about
    }
    fn get(&self, _cx: &Cx<'_>, _tunable: &str) -> i64 {
        unreachable!("no tunables")
    }
    fn set(&mut self, _cx: &mut Cx<'_>, _tunable: &str, _value: i64) {
        unreachable!("no tunables")
    }
    fn requests_merged(&mut self, _cx: &mut Cx<'_>, _rq: RequestId, next: RequestId) {
        if self.links.contains(next) {
            self.list.remove(&mut self.links, next);
        }
    }
    fn insert(&mut self, _cx: &mut Cx<'_>, rq: RequestId, at: InsertAt) {
        match at {
            InsertAt::Sorted => self.list.push_back(&mut self.links, rq),
            InsertAt::Head => self.list.push_front(&mut self.links, rq),
        }
    }
    fn dispatch(&mut self, cx: &mut Cx<'_>, _hctx: HctxId, _force: bool) -> Dispatched {
        match self.list.pop_front(&mut self.links) {
            Some(rq) => {
                cx.issue(rq, self.placement, DispatchReason::ArrivalOrder);
                Dispatched::Some(1)
            }
            None => Dispatched::Empty,
        }
    }
    fn has_work(&self, _hctx: HctxId) -> bool {
        !self.list.is_empty()
    }
    fn queued(&self) -> u32 {
        self.list.len()
    }
    fn check(&self, _cx: &Cx<'_>) {}
    fn describe(&self, _cx: &Cx<'_>) -> String {
        format!("{} queued", self.list.len())
    }
}

pub fn facts() -> Facts {
    Facts {
        transport: Transport::Scsi,
        capacity: Bytes(1 << 40),
        rotational: true,
        volatile_cache: false,
        fua: false,
        queue_depth: 4,
        hardware_queues: 1,
        logical_block: 512,
        max_hw_sectors: Sectors(65_535),
        max_segments: 128,
        discard: false,
        chunk_sectors: Sectors(0),
        segment: Facts::PAGE,
    }
}

pub const INTERRUPT: ContextId = ContextId(90);
pub const WORKER: ContextId = ContextId(91);
/// The worker that submits what has waited for limits.
pub const RELEASER: ContextId = ContextId(92);

/// As whom it does.
pub fn releaser() -> Origin {
    let io_context = IoContextId(RELEASER.0);
    Origin { context: RELEASER, io_context, ..Origin::default() }
}

/// A queue with a device that holds what it is given.
pub struct Bench {
    pub queue: RequestQueue,
    pub now: Instant,
    /// Commands with the device, oldest first.
    pub device: Vec<Command>,
    /// Marks of finished bios.
    pub done: Vec<u64>,
    pub woken: Vec<ContextId>,
    pub next_token: u64,
    worker: bool,
    releases: bool,
}

impl Bench {
    pub fn new(version: Version, facts: Facts, attach: Attach) -> Bench {
        let queue = RequestQueue::new(Kernel::of(version), facts, attach, 2, EventLog::on());
        Bench {
            queue,
            now: Instant::ZERO,
            device: Vec::new(),
            done: Vec::new(),
            woken: Vec::new(),
            next_token: 0,
            worker: false,
            releases: false,
        }
    }

    pub fn single(version: Version, facts: Facts) -> Bench {
        Bench::new(version, facts, Fifo::attach(Shape::Single, Placement::Sorted))
    }

    pub fn multi(version: Version, facts: Facts) -> Bench {
        Bench::new(version, facts, Fifo::attach(Shape::Multi, Placement::Sorted))
    }

    pub fn bio(&mut self, task: u32, op: Op, sector: u64, sectors: u32) -> Bio {
        self.next_token += 1;
        Bio {
            op,
            flags: if op == Op::Write { Flags::SYNC } else { Flags::NONE },
            sector: Sector(sector),
            sectors: Sectors(sectors),
            ioprio: Ioprio::NONE,
            origin: Origin {
                context: ContextId(task),
                io_context: IoContextId(task),
                ..Origin::default()
            },
            token: self.next_token,
        }
    }

    pub fn read(&mut self, task: u32, sector: u64, sectors: u32) -> bool {
        let bio = self.bio(task, Op::Read, sector, sectors);
        self.submit(bio)
    }

    pub fn write(&mut self, task: u32, sector: u64, sectors: u32, flags: Flags) -> bool {
        let mut bio = self.bio(task, Op::Write, sector, sectors);
        bio.flags = bio.flags.with(flags);
        self.submit(bio)
    }

    /// Submits; false when the task went to sleep.
    pub fn submit(&mut self, bio: Bio) -> bool {
        self.queue.submit(self.now, bio);
        self.go(bio.origin.context)
    }

    /// Lets a context do all it has to do, and the worker what it was asked for.
    pub fn go(&mut self, context: ContextId) -> bool {
        let finished = self.queue.finish(self.now, context);
        self.outputs();
        finished
    }

    pub fn plug(&mut self, task: u32) {
        self.queue.start_plug(ContextId(task));
    }

    pub fn unplug(&mut self, task: u32, why: PlugFlush) {
        self.queue.finish_plug(self.now, ContextId(task), 0, why);
        self.go(ContextId(task));
    }

    /// The device finishes the command at `index`.
    pub fn complete(&mut self, index: usize) -> Command {
        let command = self.device.remove(index);
        self.queue.complete(self.now, INTERRUPT, 0, command.tag);
        self.go(INTERRUPT);
        command
    }

    /// The same, before the worker has the core; what it is to do it does with the next call.
    pub fn interrupt(&mut self, index: usize) {
        let command = self.device.remove(index);
        self.queue.complete(self.now, INTERRUPT, 0, command.tag);
        while !matches!(self.queue.step(self.now, INTERRUPT), Step::Idle) {}
    }

    pub fn complete_all(&mut self) {
        while !self.device.is_empty() {
            self.complete(0);
        }
    }

    pub fn pass(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
        while self.queue.next_timer().is_some_and(|at| at <= self.now) {
            self.queue.timer(self.now, WORKER, 0);
            self.go(WORKER);
        }
    }

    fn outputs(&mut self) {
        loop {
            while let Some(output) = self.queue.pop_output() {
                match output {
                    Output::Issue(command) => self.device.push(command),
                    Output::BioDone { token, .. } => self.done.push(token),
                    Output::Wake(context) => self.woken.push(context),
                    Output::RunWorker { .. } => self.worker = true,
                    Output::Release => self.releases = true,
                    Output::WouldBlock { token, .. } => self.done.push(1_000_000 + token),
                }
            }
            if std::mem::take(&mut self.releases) {
                self.release();
                continue;
            }
            if !std::mem::take(&mut self.worker) {
                return;
            }
            self.queue.run(self.now, WORKER, 0);
            while !matches!(self.queue.step(self.now, WORKER), Step::Idle) {}
        }
    }

    fn release(&mut self) {
        self.queue.begin_release();
        self.queue.start_plug(RELEASER);
        while self.queue.release(self.now, releaser()) {
            self.queue.finish(self.now, RELEASER);
        }
        self.queue.finish_plug(self.now, RELEASER, 0, PlugFlush::Explicit);
        self.queue.finish(self.now, RELEASER);
    }

    /// Sectors of the commands with the device, oldest first.
    pub fn with_device(&self) -> Vec<u64> {
        self.device.iter().map(|command| command.sector.0).collect()
    }

    /// The events since the last call: letters as in blkparse, with the sector where it says
    /// something.
    pub fn events(&mut self) -> String {
        let mut text = String::new();
        for event in self.queue.log().events() {
            let at = event.sector.0;
            let word = match &event.action {
                Action::Queue => format!("Q{at}"),
                Action::Split { rest } => format!("X{at}/{rest}"),
                Action::BackMerge => format!("M{at}"),
                Action::FrontMerge => format!("F{at}"),
                Action::GetRequest => format!("G{at}"),
                Action::Sleep => "S".into(),
                Action::Plug => "P".into(),
                Action::Unplug { depth } => format!("U({depth})"),
                Action::TimerUnplug { depth } => format!("UT({depth})"),
                Action::Insert => format!("I{at}"),
                Action::Join { .. } => format!("J{at}"),
                Action::Issue => format!("D{at}"),
                Action::Requeue => format!("R{at}"),
                Action::Complete { .. } => format!("C{at}"),
                _ => continue,
            };
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&word);
        }
        self.queue.log().clear();
        text
    }
}
