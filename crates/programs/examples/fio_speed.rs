//! How fast fio runs on the machine: requests per second of real time and allocations per request,
//! for fio's random reads at a depth of 128 over 32 tags on a disk of constant latency.
//!
//! `cargo run --release -p paternoster-programs --example fio_speed [SCHEDULER [HOST [OPTIONS…]]]`

#[path = "../../machine/examples/common/mod.rs"]
mod common;

use base::{Bytes, Duration, Instant, Sectors};
use block::{Command, Facts, Tag, Transport};
use common::processor_time;
use device::Device;
use machine::{Job, Nobody, Setup};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts allocations.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[expect(
    unsafe_code,
    reason = "a counting allocator is unsafe by its trait; only examples have one"
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

fn setup(scheduler: &str, host: &str, line: &str) -> Setup {
    let job = Job::new("fio", programs::parse(line).expect("a command").program);
    common::setup(scheduler, host, Box::new(steady()), vec![job])
}

fn measure(name: &str, scheduler: &str, host: &str, requests: u64, options: &str) {
    let run = |requests: u64| {
        let line = format!(
            "fio --name=x --filename=/dev/sda --direct=1 --bs=4k --rw=randread \
             --number_ios={requests} {options}"
        );
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let start = processor_time();
        let outcome = machine::run(setup(scheduler, host, &line), &mut Nobody).expect("it runs");
        let messages = &outcome.jobs[0].messages;
        assert!(messages.is_empty(), "{messages:?}");
        (processor_time() - start, ALLOCATIONS.load(Ordering::Relaxed) - before, outcome)
    };
    // What a run costs before it is in its steady state.
    let (_, warm_up, _) = run(requests / 10);
    let (real, allocations, outcome) = run(requests);
    let steady = allocations.saturating_sub(warm_up) as f64 / (requests as f64 * 0.9);
    let nanos = real as f64 / requests as f64;
    println!(
        "{name:40} {nanos:6.0} ns a request, {:5.2} M requests/s, {steady:.5} allocations a \
         request, {} in virtual time",
        1e3 / nanos,
        outcome.elapsed
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scheduler = arguments.first().map_or("mq-deadline", String::as_str);
    let host = arguments.get(1).map_or("free", String::as_str);
    let options = arguments.get(2..).map(|options| options.join(" ")).unwrap_or_default();
    println!("{scheduler} on {host}, {TAGS} tags {options}");
    for way in [
        "--ioengine=libaio --iodepth=128",
        "--ioengine=libaio --iodepth=128 --iodepth_batch=32 --iodepth_batch_complete_max=128",
        "--ioengine=io_uring --iodepth=128",
        "--ioengine=psync",
    ] {
        measure(way, scheduler, host, 1_000_000, &format!("{way} {options}"));
    }
}
