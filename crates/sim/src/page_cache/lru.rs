//! Which page goes when memory is short: the one that came first, unless it was used again.
//!
//! One queue over all files, of runs of pages in the order in which they came. A page that may not
//! go now, or deserves a second chance, is queued again at the end. Every page in memory is in the
//! queue exactly once; a run takes 24 bytes, however long it is.
//!
// Divergence: one queue with a second chance stands for the lists of inactive and active pages.

use std::collections::VecDeque;

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
    runs: VecDeque<Run>,
    pages: u64,
}

/// Pages of a file that came one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    file: FileNumber,
    start: u64,
    length: u64,
}

impl Lru {
    /// Pages came into memory.
    pub fn came(&mut self, file: FileNumber, start: u64, length: u64) {
        self.pages += length;
        match self.runs.back_mut() {
            Some(last) if last.file == file && last.start + last.length == start => {
                last.length += length;
            }
            _ if length > 0 => self.runs.push_back(Run { file, start, length }),
            _ => {}
        }
    }

    /// Pages have left memory by another way: some of them may not have been there.
    pub fn left(&mut self, file: FileNumber, start: u64, length: u64) {
        if length == 0 || self.runs.is_empty() {
            return;
        }
        let end = start + length;
        let mut kept = VecDeque::with_capacity(self.runs.len());
        for run in self.runs.drain(..) {
            let run_end = run.start + run.length;
            if run.file != file || run_end <= start || run.start >= end {
                kept.push_back(run);
                continue;
            }
            self.pages -= run_end.min(end) - run.start.max(start);
            if run.start < start {
                kept.push_back(Run { length: start - run.start, ..run });
            }
            if end < run_end {
                kept.push_back(Run { start: end, length: run_end - end, ..run });
            }
        }
        self.runs = kept;
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

    fn pop(&mut self) -> Option<(FileNumber, u64)> {
        let run = self.runs.front_mut()?;
        let oldest = (run.file, run.start);
        run.start += 1;
        run.length -= 1;
        if run.length == 0 {
            self.runs.pop_front();
        }
        self.pages -= 1;
        Some(oldest)
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
        assert_eq!(lru.runs.len(), 1);
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
                        lru.left(FileNumber(file), start, length);
                        let gone = |it: &(u32, u64)| it.0 == file && it.1 >= start
                            && it.1 < start + length;
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
