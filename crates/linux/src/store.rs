//! What a disk holds: sparse, in memory, bounded.
//!
//! Reads return what was written and zeros elsewhere. Pages of zeros are not kept, so a disk that
//! is filled from `/dev/zero` costs nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use base::Bytes;
use rustix::fs::{SeekFrom, seek};

use crate::memory::{GuestMemory, OutOfMemory, PAGE};

/// The data on a disk.
#[derive(Clone, Debug)]
pub struct Contents {
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
    limit: Bytes,
    keep: bool,
}

/// Why data could not be stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StoreError {
    Full { limit: Bytes },
    Memory(OutOfMemory),
}

impl From<OutOfMemory> for StoreError {
    fn from(outside: OutOfMemory) -> Self {
        StoreError::Memory(outside)
    }
}

impl Contents {
    /// An empty disk that takes at most `limit` bytes of data other than zeros; a run that writes
    /// more ends with an error.
    pub fn new(limit: Bytes) -> Contents {
        Contents { pages: BTreeMap::new(), limit, keep: true }
    }

    /// A disk that forgets what is written to it and reads as zeros: for loads that do not look
    /// at their data, of any size.
    pub fn forgetful() -> Contents {
        Contents { pages: BTreeMap::new(), limit: Bytes(0), keep: false }
    }

    /// What a file holds that stands for a disk: those parts of it that are not holes.
    pub fn of_image(image: &File, limit: Bytes) -> io::Result<Contents> {
        let mut contents = Contents::new(limit);
        let mut at = 0;
        // Behind the last data the answer is an error that says so.
        while let Ok(start) = seek(image, SeekFrom::Data(at)) {
            let end = seek(image, SeekFrom::Hole(start))?;
            for page in start / PAGE as u64..end.div_ceil(PAGE as u64) {
                let mut bytes = Box::new([0; PAGE]);
                read_up_to(image, &mut bytes[..], page * PAGE as u64)?;
                if bytes.iter().any(|byte| *byte != 0) {
                    contents.pages.insert(page, bytes);
                }
            }
            at = end;
        }
        Ok(contents)
    }

    /// How much is held.
    pub fn held(&self) -> Bytes {
        Bytes((self.pages.len() * PAGE) as u64)
    }

    /// Copies from the disk, beginning at byte `at`, into guest memory.
    pub(crate) fn read(
        &self,
        memory: &GuestMemory,
        at: u64,
        address: u64,
        length: usize,
    ) -> Result<(), OutOfMemory> {
        if self.pages.is_empty() {
            return memory.clear(address, length);
        }
        for piece in pieces(at, length) {
            let address = address + piece.done as u64;
            match self.pages.get(&piece.page) {
                Some(page) => {
                    memory.write(address, &page[piece.from..piece.from + piece.length])?
                }
                None => memory.clear(address, piece.length)?,
            }
        }
        Ok(())
    }

    /// Copies from guest memory to the disk.
    pub(crate) fn write(
        &mut self,
        memory: &GuestMemory,
        at: u64,
        address: u64,
        length: usize,
    ) -> Result<(), StoreError> {
        if !self.keep {
            return Ok(());
        }
        let mut buffer = [0; PAGE];
        for piece in pieces(at, length) {
            let bytes = &mut buffer[..piece.length];
            memory.read(address + piece.done as u64, bytes)?;
            self.put(&piece, bytes)?;
        }
        Ok(())
    }

    fn put(&mut self, piece: &Piece, bytes: &[u8]) -> Result<(), StoreError> {
        let range = piece.from..piece.from + piece.length;
        if let Some(page) = self.pages.get_mut(&piece.page) {
            page[range].copy_from_slice(bytes);
            return Ok(());
        }
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        if self.held() + Bytes(PAGE as u64) > self.limit {
            return Err(StoreError::Full { limit: self.limit });
        }
        let mut page = Box::new([0; PAGE]);
        page[range].copy_from_slice(bytes);
        self.pages.insert(piece.page, page);
        Ok(())
    }

