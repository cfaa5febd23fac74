//! fallocate: room for a file before anything is written.
//!
//! The blocks are there and without contents, also on kernels that write new blocks at once.

use super::XfsIo;
use crate::file::Errno;
use cache::PAGE;
use fs::key;
use fs::xfs::Purpose;
use std::ops::Range;

impl XfsIo<'_> {
    /// Sets room aside for a range of bytes.
    pub async fn set_aside(
        &self,
        index: usize,
        bytes: Range<u64>,
        keeps_size: bool,
    ) -> Result<(), Errno> {
        let end = bytes.end.div_ceil(PAGE);
        let mut at = bytes.start / PAGE;
        while at < end {
            let needs_place = self.xfs().demand(index, at..end)?;
            if needs_place {
                self.place_for(index, at, Purpose::Reserve).await;
            }
            let found = self.files().inode(index).find(at);
            at += found.ok_or(Errno::Enospc)?.length;
        }
        let now = self.tick();
        self.xfs().note_reserved(index, (!keeps_size).then_some(bytes.end), now);
        Ok(())
    }

    /// Gives up some blocks of a file, with the pages.
    pub async fn make_hole(&self, index: usize, blocks: Range<u64>) {
        self.read_free_space(0).await;
        self.cache().discard(key(index, blocks.start)..key(index, blocks.end));
        let now = self.tick();
        self.xfs().make_hole(index, blocks, now);
    }
}
