//! What ext4 does in calls that every file system knows: times and sizes, making durable, sync.

use super::Ext4Io;
use block::{Flags, PlugFlush};
use fs::all_pages;
use fs::ext4::journal::JournalWait;

impl Ext4Io<'_> {
    /// Waits until what was last changed of a file is in the journal.
    pub async fn commit_file(&self, number: u64, index: usize, only_data: bool) {
        let (transaction, will_flush, is_running) = {
            let mut fs = self.ext4();
            let inode = fs.inode(index);
            let id = if only_data { inode.data_changed_in } else { inode.changed_in };
            (id, fs.journal.will_flush(id), fs.journal.committed < id)
        };
        if is_running {
            self.commit_transaction(transaction).await;
        }
        let barrier = self.ext4().mount().barrier;
        if !will_flush && barrier {
            self.flush(number).await;
        }
    }

    /// Commits the running transaction, and waits for that.
    pub(super) async fn force_commit(&self) {
        let running = self.ext4().journal.running.as_ref().map(|it| it.id);
        if let Some(id) = running {
            self.commit_transaction(id).await;
        }
    }

    /// Waits until a transaction is on the disk, and asks for that.
    async fn commit_transaction(&self, id: u64) {
        if self.ext4().journal.request(self.id(), id) {
            self.wake_committer();
        }
        self.wait_for_journal(JournalWait::Committed(id)).await;
    }

    /// A file was modified in this tick.
    pub async fn change_modified(&self, index: usize, now: u64) {
        self.change_inode(index, |inode, transaction| {
            (inode.modified, inode.changed_in) = (Some(now), transaction);
        })
        .await;
    }

    /// A file was accessed in this tick.
    pub async fn change_accessed(&self, index: usize, now: u64) {
        self.change_inode(index, |inode, transaction| {
            (inode.accessed, inode.changed_in) = (Some(now), transaction);
        })
        .await;
    }

    /// A file that has a place for its end is so long now: the inode says so at once.
    pub async fn grow_on_disk(&self, index: usize, size: u64) {
        if size <= self.files().inode(index).disk_size {
            return;
        }
        self.change_inode(index, |inode, transaction| {
            inode.disk_size = size;
            (inode.changed_in, inode.data_changed_in) = (transaction, transaction);
        })
        .await;
    }

    /// A write that began behind the end of the file has left a hole: the rest of the page in which
    /// the file ended is zeroed, and the inode changes (rule ext4-write-7).
    pub async fn leave_hole(&self, index: usize, ended: u64) {
        self.zero_behind(index, ended).await;
        self.change_inode(index, |inode, transaction| inode.changed_in = transaction).await;
    }

    /// For sync: commits, and writes metadata to their places.
    pub async fn commit_all(&self) {
        let transaction = {
            let fs = self.ext4();
            let journal = &fs.journal;
            let committing = journal.committing.as_ref().map(|it| it.0.id);
            journal.running.as_ref().map(|it| it.id).or(committing)
        };
        match transaction {
            Some(id) => self.commit_transaction(id).await,
            None => self.flush_besides().await,
        }
        let blocks = self.storage().dirty_buffers();
        let flags = Flags::SYNC.with(Flags::META).with(Flags::PRIO);
        self.queue().start_plug(self.id());
        self.write_buffers(&blocks, flags).await;
        self.finish_plug(PlugFlush::Explicit).await;
        self.wait_for_written(all_pages(0)).await;
    }
}
