//! The tasks of XFS: the worker that forces the log twice a minute, the one that takes away what has
//! no name any more, and the one that writes metadata to their places, `xfsaild/vda` (rules
//! xfs-ail-1 to xfs-ail-3).

use super::Xfs;
use crate::task::Task;
use crate::tasks::KernelTask;
use crate::world::World;
use block::{ContextId, Flags, Op};
use fs::xfs::layout::SECTORS;
use fs::xfs::log::Item;
use std::ops::Range;

/// Seconds between two forces (xfssyncd_centisecs).
const PERIOD: u64 = 30;
/// The superblock.
const SUPERBLOCK: Range<u64> = 0..1;

/// Creates the tasks.
pub(in crate::filesystem) fn spawn(world: &mut World) -> Vec<ContextId> {
    let placer = world.spawn_kernel_task(KernelTask::Placer);
    world.xfs().placer = placer;
    let forcer = world.spawn_kernel_task(KernelTask::Forcer);
    let mounted = world.guest.ticks_to_mount;
    let first = world.cache.writeback.wheel().of_period(None, mounted, PERIOD);
    let at = world.start_of_tick(first);
    world.clock.set_alarm(forcer, at);
    let inactivator = world.spawn_kernel_task(KernelTask::Inactivator);
    world.xfs().inactivator = inactivator;
    vec![placer, forcer, inactivator]
}

/// The worker that takes away what has no name any more, a tick after it has lost it.
/// // observed on 6.12
pub(crate) async fn take_away(task: Task) -> i32 {
    loop {
        task.notified().await;
        let at = {
            let world = task.world();
            world.start_of_tick(world.tick() + 1)
        };
        task.sleep_until(at).await;
        task.take_unlinked_away().await;
    }
}

/// The worker. A log to which nothing happens any more gets a superblock, twice, so that it can say
/// that it is clean.
pub(crate) async fn work(task: Task) -> i32 {
    let mut since = None;
    loop {
        // It comes for the first time when it is due.
        let at = {
            let world = task.world();
            let mounted = world.guest.ticks_to_mount;
            let tick = world.cache.writeback.wheel().of_period(since, mounted, PERIOD);
            since = Some(tick);
            world.start_of_tick(tick)
        };
        task.notified_until(at).await;
        let covers = {
            let mut world = task.world();
            let fs = world.xfs();
            let covers = fs.covers_left > 0 && fs.log.is_idle();
            if covers {
                let left = fs.covers_left - 1;
                fs.change_buffer(SUPERBLOCK);
                fs.covers_left = left;
            }
            // Observed on 6.12: what is changed goes to its place later; if nothing is logged, then
            // what is about to be.
            fs.places_all = true;
            covers
        };
        if !covers {
            task.world().wake_placer_if_wanted();
        }
        task.force_all().await;
        task.world().wake_placer_if_wanted();
    }
}

/// The task that writes metadata to their places.
pub(crate) async fn place(task: Task) -> i32 {
    loop {
        task.notified().await;
        let items = {
            let mut world = task.world();
            let fs = world.xfs();
            if fs.log.is_placed() {
                continue;
            }
            fs.places_all = false;
            fs.log.to_be_placed()
        };
        let places = task.world().xfs().places(&items);
        if places.is_empty() {
            continue;
        }
        task.move_metadata(Op::Write, &places, Flags::META).await;
        let mut world = task.world();
        let fs = world.xfs();
        for item in items {
            fs.log.placed(item);
            if let Item::Buffer(sector, _) = item {
                fs.inodes_parts.remove(&sector);
            }
            if let Item::Inode(number) = item {
                fs.with_fork.remove(&number);
                let file = fs.files.inodes.iter_mut().find(|it| it.number == number);
                file.into_iter().for_each(|it| it.is_unsynced = false);
            }
        }
    }
}

impl Xfs {
    /// Where things are, in ascending order; inodes that lie together are written together.
    fn places(&self, items: &[Item]) -> Vec<Range<u64>> {
        let place = |item: &Item| match *item {
            Item::Buffer(start, sectors) => start..start + sectors,
            Item::Inode(number) => self.layout.cluster(number),
            Item::Cancelled(sector) => sector..sector,
        };
        let places = items.iter().map(place).filter(|it| !it.is_empty());
        let mut places: Vec<Range<u64>> = places.collect();
        places.sort_by_key(|it| it.start);
        places.dedup();
        debug_assert!(places.iter().all(|it| it.end - it.start <= 4 * SECTORS));
        places
    }
}

impl World {
    /// Something has lost its name.
    pub(super) fn wake_inactivator(&mut self) {
        let inactivator = self.xfs().inactivator;
        self.notify(inactivator);
    }

    /// What is in memory is to go, and so what is logged has to go to its place.
    // observed on 6.12: drop_caches
    pub(in crate::filesystem) fn drop_inodes(&mut self) {
        self.xfs().places_all = true;
        self.wake_placer_if_wanted();
    }

    /// Wakes the task that writes metadata to their places, if there is a reason.
    pub(super) fn wake_placer_if_wanted(&mut self) {
        let fs = self.xfs();
        if (fs.places_all || fs.log.is_crowded()) && !fs.log.is_placed() {
            let placer = fs.placer;
            self.notify(placer);
        }
    }
}
