//! What was typed behind `sysbench`: the options of fileio, of 0.4 and of 1.0.

use base::{Duration, nearest};
use guest::SysbenchHabits;
use machine::task::OpenFlags;
use std::ops::RangeInclusive;

/// A command line of sysbench fileio, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysbench {
    pub(super) generation: Generation,
    pub(super) action: Action,
    pub(super) mode: Mode,
    pub(super) threads: u64,
    pub(super) files: u64,
    pub(super) block: u64,
    /// Of all files together.
    pub(super) total: u64,
    pub(super) flags: OpenFlags,
    /// `--file-io-mode=mmap`.
    pub(super) is_mapped: bool,
    /// Requests after which all files are synced; 0: never.
    pub(super) sync_frequency: u64,
    pub(super) syncs_each_write: bool,
    /// `--file-fsync-mode=fdatasync`.
    pub(super) syncs_data_only: bool,
    pub(super) syncs_at_end: bool,
    /// Reads for a thousand writes.
    pub(super) ratio_millis: u64,
    pub(super) most_requests: Option<u64>,
    pub(super) most_time: Option<Duration>,
    /// Where the files lie.
    pub(super) place: Place,
    /// What it does besides.
    pub(super) habits: SysbenchHabits,
}

/// Where the files lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// One after the other on a disk, from here on.
    Disk { path: String, start: u64 },
    /// In a directory of a file system.
    Directory(String),
}

/// Whose command line it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    /// `sysbench --test=fileio`.
    V0_4,
    /// `sysbench fileio`.
    V1_0,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Prepare,
    Run,
    Cleanup,
}

/// `--file-test-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    SeqWrite,
    SeqRewrite,
    SeqRead,
    RandomRead,
    RandomWrite,
    RandomMixed,
}

const MODES: [(&str, Mode); 6] = [
    ("seqwr", Mode::SeqWrite),
    ("seqrewr", Mode::SeqRewrite),
    ("seqrd", Mode::SeqRead),
    ("rndrd", Mode::RandomRead),
    ("rndwr", Mode::RandomWrite),
    ("rndrw", Mode::RandomMixed),
];

/// Options of both generations; of 0.4; of 1.0.
const COMMON: [&str; 15] = [
    "file-num",
    "file-block-size",
    "file-total-size",
    "file-test-mode",
    "file-io-mode",
    "file-extra-flags",
    "file-fsync-freq",
    "file-fsync-all",
    "file-fsync-end",
    "file-fsync-mode",
    "file-merged-requests",
    "file-rw-ratio",
    "disk",
    "disk-start",
    "verbosity",
];
const OF_0_4: [&str; 4] = ["num-threads", "max-requests", "max-time", "init-rng"];
const OF_1_0: [&str; 4] = ["threads", "events", "time", "rand-seed"];

const GIB: u64 = 1 << 30;
/// The largest number.
const MOST: u64 = 1 << 40;
/// Threads, and files: each takes memory from the beginning.
const MOST_AT_ONCE: u64 = 1 << 16;
/// Longer than anybody waits: thirty years.
const MOST_SECONDS: u64 = 1 << 30;

impl Mode {
    pub fn is_sequential(self) -> bool {
        matches!(self, Mode::SeqWrite | Mode::SeqRewrite | Mode::SeqRead)
    }

    pub fn writes(self) -> bool {
        !matches!(self, Mode::SeqRead | Mode::RandomRead)
    }
}

impl Sysbench {
    /// The defaults (rule sysbench-1; 1.0: its own --help).
    fn of(generation: Generation, habits: SysbenchHabits) -> Sysbench {
        let is_old = generation == Generation::V0_4;
        Sysbench {
            generation,
            action: Action::Run,
            mode: Mode::SeqRead,
            threads: 1,
            files: 128,
            block: 16_384,
            total: 2 * GIB,
            flags: OpenFlags::default(),
            is_mapped: false,
            sync_frequency: 100,
            syncs_each_write: false,
            syncs_data_only: false,
            syncs_at_end: true,
            ratio_millis: 1_500,
            most_requests: is_old.then_some(10_000),
            most_time: (!is_old).then_some(Duration::from_secs(10)),
            place: Place::Disk { path: "/dev/sda".to_string(), start: 0 },
            habits,
        }
    }

