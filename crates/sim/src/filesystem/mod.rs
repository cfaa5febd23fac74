//! File systems.

mod ext4;

pub use ext4::Creation;
pub(crate) use ext4::{FileSystem, committer, flush};

/// Seconds after which a transaction is committed (mount option `commit`).
pub const COMMIT_SECONDS: u64 = 5;

/// What file systems there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// ext4 with its journal.
    Ext4,
    /// XFS with its log.
    Xfs,
}

/// A file system that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// What it is.
    pub kind: Kind,
    /// The folder below which its files are, such as `/mnt`.
    pub point: String,
    /// Commits and syncs flush the disk's cache (mount option `barrier`).
    pub barrier: bool,
    /// Seconds after which a transaction is committed.
    pub commit_seconds: u64,
    /// Data are on the disk before the commit that makes them a part of a file (`data=ordered`);
    /// otherwise `data=writeback`.
    pub is_ordered: bool,
}

impl Default for Mount {
    fn default() -> Mount {
        Mount {
            kind: Kind::Ext4,
            point: "/mnt".to_string(),
            barrier: true,
            commit_seconds: COMMIT_SECONDS,
            is_ordered: true,
        }
    }
}

