//! The guest's clock: our side of User-Mode Linux's time protocol.
//!
//! The guest runs until it says that it waits; then the controller decides what time it is and
//! lets it run again. With shared memory (6.12) times stand in a page that both sides map; an
//! older kernel (6.1) says everything by messages. Which one it is shows after its first message.
//!
//! Sections cited are those of the project's findings on Linux in virtual time.

use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::{Acquire, Release};

use base::{Duration, Instant};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::error::RunError;
use crate::memory::{PAGE, SharedPages};

/// Operations of a message (section 3).
mod op {
    pub const ACK: u32 = 0;
    pub const START: u32 = 1;
    pub const REQUEST: u32 = 2;
    pub const WAIT: u32 = 3;
    pub const GET: u32 = 4;
    pub const UPDATE: u32 = 5;
    pub const RUN: u32 = 6;
    pub const FREE_UNTIL: u32 = 7;
    pub const GET_TOD: u32 = 8;
}

/// Where things stand in the shared pages (section 3).
mod at {
    use super::PAGE;
    pub const VERSION: usize = 0;
    pub const LENGTH: usize = 4;
    pub const FREE_UNTIL: usize = 8;
    pub const CURRENT_TIME: usize = 16;
    pub const RUNNING_ID: usize = 24;
    pub const MAX_CLIENTS: usize = 26;
    /// Slot 0 is the controller's.
    pub const CONTROLLER: usize = PAGE;
    pub const GUEST: usize = PAGE + 128;
    pub const CAPABILITIES: usize = 0;
    pub const FLAGS: usize = 4;
    pub const REQUEST_TIME: usize = 8;
}

/// The version of the shared pages that 6.12 understands (section 3).
const VERSION: u32 = 2;
/// A client that reads and writes times in the shared pages (section 3).
const SHARES_TIME: u32 = 1;
/// The request time in a slot is valid (section 3).
const REQUESTED: u32 = 1;
/// The guest's number; the controller is 0 (section 3).
const GUEST_ID: u16 = 1;
/// A request at or after this is none: an idle guest asks for the end of time (section 3).
const NEVER: u64 = 1 << 62;
/// How long the guest may run alone at most. An unbounded horizon is fatal (section 3), and a
/// guest that comes back now and then can be watched: one that does nothing but read its clock
/// needs some seconds of real time for this (measured: 256 ns a reading, which takes 20 to 40 us).
const HORIZON: Duration = Duration::from_millis(50);
/// The wall clock of a guest when it boots: 1 January 2025, in nanoseconds since 1970 (assumed;
/// any constant will do).
const EPOCH: u64 = 1_735_689_600_000_000_000;

/// How the two sides tell each other the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// In shared memory if the kernel can, by messages otherwise.
    SharedMemory,
    /// By messages, which every kernel can. Slower; requests are served at the same times.
    Messages,
}

/// Our end of the guest's clock.
pub(crate) struct Clock {
    link: UnixStream,
    pages: SharedPages,
    /// Unknown until the guest's first message after START.
    protocol: Option<Protocol>,
    started: bool,
    waiting: bool,
    /// Message mode: the time, as far as the guest told us.
    now: u64,
    /// Message mode: when the guest wants to run.
    requested: Option<u64>,
    /// Until when the guest may run alone.
    free_until: u64,
    sequence: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    op: u32,
    sequence: u32,
    time: u64,
}

impl Clock {
    /// A clock on the connection that a guest has made.
    pub fn new(link: UnixStream, offer: Protocol) -> io::Result<Clock> {
        let pages = SharedPages::new(2 * PAGE)?;
        // To refuse shared memory is to show a version that is not understood (section 3).
        let version = if offer == Protocol::SharedMemory { VERSION } else { 0 };
        pages.u32(at::VERSION).store(version, Release);
        pages.u32(at::LENGTH).store(2 * PAGE as u32, Release);
        pages.u16(at::MAX_CLIENTS).store(2, Release);
        // Without it the guest would send messages while the controller runs (section 3).
        pages.u32(at::CONTROLLER + at::CAPABILITIES).store(SHARES_TIME, Release);
        Ok(Clock {
            link,
            pages,
            protocol: None,
            started: false,
            waiting: false,
            now: 0,
            requested: None,
            free_until: 0,
            sequence: 0,
        })
    }

