//! Nanoseconds and allocations of a whole request life in the block layer, under a real backlog.
//!
//! 128 requests are outstanding over 32 driver tags, so about 96 wait in the scheduler; without a
//! scheduler 32 are outstanding, because whoever submits more would sleep for a tag. The guard is
//! on; events are off unless the third argument asks for them. A completion is followed by the
//! submission of one new random 4 KiB read or write, as a closed loop of programs does it.
//!
//! Where it matters whose requests they are, they are of 16 tasks with as many outstanding each;
//! whose request is done submits the next one. With BFQ there are also 200 tasks in 20 control
//! groups, and mq-deadline stands beside it with as many requests. Numbers after the scheduler are
//! of tasks, requests of each, and groups, in place of those; `flash` behind them is a disk that
//! does not rotate. With `limits` each group has all four, none of which is reached; with `held`
//! every request waits for one. With `throttled` writeback throttling counts every write; with at
//! most 8 outstanding none waits for it.
//!
//!     cargo run --release -p paternoster-sched --example request_life \
//!         [TURNS [SCHEDULER [events | TASKS OUTSTANDING GROUPS [flash] [limits | held]
//!         [throttled]]]]

#[path = "../../machine/examples/common/counting.rs"]
mod counting;

use base::{Bytes, Duration, Instant, Rng, Sector, Sectors};
use block::scheduler::{Cgroup, IoContext};
use block::throttle::IoMax;
use block::{
    Attach, Bio, CgroupId, Command, ContextId, EventLog, Facts, Flags, IoContextId, Ioprio, Kernel,
    Op, Origin, Output, RequestQueue, Tag, Transport,
};
use counting::allocations;
use std::collections::VecDeque;

/// What is measured.
#[derive(Clone, Copy)]
struct Row {
    scheduler: &'static str,
    tasks: u32,
    /// Requests that each task has outstanding.
    outstanding: u32,
    /// Control groups that the tasks are in; zero: all are in the root.
    groups: u32,
    /// The disk does not rotate, so BFQ looks for no processes that read close to each other.
    is_flash: bool,
    /// What the groups may do a second.
    limits: &'static str,
    /// Writeback is throttled.
    is_throttled: bool,
}

/// Limits that are never reached, and one that always is: a turn takes 50 us.
const WIDE: &str = "rbps=1000000000000 wbps=1000000000000 riops=4000000000 wiops=4000000000";
const NARROW: &str = "riops=1000 wiops=1000";

/// No read takes so long, in microseconds.
const LATE: i64 = 10_000_000;

const fn row(scheduler: &'static str, tasks: u32, outstanding: u32, groups: u32) -> Row {
    let (is_flash, is_throttled) = (false, false);
    Row { scheduler, tasks, outstanding, groups, is_flash, limits: "", is_throttled }
}

const ROWS: [Row; 10] = [
    row("mq-deadline", 1, 128, 0),
    row("kyber", 1, 128, 0),
    row("none", 1, 32, 0),
    row("deadline", 1, 128, 0),
    row("noop", 1, 128, 0),
    row("cfq", 16, 8, 0),
    row("anticipatory", 16, 8, 0),
    row("bfq", 16, 8, 0),
    row("bfq", 200, 2, 20),
    row("mq-deadline", 200, 2, 0),
];
const TAGS: u32 = 32;
/// The best of so many short measurements counts: what else the machine does disturbs the others.
const WINDOWS: u64 = 100;
const INTERRUPT: ContextId = ContextId(0);
const WORKER: ContextId = ContextId(1);
const FIRST_TASK: u32 = 2;

struct Load {
    queue: RequestQueue,
    rng: Rng,
    now: Instant,
    device: VecDeque<Command>,
    /// The task whose request was done last.
    done_by: u32,
    worker_wanted: bool,
    groups: u32,
}

