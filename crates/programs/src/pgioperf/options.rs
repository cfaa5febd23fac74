//! What was typed behind `pgioperf`.

use crate::{Surroundings, size};
use base::nearest;

/// A command line of pgioperf, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pgioperf {
    pub(super) directory: String,
    pub(super) prepares: bool,
    pub(super) load: Load,
    pub(super) readers: u64,
    /// Processes draw from one sequence, as the real program has it.
    pub(super) shares_sequence: bool,
    /// Bytes of the data file, without its last block.
    pub(super) data: u64,
    /// It ends when so many have been printed.
    pub(super) lines: u64,
}

/// What its writers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    pub name: &'static str,
    /// The data are synced after so many writes.
    pub checkpoint: u64,
    /// Whether a commit is an fdatasync, or else an fsync.
    pub commits_data_only: bool,
}

/// All of them, the default first. `cfq-wbt` is the load that the change "cfq: Disable writeback
/// throttling by default" (2017) describes.
pub(super) const LOADS: [Load; 2] = [
    Load { name: "mmtests", checkpoint: 100_000, commits_data_only: true },
    Load { name: "cfq-wbt", checkpoint: 50_000, commits_data_only: false },
];

const OPTIONS: [&str; 7] =
    ["--prepare", "--load", "--readers", "--sequence", "--size", "--lines", "-D"];
const SEQUENCES: [(&str, bool); 2] = [("shared", true), ("own", false)];
const READERS: u64 = 16;
const MOST_READERS: u64 = 1024;
/// The data file has so many times the memory of the machine.
const DATA_OF_MEMORY: u64 = 2;
/// The data file has so many times the size of the log.
const DATA_OF_WAL: u64 = 48;
/// The log has a block at least.
const LEAST_DATA: u64 = DATA_OF_WAL * super::BLOCK;
const MOST_DATA: u64 = 1 << 42;
/// After which MMTests ends it.
const LINES: u64 = 3000;
const MOST_LINES: u64 = 1 << 40;
const SIZES: &str = "384k to 4t, in bytes or with k, m, g or t";

impl Pgioperf {
    /// Understands the words behind its name, or says what is wrong with which, and what would do.
    pub fn parse(words: &[String], around: &Surroundings<'_>) -> Result<Pgioperf, String> {
        let mut options = Pgioperf {
            directory: ".".to_string(),
            prepares: false,
            load: LOADS[0],
            readers: READERS,
            shares_sequence: true,
            data: (DATA_OF_MEMORY * around.mb_memory) << 20,
            lines: LINES,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, attached) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value)),
                _ => (word.as_str(), None),
            };
            match (name, attached) {
                ("--prepare", None) => options.prepares = true,
                ("--prepare", Some(value)) => return Err(bad(name, value, "no value")),
                (name, _) if !OPTIONS.contains(&name) => return Err(unknown(name)),
                (_, attached) => {
                    let value = attached.or_else(|| words.next().map(String::as_str));
                    options.set(name, value.unwrap_or_default())?;
                }
            }
        }
        if around.mount.is_none() {
            return Err("pgioperf: no file system; accepted: fs = \"ext4\" or \"xfs\"".to_string());
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--load" => self.load = one_of(name, value, LOADS.map(|load| (load.name, load)))?,
            "--sequence" => self.shares_sequence = one_of(name, value, SEQUENCES)?,
            "--readers" => self.readers = number(name, value, 0, MOST_READERS)?,
            "--lines" => self.lines = number(name, value, 1, MOST_LINES)?,
            "--size" => {
                let bytes = size::bytes(value, "kKmMgGtT")
                    .filter(|it| (LEAST_DATA..=MOST_DATA).contains(it));
                self.data = bytes.ok_or_else(|| bad(name, value, SIZES))?;
            }
            _ if value.is_empty() => return Err(bad(name, value, "a directory")),
            _ => self.directory = value.to_string(),
        }
        Ok(())
    }

    /// Bytes of the log, without its last block.
    pub(super) fn wal(&self) -> u64 {
        self.data / DATA_OF_WAL
    }

    /// The path of one of its files.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory.trim_end_matches('/'))
    }

    /// How many processes read.
    pub fn readers(&self) -> u64 {
        self.readers
    }

    /// Whether it only writes the files.
    pub fn prepares(&self) -> bool {
        self.prepares
    }
}

fn unknown(name: &str) -> String {
    let (hint, accepted) = (nearest(name, OPTIONS), OPTIONS.join(", "));
    format!("pgioperf: {name}: no such option{hint}; accepted: {accepted}")
}

fn bad(name: &str, value: &str, accepted: &str) -> String {
    format!("pgioperf: {name} \"{value}\"; accepted: {accepted}")
}

