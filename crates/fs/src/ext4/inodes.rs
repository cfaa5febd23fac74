//! Files and directories as they come and go: their inodes, and what changes with them.

use super::Ext4;
use super::layout::UNIT;
use crate::files::ROOT;
use base::Fingerprint;

impl Ext4 {
    /// The block of the table with a file's inode.
    pub fn table_block(&self, file: usize) -> u64 {
        self.layout.table_block(self.inodes[file].number)
    }

    /// The block with the names in a directory, and that with its inode.
    pub fn directory_blocks(&self, directory: usize) -> [u64; 2] {
        let block = match directory {
            ROOT => self.layout.root_directory(),
            _ => self.inodes[directory].find(0).map_or(self.layout.root_directory(), |it| it.start),
        };
        [block, self.table_block(directory)]
    }

    /// What changes with an inode that is taken or given up: the bitmap, its group's descriptor and
    /// the table.
    pub fn inode_blocks(&self, number: u64) -> [u64; 3] {
        let group = self.layout.group_of_inode(number);
        let (bitmap, descriptor) = (self.layout.inode_bitmap(group), self.layout.descriptor(group));
        [bitmap, descriptor, self.layout.table_block(number)]
    }

    /// Takes an inode for a file in a directory: in the group of that.
    pub fn take_inode_in(&mut self, directory: usize) -> u64 {
        self.take_inode(self.group_of_directory(directory))
    }

    /// Takes an inode for a directory of this name; the answer is its number and its group.
    pub fn take_inode_for_directory(&mut self, name: &str, within: usize) -> (u64, u64) {
        let group = self.group_for_directory(name, within);
        (self.take_inode(group), group)
    }

    /// Whether an inode is the first of its group.
    pub fn is_first_of_group(&self, number: u64) -> bool {
        self.layout.is_first_of_group(number)
    }

    /// Takes a block for metadata, in a group if there is one.
    pub fn take_metadata_block(&mut self, group: u64) -> Option<u64> {
        self.space.metadata_block(group)
    }

    /// Changes the size of a file, in a transaction and a tick.
    pub fn set_size(&mut self, file: usize, size: u64, transaction: u64, now: u64) {
        let writes_replaced = self.mount().writes_replaced;
        let inode = self.inode(file);
        (inode.size, inode.disk_size) = (size, size);
        inode.is_rewritten |= size == 0 && writes_replaced;
        (inode.changed_in, inode.data_changed_in) = (transaction, transaction);
        inode.modified = Some(now);
    }

    /// A transaction has changed a file and where its data are.
    pub fn note_changed_data(&mut self, file: usize, transaction: u64) {
        let inode = self.inode(file);
        (inode.changed_in, inode.data_changed_in) = (transaction, transaction);
    }

    /// A directory has lost its name: its block is not logged any more.
    pub fn forget_directory_block(&mut self, directory: usize) {
        let block = self.directory_blocks(directory)[0];
        self.journal.forget(block);
    }

    /// A file has no name, no blocks and no inode any more.
    pub fn note_removed(&mut self, file: usize) {
        let inode = self.inode(file);
        (inode.is_removed, inode.size, inode.disk_size) = (true, 0, 0);
        let number = inode.number;
        self.free_inodes.insert(number);
        self.note_clean(file);
    }

    /// The first free inode in a group.
    /// Observed on 6.12: of files that are made and removed by turns each has the same.
    fn take_inode(&mut self, group: u64) -> u64 {
        let first = self.layout.first_inode(group);
        let next = self.next_inodes.entry(group).or_insert(first);
        if let Some(number) = self.free_inodes.range(first..*next).next().copied() {
            self.free_inodes.remove(&number);
            return number;
        }
        *next += 1;
        *next - 1
    }

    /// The group of a file's inode: that of its directory.
    fn group_of_directory(&self, directory: usize) -> u64 {
        self.layout.group_of_inode(self.inodes[directory].number)
    }

    /// Observed on 6.12: directories in the root directory are spread over the units, those in
    /// others are where those are.
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
