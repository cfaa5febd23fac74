//! The pages of a kernel's trace buffer, as `trace_pipe_raw` of tracefs gives them, as records.
//!
//! With the tracer `blk` each entry of the buffer is a record of blktrace as the kernel has it
//! inside, in version 7 or 8, whole with its payload. Only its first 16 bytes are others: eight
//! that every entry of a trace begins with, in the place of the magic number and the number of the
//! event, and eight for the time, which the buffer itself keeps. (Observed on 6.1.192, 6.12.117
//! and 7.3.4; `events/header_page` and `events/header_event` of tracefs describe the rest.)
//!
//! A message names no task; it gets that of its entry, during which it was said.
//!
//! Events that were enabled beside the tracer are in the same buffer. Those that are named become
//! messages of the task that they are of, in their place among the records.
//!
//! Leaves out: pages of big-endian machines, and of other lengths than 4096 bytes.

use super::layout::Layout;
use super::record::{Payload, Record};
use crate::error::{Error, Place};
use base::Instant;
use std::collections::BTreeMap;

/// The length of a page, and of what stands before its entries.
const PAGE: usize = 4096;
const PAGE_HEADER: usize = 16;
/// The part of the second word of a page that says how much of it is used (above are flags).
const USED: u64 = 0x7ff_ffff;
/// The kinds of entries that are no data, by the lowest five bits of their first word.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a difference of times in the first word of an entry.
const DELTA_BITS: u32 = 27;
/// Less than so many bytes are left unused behind an entry.
const MOST_UNUSED: usize = 8;
/// Bytes of a record that an entry has others in the place of.
const REPLACED: usize = 16;

const ACCEPTED: &str = "pages of 4096 bytes, as trace_pipe_raw of a little-endian machine has them";

/// Events that become messages: what each says, by the number in its file `format` of tracefs. Its
/// fields stand in braces, by kind and offset as `format` has them: `{s12}` is a text from byte 12
/// on, `{b36}` a byte, `{w28}` a number of 32 bits, `{i28}` one with a sign, `{q40}` one of 64.
pub type Events<'a> = BTreeMap<u16, &'a str>;

/// The records in the pages of a CPU, one after the other, as a file of blktrace: in the version
/// that the kernel has inside. An entry of one of `events` becomes a message. Other entries are
/// passed over. `name` is what an error calls the pages.
pub fn records_of_pages(pages: &[u8], name: &str, events: &Events<'_>) -> Result<Vec<u8>, Error> {
    let mut records = Vec::with_capacity(pages.len());
    let mut entries = Vec::new();
    for (number, page) in pages.chunks(PAGE).enumerate() {
        let refused = |at: usize, cause: &str| {
            let place = Place::Byte((number * PAGE + at) as u64);
            Error::new(name, place, cause, ACCEPTED)
        };
        let mut page = Page::new(page).ok_or_else(|| refused(0, "a page that is cut off"))?;
        loop {
            let at = page.at;
            match page.next_entry() {
                Ok(None) => break,
                Ok(Some(entry)) => entries.push(entry),
                Err(()) => return Err(refused(at, "an entry that leaves its page")),
            }
        }
    }
    let is_event = |entry: &[u8]| kind_of(entry).is_some_and(|it| events.contains_key(&it));
    let layout = entries.iter().filter(|it| !is_event(it.1)).find_map(|it| layout_of(it.1));
    let layout = layout.unwrap_or(Layout::V7_LITTLE);
    for (time, entry) in entries {
        match kind_of(entry).and_then(|kind| events.get(&kind)) {
            Some(said) => {
                let said = with_fields(said, entry);
                append_message(layout, (time, task_of(entry)), &said, &mut records);
            }
            None => append_record(time, entry, &mut records),
        }
    }
    Ok(records)
}

/// The number of an entry's event, with which each entry begins.
fn kind_of(entry: &[u8]) -> Option<u16> {
    entry.first_chunk().copied().map(u16::from_le_bytes)
}

/// The number of the task that an entry is of.
fn task_of(entry: &[u8]) -> u32 {
    entry.get(4..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u32::from_le_bytes)
}

/// What an event says, with the fields of this entry.
fn with_fields(said: &str, entry: &[u8]) -> String {
    let mut parts = said.split('{');
    let mut text = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let (field, rest) = part.split_once('}').unwrap_or((part, ""));
        let (kind, at) = field.split_at(field.len().min(1));
        let bytes = at.parse().ok().and_then(|at: usize| entry.get(at..)).unwrap_or_default();
        text.push_str(&match kind {
            "s" => {
                let end = bytes.iter().position(|it| *it == 0).unwrap_or(bytes.len());
                String::from_utf8_lossy(&bytes[..end]).into_owned()
            }
            "b" => bytes.first().map(u8::to_string).unwrap_or_default(),
            "i" => shown(bytes, i32::from_le_bytes),
            "q" => shown(bytes, u64::from_le_bytes),
            _ => shown(bytes, u32::from_le_bytes),
        });
        text.push_str(rest);
    }
    text
}

