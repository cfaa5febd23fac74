//! Parts of files that somebody wants written or out of memory: `posix_fadvise` with DONTNEED,
//! `sync_file_range`, and what replaces the contents of a file.
//!
//! Neither makes anything durable: no commit, no flush (rules page-cache-4 and sync-5).

use super::key;
use crate::buffered::pages_of;
use crate::file::{File, Kind};
use crate::task::Task;
use block::{Flags, PlugFlush};
use cache::FILE_PAGES;
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
    /// waits, so what is being written stays.
    pub async fn forget(&self, file: &File, bytes: Range<u64>) {
        let Kind::File(index) = file.kind else { return };
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let pages = pages_of(bytes.start, bytes.end);
        self.write_without_waiting(index, pages.clone(), Flags::NONE).await;
        // A page that is forgotten in part stays.
        let whole = bytes.start.div_ceil(crate::buffered::PAGE)..pages.end;
        if !whole.is_empty() {
            self.world().cache.forget_range(key(index, whole.start)..key(index, whole.end));
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
            self.wait_for_written(keys.clone()).await;
        }
        if how.writes {
            let all = how.waits_before && how.waits_after;
            let flags = if all { Flags::SYNC } else { Flags::NONE };
            self.write_without_waiting(index, pages, flags).await;
        }
        if how.waits_after {
            self.wait_for_written(keys).await;
        }
        self.leave_kernel();
    }

    /// What a file that was made empty has got since is written when it is closed.
    pub(crate) async fn write_rewritten(&self, file: &File) {
        let Kind::File(index) = file.kind else { return };
        if std::mem::take(&mut self.world().files().inode(index).is_rewritten) {
            self.write_without_waiting(index, 0..FILE_PAGES, Flags::NONE).await;
        }
    }

    pub(super) async fn write_without_waiting(
        &self,
        index: usize,
        pages: Range<u64>,
        flags: Flags,
    ) {
        let keys = key(index, pages.start)..key(index, pages.end);
        if self.world().cache.next_dirty(keys).is_none() {
            return;
        }
        self.world().queue.start_plug(self.id());
        self.write_file_pages(index, pages, flags, u64::MAX).await;
        self.finish_plug(PlugFlush::Explicit).await;
        self.world().forget_if_clean(index);
    }
}
