//! What was freed of a group, but is not free on the disk yet, and what of a free extent it leaves.
//!
//! Freed extents are in a red-black tree by place. Who looks for room cuts those out of a free
//! extent that the tree finds, from its root on. So which of them is met first follows from the
//! tree's shape, and that from the order in which they were freed.
//!
// observed on 6.12, `xfs_extent_busy_trim`: of 160 and 80 busy blocks at the start of free room, of
// which the second were freed first, 112 blocks find nothing, and 496 what lies behind; of 488 and
// 20 busy ones, of which the second were freed first and four elsewhere between, 16 blocks find
// what lies behind both
//
// Divergence: when a part of them is free on the disk, the tree is built anew from the others.

use std::ops::Range;

/// Freed extents of a group.
#[derive(Clone, Debug, Default)]
pub struct Busy {
    /// In the order in which they were freed.
    nodes: Vec<Node>,
    root: Option<usize>,
}

#[derive(Clone, Debug)]
struct Node {
    blocks: Range<u64>,
    /// The sequence of the log that frees it.
    sequence: u64,
    /// What lies before it and behind it.
    below: [Option<usize>; 2],
    is_red: bool,
}

impl Busy {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Blocks are free when a sequence of the log is on the disk.
    pub fn add(&mut self, sequence: u64, blocks: Range<u64>) {
        let mut path = Vec::new();
        let mut at = self.root;
        while let Some(node) = at {
            let side = usize::from(blocks.start > self.nodes[node].blocks.start);
            path.push((node, side));
            at = self.nodes[node].below[side];
        }
        let new = self.nodes.len();
        self.nodes.push(Node { blocks, sequence, below: [None; 2], is_red: true });
        self.link(path.last().copied(), new);
        self.balance(path);
    }

    /// A sequence of the log is on the disk: the extents that are free now.
    pub fn stable(&mut self, sequence: u64) -> Vec<Range<u64>> {
        let is_free = |it: &Node| it.sequence <= sequence;
        if !self.nodes.iter().any(is_free) {
            return Vec::new();
        }
        let (free, others): (Vec<Node>, Vec<Node>) =
            std::mem::take(self).nodes.into_iter().partition(is_free);
        others.into_iter().for_each(|it| self.add(it.sequence, it.blocks));
        free.into_iter().map(|it| it.blocks).collect()
    }

    /// All of them, in the order in which they were freed.
    pub fn extents(&self) -> impl Iterator<Item = &Range<u64>> {
        self.nodes.iter().map(|it| &it.blocks)
    }

    /// The part of a free extent that is left for so many blocks when busy ones are cut out of it:
    /// what lies before a busy one if that is long enough, otherwise what lies behind. So nothing
    /// may be left of an extent that has room behind all that is busy.
    pub fn trim(&self, free: Range<u64>, length: u64) -> Range<u64> {
        let Range { mut start, mut end } = free;
        let mut at = self.root;
        while let Some(node) = at.filter(|_| start < end).map(|it| &self.nodes[it]) {
            let busy = &node.blocks;
            if end <= busy.start {
                at = node.below[0];
            } else if start >= busy.end {
                at = node.below[1];
            } else if busy.start > start && busy.start - start >= length {
                end = busy.start;
            } else {
                start = busy.end.min(end);
            }
        }
        start..end
    }

    /// A node comes to the place where the one before it on the path has another or none.
    fn link(&mut self, above: Option<(usize, usize)>, node: usize) {
        match above {
            Some((above, side)) => self.nodes[above].below[side] = Some(node),
            None => self.root = Some(node),
        }
    }

    /// Below a path there is a new red node: none may have a red one above it, as in every
    /// red-black tree.
    fn balance(&mut self, mut path: Vec<(usize, usize)>) {
        while let Some((above, side)) = path.pop().filter(|it| self.nodes[it.0].is_red) {
            let Some((top, top_side)) = path.pop() else { break };
            let other = self.nodes[top].below[1 - top_side];
            if let Some(other) = other.filter(|it| self.nodes[*it].is_red) {
                for (it, is_red) in [(above, false), (other, false), (top, true)] {
                    self.nodes[it].is_red = is_red;
                }
                continue;
            }
            let middle = match side == top_side {
                true => above,
                false => self.rotate(above, top_side),
            };
            self.nodes[top].below[top_side] = Some(middle);
            self.rotate(top, 1 - top_side);
            self.link(path.last().copied(), middle);
            self.nodes[middle].is_red = false;
            self.nodes[top].is_red = true;
            break;
        }
        let root = self.root.expect("one was added");
        self.nodes[root].is_red = false;
    }

    /// A node goes down to a side; answers with the one that comes up in its place.
    fn rotate(&mut self, node: usize, side: usize) -> usize {
        let up = self.nodes[node].below[1 - side].expect("there is one to come up");
        self.nodes[node].below[1 - side] = self.nodes[up].below[side].replace(node);
        up
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    fn freed(blocks: &[Range<u64>]) -> Busy {
        let mut busy = Busy::default();
        blocks.iter().for_each(|it| busy.add(1, it.clone()));
        busy
    }

    #[test]
    fn what_is_cut_out_first_follows_from_the_order_in_which_it_was_freed() {
        let two = freed(&[184..264, 24..184]);
        assert!(two.trim(24..1000, 112).is_empty());
        assert_eq!(two.trim(24..1000, 496), 264..1000);
        let three = freed(&[512..532, 10..14, 24..512]);
        assert_eq!(three.trim(24..1000, 16), 532..1000);
        assert!(freed(&[512..532, 24..512]).trim(24..1000, 16).is_empty());
        assert_eq!(three.trim(2000..2100, 16), 2000..2100);
    }

    #[test]
    fn the_others_stay_when_a_part_is_on_the_disk() {
        let mut busy = freed(&[0..8, 16..24]);
        busy.add(2, 32..40);
        assert_eq!(busy.stable(1), [0..8, 16..24]);
        assert_eq!(busy.extents().count(), 1);
        assert_eq!(busy.trim(0..100, 30), 0..32);
        assert_eq!(busy.stable(2).first(), Some(&(32..40)));
        assert!(busy.is_empty());
    }

    /// How many black nodes lie on each way down; and none is red below a red one.
    fn height(busy: &Busy, at: Option<usize>, is_red_above: bool) -> usize {
        let Some(node) = at.map(|it| &busy.nodes[it]) else { return 1 };
        assert!(!(node.is_red && is_red_above));
        let [before, behind] = node.below.map(|it| height(busy, it, node.is_red));
        assert_eq!(before, behind);
        before + usize::from(!node.is_red)
    }

    fn in_order(busy: &Busy, at: Option<usize>, found: &mut Vec<u64>) {
        let Some(node) = at.map(|it| &busy.nodes[it]) else { return };
        in_order(busy, node.below[0], found);
        found.push(node.blocks.start);
        in_order(busy, node.below[1], found);
    }

    #[test]
    fn it_is_a_red_black_tree_whatever_is_added() {
        for seed in 0..20 {
            let mut rng = Rng::stream(seed, "busy");
            let mut busy = Busy::default();
            let mut starts: Vec<u64> = (0..200).collect();
            for last in (0..starts.len()).rev() {
                let other = rng.below(last as u64 + 1) as usize;
                starts.swap(last, other);
                busy.add(1, starts[last]..starts[last] + 1);
                height(&busy, busy.root, true);
            }
            let mut found = Vec::new();
            in_order(&busy, busy.root, &mut found);
            assert_eq!(found, (0..200).collect::<Vec<_>>());
        }
    }
}
