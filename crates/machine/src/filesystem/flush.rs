//! The flusher among files: oldest first, so much of each at a time (rule flusher-3).
//!
//! What has been dirty for half a minute is written when the flusher wakes; everything is while too
//! much is dirty, and as long as nothing has been written to the disk. Each round is done under one
//! plug. ext4's data carry no flag, those of XFS that they are background work; metadata of ext4
//! that were committed are written to their places, while XFS has a task for that. Each control
//! group that has writeback of its own has a flusher, which looks at the group's files.
//!
// Divergence: a sync waits until what is written in the background is done, instead of ending it
// (rule flusher-2).

use super::{Format, all_pages, key};
use crate::task::Task;
use crate::world::World;
use block::{CgroupId, ContextId, Flags, PlugFlush};

/// Buffers of the disk carry these (observed on 6.12).
const METADATA: Flags = Flags::META.with(Flags::PRIO);
const DISK: usize = 0;

/// For what somebody wants everything to be written, and waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushOf {
    /// sync(2).
    Sync,
    /// A write of XFS that found too little room: what becomes of pages that are not written yet
    /// may take less than was set aside (observed on 6.12).
    Room,
}

/// What made the flusher write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Old,
    Much,
}

/// What the flusher of a group does when it is awake.
pub(crate) async fn work(task: &Task, group: CgroupId) {
    let syncs = task.world().syncs_of(group);
    if !syncs.is_empty() {
        let begins_softly = syncs.iter().any(|it| it.1 == FlushOf::Sync);
        write_all(task, group, begins_softly).await;
        for (sync, why) in syncs {
            task.world().files().syncs.retain(|it| *it != (group, sync, why));
            task.notify(sync);
        }
    }
    let (now, looks) = {
        let mut world = task.world();
        let now = world.tick();
        (now, world.cache.writeback_of(group).looks_for_old(now))
    };
    if let Some(before) = looks {
        let old = task.world().dirty_files(group, before);
        write(task, group, old, Why::Old).await;
    }
    while task.world().is_too_much(group) {
        let all = task.world().dirty_files(group, u64::MAX);
        if write(task, group, all, Why::Much).await == 0 {
            break;
        }
    }
    let mut world = task.world();
    if world.dirty_files(group, u64::MAX).is_empty() {
        world.cache.writeback_of(group).visited(now, false, false);
    }
    world.cache.writeback_of(group).sleeps(now);
    // A sync that came while it worked was asked for while it was awake: it goes on with that.
    let is_asked = !world.syncs_of(group).is_empty();
    world.cache.writeback_of(group).is_asked = is_asked;
}

/// Everything that is dirty, for sync, oldest first. What becomes dirty meanwhile of files carries
/// SYNC.
async fn write_all(task: &Task, group: CgroupId, begins_softly: bool) {
    let mut files = task.world().dirty_files(group, u64::MAX);
    if begins_softly {
        write_once(task, group, &files).await;
    }
    files.retain(|file| *file != DISK);
    task.world().queue.start_plug(task.id());
    for file in files {
        let pages = 0..all_pages(file).end - key(file, 0);
        task.write_file_pages(file, pages, Flags::SYNC, u64::MAX).await;
        task.world().end_visit(file);
    }
    task.finish_plug(PlugFlush::Explicit).await;
}

/// What sync asks for first: visits of every file in turn, until they are clean. The flusher comes
/// to that before what sync waits for. Observed on 6.12: the lengths of visits; metadata that were
/// committed before are among it, and nothing carries SYNC.
async fn write_once(task: &Task, group: CgroupId, files: &[usize]) {
    let mut left = files.to_vec();
    task.world().queue.start_plug(task.id());
    while !left.is_empty() {
        for file in std::mem::take(&mut left) {
            if file == DISK {
                let blocks = task.world().dirty_buffers();
                task.write_buffers(&blocks, METADATA).await;
                task.world().forget_if_clean(file);
                continue;
            }
            let most = task.world().cache.visit(group, u64::MAX);
            let written = visit(task, file, most, Flags::NONE).await;
            let mut world = task.world();
            let now = world.tick();
            world.cache.estimate(group, now);
            if written >= most {
                left.push(file);
            }
        }
    }
    task.finish_plug(PlugFlush::Explicit).await;
}

