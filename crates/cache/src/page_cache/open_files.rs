//! Files that are open, each with a readahead of its own: the disk itself, and files on it.
//!
//! A file counts pages from its own first; in the cache they have numbers among all pages.

use super::{FILE_PAGES, PAGE, PageCache};
use crate::pages::{CachedPages, Flags, Pages};
use crate::readahead::{Advice, Allowance, Readahead, Reader, Window};
use block::ContextId;
use std::ops::Range;

/// A file that was opened.
pub(super) struct Opened {
    pub(super) readahead: Readahead,
    /// The number of its first page.
    base: u64,
    /// The page that its last call used last.
    last: Option<u64>,
    /// Whose it is; nobody's when it is closed.
    owner: Option<ContextId>,
    /// The pages of the disk that it stands for as a file of a file system; otherwise the disk.
    pub(super) extent: Option<Range<u64>>,
    /// It was opened for writing.
    writes: bool,
}

impl Opened {
    /// The number of its first page.
    pub(super) fn origin(&self) -> u64 {
        self.extent.as_ref().map_or(self.base, |extent| extent.start)
    }

    /// A window counted from its first page, among all pages.
    pub(super) fn place(&self, window: Window) -> Option<Window> {
        match &self.extent {
            Some(extent) => window.within(extent),
            None => Some(window.shifted(self.base)),
        }
    }
}

impl PageCache {
    /// A task opens the disk, or the file whose pages have the numbers from `base` on; the answer
    /// is the number of the open file.
    pub fn open(&mut self, owner: ContextId, device: Allowance, base: u64, writes: bool) -> usize {
        let readahead = Readahead::open(device);
        let unowned = Opened { readahead, base, last: None, owner: None, extent: None, writes };
        self.files.push(unowned);
        let file = self.files.len() - 1;
        self.give(file, owner);
        file
    }

    fn give(&mut self, file: usize, owner: ContextId) {
        self.take(file);
        let opened = &mut self.files[file];
        opened.owner = Some(owner);
        self.open_disks += usize::from(opened.base == 0);
        self.owned.entry(owner).or_default().insert(file);
    }

    /// The file is nobody's any more; the answer is whether it was somebody's.
    fn take(&mut self, file: usize) -> bool {
        let opened = &mut self.files[file];
        let Some(owner) = opened.owner.take() else { return false };
        self.open_disks -= usize::from(opened.base == 0);
        let owned = self.owned.get_mut(&owner).expect("it was given it");
        owned.remove(&file);
        if owned.is_empty() {
            self.owned.remove(&owner);
        }
        true
    }

    /// An open file shall stand for a file that lies in these pages of the disk: it is read ahead
    /// from its own beginning to its own end, and many pages are a bio (rule readahead-15).
    pub fn confine(&mut self, file: usize, extent: Range<u64>) {
        self.files[file].extent = Some(extent);
    }

    /// A file is opened once more, under the same number.
    pub fn reopen(&mut self, file: usize, owner: ContextId, device: Allowance) {
        let readahead = Readahead::open(device);
        self.give(file, owner);
        let opened = &mut self.files[file];
        (opened.readahead, opened.last, opened.extent) = (readahead, None, None);
    }

    /// Whether a file is the only one through which the disk is open.
    pub fn is_last(&self, file: usize) -> bool {
        let opened = &self.files[file];
        opened.owner.is_some() && self.open_disks == usize::from(opened.base == 0)
    }

    /// A file is closed. With the last one of the disk everything goes that is clean (rule sync-4).
    /// Answers with whether it was written, if it was open.
    pub fn close(&mut self, file: usize) -> Option<bool> {
        let is_last = self.files[file].base == 0 && self.is_last(file);
        let was_open = self.take(file);
        if is_last {
            self.drop_range(0..FILE_PAGES);
        }
        was_open.then(|| self.files[file].writes)
    }

    /// The number of the first page of what is open.
    pub fn first_page_of(&self, file: usize) -> u64 {
        self.files[file].base
    }

    /// The files that a task has open.
    pub fn files_of(&self, task: ContextId) -> Vec<usize> {
        self.owned.get(&task).into_iter().flatten().copied().collect()
    }

    /// A program says how it will read.
    pub fn advise(&mut self, file: usize, advice: Advice, device: Allowance) {
        self.files[file].readahead.advise(advice, device);
    }

    /// What is to be read because a page is missing; nothing if it is there.
    pub fn missed(&mut self, file: usize, device: Allowance, reader: Reader) -> Vec<Window> {
        if self.pages.holds(reader.page) {
            return Vec::new();
        }
        let opened = &mut self.files[file];
        let base = opened.origin();
        let (pages, reader) = (OfFile { pages: &self.pages, base }, reader.from(base));
        let windows = opened.readahead.missed(&self.rules.readahead, device, reader, &pages);
        windows.into_iter().filter_map(|window| opened.place(window)).collect()
    }

    /// A reader touches a page: what is read on ahead if it carries the mark.
    pub fn touched(&mut self, file: usize, device: Allowance, reader: Reader) -> Vec<Window> {
        if !self.pages.get(reader.page).is_some_and(|flags| flags.has(Flags::MARKED)) {
            return Vec::new();
        }
        self.pages.change(reader.page, Flags::NONE, Flags::MARKED);
        let opened = &mut self.files[file];
        let base = opened.origin();
        let (pages, reader) = (OfFile { pages: &self.pages, base }, reader.from(base));
        let window =
            opened.readahead.touched_mark(&self.rules.readahead, device, reader, 0, &pages);
        window.and_then(|window| opened.place(window)).into_iter().collect()
    }

    /// A page is read: to use it again makes it stay longer, unless it is the last one used.
    pub fn used(&mut self, file: usize, page: u64) {
        if self.files[file].last.replace(page) != Some(page) && self.pages.holds(page) {
            self.pages.touch(page);
        }
    }

    /// A call has ended before a byte.
    pub fn call_ended(&mut self, file: usize, end: u64) {
        let opened = &mut self.files[file];
        let start = opened.origin() * PAGE;
        opened.readahead.call_ended(&self.rules.readahead, end - start);
    }
}

/// The pages of one file, counted from its first.
pub(super) struct OfFile<'a> {
    pub pages: &'a Pages,
    pub base: u64,
}

impl CachedPages for OfFile<'_> {
    fn holds(&self, page: u64) -> bool {
        self.pages.holds(self.base + page)
    }
}
