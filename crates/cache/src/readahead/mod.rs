//! Readahead: how far an open file is read ahead of who reads it.
//!
//! Every open file has a window (start, size, and how many of its last pages lie behind the mark).
//! A reader who finds a page missing asks for a window and waits for it; a reader who touches the
//! mark asks for the next window before he needs it. What the decisions were in each kernel is a
//! value, [`Rules`]; whether a page is cached is asked of [`CachedPages`]. Nothing is read here:
//! who asks gets a [`Window`] and submits it (rules readahead and mmap).
//!
// Divergence: 2.6.32 also limits a window to half of the free and inactive pages.

mod rules;
#[cfg(test)]
mod tests;

pub use rules::Rules;

use super::pages::CachedPages;
use rules::{ContextReadahead, Joining};
use std::ops::Range;

/// Pages of one piece of a forced readahead: 2 MiB (rule readahead-11).
const FORCED_PIECE: u64 = 512;
/// Faults on absent pages, less those on cached ones, beyond which nothing is read around them
/// (rules mmap-1 and mmap-2).
const MANY_FAULT_MISSES: u32 = 100;
const MOST_FAULT_MISSES: u32 = 1000;

/// What a device allows, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// The setting read_ahead_kb.
    pub readahead: u64,
    /// The largest request: max_sectors_kb.
    pub request: u64,
}

/// What a program says about how it will read (fadvise).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    Normal,
    /// In order.
    Sequential,
    /// Here and there.
    Random,
}

/// Pages to be read, as far as they are not cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first one.
    pub start: u64,
    /// How many.
    pub length: u64,
    /// The one that is marked if it was not cached.
    pub mark: Option<u64>,
    /// Pages of a folio where it fits, as a power of two.
    pub order: u32,
}

/// A reader at a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// The page.
    pub page: u64,
    /// Pages from there to the end of the call.
    pub request: u64,
}

impl Window {
    /// The same, where its file's pages are counted from `base`.
    pub(super) fn shifted(self, base: u64) -> Window {
        let (start, mark) = (self.start + base, self.mark.map(|mark| mark + base));
        Window { start, mark, ..self }
    }

    /// The same where the file lies in these pages of the disk, as far as the file goes.
    pub fn within(self, extent: &Range<u64>) -> Option<Window> {
        let all = self.shifted(extent.start);
        let length = all.length.min(extent.end.saturating_sub(all.start));
        (length > 0).then_some(Window { length, ..all })
    }
}

impl Reader {
    /// The same, counted within the file whose pages are counted from `base`.
    pub(super) fn from(self, base: u64) -> Reader {
        Reader { page: self.page - base, ..self }
    }
}

/// The readahead state of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readahead {
    start: u64,
    size: u64,
    async_size: u64,
    order: u32,
    /// Where the last call ended, as the kernel's rules count it.
    previous: Option<u64>,
    /// The most that is read ahead; larger or smaller than the device's after advice.
    most: u64,
    is_random: bool,
    fault_misses: u32,
}

impl Readahead {
    /// The state of a file that was just opened.
    pub fn open(device: Allowance) -> Readahead {
        Readahead {
            start: 0,
            size: 0,
            async_size: 0,
            order: 0,
            previous: None,
            most: device.readahead,
            is_random: false,
            fault_misses: 0,
        }
    }

    /// Takes advice (rule readahead-1).
    pub fn advise(&mut self, advice: Advice, device: Allowance) {
        match advice {
            Advice::Normal | Advice::Sequential => {
                let doubled = u64::from(advice == Advice::Sequential);
                self.most = device.readahead << doubled;
                self.is_random = false;
            }
            Advice::Random => self.is_random = true,
        }
    }

    /// A call has ended; `end` is the byte after the last one it read.
    pub fn call_ended(&mut self, rules: &Rules, end: u64) {
        const PAGE: u64 = 4096;
        let byte = if rules.remembers_byte_after { Some(end) } else { end.checked_sub(1) };
        self.previous = byte.map(|byte| byte / PAGE);
    }

