//! What all file systems know of their files.
//!
//! * `names`: names and directories, and who looks into them.
//! * `dirty`: what the flusher looks at, and who waits for it.
//! * `writes`: data on their way to the disk, and what is on it and a part of no file yet.
//! * `finishing`: what is left to do for asynchronous direct writes;
//! * `first_workers`: how those come to be who do it.

mod dirty;
mod finishing;
mod first_workers;
mod names;
mod writes;

pub use dirty::FlushOf;
pub use finishing::{Durable, Finish, Finishing};
pub use first_workers::FirstWorkers;
pub use names::{Move, ROOT};
pub use writes::{Write, Written};

use crate::file_lock::{FileLock, Guarded};
use crate::inode::{Extent, Inode};
use crate::{Format, Mount, Rules};
use block::{ContextId, Kernel};
use cache::FILE_PAGES;
use dirty::Dirty;
use names::Names;
use std::collections::BTreeMap;
use std::ops::Range;
use writes::Writes;

/// What all file systems know of their files.
pub struct Files {
    mount: Mount,
    rules: Rules,
    /// Files by number; number zero stands for the disk, and here for the root directory.
    pub(crate) inodes: Vec<Inode>,
    names: Names,
    dirty: Dirty,
    /// Locks of files that somebody holds or shares.
    locks: BTreeMap<(usize, Guarded), FileLock>,
    writes: Writes,
    finishing: Finishing,
    first_workers: FirstWorkers,
}

impl Files {
    /// The root directory, whose inode has this number, and no file.
    pub(crate) fn new(mount: Mount, kernel: &Kernel, root: u64) -> Files {
        Files {
            mount,
            rules: Rules::of(kernel),
            inodes: vec![Inode::of_root(root)],
            names: Names::default(),
            dirty: Dirty::default(),
            locks: BTreeMap::new(),
            writes: Writes::default(),
            finishing: Finishing::default(),
            first_workers: FirstWorkers::default(),
        }
    }

    /// How they are mounted.
    pub fn mount(&self) -> &Mount {
        &self.mount
    }

    /// Which file system they are on.
    pub fn format(&self) -> Format {
        self.mount.format
    }

    /// What changed over the years.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// A file.
    pub fn inode(&mut self, file: usize) -> &mut Inode {
        &mut self.inodes[file]
    }

    /// How many there were, with the root directory; their numbers are below.
    pub fn count(&self) -> usize {
        self.inodes.len()
    }

    /// The extent in which a block of a file has contents, from that block on.
    pub fn find_contents(&self, file: usize, block: u64) -> Option<Extent> {
        self.inodes[file].find(block).filter(|it| it.is_written)
    }

    /// Whether a block of a file has no place, or one that was never written.
    pub fn lacks_contents(&self, file: usize, block: u64) -> bool {
        self.find_contents(file, block).is_none()
    }

    /// Pages of a file, by their numbers among all, cut by extent; and whether they have contents.
    pub fn pieces(&self, file: usize, pages: &Range<u64>) -> Vec<(Range<u64>, bool)> {
        let mut pieces: Vec<(Range<u64>, bool)> = Vec::new();
        let mut at = pages.start;
        while at < pages.end {
            let found = self.find_contents(file, at % FILE_PAGES);
            let length = found.map_or(1, |extent| extent.length);
            let end = (at + length).min(pages.end);
            match pieces.last_mut() {
                Some((last, false)) if found.is_none() => last.end = end,
                _ => pieces.push((at..end, found.is_some())),
            }
            at = end;
        }
        pieces
    }

    /// A lock of a file.
    pub fn lock_of(&mut self, file: usize, guarded: Guarded) -> &mut FileLock {
        self.locks.entry((file, guarded)).or_default()
    }

    /// Who holds a lock of a file lets it go; answers with who may look again.
    pub fn release(&mut self, file: usize, guarded: Guarded) -> Vec<ContextId> {
        let Some(next) = self.lock_of(file, guarded).release() else { return Vec::new() };
        if next.is_empty() {
            self.locks.remove(&(file, guarded));
        }
        next
    }

    /// Whether there are workers that finish asynchronous direct requests.
    pub fn first_workers(&mut self) -> &mut FirstWorkers {
        &mut self.first_workers
    }

    /// What is left to do for asynchronous direct writes.
    pub fn finishing(&mut self) -> &mut Finishing {
        &mut self.finishing
    }
}

/// The number of a page in the page cache.
pub fn key(file: usize, page: u64) -> u64 {
    file as u64 * FILE_PAGES + page
}

/// All pages of a file.
pub fn all_pages(file: usize) -> Range<u64> {
    key(file, 0)..key(file + 1, 0)
}