    /// What to poll for the guest's messages.
    pub fn link(&self) -> &UnixStream {
        &self.link
    }

    /// Whether the guest has said that it is there.
    pub fn started(&self) -> bool {
        self.started
    }

    /// Whether the guest waits until it may run.
    pub fn waiting(&self) -> bool {
        self.waiting
    }

    /// What time it is for the guest.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(match self.shared() {
            true => self.pages.u64(at::CURRENT_TIME).load(Acquire),
            false => self.now,
        })
    }

    /// When the guest wants to run next, if ever.
    pub fn request(&self) -> Option<Instant> {
        let time = match self.shared() {
            true => {
                let flags = self.pages.u32(at::GUEST + at::FLAGS).load(Acquire);
                let time = self.pages.u64(at::GUEST + at::REQUEST_TIME).load(Acquire);
                (flags & REQUESTED != 0).then_some(time)
            }
            false => self.requested,
        };
        time.filter(|time| *time < NEVER).map(Instant::from_nanos)
    }

    /// Reads and answers one message; `false` when the guest has hung up.
    pub fn serve(&mut self) -> Result<bool, RunError> {
        match self.receive()? {
            None => Ok(false),
            Some(message) => self.answer(message).map(|()| true),
        }
    }

    /// Moves a waiting guest's clock: the controller is the one running.
    pub fn set_now(&mut self, now: Instant) {
        debug_assert!(self.waiting, "only a guest that waits has its clock set");
        self.now = now.as_nanos();
        if self.shared() {
            self.pages.u16(at::RUNNING_ID).store(0, Release);
            self.pages.u64(at::CURRENT_TIME).store(now.as_nanos(), Release);
        }
    }

    /// Lets the guest run at `now`; something else happens at `next` at the earliest.
    pub fn run_guest(&mut self, now: Instant, next: Option<Instant>) -> Result<(), RunError> {
        self.set_now(now);
        let horizon = now.saturating_add(HORIZON);
        self.free_until = next.map_or(horizon, |next| next.min(horizon)).as_nanos();
        self.waiting = false;
        self.requested = None;
        if self.shared() {
            self.pages.u64(at::FREE_UNTIL).store(self.free_until, Release);
            self.pages.u16(at::RUNNING_ID).store(GUEST_ID, Release);
            // Not acknowledged in this mode (section 3).
            return self.send(op::RUN, now.as_nanos()).map(|_| ());
        }
        // It is forgotten at each wait (section 3).
        self.send_acknowledged(op::FREE_UNTIL, self.free_until)?;
        self.send_acknowledged(op::RUN, now.as_nanos())
    }

    /// Tells the running guest that something happens at `next`, maybe sooner than it knew.
    ///
    /// Must come before the answer to whatever brought this about (section 3).
    pub fn expect(&mut self, next: Option<Instant>) -> Result<(), RunError> {
        let Some(next) = next.map(Instant::as_nanos).filter(|next| *next < self.free_until) else {
            return Ok(());
        };
        self.free_until = next;
        match self.shared() {
            true => {
                self.pages.u64(at::FREE_UNTIL).store(next, Release);
                Ok(())
            }
            false => self.send_acknowledged(op::FREE_UNTIL, next),
        }
    }

    /// Whether times stand in memory that both sides see.
    pub fn shared(&self) -> bool {
        self.protocol == Some(Protocol::SharedMemory)
    }

    fn answer(&mut self, message: Message) -> Result<(), RunError> {
        if self.started && self.protocol.is_none() {
            self.detect();
        }
        let mut answer = Message { op: op::ACK, sequence: message.sequence, time: 0 };
        match message.op {
            op::START => return self.start(message),
            op::REQUEST => self.requested = Some(message.time),
            op::WAIT => {
                self.waiting = true;
                if self.shared() {
                    return Ok(());
                }
            }
            op::GET => answer.time = self.now().as_nanos(),
            op::UPDATE => self.now = message.time,
            op::GET_TOD => answer.time = EPOCH + self.now().as_nanos(),
            op => {
                let what = format!("time message {op} at {}", self.now());
                return Err(RunError::Protocol { what });
            }
        }
        self.write(answer)
    }

    /// A guest that can use the shared pages has said so in its slot by now (section 3).
    fn detect(&mut self) {
        let capabilities = self.pages.u32(at::GUEST + at::CAPABILITIES).load(Acquire);
        let shares = capabilities & SHARES_TIME != 0;
        self.protocol = Some(if shares { Protocol::SharedMemory } else { Protocol::Messages });
    }

    /// Answers START. The guest takes exactly two descriptors without looking whether any came
    /// (section 3): the pages, and a log that nobody reads.
    fn start(&mut self, message: Message) -> Result<(), RunError> {
        let log = std::fs::File::options()
            .write(true)
            .open("/dev/null")
            .map_err(|cause| RunError::file("opening", "/dev/null", cause))?;
        self.free_until = HORIZON.as_nanos();
        self.pages.u64(at::FREE_UNTIL).store(self.free_until, Release);
        // It runs as soon as it has the answer, and panics if it were not its turn (section 3).
        self.pages.u16(at::RUNNING_ID).store(GUEST_ID, Release);
        let descriptors = [self.pages.file(), log.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let answer = Message { op: op::ACK, sequence: message.sequence, time: u64::from(GUEST_ID) };
        let bytes = answer.bytes();
        sendmsg(&self.link, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)
            .map_err(|cause| RunError::link("time", cause.into()))?;
        self.started = true;
        Ok(())
    }

    /// Sends a message and waits for its acknowledgement, answering what comes before it.
    fn send_acknowledged(&mut self, op: u32, time: u64) -> Result<(), RunError> {
        let sequence = self.send(op, time)?;
        loop {
            match self.receive()? {
                None => return Err(RunError::HungUp),
                Some(message) if message.op != op::ACK => self.answer(message)?,
                Some(message) if message.sequence == sequence => return Ok(()),
                Some(message) => {
                    let what = format!("acknowledgement {} of {sequence}", message.sequence);
                    return Err(RunError::Protocol { what });
                }
            }
        }
    }

    fn send(&mut self, op: u32, time: u64) -> Result<u32, RunError> {
        self.sequence = self.sequence.wrapping_add(1);
        self.write(Message { op, sequence: self.sequence, time })?;
        Ok(self.sequence)
    }

    fn write(&mut self, message: Message) -> Result<(), RunError> {
        self.link.write_all(&message.bytes()).map_err(|cause| RunError::link("time", cause))
    }

    fn receive(&mut self) -> Result<Option<Message>, RunError> {
        let mut bytes = [0; 16];
        match self.link.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(Message::read(&bytes))),
            Err(cause) if RunError::is_hang_up(&cause) => Ok(None),
            Err(cause) => Err(RunError::link("time", cause)),
        }
    }
}