    /// The reader misses a page: what is read. More than one window only if reading is forced.
    pub fn missed(
        &mut self,
        rules: &Rules,
        device: Allowance,
        reader: Reader,
        cached: &impl CachedPages,
    ) -> Vec<Window> {
        if self.most == 0 {
            return self.forced(device, Reader { request: 1, ..reader });
        }
        if self.is_random {
            return self.forced(device, reader);
        }
        let most = self.maximum(rules, device, reader.request);
        let expects = rules.expects_misses && reader.page != 0 && self.expects(reader.page);
        if rules.zero_starts_anew && reader.page == 0 {
            self.begin(rules, reader, most);
        } else if expects {
            self.go_on(most);
        } else if reader.request > most || self.is_next(reader.page) {
            self.begin(rules, reader, most);
        } else if !self.begin_from_context(rules, reader, most, cached) {
            let Reader { page, request } = reader;
            return vec![Window { start: page, length: request, mark: None, order: 0 }];
        }
        self.order = 0;
        self.join_following(rules, reader.page, most);
        vec![self.window()]
    }

    /// The reader touches the mark, which somebody set and the caller has cleared. The folio it
    /// lies in has `2^folio` pages. Answers with the next window, if there is anything to read.
    pub fn touched_mark(
        &mut self,
        rules: &Rules,
        device: Allowance,
        reader: Reader,
        folio: u32,
        cached: &impl CachedPages,
    ) -> Option<Window> {
        if self.most == 0 {
            return None;
        }
        let most = self.maximum(rules, device, reader.request);
        let page = reader.page;
        let mark = (self.start + self.size - self.async_size) >> folio << folio;
        let is_end = rules.expects_misses && page == self.start + self.size;
        if page != 0 && (page == mark || is_end) {
            let before = self.size;
            self.go_on(most);
            if rules.never_shrinks {
                self.size = self.size.max(before);
            }
        } else {
            let start = match cached.first_absent(page + 1, most) {
                None if rules.passes_full_run => page + most,
                start => start?,
            };
            let added = if rules.adds_request { reader.request } else { 0 };
            self.start = start;
            self.size = next_size(start - page + added, most);
        }
        self.async_size = self.size;
        if rules.grows_folios {
            self.align(rules, most);
        }
        Some(self.window())
    }

    /// Reads what is asked in pieces, whatever came before (rule readahead-11).
    pub fn forced(&self, device: Allowance, reader: Reader) -> Vec<Window> {
        let most = device.request.max(self.most);
        let end = reader.page + reader.request.min(most.max(1));
        let pieces = (reader.page..end).step_by(FORCED_PIECE as usize);
        pieces
            .map(|start| {
                let length = FORCED_PIECE.min(end - start);
                Window { start, length, mark: None, order: 0 }
            })
            .collect()
    }

    /// A mapped page is absent when it is touched: what is read around it. `None`: only the page
    /// itself, as a plain read (rules mmap).
    pub fn fault_missed(&mut self, page: u64) -> Option<Window> {
        self.fault_misses = (self.fault_misses + 1).min(MOST_FAULT_MISSES);
        if self.is_random || self.most == 0 || self.fault_misses > MANY_FAULT_MISSES {
            return None;
        }
        self.start = page.saturating_sub(self.most / 2);
        self.size = self.most;
        self.async_size = self.most / 4;
        self.order = 0;
        Some(self.window())
    }

    /// A mapped page is cached when it is touched. If it carries the mark, the caller goes on with
    /// [`Readahead::touched_mark`] and a request of [`Readahead::fault_request`].
    pub fn fault_found(&mut self) {
        self.fault_misses = self.fault_misses.saturating_sub(1);
    }

    /// How much a fault asks for.
    pub fn fault_request(&self) -> u64 {
        self.most
    }

