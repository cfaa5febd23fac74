//! One record of a blktrace recording, free of version and byte order.

use crate::arrival::Op;
use base::{Instant, Sector};
use std::fmt;
use std::ops::BitOr;

/// One event or note.
///
/// To make one, start from [`Record::event`], [`Record::process`], [`Record::timestamp`] or
/// [`Record::message`] and fill in what differs from nothing:
///
/// ```
/// use trace::blktrace::{Action, Categories, DevT, Record};
/// let queued = Record {
///     sector: base::Sector(2048),
///     bytes: 4096,
///     pid: 77,
///     device: DevT::new(8, 0),
///     ..Record::event(Action::Queue, base::Instant::ZERO)
/// }
/// .with(Categories::WRITE | Categories::SYNC);
/// assert_eq!((queued.action.letter(), queued.rwbs().as_str()), ('Q', "WS"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, on the monotonic clock of the traced machine.
    pub time: Instant,
    /// Number of the event on its CPU, from 1; meaningless in notes, though mostly 0. A
    /// [`Recorder`](super::Recorder) assigns it.
    pub sequence: u32,
    /// First sector on the whole disk.
    pub sector: Sector,
    /// Length of the transfer; 0 for flushes, plugs and notes.
    pub bytes: u32,
    /// What happened.
    pub action: Action,
    /// To what kind of request.
    pub categories: Categories,
    /// The task that was running; of a completion, whoever happened to run.
    pub pid: u32,
    /// The traced device.
    pub device: DevT,
    /// The CPU that logged it.
    pub cpu: u32,
    /// A negative errno, or 0.
    pub error: i16,
    /// The control group, when the recording names them.
    pub cgroup: Option<u64>,
    /// What else there is to say.
    pub payload: Payload,
}

/// What a record says happened, with the letter that `blkparse` prints for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Q: a bio was queued.
    Queue,
    /// M: a bio was merged behind a request.
    BackMerge,
    /// F: a bio was merged before a request.
    FrontMerge,
    /// G: a request was allocated.
    GetRequest,
    /// S: somebody sleeps until a request is free.
    SleepRequest,
    /// R: a request came back from the driver.
    Requeue,
    /// D: a request went to the driver.
    Issue,
    /// C: a request, or a part of it, was completed.
    Complete,
    /// P: a task or queue was plugged.
    Plug,
    /// U: it was unplugged.
    Unplug,
    /// T: a timer unplugged it.
    UnplugTimer,
    /// I: a request was inserted into the scheduler.
    Insert,
    /// X: a bio was split.
    Split,
    /// B: a bio was copied to memory that the device reaches.
    Bounce,
    /// A: a bio was mapped from one device to another.
    Remap,
    /// A request was aborted.
    Abort,
    /// Something only a driver understands.
    DriverData,
    /// Version 8: a zone was plugged.
    ZonePlug,
    /// Version 8: a zone was unplugged.
    ZoneUnplug,
    /// Note: the name of a task.
    NoteProcess,
    /// Note: the wall-clock time of an instant.
    NoteTimestamp,
    /// Note: a message, as schedulers and throttling write them.
    NoteMessage,
    /// A code that is not known; with [`Categories::NOTIFY`], of a note.
    Other(u16),
}

/// Code and letter of every event that is known (rule trace-format-3), by code, from one.
const EVENTS: [(Action, u16, char); 19] = [
    (Action::Queue, 1, 'Q'),
    (Action::BackMerge, 2, 'M'),
    (Action::FrontMerge, 3, 'F'),
    (Action::GetRequest, 4, 'G'),
    (Action::SleepRequest, 5, 'S'),
    (Action::Requeue, 6, 'R'),
    (Action::Issue, 7, 'D'),
    (Action::Complete, 8, 'C'),
    (Action::Plug, 9, 'P'),
    (Action::Unplug, 10, 'U'),
    (Action::UnplugTimer, 11, 'T'),
    (Action::Insert, 12, 'I'),
    (Action::Split, 13, 'X'),
    (Action::Bounce, 14, 'B'),
    (Action::Remap, 15, 'A'),
    (Action::Abort, 16, '?'),
    (Action::DriverData, 17, '?'),
    (Action::ZonePlug, 18, '?'),
    (Action::ZoneUnplug, 19, '?'),
];

/// Code and letter of every note that is known, by code, from zero.
const NOTES: [(Action, u16, char); 3] =
    [(Action::NoteProcess, 0, '?'), (Action::NoteTimestamp, 1, '?'), (Action::NoteMessage, 2, 'm')];

impl Action {
    /// Those that have a letter.
    pub const PRINTED: [Action; 16] = [
        Action::Queue,
        Action::BackMerge,
        Action::FrontMerge,
        Action::GetRequest,
        Action::SleepRequest,
        Action::Requeue,
        Action::Issue,
        Action::Complete,
        Action::Plug,
        Action::Unplug,
        Action::UnplugTimer,
        Action::Insert,
        Action::Split,
        Action::Bounce,
        Action::Remap,
        Action::NoteMessage,
    ];

