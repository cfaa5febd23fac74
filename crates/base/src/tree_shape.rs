//! The shape of a red-black tree whose members are kept in order elsewhere.
//!
//! Who goes down a tree from its root and takes the first member that fits finds, of several that
//! fit, the highest. Which one that is follows from all that was added and removed since the tree
//! was empty. So the shape is kept beside a set that needs no tree to find its members. It holds no
//! keys: whoever adds a member says between which two it belongs. Adding and removing are those of
//! the textbooks: a new member becomes a red leaf, and one with two below it gives its place and
//! colour to its successor.

use alloc::vec::Vec;
use core::marker::PhantomData;

use crate::arena::Id;

/// No node: above the root, or below a leaf.
const NONE: u32 = u32::MAX;

/// How members hang together.
pub struct TreeShape<T> {
    /// By the number of the member.
    nodes: Vec<Node>,
    root: u32,
    kind: PhantomData<fn() -> T>,
}

#[derive(Clone, Copy)]
struct Node {
    above: u32,
    /// What stands before it and behind it.
    below: [u32; 2],
    is_red: bool,
}

const UNUSED: Node = Node { above: NONE, below: [NONE; 2], is_red: false };

// Derived, it would ask the same of `T`. What nobody is in is not worth copying.
impl<T> Clone for TreeShape<T> {
    fn clone(&self) -> Self {
        let nodes = if self.root == NONE { Vec::new() } else { self.nodes.clone() };
        TreeShape { nodes, root: self.root, kind: PhantomData }
    }
}

impl<T> Default for TreeShape<T> {
    fn default() -> Self {
        TreeShape { nodes: Vec::new(), root: NONE, kind: PhantomData }
    }
}

impl<T> TreeShape<T> {
    /// Adds `id`, which is no member, between two members that are neighbours.
    pub fn insert(&mut self, id: Id<T>, before: Option<Id<T>>, behind: Option<Id<T>>) {
        let new = number(id);
        if self.nodes.len() <= id.index() {
            self.nodes.resize(id.index() + 1, UNUSED);
        }
        // Of two neighbours one has nothing below it on the side of the other.
        let before = before.map(number).filter(|before| self.below(*before, 1) == NONE);
        let (above, side) = match (before, behind.map(number)) {
            (Some(before), _) => (before, 1),
            (None, Some(behind)) => (behind, 0),
            (None, None) => (NONE, 0),
        };
        self.nodes[id.index()] = Node { above, below: [NONE; 2], is_red: true };
        match above {
            NONE => self.root = new,
            above => self.node(above).below[side] = new,
        }
        self.balance_new(new);
    }

    /// Takes `id` out, which is a member.
    pub fn remove(&mut self, id: Id<T>) {
        let gone = number(id);
        let Node { above, below, is_red } = self.nodes[id.index()];
        if below[0] != NONE && below[1] != NONE {
            self.remove_inner(gone);
            return;
        }
        let child = if below[0] == NONE { below[1] } else { below[0] };
        self.replace(above, gone, child);
        if !is_red {
            self.balance_gone(child, above);
        }
    }

    /// Takes out a node with two below it: its successor comes into its place.
    fn remove_inner(&mut self, gone: u32) {
        let Node { above, below, is_red } = self.nodes[gone as usize];
        let mut next = below[1];
        while self.below(next, 0) != NONE {
            next = self.below(next, 0);
        }
        let Node { above: next_above, below: [_, child], is_red: was_red } =
            self.nodes[next as usize];
        let hole = if next_above == gone { next } else { next_above };
        self.replace(next_above, next, child);
        let [first, second] = self.nodes[gone as usize].below;
        self.nodes[next as usize] = Node { above: NONE, below: [first, second], is_red };
        for below in [first, second].into_iter().filter(|below| *below != NONE) {
            self.node(below).above = next;
        }
        self.replace(above, gone, next);
        if !was_red {
            self.balance_gone(child, hole);
        }
    }

