//! The flusher among files: oldest first, so much of each at a time (rule flusher-3).
//!
//! What has been dirty for half a minute is written when the flusher wakes; everything is while too
//! much is dirty, and as long as nothing has been written to the disk. All rounds for one of these
//! reasons are done under one plug. ext4's data carry no flag, those of XFS that they are
//! background work; metadata of ext4 that were committed are written to their places, while XFS has
//! a task for that. Each control group that has writeback of its own has a flusher, which looks at
//! the group's files.
//!
// Divergence: a sync waits until what is written in the background is done, instead of ending it
// (rule flusher-2).

use super::FileIo;
use block::{CgroupId, Flags, PlugFlush};
use fs::files::FlushOf;
use fs::{Format, all_pages, key};

/// Buffers of the disk carry these (observed on 6.12).
const METADATA: Flags = Flags::META.with(Flags::PRIO);
const DISK: usize = 0;

/// What made the flusher write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// Something became dirty before a tick.
    Old {
        before: u64,
    },
    Much,
}

/// What the flusher of a group does when it is awake.
pub(super) async fn work(io: FileIo<'_>, group: CgroupId) {
    let mut was_asleep = true;
    let now = loop {
        finish_syncs(io, group, was_asleep).await;
        let now = io.tick();
        write_background(io, group, now).await;
        if !is_awaited(io, group) {
            break now;
        }
        was_asleep = false;
    };
    let mut world = io.world();
    if world.storage().dirty_files(group, u64::MAX).is_empty() {
        world.cache().writeback_of(group).visited(now, false, false);
    }
    world.cache().writeback_of(group).sleeps(now);
}

/// What has been dirty for long, and everything while that is too much, until a sync comes.
async fn write_background(io: FileIo<'_>, group: CgroupId, now: u64) {
    let looks = io.world().cache().writeback_of(group).looks_for_old(now);
    if let Some(before) = looks {
        write(io, group, Why::Old { before }).await;
    }
    write(io, group, Why::Much).await;
}

/// Whether a sync waits for the flusher of a group.
fn is_awaited(io: FileIo<'_>, group: CgroupId) -> bool {
    !io.files().syncs_of(group).is_empty()
}

/// Does what a sync waits for, and what it asks for besides. A flusher that is asleep comes to the
/// latter first if sync sleeps for another file system in between; one that is at work comes to it
/// last. Observed on 6.1.192 and 6.12.117: writeback_queue, writeback_exec and writeback_start.
async fn finish_syncs(io: FileIo<'_>, group: CgroupId, was_asleep: bool) {
    let syncs = io.files().syncs_of(group);
    if syncs.is_empty() {
        return;
    }
    let asks_for_more = syncs.iter().any(|it| it.1 != FlushOf::Room);
    let sleeps_before = FlushOf::Sync { sleeps_before: true };
    let begins_softly = was_asleep && syncs.iter().any(|it| it.1 == sleeps_before);
    let files = io.storage().dirty_files(group, u64::MAX);
    if begins_softly {
        write_once(io, group, files.clone()).await;
    }
    write_all(io, group, files).await;
    for (sync, why) in syncs {
        io.files().end_sync(group, sync, why);
        io.notify(sync);
    }
    if asks_for_more && !begins_softly {
        let files = io.storage().dirty_files(group, u64::MAX);
        write_once(io, group, files).await;
    }
}

/// Everything that is dirty of some files, for sync.
async fn write_all(io: FileIo<'_>, group: CgroupId, mut files: Vec<usize>) {
    files.retain(|file| *file != DISK);
    io.queue().start_plug(io.id());
    for file in files {
        let pages = 0..all_pages(file).end - key(file, 0);
        let progress = io.write_file_pages(file, pages, Flags::SYNC, u64::MAX).await;
        io.end_visit(file);
        estimate(io, group, progress.written);
    }
    io.finish_plug(PlugFlush::Explicit).await;
}

/// What sync asks for and does not wait for: visits of every file in turn, until they are clean.
/// Observed on 6.12: the lengths of visits; metadata that were committed before are among it, and
/// nothing carries SYNC.
async fn write_once(io: FileIo<'_>, group: CgroupId, mut left: Vec<usize>) {
    io.queue().start_plug(io.id());
    while !left.is_empty() {
        for file in std::mem::take(&mut left) {
            if file == DISK {
                let blocks = io.storage().dirty_buffers();
                io.on_ext4().write_buffers(&blocks, METADATA).await;
                io.forget_if_clean(file);
                continue;
            }
            let now = io.tick();
            let most = io.cache().visit(group, now, u64::MAX);
            let written = visit(io, file, most, Flags::NONE).await;
            estimate(io, group, written);
            if written >= most {
                left.push(file);
            }
        }
    }
    io.finish_plug(PlugFlush::Explicit).await;
}

