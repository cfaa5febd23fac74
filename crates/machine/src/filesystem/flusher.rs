//! The flusher: the kernel's task that writes what is dirty (rules flusher).
//!
//! It is born when something is dirtied for the first time. It wakes every five seconds while
//! anything is dirty, and writes what has been for half a minute; or when a writer finds that much
//! is dirty, and writes until little is. It goes around the disk, in visits of some size each. Each
//! control group that has writeback of its own has a flusher for it.

use super::{FileIo, flush};
use crate::pages::PageIo;
use crate::task::Task;
use crate::tasks::Wait;
use block::{CgroupId, Flags, PlugFlush};
use std::future::poll_fn;
use std::task::Poll;

/// What made the flusher write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Something has been dirty for long, or somebody wants everything on the disk.
    Old,
    /// Much is dirty.
    Much,
}

/// What the flusher of a group does.
pub(crate) async fn run(task: Task, group: CgroupId) -> i32 {
    loop {
        wait_for_due(&task, group).await;
        task.cache().writeback_of(group).wakes = None;
        let has_files = task.storage().has_files();
        match has_files {
            true => flush::work(FileIo::of(&task), group).await,
            false => work(PageIo::of(&task)).await,
        }
    }
}

/// Sleeps until it is time to look, or somebody wants something written.
async fn wait_for_due(task: &Task, group: CgroupId) {
    poll_fn(|_| {
        let mut world = task.world();
        world.clock().cancel_alarm(task.id());
        world.tasks().take_permit(task.id());
        if world.flusher_is_due(group) {
            return Poll::Ready(());
        }
        world.arm_flusher(group, task.id());
        task.wait(&mut world, Wait::Notification)
    })
    .await;
}

/// What it does when it is awake, on a disk without files, where there is only the root's.
async fn work(io: PageIo<'_>) {
    let (synced_for, looks) = {
        let mut world = io.world();
        let now = world.tick();
        let writeback = world.cache().writeback_of(CgroupId::ROOT);
        (std::mem::take(&mut writeback.synced_for), writeback.looks(now))
    };
    synced_for.iter().flatten().for_each(|task| io.notify(*task));
    for _ in 0..u32::from(synced_for.is_some()) + u32::from(looks) {
        write(io, Work::Old).await;
    }
    if is_too_much(io) {
        write(io, Work::Much).await;
    }
    let mut world = io.world();
    let now = world.tick();
    world.cache().writeback_of(CgroupId::ROOT).sleeps(now);
}

fn is_too_much(io: PageIo<'_>) -> bool {
    let mut world = io.world();
    let now = world.tick();
    world.cache().is_too_much(CgroupId::ROOT, now)
}

/// Visits, under one plug.
async fn write(io: PageIo<'_>, work: Work) {
    let mut left = match work {
        Work::Old => io.cache().counts().dirty,
        Work::Much => u64::MAX,
    };
    io.queue().start_plug(io.id());
    while left > 0 && (work == Work::Old || is_too_much(io)) {
        let now = io.tick();
        let most = io.cache().visit(CgroupId::ROOT, now, left);
        let written = visit(io, most).await;
        left = left.saturating_sub(written);
        let mut world = io.world();
        let now = world.tick();
        let is_dirty = world.cache().counts().dirty > 0;
        // What was left over because the visit was long is gone on with at once.
        let writeback = world.cache().writeback_of(CgroupId::ROOT);
        writeback.visited(now, is_dirty, written >= most);
        world.cache().estimate(CgroupId::ROOT, now);
        if written == 0 || !is_dirty {
            break;
        }
    }
    io.finish_plug(PlugFlush::Explicit).await;
}

/// Writes at most so many pages, from where it was last; the answer is how many.
async fn visit(io: PageIo<'_>, most: u64) -> u64 {
    let mut page = io.cache().writeback_of(CgroupId::ROOT).cursor;
    let mut written = 0;
    while written < most {
        let batch = io.cache().next_batch(&mut std::iter::once(page..u64::MAX).collect());
        if batch.is_empty() {
            page = 0;
            break;
        }
        for next in batch {
            page = next + 1;
            io.lock(next).await;
            // One that is being written already is left for later.
            if io.cache().is_dirty(next) && !io.cache().is_written(next) {
                io.write_page(next, Flags::BACKGROUND).await;
                written += 1;
            }
            if written == most {
                break;
            }
        }
    }
    io.cache().writeback_of(CgroupId::ROOT).cursor = page;
    written
}
