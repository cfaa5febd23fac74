//! What boot and mount leave behind.

use base::{Bytes, Duration};
use params::Accept::{Flag, Rows, Size, Text, Time, Whole, Wholes};
use params::{Accept, Error, Stated, Table};
use std::cmp::Ordering;

/// More pages than any machine has.
const PAGES: Accept = Whole(0, 1 << 40, "pages");
/// Pages of a [`Left`], in the order of its fields.
const LEFT: Accept = Wholes(4, 1 << 20, "pages");
/// The fields of [`Rooms`], in their order.
const ROOMS: Accept = Rows(4, "GiB, nodes, nodes, nodes");
/// Nodes with three schedulers.
const NODES: Accept = Wholes(3, 14, "nodes");
/// The fields of [`Lists`], in their order.
const LISTS: Accept = Wholes(6, 1 << 20, "pages");

params::section! {
    /// How a machine is booted.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Boot in "boot" {
        /// The name of the disk, as the kernel's tasks for it are called; empty: as its transport
        /// has it.
        disk: String = Text,
        /// Whole seconds for which it has been up when jobs begin on a disk without a file system.
        uptime: u64 = Whole(0, 1_000_000, "s"),
        /// The same where a file system is mounted before.
        uptime_mounted: u64 = Whole(0, 1_000_000, "s"),
        /// Ticks from the boot to the mount of XFS, from when on its worker counts.
        ticks_to_mount: u64 = Whole(0, 1_000_000, "ticks"),
        /// Ticks from the boot to when the kernel first looks for late requests of the disk, and of
        /// another one, when jobs begin on a disk without a file system; zero: not yet, or never.
        ticks_to_checks: (u64, u64) = Wholes(2, 1_000_000, "ticks"),
        /// The same where a file system is mounted before.
        ticks_to_checks_mounted: (u64, u64) = Wholes(2, 1_000_000, "ticks"),
        /// For so many ticks after a request the kernel's timer is set that looks for late ones,
        /// if it is not; zero: it never is.
        ticks_to_next_check: u64 = Whole(0, 1_000_000, "ticks"),
        /// Ticks from the boot to when the kernel first looks for old pages of its root, without
        /// and with a file system mounted before the jobs; zero: never.
        ticks_to_root_flush: (u64, u64) = Wholes(2, 1_000_000, "ticks"),
        /// Ticks from the boot to when the kernel is to gather the statistics of control groups
        /// for the first time after jobs begin on a disk without a file system; zero: never.
        ticks_to_statistics: u64 = Whole(0, 1_000_000, "ticks"),
        /// The same on a shallow disk, whose interrupts make the kernel gather them once more while
        /// it boots.
        ticks_to_statistics_shallow: u64 = Whole(0, 1_000_000, "ticks"),
        /// The fewest and the most commands at once that a shallow disk takes.
        shallow: (u64, u64) = Wholes(2, 1_000_000, "commands"),
        /// The same where a file system is mounted before.
        ticks_to_statistics_mounted: u64 = Whole(0, 1_000_000, "ticks"),
        /// For how long it gathers them.
        statistics: Duration = Time(0.0, 1e9),
        /// So much later the timer fires again when it has fired for a sleep without slack that the
        /// clock, which is behind, does not take to be over; zero: it does not fire again.
        timer_fires_again: Duration = Time(0.0, 1e9),
        /// Threads that workers of no core share, from the boot on.
        workers: u64 = Whole(1, 1_000, "threads"),
        /// From the whole second before the end of the preparation to the start of the jobs.
        pause: Duration = Time(0.0, 1e12),
    }
}

params::section! {
    /// What boot and programs leave in memory.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BootMemory in "memory" {
        /// Pages that the kernel's code, data and tables take.
        kernel: u64 = PAGES,
        /// Pages of each 2,048 that it takes besides, as memory grows.
        kernel_share: u64 = Whole(0, 2048, "pages of 2048"),
        /// Pages of what runs before the jobs, without those of files.
        used: u64 = PAGES,
        /// Pages of programs and libraries that are cached.
        programs: u64 = PAGES,
        /// Pages that were used when the kernel first reckoned how much may be dirty.
        used_at_boot: u64 = PAGES,
        /// Pages that a core gets at a time, at least, on a machine with more than little memory.
        much_memory: u64 = PAGES,
        /// Pages that the boot leaves on a core's lists, with little memory.
        left_by_boot_little: Left = LEFT,
        /// The same with more.
        left_by_boot_much: Left = LEFT,
        /// What a core's lists hold when fio begins, with little memory.
        lists_little: FirstLists = LISTS,
        /// The same where a core gets `much_memory` pages at a time.
        lists_much: FirstLists = LISTS,
        /// The same where it gets more.
        lists_most: FirstLists = LISTS,
        /// Pages of a program's own memory that lie one behind the other, at most.
        together: u64 = PAGES,
        /// The kernel reads ahead into large folios, where it has them.
        large_folios: bool = Flag,
    }
}

impl BootMemory {
    /// Pages that the boot leaves on a core's lists, with a program that needs little memory.
    pub fn left_by_boot(&self) -> LeftBehind {
        LeftBehind { little: self.left_by_boot_little, much: self.left_by_boot_much }
    }

