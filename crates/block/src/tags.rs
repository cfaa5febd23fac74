//! Tag maps: which tags are free, who sleeps for one, and whom a freed tag wakes.
//!
//! A map is divided into words, because depth limits apply to words (rules tags-1 to tags-3).
//! Sleepers wait in eight queues that are served in turn. Mostly they are tasks; Kyber's tokens are
//! such maps too, and hardware queues wait for them.

use crate::bio::ContextId;
use crate::kernel::{MultiQueue, ShallowDepth};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use base::Rng;

/// More than any map has.
const NO_LIMIT: u32 = u32::MAX;

/// Wait queues of a map (rule tags-4).
const WAIT_QUEUES: usize = 8;

/// A map of tags, for which a kind of sleepers may wait.
#[derive(Clone, Debug)]
pub struct TagMap<W = ContextId> {
    depth: u32,
    /// Tags that there is room for: as many as the map was made with.
    room: u32,
    /// A word has two to this power tags.
    word_shift: u32,
    shallow: ShallowDepth,
    words: Vec<Word>,
    /// Where the search of each core starts: a tag number. One that is none begins anywhere
    /// (rule tags-8), which is the first tag unless somebody says where.
    hints: Vec<u32>,
    in_use: u32,
    /// Of those, the ones beyond the depth, which was larger before.
    beyond: u32,
    waiters: [VecDeque<W>; WAIT_QUEUES],
    /// Sleepers in all wait queues.
    sleepers: usize,
    /// Those that were woken and have not gone on yet.
    rising: Vec<W>,
    /// The queue the next sleeper joins, and the one the next wake-up serves.
    join_at: usize,
    wake_at: usize,
    wake_batch: u32,
    freed_since_wake: u32,
    /// A batch goes on to the next queues; see [`crate::kernel::MultiQueue::wakes_on`].
    wakes_on: bool,
    /// Tags count that are freed while nobody sleeps; see
    /// [`crate::kernel::MultiQueue::counts_all_frees`].
    counts_all_frees: bool,
    /// Tags that are freed stay with their word; see [`crate::kernel::MultiQueue::clears_late`].
    clears_late: bool,
}

/// A part of the map: a bit for each tag.
#[derive(Clone, Copy, Debug)]
struct Word {
    /// Those in use, and those in `cleared`.
    used: u64,
    /// Those that were freed, and that no search finds before the word has no other.
    cleared: u64,
    /// The bits that stand for tags; fewer than the others have in the last word of some maps.
    tags: u64,
    /// The limit that this word was last searched with, and the bits that it leaves: whoever has a
    /// limit mostly has the same.
    limit: u32,
    within_limit: u64,
}

impl<W: Copy + Eq> TagMap<W> {
    /// A map of `depth` free tags, as a kernel with blk-mq has it.
    pub fn of(rules: &MultiQueue, depth: u32, cpus: u16) -> TagMap<W> {
        TagMap::new(depth, cpus, rules.shallow)
            .waking_on(rules.wakes_on)
            .counting_all_frees(rules.counts_all_frees)
            .clearing_late(rules.clears_late)
    }

    /// A map of `depth` free tags.
    pub(crate) fn new(depth: u32, cpus: u16, shallow: ShallowDepth) -> TagMap<W> {
        let bits = bits_per_word(depth);
        TagMap {
            depth,
            room: depth,
            word_shift: bits.trailing_zeros(),
            shallow,
            words: free_words(depth, bits),
            hints: vec![u32::MAX; usize::from(cpus)],
            in_use: 0,
            beyond: 0,
            waiters: Default::default(),
            sleepers: 0,
            rising: Vec::new(),
            join_at: 0,
            wake_at: 0,
            wake_batch: (depth / 8).clamp(1, 8),
            freed_since_wake: 0,
            wakes_on: false,
            counts_all_frees: true,
            clears_late: false,
        }
    }

    /// Searches begin anywhere, as in a map that was just made (rule tags-8).
    pub(crate) fn scatter(&mut self, rng: &mut Rng) {
        let depth = u64::from(self.depth);
        self.hints.iter_mut().for_each(|hint| *hint = rng.below(depth) as u32);
    }

