//! What was seen of one guest and is assumed of all: what its boot and its programs leave in
//! memory, not rules of a kernel.

use crate::pcp_lists::{Left, LeftBehind};

/// Facts of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Pages that the kernel's code, data and tables take.
    // measured on guests of 128 MiB to 4 GiB: /proc/zoneinfo, /proc/vmstat; holds within 100 pages
    pub kernel: u64,
    /// What grows with memory besides: so many pages of so many.
    // measured: as above
    pub kernel_share: (u64, u64),
    /// Pages of what runs before the jobs, without those of files.
    // measured: as above
    pub used: u64,
    /// Pages of programs and libraries that are cached.
    // measured: as above
    pub programs: u64,
    /// Pages that were used when the kernel first reckoned how much may be dirty.
    // measured: `limit` of global_dirty_state in guests of 128 to 512 MiB
    pub used_at_boot: u64,
    /// Pages that a core of a machine with more than little memory gets at a time, at least.
    // observed on 6.12.117 in guests of 128 MiB to 4 GiB
    pub much_memory: u64,
    /// Pages that the boot leaves at hand, and a program that needs little memory itself.
    // observed: as above
    pub left_by_boot: LeftBehind,
    /// Pages at hand that are not for files, which are put back with the first ones.
    // fitted on 6.12 to where the fourth of four files of 16 MiB on XFS lies (hdd-7200-sata); held
    // against parts of one file of 32 MiB on vm-ssd-m4, both with 512 MiB of memory. Divergence:
    // what comes later is not known; with 1 GiB other numbers were seen, such as 3,185
    pub foreign: u64,
}

impl Guest {
    /// A User-Mode Linux guest of 6.12.
    pub const OBSERVED: Guest = Guest {
        kernel: 2_661,
        kernel_share: (3, 2048),
        used: 3_050,
        programs: 1_374,
        used_at_boot: 250,
        much_memory: 31,
        left_by_boot: LeftBehind {
            little: Left { files: 160, doubled: 0, structures: 67, others: 0 },
            much: Left { files: 200, doubled: 0, structures: 44, others: 0 },
        },
        foreign: 2480,
    };
}
