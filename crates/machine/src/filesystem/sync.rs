//! Everything of the file system and of the disk (rule sync-3).
//!
//! The flusher writes data and metadata; then the file system does what it must: the running
//! transaction is committed, or the log forced.

use super::FileIo;
use fs::files::FlushOf;
use fs::{Format, key};

impl FileIo<'_> {
    /// Writes everything that is dirty to the disk.
    pub async fn sync_all(&self) {
        let now = self.now();
        let sleeps_before = self.files().sync_elsewhere(now);
        self.flush_all(FlushOf::Sync { sleeps_before }).await;
        match self.format() {
            Format::Ext4 => self.on_ext4().commit_all().await,
            Format::Xfs => self.on_xfs().force_all().await,
        }
    }

    /// Has the flushers write everything that is dirty, and waits for it.
    pub(super) async fn flush_all(&self, why: FlushOf) {
        let groups = self.cache().groups();
        for group in groups {
            let mut world = self.world();
            world.files().begin_sync(group, self.id(), why);
            world.cache().writeback_of(group).is_asked = true;
            world.wake_flusher(group);
        }
        while self.files().awaits_sync(self.id()) {
            self.notified().await;
        }
        let end = self.files().count();
        self.wait_for_written(key(1, 0)..key(end, 0)).await;
    }
}
