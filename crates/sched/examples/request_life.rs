//! Nanoseconds and allocations of a whole request life in the block layer, under a real backlog.
//!
//! 128 requests are outstanding over 32 driver tags, so about 96 wait in the scheduler; without a
//! scheduler 32 are outstanding, because whoever submits more would sleep for a tag. The guard is
//! on; events are off unless the third argument asks for them. A completion is followed by the
//! submission of one new random 4 KiB read or write, as a closed loop of programs does it.
//!
//! Where it matters whose requests they are, they are of 16 tasks with as many outstanding each;
//! whose request is done submits the next one.
//!
//!     cargo run --release -p paternoster-sched --example request_life [TURNS [SCHEDULER [events]]]

#[path = "../../machine/examples/common/counting.rs"]
mod counting;

use base::{Bytes, Duration, Instant, Rng, Sector, Sectors};
use block::scheduler::IoContext;
use block::{
    Attach, Bio, Command, ContextId, EventLog, Facts, Flags, IoContextId, Ioprio, Kernel, Op,
    Origin, Output, RequestQueue, Tag, Transport,
};
use counting::allocations;
use std::collections::VecDeque;

/// What is measured, with the number of tasks and of requests that each has outstanding.
const SCHEDULERS: [(&str, u32, u32); 6] = [
    ("mq-deadline", 1, 128),
    ("none", 1, 32),
    ("deadline", 1, 128),
    ("noop", 1, 128),
    ("cfq", 16, 8),
    ("anticipatory", 16, 8),
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
}

impl Load {
    fn new(scheduler: &str, tasks: u32, log: EventLog) -> Load {
        let facts = Facts {
            transport: Transport::Virtio,
            capacity: Bytes(1 << 40),
            rotational: true,
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
        let requests = if attach.scheduler.is_some() { 256 } else { TAGS };
        let mut queue = RequestQueue::new(kernel, facts, attach, 1, log);
        queue.set(Instant::ZERO, "nr_requests", i64::from(requests)).expect("in range");
        for task in 0..tasks {
            let value = IoContext { tasks: 1, ..IoContext::default() };
            queue.define_io_context(IoContextId(task), value);
        }
        Load {
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
            origin: Origin { context, io_context: IoContextId(task), ..Origin::default() },
            token: u64::from(task),
        };
        self.queue.submit(self.now, bio);
        assert!(self.queue.finish(self.now, context), "enough requests for everybody");
        self.outputs();
    }

    fn outputs(&mut self) {
        loop {
            while let Some(output) = self.queue.pop_output() {
                match output {
                    Output::Issue(command) => self.device.push_back(command),
                    Output::BioDone { token, .. } => self.done_by = token as u32,
                    Output::RunWorker { .. } => self.worker_wanted = true,
                    Output::Wake(_) | Output::WouldBlock { .. } => unreachable!("nobody sleeps"),
                }
            }
            if !std::mem::take(&mut self.worker_wanted) {
                return;
            }
            self.queue.run(self.now, WORKER, 0);
            self.queue.finish(self.now, WORKER);
        }
    }

    fn turn(&mut self) {
        self.now += Duration::from_micros(50);
        let command: Tag = self.device.pop_front().expect("the device is busy").tag;
        self.queue.complete(self.now, INTERRUPT, 0, command);
        self.queue.finish(self.now, INTERRUPT);
        self.outputs();
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

fn main() {
    let turns = std::env::args().nth(1).map_or(2_000_000u64, |arg| arg.parse().expect("a number"));
    let only = std::env::args().nth(2);
    let events = std::env::args().nth(3).is_some_and(|arg| arg == "events");
    println!("scheduler      ns/request  allocations/request");
    for (scheduler, tasks, outstanding) in SCHEDULERS {
        if only.as_ref().is_some_and(|only| only != scheduler) {
            continue;
        }
        let log = if events { EventLog::on() } else { EventLog::off() };
        let mut load = Load::new(scheduler, tasks, log);
        for task in 0..outstanding * tasks {
            load.submit(task % tasks);
        }
        for _ in 0..turns / 10 {
            load.turn();
        }
        let before = allocations();
        let best = (0..WINDOWS).map(|_| load.window(turns / WINDOWS)).fold(f64::MAX, f64::min);
        let count = allocations() - before;
        println!("{scheduler:<14} {best:>10.1}  {:>19.6}", count as f64 / turns as f64);
    }
}
