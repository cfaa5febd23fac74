//! fallocate: room for a file before anything is written.
//!
//! The blocks are there and without contents, also on kernels that write new blocks at once.

use super::changes::Change;
use super::placing::Purpose;
use crate::buffered::PAGE;
use crate::file::Errno;
use crate::task::Task;

impl Task {
    /// Sets room aside for the first bytes of a file.
    pub(in crate::filesystem) async fn set_aside_on_xfs(
        &self,
        index: usize,
        length: u64,
        keeps_size: bool,
    ) -> Result<(), Errno> {
        let end = length.div_ceil(PAGE);
        let mut at = 0;
        while at < end {
            if self.world().xfs().demand(index, at..end) {
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
            inode.size = inode.size.max(length);
            inode.disk_size = inode.disk_size.max(length);
        }
        fs.change_inode(index, Change::Data);
        Ok(())
    }
}
