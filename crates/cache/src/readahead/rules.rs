//! What changed in readahead over the years.
//!
//! One value for each generation: 2.6.28, 2.6.32, 4.10 to 5.2, 6.12 and 6.18 (rules readahead).
//! The code asks for a field and never for a version.

use block::Version;

/// The rules of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A call that is longer than the readahead may read as much as a request can hold at once.
    pub(super) long_calls_read_more: bool,
    /// The end of a call is remembered as the byte after the last one, not as the last one.
    pub(super) remembers_byte_after: bool,
    /// A miss at the first page always begins anew.
    pub(super) zero_starts_anew: bool,
    /// A miss where the next window is due goes on with it, as if the mark had been there.
    pub(super) expects_misses: bool,
    /// A first window that is no longer than the request is marked in its middle, not at its start.
    pub(super) marks_middle: bool,
    /// What pages cached before a miss mean.
    pub(super) context: ContextReadahead,
    /// Whether a window whose first page is wanted and marked is joined by the next.
    pub(super) joining: Joining,
    /// At somebody else's mark: the rest of the call counts for the size of the window.
    pub(super) adds_request: bool,
    /// At somebody else's mark: a window goes on behind pages in memory, even if they are as many
    /// as a window may have. Otherwise nothing is read then.
    pub(super) passes_full_run: bool,
    /// A window is never smaller than the one before it.
    pub(super) never_shrinks: bool,
    /// Folios grow with the windows, which end where folios do.
    pub(super) grows_folios: bool,
    /// The largest of them has two to the power of this pages (rule readahead-9).
    pub(super) largest_order: u32,
}

/// What pages cached before a miss mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContextReadahead {
    /// Nothing.
    Ignored,
    /// Any run of them tells of somebody who reads in order.
    AnyRun,
    /// A run longer than the request does.
    LongRun,
}

/// Whether a window whose first page is wanted and marked is joined by the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joining {
    Never,
    /// Whatever comes of it.
    Always,
    /// No further than to the maximum, with the mark in its middle.
    Within,
}

impl Rules {
    /// The rules of a kernel.
    pub fn of(version: Version) -> Rules {
        match version {
            Version::V2_6_28 => Rules::OF_2_6_28,
            Version::V2_6_32 => Rules::OF_2_6_32,
            // Read in 4.19.1, recorded on 4.19.79; the others are assumed to be the same.
            Version::V4_10 | Version::V4_19 | Version::V5_1 | Version::V5_2 => Rules::OF_4_19,
            Version::V6_1 => Rules::OF_6_1,
            Version::V6_12 => Rules::OF_6_12,
            // Read in 6.18.35, recorded on 6.18.44; the rest observed on 7.3.4.
            Version::V6_18 | Version::V7_3 => Rules::OF_6_18,
        }
    }

    /// The same on a machine that has no large folios. Observed on 7.3.4: windows end where four
    /// pages would all the same, and the next one does not grow.
    pub fn without_large_folios(self) -> Rules {
        Rules { largest_order: 0, ..self }
    }

    const OF_2_6_28: Rules = Rules {
        long_calls_read_more: false,
        remembers_byte_after: false,
        zero_starts_anew: false,
        expects_misses: true,
        marks_middle: false,
        context: ContextReadahead::Ignored,
        joining: Joining::Never,
        adds_request: false,
        passes_full_run: false,
        never_shrinks: false,
        grows_folios: false,
        // 2 MiB.
        largest_order: 9,
    };

    const OF_2_6_32: Rules = Rules {
        zero_starts_anew: true,
        context: ContextReadahead::AnyRun,
        joining: Joining::Always,
        adds_request: true,
        ..Rules::OF_2_6_28
    };

    const OF_4_19: Rules = Rules {
        long_calls_read_more: true,
        context: ContextReadahead::LongRun,
        joining: Joining::Within,
        ..Rules::OF_2_6_32
    };

    // Observed on 6.1.192: a reader of every other 16 KiB who misses where the next window is due
    // gets it, of 16 pages, and that of 32 behind it; a reader of four marked pages, whose second
    // one gets a window of 32, reads six and one beyond it for the third and fourth. On 6.12.117 he
    // reads nothing for these. What else 6.12 does is assumed.
    const OF_6_1: Rules = Rules {
        expects_misses: true,
        joining: Joining::Within,
        passes_full_run: true,
        ..Rules::OF_6_12
    };

    // Observed on 6.12: as 6.18, but windows of the disk do not end where large folios would.
    const OF_6_12: Rules = Rules { grows_folios: false, ..Rules::OF_6_18 };

    const OF_6_18: Rules = Rules {
        remembers_byte_after: true,
        expects_misses: false,
        marks_middle: true,
        joining: Joining::Never,
        never_shrinks: true,
        grows_folios: true,
        ..Rules::OF_4_19
    };
}
