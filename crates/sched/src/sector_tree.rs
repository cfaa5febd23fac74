//! A balanced search tree whose shape is visible.
//!
//! The kernel looks for the queue that goes on closest to a sector in a red-black tree, and which
//! of two neighbours it finds depends on where its search ends, that is on the tree's shape. So
//! here is such a tree, after the textbook (Cormen et al., Introduction to Algorithms, chapter 13).
//! What orders it is given anew with every search: entries may have moved since they were put in.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// Number of a node; it stays until the node is removed.
pub(crate) type Node = usize;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Colour {
    Red,
    Black,
}

#[derive(Clone)]
struct Entry<Q> {
    queue: Q,
    parent: Option<Node>,
    /// Left and right.
    children: [Option<Node>; 2],
    colour: Colour,
}

/// The tree.
#[derive(Clone)]
pub(crate) struct SectorTree<Q> {
    entries: Vec<Option<Entry<Q>>>,
    free: Vec<Node>,
    root: Option<Node>,
}

/// Where a search ended.
pub(crate) enum Found {
    /// At what was looked for.
    At(Node),
    /// Below this node, on this side (0: before it).
    Below(Node, usize),
    /// The tree is empty.
    Nowhere,
}

impl<Q> Default for SectorTree<Q> {
    fn default() -> Self {
        SectorTree { entries: Vec::new(), free: Vec::new(), root: None }
    }
}

impl<Q: Copy> SectorTree<Q> {
    /// Looks for something; `compare` tells how it stands to an entry.
    pub fn search(&self, compare: impl Fn(Q) -> Ordering) -> Found {
        let Some(mut at) = self.root else { return Found::Nowhere };
        loop {
            let side = match compare(self.queue(at)) {
                Ordering::Equal => return Found::At(at),
                Ordering::Less => 0,
                Ordering::Greater => 1,
            };
            match self.entry(at).children[side] {
                Some(child) => at = child,
                None => return Found::Below(at, side),
            }
        }
    }

    /// Whether nothing stands in it.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Puts a queue where a search has ended.
    pub fn insert(&mut self, queue: Q, place: &Found) -> Node {
        let parent = match place {
            Found::Below(parent, _) => Some(*parent),
            Found::Nowhere => None,
            Found::At(_) => panic!("something stands there already"),
        };
        let entry = Entry { queue, parent, children: [None; 2], colour: Colour::Red };
        let node = match self.free.pop() {
            Some(node) => {
                self.entries[node] = Some(entry);
                node
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() - 1
            }
        };
        match *place {
            Found::Below(parent, side) => self.entry_mut(parent).children[side] = Some(node),
            _ => self.root = Some(node),
        }
        self.repair_insertion(node);
        node
    }

    /// Whose node it is.
    pub fn queue(&self, node: Node) -> Q {
        self.entry(node).queue
    }

    /// The neighbour on a side (0: before).
    pub fn neighbour(&self, node: Node, side: usize) -> Option<Node> {
        if let Some(mut at) = self.entry(node).children[side] {
            while let Some(child) = self.entry(at).children[1 - side] {
                at = child;
            }
            return Some(at);
        }
        let mut at = node;
        loop {
            let parent = self.entry(at).parent?;
            if self.side_of(at, parent) != side {
                return Some(parent);
            }
            at = parent;
        }
    }

    /// Takes a node out.
    pub fn remove(&mut self, node: Node) {
        let [left, right] = self.entry(node).children;
        let (gap, parent, side, colour);
        if let (Some(left), Some(right)) = (left, right) {
            let heir = self.neighbour(node, 1).expect("there is a right child");
            colour = self.entry(heir).colour;
            gap = self.entry(heir).children[1];
            if heir == right {
                (parent, side) = (Some(heir), 1);
            } else {
                (parent, side) = (self.entry(heir).parent, 0);
                self.replace(heir, gap);
                self.entry_mut(heir).children[1] = Some(right);
                self.entry_mut(right).parent = Some(heir);
            }
            self.replace(node, Some(heir));
            self.entry_mut(heir).children[0] = Some(left);
            self.entry_mut(left).parent = Some(heir);
            self.entry_mut(heir).colour = self.entry(node).colour;
        } else {
            colour = self.entry(node).colour;
            gap = left.or(right);
            parent = self.entry(node).parent;
            side = parent.map_or(0, |parent| self.side_of(node, parent));
            self.replace(node, gap);
        }
        self.entries[node] = None;
        self.free.push(node);
        if colour == Colour::Black {
            self.repair_removal(gap, parent, side);
        }
    }

    fn repair_insertion(&mut self, mut node: Node) {
        while let Some(mut parent) = self.entry(node).parent.filter(|it| self.is_red(Some(*it))) {
            let above = self.entry(parent).parent.expect("the root is black");
            let side = self.side_of(parent, above);
            let uncle = self.entry(above).children[1 - side];
            if let Some(uncle) = uncle.filter(|it| self.is_red(Some(*it))) {
                self.entry_mut(parent).colour = Colour::Black;
                self.entry_mut(uncle).colour = Colour::Black;
                self.entry_mut(above).colour = Colour::Red;
                node = above;
                continue;
            }
            if self.side_of(node, parent) != side {
                self.rotate(parent, side);
                (node, parent) = (parent, node);
            }
            self.entry_mut(parent).colour = Colour::Black;
            self.entry_mut(above).colour = Colour::Red;
            self.rotate(above, 1 - side);
            debug_assert!(self.is_red(Some(node)));
        }
        let root = self.root.expect("something was inserted");
        self.entry_mut(root).colour = Colour::Black;
    }

