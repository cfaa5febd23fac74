//! Which page frames hold the pages of files: those that were let go last are used first.
//!
//! Memory that was never used lies in one piece. A file that is let go gives its frames back one by
//! one from its beginning, so the next file has them the other way round, no two one behind the
//! other, and the device is told of every page. The file after that has them in order again.
//!
//! A core keeps so many frames at hand and puts the oldest back among the others beyond that; all
//! of them when a task ends that let some go and used none since. Among the others, neighbours are
//! in one piece again.
//!
//! Where the pages of a file are is kept in nodes of 64, fourteen of which share a piece of two
//! pages of memory. When a file is let go they are too, at the next change of tasks, and all but a
//! few of their pieces become free. Of pieces that are let go one after the other, with no page
//! taken in between, each but the first makes the core put a thousand pages back.
//!
//! On 6.1 pages are let go fifteen at a time from the last to the first, so that fifteen lie
//! together when they are used again. A core that has as many at hand as it may puts back a batch,
//! and twice as many each time, up to all but a batch, until a page is taken. So all but the last
//! few of a file are in one piece again.
//!
// observed on 6.1.192: mm_page_free, mm_page_free_batched and mm_page_pcpu_drain while files of
// 16 MiB are let go in a guest of 512 MiB (31, 62, 124, 248, 496, then 856 pages for 887 at hand),
// and /proc/zoneinfo of 256 MiB to 1 GiB
// observed on 6.12.117: mm_page_alloc, mm_page_free_batched, mm_page_pcpu_drain, mm_page_free of
// pieces and kmem_cache_free of nodes while files of 4 to 100 MiB are written, let go, truncated
// and written anew on ext4 and XFS; /proc/zoneinfo
//
// Divergence: what programs and the kernel itself use of memory, and let go, is not among them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Pages that are let go together where they are from the last to the first (observed on 6.1).
const TOGETHER: usize = 15;

/// How many more are put back when there are too many (observed: 992 for every 967 let go).
const DRAINED: usize = 25;

/// Pages of a file, or nodes below it, in a node.
const NODE: u64 = 64;
/// Nodes in a piece of memory, and those of a file that share theirs with others (observed).
const NODES_PER_PIECE: u64 = 14;
const SHARING: u64 = 2;
/// What a core puts back for a piece: so many times what it gets at a time.
const PUT_BACK: u64 = 32;

/// A page of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame(pub u32);

/// The frames that no page of a file is in.
#[derive(Clone, Debug)]
pub struct Frames {
    /// How many are kept at hand.
    most: usize,
    /// How many a core gets at a time; so many must have been let go for the end of a task to
    /// matter.
    batch: u64,
    pcp_lists: VecDeque<Frame>,
    /// Runs of others that were used before: the first and how many.
    others: BTreeMap<u32, u32>,
    /// From here on none was ever used.
    unused: u32,
    given_since_taken: u64,
    /// Pieces of nodes that become free at the next change of tasks.
    pieces: u64,
    /// How many of those of a file do not, if that is known.
    pieces_kept: Option<u64>,
    /// Pages at hand that are not for files.
    foreign: u64,
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

/// The nodes that say where so many runs of 64 pages are.
pub fn nodes_above(leaves: u64) -> u64 {
    let (mut nodes, mut level) = (leaves, leaves);
    while level > 1 {
        level = level.div_ceil(NODE);
        nodes += level;
    }
    nodes
}

/// The run of 64 pages that a page is in.
pub fn leaf_of(page: u64) -> u64 {
    page / NODE
}

impl Frames {
    /// A core that keeps so many at hand and gets `batch` at a time (`batch` in /proc/zoneinfo),
    /// with so many at hand that are not for files.
    pub fn new(most: u64, batch: u64, foreign: u64) -> Frames {
        Frames {
            most: most as usize,
            batch,
            pcp_lists: VecDeque::new(),
            others: BTreeMap::new(),
            unused: 0,
            given_since_taken: 0,
            pieces: 0,
            pieces_kept: None,
            foreign,
            in_reverse: None,
        }
    }

    /// The same, where pages are let go some at a time from the last to the first.
    pub fn letting_go_in_reverse(self, in_reverse: bool) -> Frames {
        Frames { in_reverse: in_reverse.then(Reverse::default), ..self }
    }

    /// So many pieces of nodes stay, as others have room for them already.
    pub fn keep_pieces(&mut self, kept: u64) {
        self.pieces_kept = Some(kept);
    }

    /// A frame for a page.
    pub fn take(&mut self) -> Frame {
        self.let_go();
        if let Some(reverse) = &mut self.in_reverse {
            reverse.drains = 0;
        }
        // Whoever lets a file go sleeps before pages of another come.
        let pieces = std::mem::take(&mut self.pieces);
        if pieces > 1 && self.given_since_taken >= self.batch {
            let all = (pieces - 1) * PUT_BACK * self.batch;
            let foreign = all.min(self.foreign);
            self.foreign -= foreign;
            self.put_back((all - foreign) as usize);
        }
        self.given_since_taken = 0;
        if let Some(frame) = self.pcp_lists.pop_back() {
            return frame;
        }
        let Some((first, length)) = self.others.pop_first() else {
            self.unused += 1;
            return Frame(self.unused - 1);
        };
        if length > 1 {
            self.others.insert(first + 1, length - 1);
        }
        Frame(first)
    }

