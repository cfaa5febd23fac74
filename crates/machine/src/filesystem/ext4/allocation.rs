//! Writing pages of a file: first those whose blocks have a place, then the others, which get one.
//!
//! A handle is begun, pages that follow each other get one extent of at most 8 MiB, and their bios
//! are submitted while the handle is open, but for the last (rule ext4-write-2).

use super::Ext4;
use crate::buffered::PAGE;
use crate::filesystem::writeback::Piece;
use crate::task::Task;
use block::Flags;
use fs::ext4::layout::GROUP;
use fs::ext4::space::Wanted;
use std::ops::Range;

/// Blocks that giving an extent its place may change. // observed: jbd2_handle_start
const ALLOCATE: u64 = 33;
/// Pages that get a place together.
const MOST_PAGES: u64 = 2048;

impl Task {
    /// Writes dirty pages of a file, at most so many; the answer is how many.
    pub(in crate::filesystem) async fn write_pages_of_ext4(
        &self,
        file: usize,
        pages: Range<u64>,
        flags: Flags,
        most: u64,
    ) -> u64 {
        let mapped = self.write_mapped_up_to(file, pages.clone(), flags, most).await;
        let mut written = mapped;
        let mut from = pages.start;
        while written < most {
            let limit = MOST_PAGES.min(most - written);
            let Some(run) = self.next_run(file, from..pages.end, limit) else { break };
            let Some(placed) = self.place_and_write(file, run, flags).await else {
                if self.can_free().await {
                    continue;
                }
                break;
            };
            from = placed.end;
            written += placed.end - placed.start;
        }
        written
    }

    /// Gives the first of some pages their blocks, as far as these lie together, and writes them;
    /// the answer is which, or none when the disk is full.
    // Observed on 6.12: what is left of pages whose first ones took the last of what was kept for
    // the file is looked for anew.
    async fn place_and_write(
        &self,
        file: usize,
        run: Range<u64>,
        flags: Flags,
    ) -> Option<Range<u64>> {
        let handle = self.begin_handle(ALLOCATE).await;
        let converts = self.world().fs().rules.unwritten_first;
        let Some(piece) = self.place(file, run, handle.transaction, !converts).await else {
            self.end_handle(handle);
            return None;
        };
        let pages = piece.pages.clone();
        if !converts {
            self.order(file, pages.clone());
        }
        let write = self.begin_write(file, pages.clone(), converts);
        let mut bios = self.cut(file, vec![piece], u64::MAX);
        let last = bios.pop();
        for bio in bios {
            self.submit_piece(file, write, bio, flags).await;
        }
        self.end_handle(handle);
        self.submit_last(file, write, last, flags).await;
        Some(pages)
    }

    /// Gives the first of some blocks of a file a place; the answer is how far, and where. The size
    /// on the disk follows.
    async fn place(
        &self,
        file: usize,
        blocks: Range<u64>,
        transaction: u64,
        is_written: bool,
    ) -> Option<Piece> {
        let mapped = self.world().fs().inode(file).find(blocks.start);
        let (pages, start) = match mapped {
            Some(extent) => {
                let end = blocks.end.min(blocks.start + extent.length);
                self.lock_map(file).await;
                let leaf = self.world().fs().inode(file).single_out(blocks.start..end);
                self.tend_leaf(file, transaction, leaf).await;
                self.unlock_map(file);
                (blocks.start..end, extent.start)
            }
            None => self.allocate(file, blocks, transaction, is_written).await?,
        };
        let table = {
            let mut world = self.world();
            let fs = world.fs();
            let table = fs.table_block(file);
            let inode = fs.inode(file);
            inode.disk_size = inode.disk_size.max(inode.size.min(pages.end * PAGE));
            (inode.changed_in, inode.data_changed_in) = (transaction, transaction);
            table
        };
        self.change(table).await;
        Some(Piece { pages, start })
    }

    /// Finds room for the first of some blocks of a file.
    pub(super) async fn allocate(
        &self,
        file: usize,
        blocks: Range<u64>,
        transaction: u64,
        is_written: bool,
    ) -> Option<(Range<u64>, u64)> {
        self.lock_map(file).await;
        let found = self.world().fs().find_room(file, &blocks);
        if let Some(found) = &found {
            let length = found.end - found.start;
            let mapped = {
                let mut world = self.world();
                let fs = world.fs();
                fs.delayed.punch(file, blocks.start..blocks.start + length);
                fs.inode(file).map(blocks.start, found.start, length, is_written)
            };
            self.change_maps(found.start / GROUP).await;
            self.tend_leaf(file, transaction, mapped).await;
        }
        self.unlock_map(file);
        let found = found?;
        Some((blocks.start..blocks.start + (found.end - found.start), found.start))
    }

    /// New blocks have their contents: their extents say so from the running transaction on. The
    /// handle was reserved when their data were submitted.
    pub(in crate::filesystem) async fn convert(&self, file: usize, blocks: Range<u64>) {
        let transaction = {
            let mut world = self.world();
            let expires = world.commit_deadline();
            let transaction = world.fs().journal.join(ALLOCATE, expires);
            world.arm_committer();
            transaction
        };
        self.lock_map(file).await;
        let (changed, leaf) = self.world().fs().inode(file).convert(blocks);
        let is_there = changed && !self.world().fs().inode(file).is_removed;
        if is_there {
            self.note_changed_data(file, transaction);
            self.tend_leaf(file, transaction, leaf).await;
        }
        self.unlock_map(file);
        if is_there {
            let table = self.world().fs().table_block(file);
            self.change(table).await;
        }
        self.world().end_handle(self.id(), ALLOCATE);
    }

    /// The data of these blocks must be on the disk before the running transaction.
    pub(super) fn order(&self, file: usize, blocks: Range<u64>) {
        let mut world = self.world();
        let fs = world.fs();
        if let Some(running) = fs.journal.running.as_mut().filter(|_| fs.files.mount.is_ordered) {
            let range = running.ordered.entry(file).or_insert(blocks.clone());
            *range = range.start.min(blocks.start)..range.end.max(blocks.end);
        }
    }
}

impl Ext4 {
    /// What is kept for files is free again.
    fn give_up_kept(&mut self) {
        for inode in &mut self.files.inodes {
            if let Some((_, rest)) = inode.kept.take() {
                self.space.free_now(rest);
            }
        }
        self.space.give_up_chunks();
    }

    /// Blocks of the disk for the first of some blocks of a file, from what was kept for it or from
    /// what is free.
    pub(super) fn find_room(&mut self, file: usize, blocks: &Range<u64>) -> Option<Range<u64>> {
        let group = self.data_group(file);
        let inode = &mut self.files.inodes[file];
        let length = blocks.end - blocks.start;
        if let Some((first, rest)) = &mut inode.kept
            && *first <= blocks.start
            && blocks.start - *first < rest.end - rest.start
        {
            let start = rest.start + (blocks.start - *first);
            let end = (start + length).min(rest.end);
            (*first, rest.start) = (blocks.start + (end - start), end);
            self.space.used(&(start..end));
            return Some(start..end);
        }
        let wanted = Wanted {
            first: blocks.start,
            length,
            size: inode.size.div_ceil(PAGE).max(blocks.end),
            group,
            goal: inode.goal(blocks.start),
            hole: inode.hole(blocks.start),
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
        if let Some((_, rest)) = std::mem::replace(&mut inode.kept, grant.kept) {
            self.space.free_now(rest);
        }
        Some(grant.blocks)
    }
}
