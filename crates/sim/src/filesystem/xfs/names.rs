//! Files by name: create, truncate, remove.

use super::changes::Change;
use super::layout::{CHUNK, Part, ROOT};
use crate::buffered::PAGE;
use crate::filesystem::inode::Inode;
use crate::filesystem::{all_pages, key};
use crate::task::Task;

impl Task {
    /// Makes a file of this name. Who makes the first one reads where free inodes are.
    pub(in crate::filesystem) async fn create_xfs(&self, name: &str) -> usize {
        let (number, places) = {
            let mut world = self.world();
            let fs = world.xfs();
            let number = fs.next_inode;
            fs.next_inode += 1;
            let parts = [Part::FreeChunks, Part::Chunks].map(|part| fs.layout.part(0, part));
            (number, parts.into_iter().chain([fs.layout.cluster(ROOT)]))
        };
        for place in places {
            self.read_xfs(place).await;
        }
        if number.is_multiple_of(CHUNK) {
            self.make_chunk().await;
        }
        // The inode notes when it was made. // measured
        self.compute(self.costs().kernel_clock).await;
        let mut world = self.world();
        let now = world.tick();
        let fs = world.xfs();
        fs.files.inodes.push(Inode::new(number, 0, now));
        let file = fs.files.inodes.len() - 1;
        fs.files.names.insert(name.to_string(), file);
        fs.change_folder();
        fs.change_parts(0, &[Part::Inodes, Part::FreeChunks, Part::Chunks]);
        fs.change_inode(file, Change::Data);
        file
    }

    /// Makes room for more inodes.
    // Divergence: they are where their numbers say, whatever is there.
    async fn make_chunk(&self) {
        self.lock_group(0, false).await;
        self.read_free_space(0).await;
        self.world().xfs().change_parts(0, &[Part::FreeSpace, Part::BySize, Part::ByPlace]);
        self.unlock_group(0);
    }

    /// Makes a file shorter or longer.
    // Divergence: the last page of a file that ends within it is not zeroed on the disk.
    pub(in crate::filesystem) async fn set_size_of_xfs(&self, file: usize, size: u64) {
        let old = self.world().files().inode(file).size;
        let block = size.div_ceil(PAGE);
        if size < old {
            self.read_free_space(0).await;
            self.world().cache.discard(key(file, block)..all_pages(file).end);
        }
        let mut world = self.world();
        let now = world.tick();
        let fs = world.xfs();
        let inode = fs.inode(file);
        (inode.size, inode.disk_size, inode.modified) = (size, size, Some(now));
        fs.give_up(file, block);
        fs.change_inode(file, Change::Data);
    }

    /// Takes a file out of the folder, with its blocks.
    pub(in crate::filesystem) async fn remove_xfs(&self, file: usize) {
        self.lock_folder().await;
        self.read_free_space(0).await;
        self.world().cache.discard(all_pages(file));
        {
            let mut world = self.world();
            let fs = world.xfs();
            fs.give_up(file, 0);
            fs.change_folder();
            fs.change_parts(0, &[Part::Inodes, Part::FreeChunks, Part::Chunks]);
            fs.change_inode(file, Change::Data);
            let inode = fs.inode(file);
            (inode.is_removed, inode.size, inode.disk_size) = (true, 0, 0);
            fs.files.dirty.retain(|(it, _)| *it != file);
        }
        self.unlock_folder();
    }
}
