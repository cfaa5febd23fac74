//! Where XFS says which blocks of a file are where: in its inode while there is room, and then in
//! blocks of a tree.
//!
//! A block of the tree is logged from the first place that changed since it was written to the end
//! of its entries. Where changes are at random that is soon all of it.
//!
// observed on 6.12: xfs_db, and sectors of log writes while blocks of a file that were set aside are
// written at random places

use super::Xfs;
use super::layout::SECTORS;
use super::log::{Item, bytes_of_beginning};
use super::placing::FREE_SPACE;

/// Bytes of an extent.
const EXTENT: u64 = 16;
/// Extents for which an inode of 512 bytes has room.
const IN_INODE: usize = 21;
/// Bytes of a block of the tree in front of its extents, and extents for which it has room.
const HEAD: u64 = 72;
const IN_BLOCK: usize = 251;

/// A block of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeBlock {
    block: u64,
    /// Bytes from its beginning on that have changed since it was written.
    changed: u64,
}

impl Xfs {
    /// The extents of a file have changed at one of its blocks: what says so outside the inode.
    pub(super) fn change_extents(&mut self, file: usize, block: u64) {
        let has_grown = self.tend_tree(file);
        let inode = &self.files.inodes[file];
        let Some(tree) = self.trees.get_mut(&inode.number) else { return };
        // Divergence: blocks of the tree are filled alike.
        let (extents, blocks) = (inode.extents(), tree.len());
        let at = match blocks {
            1 => 0,
            _ => (blocks * inode.extents_before(block) / extents).min(blocks - 1),
        };
        let entries = extents.div_ceil(blocks) as u64 * EXTENT;
        let touched = if has_grown { &mut tree[..] } else { &mut tree[at..=at] };
        touched.iter_mut().for_each(|it| it.changed = it.changed.max(HEAD + entries));
        let touched: Vec<TreeBlock> = touched.to_vec();
        for TreeBlock { block, changed } in touched {
            let item = Item::Buffer(block * SECTORS, SECTORS);
            self.change(item, bytes_of_beginning(changed));
        }
    }

    /// Bytes that the inode of a file has behind its core: extents, or the root of their tree.
    pub(super) fn fork_of_file(&self, file: usize) -> u64 {
        let inode = &self.files.inodes[file];
        match self.trees.get(&inode.number) {
            Some(tree) => HEAD + tree.len() as u64 * EXTENT,
            None => inode.extents() as u64 * EXTENT,
        }
    }

    /// The tree gets the blocks that it needs, as near to the inode as there are some, or gives them
    /// back when the inode has room again. Answers with whether it got some.
    // Divergence: it has one level, and loses no block before it loses all.
    fn tend_tree(&mut self, file: usize) -> bool {
        let inode = &self.files.inodes[file];
        let (number, extents) = (inode.number, inode.extents());
        if extents <= IN_INODE {
            for TreeBlock { block, .. } in self.trees.remove(&number).unwrap_or_default() {
                self.space.free_after(self.log.sequence, block..block + 1);
                self.change_parts(self.space.group_of(block), &FREE_SPACE);
            }
            return false;
        }
        let group = self.layout.group_of_inode(number);
        let have = self.trees.get(&number).map_or(0, Vec::len);
        let wanted = extents.div_ceil(IN_BLOCK);
        for _ in have..wanted {
            let near = Some(number / SECTORS);
            let Some(found) = self.space.allocate(group, near, 1) else { break };
            let new = TreeBlock { block: found.start, changed: 0 };
            self.trees.entry(number).or_default().push(new);
            self.change_parts(group, &FREE_SPACE);
        }
        wanted > have
    }
}
