//! The codec of a single record: where the fields of a header lie, and what payloads mean.

use super::record::{Action, Categories, DevT, Payload, Record};
use base::{Instant, Sector};

/// Version and byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    version: Version,
    order: Order,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Version {
    Seven,
    Eight,
    /// Of a record of version 8 what tracefs shows of it, see [`Layout::CUT_LITTLE`].
    Cut,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Order {
    Little,
    Big,
}

/// The magic number less the version in its lowest byte (rule trace-format-1).
const MAGIC: u32 = 0x6561_7400;

/// The bit of an action that says that a control group precedes the payload (rule trace-format-2).
const CGROUP: u64 = 1 << 8;

/// What tracefs of a kernel with version 8 shows of a header, and leaves out of a record.
const SHOWN: usize = 48;
const LEFT_OUT: usize = 16;

/// Whether `head`, the start of a file, is that of a blktrace file of any version.
pub(crate) fn looks_like_blktrace(head: &[u8]) -> bool {
    let Some(magic) = head.first_chunk() else { return false };
    let looks = |magic: u32| magic & 0xffff_ff00 == MAGIC;
    looks(u32::from_le_bytes(*magic)) || looks(u32::from_be_bytes(*magic))
}

impl Layout {
    /// Version 7, little-endian: what Debian's tools and fio read on most machines.
    pub const V7_LITTLE: Layout = Layout { version: Version::Seven, order: Order::Little };
    /// Version 7, big-endian.
    pub const V7_BIG: Layout = Layout { version: Version::Seven, order: Order::Big };
    /// Version 8, little-endian.
    pub const V8_LITTLE: Layout = Layout { version: Version::Eight, order: Order::Little };
    /// Version 8, big-endian.
    pub const V8_BIG: Layout = Layout { version: Version::Eight, order: Order::Big };

    /// What the binary output of tracefs has on kernels with version 8 (`options/bin` beside the
    /// tracer `blk`). Observed on 7.3.4, of which the same events were read in three ways: it has
    /// the magic number of version 7, and of each record of version 8 as many bytes as one of
    /// version 7 would have. So 16 bytes are left out at the end, and lost: those of a payload. An
    /// event without a payload has no error there.
    pub const CUT_LITTLE: Layout = Layout { version: Version::Cut, order: Order::Little };
    /// The same, big-endian.
    pub const CUT_BIG: Layout = Layout { version: Version::Cut, order: Order::Big };

    /// Those in which nothing is lost.
    pub const ALL: [Layout; 4] =
        [Layout::V7_LITTLE, Layout::V7_BIG, Layout::V8_LITTLE, Layout::V8_BIG];

    /// The layout of a file that begins with `magic`; else what is wrong with it.
    pub fn of_magic(magic: [u8; 4]) -> Result<Layout, String> {
        let (little, big) = (u32::from_le_bytes(magic), u32::from_be_bytes(magic));
        let (number, order) = if little & 0xffff_ff00 == MAGIC {
            (little, Order::Little)
        } else if big & 0xffff_ff00 == MAGIC {
            (big, Order::Big)
        } else {
            let [a, b, c, d] = magic;
            return Err(format!("no record begins with bytes {a:02x} {b:02x} {c:02x} {d:02x}"));
        };
        match number & 0xff {
            7 => Ok(Layout { version: Version::Seven, order }),
            8 => Ok(Layout { version: Version::Eight, order }),
            other => Err(format!("blktrace version {other}")),
        }
    }

    /// The layout of a file whose first record has this header of version 7, or of a cut record:
    /// the device of the latter is where the former has its CPU, of which no machine has so many;
    /// and few bits of an action are in use.
    pub fn of_header(self, header: &[u8]) -> Layout {
        let (action, device) = (self.u64(header, 32), DevT::from_bits(self.u32(header, 40)));
        let is_cut = self.version == Version::Seven && action < 1 << 52 && device.major() > 0;
        if is_cut { Layout { version: Version::Cut, ..self } } else { self }
    }

    /// Whether records end before their payloads do.
    pub fn is_cut(self) -> bool {
        self.version == Version::Cut
    }

    /// As much of a record as the version can tell; `None` for what it has no name for.
    pub fn known_of(self, record: Record) -> Option<Record> {
        match self.version {
            Version::Seven => record.for_version_7(),
            Version::Eight | Version::Cut => Some(record),
        }
    }

    /// The first four bytes of each record.
    pub const fn magic(self) -> [u8; 4] {
        let version = match self.version {
            Version::Seven | Version::Cut => 7,
            Version::Eight => 8,
        };
        match self.order {
            Order::Little => (MAGIC | version).to_le_bytes(),
            Order::Big => (MAGIC | version).to_be_bytes(),
        }
    }

    /// Bytes in a header.
    pub const fn header_length(self) -> usize {
        match self.version {
            Version::Seven => 48,
            Version::Eight => 64,
            Version::Cut => SHOWN,
        }
    }

    /// Bytes of payload behind `header`, which is whole. Where records are cut, the first four of
    /// them are at hand, too.
    pub fn payload_length(self, header: &[u8]) -> usize {
        let at = match self.version {
            Version::Seven => 46,
            Version::Eight | Version::Cut => 50,
        };
        usize::from(self.u16(header, at))
    }

    /// What orders a record among those of other files: its time, its CPU and its number there, of
    /// which notes have none, from the highest bits to the lowest.
    #[inline(always)]
    fn key(self, header: &[u8]) -> u128 {
        let cpu = match self.version {
            Version::Seven => self.u32(header, 40),
            Version::Eight | Version::Cut => self.u32(header, 44),
        };
        let sequence = if self.is_note(header) { 0 } else { self.u32(header, 4) };
        order_of(self.u64(header, 8), cpu, sequence)
    }

    /// The length of the record at the beginning of `bytes` and what orders it among those of
    /// other files, if it is whole and has the right magic number.
    #[inline(always)]
    pub(super) fn head(self, bytes: &[u8]) -> Option<(usize, u128)> {
        // What is known of a layout while this is compiled costs nothing, and most files have
        // this one.
        if self == Layout::V7_LITTLE {
            return Layout::V7_LITTLE.head_of(bytes.first_chunk::<48>()?, bytes.len());
        }
        self.head_of(bytes.get(..self.header_length())?, bytes.len())
    }

    #[inline(always)]
    fn head_of(self, header: &[u8], present: usize) -> Option<(usize, u128)> {
        let length = header.len() + self.payload_length(header);
        let is_whole = length <= present && take(header, 0) == self.magic();
        // A closure would not be built in here.
        if is_whole { Some((length, self.key(header))) } else { None }
    }

    /// The record of a whole header and the whole payload behind it.
    pub fn decode(self, header: &[u8], payload: &[u8]) -> Record {
        let mut record = Record::event(Action::Queue, Instant::ZERO);
        self.decode_into(header, payload, &mut record);
        record
    }

    /// The same, in place of another record; what memory that had is used again.
    pub(super) fn decode_into(self, header: &[u8], payload: &[u8], record: &mut Record) {
        match header.first_chunk::<48>() {
            Some(header) if self == Layout::V7_LITTLE => {
                Layout::V7_LITTLE.fill(header, payload, record);
            }
            _ if self.version == Version::Cut => self.decode_cut(header, payload, record),
            _ => self.fill(header, payload, record),
        }
    }

    /// Whether a whole record is a note.
    #[inline(always)]
    pub(super) fn is_note(self, header: &[u8]) -> bool {
        Categories::from_bits(self.action(header) >> 16).contains(Categories::NOTIFY)
    }

    /// Code, flags and categories.
    #[inline(always)]
    fn action(self, header: &[u8]) -> u64 {
        match self.version {
            Version::Seven => u64::from(self.u32(header, 28)),
            Version::Eight | Version::Cut => self.u64(header, 32),
        }
    }

    /// Puts the parts of a record that is not cut into their places.
    #[inline(always)]
    fn fill(self, header: &[u8], payload: &[u8], record: &mut Record) {
        // Of the task, the device, the CPU and the error.
        let [pid_at, device_at, cpu_at, error_at] = match self.version {
            Version::Seven => [32, 36, 40, 44],
            Version::Eight | Version::Cut => [28, 40, 44, 48],
        };
        let action = self.action(header);
        let categories = Categories::from_bits(action >> 16);
        let code = (action & 0xffff & !CGROUP) as u16;
        let (cgroup, payload) = match payload.split_at_checked(8) {
            Some((group, rest)) if action & CGROUP != 0 => (Some(self.u64(group, 0)), rest),
            _ => (None, payload),
        };
        let action = Action::from_code(code, categories);
        record.time = Instant::from_nanos(self.u64(header, 8));
        record.sequence = self.u32(header, 4);
        record.sector = Sector(self.u64(header, 16));
        record.bytes = self.u32(header, 24);
        record.action = action;
        record.categories = categories;
        record.pid = self.u32(header, pid_at);
        record.device = DevT::from_bits(self.u32(header, device_at));
        record.cpu = self.u32(header, cpu_at);
        // formats trap 4: a negative errno, truncated to 16 bits.
        record.error = self.u16(header, error_at).cast_signed();
        record.cgroup = cgroup;
        match &mut record.payload {
            Payload::Message(text) if action == Action::NoteMessage => {
                text.clear();
                text.extend_from_slice(payload);
            }
            // So it mostly is.
            Payload::None if payload.is_empty() && !action.is_note() => {}
            before => *before = self.decode_payload(action, payload),
        }
    }

    /// The record of which this is left: `rest` begins with what is missing of the header.
    fn decode_cut(self, header: &[u8], rest: &[u8], record: &mut Record) {
        let missing = rest.split_at_checked(LEFT_OUT);
        let (ending, mut payload) = missing.unwrap_or((rest, &[]));
        let has_cgroup = self.action(header) & CGROUP != 0;
        if has_cgroup && payload.len() < size_of::<u64>() {
            // A part of the group is no group, and no payload.
            payload = &[];
        }
        let mut whole = [0; SHOWN + LEFT_OUT];
        whole[..SHOWN].copy_from_slice(header);
        whole[SHOWN..][..ending.len()].copy_from_slice(ending);
        Layout { version: Version::Eight, ..self }.fill(&whole, payload, record);
    }

    /// Appends the bytes of `record` to `out`.
    ///
    /// Version 7 has room for 16 categories; those above are lost, and in the layouts of tracefs
    /// what their description says. A payload of more than
    /// 65,527 bytes is a bug of the caller.
    pub fn encode(self, record: &Record, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        if let Some(cgroup) = record.cgroup {
            payload.extend(self.put_u64(cgroup));
        }
        self.encode_payload(&record.payload, &mut payload);
        let length = u16::try_from(payload.len()).expect("a payload below 64 KiB");
        let start = out.len();
        let flag = if record.cgroup.is_some() { CGROUP } else { 0 };
        let action = record.categories.bits() << 16 | u64::from(record.action.code()) | flag;

        out.extend(self.magic());
        out.extend(self.put_u32(record.sequence));
        out.extend(self.put_u64(record.time.as_nanos()));
        out.extend(self.put_u64(record.sector.0));
        out.extend(self.put_u32(record.bytes));
        match self.version {
            Version::Seven => {
                out.extend(self.put_u32(action as u32));
                out.extend(self.put_u32(record.pid));
            }
            Version::Eight | Version::Cut => {
                out.extend(self.put_u32(record.pid));
                out.extend(self.put_u64(action));
            }
        }
        out.extend(self.put_u32(record.device.to_bits()));
        out.extend(self.put_u32(record.cpu));
        out.extend(self.put_u16(record.error.cast_unsigned()));
        out.extend(self.put_u16(length));
        if self.version != Version::Seven {
            out.extend([0; 12]);
        }
        out.extend(payload);
        if self.version == Version::Cut {
            out.truncate(start + SHOWN + usize::from(length));
        }
    }

    /// What `bytes` mean behind a header of `action`; what does not have the right length is kept
    /// as it is.
    #[inline(always)]
    fn decode_payload(self, action: Action, bytes: &[u8]) -> Payload {
        match (action, bytes.len()) {
            (Action::NoteMessage, _) => Payload::Message(bytes.to_vec()),
            (_, 0) => Payload::None,
            (Action::NoteProcess, 16) => Payload::Process(take(bytes, 0)),
            (Action::NoteTimestamp, 8) => {
                Payload::Timestamp { seconds: self.u32(bytes, 0), nanoseconds: self.u32(bytes, 4) }
            }
            // formats trap 5: these are big-endian on every host.
            (Action::Unplug | Action::UnplugTimer, 8) => {
                Payload::Unplug(u64::from_be_bytes(take(bytes, 0)))
            }
            (Action::Split, 8) => Payload::Split(Sector(u64::from_be_bytes(take(bytes, 0)))),
            (Action::Remap, 16) => Payload::Remap {
                from: DevT::from_bits(u32::from_be_bytes(take(bytes, 0))),
                to: DevT::from_bits(u32::from_be_bytes(take(bytes, 4))),
                sector: Sector(u64::from_be_bytes(take(bytes, 8))),
            },
            _ => Payload::Opaque(bytes.to_vec()),
        }
    }

    fn encode_payload(self, payload: &Payload, out: &mut Vec<u8>) {
        match payload {
            Payload::None => {}
            Payload::Process(comm) => out.extend(comm),
            Payload::Timestamp { seconds, nanoseconds } => {
                out.extend(self.put_u32(*seconds));
                out.extend(self.put_u32(*nanoseconds));
            }
            Payload::Message(bytes) | Payload::Opaque(bytes) => out.extend(bytes),
            Payload::Unplug(requests) => out.extend(requests.to_be_bytes()),
            Payload::Split(sector) => out.extend(sector.0.to_be_bytes()),
            Payload::Remap { from, to, sector } => {
                out.extend(from.to_bits().to_be_bytes());
                out.extend(to.to_bits().to_be_bytes());
                out.extend(sector.0.to_be_bytes());
            }
        }
    }

    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        match self.order {
            Order::Little => u16::from_le_bytes(take(bytes, at)),
            Order::Big => u16::from_be_bytes(take(bytes, at)),
        }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        match self.order {
            Order::Little => u32::from_le_bytes(take(bytes, at)),
            Order::Big => u32::from_be_bytes(take(bytes, at)),
        }
    }

    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        match self.order {
            Order::Little => u64::from_le_bytes(take(bytes, at)),
            Order::Big => u64::from_be_bytes(take(bytes, at)),
        }
    }

    fn put_u16(self, value: u16) -> [u8; 2] {
        match self.order {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    fn put_u32(self, value: u32) -> [u8; 4] {
        match self.order {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }

    fn put_u64(self, value: u64) -> [u8; 8] {
        match self.order {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        }
    }
}

/// What orders a record among those of other files.
#[inline]
pub(super) fn order_of(time: u64, cpu: u32, sequence: u32) -> u128 {
    u128::from(time) << 64 | u128::from(cpu) << 32 | u128::from(sequence)
}

/// The `N` bytes at `at`, which the caller knows to be there.
#[inline(always)]
fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("a header or payload of the length that was checked")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A remap of 253,0 sector 20481880 to 8,2, written byte by byte from the specification.
    fn remap_by_hand(order: fn(u64, usize) -> Vec<u8>, version: u64) -> Vec<u8> {
        let magic = 0x6561_7400 | version;
        let action = 0x11_0000 | 0x100 | 15;
        let header: Vec<(u64, usize)> = if version == 7 {
            vec![(magic, 4), (9, 4), (1_000, 8), (2048, 8), (4096, 4), (action, 4), (77, 4)]
        } else {
            vec![(magic, 4), (9, 4), (1_000, 8), (2048, 8), (4096, 4), (77, 4), (action, 8)]
        };
        let mut fields = header;
        fields.extend([(8 << 20, 4), (3, 4), (65_531, 2), (24, 2)]);
        if version == 8 {
            fields.extend([(0, 4); 3]);
        }
        fields.push((4242, 8));
        let mut bytes: Vec<u8> =
            fields.into_iter().flat_map(|(value, length)| order(value, length)).collect();
        // Rule trace-format-2, from a real capture; big-endian in every file.
        bytes.extend([0x0f, 0xd0, 0, 0, 0, 0x80, 0, 2, 0, 0, 0, 0, 0x01, 0x38, 0x87, 0x58]);
        bytes
    }

    fn little(value: u64, length: usize) -> Vec<u8> {
        value.to_le_bytes()[..length].to_vec()
    }

    fn big(value: u64, length: usize) -> Vec<u8> {
        value.to_be_bytes()[8 - length..].to_vec()
    }

    #[test]
    fn headers_written_by_hand_are_understood_in_both_versions_and_byte_orders() {
        let expected = Record {
            sequence: 9,
            sector: Sector(2048),
            bytes: 4096,
            pid: 77,
            device: DevT::new(8, 0),
            cpu: 3,
            error: -5,
            cgroup: Some(4242),
            payload: Payload::Remap {
                from: DevT::new(253, 0),
                to: DevT::new(8, 2),
                sector: Sector(20_481_880),
            },
            ..Record::event(Action::Remap, Instant::from_nanos(1_000))
        }
        .with(Categories::READ);
        let files = [
            (Layout::V7_LITTLE, remap_by_hand(little, 7)),
            (Layout::V7_BIG, remap_by_hand(big, 7)),
            (Layout::V8_LITTLE, remap_by_hand(little, 8)),
            (Layout::V8_BIG, remap_by_hand(big, 8)),
        ];
        for (layout, bytes) in files {
            assert_eq!(Layout::of_magic(take(&bytes, 0)), Ok(layout));
            let (header, payload) = bytes.split_at(layout.header_length());
            assert_eq!(layout.payload_length(header), payload.len());
            assert_eq!(layout.decode(header, payload), expected, "{layout:?}");
            let mut written = Vec::new();
            layout.encode(&expected, &mut written);
            assert_eq!(written, bytes, "{layout:?}");
        }
    }

    #[test]
    fn a_magic_that_is_none_is_refused() {
        let of = |magic| Layout::of_magic(magic).unwrap_err();
        assert_eq!(of(*b"\x06tae"), "blktrace version 6");
        assert_eq!(of(*b"eat\x09"), "blktrace version 9");
        assert_eq!(of(*b"\x7fELF"), "no record begins with bytes 7f 45 4c 46");
    }

    #[test]
    fn a_cgroup_flag_without_room_for_one_is_no_cgroup() {
        let mut bytes = Vec::new();
        let record = Record { cgroup: Some(1), ..Record::event(Action::Queue, Instant::ZERO) };
        Layout::V7_LITTLE.encode(&record, &mut bytes);
        let decoded = Layout::V7_LITTLE.decode(&bytes[..48], &bytes[48..52]);
        assert_eq!(decoded.cgroup, None);
        assert_eq!(decoded.payload, Payload::Opaque(vec![1, 0, 0, 0]));
    }
}
