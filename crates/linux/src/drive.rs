//! A disk of the guest: virtio-blk requests on one side, a device model on the other.
//!
//! Data moves when a request arrives; its completion is told when the model says so. What the
//! model does not know (a request for the disk's name, a request that makes no sense) takes no
//! time.

use std::collections::VecDeque;

use base::{Instant, Sector, Sectors};
use block::command::{Command, CommandOp, Facts, Tag};
use device::Device;

use crate::error::RunError;
use crate::log::{DeviceLog, Served};
use crate::memory::GuestMemory;
use crate::ring::{Chain, INDIRECT_FEATURE, Segment};
use crate::store::{Contents, StoreError};

/// Types of a request (virtio 1.2, 5.2.6).
mod kind {
    pub const IN: u32 = 0;
    pub const OUT: u32 = 1;
    pub const FLUSH: u32 = 4;
    pub const GET_ID: u32 = 8;
    pub const DISCARD: u32 = 11;
}

/// How a request ended (virtio 1.2, 5.2.6).
mod status {
    pub const OK: u8 = 0;
    pub const ERROR: u8 = 1;
    pub const UNSUPPORTED: u8 = 2;
}

/// Features of a disk (section 4 of the findings; virtio 1.2, 5.2.3).
mod feature {
    pub const SEG_MAX: u64 = 1 << 2;
    pub const BLK_SIZE: u64 = 1 << 6;
    pub const FLUSH: u64 = 1 << 9;
    pub const DISCARD: u64 = 1 << 13;
    pub const VERSION_1: u64 = 1 << 32;
}

/// Bytes in a request's header: u32 type, u32 ioprio, u64 sector.
const HEADER: usize = 16;
/// Bytes of the disk's name.
const NAME: usize = 20;
/// The ring has 256 entries, and a request needs one for its header and one for its status.
const MOST_SEGMENTS: u32 = 254;

/// A request that the device works on.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    head: u16,
    /// Where the status byte goes.
    status: u64,
    /// Bytes that the guest finds written, the status included.
    written: u32,
    /// Its line in the log.
    line: usize,
}

/// A request that is answered without the device.
#[derive(Clone, Copy, Debug)]
struct Answered {
    at: Instant,
    head: u16,
    status: u64,
    written: u32,
    result: u8,
}

/// A request that is done and goes back to the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub head: u16,
    pub written: u32,
}

/// A disk: a device model and what is stored on it.
pub(crate) struct Drive {
    number: u32,
    name: String,
    device: Box<dyn Device>,
    contents: Contents,
    /// By tag.
    in_flight: Vec<Option<InFlight>>,
    answered: VecDeque<Answered>,
    completed: Vec<Tag>,
}

impl Drive {
    /// The disk of this number and name.
    pub fn new(number: u32, name: String, device: Box<dyn Device>, contents: Contents) -> Drive {
        Drive {
            number,
            name,
            device,
            contents,
            in_flight: Vec::new(),
            answered: VecDeque::new(),
            completed: Vec::new(),
        }
    }

    /// What is stored.
    pub fn into_contents(self) -> Contents {
        self.contents
    }

    /// What it says of itself as a virtio device.
    pub fn features(&self) -> u64 {
        let facts = self.device.facts();
        let mut features =
            feature::VERSION_1 | INDIRECT_FEATURE | feature::SEG_MAX | feature::BLK_SIZE;
        // Without it the guest shows the cache as "write through" and sends no flushes.
        if facts.volatile_cache {
            features |= feature::FLUSH;
        }
        if facts.discard {
            features |= feature::DISCARD;
        }
        features
    }

