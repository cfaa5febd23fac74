//! A virtual disk: a file or logical volume of the host behind a hypervisor.
//!
//! Writes end in memory the host protects. They go to the platters out of sight until too much is
//! dirty, or through the backing device like everything else ([`write_back`]). Reads of what passed
//! through the host before are served from its memory, others wait for the backing device. A
//! bounded number of commands is served at once, in order of arrival. Leaves out the transport's
//! own costs, which the host model of the guest has to bear, and whatever else the hypervisor
//! serves.

mod page_set;
#[cfg(test)]
mod tests;
mod write_back;

use std::collections::VecDeque;

use base::agenda::Agenda;
use base::{Duration, Instant, Rng, Sector, Sectors, page};
use block::command::{Command, CommandOp, Facts, Stage, Tag};

use crate::Device;
use crate::distribution::{self, Jitter};
use crate::stages::Stages;
use params::Accept::{Model, Rate, Size, Time, Whole};
use params::Error;
use params::{Section, Table, spec};

use page_set::PageSet;
use write_back::WriteBack;

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
pub(crate) const SCHEMA: [&Section; 5] =
    [&BACKING, &SERVICE, &HOST_CACHE, &write_back::SECTION, &distribution::JITTER];

/// What a virtual disk needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    at_once: usize,
    write: Cost,
    read_hit: Cost,
    read_miss: Duration,
    flush: Duration,
    cache_pages: usize,
    /// Time in which the dirty limit drains, and picoseconds in which a byte does.
    dirty_limit: Duration,
    drain_byte: u64,
    /// How what is dirty goes to the backing device; `None`: out of sight.
    write_back: Option<write_back::Rules>,
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
            cache_pages: (table.size("host_cache.size") / page::SIZE) as usize,
            dirty_limit: Duration::from_nanos(dirty_limit * drain_byte / 1000),
            drain_byte,
            write_back: write_back::Rules::load(table, dirty_limit),
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
    write_back: Option<WriteBack>,
    stages: Stages,
}

