//! Memory shared with the guest: the page of the time protocol and the guest's own memory.
//!
//! The guest is another process, which may write at any time. Therefore no reference to such
//! memory is ever made: it is read and written through pointers, by value, and everything read
//! is checked where it is used. In practice the two sides take turns.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, memfd_create};

/// Bytes in a page; the parts of the time protocol's memory are laid out by it.
pub(crate) const PAGE: usize = 4096;

/// The guest's memory, as far as it can be reached by device addresses.
pub(crate) struct GuestMemory {
    map: MmapRaw,
    /// The address that the guest uses for the first byte of the map.
    start: u64,
}

/// A device address, or a length, that is not in the guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfMemory {
    pub address: u64,
    pub length: u64,
}

impl GuestMemory {
    /// Maps `length` bytes of `file` from its beginning; the guest calls the first one `start`.
    pub fn map(file: &File, length: usize, start: u64) -> io::Result<GuestMemory> {
        let map = MmapOptions::new().len(length).map_raw(file)?;
        Ok(GuestMemory { map, start })
    }

    fn pointer(&self, address: u64, length: usize) -> Result<*mut u8, OutOfMemory> {
        let outside = OutOfMemory { address, length: length as u64 };
        let offset = address.checked_sub(self.start).ok_or(outside)?;
        let offset = usize::try_from(offset).map_err(|_| outside)?;
        let end = offset.checked_add(length).ok_or(outside)?;
        match end <= self.map.len() {
            // SAFETY: `offset` is at most the length of the map.
            true => Ok(unsafe { self.map.as_mut_ptr().add(offset) }),
            false => Err(outside),
        }
    }

    /// Copies from the guest.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), OutOfMemory> {
        let from = self.pointer(address, into.len())?;
        // SAFETY: `pointer` checked that this many bytes are mapped; the map is not in our heap,
        // so they do not overlap.
        unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Copies to the guest.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), OutOfMemory> {
        let to = self.pointer(address, bytes.len())?;
        // SAFETY: as in `read`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Makes guest memory zero.
    pub fn clear(&self, address: u64, length: usize) -> Result<(), OutOfMemory> {
        let to = self.pointer(address, length)?;
        // SAFETY: as in `read`.
        unsafe { ptr::write_bytes(to, 0, length) };
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
        Ok(self.shared_index(address)?.load(Ordering::Acquire))
    }

    /// Publishes a 16-bit index; the guest then sees everything written before.
    pub fn publish_index(&self, address: u64, value: u16) -> Result<(), OutOfMemory> {
        self.shared_index(address)?.store(value, Ordering::Release);
        Ok(())
    }

    fn shared_index(&self, address: u64) -> Result<&AtomicU16, OutOfMemory> {
        let pointer = self.pointer(address, 2)?;
        if pointer.align_offset(2) != 0 {
            return Err(OutOfMemory { address, length: 2 });
        }
        // SAFETY: two mapped bytes, aligned, as checked; they live as long as the map, and an
        // atomic may be shared with another process.
        Ok(unsafe { AtomicU16::from_ptr(pointer.cast()) })
    }
}

/// A few pages that we make and the guest maps.
pub(crate) struct SharedPages {
    file: File,
    map: MmapRaw,
}

impl SharedPages {
    /// `length` bytes of zeros.
    pub fn new(length: usize) -> io::Result<SharedPages> {
        let file = File::from(memfd_create("paternoster-clock", MemfdFlags::CLOEXEC)?);
        file.set_len(length as u64)?;
        let map = MmapOptions::new().len(length).map_raw(&file)?;
        Ok(SharedPages { file, map })
    }

    /// What the guest maps.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    fn pointer<T>(&self, offset: usize) -> *mut T {
        let fits = offset + size_of::<T>() <= self.map.len();
        assert!(fits && offset.is_multiple_of(size_of::<T>()), "field within the pages: {offset}");
        // SAFETY: `offset` is inside the map, as just asserted.
        unsafe { self.map.as_mut_ptr().add(offset).cast() }
    }

    /// The 16-bit field at `offset`.
    pub fn u16(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: mapped, aligned to its size (maps begin at a page), alive as long as `self`,
        // and an atomic may be shared with another process.
        unsafe { AtomicU16::from_ptr(self.pointer(offset)) }
    }

    /// The 32-bit field at `offset`.
    pub fn u32(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: as in `u16`.
        unsafe { AtomicU32::from_ptr(self.pointer(offset)) }
    }

    /// The 64-bit field at `offset`.
    pub fn u64(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as in `u16`.
        unsafe { AtomicU64::from_ptr(self.pointer(offset)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> GuestMemory {
        let pages = SharedPages::new(2 * PAGE).unwrap();
        GuestMemory::map(&pages.file, 2 * PAGE, 0x1000).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let memory = memory();
        memory.write(0x1ffe, b"abcd").unwrap();
        assert_eq!(memory.array::<4>(0x1ffe).unwrap(), *b"abcd");
        memory.clear(0x1fff, 2).unwrap();
        assert_eq!(memory.array::<4>(0x1ffe).unwrap(), *b"a\0\0d");
        memory.publish_index(0x1ffe, 513).unwrap();
        assert_eq!(memory.index(0x1ffe).unwrap(), 513);
    }

    #[test]
    fn nothing_outside_is_touched() {
        let memory = memory();
        for (address, length) in [(0, 1), (0xfff, 1), (0x2fff, 2), (0x3000, 1), (u64::MAX, 8)] {
            let refused = memory.read(address, &mut vec![0; length]).unwrap_err();
            assert_eq!(refused, OutOfMemory { address, length: length as u64 });
        }
        memory.read(0x3000, &mut []).unwrap();
        assert!(memory.index(0x1001).is_err(), "indices are aligned");
    }
}
