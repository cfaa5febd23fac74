//! How fast the machine simulates, and how often it allocates: requests per second of real time and
//! allocations per request, for 128 requests in flight over 32 tags on a disk of constant latency.
//!
//! `cargo run --release -p paternoster-machine --example speed [SCHEDULER [HOST [REQUESTS]]]`

mod common;
#[path = "common/throughput.rs"]
mod throughput;

use base::{Duration, Instant};
use common::processor_time;
use machine::calls::{AsyncOp, Interface};
use machine::task::{OpenFlags, Task};
use machine::{Job, Native, Nobody, Setup};
use throughput::{TAGS, measure, steady};

const DEPTH: usize = 128;

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
    common::setup(scheduler, host, steady(), jobs)
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
