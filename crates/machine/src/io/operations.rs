//! What a task has asked for and not been told the end of: its table of operations.
//!
//! An operation is one system call that moves or flushes data, or one request of an asynchronous
//! interface. Its number is what bios carry as token and events as number of the system call. It is
//! unique and grows, and its low bits say where in the table it stands: when the next place is
//! taken by an old operation, a number is skipped. So look-up needs no map and nothing is allocated
//! once the table is large enough.

use crate::file::{Errno, Transfer};
use base::{Instant, Sector, Sectors};
use block::{Ioprio, Syscall};

/// Places in a word of the table of what is taken.
const WORD: usize = u64::BITS as usize;

/// One operation under way.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub number: u64,
    pub call: Syscall,
    pub sector: Sector,
    pub sectors: Sectors,
    /// When the call was entered; when an asynchronous one was prepared.
    pub entered: Instant,
    /// When an asynchronous one was submitted.
    pub submitted: Instant,
    /// Bios that are not done, and one more until all have been submitted.
    pub bios_left: u32,
    /// The asynchronous queue to which it belongs, and the caller's mark there.
    pub ring: Option<(usize, u64)>,
    pub ioprio: Option<Ioprio>,
    pub result: Result<u64, Errno>,
    /// Something is left to do when its data are on the disk.
    pub is_finished_later: bool,
}

impl Operation {
    /// An operation that begins now.
    pub fn new(now: Instant, call: Syscall, transfer: Transfer) -> Operation {
        Operation {
            number: 0,
            call,
            sector: transfer.sector,
            sectors: transfer.sectors,
            entered: now,
            submitted: now,
            bios_left: 1,
            ring: None,
            ioprio: None,
            result: Ok(0),
            is_finished_later: false,
        }
    }

    /// What it asks for.
    pub fn asked(&self) -> Asked {
        Asked { call: self.call, sector: self.sector, sectors: self.sectors }
    }
}

/// What an operation asks for.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub call: Syscall,
    pub sector: Sector,
    pub sectors: Sectors,
}

/// The operations of one task.
#[derive(Default)]
pub(crate) struct Operations {
    /// The place of an operation is its number modulo the length, which is a power of two.
    places: Vec<Option<Operation>>,
    /// A bit for each place: whether it is taken.
    taken: Vec<u64>,
    live: usize,
    next: u64,
}

impl Operations {
    /// Takes in an operation and gives it its number.
    pub fn insert(&mut self, mut operation: Operation) -> u64 {
        if self.live == self.places.len() {
            self.grow();
        }
        let place = self.free_place(self.place(self.next));
        let skipped = place.wrapping_sub(self.place(self.next)) & (self.places.len() - 1);
        let number = self.next + skipped as u64;
        operation.number = number;
        self.put(place, operation);
        self.live += 1;
        self.next = number + 1;
        number
    }

    /// The operation with this number, which must be under way.
    #[track_caller]
    pub fn get(&mut self, number: u64) -> &mut Operation {
        let place = self.place(number);
        match self.places[place].as_mut() {
            Some(operation) if operation.number == number => operation,
            other => panic!("operation {number} is not under way; its place holds {other:?}"),
        }
    }

    /// The operation with this number, if it is under way.
    pub fn find(&mut self, number: u64) -> Option<&mut Operation> {
        if self.places.is_empty() {
            return None;
        }
        let place = self.place(number);
        self.places[place].as_mut().filter(|operation| operation.number == number)
    }

    /// Takes an operation out.
    #[track_caller]
    pub fn remove(&mut self, number: u64) -> Operation {
        self.get(number);
        let place = self.place(number);
        self.live -= 1;
        self.taken[place / WORD] &= !(1 << (place % WORD));
        self.places[place].take().expect("checked a line above")
    }

    /// Takes all out, in the order of their numbers.
    pub fn drain(&mut self) -> Vec<Operation> {
        let mut all: Vec<Operation> = self.places.iter_mut().filter_map(Option::take).collect();
        all.sort_by_key(|operation| operation.number);
        self.taken.fill(0);
        self.live = 0;
        all
    }

