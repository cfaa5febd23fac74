//! XFS at work: what tasks do to its files, and its own tasks.
//!
//! What is where, what is free and how the log goes is pure and in [`fs::xfs`]; here is who drives
//! it.
//!
//! * `changes`: reading what transactions change, and groups that somebody looks into. `names`:
//!   create, truncate; `directories`: make, rename, remove.
//! * `allocation`: room that is set aside when a file is written, and given when its pages are;
//!   `writeback`: those pages on their way to the disk.
//!   `fallocate`: room that a program asks for.
//! * `force`: writing the log, and waiting for it; `tasks`: those of the file system.

mod allocation;
mod changes;
mod directories;
mod fallocate;
mod force;
mod names;
mod tasks;
mod writeback;

pub(crate) use tasks::{force, place, push, take_away};

use super::FileIo;
use std::ops::Deref;

/// A task that does something to files of XFS.
#[derive(Clone, Copy)]
pub(crate) struct XfsIo<'t>(FileIo<'t>);

impl<'t> Deref for XfsIo<'t> {
    type Target = FileIo<'t>;

    fn deref(&self) -> &FileIo<'t> {
        &self.0
    }
}

impl<'t> XfsIo<'t> {
    /// What a task does to files, on XFS.
    pub(super) fn of(io: FileIo<'t>) -> XfsIo<'t> {
        XfsIo(io)
    }
}
