//! The windows that the specification lists, each named after the reader who gets them.

use super::*;
use block::Version;
use std::collections::{BTreeMap, BTreeSet};

/// A file that is read call by call, with everything that was read in memory.
struct Reading {
    rules: Rules,
    device: Allowance,
    state: Readahead,
    cached: Cached,
    /// Marked pages.
    marks: BTreeSet<u64>,
    /// Windows as they were decided, and single pages.
    windows: Vec<(u64, u64)>,
}

/// Pages in memory.
#[derive(Default)]
struct Cached(BTreeSet<u64>);

impl CachedPages for Cached {
    fn holds(&self, page: u64) -> bool {
        self.0.contains(&page)
    }
}

impl Reading {
    fn new(version: Version) -> Reading {
        Reading::on(version, Allowance { readahead: 32, request: 320 })
    }

    fn on(version: Version, device: Allowance) -> Reading {
        Reading {
            rules: Rules::of(version),
            device,
            state: Readahead::open(device),
            cached: Cached::default(),
            marks: BTreeSet::new(),
            windows: Vec::new(),
        }
    }

    /// One call that reads so many pages.
    fn read(&mut self, first: u64, pages: u64) {
        for page in first..first + pages {
            let reader = Reader { page, request: first + pages - page };
            if !self.cached.holds(page) {
                let windows = self.state.missed(&self.rules, self.device, reader, &self.cached);
                windows.into_iter().for_each(|window| self.take(window));
            }
            self.touch(reader);
            assert!(self.cached.holds(page));
        }
        self.state.call_ended(&self.rules, (first + pages) * 4096);
    }

    /// A mapped page is touched.
    fn fault(&mut self, page: u64) {
        if self.cached.holds(page) {
            self.state.fault_found();
            self.touch(Reader { page, request: self.state.fault_request() });
        } else if let Some(window) = self.state.fault_missed(page) {
            self.take(window);
        } else {
            self.take(Window { start: page, length: 1, mark: None, order: 0 });
        }
    }

    fn touch(&mut self, reader: Reader) {
        if self.marks.remove(&reader.page) {
            let (rules, device) = (&self.rules, self.device);
            let next = self.state.touched_mark(rules, device, reader, 0, &self.cached);
            next.into_iter().for_each(|window| self.take(window));
        }
    }

    fn take(&mut self, window: Window) {
        self.windows.push((window.start, window.length));
        if let Some(mark) = window.mark.filter(|&mark| !self.cached.holds(mark)) {
            self.marks.insert(mark);
        }
        self.cached.0.extend(window.start..window.start + window.length);
    }

    /// Calls of so many pages, one after the other.
    fn in_order(mut self, first: u64, each: u64, calls: u64) -> Vec<(u64, u64)> {
        (0..calls).for_each(|call| self.read(first + call * each, each));
        self.windows
    }
}

/// Sizes of windows that begin at or after a page.
fn sizes_from(windows: &[(u64, u64)], first: u64, end: u64) -> Vec<u64> {
    windows.iter().filter(|it| (first..end).contains(&it.0)).map(|it| it.1).collect()
}

#[test]
fn in_6_12_windows_of_the_disk_double_and_end_anywhere() {
    // Observed: `dd bs=4k` from page 0 and from page 1000.
    let windows = Reading::new(Version::V6_12).in_order(0, 1, 60);
    assert_eq!(windows, [(0, 4), (4, 8), (12, 16), (28, 32), (60, 32)]);
    let windows = Reading::new(Version::V6_12).in_order(1000, 1, 60);
    assert_eq!(windows[..5], [(1000, 1), (1001, 4), (1005, 8), (1013, 16), (1029, 32)]);
}

#[test]
fn since_6_pages_in_order_get_windows_that_end_where_folios_do() {
    let windows = Reading::new(Version::V6_18).in_order(0, 1, 160);
    let expected = [
        (0, 4),
        (4, 8),
        (12, 4),
        (16, 8),
        (24, 8),
        (32, 16),
        (48, 16),
        (64, 32),
        (96, 32),
        (128, 32),
        (160, 32),
    ];
    assert_eq!(windows, expected);
}

#[test]
fn since_6_reading_from_the_middle_grows_to_the_borders_of_folios() {
    let windows = Reading::new(Version::V6_18).in_order(1000, 1, 70);
    let expected = [
        (1000, 1),
        (1001, 4),
        (1005, 7),
        (1012, 12),
        (1024, 24),
        (1048, 8),
        (1056, 16),
        (1072, 16),
    ];
    assert_eq!(windows[..8], expected);
}

#[test]
fn since_6_calls_of_64_kib_get_32_pages_from_the_start() {
    let windows = Reading::new(Version::V6_18).in_order(0, 16, 8);
    assert!(windows.len() >= 4);
    assert!(windows.iter().all(|it| it.1 == 32), "{windows:?}");
}

#[test]
fn since_6_calls_of_16_kib_get_the_computed_windows() {
    let windows = Reading::new(Version::V6_18).in_order(0, 4, 20);
    assert_eq!(windows[..5], [(0, 8), (8, 16), (24, 24), (48, 16), (64, 32)]);
}

