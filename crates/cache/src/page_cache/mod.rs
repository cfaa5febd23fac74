//! The disk's own pages in memory: what is being read into them, and who waits for which.
//!
//! Whoever reads asks for windows ([`PageCache::missed`], [`PageCache::touched`]), has them taken
//! in ([`PageCache::admit_of`]), submits what comes out, and waits for his page.
//!
// Divergence: marks are found page by page; kernels with folios look at up to 31 of them at once.
// Pages go when more come, at once, while a kernel thread makes room.

mod faults;
mod history;
mod open_files;
mod room;
mod shares;

use crate::Rules;
use crate::frames::{Frame, Frames, Places};
use crate::groups::Groups;
use crate::lru::{FileNumber, Lru};
use crate::mapped::Mapped;
use crate::memory::Memory;
pub use crate::nodes::FILE_PAGES;
use crate::pages::{CachedPages, Counts, Flags, Pages};
use crate::pcp_lists::{PcpLists, batch_of};
use crate::readahead::Window;
use crate::writeback::Writeback;
use base::{Sectors, TimerWheel};
use block::{ContextId, Kernel, Segments};
pub use faults::Faulted;
use guest::BootMemory;
use history::History;
use open_files::Opened;
pub use room::Mounted;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// Tokens of reads that belong to pages and not to an operation have this bit.
const OF_PAGES: u64 = 1 << 63;
const PAGE_SECTORS: u32 = 8;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Segments of one bio of a file of old kernels (rule readahead-15).
const OLD_FILE_VECS: u32 = 128;
/// Runs of pages that leave together at most; to remember more would take more room than they did.
const TOGETHER: usize = 1 << 18;

/// The pages of the disk, and of the files on it.
pub struct PageCache {
    rules: Rules,
    /// How much of a piece of memory a device takes as one segment.
    segment_pages: u64,
    pages: Pages,
    /// That of the root group, which has everything where groups have none of their own.
    writeback: Writeback,
    /// Whose files are whose.
    groups: Groups,
    /// How many pages there may be.
    memory: Memory,
    /// Pages that are neither free nor in files.
    pcp_lists: PcpLists,
    lru: Lru,
    /// Dirty pages that a core has noted to go, but not told yet.
    deactivated: Vec<u64>,
    mapped: Mapped,
    /// Files of the disk that were opened.
    files: Vec<Opened>,
    /// Which of them are open, by whose they are, and how many of these are the disk.
    owned: BTreeMap<ContextId, BTreeSet<usize>>,
    open_disks: usize,
    /// What bios under way read or write, by token.
    under_way: BTreeMap<u64, Moving>,
    next_token: u64,
    /// What the writeback of another group begins with.
    fresh: Fresh,
    /// Pages whose bio is being submitted, and who wants to look at them.
    locked: BTreeMap<u64, Vec<ContextId>>,
    waiting: BTreeMap<u64, Vec<ContextId>>,
    /// Kept for those who ask.
    history: Option<Box<History>>,
    /// Memory of tasks themselves, in the order in which they wrote to it.
    own: BTreeMap<ContextId, Vec<Frame>>,
}

/// What a bio under way has to do with its pages.
enum Moving {
    /// They are read. Somebody may change one meanwhile: whoever looked at it before it was dropped
    /// and read anew. In the kernel it stays for him.
    Read(Range<u64>),
    /// They are written.
    Written(Range<u64>),
}

/// What a new group's writeback is made from.
#[derive(Clone, Copy)]
struct Fresh {
    rules: Rules,
    wheel: TimerWheel,
}

/// The disk is one file.
const DISK: FileNumber = FileNumber(0);

/// A bio to be submitted.
pub struct PageBio {
    /// What its completion is known by.
    pub token: u64,
    /// What it reads or writes.
    pub pages: Range<u64>,
}

