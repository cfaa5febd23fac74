//! Where the described files lie: in the manner of ext3, groups of 128 MiB that begin with a table
//! of inodes, files one after the other in the order of inodes, with the blocks that map them among
//! their data.

use super::options::Dump;
use base::Rng;

/// A block of the file system.
pub(super) const BLOCK: u64 = 4096;
/// Blocks of a group, and those of its inode table: 16384 inodes of 128 bytes.
const GROUP_BLOCKS: u64 = 32_768;
const TABLE_BLOCKS: u64 = 512;
/// Inodes in a block of the table.
const INODES_OF_BLOCK: u64 = 32;
const INODES_OF_GROUP: u64 = TABLE_BLOCKS * INODES_OF_BLOCK;
/// Blocks that an inode maps itself, and that a block of pointers does.
const DIRECT: u64 = 12;
const POINTERS: u64 = 1024;

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub length: u64,
    /// Its inode: group, and number there.
    inode: (u64, u64),
    /// Blocks of data and of maps, in the order of the file: first block, how many.
    extents: Vec<(u64, u64)>,
}

/// All files, in the order of inodes.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub files: Vec<Placed>,
    /// The byte behind everything.
    pub end: u64,
    start: u64,
}

/// What the master meets in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A block of pointers, which it reads itself.
    Map(u64),
    /// A block, or the last part of one, which is handed out.
    Data(u64, u64),
}

/// Where the next block goes.
struct Cursor {
    group: u64,
    /// Of the group, from its beginning.
    block: u64,
    inodes: u64,
}

impl Layout {
    /// Places the files of a description, in an order that is drawn.
    pub fn new(dump: &Dump, rng: &mut Rng) -> Layout {
        let mut sizes: Vec<u64> = Vec::new();
        for (count, size) in &dump.population {
            sizes.extend(std::iter::repeat_n(*size, *count as usize));
        }
        for last in (1..sizes.len()).rev() {
            sizes.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let mut cursor = Cursor { group: 0, block: TABLE_BLOCKS, inodes: 0 };
        let mut files: Vec<Placed> = sizes.iter().map(|size| cursor.place(dump, *size)).collect();
        if dump.aged > 0 {
            files
                .chunk_by_mut(|one, two| one.inode.0 == two.inode.0)
                .for_each(|group| age(group, dump.aged, rng));
        }
        let end = dump.start + (cursor.group * GROUP_BLOCKS + cursor.block) * BLOCK;
        Layout { files, end, start: dump.start }
    }

    /// The block of the inode table that the master has to read for a file, unless it read it for
    /// the one before.
    pub fn inode_block(&self, file: usize) -> Option<u64> {
        let block = |file: usize| {
            let (group, number) = self.files[file].inode;
            group * GROUP_BLOCKS + number / INODES_OF_BLOCK
        };
        let is_known = file > 0 && block(file) == block(file - 1);
        (!is_known).then(|| self.start + block(file) * BLOCK)
    }

    /// What the master meets in a file, in its order.
    pub fn pieces(&self, file: usize) -> impl Iterator<Item = Piece> + '_ {
        let Placed { length, extents, .. } = &self.files[file];
        let blocks = extents.iter().flat_map(|(first, count)| *first..first + count);
        let (mut done, mut number) = (0, 0);
        blocks.map(move |block| {
            let at = self.start + block * BLOCK;
            number += 1;
            if is_map(number - 1) {
                return Piece::Map(at);
            }
            let part = BLOCK.min(length - done);
            done += part;
            Piece::Data(at, part)
        })
    }
}

/// Files come and go, and inodes are used again: of a share of them, in percent, the order within
/// the group comes to say nothing of where the data lie.
fn age(group: &mut [Placed], share: u8, rng: &mut Rng) {
    let inodes: Vec<(u64, u64)> = group.iter().map(|file| file.inode).collect();
    let is_aged = |_: &usize| share == 100 || rng.below(100) < u64::from(share);
    let aged: Vec<usize> = (0..group.len()).filter(is_aged).collect();
    for last in (1..aged.len()).rev() {
        group.swap(aged[last], aged[rng.below(last as u64 + 1) as usize]);
    }
    group.iter_mut().zip(inodes).for_each(|(file, inode)| file.inode = inode);
}

