//! The contract of the schedulers that know processes: random operations on a real queue, with
//! control groups, shared io_contexts, changing priorities and exits. Nothing is lost or done
//! twice, everything that is withheld is let go at last, and all counts agree after every step (the
//! scheduler checks them itself).
//!
//! `PROPTEST_CASES=10000 cargo test --release -p paternoster-sched --test by_process` looks longer.

mod harness;

use base::{Duration, Sector, Sectors};
use block::scheduler::{Cgroup, CpuPolicy, IoContext};
use block::{
    Action, Bio, CgroupId, ContextId, EventLog, Flags, HoldReason, IoContextId, Ioprio,
    IoprioClass, Kernel, Op, Origin, PlugFlush, Shape, Version,
};
use harness::shadow::{Chosen, Shadowed};
use harness::{Harness, KERNEL, Table, cases};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Tasks that submit; context 0 is the kernel's.
const TASKS: u8 = 8;
const GROUPS: u8 = 4;
/// A task whose queues are not counted.
const STRANGER: ContextId = ContextId(99);

/// One thing that happens.
#[derive(Clone, Debug)]
enum Event {
    Submit { task: u8, op: u8, slot: u8, length: u8, flags: u8 },
    Plug(u8),
    Unplug(u8),
    Complete(u8),
    Requeue(u8),
    Advance(u32),
    Tune(u8, i64),
    Priority { task: u8, class: u8, level: u8 },
    Move { task: u8, group: u8 },
    Weigh { group: u8, weight: u32 },
    Remove(u8),
    Exit(u8),
    Switch,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let task = || 0..TASKS;
    // 64 sectors are no small request on flash.
    let length = prop_oneof![9 => 1u8..5, 1 => 6u8..12];
    // Half of them among few sectors, where much touches.
    let slot = prop_oneof![0u8..200, 0u8..16];
    let submit =
        (task(), 0u8..16, slot, length, any::<u8>()).prop_map(|(task, op, slot, length, flags)| {
            Event::Submit { task, op, slot, length, flags }
        });
    let index = any::<u8>;
    let advance = prop_oneof![8 => 1u32..3_000, 2 => 1u32..30_000, 1 => 1u32..4_000_000];
    let priority = (task(), 0u8..4, 0u8..8);
    let event = prop_oneof![
        40 => submit,
        3 => task().prop_map(Event::Plug),
        4 => task().prop_map(Event::Unplug),
        20 => index().prop_map(Event::Complete),
        2 => index().prop_map(Event::Requeue),
        8 => advance.prop_map(Event::Advance),
        2 => (index(), -1i64..40).prop_map(|(at, value)| Event::Tune(at, value)),
        3 => priority.prop_map(|(task, class, level)| Event::Priority { task, class, level }),
        2 => (task(), 0..GROUPS).prop_map(|(task, group)| Event::Move { task, group }),
        1 => (0..GROUPS, 10u32..1_000).prop_map(|(group, weight)| Event::Weigh { group, weight }),
        1 => (1..GROUPS).prop_map(Event::Remove),
        1 => task().prop_map(Event::Exit),
        1 => Just(Event::Switch),
    ];
    prop::collection::vec(event, 1..300)
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn whoever_waits_for_processes_keeps_the_contract(
        place in any::<prop::sample::Index>(),
        case in any_case(),
        events in events(),
    ) {
        let (name, kernel) = *place.get(&everywhere());
        Run::new(name, kernel, case).all(&events);
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn cfq_decides_as_its_naive_twin(
        is_late in any::<bool>(),
        case in any_case(),
        events in events(),
    ) {
        let kernel = Kernel::of(if is_late { Version::V4_19 } else { Version::V4_10 });
        Run::with_twin("cfq", kernel, case).all(&events);
    }

    #[test]
    fn bfq_decides_as_its_naive_twin(
        place in any::<prop::sample::Index>(),
        case in any_case(),
        events in events(),
    ) {
        // The twin knows no kernels before 6.1; those are judged by recordings.
        let kernels = sched::kernels("bfq").filter(|kernel| kernel.version >= Version::V6_1);
        let kernels: Vec<&'static Kernel> = kernels.collect();
        Run::with_twin("bfq", place.get::<&'static Kernel>(&kernels), case).all(&events);
    }

    #[test]
    fn early_cfq_decides_as_its_naive_twin(
        is_first in any::<bool>(),
        case in any_case(),
        events in events(),
    ) {
        let kernel = Kernel::of(if is_first { Version::V2_6_28 } else { Version::V2_6_32 });
        Run::with_twin("cfq", kernel, case).all(&events);
    }

    #[test]
    fn anticipatory_decides_as_its_naive_twin(
        is_first in any::<bool>(),
        case in any_case(),
        events in events(),
    ) {
        let kernel = Kernel::of(if is_first { Version::V2_6_28 } else { Version::V2_6_32 });
        Run::with_twin("anticipatory", kernel, case).all(&events);
    }
}

/// The disk, and whether control groups change.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Commands at once.
    depth: u32,
    rotates: bool,
    /// Kernel workers come late.
    lags: bool,
    /// Everything happens in whole milliseconds, so that much falls together.
    coarse: bool,
    /// Processes move between groups, groups are removed, and there are writes that nobody waits
    /// for.
    moves: bool,
    /// So many tasks do something.
    tasks: u8,
}

fn any_case() -> impl Strategy<Value = Case> {
    let often = || prop::bool::weighted(0.7);
    let case = (1u32..8, often(), any::<bool>(), any::<bool>(), often(), 1..=TASKS);
    case.prop_map(|(depth, rotates, lags, coarse, moves, tasks)| Case {
        depth,
        rotates,
        lags,
        coarse,
        moves,
        tasks,
    })
}

/// The schedulers that know processes, on every kernel that has them.
fn everywhere() -> Vec<(&'static str, &'static Kernel)> {
    let names = ["anticipatory", "cfq", "bfq"];
    let on = |name| sched::kernels(name).map(move |kernel| (name, kernel));
    names.into_iter().flat_map(on).collect()
}

/// A task.
#[derive(Clone, Copy)]
struct Task {
    io_context: u32,
    group: u32,
    plugged: bool,
    /// Its part of the disk, where processes are kept apart.
    region: u64,
}

struct Run {
    harness: Harness,
    name: &'static str,
    kernel: &'static Kernel,
    tasks: Vec<Task>,
    io_contexts: Vec<IoContext>,
    /// Numbers of the control groups that there are, and how many there have been.
    groups: [u32; GROUPS as usize],
    groups_ever: u32,
    attached: &'static str,
    moves: bool,
    coarse: bool,
    tasks_used: u8,
    submitted: u64,
    /// Queues of CFQ or BFQ: asynchronous ones (before control groups, all), and synchronous ones.
    queues_left: [i64; 2],
    /// First sectors of bios, by token.
    starts: Vec<(u64, Sector)>,
    /// What the twin let go, if there is one.
    chosen: Option<Chosen>,
    /// Processes are kept apart on the disk: the twin knows nothing of cooperators.
    apart: bool,
    /// Parts of the disk that were given to somebody.
    regions: u64,
    /// Processes that have submitted something.
    arrived: BTreeSet<u32>,
}

impl Run {
    fn new(name: &'static str, kernel: &'static Kernel, case: Case) -> Run {
        Run::around(name, kernel, case, None)
    }