    /// What the lists of a core hold that gets so many pages at a time, when fio begins.
    pub fn lists(&self, batch: u64) -> FirstLists {
        match batch.cmp(&self.much_memory) {
            Ordering::Less => self.lists_little,
            Ordering::Equal => self.lists_much,
            Ordering::Greater => self.lists_most,
        }
    }
}

params::section! {
    /// What file systems do beside their rules.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Files in "files" {
        /// How many nodes of files there is room for when fio lays out its first file on XFS.
        nodes_room_xfs: Rooms = ROOMS,
        /// The same on ext4.
        nodes_room_ext4: Rooms = ROOMS,
        /// How much of that is taken under mq-deadline, kyber and bfq on XFS,
        nodes_of_schedulers_xfs: (u64, u64, u64) = NODES,
        /// and on ext4.
        nodes_of_schedulers_ext4: (u64, u64, u64) = NODES,
        /// Pages that mounting ext4 leaves for whatever else, with more than little memory.
        pages_left_by_ext4: u64 = PAGES,
        /// Disks from this size on make mounting ext4 wait for tags.
        large_disk: Bytes = Size(0.0, 1e18),
        /// How often mounting it there does.
        waits_on_large_disk: u32 = Whole(0, 1024, "waits"),
        /// Milliseconds for which the first who waits for a lock of a file lets others be faster.
        map_patience: u64 = Whole(0, 1_000_000, "ms"),
        /// Milliseconds from the start of the jobs on in which another file system has something
        /// dirty: the first sync(2) sleeps for it before it comes to the disk.
        dirty_elsewhere: u64 = Whole(0, 1_000_000, "ms"),
    }
}

/// What a core has on its lists of pages when files are written for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Pages for files, and how often the batch was doubled of late.
    pub files: u64,
    /// See `files`.
    pub doubled: u32,
    /// Pages for descriptions of blocks.
    pub structures: u64,
    /// Pages for whatever else.
    pub others: u64,
}

/// What a core's lists of pages hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Pages for files.
    pub files: u64,
    /// How often the number was doubled that a core gets at a time.
    pub doubled: u32,
    /// Pages for all else, but for nodes of files: they are put back with the first ones.
    pub foreign: u64,
}

/// How many nodes of files fit into the piece of memory at hand and into the two that are filled
/// next, by the size of the disk in GiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rooms(Vec<(u64, [u64; 3])>);

impl Rooms {
    /// What holds on a disk of so many bytes: what was seen on the one nearest in size.
    pub fn on(&self, disk: Bytes) -> [u64; 3] {
        let nearest = self.0.iter().min_by_key(|(size, _)| size.abs_diff(disk.0 >> 30));
        nearest.map_or([0; 3], |(_, rooms)| *rooms)
    }
}

/// What they hold when fio begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstLists {
    /// Where ext4 is mounted,
    pub on_ext4: Lists,
    /// and elsewhere.
    pub elsewhere: Lists,
}

/// What is left behind on a machine with little memory, of up to some 400 MiB, and on another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftBehind {
    /// With little memory.
    pub little: Left,
    /// Otherwise.
    pub much: Left,
}

/// What a program takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Pages that are not of files.
    pub own: u64,
    /// Its code, and that of its libraries.
    pub files: u64,
}

impl Stated for Left {
    fn read(table: &Table, name: &str) -> Left {
        let [files, doubled, structures, others] = table.wholes(name);
        Left { files, doubled: doubled as u32, structures, others }
    }
}

impl Files {
    /// Refuses rooms that no piece has.
    pub(crate) fn check(table: &Table) -> Result<(), Error> {
        for name in ["files.nodes_room_xfs", "files.nodes_room_ext4"] {
            let is_whole = |it: &f64| it.fract() == 0.0 && *it >= 0.0;
            let fits = |row: &&Vec<f64>| {
                row.iter().all(is_whole) && row[1..].iter().all(|nodes| *nodes <= 14.0)
            };
            if let Some(row) = table.rows(name).iter().find(|row| !fits(row)) {
                let accepted = "rows [GiB, nodes, nodes, nodes] of whole numbers, 14 nodes at most";
                return Err(table.refuse(name, format!("row {row:?}"), accepted));
            }
        }
        Ok(())
    }
}

impl Stated for Rooms {
    fn read(table: &Table, name: &str) -> Rooms {
        let row =
            |row: &Vec<f64>| (row[0] as u64, std::array::from_fn(|piece| row[1 + piece] as u64));
        Rooms(table.rows(name).iter().map(row).collect())
    }
}

impl Stated for FirstLists {
    fn read(table: &Table, name: &str) -> FirstLists {
        let numbers: [u64; 6] = table.wholes(name);
        let lists = |at| {
            let [files, doubled, foreign] = std::array::from_fn(|it| numbers[at + it]);
            Lists { files, doubled: doubled as u32, foreign }
        };
        FirstLists { on_ext4: lists(3), elsewhere: lists(0) }
    }
}

impl Stated for Footprint {
    fn read(table: &Table, name: &str) -> Footprint {
        let [own, files] = table.wholes(name);
        Footprint { own, files }
    }
}
