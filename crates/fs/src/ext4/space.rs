//! Free space of ext4, and which of it a file gets.
//!
//! Requests are made larger and aligned before they are looked for, so that files lie in few
//! extents: small files share chunks of 512 blocks, larger ones get pieces of their own, of which
//! the rest is kept for them (rules ext4-space). What is freed can be used again when the
//! transaction that freed it is on the disk; data of a mount without order, at once.
//!
//! Order of search, observed on 6.12: behind the file's last block; then group by group, for small
//! requests and for what is left of a closed file from the group of the file, else from that of the
//! last large request, which is the first group in the beginning. Within a group the lowest of the
//! smallest free buddies that are large enough. A request of a power of two goes by the first group
//! of each unit, where directories are, as long as another has room. Where nothing rotates, other
//! large requests begin in the group that is most in pieces.
//!
// Divergence: one chunk for all cores; no scan for the best fit when nothing is large enough.

use super::buddies::{self, LEAST_BUDDY, is_buddy};
use super::layout::{BLOCK, GROUP, Layout, UNIT};
use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks of a chunk for small files, and of the largest small file (64 KiB).
const CHUNK: u64 = 512;
const SMALL: u64 = 16;
/// The kernel looks at so many groups at a time in advance, and knows the last of them then.
const GROUPS_AHEAD: u64 = 128;
const MIB: u64 = (1 << 20) / BLOCK;

/// Free space.
#[derive(Clone, Debug)]
pub struct Space {
    layout: Layout,
    /// Free extents by group, first block and end; groups that are as mke2fs left them are absent.
    groups: BTreeMap<u64, BTreeMap<u64, u64>>,
    /// How many blocks are free in each group: of a full one nothing else need be looked at.
    free: Vec<u64>,
    /// The group of the last large allocation; the first one in the beginning.
    stream: u64,
    /// The groups that were looked into in that order; but for `goes_by_known` only as long as that
    /// is the first one.
    seen: Vec<u64>,
    is_rotational: bool,
    /// Large requests go into groups that are known.
    goes_by_known: bool,
    /// What is left of chunks for small files.
    chunks: Vec<Range<u64>>,
    /// Freed by a transaction that is not on the disk yet.
    pending: Vec<(u64, Range<u64>)>,
    /// Blocks that nothing uses, those included that are kept for files.
    unused: u64,
}

/// What a file asks for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// First block, counted in the file.
    pub first: u64,
    /// How many.
    pub length: u64,
    /// Size of the file when it is written, in blocks.
    pub size: u64,
    /// The group of the inode.
    pub group: u64,
    /// The block of the file behind the one before the request that has a place.
    pub behind: u64,
    /// The block of the disk that would continue the file from there.
    pub goal: Option<u64>,
    /// What is taken already around the request or kept for the file, in blocks of the file.
    pub hole: Range<u64>,
    /// Nobody writes the file any more.
    pub is_closed: bool,
}

/// What it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Blocks of the disk for the first blocks of the request.
    pub blocks: Range<u64>,
    /// More that is kept for it, before and behind: the block of the file from which on, and where.
    pub kept: Vec<(u64, Range<u64>)>,
    /// The group whose bitmap changes; none when the blocks were set aside before.
    pub group: u64,
}

impl Space {
    /// The space of a fresh file system on a disk that rotates or does not.
    pub fn new(layout: Layout, is_rotational: bool) -> Space {
        let fresh = |group| layout.end(group).saturating_sub(layout.first_free(group));
        let mut space = Space {
            groups: BTreeMap::new(),
            free: (0..layout.groups()).map(fresh).collect(),
            stream: 0,
            seen: Vec::new(),
            is_rotational,
            goes_by_known: false,
            chunks: Vec::new(),
            pending: Vec::new(),
            unused: 0,
            layout,
        };
        let journal = space.layout.journal.clone();
        let fresh: u64 = space.free.iter().sum();
        space.unused = fresh.saturating_sub(journal.end - journal.start);
        for group in journal.start / GROUP..journal.end.div_ceil(GROUP) {
            let end = space.layout.end(group).min(journal.end);
            space.take(group, journal.start.max(group * GROUP)..end);
        }
        space
    }

