//! Where the pages of a file are is kept in nodes of 64, and these in nodes of 64: a tree as high
//! as the file's last page needs. Fourteen nodes share a piece of two pages of memory.
//!
//! New nodes fill the piece at hand; then come pieces that are partly used, those that lost a node
//! first before others; then new ones. A piece whose last node goes stays, unless five are partly
//! used or empty: then it is free.
//!
// observed on 6.12.117: kmem_cache_alloc and kmem_cache_free of radix_tree_node, mm_page_alloc and
// mm_page_free of order 1, while fio lays out files of 1 to 48 MiB on ext4 and XFS (every node and
// piece of 13 guests); /sys/kernel/slab documents min_partial
//
// Divergence: nodes of what is not in the page cache are not among them, and those of pages that
// went because memory is short go too, though the kernel remembers such pages.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Every file has so many numbers for its pages, one file behind the other; the disk is the first.
pub const FILE_PAGES: u64 = 1 << 34;

/// Pages of a file, or nodes below it, in a node; as a power of two.
const BITS: u32 = 6;
/// Nodes in a piece (/proc/slabinfo).
const PER_PIECE: u32 = 14;
/// So many pieces that are not full are kept (`min_partial`).
const KEPT: usize = 5;

/// A node: how far above the pages, and which one.
type Node = (u32, u64);

/// The nodes of all files, and the pieces of memory that they are in.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    /// The piece of each node, and how many pages or nodes are below it.
    nodes: BTreeMap<Node, (usize, u32)>,
    /// How many levels of nodes each file has; those without nodes are missing.
    heights: BTreeMap<u64, u32>,
    /// Files whose only page is the first, which needs no node.
    alone: BTreeSet<u64>,
    /// How many nodes are in each piece, those of others among them.
    used: Vec<u32>,
    /// The piece in which new ones come.
    current: usize,
    /// Pieces that are not full, the next one to be filled first.
    partial: VecDeque<usize>,
}

impl Nodes {
    /// None yet, and room for so many in the piece at hand and in those that are filled next; some
    /// of it is taken by others at once.
    pub fn with_room(rooms: [u64; 3], taken: u64) -> Nodes {
        let used = rooms.map(|it| PER_PIECE.saturating_sub(it as u32)).to_vec();
        let partial = (1..used.len()).filter(|&it| used[it] < PER_PIECE).collect();
        let mut nodes = Nodes { used, partial, ..Nodes::default() };
        for _ in 0..taken {
            nodes.place();
        }
        nodes
    }

    /// A page of a file comes; the answer is how many pieces its nodes took.
    pub fn page_came(&mut self, file: u64, index: u64) -> u64 {
        let height = self.heights.get(&file).copied().unwrap_or(0);
        let was_alone = self.alone.remove(&file);
        if height == 0 && !was_alone && index == 0 {
            self.alone.insert(file);
            return 0;
        }
        let top = height_for(index).max(height);
        self.heights.insert(file, top);
        let mut pieces = 0;
        if height > 0 || was_alone {
            // The tree grows at its top: what was there comes below.
            pieces += (height..top).map(|level| self.add(file, level, 0, 1)).sum::<u64>();
        }
        for level in (0..top).rev() {
            let number = index >> (BITS * (level + 1));
            if !self.nodes.contains_key(&node(file, level, number)) {
                pieces += self.add(file, level, number, 0);
                self.count(file, level + 1, number >> BITS);
            }
        }
        self.count(file, 0, index >> BITS);
        pieces
    }

    /// A page of a file goes; the answer is how many pieces became free.
    pub fn page_left(&mut self, file: u64, index: u64) -> u64 {
        if self.alone.remove(&file) {
            return 0;
        }
        let height = self.heights.get(&file).copied().unwrap_or(0);
        let mut pieces = 0;
        for level in 0..height {
            let it = node(file, level, index >> (BITS * (level + 1)));
            let Some((piece, below)) = self.nodes.get_mut(&it) else { break };
            *below = below.saturating_sub(1);
            if *below > 0 {
                return pieces;
            }
            let piece = *piece;
            self.nodes.remove(&it);
            pieces += self.free(piece);
        }
        self.heights.remove(&file);
        pieces
    }