/// Rounds among files, under one plug (rule flusher-3).
async fn write(io: FileIo<'_>, group: CgroupId, why: Why) {
    let (before, mut left) = match why {
        Why::Old { before } => {
            let mut storage = io.storage();
            let pages = storage.cache().counts_of(group).dirty;
            (before, pages + storage.dirty_files(group, u64::MAX).len() as u64)
        }
        Why::Much => (u64::MAX, u64::MAX),
    };
    io.queue().start_plug(io.id());
    while left > 0 && !is_awaited(io, group) && (why != Why::Much || io.is_too_much(group)) {
        io.storage().begin_round(group, before);
        let round = round(io, group, before, left).await;
        if round.is_idle() {
            break;
        }
        left = left.saturating_sub(round.written);
    }
    io.finish_plug(PlugFlush::Explicit).await;
}

/// What became of a round.
#[derive(Clone, Copy, Default)]
struct Round {
    /// Pages that were written.
    written: u64,
    /// Files that have nothing dirty any more. A round in which there was one is not the last, even
    /// if nothing had to be written for that (rule flusher-3).
    cleaned: u64,
}

impl Round {
    fn is_idle(&self) -> bool {
        self.written == 0 && self.cleaned == 0
    }
}

/// Visits files in turn that became dirty before a tick or were left over, for a tenth of a second
/// or until so many pages are written.
async fn round(io: FileIo<'_>, group: CgroupId, before: u64, left: u64) -> Round {
    let background = match io.format() {
        Format::Ext4 => Flags::NONE,
        Format::Xfs => Flags::BACKGROUND,
    };
    let (mut all, begun) = (Round::default(), io.tick());
    loop {
        let Some(file) = io.storage().next_in_round(group) else { break };
        let now = io.tick();
        let most = io.cache().visit(group, now, left - all.written);
        let written = visit(io, file, most, background).await;
        all.written += written;
        let mut world = io.world();
        let now = world.tick();
        all.cleaned += u64::from(world.storage().end_visit(file, now));
        world.storage().files().leave_over(file, (written >= most).then_some(before), now);
        let tenth = u64::from(world.cache().hz().get() / 10);
        drop(world);
        estimate(io, group, written);
        if all.written >= left || !all.is_idle() && now > begun + tenth {
            break;
        }
    }
    all
}

/// Behind a visit the bandwidth is estimated anew. A file that was clean says nothing of it.
// observed on 6.1, 6.12 and 7.3: sync of a file behind one that was synced
fn estimate(io: FileIo<'_>, group: CgroupId, written: u64) {
    if written > 0 {
        let mut world = io.world();
        let now = world.tick();
        world.cache().estimate(group, now);
    }
}

/// Writes at most so many pages of a file, from where it was left.
async fn visit(io: FileIo<'_>, file: usize, most: u64, flags: Flags) -> u64 {
    if file == DISK {
        let blocks = io.storage().dirty_buffers();
        io.on_ext4().write_buffers(&blocks, METADATA.with(Flags::BACKGROUND)).await;
        return blocks.len() as u64;
    }
    let length = all_pages(file).end - key(file, 0);
    let from = io.files().cursor(file);
    let mut last = io.write_file_pages(file, from..length, flags, most).await;
    let mut written = last.written;
    let comes_to_end = written < most;
    match io.format() {
        // Observed on 6.1, 6.12 and 7.3: ext4 goes on at the first page, XFS in its next visit.
        Format::Ext4 => {
            io.files().leave_off(file, last.end);
            if comes_to_end && from > 0 {
                last = io.write_file_pages(file, 0..from, flags, most - written).await;
                written += last.written;
                io.files().leave_off(file, last.end);
            }
        }
        Format::Xfs if comes_to_end => io.files().begin_anew(file),
        Format::Xfs => io.files().leave_off(file, last.end),
    }
    written
}

impl FileIo<'_> {
    /// A file with nothing dirty is not looked at by the flusher.
    pub(super) fn forget_if_clean(&self, file: usize) {
        let now = self.tick();
        self.storage().forget_if_clean(file, now);
    }

    /// A part of a file that somebody wants to be written has been. Only the flusher sees whether
    /// anything of it is still dirty, so the file keeps its place among the others (observed on
    /// 6.1, 6.12 and 7.3: sync of a file that was synced before and is dirty again).
    pub(super) fn end_part(&self, file: usize) {
        self.cache().end_round(file as u64);
    }

    /// The flusher has submitted so much as was to be written of a file.
    pub(super) fn end_visit(&self, file: usize) {
        let now = self.tick();
        self.storage().end_visit(file, now);
    }

    fn is_too_much(&self, group: CgroupId) -> bool {
        let now = self.tick();
        self.storage().is_too_much(group, now)
    }
}
