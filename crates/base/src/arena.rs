//! An arena whose handles carry a generation, and side tables keyed by such handles.
//!
//! Requests, tasks and queues refer to each other by [`Id`] instead of by reference. A slot is
//! reused after removal, and then has another generation: a stale handle is a panic with a place,
//! never another object's data. Slots are reused last-freed-first, so an arena in a steady state
//! allocates nothing. A removed object stays where it is until then, out of everybody's reach: so
//! a look-up has one thing to compare, and nothing is moved.

use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::num::NonZeroU32;

/// A handle to an object of type `T` in an [`Arena`]: slot number plus generation.
pub struct Id<T> {
    index: u32,
    /// Never zero, so that an optional handle is no larger than a handle.
    generation: NonZeroU32,
    kind: PhantomData<fn() -> T>,
}

impl<T> Id<T> {
    /// The slot number; unique among living objects, reused after removal.
    pub const fn index(self) -> usize {
        self.index as usize
    }

    /// Slot and generation in one number, unique for ever (until 2^32 reuses of one slot).
    pub const fn to_bits(self) -> u64 {
        ((self.generation.get() - 1) as u64) << 32 | self.index as u64
    }

    /// The inverse of [`Id::to_bits`], for handles that were written down.
    pub const fn from_bits(bits: u64) -> Self {
        let generation = FIRST.saturating_add((bits >> 32) as u32);
        Id { index: bits as u32, generation, kind: PhantomData }
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Id<T> {}
impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Self) -> bool {
        // One comparison of both, and so one branch where it decides something.
        (self.index == other.index) & (self.generation == other.generation)
    }
}
impl<T> Eq for Id<T> {}
impl<T> PartialOrd for Id<T> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Id<T> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.to_bits().cmp(&other.to_bits())
    }
}
impl<T> Hash for Id<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_bits().hash(state);
    }
}
impl<T> fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation.get() - 1)
    }
}

/// The generation of a slot's first object.
const FIRST: NonZeroU32 = NonZeroU32::MIN;

#[derive(Clone)]
struct Slot<T> {
    /// The generation of the object that lives here, if one does.
    living: Option<NonZeroU32>,
    /// That of the last one that did.
    last: NonZeroU32,
    value: T,
}

/// Objects of one type, addressed by [`Id`].
#[derive(Clone)]
pub struct Arena<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Arena { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Arena<T> {
    /// An empty arena.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores `value` and returns its handle.
    // Nothing here takes the value's address, so that its parts are written where it will live. A
    // value that is put together elsewhere and copied is read in other widths than it was written
    // in, which stalls the processor; so it would if this were a call.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> Id<T> {
        let Some(index) = self.free.pop() else {
            let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 objects");
            self.slots.push(Slot { living: Some(FIRST), last: FIRST, value });
            return Id { index, generation: FIRST, kind: PhantomData };
        };
        let slot = &mut self.slots[index as usize];
        let generation = slot.last.checked_add(1).unwrap_or(FIRST);
        slot.living = Some(generation);
        slot.last = generation;
        slot.value = value;
        Id { index, generation, kind: PhantomData }
    }

    /// Removes the object, and lends what is left of it; panics when the handle is stale.
    #[inline]
    #[track_caller]
    pub fn remove(&mut self, id: Id<T>) -> &mut T {
        match self.slots.get_mut(id.index()) {
            Some(slot) if slot.living == Some(id.generation) => {
                slot.living = None;
                self.free.push(id.index);
                &mut slot.value
            }
            _ => stale(id),
        }
    }

    /// The object, or `None` when the handle is stale.
    pub fn get(&self, id: Id<T>) -> Option<&T> {
        let slot = self.slots.get(id.index())?;
        if slot.living == Some(id.generation) { Some(&slot.value) } else { None }
    }

    /// The object, to change, or `None` when the handle is stale.
    pub fn get_mut(&mut self, id: Id<T>) -> Option<&mut T> {
        let slot = self.slots.get_mut(id.index())?;
        if slot.living == Some(id.generation) { Some(&mut slot.value) } else { None }
    }

    /// Number of living objects.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether no object lives.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All living objects in slot order.
    pub fn iter(&self) -> impl Iterator<Item = (Id<T>, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let id = Id { index: index as u32, generation: slot.living?, kind: PhantomData };
            Some((id, &slot.value))
        })
    }
}

impl<T> core::ops::Index<Id<T>> for Arena<T> {
    type Output = T;
    #[track_caller]
    fn index(&self, id: Id<T>) -> &T {
        match self.get(id) {
            Some(value) => value,
            None => stale(id),
        }
    }
}