/// A bio to which pages are added, one after the other.
#[derive(Clone, Debug)]
pub struct OpenBio {
    /// Its pages.
    pub pages: Range<u64>,
    /// In how many pieces of memory they lie,
    vecs: u32,
    /// and how many of them in the last piece.
    in_last: u64,
}

impl OpenBio {
    /// A bio of one page.
    pub fn new(page: u64) -> OpenBio {
        OpenBio { pages: page..page + 1, vecs: 1, in_last: 1 }
    }
}

impl PageCache {
    /// `segment` is how much contiguous memory pages lie in that are read together; `uptime` for
    /// how many seconds the machine has been up when jobs begin. Pages are at hand to a core unless
    /// it `is_alone` and the kernel does without then.
    pub fn new(
        kernel: &Kernel,
        guest: &BootMemory,
        segment: Sectors,
        memory: Memory,
        is_alone: bool,
        uptime: u64,
    ) -> PageCache {
        let rules = match guest.large_folios {
            true => Rules::of(kernel),
            false => Rules::of(kernel).without_large_folios(),
        };
        let wheel = TimerWheel::new(kernel.hz, uptime);
        let (at_hand, pcp_lists) = match rules.keeps_pages_alone || !is_alone {
            true if rules.keeps_an_eighth => (memory.managed / 8, None),
            true => (memory.low, None),
            false => (0, Some(PcpLists::none())),
        };
        let segment_pages = u64::from((segment.0 / PAGE_SECTORS).max(1));
        let pages = match segment_pages {
            2.. if !rules.page_is_segment => {
                let batch = batch_of(memory.managed);
                let frames = Frames::new(at_hand, batch, rules.doublings, guest.lists(batch));
                Pages::placed(Places::new(frames.letting_go_in_reverse(rules.lets_go_in_reverse)))
            }
            // Each page is a piece of memory of its own.
            _ => Pages::default(),
        };
        PageCache {
            rules,
            segment_pages,
            pages,
            writeback: Writeback::new(&rules, wheel, memory.dirtyable_at_boot()),
            groups: Groups::default(),
            fresh: Fresh { rules, wheel },
            pcp_lists: pcp_lists.unwrap_or_else(|| PcpLists::new(&rules, guest, memory.managed)),
            memory,
            lru: Lru::default(),
            deactivated: Vec::new(),
            mapped: Mapped::default(),
            files: Vec::new(),
            owned: BTreeMap::new(),
            open_disks: 0,
            under_way: BTreeMap::new(),
            next_token: OF_PAGES,
            locked: BTreeMap::new(),
            waiting: BTreeMap::new(),
            history: None,
            own: BTreeMap::new(),
        }
    }

    /// What holds for its kernel.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Takes in the pages of a window of an open file that are absent, up to the end of the disk.
    /// Each run of them is submitted under a plug, as one bio or several.
    pub fn admit_of(&mut self, file: usize, window: Window, disk_pages: u64) -> Vec<Vec<PageBio>> {
        let is_file = self.files[file].extent.is_some();
        let pieces =
            if is_file { self.rules.bio_vecs.max(OLD_FILE_VECS) } else { self.rules.bio_vecs };
        self.admit_in(pieces, window, disk_pages)
    }

    fn admit_in(&mut self, most: u32, window: Window, disk_pages: u64) -> Vec<Vec<PageBio>> {
        let end = (window.start + window.length).min(disk_pages);
        let mut runs = Vec::new();
        let mut from = window.start;
        while let Some(start) = self.pages.first_absent(from, end.saturating_sub(from)) {
            let absent = (start..end).take_while(|&page| !self.pages.holds(page)).count() as u64;
            from = start + absent;
            // Beside a page that is there, folios are single pages.
            let is_whole = absent == end - window.start;
            let order = if is_whole { window.order } else { 0 };
            self.make_room(absent);
            self.note_coming(start..from);
            self.lru.came(DISK, start, absent);
            for page in start..from {
                let is_marked = window.mark == Some(page);
                self.pages.put(page, if is_marked { Flags::MARKED } else { Flags::NONE });
            }
            runs.push(self.cut(start..from, order, most));
        }
        runs
    }

