//! Room for pages of files: set aside when they are written to, given when they go to the disk.
//!
//! A file that grows gets more set aside than it needs: twice what it has together, as a power of
//! two (rule xfs-layout-3; the arithmetic was observed on 6.12 with `stat`). What was set
//! aside becomes one extent when the first of its pages is written. What is left over goes when the
//! file is closed, once.

use super::Xfs;
use super::changes::Change;
use super::layout::{FREE_SPACE, GROUPS};
use crate::Errno;
use crate::rules::{BeforeCut, KeepsRoom};
use block::ContextId;
use cache::PAGE;
use std::cmp::Ordering;
use std::ops::Range;

/// Files that are smaller get no more than they need, and the end of what is asked for is rounded
/// to so many pages (observed on 6.12: 64 KiB).
const SMALL: u64 = 16;
/// Blocks that must be free beside those that a write needs, as the tree of the file's extents may
/// grow (measured on 6.18: appending so many blocks to a disk with 258 left).
const BESIDE_DIRECT: u64 = 4;
const BESIDE_DELAYED: u64 = 6;
/// From so many times its length on, an extent is far from another one (observed on 6.12: dd that
/// leaves 16 and 17 blocks between four and four).
const FAR: u64 = 4;
/// The most that is set aside beyond the end of a file: 8 GiB (rule xfs-layout-3).
const MOST_BEYOND: u64 = 1 << 21;

/// For what blocks get a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Pages that are written: at the end of a file behind what is before.
    Pages,
    /// A direct write: at the end of a file as far from what is before as in the file.
    Direct,
    /// fallocate: as for a direct write, and never with contents.
    Reserve,
}

