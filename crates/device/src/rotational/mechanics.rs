//! The arm over the turning platters: when a head can be over a sector.
//!
//! The position of the platters follows from the time alone. Moving the arm and selecting another
//! head go on at the same time; a write needs the head to settle better than a read does.

use base::{Duration, Instant};

use super::geometry::Place;
use super::seek::SeekCurve;

/// Differences of angle below this are rounding errors; a sector is some thousand nanoseconds.
const ROUNDING: u64 = 16;

/// What the arm needs besides the seek curve.
#[derive(Clone, Debug)]
pub(crate) struct Mechanics {
    pub revolution: u64,
    pub seek: SeekCurve,
    pub head_switch: u64,
    /// Additional time before a write after a seek, and after a head switch or a step to the
    /// neighbouring cylinder.
    pub write_settle: u64,
    pub write_settle_track: u64,
}

/// Where the arm stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arm {
    pub cylinder: u32,
    pub head: u32,
}

impl Mechanics {
    /// The time until the head is settled on the track of `place`, in nanoseconds.
    pub fn moving(&self, arm: Arm, place: &Place, write: bool) -> u64 {
        let distance = arm.cylinder.abs_diff(place.cylinder);
        let switch = if arm.head == place.head { 0 } else { self.head_switch };
        let (moved, settle) = match distance {
            0 if arm.head == place.head => return 0,
            0 => (switch, self.write_settle_track),
            1 => (self.seek.time(1).max(switch), self.write_settle_track),
            _ => (self.seek.time(distance).max(switch), self.write_settle),
        };
        if write { moved + settle } else { moved }
    }

    /// The time until `angle` comes under the head, when the platters stand at `phase` (which may
    /// be more than a turn).
    pub fn wait(&self, phase: u64, angle: u64) -> u64 {
        let mut phase = phase;
        while phase >= self.revolution {
            phase -= self.revolution;
        }
        let wait = if angle >= phase { angle - phase } else { angle + self.revolution - phase };
        // Positions are rounded to nanoseconds: a head that follows a track from one sector to the
        // next must not miss the beginning of it by a rounding error.
        if self.revolution - wait <= ROUNDING { 0 } else { wait }
    }

    /// When the sector at `angle` next begins to pass under the head, not before `from`.
    pub fn arrival(&self, from: Instant, angle: u64) -> Instant {
        let phase = from.as_nanos() % self.revolution;
        from + Duration::from_nanos(self.wait(phase, angle))
    }

    /// Whether the head, at `at`, is over the piece of track that begins at `angle` and takes
    /// `span` to pass, but not at its beginning.
    pub fn is_inside(&self, at: Instant, angle: u64, span: u64) -> bool {
        let now = at.as_nanos() % self.revolution;
        let turned = if now >= angle { now - angle } else { now + self.revolution - angle };
        turned > ROUNDING && turned < span
    }
}
