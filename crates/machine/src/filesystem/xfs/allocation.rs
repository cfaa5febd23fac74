//! Room for pages of files: set aside when they are written to, given when they go to the disk.
//!
//! A file that grows gets more set aside than it needs: twice what it has together, as a power of
//! two (rule xfs-layout-3; the arithmetic was observed on 6.12 with `stat`). What was set
//! aside becomes one extent when the first of its pages is written. What is left over goes when the
//! file is closed.

use super::Xfs;
use super::changes::Change;
use crate::buffered::{PAGE, pages_of};
use crate::file::Errno;
use crate::filesystem::flush::FlushOf;
use crate::filesystem::key;
use crate::filesystem::writeback::{Piece, Written};
use crate::task::Task;
use crate::tasks::Wait;
use crate::world::World;
use block::Flags;
use cache::FILE_PAGES;
use fs::xfs::layout::{GROUPS, Part};
use std::future::poll_fn;
use std::ops::Range;
use std::task::Poll;

/// Files that are smaller get no more than they need, and the end of what is asked for is rounded
/// to so many pages. // observed on 6.12: 64 KiB
const SMALL: u64 = 16;
/// Pages of a bio. // observed on 6.12: 16 MiB
const MOST_PAGES: u64 = 4096;
/// Blocks that must be free beside those that a write needs, as the tree of the file's extents may
/// grow. // measured on 6.18: appending so many blocks to a disk with 258 left
const BESIDE_DIRECT: u64 = 4;
const BESIDE_DELAYED: u64 = 6;
/// The most that is set aside beyond the end of a file: 8 GiB. // rule xfs-layout-3
const MOST_BEYOND: u64 = 1 << 21;
/// What changes when blocks are taken or given back.
pub(super) const FREE_SPACE: [Part; 3] = [Part::FreeSpace, Part::BySize, Part::ByPlace];

/// For what blocks get a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Pages that are written: at the end of a file behind what is before.
    Pages,
    /// A direct write: at the end of a file as far from what is before as in the file.
    Direct,
    /// fallocate: as for a direct write, and never with contents.
    Reserve,
}

impl Task {
    /// Sets room aside for bytes that are about to be written; the answer is how far there is some.
    // Observed on 6.12: where there is none, everything that is dirty is written first.
    pub(in crate::filesystem) async fn reserve_on_xfs(
        &self,
        index: usize,
        bytes: Range<u64>,
    ) -> u64 {
        let pages = pages_of(bytes.start, bytes.end);
        self.lock_map(index).await;
        let mut reached = self.world().xfs().set_aside(index, pages.clone());
        self.unlock_map(index);
        if reached == pages.start {
            self.world().xfs().trim_all();
            self.flush_all(FlushOf::Room).await;
            reached = self.world().xfs().set_aside(index, pages);
        }
        bytes.end.min(reached * PAGE)
    }

    /// Blocks have their contents, and the file is as long as it was meant to become.
    pub(in crate::filesystem) async fn convert_on_xfs(&self, written: &Written) {
        let Written { file, blocks, size } = written.clone();
        self.lock_map(file).await;
        self.world().xfs().finish_write(file, blocks, size);
        self.unlock_map(file);
    }

    /// The same for a direct write up to `end`, which may have made the file longer.
    pub(in crate::filesystem) async fn finish_on_xfs(
        &self,
        file: usize,
        pages: Range<u64>,
        end: u64,
    ) {
        self.lock_map(file).await;
        {
            let mut world = self.world();
            let fs = world.xfs();
            let inode = fs.inode(file);
            inode.size = inode.size.max(end);
            fs.finish_write(file, pages, end);
        }
        self.unlock_map(file);
    }

    /// Writes dirty pages of a file, at most so many; the answer is how many.
    pub(in crate::filesystem) async fn write_pages_of_xfs(
        &self,
        file: usize,
        pages: Range<u64>,
        flags: Flags,
        most: u64,
    ) -> u64 {
        let (mut from, mut written) = (pages.start, 0);
        while written < most {
            let Some(first) = self.first_to_write(file, from..pages.end, flags).await else {
                break;
            };
            let found = self.next_piece(file, first..pages.end, most - written).await;
            let Some((piece, is_written)) = found else {
                from = first + 1;
                continue;
            };
            from = piece.pages.end;
            written += piece.pages.end - piece.pages.start;
            for bio in self.cut(file, vec![piece], MOST_PAGES) {
                self.write_piece(file, bio, !is_written, flags).await;
            }
        }
        written
    }

