//! Kyber: its contract, random operations beside its naive twin, and what it promises: a domain has
//! no more requests with the device than tokens, and whoever waits for a token is let go.

mod harness;

use base::{Duration, Sector, Sectors};
use block::queue::guided::{Answer, GuidedQueue};
use block::{
    Action, Bio, CgroupId, ContextId, Flags, IoContextId, Ioprio, Kernel, Op, Origin, PlugFlush,
    Version,
};
use harness::shadow::{Chosen, Shadowed};
use harness::{Harness, Table, cases};
use proptest::prelude::*;
use std::sync::Arc;

/// Tasks that submit, each on the core of its number.
const TASKS: u32 = 4;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Event {
    Submit { task: u32, op: u8, slot: u64, times: u8 },
    Plug(u32),
    Unplug(u32),
    Complete { at: u8, times: u16 },
    Requeue(u8),
    Advance(u32),
    Tune { at: u8, value: i64 },
    Requests(u32),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let task = || 0..TASKS;
    let submit = (task(), 0u8..16, 0u64..64, 1u8..40)
        .prop_map(|(task, op, slot, times)| Event::Submit { task, op, slot, times });
    // Mostly within a target; sometimes beyond all, or until histograms are looked at.
    let advance = prop_oneof![8 => 1u32..3_000, 4 => 1u32..40_000, 2 => 90_000u32..2_000_000];
    // From targets that nothing meets to some that everything does.
    let value = prop_oneof![0i64..40, 1i64..40_000_000, 1i64..10_000_000_000];
    let event = prop_oneof![
        30 => submit,
        3 => task().prop_map(Event::Plug),
        4 => task().prop_map(Event::Unplug),
        20 => (any::<u8>(), 1u16..60).prop_map(|(at, times)| Event::Complete { at, times }),
        1 => any::<u8>().prop_map(Event::Requeue),
        12 => advance.prop_map(Event::Advance),
        2 => (any::<u8>(), value).prop_map(|(at, value)| Event::Tune { at, value }),
        1 => (4u32..300).prop_map(Event::Requests),
    ];
    prop::collection::vec(event, 1..150)
}

fn kernels() -> impl Strategy<Value = &'static Kernel> {
    prop::sample::select(sched::kernels("kyber").collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn kyber_decides_as_its_naive_twin(
        kernel in kernels(),
        depth in prop_oneof![1u32..4, 20u32..200],
        events in events(),
    ) {
        let mut run = Run::new(kernel, depth);
        events.iter().for_each(|event| run.happen(event));
        run.end();
    }

    #[test]
    fn kyber_keeps_the_contract(kernel in kernels(), seed in any::<u64>()) {
        let build = || sched::build("kyber", kernel).expect("it has it").expect("not none");
        block::contract::check(kernel, build, seed, 150);
    }
}

/// A queue with Kyber and its twin.
struct Run {
    harness: Harness,
    chosen: Chosen,
    plugged: [bool; TASKS as usize],
    submitted: Vec<(Bio, usize)>,
}

impl Run {
    fn new(kernel: &'static Kernel, depth: u32) -> Run {
        let chosen = Chosen::default();
        let scheduler = Some(Shadowed::around("kyber", kernel, &Arc::clone(&chosen)));
        let table =
            Table { depth, cpus: TASKS as u16, max_sectors: 64, cache: true, ..Table::default() };
        let harness = Harness::new(kernel, table, scheduler);
        Run { harness, chosen, plugged: [false; TASKS as usize], submitted: Vec::new() }
    }

