//! The columns of a system call.

use crate::columns::{Cell, Column, layer, number, text};
use base::Duration;
use block::{ContextId, Syscall};
use insight::{Call, Layer, Segment};
use std::collections::BTreeMap;

/// All columns; those of the layers add up to the time from `entered` to `ended`.
pub(crate) fn columns() -> Vec<Column<Call>> {
    let mut columns = vec![
        number("task", |call: &Call| Cell::Number(call.task.0.into())),
        text("call", |call| Cell::Text(name(call.call).to_owned())),
        number("number", |call| Cell::Number(call.token)),
        number("entered", |call| Cell::Number(call.entered.as_nanos())),
        number("ended", |call| Cell::Number(call.ended.as_nanos())),
        number("unfinished", |call| Cell::Number(call.is_unfinished.into())),
    ];
    columns.extend(Layer::all().map(|it| layer(it, time_in)));
    columns.push(text("behind", behind));
    columns
}

fn time_in(call: &Call, layer: Layer) -> Duration {
    let its = call.path.iter().filter(|it| it.layer == layer);
    its.map(|it| it.length()).sum()
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
