//! Buddies: the aligned powers of two that the free extents of a group of ext4 consist of, and
//! which of them a request finds. Observed on 6.12, with filefrag and a trace of mballoc.

use std::collections::BTreeMap;
use std::ops::Range;

/// Fewer blocks, or a number that is no power of two, are looked for without alignment.
pub(super) const LEAST_BUDDY: u64 = 4;
const LARGEST_ORDER: u32 = 13;

/// Whether so many blocks are looked for as one buddy.
pub(super) fn is_buddy(length: u64) -> bool {
    length.is_power_of_two() && (LEAST_BUDDY..=1 << LARGEST_ORDER).contains(&length)
}

/// The lowest of the smallest free buddies that are large enough, in a group that begins at `base`.
pub(super) fn lowest_buddy(extents: &BTreeMap<u64, u64>, base: u64, length: u64) -> Option<u64> {
    let order = length.trailing_zeros();
    let buddies = extents.iter().flat_map(|(&start, &end)| Buddies { start, end, base });
    let large = buddies.filter(|buddy| buddy.1 >= order);
    large.min_by_key(|&(start, order)| (order, start)).map(|(start, _)| start)
}

/// The lowest of the shortest runs of free buddies that are long enough.
pub(super) fn lowest_run(extents: &BTreeMap<u64, u64>, base: u64, length: u64) -> Option<u64> {
    let runs = extents.iter().flat_map(|(&start, &end)| {
        let buddies = Buddies { start, end, base };
        Runs { buddies, length }
    });
    let large = runs.filter(|run| run.end - run.start >= length);
    large.min_by_key(|run| (run.end - run.start, run.start)).map(|run| run.start)
}

/// The aligned powers of two that a free extent consists of: first block and order.
struct Buddies {
    start: u64,
    end: u64,
    base: u64,
}

impl Iterator for Buddies {
    type Item = (u64, u32);

    fn next(&mut self) -> Option<(u64, u32)> {
        let length = self.end.checked_sub(self.start).filter(|length| *length > 0)?;
        let aligned = (self.start - self.base).trailing_zeros();
        let order = aligned.min(length.ilog2()).min(LARGEST_ORDER);
        let found = (self.start, order);
        self.start += 1 << order;
        Some(found)
    }
}

/// What a request of some length finds in a free extent: buddies that follow each other, until
/// there are enough; then the next ones. The shortest run that suffices is taken. Observed on 6.12:
/// 5120 blocks are taken from a free 8192, not from the 9983 before them.
struct Runs {
    buddies: Buddies,
    length: u64,
}

impl Iterator for Runs {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let (start, order) = self.buddies.next()?;
        let mut end = start + (1 << order);
        while end - start < self.length
            && let Some((next, order)) = self.buddies.next()
        {
            end = next + (1 << order);
        }
        Some(start..end)
    }
}
