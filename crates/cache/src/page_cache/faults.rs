//! What is read when a mapped page is touched (rules mmap), and what is mapped with it.

use super::PageCache;
use super::open_files::OfFile;
use crate::pages::Flags;
use crate::readahead::{Advice, Allowance, Reader, Window};
use block::ContextId;
use std::ops::Range;

/// Pages that are mapped with the one that was touched: the 64 KiB around it (rule mmap-3).
const AROUND: u64 = 16;

/// What a fault reads.
pub enum Faulted {
    /// The page itself, as a plain read.
    Alone,
    /// Windows of readahead.
    Windows(Vec<Window>),
}

impl PageCache {
    /// A task maps pages.
    pub fn begin_mapping(&mut self, task: ContextId, pages: Range<u64>) {
        self.mapped.begin(task, pages);
    }

    /// A task that may have mapped something has ended.
    pub fn end_mappings(&mut self, task: ContextId) {
        self.mapped.end(task);
    }

    /// Whether a page can be touched without a fault.
    pub fn is_mapped(&self, page: u64) -> bool {
        self.mapped.has(page)
    }

    /// A fault has found its page.
    pub fn map(&mut self, page: u64) {
        self.mapped.insert(page);
    }

    /// Maps what is ready around a page that is read; a page with the mark is left for a fault of
    /// its own. The answer is whether the page itself is mapped now.
    pub fn map_around(&mut self, page: u64, pages: &Range<u64>) -> bool {
        let first = page / AROUND * AROUND;
        for near in first.max(pages.start)..(first + AROUND).min(pages.end) {
            let flags = self.pages.get(near);
            let is_ready =
                flags.is_some_and(|it| it.has(Flags::UP_TO_DATE) && !it.has(Flags::MARKED));
            if is_ready && !self.is_locked(near) {
                self.mapped.insert(near);
            }
        }
        self.mapped.has(page)
    }

    /// A page that is touched is not mapped: what is to be read, by what was said of the mapping.
    pub fn fault(&mut self, file: usize, device: Allowance, page: u64, advice: Advice) -> Faulted {
        let found = self.pages.get(page);
        let opened = &mut self.files[file];
        let base = opened.origin();
        let request = opened.readahead.fault_request();
        if let Some(flags) = found {
            opened.readahead.fault_found();
            if !flags.has(Flags::MARKED) {
                return Faulted::Windows(Vec::new());
            }
            return Faulted::Windows(self.touched(file, device, Reader { page, request }));
        }
        let windows = match advice {
            Advice::Random => return Faulted::Alone,
            Advice::Sequential => {
                let pages = OfFile { pages: &self.pages, base };
                let reader = Reader { page: page - base, request };
                opened.readahead.missed(&self.rules.readahead, device, reader, &pages)
            }
            Advice::Normal => match opened.readahead.fault_missed(page - base) {
                Some(window) => vec![window],
                None => return Faulted::Alone,
            },
        };
        let opened = &self.files[file];
        Faulted::Windows(windows.into_iter().filter_map(|window| opened.place(window)).collect())
    }
}
