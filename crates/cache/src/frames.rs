//! Which page frames hold the pages of files: those that were let go last are used first.
//!
//! A core has frames at hand. When it has none it cuts some off the free ones ([`Buddies`]), and
//! each time twice as many, until one is let go. Memory that was never used lies in one piece. A
//! file that is let go gives its frames back one by one from its beginning, so the next file has
//! them the other way round, no two one behind the other, and the device is told of every page. The
//! file after that has them in order again.
//!
//! A core keeps so many frames at hand and makes the oldest free beyond that; all of them when a
//! task ends that let some go and used none since. Free neighbours are in one piece again.
//!
//! When a file is let go, pieces of memory with its nodes become free ([`Nodes`]), at the next
//! change of tasks. Of pieces that are let go one after the other, with no page taken in between,
//! each but the first makes the core put a thousand pages back: first those of pieces and whatever
//! else is not for files, then the oldest of files.
//!
//! Pages that go because memory is short are free at once.
//!
//! On 6.1 pages are let go fifteen at a time from the last to the first, so that fifteen lie
//! together when they are used again. A core that has as many at hand as it may puts back a batch,
//! and twice as many each time, up to all but a batch, until a page is taken. So all but the last
//! few of a file are in one piece again.
//!
// observed on 6.1.192: mm_page_free, mm_page_free_batched and mm_page_pcpu_drain while files of
// 16 MiB are let go in a guest of 512 MiB (31, 62, 124, 248, 496, then 856 pages for 887 at hand),
// and /proc/zoneinfo of 256 MiB to 1 GiB
// observed on 6.12.117: mm_page_alloc, mm_page_alloc_zone_locked, mm_page_free_batched,
// mm_page_pcpu_drain, mm_page_free of pieces and kmem_cache_free of nodes while files of 4 to
// 100 MiB are written, let go, truncated and written anew on ext4 and XFS; /proc/zoneinfo; bios of
// 4 MiB while dd writes twice the memory
//
// Divergence: of what programs and the kernel itself use of memory, and let go, only what fio
// writes to and metadata are among them. Pages for all else that a core gets while a file is
// written are at hand from the beginning. On the kernel they come again and again: four or eight at
// a time with bios in flight and inodes, single ones with buffer heads. A core puts back pieces
// first, then fours, eights and all else, then files, at last buffer heads. How many may be at hand
// moves (`high` in /proc/zoneinfo: up by what the core gets, down by what pieces make it put back);
// here it stays. So where the third file and later ones lie may differ.

use crate::buddy::Buddies;
use crate::nodes::{FILE_PAGES, Nodes};
use guest::{FirstLists, Lists};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Pages that are let go together where they are from the last to the first (observed on 6.1).
const TOGETHER: usize = 15;

/// When pages were put back because there were too many, so many fewer may be at hand (observed:
/// 992 are put back for every 967 let go), until the core gets some (assumed).
const DRAINED: usize = 25;

/// The disk itself is the first file, in which metadata are.
const METADATA: u64 = 0;

/// Pages in a piece of nodes.
const PIECE: u64 = 2;
/// What a core puts back for a piece: so many times what it gets at a time.
const PUT_BACK: u64 = 32;

/// A page of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame(pub u32);

/// The frames that no page of a file is in.
#[derive(Clone, Debug)]
pub struct Frames {
    /// How many are kept at hand, but for those by which that was lowered.
    most: usize,
    lowered: usize,
    /// How many a core gets at a time; so many must have been let go for the end of a task to
    /// matter.
    batch: u64,
    /// How often that was doubled, and how often it may be.
    doubled: u32,
    most_doubled: u32,
    /// What is at hand, the next one first.
    at_hand: VecDeque<Frame>,
    free: Buddies,
    given_since_taken: u64,
    /// Where the pages of files are, if a file system is mounted.
    nodes: Option<Nodes>,
    /// Pieces of nodes that become free at the next change of tasks.
    pieces: u64,
    /// Those at hand.
    pieces_at_hand: u64,
    /// Pages at hand that are not for files, which are put back sooner.
    foreign: u64,
    /// What is at hand at first if ext4 is mounted.
    on_ext4: Lists,
    /// Pages go because others need memory.
    is_short: bool,
    /// How many frames were in use before any was taken.
    before: u32,
    /// Pages are let go some at a time, and a core puts back more each time.
    in_reverse: Option<Reverse>,
}

/// What a core does that lets pages go some at a time.
#[derive(Clone, Debug, Default)]
struct Reverse {
    /// Those that are to go with others.
    going: Vec<Frame>,
    /// How often it has put pages back since one was taken.
    drains: u32,
}

