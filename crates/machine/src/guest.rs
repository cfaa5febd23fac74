//! What was observed of one guest and holds for no other machine of itself.

use base::{Bytes, Duration};
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
    /// Up to this size of a disk ext4 is small in memory.
    pub small_disk: Bytes,
    /// Pieces of nodes of a file that stay in memory when it is let go, on ext4 on a small disk.
    pub pieces_kept_by_small_ext4: u64,
    /// The same on ext4 on a larger disk.
    pub pieces_kept_by_ext4: u64,
    /// The same on XFS.
    pub pieces_kept_by_xfs: u64,
    /// Pages that mounting ext4 leaves for whatever else, on a machine with more than little memory.
    pub pages_left_by_ext4: u64,
    /// Disks from this size on make mounting ext4 wait for tags.
    pub large_disk: Bytes,
    /// How often mounting it there does.
    pub waits_on_large_disk: u32,
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
        // Measured in guests of 512 MiB, with disks of 40 GiB, and of 100 GiB to 1.9 TB.
        small_disk: Bytes(64 << 30),
        pieces_kept_by_small_ext4: 1,
        pieces_kept_by_ext4: 3,
        pieces_kept_by_xfs: 2,
        pages_left_by_ext4: 480,
        large_disk: Bytes(1 << 39),
        // Fitted to which of four that fsync on a disk of 1 TB with 32 tags comes last, once; held
        // against all 395 commands of another run.
        waits_on_large_disk: 2,
    };
}
