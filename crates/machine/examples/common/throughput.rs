//! Requests per second of real time and allocations per request, on a disk of constant latency.

#[path = "counting.rs"]
mod counting;

use crate::common::processor_time;
use base::{Bytes, Duration, Instant, Sectors};
use block::{Command, Facts, Tag, Transport};
use counting::allocations;
use device::Device;
use machine::{Nobody, Setup};
use std::collections::VecDeque;

/// Serves everything in the same time.
struct Steady {
    facts: Facts,
    in_flight: VecDeque<(Instant, Tag)>,
}

const SERVICE: Duration = Duration::from_micros(100);
pub const TAGS: u32 = 32;

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

/// A disk that takes [`TAGS`] commands at once, and as long for each.
pub fn steady() -> Box<dyn Device> {
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
    Box::new(Steady { facts, in_flight: VecDeque::new() })
}

/// Prints what a request costs; `make` makes a machine that does so many.
pub fn measure(name: &str, requests: u64, make: impl Fn(u64) -> Setup) {
    let run = |requests| {
        let (before, start) = (allocations(), processor_time());
        let outcome = machine::run(make(requests), &mut Nobody).expect("a setup that runs");
        for job in &outcome.jobs {
            assert!(job.messages.is_empty(), "{:?}", job.messages);
        }
        (processor_time() - start, allocations() - before, outcome)
    };
    // What a run costs before it is in its steady state.
    let (_, warm_up, _) = run(requests / 10);
    let (real, count, outcome) = run(requests);
    let steady = count.saturating_sub(warm_up) as f64 / (requests as f64 * 0.9);
    let nanos = real as f64 / requests as f64;
    println!(
        "{name:40} {nanos:6.0} ns a request, {:5.2} M requests/s, {steady:.5} allocations a \
         request, {} in virtual time, {}",
        1e3 / nanos,
        outcome.elapsed,
        outcome.fingerprint
    );
}
