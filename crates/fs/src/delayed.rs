//! Room that was set aside for pages of files which have no place on the disk yet.
//!
//! Both file systems give blocks their places as late as pages are written, and count them as used
//! from when they become dirty on, so that a program hears of a full disk from its own write.

use std::collections::BTreeMap;
use std::ops::Range;

/// What is set aside, by file.
#[derive(Clone, Debug, Default)]
pub struct Delayed {
    /// First blocks of each file, and ends.
    files: BTreeMap<usize, BTreeMap<u64, u64>>,
    blocks: u64,
}

impl Delayed {
    /// How many blocks are set aside.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// What was set aside together with a block.
    pub fn find(&self, file: usize, block: u64) -> Option<Range<u64>> {
        let (&start, &end) = self.files.get(&file)?.range(..=block).next_back()?;
        (block < end).then_some(start..end)
    }

    /// Whether something was set aside from a block on.
    pub fn reaches(&self, file: usize, block: u64) -> bool {
        let last = self.files.get(&file).and_then(|room| room.last_key_value());
        last.is_some_and(|(_, end)| *end > block)
    }

    /// The first block from one on that was set aside.
    pub fn next(&self, file: usize, block: u64) -> Option<u64> {
        self.files.get(&file)?.range(block..).next().map(|it| *it.0)
    }

    /// Sets blocks aside, together with what was set aside before them.
    pub fn add(&mut self, file: usize, blocks: Range<u64>) {
        self.punch(file, blocks.clone());
        self.blocks += blocks.end - blocks.start;
        let room = self.files.entry(file).or_default();
        let before = room.range_mut(..blocks.start).next_back();
        match before.filter(|(_, end)| **end == blocks.start) {
            Some((_, end)) => *end = blocks.end,
            None => _ = room.insert(blocks.start, blocks.end),
        }
    }

    /// Takes what was set aside together with a block.
    pub fn take(&mut self, file: usize, block: u64) -> Option<Range<u64>> {
        let found = self.find(file, block)?;
        self.punch(file, found.clone());
        Some(found)
    }

    /// Nothing is set aside for a file from a block on.
    pub fn cut(&mut self, file: usize, block: u64) {
        self.punch(file, block..u64::MAX);
    }

    /// Nothing is set aside for some blocks of a file.
    pub fn punch(&mut self, file: usize, blocks: Range<u64>) {
        let Some(room) = self.files.get_mut(&file) else { return };
        while let Some((&start, &end)) = room.range(..blocks.end).next_back()
            && end > blocks.start
        {
            room.remove(&start);
            self.blocks -= end.min(blocks.end) - start.max(blocks.start);
            if end > blocks.end {
                room.insert(blocks.end, end);
            }
            if start < blocks.start {
                room.insert(start, blocks.start);
            }
        }
        if room.is_empty() {
            self.files.remove(&file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_is_one_piece() {
        let mut delayed = Delayed::default();
        delayed.add(1, 4..8);
        delayed.add(1, 8..9);
        delayed.add(2, 9..10);
        assert_eq!(delayed.find(1, 8), Some(4..9));
        assert_eq!(delayed.find(1, 9), None);
        assert_eq!(delayed.next(1, 0), Some(4));
        assert_eq!(delayed.blocks(), 6);
        assert_eq!(delayed.take(1, 5), Some(4..9));
        assert_eq!(delayed.blocks(), 1);
    }

    #[test]
    fn holes_are_counted() {
        let mut delayed = Delayed::default();
        delayed.add(1, 0..10);
        delayed.punch(1, 4..6);
        assert_eq!((delayed.find(1, 3), delayed.find(1, 6)), (Some(0..4), Some(6..10)));
        assert_eq!(delayed.blocks(), 8);
        delayed.add(1, 2..8);
        assert_eq!(delayed.blocks(), 10);
        delayed.cut(1, 1);
        assert_eq!((delayed.find(1, 0), delayed.blocks()), (Some(0..1), 1));
        delayed.cut(1, 0);
        assert_eq!(delayed.next(1, 0), None);
    }
}
