//! What a host writes back to the drive behind a virtual disk, and when.
//!
//! A page that was written stays dirty for a while; then it is due. The host goes over the pages
//! that are due in the order of the disk, joins neighbours, and has a bounded number of writes at
//! the drive. A page that is written again meanwhile is written back once. At the limit of dirty
//! data everything is due, and whoever writes more waits. Leaves out the host's other files.

use std::collections::{BTreeSet, VecDeque};

use base::{Duration, Instant, page};
use params::Accept::{Size, Time, Whole};
use params::{Section, Table, spec};

pub(super) const SECTION: Section = Section {
    name: "write_back",
    required: false,
    specs: &[
        spec("after", Time(0.0, 600e9)),
        spec("at_once", Whole(1, 65_536, "")),
        spec("largest", Size(4096.0, 1e9)),
    ],
};

/// How the host writes back.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// How old dirty pages become.
    pub after: Duration,
    /// Writes at the drive, and pages of each, at most.
    pub at_once: usize,
    pub largest: u64,
    /// Dirty pages at most.
    pub limit: u64,
}

impl Rules {
    /// What a model states that has the section; `limit` is in bytes.
    pub fn load(table: &Table, limit: u64) -> Option<Rules> {
        table.has(SECTION.name).then(|| Rules {
            after: table.time("write_back.after"),
            at_once: table.whole("write_back.at_once") as usize,
            largest: table.size("write_back.largest") / page::SIZE,
            limit: limit / page::SIZE,
        })
    }
}

/// Dirty pages, and those on their way to the drive.
pub(super) struct WriteBack {
    rules: Rules,
    /// Pages that wait until they are due, in the order in which they became dirty.
    young: VecDeque<(Instant, u64)>,
    /// Pages that are due.
    due: BTreeSet<u64>,
    /// All of both.
    dirty: BTreeSet<u64>,
    /// Where the host goes on.
    sweep: u64,
    /// Pages of each write at the drive; `None`: a free place.
    writing: Vec<Option<u64>>,
    pages_writing: u64,
}

impl WriteBack {
    /// With so many writes at the drive at most, each of at most so many pages.
    pub fn new(rules: Rules, places: usize, largest: u64) -> WriteBack {
        WriteBack {
            rules: Rules { largest: rules.largest.min(largest), ..rules },
            young: VecDeque::new(),
            due: BTreeSet::new(),
            dirty: BTreeSet::new(),
            sweep: 0,
            writing: vec![None; places],
            pages_writing: 0,
        }
    }

    /// How many writes may be at the drive.
    pub fn places(&self) -> usize {
        self.writing.len()
    }

    /// Whether so many more pages may become dirty. If not, everything is due.
    pub fn has_room(&mut self, pages: u64) -> bool {
        let held = self.dirty.len() as u64 + self.pages_writing;
        if held == 0 || held + pages <= self.rules.limit {
            return true;
        }
        self.due.extend(self.young.drain(..).map(|(_, page)| page));
        false
    }

    /// Whether the host holds the page because it is not on the drive yet.
    pub fn holds(&self, page: u64) -> bool {
        self.dirty.contains(&page)
    }

    pub fn note_written(&mut self, now: Instant, page: u64) {
        if self.dirty.insert(page) {
            self.young.push_back((now, page));
        }
    }

    /// When a page becomes due that is not yet.
    pub fn next_due(&self) -> Option<Instant> {
        self.young.front().map(|(since, _)| *since + self.rules.after)
    }

    /// The next write for the drive: its place, its first page, and how many pages it has.
    pub fn next(&mut self, now: Instant) -> Option<(usize, u64, u64)> {
        while self.next_due().is_some_and(|due| due <= now) {
            self.due.extend(self.young.pop_front().map(|(_, page)| page));
        }
        let place = self.writing.iter().position(Option::is_none)?;
        let ahead = self.due.range(self.sweep..).next();
        let first = *ahead.or_else(|| self.due.first())?;
        let mut end = first;
        while end - first < self.rules.largest && self.due.remove(&end) {
            self.dirty.remove(&end);
            end += 1;
        }
        self.sweep = end;
        self.writing[place] = Some(end - first);
        self.pages_writing += end - first;
        Some((place, first, end - first))
    }

    /// The write at this place is on the drive.
    pub fn written(&mut self, place: usize) {
        let pages = self.writing[place].take().expect("a write that was sent down");
        self.pages_writing -= pages;
    }
}