    /// Another number of tags, while none is in use; whether there is room for so many. Words keep
    /// their size, searches and wake-ups go on where they were.
    // Observed on 6.12.117, of a disk that takes 4 and has 8 tags: of 7, a limit of one leaves four
    // and not seven.
    pub(crate) fn resize(&mut self, depth: u32) -> bool {
        assert_eq!(self.in_use, 0, "a map with tags in use is not resized");
        if !self.has_room(depth) {
            return false;
        }
        self.depth = depth;
        self.words = free_words(depth, 1 << self.word_shift);
        self.set_min_depth(None);
        true
    }

    /// Whether it can have so many tags without being made anew.
    pub(crate) fn has_room(&self, depth: u32) -> bool {
        depth <= self.room
    }

    /// The same, whose batches of wake-ups go on to the next wait queues, or end with one.
    pub(crate) fn waking_on(self, wakes_on: bool) -> TagMap<W> {
        TagMap { wakes_on, ..self }
    }

    /// The same, where tags count towards a batch that are freed while nobody sleeps, or do not.
    pub(crate) fn counting_all_frees(self, counts_all_frees: bool) -> TagMap<W> {
        TagMap { counts_all_frees, ..self }
    }

    /// The same, where a freed tag is found again at once, or when its word has no other.
    pub(crate) fn clearing_late(self, clears_late: bool) -> TagMap<W> {
        TagMap { clears_late, ..self }
    }

    /// The smallest depth limit anybody will use decides how many frees wake a batch of sleepers:
    /// an eighth of the tags that it leaves.
    // Observed on 6.1.192 (`wake_batch` of `sched_tags` in debugfs): of 64 tags in words of 16, a
    // limit of 12 makes it 6; of 32 in such words, 3.
    pub(crate) fn set_min_depth(&mut self, min_depth: Option<u32>) {
        let limit = min_depth.unwrap_or(self.depth);
        let usable = match self.shallow {
            ShallowDepth::WholeMap => limit.min(self.depth),
            ShallowDepth::PerWord => {
                self.words.iter().map(|word| word.tags.count_ones().min(limit)).sum()
            }
        };
        self.wake_batch = (usable / 8).clamp(1, 8);
    }

    /// Another number of tags, at most as many as the map was made with, while some may be in use:
    /// those beyond it are not given out again.
    pub fn limit(&mut self, depth: u32) {
        assert!((1..=self.room).contains(&depth), "a map of {} cannot have {depth}", self.room);
        let bits = 1 << self.word_shift;
        self.depth = depth;
        self.beyond = 0;
        for (word, start) in self.words.iter_mut().zip((0..).step_by(bits)) {
            word.used &= !core::mem::take(&mut word.cleared);
            word.tags = low_bits(depth.saturating_sub(start).min(bits as u32));
            word.limit = NO_LIMIT;
            self.beyond += (word.used & !word.tags).count_ones();
        }
        self.set_min_depth(None);
    }

    /// Searches that begin anywhere begin at this tag.
    pub fn search_from(&mut self, tag: u32) {
        for hint in self.hints.iter_mut().filter(|hint| **hint >= self.depth) {
            *hint = tag;
        }
    }

    /// The same, in this word.
    pub fn search_word(&mut self, word: u32) {
        self.search_from(word << self.word_shift);
    }

    /// Tags that may be given out.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Tags in use.
    pub fn in_use(&self) -> u32 {
        self.in_use
    }

    /// Bits of a word.
    pub(crate) fn word_bits(&self) -> u32 {
        1 << self.word_shift
    }

