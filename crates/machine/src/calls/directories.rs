//! Calls on directories, and on what is in them: make, list, rename, remove, stat.

use crate::file::{Errno, File, Kind};
use crate::filesystem::FileIo;
use crate::task::Task;
use fs::Format;

/// What stat says of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Bytes; of a directory zero.
    pub size: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
}

impl Task {
    /// Makes a directory.
    pub async fn mkdir(&self, path: &str) -> Result<(), Errno> {
        let name = self.entry(path)?;
        self.enter_directory(&name).await;
        let checked = {
            let files = self.files();
            match files.find_name(&name).is_some() || name.is_empty() {
                true => Err(Errno::Eexist),
                false => files.strict_directory_of(&name),
            }
        };
        let made = match checked {
            Ok(directory) => match self.format() {
                Format::Ext4 => {
                    Ok(FileIo::of(self).on_ext4().make_directory(&name, directory).await)
                }
                Format::Xfs => FileIo::of(self).on_xfs().make_directory(&name, directory).await,
            },
            Err(errno) => Err(errno),
        };
        if let Ok(made) = made {
            self.files().note_directory(made);
        }
        self.leave_directory();
        made.map(drop)
    }

    /// Gives a file or directory another name, in the place of what had it.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        let (from, to) = (self.entry(from)?, self.entry(to)?);
        self.enter_directory(&from).await;
        FileIo::of(self).read_directory_of(&to).await;
        let checked = self.files().check_rename(&from, &to);
        if let Ok(moved) = checked
            && Some(moved.file) != moved.replaced
        {
            self.files().rename(&from, &to);
            FileIo::of(self).rename(moved).await;
        }
        self.leave_directory();
        checked.map(drop)
    }

    /// Removes a directory that is empty.
    pub async fn rmdir(&self, path: &str) -> Result<(), Errno> {
        let name = self.entry(path)?;
        self.enter_directory(&name).await;
        let checked = {
            let files = self.files();
            files.find_name(&name).ok_or(Errno::Enoent).and_then(|it| {
                match files.is_directory(it) {
                    false => Err(Errno::Enotdir),
                    true if files.names_in(it).next().is_some() => Err(Errno::Enotempty),
                    true => Ok((it, files.directory_of(&name))),
                }
            })
        };
        if let Ok((file, directory)) = checked {
            self.files().forget_name(&name);
            FileIo::of(self).remove(file, directory).await;
        } else {
            FileIo::of(self).unlock_directory();
        }
        self.leave_kernel();
        checked.map(drop)
    }

    /// The names in a directory, which is read and so accessed.
    pub async fn list(&self, path: &str) -> Result<Vec<String>, Errno> {
        let inside = format!("{}/x", self.entry(path)?);
        self.enter_directory(inside.trim_start_matches('/')).await;
        let found = self.files().find(path);
        let found = found.map(|it| (it, self.files().is_directory(it)));
        if let Ok((directory, true)) = found {
            FileIo::of(self).note_read(directory).await;
        }
        self.leave_directory();
        match found? {
            (directory, true) => Ok(self.files().names_in(directory).map(str::to_string).collect()),
            _ => Err(Errno::Enotdir),
        }
    }

    /// What a path is.
    pub async fn status(&self, path: &str) -> Result<Status, Errno> {
        let name = self.entry(path)?;
        if name.is_empty() {
            // A mounted root is known, and no directory of the disk says where it is.
            self.begin_call().await;
            self.leave_kernel();
            return Ok(Status { size: 0, is_directory: true });
        }
        self.enter_directory(&name).await;
        let found = self.files().find(path);
        self.leave_directory();
        let file = found?;
        let mut files = self.files();
        let is_directory = files.is_directory(file);
        Ok(Status { size: if is_directory { 0 } else { files.inode(file).size }, is_directory })
    }

    /// Sets the times of a file to now (utimensat).
    pub async fn set_times(&self, file: &File) -> Result<(), Errno> {
        let Kind::File(index) = file.kind else { return Err(Errno::Einval) };
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        FileIo::of(self).set_times(index).await;
        self.leave_kernel();
        Ok(())
    }

    /// Whether the directory is there in which a path is or would be.
    pub fn has_directory(&self, path: &str) -> Result<(), Errno> {
        let name = self.entry(path)?;
        self.files().strict_directory_of(&name).map(drop)
    }

    fn entry(&self, path: &str) -> Result<String, Errno> {
        let mut storage = self.storage();
        let files = storage.mounted().ok_or(Errno::Enoent)?;
        files.entry(path).map(str::to_string).ok_or(Errno::Enoent)
    }

    async fn begin_call(&self) {
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
    }

    /// Enters a system call that looks for a name.
    async fn enter_directory(&self, name: &str) {
        self.begin_call().await;
        let io = FileIo::of(self);
        io.lock_directory().await;
        io.read_directory_of(name).await;
    }

    fn leave_directory(&self) {
        FileIo::of(self).unlock_directory();
        self.leave_kernel();
    }
}
