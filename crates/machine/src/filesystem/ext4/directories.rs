//! Directories on the disk: each has an inode and one block, which is metadata.
//!
// Divergence: the index of a large directory is not modelled: it has one block.

use super::Ext4Io;
use super::handles::CHANGE;
use super::names::CREATE;
use block::Flags;
use cache::FILE_PAGES;
use fs::ext4::layout::GROUP;
use fs::files::Move;
use fs::inode::Inode;

/// Blocks that a new name of a file may change (observed on 6.12: jbd2_handle_start).
const RENAME: u64 = 63;
const REMOVE: u64 = 25;

impl Ext4Io<'_> {
    /// A directory is looked into.
    pub async fn read_directory(&self, directory: usize) {
        let block = self.ext4().directory_blocks(directory)[0];
        self.read_metadata(block).await;
    }

    /// A handle changes which names are in a directory; it is younger, which its own inode says.
    pub(super) async fn change_directory(&self, directory: usize) {
        let blocks = self.ext4().directory_blocks(directory);
        for block in blocks {
            self.change(block).await;
        }
        let now = self.tick();
        self.ext4().inode(directory).modified = Some(now);
    }

    /// Makes a directory in another.
    pub async fn make_directory(&self, name: &str, within: usize) -> usize {
        let (number, group) = self.ext4().take_inode_for_directory(name, within);
        let [bitmap, descriptor, table] = self.ext4().inode_blocks(number);
        let is_fresh = self.ext4().is_first_of_group(number);
        if !is_fresh {
            self.read_metadata(bitmap).await;
        }
        let handle = self.begin_handle(CREATE).await;
        for block in [bitmap, descriptor, table] {
            self.change(block).await;
        }
        self.change_directory(within).await;
        let place = self.ext4().take_metadata_block(group);
        if let Some(place) = place {
            self.change_maps(place / GROUP).await;
            self.change(place).await;
        }
        let transaction = handle.transaction;
        self.end_handle(handle);
        let mut world = self.world();
        let now = world.tick();
        let mut inode = Inode::new(number, transaction, now);
        if let Some(place) = place {
            inode.map(0, place, 1, true);
        }
        world.ext4().add(name, inode)
    }

    /// A file has another name; what had it before has none, so what is to take its place is
    /// written first (rule ext4-space-6).
    pub async fn rename(&self, moved: Move) {
        let writes_first = {
            let files = self.files();
            files.mount().writes_replaced && !files.is_directory(moved.file)
        };
        if moved.replaced.is_some() && writes_first {
            self.write_without_waiting(moved.file, 0..FILE_PAGES, Flags::NONE).await;
        }
        let handle = self.begin_handle(RENAME).await;
        let (table, superblock) = {
            let fs = self.ext4();
            (fs.table_block(moved.file), fs.superblock())
        };
        self.change(table).await;
        self.change_directory(moved.old).await;
        if moved.new != moved.old {
            self.change_directory(moved.new).await;
        }
        if moved.new != moved.old && self.files().is_directory(moved.file) {
            // It says in which one it is.
            let block = self.ext4().directory_blocks(moved.file)[0];
            self.change(block).await;
        }
        if let Some(replaced) = moved.replaced {
            let table = self.ext4().table_block(replaced);
            self.change(table).await;
            self.change(superblock).await;
        }
        self.ext4().inode(moved.file).changed_in = handle.transaction;
        self.end_handle(handle);
    }

    /// The name of a file or directory goes; until it has lost its blocks it is on the list of
    /// orphans, which begins in the superblock.
    pub async fn remove_name(&self, file: usize, directory: usize) {
        let (table, superblock) = {
            let fs = self.ext4();
            (fs.table_block(file), fs.superblock())
        };
        let handle = self.begin_handle(REMOVE).await;
        self.change_directory(directory).await;
        self.change(table).await;
        self.change(superblock).await;
        self.end_handle(handle);
    }

    /// A file that has no name any more loses its blocks and its inode.
    pub async fn give_inode_up(&self, file: usize) {
        if self.files().is_directory(file) {
            self.ext4().forget_directory_block(file);
        }
        self.free_from(file, 0).await;
        let [bitmap, descriptor, _] = {
            let mut fs = self.ext4();
            let number = fs.inode(file).number;
            fs.inode_blocks(number)
        };
        let handle = self.begin_handle(CHANGE).await;
        self.change(bitmap).await;
        self.change(descriptor).await;
        self.end_handle(handle);
        self.ext4().note_removed(file);
    }
}