    fn with_twin(name: &'static str, kernel: &'static Kernel, case: Case) -> Run {
        Run::around(name, kernel, case, Some(Chosen::default()))
    }

    fn all(mut self, events: &[Event]) {
        events.iter().for_each(|event| self.happen(event));
        self.end();
    }

    fn around(
        name: &'static str,
        kernel: &'static Kernel,
        case: Case,
        chosen: Option<Chosen>,
    ) -> Run {
        let worker = Duration::from_millis(if case.lags { 5 } else { 0 });
        let table =
            Table { depth: case.depth, rotational: case.rotates, worker, ..Table::default() };
        let scheduler = match &chosen {
            Some(chosen) => Some(Shadowed::around(name, kernel, chosen)),
            None => build(name, kernel),
        };
        let mut harness = Harness::new(kernel, table, scheduler);
        *harness.queue.log() = EventLog::with_messages();
        harness.set("nr_requests", 32).expect("within its range");
        let mut run = Run {
            harness,
            name,
            kernel,
            tasks: Vec::new(),
            io_contexts: Vec::new(),
            groups: std::array::from_fn(|group| group as u32),
            groups_ever: u32::from(GROUPS),
            attached: name,
            moves: case.moves,
            coarse: case.coarse,
            tasks_used: case.tasks,
            submitted: 0,
            queues_left: [0; 2],
            starts: Vec::new(),
            apart: chosen.is_some()
                && (name == "bfq" || name == "cfq" && kernel.version > Version::V2_6_28),
            chosen,
            regions: 0,
            arrived: BTreeSet::new(),
        };
        for group in 1..GROUPS {
            run.define_group(group, 500);
        }
        for task in 0..TASKS {
            // The first two share one, as after a clone with CLONE_IO.
            let io_context = if task == 1 { run.tasks[0].io_context } else { run.new_io_context() };
            let group = u32::from(if task == 1 { 0 } else { task % GROUPS });
            run.tasks.push(Task { io_context, group, plugged: false, region: 0 });
        }
        (0..u32::from(TASKS)).for_each(|task| run.keep_apart(task));
        run
    }