#[test]
fn since_6_sequential_advice_doubles_the_windows() {
    let mut reading = Reading::new(Version::V6_18);
    reading.state.advise(Advice::Sequential, reading.device);
    let windows = reading.in_order(0, 1, 160);
    let expected = [
        (0, 4),
        (4, 8),
        (12, 4),
        (16, 8),
        (24, 8),
        (32, 16),
        (48, 16),
        (64, 32),
        (96, 32),
        (128, 64),
        (192, 64),
    ];
    assert_eq!(windows, expected);
}

#[test]
fn since_6_windows_of_8_mib_ramp_up_in_twelve_steps() {
    let device = Allowance { readahead: 2048, request: 320 };
    let windows = Reading::on(Version::V6_18, device).in_order(0, 1, 7000);
    let expected = [
        (0, 4),
        (4, 16),
        (20, 60),
        (80, 240),
        (320, 448),
        (768, 256),
        (1024, 512),
        (1536, 512),
        (2048, 1024),
        (3072, 1024),
        (4096, 2048),
        (6144, 2048),
    ];
    assert_eq!(windows[..12], expected);
}

#[test]
fn in_4_19_pages_in_order_get_windows_that_double() {
    let windows = Reading::new(Version::V4_19).in_order(0, 1, 60);
    assert_eq!(windows, [(0, 4), (4, 8), (12, 16), (28, 32), (60, 32)]);
}

#[test]
fn in_4_19_reading_from_the_middle_begins_with_a_single_page() {
    let windows = Reading::new(Version::V4_19).in_order(1000, 1, 62);
    let from: Vec<(u64, u64)> = windows.iter().map(|it| (it.0 - 1000, it.1)).collect();
    assert_eq!(from[..6], [(0, 1), (1, 4), (5, 8), (13, 16), (29, 32), (61, 32)]);
}

#[test]
fn in_4_19_calls_of_64_kib_get_32_pages_each() {
    let windows = Reading::new(Version::V4_19).in_order(0, 16, 8);
    assert!(windows.iter().all(|it| it.1 == 32), "{windows:?}");
}

#[test]
fn in_4_19_sequential_advice_doubles_the_windows() {
    let mut reading = Reading::new(Version::V4_19);
    reading.state.advise(Advice::Sequential, reading.device);
    let windows = reading.in_order(0, 1, 100);
    assert_eq!(windows[windows.len() - 3..], [(28, 32), (60, 64), (124, 64)]);
}

#[test]
fn in_4_19_calls_of_a_mebibyte_begin_with_windows_of_256_and_128_pages() {
    let windows = Reading::new(Version::V4_19).in_order(0, 256, 4);
    let sizes: Vec<u64> = windows.iter().map(|it| it.1).collect();
    assert_eq!(sizes[..4], [256, 128, 256, 128]);
}

#[test]
fn since_6_calls_of_a_mebibyte_get_windows_of_256_pages() {
    let windows = Reading::new(Version::V6_18).in_order(0, 256, 4);
    assert!(windows.len() >= 4);
    assert!(windows.iter().all(|it| it.1 == 256), "{windows:?}");
}

/// Two streams of single pages, far from each other, on one open file.
fn interleaved(version: Version, reads: u64) -> (Vec<u64>, BTreeMap<u64, u64>) {
    let mut reading = Reading::new(version);
    for number in 0..reads {
        reading.read(2000 + number, 1);
        reading.read(40_000 + number, 1);
    }
    let mut ends = BTreeMap::new();
    for (start, length) in reading.windows.iter().filter(|it| it.0 < 40_000) {
        ends.insert(*start, start + length);
    }
    (sizes_from(&reading.windows, 2000, 40_000), ends)
}

#[test]
fn in_4_19_interleaved_streams_ramp_up_by_what_is_cached_without_holes() {
    let (sizes, ends) = interleaved(Version::V4_19, 90);
    assert_eq!(sizes[..8], [1, 1, 3, 4, 10, 22, 32, 32]);
    let starts: Vec<u64> = ends.keys().copied().skip(1).collect();
    let ends: Vec<u64> = ends.values().copied().take(starts.len()).collect();
    assert_eq!(starts, ends);
}

#[test]
fn since_6_interleaved_streams_begin_with_single_pages_and_two_windows_of_three() {
    let (sizes, _) = interleaved(Version::V6_18, 30);
    assert_eq!(sizes[..4], [1, 1, 3, 3]);
}

#[test]
fn strided_pages_are_read_one_by_one() {
    for version in [Version::V2_6_28, Version::V2_6_32, Version::V4_19, Version::V6_18] {
        let mut reading = Reading::new(version);
        (1..50).for_each(|number| reading.read(number * 8, 1));
        assert!(reading.windows.iter().all(|it| it.1 == 1), "{version}: {:?}", reading.windows);
    }
}