    /// Forgets whole pages of a range that is not needed any more.
    pub(crate) fn discard(&mut self, at: u64, length: u64) {
        let first = at.div_ceil(PAGE as u64);
        let end = (at + length) / PAGE as u64;
        while let Some((&page, _)) = self.pages.range(first..end.max(first)).next() {
            self.pages.remove(&page);
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn read_up_to(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], at + done as u64)? {
            0 => break,
            more => done += more,
        }
    }
    Ok(())
}

/// A part of a transfer that lies within one page of the disk.
struct Piece {
    page: u64,
    from: usize,
    length: usize,
    /// Bytes of the transfer before it.
    done: usize,
}

fn pieces(at: u64, length: usize) -> impl Iterator<Item = Piece> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let position = at + done as u64;
        let from = (position % PAGE as u64) as usize;
        let part = (PAGE - from).min(length - done);
        let piece = Piece { page: position / PAGE as u64, from, length: part, done };
        done += part;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = 16 * PAGE;

    fn read(contents: &Contents, memory: &GuestMemory, at: u64, length: usize) -> Vec<u8> {
        memory.write(0, &vec![0xee; length]).unwrap();
        contents.read(memory, at, 0, length).unwrap();
        let mut bytes = vec![0; length];
        memory.read(0, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn reads_return_what_was_written_and_zeros_elsewhere() {
        let memory = GuestMemory::zeros(LENGTH, 0);
        let mut contents = Contents::new(Bytes(1 << 20));
        assert_eq!(read(&contents, &memory, 0, 3), [0; 3]);
        let written: Vec<u8> = (0..6000).map(|i| (i % 251) as u8 + 1).collect();
        memory.write(0, &written).unwrap();
        contents.write(&memory, 3584, 0, 6000).unwrap();
        assert_eq!(read(&contents, &memory, 3584, 6000), written);
        assert_eq!(read(&contents, &memory, 3583, 2), [0, 1]);
        assert_eq!(contents.held(), Bytes(3 * PAGE as u64));
    }

    #[test]
    fn zeros_are_not_kept_but_do_overwrite() {
        let memory = GuestMemory::zeros(LENGTH, 0);
        let mut contents = Contents::new(Bytes(PAGE as u64));
        memory.write(0, &[7; 512]).unwrap();
        contents.write(&memory, 0, 0, 512).unwrap();
        memory.clear(0, LENGTH).unwrap();
        contents.write(&memory, 0, 0, LENGTH).unwrap();
        assert_eq!(read(&contents, &memory, 0, 512), [0; 512]);
        assert_eq!(contents.held(), Bytes(PAGE as u64));
    }

    #[test]
    fn a_full_store_says_so() {
        let memory = GuestMemory::zeros(LENGTH, 0);
        let mut contents = Contents::new(Bytes(PAGE as u64));
        memory.write(0, &[7; 2 * PAGE]).unwrap();
        let full = StoreError::Full { limit: Bytes(PAGE as u64) };
        assert_eq!(contents.write(&memory, 0, 0, 2 * PAGE), Err(full));
        Contents::forgetful().write(&memory, 0, 0, 2 * PAGE).unwrap();
    }

    #[test]
    fn discard_forgets_whole_pages_only() {
        let memory = GuestMemory::zeros(LENGTH, 0);
        let mut contents = Contents::new(Bytes(1 << 20));
        memory.write(0, &[7; 3 * PAGE]).unwrap();
        contents.write(&memory, 0, 0, 3 * PAGE).unwrap();
        contents.discard(512, 2 * PAGE as u64);
        assert_eq!(contents.held(), Bytes(2 * PAGE as u64));
        contents.discard(100, 200);
        assert_eq!(contents.held(), Bytes(2 * PAGE as u64));
    }
}
