//! A file: how long it is, and where its blocks are.
//!
//! Blocks are kept as extents, each written or not: what was never written reads as zeros and must
//! be converted when its data are on the disk. Four extents fit into the inode; more need a leaf, a
//! block of their own, which is given back when four are left (filesystems 3.3 rule 7).
//!
// Divergence: one leaf, however many extents there are.

use std::collections::BTreeMap;
use std::ops::Range;

/// Extents that fit into an inode.
const IN_INODE: usize = 4;
/// Blocks of the longest extent.
const LONGEST: u64 = 32_768;

/// A file.
#[derive(Clone, Debug, Default)]
pub struct Inode {
    /// Its number on the disk.
    pub number: u64,
    /// Bytes, as programs see it.
    pub size: u64,
    /// Bytes, as the inode that goes to the disk says.
    pub disk_size: u64,
    extents: BTreeMap<u64, Extent>,
    /// Where extents are that do not fit into the inode.
    pub leaf: Option<u64>,
    /// Blocks set aside: the block of the file from which on, and where.
    pub kept: Option<(u64, Range<u64>)>,
    /// Open files that may write.
    pub writers: u32,
    /// The transaction that changed it last.
    pub changed_in: u64,
    /// The transaction that changed last what fdatasync must keep.
    pub data_changed_in: u64,
    /// The ticks of its times of modification and access.
    pub modified: Option<u64>,
    pub accessed: Option<u64>,
    /// It is not in any directory.
    pub is_removed: bool,
}

/// Blocks that are together in the file and on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First block on the disk.
    pub start: u64,
    /// How many.
    pub length: u64,
    /// Whether they have contents.
    pub is_written: bool,
}

/// What must be done about the leaf after extents changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// Nothing.
    Stays,
    /// There are too many for the inode.
    Needed,
    /// They fit into the inode again.
    Spare,
}

impl Inode {
    /// An empty file that was created in a transaction and a tick.
    pub fn new(number: u64, transaction: u64, tick: u64) -> Inode {
        Inode {
            number,
            changed_in: transaction,
            data_changed_in: transaction,
            modified: Some(tick),
            accessed: Some(tick),
            ..Inode::default()
        }
    }

    /// Where a block of the file is, and how many follow it in the same extent, itself included.
    pub fn find(&self, block: u64) -> Option<Extent> {
        let (&first, extent) = self.extents.range(..=block).next_back()?;
        let skipped = block - first;
        (skipped < extent.length).then(|| Extent {
            start: extent.start + skipped,
            length: extent.length - skipped,
            is_written: extent.is_written,
        })
    }

    /// Whether a block of the file has a place on the disk.
    pub fn is_mapped(&self, block: u64) -> bool {
        self.find(block).is_some()
    }

    /// The blocks without a place around one that has none.
    pub fn hole(&self, block: u64) -> Range<u64> {
        let before = self.extents.range(..=block).next_back();
        let start = before.map_or(0, |(first, extent)| first + extent.length);
        let end = self.extents.range(block + 1..).next().map_or(u64::MAX, |(first, _)| *first);
        start..end
    }

    /// The block of the disk that would continue the file at a block.
    pub fn goal(&self, block: u64) -> Option<u64> {
        let (first, extent) = self.extents.range(..block).next_back()?;
        Some(extent.start + (block - first))
    }

    /// How many blocks lie together on the disk before a block of the file.
    pub fn together_before(&self, block: u64) -> u64 {
        let (mut from, mut behind) = (block, None);
        for (&first, extent) in self.extents.range(..block).rev() {
            let end = extent.start + extent.length;
            let follows = first + extent.length == from && behind.is_none_or(|it| it == end);
            if !follows {
                break;
            }
            (from, behind) = (first, Some(extent.start));
        }
        block - from
    }

    /// Blocks get a place.
    pub fn map(&mut self, block: u64, start: u64, length: u64, is_written: bool) -> Leaf {
        debug_assert!(!self.is_mapped(block));
        self.extents.insert(block, Extent { start, length, is_written });
        self.join(block);
        self.look_at_leaf()
    }

