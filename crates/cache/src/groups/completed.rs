//! What each group had written of late: every three seconds all of it counts half as much
//! (rule dirty-limits-6), as long as that leaves more than a page.
//!
//! So a group of which little was written beside others is forgotten after some seconds: it has no
//! share in what may be dirty then, and its flusher's next look writes everything. A disk that is
//! written for one group only is not, unless it was a single page.
//! Observed on 6.12: of one group among others two pages at 10.2 s, nothing known at 17.2 s; four
//! at 17.2 s, something at 23.0 s and nothing at 28.2 s. Alone, a page was forgotten after 5 s; two
//! to 128 pages were not after 35.

use block::CgroupId;
use std::collections::BTreeMap;

/// A period.
const SECONDS: u64 = 3;

/// Pages by group.
#[derive(Clone, Default)]
pub(super) struct Completed {
    pages: BTreeMap<CgroupId, u64>,
    /// The tick at which the present period began, as long as periods go on.
    began: Option<u64>,
}

impl Completed {
    /// Something is going to be written; periods begin with it if none goes on.
    pub fn begin(&mut self, now: u64, hz: u64) {
        self.age(now, hz);
        self.began.get_or_insert(now);
    }

    /// A page has come to the disk.
    pub fn add(&mut self, group: CgroupId) {
        *self.pages.entry(group).or_default() += 1;
    }

    /// Pages of a group, and of all.
    pub fn share(&self, group: CgroupId, now: u64, hz: u64) -> (u64, u64) {
        let is_due = self.began.is_some_and(|began| now >= began + SECONDS * hz);
        if is_due {
            let mut aged = self.clone();
            aged.age(now, hz);
            return aged.share(group, now, hz);
        }
        let own = self.pages.get(&group).copied().unwrap_or(0);
        (own, self.pages.values().sum())
    }

    fn age(&mut self, now: u64, hz: u64) {
        while let Some(began) = self.began.filter(|began| now >= began + SECONDS * hz) {
            self.pages.values_mut().for_each(|pages| *pages /= 2);
            self.pages.retain(|_, pages| *pages > 0);
            let goes_on = self.pages.values().sum::<u64>() > 1;
            self.began = goes_on.then_some(began + SECONDS * hz);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: CgroupId = CgroupId(1);
    const HZ: u64 = 250;

    /// Pages of a group that are written at a second.
    fn write(completed: &mut Completed, group: CgroupId, pages: u64, second: f64) {
        completed.begin(tick(second), HZ);
        (0..pages).for_each(|_| completed.add(group));
    }

    fn tick(second: f64) -> u64 {
        (second * HZ as f64) as u64
    }

    #[test]
    fn what_was_completed_counts_half_as_much_after_three_seconds() {
        let mut completed = Completed::default();
        write(&mut completed, A, 8, 1.0);
        assert_eq!(completed.share(A, tick(3.9), HZ), (8, 8));
        write(&mut completed, CgroupId::ROOT, 4, 4.0);
        assert_eq!(completed.share(A, tick(4.1), HZ), (4, 8));
        assert_eq!(completed.share(A, tick(7.0), HZ), (2, 4));
    }

    #[test]
    fn of_several_groups_one_that_wrote_little_is_forgotten_when_it_was_in_the_kernel() {
        let mut completed = Completed::default();
        write(&mut completed, A, 1024, 5.12);
        write(&mut completed, CgroupId::ROOT, 2, 10.24);
        write(&mut completed, A, 1600, 12.03);
        assert_eq!(completed.share(CgroupId::ROOT, tick(17.15), HZ).0, 0);
        write(&mut completed, CgroupId::ROOT, 4, 17.15);
        assert!(completed.share(CgroupId::ROOT, tick(23.04), HZ).0 > 0);
        assert_eq!(completed.share(CgroupId::ROOT, tick(28.16), HZ).0, 0);
    }

    #[test]
    fn alone_only_a_single_page_is_forgotten() {
        for (pages, is_known) in [(1, false), (2, true), (40, true), (128, true)] {
            let mut completed = Completed::default();
            write(&mut completed, A, pages, 0.0);
            assert_eq!(completed.share(A, tick(35.8), HZ).0 > 0, is_known, "{pages}");
        }
    }
}
