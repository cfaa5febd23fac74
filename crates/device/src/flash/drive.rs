//! A flash drive: the life of a command.
//!
//! A command takes its turn at the controller, then some more time beside others. A read becomes
//! page reads on the units that hold its pages; each page crosses the link when it is there. A
//! write waits for room in the buffer, crosses the link and is finished. If the controller works
//! in order, what comes after a write that waits waits as well. A flush waits for the buffer, and
//! so does a write with forced unit access. Leaves out reads served from the write buffer, and
//! overwrites merged in it.

use std::collections::VecDeque;
use std::sync::Arc;

use base::{Duration, Instant, Rng, Sector};
use block::command::{Command, CommandOp, Facts, Stage, Tag, Transport};

use super::buffer::Buffer;
use super::media::{Finished, Media, PageRead};
use super::timed_fifo::TimedFifo;
use super::{Parameters, Retry, time_of};
use crate::Device;
use crate::stages::Stages;

/// Reads and writes that continue one of so many streams count as sequential.
const STREAMS: usize = 8;
/// The drive remembers in pieces of this size what was ever written.
const CHUNK_SECTORS: u64 = 128;
/// A read above this size costs the controller something extra.
const LARGE: u64 = 4096;

/// A flash drive in operation.
pub(crate) struct Drive {
    facts: Facts,
    parameters: Arc<Parameters>,
    media: Media,
    buffer: Buffer,
    controller_free: Instant,
    link_out_free: Instant,
    link_in_free: Instant,
    /// Commands that leave the controller: small reads, large reads, writes.
    small_reads: TimedFifo<Read>,
    large_reads: TimedFifo<Read>,
    writes: TimedFifo<Write>,
    /// Pages on the link to the host; the last one of a read carries its tag.
    outgoing: TimedFifo<Option<Tag>>,
    /// Data on the link from the host.
    incoming: TimedFifo<Write>,
    discards: TimedFifo<Tag>,
    /// Flushes and forced writes whose data are in the flash, and how many of them are flushes.
    ending: TimedFifo<Durable>,
    flushes_ending: u32,
    /// Writes that wait for room, and what waits behind them.
    stalled: VecDeque<Stalled>,
    flushes: VecDeque<(Tag, Option<u64>)>,
    /// Writes with forced unit access that wait for their programs, by epoch.
    forced: VecDeque<(Tag, u64)>,
    /// A flush holds back what comes after it (SATA), and how many commands it waits for.
    behind_flush: VecDeque<Command>,
    active: u32,
    slots: Vec<Slot>,
    free_slots: Vec<u32>,
    read_streams: Streams,
    write_streams: Streams,
    /// Which pieces were ever written; `None`: all.
    written: Option<Vec<u64>>,
    next_unit: usize,
    /// When something is due next.
    next_at: Instant,
    flush_rng: Rng,
    retries: Retries,
    stages: Stages,
}

/// What waits for room in the buffer, or behind a write that does.
#[derive(Clone, Copy)]
enum Stalled {
    Read(Read),
    Write(Write),
}

/// A command that ends when its data are durable.
#[derive(Clone, Copy)]
enum Durable {
    Flush(Tag),
    Write(Tag),
}

/// A read under way.
#[derive(Clone, Copy)]
struct Slot {
    tag: Tag,
    pages_left: u32,
    /// Pages that wait for flash that is busy.
    unsensed: u32,
    /// Bytes that have crossed the link.
    crossed: u64,
    scattered: bool,
}

#[derive(Clone, Copy)]
struct Read {
    command: Command,
    scattered: bool,
}

#[derive(Clone, Copy)]
struct Write {
    tag: Tag,
    bytes: u64,
    scattered: bool,
    forced: bool,
}

