//! What BFQ promises: whoever always has requests is served as he weighs, whoever else comes and
//! goes.
//!
//! The bound is that of B-WF2Q+ (Valente and Checconi, "High Throughput Disk Scheduling with Fair
//! Bandwidth Distribution", 2010; of WF2Q+ before it: Bennett and Zhang, 1997). Let V be the
//! virtual time of a level, which advances by what is served in it divided by the sum of weights.
//!
//! * Nobody is served before his start: a member that has had W sectors since it stood at V has a
//!   start of V + W / w, and is chosen only if that is not after V now. So it is ahead by what it
//!   may be served at a time and no more, its budget: at most B / w.
//! * Whoever may be served and would have used up his budget first is chosen. So a member is behind
//!   by its own budget, B / w, and by one that another member was given just before it came to be
//!   eligible: B divided by the sum of weights, which is not more than B / w.
//!
//! So over any span two members that always have requests differ, in sectors by weight, by no more
//! than 3 B / w of the one and 3 B / w of the other. This holds on each level, as a group is
//! charged what its members are and given the budget of the one that comes next.
//!
//! B is the largest budget plus a request: a queue whose next request does not fit keeps what is
//! left of its budget unused. Here nobody is raised (`low_latency`), waited for or preferred while
//! somebody is waited for (`slice_idle`), jumps about or is slow, for those are charged for time.

mod harness;

use base::{Duration, Instant, Sectors};
use block::scheduler::{Cgroup, IoContext};
use block::{Action, CgroupId, IoContextId, Ioprio, IoprioClass, Kernel};
use harness::{Harness, Table, cases, read};
use proptest::prelude::*;
use proptest::test_runner::Config;

/// A process's part of the disk.
const REGION: u64 = 100_000_000;
/// The largest budget, in sectors.
const BUDGET: u64 = 16_384;
const LONGEST: u64 = 1_024;
/// Requests of the queue: as many as there can be.
const REQUESTS: i64 = 2_048;
/// Requests of a process that always has some.
const OUTSTANDING: u32 = 3;

/// A process: its group (0 is the root), its level, how long its requests are, and for how long it
/// thinks, if it does, in microseconds.
#[derive(Clone, Debug)]
struct Reader {
    group: usize,
    level: u8,
    sectors: u32,
    thinks: Option<u64>,
}

/// Groups by weight; every second one lies in the one before it.
#[derive(Clone, Debug)]
struct Case {
    groups: Vec<u32>,
    readers: Vec<Reader>,
}

fn any_case() -> impl Strategy<Value = Case> {
    let thinks = prop_oneof![3 => Just(None), 1 => (100u64..20_000).prop_map(Some)];
    let reader = (0usize..5, 0u8..8, 128u32..=LONGEST as u32, thinks);
    let reader = reader.prop_map(|(group, level, sectors, thinks)| {
        let group = if thinks.is_some() { 0 } else { group };
        Reader { group, level, sectors, thinks }
    });
    let groups = prop::collection::vec(100u32..=1_000, 4);
    let readers = prop::collection::vec(reader, 2..9);
    (groups, readers).prop_map(|(groups, readers)| Case { groups, readers })
}

impl Case {
    /// How many of the queue's requests a process may have at least, when all are busy: by its
    /// weight, level by level.
    fn share(&self, reader: &Reader) -> u64 {
        let inside = |group: usize| -> u64 {
            let readers = self.readers.iter().filter(|reader| reader.group == group);
            let groups = (1..=self.groups.len()).filter(|inner| parent(*inner) == group);
            let weights = groups.map(|inner| u64::from(self.groups[inner - 1]));
            readers.map(Reader::weight).chain(weights).sum()
        };
        let (mut share, mut group) = (REQUESTS as u64 * reader.weight(), reader.group);
        while group != 0 {
            share = share * u64::from(self.groups[group - 1]) / inside(group);
            group = parent(group);
        }
        share / inside(0)
    }
}

