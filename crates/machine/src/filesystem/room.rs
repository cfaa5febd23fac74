//! fallocate(2): room that a file gets before anything is written there, and holes that are made in
//! it.

use super::Format;
use super::ranges::RangeSync;
use crate::buffered::PAGE;
use crate::file::{Errno, File, Kind};
use crate::task::Task;
use std::ops::Range;

impl Task {
    /// Sets room aside for a range of bytes; the file grows to its end, unless that is to be kept.
    pub async fn fallocate(
        &self,
        file: &File,
        bytes: Range<u64>,
        keeps_size: bool,
    ) -> Result<(), Errno> {
        let Kind::File(index) = file.kind else { return Err(Errno::Eopnotsupp) };
        self.enter_kernel().await;
        self.compute(self.costs().system_call).await;
        let result = match self.format() {
            Format::Ext4 => self.set_aside(index, bytes, keeps_size).await,
            Format::Xfs => self.set_aside_on_xfs(index, bytes, keeps_size).await,
        };
        self.leave_kernel();
        result
    }

    /// Gives up the blocks that lie wholly in a range of bytes, without a change of the size
    /// (FALLOC_FL_PUNCH_HOLE). What is dirty there is written first.
    // Divergence: the parts of blocks at its ends are not zeroed.
    pub async fn punch_hole(&self, file: &File, bytes: Range<u64>) -> Result<(), Errno> {
        let Kind::File(index) = file.kind else { return Err(Errno::Eopnotsupp) };
        let all = RangeSync { waits_before: true, writes: true, waits_after: true };
        self.sync_range(file, bytes.clone(), all).await;
        self.enter_kernel().await;
        let blocks = bytes.start.div_ceil(PAGE)..bytes.end / PAGE;
        if !blocks.is_empty() {
            match self.format() {
                Format::Ext4 => self.make_hole(index, blocks).await,
                Format::Xfs => self.make_hole_on_xfs(index, blocks).await,
            }
        }
        self.leave_kernel();
        Ok(())
    }
}