impl Drive {
    pub fn new(facts: Facts, parameters: Arc<Parameters>, seed: u64) -> Drive {
        let written = (!parameters.prefilled).then(|| vec![0; map_words(&facts)]);
        Drive {
            facts,
            media: Media::new(parameters.media.clone()),
            buffer: Buffer::new(
                parameters.buffer.clone(),
                &mut Rng::stream(seed, "device/collection"),
            ),
            parameters,
            controller_free: Instant::ZERO,
            link_out_free: Instant::ZERO,
            link_in_free: Instant::ZERO,
            small_reads: TimedFifo::new(),
            large_reads: TimedFifo::new(),
            writes: TimedFifo::new(),
            outgoing: TimedFifo::new(),
            incoming: TimedFifo::new(),
            discards: TimedFifo::new(),
            ending: TimedFifo::new(),
            flushes_ending: 0,
            stalled: VecDeque::new(),
            flushes: VecDeque::new(),
            forced: VecDeque::new(),
            behind_flush: VecDeque::new(),
            active: 0,
            slots: Vec::new(),
            free_slots: Vec::new(),
            read_streams: Streams::default(),
            write_streams: Streams::default(),
            written,
            next_unit: 0,
            next_at: Instant::FAR_FUTURE,
            flush_rng: Rng::stream(seed, "device/flush"),
            retries: Retries::new(Rng::stream(seed, "device/retry")),
            stages: Stages::default(),
        }
    }

    fn begin(&mut self, now: Instant, command: Command) {
        let bytes = command.sectors.bytes().0;
        self.stages.enter(now, command.tag, Stage::Controller);
        match command.op {
            CommandOp::Read => {
                self.active += 1;
                let ready = self.control(now, self.parameters.read_serial);
                let ready = ready + self.parameters.read_latency;
                let read = Read { command, scattered: self.read_streams.note(&command) };
                if bytes > LARGE && read.scattered {
                    let ready = ready + self.parameters.read_large_extra;
                    self.large_reads.push(ready, read);
                } else {
                    self.small_reads.push(ready, read);
                }
            }
            CommandOp::Write => {
                self.active += 1;
                let ready = self.control(now, self.parameters.write_serial);
                let scattered = self.write_streams.note(&command);
                self.note_written(&command);
                let forced = command.fua && self.facts.volatile_cache;
                let write = Write { tag: command.tag, bytes, scattered, forced };
                self.writes.push(ready + self.parameters.write_latency, write);
            }
            CommandOp::Discard => {
                self.active += 1;
                self.note_discarded(&command);
                let time = self.parameters.discard + time_of(bytes, self.parameters.discard_byte);
                let done = self.control(now, time);
                self.discards.push(done, command.tag);
            }
            CommandOp::Flush => {
                self.flushes.push_back((command.tag, None));
                self.try_flush(now);
            }
        }
    }

    /// The controller's turn for a command; it serves one after another.
    fn control(&mut self, now: Instant, time: Duration) -> Instant {
        self.controller_free = self.controller_free.max(now) + time;
        self.controller_free
    }

    /// A read leaves the controller: it starts, or waits behind a write.
    fn next_read(&mut self, now: Instant, read: Read) {
        match self.parameters.in_order && !self.stalled.is_empty() {
            true => {
                self.stages.enter(now, read.command.tag, Stage::CacheFull);
                self.stalled.push_back(Stalled::Read(read));
            }
            false => self.start_read(now, read),
        }
    }

    /// Sends a read's pages to their units.
    fn start_read(&mut self, now: Instant, read: Read) {
        let Read { command, scattered } = read;
        if self.is_unwritten(&command) {
            let bytes = command.sectors.bytes().0;
            let slot = Slot { tag: command.tag, pages_left: 1, unsensed: 0, crossed: 0, scattered };
            let slot = self.new_slot(slot);
            let (bytes, sense) = (bytes as u32, Duration::ZERO);
            let page = PageRead { slot, bytes, moved: 0, page: 0, sense };
            return self.send_page(now, page);
        }
        let page_size = self.parameters.page;
        let first = command.sector.bytes().0;
        let end = first + command.sectors.bytes().0;
        let (first_page, end_page) = (first / page_size, end.div_ceil(page_size));
        let pages_left = (end_page - first_page) as u32;
        let unsensed = pages_left;
        let slot = Slot { tag: command.tag, pages_left, unsensed, crossed: 0, scattered };
        self.stages.enter(now, command.tag, Stage::DieBusy);
        let slot = self.new_slot(slot);
        for page in first_page..end_page {
            let from = first.max(page * page_size);
            let bytes = (end.min((page + 1) * page_size) - from) as u32;
            let units = self.parameters.media.units as u64;
            let (row, unit) = (page / units, (page % units) as usize);
            let sense = self.parameters.read[row as usize % self.parameters.read.len()];
            let sense = sense + self.retries.of(&self.parameters.retry);
            let whole = self.parameters.moves_whole_page;
            let moved = if whole { page_size as u32 } else { bytes };
            let read = PageRead { slot, bytes, moved, page, sense };
            self.media.read(now, unit, read);
        }
        self.note_sensed();
    }

