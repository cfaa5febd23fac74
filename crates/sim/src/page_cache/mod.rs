//! The page cache: what of a file is in memory, what is read ahead, who may dirty more.
//!
//! Each file here is one idea and pure: none of them knows of tasks, time or devices; the calls
//! that read and write use them in virtual time.

pub mod lru;
pub mod pages;
pub mod readahead;
