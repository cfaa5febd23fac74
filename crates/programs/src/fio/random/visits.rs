//! Which blocks have been visited.
//!
//! A bit for each block is the smallest map of a range that is visited all over, but a bad one of
//! some requests on a large disk: each of them would touch a page of its own. So a map begins as a
//! table of the blocks that were visited and turns into bits when that is smaller. Of a range with
//! more blocks than 32 bits count, a sorted set is kept instead of the table.

use std::collections::BTreeSet;

/// Which blocks of a range have been visited.
#[derive(Clone, Debug)]
pub struct VisitMap {
    len: u64,
    free: u64,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Table(Table),
    Set(BTreeSet<u64>),
    Bits(Bits),
}

/// Ranges of at most so many blocks have bits from the beginning.
const SMALL: u64 = 1 << 20;
/// A table, or a set, is smaller than bits as long as at most one in so many blocks was visited.
const SPARSE: u64 = 64;

impl VisitMap {
    /// A map of `len` blocks, none of them visited.
    pub fn new(len: u64) -> Self {
        let form = match len {
            0..=SMALL => Form::Bits(Bits::new(len)),
            _ if len >= u64::from(u32::MAX) => Form::Set(BTreeSet::new()),
            _ => Form::Table(Table::new()),
        };
        VisitMap { len, free: len, form }
    }

    /// How many blocks have not been visited.
    pub fn free(&self) -> u64 {
        self.free
    }

    /// Forgets all visits.
    pub fn clear(&mut self) {
        *self = VisitMap::new(self.len);
    }

    /// Whether a block was visited.
    pub fn is_visited(&self, block: u64) -> bool {
        match &self.form {
            Form::Table(table) => table.contains(block),
            Form::Set(set) => set.contains(&block),
            Form::Bits(bits) => bits.contain(block),
        }
    }

    /// Marks a block as visited.
    pub fn visit(&mut self, block: u64) {
        assert!(block < self.len, "block {block} of {}", self.len);
        self.free -= u64::from(self.insert(block));
    }

    /// Visits the first block from `from` on that was not visited, wrapping around at the end.
    pub fn visit_next(&mut self, from: u64) -> Option<u64> {
        if from < self.len && self.insert(from) {
            self.free -= 1;
            return Some(from);
        }
        let block = self.next_free(from)?;
        self.visit(block);
        Some(block)
    }

    /// Whether a block was not visited before.
    fn insert(&mut self, block: u64) -> bool {
        match &mut self.form {
            Form::Bits(bits) => bits.insert(block),
            Form::Set(set) => {
                let is_new = set.insert(block);
                if set.len() as u64 * SPARSE > self.len {
                    self.form = Form::Bits(Bits::of(self.len, set.iter().copied()));
                }
                is_new
            }
            Form::Table(table) => {
                let is_new = table.insert(block);
                if table.count * SPARSE > self.len {
                    self.form = Form::Bits(Bits::of(self.len, table.blocks()));
                }
                is_new
            }
        }
    }

    /// Has the processor fetch what there is to know about some blocks, before one after the other
    /// is asked for.
    pub fn fetch(&self, blocks: &[u64]) {
        let known = blocks.iter().fold(0, |known, block| match &self.form {
            Form::Table(table) => known ^ u64::from(table.slots[table.slot(*block)]),
            Form::Set(_) => known,
            Form::Bits(bits) => known ^ bits.levels[0][(block / 64) as usize],
        });
        std::hint::black_box(known);
    }

    /// Visits the blocks from `block` on, `most` at most, up to the first one that was visited or
    /// the end; the answer is how many.
    pub fn visit_run(&mut self, block: u64, most: u64) -> u64 {
        let end = block.saturating_add(most).min(self.len);
        let run = (block..end).take_while(|block| !self.is_visited(*block)).count() as u64;
        (block..block + run).for_each(|block| self.visit(block));
        run
    }

    /// The first block from `from` on that was not visited, wrapping around at the end.
    pub fn next_free(&self, from: u64) -> Option<u64> {
        if self.free == 0 {
            return None;
        }
        let first_free = |from: u64| match &self.form {
            Form::Table(table) => (from..self.len).find(|block| !table.contains(*block)),
            Form::Set(set) => (from..self.len).find(|block| !set.contains(block)),
            Form::Bits(bits) => bits.first_missing(from).filter(|block| *block < self.len),
        };
        first_free(from).or_else(|| first_free(0))
    }
}

/// The blocks that were visited, in a hash table with open addressing.
#[derive(Clone, Debug)]
struct Table {
    /// Blocks plus one, or 0; a power of two of them, at least twice as many as blocks.
    slots: Vec<u32>,
    shift: u32,
    count: u64,
}

impl Table {
    const FIRST: usize = 1 << 10;

    fn new() -> Table {
        Table::with_slots(Table::FIRST)
    }

    fn with_slots(count: usize) -> Table {
        Table { slots: vec![0; count], shift: u32::BITS - count.ilog2(), count: 0 }
    }

    /// Where to begin to look for a block.
    fn slot(&self, block: u64) -> usize {
        // Multiples of the golden section of 2^32 lie far apart.
        ((block as u32).wrapping_mul(0x9E37_79B1) >> self.shift) as usize
    }

