//! What pages promise, against a map of pages that is too simple to be wrong.

use super::*;
use proptest::prelude::*;

/// Every page with its flags.
#[derive(Default)]
struct Naive(BTreeMap<u64, u8>);

impl CachedPages for Naive {
    fn holds(&self, page: u64) -> bool {
        self.0.contains_key(&page)
    }
}

impl Naive {
    fn counts(&self) -> Counts {
        let count = |flag: Flags| self.0.values().filter(|&&it| it & flag.0 != 0).count() as u64;
        Counts {
            cached: self.0.len() as u64,
            dirty: count(Flags::DIRTY),
            writeback: count(Flags::WRITEBACK),
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(u64, u64, u8),
    Remove(u64, u64),
    Touch(u64),
    DropClean(u64, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let page = 0..1500u64;
    let flags = (0..64u8).prop_map(|bits| bits << 1);
    let step = prop_oneof![
        4 => (page.clone(), 1..300u64, flags).prop_map(|(at, n, flags)| Step::Put(at, n, flags)),
        2 => (page.clone(), 1..300u64).prop_map(|(at, n)| Step::Remove(at, n)),
        1 => page.clone().prop_map(Step::Touch),
        1 => (page, 1..1500u64).prop_map(|(at, n)| Step::DropClean(at, n)),
    ];
    prop::collection::vec(step, 1..40)
}

fn apply(step: &Step, pages: &mut Pages, naive: &mut Naive) {
    match *step {
        Step::Put(at, n, flags) => (at..at + n).for_each(|page| {
            pages.put(page, Flags(flags));
            naive.0.insert(page, flags);
        }),
        Step::Remove(at, n) => (at..at + n).for_each(|page| {
            assert_eq!(pages.remove(page), naive.0.remove(&page).is_some());
        }),
        Step::Touch(page) => {
            if let Some(flags) = naive.0.get_mut(&page) {
                let is_touched = *flags & Flags::TOUCHED.0 != 0;
                *flags |= if is_touched { Flags::ACTIVE.0 } else { Flags::TOUCHED.0 };
                pages.touch(page);
            }
        }
        Step::DropClean(at, n) => {
            let mut dropped = Vec::new();
            pages.drop_clean(at, at + n, |page| dropped.push(page));
            let kept = Flags::DIRTY.0 | Flags::WRITEBACK.0 | Flags::UP_TO_DATE.0;
            let goes = |flags: u8| flags & kept == Flags::UP_TO_DATE.0;
            let expected = naive.0.range(at..at + n).filter(|(_, flags)| goes(**flags));
            let expected: Vec<u64> = expected.map(|(&page, _)| page).collect();
            assert_eq!(dropped, expected);
            naive.0.retain(|page, _| !expected.contains(page));
        }
    }
}

proptest! {
    #[test]
    fn pages_are_what_a_plain_map_of_them_would_be(steps in steps(), from in 0..1800u64) {
        let (mut pages, mut naive) = (Pages::default(), Naive::default());
        for step in &steps {
            apply(step, &mut pages, &mut naive);
            prop_assert_eq!(pages.counts(), naive.counts());
        }
        for page in 0..1900 {
            prop_assert_eq!(pages.get(page), naive.0.get(&page).map(|&flags| Flags(flags)));
        }
        prop_assert_eq!(pages.first_absent(from, 700), naive.first_absent(from, 700));
        prop_assert_eq!(pages.run_before(from, 700), naive.run_before(from, 700));
        for wanted in [Flags::DIRTY, Flags::WRITEBACK, Flags::UP_TO_DATE] {
            let has = |(_, flags): &(&u64, &u8)| Flags(**flags).has(wanted);
            let expected = naive.0.range(from..1850).find(has).map(|(&page, _)| page);
            prop_assert_eq!(pages.next(from, 1850, wanted), expected);
        }
    }
}

/// Bytes that pages take: chunks with their share of a half-full tree, and what they point to.
fn bytes(pages: &Pages) -> usize {
    let node = 2 * (size_of::<u64>() + size_of::<Chunk>());
    let of_chunk = |chunk: &Chunk| match chunk {
        Chunk::Few(list) => list.capacity() * 2 + 16,
        Chunk::Many { .. } => CHUNK as usize + 16,
    };
    pages.chunks.values().map(|chunk| node + of_chunk(chunk)).sum()
}

#[test]
fn a_large_run_costs_little_more_than_a_byte_a_page() {
    let mut pages = Pages::default();
    (1000..101_000).for_each(|page| pages.put(page, Flags::UP_TO_DATE));
    assert!(bytes(&pages) < 125_000, "{}", bytes(&pages));
}

#[test]
fn pages_with_four_of_them_in_two_mebibytes_leave_room_for_the_order_of_eviction() {
    let mut pages = Pages::default();
    (0..10_000).for_each(|number| pages.put(number * 128, Flags::UP_TO_DATE));
    assert!(bytes(&pages) <= (32 - 4) * 10_000, "{}", bytes(&pages));
}

#[test]
fn a_file_whose_pages_have_all_gone_takes_no_room() {
    let mut pages = Pages::default();
    (0..2000).for_each(|page| pages.put(page, Flags::UP_TO_DATE));
    assert_eq!(pages.drop_clean(0, u64::MAX, |_| {}), 2000);
    assert_eq!(bytes(&pages), 0);
}

#[test]
fn chunks_are_known_as_busy_only_while_they_are() {
    let mut pages = Pages::default();
    (0..2000).for_each(|page| pages.put(page, Flags::UP_TO_DATE));
    [3, 4, 1500].iter().for_each(|page| pages.change(*page, Flags::DIRTY, Flags::NONE));
    assert_eq!(pages.dirty, BTreeMap::from([(0, 2), (2, 1)]));
    (0..2000).for_each(|page| pages.change(page, Flags::NONE, Flags::DIRTY));
    assert!(pages.dirty.is_empty());
}