    /// The same, where large requests go into groups that are known, and the last of each so many
    /// are from the beginning (rule ext4-space-4).
    pub fn going_by_known(self, goes_by_known: bool) -> Space {
        let groups = self.layout.groups();
        let at_once = groups.min(GROUPS_AHEAD);
        let last = |turn: u64| (turn * at_once - 1) % groups;
        let known = goes_by_known && !self.is_rotational;
        let seen =
            if known { (1..=groups.div_ceil(at_once)).map(last).collect() } else { self.seen };
        Space { goes_by_known: known, seen, ..self }
    }

    /// How many blocks files may still be given: some are held back, which extents can become more
    /// with (sysfs-fs-ext4: reserved_clusters, 2 % and at most 4096 by default).
    pub fn room(&self) -> u64 {
        self.unused.saturating_sub((self.layout.blocks / 50).min(4096))
    }

    /// Blocks are used from now on.
    pub fn used(&mut self, blocks: &Range<u64>) {
        self.unused = self.unused.saturating_sub(blocks.end - blocks.start);
    }

    /// Whether something was freed that cannot be used yet.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Gives up what is left of chunks for small files.
    pub fn give_up_chunks(&mut self) {
        for chunk in std::mem::take(&mut self.chunks) {
            self.free_now(chunk);
        }
    }

    /// Finds room for blocks of a file.
    pub fn allocate(&mut self, wanted: &Wanted) -> Option<Grant> {
        let grant = self.grant(wanted)?;
        self.used(&grant.blocks);
        Some(grant)
    }

    fn grant(&mut self, wanted: &Wanted) -> Option<Grant> {
        if wanted.size <= SMALL {
            return self.cut_off_chunk(wanted);
        }
        let piece = if wanted.is_closed { wanted.request() } else { wanted.enlarged() };
        let length = piece.end - piece.start;
        let found = if wanted.is_closed {
            // Observed on 6.12: it does not go on where the file ended, but stays in that group.
            let group = wanted.goal.map_or(wanted.group, |goal| goal / GROUP);
            self.search(group, length)?
        } else {
            // Observed on 6.12: of random writes into a hole none goes on at a distance.
            let skipped = wanted.first - piece.start;
            let goal = wanted.goal.filter(|_| piece.start == wanted.behind);
            let found = match goal.and_then(|goal| self.at(goal.checked_sub(skipped)?, length)) {
                Some(found) => found,
                None => self.search_large(length)?,
            };
            self.stream = found.start / GROUP;
            found
        };
        // What is too short for the request begins with it. // traced on 7.3
        let is_short = found.end - found.start < wanted.length;
        let skipped = if is_short { 0 } else { wanted.first - piece.start };
        let from = found.start + skipped;
        let end = (from + wanted.length).min(found.end);
        let group = found.start / GROUP;
        let around =
            [(piece.start, found.start..from), (wanted.first + (end - from), end..found.end)];
        let kept = around.into_iter().filter(|(_, places)| !places.is_empty()).collect();
        Some(Grant { blocks: from..end, kept, group })
    }

    /// Finds room for so many blocks as they are, together, for an empty file (fallocate). Observed
    /// on 6.12: small ones beside the inode, larger ones where the last ones went.
    pub fn allocate_exactly(&mut self, group: u64, length: u64) -> Option<Range<u64>> {
        let found = if length <= SMALL {
            self.search(group, length)?
        } else {
            let found = self.search_large(length)?;
            self.stream = found.start / GROUP;
            found
        };
        self.used(&found);
        Some(found)
    }

    /// One block for what a file system keeps of a file: the first that is free from a group on.
    pub fn metadata_block(&mut self, group: u64) -> Option<u64> {
        let found = self.search(group, 1)?;
        self.used(&found);
        Some(found.start)
    }

    /// Blocks are free when a transaction is on the disk.
    pub fn free_after(&mut self, transaction: u64, blocks: Range<u64>) {
        self.unused += blocks.end - blocks.start;
        self.pending.push((transaction, blocks));
    }

