//! What direct writes change of a file (rules direct-io).
//!
//! A write that makes the file longer has it meanwhile on the list of those that a crash would have
//! to be cleaned up after, which is in the superblock. Blocks that were set aside before become an
//! extent of their own, and get their contents when the data are on the disk, each in a handle
//! (observed on 6.12).

use super::Ext4Io;
use super::handles::CHANGE;
use crate::file::Errno;
use std::ops::Range;

/// Blocks that giving a write its places may change (observed: jbd2_handle_start).
const ALLOCATE: u64 = 33;

impl Ext4Io<'_> {
    /// Puts a file on the list of orphans, or takes it off when its size is known.
    pub async fn change_orphan(&self, index: usize, size: Option<u64>) {
        let handle = self.begin_handle(CHANGE).await;
        let (table, superblock) = {
            let fs = self.ext4();
            (fs.table_block(index), fs.superblock())
        };
        self.change(table).await;
        self.change(superblock).await;
        if let Some(size) = size {
            {
                let mut fs = self.ext4();
                let inode = fs.inode(index);
                (inode.size, inode.disk_size) = (size, size);
            }
            self.ext4().note_changed_data(index, handle.transaction);
        }
        self.end_handle(handle);
    }

    /// Gives the blocks of a write places where they have none. New ones that begin within the file
    /// do not have their contents before the write has ended (observed on 6.12.117:
    /// ext4_ext_map_blocks_exit of fio with fallocate=none says U for a hole, not behind the end).
    // Divergence: pages that have no place because they are dirty are written before.
    pub async fn allocate_directly(&self, index: usize, pages: Range<u64>) -> Result<(), Errno> {
        let mut at = pages.start;
        while at < pages.end {
            let known = self.ext4().inode(index).find(at);
            if let Some(extent) = known {
                let end = (at + extent.length).min(pages.end);
                if !extent.is_written && !self.ext4().rules().singles_out_late {
                    self.single_out(index, at..end).await;
                }
                at = end;
                continue;
            }
            let hole = self.ext4().inode(index).hole(at);
            let wanted = pages.end.min(hole.end) - at;
            let length = self.ext4().grantable(wanted).ok_or(Errno::Enospc)?;
            let handle = self.begin_handle(ALLOCATE).await;
            let blocks = at..at + length;
            let is_written = !self.ext4().inode(index).has_within(at);
            let found = self.allocate(index, blocks, handle.transaction, is_written).await;
            let table = self.ext4().table_block(index);
            self.change(table).await;
            self.ext4().note_changed_data(index, handle.transaction);
            if is_written {
                self.ext4().order(index, pages.clone());
            }
            self.end_handle(handle);
            match found {
                Some((placed, _)) => at = placed.end,
                None if self.can_free().await => {}
                None => return Err(Errno::Enospc),
            }
        }
        Ok(())
    }

    /// Blocks that were set aside become an extent of their own. A sync need not make that durable
    /// (observed on 6.12: it only flushes, until they have their contents).
    async fn single_out(&self, index: usize, blocks: Range<u64>) {
        let handle = self.begin_handle(ALLOCATE).await;
        self.lock_map(index).await;
        let leaf = self.ext4().inode(index).single_out(blocks);
        self.tend_leaf(index, handle.transaction, leaf).await;
        self.unlock_map(index);
        self.end_handle(handle);
    }

    /// Blocks that were set aside have their contents.
    pub async fn convert_directly(&self, index: usize, pages: Range<u64>) {
        let handle = self.begin_handle(ALLOCATE).await;
        self.lock_map(index).await;
        let (leaf, table) = {
            let mut fs = self.ext4();
            let (_, leaf) = fs.inode(index).convert(pages);
            (leaf, fs.table_block(index))
        };
        self.tend_leaf(index, handle.transaction, leaf).await;
        self.unlock_map(index);
        self.change(table).await;
        self.ext4().note_changed_data(index, handle.transaction);
        self.end_handle(handle);
    }
}
