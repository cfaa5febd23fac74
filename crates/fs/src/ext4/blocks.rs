//! Which blocks a file gets and loses.
//!
//! A page that becomes dirty has a block set aside, unless it has one; what wants places at once
//! gets what is left. What was freed counts as room at once, and can be used when its transaction
//! is on the disk; data of a mount without order, at once.

use super::Ext4;
use super::space::Wanted;
use crate::Errno;
use crate::inode::{Inode, Leaf};
use cache::PAGE;
use std::ops::Range;

/// Blocks of a piece that fallocate looks for where it asks for many.
const PIECE: u64 = 2048;

impl Ext4 {
    /// Sets a block aside for a page that is to become dirty, unless it has one.
    ///
    /// # Errors
    /// `Enospc` if there is no room for it.
    pub fn reserve(&mut self, file: usize, page: u64) -> Result<(), Errno> {
        if self.inode(file).is_mapped(page) || self.delayed.find(file, page).is_some() {
            return Ok(());
        }
        self.grantable(1).ok_or(Errno::Enospc)?;
        self.delayed.add(file, page..page + 1);
        Ok(())
    }

    /// How many of so many blocks a file may be given now, if any. Observed on 6.12: half of them,
    /// and half of that, until there is room.
    pub fn grantable(&self, wanted: u64) -> Option<u64> {
        let room = self.space.room().saturating_sub(self.delayed.blocks());
        let mut length = wanted;
        while length > room {
            length /= 2;
        }
        (length > 0).then_some(length)
    }

    /// Whether something was freed that cannot be used yet.
    pub fn frees(&self) -> bool {
        self.space.is_pending()
    }

    /// Gives the first of some blocks of a file a place; the answer is where, and what becomes of
    /// its leaf.
    pub fn allocate(
        &mut self,
        file: usize,
        blocks: &Range<u64>,
        is_written: bool,
    ) -> Option<(Range<u64>, Leaf)> {
        let found = self.find_room(file, blocks)?;
        let length = found.end - found.start;
        self.delayed.punch(file, blocks.start..blocks.start + length);
        let joins = !is_written && self.rules().unwritten_join;
        let leaf = match joins {
            true => self.inode(file).set_aside(blocks.start, found.start, length),
            false => self.inode(file).map(blocks.start, found.start, length, is_written),
        };
        Some((found, leaf))
    }

    /// Gives the first of some blocks of a file a place without contents, no more of them than may
    /// be granted; `is_exact` if as they are and in one piece. The answer is where, and what
    /// becomes of its leaf.
    pub fn set_aside(
        &mut self,
        file: usize,
        blocks: &Range<u64>,
        granted: u64,
        is_exact: bool,
    ) -> Option<(Range<u64>, Leaf)> {
        let found = match is_exact {
            true => self.space.allocate_exactly(self.data_group(file), granted),
            false => self.find_room(file, &(blocks.start..blocks.start + granted.min(PIECE))),
        }?;
        let length = found.end - found.start;
        self.delayed.punch(file, blocks.start..blocks.start + length);
        let leaf = self.inode(file).set_aside(blocks.start, found.start, length);
        Some((found, leaf))
    }

    /// Gives up the blocks of a file from one on, in a transaction; the answer is where they were.
    pub fn free_from(&mut self, file: usize, block: u64, transaction: u64) -> Vec<Range<u64>> {
        self.delayed.cut(file, block);
        let gone = self.inode(file).truncate(block);
        self.give_back_kept(file);
        self.free(file, &gone, transaction);
        gone
    }

    /// Data may be written over at once where their order is nobody's business (rule ext4-space-5).
    fn free(&mut self, file: usize, gone: &[Range<u64>], transaction: u64) {
        let waits = self.files.mount().is_ordered || self.files.is_directory(file);
        for blocks in gone.iter().cloned() {
            match waits {
                true => self.space.free_after(transaction, blocks),
                false => self.space.free_at_once(blocks),
            }
        }
    }

    /// Gives up some blocks of a file, in a transaction; the answer is where they were, and what
    /// becomes of its leaf.
    pub fn punch(
        &mut self,
        file: usize,
        blocks: Range<u64>,
        transaction: u64,
    ) -> (Vec<Range<u64>>, Leaf) {
        self.delayed.punch(file, blocks.clone());
        let (gone, leaf) = self.inode(file).punch(blocks);
        self.free(file, &gone, transaction);
        (gone, leaf)
    }

    /// What was kept for a file goes with the last one who could write it.
    pub fn give_back_kept(&mut self, file: usize) {
        let kept = std::mem::take(&mut self.inode(file).kept);
        kept.into_values().for_each(|rest| self.space.free_now(rest));
    }

    /// A block of a file and that of its donor get each other's places; the donor's has no contents
    /// then.
    pub fn exchange_places(&mut self, file: usize, donor: usize, block: u64) {
        let place = |inode: &Inode| inode.find(block).map(|it| it.start);
        let (Some(of_file), Some(of_donor)) =
            (place(&self.inodes[file]), place(&self.inodes[donor]))
        else {
            return;
        };
        self.inodes[file].replace(block, of_donor);
        self.inodes[donor].replace(block, of_file);
        self.inodes[donor].lose_contents(block);
    }

    /// What is kept for files is free again.
    fn give_up_kept(&mut self) {
        for inode in &mut self.files.inodes {
            for rest in std::mem::take(&mut inode.kept).into_values() {
                self.space.free_now(rest);
            }
        }
        self.space.give_up_chunks();
    }

    /// Blocks of the disk for the first of some blocks of a file, from what was kept for it or from
    /// what is free.
    fn find_room(&mut self, file: usize, blocks: &Range<u64>) -> Option<Range<u64>> {
        let group = self.data_group(file);
        let inode = &mut self.files.inodes[file];
        let length = blocks.end - blocks.start;
        if let Some(taken) = inode.take_kept(blocks) {
            self.space.used(&taken);
            return Some(taken);
        }
        let hole = inode.hole_beside_kept(blocks.start);
        let wanted = Wanted {
            first: blocks.start,
            length,
            size: inode.size.div_ceil(PAGE).max(blocks.end),
            group,
            behind: inode.hole(blocks.start).start,
            goal: inode.goal(blocks.start),
            hole,
            is_closed: inode.writers == 0 && blocks.end >= inode.size.div_ceil(PAGE),
        };
        let grant = match self.space.allocate(&wanted) {
            Some(grant) => grant,
            None => {
                self.give_up_kept();
                self.space.allocate(&wanted)?
            }
        };
        let inode = &mut self.files.inodes[file];
        for (first, places) in grant.kept {
            inode.keep(first, places);
        }
        Some(grant.blocks)
    }
}
