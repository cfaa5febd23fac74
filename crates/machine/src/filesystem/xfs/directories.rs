//! Directories on the disk: names are kept within the directory's inode, or in one block when they are
//! many.
//!
// Divergence: a directory has one block at most, all of which that is in use is logged.

use super::Xfs;
use super::allocation::FREE_SPACE;
use super::changes::Change;
use crate::file::Errno;
use crate::filesystem::all_pages;
use crate::filesystem::directories::Move;
use crate::task::Task;
use fs::inode::Inode;
use fs::xfs::layout::{GROUPS, Part, SECTORS};
use fs::xfs::log::{Item, bytes_of_directory_block, bytes_of_inode};

/// Bytes of an extent in an inode, of the head of the list of names in one, and beside each name.
const EXTENT: u64 = 16;
const HEAD: u64 = 6;
const BESIDE_NAME: u64 = 8;
/// What an inode has room for behind its core.
const ROOM: u64 = 336;
/// The same in a block: its head with the first two names, beside each name, and how names are
/// aligned. // observed: xfs_logprint
const BLOCK_HEAD: u64 = 64 + 16 + 16;
const BESIDE_NAME_IN_BLOCK: u64 = 12;
const ALIGNED: u64 = 8;
/// When so many files have lost their names the worker takes them away at once, before who removes
/// them goes on. // observed on 6.12
// Divergence: he does it himself.
const MANY: usize = 32;
/// Inodes without a name are on one of so many lists, which begin at this byte of what a group says
/// of its inodes. // xfs_db: agi
const FIRST_LIST: u64 = 40;
const LISTS: u64 = 64;

impl Task {
    /// Makes a directory. Each is in the next group, wherever the directory is that it is in.
    /// // observed on 6.12
    pub(in crate::filesystem) async fn make_directory_of_xfs(
        &self,
        name: &str,
        within: usize,
    ) -> Result<usize, Errno> {
        let group = {
            let mut world = self.world();
            let fs = world.xfs();
            let group = fs.next_directory_group;
            fs.next_directory_group = (group + 1) % GROUPS;
            group
        };
        let number = self.take_inode_of_xfs(group).await?;
        self.make_room_for_name(name, within).await;
        // The inode notes when it was made. // measured
        self.compute(self.costs().kernel_clock).await;
        let mut world = self.world();
        let now = world.tick();
        let fs = world.xfs();
        let directory = fs.files.add(name, Inode::new(number, 0, now));
        fs.files.directories.insert(directory);
        fs.change_parts(group, &[Part::Inodes, Part::FreeChunks, Part::Chunks]);
        fs.change_directory(within, now);
        fs.change_directory(directory, now);
        Ok(directory)
    }

    /// A file has another name; what had it before is gone.
    pub(in crate::filesystem) fn rename_on_xfs(&self, moved: Move) {
        let mut world = self.world();
        let now = world.tick();
        let fs = world.xfs();
        fs.change_directory(moved.old, now);
        if moved.new != moved.old {
            fs.change_directory(moved.new, now);
        }
        fs.change_times(moved.file);
        if let Some(replaced) = moved.replaced {
            fs.unlink(replaced);
            world.wake_inactivator();
        }
    }

    /// The name of a file or directory goes. What it has goes later: a worker sees to that.
    pub(in crate::filesystem) async fn remove_name_of_xfs(&self, file: usize, directory: usize) {
        let are_many = {
            let mut world = self.world();
            world.cache.discard(all_pages(file));
            let now = world.tick();
            let fs = world.xfs();
            fs.change_directory(directory, now);
            fs.unlink(file);
            let are_many = fs.unlinked.len() >= MANY;
            world.wake_inactivator();
            are_many
        };
        if are_many {
            self.take_unlinked_away().await;
        }
    }

    /// Files without a name lose what they have.
    pub(super) async fn take_unlinked_away(&self) {
        let files = std::mem::take(&mut self.world().xfs().unlinked);
        for file in files {
            let group = {
                let mut world = self.world();
                let fs = world.xfs();
                let inode = &fs.files.inodes[file];
                (inode.extents() > 0).then(|| fs.layout.group_of_inode(inode.number))
            };
            if let Some(group) = group {
                self.read_free_space(group).await;
            }
            self.world().xfs().inactivate(file);
        }
    }

    /// A directory is going to have another name, for which its inode may have no room.
    pub(super) async fn make_room_for_name(&self, name: &str, directory: usize) {
        let name = name.rsplit('/').next().unwrap_or_default();
        let (is_needed, group, goal) = {
            let mut world = self.world();
            let fs = world.xfs();
            let bytes = fs.names_bytes(directory) + name.len() as u64 + BESIDE_NAME;
            let number = fs.files.inodes[directory].number;
            let is_needed = bytes > ROOM && !fs.directory_blocks.contains_key(&directory);
            (is_needed, fs.layout.group_of_inode(number), number / SECTORS)
        };
        if !is_needed {
            return;
        }
        self.lock_group(group, false).await;
        self.read_free_space(group).await;
        {
            let mut world = self.world();
            let fs = world.xfs();
            if let Some(found) = fs.space.allocate(group, Some(goal), 1) {
                fs.directory_blocks.insert(directory, found.start);
                fs.change_parts(group, &FREE_SPACE);
            }
        }
        self.unlock_group(group);
    }
}

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

    /// A transaction changes the times of a file or directory.
    pub(super) fn change_times(&mut self, file: usize) {
        self.change_inode(file, Change::Times);
    }

    /// What is behind the core of a directory's inode.
    pub(super) fn directory_fork(&self, directory: usize) -> u64 {
        if self.directory_blocks.contains_key(&directory) {
            EXTENT
        } else {
            self.names_bytes(directory)
        }
    }

    /// A file has no name any more: it is on its group's list of such inodes.
    fn unlink(&mut self, file: usize) {
        let number = self.files.inodes[file].number;
        let group = self.layout.group_of_inode(number);
        let list = (FIRST_LIST + 4 * (number % LISTS)) / 128;
        self.change_inodes_of_group(group, 0);
        self.change_inodes_of_group(group, list);
        self.change_inode(file, Change::Data);
        self.files.inode(file).is_removed = true;
        self.files.dirty.retain(|(it, _)| *it != file);
        self.unlinked.push(file);
    }

    /// A file without name loses its blocks, and its inode is free.
    pub(super) fn inactivate(&mut self, file: usize) {
        self.give_up(file, 0);
        let number = self.files.inodes[file].number;
        self.with_fork.remove(&number);
        self.files.directories.remove(&file);
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
}