    /// Some pages have begun to be sensed; a read is at the medium when all of its have.
    fn note_sensed(&mut self) {
        for (at, slot) in self.media.begun.drain(..) {
            let slot = &mut self.slots[slot as usize];
            slot.unsensed -= 1;
            if slot.unsensed == 0 {
                self.stages.enter(at, slot.tag, Stage::Media);
            }
        }
    }

    /// A page is in the controller: it crosses the link.
    fn send_page(&mut self, now: Instant, page: PageRead) {
        let slot = &mut self.slots[page.slot as usize];
        let Parameters { read_byte, scattered_byte, full_duplex, .. } = *self.parameters;
        let bytes = u64::from(page.bytes);
        // What goes beyond the first small piece of a scattered read is slower.
        let fast = LARGE.saturating_sub(slot.crossed).min(bytes);
        let time = match slot.scattered {
            true => time_of(fast, read_byte) + time_of(bytes - fast, scattered_byte),
            false => time_of(bytes, read_byte),
        };
        slot.crossed += bytes;
        slot.pages_left -= 1;
        let tag = (slot.pages_left == 0).then_some(slot.tag);
        if let Some(tag) = tag {
            self.stages.enter(now, tag, Stage::Link);
            self.free_slots.push(page.slot);
        }
        self.link_out_free = self.link_out_free.max(now) + time;
        if !full_duplex {
            self.link_in_free = self.link_out_free;
        }
        self.outgoing.push(self.link_out_free, tag);
    }

    /// Lets waiting writes into the buffer as far as there is room, and reads among them start.
    fn take_in(&mut self, now: Instant) {
        while let Some(stalled) = self.stalled.front().copied() {
            let write = match stalled {
                Stalled::Read(read) => {
                    self.stalled.pop_front();
                    self.start_read(now, read);
                    continue;
                }
                Stalled::Write(write) => write,
            };
            if !self.buffer.reserve(write.bytes) {
                break;
            }
            self.stalled.pop_front();
            let time = time_of(write.bytes, self.parameters.write_byte);
            self.link_in_free = self.link_in_free.max(now) + time;
            if !self.parameters.full_duplex {
                self.link_out_free = self.link_in_free;
            }
            self.stages.enter(now, write.tag, Stage::Link);
            self.incoming.push(self.link_in_free, write);
        }
        self.note_waiting();
    }

    /// While the host waits for writes or a flush, reads do not keep programs from the flash.
    fn note_waiting(&mut self) {
        let durable = !self.flushes.is_empty() || !self.forced.is_empty();
        self.media.host_waits = durable || !self.stalled.is_empty();
    }

    /// A write is in the buffer; that ends it unless it is to be in the flash.
    fn collected(&mut self, now: Instant, write: Write, completed: &mut Vec<Tag>) {
        self.buffer.collect(now, write.bytes, write.scattered);
        if write.forced {
            self.stages.enter(now, write.tag, Stage::Media);
            self.forced.push_back((write.tag, self.buffer.close_epoch()));
            self.note_waiting();
        }
        self.drain(now);
        if !write.forced {
            self.finish(now, write.tag, completed);
        }
    }

    /// Gives programs that may go to the units in turn.
    fn drain(&mut self, now: Instant) {
        while let Some(program) = self.buffer.release(now) {
            self.media.program(now, self.next_unit, program);
            self.next_unit = (self.next_unit + 1) % self.parameters.media.units;
        }
    }

    fn media_advanced(&mut self, now: Instant, finished: Finished) {
        match finished {
            Finished::Nothing => {}
            Finished::Read(page) => self.send_page(now, page),
            Finished::Program(program) => {
                if program.bytes > 0 {
                    self.buffer.programmed(now, &program);
                    self.take_in(now);
                    self.try_flush(now);
                }
            }
        }
    }

    /// Starts and ends flushes and forced writes, the oldest first, as far as they can.
    fn try_flush(&mut self, now: Instant) {
        self.end_forced(now);
        self.end_flushes(now);
        self.note_waiting();
    }

