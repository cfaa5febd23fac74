//! What is dirty: which files, since when, whose turn it is with the flusher, where it was in each,
//! and who waits until everything is written.
//!
//! A file with something dirty is in one of three queues: it is *dirty*, it is visited *now*, or
//! *later*, as its last visit was not long enough for all (rule flusher-3).

use super::Files;
use base::Instant;
use block::{CgroupId, ContextId};
use std::collections::BTreeMap;

/// For what somebody wants everything to be written, and waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushOf {
    /// sync(2), which may sleep for another file system before it comes to this one.
    Sync {
        /// Whether it does.
        sleeps_before: bool,
    },
    /// A write of XFS that found too little room: what becomes of pages that are not written yet
    /// may take less than was set aside (observed on 6.12).
    Room,
}

/// A file with something dirty, and the tick since when.
type Since = (usize, u64);

/// Files with something dirty.
#[derive(Default)]
pub(super) struct Dirty {
    /// Oldest first.
    dirty: Vec<Since>,
    /// Those that the flusher visits in this round.
    now: Vec<Since>,
    /// Those that it visits in the next round.
    later: Vec<Since>,
    /// Where the flusher goes on in each file.
    cursors: BTreeMap<usize, u64>,
    /// Who waits for the flusher of a group.
    syncs: Vec<(CgroupId, ContextId, FlushOf)>,
    /// Until when another file system has something dirty, if sync(2) is not called.
    elsewhere: Option<Instant>,
}

impl Files {
    /// A file has something dirty since a tick.
    pub fn note_dirty(&mut self, file: usize, now: u64) {
        if self.dirty_files().all(|(it, _)| it != file) {
            self.dirty.dirty.push((file, now));
        }
    }

    /// A file has nothing dirty any more.
    pub fn note_clean(&mut self, file: usize) {
        self.take_dirty(file);
    }

    /// Files that have something dirty since a tick or longer, in the order of visits.
    pub fn dirty_since(&self, tick: u64) -> impl Iterator<Item = usize> {
        self.dirty_files().filter(move |(_, since)| *since <= tick).map(|(file, _)| file)
    }

    /// Begins a round of the flusher among some files, if it has visited all of the last one: those
    /// that were left for later, then those that became dirty before a tick.
    pub fn begin_round(&mut self, among: &[usize], before: u64) {
        let it = &mut self.dirty;
        if it.now.iter().any(|(file, _)| among.contains(file)) {
            return;
        }
        it.now.extend(it.later.extract_if(.., |(file, _)| among.contains(file)));
        let is_due = |it: &mut Since| among.contains(&it.0) && it.1 < before;
        it.now.extend(it.dirty.extract_if(.., is_due));
    }

    /// Whom the flusher visits next in this round, of some files.
    pub fn next_in_round(&self, among: &[usize]) -> Option<usize> {
        self.dirty.now.iter().map(|(file, _)| *file).find(|file| among.contains(file))
    }

    /// A file is left over by its visit, which was too short in a round for what became dirty
    /// before that tick. If the file did, it goes on in the next round. Else it is the last of the
    /// dirty ones: dirty from now on, if it was before the others.
    // Observed on 6.12, writeback_queue_io and writeback_single_inode: what the rounds for too much
    // leave over is visited once when the flusher wakes for old files, though it is not old.
    pub fn leave_over(&mut self, file: usize, too_short: Option<u64>, now: u64) {
        let Some(since) = self.take_dirty(file) else { return };
        let dirty = &mut self.dirty.dirty;
        let is_older = dirty.last().is_some_and(|(_, last)| since < *last);
        match too_short.is_some_and(|before| since < before) {
            true => self.dirty.later.push((file, since)),
            false => dirty.push((file, if is_older { now } else { since })),
        }
    }

    fn dirty_files(&self) -> impl Iterator<Item = Since> {
        let it = &self.dirty;
        it.now.iter().chain(&it.later).chain(&it.dirty).copied()
    }

    fn take_dirty(&mut self, file: usize) -> Option<u64> {
        let it = &mut self.dirty;
        let mut taken = None;
        for queue in [&mut it.dirty, &mut it.now, &mut it.later] {
            queue.retain(|(other, since)| {
                taken = if *other == file { Some(*since) } else { taken };
                *other != file
            });
        }
        taken
    }

    /// The page at which the flusher goes on in a file.
    pub fn cursor(&self, file: usize) -> u64 {
        self.dirty.cursors.get(&file).copied().unwrap_or(0)
    }

