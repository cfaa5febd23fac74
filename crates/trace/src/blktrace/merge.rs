//! All files of a recording as one sequence of records.

use super::reader::{Reader, Torn};
use super::record::{Categories, Record};
use crate::error::{Error, Place};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::Read;
use std::path::{Path, PathBuf};

/// An iterator over the records of several per-CPU files, by time, then CPU, then sequence.
///
/// The order within a file is kept as it is. A single file that was merged before by
/// `blkparse -d` therefore passes unchanged, though its notes stand first with later times.
pub struct Merge<R> {
    readers: Vec<Reader<R>>,
    /// Of each reader the first record that was not returned yet, if it is not at hand.
    heads: Vec<Option<(u64, Record)>>,
    /// The order of heads, but for that of the reader whose turn it is.
    order: BinaryHeap<Reverse<Key>>,
    /// Whose head is the first.
    turn: Option<Key>,
    primed: bool,
    failed: bool,
    place: Option<(usize, u64)>,
    sequences: Sequences,
}

/// Time, CPU and sequence of a head, and its reader.
type Key = (u64, u32, u32, usize);

/// CPUs of the largest machines.
const MOST_CPUS: u32 = 8_192;

/// The event numbers of each device and CPU.
#[derive(Default)]
struct Sequences {
    places: BTreeMap<(u32, u32), usize>,
    seen: Vec<((u32, u32), Sequence)>,
    /// Where that of a reader's last record stands.
    last: Vec<usize>,
}

/// What was seen of the event numbers of one CPU.
#[derive(Clone, Copy)]
struct Sequence {
    first: u32,
    last: u32,
    seen: u64,
}

impl Sequence {
    fn missing(&self) -> u64 {
        (u64::from(self.last - self.first) + 1).saturating_sub(self.seen)
    }
}

impl Sequences {
    fn note(&mut self, reader: usize, record: &Record) {
        if record.categories.contains(Categories::NOTIFY) {
            return;
        }
        let number = record.sequence;
        let stream = (record.device.to_bits(), record.cpu);
        let last = self.last[reader];
        let place = match self.seen.get(last) {
            Some((known, _)) if *known == stream => last,
            _ => {
                let next = self.seen.len();
                let place = *self.places.entry(stream).or_insert(next);
                if place == next {
                    self.seen.push((stream, Sequence { first: number, last: number, seen: 0 }));
                }
                self.last[reader] = place;
                place
            }
        };
        let sequence = &mut self.seen[place].1;
        sequence.first = sequence.first.min(number);
        sequence.last = sequence.last.max(number);
        sequence.seen += 1;
    }
}

impl<R: Read> Merge<R> {
    /// The records of `readers`.
    pub fn new(readers: Vec<Reader<R>>) -> Self {
        let last = vec![0; readers.len()];
        Merge {
            heads: readers.iter().map(|_| None).collect(),
            readers,
            order: BinaryHeap::new(),
            turn: None,
            primed: false,
            failed: false,
            place: None,
            sequences: Sequences { last, ..Sequences::default() },
        }
    }

    /// An error at the record that was returned last.
    pub(crate) fn error(&self, cause: &str, accepted: &str) -> Error {
        let (reader, offset) = self.place.expect("a record was returned");
        Error::new(self.readers[reader].name(), Place::Byte(offset), cause, accepted)
    }

    /// How many events the recording lost, told from gaps in their numbers.
    pub fn lost(&self) -> u64 {
        self.sequences.seen.iter().map(|(_, sequence)| sequence.missing()).sum()
    }

    /// The same by CPU; those that lost none are left out.
    pub fn lost_by_cpu(&self) -> BTreeMap<u32, u64> {
        let mut lost = BTreeMap::new();
        for ((_, cpu), sequence) in &self.sequences.seen {
            *lost.entry(*cpu).or_insert(0) += sequence.missing();
        }
        lost.retain(|_, lost| *lost > 0);
        lost
    }

    /// The files that end in a cut-off record, with that record.
    pub fn torn(&self) -> impl Iterator<Item = (&str, Torn)> {
        self.readers.iter().filter_map(|reader| Some((reader.name(), reader.torn()?)))
    }

    /// How many payloads the kernel cut.
    pub fn cut_payloads(&self) -> u64 {
        self.readers.iter().map(Reader::cut_payloads).sum()
    }

    /// The order of the next record of a reader.
    #[inline]
    fn advance(&mut self, reader: usize) -> Result<Option<Key>, Error> {
        // Most are decoded when it is their turn, and so need not be kept.
        if let Some((time, cpu, sequence)) = self.readers[reader].key_at_hand() {
            return Ok(Some((time, cpu, sequence, reader)));
        }
        self.read_ahead(reader)
    }

    #[inline(never)]
    fn read_ahead(&mut self, reader: usize) -> Result<Option<Key>, Error> {
        let Some(record) = self.readers[reader].next().transpose()? else { return Ok(None) };
        let note = record.categories.contains(Categories::NOTIFY);
        // Notes have no number; some kernels leave whatever was in the buffer there.
        let sequence = if note { 0 } else { record.sequence };
        let key = (record.time.as_nanos(), record.cpu, sequence, reader);
        self.heads[reader] = Some((self.readers[reader].record_start(), record));
        Ok(Some(key))
    }

