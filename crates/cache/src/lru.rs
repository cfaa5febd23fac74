//! Which page goes when memory is short: the one that came first, unless it was used again.
//!
//! One queue over all files, of runs of pages in the order in which they came. A page that may not
//! go now, or deserves a second chance, is queued again at the end. Every page in memory is in the
//! queue exactly once; a run takes 16 bytes, however long it is, and no room is kept for more than
//! a few runs that are not there.
//!
// Divergence: one queue with a second chance stands for the lists of inactive and active pages.

use std::collections::VecDeque;
use std::ops::Range;

/// Runs that are kept together.
const SEGMENT: usize = 1024;

/// The number of a file in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileNumber(pub u32);

/// What becomes of the page that is oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes.
    Evict,
    /// It is queued again at the end.
    Keep,
}

/// The queue.
#[derive(Clone, Debug, Default)]
pub struct Lru {
    /// None of them is empty.
    segments: VecDeque<VecDeque<Run>>,
    pages: u64,
}

/// Pages of a file that came one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    file: FileNumber,
    length: u32,
    start: u64,
}

impl Lru {
    /// Pages came into memory.
    pub fn came(&mut self, file: FileNumber, start: u64, length: u64) {
        if length > 0 {
            self.pages += length;
            let length = u32::try_from(length).expect("a run of less than 16 TiB");
            self.queue(Run { file, length, start });
        }
    }

    /// Pages have left memory by another way: ascending ranges, of which some may not have been
    /// there.
    pub fn left(&mut self, file: FileNumber, gone: &[Range<u64>]) {
        if gone.is_empty() || self.segments.is_empty() {
            return;
        }
        for segment in std::mem::take(&mut self.segments) {
            for run in segment {
                match run.file == file {
                    true => self.queue_what_stays(run, gone),
                    false => self.queue(run),
                }
            }
        }
    }

    /// Judges the oldest pages until so many have been evicted or every page was judged once.
    /// Answers with the number of evicted pages.
    pub fn evict(&mut self, wanted: u64, mut judge: impl FnMut(FileNumber, u64) -> Verdict) -> u64 {
        let mut evicted = 0;
        for _ in 0..self.pages {
            if evicted == wanted {
                break;
            }
            let Some((file, page)) = self.pop() else { break };
            match judge(file, page) {
                Verdict::Evict => evicted += 1,
                Verdict::Keep => self.came(file, page, 1),
            }
        }
        evicted
    }

    /// How many pages are queued.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    fn queue(&mut self, run: Run) {
        let last = self.segments.back_mut();
        if let Some(before) = last.and_then(|segment| segment.back_mut())
            && before.file == run.file
            && before.end() == run.start
            && let Some(length) = before.length.checked_add(run.length)
        {
            before.length = length;
            return;
        }
        if self.segments.back().is_none_or(|segment| segment.len() == SEGMENT) {
            self.segments.push_back(VecDeque::new());
        }
        self.segments.back_mut().expect("there is one now").push_back(run);
    }

    /// Queues what is left of a run without the pages that are gone.
    fn queue_what_stays(&mut self, run: Run, gone: &[Range<u64>]) {
        let mut from = run.start;
        let first = gone.partition_point(|range| range.end <= run.start);
        for range in gone[first..].iter().take_while(|range| range.start < run.end()) {
            let (start, end) = (range.start.max(from), range.end.min(run.end()));
            self.pages -= end - start;
            self.queue_part(run, from..start);
            from = end;
        }
        self.queue_part(run, from..run.end());
    }

    fn queue_part(&mut self, run: Run, part: Range<u64>) {
        if !part.is_empty() {
            let length = (part.end - part.start) as u32;
            self.queue(Run { start: part.start, length, ..run });
        }
    }

    fn pop(&mut self) -> Option<(FileNumber, u64)> {
        let segment = self.segments.front_mut()?;
        let run = segment.front_mut().expect("no segment is empty");
        let oldest = (run.file, run.start);
        run.start += 1;
        run.length -= 1;
        if run.length == 0 {
            segment.pop_front();
        }
        if segment.is_empty() {
            self.segments.pop_front();
        }
        self.pages -= 1;
        Some(oldest)
    }
}