    /// Its configuration space (section 4 of the findings; virtio 1.2, 5.2.4).
    pub fn configuration(&self) -> Vec<u8> {
        let facts = self.device.facts();
        let mut bytes = vec![0; 60];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &capacity(facts).to_le_bytes());
        put(12, &segments(facts).to_le_bytes());
        put(20, &facts.logical_block.to_le_bytes());
        put(32, &[u8::from(facts.volatile_cache)]);
        put(34, &1u16.to_le_bytes());
        if facts.discard {
            // As large as a request can be, in one piece, aligned to blocks.
            put(36, &(u32::MAX / Sector::SIZE as u32).to_le_bytes());
            put(40, &1u32.to_le_bytes());
            put(44, &(facts.logical_block / Sector::SIZE as u32).to_le_bytes());
        }
        bytes
    }

    /// When something is due next.
    pub fn next_event(&self) -> Option<Instant> {
        let answered = self.answered.front().map(|answered| answered.at);
        match (self.device.next_event(), answered) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Takes a request at `now`.
    pub fn accept(
        &mut self,
        now: Instant,
        chain: &Chain,
        memory: &GuestMemory,
        log: &mut DeviceLog,
    ) -> Result<(), RunError> {
        let request = Request::read(chain, memory)?;
        let (op, written) = match self.transfer(&request, memory)? {
            Transfer::Command(op, written) => (op, written),
            Transfer::Answer(result, written) => {
                let (head, status) = (chain.head, request.status);
                self.answered.push_back(Answered { at: now, head, status, written, result });
                return Ok(());
            }
        };
        let tag = self.free_tag()?;
        let (sector, sectors) = request.range(op);
        log.served.push(Served {
            disk: self.number,
            op,
            sector,
            sectors,
            tag: tag.0,
            ioprio: request.ioprio,
            accepted: now,
            completed: Instant::FAR_FUTURE,
        });
        self.in_flight[tag.0 as usize] = Some(InFlight {
            head: chain.head,
            status: request.status,
            written,
            line: log.served.len() - 1,
        });
        self.device.accept(now, Command { tag, op, sector, sectors, fua: false });
        Ok(())
    }

    /// Does what is due at `now`; requests that are done are appended to `done`.
    pub fn advance(
        &mut self,
        now: Instant,
        memory: &GuestMemory,
        log: &mut DeviceLog,
        done: &mut Vec<Done>,
    ) -> Result<(), RunError> {
        while let Some(answered) = self.answered.front().filter(|answered| answered.at <= now) {
            memory.write(answered.status, &[answered.result])?;
            done.push(Done { head: answered.head, written: answered.written });
            self.answered.pop_front();
        }
        self.completed.clear();
        if self.device.next_event().is_some_and(|at| at <= now) {
            self.device.advance(now, &mut self.completed);
        }
        for tag in &self.completed {
            let finished = self.in_flight.get_mut(tag.0 as usize).and_then(Option::take);
            let finished = finished.expect("a device completes what it was given, once");
            memory.write(finished.status, &[status::OK])?;
            log.served[finished.line].completed = now;
            done.push(Done { head: finished.head, written: finished.written });
        }
        Ok(())
    }

    /// The lowest tag that is free.
    fn free_tag(&mut self) -> Result<Tag, RunError> {
        let free = self.in_flight.iter().position(Option::is_none);
        let tag = free.unwrap_or_else(|| {
            self.in_flight.push(None);
            self.in_flight.len() - 1
        });
        let depth = self.device.facts().queue_depth;
        match (tag as u32) < depth {
            true => Ok(Tag(tag as u32)),
            false => {
                let name = &self.name;
                let what =
                    format!("more than {depth} requests in disk {name}, which takes no more");
                Err(RunError::protocol(what))
            }
        }
    }

    /// Moves the data of a request and says what the device is to do about it.
    fn transfer(
        &mut self,
        request: &Request<'_>,
        memory: &GuestMemory,
    ) -> Result<Transfer, RunError> {
        let facts = self.device.facts();
        let capacity = capacity(facts) * Sector::SIZE;
        let inside = |sector: u64, length: u64| {
            let at = sector.checked_mul(Sector::SIZE);
            let end = at.and_then(|at| at.checked_add(length));
            length > 0
                && length.is_multiple_of(u64::from(facts.logical_block))
                && sector.is_multiple_of(u64::from(facts.logical_block) / Sector::SIZE)
                && end.is_some_and(|end| end <= capacity)
        };
        let transferred = request.length();
        match request.kind {
            kind::IN if inside(request.sector, transferred) => {
                self.read(request, memory)?;
                Ok(Transfer::Command(CommandOp::Read, transferred as u32 + 1))
            }
            kind::OUT if inside(request.sector, transferred) => {
                self.write(request, memory)?;
                Ok(Transfer::Command(CommandOp::Write, 1))
            }
            kind::FLUSH if facts.volatile_cache => Ok(Transfer::Command(CommandOp::Flush, 1)),
            kind::DISCARD if facts.discard => match request.discard {
                Some((sector, sectors)) if inside(sector, u64::from(sectors) * Sector::SIZE) => {
                    let length = u64::from(sectors) * Sector::SIZE;
                    self.contents.discard(sector * Sector::SIZE, length);
                    Ok(Transfer::Command(CommandOp::Discard, 1))
                }
                _ => Ok(Transfer::Answer(status::ERROR, 1)),
            },
            kind::GET_ID => self.tell_name(request, memory),
            kind::IN | kind::OUT => Ok(Transfer::Answer(status::ERROR, 1)),
            _ => Ok(Transfer::Answer(status::UNSUPPORTED, 1)),
        }
    }

    fn read(&self, request: &Request<'_>, memory: &GuestMemory) -> Result<(), RunError> {
        let mut at = request.sector * Sector::SIZE;
        for segment in request.data {
            let read = self.contents.read(memory, at, segment.address, segment.length as usize);
            read.map_err(|error| self.failed(error))?;
            at += u64::from(segment.length);
        }
        Ok(())
    }

    fn write(&mut self, request: &Request<'_>, memory: &GuestMemory) -> Result<(), RunError> {
        let mut at = request.sector * Sector::SIZE;
        for segment in request.data {
            let written = self.contents.write(memory, at, segment.address, segment.length as usize);
            written.map_err(|error| self.failed(error))?;
            at += u64::from(segment.length);
        }
        Ok(())
    }

    /// What could not be moved ends the run.
    fn failed(&self, error: StoreError) -> RunError {
        match error {
            StoreError::Memory(outside) => outside.into(),
            StoreError::File(directory, cause) => {
                RunError::Spill { disk: self.name.clone(), directory, cause }
            }
        }
    }

    fn tell_name(&self, request: &Request<'_>, memory: &GuestMemory) -> Result<Transfer, RunError> {
        let Some(room) = request.data.first().filter(|room| room.length as usize >= NAME) else {
            return Ok(Transfer::Answer(status::ERROR, 1));
        };
        let mut name = [0; NAME];
        let length = self.name.len().min(NAME);
        name[..length].copy_from_slice(&self.name.as_bytes()[..length]);
        memory.write(room.address, &name)?;
        Ok(Transfer::Answer(status::OK, NAME as u32 + 1))
    }
}