    /// Whether no tag is free.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.in_use - self.beyond == self.depth
    }

    /// Takes a tag on core `cpu`; with a limit only some positions may be used.
    // Under a backlog it mostly finds none, and is asked often.
    #[inline(always)]
    pub fn take(&mut self, cpu: u16, limit: Option<u32>) -> Option<u32> {
        if self.is_exhausted() {
            // Rule tags-8.
            self.hints[usize::from(cpu)] = 0;
            return None;
        }
        self.take_free(cpu, limit)
    }

    /// Takes a tag of the hint's word, or of the first word behind it that has one.
    // Nobody can foresee which requests have a limit, nor which tag is free: what follows from that
    // is computed without a branch.
    #[inline(never)]
    fn take_free(&mut self, cpu: u16, limit: Option<u32>) -> Option<u32> {
        let given = self.hints[usize::from(cpu)];
        let hint = if given < self.depth { given } else { 0 };
        let limit = limit.unwrap_or(NO_LIMIT);
        let (index, bit) = self.place(hint);
        // Rule tags-9.
        let first = bit * u32::from(limit < self.depth);
        let (word, usable) = self.usable(index, limit);
        let found = match word.take(first, usable) {
            Some(bit) => Some(((index as u32) << self.word_shift) + bit),
            None => self.search_behind(index, limit),
        };
        let Some(tag) = found else {
            self.hints[usize::from(cpu)] = 0;
            return None;
        };
        self.in_use += 1;
        // Rule tags-8.
        let behind = if tag + 2 >= self.depth { 0 } else { tag + 1 };
        self.hints[usize::from(cpu)] = if tag == hint { behind } else { hint };
        Some(tag)
    }

    /// Takes a tag of the first word behind this one that has one.
    #[inline(never)]
    fn search_behind(&mut self, word: usize, limit: u32) -> Option<u32> {
        let words = self.words.len();
        (word + 1..words).chain(0..word).find_map(|index| {
            let (word, usable) = self.usable(index, limit);
            let bit = word.take(0, usable)?;
            Some(((index as u32) << self.word_shift) + bit)
        })
    }

    /// Gives a tag back that was taken on core `cpu`; those who may go on because of it are
    /// appended to `woken`.
    #[inline]
    pub fn give(&mut self, cpu: u16, tag: u32, woken: &mut Vec<W>) {
        // Rule tags-8.
        if tag < self.depth {
            self.hints[usize::from(cpu)] = tag;
        } else {
            self.beyond -= 1;
        }
        let (index, bit) = self.place(tag);
        self.words[index].give(bit, self.clears_late);
        self.in_use -= 1;
        if !self.counts_all_frees && self.sleepers == 0 && self.rising.is_empty() {
            return;
        }
        self.freed_since_wake += 1;
        if self.freed_since_wake >= self.wake_batch || (self.in_use == 0 && self.counts_all_frees) {
            self.freed_since_wake = 0;
            if self.sleepers > 0 {
                self.wake(woken);
            }
        }
    }

    /// The sleeper waits until a tag is freed.
    pub fn sleep(&mut self, sleeper: W) {
        self.sleepers += 1;
        self.waiters[self.join_at].push_back(sleeper);
        self.pass_turn();
    }

    /// A sleeper does not wait any more; it may have been woken.
    pub fn leave(&mut self, sleeper: W) {
        for queue in &mut self.waiters {
            let before = queue.len();
            queue.retain(|other| *other != sleeper);
            self.sleepers -= before - queue.len();
        }
        self.rising.retain(|other| *other != sleeper);
    }

    /// A task that was woken, or that found no tag, has tried again; if it got one, the wait queue
    /// that it would have slept in is passed over.
    // Observed on 6.12.117, assumed for the others: who is woken and gets its tag sleeps two queues
    // further the next time, so that of two tasks that are woken together now the one, now the
    // other goes first.
    pub(crate) fn tried_again(&mut self, sleeper: W, got_tag: bool) {
        self.rising.retain(|other| *other != sleeper);
        if got_tag {
            self.pass_turn();
        }
    }

    /// A task has slept for a tag so many times, with nobody beside it, and gone on with it.
    pub(crate) fn note_waits(&mut self, waits: u32, anybody: W) {
        for _ in 0..waits {
            self.sleep(anybody);
            self.wake(&mut Vec::new());
            self.tried_again(anybody, true);
        }
    }

    fn pass_turn(&mut self) {
        self.join_at = (self.join_at + 1) % WAIT_QUEUES;
    }

    /// Takes out everybody who sleeps: the map is about to be replaced.
    pub(crate) fn take_waiters(&mut self, woken: &mut Vec<W>) {
        self.sleepers = 0;
        for queue in &mut self.waiters {
            woken.extend(queue.drain(..));
        }
    }

    /// Wakes a batch of the next queue with sleepers, and of those behind it if the batch goes on.
    // Apart, so that `give`, which mostly wakes nobody, stays small.
    #[inline(never)]
    fn wake(&mut self, woken: &mut Vec<W>) {
        let mut left = self.wake_batch as usize;
        for _ in 0..WAIT_QUEUES {
            let queue = &mut self.waiters[self.wake_at];
            self.wake_at = (self.wake_at + 1) % WAIT_QUEUES;
            let batch = left.min(queue.len());
            let first = woken.len();
            woken.extend(queue.drain(..batch));
            self.rising.extend(&woken[first..]);
            self.sleepers -= batch;
            left -= batch;
            if left == 0 || (batch > 0 && !self.wakes_on) {
                return;
            }
        }
    }

    /// In which word a tag is, and which of its bits it is.
    fn place(&self, tag: u32) -> (usize, u32) {
        ((tag >> self.word_shift) as usize, tag & ((1 << self.word_shift) - 1))
    }

    /// A word, and those of its bits that may be used under a limit, if that leaves some of the map
    /// out.
    #[inline]
    fn usable(&mut self, index: usize, limit: u32) -> (&mut Word, u64) {
        let is_limited = limit < self.depth;
        if is_limited & (self.words[index].limit != limit) {
            self.note_limit(index, limit);
        }
        let word = &mut self.words[index];
        let usable = [word.tags, word.within_limit][usize::from(is_limited)];
        (word, usable)
    }

    #[inline(never)]
    fn note_limit(&mut self, index: usize, limit: u32) {
        let tags = self.words[index].tags.count_ones();
        let within_limit = low_bits(self.shallow_bits(index as u32, tags, limit));
        self.words[index] = Word { limit, within_limit, ..self.words[index] };
    }

    fn shallow_bits(&self, word: u32, bits: u32, limit: u32) -> u32 {
        match self.shallow {
            ShallowDepth::PerWord => limit.min(bits),
            ShallowDepth::WholeMap => {
                // Rule tags-3.
                let share = bits * limit / self.depth;
                let rest = bits * limit % self.depth;
                share + u32::from(rest >= (word + 1) * bits)
            }
        }
    }
}