    fn prime(&mut self) -> Result<(), Error> {
        self.primed = true;
        for reader in 0..self.readers.len() {
            let key = self.advance(reader)?;
            self.order.extend(key.map(Reverse));
        }
        self.turn = self.order.pop().map(|key| key.0);
        Ok(())
    }

    #[inline]
    fn next_record(&mut self) -> Result<Option<Record>, Error> {
        if !self.primed {
            self.prime()?;
        }
        let Some((.., reader)) = self.turn else { return Ok(None) };
        let (offset, record) = match self.heads[reader].take() {
            Some(head) => head,
            None => {
                let from = &mut self.readers[reader];
                let record = from.record_at_hand().expect("whose turn it is has a record");
                (from.record_start(), record)
            }
        };
        self.turn = match self.advance(reader)? {
            // Mostly a CPU goes on for a while.
            Some(key) if self.order.peek().is_none_or(|other| key < other.0) => Some(key),
            key => {
                self.order.extend(key.map(Reverse));
                self.order.pop().map(|key| key.0)
            }
        };
        self.place = Some((reader, offset));
        self.sequences.note(reader, &record);
        Ok(Some(record))
    }
}

impl<R: Read> Iterator for Merge<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Result<Record, Error>> {
        if self.failed {
            return None;
        }
        let result = self.next_record();
        self.failed = result.is_err();
        result.transpose()
    }
}

/// CPUs below the highest one of a recording that have no file of it; none where `base` is a file.
pub fn cpus_without_file(base: &Path) -> Vec<u32> {
    if base.is_file() {
        return Vec::new();
    }
    let number = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.rsplit_once(".blktrace.")?.1.to_string();
        name.trim_end_matches(".gz").parse().ok()
    };
    let present: Vec<u32> = recording_files(base).into_iter().filter_map(number).collect();
    let highest = present.iter().max().copied().unwrap_or(0);
    // No machine has more, whatever a file may be called.
    (0..highest.min(MOST_CPUS)).filter(|cpu| !present.contains(cpu)).collect()
}

/// The files of the recording called `base`: `base.blktrace.0`, `.1` and so on, compressed
/// (`.gz`) or not, by CPU. Empty when there are none or the directory cannot be read.
pub fn recording_files(base: &Path) -> Vec<PathBuf> {
    let directory = match base.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let Some(name) = base.file_name().and_then(|name| name.to_str()) else { return vec![] };
    let prefix = format!("{name}.blktrace.");
    let mut found: BTreeMap<(u32, bool), PathBuf> = BTreeMap::new();
    for entry in directory.read_dir().into_iter().flatten().flatten() {
        let file_name = entry.file_name();
        let Some(rest) = file_name.to_str().and_then(|file| file.strip_prefix(&prefix)) else {
            continue;
        };
        let compressed = rest.strip_suffix(".gz");
        if let Ok(cpu) = compressed.unwrap_or(rest).parse() {
            found.insert((cpu, compressed.is_some()), base.with_file_name(&file_name));
        }
    }
    // Of a file and its compressed copy, the former.
    let mut files: Vec<((u32, bool), PathBuf)> = found.into_iter().collect();
    files.dedup_by_key(|file| file.0.0);
    files.into_iter().map(|file| file.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blktrace::{Action, Layout};
    use base::Instant;

    fn event(time: u64, cpu: u32, sequence: u32) -> Record {
        Record { cpu, sequence, ..Record::event(Action::Queue, Instant::from_nanos(time)) }
    }

    fn merge(files: &[Vec<Record>]) -> Merge<std::io::Cursor<Vec<u8>>> {
        let readers = files.iter().map(|records| {
            let mut bytes = Vec::new();
            records.iter().for_each(|record| Layout::V7_LITTLE.encode(record, &mut bytes));
            Reader::new(std::io::Cursor::new(bytes), "x")
        });
        Merge::new(readers.collect())
    }

    #[test]
    fn records_come_by_time_then_cpu_then_sequence() {
        let zero = vec![event(10, 0, 1), event(30, 0, 2), event(30, 0, 3)];
        let one = vec![event(5, 1, 1), event(30, 1, 2), event(40, 1, 3)];
        let mut merged = merge(&[one, zero]);
        let order: Vec<_> = merged
            .by_ref()
            .map(Result::unwrap)
            .map(|record| (record.time.as_nanos(), record.cpu, record.sequence))
            .collect();
        let expected = [(5, 1, 1), (10, 0, 1), (30, 0, 2), (30, 0, 3), (30, 1, 2), (40, 1, 3)];
        assert_eq!(order, expected);
        assert_eq!(merged.lost(), 0);
    }

    #[test]
    fn gaps_in_the_numbers_of_a_cpu_are_lost_events() {
        let note = Record::message(Instant::from_nanos(12), "notes have no number");
        let note = Record { sequence: 1_952_805_408, ..note };
        let zero = vec![event(10, 0, 7), note, event(30, 0, 10)];
        let one = vec![event(5, 1, 1), event(6, 1, 2)];
        let mut merged = merge(&[zero, one]);
        assert_eq!(merged.by_ref().count(), 5);
        assert_eq!(merged.lost(), 2);
    }
}