    fn new_io_context(&mut self) -> u32 {
        let id = self.io_contexts.len() as u32;
        self.io_contexts.push(IoContext { tasks: 1, nice: id as i8 % 20, ..IoContext::default() });
        self.define(id);
        id
    }

    fn define(&mut self, id: u32) {
        let value = self.io_contexts[id as usize];
        self.harness.queue.define_io_context(IoContextId(id), value);
    }

    /// Group 3 lies in group 2.
    fn define_group(&mut self, group: u8, weight: u32) {
        let parent = if group == 3 { CgroupId(self.groups[2]) } else { CgroupId::ROOT };
        let parent = (group > 0).then_some(parent);
        let id = self.groups[usize::from(group)];
        let path = format!("/{id}");
        let value = Cgroup { path, parent, weight: Some(weight), leaf_weight: Some(weight / 2) };
        self.harness.queue.define_cgroup(CgroupId(id), value);
    }

    /// As rmdir: whoever is in the group goes to the root before, and what lies in it is removed
    /// first. Another one takes its place.
    fn remove_group(&mut self, group: u8) {
        if group == 2 {
            self.remove_group(3);
        }
        if self.name == "bfq" {
            // What BFQ gets for a group that is gone stays in it, and the group for ever.
            self.drain();
        }
        for task in 0..TASKS {
            if self.task(task).group == u32::from(group) {
                self.move_to(task, 0);
            }
        }
        let (now, id) = (self.harness.now, CgroupId(self.groups[usize::from(group)]));
        self.harness.queue.remove_cgroup(now, KERNEL, id);
        self.harness.settle(KERNEL);
        self.groups[usize::from(group)] = self.groups_ever;
        self.groups_ever += 1;
        self.define_group(group, 500);
        if group == 2 {
            // It lies in the new one now; nobody has seen it yet.
            self.define_group(3, 500);
        }
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Submit { task, op, slot, length, flags } => {
                self.submit(*task, *op, *slot, *length, *flags);
            }
            Event::Plug(task) => self.plug(*task),
            Event::Unplug(task) => self.unplug(*task),
            Event::Complete(at) if !self.harness.in_flight.is_empty() => {
                let index = usize::from(*at) % self.harness.in_flight.len();
                self.harness.complete(index);
            }
            // A command that was given back moves the disk to where another process is, which is
            // then a cooperator of the one whose turn it is.
            Event::Requeue(_) if self.apart && self.name == "cfq" => {}
            Event::Requeue(at) if !self.harness.in_flight.is_empty() => {
                let index = usize::from(*at) % self.harness.in_flight.len();
                self.harness.requeue(index);
            }
            Event::Complete(_) | Event::Requeue(_) => {}
            Event::Advance(micros) if self.coarse => {
                self.advance(Duration::from_millis(u64::from(micros.div_ceil(1_000))));
            }
            Event::Advance(micros) => self.advance(Duration::from_micros(u64::from(*micros))),
            Event::Tune(at, value) if self.attached == self.name => self.tune(*at, *value),
            Event::Tune(..) => {}
            Event::Priority { task, class, level } => self.set_priority(*task, *class, *level),
            Event::Move { .. } | Event::Remove(_) if !self.moves => {}
            Event::Move { task, group } => self.move_to(*task, *group),
            Event::Weigh { group, weight } => self.define_group(*group, *weight),
            // In which order its queues go to the root hangs on where they are in memory.
            Event::Remove(_) if self.apart && self.name == "bfq" => {}
            Event::Remove(group) => self.remove_group(*group),
            Event::Exit(task) => self.exit(*task),
            Event::Switch => self.switch(),
        }
        self.check_nothing_stalls();
        self.compare();
    }

