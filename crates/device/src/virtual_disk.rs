//! A virtual disk: a file or logical volume of the host behind a hypervisor.
//!
//! Writes end in memory the host protects; they go to the platters out of sight until too much is
//! dirty. Reads of what passed through the host before are served from its memory, others wait
//! for the backing device. A bounded number of commands is served at once, in order of arrival.
//! Leaves out the transport's own costs, which the host model of the guest has to bear, and
//! whatever else the hypervisor serves.

use std::collections::VecDeque;

use base::agenda::Agenda;
use base::{Duration, Instant, Rng, page};
use block::command::{Command, CommandOp, Facts, Tag};

use crate::Device;
use crate::distribution::{self, Jitter};
use params::Accept::{Model, Rate, Size, Time, Whole};
use params::Error;
use params::{Section, Table, spec};

const BACKING: Section =
    Section { name: "backing", required: true, specs: &[spec("model", Model)] };
const SERVICE: Section = Section {
    name: "service",
    required: true,
    specs: &[
        spec("at_once", Whole(1, 65_536, "")),
        spec("write", Time(0.0, 1e9)),
        spec("write_rate", Rate(1e6, 1e12)),
        spec("read_hit", Time(0.0, 1e9)),
        spec("read_hit_rate", Rate(1e6, 1e12)),
        spec("read_miss", Time(0.0, 1e9)),
        spec("flush", Time(0.0, 1e10)),
        spec("after_flush_window", Time(0.0, 1e10)),
        spec("after_flush_extra", Time(0.0, 1e9)),
    ],
};
const HOST_CACHE: Section = Section {
    name: "host_cache",
    required: true,
    specs: &[
        spec("size", Size(65_536.0, 1.8e10)),
        spec("dirty_limit", Size(65_536.0, 1e11)),
        spec("drain_rate", Rate(1e5, 1e12)),
    ],
};

/// The sections of a virtual disk's model.
pub(crate) const SCHEMA: [&Section; 4] = [&BACKING, &SERVICE, &HOST_CACHE, &distribution::JITTER];

/// What a virtual disk needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    at_once: usize,
    write: Cost,
    read_hit: Cost,
    read_miss: Duration,
    flush: Duration,
    after_flush_window: Duration,
    after_flush_extra: Duration,
    cache_pages: usize,
    /// Time in which the dirty limit drains, and picoseconds in which a byte does.
    dirty_limit: Duration,
    drain_byte: u64,
    jitter: Jitter,
}

/// A fixed time plus a time per byte, the latter in picoseconds.
#[derive(Clone, Copy, Debug)]
struct Cost {
    fixed: Duration,
    byte: u64,
}

impl Cost {
    fn load(table: &Table, name: &str) -> Cost {
        let byte = libm::round(1e12 / table.real(&format!("service.{name}_rate"))) as u64;
        Cost { fixed: table.time(&format!("service.{name}")), byte }
    }

    fn of(&self, bytes: u64) -> Duration {
        self.fixed + Duration::from_nanos(bytes * self.byte / 1000)
    }
}

impl Parameters {
    pub fn load(table: &Table) -> Result<Parameters, Error> {
        let drain_byte = libm::round(1e12 / table.real("host_cache.drain_rate")) as u64;
        let dirty_limit = table.size("host_cache.dirty_limit");
        Ok(Parameters {
            at_once: table.whole("service.at_once") as usize,
            write: Cost::load(table, "write"),
            read_hit: Cost::load(table, "read_hit"),
            read_miss: table.time("service.read_miss"),
            flush: table.time("service.flush"),
            after_flush_window: table.time("service.after_flush_window"),
            after_flush_extra: table.time("service.after_flush_extra"),
            cache_pages: (table.size("host_cache.size") / page::SIZE) as usize,
            dirty_limit: Duration::from_nanos(dirty_limit * drain_byte / 1000),
            drain_byte,
            jitter: Jitter::load(table, &distribution::JITTER)?,
        })
    }
}

/// A virtual disk in operation.
pub(crate) struct VirtualDisk {
    facts: Facts,
    parameters: Parameters,
    rng: Rng,
    waiting: VecDeque<Command>,
    finishing: Agenda<Tag>,
    /// Reads that the backing device serves; its tag is the index, `None` an unused one.
    missed: Vec<Option<Command>>,
    backing: Box<dyn Device>,
    backing_completed: Vec<Tag>,
    serving: usize,
    cache: PageSet,
    /// When everything dirty would be on the platters.
    drained_at: Instant,
    last_flush: Option<Instant>,
}

impl VirtualDisk {
    pub fn new(facts: Facts, parameters: Parameters, backing: Box<dyn Device>, seed: u64) -> Self {
        let backing_depth = backing.facts().queue_depth as usize;
        let missed = vec![None; parameters.at_once.min(backing_depth)];
        VirtualDisk {
            facts,
            rng: Rng::stream(seed, "device/service"),
            waiting: VecDeque::new(),
            finishing: Agenda::new(),
            missed,
            backing,
            backing_completed: Vec::new(),
            serving: 0,
            cache: PageSet::new(parameters.cache_pages),
            drained_at: Instant::ZERO,
            last_flush: None,
            parameters,
        }
    }