    /// The letter that `blkparse` prints; `?` for what it prints nothing for.
    pub fn letter(self) -> char {
        let known = EVENTS.iter().chain(&NOTES).find(|known| known.0 == self);
        known.map_or('?', |known| known.2)
    }

    /// Whether it is one of the notes that are known.
    pub const fn is_note(self) -> bool {
        matches!(self, Action::NoteProcess | Action::NoteTimestamp | Action::NoteMessage)
    }

    pub(super) fn from_code(code: u16, categories: Categories) -> Action {
        if categories.contains(Categories::NOTIFY) {
            return NOTES.get(usize::from(code)).map_or(Action::Other(code), |known| known.0);
        }
        let place = usize::from(code).wrapping_sub(1);
        EVENTS.get(place).map_or(Action::Other(code), |known| known.0)
    }

    pub(super) fn code(self) -> u16 {
        if let Action::Other(code) = self {
            return code;
        }
        let known = EVENTS.iter().chain(&NOTES).find(|known| known.0 == self);
        known.expect("every action but Other is in a table").1
    }
}

/// What kind of request a record is about: a set of the kernel's category bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Categories(u64);

impl Categories {
    /// None; what splits and bounces carry besides a direction.
    pub const NONE: Categories = Categories(0);
    /// Reads; also plugs, unplugs and pure flushes, which do not read.
    pub const READ: Categories = Categories(1);
    /// Writes, discards.
    pub const WRITE: Categories = Categories(1 << 1);
    /// Flush the cache first.
    pub const FLUSH: Categories = Categories(1 << 2);
    /// Somebody waits for it.
    pub const SYNC: Categories = Categories(1 << 3);
    /// Something in the queue.
    pub const QUEUE: Categories = Categories(1 << 4);
    /// A requeue.
    pub const REQUEUE: Categories = Categories(1 << 5);
    /// An issue.
    pub const ISSUE: Categories = Categories(1 << 6);
    /// A completion.
    pub const COMPLETE: Categories = Categories(1 << 7);
    /// A request of a file system or of a raw device's user.
    pub const FS: Categories = Categories(1 << 8);
    /// A passthrough command; has no sector.
    pub const PC: Categories = Categories(1 << 9);
    /// A note.
    pub const NOTIFY: Categories = Categories(1 << 10);
    /// Read-ahead.
    pub const AHEAD: Categories = Categories(1 << 11);
    /// File-system metadata.
    pub const META: Categories = Categories(1 << 12);
    /// Discards.
    pub const DISCARD: Categories = Categories(1 << 13);
    /// A driver's own.
    pub const DRV_DATA: Categories = Categories(1 << 14);
    /// Durable on completion.
    pub const FUA: Categories = Categories(1 << 15);
    /// Version 8: a zone append.
    pub const ZONE_APPEND: Categories = Categories(1 << 16);
    /// Version 8: any of reset, reset all, finish, open and close of a zone.
    pub const ZONE_MANAGEMENT: Categories = Categories(0b1_1111 << 17);
    /// Version 8: a write of zeroes; in version 7 it looks like a write.
    pub const WRITE_ZEROES: Categories = Categories(1 << 22);
    /// The operations on zones, with the letters that `blkparse` has for them (rule
    /// trace-format-5).
    pub const ZONES: [(Categories, &'static str); 6] = [
        (Categories::ZONE_APPEND, "ZA"),
        (Categories(1 << 17), "ZR"),
        (Categories(1 << 18), "ZRA"),
        (Categories(1 << 19), "ZF"),
        (Categories(1 << 20), "ZO"),
        (Categories(1 << 21), "ZC"),
    ];

    /// A set from its bits: those above the lowest 16 of the action field.
    pub const fn from_bits(bits: u64) -> Categories {
        Categories(bits)
    }

    /// The bits.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether all of `other` are in it.
    pub const fn contains(self, other: Categories) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is in it.
    pub const fn intersects(self, other: Categories) -> bool {
        self.0 & other.0 != 0
    }

    /// What the kernel sets for an action, besides direction and flags of the request.
    pub const fn of(action: Action) -> Categories {
        let bits = match action {
            Action::Queue
            | Action::BackMerge
            | Action::FrontMerge
            | Action::GetRequest
            | Action::SleepRequest
            | Action::Remap => Self::QUEUE.0,
            Action::Plug | Action::Unplug | Action::UnplugTimer => Self::QUEUE.0 | Self::READ.0,
            Action::Insert => Self::QUEUE.0 | Self::FS.0,
            Action::Requeue => Self::REQUEUE.0 | Self::FS.0,
            Action::Issue => Self::ISSUE.0 | Self::FS.0,
            Action::Complete => Self::COMPLETE.0 | Self::FS.0,
            Action::DriverData => Self::DRV_DATA.0,
            Action::NoteProcess | Action::NoteTimestamp | Action::NoteMessage => Self::NOTIFY.0,
            Action::Split
            | Action::Bounce
            | Action::Abort
            | Action::ZonePlug
            | Action::ZoneUnplug
            | Action::Other(_) => 0,
        };
        Categories(bits)
    }
}

impl BitOr for Categories {
    type Output = Categories;
    fn bitor(self, rhs: Categories) -> Categories {
        Categories(self.0 | rhs.0)
    }
}

/// A device number as the kernel has it inside: 12 bits major, 20 bits minor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DevT {
    major: u16,
    minor: u32,
}

