//! How fast fio runs on the machine: requests per second of real time and allocations per request,
//! for fio's random reads at a depth of 128 over 32 tags on a disk of constant latency.
//!
//! `cargo run --release -p paternoster-programs --example fio_speed [SCHEDULER [HOST [OPTIONS…]]]`

#[path = "../../machine/examples/common/mod.rs"]
mod common;
#[path = "../../machine/examples/common/throughput.rs"]
mod throughput;

use machine::Job;
use throughput::{TAGS, measure, steady};

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
        measure(way, 1_000_000, |requests| {
            let line = format!(
                "fio --name=x --filename=/dev/sda --direct=1 --bs=4k --rw=randread \
                 --number_ios={requests} {way} {options}"
            );
            let job = Job::new("fio", programs::parse(&line).expect("a command").program);
            common::setup(scheduler, host, steady(), vec![job])
        });
    }
}