impl Message {
    fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[0..4].copy_from_slice(&self.op.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.time.to_ne_bytes());
        bytes
    }

    fn read(bytes: &[u8; 16]) -> Message {
        let word = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().expect("4 bytes"));
        let time = u64::from_ne_bytes(*bytes[8..].first_chunk().expect("8 bytes"));
        Message { op: word(0), sequence: word(4), time }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::IoSliceMut;
    use std::os::fd::OwnedFd;

    use crate::memory::GuestMemory;
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

    /// The guest's end. What it will answer is sent before it is asked.
    struct FakeGuest {
        link: UnixStream,
    }

    impl FakeGuest {
        fn send(&mut self, op: u32, sequence: u32, time: u64) {
            self.link.write_all(&Message { op, sequence, time }.bytes()).unwrap();
        }

        fn heard(&mut self) -> (u32, u64) {
            let mut bytes = [0; 16];
            self.link.read_exact(&mut bytes).unwrap();
            let message = Message::read(&bytes);
            (message.op, message.time)
        }

        /// Reads the answer to START and the descriptors in it.
        fn started(&mut self) -> Vec<OwnedFd> {
            let mut bytes = [0; 16];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut slices = [IoSliceMut::new(&mut bytes)];
            recvmsg(&self.link, &mut slices, &mut control, RecvFlags::empty()).unwrap();
            let mut descriptors = Vec::new();
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(received) = message {
                    descriptors.extend(received);
                }
            }
            assert_eq!(Message::read(&bytes), Message { op: op::ACK, sequence: 7, time: 1 });
            descriptors
        }

        fn is_silent(&self) -> bool {
            self.link.set_nonblocking(true).unwrap();
            let read = (&self.link).read(&mut [0]);
            self.link.set_nonblocking(false).unwrap();
            read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        }
    }

    fn pair(offer: Protocol) -> (Clock, FakeGuest, Vec<OwnedFd>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut clock = Clock::new(ours, offer).unwrap();
        let mut guest = FakeGuest { link: theirs };
        guest.send(op::START, 7, 0);
        assert!(clock.serve().unwrap());
        let descriptors = guest.started();
        (clock, guest, descriptors)
    }

    fn map(descriptors: &[OwnedFd]) -> GuestMemory {
        let file = File::from(descriptors[0].try_clone().unwrap());
        GuestMemory::map(file, 2 * PAGE, 0).unwrap()
    }

    fn nanos(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn the_answer_to_start_carries_two_descriptors_in_either_mode() {
        for offer in [Protocol::SharedMemory, Protocol::Messages] {
            let (clock, _guest, descriptors) = pair(offer);
            assert_eq!(descriptors.len(), 2);
            assert!(clock.started() && !clock.waiting());
        }
    }

    #[test]
    fn with_shared_memory_neither_wait_nor_run_is_acknowledged() {
        let (mut clock, mut guest, descriptors) = pair(Protocol::SharedMemory);
        let page = map(&descriptors);
        let put = |offset: usize, bytes: &[u8]| page.write(offset as u64, bytes).unwrap();
        put(at::GUEST + at::CAPABILITIES, &SHARES_TIME.to_ne_bytes());
        put(at::CURRENT_TIME, &500u64.to_ne_bytes());
        put(at::GUEST + at::REQUEST_TIME, &900u64.to_ne_bytes());
        guest.send(op::WAIT, 8, 0);
        assert!(clock.serve().unwrap());
        assert!(clock.waiting() && guest.is_silent());
        assert_eq!((clock.now(), clock.request()), (nanos(500), None));
        put(at::GUEST + at::FLAGS, &REQUESTED.to_ne_bytes());
        assert_eq!(clock.request(), Some(nanos(900)));
        clock.run_guest(nanos(900), Some(nanos(1000))).unwrap();
        assert_eq!(guest.heard(), (op::RUN, 900));
        assert_eq!(clock.pages.u64(at::FREE_UNTIL).load(Acquire), 1000);
        clock.expect(Some(nanos(950))).unwrap();
        assert_eq!(clock.pages.u64(at::FREE_UNTIL).load(Acquire), 950);
        assert!(guest.is_silent());
        put(at::GUEST + at::REQUEST_TIME, &NEVER.to_ne_bytes());
        assert_eq!(clock.request(), None, "an idle guest asks for the end of time");
    }

    #[test]
    fn by_messages_everything_is_acknowledged_and_the_horizon_is_sent_before_each_run() {
        let (mut clock, mut guest, _descriptors) = pair(Protocol::Messages);
        guest.send(op::UPDATE, 8, 500);
        guest.send(op::GET, 9, 0);
        guest.send(op::REQUEST, 10, 900);
        guest.send(op::WAIT, 11, 0);
        for _ in 0..4 {
            assert!(clock.serve().unwrap());
        }
        let heard: Vec<_> = (0..4).map(|_| guest.heard()).collect();
        assert_eq!(heard, [(op::ACK, 0), (op::ACK, 500), (op::ACK, 0), (op::ACK, 0)]);
        assert_eq!((clock.waiting(), clock.request()), (true, Some(nanos(900))));
        guest.send(op::ACK, 1, 0);
        guest.send(op::ACK, 2, 0);
        clock.run_guest(nanos(900), Some(nanos(1000))).unwrap();
        assert_eq!([guest.heard(), guest.heard()], [(op::FREE_UNTIL, 1000), (op::RUN, 900)]);
        guest.send(op::ACK, 9, 0);
        let refused = clock.expect(Some(nanos(950))).unwrap_err().to_string();
        assert!(refused.contains("acknowledgement 9 of 3"), "{refused}");
    }

    #[test]
    fn a_guest_that_hangs_up_is_noticed() {
        let (mut clock, guest, _descriptors) = pair(Protocol::SharedMemory);
        drop(guest);
        assert!(!clock.serve().unwrap());
    }
}
