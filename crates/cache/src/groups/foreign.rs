//! When a file changes its group: by a vote of the pages that are written of it, and how long that
//! has been so (rule cgroup-writeback-4).
//!
//! Time here counts in parts of a second of which there are 8192, and is what writing takes at the
//! disk's average bandwidth.

use super::Groups;
use crate::writeback::Writeback;
use block::CgroupId;
use std::ops::Range;

/// A second.
const SECOND: u64 = 1 << 13;
/// A slot of the history, of which there are so many; a round fills at most so many.
const SLOT: u64 = SECOND / 8;
const SLOTS: u32 = 16;
const MOST_SLOTS: u64 = 5;
/// More foreign slots than this, and the file goes over.
const FOREIGN: u32 = 8;

/// What was written of a file, by whose it was.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    /// The last slots; a bit is a foreign one.
    slots: u16,
    /// What a round took on the average.
    average: u64,
    round: Round,
}

/// What is written of a file at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    own: u64,
    /// Who leads among the others, by how many, and how many pages of theirs were counted.
    leader: Option<CgroupId>,
    lead: u64,
    led: u64,
}

impl Round {
    /// Counts a page (the vote of Boyer and Moore).
    fn count(&mut self, group: CgroupId, owner: CgroupId) {
        if group == owner {
            self.own += 1;
            self.lead = self.lead.saturating_sub(1);
            return;
        }
        if self.lead == 0 {
            (self.leader, self.led) = (Some(group), 0);
        }
        if self.leader == Some(group) {
            self.lead += 1;
            self.led += 1;
        } else {
            self.lead -= 1;
        }
    }
}

impl History {
    /// A round has ended; the answer is who gets the file.
    fn end_round(&mut self, owner: CgroupId, bandwidth: u64) -> Option<CgroupId> {
        let round = std::mem::take(&mut self.round);
        let leader = round.leader.filter(|_| round.led > round.own).unwrap_or(owner);
        let pages = if leader == owner { round.own } else { round.led };
        let took = (pages * SECOND).div_ceil(bandwidth.max(1));
        // assumed: a moving average that takes an eighth of what is new
        self.average = match self.average {
            0 => took,
            average => average - average / 8 + took / 8,
        };
        if took < self.average / 8 {
            return None;
        }
        let filled = took.div_ceil(SLOT).clamp(1, MOST_SLOTS) as u32;
        self.slots <<= filled;
        if leader != owner {
            self.slots |= (1 << filled) - 1;
        }
        debug_assert_eq!(u16::BITS, SLOTS);
        (leader != owner && self.slots.count_ones() > FOREIGN).then_some(leader)
    }
}

impl Groups {
    /// Pages of a file are going to be written.
    pub fn note_writing(&mut self, file: u64, pages: Range<u64>) {
        if self.guests.is_empty() {
            return;
        }
        let owner = self.owner(file);
        let history = self.histories.entry(file).or_default();
        for page in pages {
            let group = self.guests.get(&page).copied().unwrap_or(owner);
            history.round.count(group, owner);
        }
    }

    /// Whether others than its owner have written to a file.
    pub fn has_history(&self, file: u64) -> bool {
        self.histories.contains_key(&file)
    }

    /// So much was written of a file at a time, on a disk with an average bandwidth in pages a
    /// second. `all` are the pages of the file, of which some are dirty and some being written:
    /// they go over with it. The answer is whether it did.
    pub fn end_round(
        &mut self,
        file: u64,
        bandwidth: u64,
        (all, dirty, under_way): (Range<u64>, u64, u64),
        fresh: impl FnOnce() -> Writeback,
    ) -> bool {
        let owner = self.owner(file);
        let Some(history) = self.histories.get_mut(&file) else { return false };
        let Some(group) = history.end_round(owner, bandwidth) else { return false };
        self.histories.remove(&file);
        // Divergence: pages of the one who had it count as the new one's.
        self.guests.retain(|page, _| !all.contains(page));
        self.changed(file, -(dirty as i64), -(under_way as i64));
        self.owners.insert(file, group);
        self.add(group, fresh);
        self.changed(file, dirty as i64, under_way as i64);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: CgroupId = CgroupId(1);
    const OTHER: CgroupId = CgroupId(2);
    /// Pages a second.
    const BANDWIDTH: u64 = 8000;

    fn round(history: &mut History, own: u64, foreign: u64) -> Option<CgroupId> {
        (0..own).for_each(|_| history.round.count(OWNER, OWNER));
        (0..foreign).for_each(|_| history.round.count(OTHER, OWNER));
        history.end_round(OWNER, BANDWIDTH)
    }

    #[test]
    fn a_file_goes_over_when_more_than_half_of_two_seconds_were_foreign() {
        let mut history = History::default();
        // Three slots each: 3,000 pages at 8,000 a second.
        assert_eq!(round(&mut history, 10, 3000), None);
        assert_eq!(round(&mut history, 0, 3000), None);
        assert_eq!(round(&mut history, 0, 3000), Some(OTHER));
    }

    #[test]
    fn who_writes_as_much_himself_keeps_his_file() {
        let mut history = History::default();
        (0..20).for_each(|_| assert_eq!(round(&mut history, 3000, 3000), None));
    }

    #[test]
    fn a_round_that_is_short_for_the_file_says_nothing() {
        let mut history = History::default();
        round(&mut history, 8000, 0);
        let before = history.slots;
        (0..3).for_each(|_| assert_eq!(round(&mut history, 0, 10), None));
        assert_eq!(history.slots, before);
    }
}