impl Reader {
    fn weight(&self) -> u64 {
        10 * (8 - u64::from(self.level))
    }
}

/// The group in which a group lies.
fn parent(group: usize) -> usize {
    if group > 0 && group.is_multiple_of(2) { group - 1 } else { 0 }
}

struct Run {
    case: Case,
    harness: Harness,
    /// Where each process goes on.
    next: Vec<u64>,
    /// Who submitted what, by token.
    owners: Vec<usize>,
    /// When a process that thinks goes on.
    wakes: Vec<Option<Instant>>,
    /// Sectors that each process was served.
    served: Vec<u64>,
}

impl Run {
    fn new(kernel: &'static Kernel, case: Case) -> Run {
        let built = sched::build("bfq", kernel).expect("the kernel has it");
        let mut harness = Harness::new(kernel, Table::default(), built);
        harness.queue.set_paranoid(false);
        let settings = [
            ("nr_requests", REQUESTS),
            ("low_latency", 0),
            ("slice_idle", 0),
            ("timeout_sync", 9_999),
            ("max_budget", BUDGET as i64),
        ];
        for (name, value) in settings {
            harness.set(name, value).expect("within its range");
        }
        for (place, weight) in case.groups.iter().enumerate() {
            let group = place + 1;
            let parent = Some(CgroupId(parent(group) as u32));
            let path = format!("/{group}");
            let value = Cgroup { path, parent, weight: Some(*weight), leaf_weight: None };
            harness.queue.define_cgroup(CgroupId(group as u32), value);
        }
        let number = case.readers.len();
        for (process, reader) in case.readers.iter().enumerate() {
            let ioprio = Ioprio { class: IoprioClass::BestEffort, level: reader.level };
            let value = IoContext { ioprio, tasks: 1, ..IoContext::default() };
            harness.queue.define_io_context(IoContextId(process as u32), value);
        }
        Run {
            case,
            harness,
            next: (1..=number as u64).map(|process| process * REGION).collect(),
            owners: Vec::new(),
            wakes: vec![None; number],
            served: vec![0; number],
        }
    }

    fn submit(&mut self, process: usize) {
        let reader = &self.case.readers[process];
        let token = self.owners.len() as u64;
        let mut bio = read(process as u32, self.next[process], token);
        bio.sectors = Sectors(reader.sectors);
        bio.origin.cgroup = CgroupId(reader.group as u32);
        // Near the one before, and not next to it: each is a request of its own.
        self.next[process] += u64::from(reader.sectors) + 16;
        self.owners.push(process);
        self.harness.submit(bio);
        assert!(self.harness.asleep.is_empty(), "there are requests enough");
    }

    /// Everybody comes once, alone, so that no queues are merged for being of one age.
    fn introduce(&mut self) {
        for process in 0..self.case.readers.len() {
            self.submit(process);
            self.harness.complete(0);
            let then = self.harness.now + Duration::from_millis(700);
            self.harness.advance_to(then);
        }
        self.harness.done.clear();
        self.harness.take_events();
    }

    /// One command is served; whoever it was for goes on.
    fn step(&mut self) {
        if self.harness.in_flight.is_empty() {
            let next = self.wakes.iter().flatten().min().copied().expect("somebody wakes up");
            self.harness.advance_to(next.max(self.harness.now));
        } else {
            let then = self.harness.now + Duration::from_micros(100);
            self.harness.advance_to(then);
            self.harness.complete(0);
        }
        for token in std::mem::take(&mut self.harness.done).into_keys() {
            let process = self.owners[token as usize];
            match self.case.readers[process].thinks {
                Some(micros) => {
                    self.wakes[process] = Some(self.harness.now + Duration::from_micros(micros));
                }
                None => self.submit(process),
            }
        }
        for process in 0..self.wakes.len() {
            if self.wakes[process].is_some_and(|due| due <= self.harness.now) {
                self.wakes[process] = None;
                self.submit(process);
            }
        }
        for event in self.harness.take_events() {
            if matches!(event.action, Action::Dispatch(_)) {
                let process = event.sector.0 / REGION - 1;
                self.served[process as usize] += u64::from(event.sectors.0);
            }
        }
    }

