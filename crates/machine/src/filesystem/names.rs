//! Files by name: looking them up, truncate, remove.

use super::FileIo;
use crate::file::Errno;
use crate::tasks::Wait;
use fs::Format;
use fs::files::{Move, ROOT};
use std::future::poll_fn;
use std::task::Poll;

/// What is wanted of a name that is looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// A file is made if there is none.
    pub creates: bool,
    /// The file is to be empty.
    pub truncates: bool,
    /// It is to be written, and so no directory.
    pub writes: bool,
}

impl FileIo<'_> {
    /// A file or directory loses its name, in a directory that is locked, which others may use
    /// then, and what it has.
    pub async fn remove(&self, file: usize, directory: usize) {
        match self.format() {
            Format::Ext4 => self.on_ext4().remove_name(file, directory).await,
            Format::Xfs => self.on_xfs().remove_name(file, directory),
        }
        self.unlock_directory();
        self.lost_name(file).await;
    }

    /// A file or directory has another name. What had it before has none.
    pub async fn rename(&self, moved: Move) {
        match self.format() {
            Format::Ext4 => self.on_ext4().rename(moved).await,
            Format::Xfs => self.on_xfs().rename(moved),
        }
        if let Some(replaced) = moved.replaced {
            self.lost_name(replaced).await;
        }
    }

    /// A file has no name any more. What it has goes, or stays until nobody has it open.
    async fn lost_name(&self, file: usize) {
        let is_open = {
            let mut files = self.files();
            let inode = files.inode(file);
            inode.is_unlinked = true;
            inode.opens > 0
        };
        if !is_open {
            self.give_inode_up(file).await;
        }
    }

    /// What a file without name has goes.
    pub async fn give_inode_up(&self, file: usize) {
        match self.format() {
            Format::Ext4 => self.on_ext4().give_inode_up(file).await,
            Format::Xfs => self.on_xfs().give_inode_up(file).await,
        }
    }

    /// Looks a name up to open the file, and makes it if that is asked for.
    pub async fn look_up(&self, name: &str, wanted: Wanted) -> Result<usize, Errno> {
        let format = self.format();
        self.lock_directory().await;
        self.read_directory_of(name).await;
        let known = self.files().find_name(name);
        let found = match known {
            Some(file) if wanted.writes && self.files().is_directory(file) => Err(Errno::Eisdir),
            Some(file) => Ok(file),
            None if wanted.creates => match format {
                Format::Ext4 => Ok(self.on_ext4().create(name).await),
                Format::Xfs => self.on_xfs().create(name).await,
            },
            None => Err(Errno::Enoent),
        };
        self.unlock_directory();
        let file = found?;
        self.files().inode(file).opens += 1;
        if wanted.truncates {
            self.lock_contents(file).await;
            // ext4 does so with an empty one too (observed on 6.1 and 7.3).
            let is_empty = self.files().inode(file).size == 0;
            if !is_empty || known.is_some() && format == Format::Ext4 {
                self.change_size(file, 0).await;
            }
            self.unlock_contents(file);
        }
        if format == Format::Ext4 {
            self.on_ext4().note_mount().await;
        }
        Ok(file)
    }

    /// Makes a file shorter or longer.
    pub async fn set_size(&self, file: usize, size: u64) {
        self.lock_contents(file).await;
        self.change_size(file, size).await;
        self.unlock_contents(file);
    }

    async fn change_size(&self, file: usize, size: u64) {
        match self.format() {
            Format::Ext4 => self.on_ext4().set_size(file, size).await,
            Format::Xfs => self.on_xfs().set_size(file, size).await,
        }
    }

    /// Waits until nobody else looks into directories.
    pub async fn lock_directory(&self) {
        poll_fn(|_| {
            let mut world = self.world();
            match world.files().lock_directories(self.id()) {
                true => Poll::Ready(()),
                false => self.wait(&mut world, Wait::Directory),
            }
        })
        .await;
    }

    /// Lets others look into directories.
    pub fn unlock_directory(&self) {
        let mut world = self.world();
        let waiting = world.files().unlock_directories();
        for task in waiting {
            world.wake_from(task);
        }
    }

    /// Reads the directories on the way to a name.
    pub async fn read_directory_of(&self, name: &str) {
        if self.format() == Format::Ext4 {
            let directory = self.files().directory_of(name);
            if directory != ROOT {
                self.on_ext4().read_directory(ROOT).await;
            }
            self.on_ext4().read_directory(directory).await;
        }
    }
}
