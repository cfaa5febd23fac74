//! A disk's connection to the guest: the device side of vhost-user.
//!
//! The guest's driver sets up memory and a ring, reads the configuration, and from then on kicks
//! when it has put requests into the ring and is called when they are done. All notifications go
//! through the two sockets, so each is answered before either side goes on.
//!
//! Sections cited are those of the project's findings on Linux in virtual time.

use std::fs::File;
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::error::RunError;
use crate::memory::GuestMemory;
use crate::ring::Ring;

/// Requests (section 4).
mod request {
    pub const GET_FEATURES: u32 = 1;
    pub const SET_FEATURES: u32 = 2;
    pub const SET_OWNER: u32 = 3;
    pub const SET_MEM_TABLE: u32 = 5;
    pub const SET_VRING_NUM: u32 = 8;
    pub const SET_VRING_ADDR: u32 = 9;
    pub const SET_VRING_BASE: u32 = 10;
    pub const GET_PROTOCOL_FEATURES: u32 = 15;
    pub const SET_PROTOCOL_FEATURES: u32 = 16;
    pub const SET_VRING_ENABLE: u32 = 18;
    pub const SET_BACKEND_REQ_FD: u32 = 21;
    pub const GET_CONFIG: u32 = 24;
    pub const KICK: u32 = 35;
    /// The one request from device to guest.
    pub const CALL: u32 = 4;
}

/// Version 1 of the protocol, in the flags of each message (section 4).
const VERSION: u32 = 1;
/// Version 1 and "this is a reply"; the guest compares all of it (section 4).
const REPLY: u32 = 5;
/// The sender wants a reply.
const NEED_REPLY: u32 = 8;
/// `VHOST_USER_F_PROTOCOL_FEATURES` (section 4).
const PROTOCOL_FEATURES: u64 = 1 << 30;
/// REPLY_ACK 3, BACKEND_REQ 5, CONFIG 9, INBAND_NOTIFICATIONS 14: all are needed (section 4).
const PROTOCOL_FEATURE_MASK: u64 = 0x4228;
/// Bytes in a header.
const HEADER: usize = 12;
/// Bytes in a kick: a header, the queue's number, and nothing (section 4).
const KICK: usize = HEADER + 8;
/// No payload that is known is longer; the longest is a memory table or a configuration.
const LONGEST: usize = 512;

/// What a message was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// It was answered.
    Answered,
    /// There are new requests in the ring. The guest waits for [`Port::answer_kick`].
    Kicked,
    /// The guest has hung up.
    HungUp,
}

/// A disk's end of the connection.
pub(crate) struct Port {
    link: UnixStream,
    /// The way to call the guest, once it has sent it.
    calls: Option<UnixStream>,
    patience: Duration,
    features: u64,
    config: Vec<u8>,
    /// The guest's memory, once it has sent it.
    pub memory: Option<GuestMemory>,
    /// The one ring.
    pub ring: Ring,
}