    /// Blocks that nobody must keep until a transaction is on the disk are free at once.
    pub fn free_at_once(&mut self, blocks: Range<u64>) {
        self.unused += blocks.end - blocks.start;
        self.free_now(blocks);
    }

    /// Blocks that were kept but not used are free at once.
    pub fn free_now(&mut self, blocks: Range<u64>) {
        if blocks.is_empty() {
            return;
        }
        let group = blocks.start / GROUP;
        self.free[group as usize] += blocks.end - blocks.start;
        let extents = self.extents(group);
        let (mut start, mut end) = (blocks.start, blocks.end);
        if let Some((&before, &before_end)) = extents.range(..start).next_back()
            && before_end == start
        {
            extents.remove(&before);
            start = before;
        }
        if let Some(after_end) = extents.remove(&end) {
            end = after_end;
        }
        extents.insert(start, end);
    }

    /// A transaction is on the disk.
    pub fn committed(&mut self, transaction: u64) {
        let (done, left): (Vec<_>, Vec<_>) =
            self.pending.drain(..).partition(|(number, _)| *number <= transaction);
        self.pending = left;
        for (_, blocks) in done {
            self.free_now(blocks);
        }
    }

    fn cut_off_chunk(&mut self, wanted: &Wanted) -> Option<Grant> {
        let length = wanted.length;
        let fits = |chunk: &Range<u64>| chunk.end - chunk.start >= length;
        if !self.chunks.iter().any(fits) {
            let found = self.search(wanted.group, CHUNK)?;
            self.chunks.push(found);
        }
        let chunk = self.chunks.iter_mut().find(|chunk| fits(chunk))?;
        let start = chunk.start;
        chunk.start += length;
        let group = start / GROUP;
        self.chunks.retain(|chunk| !chunk.is_empty());
        Some(Grant { blocks: start..start + length, kept: Vec::new(), group })
    }

    /// Takes blocks from a place on, if all of them are free.
    fn at(&mut self, start: u64, length: u64) -> Option<Range<u64>> {
        let group = start / GROUP;
        let (_, &end) = self.extents(group).range(..=start).next_back()?;
        (end >= start + length).then(|| self.take(group, start..start + length))
    }

    /// Takes blocks for a large request: from the group of the last one on, or elsewhere.
    fn search_large(&mut self, length: u64) -> Option<Range<u64>> {
        if self.goes_by_known
            && is_buddy(length)
            && let Some(found) = self.search_known(length)
        {
            return Some(found);
        }
        let stays = self.stream > 0 || self.is_rotational || is_buddy(length);
        let from = if stays { self.stream } else { self.most_in_pieces(length) };
        self.search(from, length)
    }

    /// Takes a buddy from the group of the last large request, or from that which has been known
    /// longest of those that have one.
    fn search_known(&mut self, length: u64) -> Option<Range<u64>> {
        let last = Some(self.stream).filter(|group| *group > 0);
        let known: Vec<u64> = last.into_iter().chain(self.seen.iter().copied()).collect();
        self.first_with(known.into_iter(), length, Space::buddy)
    }

    /// The group whose free extents are the smallest in the mean, by powers of two, of those that
    /// were looked into and have room. Observed on 6.12 where nothing rotates, while the last large
    /// request was in the first group.
    fn most_in_pieces(&mut self, length: u64) -> u64 {
        self.look_into(self.stream);
        let mut fitting = self.seen.clone();
        fitting.retain(|group| self.roomy_run(*group, length).is_some());
        let best = fitting.into_iter().min_by_key(|group| self.mean_extent(*group).ilog2());
        best.unwrap_or(self.stream)
    }

    fn look_into(&mut self, group: u64) {
        if (self.goes_by_known || self.stream == 0) && !self.seen.contains(&group) {
            self.seen.push(group);
        }
    }

    /// The mean length of a group's free extents.
    fn mean_extent(&mut self, group: u64) -> u64 {
        let extents = self.extents(group);
        let free: u64 = extents.iter().map(|(start, end)| end - start).sum();
        free / extents.len().max(1) as u64
    }