impl Frames {
    /// A core that keeps so many at hand and gets `batch` at a time (`batch` in /proc/zoneinfo),
    /// doubled up to `most_doubled` times, and has these to begin with.
    pub fn new(most: u64, batch: u64, most_doubled: u32, lists: FirstLists) -> Frames {
        let mut frames = Frames {
            most: most as usize,
            lowered: 0,
            batch,
            doubled: 0,
            most_doubled,
            at_hand: VecDeque::new(),
            free: Buddies::default(),
            given_since_taken: 0,
            nodes: None,
            pieces: 0,
            pieces_at_hand: 0,
            foreign: 0,
            on_ext4: lists.on_ext4,
            is_short: false,
            before: 0,
            in_reverse: None,
        };
        frames.begin_with(lists.elsewhere);
        frames
    }

    /// Has these at hand.
    fn begin_with(&mut self, lists: Lists) {
        let Lists { files, doubled, foreign } = lists;
        self.put_back(self.at_hand.len());
        self.at_hand = (0..files).map(|_| Frame(self.free.take())).collect();
        (self.doubled, self.foreign) = (doubled.min(self.most_doubled), foreign);
    }

    /// The same, where pages are let go some at a time from the last to the first.
    pub fn letting_go_in_reverse(self, in_reverse: bool) -> Frames {
        Frames { in_reverse: in_reverse.then(Reverse::default), ..self }
    }

    /// A file system is mounted, and there is room for so many nodes in the pieces filled next,
    /// some of which others take.
    pub fn note_mount(&mut self, rooms: [u64; 3], taken: u64, is_ext4: bool) {
        self.nodes = Some(Nodes::with_room(rooms, taken));
        if is_ext4 {
            self.begin_with(self.on_ext4);
        }
    }

    /// A frame for a page.
    pub fn take(&mut self) -> Frame {
        self.let_go();
        if let Some(reverse) = &mut self.in_reverse {
            reverse.drains = 0;
        }
        // Whoever lets a file go sleeps before pages of another come.
        let pieces = std::mem::take(&mut self.pieces);
        self.pieces_at_hand += pieces;
        if pieces > 1 && self.given_since_taken >= self.batch {
            self.put_back_for_pieces(pieces - 1);
        }
        self.given_since_taken = 0;
        if self.at_hand.is_empty() {
            let count = self.get();
            self.at_hand.extend((0..count).map(|_| Frame(self.free.take())));
        }
        self.at_hand.pop_front().expect("a batch is at hand")
    }

    /// A frame that has been in use since before any was taken; it lies apart from those.
    pub fn take_old(&mut self) -> Frame {
        self.before += 2;
        Frame(u32::MAX - self.before)
    }

    /// How many pages the core gets now, twice as many the next time.
    fn get(&mut self) -> u64 {
        self.lowered = 0;
        let count = self.batch << self.doubled;
        self.doubled = (self.doubled + 1).min(self.most_doubled);
        count.max(1)
    }

    /// Memory is short from now on, or not any more: pages that go then are free at once.
    // assumed: on kernels other than 6.12, too
    pub fn set_short(&mut self, is_short: bool) {
        self.is_short = is_short;
    }

    /// A page was let go.
    pub fn give(&mut self, frame: Frame) {
        if self.is_short {
            return self.free.give(frame.0);
        }
        self.given_since_taken += 1;
        if let Some(reverse) = &mut self.in_reverse {
            reverse.going.push(frame);
            if reverse.going.len() == TOGETHER {
                self.let_go();
            }
            return;
        }
        self.doubled /= 2;
        self.at_hand.push_front(frame);
        // All pages at hand count (`count` and `high` in /proc/zoneinfo).
        let pieces = self.pieces_at_hand * PIECE;
        let count = self.at_hand.len() + (self.foreign + pieces) as usize;
        if count > self.most.saturating_sub(self.lowered) {
            self.put_back((PUT_BACK * self.batch) as usize);
            self.lowered += DRAINED;
        }
    }

    /// A page of a task's own memory was let go.
    pub fn give_own(&mut self, frame: Frame) {
        let given = self.given_since_taken;
        self.give(frame);
        self.given_since_taken = given;
    }

    /// Pages that were to go with others go.
    fn let_go(&mut self) {
        let Some(reverse) = &mut self.in_reverse else { return };
        let (going, mut drains) = (std::mem::take(&mut reverse.going), reverse.drains);
        for frame in going.into_iter().rev() {
            self.at_hand.push_front(frame);
            if self.at_hand.len() >= self.most {
                let most = self.most.saturating_sub(self.batch as usize);
                let count = (self.batch as usize).saturating_mul(1 << drains.min(16)).min(most);
                self.put_back(count.max(1));
                drains += 1;
            }
        }
        self.in_reverse = Some(Reverse { going: Vec::new(), drains });
    }

