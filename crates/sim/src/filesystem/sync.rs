//! sync(2): everything of the file system and of the disk (filesystems 2.9 rule 4).
//!
//! The flusher writes data and metadata; then the file system does what it must: the running
//! transaction is committed, or the log forced.

use super::{Format, key};
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
        {
            let mut world = self.world();
            world.files().syncs.push(self.id());
            world.cache.writeback.is_asked = true;
        }
        wake_flusher(self);
        self.listen().await;
        let end = self.world().files().inodes.len();
        self.wait_for_written(key(1, 0)..key(end, 0)).await;
        match self.format() {
            Format::Ext4 => self.commit_all().await,
            Format::Xfs => self.force_all().await,
        }
    }

    /// Drops everything that is cached and clean, as /proc/sys/vm/drop_caches does.
    pub fn drop_caches(&self) {
        self.world().cache.drop_range(key(1, 0)..u64::MAX);
    }
}
