//! A page of memory is 4 KiB, as on every machine modelled here. Blocks of file systems are as
//! large, but that is theirs.

use crate::sector::{Sector, Sectors};

/// Bytes in a page.
pub const SIZE: u64 = 4096;

/// A page of data.
pub const SECTORS: Sectors = Sectors((SIZE / Sector::SIZE) as u32);
