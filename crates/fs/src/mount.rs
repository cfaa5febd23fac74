//! Which file system is mounted, and how; what a fresh mount does to memory and to tags.

use base::Bytes;
use cache::page_cache::Mounted;
use guest::Files;

/// Seconds after which a transaction is committed (mount option `commit`).
pub const COMMIT_SECONDS: u64 = 5;

/// Bytes of a buffer of XFS's log (rule xfs-log-3).
pub const LOG_BUFFER: u64 = 32 << 10;

/// What file systems there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// ext4 with its journal.
    Ext4,
    /// XFS with its log.
    Xfs,
}

/// A file system that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// What it is.
    pub format: Format,
    /// The directory below which its files are, such as `/mnt`.
    pub point: String,
    /// Commits and syncs flush the disk's cache (mount option `barrier`).
    pub barrier: bool,
    /// Seconds after which a transaction is committed.
    pub commit_seconds: u64,
    /// Data are on the disk before the commit that makes them a part of a file (`data=ordered`);
    /// otherwise `data=writeback`.
    pub is_ordered: bool,
    /// What replaces the contents of a file is written at once (mount option `auto_da_alloc`).
    pub writes_replaced: bool,
    /// Who reads a file or a directory changes its time of access, as `relatime` has it; otherwise
    /// nobody does (mount option `noatime`).
    pub notes_access: bool,
    /// Bytes of one of the buffers in which XFS's log is written (mount option `logbsize`).
    pub log_buffer: u64,
    /// The control group to which its tasks were moved.
    pub journal_cgroup: String,
}

impl Mount {
    /// What of memory it has to do with on a disk of so many bytes with a scheduler.
    pub fn in_memory(&self, guest: &Files, capacity: Bytes, scheduler: &str) -> Mounted {
        let (rooms, taken, has_buffers, others) = match self.format {
            Format::Ext4 => {
                let taken = guest.nodes_of_schedulers_ext4;
                (&guest.nodes_room_ext4, taken, true, guest.pages_left_by_ext4)
            }
            Format::Xfs => (&guest.nodes_room_xfs, guest.nodes_of_schedulers_xfs, false, 0),
        };
        let nodes_taken = match scheduler {
            "mq-deadline" => taken.0,
            "kyber" => taken.1,
            "bfq" => taken.2,
            _ => 0,
        };
        Mounted { nodes_room: rooms.on(capacity), nodes_taken, has_buffers, others }
    }

    /// How often mounting it on a disk of so many bytes makes a task wait for a tag.
    pub fn waits_for_tags(&self, guest: &Files, capacity: Bytes) -> u32 {
        let waits = self.format == Format::Ext4 && capacity >= guest.large_disk;
        if waits { guest.waits_on_large_disk } else { 0 }
    }
}

impl Default for Mount {
    fn default() -> Mount {
        Mount {
            format: Format::Ext4,
            point: "/mnt".to_string(),
            barrier: true,
            commit_seconds: COMMIT_SECONDS,
            is_ordered: true,
            writes_replaced: true,
            notes_access: true,
            log_buffer: LOG_BUFFER,
            journal_cgroup: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use guest::Profile;

    #[test]
    fn mounting_leaves_nothing_behind_on_a_machine_of_which_nothing_is_known() {
        let large = Bytes(1 << 40);
        for format in [Format::Ext4, Format::Xfs] {
            let mount = Mount { format, ..Mount::default() };
            let profile = Profile::neutral();
            let Mounted { nodes_room, nodes_taken, others, .. } =
                mount.in_memory(&profile.files, large, "bfq");
            let waits = mount.waits_for_tags(&profile.files, large);
            assert_eq!((nodes_room, nodes_taken, others, waits), ([0; 3], 0, 0, 0));
        }
        let files = &Profile::uml().files;
        assert_eq!(Mount::default().waits_for_tags(files, large), 2);
        let on = |format, size: u64, scheduler| {
            let mount = Mount { format, ..Mount::default() };
            let mounted = mount.in_memory(files, Bytes(size << 30), scheduler);
            (mounted.nodes_room, mounted.nodes_taken)
        };
        // The disk nearest in size decides.
        assert_eq!(on(Format::Ext4, 41, "none"), ([1, 8, 2], 0));
        assert_eq!(on(Format::Ext4, 90, "kyber"), ([0, 0, 0], 2));
        assert_eq!(on(Format::Xfs, 900, "bfq"), ([2, 9, 1], 1));
    }
}
