//! A disk drive: the life of a command from the link to the platters and back.
//!
//! A command first costs the controller's overhead, which goes on beside whatever else happens.
//! Then a read is served from the buffer, joins what is being read, or waits for the arm; a write
//! goes into the buffer or, without a write cache, waits for the arm too. The arm does one job at
//! a time ([`Job`]); when it becomes free, [`Drive::next_job`] decides. A flush is not queued: it
//! waits for everything before it, and everything after it waits.

use std::collections::VecDeque;
use std::sync::Arc;

use base::agenda::{Agenda, Ticket};
use base::{Duration, Instant, Rng, Sector};
use block::command::{Command, CommandOp, Facts, Stage, Tag};

use super::Parameters;
use super::cache::Cache;
use super::mechanics::Arm;
use super::queue::{Queue, Waiting};
use super::reading::{Run, Stream};
use super::writing::Pass;
use crate::Device;
use crate::stages::Stages;

/// A drive in operation.
pub(crate) struct Drive {
    pub(super) facts: Facts,
    pub(super) parameters: Arc<Parameters>,
    pub(super) events: Agenda<Event>,
    pub(super) arm: Arm,
    /// The sector after the one the arm was last sent to.
    pub(super) arm_lba: u64,
    pub(super) job: Job,
    pub(super) job_end: Option<Ticket>,
    pub(super) stream: Stream,
    pub(super) cache: Cache,
    pub(super) queue: Queue,
    pub(super) stalled: VecDeque<Stalled>,
    /// When the read came that found no segment to be read into.
    pub(super) segment_wanted: Option<Instant>,
    pub(super) link_free: Instant,
    /// When the last read from the platters begins to cross the link, and when it has crossed if
    /// nothing but such reads does.
    pub(super) crossing: (Instant, Instant),
    pub(super) flush: Option<Flush>,
    pub(super) wrote_back_last: bool,
    pub(super) last_activity: Instant,
    behind_flush: VecDeque<Command>,
    /// Commands in the drive, without flushes and what waits behind one.
    active: u32,
    last_was_write: bool,
    /// Where the next read continues a sequence without gaps.
    sequence: Option<u64>,
    timer: Option<Ticket>,
    /// When the oldest command that waits will have waited too long.
    overdue: Option<Ticket>,
    /// When enough is read ahead for the arm to leave.
    pub(super) read_enough: Option<Ticket>,
    pub(super) rng: Rng,
    completed: Vec<Tag>,
    /// Scratch space: ages of dirty segments.
    pub(super) ages: Vec<u64>,
    pub(super) stages: Stages,
}

/// What happens inside the drive at a later time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The controller has dealt with the command.
    Ready(Command),
    /// All data of a read is in the buffer; it cannot cross the link before `delivered`.
    Buffered { tag: Tag, delivered: Instant },
    /// The arm has finished its job.
    JobEnd,
    /// The command is finished.
    Done(Tag),
    /// The flush is finished.
    Flushed(Tag),
    /// The drive may have been idle long enough to write back.
    IdleLongEnough,
    /// A command may have waited too long.
    Overdue,
    /// So much is read ahead of a sequential reader that the arm may leave.
    ReadEnough,
}

/// A write for which the buffer has no room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stalled {
    pub command: Command,
    /// The first sector not yet taken in.
    pub from: u64,
    pub arrived: Instant,
}

/// What the arm is doing.
pub(super) enum Job {
    Idle,
    Read(Run),
    Write(Pass),
}

/// A flush in the drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flush {
    tag: Tag,
    /// All commands before it have finished: dirty data is being written.
    pub draining: bool,
}

impl Drive {
    pub fn new(facts: Facts, parameters: Arc<Parameters>, seed: u64) -> Drive {
        let depth = (facts.queue_depth * facts.hardware_queues).min(1024) as usize;
        Drive {
            cache: Cache::new(&parameters.layout),
            queue: Queue::new(depth),
            facts,
            parameters,
            events: Agenda::new(),
            arm: Arm::default(),
            arm_lba: 0,
            ages: Vec::new(),
            stages: Stages::default(),
            job: Job::Idle,
            job_end: None,
            stream: Stream::default(),
            stalled: VecDeque::with_capacity(depth),
            segment_wanted: None,
            link_free: Instant::ZERO,
            crossing: (Instant::ZERO, Instant::ZERO),
            flush: None,
            wrote_back_last: false,
            last_activity: Instant::ZERO,
            behind_flush: VecDeque::with_capacity(depth),
            active: 0,
            last_was_write: false,
            sequence: None,
            timer: None,
            overdue: None,
            read_enough: None,
            rng: Rng::stream(seed, "device/look-ahead"),
            completed: Vec::with_capacity(depth),
        }
    }

