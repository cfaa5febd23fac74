//! Inodes: which are free, and what takes them.

use super::Xfs;
use super::changes::Change;
use super::layout::{CHUNK, CLUSTER, FREE_SPACE, GROUPS, Part, SECTORS};
use super::log::{Item, bytes_of_chunk};
use crate::Errno;
use crate::inode::Inode;
use std::ops::Range;

/// Blocks of a chunk.
const CHUNK_BLOCKS: u64 = CHUNK / SECTORS;

impl Xfs {
    /// Whether a group has a free inode.
    pub fn has_free_inode(&self, group: u64) -> bool {
        self.free_inodes.get(&group).is_some_and(|it| !it.is_empty())
    }

    /// Takes the first free inode of a group, which has one; answers with its number, and with
    /// where it is with others, in sectors.
    pub fn take_inode(&mut self, group: u64) -> (u64, Range<u64>) {
        let free = self.free_inodes.entry(group).or_default();
        let number = free.pop_first().expect("a chunk was made");
        (number, self.layout.cluster(number))
    }

    /// Makes room for more inodes in a group: behind those there are, if that is free.
    ///
    /// # Errors
    /// `Enospc` if the group has no room for them.
    // Divergence: in a group without room for them there are no more files; the kernel looks in
    // others.
    pub fn make_chunk(&mut self, group: u64) -> Result<(), Errno> {
        let goal = self.last_chunk.get(&group).copied().unwrap_or(group * self.layout.group_blocks);
        let found = self.space.allocate_aligned(group, goal, CHUNK_BLOCKS);
        let start = found.ok_or(Errno::Enospc)?.start;
        self.last_chunk.insert(group, start + CHUNK_BLOCKS);
        self.change_parts(group, &FREE_SPACE);
        let first = start * SECTORS;
        for (cluster, bytes) in [(first, bytes_of_chunk()), (first + CLUSTER, 0)] {
            self.known.insert(cluster);
            self.change(Item::Buffer(cluster, CLUSTER), bytes);
        }
        self.free_inodes.entry(group).or_default().extend(first..first + CHUNK);
        Ok(())
    }

    /// A file is made in a tick, with an inode of a group; the answer is which file.
    pub fn add_file(&mut self, name: &str, number: u64, group: u64, now: u64) -> usize {
        let directory = self.directory_of(name);
        let file = self.add(name, Inode::new(number, 0, now));
        self.change_directory(directory, now);
        self.change_parts(group, &[Part::Inodes, Part::FreeChunks, Part::Chunks]);
        self.change_inode(file, Change::Data);
        file
    }

    /// A directory is made within another in a tick, with an inode of a group; the answer is which
    /// file it is.
    pub fn add_directory(
        &mut self,
        name: &str,
        within: usize,
        inode: (u64, u64),
        now: u64,
    ) -> usize {
        let (number, group) = inode;
        let directory = self.add(name, Inode::new(number, 0, now));
        self.note_directory(directory);
        self.change_parts(group, &[Part::Inodes, Part::FreeChunks, Part::Chunks]);
        self.change_directory(within, now);
        self.change_directory(directory, now);
        directory
    }

    /// The group of the next directory: each is in the one behind that of the last, wherever the
    /// directory is that it is in (observed on 6.12).
    pub fn next_directory_group(&mut self) -> u64 {
        let group = self.next_directory_group;
        self.next_directory_group = (group + 1) % GROUPS;
        group
    }
}