    /// A page was let go.
    pub fn give(&mut self, frame: Frame) {
        self.given_since_taken += 1;
        if let Some(reverse) = &mut self.in_reverse {
            reverse.going.push(frame);
            if reverse.going.len() == TOGETHER {
                self.let_go();
            }
            return;
        }
        self.pcp_lists.push_back(frame);
        if self.pcp_lists.len() > self.most {
            self.put_back(self.pcp_lists.len() - self.most + DRAINED);
        }
    }

    /// Pages that were to go with others go.
    fn let_go(&mut self) {
        let Some(reverse) = &mut self.in_reverse else { return };
        let (going, mut drains) = (std::mem::take(&mut reverse.going), reverse.drains);
        for frame in going.into_iter().rev() {
            self.pcp_lists.push_back(frame);
            if self.pcp_lists.len() >= self.most {
                let most = self.most.saturating_sub(self.batch as usize);
                let count = (self.batch as usize).saturating_mul(1 << drains.min(16)).min(most);
                self.put_back(count.max(1));
                drains += 1;
            }
        }
        self.in_reverse = Some(Reverse { going: Vec::new(), drains });
    }

    /// So many nodes were let go.
    // Divergence: on 6.1 it is not known what that does to the pages at hand.
    pub fn nodes_left(&mut self, nodes: u64) {
        if self.in_reverse.is_some() {
            return;
        }
        let Some(kept) = self.pieces_kept else { return };
        let whole = nodes.saturating_sub(SHARING) / NODES_PER_PIECE;
        self.pieces += whole.saturating_sub(kept);
    }

    /// A task was started, which takes memory.
    pub fn task_started(&mut self) {
        self.pieces = 0;
        self.given_since_taken = 0;
    }

    /// A task has ended.
    pub fn task_ended(&mut self) {
        self.let_go();
        if self.given_since_taken >= self.batch {
            self.put_back(self.pcp_lists.len());
        }
    }

    fn put_back(&mut self, count: usize) {
        for Frame(frame) in self.pcp_lists.drain(..count.min(self.pcp_lists.len())) {
            let (mut first, mut length) =
                (frame, 1 + self.others.remove(&(frame + 1)).unwrap_or(0));
            if let Some((&before, run)) = self.others.range_mut(..frame).next_back()
                && before + *run == frame
            {
                (first, length) = (before, *run + length);
            }
            self.others.insert(first, length);
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
    }

    /// A page that was in memory is let go.
    pub fn left(&mut self, page: u64) {
        let frame = self.of.remove(&page);
        self.frames.give(frame.unwrap_or_else(|| panic!("page {page} is not in memory")));
    }

    /// The frames.
    pub fn frames(&mut self) -> &mut Frames {
        &mut self.frames
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

    fn take(frames: &mut Frames, count: usize) -> Vec<u32> {
        (0..count).map(|_| frames.take().0).collect()
    }

    fn give(frames: &mut Frames, which: &[u32]) {
        which.iter().for_each(|&it| frames.give(Frame(it)));
    }

    #[test]
    fn frames_that_were_let_go_last_are_used_first() {
        let mut frames = Frames::new(1000, 31, 0);
        assert_eq!(take(&mut frames, 3), [0, 1, 2]);
        give(&mut frames, &[0, 1, 2]);
        assert_eq!(take(&mut frames, 4), [2, 1, 0, 3]);
    }

    #[test]
    fn pages_in_frames_that_were_used_before_lie_apart() {
        let mut places = Places::new(Frames::new(1000, 31, 0));
        (10..13).for_each(|page| places.came(page));
        assert_eq!(places.pieces(10..13).len(), 1);
        (10..13).for_each(|page| places.left(page));
        (20..24).for_each(|page| places.came(page));
        assert_eq!(places.pieces(20..24), [20..21, 21..22, 22..23, 23..24]);
    }

    #[test]
    fn the_oldest_of_too_many_are_put_back_and_used_in_order_after_the_others() {
        let mut frames = Frames::new(100, 31, 0);
        let all = take(&mut frames, 101);
        give(&mut frames, &all);
        let again = take(&mut frames, 102);
        assert_eq!(again[..2], [100, 99]);
        assert_eq!(again[75..78], [0, 1, 2]);
        assert_eq!(again[101], 101);
    }

    #[test]
    fn where_pages_go_in_reverse_fifteen_lie_together_and_the_oldest_are_put_back() {
        let mut frames = Frames::new(887, 31, 0).letting_go_in_reverse(true);
        let all = take(&mut frames, 4096);
        give(&mut frames, &all);
        // A batch was left by the last of the drains, and 536 pages came after that.
        let again = take(&mut frames, 4096);
        assert_eq!(again[..3], [4095, 4080, 4081]);
        assert_eq!(again[14..18], [4093, 4094, 4065, 4066]);
        assert_eq!(again[31 + 536..][..3], [0, 1, 2]);
    }

    #[test]
    fn the_end_of_a_task_that_let_many_go_puts_all_back() {
        let mut frames = Frames::new(1000, 31, 0);
        let all = take(&mut frames, 40);
        give(&mut frames, &[3, 1, 2]);
        frames.task_ended();
        assert_eq!(take(&mut frames, 3), [2, 1, 3]);
        give(&mut frames, &all);
        frames.task_ended();
        assert_eq!(take(&mut frames, 41), (0..41).collect::<Vec<u32>>());
    }
}