    /// Lets a command in, or a flush after everything before it.
    fn begin(&mut self, now: Instant, command: Command) {
        if command.op == CommandOp::Flush {
            self.flush = Some(Flush { tag: command.tag, draining: false });
            self.drain_if_alone(now);
            return;
        }
        self.active += 1;
        self.last_activity = now;
        self.stages.enter(now, command.tag, Stage::Controller);
        let overhead = self.overhead(now, &command);
        self.last_was_write = command.op != CommandOp::Read;
        self.events.schedule(now + overhead, Event::Ready(command));
    }

    /// What the controller takes for the command, judged when it arrives.
    fn overhead(&mut self, now: Instant, command: &Command) -> Duration {
        let range = range_of(command);
        if command.op == CommandOp::Read {
            return self.read_overhead(now, &range);
        }
        self.sequence = None;
        let overhead = &self.parameters.overhead;
        let after = usize::from(self.last_was_write);
        let is_hit = match overhead.hits_are_cached {
            true => self.caches_writes() && !command.fua,
            false => self.cache.write_joins(&range),
        };
        match command.op {
            CommandOp::Write if is_hit => overhead.write_hit[after],
            CommandOp::Write => overhead.write_miss[after],
            _ => overhead.flush,
        }
    }

    fn read_overhead(&mut self, now: Instant, range: &core::ops::Range<u64>) -> Duration {
        self.note_progress(now);
        let hit = self.cache.hit(range).is_some() || self.can_join(now, range);
        let in_sequence = self.sequence == Some(range.start);
        // A gap ends the sequence for good; only a read from the platters begins another.
        if !hit || in_sequence {
            self.sequence = Some(range.end);
        } else {
            self.sequence = None;
        }
        let overhead = &self.parameters.overhead;
        let after = usize::from(self.last_was_write);
        match hit {
            true if in_sequence => overhead.read_hit_in_sequence,
            true => overhead.read_hit[after],
            false => overhead.read_miss[after],
        }
    }

    fn ready(&mut self, now: Instant, command: Command) {
        match command.op {
            CommandOp::Read => self.read(now, command),
            CommandOp::Write if self.caches_writes() && !command.fua => {
                self.write_to_buffer(now, command);
            }
            CommandOp::Write => self.write_through(now, command),
            // Divergence: a rotational drive has nothing to do for a discard.
            CommandOp::Discard | CommandOp::Flush => self.finish(now, command.tag),
        }
    }

    pub(super) fn caches_writes(&self) -> bool {
        self.parameters.layout.write.is_some()
    }

    /// Puts a command that needs the platters into the queue and lets the arm see it.
    pub(super) fn wait_for_arm(&mut self, now: Instant, command: Command, from: u64) {
        let place = self.parameters.geometry.place(from);
        let ready = self.link_free.max(now);
        self.stages.enter(now, command.tag, Stage::Queue);
        self.queue.insert(Waiting { command, arrived: now, from, place, ready });
        self.watch_age(now);
        self.interrupt(now);
    }

    /// When the oldest command came that waits for the arm or for room in the buffer.
    fn oldest_waiting(&self) -> Option<Instant> {
        let stalled = self.stalled.front().map(|stalled| stalled.arrived);
        self.queue.oldest().into_iter().chain(stalled).min()
    }

    /// When the oldest command came, if it has waited too long.
    pub(super) fn oldest_overdue(&self, now: Instant) -> Option<Instant> {
        let order = &self.parameters.order;
        self.oldest_waiting().filter(|arrived| order.is_overdue(now, *arrived))
    }

    /// Looks again when the oldest command that waits will have waited too long.
    pub(super) fn watch_age(&mut self, now: Instant) {
        if self.overdue.is_none()
            && let Some(arrived) = self.oldest_waiting()
            && arrived + self.parameters.order.ageing > now
        {
            let due = arrived + self.parameters.order.ageing;
            self.overdue = Some(self.events.schedule(due, Event::Overdue));
        }
    }

    /// Gives the arm to what is more urgent than idling or reading ahead.
    pub(super) fn interrupt(&mut self, now: Instant) {
        match &self.job {
            Job::Idle => self.next_job(now),
            Job::Read(run) if run.position(now) >= self.stream.needed => {
                if !self.keeps_reading(now) {
                    self.stop_reading(now);
                    self.next_job(now);
                }
            }
            Job::Read(_) | Job::Write(_) => {}
        }
    }

    /// Decides what the free arm does: writing back when it must, then commands, then reading
    /// ahead, then writing back because nothing else is to be done.
    pub(super) fn next_job(&mut self, now: Instant) {
        debug_assert!(matches!(self.job, Job::Idle), "the arm has a job");
        self.watch_age(now);
        self.take_in_stalled(now);
        loop {
            if self.must_write_back() && (self.queue.is_empty() || !self.wrote_back_last) {
                self.wrote_back_last = true;
                self.stop_reading(now);
                return self.start_write_back(now);
            }
            let Parameters { order, mechanics, .. } = &*self.parameters;
            let Some(next) = self.queue.take_next(now, order, mechanics, self.arm) else { break };
            self.wrote_back_last = false;
            self.stop_reading(now);
            if self.start_command(now, next) {
                return;
            }
        }
        if self.stream.wants_more() {
            return self.start_run(now);
        }
        self.stop_reading(now);
        if self.cache.dirty_sectors() > 0 {
            self.write_back_when_idle(now);
        }
    }

