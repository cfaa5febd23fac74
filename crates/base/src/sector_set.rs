//! A set of handles ordered by position on the disk.
//!
//! This is what the kernel's schedulers keep one of for each direction: requests sorted by their
//! start sector, to sweep the disk and to find neighbours. Handles with the same start sector
//! stand in order of arrival, never in order of their numbers. The set remembers where it put each
//! handle, so it is found again by the handle alone.
//!
//! It is a sorted array cut into chunks: an insertion moves at most one chunk's entries, chunks are
//! found by bisection, and those that run empty are kept for later, so that a set in a steady state
//! allocates nothing. It remembers where a member last left: whoever sweeps the disk goes on there
//! and finds the next member without a search. It says nothing about where requests end or whether
//! they overlap.

use alloc::vec::Vec;

use crate::arena::{Id, Side};
use crate::sector::Sector;

/// Entries that fit into a chunk (measured: 32 to 128 differ little, 256 is slower).
const CHUNK: usize = 64;

/// Handles in order of start sector, then of arrival.
pub struct SectorSet<T> {
    /// Sorted, none empty.
    chunks: Vec<Chunk<T>>,
    /// Empty chunks, to be used again.
    spare: Vec<Chunk<T>>,
    keys: Side<T, Key>,
    /// Where a member last left, and its start sector. A guess: it is checked whenever it is used.
    cursor: Place,
    left_at: Sector,
    /// Serial number of the next arrival.
    arrival: u64,
    len: usize,
}

// Derived, these would ask the same of `T`. Besides, what only saves allocations later is not worth
// copying: schedulers are copied to try something out.
impl<T> Clone for SectorSet<T> {
    fn clone(&self) -> Self {
        let SectorSet { cursor, left_at, arrival, len, .. } = *self;
        let keys = if len == 0 { Side::new() } else { self.keys.clone() };
        let chunks = self.chunks.clone();
        SectorSet { chunks, spare: Vec::new(), keys, cursor, left_at, arrival, len }
    }
}
impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Entry<T> {}
impl<T> Clone for Chunk<T> {
    fn clone(&self) -> Self {
        Chunk { last: self.last, entries: self.entries.clone() }
    }
}

struct Chunk<T> {
    /// Start sector of the last entry; here because bisection over chunks reads nothing else.
    last: Sector,
    entries: Vec<Entry<T>>,
}

struct Entry<T> {
    sector: Sector,
    id: Id<T>,
}

/// What the set is ordered by; no two members have the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    sector: Sector,
    arrival: u64,
}

/// Where an entry is.
#[derive(Clone, Copy, Default)]
struct Place {
    chunk: usize,
    entry: usize,
}

impl<T> Default for SectorSet<T> {
    fn default() -> Self {
        SectorSet {
            chunks: Vec::new(),
            spare: Vec::new(),
            keys: Side::new(),
            cursor: Place::default(),
            left_at: Sector(0),
            arrival: 0,
            len: 0,
        }
    }
}

impl<T> SectorSet<T> {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `id` behind all members that start at or before `sector`. Panics when it is a member.
    #[track_caller]
    pub fn insert(&mut self, sector: Sector, id: Id<T>) {
        self.insert_at(sector, id);
    }

    /// Adds `id` like [`SectorSet::insert`], and says which members stand before and behind it: one
    /// search for all three. Panics when it is a member.
    #[track_caller]
    pub fn insert_between(&mut self, sector: Sector, id: Id<T>) -> (Option<Id<T>>, Option<Id<T>>) {
        let place = self.insert_at(sector, id);
        (self.member_before(place), self.member_behind(place))
    }

    #[track_caller]
    fn insert_at(&mut self, sector: Sector, id: Id<T>) -> Place {
        if self.contains(id) {
            already_in_the_set(id);
        }
        self.keys.set(id, Key { sector, arrival: self.arrival });
        self.arrival += 1;
        self.len += 1;
        let place = self.place_for_new(sector);
        let chunk = &mut self.chunks[place.chunk];
        chunk.last = chunk.last.max(sector);
        chunk.entries.insert(place.entry, Entry { sector, id });
        let before_cursor = (place.chunk == self.cursor.chunk) & (sector < self.left_at);
        self.cursor.entry += usize::from(before_cursor);
        place
    }