    fn add(&mut self, file: u64, level: u32, number: u64, below: u32) -> u64 {
        let (piece, is_new) = self.place();
        self.nodes.insert(node(file, level, number), (piece, below));
        u64::from(is_new)
    }

    fn count(&mut self, file: u64, level: u32, number: u64) {
        if let Some((_, below)) = self.nodes.get_mut(&node(file, level, number)) {
            *below = (*below + 1).min(1 << BITS);
        }
    }

    /// The piece for a new node, and whether it is new itself.
    fn place(&mut self) -> (usize, bool) {
        let mut is_new = false;
        if self.used[self.current] == PER_PIECE {
            self.current = self.partial.pop_front().unwrap_or_else(|| {
                is_new = true;
                self.used.push(0);
                self.used.len() - 1
            });
        }
        self.used[self.current] += 1;
        (self.current, is_new)
    }

    /// A node of a piece goes; the answer is whether the piece is free then.
    fn free(&mut self, piece: usize) -> u64 {
        self.used[piece] -= 1;
        if piece == self.current {
            return 0;
        }
        if self.used[piece] == PER_PIECE - 1 {
            self.partial.push_back(piece);
        }
        let is_free = self.used[piece] == 0 && self.partial.len() >= KEPT;
        if is_free {
            self.partial.retain(|it| *it != piece);
        }
        u64::from(is_free)
    }
}

fn node(file: u64, level: u32, number: u64) -> Node {
    (level, file << 32 | number)
}

/// How many levels of nodes it takes to say where a page is.
fn height_for(index: u64) -> u32 {
    (u64::BITS - index.leading_zeros()).div_ceil(BITS).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(nodes: &mut Nodes, file: u64, pages: u64) -> u64 {
        (0..pages).map(|page| nodes.page_came(file, page)).sum()
    }

    fn drop(nodes: &mut Nodes, file: u64, pages: u64) -> u64 {
        (0..pages).map(|page| nodes.page_left(file, page)).sum()
    }

    #[test]
    fn a_tree_is_as_high_as_its_last_page_needs() {
        let heights = [0, 1, 63, 64, 4095, 4096].map(height_for);
        assert_eq!(heights, [1, 1, 1, 2, 2, 3]);
        let mut nodes = Nodes::with_room([14, 0, 0], 0);
        write(&mut nodes, 1, 1);
        assert_eq!(nodes.nodes.len(), 0);
        write(&mut nodes, 1, 4097);
        assert_eq!(nodes.nodes.len(), 65 + 2 + 1);
        drop(&mut nodes, 1, 4097);
        assert!(nodes.nodes.is_empty());
    }

    // observed on 6.12.117: a file of 24 MiB on ext4, of which a neighbour took one node
    #[test]
    fn five_pieces_that_are_not_full_are_kept() {
        let mut nodes = Nodes::with_room([7, 0, 0], 0);
        assert_eq!(write(&mut nodes, 1, 6144), 7);
        assert_eq!(drop(&mut nodes, 1, 6144), 3);
        // Those that were kept are used first, that at hand before the others.
        assert_eq!(write(&mut nodes, 2, 6144), 3);
    }

    // observed on 6.12.117: four files of fio on XFS, which are let go one by one
    #[test]
    fn how_much_room_there_is_in_which_piece_decides_how_many_go() {
        let mut nodes = Nodes::with_room([2, 9, 1], 0);
        let pieces = [4096, 1024, 4096, 4096, 1024].into_iter().zip(1..).map(|(pages, file)| {
            let taken = write(&mut nodes, file, pages);
            (taken, drop(&mut nodes, file, pages))
        });
        assert_eq!(pieces.collect::<Vec<_>>(), [(4, 2), (0, 0), (2, 1), (1, 2), (0, 0)]);
    }

    #[test]
    fn what_goes_and_comes_again_leaves_nothing_behind() {
        let mut nodes = Nodes::with_room([10, 0, 0], 0);
        let mut pieces = 0;
        for file in 0..50 {
            pieces += write(&mut nodes, file, 1000 + 97 * file);
            pieces -= drop(&mut nodes, file, 1000 + 97 * file);
        }
        assert!(nodes.nodes.is_empty() && nodes.heights.is_empty());
        assert!(pieces <= KEPT as u64 + 1, "{pieces}");
    }
}
