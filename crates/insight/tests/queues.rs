//! Whole loads through the queues of kernels: every bio ends in one life, and parts add up.

use base::{Bytes, Duration, Instant, Rng, Sector, Sectors};
use block::scheduler::IoContext;
use block::{
    Action, Attach, Bio, Command, ContextId, Event, EventLog, Facts, Flags, IoContextId, Ioprio,
    Kernel, Op, Origin, Output, PlugFlush, RequestQueue, Transport,
};
use insight::recorded::Stream;
use insight::requests::Requests;
use insight::{Layer, Life};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use trace::blktrace::{self, Categories, DevT, Payload, Record};

const INTERRUPT: ContextId = ContextId(0);
const WORKER: ContextId = ContextId(1);
const FIRST_TASK: u32 = 2;
const TASKS: u32 = 4;

/// A queue, its device, and four tasks that submit what they like.
struct Load {
    queue: RequestQueue,
    rng: Rng,
    now: Instant,
    device: VecDeque<Command>,
    asleep: Vec<bool>,
    events: Vec<Event>,
}

impl Load {
    fn new(scheduler: &str, seed: u64) -> Load {
        let facts = Facts {
            transport: Transport::Scsi,
            capacity: Bytes(1 << 40),
            rotational: true,
            volatile_cache: true,
            fua: seed.is_multiple_of(2),
            queue_depth: 3,
            hardware_queues: 1,
            logical_block: 512,
            max_hw_sectors: Sectors(64),
            max_segments: 128,
            discard: false,
            chunk_sectors: Sectors(0),
            segment: Facts::PAGE,
        };
        let kernel: &'static Kernel = sched::default_kernel(scheduler).expect("a scheduler");
        let built = sched::build(scheduler, kernel).expect("its default kernel has it");
        let attach = built.map_or_else(Attach::none, Attach::scheduler);
        let mut queue = RequestQueue::new(kernel, facts, attach, 1, EventLog::on());
        // A kernel may refuse so few, and then has what it has.
        let _ = queue.set(Instant::ZERO, "nr_requests", 4);
        for task in 0..TASKS {
            let value = IoContext { tasks: 1, ..IoContext::default() };
            queue.define_io_context(IoContextId(task), value);
        }
        let rng = Rng::stream(seed, "insight/queues");
        let asleep = vec![false; TASKS as usize];
        Load { queue, rng, now: Instant::ZERO, device: VecDeque::new(), asleep, events: vec![] }
    }

    fn bio(&mut self, task: u32, sector: u64) -> Bio {
        let is_read = self.rng.chance(1, 2);
        let (op, mut flags) =
            if is_read { (Op::Read, Flags::NONE) } else { (Op::Write, Flags::SYNC) };
        if !is_read && self.rng.chance(1, 8) {
            flags = flags.with(Flags::FUA);
        }
        if !is_read && self.rng.chance(1, 8) {
            flags = flags.with(Flags::PREFLUSH);
        }
        let is_flush = flags.intersects(Flags::PREFLUSH) && self.rng.chance(1, 2);
        let sectors = if is_flush { 0 } else { 8 << self.rng.below(5) };
        let context = ContextId(FIRST_TASK + task);
        let origin = Origin { context, io_context: IoContextId(task), ..Origin::default() };
        Bio {
            op,
            flags: if is_flush { Flags::PREFLUSH.with(Flags::SYNC) } else { flags },
            sector: if is_flush { Sector(0) } else { Sector(sector) },
            sectors: Sectors(sectors),
            ioprio: Ioprio::NONE,
            origin,
            token: 0,
        }
    }

    fn act(&mut self) {
        self.now += Duration::from_nanos(self.rng.below(40_000));
        if let Some(due) = self.queue.next_timer().filter(|due| *due <= self.now) {
            let _ = due;
            self.queue.timer(self.now, INTERRUPT, 0);
            self.drive(INTERRUPT);
        }
        let task = self.rng.below(u64::from(TASKS)) as u32;
        if self.rng.chance(1, 2) && !self.asleep[task as usize] {
            self.submit(task);
        } else {
            self.answer();
        }
    }

