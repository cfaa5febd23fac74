//! Changes of metadata: handles, reading what is changed, and who waits for whom.

use super::Ext4;
use crate::task::Task;
use crate::tasks::Wait;
use crate::world::World;
use block::{ContextId, Flags};
use fs::ext4::journal::{Expiry, JournalWait, Start};
use fs::ext4::layout::GROUP;
use fs::inode::{Inode, Leaf};
use std::future::poll_fn;
use std::task::Poll;

/// Blocks that a change of an inode may change. // observed: jbd2_handle_start
pub(super) const CHANGE: u64 = 3;

/// A change that is made as a whole.
#[must_use = "a handle that is not ended holds up every commit"]
pub(super) struct Handle {
    /// The transaction that it belongs to.
    pub transaction: u64,
    credits: u64,
}

impl Task {
    /// Begins a change of at most so many blocks.
    pub(super) async fn begin_handle(&self, credits: u64) -> Handle {
        loop {
            let started = {
                let mut world = self.world();
                let expires = world.commit_deadline();
                world.fs().journal.start(credits, expires)
            };
            match started {
                Start::Started(start) => {
                    if start.is_first {
                        self.world().arm_committer();
                        // It notes when it began.
                        self.compute(self.costs().kernel_clock).await;
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

    /// Changes a block of metadata, which the task reads before if it must.
    pub(super) async fn change(&self, block: u64) {
        loop {
            if self.world().cache.is_written(block) {
                self.wait_until_written(block).await;
            } else if self.world().fs().journal.is_shadowed(block) {
                self.wait_for_journal(JournalWait::Logged(block)).await;
            } else {
                break;
            }
        }
        self.world().changed(block);
    }

    pub(super) fn end_handle(&self, handle: Handle) {
        self.world().end_handle(self.id(), handle.credits);
    }

    /// Changes what the table of inodes says of a file, in a handle of its own.
    pub(super) async fn change_inode(&self, index: usize, change: impl FnOnce(&mut Inode, u64)) {
        let handle = self.begin_handle(CHANGE).await;
        let table = self.world().fs().table_block(index);
        self.change(table).await;
        change(self.world().fs().inode(index), handle.transaction);
        self.end_handle(handle);
    }

    /// Reads a block of metadata that is not known yet.
    pub(super) async fn read_metadata(&self, block: u64) {
        {
            let mut world = self.world();
            if !world.fs().known.insert(block) || world.cache.holds(block) {
                return;
            }
        }
        self.read_alone(block, Flags::META.with(Flags::PRIO)).await;
        self.wait_for_page(block).await;
    }

    /// Tells the task that commits that it is wanted.
    pub(super) fn wake_committer(&self) {
        let committer = self.world().fs().committer;
        self.notify(committer);
    }

    /// Sleeps until something of the journal has come about.
    pub(super) async fn wait_for_journal(&self, what: JournalWait) {
        let mut has_slept = false;
        poll_fn(|_| {
            let mut world = self.world();
            // Who waited for new handles to be let in looks again by itself; who waits for a commit
            // is woken by every one.
            let is_enough = has_slept && !matches!(what, JournalWait::Committed(_));
            if is_enough || !world.fs().journal.must_wait(what) {
                return Poll::Ready(());
            }
            if self.poll_before_sleep(&mut world).is_pending() {
                return Poll::Pending;
            }
            if !world.fs().journal.must_wait(what) {
                return Poll::Ready(());
            }
            has_slept = true;
            world.fs().journal.wait(self.id(), what);
            self.wait(&mut world, Wait::Journal)
        })
        .await;
    }

    /// What the extents of a file need after they changed: the leaf is changed, made or given up.
    /// Extents without a leaf are in the inode.
    pub(super) async fn tend_leaf(&self, file: usize, transaction: u64, leaf: Leaf) {
        let changes = {
            let mut world = self.world();
            let fs = world.fs();
            let mut changes = fs.tend_leaf(file, transaction, leaf);
            if !fs.inode(file).has_leaves() {
                changes.push(fs.table_block(file));
            }
            changes
        };
        for block in changes {
            self.change(block).await;
        }
    }

    /// Changes what says which blocks of a group are used.
    pub(super) async fn change_maps(&self, group: u64) {
        let maps = self.world().fs().maps(group);
        for block in maps {
            self.change(block).await;
        }
    }
}

impl Ext4 {
    /// The blocks that say which blocks of a group are used.
    fn maps(&self, group: u64) -> [u64; 2] {
        [self.layout.block_bitmap(group), self.layout.descriptor(group)]
    }

    /// Makes a leaf for the extents of a file or gives it up; the answer is what changes with that.
    pub(super) fn tend_leaf(&mut self, file: usize, transaction: u64, leaf: Leaf) -> Vec<u64> {
        let group = self.data_group(file);
        match leaf {
            Leaf::Stays => self.inodes[file].changed_leaves(false),
            Leaf::Needed | Leaf::Cut => {
                let wanted = self.inodes[file].wanted_places().max(1);
                let places: Vec<u64> =
                    (0..wanted).filter_map(|_| self.space.metadata_block(group)).collect();
                self.inodes[file].give_places(&places);
                let mut changes = self.inodes[file].changed_leaves(true);
                for place in places {
                    changes.extend(self.maps(place / GROUP));
                    changes.push(place);
                }
                changes
            }
            Leaf::Spare => {
                let mut changes = Vec::new();
                for block in self.inodes[file].take_leaves() {
                    self.journal.forget(block);
                    self.space.free_after(transaction, block..block + 1);
                    changes.extend(self.maps(block / GROUP));
                }
                changes
            }
        }
    }
}

impl World {
    /// When a transaction is committed at the latest that begins now.
    pub fn commit_deadline(&mut self) -> Expiry {
        let (now, seconds) = (self.tick(), self.fs().mount.commit_seconds);
        let writeback = &self.cache.writeback;
        let due = now + seconds * u64::from(writeback.hz().get());
        Expiry { due, alarm: writeback.wheel().at_second(now, seconds) }
    }

    /// A handle has changed a block: its place on the disk is not written before the journal.
    pub(super) fn changed(&mut self, block: u64) {
        self.cache.undirty(block);
        let fs = self.fs();
        fs.known.insert(block);
        fs.journal.change(block);
    }

    pub(super) fn end_handle(&mut self, by: ContextId, credits: u64) {
        let woken = self.fs().journal.stop(credits);
        self.wake_from_journal(by, woken);
        let is_due = {
            let now = self.tick();
            self.fs().journal.is_due(now)
        };
        if is_due {
            let committer = self.fs().committer;
            self.notify(committer);
        }
    }
}
