//! All files of a recording as one sequence of records.

use super::layout::order_of;
use super::reader::{Reader, Torn};
use super::record::{Action, Categories, Record};
use crate::error::{Error, Place};
use base::Instant;
use std::collections::BTreeMap;
use std::io::Read;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// An iterator over the records of several per-CPU files, by time, then CPU, then sequence.
///
/// The order within a file is kept as it is. A single file that was merged before by
/// `blkparse -d` therefore passes unchanged, though its notes stand first with later times.
pub struct Merge<R> {
    readers: Vec<Reader<R>>,
    /// Of each reader the first record that was not returned yet, if it is not at hand.
    heads: Vec<Option<(u64, Record)>>,
    /// The first head.
    turn: Option<Head>,
    /// The others; the first of them is the last here.
    waiting: Vec<Head>,
    /// The last event and the last note, and which of them was returned last. So the memory of
    /// messages is used again.
    records: [Record; 2],
    returned: usize,
    primed: bool,
    failed: bool,
    place: Option<(usize, u64)>,
    sequences: Sequences,
}

/// The next record of a reader.
#[derive(Clone, Copy)]
struct Head {
    /// Time, CPU and sequence.
    order: u128,
    reader: u32,
    /// Its bytes, if it is at hand.
    length: Option<NonZeroU32>,
}

impl Head {
    /// That of a record that is at hand, or has no length here. Neither files nor the bytes of a
    /// record are so many that they would not fit.
    #[inline(always)]
    fn new(order: u128, reader: usize, length: usize) -> Head {
        Head { order, reader: reader as u32, length: NonZeroU32::new(length as u32) }
    }

    #[inline]
    fn is_before(&self, other: &Head) -> bool {
        self.order < other.order || self.order == other.order && self.reader < other.reader
    }
}

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
    #[inline(always)]
    fn note(&mut self, reader: usize, record: &Record) {
        if record.categories.contains(Categories::NOTIFY) {
            return;
        }
        let stream = (record.device.to_bits(), record.cpu);
        match self.seen.get_mut(self.last[reader]) {
            // So it mostly is.
            Some((known, sequence))
                if *known == stream && sequence.last.checked_add(1) == Some(record.sequence) =>
            {
                sequence.last = record.sequence;
                sequence.seen += 1;
            }
            _ => self.note_other(reader, stream, record.sequence),
        }
    }

    /// What does not follow what this reader had last.
    #[inline(never)]
    fn note_other(&mut self, reader: usize, stream: (u32, u32), number: u32) {
        let next = self.seen.len();
        let place = *self.places.entry(stream).or_insert(next);
        if place == next {
            self.seen.push((stream, Sequence { first: number, last: number, seen: 0 }));
        }
        self.last[reader] = place;
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
            turn: None,
            waiting: Vec::new(),
            records: [const { Record::event(Action::Queue, Instant::ZERO) }; 2],
            returned: 0,
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

    /// The next record of a reader.
    #[inline(always)]
    fn advance(&mut self, reader: usize) -> Result<Option<Head>, Error> {
        // Most are decoded when it is their turn, and so need not be kept.
        match self.readers[reader].head_at_hand() {
            Some((length, order)) => Ok(Some(Head::new(order, reader, length))),
            None => self.read_ahead(reader),
        }
    }

    #[inline(never)]
    fn read_ahead(&mut self, reader: usize) -> Result<Option<Head>, Error> {
        let Some(record) = self.readers[reader].next().transpose()? else { return Ok(None) };
        let note = record.categories.contains(Categories::NOTIFY);
        // Notes have no number; some kernels leave whatever was in the buffer there.
        let sequence = if note { 0 } else { record.sequence };
        let order = order_of(record.time.as_nanos(), record.cpu, sequence);
        self.heads[reader] = Some((self.readers[reader].record_start(), record));
        Ok(Some(Head::new(order, reader, 0)))
    }

    fn prime(&mut self) -> Result<(), Error> {
        self.primed = true;
        for reader in 0..self.readers.len() {
            if let Some(head) = self.advance(reader)? {
                self.waiting.push(head);
                self.sort_in(head, self.waiting.len() - 1);
            }
        }
        self.turn = self.waiting.pop();
        Ok(())
    }

    /// Puts a head where it belongs; it takes the place of another one behind all that are later.
    #[inline]
    fn sort_in(&mut self, head: Head, free: usize) {
        let place = self.waiting[..free].partition_point(|other| head.is_before(other));
        self.waiting.copy_within(place..free, place + 1);
        self.waiting[place] = head;
    }

    /// The first of those that wait and another one, which waits now if it is not the first.
    #[inline]
    fn first_with(&mut self, next: Head) -> Head {
        match self.waiting.last().copied() {
            Some(first) if first.is_before(&next) => {
                self.sort_in(next, self.waiting.len() - 1);
                first
            }
            // Mostly a CPU goes on for a while.
            _ => next,
        }
    }

    /// Takes the first head; where it begins.
    #[inline]
    fn take(&mut self, head: Head) -> u64 {
        let reader = head.reader as usize;
        let from = &mut self.readers[reader];
        if let Some(length) = head.length {
            self.returned = from.take_at_hand(length.get() as usize, &mut self.records);
            return from.record_start();
        }
        let (offset, record) = self.heads[reader].take().expect("it was read ahead");
        self.returned = usize::from(record.categories.contains(Categories::NOTIFY));
        self.records[self.returned] = record;
        offset
    }

    /// Goes on to the next record; false at the end.
    #[inline]
    fn step(&mut self) -> Result<bool, Error> {
        if !self.primed {
            self.prime()?;
        }
        let Some(head) = self.turn else { return Ok(false) };
        let (reader, offset) = (head.reader as usize, self.take(head));
        self.turn = match self.advance(reader)? {
            Some(next) => Some(self.first_with(next)),
            None => self.waiting.pop(),
        };
        self.place = Some((reader, offset));
        self.sequences.note(reader, &self.records[self.returned]);
        Ok(true)
    }

    /// Shows the next records, as many as that; false at the end. That is faster than to ask for
    /// each.
    #[inline]
    pub fn show(&mut self, most: usize, mut see: impl FnMut(&Record)) -> Result<bool, Error> {
        let mut left = most;
        while left > 0 {
            let before = left;
            left = self.show_at_hand(left, &mut see);
            if left == before {
                let Some(record) = self.lend()? else { return Ok(false) };
                see(record);
                left -= 1;
            }
        }
        Ok(true)
    }

    /// Shows records of one file while the one behind each is at hand, too; how many are left to be
    /// shown.
    #[inline(always)]
    fn show_at_hand(&mut self, mut left: usize, see: &mut impl FnMut(&Record)) -> usize {
        let Some(Head { reader, length: Some(length), .. }) = self.turn else { return left };
        let (reader, mut length) = (reader as usize, length.get() as usize);
        let from = &mut self.readers[reader];
        let mut head = None;
        while left > 0
            && let Some((next, order)) = from.head_behind(length)
        {
            self.returned = from.take_at_hand(length, &mut self.records);
            let record = &self.records[self.returned];
            self.sequences.note(reader, record);
            see(record);
            (left, length) = (left - 1, next);
            let next = Head::new(order, reader, next);
            head = Some(next);
            if self.waiting.last().is_some_and(|first| first.is_before(&next)) {
                break;
            }
        }
        if let Some(next) = head {
            self.place = Some((reader, from.record_start()));
            self.turn = Some(self.first_with(next));
        }
        left
    }

    /// The next record, lent until the one after it is asked for: who need not keep it is faster
    /// than with the iterator.
    #[inline]
    pub fn lend(&mut self) -> Result<Option<&Record>, Error> {
        if self.failed {
            return Ok(None);
        }
        match self.step() {
            Ok(true) => Ok(Some(&self.records[self.returned])),
            Ok(false) => Ok(None),
            Err(error) => {
                self.failed = true;
                Err(error)
            }
        }
    }
}