    /// Some bios of a task, perhaps with a plug about them.
    fn submit(&mut self, task: u32) {
        let context = ContextId(FIRST_TASK + task);
        let plugs = self.queue.plugs_tasks() && self.rng.chance(1, 2);
        if plugs {
            self.queue.start_plug(context);
        }
        let mut sector = self.rng.below(64) * 64;
        for _ in 0..=self.rng.below(4) {
            if self.asleep[task as usize] {
                break;
            }
            let bio = self.bio(task, sector);
            sector += u64::from(bio.sectors.0);
            self.queue.submit(self.now, bio);
            self.now += Duration::from_nanos(self.rng.below(2_000));
            self.drive(context);
        }
        while self.asleep[task as usize] {
            self.answer();
        }
        if plugs {
            self.queue.finish_plug(self.now, context, 0, PlugFlush::Explicit);
            self.drive(context);
        }
    }

    /// The device answers, or time passes until it has something.
    fn answer(&mut self) {
        self.now += Duration::from_nanos(self.rng.below(200_000));
        if let Some(command) = self.device.pop_front() {
            if self.rng.chance(1, 20) {
                self.queue.requeue(self.now, INTERRUPT, 0, command.tag);
            } else {
                self.queue.complete(self.now, INTERRUPT, 0, command.tag);
            }
            self.drive(INTERRUPT);
            return;
        }
        if let Some(due) = self.queue.next_timer() {
            self.now = self.now.max(due);
            self.queue.timer(self.now, INTERRUPT, 0);
            self.drive(INTERRUPT);
        }
        self.queue.run(self.now, WORKER, 0);
        self.drive(WORKER);
    }

    /// A context does what it has to do, and so does whoever is called for.
    fn drive(&mut self, context: ContextId) {
        let mut awake = VecDeque::from([context]);
        while let Some(context) = awake.pop_front() {
            let is_done = self.queue.finish(self.now, context);
            if context.0 >= FIRST_TASK {
                self.asleep[(context.0 - FIRST_TASK) as usize] = !is_done;
            }
            while let Some(output) = self.queue.pop_output() {
                match output {
                    Output::Issue(command) => self.device.push_back(command),
                    Output::Wake(context) => awake.push_back(context),
                    Output::RunWorker { .. } => {
                        self.queue.run(self.now, WORKER, 0);
                        awake.push_back(WORKER);
                    }
                    _ => {}
                }
            }
        }
        let log = self.queue.log();
        self.events.extend_from_slice(log.events());
        log.clear();
    }

    fn end(mut self) -> Vec<Event> {
        for _ in 0..100_000 {
            if self.queue.is_drained() && self.device.is_empty() {
                return self.events;
            }
            self.answer();
        }
        panic!("the queue does not drain");
    }
}

fn lives_of(events: &[Event], depth: Option<u32>) -> Vec<Life> {
    let mut requests = Requests::new(depth);
    let mut lives = vec![];
    for event in events {
        requests.see(event);
        lives.extend(requests.done());
    }
    requests.finish();
    lives.extend(requests.done());
    assert_eq!(requests.under_way(), 0, "nothing is left");
    lives
}

fn check(scheduler: &str, seed: u64) -> BTreeMap<&'static str, u64> {
    let mut load = Load::new(scheduler, seed);
    (0..400).for_each(|_| load.act());
    let events = load.end();
    let lives = lives_of(&events, Some(3));
    let mut ends = BTreeMap::new();
    for event in &events {
        if let (Action::BioDone { .. }, Some(bio)) = (&event.action, event.bio) {
            *ends.entry((bio, event.at)).or_insert(0) += 1;
        }
    }
    let mut times = BTreeMap::new();
    for life in &lives {
        let sum: Duration = life.layers.iter().map(|part| part.1).sum();
        assert_eq!(sum, life.end().since(life.queued), "{scheduler} {seed}: {life:?}");
        assert!(life.bios.is_empty() || life.told.is_some(), "{scheduler} {seed}: {life:?}");
        for bio in &life.bios {
            let told = life.told.expect("it was just asked");
            assert!(ends.remove(&(*bio, told)).is_some(), "{scheduler} {seed}: {bio:?} {life:?}");
        }
        let others: Duration = life.others.iter().map(|other| other.1).sum();
        let all = life.time_in(Layer::Others);
        // No more than four are named.
        let is_right = others == all || (life.others.len() == 4 && others < all);
        assert!(is_right, "{scheduler} {seed}: {life:?}");
        for (layer, time) in &life.layers {
            *times.entry(layer.name()).or_insert(0) += time.as_nanos();
        }
    }
    times
}

