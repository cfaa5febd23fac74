//! Tasks that want a lock: of the disk's contents, or of a file's contents or map. Whose turn it is
//! says [`fs::file_lock`].

use super::Task;
use crate::tasks::Wait;
use crate::world::World;
use fs::file_lock::{FileLock, Guarded, Mode};
use std::future::poll_fn;
use std::task::Poll;

/// Which lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lock {
    /// Of the disk, where it is written through the page cache.
    Disk,
    /// Of a file.
    File(usize, Guarded),
}

impl Task {
    /// Waits until a lock may be had.
    pub(crate) async fn acquire(&self, lock: Lock, want: Mode) {
        let mut waits_since = None;
        poll_fn(|_| {
            let mut world = self.world();
            let it = lock_in(&mut world, lock);
            if it.admits(self.id()) || it.grant(self.id(), want) {
                return Poll::Ready(());
            }
            if self.poll_before_sleep(&mut world).is_pending() {
                return Poll::Pending;
            }
            if lock_in(&mut world, lock).grant(self.id(), want) {
                return Poll::Ready(());
            }
            let hz = world.cache().hz();
            let patience = hz.jiffies_from_millis(world.guest().files.map_patience).0;
            let now = world.tick();
            let it = lock_in(&mut world, lock);
            match waits_since {
                // Woken, and somebody else was faster.
                Some(since) if now > since + patience => it.promise(self.id()),
                Some(_) => {}
                None => {
                    it.wait(self.id(), want);
                    waits_since = Some(now);
                }
            }
            self.wait(&mut world, Wait::Map)
        })
        .await;
    }

    /// Gives a lock back, and lets the next one have it when nobody else keeps it.
    pub(crate) fn release(&self, lock: Lock) {
        let mut world = self.world();
        let next = match lock {
            Lock::Disk => world.storage().disk_lock().release().unwrap_or_default(),
            Lock::File(file, guarded) => world.files().release(file, guarded),
        };
        next.into_iter().for_each(|it| world.wake_from(it));
    }
}

fn lock_in(world: &mut World, lock: Lock) -> &mut FileLock {
    match lock {
        Lock::Disk => world.storage().disk_lock(),
        Lock::File(file, guarded) => world.files().lock_of(file, guarded),
    }
}
