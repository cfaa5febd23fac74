//! Writing pages of a file in their order.
//!
//! Those whose blocks have contents need no handle until one comes that has none. From there on
//! each round begins a handle, and pages go into a bio as they come. The first that have no
//! contents get one extent of at most 8 MiB, as far as they follow each other, and end the round.
//! Bios are submitted while the handle is open, but for the last (rule ext4-write-2).
// Observed on 6.12, block_bio_queue: pages 0 to 9, of which 0, 1, 4, 5, 7 had been written before
// in room of fallocate, go to the disk as 0 to 1, 2 to 3, 4 to 6, 7 to 9.

use super::Ext4Io;
use super::handles::Handle;
use crate::filesystem::writeback::{Piece, Progress};
use block::Flags;
use cache::PAGE;
use fs::ext4::journal::Started;
use fs::ext4::layout::GROUP;
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
        let first_round = self.before_lacking(file, pages.clone());
        let mut progress = self.write_mapped_up_to(file, first_round, flags, most).await;
        let mut from = progress.end.max(pages.start);
        while progress.written < most {
            let limit = most - progress.written;
            match self.write_round(file, from..pages.end, flags, limit).await {
                Some(round) if round.written > 0 => {
                    from = round.end;
                    progress.add(round);
                }
                None if self.can_free().await => {}
                _ => break,
            }
        }
        progress
    }

    /// Pages up to the first dirty one whose block has no contents.
    fn before_lacking(&self, file: usize, pages: Range<u64>) -> Range<u64> {
        let lacking = self.storage().next_run(file, pages.clone(), 1);
        pages.start..lacking.map_or(pages.end, |it| it.start)
    }

    /// Writes dirty pages under one handle, at most so many: those whose blocks have contents, and
    /// the first others as far as these lie together; the answer is which, or none when there is no
    /// room for any.
    // Observed on 6.12: what is left of pages whose first ones took the last of what was kept for
    // the file is looked for anew.
    async fn write_round(
        &self,
        file: usize,
        pages: Range<u64>,
        flags: Flags,
        most: u64,
    ) -> Option<Progress> {
        let mut progress = Progress::default();
        if self.first_to_write(file, pages.clone(), flags).await.is_none() {
            return Some(progress);
        }
        let handle = self.begin_handle(ALLOCATE).await;
        let mapped = self.before_lacking(file, pages.clone());
        let open = self.gather_mapped(file, mapped, flags, most, &mut progress).await;
        let rest = progress.end.max(pages.start)..pages.end;
        let limit = MOST_PAGES.min(most - progress.written);
        let run = self.storage().next_run(file, rest, limit).filter(|_| limit > 0);
        let lacks_room = run.is_some() && progress.written == 0;
        let placed = match run {
            Some(run) => self.place(file, run, handle.transaction).await,
            None => None,
        };
        let Some(placed) = placed else {
            self.end_handle(handle);
            self.write_open(file, open, flags, None).await;
            return (!lacks_room).then_some(progress);
        };
        progress.note(&placed.pages);
        self.write_placed(file, open, placed, flags, handle).await;
        Some(progress)
    }

    /// Writes dirty pages whose blocks have contents, but for those that could go into one bio with
    /// what follows: the answer is these.
    async fn gather_mapped(
        &self,
        file: usize,
        pages: Range<u64>,
        flags: Flags,
        most: u64,
        progress: &mut Progress,
    ) -> Option<Piece> {
        let (mut from, mut open) = (pages.start, None::<Piece>);
        while progress.written < most {
            let limit = most - progress.written;
            let next = self.next_mapped(file, from..pages.end, limit, flags).await;
            let Some(next) = next else { break };
            from = next.pages.end;
            progress.note(&next.pages);
            match &mut open {
                Some(open) if next.follows(open) => open.pages.end = next.pages.end,
                _ => {
                    let behind = next.pages.clone();
                    let full = open.replace(next);
                    self.write_open(file, full, flags, Some(behind)).await;
                }
            }
        }
        open
    }

    async fn write_open(
        &self,
        file: usize,
        open: Option<Piece>,
        flags: Flags,
        behind: Option<Range<u64>>,
    ) {
        if let Some(piece) = open {
            self.write_piece(file, piece, false, flags, behind).await;
        }
    }

    /// Writes pages that have got a place, with those that are open if they follow these.
    async fn write_placed(
        &self,
        file: usize,
        open: Option<Piece>,
        placed: Piece,
        flags: Flags,
        handle: Handle,
    ) {
        let converts = self.ext4().rules().unwritten_first;
        if !converts {
            self.ext4().order(file, placed.pages.clone());
        }
        let mut piece = placed;
        match open {
            Some(open) if piece.follows(&open) => {
                piece = Piece { pages: open.pages.start..piece.pages.end, start: open.start };
            }
            open => self.write_open(file, open, flags, Some(piece.pages.clone())).await,
        }
        let pages = piece.pages.clone();
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
    }

    /// Gives the first of some blocks of a file a place; the answer is how far, and where. The size
    /// on the disk follows.
    async fn place(&self, file: usize, blocks: Range<u64>, transaction: u64) -> Option<Piece> {
        let is_written = !self.ext4().rules().unwritten_first;
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
        let Started { transaction, is_first } = {
            let mut world = self.world();
            let now = world.tick();
            let expires = world.storage().commit_deadline(now);
            world.ext4().journal.join(self.id(), ALLOCATE, expires)
        };
        if is_first {
            self.note_beginning().await;
        }
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