impl Load {
    fn new(row: Row, log: EventLog) -> Load {
        let Row { scheduler, tasks, outstanding, groups, .. } = row;
        let facts = Facts {
            transport: Transport::Virtio,
            capacity: Bytes(1 << 40),
            rotational: !row.is_flash,
            volatile_cache: false,
            fua: false,
            queue_depth: TAGS,
            hardware_queues: 1,
            logical_block: 512,
            max_hw_sectors: Sectors(2560),
            max_segments: 128,
            discard: false,
            chunk_sectors: Sectors(0),
            segment: Facts::PAGE,
        };
        let kernel: &'static Kernel = sched::default_kernel(scheduler).expect("a scheduler");
        let built = sched::build(scheduler, kernel).expect("its default kernel has it");
        let attach = built.map_or_else(Attach::none, Attach::scheduler);
        // BFQ lets nobody have more than his share of them.
        let has_scheduler = attach.scheduler.is_some();
        let requests = if has_scheduler { 2 * outstanding * tasks } else { TAGS };
        let mut queue = RequestQueue::new(kernel, facts, attach, 1, log);
        // Up to 6.17 limits on tags follow the number that there was before.
        if has_scheduler {
            queue.set(Instant::ZERO, "nr_requests", i64::from(requests + 1)).expect("in range");
        }
        queue.set(Instant::ZERO, "nr_requests", i64::from(requests)).expect("in range");
        if scheduler == "bfq" {
            // Whoever is not raised would hardly have a share.
            queue.set(Instant::ZERO, "low_latency", 0).expect("in range");
        }
        if row.is_throttled {
            queue.set(Instant::ZERO, "wbt_lat_usec", LATE).expect("in range");
        }
        for task in 0..tasks {
            let value = IoContext { tasks: 1, ..IoContext::default() };
            queue.define_io_context(IoContextId(task), value);
        }
        for group in 1..=groups {
            let (path, parent) = (format!("/{group}"), Some(CgroupId::ROOT));
            let value = Cgroup { path, parent, ..Cgroup::default() };
            queue.define_cgroup(CgroupId(group), value);
            if !row.limits.is_empty() {
                let limits = IoMax::parse(row.limits).expect("as the kernel writes them");
                queue.limit_cgroup(Instant::ZERO, CgroupId(group), limits);
            }
        }
        Load {
            groups,
            queue,
            rng: Rng::stream(1, "load"),
            now: Instant::ZERO,
            device: VecDeque::new(),
            done_by: 0,
            worker_wanted: false,
        }
    }

    fn submit(&mut self, task: u32) {
        let context = ContextId(FIRST_TASK + task);
        // One draw for both: the highest bit, and the 28 below it.
        let random = self.rng.next_u64();
        let op = if random >> 63 == 0 { Op::Read } else { Op::Write };
        let flags = if op == Op::Write { Flags::SYNC } else { Flags::NONE };
        let bio = Bio {
            op,
            flags,
            sector: Sector((random >> 35 & 0xFFF_FFFF) * 8),
            sectors: Sectors(8),
            ioprio: Ioprio::NONE,
            origin: Origin {
                context,
                io_context: IoContextId(task),
                cgroup: self.group_of(task),
                ..Origin::default()
            },
            token: u64::from(task),
        };
        self.queue.submit(self.now, bio);
        assert!(self.queue.finish(self.now, context), "enough requests for everybody");
        self.outputs();
    }

    fn group_of(&self, task: u32) -> CgroupId {
        CgroupId(if self.groups > 0 { 1 + task % self.groups } else { 0 })
    }

    fn outputs(&mut self) {
        loop {
            while let Some(output) = self.queue.pop_output() {
                match output {
                    Output::Issue(command) => self.device.push_back(command),
                    Output::BioDone { token, .. } => self.done_by = token as u32,
                    Output::RunWorker { .. } => self.worker_wanted = true,
                    Output::Release => self.release(),
                    Output::Wake(_) | Output::WouldBlock { .. } => unreachable!("nobody waits"),
                }
            }
            if !std::mem::take(&mut self.worker_wanted) {
                return;
            }
            self.queue.run(self.now, WORKER, 0);
            self.queue.finish(self.now, WORKER);
        }
    }