#[test]
fn a_fault_reads_around_with_the_mark_in_the_last_quarter() {
    let mut state = Readahead::open(Allowance { readahead: 32, request: 320 });
    let window = state.fault_missed(1000);
    assert_eq!(window, Some(Window { start: 984, length: 32, mark: Some(1008), order: 0 }));
}

/// Two distant faults, then pages in order from the second. Where they were is not recorded; what
/// follows depends on where page 3000 lies among folios.
fn faults(version: Version) -> Vec<u64> {
    let mut reading = Reading::new(version);
    reading.fault(500);
    (3000..3064).for_each(|page| reading.fault(page));
    reading.windows.iter().map(|it| it.1).collect()
}

#[test]
fn in_4_19_two_faults_and_then_pages_in_order_get_32_each() {
    assert!(faults(Version::V4_19).iter().all(|&size| size == 32));
}

#[test]
fn since_6_two_faults_and_then_pages_in_order_get_32_32_32_24_32() {
    assert_eq!(faults(Version::V6_18), [32, 32, 32, 24, 32]);
}

#[test]
fn after_a_hundred_more_misses_than_hits_a_fault_reads_its_page_only() {
    let mut reading = Reading::new(Version::V6_18);
    (0..101).for_each(|number| reading.fault(number * 1000));
    let sizes: Vec<u64> = reading.windows.iter().map(|it| it.1).collect();
    assert_eq!(sizes.last(), Some(&1));
    assert!(sizes[1..100].iter().all(|&size| size == 32));
}

#[test]
fn asking_for_3_mib_reads_as_much_as_a_request_holds() {
    let state = Readahead::open(Allowance { readahead: 32, request: 320 });
    let device = Allowance { readahead: 32, request: 320 };
    let windows = state.forced(device, Reader { page: 0, request: 768 });
    assert_eq!(windows, [Window { start: 0, length: 320, mark: None, order: 0 }]);
}

#[test]
fn forced_readahead_comes_in_pieces_of_2_mib() {
    let device = Allowance { readahead: 2048, request: 320 };
    let windows = Readahead::open(device).forced(device, Reader { page: 7, request: 1100 });
    let pieces: Vec<(u64, u64)> = windows.iter().map(|it| (it.start, it.length)).collect();
    assert_eq!(pieces, [(7, 512), (519, 512), (1031, 76)]);
}

#[test]
fn random_advice_reads_exactly_what_is_asked() {
    let mut reading = Reading::new(Version::V6_18);
    reading.state.advise(Advice::Random, reading.device);
    let windows = reading.in_order(0, 3, 3);
    assert_eq!(windows, [(0, 3), (3, 3), (6, 3)]);
}

#[test]
fn in_2_6_28_calls_of_16_kib_begin_with_8_pages_marked_at_the_fourth() {
    let mut reading = Reading::new(Version::V2_6_28);
    reading.read(0, 4);
    assert_eq!(reading.marks.first(), Some(&4));
    let windows = reading.in_order(4, 4, 12);
    assert_eq!(windows[..4], [(0, 8), (8, 16), (24, 32), (56, 32)]);
}

#[test]
fn in_2_6_28_a_jump_back_to_the_first_page_is_a_random_read() {
    let mut reading = Reading::new(Version::V2_6_28);
    reading.read(5000, 1);
    reading.read(0, 1);
    assert_eq!(reading.windows, [(5000, 1), (0, 1)]);
    let mut reading = Reading::new(Version::V2_6_32);
    reading.read(5000, 1);
    reading.read(0, 1);
    assert_eq!(reading.windows, [(5000, 1), (0, 4)]);
}

#[test]
fn in_2_6_28_somebody_elses_mark_goes_on_from_the_first_absent_page() {
    let mut first = Reading::new(Version::V2_6_28);
    first.read(1000, 1);
    first.read(1001, 1);
    assert_eq!(first.windows, [(1000, 1), (1001, 4)]);
    // Another open file of the same pages, with a window elsewhere.
    first.state = Readahead::open(first.device);
    first.read(1002, 1);
    assert_eq!(first.windows[2..], [(1005, 6)]);
}

#[test]
fn a_mark_before_as_many_pages_as_a_window_may_have_means_something_on_6_1_only() {
    for (version, behind) in [(Version::V6_1, &[(36, 32), (37, 32)][..]), (Version::V6_12, &[])] {
        let mut reading = Reading::new(version);
        reading.read(1000, 1);
        reading.cached.0.extend(0..60);
        reading.marks.extend([4, 5]);
        reading.windows.clear();
        reading.read(4, 1);
        reading.read(5, 1);
        assert_eq!(reading.windows, behind, "{version}");
    }
}

#[test]
fn a_miss_where_the_next_window_is_due_goes_on_until_5_2_and_begins_anew_since_6() {
    for (version, expected) in [(Version::V4_19, (4, 24)), (Version::V6_18, (4, 4))] {
        let mut reading = Reading::new(version);
        reading.read(0, 1);
        reading.marks.clear();
        (1..5).for_each(|page| reading.read(page, 1));
        assert_eq!(reading.windows[1], expected, "{version}");
    }
}