    /// A page of a file comes, which may take nodes.
    // observed on 6.12.117: what is read and logged of metadata takes none; mounting took them
    fn page_came(&mut self, file: u64, index: u64) {
        if file == METADATA {
            return;
        }
        let pieces = self.nodes.as_mut().map_or(0, |it| it.page_came(file, index));
        for _ in 0..pieces {
            if self.pieces_at_hand == 0 {
                self.pieces_at_hand = (self.batch / PIECE).max(1);
            }
            self.pieces_at_hand -= 1;
        }
    }

    /// A page of a file goes, and nodes with it.
    // Divergence: on 6.1 it is not known what that does to the pages at hand.
    fn page_left(&mut self, file: u64, index: u64) {
        if file == METADATA {
            return;
        }
        let pieces = self.nodes.as_mut().map_or(0, |it| it.page_left(file, index));
        if self.in_reverse.is_none() {
            self.pieces += pieces;
        }
    }

    /// A task was started, which takes memory.
    pub fn task_started(&mut self) {
        self.pieces_at_hand += std::mem::take(&mut self.pieces);
        self.given_since_taken = 0;
    }

    /// A task has ended.
    pub fn task_ended(&mut self) {
        self.let_go();
        if self.given_since_taken >= self.batch {
            self.put_back(self.at_hand.len());
        }
    }

    /// Puts back what pieces make a core put back, first what is not for files, and pieces.
    fn put_back_for_pieces(&mut self, pieces: u64) {
        let all = PUT_BACK * self.batch * pieces;
        let pieces = std::mem::take(&mut self.pieces_at_hand) * PIECE;
        let foreign = self.foreign.min(all.saturating_sub(pieces));
        self.foreign -= foreign;
        self.put_back(all.saturating_sub(pieces + foreign) as usize);
    }

    /// Makes the oldest of those at hand free.
    fn put_back(&mut self, count: usize) {
        for _ in 0..count {
            let Some(Frame(frame)) = self.at_hand.pop_back() else { return };
            self.free.give(frame);
        }
    }
}

/// Which page is in which frame. Costs some twenty bytes a page.
#[derive(Clone, Debug)]
pub struct Places {
    frames: Frames,
    of: BTreeMap<u64, Frame>,
}

impl Places {
    /// No page is in memory, which a core hands out with these frames.
    pub fn new(frames: Frames) -> Places {
        Places { frames, of: BTreeMap::new() }
    }

    /// A page takes a frame.
    pub fn came(&mut self, page: u64) {
        self.of.insert(page, self.frames.take());
        self.frames.page_came(page / FILE_PAGES, page % FILE_PAGES);
    }

    /// A page has been in memory since before the first came.
    pub fn was_there(&mut self, page: u64) {
        self.of.insert(page, self.frames.take_old());
    }

    /// A page that was in memory is let go.
    pub fn left(&mut self, page: u64) {
        let frame = self.of.remove(&page);
        self.frames.give(frame.unwrap_or_else(|| panic!("page {page} is not in memory")));
        self.frames.page_left(page / FILE_PAGES, page % FILE_PAGES);
    }

    /// The frames.
    pub fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    /// Whether a page is in the frame behind that of the page before it.
    pub fn follows(&self, page: u64) -> bool {
        let frame = |page| self.of.get(&page).map(|it| it.0);
        frame(page - 1).is_some_and(|before| frame(page) == Some(before.wrapping_add(1)))
    }

