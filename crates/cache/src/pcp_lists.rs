//! Pages that a core has at hand: they are taken from the free ones some at a time, so that they
//! are not free any more, and not used yet. What may be dirty is a part of what is free and cached,
//! so it goes up with every page that is cached and falls when the core takes new ones.
//!
//! Pages of files and those for the kernel's structures are kept apart.
//!
// observed on 6.12.117 by mm_page_alloc_zone_locked and global_dirty_state while dd and fio write
// files in guests of 128 MiB to 4 GiB

use crate::Rules;
use guest::{BootMemory, Left, LeftBehind};

/// Pages of memory for each page of a batch, and the most of them.
const BATCH_SHARE: u64 = 1024;
const BATCH_MOST: u64 = 256;
/// Buffers that are described in one page: what is written has one for each block (measured).
const BUFFERS_PER_PAGE: u64 = 39;
/// Pages whose places are kept in one page (measured, with the descriptions above: /proc/vmstat).
const PLACES_PER_PAGE: u64 = 448;

/// The pages at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcpLists {
    /// How many are taken at first.
    batch: u64,
    /// The machine has little memory.
    is_little: bool,
    /// How often that was doubled, and how often it may be.
    doubled: u32,
    most: u32,
    /// Those for files.
    files: u64,
    /// Those for structures, and those that hold some.
    structures: u64,
    /// Those for whatever else.
    others: u64,
    /// Dirty pages have descriptions of their blocks, but on XFS.
    /// Observed on 6.12: /proc/slabinfo.
    describes: bool,
    /// Pages with a description of their block.
    described: u64,
}

/// How many pages a core of a machine with so many gets at a time.
pub(crate) fn batch_of(managed: u64) -> u64 {
    let quarter = (managed / BATCH_SHARE).min(BATCH_MOST) / 4;
    (1 << (quarter + quarter / 2).max(2).ilog2()) - 1
}

impl PcpLists {
    /// A core of a machine with so many pages.
    pub fn new(rules: &Rules, guest: &BootMemory, managed: u64) -> PcpLists {
        let batch = batch_of(managed);
        let mut pcp_lists = PcpLists {
            batch,
            is_little: batch < guest.much_memory,
            doubled: 0,
            most: rules.doublings,
            files: 0,
            structures: 0,
            others: 0,
            describes: true,
            described: 0,
        };
        pcp_lists.leave(guest.left_by_boot());
        pcp_lists
    }

    /// A core that keeps none: each page is taken from the free ones when it is needed.
    pub fn none() -> PcpLists {
        PcpLists {
            batch: 1,
            is_little: false,
            doubled: 0,
            most: 0,
            files: 0,
            structures: 0,
            others: 0,
            describes: true,
            described: 0,
        }
    }

    /// A file system was mounted: whether its pages have descriptions of their blocks, and what
    /// is left for whatever else on a machine with more than little memory.
    pub fn note_mount(&mut self, has_buffers: bool, others: u64) {
        self.describes = has_buffers;
        if self.most > 0 && !self.is_little {
            self.others = others;
        }
    }

    /// A program begins that needs much memory itself, and leaves other pages behind.
    pub fn leave(&mut self, left: LeftBehind) {
        if self.most > 0 {
            let Left { files, doubled, structures, others } =
                if self.is_little { left.little } else { left.much };
            (self.files, self.doubled, self.others) = (files, doubled, others);
            if self.described == 0 {
                self.structures = structures;
            }
        }
    }

    /// So many pages of files come.
    pub fn came(&mut self, pages: u64) {
        let mut wanted = pages;
        while wanted > self.files {
            wanted -= self.files;
            self.files = self.take();
        }
        self.files -= wanted;
    }

    /// A page of a file gets a description of its block.
    pub fn describe(&mut self) {
        if self.describes {
            self.described += 1;
            if self.described.div_ceil(BUFFERS_PER_PAGE) > self.structures {
                self.structures += self.take();
            }
        }
    }

    /// Pages have left memory; so many have not.
    pub fn forget(&mut self, cached: u64) {
        self.described = self.described.min(cached);
        // What is let go is free again when there is much of it.
        let most = self.described / BUFFERS_PER_PAGE + 2 * (self.batch << self.most);
        self.structures = self.structures.min(most);
    }

    /// Pages that are neither free nor in files.
    pub fn pages(&self) -> u64 {
        self.files + self.structures + self.others + self.described / PLACES_PER_PAGE
    }

    fn take(&mut self) -> u64 {
        let pages = self.batch << self.doubled;
        self.doubled = (self.doubled + 1).min(self.most);
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{Kernel, Version};

    fn pcp_lists(managed: u64) -> PcpLists {
        let rules = Rules::of(Kernel::of(Version::V6_12));
        PcpLists::new(&rules, &guest::Profile::uml().memory, managed)
    }

    fn batches(managed: u64, pages: u64) -> Vec<u64> {
        let mut pcp_lists = pcp_lists(managed);
        let mut taken = Vec::new();
        for _ in 0..pages {
            let before = pcp_lists.pages();
            pcp_lists.came(1);
            if pcp_lists.pages() + 1 > before {
                taken.push(pcp_lists.pages() + 1 - before);
            }
        }
        taken
    }

    #[test]
    fn a_core_takes_twice_as_many_each_time_up_to_thirty_two_batches() {
        assert_eq!(batches(46_635, 2000), [15, 30, 60, 120, 240, 480, 480, 480]);
        assert_eq!(batches(256_011, 1200), [63, 126, 252, 504, 1008]);
    }

    #[test]
    fn batches_are_those_of_guests() {
        let batch = |managed| pcp_lists(managed).batch;
        // Measured: batch and managed of zoneinfo.
        let guests = [(30_555, 7), (46_635, 15), (127_179, 31), (256_011, 63), (1_029_002, 63)];
        for (managed, expected) in guests {
            assert_eq!(batch(managed), expected, "{managed}");
        }
    }

    #[test]
    fn structures_are_taken_before_they_are_needed() {
        let mut pcp_lists = pcp_lists(46_635);
        let before = pcp_lists.pages();
        (0..67 * 39).for_each(|_| pcp_lists.describe());
        assert_eq!(pcp_lists.pages(), before + 5);
        pcp_lists.describe();
        assert_eq!(pcp_lists.pages(), before + 5 + 15);
        pcp_lists.forget(0);
        assert_eq!(pcp_lists.pages(), before + 15);
    }
}