    fn start_command(&mut self, now: Instant, waiting: Waiting) -> bool {
        match waiting.command.op {
            CommandOp::Read => self.start_read(now, waiting),
            _ => {
                self.start_write(now, waiting);
                true
            }
        }
    }

    fn write_back_when_idle(&mut self, now: Instant) {
        let due = self.last_activity + self.parameters.write_back.idle_delay;
        if due <= now {
            self.start_write_back(now);
        } else if self.timer.is_none() {
            self.timer = Some(self.events.schedule(due, Event::IdleLongEnough));
        }
    }

    /// Takes the link for a command's data, from `from` on, and finishes the command when they
    /// have crossed.
    pub(super) fn transfer(&mut self, from: Instant, command: &Command) {
        let done = self.link_free.max(from) + self.link_time(command.op, command.sectors.0);
        self.stages.enter(from, command.tag, Stage::Link);
        self.link_free = done;
        self.events.schedule(done, Event::Done(command.tag));
    }

    /// The time of `sectors` on the link.
    pub(super) fn link_time(&self, op: CommandOp, sectors: u32) -> Duration {
        let rate = usize::from(op != CommandOp::Read);
        Duration::from_nanos(u64::from(sectors) * self.parameters.link_sector[rate] / 1000)
    }

    /// Reports a command as finished.
    pub(super) fn finish(&mut self, now: Instant, tag: Tag) {
        self.completed.push(tag);
        self.active -= 1;
        self.last_activity = now;
        self.drain_if_alone(now);
    }

    fn drain_if_alone(&mut self, now: Instant) {
        if self.active > 0 {
            return;
        }
        if let Some(flush) = &mut self.flush
            && !flush.draining
        {
            flush.draining = true;
            self.finish_flush_if_clean(now);
            self.interrupt(now);
        }
    }

    /// Ends the flush when nothing is dirty any more.
    pub(super) fn finish_flush_if_clean(&mut self, now: Instant) {
        if let Some(flush) = self.flush
            && flush.draining
            && self.cache.dirty_sectors() == 0
        {
            let done = now + self.parameters.overhead.flush;
            self.events.schedule(done, Event::Flushed(flush.tag));
        }
    }

    fn flushed(&mut self, now: Instant, tag: Tag) {
        self.flush = None;
        self.completed.push(tag);
        while self.flush.is_none() {
            let Some(command) = self.behind_flush.pop_front() else { break };
            self.begin(now, command);
        }
    }

    fn act(&mut self, now: Instant, event: Event) {
        match event {
            Event::Ready(command) => self.ready(now, command),
            Event::Buffered { tag, delivered } => self.buffered(now, tag, delivered),
            Event::JobEnd => {
                self.job_end = None;
                match core::mem::replace(&mut self.job, Job::Idle) {
                    Job::Idle => unreachable!("a job ended that did not begin"),
                    Job::Read(run) => self.run_ended(now, &run),
                    Job::Write(pass) => self.pass_ended(now, pass),
                }
            }
            Event::Done(tag) => self.finish(now, tag),
            Event::Flushed(tag) => self.flushed(now, tag),
            Event::IdleLongEnough => {
                self.timer = None;
                if matches!(self.job, Job::Idle) {
                    self.next_job(now);
                }
            }
            Event::Overdue => {
                self.overdue = None;
                if let Some(arrived) = self.oldest_overdue(now) {
                    self.end_stream_for(now, arrived);
                }
                self.watch_age(now);
            }
            Event::ReadEnough => {
                self.read_enough = None;
                if !self.queue.is_empty() {
                    self.interrupt(now);
                }
            }
        }
    }
}

impl Device for Drive {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn accept(&mut self, now: Instant, command: Command) {
        debug_assert!(
            range_of(&command).end <= self.facts.capacity.0 / Sector::SIZE,
            "{command:?} reaches beyond {:?}",
            self.facts.capacity
        );
        if self.flush.is_some() {
            self.stages.enter(now, command.tag, Stage::BehindFlush);
            self.behind_flush.push_back(command);
        } else {
            self.begin(now, command);
        }
    }

    fn next_event(&self) -> Option<Instant> {
        self.events.next_at()
    }

    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>) {
        while let Some((at, event)) = self.events.pop_due(now) {
            self.act(at, event);
            completed.append(&mut self.completed);
        }
    }

    fn keep_stages(&mut self) {
        self.stages.keep();
    }

    fn take_stages(&mut self, tag: Tag) -> Box<[(Instant, Stage)]> {
        self.stages.take(tag)
    }
}

/// The sectors of a command.
pub(super) fn range_of(command: &Command) -> core::ops::Range<u64> {
    command.sector.0..command.sector.0 + u64::from(command.sectors.0)
}
