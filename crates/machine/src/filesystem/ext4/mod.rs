//! ext4 at work: changes of metadata, and the task that commits them.
//!
//! What is where, what is free and how transactions go is pure and in [`fs::ext4`]; here is who
//! drives it.
//!
//! * `handles`: changes of metadata, and who waits for whom.
//! * `commit`: the task of the journal, and room in the log.
//! * `names` and `directories`: create, truncate, make, rename, remove. `allocation`: giving pages
//!   their blocks.
//! * `fallocate`, `direct` and `calls`: what it does for calls that all file systems know.
//!   `exchange`: one that only ext4 knows.

mod allocation;
mod calls;
mod commit;
mod direct;
mod directories;
mod exchange;
mod fallocate;
mod handles;
mod names;

pub(crate) use commit::run as commit;

use super::FileIo;
use crate::file::Errno;
use std::ops::Deref;

/// A task that does something to files of ext4.
#[derive(Clone, Copy)]
pub(crate) struct Ext4Io<'t>(FileIo<'t>);

impl<'t> Deref for Ext4Io<'t> {
    type Target = FileIo<'t>;

    fn deref(&self) -> &FileIo<'t> {
        &self.0
    }
}

impl<'t> Ext4Io<'t> {
    /// What a task does to files, on ext4.
    pub(super) fn of(io: FileIo<'t>) -> Ext4Io<'t> {
        Ext4Io(io)
    }

    /// Sets a block aside for a page that is to become dirty, unless it has one.
    pub(super) fn reserve(&self, index: usize, page: u64) -> Result<(), Errno> {
        self.ext4().reserve(index, page)
    }

    /// Commits if something was freed that cannot be used yet; false if nothing was. No handle may
    /// be open.
    async fn can_free(&self) -> bool {
        let frees = self.ext4().frees();
        if frees {
            self.force_commit().await;
        }
        frees
    }
}
