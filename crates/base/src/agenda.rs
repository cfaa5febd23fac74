//! A queue of future things in virtual time.
//!
//! Whatever will happen (a timer, a completion, a task that wakes up) is scheduled for an instant
//! and comes out in order of time; things scheduled for the same instant come out in the order in
//! which they were scheduled, so a run can be repeated exactly. A thing can be cancelled by its
//! [`Ticket`] in logarithmic time and leaves nothing behind. The memory of what came out is used
//! again: an agenda in a steady state allocates nothing. It has no clock: the caller says what
//! time it is.

use alloc::vec::Vec;

use crate::arena::{Arena, Id};
use crate::time::Instant;

/// Children of a node. Four make the heap half as deep as two, and the four of them lie close
/// together in memory.
const CHILDREN: usize = 4;

/// Things that will happen, earliest first.
pub struct Agenda<T> {
    /// A heap: no node is before its parent.
    heap: Vec<Node<T>>,
    items: Arena<Item<T>>,
    /// Serial number of the next thing to be scheduled.
    serial: u64,
}

/// A claim to one scheduled thing, with which it can be cancelled.
///
/// It stays harmless once the thing has happened: a ticket is never valid for another thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

struct Node<T> {
    at: Instant,
    serial: u64,
    id: Id<Item<T>>,
}

struct Item<T> {
    /// Where in the heap the node of this item stands.
    position: usize,
    value: T,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda { heap: Vec::new(), items: Arena::new(), serial: 0 }
    }
}

impl<T> Agenda<T> {
    /// An empty agenda.
    pub fn new() -> Self {
        Self::default()
    }

    /// Schedules `item` for the instant `at`, behind everything already scheduled for it.
    pub fn schedule(&mut self, at: Instant, item: T) -> Ticket {
        let position = self.heap.len();
        let id = self.items.insert(Item { position, value: item });
        self.heap.push(Node { at, serial: self.serial, id });
        self.serial += 1;
        self.sift_up(position);
        Ticket(id.to_bits())
    }

    /// When the next thing happens.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.first().map(|node| node.at)
    }

    /// Takes out the earliest thing if it is due: scheduled for `now` or before.
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, T)> {
        let at = self.next_at().filter(|at| *at <= now)?;
        Some((at, self.take(0)))
    }

    /// Takes out the thing with this ticket; `None` when it has happened or was cancelled before.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<T> {
        let position = self.items.get(Id::from_bits(ticket.0))?.position;
        Some(self.take(position))
    }

    /// Number of scheduled things.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is scheduled.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn take(&mut self, position: usize) -> T {
        let node = self.heap.swap_remove(position);
        if position < self.heap.len() {
            // The former last node came from another branch: it may be too early or too late here.
            let position = self.sift_up(position);
            self.sift_down(position);
        }
        self.items.remove(node.id).value
    }

    /// Moves the node at `position` towards the root as far as it must and returns where it is.
    fn sift_up(&mut self, mut position: usize) -> usize {
        while position > 0 {
            let parent = (position - 1) / CHILDREN;
            if self.heap[parent].key() <= self.heap[position].key() {
                break;
            }
            self.heap.swap(parent, position);
            self.items[self.heap[position].id].position = position;
            position = parent;
        }
        self.items[self.heap[position].id].position = position;
        position
    }

    /// Moves the node at `position` away from the root as far as it must.
    fn sift_down(&mut self, mut position: usize) {
        while let Some(child) = self.earliest_child(position) {
            if self.heap[position].key() <= self.heap[child].key() {
                break;
            }
            self.heap.swap(position, child);
            self.items[self.heap[position].id].position = position;
            position = child;
        }
        self.items[self.heap[position].id].position = position;
    }

    fn earliest_child(&self, position: usize) -> Option<usize> {
        let first = position * CHILDREN + 1;
        let end = (first + CHILDREN).min(self.heap.len());
        (first..end).min_by_key(|child| self.heap[*child].key())
    }
}

impl<T> Node<T> {
    /// Order of happening; no two nodes have the same.
    fn key(&self) -> (Instant, u64) {
        (self.at, self.serial)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn things_at_the_same_instant_happen_in_order_of_scheduling() {
        let mut agenda = Agenda::new();
        for name in ["a", "b", "c", "d", "e", "f"] {
            agenda.schedule(at(7), name);
        }
        agenda.schedule(at(6), "first");
        let order: Vec<_> =
            core::iter::from_fn(|| agenda.pop_due(at(7))).map(|(_, name)| name).collect();
        assert_eq!(order, ["first", "a", "b", "c", "d", "e", "f"]);
    }

    #[test]
    fn nothing_happens_before_its_time() {
        let mut agenda = Agenda::new();
        agenda.schedule(at(10), ());
        assert_eq!(agenda.pop_due(at(9)), None);
        assert_eq!(agenda.next_at(), Some(at(10)));
        assert_eq!(agenda.pop_due(at(11)), Some((at(10), ())));
        assert!(agenda.is_empty());
    }

    #[test]
    fn a_ticket_is_worth_nothing_once_the_thing_has_happened() {
        let mut agenda = Agenda::new();
        let first = agenda.schedule(at(1), "first");
        assert_eq!(agenda.pop_due(at(1)), Some((at(1), "first")));
        let second = agenda.schedule(at(2), "second");
        assert_eq!(agenda.cancel(first), None);
        assert_eq!(agenda.cancel(second), Some("second"));
        assert_eq!(agenda.cancel(second), None);
    }

    proptest! {
        #[test]
        fn behaves_like_a_sorted_map(
            ops in prop::collection::vec((0u8..6, 0u64..40, any::<prop::sample::Index>()), 0..300)
        ) {
            let mut agenda = Agenda::new();
            let mut twin: BTreeMap<(Instant, usize), usize> = BTreeMap::new();
            let mut tickets = Vec::new();
            for (serial, (op, when, which)) in ops.into_iter().enumerate() {
                match op {
                    0..3 => {
                        tickets.push((agenda.schedule(at(when), serial), (at(when), serial)));
                        twin.insert((at(when), serial), serial);
                    }
                    3 if !tickets.is_empty() => {
                        let (ticket, key) = tickets[which.index(tickets.len())];
                        prop_assert_eq!(agenda.cancel(ticket), twin.remove(&key));
                    }
                    _ => {
                        let due = twin.first_entry().filter(|entry| entry.key().0 <= at(when));
                        let due = due.map(|entry| entry.remove_entry());
                        let expected = due.map(|((at, _), item)| (at, item));
                        prop_assert_eq!(agenda.pop_due(at(when)), expected);
                    }
                }
                prop_assert_eq!(agenda.len(), twin.len());
                prop_assert_eq!(agenda.next_at(), twin.keys().next().map(|key| key.0));
            }
        }
    }
}
