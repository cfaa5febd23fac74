//! Calls on files by name: open, stat, truncate, remove.

use crate::file::{Errno, File, Kind, OpenFlags};
use crate::filesystem::{FileIo, Wanted};
use crate::task::{Lock, Task};
use fs::file_lock::Mode;
use fs::key;

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
            let mut storage = self.storage();
            let files = storage.mounted().ok_or(Errno::Enoent)?;
            files.name(path).ok_or(Errno::Enoent)?.to_string()
        };
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let Creation { creates, truncates, writes } = creation;
        let wanted = Wanted { creates, truncates, writes };
        let result = FileIo::of(self).look_up(&name, wanted).await;
        self.leave_kernel();
        let file = result?;
        let mut world = self.world();
        let device = world.storage().readahead_allowance();
        let number = world.cache().open(self.id(), device, key(file, 0), creation.writes);
        world.files().inode(file).writers += u32::from(creation.writes);
        Ok(File { kind: Kind::File(file), number, flags })
    }

    /// The size of a file, or of the disk.
    pub fn size(&self, file: &File) -> u64 {
        match file.kind {
            Kind::File(index) => self.files().inode(index).size,
            Kind::Disk => self.disk().capacity.0,
            Kind::Zero | Kind::Null => 0,
        }
    }

    /// Whether there is a file of this name, and how large it is.
    pub fn stat(&self, path: &str) -> Option<u64> {
        let mut storage = self.storage();
        let files = storage.mounted()?;
        let file = files.find_name(files.name(path)?)?;
        Some(files.inode(file).size)
    }

    /// Looks a file up by its name; the answer is its size, if it is there.
    pub async fn look_for(&self, path: &str) -> Option<u64> {
        let name = self.storage().mounted()?.name(path)?.to_string();
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let io = FileIo::of(self);
        io.lock_directory().await;
        io.read_directory_of(&name).await;
        io.unlock_directory();
        self.leave_kernel();
        self.stat(path)
    }

    /// Sets the size of a file. A disk keeps its own, which is found when nobody writes it through
    /// the page cache.
    pub async fn truncate(&self, file: &File, size: u64) -> Result<(), Errno> {
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let result = match file.kind {
            Kind::File(index) => {
                FileIo::of(self).set_size(index, size).await;
                Ok(())
            }
            Kind::Disk if self.storage().rules().shares_disk => {
                self.acquire(Lock::Disk, Mode::Exclusive).await;
                self.release(Lock::Disk);
                Err(Errno::Einval)
            }
            _ => Err(Errno::Einval),
        };
        self.leave_kernel();
        result
    }

    /// Takes a file out of its directory. What is open stays until it is closed.
    pub async fn unlink(&self, path: &str) -> Result<(), Errno> {
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let found = {
            let mut storage = self.storage();
            let files = storage.mounted().ok_or(Errno::Enoent)?;
            let name = files.name(path).ok_or(Errno::Enoent)?;
            match files.find_name(name) {
                Some(file) if files.is_directory(file) => Err(Errno::Eisdir),
                Some(file) => {
                    files.forget_name(name);
                    Ok((file, files.directory_of(name)))
                }
                None => Err(Errno::Enoent),
            }
        };
        if let Ok((file, directory)) = found {
            let io = FileIo::of(self);
            io.lock_directory().await;
            io.remove(file, directory).await;
        }
        self.leave_kernel();
        found.map(drop)
    }
}
