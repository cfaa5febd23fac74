//! Files by name: create, truncate; and inodes for them.

use super::allocation::FREE_SPACE;
use super::changes::Change;
use crate::buffered::PAGE;
use crate::file::Errno;
use crate::filesystem::{all_pages, key};
use crate::task::Task;
use fs::inode::Inode;
use fs::xfs::layout::{CHUNK, CLUSTER, Part, SECTORS};
use fs::xfs::log::{Item, bytes_of_chunk};
use std::collections::BTreeSet;
use std::ops::Range;

/// Blocks of a chunk.
const CHUNK_BLOCKS: u64 = CHUNK / SECTORS;

impl Task {
    /// Makes a file of this name.
    pub(in crate::filesystem) async fn create_xfs(&self, name: &str) -> Result<usize, Errno> {
        let (directory, group) = {
            let mut world = self.world();
            let fs = world.xfs();
            let directory = fs.files.directory_of(name);
            (directory, fs.layout.group_of_inode(fs.files.inodes[directory].number))
        };
        let number = self.take_inode_of_xfs(group).await?;
        self.make_room_for_name(name, directory).await;
        // The inode notes when it was made. // measured
        self.compute(self.costs().kernel_clock).await;
        let mut world = self.world();
        let now = world.tick();
        let fs = world.xfs();
        let file = fs.files.add(name, Inode::new(number, 0, now));
        fs.change_directory(directory, now);
        fs.change_parts(group, &[Part::Inodes, Part::FreeChunks, Part::Chunks]);
        fs.change_inode(file, Change::Data);
        Ok(file)
    }

    /// The first free inode of a group. Who takes its first one reads where free ones are.
    pub(super) async fn take_inode_of_xfs(&self, group: u64) -> Result<u64, Errno> {
        let is_there = |it: &BTreeSet<u64>| !it.is_empty();
        if !self.world().xfs().free_inodes.get(&group).is_some_and(is_there) {
            self.make_chunk(group).await?;
        } else {
            self.read_inode_trees(group, [Part::FreeChunks, Part::Chunks]).await;
        }
        let (number, cluster) = {
            let mut world = self.world();
            let fs = world.xfs();
            let free = fs.free_inodes.entry(group).or_default();
            let number = free.pop_first().expect("a chunk was made");
            (number, fs.layout.cluster(number))
        };
        self.read_xfs(cluster).await;
        Ok(number)
    }

    async fn read_inode_trees(&self, group: u64, parts: [Part; 2]) {
        for part in parts {
            let place = self.world().xfs().layout.part(group, part);
            self.read_xfs(place).await;
        }
    }

    /// Makes room for more inodes: behind those there are, if that is free.
    // Divergence: in a group without room for them there are no more files; the kernel looks in
    // others.
    async fn make_chunk(&self, group: u64) -> Result<(), Errno> {
        self.lock_group(group, false).await;
        self.read_free_space(group).await;
        self.read_inode_trees(group, [Part::Chunks, Part::FreeChunks]).await;
        let mut world = self.world();
        let fs = world.xfs();
        let goal = fs.last_chunk.get(&group).copied().unwrap_or(group * fs.layout.group_blocks);
        let found = fs.space.allocate_aligned(group, goal, CHUNK_BLOCKS);
        let Some(Range { start, .. }) = found else {
            drop(world);
            self.unlock_group(group);
            return Err(Errno::Enospc);
        };
        fs.last_chunk.insert(group, start + CHUNK_BLOCKS);
        fs.change_parts(group, &FREE_SPACE);
        let first = start * SECTORS;
        for (cluster, bytes) in [(first, bytes_of_chunk()), (first + CLUSTER, 0)] {
            fs.known.insert(cluster);
            fs.change(Item::Buffer(cluster, CLUSTER), bytes);
        }
        fs.free_inodes.entry(group).or_default().extend(first..first + CHUNK);
        drop(world);
        self.unlock_group(group);
        Ok(())
    }

    /// Makes a file shorter or longer.
    // Divergence: the last page of a file that ends within it is not zeroed on the disk.
    pub(in crate::filesystem) async fn set_size_of_xfs(&self, file: usize, size: u64) {
        let old = self.world().files().inode(file).size;
        let block = size.div_ceil(PAGE);
        if size < old {
            self.read_free_space(0).await;
            self.world().cache.discard(key(file, block)..all_pages(file).end);
        }
        let mut world = self.world();
        let now = world.tick();
        let fs = world.xfs();
        let inode = fs.inode(file);
        (inode.size, inode.disk_size, inode.modified) = (size, size, Some(now));
        inode.is_rewritten |= size == 0;
        fs.give_up(file, block);
        fs.change_inode(file, Change::Data);
    }
}
