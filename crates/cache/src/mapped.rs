//! Which pages programs have in their own memory, where they read and write them without asking
//! the kernel.
//!
//! A page that is mapped is touched without a fault; it stays when others of its file are
//! forgotten, and is not mapped any more when it leaves the page cache.
//!
// Divergence: programs that map the same file have one table of pages.

use block::ContextId;
use std::collections::BTreeSet;
use std::ops::Range;

/// The pages that are mapped.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    pages: BTreeSet<u64>,
    /// What tasks have mapped, whether it was touched or not.
    ranges: Vec<(ContextId, Range<u64>)>,
}

impl Mapped {
    /// A task maps pages; none of them is there yet.
    pub fn begin(&mut self, task: ContextId, pages: Range<u64>) {
        self.ranges.push((task, pages));
    }

    /// A task has ended.
    pub fn end(&mut self, task: ContextId) {
        if self.ranges.iter().all(|(owner, _)| *owner != task) {
            return;
        }
        self.ranges.retain(|(owner, _)| *owner != task);
        let ranges = &self.ranges;
        self.pages.retain(|page| ranges.iter().any(|(_, range)| range.contains(page)));
    }

    /// Whether a page can be touched without a fault.
    pub fn has(&self, page: u64) -> bool {
        self.pages.contains(&page)
    }

    /// A fault has made a page accessible.
    pub fn insert(&mut self, page: u64) {
        self.pages.insert(page);
    }

    /// A page leaves the page cache.
    pub fn remove(&mut self, page: u64) {
        if !self.pages.is_empty() {
            self.pages.remove(&page);
        }
    }

    /// The pages of a range that nobody has mapped, as runs.
    pub fn others(&self, pages: Range<u64>) -> Vec<Range<u64>> {
        let (mut runs, mut from) = (Vec::new(), pages.start);
        for page in self.pages.range(pages.clone()) {
            if from < *page {
                runs.push(from..*page);
            }
            from = page + 1;
        }
        if from < pages.end {
            runs.push(from..pages.end);
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_stays_mapped_as_long_as_a_task_has_its_range() {
        let (mut mapped, [one, other]) = (Mapped::default(), [ContextId(1), ContextId(2)]);
        mapped.begin(one, 0..8);
        mapped.begin(other, 6..12);
        (0..8).for_each(|page| mapped.insert(page));
        mapped.end(one);
        assert!(!mapped.has(5) && mapped.has(6));
        mapped.end(other);
        assert!(!mapped.has(6));
    }

    #[test]
    fn what_is_not_mapped_is_told_in_runs() {
        let mut mapped = Mapped::default();
        assert_eq!(mapped.others(2..9), vec![2..9]);
        [2, 5, 6].into_iter().for_each(|page| mapped.insert(page));
        assert_eq!(mapped.others(2..9), [3..5, 7..9]);
        mapped.remove(5);
        assert_eq!(mapped.others(5..7), vec![5..6]);
    }
}
