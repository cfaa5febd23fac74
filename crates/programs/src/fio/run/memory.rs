//! Memory that fio writes to for the first time: pages that the files before let go are used for it
//! first, so the pages of the next file lie elsewhere.
//!
//! The main process makes files from a buffer as large as a request. The C library keeps what it
//! has given once, but for pieces from a size on, which it gives back at once; from then on it
//! keeps pieces of that size, too.
// observed on 6.12.117: mm_page_alloc with GFP_HIGHUSER_MOVABLE while fio 3.33 makes files in
// requests of 8 to 512 KiB and starts one to six processes

use super::super::job::{Direction, Job};
use super::files::largest_block;
use guest::FioHabits;
use machine::task::Task;

const PAGE: u64 = 4096;

/// What the main process has of memory for its buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heap<'h> {
    /// The habits of its fio.
    pub habits: &'h FioHabits,
    /// Pages that it has written to.
    used: u32,
    /// Pieces from this size on are given back.
    given_back_from: u64,
}

impl<'h> Heap<'h> {
    /// What is left when fio has read its jobs.
    pub fn new(habits: &'h FioHabits) -> Heap<'h> {
        let FioHabits { heap_room, heap_keeps_below, .. } = habits;
        Heap { habits, used: *heap_room, given_back_from: heap_keeps_below.0 }
    }

    /// The buffer for requests of so many bytes; the answer is how many pages go with it.
    pub fn take(&mut self, task: &Task, bytes: u64) -> u32 {
        if bytes >= self.given_back_from {
            // What the library notes of the piece takes a part of one more page.
            let pages = (bytes / PAGE + 1) as u32;
            task.use_memory(pages);
            self.given_back_from = bytes + PAGE;
            return pages;
        }
        let pages = bytes.div_ceil(PAGE) as u32;
        task.use_memory(pages.saturating_sub(self.used));
        self.used = self.used.max(pages);
        0
    }
}

/// Pages of the buffers for a process's requests.
pub(super) fn buffers(job: &Job) -> u32 {
    let of = |direction| largest_block(job, direction).div_ceil(PAGE);
    let largest = of(Direction::Read).max(of(Direction::Write));
    (largest * u64::from(job.queue.depth.max(1))).min(1 << 20) as u32
}