    /// The most one decision may read (rule readahead-2).
    fn maximum(&self, rules: &Rules, device: Allowance, request: u64) -> u64 {
        if rules.long_calls_read_more && request > self.most && device.request > self.most {
            return request.min(device.request);
        }
        self.most
    }

    /// Whether a page lies where the next window is due.
    fn expects(&self, page: u64) -> bool {
        let end = self.start + self.size;
        page == end - self.async_size || page == end
    }

    /// Whether a page follows the last call.
    fn is_next(&self, page: u64) -> bool {
        match self.previous {
            None => page == 0,
            Some(previous) => page.wrapping_sub(previous) <= 1,
        }
    }

    /// The initial window.
    fn begin(&mut self, rules: &Rules, reader: Reader, most: u64) {
        self.start = reader.page;
        self.size = first_size(reader.request, most);
        self.async_size = match self.size.checked_sub(reader.request) {
            Some(behind @ 1..) => behind,
            _ if rules.marks_middle => self.size / 2,
            _ => self.size,
        };
    }

    /// The window after the present one.
    fn go_on(&mut self, most: u64) {
        self.start += self.size;
        self.size = next_size(self.size, most);
        self.async_size = self.size;
    }

    /// A window from what is cached before the page; false if that does not look like reading in
    /// order (rules readahead-5 and readahead-10).
    fn begin_from_context(
        &mut self,
        rules: &Rules,
        reader: Reader,
        most: u64,
        cached: &impl CachedPages,
    ) -> bool {
        if rules.context == ContextReadahead::Ignored {
            return false;
        }
        let Reader { page, request } = reader;
        let run = cached.run_before(page, most);
        let enough = if rules.context == ContextReadahead::AnyRun { 1 } else { request + 1 };
        if run < enough {
            return false;
        }
        let run = if run >= page { run * 2 } else { run };
        self.start = page;
        if rules.context == ContextReadahead::AnyRun {
            self.size = first_size(run + request, most);
            self.async_size = self.size;
        } else {
            self.size = (run + request).min(most);
            self.async_size = 1;
        }
        true
    }

    /// A reader who would touch the mark at once gets the window after it too.
    fn join_following(&mut self, rules: &Rules, page: u64, most: u64) {
        if page != self.start || self.size != self.async_size {
            return;
        }
        let following = next_size(self.size, most);
        match rules.joining {
            Joining::Never => {}
            Joining::Always => (self.size, self.async_size) = (self.size + following, following),
            Joining::Within if self.size + following <= most => {
                (self.size, self.async_size) = (self.size + following, following);
            }
            Joining::Within => (self.size, self.async_size) = (most, most / 2),
        }
    }

    /// Lets folios grow and ends the window where one of them would (rule readahead-9).
    fn align(&mut self, rules: &Rules, most: u64) {
        let order = self.order + 2;
        let unit = match most.is_power_of_two() {
            true => 1 << order.min(most.ilog2()),
            false => (1 << order.min(most.ilog2())).min(1 << most.trailing_zeros()),
        };
        let end = self.start + self.size;
        let cut = end / unit * unit;
        if cut > self.start {
            self.size = cut - self.start;
        }
        self.async_size = self.size;
        self.order = order.min(self.size.ilog2()).min(rules.largest_order);
    }

    fn window(&self) -> Window {
        let mark = (self.async_size > 0).then(|| self.start + self.size - self.async_size);
        Window { start: self.start, length: self.size, mark, order: self.order }
    }
}

/// The size of the first window (rule readahead-3).
fn first_size(request: u64, most: u64) -> u64 {
    let size = request.next_power_of_two();
    if size <= most / 32 {
        size * 4
    } else if size <= most / 4 {
        size * 2
    } else {
        most
    }
}

/// The size of a window after one of so many pages (rule readahead-6).
fn next_size(size: u64, most: u64) -> u64 {
    let factor = if size < most / 16 { 4 } else { 2 };
    (size * factor).min(most)
}
