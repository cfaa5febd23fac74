//! Writing pages of a file: first those whose blocks have a place, then the others, which get one.
//!
//! Pages are given blocks as late as they are written: a handle is begun, pages that follow each
//! other get one extent of at most 8 MiB, and their bios are submitted while the handle is open,
//! but for the last (filesystems 3.2). Where the kernel makes new blocks unwritten, a worker
//! converts them when the data are on the disk, and only then have the pages been written.
//!
// Divergence: the worker that converts takes no time and waits for nothing.

use super::layout::GROUP;
use super::space::Wanted;
use super::{Write, key};
use crate::buffered::{PAGE, PAGE_SECTORS};
use crate::page_cache::disk::FILE_PAGES;
use crate::task::Task;
use crate::world::World;
use base::{Sector, Sectors};
use block::{Bio, ContextId, Flags, Op};
use std::ops::Range;

/// Blocks that giving an extent its place may change. // observed: jbd2_handle_start
const ALLOCATE: u64 = 33;
/// Pages that get a place together.
const MOST_PAGES: u64 = 2048;

/// A bio to be: pages of a file and the first block on the disk.
struct Piece {
    pages: Range<u64>,
    start: u64,
}

impl Task {
    /// Writes dirty pages of a file, at most so many; the answer is how many.
    pub(super) async fn write_file_pages(
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
            from = run.end;
            written += run.end - run.start;
            self.place_and_write(file, run, flags).await;
        }
        written
    }

    /// Writes those dirty pages whose blocks have a place and contents.
    pub(super) async fn write_mapped(&self, file: usize, pages: Range<u64>, flags: Flags) {
        self.write_mapped_up_to(file, pages, flags, u64::MAX).await;
    }

    async fn write_mapped_up_to(
        &self,
        file: usize,
        pages: Range<u64>,
        flags: Flags,
        most: u64,
    ) -> u64 {
        let (mut from, mut written) = (pages.start, 0);
        while let Some(piece) = self.next_mapped(file, from..pages.end, most - written).await {
            from = piece.pages.end;
            written += piece.pages.end - piece.pages.start;
            let write = self.begin_write(file, piece.pages.clone(), false);
            for bio in self.cut(vec![piece]) {
                self.submit_piece(file, write, bio, flags).await;
            }
            self.world().all_of_write(self.id(), write);
            if written >= most {
                break;
            }
        }
        written
    }

    /// The next dirty pages that follow each other in the file and on the disk. Waits for those
    /// that are being written.
    async fn next_mapped(&self, file: usize, pages: Range<u64>, most: u64) -> Option<Piece> {
        let mut from = pages.start;
        loop {
            let (first, extent) = {
                let mut world = self.world();
                let dirty = world.cache.next_dirty(key(file, from)..key(file, pages.end))?;
                let first = dirty % FILE_PAGES;
                (first, world.fs().inode(file).find(first).filter(|it| it.is_written))
            };
            let Some(extent) = extent else {
                from = first + 1;
                continue;
            };
            let mut end = first;
            let limit = first.saturating_add(extent.length.min(most)).min(pages.end);
            while end < limit && self.world().cache.is_dirty(key(file, end)) {
                if self.world().cache.is_written(key(file, end)) {
                    if end > first {
                        break;
                    }
                    self.wait_until_written(key(file, end)).await;
                }
                end += 1;
            }
            if end > first {
                return Some(Piece { pages: first..end, start: extent.start });
            }
            from = first + 1;
        }
    }

    /// The next dirty pages that follow each other and have no place, or one without contents.
    fn next_run(&self, file: usize, pages: Range<u64>, most: u64) -> Option<Range<u64>> {
        let mut world = self.world();
        let mut from = pages.start;
        let first = loop {
            let dirty = world.cache.next_dirty(key(file, from)..key(file, pages.end))?;
            let page = dirty % FILE_PAGES;
            if world.lacks_contents(file, page) && !world.cache.is_written(dirty) {
                break page;
            }
            from = page + 1;
        };
        let limit = (first + most).min(pages.end);
        let mut end = first + 1;
        while end < limit
            && world.cache.is_dirty(key(file, end))
            && !world.cache.is_written(key(file, end))
            && world.lacks_contents(file, end)
        {
            end += 1;
        }
        Some(first..end)
    }

    /// Gives pages their blocks and writes them.
    async fn place_and_write(&self, file: usize, run: Range<u64>, flags: Flags) {
        let handle = self.begin_handle(ALLOCATE).await;
        let converts = self.world().fs().rules.unwritten_first;
        let mut at = run.start;
        while at < run.end {
            let piece = self.place(file, at..run.end, handle.transaction, !converts).await;
            let Some(piece) = piece else { break };
            at = piece.pages.end;
            if !converts {
                self.order(file, piece.pages.clone());
            }
            let write = self.begin_write(file, piece.pages.clone(), converts);
            let mut bios = self.cut(vec![piece]);
            let last = bios.pop();
            for bio in bios {
                self.submit_piece(file, write, bio, flags).await;
            }
            if at >= run.end {
                self.end_handle(handle);
                self.submit_last(file, write, last, flags).await;
                return;
            }
            self.submit_last(file, write, last, flags).await;
        }
        self.end_handle(handle);
    }

    async fn submit_last(&self, file: usize, write: u64, last: Option<Piece>, flags: Flags) {
        if let Some(bio) = last {
            self.submit_piece(file, write, bio, flags).await;
        }
        self.world().all_of_write(self.id(), write);
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
    // Divergence: a disk that is full loses what does not fit.
    pub(super) async fn allocate(
        &self,
        file: usize,
        blocks: Range<u64>,
        transaction: u64,
        is_written: bool,
    ) -> Option<(Range<u64>, u64)> {
        let (found, leaf) = {
            let mut world = self.world();
            let fs = world.fs();
            let found = fs.find_room(file, &blocks)?;
            let length = found.end - found.start;
            let leaf = fs.inode(file).map(blocks.start, found.start, length, is_written);
            (found, leaf)
        };
        self.change_maps(found.start / GROUP).await;
        self.tend_leaf(file, transaction, leaf).await;
        Some((blocks.start..blocks.start + (found.end - found.start), found.start))
    }

    /// The data of these blocks must be on the disk before the running transaction.
    pub(super) fn order(&self, file: usize, blocks: Range<u64>) {
        let mut world = self.world();
        let fs = world.fs();
        if let Some(running) = fs.journal.running.as_mut().filter(|_| fs.mount.is_ordered) {
            let range = running.ordered.entry(file).or_insert(blocks.clone());
            *range = range.start.min(blocks.start)..range.end.max(blocks.end);
        }
    }

    fn begin_write(&self, file: usize, blocks: Range<u64>, converts: bool) -> u64 {
        let mut world = self.world();
        let fs = world.fs();
        fs.next_write += 1;
        let write = Write { file, blocks, converts, bios_left: 1, tokens: Vec::new() };
        fs.writes.insert(fs.next_write, write);
        fs.next_write
    }

    /// Cuts pieces where a bio can hold no more.
    fn cut(&self, pieces: Vec<Piece>) -> Vec<Piece> {
        let most = self.world().cache.bio_pages();
        let mut bios = Vec::new();
        for Piece { pages, start } in pieces {
            let mut from = pages.start;
            while from < pages.end {
                let end = (from + most).min(pages.end);
                bios.push(Piece { pages: from..end, start: start + (from - pages.start) });
                from = end;
            }
        }
        bios
    }

    async fn submit_piece(&self, file: usize, write: u64, piece: Piece, flags: Flags) {
        {
            let mut world = self.world();
            let now = world.tick();
            let pages = key(file, piece.pages.start)..key(file, piece.pages.end);
            let token = world.cache.write_run(pages, now);
            let fs = world.fs();
            fs.write_of.insert(token, write);
            let under_way = fs.writes.get_mut(&write).expect("it has begun");
            under_way.bios_left += 1;
            under_way.tokens.push(token);
            let sectors = (piece.pages.end - piece.pages.start) * PAGE_SECTORS;
            let bio = Bio {
                op: Op::Write,
                flags,
                sector: Sector(piece.start * PAGE_SECTORS),
                sectors: Sectors(sectors as u32),
                ioprio: world.io_context(self.id()).ioprio,
                origin: self.origin(&mut world),
                token,
            };
            world.submit(bio);
        }
        self.drive().await;
    }
}

