//! Calls on parts of files: to have them written or out of memory (`sync_file_range`, and
//! `posix_fadvise` with DONTNEED), and fallocate(2): room that a file gets before anything is
//! written there, and holes that are made in it.
//!
//! None makes anything durable: no commit, no flush (rules page-cache-4 and sync-5).

use crate::file::{Errno, File, Kind};
use crate::filesystem::FileIo;
use crate::pages::pages_of;
use crate::task::Task;
use block::Flags;
use cache::PAGE;
use fs::{Format, key};
use std::ops::Range;

/// What sync_file_range is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeSync {
    /// Wait for what is being written.
    pub waits_before: bool,
    /// Write what is dirty.
    pub writes: bool,
    /// Wait for all of it.
    pub waits_after: bool,
}

impl Task {
    /// Writes what is dirty of a range and drops what is clean, as POSIX_FADV_DONTNEED does: nobody
    /// waits, so what is being written stays. Of no bytes there is nothing to forget.
    pub async fn forget(&self, file: &File, bytes: Range<u64>) {
        let Kind::File(index) = file.kind else { return };
        if bytes.is_empty() {
            return;
        }
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let pages = pages_of(bytes.start, bytes.end);
        FileIo::of(self).write_without_waiting(index, pages.clone(), Flags::NONE).await;
        // A page that is forgotten in part stays.
        let whole = bytes.start.div_ceil(PAGE)..pages.end;
        if !whole.is_empty() {
            self.cache().forget_range(key(index, whole.start)..key(index, whole.end));
        }
        self.leave_kernel();
    }

    /// sync_file_range.
    pub async fn sync_range(&self, file: &File, bytes: Range<u64>, how: RangeSync) {
        let Kind::File(index) = file.kind else { return };
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let pages = pages_of(bytes.start, bytes.end);
        let keys = key(index, pages.start)..key(index, pages.end);
        if how.waits_before {
            FileIo::of(self).wait_for_written(keys.clone()).await;
        }
        if how.writes {
            let all = how.waits_before && how.waits_after;
            let flags = if all { Flags::SYNC } else { Flags::NONE };
            FileIo::of(self).write_without_waiting(index, pages, flags).await;
        }
        if how.waits_after {
            FileIo::of(self).wait_for_written(keys).await;
        }
        self.leave_kernel();
    }

    /// Sets room aside for a range of bytes; the file grows to its end, unless that is to be kept.
    pub async fn fallocate(
        &self,
        file: &File,
        bytes: Range<u64>,
        keeps_size: bool,
    ) -> Result<(), Errno> {
        let Kind::File(index) = file.kind else { return Err(Errno::Eopnotsupp) };
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let result = match self.format() {
            Format::Ext4 => FileIo::of(self).on_ext4().set_aside(index, bytes, keeps_size).await,
            Format::Xfs => FileIo::of(self).on_xfs().set_aside(index, bytes, keeps_size).await,
        };
        self.leave_kernel();
        result
    }

    /// Gives up the blocks that lie wholly in a range of bytes, without a change of the size
    /// (FALLOC_FL_PUNCH_HOLE). What is dirty there is written first.
    // Divergence: the parts of blocks at its ends are not zeroed.
    pub async fn punch_hole(&self, file: &File, bytes: Range<u64>) -> Result<(), Errno> {
        let Kind::File(index) = file.kind else { return Err(Errno::Eopnotsupp) };
        let all = RangeSync { waits_before: true, writes: true, waits_after: true };
        self.sync_range(file, bytes.clone(), all).await;
        self.enter_kernel().await;
        let blocks = bytes.start.div_ceil(PAGE)..bytes.end / PAGE;
        if !blocks.is_empty() {
            match self.format() {
                Format::Ext4 => FileIo::of(self).on_ext4().make_hole(index, blocks).await,
                Format::Xfs => FileIo::of(self).on_xfs().make_hole(index, blocks).await,
            }
        }
        self.leave_kernel();
        Ok(())
    }

    /// The blocks of a range of bytes change places with those at the same place of another file;
    /// the answer is how many bytes did.
    pub async fn exchange_blocks(
        &self,
        file: &File,
        donor: &File,
        bytes: Range<u64>,
    ) -> Result<u64, Errno> {
        let (Kind::File(index), Kind::File(other)) = (file.kind, donor.kind) else {
            return Err(Errno::Enotty);
        };
        if self.format() != Format::Ext4 {
            return Err(Errno::Enotty);
        }
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let ends_before = |file| self.files().inode(file).size <= bytes.start;
        let result = match index == other || ends_before(index) || ends_before(other) {
            true => Err(Errno::Einval),
            false => FileIo::of(self).on_ext4().exchange_blocks(index, other, &bytes).await,
        };
        self.leave_kernel();
        let length = bytes.end - bytes.start;
        result.map(|blocks| length.min(blocks * PAGE))
    }
}