    /// Takes `id` out. Panics when it is no member.
    #[track_caller]
    pub fn remove(&mut self, id: Id<T>) {
        let place = self.place_of(id);
        self.keys.take(id);
        self.len -= 1;
        let chunk = &mut self.chunks[place.chunk];
        self.left_at = chunk.entries.remove(place.entry).sector;
        let Some(last) = chunk.entries.last() else {
            let empty = self.chunks.remove(place.chunk);
            self.spare.push(empty);
            self.cursor = place;
            return;
        };
        chunk.last = last.sector;
        // Whether the last entry left is anybody's guess in a short set: no branch.
        let was_last = place.entry == chunk.entries.len();
        self.cursor = Place {
            chunk: place.chunk + usize::from(was_last),
            entry: if was_last { 0 } else { place.entry },
        };
    }

    /// Takes `id` out, and says which members stood before and behind it: one search for all three.
    /// Panics when it is no member.
    #[track_caller]
    pub fn remove_between(&mut self, id: Id<T>) -> (Option<Id<T>>, Option<Id<T>>) {
        self.remove(id);
        (self.member_before(self.cursor), self.entry_at_cursor().map(|entry| entry.id))
    }

    /// Whether `id` is a member.
    pub fn contains(&self, id: Id<T>) -> bool {
        self.keys.get(id).is_some()
    }

    /// The start sector with which `id` was added. Panics when it is no member.
    #[track_caller]
    pub fn sector_of(&self, id: Id<T>) -> Sector {
        self.key_of(id).sector
    }

    /// The member with the lowest start sector; among equals the first to arrive.
    pub fn first(&self) -> Option<Id<T>> {
        self.chunks.first()?.entries.first().map(|entry| entry.id)
    }

    /// The member with the highest start sector; among equals the last to arrive.
    pub fn last(&self) -> Option<Id<T>> {
        self.chunks.last()?.entries.last().map(|entry| entry.id)
    }

    /// The first member in order that starts at `sector` or after it.
    pub fn at_or_after(&self, sector: Sector) -> Option<Id<T>> {
        if let Some(entry) = self.entry_at_cursor()
            && entry.sector >= sector
            && self.sector_before_cursor().is_none_or(|before| before < sector)
        {
            return Some(entry.id);
        }
        self.entry_at_or_after(sector).map(|entry| entry.id)
    }

    /// The member that starts at exactly `sector`; among several the first to arrive.
    pub fn find(&self, sector: Sector) -> Option<Id<T>> {
        self.entry_at_or_after(sector).filter(|entry| entry.sector == sector).map(|entry| entry.id)
    }

    /// All members that start at exactly `sector`, in order of arrival.
    pub fn all_at(&self, sector: Sector) -> impl Iterator<Item = Id<T>> {
        let Place { chunk, entry } = self.lower_bound(sector);
        let rest = self.chunks.iter().skip(chunk).flat_map(|chunk| &chunk.entries).skip(entry);
        rest.take_while(move |entry| entry.sector == sector).map(|entry| entry.id)
    }

    /// The member behind `id`, if there is one. Panics when `id` is no member.
    #[track_caller]
    pub fn next(&self, id: Id<T>) -> Option<Id<T>> {
        self.member_behind(self.place_of(id))
    }

    /// The member before `id`, if there is one. Panics when `id` is no member.
    #[track_caller]
    pub fn previous(&self, id: Id<T>) -> Option<Id<T>> {
        self.member_before(self.place_of(id))
    }

    /// The member before a place, where there is one or not.
    fn member_before(&self, place: Place) -> Option<Id<T>> {
        match place {
            Place { chunk: 0, entry: 0 } => None,
            Place { chunk, entry: 0 } => self.chunks[chunk - 1].entries.last().map(|last| last.id),
            Place { chunk, entry } => Some(self.chunks[chunk].entries[entry - 1].id),
        }
    }

