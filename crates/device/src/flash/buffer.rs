//! Written data between the link and the flash.
//!
//! The buffer collects what the host writes into program units, which go to the flash units in
//! turn, no faster than the drive can drain. Random writes leave blocks that are partly stale:
//! what is to be moved out of them is owed, and when that has grown to a batch, the drive's own
//! programs go before the host's. While nothing waits in the buffer the drive works off what it
//! owes. A flush waits for all that was collected before it.

use std::collections::VecDeque;

use base::{Duration, Instant, Rng};

use super::byte_time;
use super::media::Program;
use super::time_of;
use crate::distribution::Spread;
use params::Table;

/// How written data is treated.
#[derive(Clone, Debug)]
pub(crate) struct BufferRules {
    pub size: u64,
    pub program_unit: u64,
    program: Duration,
    /// Programs that run side by side.
    units: u64,
    /// Picoseconds a byte.
    drain_byte: u64,
    /// What a flush and a write with forced unit access take beyond their programs, and how much
    /// both scatter.
    pub flush: Duration,
    pub forced: Duration,
    pub scatter: Spread,
    pub flush_clean: Duration,
    fast: Option<FastArea>,
    /// Own programs per host program in thousandths, for random and sequential writes.
    extra_random: u64,
    extra_sequential: u64,
    /// Own programs, in thousandths, that are owed before any is made.
    batch: u64,
}

/// Flash used with one bit a cell, which takes writes faster until it is full. Most of it is flash
/// in which nothing is kept: a full drive has little of it.
#[derive(Clone, Debug)]
struct FastArea {
    size: u64,
    program: Duration,
    drain_byte: u64,
    /// Picoseconds in which a byte is moved out of it when the host is quiet.
    fold_byte: u64,
}

impl BufferRules {
    pub fn load(table: &Table) -> BufferRules {
        let unit = table.size("flash.program_unit");
        let collects = table.has("garbage_collection");
        let extra = |name: &str| match collects {
            true => {
                let name = format!("garbage_collection.amplification_{name}");
                libm::round((table.real(&name) - 1.0) * 1000.0) as u64
            }
            false => 0,
        };
        let batch = if collects { table.size("garbage_collection.batch") } else { unit };
        BufferRules {
            size: table.size("write_buffer.size"),
            program_unit: unit,
            program: table.time("flash.program"),
            units: table.whole("flash.channels") * table.whole("flash.units_per_channel"),
            drain_byte: byte_time(table, "write_buffer.drain_rate"),
            flush: table.time("write_buffer.flush"),
            forced: table.time("write_buffer.forced"),
            scatter: Spread::load(table, "write_buffer.scatter"),
            flush_clean: table.time("write_buffer.flush_clean"),
            fast: table.has("fast_area").then(|| FastArea {
                size: match table.flag("flash.prefilled") {
                    true => table.size("fast_area.size_full"),
                    false => table.size("fast_area.size"),
                },
                program: table.time("fast_area.program"),
                drain_byte: byte_time(table, "fast_area.drain_rate"),
                fold_byte: byte_time(table, "fast_area.fold_rate"),
            }),
            extra_random: extra("random"),
            extra_sequential: extra("sequential"),
            batch: (batch / unit).max(1) * 1000,
        }
    }
}

/// The write buffer.
pub(super) struct Buffer {
    pub rules: BufferRules,
    /// Bytes that take up room: accepted, not yet in the flash.
    used: u64,
    /// Bytes not yet made into a program, and how many of them were written at random.
    collected: u64,
    collected_random: u64,
    /// Own programs owed, in thousandths.
    owed: u64,
    /// When the last program of the host ended, while none has come since.
    idle_since: Option<Instant>,
    /// Programs ready to go to the flash, once the drain allows.
    ready: VecDeque<Program>,
    drain_free: Instant,
    fast_left: u64,
    /// Unfinished programs by the flush that will wait for them, from `first_epoch` on.
    unfinished: VecDeque<u32>,
    first_epoch: u64,
    /// Something was written since the last flush.
    pub dirty: bool,
}

impl Buffer {
    /// An empty buffer. A used drive is anywhere between two batches of garbage collection.
    pub fn new(rules: BufferRules, rng: &mut Rng) -> Buffer {
        Buffer {
            used: 0,
            collected: 0,
            collected_random: 0,
            owed: rng.below(rules.batch),
            idle_since: None,
            ready: VecDeque::new(),
            drain_free: Instant::ZERO,
            fast_left: rules.fast.as_ref().map_or(0, |fast| fast.size),
            unfinished: VecDeque::from([0]),
            first_epoch: 0,
            dirty: false,
            rules,
        }
    }