    /// Understands the words behind `sysbench`, or says what is wrong with which, and what would
    /// do. The files lie in the directory, if there is one and no disk is named.
    pub fn parse(
        words: &[String],
        directory: Option<&str>,
        habits: SysbenchHabits,
    ) -> Result<Sysbench, String> {
        let is_old = words.iter().any(|word| word.starts_with("--test"));
        let generation = if is_old { Generation::V0_4 } else { Generation::V1_0 };
        let mut typed = Sysbench::of(generation, habits);
        let (mut action, mut mode, mut has_test) = (None, None, false);
        for word in words {
            match (word.strip_prefix("--"), word.as_str()) {
                (Some(option), _) => {
                    let (name, value) = option.split_once('=').unwrap_or((option, ""));
                    match name {
                        "test" if value == "fileio" => has_test = true,
                        "file-test-mode" => mode = Some(parse_mode(value)?),
                        _ => typed.set(name, value)?,
                    }
                }
                (None, "fileio") if !is_old => has_test = true,
                (None, "prepare") => action = Some(Action::Prepare),
                (None, "run") => action = Some(Action::Run),
                (None, "cleanup") => action = Some(Action::Cleanup),
                (None, other) => return Err(bad("command", other, "prepare, run, cleanup")),
            }
        }
        let names_disk = words.iter().any(|word| word.starts_with("--disk"));
        if let Some(directory) = directory.filter(|_| !names_disk) {
            typed.place = Place::Directory(directory.to_string());
        }
        if !has_test {
            return Err("sysbench: no test; accepted: fileio (1.0), --test=fileio (0.4)".into());
        }
        let missing = "sysbench: no command; accepted: prepare, run, cleanup";
        typed.action = action.ok_or(missing)?;
        typed.mode = match (mode, typed.action) {
            (Some(mode), _) => mode,
            (None, Action::Run) => {
                return Err(format!("sysbench: no --file-test-mode; accepted: {}", modes()));
            }
            (None, _) => Mode::SeqRead,
        };
        typed.check()
    }

    fn check(self) -> Result<Sysbench, String> {
        let size = self.total / self.files;
        if size == 0 || !size.is_multiple_of(self.block) {
            let value = format!("{} bytes in {} files", self.total, self.files);
            let accepted = format!("files of whole blocks of {} bytes", self.block);
            return Err(bad("--file-total-size", &value, &accepted));
        }
        if let Place::Disk { start, .. } = &self.place
            && !start.is_multiple_of(4096)
        {
            return Err(bad("--disk-start", &start.to_string(), "a multiple of 4096"));
        }
        Ok(self)
    }

