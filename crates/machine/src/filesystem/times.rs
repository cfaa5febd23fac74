//! Times of files: of access and of modification.

use super::FileIo;
use fs::Format;

impl FileIo<'_> {
    /// The time of modification changes once in a tick.
    pub async fn note_modified(&self, index: usize) {
        let now = self.tick();
        if self.files().inode(index).modified == Some(now) {
            return;
        }
        match self.format() {
            Format::Ext4 => self.on_ext4().change_modified(index, now).await,
            Format::Xfs => self.on_xfs().log_modified(index).await,
        }
    }

    /// The time of access follows that of modification (mount option `relatime`), unless nobody
    /// wants to know it (`noatime`).
    pub async fn note_read(&self, index: usize) {
        let now = self.tick();
        let is_old = {
            let mut files = self.files();
            let is_noted = files.mount().notes_access;
            let inode = files.inode(index);
            is_noted && inode.accessed <= inode.modified && inode.accessed != Some(now)
        };
        if !is_old {
            return;
        }
        match self.format() {
            Format::Ext4 => self.on_ext4().change_accessed(index, now).await,
            Format::Xfs => self.on_xfs().log_accessed(index).await,
        }
    }

    /// Both times of a file are those of now.
    pub async fn set_times(&self, index: usize) {
        let now = self.tick();
        match self.format() {
            Format::Ext4 => self.on_ext4().change_modified(index, now).await,
            Format::Xfs => self.on_xfs().log_modified(index).await,
        }
        self.files().inode(index).accessed = Some(now);
    }
}