impl Word {
    /// Takes the first usable bit from `first` on, or else the first of all. Where there is none,
    /// those that were freed can be found again (rule tags-9).
    #[inline]
    fn take(&mut self, first: u32, usable: u64) -> Option<u32> {
        let mut free = usable & !self.used;
        if free == 0 {
            self.used &= !core::mem::take(&mut self.cleared);
            free = usable & !self.used;
            if free == 0 {
                return None;
            }
        }
        let behind = free & (u64::MAX << first);
        let bit = if behind == 0 { free } else { behind }.trailing_zeros();
        self.used |= 1 << bit;
        Some(bit)
    }

    fn give(&mut self, bit: u32, late: bool) {
        let bit = 1 << bit;
        assert!(self.used & !self.cleared & bit != 0, "a tag that is given back was free already");
        match late {
            true => self.cleared |= bit,
            false => self.used &= !bit,
        }
    }
}

fn free_words(depth: u32, bits: u32) -> Vec<Word> {
    let word = |start| Word {
        used: 0,
        cleared: 0,
        tags: low_bits(bits.min(depth - start)),
        limit: NO_LIMIT,
        within_limit: 0,
    };
    (0..depth).step_by(bits as usize).map(word).collect()
}

fn low_bits(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// Bits per word of a map: 64, halved while there would be fewer than four words
/// (rule tags-1).
pub fn bits_per_word(depth: u32) -> u32 {
    let mut shift = 6;
    if depth >= 4 {
        while shift > 0 && (4 << shift) > depth {
            shift -= 1;
        }
    }
    1 << shift
}

#[cfg(test)]
mod tests {
    use super::{ContextId, ShallowDepth, bits_per_word};
    use alloc::vec::Vec;

    type TagMap = super::TagMap<ContextId>;

    #[test]
    fn words_are_as_the_specification_computes_them() {
        // Rule tags-1.
        let expected = [(31, 4), (32, 8), (62, 8), (64, 16), (128, 32), (256, 64)];
        for (depth, bits) in expected {
            assert_eq!(bits_per_word(depth), bits, "depth {depth}");
        }
    }

    #[test]
    fn a_limit_counts_tags_of_the_whole_map_from_6_17_on() {
        let allowed = |depth, limit| {
            let mut map = TagMap::new(depth, 1, ShallowDepth::WholeMap);
            let words = 0..map.words.len();
            words.map(|word| map.usable(word, limit).1.count_ones()).collect::<Vec<_>>()
        };
        // Rule tags-3.
        assert_eq!(allowed(64, 1), [1, 0, 0, 0]);
        assert_eq!(allowed(64, 63), [16, 16, 16, 15]);
        assert_eq!(allowed(62, 46), [6, 6, 6, 6, 6, 6, 6, 4]);
        assert_eq!(allowed(62, 11), [2, 2, 2, 1, 1, 1, 1, 1]);
        assert_eq!(allowed(31, 23), [3, 3, 3, 3, 3, 3, 3, 2]);
    }

    #[test]
    fn words_of_a_resized_map_are_those_it_was_made_with() {
        let mut map = TagMap::new(8, 1, ShallowDepth::PerWord);
        assert!(map.resize(7));
        let mut allowed = |limit| -> Vec<u32> {
            (0..map.words.len()).map(|word| map.usable(word, limit).1.count_ones()).collect()
        };
        assert_eq!(allowed(1), [1, 1, 1, 1]);
        assert_eq!(allowed(6), [2, 2, 2, 1]);
        assert!(!map.resize(9));
    }

    #[test]
    fn every_tag_is_given_out_once() {
        let mut map = TagMap::new(62, 2, ShallowDepth::PerWord);
        let mut seen: Vec<u32> = (0..62).map(|n| map.take(n as u16 % 2, None).unwrap()).collect();
        assert_eq!(map.take(0, None), None);
        seen.sort_unstable();
        assert_eq!(seen, (0..62).collect::<Vec<_>>());
    }

    #[test]
    fn a_search_begins_with_the_tag_that_was_freed_last() {
        // Observed on 6.12: `alloc_hint` of a map of four, of which writes may use two.
        let mut map = TagMap::new(4, 1, ShallowDepth::WholeMap);
        let mut nobody = Vec::new();
        map.hints[0] = 3;
        assert_eq!((map.take(0, None), map.hints[0]), (Some(3), 0));
        map.give(0, 3, &mut nobody);
        assert_eq!(map.hints[0], 3);
        assert_eq!((map.take(0, Some(2)), map.hints[0]), (Some(0), 3));
        map.give(0, 0, &mut nobody);
        assert_eq!((map.take(0, None), map.hints[0]), (Some(0), 1));
        assert_eq!((map.take(0, None), map.hints[0]), (Some(1), 2));
        assert_eq!((map.take(0, Some(2)), map.hints[0]), (None, 0));
        // It is not the one that was looked for, so the search begins there again.
        assert_eq!((map.take(0, None), map.hints[0]), (Some(2), 0));
    }

    #[test]
    fn behind_the_last_but_one_a_search_begins_with_the_first() {
        // Observed on 7.3.4: `alloc_hint` of 256 tokens of Kyber goes from 254 to 0 with the next
        // token, and with the one after to 1; 255 has not been given out.
        let mut map = TagMap::new(256, 1, ShallowDepth::WholeMap);
        map.hints[0] = 253;
        let mut each = || (map.take(0, None).unwrap(), map.hints[0]);
        assert_eq!([each(), each()], [(192, 253), (193, 253)]);
        (194..253).for_each(|tag| assert_eq!(each().0, tag));
        assert_eq!([each(), each(), each()], [(253, 254), (254, 0), (0, 1)]);
        // Where the last one is the one that was freed last, it is found, too.
        map.hints[0] = 255;
        assert_eq!((map.take(0, None), map.hints[0]), (Some(255), 0));
    }

    #[test]
    fn a_search_that_would_begin_beyond_the_last_tag_begins_anywhere() {
        // Observed on 7.3.4: `alloc_hint` of Kyber's tokens stays when they become fewer, and with
        // the next token it is drawn: 114 of 128.
        let mut map = TagMap::new(256, 1, ShallowDepth::WholeMap);
        map.hints[0] = 226;
        map.limit(128);
        map.search_word(1);
        assert_eq!((map.take(0, None), map.take(0, None)), (Some(64), Some(65)));
        map.search_word(0);
        assert_eq!(map.take(0, None), Some(66), "only where it begins anywhere");
        map.hints[0] = 127;
        map.limit(64);
        assert_eq!(map.take(0, None), Some(0));
        map.hints[0] = 90;
        map.limit(128);
        assert_eq!(map.take(0, None), Some(67), "where it is not beyond any more");
    }

    #[test]
    fn a_freed_tag_is_found_again_when_its_word_has_no_other() {
        // Observed on 6.12.117 and 7.3.4: `alloc_hint` after each of these, one at a time, of a map
        // of 64.
        let mut map = TagMap::new(64, 1, ShallowDepth::WholeMap).clearing_late(true);
        map.hints[0] = 38;
        let mut each = |limit, count: usize| -> Vec<u32> {
            let one = |_| {
                let tag = map.take(0, limit).unwrap();
                map.give(0, tag, &mut Vec::new());
                tag
            };
            (0..count).map(one).collect()
        };
        let writes =
            [[38, 39, 40, 41, 42, 43, 32, 33, 34, 35], [36, 37, 37, 38, 39, 40, 41, 42, 43, 32]];
        assert_eq!(each(Some(48), 20), writes.concat());
        assert_eq!(each(None, 8), [33, 34, 35, 36, 44, 45, 46, 47]);
        assert_eq!(each(Some(48), 8), [32, 33, 34, 35, 36, 37, 38, 39]);
    }

    #[test]
    fn what_a_search_frees_is_what_nobody_uses() {
        let mut map = TagMap::new(4, 1, ShallowDepth::PerWord).clearing_late(true);
        let tags: Vec<u32> = (0..4).map(|_| map.take(0, None).unwrap()).collect();
        map.give(0, tags[2], &mut Vec::new());
        assert_eq!((map.take(0, None), map.take(0, None)), (Some(2), None));
    }

    #[test]
    fn frees_wake_a_batch_of_one_wait_queue() {
        let mut map = TagMap::new(64, 1, ShallowDepth::PerWord);
        let tags: Vec<u32> = (0..64).map(|_| map.take(0, None).unwrap()).collect();
        for task in 0..9 {
            map.sleep(ContextId(task));
        }
        let mut woken = Vec::new();
        for tag in &tags[..7] {
            map.give(0, *tag, &mut woken);
        }
        assert!(woken.is_empty());
        map.give(0, tags[7], &mut woken);
        assert_eq!(woken, [ContextId(0), ContextId(8)]);
    }

    #[test]
    fn a_batch_that_goes_on_wakes_the_first_of_several_wait_queues() {
        let mut map =
            TagMap::new(16, 1, ShallowDepth::WholeMap).waking_on(true).counting_all_frees(false);
        let tags: Vec<u32> = (0..16).map(|_| map.take(0, None).unwrap()).collect();
        let mut woken = Vec::new();
        map.give(0, tags[0], &mut woken);
        let again = map.take(0, None);
        (0..3).for_each(|task| map.sleep(ContextId(task)));
        map.give(0, again.unwrap(), &mut woken);
        assert!(woken.is_empty());
        map.give(0, tags[1], &mut woken);
        assert_eq!(woken, [ContextId(0), ContextId(1)]);
    }

    #[test]
    fn earlier_waits_leave_the_queues_in_another_turn() {
        let mut map =
            TagMap::new(32, 1, ShallowDepth::WholeMap).waking_on(true).counting_all_frees(false);
        map.note_waits(2, ContextId(0));
        assert_eq!((map.join_at, map.wake_at, map.sleepers), (4, 0, 0));
        let tags: Vec<u32> = (0..32).map(|_| map.take(0, None).unwrap()).collect();
        let mut woken = Vec::new();
        // Three are woken by a batch of four, and sleep again behind a fourth.
        (0..3).for_each(|task| map.sleep(ContextId(task)));
        tags[..4].iter().for_each(|tag| map.give(0, *tag, &mut woken));
        assert_eq!(woken, [0, 1, 2].map(ContextId));
        let again: Vec<u32> = (0..4).map(|_| map.take(0, None).unwrap()).collect();
        map.sleep(ContextId(3));
        for task in woken.drain(..) {
            map.tried_again(task, false);
            map.sleep(task);
        }
        again.iter().for_each(|tag| map.give(0, *tag, &mut woken));
        // Observed on 6.12: the one that came between is the last.
        assert_eq!(woken, [0, 1, 2, 3].map(ContextId));
    }

    #[test]
    fn who_was_woken_counts_as_a_sleeper_until_it_goes_on() {
        let mut map =
            TagMap::new(16, 1, ShallowDepth::WholeMap).waking_on(true).counting_all_frees(false);
        let tags: Vec<u32> = (0..16).map(|_| map.take(0, None).unwrap()).collect();
        let mut woken = Vec::new();
        map.sleep(ContextId(0));
        // A batch of two wakes it; the third free counts, as it has not gone on.
        (0..3).for_each(|n| map.give(0, tags[n], &mut woken));
        assert_eq!(woken, [ContextId(0)]);
        map.tried_again(ContextId(0), true);
        // Nobody sleeps, so this one does not.
        map.give(0, tags[3], &mut woken);
        map.sleep(ContextId(1));
        map.give(0, tags[4], &mut woken);
        assert_eq!(woken, [ContextId(0), ContextId(1)]);
    }

    #[test]
    fn tags_beyond_a_smaller_number_are_not_given_out_again() {
        let mut map = TagMap::new(64, 1, ShallowDepth::WholeMap).clearing_late(true);
        let mut woken = Vec::new();
        let tags: Vec<u32> = (0..6).map(|_| map.take(0, None).unwrap()).collect();
        map.limit(4);
        assert_eq!((map.take(0, None), map.in_use(), map.depth()), (None, 6, 4));
        map.give(0, tags[5], &mut woken);
        assert_eq!(map.take(0, None), None);
        map.give(0, tags[2], &mut woken);
        assert_eq!(map.take(0, None), Some(2));
        map.limit(64);
        let all: Vec<u32> = core::iter::from_fn(|| map.take(0, None)).collect();
        assert_eq!((all.len(), map.in_use()), (59, 64));
        assert!(map.is_exhausted());
    }

    #[test]
    fn a_batch_is_an_eighth_of_the_tags_that_a_limit_leaves_in_all_words() {
        let batch = |depth, limit, shallow| {
            let mut map = TagMap::new(depth, 1, shallow);
            map.set_min_depth(Some(limit));
            map.wake_batch
        };
        // Observed on 6.1.192 and 6.12.117: `wake_batch` of `sched_tags`, with Kyber.
        assert_eq!(batch(64, 12, ShallowDepth::PerWord), 6);
        assert_eq!([48, 24].map(|it| batch(64, it, ShallowDepth::WholeMap)), [6, 3]);
        assert_eq!([0, 1].map(|it| batch(64, it, ShallowDepth::PerWord)), [1, 1]);
    }

    #[test]
    fn who_waits_no_more_is_not_woken() {
        let mut map = TagMap::new(4, 1, ShallowDepth::WholeMap);
        let mut woken = Vec::new();
        let tags: Vec<u32> = (0..4).map(|_| map.take(0, None).unwrap()).collect();
        map.sleep(ContextId(1));
        map.sleep(ContextId(2));
        map.leave(ContextId(1));
        tags[..2].iter().for_each(|tag| map.give(0, *tag, &mut woken));
        assert_eq!(woken, [ContextId(2)]);
    }
}
