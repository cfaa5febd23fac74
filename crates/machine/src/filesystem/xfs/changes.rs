//! Transactions: what they change, and reading it before.
//!
//! A transaction is over at once: what it changed is on a list in memory (rule xfs-log-1).
//!
// Divergence: who wants the same metadata meanwhile does not wait, but for finding room.

use super::Xfs;
use crate::task::Task;
use crate::tasks::Wait;
use crate::world::World;
use block::{Flags, Op};
use fs::xfs::layout::Part;
use fs::xfs::log::{Item, bytes_of_buffer, bytes_of_inode, bytes_of_parts};
use std::future::poll_fn;
use std::ops::Range;
use std::task::Poll;

/// How often the superblock is logged before a log that nothing happens to says that it is clean.
const COVERS: u32 = 2;

/// What changes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Its times: fdatasync does not mind.
    Times,
    /// Anything else.
    Data,
}

impl Task {
    /// Reads metadata that are not known yet.
    pub(super) async fn read_xfs(&self, sectors: Range<u64>) {
        if self.world().xfs().known.insert(sectors.start) {
            self.move_metadata(Op::Read, &[sectors], Flags::META).await;
        }
    }

    /// Nobody else looks for room in a group: that one, or any from it on.
    pub(super) async fn lock_group(&self, group: u64, or_next: bool) -> u64 {
        poll_fn(|_| {
            let mut world = self.world();
            let space = &mut world.xfs().space;
            let found = match or_next {
                true => space.lock_any(group),
                false => space.lock(group).then_some(group),
            };
            match found {
                Some(found) => Poll::Ready(found),
                None => {
                    space.wait(group, self.id());
                    self.wait(&mut world, Wait::Directory).map(|()| group)
                }
            }
        })
        .await
    }

    pub(super) fn unlock_group(&self, group: u64) {
        let mut world = self.world();
        let waiting = world.xfs().space.unlock(group);
        for task in waiting {
            world.wake_from(task);
        }
    }

    /// The time of modification of a file.
    pub(in crate::filesystem) async fn log_modified(&self, index: usize) {
        self.lock_map(index).await;
        let mut world = self.world();
        // It may have had to wait.
        let now = world.tick();
        let fs = world.xfs();
        fs.inode(index).modified = Some(now);
        fs.change_inode(index, Change::Times);
        drop(world);
        self.unlock_map(index);
    }

    /// The time of access of a file.
    pub(in crate::filesystem) async fn log_accessed(&self, index: usize) {
        self.lock_map(index).await;
        let mut world = self.world();
        let now = world.tick();
        let fs = world.xfs();
        fs.inode(index).accessed = Some(now);
        fs.change_inode(index, Change::Times);
        drop(world);
        self.unlock_map(index);
    }
}

impl Xfs {
    /// A transaction changes a file. What else than the core was changed of an inode since it was
    /// written is logged with every change. // observed: xfs_logprint
    pub(super) fn change_inode(&mut self, index: usize, change: Change) {
        let number = self.files.inodes[index].number;
        let fork = match self.files.is_directory(index) {
            true => self.directory_fork(index),
            false => self.fork_of_file(index),
        };
        if change == Change::Data && fork > 0 {
            self.with_fork.insert(number);
        }
        let fork = if self.with_fork.contains(&number) { fork } else { 0 };
        let sequence = self.change(Item::Inode(number), bytes_of_inode(fork));
        let inode = self.files.inode(index);
        inode.changed_in = sequence;
        inode.is_unsynced |= change == Change::Data;
    }

    /// A transaction changes parts of a group.
    pub(super) fn change_parts(&mut self, group: u64, parts: &[Part]) {
        for part in parts {
            let sectors = self.layout.part(group, *part);
            if *part == Part::Inodes {
                self.change_inodes_of_group(group, 0);
            } else {
                self.change_buffer(sectors);
            }
        }
    }

    /// A transaction changes what a group says of its inodes, of which this is the part of 128 bytes
    /// that changes. All that did since it was written is logged.
    pub(super) fn change_inodes_of_group(&mut self, group: u64, part: u64) {
        let sectors = self.layout.part(group, Part::Inodes);
        let parts = self.inodes_parts.entry(sectors.start).or_default();
        parts.insert(part);
        let bytes = bytes_of_parts(parts);
        self.change(Item::Buffer(sectors.start, sectors.end - sectors.start), bytes);
    }

    /// A transaction changes a buffer of metadata.
    pub(super) fn change_buffer(&mut self, sectors: Range<u64>) {
        let item = Item::Buffer(sectors.start, sectors.end - sectors.start);
        self.change(item, bytes_of_buffer());
    }

    pub(super) fn change(&mut self, item: Item, bytes: u64) -> u64 {
        self.covers_left = COVERS;
        self.log.change(item, bytes)
    }
}

impl World {
    /// The XFS that is mounted.
    pub fn xfs(&mut self) -> &mut Xfs {
        match &mut self.fs {
            Some(crate::filesystem::FileSystem::Xfs(fs)) => fs,
            _ => panic!("no XFS is mounted"),
        }
    }
}
