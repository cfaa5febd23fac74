//! Buffered writes of files, and making durable what was written.
//!
//! A write changes pages and little else: the time of modification once in a tick, and in ext4 the
//! size where the block has a place already (rule ext4-write-1). fsync writes the pages, waits
//! for them, and then for what was last changed of the file to be in the journal or log; if it is
//! already, the cache of the disk is flushed instead (rules ext4-fsync and xfs-force).

use super::FileIo;
use crate::file::{Errno, File, MOST_BYTES, Transfer};
use crate::pages::pages_of;
use base::{Sector, Sectors};
use block::{Flags, Op, PlugFlush};
use cache::{FILE_PAGES, PAGE};
use fs::{Format, key};
use std::ops::Range;

impl FileIo<'_> {
    /// Writes a file through the page cache.
    pub async fn write_file(
        &self,
        file: &File,
        index: usize,
        offset: u64,
        length: u64,
    ) -> Result<u64, Errno> {
        let length = length.min(MOST_BYTES);
        let number = self.enter_call(intended(Op::Write, offset, length)).await;
        let result = self.write_part(number, file, index, offset..offset + length).await;
        self.leave_call(number);
        result
    }

    /// Writes bytes of a file into the page cache, and on if it was opened so; the answer is how
    /// many.
    ///
    /// # Errors
    /// `Enospc` if there is room for none of them.
    pub async fn write_part(
        &self,
        number: u64,
        file: &File,
        index: usize,
        mut bytes: Range<u64>,
    ) -> Result<u64, Errno> {
        if bytes.is_empty() {
            return Ok(0);
        }
        self.lock_contents(index).await;
        bytes = self.appended(file, index, bytes);
        self.note_modified(index).await;
        if self.format() == Format::Xfs {
            bytes.end = self.on_xfs().reserve(index, bytes.clone()).await;
        }
        bytes.end = self.write_pages_of_file(file, index, bytes.start, bytes.end).await;
        self.unlock_contents(index);
        if bytes.is_empty() {
            return Err(Errno::Enospc);
        }
        if file.flags.dsync || file.flags.sync {
            let pages = pages_of(bytes.start, bytes.end);
            self.make_durable(number, index, pages, !file.flags.sync).await;
        }
        Ok(bytes.end - bytes.start)
    }

    /// Where bytes go that are written: with O_APPEND behind the file's end as it is now.
    pub(super) fn appended(&self, file: &File, index: usize, bytes: Range<u64>) -> Range<u64> {
        match file.flags.append {
            true => {
                let end = self.files().inode(index).size;
                end..end + (bytes.end - bytes.start)
            }
            false => bytes,
        }
    }

    /// fsync or fdatasync of a file.
    pub async fn sync_file(&self, index: usize, only_data: bool) {
        let number = self.enter_call(Transfer::FLUSH).await;
        self.make_durable(number, index, 0..FILE_PAGES, only_data).await;
        self.leave_call(number);
    }

    /// Writes pages and what is known of the file, and waits until all of it is on the disk.
    pub async fn make_durable(
        &self,
        number: u64,
        index: usize,
        pages: Range<u64>,
        only_data: bool,
    ) {
        if self.format() == Format::Xfs {
            // Whoever cuts the file off later has it written when he closes it. // observed on 7.3
            self.files().inode(index).is_rewritten = false;
        }
        self.write_for_sync(index, pages.clone()).await;
        self.wait_for_written(key(index, pages.start)..key(index, pages.end)).await;
        self.end_part(index);
        match self.format() {
            Format::Ext4 => self.on_ext4().commit_file(number, index, only_data).await,
            Format::Xfs => self.on_xfs().force_file(number, index, only_data).await,
        }
    }

    /// Writes pages that somebody waits for. XFS does not plug (observed on 6.12).
    pub(super) async fn write_for_sync(&self, index: usize, pages: Range<u64>) {
        let plugs = self.format() == Format::Ext4;
        if plugs {
            self.queue().start_plug(self.id());
        }
        self.write_file_pages(index, pages, Flags::SYNC, u64::MAX).await;
        if plugs {
            self.finish_plug(PlugFlush::Explicit).await;
        }
    }

    /// Sets room aside for a page of a file that is to become dirty.
    pub async fn reserve_page(&self, index: usize, page: u64) -> Result<(), Errno> {
        match self.format() {
            Format::Ext4 => self.on_ext4().reserve(index, page),
            Format::Xfs => {
                // The file does not become longer.
                let size = self.files().inode(index).size.max(page * PAGE + 1);
                let bytes = page * PAGE..size.min((page + 1) * PAGE);
                let reached = self.on_xfs().reserve(index, bytes.clone()).await;
                if reached == bytes.end { Ok(()) } else { Err(Errno::Enospc) }
            }
        }
    }

    /// Makes pages dirty; the answer is how far there was room.
    async fn write_pages_of_file(&self, file: &File, index: usize, offset: u64, end: u64) -> u64 {
        let sets_aside = self.format() == Format::Ext4;
        if !sets_aside {
            // Rule xfs-write-7.
            let ended = self.files().inode(index).size;
            if ended < offset {
                self.zero_behind(index, ended).await;
            }
        }
        self.count_pages(offset..end);
        for page in pages_of(offset, end) {
            let at = key(index, page);
            let is_whole = offset <= page * PAGE && (page + 1) * PAGE <= end;
            let lacks = !is_whole && !self.cache().holds(at) && self.has_contents(index, page);
            self.bring(at, lacks).await;
            if sets_aside && self.on_ext4().reserve(index, page).is_err() {
                return offset.max(page * PAGE);
            }
            self.compute(self.costs().copy + self.costs().dirty).await;
            self.cache().used(file.number, at);
            self.dirty_page(index, page);
            self.grow(index, offset.max(page * PAGE)..end.min((page + 1) * PAGE)).await;
            let now = self.tick();
            let tested = self.cache().test_writer(self.id(), at, now);
            self.heed(tested).await;
        }
        end
    }

    /// Makes a page dirty, and tells the flusher of its group if it was clean.
    pub(super) fn dirty_page(&self, index: usize, page: u64) {
        let mut world = self.world();
        let (now, group) = (world.tick(), world.tasks().cgroup(self.id()));
        if world.storage().dirty_page(self.id(), group, index, page, now) {
            let owner = world.cache().owner(key(index, page));
            world.wake_flusher(owner);
        }
    }

    /// Bytes of a page were written: the file reaches at least as far as they do.
    async fn grow(&self, index: usize, bytes: Range<u64>) {
        let (ended, is_mapped) = {
            let mut files = self.files();
            let inode = files.inode(index);
            let ended = inode.size;
            inode.size = ended.max(bytes.end);
            (ended, inode.is_mapped(bytes.start / PAGE))
        };
        if self.format() != Format::Ext4 {
            return;
        }
        if is_mapped {
            self.on_ext4().grow_on_disk(index, bytes.end).await;
        }
        if ended < bytes.start {
            self.on_ext4().leave_hole(index, ended).await;
        }
    }

    /// Waits until nobody has a page that is to be changed, reads it if it `lacks` its contents,
    /// and waits until it is there.
    async fn bring(&self, page: u64, lacks: bool) {
        self.lock(page).await;
        if lacks {
            self.read_alone(page, Flags::NONE).await;
        }
        if !self.cache().is_ready(page) {
            self.wait_for_page(page).await;
        }
    }

    /// When a file ends within a page, the rest of that is zeroed in memory: it is read if it is
    /// not there, and dirty then. The answer is whether it has contents.
    pub(super) async fn zero_behind(&self, index: usize, size: u64) -> bool {
        let (page, at) = (size / PAGE, key(index, size / PAGE));
        let has_contents = !size.is_multiple_of(PAGE) && self.has_contents(index, page);
        if has_contents {
            let lacks = !self.cache().holds(at);
            self.bring(at, lacks).await;
            self.dirty_page(index, page);
        }
        has_contents
    }

    /// Whether a page lies within the file and has contents on the disk.
    fn has_contents(&self, index: usize, page: u64) -> bool {
        let mut files = self.files();
        let inode = files.inode(index);
        page * PAGE < inode.size && inode.find(page).is_some_and(|it| it.is_written)
    }
}

/// What a call on a file means to move; the place is that in the file.
pub(crate) fn intended(op: Op, offset: u64, length: u64) -> Transfer {
    let sectors = length.div_ceil(512).min(u64::from(u32::MAX)) as u32;
    Transfer { op, flags: Flags::NONE, sector: Sector(offset / 512), sectors: Sectors(sectors) }
}
