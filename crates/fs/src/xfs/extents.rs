//! Where XFS says which blocks of a file are where: in its inode while there is room, and then in
//! blocks of a tree.
//!
//! Which extents come and go in the tree, and in which order, decides which parts of its blocks are
//! logged.
//!
// observed on 6.12: xfs_db, and contents of the log while blocks of a file that were set aside are
// written at random places
//
// Divergence: who gives up blocks, or fills a hole between two extents, was not looked at.

use super::Xfs;
use super::layout::{FREE_SPACE, SECTORS};
use super::log::Item;
use super::tree::{EXTENT, Place, Tree};
use std::ops::Range;

/// Extents for which an inode of 512 bytes has room.
const IN_INODE: usize = 21;

/// A step of a change of a tree.
enum Step {
    Insert(Place),
    Remove(usize),
    Update(Range<usize>),
}

impl Xfs {
    /// Blocks of a file have got their places, from one on.
    pub(super) fn extents_added(&mut self, file: usize, block: u64) {
        let index = self.extent_with(file, block);
        let Some(more) = self.tree_lacks(file) else { return };
        let behind = |it: usize| it.checked_sub(1).map_or(Place::Before(0), Place::After);
        let steps = match usize::try_from(more) {
            Ok(more) if more > 0 => {
                (index..index + more).map(|it| Step::Insert(behind(it))).collect()
            }
            _ => joined(index, (-more).max(0) as usize),
        };
        self.change_tree(file, steps);
    }

    /// Blocks of a file have contents now, which were all or a part of an extent without.
    pub(super) fn extents_converted(&mut self, file: usize, blocks: &Range<u64>, of: &Range<u64>) {
        let index = self.extent_with(file, blocks.start);
        let Some(more) = self.tree_lacks(file) else { return };
        let is_first = blocks.start == of.start;
        let steps = match more {
            // What is left of the extent stays where it is, and the others come in front of it.
            2 => {
                vec![Step::Insert(Place::Before(index - 1)), Step::Insert(Place::After(index - 1))]
            }
            1 if is_first => vec![Step::Insert(Place::Before(index))],
            1 => vec![Step::Insert(Place::After(index - 1))],
            0 if is_first && blocks.end < of.end => vec![Step::Update(index..index + 2)],
            0 if !is_first => vec![Step::Update(index - 1..index + 1)],
            _ => joined(index, (-more).max(0) as usize),
        };
        self.change_tree(file, steps);
    }

    /// Blocks of a file are given up, from one on.
    pub(super) fn extents_removed(&mut self, file: usize, block: u64) {
        let index = self.files.inode(file).extents_before(block);
        let Some(more) = self.tree_lacks(file) else { return };
        let mut steps = Vec::new();
        if more > 0 {
            steps.push(Step::Insert(Place::After(index.saturating_sub(1))));
        }
        steps.extend((index..index + (-more).max(0) as usize).rev().map(Step::Remove));
        steps.push(Step::Update(index.saturating_sub(1)..index + 1));
        self.change_tree(file, steps);
    }

    /// The extent of a file that has a block.
    fn extent_with(&mut self, file: usize, block: u64) -> usize {
        self.files.inode(file).extents_before(block + 1).saturating_sub(1)
    }

    /// How many extents the tree of a file has too few. None if there is none, and none is needed
    /// or a new one has them all.
    fn tree_lacks(&mut self, file: usize) -> Option<isize> {
        let inode = &self.files.inodes[file];
        let (number, extents) = (inode.number, inode.extents());
        if extents <= IN_INODE {
            for place in self.trees.remove(&number).iter().flat_map(Tree::places) {
                self.free_block(place);
            }
            return None;
        }
        if let Some(tree) = self.trees.get(&number) {
            return Some(extents as isize - tree.extents() as isize);
        }
        let place = self.new_block(number)?;
        self.trees.insert(number, Tree::new(place, extents));
        self.log_tree(number);
        None
    }

    fn change_tree(&mut self, file: usize, steps: Vec<Step>) {
        let number = self.files.inodes[file].number;
        let Some(mut tree) = self.trees.remove(&number) else { return };
        for step in steps {
            match step {
                Step::Insert(place) => {
                    let new: Vec<u64> =
                        (0..tree.needs(place)).map_while(|_| self.new_block(number)).collect();
                    tree.insert(place, &mut new.into_iter());
                }
                Step::Remove(index) => {
                    tree.remove(index).into_iter().for_each(|it| self.free_block(it));
                }
                Step::Update(extents) => tree.update(extents),
            }
        }
        self.trees.insert(number, tree);
        self.log_tree(number);
    }

    /// What has changed of a tree is logged.
    fn log_tree(&mut self, number: u64) {
        let changed = self.trees.get_mut(&number).map(Tree::take_changed);
        for (place, bytes) in changed.into_iter().flatten() {
            self.change(Item::Buffer(place * SECTORS, SECTORS), bytes);
        }
    }

