//! File systems as pure machines: what is where on the disk, what is free, and how changes become
//! durable.
//!
//! Nothing here knows a task, a bio or a clock: it counts blocks, sectors and ticks. What a call
//! has to read, to write or to wait for comes out as a value, and who is to be woken as a list.
//! Whoever drives it awaits.
//!
//! * [`FileSystem`]: which one is mounted. [`mod@files`]: what both know of files: names, what is
//!   dirty, what is being written. [`Errno`]: why a call fails.
//! * [`inode`]: a file, its extents and its leaves; [`delayed`]: room for pages without a place;
//!   [`file_lock`]: who may change a file, and where its blocks are.
//! * [`ext4`]: layout, free space, journal. [`xfs`]: layout, free space, log.
//! * [`mount`]: how it is mounted. [`rules`]: what changed over the years.
//!   [`guest`]: what was seen of one guest and is assumed of all.

#![forbid(unsafe_code)]

pub mod delayed;
mod errno;
pub mod ext4;
mod extents;
pub mod file_lock;
mod file_system;
pub mod files;
pub mod inode;
pub mod mount;
pub mod rules;
pub mod xfs;

pub use errno::Errno;
pub use ext4::Ext4;
pub use file_system::FileSystem;
pub use files::{Files, all_pages, key};
pub use mount::{COMMIT_SECONDS, Format, LOG_BUFFER, Mount};
pub use rules::Rules;
pub use xfs::Xfs;
