//! Requests in columns, in the order in which they came.

use super::columns::{Columns, signed};
use super::lanes::Lanes;
use crate::layer::Layer;
use crate::life::Life;
use block::{DispatchReason, Flags, Op};
use std::collections::BTreeMap;

/// A part of a request's time: from, to, and which layer, by its place in the kinds.
pub type Span = (u64, u64, usize);

/// Operations, by number.
pub const OPERATIONS: [&str; 4] = ["read", "write", "discard", "flush"];
/// Added to the number of an operation that somebody waits for.
const SYNC: u8 = 4;
/// Added where the disk's cache is gone around.
const FUA: u8 = 8;

/// Requests; each column has a value for each.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Q, in ticks.
    pub queued: Vec<u64>,
    /// I, in ticks after `queued`, and one more; zero of what passed the scheduler by.
    pub inserted: Vec<u64>,
    /// D, in ticks after `queued`.
    pub issued: Vec<u64>,
    /// What it does: a number of [`OPERATIONS`], and flags.
    pub op: Vec<u8>,
    /// The lane of its task.
    pub task: Vec<usize>,
    /// The lane of the queue that it waits in.
    pub queue: Vec<usize>,
    /// First sector.
    pub sector: Vec<u64>,
    /// Length.
    pub sectors: Vec<u32>,
    /// Bios that it took in.
    pub merged: Vec<u32>,
    /// Why it was chosen: a place in `reasons`, and one more.
    pub reason: Vec<u8>,
    /// From the device's being done until its submitter is told, in ticks.
    pub untold: Vec<u64>,
    /// Where its parts begin in `parts`, and where the last one's end.
    pub starts: Vec<usize>,
    /// How long each part is, in ticks; they add up to the request's time.
    pub parts: Vec<u64>,
    /// Which layer each part is, by its place in the kinds.
    pub kinds: Vec<u8>,
    /// Rows within the lanes of its task, of its queue and of the device.
    pub rows: [Vec<u8>; 3],
    /// Reasons that occur.
    pub reasons: Vec<DispatchReason>,
}

impl Requests {
    /// The columns of requests that are in order.
    pub(super) fn of(lives: &[Life], lanes: &Lanes, kinds: &[Layer], tick: u64) -> Requests {
        let mut all = Requests { starts: vec![0], ..Requests::default() };
        let place = |layer: &Layer| kinds.iter().position(|it| it == layer).unwrap_or(0) as u8;
        for life in lives {
            all.add(life, lanes, tick);
            let mut at = life.queued.as_nanos();
            for (layer, time) in &life.layers {
                let end = at + time.as_nanos();
                all.parts.push(end / tick - at / tick);
                all.kinds.push(place(layer));
                at = end;
            }
            all.starts.push(all.parts.len());
        }
        all
    }

    /// Everything but its parts.
    fn add(&mut self, life: &Life, lanes: &Lanes, tick: u64) {
        let queued = life.queued.as_nanos() / tick;
        let after = |it: base::Instant| (it.as_nanos() / tick).saturating_sub(queued);
        self.queued.push(queued);
        self.inserted.push(life.inserted.map_or(0, |it| after(it) + 1));
        self.issued.push(after(life.issued));
        self.op.push(operation(life));
        self.untold.push(life.end().as_nanos() / tick - life.completed.as_nanos() / tick);
        self.task.push(lanes.of_task(life.context));
        self.queue.push(lanes.of_queue(life));
        self.sector.push(life.sector.0);
        self.sectors.push(life.sectors.0);
        self.merged.push(life.merged);
        let reason = life.reason.map_or(0, |it| self.number_of(it));
        self.reason.push(reason);
    }

