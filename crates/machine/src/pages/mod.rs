//! Pages as a task uses them: of the disk, and what files have in common with it.
//!
//! Page by page (rule page-cache-1): what is missing is read with what readahead adds; whoever
//! touches a mark has the next window read before he waits for his page; then the page is copied.
//! Who submits is always the caller, each window under a plug of its own. `writing` makes pages
//! dirty and writes them.

mod writing;

use crate::file::{Errno, File};
use crate::task::Task;
use crate::tasks::Wait;
use crate::world::World;
use block::{Bio, ContextId, Flags, Op, PlugFlush};
pub(crate) use cache::PAGE;
use cache::readahead::{Reader, Window};
use cache::{PageBio, PageCache};
use std::future::poll_fn;
use std::ops::{Deref, Range};
use std::task::Poll;
pub(crate) use writing::ALL;

/// A task that reads and writes pages.
#[derive(Clone, Copy)]
pub(crate) struct PageIo<'t>(&'t Task);

impl Deref for PageIo<'_> {
    type Target = Task;

    fn deref(&self) -> &Task {
        self.0
    }
}

impl<'t> PageIo<'t> {
    /// The pages that this task reads and writes.
    pub fn of(task: &'t Task) -> PageIo<'t> {
        PageIo(task)
    }

    /// Reads the disk through the page cache.
    pub async fn read_cached(&self, file: &File, offset: u64, length: u64) -> Result<u64, Errno> {
        let checked = self.storage().check(Op::Read, file, offset, length);
        let transfer = checked.map_or_else(|(_, intended)| intended, |(_, transfer)| transfer);
        let number = self.enter_call(transfer).await;
        let result = checked.map(|(bytes, _)| bytes).map_err(|(errno, _)| errno);
        if let Ok(bytes @ 1..) = result {
            self.read_pages(file, offset, offset + bytes).await;
        }
        self.leave_call(number);
        result
    }

    /// Copies bytes of pages, which are read where they are missing.
    pub async fn read_pages(&self, file: &File, offset: u64, end: u64) {
        let last = end.div_ceil(PAGE);
        self.count_pages(offset..end);
        let device = self.storage().readahead_allowance();
        let mut uncopied = 0;
        for page in offset / PAGE..last {
            let reader = Reader { page, request: last - page };
            let missed = self.cache().missed(file.number, device, reader);
            self.read_windows(file, missed, &mut uncopied).await;
            let ahead = self.cache().touched(file.number, device, reader);
            self.read_windows(file, ahead, &mut uncopied).await;
            if !self.cache().is_ready(page) {
                self.copy(&mut uncopied).await;
                self.wait_for_page(page).await;
            }
            self.cache().used(file.number, page);
            uncopied += 1;
        }
        self.copy(&mut uncopied).await;
        self.cache().call_ended(file.number, end);
    }

    /// Notes that a call moves these bytes, which may take no time.
    pub fn count_pages(&self, bytes: Range<u64>) {
        let pages = pages_of(bytes.start, bytes.end);
        self.world().clock().count_pages(pages.end - pages.start);
    }

    /// Copies the pages that are ready, before anything else is done.
    async fn copy(&self, pages: &mut u64) {
        let cost = self.costs().copy * std::mem::take(pages);
        self.compute(cost).await;
    }

    /// Reads windows, after what is ready has been copied.
    pub async fn read_windows(&self, file: &File, windows: Vec<Window>, uncopied: &mut u64) {
        for window in windows {
            self.copy(uncopied).await;
            let runs = {
                let mut storage = self.storage();
                let end = storage.end_of_file(window.start);
                storage.cache_mut().acts(self.id()).admit_of(file.number, window, end)
            };
            self.tell_pages();
            for run in runs {
                let pages: u64 = run.iter().map(|it| it.pages.end - it.pages.start).sum();
                self.compute(self.costs().page * pages).await;
                self.submit_run(run).await;
            }
        }
    }

    /// Where the device is plugged, it stays so until the reader sleeps (rule page-cache-2).
    async fn submit_run(&self, run: Vec<PageBio>) {
        let plugs = self.queue().plugs_tasks();
        if plugs {
            self.queue().start_plug(self.id());
        }
        for reading in run {
            let now = self.world().tick();
            let (parts, effects) = self.storage().cut_at_extents(reading, now);
            self.apply(effects);
            for part in parts {
                {
                    let mut world = self.world();
                    let flags =
                        if world.cache().rules().says_ahead { Flags::RAHEAD } else { Flags::NONE };
                    let bio = self.bio_of_pages(&mut world, &part, Op::Read, flags);
                    let memory = world.cache().memory_of(part.pages);
                    world.submit_scattered(bio, memory);
                }
                self.drive().await;
            }
        }
        if plugs {
            self.finish_plug(PlugFlush::Explicit).await;
        }
    }

    /// Submits pages as a bio.
    pub async fn submit_pages(&self, pages: &PageBio, op: Op, flags: Flags) {
        {
            let mut world = self.world();
            let bio = self.bio_of_pages(&mut world, pages, op, flags);
            world.submit(bio);
        }
        self.drive().await;
    }

    fn bio_of_pages(&self, world: &mut World, it: &PageBio, op: Op, flags: Flags) -> Bio {
        let (sector, sectors) = world.storage().place_of_pages(&it.pages);
        Bio {
            op,
            flags,
            sector,
            sectors,
            ioprio: world.tasks().ioprio(self.id()),
            origin: self.origin(world),
            token: it.token,
        }
    }

    /// Reads one page, such as one of which a part is written.
    pub async fn read_alone(&self, page: u64, flags: Flags) {
        let reading = self.cache().admit_alone(page);
        self.tell_pages();
        self.submit_pages(&reading, Op::Read, flags).await;
    }

    /// Waits until a page has been read.
    pub async fn wait_for_page(&self, page: u64) {
        self.wait_at_page(page, |cache| cache.is_ready(page), PageCache::wait).await;
    }

    /// Waits until nothing of a range of pages is being read.
    pub async fn wait_until_read(&self, pages: Range<u64>) {
        loop {
            let next = self.cache().next_read(pages.clone());
            let Some(page) = next else { return };
            self.wait_for_page(page).await;
        }
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
            if is_true(world.cache()) {
                return Poll::Ready(());
            }
            if self.poll_before_sleep(&mut world).is_pending() {
                return Poll::Pending;
            }
            if is_true(world.cache()) {
                return Poll::Ready(());
            }
            wait(world.cache(), page, self.id());
            self.wait(&mut world, Wait::Page(page))
        })
        .await;
    }
}

/// The pages of some bytes.
pub(crate) fn pages_of(offset: u64, end: u64) -> Range<u64> {
    offset / PAGE..end.div_ceil(PAGE)
}
