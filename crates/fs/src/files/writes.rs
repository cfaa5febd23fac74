//! Data of files on their way to the disk.
//!
//! Pages that were given blocks together are one write, of several bios at most. Where a file does
//! not know of its blocks before their data are on the disk, a worker sees to that afterwards
//! (rule ext4-write-2), and only then have the pages been written.

use super::Files;
use block::ContextId;
use cache::PAGE;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Pages of a file that were given blocks together and are being written.
#[derive(Debug)]
pub struct Write {
    /// Which blocks of which file.
    pub written: Written,
    /// They become written when they are on the disk.
    pub converts: bool,
    /// The bios that wrote its pages.
    pub tokens: Vec<u64>,
    /// Bios that are not done, and one more until all have been submitted.
    bios_left: u32,
}

/// Blocks of a file whose contents have come to the disk.
#[derive(Clone, Debug)]
pub struct Written {
    /// The file.
    pub file: usize,
    /// Blocks of the file.
    pub blocks: Range<u64>,
    /// How far into the file there were data among them, in bytes.
    pub size: u64,
}

/// Writes under way, by number, and those that ended.
#[derive(Default)]
pub(super) struct Writes {
    under_way: BTreeMap<u64, Write>,
    /// By the token of a bio.
    of_bio: BTreeMap<u64, u64>,
    last: u64,
    /// What is on the disk and a part of no file yet, and the worker that sees to it.
    ended: VecDeque<(Written, Vec<u64>)>,
    converter: ContextId,
}

impl Files {
    /// Blocks of a file are about to be written; the answer is the number of the write.
    pub fn begin_write(&mut self, file: usize, blocks: Range<u64>, converts: bool) -> u64 {
        let size = self.inodes[file].size.min(blocks.end * PAGE);
        let written = Written { file, blocks, size };
        let write = Write { written, converts, bios_left: 1, tokens: Vec::new() };
        let writes = &mut self.writes;
        writes.last += 1;
        writes.under_way.insert(writes.last, write);
        writes.last
    }

    /// A bio is one of those of a write.
    pub fn add_bio(&mut self, write: u64, token: u64) {
        self.writes.of_bio.insert(token, write);
        let under_way = self.writes.under_way.get_mut(&write).expect("it has begun");
        under_way.bios_left += 1;
        under_way.tokens.push(token);
    }

    /// Whether a token is that of data being written.
    pub fn is_writing(&self, token: u64) -> bool {
        self.writes.of_bio.contains_key(&token)
    }

    /// A bio that wrote pages of a file is done; the write, if it was the last one.
    pub fn bio_written(&mut self, token: u64) -> Option<Write> {
        let write = self.writes.of_bio.remove(&token).expect("the token is that of a write");
        self.part_written(write)
    }

    /// One of the bios of a write is done, or all have been submitted; the write, if nothing of it
    /// is under way any more.
    pub fn part_written(&mut self, number: u64) -> Option<Write> {
        let write = self.writes.under_way.get_mut(&number).expect("it is under way");
        write.bios_left -= 1;
        if write.bios_left > 0 {
            return None;
        }
        self.writes.under_way.remove(&number)
    }

    /// The worker that tells files of their blocks is this task.
    pub fn set_converter(&mut self, converter: ContextId) {
        self.writes.converter = converter;
    }

    /// Data are on the disk, of which the file does not know yet: the answer is who sees to that.
    pub fn leave_to_converter(&mut self, written: Written, tokens: Vec<u64>) -> ContextId {
        self.writes.ended.push_back((written, tokens));
        self.writes.converter
    }

    /// What that worker does next: what was written, and by which bios.
    pub fn next_to_convert(&mut self) -> Option<(Written, Vec<u64>)> {
        self.writes.ended.pop_front()
    }
}
