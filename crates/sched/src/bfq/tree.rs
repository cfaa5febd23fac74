//! A tree of entities that may compute, in the order in which their budgets would be used up.
//!
//! Whoever looks for the first one that is eligible does not always find it: the kernel walks down
//! from the root and is content with the last eligible one it has met. So which one it finds
//! depends on the shape of the tree, and this is that tree: red and black, an equal key to the
//! right, and in each node the earliest start below it (B-WF2Q+ of Valente and Checconi, 2010).

use super::wf2q::EntityId;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

/// Nodes of all trees of a device, by number of the entity.
#[derive(Clone, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    /// Whose node it is.
    ids: Vec<Option<EntityId>>,
}

#[derive(Clone, Copy)]
struct Node {
    above: u32,
    below: [u32; 2],
    is_red: bool,
    start: u64,
    finish: u64,
    /// The earliest start among it and those below.
    least: u64,
}

const UNUSED: Node =
    Node { above: NONE, below: [NONE; 2], is_red: false, start: 0, finish: 0, least: 0 };

/// A tree: its root.
#[derive(Clone, Copy)]
pub(super) struct Tree {
    root: u32,
    count: u32,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree { root: NONE, count: 0 }
    }
}

/// Whether a virtual time comes after another one; they wrap around.
pub(super) fn is_after(one: u64, other: u64) -> bool {
    one.wrapping_sub(other) as i64 > 0
}

impl Tree {
    pub fn is_empty(&self) -> bool {
        self.root == NONE
    }

    /// How many entities it holds.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The earliest start of all; none if it is empty.
    pub fn earliest_start(&self, nodes: &Nodes) -> Option<u64> {
        (self.root != NONE).then(|| nodes.nodes[self.root as usize].least)
    }

    /// The one that the walk of the kernel finds at this virtual time.
    pub fn first_eligible(&self, nodes: &Nodes, vtime: u64) -> Option<EntityId> {
        let may = |start: u64| !is_after(start, vtime);
        let mut found = NONE;
        let mut at = self.root;
        while at != NONE {
            let node = &nodes.nodes[at as usize];
            if may(node.start) {
                found = at;
            }
            let left = node.below[0];
            if left != NONE && may(nodes.nodes[left as usize].least) {
                at = left;
            } else if found != NONE {
                break;
            } else {
                at = node.below[1];
            }
        }
        (found != NONE).then(|| nodes.ids[found as usize].expect("it is in a tree"))
    }

    /// Adds an entity that is in no tree.
    pub fn insert(&mut self, nodes: &mut Nodes, id: EntityId, start: u64, finish: u64) {
        let new = id.index() as u32;
        nodes.make_room(id);
        let (mut above, mut side, mut at) = (NONE, 0, self.root);
        while at != NONE {
            above = at;
            side = usize::from(!is_after(nodes.nodes[at as usize].finish, finish));
            at = nodes.nodes[at as usize].below[side];
        }
        nodes.nodes[new as usize] =
            Node { above, below: [NONE; 2], is_red: true, start, finish, least: start };
        match above {
            NONE => self.root = new,
            above => nodes.nodes[above as usize].below[side] = new,
        }
        self.count += 1;
        nodes.refresh_upwards(above);
        self.balance_new(nodes, new);
    }

    /// Takes an entity out that is in it.
    pub fn remove(&mut self, nodes: &mut Nodes, id: EntityId) {
        let gone = id.index() as u32;
        self.count -= 1;
        let Node { above, below, is_red, .. } = nodes.nodes[gone as usize];
        let (child, hole, was_red);
        if below[0] != NONE && below[1] != NONE {
            let mut next = below[1];
            while nodes.below(next, 0) != NONE {
                next = nodes.below(next, 0);
            }
            child = nodes.below(next, 1);
            was_red = nodes.nodes[next as usize].is_red;
            let next_above = nodes.nodes[next as usize].above;
            hole = if next_above == gone { next } else { next_above };
            self.replace(nodes, next_above, next, child);
            let now_below = nodes.nodes[gone as usize].below;
            let successor = &mut nodes.nodes[next as usize];
            (successor.below, successor.is_red) = (now_below, is_red);
            for below in now_below.into_iter().filter(|below| *below != NONE) {
                nodes.nodes[below as usize].above = next;
            }
            self.replace(nodes, above, gone, next);
        } else {
            child = if below[0] == NONE { below[1] } else { below[0] };
            (hole, was_red) = (above, is_red);
            self.replace(nodes, above, gone, child);
        }
        nodes.refresh_upwards(hole);
        if !was_red {
            self.balance_gone(nodes, child, hole);
        }
    }

