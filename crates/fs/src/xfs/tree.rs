//! The tree that says where the blocks of a file with many extents are: which block of it has how
//! many of the extents, and which parts of it have changed since it was written.
//!
//! A leaf that is full gives an extent to the leaf behind it, or to that before it, and is cut in
//! two only if both are full. A leaf that is less than half full gets one from a neighbour, or is
//! joined with it. So a change of one extent may log two leaves, and hundreds of changes in a row
//! may do so.
//!
//! The root is in the inode. When there are more leaves than it has room for, it gets a block that
//! says where they are.
//!
// observed on 6.12: contents of the log after 9,000 blocks of a file that was set aside were
// written at random places, each durable; played back by these rules, all leaves were the same
// after each of 8,990 changes, and so were the parts of them in the log as long as there was one
// level
//
// Divergence: the tree has two levels at most, and the block of the upper one goes as soon as the
// root has room for the leaves. Where the disk has no block left, a leaf gets longer than it may.

use super::log::Parts;
use std::ops::Range;

/// Bytes of an extent.
pub(super) const EXTENT: usize = 16;
/// Bytes of a block in front of its extents.
const HEAD: usize = 72;
/// How many extents a leaf may have, and must have but for the only one.
const MOST: usize = 251;
const LEAST: usize = MOST / 2;
/// Leaves for which the root has room.
const IN_ROOT: usize = 20;
/// Bytes of where a leaf begins in the file, and of where it is on the disk.
const KEY: usize = 8;

/// A block of the tree.
#[derive(Clone, Copy, Debug)]
struct Block {
    place: u64,
    extents: usize,
    changed: Parts,
    /// The transaction that is at work has changed it.
    is_touched: bool,
}

impl Block {
    fn new(place: u64) -> Block {
        Block { place, extents: 0, changed: Parts::default(), is_touched: false }
    }

    /// What is in front of its extents has changed: how many they are, or a neighbour.
    fn change_head(&mut self) {
        self.changed.add(0..1);
        self.is_touched = true;
    }

    /// Extents from one up to another have changed.
    fn change(&mut self, from: usize, to: usize) {
        self.is_touched = true;
        if from < to {
            self.changed.add(HEAD + from * EXTENT..HEAD + to * EXTENT);
        }
    }
}

/// Where an extent comes, beside one that is there: that matters where a leaf ends between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In front of it.
    Before(usize),
    /// Behind it.
    After(usize),
}

/// The tree of a file.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    leaves: Vec<Block>,
    upper: Option<Block>,
}

impl Tree {
    /// A tree of one leaf with all extents.
    pub fn new(place: u64, extents: usize) -> Tree {
        let mut leaf = Block { extents, ..Block::new(place) };
        leaf.change_head();
        leaf.change(0, extents);
        Tree { leaves: vec![leaf], upper: None }
    }

    /// How many extents it has.
    pub fn extents(&self) -> usize {
        self.leaves.iter().map(|it| it.extents).sum()
    }

    /// Bytes of its root.
    pub fn root(&self) -> usize {
        HEAD + EXTENT * if self.upper.is_some() { 1 } else { self.leaves.len() }
    }

    /// Where its blocks are.
    pub fn places(&self) -> impl Iterator<Item = u64> {
        self.leaves.iter().chain(&self.upper).map(|it| it.place)
    }

    /// A block is in its place on the disk, if it is one of these.
    pub fn written(&mut self, place: u64) {
        let mut blocks = self.leaves.iter_mut().chain(&mut self.upper);
        blocks
            .find(|it| it.place == place)
            .into_iter()
            .for_each(|it| it.changed = Parts::default());
    }

    /// The blocks that were changed since this was last asked, and bytes of each in the log.
    pub fn take_changed(&mut self) -> Vec<(u64, u64)> {
        let blocks = self.leaves.iter_mut().chain(&mut self.upper);
        let touched = blocks.filter_map(|it| std::mem::take(&mut it.is_touched).then_some(it));
        touched.map(|it| (it.place, it.changed.bytes())).collect()
    }

    /// Extents that are there are not the same.
    pub fn update(&mut self, extents: Range<usize>) {
        for index in extents.start..extents.end.min(self.extents()) {
            let (leaf, at) = self.find(Place::Before(index));
            self.leaves[leaf].change(at, at + 1);
            self.change_key(leaf, at);
        }
    }

    /// How many blocks of the disk the tree needs so that an extent can come to a place.
    pub fn needs(&self, place: Place) -> usize {
        let (leaf, at) = self.find(place);
        let is_cut = self.leaves[leaf].extents >= MOST && self.taker(leaf, at).is_none();
        usize::from(is_cut) * if self.leaves.len() == IN_ROOT { 2 } else { 1 }
    }

    /// An extent comes to a place; blocks of the disk come from `new`, as many as it needs, or as
    /// there are.
    pub fn insert(&mut self, place: Place, new: &mut impl Iterator<Item = u64>) {
        let (leaf, at) = self.find(place);
        let (leaf, at) = self.make_room(leaf, at, new);
        let block = &mut self.leaves[leaf];
        block.extents += 1;
        block.change_head();
        block.change(at, block.extents);
        self.change_key(leaf, at);
    }