    /// What left is what the twin let go.
    fn compare(&mut self) {
        let events = self.harness.take_events();
        self.count_queues(&events);
        let Some(chosen) = &self.chosen else { return };
        for event in events {
            if matches!(event.action, Action::Dispatch(_)) && self.attached == self.name {
                assert_eq!(chosen.lock().unwrap().pop_front(), event.request, "who leaves");
            }
        }
    }

    /// Queues of CFQ or BFQ that were made, less those that are gone. Messages tell of them.
    fn count_queues(&mut self, events: &[block::Event]) {
        for event in events {
            if let Action::Hold { reason: HoldReason::ProcessIdles, waits_for } = event.action {
                assert!(waits_for.is_some(), "whoever is waited for is somebody");
            }
            let Action::Message { text, .. } = &event.action else { continue };
            if text.starts_with("bfq99S ") {
                continue;
            }
            // Before control groups names do not tell the kind.
            let sync = text.split_whitespace().next().is_some_and(|name| name.contains('S'));
            let count = &mut self.queues_left[usize::from(sync)];
            *count += i64::from(text.ends_with("alloced"));
            *count -= i64::from(text.ends_with("put_queue"));
            // BFQ tells of each reference, and how many there were before it went.
            *count += i64::from(text.ends_with(" allocated"));
            *count -= i64::from(text.contains(" put_queue: ") && text.ends_with(" 1"));
        }
    }

    /// A process that has a new queue goes on elsewhere on the disk, so that nobody is close to
    /// what it asked for before.
    fn keep_apart(&mut self, io_context: u32) {
        if !self.apart {
            return;
        }
        self.regions += 1;
        let region = self.regions << 21;
        let owned = self.tasks.iter_mut().filter(|task| task.io_context == io_context);
        owned.for_each(|task| task.region = region);
    }

    /// Those that share an io_context go together, where processes are kept apart: if they were in
    /// two groups, each request would have a new queue close to an old one. So it would be if one
    /// of them slept with a bio of the old group.
    fn move_to(&mut self, task: u8, group: u8) {
        let Task { io_context, .. } = *self.task(task);
        let together = self.apart;
        if together && self.sleeps(io_context) {
            return;
        }
        for (number, other) in self.tasks.iter_mut().enumerate() {
            if number == usize::from(task) || together && other.io_context == io_context {
                other.group = u32::from(group);
            }
        }
        self.keep_apart(io_context);
    }

    fn task(&mut self, task: u8) -> &mut Task {
        &mut self.tasks[usize::from(task)]
    }

    fn submit(&mut self, task: u8, op: u8, slot: u8, length: u8, flags: u8) {
        let task = task % self.tasks_used;
        let context = context(task);
        if self.harness.asleep.contains(&context) {
            return;
        }
        let (op, carried) = match op {
            0..6 => (Op::Read, Flags::NONE),
            6 => (Op::Read, Flags::META.with(Flags::PRIO)),
            7..10 if self.moves => (Op::Write, Flags::NONE),
            7..13 => (Op::Write, Flags::SYNC),
            13..15 => (Op::Write, Flags::SYNC.with(Flags::IDLE)),
            _ => (Op::Write, Flags::FUA.with(Flags::SYNC)),
        };
        // Some far away, some next to each other.
        let far = if flags < 192 { 0 } else { u64::from(flags) << 12 };
        let owner = self.tasks[usize::from(task)];
        let sector = Sector(owner.region + far + u64::from(slot) * 8);
        if self.would_let_go(sector) {
            return;
        }
        if op == Op::Read || carried.intersects(Flags::SYNC) {
            self.come_alone(task, owner.io_context);
        }
        self.submitted += 1;
        self.starts.push((self.submitted, sector));
        self.harness.submit(Bio {
            op,
            flags: carried,
            sector,
            sectors: Sectors(u32::from(length) * 8),
            ioprio: Ioprio::NONE,
            origin: Origin {
                context,
                io_context: IoContextId(owner.io_context),
                cgroup: CgroupId(self.groups[owner.group as usize]),
                cpu: 0,
            },
            token: self.submitted,
        });
    }

