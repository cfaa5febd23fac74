//! Pages of a file on their way to the disk.
//!
//! Pages are given blocks as late as they are written, in the way of each file system. Where the
//! kernel makes new blocks unwritten, a worker converts them when the data are on the disk, and
//! only then have the pages been written ([`super::unwritten`]).

use super::{Format, key};
use crate::buffered::{PAGE, PAGE_SECTORS};
use crate::task::Task;
use crate::world::World;
use base::{Sector, Sectors};
use block::{Bio, ContextId, Flags, Op, Origin};
use cache::FILE_PAGES;
use std::ops::Range;

/// A bio to be: pages of a file and the first block on the disk.
pub(super) struct Piece {
    pub pages: Range<u64>,
    pub start: u64,
}

/// Pages of a file that were given blocks together and are being written.
#[derive(Debug)]
pub(super) struct Write {
    pub file: usize,
    /// Blocks of the file.
    pub blocks: Range<u64>,
    /// They become written when they are on the disk.
    pub converts: bool,
    /// How far into the file there were data among them.
    pub size: u64,
    bios_left: u32,
    tokens: Vec<u64>,
}

/// Blocks of a file whose contents have come to the disk.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub file: usize,
    /// Blocks of the file.
    pub blocks: Range<u64>,
    /// How far into the file there were data among them.
    pub size: u64,
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
        match self.format() {
            Format::Ext4 => self.write_pages_of_ext4(file, pages, flags, most).await,
            Format::Xfs => self.write_pages_of_xfs(file, pages, flags, most).await,
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
    ) -> u64 {
        let (mut from, mut written) = (pages.start, 0);
        while let Some(piece) = self.next_mapped(file, from..pages.end, most - written).await {
            from = piece.pages.end;
            written += piece.pages.end - piece.pages.start;
            self.write_piece(file, piece, false, flags).await;
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
                (first, world.files().inode(file).find(first).filter(|it| it.is_written))
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
    pub(super) fn next_run(&self, file: usize, pages: Range<u64>, most: u64) -> Option<Range<u64>> {
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
        let limit = first.saturating_add(most).min(pages.end);
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

    /// Writes a piece, in as many bios as that takes. Does not wait for it.
    pub(super) async fn write_piece(&self, file: usize, it: Piece, converts: bool, flags: Flags) {
        let write = self.begin_write(file, it.pages.clone(), converts);
        for bio in self.cut(file, vec![it], u64::MAX) {
            self.submit_piece(file, write, bio, flags).await;
        }
        self.world().all_of_write(self.id(), write);
    }

    pub(super) async fn submit_last(
        &self,
        file: usize,
        write: u64,
        last: Option<Piece>,
        flags: Flags,
    ) {
        if let Some(bio) = last {
            self.submit_piece(file, write, bio, flags).await;
        }
        self.world().all_of_write(self.id(), write);
    }

    pub(super) fn begin_write(&self, file: usize, blocks: Range<u64>, converts: bool) -> u64 {
        let mut world = self.world();
        let fs = world.files();
        fs.next_write += 1;
        let size = fs.inode(file).size.min(blocks.end * PAGE);
        let write = Write { file, blocks, converts, size, bios_left: 1, tokens: Vec::new() };
        fs.writes.insert(fs.next_write, write);
        fs.next_write
    }

    /// Cuts pieces where a bio can hold no more, or has so many pages.
    pub(super) fn cut(&self, file: usize, pieces: Vec<Piece>, longest: u64) -> Vec<Piece> {
        let world = self.world();
        let mut bios = Vec::new();
        for Piece { pages, start } in pieces {
            let first = key(file, pages.start);
            for bio in world.cache.bios_of(first..key(file, pages.end), longest) {
                let (from, end) = (bio.start - first, bio.end - first);
                let pages = pages.start + from..pages.start + end;
                bios.push(Piece { pages, start: start + from });
            }
        }
        bios
    }

    /// Submits pages as one bio. Somebody else may have begun to write some of them while their
    /// blocks were looked for: those are left out, and where they are dirty again, waited for.
    pub(super) async fn submit_piece(&self, file: usize, write: u64, piece: Piece, flags: Flags) {
        let Piece { pages, start } = piece;
        let mut from = pages.start;
        while let Some(part) = self.next_writable(file, from..pages.end).await {
            from = part.end;
            let start = start + (part.start - pages.start);
            self.submit_as_one(file, write, Piece { pages: part, start }, flags).await;
        }
    }

    /// The next dirty pages of a range that nobody is writing.
    async fn next_writable(&self, file: usize, pages: Range<u64>) -> Option<Range<u64>> {
        let all = key(file, pages.start)..key(file, pages.end);
        loop {
            let first = self.world().cache.next_dirty(all.clone())?;
            let may = {
                let world = self.world();
                let cache = &world.cache;
                let may = |page: &u64| cache.is_dirty(*page) && !cache.is_written(*page);
                (first..all.end).take_while(may).count() as u64
            };
            if may > 0 {
                let start = first % FILE_PAGES;
                return Some(start..start + may);
            }
            self.wait_until_written(first).await;
        }
    }

    async fn submit_as_one(&self, file: usize, write: u64, piece: Piece, flags: Flags) {
        let length = piece.pages.end - piece.pages.start;
        let (token, memory) = {
            let mut world = self.world();
            let now = world.tick();
            let pages = key(file, piece.pages.start)..key(file, piece.pages.end);
            let memory = world.cache.memory_of(pages.clone());
            let token = world.cache.write_run(pages, now);
            let fs = world.files();
            fs.write_of.insert(token, write);
            let under_way = fs.writes.get_mut(&write).expect("it has begun");
            under_way.bios_left += 1;
            under_way.tokens.push(token);
            (token, memory)
        };
        self.compute(self.costs().writeback * length).await;
        {
            let mut world = self.world();
            let bio = Bio {
                op: Op::Write,
                flags,
                sector: Sector(piece.start * PAGE_SECTORS),
                sectors: Sectors((length * PAGE_SECTORS) as u32),
                ioprio: world.tasks.ioprio(self.id()),
                origin: self.origin_for(&mut world, file),
                token,
            };
            world.submit_scattered(bio, memory);
        }
        self.drive().await;
    }
}

impl Task {
    /// As whom bios of a file are submitted: where control groups have writeback of their own, for
    /// the group that the file belongs to.
    fn origin_for(&self, world: &mut World, file: usize) -> Origin {
        let own = self.origin(world);
        match world.cache.groups.is_on() {
            true => Origin { cgroup: world.cache.owner(key(file, 0)), ..own },
            false => own,
        }
    }
}

impl World {
    /// A task is about to dirty a page, which may make the file its group's.
    pub(crate) fn claim_page(&mut self, task: ContextId, page: u64) {
        let group = self.tasks.cgroup(task);
        self.cache.claim(page, group);
    }

    /// Which file system is mounted.
    pub(crate) fn format(&mut self) -> Format {
        self.files().mount.format
    }

    /// Whether a page of a file has no block, or one that was never written.
    pub(super) fn lacks_contents(&mut self, file: usize, page: u64) -> bool {
        self.files().inode(file).find(page).is_none_or(|extent| !extent.is_written)
    }

    /// A bio that wrote pages of a file is done.
    pub fn file_pages_written(&mut self, token: u64, by: ContextId) {
        let write = self.files().write_of.remove(&token).expect("the token is that of a write");
        self.all_of_write(by, write);
    }

    /// One of the bios of a write is done, or all have been submitted.
    pub(super) fn all_of_write(&mut self, by: ContextId, number: u64) {
        let write = self.files().writes.get_mut(&number).expect("it is under way");
        write.bios_left -= 1;
        if write.bios_left > 0 {
            return;
        }
        let write = self.files().writes.remove(&number).expect("it was there a line above");
        let Write { file, blocks, size, converts, tokens, .. } = write;
        if converts || self.grows_on_disk(file, size) {
            let written = Written { file, blocks, size };
            return self.leave_to_converter(written, tokens, by);
        }
        for token in tokens {
            self.pages_done(token, by);
        }
    }

    /// Whether XFS is to learn that a file is so long; ext4 knows when it gives blocks their places.
    fn grows_on_disk(&mut self, file: usize, size: u64) -> bool {
        self.format() == Format::Xfs && size > self.files().inode(file).disk_size
    }
}
