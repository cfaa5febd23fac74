//! Tasks that want a lock of a file: of its contents, or of its map, which says which of its blocks
//! are where on the disk. Whose turn it is says [`fs::file_lock`].

use super::FileIo;
use crate::tasks::Wait;
use fs::Format;
use fs::file_lock::{Guarded, Mode, patience};
use std::future::poll_fn;
use std::task::Poll;

impl FileIo<'_> {
    /// Waits until nobody else reads or changes a file.
    pub(super) async fn lock_contents(&self, file: usize) {
        self.acquire(file, Guarded::Contents, Mode::Exclusive).await;
    }

    /// Lets others read or change a file.
    pub(super) fn unlock_contents(&self, file: usize) {
        self.release(file, Guarded::Contents);
    }

    /// Waits until nobody changes a file, where reads do.
    pub(super) async fn begin_reading(&self, file: usize) {
        if self.format() == Format::Xfs {
            self.acquire(file, Guarded::Contents, Mode::Shared).await;
        }
    }

    /// Lets others change a file that was read.
    pub(super) fn end_reading(&self, file: usize) {
        if self.format() == Format::Xfs {
            self.release(file, Guarded::Contents);
        }
    }

    /// Waits until nobody else holds the map of a file, or keeps it.
    pub(super) async fn lock_map(&self, file: usize) {
        self.acquire(file, Guarded::Map, Mode::Exclusive).await;
    }

    /// Waits until nobody holds the map of a file, which stays as it is from then on.
    pub(super) async fn lock_map_shared(&self, file: usize) {
        self.acquire(file, Guarded::Map, Mode::Shared).await;
    }

    async fn acquire(&self, file: usize, guarded: Guarded, want: Mode) {
        let mut waits_since = None;
        poll_fn(|_| {
            let mut world = self.world();
            let lock = world.files().lock_of(file, guarded);
            if lock.admits(self.id()) || lock.grant(self.id(), want) {
                return Poll::Ready(());
            }
            if self.poll_before_sleep(&mut world).is_pending() {
                return Poll::Pending;
            }
            if world.files().lock_of(file, guarded).grant(self.id(), want) {
                return Poll::Ready(());
            }
            let hz = world.cache().hz();
            let patience = patience(hz, world.guest().files.map_patience);
            let now = world.tick();
            let lock = world.files().lock_of(file, guarded);
            match waits_since {
                // Woken, and somebody else was faster.
                Some(since) if now > since + patience => lock.promise(self.id()),
                Some(_) => {}
                None => {
                    lock.wait(self.id(), want);
                    waits_since = Some(now);
                }
            }
            self.wait(&mut world, Wait::Map)
        })
        .await;
    }

    /// Lets the next one hold the map, when nobody keeps it any more.
    pub(super) fn unlock_map(&self, file: usize) {
        self.release(file, Guarded::Map);
    }

    fn release(&self, file: usize, guarded: Guarded) {
        let mut world = self.world();
        let next = world.files().release(file, guarded);
        next.into_iter().for_each(|it| world.wake_from(it));
    }
}