    /// The first dirty page. One that is being written is waited for by who must, and left by the
    /// flusher.
    async fn first_to_write(&self, file: usize, pages: Range<u64>, flags: Flags) -> Option<u64> {
        let mut from = pages.start;
        loop {
            let dirty = self.world().cache.next_dirty(key(file, from)..key(file, pages.end))?;
            if !self.world().cache.is_written(dirty) {
                return Some(dirty % FILE_PAGES);
            }
            match flags.intersects(Flags::SYNC) {
                true => self.wait_until_written(dirty).await,
                false => from = dirty % FILE_PAGES + 1,
            }
        }
    }

    /// Gives what was set aside around a page its place.
    async fn place_xfs(&self, file: usize, page: u64) {
        self.place_for(file, page, Purpose::Pages).await;
    }

    pub(super) async fn place_for(&self, file: usize, page: u64, purpose: Purpose) {
        if !self.begin_allocation(file, page).await {
            return;
        }
        loop {
            let wanted = self.world().xfs().group_for(file, page);
            let group = self.lock_group(wanted, true).await;
            self.read_free_space(group).await;
            let is_placed = self.world().xfs().place(file, page, group, purpose);
            self.unlock_group(group);
            if is_placed || !self.world().xfs().space.is_busy() {
                break;
            }
            // What was freed can be used when the log says so.
            self.force_all().await;
        }
        let mut world = self.world();
        let waiting = world.xfs().allocating.remove(&file).unwrap_or_default();
        waiting.into_iter().for_each(|task| world.wake_from(task));
    }

    /// Waits until nobody gives blocks of a file their places; the answer is whether a page still
    /// needs one.
    async fn begin_allocation(&self, file: usize, page: u64) -> bool {
        poll_fn(|_| {
            let mut world = self.world();
            let fs = world.xfs();
            if let Some(waiting) = fs.allocating.get_mut(&file) {
                waiting.push(self.id());
                return self.wait(&mut world, Wait::Directory).map(|()| false);
            }
            let needs = !fs.inode(file).is_mapped(page);
            if needs {
                fs.allocating.insert(file, Vec::new());
            }
            Poll::Ready(needs)
        })
        .await
    }

    /// Reads how much is free of a group.
    pub(super) async fn read_free_space(&self, group: u64) {
        let parts = [Part::FreeList, Part::BySize, Part::ByPlace];
        let places = parts.map(|part| self.world().xfs().layout.part(group, part));
        for place in places {
            self.read_xfs(place).await;
        }
    }

    /// The dirty pages from one on that follow each other in the file and on the disk, and are
    /// alike in having contents there; those without a place get one.
    async fn next_piece(&self, file: usize, pages: Range<u64>, most: u64) -> Option<(Piece, bool)> {
        let find = |page| self.world().files().inode(file).find(page);
        self.place_xfs(file, pages.start).await;
        let first = find(pages.start)?;
        let limit = pages.start.saturating_add(most).min(pages.end);
        let mut end = pages.start + 1;
        while end < limit && self.is_to_write(key(file, end)) {
            self.place_xfs(file, end).await;
            let Some(next) = find(end) else { break };
            let follows = next.start == first.start + (end - pages.start);
            if !follows || next.is_written != first.is_written {
                break;
            }
            end += 1;
        }
        let piece = Piece { pages: pages.start..end, start: first.start };
        Some((piece, first.is_written))
    }

    fn is_to_write(&self, page: u64) -> bool {
        let world = self.world();
        world.cache.is_dirty(page) && !world.cache.is_written(page)
    }

    /// Gives the blocks of a direct write places where they have none.
    pub(in crate::filesystem) async fn allocate_xfs_directly(
        &self,
        index: usize,
        pages: Range<u64>,
    ) -> Result<(), Errno> {
        for page in pages.clone() {
            let needs_place = self.world().xfs().demand(index, page..pages.end)?;
            if needs_place {
                self.place_for(index, page, Purpose::Direct).await;
            }
        }
        Ok(())
    }
}

impl Xfs {
    /// Sets room aside for pages that have none; the answer is how far there was some. Where there
    /// is too little for more than is asked for, it is no more than that.
    fn set_aside(&mut self, file: usize, pages: Range<u64>) -> u64 {
        let mut at = pages.start;
        while at < pages.end {
            if let Some(extent) = self.files.inode(file).find(at) {
                at += extent.length;
                continue;
            }
            if let Some(room) = self.delayed.find(file, at) {
                at = room.end;
                continue;
            }
            let hole = self.files.inode(file).hole(at).end;
            let limit = hole.min(self.delayed.next(file, at).unwrap_or(u64::MAX));
            let end = pages.end.min(limit);
            let room = self.room();
            if end - at + BESIDE_DELAYED > room {
                break;
            }
            let more = self.beyond(file, at..end).min(limit);
            let more = if more - at + BESIDE_DELAYED > room { end } else { more };
            self.delayed.add(file, at..more);
            at = end;
        }
        at.min(pages.end)
    }

