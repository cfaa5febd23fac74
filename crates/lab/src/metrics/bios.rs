//! What tasks gave to the block layer, one bio after the other, in both worlds: what the disk's own
//! commands do not tell, flags and the task that asks.
//!
//! Programs of an experiment count as one task: their processes have other names in one world than
//! in the other. Workers of the kernel are one task, too.
//!
//! Leaves out what the kernel's line does not say: IDLE, and priorities.

use block::{Action, Event, Flags, Op};
use machine::{Observer, TaskInfo};
use std::collections::BTreeMap;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
