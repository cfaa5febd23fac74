//! The columns of a row.

use base::Duration;
use block::{ContextId, HoldReason, Op};
use insight::{Layer, Life};

/// What stands in a row's column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    Number(u64),
    Text(String),
    Nothing,
}

/// What a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Number,
    Text,
}

/// A column: its name, what it has, and what stands there for a request or a call.
pub(crate) struct Column<T> {
    pub name: &'static str,
    pub kind: Kind,
    pub of: fn(&T) -> Cell,
}

pub(crate) const fn number<T>(name: &'static str, of: fn(&T) -> Cell) -> Column<T> {
    Column { name, kind: Kind::Number, of }
}

pub(crate) const fn text<T>(name: &'static str, of: fn(&T) -> Cell) -> Column<T> {
    Column { name, kind: Kind::Text, of }
}

macro_rules! layer {
    ($layer:expr) => {
        number($layer.name(), |life: &Life| Cell::Number(life.time_in($layer).as_nanos()))
    };
}

macro_rules! held {
    ($reason:ident) => {
        layer!(Layer::Held(HoldReason::$reason))
    };
}

/// All columns of a request; layers have the names that reports use.
pub(crate) const COLUMNS: &[Column<Life>] = &[
    number("task", |life| Cell::Number(life.context.0.into())),
    text("op", |life| Cell::Text(op(life).to_owned())),
    number("sync", |life| Cell::Number(block::is_sync(life.op, life.flags).into())),
    number("sector", |life| Cell::Number(life.sector.0)),
    number("sectors", |life| Cell::Number(life.sectors.0.into())),
    number("merged", |life| Cell::Number(life.merged.into())),
    number("queued", |life| Cell::Number(life.queued.as_nanos())),
    number("allocated", |life| Cell::Number(life.allocated.as_nanos())),
    number("inserted", |life| at(life.inserted)),
    number("issued", |life| Cell::Number(life.issued.as_nanos())),
    number("completed", |life| Cell::Number(life.completed.as_nanos())),
    number("told", |life| at(life.told)),
    text("reason", |life| {
        life.reason.map_or(Cell::Nothing, |reason| Cell::Text(reason.name().to_owned()))
    }),
    layer!(Layer::Limits),
    layer!(Layer::Throttle),
    layer!(Layer::Tag),
    layer!(Layer::Plug),
    held!(HigherClassInFlight),
    held!(ProcessIdles),
    held!(GroupIdles),
    held!(TurnNotDone),
    held!(GroupNotDone),
    held!(AsyncInFlight),
    held!(SyncInFlight),
    held!(Quantum),
    held!(AsyncDepth),
    held!(NobodyChosen),
    held!(BatchDrains),
    held!(NoToken),
    layer!(Layer::Withheld),
    layer!(Layer::Others),
    layer!(Layer::Full),
    layer!(Layer::Host),
    layer!(Layer::Requeued),
    layer!(Layer::Device),
    layer!(Layer::Interrupt),
    text("others", others),
    text("guess", |life| {
        life.guess.map_or(Cell::Nothing, |guess| Cell::Text(guess.name().to_owned()))
    }),
];

fn op(life: &Life) -> &'static str {
    match life.op {
        _ if life.sectors.is_zero() => "flush",
        Op::Read => "read",
        Op::Write => "write",
        Op::Discard => "discard",
    }
}

fn at(moment: Option<base::Instant>) -> Cell {
    moment.map_or(Cell::Nothing, |at| Cell::Number(at.as_nanos()))
}

/// Tasks and nanoseconds: `15:2212424 13:2041134`.
fn others(life: &Life) -> Cell {
    let one = |(task, time): &(ContextId, Duration)| format!("{}:{}", task.0, time.as_nanos());
    match life.others.is_empty() {
        true => Cell::Nothing,
        false => Cell::Text(life.others.iter().map(one).collect::<Vec<_>>().join(" ")),
    }
}
