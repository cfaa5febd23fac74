//! The extents of a file, by their first blocks, and how many come before a block.
//!
//! Whoever asks for that often asks files with many: then the extents are counted by ranges of
//! blocks, wide ones and narrow ones, so that an answer adds up some hundred counts at most.

use std::collections::BTreeMap;
use std::ops::{Deref, Range};

/// The widths of the ranges by which extents are counted, as powers of two; the widest first.
const WIDTHS: [u32; 3] = [24, 16, 8];
/// Fewer extents are counted one by one.
const FEW: usize = 512;

/// Blocks that are together in the file and on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First block on the disk.
    pub start: u64,
    /// How many.
    pub length: u64,
    /// Whether they have contents.
    pub is_written: bool,
}

/// The extents of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extents {
    all: BTreeMap<u64, Extent>,
    /// Extents that begin in a range, by its number, for each width; kept once it was asked for.
    counts: Option<[BTreeMap<u64, usize>; WIDTHS.len()]>,
}

impl Deref for Extents {
    type Target = BTreeMap<u64, Extent>;

    fn deref(&self) -> &BTreeMap<u64, Extent> {
        &self.all
    }
}

impl Extents {
    /// Adds an extent, or replaces that which begins there.
    pub fn insert(&mut self, block: u64, extent: Extent) {
        if self.all.insert(block, extent).is_none() {
            self.count(block, true);
        }
    }

    /// Takes away the extent that begins at a block.
    pub fn remove(&mut self, block: u64) -> Option<Extent> {
        let extent = self.all.remove(&block)?;
        self.count(block, false);
        Some(extent)
    }

    /// Takes away those that begin at a block or behind it.
    pub fn split_off(&mut self, block: u64) -> BTreeMap<u64, Extent> {
        self.counts = None;
        self.all.split_off(&block)
    }

    /// The extent that begins at a block.
    pub fn get_mut(&mut self, block: u64) -> Option<&mut Extent> {
        self.all.get_mut(&block)
    }

    /// Those that begin in a range.
    pub fn range_mut(
        &mut self,
        blocks: Range<u64>,
    ) -> impl DoubleEndedIterator<Item = (&u64, &mut Extent)> {
        self.all.range_mut(blocks)
    }

    /// How many begin before a block.
    pub fn before(&mut self, block: u64) -> usize {
        if self.all.len() <= FEW {
            return self.all.range(..block).count();
        }
        let all = &self.all;
        let counts = self.counts.get_or_insert_with(|| WIDTHS.map(|width| counted(all, width)));
        let (mut from, mut before) = (0, 0);
        for (width, counts) in WIDTHS.iter().zip(counts) {
            let ranges = from >> width..block >> width;
            before += counts.range(ranges).map(|(_, count)| count).sum::<usize>();
            from = block >> width << width;
        }
        before + self.all.range(from..block).count()
    }

    fn count(&mut self, block: u64, is_new: bool) {
        for (width, counts) in WIDTHS.iter().zip(self.counts.iter_mut().flatten()) {
            let count = counts.entry(block >> width).or_default();
            *count = if is_new { *count + 1 } else { *count - 1 };
            if *count == 0 {
                counts.remove(&(block >> width));
            }
        }
    }
}

fn counted(all: &BTreeMap<u64, Extent>, width: u32) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    for block in all.keys() {
        *counts.entry(block >> width).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    #[test]
    fn as_many_come_before_a_block_as_are_counted_one_by_one() {
        let mut rng = Rng::stream(1, "test");
        let mut extents = Extents::default();
        for _ in 0..20_000 {
            let block = rng.below(1 << 12) << rng.below(20);
            match rng.below(4) {
                0 => drop(extents.remove(block)),
                1 if rng.chance(1, 500) => drop(extents.split_off(block | 1 << 20)),
                _ => extents.insert(block, Extent { start: 0, length: 1, is_written: true }),
            }
            let block = rng.below(1 << 12) << rng.below(20);
            assert_eq!(extents.before(block), extents.all.range(..block).count());
        }
        assert!(extents.len() > 2 * FEW);
    }

    #[test]
    fn a_file_of_very_many_extents_answers_at_once() {
        let mut extents = Extents::default();
        let began = std::time::Instant::now();
        for number in 0..200_000 {
            let extent = Extent { start: 0, length: 1, is_written: true };
            extents.insert(number * 0x9E37_79B1 % (1 << 28), extent);
            extents.before(1 << 28);
        }
        // One by one these are 20 thousand million.
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }
}
