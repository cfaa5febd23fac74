//! A split virtqueue, from the device's side.
//!
//! Everything in it was written by the guest and is checked: a guest that breaks the rules ends
//! the run with an error.

use crate::error::RunError;
use crate::memory::{GuestMemory, OutOfMemory};

/// Bits of a descriptor's flags (virtio 1.2, 2.7.5).
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;
/// The guest does not want to be called (virtio 1.2, 2.7.7).
const NO_INTERRUPT: u16 = 1;
/// Bytes in a descriptor: u64 address, u32 length, u16 flags, u16 next.
const DESCRIPTOR: u64 = 16;
/// `VIRTIO_F_INDIRECT_DESC`.
pub(crate) const INDIRECT_FEATURE: u64 = 1 << 28;

/// A piece of guest memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub address: u64,
    pub length: u32,
}

/// A request as it stands in the ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// By what the guest recognises it.
    pub head: u16,
    /// What the device may read.
    pub readable: Vec<Segment>,
    /// What the device may write; behind everything readable.
    pub writable: Vec<Segment>,
}

/// A queue of requests in guest memory.
pub(crate) struct Ring {
    /// Requests are taken from it.
    pub enabled: bool,
    indirect: bool,
    size: u16,
    descriptors: u64,
    available: u64,
    used: u64,
    next_available: u16,
    next_used: u16,
}

impl Ring {
    pub fn new() -> Ring {
        Ring {
            enabled: false,
            indirect: false,
            size: 0,
            descriptors: 0,
            available: 0,
            used: 0,
            next_available: 0,
            next_used: 0,
        }
    }

    /// What the driver has accepted.
    pub fn set_features(&mut self, features: u64) {
        self.indirect = features & INDIRECT_FEATURE != 0;
    }

    pub fn set_size(&mut self, size: u32) -> Result<(), RunError> {
        // Sizes are powers of two up to 32768 (virtio 1.2, 2.7).
        match u16::try_from(size) {
            Ok(size) if size.is_power_of_two() => {
                self.size = size;
                Ok(())
            }
            _ => Err(RunError::protocol(format!("a ring of {size} entries"))),
        }
    }

    /// The index of the first request, available and used alike.
    pub fn set_base(&mut self, base: u32) -> Result<(), RunError> {
        let base = u16::try_from(base)
            .map_err(|_| RunError::protocol(format!("a ring that begins at {base}")))?;
        (self.next_available, self.next_used) = (base, base);
        Ok(())
    }

    pub fn set_addresses(&mut self, descriptors: u64, available: u64, used: u64) {
        (self.descriptors, self.available, self.used) = (descriptors, available, used);
    }

    /// Takes the next request into `chain`, if there is one.
    pub fn take(&mut self, memory: &GuestMemory, chain: &mut Chain) -> Result<bool, RunError> {
        if !self.enabled || self.size == 0 {
            return Ok(false);
        }
        // The available ring: u16 flags, u16 index, u16 heads.
        let waiting = memory.index(self.available + 2)?.wrapping_sub(self.next_available);
        if waiting == 0 {
            return Ok(false);
        }
        if waiting > self.size {
            let what = format!("{waiting} requests in a ring of {}", self.size);
            return Err(RunError::protocol(what));
        }
        let slot = self.next_available % self.size;
        let head = u16::from_ne_bytes(memory.array(self.available + 4 + 2 * u64::from(slot))?);
        self.next_available = self.next_available.wrapping_add(1);
        chain.head = head;
        chain.readable.clear();
        chain.writable.clear();
        self.walk(memory, chain)?;
        Ok(true)
    }

    /// Gives a request back, of which `written` bytes were written.
    pub fn put(&mut self, memory: &GuestMemory, head: u16, written: u32) -> Result<(), RunError> {
        // The used ring: u16 flags, u16 index, then u32 head and u32 length each.
        let slot = u64::from(self.next_used % self.size);
        let mut entry = [0; 8];
        entry[..4].copy_from_slice(&u32::from(head).to_ne_bytes());
        entry[4..].copy_from_slice(&written.to_ne_bytes());
        memory.write(self.used + 4 + 8 * slot, &entry)?;
        self.next_used = self.next_used.wrapping_add(1);
        Ok(memory.publish_index(self.used + 2, self.next_used)?)
    }

