//! System calls in columns, in the order in which they were entered, and critical paths that are
//! shown by themselves.

use super::columns::Columns;
use super::lanes::Lanes;
use super::rows;
use crate::calls::Call;
use crate::layer::Layer;
use base::Instant;
use block::{ContextId, Syscall};

/// Calls, by number.
pub const CALLS: [&str; 6] = ["read", "write", "sync", "async read", "async write", "discard"];
/// So many rows of a lane are for calls at most.
const MOST_ROWS: u8 = 4;

/// A system call, without its critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallBar {
    /// Who made it.
    pub task: ContextId,
    /// Which.
    pub call: Syscall,
    /// When it was entered.
    pub from: Instant,
    /// When it ended, or the run did.
    pub to: Instant,
}

impl CallBar {
    /// That of a call.
    pub fn of(call: &Call) -> CallBar {
        CallBar { task: call.task, call: call.call, from: call.entered, to: call.ended }
    }
}

/// System calls; each column has a value for each.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// When it was entered, in ticks.
    pub from: Vec<u64>,
    /// How long it took, in ticks.
    pub length: Vec<u64>,
    /// Which: a place in [`CALLS`].
    pub what: Vec<u8>,
    /// The lane of its task.
    pub task: Vec<usize>,
    /// Its row among the calls of the lane.
    pub rows: Vec<u8>,
}

impl Calls {
    /// The columns of calls that are in order; lanes get rows for them.
    pub(super) fn of(bars: &[CallBar], lanes: &mut Lanes, tick: u64) -> Calls {
        let mut all = Calls::default();
        for it in bars {
            let from = it.from.as_nanos() / tick;
            all.from.push(from);
            all.length.push((it.to.as_nanos() / tick).saturating_sub(from));
            all.what.push(number_of(it.call));
            all.task.push(lanes.of_task(it.task));
        }
        let spans: Vec<(u64, u64)> =
            all.from.iter().zip(&all.length).map(|(from, length)| (*from, from + length)).collect();
        let (packed, rows) = rows::pack(&spans, &all.task, lanes.lanes.len());
        all.rows = packed.into_iter().map(|row| row % MOST_ROWS).collect();
        for (lane, rows) in lanes.lanes.iter_mut().zip(rows) {
            lane.calls = rows.min(MOST_ROWS);
        }
        all
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.from.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.from.is_empty()
    }

    pub(super) fn encode(&self, columns: &mut Columns) {
        columns.deltas("call_from", self.from.iter().copied());
        columns.numbers("call_length", self.length.iter().copied());
        columns.raw("call_what", self.what.iter().copied());
        columns.numbers("call_task", self.task.iter().map(|it| *it as u64));
        columns.raw("call_row", self.rows.iter().copied());
    }
}

/// The critical path of a call, as a chain of pieces in lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// When the call was entered, in ticks.
    pub from: u64,
    /// When it ended.
    pub to: u64,
    /// The lane of who made it.
    pub task: usize,
    /// Its pieces, the first one first.
    pub links: Vec<Link>,
}

/// A piece of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// From when, in ticks.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// The lane of whose time it is.
    pub lane: usize,
    /// Where.
    pub layer: Layer,
}

impl Chain {
    pub(super) fn of(call: &Call, lanes: &Lanes, tick: u64) -> Chain {
        let ticks = |at: Instant| at.as_nanos() / tick;
        let links = call.path.iter().map(|it| Link {
            from: ticks(it.from),
            to: ticks(it.to),
            lane: lanes.of_task(it.who),
            layer: it.layer,
        });
        Chain {
            from: ticks(call.entered),
            to: ticks(call.ended),
            task: lanes.of_task(call.task),
            links: links.collect(),
        }
    }
}

/// The place of a call in [`CALLS`].
fn number_of(call: Syscall) -> u8 {
    match call {
        Syscall::Read => 0,
        Syscall::Write => 1,
        Syscall::Sync => 2,
        Syscall::AsyncRead => 3,
        Syscall::AsyncWrite => 4,
        Syscall::Discard => 5,
    }
}
