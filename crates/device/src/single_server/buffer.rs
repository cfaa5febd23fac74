//! The track buffer: after a read the disk reads on at the rate of the medium while nobody asks for
//! anything that lies elsewhere, up to some distance beyond what the host has read.
//!
//! The formula has no memory of that limit: a disk that stood at it for a while has, as soon as the
//! host reads on, everything that it could have read meanwhile. So a stream that was idle begins
//! faster than the medium. It is so in the recordings (h-hddra-cfq-seq1).

use base::{Instant, Sector};
use params::Table;

/// What is fixed about it.
#[derive(Clone, Debug)]
pub(crate) struct Ahead {
    /// So many sectors beyond the last read.
    ahead: u64,
    /// So many sectors are kept.
    kept: u64,
}

/// What the disk has read since it last went to the medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    first: u64,
    /// The end of what the host asked for then, and when that had passed.
    end: u64,
    at: Instant,
    /// How far the host has read.
    asked: u64,
}

impl Ahead {
    pub fn load(table: &Table) -> Ahead {
        Ahead {
            ahead: table.size("buffer.ahead") / Sector::SIZE,
            kept: table.size("buffer.kept") / Sector::SIZE,
        }
    }

    /// What there is after sectors have been read from the medium.
    pub fn filled(&self, first: u64, end: u64, at: Instant) -> Buffer {
        Buffer { first, end, at, asked: end }
    }

    /// Whether a read need not go to the medium anew: what it begins with has been read, or is
    /// reached without anything else being asked for.
    pub fn holds(&self, buffer: &Buffer, first: u64) -> bool {
        let limit = buffer.asked + self.ahead;
        (buffer.first.max(limit.saturating_sub(self.kept))..=limit).contains(&first)
    }

    /// The host reads up to `end`: how many sectors of the medium must have passed since the disk
    /// went there, and since when.
    pub fn ask(&self, buffer: &mut Buffer, end: u64) -> (u64, Instant) {
        buffer.asked = buffer.asked.max(end);
        (end.saturating_sub(buffer.end), buffer.at)
    }
}