    /// How many blocks a file could still be given.
    fn room(&self) -> u64 {
        self.space.room().saturating_sub(self.delayed.blocks())
    }

    /// Sets no more room aside than is asked for from a block on; the answer is whether that needs
    /// a place.
    pub(super) fn demand(&mut self, file: usize, blocks: Range<u64>) -> Result<bool, Errno> {
        if self.files.inode(file).is_mapped(blocks.start) {
            return Ok(false);
        }
        let hole = self.files.inode(file).hole(blocks.start);
        let blocks = blocks.start..blocks.end.min(hole.end);
        if self.delayed.find(file, blocks.start).is_none() {
            if blocks.end - blocks.start + BESIDE_DIRECT > self.room() {
                return Err(Errno::Enospc);
            }
            self.delayed.add(file, blocks);
        }
        Ok(true)
    }

    /// The end of what is set aside for blocks that a file is about to get.
    fn beyond(&mut self, file: usize, blocks: Range<u64>) -> u64 {
        let inode = self.files.inode(file);
        let is_small = inode.size < SMALL * PAGE;
        if is_small || blocks.end * PAGE <= inode.size {
            return blocks.end;
        }
        let before = match blocks.start.checked_sub(1) {
            None => 0,
            Some(last) => match self.delayed.find(file, last) {
                Some(room) => room.end - room.start,
                None => inode.together_before(blocks.start),
            },
        };
        let twice = (2 * before).min(MOST_BEYOND);
        // Behind a hole it is the least there is.
        let more = if twice == 0 { SMALL } else { 1 << twice.ilog2() };
        ((blocks.end - 1) / SMALL * SMALL + more).max(blocks.end)
    }

    /// The group in which room for a block is looked for first: where the file goes on, or that of
    /// its inode.
    fn group_for(&mut self, file: usize, block: u64) -> u64 {
        let inode = self.files.inode(file);
        let (goal, number) = (inode.end_before(block), inode.number);
        let own = self.layout.group_of_inode(number);
        goal.map_or(own, |goal| self.space.group_of(goal.saturating_sub(1)))
    }

    /// Gives what was set aside around a block its place in a group; what comes of it is logged. The
    /// answer is whether there was room for all of it.
    // Divergence: what does not fit goes to other groups at once.
    fn place(&mut self, file: usize, block: u64, group: u64, purpose: Purpose) -> bool {
        let Some(room) = self.delayed.take(file, block) else { return true };
        let is_written = purpose != Purpose::Reserve && !self.rules.unwritten_first;
        let mut at = room.start;
        while at < room.end {
            let goal = self.goal(file, at..room.end, purpose);
            let mut groups = (group..GROUPS).chain(0..group);
            let length = room.end - at;
            let Some(found) = groups.find_map(|it| self.space.allocate(it, goal, length)) else {
                break;
            };
            let length = found.end - found.start;
            self.files.inode(file).map(at, found.start, length, is_written);
            self.change_parts(self.space.group_of(found.start), &FREE_SPACE);
            at += length;
        }
        self.change_extents(file, room.start);
        self.change_inode(file, Change::Data);
        if at < room.end {
            self.delayed.add(file, at..room.end);
        }
        at == room.end
    }

    /// Where blocks of a file should be: beside that of the extents around them which is nearer in
    /// the file. // observed on 6.12: random writes of a file without room of its own
    fn goal(&mut self, file: usize, blocks: Range<u64>, purpose: Purpose) -> Option<u64> {
        let inode = self.files.inode(file);
        let before = inode.end_before(blocks.start);
        let Some((first, next)) = inode.next_extent(blocks.end) else {
            return if purpose == Purpose::Pages { before } else { inode.goal(blocks.start) };
        };
        let is_nearer = first - blocks.end < blocks.start - inode.hole(blocks.start).start;
        let before_next = next.start.saturating_sub(blocks.end - blocks.start);
        before.filter(|_| !is_nearer).or(Some(before_next))
    }

    /// Nothing is set aside any more beyond the ends of files.
    fn trim_all(&mut self) {
        for file in 0..self.files.inodes.len() {
            let end = self.files.inode(file).size.div_ceil(PAGE);
            self.delayed.cut(file, end);
        }
    }

