//! The page cache: what of a file is in memory, what is read ahead, who may dirty more.
//!
//! Each file here is one idea and pure: [`readahead`] decides what is read before it is asked for,
//! [`pages`] knows the state of every page of a file, [`frames`] where in memory it lies, [`buddy`]
//! which frames are free, [`memory`] how many there may be, [`pcp_lists`] which are not free any
//! more and not used yet, [`lru`] which page goes when memory is short, `mapped` which ones
//! programs have in their own memory, [`limits`] how much may be dirty, [`throttle`] how long who
//! dirties must pause. None of them knows of time or devices. [`PageCache`] puts together what
//! reading and writing the disk needs of them, with what [`writeback`] knows of writing and
//! [`groups`] of whose it is.
//!
//! [`rules`]: what changed over the years. What was seen of one guest is in its profile
//! ([`guest`]).

#![forbid(unsafe_code)]

pub mod buddy;
pub mod frames;
pub mod groups;
pub mod limits;
pub mod lru;
mod mapped;
pub mod memory;
pub mod nodes;
pub mod page_cache;
pub mod pages;
pub mod pcp_lists;
pub mod readahead;
pub mod rules;
pub mod throttle;
pub mod writeback;

pub use page_cache::{FILE_PAGES, OpenBio, PAGE, PageBio, PageCache};
pub use rules::Rules;
