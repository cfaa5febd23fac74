//! What is between system calls and the disk: the block layer, the page cache, the file system, and
//! which tasks of the kernel's own work for them.
//!
//! Nothing here knows time, cores or who sleeps. What has to become of tasks comes out as
//! [`Effect`]s; the world sees to them.
//!
//! * `transfers`: what calls on the raw disk come to. `pages`: pages and where they are on the
//!   disk.
//! * `files`: writes of files, the flusher's choice, closing. `journal`: handles, journal and log.

mod files;
mod journal;
mod pages;
mod transfers;

pub(crate) use pages::{PAGE_SECTORS, pages_of_transfer};

use crate::rules::Rules;
use base::Sectors;
use block::{CgroupId, ContextId, RequestQueue};
use cache::PageCache;
use fs::file_lock::FileLock;
use fs::{Ext4, FileSystem, Files, Format, Xfs};
use std::collections::BTreeMap;

/// The block layer, the page cache and the file system.
pub(crate) struct Storage {
    queue: RequestQueue,
    cache: PageCache,
    /// The file system on the disk, if it carries one.
    fs: Option<FileSystem>,
    rules: Rules,
    /// How much of a program's own memory lies together.
    together: Sectors,
    /// The task that runs the queue.
    worker: ContextId,
    /// The task that submits what has waited for limits, if anything is limited.
    releaser: Option<ContextId>,
    /// The kernel's tasks that write what is dirty, by group, once it had anything.
    flushers: BTreeMap<CgroupId, ContextId>,
    /// Of the raw disk, shared by those who write it through the page cache.
    disk_lock: FileLock,
}

/// What is to become of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It goes on if it waits for this page.
    Page(ContextId, u64),
    /// It goes on if it waits for the journal or the log.
    Journal(ContextId),
    /// It is notified.
    Notify(ContextId),
    /// The same, even where an interrupt holds back whom it wakes.
    NotifyAtOnce(ContextId),
}

impl Storage {
    /// A disk that nothing is asked of, for programs of whose own memory so much lies together.
    pub fn new(
        queue: RequestQueue,
        cache: PageCache,
        fs: Option<FileSystem>,
        rules: Rules,
        together: Sectors,
    ) -> Storage {
        let flushers = BTreeMap::new();
        let together = together.min(queue.limits().facts.segment);
        let releaser = None;
        let (worker, disk_lock) = (ContextId(0), FileLock::default());
        Storage { queue, cache, fs, rules, together, worker, releaser, flushers, disk_lock }
    }

    /// The lock of the raw disk: those who write it through the page cache share it, and who asks
    /// for another size wants it alone.
    pub fn disk_lock(&mut self) -> &mut FileLock {
        &mut self.disk_lock
    }

    /// The block layer.
    pub fn queue(&self) -> &RequestQueue {
        &self.queue
    }

    /// The block layer, to be given something.
    pub fn queue_mut(&mut self) -> &mut RequestQueue {
        &mut self.queue
    }

    /// The page cache.
    pub fn cache(&self) -> &PageCache {
        &self.cache
    }

    /// The page cache, to be changed.
    pub fn cache_mut(&mut self) -> &mut PageCache {
        &mut self.cache
    }

    /// What the kernel does in its own way.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The task that runs the queue.
    pub fn worker(&self) -> ContextId {
        self.worker
    }

    /// The queue is run by this task.
    pub fn set_worker(&mut self, worker: ContextId) {
        self.worker = worker;
    }

    /// The task that submits what has waited for limits of control groups.
    pub fn releaser(&self) -> Option<ContextId> {
        self.releaser
    }

    /// What has waited for limits is submitted by this task.
    pub fn set_releaser(&mut self, releaser: ContextId) {
        self.releaser = Some(releaser);
    }

    /// The task that writes what is dirty of a group, if it has one.
    pub fn flusher(&self, group: CgroupId) -> Option<ContextId> {
        self.flushers.get(&group).copied()
    }

    /// How many such tasks there are.
    pub fn flushers(&self) -> usize {
        self.flushers.len()
    }

    /// What is dirty of a group is written by this task.
    pub fn add_flusher(&mut self, group: CgroupId, flusher: ContextId) {
        self.flushers.insert(group, flusher);
    }

    /// Whether the disk carries a file system.
    pub fn has_files(&self) -> bool {
        self.fs.is_some()
    }

    /// Which file system it carries, if any.
    pub fn format(&self) -> Option<Format> {
        self.fs.as_ref().map(|fs| fs.files().format())
    }

    /// What is known of files, if there is a file system.
    pub fn mounted(&mut self) -> Option<&mut Files> {
        self.fs.as_mut().map(FileSystem::files_mut)
    }

    /// What is known of files.
    ///
    /// # Panics
    /// If there is no file system; the same holds for what follows.
    pub fn files(&mut self) -> &mut Files {
        self.fs.as_mut().expect("a file system is mounted").files_mut()
    }

    /// The ext4 that is mounted.
    pub fn ext4(&mut self) -> &mut Ext4 {
        match &mut self.fs {
            Some(FileSystem::Ext4(fs)) => fs,
            _ => panic!("no ext4 is mounted"),
        }
    }

    /// The XFS that is mounted.
    pub fn xfs(&mut self) -> &mut Xfs {
        match &mut self.fs {
            Some(FileSystem::Xfs(fs)) => fs,
            _ => panic!("no XFS is mounted"),
        }
    }
}
