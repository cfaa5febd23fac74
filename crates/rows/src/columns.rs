//! The columns of a row.

use base::Duration;
use block::ContextId;
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
    of: Of<T>,
}

/// Where a cell comes from.
enum Of<T> {
    Field(fn(&T) -> Cell),
    Layer(Layer, fn(&T, Layer) -> Duration),
}

impl<T> Column<T> {
    /// What stands there.
    pub fn of(&self, row: &T) -> Cell {
        match self.of {
            Of::Field(field) => field(row),
            Of::Layer(layer, time_in) => Cell::Number(time_in(row, layer).as_nanos()),
        }
    }
}

pub(crate) fn number<T>(name: &'static str, of: fn(&T) -> Cell) -> Column<T> {
    Column { name, kind: Kind::Number, of: Of::Field(of) }
}

pub(crate) fn text<T>(name: &'static str, of: fn(&T) -> Cell) -> Column<T> {
    Column { name, kind: Kind::Text, of: Of::Field(of) }
}

/// The time in a layer, which has the name that reports use.
pub(crate) fn layer<T>(layer: Layer, time_in: fn(&T, Layer) -> Duration) -> Column<T> {
    Column { name: layer.name(), kind: Kind::Number, of: Of::Layer(layer, time_in) }
}

/// All columns of a request.
pub(crate) fn columns() -> Vec<Column<Life>> {
    let mut columns = vec![
        number("task", |life: &Life| Cell::Number(life.context.0.into())),
        text("op", |life| Cell::Text(life.kind().to_owned())),
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
    ];
    let layers = Layer::all().filter(|it| it.is_of_requests());
    columns.extend(layers.map(|it| layer(it, Life::time_in)));
    columns.push(text("others", others));
    columns.push(text("guess", |life| {
        life.guess.map_or(Cell::Nothing, |guess| Cell::Text(guess.name().to_owned()))
    }));
    columns
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
