//! ext4: files on the disk, and the journal that keeps what is known of them consistent.
//!
//! * `layout`: where a fresh file system keeps what it knows of itself; `space`: what is free.
//! * `journal`: transactions. All three are pure.
//! * `handles`: changes of metadata, and who waits for whom. `map`: one after the other for which
//!   blocks of a file are where.
//! * `commit`: the task `jbd2/vda-8`, and room in the log.
//! * `names`: create, truncate, remove. `allocation`: giving pages their blocks.
//! * `fallocate`, `direct` and `calls`: what it does for calls that all file systems know.
//!   `exchange`: one that only ext4 knows.
//!
//! Written after the specification for 4.19 and 6.18 (`docs/rules` has what is implemented of it);
//! 6.12 as it was observed in the world `linux`. The whole list of what is and is not modelled is
//! in `docs/filesystems.md`.

mod allocation;
mod buddies;
mod calls;
mod claims;
mod commit;
mod direct;
mod directories;
mod exchange;
mod fallocate;
mod handles;
pub(crate) mod journal;
mod layout;
mod names;
mod space;

pub(crate) use commit::run as committer;
pub(super) use commit::spawn as spawn_committer;

use super::delayed::Delayed;
use super::{Files, Mount};
use block::{ContextId, Facts, Flags, Kernel, Version};
use journal::Journal;
use layout::{Layout, ROOT_INODE};
use space::Space;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

/// What changed in ext4 over the years.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// New blocks are unwritten until their data are on the disk (dioread_nolock).
    unwritten_first: bool,
    /// Of bios of the journal.
    journal_flags: Flags,
}

/// An ext4 that is mounted.
pub(crate) struct Ext4 {
    /// Its files, which are also those that this stands for ([`Deref`]).
    pub files: Files,
    rules: Rules,
    layout: Layout,
    space: Space,
    /// Blocks for pages that are dirty and have no place.
    delayed: Delayed,
    pub journal: Journal,
    /// The next free inode of groups that have some in use.
    next_inodes: BTreeMap<u64, u64>,
    /// Metadata that were read.
    known: BTreeSet<u64>,
    /// The superblock says where it is mounted: the first open file sees to that.
    notes_mount: bool,
    /// The task that commits.
    pub committer: ContextId,
}

impl Rules {
    fn of(version: Version) -> Rules {
        // Read in 4.19 and 6.18, observed in 6.12; everything between as 4.19.
        let recent = version >= Version::V6_12;
        let journal = if recent { Flags::META.with(Flags::IDLE) } else { Flags::NONE };
        Rules { unwritten_first: recent, journal_flags: Flags::SYNC.with(journal) }
    }
}

impl Deref for Ext4 {
    type Target = Files;

    fn deref(&self) -> &Files {
        &self.files
    }
}

impl DerefMut for Ext4 {
    fn deref_mut(&mut self) -> &mut Files {
        &mut self.files
    }
}

impl Ext4 {
    /// A fresh file system on a disk.
    pub fn new(mount: Mount, kernel: &Kernel, facts: &Facts) -> Ext4 {
        let layout = Layout::new(facts.capacity.0);
        // The third part is read in 6.18, and assumed for 6.12.
        let part = if kernel.version >= Version::V6_12 { 3 } else { 4 };
        Ext4 {
            files: Files::new(mount, kernel.version, ROOT_INODE),
            rules: Rules::of(kernel.version),
            journal: Journal::new(layout.journal.clone(), part),
            space: Space::new(layout.clone(), facts.rotational),
            delayed: Delayed::default(),
            layout,
            next_inodes: BTreeMap::new(),
            known: BTreeSet::new(),
            notes_mount: true,
            committer: ContextId(0),
        }
    }

    /// The block of the table with a file's inode.
    fn table_block(&self, file: usize) -> u64 {
        self.layout.table_block(self.inodes[file].number)
    }

    /// The group in which a file's data are looked for first: behind that of its inode, where the
    /// directories are.
    fn data_group(&self, file: usize) -> u64 {
        let group = self.layout.group_of_inode(self.inodes[file].number);
        let unit = group / layout::UNIT * layout::UNIT;
        (unit + 1).min(self.layout.groups() - 1)
    }
}
