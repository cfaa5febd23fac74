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
    heap: Vec<Node>,
    /// Whoever takes one out leaves nothing behind.
    items: Arena<Option<T>>,
    /// Where in the heap the node of each item stands, by slot of the item.
    positions: Vec<usize>,
    /// Serial number of the next thing to be scheduled.
    serial: u64,
}

/// A claim to one scheduled thing, with which it can be cancelled.
///
/// It stays harmless once the thing has happened: a ticket is never valid for another thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

#[derive(Clone, Copy)]
struct Node {
    at: Instant,
    serial: u64,
    ticket: Ticket,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda { heap: Vec::new(), items: Arena::new(), positions: Vec::new(), serial: 0 }
    }
}

impl<T> Agenda<T> {
    /// An empty agenda.
    pub fn new() -> Self {
        Self::default()
    }

    /// Schedules `item` for the instant `at`, behind everything already scheduled for it.
    pub fn schedule(&mut self, at: Instant, item: T) -> Ticket {
        let id = self.items.insert(Some(item));
        if id.index() == self.positions.len() {
            self.positions.push(0);
        }
        let node = Node { at, serial: self.serial, ticket: Ticket(id.to_bits()) };
        self.serial += 1;
        self.heap.push(node);
        self.rise(self.heap.len() - 1, node);
        node.ticket
    }

    /// When the next thing happens.
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.first().map(|node| node.at)
    }

    /// Takes out the earliest thing if it is due: scheduled for `now` or before.
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, T)> {
        let node = *self.heap.first()?;
        if node.at > now {
            return None;
        }
        Some((node.at, self.take(0, node.ticket.id())))
    }

    /// Takes out the thing with this ticket; `None` when it has happened or was cancelled before.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<T> {
        let id = ticket.id();
        self.items.get(id)?;
        Some(self.take(self.positions[id.index()], id))
    }

    /// Number of scheduled things.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is scheduled.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn take(&mut self, position: usize, id: Id<Option<T>>) -> T {
        if let Some(last) = self.heap.pop().filter(|_| position < self.heap.len()) {
            // The last node fills the gap. It most likely belongs near the leaves, so the gap is
            // first brought down there without a look at it.
            let gap = self.sink_gap(position);
            self.rise(gap, last);
        }
        self.items.remove(id).take().expect("what is scheduled is there")
    }

    /// Moves the gap at `position` down to a leaf and returns where it is then.
    fn sink_gap(&mut self, mut position: usize) -> usize {
        while let Some(child) = self.earliest_child(position) {
            self.put(position, self.heap[child]);
            position = child;
        }
        position
    }

    /// Puts `node` into the gap at `position` or above it, wherever its parent is not after it.
    fn rise(&mut self, mut position: usize, node: Node) {
        while position > 0 {
            let parent = (position - 1) / CHILDREN;
            if self.heap[parent].key() < node.key() {
                break;
            }
            self.put(position, self.heap[parent]);
            position = parent;
        }
        self.put(position, node);
    }

    fn put(&mut self, position: usize, node: Node) {
        self.heap[position] = node;
        self.positions[node.ticket.id::<Option<T>>().index()] = position;
    }

    fn earliest_child(&self, position: usize) -> Option<usize> {
        const { assert!(CHILDREN == 4, "two pairs are compared") };
        let first = position * CHILDREN + 1;
        let rest = self.heap.get(first..)?;
        let earlier = |one: usize, other: usize| match rest[other].key() < rest[one].key() {
            true => other,
            false => one,
        };
        // Two pairs do not wait for each other, as one child after another would.
        let place = match rest.len() {
            0 => return None,
            1..CHILDREN => (1..rest.len()).fold(0, earlier),
            _ => earlier(earlier(0, 1), earlier(2, 3)),
        };
        Some(first + place)
    }
}

impl Ticket {
    fn id<T>(self) -> Id<T> {
        Id::from_bits(self.0)
    }
}

impl Node {
    /// Order of happening, as one number; no two nodes have the same.
    fn key(&self) -> u128 {
        u128::from(self.at.as_nanos()) << 64 | u128::from(self.serial)
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