/// The number that bytes begin with; nothing if they are too few.
fn shown<const SIZE: usize, N: ToString>(bytes: &[u8], number: fn([u8; SIZE]) -> N) -> String {
    bytes.first_chunk().map(|chunk| number(*chunk).to_string()).unwrap_or_default()
}

fn append_message(layout: Layout, (time, pid): (u64, u32), said: &str, records: &mut Vec<u8>) {
    let record = Record { pid, ..Record::message(Instant::from_nanos(time), said) };
    layout.encode(&record, records);
}

/// A page while its entries are read.
struct Page<'a> {
    /// As much of it as is used.
    bytes: &'a [u8],
    /// Where the next entry begins.
    at: usize,
    /// The time of the last one.
    time: u64,
}

impl<'a> Page<'a> {
    fn new(page: &'a [u8]) -> Option<Page<'a>> {
        let time = u64::from_le_bytes(*page.first_chunk()?);
        let used = u64::from_le_bytes(*page.get(8..)?.first_chunk()?) & USED;
        let bytes = page.get(..PAGE_HEADER + usize::try_from(used).ok()?)?;
        Some(Page { bytes, at: PAGE_HEADER, time })
    }

    /// The next entry that is data, with its time; `None` at the end.
    fn next_entry(&mut self) -> Result<Option<(u64, &'a [u8])>, ()> {
        while self.at < self.bytes.len() {
            let head = self.word().ok_or(())?;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            match kind {
                // The rest of the page is empty.
                PADDING if delta == 0 => return Ok(None),
                PADDING => {
                    let length = self.word().ok_or(())?;
                    self.time = self.time.wrapping_add(delta);
                    self.take(length.saturating_sub(4)).ok_or(())?;
                }
                TIME_EXTEND => {
                    let high = u64::from(self.word().ok_or(())?) << DELTA_BITS;
                    self.time = self.time.wrapping_add(high + delta);
                }
                TIME_STAMP => {
                    self.time = (u64::from(self.word().ok_or(())?) << DELTA_BITS) + delta;
                }
                _ => {
                    // A length of data is in words; a long one has a word of its own, in bytes.
                    let length = match kind {
                        0 => self.word().and_then(|all| all.checked_sub(4)).ok_or(())?,
                        words => words * 4,
                    };
                    self.time = self.time.wrapping_add(delta);
                    return Ok(Some((self.time, self.take(length).ok_or(())?)));
                }
            }
        }
        Ok(None)
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.take(4)?.first_chunk()?))
    }

    /// The next bytes, and as many more as it takes to the next word.
    fn take(&mut self, length: u32) -> Option<&'a [u8]> {
        let length = usize::try_from(length).ok()?;
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length.next_multiple_of(4);
        Some(taken)
    }
}

/// In which version an entry is a record, if it is one.
fn layout_of(entry: &[u8]) -> Option<Layout> {
    // An entry of version 8 is longer than its header says in version 7, by more than what is left
    // unused behind an entry: the buffer may give room in steps of eight bytes (observed on
    // 6.12.117: messages of BFQ).
    let fits = |layout: &Layout| {
        let length = layout.header_length();
        entry.len() >= length
            && entry
                .len()
                .checked_sub(length + layout.payload_length(entry))
                .is_some_and(|unused| unused < MOST_UNUSED)
    };
    [Layout::V7_LITTLE, Layout::V8_LITTLE].into_iter().find(fits)
}

