//! What is dirty: which files, since when, where the flusher was in each, and who waits until
//! everything is written.

use super::Files;
use block::{CgroupId, ContextId};
use std::collections::BTreeMap;

/// For what somebody wants everything to be written, and waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushOf {
    /// sync(2).
    Sync,
    /// A write of XFS that found too little room: what becomes of pages that are not written yet
    /// may take less than was set aside (observed on 6.12).
    Room,
}

/// Files with something dirty.
#[derive(Default)]
pub(super) struct Dirty {
    /// Oldest first, and the tick since when.
    files: Vec<(usize, u64)>,
    /// Where the flusher goes on in each file.
    cursors: BTreeMap<usize, u64>,
    /// Who waits for the flusher of a group.
    syncs: Vec<(CgroupId, ContextId, FlushOf)>,
}

impl Files {
    /// A file has something dirty since a tick.
    pub fn note_dirty(&mut self, file: usize, now: u64) {
        let files = &mut self.dirty.files;
        if files.iter().all(|(it, _)| *it != file) {
            files.push((file, now));
        }
    }

    /// A file has nothing dirty any more.
    pub fn note_clean(&mut self, file: usize) {
        self.dirty.files.retain(|(it, _)| *it != file);
    }

    /// Files that have something dirty since a tick or longer, oldest first.
    pub fn dirty_since(&self, tick: u64) -> impl Iterator<Item = usize> {
        self.dirty.files.iter().filter(move |(_, since)| *since <= tick).map(|(file, _)| *file)
    }

    /// The page at which the flusher goes on in a file.
    pub fn cursor(&self, file: usize) -> u64 {
        self.dirty.cursors.get(&file).copied().unwrap_or(0)
    }

    /// The flusher goes on at a page of a file next time.
    pub fn set_cursor(&mut self, file: usize, page: u64) {
        self.dirty.cursors.insert(file, page);
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