    /// Takes blocks from the first group from one on that has them together.
    fn search(&mut self, from: u64, length: u64) -> Option<Range<u64>> {
        self.look_into(from);
        let groups = self.layout.groups();
        let mut length = length.min(GROUP - 1);
        while length > 0 {
            let around = || (from..groups).chain(0..from);
            let aside = around().filter(|group| !group.is_multiple_of(UNIT));
            if is_buddy(length)
                && let Some(found) = self.first_with(aside, length, Space::buddy)
            {
                return Some(found);
            }
            for find in [Space::roomy_run, Space::run] {
                if let Some(found) = self.first_with(around(), length, find) {
                    return Some(found);
                }
            }
            length /= 2;
        }
        None
    }

    fn first_with(
        &mut self,
        mut groups: impl Iterator<Item = u64>,
        length: u64,
        find: fn(&mut Space, u64, u64) -> Option<u64>,
    ) -> Option<Range<u64>> {
        let (group, start) = groups.find_map(|group| {
            let may_fit = self.free[group as usize] >= length;
            Some((group, may_fit.then(|| find(self, group, length))??))
        })?;
        self.look_into(group);
        Some(self.take(group, start..start + length))
    }

    /// A buddy in a group.
    fn buddy(&mut self, group: u64, length: u64) -> Option<u64> {
        buddies::lowest_buddy(self.extents(group), group * GROUP, length)
    }

    /// A run of buddies in a group.
    fn run(&mut self, group: u64, length: u64) -> Option<u64> {
        buddies::lowest_run(self.extents(group), group * GROUP, length)
    }

    /// The same, where free extents are as long as the request in the mean.
    fn roomy_run(&mut self, group: u64, length: u64) -> Option<u64> {
        if self.mean_extent(group) < length { None } else { self.run(group, length) }
    }

    fn take(&mut self, group: u64, blocks: Range<u64>) -> Range<u64> {
        self.free[group as usize] -= blocks.end - blocks.start;
        let extents = self.extents(group);
        let (&start, &end) = extents.range(..=blocks.start).next_back().expect("it is free");
        assert!(end >= blocks.end, "{blocks:?} is not free in group {group}");
        extents.remove(&start);
        if start < blocks.start {
            extents.insert(start, blocks.start);
        }
        if blocks.end < end {
            extents.insert(blocks.end, end);
        }
        blocks
    }

    fn extents(&mut self, group: u64) -> &mut BTreeMap<u64, u64> {
        let layout = &self.layout;
        self.groups.entry(group).or_insert_with(|| {
            let (start, end) = (layout.first_free(group), layout.end(group));
            if start < end { BTreeMap::from([(start, end)]) } else { BTreeMap::new() }
        })
    }
}

impl Wanted {
    fn request(&self) -> Range<u64> {
        self.first..self.first + self.length
    }

