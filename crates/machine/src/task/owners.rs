//! What the world owns, as a task in the kernel gets at it.

use super::Task;
use crate::storage::Storage;
use crate::world::World;
use block::{Action, RequestQueue};
use cache::PageCache;
use fs::{Ext4, Files, Format, Xfs};
use std::cell::RefMut;

impl Task {
    /// The world, which nobody else may have at the moment.
    pub(crate) fn world(&self) -> RefMut<'_, World> {
        self.world.borrow_mut()
    }

    /// Ticks since time zero.
    pub(crate) fn tick(&self) -> u64 {
        self.world().tick()
    }

    /// What is between system calls and the disk.
    pub(crate) fn storage(&self) -> RefMut<'_, Storage> {
        RefMut::map(self.world(), World::storage)
    }

    /// The block layer.
    pub(crate) fn queue(&self) -> RefMut<'_, RequestQueue> {
        RefMut::map(self.world(), World::queue)
    }

    /// The page cache.
    pub(crate) fn cache(&self) -> RefMut<'_, PageCache> {
        RefMut::map(self.world(), |world| world.cache().acts(self.id))
    }

    /// Tells of pages that were just read or written, and because of whom.
    pub(crate) fn tell_pages(&self) {
        let mut world = self.world();
        for ((why, by), pages) in world.cache().take_met() {
            world.tell_asked(self.id, || Action::Pages { why, by, pages });
        }
    }

    /// What is known of files.
    pub(crate) fn files(&self) -> RefMut<'_, Files> {
        RefMut::map(self.world(), World::files)
    }

    /// The ext4 that is mounted.
    pub(crate) fn ext4(&self) -> RefMut<'_, Ext4> {
        RefMut::map(self.world(), World::ext4)
    }

    /// The XFS that is mounted.
    pub(crate) fn xfs(&self) -> RefMut<'_, Xfs> {
        RefMut::map(self.world(), |world| {
            let xfs = world.xfs();
            xfs.log.acts(self.id);
            xfs
        })
    }

    /// Which file system is mounted.
    pub(crate) fn format(&self) -> Format {
        self.files().format()
    }
}
