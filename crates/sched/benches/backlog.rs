//! The whole life of a request in the block layer under each scheduler, with a real backlog: 128
//! outstanding over 32 tags, so that some 96 wait in the scheduler. Guard on, events off.
//!
//! `cargo bench -p paternoster-sched` prints nanoseconds per request (best of several rounds, so
//! that other load on the machine counts least) and, to compare, what the same queue costs under
//! noop or none, where nothing is ordered.

use base::{Bytes, Instant, Rng, Sector, Sectors};
use block::{
    Attach, Bio, CgroupId, ContextId, EventLog, Facts, Flags, IoContextId, Ioprio, Kernel, Op,
    Origin, Output, RequestQueue, Transport,
};
use std::hint::black_box;

const OUTSTANDING: u32 = 128;
const TAGS: u32 = 32;
const REQUESTS: u32 = 400_000;
const ROUNDS: u32 = 7;
const KERNEL: ContextId = ContextId(0);

fn main() {
    let only = std::env::args().nth(1).filter(|arg| !arg.starts_with("--"));
    for name in sched::names().filter(|name| only.as_deref().is_none_or(|only| only == *name)) {
        let kernel = sched::default_kernel(name).expect("in the list");
        let best = (0..ROUNDS).map(|_| round(name, kernel)).min().expect("some rounds");
        println!("{name:12} {:>5} ns/request", best / u128::from(REQUESTS));
    }
}

/// One round; the time in nanoseconds.
fn round(name: &str, kernel: &'static Kernel) -> u128 {
    let attach = match sched::build(name, kernel).expect("on its kernel") {
        Some(scheduler) => Attach::scheduler(scheduler),
        None => Attach::none(),
    };
    let mut queue = RequestQueue::new(kernel, facts(), attach, 1, EventLog::off());
    if name != "none" {
        queue.set(Instant::ZERO, "nr_requests", 2 * i64::from(OUTSTANDING)).expect("accepted");
    }
    let mut rng = Rng::stream(1, name);
    let mut now = 0;
    let mut in_flight = Vec::new();
    for token in 0..outstanding(name) {
        submit(&mut queue, &mut rng, now, token);
        act(&mut queue, now, &mut in_flight);
    }
    let start = std::time::Instant::now();
    for token in 0..REQUESTS {
        now += 50_000;
        let tag = in_flight.swap_remove(token as usize % in_flight.len());
        queue.complete(Instant::from_nanos(now), KERNEL, 0, tag);
        queue.finish(Instant::from_nanos(now), KERNEL);
        act(&mut queue, now, &mut in_flight);
        submit(&mut queue, &mut rng, now, token);
        act(&mut queue, now, &mut in_flight);
    }
    let elapsed = start.elapsed().as_nanos();
    assert_eq!(in_flight.len(), TAGS as usize, "the device is busy");
    black_box(queue.queued());
    elapsed
}

/// Without an elevator nobody but the device holds requests.
fn outstanding(name: &str) -> u32 {
    if name == "none" { TAGS } else { OUTSTANDING }
}

fn submit(queue: &mut RequestQueue, rng: &mut Rng, now: u64, token: u32) {
    let random = rng.next_u64();
    let context = ContextId(1 + token % 4);
    let bio = Bio {
        op: if random & 3 == 0 { Op::Write } else { Op::Read },
        flags: Flags::SYNC,
        sector: Sector((random >> 20) % (1 << 31) * 8),
        sectors: Sectors(8),
        ioprio: Ioprio::NONE,
        origin: Origin {
            context,
            io_context: IoContextId(context.0),
            cgroup: CgroupId::ROOT,
            cpu: 0,
        },
        token: u64::from(token),
    };
    queue.submit(Instant::from_nanos(now), bio);
    queue.finish(Instant::from_nanos(now), context);
}

fn act(queue: &mut RequestQueue, now: u64, in_flight: &mut Vec<block::Tag>) {
    while let Some(output) = queue.pop_output() {
        match output {
            Output::Issue(command) => in_flight.push(command.tag),
            Output::RunWorker { .. } => {
                queue.run(Instant::from_nanos(now), KERNEL, 0);
                queue.finish(Instant::from_nanos(now), KERNEL);
            }
            Output::Wake(context) => {
                queue.finish(Instant::from_nanos(now), context);
            }
            Output::BioDone { .. } | Output::WouldBlock { .. } => {}
        }
    }
}

fn facts() -> Facts {
    Facts {
        transport: Transport::Nvme,
        capacity: Bytes(1 << 43),
        rotational: false,
        volatile_cache: false,
        fua: false,
        queue_depth: TAGS,
        hardware_queues: 1,
        logical_block: 512,
        max_hw_sectors: Sectors(2560),
        max_segments: 128,
        discard: false,
        chunk_sectors: Sectors(0),
    }
}