    /// Whether the guest wants to hear of requests that were given back.
    pub fn wants_call(&self, memory: &GuestMemory) -> Result<bool, RunError> {
        Ok(memory.index(self.available)? & NO_INTERRUPT == 0)
    }

    fn walk(&self, memory: &GuestMemory, chain: &mut Chain) -> Result<(), RunError> {
        let mut table = (self.descriptors, self.size);
        let mut index = chain.head;
        // A table of indirect descriptors may not be longer than the ring either.
        for _ in 0..=self.size {
            let (start, entries) = table;
            if index >= entries {
                let what = format!("descriptor {index} of a table of {entries}");
                return Err(RunError::protocol(what));
            }
            let bytes: [u8; DESCRIPTOR as usize] =
                memory.array(start + DESCRIPTOR * u64::from(index))?;
            let descriptor = Descriptor::read(&bytes);
            if descriptor.flags & INDIRECT != 0 {
                table = self.indirect_table(&descriptor, start)?;
                index = 0;
                continue;
            }
            chain.add(&descriptor)?;
            if descriptor.flags & NEXT == 0 {
                return Ok(());
            }
            index = descriptor.next;
        }
        Err(RunError::protocol("a request without end".to_string()))
    }

    fn indirect_table(
        &self,
        descriptor: &Descriptor,
        current: u64,
    ) -> Result<(u64, u16), RunError> {
        let Segment { address, length } = descriptor.segment;
        let entries = u16::try_from(u64::from(length) / DESCRIPTOR).unwrap_or(u16::MAX);
        let plain = current == self.descriptors && descriptor.flags & NEXT == 0;
        match self.indirect && plain && entries > 0 && entries <= self.size {
            true => Ok((address, entries)),
            false => Err(RunError::protocol(format!("an indirect table of {entries} entries"))),
        }
    }
}

impl Chain {
    fn add(&mut self, descriptor: &Descriptor) -> Result<(), RunError> {
        if descriptor.flags & WRITE != 0 {
            self.writable.push(descriptor.segment);
            return Ok(());
        }
        if !self.writable.is_empty() {
            return Err(RunError::protocol("data to read behind room to write".to_string()));
        }
        self.readable.push(descriptor.segment);
        Ok(())
    }
}

struct Descriptor {
    segment: Segment,
    flags: u16,
    next: u16,
}

impl Descriptor {
    fn read(bytes: &[u8; DESCRIPTOR as usize]) -> Descriptor {
        let [address @ .., _, _, _, _, _, _, _, _] = *bytes;
        let [.., l0, l1, l2, l3, f0, f1, n0, n1] = *bytes;
        Descriptor {
            segment: Segment {
                address: u64::from_ne_bytes(address),
                length: u32::from_ne_bytes([l0, l1, l2, l3]),
            },
            flags: u16::from_ne_bytes([f0, f1]),
            next: u16::from_ne_bytes([n0, n1]),
        }
    }
}

