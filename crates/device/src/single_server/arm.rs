//! The arm over a medium that turns: how long it takes until a sector is under the head.

use base::{Duration, Instant, Sector};
use block::command::Facts;
use params::Table;

/// What is fixed about arm and medium.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    /// Sectors of the disk.
    capacity: u64,
    /// Nanoseconds.
    revolution: u64,
    sectors_per_track: u64,
    /// Within so many sectors there is no seek.
    near: u64,
    seek_least: Duration,
    /// What a seek over the whole disk takes beyond that, in nanoseconds.
    seek_root: u64,
    /// A read that begins where the last read ended, no longer ago than this, finds the head there.
    pub streak: Duration,
}

/// Where the head is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    /// The sector behind the last command.
    pub at: u64,
    /// The last read: where and when it ended.
    pub read: Option<(u64, Instant)>,
    /// How far the medium had turned when time began, in nanoseconds.
    pub phase: u64,
}

impl Arm {
    pub fn load(table: &Table, facts: &Facts) -> Arm {
        Arm {
            capacity: facts.capacity.0 / Sector::SIZE,
            revolution: table.time("arm.revolution").as_nanos(),
            sectors_per_track: table.whole("arm.sectors_per_track"),
            near: table.size("arm.near") / Sector::SIZE,
            seek_least: table.time("arm.seek_least"),
            seek_root: table.time("arm.seek_root").as_nanos(),
            streak: table.time("arm.streak"),
        }
    }

    /// Nanoseconds of a revolution.
    pub fn revolution(&self) -> u64 {
        self.revolution
    }

    /// How long the arm moves to a sector.
    pub fn seek(&self, head: &Head, sector: u64) -> Duration {
        let distance = head.at.abs_diff(sector);
        if distance <= self.near {
            return Duration::ZERO;
        }
        let root = u128::from(self.seek_root);
        let squared = root * root * u128::from(distance) / u128::from(self.capacity);
        self.seek_least + Duration::from_nanos(squared.isqrt() as u64)
    }

    /// How long the sector takes to come under the head from a point in time on.
    pub fn wait(&self, head: &Head, now: Instant, sector: u64) -> Duration {
        let turned = (now.as_nanos() + head.phase) % self.revolution;
        let place = sector % self.sectors_per_track * self.revolution / self.sectors_per_track;
        Duration::from_nanos((place + self.revolution - turned) % self.revolution)
    }
}
