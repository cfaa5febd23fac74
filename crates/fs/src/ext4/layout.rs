//! Where a fresh ext4 keeps what it knows of itself: the places that mke2fs chooses.
//!
//! Groups of 32,768 blocks; sixteen of them are a unit whose bitmaps and inode tables lie together
//! in the first; descriptors, with room to grow, behind the superblock and its copies; the journal
//! in the middle of the disk (rules ext4-layout). Held against `dumpe2fs` on the disks of all
//! models.
//!
//! Leaves out: other block sizes, other features, disks of less than two groups.

use std::ops::Range;

/// Bytes of a block.
pub const BLOCK: u64 = 4096;
/// Blocks of a group: as many as a bitmap of one block has bits.
pub const GROUP: u64 = 8 * BLOCK;
/// Groups of a unit (flex_bg).
pub const UNIT: u64 = 16;
/// Bytes of a group's descriptor (64bit).
const DESCRIPTOR: u64 = 64;
/// Bytes of an inode, and bytes of space that one is made for.
const INODE: u64 = 256;
const BYTES_PER_INODE: u64 = 16_384;
/// Inodes of a block of the table.
const INODES_PER_BLOCK: u64 = BLOCK / INODE;
/// A file system can grow to 2^32 blocks, and at most 1024-fold.
const MOST_BLOCKS: u64 = 1 << 32;
const GROWTH: u64 = 1024;

/// The first inode that a user's file gets, but for one: `lost+found`.
pub const FIRST_INODE: u64 = 12;
/// The root directory.
pub const ROOT_INODE: u64 = 2;

/// The places of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Its blocks.
    pub blocks: u64,
    /// Inodes of each group.
    pub inodes_per_group: u64,
    /// Blocks of the journal, its superblock included.
    pub journal: Range<u64>,
    descriptors: u64,
    reserved: u64,
}

impl Layout {
    /// What mke2fs makes of a disk of so many bytes.
    pub fn new(bytes: u64) -> Layout {
        let blocks = bytes / BLOCK;
        let groups = blocks.div_ceil(GROUP).max(1);
        let descriptors = (groups * DESCRIPTOR).div_ceil(BLOCK);
        let grown = (blocks * GROWTH).min(MOST_BLOCKS).div_ceil(GROUP) * DESCRIPTOR;
        let reserved = grown.div_ceil(BLOCK).saturating_sub(descriptors).min(GROWTH);
        let wanted = (blocks * BLOCK / BYTES_PER_INODE).div_ceil(groups);
        let inodes_per_group = wanted.next_multiple_of(INODES_PER_BLOCK);
        let mut layout = Layout { blocks, inodes_per_group, journal: 0..0, descriptors, reserved };
        let start = layout.journal_group() * GROUP;
        layout.journal = start..start + journal_blocks(blocks);
        layout
    }

    /// How many groups there are.
    pub fn groups(&self) -> u64 {
        self.blocks.div_ceil(GROUP)
    }

    /// The superblock.
    pub fn superblock(&self) -> u64 {
        0
    }

    /// The block with the descriptor of a group.
    pub fn descriptor(&self, group: u64) -> u64 {
        1 + group * DESCRIPTOR / BLOCK
    }

    /// The bitmap of a group's blocks.
    pub fn block_bitmap(&self, group: u64) -> u64 {
        self.unit_start(group) + group % UNIT
    }

    /// The bitmap of a group's inodes.
    pub fn inode_bitmap(&self, group: u64) -> u64 {
        self.unit_start(group) + self.unit_groups(group) + group % UNIT
    }

    /// The group of an inode.
    pub fn group_of_inode(&self, inode: u64) -> u64 {
        (inode - 1) / self.inodes_per_group
    }

    /// The first inode of a group that a user's file gets.
    pub fn first_inode(&self, group: u64) -> u64 {
        FIRST_INODE.max(group * self.inodes_per_group + 1)
    }

    /// Whether no inode of its group is used before this one, so that its bitmap is not read.
    pub fn is_first_of_group(&self, inode: u64) -> bool {
        let group = self.group_of_inode(inode);
        group > 0 && inode == self.first_inode(group)
    }

    /// The block of the inode table that holds an inode.
    pub fn table_block(&self, inode: u64) -> u64 {
        let group = self.group_of_inode(inode);
        let index = (inode - 1) % self.inodes_per_group;
        self.table(group) + index / INODES_PER_BLOCK
    }

    /// Whether mounting brings a block of metadata to memory: the superblock, descriptors, bitmaps
    /// of blocks, and the inode of the root with its neighbours.
    // observed on 6.12: mm_filemap_add_to_page_cache of others only, when files are made
    pub fn is_read_at_mount(&self, block: u64) -> bool {
        let unit = self.unit_start(block / GROUP);
        let bitmaps = unit..unit + self.unit_groups(block / GROUP);
        block <= self.table_block(1) || bitmaps.contains(&block)
    }

    /// The only block of the root directory.
    pub fn root_directory(&self) -> u64 {
        self.table(0) + self.unit_groups(0) * self.table_blocks()
    }

