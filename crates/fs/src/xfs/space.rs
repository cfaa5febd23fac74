//! Which blocks are free, and which of them are taken.
//!
//! A file goes on where it ends if there is room; otherwise it gets the first room from the start
//! of a group that is large enough, and failing that the largest there is. What was freed is used
//! again when the log says on the disk that it is free. While somebody looks for room in a group,
//! others look in the next. All observed on 6.12.
//!
// Divergence: room near to a place is found by looking along the group. What metadata take counts
// against the room of files.

use super::busy::Busy;
use super::layout::{GROUPS, Layout};
use block::ContextId;
use std::collections::BTreeMap;
use std::ops::Range;

/// Free blocks.
#[derive(Clone)]
pub struct Space {
    groups: Vec<Group>,
    group_blocks: u64,
    /// Blocks that files may be given.
    room: u64,
}

/// Those of a group.
#[derive(Clone)]
struct Group {
    /// Free extents: first block and end.
    free: BTreeMap<u64, u64>,
    /// How many blocks that are, and how many of them files do not get.
    blocks: u64,
    held: u64,
    busy: Busy,
    /// Somebody looks for room in it, and who waits for that.
    lock: Option<Vec<ContextId>>,
}

impl Space {
    /// All that is free of a fresh file system.
    pub fn new(layout: &Layout) -> Space {
        let fresh = |group| {
            let whole = layout.group(group);
            let free = BTreeMap::from([(whole.start, whole.end)]);
            let blocks = whole.end - whole.start;
            let held = layout.held(group);
            let mut fresh = Group { free, blocks, held, busy: Busy::default(), lock: None };
            let used = layout.used(group);
            used.into_iter().filter(|it| !it.is_empty()).for_each(|it| fresh.take(it));
            fresh
        };
        let groups: Vec<Group> = (0..GROUPS).map(fresh).collect();
        let room = groups.iter().map(|it| it.blocks.saturating_sub(it.held)).sum::<u64>();
        let room = room.saturating_sub(layout.pool());
        Space { groups, group_blocks: layout.group_blocks, room }
    }

    /// How many blocks files may still be given.
    pub fn room(&self) -> u64 {
        self.room
    }

    /// Whether something was freed that cannot be used yet.
    pub fn is_busy(&self) -> bool {
        self.groups.iter().any(|it| !it.busy.is_empty())
    }

    /// The group of a block.
    pub fn group_of(&self, block: u64) -> u64 {
        block / self.group_blocks
    }

    /// A task wants to look for room: in which group it may, from one on.
    pub fn lock_any(&mut self, from: u64) -> Option<u64> {
        let mut order = (from..GROUPS).chain(0..from);
        order.find(|group| self.lock(*group))
    }

    /// A task wants to change what is free in a group; false if it must wait.
    pub fn lock(&mut self, group: u64) -> bool {
        let lock = &mut self.groups[group as usize].lock;
        let is_free = lock.is_none();
        lock.get_or_insert_default();
        is_free
    }

    /// A task falls asleep until nobody looks for room in a group.
    pub fn wait(&mut self, group: u64, task: ContextId) {
        self.groups[group as usize].lock.get_or_insert_default().push(task);
    }

    /// Nobody looks for room in a group any more; answers with who waited.
    pub fn unlock(&mut self, group: u64) -> Vec<ContextId> {
        self.groups[group as usize].lock.take().unwrap_or_default()
    }

    /// Takes at most so many blocks of a file together in one of some groups, from a place on if it
    /// is free. None if there is no room; or if a group has some, but not before the log says so on
    /// the disk (observed on 6.12: nobody looks further then).
    pub fn allocate_in(
        &mut self,
        mut groups: impl Iterator<Item = u64>,
        goal: Option<u64>,
        length: u64,
    ) -> Option<Range<u64>> {
        groups.find_map(|group| {
            let trimmed = self.trimmed(group, length);
            let Some(free) = trimmed else { return self.allocate(group, goal, length).map(Some) };
            let length = self.groups[group as usize].most(length);
            let start = fit(&free, goal, length);
            Some(start.map(|start| self.take(group, start..start + length)))
        })?
    }

    /// Takes at most so many blocks together in a group, from a place on if that is free.
    pub fn allocate(&mut self, group: u64, goal: Option<u64>, length: u64) -> Option<Range<u64>> {
        let it = &self.groups[group as usize];
        let length = it.most(length);
        let found = match fit(&it.free, goal, length) {
            Some(start) => start..start + length,
            None => it.largest(length)?,
        };
        Some(self.take(group, found))
    }