impl VirtualDisk {
    pub fn new(facts: Facts, parameters: Parameters, backing: Box<dyn Device>, seed: u64) -> Self {
        let below = backing.facts();
        let depth = below.queue_depth as usize;
        let write_back = parameters.write_back.clone().map(|rules| {
            let places = rules.at_once.min(depth / 2);
            WriteBack::new(rules, places, u64::from(below.max_hw_sectors.0 / page::SECTORS.0))
        });
        let writes = write_back.as_ref().map_or(0, WriteBack::places);
        let missed = vec![None; parameters.at_once.min(depth - writes)];
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
            write_back,
            stages: Stages::default(),
            parameters,
        }
    }

    /// Begins waiting commands as long as one more can be served.
    fn serve(&mut self, now: Instant) {
        while self.serving < self.parameters.at_once {
            let Some(command) = self.waiting.front().copied() else { return };
            if command.op == CommandOp::Write && !self.has_room(&command) {
                return;
            }
            if command.op == CommandOp::Read && !self.cached(&command) {
                let Some(slot) = self.missed.iter().position(Option::is_none) else { return };
                self.missed[slot] = Some(command);
                self.backing.accept(now, Command { tag: Tag(slot as u32), ..command });
            } else {
                let done = self.service_end(now, &command);
                self.stages.enter(now, command.tag, Stage::Service);
                self.finishing.schedule(done, command.tag);
            }
            self.waiting.pop_front();
            self.serving += 1;
        }
    }

    fn service_end(&mut self, now: Instant, command: &Command) -> Instant {
        let parameters = &self.parameters;
        let bytes = command.sectors.bytes().0;
        let (mut from, median) = match command.op {
            CommandOp::Read => (now, parameters.read_hit.of(bytes)),
            CommandOp::Write => (self.room_at(now), parameters.write.of(bytes)),
            CommandOp::Flush => (now, parameters.flush),
            CommandOp::Discard => (now, parameters.write.fixed),
        };
        if command.op == CommandOp::Write {
            self.note_dirty(now, from, command);
            self.remember(command);
        }
        from += self.parameters.jitter.draw(&mut self.rng, median);
        from
    }

    /// Whether the host has room for a write that will go through the backing device.
    fn has_room(&mut self, command: &Command) -> bool {
        let count = pages(command).count() as u64;
        self.write_back.as_mut().is_none_or(|write_back| write_back.has_room(count))
    }

    fn note_dirty(&mut self, now: Instant, from: Instant, command: &Command) {
        if let Some(write_back) = &mut self.write_back {
            return pages(command).for_each(|page| write_back.note_written(now, page));
        }
        let bytes = command.sectors.bytes().0;
        let drain = Duration::from_nanos(bytes * self.parameters.drain_byte / 1000);
        self.drained_at = self.drained_at.max(from) + drain;
    }

    /// Sends down what is due, as far as the host has places for it.
    fn send_dirty(&mut self, now: Instant) {
        let Some(write_back) = &mut self.write_back else { return };
        while let Some((place, first, count)) = write_back.next(now) {
            let sector = first * u64::from(page::SECTORS.0);
            let left = self.facts.capacity.0 / Sector::SIZE - sector;
            let sectors = (count * u64::from(page::SECTORS.0)).min(left) as u32;
            let tag = Tag((self.missed.len() + place) as u32);
            let (op, sector, sectors) = (CommandOp::Write, Sector(sector), Sectors(sectors));
            self.backing.accept(now, Command { tag, op, sector, sectors, fua: false });
        }
    }

    /// When the host takes another write: at once, unless too much is dirty.
    fn room_at(&self, now: Instant) -> Instant {
        let dirty = self.drained_at.saturating_since(now);
        now + dirty.saturating_sub(self.parameters.dirty_limit)
    }

    fn cached(&mut self, command: &Command) -> bool {
        let dirty = |page| self.write_back.as_ref().is_some_and(|it| it.holds(page));
        pages(command).all(|page| dirty(page) || self.cache.holds(page))
    }

    fn remember(&mut self, command: &Command) {
        pages(command).for_each(|page| self.cache.insert(page));
    }

    fn advance_backing(&mut self, now: Instant) {
        let mut completed = core::mem::take(&mut self.backing_completed);
        self.backing.advance(now, &mut completed);
        for Tag(slot) in completed.drain(..) {
            let slot = slot as usize;
            if let Some(place) = slot.checked_sub(self.missed.len()) {
                self.write_back.as_mut().expect("a host that writes back").written(place);
                self.backing.take_stages(Tag(slot as u32));
                continue;
            }
            let command = self.missed[slot].take().expect("a read that was sent down");
            self.remember(&command);
            self.stages.enter_all(command.tag, &self.backing.take_stages(Tag(slot as u32)));
            self.stages.enter(now, command.tag, Stage::Service);
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
        self.stages.enter(now, command.tag, Stage::Queue);
        self.waiting.push_back(command);
        self.serve(now);
        self.send_dirty(now);
    }

    fn next_event(&self) -> Option<Instant> {
        let due = self.write_back.as_ref().and_then(WriteBack::next_due);
        [self.finishing.next_at(), self.backing.next_event(), due].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>) {
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            self.advance_backing(at);
            while let Some((_, tag)) = self.finishing.pop_due(at) {
                completed.push(tag);
                self.serving -= 1;
            }
            self.serve(at);
            self.send_dirty(at);
        }
    }

    fn keep_stages(&mut self) {
        self.stages.keep();
        self.backing.keep_stages();
    }

    fn take_stages(&mut self, tag: Tag) -> Box<[(Instant, Stage)]> {
        self.stages.take(tag)
    }
}

/// The pages a command touches.
fn pages(command: &Command) -> impl Iterator<Item = u64> {
    let first = command.sector.bytes().0 / page::SIZE;
    let end = (command.sector + command.sectors).bytes().0;
    first..end.div_ceil(page::SIZE)
}
