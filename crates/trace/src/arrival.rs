//! What every recording is translated into: a list of arrivals.
//!
//! An arrival is one piece of I/O that somebody asked for, as far as the recording tells. The
//! types promise what a replay needs: times from the start of the trace, in order; whole sectors;
//! positions that can be added up without overflow; data for everything but a flush.

use crate::error::{Error, Place};
use crate::format::Format;
use crate::text::LATEST;
use base::{Bytes, Duration, Instant, Sector, Sectors};
use std::collections::BTreeMap;

/// What an arrival asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Read data.
    Read,
    /// Write data.
    Write,
    /// Make durable what was written before; no data, sector 0.
    Flush,
    /// Tell the device that a range is no longer needed.
    Discard,
}

/// How it is asked for; only blktrace records say so, all is false elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// Somebody waits for it.
    pub sync: bool,
    /// Flush the device's cache before writing.
    pub preflush: bool,
    /// Durable on completion.
    pub fua: bool,
    /// File-system metadata.
    pub metadata: bool,
    /// Read-ahead.
    pub readahead: bool,
}

/// One piece of I/O of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When, from the start of the trace.
    pub at: Instant,
    /// What.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector on its device.
    pub sector: Sector,
    /// Length: whole sectors, fewer than 2^32 of them, zero only for a flush.
    pub bytes: Bytes,
    /// To which device; a key of [`Trace::devices`].
    pub device: u32,
    /// By which task.
    pub pid: Option<u32>,
    /// From arrival to completion, as recorded.
    pub service: Option<Duration>,
    /// From the completion before to this arrival, where a recording states just that. Such a
    /// recording is of one request at a time, and a replay to another device should keep the
    /// pauses rather than the times.
    pub think: Option<Duration>,
}

/// A recording, translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// What it was read as.
    pub format: Format,
    /// What was asked for, in order of time; of equal times, in order of the file. Never empty.
    pub arrivals: Vec<Arrival>,
    /// The devices that occur in it, with the names that the format gives them.
    pub devices: BTreeMap<u32, String>,
    /// What a reader of results should know: what was skipped, rounded, torn or lost.
    pub remarks: Vec<String>,
}

impl Arrival {
    /// Something at `at` that carries no more than the columns that all formats have.
    pub(crate) fn new(at: u64, op: Op, device: u32, span: Span) -> Arrival {
        Arrival {
            at: Instant::from_nanos(at),
            op,
            flags: Flags::default(),
            sector: span.sector,
            bytes: span.bytes,
            device,
            pid: None,
            service: None,
            think: None,
        }
    }

    /// Its length in sectors.
    pub fn sectors(&self) -> Sectors {
        let sectors = u32::try_from(self.bytes.0 / Sector::SIZE);
        Sectors(sectors.expect("an arrival has fewer than 2^32 sectors"))
    }
}

/// A range of whole sectors that is known to fit a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    sector: Sector,
    bytes: Bytes,
    /// Whether sectors were added to make it whole.
    pub(crate) widened: bool,
}

/// The first sector that no disk has: behind it a position in bytes would not fit 64 bits.
const END_OF_ANY_DISK: u64 = 1 << 55;

/// What a reader says of a range that is refused.
pub(crate) const ACCEPTED_SPAN: &str = "fewer than 2^32 sectors that end before sector 2^55";

impl Span {
    /// No data, at sector 0.
    pub(crate) const FLUSH: Span = Span { sector: Sector(0), bytes: Bytes(0), widened: false };

    /// A range in sectors; `None` when no disk has it.
    pub(crate) fn sectors(first: u64, count: u64) -> Option<Span> {
        let end = first.checked_add(count)?;
        let fits = end <= END_OF_ANY_DISK && count <= u64::from(u32::MAX);
        let bytes = || Bytes(count * Sector::SIZE);
        fits.then(|| Span { sector: Sector(first), bytes: bytes(), widened: false })
    }

    /// A range in bytes, widened to whole sectors; `None` when no disk has it.
    pub(crate) fn bytes(offset: u64, length: u64) -> Option<Span> {
        let end = offset.checked_add(length)?;
        let first = offset / Sector::SIZE;
        let mut span = Span::sectors(first, end.div_ceil(Sector::SIZE) - first)?;
        span.widened = !offset.is_multiple_of(Sector::SIZE) || !length.is_multiple_of(Sector::SIZE);
        Some(span)
    }

    /// A range that starts at a sector and is stated in bytes, widened to whole sectors.
    pub(crate) fn mixed(first: u64, length: u64) -> Option<Span> {
        let mut span = Span::sectors(first, length.div_ceil(Sector::SIZE))?;
        span.widened = !length.is_multiple_of(Sector::SIZE);
        Some(span)
    }

    /// Whether there is no data in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.0 == 0
    }
}

/// A trace while it is being read.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) devices: BTreeMap<u32, String>,
    pub(crate) remarks: Vec<String>,
    tallies: BTreeMap<&'static str, u64>,
}

