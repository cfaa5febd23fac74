//! Files by name: create, truncate, remove.
//!
// Divergence: the index of a large folder is not modelled: it has one block.

use super::handles::CHANGE;
use super::layout::GROUP;
use crate::buffered::PAGE;
use crate::filesystem::inode::{Inode, Leaf};
use crate::filesystem::{all_pages, key};
use crate::task::Task;
use crate::world::World;

/// Blocks that creating, truncating and removing a file may change.
/// Observed on 6.12: jbd2_handle_start.
const CREATE: u64 = 40;
const TRUNCATE: u64 = 33;
const REMOVE: u64 = 25;

/// The inode of the folder.
const FOLDER: u64 = 2;

impl Task {
    /// The folder is looked into.
    pub(in crate::filesystem) async fn read_folder(&self) {
        let folder = self.world().fs().layout.root_directory();
        self.read_metadata(folder).await;
    }

    pub(in crate::filesystem) async fn create(&self, name: &str) -> usize {
        let (folder, number, bitmap, descriptor, table) = {
            let mut world = self.world();
            let fs = world.fs();
            let number = fs.next_inode;
            fs.next_inode += 1;
            let (layout, group) = (&fs.layout, fs.layout.group_of_inode(number));
            let bitmap = layout.inode_bitmap(group);
            (
                layout.root_directory(),
                number,
                bitmap,
                layout.descriptor(group),
                layout.table_block(number),
            )
        };
        self.read_metadata(bitmap).await;
        let handle = self.begin_handle(CREATE).await;
        // The folder is younger, which its own inode says.
        let own = self.world().fs().layout.table_block(FOLDER);
        for block in [bitmap, descriptor, table, folder, own] {
            self.change(block).await;
        }
        let transaction = handle.transaction;
        self.end_handle(handle);
        // The inode notes when it was made. // measured
        self.compute(self.costs().kernel_clock).await;
        let mut world = self.world();
        let now = world.tick();
        let fs = world.fs();
        fs.inodes.push(Inode::new(number, transaction, now));
        let file = fs.inodes.len() - 1;
        fs.names.insert(name.to_string(), file);
        file
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
            (inode.changed_in, inode.data_changed_in) = (handle.transaction, handle.transaction);
            inode.modified = Some(now);
        }
        self.end_handle(handle);
        if size < old {
            self.free_from(file, size.div_ceil(PAGE)).await;
        }
    }

    /// Gives up the blocks of a file from one on, with the pages.
    async fn free_from(&self, file: usize, block: u64) {
        self.world().cache.discard(key(file, block)..all_pages(file).end);
        let handle = self.begin_handle(TRUNCATE).await;
        let (table, gone) = {
            let mut world = self.world();
            let fs = world.fs();
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
        self.change(table).await;
        self.end_handle(handle);
    }

    pub(in crate::filesystem) async fn remove(&self, file: usize) {
        let (folder, table, superblock, bitmap, descriptor) = {
            let mut world = self.world();
            let fs = world.fs();
            let group = fs.layout.group_of_inode(fs.inodes[file].number);
            let (bitmap, descriptor) = (fs.layout.inode_bitmap(group), fs.layout.descriptor(group));
            let (folder, superblock) = (fs.layout.root_directory(), fs.layout.superblock());
            (folder, fs.table_block(file), superblock, bitmap, descriptor)
        };
        self.lock_folder().await;
        let handle = self.begin_handle(REMOVE).await;
        let own = self.world().fs().layout.table_block(FOLDER);
        for block in [folder, own, table, superblock] {
            self.change(block).await;
        }
        self.end_handle(handle);
        self.unlock_folder();
        self.free_from(file, 0).await;
        let handle = self.begin_handle(CHANGE).await;
        self.change(bitmap).await;
        self.change(descriptor).await;
        self.end_handle(handle);
        let mut world = self.world();
        let inode = world.fs().inode(file);
        (inode.is_removed, inode.size, inode.disk_size) = (true, 0, 0);
        world.fs().dirty.retain(|(it, _)| *it != file);
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
