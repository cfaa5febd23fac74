//! A guest for somebody who wants to run a command or to look around.
//!
//! It has one disk, which keeps what is written to it, under two names, and whatever of the host
//! the command names: programs, and small files of the current directory. An experiment leaves
//! nothing to such guesses and describes its [`Guest`] itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base::Bytes;
use device::Model;

use crate::about::{ASK, About};
use crate::cache::Kernel;
use crate::clock::Protocol;
use crate::error::VisitError;
use crate::rootfs::{BROUGHT, Root, find_program};
use crate::run::{DEEPEST, Disk, Finished, Guest, make_directory};
use crate::script::{Job, Script, Setting, Trace};
use crate::store::Contents;
use crate::watch::Watchdog;

/// The usual programs, which are there if the host has them.
const PROGRAMS: [&str; 5] = ["dd", "fio", "blkdiscard", "mkfs.ext4", "mkfs.xfs"];
/// How much of the disk's data is kept in memory when nothing is said of it (assumed: ample for a
/// file system and a try).
pub const DATA: Bytes = Bytes(1 << 30);
/// Devices that are no disks, and the disk's own name.
const OTHER_DEVICES: [&str; 10] =
    ["null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "shm", "vda"];
/// The processor's counter is that of the machine outside, so what fio measures by it is wrong.
/// What somebody says of the clock comes later and holds.
const BEGIN_WITH: [(&str, &str); 1] = [("fio", "--clocksource=clock_gettime")];
/// Directories of names that udev gives.
const UDEVS: [&str; 2] = ["disk/", "block/"];
/// The guest's memory when nothing is said of it (assumed: ample for the usual programs).
pub const MEMORY: Bytes = Bytes(512 << 20);
/// A file of the current directory that is larger is not taken along unasked.
const SMALL: Bytes = Bytes(16 << 20);

/// What a visitor wants.
pub struct Visit {
    /// The kernel.
    pub kernel: Kernel,
    /// The disk.
    pub model: Model,
    /// Requests that the disk is given at once; as many as it takes if not told.
    pub queue_depth: Option<u32>,
    /// Files of the disk's queue and what is written to them: `scheduler` and others.
    pub settings: Vec<(String, String)>,
    /// What must be there besides: programs by name or path, files and directories.
    pub bring: Vec<String>,
    /// How the block layer's events are recorded.
    pub trace: Trace,
    /// The guest's memory.
    pub memory: Bytes,
    /// How much of what is written to the disk is kept in memory.
    pub data: Bytes,
    /// Another seed is another stream of random numbers, of the disk and the kernel.
    pub seed: u64,
}

impl Visit {
    /// A visit on a disk, with nothing said.
    pub fn new(kernel: Kernel, model: Model) -> Visit {
        Visit {
            kernel,
            model,
            queue_depth: None,
            settings: Vec::new(),
            bring: Vec::new(),
            trace: Trace::Off,
            memory: MEMORY,
            data: DATA,
            seed: 1,
        }
    }

    /// The I/O schedulers that the kernel offers, in the order in which it names them, and the
    /// files of a disk.
    pub fn ask(&self) -> Result<About, VisitError> {
        let finished = self.run(ASK)?;
        let said = finished.jobs.first().map(|job| String::from_utf8_lossy(&job.output));
        Ok(About::said(&said.unwrap_or_default()))
    }

    /// Runs a line as it is typed in a shell.
    pub fn run(&self, line: &str) -> Result<Finished, VisitError> {
        let there = make_directory()?;
        let (root, command) = self.root(there.path(), line)?;
        let disks = disks_of(line);
        Ok(self.guest(&root, Some(command), &disks).run()?)
    }

    /// Lets the terminal talk to a shell.
    pub fn shell(&self) -> Result<(), VisitError> {
        let there = make_directory()?;
        let (root, _) = self.root(there.path(), "")?;
        Ok(self.guest(&root, None, &[]).shell()?)
    }

    /// Requests that the disk is given at once, at most.
    pub fn queue_depth(&self) -> u32 {
        self.queue_depth.unwrap_or(self.model.facts().queue_depth.min(DEEPEST))
    }

    /// The root directory, and the line with the names that files have in there.
    fn root(&self, directory: &Path, line: &str) -> Result<(Root, String), VisitError> {
        let usual = PROGRAMS.into_iter().filter(|name| find_program(name).is_some());
        let root = Root::make_with(directory, &usual.collect::<Vec<_>>(), &BEGIN_WITH)?;
        for wanted in &self.bring {
            root.bring(wanted)?;
        }
        let mut command = String::new();
        for part in parts(line) {
            match is_brought(part) {
                true => command.push_str(&root.bring(part)?.to_string_lossy()),
                false => command.push_str(part),
            }
        }
        Ok((root, command))
    }

    fn guest<'a>(&'a self, root: &'a Root, command: Option<String>, disks: &[String]) -> Guest<'a> {
        let facts = self.model.facts();
        let rotational = u8::from(facts.rotational).to_string();
        let mut settings = vec![Setting::queue(0, "rotational", rotational)];
        if self.trace != Trace::Off {
            // A scheduler that is attached anew remembers nothing of the boot.
            settings.push(Setting::queue(0, "scheduler", "none"));
        }
        let asked = self.settings.iter();
        settings.extend(asked.map(|(file, value)| Setting::queue(0, file, value.clone())));
        let mut setup = vec![format!("test ! -d {BROUGHT} || cp -r {BROUGHT}/. /tmp/")];
        setup.push(name_disk("sda"));
        setup.extend(disks.iter().filter(|name| *name != "sda").map(|name| name_disk(name)));
        let script = Script {
            settings,
            setup,
            jobs: command
                .map(|command| Job { name: "command".to_string(), command, ..Job::default() })
                .into_iter()
                .collect(),
            trace: self.trace,
            counts_lazy: true,
            ..Script::default()
        };
        Guest {
            kernel: &self.kernel,
            root,
            memory: self.memory,
            disks: vec![Disk {
                name: self.model.name().to_string(),
                device: self.model.build(self.seed),
                contents: Contents::new(self.data),
            }],
            queue_depth: self.queue_depth(),
            script,
            seed: self.seed,
            protocol: Protocol::SharedMemory,
            watchdog: Watchdog::default(),
            core: None,
        }
    }
}

/// The names below `/dev` that occur in a text and can be names of the disk.
fn disk_names(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (at, start) in text.match_indices("/dev/") {
        let rest = &text[at + start.len()..];
        // Names of udev's have colons; elsewhere one stands between names, as in fio's lists.
        let is_udevs = UDEVS.iter().any(|it| rest.starts_with(it));
        let is_of_name = |(at, c): (usize, char)| match c {
            ':' => is_udevs && !rest[at + 1..].starts_with('/'),
            _ => c.is_ascii_alphanumeric() || "_-./+@%".contains(c),
        };
        let end = rest.char_indices().find(|it| !is_of_name(*it)).map_or(rest.len(), |it| it.0);
        let name = rest[..end].trim_end_matches(['.', '/']).to_string();
        let is_other = OTHER_DEVICES.contains(&&*name) || name.split('/').any(|it| it == "..");
        if !name.is_empty() && !is_other && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What gives the disk another name below `/dev`, unless something else is called so.
pub fn name_disk(name: &str) -> String {
    let quoted = |path: &str| format!("'/dev/{}'", path.replace('\'', r"'\''"));
    let path = quoted(name);
    match name.rsplit_once('/') {
        None => format!("test -e {path} || ln -s vda {path}"),
        Some((directory, _)) => {
            let directory = quoted(directory);
            format!("test -e {path} || {{ mkdir -p {directory} && ln -s /dev/vda {path}; }}")
        }
    }
}

/// The names that a line has for the disk, and the small files that go along with it.
fn disks_of(line: &str) -> Vec<String> {
    let mut text = line.to_string();
    for part in parts(line).into_iter().filter(|part| is_small_file(part)) {
        text.push('\n');
        text.push_str(&String::from_utf8_lossy(&fs::read(part).unwrap_or_default()));
    }
    disk_names(&text)
}

/// Whether a part of a command is a file of the current directory that is taken along unasked.
fn is_small_file(part: &str) -> bool {
    let about = fs::metadata(part);
    !part.contains('/') && about.is_ok_and(|it| it.is_file() && Bytes(it.len()) <= SMALL)
}

/// Whether a part of a command names something of the host that is needed in the guest.
fn is_brought(part: &str) -> bool {
    let Ok(about) = fs::metadata(part) else { return find_program(part).is_some() };
    let runs = about.permissions().mode() & 0o111 != 0;
    about.is_file() && (runs || is_small_file(part))
}

/// A line, cut between what can be the name of a file and what cannot.
fn parts(line: &str) -> Vec<&str> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_-./+@%:,".contains(c);
    let mut parts = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let kind = is_of_name(first);
        let end = rest.find(|c| is_of_name(c) != kind).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        parts.push(part);
        rest = behind;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_names_end() {
        let line = "dd if=/dev/vda|./a.out 'x y'";
        assert_eq!(parts(line).concat(), line);
        let names = ["dd", "if", "/dev/vda", "./a.out", "x", "y"];
        assert!(names.iter().all(|name| parts(line).contains(name)), "{:?}", parts(line));
    }

    #[test]
    fn every_disk_that_is_named_is_the_one_there_is() {
        let names = disk_names("dd if=/dev/zero of=/dev/sda # /dev/nvme0n1:/dev/sda");
        assert_eq!(names, ["sda", "nvme0n1"]);
        let names =
            disk_names("cat </dev/disk/by-path/pci-0000:00:1f.2-ata-1; fio /dev/block/8:0:/dev/x");
        assert_eq!(names, ["disk/by-path/pci-0000:00:1f.2-ata-1", "block/8:0", "x"]);
    }

    #[test]
    fn programs_and_small_files_of_the_directory_are_needed() {
        assert!(is_brought("sh") && is_brought("/bin/sh") && is_brought("Cargo.toml"));
        assert!(!is_brought("if") && !is_brought("/dev/null") && !is_brought("/etc/passwd"));
        assert!(!is_brought("src"), "a directory is brought only when asked for");
    }
}