impl Run {
    fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: FileNumber = FileNumber(0);
    const B: FileNumber = FileNumber(1);

    fn drained(mut lru: Lru) -> Vec<(u32, u64)> {
        let mut gone = Vec::new();
        lru.evict(u64::MAX, |file, page| {
            gone.push((file.0, page));
            Verdict::Evict
        });
        gone
    }

    #[test]
    fn pages_go_in_the_order_in_which_they_came() {
        let mut lru = Lru::default();
        lru.came(A, 10, 2);
        lru.came(B, 0, 1);
        lru.came(A, 5, 1);
        assert_eq!(drained(lru), [(0, 10), (0, 11), (1, 0), (0, 5)]);
    }

    #[test]
    fn a_page_with_a_second_chance_goes_after_all_others() {
        let mut lru = Lru::default();
        lru.came(A, 0, 4);
        let mut is_first = true;
        let evicted = lru.evict(2, |_, page| {
            let keeps = page == 0 && std::mem::take(&mut is_first);
            if keeps { Verdict::Keep } else { Verdict::Evict }
        });
        assert_eq!(evicted, 2);
        assert_eq!(drained(lru), [(0, 3), (0, 0)]);
    }

    #[test]
    fn nothing_is_judged_twice_when_no_page_may_go() {
        let mut lru = Lru::default();
        lru.came(A, 0, 100);
        let mut judged = 0;
        let evicted = lru.evict(1, |_, _| {
            judged += 1;
            Verdict::Keep
        });
        assert_eq!((evicted, judged, lru.pages()), (0, 100, 100));
    }

    #[test]
    fn pages_that_are_read_in_order_are_one_run() {
        let mut lru = Lru::default();
        (0..1000).for_each(|window| lru.came(A, window * 32, 32));
        assert_eq!(lru.segments, [[Run { file: A, length: 32_000, start: 0 }]]);
    }

    #[test]
    fn many_runs_leave_in_one_pass_and_take_the_room_of_what_stays() {
        let mut lru = Lru::default();
        (0..5000).for_each(|page| lru.came(A, page * 2, 1));
        assert_eq!((lru.segments.len(), size_of::<Run>()), (5, 16));
        let gone: Vec<Range<u64>> = (0..4999).map(|page| page * 2..page * 2 + 1).collect();
        lru.left(A, &gone);
        assert_eq!(lru.segments.len(), 1);
        assert_eq!(drained(lru), [(0, 9998)]);
    }

    proptest! {
        #[test]
        fn the_queue_is_a_plain_list_of_pages(
            steps in prop::collection::vec((0..3u8, 0..2u32, 0..60u64, 0..20u64), 1..50)
        ) {
            let mut lru = Lru::default();
            let mut naive: Vec<(u32, u64)> = Vec::new();
            for (what, file, start, length) in steps {
                match what {
                    0 => {
                        let middle = start + length / 3;
                        let ranges = [start..middle, middle + length / 3..start + length];
                        lru.left(FileNumber(file), &ranges);
                        let gone = |it: &(u32, u64)| it.0 == file
                            && ranges.iter().any(|range| range.contains(&it.1));
                        naive.retain(|it| !gone(it));
                    }
                    1 => {
                        // Nothing comes that is there already.
                        for page in start..start + length {
                            if !naive.contains(&(file, page)) {
                                lru.came(FileNumber(file), page, 1);
                                naive.push((file, page));
                            }
                        }
                    }
                    _ => {
                        let evicted = lru.evict(length, |_, _| Verdict::Evict);
                        prop_assert_eq!(evicted, length.min(naive.len() as u64));
                        naive.drain(..evicted as usize);
                    }
                }
                prop_assert_eq!(lru.pages(), naive.len() as u64);
            }
            prop_assert_eq!(drained(lru), naive);
        }
    }
}
