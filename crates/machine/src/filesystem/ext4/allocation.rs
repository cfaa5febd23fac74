//! Writing pages of a file: first those whose blocks have a place, then the others, which get one.
//!
//! A handle is begun, pages that follow each other get one extent of at most 8 MiB, and their bios
//! are submitted while the handle is open, but for the last (rule ext4-write-2).

use super::Ext4Io;
use crate::filesystem::writeback::{Piece, Progress};
use block::Flags;
use cache::PAGE;
use fs::ext4::layout::GROUP;
use fs::key;
use std::ops::Range;

/// Blocks that giving an extent its place may change (observed: jbd2_handle_start).
const ALLOCATE: u64 = 33;
/// Pages that get a place together.
const MOST_PAGES: u64 = 2048;

impl Ext4Io<'_> {
    /// Writes dirty pages of a file, at most so many.
    pub(in crate::filesystem) async fn write_dirty(
        &self,
        file: usize,
        pages: Range<u64>,
        flags: Flags,
        most: u64,
    ) -> Progress {
        let mut progress = self.write_mapped_up_to(file, pages.clone(), flags, most).await;
        let mut from = pages.start;
        while progress.written < most {
            let limit = MOST_PAGES.min(most - progress.written);
            let run = self.storage().next_run(file, from..pages.end, limit);
            let Some(run) = run else { break };
            if self.cache().is_locked(key(file, run.start)) {
                self.lock(key(file, run.start)).await;
                continue;
            }
            let Some(placed) = self.place_and_write(file, run, flags).await else {
                if self.can_free().await {
                    continue;
                }
                break;
            };
            from = placed.end;
            progress.note(&placed);
        }
        progress
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
        let converts = self.ext4().rules().unwritten_first;
        let Some(piece) = self.place(file, run, handle.transaction, !converts).await else {
            self.end_handle(handle);
            return None;
        };
        let pages = piece.pages.clone();
        if !converts {
            self.ext4().order(file, pages.clone());
        }
        let write = self.files().begin_write(file, pages.clone(), converts);
        self.wait_for_others(file, pages.clone()).await;
        // Each is locked until it is in a bio (rule flusher-8).
        for page in pages.clone() {
            self.hold_dirty(file, page..page + 1);
        }
        let mut bios = self.cut(file, vec![piece]);
        let last = bios.pop();
        for bio in bios {
            self.let_go(file, bio.pages.clone());
            self.submit_piece(file, write, bio, flags, None).await;
        }
        self.end_handle(handle);
        if let Some(bio) = &last {
            self.let_go(file, bio.pages.clone());
        }
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
        let mapped = self.ext4().inode(file).find(blocks.start);
        let mut is_new = mapped.is_none();
        let (pages, start) = match mapped {
            Some(extent) if is_written => {
                let end = blocks.end.min(blocks.start + extent.length);
                is_new = self.say_written(file, blocks.start..end, transaction).await;
                (blocks.start..end, extent.start)
            }
            Some(extent) => {
                let end = blocks.end.min(blocks.start + extent.length);
                if !self.ext4().rules().singles_out_late {
                    self.lock_map(file).await;
                    let leaf = self.ext4().inode(file).single_out(blocks.start..end);
                    self.tend_leaf(file, transaction, leaf).await;
                    self.unlock_map(file);
                }
                (blocks.start..end, extent.start)
            }
            None => self.allocate(file, blocks, transaction, is_written).await?,
        };
        let table = {
            let mut fs = self.ext4();
            let inode = fs.inode(file);
            let size = inode.disk_size.max(inode.size.min(pages.end * PAGE));
            let is_longer = std::mem::replace(&mut inode.disk_size, size) < size;
            (is_longer || is_new).then(|| {
                fs.note_changed_data(file, transaction);
                fs.table_block(file)
            })
        };
        if let Some(table) = table {
            self.change(table).await;
        }
        Some(Piece { pages, start })
    }

    /// Blocks that were set aside are said to be written before they are; whether they were not.
    async fn say_written(&self, file: usize, blocks: Range<u64>, transaction: u64) -> bool {
        self.lock_map(file).await;
        let (changed, leaf) = self.ext4().inode(file).convert(blocks);
        if changed {
            self.tend_leaf(file, transaction, leaf).await;
        }
        self.unlock_map(file);
        changed
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
        let found = self.ext4().allocate(file, &blocks, is_written);
        if let Some((found, leaf)) = &found {
            self.change_maps(found.start / GROUP).await;
            self.tend_leaf(file, transaction, *leaf).await;
        }
        self.unlock_map(file);
        let (found, _) = found?;
        Some((blocks.start..blocks.start + (found.end - found.start), found.start))
    }

    /// New blocks have their contents: their extents say so from the running transaction on. The
    /// handle was reserved when their data were submitted.
    pub async fn convert(&self, file: usize, blocks: Range<u64>) {
        let transaction = {
            let mut world = self.world();
            let now = world.tick();
            let expires = world.storage().commit_deadline(now);
            let transaction = world.ext4().journal.join(self.id(), ALLOCATE, expires);
            world.arm_committer();
            transaction
        };
        self.lock_map(file).await;
        let (changed, leaf) = self.ext4().inode(file).convert(blocks);
        let is_there = changed && !self.ext4().inode(file).is_removed;
        if is_there {
            self.ext4().note_changed_data(file, transaction);
            self.tend_leaf(file, transaction, leaf).await;
        }
        self.unlock_map(file);
        if is_there {
            let table = self.ext4().table_block(file);
            self.change(table).await;
        }
        self.end_credits(ALLOCATE);
    }
}
