//! The pages of one file that are in memory, and what is known of each.
//!
//! Pages are kept in chunks of 512 (2 MiB). A chunk with few pages lists them in eight bytes each,
//! four of which say which frame a page is in; one with many has five bytes for every page. So a
//! large run costs about five bytes a page, scattered pages some fifteen, and a page that is alone
//! in its 2 MiB about ninety.
//!
//! Chunks with something dirty or under writeback are known: whoever looks for that, and most calls
//! do, does not walk over what is merely cached.
//!
//! What pages contain is not kept: nobody looks.

#[cfg(test)]
mod tests;

use super::frames::{Frame, Frames};
use std::collections::BTreeMap;
use std::ops::Range;

/// Pages of a chunk.
const CHUNK: u64 = 512;
/// A chunk lists its pages up to so many; more take less room as an array.
const FEW: usize = 128;
const FLAG_BITS: u32 = 7;
/// Bytes that are looked at together.
const SCAN: usize = 32;

/// What is known of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// Its contents are there; without it the page is locked and being read.
    pub const UP_TO_DATE: Flags = Flags(1 << 1);
    /// It must be written.
    pub const DIRTY: Flags = Flags(1 << 2);
    /// It is being written.
    pub const WRITEBACK: Flags = Flags(1 << 3);
    /// Whoever touches it reads on ahead.
    pub const MARKED: Flags = Flags(1 << 4);
    /// It was touched since it came.
    pub const TOUCHED: Flags = Flags(1 << 5);
    /// It was touched more than once.
    pub const ACTIVE: Flags = Flags(1 << 6);
    /// None of them.
    pub const NONE: Flags = Flags(0);
    /// In memory; every page here is.
    const PRESENT: Flags = Flags(1);

    /// These and those.
    pub const fn with(self, more: Flags) -> Flags {
        Flags(self.0 | more.0)
    }

    /// These without those.
    pub const fn without(self, less: Flags) -> Flags {
        Flags(self.0 & !less.0)
    }

    /// Whether all of those are among them.
    pub const fn has(self, all: Flags) -> bool {
        self.0 & all.0 == all.0
    }

    /// Whether any of those is among them.
    pub const fn has_any(self, some: Flags) -> bool {
        self.0 & some.0 != 0
    }
}

/// What readahead must know of the pages of a file.
pub trait CachedPages {
    /// Whether a page is in memory, up to date or not.
    fn holds(&self, page: u64) -> bool;

    /// The first page from `from` on that is not in memory, of at most so many.
    fn first_absent(&self, from: u64, most: u64) -> Option<u64> {
        (from..from.saturating_add(most)).find(|&page| !self.holds(page))
    }

    /// How many pages directly before `page` are in memory, counted up to `most`.
    fn run_before(&self, page: u64, most: u64) -> u64 {
        let first = page.saturating_sub(most);
        (first..page).rev().take_while(|&page| self.holds(page)).count() as u64
    }
}

/// How many pages there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In memory.
    pub cached: u64,
    /// Dirty.
    pub dirty: u64,
    /// Under writeback.
    pub writeback: u64,
}

/// The pages of one file.
#[derive(Clone, Debug)]
pub struct Pages {
    chunks: BTreeMap<u64, Chunk>,
    frames: Frames,
    dirty: Busy,
    writeback: Busy,
    counts: Counts,
}

/// Chunks with pages that have a flag, and how many of them do.
type Busy = BTreeMap<u64, u16>;

impl Pages {
    /// None, in a memory with these frames.
    pub fn new(frames: Frames) -> Pages {
        Pages {
            chunks: BTreeMap::new(),
            frames,
            dirty: Busy::new(),
            writeback: Busy::new(),
            counts: Counts::default(),
        }
    }

    /// A task has ended, which may put frames in order.
    pub fn task_ended(&mut self) {
        self.frames.task_ended();
    }

    /// What is known of a page; `None` if it is not in memory.
    pub fn get(&self, page: u64) -> Option<Flags> {
        let flags = self.chunks.get(&(page / CHUNK))?.get(page % CHUNK);
        flags.has(Flags::PRESENT).then_some(flags.without(Flags::PRESENT))
    }

    /// Takes in a page, or replaces what is known of it.
    pub fn put(&mut self, page: u64, flags: Flags) {
        self.replace(page, flags.with(Flags::PRESENT));
    }

    /// Changes what is known of a page that is in memory.
    pub fn change(&mut self, page: u64, add: Flags, remove: Flags) {
        let flags = self.get(page);
        let flags = flags.unwrap_or_else(|| panic!("page {page} is not in memory"));
        self.put(page, flags.without(remove).with(add));
    }

