//! Doubly linked lists of handles with removal from the middle in constant time.
//!
//! The links live in a [`Links`] table beside the objects; a [`List`] is only head, tail and
//! length. One table can serve many lists as long as an object is in at most one of them at a time
//! (FIFOs of one scheduler, for example). Links check generations, so a stale handle is a panic.

use crate::arena::{Id, Side};

struct Link<T> {
    previous: Option<Id<T>>,
    next: Option<Id<T>>,
}

// Derived, these would ask the same of `T`.
impl<T> Clone for Link<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Link<T> {}

impl<T> Clone for Links<T> {
    fn clone(&self) -> Self {
        Links(self.0.clone())
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        List { head: self.head, tail: self.tail, len: self.len }
    }
}

/// The links of all lists that share one kind of membership.
pub struct Links<T>(Side<T, Link<T>>);

impl<T> Default for Links<T> {
    fn default() -> Self {
        Links(Side::new())
    }
}

impl<T> Links<T> {
    /// A table in which nothing is linked.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the object is in a list of this table.
    pub fn contains(&self, id: Id<T>) -> bool {
        self.0.get(id).is_some()
    }

    /// The member after `id` in its list.
    pub fn next(&self, id: Id<T>) -> Option<Id<T>> {
        self.0[id].next
    }

    /// The member before `id` in its list.
    pub fn previous(&self, id: Id<T>) -> Option<Id<T>> {
        self.0[id].previous
    }
}

/// A list of handles; its links are in a [`Links`] table that is passed to every operation.
pub struct List<T> {
    head: Option<Id<T>>,
    tail: Option<Id<T>>,
    len: u32,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        List { head: None, tail: None, len: 0 }
    }
}

impl<T> List<T> {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// The first member.
    pub fn head(&self) -> Option<Id<T>> {
        self.head
    }

    /// The last member.
    pub fn tail(&self) -> Option<Id<T>> {
        self.tail
    }

    /// Number of members.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds `id` as the last member.
    #[track_caller]
    pub fn push_back(&mut self, links: &mut Links<T>, id: Id<T>) {
        self.insert_between(links, self.tail, id, None);
    }

    /// Adds `id` as the first member.
    #[track_caller]
    pub fn push_front(&mut self, links: &mut Links<T>, id: Id<T>) {
        self.insert_between(links, None, id, self.head);
    }

    /// Adds `id` directly behind `after`, or first when `after` is `None`.
    #[track_caller]
    pub fn insert_after(&mut self, links: &mut Links<T>, after: Option<Id<T>>, id: Id<T>) {
        let next = match after {
            Some(after) => links.next(after),
            None => self.head,
        };
        self.insert_between(links, after, id, next);
    }

    /// Adds `id` directly before `before`.
    #[track_caller]
    pub fn insert_before(&mut self, links: &mut Links<T>, before: Id<T>, id: Id<T>) {
        let previous = links.previous(before);
        self.insert_between(links, previous, id, Some(before));
    }

    /// Removes `id` from wherever in the list it stands.
    #[track_caller]
    pub fn remove(&mut self, links: &mut Links<T>, id: Id<T>) {
        let Some(link) = links.0.take(id) else { in_no_list(id) };
        match link.previous {
            Some(previous) => links.0[previous].next = link.next,
            None => self.head = link.next,
        }
        match link.next {
            Some(next) => links.0[next].previous = link.previous,
            None => self.tail = link.previous,
        }
        self.len -= 1;
    }

    /// Removes and returns the first member.
    pub fn pop_front(&mut self, links: &mut Links<T>) -> Option<Id<T>> {
        let id = self.head?;
        self.remove(links, id);
        Some(id)
    }

    /// The members from first to last.
    pub fn iter<'a>(&self, links: &'a Links<T>) -> impl Iterator<Item = Id<T>> + use<'a, T> {
        core::iter::successors(self.head, |id| links.next(*id))
    }

    /// The members from last to first.
    pub fn iter_rev<'a>(&self, links: &'a Links<T>) -> impl Iterator<Item = Id<T>> + use<'a, T> {
        core::iter::successors(self.tail, |id| links.previous(*id))
    }

    #[inline]
    #[track_caller]
    fn insert_between(
        &mut self,
        links: &mut Links<T>,
        previous: Option<Id<T>>,
        id: Id<T>,
        next: Option<Id<T>>,
    ) {
        if links.contains(id) {
            already_in_a_list(id);
        }
        links.0.set(id, Link { previous, next });
        match previous {
            Some(previous) => links.0[previous].next = Some(id),
            None => self.head = Some(id),
        }
        match next {
            Some(next) => links.0[next].previous = Some(id),
            None => self.tail = Some(id),
        }
        self.len += 1;
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn in_no_list<T>(id: Id<T>) -> ! {
    panic!("{id:?} is in no list")
}

#[cold]
#[inline(never)]
#[track_caller]
fn already_in_a_list<T>(id: Id<T>) -> ! {
    panic!("{id:?} is already in a list")
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::arena::Arena;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn behaves_like_a_deque(
            ops in prop::collection::vec((0u8..5, any::<prop::sample::Index>()), 0..200),
        ) {
            let mut arena = Arena::new();
            let (mut list, mut links) = (List::new(), Links::new());
            let mut twin: VecDeque<Id<u32>> = VecDeque::new();
            for (serial, (op, at)) in ops.into_iter().enumerate() {
                let id = arena.insert(serial as u32);
                match op {
                    0 => { list.push_back(&mut links, id); twin.push_back(id); }
                    1 => { list.push_front(&mut links, id); twin.push_front(id); }
                    2 => { prop_assert_eq!(list.pop_front(&mut links), twin.pop_front()); }
                    3 if !twin.is_empty() => {
                        let victim = twin.remove(at.index(twin.len())).unwrap();
                        list.remove(&mut links, victim);
                        arena.remove(victim);
                    }
                    4 if !twin.is_empty() => {
                        let place = at.index(twin.len());
                        list.insert_after(&mut links, Some(twin[place]), id);
                        twin.insert(place + 1, id);
                    }
                    _ => { list.insert_after(&mut links, None, id); twin.push_front(id); }
                }
                prop_assert_eq!(list.len() as usize, twin.len());
                prop_assert_eq!(list.iter(&links).collect::<VecDeque<_>>(), twin.clone());
                let back: Vec<_> = list.iter_rev(&links).collect();
                prop_assert_eq!(back, twin.iter().rev().copied().collect::<Vec<_>>());
            }
        }
    }
}