/// Whether a block of a file, counted with those that map it, is one of those.
fn is_map(number: u64) -> bool {
    let Some(behind) = number.checked_sub(DIRECT) else { return false };
    let Some(doubly) = behind.checked_sub(POINTERS + 1) else { return behind == 0 };
    // A block of pointers to blocks of pointers, then every 1024 data blocks the next one.
    doubly == 0 || (doubly - 1).is_multiple_of(POINTERS + 1)
}

/// Blocks of a file of so many bytes, with those that map it.
fn blocks_of(length: u64) -> u64 {
    let mut data = length.div_ceil(BLOCK);
    let mut all = 0;
    while data > 0 {
        data -= u64::from(!is_map(all));
        all += 1;
    }
    all
}

impl Cursor {
    fn place(&mut self, dump: &Dump, length: u64) -> Placed {
        if self.inodes == INODES_OF_GROUP {
            self.next_group();
        }
        let inode = (self.group, self.inodes);
        self.inodes += 1;
        let mut left = blocks_of(length);
        let mut extents = Vec::new();
        let most = dump.extent.map_or(u64::MAX, |extent| extent / BLOCK);
        while left > 0 {
            if self.block >= GROUP_BLOCKS {
                self.next_group();
            }
            let count = left.min(most).min(GROUP_BLOCKS - self.block);
            extents.push((self.group * GROUP_BLOCKS + self.block, count));
            self.block += count + dump.gap / BLOCK;
            left -= count;
        }
        Placed { length, inode, extents }
    }

    fn next_group(&mut self) {
        *self = Cursor { group: self.group + 1, block: TABLE_BLOCKS, inodes: 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(line: &str) -> Layout {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        Layout::new(&Dump::parse(&words, false).unwrap(), &mut Rng::stream(1, "layout"))
    }

    #[test]
    fn maps_lie_after_12_blocks_and_every_1024_of_them() {
        let maps: Vec<u64> = (0..3200).filter(|number| is_map(*number)).collect();
        assert_eq!(maps, [12, 1037, 1038, 2063, 3088]);
        assert_eq!(blocks_of(12 * BLOCK), 12);
        assert_eq!(blocks_of(12 * BLOCK + 1), 14);
        assert_eq!(blocks_of(1), 1);
    }

    #[test]
    fn files_lie_one_after_the_other_behind_the_inode_table() {
        let layout = layout("-0uf /dev/null /dev/sda --population=2x5K");
        let data = TABLE_BLOCKS * BLOCK;
        let pieces = |file| layout.pieces(file).collect::<Vec<_>>();
        assert_eq!(pieces(0), [Piece::Data(data, 4096), Piece::Data(data + 4096, 1024)]);
        assert_eq!(pieces(1), [Piece::Data(data + 8192, 4096), Piece::Data(data + 12288, 1024)]);
        assert_eq!((layout.inode_block(0), layout.inode_block(1)), (Some(0), None));
        assert_eq!(layout.end, data + 16384);
    }

    #[test]
    fn in_an_aged_group_the_order_of_inodes_is_not_that_of_data() {
        let line = "-0uf /dev/null /dev/sda --population=500x512K --gap=512K";
        let starts = |layout: &Layout| -> Vec<(u64, u64)> {
            layout.files.iter().map(|file| (file.inode.0, file.extents[0].0)).collect()
        };
        let fresh = starts(&layout(line));
        let aged = starts(&layout(&format!("{line} --aged")));
        assert!(fresh.is_sorted() && !aged.is_sorted());
        assert!(aged.is_sorted_by_key(|place| place.0), "groups in order");
        let mut sorted = aged.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, fresh);
        // Of a share of them.
        let some = starts(&layout(&format!("{line} --aged=40%")));
        let moved = |starts: &[(u64, u64)]| {
            starts.iter().zip(&fresh).filter(|(one, other)| one != other).count() as f64 / 500.0
        };
        assert!((0.3..0.5).contains(&moved(&some)), "{}", moved(&some));
        assert_eq!(starts(&layout(&format!("{line} --aged=0%"))), fresh);
        assert_eq!(starts(&layout(&format!("{line} --aged=100%"))), aged);
    }

    #[test]
    fn extents_are_cut_and_gaps_lie_between_them() {
        let layout = layout("-0 -f /dev/null --population=1x12K --extent=8K --gap=4K /dev/sda");
        let data = TABLE_BLOCKS * BLOCK;
        let places: Vec<u64> = layout
            .pieces(0)
            .map(|piece| match piece {
                Piece::Data(at, _) => at - data,
                Piece::Map(_) => panic!("it is small"),
            })
            .collect();
        assert_eq!(places, [0, 4096, 12288]);
    }
}
