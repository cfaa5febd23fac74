//! Pages of a file on their way to the disk.
//!
//! Pages are given blocks as late as they are written, in the way of each file system. Where the
//! kernel makes new blocks unwritten, a worker converts them when the data are on the disk, and
//! only then have the pages been written ([`super::unwritten`]).

use super::FileIo;
use crate::file::{File, Kind};
use crate::storage::PAGE_SECTORS;
use crate::world::World;
use base::{Sector, Sectors};
use block::{Bio, Flags, Op, Origin, PlugFlush};
use cache::FILE_PAGES;
use fs::{Format, all_pages, key};
use std::ops::Range;

/// What became of dirty pages that were to be written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// How many were written.
    pub written: u64,
    /// The page behind the last of them; zero if there was none.
    pub end: u64,
}

impl Progress {
    /// Some pages were written.
    pub fn note(&mut self, pages: &Range<u64>) {
        self.written += pages.end - pages.start;
        self.end = pages.end;
    }

    /// More was written.
    pub fn add(&mut self, more: Progress) {
        self.written += more.written;
        self.end = more.end;
    }
}

/// A bio to be: pages of a file and the first block on the disk.
pub(super) struct Piece {
    pub pages: Range<u64>,
    pub start: u64,
}

impl Piece {
    /// Whether it follows another in the file and on the disk.
    pub fn follows(&self, other: &Piece) -> bool {
        let length = other.pages.end - other.pages.start;
        self.pages.start == other.pages.end && self.start == other.start + length
    }
}

