//! fallocate: room for a file before anything is written.
//!
//! The blocks are there and without contents. Observed on 6.12 (trace of mballoc and jbd2): up to
//! 32,767 blocks are looked for as they are and in one piece; more get pieces of 8 MiB as a writer
//! does. Each piece has a handle of its own.

use super::names::TRUNCATE;
use crate::buffered::PAGE;
use crate::file::Errno;
use crate::filesystem::key;
use crate::task::Task;
use fs::ext4::layout::GROUP;
use fs::inode::LONGEST_UNWRITTEN;
use std::ops::Range;

/// Blocks that setting a piece aside may change. // observed: jbd2_handle_start
const SET_ASIDE: u64 = 33;
/// Blocks of a piece of a large request.
const PIECE: u64 = 2048;

impl Task {
    /// Sets room aside for a range of bytes.
    pub(in crate::filesystem) async fn set_aside(
        &self,
        index: usize,
        bytes: Range<u64>,
        keeps_size: bool,
    ) -> Result<(), Errno> {
        let end = bytes.end.div_ceil(PAGE);
        let mut at = bytes.start / PAGE;
        let is_exact = end - at <= LONGEST_UNWRITTEN;
        while at < end {
            let known = self.world().fs().inode(index).find(at);
            let handle = self.begin_handle(SET_ASIDE).await;
            let next = match known {
                Some(extent) => Some((at + extent.length).min(end)),
                None => {
                    let hole = self.world().fs().inode(index).hole(at);
                    let blocks = at..end.min(hole.end);
                    self.set_piece_aside(index, blocks, handle.transaction, is_exact).await
                }
            };
            let (table, now) = {
                let mut world = self.world();
                (world.fs().table_block(index), world.tick())
            };
            self.change(table).await;
            {
                let mut world = self.world();
                let inode = world.fs().inode(index);
                inode.changed_in = handle.transaction;
                inode.data_changed_in = handle.transaction;
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
        Ok(())
    }

    /// Gives up some blocks of a file, with the pages.
    pub(in crate::filesystem) async fn make_hole(&self, index: usize, blocks: Range<u64>) {
        self.world().cache.discard(key(index, blocks.start)..key(index, blocks.end));
        let handle = self.begin_handle(TRUNCATE).await;
        self.lock_map(index).await;
        let (table, gone, leaf) = {
            let mut world = self.world();
            let now = world.tick();
            let fs = world.fs();
            fs.delayed.punch(index, blocks.clone());
            let (gone, leaf) = fs.inode(index).punch(blocks);
            for blocks in &gone {
                fs.space.free_after(handle.transaction, blocks.clone());
            }
            let inode = fs.inode(index);
            (inode.changed_in, inode.data_changed_in) = (handle.transaction, handle.transaction);
            inode.modified = Some(now);
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
        let length = self.world().fs().grantable(blocks.end - blocks.start)?;
        self.lock_map(index).await;
        let found = {
            let mut world = self.world();
            let fs = world.fs();
            match is_exact {
                true => fs.space.allocate_exactly(fs.data_group(index), length),
                false => fs.find_room(index, &(blocks.start..blocks.start + length.min(PIECE))),
            }
        };
        if let Some(found) = &found {
            let leaf = {
                let mut world = self.world();
                let length = found.end - found.start;
                world.fs().delayed.punch(index, blocks.start..blocks.start + length);
                world.fs().inode(index).set_aside(blocks.start, found.start, length)
            };
            self.change_maps(found.start / GROUP).await;
            self.tend_leaf(index, transaction, leaf).await;
        }
        self.unlock_map(index);
        let found = found?;
        Some(blocks.start + (found.end - found.start))
    }
}