    fn number_of(&mut self, reason: DispatchReason) -> u8 {
        let known = self.reasons.iter().position(|it| *it == reason);
        let place = known.unwrap_or_else(|| {
            self.reasons.push(reason);
            self.reasons.len() - 1
        });
        place as u8 + 1
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.queued.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    /// When the device was done with a request, in ticks.
    pub fn completed(&self, at: usize) -> u64 {
        self.ended(at) - self.untold[at]
    }

    /// When a request was over, in ticks.
    pub fn ended(&self, at: usize) -> u64 {
        self.queued[at] + self.parts[self.starts[at]..self.starts[at + 1]].iter().sum::<u64>()
    }

    /// The parts of a request's time.
    pub fn spans(&self, at: usize) -> impl Iterator<Item = Span> {
        let mut from = self.queued[at];
        let parts = &self.parts[self.starts[at]..self.starts[at + 1]];
        let kinds = &self.kinds[self.starts[at]..self.starts[at + 1]];
        parts.iter().zip(kinds).map(move |(length, kind)| {
            let span = (from, from + length, usize::from(*kind));
            from += length;
            span
        })
    }

    /// The number of its operation, without flags.
    pub fn operation(&self, at: usize) -> usize {
        usize::from(self.op[at] & (SYNC - 1))
    }

    pub(super) fn encode(&self, columns: &mut Columns) {
        let all = 0..self.len();
        columns.deltas("queued", self.queued.iter().copied());
        columns.numbers("inserted", self.inserted.iter().copied());
        // Mostly what is left without the device's own part, so that nothing is to be said.
        let surprise = |at: usize| signed(self.issued[at] as i64 - self.expected(at) as i64);
        columns.numbers("untold", self.untold.iter().copied());
        columns.numbers("issued", all.clone().map(surprise));
        columns.raw("op", self.op.iter().copied());
        columns.numbers("task", self.task.iter().map(|it| *it as u64));
        columns.numbers("queue", self.queue.iter().map(|it| *it as u64));
        columns.numbers("sector", self.jumps().into_iter());
        columns.numbers("sectors", self.sectors.iter().map(|it| u64::from(*it)));
        columns.numbers("merged", self.merged.iter().map(|it| u64::from(*it)));
        columns.raw("reason", self.reason.iter().copied());
        columns.raw("many", self.starts.windows(2).map(|it| (it[1] - it[0]) as u8));
        columns.raw("kinds", self.kinds.iter().copied());
        columns.numbers("parts", self.parts.iter().copied());
        for (name, rows) in ["task_row", "queue_row", "device_row"].into_iter().zip(&self.rows) {
            columns.raw(name, rows.iter().copied());
        }
    }

    /// When a request would have been issued if its last part, or the one before the end that is
    /// told, were the device's.
    fn expected(&self, at: usize) -> u64 {
        let parts = &self.parts[self.starts[at]..self.starts[at + 1]];
        let own = parts.iter().rev().nth(usize::from(self.untold[at] > 0)).unwrap_or(&0);
        let total = parts.iter().sum::<u64>() - self.untold[at];
        total.saturating_sub(*own)
    }

    /// How far each begins from the end of the one before of its task: zero if it goes on.
    fn jumps(&self) -> Vec<u64> {
        let mut ends: BTreeMap<usize, u64> = BTreeMap::new();
        let mut jump = |at: usize| {
            let (first, length) = (self.sector[at], u64::from(self.sectors[at]));
            let before = ends.insert(self.task[at], first + length).unwrap_or(0);
            signed(first as i64 - before as i64)
        };
        (0..self.len()).map(&mut jump).collect()
    }
}

/// The number of a request's operation.
pub(super) fn operation_of(life: &Life) -> usize {
    match life.op {
        _ if life.sectors.is_zero() => 3,
        Op::Read => 0,
        Op::Write => 1,
        Op::Discard => 2,
    }
}

/// The same with flags.
fn operation(life: &Life) -> u8 {
    let number = operation_of(life) as u8;
    let sync = if block::is_sync(life.op, life.flags) { SYNC } else { 0 };
    number | sync | if life.flags.intersects(Flags::FUA) { FUA } else { 0 }
}