/// What is to be done about a request, and how many bytes the guest will find written.
enum Transfer {
    Command(CommandOp, u32),
    Answer(u8, u32),
}

/// Sectors of a disk, whole logical blocks.
fn capacity(facts: &Facts) -> u64 {
    (facts.capacity.0 - facts.capacity.0 % u64::from(facts.logical_block)) / Sector::SIZE
}

/// Segments in a request at most.
pub(crate) fn segments(facts: &Facts) -> u32 {
    u32::from(facts.max_segments).clamp(1, MOST_SEGMENTS)
}

/// A request's header and the places of its parts.
struct Request<'a> {
    kind: u32,
    ioprio: u16,
    sector: u64,
    data: &'a [Segment],
    status: u64,
    discard: Option<(u64, u32)>,
}

impl<'a> Request<'a> {
    fn read(chain: &'a Chain, memory: &GuestMemory) -> Result<Request<'a>, RunError> {
        let malformed = |what: &str| RunError::protocol(format!("a request {what}"));
        let (first, rest) =
            chain.readable.split_first().ok_or_else(|| malformed("without a header"))?;
        if first.length as usize != HEADER {
            return Err(malformed("whose header is not by itself"));
        }
        let bytes: [u8; HEADER] = memory.array(first.address)?;
        let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("4 bytes"));
        let (last, room) =
            chain.writable.split_last().ok_or_else(|| malformed("without room for a status"))?;
        if last.length != 1 {
            return Err(malformed("whose status is not by itself"));
        }
        let kind = word(0);
        let discard = match (kind, rest) {
            // u64 sector, u32 sectors, u32 flags.
            (kind::DISCARD, [Segment { address, length: 16 }]) => {
                let sector = u64::from_le_bytes(memory.array(*address)?);
                Some((sector, u32::from_le_bytes(memory.array(*address + 8)?)))
            }
            _ => None,
        };
        Ok(Request {
            kind,
            ioprio: word(4) as u16,
            sector: u64::from_le_bytes(*bytes[8..].first_chunk().expect("8 bytes")),
            data: if kind == kind::OUT { rest } else { room },
            status: last.address,
            discard,
        })
    }

    fn length(&self) -> u64 {
        self.data.iter().map(|segment| u64::from(segment.length)).sum()
    }