    /// Begins waiting commands as long as one more can be served.
    fn serve(&mut self, now: Instant) {
        while self.serving < self.parameters.at_once {
            let Some(command) = self.waiting.front().copied() else { return };
            if command.op == CommandOp::Read && !self.cached(&command) {
                let Some(slot) = self.missed.iter().position(Option::is_none) else { return };
                self.missed[slot] = Some(command);
                self.backing.accept(now, Command { tag: Tag(slot as u32), ..command });
            } else {
                let done = self.service_end(now, &command);
                self.finishing.schedule(done, command.tag);
            }
            self.waiting.pop_front();
            self.serving += 1;
        }
    }

    fn service_end(&mut self, now: Instant, command: &Command) -> Instant {
        let parameters = &self.parameters;
        let bytes = command.sectors.bytes().0;
        let (mut from, mut median) = match command.op {
            CommandOp::Read => (now, parameters.read_hit.of(bytes)),
            CommandOp::Write => (self.room_at(now), parameters.write.of(bytes)),
            CommandOp::Flush => {
                self.last_flush = Some(now);
                (now, parameters.flush)
            }
            CommandOp::Discard => (now, parameters.write.fixed),
        };
        if command.op == CommandOp::Write {
            let drain = Duration::from_nanos(bytes * self.parameters.drain_byte / 1000);
            self.drained_at = self.drained_at.max(from) + drain;
            self.remember(command);
            let window = self.parameters.after_flush_window;
            if self.last_flush.is_some_and(|flush| now.saturating_since(flush) < window) {
                median += self.parameters.after_flush_extra;
            }
        }
        from += self.parameters.jitter.draw(&mut self.rng, median);
        from
    }

    /// When the host takes another write: at once, unless too much is dirty.
    fn room_at(&self, now: Instant) -> Instant {
        let dirty = self.drained_at.saturating_since(now);
        now + dirty.saturating_sub(self.parameters.dirty_limit)
    }

    fn cached(&mut self, command: &Command) -> bool {
        pages(command).all(|page| self.cache.holds(page))
    }

    fn remember(&mut self, command: &Command) {
        pages(command).for_each(|page| self.cache.insert(page));
    }

    fn advance_backing(&mut self, now: Instant) {
        let mut completed = core::mem::take(&mut self.backing_completed);
        self.backing.advance(now, &mut completed);
        for Tag(slot) in completed.drain(..) {
            let command = self.missed[slot as usize].take().expect("a read that was sent down");
            self.remember(&command);
            let done = now + self.parameters.read_miss;
            self.finishing.schedule(done, command.tag);
        }
        self.backing_completed = completed;
    }
}

impl Device for VirtualDisk {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn accept(&mut self, now: Instant, command: Command) {
        self.waiting.push_back(command);
        self.serve(now);
    }

    fn next_event(&self) -> Option<Instant> {
        match (self.finishing.next_at(), self.backing.next_event()) {
            (Some(own), Some(below)) => Some(own.min(below)),
            (own, below) => own.or(below),
        }
    }

    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>) {
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            self.advance_backing(at);
            while let Some((_, tag)) = self.finishing.pop_due(at) {
                completed.push(tag);
                self.serving -= 1;
            }
            self.serve(at);
        }
    }
}

const WAYS: usize = 8;

/// The pages a command touches.
fn pages(command: &Command) -> impl Iterator<Item = u64> {
    let first = command.sector.bytes().0 / page::SIZE;
    let end = (command.sector + command.sectors).bytes().0;
    first..end.div_ceil(page::SIZE)
}

/// A bounded set of pages that forgets the ones not used for long.
///
/// Divergence: a page competes only with the few of its own set, not with all.
struct PageSet {
    /// Page and last use, `WAYS` of them a set; unused entries have use zero.
    entries: Vec<(u64, u64)>,
    uses: u64,
}

impl PageSet {
    fn new(pages: usize) -> PageSet {
        let sets = (pages / WAYS).next_power_of_two();
        PageSet { entries: vec![(0, 0); sets * WAYS], uses: 0 }
    }

    fn set(&mut self, page: u64) -> &mut [(u64, u64)] {
        let sets = (self.entries.len() / WAYS) as u64;
        // Neighbouring pages go to neighbouring sets, far ones are spread by the golden ratio.
        let spread = (page >> 8).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let index = ((page ^ spread) & (sets - 1)) as usize;
        &mut self.entries[index * WAYS..(index + 1) * WAYS]
    }

    fn holds(&mut self, page: u64) -> bool {
        self.uses += 1;
        let uses = self.uses;
        match self.set(page).iter_mut().find(|entry| entry.0 == page && entry.1 > 0) {
            Some(entry) => {
                entry.1 = uses;
                true
            }
            None => false,
        }
    }

    fn insert(&mut self, page: u64) {
        if !self.holds(page) {
            let uses = self.uses;
            let oldest = self.set(page).iter_mut().min_by_key(|entry| entry.1);
            *oldest.expect("a set has entries") = (page, uses);
        }
    }
}
