//! The columns of a system call.

use crate::columns::{Cell, Column, number, text};
use base::Duration;
use block::{ContextId, HoldReason, Syscall};
use insight::{Call, Layer, Segment};
use std::collections::BTreeMap;

macro_rules! layer {
    ($layer:expr) => {
        number($layer.name(), |call| Cell::Number(time_in(call, $layer)))
    };
}

macro_rules! held {
    ($reason:ident) => {
        layer!(Layer::Held(HoldReason::$reason))
    };
}

/// All columns; those of the layers add up to the time from `entered` to `ended`.
pub(crate) const COLUMNS: &[Column<Call>] = &[
    number("task", |call| Cell::Number(call.task.0.into())),
    text("call", |call| Cell::Text(name(call.call).to_owned())),
    number("number", |call| Cell::Number(call.token)),
    number("entered", |call| Cell::Number(call.entered.as_nanos())),
    number("ended", |call| Cell::Number(call.ended.as_nanos())),
    number("unfinished", |call| Cell::Number(call.is_unfinished.into())),
    layer!(Layer::Computing),
    layer!(Layer::Core),
    layer!(Layer::Pause),
    layer!(Layer::Task),
    layer!(Layer::Page),
    layer!(Layer::DirtyLimit),
    layer!(Layer::Lock),
    layer!(Layer::Journal),
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
    layer!(Layer::Shared),
    layer!(Layer::Device),
    layer!(Layer::Flush),
    layer!(Layer::Interrupt),
    text("behind", behind),
];

fn time_in(call: &Call, layer: Layer) -> u64 {
    let its = call.path.iter().filter(|it| it.layer == layer);
    its.map(|it| it.length().as_nanos()).sum()
}

const fn name(call: Syscall) -> &'static str {
    match call {
        Syscall::Read => "read",
        Syscall::Write => "write",
        Syscall::Sync => "sync",
        Syscall::AsyncRead => "async_read",
        Syscall::AsyncWrite => "async_write",
        Syscall::Discard => "discard",
    }
}

/// Tasks that were waited for or went first, and nanoseconds: `15:2212424 13:2041134`.
fn behind(call: &Call) -> Cell {
    let mut times: BTreeMap<ContextId, Duration> = BTreeMap::new();
    let behind = |it: &Segment| Some((it.behind?, it.length()));
    for (who, time) in call.path.iter().filter_map(behind) {
        *times.entry(who).or_insert(Duration::ZERO) += time;
    }
    let one = |(task, time): (&ContextId, &Duration)| format!("{}:{}", task.0, time.as_nanos());
    match times.is_empty() {
        true => Cell::Nothing,
        false => Cell::Text(times.iter().map(one).collect::<Vec<_>>().join(" ")),
    }
}
