//! The flash itself: units that read and program independently, and the channels they share.
//!
//! A unit does one thing at a time. Reads go before programs, and interrupt a running program
//! when the flash can suspend one; but while the host waits for room in the write buffer, reads
//! and programs take turns and nothing is suspended, so writes cannot starve. When a unit's block
//! is full it erases the next one, and nothing interrupts that. The page a unit sensed last stays
//! in its register and need not be sensed again. Leaves out sensing the next page while the last
//! one is still being moved.

use std::collections::VecDeque;

use base::agenda::{Agenda, Ticket};
use base::{Duration, Instant};

use super::{byte_time, time_of};
use params::Table;

/// How the flash is built.
#[derive(Clone, Debug)]
pub(crate) struct MediaRules {
    channels: usize,
    pub units: usize,
    /// Picoseconds a byte on a channel; `None`: moving is part of the times of the flash.
    channel_byte: Option<u64>,
    /// Time in which a program is suspended; `None`: it cannot be.
    suspend: Option<Duration>,
    erase: Duration,
    /// Programs that fill a block.
    programs_per_block: u64,
}

impl MediaRules {
    pub fn load(table: &Table) -> MediaRules {
        let channels = table.whole("flash.channels") as usize;
        MediaRules {
            channels,
            units: channels * table.whole("flash.units_per_channel") as usize,
            channel_byte: table.has("channel").then(|| byte_time(table, "channel.rate")),
            suspend: table.has("suspend").then(|| table.time("suspend.delay")),
            erase: table.time("flash.erase"),
            programs_per_block: match table.time("flash.erase") {
                Duration::ZERO => u64::MAX,
                _ => (table.size("flash.erase_block") / table.size("flash.program_unit")).max(1),
            },
        }
    }
}

/// One page, or a part of it, on its way to a read.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageRead {
    /// Which command it is for.
    pub slot: u32,
    /// Bytes for the host, and bytes that are moved over the channel.
    pub bytes: u32,
    pub moved: u32,
    /// Number of the page, and the time to sense it.
    pub page: u64,
    pub sense: Duration,
}

/// Data on its way into the flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    /// Bytes of the host in it; none when the drive moves its own.
    pub bytes: u32,
    /// Bytes that are moved over the channel.
    pub moved: u32,
    pub time: Duration,
    /// The flush that will wait for it.
    pub epoch: u64,
}

/// What a unit has just finished.
pub(super) enum Finished {
    Nothing,
    Read(PageRead),
    Program(Program),
}

enum State {
    Idle,
    Sensing(PageRead),
    Moving(PageRead),
    Loading(Program),
    Programming { program: Program, end: Instant, ticket: Ticket },
    Suspending,
    Erasing,
}

struct Unit {
    state: State,
    reads: VecDeque<PageRead>,
    programs: VecDeque<Program>,
    suspended: Option<(Program, Duration)>,
    /// Programs that still fit the unit's block.
    room: u64,
    read_last: bool,
    /// The page that is in the unit's register.
    register: Option<u64>,
}

/// All units and channels.
pub(super) struct Media {
    rules: MediaRules,
    units: Vec<Unit>,
    channel_free: Vec<Instant>,
    /// The next event of each busy unit.
    events: Agenda<u32>,
    /// The host waits for room in the write buffer.
    pub host_waits: bool,
    /// Whether it is noted which reads begin to be sensed, and those that have begun, by slot.
    pub notes_begun: bool,
    pub begun: Vec<(Instant, u32)>,
}

impl Media {
    pub fn new(rules: MediaRules) -> Media {
        // Blocks of a used drive are full by different amounts, so units erase in turn.
        let (units, full) = (rules.units as u128, u128::from(rules.programs_per_block));
        let unit = |index: usize| Unit {
            state: State::Idle,
            reads: VecDeque::new(),
            programs: VecDeque::new(),
            suspended: None,
            room: (full * (units - index as u128) / units) as u64,
            read_last: false,
            register: None,
        };
        Media {
            units: (0..rules.units).map(unit).collect(),
            channel_free: vec![Instant::ZERO; rules.channels],
            events: Agenda::new(),
            host_waits: false,
            notes_begun: false,
            begun: Vec::new(),
            rules,
        }
    }

