//! What was typed behind `dbench`.

use super::loadfile::Load;
use crate::Surroundings;
use base::{Duration, nearest};
use std::path::Path;
use std::sync::Arc;

/// A command line of dbench, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dbench {
    pub(super) clients: u64,
    pub(super) load: Arc<Load>,
    /// Where the load file is on this machine.
    load_file: String,
    /// In which all clients have theirs.
    pub(super) directory: String,
    pub(super) time: Duration,
    pub(super) warm_up: Duration,
    is_of_4_1: bool,
    /// Bytes a second for each client at most.
    pub(super) rate: Option<u64>,
    /// `-s`: files are opened with O_SYNC.
    pub(super) syncs_files: bool,
    /// `-S`: a directory is made durable after each change.
    pub(super) syncs_directories: bool,
    /// `-F`: so is a file after each write.
    pub(super) syncs_writes: bool,
    /// Whether a name that is not there is looked for among all names of its directory.
    pub(super) resolves: bool,
    pub(super) cleans_up: bool,
}

/// Where Debian's package has the load file.
const LOAD_FILE: &str = "/usr/share/dbench/client.txt";

/// An option: its letter if it has one, its name, and whether a value follows.
type Spelling = (Option<char>, &'static str, bool);

const OPTIONS: [Spelling; 10] = [
    (Some('t'), "timelimit", true),
    (Some('c'), "loadfile", true),
    (Some('D'), "directory", true),
    (Some('R'), "target-rate", true),
    (Some('s'), "sync", false),
    (Some('S'), "sync-dir", false),
    (Some('F'), "fsync", false),
    (None, "no-resolve", false),
    (None, "skip-cleanup", false),
    // Of 4.1; 4.0 always warms up for a fifth of the time.
    (None, "warmup", true),
];

/// Processes, each of which takes memory from the beginning.
const MOST_CLIENTS: u64 = 4096;
/// Longer than anybody waits: thirty years.
const MOST_SECONDS: u64 = 1 << 30;
/// What the time is if nobody says.
const SECONDS: u64 = 600;

/// What is collected of the command line.
#[derive(Default)]
struct Typed {
    clients: Option<u64>,
    load_file: Option<String>,
    directory: Option<String>,
    seconds: Option<u64>,
    warm_up: Option<u64>,
    rate: Option<u64>,
    flags: Vec<&'static str>,
}

impl Dbench {
    /// Understands the words behind `dbench`, or says what is wrong with which, and what would do.
    pub fn parse(words: &[String], around: &Surroundings<'_>) -> Result<Dbench, String> {
        let typed = Typed::read(words)?;
        let clients = typed.clients.ok_or(
            "dbench: no number of clients; accepted: dbench [OPTIONS] CLIENTS, as in dbench -t 9 6",
        )?;
        if around.mount.is_none() {
            return Err("dbench: no file system; accepted: fs = \"ext4\" or \"xfs\"".to_string());
        }
        let load_file = typed.load_file.clone().unwrap_or_else(|| LOAD_FILE.to_string());
        let text = (around.read_file)(Path::new(&load_file)).map_err(|cause| {
            format!(
                "dbench: the load file {load_file}: {cause}; accepted: -c FILE, the client.txt of \
                 dbench (Debian has it at {LOAD_FILE}: apt-get install dbench)"
            )
        })?;
        let load = Load::parse(&load_file, &text).map_err(|it| format!("dbench: {it}"))?;
        let seconds = typed.seconds.unwrap_or(SECONDS);
        let is_set = |name| typed.flags.contains(&name);
        Ok(Dbench {
            clients,
            load: Arc::new(load),
            load_file,
            directory: typed.directory.clone().unwrap_or_else(|| ".".to_string()),
            time: Duration::from_secs(seconds),
            warm_up: Duration::from_secs(typed.warm_up.unwrap_or(seconds / 5)),
            is_of_4_1: typed.warm_up.is_some(),
            rate: typed.rate,
            syncs_files: is_set("sync"),
            syncs_directories: is_set("sync-dir"),
            syncs_writes: is_set("fsync"),
            resolves: !is_set("no-resolve"),
            cleans_up: !is_set("skip-cleanup"),
        })
    }

    /// Whether it has an option that 4.0 has not.
    pub fn is_of_4_1(&self) -> bool {
        self.is_of_4_1
    }

    /// The load file, as it was named.
    pub fn load_file(&self) -> &str {
        &self.load_file
    }
}

impl Typed {
    fn read(words: &[String]) -> Result<Typed, String> {
        let mut typed = Typed::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let found = match word.strip_prefix("--") {
                Some(long) => {
                    let (name, value) = match long.split_once('=') {
                        Some((name, value)) => (name, Some(value.to_string())),
                        None => (long, None),
                    };
                    vec![(by_name(name)?, value)]
                }
                None if word.len() > 1 && word.starts_with('-') => letters(&word[1..])?,
                None => {
                    typed.set_clients(word)?;
                    continue;
                }
            };
            for ((_, name, has_value), value) in found {
                let value = match (has_value, value) {
                    (true, None) => words.next().cloned(),
                    (false, Some(value)) => return Err(bad(name, &value, "no value")),
                    (_, value) => value,
                };
                match (has_value, value) {
                    (true, Some(value)) => typed.set(name, value)?,
                    (true, None) => return Err(bad(name, "", "a value")),
                    (false, _) => typed.flags.push(name),
                }
            }
        }
        Ok(typed)
    }

    fn set_clients(&mut self, word: &str) -> Result<(), String> {
        let accepted = format!("one number from 1 to {MOST_CLIENTS}");
        let count = word.parse().ok().filter(|it| (1..=MOST_CLIENTS).contains(it));
        match (count, self.clients) {
            (Some(count), None) => self.clients = Some(count),
            _ => return Err(format!("dbench: clients \"{word}\"; accepted: {accepted}")),
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        let seconds = |least: u64| {
            let number = value.parse().ok().filter(|it| (least..=MOST_SECONDS).contains(it));
            let accepted = format!("seconds from {least} to {MOST_SECONDS}");
            number.ok_or_else(|| bad(name, &value, &accepted))
        };
        match name {
            "timelimit" => self.seconds = Some(seconds(1)?),
            "warmup" => self.warm_up = Some(seconds(0)?),
            "target-rate" => self.rate = Some(rate(&value)?),
            "loadfile" => self.load_file = Some(value),
            _ => self.directory = Some(value),
        }
        Ok(())
    }
}

/// The options that letters behind one dash stand for; a value may follow at once.
fn letters(letters: &str) -> Result<Vec<(Spelling, Option<String>)>, String> {
    let mut found = Vec::new();
    for (at, letter) in letters.char_indices() {
        let option = OPTIONS.into_iter().find(|(it, ..)| *it == Some(letter));
        let option = option.ok_or_else(|| unknown(&format!("-{letter}"), ""))?;
        let rest = letters[at + letter.len_utf8()..].trim_start_matches('=');
        if option.2 && !rest.is_empty() {
            found.push((option, Some(rest.to_string())));
            break;
        }
        found.push((option, None));
    }
    Ok(found)
}

fn by_name(name: &str) -> Result<Spelling, String> {
    let option = OPTIONS.into_iter().find(|(_, it, _)| *it == name);
    option.ok_or_else(|| unknown(&format!("--{name}"), &nearest(name, OPTIONS.map(|it| it.1))))
}

fn unknown(option: &str, hint: &str) -> String {
    let spelled = OPTIONS.map(|(letter, name, _)| match letter {
        Some(letter) => format!("-{letter}, --{name}"),
        None => format!("--{name}"),
    });
    let known = spelled.join("; ");
    format!("dbench: {option}: not modelled, or no option{hint}; accepted: {known}")
}

fn bad(name: &str, value: &str, accepted: &str) -> String {
    format!("dbench: --{name} \"{value}\"; accepted: {accepted}")
}

/// Bytes a second, from a decimal number of 10^6.
fn rate(text: &str) -> Result<u64, String> {
    let refused =
        || bad("target-rate", text, "MB/s such as 1.5, more than 0, up to three decimals");
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    if !is_number(whole) || !is_number(part) || part.len() > 3 {
        return Err(refused());
    }
    let whole: u64 = whole.parse().ok().filter(|it| *it < 1_000_000).ok_or_else(refused)?;
    let part: u64 = format!("{part:0<3}").parse().map_err(|_| refused())?;
    Some(whole * 1_000_000 + part * 1_000).filter(|it| *it > 0).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Mount;

    fn parse(line: &str, mount: Option<&Mount>) -> Result<Dbench, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        let read_file = |path: &Path| match path.to_str() {
            Some("bad") => Ok("\nFoo 1 NT_STATUS_OK\n".to_string()),
            Some("gone") => Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
            _ => Ok("QUERY_FS_INFORMATION 259 NT_STATUS_OK\n".to_string()),
        };
        let around = Surroundings {
            page_size: 4096,
            ncpus: 1,
            mb_memory: 512,
            mount,
            habits: &guest::Profile::uml().habits,
            environment: &|_| None,
            read_file: &read_file,
        };
        Dbench::parse(&words, &around)
    }

    #[test]
    fn words_mean_what_they_mean_to_the_program() {
        let mount = Mount::default();
        let typed = parse("-t 60 -D /mnt/x -sSF 6", Some(&mount)).unwrap();
        assert_eq!((typed.clients, typed.directory.as_str()), (6, "/mnt/x"));
        assert_eq!((typed.time, typed.warm_up), (Duration::from_secs(60), Duration::from_secs(12)));
        assert!(typed.syncs_files && typed.syncs_directories && typed.syncs_writes);
        let typed = parse("--warmup=0 -t9 -c x --target-rate 1.5 1 --no-resolve", Some(&mount));
        let typed = typed.unwrap();
        assert_eq!((typed.load_file(), typed.rate), ("x", Some(1_500_000)));
        assert_eq!((typed.warm_up, typed.resolves), (Duration::ZERO, false));
        let plain = parse("2", Some(&mount)).unwrap();
        assert_eq!(plain.load_file(), LOAD_FILE);
        assert_eq!((plain.time, plain.rate), (Duration::from_secs(600), None));
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_would_do() {
        let mount = Mount::default();
        let refusal = |line: &str| parse(line, Some(&mount)).unwrap_err();
        for (line, said) in [
            ("", "dbench: no number of clients; accepted: dbench [OPTIONS] CLIENTS"),
            ("0", "dbench: clients \"0\"; accepted: one number from 1 to 4096"),
            ("2 3", "dbench: clients \"3\"; accepted: one number"),
            ("-t x 1", "dbench: --timelimit \"x\"; accepted: seconds from 1"),
            ("-t", "dbench: --timelimit \"\"; accepted: a value"),
            ("--sync=1 1", "dbench: --sync \"1\"; accepted: no value"),
            ("-x 1", "dbench: -x: not modelled, or no option; accepted: -t, --timelimit; "),
            ("--timelimt=3 1", "dbench: --timelimt: not modelled, or no option; nearest: "),
            ("-R 0 1", "dbench: --target-rate \"0\"; accepted: MB/s"),
            ("-c bad 1", "dbench: bad:2: no operation \"Foo\""),
            ("-c gone 1", "dbench: the load file gone: "),
        ] {
            let refusal = refusal(line);
            assert!(refusal.starts_with(said), "{line}: {refusal}");
        }
        assert!(parse("1", None).unwrap_err().starts_with("dbench: no file system"));
    }
}
