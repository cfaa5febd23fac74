//! What CFQ promises to whoever waits: within a control group a process has its turn before long,
//! whatever the levels of the others, and groups share the disk as they weigh.
//!
//! Processes read in sequence and without thinking, so that each is served in turns of its own.
//! (Those that seek are not: CFQ lets each arrival among them end the turn of the one before, and
//! some starve; so do those of a real 4.19.)

mod harness;

use base::{Duration, Instant};
use block::scheduler::{Cgroup, IoContext};
use block::{CgroupId, IoContextId, Ioprio, IoprioClass, Kernel, Version};
use harness::{Harness, Table, cases, read};
use proptest::prelude::*;
use proptest::test_runner::Config;

const MILLI: u64 = 1_000_000;
/// A process's part of the disk, so far from the others' that nobody is close to anybody.
const REGION: u64 = 10_000_000;
/// The longest turn, of level 0, in milliseconds.
const LONGEST: u64 = 180;
const QUANTUM: u64 = 8;
const SLICE_IDLE: u64 = 8;

/// Processes that read in sequence, each with so many requests outstanding.
struct Readers {
    harness: Harness,
    /// Where each goes on.
    next: Vec<u64>,
    /// When each request that is not done was submitted, by its token.
    since: Vec<(usize, Instant)>,
    /// Requests that were done, by process.
    done: Vec<u64>,
    /// The longest that each waited for one.
    longest: Vec<Duration>,
    groups: Vec<CgroupId>,
}

impl Readers {
    fn new(kernel: &'static Kernel, depth: u32, levels: &[u8], groups: Vec<CgroupId>) -> Readers {
        let built = sched::build("cfq", kernel).expect("the kernel has it");
        let mut harness = Harness::new(kernel, Table { depth, ..Table::default() }, built);
        harness.queue.set_paranoid(false);
        for (process, level) in levels.iter().enumerate() {
            let ioprio = Ioprio { class: IoprioClass::BestEffort, level: *level };
            let value = IoContext { ioprio, tasks: 1, ..IoContext::default() };
            harness.queue.define_io_context(IoContextId(process as u32), value);
        }
        let number = levels.len();
        Readers {
            harness,
            next: (0..number as u64).map(|process| process * REGION).collect(),
            since: Vec::new(),
            done: vec![0; number],
            longest: vec![Duration::ZERO; number],
            groups,
        }
    }

    fn submit(&mut self, process: usize) {
        let token = self.since.len() as u64;
        self.since.push((process, self.harness.now));
        let mut bio = read(process as u32, self.next[process], token);
        bio.origin.cgroup = self.groups[process];
        self.harness.submit(bio);
        // Not next to each other, so that each is a command; not far either.
        self.next[process] += 16;
    }

    /// Serves commands one after the other until `end`; whose request is done submits the next one.
    fn run(&mut self, service: Duration, end: Instant) {
        while self.harness.now < end {
            let step =
                if self.harness.in_flight.is_empty() { Duration::from_millis(1) } else { service };
            self.harness.advance_to(self.harness.now + step);
            if !self.harness.in_flight.is_empty() {
                self.harness.complete(0);
            }
            for token in std::mem::take(&mut self.harness.done).into_keys() {
                let (process, since) = self.since[token as usize];
                let waited = self.harness.now.saturating_since(since);
                self.longest[process] = self.longest[process].max(waited);
                self.done[process] += 1;
                self.submit(process);
            }
            self.harness.queue.log().clear();
        }
    }
}

/// The turn of a level, in milliseconds.
fn turn(level: u8) -> u64 {
    LONGEST - 20 * u64::from(level)
}

fn kernels() -> impl Strategy<Value = &'static Kernel> {
    prop::sample::select(vec![Version::V4_10, Version::V4_19]).prop_map(Kernel::of)
}

/// Each case is seconds of a disk, so there are fewer of them than of others.
fn fewer() -> Config {
    let all = cases();
    Config { cases: all.cases.div_ceil(10), ..all }
}

proptest! {
    #![proptest_config(fewer())]

    #[test]
    fn nobody_waits_longer_than_the_turns_of_the_others(
        kernel in kernels(),
        depth in 1u32..4,
        levels in prop::collection::vec(0u8..8, 2..7),
        outstanding in 1u64..5,
        service in 300u64..4_000,
    ) {
        let mut readers =
            Readers::new(kernel, depth, &levels, vec![CgroupId::ROOT; levels.len()]);
        readers.harness.set("low_latency", 0).expect("in range");
        for process in 0..levels.len() {
            (0..outstanding).for_each(|_| readers.submit(process));
        }
        let service = Duration::from_micros(service);
        readers.run(service, Instant::from_nanos(6_000 * MILLI));
        // What a turn can last beyond its time: what was with the disk, and a wait for more.
        let commands = QUANTUM + u64::from(depth) + 1;
        let over = commands * service.as_nanos() + SLICE_IDLE * MILLI;
        let others = levels.len() as u64 - 1;
        let longest_turn = levels.iter().map(|level| turn(*level)).max().expect("there are some");
        for (process, level) in levels.iter().enumerate() {
            // A short turn comes later (rules cfq-place); until then longer ones come again.
            // Afterwards everybody has one more.
            let later = others * (longest_turn - turn(*level)) * MILLI;
            let once: u64 = (0..levels.len())
                .filter(|other| *other != process)
                .map(|other| turn(levels[other]) * MILLI + over)
                .sum();
            let own = (outstanding + u64::from(depth) + 1) * service.as_nanos() + over;
            let bound = Duration::from_nanos(later + once + longest_turn * MILLI + own);
            prop_assert!(
                readers.longest[process] <= bound,
                "process {process} of {levels:?} waited {}, more than {bound}",
                readers.longest[process],
            );
            prop_assert!(readers.done[process] > 0, "process {process} was never served");
        }
    }

    #[test]
    fn groups_share_the_disk_as_they_weigh(
        kernel in kernels(),
        weights in prop::collection::vec(100u32..=1000, 2..5),
        outstanding in 1u64..4,
    ) {
        let groups: Vec<CgroupId> = (1..=weights.len() as u32).map(CgroupId).collect();
        let mut readers = Readers::new(kernel, 1, &vec![4; weights.len()], groups.clone());
        for (group, weight) in groups.iter().zip(&weights) {
            let path = format!("/{}", group.0);
            let (parent, weight) = (Some(CgroupId::ROOT), Some(*weight));
            let value = Cgroup { path, parent, weight, leaf_weight: None };
            readers.harness.queue.define_cgroup(*group, value);
        }
        for process in 0..weights.len() {
            (0..outstanding).for_each(|_| readers.submit(process));
        }
        readers.run(Duration::from_millis(1), Instant::from_nanos(20_000 * MILLI));
        let (all, weighed) = (readers.done.iter().sum::<u64>(), weights.iter().sum::<u32>());
        for (done, weight) in readers.done.iter().zip(&weights) {
            let share = *done as f64 / all as f64;
            let expected = f64::from(*weight) / f64::from(weighed);
            prop_assert!(
                (share - expected).abs() <= 0.1 * expected + 0.01,
                "{weights:?} had {:?}",
                readers.done,
            );
        }
    }
}