    /// Takes the free block of a group that is nearest to a place, of two the one behind it.
    // Observed on 6.12.117: leaves of the extents of inodes in block 16, where 10 to 15 were free,
    // were made in 15 first, and in 10 last.
    pub fn allocate_near(&mut self, group: u64, place: u64) -> Option<u64> {
        let it = &self.groups[group as usize];
        if it.most(1) == 0 {
            return None;
        }
        let before = it.free.range(..=place).next_back().map(|(_, end)| place.min(end - 1));
        let behind = it.free.range(place..).next().map(|(start, _)| *start);
        let found = behind.into_iter().chain(before).min_by_key(|it| it.abs_diff(place))?;
        Some(self.take(group, found..found + 1).start)
    }

    fn take(&mut self, group: u64, blocks: Range<u64>) -> Range<u64> {
        self.groups[group as usize].take(blocks.clone());
        self.room = self.room.saturating_sub(blocks.end - blocks.start);
        blocks
    }

    /// What is free of a group for somebody who wants so many blocks: of each free extent one part
    /// that is not busy. None if nothing is busy there.
    fn trimmed(&self, group: u64, length: u64) -> Option<BTreeMap<u64, u64>> {
        let Group { busy, free, .. } = &self.groups[group as usize];
        if busy.is_empty() {
            return None;
        }
        let mut whole = free.clone();
        busy.extents().for_each(|it| put(&mut whole, it.clone()));
        let parts = whole.into_iter().filter_map(|(start, end)| {
            let part = busy.trim(start..end, length);
            (!part.is_empty()).then_some((part.start, part.end))
        });
        Some(parts.collect())
    }

    /// Takes so many blocks in a group, from a multiple of their number on: from a place on, if
    /// that is free.
    pub fn allocate_aligned(&mut self, group: u64, goal: u64, length: u64) -> Option<Range<u64>> {
        let first = group * self.group_blocks;
        let free = &self.groups[group as usize].free;
        let aligned = |start: u64| first + (start - first).next_multiple_of(length);
        let fits = |start: u64, end: u64| (aligned(start) + length <= end).then(|| aligned(start));
        let at_goal = free.range(..=goal).next_back();
        let at_goal = at_goal.and_then(|(_, end)| fits(goal, *end));
        let start = at_goal.or_else(|| free.iter().find_map(|(start, end)| fits(*start, *end)))?;
        Some(self.take(group, start..start + length))
    }

    /// Blocks are free when a sequence of the log is on the disk.
    pub fn free_after(&mut self, sequence: u64, blocks: Range<u64>) {
        self.room += blocks.end - blocks.start;
        let group = self.group_of(blocks.start);
        self.groups[group as usize].busy.add(sequence, blocks);
    }

    /// A sequence of the log is on the disk.
    pub fn stable(&mut self, sequence: u64) {
        for group in &mut self.groups {
            group.busy.stable(sequence).into_iter().for_each(|it| group.put(it));
        }
    }
}

impl Group {
    /// At most so many blocks, and no more than may be given away.
    fn most(&self, length: u64) -> u64 {
        length.min(self.blocks.saturating_sub(self.held))
    }

    fn largest(&self, length: u64) -> Option<Range<u64>> {
        if length == 0 {
            return None;
        }
        let (&start, &end) = self.free.iter().max_by_key(|(start, end)| *end - *start)?;
        Some(start..end.min(start + length))
    }

    fn take(&mut self, blocks: Range<u64>) {
        let (&start, &end) = self.free.range(..=blocks.start).next_back().expect("it is free");
        assert!(end >= blocks.end, "{blocks:?} is not free");
        self.blocks -= blocks.end - blocks.start;
        self.free.remove(&start);
        if start < blocks.start {
            self.free.insert(start, blocks.start);
        }
        if blocks.end < end {
            self.free.insert(blocks.end, end);
        }
    }

    fn put(&mut self, blocks: Range<u64>) {
        self.blocks += blocks.end - blocks.start;
        put(&mut self.free, blocks);
    }
}

/// Adds blocks to free extents, joined with those they touch.
fn put(free: &mut BTreeMap<u64, u64>, blocks: Range<u64>) {
    let Range { mut start, mut end } = blocks;
    let before = free.range(..start).next_back().filter(|it| *it.1 == start);
    if let Some(before) = before.map(|it| *it.0) {
        free.remove(&before);
        start = before;
    }
    if let Some(after) = free.remove(&end) {
        end = after;
    }
    free.insert(start, end);
}