impl From<OutOfMemory> for RunError {
    fn from(outside: OutOfMemory) -> Self {
        let OutOfMemory { address, length } = outside;
        RunError::protocol(format!("{length} bytes at {address:#x}, outside the guest's memory"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::PAGE;

    const AVAILABLE: u64 = 0x400;
    const USED: u64 = 0x800;
    const TABLE: u64 = 0x1000;

    fn memory() -> GuestMemory {
        GuestMemory::zeros(4 * PAGE, 0)
    }

    fn ring() -> Ring {
        let mut ring = Ring::new();
        ring.set_size(8).unwrap();
        ring.set_addresses(0, AVAILABLE, USED);
        ring.set_features(INDIRECT_FEATURE);
        ring.enabled = true;
        ring
    }

    fn describe(memory: &GuestMemory, at: u64, address: u64, length: u32, flags: u16, next: u16) {
        memory.write(at, &address.to_ne_bytes()).unwrap();
        memory.write(at + 8, &length.to_ne_bytes()).unwrap();
        memory.write(at + 12, &flags.to_ne_bytes()).unwrap();
        memory.write(at + 14, &next.to_ne_bytes()).unwrap();
    }

    fn offer(memory: &GuestMemory, index: u16, head: u16) {
        memory.write(AVAILABLE + 4 + 2 * u64::from(index % 8), &head.to_ne_bytes()).unwrap();
        memory.publish_index(AVAILABLE + 2, index.wrapping_add(1)).unwrap();
    }

    fn segment(address: u64, length: u32) -> Segment {
        Segment { address, length }
    }

    #[test]
    fn a_direct_chain_is_followed_and_given_back() {
        let (memory, mut ring, mut chain) = (memory(), ring(), Chain::default());
        assert!(!ring.take(&memory, &mut chain).unwrap());
        describe(&memory, 3 * DESCRIPTOR, 0x2000, 16, NEXT, 5);
        describe(&memory, 5 * DESCRIPTOR, 0x3000, 512, NEXT | WRITE, 1);
        describe(&memory, DESCRIPTOR, 0x3800, 1, WRITE, 0);
        offer(&memory, 0, 3);
        assert!(ring.take(&memory, &mut chain).unwrap());
        assert_eq!(chain.head, 3);
        assert_eq!(chain.readable, [segment(0x2000, 16)]);
        assert_eq!(chain.writable, [segment(0x3000, 512), segment(0x3800, 1)]);
        assert!(!ring.take(&memory, &mut chain).unwrap());
        ring.put(&memory, 3, 513).unwrap();
        assert_eq!(memory.index(USED + 2).unwrap(), 1);
        assert_eq!(memory.array::<8>(USED + 4).unwrap(), [3, 0, 0, 0, 1, 2, 0, 0]);
        assert!(ring.wants_call(&memory).unwrap());
        memory.publish_index(AVAILABLE, NO_INTERRUPT).unwrap();
        assert!(!ring.wants_call(&memory).unwrap());
    }

    #[test]
    fn an_indirect_chain_is_followed_and_indices_wrap() {
        let (memory, mut ring, mut chain) = (memory(), ring(), Chain::default());
        ring.set_base(0xffff).unwrap();
        describe(&memory, 7 * DESCRIPTOR, TABLE, 2 * DESCRIPTOR as u32, INDIRECT, 0);
        describe(&memory, TABLE, 0x2000, 16, NEXT, 1);
        describe(&memory, TABLE + DESCRIPTOR, 0x3000, 1, WRITE, 0);
        offer(&memory, 0xffff, 7);
        assert!(ring.take(&memory, &mut chain).unwrap());
        assert_eq!((chain.readable.len(), chain.writable.len()), (1, 1));
        ring.put(&memory, 7, 1).unwrap();
        assert_eq!(memory.index(USED + 2).unwrap(), 0);
    }

    #[test]
    fn a_guest_that_breaks_the_rules_is_refused() {
        let end = 4 * PAGE as u64;
        let cases = [
            ("without end", 0, 1, NEXT, 0),
            ("descriptor 8", 0, 1, NEXT, 8),
            ("indirect table of 0", TABLE, 15, INDIRECT, 0),
            ("indirect table of 9", TABLE, 9 * 16, INDIRECT, 0),
            ("outside the guest's memory", end - 8, 32, INDIRECT, 0),
        ];
        for (expected, address, length, flags, next) in cases {
            let (memory, mut ring) = (memory(), ring());
            describe(&memory, 0, address, length, flags, next);
            offer(&memory, 0, 0);
            let refused = ring.take(&memory, &mut Chain::default()).unwrap_err().to_string();
            assert!(refused.contains(expected), "{refused}");
        }
        let (memory, mut ring) = (memory(), ring());
        memory.publish_index(AVAILABLE + 2, 9).unwrap();
        let refused = ring.take(&memory, &mut Chain::default()).unwrap_err().to_string();
        assert!(refused.contains("9 requests in a ring of 8"), "{refused}");
    }
}