    /// The slot of a block, or the free one where it belongs.
    fn find(&self, block: u64) -> usize {
        let mut slot = self.slot(block);
        while self.slots[slot] != 0 && u64::from(self.slots[slot]) != block + 1 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    fn contains(&self, block: u64) -> bool {
        self.slots[self.find(block)] != 0
    }

    fn insert(&mut self, block: u64) -> bool {
        let mut slot = self.find(block);
        if self.slots[slot] != 0 {
            return false;
        }
        if self.count as usize * 2 >= self.slots.len() {
            let mut larger = Table::with_slots(self.slots.len() * 2);
            self.blocks().for_each(|block| _ = larger.insert(block));
            *self = larger;
            slot = self.find(block);
        }
        self.slots[slot] = block as u32 + 1;
        self.count += 1;
        true
    }

    fn blocks(&self) -> impl Iterator<Item = u64> {
        self.slots.iter().filter(|slot| **slot != 0).map(|slot| u64::from(slot - 1))
    }
}

/// One bit for each block, and above them one for each full word, level upon level, so that the
/// next block whose bit is missing is found in a few steps.
#[derive(Clone, Debug)]
struct Bits {
    levels: Vec<Vec<u64>>,
}

impl Bits {
    fn new(len: u64) -> Bits {
        let mut levels = Vec::new();
        let mut bits = len;
        loop {
            let words = bits.div_ceil(64);
            levels.push(vec![0; usize::try_from(words).expect("a map that fits in memory")]);
            if words <= 1 {
                return Bits { levels };
            }
            bits = words;
        }
    }

    fn of(len: u64, blocks: impl Iterator<Item = u64>) -> Bits {
        let mut bits = Bits::new(len);
        blocks.for_each(|block| _ = bits.insert(block));
        bits
    }

    fn contain(&self, block: u64) -> bool {
        (self.levels[0][(block / 64) as usize] >> (block % 64)) & 1 == 1
    }

    fn insert(&mut self, block: u64) -> bool {
        if self.contain(block) {
            return false;
        }
        let mut bit = block;
        for level in &mut self.levels {
            let word = &mut level[(bit / 64) as usize];
            *word |= 1 << (bit % 64);
            if *word != u64::MAX {
                break;
            }
            bit /= 64;
        }
        true
    }

    fn first_missing(&self, from: u64) -> Option<u64> {
        let mut bit = from;
        let mut level = 0;
        // Up, until a word has a zero at or behind the bit; then down to the first one.
        loop {
            let words = self.levels.get(level)?;
            let word = words.get((bit / 64) as usize).copied();
            let zeros = word.map_or(0, |word| !word & (u64::MAX << (bit % 64)));
            if zeros != 0 {
                bit = bit / 64 * 64 + u64::from(zeros.trailing_zeros());
                break;
            }
            bit = bit / 64 + 1;
            level += 1;
        }
        while level > 0 {
            level -= 1;
            let word = self.levels[level].get(bit as usize).copied()?;
            bit = bit * 64 + u64::from(word.trailing_ones());
        }
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn the_map_agrees_with_a_set() {
        for len in [1_u64, 63, 64, 65, 4096, 5000, 300_000, 1_100_000] {
            let mut rng = Rng::stream(1, "test");
            let mut map = VisitMap::new(len);
            let mut free: BTreeSet<u64> = (0..len).collect();
            for _ in 0..len.clamp(2000, 50_000) {
                let from = rng.below(len);
                let expected = free.range(from..).next().or(free.first()).copied();
                assert_eq!(map.next_free(from), expected);
                let block = match rng.below(3) {
                    0 => from,
                    1 => expected.unwrap_or(from),
                    _ => map.visit_next(from).unwrap_or(from),
                };
                map.visit(block);
                free.remove(&block);
                assert_eq!((map.free(), map.is_visited(block)), (free.len() as u64, true));
            }
            map.clear();
            assert_eq!((map.free(), map.next_free(len - 1)), (len, Some(len - 1)));
        }
    }

    #[test]
    fn runs_end_at_visited_blocks_and_at_the_end() {
        for len in [100, 2_000_000] {
            let mut map = VisitMap::new(len);
            map.visit(10);
            assert_eq!((map.visit_run(5, 50), map.visit_run(10, 5)), (5, 0));
            assert_eq!((map.visit_run(11, 3), map.visit_run(len - 2, 50)), (3, 2));
            assert_eq!(map.free(), len - 11);
        }
    }

    #[test]
    fn a_full_map_has_no_free_block() {
        for len in [1, 64, 65, 4096, 4097, 1_100_000] {
            let mut map = VisitMap::new(len);
            assert_eq!(map.visit_run(0, u64::MAX), len);
            assert_eq!((map.free(), map.next_free(0), map.next_free(len - 1)), (0, None, None));
        }
    }

    #[test]
    fn a_short_visit_to_a_large_disk_takes_little_memory() {
        let mut map = VisitMap::new(1 << 31);
        (0..1000).for_each(|block| map.visit(block << 21));
        assert!(matches!(&map.form, Form::Table(table) if table.slots.len() == 2048));
        map.fetch(&[0, 1 << 30]);
        let mut map = VisitMap::new(u64::MAX / 512);
        (0..1000).for_each(|block| map.visit(block << 40));
        map.fetch(&[0, 1 << 50]);
        assert_eq!((map.is_visited(5 << 40), map.visit_next(5 << 40)), (true, Some((5 << 40) + 1)));
    }
}
