//! EXT4_IOC_MOVE_EXT: blocks of two files change places, as e4defrag does to put a file together.
//!
//! Observed on 6.12 (trace of jbd2 and ext4, debugfs): it goes block by block, each in a handle of
//! its own. What a file has in a block it keeps: a written one is read, if it is not in memory, and
//! is dirty at its new place, where it must be before the commit. What the donor gets has no
//! contents. A page that is dirty is in the way: the running transaction is committed, which writes
//! pages that it needs, and after four of them the call fails. Where one of the files has a hole,
//! nothing changes, and behind the end of one there is nothing to be exchanged.
//!
// Divergence: it does not wait for direct I/O of the files.

use super::Ext4Io;
use crate::file::Errno;
use block::Flags;
use cache::PAGE;
use fs::key;
use std::ops::Range;

/// Blocks that an exchange may change (observed: jbd2_handle_start).
const EXCHANGE: u64 = 65;
/// How often a page that is dirty makes it wait for a commit (observed: jbd2_start_commit).
const RETRIES: u32 = 4;

impl Ext4Io<'_> {
    /// The blocks of a range of bytes change places with those at the same place of another file,
    /// the donor; the answer is how many did.
    pub async fn exchange_blocks(
        &self,
        index: usize,
        donor: usize,
        bytes: &Range<u64>,
    ) -> Result<u64, Errno> {
        let mut moved = 0;
        let mut result = Ok(());
        for block in bytes.start / PAGE..bytes.end.div_ceil(PAGE) {
            let has_both = {
                let mut fs = self.ext4();
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
            let mut fs = self.ext4();
            fs.give_back_kept(index);
            fs.give_back_kept(donor);
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
            if self.cache().is_written(page) {
                self.wait_until_written(page).await;
            }
        }
        let is_written = !self.ext4().lacks_contents(index, block);
        let is_dirty = |page: &u64| self.cache().is_dirty(*page);
        if pages.iter().any(is_dirty) {
            self.end_handle(handle);
            return Err(Errno::Ebusy);
        }
        if is_written {
            self.have_page(pages[0]).await;
        }
        self.exchange_places(index, donor, block, handle.transaction).await;
        if is_written {
            // What a block has in it must get to its new place before the commit.
            self.dirty_page(index, block);
            self.ext4().order(index, block..block + 1);
        }
        self.end_handle(handle);
        Ok(())
    }

    /// Reads a page that is not in memory, by itself.
    async fn have_page(&self, page: u64) {
        if !self.cache().holds(page) {
            self.read_alone(page, Flags::NONE).await;
        }
        if !self.cache().is_ready(page) {
            self.wait_for_page(page).await;
        }
    }

    async fn exchange_places(&self, index: usize, donor: usize, block: u64, transaction: u64) {
        let (first, second) = (index.min(donor), index.max(donor));
        self.lock_map(first).await;
        self.lock_map(second).await;
        // Observed: one extent more may need a leaf that is spare when they have joined.
        for file in [index, donor] {
            let leaf = self.ext4().inode(file).isolate(block);
            self.tend_leaf(file, transaction, leaf).await;
        }
        self.ext4().exchange_places(index, donor, block);
        for file in [index, donor] {
            let leaf = self.ext4().inode(file).join_alike(block);
            self.tend_leaf(file, transaction, leaf).await;
        }
        self.unlock_map(second);
        self.unlock_map(first);
        for file in [index, donor] {
            let table = self.ext4().table_block(file);
            self.change(table).await;
            self.ext4().note_changed_data(file, transaction);
        }
    }
}