/// Visits files under one plug; the answer is how many pages were written.
async fn write(task: &Task, group: CgroupId, files: Vec<usize>, why: Why) -> u64 {
    if files.is_empty() {
        return 0;
    }
    let mut all = 0;
    task.world().queue.start_plug(task.id());
    for file in files {
        loop {
            if why == Why::Much && !task.world().is_too_much(group) {
                break;
            }
            let most = task.world().cache.visit(group, u64::MAX);
            let background = match task.format() {
                Format::Ext4 => Flags::NONE,
                Format::Xfs => Flags::BACKGROUND,
            };
            let written = visit(task, file, most, background).await;
            all += written;
            let mut world = task.world();
            let now = world.tick();
            world.end_visit(file);
            world.cache.estimate(group, now);
            // What is left of a file waits until the others have had their turn.
            if written < most || why == Why::Much {
                break;
            }
        }
    }
    task.finish_plug(PlugFlush::Explicit).await;
    all
}

/// Writes at most so many pages of a file, from where it was left.
async fn visit(task: &Task, file: usize, most: u64, flags: Flags) -> u64 {
    if file == DISK {
        let blocks = task.world().dirty_buffers();
        task.write_buffers(&blocks, METADATA.with(Flags::BACKGROUND)).await;
        return blocks.len() as u64;
    }
    let length = all_pages(file).end - key(file, 0);
    let from = task.world().files().cursors.get(&file).copied().unwrap_or(0);
    let mut written = task.write_file_pages(file, from..length, flags, most).await;
    if written < most && from > 0 {
        let more = most - written;
        written += task.write_file_pages(file, 0..from, flags, more).await;
    }
    let next = match written < most {
        true => 0,
        false => task.world().cursor_behind(file, from, written),
    };
    task.world().files().cursors.insert(file, next);
    written
}

impl World {
    /// Whether so much is dirty that the flusher goes on; anything is while the disk is unknown, at
    /// first or because it was not written for a while.
    fn is_too_much(&mut self, group: CgroupId) -> bool {
        let now = self.tick();
        let is_unknown = self.cache.is_unknown(group, now);
        let dirty = self.cache.groups.counts(group, self.cache.counts()).dirty;
        self.cache.is_too_much(group, now) || is_unknown && dirty > 0
    }

    /// The files of a group that have something dirty since a tick or longer, oldest first.
    fn dirty_files(&mut self, group: CgroupId, before: u64) -> Vec<usize> {
        let old = self.files().dirty.iter().filter(|(_, since)| *since <= before);
        let mut files: Vec<usize> = old.map(|(file, _)| *file).collect();
        files.retain(|file| self.cache.groups.owner(*file as u64) == group);
        files
    }

    /// Who waits for the flusher of a group to write everything.
    fn syncs_of(&mut self, group: CgroupId) -> Vec<(ContextId, FlushOf)> {
        let syncs = self.files().syncs.iter().filter(|(of, ..)| *of == group);
        syncs.map(|(_, task, why)| (*task, *why)).collect()
    }

    /// A file with nothing dirty is not looked at by the flusher.
    pub(super) fn forget_if_clean(&mut self, file: usize) {
        let is_clean = self.cache.next_dirty(all_pages(file)).is_none();
        if is_clean {
            self.files().dirty.retain(|(it, _)| *it != file);
            let group = self.cache.groups.owner(file as u64);
            if self.dirty_files(group, u64::MAX).is_empty() {
                let now = self.tick();
                self.cache.writeback_of(group).visited(now, false, false);
            }
        }
    }

    /// So much as was to be written of a file has been submitted.
    pub(super) fn end_visit(&mut self, file: usize) {
        self.forget_if_clean(file);
        self.cache.end_round(file as u64);
    }

    /// Blocks of metadata that may go to their places.
    pub(super) fn dirty_buffers(&self) -> Vec<u64> {
        self.cache.dirty_runs(all_pages(DISK)).into_iter().flatten().collect()
    }

    /// Where the next visit of a file begins: behind the last page of this one.
    fn cursor_behind(&mut self, file: usize, from: u64, written: u64) -> u64 {
        let keys = key(file, from)..all_pages(file).end;
        self.cache.next_dirty(keys).map_or(from + written, |next| next - key(file, 0))
    }
}
