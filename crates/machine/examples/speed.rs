//! How fast the machine simulates, and how often it allocates: requests per second of real time and
//! allocations per request, for 128 requests in flight over 32 tags on a disk of constant latency.
//!
//! `cargo run --release -p paternoster-machine --example speed [SCHEDULER [HOST [REQUESTS]]]`

mod common;

use base::{Bytes, Duration, Instant, Sectors};
use block::{Command, Facts, Tag, Transport};
use common::processor_time;
use device::Device;
use machine::task::{AsyncOp, Interface, OpenFlags, Task};
use machine::{Job, Native, Nobody, Setup};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts allocations.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[expect(
    unsafe_code,
    reason = "a counting allocator is unsafe by its trait; only this example has one"
)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is the one `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the one `System` asks for.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Serves everything in the same time.
struct Steady {
    facts: Facts,
    in_flight: VecDeque<(Instant, Tag)>,
}

const SERVICE: Duration = Duration::from_micros(100);
const DEPTH: usize = 128;
const TAGS: u32 = 32;

impl Device for Steady {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn accept(&mut self, now: Instant, command: Command) {
        self.in_flight.push_back((now + SERVICE, command.tag));
    }

    fn next_event(&self) -> Option<Instant> {
        self.in_flight.front().map(|(at, _)| *at)
    }

    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>) {
        while self.in_flight.front().is_some_and(|(at, _)| *at <= now) {
            completed.extend(self.in_flight.pop_front().map(|(_, tag)| tag));
        }
    }
}

fn steady() -> Steady {
    let facts = Facts {
        transport: Transport::Nvme,
        capacity: Bytes(1 << 40),
        rotational: false,
        volatile_cache: false,
        fua: false,
        queue_depth: TAGS,
        hardware_queues: 1,
        logical_block: 512,
        max_hw_sectors: Sectors(65_535),
        max_segments: 128,
        discard: false,
        chunk_sectors: Sectors(0),
        segment: Facts::PAGE,
    };
    Steady { facts, in_flight: VecDeque::new() }
}

/// Keeps [`DEPTH`] random reads in flight.
async fn asynchronous(task: Task, requests: u64) -> i32 {
    let disk = task.open("/dev/sda", OpenFlags::direct()).expect("the disk");
    let mut rng = task.rng("speed");
    let mut queue = task.async_queue(Interface::Libaio);
    let mut reaped = Vec::with_capacity(DEPTH);
    for number in 0..requests {
        queue.prepare(&disk, AsyncOp::Read, rng.below(1 << 27) << 12, 4096, number, None);
        if queue.in_flight() + queue.prepared() == DEPTH {
            queue.submit().await;
            reaped.clear();
            queue.reap(1, DEPTH, None, &mut reaped).await;
        }
    }
    queue.submit().await;
    queue.reap(usize::MAX, usize::MAX, None, &mut reaped).await;
    0
}

/// One of [`DEPTH`] tasks that read synchronously.
async fn synchronous(task: Task, requests: u64) -> i32 {
    let disk = task.open("/dev/sda", OpenFlags::direct()).expect("the disk");
    let mut rng = task.rng(&format!("speed/{}", task.id().0));
    for _ in 0..requests {
        task.pread(&disk, rng.below(1 << 27) << 12, 4096).await.expect("a read within the disk");
    }
    0
}

fn setup(scheduler: &str, host: &str, jobs: Vec<Job>) -> Setup {
    common::setup(scheduler, host, Box::new(steady()), jobs)
}

fn measure(name: &str, requests: u64, make: impl Fn(u64) -> Setup) {
    let count = |requests| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let start = processor_time();
        let outcome = machine::run(make(requests), &mut Nobody).expect("a setup that runs");
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
        (processor_time() - start, allocations, outcome)
    };
    // What a run costs before it is in its steady state.
    let (_, warm_up, _) = count(requests / 10);
    let (real, allocations, outcome) = count(requests);
    let steady = allocations.saturating_sub(warm_up) as f64 / (requests as f64 * 0.9);
    let nanos = real as f64 / requests as f64;
    println!(
        "{name:26} {:6.0} ns a request, {:5.2} M requests/s, {steady:.5} allocations a request, \
         {} in virtual time, {}",
        nanos,
        1e3 / nanos,
        outcome.elapsed,
        outcome.fingerprint
    );
}

/// An hour of one task that reads and writes 16 KiB at random places of a hard disk.
fn hour(scheduler: &str) {
    let program = Native::new("random", |task: Task| async move {
        let disk = task.open("/dev/sda", OpenFlags::direct()).expect("the disk");
        let mut rng = task.rng("hour");
        let blocks = task.disk().capacity.0 / 16_384;
        loop {
            let offset = 16_384 * rng.below(blocks);
            let result = match rng.chance(1, 2) {
                true => task.pread(&disk, offset, 16_384).await,
                false => task.pwrite(&disk, offset, 16_384).await,
            };
            result.expect("a block within the disk");
        }
    });
    let mut setup = setup(scheduler, "host-2011", vec![Job::new("random", program)]);
    setup.device = device::Model::builtin("hdd-7200-sata").expect("a model").build(1);
    setup.until = Some(Instant::ZERO + Duration::from_secs(3600));
    let start = processor_time();
    let outcome = machine::run(setup, &mut Nobody).expect("a setup that runs");
    let millis = (processor_time() - start) / 1_000_000;
    println!("an hour of hdd-7200-sata     {millis} ms, {}", outcome.fingerprint);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scheduler = arguments.first().map_or("mq-deadline", String::as_str);
    let host = arguments.get(1).map_or("free", String::as_str);
    let requests = arguments.get(2).map_or(1_000_000, |text| text.parse().expect("a number"));
    println!("{scheduler} on {host}, {DEPTH} in flight over {TAGS} tags");
    measure("one task, asynchronous", requests, |requests| {
        let start = move |task| asynchronous(task, requests);
        setup(scheduler, host, vec![Job::new("reader", Native::new("reader", start))])
    });
    measure("128 tasks, synchronous", requests, |requests| {
        let each = requests / DEPTH as u64;
        let start = move |task| synchronous(task, each);
        let job = Job::new("reader", Native::new("reader", start));
        setup(scheduler, host, vec![job; DEPTH])
    });
    hour(scheduler);
}