    /// A worker submits what need not wait for limits any more.
    fn release(&mut self) {
        self.queue.begin_release();
        let by = Origin { context: WORKER, ..Origin::default() };
        while self.queue.release(self.now, by) {
            self.queue.finish(self.now, WORKER);
        }
    }

    /// A task comes for the first time: long after the others, as BFQ makes one of those that come
    /// together.
    fn introduce(&mut self, task: u32) {
        self.submit(task);
        self.wait_for_the_device();
        self.complete();
        self.now += Duration::from_millis(700);
        if self.queue.next_timer().is_some() {
            self.timer();
        }
    }

    fn timer(&mut self) {
        self.queue.timer(self.now, INTERRUPT, 0);
        self.queue.finish(self.now, INTERRUPT);
        self.outputs();
    }

    fn complete(&mut self) {
        let command: Tag = self.device.pop_front().expect("the device is busy").tag;
        self.queue.complete(self.now, INTERRUPT, 0, command);
        self.queue.finish(self.now, INTERRUPT);
        self.outputs();
    }

    /// Lets time pass until the device has something: somebody is waited for, or waits.
    fn wait_for_the_device(&mut self) {
        while self.device.is_empty() {
            self.now = self.now.max(self.queue.next_timer().expect("a timer ends the wait"));
            self.timer();
        }
    }

    fn turn(&mut self) {
        self.now += Duration::from_micros(50);
        self.wait_for_the_device();
        self.complete();
        self.submit(self.done_by);
        if self.queue.log().is_on() {
            self.queue.log().clear();
        }
    }

    /// Nanoseconds per turn.
    fn window(&mut self, turns: u64) -> f64 {
        let start = std::time::Instant::now();
        for _ in 0..turns {
            self.turn();
        }
        start.elapsed().as_nanos() as f64 / turns as f64
    }
}

/// The rows that are asked for.
fn rows(arguments: &[String]) -> Vec<Row> {
    let numbers: Vec<u32> = arguments.iter().skip(2).filter_map(|it| it.parse().ok()).collect();
    let mut rows: Vec<Row> = ROWS.to_vec();
    if let Some(only) = arguments.get(1) {
        rows.retain(|row| row.scheduler == *only);
    }
    if let (Some(first), [tasks, outstanding, groups]) = (rows.first().copied(), numbers.as_slice())
    {
        rows = vec![row(first.scheduler, *tasks, *outstanding, *groups)];
    }
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let limits = if has("held") { NARROW } else { WIDE };
    for row in &mut rows {
        row.is_flash = has("flash");
        row.is_throttled = has("throttled");
        row.limits = if has("limits") || has("held") { limits } else { "" };
    }
    rows
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let turns = arguments.first().map_or(2_000_000u64, |arg| arg.parse().expect("a number"));
    let events = arguments.get(2).is_some_and(|arg| arg == "events");
    println!("scheduler     tasks  groups  ns/request  allocations/request");
    for row in rows(&arguments) {
        let log = if events { EventLog::on() } else { EventLog::off() };
        let mut load = Load::new(row, log);
        (0..row.tasks).for_each(|task| load.introduce(task));
        for task in 0..row.outstanding * row.tasks {
            load.submit(task % row.tasks);
        }
        for _ in 0..turns / 10 {
            load.turn();
        }
        let before = allocations();
        let best = (0..WINDOWS).map(|_| load.window(turns / WINDOWS)).fold(f64::MAX, f64::min);
        let count = (allocations() - before) as f64 / turns as f64;
        let Row { scheduler, tasks, groups, .. } = row;
        println!("{scheduler:<14}{tasks:>5}{groups:>8}{best:>12.1}{count:>21.6}");
    }
}