    /// Whether nobody has to wait for a page.
    pub fn is_ready(&self, page: u64) -> bool {
        // One that was dropped had been read.
        self.pages.get(page).is_none_or(|flags| flags.has(Flags::UP_TO_DATE))
    }

    /// A task falls asleep until a page is ready.
    pub fn wait(&mut self, page: u64, task: ContextId) {
        self.waiting.entry(page).or_default().push(task);
    }

    /// Whether a token is that of a read of pages.
    pub fn owns(token: u64) -> bool {
        token & OF_PAGES != 0
    }

    /// A bio is done: its pages are ready. Answers with who waits for them, in the order in which
    /// the kernel lets go of them: old ones begin with the last page (rule readahead-16).
    pub fn done(&mut self, token: u64, now: u64) -> Vec<(u64, ContextId)> {
        let moved = self.under_way.remove(&token);
        let pages = match moved.unwrap_or_else(|| panic!("no bio {token:#x} is under way")) {
            Moving::Read(pages) => {
                self.have_been_read(pages.clone());
                pages
            }
            Moving::Written(pages) => {
                for page in pages.clone() {
                    // What was written loses the mark of readahead. // observed on 6.12 and 7.3
                    let lost = Flags::WRITEBACK.with(Flags::MARKED);
                    self.pages.change(page, Flags::NONE, lost);
                }
                self.note_written(pages.clone(), now);
                pages
            }
        };
        let mut woken = Vec::new();
        while let Some((&page, _)) = self.waiting.range(pages.clone()).next() {
            let tasks = self.waiting.remove(&page).into_iter().flatten();
            woken.extend(tasks.map(|task| (page, task)));
        }
        if self.rules.releases_backwards {
            woken.sort_by_key(|(page, _)| Reverse(*page));
        }
        woken
    }

    fn have_been_read(&mut self, pages: Range<u64>) {
        for page in pages {
            // One that was changed meanwhile need not be there any more.
            if self.pages.holds(page) {
                self.pages.change(page, Flags::UP_TO_DATE, Flags::NONE);
            }
        }
    }

