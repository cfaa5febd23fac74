//! What tasks gave to the block layer, one bio after the other, in both worlds: what the disk's own
//! commands do not tell, flags and the task that asks.
//!
//! Programs of an experiment count as one task: their processes have other names in one world than
//! in the other. Workers of the kernel are one task, too.
//!
//! Leaves out what the kernel's line does not say: IDLE, and priorities.

use super::sequence::Step;
use block::{Action, Event, Flags, Op};
use machine::{Observer, TaskInfo};
use std::collections::{BTreeMap, VecDeque};

/// A bio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Direction and flags as the kernel writes them, such as `WSM`.
    pub flags: String,
    /// First sector; zero for a flush.
    pub sector: u64,
    /// Length.
    pub sectors: u64,
    /// Who asks.
    pub task: Asker,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A program of the experiment.
    Program,
    /// A worker of the kernel.
    Worker,
    /// Another task of the kernel, by its name.
    Kernel(String),
}

impl Asker {
    /// By the name of a task.
    fn named(name: &str) -> Asker {
        match name {
            _ if name.starts_with("kworker/") => Asker::Worker,
            _ if name.starts_with("jbd2/") || name.starts_with("xfsaild/") => {
                Asker::Kernel(name.to_string())
            }
            _ => Asker::Program,
        }
    }
}

/// Whether the kernel had room for all its lines: it says how many are there, and how many there
/// were.
pub fn is_whole(text: &str) -> bool {
    let head = text.lines().find_map(|line| line.strip_prefix("# entries-in-buffer/"));
    let counts = head.and_then(|line| line.split_whitespace().nth(1)?.split_once('/'));
    counts.is_none_or(|(there, written)| there == written)
}

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

/// The lines of the kernel's event `block_bio_queue` of a disk, such as
/// ` dd-54 [000] ..... 12: block_bio_queue: 254,0 WS 272408 + 8 [dd]`, since a time of their clock.
pub fn of_lines(text: &str, disk: &str, since: u64) -> Vec<Asked> {
    let parse = |line: &str| {
        let (task, event) = line.split_once(" block_bio_queue: ")?;
        let (task, time) = task.split_once(" [")?;
        let time = time.trim_end_matches(':').rsplit(' ').next()?;
        if time.parse::<u64>().ok()? < since {
            return None;
        }
        let (name, _) = task.trim().rsplit_once('-')?;
        let rest = event.strip_prefix(disk)?.strip_prefix(' ')?;
        let mut words = rest.split_whitespace();
        let flags = words.next()?.to_string();
        let sector = words.next()?.parse().ok()?;
        let sectors = words.nth(1)?.parse().ok()?;
        Some(Asked { flags, sector, sectors, task: Asker::named(name.trim()) })
    };
    text.lines().filter_map(parse).collect()
}

/// Watches a run of the simulator for its bios.
#[derive(Default)]
pub struct BioCollector {
    bios: Vec<Asked>,
    names: BTreeMap<u32, Asker>,
}

impl BioCollector {
    /// The bios in the order in which they were submitted.
    pub fn finish(self) -> Vec<Asked> {
        self.bios
    }
}

impl Observer for BioCollector {
    fn meet(&mut self, who: &TaskInfo) {
        let asker = if who.job.is_some() { Asker::Program } else { Asker::named(&who.name) };
        self.names.insert(who.context.0, asker);
    }

    fn see(&mut self, event: &Event) {
        if !matches!(event.action, Action::Queue) {
            return;
        }
        let task = self.names.get(&event.context.0).cloned().unwrap_or(Asker::Program);
        let is_flush = event.sectors.0 == 0;
        self.bios.push(Asked {
            flags: letters(event),
            sector: if is_flush { 0 } else { event.sector.0 },
            sectors: u64::from(event.sectors.0),
            task,
        });
    }
}

/// Direction and flags as the kernel writes them.
fn letters(event: &Event) -> String {
    let mut text = String::new();
    let mut add = |flag: Flags, letter: char| {
        if event.flags.intersects(flag) {
            text.push(letter);
        }
    };
    add(Flags::PREFLUSH, 'F');
    text.push(match event.op {
        Op::Read => 'R',
        Op::Write => 'W',
        Op::Discard => 'D',
    });
    let mut add = |flag: Flags, letter: char| {
        if event.flags.intersects(flag) {
            text.push(letter);
        }
    };
    add(Flags::FUA, 'F');
    add(Flags::RAHEAD, 'A');
    add(Flags::SYNC, 'S');
    add(Flags::META, 'M');
    text
}

/// More differences than this are not followed; what is left then counts as different.
const MOST_DIFFERENCES: usize = 6000;

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
    fn lines_of_the_kernel_are_understood() {
        let text = "# tracer: nop\n   jbd2/vda-8-38   [000] .....  7: block_bio_queue: 254,0 FWFSM \
                    42205248 + 8 [jbd2/vda-8]\n dd-5 [000] ..... 9: block_bio_queue: 254,16 R 0 + \
                    8 [dd]\n sync-60 [000] ..... 9: block_bio_queue: 254,0 FWS 0 + 0 [sync]\n";
        let task = Asker::Kernel("jbd2/vda-8".to_string());
        let commit = Asked { flags: "FWFSM".to_string(), sector: 42_205_248, sectors: 8, task };
        let flush = Asked { flags: "FWS".to_string(), sector: 0, sectors: 0, task: Asker::Program };
        assert_eq!(of_lines(text, "254,0", 0), [commit, flush.clone()]);
        assert_eq!(of_lines(text, "254,0", 8), [flush]);
    }

    #[test]
    fn lines_that_were_lost_are_noticed() {
        let head = |counts: &str| {
            format!("# tracer: nop\n#\n# entries-in-buffer/entries-written: {counts}   #P:1\n#\n")
        };
        assert!(is_whole(&head("65793/65793")));
        assert!(!is_whole(&head("55842/65793")));
        assert!(is_whole(""));
    }

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
