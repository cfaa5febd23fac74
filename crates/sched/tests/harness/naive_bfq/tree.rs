//! A red-black tree as textbooks have it (Cormen and others, chapter 13), with members by number.
//! Which eligible one BFQ's walk returns depends on the shape, so the twin needs one too. The
//! earliest start below a node is looked for anew each time.

use super::is_after;
use std::collections::BTreeMap;

#[derive(Clone, Copy)]
struct Node {
    parent: Option<usize>,
    children: [Option<usize>; 2],
    red: bool,
    start: u64,
    finish: u64,
}

/// A tree ordered by finish, equal ones to the right.
#[derive(Clone, Default)]
pub(super) struct Tree {
    root: Option<usize>,
    nodes: BTreeMap<usize, Node>,
}

impl Tree {
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn contains(&self, id: usize) -> bool {
        self.nodes.contains_key(&id)
    }

    pub fn min_start(&self) -> Option<u64> {
        self.root.map(|root| self.least(root))
    }

    fn least(&self, id: usize) -> u64 {
        let node = &self.nodes[&id];
        let below = node.children.into_iter().flatten().map(|child| self.least(child));
        below.fold(node.start, |one, other| if is_after(one, other) { other } else { one })
    }

    /// Quirk 5.20-16.
    pub fn walk(&self, vtime: u64) -> Option<usize> {
        let (mut at, mut seen) = (self.root?, None);
        loop {
            let node = &self.nodes[&at];
            if !is_after(node.start, vtime) {
                seen = Some(at);
            }
            let left = node.children[0].filter(|left| !is_after(self.least(*left), vtime));
            at = match (left, seen) {
                (Some(left), _) => left,
                (None, Some(_)) => return seen,
                (None, None) => node.children[1]?,
            };
        }
    }

    pub fn insert(&mut self, id: usize, start: u64, finish: u64) {
        let (mut parent, mut side, mut at) = (None, 0, self.root);
        while let Some(here) = at {
            parent = at;
            side = usize::from(!is_after(self.nodes[&here].finish, finish));
            at = self.nodes[&here].children[side];
        }
        self.nodes.insert(id, Node { parent, children: [None; 2], red: true, start, finish });
        self.hang(parent, side, Some(id));
        let mut z = id;
        while let Some(p) = self.parent(z).filter(|p| self.nodes[p].red) {
            let g = self.parent(p).expect("a red node is not the root");
            let s = self.side(g, p);
            let uncle = self.nodes[&g].children[1 - s];
            if self.is_red(uncle) {
                self.paint(Some(p), false);
                self.paint(uncle, false);
                self.paint(Some(g), true);
                z = g;
                continue;
            }
            if self.side(p, z) != s {
                z = p;
                self.rotate(z, s);
            }
            let p = self.parent(z).expect("it is red");
            self.paint(Some(p), false);
            self.paint(Some(g), true);
            self.rotate(g, 1 - s);
        }
        self.paint(self.root, false);
    }

    pub fn remove(&mut self, z: usize) {
        let node = self.nodes[&z];
        let (x, above, side, was_red) = match node.children {
            [Some(_), Some(right)] => {
                let mut y = right;
                while let Some(left) = self.nodes[&y].children[0] {
                    y = left;
                }
                let x = self.nodes[&y].children[1];
                let was_red = self.nodes[&y].red;
                let (mut above, mut side) = (y, 1);
                if y != right {
                    above = self.parent(y).expect("it is below another one");
                    side = 0;
                    self.hang(Some(above), 0, x);
                    self.hang(Some(y), 1, Some(right));
                }
                self.put_in_place(z, Some(y));
                let left = self.nodes[&z].children[0];
                self.hang(Some(y), 0, left);
                self.paint(Some(y), node.red);
                (x, Some(above), side, was_red)
            }
            [left, right] => {
                let x = left.or(right);
                let side = node.parent.map_or(0, |parent| self.side(parent, z));
                self.put_in_place(z, x);
                (x, node.parent, side, node.red)
            }
        };
        self.nodes.remove(&z);
        if !was_red {
            self.restore_black(x, above, side);
        }
    }

    /// The way down to `x`, on this side of `above`, lacks a black node.
    fn restore_black(&mut self, x: Option<usize>, above: Option<usize>, side: usize) {
        let (mut x, mut above, mut s) = (x, above, side);
        while let Some(p) = above.filter(|_| !self.is_red(x)) {
            let mut w = self.nodes[&p].children[1 - s].expect("there are black nodes");
            if self.nodes[&w].red {
                self.paint(Some(w), false);
                self.paint(Some(p), true);
                self.rotate(p, s);
                w = self.nodes[&p].children[1 - s].expect("there are black nodes");
            }
            let nephews = self.nodes[&w].children;
            if !self.is_red(nephews[0]) && !self.is_red(nephews[1]) {
                self.paint(Some(w), true);
                (x, above) = (Some(p), self.parent(p));
                s = above.map_or(0, |above| self.side(above, p));
                continue;
            }
            if !self.is_red(nephews[1 - s]) {
                self.paint(nephews[s], false);
                self.paint(Some(w), true);
                self.rotate(w, 1 - s);
                w = self.nodes[&p].children[1 - s].expect("a nephew");
            }
            self.paint(Some(w), self.nodes[&p].red);
            self.paint(Some(p), false);
            self.paint(self.nodes[&w].children[1 - s], false);
            self.rotate(p, s);
            (x, above) = (self.root, None);
        }
        self.paint(x, false);
    }

    fn parent(&self, id: usize) -> Option<usize> {
        self.nodes[&id].parent
    }

    fn side(&self, parent: usize, child: usize) -> usize {
        usize::from(self.nodes[&parent].children[0] != Some(child))
    }

    fn is_red(&self, id: Option<usize>) -> bool {
        id.is_some_and(|id| self.nodes[&id].red)
    }

    fn paint(&mut self, id: Option<usize>, red: bool) {
        if let Some(node) = id.and_then(|id| self.nodes.get_mut(&id)) {
            node.red = red;
        }
    }

    fn hang(&mut self, parent: Option<usize>, side: usize, child: Option<usize>) {
        match parent {
            Some(parent) => self.nodes.get_mut(&parent).expect("a node").children[side] = child,
            None => self.root = child,
        }
        if let Some(child) = child {
            self.nodes.get_mut(&child).expect("a node").parent = parent;
        }
    }

    fn put_in_place(&mut self, old: usize, new: Option<usize>) {
        let parent = self.parent(old);
        let side = parent.map_or(0, |parent| self.side(parent, old));
        self.hang(parent, side, new);
    }

    /// Towards a side: the child on the other one comes up.
    fn rotate(&mut self, id: usize, towards: usize) {
        let up = self.nodes[&id].children[1 - towards].expect("a child to come up");
        let inner = self.nodes[&up].children[towards];
        self.put_in_place(id, Some(up));
        self.hang(Some(id), 1 - towards, inner);
        self.hang(Some(up), towards, Some(id));
    }
}