    /// What is dirty of a range, as runs of pages.
    pub fn dirty_runs(&self, pages: Range<u64>) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        let mut from = pages.start;
        while let Some(page) = self.next_dirty(from..pages.end) {
            match runs.last_mut() {
                Some(run) if run.end == page => run.end += 1,
                _ => runs.push(page..page + 1),
            }
            from = page + 1;
        }
        runs
    }

    /// Takes in a page that is read alone.
    pub fn admit_alone(&mut self, page: u64) -> PageBio {
        self.make_room(1);
        self.note_coming(page..page + 1);
        self.lru.came(DISK, page, 1);
        self.pages.put(page, Flags::NONE);
        self.next_token += 1;
        self.under_way.insert(self.next_token - 1, Moving::Read(page..page + 1));
        PageBio { token: self.next_token - 1, pages: page..page + 1 }
    }

    /// Takes in a page whose block has no contents, so that nothing is read.
    pub fn admit_blank(&mut self, page: u64) {
        self.make_room(1);
        self.lru.came(DISK, page, 1);
        self.pages.put(page, Flags::UP_TO_DATE);
        self.pcp_lists.describe();
    }

    /// The same of a page that has been in memory since the file system was mounted.
    pub fn admit_known(&mut self, page: u64) {
        self.make_room(1);
        self.lru.came(DISK, page, 1);
        self.pages.put_old(page, Flags::UP_TO_DATE);
        self.pcp_lists.describe();
    }

    /// How many pages there are of each kind.
    pub fn counts(&self) -> Counts {
        self.pages.counts()
    }

    /// Whether a page is in memory.
    pub fn holds(&self, page: u64) -> bool {
        self.pages.holds(page)
    }

    /// A task writes to a page, as a whole or after it was read. The answer is whether the disk had
    /// nothing dirty before.
    pub fn dirty(&mut self, task: ContextId, page: u64, now: u64) -> bool {
        self.acts(task);
        let flags = self.pages.get(page);
        if flags.is_none() {
            self.make_room(1);
            self.lru.came(DISK, page, 1);
            self.pages.put(page, Flags::UP_TO_DATE.with(Flags::TOUCHED));
        }
        if flags.is_some_and(|flags| flags.has(Flags::DIRTY)) {
            return false;
        }
        if let Some(history) = &mut self.history {
            history.dirties(page, task);
        }
        // The mark of readahead stays.
        // observed on 6.12.117 and 7.3.4: mm_filemap_get_pages, writeback_dirty_folio and
        // block_bio_queue of a fio that reads and writes a file in sequence
        self.pages.change(page, Flags::DIRTY.with(Flags::UP_TO_DATE), Flags::NONE);
        if flags.is_none() {
            self.pcp_lists.describe();
        }
        self.note_dirtied(task, page, now)
    }

    /// The next page of a range that is dirty.
    pub fn next_dirty(&self, pages: Range<u64>) -> Option<u64> {
        match self.pages.counts().dirty {
            0 => None,
            _ => self.pages.next(pages.start, pages.end, Flags::DIRTY),
        }
    }

    /// The next page of a range that is being written.
    pub fn next_written(&self, pages: Range<u64>) -> Option<u64> {
        match self.pages.counts().writeback {
            0 => None,
            _ => self.pages.next(pages.start, pages.end, Flags::WRITEBACK),
        }
    }

    /// The first page of a range that cannot go at once: it is dirty, being read or written, or
    /// locked.
    pub fn next_kept(&self, pages: Range<u64>) -> Option<u64> {
        let mut from = pages.start;
        while let Some(page) = self.pages.next(from, pages.end, Flags::NONE) {
            let flags = self.pages.get(page).expect("it was found a line above");
            if !flags.is_droppable() || self.is_locked(page) {
                return Some(page);
            }
            from = page + 1;
        }
        None
    }

    /// The first page of a range that is being read.
    pub fn next_read(&self, pages: Range<u64>) -> Option<u64> {
        let of_range = self.under_way.values().filter_map(|it| match it {
            Moving::Read(read) => Some(read.start.max(pages.start)..read.end.min(pages.end)),
            Moving::Written(_) => None,
        });
        of_range.filter_map(|mut read| read.find(|page| !self.is_ready(*page))).min()
    }

    /// The pages of a range that are being written, at most a batch, and where who has waited for
    /// them goes on. Whoever found less than a batch looks no further.
    pub fn written_batch(&self, pages: Range<u64>) -> (Vec<u64>, Option<u64>) {
        let (mut batch, mut from) = (Vec::new(), pages.start);
        while let Some(page) = self.next_written(from..pages.end) {
            batch.push(page);
            from = page + 1;
            if batch.len() == self.rules.batch {
                return (batch, Some(from));
            }
        }
        (batch, None)
    }

    /// Whether a page is being written.
    pub fn is_written(&self, page: u64) -> bool {
        self.pages.get(page).is_some_and(|flags| flags.has(Flags::WRITEBACK))
    }

    /// Whether a page is dirty.
    pub fn is_dirty(&self, page: u64) -> bool {
        self.pages.get(page).is_some_and(|flags| flags.has(Flags::DIRTY))
    }

    /// The pages of a range that a writer of a file looks at next: at most a batch of those that
    /// are dirty.
    pub fn dirty_batch(&self, pages: Range<u64>) -> VecDeque<u64> {
        let mut from = pages.start;
        let next = || {
            let page = self.next_dirty(from..pages.end)?;
            from = page + 1;
            Some(page)
        };
        std::iter::from_fn(next).take(self.rules.batch).collect()
    }

    /// The pages that a writer looks at next: at most a batch of those in the runs that are dirty.
    /// What was taken is cut off the runs, which are in descending order.
    pub fn next_batch(&self, runs: &mut Vec<Range<u64>>) -> Vec<u64> {
        let mut batch = Vec::with_capacity(self.rules.batch);
        while batch.len() < self.rules.batch
            && let Some(run) = runs.last_mut()
        {
            match self.next_dirty(run.clone()) {
                Some(page) => {
                    batch.push(page);
                    run.start = page + 1;
                }
                None => drop(runs.pop()),
            }
        }
        batch
    }

    /// Whether a page is locked by a task that submits it.
    pub fn is_locked(&self, page: u64) -> bool {
        self.locked.contains_key(&page)
    }

    /// A task falls asleep until a page is not locked.
    pub fn wait_for_lock(&mut self, page: u64, task: ContextId) {
        self.locked.get_mut(&page).expect("it is locked").push(task);
    }

    /// Locks a page that nobody has locked.
    pub fn hold(&mut self, page: u64) {
        let before = self.locked.insert(page, Vec::new());
        assert!(before.is_none(), "it is locked");
    }

    /// Locks the first dirty page of some, unless somebody has it or writes it; the answer is
    /// which.
    pub fn hold_dirty(&mut self, pages: Range<u64>) -> Option<u64> {
        let page = self.next_dirty(pages)?;
        let is_free = !self.is_locked(page) && !self.is_written(page);
        is_free.then(|| {
            self.locked.insert(page, Vec::new());
            page
        })
    }

    /// A page has been submitted. Answers with who waits for it.
    pub fn unlock(&mut self, page: u64) -> Vec<ContextId> {
        self.locked.remove(&page).unwrap_or_default()
    }

    /// Begins to write a page that is dirty, and locks it until it has been submitted.
    pub fn write(&mut self, page: u64, now: u64) -> PageBio {
        self.note_writing(page..page + 1, now);
        self.note_writing_of(page..page + 1);
        self.pages.change(page, Flags::WRITEBACK, Flags::DIRTY);
        self.locked.insert(page, Vec::new());
        self.next_token += 1;
        self.under_way.insert(self.next_token - 1, Moving::Written(page..page + 1));
        PageBio { token: self.next_token - 1, pages: page..page + 1 }
    }

    /// Pages are being written from now on, though nobody has submitted them yet.
    pub fn begin_write(&mut self, pages: Range<u64>, now: u64) {
        self.note_writing(pages.clone(), now);
        for page in pages.clone() {
            debug_assert!(self.is_dirty(page) && !self.is_written(page), "{page} of {pages:?}");
            self.pages.change(page, Flags::WRITEBACK, Flags::DIRTY);
        }
    }

    /// Pages that were begun and are next to each other are submitted as one bio; the answer is its
    /// token.
    pub fn submit_begun(&mut self, pages: Range<u64>) -> u64 {
        self.note_writing_of(pages.clone());
        self.next_token += 1;
        self.under_way.insert(self.next_token - 1, Moving::Written(pages));
        self.next_token - 1
    }

    /// Cuts a read that has not been submitted into reads of these pages, which take its place.
    pub fn split(&mut self, token: u64, parts: Vec<Range<u64>>) -> Vec<PageBio> {
        self.under_way.remove(&token);
        let bios = parts.into_iter().map(|pages| {
            self.next_token += 1;
            self.under_way.insert(self.next_token - 1, Moving::Read(pages.clone()));
            PageBio { token: self.next_token - 1, pages }
        });
        bios.collect()
    }

    /// The bios of a run of pages.
    fn cut(&mut self, run: Range<u64>, order: u32, most: u32) -> Vec<PageBio> {
        let mut bios = Vec::new();
        for pages in self.bios(run, order, most) {
            self.under_way.insert(self.next_token, Moving::Read(pages.clone()));
            bios.push(PageBio { token: self.next_token, pages });
            self.next_token += 1;
        }
        bios
    }

    /// Cuts pages that are written where a bio can hold no more.
    pub fn bios_of(&self, run: Range<u64>) -> Vec<Range<u64>> {
        let mut bios: Vec<OpenBio> = Vec::new();
        for page in run {
            if !bios.last_mut().is_some_and(|bio| self.add_to(bio)) {
                bios.push(OpenBio::new(page));
            }
        }
        bios.into_iter().map(|it| it.pages).collect()
    }

    /// In which pieces of memory pages lie; nothing if each is as good as alone.
    pub fn memory_of(&self, pages: Range<u64>) -> Segments {
        let Some(pieces) = self.pages.pieces(pages) else { return Segments::default() };
        let lengths = pieces.into_iter().map(|it| (it.end - it.start) as u32);
        Segments::new(lengths.map(|pages| Sectors(pages * PAGE_SECTORS)).collect())
    }

    /// Adds the page behind those of a bio to it; false if it can hold no more.
    pub fn add_to(&self, bio: &mut OpenBio) -> bool {
        let page = bio.pages.end;
        let joins = bio.in_last < self.segment_pages && self.pages.follows(page);
        if !joins && bio.vecs == self.rules.bio_vecs {
            return false;
        }
        (bio.vecs, bio.in_last) = match joins {
            true => (bio.vecs, bio.in_last + 1),
            false => (bio.vecs + 1, 1),
        };
        bio.pages.end += 1;
        true
    }

    /// Cuts pages where a bio holds so many pieces.
    fn bios(&self, run: Range<u64>, order: u32, most: u32) -> Vec<Range<u64>> {
        let most = u64::from(most);
        let (mut bios, mut start, mut held) = (Vec::new(), run.start, 0);
        let mut add = |mut page: u64, end: u64, longest: u64| {
            while page < end {
                let room = (most - held).saturating_mul(longest);
                let next = page.saturating_add(room).min(end);
                held += (next - page).div_ceil(longest);
                page = next;
                if held == most || page == run.end {
                    bios.push(start..page);
                    (start, held) = (page, 0);
                }
            }
        };
        if let Some(pieces) = self.pages.pieces(run.clone()) {
            pieces.into_iter().for_each(|it| add(it.start, it.end, self.segment_pages));
            return bios;
        }
        let mut page = run.start;
        while page < run.end {
            let next = page + folio(page, run.end, order);
            add(page, next, next - page);
            page = next;
        }
        bios
    }
}

