//! The contract of every scheduler in the list on every kernel that has it: random operations on a
//! real queue, compared with a naive twin decision by decision, and checked for what must hold
//! whatever the policy: nothing is lost or done twice, merging preserves every sector, nothing is
//! withheld without a reason, and everything ends.
//!
//! `PROPTEST_CASES=10000 cargo test --release -p paternoster-sched --test contract` looks longer.

mod harness;

use base::{Duration, Sector, Sectors};
use block::contract::assert_all_done;
use block::kernel::Plugging;
use block::{
    Action, Bio, CgroupId, CommandOp, ContextId, Flags, IoContextId, Ioprio, IoprioClass, KERNELS,
    Kernel, Op, Origin, PlugFlush, Scheduler, Shape, Transport,
};
use harness::watched::{SharedNotes, Watched};
use harness::{Harness, Table, cases};
use proptest::prelude::*;
use std::fmt;

/// Tasks that submit; context 0 is the kernel's.
const TASKS: u8 = 6;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Event {
    Submit { task: u8, op: u8, slot: u8, length: u8, priority: u8, flags: u8, near: u8 },
    Plug(u8),
    Unplug(u8),
    Blocks(u8),
    Complete(prop::sample::Index),
    Requeue(prop::sample::Index),
    Advance(u32),
    Tune(prop::sample::Index, i64),
    Requests(u32),
    Merges(u8),
    Switch,
}

/// A scheduler on a kernel, with a device.
#[derive(Clone)]
struct Setting {
    name: &'static str,
    kernel: &'static Kernel,
    table: Table,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{} on {:?}", self.name, self.kernel.version, self.table)
    }
}

/// Whether a scheduler is small enough to be written down twice; the contract of the others is in
/// `by_process.rs` and `kyber.rs`.
fn has_twin(name: &str) -> bool {
    !["anticipatory", "cfq", "kyber", "bfq"].contains(&name)
}

/// Every scheduler that has a twin, on every kernel that has it.
fn everywhere() -> impl Iterator<Item = (&'static str, &'static Kernel)> {
    sched::names()
        .filter(|name| has_twin(name))
        .flat_map(|name| sched::kernels(name).map(move |kernel| (name, kernel)))
}

fn settings() -> impl Strategy<Value = Setting> {
    let all: Vec<_> = everywhere().collect();
    let transports =
        [Transport::Scsi, Transport::Sata, Transport::Nvme, Transport::Virtio].to_vec();
    let table = (1u32..5, 1u32..3, prop::sample::select(transports), any::<[bool; 2]>(), 0u32..3)
        .prop_map(|(depth, hctxs, transport, [cache, fua], limit)| Table {
            depth,
            hctxs,
            cpus: 2,
            transport,
            cache,
            fua,
            max_sectors: [24, 64, 2560][limit as usize],
            ..Table::default()
        });
    (prop::sample::select(all), table).prop_map(|((name, kernel), table)| Setting {
        name,
        kernel,
        table,
    })
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let task = || 0..TASKS;
    let submit = (task(), 0u8..20, 0u8..48, 1u8..5, 0u8..8, any::<u8>(), 0u8..6).prop_map(
        |(task, op, slot, length, priority, flags, near)| Event::Submit {
            task,
            op,
            slot,
            length,
            priority,
            flags,
            near,
        },
    );
    // Mostly short steps; sometimes past deadlines, sometimes past the ageing time.
    let advance = prop_oneof![8 => 1u32..3_000, 1 => 1u32..700_000, 1 => 1u32..12_000_000];
    let event = prop_oneof![
        40 => submit,
        3 => task().prop_map(Event::Plug),
        4 => task().prop_map(Event::Unplug),
        1 => task().prop_map(Event::Blocks),
        15 => any::<prop::sample::Index>().prop_map(Event::Complete),
        2 => any::<prop::sample::Index>().prop_map(Event::Requeue),
        6 => advance.prop_map(Event::Advance),
        2 => (any::<prop::sample::Index>(), -2i64..40)
            .prop_map(|(at, value)| Event::Tune(at, value)),
        1 => (4u32..64).prop_map(Event::Requests),
        1 => prop::sample::select(vec![0u8, 0, 0, 1, 2]).prop_map(Event::Merges),
        1 => Just(Event::Switch),
    ];
    prop::collection::vec(event, 1..250)
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_scheduler_keeps_the_contract(setting in settings(), events in events()) {
        let mut run = Run::new(setting);
        for event in &events {
            run.happen(event);
        }
        run.end();
    }
}

