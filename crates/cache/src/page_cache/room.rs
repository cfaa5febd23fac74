//! Which pages leave memory: on demand, with their file, or because more are to come.

use super::{DISK, FILE_PAGES, PageCache, TOGETHER};
use crate::frames::Frames;
use crate::lru::Verdict;
use crate::pages::Flags;
use block::{ContextId, PagesWhy};
use guest::Footprint;
use guest::LeftBehind;
use std::ops::Range;

/// What of memory a mounted file system has to do with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// How many nodes of files there is room for in each of the pieces of memory that are filled
    /// next, and that others share.
    pub nodes_room: [u64; 3],
    /// So many of these are taken before the first file comes.
    pub nodes_taken: u64,
    /// Its dirty pages have descriptions of their blocks (buffer heads).
    pub has_buffers: bool,
    /// Pages for whatever else that mounting leaves with a core of more than little memory.
    pub others: u64,
}

impl PageCache {
    /// A program begins to use this much memory.
    pub fn take_memory(&mut self, program: &'static str, footprint: Footprint) {
        self.memory.take(program, footprint);
    }

    /// A program no longer uses this much memory.
    pub fn give_memory_back(&mut self, program: &'static str, footprint: Footprint) {
        self.memory.give_back(program, footprint);
    }

    /// A program needed memory for a moment, and these pages are at hand then.
    pub fn leave_behind(&mut self, left: LeftBehind) {
        self.pcp_lists.leave(left);
    }

    /// A file system is mounted, which leaves memory as it does.
    pub fn note_mount(&mut self, mounted: Mounted) {
        let frames = self.pages.frames();
        let Mounted { nodes_room, nodes_taken, has_buffers, .. } = mounted;
        frames.into_iter().for_each(|it| it.note_mount(nodes_room, nodes_taken, has_buffers));
        self.pcp_lists.note_mount(mounted.has_buffers, mounted.others);
    }

    /// A page that is dirty need not be written, at least not now.
    pub fn undirty(&mut self, page: u64) {
        if self.is_dirty(page) {
            self.pages.change(page, Flags::NONE, Flags::DIRTY);
            self.groups.changed(page / FILE_PAGES, -1, 0);
        }
    }

    /// Pages whose file has become shorter go, dirty or not; those that are being written or read
    /// stay until that is done.
    pub fn discard(&mut self, pages: Range<u64>) {
        let mut from = pages.start;
        while let Some(page) = self.next_dirty(from..pages.end) {
            self.undirty(page);
            from = page + 1;
        }
        self.drop_range(pages);
    }

    /// A task was started, which takes memory.
    pub fn task_started(&mut self) {
        self.pages.frames().into_iter().for_each(Frames::task_started);
    }

    /// A task writes to so many pages of its own memory for the first time.
    pub fn take_own(&mut self, task: ContextId, pages: u32) {
        let Some(frames) = self.pages.frames() else { return };
        let taken = (0..pages).map(|_| frames.take());
        self.own.entry(task).or_default().extend(taken);
    }

    /// A task gives back so many of those that it wrote to last.
    pub fn give_own(&mut self, task: ContextId, pages: usize) {
        let Some(own) = self.own.get_mut(&task) else { return };
        let given = own.split_off(own.len().saturating_sub(pages));
        if let Some(frames) = self.pages.frames() {
            given.into_iter().for_each(|frame| frames.give_own(frame));
        }
    }

    /// A task has ended.
    pub fn task_ended(&mut self, task: ContextId) {
        self.give_own(task, usize::MAX);
        self.own.remove(&task);
        self.pages.frames().into_iter().for_each(Frames::task_ended);
        self.mark_deactivated();
    }

    /// Somebody would rather have the memory: clean pages of a range go that nobody has mapped.
    /// A dirty one is to go as soon as it has been written. The flag for that is also the mark of
    /// readahead, so whoever reads the page before it is written reads on ahead, at each page.
    // observed on 6.1.192, 6.12.117 and 7.3.4: mm_filemap_get_pages and block_rq_issue of three
    // processes of fio, the last of which sends BLKFLSBUF while the others have written
    pub fn forget_range(&mut self, pages: Range<u64>) {
        self.mark_deactivated();
        for run in self.mapped.others(pages) {
            self.drop_range(run.clone());
            if self.rules.marks_deactivated {
                self.deactivate(run);
            }
        }
    }

    /// Dirty pages of a range are to go once they are written; a core notes a batch at a time.
    fn deactivate(&mut self, pages: Range<u64>) {
        for page in self.dirty_runs(pages).into_iter().flatten() {
            self.deactivated.push(page);
            if self.deactivated.len() == self.rules.batch {
                self.mark_deactivated();
            }
        }
    }

    /// What a core has noted of pages that are to go holds for them now, if they are still dirty.
    fn mark_deactivated(&mut self) {
        for page in std::mem::take(&mut self.deactivated) {
            if self.is_dirty(page) {
                self.pages.change(page, Flags::MARKED, Flags::NONE);
            }
        }
    }

    /// Pages are written over without the cache: those that are there go.
    pub fn drop_range(&mut self, pages: Range<u64>) {
        let Range { start, end } = pages;
        let mut gone: Vec<Range<u64>> = Vec::new();
        self.pages.drop_clean(start, end, |page| {
            self.mapped.remove(page);
            if let Some(history) = &mut self.history {
                history.leaves(page, PagesWhy::Dropped);
            }
            match gone.last_mut() {
                Some(run) if run.end == page => run.end += 1,
                _ => {
                    if gone.len() == TOGETHER {
                        self.lru.left(DISK, &gone);
                        gone.clear();
                    }
                    gone.push(page..page + 1);
                }
            }
        });
        self.lru.left(DISK, &gone);
        self.pcp_lists.forget(self.pages.counts().cached);
    }

    /// Pages that could be dirty, of which limits are percentages.
    pub(super) fn dirtyable(&self) -> u64 {
        self.memory.dirtyable().saturating_sub(self.pcp_lists.pages())
    }

    /// Lets old pages go so that more can come.
    pub(super) fn make_room(&mut self, more: u64) {
        self.pcp_lists.came(more);
        let taken = self.pages.counts().cached + self.pcp_lists.pages();
        let excess = self.memory.excess(taken, more);
        if excess == 0 {
            return;
        }
        let PageCache { pages, mapped, history, .. } = self;
        pages.frames().into_iter().for_each(|frames| frames.set_short(true));
        self.lru.evict(excess, |_, page| {
            let flags = pages.get(page).expect("what is queued is in memory");
            if !flags.is_droppable() {
                return Verdict::Keep;
            }
            if flags.has(Flags::ACTIVE) {
                pages.change(page, Flags::NONE, Flags::ACTIVE.with(Flags::TOUCHED));
                return Verdict::Keep;
            }
            pages.remove(page);
            mapped.remove(page);
            if let Some(history) = history {
                history.leaves(page, PagesWhy::Evicted);
            }
            Verdict::Evict
        });
        pages.frames().into_iter().for_each(|frames| frames.set_short(false));
    }
}
