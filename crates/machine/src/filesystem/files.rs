//! Files by name: open, create, truncate, remove.

use super::{Format, key};
use crate::file::{Errno, File, Kind, OpenFlags};
use crate::task::Task;
use crate::tasks::Wait;
use crate::world::World;
use cache::FILE_PAGES;
use std::future::poll_fn;
use std::task::Poll;

/// What happens when a file that is opened is there, or is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Creation {
    /// O_CREAT.
    pub creates: bool,
    /// O_TRUNC.
    pub truncates: bool,
    /// Open for writing.
    pub writes: bool,
}

impl Creation {
    /// An existing file, to be read.
    pub const READ: Creation = Creation { creates: false, truncates: false, writes: false };
    /// As `open(path, O_RDWR | O_CREAT)`.
    pub const WRITE: Creation = Creation { creates: true, truncates: false, writes: true };
}

impl Task {
    /// Opens the disk, a special file, or a file below the mount point.
    pub async fn open_file(
        &self,
        path: &str,
        flags: OpenFlags,
        creation: Creation,
    ) -> Result<File, Errno> {
        if path.starts_with("/dev/") {
            return self.open(path, flags);
        }
        let name = {
            let world = self.world();
            let fs = world.fs.as_ref().ok_or(Errno::Enoent)?;
            fs.files().name(path).ok_or(Errno::Enoent)?.to_string()
        };
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let result = self.look_up(&name, creation).await;
        self.leave_kernel();
        let file = result?;
        let mut world = self.world();
        let device = world.readahead_allowance();
        let number = world.cache.open(self.id(), device, key(file, 0), creation.writes);
        world.files().inode(file).writers += u32::from(creation.writes);
        Ok(File { kind: Kind::File(file), number, flags })
    }

    /// The size of a file, or of the disk.
    pub fn size(&self, file: &File) -> u64 {
        match file.kind {
            Kind::File(index) => self.world().files().inode(index).size,
            Kind::Disk => self.disk().capacity.0,
            Kind::Zero | Kind::Null => 0,
        }
    }

    /// Whether there is a file of this name, and how large it is.
    pub fn stat(&self, path: &str) -> Option<u64> {
        let mut world = self.world();
        let fs = world.fs.as_mut()?.files_mut();
        let file = *fs.names.get(fs.name(path)?)?;
        Some(fs.inode(file).size)
    }

    /// Looks a file up by its name; the answer is its size, if it is there.
    pub async fn look_for(&self, path: &str) -> Option<u64> {
        self.world().fs.as_ref()?.files().name(path)?;
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        self.lock_directory().await;
        let name = self.world().fs.as_ref()?.files().name(path)?.to_string();
        self.read_directory_of(&name).await;
        self.unlock_directory();
        self.leave_kernel();
        self.stat(path)
    }

    /// Sets the size of a file.
    pub async fn truncate(&self, file: &File, size: u64) -> Result<(), Errno> {
        let Kind::File(index) = file.kind else { return Err(Errno::Einval) };
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        self.set_size(index, size).await;
        self.leave_kernel();
        Ok(())
    }

    /// Takes a file out of its directory. What is open stays until it is closed.
    // Divergence: its blocks are free at once, also while it is open.
    pub async fn unlink(&self, path: &str) -> Result<(), Errno> {
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let found = {
            let mut world = self.world();
            let files = world.fs.as_mut().ok_or(Errno::Enoent)?.files_mut();
            let name = files.name(path).ok_or(Errno::Enoent)?;
            match files.names.get(name).copied() {
                Some(file) if files.is_directory(file) => Err(Errno::Eisdir),
                Some(file) => {
                    files.names.remove(name);
                    Ok((file, files.directory_of(name)))
                }
                None => Err(Errno::Enoent),
            }
        };
        if let Ok((file, directory)) = found {
            self.lock_directory().await;
            self.remove(file, directory).await;
        }
        self.leave_kernel();
        found.map(drop)
    }

    /// A file or directory loses its name, in a directory that is locked, which others may use then, and
    /// what it has.
    pub(super) async fn remove(&self, file: usize, directory: usize) {
        match self.format() {
            Format::Ext4 => {
                self.remove_name(file, directory).await;
                self.unlock_directory();
                self.give_inode_up(file).await;
            }
            Format::Xfs => {
                self.remove_name_of_xfs(file, directory).await;
                self.unlock_directory();
            }
        }
    }

    async fn look_up(&self, name: &str, creation: Creation) -> Result<usize, Errno> {
        let format = self.format();
        self.lock_directory().await;
        self.read_directory_of(name).await;
        let known = self.world().files().names.get(name).copied();
        let found = match known {
            Some(file) if creation.writes && self.world().files().is_directory(file) => {
                Err(Errno::Eisdir)
            }
            Some(file) => Ok(file),
            None if creation.creates => match format {
                Format::Ext4 => Ok(self.create(name).await),
                Format::Xfs => self.create_xfs(name).await,
            },
            None => Err(Errno::Enoent),
        };
        self.unlock_directory();
        let file = found?;
        if creation.truncates && self.world().files().inode(file).size > 0 {
            self.set_size(file, 0).await;
        }
        if format == Format::Ext4 {
            self.note_mount().await;
        }
        Ok(file)
    }

    async fn set_size(&self, file: usize, size: u64) {
        match self.format() {
            Format::Ext4 => self.set_size_of_ext4(file, size).await,
            Format::Xfs => self.set_size_of_xfs(file, size).await,
        }
    }

    pub(super) async fn lock_directory(&self) {
        poll_fn(|_| {
            let mut world = self.world();
            match &mut world.files().directory_lock {
                Some(waiting) => {
                    waiting.push(self.id());
                    self.wait(&mut world, Wait::Directory)
                }
                lock => {
                    *lock = Some(Vec::new());
                    Poll::Ready(())
                }
            }
        })
        .await;
    }

    pub(super) fn unlock_directory(&self) {
        let mut world = self.world();
        let waiting = world.files().directory_lock.take().unwrap_or_default();
        for task in waiting {
            world.wake_from(task);
        }
    }
}

impl World {
    /// An open file, of this number, is closed. What was kept for a file goes with the last one who
    /// could write it.
    pub fn close_file(&mut self, number: usize) {
        let Some((first_page, wrote)) = self.cache.close(number) else { return };
        if first_page == 0 {
            return;
        }
        let index = (first_page / FILE_PAGES) as usize;
        let inode = self.files().inode(index);
        inode.writers -= u32::from(wrote);
        let is_last = wrote && inode.writers == 0;
        match self.format() {
            Format::Ext4 if is_last => self.give_back_kept(index),
            Format::Xfs if is_last => self.trim(index),
            _ => {}
        }
    }
}