impl Xfs {
    /// Sets room aside for pages that have none, for a write up to the byte `end`; the answer is
    /// how far there was some. It is no more than is asked for where there is too little room, or
    /// where the file does not become longer.
    pub fn set_aside(&mut self, file: usize, pages: Range<u64>, end: u64) -> u64 {
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
            let to = pages.end.min(limit);
            let room = self.room();
            if to - at + BESIDE_DELAYED > room {
                break;
            }
            let is_longer = end > self.files.inode(file).size;
            // What is in front was written to already.
            let written = if at > pages.start { at * PAGE } else { 0 };
            let more = if is_longer { self.beyond(file, at..to, written).min(limit) } else { to };
            let more = if more - at + BESIDE_DELAYED > room { to } else { more };
            self.delayed.add(file, at..more);
            at = to;
        }
        at.min(pages.end)
    }

    /// How many blocks a file could still be given.
    fn room(&self) -> u64 {
        self.space.room().saturating_sub(self.delayed.blocks())
    }

    /// Sets no more room aside than is asked for from a block on; the answer is whether that needs
    /// a place.
    ///
    /// # Errors
    /// `Enospc` if there is too little room.
    pub fn demand(&mut self, file: usize, blocks: Range<u64>) -> Result<bool, Errno> {
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

    /// The end of what is set aside for blocks that a file is about to get, which has so many bytes
    /// at least.
    fn beyond(&mut self, file: usize, blocks: Range<u64>, size: u64) -> u64 {
        let inode = self.files.inode(file);
        let is_small = inode.size.max(size) < SMALL * PAGE;
        if is_small {
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
        // There is a least, which holds behind a hole, and where the pieces of the file lie apart.
        let more = if twice < SMALL { SMALL } else { 1 << twice.ilog2() };
        ((blocks.end - 1) / SMALL * SMALL + more).max(blocks.end)
    }

    /// The group in which room for a block is looked for first: where the file goes on, or that of
    /// its inode.
    pub fn group_for(&mut self, file: usize, block: u64) -> u64 {
        let inode = self.files.inode(file);
        let (goal, number) = (inode.end_before(block), inode.number);
        let own = self.layout.group_of_inode(number);
        goal.map_or(own, |goal| self.space.group_of(goal.saturating_sub(1)))
    }

    /// Gives what was set aside around a block its place in a group; what comes of it is logged.
    /// The answer is whether there was room for all of it.
    // Divergence: what does not fit goes to other groups at once.
    pub fn place(&mut self, file: usize, block: u64, group: u64, purpose: Purpose) -> bool {
        let Some(room) = self.delayed.take(file, block) else { return true };
        let is_written = purpose != Purpose::Reserve && !self.rules().unwritten_first;
        let mut at = room.start;
        while at < room.end {
            let goal = self.goal(file, at..room.end, purpose);
            let groups = (group..GROUPS).chain(0..group);
            let Some(found) = self.space.allocate_in(groups, goal, room.end - at) else { break };
            let length = found.end - found.start;
            self.files.inode(file).map(at, found.start, length, is_written);
            self.change_parts(self.space.group_of(found.start), &FREE_SPACE);
            at += length;
        }
        if at > room.start {
            self.extents_added(file, room.start);
            self.change_inode(file, Change::Data);
        }
        if at < room.end {
            self.delayed.add(file, at..room.end);
        }
        at == room.end
    }

    /// Where blocks of a file should be: beside that of the extents around them which is nearer in
    /// the file, and as far from it as there unless that is far (observed on 6.12: random writes of
    /// a file without room of its own).
    fn goal(&mut self, file: usize, blocks: Range<u64>, purpose: Purpose) -> Option<u64> {
        let inode = self.files.inode(file);
        let before = inode.end_before(blocks.start);
        let length = blocks.end - blocks.start;
        let gap = blocks.start - inode.hole(blocks.start).start;
        let is_far = |distance: u64| distance > FAR * length;
        let behind = before.map(|it| if is_far(gap) { it } else { it + gap });
        let Some((first, next)) = inode.next_extent(blocks.end) else {
            return if purpose == Purpose::Pages { behind } else { inode.goal(blocks.start) };
        };
        let to_next = first - blocks.start;
        let is_nearer = to_next < gap;
        let before_next = next.start.saturating_sub(if is_far(to_next) { length } else { to_next });
        behind.filter(|_| !is_nearer).or(Some(before_next))
    }

    /// Nothing is set aside any more beyond the ends of files, and what they kept there goes unless
    /// a program asked for it.
    pub fn trim_all(&mut self) {
        for file in 0..self.files.inodes.len() {
            let end = self.files.inode(file).size.div_ceil(PAGE);
            self.delayed.cut(file, end);
            if !self.reserved.contains(&file) && self.give_up(file, end) {
                self.change_inode(file, Change::Data);
            }
        }
    }

    /// A file has no blocks from one on; answers with whether it had. The last ones go first
    /// (observed: xfs_free_extent).
    pub(super) fn give_up(&mut self, file: usize, block: u64) -> bool {
        self.delayed.cut(file, block);
        let gone = self.files.inode(file).truncate(block);
        if !gone.is_empty() {
            self.extents_removed(file, block);
        }
        for blocks in gone.iter().rev() {
            self.space.free_after(self.log.sequence, blocks.clone());
            self.change_parts(self.space.group_of(blocks.start), &FREE_SPACE);
        }
        !gone.is_empty()
    }

    /// A file has a hole where it had blocks, or was to get them.
    fn punch(&mut self, file: usize, blocks: Range<u64>) {
        self.delayed.punch(file, blocks.clone());
        let (gone, _) = self.files.inode(file).punch(blocks.clone());
        if !gone.is_empty() {
            self.extents_removed(file, blocks.start);
        }
        for blocks in gone {
            self.space.free_after(self.log.sequence, blocks.clone());
            self.change_parts(self.space.group_of(blocks.start), &FREE_SPACE);
        }
    }

    /// Data of a file are on the disk: its blocks have contents, and it is at least so long.
    pub fn finish_write(&mut self, file: usize, blocks: Range<u64>, size: u64) {
        let inode = self.files.inode(file);
        if inode.is_removed {
            return;
        }
        let grows = size > inode.disk_size;
        inode.disk_size = inode.disk_size.max(size);
        if self.convert(file, blocks) || grows {
            self.change_inode(file, Change::Data);
        }
    }

    /// Blocks of a file have contents now, one extent after the other; the answer is whether any
    /// had not.
    fn convert(&mut self, file: usize, blocks: Range<u64>) -> bool {
        let (mut at, mut changed) = (blocks.start, false);
        while at < blocks.end {
            let inode = self.files.inode(file);
            let Some(of) = inode.extent_at(at) else {
                at = inode.hole(at).end;
                continue;
            };
            let part = at..of.end.min(blocks.end);
            at = part.end;
            if inode.convert(part.clone()).0 {
                self.extents_converted(file, &part, &of);
                changed = true;
            }
        }
        changed
    }

    /// Who could write a file has closed it: what was set aside beyond its end goes, but the next
    /// time it stays, for whoever writes a file again and again.
    pub(crate) fn trim(&mut self, file: usize) {
        if self.reserved.contains(&file) || self.inode(file).keeps_room {
            return;
        }
        let end = self.inode(file).size.div_ceil(PAGE);
        let was_set_aside = self.delayed.reaches(file, end);
        let had_blocks = self.give_up(file, end);
        if had_blocks {
            self.change_inode(file, Change::Data);
        }
        self.inode(file).keeps_room = match self.rules().keeps_room {
            KeepsRoom::OnceWritten => self.delayed.reaches(file, 0),
            KeepsRoom::OnceGiven => was_set_aside || had_blocks,
        };
    }

    /// A program has asked for room for a file in a tick, which stays when it is closed. The file
    /// is at least so long then, if a size is given.
    pub fn note_reserved(&mut self, file: usize, size: Option<u64>, now: u64) {
        self.reserved.insert(file);
        let inode = self.inode(file);
        inode.modified = Some(now);
        if let Some(size) = size {
            inode.size = inode.size.max(size);
            inode.disk_size = inode.disk_size.max(size);
        }
        self.change_inode(file, Change::Data);
    }

    /// A file has got a hole in a tick.
    pub fn make_hole(&mut self, file: usize, blocks: Range<u64>, now: u64) {
        self.punch(file, blocks);
        self.inode(file).modified = Some(now);
        self.change_inode(file, Change::Data);
    }

    /// Whether a file has pages for which room was set aside.
    pub fn has_delayed(&self, file: usize) -> bool {
        self.delayed.reaches(file, 0)
    }

    /// Pages of a file that are written before it gets another size.
    pub fn pages_before_cut(&mut self, file: usize, size: u64) -> Range<u64> {
        let writes = self.rules().before_cut;
        let inode = self.files.inode(file);
        let (last, from) = (size / PAGE, inode.disk_size / PAGE);
        match size.cmp(&inode.size) {
            Ordering::Equal => 0..0,
            Ordering::Less if writes == BeforeCut::Last => last..last + 1,
            _ => from..size.div_ceil(PAGE),
        }
    }

    /// Changes the size of a file, in a tick.
    pub fn set_size(&mut self, file: usize, size: u64, now: u64) {
        let inode = self.inode(file);
        (inode.size, inode.disk_size, inode.modified) = (size, size, Some(now));
        self.give_up(file, size.div_ceil(PAGE));
        self.change_inode(file, Change::Data);
    }

    /// A task wants to look for room alone in a group, or in any from that on; the answer is in
    /// which one it does. None if it has to wait, and is told when it may try again.
    pub fn lock_group(&mut self, task: ContextId, group: u64, or_next: bool) -> Option<u64> {
        let found = match or_next {
            true => self.space.lock_any(group),
            false => self.space.lock(group).then_some(group),
        };
        if found.is_none() {
            self.space.wait(group, task);
        }
        found
    }

    /// Nobody looks for room in a group; answers with who wants to.
    pub fn unlock_group(&mut self, group: u64) -> Vec<ContextId> {
        self.space.unlock(group)
    }

    /// Whether something was freed that cannot be used yet.
    pub fn is_busy(&self) -> bool {
        self.space.is_busy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mount;
    use crate::inode::Inode;
    use block::{Kernel, Version};

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
            fs.set_aside(1, blocks.clone(), blocks.end * PAGE);
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

    // Observed on 6.12 and 7.3: three files that are written in turns.
    #[test]
    fn a_file_of_which_little_lies_together_gets_the_least_there_is() {
        let mut fs = fresh();
        for piece in 0..4 {
            fs.files.inode(1).map(4 * piece, 24 + 12 * piece, 4, true);
        }
        fs.files.inode(1).size = 16 * PAGE;
        fs.set_aside(1, 16..20, 20 * PAGE);
        assert_eq!(fs.delayed.find(1, 16), Some(16..32));
    }

    #[test]
    fn what_is_left_over_goes_when_the_file_is_closed() {
        let mut fs = fresh();
        fs.set_aside(1, 0..20, 20 * PAGE);
        fs.files.inode(1).size = 20 * PAGE;
        fs.set_aside(1, 20..21, 21 * PAGE);
        fs.files.inode(1).size = 21 * PAGE;
        fs.place(1, 0, 0, Purpose::Pages);
        assert_eq!(fs.files.inode(1).find(0).unwrap().start, 24);
        let before = fs.files.inode(1).find(0).unwrap().length;
        assert!(before > 21 && fs.give_up(1, 21));
        assert_eq!(fs.files.inode(1).find(0).unwrap().length, 21);
    }

    /// What is left of a file of 21 blocks when it is written, given its blocks unless that is
    /// late, and closed once more.
    fn closed_again(version: Version, is_late: [bool; 2], is_rewritten: bool) -> bool {
        let mut fs = Xfs::new(Mount::default(), Kernel::of(version), 40 << 30);
        fs.files.inodes.push(Inode::new(131, 0, 0));
        for (first, is_late) in [(0, is_late[0]), (21, is_late[1])] {
            for blocks in [first..first + 20, first + 20..first + 21] {
                fs.set_aside(1, blocks.clone(), blocks.end * PAGE);
                fs.files.inode(1).size = blocks.end * PAGE;
            }
            if !is_late {
                fs.place(1, first, 0, Purpose::Pages);
            }
            fs.files.inode(1).is_rewritten = first > 0 && is_rewritten;
            fs.files.inode(1).end_rewriting();
            fs.trim(1);
        }
        fs.delayed.reaches(1, 42) || fs.give_up(1, 42)
    }

    #[test]
    fn what_is_left_over_goes_once() {
        let rows = [
            // Whether it has blocks with no place at either close, whether it was made shorter
            // before the second one, and whether room stays then on 6.1, and on 6.12 and later.
            ([false, false], false, [false, true]),
            ([false, true], false, [false, true]),
            ([true, false], false, [true, true]),
            ([false, false], true, [false, false]),
            ([true, false], true, [false, false]),
        ];
        for (is_late, is_rewritten, stays) in rows {
            let found = [Version::V6_1, Version::V6_12, Version::V7_3]
                .map(|version| closed_again(version, is_late, is_rewritten));
            assert_eq!(found, [stays[0], stays[1], stays[1]], "{is_late:?} {is_rewritten}");
        }
    }

    #[test]
    fn what_the_disk_does_not_know_of_a_file_is_written_before_it_gets_another_size() {
        for (version, shorter) in [(Version::V6_1, 2..3), (Version::V6_12, 1..3)] {
            let mut fs = Xfs::new(Mount::default(), Kernel::of(version), 40 << 30);
            fs.files.inodes.push(Inode::new(131, 0, 0));
            let inode = fs.files.inode(1);
            (inode.disk_size, inode.size) = (PAGE, 8 * PAGE);
            assert_eq!(fs.pages_before_cut(1, 2 * PAGE + 1), shorter, "{version}");
            assert_eq!(fs.pages_before_cut(1, 10 * PAGE), 1..10, "{version}");
            assert!(fs.pages_before_cut(1, 8 * PAGE).is_empty(), "{version}");
        }
    }

    #[test]
    fn what_a_file_keeps_goes_when_there_is_too_little_room() {
        let mut fs = fresh();
        fs.files.inode(1).map(0, 100, 40, true);
        (fs.files.inode(1).size, fs.files.inode(1).keeps_room) = (21 * PAGE, true);
        fs.trim(1);
        assert_eq!(fs.files.inode(1).find(0).unwrap().length, 40);
        fs.trim_all();
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
        for purpose in [Purpose::Direct, Purpose::Pages] {
            assert_eq!(fs.goal(1, 27..31, purpose), Some(101 + 16), "as far as in the file");
            assert_eq!(fs.goal(1, 28..32, purpose), Some(101), "too far for that");
            assert_eq!(fs.goal(1, 144..148, purpose), Some(250 - 16));
            assert_eq!(fs.goal(1, 143..147, purpose), Some(250 - 4));
        }
    }
}
