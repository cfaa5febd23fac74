//! ext4: where it keeps what it knows of itself, which blocks are free, and the journal that keeps
//! both consistent.
//!
//! * [`layout`]: the places that mke2fs chooses; [`space`]: what is free, by `buddies`.
//! * [`journal`]: transactions, and who waits for which.
//! * [`Ext4`] puts them together with its files. `blocks`: which blocks a file gets and loses;
//!   `leaves`: where it is said which those are; `inodes`: files and directories as they come and
//!   go.

mod blocks;
mod buddies;
mod inodes;
pub mod journal;
pub mod layout;
mod leaves;
pub mod space;

use crate::delayed::Delayed;
use crate::files::Files;
use crate::{Mount, Rules};
use block::{ContextId, Facts, Kernel};
use journal::{Journal, Phase};
use layout::{Layout, ROOT_INODE, UNIT};
use space::Space;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut, Range};

/// An ext4 that is mounted.
pub struct Ext4 {
    /// Its transactions.
    pub journal: Journal,
    /// Its files, which are also those that this stands for ([`Deref`]).
    files: Files,
    layout: Layout,
    space: Space,
    /// Blocks for pages that are dirty and have no place.
    delayed: Delayed,
    /// The first inode that was never in use, of groups that have some in use.
    next_inodes: BTreeMap<u64, u64>,
    /// Inodes that were in use and are free.
    free_inodes: BTreeSet<u64>,
    /// Metadata that were read.
    known: BTreeSet<u64>,
    /// The superblock says where it is mounted: the first open file sees to that.
    notes_mount: bool,
    /// The task that commits.
    committer: ContextId,
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
            space: Space::new(layout.clone(), facts.rotational)
                .going_by_known(Rules::of(kernel).goes_by_known),
            delayed: Delayed::default(),
            // The log was looked at when it was mounted.
            known: layout.journal_map().into_iter().collect(),
            layout,
            next_inodes: BTreeMap::new(),
            free_inodes: BTreeSet::new(),
            notes_mount: true,
            committer: ContextId(0),
        }
    }

    /// The task that commits.
    pub fn committer(&self) -> ContextId {
        self.committer
    }

    /// The task that commits is this one.
    pub fn set_committer(&mut self, committer: ContextId) {
        self.committer = committer;
    }

    /// The block with the superblock of the file system.
    pub fn superblock(&self) -> u64 {
        self.layout.superblock()
    }

    /// Whether the superblock has still to say where it is mounted; asked once.
    pub fn takes_note_of_mount(&mut self) -> bool {
        std::mem::take(&mut self.notes_mount)
    }

    /// A block of metadata is known from now on; the answer is whether it was not.
    pub fn learn(&mut self, block: u64) -> bool {
        self.known.insert(block)
    }

    /// Whether mounting brings a block of metadata to memory.
    pub fn is_read_at_mount(&self, block: u64) -> bool {
        self.layout.is_read_at_mount(block)
    }

    /// The block that must be known before something is written to the log, if there is one.
    pub fn journal_map(&self) -> Option<u64> {
        self.layout.journal_map()
    }

    /// Nobody knows any more where the log lies. The answer is the block that says so.
    pub fn forget_journal_map(&mut self) -> Option<u64> {
        self.journal_map().filter(|block| self.known.remove(block))
    }

    /// A handle changes a block of metadata.
    pub fn change(&mut self, block: u64) {
        self.known.insert(block);
        self.journal.change(block);
    }

    /// The data of some blocks of a file must be on the disk before the running transaction.
    pub fn order(&mut self, file: usize, blocks: Range<u64>) {
        let is_ordered = self.files.mount().is_ordered;
        if let Some(running) = self.journal.running.as_mut().filter(|_| is_ordered) {
            let range = running.ordered.entry(file).or_insert(blocks.clone());
            *range = range.start.min(blocks.start)..range.end.max(blocks.end);
        }
    }

    /// What a task has written is on the disk. If that was what the transaction being committed
    /// changed, the answer is who waited for it.
    pub fn written_by(&mut self, task: ContextId) -> Vec<ContextId> {
        let is_log =
            self.committer == task && matches!(self.journal.committing, Some((_, Phase::Logging)));
        if is_log { self.journal.logged() } else { Vec::new() }
    }

    /// A transaction is on the disk: what it freed can be used.
    pub fn committed(&mut self, transaction: u64) {
        self.space.committed(transaction);
    }

    /// The group in which a file's data are looked for first: behind that of its inode, where the
    /// directories are.
    fn data_group(&self, file: usize) -> u64 {
        let group = self.layout.group_of_inode(self.inodes[file].number);
        let unit = group / UNIT * UNIT;
        (unit + 1).min(self.layout.groups() - 1)
    }
}
