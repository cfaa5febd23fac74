//! Where a fresh XFS keeps what it knows of itself: the places that mkfs.xfs chooses.
//!
//! Four allocation groups of one size. Each begins with four sectors (superblock, free space,
//! inodes, free list), the roots of its trees and a few spare blocks; the first also has the first
//! chunk of inodes, the middle one the log (rules xfs-layout). Held against what `mkfs.xfs -N` and
//! `xfs_db` print for the disks of all models.
//!
//! Leaves out: disks beyond 4 TiB, other sizes of blocks, sectors and inodes, stripes.

use std::ops::Range;

/// Sectors of a block.
pub const SECTORS: u64 = 8;
/// Allocation groups.
pub const GROUPS: u64 = 4;
/// Inodes that are made together.
pub const CHUNK: u64 = 64;
/// Inodes that are read and written together.
pub const CLUSTER: u64 = 32;
/// The first inode that a user's file gets: the root directory and two more are before.
pub const FIRST_INODE: u64 = 131;
/// The root directory.
pub const ROOT: u64 = 128;

/// Blocks of a group in front of what is free: headers, roots of trees, the list of spare blocks.
const HEAD: u64 = 10;
/// The log begins in front of the spare blocks.
const BEFORE_LOG: u64 = 6;
/// The first chunk of inodes, as blocks of the first group (observed: mkfs.xfs 6.1).
const FIRST_CHUNK: Range<u64> = 16..24;
/// The log has a part of the disk, at least and at most so many blocks.
const LOG_PART: u64 = 2048;
const LEAST_LOG: u64 = 16_384;
const MOST_LOG: u64 = 524_288;

/// Half of the records that a leaf of a tree has room for: of shared blocks (12 bytes), of free
/// inodes (16), and of other blocks of a tree (8). A block has 56 bytes of head.
const SHARED_LEAF: u64 = (4096 - 56) / 12 / 2;
const INODES_LEAF: u64 = (4096 - 56) / 16 / 2;
const NODE: u64 = (4096 - 56) / 8 / 2;

/// The places of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Its blocks.
    pub blocks: u64,
    /// Blocks of each group but perhaps the last.
    pub group_blocks: u64,
}

/// Something of a group that is read and logged by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// How much is free, and of which blocks trees have their roots.
    FreeSpace,
    /// The same of inodes.
    Inodes,
    /// Blocks that trees may grow into.
    FreeList,
    /// What is free, by place.
    ByPlace,
    /// The same, by size.
    BySize,
    /// Chunks of inodes.
    Chunks,
    /// Those of them that have free ones.
    FreeChunks,
}

/// What changes when blocks are taken or given back.
pub(crate) const FREE_SPACE: [Part; 3] = [Part::FreeSpace, Part::BySize, Part::ByPlace];

impl Layout {
    /// What mkfs.xfs makes of a disk of so many bytes.
    pub fn new(bytes: u64) -> Layout {
        let blocks = bytes / 4096;
        Layout { blocks, group_blocks: blocks.div_ceil(GROUPS) }
    }

    /// The log, as sectors of the disk.
    pub fn log(&self) -> Range<u64> {
        let blocks = self.log_blocks();
        blocks.start * SECTORS..blocks.end * SECTORS
    }

    /// First sector and sectors of a part of a group.
    pub fn part(&self, group: u64, part: Part) -> Range<u64> {
        let start = group * self.group_blocks * SECTORS;
        let block = |number: u64| start + number * SECTORS..start + (number + 1) * SECTORS;
        match part {
            Part::FreeSpace => start + 1..start + 2,
            Part::Inodes => start + 2..start + 3,
            Part::FreeList => start + 3..start + 4,
            Part::ByPlace => block(1),
            Part::BySize => block(2),
            Part::Chunks => block(3),
            Part::FreeChunks => block(4),
        }
    }

    /// The group of an inode, which has the number of its sector.
    // Divergence: in the kernel numbers of other groups begin at a power of two.
    pub fn group_of_inode(&self, inode: u64) -> u64 {
        inode / (self.group_blocks * SECTORS)
    }

    /// Sectors of the inodes that are read and written together with one.
    pub fn cluster(&self, inode: u64) -> Range<u64> {
        let start = inode / CLUSTER * CLUSTER;
        start..start + CLUSTER
    }

