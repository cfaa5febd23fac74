//! The flusher among files: oldest first, so much of each at a time (filesystems 2.6).
//!
//! What has been dirty for half a minute is written when the flusher wakes; everything is while too
//! much is dirty, and as long as nothing has been written to the disk. Each round is done under one
//! plug. ext4's data carry no flag, those of XFS that they are background work; metadata of ext4
//! that were committed are written to their places, while XFS has a task for that.

use super::{Format, all_pages, key};
use crate::task::Task;
use crate::world::World;
use block::{ContextId, Flags, PlugFlush};

/// Buffers of the disk carry these. // observed on 6.12
const METADATA: Flags = Flags::META.with(Flags::PRIO);
const DISK: usize = 0;

/// What made the flusher write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Old,
    Much,
}

/// What the flusher does when it is awake.
pub(crate) async fn work(task: &Task) {
    let syncs = std::mem::take(&mut task.world().files().syncs);
    if !syncs.is_empty() {
        for sync in write_all(task, syncs).await {
            task.tell(sync);
        }
    }
    let (now, looks) = {
        let mut world = task.world();
        let now = world.tick();
        (now, world.cache.writeback.looks_for_old(now))
    };
    if let Some(before) = looks {
        let old: Vec<usize> = {
            let mut world = task.world();
            let dirty = world.files().dirty.iter();
            dirty.filter(|(_, since)| *since <= before).map(|(file, _)| *file).collect()
        };
        write(task, old, Why::Old).await;
    }
    let all =
        || -> Vec<usize> { task.world().files().dirty.iter().map(|(file, _)| *file).collect() };
    while task.world().is_too_much() {
        if write(task, all(), Why::Much).await == 0 {
            break;
        }
    }
    let mut world = task.world();
    if world.files().dirty.is_empty() {
        world.cache.writeback.visited(now, false, false);
    }
    world.cache.writeback.sleeps(now);
}

/// Everything that is dirty, for sync, oldest first; the answer is who waits for it. What becomes
/// dirty meanwhile of files carries SYNC.
async fn write_all(task: &Task, syncs: Vec<ContextId>) -> Vec<ContextId> {
    let mut files: Vec<usize> = {
        let mut world = task.world();
        world.files().dirty.iter().map(|(file, _)| *file).collect()
    };
    write_once(task, &files).await;
    files.retain(|file| *file != DISK);
    task.world().queue.start_plug(task.id());
    for file in files {
        let pages = 0..all_pages(file).end - key(file, 0);
        task.write_file_pages(file, pages, Flags::SYNC, u64::MAX).await;
        task.world().forget_if_clean(file);
    }
    task.finish_plug(PlugFlush::Explicit).await;
    syncs
}

/// What sync asks for first: visits of every file in turn, until they are clean. The flusher comes
/// to that before what sync waits for. Observed on 6.12: the lengths of visits; metadata that were
/// committed before are among it, and nothing carries SYNC.
async fn write_once(task: &Task, files: &[usize]) {
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
            let most = task.world().cache.visit(u64::MAX);
            let written = visit(task, file, most, Flags::NONE).await;
            let mut world = task.world();
            let now = world.tick();
            world.cache.estimate(now);
            if written >= most {
                left.push(file);
            }
        }
    }
    task.finish_plug(PlugFlush::Explicit).await;
}

/// Visits files under one plug; the answer is how many pages were written.
async fn write(task: &Task, files: Vec<usize>, why: Why) -> u64 {
    if files.is_empty() {
        return 0;
    }
    let mut all = 0;
    task.world().queue.start_plug(task.id());
    for file in files {
        loop {
            if why == Why::Much && !task.world().is_too_much() {
                break;
            }
            let most = task.world().cache.visit(u64::MAX);
            let background = match task.format() {
                Format::Ext4 => Flags::NONE,
                Format::Xfs => Flags::BACKGROUND,
            };
            let written = visit(task, file, most, background).await;
            all += written;
            let mut world = task.world();
            let now = world.tick();
            world.forget_if_clean(file);
            world.cache.estimate(now);
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
    /// Whether so much is dirty that the flusher goes on; anything is while the disk is unknown.
    fn is_too_much(&self) -> bool {
        let is_unknown = self.cache.writeback.is_unknown();
        self.cache.is_too_much() || is_unknown && self.cache.counts().dirty > 0
    }

    /// A file with nothing dirty is not looked at by the flusher.
    pub(super) fn forget_if_clean(&mut self, file: usize) {
        let is_clean = self.cache.next_dirty(all_pages(file)).is_none();
        if is_clean {
            let fs = self.files();
            fs.dirty.retain(|(it, _)| *it != file);
            if fs.dirty.is_empty() {
                let now = self.tick();
                self.cache.writeback.visited(now, false, false);
            }
        }
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
