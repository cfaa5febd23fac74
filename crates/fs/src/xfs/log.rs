//! The log: what was changed and is only in memory, what is on its way to the log, and what is
//! there but not in its place.
//!
//! A transaction puts what it changed into a list in memory and is done. Whoever wants it durable
//! has the list written as a whole: a *checkpoint*, which goes into the log buffer that is being
//! filled, and with that buffer to the disk (rules xfs-log and xfs-force). What is there is to be
//! written to its place some day (rules xfs-ail-1 and xfs-ail-2). How many bytes a change has in
//! the log was observed with `xfs_logprint`. This file knows nothing of time, bios or tasks, but
//! for whom to wake.
//!
// Divergence: the list is written only when somebody asks or the worker comes, not because it is
// long; operations that continue in the next buffer have no header of their own.

use block::ContextId;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Bytes of a sector, and of the header of a log record.
const SECTOR: u64 = 512;
/// A record has a sector of header for so many bytes (rule xfs-log-3; observed).
const DESCRIBED: u64 = 32 << 10;
/// Bytes in front of each piece that is logged.
const OPERATION: u64 = 12;
/// Bytes around a checkpoint: its start, a header, its end (observed: xfs_logprint).
const FRAME: u64 = OPERATION + (OPERATION + 16) + OPERATION;
/// How much of a block of metadata is logged around what changed, at least.
const PART: usize = 128;
/// The last one of a block of 4 KiB.
const LAST_PART: usize = 31;
/// Of a buffer: a description, and so much of it around what changed (observed: xfs_logprint).
const BUFFER: u64 = (OPERATION + 24) + (OPERATION + PART as u64);
/// Of an inode: a description and its core (observed: xfs_logprint).
const INODE: u64 = (OPERATION + 56) + (OPERATION + 176);

/// Something that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// A buffer of metadata: its first sector and sectors.
    Buffer(u64, u64),
    /// An inode.
    Inode(u64),
    /// A buffer of metadata that is not used any more, by its first sector: it does not go to its
    /// place.
    Cancelled(u64),
}

/// A log buffer on its way to the disk.
#[derive(Clone, Debug, Default)]
struct Buffer {
    bytes: u64,
    /// The last checkpoint in it.
    last: u64,
    items: Vec<Item>,
    /// Where it is in the log.
    at: u64,
    is_done: bool,
}

/// What one log write is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub number: u64,
    /// Sectors of the disk; two where the log begins anew.
    pub pieces: Vec<Range<u64>>,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogWait {
    /// The worker has put a checkpoint into a buffer.
    Pushed(u64),
    /// A checkpoint is on the disk.
    Stable(u64),
    /// A log buffer is on the disk.
    Buffer(u64),
}

/// How far a checkpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It is on the disk.
    Stable,
    /// It is in the buffer that is being filled; another is still being written, if a number is
    /// given.
    Active(Option<u64>),
    /// It is being written.
    Writing,
}

/// The log.
#[derive(Clone, Debug)]
pub struct Log {
    area: Range<u64>,
    /// Bytes of a buffer.
    buffer: u64,
    /// Sectors that were ever written to the log; where it goes on.
    head: u64,
    /// The list that is being collected.
    pub sequence: u64,
    changed: BTreeMap<Item, u64>,
    /// The last checkpoint on the disk.
    pub stable: u64,
    active: Buffer,
    writing: VecDeque<(u64, Buffer)>,
    next_number: u64,
    /// What is not in its place, and since where in the log.
    logged: BTreeMap<Item, u64>,
    waiting: Vec<(ContextId, LogWait)>,
    /// The worker was asked to put the checkpoint into a buffer.
    is_push_wanted: bool,
    /// Buffers that became full then and that nobody has begun to write.
    full: Vec<Record>,
    /// Who changes something at the moment.
    actor: ContextId,
    /// Who has changed something how often that is being collected.
    joined: BTreeMap<ContextId, u32>,
    /// The same of the checkpoint that was pushed last.
    pushed: (u64, BTreeMap<ContextId, u32>),
}

