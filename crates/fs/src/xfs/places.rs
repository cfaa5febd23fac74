//! What is logged on its way to the log and to its place, and who sees to that (rules xfs-ail-1 to
//! xfs-ail-3).

use super::Xfs;
use super::layout::SECTORS;
use super::log::Item;
use block::ContextId;
use std::ops::Range;

/// The superblock.
const SUPERBLOCK: Range<u64> = 0..1;

impl Xfs {
    /// A task writes a log buffer by an operation.
    pub fn note_log_write(&mut self, task: ContextId, operation: u64, buffer: u64) {
        self.log_writes.push((task, operation, buffer));
    }

    /// Whether an operation of a task writes a log buffer.
    pub fn is_log_write(&self, task: ContextId, operation: u64) -> bool {
        self.log_writes.iter().any(|it| (it.0, it.1) == (task, operation))
    }

    /// An operation of a task is done. If it wrote a log buffer, the answer is who waits for that.
    pub fn written_by(&mut self, task: ContextId, operation: u64) -> Option<Vec<ContextId>> {
        let is_it = |it: &(ContextId, u64, u64)| (it.0, it.1) == (task, operation);
        let at = self.log_writes.iter().position(is_it)?;
        let (_, _, buffer) = self.log_writes.remove(at);
        let woken = self.log.written(buffer);
        self.space.stable(self.log.stable);
        Some(woken)
    }

    /// The last checkpoint that something is or will be in.
    pub fn last_changed(&self) -> u64 {
        match self.log.is_unchanged() {
            true => self.log.sequence - 1,
            false => self.log.sequence,
        }
    }

    /// The tasks that write metadata to their places, that take away what has no name, and that put
    /// checkpoints into log buffers.
    pub fn set_tasks(&mut self, placer: ContextId, inactivator: ContextId, pusher: ContextId) {
        (self.placer, self.inactivator, self.pusher) = (placer, inactivator, pusher);
    }

    /// The task that puts checkpoints into log buffers.
    pub fn pusher(&self) -> ContextId {
        self.pusher
    }

    /// The task that takes away what has no name.
    pub fn inactivator(&self) -> ContextId {
        self.inactivator
    }

    /// The task that writes metadata to their places, if there is a reason for it to.
    pub fn wanted_placer(&self) -> Option<ContextId> {
        self.wants_to_place().then_some(self.placer)
    }

    /// The same task, if it sleeps without end and there is something to look at again.
    pub fn resting_placer(&self) -> Option<ContextId> {
        (self.placer_rests && !self.log.is_placed()).then_some(self.placer)
    }

    /// Whether something is to go to its place now.
    fn wants_to_place(&self) -> bool {
        (self.places_all || self.log.is_crowded()) && !self.log.is_placed()
    }

    /// That task falls asleep; whether it is for so long as nothing is in the log.
    pub fn placer_sleeps(&mut self) -> bool {
        self.placer_rests = self.log.is_placed();
        self.placer_rests
    }

    /// Everything that is logged is to go to its place as soon as it can.
    pub fn place_all(&mut self) {
        self.places_all = true;
    }

    /// A log to which nothing happens any more gets a superblock, twice, so that it can say that it
    /// is clean; whether that has been done now.
    pub fn cover(&mut self) -> bool {
        let covers = self.covers_left > 0 && self.log.is_idle();
        if covers {
            let left = self.covers_left - 1;
            self.change_buffer(SUPERBLOCK);
            self.covers_left = left;
        }
        covers
    }

    /// What is to go to its place now and can, if anything, and where that is, in sectors and in
    /// ascending order; inodes that lie together are written together.
    pub fn take_to_place(&mut self) -> Option<(Vec<Item>, Vec<Range<u64>>)> {
        if !self.wants_to_place() {
            return None;
        }
        self.places_all = false;
        let items = self.log.to_be_placed();
        let places = self.places(&items);
        Some((items, places))
    }

    /// Things are in their places.
    pub fn placed(&mut self, items: Vec<Item>) {
        for item in items {
            self.log.placed(item);
            if let Item::Buffer(sector, _) = item {
                self.inodes_parts.remove(&sector);
                self.trees.values_mut().for_each(|it| it.written(sector / SECTORS));
            }
            if let Item::Inode(number) = item {
                self.with_fork.remove(&number);
                let file = self.files.inodes.iter_mut().find(|it| it.number == number);
                file.into_iter().for_each(|it| it.is_unsynced = false);
            }
        }
    }

    fn places(&self, items: &[Item]) -> Vec<Range<u64>> {
        let place = |item: &Item| match *item {
            Item::Buffer(start, sectors) => start..start + sectors,
            Item::Inode(number) => self.layout.cluster(number),
            Item::Cancelled(sector) => sector..sector,
        };
        let places = items.iter().map(place).filter(|it| !it.is_empty());
        let mut places: Vec<Range<u64>> = places.collect();
        places.sort_by_key(|it| it.start);
        places.dedup();
        debug_assert!(places.iter().all(|it| it.end - it.start <= 4 * SECTORS));
        places
    }
}
