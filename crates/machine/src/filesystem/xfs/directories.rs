//! Directories: make, rename, remove.

use super::XfsIo;
use crate::file::Errno;
use fs::files::Move;

/// When so many files have lost their names the worker takes them away at once, before who removes
/// them goes on (observed on 6.12).
// Divergence: he does it himself.
const MANY: usize = 32;

impl XfsIo<'_> {
    /// Makes a directory.
    pub async fn make_directory(&self, name: &str, within: usize) -> Result<usize, Errno> {
        let group = self.xfs().next_directory_group();
        let number = self.take_inode(group).await?;
        self.make_room_for_name(name, within).await;
        let now = self.tick();
        Ok(self.xfs().add_directory(name, within, (number, group), now))
    }

    /// A file has another name; what had it before has none.
    pub fn rename(&self, moved: Move) {
        let now = self.tick();
        self.xfs().rename(moved, now);
    }

    /// The name of a file or directory goes.
    pub fn remove_name(&self, file: usize, directory: usize) {
        let now = self.tick();
        self.xfs().remove_name(file, directory, now);
    }

    /// A file that has no name any more loses its pages. What else it has goes later: a worker sees
    /// to that.
    pub async fn give_inode_up(&self, file: usize) {
        self.drop_pages(file, 0).await;
        let (removed, inactivator) = {
            let mut fs = self.xfs();
            (fs.note_removed(file), fs.inactivator())
        };
        self.notify(inactivator);
        if removed >= MANY {
            self.take_unlinked_away().await;
        }
    }

    /// Files without a name lose what they have.
    pub(super) async fn take_unlinked_away(&self) {
        let files = self.xfs().take_unlinked();
        for file in files {
            let has_blocks = self.xfs().inode(file).extents() > 0;
            if has_blocks {
                let group = self.xfs().group_of_file(file);
                self.read_free_space(group).await;
            }
            self.xfs().inactivate(file);
        }
    }

    /// A directory is going to have another name, for which its inode may have no room.
    pub(super) async fn make_room_for_name(&self, name: &str, directory: usize) {
        let name = name.rsplit('/').next().unwrap_or_default();
        let lacking = self.xfs().lacks_directory_block(name, directory);
        let Some(group) = lacking else { return };
        self.lock_group(group, false).await;
        self.read_free_space(group).await;
        self.xfs().add_directory_block(directory, group);
        self.unlock_group(group);
    }
}