impl Log {
    /// An empty log in an area of the disk, with buffers of so many bytes. What mkfs wrote is in
    /// front.
    pub fn new(area: Range<u64>, buffer: u64) -> Log {
        Log {
            area,
            buffer,
            head: MADE_BY_MKFS,
            sequence: 1,
            changed: BTreeMap::new(),
            stable: 0,
            active: Buffer::default(),
            writing: VecDeque::new(),
            next_number: 1,
            logged: BTreeMap::new(),
            waiting: Vec::new(),
            is_push_wanted: false,
            full: Vec::new(),
            actor: ContextId(0),
            joined: BTreeMap::new(),
            pushed: (0, BTreeMap::new()),
        }
    }

    /// A transaction has changed something that takes so many bytes; the answer is the checkpoint
    /// that will have it.
    pub fn change(&mut self, item: Item, bytes: u64) -> u64 {
        self.changed.insert(item, bytes);
        *self.joined.entry(self.actor).or_default() += 1;
        self.sequence
    }

    /// What is changed next is changed by this task.
    pub fn acts(&mut self, task: ContextId) {
        self.actor = task;
    }

    /// Who has changed something how often in a checkpoint, if that was pushed last.
    pub fn joined(&self, sequence: u64) -> Option<&BTreeMap<ContextId, u32>> {
        Some(&self.pushed.1).filter(|_| self.pushed.0 == sequence)
    }

    /// A transaction gives up a buffer, so that it need not go to its place any more.
    pub fn cancel(&mut self, sector: u64, sectors: u64) {
        let item = Item::Buffer(sector, sectors);
        self.changed.remove(&item);
        self.logged.remove(&item);
        self.changed.insert(Item::Cancelled(sector), bytes_of_stale_buffer());
    }

    /// Whether nothing was changed since the last checkpoint.
    pub fn is_unchanged(&self) -> bool {
        self.changed.is_empty()
    }

    /// Whether everything is in its place.
    pub fn is_idle(&self) -> bool {
        self.changed.is_empty() && self.writing.is_empty() && self.logged.is_empty()
    }

    /// Puts what was changed into the buffer that is being filled, if that has not been done with
    /// this checkpoint. Answers with buffers that became full.
    pub fn push(&mut self, sequence: u64) -> Vec<Record> {
        if !self.is_collecting(sequence) {
            return Vec::new();
        }
        let changed = std::mem::take(&mut self.changed);
        let mut left = FRAME + changed.values().sum::<u64>();
        let mut full = Vec::new();
        loop {
            let room = self.buffer - self.header() * SECTOR - self.active.bytes;
            if left <= room {
                break;
            }
            self.active.bytes += room;
            left -= room;
            full.push(self.switch());
        }
        self.active.bytes += left;
        self.active.last = self.sequence;
        self.active.items.extend(changed.into_keys());
        self.pushed = (self.sequence, std::mem::take(&mut self.joined));
        self.sequence += 1;
        full
    }

    /// Whether a checkpoint is still being collected.
    pub fn is_collecting(&self, sequence: u64) -> bool {
        sequence >= self.sequence && !self.changed.is_empty()
    }

    /// Asks for a push; whether the worker is to be told.
    pub fn ask_for_push(&mut self) -> bool {
        !std::mem::replace(&mut self.is_push_wanted, true)
    }

    /// The worker pushes what was changed by now. Answers with who waited for that.
    pub fn push_all(&mut self) -> Vec<ContextId> {
        self.is_push_wanted = false;
        let full = self.push(self.sequence);
        self.full.extend(full);
        let is_push = |it: &mut (ContextId, LogWait)| matches!(it.1, LogWait::Pushed(_));
        self.waiting.extract_if(.., is_push).map(|(task, _)| task).collect()
    }