    /// BFQ may merge processes whose first requests are less than 600 ms apart.
    fn come_alone(&mut self, task: u8, io_context: u32) {
        if self.apart && self.name == "bfq" && self.arrived.insert(io_context) {
            self.unplug(task);
            // It shall be in the queue at once, and not wait for a request.
            self.drain();
            self.advance(Duration::from_millis(608));
        }
    }

    /// Two requests with one first sector: the older leaves at once, out of its turn, and moves the
    /// disk to where whoever has the turn may find a cooperator. 2.6.28 has that rule too, and no
    /// cooperators.
    fn would_let_go(&self, sector: Sector) -> bool {
        let is_under_way = |(token, start): &(u64, Sector)| {
            *start == sector && !self.harness.done.contains_key(token)
        };
        self.apart
            && self.kernel.version == Version::V2_6_32
            && self.starts.iter().any(is_under_way)
    }

    fn plug(&mut self, task: u8) {
        let is_asleep = self.harness.asleep.contains(&context(task));
        if !is_asleep && !std::mem::replace(&mut self.task(task).plugged, true) {
            self.harness.start_plug(context(task));
        }
    }

    fn unplug(&mut self, task: u8) {
        let is_asleep = self.harness.asleep.contains(&context(task));
        if !is_asleep && std::mem::take(&mut self.task(task).plugged) {
            self.harness.finish_plug(context(task), 0, PlugFlush::Explicit);
        }
    }

    fn advance(&mut self, by: Duration) {
        let then = self.harness.now + by;
        self.harness.advance_to(then);
    }

    fn tune(&mut self, at: u8, value: i64) {
        let about = sched::about_on(self.name, self.kernel).expect("it has it");
        let tunable = &about.tunables[usize::from(at) % about.tunables.len()];
        let accepted = self.harness.set(tunable.name, value).is_ok();
        assert_eq!(accepted, (tunable.min..=tunable.max).contains(&value), "{}", tunable.name);
    }

    fn set_priority(&mut self, task: u8, class: u8, level: u8) {
        let id = self.tasks[usize::from(task)].io_context;
        let classes =
            [IoprioClass::None, IoprioClass::RealTime, IoprioClass::BestEffort, IoprioClass::Idle];
        let policies = [CpuPolicy::Normal, CpuPolicy::RealTime, CpuPolicy::Idle, CpuPolicy::Normal];
        let value = &mut self.io_contexts[id as usize];
        value.ioprio = Ioprio { class: classes[usize::from(class)], level };
        value.policy = policies[usize::from(level % 4)];
        self.define(id);
    }

    /// Whether somebody who has this io_context is asleep.
    fn sleeps(&self, io_context: u32) -> bool {
        let mut asleep = self.harness.asleep.iter();
        asleep.any(|who| {
            let owner = (0..TASKS).find(|task| context(*task) == *who);
            owner.is_some_and(|task| self.tasks[usize::from(task)].io_context == io_context)
        })
    }

    /// A task exits, and another one takes its place; of two that share, both do.
    fn exit(&mut self, task: u8) {
        let id = self.tasks[usize::from(task)].io_context;
        if self.sleeps(id) {
            return;
        }
        for other in 0..TASKS {
            if self.tasks[usize::from(other)].io_context == id {
                self.unplug(other);
            }
        }
        self.io_contexts[id as usize].tasks = 0;
        let now = self.harness.now;
        self.harness.queue.exit_io_context(now, context(task), IoContextId(id));
        self.harness.settle(context(task));
        let fresh = self.new_io_context();
        self.tasks.iter_mut().filter(|it| it.io_context == id).for_each(|it| it.io_context = fresh);
        self.keep_apart(fresh);
    }