    /// Cuts pages that are in memory into runs that lie in one piece.
    pub fn pieces(&self, pages: Range<u64>) -> Vec<Range<u64>> {
        let mut pieces: Vec<Range<u64>> = Vec::new();
        let mut last = None;
        for (&page, &Frame(frame)) in self.of.range(pages.clone()) {
            match pieces.last_mut() {
                Some(piece) if last == Some((page - 1, frame.wrapping_sub(1))) => piece.end += 1,
                _ => pieces.push(page..page + 1),
            }
            last = Some((page, frame));
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(most: u64, batch: u64) -> Frames {
        Frames::new(most, batch, 0, FirstLists::default())
    }

    fn first(lists: Lists) -> FirstLists {
        FirstLists { on_ext4: lists, elsewhere: lists }
    }

    fn take(frames: &mut Frames, count: usize) -> Vec<u32> {
        (0..count).map(|_| frames.take().0).collect()
    }

    fn give(frames: &mut Frames, which: &[u32]) {
        which.iter().for_each(|&it| frames.give(Frame(it)));
    }

    #[test]
    fn frames_that_were_let_go_last_are_used_first() {
        let mut frames = frames(1000, 31);
        assert_eq!(take(&mut frames, 3), [0, 1, 2]);
        give(&mut frames, &[0, 1, 2]);
        assert_eq!(take(&mut frames, 4), [2, 1, 0, 3]);
    }

    #[test]
    fn pages_in_frames_that_were_used_before_lie_apart() {
        let mut places = Places::new(frames(1000, 31));
        (10..13).for_each(|page| places.came(page));
        assert_eq!(places.pieces(10..13).len(), 1);
        (10..13).for_each(|page| places.left(page));
        (20..24).for_each(|page| places.came(page));
        assert_eq!(places.pieces(20..24), [20..21, 21..22, 22..23, 23..24]);
    }

    #[test]
    fn pages_that_go_because_memory_is_short_are_in_one_piece_again() {
        let mut frames = frames(1000, 31);
        let all = take(&mut frames, 62);
        frames.set_short(true);
        give(&mut frames, &all);
        frames.set_short(false);
        assert_eq!(take(&mut frames, 62), all);
    }

    #[test]
    fn the_oldest_of_too_many_are_put_back_and_used_after_the_others() {
        let mut frames = frames(100, 2);
        let all = take(&mut frames, 101);
        // 64 go at once: 32 times what the core gets at a time.
        give(&mut frames, &all);
        assert_eq!(frames.lowered, DRAINED, "the next time comes sooner");
        let again = take(&mut frames, 40);
        let kept: Vec<u32> = (64..=100).rev().collect();
        assert_eq!(again[..37], kept);
        assert!(again[37..].iter().all(|frame| *frame < 64 || *frame > 100), "{again:?}");
    }

    #[test]
    fn a_core_gets_twice_as_many_each_time_until_one_is_let_go() {
        let mut frames =
            Frames::new(1000, 15, 5, first(Lists { files: 2, doubled: 1, foreign: 0 }));
        let mut batch = || {
            frames.take();
            let count = 1 + frames.at_hand.len();
            let rest = take(&mut frames, count - 1);
            (count, rest.last().copied())
        };
        assert_eq!(batch(), (2, Some(1)));
        assert_eq!([batch().0, batch().0, batch().0], [30, 60, 120]);
        let (_, last) = batch();
        frames.give(Frame(last.expect("there were others")));
        frames.take();
        frames.take();
        // Five doublings, then half of them.
        assert_eq!(frames.at_hand.len() + 1, 60);
    }

    #[test]
    fn pieces_make_a_core_put_back_others_first_and_then_the_oldest_of_files() {
        let lists = first(Lists { files: 6000, doubled: 0, foreign: 77 });
        let mut places = Places::new(Frames::new(10_000, 15, 0, lists));
        places.frames().note_mount([14, 0, 0], 0, false);
        // Ten pieces of fourteen nodes, of which five stay, and the piece at hand.
        let pages = FILE_PAGES..FILE_PAGES + 8192;
        pages.clone().for_each(|page| places.came(page));
        let before = places.frames.at_hand.len();
        pages.for_each(|page| places.left(page));
        assert_eq!(places.frames.pieces, 5);
        let pieces = PIECE * (places.frames.pieces_at_hand + 5);
        places.came(2 * FILE_PAGES);
        let put_back = 4 * PUT_BACK * 15 - 77 - pieces;
        assert_eq!(places.frames.at_hand.len() as u64, before as u64 + 8192 - put_back - 1);
        assert_eq!((places.frames.foreign, places.frames.pieces_at_hand), (0, 0));
    }

    #[test]
    fn where_pages_go_in_reverse_fifteen_lie_together_and_the_oldest_are_put_back() {
        let mut frames = frames(887, 31).letting_go_in_reverse(true);
        let all = take(&mut frames, 4092);
        give(&mut frames, &all);
        let again = take(&mut frames, 4092);
        assert_eq!(again[..3], [4080, 4081, 4082]);
        assert_eq!(again[11..14], [4091, 4065, 4066]);
        let kept = again.iter().take_while(|frame| (3000..4092).contains(*frame)).count();
        // A batch was left by the last of the drains, and 541 pages came after that.
        assert_eq!(kept, 572);
        // The others are in one piece again but for the blocks that they are cut from.
        let behind = again[kept..].windows(2).filter(|it| it[1] == it[0] + 1).count();
        assert!(behind > 3500 - 20, "{behind} of 3520 lie behind the one before");
    }

    #[test]
    fn the_end_of_a_task_that_let_many_go_puts_all_back() {
        let mut frames = frames(1000, 31);
        let all = take(&mut frames, 40);
        give(&mut frames, &[3, 1, 2]);
        frames.task_ended();
        assert_eq!(take(&mut frames, 3), [2, 1, 3]);
        give(&mut frames, &all);
        frames.task_ended();
        assert_eq!(take(&mut frames, 41), (0..41).collect::<Vec<u32>>());
    }
}