/// Where so many blocks fit, more than none: near to a place, or where there is room first.
fn fit(free: &BTreeMap<u64, u64>, goal: Option<u64>, length: u64) -> Option<u64> {
    if length == 0 {
        return None;
    }
    near(free, goal, length).or_else(|| first_fit(free, length))
}

/// The room that begins nearest to a place, or at it (observed on 6.1 and 6.12: dd, directly and
/// not, with free room of 64 and 4,096 blocks before the place and more behind).
fn near(free: &BTreeMap<u64, u64>, goal: Option<u64>, length: u64) -> Option<u64> {
    let goal = goal?;
    let is_large = |(start, end): &(&u64, &u64)| *end - *start >= length;
    let before = free.range(..=goal).rev().find(is_large);
    let before = before.map(|(start, end)| if goal + length <= *end { goal } else { *start });
    let behind = free.range(goal..).find(is_large).map(|(start, _)| *start);
    let found = behind.into_iter().chain(before);
    found.min_by_key(|start| start.abs_diff(goal))
}

fn first_fit(free: &BTreeMap<u64, u64>, length: u64) -> Option<u64> {
    free.iter().find(|(start, end)| *end - *start >= length).map(|it| *it.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        Space::new(&Layout::new(40 << 30))
    }

    #[test]
    fn files_of_many_sizes_lie_where_6_12_puts_them() {
        let mut space = space();
        let mut place = |goal, length| space.allocate(0, goal, length).unwrap();
        assert_eq!(place(None, 6), 10..16);
        assert_eq!(place(Some(16), 1), 24..25, "behind the inodes");
        assert_eq!(place(Some(25), 4), 25..29);
        assert_eq!(space.allocate(2, None, 8).unwrap().start, 2 * 2_621_440 + 16_394);
    }

    #[test]
    fn one_block_lies_as_near_as_it_can() {
        let mut space = space();
        let found = [(); 8].map(|()| space.allocate_near(0, 16).unwrap());
        assert_eq!(found, [15, 14, 13, 12, 11, 10, 24, 25]);
        assert_eq!(space.allocate_near(0, 100), Some(100));
    }

    #[test]
    fn what_is_freed_is_used_again_when_that_is_on_the_disk() {
        let mut space = space();
        let file = space.allocate(0, None, 496).unwrap();
        assert_eq!(file, 24..520);
        space.free_after(3, file);
        assert_eq!(space.allocate(0, None, 256), Some(520..776));
        assert_eq!(space.allocate(0, None, 2), Some(10..12));
        space.stable(3);
        assert_eq!(space.allocate(0, None, 75), Some(24..99));
    }

    #[test]
    fn what_is_busy_is_cut_out_of_free_extents_in_the_order_in_which_it_was_freed() {
        let mut space = space();
        assert_eq!(space.allocate(0, None, 240), Some(24..264));
        space.free_after(3, 184..264);
        space.free_after(3, 24..184);
        let place = |space: &mut Space, length| space.allocate_in(0..2, None, length);
        assert_eq!(place(&mut space, 112), None, "until the log says so");
        assert_eq!(place(&mut space, 496), Some(264..760));
        // One block of metadata is wanted at once.
        assert_eq!(space.allocate(0, None, 1), Some(10..11));
        space.stable(3);
        assert_eq!(place(&mut space, 112), Some(24..136));
    }

    #[test]
    fn the_room_that_begins_nearest_is_taken() {
        let free = BTreeMap::from([(24, 88), (360, 2000)]);
        let rows = [(28, 28), (104, 24), (78, 24), (250, 360), (1000, 1000)];
        for (goal, start) in rows {
            assert_eq!(fit(&free, Some(goal), 14), Some(start), "{goal}");
        }
        assert_eq!(fit(&free, Some(28), 100), Some(360));
        assert_eq!(fit(&free, None, 14), Some(24));
    }

    #[test]
    fn who_finds_a_group_taken_looks_in_the_next() {
        let mut space = space();
        assert_eq!((space.lock_any(0), space.lock_any(0)), (Some(0), Some(1)));
        assert!(!space.lock(0));
        space.wait(0, ContextId(7));
        assert_eq!(space.unlock(0), [ContextId(7)]);
        assert_eq!(space.lock_any(3), Some(3));
        assert_eq!(
            (space.lock_any(3), space.lock_any(3), space.lock_any(3)),
            (Some(0), Some(2), None)
        );
    }
}