    /// To deadline, or back; what is queued leaves at once.
    fn switch(&mut self) {
        let next = if self.attached == self.name { other_of(self.name) } else { self.name };
        let scheduler = match &self.chosen {
            Some(chosen) if next == self.name => {
                Some(Shadowed::around(self.name, self.kernel, chosen))
            }
            _ => build(next, self.kernel),
        };
        (0..TASKS).for_each(|task| self.unplug(task));
        if self.chosen.is_some() && self.name == "bfq" {
            // With blk-mq the old scheduler goes on until all that it has is done.
            self.drain();
            self.compare();
        }
        self.harness.switch(scheduler);
        self.compare();
        self.attached = next;
        self.arrived.clear();
        self.drain();
        self.compare();
        if next != self.name {
            // Shared queues went with the elevator.
            self.queues_left = [0; 2];
        }
    }

    /// If requests are withheld and nothing is in flight, a timer will end that.
    fn check_nothing_stalls(&mut self) {
        let harness = &self.harness;
        let waits = harness.queue.queued() > 0 && harness.in_flight.is_empty();
        let ends = harness.queue.next_timer().is_some() || harness.has_pending_run();
        assert!(!waits || ends, "requests are withheld for ever");
    }

    fn drain(&mut self) {
        for round in 0.. {
            assert!(round < 10_000, "the queue does not run dry");
            (0..TASKS).for_each(|task| self.unplug(task));
            self.check_nothing_stalls();
            if !self.harness.in_flight.is_empty() {
                self.harness.complete(0);
            } else if self.harness.queue.allocated() == 0 && self.harness.asleep.is_empty() {
                return;
            } else {
                self.advance(Duration::from_millis(10));
            }
        }
    }

    fn end(&mut self) {
        self.drain();
        self.compare();
        self.harness.queue.assert_drained();
        for token in 1..=self.submitted {
            let times = self.harness.done.get(&token).map(|done| done.0);
            assert_eq!(times, Some(1), "bio {token} was done this often");
        }
        self.leave_nothing();
    }

    /// When all processes have exited and all control groups are removed, nobody is waited for, and
    /// no queue is left but those that processes of one priority share: eight levels of two
    /// classes, and idle.
    fn leave_nothing(&mut self) {
        let now = self.harness.now;
        for id in 0..self.io_contexts.len() as u32 {
            self.harness.queue.exit_io_context(now, KERNEL, IoContextId(id));
            self.harness.settle(KERNEL);
        }
        (1..GROUPS).for_each(|group| self.remove_group(group));
        self.advance(Duration::from_secs(10));
        self.compare();
        if self.attached == "bfq" {
            self.serve_strangers();
        }
        assert_eq!(self.harness.queue.next_timer(), None, "somebody is waited for");
        let [shared, own] = self.queues_left;
        // Whoever leaves a control group while its queue is to become a part of another drops its
        // pointer (rule cfq-bind-2) and no more: that other queue stays for ever.
        let may_leave = if self.moves { 0..=17 } else { 0..=0 };
        let is_left = own == 0 || self.name == "cfq" && self.moves && own > 0;
        assert!(may_leave.contains(&shared) && is_left, "queues are left: {shared}, {own}");
    }
}

impl Run {
    /// BFQ keeps a queue that had more than its share until others have had theirs. So strangers of
    /// each class read until all queues of the others are gone.
    fn serve_strangers(&mut self) {
        for class in [IoprioClass::RealTime, IoprioClass::BestEffort, IoprioClass::Idle] {
            let id = self.new_io_context();
            self.io_contexts[id as usize].ioprio = Ioprio { class, level: 7 };
            self.define(id);
            for round in 0..40_000 {
                if self.queues_left[1] == 0 {
                    break;
                }
                self.submitted += 1;
                let mut bio = harness::read(id, (1 << 30) + 4_000 * round, self.submitted);
                bio.sectors = Sectors(2_560);
                bio.origin.context = STRANGER;
                self.harness.submit(bio);
                self.drain();
                self.compare();
            }
            let now = self.harness.now;
            self.harness.queue.exit_io_context(now, KERNEL, IoContextId(id));
            self.harness.settle(KERNEL);
            self.compare();
        }
    }
}

/// What the same shape of the block layer may have instead.
fn other_of(name: &str) -> &'static str {
    match sched::shape_of(name) {
        Some(Shape::Multi) => "mq-deadline",
        _ => "deadline",
    }
}

fn build(name: &str, kernel: &Kernel) -> Option<Box<dyn block::Scheduler>> {
    sched::build(name, kernel).expect("on its kernel")
}

fn context(task: u8) -> ContextId {
    ContextId(u32::from(task) + 1)
}
