//! Arrivals from the records of a blktrace recording, binary or as `blkparse` printed it.
//!
//! An arrival is a Q event of a device; on a device of which there is none, an I event; where
//! there is none either, a D event (formats trap 6: recordings of D and C alone exist). The
//! completions that cover it give its service time.

use crate::arrival::{ACCEPTED_SPAN, Arrival, Draft, Flags, Op, Span};
use crate::blkparse;
use crate::blktrace::{Action, Categories, Merge, Record, Torn};
use crate::error::Error;
use base::Sector;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

/// What is taken for an arrival; the later the better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Issue,
    Insert,
    Queue,
}

/// The arrivals of one device.
struct Stream {
    level: Level,
    arrivals: Vec<(Arrival, Span)>,
    open: Open,
    /// Extents that were taken back from the driver and will be inserted or issued again.
    requeued: BTreeSet<(u64, u32)>,
}

/// Arrivals that wait for completions, by first sector and number.
#[derive(Default)]
struct Open {
    waiting: BTreeMap<(u64, usize), Waiting>,
    /// The longest that was ever open, in sectors: how far before a completion one may begin.
    longest: u64,
}

struct Waiting {
    end: u64,
    /// Sectors that no completion has covered yet.
    missing: u64,
}

/// Where records come from.
pub enum Records<R> {
    /// From the files of a recording.
    Binary(Merge<R>),
    /// From text.
    Text(blkparse::Reader<R>),
}

/// Reads all records.
pub(crate) fn read<R: Read>(mut records: Records<R>, draft: &mut Draft) -> Result<(), Error> {
    let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
    while let Some(record) = records.next().transpose()? {
        let level = match record.action {
            Action::Queue => Some(Level::Queue),
            Action::Insert => Some(Level::Insert),
            Action::Issue => Some(Level::Issue),
            _ => None,
        };
        if let Some(level) = level {
            let Some(op) = classify(&record, level, draft) else { continue };
            let span = span(&record, op)
                .ok_or_else(|| records.error("the extent of the record", ACCEPTED_SPAN))?;
            let stream = streams.entry(record.device.to_bits()).or_insert_with(|| Stream {
                level,
                arrivals: vec![],
                open: Open::default(),
                requeued: BTreeSet::new(),
            });
            stream.arrive(level, &record, op, span);
        } else if let Some(stream) = streams.get_mut(&record.device.to_bits()) {
            match record.action {
                Action::Requeue => {
                    stream.requeued.insert((record.sector.0, record.bytes));
                }
                Action::Complete if record.op().is_some() => stream.complete(&record),
                _ => {}
            }
        }
    }
    records.report(draft);
    finish(streams, draft);
    Ok(())
}

impl<R: Read> Iterator for Records<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Result<Record, Error>> {
        match self {
            Records::Binary(records) => records.next(),
            Records::Text(records) => records.next(),
        }
    }
}

impl<R: Read> Records<R> {
    /// The next record, lent until the one after it is asked for.
    #[inline]
    pub fn lend(&mut self) -> Result<Option<&Record>, Error> {
        match self {
            Records::Binary(records) => records.lend(),
            Records::Text(records) => records.lend(),
        }
    }

    /// Shows all records that are left. Those of files are read on a second core, if there is one.
    pub fn show_all(&mut self, mut see: impl FnMut(&Record)) -> Result<(), Error>
    where
        R: Send,
    {
        match self {
            Records::Binary(records) => return records.show_all(see),
            Records::Text(records) => {
                while let Some(record) = records.lend()? {
                    see(record);
                }
            }
        }
        Ok(())
    }

    /// What is missing from the files, in words.
    pub fn losses(&self) -> Vec<String> {
        let Records::Binary(records) = self else { return Vec::new() };
        let torn = records.torn();
        let ends = |(name, torn): (&str, Torn)| {
            format!("{name} ends within a record at byte {}", torn.offset)
        };
        let mut losses: Vec<String> = torn.map(ends).collect();
        if records.lost() > 0 {
            losses.push(format!("{} events were lost when it was recorded", records.lost()));
        }
        losses
    }

    /// An error at the record that was returned last.
    fn error(&self, cause: &str, accepted: &str) -> Error {
        match self {
            Records::Binary(records) => records.error(cause, accepted),
            Records::Text(records) => records.error(cause, accepted),
        }
    }

    /// Says what is missing from the files.
    fn report(&self, draft: &mut Draft) {
        let Records::Binary(records) = self else { return };
        for (name, torn) in records.torn() {
            draft.remarks.push(format!(
                "{name}: the last record, at byte {}, is cut off after {} bytes",
                torn.offset, torn.present
            ));
        }
        if records.cut_payloads() > 0 {
            draft.remarks.push(format!(
                "the kernel's binary output left out the last 16 bytes of {} payloads",
                records.cut_payloads()
            ));
        }
        if records.lost() > 0 {
            draft.remarks.push(format!("the recording lost {} events", records.lost()));
        }
    }
}