    /// Path and start on the disk, which it is on until all options are read.
    fn disk(&mut self) -> (&mut String, &mut u64) {
        match &mut self.place {
            Place::Disk { path, start } => (path, start),
            Place::Directory(_) => unreachable!("options are read before the directory is known"),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let own = if self.generation == Generation::V0_4 { OF_0_4 } else { OF_1_0 };
        let known = || COMMON.into_iter().chain(own);
        if !known().any(|it| it == name) {
            let hint = nearest(name, known());
            return Err(format!(
                "sysbench: --{name}: no such option of this generation{hint}; accepted: {}",
                known().map(|it| format!("--{it}")).collect::<Vec<_>>().join(", ")
            ));
        }
        let option = format!("--{name}");
        let count = |least| number(&option, value, least..=MOST);
        match name {
            "num-threads" | "threads" => self.threads = number(&option, value, 1..=MOST_AT_ONCE)?,
            "file-num" => self.files = number(&option, value, 1..=MOST_AT_ONCE)?,
            "file-block-size" => self.block = size(&option, value)?,
            "file-total-size" => self.total = size(&option, value)?,
            "disk-start" => *self.disk().1 = size(&option, value)?,
            "file-fsync-freq" => self.sync_frequency = count(0)?,
            "max-requests" | "events" => {
                self.most_requests = Some(count(0)?).filter(|count| *count > 0);
            }
            "max-time" | "time" => {
                let seconds = Some(count(0)?.min(MOST_SECONDS)).filter(|time| *time > 0);
                self.most_time = seconds.map(Duration::from_secs);
            }
            "file-fsync-all" => self.syncs_each_write = switch(&option, value)?,
            "file-fsync-end" => self.syncs_at_end = switch(&option, value)?,
            "file-extra-flags" => self.flags = flags(value)?,
            "file-rw-ratio" => self.ratio_millis = ratio(value)?,
            "file-fsync-mode" if ["fsync", "fdatasync"].contains(&value) => {
                self.syncs_data_only = value == "fdatasync";
            }
            "file-fsync-mode" => return Err(bad(&option, value, "fsync, fdatasync")),
            "file-io-mode" if ["sync", "mmap"].contains(&value) => self.is_mapped = value == "mmap",
            "file-io-mode" => {
                return Err(bad(&option, value, "sync, mmap (async is not modelled)"));
            }
            "file-merged-requests" if value == "0" => {}
            "file-merged-requests" => {
                return Err(bad(&option, value, "0 (others are not modelled)"));
            }
            "disk" if value.starts_with("/dev/") => *self.disk().0 = value.to_string(),
            "disk" => return Err(bad(&option, value, "a path below /dev")),
            // Seeds are the experiment's, and everything is said.
            _ => {}
        }
        Ok(())
    }
}

fn bad(what: &str, value: &str, accepted: &str) -> String {
    format!("sysbench: {what} \"{value}\"; accepted: {accepted}")
}

fn modes() -> String {
    MODES.map(|(name, _)| name).join(", ")
}

fn parse_mode(value: &str) -> Result<Mode, String> {
    let found = MODES.into_iter().find(|(name, _)| *name == value);
    found.map(|(_, mode)| mode).ok_or_else(|| bad("--file-test-mode", value, &modes()))
}

fn number(option: &str, value: &str, within: RangeInclusive<u64>) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| within.contains(number));
    number.ok_or_else(|| bad(option, value, &format!("{} to {}", within.start(), within.end())))
}

/// A size with K, M, G or T.
fn size(option: &str, value: &str) -> Result<u64, String> {
    let digits = value.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let shift = match &value[digits.len()..] {
        "" => Some(0),
        "K" | "k" => Some(10),
        "M" | "m" => Some(20),
        "G" | "g" => Some(30),
        "T" | "t" => Some(40),
        _ => None,
    };
    let parsed = digits.parse::<u64>().ok().zip(shift);
    let bytes = parsed.and_then(|(number, shift)| number.checked_mul(1 << shift));
    let is_start = option == "--disk-start";
    let bytes = bytes.filter(|bytes| (*bytes > 0 || is_start) && *bytes <= 1 << 50);
    bytes.ok_or_else(|| bad(option, value, "a size such as 16384, 16K, 2G"))
}

fn switch(option: &str, value: &str) -> Result<bool, String> {
    match value {
        "on" | "yes" | "true" | "1" => Ok(true),
        "off" | "no" | "false" | "0" => Ok(false),
        _ => Err(bad(option, value, "on, off")),
    }
}

fn flags(value: &str) -> Result<OpenFlags, String> {
    let mut flags = OpenFlags::default();
    for flag in value.split(',').filter(|flag| !flag.is_empty()) {
        match flag {
            "sync" => flags.sync = true,
            "dsync" => flags.dsync = true,
            "direct" => flags.direct = true,
            _ => return Err(bad("--file-extra-flags", flag, "sync, dsync, direct")),
        }
    }
    Ok(flags)
}

