//! What was observed of file systems of one guest and holds for no other machine of itself.

use base::Bytes;

/// Facts of a guest. They follow from no documentation, only from looking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
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
    /// Milliseconds for which the first who waits for a file's map lets others be faster.
    pub map_patience: u64,
}

impl Guest {
    /// The guest of this project's world `linux`: Linux 6.12 on one core.
    pub const OBSERVED: Guest = Guest {
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
        // With HZ 250; assumed to be a time, and not a number of ticks, with others.
        map_patience: 4,
    };
}
