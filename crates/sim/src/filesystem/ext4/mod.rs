//! ext4: files on the disk, and the journal that keeps what is known of them consistent.
//!
//! * `layout`: where a fresh file system keeps what it knows of itself; `space`: what is free.
//! * `inode`: a file and its extents; `journal`: transactions. All four are pure.
//! * `handles`: changes of metadata, and who waits for whom.
//! * `commit`: the task `jbd2/vda-8`, and room in the log.
//! * `files`: open, create, truncate, remove. `reading`, `writing`, `direct`: what calls do.
//! * `writeback`: giving pages their blocks and writing them; `flush`: the flusher; `sync`.
//!
//! Written after `filesystems.md` for 4.19 and 6.18; 6.12 as it was observed in the world `linux`.
//! The whole list of what is and is not modelled is in `docs/filesystems.md`.

mod commit;
mod direct;
mod files;
mod flush;
mod handles;
mod inode;
pub(crate) mod journal;
mod layout;
mod reading;
mod space;
mod sync;
mod writeback;
mod writing;

pub(crate) use commit::run as committer;
pub use files::Creation;
pub(crate) use flush::work as flush;
pub use layout::Layout;

use super::Mount;
use crate::page_cache::disk::FILE_PAGES;
use block::{ContextId, Flags, Kernel, Version};
use inode::Inode;
use journal::Journal;
use layout::FIRST_INODE;
use space::Space;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What changed in ext4 over the years.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// New blocks are unwritten until their data are on the disk (dioread_nolock).
    unwritten_first: bool,
    /// Of bios of the journal.
    journal_flags: Flags,
    /// Of direct reads.
    direct_read: Flags,
    /// Bios of direct writes that must be durable carry FUA where the disk has it.
    direct_fua: bool,
}

/// The state of a file system.
pub(crate) struct FileSystem {
    pub mount: Mount,
    rules: Rules,
    layout: Layout,
    space: Space,
    pub journal: Journal,
    /// Files by number; number zero stands for the disk.
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    next_inode: u64,
    /// Metadata that were read.
    known: BTreeSet<u64>,
    /// Somebody looks into the folder, and who else wants to.
    folder_lock: Option<Vec<ContextId>>,
    /// The superblock says where it is mounted: the first open file sees to that.
    notes_mount: bool,
    /// Files with something dirty, oldest first, and the tick since when.
    dirty: Vec<(usize, u64)>,
    /// Where the flusher goes on in each file.
    cursors: BTreeMap<usize, u64>,
    /// Data being written, by number; each is several bios at most.
    writes: BTreeMap<u64, Write>,
    write_of: BTreeMap<u64, u64>,
    next_write: u64,
    /// A sync waits for the flusher.
    pub syncs: Vec<ContextId>,
    /// The task that commits.
    pub committer: ContextId,
}

/// Pages of a file that were given blocks together and are being written.
#[derive(Debug)]
struct Write {
    file: usize,
    /// Blocks of the file.
    blocks: Range<u64>,
    /// They become written when they are on the disk.
    converts: bool,
    bios_left: u32,
    tokens: Vec<u64>,
}

impl Rules {
    fn of(version: Version) -> Rules {
        // Read in 4.19 and 6.18, observed in 6.12; everything between as 4.19.
        let recent = version >= Version::V6_12;
        let journal = if recent { Flags::META.with(Flags::IDLE) } else { Flags::NONE };
        Rules {
            unwritten_first: recent,
            journal_flags: Flags::SYNC.with(journal),
            direct_read: match version >= Version::V6_18 {
                true => Flags::SYNC.with(Flags::IDLE),
                false => Flags::NONE,
            },
            direct_fua: recent,
        }
    }
}

impl FileSystem {
    /// A fresh file system on a disk of so many bytes.
    pub fn new(mount: Mount, kernel: &Kernel, bytes: u64) -> FileSystem {
        let layout = Layout::new(bytes);
        // The third part is read in 6.18, and assumed for 6.12.
        let part = if kernel.version >= Version::V6_12 { 3 } else { 4 };
        FileSystem {
            mount,
            rules: Rules::of(kernel.version),
            journal: Journal::new(layout.journal.clone(), part),
            space: Space::new(layout.clone()),
            layout,
            inodes: vec![Inode::default()],
            names: BTreeMap::new(),
            next_inode: FIRST_INODE,
            known: BTreeSet::new(),
            folder_lock: None,
            notes_mount: true,
            dirty: Vec::new(),
            cursors: BTreeMap::new(),
            writes: BTreeMap::new(),
            write_of: BTreeMap::new(),
            next_write: 0,
            syncs: Vec::new(),
            committer: ContextId(0),
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

    /// The block of the table with a file's inode.
    fn table_block(&self, file: usize) -> u64 {
        self.layout.table_block(self.inodes[file].number)
    }

    /// The group in which a file's data are looked for first: behind that of its inode, where the
    /// folders are.
    fn data_group(&self, file: usize) -> u64 {
        let group = self.layout.group_of_inode(self.inodes[file].number);
        let unit = group / layout::UNIT * layout::UNIT;
        (unit + 1).min(self.layout.groups() - 1)
    }

    /// A file has something dirty since a tick.
    fn note_dirty(&mut self, file: usize, now: u64) {
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