    /// Members of a group that always have requests: their weight, and what they were served.
    fn members(&self, group: usize) -> Vec<(u64, u64)> {
        let readers = self.case.readers.iter().zip(&self.served);
        let own = readers.filter(|(reader, _)| reader.group == group && reader.thinks.is_none());
        let mut members: Vec<(u64, u64)> =
            own.map(|(reader, served)| (reader.weight(), *served)).collect();
        for inner in (1..=self.case.groups.len()).filter(|inner| parent(*inner) == group) {
            if self.is_always_busy(inner) {
                members.push((u64::from(self.case.groups[inner - 1]), self.served_in(inner)));
            }
        }
        members
    }

    fn is_in(&self, mut group: usize, outer: usize) -> bool {
        while group != outer && group != 0 {
            group = parent(group);
        }
        group == outer
    }

    fn is_always_busy(&self, group: usize) -> bool {
        let all = self.case.readers.iter();
        let mut inside = all.filter(|reader| self.is_in(reader.group, group));
        inside.any(|reader| reader.thinks.is_none())
    }

    fn served_in(&self, group: usize) -> u64 {
        let readers = self.case.readers.iter().zip(&self.served);
        let inside = readers.filter(|(reader, _)| self.is_in(reader.group, group));
        inside.map(|(_, served)| *served).sum()
    }

    /// For each pair on each level: by how much the first one is ahead, in sectors by weight times
    /// both weights, and the bound of that.
    fn leads(&self) -> Vec<(i128, i128)> {
        let mut leads = Vec::new();
        for group in 0..=self.case.groups.len() {
            let members = self.members(group);
            for (place, (weight, served)) in members.iter().enumerate() {
                for (other, theirs) in &members[place + 1..] {
                    let lead = i128::from(served * other) - i128::from(theirs * weight);
                    let bound = 3 * (BUDGET + LONGEST) * (other + weight);
                    leads.push((lead, i128::from(bound)));
                }
            }
        }
        leads
    }
}

/// Each case is thousands of requests, so there are fewer of them than of others.
fn fewer() -> Config {
    let all = cases();
    Config { cases: all.cases.div_ceil(5), ..all }
}

proptest! {
    #![proptest_config(fewer())]

    #[test]
    fn whoever_always_has_requests_is_served_as_he_weighs(
        place in any::<prop::sample::Index>(),
        case in any_case(),
    ) {
        let kernels: Vec<&'static Kernel> = sched::kernels("bfq").collect();
        // Whoever may not have that many does not always have requests.
        let least = case.readers.iter().map(|reader| case.share(reader)).min();
        prop_assume!(least >= Some(u64::from(OUTSTANDING)));
        let mut run = Run::new(place.get::<&'static Kernel>(&kernels), case);
        run.introduce();
        for process in 0..run.case.readers.len() {
            let thinks = run.case.readers[process].thinks.is_some();
            (0..if thinks { 1 } else { OUTSTANDING }).for_each(|_| run.submit(process));
        }
        run.step();
        let mut spans: Vec<(i128, i128)> =
            run.leads().iter().map(|(lead, _)| (*lead, *lead)).collect();
        for _ in 0..4_000 {
            run.step();
            for (span, (lead, bound)) in spans.iter_mut().zip(run.leads()) {
                *span = (span.0.min(lead), span.1.max(lead));
                prop_assert!(
                    span.1 - span.0 <= bound,
                    "{} of {bound} at {}: {:?}",
                    span.1 - span.0,
                    run.harness.now,
                    run.served,
                );
            }
        }
    }
}
