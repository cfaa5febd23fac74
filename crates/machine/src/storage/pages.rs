//! Pages of the disk and of files: where they are on the disk, how they are read and what comes of
//! their bios.

use super::{Effect, Storage};
use crate::file::{MOST_BYTES, Transfer};
use base::{Sector, Sectors};
use block::{ContextId, Op};
use cache::readahead::Allowance;
use cache::{FILE_PAGES, PAGE, PageBio, PageCache};
use fs::key;
use std::ops::Range;

/// Sectors of a page.
pub(crate) const PAGE_SECTORS: u64 = PAGE / 512;

impl Storage {
    /// How far the disk may be read ahead.
    pub fn readahead_allowance(&self) -> Allowance {
        let limits = self.queue.limits();
        let request = u64::from(limits.largest_at(Sector(0)).0) / PAGE_SECTORS;
        Allowance { readahead: u64::from(limits.read_ahead_kb) * 1024 / PAGE, request }
    }

    /// What is written or discarded past the page cache is not in memory any more.
    pub fn bypassed(&mut self, task: ContextId, transfer: &Transfer) {
        if transfer.op != Op::Read {
            self.cache.acts(task).drop_range(pages_of_transfer(transfer));
        }
    }

    /// Whether some pages are dirty or being written.
    pub fn is_unwritten(&self, pages: Range<u64>) -> bool {
        self.cache.next_dirty(pages.clone()).is_some() || self.cache.next_written(pages).is_some()
    }

    /// A bio that read or wrote pages is done, in this tick.
    pub fn pages_done(&mut self, token: u64, now: u64) -> Vec<Effect> {
        debug_assert!(PageCache::owns(token), "token {token:#x}");
        let waiters = self.cache.done(token, now).into_iter();
        waiters.map(|(page, task)| Effect::Page(task, page)).collect()
    }

    /// A page has been submitted: who waits for that goes on.
    pub fn unlock_page(&mut self, page: u64) -> Vec<Effect> {
        self.cache.unlock(page).into_iter().map(|task| Effect::Page(task, page)).collect()
    }

    /// How much of a file a call reads.
    pub fn bytes_to_read(&mut self, file: usize, offset: u64, length: u64) -> u64 {
        let size = self.files().inode(file).size;
        length.min(MOST_BYTES).min(size.saturating_sub(offset))
    }

    /// Where pages are on the disk that one bio reads: first sector and sectors.
    pub fn place_of_pages(&mut self, pages: &Range<u64>) -> (Sector, Sectors) {
        let (file, page) = (pages.start / FILE_PAGES, pages.start % FILE_PAGES);
        let length = (pages.end - pages.start) * PAGE_SECTORS;
        if file == 0 {
            let disk = self.queue.limits().facts.capacity.0 / 512;
            let start = page * PAGE_SECTORS;
            return (Sector(start), Sectors(length.min(disk - start) as u32));
        }
        let extent = self.files().inode(file as usize).find(page).expect("it was looked up");
        (Sector(extent.start * PAGE_SECTORS), Sectors(length as u32))
    }

    /// The end of the pages that can be read ahead from a page on.
    pub fn end_of_file(&mut self, page: u64) -> u64 {
        let file = (page / FILE_PAGES) as usize;
        if file == 0 {
            return self.queue.limits().facts.capacity.0.div_ceil(PAGE);
        }
        key(file, self.files().inode(file).size.div_ceil(PAGE))
    }

    /// Cuts a read of pages of a file where the file is not contiguous on the disk. Pages without
    /// contents there are ready at once; who waits for them already goes on.
    pub fn cut_at_extents(&mut self, bio: PageBio, now: u64) -> (Vec<PageBio>, Vec<Effect>) {
        let file = (bio.pages.start / FILE_PAGES) as usize;
        if file == 0 {
            return (vec![bio], Vec::new());
        }
        let pieces = self.files().pieces(file, &bio.pages);
        if pieces.len() == 1 && pieces[0].1 {
            return (vec![bio], Vec::new());
        }
        let parts = pieces.iter().map(|(pages, _)| pages.clone()).collect();
        let bios = self.cache.split(bio.token, parts);
        let (mut kept, mut effects) = (Vec::new(), Vec::new());
        for (bio, (_, has_contents)) in bios.into_iter().zip(pieces) {
            match has_contents {
                true => kept.push(bio),
                false => effects.extend(self.pages_done(bio.token, now)),
            }
        }
        (kept, effects)
    }
}

/// The pages of the disk that a transfer concerns.
pub(crate) fn pages_of_transfer(transfer: &Transfer) -> Range<u64> {
    let end = transfer.sector.0 + u64::from(transfer.sectors.0);
    transfer.sector.0 / PAGE_SECTORS..end.div_ceil(PAGE_SECTORS)
}
