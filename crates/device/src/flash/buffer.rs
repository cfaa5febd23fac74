//! Written data between the link and the flash.
//!
//! The buffer collects what the host writes into program units, which go to the flash units in
//! turn, no faster than the drive can drain. Beside them go the drive's own programs: data moved
//! by garbage collection, and erases. A flush waits for all that was collected before it.

use std::collections::VecDeque;

use base::{Duration, Instant};

use super::byte_time;
use super::media::Program;
use super::time_of;
use params::Table;

/// How written data is treated.
#[derive(Clone, Debug)]
pub(crate) struct BufferRules {
    pub size: u64,
    pub program_unit: u64,
    program: Duration,
    /// Erasing, spread over the programs of a block.
    erase_share: Duration,
    /// Picoseconds a byte.
    drain_byte: u64,
    pub flush: Duration,
    pub flush_clean: Duration,
    fast: Option<FastArea>,
    /// Own programs per host program in thousandths, for random and sequential writes.
    extra_random: u64,
    extra_sequential: u64,
}

/// Flash used with one bit a cell, which takes writes faster until it is full.
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
        let blocks_per_unit = unit as f64 / table.real("flash.erase_block");
        let erase = libm::round(table.real("flash.erase") * blocks_per_unit) as u64;
        let extra = |name: &str| match table.has("garbage_collection") {
            true => {
                let name = format!("garbage_collection.amplification_{name}");
                libm::round((table.real(&name) - 1.0) * 1000.0) as u64
            }
            false => 0,
        };
        BufferRules {
            size: table.size("write_buffer.size"),
            program_unit: unit,
            program: table.time("flash.program"),
            erase_share: Duration::from_nanos(erase),
            drain_byte: byte_time(table, "write_buffer.drain_rate"),
            flush: table.time("write_buffer.flush"),
            flush_clean: table.time("write_buffer.flush_clean"),
            fast: table.has("fast_area").then(|| FastArea {
                size: table.size("fast_area.size"),
                program: table.time("fast_area.program"),
                drain_byte: byte_time(table, "fast_area.drain_rate"),
                fold_byte: byte_time(table, "fast_area.fold_rate"),
            }),
            extra_random: extra("random"),
            extra_sequential: extra("sequential"),
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
    /// Programs ready to go to the flash, once the drain allows.
    ready: VecDeque<Program>,
    drain_free: Instant,
    fast_left: u64,
    last_write: Instant,
    /// Unfinished programs by the flush that will wait for them, from `first_epoch` on.
    unfinished: VecDeque<u32>,
    first_epoch: u64,
    /// Something was written since the last flush.
    pub dirty: bool,
}

impl Buffer {
    pub fn new(rules: BufferRules) -> Buffer {
        Buffer {
            used: 0,
            collected: 0,
            collected_random: 0,
            owed: 0,
            ready: VecDeque::new(),
            drain_free: Instant::ZERO,
            fast_left: rules.fast.as_ref().map_or(0, |fast| fast.size),
            last_write: Instant::ZERO,
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
        self.fold(now);
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
    pub fn programmed(&mut self, program: &Program) {
        self.used -= u64::from(program.bytes);
        self.unfinished[(program.epoch - self.first_epoch) as usize] -= 1;
    }

    /// Closes what was collected so far; returns the epoch that must be finished.
    pub fn close_epoch(&mut self) -> u64 {
        if self.collected > 0 {
            self.form(self.collected);
        }
        self.dirty = false;
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
        while self.owed >= 1000 {
            self.owed -= 1000;
            self.push(0, self.rules.program);
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
            // Divergence: data the drive moves itself is copied inside the unit.
            moved: if own { 0 } else { self.rules.program_unit as u32 },
            time: time + self.rules.erase_share,
            epoch,
        });
    }

    /// Moves data out of the fast area for as long as the host has been quiet.
    fn fold(&mut self, now: Instant) {
        if let Some(fast) = &self.rules.fast {
            let quiet = now.saturating_since(self.last_write).as_nanos();
            let folded = quiet.saturating_mul(1000) / fast.fold_byte;
            self.fast_left = (self.fast_left + folded).min(fast.size);
        }
        self.last_write = now;
    }
}