/// What a word stands for.
fn one_of<T: Copy, const N: usize>(
    name: &str,
    value: &str,
    among: [(&str, T); N],
) -> Result<T, String> {
    let found = among.iter().find(|(known, _)| *known == value);
    found.map(|(_, it)| *it).ok_or_else(|| {
        let names = among.map(|(known, _)| known);
        let (hint, accepted) = (nearest(value, names), names.join(", "));
        format!("pgioperf: {name} \"{value}\"{hint}; accepted: {accepted}")
    })
}

fn number(name: &str, value: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| bad(name, value, &format!("a whole number from {least} to {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Mount;

    fn parse_on(line: &str, mount: Option<&Mount>) -> Result<Pgioperf, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        let around = Surroundings {
            page_size: 4096,
            ncpus: 1,
            mb_memory: 768,
            mount,
            habits: &guest::Profile::uml().habits,
            environment: &|_| None,
            read_file: &|_| Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
        };
        Pgioperf::parse(&words, &around)
    }

    fn parse(line: &str) -> Result<Pgioperf, String> {
        parse_on(line, Some(&Mount::default()))
    }

    #[test]
    fn sizes_follow_the_memory_of_the_machine() {
        let plain = parse("").unwrap();
        assert_eq!((plain.data, plain.wal()), (1536 << 20, 32 << 20));
        assert_eq!((plain.readers, plain.lines, plain.prepares), (16, 3000, false));
        assert_eq!(parse("--size 96m").unwrap().wal(), 2 << 20);
        assert_eq!(parse("--size=393216").unwrap().wal(), 8192);
    }

    #[test]
    fn the_load_of_the_change_to_cfq_differs_in_how_its_writers_sync() {
        let of = |line: &str| {
            let Pgioperf { load, readers, .. } = parse(line).unwrap();
            (load.checkpoint, load.commits_data_only, readers)
        };
        assert_eq!(of(""), (100_000, true, 16));
        assert_eq!(of("--load=mmtests"), of(""));
        assert_eq!(of("--load cfq-wbt --readers=4"), (50_000, false, 4));
        assert!(parse("").unwrap().shares_sequence);
        assert!(!parse("--sequence=own").unwrap().shares_sequence);
    }

    #[test]
    fn files_lie_in_a_directory() {
        let paths = |line: &str| ["data", "wal"].map(|name| parse(line).unwrap().path(name));
        assert_eq!(paths("-D /mnt/pg/"), ["/mnt/pg/data", "/mnt/pg/wal"]);
        assert_eq!(paths("--prepare"), ["./data", "./wal"]);
        assert!(parse("--prepare").unwrap().prepares());
    }

    #[test]
    fn what_is_wrong_is_said_once_with_what_would_do() {
        let options = "accepted: --prepare, --load, --readers, --sequence, --size, --lines, -D";
        for (line, said) in [
            ("16", format!("pgioperf: 16: no such option; {options}")),
            ("--reader=4", format!(": no such option; nearest: \"--readers\"; {options}")),
            ("-D", "pgioperf: -D \"\"; accepted: a directory".to_string()),
            ("--prepare=1", "pgioperf: --prepare \"1\"; accepted: no value".to_string()),
            ("--readers", "--readers \"\"; accepted: a whole number from 0 to 1024".to_string()),
            ("--readers=1025", "\"1025\"; accepted: a whole number from 0 to 1024".to_string()),
            ("--readers=-1", "--readers \"-1\"; accepted: a whole number".to_string()),
            ("--lines=0", "--lines \"0\"; accepted: a whole number from 1 to".to_string()),
            ("--size=64k", format!("pgioperf: --size \"64k\"; accepted: {SIZES}")),
            ("--size=5t", format!("pgioperf: --size \"5t\"; accepted: {SIZES}")),
            ("--size=1.5g", format!("pgioperf: --size \"1.5g\"; accepted: {SIZES}")),
            ("--size=99999999999999999999", format!("accepted: {SIZES}")),
            ("--size=9é", format!("pgioperf: --size \"9é\"; accepted: {SIZES}")),
            ("--sequence=", "--sequence \"\"; accepted: shared, own".to_string()),
            ("--load=cfqwbt", "nearest: \"cfq-wbt\"; accepted: mmtests, cfq-wbt".to_string()),
        ] {
            let refusal = parse(line).unwrap_err();
            assert!(refusal.contains(&said) && !refusal.contains('\n'), "{line}: {refusal}");
        }
        assert!(parse_on("", None).unwrap_err().contains("no file system; accepted: fs = "));
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_it_panic(line in "(--(size|load|lines|readers)[= ])?.{0,20}") {
            let _ = parse(&line);
        }
    }
}