    /// The blocks of a group.
    pub fn group(&self, group: u64) -> Range<u64> {
        let start = group * self.group_blocks;
        start..(start + self.group_blocks).min(self.blocks)
    }

    /// What is used from the start in front of what is free in a group, and perhaps in the midst of
    /// it.
    pub fn used(&self, group: u64) -> [Range<u64>; 2] {
        let start = group * self.group_blocks;
        let log = self.log_blocks();
        if self.group(group).contains(&log.start) {
            return [start..log.start, log.start..log.end + HEAD - BEFORE_LOG];
        }
        [start..start + HEAD, if group == 0 { FIRST_CHUNK } else { start..start }]
    }

    /// Blocks of a group that are kept free for two trees that may grow: of shared blocks, with a
    /// record for each block, and of free inodes, with one for eight blocks; each leaf half full.
    /// And two beside.
    // Fitted to what statfs(2) says is free of a fresh one of 400 MiB to 2 GiB; held against others
    // below.
    pub fn held(&self, group: u64) -> u64 {
        let whole = self.group(group);
        let log = self.log_blocks();
        let of_log = if whole.contains(&log.start) { log.end - log.start } else { 0 };
        let blocks = whole.end - whole.start - of_log;
        tree(blocks, SHARED_LEAF) + tree(blocks / 8, INODES_LEAF) + 2
    }

    /// Blocks that files do not get, so that what frees some always can: a twentieth, but no more
    /// than 32 MiB (as `held`).
    pub fn pool(&self) -> u64 {
        (self.blocks / 20).min(8192)
    }

    fn log_blocks(&self) -> Range<u64> {
        let start = GROUPS / 2 * self.group_blocks + BEFORE_LOG;
        start..start + (self.blocks / LOG_PART).clamp(LEAST_LOG, MOST_LOG)
    }
}

/// Blocks of a tree of so many records, if each but the last leaf is half full.
fn tree(records: u64, leaf: u64) -> u64 {
    let (mut level, mut blocks) = (records.div_ceil(leaf), 0);
    loop {
        blocks += level;
        if level <= 1 {
            return blocks;
        }
        level = level.div_ceil(NODE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_free_as_statfs_says() {
        let seen = [
            (100 << 10, 80_230),
            (128 << 10, 107_269),
            (256 << 10, 235_783),
            (512 << 10, 496_100),
            (1 << 20, 1_016_730),
            (10 << 18, 2_578_630),
            (10 << 20, 10_388_121),
            (50 << 20, 52_029_572),
            (256 << 20, 266_425_462),
        ];
        for (blocks, free) in seen {
            let layout = Layout::new(blocks * 4096);
            let space = super::super::space::Space::new(&layout);
            assert_eq!(space.room(), free, "{blocks}");
        }
    }

    #[test]
    fn a_disk_of_40_gib_is_laid_out_as_xfs_db_prints() {
        let layout = Layout::new(40 << 30);
        assert_eq!(layout.group_blocks, 2_621_440);
        assert_eq!(layout.log(), 41_943_088..41_943_088 + 131_072);
        assert_eq!(layout.used(0), [0..10, 16..24]);
        assert_eq!(layout.used(1)[0].end, 2_621_440 + 10);
        assert_eq!(layout.used(2)[1].end, 2 * 2_621_440 + 16_394);
        assert_eq!(layout.part(1, Part::FreeSpace), 20_971_521..20_971_522);
        assert_eq!(layout.part(0, Part::FreeChunks), 32..40);
        assert_eq!(layout.cluster(FIRST_INODE), 128..160);
    }

    #[test]
    fn the_log_is_as_large_as_mkfs_makes_it() {
        // Bytes; blocks of a group, of the log.
        let seen = [
            (2_147_483_648, 131_072, 16_384),
            (9_104_998_400, 555_725, 16_384),
            (137_438_953_472, 8_388_608, 16_384),
            (256_060_514_304, 15_628_694, 30_524),
            (500_107_862_016, 30_524_162, 59_617),
            (1_000_204_886_016, 61_047_662, 119_233),
        ];
        for (bytes, group, log) in seen {
            let layout = Layout::new(bytes);
            assert_eq!(layout.group_blocks, group, "{bytes}");
            assert_eq!((layout.log().end - layout.log().start) / SECTORS, log, "{bytes}");
        }
        assert_eq!(Layout::new(2_147_483_648).log().start, 2_097_200);
    }
}
