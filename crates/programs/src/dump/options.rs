//! What was typed behind `dump`.

use base::nearest;

/// A command line of dump, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    pub(super) disk: String,
    /// Size of a record in KiB (`-b`).
    pub(super) record_kib: u64,
    /// All processes share one io_context (0.4b42 and later, and the patch before).
    pub(super) clones_io: bool,
    /// How many files of which size.
    pub(super) population: Vec<(u64, u64)>,
    /// Files lie in pieces of so much; in one if not given.
    pub(super) extent: Option<u64>,
    /// What lies between two pieces.
    pub(super) gap: u64,
    /// Where the file system begins on the disk.
    pub(super) start: u64,
    /// Of how many of its files, in percent, inodes have been used again.
    pub(super) aged: u8,
}

/// Options of the real program that take a value here.
const WITH_VALUE: [char; 3] = ['f', 'b', 'L'];
/// Those that make no difference here.
const WITHOUT: [char; 4] = ['u', 'n', 'q', 'S'];
const OWN: [&str; 6] = ["clone-io", "aged", "population", "extent", "gap", "disk-start"];
const POPULATION: &str = "COUNTxSIZE[,COUNTxSIZE…], such as 2000x16K,40x8M";
const SYNOPSIS: &str = "dump -0uf /dev/null [-b KIB] DISK --population=COUNTxSIZE[,…] \
                        [--extent=SIZE] [--gap=SIZE] [--disk-start=SIZE] [--aged[=on|off|SHARE%]] \
                        [--clone-io[=on|off]]";
/// More would not fit into memory.
const MOST_FILES: u64 = 4_000_000;
const MOST_BYTES: u64 = 1 << 44;

impl Dump {
    /// Understands the words behind `dump`, or says what is wrong with which, and what would do.
    ///
    /// Without a description it is the file system of the disk, if there is one.
    pub fn parse(words: &[String], has_files: bool) -> Result<Dump, String> {
        let mut dump = Dump {
            disk: String::new(),
            record_kib: 10,
            clones_io: false,
            population: Vec::new(),
            extent: None,
            gap: 0,
            start: 0,
            aged: 0,
        };
        let mut output = None;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if let Some(option) = word.strip_prefix("--") {
                dump.set_own(option)?;
            } else if let Some(letters) = word.strip_prefix('-') {
                dump.set_letters(letters, &mut words, &mut output)?;
            } else if dump.disk.is_empty() && word.starts_with("/dev/") {
                dump.disk = word.clone();
            } else {
                return Err(bad("argument", word, SYNOPSIS));
            }
        }
        if dump.disk.is_empty() {
            return Err(format!("dump: no disk; accepted: {SYNOPSIS}"));
        }
        if output.as_deref() != Some("/dev/null") {
            let output = output.unwrap_or_else(|| "/dev/tape".to_string());
            return Err(bad("-f", &output, "/dev/null (tapes are not modelled)"));
        }
        if dump.population.is_empty() && !has_files {
            return Err(format!(
                "dump: no --population, and there is no file system; accepted: {POPULATION}"
            ));
        }
        Ok(dump)
    }

    /// Whether the file system is described, rather than there.
    pub fn is_described(&self) -> bool {
        !self.population.is_empty()
    }

    /// `-0uf FILE`, `-b10`.
    fn set_letters<'a>(
        &mut self,
        letters: &str,
        words: &mut impl Iterator<Item = &'a String>,
        output: &mut Option<String>,
    ) -> Result<(), String> {
        for (at, letter) in letters.char_indices() {
            if !WITH_VALUE.contains(&letter) {
                match letter {
                    '0' => continue,
                    '1'..='9' => {
                        let accepted = "0: what changed since is not known";
                        return Err(bad("level", &letter.to_string(), accepted));
                    }
                    _ if WITHOUT.contains(&letter) => continue,
                    _ => return Err(bad("option", &format!("-{letter}"), SYNOPSIS)),
                }
            }
            let behind = &letters[at + letter.len_utf8()..];
            let value = match behind {
                "" => words.next().cloned(),
                _ => Some(behind.to_string()),
            };
            let value =
                value.ok_or_else(|| bad("option", &format!("-{letter}"), "a value behind it"))?;
            match letter {
                'f' => *output = Some(value),
                'b' => {
                    let size = value.parse().ok().filter(|size| (1..=1024).contains(size));
                    self.record_kib = size.ok_or_else(|| bad("-b", &value, "1 to 1024 KiB"))?;
                }
                _ => {}
            }
            return Ok(());
        }
        Ok(())
    }

    /// What the real program does not have.
    fn set_own(&mut self, option: &str) -> Result<(), String> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match name {
            "clone-io" => self.clones_io = switch("--clone-io", value)?,
            "aged" => self.aged = share("--aged", value)?,
            "population" => self.population = population(value)?,
            "extent" => self.extent = Some(blocks("--extent", value, 4096)?),
            "gap" => self.gap = blocks("--gap", value, 0)?,
            "disk-start" => self.start = blocks("--disk-start", value, 0)?,
            _ => {
                let hint = nearest(name, OWN);
                let problem = format!("dump: --{name}: no such option{hint}");
                return Err(format!("{problem}; accepted: {SYNOPSIS}"));
            }
        }
        Ok(())
    }

    /// What is written: data in KiB, a header for each file and for every 512 KiB.
    pub(super) fn tape_kib(&self) -> u64 {
        let of_file = |size: u64| size.div_ceil(1024) + size.div_ceil(512 * 1024).max(1);
        self.population.iter().map(|(count, size)| count * of_file(*size)).sum()
    }
}