    /// A leaf gets room at a place in it, if it has none; where that is then.
    fn make_room(
        &mut self,
        leaf: usize,
        at: usize,
        new: &mut impl Iterator<Item = u64>,
    ) -> (usize, usize) {
        if self.leaves[leaf].extents < MOST {
            return (leaf, at);
        }
        match self.taker(leaf, at) {
            Some(taker) => {
                self.shift(leaf, taker);
                (leaf, at - usize::from(taker < leaf))
            }
            None => {
                self.cut(leaf, at, new);
                let kept = self.leaves[leaf].extents;
                if at > kept { (leaf + 1, at - kept) } else { (leaf, at) }
            }
        }
    }

    /// An extent goes. Answers with blocks of the tree that are not used any more.
    pub fn remove(&mut self, index: usize) -> Vec<u64> {
        let (leaf, at) = self.find(Place::Before(index));
        let block = &mut self.leaves[leaf];
        block.extents -= 1;
        block.change_head();
        block.change(at, block.extents);
        self.change_key(leaf, at);
        if self.leaves[leaf].extents >= LEAST || self.leaves.len() == 1 {
            return Vec::new();
        }
        let neighbours = [Some(leaf + 1), leaf.checked_sub(1)];
        let giver = neighbours.into_iter().flatten().find(|it| self.can_give(*it));
        if let Some(giver) = giver {
            self.shift(giver, leaf);
            return Vec::new();
        }
        self.join(leaf.saturating_sub(1))
    }

    fn can_give(&self, leaf: usize) -> bool {
        self.leaves.get(leaf).is_some_and(|it| it.extents > LEAST)
    }

    /// Which neighbour of a full leaf takes an extent of it, so that another one has room at a
    /// place in it. For one of the last two places the neighbour behind takes none, and for the
    /// first place the one before does not.
    fn taker(&self, leaf: usize, at: usize) -> Option<usize> {
        let has_room = |leaf: &usize| self.leaves.get(*leaf).is_some_and(|it| it.extents < MOST);
        let behind = Some(leaf + 1).filter(|_| at + 1 < MOST).filter(has_room);
        let before = leaf.checked_sub(1).filter(|_| at > 0).filter(has_room);
        behind.or(before)
    }

    /// A leaf gives an extent to a neighbour.
    fn shift(&mut self, giver: usize, taker: usize) {
        self.leaves[giver].extents -= 1;
        self.leaves[taker].extents += 1;
        let (first, second) = (giver.min(taker), giver.max(taker));
        // The first one has another end, and the second another beginning.
        let end = self.leaves[first].extents;
        self.leaves[first].change_head();
        if taker == first {
            self.leaves[first].change(end - 1, end);
        }
        let end = self.leaves[second].extents;
        self.leaves[second].change_head();
        self.leaves[second].change(0, end);
        self.change_key(second, 0);
    }

    /// A full leaf is cut in two, so that both have as many when an extent has come at a place.
    fn cut(&mut self, leaf: usize, at: usize, new: &mut impl Iterator<Item = u64>) {
        let Some(place) = new.next() else { return };
        let kept = MOST / 2 + usize::from(at > MOST / 2);
        let mut behind = Block { extents: MOST - kept, ..Block::new(place) };
        behind.change_head();
        behind.change(0, MOST - kept);
        self.leaves[leaf].extents = kept;
        self.leaves[leaf].change_head();
        self.leaves.insert(leaf + 1, behind);
        if let Some(next) = self.leaves.get_mut(leaf + 2) {
            next.change_head();
        }
        if self.leaves.len() > IN_ROOT && self.upper.is_none() {
            self.upper = new.next().map(Block::new);
            self.change_keys(0);
        }
        self.change_keys(leaf + 1);
    }

    /// A leaf gets all extents of the one behind it.
    fn join(&mut self, leaf: usize) -> Vec<u64> {
        let mut gone = vec![self.leaves.remove(leaf + 1)];
        let block = &mut self.leaves[leaf];
        let before = block.extents;
        block.extents += gone[0].extents;
        block.change_head();
        block.change(before, block.extents);
        if let Some(next) = self.leaves.get_mut(leaf + 1) {
            next.change_head();
        }
        self.change_keys(leaf + 1);
        if self.leaves.len() <= IN_ROOT {
            gone.extend(self.upper.take());
        }
        gone.into_iter().map(|it| it.place).collect()
    }

    /// The first extent of a leaf may have changed, and so where the leaf begins in the file.
    fn change_key(&mut self, leaf: usize, at: usize) {
        if let Some(upper) = self.upper.as_mut().filter(|_| at == 0) {
            upper.changed.add(HEAD + leaf * KEY..HEAD + (leaf + 1) * KEY);
            upper.is_touched = true;
        }
    }