/// A run: the queue, what was submitted to it, and what the twin said.
struct Run {
    setting: Setting,
    harness: Harness,
    notes: SharedNotes,
    /// The scheduler attached, or about to be.
    attached: &'static str,
    submitted: Vec<(Bio, usize)>,
    plugged: Vec<bool>,
}

impl Run {
    fn new(setting: Setting) -> Run {
        let notes = SharedNotes::default();
        let depth = 2 * setting.table.depth.min(128);
        let scheduler = build(setting.name, setting.kernel, depth, &notes);
        let mut harness = Harness::new(setting.kernel, setting.table, scheduler);
        if setting.name != "none" {
            harness.set("nr_requests", 64).expect("within its range");
        }
        Run {
            attached: setting.name,
            setting,
            harness,
            notes,
            submitted: Vec::new(),
            plugged: vec![false; usize::from(TASKS) + 1],
        }
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Submit { task, op, slot, length, priority, flags, near } => {
                let mut bio = self.bio(*task, *op, *slot, *length, *priority, *flags);
                self.place_near(&mut bio, *slot, *near);
                if !self.is_asleep(bio.origin.context) {
                    self.submitted.push((bio, self.harness.completed.len()));
                    self.harness.submit(bio);
                }
            }
            Event::Plug(task) => self.plug(context(*task)),
            Event::Unplug(task) => self.unplug(context(*task)),
            Event::Blocks(task) => {
                if !self.is_asleep(context(*task)) {
                    self.harness.finish_plug(context(*task), cpu(*task), PlugFlush::Blocks);
                }
            }
            Event::Complete(at) => {
                if !self.harness.in_flight.is_empty() {
                    let index = at.index(self.harness.in_flight.len());
                    self.harness.complete(index);
                }
            }
            Event::Requeue(at) => self.requeue(at),
            Event::Advance(micros) => {
                let then = self.harness.now + Duration::from_micros(u64::from(*micros));
                self.harness.advance_to(then);
            }
            Event::Tune(at, value) => self.tune(at, *value),
            Event::Requests(requests) => self.set_requests(*requests),
            Event::Merges(level) => {
                self.harness.set("nomerges", i64::from(*level)).expect("0, 1 or 2");
            }
            Event::Switch => self.switch(),
        }
        self.compare();
        self.check_conservation_of_work();
    }

    fn bio(&self, task: u8, op: u8, slot: u8, length: u8, priority: u8, flags: u8) -> Bio {
        let (op, mut carried) = match op {
            0..8 => (Op::Read, Flags::NONE),
            8..12 => (Op::Write, Flags::NONE),
            12..17 => (Op::Write, Flags::SYNC),
            17 => (Op::Write, Flags::PREFLUSH.with(Flags::SYNC)),
            18 => (Op::Write, Flags::FUA.with(Flags::SYNC)),
            _ => (Op::Discard, Flags::NONE),
        };
        // A bio that has to be split may not be NOWAIT: its parts could not be refused as one.
        if flags < 16 && length <= 3 {
            carried = carried.with(Flags::NOWAIT);
        }
        let is_flush = carried.intersects(Flags::PREFLUSH) && flags < 64;
        let class = [IoprioClass::None, IoprioClass::RealTime, IoprioClass::Idle];
        let class = class.get(usize::from(priority)).copied().unwrap_or(IoprioClass::BestEffort);
        let context = context(task);
        Bio {
            op,
            flags: carried,
            sector: Sector(if is_flush { 0 } else { u64::from(slot) * 8 }),
            sectors: Sectors(if is_flush { 0 } else { u32::from(length) * 8 }),
            ioprio: Ioprio { class, level: 4 },
            origin: Origin {
                context,
                io_context: IoContextId(context.0),
                cgroup: CgroupId::ROOT,
                cpu: cpu(task),
            },
            token: self.submitted.len() as u64,
        }
    }

    /// A third of all bios continues or precedes an earlier one: there is something to merge.
    fn place_near(&self, bio: &mut Bio, slot: u8, near: u8) {
        let recent = usize::from(slot) % self.submitted.len().clamp(1, 12);
        let Some((other, _)) = self.submitted.iter().rev().nth(recent) else { return };
        let behind = other.end();
        let before = other.sector.0.checked_sub(u64::from(bio.sectors.0)).map(Sector);
        let sector = match near {
            0 => Some(behind),
            1 => before,
            _ => None,
        };
        if let Some(sector) = sector.filter(|_| !bio.sectors.is_zero()) {
            let flags = bio.flags.without(Flags::PREFLUSH.with(Flags::FUA));
            *bio = Bio { sector, op: other.op, ioprio: other.ioprio, flags, ..*bio };
        }
    }

    fn is_asleep(&self, context: ContextId) -> bool {
        self.harness.asleep.contains(&context)
    }

    fn plug(&mut self, context: ContextId) {
        if !self.is_asleep(context) && !self.plugged[context.0 as usize] {
            self.plugged[context.0 as usize] = true;
            self.harness.start_plug(context);
        }
    }

    fn unplug(&mut self, context: ContextId) {
        if !self.is_asleep(context) && self.plugged[context.0 as usize] {
            self.plugged[context.0 as usize] = false;
            self.harness.finish_plug(context, cpu(context.0 as u8 - 1), PlugFlush::Explicit);
        }
    }

    /// Flush commands are not given back: a device that refuses them is a device fault.
    fn requeue(&mut self, at: &prop::sample::Index) {
        let given: Vec<usize> = (0..self.harness.in_flight.len())
            .filter(|index| self.harness.in_flight[*index].op != CommandOp::Flush)
            .collect();
        if !given.is_empty() {
            self.harness.requeue(given[at.index(given.len())]);
        }
    }

    fn tune(&mut self, at: &prop::sample::Index, value: i64) {
        let about = sched::about_on(self.attached, self.setting.kernel).expect("attached");
        if about.tunables.is_empty() {
            return;
        }
        let tunable = at.get(about.tunables);
        let accepted = self.harness.set(tunable.name, value).is_ok();
        assert_eq!(accepted, (tunable.min..=tunable.max).contains(&value), "{}", tunable.name);
    }

    fn set_requests(&mut self, requests: u32) {
        let name = if self.attached == "none" { "nomerges" } else { "nr_requests" };
        let value = if self.attached == "none" { 0 } else { i64::from(requests) };
        self.harness.set(name, value).expect("within its range");
    }

    /// To the next scheduler of the same shape on this kernel.
    fn switch(&mut self) {
        let shape = sched::shape_of(self.attached);
        let others: Vec<&'static str> = sched::names()
            .filter(|name| sched::shape_of(name) == shape && has_twin(name))
            .filter(|name| sched::kernels(name).any(|kernel| kernel == self.setting.kernel))
            .collect();
        let place = others.iter().position(|name| *name == self.attached).expect("in the list");
        self.drain();
        self.attached = others[(place + 1) % others.len()];
        let depth = 2 * self.setting.table.depth.min(128);
        let scheduler = build(self.attached, self.setting.kernel, depth, &self.notes);
        self.harness.switch(scheduler);
    }

    /// What left the scheduler is what the twin chose, in the same order.
    fn compare(&mut self) {
        for event in self.harness.take_events() {
            if let Action::Dispatch(reason) = event.action {
                let expected = self.notes.lock().unwrap().chosen.pop_front();
                assert_eq!(event.request, expected, "{reason} at {}", event.at);
            }
        }
        assert!(self.notes.lock().unwrap().chosen.is_empty(), "the twin chose more");
        // Compares the scheduler's count.
        self.harness.queue.queued();
    }

    /// If the twin would choose something now, and the device has room, nobody asked: a stall.
    fn check_conservation_of_work(&mut self) {
        let harness = &self.harness;
        let flushing = harness.in_flight.iter().any(|command| command.op == CommandOp::Flush);
        let blocked = self.setting.table.transport == Transport::Sata && flushing;
        let plugged = self.is_device_plugged();
        let one_queue = self.setting.table.hctxs == 1;
        let waits = blocked || plugged || harness.has_pending_run();
        if !harness.has_room() || waits || !one_queue || harness.queue.queued() == 0 {
            return;
        }
        let mut ahead = self.notes.lock().unwrap().twin.as_ref().expect("holds requests").copy();
        let about = sched::about_on(self.attached, self.setting.kernel).expect("attached");
        if about.tunables.iter().any(|tunable| tunable.name == "prio_aging_expire") {
            // Nothing runs the queue because a request grew old.
            ahead.set("prio_aging_expire", i64::from(i32::MAX));
        }
        let choice = ahead.dispatch(harness.now.jiffies(self.setting.kernel.hz));
        assert_eq!(choice, None, "nothing is issued although the device has room");
    }

    /// Kernels that plug the device hold requests back until a timer is due.
    fn is_device_plugged(&self) -> bool {
        let single = self.setting.kernel.single;
        let plugs = single.is_some_and(|single| matches!(single.plugging, Plugging::Device { .. }));
        plugs && self.harness.queue.next_timer().is_some()
    }

    fn drain(&mut self) {
        for round in 0.. {
            assert!(round < 10_000, "the queue does not run dry");
            for task in 0..TASKS {
                self.unplug(context(task));
            }
            self.compare();
            if self.harness.in_flight.is_empty() {
                if self.harness.queue.allocated() == 0 && self.harness.asleep.is_empty() {
                    return;
                }
                self.harness.advance_to(self.harness.now + Duration::from_millis(10));
                self.compare();
                let stuck = self.harness.in_flight.is_empty() && !self.any_plugged();
                let left = self.harness.queue.allocated();
                assert!(!stuck || left == 0, "{left} requests are stuck");
            } else {
                self.harness.complete(0);
                self.compare();
            }
        }
    }

    fn any_plugged(&self) -> bool {
        self.plugged.iter().any(|plugged| *plugged)
    }

    fn end(mut self) {
        self.drain();
        self.harness.queue.assert_drained();
        assert_all_done(&self.harness, &self.submitted);
    }
}

