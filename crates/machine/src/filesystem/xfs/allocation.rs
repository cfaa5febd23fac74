//! Room for pages of files: set aside when they are written to, given when they go to the disk.

use super::XfsIo;
use crate::file::Errno;
use crate::pages::pages_of;
use cache::PAGE;
use fs::files::{FlushOf, Written};
use fs::xfs::Purpose;
use fs::xfs::layout::Part;
use std::ops::Range;

impl XfsIo<'_> {
    /// Sets room aside for bytes that are about to be written; the answer is how far there is some.
    // Observed on 6.12: where there is none, everything that is dirty is written first.
    pub async fn reserve(&self, index: usize, bytes: Range<u64>) -> u64 {
        let pages = pages_of(bytes.start, bytes.end);
        self.lock_map(index).await;
        let mut reached = self.xfs().set_aside(index, pages.clone(), bytes.end);
        self.unlock_map(index);
        if reached == pages.start {
            self.xfs().trim_all();
            self.flush_all(FlushOf::Room).await;
            reached = self.xfs().set_aside(index, pages, bytes.end);
        }
        bytes.end.min(reached * PAGE)
    }

    /// Blocks have their contents, and the file is as long as it was meant to become.
    pub async fn convert(&self, written: &Written) {
        let Written { file, blocks, size } = written.clone();
        self.lock_map(file).await;
        self.xfs().finish_write(file, blocks, size);
        self.unlock_map(file);
    }

    /// The same for a direct write up to `end`, which may have made the file longer.
    pub async fn finish_write(&self, file: usize, pages: Range<u64>, end: u64) {
        self.lock_map(file).await;
        {
            let mut fs = self.xfs();
            let inode = fs.inode(file);
            inode.size = inode.size.max(end);
            fs.finish_write(file, pages, end);
        }
        self.unlock_map(file);
    }

    /// Gives what was set aside around a page its place, if nobody did meanwhile. Who writes to the
    /// file waits for that (observed on 6.12: xfs_ilock of dd beside another one's fdatasync).
    pub(super) async fn place_for(&self, file: usize, page: u64, purpose: Purpose) {
        self.lock_map(file).await;
        let mut is_placed = self.files().inode(file).is_mapped(page);
        while !is_placed {
            let wanted = self.xfs().group_for(file, page);
            let group = self.lock_group(wanted, true).await;
            self.read_free_space(group).await;
            is_placed = self.xfs().place(file, page, group, purpose);
            self.unlock_group(group);
            if is_placed || !self.xfs().is_busy() {
                break;
            }
            // What was freed can be used when the log says so.
            self.force_all().await;
        }
        self.unlock_map(file);
    }

    /// Reads how much is free of a group.
    pub(super) async fn read_free_space(&self, group: u64) {
        self.read_parts(group, &[Part::FreeList, Part::BySize, Part::ByPlace]).await;
    }

    /// Gives the blocks of a direct write places where they have none.
    pub async fn allocate_directly(&self, index: usize, pages: Range<u64>) -> Result<(), Errno> {
        for page in pages.clone() {
            let needs_place = self.xfs().demand(index, page..pages.end)?;
            if needs_place {
                self.place_for(index, page, Purpose::Direct).await;
            }
        }
        Ok(())
    }
}