    /// From one on there are other leaves.
    fn change_keys(&mut self, from: usize) {
        let (end, places) = (self.leaves.len(), HEAD + MOST * KEY);
        let Some(upper) = &mut self.upper else { return };
        upper.change_head();
        for first in [HEAD, places].into_iter().filter(|_| from < end) {
            upper.changed.add(first + from * KEY..first + end * KEY);
        }
    }

    /// The leaf in which a place is, and where in it.
    fn find(&self, place: Place) -> (usize, usize) {
        let (mut at, behind) = match place {
            Place::Before(extent) => (extent, 0),
            Place::After(extent) => (extent, 1),
        };
        let last = self.leaves.len() - 1;
        for (leaf, block) in self.leaves[..last].iter().enumerate() {
            if at < block.extents {
                return (leaf, at + behind);
            }
            at -= block.extents;
        }
        (last, at + behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(tree: &Tree) -> Vec<usize> {
        tree.leaves.iter().map(|it| it.extents).collect()
    }

    fn insert(tree: &mut Tree, place: Place) {
        let next = 1000 + tree.extents() as u64;
        tree.insert(place, &mut (next..).take(tree.needs(place)));
    }

    /// As a block amid an extent is written: the left part of it, then the block, come in front.
    fn cut_extent(tree: &mut Tree, extent: usize) {
        insert(tree, Place::Before(extent));
        insert(tree, Place::After(extent));
    }

    /// Leaves of these sizes, with all that was changed forgotten.
    fn tree(sizes: &[usize]) -> Tree {
        let leaf =
            |(at, extents): (usize, &usize)| Block { extents: *extents, ..Block::new(at as u64) };
        Tree { leaves: sizes.iter().enumerate().map(leaf).collect(), upper: None }
    }

    // Each row is a change of the file that was observed on 6.12, by how many extents the leaves
    // had before it and after it.
    #[test]
    fn a_full_leaf_gives_to_its_neighbours_and_is_cut_if_both_are_full() {
        let rows: [(&[usize], usize, &[usize]); 9] = [
            (&[249], 100, &[251]),
            (&[251], 100, &[127, 126]),
            (&[251], 200, &[126, 127]),
            (&[240, 250], 300, &[241, 251]),
            (&[242, 251], 300, &[244, 251]),
            (&[250, 251], 300, &[251, 126, 126]),
            (&[251, 126], 100, &[251, 128]),
            (&[132, 251, 182], 132 + 249, &[133, 251, 183]),
            (&[133, 251, 251], 133, &[133, 127, 126, 251]),
        ];
        for (before, extent, after) in rows {
            let mut tree = tree(before);
            cut_extent(&mut tree, extent);
            assert_eq!(sizes(&tree), after, "{before:?}, in front of {extent}");
        }
    }

    #[test]
    fn a_leaf_that_is_less_than_half_full_gets_an_extent_or_is_joined() {
        let rows: [(&[usize], usize, &[usize]); 5] = [
            (&[130], 0, &[129]),
            (&[125, 126], 0, &[125, 125]),
            (&[126, 125, 125], 200, &[125, 125, 125]),
            (&[125, 125, 200], 200, &[125, 125, 199]),
            (&[125, 125], 200, &[249]),
        ];
        for (before, extent, after) in rows {
            let mut tree = tree(before);
            let gone = tree.remove(extent);
            assert_eq!(sizes(&tree), after, "{before:?} without {extent}");
            assert_eq!(gone.len(), before.len() - after.len());
        }
    }

    #[test]
    fn what_has_changed_of_a_block_is_logged_until_it_is_written() {
        let parts = |tree: &mut Tree| tree.take_changed();
        let bytes = |parts: std::ops::Range<usize>| {
            let mut all = Parts::default();
            all.add(0..1);
            all.add(parts.start * 128..parts.end * 128);
            all.bytes()
        };
        let mut tree = tree(&[251, 126]);
        tree.update(200..201);
        assert_eq!(parts(&mut tree), [(0, bytes(25..26) - 140)]);
        cut_extent(&mut tree, 100);
        // From the place to the end of the one, and all of the other.
        assert_eq!(parts(&mut tree), [(0, bytes(13..32)), (1, bytes(0..17))]);
        assert_eq!(parts(&mut tree), []);
        tree.written(0);
        tree.update(200..201);
        assert_eq!(parts(&mut tree), [(0, bytes(25..26) - 140)]);
    }

    #[test]
    fn a_block_says_where_the_leaves_are_when_the_root_has_no_room_for_them() {
        let mut tree = tree(&[251; IN_ROOT]);
        assert_eq!(tree.root(), HEAD + IN_ROOT * EXTENT);
        insert(&mut tree, Place::Before(100));
        assert_eq!((tree.leaves.len(), tree.root()), (IN_ROOT + 1, HEAD + EXTENT));
        let upper = tree.upper.unwrap();
        assert_eq!(tree.places().last(), Some(upper.place));
        let mut parts = Parts::default();
        parts.add(0..256);
        parts.add(2048..2304);
        assert_eq!(upper.changed, parts, "as in the log");
    }
}