    fn end_forced(&mut self, now: Instant) {
        while let Some((tag, epoch)) = self.forced.front().copied() {
            if !self.buffer.is_finished(epoch) {
                return;
            }
            self.forced.pop_front();
            let time = self.scattered(self.buffer.rules.forced);
            self.end_durable(now, time, Durable::Write(tag));
        }
    }

    /// A time of the firmware's, whose median this is.
    fn scattered(&mut self, median: Duration) -> Duration {
        self.buffer.rules.scatter.draw(&mut self.flush_rng, median)
    }

    /// The firmware makes one thing durable after another.
    fn end_durable(&mut self, now: Instant, time: Duration, what: Durable) {
        self.flushes_ending += u32::from(matches!(what, Durable::Flush(_)));
        self.ending.push(self.ending.last_at().max(now) + time, what);
    }

    fn end_flushes(&mut self, now: Instant) {
        while let Some((tag, epoch)) = self.flushes.front().copied() {
            if self.flush_waits_for_commands() && self.active > 0 {
                return;
            }
            let clean = !self.facts.volatile_cache || !self.buffer.dirty;
            let time = match epoch {
                None if clean => self.buffer.rules.flush_clean,
                None => {
                    self.flushes[0].1 = Some(self.buffer.close_epoch());
                    self.buffer.dirty = false;
                    self.drain(now);
                    continue;
                }
                Some(epoch) if self.buffer.is_finished(epoch) => {
                    self.scattered(self.buffer.rules.flush)
                }
                Some(_) => return,
            };
            self.flushes.pop_front();
            self.end_durable(now, time, Durable::Flush(tag));
        }
    }

    fn flush_waits_for_commands(&self) -> bool {
        self.facts.transport == Transport::Sata
    }

    fn finish(&mut self, now: Instant, tag: Tag, completed: &mut Vec<Tag>) {
        completed.push(tag);
        self.active -= 1;
        if self.active == 0 && !self.flushes.is_empty() {
            self.try_flush(now);
        }
    }

    fn durable(&mut self, now: Instant, what: Durable, completed: &mut Vec<Tag>) {
        let tag = match what {
            Durable::Flush(tag) => tag,
            Durable::Write(tag) => return self.finish(now, tag, completed),
        };
        completed.push(tag);
        self.flushes_ending -= 1;
        while !self.holds_back() {
            let Some(command) = self.behind_flush.pop_front() else { break };
            self.begin(now, command);
        }
    }

    /// Whether a flush keeps new commands waiting.
    fn holds_back(&self) -> bool {
        self.flush_waits_for_commands() && (self.flushes_ending > 0 || !self.flushes.is_empty())
    }

    /// Bytes accepted from the host and not yet in the flash.
    #[cfg(test)]
    pub(super) fn buffered(&self) -> u64 {
        self.buffer.used()
    }

