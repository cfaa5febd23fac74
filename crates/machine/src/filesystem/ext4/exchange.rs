//! EXT4_IOC_MOVE_EXT: blocks of two files change places, as e4defrag does to put a file together.
//!
//! Observed on 6.12 (trace of jbd2 and ext4, debugfs): it goes block by block, each in a handle of its
//! own. What a file has in a block it keeps: a written one is read, if it is not in memory, and is
//! dirty at its new place, where it must be before the commit. What the donor gets has no contents. A
//! page that is dirty is in the way: the running transaction is committed, which writes pages that it
//! needs, and after four of them the call fails. Where one of the files has a hole, nothing changes,
//! and behind the end of one there is nothing to be exchanged.
//!
// Divergence: it does not wait for direct I/O of the files.

use super::Ext4;
use crate::buffered::PAGE;
use crate::file::{Errno, File, Kind};
use crate::filesystem::{Format, key};
use crate::task::Task;
use block::Flags;
use fs::inode::Inode;
use std::ops::Range;

/// Blocks that an exchange may change. // observed: jbd2_handle_start
const EXCHANGE: u64 = 65;
/// How often a page that is dirty makes it wait for a commit. // observed: jbd2_start_commit
const RETRIES: u32 = 4;

impl Task {
    /// The blocks of a range of bytes change places with those at the same place of another file;
    /// the answer is how many bytes did.
    pub async fn exchange_blocks(
        &self,
        file: &File,
        donor: &File,
        bytes: Range<u64>,
    ) -> Result<u64, Errno> {
        let (Kind::File(index), Kind::File(other)) = (file.kind, donor.kind) else {
            return Err(Errno::Enotty);
        };
        if self.world().format() != Format::Ext4 {
            return Err(Errno::Enotty);
        }
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let ends_before = |file| self.world().files().inode(file).size <= bytes.start;
        let result = match index == other || ends_before(index) || ends_before(other) {
            true => Err(Errno::Einval),
            false => self.exchange_each(index, other, &bytes).await,
        };
        self.leave_kernel();
        let length = bytes.end - bytes.start;
        result.map(|blocks| length.min(blocks * PAGE))
    }

    async fn exchange_each(
        &self,
        index: usize,
        donor: usize,
        bytes: &Range<u64>,
    ) -> Result<u64, Errno> {
        let mut moved = 0;
        let mut result = Ok(());
        for block in bytes.start / PAGE..bytes.end.div_ceil(PAGE) {
            let has_both = {
                let mut world = self.world();
                let fs = world.fs();
                fs.inode(index).is_mapped(block) && fs.inode(donor).is_mapped(block)
            };
            if has_both {
                result = self.exchange_patiently(index, donor, block).await;
                if result.is_err() {
                    break;
                }
                moved += 1;
            }
        }
        if moved > 0 || result.is_err() {
            let mut world = self.world();
            world.give_back_kept(index);
            world.give_back_kept(donor);
        }
        match (result, moved) {
            (Err(errno), _) => Err(errno),
            (Ok(()), 0) => Err(Errno::Enodata),
            (Ok(()), moved) => Ok(moved),
        }
    }

    /// Exchanges a block, after commits if its page is in the way.
    async fn exchange_patiently(
        &self,
        index: usize,
        donor: usize,
        block: u64,
    ) -> Result<(), Errno> {
        for _ in 0..RETRIES {
            match self.exchange_block(index, donor, block).await {
                Err(Errno::Ebusy) => self.force_commit().await,
                result => return result,
            }
        }
        self.exchange_block(index, donor, block).await
    }

    async fn exchange_block(&self, index: usize, donor: usize, block: u64) -> Result<(), Errno> {
        let handle = self.begin_handle(EXCHANGE).await;
        let pages = [key(index, block), key(donor, block)];
        for page in pages {
            if self.world().cache.is_written(page) {
                self.wait_until_written(page).await;
            }
        }
        let is_written = {
            let mut world = self.world();
            world.fs().inode(index).find(block).is_some_and(|it| it.is_written)
        };
        let is_dirty = |page: &u64| self.world().cache.is_dirty(*page);
        if pages.iter().any(is_dirty) {
            self.end_handle(handle);
            return Err(Errno::Ebusy);
        }
        if is_written {
            self.have_page(pages[0]).await;
        }
        self.exchange_places(index, donor, block, handle.transaction).await;
        if is_written {
            self.dirty_at_new_place(index, block);
        }
        self.end_handle(handle);
        Ok(())
    }

    /// Reads a page that is not in memory, by itself.
    async fn have_page(&self, page: u64) {
        if !self.world().cache.holds(page) {
            self.read_alone(page, Flags::NONE).await;
        }
        if !self.world().cache.is_ready(page) {
            self.wait_for_page(page).await;
        }
    }

    async fn exchange_places(&self, index: usize, donor: usize, block: u64, transaction: u64) {
        let (first, second) = (index.min(donor), index.max(donor));
        self.lock_map(first).await;
        self.lock_map(second).await;
        // Observed: one extent more may need a leaf that is spare when they have joined.
        for file in [index, donor] {
            let leaf = self.world().fs().inode(file).isolate(block);
            self.tend_leaf(file, transaction, leaf).await;
        }
        self.world().fs().exchange_places(index, donor, block);
        for file in [index, donor] {
            let leaf = self.world().fs().inode(file).join_alike(block);
            self.tend_leaf(file, transaction, leaf).await;
        }
        self.unlock_map(second);
        self.unlock_map(first);
        for file in [index, donor] {
            let table = self.world().fs().table_block(file);
            self.change(table).await;
            self.note_changed_data(file, transaction);
        }
    }

    /// What a block has in it must get to its new place before the commit.
    fn dirty_at_new_place(&self, index: usize, block: u64) {
        let page = key(index, block);
        let was_clean = {
            let mut world = self.world();
            let now = world.tick();
            world.claim_page(self.id(), page);
            let is_first = world.cache.dirty(self.id(), page, now);
            world.files().note_dirty(index, now);
            is_first
        };
        if was_clean {
            let owner = self.world().cache.owner(page);
            crate::buffered::wake_flusher(self, owner);
        }
        self.order(index, block..block + 1);
    }
}

impl Ext4 {
    /// A block of a file and that of its donor get each other's places; the donor's has no contents
    /// then.
    fn exchange_places(&mut self, index: usize, donor: usize, block: u64) {
        let place = |inode: &Inode| inode.find(block).map(|it| it.start);
        let (Some(of_file), Some(of_donor)) =
            (place(&self.inodes[index]), place(&self.inodes[donor]))
        else {
            return;
        };
        self.inodes[index].replace(block, of_donor);
        self.inodes[donor].replace(block, of_file);
        self.inodes[donor].lose_contents(block);
    }
}
