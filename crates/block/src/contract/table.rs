//! A disk on a table: a real [`RequestQueue`], a device that completes commands when it is told to,
//! and a clock that is moved by hand.
//!
//! Kernel workers run at once, or when their time has come; contexts that are woken go on at once.
//! So what happens is a function of what the test does.

use crate::Bio;
use crate::{
    Attach, Command, CommandOp, ContextId, Event, EventLog, Facts, Kernel, Output, PlugFlush,
    RequestQueue, Scheduler, Transport, TunableError,
};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use base::{Bytes, Duration, Instant, Sectors};

/// The context of interrupts and kernel workers.
pub const KERNEL: ContextId = ContextId(0);

/// The device on the table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Commands it takes at once.
    pub depth: u32,
    /// Hardware queues.
    pub hctxs: u32,
    /// Cores.
    pub cpus: u16,
    /// How it is attached.
    pub transport: Transport,
    /// A volatile cache that is flushed.
    pub cache: bool,
    /// Forced unit access.
    pub fua: bool,
    /// Largest request in sectors.
    pub max_sectors: u32,
    /// A disk, and no flash.
    pub rotational: bool,
    /// How late a kernel worker comes.
    pub worker: Duration,
}

impl Default for Table {
    fn default() -> Table {
        Table {
            depth: 1,
            hctxs: 1,
            cpus: 1,
            transport: Transport::Scsi,
            cache: false,
            fua: false,
            max_sectors: 2560,
            rotational: true,
            worker: Duration::ZERO,
        }
    }
}

impl Table {
    fn facts(&self) -> Facts {
        Facts {
            transport: self.transport,
            capacity: Bytes(1 << 40),
            rotational: self.rotational,
            volatile_cache: self.cache,
            fua: self.fua,
            queue_depth: self.depth,
            hardware_queues: self.hctxs,
            logical_block: 512,
            max_hw_sectors: Sectors(self.max_sectors),
            max_segments: 1024,
            discard: true,
            chunk_sectors: Sectors(0),
            segment: Facts::PAGE,
        }
    }
}

/// A queue with its surroundings.
pub struct Harness {
    /// The queue.
    pub queue: RequestQueue,
    /// What time it is.
    pub now: Instant,
    /// Commands with the device, in order of issue.
    pub in_flight: VecDeque<Command>,
    /// Commands that were completed, with the time.
    pub completed: Vec<(Instant, Command)>,
    /// Bios that were reported done: how often, and how many commands had been completed then.
    pub done: BTreeMap<u64, (u32, usize)>,
    /// NOWAIT bios that were not accepted.
    pub refused: BTreeSet<u64>,
    /// Contexts that sleep.
    pub asleep: Vec<ContextId>,
    /// Contexts that fell asleep (true) or were woken, in order.
    pub slept: Vec<(ContextId, bool)>,
    runs: VecDeque<Instant>,
    table: Table,
}

impl Harness {
    /// A queue with an attached device; `scheduler` is `None` for none.
    pub fn new(
        kernel: &'static Kernel,
        table: Table,
        scheduler: Option<Box<dyn Scheduler>>,
    ) -> Harness {
        let log = EventLog::on();
        let queue =
            RequestQueue::new(kernel, table.facts(), Attach::of(scheduler), table.cpus, log);
        let mut harness = Harness {
            queue,
            now: Instant::ZERO,
            in_flight: VecDeque::new(),
            completed: Vec::new(),
            done: BTreeMap::new(),
            refused: BTreeSet::new(),
            asleep: Vec::new(),
            slept: Vec::new(),
            runs: VecDeque::new(),
            table,
        };
        harness.queue.set_paranoid(true);
        harness
    }

    /// Moves the clock; timers and delayed runs that fall due on the way happen in order.
    pub fn advance_to(&mut self, time: Instant) {
        assert!(time >= self.now, "the clock goes forward: {} after {}", time, self.now);
        loop {
            let timer = self.queue.next_timer();
            let run = self.runs.iter().copied().min();
            let Some(due) = timer.into_iter().chain(run).min().filter(|due| *due <= time) else {
                break;
            };
            self.now = self.now.max(due);
            if run == Some(due) {
                let at = self.runs.iter().position(|run| *run == due).expect("just found");
                self.runs.remove(at);
                self.queue.run(self.now, KERNEL, 0);
            } else {
                self.queue.timer(self.now, KERNEL, 0);
            }
            self.settle(KERNEL);
        }
        self.now = time;
    }