    /// The highest of members that stand one behind the other: who goes down from the root meets it
    /// before the others.
    pub fn highest(&self, members: impl IntoIterator<Item = Id<T>>) -> Option<Id<T>> {
        let mut members = members.into_iter();
        let first = members.next()?;
        // Most often there is only one.
        let Some(second) = members.next() else { return Some(first) };
        let all = [first, second].into_iter().chain(members);
        all.min_by_key(|id| self.depth(number(*id)))
    }

    /// The number of the member that stands above all others; none if nobody is in it.
    pub fn root(&self) -> Option<usize> {
        known(self.root)
    }

    /// The number of the member right below another one, before it (0) or behind it (1).
    pub fn child(&self, number: usize, side: usize) -> Option<usize> {
        known(self.nodes[number].below[side])
    }

    fn depth(&self, mut node: u32) -> u32 {
        let mut depth = 0;
        while self.nodes[node as usize].above != NONE {
            node = self.nodes[node as usize].above;
            depth += 1;
        }
        depth
    }

    fn node(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    fn below(&self, node: u32, side: usize) -> u32 {
        self.nodes[node as usize].below[side]
    }

    fn is_red(&self, node: u32) -> bool {
        node != NONE && self.nodes[node as usize].is_red
    }

    /// Below `above`, or as the root, `new` comes to the place of `old`; there may be none.
    fn replace(&mut self, above: u32, old: u32, new: u32) {
        match above {
            NONE => self.root = new,
            above => {
                let side = usize::from(self.below(above, 1) == old);
                self.node(above).below[side] = new;
            }
        }
        if new != NONE {
            self.node(new).above = above;
        }
    }

    /// A node goes down to a side; answers with the one that comes up in its place.
    fn rotate(&mut self, node: u32, side: usize) -> u32 {
        let up = self.below(node, 1 - side);
        let inner = self.below(up, side);
        self.replace(self.nodes[node as usize].above, node, up);
        self.node(node).below[1 - side] = inner;
        if inner != NONE {
            self.node(inner).above = node;
        }
        self.node(up).below[side] = node;
        self.node(node).above = up;
        up
    }

    /// A node is new and red: none may have a red one above it.
    fn balance_new(&mut self, mut new: u32) {
        loop {
            let above = self.nodes[new as usize].above;
            if !self.is_red(above) {
                break;
            }
            // A red one is not the root.
            let top = self.nodes[above as usize].above;
            let side = usize::from(self.below(top, 1) == above);
            let other = self.below(top, 1 - side);
            self.node(top).is_red = true;
            if self.is_red(other) {
                self.node(above).is_red = false;
                self.node(other).is_red = false;
                new = top;
                continue;
            }
            let is_inner = self.below(above, side) != new;
            let middle = if is_inner { self.rotate(above, side) } else { above };
            self.node(middle).is_red = false;
            self.rotate(top, 1 - side);
            break;
        }
        let root = self.root;
        self.node(root).is_red = false;
    }

    /// On the ways through `short`, which may be none, a black node is missing now.
    fn balance_gone(&mut self, mut short: u32, mut above: u32) {
        while above != NONE && !self.is_red(short) {
            let side = usize::from(self.below(above, 1) == short);
            let mut other = self.below(above, 1 - side);
            if self.is_red(other) {
                self.node(other).is_red = false;
                self.node(above).is_red = true;
                self.rotate(above, side);
                other = self.below(above, 1 - side);
            }
            let is_red = [self.below(other, side), self.below(other, 1 - side)]
                .map(|nephew| self.is_red(nephew));
            if is_red == [false; 2] {
                self.node(other).is_red = true;
                (short, above) = (above, self.nodes[above as usize].above);
                continue;
            }
            if !is_red[1] {
                self.node(other).is_red = true;
                other = self.rotate(other, 1 - side);
            }
            let outer = self.below(other, 1 - side);
            self.node(other).is_red = self.is_red(above);
            self.node(above).is_red = false;
            self.node(outer).is_red = false;
            self.rotate(above, side);
            return;
        }
        if short != NONE {
            self.node(short).is_red = false;
        }
    }
}

fn number<T>(id: Id<T>) -> u32 {
    id.index() as u32
}

fn known(node: u32) -> Option<usize> {
    if node == NONE { None } else { Some(node as usize) }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::arena::Arena;
    use crate::rng::Rng;
    use std::vec::Vec;

    /// A tree with the members in order.
    struct Tree {
        shape: TreeShape<()>,
        order: Vec<Id<()>>,
    }

    impl Tree {
        fn insert(&mut self, place: usize, id: Id<()>) {
            let before = place.checked_sub(1).map(|before| self.order[before]);
            self.shape.insert(id, before, self.order.get(place).copied());
            self.order.insert(place, id);
        }

        fn remove(&mut self, place: usize) -> Id<()> {
            let id = self.order.remove(place);
            self.shape.remove(id);
            id
        }

        /// Members from the root on, each before those below it; red ones are negative.
        fn preorder(&self) -> Vec<i64> {
            let mut found = Vec::new();
            let mut left = Vec::from([self.shape.root]);
            while let Some(node) = left.pop().filter(|_| !self.order.is_empty()) {
                if node != NONE {
                    let sign = if self.shape.is_red(node) { -1 } else { 1 };
                    found.push(sign * i64::from(node + 1));
                    left.extend([self.shape.below(node, 1), self.shape.below(node, 0)]);
                }
            }
            found
        }

        /// How many black nodes lie on each way down from a node; what is in order below it.
        fn check(&self, node: u32, above: u32, found: &mut Vec<u32>) -> usize {
            if node == NONE {
                return 1;
            }
            let Node { above: known, below, is_red } = self.shape.nodes[node as usize];
            assert_eq!(known, above);
            assert!(!(is_red && (above == NONE || self.shape.is_red(above))));
            let before = self.check(below[0], node, found);
            found.push(node);
            assert_eq!(before, self.check(below[1], node, found));
            before + usize::from(!is_red)
        }
    }

    fn of(count: usize) -> (Tree, Vec<Id<()>>) {
        let mut arena = Arena::new();
        let ids = (0..count).map(|_| arena.insert(())).collect();
        (Tree { shape: TreeShape::default(), order: Vec::new() }, ids)
    }

    #[test]
    fn of_two_that_fit_the_higher_one_is_met_first() {
        let (mut tree, ids) = of(3);
        tree.insert(0, ids[0]);
        tree.insert(1, ids[1]);
        assert_eq!(tree.shape.highest([ids[0], ids[1]]), Some(ids[0]));
        tree.insert(2, ids[2]);
        assert_eq!(tree.preorder(), [2, -1, -3]);
        assert_eq!(tree.shape.highest([ids[0], ids[1]]), Some(ids[1]), "it has come up");
        assert_eq!(tree.shape.highest([]), None);
    }

    #[test]
    fn a_successor_comes_into_the_place_of_what_is_gone() {
        let (mut tree, ids) = of(6);
        (0..6).for_each(|place| tree.insert(place, ids[place]));
        assert_eq!(tree.preorder(), [2, 1, -4, 3, 5, -6]);
        tree.remove(3);
        assert_eq!(tree.preorder(), [2, 1, -5, 3, 6]);
        tree.remove(0);
        assert_eq!(tree.preorder(), [5, 2, -3, 6]);
    }

    #[test]
    fn it_is_a_red_black_tree_whatever_is_added_and_removed() {
        for seed in 0..40 {
            let mut rng = Rng::stream(seed, "shape");
            let (mut tree, mut spare) = of(1 + 2 * seed as usize);
            let count = spare.len() as u64;
            for step in 0..400 {
                // Now it grows, now it shrinks.
                let grows = rng.below(4) < if step / 100 % 2 == 0 { 3 } else { 1 };
                let members = tree.order.len() as u64;
                if (grows || members == 0) && members < count {
                    let place = rng.below(members + 1) as usize;
                    tree.insert(place, spare.pop().expect("not all are members"));
                } else {
                    spare.push(tree.remove(rng.below(members) as usize));
                }
                let mut found = Vec::new();
                tree.check(tree.shape.root, NONE, &mut found);
                let order: Vec<u32> = tree.order.iter().map(|id| number(*id)).collect();
                assert_eq!(found, order);
            }
        }
    }
}
