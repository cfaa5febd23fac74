//! XFS: where it keeps what it knows of itself, which blocks are free, and the log that keeps both
//! consistent.
//!
//! * [`layout`]: the places that mkfs.xfs chooses; [`space`]: what is free.
//! * [`log`]: what was changed, what is on its way to the log, and what is not in its place yet.

pub mod layout;
pub mod log;
pub mod space;
