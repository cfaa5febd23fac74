//! Files by name: create, truncate; and inodes for them.

use super::XfsIo;
use crate::file::Errno;
use cache::PAGE;
use fs::key;
use fs::xfs::layout::Part;

impl XfsIo<'_> {
    /// Makes a file of this name.
    pub async fn create(&self, name: &str) -> Result<usize, Errno> {
        let (directory, group) = {
            let fs = self.xfs();
            let directory = fs.directory_of(name);
            (directory, fs.group_of_file(directory))
        };
        let number = self.take_inode(group).await?;
        self.make_room_for_name(name, directory).await;
        let now = self.tick();
        Ok(self.xfs().add_file(name, number, group, now))
    }

    /// The first free inode of a group. Who takes its first one reads where free ones are.
    pub(super) async fn take_inode(&self, group: u64) -> Result<u64, Errno> {
        let has_free = self.xfs().has_free_inode(group);
        if has_free {
            self.read_parts(group, &[Part::FreeChunks, Part::Chunks]).await;
        } else {
            self.make_chunk(group).await?;
        }
        let (number, cluster) = self.xfs().take_inode(group);
        self.read_metadata(cluster).await;
        Ok(number)
    }

    /// Makes room for more inodes.
    async fn make_chunk(&self, group: u64) -> Result<(), Errno> {
        self.lock_group(group, false).await;
        self.read_free_space(group).await;
        self.read_parts(group, &[Part::Chunks, Part::FreeChunks]).await;
        let made = self.xfs().make_chunk(group);
        self.unlock_group(group);
        made
    }

    /// Before the size of a file changes, pages are written that a size on the disk would cover
    /// without their data.
    async fn write_before_cut(&self, file: usize, size: u64) {
        let pages = self.xfs().pages_before_cut(file, size);
        let keys = key(file, pages.start)..key(file, pages.end);
        if !pages.is_empty() && self.cache().next_dirty(keys.clone()).is_some() {
            self.write_for_sync(file, pages).await;
            self.wait_for_written(keys).await;
            self.end_part(file);
        }
    }

    /// Makes a file shorter or longer. Behind its end, old or new, nothing is left of the page in
    /// which that is (rule xfs-write-6).
    pub async fn set_size(&self, file: usize, size: u64) {
        let old = self.files().inode(file).size;
        if size != old {
            self.zero_behind(file, size.min(old)).await;
        }
        self.write_before_cut(file, size).await;
        if size >= old {
            let now = self.tick();
            return self.xfs().set_size(file, size, now);
        }
        self.files().inode(file).size = size;
        self.drop_pages(file, size.div_ceil(PAGE)).await;
        self.lock_map(file).await;
        self.files().inode(file).is_rewritten = true;
        let has_blocks = self.files().inode(file).next_extent(size.div_ceil(PAGE)).is_some();
        if has_blocks {
            self.read_free_space(0).await;
        }
        let now = self.tick();
        self.xfs().set_size(file, size, now);
        self.unlock_map(file);
    }
}
