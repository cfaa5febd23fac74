//! Files on the disk.
//!
//! What every file system has is here: names, pages of files, direct I/O, and the flusher's walk.
//! What each does in its own way, such as where blocks are and how changes of metadata reach the
//! disk, is in `ext4` and `xfs`; where a call needs that, it asks which one is mounted.
//!
//! Inodes and extents, free space, journal and log are pure machines in the crate [`fs`].
//!
//! * `files`: open, truncate, remove. `room`: what is set
//!   aside, and holes. `directories`: make, list, rename, remove.
//! * `reading`, `writing`, `direct`: what calls do. `sync`: sync(2).
//! * `ranges`: parts of files that are written back or dropped on demand.
//! * `writeback`: pages on their way to the disk; `flush`: the flusher; `unwritten`: the worker
//!   that says of blocks that they have their contents; `finishing`: those that do and make
//!   durable what asynchronous direct writes need.
//! * `map_lock`: who may change where blocks of a file are.
//! * `metadata`: metadata and the log on their way between memory and the disk.
//!
//! Written after the specification for 4.19 and 6.18 (`docs/rules` has what is implemented of it);
//! 6.12 as it was observed in the world `linux`. The whole list of what is and is not modelled is
//! in `docs/filesystems.md`.

mod direct;
mod directories;
pub(crate) mod ext4;
mod files;
pub(crate) mod finishing;
mod flush;
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

use block::{CgroupId, ContextId, Facts, Kernel};
use cache::FILE_PAGES;
use ext4::Ext4;
use finishing::Finishing;
use flush::FlushOf;
use fs::Rules;
use fs::inode::Inode;
use fs::map_lock::MapLock;
pub use fs::{COMMIT_SECONDS, Format, LOG_BUFFER, Mount};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use unwritten::Ended;
use writeback::Write;
use xfs::Xfs;

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
    fn new(mount: Mount, kernel: &Kernel, root: u64) -> Files {
        Files {
            mount,
            rules: Rules::of(kernel),
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

/// The number of a page in the page cache.
pub(crate) fn key(file: usize, page: u64) -> u64 {
    file as u64 * FILE_PAGES + page
}

/// All pages of a file.
pub(crate) fn all_pages(file: usize) -> Range<u64> {
    key(file, 0)..key(file + 1, 0)
}