    /// A file has no blocks from one on; answers with whether it had.
    pub(super) fn give_up(&mut self, file: usize, block: u64) -> bool {
        self.delayed.cut(file, block);
        let gone = self.files.inode(file).truncate(block);
        if !gone.is_empty() {
            self.change_extents(file, block);
        }
        for blocks in &gone {
            self.space.free_after(self.log.sequence, blocks.clone());
            self.change_parts(self.space.group_of(blocks.start), &FREE_SPACE);
        }
        !gone.is_empty()
    }

    /// A file has a hole where it had blocks, or was to get them.
    pub(super) fn punch(&mut self, file: usize, blocks: Range<u64>) {
        self.delayed.punch(file, blocks.clone());
        let (gone, _) = self.files.inode(file).punch(blocks.clone());
        if !gone.is_empty() {
            self.change_extents(file, blocks.start);
        }
        for blocks in gone {
            self.space.free_after(self.log.sequence, blocks.clone());
            self.change_parts(self.space.group_of(blocks.start), &FREE_SPACE);
        }
    }

    /// Data of a file are on the disk: its blocks have contents, and it is at least so long.
    fn finish_write(&mut self, file: usize, blocks: Range<u64>, size: u64) {
        let inode = self.files.inode(file);
        if inode.is_removed {
            return;
        }
        let from = blocks.start;
        let (changed, _) = inode.convert(blocks);
        let grows = size > inode.disk_size;
        inode.disk_size = inode.disk_size.max(size);
        if changed {
            self.change_extents(file, from);
        }
        if changed || grows {
            self.change_inode(file, Change::Data);
        }
    }
}

impl World {
    /// Who could write a file has closed it: what was set aside beyond its end goes.
    pub(in crate::filesystem) fn trim(&mut self, file: usize) {
        let fs = self.xfs();
        if fs.reserved.contains(&file) {
            return;
        }
        let end = fs.inode(file).size.div_ceil(PAGE);
        if fs.give_up(file, end) {
            fs.change_inode(file, Change::Data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{Kernel, Version};
    use fs::Mount;
    use fs::inode::Inode;

    fn fresh() -> Xfs {
        let kernel = Kernel::of(Version::V6_12);
        let mut fs = Xfs::new(Mount::default(), kernel, 40 << 30);
        fs.files.inodes.push(Inode::new(131, 0, 0));
        fs
    }

    /// Writes so many blocks at a time; where what is set aside ends after each that adds to it.
    fn ends(at_a_time: u64, writes: u64) -> Vec<u64> {
        let mut fs = fresh();
        let mut ends: Vec<u64> = Vec::new();
        for write in 0..writes {
            let blocks = write * at_a_time..(write + 1) * at_a_time;
            fs.set_aside(1, blocks.clone());
            fs.files.inode(1).size = blocks.end * PAGE;
            let end = fs.delayed.find(1, blocks.start).unwrap().end;
            if ends.last() != Some(&end) {
                ends.push(end);
            }
        }
        ends
    }

    #[test]
    fn a_file_that_grows_has_set_aside_what_stat_shows_on_6_12() {
        assert_eq!(ends(1, 300)[15..], [16, 48, 112, 240, 496]);
        assert_eq!(ends(256, 40), [256, 1008, 2032, 4080, 8176, 16_368]);
    }

    #[test]
    fn what_is_left_over_goes_when_the_file_is_closed() {
        let mut fs = fresh();
        fs.set_aside(1, 0..20);
        fs.files.inode(1).size = 20 * PAGE;
        fs.set_aside(1, 20..21);
        fs.files.inode(1).size = 21 * PAGE;
        fs.place(1, 0, 0, Purpose::Pages);
        assert_eq!(fs.files.inode(1).find(0).unwrap().start, 24);
        let before = fs.files.inode(1).find(0).unwrap().length;
        assert!(before > 21 && fs.give_up(1, 21));
        assert_eq!(fs.files.inode(1).find(0).unwrap().length, 21);
    }

    #[test]
    fn blocks_lie_beside_the_extent_that_is_nearer_in_the_file() {
        let mut fs = fresh();
        fs.files.inode(1).map(10, 100, 1, true);
        assert_eq!(fs.goal(1, 160..161, Purpose::Direct), Some(250));
        assert_eq!(fs.goal(1, 160..161, Purpose::Pages), Some(101));
        fs.files.inode(1).map(160, 250, 1, true);
        assert_eq!(fs.goal(1, 20..21, Purpose::Direct), Some(101));
        assert_eq!(fs.goal(1, 150..152, Purpose::Direct), Some(248));
        assert_eq!(fs.goal(1, 2..3, Purpose::Direct), Some(99));
    }
}
