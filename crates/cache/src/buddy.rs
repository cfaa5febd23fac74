//! Free page frames, in blocks whose lengths and places are powers of two.
//!
//! A frame is cut from the shortest block that is free, and what is left of the block becomes
//! shorter ones. A frame that comes back makes one block with its buddy, if that is free too, and
//! so on. Of blocks of one length, the one that became free last is taken first; but last is taken
//! one that will make a longer block with its neighbours as soon as its own buddy is free.
//!
// D. Knuth, The Art of Computer Programming, volume 1, section 2.5: the buddy system
// observed on 6.12.117: mm_page_alloc_zone_locked behind mm_page_pcpu_drain, while files of 16 MiB
// are let go and written anew in guests of 256 and 512 MiB
//
// Divergence: memory that was never used lies in one piece.

use std::collections::BTreeMap;

/// Lengths of blocks: from 1 to 1024 frames (/proc/buddyinfo).
const ORDERS: usize = 11;

/// Blocks that are free, and the memory behind them, which was never used.
#[derive(Clone, Debug, Default)]
pub struct Buddies {
    /// The blocks of each length, in the order in which they are taken: their first frames.
    free: [BTreeMap<i64, u32>; ORDERS],
    /// How long a block is, the binary logarithm, and its place in the order, by its first frame.
    places: BTreeMap<u32, (usize, i64)>,
    /// How many blocks came first or last in their order.
    moves: i64,
    /// From here on no frame was ever used.
    unused: u32,
}

impl Buddies {
    /// Cuts a frame off.
    pub fn take(&mut self) -> u32 {
        let shortest = (0..ORDERS).find(|&order| !self.free[order].is_empty());
        let (first, order) = match shortest {
            Some(order) => {
                let (_, first) = self.free[order].pop_first().expect("it is not empty");
                self.places.remove(&first);
                (first, order)
            }
            None => {
                let first = self.unused;
                self.unused += 1 << (ORDERS - 1);
                (first, ORDERS - 1)
            }
        };
        (0..order).rev().for_each(|order| self.add(first + (1 << order), order, Place::First));
        first
    }

    /// A frame is free again.
    pub fn give(&mut self, frame: u32) {
        let (mut first, mut order) = (frame, 0);
        while order + 1 < ORDERS && self.is_free(first ^ (1 << order), order) {
            self.remove(first ^ (1 << order));
            first &= !(1 << order);
            order += 1;
        }
        let whole = first & !(1 << order);
        let grows = order + 2 < ORDERS && self.is_free(whole ^ (2 << order), order + 1);
        self.add(first, order, if grows { Place::Last } else { Place::First });
    }

    fn is_free(&self, first: u32, order: usize) -> bool {
        self.places.get(&first).is_some_and(|&(length, _)| length == order)
    }

    fn remove(&mut self, first: u32) {
        let (order, place) = self.places.remove(&first).expect("it is free");
        self.free[order].remove(&place);
    }

    fn add(&mut self, first: u32, order: usize, place: Place) {
        self.moves += 1;
        let place = if place == Place::First { -self.moves } else { self.moves };
        self.places.insert(first, (order, place));
        self.free[order].insert(place, first);
    }
}

/// Where in its order a block is put.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Last,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn take(buddies: &mut Buddies, count: usize) -> Vec<u32> {
        (0..count).map(|_| buddies.take()).collect()
    }

    #[test]
    fn memory_that_was_never_used_is_taken_in_order() {
        let mut buddies = Buddies::default();
        assert_eq!(take(&mut buddies, 3000), (0..3000).collect::<Vec<u32>>());
    }

    #[test]
    fn the_shortest_blocks_are_taken_first() {
        let mut buddies = Buddies::default();
        take(&mut buddies, 1024);
        [0, 1, 2, 3, 9, 16, 17].into_iter().for_each(|frame| buddies.give(frame));
        assert_eq!(take(&mut buddies, 7), [9, 16, 17, 0, 1, 2, 3]);
    }

    /// What mm_page_alloc_zone_locked told of 6.12 when the last 252 frames of a batch and the
    /// first 154 of a file had been put back (mm_page_pcpu_drain).
    #[test]
    fn frames_that_were_put_back_are_taken_as_on_the_kernel() {
        let mut buddies = Buddies::default();
        take(&mut buddies, 0x5585);
        (0x5489..0x5585).rev().for_each(|frame| buddies.give(frame));
        (0x4489..0x4523).for_each(|frame| buddies.give(frame));
        let expected = [
            0x4489..0x448a,
            0x5489..0x548a,
            0x4522..0x4523,
            0x4520..0x4522,
            0x448a..0x448c,
            0x548a..0x548c,
            0x448c..0x4490,
            0x548c..0x5490,
            0x4490..0x44a0,
            0x5490..0x54a0,
            0x4500..0x4520,
            0x44a0..0x44c0,
            0x54a0..0x54c0,
            0x44c0..0x4500,
            0x54c0..0x54d0,
        ];
        let expected: Vec<u32> = expected.into_iter().flatten().collect();
        assert_eq!(take(&mut buddies, expected.len()), expected);
    }

    proptest! {
        #[test]
        fn no_frame_is_taken_twice_and_none_is_lost(
            operations in proptest::collection::vec((any::<bool>(), any::<u16>()), 1..400),
        ) {
            let mut buddies = Buddies::default();
            let mut held: Vec<u32> = Vec::new();
            let mut ever: BTreeSet<u32> = BTreeSet::new();
            for (takes, which) in operations {
                if takes || held.is_empty() {
                    let frame = buddies.take();
                    prop_assert!(!held.contains(&frame));
                    held.push(frame);
                    ever.insert(frame);
                } else {
                    let at = usize::from(which) % held.len();
                    buddies.give(held.swap_remove(at));
                }
            }
            held.drain(..).for_each(|frame| buddies.give(frame));
            let again: BTreeSet<u32> = take(&mut buddies, 1024).into_iter().collect();
            prop_assert!(ever.is_subset(&again));
        }
    }
}
