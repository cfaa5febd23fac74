//! Changes of metadata: handles, reading what is changed, and who waits for whom.

use super::Ext4Io;
use crate::tasks::Wait;
use block::Flags;
use fs::ext4::journal::{JournalWait, Start};
use fs::inode::{Inode, Leaf};
use std::future::poll_fn;
use std::task::Poll;

/// Blocks that a change of an inode may change (observed: jbd2_handle_start).
pub(super) const CHANGE: u64 = 3;

/// A change that is made as a whole.
#[must_use = "a handle that is not ended holds up every commit"]
pub(super) struct Handle {
    /// The transaction that it belongs to.
    pub transaction: u64,
    credits: u64,
}

impl Ext4Io<'_> {
    /// Begins a change of at most so many blocks.
    pub(super) async fn begin_handle(&self, credits: u64) -> Handle {
        loop {
            let started = {
                let now = self.tick();
                let mut storage = self.storage();
                let expires = storage.commit_deadline(now);
                storage.ext4().journal.start(self.id(), credits, expires)
            };
            match started {
                Start::Started(start) => {
                    if start.is_first {
                        self.note_beginning().await;
                    }
                    return Handle { transaction: start.transaction, credits };
                }
                Start::Waits(wait) => {
                    self.wake_committer();
                    self.wait_for_journal(wait).await;
                }
                Start::NeedsRoom => self.make_room_in_log().await,
            }
        }
    }

    /// A transaction begins, and notes when.
    pub(super) async fn note_beginning(&self) {
        self.world().arm_committer();
        self.compute(self.costs().kernel_clock).await;
    }

    /// Changes a block of metadata, which the task reads before if it must.
    pub(super) async fn change(&self, block: u64) {
        loop {
            if self.cache().is_written(block) {
                self.wait_until_written(block).await;
            } else if self.ext4().journal.is_shadowed(block) {
                self.wait_for_journal(JournalWait::Logged(block)).await;
            } else {
                break;
            }
        }
        self.storage().changed(block);
    }

    /// Ends a change.
    pub(super) fn end_handle(&self, handle: Handle) {
        self.end_credits(handle.credits);
    }

    /// Ends a change of at most so many blocks.
    pub(super) fn end_credits(&self, credits: u64) {
        let now = self.tick();
        let effects = self.storage().end_handle(credits, now);
        self.apply(effects);
    }

    /// Changes what the table of inodes says of a file, in a handle of its own.
    pub(super) async fn change_inode(&self, index: usize, change: impl FnOnce(&mut Inode, u64)) {
        let handle = self.begin_handle(CHANGE).await;
        let table = self.ext4().table_block(index);
        self.change(table).await;
        change(self.ext4().inode(index), handle.transaction);
        self.end_handle(handle);
    }

    /// Reads a block of metadata that is not known yet.
    pub(super) async fn read_metadata(&self, block: u64) {
        self.read_block(block, Flags::META.with(Flags::PRIO)).await;
    }

    /// Reads the block that says where the log lies, if it is not known (observed on 6.12: without
    /// flags).
    pub(super) async fn read_journal_map(&self) {
        let map = self.ext4().journal_map();
        if let Some(block) = map {
            self.read_block(block, Flags::NONE).await;
        }
    }

    async fn read_block(&self, block: u64, flags: Flags) {
        let is_new = self.ext4().learn(block);
        if !is_new || self.cache().holds(block) {
            return;
        }
        self.read_alone(block, flags).await;
        self.wait_for_page(block).await;
    }

    /// Tells the task that commits that it is wanted.
    pub(super) fn wake_committer(&self) {
        let committer = self.ext4().committer();
        self.notify(committer);
    }

    /// Sleeps until something of the journal has come about.
    pub(super) async fn wait_for_journal(&self, what: JournalWait) {
        let mut has_slept = false;
        poll_fn(|_| {
            let mut world = self.world();
            // Who waited for new handles to be let in looks again by itself; who waits for a commit
            // is woken by every one. When the last handle has ended, one that was reserved may
            // begin before the commit goes on.
            let looks_again = matches!(what, JournalWait::Committed(_) | JournalWait::Quiet);
            let is_enough = has_slept && !looks_again;
            if is_enough || !world.ext4().journal.must_wait(what) {
                return Poll::Ready(());
            }
            if self.poll_before_sleep(&mut world).is_pending() {
                return Poll::Pending;
            }
            if !world.ext4().journal.must_wait(what) {
                return Poll::Ready(());
            }
            has_slept = true;
            world.ext4().journal.wait(self.id(), what);
            self.wait(&mut world, Wait::Journal)
        })
        .await;
    }

    /// Changes what says where the blocks of a file are, after its extents changed.
    pub(super) async fn tend_leaf(&self, file: usize, transaction: u64, leaf: Leaf) {
        let changes = self.ext4().tend_leaf(file, transaction, leaf);
        for block in changes {
            self.change(block).await;
        }
    }

    /// Changes what says which blocks of a group are used.
    pub(super) async fn change_maps(&self, group: u64) {
        let maps = self.ext4().maps(group);
        for block in maps {
            self.change(block).await;
        }
    }
}