    /// A task submits a bio.
    pub fn submit(&mut self, bio: Bio) {
        self.queue.submit(self.now, bio);
        self.settle(bio.origin.context);
    }

    /// A task begins to hold requests back.
    pub fn start_plug(&mut self, context: ContextId) {
        self.queue.start_plug(context);
    }

    /// A task ends its plug, or is about to sleep.
    pub fn finish_plug(&mut self, context: ContextId, cpu: u16, why: PlugFlush) {
        self.queue.finish_plug(self.now, context, cpu, why);
        self.settle(context);
    }

    /// Completes the `index`-th command in flight.
    pub fn complete(&mut self, index: usize) {
        let command = self.in_flight.remove(index).expect("a command in flight");
        self.completed.push((self.now, command));
        self.queue.complete(self.now, KERNEL, 0, command.tag);
        self.settle(KERNEL);
    }

    /// Gives the `index`-th command in flight back.
    pub fn requeue(&mut self, index: usize) {
        let command = self.in_flight.remove(index).expect("a command in flight");
        self.queue.requeue(self.now, KERNEL, 0, command.tag);
        self.settle(KERNEL);
    }

    /// The place of the command in flight that starts at `sector`.
    pub fn find(&self, sector: u64) -> Option<usize> {
        self.in_flight
            .iter()
            .position(|command| command.sector.0 == sector && command.op != CommandOp::Flush)
    }

    /// Writes a tunable or a setting.
    pub fn set(&mut self, name: &str, value: i64) -> Result<(), TunableError> {
        let result = self.queue.set(self.now, name, value);
        self.settle(KERNEL);
        result
    }

    /// Attaches another scheduler.
    pub fn switch(&mut self, scheduler: Option<Box<dyn Scheduler>>) {
        self.queue.switch(self.now, KERNEL, Attach::of(scheduler));
        self.settle(KERNEL);
    }

    /// Completes everything, oldest first, until nothing is left. Plugs must be finished before.
    pub fn drain(&mut self) {
        let mut idle = 0;
        while idle < 3 {
            if self.in_flight.is_empty() {
                idle += 1;
                self.advance_to(self.now + Duration::from_secs(1));
            } else {
                idle = 0;
                self.advance_to(self.now + Duration::from_micros(100));
                self.complete(0);
            }
        }
    }

    /// Whether the device would take another command.
    pub fn has_room(&self) -> bool {
        (self.in_flight.len() as u32) < self.table.depth * self.table.hctxs
    }

    /// Whether the driver waits before it tries again.
    pub fn has_pending_run(&self) -> bool {
        !self.runs.is_empty()
    }

    /// The events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        let events = self.queue.log().events().to_vec();
        self.queue.log().clear();
        events
    }

    /// Lets `context` do what it has to do, and does what the queue asks for.
    pub fn settle(&mut self, context: ContextId) {
        self.finish(context);
        while let Some(output) = self.queue.pop_output() {
            match output {
                Output::Issue(command) => {
                    assert!(self.has_room(), "a command too many: {command:?}");
                    let tags = |other: &Command| other.tag == command.tag;
                    assert!(!self.in_flight.iter().any(tags), "tag {:?} used twice", command.tag);
                    self.in_flight.push_back(command);
                }
                Output::BioDone { token, .. } => self.note_done(token),
                Output::WouldBlock { token, .. } => {
                    self.refused.insert(token);
                }
                Output::Release => unreachable!("no group is limited"),
                Output::Wake(woken) => {
                    self.asleep.retain(|sleeper| *sleeper != woken);
                    self.slept.push((woken, false));
                    self.finish(woken);
                }
                Output::RunWorker { after } if (after + self.table.worker).is_zero() => {
                    self.queue.run(self.now, KERNEL, 0);
                    self.finish(KERNEL);
                }
                Output::RunWorker { after } => {
                    self.runs.push_back(self.now + after + self.table.worker);
                }
            }
        }
    }

    fn note_done(&mut self, token: u64) {
        let entry = self.done.entry(token).or_default();
        *entry = (entry.0 + 1, self.completed.len());
    }

    fn finish(&mut self, context: ContextId) {
        if !self.queue.finish(self.now, context) && !self.asleep.contains(&context) {
            self.asleep.push(context);
            self.slept.push((context, true));
        }
    }
}