    /// Puts `new`, perhaps nothing, where `old` was below `above`.
    fn replace(&mut self, nodes: &mut Nodes, above: u32, old: u32, new: u32) {
        match above {
            NONE => self.root = new,
            above => {
                let side = nodes.side_of(above, old);
                nodes.nodes[above as usize].below[side] = new;
            }
        }
        if new != NONE {
            nodes.nodes[new as usize].above = above;
        }
    }

    /// What is below `node` on the other side comes above it.
    fn rotate(&mut self, nodes: &mut Nodes, node: u32, side: usize) {
        let up = nodes.below(node, 1 - side);
        let inner = nodes.below(up, side);
        let above = nodes.nodes[node as usize].above;
        self.replace(nodes, above, node, up);
        nodes.nodes[up as usize].below[side] = node;
        nodes.nodes[node as usize].above = up;
        nodes.nodes[node as usize].below[1 - side] = inner;
        if inner != NONE {
            nodes.nodes[inner as usize].above = node;
        }
        nodes.refresh(node);
        nodes.refresh(up);
    }

    fn balance_new(&mut self, nodes: &mut Nodes, mut node: u32) {
        loop {
            let mut above = nodes.nodes[node as usize].above;
            if above == NONE {
                nodes.nodes[node as usize].is_red = false;
                return;
            }
            if !nodes.is_red(above) {
                return;
            }
            let top = nodes.nodes[above as usize].above;
            let side = nodes.side_of(top, above);
            let uncle = nodes.below(top, 1 - side);
            if nodes.is_red(uncle) {
                for black in [above, uncle] {
                    nodes.nodes[black as usize].is_red = false;
                }
                nodes.nodes[top as usize].is_red = true;
                node = top;
                continue;
            }
            if nodes.side_of(above, node) != side {
                self.rotate(nodes, above, side);
                above = node;
            }
            nodes.nodes[above as usize].is_red = false;
            nodes.nodes[top as usize].is_red = true;
            self.rotate(nodes, top, 1 - side);
            return;
        }
    }

    /// The way to `node`, perhaps nothing, below `above` lacks a black one.
    fn balance_gone(&mut self, nodes: &mut Nodes, mut node: u32, mut above: u32) {
        while above != NONE && !nodes.is_red(node) {
            let side = usize::from(nodes.below(above, 0) != node);
            let mut sibling = nodes.below(above, 1 - side);
            if nodes.is_red(sibling) {
                nodes.nodes[sibling as usize].is_red = false;
                nodes.nodes[above as usize].is_red = true;
                self.rotate(nodes, above, side);
                sibling = nodes.below(above, 1 - side);
            }
            let [near, far] = [nodes.below(sibling, side), nodes.below(sibling, 1 - side)];
            if !nodes.is_red(near) && !nodes.is_red(far) {
                nodes.nodes[sibling as usize].is_red = true;
                (node, above) = (above, nodes.nodes[above as usize].above);
                continue;
            }
            if !nodes.is_red(far) {
                // What these two are follows below.
                self.rotate(nodes, sibling, 1 - side);
                sibling = nodes.below(above, 1 - side);
            }
            nodes.nodes[sibling as usize].is_red = nodes.nodes[above as usize].is_red;
            nodes.nodes[above as usize].is_red = false;
            let far = nodes.below(sibling, 1 - side);
            nodes.nodes[far as usize].is_red = false;
            self.rotate(nodes, above, side);
            return;
        }
        if node != NONE {
            nodes.nodes[node as usize].is_red = false;
        }
    }
}

