//! Directories, and what changes which names are in them: make, list, rename, remove.
//!
// Divergence: a file may be made in a directory that is not there; it then lies in the root directory.

use super::{Files, Format};
use crate::file::{Errno, File, Kind};
use crate::task::Task;
use fs::inode::Inode;

/// The root directory has the number that stands for the disk among files.
pub(super) const ROOT: usize = 0;

/// What stat says of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Bytes; of a directory zero.
    pub size: u64,
    /// Whether it is a directory.
    pub is_directory: bool,
}

impl Files {
    /// A new file or directory has a name from now on; the answer is its number.
    pub(super) fn add(&mut self, name: &str, inode: Inode) -> usize {
        self.inodes.push(inode);
        let file = self.inodes.len() - 1;
        self.names.insert(name.to_string(), file);
        file
    }

    /// The file or directory of a path, by number.
    fn find(&self, path: &str) -> Result<usize, Errno> {
        let name = self.entry(path).ok_or(Errno::Enoent)?;
        if name.is_empty() {
            return Ok(ROOT);
        }
        match self.names.get(name) {
            Some(file) => Ok(*file),
            None => self.strict_directory_of(name).and(Err(Errno::Enoent)),
        }
    }

    /// The name behind the mount point; empty for the root directory.
    fn entry<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.mount.point.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_matches('/'))
    }

    /// The directory that a name is in, which must be there.
    fn strict_directory_of(&self, name: &str) -> Result<usize, Errno> {
        let Some((directory, _)) = name.rsplit_once('/') else { return Ok(ROOT) };
        let directory = *self.names.get(directory).ok_or(Errno::Enoent)?;
        if self.is_directory(directory) { Ok(directory) } else { Err(Errno::Enotdir) }
    }

    /// The directory that a name is in, or the root directory.
    pub(super) fn directory_of(&self, name: &str) -> usize {
        self.strict_directory_of(name).unwrap_or(ROOT)
    }

    /// Whether it is a directory.
    pub(super) fn is_directory(&self, file: usize) -> bool {
        file == ROOT || self.directories.contains(&file)
    }

    /// The names in a directory.
    pub(super) fn names_in(&self, directory: usize) -> impl Iterator<Item = &str> {
        let is_in = move |name: &&String| self.directory_of(name) == directory;
        self.names.keys().filter(is_in).map(|name| name.rsplit('/').next().unwrap_or_default())
    }

    /// A file gets another name; of a directory, what is in it as well.
    fn rename(&mut self, from: &str, to: &str) {
        let inside = format!("{from}/");
        let moved: Vec<String> = self
            .names
            .keys()
            .filter(|it| **it == from || it.starts_with(&inside))
            .cloned()
            .collect();
        for name in moved {
            let file = self.names.remove(&name).expect("it was just there");
            self.names.insert(format!("{to}{}", &name[from.len()..]), file);
        }
    }

    /// What can be done about renaming: the file, its directory, the other directory, what is replaced.
    fn check_rename(&self, from: &str, to: &str) -> Result<Move, Errno> {
        let file = *self.names.get(from).ok_or(Errno::Enoent)?;
        let (old, new) = (self.strict_directory_of(from)?, self.strict_directory_of(to)?);
        if to.starts_with(&format!("{from}/")) {
            return Err(Errno::Einval);
        }
        let replaced = self.names.get(to).copied();
        match replaced.map(|it| (self.is_directory(file), self.is_directory(it))) {
            Some((false, true)) => return Err(Errno::Eisdir),
            Some((true, false)) => return Err(Errno::Enotdir),
            Some((true, true)) if self.names_in(replaced.unwrap_or(ROOT)).next().is_some() => {
                return Err(Errno::Enotempty);
            }
            _ => {}
        }
        Ok(Move { file, old, new, replaced })
    }
}

/// A file that gets another name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub file: usize,
    /// The directories in which it was and is to be.
    pub old: usize,
    pub new: usize,
    /// What had the name before.
    pub replaced: Option<usize>,
}

impl Task {
    /// Makes a directory.
    pub async fn mkdir(&self, path: &str) -> Result<(), Errno> {
        let name = self.entry(path)?;
        self.enter_directory(&name).await;
        let checked = {
            let mut world = self.world();
            let files = world.files();
            match files.names.contains_key(&name) || name.is_empty() {
                true => Err(Errno::Eexist),
                false => files.strict_directory_of(&name),
            }
        };
        let made = match checked {
            Ok(directory) => match self.format() {
                Format::Ext4 => Ok(self.make_directory(&name, directory).await),
                Format::Xfs => self.make_directory_of_xfs(&name, directory).await,
            },
            Err(errno) => Err(errno),
        };
        if let Ok(made) = made {
            self.world().files().directories.insert(made);
        }
        self.leave_directory();
        made.map(drop)
    }

