//! The records of one blktrace file, streaming.

use super::layout::Layout;
use super::record::Record;
use crate::error::{Error, Place};
use std::io::{self, BufRead, BufReader, Read};

/// An iterator over the records of one file.
///
/// Whatever a record says, the next one is found by the length in its header. A record without
/// the magic number of the first is an error, after which the iterator ends: nothing behind it
/// can be trusted. A last record that is cut off ends the file quietly, and [`Reader::torn`]
/// tells of it: that is how a recording looks that was interrupted.
///
/// Records that tracefs cut ([`Layout::CUT_LITTLE`]) are told from others by the first of a file.
/// Where such a file itself is torn, its last record can be taken for one without a payload.
pub struct Reader<R> {
    source: BufReader<R>,
    name: String,
    layout: Option<Layout>,
    /// The layout, while records may be taken from what was read: they are not cut, and there are
    /// more.
    plain: Option<Layout>,
    record_start: u64,
    offset: u64,
    torn: Option<Torn>,
    finished: bool,
    buffer: Vec<u8>,
    /// Bytes that were read and belong to the next record.
    ahead: Option<[u8; MAGIC_LENGTH]>,
    cut_payloads: u64,
}

/// A last record of which only a part is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Where it begins.
    pub offset: u64,
    /// How many of its bytes are there.
    pub present: u64,
}

/// As much is read at once: nearly every record is whole then.
const BUFFER: usize = 64 * 1024;

/// The four bytes that every record begins with.
const MAGIC_LENGTH: usize = 4;

impl<R: Read> Reader<R> {
    /// Records of `source`, which errors call `name`.
    pub fn new(source: R, name: &str) -> Self {
        Reader {
            source: BufReader::with_capacity(BUFFER, source),
            name: name.to_owned(),
            layout: None,
            plain: None,
            record_start: 0,
            offset: 0,
            torn: None,
            finished: false,
            buffer: Vec::new(),
            ahead: None,
            cut_payloads: 0,
        }
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the record begins that was returned last.
    pub fn record_start(&self) -> u64 {
        self.record_start
    }

    /// Version and byte order, once a record was read.
    pub fn layout(&self) -> Option<Layout> {
        self.layout
    }

    /// The cut-off last record, once the end was reached.
    pub fn torn(&self) -> Option<Torn> {
        self.torn
    }

    /// How many payloads are not there to their end, because the kernel cut them.
    pub fn cut_payloads(&self) -> u64 {
        self.cut_payloads
    }

    /// Length and order of the next record, if all of it has been read from the source and nothing
    /// about it is odd.
    #[inline]
    pub(super) fn head_at_hand(&self) -> Option<(usize, u128)> {
        self.plain?.head(self.source.buffer())
    }

    /// The same of the record behind that, which has this length.
    #[inline]
    pub(super) fn head_behind(&self, length: usize) -> Option<(usize, u128)> {
        self.plain?.head(self.source.buffer().get(length..)?)
    }

    /// Takes the record that is at hand and has this length, in place of one of two others: of
    /// notes, the second. Tells which.
    #[inline]
    pub(super) fn take_at_hand(&mut self, length: usize, places: &mut [Record; 2]) -> usize {
        let layout = self.plain.expect("a record is at hand");
        let (header, payload) = self.source.buffer()[..length].split_at(layout.header_length());
        let place = usize::from(layout.is_note(header));
        layout.decode_into(header, payload, &mut places[place]);
        self.consume(length);
        place
    }

    #[inline]
    fn consume(&mut self, length: usize) {
        self.source.consume(length);
        self.record_start = self.offset;
        self.offset += length as u64;
    }

    fn read_record(&mut self) -> Result<Option<Record>, Error> {
        self.record_start = self.offset;
        self.buffer.clear();
        self.buffer.extend(self.ahead.take().into_iter().flatten());
        if !self.fill(MAGIC_LENGTH)? {
            return Ok(None);
        }
        let is_first = self.layout.is_none();
        let mut layout = self.check_magic()?;
        let length = layout.header_length();
        if !self.fill(length)? {
            return Ok(None);
        }
        if is_first {
            layout = layout.of_header(&self.buffer);
            self.layout = Some(layout);
        }
        if !layout.is_cut() || self.has_more(layout)? {
            let whole = length + layout.payload_length(&self.buffer);
            if !self.fill(whole.max(self.buffer.len()))? {
                return Ok(None);
            }
            self.cut_payloads += u64::from(layout.is_cut());
        }
        let (header, payload) = self.buffer.split_at(length);
        Ok(Some(layout.decode(header, payload)))
    }

    /// Of a record that was cut, whether more than its header is there; if so, what tells how much
    /// is read. Nothing in the header says so, but the next record has its magic number.
    fn has_more(&mut self, layout: Layout) -> Result<bool, Error> {
        let header = self.buffer.len();
        if !self.fill(header + MAGIC_LENGTH)? {
            // What there is behind the header is the beginning of another record.
            self.buffer.truncate(header);
            self.torn = self.torn.filter(|torn| torn.present > header as u64).map(|torn| Torn {
                offset: torn.offset + header as u64,
                present: torn.present - header as u64,
            });
            return Ok(false);
        }
        let behind = *self.buffer[header..].first_chunk().expect("four bytes were read");
        if behind == layout.magic() {
            self.buffer.truncate(header);
            self.offset -= MAGIC_LENGTH as u64;
            self.ahead = Some(behind);
        }
        Ok(behind != layout.magic())
    }

    /// Reads on until the buffer holds `length` bytes of the record; false at the end of the file.
    fn fill(&mut self, length: usize) -> Result<bool, Error> {
        let mut present = self.buffer.len();
        self.buffer.resize(length, 0);
        while present < length {
            match self.source.read(&mut self.buffer[present..]) {
                Ok(0) => break,
                Ok(read) => present += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let place = Place::Byte(self.record_start + present as u64);
                    return Err(Error::io(&self.name, place, &error));
                }
            }
        }
        self.offset = self.record_start + present as u64;
        if present < length && present > 0 {
            self.torn = Some(Torn { offset: self.record_start, present: present as u64 });
        }
        Ok(present == length)
    }