    /// Buffers that became full and are to be written, once.
    pub fn take_full(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.full)
    }

    /// How far a checkpoint is that was pushed.
    pub fn stage(&self, sequence: u64) -> Stage {
        if sequence <= self.stable {
            return Stage::Stable;
        }
        // Behind it others may have been pushed, into the buffer after a full one.
        let is_on_its_way = self.writing.iter().any(|(_, buffer)| buffer.last >= sequence);
        match self.active.last >= sequence && !is_on_its_way {
            true => Stage::Active(self.writing.back().map(|(number, _)| *number)),
            false => Stage::Writing,
        }
    }

    /// The buffer that is being filled goes to the disk.
    pub fn switch(&mut self) -> Record {
        let mut active = std::mem::take(&mut self.active);
        active.at = self.head;
        let sectors = self.header() + active.bytes.div_ceil(SECTOR);
        let number = self.next_number;
        self.next_number += 1;
        self.writing.push_back((number, active));
        let length = self.area.end - self.area.start;
        let from = self.area.start + self.head % length;
        self.head += sectors;
        let end = from + sectors;
        let behind = self.area.start..self.area.start + end.saturating_sub(self.area.end);
        let pieces = [from..end.min(self.area.end), behind];
        let pieces = pieces.into_iter().filter(|it| !it.is_empty()).collect();
        Record { number, pieces }
    }

    /// A buffer is on the disk. What is in it, and in those before, has to go to its place; who
    /// waited goes on, first those who have the next to write (observed on 6.12).
    pub fn written(&mut self, number: u64) -> Vec<ContextId> {
        let found = self.writing.iter_mut().find(|it| it.0 == number);
        found.expect("it was being written").1.is_done = true;
        while self.writing.front().is_some_and(|it| it.1.is_done) {
            let Some((_, done)) = self.writing.pop_front() else { break };
            self.stable = self.stable.max(done.last);
            let placed = done.items.into_iter().filter(|it| !matches!(it, Item::Cancelled(_)));
            self.logged.extend(placed.map(|item| (item, done.at)));
        }
        let (stable, writing) = (self.stable, &self.writing);
        let goes_on = |(_, wait): &mut (ContextId, LogWait)| !must_wait(*wait, stable, writing);
        let woken = self.waiting.extract_if(.., goes_on);
        let mut woken: Vec<_> = woken.collect();
        woken.sort_by_key(|(_, wait)| matches!(wait, LogWait::Stable(_)));
        woken.into_iter().map(|(task, _)| task).collect()
    }

    /// Whether a task must wait for something.
    pub fn must_wait(&self, wait: LogWait) -> bool {
        match wait {
            LogWait::Pushed(sequence) => self.is_collecting(sequence),
            _ => must_wait(wait, self.stable, &self.writing),
        }
    }

    /// A task falls asleep.
    pub fn wait(&mut self, task: ContextId, what: LogWait) {
        self.waiting.push((task, what));
    }

    /// What may go to its place: is in the log, and was not changed since.
    pub fn to_be_placed(&self) -> Vec<Item> {
        self.logged.keys().copied().filter(|item| !self.is_pinned(*item)).collect()
    }

    /// Whether nothing in the log waits for going to its place.
    pub fn is_placed(&self) -> bool {
        self.logged.is_empty()
    }

    /// Something is in its place.
    pub fn placed(&mut self, item: Item) {
        self.logged.remove(&item);
    }

    /// Whether so much of the log is in use that things must go to their places: a quarter is kept
    /// free (rule xfs-ail-1).
    pub fn is_crowded(&self) -> bool {
        let tail = self.logged.values().min().copied().unwrap_or(self.head);
        self.head - tail > (self.area.end - self.area.start) / 4 * 3
    }

    /// Sectors of a record's header.
    fn header(&self) -> u64 {
        self.buffer.div_ceil(DESCRIBED)
    }

    fn is_pinned(&self, item: Item) -> bool {
        let in_buffer = |buffer: &Buffer| buffer.items.contains(&item);
        self.changed.contains_key(&item)
            || in_buffer(&self.active)
            || self.writing.iter().any(|(_, buffer)| in_buffer(buffer))
    }
}