impl FileIo<'_> {
    /// Writes dirty pages of a file, at most so many. On ext4 the flusher goes on behind them next
    /// time, if the whole file was to be written (rule flusher-3).
    pub(super) async fn write_file_pages(
        &self,
        file: usize,
        pages: Range<u64>,
        flags: Flags,
        most: u64,
    ) -> Progress {
        match self.format() {
            Format::Ext4 => {
                let is_whole = pages == (0..FILE_PAGES);
                let progress = self.on_ext4().write_dirty(file, pages, flags, most).await;
                if is_whole {
                    self.files().leave_off(file, progress.end);
                }
                progress
            }
            Format::Xfs => self.on_xfs().write_dirty(file, pages, flags, most).await,
        }
    }

    /// Writes those dirty pages whose blocks have a place and contents.
    pub(super) async fn write_mapped(&self, file: usize, pages: Range<u64>, flags: Flags) {
        self.write_mapped_up_to(file, pages, flags, u64::MAX).await;
    }

    pub(super) async fn write_mapped_up_to(
        &self,
        file: usize,
        pages: Range<u64>,
        flags: Flags,
        most: u64,
    ) -> Progress {
        let (mut from, mut progress) = (pages.start, Progress::default());
        while let Some(piece) =
            self.next_mapped(file, from..pages.end, most - progress.written, flags).await
        {
            from = piece.pages.end;
            progress.note(&piece.pages);
            let goes_on = progress.written < most;
            self.write_piece(file, piece, false, flags, goes_on.then_some(from..pages.end)).await;
            if !goes_on {
                break;
            }
        }
        progress
    }

    /// The first dirty page that can be written. Who must waits for one that is being written; the
    /// flusher leaves it.
    pub(super) async fn first_to_write(
        &self,
        file: usize,
        pages: Range<u64>,
        flags: Flags,
    ) -> Option<u64> {
        let mut from = key(file, pages.start);
        loop {
            let dirty = self.cache().next_dirty(from..key(file, pages.end))?;
            if self.cache().is_locked(dirty) {
                self.lock(dirty).await;
            } else if !self.cache().is_written(dirty) {
                return Some(dirty % FILE_PAGES);
            } else if flags.intersects(Flags::SYNC) {
                self.wait_for_writeback(dirty).await;
            } else {
                from = dirty + 1;
            }
        }
    }

    /// The next dirty pages whose blocks have contents, and that follow each other in the file and
    /// on the disk.
    pub(super) async fn next_mapped(
        &self,
        file: usize,
        pages: Range<u64>,
        most: u64,
        flags: Flags,
    ) -> Option<Piece> {
        let mut from = pages.start;
        loop {
            let first = self.first_to_write(file, from..pages.end, flags).await?;
            let Some(extent) = self.files().find_contents(file, first) else {
                from = first + 1;
                continue;
            };
            let cache = self.cache();
            let may = |page: &u64| {
                let page = key(file, *page);
                cache.is_dirty(page) && !cache.is_locked(page) && !cache.is_written(page)
            };
            let limit = first.saturating_add(extent.length.min(most)).min(pages.end);
            let count = (first..limit).take_while(may).count() as u64;
            return Some(Piece { pages: first..first + count, start: extent.start });
        }
    }

    /// Writes a piece, in as many bios as that takes. Does not wait for it. A bio is submitted when
    /// the page after it is known, of this piece or of those behind it: that one is locked then.
    // Observed on 6.12: while fsync waits for a tag, the flusher waits for such a page of the same
    // file, and comes to the next one when fsync has gone on (rule flusher-8).
    pub(super) async fn write_piece(
        &self,
        file: usize,
        it: Piece,
        converts: bool,
        flags: Flags,
        behind: Option<Range<u64>>,
    ) {
        let write = self.files().begin_write(file, it.pages.clone(), converts);
        let mut bios = self.cut(file, vec![it]).into_iter().peekable();
        while let Some(bio) = bios.next() {
            let next = bios.peek().map(|next| next.pages.clone()).or(behind.clone());
            let held = next.and_then(|pages| self.hold_dirty(file, pages));
            self.submit_piece(file, write, bio, flags, held).await;
        }
        self.all_of_write(write);
    }

    /// Locks the first dirty page of some, unless somebody has it or writes it; the answer is
    /// which.
    pub(super) fn hold_dirty(&self, file: usize, pages: Range<u64>) -> Option<u64> {
        let held = self.cache().hold_dirty(key(file, pages.start)..key(file, pages.end));
        held.map(|page| page % FILE_PAGES)
    }

    /// Unlocks pages of a file.
    pub(super) fn let_go(&self, file: usize, pages: Range<u64>) {
        for page in pages {
            let effects = self.storage().unlock_page(key(file, page));
            self.apply(effects);
        }
    }

    /// Submits the last bio of a write, if there is one.
    pub(super) async fn submit_last(
        &self,
        file: usize,
        write: u64,
        last: Option<Piece>,
        flags: Flags,
    ) {
        if let Some(bio) = last {
            self.submit_piece(file, write, bio, flags, None).await;
        }
        self.all_of_write(write);
    }

    /// Cuts pieces where a bio can hold no more.
    pub(super) fn cut(&self, file: usize, pieces: Vec<Piece>) -> Vec<Piece> {
        let cache = self.cache();
        let mut bios = Vec::new();
        for Piece { pages, start } in pieces {
            let first = key(file, pages.start);
            for bio in cache.bios_of(first..key(file, pages.end)) {
                let (from, end) = (bio.start - first, bio.end - first);
                let pages = pages.start + from..pages.start + end;
                bios.push(Piece { pages, start: start + from });
            }
        }
        bios
    }

    /// Submits pages as one bio. Somebody else may have begun to write some of them while their
    /// blocks were looked for: those are left out, and where they are dirty again, waited for. A
    /// page that is held behind them is let go at the end, or as soon as there is one to wait for:
    /// who has a page waits for none before it, or two would wait for each other.
    pub(super) async fn submit_piece(
        &self,
        file: usize,
        write: u64,
        piece: Piece,
        flags: Flags,
        mut held: Option<u64>,
    ) {
        let Piece { pages, start } = piece;
        let mut from = pages.start;
        while let Some(part) = self.next_writable(file, from..pages.end, &mut held).await {
            from = part.end;
            let start = start + (part.start - pages.start);
            self.submit_as_one(file, write, Piece { pages: part, start }, flags).await;
        }
        self.let_go_held(file, held);
    }

    fn let_go_held(&self, file: usize, held: Option<u64>) {
        held.into_iter().for_each(|page| self.let_go(file, page..page + 1));
    }

    /// The next dirty pages of a range that nobody is writing.
    async fn next_writable(
        &self,
        file: usize,
        pages: Range<u64>,
        held: &mut Option<u64>,
    ) -> Option<Range<u64>> {
        let all = key(file, pages.start)..key(file, pages.end);
        loop {
            let first = self.cache().next_dirty(all.clone())?;
            let may = {
                let cache = self.cache();
                let may = |page: &u64| {
                    cache.is_dirty(*page) && !cache.is_written(*page) && !cache.is_locked(*page)
                };
                (first..all.end).take_while(may).count() as u64
            };
            if may > 0 {
                let start = first % FILE_PAGES;
                return Some(start..start + may);
            }
            self.let_go_held(file, held.take());
            self.lock(first).await;
            self.wait_until_written(first).await;
        }
    }

    /// Waits until nobody else submits or writes a dirty page of some.
    pub(super) async fn wait_for_others(&self, file: usize, pages: Range<u64>) {
        let mut from = key(file, pages.start);
        while let Some(page) = self.next_of_others(from..key(file, pages.end)) {
            self.lock(page).await;
            self.wait_until_written(page).await;
            from = page;
        }
    }

    fn next_of_others(&self, pages: Range<u64>) -> Option<u64> {
        let cache = self.cache();
        let mut from = pages.start;
        while let Some(page) = cache.next_dirty(from..pages.end) {
            if cache.is_locked(page) || cache.is_written(page) {
                return Some(page);
            }
            from = page + 1;
        }
        None
    }

    async fn submit_as_one(&self, file: usize, write: u64, piece: Piece, flags: Flags) {
        let pages = key(file, piece.pages.start)..key(file, piece.pages.end);
        let now = self.tick();
        self.cache().begin_write(pages, now);
        self.submit_begun(file, write, piece, flags).await;
    }

    /// Submits pages that were begun as one bio.
    pub(super) async fn submit_begun(&self, file: usize, write: u64, piece: Piece, flags: Flags) {
        let length = piece.pages.end - piece.pages.start;
        let (token, memory) = {
            let mut storage = self.storage();
            let pages = key(file, piece.pages.start)..key(file, piece.pages.end);
            let memory = storage.cache().memory_of(pages.clone());
            let token = storage.cache_mut().acts(self.id()).submit_begun(pages);
            storage.files().add_bio(write, token);
            (token, memory)
        };
        self.tell_pages();
        self.compute(self.costs().writeback * length).await;
        {
            let mut world = self.world();
            let bio = Bio {
                op: Op::Write,
                flags,
                sector: Sector(piece.start * PAGE_SECTORS),
                sectors: Sectors((length * PAGE_SECTORS) as u32),
                ioprio: world.tasks().ioprio(self.id()),
                origin: self.origin_for(&mut world, file),
                token,
            };
            world.submit_scattered(bio, memory);
        }
        self.drive().await;
    }

    /// Nothing more of a write will be submitted.
    pub(super) fn all_of_write(&self, write: u64) {
        let now = self.tick();
        let effects = self.storage().all_of_write(write, now);
        self.apply(effects);
    }

    /// As whom bios of a file are submitted: where control groups have writeback of their own, for
    /// the group that the file belongs to.
    fn origin_for(&self, world: &mut World, file: usize) -> Origin {
        let own = self.origin(world);
        match world.cache().has_group_writeback() {
            true => Origin { cgroup: world.cache().owner(key(file, 0)), ..own },
            false => own,
        }
    }

    /// Pages of a file from one on go: first those that nobody writes, then those that are being
    /// written, when they have been. Whoever submits a page waits for it as soon as he has unlocked
    /// it, and so goes on first.
    // Observed on 6.12: one dd truncates the file that another writes with O_SYNC on ext4, or of
    // which it syncs the first page on XFS, and no other.
    pub(super) async fn drop_pages(&self, file: usize, first: u64) {
        let pages = key(file, first)..all_pages(file).end;
        self.cache().discard(pages.clone());
        let mut from = pages.start;
        loop {
            let next = self.cache().next_written(from..pages.end);
            let Some(page) = next else { break };
            self.lock(page).await;
            self.wait_until_written(page).await;
            from = page + 1;
        }
        self.cache().discard(pages);
    }

    /// What a file that was made empty has got since is written when it is closed; on XFS if some
    /// of it has no place yet (observed on 6.1 and 6.12).
    pub async fn write_rewritten(&self, file: &File) {
        let Kind::File(index) = file.kind else { return };
        let was_rewritten = self.files().inode(index).end_rewriting();
        if was_rewritten && (self.format() != Format::Xfs || self.xfs().has_delayed(index)) {
            self.write_without_waiting(index, 0..FILE_PAGES, Flags::NONE).await;
        }
    }

    /// Writes what is dirty of some pages of a file, and does not wait for it.
    pub async fn write_without_waiting(&self, index: usize, pages: Range<u64>, flags: Flags) {
        let keys = key(index, pages.start)..key(index, pages.end);
        if self.cache().next_dirty(keys).is_none() {
            return;
        }
        self.queue().start_plug(self.id());
        self.write_file_pages(index, pages, flags, u64::MAX).await;
        self.finish_plug(PlugFlush::Explicit).await;
    }
}