struct Message {
    request: u32,
    flags: u32,
    payload: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Port {
    /// A port on the connection that the guest's driver has made; `features` and `config` are
    /// what the disk says of itself, `patience` how long an answer may take.
    pub fn new(link: UnixStream, patience: Duration, features: u64, config: Vec<u8>) -> Port {
        let features = features | PROTOCOL_FEATURES;
        Port { link, calls: None, patience, features, config, memory: None, ring: Ring::new() }
    }

    /// What to poll for the guest's messages.
    pub fn link(&self) -> &UnixStream {
        &self.link
    }

    /// Reads one message and answers it, unless it is a kick.
    pub fn serve(&mut self) -> Result<Served, RunError> {
        let Some(mut message) = self.receive()? else { return Ok(Served::HungUp) };
        match message.request {
            request::KICK => {
                message.expect_reply()?;
                return Ok(Served::Kicked);
            }
            request::GET_FEATURES => self.reply(&message, &self.features.to_ne_bytes())?,
            request::GET_PROTOCOL_FEATURES => {
                self.reply(&message, &PROTOCOL_FEATURE_MASK.to_ne_bytes())?;
            }
            request::GET_CONFIG => {
                let payload = self.configuration(&message)?;
                self.reply(&message, &payload)?;
            }
            _ => {
                self.set_up(&mut message)?;
                if message.flags & NEED_REPLY != 0 {
                    self.reply(&message, &0u64.to_ne_bytes())?;
                }
            }
        }
        Ok(Served::Answered)
    }

    /// Lets the guest go on after a kick.
    pub fn answer_kick(&mut self) -> Result<(), RunError> {
        self.send(request::KICK, &0u64.to_ne_bytes())
    }

    /// Begins to interrupt the guest: it takes the interrupt and then answers on
    /// [`Port::call_link`].
    pub fn call(&mut self) -> Result<(), RunError> {
        // The queue's number, and nothing.
        let bytes = message_bytes(request::CALL, VERSION | NEED_REPLY, &[0; 8]);
        let mut calls = self.call_link()?;
        calls.write_all(&bytes).map_err(|cause| RunError::link("disk", cause))
    }

    /// What to poll for the answer to a call.
    pub fn call_link(&self) -> Result<&UnixStream, RunError> {
        self.calls.as_ref().ok_or_else(|| {
            RunError::protocol("a request without a way to say that it is done".to_string())
        })
    }

    /// Reads the answer to a call; `false` when the guest has hung up.
    pub fn finish_call(&mut self) -> Result<bool, RunError> {
        // A header and eight bytes (section 4).
        let mut answer = [0; HEADER + 8];
        match self.call_link()?.read_exact(&mut answer) {
            Ok(()) => Ok(true),
            Err(cause) if RunError::is_hang_up(&cause) => Ok(false),
            Err(cause) => Err(RunError::link("disk", cause)),
        }
    }

    fn set_up(&mut self, message: &mut Message) -> Result<(), RunError> {
        match message.request {
            request::SET_OWNER => {}
            request::SET_PROTOCOL_FEATURES => {
                let features = message.u64(0)?;
                if features != PROTOCOL_FEATURE_MASK {
                    let what = format!("protocol features {features:#x}, not all that are needed");
                    return Err(RunError::protocol(what));
                }
            }
            request::SET_FEATURES => self.ring.set_features(message.u64(0)?),
            request::SET_BACKEND_REQ_FD => {
                let calls = UnixStream::from(message.descriptor()?);
                calls
                    .set_read_timeout(Some(self.patience))
                    .map_err(|cause| RunError::link("disk", cause))?;
                self.calls = Some(calls);
            }
            request::SET_MEM_TABLE => self.memory = Some(message.memory()?),
            // Each begins with the number of the queue, of which there is one.
            request::SET_VRING_NUM => self.ring.set_size(message.queue_value()?)?,
            request::SET_VRING_BASE => self.ring.set_base(message.queue_value()?)?,
            request::SET_VRING_ENABLE => self.ring.enabled = message.queue_value()? != 0,
            request::SET_VRING_ADDR => {
                message.queue_value()?;
                // u32 index, u32 flags, u64 desc, used, avail, log (section 4).
                let (descriptors, used) = (message.u64(8)?, message.u64(16)?);
                self.ring.set_addresses(descriptors, message.u64(24)?, used);
            }
            other => return Err(RunError::protocol(format!("disk message {other}"))),
        }
        Ok(())
    }

    /// The answer to GET_CONFIG: as long as the question, filled (section 4).
    fn configuration(&self, message: &Message) -> Result<Vec<u8>, RunError> {
        let (offset, size) = (message.u32(0)? as usize, message.u32(4)? as usize);
        let mut payload = message.payload.clone();
        if offset + size + 12 > offset + payload.len() || offset > self.config.len() {
            return Err(RunError::protocol(format!("configuration {offset}+{size} asked for")));
        }
        let bytes = &self.config[offset..];
        let known = bytes.len().min(size);
        payload[12..12 + known].copy_from_slice(&bytes[..known]);
        Ok(payload)
    }

    fn receive(&mut self) -> Result<Option<Message>, RunError> {
        let mut bytes = [0; KICK];
        let mut descriptors = Vec::new();
        // Once the ring is used, all messages are kicks or wait for an answer, so that nothing of
        // the next one can be there, and one read does for two.
        let expected = if self.ring.enabled { KICK } else { HEADER };
        let received =
            receive_with_descriptors(&self.link, &mut bytes[..expected], &mut descriptors)
                .and_then(|length| match length {
                    0 => Err(io::ErrorKind::UnexpectedEof.into()),
                    length if length < HEADER => {
                        (&self.link).read_exact(&mut bytes[length..HEADER]).map(|()| HEADER)
                    }
                    length => Ok(length),
                });
        let received = match received {
            Ok(received) => received,
            Err(cause) if RunError::is_hang_up(&cause) => return Ok(None),
            Err(cause) => return Err(RunError::link("disk", cause)),
        };
        let word = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().expect("4 bytes"));
        let (request, flags, size) = (word(0), word(4), word(8) as usize);
        let known = received - HEADER;
        if flags & 3 != VERSION || size > LONGEST || known > size {
            let what = format!("disk message {request}, flags {flags:#x}, {size} bytes");
            return Err(RunError::protocol(what));
        }
        let mut payload = vec![0; size];
        payload[..known].copy_from_slice(&bytes[HEADER..received]);
        let rest = match known == size {
            true => Ok(()),
            false => (&self.link).read_exact(&mut payload[known..]),
        };
        match rest {
            Ok(()) => Ok(Some(Message { request, flags, payload, descriptors })),
            Err(cause) if RunError::is_hang_up(&cause) => Ok(None),
            Err(cause) => Err(RunError::link("disk", cause)),
        }
    }

