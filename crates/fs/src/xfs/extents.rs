//! Where XFS says which blocks of a file are where: in its inode while there is room, and then in
//! blocks of a tree.
//!
//! A block of the tree is logged from the first place that changed since it was written to the end
//! of its entries. Where changes are at random that is soon all of it.
//!
// observed on 6.12: xfs_db, and sectors of log writes while blocks of a file that were set aside
// are written at random places

use super::Xfs;
use super::layout::{FREE_SPACE, SECTORS};
use super::log::{Item, bytes_of_beginning};
use std::ops::Range;

/// Bytes of an extent.
const EXTENT: u64 = 16;
/// Extents for which an inode of 512 bytes has room.
const IN_INODE: usize = 21;
/// Bytes of a block of the tree in front of its extents, and how many of those it may have, but for
/// the only block.
const HEAD: u64 = 72;
const MOST: usize = 251;
const LEAST: usize = MOST / 2;

/// A block of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeBlock {
    block: u64,
    extents: usize,
    /// Bytes from its beginning on that have changed since it was written.
    changed: u64,
}

impl Xfs {
    /// The extents of a file have changed at one of its blocks: what says so outside the inode.
    pub(super) fn change_extents(&mut self, file: usize, block: u64) {
        let inode = &mut self.files.inodes[file];
        let (number, extents) = (inode.number, inode.extents());
        let before = inode.extents_before(block);
        if extents <= IN_INODE {
            self.trees.remove(&number).into_iter().flatten().for_each(|it| self.free(it));
            return;
        }
        let mut tree = self.trees.remove(&number).unwrap_or_default();
        if tree.is_empty() {
            tree.extend(self.new_block(number));
        }
        let touched = self.balance(&mut tree, number, before, extents);
        for it in &mut tree[touched] {
            it.changed = it.changed.max(HEAD + it.extents as u64 * EXTENT);
            let item = Item::Buffer(it.block * SECTORS, SECTORS);
            self.change(item, bytes_of_beginning(it.changed));
        }
        if !tree.is_empty() {
            self.trees.insert(number, tree);
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

    /// A file has so many extents now, and what changed lies behind so many: the block in which
    /// that is has more or less of them, and is cut in two, or gets some of its neighbour's, or
    /// goes. Answers with the blocks that have changed.
    // Divergence: the tree has one level.
    fn balance(
        &mut self,
        tree: &mut Vec<TreeBlock>,
        number: u64,
        mut before: usize,
        extents: usize,
    ) -> Range<usize> {
        let others: usize = tree.iter().map(|it| it.extents).sum();
        let mut at = 0;
        while at + 1 < tree.len() && before > tree[at].extents {
            before -= tree[at].extents;
            at += 1;
        }
        let Some(here) = tree.get_mut(at) else { return 0..0 };
        here.extents = (here.extents + extents).saturating_sub(others);
        let here = here.extents;
        if here > MOST {
            let Some(new) = self.new_block(number) else { return at..at + 1 };
            tree[at].extents = here.div_ceil(2);
            tree.insert(at + 1, TreeBlock { extents: here / 2, ..new });
            return at..at + 2;
        }
        if here >= LEAST || tree.len() == 1 {
            return at..at + 1;
        }
        let (first, second) = if at > 0 { (at - 1, at) } else { (at, at + 1) };
        let together = tree[first].extents + tree[second].extents;
        if together < 2 * LEAST {
            tree[first].extents = together;
            let gone = tree.remove(second);
            self.free(gone);
            return first..first + 1;
        }
        let missing = LEAST - here;
        let (giver, taker) = if at > 0 { (first, second) } else { (second, first) };
        tree[giver].extents -= missing;
        tree[taker].extents += missing;
        first..second + 1
    }

    /// A block for the tree of an inode, as near to it as there is one.
    fn new_block(&mut self, number: u64) -> Option<TreeBlock> {
        let group = self.layout.group_of_inode(number);
        let found = self.space.allocate(group, Some(number / SECTORS), 1)?;
        self.change_parts(group, &FREE_SPACE);
        Some(TreeBlock { block: found.start, extents: 0, changed: 0 })
    }

    fn free(&mut self, it: TreeBlock) {
        self.log.cancel(it.block * SECTORS, SECTORS);
        self.space.free_after(self.log.sequence, it.block..it.block + 1);
        self.change_parts(self.space.group_of(it.block), &FREE_SPACE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mount;
    use crate::inode::Inode;
    use base::Rng;
    use block::{Kernel, Version};

    #[test]
    fn the_tree_has_all_extents_and_its_blocks_are_half_full_at_least() {
        let kernel = Kernel::of(Version::V6_12);
        let mut fs = Xfs::new(Mount::default(), kernel, 40 << 30);
        let (inode, blocks) = (131, 2000);
        fs.files.inodes.push(Inode::new(inode, 0, 0));
        fs.files.inode(1).map(0, 1 << 20, blocks, false);
        let mut order: Vec<u64> = (0..blocks).collect();
        Rng::stream(1, "order").shuffle(&mut order);
        let mut most = 0;
        for block in order {
            fs.files.inode(1).convert(block..block + 1);
            fs.change_extents(1, block);
            let extents = fs.files.inode(1).extents();
            let Some(tree) = fs.trees.get(&inode) else {
                assert!(extents <= IN_INODE);
                continue;
            };
            assert!(extents > IN_INODE);
            assert_eq!(tree.iter().map(|it| it.extents).sum::<usize>(), extents);
            assert!(tree.iter().all(|it| it.extents <= MOST));
            assert!(tree.len() == 1 || tree.iter().all(|it| it.extents >= LEAST), "{tree:?}");
            most = most.max(tree.len());
        }
        assert!(most > 3, "{most}");
        assert!(fs.trees.is_empty(), "one extent is left");
    }
}
