//! Buffered reads of files: as of the disk, with the blocks of each page looked up.

use super::writing::intended;
use super::{Files, Format, key};
use crate::buffered::{PAGE, PAGE_SECTORS};
use crate::file::{Errno, File, MOST_BYTES};
use crate::task::Task;
use crate::world::World;
use base::{Sector, Sectors};
use block::Op;
use cache::{FILE_PAGES, PageBio};
use std::ops::Range;

impl Task {
    /// Reads a file through the page cache; nothing is read beyond its end.
    pub(crate) async fn read_file(
        &self,
        file: &File,
        index: usize,
        offset: u64,
        length: u64,
    ) -> Result<u64, Errno> {
        let bytes = self.world().bytes_to_read(index, offset, length);
        let number = self.enter_call(intended(Op::Read, offset, bytes)).await;
        self.read_part(file, index, offset..offset + bytes).await;
        self.leave_call(number);
        Ok(bytes)
    }

    /// Reads bytes of a file that lie within it.
    pub(crate) async fn read_part(&self, file: &File, index: usize, bytes: Range<u64>) {
        if !bytes.is_empty() {
            let base = key(index, 0) * PAGE;
            self.read_pages(file, base + bytes.start, base + bytes.end).await;
            self.note_read(index).await;
        }
    }

    /// The time of access follows that of modification (mount option `relatime`).
    pub(crate) async fn note_read(&self, index: usize) {
        let now = self.world().tick();
        let is_old = {
            let mut world = self.world();
            let inode = world.files().inode(index);
            inode.accessed <= inode.modified && inode.accessed != Some(now)
        };
        if !is_old {
            return;
        }
        match self.format() {
            Format::Ext4 => self.change_accessed(index, now).await,
            Format::Xfs => self.log_accessed(index).await,
        }
    }
}

impl World {
    /// How much of a file a call reads.
    pub(super) fn bytes_to_read(&mut self, index: usize, offset: u64, length: u64) -> u64 {
        let size = self.files().inode(index).size;
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
    /// contents there are ready at once.
    pub fn cut_at_extents(&mut self, bio: PageBio) -> Vec<PageBio> {
        let file = (bio.pages.start / FILE_PAGES) as usize;
        if file == 0 {
            return vec![bio];
        }
        let pieces = self.files().pieces(file, &bio.pages);
        if pieces.len() == 1 && pieces[0].1 {
            return vec![bio];
        }
        let parts = pieces.iter().map(|(pages, _)| pages.clone()).collect();
        let bios = self.cache.split(bio.token, parts);
        let mut kept = Vec::new();
        for (bio, (_, has_contents)) in bios.into_iter().zip(pieces) {
            match has_contents {
                true => kept.push(bio),
                // Nobody can wait for what has just come.
                false => drop(self.cache.done(bio.token)),
            }
        }
        kept
    }
}

impl Files {
    /// Pages by extent, and whether they have contents.
    fn pieces(&mut self, file: usize, pages: &Range<u64>) -> Vec<(Range<u64>, bool)> {
        let mut pieces: Vec<(Range<u64>, bool)> = Vec::new();
        let mut at = pages.start;
        while at < pages.end {
            let found = self.inodes[file].find(at % FILE_PAGES).filter(|it| it.is_written);
            let length = found.map_or(1, |extent| extent.length);
            let end = (at + length).min(pages.end);
            match pieces.last_mut() {
                Some((last, false)) if found.is_none() => last.end = end,
                _ => pieces.push((at..end, found.is_some())),
            }
            at = end;
        }
        pieces
    }
}
