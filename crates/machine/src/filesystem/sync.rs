//! sync(2): everything of the file system and of the disk (rule sync-3).
//!
//! The flusher writes data and metadata; then the file system does what it must: the running
//! transaction is committed, or the log forced.

use super::flush::FlushOf;
use super::{FileSystem, Format, key};
use crate::buffered::wake_flusher;
use crate::task::Task;

impl Task {
    /// Writes everything that is dirty to the disk.
    pub async fn sync(&self) {
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        if self.world().fs.is_some() {
            self.sync_files().await;
        }
        self.leave_kernel();
    }

    async fn sync_files(&self) {
        self.flush_all(FlushOf::Sync).await;
        match self.format() {
            Format::Ext4 => self.commit_all().await,
            Format::Xfs => self.force_all().await,
        }
    }

    /// Has the flushers write everything that is dirty, and waits for it.
    pub(super) async fn flush_all(&self, why: FlushOf) {
        let groups = self.world().cache.groups.all();
        for group in groups {
            let mut world = self.world();
            world.files().syncs.push((group, self.id(), why));
            world.cache.writeback_of(group).is_asked = true;
            drop(world);
            wake_flusher(self, group);
        }
        while self.world().files().syncs.iter().any(|(_, task, _)| *task == self.id()) {
            self.notified().await;
        }
        let end = self.world().files().inodes.len();
        self.wait_for_written(key(1, 0)..key(end, 0)).await;
    }

    /// Drops everything that is cached and clean, as /proc/sys/vm/drop_caches does.
    // Divergence: metadata stay. (Those of ext4 are kept by its journal for a while; inodes of XFS
    // are read again with their cluster, which is in memory.)
    pub fn drop_caches(&self) {
        let mut world = self.world();
        let first = if world.fs.is_some() { key(1, 0) } else { 0 };
        world.cache.forget_range(first..u64::MAX);
        if matches!(world.fs, Some(FileSystem::Xfs(_))) {
            world.drop_inodes();
        }
    }
}
