//! Files on the disk.
//!
//! What every file system has is here: names, pages of files, direct I/O, and the flusher's walk.
//! What each does in its own way, such as where blocks are and how changes of metadata reach the
//! disk, is in `ext4` and `xfs`; where a call needs that, it asks which one is mounted.
//!
//! * `inode`: a file and its extents. `files`: open, truncate, remove. `room`: what is set
//!   aside, and holes. `directories`: make, list, rename, remove.
//! * `reading`, `writing`, `direct`: what calls do. `sync`: sync(2).
//! * `ranges`: parts of files that are written back or dropped on demand.
//! * `writeback`: pages on their way to the disk; `flush`: the flusher; `unwritten`: the worker
//!   that says of blocks that they have their contents; `finishing`: those that do and make
//!   durable what asynchronous direct writes need.
//! * `map`: who may change where blocks of a file are.
//! * `metadata`: metadata and the log on their way between memory and the disk.
//!
//! Written after the specification for 4.19 and 6.18 (`docs/rules` has what is implemented of it);
//! 6.12 as it was observed in the world `linux`. The whole list of what is and is not modelled is
//! in `docs/filesystems.md`.

mod delayed;
mod direct;
mod directories;
pub(crate) mod ext4;
mod files;
pub(crate) mod finishing;
mod flush;
mod inode;
mod map_lock;
mod metadata;
pub(crate) mod own_tasks;
mod ranges;
mod reading;
mod room;
mod sync;
pub(crate) mod unwritten;
mod writeback;
mod writing;
pub(crate) mod xfs;

pub use directories::Status;
pub use files::Creation;
pub(crate) use flush::work as flush;
pub use ranges::RangeSync;
use writeback::Written;
pub(crate) use writing::intended;

use crate::guest::Guest;
use base::Bytes;
use block::{CgroupId, ContextId, Facts, Flags, Kernel, Version};
use cache::FILE_PAGES;
use cache::page_cache::Mounted;
use ext4::Ext4;
use finishing::Finishing;
use flush::FlushOf;
use inode::Inode;
use map_lock::MapLock;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use unwritten::Ended;
use writeback::Write;
use xfs::Xfs;

/// Seconds after which a transaction is committed (mount option `commit`).
pub const COMMIT_SECONDS: u64 = 5;

/// Bytes of a buffer of XFS's log. // rule xfs-log-3
pub const LOG_BUFFER: u64 = 32 << 10;

/// What file systems there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// ext4 with its journal.
    Ext4,
    /// XFS with its log.
    Xfs,
}

/// A file system that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// What it is.
    pub format: Format,
    /// The directory below which its files are, such as `/mnt`.
    pub point: String,
    /// Commits and syncs flush the disk's cache (mount option `barrier`).
    pub barrier: bool,
    /// Seconds after which a transaction is committed.
    pub commit_seconds: u64,
    /// Data are on the disk before the commit that makes them a part of a file (`data=ordered`);
    /// otherwise `data=writeback`.
    pub is_ordered: bool,
    /// What replaces the contents of a file is written at once (mount option `auto_da_alloc`).
    pub writes_replaced: bool,
    /// Bytes of one of the buffers in which XFS's log is written (mount option `logbsize`).
    pub log_buffer: u64,
    /// The control group to which its tasks were moved.
    pub journal_cgroup: String,
}

impl Mount {
    /// What of memory it has to do with, on a disk of so many bytes.
    pub(crate) fn in_memory(&self, guest: &Guest, capacity: Bytes) -> Mounted {
        let pieces_kept = match self.format {
            Format::Ext4 if capacity <= guest.small_disk => guest.pieces_kept_by_small_ext4,
            Format::Ext4 => guest.pieces_kept_by_ext4,
            Format::Xfs => guest.pieces_kept_by_xfs,
        };
        let is_ext4 = self.format == Format::Ext4;
        Mounted {
            pieces_kept,
            has_buffers: is_ext4,
            others: if is_ext4 { guest.pages_left_by_ext4 } else { 0 },
        }
    }

    /// How often mounting it on a disk of so many bytes makes a task wait for a tag.
    pub(crate) fn waits_for_tags(&self, guest: &Guest, capacity: Bytes) -> u32 {
        let waits = self.format == Format::Ext4 && capacity >= guest.large_disk;
        if waits { guest.waits_on_large_disk } else { 0 }
    }
}

impl Default for Mount {
    fn default() -> Mount {
        Mount {
            format: Format::Ext4,
            point: "/mnt".to_string(),
            barrier: true,
            commit_seconds: COMMIT_SECONDS,
            is_ordered: true,
            writes_replaced: true,
            log_buffer: LOG_BUFFER,
            journal_cgroup: String::new(),
        }
    }
}

