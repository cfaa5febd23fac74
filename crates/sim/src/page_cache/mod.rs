//! The page cache: what of a file is in memory, what is read ahead, who may dirty more.
//!
//! Each file here is one idea and pure: [`readahead`] decides what is read before it is asked for,
//! [`pages`] knows the state of every page of a file, [`frames`] where in memory it lies,
//! [`memory`] how many there may be, [`lru`] which page goes when memory is short, [`limits`] how
//! much may be dirty, [`throttle`] how long who dirties must pause. None of them knows of time or
//! devices. `disk` puts together what reading and writing the disk needs of them, with what
//! `writeback` knows of writing.

pub(crate) mod disk;
pub mod frames;
pub mod limits;
pub mod lru;
pub mod memory;
pub mod pages;
pub mod readahead;
pub mod throttle;
pub(crate) mod writeback;
