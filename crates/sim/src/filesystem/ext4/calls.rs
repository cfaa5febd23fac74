//! What ext4 does in calls that every file system knows: times and sizes, making durable, sync.

use super::handles::CHANGE;
use super::journal::JournalWait;
use crate::filesystem::all_pages;
use crate::task::Task;
use block::{Flags, PlugFlush};
use std::ops::Range;

/// Blocks that giving a write its places may change. // observed: jbd2_handle_start
const ALLOCATE: u64 = 33;

impl Task {
    /// Waits until what was last changed of a file is in the journal.
    pub(in crate::filesystem) async fn commit_file(
        &self,
        number: u64,
        index: usize,
        only_data: bool,
    ) {
        let (transaction, will_flush, is_running) = {
            let mut world = self.world();
            let fs = world.fs();
            let inode = fs.inode(index);
            let id = if only_data { inode.data_changed_in } else { inode.changed_in };
            (id, fs.journal.will_flush(id), fs.journal.committed < id)
        };
        if is_running {
            if self.world().fs().journal.request(transaction) {
                self.wake_committer();
            }
            self.wait_for_journal(JournalWait::Committed(transaction)).await;
        }
        let barrier = self.world().fs().mount.barrier;
        if !will_flush && barrier {
            self.flush(number).await;
        }
    }

    pub(in crate::filesystem) async fn change_modified(&self, index: usize, now: u64) {
        self.change_inode(index, |inode, transaction| {
            (inode.modified, inode.changed_in) = (Some(now), transaction);
        })
        .await;
    }

    pub(in crate::filesystem) async fn change_accessed(&self, index: usize, now: u64) {
        self.change_inode(index, |inode, transaction| {
            (inode.accessed, inode.changed_in) = (Some(now), transaction);
        })
        .await;
    }

    /// A file that has a place for its end is so long now: the inode says so at once.
    pub(in crate::filesystem) async fn grow_on_disk(&self, index: usize, size: u64) {
        if size <= self.world().files().inode(index).disk_size {
            return;
        }
        self.change_inode(index, |inode, transaction| {
            inode.disk_size = size;
            (inode.changed_in, inode.data_changed_in) = (transaction, transaction);
        })
        .await;
    }

    /// Puts a file on the list of orphans, or takes it off when its size is known.
    pub(in crate::filesystem) async fn change_orphan(&self, index: usize, size: Option<u64>) {
        let handle = self.begin_handle(CHANGE).await;
        let (table, superblock) = {
            let mut world = self.world();
            let fs = world.fs();
            (fs.table_block(index), fs.layout.superblock())
        };
        self.change(table).await;
        self.change(superblock).await;
        if let Some(size) = size {
            let mut world = self.world();
            let inode = world.fs().inode(index);
            (inode.size, inode.disk_size) = (size, size);
            (inode.changed_in, inode.data_changed_in) = (handle.transaction, handle.transaction);
        }
        self.end_handle(handle);
    }

    /// Gives the blocks of a write places where they have none.
    pub(in crate::filesystem) async fn allocate_directly(&self, index: usize, pages: Range<u64>) {
        let mut at = pages.start;
        while at < pages.end {
            let known = self.world().fs().inode(index).find(at);
            if let Some(extent) = known {
                let end = (at + extent.length).min(pages.end);
                self.world().fs().inode(index).convert(at..end);
                at = end;
                continue;
            }
            let hole = self.world().fs().inode(index).hole(at);
            let handle = self.begin_handle(ALLOCATE).await;
            let blocks = at..pages.end.min(hole.end);
            let found = self.allocate(index, blocks, handle.transaction, true).await;
            let table = self.world().fs().table_block(index);
            self.change(table).await;
            {
                let mut world = self.world();
                let inode = world.fs().inode(index);
                inode.changed_in = handle.transaction;
                inode.data_changed_in = handle.transaction;
            }
            self.order(index, pages.clone());
            self.end_handle(handle);
            let Some((placed, _)) = found else { break };
            at = placed.end;
        }
    }

    /// For sync: commits, and writes metadata to their places.
    pub(in crate::filesystem) async fn commit_all(&self) {
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
}
