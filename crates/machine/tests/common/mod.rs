//! What the tests of this crate share: a disk of constant latency, a setup around it, and the bios
//! that come of files.

#![allow(dead_code, reason = "each test file is a crate of its own and uses what it needs")]

pub mod calls;

use base::{Bytes, Duration, Instant, Sectors};
use block::{Action, Attach, Command, Event, Facts, Flags, Kernel, Op, Tag, Transport};
use device::Device;
use machine::{Checker, Host, Job, Mount, Native, Observer, Outcome, Setup, TaskInfo};
use std::collections::{BTreeMap, VecDeque};

/// A disk that takes the same time for everything and serves all commands at once.
pub struct Steady {
    facts: Facts,
    service: Duration,
    in_flight: VecDeque<(Instant, Tag)>,
}

impl Steady {
    /// With a volatile cache and without FUA, 1 GiB, logical blocks of 512 bytes.
    pub fn new(service: Duration, queue_depth: u32) -> Steady {
        let facts = Facts {
            transport: Transport::Virtio,
            capacity: Bytes(1 << 30),
            rotational: false,
            volatile_cache: true,
            fua: false,
            queue_depth,
            hardware_queues: 1,
            logical_block: 512,
            max_hw_sectors: Sectors(65_535),
            max_segments: 128,
            discard: true,
            chunk_sectors: Sectors(0),
            segment: Facts::PAGE,
        };
        Steady { facts, service, in_flight: VecDeque::new() }
    }

    /// With facts of one's own.
    pub fn with(mut self, change: impl FnOnce(&mut Facts)) -> Steady {
        change(&mut self.facts);
        self
    }
}

impl Device for Steady {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn accept(&mut self, now: Instant, command: Command) {
        let most = self.facts.queue_depth * self.facts.hardware_queues;
        assert!(self.in_flight.len() < most as usize, "more than {most} commands at once");
        self.in_flight.push_back((now + self.service, command.tag));
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

/// A setup on host `free` with a steady disk: 100 us, 32 commands at once.
pub fn setup(kernel: &str, scheduler: &str) -> Setup {
    let kernel = Kernel::named(kernel).expect("a kernel");
    let attach = Attach::of(sched::build(scheduler, kernel).expect("a scheduler"));
    let device = Box::new(Steady::new(Duration::from_micros(100), 32));
    let setup = Setup::new(kernel, attach, device, Host::free(), Vec::new());
    Setup { events: true, messages: true, paranoid: true, ..setup }
}

/// A job that runs a command.
pub fn command(line: &str) -> Job {
    Job::new(line, programs::parse(line).expect("a command").program)
}

/// A job that runs an `async` function.
pub fn native<F>(name: &str, program: impl Fn(machine::Task) -> F + Send + Sync + 'static) -> Job
where
    F: Future<Output = i32> + 'static,
{
    Job::new(name, Native::new(name, program))
}

/// Runs a setup under a checker; the counts are those of the checker.
pub fn checked(setup: Setup) -> (Outcome, machine::check::Counts) {
    let mut checker = Checker::new(setup.device.facts(), setup.attach.shape);
    let outcome = machine::run(setup, &mut checker).expect("a setup that runs");
    let counts = checker.finish();
    (outcome, counts)
}

/// Runs a setup that is cut off under a checker.
pub fn checked_to_the_cut(setup: Setup) -> Outcome {
    let mut checker = Checker::new(setup.device.facts(), setup.attach.shape);
    machine::run(setup, &mut checker).expect("a setup that runs")
}

/// A bio as it was submitted.
pub struct Submitted {
    /// The name of the task.
    pub task: String,
    pub op: Op,
    pub sector: u64,
    pub sectors: u32,
    pub flags: Flags,
}

/// Keeps all bios.
#[derive(Default)]
struct Bios {
    names: BTreeMap<u32, String>,
    bios: Vec<Submitted>,
}

impl Observer for Bios {
    fn meet(&mut self, who: &TaskInfo) {
        self.names.insert(who.context.0, who.name.clone());
    }

    fn see(&mut self, event: &Event) {
        if event.action == Action::Queue {
            let task = self.names[&event.context.0].clone();
            let (op, flags) = (event.op, event.flags);
            let (sector, sectors) = (event.sector.0, event.sectors.0);
            self.bios.push(Submitted { task, op, sector, sectors, flags });
        }
    }
}

/// The bios that jobs on a file system submit, and its own tasks for them.
pub fn submitted(kernel: &str, scheduler: &str, jobs: Vec<Job>, mount: Mount) -> Vec<Submitted> {
    submitted_in(Setup { jobs, mount: Some(mount), ..setup(kernel, scheduler) })
}

/// The bios of a setup.
pub fn submitted_in(setup: Setup) -> Vec<Submitted> {
    let mut bios = Bios::default();
    machine::run(setup, &mut bios).expect("a setup that runs");
    bios.bios
}
