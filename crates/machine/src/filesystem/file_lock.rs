//! What holds a lock of a file: of its contents, or of its map, which says which of its blocks are
//! where on the disk.

use super::FileIo;
use crate::task::Lock;
use fs::Format;
use fs::file_lock::{Guarded, Mode};

impl FileIo<'_> {
    /// Waits until nobody else reads or changes a file.
    pub(super) async fn lock_contents(&self, file: usize) {
        self.acquire(Lock::File(file, Guarded::Contents), Mode::Exclusive).await;
    }

    /// Waits until nobody changes a file. Direct I/O does so until it is done, or submitted where
    /// nobody waits for it, but for a write that makes a file of ext4 longer (observed on 6.1, 6.12
    /// and 7.3: dd that cuts a file off while another one writes it directly).
    pub(super) async fn share_contents(&self, file: usize) {
        self.acquire(Lock::File(file, Guarded::Contents), Mode::Shared).await;
    }

    /// Lets others read or change a file.
    pub(super) fn unlock_contents(&self, file: usize) {
        self.release(Lock::File(file, Guarded::Contents));
    }

    /// Waits until nobody changes a file, where reads do.
    pub(super) async fn begin_reading(&self, file: usize) {
        if self.format() == Format::Xfs {
            self.share_contents(file).await;
        }
    }

    /// Lets others change a file that was read.
    pub(super) fn end_reading(&self, file: usize) {
        if self.format() == Format::Xfs {
            self.release(Lock::File(file, Guarded::Contents));
        }
    }

    /// Waits until nobody else holds the map of a file, or keeps it.
    pub(super) async fn lock_map(&self, file: usize) {
        self.acquire(Lock::File(file, Guarded::Map), Mode::Exclusive).await;
    }

    /// Waits until nobody holds the map of a file, which stays as it is from then on.
    pub(super) async fn lock_map_shared(&self, file: usize) {
        self.acquire(Lock::File(file, Guarded::Map), Mode::Shared).await;
    }

    /// Lets the next one hold the map, when nobody keeps it any more.
    pub(super) fn unlock_map(&self, file: usize) {
        self.release(Lock::File(file, Guarded::Map));
    }
}
