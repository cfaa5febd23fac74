//! Files by name: create, truncate, give up their blocks.

use super::handles::CHANGE;
use crate::buffered::PAGE;
use crate::filesystem::{all_pages, key};
use crate::task::Task;
use crate::world::World;
use fs::ext4::layout::GROUP;
use fs::inode::{Inode, Leaf};

/// Blocks that creating and truncating a file may change.
/// Observed on 6.12: jbd2_handle_start.
pub(super) const CREATE: u64 = 40;
pub(super) const TRUNCATE: u64 = 33;

impl Task {
    pub(in crate::filesystem) async fn create(&self, name: &str) -> usize {
        let (directory, number, [bitmap, descriptor, table]) = {
            let mut world = self.world();
            let fs = world.fs();
            let directory = fs.directory_of(name);
            let number = fs.take_inode(fs.group_of_directory(directory));
            (directory, number, fs.inode_blocks(number))
        };
        self.read_metadata(bitmap).await;
        let handle = self.begin_handle(CREATE).await;
        for block in [bitmap, descriptor, table] {
            self.change(block).await;
        }
        self.change_directory(directory).await;
        let transaction = handle.transaction;
        self.end_handle(handle);
        // The inode notes when it was made. // measured
        self.compute(self.costs().kernel_clock).await;
        let mut world = self.world();
        let now = world.tick();
        world.fs().add(name, Inode::new(number, transaction, now))
    }

    /// The first file that is opened makes the superblock say where it is mounted.
    pub(in crate::filesystem) async fn note_mount(&self) {
        if std::mem::take(&mut self.world().fs().notes_mount) {
            let handle = self.begin_handle(CHANGE).await;
            let superblock = self.world().fs().layout.superblock();
            self.change(superblock).await;
            self.end_handle(handle);
        }
    }

    /// Makes a file shorter or longer.
    // Divergence: the last page of a file that ends within it is not zeroed on the disk.
    pub(in crate::filesystem) async fn set_size_of_ext4(&self, file: usize, size: u64) {
        let (superblock, table, old) = {
            let mut world = self.world();
            let fs = world.fs();
            (fs.layout.superblock(), fs.table_block(file), fs.inode(file).size)
        };
        let now = self.world().tick();
        let writes_replaced = self.world().files().mount.writes_replaced;
        if size == old {
            // Observed on 6.12: it looks for blocks behind the end first, and is on the list of
            // orphans meanwhile, which begins in the superblock.
            let handle = self.begin_handle(TRUNCATE).await;
            self.change(superblock).await;
            self.change(table).await;
            self.end_handle(handle);
        }
        let handle = self.begin_handle(CHANGE + 1).await;
        self.change(table).await;
        if size < old {
            self.change(superblock).await;
        }
        {
            let mut world = self.world();
            let inode = world.fs().inode(file);
            (inode.size, inode.disk_size) = (size, size);
            inode.is_rewritten |= size == 0 && writes_replaced;
            (inode.changed_in, inode.data_changed_in) = (handle.transaction, handle.transaction);
            inode.modified = Some(now);
        }
        self.end_handle(handle);
        if size < old {
            self.free_from(file, size.div_ceil(PAGE)).await;
        }
    }

    /// Gives up the blocks of a file from one on, with the pages.
    pub(in crate::filesystem) async fn free_from(&self, file: usize, block: u64) {
        self.world().cache.discard(key(file, block)..all_pages(file).end);
        let handle = self.begin_handle(TRUNCATE).await;
        self.lock_map(file).await;
        let (table, gone) = {
            let mut world = self.world();
            let fs = world.fs();
            fs.delayed.cut(file, block);
            let gone = fs.inode(file).truncate(block);
            if let Some((_, rest)) = fs.inode(file).kept.take() {
                fs.space.free_now(rest);
            }
            for blocks in &gone {
                fs.space.free_after(handle.transaction, blocks.clone());
            }
            (fs.table_block(file), gone)
        };
        for blocks in gone {
            self.change_maps(blocks.start / GROUP).await;
        }
        let leaf = self.world().fs().inode(file).has_leaves();
        if leaf && self.world().fs().inode(file).extents() == 0 {
            self.tend_leaf(file, handle.transaction, Leaf::Spare).await;
        }
        self.unlock_map(file);
        self.change(table).await;
        self.end_handle(handle);
    }
}

impl World {
    /// What was kept for a file goes with the last one who could write it.
    pub(in crate::filesystem) fn give_back_kept(&mut self, index: usize) {
        let fs = self.fs();
        if let Some((_, rest)) = fs.inode(index).kept.take() {
            fs.space.free_now(rest);
        }
    }
}