/// A file system in use.
pub(crate) enum FileSystem {
    Ext4(Box<Ext4>),
    Xfs(Box<Xfs>),
}

/// What all file systems know of their files.
pub(crate) struct Files {
    pub mount: Mount,
    rules: Rules,
    /// Files by number; number zero stands for the disk, and here for the root directory.
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    /// Which of them are directories.
    directories: BTreeSet<usize>,
    /// Somebody looks into the directory, and who else wants to.
    directory_lock: Option<Vec<ContextId>>,
    /// Files with something dirty, oldest first, and the tick since when.
    dirty: Vec<(usize, u64)>,
    /// Where the flusher goes on in each file.
    cursors: BTreeMap<usize, u64>,
    /// Maps that somebody holds or keeps.
    map_locks: BTreeMap<usize, MapLock>,
    /// Data being written, by number; each is several bios at most.
    writes: BTreeMap<u64, Write>,
    write_of: BTreeMap<u64, u64>,
    next_write: u64,
    /// What is on the disk and a part of no file yet, and the worker that sees to it.
    ended: VecDeque<Ended>,
    converter: ContextId,
    finishing: Finishing,
    /// A sync waits for the flusher of a group.
    pub syncs: Vec<(CgroupId, ContextId, FlushOf)>,
}

/// What changed over the years.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// Flags of direct reads.
    direct_read: Flags,
    /// Bios of direct writes that must be durable carry FUA where the disk has it.
    direct_fua: bool,
}

impl FileSystem {
    /// A fresh file system on a disk.
    pub fn new(mount: Mount, kernel: &Kernel, facts: &Facts) -> FileSystem {
        match mount.format {
            Format::Ext4 => FileSystem::Ext4(Box::new(Ext4::new(mount, kernel, facts))),
            Format::Xfs => FileSystem::Xfs(Box::new(Xfs::new(mount, kernel, facts.capacity.0))),
        }
    }

    /// Its files.
    pub fn files(&self) -> &Files {
        match self {
            FileSystem::Ext4(fs) => &fs.files,
            FileSystem::Xfs(fs) => &fs.files,
        }
    }

    pub fn files_mut(&mut self) -> &mut Files {
        match self {
            FileSystem::Ext4(fs) => &mut fs.files,
            FileSystem::Xfs(fs) => &mut fs.files,
        }
    }
}

impl Files {
    fn new(mount: Mount, version: Version, root: u64) -> Files {
        Files {
            mount,
            rules: Rules::of(version),
            inodes: vec![Inode::of_root(root)],
            names: BTreeMap::new(),
            directories: BTreeSet::new(),
            directory_lock: None,
            dirty: Vec::new(),
            cursors: BTreeMap::new(),
            map_locks: BTreeMap::new(),
            writes: BTreeMap::new(),
            write_of: BTreeMap::new(),
            next_write: 0,
            ended: VecDeque::new(),
            converter: ContextId(0),
            finishing: Finishing::default(),
            syncs: Vec::new(),
        }
    }

    /// The name of a file below the mount point.
    pub fn name<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.mount.point.as_str())?.strip_prefix('/')?;
        (!rest.is_empty()).then_some(rest)
    }

    /// A file.
    pub(crate) fn inode(&mut self, file: usize) -> &mut Inode {
        &mut self.inodes[file]
    }

    /// A file has something dirty since a tick.
    pub(crate) fn note_dirty(&mut self, file: usize, now: u64) {
        if self.dirty.iter().all(|(it, _)| *it != file) {
            self.dirty.push((file, now));
        }
    }

    /// Whether a token is that of data being written.
    pub fn is_writing(&self, token: u64) -> bool {
        self.write_of.contains_key(&token)
    }
}

impl Rules {
    fn of(version: Version) -> Rules {
        Rules {
            direct_read: match version >= Version::V6_18 {
                true => Flags::SYNC.with(Flags::IDLE),
                false => Flags::NONE,
            },
            // Read in 4.19 and 6.18, observed in 6.12; everything between as 4.19.
            direct_fua: version >= Version::V6_12,
        }
    }
}

/// The number of a page in the page cache.
pub(crate) fn key(file: usize, page: u64) -> u64 {
    file as u64 * FILE_PAGES + page
}

/// All pages of a file.
pub(crate) fn all_pages(file: usize) -> Range<u64> {
    key(file, 0)..key(file + 1, 0)
}
