//! Files by name: create, truncate, give up their blocks.

use super::Ext4Io;
use super::handles::CHANGE;
use cache::PAGE;
use fs::ext4::layout::GROUP;
use fs::inode::{Inode, Leaf};
use fs::key;

/// Blocks that creating and truncating a file may change.
/// Observed on 6.12: jbd2_handle_start.
pub(super) const CREATE: u64 = 40;
pub(super) const TRUNCATE: u64 = 33;

impl Ext4Io<'_> {
    /// Makes a file of this name.
    pub async fn create(&self, name: &str) -> usize {
        let (directory, number, [bitmap, descriptor, table]) = {
            let mut fs = self.ext4();
            let directory = fs.directory_of(name);
            let number = fs.take_inode_in(directory);
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
        let mut world = self.world();
        let now = world.tick();
        world.ext4().add(name, Inode::new(number, transaction, now))
    }

    /// The first file that is opened makes the superblock say where it is mounted.
    pub async fn note_mount(&self) {
        let takes_note = self.ext4().takes_note_of_mount();
        if takes_note {
            let handle = self.begin_handle(CHANGE).await;
            let superblock = self.ext4().superblock();
            self.change(superblock).await;
            self.end_handle(handle);
        }
    }

    /// Makes a file shorter or longer.
    pub async fn set_size(&self, file: usize, size: u64) {
        let (superblock, table, old) = {
            let mut fs = self.ext4();
            (fs.superblock(), fs.table_block(file), fs.inode(file).size)
        };
        let now = self.tick();
        if size == old {
            // Observed on 6.12: it looks for blocks behind the end first, and is on the list of
            // orphans meanwhile, which begins in the superblock.
            let handle = self.begin_handle(TRUNCATE).await;
            self.end_within_page(file, size).await;
            self.change(superblock).await;
            self.change(table).await;
            self.end_handle(handle);
        }
        let handle = self.begin_handle(CHANGE + 1).await;
        self.change(table).await;
        if size < old {
            self.change(superblock).await;
        }
        self.ext4().set_size(file, size, handle.transaction, now);
        self.end_handle(handle);
        if size < old {
            self.free_from(file, size).await;
        }
    }

    /// The page in which a file ends comes to memory, whether or not its block has contents
    /// (rule ext4-write-6).
    async fn end_within_page(&self, file: usize, size: u64) {
        let page = size / PAGE;
        if self.zero_behind(file, size).await {
            self.ext4().order(file, page..page + 1);
        }
        self.hold_end(file, size);
    }

    /// The same of a page whose block has no contents.
    pub(super) fn hold_end(&self, file: usize, size: u64) {
        let at = key(file, size / PAGE);
        if !size.is_multiple_of(PAGE) && !self.cache().holds(at) {
            self.cache().admit_blank(at);
        }
    }

    /// Gives up the blocks of a file behind a size, with the pages.
    pub async fn free_from(&self, file: usize, size: u64) {
        let block = size.div_ceil(PAGE);
        self.drop_pages(file, block).await;
        let handle = self.begin_handle(TRUNCATE).await;
        self.end_within_page(file, size).await;
        self.lock_map(file).await;
        let (table, gone) = {
            let mut fs = self.ext4();
            let gone = fs.free_from(file, block, handle.transaction);
            (fs.table_block(file), gone)
        };
        for blocks in gone {
            self.change_maps(blocks.start / GROUP).await;
        }
        let leaf = self.ext4().inode(file).has_leaves();
        if leaf && self.ext4().inode(file).extents() == 0 {
            self.tend_leaf(file, handle.transaction, Leaf::Spare).await;
        }
        self.unlock_map(file);
        self.change(table).await;
        self.end_handle(handle);
    }
}