fn finish(streams: BTreeMap<u32, Stream>, draft: &mut Draft) {
    for (device, stream) in streams {
        let name = crate::blktrace::DevT::from_bits(device).to_string();
        let instead = match stream.level {
            Level::Queue => None,
            Level::Insert => Some("no Q events: arrivals are I events, of merged requests"),
            Level::Issue => {
                Some("no Q or I events: arrivals are D events, as the scheduler left them")
            }
        };
        draft.remarks.extend(instead.map(|instead| format!("device {name} has {instead}")));
        draft.devices.insert(device, name);
        for (arrival, span) in stream.arrivals {
            draft.push(arrival, span);
        }
    }
    // Streams of devices are each in order and were gathered one after the other.
    draft.arrivals.sort_by_key(|arrival| arrival.at);
}

/// What a record that may be an arrival asks for; `None`, counted, for what cannot be replayed.
fn classify(record: &Record, level: Level, draft: &mut Draft) -> Option<Op> {
    let set = |category| record.categories.intersects(category);
    if set(Categories::ZONE_APPEND | Categories::ZONE_MANAGEMENT) {
        draft.tally("operations on zones were skipped");
        return None;
    }
    let op = record.op();
    if op.is_none() && level == Level::Queue {
        draft.tally("Q events without data, as passthrough commands, were skipped");
    }
    if op.is_some() && set(Categories::WRITE_ZEROES) {
        draft.tally("events of writes of zeroes were taken for writes, as version 7 has them");
    }
    op
}

fn span(record: &Record, op: Op) -> Option<Span> {
    match op {
        Op::Flush => Some(Span::FLUSH),
        _ => Span::mixed(record.sector.0, u64::from(record.bytes)),
    }
}

impl Stream {
    fn arrive(&mut self, level: Level, record: &Record, op: Op, span: Span) {
        if level < self.level {
            return;
        }
        if level > self.level {
            self.level = level;
            self.arrivals.clear();
            self.open = Open::default();
            self.requeued.clear();
        }
        if self.requeued.remove(&(record.sector.0, record.bytes)) && level != Level::Queue {
            return;
        }
        let set = |category| record.categories.intersects(category);
        let flags = Flags {
            sync: set(Categories::SYNC),
            preflush: op != Op::Flush && set(Categories::FLUSH),
            fua: set(Categories::FUA),
            metadata: set(Categories::META),
            readahead: set(Categories::AHEAD),
        };
        let at = record.time.as_nanos();
        let device = record.device.to_bits();
        let arrival =
            Arrival { flags, pid: Some(record.pid), ..Arrival::new(at, op, device, span) };
        self.open.insert(&arrival, self.arrivals.len());
        self.arrivals.push((arrival, span));
    }

    fn complete(&mut self, record: &Record) {
        let end = record.sector.0.saturating_add(u64::from(record.bytes) / Sector::SIZE);
        for number in self.open.complete(record.sector.0, end) {
            let arrival = &mut self.arrivals[number].0;
            arrival.service = Some(record.time.saturating_since(arrival.at));
        }
    }
}

impl Open {
    fn insert(&mut self, arrival: &Arrival, number: usize) {
        let (start, missing) = (arrival.sector.0, u64::from(arrival.sectors().0));
        if missing > 0 {
            self.waiting.insert((start, number), Waiting { end: start + missing, missing });
            self.longest = self.longest.max(missing);
        }
    }

    /// Sectors `start..end` are complete; returns the arrivals that thereby are.
    fn complete(&mut self, start: u64, end: u64) -> Vec<usize> {
        let first = start.saturating_sub(self.longest);
        let mut done = vec![];
        for (key, waiting) in self.waiting.range_mut((first, 0)..(end.max(first), 0)) {
            let covered = waiting.end.min(end).saturating_sub(start.max(key.0));
            waiting.missing = waiting.missing.saturating_sub(covered);
            if waiting.missing == 0 {
                done.push(*key);
            }
        }
        for key in &done {
            self.waiting.remove(key);
        }
        done.into_iter().map(|(_, number)| number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_is_done_when_all_of_it_is() {
        let mut open = Open::default();
        let span = Span::sectors(100, 64).unwrap();
        open.insert(&Arrival::new(0, Op::Read, 0, span), 7);
        assert_eq!(open.complete(0, 100), Vec::<usize>::new());
        assert_eq!(open.complete(90, 132), Vec::<usize>::new());
        assert_eq!(open.complete(132, 300), [7]);
        assert_eq!(open.complete(0, 300), Vec::<usize>::new());
    }
}
