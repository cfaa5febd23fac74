//! sync(2): everything of the file system and of the disk (filesystems 2.9 rule 4).
//!
//! The flusher writes the data, with SYNC where it has not begun before it is asked to; then the
//! running transaction is committed; then the task itself writes metadata to their places.

use super::journal::JournalWait;
use super::{all_pages, key};
use crate::buffered::wake_flusher;
use crate::task::Task;
use block::{Flags, PlugFlush};

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
            world.fs().syncs.push(self.id());
            world.cache.writeback.is_asked = true;
        }
        wake_flusher(self);
        self.listen().await;
        let end = self.world().fs().inodes.len();
        self.wait_for_written(key(1, 0)..key(end, 0)).await;
        let transaction = {
            let mut world = self.world();
            let journal = &world.fs().journal;
            let committing = journal.committing.as_ref().map(|it| it.0.id);
            journal.running.as_ref().map(|it| it.id).or(committing)
        };
        match transaction {
            Some(id) => {
                if self.world().fs().journal.request(id) {
                    self.wake_committer();
                }
                self.wait_for_journal(JournalWait::Committed(id)).await;
            }
            None => self.flush_besides().await,
        }
        let blocks = self.world().dirty_buffers();
        let flags = Flags::SYNC.with(Flags::META).with(Flags::PRIO);
        self.world().queue.start_plug(self.id());
        self.write_buffers(&blocks, flags).await;
        self.finish_plug(PlugFlush::Explicit).await;
        self.wait_for_written(all_pages(0)).await;
        self.world().forget_if_clean(0);
    }

    /// Drops everything that is cached and clean, as /proc/sys/vm/drop_caches does.
    pub fn drop_caches(&self) {
        self.world().cache.drop_range(key(1, 0)..u64::MAX);
    }
}