    /// When a unit next finishes something.
    pub fn next_at(&self) -> Instant {
        self.events.next_at().unwrap_or(Instant::FAR_FUTURE)
    }

    pub fn read(&mut self, now: Instant, unit: usize, read: PageRead) {
        self.units[unit].reads.push_back(read);
        match &self.units[unit].state {
            State::Idle => self.start(now, unit),
            State::Programming { program, end, ticket } => {
                let Some(delay) = self.rules.suspend.filter(|_| !self.host_waits) else { return };
                let rest = end.saturating_since(now);
                if rest > delay {
                    let (program, ticket) = (*program, *ticket);
                    self.events.cancel(ticket);
                    self.units[unit].suspended = Some((program, rest));
                    self.units[unit].state = State::Suspending;
                    self.events.schedule(now + delay, unit as u32);
                }
            }
            _ => {}
        }
    }

    pub fn program(&mut self, now: Instant, unit: usize, program: Program) {
        self.units[unit].programs.push_back(program);
        if matches!(self.units[unit].state, State::Idle) {
            self.start(now, unit);
        }
    }

    /// Lets the unit that is due at `at` go on.
    pub fn advance(&mut self, at: Instant) -> Finished {
        let Some((_, unit)) = self.events.pop_due(at) else { return Finished::Nothing };
        let unit = unit as usize;
        match core::mem::replace(&mut self.units[unit].state, State::Idle) {
            State::Sensing(read) if self.rules.channel_byte.is_some() => {
                let end = self.move_over_channel(at, unit, read.moved);
                self.events.schedule(end, unit as u32);
                self.units[unit].state = State::Moving(read);
                Finished::Nothing
            }
            State::Sensing(read) | State::Moving(read) => {
                self.start(at, unit);
                Finished::Read(read)
            }
            State::Loading(program) => {
                self.start_programming(at, unit, program, program.time);
                Finished::Nothing
            }
            State::Programming { program, .. } => {
                self.start(at, unit);
                Finished::Program(program)
            }
            State::Suspending | State::Erasing => {
                self.start(at, unit);
                Finished::Nothing
            }
            State::Idle => unreachable!("an idle unit has no event"),
        }
    }

    /// Gives an idle unit its next work.
    fn start(&mut self, now: Instant, index: usize) {
        let unit = &mut self.units[index];
        let work = unit.suspended.is_some() || !unit.programs.is_empty();
        let program_first = self.host_waits && unit.read_last && work;
        if !program_first && let Some(read) = unit.reads.pop_front() {
            unit.read_last = true;
            if self.notes_begun {
                self.begun.push((now, read.slot));
            }
            unit.state = State::Sensing(read);
            let sensed = unit.register == Some(read.page);
            unit.register = Some(read.page);
            let sense = if sensed { Duration::ZERO } else { read.sense };
            self.events.schedule(now + sense, index as u32);
            return;
        }
        unit.read_last = false;
        if let Some((program, rest)) = unit.suspended.take() {
            self.start_programming(now, index, program, rest);
        } else if !unit.programs.is_empty() && unit.room == 0 {
            unit.room = self.rules.programs_per_block;
            unit.state = State::Erasing;
            self.events.schedule(now + self.rules.erase, index as u32);
        } else if let Some(program) = unit.programs.pop_front() {
            unit.room -= 1;
            let loaded = self.move_over_channel(now, index, program.moved);
            self.units[index].register = None;
            self.units[index].state = State::Loading(program);
            self.events.schedule(loaded, index as u32);
        }
    }

    fn start_programming(&mut self, now: Instant, unit: usize, program: Program, time: Duration) {
        let end = now + time;
        let ticket = self.events.schedule(end, unit as u32);
        self.units[unit].state = State::Programming { program, end, ticket };
    }

    /// Takes the channel of a unit for some bytes; returns when they are across.
    fn move_over_channel(&mut self, now: Instant, unit: usize, bytes: u32) -> Instant {
        let Some(byte) = self.rules.channel_byte else { return now };
        let channel = unit % self.rules.channels;
        let free = &mut self.channel_free[channel];
        *free = (*free).max(now) + time_of(u64::from(bytes), byte);
        *free
    }
}
