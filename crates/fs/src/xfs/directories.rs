//! Directories on the disk: names are kept within the directory's inode, or in one block when they
//! are many.
//!
// Divergence: a directory has one block at most, all of which that is in use is logged.

use super::Xfs;
use super::changes::Change;
use super::layout::{FREE_SPACE, Part, SECTORS};
use super::log::{Item, bytes_of_directory_block, bytes_of_inode};
use super::tree::EXTENT;
use crate::files::Move;

/// Bytes of the head of the list of names in an inode, and beside each name.
const HEAD: u64 = 6;
const BESIDE_NAME: u64 = 8;
/// What an inode has room for behind its core.
const ROOM: u64 = 336;
/// The same in a block: its head with the first two names, beside each name, and how names are
/// aligned (observed: xfs_logprint).
const BLOCK_HEAD: u64 = 64 + 16 + 16;
const BESIDE_NAME_IN_BLOCK: u64 = 12;
const ALIGNED: u64 = 8;
/// Inodes without a name are on one of so many lists, which begin at this byte of what a group says
/// of its inodes (xfs_db: agi).
const FIRST_LIST: usize = 40;
const LISTS: u64 = 64;

impl Xfs {
    /// A transaction changes which names are in a directory.
    pub(super) fn change_directory(&mut self, directory: usize, now: u64) {
        let inode = self.files.inode(directory);
        (inode.modified, inode.is_unsynced) = (Some(now), true);
        let number = inode.number;
        self.with_fork.insert(number);
        if self.names_bytes(directory) <= ROOM
            && let Some(block) = self.directory_blocks.remove(&directory)
        {
            let group = self.space.group_of(block);
            self.space.free_after(self.log.sequence, block..block + 1);
            self.change_parts(group, &FREE_SPACE);
            self.log.cancel(block * SECTORS, SECTORS);
        }
        if let Some(block) = self.directory_blocks.get(&directory) {
            let (sector, bytes) = (block * SECTORS, self.block_bytes(directory));
            self.change(Item::Buffer(sector, SECTORS), bytes);
        }
        let sequence =
            self.change(Item::Inode(number), bytes_of_inode(self.directory_fork(directory)));
        self.files.inode(directory).changed_in = sequence;
    }

    /// What is behind the core of a directory's inode.
    pub(super) fn directory_fork(&self, directory: usize) -> u64 {
        if self.directory_blocks.contains_key(&directory) {
            EXTENT as u64
        } else {
            self.names_bytes(directory)
        }
    }

    /// A file has no name any more: it is on its group's list of such inodes.
    fn unlink(&mut self, file: usize) {
        let number = self.files.inodes[file].number;
        let group = self.layout.group_of_inode(number);
        let list = FIRST_LIST + 4 * (number % LISTS) as usize;
        self.change_inodes_of_group(group, 0);
        self.change_inodes_of_group(group, list);
        self.change_inode(file, Change::Data);
    }

    /// A file without name that nobody has open is to be taken away. Answers with how many are.
    pub fn note_removed(&mut self, file: usize) -> usize {
        self.files.inode(file).is_removed = true;
        self.files.note_clean(file);
        self.unlinked.push(file);
        self.unlinked.len()
    }

    /// A file without name loses its blocks, and its inode is free.
    pub fn inactivate(&mut self, file: usize) {
        self.give_up(file, 0);
        let number = self.files.inodes[file].number;
        self.with_fork.remove(&number);
        self.files.forget_directory(file);
        let group = self.layout.group_of_inode(number);
        self.change_parts(group, &[Part::Inodes, Part::FreeChunks, Part::Chunks]);
        self.change_inode(file, Change::Data);
        let inode = self.files.inode(file);
        (inode.size, inode.disk_size) = (0, 0);
        self.free_inodes.entry(group).or_default().insert(number);
    }

    /// Bytes of the names of a directory within its inode.
    fn names_bytes(&self, directory: usize) -> u64 {
        HEAD + self.files.names_in(directory).map(|it| it.len() as u64 + BESIDE_NAME).sum::<u64>()
    }

    /// Bytes that its block takes in the log.
    fn block_bytes(&self, directory: usize) -> u64 {
        let aligned = |it: &str| (it.len() as u64 + BESIDE_NAME_IN_BLOCK).next_multiple_of(ALIGNED);
        let names: Vec<u64> = self.files.names_in(directory).map(aligned).collect();
        bytes_of_directory_block(BLOCK_HEAD + names.iter().sum::<u64>(), names.len() as u64)
    }

    /// A file has another name in a tick; what had it before has none.
    pub fn rename(&mut self, moved: Move, now: u64) {
        self.change_directory(moved.old, now);
        if moved.new != moved.old {
            self.change_directory(moved.new, now);
        }
        self.change_inode(moved.file, Change::Times);
        if let Some(replaced) = moved.replaced {
            self.unlink(replaced);
        }
    }

    /// A file has lost its name in a directory, in a tick.
    pub fn remove_name(&mut self, file: usize, directory: usize, now: u64) {
        self.change_directory(directory, now);
        self.unlink(file);
    }

    /// Files without a name, which are to be taken away.
    pub fn take_unlinked(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.unlinked)
    }

    /// The group in which a block is needed for the names in a directory, which is going to have
    /// this one as well; none if there is one already, or none is needed.
    pub fn lacks_directory_block(&self, name: &str, directory: usize) -> Option<u64> {
        let bytes = self.names_bytes(directory) + name.len() as u64 + BESIDE_NAME;
        let is_needed = bytes > ROOM && !self.directory_blocks.contains_key(&directory);
        is_needed.then(|| self.group_of_file(directory))
    }

    /// Gives a directory a block for its names, in a group if that has one.
    pub fn add_directory_block(&mut self, directory: usize, group: u64) {
        let goal = self.inodes[directory].number / SECTORS;
        if let Some(found) = self.space.allocate(group, Some(goal), 1) {
            self.directory_blocks.insert(directory, found.start);
            self.change_parts(group, &FREE_SPACE);
        }
    }
}