    /// The member behind the one at a place.
    fn member_behind(&self, Place { chunk, entry }: Place) -> Option<Id<T>> {
        match self.chunks[chunk].entries.get(entry + 1) {
            Some(next) => Some(next.id),
            None => self.chunks.get(chunk + 1)?.entries.first().map(|next| next.id),
        }
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All members in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Id<T>> {
        self.chunks.iter().flat_map(|chunk| &chunk.entries).map(|entry| entry.id)
    }

    #[track_caller]
    fn key_of(&self, id: Id<T>) -> Key {
        match self.keys.get(id) {
            Some(key) => *key,
            None => not_in_the_set(id),
        }
    }

    fn entry_at_cursor(&self) -> Option<&Entry<T>> {
        self.chunks.get(self.cursor.chunk)?.entries.get(self.cursor.entry)
    }

    /// Start sector of the member before the cursor, which is at a member.
    fn sector_before_cursor(&self) -> Option<Sector> {
        match self.cursor {
            Place { chunk: 0, entry: 0 } => None,
            Place { chunk, entry: 0 } => Some(self.chunks[chunk - 1].last),
            Place { chunk, entry } => Some(self.chunks[chunk].entries[entry - 1].sector),
        }
    }

    fn entry_at_or_after(&self, sector: Sector) -> Option<&Entry<T>> {
        let Place { chunk, entry } = self.lower_bound(sector);
        self.chunks.get(chunk).map(|chunk| &chunk.entries[entry])
    }

    /// The first place with this start sector or a higher one; beyond the last chunk if none has.
    fn lower_bound(&self, sector: Sector) -> Place {
        let chunk = self.chunks.partition_point(|chunk| chunk.last < sector);
        let entry = match self.chunks.get(chunk) {
            Some(chunk) => chunk.entries.partition_point(|entry| entry.sector < sector),
            None => 0,
        };
        Place { chunk, entry }
    }

    #[track_caller]
    fn place_of(&self, id: Id<T>) -> Place {
        if self.entry_at_cursor().is_some_and(|entry| entry.id == id) {
            return self.cursor;
        }
        let key = self.key_of(id);
        let place = self.lower_bound(key.sector);
        if self.chunks[place.chunk].entries[place.entry].id == id {
            return place;
        }
        self.place_among_equals(key)
    }

    /// Where the member with this key is; needed when others with its start sector arrived before.
    #[cold]
    fn place_among_equals(&self, key: Key) -> Place {
        let before = |entry: &Entry<T>| self.keys[entry.id] < key;
        let chunk = self.chunks.partition_point(|chunk| chunk.entries.last().is_some_and(before));
        Place { chunk, entry: self.chunks[chunk].entries.partition_point(before) }
    }

    /// Where a new member with this start sector belongs, in a chunk that has room for it.
    fn place_for_new(&mut self, sector: Sector) -> Place {
        let chunk = self.chunks.partition_point(|chunk| chunk.last <= sector);
        // What is behind everything belongs to the last chunk.
        let mut chunk = chunk.min(self.chunks.len().saturating_sub(1));
        if self.chunks.get(chunk).is_none_or(|chunk| chunk.entries.len() == CHUNK) {
            chunk = self.make_room(chunk, sector);
        }
        let entry = self.chunks[chunk].entries.partition_point(|entry| entry.sector <= sector);
        Place { chunk, entry }
    }

    /// A chunk for a new member with this start sector, for which there is none, or a full one.
    #[cold]
    fn make_room(&mut self, full: usize, sector: Sector) -> usize {
        if self.chunks.get(full).is_none_or(|chunk| chunk.last <= sector) {
            // Behind everything, as sequential loads are: append, and leave full chunks full.
            let empty = self.empty_chunk(sector);
            self.chunks.push(empty);
            return self.chunks.len() - 1;
        }
        self.split(full);
        full + usize::from(self.chunks[full].last <= sector)
    }

    /// Moves the upper half of a chunk into a chunk of its own.
    #[cold]
    fn split(&mut self, chunk: usize) {
        let mut upper = self.empty_chunk(self.chunks[chunk].last);
        let lower = &mut self.chunks[chunk];
        upper.entries.extend(lower.entries.drain(CHUNK / 2..));
        lower.last = lower.entries[CHUNK / 2 - 1].sector;
        self.chunks.insert(chunk + 1, upper);
    }

    fn empty_chunk(&mut self, last: Sector) -> Chunk<T> {
        let entries = self.spare.pop().map_or(Vec::new(), |chunk| chunk.entries);
        Chunk { last, entries }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn already_in_the_set<T>(id: Id<T>) -> ! {
    panic!("{id:?} is already in the set")
}

#[cold]
#[inline(never)]
#[track_caller]
fn not_in_the_set<T>(id: Id<T>) -> ! {
    panic!("{id:?} is not in the set")
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::arena::Arena;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    #[test]
    fn members_at_the_same_sector_stand_in_order_of_arrival() {
        let mut arena = Arena::new();
        let mut set = SectorSet::new();
        let old = arena.insert(());
        let (first, second) = (arena.insert(()), arena.insert(()));
        arena.remove(old);
        let third = arena.insert(());
        assert_eq!(third.index(), 0);
        for id in [first, second, third] {
            set.insert(Sector(8), id);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [first, second, third]);
        assert_eq!(set.find(Sector(8)), Some(first));
        set.remove(first);
        set.insert(Sector(8), first);
        assert_eq!(set.last(), Some(first));
    }

    #[test]
    #[should_panic(expected = "is not in the set")]
    fn what_is_absent_cannot_be_removed() {
        let mut arena = Arena::new();
        let mut set = SectorSet::new();
        let id = arena.insert(());
        set.insert(Sector(1), id);
        set.remove(id);
        set.remove(id);
    }

    #[test]
    #[should_panic(expected = "is already in the set")]
    fn nothing_is_in_the_set_twice() {
        let mut arena = Arena::new();
        let mut set = SectorSet::new();
        let id = arena.insert(());
        set.insert(Sector(1), id);
        set.insert(Sector(2), id);
    }

    /// What stands before and behind a place.
    type Between = (Option<Id<usize>>, Option<Id<usize>>);

    /// The obvious way to do it, with the same operations.
    #[derive(Default)]
    struct Twin {
        map: BTreeMap<(Sector, usize), Id<usize>>,
        keys: BTreeMap<Id<usize>, (Sector, usize)>,
    }

    impl Twin {
        /// What stands before and behind it.
        fn insert(&mut self, sector: Sector, arrival: usize, id: Id<usize>) -> Between {
            self.map.insert((sector, arrival), id);
            self.keys.insert(id, (sector, arrival));
            self.around((sector, arrival))
        }

        fn around(&self, key: (Sector, usize)) -> Between {
            let before = self.map.range(..key).next_back();
            let mut behind = self.map.range(key..).filter(|(other, _)| **other != key);
            (before.map(|(_, id)| *id), behind.next().map(|(_, id)| *id))
        }

        /// What stood before and behind it.
        fn remove(&mut self, id: Id<usize>) -> Between {
            let key = self.keys.remove(&id).unwrap();
            self.map.remove(&key);
            self.around(key)
        }

        fn assert_same(&self, set: &SectorSet<usize>, probe: Sector) {
            let order: Vec<_> = self.map.values().copied().collect();
            assert_eq!(set.iter().collect::<Vec<_>>(), order);
            assert_eq!((set.len(), set.is_empty()), (order.len(), order.is_empty()));
            assert_eq!(set.first(), order.first().copied());
            assert_eq!(set.last(), order.last().copied());
            for (place, (id, key)) in order.iter().zip(self.map.keys()).enumerate() {
                assert_eq!(set.next(*id), order.get(place + 1).copied());
                assert_eq!(set.previous(*id), place.checked_sub(1).map(|before| order[before]));
                assert_eq!(set.sector_of(*id), key.0);
            }
            let after = self.map.range((probe, 0)..).next();
            assert_eq!(set.at_or_after(probe), after.map(|(_, id)| *id));
            let exact = after.filter(|(key, _)| key.0 == probe);
            assert_eq!(set.find(probe), exact.map(|(_, id)| *id));
            let all = self.map.range((probe, 0)..(Sector(probe.0 + 1), 0));
            assert!(set.all_at(probe).eq(all.map(|(_, id)| *id)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn behaves_like_a_sorted_map(
            sectors in 1u64..500,
            growing in 0u64..120,
            ops in prop::collection::vec((0u64..180, any::<prop::sample::Index>()), 0..500)
        ) {
            let mut arena = Arena::new();
            let (mut set, mut twin) = (SectorSet::new(), Twin::default());
            let mut members = Vec::new();
            for (arrival, (op, which)) in ops.into_iter().enumerate() {
                let sector = Sector(which.index(sectors as usize) as u64);
                if members.is_empty() || op < 60 + growing {
                    let id = arena.insert(arrival);
                    let between = set.insert_between(sector, id);
                    prop_assert_eq!(between, twin.insert(sector, arrival, id));
                    members.push(id);
                } else {
                    let id = members.swap_remove(which.index(members.len()));
                    prop_assert_eq!(set.remove_between(id), twin.remove(id));
                    arena.remove(id);
                }
                if arrival % 16 == 0 {
                    twin.assert_same(&set, sector);
                }
            }
            twin.assert_same(&set, Sector(sectors / 2));
        }

        #[test]
        fn no_chunk_is_empty_or_overfull(rising: bool, count in 0u64..1_000) {
            let mut arena = Arena::new();
            let mut set = SectorSet::new();
            let ids: Vec<_> = (0..count).map(|n| {
                let id = arena.insert(());
                set.insert(Sector(if rising { n } else { count - n }), id);
                id
            }).collect();
            prop_assert!(set.chunks.iter().all(|chunk| (1..=CHUNK).contains(&chunk.entries.len())));
            ids.into_iter().for_each(|id| set.remove(id));
            prop_assert!(set.chunks.is_empty() && set.is_empty());
        }
    }
}