#[test]
fn every_bio_ends_in_one_life_whose_parts_add_up() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq", "noop", "deadline", "cfq"] {
        let mut times: BTreeMap<&str, u64> = BTreeMap::new();
        for seed in 1..=12 {
            for (layer, time) in check(scheduler, seed) {
                *times.entry(layer).or_default() += time;
            }
        }
        for layer in ["tag", "plug", "device", "requeued", "others_first"] {
            let is_without = scheduler == "none" && layer == "others_first";
            assert!(is_without || times.contains_key(layer), "{scheduler}: {layer} in {times:?}");
        }
        if ["bfq", "cfq"].contains(&scheduler) {
            assert!(times.contains_key("process_idles"), "{scheduler}: {times:?}");
        }
    }
}

/// What blktrace records of an event.
fn recorded(event: &Event, joins: bool) -> Option<Record> {
    use blktrace::Action as To;
    let (action, payload) = match &event.action {
        Action::Queue => (To::Queue, Payload::None),
        Action::Split { rest } => (To::Split, Payload::Split(*rest)),
        Action::BackMerge => (To::BackMerge, Payload::None),
        Action::FrontMerge => (To::FrontMerge, Payload::None),
        Action::GetRequest => (To::GetRequest, Payload::None),
        Action::Plug => (To::Plug, Payload::None),
        Action::Unplug { depth } => (To::Unplug, Payload::Unplug((*depth).into())),
        Action::Insert => (To::Insert, Payload::None),
        Action::Join { .. } if joins => (To::BackMerge, Payload::None),
        Action::Issue => (To::Issue, Payload::None),
        Action::Requeue => (To::Requeue, Payload::None),
        Action::Complete { .. } => (To::Complete, Payload::None),
        _ => return None,
    };
    let categories = match event.op {
        _ if event.sectors.is_zero() => Categories::READ | Categories::FLUSH,
        Op::Read => Categories::READ,
        _ => Categories::WRITE,
    };
    let record = Record {
        sector: event.sector,
        bytes: event.sectors.bytes().0 as u32,
        pid: event.context.0,
        device: DevT::new(8, 0),
        payload,
        ..Record::event(action, event.at)
    };
    Some(record.with(categories))
}

/// What a recording tells of requests with data as well as the events themselves do.
fn told(lives: impl Iterator<Item = Life>) -> BTreeSet<[u64; 6]> {
    let with_data = lives.filter(|life| !life.sectors.is_zero());
    let key = |life: Life| {
        let times = [life.queued, life.allocated, life.issued, life.completed];
        let [queued, allocated, issued, completed] = times.map(Instant::as_nanos);
        [life.sector.0, life.sectors.0.into(), queued, allocated, issued, completed]
    };
    with_data.map(key).collect()
}

#[test]
fn a_recording_tells_the_same_of_nearly_every_request() {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq", "noop", "deadline", "cfq"] {
        let (mut same, mut all) = (0, 0);
        for seed in 1..=12 {
            // With flushes behind data a recording has ends that are told twice.
            let mut load = Load::new(scheduler, seed * 2);
            let joins = load.queue.kernel().traces_joins;
            (0..400).for_each(|_| load.act());
            let events = load.end();
            let mut stream = Stream::new(None);
            for record in events.iter().filter_map(|event| recorded(event, joins)) {
                stream.take(&record, &mut |_| {});
            }
            stream.finish(&mut |_| {});
            assert_eq!(stream.under_way(), 0, "{scheduler} {seed}: {:?}", stream.misfits());
            let truth = told(lives_of(&events, Some(3)).into_iter());
            all += truth.len();
            same += truth.intersection(&told(stream.lives())).count();
        }
        println!("{scheduler}: {same} of {all}");
        assert!(same * 100 >= all * 99, "{scheduler}: {same} of {all}");
    }
}
