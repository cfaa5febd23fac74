//! A file: how long it is, and where its blocks are.
//!
//! Blocks are kept as extents, each written or not: what was never written reads as zeros and must
//! be converted when its data are on the disk. Four extents fit into the inode; more need a leaf, a
//! block of their own, which is given back when four are left (rule ext4-space-7). A leaf that
//! is full is cut where one more extent belongs; more than four leaves need a block that says where
//! they are.
//!
// Divergence: leaves that become small are not put together again; one block says where all are.

pub use crate::extents::Extent;
use crate::extents::Extents;
use cache::PAGE;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Extents that fit into an inode, or leaves.
const IN_INODE: usize = 4;
/// Extents that fit into a leaf: 4096 bytes, 12 of them for its head, 12 for each.
const IN_LEAF: usize = 340;
/// Blocks of the longest extent.
const LONGEST: u64 = 32_768;
/// The same of one without contents.
pub const LONGEST_UNWRITTEN: u64 = LONGEST - 1;

/// A file.
#[derive(Clone, Debug, Default)]
pub struct Inode {
    /// Its number on the disk.
    pub number: u64,
    /// Bytes, as programs see it.
    pub size: u64,
    /// Bytes, as the inode that goes to the disk says.
    pub disk_size: u64,
    extents: Extents,
    /// Where extents are that do not fit into the inode.
    leaves: Vec<LeafBlock>,
    /// Where it is written where the leaves are, if that does not fit into the inode.
    index: Option<u64>,
    /// Blocks of the file at which extents changed since the leaves were tended.
    touched: BTreeSet<u64>,
    /// Blocks of the disk that are kept for blocks of the file: from which on, and where.
    pub kept: BTreeMap<u64, Range<u64>>,
    /// Times it is open.
    pub opens: u32,
    /// Open files that may write.
    pub writers: u32,
    /// The transaction that changed it last.
    pub changed_in: u64,
    /// The transaction that changed last what fdatasync must keep.
    pub data_changed_in: u64,
    /// XFS: fdatasync must keep it, for something else than times was changed since it was synced
    /// by itself or written to its place, even if it came into the log in another way
    /// (observed on 6.12).
    pub is_unsynced: bool,
    /// It was made empty (on XFS: shorter) and is being written again: what is dirty is written
    /// when it is closed, so that whoever replaces a file in this way does not lose both (rule
    /// ext4-space-6).
    pub is_rewritten: bool,
    /// XFS: room beyond its end stays when it is closed ([`crate::rules::KeepsRoom`]).
    pub keeps_room: bool,
    /// The tick of its time of modification.
    pub modified: Option<u64>,
    /// The tick of its time of access.
    pub accessed: Option<u64>,
    /// It is not in any directory.
    pub is_unlinked: bool,
    /// It is not in any directory nor open: it loses its blocks and its number.
    pub is_removed: bool,
}

/// A leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LeafBlock {
    /// The first block of the file it is for.
    first: u64,
    /// Where it is on the disk; none as long as it has no place.
    place: Option<u64>,
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
    /// One was full and was cut.
    Cut,
    /// There were too many for the inode until what was cut joined its neighbours.
    Passing,
}

impl Inode {
    /// The root directory, which nobody has looked into for long.
    pub fn of_root(number: u64) -> Inode {
        Inode { number, ..Inode::default() }
    }

    /// It is closed; the answer is whether it was being written again.
    pub fn end_rewriting(&mut self) -> bool {
        self.keeps_room &= !self.is_rewritten;
        std::mem::take(&mut self.is_rewritten)
    }

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

    /// The blocks of the file in the extent that has one of them.
    pub fn extent_at(&self, block: u64) -> Option<Range<u64>> {
        let (&first, extent) = self.extents.range(..=block).next_back()?;
        (block < first + extent.length).then(|| first..first + extent.length)
    }

