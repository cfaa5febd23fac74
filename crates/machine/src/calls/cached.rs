//! Calls that concern what is cached: advice, what drops clean pages, closing, sync(2).

use crate::file::File;
use crate::filesystem::FileIo;
use crate::pages::{ALL, PageIo};
use crate::task::{Task, Transfer};
use block::CgroupId;
use cache::pages::Counts;
use cache::readahead::Advice;

impl Task {
    /// How many pages are in memory, and how many of them must be written (`/proc/meminfo`).
    pub fn page_cache(&self) -> Counts {
        self.cache().counts()
    }

    /// Says how a file will be read.
    pub fn advise(&self, file: &File, advice: Advice) {
        if file.is_cached() {
            let mut storage = self.storage();
            let device = storage.readahead_allowance();
            storage.cache_mut().advise(file.number, advice, device);
        }
    }

    /// Writes what is dirty of the disk and drops everything that is cached (BLKFLSBUF).
    pub async fn drop_cached(&self, file: &File) {
        if file.is_disk() {
            self.enter_kernel().await;
            PageIo::of(self).write_and_wait(ALL).await;
            self.cache().forget_range(ALL);
            self.leave_kernel();
        }
    }

    /// Closes a file; the last one who closes the disk writes what is dirty, and waits for what is
    /// still read ahead (rule sync-4).
    /// Others of the same task are closed when it exits.
    pub async fn close(&self, file: &File) {
        if file.is_cached() {
            self.enter_kernel().await;
            let is_last = file.is_disk() && self.cache().is_last(file.number);
            if is_last {
                PageIo::of(self).write_and_wait(ALL).await;
                PageIo::of(self).wait_until_read(ALL).await;
            }
            FileIo::of(self).write_rewritten(file).await;
            self.close_number(file.number).await;
            self.leave_kernel();
        }
    }

    /// Closes the file of a number; what has no name goes with who closes it last.
    async fn close_number(&self, number: usize) {
        let left = self.storage().close_file(number);
        if let Some(file) = left {
            FileIo::of(self).give_inode_up(file).await;
        }
    }

    /// Closes what is open, as the kernel does for a task that ends with this status.
    pub async fn close_all(self, status: i32) -> i32 {
        let open = self.cache().files_of(self.id());
        for number in open {
            self.close_number(number).await;
        }
        status
    }

    /// Opens a file once more that was closed.
    pub fn reopen(&self, file: &File) {
        if file.is_disk() {
            let mut storage = self.storage();
            let device = storage.readahead_allowance();
            storage.cache_mut().reopen(file.number, self.id(), device);
        }
    }

    /// Writes everything that is dirty to the disk.
    pub async fn sync(&self) {
        let number = self.enter_call(Transfer::FLUSH).await;
        let has_files = self.storage().has_files();
        match has_files {
            true => FileIo::of(self).sync_all().await,
            false => self.sync_disk().await,
        }
        self.leave_call(number);
    }

    /// Writes what is dirty of a disk without files. The flusher goes on from where it was last,
    /// and this task writes the rest when that sleeps (observed on 6.12.117: writeback_start,
    /// sched_switch and bios of sync beside dd).
    async fn sync_disk(&self) {
        let is_dirty = self.cache().counts().dirty > 0;
        if is_dirty && self.has_flusher_sync() {
            self.notified().await;
        }
        PageIo::of(self).write_and_wait(ALL).await;
    }

    /// Asks the flusher for everything; whether it slept, and tells this task when it begins.
    fn has_flusher_sync(&self) -> bool {
        let mut world = self.world();
        let rests = world.flusher_rests(CgroupId::ROOT);
        let synced_for = &mut world.cache().writeback_of(CgroupId::ROOT).synced_for;
        synced_for.get_or_insert_default().extend(rests.then(|| self.id()));
        world.wake_flusher(CgroupId::ROOT);
        rests
    }

    /// Drops everything that is cached and clean, as /proc/sys/vm/drop_caches does.
    pub fn drop_caches(&self) {
        let effects = self.storage().drop_caches();
        self.apply(effects);
    }
}
