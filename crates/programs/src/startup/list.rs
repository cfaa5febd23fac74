//! Lists of what programs read when they start: recorded here, or files of the same form.
//!
//! ```text
//! # process, kind, sector, sectors
//! xterm RA 5392 8
//! ```
//!
//! A line for each read, in the order in which they were asked for. Kinds are those of blktrace:
//! `RA` is read ahead, so the process goes on; it waits for `R`, and for `RM`, metadata. A read
//! that begins where the last one of its process ended is sequential. Lines that begin with `#`
//! say nothing.

use base::Sector;

/// What was read, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    pub(super) reads: Vec<Read>,
    /// The processes, in the order in which they begin.
    pub(super) processes: Vec<String>,
}

/// A read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// Which process.
    pub process: usize,
    /// Whether the process waits for it.
    pub waits: bool,
    pub sector: u64,
    pub sectors: u64,
}

/// The lists that come along.
pub(super) const BUILT_IN: [(&str, &str); 4] = [
    ("emacs", include_str!("lists/emacs.txt")),
    ("lowriter", include_str!("lists/lowriter.txt")),
    ("vim", include_str!("lists/vim.txt")),
    ("xterm", include_str!("lists/xterm.txt")),
];

const ACCEPTED: &str = "PROCESS RA|R|RM SECTOR SECTORS, as in xterm RA 5392 8";
/// Sectors of a read at most, and the last sector.
const MOST_SECTORS: u64 = FILE / Sector::SIZE;
const LAST_SECTOR: u64 = 1 << 40;
/// Threads at most: each has a file.
const MOST_PROCESSES: usize = 256;

/// The size of the file of each process, as in S.
pub(super) const FILE: u64 = 20_000_000;

impl List {
    /// Understands a list; what is wrong is said with the file's name and the line.
    pub fn parse(file: &str, text: &str) -> Result<List, String> {
        let mut list = List { reads: Vec::new(), processes: Vec::new() };
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let read = list.line(line);
            let refused = || format!("{file}:{number}: \"{line}\"; accepted: {ACCEPTED}");
            list.reads.push(read.ok_or_else(refused)?);
            if list.processes.len() > MOST_PROCESSES {
                let most = format!("no more than {MOST_PROCESSES} processes");
                return Err(format!("{file}:{number}: one process too many; accepted: {most}"));
            }
        }
        match list.reads.is_empty() {
            true => Err(format!("{file}: no read; accepted: lines such as {ACCEPTED}")),
            false => Ok(list),
        }
    }

    fn line(&mut self, line: &str) -> Option<Read> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [process, kind, sector, sectors] = words[..] else { return None };
        let waits = match kind {
            "RA" => false,
            "R" | "RM" => true,
            _ => return None,
        };
        let number = |text: &str, least: u64, most: u64| {
            text.parse().ok().filter(|it| (least..=most).contains(it))
        };
        let sector = number(sector, 0, LAST_SECTOR)?;
        let sectors = number(sectors, 1, MOST_SECTORS)?;
        let known = self.processes.iter().position(|it| it == process);
        let process = known.unwrap_or_else(|| {
            self.processes.push(process.to_string());
            self.processes.len() - 1
        });
        Some(Read { process, waits, sector, sectors })
    }

    /// Turns: reads of one process before another has the next one.
    pub(super) fn turns(&self) -> Vec<&[Read]> {
        self.reads.chunk_by(|a, b| a.process == b.process).collect()
    }
}

/// Where in its file a process reads next, in sectors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// The end of the last read in the file, and in the recording.
    at: u64,
    recorded: u64,
}

impl Place {
    /// The place of a read. A sequential one goes on, from the beginning if the file ends; another
    /// one goes to where its recorded sector is in files that lie one after the other.
    // Divergence: S draws a place for each start; here every start reads the same ones.
    pub fn next(&mut self, read: &Read) -> u64 {
        let last = MOST_SECTORS - read.sectors;
        let is_sequential = read.sector == self.recorded;
        let wanted = if is_sequential { self.at } else { read.sector % (last + 1) };
        let place = if wanted > last { 0 } else { wanted };
        (self.at, self.recorded) = (place + read.sectors, read.sector + read.sectors);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_that_come_along_are_understood() {
        for (name, text) in BUILT_IN {
            let list = List::parse(name, text).unwrap();
            assert!(list.reads.len() > 400, "{name}");
            assert!(list.reads.iter().any(|it| it.waits) && list.reads.iter().any(|it| !it.waits));
        }
        let xterm = List::parse("xterm", BUILT_IN[3].1).unwrap();
        assert_eq!(xterm.processes, ["xterm", "true"]);
        assert_eq!(xterm.turns().len(), 2);
    }

    #[test]
    fn what_is_wrong_is_said_with_file_and_line() {
        for line in [
            "xterm RA 1",
            "xterm W 1 8",
            "xterm RA x 8",
            "xterm R 1 0",
            "xterm R 1 39063",
            "a R 1 8 9",
        ] {
            let said = List::parse("l", &format!("# x\n{line}\n")).unwrap_err();
            assert!(said.starts_with("l:2: \"") && said.contains("accepted: PROCESS"), "{said}");
        }
        assert!(List::parse("l", "\n").unwrap_err().starts_with("l: no read"));
        let many: String = (0..300).map(|it| format!("p{it} R 1 8\n")).collect();
        assert!(List::parse("l", &many).unwrap_err().starts_with("l:257: one process too many"));
    }

    #[test]
    fn a_file_is_read_on_from_its_beginning() {
        let read = |sector, sectors| Read { process: 0, waits: true, sector, sectors };
        let mut place = Place::default();
        assert_eq!(place.next(&read(100, 8)), 100);
        assert_eq!(place.next(&read(108, 8)), 108);
        assert_eq!(place.next(&read(39_055 + 7, 8)), 7);
        assert_eq!(place.next(&read(39_054, 8)), 39_054);
        assert_eq!(place.next(&read(39_062, 8)), 0);
    }
}
