//! Control groups with writeback of their own: whose dirty pages are which (rules
//! cgroup-writeback).
//!
//! A file belongs to the group of whoever dirtied it first. What is written of it, by whomever,
//! counts for that group, which has a flusher, estimates of the disk, and a share of what may be
//! dirty of its own. A file of which others have dirtied most goes over to them.
//!
//! Leaves out limits of a group's memory: nothing here has one, so the machine's are its own.
//!
// Divergence: who brought a page into memory is known of pages that came by being written; those
// that were read count as their file's.

mod completed;
mod foreign;

use super::pages::Counts;
use super::writeback::Writeback;
use block::CgroupId;
use completed::Completed;
use foreign::History;
use std::collections::BTreeMap;

/// Files, pages and flushers by group; the root group's are those that no other has.
#[derive(Default)]
pub struct Groups {
    is_on: bool,
    /// Files of other groups than the root's.
    owners: BTreeMap<u64, CgroupId>,
    parts: BTreeMap<CgroupId, Part>,
    /// Pages that were brought by another group than the one their file belongs to.
    guests: BTreeMap<u64, CgroupId>,
    /// What was written of files that have or had guests.
    histories: BTreeMap<u64, History>,
    completed: Completed,
}

/// What belongs to a group that is not the root.
struct Part {
    writeback: Writeback,
    dirty: u64,
    under_way: u64,
}

impl Groups {
    /// With groups of their own, or one for all.
    pub fn set_on(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// Whether files belong to groups.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whose a file is.
    pub fn owner(&self, file: u64) -> CgroupId {
        self.owners.get(&file).copied().unwrap_or(CgroupId::ROOT)
    }

    /// All groups that have or had something dirty, the root first.
    pub fn all(&self) -> Vec<CgroupId> {
        std::iter::once(CgroupId::ROOT).chain(self.parts.keys().copied()).collect()
    }

    /// A group dirties a file, which becomes its own if nobody had. `fresh` is what a new flusher
    /// knows.
    pub fn claim(&mut self, file: u64, group: CgroupId, fresh: impl FnOnce() -> Writeback) {
        if !self.is_on || self.owners.contains_key(&file) {
            return;
        }
        self.owners.insert(file, group);
        self.add(group, fresh);
    }

    fn add(&mut self, group: CgroupId, fresh: impl FnOnce() -> Writeback) {
        if group != CgroupId::ROOT {
            let part = || Part { writeback: fresh(), dirty: 0, under_way: 0 };
            self.parts.entry(group).or_insert_with(part);
        }
    }

    /// The flusher's knowledge of a group; none for the root.
    pub fn writeback(&mut self, group: CgroupId) -> Option<&mut Writeback> {
        self.parts.get_mut(&group).map(|part| &mut part.writeback)
    }

    /// The same, to look at.
    pub fn writeback_of(&self, group: CgroupId) -> Option<&Writeback> {
        self.parts.get(&group).map(|part| &part.writeback)
    }

    /// What of the pages of all is a group's.
    pub fn counts(&self, group: CgroupId, all: Counts) -> Counts {
        match self.parts.get(&group) {
            Some(part) => Counts { dirty: part.dirty, writeback: part.under_way, ..all },
            None => Counts {
                dirty: all.dirty - self.parts.values().map(|it| it.dirty).sum::<u64>(),
                writeback: all.writeback - self.parts.values().map(|it| it.under_way).sum::<u64>(),
                ..all
            },
        }
    }

    /// Pages of a file became dirty (or, below zero, clean) and are (or are not) being written.
    pub fn changed(&mut self, file: u64, dirty: i64, under_way: i64) {
        if self.parts.is_empty() {
            return;
        }
        let owner = self.owner(file);
        if let Some(part) = self.parts.get_mut(&owner) {
            let add = |to: u64, more| to.checked_add_signed(more).expect("it was counted before");
            part.dirty = add(part.dirty, dirty);
            part.under_way = add(part.under_way, under_way);
        }
    }

    /// Pages are going to be written, at a tick.
    pub fn note_started(&mut self, now: u64, hz: u64) {
        self.completed.begin(now, hz);
    }

    /// A page of a group has come to the disk.
    pub fn note_completed(&mut self, group: CgroupId) {
        self.completed.add(group);
    }

    /// What a group completed of late, and all did.
    pub fn share(&self, group: CgroupId, now: u64, hz: u64) -> (u64, u64) {
        self.completed.share(group, now, hz)
    }

    /// A group brings a page of a file into memory by writing to it.
    pub fn note_came(&mut self, file: u64, page: u64, group: CgroupId) {
        if self.is_on && self.owner(file) != group {
            self.guests.insert(page, group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rules;
    use base::{Hz, TimerWheel};
    use block::{Kernel, Version};

    const A: CgroupId = CgroupId(1);

    fn fresh() -> Writeback {
        let wheel = TimerWheel::new(Hz::new(250).expect("a rate of ticks"), 12);
        Writeback::new(&Rules::of(Kernel::of(Version::V6_12)), wheel, 10_000)
    }

    fn groups() -> Groups {
        let mut groups = Groups::default();
        groups.set_on(true);
        groups
    }

    #[test]
    fn a_file_belongs_to_who_dirties_it_first() {
        let mut groups = groups();
        groups.claim(1, A, fresh);
        groups.claim(1, CgroupId::ROOT, fresh);
        groups.claim(2, CgroupId::ROOT, fresh);
        groups.claim(2, A, fresh);
        assert_eq!((groups.owner(1), groups.owner(2)), (A, CgroupId::ROOT));
        assert_eq!(groups.all(), [CgroupId::ROOT, A]);
    }

    #[test]
    fn without_groups_of_their_own_everything_is_the_roots() {
        let mut groups = Groups::default();
        groups.claim(1, A, fresh);
        assert_eq!(groups.owner(1), CgroupId::ROOT);
        assert_eq!(groups.all(), [CgroupId::ROOT]);
    }

    #[test]
    fn what_no_other_group_has_is_the_roots() {
        let mut groups = groups();
        groups.claim(1, A, fresh);
        groups.changed(1, 5, 0);
        groups.changed(1, -2, 2);
        groups.changed(2, 4, 0);
        let all = Counts { cached: 20, dirty: 7, writeback: 2 };
        let of = |group| (groups.counts(group, all).dirty, groups.counts(group, all).writeback);
        assert_eq!((of(A), of(CgroupId::ROOT)), ((3, 2), (4, 0)));
    }
}
