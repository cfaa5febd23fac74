//! What was observed of one guest and holds for no other machine of itself.

use base::Duration;
use std::borrow::Cow;

/// Facts of a guest: the kernel in virtual time as it is booted and its disk is mounted there. They
/// follow from no documentation, only from looking; another guest needs other values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// The name of the disk, as the kernel's tasks for it are called.
    pub disk: Cow<'static, str>,
    /// Whole seconds for which it has been up when jobs begin on a disk without a file system.
    pub uptime: u64,
    /// The same where a file system is mounted before.
    pub uptime_mounted: u64,
    /// Ticks from the boot to the mount of XFS, from when on its worker counts.
    pub ticks_to_mount: u64,
    /// From the whole second before the end of the preparation to the start of the jobs.
    pub pause: Duration,
    /// What its file systems do when they are mounted, and of maps of files.
    pub files: fs::Guest,
    /// What its boot and its programs leave in memory.
    pub memory: cache::Guest,
}

impl Guest {
    /// The guest of this project's world `linux`: Linux 6.12 on one core.
    pub const OBSERVED: Guest = Guest {
        disk: Cow::Borrowed("vda"),
        uptime: 4,
        uptime_mounted: 12,
        ticks_to_mount: 2,
        // What the guest's script does takes no second.
        pause: Duration::from_secs(2),
        files: fs::Guest::OBSERVED,
        memory: cache::Guest::OBSERVED,
    };
}
