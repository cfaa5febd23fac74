//! Transactions: reading what they change, and who may look for room.

use super::XfsIo;
use crate::tasks::Wait;
use block::{Flags, Op};
use fs::xfs::layout::Part;
use std::future::poll_fn;
use std::ops::Range;
use std::task::Poll;

impl XfsIo<'_> {
    /// Reads metadata that are not known yet.
    pub(super) async fn read_metadata(&self, sectors: Range<u64>) {
        let is_new = self.xfs().learn(sectors.start);
        if is_new {
            self.move_metadata(Op::Read, &[sectors], Flags::META).await;
        }
    }

    /// Reads parts of a group.
    pub(super) async fn read_parts(&self, group: u64, parts: &[Part]) {
        for &part in parts {
            let place = self.xfs().part(group, part);
            self.read_metadata(place).await;
        }
    }

    /// Nobody else looks for room in a group: that one, or any from it on.
    pub(super) async fn lock_group(&self, group: u64, or_next: bool) -> u64 {
        poll_fn(|_| {
            let mut world = self.world();
            match world.xfs().lock_group(self.id(), group, or_next) {
                Some(found) => Poll::Ready(found),
                None => self.wait(&mut world, Wait::Directory),
            }
        })
        .await
    }

    /// Others may look for room in a group.
    pub(super) fn unlock_group(&self, group: u64) {
        let mut world = self.world();
        let waiting = world.xfs().unlock_group(group);
        for task in waiting {
            world.wake_from(task);
        }
    }

    /// The time of modification of a file.
    pub async fn log_modified(&self, index: usize) {
        let now = self.lock_map_for_time(index).await;
        self.xfs().set_modified(index, now);
        self.unlock_map(index);
    }

    /// The time of access of a file.
    pub async fn log_accessed(&self, index: usize) {
        let now = self.lock_map_for_time(index).await;
        self.xfs().set_accessed(index, now);
        self.unlock_map(index);
    }

    /// Locks the map of a file; the answer is the tick that its times are set to, for which it may
    /// have had to wait.
    async fn lock_map_for_time(&self, index: usize) -> u64 {
        let asked = self.tick();
        self.lock_map(index).await;
        let sets_asked = self.files().rules().sets_time_asked;
        if sets_asked { asked } else { self.tick() }
    }
}