    /// Below `parent`, on `side`, stands `gap`, and there is one black node too few.
    fn repair_removal(&mut self, mut gap: Option<Node>, mut parent: Option<Node>, mut side: usize) {
        while let Some(above) = parent.filter(|_| !self.is_red(gap)) {
            let far = 1 - side;
            let mut sibling = self.entry(above).children[far].expect("it has black nodes below");
            if self.is_red(Some(sibling)) {
                self.entry_mut(sibling).colour = Colour::Black;
                self.entry_mut(above).colour = Colour::Red;
                self.rotate(above, side);
                sibling = self.entry(above).children[far].expect("it has black nodes below");
            }
            let nephews = self.entry(sibling).children;
            if !self.is_red(nephews[0]) && !self.is_red(nephews[1]) {
                self.entry_mut(sibling).colour = Colour::Red;
                gap = Some(above);
                parent = self.entry(above).parent;
                side = parent.map_or(0, |parent| self.side_of(above, parent));
                continue;
            }
            if !self.is_red(nephews[far]) {
                let near = nephews[side].expect("it is red");
                self.entry_mut(near).colour = Colour::Black;
                self.entry_mut(sibling).colour = Colour::Red;
                self.rotate(sibling, far);
                sibling = near;
            }
            self.entry_mut(sibling).colour = self.entry(above).colour;
            self.entry_mut(above).colour = Colour::Black;
            let nephew = self.entry(sibling).children[far].expect("it is red");
            self.entry_mut(nephew).colour = Colour::Black;
            self.rotate(above, side);
            return;
        }
        if let Some(gap) = gap {
            self.entry_mut(gap).colour = Colour::Black;
        }
    }

    /// Turns a node down to a side, and its child of the other side up.
    fn rotate(&mut self, node: Node, side: usize) {
        let up = self.entry(node).children[1 - side].expect("a child comes up");
        let moved = self.entry(up).children[side];
        self.replace(node, Some(up));
        self.entry_mut(node).children[1 - side] = moved;
        if let Some(moved) = moved {
            self.entry_mut(moved).parent = Some(node);
        }
        self.entry_mut(up).children[side] = Some(node);
        self.entry_mut(node).parent = Some(up);
    }

    /// Puts a subtree in the place of another.
    fn replace(&mut self, node: Node, by: Option<Node>) {
        let parent = self.entry(node).parent;
        match parent {
            Some(parent) => {
                let side = self.side_of(node, parent);
                self.entry_mut(parent).children[side] = by;
            }
            None => self.root = by,
        }
        if let Some(by) = by {
            self.entry_mut(by).parent = parent;
        }
    }

    fn side_of(&self, node: Node, parent: Node) -> usize {
        usize::from(self.entry(parent).children[1] == Some(node))
    }

    fn is_red(&self, node: Option<Node>) -> bool {
        node.is_some_and(|node| self.entry(node).colour == Colour::Red)
    }

    fn entry(&self, node: Node) -> &Entry<Q> {
        self.entries[node].as_ref().expect("a node of the tree")
    }

    fn entry_mut(&mut self, node: Node) -> &mut Entry<Q> {
        self.entries[node].as_mut().expect("a node of the tree")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use base::{Arena, Id, Rng};

    /// How many black nodes stand below, the same on both sides.
    fn black_height(tree: &SectorTree<Id<()>>, node: Option<Node>) -> u32 {
        let Some(node) = node else { return 1 };
        let entry = tree.entry(node);
        let heights = entry.children.map(|child| black_height(tree, child));
        assert_eq!(heights[0], heights[1]);
        for child in entry.children.into_iter().flatten() {
            assert_eq!(tree.entry(child).parent, Some(node));
            assert!(entry.colour == Colour::Black || !tree.is_red(Some(child)), "two red in a row");
        }
        heights[0] + u32::from(entry.colour == Colour::Black)
    }

    #[test]
    fn it_stays_sorted_and_balanced() {
        let mut arena: Arena<()> = Arena::new();
        let ids: Vec<Id<()>> = (0..64).map(|_| arena.insert(())).collect();
        let place = |id: Id<()>| ids.iter().position(|other| *other == id).unwrap();
        let mut nodes: Vec<Option<Node>> = std::vec![None; ids.len()];
        let mut tree = SectorTree::default();
        let mut rng = Rng::stream(5, "sector tree");
        for _ in 0..4_000 {
            let number = rng.below(ids.len() as u64) as usize;
            match nodes[number].take() {
                Some(node) => tree.remove(node),
                None => {
                    let found = tree.search(|id| number.cmp(&place(id)));
                    nodes[number] = Some(tree.insert(ids[number], &found));
                }
            }
            black_height(&tree, tree.root);
            let members = (0..ids.len()).filter(|number| nodes[*number].is_some());
            let members: Vec<usize> = members.collect();
            for pair in members.windows(2) {
                let (before, after) = (nodes[pair[0]].unwrap(), nodes[pair[1]].unwrap());
                assert_eq!(tree.neighbour(before, 1), Some(after));
                assert_eq!(tree.neighbour(after, 0), Some(before));
            }
        }
    }

    #[test]
    fn where_a_search_ends_depends_on_the_shape() {
        let mut arena: Arena<()> = Arena::new();
        let mut id = || arena.insert(());
        let (low, high) = (id(), id());
        let place = |id: Id<()>| if id == low { 10 } else { 30 };
        for (first, second) in [(low, high), (high, low)] {
            let mut tree = SectorTree::default();
            tree.insert(first, &Found::Nowhere);
            let found = tree.search(|id| place(second).cmp(&place(id)));
            tree.insert(second, &found);
            let Found::Below(last, _) = tree.search(|id| 20.cmp(&place(id))) else {
                panic!("nothing stands there")
            };
            assert!(tree.queue(last) == second, "the search ends at the leaf");
        }
    }
}