    fn reply(&self, message: &Message, payload: &[u8]) -> Result<(), RunError> {
        self.send(message.request, payload)
    }

    fn send(&self, request: u32, payload: &[u8]) -> Result<(), RunError> {
        let bytes = message_bytes(request, REPLY, payload);
        (&self.link).write_all(&bytes).map_err(|cause| RunError::link("disk", cause))
    }
}

impl Message {
    fn bytes<const N: usize>(&self, at: usize) -> Result<[u8; N], RunError> {
        let bytes = self.payload.get(at..).and_then(|rest| rest.first_chunk());
        bytes.copied().ok_or_else(|| {
            let (request, length) = (self.request, self.payload.len());
            RunError::protocol(format!("disk message {request} with only {length} bytes"))
        })
    }

    fn u32(&self, at: usize) -> Result<u32, RunError> {
        self.bytes(at).map(u32::from_ne_bytes)
    }

    fn u64(&self, at: usize) -> Result<u64, RunError> {
        self.bytes(at).map(u64::from_ne_bytes)
    }

    /// The second word of a message about a queue; the first is the queue's number.
    fn queue_value(&self) -> Result<u32, RunError> {
        match self.u32(0)? {
            0 => self.u32(4),
            queue => Err(RunError::protocol(format!("queue {queue} of a disk with one"))),
        }
    }

    fn descriptor(&mut self) -> Result<OwnedFd, RunError> {
        self.descriptors.pop().ok_or_else(|| {
            RunError::protocol(format!("disk message {} without a descriptor", self.request))
        })
    }

    /// The one region of a memory table: u32 regions, u32 nothing, then u64 guest address, size,
    /// user address, offset in the file; mapped from the file's beginning (section 4).
    fn memory(&mut self) -> Result<GuestMemory, RunError> {
        let (regions, start, size) = (self.u32(0)?, self.u64(8)?, self.u64(16)?);
        let offset = self.u64(32)?;
        let length = usize::try_from(offset.saturating_add(size)).unwrap_or(usize::MAX);
        if regions != 1 || start < offset || length > isize::MAX as usize {
            let what = format!("{regions} regions of memory, the first {start:#x}+{size:#x}");
            return Err(RunError::protocol(what));
        }
        let file = File::from(self.descriptor()?);
        GuestMemory::map(file, length, start - offset)
            .map_err(|cause| RunError::file("mapping", "the memory of the guest", cause))
    }

    fn expect_reply(&self) -> Result<(), RunError> {
        match self.flags & NEED_REPLY {
            0 => Err(RunError::protocol("a kick that wants no answer".to_string())),
            _ => Ok(()),
        }
    }
}

