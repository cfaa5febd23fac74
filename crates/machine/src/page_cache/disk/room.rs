//! Which pages leave memory: on demand, with their file, or because more are to come.

use super::{DISK, DiskCache, FILE_PAGES, TOGETHER};
use crate::filesystem::Format;
use crate::page_cache::frames::{Frames, leaf_of, nodes_above};
use crate::page_cache::lru::Verdict;
use crate::page_cache::pages::Flags;
use std::ops::Range;

/// Pieces of nodes of a file that stay when it is let go: on ext4 of up to so many bytes, on a
/// larger one, and on XFS.
// measured on 6.12 in guests of 512 MiB: disks of 40 GiB, and of 100 GiB to 1.9 TB
const SMALL: u64 = 64 << 30;
const KEPT_ON_SMALL_EXT4: u64 = 1;
const KEPT_ON_EXT4: u64 = 3;
const KEPT_ON_XFS: u64 = 2;

impl DiskCache {
    /// A file system is mounted on a disk of so many bytes, which leaves memory as it does.
    pub fn note_mount(&mut self, format: Format, capacity: u64) {
        let kept = match format {
            Format::Ext4 if capacity <= SMALL => KEPT_ON_SMALL_EXT4,
            Format::Ext4 => KEPT_ON_EXT4,
            Format::Xfs => KEPT_ON_XFS,
        };
        self.pages.frames().into_iter().for_each(|frames| frames.keep_pieces(kept));
        match format {
            Format::Ext4 => self.pcp_lists.note_ext4(),
            Format::Xfs => self.pcp_lists.describes = false,
        }
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

    /// A task has ended.
    pub fn task_ended(&mut self) {
        self.pages.frames().into_iter().for_each(Frames::task_ended);
    }

    /// Somebody would rather have the memory: clean pages of a range go that nobody has mapped.
    pub fn forget_range(&mut self, pages: Range<u64>) {
        for run in self.mapped.others(pages) {
            self.drop_range(run);
        }
    }

    /// Pages are written over without the cache: those that are there go.
    pub fn drop_range(&mut self, pages: Range<u64>) {
        let Range { start, end } = pages;
        let mut gone: Vec<Range<u64>> = Vec::new();
        let (mut leaves, mut last) = (0, None);
        self.pages.drop_clean(start, end, |page| {
            self.mapped.remove(page);
            leaves += u64::from(last.replace(leaf_of(page)) != Some(leaf_of(page)));
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
        if let Some(frames) = self.pages.frames() {
            frames.nodes_left(nodes_above(leaves));
        }
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
        let (pages, mapped) = (&mut self.pages, &mut self.mapped);
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
            Verdict::Evict
        });
    }
}
