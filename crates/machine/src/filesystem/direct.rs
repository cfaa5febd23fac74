//! Direct reads and writes of files (rules direct-io).
//!
//! Blocks that have a place are read and written there. A write that needs new ones gives them
//! places before, and tells the inode of its size afterwards; what else an overwritten, a new or a
//! longer file needs is up to the file system.
//!
// Divergence: writes that cover a new block in part write nothing beside.

use super::{FileIo, intended};
use crate::file::{Errno, File, MOST_BYTES, Transfer};
use crate::pages::pages_of;
use crate::storage::PAGE_SECTORS;
use base::{Sector, Sectors};
use block::{Flags, Op, PlugFlush};
use cache::PAGE;
use fs::files::{Durable, Finish, Written};
use fs::{Format, key};
use std::ops::Range;

impl FileIo<'_> {
    /// Reads a file past the page cache.
    pub async fn read_file_directly(
        &self,
        index: usize,
        offset: u64,
        length: u64,
    ) -> Result<u64, Errno> {
        let bytes = self.storage().bytes_to_read(index, offset, length);
        let number = self.enter_call(intended(Op::Read, offset, bytes)).await;
        let result = self.check_direct(offset, length);
        if result.is_ok() && bytes > 0 {
            self.note_direct_read(index, false).await;
            self.share_contents(index).await;
            self.write_dirty_of(index, offset, offset + bytes).await;
            let flags = self.files().rules().direct_read;
            self.world().io().get(self.id(), number).bios_left = 1;
            self.submit_directly(number, index, Op::Read, flags, offset..offset + bytes).await;
            self.wait_for_operation(number).await;
            self.unlock_contents(index);
            self.note_direct_read(index, true).await;
        }
        self.leave_call(number);
        result.map(|()| bytes)
    }

    /// Writes a file past the page cache.
    pub async fn write_file_directly(
        &self,
        file: &File,
        index: usize,
        offset: u64,
        length: u64,
    ) -> Result<u64, Errno> {
        let length = length.min(MOST_BYTES);
        let number = self.enter_call(intended(Op::Write, offset, length)).await;
        // Divergence: who appends directly does not wait for another one's lock before it looks.
        let bytes = self.appended(file, index, offset..offset + length);
        let mut result = self.check_direct(bytes.start, length);
        if result.is_ok() && length > 0 {
            result = self.write_locked(number, file, index, bytes).await;
        }
        self.leave_call(number);
        result.map(|()| length)
    }

    /// Writes a file past the page cache and waits for it, while nobody changes the file.
    async fn write_locked(
        &self,
        number: u64,
        file: &File,
        index: usize,
        bytes: Range<u64>,
    ) -> Result<(), Errno> {
        let is_longer = bytes.end > self.files().inode(index).size;
        match is_longer && self.format() == Format::Ext4 {
            true => self.lock_contents(index).await,
            false => self.share_contents(index).await,
        }
        let result = self.write_directly(number, file, index, bytes).await;
        self.unlock_contents(index);
        result
    }

    async fn write_directly(
        &self,
        number: u64,
        file: &File,
        index: usize,
        bytes: Range<u64>,
    ) -> Result<(), Errno> {
        let Range { start, end } = bytes.clone();
        self.note_modified(index).await;
        self.write_dirty_of(index, start, end).await;
        let pages = pages_of(start, end);
        self.invalidate(key(index, pages.start)..key(index, pages.end)).await;
        let plan = self.plan_write(index, end, pages.clone());
        let format = self.format();
        if plan.extends && format == Format::Ext4 {
            self.on_ext4().change_orphan(index, None).await;
        }
        let prepared = self.prepare_blocks(index, pages.clone(), plan).await;
        if prepared.is_err() && format == Format::Xfs {
            return prepared;
        }
        let is_durable = file.flags.dsync || file.flags.sync;
        let overwrites = plan.is_written && !plan.extends;
        let flags = self.direct_flags(is_durable && overwrites && !file.flags.sync);
        self.world().io().get(self.id(), number).bios_left = 1;
        self.submit_directly(number, index, Op::Write, flags, bytes).await;
        self.wait_for_operation(number).await;
        self.invalidate(key(index, pages.start)..key(index, pages.end)).await;
        if prepared.is_err() {
            self.undo_directly(index, plan).await;
            return prepared;
        }
        match format {
            Format::Ext4 => {
                if plan.converts {
                    self.on_ext4().convert_directly(index, pages.clone()).await;
                }
                if plan.extends {
                    self.on_ext4().change_orphan(index, Some(end)).await;
                }
            }
            Format::Xfs if overwrites => {}
            Format::Xfs => self.on_xfs().finish_write(index, pages.clone(), end).await,
        }
        if is_durable && !flags.intersects(Flags::FUA) {
            self.make_durable(number, index, pages, !file.flags.sync).await;
        }
        Ok(())
    }

    /// A write of ext4 that found room for a part of it has written that part, and fails. What it
    /// has behind the end of the file goes (observed on 6.12).
    async fn undo_directly(&self, index: usize, plan: DirectWrite) {
        if plan.extends {
            let size = self.files().inode(index).size;
            self.on_ext4().free_from(index, size).await;
            self.on_ext4().change_orphan(index, Some(size)).await;
        }
    }

    /// Submits an asynchronous write past the page cache. One that makes the file longer is waited
    /// for on ext4; on XFS one behind the end waits for those before it (rule direct-io-10).
    pub async fn submit_direct_write(
        &self,
        number: u64,
        file: &File,
        index: usize,
        bytes: Range<u64>,
    ) -> Result<(), Errno> {
        let extends = bytes.end > self.files().inode(index).size;
        if extends && self.format() == Format::Ext4 {
            let ring = self.detach(number);
            let result = self.write_locked(number, file, index, bytes).await;
            self.attach(number, ring);
            self.world().all_submitted(self.id(), number);
            return result;
        }
        self.share_contents(index).await;
        if bytes.start > self.files().inode(index).size {
            self.unlock_contents(index);
            self.lock_contents(index).await;
            self.until_finished(index).await;
        }
        let pages = pages_of(bytes.start, bytes.end);
        let plan = self.plan_write(index, bytes.end, pages.clone());
        self.note_modified(index).await;
        self.write_dirty_of(index, bytes.start, bytes.end).await;
        self.invalidate(key(index, pages.start)..key(index, pages.end)).await;
        self.start_workers().await;
        if let Err(errno) = self.prepare_blocks(index, pages.clone(), plan).await {
            self.unlock_contents(index);
            self.world().all_submitted(self.id(), number);
            return Err(errno);
        }
        let overwrites = plan.is_written && !plan.extends;
        let flags = self.direct_flags(file.flags.dsync && !file.flags.sync && overwrites);
        // New blocks of XFS have no contents before.
        let converts = plan.converts || !overwrites && self.format() == Format::Xfs;
        let durable = match file.flags {
            _ if flags.intersects(Flags::FUA) => None,
            it if it.sync => Some(Durable::All),
            it if it.dsync => Some(Durable::Data),
            _ => None,
        };
        if converts || durable.is_some() {
            let written = Written { file: index, blocks: pages, size: bytes.end };
            self.finish_later(number, Finish { written, converts, durable });
        }
        self.submit_directly(number, index, Op::Write, flags, bytes).await;
        self.unlock_contents(index);
        Ok(())
    }

    /// Submits an asynchronous read past the page cache.
    pub async fn submit_direct_read(&self, number: u64, index: usize, bytes: Range<u64>) {
        self.note_direct_read(index, false).await;
        self.share_contents(index).await;
        self.write_dirty_of(index, bytes.start, bytes.end).await;
        self.start_workers().await;
        let flags = self.files().rules().direct_read;
        self.submit_directly(number, index, Op::Read, flags, bytes).await;
        self.unlock_contents(index);
        self.note_direct_read(index, true).await;
    }

    /// The time of access, which XFS sets before it reads and ext4 when it has (observed on 6.12).
    async fn note_direct_read(&self, index: usize, has_read: bool) {
        if has_read == (self.format() == Format::Ext4) {
            self.note_read(index).await;
        }
    }

    fn plan_write(&self, index: usize, end: u64, pages: Range<u64>) -> DirectWrite {
        let fills_holes = self.format() == Format::Ext4;
        let mut files = self.files();
        let inode = files.inode(index);
        let found = |page| inode.find(page);
        let converts = |page| match found(page) {
            Some(extent) => !extent.is_written,
            None => fills_holes && inode.has_within(page),
        };
        DirectWrite {
            extends: end > inode.size,
            is_written: pages.clone().all(|page| found(page).is_some_and(|it| it.is_written)),
            converts: pages.clone().any(converts),
        }
    }

    /// Gives the blocks of a write places where they have none.
    async fn prepare_blocks(
        &self,
        index: usize,
        pages: Range<u64>,
        plan: DirectWrite,
    ) -> Result<(), Errno> {
        self.look_up_blocks(index).await;
        match self.format() {
            _ if plan.is_written => Ok(()),
            Format::Ext4 => self.on_ext4().allocate_directly(index, pages).await,
            Format::Xfs => self.on_xfs().allocate_directly(index, pages).await,
        }
    }

    /// Who looks up where blocks of a file of XFS are keeps its map meanwhile, and so waits for
    /// others. Observed on 6.1.192: xfs_ilock of xfs_ilock_for_iomap, where one waits to change
    /// it; on 6.12.117 the commands of four writers say so.
    async fn look_up_blocks(&self, index: usize) {
        if self.format() == Format::Xfs {
            self.lock_map_shared(index).await;
            self.unlock_map(index);
        }
    }

    /// The flags of a direct write.
    fn direct_flags(&self, durable: bool) -> Flags {
        let mut world = self.world();
        let fua = world.queue().limits().facts.fua && world.files().rules().direct_fua;
        let plain = world.storage().rules().flags(Op::Write, false, false);
        if durable && fua { plain.with(Flags::FUA) } else { plain }
    }

    /// What is cached and dirty of a range is written before.
    async fn write_dirty_of(&self, index: usize, from: u64, end: u64) {
        let pages = pages_of(from, end);
        let keys = key(index, pages.start)..key(index, pages.end);
        let must = self.storage().is_unwritten(keys.clone());
        if must {
            self.write_for_sync(index, pages).await;
            self.wait_for_written(keys).await;
        }
    }

    fn check_direct(&self, offset: u64, length: u64) -> Result<(), Errno> {
        let block = u64::from(self.disk().logical_block.max(512));
        let aligned = offset.is_multiple_of(block) && length.is_multiple_of(block);
        if aligned { Ok(()) } else { Err(Errno::Einval) }
    }

    /// Submits the bios for bytes of a file under one plug.
    async fn submit_directly(
        &self,
        number: u64,
        index: usize,
        op: Op,
        flags: Flags,
        bytes: Range<u64>,
    ) {
        self.queue().start_plug(self.id());
        let mut at = bytes.start;
        while at < bytes.end {
            let extent = self.files().inode(index).find(at / PAGE);
            let Some(extent) = extent.filter(|it| op == Op::Write || it.is_written) else {
                at = (at / PAGE + 1) * PAGE;
                continue;
            };
            let end = bytes.end.min((at / PAGE + extent.length) * PAGE);
            let sector = extent.start * PAGE_SECTORS + at % PAGE / 512;
            let sectors = Sectors((end - at).div_ceil(512) as u32);
            let transfer = Transfer { op, flags, sector: Sector(sector), sectors };
            self.may_yield_to_disk().await;
            self.submit_part(number, transfer, false).await;
            at = end;
        }
        self.world().all_submitted(self.id(), number);
        self.finish_plug(PlugFlush::Explicit).await;
    }
}

/// What a direct write has to do beside writing.
#[derive(Clone, Copy, Debug)]
struct DirectWrite {
    /// The file becomes longer.
    extends: bool,
    /// All of it lies on blocks with contents.
    is_written: bool,
    /// A part of it lies on blocks that were set aside.
    converts: bool,
}