    /// Reserves room for a write; `false` when there is none now. A write larger than the whole
    /// buffer passes through when no more than the rest of a program unit is in it.
    pub fn reserve(&mut self, bytes: u64) -> bool {
        let fits = self.used < self.rules.program_unit || self.used + bytes <= self.rules.size;
        if fits {
            self.used += bytes;
        }
        fits
    }

    /// Data has come over the link; makes programs of what fills a unit.
    pub fn collect(&mut self, now: Instant, bytes: u64, random: bool) {
        self.dirty = true;
        self.tidy(now);
        self.collected += bytes;
        self.collected_random += if random { bytes } else { 0 };
        while self.collected >= self.rules.program_unit {
            self.form(self.rules.program_unit);
        }
    }

    /// The next program for the flash, if the drain allows one now.
    pub fn release(&mut self, now: Instant) -> Option<Program> {
        if self.drain_free > now {
            return None;
        }
        let program = self.ready.pop_front()?;
        if program.bytes > 0 {
            let fast = self.rules.fast.as_ref().filter(|_| self.fast_left > 0);
            let byte = fast.map_or(self.rules.drain_byte, |fast| fast.drain_byte);
            self.drain_free = self.drain_free.max(now) + time_of(u64::from(program.moved), byte);
        }
        Some(program)
    }

    /// When [`Buffer::release`] is worth another try.
    pub fn next_release(&self) -> Instant {
        if self.ready.is_empty() { Instant::FAR_FUTURE } else { self.drain_free }
    }

    /// A program is in the flash.
    pub fn programmed(&mut self, now: Instant, program: &Program) {
        self.used -= u64::from(program.bytes);
        if self.used == self.collected {
            self.idle_since = Some(now);
        }
        self.unfinished[(program.epoch - self.first_epoch) as usize] -= 1;
    }

    /// Closes what was collected so far; returns the epoch that must be finished.
    pub fn close_epoch(&mut self) -> u64 {
        if self.collected > 0 {
            self.form(self.collected);
        }
        self.unfinished.push_back(0);
        self.epoch() - 1
    }

    /// Whether everything up to this epoch is in the flash.
    pub fn is_finished(&mut self, epoch: u64) -> bool {
        while self.first_epoch <= epoch && self.unfinished[0] == 0 {
            self.unfinished.pop_front();
            self.first_epoch += 1;
        }
        self.first_epoch > epoch
    }

    /// Bytes accepted and not yet in the flash.
    #[cfg(test)]
    pub fn used(&self) -> u64 {
        self.used
    }

    fn epoch(&self) -> u64 {
        self.first_epoch + self.unfinished.len() as u64 - 1
    }

    /// Makes a program of `bytes` collected bytes, and the drive's own programs that come of it.
    fn form(&mut self, bytes: u64) {
        let unit = self.rules.program_unit;
        let random = self.collected_random.min(bytes);
        self.collected_random -= random;
        self.collected -= bytes;
        let fast = self.rules.fast.as_ref().filter(|_| self.fast_left > 0);
        let time = fast.map_or(self.rules.program, |fast| fast.program);
        if fast.is_none() {
            let (per_random, per_sequential) =
                (self.rules.extra_random, self.rules.extra_sequential);
            self.owed += (random * per_random + (bytes - random) * per_sequential) / unit;
        }
        self.fast_left = self.fast_left.saturating_sub(unit);
        self.push(bytes, time);
        if self.owed >= self.rules.batch {
            while self.owed >= 1000 {
                self.owed -= 1000;
                self.push(0, self.rules.program);
            }
        }
    }

    fn push(&mut self, bytes: u64, time: Duration) {
        let epoch = self.epoch();
        let own = bytes == 0;
        if !own {
            *self.unfinished.back_mut().expect("an open epoch") += 1;
        }
        self.ready.push_back(Program {
            bytes: bytes as u32,
            moved: self.rules.program_unit as u32,
            time,
            epoch,
        });
    }

    /// What the drive did for itself while nothing of the host's waited in the buffer: it moved
    /// data out of the fast area and made programs that were owed. Divergence: reads met nothing
    /// of it.
    fn tidy(&mut self, now: Instant) {
        let Some(since) = self.idle_since.take() else { return };
        let idle = now.saturating_since(since).as_nanos();
        let programs = idle.saturating_mul(self.rules.units * 1000);
        self.owed = self.owed.saturating_sub(programs / self.rules.program.as_nanos());
        if let Some(fast) = &self.rules.fast {
            let folded = idle.saturating_mul(1000) / fast.fold_byte;
            self.fast_left = (self.fast_left + folded).min(fast.size);
        }
    }
}