    /// Blocks have contents now. Answers with whether any had not, and what becomes of the leaf.
    pub fn convert(&mut self, blocks: Range<u64>) -> (bool, Leaf) {
        let mut changed = false;
        let mut at = blocks.start;
        while at < blocks.end {
            let Some(found) = self.find(at) else {
                at += 1;
                continue;
            };
            let end = (at + found.length).min(blocks.end);
            if !found.is_written {
                self.cut(at);
                self.cut(end);
                self.extents.get_mut(&at).expect("cut there").is_written = true;
                changed = true;
                self.join(at);
            }
            at = end;
        }
        (changed, self.look_at_leaf())
    }

    /// Gives up the blocks from one on; answers with where they were, in ascending order.
    pub fn truncate(&mut self, block: u64) -> Vec<Range<u64>> {
        self.cut(block);
        let gone = self.extents.split_off(&block);
        gone.into_values().map(|it| it.start..it.start + it.length).collect()
    }

    /// How many extents there are.
    pub fn extents(&self) -> usize {
        self.extents.len()
    }

    fn look_at_leaf(&self) -> Leaf {
        match (self.leaf, self.extents.len() > IN_INODE) {
            (None, true) => Leaf::Needed,
            (Some(_), false) => Leaf::Spare,
            _ => Leaf::Stays,
        }
    }

    /// Makes an extent begin at a block if one contains it.
    fn cut(&mut self, block: u64) {
        let Some((&first, extent)) = self.extents.range_mut(..block).next_back() else { return };
        let kept = block - first;
        if kept < extent.length {
            let rest =
                Extent { start: extent.start + kept, length: extent.length - kept, ..*extent };
            extent.length = kept;
            self.extents.insert(block, rest);
        }
    }

    /// Joins the extent at a block with its neighbours, if both are written. Observed on 6.12: five
    /// pieces of a file that follow each other on the disk need a leaf while they are being
    /// written.
    fn join(&mut self, block: u64) {
        if let Some((&before, _)) = self.extents.range(..block).next_back() {
            self.join_pair(before, block);
        }
        let at = *self.extents.range(..=block).next_back().expect("an extent is there").0;
        if let Some((&after, _)) = self.extents.range(at + 1..).next() {
            self.join_pair(at, after);
        }
    }

    fn join_pair(&mut self, one: u64, other: u64) {
        let (first, second) = (self.extents[&one], self.extents[&other]);
        let fits = one + first.length == other
            && first.start + first.length == second.start
            && first.is_written
            && second.is_written
            && first.length + second.length <= LONGEST;
        if fits {
            self.extents.remove(&other);
            self.extents.get_mut(&one).expect("it is there").length += second.length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_together_is_counted_backwards() {
        let mut inode = Inode::default();
        inode.map(0, 10, 6, true);
        inode.map(6, 24, 4, true);
        inode.map(10, 28, 22, false);
        assert_eq!((inode.together_before(32), inode.together_before(6)), (26, 6));
        assert_eq!((inode.together_before(0), inode.together_before(40)), (0, 0));
    }

    #[test]
    fn extents_join_when_both_are_written() {
        let mut inode = Inode::default();
        inode.map(0, 100, 8, false);
        inode.map(8, 108, 8, false);
        assert_eq!(inode.extents(), 2);
        assert_eq!(inode.convert(0..4), (true, Leaf::Stays));
        assert_eq!(inode.extents(), 3);
        assert_eq!(inode.find(3), Some(Extent { start: 103, length: 1, is_written: true }));
        assert_eq!(inode.convert(0..16), (true, Leaf::Stays));
        assert_eq!(inode.extents(), 1);
        assert_eq!((inode.hole(20), inode.goal(20)), (16..u64::MAX, Some(120)));
    }

    #[test]
    fn a_leaf_comes_with_the_fifth_extent_and_goes_with_it() {
        let mut inode = Inode::default();
        for at in 0..4 {
            assert_eq!(inode.map(at * 2, 100 + at, 1, true), Leaf::Stays);
        }
        assert_eq!(inode.map(20, 500, 4, true), Leaf::Needed);
        inode.leaf = Some(9);
        assert_eq!(inode.truncate(6), [103..104, 500..504]);
        assert_eq!(inode.map(9, 700, 1, true), Leaf::Spare);
    }
}