/// Reads for a thousand writes, from a decimal number.
fn ratio(value: &str) -> Result<u64, String> {
    let refused = || bad("--file-rw-ratio", value, "a number such as 1.5, not negative");
    let (whole, part) = value.split_once('.').unwrap_or((value, "0"));
    if part.len() > 3 || part.is_empty() || !part.bytes().all(|it| it.is_ascii_digit()) {
        return Err(refused());
    }
    let whole: u64 = whole.parse().ok().filter(|it| *it < 1_000_000).ok_or_else(refused)?;
    let part: u64 = format!("{part:0<3}").parse().expect("three digits");
    Ok(whole * 1_000 + part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Sysbench, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        Sysbench::parse(&words, None, guest::Profile::uml().habits.sysbench)
    }

    #[test]
    fn both_generations_are_understood_with_their_defaults() {
        let old = parse("--test=fileio --file-test-mode=seqrd --num-threads=3 run").unwrap();
        assert_eq!((old.generation, old.threads), (Generation::V0_4, 3));
        assert_eq!((old.files, old.block, old.total), (128, 16_384, 2 << 30));
        assert_eq!((old.most_requests, old.most_time), (Some(10_000), None));
        let new = parse("fileio --file-test-mode=rndrw --threads=4 --time=60 run").unwrap();
        assert_eq!((new.generation, new.mode), (Generation::V1_0, Mode::RandomMixed));
        assert_eq!((new.most_requests, new.most_time), (None, Some(Duration::from_secs(60))));
        assert_eq!(parse("fileio prepare").unwrap().action, Action::Prepare);
    }

    #[test]
    fn values_are_understood() {
        let line = "fileio --file-total-size=64M --file-num=4 --file-block-size=4K \
                    --file-extra-flags=direct,dsync --file-fsync-freq=0 --file-fsync-all=on \
                    --file-fsync-end=off --file-rw-ratio=0.25 --disk-start=1G \
                    --file-test-mode=rndwr run";
        let typed = parse(line).unwrap();
        assert_eq!((typed.total, typed.files, typed.block), (64 << 20, 4, 4096));
        assert!(typed.flags.direct && typed.flags.dsync && !typed.flags.sync);
        assert!(typed.syncs_each_write && !typed.syncs_at_end);
        assert_eq!((typed.sync_frequency, typed.ratio_millis), (0, 250));
        let place = Place::Disk { path: "/dev/sda".to_string(), start: 1 << 30 };
        assert_eq!(typed.place, place);
        let words = ["fileio".to_string(), "prepare".to_string()];
        let in_directory =
            Sysbench::parse(&words, Some("/mnt"), guest::Profile::uml().habits.sysbench).unwrap();
        assert_eq!(in_directory.place, Place::Directory("/mnt".to_string()));
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_would_do() {
        let refusal = |line: &str| parse(line).unwrap_err();
        assert_eq!(
            refusal("fileio --file-test-mode=rndrd --threads=4294967295 run"),
            "sysbench: --threads \"4294967295\"; accepted: 1 to 65536"
        );
        assert_eq!(
            refusal("fileio --file-test-mode=seq run"),
            "sysbench: --file-test-mode \"seq\"; accepted: seqwr, seqrewr, seqrd, rndrd, rndwr, \
             rndrw"
        );
        assert!(refusal("fileio --num-threads=3 run").contains("nearest: \"threads\""));
        assert!(refusal("fileio run").starts_with("sysbench: no --file-test-mode; accepted"));
        assert!(refusal("fileio").starts_with("sysbench: no command; accepted"));
        assert!(refusal("cpu run").starts_with("sysbench: command \"cpu\"; accepted"));
        assert!(refusal("run").starts_with("sysbench: no test; accepted: fileio"));
        let seqrd = |option: &str| refusal(&format!("fileio --file-test-mode=seqrd {option} run"));
        assert!(seqrd("--file-total-size=1X").contains("accepted: a size such as"));
        assert!(seqrd("--file-total-size=100K").contains("accepted: files of whole blocks"));
        assert!(seqrd("--threads=0").contains("\"0\"; accepted: 1 to"));
        assert!(seqrd("--file-io-mode=async").contains("accepted: sync, mmap"));
        assert!(seqrd("--disk-start=100").contains("a multiple of 4096"));
        assert!(seqrd("--file-rw-ratio=x").contains("a number such as 1.5"));
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_it_panic(
            words in proptest::collection::vec(
                proptest::sample::select(vec![
                    "fileio", "--test=fileio", "run", "prepare", "--file-num=0", "--file-num=7",
                    "--file-total-size=99999999999T", "--file-block-size=é", "--file-rw-ratio=.5",
                    "--file-rw-ratio=1.", "--file-test-mode=rndrw", "--", "--=", "--disk=x", "x",
                    "--threads=3", "--file-extra-flags=,,", "--time=18446744073709551615",
                ]),
                0..8,
            ),
        ) {
            let words: Vec<String> = words.into_iter().map(str::to_string).collect();
            let _ = Sysbench::parse(&words, None, guest::Profile::uml().habits.sysbench);
        }
    }
}
