//! The file system on a disk: one of those there are.

use crate::ext4::Ext4;
use crate::files::Files;
use crate::mount::{Format, Mount};
use crate::xfs::Xfs;
use block::{Facts, Kernel};

/// A file system in use.
pub enum FileSystem {
    /// ext4.
    Ext4(Box<Ext4>),
    /// XFS.
    Xfs(Box<Xfs>),
}

impl FileSystem {
    /// A fresh file system on a disk.
    pub fn new(mount: Mount, kernel: &Kernel, facts: &Facts) -> FileSystem {
        match mount.format {
            Format::Ext4 => FileSystem::Ext4(Box::new(Ext4::new(mount, kernel, facts))),
            Format::Xfs => FileSystem::Xfs(Box::new(Xfs::new(mount, kernel, facts.capacity.0))),
        }
    }

    /// Its files.
    pub fn files(&self) -> &Files {
        match self {
            FileSystem::Ext4(fs) => fs,
            FileSystem::Xfs(fs) => fs,
        }
    }

    /// Its files, to be changed.
    pub fn files_mut(&mut self) -> &mut Files {
        match self {
            FileSystem::Ext4(fs) => fs,
            FileSystem::Xfs(fs) => fs,
        }
    }

    /// Who could write a file has closed it, and nobody else can: what was kept for it goes.
    pub fn last_writer_gone(&mut self, file: usize) {
        match self {
            FileSystem::Ext4(fs) => fs.give_back_kept(file),
            FileSystem::Xfs(fs) => fs.trim(file),
        }
    }
}
