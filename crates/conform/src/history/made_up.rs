//! Histories of a few events, for tests: all of task 7, a microsecond apart, with no scheduler's
//! direct issues.

use super::{Era, History};
use base::{Duration, Instant, Sector, Sectors};
use block::Shape;
use lab::recording::{DiskCommand, Recording};
use trace::blktrace::{Action, Record};

/// What is known of the kernel.
pub const ERA: Era = Era {
    shape: Shape::Multi,
    joins_are_traced: true,
    merges_into_newest: true,
    scans_lists: false,
    issues_directly: false,
    issues_newest_first: false,
    heeds_runs: false,
    largest: Sectors(u32::MAX),
    usual: Sectors(u32::MAX),
};

/// An event at a sector, of so many.
pub fn event(action: Action, sector: u64, sectors: u32) -> Record {
    let (sector, bytes) = (Sector(sector), sectors * 512);
    Record { sector, bytes, pid: 7, ..Record::event(action, Instant::ZERO) }
}

/// What is read of events, which come one after the other.
pub fn history(events: impl IntoIterator<Item = Record>) -> History {
    history_of(ERA, Vec::new(), events)
}

/// The same of another kernel, and with what the disk did.
pub fn history_of(
    era: Era,
    disk: Vec<DiskCommand>,
    events: impl IntoIterator<Item = Record>,
) -> History {
    let at = |number| Instant::ZERO + Duration::from_micros(number as u64);
    let timed = |(number, event)| Record { time: at(number), ..event };
    let records = events.into_iter().enumerate().map(timed).collect();
    History::read(era, &Recording { records, disk, ..Recording::default() }, Instant::ZERO)
}
