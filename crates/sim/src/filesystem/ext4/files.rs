//! Files by name: open, create, truncate, remove.
//!
// Divergence: one folder; a name with slashes is a file in it, and folders need not be made. The
// index of a large folder is not modelled: it has one block.

use super::handles::CHANGE;
use super::inode::Inode;
use super::{all_pages, key};
use crate::buffered::PAGE;
use crate::file::{Errno, File, Kind, OpenFlags};
use crate::page_cache::disk::FILE_PAGES;
use crate::task::Task;
use crate::world::{Wait, World};
use std::future::poll_fn;
use std::task::Poll;

/// Blocks that creating, truncating and removing a file may change.
/// Observed on 6.12: jbd2_handle_start.
const CREATE: u64 = 40;
const TRUNCATE: u64 = 33;
const REMOVE: u64 = 25;

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
            fs.name(path).ok_or(Errno::Enoent)?.to_string()
        };
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let result = self.look_up(&name, creation).await;
        self.leave_kernel();
        let file = result?;
        let mut world = self.world();
        let device = world.readahead_allowance();
        let number = world.cache.open(self.id(), device, key(file, 0), creation.writes);
        world.fs().inode(file).writers += u32::from(creation.writes);
        Ok(File { kind: Kind::File(file), number, flags })
    }

    /// The size of a file, or of the disk.
    pub fn size(&self, file: &File) -> u64 {
        match file.kind {
            Kind::File(index) => self.world().fs().inode(index).size,
            Kind::Disk => self.disk().capacity.0,
            Kind::Zero | Kind::Null => 0,
        }
    }

    /// Whether there is a file of this name, and how large it is.
    pub fn stat(&self, path: &str) -> Option<u64> {
        let mut world = self.world();
        let fs = world.fs.as_mut()?;
        let file = *fs.names.get(fs.name(path)?)?;
        Some(fs.inode(file).size)
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

    /// Takes a file out of its folder. What is open stays until it is closed.
    // Divergence: its blocks are free at once, also while it is open.
    pub async fn unlink(&self, path: &str) -> Result<(), Errno> {
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let found = {
            let mut world = self.world();
            let fs = world.fs.as_mut().ok_or(Errno::Enoent)?;
            let name = fs.name(path).ok_or(Errno::Enoent)?.to_string();
            fs.names.remove(&name)
        };
        let result = match found {
            Some(file) => {
                self.remove(file).await;
                Ok(())
            }
            None => Err(Errno::Enoent),
        };
        self.leave_kernel();
        result
    }

    async fn look_up(&self, name: &str, creation: Creation) -> Result<usize, Errno> {
        let folder = self.world().fs().layout.root_directory();
        self.lock_folder().await;
        self.read_metadata(folder).await;
        let known = self.world().fs().names.get(name).copied();
        let found = match known {
            Some(file) => Ok(file),
            None if creation.creates => Ok(self.create(name, folder).await),
            None => Err(Errno::Enoent),
        };
        self.unlock_folder();
        let file = found?;
        if creation.truncates && self.world().fs().inode(file).size > 0 {
            self.set_size(file, 0).await;
        }
        self.note_mount().await;
        Ok(file)
    }

    async fn lock_folder(&self) {
        poll_fn(|_| {
            let mut world = self.world();
            match &mut world.fs().folder_lock {
                Some(waiting) => {
                    waiting.push(self.id());
                    self.wait(&mut world, Wait::Folder)
                }
                lock => {
                    *lock = Some(Vec::new());
                    Poll::Ready(())
                }
            }
        })
        .await;
    }

    fn unlock_folder(&self) {
        let mut world = self.world();
        let waiting = world.fs().folder_lock.take().unwrap_or_default();
        for task in waiting {
            world.wake_from(task);
        }
    }

    async fn create(&self, name: &str, folder: u64) -> usize {
        let (number, bitmap, descriptor, table) = {
            let mut world = self.world();
            let fs = world.fs();
            let number = fs.next_inode;
            fs.next_inode += 1;
            let (layout, group) = (&fs.layout, fs.layout.group_of_inode(number));
            let bitmap = layout.inode_bitmap(group);
            (number, bitmap, layout.descriptor(group), layout.table_block(number))
        };
        self.read_metadata(bitmap).await;
        let handle = self.begin_handle(CREATE).await;
        for block in [bitmap, descriptor, table, folder] {
            self.change(block).await;
        }
        let transaction = handle.transaction;
        self.end_handle(handle);
        // The inode notes when it was made. // measured
        self.compute(self.costs().kernel_clock).await;
        let mut world = self.world();
        let now = world.tick();
        let fs = world.fs();
        fs.inodes.push(Inode::new(number, transaction, now));
        let file = fs.inodes.len() - 1;
        fs.names.insert(name.to_string(), file);
        file
    }

    /// The first file that is opened makes the superblock say where it is mounted.
    async fn note_mount(&self) {
        if std::mem::take(&mut self.world().fs().notes_mount) {
            let handle = self.begin_handle(CHANGE).await;
            let superblock = self.world().fs().layout.superblock();
            self.change(superblock).await;
            self.end_handle(handle);
        }
    }

    /// Makes a file shorter or longer.
    // Divergence: the last page of a file that ends within it is not zeroed on the disk.
    pub(super) async fn set_size(&self, file: usize, size: u64) {
        let (superblock, table, old) = {
            let mut world = self.world();
            let fs = world.fs();
            (fs.layout.superblock(), fs.table_block(file), fs.inode(file).size)
        };
        let now = self.world().tick();
        let handle = self.begin_handle(CHANGE + 1).await;
        self.change(table).await;
        if size < old {
            self.change(superblock).await;
        }
        {
            let mut world = self.world();
            let inode = world.fs().inode(file);
            (inode.size, inode.disk_size) = (size, size);
            (inode.changed_in, inode.data_changed_in) = (handle.transaction, handle.transaction);
            inode.modified = Some(now);
        }
        self.end_handle(handle);
        if size < old {
            self.free_from(file, size.div_ceil(PAGE)).await;
        }
    }

    /// Gives up the blocks of a file from one on, with the pages.
    async fn free_from(&self, file: usize, block: u64) {
        self.world().cache.discard(key(file, block)..all_pages(file).end);
        let handle = self.begin_handle(TRUNCATE).await;
        let (table, gone) = {
            let mut world = self.world();
            let fs = world.fs();
            let gone = fs.inode(file).truncate(block);
            if let Some((_, rest)) = fs.inode(file).kept.take() {
                fs.space.free_now(rest);
            }
            for blocks in &gone {
                fs.space.free_after(handle.transaction, blocks.clone());
            }
            (fs.table_block(file), gone)
        };
        for blocks in gone {
            self.change_maps(blocks.start / super::layout::GROUP).await;
        }
        let leaf = self.world().fs().inode(file).leaf.is_some();
        if leaf && self.world().fs().inode(file).extents() == 0 {
            self.tend_leaf(file, handle.transaction, super::inode::Leaf::Spare).await;
        }
        self.change(table).await;
        self.end_handle(handle);
    }

    async fn remove(&self, file: usize) {
        let (folder, table, superblock, bitmap, descriptor) = {
            let mut world = self.world();
            let fs = world.fs();
            let group = fs.layout.group_of_inode(fs.inodes[file].number);
            let (bitmap, descriptor) = (fs.layout.inode_bitmap(group), fs.layout.descriptor(group));
            let (folder, superblock) = (fs.layout.root_directory(), fs.layout.superblock());
            (folder, fs.table_block(file), superblock, bitmap, descriptor)
        };
        self.lock_folder().await;
        let handle = self.begin_handle(REMOVE).await;
        for block in [folder, table, superblock] {
            self.change(block).await;
        }
        self.end_handle(handle);
        self.unlock_folder();
        self.free_from(file, 0).await;
        let handle = self.begin_handle(CHANGE).await;
        self.change(bitmap).await;
        self.change(descriptor).await;
        self.end_handle(handle);
        let mut world = self.world();
        let inode = world.fs().inode(file);
        (inode.is_removed, inode.size, inode.disk_size) = (true, 0, 0);
        world.fs().dirty.retain(|(it, _)| *it != file);
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
        let fs = self.fs();
        let inode = fs.inode((first_page / FILE_PAGES) as usize);
        inode.writers -= u32::from(wrote);
        if inode.writers == 0
            && let Some((_, rest)) = inode.kept.take()
        {
            fs.space.free_now(rest);
        }
    }
}
