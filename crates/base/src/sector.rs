//! Positions and amounts on a disk. A sector is 512 bytes, always.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A position on a disk, in units of 512 bytes from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sector(pub u64);

/// An amount of data in units of 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sectors(pub u32);

/// An amount of data, or a position in a file, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Bytes(pub u64);

impl Sector {
    /// Bytes in a sector.
    pub const SIZE: u64 = 512;

    /// The distance between two positions.
    pub const fn distance(self, other: Sector) -> u64 {
        self.0.abs_diff(other.0)
    }

    /// The position in bytes.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0 * Self::SIZE)
    }
}

impl Sectors {
    /// The amount in bytes.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0 as u64 * Sector::SIZE)
    }

    /// Whether this is no data at all (a pure flush).
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add<Sectors> for Sector {
    type Output = Sector;
    fn add(self, rhs: Sectors) -> Sector {
        Sector(self.0 + u64::from(rhs.0))
    }
}

impl Add for Sectors {
    type Output = Sectors;
    fn add(self, rhs: Sectors) -> Sectors {
        Sectors(self.0 + rhs.0)
    }
}

impl AddAssign for Sectors {
    fn add_assign(&mut self, rhs: Sectors) {
        self.0 += rhs.0;
    }
}

impl Sub for Sectors {
    type Output = Sectors;
    fn sub(self, rhs: Sectors) -> Sectors {
        Sectors(self.0 - rhs.0)
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, rhs: Bytes) -> Bytes {
        Bytes(self.0 + rhs.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, rhs: Bytes) {
        self.0 += rhs.0;
    }
}

impl fmt::Display for Sector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Sectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
