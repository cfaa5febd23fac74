//! Files as programs see them, and pieces of I/O.

pub use fs::Errno;

use base::{Sector, Sectors};
use block::{Flags, Op, Syscall};

/// The most one call transfers: 2 GiB less a page.
pub(crate) const MOST_BYTES: u64 = 0x7fff_f000;

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// O_DIRECT.
    pub direct: bool,
    /// O_DSYNC.
    pub dsync: bool,
    /// O_SYNC; on a raw disk the same as O_DSYNC.
    pub sync: bool,
    /// O_APPEND: each write begins where the file ends.
    pub append: bool,
}

impl OpenFlags {
    /// O_DIRECT and nothing else.
    pub const fn direct() -> OpenFlags {
        OpenFlags { direct: true, dsync: false, sync: false, append: false }
    }
}

/// An open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    pub(crate) kind: Kind,
    /// Which of the open files of the disk it is.
    pub(crate) number: usize,
    /// How it was opened; may be changed as by fcntl.
    pub flags: OpenFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Disk,
    /// A file of the file system.
    File(usize),
    Zero,
    Null,
}

impl File {
    /// Whether it is the disk.
    pub fn is_disk(&self) -> bool {
        self.kind == Kind::Disk
    }

    /// Whether it has pages in the page cache: the disk, or a file on it.
    pub fn is_cached(&self) -> bool {
        matches!(self.kind, Kind::Disk | Kind::File(_))
    }

    /// Whether its reads and writes should have gone through a page cache.
    pub fn wants_page_cache(&self) -> bool {
        self.is_disk() && !self.flags.direct
    }

    /// The number of the file of the file system that it is, if it is one.
    pub fn index(&self) -> Option<usize> {
        match self.kind {
            Kind::File(index) => Some(index),
            _ => None,
        }
    }
}

/// One piece of I/O, stated as the block layer knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// Where.
    pub sector: Sector,
    /// How much; zero for a pure flush.
    pub sectors: Sectors,
}

impl Transfer {
    /// A flush of the disk's cache (rule flags-5).
    pub const FLUSH: Transfer = Transfer {
        op: Op::Write,
        flags: Flags::PREFLUSH.with(Flags::SYNC),
        sector: Sector(0),
        sectors: Sectors(0),
    };

    /// The system call that a program would make for it.
    pub(crate) fn call(&self) -> Syscall {
        match self.op {
            Op::Discard => Syscall::Discard,
            Op::Read => Syscall::Read,
            Op::Write if self.sectors.is_zero() => Syscall::Sync,
            Op::Write => Syscall::Write,
        }
    }
}
