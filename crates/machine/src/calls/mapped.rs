//! Files in the memory of programs: page faults, and msync.
//!
//! A program that touches a page it has not touched before has a fault: if the page is not cached
//! it is read, with what readahead adds (rules mmap), by the task itself. The first write to a
//! page that is clean has a fault too, which makes it dirty as a write of the whole page would
//! without copying; when it has been written to the disk, the next write has one again.
//!
// Divergence: a request through a mapping is told as a call of the program, although the kernel
// hears of it only by faults; a fault takes as long as a system call.

use crate::file::{Errno, File, Kind, Transfer};
use crate::filesystem::{FileIo, intended};
use crate::io::Operation;
use crate::pages::{PageIo, pages_of};
use crate::task::Task;
use block::{Flags, Op, Syscall};
use cache::PAGE;
use cache::page_cache::Faulted;
use cache::readahead::Advice;
use fs::key;
use std::ops::Range;

/// A file that a program has in its memory.
#[derive(Clone, Debug)]
pub struct Mapping {
    file: File,
    bytes: Range<u64>,
    /// What was said of how it will be read.
    advice: Advice,
}

impl Task {
    /// Maps some bytes of a file, and says how they will be read (mmap, madvise). They stay mapped
    /// until the task exits.
    pub async fn map(&self, file: &File, bytes: Range<u64>, advice: Advice) -> Mapping {
        self.enter_kernel().await;
        let mapping = Mapping { file: *file, bytes, advice };
        if file.is_cached() {
            let pages = mapping.pages(&mapping.bytes);
            self.cache().begin_mapping(self.id(), pages);
        }
        if let Kind::File(index) = file.kind {
            FileIo::of(self).note_read(index).await;
        }
        self.leave_kernel();
        mapping
    }

    /// Copies bytes of a mapped file, which are within it; the answer is their number.
    pub async fn read_through(
        &self,
        mapping: &Mapping,
        offset: u64,
        length: u64,
    ) -> Result<u64, Errno> {
        self.touch_all(mapping, Op::Read, offset, length).await
    }

    /// Writes bytes of a mapped file, which are within it; the answer is their number.
    pub async fn write_through(
        &self,
        mapping: &Mapping,
        offset: u64,
        length: u64,
    ) -> Result<u64, Errno> {
        self.touch_all(mapping, Op::Write, offset, length).await
    }

    /// Makes durable what is mapped, or a part of it that begins with a page (msync with MS_SYNC).
    pub async fn msync(&self, mapping: &Mapping, bytes: Option<Range<u64>>) -> Result<(), Errno> {
        let bytes = bytes.unwrap_or(mapping.bytes.clone());
        let is_aligned = (bytes.start - mapping.bytes.start).is_multiple_of(PAGE);
        if !is_aligned || !mapping.file.is_cached() {
            return Err(Errno::Einval);
        }
        let number = self.enter_call(Transfer::FLUSH).await;
        let pages = pages_of(bytes.start, bytes.end);
        match mapping.file.kind {
            Kind::File(index) => {
                FileIo::of(self).make_durable(number, index, pages, true).await;
            }
            _ => {
                FileIo::of(self).write_and_wait(pages).await;
                self.flush(number).await;
            }
        }
        self.leave_call(number);
        Ok(())
    }

    async fn touch_all(
        &self,
        mapping: &Mapping,
        op: Op,
        offset: u64,
        length: u64,
    ) -> Result<u64, Errno> {
        self.enter_kernel().await;
        let number = {
            let mut world = self.world();
            let (call, transfer) = (syscall(op), intended(op, offset, length));
            let operation = Operation::new(world.clock().now(), call, transfer);
            world.enter(self.id(), operation)
        };
        let mut result = Ok(length);
        if mapping.file.is_cached() && length > 0 {
            PageIo::of(self).count_pages(offset..offset + length);
            for page in mapping.pages(&(offset..offset + length)) {
                if let Err(errno) = self.touch(mapping, page, op == Op::Write).await {
                    result = Err(errno);
                    break;
                }
                self.compute(self.costs().copy).await;
            }
        }
        self.leave_call(number);
        result
    }

    /// Touches a page, by its number among all pages.
    async fn touch(&self, mapping: &Mapping, page: u64, writes: bool) -> Result<(), Errno> {
        let (is_mapped, is_writable) = {
            let cache = self.cache();
            let is_mapped = cache.is_mapped(page);
            (is_mapped, is_mapped && cache.is_dirty(page))
        };
        if is_mapped && (!writes || is_writable) {
            return Ok(());
        }
        self.compute(self.costs().system_call).await;
        if !is_mapped {
            self.fault(mapping, page, writes).await;
        }
        if writes {
            self.make_writable(mapping, page).await?;
        }
        Ok(())
    }

    /// A page that is not mapped is touched.
    async fn fault(&self, mapping: &Mapping, page: u64, writes: bool) {
        let all = mapping.pages(&mapping.bytes);
        if !writes && self.cache().map_around(page, &all) {
            return;
        }
        let faulted = {
            let mut storage = self.storage();
            let device = storage.readahead_allowance();
            storage.cache_mut().fault(mapping.file.number, device, page, mapping.advice)
        };
        match faulted {
            Faulted::Windows(windows) => {
                FileIo::of(self).read_windows(&mapping.file, windows, &mut 0).await;
            }
            Faulted::Alone => self.read_alone_in_file(page).await,
        }
        if !self.cache().is_ready(page) {
            FileIo::of(self).wait_for_page(page).await;
        }
        let mut cache = self.cache();
        cache.used(mapping.file.number, page);
        cache.map(page);
    }

    /// Reads one page of a file, if it has contents on the disk.
    async fn read_alone_in_file(&self, page: u64) {
        let (parts, effects) = {
            let now = FileIo::of(self).tick();
            let mut storage = self.storage();
            let reading = storage.cache_mut().acts(self.id()).admit_alone(page);
            storage.cut_at_extents(reading, now)
        };
        self.tell_pages();
        self.apply(effects);
        for part in parts {
            FileIo::of(self).submit_pages(&part, Op::Read, Flags::NONE).await;
        }
    }

    /// The first write to a page since it was clean.
    // Divergence: who finds no room for it is told so; the kernel kills (SIGBUS).
    async fn make_writable(&self, mapping: &Mapping, page: u64) -> Result<(), Errno> {
        let io = FileIo::of(self);
        let index = mapping.file.index();
        if let Some(index) = index {
            io.note_modified(index).await;
            io.reserve_page(index, page - key(index, 0)).await?;
        }
        io.lock(page).await;
        let (tested, is_first) = {
            let mut world = self.world();
            let (now, group) = (world.tick(), world.tasks().cgroup(self.id()));
            let is_first = match index {
                Some(index) => {
                    let page = page - key(index, 0);
                    world.storage().dirty_page(self.id(), group, index, page, now)
                }
                None => {
                    world.cache().claim(page, group);
                    world.cache().dirty(self.id(), page, now)
                }
            };
            (world.cache().test_writer(self.id(), page, now), is_first)
        };
        if is_first {
            self.world().wake_flusher(tested.group);
        }
        io.heed(tested).await;
        Ok(())
    }
}

/// What a request is told as.
fn syscall(op: Op) -> Syscall {
    if op == Op::Read { Syscall::Read } else { Syscall::Write }
}

impl Mapping {
    /// Bytes of the file as pages with their numbers among all pages.
    fn pages(&self, bytes: &Range<u64>) -> Range<u64> {
        let base = self.file.index().map_or(0, |index| key(index, 0));
        let pages = pages_of(bytes.start, bytes.end);
        base + pages.start..base + pages.end
    }
}