    fn new_slot(&mut self, slot: Slot) -> u32 {
        match self.free_slots.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        }
    }

    fn is_unwritten(&self, command: &Command) -> bool {
        let Some(written) = &self.written else { return false };
        let first = command.sector.0 / CHUNK_SECTORS;
        let end = (command.sector + command.sectors).0.div_ceil(CHUNK_SECTORS);
        !(first..end).any(|chunk| written[(chunk / 64) as usize] >> (chunk % 64) & 1 == 1)
    }

    fn note_written(&mut self, command: &Command) {
        let Some(written) = &mut self.written else { return };
        let end = (command.sector + command.sectors).0.div_ceil(CHUNK_SECTORS);
        for chunk in command.sector.0 / CHUNK_SECTORS..end {
            written[(chunk / 64) as usize] |= 1 << (chunk % 64);
        }
    }

    /// Forgets the pieces that a discard covers as a whole.
    fn note_discarded(&mut self, command: &Command) {
        let words = map_words(&self.facts);
        let written = self.written.get_or_insert_with(|| vec![u64::MAX; words]);
        let end = (command.sector + command.sectors).0 / CHUNK_SECTORS;
        for chunk in command.sector.0.div_ceil(CHUNK_SECTORS)..end {
            written[(chunk / 64) as usize] &= !(1 << (chunk % 64));
        }
    }

    fn earliest(&self) -> Instant {
        let lanes = self.small_reads.next_at().min(self.large_reads.next_at());
        let lanes = lanes.min(self.writes.next_at()).min(self.outgoing.next_at());
        let lanes = lanes.min(self.incoming.next_at()).min(self.discards.next_at());
        let lanes = lanes.min(self.ending.next_at());
        lanes.min(self.media.next_at()).min(self.buffer.next_release())
    }

    /// Does one thing that is due at `at`; the order of equals is the order below.
    fn step(&mut self, at: Instant, completed: &mut Vec<Tag>) {
        if self.outgoing.next_at() == at {
            if let Some((_, Some(tag))) = self.outgoing.pop() {
                self.finish(at, tag, completed);
            }
        } else if self.incoming.next_at() == at {
            let (_, write) = self.incoming.pop().expect("something is due");
            self.collected(at, write, completed);
        } else if self.media.next_at() == at {
            let finished = self.media.advance(at);
            self.note_sensed();
            self.media_advanced(at, finished);
        } else if self.buffer.next_release() == at {
            self.drain(at);
        } else if self.small_reads.next_at() == at {
            let (_, read) = self.small_reads.pop().expect("something is due");
            self.next_read(at, read);
        } else if self.large_reads.next_at() == at {
            let (_, read) = self.large_reads.pop().expect("something is due");
            self.next_read(at, read);
        } else if self.writes.next_at() == at {
            let (_, write) = self.writes.pop().expect("something is due");
            self.stages.enter(at, write.tag, Stage::CacheFull);
            self.stalled.push_back(Stalled::Write(write));
            self.take_in(at);
        } else if self.discards.next_at() == at {
            let (_, tag) = self.discards.pop().expect("something is due");
            self.finish(at, tag, completed);
        } else {
            let (_, what) = self.ending.pop().expect("something is due");
            self.durable(at, what, completed);
        }
    }
}

impl Device for Drive {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn accept(&mut self, now: Instant, command: Command) {
        debug_assert!(
            (command.sector + command.sectors).bytes() <= self.facts.capacity,
            "{command:?} reaches beyond {:?}",
            self.facts.capacity
        );
        if self.holds_back() {
            self.stages.enter(now, command.tag, Stage::BehindFlush);
            self.behind_flush.push_back(command);
        } else {
            self.begin(now, command);
        }
        self.next_at = self.earliest();
    }

    fn next_event(&self) -> Option<Instant> {
        Some(self.next_at).filter(|at| *at != Instant::FAR_FUTURE)
    }

    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>) {
        while self.next_at <= now && self.next_at != Instant::FAR_FUTURE {
            self.step(self.next_at, completed);
            self.next_at = self.earliest();
        }
    }

    fn keep_stages(&mut self) {
        self.stages.keep();
        self.media.notes_begun = true;
    }

    fn take_stages(&mut self, tag: Tag) -> Box<[(Instant, Stage)]> {
        self.stages.take(tag)
    }
}

/// Which pages cannot be read at once: how many are left until the next one.
struct Retries {
    rng: Rng,
    left: u64,
}

impl Retries {
    fn new(rng: Rng) -> Retries {
        Retries { rng, left: 0 }
    }

    /// What the next page takes beyond its sensing.
    fn of(&mut self, retry: &Option<Retry>) -> Duration {
        let Some(retry) = retry else { return Duration::ZERO };
        if self.left == 0 {
            self.left = self.rng.between(1, 2 * retry.of);
        }
        self.left -= 1;
        if self.left == 0 { retry.time } else { Duration::ZERO }
    }
}

/// Words of the map of written pieces.
fn map_words(facts: &Facts) -> usize {
    (facts.capacity.0 / Sector::SIZE).div_ceil(CHUNK_SECTORS).div_ceil(64) as usize
}

/// The ends of the streams seen last.
#[derive(Default)]
struct Streams {
    ends: [u64; STREAMS],
    oldest: usize,
}

impl Streams {
    /// Notes a command; `true` when it continues none of the streams.
    fn note(&mut self, command: &Command) -> bool {
        let end = (command.sector + command.sectors).0;
        match self.ends.iter_mut().find(|last| **last == command.sector.0) {
            Some(last) => {
                *last = end;
                false
            }
            None => {
                self.ends[self.oldest] = end;
                self.oldest = (self.oldest + 1) % STREAMS;
                true
            }
        }
    }
}