    /// The flusher goes on behind the last page that was written of a file, if one was.
    pub fn leave_off(&mut self, file: usize, behind: u64) {
        if behind > 0 {
            self.dirty.cursors.insert(file, behind);
        }
    }

    /// The flusher goes on at the first page of a file next time.
    pub fn begin_anew(&mut self, file: usize) {
        self.dirty.cursors.remove(&file);
    }

    /// Another file system has something dirty, which its flusher writes at that time.
    pub fn note_dirty_elsewhere(&mut self, until: Instant) {
        self.dirty.elsewhere = Some(until);
    }

    /// sync(2) is called; the answer is whether it finds something dirty elsewhere.
    pub fn sync_elsewhere(&mut self, now: Instant) -> bool {
        self.dirty.elsewhere.take().is_some_and(|until| now < until)
    }

    /// A task waits until the flusher of a group has written everything.
    pub fn begin_sync(&mut self, group: CgroupId, task: ContextId, why: FlushOf) {
        self.dirty.syncs.push((group, task, why));
    }

    /// The flusher of a group has written everything that a task waited for.
    pub fn end_sync(&mut self, group: CgroupId, task: ContextId, why: FlushOf) {
        self.dirty.syncs.retain(|it| *it != (group, task, why));
    }

    /// Who waits for the flusher of a group to write everything.
    pub fn syncs_of(&self, group: CgroupId) -> Vec<(ContextId, FlushOf)> {
        let syncs = self.dirty.syncs.iter().filter(|(of, ..)| *of == group);
        syncs.map(|(_, task, why)| (*task, *why)).collect()
    }

    /// Whether a task waits for a flusher to write everything.
    pub fn awaits_sync(&self, task: ContextId) -> bool {
        self.dirty.syncs.iter().any(|(_, it, _)| *it == task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mount;
    use block::{Kernel, Version};

    fn files() -> Files {
        Files::new(Mount::default(), Kernel::of(Version::V6_12), 2)
    }

    #[test]
    fn files_take_turns_and_the_old_do_not_keep_others_waiting() {
        let mut files = files();
        let all = [1, 2, 3];
        files.note_dirty(1, 10);
        files.note_dirty(2, 20);
        files.begin_round(&all, 100);
        files.note_dirty(3, 30);
        assert_eq!(files.next_in_round(&all), Some(1));
        files.leave_over(1, Some(100), 40);
        files.begin_round(&all, 100);
        assert_eq!(files.next_in_round(&all), Some(2), "the round is not over");
        files.leave_over(2, None, 50);
        assert_eq!(files.next_in_round(&all), None);
        files.begin_round(&all, 100);
        let order = std::iter::from_fn(|| {
            let next = files.next_in_round(&all)?;
            files.note_clean(next);
            Some(next)
        });
        assert_eq!(order.collect::<Vec<_>>(), [1, 3, 2]);
    }

    #[test]
    fn what_rounds_for_too_much_leave_over_has_one_visit_more_among_the_old() {
        let mut files = files();
        files.note_dirty(1, 10);
        files.begin_round(&[1], u64::MAX);
        files.leave_over(1, Some(u64::MAX), 40);
        files.begin_round(&[1], 5);
        assert_eq!(files.next_in_round(&[1]), Some(1));
        files.leave_over(1, Some(5), 50);
        files.begin_round(&[1], 5);
        assert_eq!(files.next_in_round(&[1]), None);
    }

    #[test]
    fn a_file_that_could_not_be_finished_is_as_old_as_the_queue_allows() {
        let mut files = files();
        files.note_dirty(1, 10);
        files.begin_round(&[1], 11);
        files.leave_over(1, None, 40);
        assert_eq!(files.dirty_since(10).collect::<Vec<_>>(), [1], "nobody is younger");
        files.note_dirty(2, 20);
        files.begin_round(&[1], 11);
        files.leave_over(1, None, 40);
        assert_eq!(files.dirty_since(39).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_round_of_old_files_leaves_young_ones() {
        let mut files = files();
        files.note_dirty(1, 10);
        files.note_dirty(2, 20);
        files.begin_round(&[1, 2], 15);
        files.note_clean(1);
        assert_eq!(files.next_in_round(&[1, 2]), None);
        assert_eq!(files.dirty_since(20).collect::<Vec<_>>(), [2]);
    }
}
