//! Writing the disk through the page cache, and making durable what was written.
//!
//! A write makes pages dirty and returns, unless so much is dirty that it must pause. Pages are
//! written by whoever asks for it (fsync, O_DSYNC, the last one who closes the disk) or by the
//! flusher, each as a bio of its own under one plug (rule flusher-5). A page of which only
//! a part is written is read before (rule page-cache-3).

use super::{PAGE, PageIo, pages_of};
use crate::file::{Errno, File, Transfer};
use crate::storage::pages_of_transfer;
use crate::task::Lock;
use block::{CgroupId, Flags, Op, PlugFlush};
use cache::writeback::Tested;
use cache::{FILE_PAGES, PageCache};
use fs::file_lock::Mode;
use std::ops::Range;

/// All pages of the disk.
pub(crate) const ALL: Range<u64> = 0..FILE_PAGES;

impl PageIo<'_> {
    /// Writes the disk through the page cache.
    pub async fn write_cached(&self, file: &File, offset: u64, length: u64) -> Result<u64, Errno> {
        let checked = self.storage().check(Op::Write, file, offset, length);
        let transfer = checked.map_or_else(|(_, intended)| intended, |(_, transfer)| transfer);
        let number = self.enter_call(transfer).await;
        let result = checked.map(|(bytes, _)| bytes).map_err(|(errno, _)| errno);
        if let Ok(bytes @ 1..) = result {
            let shares = self.storage().rules().shares_disk;
            if shares {
                self.acquire(Lock::Disk, Mode::Shared).await;
            }
            self.write_pages(file, offset, offset + bytes).await;
            if shares {
                self.release(Lock::Disk);
            }
            if file.flags.dsync || file.flags.sync {
                self.write_and_wait(pages_of(offset, offset + bytes)).await;
                self.flush(number).await;
            }
        }
        self.leave_call(number);
        result
    }

    /// Makes pages dirty, and pauses where too much is.
    pub async fn write_pages(&self, file: &File, offset: u64, end: u64) {
        self.count_pages(offset..end);
        for page in pages_of(offset, end) {
            let is_whole = offset <= page * PAGE && (page + 1) * PAGE <= end;
            self.lock(page).await;
            // Who reads a page to change a part of it keeps it locked until it is changed.
            let reads = !is_whole && !self.cache().holds(page);
            if reads {
                self.cache().hold(page);
                self.read_alone(page, Flags::NONE).await;
            }
            if !self.cache().is_ready(page) {
                self.wait_for_page(page).await;
            }
            self.compute(self.costs().copy + self.costs().dirty).await;
            let (tested, is_first) = {
                let mut world = self.world();
                let now = world.tick();
                world.cache().used(file.number, page);
                let is_first = world.cache().dirty(self.id(), page, now);
                (world.cache().test_writer(self.id(), page, now), is_first)
            };
            if reads {
                self.unlock(page);
            }
            if is_first {
                self.world().wake_flusher(CgroupId::ROOT);
            }
            self.heed(tested).await;
        }
    }

    /// Writes what is dirty of a range of pages and waits until all of it is written.
    pub async fn write_and_wait(&self, pages: Range<u64>) {
        // What is made dirty meanwhile is not written (rule flusher-6).
        let mut dirty = self.cache().dirty_runs(pages.clone());
        dirty.reverse();
        if !dirty.is_empty() {
            let flags = self.storage().rules().synced_pages;
            self.queue().start_plug(self.id());
            loop {
                let batch = self.cache().next_batch(&mut dirty);
                if batch.is_empty() {
                    break;
                }
                for page in batch {
                    self.lock(page).await;
                    if self.cache().is_dirty(page) {
                        self.wait_for_writeback(page).await;
                        self.write_page(page, flags).await;
                    }
                }
            }
            self.finish_plug(PlugFlush::Explicit).await;
        }
        self.wait_for_written(pages).await;
        let mut world = self.world();
        if world.cache().counts().dirty == 0 {
            let now = world.tick();
            world.cache().writeback_of(CgroupId::ROOT).visited(now, false, false);
        }
    }

    /// Waits for those of some pages that are being written. They are looked up a batch at a time,
    /// so what others begin to write meanwhile is waited for only if a batch was full (observed on
    /// 6.12: BLKFLSBUF returns while another process writes elsewhere).
    pub async fn wait_for_written(&self, pages: Range<u64>) {
        let mut next = Some(pages.start);
        while let Some(from) = next {
            let (batch, behind) = self.cache().written_batch(from..pages.end);
            for page in batch {
                self.wait_until_written(page).await;
            }
            next = behind;
        }
    }

    /// Writes one page, if it is still dirty.
    pub async fn write_page(&self, page: u64, flags: Flags) {
        let now = self.tick();
        if !self.cache().is_dirty(page) {
            return;
        }
        let writing = self.cache().write(page, now);
        self.tell_pages();
        self.submit_pages(&writing, Op::Write, flags).await;
        self.unlock(page);
    }

    fn unlock(&self, page: u64) {
        let effects = self.storage().unlock_page(page);
        self.apply(effects);
    }

    /// Waits while another task submits a page, or keeps it locked until it has been written. Who
    /// writes to a page does so too (observed on 6.12.117: dirtying of four with O_DSYNC).
    pub async fn lock(&self, page: u64) {
        self.wait_at_page(page, |cache| !cache.is_locked(page), PageCache::wait_for_lock).await;
    }

    /// Waits until a page that is dirty again has been written, and keeps it locked meanwhile: who
    /// else wants to write it waits for that.
    // Observed on 6.12.117, sched_waking: of two that fdatasync a raw disk the first wakes when
    // the page has been written, and wakes the second.
    pub async fn wait_for_writeback(&self, page: u64) {
        if !self.cache().is_written(page) {
            return;
        }
        self.cache().hold(page);
        self.wait_until_written(page).await;
        self.unlock(page);
    }

    /// Before something goes past the page cache (rule direct-io-2).
    pub async fn write_what_is_cached(&self, transfer: &Transfer) {
        let pages = pages_of_transfer(transfer);
        let must = self.storage().is_unwritten(pages.clone());
        if must {
            self.write_and_wait(pages).await;
        }
    }

    /// What is written or discarded past the page cache is not in memory any more. The answer is
    /// whether all of it has gone.
    pub async fn drop_bypassed(&self, transfer: &Transfer) -> bool {
        match transfer.op {
            Op::Read => true,
            Op::Write => self.invalidate(pages_of_transfer(transfer)).await,
            Op::Discard => {
                self.storage().bypassed(self.id(), transfer);
                true
            }
        }
    }

    /// Pages of a range go, each when nobody has it locked or writes it. The answer is whether none
    /// of them was dirty then, and so stays (rule direct-io-9).
    pub async fn invalidate(&self, pages: Range<u64>) -> bool {
        let (mut from, mut all) = (pages.start, true);
        loop {
            let kept = self.cache().next_kept(from..pages.end);
            let end = kept.unwrap_or(pages.end);
            self.cache().acts(self.id()).drop_range(from..end);
            let Some(page) = kept else { return all };
            self.lock(page).await;
            self.wait_for_page(page).await;
            self.wait_until_written(page).await;
            all &= !self.cache().is_dirty(page);
            self.cache().acts(self.id()).drop_range(page..page + 1);
            from = page + 1;
        }
    }

    /// Makes a direct write one through the page cache, and waits for it, as pages of it cannot go
    /// (rule direct-io-9).
    pub async fn write_by_the_cache(&self, file: &File, offset: u64, transfer: &Transfer) {
        self.write_pages(file, offset, offset + transfer.sectors.bytes().0).await;
        self.write_and_wait(pages_of_transfer(transfer)).await;
        self.storage().bypassed(self.id(), transfer);
    }

    /// Wakes the flusher, or pauses, as the test of a writer says.
    pub async fn heed(&self, mut tested: Tested) {
        loop {
            if tested.starts {
                self.world().wake_flusher(tested.group);
            }
            let Some((ticks, again)) = tested.pause else { return };
            let until = self.world().at_tick(ticks);
            self.world().note_dirty_pause();
            self.pause_for_dirty(until).await;
            let mut world = self.world();
            if !again || world.tasks().is_killed(self.id()) {
                return;
            }
            let now = world.tick();
            tested = world.cache().test_again(self.id(), tested.group, now);
        }
    }

    /// Waits until a page is not being written.
    pub async fn wait_until_written(&self, page: u64) {
        self.wait_at_page(page, |cache| !cache.is_written(page), PageCache::wait).await;
    }
}
