//! Memory shared with the guest: the page of the time protocol and the guest's own memory.
//!
//! The guest is another process, which may write at any time. Therefore such memory is only read
//! and written by value, through `vm-memory`, and everything read is checked where it is used. In
//! practice the two sides take turns.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, memfd_create};
use vm_memory::{AtomicInteger, Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileSlice};

/// Bytes in a page; the parts of the time protocol's memory are laid out by it.
pub(crate) const PAGE: usize = base::page::SIZE as usize;

/// Maps `length` bytes of `file` from its beginning.
fn map(file: File, length: usize) -> io::Result<MmapRegion> {
    MmapRegion::from_file(FileOffset::new(file, 0), length).map_err(io::Error::other)
}

/// The guest's memory, as far as it can be reached by device addresses.
pub(crate) struct GuestMemory {
    map: MmapRegion,
    /// The address that the guest uses for the first byte of the map.
    start: u64,
}

/// A device address, or a length, that is not in the guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfMemory {
    pub address: u64,
    pub length: u64,
}

fn misaligned(address: u64) -> OutOfMemory {
    OutOfMemory { address, length: size_of::<u16>() as u64 }
}

impl GuestMemory {
    /// Maps `length` bytes of `file` from its beginning; the guest calls the first one `start`.
    pub fn map(file: File, length: usize, start: u64) -> io::Result<GuestMemory> {
        Ok(GuestMemory { map: map(file, length)?, start })
    }

    /// Memory that no guest has.
    #[cfg(test)]
    pub fn zeros(length: usize, start: u64) -> GuestMemory {
        GuestMemory { map: MmapRegion::new(length).unwrap(), start }
    }

    fn slice(&self, address: u64, length: usize) -> Result<VolatileSlice<'_>, OutOfMemory> {
        let offset = address.checked_sub(self.start).and_then(|it| usize::try_from(it).ok());
        let slice = offset.and_then(|offset| self.map.get_slice(offset, length).ok());
        slice.ok_or(OutOfMemory { address, length: length as u64 })
    }

    /// Copies from the guest.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), OutOfMemory> {
        self.slice(address, into.len())?.copy_to(into);
        Ok(())
    }

    /// Copies to the guest.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), OutOfMemory> {
        self.slice(address, bytes.len())?.copy_from(bytes);
        Ok(())
    }

    /// Makes guest memory zero.
    pub fn clear(&self, address: u64, length: usize) -> Result<(), OutOfMemory> {
        let mut left = self.slice(address, length)?;
        while !left.is_empty() {
            let part = left.len().min(PAGE);
            left.copy_from(&[0u8; PAGE][..part]);
            left = left.offset(part).expect("a part of what is left");
        }
        Ok(())
    }

    /// Reads a value of `N` bytes.
    pub fn array<const N: usize>(&self, address: u64) -> Result<[u8; N], OutOfMemory> {
        let mut bytes = [0; N];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads a 16-bit index that the guest may just have changed; what it wrote before is seen.
    pub fn index(&self, address: u64) -> Result<u16, OutOfMemory> {
        self.slice(address, 2)?.load(0, Ordering::Acquire).map_err(|_| misaligned(address))
    }

    /// Publishes a 16-bit index; the guest then sees everything written before.
    pub fn publish_index(&self, address: u64, value: u16) -> Result<(), OutOfMemory> {
        self.slice(address, 2)?.store(value, 0, Ordering::Release).map_err(|_| misaligned(address))
    }
}

/// A few pages that we make and the guest maps.
pub(crate) struct SharedPages(MmapRegion);

impl SharedPages {
    /// `length` bytes of zeros.
    pub fn new(length: usize) -> io::Result<SharedPages> {
        let file = File::from(memfd_create("paternoster-clock", MemfdFlags::CLOEXEC)?);
        file.set_len(length as u64)?;
        Ok(SharedPages(map(file, length)?))
    }

    /// What the guest maps.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.0.file_offset().expect("mapped from a file").file().as_fd()
    }

    fn field<T: AtomicInteger>(&self, offset: usize) -> &T {
        self.0.get_atomic_ref(offset).expect("a field within the pages, aligned")
    }

    /// The 16-bit field at `offset`.
    pub fn u16(&self, offset: usize) -> &AtomicU16 {
        self.field(offset)
    }

    /// The 32-bit field at `offset`.
    pub fn u32(&self, offset: usize) -> &AtomicU32 {
        self.field(offset)
    }

    /// The 64-bit field at `offset`.
    pub fn u64(&self, offset: usize) -> &AtomicU64 {
        self.field(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let memory = GuestMemory::zeros(2 * PAGE, 0x1000);
        memory.write(0x1ffe, b"abcd").unwrap();
        assert_eq!(memory.array::<4>(0x1ffe).unwrap(), *b"abcd");
        memory.clear(0x1fff, 2).unwrap();
        assert_eq!(memory.array::<4>(0x1ffe).unwrap(), *b"a\0\0d");
        memory.publish_index(0x1ffe, 513).unwrap();
        assert_eq!(memory.index(0x1ffe).unwrap(), 513);
    }

    #[test]
    fn nothing_outside_is_touched() {
        let memory = GuestMemory::zeros(2 * PAGE, 0x1000);
        for (address, length) in [(0, 1), (0xfff, 1), (0x2fff, 2), (0x3000, 1), (u64::MAX, 8)] {
            let refused = memory.read(address, &mut vec![0; length]).unwrap_err();
            assert_eq!(refused, OutOfMemory { address, length: length as u64 });
        }
        memory.read(0x3000, &mut []).unwrap();
        assert!(memory.index(0x1001).is_err(), "indices are aligned");
    }
}
