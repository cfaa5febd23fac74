//! Transactions: what they change.
//!
//! A transaction is over at once: what it changed is on a list in memory (rule xfs-log-1).
//!
// Divergence: who wants the same metadata meanwhile does not wait, but for finding room.

use super::Xfs;
use super::layout::Part;
use super::log::{Item, bytes_of_buffer, bytes_of_inode};
use std::ops::Range;

/// How often the superblock is logged before a log that nothing happens to says that it is clean.
const COVERS: u32 = 2;

/// What changes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Its times: fdatasync does not mind.
    Times,
    /// Anything else.
    Data,
}

impl Xfs {
    /// A transaction changes a file. What else than the core was changed of an inode since it was
    /// written is logged with every change (observed: xfs_logprint).
    pub fn change_inode(&mut self, index: usize, change: Change) {
        let number = self.inodes[index].number;
        let fork = match self.files.is_directory(index) {
            true => self.directory_fork(index),
            false => self.fork_of_file(index),
        };
        if change == Change::Data && fork > 0 {
            self.with_fork.insert(number);
        }
        let fork = if self.with_fork.contains(&number) { fork } else { 0 };
        let sequence = self.change(Item::Inode(number), bytes_of_inode(fork));
        let inode = self.files.inode(index);
        inode.changed_in = sequence;
        if change == Change::Data {
            (inode.is_unsynced, inode.data_changed_in) = (true, sequence);
        }
    }

    /// A transaction changes parts of a group.
    pub(super) fn change_parts(&mut self, group: u64, parts: &[Part]) {
        for part in parts {
            let sectors = self.layout.part(group, *part);
            if *part == Part::Inodes {
                self.change_inodes_of_group(group, 0);
            } else {
                self.change_buffer(sectors);
            }
        }
    }

    /// A transaction changes a byte of what a group says of its inodes. All that did change since
    /// it was written is logged.
    pub(super) fn change_inodes_of_group(&mut self, group: u64, byte: usize) {
        let sectors = self.layout.part(group, Part::Inodes);
        let parts = self.inodes_parts.entry(sectors.start).or_default();
        parts.add(byte..byte + 1);
        let bytes = parts.bytes();
        self.change(Item::Buffer(sectors.start, sectors.end - sectors.start), bytes);
    }

    /// A transaction changes a buffer of metadata.
    pub(super) fn change_buffer(&mut self, sectors: Range<u64>) {
        let item = Item::Buffer(sectors.start, sectors.end - sectors.start);
        self.change(item, bytes_of_buffer());
    }

    pub(super) fn change(&mut self, item: Item, bytes: u64) -> u64 {
        self.covers_left = COVERS;
        self.log.change(item, bytes)
    }

    /// Metadata from a sector on are known from now on; the answer is whether they were not.
    pub fn learn(&mut self, sector: u64) -> bool {
        self.known.insert(sector)
    }

    /// The time of modification of a file is this tick.
    pub fn set_modified(&mut self, file: usize, now: u64) {
        self.inode(file).modified = Some(now);
        self.change_inode(file, Change::Times);
    }

    /// The time of access of a file is this tick.
    pub fn set_accessed(&mut self, file: usize, now: u64) {
        self.inode(file).accessed = Some(now);
        self.change_inode(file, Change::Times);
    }

    /// Where a part of a group is, in sectors.
    pub fn part(&self, group: u64, part: Part) -> Range<u64> {
        self.layout.part(group, part)
    }

    /// The group of a file's inode.
    pub fn group_of_file(&self, file: usize) -> u64 {
        self.layout.group_of_inode(self.inodes[file].number)
    }
}
