//! Buffered reads of files: as of the disk, with the blocks of each page looked up.

use super::{FileIo, intended};
use crate::file::{Errno, File};
use block::Op;
use cache::PAGE;
use fs::key;
use std::ops::Range;

impl FileIo<'_> {
    /// Reads a file through the page cache; nothing is read beyond its end.
    pub async fn read_file(
        &self,
        file: &File,
        index: usize,
        offset: u64,
        length: u64,
    ) -> Result<u64, Errno> {
        let bytes = self.storage().bytes_to_read(index, offset, length);
        let number = self.enter_call(intended(Op::Read, offset, bytes)).await;
        self.read_part(file, index, offset..offset + bytes).await;
        self.leave_call(number);
        Ok(bytes)
    }

    /// Reads bytes of a file that lie within it.
    pub async fn read_part(&self, file: &File, index: usize, bytes: Range<u64>) {
        if !bytes.is_empty() {
            let base = key(index, 0) * PAGE;
            self.begin_reading(index).await;
            self.read_pages(file, base + bytes.start, base + bytes.end).await;
            self.note_read(index).await;
            self.end_reading(index);
        }
    }
}
