//! The disk through the page cache, and what files have in common with it.
//!
//! Page by page (rule page-cache-1): what is missing is read with what readahead adds; whoever
//! touches a mark has the next window read before he waits for his page; then the page is copied.
//! Who submits is always the caller, each window under a plug of its own. Beside reading: advice,
//! what drops clean pages, and closing.

pub(crate) mod flusher;
mod mapped;
mod writing;

use crate::file::{Errno, File, Transfer};
use crate::task::Task;
use crate::tasks::Wait;
use crate::world::World;
use base::Sector;
use block::{Bio, ContextId, Flags, Op, PlugFlush};
use cache::pages::Counts;
use cache::readahead::{Advice, Allowance, Reader, Window};
use cache::{PageBio, PageCache};
pub(crate) use flusher::wake as wake_flusher;
pub use mapped::Mapping;
use std::future::poll_fn;
use std::ops::Range;
use std::task::Poll;
pub(crate) use writing::ALL;

pub(crate) const PAGE: u64 = 4096;
pub(crate) const PAGE_SECTORS: u64 = PAGE / 512;

impl Task {
    /// How many pages are in memory, and how many of them must be written (`/proc/meminfo`).
    pub fn page_cache(&self) -> Counts {
        self.world().cache.counts()
    }

    /// Says how a file will be read.
    pub fn advise(&self, file: &File, advice: Advice) {
        if file.is_cached() {
            let mut world = self.world();
            let device = world.readahead_allowance();
            world.cache.advise(file.number, advice, device);
        }
    }

    /// Writes what is dirty of the disk and drops everything that is cached (BLKFLSBUF).
    pub async fn drop_cached(&self, file: &File) {
        if file.is_disk() {
            self.enter_kernel().await;
            self.write_and_wait(ALL).await;
            self.world().cache.forget_range(ALL);
            self.leave_kernel();
        }
    }

    /// Closes a file; the last one who closes the disk writes what is dirty (rule sync-4).
    /// Others of the same task are closed when it exits.
    pub async fn close(&self, file: &File) {
        if file.is_cached() {
            self.enter_kernel().await;
            let is_last = file.is_disk() && self.world().cache.is_last(file.number);
            if is_last {
                self.write_and_wait(ALL).await;
            }
            self.write_rewritten(file).await;
            self.world().close_file(file.number);
            self.leave_kernel();
        }
    }

    /// Opens a file once more that was closed.
    pub fn reopen(&self, file: &File) {
        if file.is_disk() {
            let mut world = self.world();
            let device = world.readahead_allowance();
            world.cache.reopen(file.number, self.id(), device);
        }
    }

    /// Reads the disk through the page cache.
    pub(crate) async fn read_cached(
        &self,
        file: &File,
        offset: u64,
        length: u64,
    ) -> Result<u64, Errno> {
        let checked = self.world().check(Op::Read, file, offset, length);
        let transfer = checked.map_or_else(|(_, intended)| intended, |(_, transfer)| transfer);
        let number = self.enter_call(transfer).await;
        let result = checked.map(|(bytes, _)| bytes).map_err(|(errno, _)| errno);
        if let Ok(bytes @ 1..) = result {
            self.read_pages(file, offset, offset + bytes).await;
        }
        self.leave_call(number);
        result
    }

    pub(crate) async fn read_pages(&self, file: &File, offset: u64, end: u64) {
        let last = end.div_ceil(PAGE);
        let device = self.world().readahead_allowance();
        let mut uncopied = 0;
        for page in offset / PAGE..last {
            let reader = Reader { page, request: last - page };
            let missed = self.world().cache.missed(file.number, device, reader);
            self.read_windows(file, missed, &mut uncopied).await;
            let ahead = self.world().cache.touched(file.number, device, reader);
            self.read_windows(file, ahead, &mut uncopied).await;
            if !self.world().cache.is_ready(page) {
                self.copy(&mut uncopied).await;
                self.wait_for_page(page).await;
            }
            self.world().cache.used(file.number, page);
            uncopied += 1;
        }
        self.copy(&mut uncopied).await;
        self.world().cache.call_ended(file.number, end);
    }

    /// Copies the pages that are ready, before anything else is done.
    async fn copy(&self, pages: &mut u64) {
        let cost = self.costs().copy * std::mem::take(pages);
        self.compute(cost).await;
    }