    fn check_magic(&mut self) -> Result<Layout, Error> {
        let magic = *self.buffer.first_chunk().expect("the magic number was read");
        let place = Place::Byte(self.record_start);
        match self.layout {
            None => {
                let accepted = "a blktrace record of version 7 or 8, in either byte order";
                let layout = Layout::of_magic(magic)
                    .map_err(|cause| Error::new(&self.name, place, cause, accepted))?;
                self.layout = Some(layout);
                Ok(layout)
            }
            Some(layout) if layout.magic() == magic => Ok(layout),
            Some(layout) => {
                let bytes = |magic: [u8; 4]| magic.map(|byte| format!("{byte:02x}")).join(" ");
                Err(Error::new(
                    &self.name,
                    place,
                    format!("damaged: a record begins with bytes {}", bytes(magic)),
                    format!("bytes {}, as in the first record", bytes(layout.magic())),
                ))
            }
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Result<Record, Error>> {
        if self.finished {
            return None;
        }
        if let Some((length, _)) = self.head_at_hand() {
            let layout = self.plain.expect("a record is at hand");
            let (header, rest) = self.source.buffer().split_at(layout.header_length());
            let record = layout.decode(header, &rest[..length - header.len()]);
            self.consume(length);
            return Some(Ok(record));
        }
        let result = self.read_record();
        self.finished = !matches!(result, Ok(Some(_)));
        self.plain = self.layout.filter(|layout| !layout.is_cut() && !self.finished);
        result.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blktrace::{Action, Categories, Payload};
    use base::Instant;
    use proptest::prelude::*;

    fn file(layout: Layout, records: &[Record]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for record in records {
            layout.encode(record, &mut bytes);
        }
        bytes
    }

    fn three_records() -> Vec<Record> {
        let at = Instant::from_nanos;
        vec![
            Record::timestamp(at(1), 1_700_000_000, 5),
            Record { cgroup: Some(7), ..Record::message(at(2), "cfq2431S / dispatch") },
            Record { bytes: 4096, ..Record::event(Action::Queue, at(3)) }.with(Categories::READ),
        ]
    }

    #[test]
    fn a_torn_last_record_ends_the_file_and_is_reported() {
        let bytes = file(Layout::V7_LITTLE, &three_records());
        let last = bytes.len() as u64 - 48;
        for missing in 1..48 {
            let mut reader = Reader::new(&bytes[..bytes.len() - missing], "x");
            let read: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
            assert_eq!(read, three_records()[..2]);
            let present = 48 - missing as u64;
            assert_eq!(reader.torn(), Some(Torn { offset: last, present }));
        }
        let mut whole = Reader::new(&bytes[..], "x");
        assert_eq!(whole.by_ref().count(), 3);
        assert_eq!(whole.torn(), None);
    }

    #[test]
    fn a_damaged_magic_is_refused_with_its_byte() {
        let mut bytes = file(Layout::V7_LITTLE, &three_records());
        bytes[48 + 8] ^= 0xff;
        let results: Vec<_> = Reader::new(&bytes[..], "sda.blktrace.0").collect();
        assert_eq!(results.len(), 2);
        assert_eq!(
            results[1].as_ref().unwrap_err().to_string(),
            "sda.blktrace.0 at byte 56: damaged: a record begins with bytes f8 74 61 65; \
             accepted: bytes 07 74 61 65, as in the first record"
        );
    }

    #[test]
    fn a_file_of_another_version_is_refused() {
        let error = Reader::new(&b"\x06tae0123"[..], "old").next().unwrap().unwrap_err();
        assert_eq!(
            error.to_string(),
            "old at byte 0: blktrace version 6; accepted: a blktrace record of version 7 or 8, \
             in either byte order"
        );
    }

    /// Records as version 8 has them, and what is left of them in the binary output of tracefs.
    fn cut(layout: Layout) -> (Vec<Record>, Vec<Record>) {
        let device = crate::blktrace::DevT::new(254, 0);
        let at = Instant::from_nanos;
        let bfq = Record { cgroup: Some(7), ..Record::message(at(1), "bfq52S add_request 1") };
        let remap =
            crate::blktrace::Payload::Remap { from: device, to: device, sector: base::Sector(8) };
        let records = vec![
            Record::event(Action::Queue, at(2)).with(Categories::WRITE_ZEROES),
            bfq.clone(),
            Record { payload: Payload::Unplug(1), ..Record::event(Action::Unplug, at(3)) },
            Record { error: -5, ..Record::event(Action::Complete, at(4)) },
            Record { cgroup: Some(7), error: -5, ..Record::event(Action::Complete, at(5)) },
            Record { cgroup: Some(7), payload: remap, ..Record::event(Action::Remap, at(6)) },
            Record::event(Action::Issue, at(7)),
        ];
        let records: Vec<_> = records.into_iter().map(|it| Record { device, ..it }).collect();
        let mut left = records.clone();
        left[1].payload = Payload::Message(b"bfq5".to_vec());
        left[2].payload = Payload::None;
        left[3].error = 0;
        left[4].cgroup = None;
        left[5].payload = Payload::None;
        let read: Result<Vec<_>, _> =
            Reader::new(&file(Layout::V8_LITTLE, &records)[..], "x").collect();
        assert_eq!(read.unwrap(), records);
        assert_eq!(file(layout, &records).len(), 48 * 7 + 28 + 8 + 8 + 24);
        (records, left)
    }

    #[test]
    fn of_records_that_tracefs_cut_what_is_there_is_read() {
        for layout in [Layout::CUT_LITTLE, Layout::CUT_BIG] {
            let (records, left) = cut(layout);
            let bytes = file(layout, &records);
            let mut reader = Reader::new(&bytes[..], "x");
            let read: Result<Vec<_>, _> = reader.by_ref().collect();
            assert_eq!(read.unwrap(), left);
            assert_eq!((reader.layout(), reader.cut_payloads()), (Some(layout), 4));
            assert_eq!(reader.torn(), None);
        }
    }

    #[test]
    fn a_cut_record_that_is_torn_is_reported() {
        let layout = Layout::CUT_LITTLE;
        let (records, left) = cut(layout);
        let bytes = file(layout, &records);
        let last = bytes.len() as u64 - 48;
        for missing in 1..48 {
            let mut reader = Reader::new(&bytes[..bytes.len() - missing], "x");
            let read: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
            assert_eq!(read, left[..6], "{missing}");
            let present = 48 - missing as u64;
            assert_eq!(reader.torn(), Some(Torn { offset: last, present }));
        }
    }

    #[test]
    fn an_unknown_code_is_skipped_by_the_length_of_its_payload() {
        let unknown = Record {
            action: Action::Other(0x63),
            payload: Payload::Opaque(vec![0xab; 1000]),
            ..Record::event(Action::Queue, Instant::ZERO)
        };
        let mut records = three_records();
        records.insert(1, unknown);
        let bytes = file(Layout::V8_BIG, &records);
        let read: Vec<_> = Reader::new(&bytes[..], "x").map(Result::unwrap).collect();
        assert_eq!(read, records);
    }

    /// A record by which a file is told to be cut.
    fn cut_first() -> [Record; 1] {
        let device = crate::blktrace::DevT::new(8, 0);
        [Record { device, ..Record::event(Action::Queue, Instant::ZERO) }]
    }

    prop_compose! {
        /// CPUs are as many as a machine can have: more tell of a file that is cut.
        fn any_record()(
            time: u64, sequence: u32, sector: u64, bytes: u32, code in 1u16..24, bits: u16,
            pid: u32, device: u32, cpu in 0u32..1 << 20, error: i16, cgroup: Option<u64>,
            opaque in prop::collection::vec(any::<u8>(), 1..40),
        ) -> Record {
            let categories = Categories::from_bits(u64::from(bits));
            let action = Action::from_code(code, categories);
            let payload = match action {
                Action::NoteMessage => Payload::Message(opaque),
                Action::NoteTimestamp => Payload::Timestamp { seconds: pid, nanoseconds: cpu },
                Action::Unplug | Action::UnplugTimer => Payload::Unplug(sector),
                Action::Split => Payload::Split(base::Sector(sector / 2)),
                Action::Queue | Action::Plug => Payload::None,
                Action::Remap => Payload::Remap {
                    from: crate::blktrace::DevT::from_bits(pid),
                    to: crate::blktrace::DevT::from_bits(cpu),
                    sector: base::Sector(time),
                },
                _ => Payload::Opaque(opaque),
            };
            Record {
                sequence, sector: base::Sector(sector), bytes, action, categories, pid,
                device: crate::blktrace::DevT::from_bits(device), cpu, error, cgroup, payload,
                ..Record::event(action, Instant::from_nanos(time))
            }
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            records in prop::collection::vec(any_record(), 0..20), which in 0usize..4
        ) {
            let bytes = file(Layout::ALL[which], &records);
            let read: Result<Vec<_>, _> = Reader::new(&bytes[..], "x").collect();
            prop_assert_eq!(read.unwrap(), records);
        }

        #[test]
        fn a_cut_anywhere_loses_only_the_record_that_was_cut(
            records in prop::collection::vec(any_record(), 1..10), which in 0usize..4,
            cut: prop::sample::Index
        ) {
            let layout = Layout::ALL[which];
            let bytes = file(layout, &records);
            let cut = cut.index(bytes.len());
            let whole = (0..records.len())
                .take_while(|n| file(layout, &records[..n + 1]).len() <= cut)
                .count();
            let mut reader = Reader::new(&bytes[..cut], "x");
            let read: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
            prop_assert_eq!(&read[..], &records[..whole]);
            let end = file(layout, &records[..whole]).len();
            let torn = reader.torn().map(|torn| torn.offset);
            prop_assert_eq!(torn, (end < cut).then_some(end as u64));
        }

        #[test]
        fn what_tracefs_cut_is_read_but_for_what_is_lost(
            records in prop::collection::vec(any_record(), 0..20), is_big: bool
        ) {
            let layout = if is_big { Layout::CUT_BIG } else { Layout::CUT_LITTLE };
            // The first decides what the file is. Payloads below four bytes are not to be told
            // from what follows them.
            let mut records = records;
            records.retain(|it| it.cgroup.is_some()
                || !matches!(&it.payload, Payload::Opaque(b) | Payload::Message(b) if b.len() < 4));
            records.splice(0..0, cut_first());
            let bytes = file(layout, &records);
            let read: Result<Vec<_>, _> = Reader::new(&bytes[..], "x").collect();
            let read = read.unwrap();
            prop_assert_eq!(read.len(), records.len());
            for (read, record) in read.into_iter().zip(records) {
                let (cgroup, error) = (read.cgroup, read.error);
                let payload = read.payload.clone();
                let left = Record { payload, cgroup, error, ..record.clone() };
                prop_assert_eq!(&read, &left);
                prop_assert!(cgroup.is_none() || cgroup == record.cgroup);
                prop_assert!(error == 0 || error == record.error);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(mut bytes: Vec<u8>, which in 0usize..7) {
            if let Some(layout) = Layout::ALL.get(which) {
                bytes.splice(0..0, layout.magic());
            }
            let cut = [Layout::CUT_LITTLE, Layout::CUT_BIG];
            if let Some(layout) = cut.get(which.wrapping_sub(Layout::ALL.len())) {
                bytes.splice(0..0, file(*layout, &cut_first()));
            }
            for record in Reader::new(&bytes[..], "x").flatten() {
                let _ = (record.op(), record.rwbs(), record.for_version_7());
            }
        }
    }
}
