//! fallocate: room for a file before anything is written.
//!
//! The blocks are there and without contents. Observed on 6.12 (trace of mballoc and jbd2): up to
//! 32,767 blocks are looked for as they are and in one piece; more get pieces of 8 MiB as a writer
//! does. Each piece has a handle of its own.

use super::Ext4Io;
use super::names::TRUNCATE;
use crate::file::Errno;
use cache::PAGE;
use fs::ext4::layout::GROUP;
use fs::inode::LONGEST_UNWRITTEN;
use fs::key;
use std::ops::Range;

/// Blocks that setting a piece aside may change (observed: jbd2_handle_start).
const SET_ASIDE: u64 = 33;

impl Ext4Io<'_> {
    /// Sets room aside for a range of bytes.
    pub async fn set_aside(
        &self,
        index: usize,
        bytes: Range<u64>,
        keeps_size: bool,
    ) -> Result<(), Errno> {
        let end = bytes.end.div_ceil(PAGE);
        let mut at = bytes.start / PAGE;
        let is_exact = end - at <= LONGEST_UNWRITTEN;
        let grows = !keeps_size && bytes.end > self.ext4().inode(index).size;
        while at < end {
            let known = self.ext4().inode(index).find(at);
            let handle = self.begin_handle(SET_ASIDE).await;
            let next = match known {
                Some(extent) => Some((at + extent.length).min(end)),
                None => {
                    let hole = self.ext4().inode(index).hole(at);
                    let blocks = at..end.min(hole.end);
                    self.set_piece_aside(index, blocks, handle.transaction, is_exact).await
                }
            };
            let (table, now) = {
                let mut world = self.world();
                (world.ext4().table_block(index), world.tick())
            };
            self.change(table).await;
            {
                let mut fs = self.ext4();
                fs.note_changed_data(index, handle.transaction);
                let inode = fs.inode(index);
                inode.modified = Some(now);
                if !keeps_size {
                    let reached = bytes.end.min(next.unwrap_or(at) * PAGE);
                    inode.size = inode.size.max(reached);
                    inode.disk_size = inode.disk_size.max(reached);
                }
            }
            self.end_handle(handle);
            match next {
                Some(next) => at = next,
                None if self.can_free().await => {}
                None => return Err(Errno::Enospc),
            }
        }
        if grows && self.files().lacks_contents(index, bytes.end / PAGE) {
            self.hold_end(index, bytes.end);
        }
        Ok(())
    }

    /// Gives up some blocks of a file, with the pages.
    pub async fn make_hole(&self, index: usize, blocks: Range<u64>) {
        self.cache().discard(key(index, blocks.start)..key(index, blocks.end));
        let handle = self.begin_handle(TRUNCATE).await;
        self.lock_map(index).await;
        let (table, gone, leaf) = {
            let mut world = self.world();
            let now = world.tick();
            let fs = world.ext4();
            let (gone, leaf) = fs.punch(index, blocks, handle.transaction);
            fs.note_changed_data(index, handle.transaction);
            fs.inode(index).modified = Some(now);
            (fs.table_block(index), gone, leaf)
        };
        for blocks in gone {
            self.change_maps(blocks.start / GROUP).await;
        }
        self.tend_leaf(index, handle.transaction, leaf).await;
        self.unlock_map(index);
        self.change(table).await;
        self.end_handle(handle);
    }

    /// Sets blocks aside; the answer is how far.
    async fn set_piece_aside(
        &self,
        index: usize,
        blocks: Range<u64>,
        transaction: u64,
        is_exact: bool,
    ) -> Option<u64> {
        let granted = self.ext4().grantable(blocks.end - blocks.start)?;
        self.lock_map(index).await;
        let found = self.ext4().set_aside(index, &blocks, granted, is_exact);
        if let Some((found, leaf)) = &found {
            self.change_maps(found.start / GROUP).await;
            self.tend_leaf(index, transaction, *leaf).await;
        }
        self.unlock_map(index);
        let (found, _) = found?;
        Some(blocks.start + (found.end - found.start))
    }
}
