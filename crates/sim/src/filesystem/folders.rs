//! Folders, and what changes which names are in them: make, list, rename, remove.
//!
// Divergence: a file may be made in a folder that is not there; it then lies in the root folder.

use super::inode::Inode;
use super::{Files, Format};
use crate::file::{Errno, File, Kind};
use crate::task::Task;

/// The root folder has the number that stands for the disk among files.
pub(super) const ROOT: usize = 0;

/// What stat says of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Bytes; of a folder zero.
    pub size: u64,
    /// Whether it is a folder.
    pub is_folder: bool,
}

impl Files {
    /// A new file or folder has a name from now on; the answer is its number.
    pub(super) fn add(&mut self, name: &str, inode: Inode) -> usize {
        self.inodes.push(inode);
        let file = self.inodes.len() - 1;
        self.names.insert(name.to_string(), file);
        file
    }

    /// The file or folder of a path, by number.
    fn find(&self, path: &str) -> Result<usize, Errno> {
        let name = self.entry(path).ok_or(Errno::Enoent)?;
        if name.is_empty() {
            return Ok(ROOT);
        }
        match self.names.get(name) {
            Some(file) => Ok(*file),
            None => self.strict_folder_of(name).and(Err(Errno::Enoent)),
        }
    }

    /// The name behind the mount point; empty for the root folder.
    fn entry<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.mount.point.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_matches('/'))
    }

    /// The folder that a name is in, which must be there.
    fn strict_folder_of(&self, name: &str) -> Result<usize, Errno> {
        let Some((folder, _)) = name.rsplit_once('/') else { return Ok(ROOT) };
        let folder = *self.names.get(folder).ok_or(Errno::Enoent)?;
        if self.is_folder(folder) { Ok(folder) } else { Err(Errno::Enotdir) }
    }

    /// The folder that a name is in, or the root folder.
    pub(super) fn folder_of(&self, name: &str) -> usize {
        self.strict_folder_of(name).unwrap_or(ROOT)
    }

    /// Whether it is a folder.
    pub(super) fn is_folder(&self, file: usize) -> bool {
        file == ROOT || self.folders.contains(&file)
    }

    /// The names in a folder.
    pub(super) fn names_in(&self, folder: usize) -> impl Iterator<Item = &str> {
        let is_in = move |name: &&String| self.folder_of(name) == folder;
        self.names.keys().filter(is_in).map(|name| name.rsplit('/').next().unwrap_or_default())
    }

    /// A file gets another name; of a folder, what is in it as well.
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

    /// What can be done about renaming: the file, its folder, the other folder, what is replaced.
    fn check_rename(&self, from: &str, to: &str) -> Result<Move, Errno> {
        let file = *self.names.get(from).ok_or(Errno::Enoent)?;
        let (old, new) = (self.strict_folder_of(from)?, self.strict_folder_of(to)?);
        if to.starts_with(&format!("{from}/")) {
            return Err(Errno::Einval);
        }
        let replaced = self.names.get(to).copied();
        match replaced.map(|it| (self.is_folder(file), self.is_folder(it))) {
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
    /// The folders in which it was and is to be.
    pub old: usize,
    pub new: usize,
    /// What had the name before.
    pub replaced: Option<usize>,
}

impl Task {
    /// Makes a folder.
    pub async fn mkdir(&self, path: &str) -> Result<(), Errno> {
        let name = self.entry(path)?;
        self.enter_folder(&name).await;
        let checked = {
            let mut world = self.world();
            let files = world.files();
            match files.names.contains_key(&name) || name.is_empty() {
                true => Err(Errno::Eexist),
                false => files.strict_folder_of(&name),
            }
        };
        let made = match checked {
            Ok(folder) => match self.format() {
                Format::Ext4 => Ok(self.make_folder(&name, folder).await),
                Format::Xfs => self.make_folder_of_xfs(&name, folder).await,
            },
            Err(errno) => Err(errno),
        };
        if let Ok(made) = made {
            self.world().files().folders.insert(made);
        }
        self.leave_folder();
        made.map(drop)
    }

    /// Gives a file or folder another name, in the place of what had it.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        let (from, to) = (self.entry(from)?, self.entry(to)?);
        self.enter_folder(&from).await;
        self.read_folder_of(&to).await;
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
        self.leave_folder();
        checked.map(drop)
    }

    /// Removes a folder that is empty.
    pub async fn rmdir(&self, path: &str) -> Result<(), Errno> {
        let name = self.entry(path)?;
        self.enter_folder(&name).await;
        let checked = {
            let mut world = self.world();
            let files = world.files();
            files.names.get(&name).copied().ok_or(Errno::Enoent).and_then(|it| {
                match files.is_folder(it) {
                    false => Err(Errno::Enotdir),
                    true if files.names_in(it).next().is_some() => Err(Errno::Enotempty),
                    true => Ok((it, files.folder_of(&name))),
                }
            })
        };
        if let Ok((file, folder)) = checked {
            self.world().files().names.remove(&name);
            self.remove(file, folder).await;
        } else {
            self.unlock_folder();
        }
        self.leave_kernel();
        checked.map(drop)
    }

    /// The names in a folder, which is read and so accessed.
    pub async fn list(&self, path: &str) -> Result<Vec<String>, Errno> {
        let inside = format!("{}/x", self.entry(path)?);
        self.enter_folder(inside.trim_start_matches('/')).await;
        let found = self.find(path);
        if let Ok(folder) = found
            && self.world().files().is_folder(folder)
        {
            self.note_read(folder).await;
        }
        self.leave_folder();
        let mut world = self.world();
        match found {
            Ok(folder) if world.files().is_folder(folder) => {
                Ok(world.files().names_in(folder).map(str::to_string).collect())
            }
            Ok(_) => Err(Errno::Enotdir),
            Err(errno) => Err(errno),
        }
    }

    /// What a path is.
    pub async fn status(&self, path: &str) -> Result<Status, Errno> {
        let name = self.entry(path)?;
        self.enter_folder(&name).await;
        let found = self.find(path);
        self.leave_folder();
        let mut world = self.world();
        let files = world.files();
        let file = found?;
        let is_folder = files.is_folder(file);
        Ok(Status { size: if is_folder { 0 } else { files.inode(file).size }, is_folder })
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

    /// Whether the folder is there in which a path is or would be.
    pub fn has_folder(&self, path: &str) -> Result<(), Errno> {
        let name = self.entry(path)?;
        self.world().files().strict_folder_of(&name).map(drop)
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
    async fn enter_folder(&self, name: &str) {
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        self.lock_folder().await;
        self.read_folder_of(name).await;
    }

    fn leave_folder(&self) {
        self.unlock_folder();
        self.leave_kernel();
    }

    /// Reads the folders on the way to a name.
    pub(super) async fn read_folder_of(&self, name: &str) {
        if self.format() == Format::Ext4 {
            let folder = self.world().files().folder_of(name);
            if folder != ROOT {
                self.read_folder(ROOT).await;
            }
            self.read_folder(folder).await;
        }
    }
}