    /// A reader or writer uses a page: the second use makes it active.
    pub fn touch(&mut self, page: u64) {
        let flags = self.get(page).unwrap_or_else(|| panic!("page {page} is not in memory"));
        let add = if flags.has(Flags::TOUCHED) { Flags::ACTIVE } else { Flags::TOUCHED };
        self.put(page, flags.with(add));
    }

    /// Lets a page go; false if it was not in memory.
    pub fn remove(&mut self, page: u64) -> bool {
        self.replace(page, Flags::NONE).has(Flags::PRESENT)
    }

    /// Lets go what may be dropped of a range: pages that are clean, not being written and not
    /// locked. Answers with the number of them, and tells each.
    pub fn drop_clean(&mut self, first: u64, end: u64, mut dropped: impl FnMut(u64)) -> u64 {
        let mut count = 0;
        let mut next = first;
        while let Some(page) = self.next(next, end, Flags::UP_TO_DATE) {
            if self.get(page).is_some_and(Flags::is_droppable) {
                self.remove(page);
                dropped(page);
                count += 1;
            }
            next = page + 1;
        }
        count
    }

    /// The first page of `from..end` that is in memory and has all of some flags.
    pub fn next(&self, from: u64, end: u64, flags: Flags) -> Option<u64> {
        let wanted = flags.with(Flags::PRESENT);
        let numbers = from / CHUNK..end.div_ceil(CHUNK);
        let in_chunk = |(&number, chunk): (&u64, &Chunk)| {
            let base = number * CHUNK;
            chunk.next(from.saturating_sub(base), wanted).map(|index| base + index)
        };
        let in_busy = |busy: &Busy| {
            busy.range(numbers.clone()).find_map(|(at, _)| in_chunk((at, &self.chunks[at])))
        };
        let page = match flags {
            _ if flags.has(Flags::DIRTY) => in_busy(&self.dirty),
            _ if flags.has(Flags::WRITEBACK) => in_busy(&self.writeback),
            _ => self.chunks.range(numbers.clone()).find_map(in_chunk),
        };
        page.filter(|page| *page < end)
    }

    /// Cuts pages that are in memory where the next one is in another place there: runs that lie in
    /// one piece.
    pub fn pieces(&self, pages: Range<u64>) -> Vec<Range<u64>> {
        let mut pieces: Vec<Range<u64>> = Vec::new();
        let mut expected = None;
        for (&number, chunk) in self.chunks.range(pages.start / CHUNK..pages.end.div_ceil(CHUNK)) {
            let base = number * CHUNK;
            for page in pages.start.max(base)..pages.end.min(base + CHUNK) {
                let frame = chunk.frame(page - base);
                let frame = frame.unwrap_or_else(|| panic!("page {page} is not in memory"));
                match pieces.last_mut() {
                    Some(piece) if expected == Some(frame) => piece.end += 1,
                    _ => pieces.push(page..page + 1),
                }
                expected = Some(frame.next());
            }
        }
        pieces
    }

    /// How many there are.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn replace(&mut self, page: u64, flags: Flags) -> Flags {
        let number = page / CHUNK;
        if flags == Flags::NONE && !self.chunks.contains_key(&number) {
            return Flags::NONE;
        }
        let chunk = self.chunks.entry(number).or_default();
        let before = chunk.replace(page % CHUNK, flags, &mut self.frames);
        if chunk.is_empty() {
            self.chunks.remove(&number);
        }
        self.counts.subtract(before);
        self.counts.add(flags);
        note(&mut self.dirty, number, before.has(Flags::DIRTY), flags.has(Flags::DIRTY));
        let (was, is) = (before.has(Flags::WRITEBACK), flags.has(Flags::WRITEBACK));
        note(&mut self.writeback, number, was, is);
        before
    }
}

/// A page of a chunk had a flag or not, and has it now or not.
fn note(busy: &mut Busy, chunk: u64, was: bool, is: bool) {
    match (was, is) {
        (false, true) => *busy.entry(chunk).or_default() += 1,
        (true, false) => {
            let count = busy.get_mut(&chunk).expect("it was counted when it got the flag");
            *count -= 1;
            if *count == 0 {
                busy.remove(&chunk);
            }
        }
        _ => {}
    }
}

impl CachedPages for Pages {
    fn holds(&self, page: u64) -> bool {
        self.get(page).is_some()
    }
}

impl Flags {
    /// Whether nothing keeps it in memory: it is clean, not being written and not locked.
    pub fn is_droppable(self) -> bool {
        self.has(Flags::UP_TO_DATE) && !self.has_any(Flags::DIRTY.with(Flags::WRITEBACK))
    }
}

impl Counts {
    fn add(&mut self, flags: Flags) {
        self.cached += u64::from(flags.has(Flags::PRESENT));
        self.dirty += u64::from(flags.has(Flags::DIRTY));
        self.writeback += u64::from(flags.has(Flags::WRITEBACK));
    }

