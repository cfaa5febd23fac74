//! Direct reads and writes of files (filesystems 1.8).
//!
//! Blocks that have a place are read and written there. A write that needs new ones gives them
//! places before, and tells the inode of its size afterwards; in ext4 the file is meanwhile on the
//! list of those that a crash would have to be cleaned up after, which is in the superblock.
//!
// Divergence: writes that cover a new block in part write nothing beside.

use super::writing::intended;
use super::{Format, key};
use crate::buffered::{PAGE, PAGE_SECTORS, pages_of};
use crate::file::{Errno, File, MOST_BYTES, Transfer};
use crate::task::Task;
use base::{Sector, Sectors};
use block::{Flags, Op, PlugFlush};

impl Task {
    /// Reads a file past the page cache.
    pub(crate) async fn read_file_directly(
        &self,
        index: usize,
        offset: u64,
        length: u64,
    ) -> Result<u64, Errno> {
        let bytes = self.world().bytes_to_read(index, offset, length);
        let number = self.enter_call(intended(Op::Read, offset, bytes)).await;
        self.compute(self.costs().system_call).await;
        let result = self.check_direct(offset, length);
        if result.is_ok() && bytes > 0 {
            self.write_dirty_of(index, offset, offset + bytes).await;
            let flags = self.world().files().rules.direct_read;
            self.move_directly(number, index, Op::Read, flags, offset..offset + bytes).await;
            self.note_read(index).await;
        }
        self.leave_call(number);
        result.map(|()| bytes)
    }

    /// Writes a file past the page cache.
    pub(crate) async fn write_file_directly(
        &self,
        file: &File,
        index: usize,
        offset: u64,
        length: u64,
    ) -> Result<u64, Errno> {
        let length = length.min(MOST_BYTES);
        let number = self.enter_call(intended(Op::Write, offset, length)).await;
        self.compute(self.costs().system_call).await;
        let result = self.check_direct(offset, length);
        if result.is_ok() && length > 0 {
            self.write_directly(number, file, index, offset, offset + length).await;
        }
        self.leave_call(number);
        result.map(|()| length)
    }

    async fn write_directly(&self, number: u64, file: &File, index: usize, from: u64, end: u64) {
        self.note_modified(index).await;
        self.write_dirty_of(index, from, end).await;
        let pages = pages_of(from, end);
        self.world().cache.drop_range(key(index, pages.start)..key(index, pages.end));
        let (extends, is_mapped) = {
            let mut world = self.world();
            let inode = world.files().inode(index);
            let written = |page| inode.find(page).is_some_and(|it| it.is_written);
            (end > inode.size, pages.clone().all(written))
        };
        let format = self.format();
        if extends && format == Format::Ext4 {
            self.change_orphan(index, None).await;
        }
        match format {
            _ if is_mapped => {}
            Format::Ext4 => self.allocate_directly(index, pages.clone()).await,
            Format::Xfs => self.allocate_xfs_directly(index, pages.clone()).await,
        }
        let is_durable = file.flags.dsync || file.flags.sync;
        let flags = self.direct_flags(is_durable && is_mapped && !extends && !file.flags.sync);
        self.move_directly(number, index, Op::Write, flags, from..end).await;
        match format {
            Format::Ext4 if extends => self.change_orphan(index, Some(end)).await,
            Format::Ext4 => {}
            Format::Xfs => self.world().finish_xfs_write(index, pages.clone(), end),
        }
        if is_durable && !flags.intersects(Flags::FUA) {
            self.make_durable(number, index, pages, !file.flags.sync).await;
        }
    }

    /// The flags of a direct write.
    fn direct_flags(&self, durable: bool) -> Flags {
        let mut world = self.world();
        let fua = world.queue.limits().facts.fua && world.files().rules.direct_fua;
        let plain = world.rules.flags(Op::Write, false, false);
        if durable && fua { plain.with(Flags::FUA) } else { plain }
    }

    /// What is cached and dirty of a range is written before.
    async fn write_dirty_of(&self, index: usize, from: u64, end: u64) {
        let pages = pages_of(from, end);
        let keys = key(index, pages.start)..key(index, pages.end);
        let must = {
            let world = self.world();
            world.cache.next_dirty(keys.clone()).is_some()
                || world.cache.next_written(keys.clone()).is_some()
        };
        if must {
            self.write_for_sync(index, pages).await;
            self.wait_for_written(keys).await;
            self.world().forget_if_clean(index);
        }
    }

    fn check_direct(&self, offset: u64, length: u64) -> Result<(), Errno> {
        let block = u64::from(self.disk().logical_block.max(512));
        let aligned = offset.is_multiple_of(block) && length.is_multiple_of(block);
        if aligned { Ok(()) } else { Err(Errno::Einval) }
    }

    /// Submits the bios for bytes of a file under one plug and waits for them.
    async fn move_directly(
        &self,
        number: u64,
        index: usize,
        op: Op,
        flags: Flags,
        bytes: std::ops::Range<u64>,
    ) {
        self.world().strand(self.id()).operations.get(number).bios_left = 1;
        self.world().queue.start_plug(self.id());
        let mut at = bytes.start;
        while at < bytes.end {
            let extent = self.world().files().inode(index).find(at / PAGE);
            let Some(extent) = extent.filter(|it| op == Op::Write || it.is_written) else {
                at = (at / PAGE + 1) * PAGE;
                continue;
            };
            let end = bytes.end.min((at / PAGE + extent.length) * PAGE);
            let sector = extent.start * PAGE_SECTORS + at % PAGE / 512;
            let sectors = Sectors((end - at).div_ceil(512) as u32);
            let transfer = Transfer { op, flags, sector: Sector(sector), sectors };
            self.submit_part(number, transfer, false).await;
            at = end;
        }
        self.world().all_submitted(self.id(), number);
        self.finish_plug(PlugFlush::Explicit).await;
        self.wait_for_operation(number).await;
    }
}