/// Pages of the folio at a page: the largest up to an order that is aligned and fits.
fn folio(page: u64, end: u64, order: u32) -> u64 {
    let fits = |order: &u32| page.is_multiple_of(1 << order) && page + (1 << order) <= end;
    (0..=order).rev().find(fits).map_or(1, |order| 1 << order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readahead::{Allowance, Reader};
    use block::Version;

    /// Each run as the first page and the end of its bios.
    fn spans(runs: &[Vec<PageBio>]) -> Vec<Vec<(u64, u64)>> {
        runs.iter()
            .map(|run| run.iter().map(|bio| (bio.pages.start, bio.pages.end)).collect())
            .collect()
    }

    fn memory() -> Memory {
        let mut memory = Memory::of_pages(10_000, 100, 150);
        memory.at_boot = 9_750;
        memory
    }

    impl PageCache {
        /// A window of the disk itself is taken in.
        fn admit(&mut self, window: Window, disk_pages: u64) -> Vec<Vec<PageBio>> {
            self.admit_in(self.rules.bio_vecs, window, disk_pages)
        }
    }

    /// Pages that lie apart.
    fn sparse(version: Version) -> PageCache {
        PageCache::new(
            Kernel::of(version),
            &guest::Profile::uml().memory,
            Sectors(PAGE_SECTORS),
            memory(),
            true,
            4,
        )
    }

    fn window(start: u64, length: u64, order: u32) -> Window {
        Window { start, length, mark: None, order }
    }

    #[test]
    fn pages_that_are_there_split_a_window_and_the_end_of_the_disk_cuts_it() {
        let mut cache = sparse(Version::V4_19);
        cache.admit(window(4, 2, 0), 1000);
        assert_eq!(spans(&cache.admit(window(0, 32, 0), 10)), [[(0, 4)], [(6, 10)]]);
        assert!(cache.admit(window(0, 32, 0), 10).is_empty());
    }

    #[test]
    fn a_bio_holds_256_pages_folios_or_pieces_of_memory() {
        let mut cache = sparse(Version::V4_19);
        let runs = cache.admit(window(0, 600, 0), 1000);
        assert_eq!(spans(&runs), [[(0, 256), (256, 512), (512, 600)]]);
        let mut cache = sparse(Version::V6_18);
        let runs = cache.admit(window(2048, 2048, 9), 10_000);
        assert_eq!(spans(&runs), [[(2048, 4096)]]);
        let mut cache = PageCache::new(
            Kernel::of(Version::V6_12),
            &guest::Profile::uml().memory,
            Sectors(16),
            memory(),
            true,
            4,
        );
        let runs = cache.admit(window(0, 600, 0), 10_000);
        assert_eq!(spans(&runs), [[(0, 512), (512, 600)]]);
    }

    #[test]
    fn old_pages_go_for_new_ones_unless_they_were_used_again() {
        let mut cache = sparse(Version::V4_19);
        let file = cache.open(ContextId(7), Allowance { readahead: 32, request: 320 }, 0, false);
        for start in (0..9_900).step_by(100) {
            for run in cache.admit(window(start, 100, 0), 1 << 20) {
                run.iter().for_each(|bio| drop(cache.done(bio.token, 0)));
            }
        }
        for page in [5, 6, 5, 6] {
            cache.used(file, page);
        }
        cache.admit(window(9_900, 10, 0), 1 << 20);
        // 60 go, but not 5 and 6.
        assert!(!cache.pages.holds(0) && cache.pages.holds(5) && cache.pages.holds(6));
        assert!(!cache.pages.holds(61) && cache.pages.holds(62));
    }

    #[test]
    fn a_dirty_page_that_is_to_go_is_read_on_from_once_a_batch_is_full_or_a_task_ends() {
        let mut cache = sparse(Version::V6_12);
        let device = Allowance { readahead: 32, request: 320 };
        let file = cache.open(ContextId(7), device, 0, false);
        (100..140).for_each(|page| _ = cache.dirty(ContextId(9), page, 0));
        cache.forget_range(0..u64::MAX);
        let ahead = |cache: &mut PageCache, page| {
            !cache.touched(file, device, Reader { page, request: 1 }).is_empty()
        };
        assert!(ahead(&mut cache, 130));
        assert!(!ahead(&mut cache, 131), "the second batch has nine");
        cache.task_ended(ContextId(1));
        assert!(ahead(&mut cache, 131));
        let token = cache.write(132, 1).token;
        cache.unlock(132);
        cache.done(token, 0);
        assert!(!ahead(&mut cache, 132), "it has been written");
    }

    #[test]
    fn the_last_one_who_closes_the_disk_drops_what_is_cached() {
        let mut cache = sparse(Version::V6_12);
        let device = Allowance { readahead: 32, request: 320 };
        let files = [1, 2].map(|task| cache.open(ContextId(task), device, 0, false));
        let token = cache.admit(window(0, 4, 0), 1000)[0][0].token;
        cache.done(token, 0);
        cache.close(files[0]);
        cache.close(files[0]);
        assert!(cache.pages.holds(0));
        cache.close(files[1]);
        assert!(!cache.pages.holds(0));
    }

    #[test]
    fn a_file_in_an_extent_is_read_ahead_from_its_beginning_to_its_end() {
        let mut cache = sparse(Version::V2_6_28);
        let device = Allowance { readahead: 32, request: 128 };
        let file = cache.open(ContextId(9), device, 0, false);
        cache.confine(file, 1000..1020);
        // Its page 0 begins a window of 8, whose mark is behind what was asked for.
        let windows = cache.missed(file, device, Reader { page: 1000, request: 4 });
        assert_eq!((windows[0].start, windows[0].length, windows[0].mark), (1000, 8, Some(1004)));
        let runs = cache.admit_of(file, windows[0], 1 << 20);
        assert_eq!(runs[0].len(), 1, "one bio");
        let ahead = cache.touched(file, device, Reader { page: 1004, request: 4 });
        assert_eq!((ahead[0].start, ahead[0].length), (1008, 12), "and ends where the file does");
    }

    #[test]
    fn a_page_that_is_changed_while_it_is_read_for_another_stays_until_it_is_written() {
        let mut cache = sparse(Version::V6_12);
        let reading = cache.admit_alone(5).token;
        cache.dirty(ContextId(9), 5, 0);
        let writing = cache.write(5, 1).token;
        cache.unlock(5);
        cache.done(reading, 0);
        assert!(cache.is_written(5));
        cache.drop_range(0..10);
        cache.done(writing, 0);
        assert!(!cache.is_written(5) && cache.holds(5));
        // Written and gone before it was read.
        let reading = cache.admit_alone(6).token;
        cache.dirty(ContextId(9), 6, 0);
        let writing = cache.write(6, 1).token;
        cache.done(writing, 0);
        cache.drop_range(0..10);
        cache.done(reading, 0);
        assert!(!cache.holds(6));
    }

    #[test]
    fn in_2_6_28_waiters_for_later_pages_of_a_bio_go_first() {
        let mut cache = sparse(Version::V2_6_28);
        let device = Allowance { readahead: 32, request: 128 };
        let file = cache.open(ContextId(9), device, 0, false);
        cache.confine(file, 0..100);
        let token = cache.admit_of(file, window(0, 8, 4), 1 << 20)[0][0].token;
        for (page, task) in [(0, 1), (4, 2), (0, 3)] {
            cache.wait(page, ContextId(task));
        }
        let woken = cache.done(token, 0).into_iter().map(|(page, task)| (page, task.0));
        assert_eq!(woken.collect::<Vec<_>>(), [(4, 2), (0, 1), (0, 3)]);
    }

    #[test]
    fn in_2_6_28_every_page_is_a_bio() {
        let mut cache = sparse(Version::V2_6_28);
        assert_eq!(cache.admit(window(0, 32, 0), 1000)[0].len(), 32);
    }

    #[test]
    fn folios_are_as_large_as_fits_and_smaller_at_the_borders() {
        let sizes = |mut page: u64, end: u64, order| {
            let mut sizes = Vec::new();
            while page < end {
                sizes.push(folio(page, end, order));
                page += sizes[sizes.len() - 1];
            }
            sizes
        };
        assert_eq!(sizes(1005, 1012, 2), [1, 2, 4]);
        assert_eq!(sizes(16, 26, 3), [8, 2]);
    }

    #[test]
    fn who_waits_is_named_by_ascending_page_and_what_was_read_is_dropped_when_written_over() {
        let mut cache = sparse(Version::V6_12);
        let token = cache.admit(window(0, 4, 0), 1000)[0][0].token;
        assert!(PageCache::owns(token) && !cache.is_ready(2));
        cache.wait(2, ContextId(7));
        cache.wait(1, ContextId(9));
        cache.drop_range(0..4);
        assert_eq!(cache.done(token, 0), [(1, ContextId(9)), (2, ContextId(7))]);
        assert!(cache.is_ready(2));
        cache.drop_range(0..2);
        assert_eq!(spans(&cache.admit(window(0, 4, 0), 1000)), [[(0, 2)]]);
    }
}
