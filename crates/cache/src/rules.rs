//! What changed in the page cache over the years. The code asks for a field and never for a
//! version.

use crate::readahead;
use block::changes::{Table, change};
use block::{Kernel, Version};

/// The rules of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What is read ahead.
    pub readahead: readahead::Rules,
    /// The device is told of every page; otherwise of pages that lie together in memory.
    // specification
    pub page_is_segment: bool,
    /// Pages or folios of one bio.
    // rule readahead-14
    pub bio_vecs: u32,
    /// Bios of windows carry RAHEAD.
    // rule readahead-13
    pub says_ahead: bool,
    /// The pages of a bio are let go of from the last to the first.
    // rule readahead-16
    pub releases_backwards: bool,
    /// A core keeps up to an eighth of the memory at hand; otherwise what `low` in /proc/zoneinfo
    /// says.
    // observed: `high` on 6.12.117 when as many are wanted as there may be; on 6.1.192 always
    pub keeps_an_eighth: bool,
    /// Pages are let go some at a time from the last to the first, and a core that has too many at
    /// hand puts back more each time. Observed: on 6.1.192 by mm_page_free and mm_page_pcpu_drain,
    /// on 6.12.117 not.
    pub lets_go_in_reverse: bool,
    /// A core that is alone keeps pages at hand. Observed in guests of one core: on 7.3.4 `count`
    /// and `high` of /proc/zoneinfo are zero; on 6.12.117 they are not.
    pub keeps_pages_alone: bool,
    /// While nothing was written to a disk, at first or of late, whatever is dirty is written when
    /// the flusher wakes. Observed on 6.1.192 and 6.12.117; on 7.3.4 it is not, on files and on a
    /// disk.
    pub unknown_is_much: bool,
    /// The bandwidth is estimated once more 200 ms after the last page was written.
    // observed on 6.1, 6.12 and 7.3; rule writeback-limit-8
    pub estimates_later: bool,
    /// A dirty page that is to go once it is written carries the mark of readahead. Observed on
    /// 6.1.192, 6.12.117 and 7.3.4; of kernels before it is not known.
    pub marks_deactivated: bool,
    /// How often the number of pages doubles that a core takes at a time.
    // observed on 6.12
    // Divergence: what kernels before 6.7 have at hand at first is not known, but little
    pub doublings: u32,
    /// Pages that a writer looks up together.
    // observed on 6.12; specification for those before
    pub batch: usize,
    /// The threshold of a device never falls below an eighth of what is free.
    // rule dirty-limits-5
    pub has_floor: bool,
    /// vm.dirty_ratio, percent.
    // rule dirty-limits-2
    pub dirty_ratio: u64,
    /// vm.dirty_background_ratio, percent.
    // rule dirty-limits-2
    pub background_ratio: u64,
}

impl Rules {
    /// The same on a machine that has no large folios.
    pub fn without_large_folios(self) -> Rules {
        Rules { readahead: self.readahead.without_large_folios(), ..self }
    }

    /// The rules of a kernel.
    pub fn of(kernel: &Kernel) -> Rules {
        let version = kernel.version;
        let (is_old, recent) = (version <= Version::V2_6_32, version >= Version::V6_1);
        let (dirty_ratio, background_ratio) = match version {
            Version::V2_6_28 => (10, 5),
            _ => (20, 10),
        };
        Rules {
            readahead: readahead::Rules::of(version),
            page_is_segment: is_old,
            bio_vecs: if is_old { 1 } else { 256 },
            says_ahead: !is_old,
            releases_backwards: is_old,
            keeps_an_eighth: version >= Version::V6_12,
            lets_go_in_reverse: version == Version::V6_1,
            keeps_pages_alone: version < Version::V7_3,
            unknown_is_much: version < Version::V7_3,
            estimates_later: recent,
            marks_deactivated: recent,
            doublings: if recent { 5 } else { 0 },
            batch: if recent { 31 } else { 15 },
            has_floor: recent,
            dirty_ratio,
            background_ratio,
        }
    }
}

/// What changed between the kernels that judge.
pub static CHANGES: [Table; 2] = [
    Table {
        about: "the page cache",
        // Readahead has a table of its own.
        shows: |kernel| {
            let readahead = readahead::Rules::of(Version::V6_12);
            format!("{:#?}", Rules { readahead, ..Rules::of(kernel) })
        },
        rows: &[
            change("keeps_pages_alone", "a core that is alone keeps pages at hand", NEWER),
            change(
                "unknown_is_much",
                "what is dirty on a disk not written of late goes early",
                NEWER,
            ),
            change("keeps_an_eighth", "a core keeps up to an eighth of the memory at hand", OLDER),
            change("lets_go_in_reverse", "pages are let go in reverse, fifteen at a time", OLDER),
        ],
    },
    Table {
        about: "readahead",
        shows: |kernel| format!("{:#?}", readahead::Rules::of(kernel.version)),
        rows: &[
            change("expects_misses", "a miss where the next window is due goes on with it", OLDER),
            change(
                "passes_full_run",
                "a mark is heeded before as many pages as a window may have",
                OLDER,
            ),
            change("joining", "a window whose first page is wanted is joined by the next", OLDER),
            change("grows_folios", "windows end where large folios do", OLDER),
        ],
    },
];

const NEWER: &[Version] = &[Version::V6_12, Version::V7_3];
const OLDER: &[Version] = &[Version::V6_1, Version::V6_12];