/// Sectors at the log's start: mkfs leaves a record there that says the log is empty.
const MADE_BY_MKFS: u64 = 2;

fn must_wait(wait: LogWait, stable: u64, writing: &VecDeque<(u64, Buffer)>) -> bool {
    match wait {
        // Only a push ends that.
        LogWait::Pushed(_) => true,
        LogWait::Stable(sequence) => stable < sequence,
        LogWait::Buffer(number) => writing.iter().any(|it| it.0 <= number),
    }
}

/// Bytes that a buffer of metadata takes: what changes of one lies close together.
pub fn bytes_of_buffer() -> u64 {
    BUFFER
}

/// Bytes that an inode takes, with so many bytes behind its core.
pub fn bytes_of_inode(fork: u64) -> u64 {
    match fork {
        0 => INODE,
        fork => INODE + OPERATION + fork.next_multiple_of(4),
    }
}

/// Bytes that a new chunk of inodes takes (observed: xfs_logprint).
pub fn bytes_of_chunk() -> u64 {
    OPERATION + 28
}

/// The parts of 128 bytes of a block of metadata that have changed since it was written: all of
/// them are logged with each change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(u32);

impl Parts {
    /// These bytes of the block, of which there are some, have changed; what is beyond its end
    /// counts as its end.
    pub fn add(&mut self, bytes: Range<usize>) {
        let part = |byte: usize| (byte / PART).min(LAST_PART);
        let (first, last) = (part(bytes.start), part(bytes.end - 1));
        self.0 |= u32::MAX >> (LAST_PART - last) & u32::MAX << first;
    }

    /// Bytes in the log: parts that lie together are one piece.
    pub fn bytes(self) -> u64 {
        let pieces = (self.0 & !(self.0 << 1)).count_ones();
        let parts = u64::from(self.0.count_ones()) * PART as u64;
        bytes_of_stale_buffer() + u64::from(pieces) * OPERATION + parts
    }
}

/// Bytes that a buffer takes that is not used any more.
fn bytes_of_stale_buffer() -> u64 {
    OPERATION + 24
}