    /// The request made larger and aligned (rule ext4-space-2), as far as there is room.
    fn enlarged(&self) -> Range<u64> {
        let end = self.size.max(self.first + self.length);
        let piece = |size: u64| {
            let start = self.first / size * size;
            start..start + size
        };
        let whole = match end {
            _ if end <= MIB => 0..end.next_power_of_two().max(LEAST_BUDDY),
            _ if end <= 4 * MIB => piece(2 * MIB),
            _ if end <= 8 * MIB => piece(4 * MIB),
            _ if self.length <= 8 * MIB => piece(8 * MIB),
            _ => self.request(),
        };
        whole.start.max(self.hole.start)..whole.end.min(self.hole.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inode::Inode;

    #[test]
    fn the_first_large_request_of_6_1_begins_in_a_late_group() {
        // Observed on 6.1: blocks of the disk, whether it rotates, group and block in it.
        let seen = [(10 << 20, 127, 0), (1_953_125, 59, 18432), (976_562, 29, 25600)];
        for (blocks, group, block) in seen {
            let space = |rotates| Space::new(Layout::new(blocks * BLOCK), rotates);
            let place = |space: Space| space.going_by_known(true).search_large(512).unwrap();
            let start = place(space(false)).start;
            assert_eq!((start / GROUP, start % GROUP), (group, block), "{blocks}");
            assert_eq!(place(space(true)).start / GROUP, 1, "{blocks}");
        }
    }

    #[test]
    fn large_requests_of_6_1_go_through_the_last_of_each_128_groups_first() {
        // Observed on 6.1 (ext4_mballoc_alloc) while files of 256 MiB are written: gigabytes of the
        // disk, and the groups.
        let seen: [(u64, &[u64]); 2] = [(40, &[127, 255, 63, 1, 2]), (239, &[127, 255, 383, 511])];
        for (size, groups) in seen {
            let mut space = Space::new(Layout::new(size << 30), false).going_by_known(true);
            // A leaf.
            space.metadata_block(1);
            let mut found = Vec::new();
            while found.len() < groups.len() {
                found.push(space.allocate_exactly(1, 2048).unwrap().start / GROUP);
                found.dedup();
            }
            assert_eq!(found, groups, "{size} GiB");
        }
    }

    #[test]
    fn as_much_is_free_as_dumpe2fs_says() {
        // Blocks of the disk, free ones.
        for (blocks, free) in [(262_144, 249_189), (524_288, 498_132), (10 << 20, 10_243_378)] {
            let space = Space::new(Layout::new(blocks * BLOCK), true);
            assert_eq!(space.unused, free, "{blocks}");
            let listed =
                |group| space.clone().extents(group).iter().map(|it| it.1 - it.0).sum::<u64>();
            assert_eq!((0..space.layout.groups()).map(listed).sum::<u64>(), free, "{blocks}");
        }
    }

    fn space() -> Space {
        Space::new(Layout::new(40 << 30), false)
    }

    fn whole_file(blocks: u64) -> Wanted {
        Wanted {
            first: 0,
            length: blocks,
            size: blocks,
            group: 1,
            behind: 0,
            goal: None,
            hole: 0..u64::MAX,
            is_closed: false,
        }
    }

    /// Writes a file at once and closes it.
    fn write(space: &mut Space, blocks: u64) -> u64 {
        let grant = space.allocate(&whole_file(blocks)).unwrap();
        assert_eq!(grant.blocks.end - grant.blocks.start, blocks);
        grant.kept.into_iter().for_each(|(_, kept)| space.free_now(kept));
        grant.blocks.start
    }

    #[test]
    fn files_of_many_sizes_lie_where_6_12_puts_them() {
        // Observed: 1 MiB, 1 MiB, 8 KiB, 300 KiB.
        let mut space = space();
        let starts = [256, 256, 2, 75].map(|blocks| write(&mut space, blocks));
        assert_eq!(starts, [34_048, 34_304, 34_816, 33_920]);
        // 20 MiB in three pieces.
        let first = space.allocate(&Wanted { size: 5120, ..whole_file(2048) }).unwrap();
        assert_eq!(first.blocks, 36_864..38_912);
        let more = |first, length, goal| Wanted {
            first,
            length,
            size: 5120,
            behind: first,
            goal: Some(goal),
            hole: first..u64::MAX,
            ..whole_file(1)
        };
        let second = space.allocate(&more(2048, 2048, 38_912)).unwrap();
        assert_eq!((second.blocks, second.kept), (38_912..40_960, vec![]));
        let third = space.allocate(&more(4096, 1024, 40_960)).unwrap();
        assert_eq!(third.blocks, 40_960..41_984);
        space.free_now(third.kept[0].1.clone());
        let starts = [256, 2, 16, 17].map(|blocks| write(&mut space, blocks));
        assert_eq!(starts, [34_560, 34_818, 34_820, 33_824]);
    }

    #[test]
    fn a_piece_that_is_too_short_for_the_request_begins_with_it() {
        // Traced on 7.3: where 272 blocks from 464 on go, behind a hole from 336 on.
        let mut space = space();
        let wanted =
            Wanted { first: 464, size: 736, hole: 336..u64::MAX, behind: 464, ..whole_file(272) };
        let grant = space.allocate(&wanted).unwrap();
        assert_eq!(grant.blocks.end - grant.blocks.start, 176);
        assert_eq!(grant.kept, []);
        let wanted = Wanted { size: 512, ..wanted };
        let grant = space.allocate(&Wanted { length: 48, ..wanted }).unwrap();
        assert_eq!(grant.blocks.end - grant.blocks.start, 48);
        assert_eq!(grant.kept[0].1.end, grant.blocks.start);
    }

    #[test]
    fn a_file_that_grows_block_by_block_gets_larger_and_larger_pieces() {
        // Observed on 6.12: blocks of the file, and where they are.
        let mut space = space();
        let mut inode = Inode::default();
        let mut places = Vec::new();
        for first in 0..600 {
            let goal = places.last().map(|last| last + 1);
            if let Some(taken) = inode.take_kept(&(first..first + 1)) {
                places.push(taken.start);
                continue;
            }
            let (size, behind, hole) = (first + 1, first, first..u64::MAX);
            let one = Wanted { first, length: 1, size, behind, goal, hole, ..whole_file(1) };
            let grant = space.allocate(&one).unwrap();
            places.push(grant.blocks.start);
            grant.kept.into_iter().for_each(|(at, kept)| inode.keep(at, kept));
        }
        assert_eq!((places[0], places[15]), (34_304, 34_319));
        assert_eq!((places[16], places[511]), (33_808, 34_303));
        assert_eq!((places[512], places[599]), (34_816, 34_903));
    }

    #[test]
    fn random_writes_into_a_hole_lie_where_6_12_puts_them() {
        // Observed on a disk of 128 GB (trace of mballoc): blocks of the file, and where they are;
        // before the sixth a leaf was made.
        let observed = [
            [(572, 34_364), (4896, 35_616), (7932, 38_652), (3056, 39_920), (404, 41_364)],
            [(6088, 36_808), (6796, 37_516), (1192, 42_152), (5220, 35_940), (2192, 39_056)],
            [(1860, 42_820), (1032, 41_992), (4172, 34_892), (252, 41_212), (812, 34_604)],
        ];
        let (mut space, mut inode, mut size) = (space(), Inode::default(), 0);
        for (number, (first, place)) in observed.into_iter().flatten().enumerate() {
            if number == 5 {
                space.metadata_block(1);
            }
            size = size.max(first + 4);
            let start = match inode.take_kept(&(first..first + 4)) {
                Some(taken) => taken.start,
                None => {
                    let (goal, hole) = (inode.goal(first), inode.hole_beside_kept(first));
                    let behind = inode.hole(first).start;
                    let one = Wanted { first, length: 4, size, behind, goal, ..whole_file(4) };
                    let grant = space.allocate(&Wanted { hole, ..one }).unwrap();
                    grant.kept.into_iter().for_each(|(at, kept)| inode.keep(at, kept));
                    grant.blocks.start
                }
            };
            assert_eq!(start, place, "block {first}");
            inode.map(first, start, 4, true);
        }
    }

    #[test]
    fn room_that_is_asked_for_beforehand_lies_where_6_12_puts_it() {
        // Observed: fallocate of 4 KiB, 64 KiB, 68 KiB, 300 KiB, 1 MiB, 1028 KiB, 6, 12, 20 MiB.
        let mut one = space();
        let lengths = [1, 16, 17, 75, 256, 257, 1536, 3072, 5120];
        let starts = lengths.map(|length| one.allocate_exactly(1, length).unwrap().start);
        let expected = [1030, 1040, 1056, 1073, 1280, 1536, 1793, 3329, 16_384];
        assert_eq!(starts, expected.map(|block| GROUP + block));
        // 100 MiB, 64 MiB, 127 MiB, 32 MiB.
        let mut other = space();
        let lengths = [25_600, 16_384, 32_512, 8192];
        let starts = lengths.map(|length| other.allocate_exactly(1, length).unwrap().start);
        assert_eq!(starts, [33_798, 65_536, 131_072, 172_032]);
    }

    #[test]
    fn the_first_large_request_of_all_lies_in_the_first_group() {
        // Observed: files of 68, 300, 1000 and 1368 KiB, each on a fresh disk of 40 GiB, and 1 MiB.
        let first = |length| space().allocate_exactly(1, length).unwrap().start;
        assert_eq!([17, 75, 250, 342].map(first), [9260; 4]);
        assert_eq!(first(256) / GROUP, 1);
    }

    #[test]
    fn powers_of_two_go_by_the_first_group_of_a_unit() {
        // Observed with fallocate on fresh disks of 100 GiB: the group of each.
        let groups = |lengths: &[u64]| {
            let mut space = Space::new(Layout::new(100 << 30), true);
            let group = |length| space.allocate_exactly(1, length).unwrap().start / GROUP;
            lengths.iter().copied().map(group).collect::<Vec<_>>()
        };
        assert_eq!(groups(&[342, 342, 4096, 342]), [0, 0, 1, 1]);
        assert_eq!(groups(&[342, 3, 342, 17, 342]), [0, 1, 0, 0, 0]);
        assert_eq!(groups(&[16, 342, 64]), [1, 0, 1]);
        assert_eq!(groups(&[5000; 5]), [0, 0, 0, 1, 1]);
        assert_eq!(groups(&[30_000, 20_000, 64, 342, 16, 64]), [1, 2, 2, 2, 1, 2]);
        let mut lengths = vec![30_000; 15];
        lengths.extend([20_000, 64, 342, 4096]);
        assert_eq!(groups(&lengths)[13..], [14, 15, 16, 17, 17, 17]);
    }

    #[test]
    fn where_nothing_rotates_large_requests_begin_in_the_group_that_is_most_in_pieces() {
        // Observed with fallocate on fresh disks of 40 GiB: the group of each.
        let groups = |lengths: &[u64]| {
            let mut space = space();
            let group = |length| space.allocate_exactly(1, length).unwrap().start / GROUP;
            lengths.iter().copied().map(group).collect::<Vec<_>>()
        };
        assert_eq!(groups(&[342, 342, 64, 342]), [0, 0, 1, 1]);
        assert_eq!(groups(&[342, 3, 342, 16, 342]), [0, 1, 0, 1, 1]);
        assert_eq!(groups(&[342, 8, 342, 3, 342]), [0, 1, 1, 1, 1]);
        assert_eq!(groups(&[342, 3, 3, 342]), [0, 1, 1, 0]);
        assert_eq!(groups(&[1, 342]), [1, 1]);
        assert_eq!(groups(&[5000; 8]), [0, 0, 0, 1, 1, 1, 1, 1]);
        assert_eq!(groups(&[30_000, 20_000, 64, 342, 16, 64]), [1, 2, 2, 2, 1, 2]);
    }

    #[test]
    fn the_rest_of_a_closed_file_stays_in_the_files_group() {
        // Observed: 120,000 and 80,000 KiB set aside; 300 KiB written and closed, then made
        // durable; 300 KiB made durable, then closed; 10,000 KiB written in pieces, and closed.
        let mut space = Space::new(Layout::new(100 << 30), true);
        for length in [30_000, 20_000] {
            space.allocate_exactly(1, length).unwrap();
        }
        let closed = Wanted { is_closed: true, ..whole_file(75) };
        assert_eq!(space.allocate(&closed).unwrap().blocks, 63_806..63_881);
        assert_eq!(space.allocate(&whole_file(75)).unwrap().blocks.start, 2 * GROUP + 20_096);
        let rest = Wanted { first: 2048, length: 452, size: 2500, ..closed };
        let rest = Wanted { goal: Some(2 * GROUP + 22_528), ..rest };
        assert_eq!(space.allocate(&rest).unwrap().group, 2);
    }

    #[test]
    fn what_is_freed_is_used_again_when_that_is_on_the_disk() {
        let mut space = space();
        let start = write(&mut space, 64);
        assert_eq!(start, 33_856);
        space.free_after(3, start..start + 64);
        assert_eq!(write(&mut space, 64), 33_920 - 64 + 64);
        space.committed(3);
        assert_eq!(write(&mut space, 64), 33_856);
    }
}
