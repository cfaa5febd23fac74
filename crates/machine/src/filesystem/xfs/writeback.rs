//! Dirty pages of a file on their way to the disk, one after the other.
//!
//! Pages are found a batch at a time. Each is locked and is being written from then on, before its
//! block is looked for; it is unlocked when it is in a bio. A page that does not fit into the bio
//! stays locked while that is submitted. So who looks for dirty pages later finds none of these,
//! and who had found one waits for its lock and leaves it out (rule flusher-8). Before it looks for
//! the next batch a task gives way to others; the last bio is not submitted then.
// Observed on 6.12.117, xfs_ilock, xfs_map_blocks_found, sched_switch and block_bio_queue: while
// fsync looks for room for the first page of a file, the flusher comes to the second one. While
// fsync waits for a tag, the flusher passes by the page behind its bio. One of three tasks that
// sync is switched off behind all its bios but the last, which it submits 200 us later.

use super::XfsIo;
use crate::filesystem::writeback::{Piece, Progress};
use block::Flags;
use cache::{FILE_PAGES, OpenBio};
use fs::key;
use fs::xfs::Purpose;
use std::collections::VecDeque;
use std::ops::Range;

/// Pages of a bio (observed on 6.12: 16 MiB).
const MOST_PAGES: u64 = 4096;

/// A bio to be.
struct Open {
    bio: OpenBio,
    /// Its first block.
    start: u64,
    /// Whether its blocks have contents.
    is_written: bool,
}

impl XfsIo<'_> {
    /// Writes dirty pages of a file, at most so many.
    pub(in crate::filesystem) async fn write_dirty(
        &self,
        file: usize,
        pages: Range<u64>,
        flags: Flags,
        most: u64,
    ) -> Progress {
        let (mut from, mut progress) = (pages.start, Progress::default());
        let (mut found, mut open) = (VecDeque::new(), None);
        while progress.written < most {
            if found.is_empty() {
                self.give_way().await;
                found = self.cache().dirty_batch(key(file, from)..key(file, pages.end));
            }
            let Some(next) = found.pop_front() else { break };
            let page = next % FILE_PAGES;
            from = page + 1;
            if self.begin(next, flags).await {
                self.write_begun(file, page, flags, &mut open).await;
                self.let_go(file, page..page + 1);
                progress.note(&(page..page + 1));
            }
        }
        self.submit(file, open, flags).await;
        progress
    }

    /// Locks a page that was found and begins to write it, unless another has. Who must waits for
    /// one that is dirty again while it is being written; the flusher leaves it.
    async fn begin(&self, page: u64, flags: Flags) -> bool {
        loop {
            self.lock(page).await;
            let now = self.tick();
            {
                let mut cache = self.cache();
                if cache.hold_dirty(page..page + 1).is_some() {
                    cache.begin_write(page..page + 1, now);
                    return true;
                }
                if !cache.is_dirty(page) || !flags.intersects(Flags::SYNC) {
                    return false;
                }
            }
            self.wait_for_writeback(page).await;
        }
    }

    /// Puts a page that was begun into a bio: into the last one, or into a new one when that is
    /// submitted.
    async fn write_begun(&self, file: usize, page: u64, flags: Flags, open: &mut Option<Open>) {
        // Nobody asks again for the extent in which the page before was found.
        let is_known = open.as_ref().is_some_and(|open| {
            let before = (open.bio.pages.end - 1) % FILE_PAGES;
            let extent = self.files().inode(file).extent_at(before);
            extent.is_some_and(|blocks| blocks.contains(&page))
        });
        if !is_known {
            self.place_for(file, page, Purpose::Pages).await;
        }
        let found = self.files().inode(file).find(page);
        let found = found.expect("room was set aside for what is dirty");
        let is_added = open.as_mut().is_some_and(|open| {
            let follows = found.start == open.start + (page - open.bio.pages.start % FILE_PAGES);
            open.bio.pages.end == key(file, page)
                && follows
                && found.is_written == open.is_written
                && open.bio.pages.end - open.bio.pages.start < MOST_PAGES
                && self.cache().add_to(&mut open.bio)
        });
        if !is_added {
            let bio = OpenBio::new(key(file, page));
            let next = Open { bio, start: found.start, is_written: found.is_written };
            let full = open.replace(next);
            self.submit(file, full, flags).await;
        }
    }

    async fn submit(&self, file: usize, open: Option<Open>, flags: Flags) {
        let Some(Open { bio, start, is_written }) = open else { return };
        let pages = bio.pages.start % FILE_PAGES;
        let pages = pages..pages + (bio.pages.end - bio.pages.start);
        let write = self.files().begin_write(file, pages.clone(), !is_written);
        self.submit_begun(file, write, Piece { pages, start }, flags).await;
        self.all_of_write(write);
    }
}