    /// Whether a block begins within the file.
    pub fn has_within(&self, block: u64) -> bool {
        block * PAGE < self.size
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

    /// Takes the first of some blocks out of what is kept for the file; the answer is where.
    pub fn take_kept(&mut self, blocks: &Range<u64>) -> Option<Range<u64>> {
        let (&first, rest) = self.kept.range(..=blocks.start).next_back()?;
        let start = rest.start + (blocks.start - first);
        if start >= rest.end {
            return None;
        }
        let rest = self.kept.remove(&first)?;
        let taken = start..rest.end.min(start + (blocks.end - blocks.start));
        self.keep(first, rest.start..taken.start);
        self.keep(first + (taken.end - rest.start), taken.end..rest.end);
        Some(taken)
    }

    /// Blocks of the disk are kept for blocks of the file from one on.
    pub fn keep(&mut self, first: u64, places: Range<u64>) {
        if !places.is_empty() {
            self.kept.insert(first, places);
        }
    }

    /// As [`Inode::hole`], without what is kept.
    pub fn hole_beside_kept(&self, block: u64) -> Range<u64> {
        let hole = self.hole(block);
        let before = self.kept.range(..block).next_back();
        let start = before.map_or(0, |(first, places)| first + (places.end - places.start));
        let end = self.kept.range(block..).next().map_or(u64::MAX, |(first, _)| *first);
        hole.start.max(start)..hole.end.min(end)
    }

    /// The block of the disk that would continue the file at a block.
    pub fn goal(&self, block: u64) -> Option<u64> {
        let (first, extent) = self.extents.range(..block).next_back()?;
        Some(extent.start + (block - first))
    }

    /// The block of the disk behind the extent before a block of the file, however far that is.
    pub fn end_before(&self, block: u64) -> Option<u64> {
        let (_, extent) = self.extents.range(..block).next_back()?;
        Some(extent.start + extent.length)
    }

    /// The extent from a block of the file on that is next, by its first block there.
    pub fn next_extent(&self, block: u64) -> Option<(u64, Extent)> {
        self.extents.range(block..).next().map(|(first, extent)| (*first, *extent))
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
        self.insert(block, Extent { start, length, is_written });
        self.join(block);
        self.look_at_leaf()
    }

    /// Blocks get a place before anything is written there: they join those before them, as long
    /// as an extent without contents can be. Observed on 6.12: fallocate.
    pub fn set_aside(&mut self, block: u64, start: u64, length: u64) -> Leaf {
        let before = self.extents.range_mut(0..block).next_back();
        match before {
            Some((first, extent))
                if first + extent.length == block
                    && extent.start + extent.length == start
                    && !extent.is_written
                    && extent.length + length <= LONGEST_UNWRITTEN =>
            {
                extent.length += length;
            }
            _ => self.insert(block, Extent { start, length, is_written: false }),
        }
        self.touched.insert(block);
        self.look_at_leaf()
    }

    /// Blocks without contents are about to be written: their extent begins and ends with them.
    /// Observed on 6.12: that is done before the data are written, not after, and the leaf is
    /// changed where the extent is as long already.
    pub fn single_out(&mut self, blocks: Range<u64>) -> Leaf {
        if self.find(blocks.start).is_some_and(|extent| !extent.is_written) {
            self.touched.insert(blocks.start);
            self.cut(blocks.end);
            self.cut(blocks.start);
        }
        self.look_at_leaf()
    }

    /// Blocks have contents now. Answers with whether any had not, and what becomes of the leaf.
    /// Observed on 7.3.4 (ext4_allocate_blocks, ext4_free_blocks): what was not singled out before
    /// is cut first and joined then, and the leaf for that is given up at once.
    pub fn convert(&mut self, blocks: Range<u64>) -> (bool, Leaf) {
        let (mut changed, mut passing) = (false, false);
        let mut at = blocks.start;
        while at < blocks.end {
            let Some(found) = self.find(at) else {
                at += 1;
                continue;
            };
            let end = (at + found.length).min(blocks.end);
            if !found.is_written {
                self.cut(end);
                self.cut(at);
                self.touched.insert(at);
                self.extents.get_mut(at).expect("cut there").is_written = true;
                changed = true;
                passing |= self.look_at_leaf() == Leaf::Needed;
                self.join(at);
            }
            at = end;
        }
        let leaf = self.look_at_leaf();
        (changed, if passing && leaf == Leaf::Stays { Leaf::Passing } else { leaf })
    }

    /// Gives up the blocks from one on; answers with where they were, in ascending order.
    pub fn truncate(&mut self, block: u64) -> Vec<Range<u64>> {
        self.cut(block);
        self.touched.clear();
        let gone = self.extents.split_off(block);
        gone.into_values().map(|it| it.start..it.start + it.length).collect()
    }

    /// Gives up some blocks; answers with where they were, in ascending order, and with what
    /// becomes of the leaf.
    pub fn punch(&mut self, blocks: Range<u64>) -> (Vec<Range<u64>>, Leaf) {
        self.cut(blocks.start);
        self.cut(blocks.end);
        let firsts: Vec<u64> =
            self.extents.range(blocks.clone()).map(|(first, _)| *first).collect();
        if !firsts.is_empty() {
            self.touched.insert(blocks.start);
        }
        let gone = firsts.iter().filter_map(|first| self.extents.remove(*first));
        let gone = gone.map(|it| it.start..it.start + it.length).collect();
        (gone, self.look_at_leaf())
    }

    /// A block becomes an extent of its own; the answer is what becomes of the leaf.
    pub fn isolate(&mut self, block: u64) -> Leaf {
        self.cut(block + 1);
        self.cut(block);
        self.look_at_leaf()
    }

    /// A block that has an extent of its own has another place from now on; the answer is where it
    /// was.
    pub fn replace(&mut self, block: u64, start: u64) -> Option<u64> {
        let extent = self.extents.get_mut(block)?;
        self.touched.insert(block);
        Some(std::mem::replace(&mut extent.start, start))
    }

    /// A block that has an extent of its own has no contents any more.
    pub fn lose_contents(&mut self, block: u64) {
        if let Some(extent) = self.extents.get_mut(block) {
            extent.is_written = false;
        }
    }

    /// The extent at a block joins its neighbours, where both are written or neither is; the answer
    /// is what becomes of the leaf.
    pub fn join_alike(&mut self, block: u64) -> Leaf {
        self.join_where(block, |one, other| one.is_written == other.is_written);
        self.look_at_leaf()
    }

    /// How many extents there are.
    pub fn extents(&self) -> usize {
        self.extents.len()
    }

    /// How many of them begin before a block.
    pub fn extents_before(&mut self, block: u64) -> usize {
        self.extents.before(block)
    }

    fn look_at_leaf(&self) -> Leaf {
        match (self.leaves.len(), self.extents.len() > IN_INODE) {
            (0, true) => Leaf::Needed,
            (1, false) => Leaf::Spare,
            _ if self.leaves.iter().any(|leaf| leaf.place.is_none()) => Leaf::Cut,
            _ => Leaf::Stays,
        }
    }

    /// Whether there are leaves.
    pub fn has_leaves(&self) -> bool {
        !self.leaves.is_empty()
    }

    /// What the blocks that the leaves still need should be near to: a block of the disk, or the
    /// inode. A leaf that was cut off wants to be near to its first extent, and the block that says
    /// where all of them are near to the first leaf. Observed on 6.1.192 and 6.12.117: goals of
    /// ext4_mballoc_alloc, for files of 16 and 200 MiB in the groups 127 and 255, 1 and 2.
    pub fn wanted_places(&self) -> Vec<Option<u64>> {
        let data = |leaf: &LeafBlock| self.extents.range(leaf.first..).next().map(|it| it.1.start);
        let mut wanted: Vec<_> =
            self.leaves.iter().filter(|leaf| leaf.place.is_none()).map(data).collect();
        if self.leaves.is_empty() {
            wanted.push(None);
        }
        if self.leaves.len() > IN_INODE && self.index.is_none() {
            wanted.push(self.leaves[0].place);
        }
        wanted
    }

    /// Gives the leaves what they need; the first one if there is none.
    pub fn give_places(&mut self, places: &[u64]) {
        if self.leaves.is_empty() {
            self.leaves.push(LeafBlock { first: 0, place: None });
        }
        let mut places = places.iter().copied();
        for leaf in self.leaves.iter_mut().filter(|leaf| leaf.place.is_none()) {
            leaf.place = places.next();
        }
        self.index = self.index.or(places.next());
    }

    /// The blocks of leaves that changed since this was asked last, and of what says where they are
    /// if there are more leaves.
    pub fn changed_leaves(&mut self, has_more: bool) -> Vec<u64> {
        let touched = std::mem::take(&mut self.touched);
        let leaf = |block: &u64| self.leaves.get(self.leaf_of(*block))?.place;
        let mut changed: Vec<u64> = touched.iter().filter_map(leaf).collect();
        changed.extend(self.index.filter(|_| has_more));
        changed.dedup();
        changed
    }

    /// Gives up all leaves; the answer is where they were.
    pub fn take_leaves(&mut self) -> Vec<u64> {
        self.touched.clear();
        let places = self.leaves.drain(..).filter_map(|leaf| leaf.place);
        places.chain(self.index.take()).collect()
    }

    /// The position of the leaf for a block of the file.
    fn leaf_of(&self, block: u64) -> usize {
        self.leaves.partition_point(|leaf| leaf.first <= block).saturating_sub(1)
    }

    /// Adds an extent. Observed on 6.12 (debugfs): a full leaf keeps everything up to it, and what
    /// is behind begins a new one; if nothing is, the extent does.
    fn insert(&mut self, block: u64, extent: Extent) {
        if !self.leaves.is_empty() {
            let position = self.leaf_of(block);
            let start = self.leaves[position].first;
            let end = self.leaves.get(position + 1).map_or(u64::MAX, |leaf| leaf.first);
            if self.extents.range(start..end).count() >= IN_LEAF {
                let first = self.extents.range(block..end).next().map_or(block, |it| *it.0);
                self.leaves.insert(position + 1, LeafBlock { first, place: None });
                self.touched.insert(first);
            }
        }
        self.touched.insert(block);
        self.extents.insert(block, extent);
    }

    /// Makes an extent begin at a block if one contains it.
    fn cut(&mut self, block: u64) {
        let Some((&first, extent)) = self.extents.range_mut(0..block).next_back() else { return };
        let kept = block - first;
        if kept < extent.length {
            let rest =
                Extent { start: extent.start + kept, length: extent.length - kept, ..*extent };
            extent.length = kept;
            self.touched.insert(first);
            self.insert(block, rest);
        }
    }

    /// Joins the extent at a block with its neighbours, if both are written. Observed on 6.12: five
    /// pieces of a file that follow each other on the disk need a leaf while they are being
    /// written; a leaf's last extent and the next one's first stay apart (blocks in the log).
    fn join(&mut self, block: u64) {
        self.join_where(block, |one, other| one.is_written && other.is_written);
    }

    fn join_where(&mut self, block: u64, are_alike: fn(&Extent, &Extent) -> bool) {
        if let Some((&before, _)) = self.extents.range(..block).next_back() {
            self.join_pair(before, block, are_alike);
        }
        let at = *self.extents.range(..=block).next_back().expect("an extent is there").0;
        if let Some((&after, _)) = self.extents.range(at + 1..).next() {
            self.join_pair(at, after, are_alike);
        }
    }

    fn join_pair(&mut self, one: u64, other: u64, are_alike: fn(&Extent, &Extent) -> bool) {
        let (first, second) = (self.extents[&one], self.extents[&other]);
        let longest = if first.is_written { LONGEST } else { LONGEST_UNWRITTEN };
        let fits = one + first.length == other
            && first.start + first.length == second.start
            && are_alike(&first, &second)
            && first.length + second.length <= longest
            && self.leaf_of(one) == self.leaf_of(other);
        if fits {
            self.extents.remove(other);
            self.extents.get_mut(one).expect("it is there").length += second.length;
            self.touched.insert(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_aside_is_one_extent_until_a_part_is_written() {
        let mut inode = Inode::default();
        inode.set_aside(0, 100, 2048);
        inode.set_aside(2048, 2148, 2048);
        assert_eq!(inode.extents(), 1);
        assert_eq!(inode.single_out(3..5), Leaf::Stays);
        assert_eq!(inode.extents(), 3);
        assert_eq!(inode.convert(3..5), (true, Leaf::Stays));
        assert_eq!(inode.single_out(100..101), Leaf::Needed);
        assert_eq!(inode.find(99).map(|it| it.length), Some(1));
    }

    #[test]
    fn an_extent_that_is_cut_and_joined_at_once_needs_a_leaf_in_between() {
        let mut inode = Inode::default();
        inode.set_aside(0, 100, 342);
        assert_eq!(inode.convert(128..192), (true, Leaf::Stays));
        assert_eq!(inode.convert(0..64), (true, Leaf::Stays));
        assert_eq!(inode.extents(), 4);
        assert_eq!(inode.convert(192..256), (true, Leaf::Passing));
        assert_eq!(inode.extents(), 4);
        assert_eq!(inode.convert(64..128), (true, Leaf::Stays));
    }

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
    fn blocks_that_change_places_one_by_one_are_one_extent_in_the_end() {
        let (mut file, mut donor) = (Inode::default(), Inode::default());
        file.map(0, 100, 4, true);
        donor.set_aside(0, 200, 4);
        for block in 0..4 {
            assert_eq!((file.isolate(block), donor.isolate(block)), (Leaf::Stays, Leaf::Stays));
            assert_eq!(file.replace(block, 200 + block), Some(100 + block));
            assert_eq!(donor.replace(block, 100 + block), Some(200 + block));
            assert_eq!(
                (file.join_alike(block), donor.join_alike(block)),
                (Leaf::Stays, Leaf::Stays)
            );
            assert_eq!(file.extents(), if block == 3 { 1 } else { 2 });
        }
        assert_eq!(file.find(0), Some(Extent { start: 200, length: 4, is_written: true }));
        assert_eq!(donor.find(0), Some(Extent { start: 100, length: 4, is_written: false }));
        donor.lose_contents(0);
        assert_eq!(file.replace(9, 300), None);
    }

    #[test]
    fn a_block_by_itself_may_need_a_leaf_for_a_moment() {
        let mut file = Inode::default();
        file.map(0, 100, 1, true);
        file.map(1, 200, 8, true);
        file.map(20, 300, 1, true);
        file.map(30, 400, 1, true);
        assert_eq!(file.isolate(1), Leaf::Needed);
        file.give_places(&[9]);
        assert_eq!(file.replace(1, 101), Some(200));
        assert_eq!(file.join_alike(1), Leaf::Spare);
        assert_eq!(file.take_leaves(), [9]);
    }

    #[test]
    fn a_full_leaf_is_cut_where_one_more_extent_belongs() {
        let mut inode = Inode::default();
        for at in 0..340 {
            inode.map(at * 10, 10_000 + at * 100, 8, false);
            if at == 4 {
                inode.give_places(&[9]);
            }
        }
        inode.changed_leaves(false);
        // The leaf is full: the first cut makes what is behind begin a new one.
        assert_eq!(inode.single_out(1003..1004), Leaf::Cut);
        assert_eq!((inode.wanted_places(), inode.extents()), (vec![Some(20_100)], 342));
        inode.give_places(&[77]);
        assert_eq!(inode.leaves[1], LeafBlock { first: 1010, place: Some(77) });
        assert_eq!(inode.changed_leaves(true), [9, 77]);
        assert_eq!(inode.single_out(1003..1004), Leaf::Stays);
        assert_eq!(inode.changed_leaves(false), [9], "it is as long already");
        assert_eq!(inode.convert(1003..1004), (true, Leaf::Stays));
        assert_eq!(inode.changed_leaves(false), [9]);
        assert_eq!(inode.take_leaves(), [9, 77]);
    }

    #[test]
    fn extents_of_two_leaves_are_not_joined() {
        let mut inode = Inode::default();
        // 8 blocks each, one behind the other: every second one has contents.
        for at in 0..=IN_LEAF as u64 {
            inode.map(at * 8, 10_000 + at * 8, 8, at % 2 == 1);
            if at == 4 {
                inode.give_places(&[9]);
            }
        }
        inode.give_places(&[77]);
        inode.changed_leaves(true);
        let first = inode.leaves[1].first;
        let extents = inode.extents();
        assert_eq!(inode.convert(first..first + 8), (true, Leaf::Stays));
        assert_eq!((inode.changed_leaves(false), inode.extents()), (vec![77], extents));
    }

    #[test]
    fn what_lies_between_two_leaves_belongs_to_the_first_whose_blocks_it_is_of() {
        let mut inode = Inode::default();
        for at in 0..=IN_LEAF as u64 {
            inode.map(at * 20, 10_000 + at * 100, 8, true);
            if at == 4 {
                inode.give_places(&[9]);
            }
        }
        inode.give_places(&[77]);
        let first = IN_LEAF as u64 * 20;
        assert_eq!(inode.leaves[1], LeafBlock { first, place: Some(77) });
        // Nothing is left where the second leaf begins, and the first one is full.
        inode.map(first + 100, 5, 1, true);
        inode.punch(first..first + 8);
        assert_eq!(inode.map(first + 50, 7, 1, true), Leaf::Stays);
        assert_eq!((inode.leaves.len(), inode.extents()), (2, IN_LEAF + 2));
    }

    #[test]
    fn files_that_are_written_and_punched_at_random_keep_their_leaves() {
        let mut rng = base::Rng::new(7);
        for _ in 0..4 {
            let (mut inode, mut place) = (Inode::default(), 0);
            for _ in 0..6000 {
                let block = rng.below(20_000);
                let blocks = block..block + 1 + rng.below(6);
                if rng.chance(1, 4) {
                    inode.punch(blocks);
                } else if inode
                    .extents
                    .range(..blocks.end)
                    .next_back()
                    .is_none_or(|it| it.0 + it.1.length <= block)
                {
                    place += 10;
                    inode.map(block, place, blocks.end - block, rng.chance(1, 2));
                }
                let wanted = inode.wanted_places().len() as u64;
                let places: Vec<u64> = (0..wanted).map(|it| 1_000_000 + it).collect();
                if !places.is_empty() && (inode.has_leaves() || inode.extents() > 4) {
                    inode.give_places(&places);
                }
                let firsts: Vec<u64> = inode.leaves.iter().map(|it| it.first).collect();
                assert!(firsts.is_sorted_by(|one, other| one < other), "{firsts:?}");
                for (at, first) in firsts.iter().enumerate() {
                    let end = firsts.get(at + 1).copied().unwrap_or(u64::MAX);
                    let own = inode.extents.range(*first..end).count();
                    assert!(own <= IN_LEAF, "{own} extents in a leaf");
                }
            }
            assert!(inode.leaves.len() > 4, "{} leaves", inode.leaves.len());
        }
    }

    #[test]
    fn a_leaf_comes_with_the_fifth_extent_and_goes_with_it() {
        let mut inode = Inode::default();
        for at in 0..4 {
            assert_eq!(inode.map(at * 2, 100 + at, 1, true), Leaf::Stays);
        }
        assert_eq!(inode.map(20, 500, 4, true), Leaf::Needed);
        inode.give_places(&[9]);
        assert_eq!(inode.truncate(6), [103..104, 500..504]);
        assert_eq!(inode.map(9, 700, 1, true), Leaf::Spare);
    }
}
