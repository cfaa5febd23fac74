//! A search tree whose shape is visible, of queues by the sector at which each goes on.
//!
//! The kernel looks for the queue that goes on closest to a sector in a red-black tree, and which
//! of two neighbours it finds depends on where its search ends, that is on the tree's shape. What
//! orders the members is given anew with every search: they may have moved since they were put in.
//! A value stands beside each, for what a search wants to know of it.

use alloc::vec::Vec;
use base::{Id, TreeShape};
use core::cmp::Ordering;

/// The tree.
pub(crate) struct SectorTree<T, V> {
    shape: TreeShape<T>,
    /// By number.
    members: Vec<Option<(Id<T>, V)>>,
}

/// Where a search ended.
pub(crate) enum Found<T> {
    /// At what was looked for.
    At(Id<T>),
    /// In a gap.
    In(Gap<T>),
}

/// Between two neighbours. One is missing at either end, and both in an empty tree.
pub(crate) struct Gap<T> {
    /// The one before it and the one behind it.
    around: [Option<Id<T>>; 2],
    /// Which of the two the search met last.
    last: usize,
}

// Derived, these would ask the same of `T`.
impl<T, V: Copy> Clone for SectorTree<T, V> {
    fn clone(&self) -> Self {
        SectorTree { shape: self.shape.clone(), members: self.members.clone() }
    }
}
impl<T, V> Default for SectorTree<T, V> {
    fn default() -> Self {
        SectorTree { shape: TreeShape::default(), members: Vec::new() }
    }
}

impl<T> Gap<T> {
    /// Both neighbours, the one that the search met last first.
    pub fn neighbours(&self) -> impl Iterator<Item = Id<T>> {
        [self.around[self.last], self.around[1 - self.last]].into_iter().flatten()
    }
}

impl<T, V: Copy> SectorTree<T, V> {
    /// Looks for something from the root down; `compare` tells how it stands to a member.
    pub fn search(&self, compare: impl Fn(Id<T>, V) -> Ordering) -> Found<T> {
        let mut gap = Gap { around: [None; 2], last: 0 };
        let mut at = self.shape.root();
        while let Some(number) = at {
            let (id, value) = self.member(number);
            let side = match compare(id, value) {
                Ordering::Equal => return Found::At(id),
                Ordering::Less => 0,
                Ordering::Greater => 1,
            };
            gap.last = 1 - side;
            gap.around[gap.last] = Some(id);
            at = self.shape.child(number, side);
        }
        Found::In(gap)
    }

    /// Whether nothing stands in it.
    pub fn is_empty(&self) -> bool {
        self.shape.root().is_none()
    }

    /// Puts `id`, which is no member, where a search has ended.
    pub fn insert(&mut self, id: Id<T>, value: V, gap: &Gap<T>) {
        if self.members.len() <= id.index() {
            self.members.resize(id.index() + 1, None);
        }
        self.members[id.index()] = Some((id, value));
        let [before, behind] = gap.around;
        self.shape.insert(id, before, behind);
    }

    /// Takes a member out.
    pub fn remove(&mut self, id: Id<T>) {
        self.shape.remove(id);
        self.members[id.index()] = None;
    }

    /// What stands beside a member.
    pub fn value(&self, id: Id<T>) -> V {
        self.member(id.index()).1
    }

    /// Something else stands beside a member now; it stays where it is.
    pub fn set_value(&mut self, id: Id<T>, value: V) {
        self.members[id.index()] = Some((id, value));
    }

    fn member(&self, number: usize) -> (Id<T>, V) {
        self.members[number].expect("a member of the tree")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use base::{Arena, Rng};

    type Tree = SectorTree<(), u64>;

    fn of(count: usize) -> Vec<Id<()>> {
        let mut arena = Arena::new();
        (0..count).map(|_| arena.insert(())).collect()
    }

    fn search(tree: &Tree, sector: u64) -> Found<()> {
        tree.search(|_, other| sector.cmp(&other))
    }

    fn put(tree: &mut Tree, id: Id<()>, sector: u64) {
        match search(tree, sector) {
            Found::In(gap) => tree.insert(id, sector, &gap),
            Found::At(_) => panic!("something stands there already"),
        }
    }

    #[test]
    fn a_search_finds_a_member_or_its_neighbours_whatever_comes_and_goes() {
        let ids = of(64);
        let mut tree = Tree::default();
        let mut is_in = [false; 64];
        let mut rng = Rng::stream(5, "sector tree");
        for _ in 0..4_000 {
            let number = rng.below(64) as usize;
            match is_in[number] {
                true => tree.remove(ids[number]),
                false => put(&mut tree, ids[number], number as u64),
            }
            is_in[number] = !is_in[number];
            assert_eq!(tree.is_empty(), is_in == [false; 64]);
            let wanted = rng.below(64) as usize;
            match search(&tree, wanted as u64) {
                Found::At(id) => assert!(id == ids[wanted] && is_in[wanted]),
                Found::In(gap) => {
                    let before = (0..wanted).rev().find(|number| is_in[*number]);
                    let behind = (wanted..64).find(|number| is_in[*number]);
                    assert_eq!(gap.around, [before, behind].map(|it| it.map(|it| ids[it])));
                    assert!(tree.is_empty() || gap.around[gap.last].is_some());
                }
            }
        }
    }

    #[test]
    fn where_a_search_ends_depends_on_the_shape() {
        let ids = of(2);
        for (first, second) in [(0, 1), (1, 0)] {
            let mut tree = Tree::default();
            for number in [first, second] {
                put(&mut tree, ids[number], 10 + 20 * number as u64);
            }
            let Found::In(gap) = search(&tree, 20) else { panic!("nothing stands there") };
            let met: Vec<Id<()>> = gap.neighbours().collect();
            assert_eq!(met, [ids[second], ids[first]], "the search ends at the leaf");
        }
    }

    #[test]
    fn a_member_that_moved_is_found_where_it_is_now() {
        let ids = of(3);
        let mut tree = Tree::default();
        (0..3).for_each(|number| put(&mut tree, ids[number], 10 * number as u64));
        tree.set_value(ids[1], 15);
        assert_eq!(tree.value(ids[1]), 15);
        assert!(matches!(search(&tree, 15), Found::At(id) if id == ids[1]));
        let Found::In(gap) = search(&tree, 10) else { panic!("it has left") };
        assert_eq!(gap.around, [Some(ids[0]), Some(ids[1])]);
    }
}
