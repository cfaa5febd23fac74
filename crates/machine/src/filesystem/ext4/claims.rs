//! Whether there is room for what a program writes: it is told when it writes, not when the pages go
//! to the disk.
//!
//! A page that becomes dirty has a block set aside, unless it has one; what wants places at once gets
//! what is left. What was freed counts as room at once, and can be used when its transaction is on
//! the disk.

use super::Ext4;
use crate::file::Errno;
use crate::task::Task;

impl Task {
    /// Sets a block aside for a page that is to become dirty, unless it has one.
    pub(in crate::filesystem) fn reserve_on_ext4(
        &self,
        index: usize,
        page: u64,
    ) -> Result<(), Errno> {
        let mut world = self.world();
        let fs = world.fs();
        if fs.inode(index).is_mapped(page) || fs.delayed.find(index, page).is_some() {
            return Ok(());
        }
        fs.grantable(1).ok_or(Errno::Enospc)?;
        fs.delayed.add(index, page..page + 1);
        Ok(())
    }

    /// Commits if something was freed that cannot be used yet; false if nothing was. No handle may be
    /// open.
    pub(super) async fn can_free(&self) -> bool {
        let is_pending = self.world().fs().space.is_pending();
        if is_pending {
            self.force_commit().await;
        }
        is_pending
    }
}

impl Ext4 {
    /// How many of so many blocks a file may be given now, if any. Observed on 6.12: half of them,
    /// and half of that, until there is room.
    pub(super) fn grantable(&self, wanted: u64) -> Option<u64> {
        let room = self.space.room().saturating_sub(self.delayed.blocks());
        let mut length = wanted;
        while length > room {
            length /= 2;
        }
        (length > 0).then_some(length)
    }
}