    /// Bytes that the inode of a file has behind its core: extents, or the root of their tree.
    pub(super) fn fork_of_file(&self, file: usize) -> u64 {
        let inode = &self.files.inodes[file];
        match self.trees.get(&inode.number) {
            Some(tree) => tree.root() as u64,
            None => (inode.extents() * EXTENT) as u64,
        }
    }

    /// A block for the tree of an inode, as near to it as there is one.
    fn new_block(&mut self, number: u64) -> Option<u64> {
        let group = self.layout.group_of_inode(number);
        let found = self.space.allocate_near(group, number / SECTORS)?;
        self.change_parts(group, &FREE_SPACE);
        Some(found)
    }

    fn free_block(&mut self, block: u64) {
        self.log.cancel(block * SECTORS, SECTORS);
        self.space.free_after(self.log.sequence, block..block + 1);
        self.change_parts(self.space.group_of(block), &FREE_SPACE);
    }
}

/// An extent has taken in those behind it, of which there are so many fewer.
fn joined(index: usize, fewer: usize) -> Vec<Step> {
    let gone = index + 1..index + 1 + fewer;
    let mut steps: Vec<Step> = gone.rev().map(Step::Remove).collect();
    steps.push(Step::Update(index..index + 1));
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mount;
    use crate::inode::Inode;
    use base::Rng;
    use block::{Kernel, Version};

    #[test]
    fn the_tree_has_all_extents() {
        let kernel = Kernel::of(Version::V6_12);
        let mut fs = Xfs::new(Mount::default(), kernel, 40 << 30);
        let (inode, blocks) = (131, 2000);
        fs.files.inodes.push(Inode::new(inode, 0, 0));
        fs.files.inode(1).map(0, 1 << 20, blocks, false);
        let mut order: Vec<u64> = (0..blocks).collect();
        Rng::stream(1, "order").shuffle(&mut order);
        let mut most = 0;
        for block in order {
            let of = fs.files.inode(1).extent_at(block).unwrap();
            fs.files.inode(1).convert(block..block + 1);
            fs.extents_converted(1, &(block..block + 1), &of);
            let extents = fs.files.inode(1).extents();
            let Some(tree) = fs.trees.get(&inode) else {
                assert!(extents <= IN_INODE);
                continue;
            };
            assert!(extents > IN_INODE);
            assert_eq!(tree.extents(), extents);
            most = most.max(tree.places().count());
        }
        assert!(most > 3, "{most}");
        assert!(fs.trees.is_empty(), "one extent is left");
    }

    /// A file of so many blocks that were set aside, on a disk of so many bytes.
    fn set_aside(bytes: u64, blocks: u64) -> Xfs {
        let mut fs = Xfs::new(Mount::default(), Kernel::of(Version::V6_12), bytes);
        fs.files.inodes.push(Inode::new(131, 0, 0));
        fs.files.inode(1).map(0, 1 << 20, blocks, false);
        fs
    }

    #[test]
    fn the_tree_follows_whatever_is_done_to_a_file() {
        for seed in 0..8 {
            let mut rng = Rng::stream(seed, "changes");
            let mut fs = set_aside(40 << 30, 4000);
            for _ in 0..6000 {
                // What was given up may be used again at once.
                fs.space.stable(u64::MAX);
                let block = rng.below(4000);
                let length = 1 + rng.below(3);
                match rng.below(100) {
                    0 => fs.set_size(1, block.max(3000) * cache::PAGE, 0),
                    1..10 => fs.make_hole(1, block..block + length, 0),
                    10..15 => {
                        let _ = fs.demand(1, block..block + length);
                        fs.place(1, block, 0, super::super::Purpose::Reserve);
                    }
                    _ => fs.finish_write(1, block..block + length, 0),
                }
                let extents = fs.files.inode(1).extents();
                match fs.trees.get(&131) {
                    Some(tree) => assert_eq!(tree.extents(), extents, "seed {seed}"),
                    None => assert!(extents <= IN_INODE, "seed {seed}: {extents}"),
                }
            }
        }
    }

    #[test]
    fn a_full_disk_and_a_very_long_tree_are_no_end() {
        let blocks = 80_000;
        for is_full in [false, true] {
            let mut fs = set_aside(40 << 30, blocks);
            for block in (1..blocks).step_by(2) {
                fs.finish_write(1, block..block + 1, 0);
                if is_full && block == 1001 {
                    while fs.space.allocate_in(0..4, None, u64::MAX).is_some() {}
                }
            }
            let extents = fs.files.inode(1).extents();
            assert_eq!(fs.trees[&131].extents(), extents);
        }
    }
}