    fn happen(&mut self, event: &Event) {
        let micros = |micros: u32| Duration::from_micros(u64::from(micros));
        match *event {
            Event::Submit { task, op, slot, times } => {
                for number in 0..u64::from(times) {
                    self.submit(task, op, slot * 8 + number * 16);
                }
            }
            Event::Plug(task) if !self.plugged[task as usize] && !self.is_asleep(task) => {
                self.plugged[task as usize] = true;
                self.harness.start_plug(context(task));
            }
            Event::Unplug(task) => self.unplug(task),
            Event::Complete { at, times } => {
                for _ in 0..times {
                    let count = self.harness.in_flight.len();
                    if count > 0 {
                        self.harness.complete(usize::from(at) % count);
                    }
                }
            }
            Event::Requeue(at) => {
                let count = self.harness.in_flight.len();
                if count > 0 {
                    self.harness.requeue(usize::from(at) % count);
                }
            }
            Event::Advance(time) => self.harness.advance_to(self.harness.now + micros(time)),
            Event::Tune { at, value } => {
                let names = ["read_lat_nsec", "write_lat_nsec", "async_depth"];
                // Not every kernel has all of them, with this value.
                let _ = self.harness.set(names[usize::from(at) % names.len()], value);
            }
            Event::Requests(requests) => {
                self.harness.set("nr_requests", requests.into()).expect("in range");
            }
            Event::Plug(_) => {}
        }
        self.compare();
    }

    fn submit(&mut self, task: u32, op: u8, sector: u64) {
        let (op, flags) = match op {
            0..6 => (Op::Read, Flags::NONE),
            6..10 => (Op::Write, Flags::NONE),
            10..14 => (Op::Write, Flags::SYNC),
            14 => (Op::Write, Flags::SYNC.with(Flags::FUA)),
            _ => (Op::Discard, Flags::NONE),
        };
        let bio = Bio {
            op,
            flags,
            sector: Sector(sector),
            sectors: Sectors(8),
            ioprio: Ioprio::NONE,
            origin: Origin {
                context: context(task),
                io_context: IoContextId(task),
                cgroup: CgroupId::ROOT,
                cpu: task as u16,
            },
            token: self.submitted.len() as u64,
        };
        if !self.is_asleep(task) {
            self.submitted.push((bio, self.harness.completed.len()));
            self.harness.submit(bio);
        }
    }

    fn is_asleep(&self, task: u32) -> bool {
        self.harness.asleep.contains(&context(task))
    }

    fn unplug(&mut self, task: u32) {
        if self.plugged[task as usize] && !self.is_asleep(task) {
            self.plugged[task as usize] = false;
            self.harness.finish_plug(context(task), task as u16, PlugFlush::Explicit);
        }
    }

    /// What left is what the twin chose, in the same order.
    fn compare(&mut self) {
        for event in self.harness.take_events() {
            if let Action::Dispatch(reason) = event.action {
                let expected = self.chosen.lock().unwrap().pop_front();
                assert_eq!(event.request, expected, "{reason} at {}", event.at);
            }
        }
        assert!(self.chosen.lock().unwrap().is_empty(), "the twin chose more");
    }

    fn end(mut self) {
        for round in 0.. {
            assert!(round < 100_000, "the queue does not run dry");
            (0..TASKS).for_each(|task| self.unplug(task));
            self.compare();
            if !self.harness.in_flight.is_empty() {
                self.harness.complete(0);
            } else if self.harness.queue.allocated() > 0 || !self.harness.asleep.is_empty() {
                self.harness.advance_to(self.harness.now + Duration::from_millis(10));
                self.compare();
                let waits = self.harness.in_flight.is_empty() && !self.plugged.contains(&true);
                assert!(!waits || self.harness.queue.allocated() == 0, "requests are stuck");
            } else {
                break;
            }
        }
        self.harness.queue.assert_drained();
        block::contract::assert_all_done(&self.harness, &self.submitted);
    }
}

fn context(task: u32) -> ContextId {
    ContextId(task + 1)
}