impl<R: Read> Iterator for Merge<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Result<Record, Error>> {
        self.lend().map(|record| record.cloned()).transpose()
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
    use crate::blktrace::Layout;

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
    fn what_is_lent_is_what_the_iterator_returns() {
        let note = |time, text| Record::message(Instant::from_nanos(time), text);
        let unplug = |time| {
            let payload = crate::blktrace::Payload::Unplug(3);
            Record { payload, action: Action::Unplug, ..event(time, 1, 2) }
        };
        let zero = vec![event(10, 0, 1), note(20, "a long message"), note(30, "short")];
        let one = vec![event(5, 1, 1), unplug(15), event(25, 1, 3), note(35, "")];
        let files = [zero, one];
        let all: Vec<Record> = merge(&files).map(Result::unwrap).collect();
        let mut lending = merge(&files);
        for record in &all {
            assert_eq!(lending.lend().unwrap(), Some(record));
        }
        assert_eq!((all.len(), lending.lend().unwrap()), (7, None));
        for most in 1..=8 {
            let (mut showing, mut shown) = (merge(&files), Vec::new());
            while showing.show(most, |record| shown.push(record.clone())).unwrap() {}
            assert_eq!(shown, all);
        }
    }

    #[test]
    fn what_is_before_an_error_is_shown_as_it_is_lent() {
        let mut damaged = Vec::new();
        let all = [event(10, 0, 1), event(20, 0, 2), event(30, 0, 3)];
        all.iter().for_each(|record| Layout::V7_LITTLE.encode(record, &mut damaged));
        damaged[2 * 48] ^= 1;
        let merge = || Merge::new(vec![Reader::new(&damaged[..], "x")]);
        let lent = merge().map_while(Result::ok).count();
        let (mut showing, mut shown) = (merge(), 0);
        let error = showing.show(5, |_| shown += 1).unwrap_err();
        assert!(error.to_string().starts_with("x at byte 96: damaged"), "{error}");
        assert_eq!((shown, showing.show(5, |_| ()).unwrap()), (lent, false));
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
