//! What a request costs on the whole way that users run: fio's choice, system calls, cores, block
//! layer, device, the figures that `compare` prints, and the fingerprint.
//!
//! `cargo run --release -p paternoster-lab --example compare_speed [REQUESTS [HOST ENGINE
//! SCHEDULER]]`
//!
//! fio reads 4 KiB at random from `nvme-980pro` at a depth of 128, as one of two rows that are
//! compared: single operations are watched then. Without a host all combinations
//! are measured. With one a single run is made: instructions are counted as the difference of two
//! runs of different length.

#[path = "../../machine/examples/common/counting.rs"]
mod counting;

use counting::allocations;
use lab::plan::Plan;
use lab::worlds::Worlds;
use lab::{Experiment, RunResult};
use std::error::Error;

const HOSTS: [&str; 2] = ["free", "host-2020"];
const ENGINES: [&str; 2] = ["io_uring", "libaio"];
const SCHEDULERS: [&str; 2] = ["none", "mq-deadline"];

/// What a run has taken.
struct Cost {
    nanos: u64,
    allocations: u64,
    result: RunResult,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let requests = arguments.first().map_or(Ok(1_000_000), |it| it.parse())?;
    if let [_, host, engine, scheduler] = arguments.as_slice() {
        let result = run(requests, host, engine, scheduler)?.result;
        println!("{:016x}", result.fingerprint);
        return Ok(());
    }
    for host in HOSTS {
        for engine in ENGINES {
            for scheduler in SCHEDULERS {
                measure(requests, host, engine, scheduler)?;
            }
        }
    }
    Ok(())
}

/// Prints what a request costs.
fn measure(requests: u64, host: &str, engine: &str, scheduler: &str) -> Result<(), Box<dyn Error>> {
    // What a run costs before it is in its steady state.
    let warm_up = run(requests / 10, host, engine, scheduler)?;
    let whole = run(requests, host, engine, scheduler)?;
    let more = (requests - requests / 10) as f64;
    let of_each = |whole: u64, warm_up: u64| whole.saturating_sub(warm_up) as f64 / more;
    println!(
        "{host:9} {engine:8} {scheduler:11} {:5.0} ns and {:.5} allocations a request",
        of_each(whole.nanos, warm_up.nanos),
        of_each(whole.allocations, warm_up.allocations),
    );
    Ok(())
}

fn run(requests: u64, host: &str, engine: &str, scheduler: &str) -> Result<Cost, Box<dyn Error>> {
    let text = format!(
        "title = \"compare_speed\"\nmodel = \"nvme-980pro\"\nhost = \"{host}\"\n\
         schedulers = {SCHEDULERS:?}\nseeds = 1\n[[job]]\nname = \"x\"\n\
         run = \"fio --name=x --filename=/dev/nvme0n1 --direct=1 --rw=randread --bs=4k \
         --ioengine={engine} --iodepth=128 --number_ios={requests}\"\n"
    );
    let plan = Plan::new(Experiment::parse("compare_speed", &text)?)?;
    let worlds = Worlds::of(&plan)?;
    let row = plan.rows.iter().find(|row| row.spec.name == scheduler);
    let row = row.ok_or_else(|| format!("{scheduler}; accepted: {}", SCHEDULERS.join(", ")))?;
    let (before, start) = (allocations(), processor_time()?);
    let result = worlds.run(row, 1, None)?;
    let nanos = processor_time()? - start;
    Ok(Cost { nanos, allocations: allocations() - before, result })
}

/// Nanoseconds that this thread has run: other load on the machine does not count.
fn processor_time() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().ok_or("schedstat is empty")?.parse()?)
}