fn message_bytes(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend(request.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend((payload.len() as u32).to_ne_bytes());
    bytes.extend(payload);
    bytes
}

/// Reads what is there, at most as much as fits, and takes the descriptors that came with it.
fn receive_with_descriptors(
    link: &UnixStream,
    buffer: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(buffer)];
    let received = recvmsg(link, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    Ok(received.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::IoSlice;
    use std::os::fd::AsFd;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use crate::memory::{PAGE, SharedPages};

    fn pair() -> (Port, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let port = Port::new(ours, Duration::from_secs(5), 1 << 32, vec![1, 2, 3, 4]);
        (port, theirs)
    }

    fn send(mut guest: &UnixStream, request: u32, payload: &[u8]) {
        guest.write_all(&message_bytes(request, VERSION | NEED_REPLY, payload)).unwrap();
    }

    fn send_with(guest: &UnixStream, request: u32, payload: &[u8], descriptor: impl AsFd) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let bytes = message_bytes(request, VERSION | NEED_REPLY, payload);
        sendmsg(guest, &[IoSlice::new(&bytes)], &mut control, SendFlags::empty()).unwrap();
    }

    fn answer(mut guest: &UnixStream, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; HEADER + length];
        guest.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_driver_sets_up_kicks_and_is_called() {
        let (mut port, guest) = pair();
        // SET_OWNER wants no reply (section 4).
        (&guest).write_all(&message_bytes(request::SET_OWNER, VERSION, &[])).unwrap();
        send(&guest, request::GET_FEATURES, &[]);
        let pages = SharedPages::new(4 * PAGE).unwrap();
        let table = words(&[1, 0x2000, 0x2000, 0x2000, 0x2000, 0, 0, 0, 0]);
        send_with(&guest, request::SET_MEM_TABLE, &table, pages.file());
        let (calls, called) = UnixStream::pair().unwrap();
        send_with(&guest, request::SET_BACKEND_REQ_FD, &[], calls);
        send(&guest, request::KICK, &words(&[0]));
        for _ in 0..4 {
            assert_eq!(port.serve().unwrap(), Served::Answered);
        }
        assert_eq!(port.serve().unwrap(), Served::Kicked);
        port.answer_kick().unwrap();
        let features = answer(&guest, 8);
        assert_eq!(
            features[..HEADER],
            message_bytes(request::GET_FEATURES, REPLY, &[0; 8])[..HEADER]
        );
        assert_eq!(features[HEADER..], words(&[1 << 32 | PROTOCOL_FEATURES]));
        for request in [request::SET_MEM_TABLE, request::SET_BACKEND_REQ_FD, request::KICK] {
            assert_eq!(answer(&guest, 8), message_bytes(request, REPLY, &[0; 8]));
        }
        let memory = port.memory.as_ref().unwrap();
        assert!(memory.array::<8>(0x3ff8).is_ok() && memory.array::<8>(0x4000).is_err());
        port.call().unwrap();
        let call = message_bytes(request::CALL, VERSION | NEED_REPLY, &[0; 8]);
        assert_eq!(answer(&called, 8), call);
        (&called).write_all(&[0; 20]).unwrap();
        assert!(port.finish_call().unwrap());
    }

    #[test]
    fn the_configuration_is_as_long_as_was_asked() {
        let (mut port, guest) = pair();
        let mut question = Vec::new();
        question.extend(2u32.to_ne_bytes());
        question.extend(4u32.to_ne_bytes());
        question.extend([0; 4 + 4]);
        send(&guest, request::GET_CONFIG, &question);
        port.serve().unwrap();
        let answer = answer(&guest, 16);
        assert_eq!(answer[HEADER + 12..], [3, 4, 0, 0]);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let cases: [(u32, &[u8], &str); 5] = [
            (99, &[], "disk message 99"),
            (request::SET_VRING_NUM, &[0; 4], "only 4 bytes"),
            (request::SET_VRING_NUM, &[1; 8], "queue 16843009 of a disk with one"),
            (request::SET_MEM_TABLE, &[0; 72], "0 regions"),
            (request::SET_BACKEND_REQ_FD, &[], "without a descriptor"),
        ];
        for (request, payload, expected) in cases {
            let (mut port, guest) = pair();
            send(&guest, request, payload);
            let refused = port.serve().unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
        let (mut port, guest) = pair();
        (&guest).write_all(&message_bytes(request::GET_FEATURES, 2, &[])).unwrap();
        assert!(port.serve().unwrap_err().to_string().contains("flags 0x2"));
    }

    #[test]
    fn a_guest_that_hangs_up_is_noticed() {
        let (mut port, guest) = pair();
        drop(guest);
        assert_eq!(port.serve().unwrap(), Served::HungUp);
    }
}
