//! The flusher: the kernel's task that writes what is dirty (rules flusher).
//!
//! It is born when something is dirtied for the first time. It wakes every five seconds while
//! anything is dirty, and writes what has been for half a minute; or when a writer finds that much
//! is dirty, and writes until little is. It goes around the disk, in visits of some size each. Each
//! control group that has writeback of its own has a flusher for it.

use crate::task::Task;
use crate::tasks::KernelTask;
use block::{CgroupId, ContextId, Flags, PlugFlush};

/// Tells the flusher of a group that it is wanted, now or some day.
pub(crate) fn wake(task: &Task, group: CgroupId) {
    let known = task.world().flushers.get(&group).copied();
    let flusher = known.unwrap_or_else(|| spawn(task, group));
    task.notify(flusher);
}

fn spawn(task: &Task, group: CgroupId) -> ContextId {
    let mut world = task.world();
    let number = world.flushers.len() + 1;
    let flusher = world.spawn_kernel_task(KernelTask::Flusher(group, number));
    world.flushers.insert(group, flusher);
    flusher
}

/// What made the flusher write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Something has been dirty for long.
    Old,
    /// Much is dirty.
    Much,
}

/// What the flusher of a group does.
pub(crate) async fn run(task: Task, group: CgroupId) -> i32 {
    loop {
        let (wakes, asked, now) = {
            let mut world = task.world();
            let writeback = world.cache.writeback_of(group);
            (writeback.wakes, writeback.is_asked, world.tick())
        };
        if !asked && wakes.is_none_or(|wakes| wakes > now) {
            match wakes {
                Some(tick) => {
                    let at = task.world().start_of_tick(tick);
                    task.notified_until(at).await;
                }
                None => task.notified().await,
            }
            continue;
        }
        task.world().cache.writeback_of(group).wakes = None;
        let has_files = task.world().fs.is_some();
        match has_files {
            true => crate::filesystem::flush(&task, group).await,
            false => work(&task).await,
        }
    }
}

/// What it does when it is awake, on a disk without files, where there is only the root's.
async fn work(task: &Task) {
    let looks = {
        let mut world = task.world();
        let now = world.tick();
        world.cache.writeback.looks(now)
    };
    if looks {
        write(task, Work::Old).await;
    }
    if is_too_much(task) {
        write(task, Work::Much).await;
    }
    let mut world = task.world();
    let now = world.tick();
    world.cache.writeback.sleeps(now);
}

fn is_too_much(task: &Task) -> bool {
    let world = task.world();
    let now = world.tick();
    world.cache.is_too_much(CgroupId::ROOT, now)
}

/// Visits, under one plug.
async fn write(task: &Task, work: Work) {
    let mut left = match work {
        Work::Old => task.world().cache.counts().dirty,
        Work::Much => u64::MAX,
    };
    task.world().queue.start_plug(task.id());
    while left > 0 && (work == Work::Old || is_too_much(task)) {
        let most = task.world().cache.visit(CgroupId::ROOT, left);
        let written = visit(task, most).await;
        left = left.saturating_sub(written);
        let mut world = task.world();
        let now = world.tick();
        let is_dirty = world.cache.counts().dirty > 0;
        // What was left over because the visit was long is gone on with at once.
        world.cache.writeback.visited(now, is_dirty, written >= most);
        world.cache.estimate(CgroupId::ROOT, now);
        if written == 0 || !is_dirty {
            break;
        }
    }
    task.finish_plug(PlugFlush::Explicit).await;
}

/// Writes at most so many pages, from where it was last; the answer is how many.
async fn visit(task: &Task, most: u64) -> u64 {
    let mut page = task.world().cache.writeback.cursor;
    let mut written = 0;
    while written < most {
        let batch = task.world().cache.next_batch(&mut std::iter::once(page..u64::MAX).collect());
        if batch.is_empty() {
            page = 0;
            break;
        }
        for next in batch {
            page = next + 1;
            task.lock(next).await;
            // One that is being written already is left for later.
            if task.world().cache.is_dirty(next) && !task.world().cache.is_written(next) {
                task.write_page(next, Flags::BACKGROUND).await;
                written += 1;
            }
            if written == most {
                break;
            }
        }
    }
    task.world().cache.writeback.cursor = page;
    written
}