    async fn read_windows(&self, file: &File, windows: Vec<Window>, uncopied: &mut u64) {
        for window in windows {
            self.copy(uncopied).await;
            let runs = {
                let mut world = self.world();
                let end = world.end_of_file(window.start);
                world.cache.admit_of(file.number, window, end)
            };
            for run in runs {
                let pages: u64 = run.iter().map(|it| it.pages.end - it.pages.start).sum();
                self.compute(self.costs().page * pages).await;
                self.submit_run(run).await;
            }
        }
    }

    /// Where the device is plugged, it stays so until the reader sleeps (rule page-cache-2).
    async fn submit_run(&self, run: Vec<PageBio>) {
        let plugs = self.world().queue.plugs_tasks();
        if plugs {
            self.world().queue.start_plug(self.id());
        }
        for reading in run {
            let parts = self.world().cut_at_extents(reading);
            for part in parts {
                {
                    let mut world = self.world();
                    let flags =
                        if world.cache.rules().says_ahead { Flags::RAHEAD } else { Flags::NONE };
                    let bio = self.bio_of_pages(&mut world, &part, Op::Read, flags);
                    let memory = world.cache.memory_of(part.pages);
                    world.submit_scattered(bio, memory);
                }
                self.drive().await;
            }
        }
        if plugs {
            self.finish_plug(PlugFlush::Explicit).await;
        }
    }

    pub(crate) fn bio_of_pages(
        &self,
        world: &mut World,
        it: &PageBio,
        op: Op,
        flags: Flags,
    ) -> Bio {
        let (sector, sectors) = world.place_of_pages(&it.pages);
        Bio {
            op,
            flags,
            sector,
            sectors,
            ioprio: world.tasks.ioprio(self.id()),
            origin: self.origin(world),
            token: it.token,
        }
    }

    /// Reads one page, such as one of which a part is written.
    pub(crate) async fn read_alone(&self, page: u64, flags: Flags) {
        {
            let mut world = self.world();
            let reading = world.cache.admit_alone(page);
            let bio = self.bio_of_pages(&mut world, &reading, Op::Read, flags);
            world.submit(bio);
        }
        self.drive().await;
    }

    pub(crate) async fn wait_for_page(&self, page: u64) {
        self.wait_at_page(page, |cache| cache.is_ready(page), PageCache::wait).await;
    }

    /// Sleeps until something is true of a page; `wait` has the task woken when it may be. Its plug
    /// is flushed before.
    async fn wait_at_page(
        &self,
        page: u64,
        is_true: impl Fn(&PageCache) -> bool,
        wait: fn(&mut PageCache, u64, ContextId),
    ) {
        poll_fn(|_| {
            let mut world = self.world();
            if is_true(&world.cache) {
                return Poll::Ready(());
            }
            if self.poll_before_sleep(&mut world).is_pending() {
                return Poll::Pending;
            }
            if is_true(&world.cache) {
                return Poll::Ready(());
            }
            wait(&mut world.cache, page, self.id());
            self.wait(&mut world, Wait::Page(page))
        })
        .await;
    }
}

/// The pages of some bytes.
pub(crate) fn pages_of(offset: u64, end: u64) -> Range<u64> {
    offset / PAGE..end.div_ceil(PAGE)
}

impl World {
    /// How far the disk may be read ahead.
    pub fn readahead_allowance(&self) -> Allowance {
        let limits = self.queue.limits();
        let request = u64::from(limits.largest_at(Sector(0)).0) / PAGE_SECTORS;
        Allowance { readahead: u64::from(limits.read_ahead_kb) * 1024 / PAGE, request }
    }

    /// What is written or discarded past the page cache is not in memory any more.
    pub fn bypassed(&mut self, transfer: &Transfer) {
        if transfer.op != Op::Read {
            let end = transfer.sector.0 + u64::from(transfer.sectors.0);
            self.cache.drop_range(transfer.sector.0 / PAGE_SECTORS..end.div_ceil(PAGE_SECTORS));
        }
    }

    /// A bio that read or wrote pages is done.
    pub fn pages_done(&mut self, token: u64, by: ContextId) {
        debug_assert!(PageCache::owns(token), "token {token:#x}");
        for (page, task) in self.cache.done(token) {
            self.wake_page_waiter(by, task, page);
        }
    }

    /// What a task waits for may have become of a page.
    fn wake_page_waiter(&mut self, by: ContextId, task: ContextId, page: u64) {
        if self.tasks.end_wait(task, Wait::Page(page)) {
            self.wake_by(by, task);
        }
    }
}
