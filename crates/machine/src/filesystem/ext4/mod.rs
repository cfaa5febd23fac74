//! ext4: files on the disk, and the journal that keeps what is known of them consistent.
//!
//! What is where, what is free and how transactions go are pure machines in [`fs::ext4`]; here is
//! who drives them.
//!
//! * `handles`: changes of metadata, and who waits for whom. `map`: one after the other for which
//!   blocks of a file are where.
//! * `commit`: the task of the journal, and room in the log.
//! * `names`: create, truncate, remove. `allocation`: giving pages their blocks.
//! * `fallocate`, `direct` and `calls`: what it does for calls that all file systems know.
//!   `exchange`: one that only ext4 knows.
//!
//! Written after the specification for 4.19 and 6.18 (`docs/rules` has what is implemented of it);
//! 6.12 as it was observed in the world `linux`. The whole list of what is and is not modelled is
//! in `docs/filesystems.md`.

mod allocation;
mod calls;
mod claims;
mod commit;
mod direct;
mod directories;
mod exchange;
mod fallocate;
mod handles;
mod names;

pub(crate) use commit::run as committer;
pub(super) use commit::spawn as spawn_committer;

use super::Files;
use block::{ContextId, Facts, Kernel};
use fs::delayed::Delayed;
use fs::ext4::journal::Journal;
use fs::ext4::layout::{Layout, ROOT_INODE, UNIT};
use fs::ext4::space::Space;
use fs::{Mount, Rules};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

/// An ext4 that is mounted.
pub(crate) struct Ext4 {
    /// Its files, which are also those that this stands for ([`Deref`]).
    pub files: Files,
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
        Ext4 {
            files: Files::new(mount, kernel, ROOT_INODE),
            journal: Journal::new(layout.journal.clone(), Rules::of(kernel).transactions_of_log),
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
        let unit = group / UNIT * UNIT;
        (unit + 1).min(self.layout.groups() - 1)
    }
}