    fn subtract(&mut self, flags: Flags) {
        self.cached -= u64::from(flags.has(Flags::PRESENT));
        self.dirty -= u64::from(flags.has(Flags::DIRTY));
        self.writeback -= u64::from(flags.has(Flags::WRITEBACK));
    }
}

/// The pages of 2 MiB of a file.
#[derive(Clone, Debug)]
enum Chunk {
    /// In ascending order.
    Few(Vec<Entry>),
    Many(Box<Array>),
}

/// A page of a chunk.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Its index in the chunk above its flags.
    page: u16,
    frame: Frame,
}

/// All pages of a chunk.
#[derive(Clone, Debug)]
struct Array {
    flags: [u8; CHUNK as usize],
    frames: [Frame; CHUNK as usize],
    present: u16,
}

impl Default for Chunk {
    fn default() -> Chunk {
        Chunk::Few(Vec::new())
    }
}

impl Chunk {
    fn get(&self, index: u64) -> Flags {
        match self {
            Chunk::Few(list) => find(list, index).map_or(Flags::NONE, |at| list[at].flags()),
            Chunk::Many(array) => Flags(array.flags[index as usize]),
        }
    }

    /// Where a page is in memory, if it is there.
    fn frame(&self, index: u64) -> Option<Frame> {
        match self {
            Chunk::Few(list) => find(list, index).ok().map(|at| list[at].frame),
            Chunk::Many(array) => {
                let is_there = Flags(array.flags[index as usize]).has(Flags::PRESENT);
                is_there.then_some(array.frames[index as usize])
            }
        }
    }

    /// Replaces what is known of a page, and answers with what was before. One that comes takes a
    /// frame, one that goes gives it back.
    fn replace(&mut self, index: u64, new: Flags, memory: &mut Frames) -> Flags {
        match self {
            Chunk::Few(list) => {
                let page = (index as u16) << FLAG_BITS | u16::from(new.0);
                let found = find(list, index);
                let before = found.map_or(Flags::NONE, |at| list[at].flags());
                match (found, new == Flags::NONE) {
                    (Ok(at), true) => memory.give(list.remove(at).frame),
                    (Ok(at), false) => list[at].page = page,
                    (Err(_), true) => {}
                    (Err(at), false) => list.insert(at, Entry { page, frame: memory.take() }),
                }
                if list.len() > FEW {
                    *self = Chunk::Many(Array::of(list));
                }
                before
            }
            Chunk::Many(array) => array.replace(index as usize, new, memory),
        }
    }

    /// The first page from an index on that has all of some flags.
    fn next(&self, from: u64, wanted: Flags) -> Option<u64> {
        match self {
            Chunk::Few(list) => {
                let at = find(list, from).unwrap_or_else(|at| at);
                let entry = list[at..].iter().find(|entry| entry.flags().has(wanted))?;
                Some(u64::from(entry.page >> FLAG_BITS))
            }
            Chunk::Many(array) => {
                let rest = array.flags.get(from as usize..)?;
                // Most have none of the flags: those are passed over many at a time.
                let is_wanted = |&it: &u8| Flags(it).has(wanted);
                let has_one = |some: &[u8]| some.iter().fold(false, |any, it| any | is_wanted(it));
                let part = rest.chunks(SCAN).position(has_one)? * SCAN;
                let at = part + rest[part..].iter().position(is_wanted)?;
                Some(from + at as u64)
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Chunk::Few(list) => list.is_empty(),
            Chunk::Many(array) => array.present == 0,
        }
    }
}

impl Entry {
    fn flags(self) -> Flags {
        Flags((self.page & ((1 << FLAG_BITS) - 1)) as u8)
    }
}

impl Array {
    fn of(list: &[Entry]) -> Box<Array> {
        let mut array = Box::new(Array {
            flags: [0; CHUNK as usize],
            frames: [Frame::default(); CHUNK as usize],
            present: list.len() as u16,
        });
        for &entry in list {
            let index = usize::from(entry.page >> FLAG_BITS);
            (array.flags[index], array.frames[index]) = (entry.flags().0, entry.frame);
        }
        array
    }

    fn replace(&mut self, index: usize, new: Flags, memory: &mut Frames) -> Flags {
        let before = Flags(std::mem::replace(&mut self.flags[index], new.0));
        match (before.has(Flags::PRESENT), new.has(Flags::PRESENT)) {
            (false, true) => {
                self.frames[index] = memory.take();
                self.present += 1;
            }
            (true, false) => {
                memory.give(self.frames[index]);
                self.present -= 1;
            }
            _ => {}
        }
        before
    }
}

/// Where a page is in an ascending list, or where it would be.
fn find(list: &[Entry], index: u64) -> Result<usize, usize> {
    list.binary_search_by_key(&index, |entry| u64::from(entry.page >> FLAG_BITS))
}