/// What the times of a draft count from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The start of the trace; they are kept.
    FromStart,
    /// Something else; the earliest becomes zero.
    Absolute,
}

impl Draft {
    /// Takes an arrival in, unless it asks for nothing; remembers what was done to it.
    pub(crate) fn push(&mut self, arrival: Arrival, span: Span) {
        if span.is_empty() && arrival.op != Op::Flush {
            self.tally("transfers of no data were skipped");
            return;
        }
        if span.widened {
            self.tally("arrivals were widened to whole sectors");
        }
        self.devices.entry(arrival.device).or_insert_with(|| arrival.device.to_string());
        self.arrivals.push(arrival);
    }

    /// Counts one more of `what`, a sentence that continues a number.
    pub(crate) fn tally(&mut self, what: &'static str) {
        *self.tallies.entry(what).or_default() += 1;
    }

    /// Puts arrivals in order and times in place.
    pub(crate) fn finish(
        mut self,
        name: &str,
        format: Format,
        clock: Clock,
    ) -> Result<Trace, Error> {
        let refuse = |cause: &str, accepted: &str| {
            Err(Error::new(name, Place::Whole, cause, accepted.to_owned()))
        };
        let disorder = self.arrivals.windows(2).filter(|pair| pair[1].at < pair[0].at).count();
        if disorder > 0 {
            self.arrivals.sort_by_key(|arrival| arrival.at);
            let remark = format!("{disorder} arrivals were earlier than the one before: sorted");
            self.remarks.push(remark);
        }
        self.remarks.extend(self.tallies.iter().map(|(what, count)| format!("{count} {what}")));
        let (Some(first), Some(last)) = (self.arrivals.first(), self.arrivals.last()) else {
            let cause = format!("nothing to replay in it (read as {format})");
            let why = if self.remarks.is_empty() { String::new() } else { self.remarks.join(", ") };
            let cause = if why.is_empty() { cause } else { format!("{cause}: {why}") };
            return refuse(&cause, "at least one read, write, flush or discard");
        };
        let start = if clock == Clock::Absolute { first.at } else { Instant::ZERO };
        if last.at.since(start).as_nanos() > LATEST {
            return refuse("its times span more than 146 years", "a shorter recording");
        }
        for arrival in &mut self.arrivals {
            arrival.at = Instant::ZERO + arrival.at.since(start);
        }
        Ok(Trace { format, arrivals: self.arrivals, devices: self.devices, remarks: self.remarks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_at(at: u64) -> (Arrival, Span) {
        let span = Span::sectors(8, 8).unwrap();
        (Arrival::new(at, Op::Read, 0, span), span)
    }

    #[test]
    fn a_range_in_bytes_is_widened_to_whole_sectors() {
        let span = Span::bytes(700, 400).unwrap();
        assert_eq!((span.sector, span.bytes, span.widened), (Sector(1), Bytes(1024), true));
        assert_eq!(Span::bytes(1024, 512).unwrap(), Span::sectors(2, 1).unwrap());
        assert_eq!(Span::mixed(3, 513).unwrap().bytes, Bytes(1024));
    }

    #[test]
    fn a_range_that_no_disk_has_is_refused() {
        assert_eq!(Span::sectors(u64::MAX, 8), None);
        assert_eq!(Span::sectors((1 << 55) - 7, 8), None);
        assert!(Span::sectors((1 << 55) - 8, 8).is_some());
        assert_eq!(Span::sectors(0, 1 << 32), None);
        assert_eq!(Span::bytes(u64::MAX, 1), None);
        assert_eq!(Span::mixed(0, u64::MAX), None);
    }

    #[test]
    fn arrivals_out_of_order_are_sorted_and_the_trace_says_so() {
        let mut draft = Draft::default();
        for at in [5_000, 3_000, 4_000] {
            let (arrival, span) = read_at(at);
            draft.push(arrival, span);
        }
        let trace = draft.finish("x", Format::Msr, Clock::Absolute).unwrap();
        let times: Vec<_> = trace.arrivals.iter().map(|arrival| arrival.at.as_nanos()).collect();
        assert_eq!(times, [0, 1_000, 2_000]);
        assert_eq!(trace.remarks, ["1 arrivals were earlier than the one before: sorted"]);
    }

    #[test]
    fn a_trace_of_nothing_is_refused_with_what_was_skipped() {
        let mut draft = Draft::default();
        let span = Span::sectors(8, 0).unwrap();
        draft.push(Arrival::new(0, Op::Read, 0, span), span);
        let error = draft.finish("x.spc", Format::Spc, Clock::FromStart).unwrap_err();
        assert_eq!(
            error.to_string(),
            "x.spc: nothing to replay in it (read as spc): 1 transfers of no data were skipped; \
             accepted: at least one read, write, flush or discard"
        );
    }
}
