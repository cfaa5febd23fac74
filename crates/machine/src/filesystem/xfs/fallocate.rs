//! fallocate: room for a file before anything is written.
//!
//! The blocks are there and without contents, also on kernels that write new blocks at once.

use super::allocation::Purpose;
use super::changes::Change;
use crate::buffered::PAGE;
use crate::file::Errno;
use crate::filesystem::key;
use crate::task::Task;
use std::ops::Range;

impl Task {
    /// Sets room aside for a range of bytes.
    pub(in crate::filesystem) async fn set_aside_on_xfs(
        &self,
        index: usize,
        bytes: Range<u64>,
        keeps_size: bool,
    ) -> Result<(), Errno> {
        let end = bytes.end.div_ceil(PAGE);
        let mut at = bytes.start / PAGE;
        while at < end {
            let needs_place = self.world().xfs().demand(index, at..end)?;
            if needs_place {
                self.place_for(index, at, Purpose::Reserve).await;
            }
            let found = self.world().files().inode(index).find(at);
            at += found.ok_or(Errno::Enospc)?.length;
        }
        let mut world = self.world();
        let now = world.tick();
        let fs = world.xfs();
        fs.reserved.insert(index);
        let inode = fs.inode(index);
        inode.modified = Some(now);
        if !keeps_size {
            inode.size = inode.size.max(bytes.end);
            inode.disk_size = inode.disk_size.max(bytes.end);
        }
        fs.change_inode(index, Change::Data);
        Ok(())
    }

    /// Gives up some blocks of a file, with the pages.
    pub(in crate::filesystem) async fn make_hole_on_xfs(&self, index: usize, blocks: Range<u64>) {
        self.read_free_space(0).await;
        let mut world = self.world();
        world.cache.discard(key(index, blocks.start)..key(index, blocks.end));
        let now = world.tick();
        let fs = world.xfs();
        fs.punch(index, blocks);
        fs.inode(index).modified = Some(now);
        fs.change_inode(index, Change::Data);
    }
}