/// Appends an entry as a record, if it is one.
fn append_record(time: u64, entry: &[u8], records: &mut Vec<u8>) {
    let Some(layout) = layout_of(entry) else { return };
    let start = records.len();
    records.extend(layout.magic());
    records.extend([0; 4]);
    records.extend(time.to_le_bytes());
    let length = layout.header_length() + layout.payload_length(entry);
    records.extend(&entry[REPLACED..length]);
    let (header, payload) = records[start..].split_at(layout.header_length());
    let record = layout.decode(header, payload);
    if record.pid == 0 && matches!(record.payload, Payload::Message(_)) {
        records.truncate(start);
        layout.encode(&Record { pid: task_of(entry), ..record }, records);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blktrace::{Action, DevT, Reader, Record};
    use base::Instant;
    use proptest::prelude::*;

    /// A page with these words, and what is behind them.
    fn page(time: u64, entries: &[u8]) -> Vec<u8> {
        let mut page = time.to_le_bytes().to_vec();
        // The flag of a page before which events were lost.
        page.extend((entries.len() as u64 | 1 << 31).to_le_bytes());
        page.extend(entries);
        page.resize(PAGE, 0xee);
        page
    }

    /// An entry with a record in it.
    fn entry(layout: Layout, record: &Record, delta: u32) -> Vec<u8> {
        let mut data = Vec::new();
        layout.encode(record, &mut data);
        data[..8].copy_from_slice(&[14, 0, 1, 0, 52, 0, 0, 0]);
        data[8..16].fill(0);
        // Some kernels give room in steps of eight bytes, the first word included.
        data.resize((data.len() + 4).next_multiple_of(8) - 4, 0);
        let words = data.len() as u32 / 4;
        let mut entry = Vec::new();
        if words < PADDING {
            entry.extend((delta << 5 | words).to_le_bytes());
        } else {
            entry.extend((delta << 5).to_le_bytes());
            entry.extend((words * 4 + 4).to_le_bytes());
        }
        entry.extend(data);
        entry
    }

    fn records() -> Vec<Record> {
        let at = Instant::from_nanos;
        let device = DevT::new(254, 0);
        let text = "bfq52S calc_finish: start 0, finish 3579139, delta 3579139";
        let all = [
            Record { bytes: 4096, ..Record::event(Action::Queue, at(1_000)) },
            Record { cgroup: Some(1), ..Record::message(at(1_256), text) },
            Record { error: -5, ..Record::event(Action::Complete, at((1 << 40) + 1_256)) },
            Record { cgroup: Some(30), ..Record::event(Action::Issue, at(77)) },
        ];
        all.map(|it| Record { device, ..it }).into()
    }

    #[test]
    fn entries_are_records_of_either_version() {
        for layout in [Layout::V7_LITTLE, Layout::V8_LITTLE] {
            let records = records();
            let mut entries = entry(layout, &records[0], 0);
            entries.extend(entry(layout, &records[1], 256));
            // A discarded entry, a long time, an entry of another kind; later an absolute time.
            entries.extend([29 | 1 << 5, 8, 0xdead_beef].map(u32::to_le_bytes).concat());
            let high = ((1_u64 << 40) >> DELTA_BITS) as u32;
            entries.extend([30, high].map(u32::to_le_bytes).concat());
            entries.extend([3, 5, 52, 7].map(u32::to_le_bytes).concat());
            entries.extend(entry(layout, &records[2], 0));
            entries.extend([31 | 77 << 5, 0].map(u32::to_le_bytes).concat());
            entries.extend(entry(layout, &records[3], 0));
            entries.extend(29_u32.to_le_bytes());
            entries.extend([0xff; 12]);
            // One nanosecond of the discarded entry.
            let mut expected = records;
            // A message names no task, but its entry does.
            expected[1].pid = 52;
            expected[2].time = Instant::from_nanos((1 << 40) + 1_257);
            let file = records_of_pages(&page(1_000, &entries), "pages", &Events::new()).unwrap();
            let read: Result<Vec<_>, _> = Reader::new(&file[..], "x").collect();
            assert_eq!(read.unwrap(), expected);
        }
    }

    #[test]
    fn what_leaves_its_page_is_refused() {
        let of = |pages: &[u8]| {
            records_of_pages(pages, "pages", &Events::new()).unwrap_err().to_string()
        };
        let good = page(5, &entry(Layout::V8_LITTLE, &records()[0], 0));
        assert!(of(&good[..20]).starts_with("pages at byte 0: a page that is cut off; accepted:"));
        let mut long = good.clone();
        long.extend(page(9, &[28, 0, 0, 0, 1, 2, 3, 4]));
        assert!(of(&long).starts_with("pages at byte 4112: an entry that leaves its page"));
    }

    proptest! {
        #[test]
        fn arbitrary_pages_never_panic(time: u64, bytes: Vec<u8>, tail: Vec<u8>) {
            let mut pages = page(time, &bytes);
            pages.extend(&tail);
            if let Ok(file) = records_of_pages(&pages, "x", &Events::new()) {
                Reader::new(&file[..], "x").for_each(drop);
            }
            let _ = records_of_pages(&tail, "x", &Events::new());
        }
    }

    #[test]
    fn a_message_has_the_fields_of_its_event() {
        let entry = [b"--READ\0\xee", &[7, 0xee, 0xee, 0xee][..], &300_u32.to_le_bytes()].concat();
        let of = |said| with_fields(said, &entry);
        assert_eq!(of("adjust: {s2} {w12} of {b8}"), "adjust: READ 300 of 7");
        assert_eq!(of("{i10} {q8}"), "19721966 1292498824711");
        assert_eq!([of("none"), of("{w13}{q9}{s99}!")], ["none", "!"]);
    }

    #[test]
    fn an_event_that_is_named_becomes_a_message_of_its_task() {
        for layout in [Layout::V7_LITTLE, Layout::V8_LITTLE] {
            let record = &records()[0];
            let event = |number: u16, pid: u32, words: u32| {
                let mut data = vec![0; words as usize * 4];
                data[..2].copy_from_slice(&number.to_le_bytes());
                data[4..8].copy_from_slice(&pid.to_le_bytes());
                [&(256 << 5 | words).to_le_bytes()[..], &data].concat()
            };
            let entries =
                [event(38, 20, 16), entry(layout, record, 256), event(39, 21, 6)].concat();
            let events = Events::from([(38, "begins")]);
            let file = records_of_pages(&page(1_000, &entries), "pages", &events).unwrap();
            let mut reader = Reader::new(&file[..], "pages");
            let all: Vec<Record> = reader.by_ref().collect::<Result<_, _>>().unwrap();
            assert_eq!(reader.layout(), Some(layout), "that of the kernel's records");
            assert_eq!(
                all[0],
                Record { pid: 20, ..Record::message(Instant::from_nanos(1_256), "begins") }
            );
            assert_eq!((all.len(), all[1].action), (2, Action::Queue));
        }
    }
}