/// Bytes that the block of a directory takes, with so many bytes of head and names, and so many
/// names: parts of 128 bytes, one more behind the names, and where they are at the end of the
/// block, eight bytes for each and for two more (observed: xfs_logprint).
pub fn bytes_of_directory_block(bytes: u64, names: u64) -> u64 {
    let part = PART as u64;
    let parts = |bytes: u64| bytes.next_multiple_of(part);
    bytes_of_stale_buffer() + OPERATION + parts(bytes) + part + OPERATION + parts(8 * (names + 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Log {
        Log::new(1000..1000 + 131_072, 32 << 10)
    }

    fn checkpoint(log: &mut Log, items: &[(Item, u64)]) -> u64 {
        for (item, bytes) in items {
            log.change(*item, *bytes);
        }
        assert!(log.push(log.sequence).is_empty());
        let record = log.switch();
        log.written(record.number);
        record.pieces[0].end - record.pieces[0].start
    }

    #[test]
    fn checkpoints_are_as_long_as_xfs_logprint_shows() {
        let mut log = log();
        let buffer = |sector| (Item::Buffer(sector, 8), bytes_of_buffer());
        let file = (Item::Inode(131), bytes_of_inode(16));
        let directory = (Item::Inode(128), bytes_of_inode(15));
        let three = [buffer(1), buffer(8), buffer(16)];
        let more = [buffer(2), buffer(24), buffer(32)];
        let created: Vec<_> = three.into_iter().chain(more).chain([file, directory]).collect();
        assert_eq!(checkpoint(&mut log, &created), 5, "a new file with its first block");
        assert_eq!(checkpoint(&mut log, &[file]), 2, "a size");
        assert_eq!(checkpoint(&mut log, &[file, three[0], three[1], three[2]]), 3, "a block");
        assert_eq!(log.to_be_placed().len(), 8);
        let mut log = Log::new(0..1000, 256 << 10);
        assert_eq!(checkpoint(&mut log, &[file]), 9, "the header describes more");
    }

    #[test]
    fn parts_of_a_block_that_lie_together_are_one_piece() {
        let bytes = |bytes: &[usize]| {
            let mut parts = Parts::default();
            bytes.iter().for_each(|it| parts.add(*it..*it + 1));
            parts.bytes()
        };
        assert_eq!(bytes(&[0]), bytes_of_buffer());
        assert_eq!(bytes(&[0, 127, 128]), bytes_of_buffer() + 128);
        assert_eq!(bytes(&[0, 256]), bytes_of_buffer() + 128 + 12);
        let mut all = Parts::default();
        all.add(0..4096);
        assert_eq!(all.bytes(), bytes_of_buffer() + 31 * 128);
        assert_eq!(bytes(&[0, 5000]), bytes_of_buffer() + 128 + 12, "beyond the end");
    }

    #[test]
    fn a_checkpoint_waits_in_the_next_buffer_while_one_is_being_written() {
        let mut log = log();
        let item = Item::Inode(131);
        let first = log.change(item, 300);
        log.push(first);
        assert_eq!(log.stage(first), Stage::Active(None));
        let record = log.switch();
        assert_eq!(log.stage(first), Stage::Writing);
        let second = log.change(item, 300);
        log.push(second);
        let third = log.change(Item::Inode(132), 300);
        log.push(third);
        assert_eq!(log.stage(second), Stage::Active(Some(record.number)));
        assert!(log.to_be_placed().is_empty());
        log.written(record.number);
        assert!(log.to_be_placed().is_empty(), "it was changed since");
        assert_eq!(log.switch().pieces[0], 1004..1007, "both in one");
    }

    #[test]
    fn the_worker_pushes_once_for_all_who_wait() {
        let mut log = log();
        let sequence = log.change(Item::Inode(131), 300);
        assert!(log.is_collecting(sequence) && log.ask_for_push());
        log.wait(ContextId(1), LogWait::Pushed(sequence));
        assert_eq!(log.change(Item::Inode(132), 300), sequence, "it goes with the first");
        assert!(!log.ask_for_push(), "the worker knows");
        log.wait(ContextId(2), LogWait::Pushed(sequence));
        assert_eq!(log.push_all(), [ContextId(1), ContextId(2)]);
        assert!(!log.is_collecting(sequence) && log.take_full().is_empty());
        assert_eq!(log.stage(sequence), Stage::Active(None));
    }

    #[test]
    fn a_checkpoint_in_a_full_buffer_is_not_in_the_one_behind_it() {
        let mut log = Log::new(0..130, 32 << 10);
        log.change(Item::Inode(0), 600);
        log.push(1);
        for inode in 1..60 {
            log.change(Item::Inode(inode), 600);
        }
        let full = log.push(2);
        assert_eq!(full.len(), 1);
        assert_eq!((log.stage(1), log.stage(2)), (Stage::Writing, Stage::Active(Some(1))));
    }

    #[test]
    fn a_large_checkpoint_fills_buffers_and_the_log_begins_anew() {
        let mut log = Log::new(0..130, 32 << 10);
        for inode in 0..120 {
            log.change(Item::Inode(inode), 600);
        }
        let full = log.push(1);
        let starts: Vec<_> = full.iter().map(|it| (it.pieces.len(), it.pieces[0].start)).collect();
        assert_eq!(starts, [(1, 2), (1, 66)]);
        let rest = log.switch().pieces;
        assert_eq!(rest[0].start, 0);
    }
}
