//! What a disk holds: sparse, in memory up to a limit, and in a file beyond it.
//!
//! Reads return what was written and zeros elsewhere. Pages of zeros are not kept, so a disk that
//! is filled from `/dev/zero` costs nothing. The file has no name and is gone with the disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use base::Bytes;
use rustix::fs::{SeekFrom, seek};

use crate::memory::{GuestMemory, OutOfMemory, PAGE};

/// The data on a disk.
#[derive(Debug)]
pub struct Contents {
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
    limit: Bytes,
    keep: bool,
    /// What found no room in memory.
    spill: Option<Spill>,
}

/// Pages in a file.
#[derive(Debug)]
struct Spill {
    file: File,
    /// Where each page lies, in pages.
    places: BTreeMap<u64, u64>,
    /// Places that are not used any more.
    free: Vec<u64>,
}

/// Why data could not be stored or read.
#[derive(Debug)]
pub(crate) enum StoreError {
    Memory(OutOfMemory),
    File(PathBuf, io::Error),
}

impl Clone for Contents {
    /// A disk is copied before anybody writes to it, so nothing of it is in a file.
    fn clone(&self) -> Contents {
        assert!(self.spill.is_none(), "a disk is copied that is in use");
        Contents { pages: self.pages.clone(), limit: self.limit, keep: self.keep, spill: None }
    }
}

impl Spill {
    fn new() -> Result<Spill, StoreError> {
        let directory = directory();
        let failed = |cause| StoreError::File(directory.clone(), cause);
        let file = unnamed(&directory).map_err(failed)?;
        Ok(Spill { file, places: BTreeMap::new(), free: Vec::new() })
    }

    /// Reads a page, if it is here.
    fn get(&self, page: u64, bytes: &mut [u8; PAGE]) -> Result<bool, StoreError> {
        let Some(place) = self.places.get(&page) else { return Ok(false) };
        let read = self.file.read_exact_at(bytes, place * PAGE as u64);
        read.map_err(|cause| StoreError::File(directory(), cause)).map(|()| true)
    }

    fn put(&mut self, page: u64, bytes: &[u8; PAGE]) -> Result<(), StoreError> {
        let place = match self.places.get(&page) {
            Some(place) => *place,
            None => self.free.pop().unwrap_or(self.places.len() as u64),
        };
        let written = self.file.write_all_at(bytes, place * PAGE as u64);
        written.map_err(|cause| StoreError::File(directory(), cause))?;
        self.places.insert(page, place);
        Ok(())
    }

    fn remove(&mut self, first: u64, end: u64) {
        while let Some((&page, &place)) = self.places.range(first..end).next() {
            self.places.remove(&page);
            self.free.push(place);
        }
    }
}

/// Where large files of no name belong: memory is no place for them.
fn directory() -> PathBuf {
    std::env::var_os("TMPDIR").filter(|it| !it.is_empty()).map_or("/var/tmp".into(), PathBuf::from)
}

/// A new file that nobody else can open.
fn unnamed(directory: &Path) -> io::Result<File> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = directory.join(format!("paternoster-disk-{}-{number}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

impl From<OutOfMemory> for StoreError {
    fn from(outside: OutOfMemory) -> Self {
        StoreError::Memory(outside)
    }
}

impl Contents {
    /// An empty disk that keeps at most `limit` bytes of data other than zeros in memory; what is
    /// more goes to a file of no name in `$TMPDIR` or `/var/tmp`.
    pub fn new(limit: Bytes) -> Contents {
        Contents { pages: BTreeMap::new(), limit, keep: true, spill: None }
    }

    /// A disk that forgets what is written to it and reads as zeros: for loads that do not look
    /// at their data, of any size.
    pub fn forgetful() -> Contents {
        Contents { pages: BTreeMap::new(), limit: Bytes(0), keep: false, spill: None }
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

    /// How much is held, in memory and in a file.
    pub fn held(&self) -> Bytes {
        let spilled = self.spill.as_ref().map_or(0, |spill| spill.places.len());
        Bytes(((self.pages.len() + spilled) * PAGE) as u64)
    }

    /// Copies from the disk, beginning at byte `at`, into guest memory.
    pub(crate) fn read(
        &self,
        memory: &GuestMemory,
        at: u64,
        address: u64,
        length: usize,
    ) -> Result<(), StoreError> {
        if self.pages.is_empty() && self.spill.is_none() {
            return Ok(memory.clear(address, length)?);
        }
        let mut buffer = [0; PAGE];
        for piece in pieces(at, length) {
            let address = address + piece.done as u64;
            let range = piece.from..piece.from + piece.length;
            match (self.pages.get(&piece.page), &self.spill) {
                (Some(page), _) => memory.write(address, &page[range])?,
                (None, Some(spill)) if spill.get(piece.page, &mut buffer)? => {
                    memory.write(address, &buffer[range])?;
                }
                _ => memory.clear(address, piece.length)?,
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
        let mut page = Box::new([0; PAGE]);
        let is_spilled = match &self.spill {
            Some(spill) => spill.get(piece.page, &mut page)?,
            None => false,
        };
        if !is_spilled && bytes.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        page[range].copy_from_slice(bytes);
        let room = ((self.pages.len() + 1) * PAGE) as u64 <= self.limit.0;
        if room && !is_spilled {
            self.pages.insert(piece.page, page);
            return Ok(());
        }
        match &mut self.spill {
            Some(spill) => spill.put(piece.page, &page),
            none => none.insert(Spill::new()?).put(piece.page, &page),
        }
    }

    /// Forgets whole pages of a range that is not needed any more.
    pub(crate) fn discard(&mut self, at: u64, length: u64) {
        let first = at.div_ceil(PAGE as u64);
        let end = (at + length) / PAGE as u64;
        while let Some((&page, _)) = self.pages.range(first..end.max(first)).next() {
            self.pages.remove(&page);
        }
        if let Some(spill) = &mut self.spill {
            spill.remove(first, end.max(first));
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
    fn what_finds_no_room_in_memory_is_in_a_file() {
        let memory = GuestMemory::zeros(LENGTH, 0);
        let mut contents = Contents::new(Bytes(PAGE as u64));
        let written: Vec<u8> = (0..4 * PAGE).map(|i| (i % 251) as u8 + 1).collect();
        memory.write(0, &written).unwrap();
        contents.write(&memory, 0, 0, 4 * PAGE).unwrap();
        assert_eq!(contents.pages.len(), 1);
        assert_eq!(contents.held(), Bytes(4 * PAGE as u64));
        assert_eq!(read(&contents, &memory, 100, 3 * PAGE), written[100..100 + 3 * PAGE]);
        // Zeros overwrite there, too, and a place is used again.
        memory.clear(0, LENGTH).unwrap();
        contents.write(&memory, 2 * PAGE as u64 + 8, 0, 8).unwrap();
        let expected = [&written[2 * PAGE..2 * PAGE + 8], &[0; 8]].concat();
        assert_eq!(read(&contents, &memory, 2 * PAGE as u64, 16), expected);
        contents.discard(PAGE as u64, PAGE as u64);
        assert_eq!(read(&contents, &memory, PAGE as u64, 16), [0; 16]);
        memory.write(0, &[9; PAGE]).unwrap();
        contents.write(&memory, 9 * PAGE as u64, 0, PAGE).unwrap();
        let places = &contents.spill.as_ref().unwrap().places;
        assert_eq!((places.len(), places.values().max()), (3, Some(&2)));
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
