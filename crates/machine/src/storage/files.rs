//! Files: data on their way to the disk, what the flusher is to write, and closing.

use super::{Effect, Storage};
use block::{CgroupId, ContextId};
use cache::FILE_PAGES;
use fs::files::Write;
use fs::{FileSystem, Format, all_pages, key};
use std::ops::Range;

impl Storage {
    /// Whether a token of pages is that of data of a file being written.
    pub fn is_writing(&self, token: u64) -> bool {
        self.fs.as_ref().is_some_and(|fs| fs.files().is_writing(token))
    }

    /// A bio that wrote pages of a file is done.
    pub fn file_pages_written(&mut self, token: u64, now: u64) -> Vec<Effect> {
        let write = self.files().bio_written(token);
        self.ended(write, now)
    }

    /// One of the bios of a write is done, or all have been submitted.
    pub fn all_of_write(&mut self, number: u64, now: u64) -> Vec<Effect> {
        let write = self.files().part_written(number);
        self.ended(write, now)
    }

    /// Nothing of a write is under way any more, if there is one. Its pages have been written,
    /// unless the file is to learn of it first.
    fn ended(&mut self, write: Option<Write>, now: u64) -> Vec<Effect> {
        let Some(Write { written, converts, tokens, .. }) = write else { return Vec::new() };
        if converts || self.grows_on_disk(written.file, written.size) {
            return vec![Effect::Notify(self.files().leave_to_converter(written, tokens))];
        }
        tokens.into_iter().flat_map(|token| self.pages_done(token, now)).collect()
    }

    /// Whether XFS is to learn that a file is so long; ext4 knows when it gives blocks their
    /// places.
    fn grows_on_disk(&mut self, file: usize, size: u64) -> bool {
        self.format() == Some(Format::Xfs) && size > self.files().inode(file).disk_size
    }

    /// The file that is open under a number; none if that is the disk.
    fn file_of(&self, number: usize) -> Option<usize> {
        let first_page = self.cache.first_page_of(number);
        (first_page > 0).then_some((first_page / FILE_PAGES) as usize)
    }

    /// Whether what is open under a number is a file without name.
    pub fn is_unlinked(&mut self, number: usize) -> bool {
        self.file_of(number).is_some_and(|file| self.files().inode(file).is_unlinked)
    }

    /// An open file, of this number, is closed. What was kept for a file goes with the last one who
    /// could write it. Answers with the file if it has no name and nobody has it open.
    pub fn close_file(&mut self, number: usize) -> Option<usize> {
        let index = self.file_of(number);
        let wrote = self.cache.close(number)?;
        let index = index?;
        let inode = self.files().inode(index);
        inode.opens -= 1;
        inode.writers -= u32::from(wrote);
        let is_left = inode.is_unlinked && inode.opens == 0;
        let is_last = wrote && inode.writers == 0;
        if let Some(fs) = self.fs.as_mut().filter(|_| is_last) {
            fs.last_writer_gone(index);
        }
        is_left.then_some(index)
    }

    /// A task of a group makes a page of a file dirty in a tick; the answer is whether it was
    /// clean.
    pub fn dirty_page(
        &mut self,
        task: ContextId,
        group: CgroupId,
        file: usize,
        page: u64,
        now: u64,
    ) -> bool {
        let at = key(file, page);
        self.cache.claim(at, group);
        let is_first = self.cache.dirty(task, at, now);
        self.files().note_dirty(file, now);
        is_first
    }

    /// Whether so much is dirty that the flusher goes on; anything is while the disk is unknown, at
    /// first or because it was not written for a while.
    pub fn is_too_much(&mut self, group: CgroupId, now: u64) -> bool {
        let is_unknown = self.cache.rules().unknown_is_much && self.cache.is_unknown(group, now);
        let dirty = self.cache.counts_of(group).dirty;
        self.cache.is_too_much(group, now) || is_unknown && dirty > 0
    }

    /// The files of a group that have something dirty since a tick or longer, oldest first.
    pub fn dirty_files(&mut self, group: CgroupId, before: u64) -> Vec<usize> {
        let mut files: Vec<usize> = self.files().dirty_since(before).collect();
        files.retain(|file| self.cache.owner(key(*file, 0)) == group);
        files
    }

    /// Begins a round of a group's flusher if the last one is over: files that became dirty
    /// before a tick.
    pub fn begin_round(&mut self, group: CgroupId, before: u64) {
        let all = self.dirty_files(group, u64::MAX);
        self.files().begin_round(&all, before);
    }

    /// The file that a group's flusher visits next in this round.
    pub fn next_in_round(&mut self, group: CgroupId) -> Option<usize> {
        let all = self.dirty_files(group, u64::MAX);
        self.files().next_in_round(&all)
    }

    /// A file with nothing dirty is not looked at by the flusher; the answer is whether it is one.
    pub fn forget_if_clean(&mut self, file: usize, now: u64) -> bool {
        let is_clean = self.cache.next_dirty(all_pages(file)).is_none();
        if is_clean {
            self.files().note_clean(file);
            let group = self.cache.owner(key(file, 0));
            if self.dirty_files(group, u64::MAX).is_empty() {
                self.cache.writeback_of(group).visited(now, false, false);
            }
        }
        is_clean
    }

    /// So much as was to be written of a file has been submitted; the answer is whether it is
    /// clean.
    pub fn end_visit(&mut self, file: usize, now: u64) -> bool {
        let is_clean = self.forget_if_clean(file, now);
        self.cache.end_round(file as u64);
        is_clean
    }

    /// Blocks of metadata that may go to their places.
    pub fn dirty_buffers(&self) -> Vec<u64> {
        self.cache.dirty_runs(all_pages(0)).into_iter().flatten().collect()
    }

    /// The first dirty pages of a file that follow each other, have no place or one without
    /// contents, and are not being written.
    pub fn next_run(&mut self, file: usize, pages: Range<u64>, most: u64) -> Option<Range<u64>> {
        let mut from = pages.start;
        let first = loop {
            let dirty = self.cache.next_dirty(key(file, from)..key(file, pages.end))?;
            let page = dirty % FILE_PAGES;
            if self.files().lacks_contents(file, page) && !self.cache.is_written(dirty) {
                break page;
            }
            from = page + 1;
        };
        let limit = first.saturating_add(most).min(pages.end);
        let mut end = first + 1;
        while end < limit
            && self.cache.is_dirty(key(file, end))
            && !self.cache.is_written(key(file, end))
            && !self.cache.is_locked(key(file, end))
            && self.files().lacks_contents(file, end)
        {
            end += 1;
        }
        Some(first..end)
    }

    /// Drops everything that is cached and clean, and what is logged goes to its place.
    // Divergence: metadata stay, but for the map of ext4's log. (Those looked for last are kept,
    // and so are those that its journal holds; inodes of XFS are read again with their cluster,
    // which is in memory.)
    // Observed on 6.12: drop_caches.
    pub fn drop_caches(&mut self) -> Vec<Effect> {
        let first = if self.has_files() { key(1, 0) } else { 0 };
        self.cache.forget_range(first..u64::MAX);
        match &mut self.fs {
            Some(FileSystem::Ext4(fs)) => {
                if let Some(block) = fs.forget_journal_map() {
                    self.cache.forget_range(block..block + 1);
                }
                Vec::new()
            }
            Some(FileSystem::Xfs(fs)) => {
                fs.place_all();
                self.wake_placer()
            }
            None => Vec::new(),
        }
    }
}
