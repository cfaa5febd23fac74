//! ext4: where it keeps what it knows of itself, which blocks are free, and the journal that keeps
//! both consistent.
//!
//! * [`layout`]: the places that mke2fs chooses; [`space`]: what is free, by `buddies`.
//! * [`journal`]: transactions, and who waits for which.

mod buddies;
pub mod journal;
pub mod layout;
pub mod space;