impl DevT {
    /// `major:minor`; panics when either does not fit.
    pub const fn new(major: u32, minor: u32) -> DevT {
        assert!(major < 1 << 12, "a major number below 4096");
        assert!(minor < 1 << 20, "a minor number below 1048576");
        DevT { major: major as u16, minor }
    }

    /// From the number in a record (formats trap 5: not glibc's makedev).
    pub const fn from_bits(bits: u32) -> DevT {
        DevT { major: (bits >> 20) as u16, minor: bits & 0xf_ffff }
    }

    /// The number in a record.
    pub const fn to_bits(self) -> u32 {
        (self.major as u32) << 20 | self.minor
    }

    /// The major number.
    pub const fn major(self) -> u32 {
        self.major as u32
    }

    /// The minor number.
    pub const fn minor(self) -> u32 {
        self.minor
    }
}

impl fmt::Display for DevT {
    /// `8,0`, as `blkparse` prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.major, self.minor)
    }
}

/// What follows the header of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Nothing.
    None,
    /// The name of the task whose number is in the header, padded with zero bytes.
    Process([u8; 16]),
    /// The wall-clock time at [`Record::time`], since 1970.
    Timestamp {
        /// Whole seconds.
        seconds: u32,
        /// And nanoseconds.
        nanoseconds: u32,
    },
    /// The text of a message.
    Message(Vec<u8>),
    /// How many requests an unplug released.
    Unplug(u64),
    /// The sector at which a split starts its second half.
    Split(Sector),
    /// Where a remapped bio comes from and goes to; [`Record::sector`] is on the target.
    Remap {
        /// The device it was sent to.
        from: DevT,
        /// The device it was mapped to.
        to: DevT,
        /// The sector on the former.
        sector: Sector,
    },
    /// Anything else: passthrough commands, driver data, payloads of unknown shape.
    Opaque(Vec<u8>),
}

/// The longest message the kernel writes (BLK_TN_MAX_MSG).
const LONGEST_MESSAGE: usize = 128;

impl Record {
    /// An event at `time`, with the categories that belong to `action` and everything else zero.
    pub const fn event(action: Action, time: Instant) -> Record {
        Record {
            time,
            sequence: 0,
            sector: Sector(0),
            bytes: 0,
            action,
            categories: Categories::of(action),
            pid: 0,
            device: DevT { major: 0, minor: 0 },
            cpu: 0,
            error: 0,
            cgroup: None,
            payload: Payload::None,
        }
    }

    /// The note that task `pid` is called `name`, of which 15 bytes are kept.
    pub fn process(time: Instant, pid: u32, name: &str) -> Record {
        let mut comm = [0; 16];
        let length = name.len().min(15);
        comm[..length].copy_from_slice(&name.as_bytes()[..length]);
        let payload = Payload::Process(comm);
        Record { pid, payload, ..Record::event(Action::NoteProcess, time) }
    }

    /// The note that it was `seconds` and `nanoseconds` after 1970 at `time`.
    pub fn timestamp(time: Instant, seconds: u32, nanoseconds: u32) -> Record {
        let payload = Payload::Timestamp { seconds, nanoseconds };
        Record { payload, ..Record::event(Action::NoteTimestamp, time) }
    }

    /// A message, of which the 128 bytes are kept that a kernel keeps.
    pub fn message(time: Instant, text: &str) -> Record {
        let kept = text.len().min(LONGEST_MESSAGE);
        let payload = Payload::Message(text.as_bytes()[..kept].to_vec());
        Record { payload, ..Record::event(Action::NoteMessage, time) }
    }

    /// The same with `categories` added.
    pub fn with(mut self, categories: Categories) -> Record {
        self.categories = self.categories | categories;
        self
    }

