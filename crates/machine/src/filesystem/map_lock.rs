//! Tasks that want the map of a file: which of its blocks are where on the disk. Whose turn it is
//! says [`fs::map_lock`].

use super::FileIo;
use crate::tasks::Wait;
use fs::map_lock::{Mode, patience};
use std::future::poll_fn;
use std::task::Poll;

impl FileIo<'_> {
    /// Waits until nobody else holds the map of a file, or keeps it.
    pub(super) async fn lock_map(&self, file: usize) {
        self.acquire_map(file, Mode::Exclusive).await;
    }

    /// Waits until nobody holds the map of a file, which stays as it is from then on.
    pub(super) async fn lock_map_shared(&self, file: usize) {
        self.acquire_map(file, Mode::Shared).await;
    }

    async fn acquire_map(&self, file: usize, want: Mode) {
        let mut waits_since = None;
        poll_fn(|_| {
            let mut world = self.world();
            let map = world.files().map_of(file);
            if map.admits(self.id()) || map.grant(self.id(), want) {
                return Poll::Ready(());
            }
            if self.poll_before_sleep(&mut world).is_pending() {
                return Poll::Pending;
            }
            if world.files().map_of(file).grant(self.id(), want) {
                return Poll::Ready(());
            }
            let hz = world.cache().hz();
            let patience = patience(hz, world.guest().files.map_patience);
            let now = world.tick();
            let map = world.files().map_of(file);
            match waits_since {
                // Woken, and somebody else was faster.
                Some(since) if now > since + patience => map.promise(self.id()),
                Some(_) => {}
                None => {
                    map.wait(self.id(), want);
                    waits_since = Some(now);
                }
            }
            self.wait(&mut world, Wait::Map)
        })
        .await;
    }

    /// Lets the next one hold the map, when nobody keeps it any more.
    pub(super) fn unlock_map(&self, file: usize) {
        let mut world = self.world();
        let next = world.files().release_map(file);
        next.into_iter().for_each(|it| world.wake_from(it));
    }
}