    /// The first block of a group that is not used from the start. In the first one that are also
    /// the root directory, the four blocks of lost+found and one of the inode for growing.
    pub fn first_free(&self, group: u64) -> u64 {
        let start = self.after_copy(group);
        let first = group.is_multiple_of(UNIT);
        let own = if first { self.unit_groups(group) * (2 + self.table_blocks()) } else { 0 };
        let files = if group == 0 { 1 + 4 + 1 } else { 0 };
        start + own + files
    }

    /// The end of a group.
    pub fn end(&self, group: u64) -> u64 {
        ((group + 1) * GROUP).min(self.blocks)
    }

    fn table_blocks(&self) -> u64 {
        self.inodes_per_group / INODES_PER_BLOCK
    }

    fn table(&self, group: u64) -> u64 {
        let unit = self.unit_groups(group);
        self.unit_start(group) + 2 * unit + group % UNIT * self.table_blocks()
    }

    /// Groups of the unit of a group: the last unit may have fewer.
    fn unit_groups(&self, group: u64) -> u64 {
        (self.groups() - group / UNIT * UNIT).min(UNIT)
    }

    /// Where the bitmaps of a unit begin.
    fn unit_start(&self, group: u64) -> u64 {
        self.after_copy(group / UNIT * UNIT)
    }

    /// The block behind the copy of superblock and descriptors, if a group has one.
    fn after_copy(&self, group: u64) -> u64 {
        let copy = if has_copy(group) { 1 + self.descriptors + self.reserved } else { 0 };
        group * GROUP + copy
    }

    /// The block that says where the journal lies, if that is more than its inode has room for:
    /// four pieces of a group each. It lies before the journal (observed: mke2fs 1.47).
    pub fn journal_map(&self) -> Option<u64> {
        let length = self.journal.end - self.journal.start;
        (length > 4 * GROUP).then_some(self.journal.start - 1)
    }

    /// The group in which the journal begins.
    fn journal_group(&self) -> u64 {
        let middle = self.blocks / 2 / GROUP;
        match middle >= UNIT {
            true => middle / UNIT * UNIT + 1,
            false => middle,
        }
    }
}

/// Whether a group begins with a copy of the superblock (sparse_super).
fn has_copy(group: u64) -> bool {
    let is_power = |base: u64| {
        let mut power = base;
        while power < group {
            power *= base;
        }
        power == group
    };
    group <= 1 || [3, 5, 7].into_iter().any(is_power)
}

/// Blocks of the journal by the size of the file system (observed: mke2fs 1.47).
fn journal_blocks(blocks: u64) -> u64 {
    const SIZES: [(u64, u64); 8] = [
        (32_768, 1024),
        (262_144, 4096),
        (524_288, 8192),
        (4_194_304, 16_384),
        (8_388_608, 32_768),
        (16_777_216, 65_536),
        (33_554_432, 131_072),
        (u64::MAX, 262_144),
    ];
    SIZES.iter().find(|(limit, _)| blocks < *limit).map_or(0, |(_, size)| *size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_of_40_gib_is_laid_out_as_was_observed() {
        let layout = Layout::new(40 << 30);
        assert_eq!(layout.inodes_per_group, 8192);
        assert_eq!(layout.journal, 5_275_648..5_275_648 + 65_536);
        assert_eq!(layout.block_bitmap(1) * 8, 8248);
        assert_eq!(layout.inode_bitmap(0) * 8, 8368);
        assert_eq!(layout.table_block(FIRST_INODE) * 8, 8496);
        assert_eq!(layout.root_directory() * 8, 74_032);
        assert_eq!(layout.first_free(1), 33_798);
        assert_eq!(layout.first_free(16), 16 * GROUP + 8224);
    }

    #[test]
    fn the_journal_lies_where_mke2fs_puts_it() {
        // Bytes; first block and blocks of the journal; inodes of a group.
        let seen = [
            (2_147_483_648, 262_144, 16_384, 8192),
            (9_104_998_400, 1_081_344, 16_384, 8176),
            (107_374_182_400, 13_139_968, 131_072, 8192),
            (137_438_953_472, 16_809_984, 262_144, 8192),
            (256_060_514_304, 30_965_760, 262_144, 8192),
            (500_060_446_720, 60_850_176, 262_144, 8192),
            (1_000_204_886_016, 121_667_584, 262_144, 8192),
        ];
        for (bytes, start, length, inodes) in seen {
            let layout = Layout::new(bytes);
            assert_eq!(layout.journal, start..start + length, "{bytes}");
            assert_eq!(layout.inodes_per_group, inodes, "{bytes}");
            let map = (length == 262_144).then_some(start - 1);
            assert_eq!(layout.journal_map(), map, "{bytes}");
        }
        assert_eq!(Layout::new(2_147_483_648).table_block(FIRST_INODE) * 8, 2312);
        assert_eq!(Layout::new(1_000_204_886_016).inode_bitmap(0), 1158);
    }
}