    /// What the record's request does; `None` for plugs, notes, passthrough commands and whatever
    /// else moves no data and flushes nothing.
    ///
    /// A pure flush carries the READ bit, and so do plugs (formats trap 3): the bits alone do not
    /// tell.
    pub fn op(&self) -> Option<Op> {
        let set = |category| self.categories.intersects(category);
        match self.action {
            Action::Plug | Action::Unplug | Action::UnplugTimer => None,
            _ if set(Categories::NOTIFY | Categories::PC) => None,
            _ if self.bytes == 0 => set(Categories::FLUSH).then_some(Op::Flush),
            _ if set(Categories::DISCARD) => Some(Op::Discard),
            _ if set(Categories::WRITE) => Some(Op::Write),
            _ => Some(Op::Read),
        }
    }

    /// Direction and flags as `blkparse` prints them, `WS` for instance.
    pub fn rwbs(&self) -> String {
        let set = |category| self.categories.contains(category);
        if let Some((_, letters)) = Categories::ZONES.into_iter().find(|(zone, _)| set(*zone)) {
            return letters.to_owned();
        }
        let direction = match () {
            _ if set(Categories::DISCARD) => 'D',
            _ if set(Categories::WRITE) => 'W',
            _ if self.bytes > 0 => 'R',
            _ => 'N',
        };
        let mut out = String::new();
        out.extend(set(Categories::FLUSH).then_some('F'));
        out.push(direction);
        out.extend(set(Categories::FUA).then_some('F'));
        out.extend(set(Categories::AHEAD).then_some('A'));
        out.extend(set(Categories::SYNC).then_some('S'));
        out.extend(set(Categories::META).then_some('M'));
        out
    }

    /// The record as version 7 can tell it; `None` for what only version 8 knows.
    pub fn for_version_7(mut self) -> Option<Record> {
        if matches!(self.action, Action::ZonePlug | Action::ZoneUnplug) {
            return None;
        }
        self.categories = Categories(self.categories.0 & 0xffff);
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(action: Action, bytes: u32, categories: Categories) -> Record {
        Record { bytes, ..Record::event(action, Instant::ZERO) }.with(categories)
    }

    #[test]
    fn a_pure_flush_is_never_a_read() {
        let flush = event(Action::Queue, 0, Categories::READ | Categories::FLUSH);
        assert_eq!(flush.op(), Some(Op::Flush));
        let old = event(Action::Queue, 0, Categories::WRITE | Categories::FLUSH);
        assert_eq!(old.op(), Some(Op::Flush));
        let write = event(Action::Queue, 512, Categories::WRITE | Categories::FLUSH);
        assert_eq!(write.op(), Some(Op::Write));
    }

    #[test]
    fn a_plug_is_never_a_read() {
        for action in [Action::Plug, Action::Unplug, Action::UnplugTimer] {
            assert!(Categories::of(action).contains(Categories::READ));
            assert_eq!(event(action, 0, Categories::NONE).op(), None);
            assert_eq!(event(action, 4096, Categories::NONE).op(), None);
        }
    }

    #[test]
    fn a_passthrough_command_moves_no_sectors() {
        assert_eq!(event(Action::Issue, 36, Categories::READ | Categories::PC).op(), None);
    }

    #[test]
    fn flags_are_spelt_in_blkparse_order() {
        let all = Categories::WRITE
            | Categories::FLUSH
            | Categories::FUA
            | Categories::AHEAD
            | Categories::SYNC
            | Categories::META;
        assert_eq!(event(Action::Queue, 512, all).rwbs(), "FWFASM");
        assert_eq!(event(Action::Plug, 0, Categories::NONE).rwbs(), "N");
        let discard = Categories::WRITE | Categories::DISCARD;
        assert_eq!(event(Action::Queue, 512, discard).rwbs(), "D");
    }

    #[test]
    fn a_device_number_is_major_shifted_by_twenty() {
        assert_eq!(DevT::new(253, 3).to_bits(), 0x0fd0_0003);
        assert_eq!(DevT::from_bits(0x0080_0002), DevT::new(8, 2));
        assert_eq!(DevT::new(8, 2).to_string(), "8,2");
    }

    #[test]
    fn every_action_survives_its_code() {
        for (action, code, _) in EVENTS {
            assert_eq!(action.code(), code);
            assert_eq!(Action::from_code(code, Categories::NONE), action);
        }
        for (action, code, _) in NOTES {
            assert_eq!(Action::from_code(code, Categories::NOTIFY), action);
        }
        assert_eq!(Action::from_code(77, Categories::NONE), Action::Other(77));
    }

    #[test]
    fn version_7_forgets_what_it_cannot_tell() {
        assert_eq!(event(Action::ZonePlug, 0, Categories::NONE).for_version_7(), None);
        let zeroes = event(Action::Queue, 512, Categories::WRITE | Categories::WRITE_ZEROES);
        assert_eq!(zeroes.for_version_7(), Some(event(Action::Queue, 512, Categories::WRITE)));
    }
}
