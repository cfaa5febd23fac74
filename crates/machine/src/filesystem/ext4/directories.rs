//! Directories on the disk: each has an inode and one block, which is metadata.
//!
// Divergence: the index of a large directory is not modelled: it has one block.

use super::Ext4;
use super::handles::CHANGE;
use super::names::CREATE;
use crate::filesystem::directories::{Move, ROOT};
use crate::task::Task;
use base::Fingerprint;
use block::Flags;
use cache::FILE_PAGES;
use fs::ext4::layout::{GROUP, UNIT};
use fs::inode::Inode;

/// Blocks that a new name of a file may change. // observed on 6.12: jbd2_handle_start
const RENAME: u64 = 63;
const REMOVE: u64 = 25;

impl Task {
    /// A directory is looked into.
    pub(in crate::filesystem) async fn read_directory(&self, directory: usize) {
        let block = self.world().fs().directory_blocks(directory)[0];
        self.read_metadata(block).await;
    }

    /// A handle changes which names are in a directory; it is younger, which its own inode says.
    pub(super) async fn change_directory(&self, directory: usize) {
        let blocks = self.world().fs().directory_blocks(directory);
        for block in blocks {
            self.change(block).await;
        }
        let mut world = self.world();
        let now = world.tick();
        world.fs().inode(directory).modified = Some(now);
    }

    /// Makes a directory in another.
    pub(in crate::filesystem) async fn make_directory(&self, name: &str, within: usize) -> usize {
        let (number, group) = {
            let mut world = self.world();
            let fs = world.fs();
            let group = fs.group_for_directory(name, within);
            (fs.take_inode(group), group)
        };
        let [bitmap, descriptor, table] = self.world().fs().inode_blocks(number);
        let is_fresh = self.world().fs().layout.is_first_of_group(number);
        if !is_fresh {
            self.read_metadata(bitmap).await;
        }
        let handle = self.begin_handle(CREATE).await;
        for block in [bitmap, descriptor, table] {
            self.change(block).await;
        }
        self.change_directory(within).await;
        let place = self.world().fs().space.metadata_block(group);
        if let Some(place) = place {
            self.change_maps(place / GROUP).await;
            self.change(place).await;
        }
        let transaction = handle.transaction;
        self.end_handle(handle);
        // The inode notes when it was made. // measured
        self.compute(self.costs().kernel_clock).await;
        let mut world = self.world();
        let now = world.tick();
        let mut inode = Inode::new(number, transaction, now);
        if let Some(place) = place {
            inode.map(0, place, 1, true);
        }
        world.fs().add(name, inode)
    }

    /// A file has another name; what had it before is gone, so what is to take its place is written
    /// first (rule ext4-space-6).
    pub(in crate::filesystem) async fn rename_on_ext4(&self, moved: Move) {
        let writes_first = {
            let mut world = self.world();
            let files = world.files();
            files.mount.writes_replaced && !files.is_directory(moved.file)
        };
        if moved.replaced.is_some() && writes_first {
            self.write_without_waiting(moved.file, 0..FILE_PAGES, Flags::NONE).await;
        }
        let handle = self.begin_handle(RENAME).await;
        let (table, superblock) = {
            let mut world = self.world();
            let fs = world.fs();
            (fs.table_block(moved.file), fs.layout.superblock())
        };
        self.change(table).await;
        self.change_directory(moved.old).await;
        if moved.new != moved.old {
            self.change_directory(moved.new).await;
        }
        if moved.new != moved.old && self.world().files().is_directory(moved.file) {
            // It says in which one it is.
            let block = self.world().fs().directory_blocks(moved.file)[0];
            self.change(block).await;
        }
        if let Some(replaced) = moved.replaced {
            let table = self.world().fs().table_block(replaced);
            self.change(table).await;
            self.change(superblock).await;
        }
        self.world().fs().inode(moved.file).changed_in = handle.transaction;
        self.end_handle(handle);
        if let Some(replaced) = moved.replaced {
            self.give_inode_up(replaced).await;
        }
    }

    /// The name of a file or directory goes; until it has lost its blocks it is on the list of
    /// orphans, which begins in the superblock.
    pub(in crate::filesystem) async fn remove_name(&self, file: usize, directory: usize) {
        let (table, superblock) = {
            let mut world = self.world();
            let fs = world.fs();
            (fs.table_block(file), fs.layout.superblock())
        };
        let handle = self.begin_handle(REMOVE).await;
        self.change_directory(directory).await;
        self.change(table).await;
        self.change(superblock).await;
        self.end_handle(handle);
    }

    /// A file that has no name any more loses its blocks and its inode.
    pub(in crate::filesystem) async fn give_inode_up(&self, file: usize) {
        if self.world().files().is_directory(file) {
            let mut world = self.world();
            let fs = world.fs();
            let block = fs.directory_blocks(file)[0];
            fs.journal.forget(block);
        }
        self.free_from(file, 0).await;
        let [bitmap, descriptor, _] = {
            let mut world = self.world();
            let number = world.fs().inode(file).number;
            world.fs().inode_blocks(number)
        };
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

impl Ext4 {
    /// The block with the names in a directory, and that with its inode.
    pub(super) fn directory_blocks(&self, directory: usize) -> [u64; 2] {
        let block = match directory {
            ROOT => self.layout.root_directory(),
            _ => self.inodes[directory].find(0).map_or(self.layout.root_directory(), |it| it.start),
        };
        [block, self.table_block(directory)]
    }

    /// What changes with an inode that is taken or given up: the bitmap, its group's descriptor and
    /// the table.
    pub(super) fn inode_blocks(&self, number: u64) -> [u64; 3] {
        let group = self.layout.group_of_inode(number);
        let (bitmap, descriptor) = (self.layout.inode_bitmap(group), self.layout.descriptor(group));
        [bitmap, descriptor, self.layout.table_block(number)]
    }

    /// A free inode in a group.
    pub(super) fn take_inode(&mut self, group: u64) -> u64 {
        let first = self.layout.first_inode(group);
        let next = self.next_inodes.entry(group).or_insert(first);
        *next += 1;
        *next - 1
    }

    /// The group of a file's inode: that of its directory.
    pub(super) fn group_of_directory(&self, directory: usize) -> u64 {
        self.layout.group_of_inode(self.inodes[directory].number)
    }

    /// Observed on 6.12: directories in the root directory are spread over the units, those in others are
    /// where those are.
    // Divergence: which unit a name gets is drawn in another way than the kernel's hash of it.
    fn group_for_directory(&self, name: &str, within: usize) -> u64 {
        if within != ROOT {
            return self.group_of_directory(within);
        }
        let mut mark = Fingerprint::new();
        mark.mix_bytes(name.as_bytes());
        mark.finish() % self.layout.groups().div_ceil(UNIT) * UNIT
    }
}