impl super::FileSystem {
    /// Blocks of the disk for the first of some blocks of a file, from what was kept for it or from
    /// what is free.
    fn find_room(&mut self, file: usize, blocks: &Range<u64>) -> Option<Range<u64>> {
        let group = self.data_group(file);
        let inode = &mut self.inodes[file];
        let length = blocks.end - blocks.start;
        if let Some((first, rest)) = &mut inode.kept
            && *first <= blocks.start
            && blocks.start - *first < rest.end - rest.start
        {
            let start = rest.start + (blocks.start - *first);
            let end = (start + length).min(rest.end);
            (*first, rest.start) = (blocks.start + (end - start), end);
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
        let grant = self.space.allocate(&wanted)?;
        let inode = &mut self.inodes[file];
        if let Some((_, rest)) = std::mem::replace(&mut inode.kept, grant.kept) {
            self.space.free_now(rest);
        }
        Some(grant.blocks)
    }
}

impl World {
    /// Whether a page of a file has no block, or one that was never written.
    fn lacks_contents(&mut self, file: usize, page: u64) -> bool {
        self.fs().inode(file).find(page).is_none_or(|extent| !extent.is_written)
    }

    /// A bio that wrote pages of a file is done.
    pub fn file_pages_written(&mut self, token: u64, by: ContextId) {
        let write = self.fs().write_of.remove(&token).expect("the token is that of a write");
        self.all_of_write(by, write);
    }

    /// One of the bios of a write is done, or all have been submitted.
    fn all_of_write(&mut self, by: ContextId, number: u64) {
        let write = self.fs().writes.get_mut(&number).expect("it is under way");
        write.bios_left -= 1;
        if write.bios_left > 0 {
            return;
        }
        let write = self.fs().writes.remove(&number).expect("it was there a line above");
        if write.converts {
            self.convert(by, &write);
        }
        for token in write.tokens {
            self.pages_read(token, by);
        }
    }

    /// New blocks have their contents: their extents say so from the running transaction on.
    fn convert(&mut self, by: ContextId, write: &Write) {
        let expires = self.commit_deadline();
        let fs = self.fs();
        let transaction = fs.journal.join(ALLOCATE, expires);
        self.arm_committer();
        let fs = self.fs();
        let inode = &mut fs.inodes[write.file];
        let (changed, leaf) = inode.convert(write.blocks.clone());
        if changed && !inode.is_removed {
            (inode.changed_in, inode.data_changed_in) = (transaction, transaction);
            let table = fs.table_block(write.file);
            self.changed(table);
            let changes = self.fs().tend_leaf(write.file, transaction, leaf);
            changes.into_iter().for_each(|block| self.changed(block));
        }
        self.end_handle(by, ALLOCATE);
    }
}
