//! Where it is said which blocks of a file are where: in its inode, and in leaves when there are
//! many.

use super::Ext4;
use super::layout::GROUP;
use crate::inode::Leaf;

impl Ext4 {
    /// The blocks that say which blocks of a group are used.
    pub fn maps(&self, group: u64) -> [u64; 2] {
        [self.layout.block_bitmap(group), self.layout.descriptor(group)]
    }

    /// The extents of a file have changed in a transaction: its leaf is changed, made or given up.
    /// The answer is which blocks change with that. Extents without a leaf are in the inode, which
    /// also says how many blocks the file has, its leaves among them.
    // observed on 6.12: one of four writers splits an extent while the table of inodes is being
    // written to the log, and does not wait
    pub fn tend_leaf(&mut self, file: usize, transaction: u64, leaf: Leaf) -> Vec<u64> {
        let mut changes = self.change_leaf(file, transaction, leaf);
        if leaf != Leaf::Stays || !self.inode(file).has_leaves() {
            changes.push(self.table_block(file));
            self.inode(file).changed_in = transaction;
        }
        changes
    }

    fn change_leaf(&mut self, file: usize, transaction: u64, leaf: Leaf) -> Vec<u64> {
        match leaf {
            Leaf::Stays => self.inodes[file].changed_leaves(false),
            Leaf::Passing => {
                let mut changes = Vec::new();
                for block in self.places_of_leaves(file) {
                    changes.extend(self.give_up(transaction, block));
                }
                changes
            }
            Leaf::Needed | Leaf::Cut => {
                let places = self.places_of_leaves(file);
                self.inodes[file].give_places(&places);
                // Observed on 6.12: descriptor blocks in the journal.
                let mut changes = Vec::new();
                for place in places {
                    changes.extend(self.maps(place / GROUP));
                    changes.push(place);
                }
                changes.extend(self.inodes[file].changed_leaves(true));
                changes
            }
            Leaf::Spare => {
                let mut changes = Vec::new();
                for block in self.inodes[file].take_leaves() {
                    changes.extend(self.give_up(transaction, block));
                }
                changes
            }
        }
    }

    /// Takes blocks for what the leaves of a file need.
    fn places_of_leaves(&mut self, file: usize) -> Vec<u64> {
        let group = self.data_group(file);
        let wanted = self.inodes[file].wanted_places().into_iter();
        let near = wanted.map(|goal| goal.map_or(group, |goal| goal / GROUP));
        near.filter_map(|group| self.space.metadata_block(group)).collect()
    }

    /// Gives up the block of a leaf in a transaction; the answer is which blocks change.
    fn give_up(&mut self, transaction: u64, block: u64) -> [u64; 2] {
        self.journal.forget(block);
        self.space.free_after(transaction, block..block + 1);
        self.maps(block / GROUP)
    }
}
