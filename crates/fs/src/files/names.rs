//! Names and directories.
//!
// Divergence: a file may be made in a directory that is not there; it then lies in the root
// directory.

use super::Files;
use crate::Errno;
use crate::inode::Inode;
use block::ContextId;
use std::collections::{BTreeMap, BTreeSet};

/// The root directory has the number that stands for the disk among files.
pub const ROOT: usize = 0;

/// Which names there are.
#[derive(Default)]
pub(super) struct Names {
    /// Files by name.
    all: BTreeMap<String, usize>,
    /// Which of them are directories.
    directories: BTreeSet<usize>,
    /// Somebody looks into the directory, and who else wants to.
    lock: Option<Vec<ContextId>>,
}

impl Files {
    /// A new file or directory has a name from now on; the answer is its number.
    pub fn add(&mut self, name: &str, inode: Inode) -> usize {
        self.inodes.push(inode);
        let file = self.inodes.len() - 1;
        self.names.all.insert(name.to_string(), file);
        file
    }

    /// The file or directory of a path, by number.
    ///
    /// # Errors
    /// `Enoent` where there is none, `Enotdir` where something on the way is a file.
    pub fn find(&self, path: &str) -> Result<usize, Errno> {
        let name = self.entry(path).ok_or(Errno::Enoent)?;
        if name.is_empty() {
            return Ok(ROOT);
        }
        match self.names.all.get(name) {
            Some(file) => Ok(*file),
            None => self.strict_directory_of(name).and(Err(Errno::Enoent)),
        }
    }

    /// The name behind the mount point; empty for the root directory.
    pub fn entry<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.mount.point.as_str())?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_matches('/'))
    }

    /// The directory that a name is in, which must be there.
    ///
    /// # Errors
    /// `Enoent` where it is not, `Enotdir` where it is a file.
    pub fn strict_directory_of(&self, name: &str) -> Result<usize, Errno> {
        let Some((directory, _)) = name.rsplit_once('/') else { return Ok(ROOT) };
        let directory = *self.names.all.get(directory).ok_or(Errno::Enoent)?;
        if self.is_directory(directory) { Ok(directory) } else { Err(Errno::Enotdir) }
    }

    /// The directory that a name is in, or the root directory.
    pub fn directory_of(&self, name: &str) -> usize {
        self.strict_directory_of(name).unwrap_or(ROOT)
    }

    /// Whether it is a directory.
    pub fn is_directory(&self, file: usize) -> bool {
        file == ROOT || self.names.directories.contains(&file)
    }

    /// The names in a directory.
    pub fn names_in(&self, directory: usize) -> impl Iterator<Item = &str> {
        let is_in = move |name: &&String| self.directory_of(name) == directory;
        self.names.all.keys().filter(is_in).map(|name| name.rsplit('/').next().unwrap_or_default())
    }

    /// The name of a file below the mount point.
    pub fn name<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.mount.point.as_str())?.strip_prefix('/')?;
        (!rest.is_empty()).then_some(rest)
    }

    /// The file or directory of a name, by number.
    pub fn find_name(&self, name: &str) -> Option<usize> {
        self.names.all.get(name).copied()
    }

    /// A name is in no directory any more.
    pub fn forget_name(&mut self, name: &str) {
        self.names.all.remove(name);
    }

    /// A file is a directory from now on.
    pub fn note_directory(&mut self, file: usize) {
        self.names.directories.insert(file);
    }

    /// A directory is none any more.
    pub fn forget_directory(&mut self, file: usize) {
        self.names.directories.remove(&file);
    }

    /// A task wants to look into directories alone; false if it has to wait, and is told when it
    /// may try again.
    pub fn lock_directories(&mut self, task: ContextId) -> bool {
        match &mut self.names.lock {
            Some(waiting) => {
                waiting.push(task);
                false
            }
            lock => {
                *lock = Some(Vec::new());
                true
            }
        }
    }

    /// Nobody looks into directories; answers with who wants to.
    pub fn unlock_directories(&mut self) -> Vec<ContextId> {
        self.names.lock.take().unwrap_or_default()
    }

    /// A file gets another name; of a directory, what is in it as well.
    pub fn rename(&mut self, from: &str, to: &str) {
        let inside = format!("{from}/");
        let moved: Vec<String> = self
            .names
            .all
            .keys()
            .filter(|it| **it == from || it.starts_with(&inside))
            .cloned()
            .collect();
        for name in moved {
            let file = self.names.all.remove(&name).expect("it was just there");
            self.names.all.insert(format!("{to}{}", &name[from.len()..]), file);
        }
    }

    /// What can be done about renaming: the file, its directory, the other directory, what is
    /// replaced.
    ///
    /// # Errors
    /// What rename(2) says of names that do not fit.
    pub fn check_rename(&self, from: &str, to: &str) -> Result<Move, Errno> {
        let file = *self.names.all.get(from).ok_or(Errno::Enoent)?;
        let (old, new) = (self.strict_directory_of(from)?, self.strict_directory_of(to)?);
        if to.starts_with(&format!("{from}/")) {
            return Err(Errno::Einval);
        }
        let replaced = self.names.all.get(to).copied();
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
pub struct Move {
    /// The file.
    pub file: usize,
    /// The directory in which it was.
    pub old: usize,
    /// The directory in which it is to be.
    pub new: usize,
    /// What had the name before.
    pub replaced: Option<usize>,
}