impl<T> core::ops::IndexMut<Id<T>> for Arena<T> {
    #[track_caller]
    fn index_mut(&mut self, id: Id<T>) -> &mut T {
        match self.get_mut(id) {
            Some(value) => value,
            None => stale(id),
        }
    }
}

// Panics have functions of their own: built where they can happen, their messages would be in the
// way of everything that goes well.

#[cold]
#[inline(never)]
#[track_caller]
fn stale<T>(id: Id<T>) -> ! {
    panic!("stale handle {id:?}")
}

#[cold]
#[inline(never)]
#[track_caller]
fn no_entry<T>(id: Id<T>) -> ! {
    panic!("no side entry for {id:?}")
}

/// Values of one's own beside the objects of somebody else's arena.
///
/// A scheduler keeps what it knows about a request here. An entry belongs to exactly the object
/// whose handle it was set with: once that object is gone and its slot reused, the entry reads as
/// absent and is overwritten by the next [`Side::set`].
pub struct Side<T, V> {
    entries: Vec<Entry<V>>,
    kind: PhantomData<fn() -> T>,
}

#[derive(Clone, Copy)]
struct Entry<V> {
    /// The generation of the object to which the value belongs, if it does to any.
    owner: Option<NonZeroU32>,
    value: V,
}

// Derived, it would ask the same of `T`.
impl<T, V: Clone> Clone for Side<T, V> {
    fn clone(&self) -> Self {
        Side { entries: self.entries.clone(), ..Side::default() }
    }
}

impl<T, V> Default for Side<T, V> {
    fn default() -> Self {
        Side { entries: Vec::new(), kind: PhantomData }
    }
}

impl<T, V: Copy> Side<T, V> {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores a value for `id`, replacing what was there.
    #[inline]
    pub fn set(&mut self, id: Id<T>, value: V) {
        // As in [`Arena::insert`], nothing takes the value's address.
        while self.entries.len() <= id.index() {
            self.entries.push(Entry { owner: None, value });
        }
        let entry = &mut self.entries[id.index()];
        entry.owner = Some(id.generation);
        entry.value = value;
    }

    /// The value stored for `id`, if any.
    pub fn get(&self, id: Id<T>) -> Option<&V> {
        let entry = self.entries.get(id.index())?;
        if entry.owner == Some(id.generation) { Some(&entry.value) } else { None }
    }

    /// The value stored for `id`, if any, to change.
    pub fn get_mut(&mut self, id: Id<T>) -> Option<&mut V> {
        let entry = self.entries.get_mut(id.index())?;
        if entry.owner == Some(id.generation) { Some(&mut entry.value) } else { None }
    }

    /// Removes and returns the value stored for `id`.
    pub fn take(&mut self, id: Id<T>) -> Option<V> {
        let entry = self.entries.get_mut(id.index())?;
        if entry.owner != Some(id.generation) {
            return None;
        }
        entry.owner = None;
        Some(entry.value)
    }
}

impl<T, V: Copy> core::ops::Index<Id<T>> for Side<T, V> {
    type Output = V;
    #[track_caller]
    fn index(&self, id: Id<T>) -> &V {
        match self.get(id) {
            Some(value) => value,
            None => no_entry(id),
        }
    }
}

impl<T, V: Copy> core::ops::IndexMut<Id<T>> for Side<T, V> {
    #[track_caller]
    fn index_mut(&mut self, id: Id<T>) -> &mut V {
        match self.get_mut(id) {
            Some(value) => value,
            None => no_entry(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_slot_has_another_generation() {
        let mut arena = Arena::new();
        let first = arena.insert("first");
        assert_eq!(*arena.remove(first), "first");
        assert_eq!(arena.get(first), None);
        assert_eq!((arena.len(), arena.iter().count()), (0, 0));
        let second = arena.insert("second");
        assert_eq!(first.index(), second.index());
        assert_ne!(first, second);
        assert_eq!(arena.get(first), None);
        assert_eq!(arena[second], "second");
        assert_eq!(Id::<&str>::from_bits(second.to_bits()), second);
    }

    #[test]
    #[should_panic(expected = "stale handle")]
    fn a_stale_handle_panics() {
        let mut arena = Arena::new();
        let id = arena.insert(1);
        arena.remove(id);
        arena.insert(2);
        let _ = arena[id];
    }

    #[test]
    fn a_side_entry_dies_with_its_object() {
        let mut arena = Arena::new();
        let mut side = Side::new();
        let first = arena.insert(());
        side.set(first, 7);
        arena.remove(first);
        let second = arena.insert(());
        assert_eq!(side.get(second), None);
        assert_eq!(side.take(first), Some(7));
        assert_eq!(side.take(first), None);
    }
}