    fn place(&self, number: u64) -> usize {
        number as usize & (self.places.len() - 1)
    }

    fn put(&mut self, place: usize, operation: Operation) {
        self.places[place] = Some(operation);
        self.taken[place / WORD] |= 1 << (place % WORD);
    }

    /// The first place from this one on that is not taken, round the end; there must be one.
    fn free_place(&self, from: usize) -> usize {
        let last = (self.places.len() - 1).min(WORD - 1);
        let free = |word: usize| !self.taken[word] & (u64::MAX >> (WORD - 1 - last));
        let mut word = from / WORD;
        let mut bits = free(word) & (u64::MAX << (from % WORD));
        while bits == 0 {
            word = (word + 1) % self.taken.len();
            bits = free(word);
        }
        word * WORD + bits.trailing_zeros() as usize
    }

    fn grow(&mut self) {
        let length = (self.places.len() * 2).max(4);
        let old = std::mem::take(&mut self.places);
        self.places.resize(length, None);
        self.taken = vec![0; length.div_ceil(WORD)];
        for operation in old.into_iter().flatten() {
            self.put(self.place(operation.number), operation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn operation(sector: u64) -> Operation {
        Operation {
            number: 0,
            call: Syscall::Read,
            sector: Sector(sector),
            sectors: Sectors(8),
            entered: Instant::ZERO,
            submitted: Instant::ZERO,
            bios_left: 0,
            ring: None,
            ioprio: None,
            result: Ok(0),
            is_finished_later: false,
        }
    }

    #[test]
    fn numbers_grow_by_one_while_operations_end_in_order() {
        let mut operations = Operations::default();
        for expected in 0..100 {
            let number = operations.insert(operation(0));
            assert_eq!(number, expected);
            operations.remove(number);
        }
        assert_eq!(operations.places.len(), 4);
    }

    #[test]
    fn an_old_operation_costs_a_number_and_no_memory() {
        let mut operations = Operations::default();
        let old = operations.insert(operation(1));
        for _ in 0..1000 {
            let number = operations.insert(operation(2));
            assert_ne!(number % 4, old);
            operations.remove(number);
        }
        assert_eq!(operations.places.len(), 4);
        assert_eq!(operations.remove(old).sector, Sector(1));
    }

    proptest! {
        #[test]
        fn a_number_is_the_next_one_whose_place_is_free(
            steps in prop::collection::vec(0usize..300, 0..600)
        ) {
            let mut operations = Operations::default();
            let (mut live, mut next) = (Vec::new(), 0);
            for step in steps {
                if step < live.len() {
                    operations.remove(live.swap_remove(step));
                    continue;
                }
                let number = operations.insert(operation(0));
                let mask = operations.places.len() as u64 - 1;
                while live.iter().any(|it| it & mask == next & mask) {
                    next += 1;
                }
                prop_assert_eq!(number, next);
                live.push(next);
                next += 1;
            }
        }

        #[test]
        fn behaves_like_a_map(
            steps in prop::collection::vec(any::<prop::sample::Index>(), 0..400)
        ) {
            let mut operations = Operations::default();
            let mut twin: BTreeMap<u64, u64> = BTreeMap::new();
            for (serial, which) in steps.iter().enumerate() {
                let pick = which.index(twin.len() + 2);
                match twin.keys().nth(pick).copied() {
                    Some(number) => {
                        let taken = operations.remove(number);
                        prop_assert_eq!(Some(taken.sector.0), twin.remove(&number));
                        prop_assert!(operations.find(number).is_none());
                    }
                    None => {
                        let number = operations.insert(operation(serial as u64));
                        prop_assert!(twin.keys().all(|older| *older < number));
                        twin.insert(number, serial as u64);
                    }
                }
            }
            let rest: Vec<_> = operations.drain().iter().map(|o| (o.number, o.sector.0)).collect();
            prop_assert_eq!(rest, twin.into_iter().collect::<Vec<_>>());
        }
    }
}
