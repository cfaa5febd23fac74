//! Quantities and containers that the rest of Paternoster is built from.
//!
//! This crate knows nothing of disks. It is `no_std`, has no `unsafe`, uses no floating point,
//! reads no clock and draws no randomness that it was not given: whatever is built on it can be
//! replayed exactly.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod agenda;
pub mod arena;
pub mod fingerprint;
pub mod histogram;
pub mod list;
pub mod nearest;
pub mod page;
pub mod rng;
pub mod sector;
pub mod sector_set;
pub mod time;
pub mod timer_wheel;
pub mod tree_shape;

pub use agenda::{Agenda, Ticket};
pub use arena::{Arena, Id, Side};
pub use fingerprint::Fingerprint;
pub use histogram::Histogram;
pub use list::{Links, List};
pub use nearest::nearest;
pub use rng::Rng;
pub use sector::{Bytes, Sector, Sectors};
pub use sector_set::SectorSet;
pub use time::{Duration, Hz, Instant, Jiffies};
pub use timer_wheel::TimerWheel;
pub use tree_shape::TreeShape;
