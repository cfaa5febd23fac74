//! Writing the disk through the page cache, and making durable what was written.
//!
//! A write makes pages dirty and returns, unless so much is dirty that it must pause. Pages are
//! written by whoever asks for it (fsync, O_DSYNC, the last one who closes the disk) or by the
//! flusher, each as a bio of its own under one plug (rule flusher-5). A page of which only
//! a part is written is read before (rule page-cache-3).

use crate::file::{Errno, File, Transfer};
use crate::io::Operation;
use crate::task::Task;
use crate::world::World;
use base::{Hz, Instant};
use block::{CgroupId, Flags, Op, PlugFlush, Syscall};
use cache::writeback::Tested;
use cache::{FILE_PAGES, PageCache};
use std::ops::Range;

use super::{PAGE, PAGE_SECTORS, flusher, pages_of};

/// All pages of the disk.
pub(crate) const ALL: Range<u64> = 0..FILE_PAGES;
const SECOND: u64 = 1_000_000_000;
impl Task {
    /// Writes the disk through the page cache.
    pub(crate) async fn write_cached(
        &self,
        file: &File,
        offset: u64,
        length: u64,
    ) -> Result<u64, Errno> {
        let checked = self.world().check(Op::Write, file, offset, length);
        let transfer = checked.map_or_else(|(_, intended)| intended, |(_, transfer)| transfer);
        let number = self.enter_call(transfer).await;
        let result = checked.map(|(bytes, _)| bytes).map_err(|(errno, _)| errno);
        if let Ok(bytes @ 1..) = result {
            self.write_pages(file, offset, offset + bytes).await;
            if file.flags.dsync || file.flags.sync {
                self.write_and_wait(pages_of(offset, offset + bytes)).await;
                self.flush(number).await;
            }
        }
        self.leave_call(number);
        result
    }

    /// Makes pages dirty, and pauses where too much is.
    pub(crate) async fn write_pages(&self, file: &File, offset: u64, end: u64) {
        for page in pages_of(offset, end) {
            let is_whole = offset <= page * PAGE && (page + 1) * PAGE <= end;
            if !is_whole && !self.world().cache.holds(page) {
                self.read_alone(page, Flags::NONE).await;
            }
            if !self.world().cache.is_ready(page) {
                self.wait_for_page(page).await;
            }
            self.compute(self.costs().copy + self.costs().dirty).await;
            let (tested, is_first) = {
                let mut world = self.world();
                let now = world.tick();
                world.cache.used(file.number, page);
                let is_first = world.cache.dirty(self.id(), page, now);
                (world.cache.test_writer(self.id(), page, now), is_first)
            };
            if is_first {
                flusher::wake(self, CgroupId::ROOT);
            }
            self.heed(tested).await;
        }
    }

    /// Writes what is dirty of a range of pages and waits until all of it is written.
    pub(crate) async fn write_and_wait(&self, pages: Range<u64>) {
        // What is made dirty meanwhile is not written (rule flusher-6).
        let mut dirty = self.world().cache.dirty_runs(pages.clone());
        dirty.reverse();
        if !dirty.is_empty() {
            let flags = self.world().rules.synced_pages;
            self.world().queue.start_plug(self.id());
            loop {
                let batch = self.world().cache.next_batch(&mut dirty);
                if batch.is_empty() {
                    break;
                }
                for page in batch {
                    self.lock(page).await;
                    if self.world().cache.is_dirty(page) {
                        self.wait_until_written(page).await;
                        self.write_page(page, flags).await;
                    }
                }
            }
            self.finish_plug(PlugFlush::Explicit).await;
        }
        self.wait_for_written(pages).await;
        let mut world = self.world();
        if world.cache.counts().dirty == 0 {
            let now = world.tick();
            world.cache.writeback.visited(now, false, false);
        }
    }

    /// Waits for those of some pages that are being written.
    pub(crate) async fn wait_for_written(&self, pages: Range<u64>) {
        let mut from = pages.start;
        while let Some(page) = {
            let world = self.world();
            world.cache.next_written(from..pages.end)
        } {
            self.wait_until_written(page).await;
            from = page + 1;
        }
    }

    /// Writes one page, if it is still dirty.
    pub(crate) async fn write_page(&self, page: u64, flags: Flags) {
        {
            let mut world = self.world();
            if !world.cache.is_dirty(page) {
                return;
            }
            let now = world.tick();
            let writing = world.cache.write(page, now);
            let bio = self.bio_of_pages(&mut world, &writing, Op::Write, flags);
            world.submit(bio);
        }
        self.drive().await;
        let mut world = self.world();
        for task in world.cache.unlock(page) {
            world.wake_page_waiter(self.id(), task, page);
        }
    }

    /// Waits while another task submits a page.
    pub(crate) async fn lock(&self, page: u64) {
        self.wait_at_page(page, |cache| !cache.is_locked(page), PageCache::wait_for_lock).await;
    }

    /// A flush as a part of something else.
    pub(crate) async fn flush_besides(&self) {
        let number = self.begin_besides();
        self.flush(number).await;
        self.end_besides(number);
    }

    /// Begins to make something durable that no call asked for; the answer is its number.
    pub(crate) fn begin_besides(&self) -> u64 {
        let mut world = self.world();
        let operation = Operation::new(world.clock.now(), Syscall::Sync, Transfer::FLUSH);
        world.io.begin(self.id(), operation)
    }

    /// Ends that.
    pub(crate) fn end_besides(&self, number: u64) {
        self.world().io.end(self.id(), number);
    }

    /// Before something goes past the page cache (rule direct-io-2).
    pub(crate) async fn write_what_is_cached(&self, transfer: &Transfer) {
        let end = transfer.sector.0 + u64::from(transfer.sectors.0);
        let pages = transfer.sector.0 / PAGE_SECTORS..end.div_ceil(PAGE_SECTORS);
        let must = {
            let world = self.world();
            let cache = &world.cache;
            cache.next_dirty(pages.clone()).is_some() || cache.next_written(pages.clone()).is_some()
        };
        if must {
            self.write_and_wait(pages).await;
        }
    }

    /// Wakes the flusher, or pauses, as the test of a writer says.
    pub(crate) async fn heed(&self, mut tested: Tested) {
        loop {
            if tested.starts {
                flusher::wake(self, tested.group);
            }
            let Some((ticks, again)) = tested.pause else { return };
            let until = self.world().at_tick(ticks);
            self.sleep_until(until).await;
            let mut world = self.world();
            if !again || world.tasks.is_killed(self.id()) {
                return;
            }
            let now = world.tick();
            tested = world.cache.test_again(self.id(), tested.group, now);
        }
    }

    pub(crate) async fn wait_until_written(&self, page: u64) {
        self.wait_at_page(page, |cache| !cache.is_written(page), PageCache::wait).await;
    }
}

impl World {
    /// Ticks since time zero.
    pub fn tick(&self) -> u64 {
        ticks(self.clock.now(), self.cache.writeback.hz())
    }

    /// When a sleep of so many ticks ends.
    pub fn at_tick(&self, ticks: u64) -> Instant {
        // A tick that has begun does not count. // observed on 6.12
        self.start_of_tick(self.tick() + ticks + 1)
    }

    /// When a tick begins.
    pub fn start_of_tick(&self, tick: u64) -> Instant {
        let hz = u64::from(self.cache.writeback.hz().get());
        Instant::from_nanos(tick * SECOND / hz)
    }
}

fn ticks(now: Instant, hz: Hz) -> u64 {
    now.as_nanos() / (SECOND / u64::from(hz.get()))
}