fn bad(what: &str, value: &str, accepted: &str) -> String {
    format!("dump: {what} \"{value}\"; accepted: {accepted}")
}

/// A share in percent; all of it where nothing or `on` is said.
fn share(option: &str, value: &str) -> Result<u8, String> {
    let percent = value.strip_suffix('%').and_then(|it| it.parse().ok());
    match (value, percent.filter(|it| *it <= 100)) {
        ("" | "on", _) => Ok(100),
        ("off", _) => Ok(0),
        (_, Some(percent)) => Ok(percent),
        _ => Err(bad(option, value, "on, off, 0% to 100%")),
    }
}

/// Nothing means on, so that it can be written as an option without a value.
fn switch(option: &str, value: &str) -> Result<bool, String> {
    match value {
        "" | "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(bad(option, value, "on, off")),
    }
}

fn population(value: &str) -> Result<Vec<(u64, u64)>, String> {
    let refused = || bad("--population", value, POPULATION);
    let mut groups = Vec::new();
    for part in value.split(',') {
        let (count, bytes) = part.split_once('x').ok_or_else(refused)?;
        let count = count.parse().ok().filter(|count| (1..=MOST_FILES).contains(count));
        groups.push((count.ok_or_else(refused)?, size(bytes).ok_or_else(refused)?));
    }
    let files: u64 = groups.iter().map(|(count, _)| count).sum();
    let bytes: u128 =
        groups.iter().map(|(count, size)| u128::from(*count) * u128::from(*size)).sum();
    if files > MOST_FILES || bytes > u128::from(MOST_BYTES) {
        let accepted = format!("at most {MOST_FILES} files and {} TiB", MOST_BYTES >> 40);
        return Err(bad("--population", value, &accepted));
    }
    Ok(groups)
}

/// A size in whole blocks.
fn blocks(option: &str, value: &str, least: u64) -> Result<u64, String> {
    let bytes = size(value).filter(|bytes| bytes.is_multiple_of(4096) && *bytes >= least);
    bytes.ok_or_else(|| bad(option, value, "whole blocks of 4 KiB, such as 64K, 1M"))
}

fn size(value: &str) -> Option<u64> {
    crate::size::bytes(value, "kKmMgG").filter(|bytes| *bytes <= MOST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Dump, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        Dump::parse(&words, false)
    }

    #[test]
    fn the_command_of_the_report_is_understood() {
        let line = "-0uf /dev/null /dev/sda6 --population=2000x16K,40x8M";
        let dump = parse(line).unwrap();
        assert_eq!((dump.disk.as_str(), dump.record_kib, dump.clones_io), ("/dev/sda6", 10, false));
        assert_eq!(dump.population, [(2000, 16 << 10), (40, 8 << 20)]);
        // 17 KiB each, and 8192 KiB with 16 headers each.
        assert_eq!(dump.tape_kib(), 2000 * 17 + 40 * 8208);
        let line =
            "-0 -b32 -f /dev/null --clone-io --extent=64K --gap=8K --population=1x0 /dev/sdb";
        let dump = parse(line).unwrap();
        assert_eq!((dump.record_kib, dump.clones_io), (32, true));
        assert_eq!((dump.extent, dump.gap), (Some(65_536), 8_192));
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_would_do() {
        let refusal = |line: &str| parse(line).unwrap_err();
        assert!(refusal("-0uf /dev/null").starts_with("dump: no disk; accepted: dump -0uf"));
        let tape = "-0u /dev/sda --population=1x1K";
        assert!(refusal(tape).contains("-f \"/dev/tape\"; accepted: /dev/null"));
        assert!(refusal("-0uf /dev/null /dev/sda").contains("no --population"));
        assert!(refusal("-3f /dev/null /dev/sda").contains("level \"3\"; accepted: 0"));
        assert!(refusal("-0f").contains("\"-f\"; accepted: a value"));
        assert!(refusal("-0xf /dev/null /dev/sda").contains("option \"-x\""));
        assert!(refusal("--clone-i /dev/sda").contains("nearest: \"clone-io\""));
        let with = |option: &str| refusal(&format!("-0f /dev/null /dev/sda {option}"));
        assert!(with("--population=3").contains("accepted: COUNTxSIZE"));
        assert!(with("--population=9999999x1K").contains("accepted: COUNTxSIZE"));
        assert!(with("--population=100000x1G").contains("TiB"));
        assert!(with("--extent=5").contains("whole blocks"));
        assert!(with("-b 0").contains("1 to 1024 KiB"));
        assert!(with("--clone-io=1").contains("\"1\"; accepted: on, off"));
        assert!(with("home").contains("argument \"home\""));
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_it_panic(
            words in proptest::collection::vec(
                proptest::sample::select(vec![
                    "-0uf", "/dev/null", "/dev/sda", "-b", "-bé", "-é", "-", "--", "--population=x",
                    "--population=1x1,", "--population=4x99999999999999999999", "--gap=é", "--gap=",
                    "--extent=0", "--clone-io", "--clone-io=1", "-0", "x",
                ]),
                0..8,
            ),
        ) {
            let words: Vec<String> = words.into_iter().map(str::to_string).collect();
            let _ = Dump::parse(&words, words.len().is_multiple_of(2));
        }
    }
}
