//! What two worlds have in common: commands, bios, and commands with what the bios in them tell.

use crate::metrics::bios::{Asked, Asker};
use crate::metrics::commands::Step;
use std::collections::{BTreeMap, VecDeque};

/// A command of the disk, with the flags and the tasks of the bios in it, in the order of sectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    op: u8,
    sector: u64,
    sectors: u64,
    asked: Vec<(String, Asker)>,
}

/// Who asked for each command, and how; nothing where no bios were watched. Where bios end within
/// one does not matter: it hangs on which pages of memory lie together.
pub fn told(commands: &[Step], bios: &[Asked]) -> Vec<Told> {
    if bios.is_empty() {
        return Vec::new();
    }
    // What is not in a command yet, by its first sector. A flush has none.
    let mut left: BTreeMap<u64, VecDeque<(u64, &Asked)>> = BTreeMap::new();
    for bio in bios.iter().filter(|bio| bio.sectors > 0) {
        left.entry(bio.sector).or_default().push_back((bio.sectors, bio));
    }
    let of_command = |step: &Step| {
        let (sector, sectors) = (step.sector.0, u64::from(step.sectors.0));
        let (mut at, end, mut asked) = (sector, sector + sectors, Vec::new());
        while at < end {
            let Some((length, bio)) = left.get_mut(&at).and_then(VecDeque::pop_front) else {
                break;
            };
            let what = (bio.flags.clone(), bio.task.clone());
            if asked.last() != Some(&what) {
                asked.push(what);
            }
            if at + length > end {
                left.entry(end).or_default().push_front((at + length - end, bio));
            }
            at += length;
        }
        Told { op: step.op as u8, sector, sectors, asked }
    };
    commands.iter().map(of_command).collect()
}

/// More differences than this are not followed; what is left then counts as different.
const MOST_DIFFERENCES: usize = 40_000;

/// How many elements of two sequences are the same in the same order: the length of their longest
/// common subsequence (the greedy algorithm of Myers).
pub fn common<T: PartialEq>(one: &[T], other: &[T]) -> usize {
    let start = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[start..], &other[start..]);
    let end = one.iter().rev().zip(other.iter().rev()).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[..one.len() - end], &other[..other.len() - end]);
    start + end + common_between(one, other)
}

fn common_between<T: PartialEq>(one: &[T], other: &[T]) -> usize {
    let (n, m) = (one.len() as isize, other.len() as isize);
    let most = (one.len() + other.len()).min(MOST_DIFFERENCES) as isize;
    // The farthest place in `one` on each diagonal.
    let mut reached = vec![0_isize; 2 * most as usize + 3];
    let at = |diagonal: isize| (diagonal + most + 1) as usize;
    for differences in 0..=most {
        for diagonal in (-differences..=differences).step_by(2) {
            let down = diagonal == -differences
                || (diagonal != differences
                    && reached[at(diagonal - 1)] < reached[at(diagonal + 1)]);
            let mut x =
                if down { reached[at(diagonal + 1)] } else { reached[at(diagonal - 1)] + 1 };
            let mut y = x - diagonal;
            while x < n && y < m && x >= 0 && y >= 0 && one[x as usize] == other[y as usize] {
                (x, y) = (x + 1, y + 1);
            }
            reached[at(diagonal)] = x;
            if x >= n && y >= m {
                return ((n + m - differences) / 2) as usize;
            }
        }
    }
    0
}

/// The share of two sequences that is the same in the same order, of the longer one.
pub fn share<T: PartialEq>(one: &[T], other: &[T]) -> f64 {
    match one.len().max(other.len()) {
        0 => 1.0,
        longer => common(one, other) as f64 / longer as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Duration, Sector, Sectors};
    use block::command::CommandOp;

    #[test]
    fn a_command_is_told_of_by_the_bios_in_it() {
        let bio = |flags: &str, sector, sectors| Asked {
            flags: flags.to_string(),
            sector,
            sectors,
            task: Asker::Program,
        };
        let command = |sector, sectors| Step {
            op: CommandOp::Write,
            sector: Sector(sector),
            sectors: Sectors(sectors),
            at: Duration::ZERO,
            took: None,
            offered: None,
        };
        let commands = [command(0, 16), command(16, 8), command(0, 8)];
        // Cut in one way or another, and written once more.
        let one = [bio("W", 0, 8), bio("W", 8, 16), bio("WS", 0, 8)];
        let other = [bio("W", 0, 24), bio("WS", 0, 8)];
        assert_eq!(told(&commands, &one), told(&commands, &other));
        let flushed = [bio("FWS", 0, 0), bio("W", 0, 24), bio("WS", 0, 8)];
        assert_eq!(told(&commands, &one), told(&commands, &flushed));
        let plain = [bio("W", 0, 24), bio("W", 0, 8)];
        assert_ne!(told(&commands, &one), told(&commands, &plain));
    }

    #[test]
    fn what_two_sequences_have_in_common_keeps_its_order() {
        assert_eq!(common(&[1, 2, 3, 4], &[1, 3, 2, 4]), 3);
        assert_eq!(common(&[1, 2, 3], &[1, 2, 3]), 3);
        assert_eq!(common(&[1, 2, 3, 9, 9], &[0, 1, 2, 3]), 3);
        assert_eq!(common::<u8>(&[], &[1]), 0);
        assert_eq!(common(&[5, 6], &[7, 8]), 0);
        assert!((share(&[1, 2, 3, 4], &[1, 2]) - 0.5).abs() < 1e-9);
    }
}