    fn range(&self, op: CommandOp) -> (Sector, Sectors) {
        match (op, self.discard) {
            (CommandOp::Flush, _) => (Sector(0), Sectors(0)),
            (CommandOp::Discard, Some((sector, sectors))) => (Sector(sector), Sectors(sectors)),
            _ => (Sector(self.sector), Sectors((self.length() / Sector::SIZE) as u32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Bytes;
    use block::command::Transport;

    use crate::memory::PAGE;

    /// Where the tests put the parts of a request.
    const DATA: u64 = 0x1000;
    const STATUS: u64 = 0x20;

    /// A disk of 100 sectors that never finishes anything.
    struct Stuck(Facts);

    impl Device for Stuck {
        fn facts(&self) -> &Facts {
            &self.0
        }
        fn accept(&mut self, _now: Instant, _command: Command) {}
        fn next_event(&self) -> Option<Instant> {
            None
        }
        fn advance(&mut self, _now: Instant, _completed: &mut Vec<Tag>) {}
    }

    fn drive(volatile_cache: bool) -> Drive {
        let facts = Facts {
            transport: Transport::Virtio,
            capacity: Bytes(100 * Sector::SIZE),
            rotational: false,
            volatile_cache,
            fua: false,
            queue_depth: 2,
            hardware_queues: 1,
            logical_block: 512,
            max_hw_sectors: Sectors(256),
            max_segments: 300,
            discard: false,
            chunk_sectors: Sectors(0),
            segment: Facts::PAGE,
        };
        Drive::new(0, "disk".into(), Box::new(Stuck(facts)), Contents::forgetful())
    }

    /// Hands over a request and says how it was answered, if the device did not get it.
    fn ask(drive: &mut Drive, kind: u32, sector: u64, length: u32) -> Result<Option<u8>, RunError> {
        let memory = GuestMemory::zeros(4 * PAGE, 0);
        memory.write(0, &kind.to_le_bytes()).unwrap();
        memory.write(8, &sector.to_le_bytes()).unwrap();
        memory.write(STATUS, &[99]).unwrap();
        let (data, status) =
            (Segment { address: DATA, length }, Segment { address: STATUS, length: 1 });
        let header = Segment { address: 0, length: HEADER as u32 };
        let mut chain = Chain { head: 5, readable: vec![header], writable: vec![status] };
        match kind {
            kind::OUT => chain.readable.push(data),
            _ if length > 0 => chain.writable.insert(0, data),
            _ => {}
        }
        let (mut log, mut done) = (DeviceLog::default(), Vec::new());
        drive.accept(Instant::ZERO, &chain, &memory, &mut log)?;
        drive.advance(Instant::ZERO, &memory, &mut log, &mut done)?;
        let answered = done.first().map(|_| memory.array::<1>(STATUS).unwrap()[0]);
        assert_eq!(answered.is_none(), log.served.len() == 1);
        Ok(answered)
    }

    #[test]
    fn only_what_lies_on_the_disk_reaches_the_device() {
        let mut drive = drive(true);
        assert_eq!(ask(&mut drive, kind::IN, 92, 4096).unwrap(), None);
        assert_eq!(ask(&mut drive, kind::IN, 93, 4096).unwrap(), Some(status::ERROR));
        assert_eq!(ask(&mut drive, kind::OUT, u64::MAX, 512).unwrap(), Some(status::ERROR));
        assert_eq!(ask(&mut drive, kind::OUT, 0, 100).unwrap(), Some(status::ERROR));
        assert_eq!(ask(&mut drive, kind::DISCARD, 0, 0).unwrap(), Some(status::UNSUPPORTED));
        assert_eq!(ask(&mut drive, kind::GET_ID, 0, 20).unwrap(), Some(status::OK));
        assert_eq!(ask(&mut drive, kind::FLUSH, 0, 0).unwrap(), None);
        let refused = ask(&mut drive, kind::FLUSH, 0, 0).unwrap_err().to_string();
        assert!(refused.contains("more than 2 requests in disk disk"), "{refused}");
    }

    #[test]
    fn a_disk_without_a_cache_offers_no_flush() {
        let mut drive = drive(false);
        assert_eq!(drive.features() & feature::FLUSH, 0);
        assert_eq!(ask(&mut drive, kind::FLUSH, 0, 0).unwrap(), Some(status::UNSUPPORTED));
    }

    #[test]
    fn the_configuration_says_what_the_model_says() {
        let bytes = drive(true).configuration();
        assert_eq!(bytes[..8], 100u64.to_le_bytes());
        assert_eq!(bytes[12..16], 254u32.to_le_bytes());
        assert_eq!(bytes[20..24], 512u32.to_le_bytes());
        assert_eq!((bytes[32], bytes[34]), (1, 1));
    }
}
