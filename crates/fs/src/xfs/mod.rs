//! XFS: where it keeps what it knows of itself, which blocks are free, and the log that keeps both
//! consistent.
//!
//! * [`layout`]: the places that mkfs.xfs chooses; [`space`]: what is free.
//! * [`log`]: what was changed, what is on its way to the log, and what is not in its place yet.
//! * [`Xfs`] puts them together with its files. `changes`: transactions; `inodes` and
//!   `directories`: files as they come and go; `allocation`: room that is set aside when a file is
//!   written, and given when its pages are; `extents`: where it is said which blocks are where;
//!   `places`: the tasks of the log.

mod allocation;
mod busy;
mod changes;
mod directories;
mod extents;
mod inodes;
pub mod layout;
pub mod log;
mod places;
pub mod space;
mod tree;

pub use allocation::Purpose;
pub use changes::Change;

use crate::Mount;
use crate::delayed::Delayed;
use crate::files::Files;
use block::{ContextId, Kernel};
use layout::{CHUNK, FIRST_INODE, Layout, ROOT, SECTORS};
use log::{Log, Parts};
use space::Space;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use tree::Tree;

/// An XFS that is mounted.
pub struct Xfs {
    /// Its files, which are also those that this stands for ([`Deref`]).
    files: Files,
    layout: Layout,
    space: Space,
    /// What was changed, and is to go to the log and to its place.
    pub log: Log,
    /// Log buffers that are being written: by which task, its operation, and the buffer.
    log_writes: Vec<(ContextId, u64, u64)>,
    /// Inodes that are free, by group, and where the last chunk of each ends.
    free_inodes: BTreeMap<u64, BTreeSet<u64>>,
    last_chunk: BTreeMap<u64, u64>,
    /// The group of the next directory.
    next_directory_group: u64,
    /// Blocks of directories whose names do not fit into their inodes.
    directory_blocks: BTreeMap<usize, u64>,
    /// By the sector of what a group says of its inodes: parts that changed since it was written.
    inodes_parts: BTreeMap<u64, Parts>,
    /// Files without a name that still have blocks and an inode.
    unlinked: Vec<usize>,
    /// The worker that takes them away.
    inactivator: ContextId,
    pusher: ContextId,
    /// By inode: blocks of the trees of files with more extents than go into one.
    trees: BTreeMap<u64, Tree>,
    /// First sectors of metadata that were read.
    known: BTreeSet<u64>,
    /// Room that was set aside, by file.
    delayed: Delayed,
    /// Files with room that a program asked for, which stays when they are closed.
    reserved: BTreeSet<usize>,
    /// Inodes of which more than the core was changed since they were written.
    with_fork: BTreeSet<u64>,
    /// How often the superblock is still to be logged when nothing else is (rule xfs-ail-3).
    covers_left: u32,
    /// Everything that is logged is to go to its place as soon as it can.
    places_all: bool,
    /// The task that writes metadata to their places.
    placer: ContextId,
    /// It sleeps until something is in the log.
    placer_rests: bool,
}

impl Deref for Xfs {
    type Target = Files;

    fn deref(&self) -> &Files {
        &self.files
    }
}

impl DerefMut for Xfs {
    fn deref_mut(&mut self) -> &mut Files {
        &mut self.files
    }
}

impl Xfs {
    /// A fresh file system on a disk of so many bytes.
    pub fn new(mount: Mount, kernel: &Kernel, bytes: u64) -> Xfs {
        let layout = Layout::new(bytes);
        Xfs {
            log: Log::new(layout.log(), mount.log_buffer),
            files: Files::new(mount, kernel, ROOT),
            space: Space::new(&layout),
            layout,
            log_writes: Vec::new(),
            free_inodes: BTreeMap::from([(0, (FIRST_INODE..ROOT + CHUNK).collect())]),
            last_chunk: BTreeMap::from([(0, (ROOT + CHUNK) / SECTORS)]),
            next_directory_group: 0,
            directory_blocks: BTreeMap::new(),
            inodes_parts: BTreeMap::new(),
            unlinked: Vec::new(),
            inactivator: ContextId(0),
            pusher: ContextId(0),
            trees: BTreeMap::new(),
            known: BTreeSet::new(),
            delayed: Delayed::default(),
            reserved: BTreeSet::new(),
            with_fork: BTreeSet::new(),
            covers_left: 0,
            places_all: false,
            placer: ContextId(0),
            placer_rests: true,
        }
    }
}