fn build(
    name: &str,
    kernel: &'static Kernel,
    depth: u32,
    notes: &SharedNotes,
) -> Option<Box<dyn Scheduler>> {
    (name != "none").then(|| Watched::around(name, kernel, depth, notes))
}

fn context(task: u8) -> ContextId {
    ContextId(u32::from(task) + 1)
}

fn cpu(task: u8) -> u16 {
    u16::from(task) % 2
}

#[test]
fn every_kernel_has_a_scheduler_of_each_shape_it_has() {
    for kernel in &KERNELS {
        for shape in [Shape::Single, Shape::Multi].into_iter().filter(|s| kernel.has(*s)) {
            let found = sched::names().filter(|name| sched::shape_of(name) == Some(shape));
            let found = found.filter(|name| sched::kernels(name).any(|k| k == kernel));
            assert!(found.count() >= 2, "{:?} {shape:?}", kernel.version);
        }
    }
}

#[test]
fn tunables_show_what_was_written_in_whole_ticks() {
    for (name, kernel) in everywhere().filter(|(name, _)| *name != "none") {
        let scheduler = sched::build(name, kernel).expect("on its kernel");
        let mut harness = Harness::new(kernel, Table::default(), scheduler);
        for tunable in sched::about_on(name, kernel).expect("on its kernel").tunables {
            let attached = harness.queue.get(tunable.name);
            let expected = tunable.default.unwrap_or(2 * i64::from(Table::default().depth));
            assert_eq!(attached, Some(expected), "{name} {}", tunable.name);
            // Where `async_depth` is the queue's it is never more than there are requests.
            let is_of_queue = kernel.multi.is_some_and(|it| it.async_depth_is_of_queue);
            let most = match tunable.name == "async_depth" && is_of_queue {
                true => expected,
                false => i64::MAX,
            };
            for value in [tunable.min, tunable.max.min(1_234_567), 0, 1, 7] {
                if !(tunable.min..=tunable.max).contains(&value) {
                    assert!(harness.set(tunable.name, value).is_err());
                    continue;
                }
                harness.set(tunable.name, value).expect("within its range");
                let tick = 1000 / i64::from(kernel.hz.get());
                let is_time = tunable.unit == "ms";
                let shown = if is_time { (value + tick - 1) / tick * tick } else { value };
                let shown = shown.min(most);
                assert_eq!(harness.queue.get(tunable.name), Some(shown), "{}", tunable.name);
            }
        }
    }
}
