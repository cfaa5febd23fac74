//! The pages of one file that are in memory, and what is known of each.
//!
//! Pages are kept in chunks of 512 (2 MiB). A chunk with few pages lists them in two bytes each,
//! one with many has a byte for every page; so a large run costs about one byte a page, scattered
//! pages some ten, and a page that is alone in its 2 MiB about ninety.
//!
//! Chunks with something dirty or under writeback are known: whoever looks for that, and most calls
//! do, does not walk over what is merely cached.
//!
//! What pages contain is not kept: nobody looks.

#[cfg(test)]
mod tests;

use super::frames::{Frames, Places};
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
#[derive(Clone, Debug, Default)]
pub struct Pages {
    chunks: BTreeMap<u64, Chunk>,
    /// Where in memory each is, if anybody wants to know.
    places: Option<Places>,
    dirty: Busy,
    writeback: Busy,
    counts: Counts,
}

/// Chunks with pages that have a flag, and how many of them do.
type Busy = BTreeMap<u64, u16>;

impl Pages {
    /// None; where in memory they will be is kept.
    pub fn placed(places: Places) -> Pages {
        Pages { places: Some(places), ..Pages::default() }
    }

    /// Where in memory they may be, if anybody wants to know.
    pub fn frames(&mut self) -> Option<&mut Frames> {
        self.places.as_mut().map(Places::frames)
    }

    /// Cuts pages that are in memory where the next one is in another place there: runs that lie in
    /// one piece. `None` if nobody keeps that.
    pub fn pieces(&self, pages: Range<u64>) -> Option<Vec<Range<u64>>> {
        self.places.as_ref().map(|places| places.pieces(pages))
    }

    /// Whether a page lies in memory behind the one before it. Nobody knows, if nobody keeps that.
    pub fn follows(&self, page: u64) -> bool {
        self.places.as_ref().is_some_and(|places| places.follows(page))
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

    /// Takes in a page that has been in memory since before the first came.
    pub fn put_old(&mut self, page: u64, flags: Flags) {
        let places = self.places.take();
        self.put(page, flags);
        self.places = places;
        if let Some(places) = &mut self.places {
            places.was_there(page);
        }
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
        let before = chunk.replace(page % CHUNK, flags);
        if chunk.is_empty() {
            self.chunks.remove(&number);
        }
        if let Some(places) = &mut self.places {
            match (before.has(Flags::PRESENT), flags.has(Flags::PRESENT)) {
                (false, true) => places.came(page),
                (true, false) => places.left(page),
                _ => {}
            }
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
    /// Ascending; index in the chunk above the flags.
    Few(Vec<u16>),
    Many {
        flags: Box<[u8; CHUNK as usize]>,
        present: u16,
    },
}

impl Default for Chunk {
    fn default() -> Chunk {
        Chunk::Few(Vec::new())
    }
}

impl Chunk {
    fn get(&self, index: u64) -> Flags {
        match self {
            Chunk::Few(list) => find(list, index).map_or(Flags::NONE, |at| flags_of(list[at])),
            Chunk::Many { flags, .. } => Flags(flags[index as usize]),
        }
    }

    /// Replaces what is known of a page, and answers with what was before.
    fn replace(&mut self, index: u64, new: Flags) -> Flags {
        match self {
            Chunk::Few(list) => {
                let entry = (index as u16) << FLAG_BITS | u16::from(new.0);
                let found = find(list, index);
                let before = found.map_or(Flags::NONE, |at| flags_of(list[at]));
                match (found, new == Flags::NONE) {
                    (Ok(at), true) => drop(list.remove(at)),
                    (Ok(at), false) => list[at] = entry,
                    (Err(_), true) => {}
                    (Err(at), false) => list.insert(at, entry),
                }
                if list.len() > FEW {
                    *self = Chunk::dense(list);
                }
                before
            }
            Chunk::Many { flags, present } => {
                let before = Flags(std::mem::replace(&mut flags[index as usize], new.0));
                *present += u16::from(new.has(Flags::PRESENT));
                *present -= u16::from(before.has(Flags::PRESENT));
                before
            }
        }
    }

    /// The first page from an index on that has all of some flags.
    fn next(&self, from: u64, wanted: Flags) -> Option<u64> {
        match self {
            Chunk::Few(list) => {
                let at = find(list, from).unwrap_or_else(|at| at);
                let entry = list[at..].iter().find(|&&entry| flags_of(entry).has(wanted))?;
                Some(u64::from(entry >> FLAG_BITS))
            }
            Chunk::Many { flags, .. } => {
                let rest = flags.get(from as usize..)?;
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
            Chunk::Many { present, .. } => *present == 0,
        }
    }

    fn dense(list: &[u16]) -> Chunk {
        let mut flags = Box::new([0; CHUNK as usize]);
        for &entry in list {
            flags[usize::from(entry >> FLAG_BITS)] = flags_of(entry).0;
        }
        Chunk::Many { flags, present: list.len() as u16 }
    }
}

/// Where a page is in an ascending list, or where it would be.
fn find(list: &[u16], index: u64) -> Result<usize, usize> {
    list.binary_search_by_key(&index, |&entry| u64::from(entry >> FLAG_BITS))
}

fn flags_of(entry: u16) -> Flags {
    Flags((entry & ((1 << FLAG_BITS) - 1)) as u8)
}
