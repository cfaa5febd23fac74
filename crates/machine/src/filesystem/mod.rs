//! File systems at work: what tasks do to files, and the file system's own tasks.
//!
//! What is decided is pure and in the crate [`fs`]: inodes and extents, free space, journal and
//! log. Here is who drives it: everything is a task that reads, writes and waits, seen as a
//! [`FileIo`]. What each file system does in its own way, such as how changes of metadata reach the
//! disk, is in `ext4` and `xfs`; where something needs that, it asks which one is mounted.
//!
//! * `names`: who looks into directories, truncate, remove. `times`: of access and modification.
//! * `reading`, `writing`, `direct`: what calls do. `sync`: everything that is dirty.
//! * `writeback`: pages on their way to the disk; `flusher` and `flush`: the flusher; `unwritten`:
//!   the worker that says of blocks that they have their contents; `finishing`: those that do and
//!   make durable what asynchronous direct writes need.
//! * `file_lock`: who may change a file, and where its blocks are.
//!
//! Written after the specification for 4.19 and 6.18 (`docs/rules` has what is implemented of it);
//! 6.12 as it was observed in the world `linux`. The whole list of what is and is not modelled is
//! in `docs/filesystems.md`.

mod direct;
pub(crate) mod ext4;
mod file_lock;
pub(crate) mod finishing;
mod flush;
pub(crate) mod flusher;
mod names;
mod reading;
mod sync;
mod times;
pub(crate) mod unwritten;
mod writeback;
mod writing;
pub(crate) mod xfs;

use crate::pages::PageIo;
use crate::task::Task;
use ext4::Ext4Io;
pub(crate) use names::Wanted;
use std::ops::Deref;
pub(crate) use writing::intended;
use xfs::XfsIo;

/// A task that does something to files.
#[derive(Clone, Copy)]
pub(crate) struct FileIo<'t>(PageIo<'t>);

impl<'t> Deref for FileIo<'t> {
    type Target = PageIo<'t>;

    fn deref(&self) -> &PageIo<'t> {
        &self.0
    }
}

impl<'t> FileIo<'t> {
    /// What this task does to files.
    pub fn of(task: &'t Task) -> FileIo<'t> {
        FileIo(PageIo::of(task))
    }

    /// The same where ext4 is mounted.
    pub fn on_ext4(&self) -> Ext4Io<'t> {
        Ext4Io::of(*self)
    }

    /// The same where XFS is mounted.
    pub fn on_xfs(&self) -> XfsIo<'t> {
        XfsIo::of(*self)
    }
}