    /// Gives a file or directory another name, in the place of what had it.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        let (from, to) = (self.entry(from)?, self.entry(to)?);
        self.enter_directory(&from).await;
        self.read_directory_of(&to).await;
        let checked = self.world().files().check_rename(&from, &to);
        if let Ok(moved) = checked
            && Some(moved.file) != moved.replaced
        {
            self.world().files().rename(&from, &to);
            match self.format() {
                Format::Ext4 => self.rename_on_ext4(moved).await,
                Format::Xfs => self.rename_on_xfs(moved),
            }
        }
        self.leave_directory();
        checked.map(drop)
    }

    /// Removes a directory that is empty.
    pub async fn rmdir(&self, path: &str) -> Result<(), Errno> {
        let name = self.entry(path)?;
        self.enter_directory(&name).await;
        let checked = {
            let mut world = self.world();
            let files = world.files();
            files.names.get(&name).copied().ok_or(Errno::Enoent).and_then(|it| {
                match files.is_directory(it) {
                    false => Err(Errno::Enotdir),
                    true if files.names_in(it).next().is_some() => Err(Errno::Enotempty),
                    true => Ok((it, files.directory_of(&name))),
                }
            })
        };
        if let Ok((file, directory)) = checked {
            self.world().files().names.remove(&name);
            self.remove(file, directory).await;
        } else {
            self.unlock_directory();
        }
        self.leave_kernel();
        checked.map(drop)
    }

    /// The names in a directory, which is read and so accessed.
    pub async fn list(&self, path: &str) -> Result<Vec<String>, Errno> {
        let inside = format!("{}/x", self.entry(path)?);
        self.enter_directory(inside.trim_start_matches('/')).await;
        let found = self.find(path);
        if let Ok(directory) = found
            && self.world().files().is_directory(directory)
        {
            self.note_read(directory).await;
        }
        self.leave_directory();
        let mut world = self.world();
        match found {
            Ok(directory) if world.files().is_directory(directory) => {
                Ok(world.files().names_in(directory).map(str::to_string).collect())
            }
            Ok(_) => Err(Errno::Enotdir),
            Err(errno) => Err(errno),
        }
    }

    /// What a path is.
    pub async fn status(&self, path: &str) -> Result<Status, Errno> {
        let name = self.entry(path)?;
        self.enter_directory(&name).await;
        let found = self.find(path);
        self.leave_directory();
        let mut world = self.world();
        let files = world.files();
        let file = found?;
        let is_directory = files.is_directory(file);
        Ok(Status { size: if is_directory { 0 } else { files.inode(file).size }, is_directory })
    }

    /// Sets the times of a file to now (utimensat).
    pub async fn set_times(&self, file: &File) -> Result<(), Errno> {
        let Kind::File(index) = file.kind else { return Err(Errno::Einval) };
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let now = self.world().tick();
        match self.format() {
            Format::Ext4 => self.change_modified(index, now).await,
            Format::Xfs => self.log_modified(index).await,
        }
        self.world().files().inode(index).accessed = Some(now);
        self.leave_kernel();
        Ok(())
    }

    /// Whether the directory is there in which a path is or would be.
    pub fn has_directory(&self, path: &str) -> Result<(), Errno> {
        let name = self.entry(path)?;
        self.world().files().strict_directory_of(&name).map(drop)
    }

    fn entry(&self, path: &str) -> Result<String, Errno> {
        let mut world = self.world();
        let files = world.fs.as_mut().ok_or(Errno::Enoent)?.files_mut();
        files.entry(path).map(str::to_string).ok_or(Errno::Enoent)
    }

    fn find(&self, path: &str) -> Result<usize, Errno> {
        self.world().files().find(path)
    }

    /// Enters a system call that looks for a name.
    async fn enter_directory(&self, name: &str) {
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        self.lock_directory().await;
        self.read_directory_of(name).await;
    }

    fn leave_directory(&self) {
        self.unlock_directory();
        self.leave_kernel();
    }

    /// Reads the directories on the way to a name.
    pub(super) async fn read_directory_of(&self, name: &str) {
        if self.format() == Format::Ext4 {
            let directory = self.world().files().directory_of(name);
            if directory != ROOT {
                self.read_directory(ROOT).await;
            }
            self.read_directory(directory).await;
        }
    }
}
