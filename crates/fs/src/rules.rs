//! What changed in file systems over the years. The code asks for a field and never for a version.

use block::changes::{Table, change};
use block::{Flags, Kernel, Version};

/// The rules of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Flags of direct reads.
    pub direct_read: Flags,
    /// Bios of direct writes that must be durable carry FUA where the disk has it.
    pub direct_fua: bool,
    /// The first asynchronous direct request after a mount starts workers, and its task waits until
    /// they are there. Observed in 6.1, 6.12 and 7.3.4, with libaio and io_uring, reading and
    /// writing.
    pub starts_direct_workers: bool,
    /// Who had a thread started for these workers too late has it stopped, and waits for that.
    /// Observed of four processes on 6.12.117 and 7.3.4; on 6.1.192 they go on in turn.
    pub stops_spare_workers: bool,
    /// New blocks are unwritten until their data are on the disk (ext4: dioread_nolock).
    pub unwritten_first: bool,
    /// Pieces of a file of ext4 that follow each other on the disk join while they are unwritten.
    /// Observed: on 6.12 five of them need a leaf, on 7.3.4 they do not.
    pub unwritten_join: bool,
    /// A part of blocks of ext4 that were set aside becomes an extent of its own only when its data
    /// are on the disk, not before they are submitted. Observed: on 7.3.4, by what commits hold.
    pub singles_out_late: bool,
    /// Where nothing rotates, large requests of ext4 go into the group that has been known longest.
    /// The last of each 128 groups are known from the beginning, or the last of all where there
    /// are fewer. Observed on 6.1, on disks of 30 to 8,000 groups (`mb_structs_summary` and
    /// ext4_mballoc_alloc), and not on 6.12.
    pub goes_by_known: bool,
    /// A time of a file of XFS becomes that at which it was found to be old, even if that was
    /// before waiting for the file's map, so that the next one finds it old again. Observed by
    /// xfs_ilock of xfs_vn_update_time while four tasks write a file: on 6.1.192, not on 6.12.117.
    pub sets_time_asked: bool,
    /// Flags of the bios of ext4's journal.
    pub journal_flags: Flags,
    /// A transaction of ext4 may fill one part of so many of the log.
    pub transactions_of_log: u64,
    /// Flags of the bios of XFS's log.
    pub log_flags: Flags,
    /// Who forces the log of XFS for a file keeps its map as it is meanwhile. Observed on 6.12; not
    /// on 7.3.4, where of asynchronous writes that must be durable each is done when it is.
    pub force_keeps_map: bool,
    /// fdatasync of XFS waits for the last change of where the data are, and for no later one.
    /// Observed on 7.3.4: what `sync` has logged is not logged again, as it is on 6.12.
    pub datasync_by_change: bool,
    /// Which pages of a file of XFS are written before it becomes shorter.
    pub before_cut: BeforeCut,
    /// When room beyond the end of a file of XFS stays though the file is closed.
    pub keeps_room: KeepsRoom,
    /// Every buffer of a checkpoint of XFS flushes the disk's cache and is durable by itself.
    pub each_is_durable: bool,
}

/// Which pages of a file of XFS are written before it becomes shorter, as the disk would know of
/// its new size and not of their data. Observed where dd cuts off a file that was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforeCut {
    /// That in which the file is going to end. Observed on 6.1.
    Last,
    /// Those from the size that is on the disk on. Observed on 6.12 and 7.3.
    Unknown,
}

/// When room beyond the end of a file of XFS stays though the file is closed: not if it was made
/// shorter before and not synced since. Observed by xfs_itruncate_extents_start of dd, which wrote
/// 22 files three times each in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepsRoom {
    /// When it was closed before with blocks that had no place yet. Observed on 6.1.
    OnceWritten,
    /// When some of it went as the file was closed before. Observed on 6.12 and 7.3.
    OnceGiven,
}

impl Rules {
    /// The rules of a kernel. Read in 4.19 and 6.18, observed in 6.12; everything between is held
    /// to be as 4.19.
    pub fn of(kernel: &Kernel) -> Rules {
        let recent = kernel.version >= Version::V6_1;
        let idle = if recent { Flags::IDLE } else { Flags::NONE };
        let journal = if recent { Flags::META.with(idle) } else { Flags::NONE };
        Rules {
            direct_read: match kernel.version >= Version::V6_18 {
                true => Flags::SYNC.with(Flags::IDLE),
                false => Flags::NONE,
            },
            direct_fua: recent,
            starts_direct_workers: recent,
            stops_spare_workers: kernel.version >= Version::V6_12,
            unwritten_first: recent,
            unwritten_join: kernel.version >= Version::V7_3,
            singles_out_late: kernel.version >= Version::V7_3,
            goes_by_known: recent && kernel.version < Version::V6_12,
            sets_time_asked: kernel.version == Version::V6_1,
            journal_flags: Flags::SYNC.with(journal),
            // The third part is read in 6.18, and assumed for 6.12.
            transactions_of_log: if recent { 3 } else { 4 },
            log_flags: Flags::SYNC.with(Flags::META).with(idle),
            force_keeps_map: kernel.version < Version::V7_3,
            datasync_by_change: kernel.version >= Version::V7_3,
            before_cut: match kernel.version >= Version::V6_12 {
                true => BeforeCut::Unknown,
                false => BeforeCut::Last,
            },
            keeps_room: match kernel.version >= Version::V6_12 {
                true => KeepsRoom::OnceGiven,
                false => KeepsRoom::OnceWritten,
            },
            each_is_durable: !recent,
        }
    }
}

/// What changed between the kernels that judge.
pub static CHANGES: Table = Table {
    about: "file systems",
    shows: |kernel| format!("{:#?}", Rules::of(kernel)),
    rows: &[
        change("direct_read", "flags of direct reads of files: none, or SYNC and IDLE (3)", ALL),
        change("singles_out_late", "a part of unwritten blocks becomes an extent late", LAST),
        change("force_keeps_map", "who forces the log of XFS keeps the file's map", NEWER),
        change("datasync_by_change", "fdatasync of XFS waits for no later change", LAST),
        change("stops_spare_workers", "workers that came too late are waited for", OLDER),
        change("goes_by_known", "ext4's large requests go into groups that are known", OLDER),
        change(
            "sets_time_asked",
            "a time of XFS may become one before the wait for the map",
            OLDER,
        ),
        change("before_cut", "pages of XFS that are written before a file is cut off", OLDER),
        change("keeps_room", "room beyond the end of a file of XFS goes once, if it goes", OLDER),
        change("unwritten_join", "unwritten pieces of a file of ext4 join", NEWER),
    ],
};

const ALL: &[Version] = &[Version::V6_1, Version::V6_12, Version::V6_18, Version::V7_3];
const OLDER: &[Version] = &[Version::V6_1, Version::V6_12];
const LAST: &[Version] = &[Version::V7_3];
const NEWER: &[Version] = &[Version::V6_12, Version::V7_3];