impl Nodes {
    fn make_room(&mut self, id: EntityId) {
        if self.nodes.len() <= id.index() {
            self.nodes.resize(id.index() + 1, UNUSED);
            self.ids.resize(id.index() + 1, None);
        }
        self.ids[id.index()] = Some(id);
    }

    fn below(&self, node: u32, side: usize) -> u32 {
        self.nodes[node as usize].below[side]
    }

    fn side_of(&self, above: u32, node: u32) -> usize {
        usize::from(self.below(above, 0) != node)
    }

    fn is_red(&self, node: u32) -> bool {
        node != NONE && self.nodes[node as usize].is_red
    }

    /// The earliest start among a node and those below it, anew.
    fn refresh(&mut self, node: u32) {
        let Node { below, start, .. } = self.nodes[node as usize];
        let below = below.into_iter().filter(|below| *below != NONE);
        let starts = below.map(|below| self.nodes[below as usize].least);
        let least = starts.fold(start, |one, other| if is_after(one, other) { other } else { one });
        self.nodes[node as usize].least = least;
    }

    fn refresh_upwards(&mut self, mut node: u32) {
        while node != NONE {
            self.refresh(node);
            node = self.nodes[node as usize].above;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use base::{Arena, Rng};
    use std::vec::Vec;

    /// A tree and the same members in order.
    struct Twin {
        nodes: Nodes,
        tree: Tree,
        members: Vec<(u64, u64, EntityId)>,
    }

    impl Twin {
        fn check(&self) {
            assert_eq!(self.tree.count() as usize, self.members.len());
            let mut all = Vec::new();
            self.walk(self.tree.root, &mut all);
            let members: Vec<_> = self.members.iter().map(|it| it.2).collect();
            assert_eq!(all, members);
            assert!(!self.nodes.is_red(self.tree.root));
            let least = self.members.iter().map(|it| it.1).min();
            assert_eq!(self.tree.earliest_start(&self.nodes), least);
        }

        /// The answer is how many black nodes are on each way down.
        fn walk(&self, node: u32, all: &mut Vec<EntityId>) -> u32 {
            if node == NONE {
                return 0;
            }
            let it = self.nodes.nodes[node as usize];
            let one = self.walk(it.below[0], all);
            all.push(self.nodes.ids[node as usize].expect("in use"));
            assert_eq!(one, self.walk(it.below[1], all), "as many black ones on each side");
            assert!(!it.is_red || it.below.iter().all(|below| !self.nodes.is_red(*below)));
            one + u32::from(!it.is_red)
        }
    }

    #[test]
    fn a_tree_stays_in_order_and_balanced_whatever_comes_and_goes() {
        let mut arena = Arena::new();
        let ids: Vec<EntityId> = (0..60).map(|_| arena.insert(Default::default())).collect();
        for seed in 0..20 {
            let mut rng = Rng::stream(seed, "tree");
            let mut twin =
                Twin { nodes: Nodes::default(), tree: Tree::default(), members: Vec::new() };
            for _ in 0..800 {
                let id = ids[rng.below(60) as usize];
                match twin.members.iter().position(|it| it.2 == id) {
                    Some(at) => {
                        twin.members.remove(at);
                        twin.tree.remove(&mut twin.nodes, id);
                    }
                    None => {
                        let (start, finish) = (rng.below(30), rng.below(30));
                        let at = twin.members.partition_point(|it| it.0 <= finish);
                        twin.members.insert(at, (finish, start, id));
                        twin.tree.insert(&mut twin.nodes, id, start, finish);
                    }
                }
                twin.check();
                let vtime = rng.below(30);
                let found = twin.tree.first_eligible(&twin.nodes, vtime);
                let eligible = |id| twin.members.iter().any(|it| it.2 == id && it.1 <= vtime);
                assert!(found.is_none_or(eligible));
                assert_eq!(found.is_none(), twin.members.iter().all(|it| it.1 > vtime));
            }
        }
    }
}