/// Reads that take far longer than their target, beside writes that take far less than theirs.
fn after_bad_reads(kernel: Version) -> Harness {
    let kernel = Kernel::of(kernel);
    let built = sched::build("kyber", kernel).expect("it has it");
    let table = Table { depth: 128, ..Table::default() };
    let mut harness = Harness::new(kernel, table, built);
    harness.set("read_lat_nsec", 1_000_000).expect("in range");
    harness.set("write_lat_nsec", 1_000_000_000).expect("in range");
    let mut token = 0;
    for _ in 0..30 {
        for sector in 0..40 {
            let read = harness::read(sector % 2, 10_000 + u64::from(sector) * 16, token);
            let flags = if sector % 2 == 1 { Flags::SYNC } else { Flags::NONE };
            let op = if sector % 2 == 1 { Op::Write } else { Op::Read };
            harness.submit(Bio { op, flags, ..read });
            token += 1;
        }
        harness.advance_to(harness.now + Duration::from_millis(20));
        while !harness.in_flight.is_empty() {
            harness.complete(0);
        }
    }
    harness.advance_to(harness.now + Duration::from_millis(1_500));
    harness
}

#[test]
fn writes_that_are_fast_give_way_to_reads_that_are_late() {
    for kernel in sched::kernels("kyber") {
        let mut harness = after_bad_reads(kernel.version);
        for sector in 0..100 {
            let write = harness::read(1, 50_000 + sector * 16, 10_000 + sector);
            harness.submit(Bio { op: Op::Write, flags: Flags::SYNC, ..write });
        }
        let writes = harness.in_flight.len();
        assert!(writes < 100, "{}: {writes} writes have tokens", kernel.version);
        harness.drain();
        harness.queue.assert_drained();
    }
}

#[test]
fn who_follows_lets_any_of_those_go_that_wait_and_the_turn_is_theirs() {
    for kernel in sched::kernels("kyber") {
        let built = sched::build("kyber", kernel).expect("it has it");
        let table = Table { depth: 64, ..Table::default() };
        let harness = Harness::new(kernel, table, built);
        let (mut queue, now) = (GuidedQueue::new(harness.queue), harness.now);
        let arrive = |queue: &mut GuidedQueue, op, sector| {
            let flags = if op == Op::Write { Flags::SYNC } else { Flags::NONE };
            let bio = Bio { op, flags, ..harness::read(0, sector, 0) };
            let rq = queue.allocate(now, &bio, None);
            queue.unplug(rq);
            queue.insert(now, rq, false);
            rq
        };
        let reads: Vec<_> = (0..4).map(|n| arrive(&mut queue, Op::Read, 1_000 + 100 * n)).collect();
        let writes: Vec<_> =
            (0..12).map(|n| arrive(&mut queue, Op::Write, 9_000 + 100 * n)).collect();
        let release = |queue: &mut GuidedQueue, rq| {
            assert!(queue.release(now, rq));
            assert_eq!(queue.take_waiting(), Some(rq));
            queue.start(now, rq);
        };
        let ask = |queue: &mut GuidedQueue| {
            let Answer::Issued(rq, _) = queue.ask(now, now) else { panic!("something waits") };
            queue.accept(now);
            assert_eq!(queue.take_waiting(), Some(rq));
            queue.start(now, rq);
            rq
        };
        release(&mut queue, reads[2]);
        assert_eq!(ask(&mut queue), reads[0], "the oldest that is left, {}", kernel.version);
        // Eight writes are a batch, whoever chose them.
        (3..11).for_each(|n| release(&mut queue, writes[n]));
        assert_eq!(ask(&mut queue), reads[1], "after a batch of writes, {}", kernel.version);
        // A turn that begins has its whole batch before it.
        (0..2).for_each(|n| release(&mut queue, writes[n]));
        assert_eq!(ask(&mut queue), writes[2], "the batch goes on, {}", kernel.version);
        assert_eq!(ask(&mut queue), writes[11], "{}", kernel.version);
        assert_eq!(ask(&mut queue), reads[3], "{}", kernel.version);
        reads.iter().chain(&writes).for_each(|rq| queue.complete(now, *rq));
        queue.queue().assert_drained();
    }
}
