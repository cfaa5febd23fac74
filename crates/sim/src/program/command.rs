//! From the command a person types to a program and how it is run.
//!
//! A command line is split into words as a shell does it, without expansions. Words that say how
//! to run a program (`ionice`, `nice`, `taskset`, `cgexec`, `systemd-run --scope`) are taken off
//! one after the other; what remains names the program.

use super::{LIST, Program, Step, cp, dd, dump, fio, sysbench};
use crate::cores::CoreSet;
use base::{Duration, nearest};
use block::{Ioprio, IoprioClass};

/// A command, understood.
#[derive(Clone, Debug)]
pub struct Command {
    /// What runs.
    pub program: Program,
    /// The I/O priority that `ionice` sets.
    pub ioprio: Option<Ioprio>,
    /// The nice value that `nice` sets.
    pub nice: Option<i8>,
    /// The cores that `taskset` allows.
    pub affinity: Option<CoreSet>,
    /// The control group of `cgexec` or `systemd-run`.
    pub cgroup: Option<String>,
    /// The weight that `systemd-run -p IOWeight=` sets.
    pub weight: Option<u32>,
}

/// Why a command cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The words cannot be told apart.
    #[error("{line}: {problem}; accepted: one command, quoted as for a shell, without expansions")]
    Quoting {
        /// The command line.
        line: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A prefix is not written as it must be.
    #[error("{prefix}: {problem}; accepted: {accepted}")]
    Prefix {
        /// Which.
        prefix: &'static str,
        /// What is wrong.
        problem: String,
        /// What would be accepted.
        accepted: &'static str,
    },
    /// There is no such program here.
    #[error("{name}: this program is not modelled{hint}; there are {all}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest one, as the end of a sentence.
        hint: String,
        /// All there are.
        all: String,
    },
    /// The program itself refuses, in its own words.
    #[error("{0}")]
    Refused(String),
}

/// Understands a command line where there are no files and no environment, for a host of one core.
pub fn parse(line: &str) -> Result<Command, CommandError> {
    let nowhere = fio::Context {
        page_size: 4096,
        ncpus: 1,
        mb_memory: 1024,
        mount: None,
        environment: &|_| None,
        read_file: &|_| Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
    };
    parse_in(line, &nowhere)
}

/// Understands a command line in its surroundings: one command, or several with `;` and `&&`
/// between them.
pub fn parse_in(line: &str, context: &fio::Context<'_>) -> Result<Command, CommandError> {
    let parts = split_sequence(line);
    let [(_, only)] = parts.as_slice() else {
        return parse_sequence(&parts, context);
    };
    parse_one(only, context)
}

fn parse_sequence(
    parts: &[(bool, String)],
    context: &fio::Context<'_>,
) -> Result<Command, CommandError> {
    let mut steps = Vec::new();
    for (needs_success, part) in parts {
        let command = parse_one(part, context)?;
        let is_plain = command.ioprio.is_none()
            && command.nice.is_none()
            && command.affinity.is_none()
            && command.cgroup.is_none();
        if !is_plain {
            let refusal = format!(
                "{}: a prefix in a sequence of commands is not modelled; accepted: ioprio and \
                 cgroup of the job, or one command",
                part.trim()
            );
            return Err(CommandError::Refused(refusal));
        }
        steps.push(Step { needs_success: *needs_success, program: command.program });
    }
    Ok(Prefixes::default().with(Program::Sequence(steps)))
}

/// Cuts a line at each `;` and `&&` that is not quoted, and says before which of the parts there is
/// an `&&`. An empty part at the end is left out.
pub fn split_sequence(line: &str) -> Vec<(bool, String)> {
    let mut parts = vec![(false, String::new())];
    let (mut quote, mut letters) = (None, line.chars().peekable());
    while let Some(letter) = letters.next() {
        let is_and = letter == '&' && letters.peek() == Some(&'&');
        match (quote, letter) {
            (None, ';') => {
                parts.push((false, String::new()));
                continue;
            }
            (None, '&') if is_and => {
                letters.next();
                parts.push((true, String::new()));
                continue;
            }
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
        let part = &mut parts.last_mut().expect("there is always one").1;
        part.push(letter);
        if letter == '\\' && quote != Some('\'') {
            part.extend(letters.next());
        }
    }
    if parts.len() > 1 && parts.last().is_some_and(|(_, part)| part.trim().is_empty()) {
        parts.pop();
    }
    parts
}

fn parse_one(line: &str, context: &fio::Context<'_>) -> Result<Command, CommandError> {
    let words = split(line)?;
    let mut rest: &[String] = &words;
    let mut found = Prefixes::default();
    while let Some((name, arguments)) = rest.split_first() {
        rest = match name.as_str() {
            "ionice" => found.ionice(arguments)?,
            "nice" => found.nice(arguments)?,
            "taskset" => found.taskset(arguments)?,
            "cgexec" => found.cgexec(arguments)?,
            "systemd-run" => found.systemd_run(arguments)?,
            "dd" => {
                let program = dd::Dd::parse(arguments).map_err(CommandError::Refused)?;
                return Ok(found.with(Program::Dd(program)));
            }
            "cp" => {
                let program = cp::Cp::parse(arguments).map_err(CommandError::Refused)?;
                return Ok(found.with(Program::Cp(program)));
            }
            "sleep" => return Ok(found.with(Program::Sleep(parse_sleep(arguments)?))),
            "sync" if arguments.is_empty() => return Ok(found.with(Program::Sync)),
            "sync" => {
                let refusal = "sync: operands are not modelled; accepted: sync alone";
                return Err(CommandError::Refused(refusal.to_string()));
            }
            "fio" => {
                let refused = |error: fio::ParseError| CommandError::Refused(error.to_string());
                let program = fio::Fio::parse(arguments, context).map_err(refused)?;
                return Ok(found.with(Program::Fio(program)));
            }
            "dump" => {
                let program = dump::Dump::parse(arguments).map_err(CommandError::Refused)?;
                return Ok(found.with(Program::Dump(program)));
            }
            "sysbench" => {
                let program =
                    sysbench::Sysbench::parse(arguments).map_err(CommandError::Refused)?;
                return Ok(found.with(Program::Sysbench(program)));
            }
            name => return Err(unknown(name)),
        };
    }
    Err(unknown(""))
}

/// `sleep NUMBER[s|m]`, with a fraction perhaps.
fn parse_sleep(words: &[String]) -> Result<Duration, CommandError> {
    let refuse = || {
        let given = words.join(" ");
        let refusal =
            format!("sleep: '{given}' is no time; accepted: sleep 1.5, sleep 2s, sleep 1m");
        CommandError::Refused(refusal)
    };
    let [word] = words else { return Err(refuse()) };
    let (number, unit) = match word.strip_suffix('m') {
        Some(number) => (number, 60_000),
        None => (word.strip_suffix('s').unwrap_or(word), 1000),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| text.parse::<u32>().map(u64::from).map_err(|_| refuse());
    let thousandths = digits(&format!("{part:0<3}")[..3])?;
    Ok(Duration::from_millis(digits(whole)? * unit + thousandths * unit / 1000))
}

fn unknown(name: &str) -> CommandError {
    let names = || LIST.iter().map(|(name, _)| *name);
    CommandError::Unknown {
        name: if name.is_empty() { "no program".to_string() } else { name.to_string() },
        hint: nearest(name, names()),
        all: names().collect::<Vec<_>>().join(", "),
    }
}

/// Splits a line into words, as a shell does.
pub fn split(line: &str) -> Result<Vec<String>, CommandError> {
    let fail = |problem: &str| {
        Err(CommandError::Quoting { line: line.to_string(), problem: problem.to_string() })
    };
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('\'') => break,
                        Some(inner) => word.push(inner),
                        None => return fail("a ' is not closed"),
                    }
                }
            }
            '"' => match quoted(&mut letters) {
                Some(inner) => word.get_or_insert_default().push_str(&inner),
                None => return fail("a \" is not closed"),
            },
            '\\' => match letters.next() {
                Some(inner) => word.get_or_insert_default().push(inner),
                None => return fail("nothing follows the \\"),
            },
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '`' | '$' => {
                return fail(&format!("\"{letter}\" means something to a shell"));
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

/// The rest of a word in double quotes.
fn quoted(letters: &mut std::str::Chars<'_>) -> Option<String> {
    let mut word = String::new();
    loop {
        match letters.next()? {
            '"' => return Some(word),
            '\\' => match letters.next()? {
                escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            other => word.push(other),
        }
    }
}

/// What the words before a program say.
#[derive(Default)]
struct Prefixes {
    ioprio: Option<Ioprio>,
    nice: Option<i8>,
    affinity: Option<CoreSet>,
    cgroup: Option<String>,
    weight: Option<u32>,
}

type Rest<'a> = Result<&'a [String], CommandError>;

impl Prefixes {
    fn with(self, program: Program) -> Command {
        let Prefixes { ioprio, nice, affinity, cgroup, weight } = self;
        Command { program, ioprio, nice, affinity, cgroup, weight }
    }

    fn ionice<'a>(&mut self, words: &'a [String]) -> Rest<'a> {
        let refuse = |problem: String| CommandError::Prefix {
            prefix: "ionice",
            problem,
            accepted: "-c none|realtime|best-effort|idle (or 0 to 3), -n 0 to 7, -t",
        };
        let mut class = IoprioClass::BestEffort;
        let mut level = 4;
        let mut options = Options { words };
        while let Some((name, value)) =
            options.next(&["-c", "-n", "--class", "--classdata"], &["-t", "--ignore"])
        {
            let value = value.ok_or_else(|| refuse(format!("{name} without a value")))?;
            match name.as_str() {
                "-c" | "--class" => {
                    class = match value.to_ascii_lowercase().as_str() {
                        "0" | "none" => IoprioClass::None,
                        "1" | "realtime" => IoprioClass::RealTime,
                        "2" | "best-effort" => IoprioClass::BestEffort,
                        "3" | "idle" => IoprioClass::Idle,
                        _ => return Err(refuse(format!("class \"{value}\""))),
                    };
                }
                "-n" | "--classdata" => {
                    level = value.parse().map_err(|_| refuse(format!("level \"{value}\"")))?;
                }
                _ => {}
            }
        }
        if matches!(class, IoprioClass::None | IoprioClass::Idle) {
            level = 0;
        }
        let ioprio = Ioprio::new(class, level).ok_or_else(|| refuse(format!("level {level}")))?;
        self.ioprio = Some(ioprio);
        options.rest("ionice", refuse)
    }

    fn nice<'a>(&mut self, words: &'a [String]) -> Rest<'a> {
        let refuse = |problem: String| CommandError::Prefix {
            prefix: "nice",
            problem,
            accepted: "-n NUMBER, -NUMBER, --adjustment=NUMBER, then a command",
        };
        let mut by = 10;
        let mut words = words;
        if let Some(first) = words.first().filter(|word| word.starts_with('-')) {
            let mut taken = 1;
            let number = match first.strip_prefix("--adjustment=").or(first.strip_prefix("-n")) {
                Some("") => {
                    taken = 2;
                    words.get(1).map_or("", String::as_str)
                }
                Some(number) => number,
                None => &first[1..],
            };
            by = number.parse().map_err(|_| refuse(format!("\"{number}\" is no number")))?;
            words = &words[taken..];
        }
        let value = i32::from(self.nice.unwrap_or(0)).saturating_add(by);
        self.nice = Some(value.clamp(-20, 19) as i8);
        Options { words }.rest("nice", refuse)
    }

    fn taskset<'a>(&mut self, words: &'a [String]) -> Rest<'a> {
        let refuse = |problem: String| CommandError::Prefix {
            prefix: "taskset",
            problem,
            accepted: "-c LIST such as 0,2-3, or a mask in hexadecimal digits, then a command",
        };
        let is_list = |word: &&String| matches!(word.as_str(), "-c" | "--cpu-list");
        let as_list = words.first().filter(is_list).is_some();
        let words = &words[usize::from(as_list)..];
        let cores = words.first().ok_or_else(|| refuse("no cores".to_string()))?;
        let set = if as_list { core_list(cores) } else { core_mask(cores) };
        self.affinity = Some(set.ok_or_else(|| refuse(format!("cores \"{cores}\"")))?);
        Options { words: &words[1..] }.rest("taskset", refuse)
    }

    fn cgexec<'a>(&mut self, words: &'a [String]) -> Rest<'a> {
        let refuse = |problem: String| CommandError::Prefix {
            prefix: "cgexec",
            problem,
            accepted: "-g CONTROLLERS:PATH, then a command",
        };
        let mut options = Options { words };
        while let Some((_, value)) = options.next(&["-g"], &["--sticky"]) {
            let value = value.ok_or_else(|| refuse("-g without a value".to_string()))?;
            let path = value.split_once(':').map(|(_, path)| path);
            let path = path.ok_or_else(|| refuse(format!("group \"{value}\"")))?;
            self.cgroup = Some(path.to_string());
        }
        if self.cgroup.is_none() {
            return Err(refuse("no group".to_string()));
        }
        options.rest("cgexec", refuse)
    }

    fn systemd_run<'a>(&mut self, words: &'a [String]) -> Rest<'a> {
        let refuse = |problem: String| CommandError::Prefix {
            prefix: "systemd-run",
            problem,
            accepted: "--scope, --slice=NAME, --unit=NAME, -p IOWeight=1 to 10000, then a command",
        };
        let valued = ["-p", "--property", "--slice", "--unit", "-u"];
        let bare = ["--scope", "--user", "--quiet", "-q", "--collect", "-G", "--same-dir", "-d"];
        let (mut slice, mut unit) = ("system.slice".to_string(), "run.scope".to_string());
        let mut is_scope = false;
        let mut options = Options { words };
        while let Some((name, value)) = options.next(&valued, &bare) {
            is_scope |= name == "--scope";
            if bare.contains(&name.as_str()) {
                continue;
            }
            let value = value.ok_or_else(|| refuse(format!("{name} without a value")))?;
            match name.as_str() {
                "--slice" => slice = with_suffix(&value, ".slice"),
                "--unit" | "-u" => unit = with_suffix(&value, ".scope"),
                _ => {
                    let weight = value.strip_prefix("IOWeight=").and_then(|it| it.parse().ok());
                    let weight = weight.filter(|weight| (1..=10_000).contains(weight));
                    self.weight = Some(weight.ok_or_else(|| refuse(format!("-p {value}")))?);
                }
            }
        }
        if !is_scope {
            return Err(refuse("no --scope".to_string()));
        }
        self.cgroup = Some(format!("/{slice}/{unit}"));
        options.rest("systemd-run", refuse)
    }
}

/// Options at the beginning of a list of words.
struct Options<'a> {
    words: &'a [String],
}

impl<'a> Options<'a> {
    /// The next option with its value, if it is one that has one.
    fn next(&mut self, valued: &[&str], bare: &[&str]) -> Option<(String, Option<String>)> {
        let first = self.words.first()?;
        if first == "--" {
            return None;
        }
        if bare.contains(&first.as_str()) {
            self.words = &self.words[1..];
            return Some((first.clone(), Some(String::new())));
        }
        for name in valued {
            let Some(value) = first.strip_prefix(name) else { continue };
            let value = value.strip_prefix('=').unwrap_or(value);
            if !value.is_empty() {
                self.words = &self.words[1..];
                return Some((name.to_string(), Some(value.to_string())));
            }
            let value = self.words.get(1).cloned();
            self.words = &self.words[self.words.len().min(2)..];
            return Some((name.to_string(), value));
        }
        None
    }

    /// The command behind the options.
    fn rest(
        self,
        prefix: &str,
        refuse: impl Fn(String) -> CommandError,
    ) -> Result<&'a [String], CommandError> {
        let words = match self.words.split_first() {
            Some((first, rest)) if first == "--" => rest,
            _ => self.words,
        };
        match words.first() {
            None => Err(refuse(format!("no command follows {prefix}"))),
            Some(first) if first.starts_with('-') => Err(refuse(format!("option \"{first}\""))),
            Some(_) => Ok(words),
        }
    }
}

fn with_suffix(name: &str, suffix: &str) -> String {
    if name.ends_with(suffix) { name.to_string() } else { format!("{name}{suffix}") }
}

/// `0,2-3`.
fn core_list(text: &str) -> Option<CoreSet> {
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > 4095 {
            return None;
        }
        cores.extend(first..=last);
    }
    Some(CoreSet::of(cores))
}

/// `0xd` or `d`.
fn core_mask(text: &str) -> Option<CoreSet> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let mask = u128::from_str_radix(digits, 16).ok().filter(|mask| *mask != 0)?;
    Some(CoreSet::of((0..128).filter(|core| mask & 1 << core != 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_follow_each_other_with_semicolons_and_conditions() {
        let line = "dd if=/mnt/a of=/mnt/b; sync && sleep 1.5;";
        let Program::Sequence(steps) = parse(line).unwrap().program else { panic!("{line}") };
        assert_eq!(
            steps.iter().map(|it| it.needs_success).collect::<Vec<_>>(),
            [false, false, true]
        );
        assert!(
            matches!(&steps[2].program, Program::Sleep(it) if *it == Duration::from_millis(1500))
        );
        assert_eq!(split_sequence("a 'x;y' \\; b").len(), 1);
        assert!(
            parse("nice sync; sync").unwrap_err().to_string().contains("a prefix in a sequence")
        );
        assert!(parse("sleep x").unwrap_err().to_string().contains("accepted: sleep 1.5"));
    }

    const DD: &str = "dd if=/dev/zero of=/dev/sda";

    fn words(line: &str) -> Vec<String> {
        split(line).unwrap()
    }

    fn refusal(line: &str) -> String {
        parse(line).unwrap_err().to_string()
    }

    #[test]
    fn words_are_quoted_as_for_a_shell() {
        assert_eq!(words(r#"dd  'a b' "c\"d\e" f\ g ''"#), ["dd", "a b", "c\"d\\e", "f g", ""]);
        assert_eq!(words(r"--x='1 2'3"), ["--x=1 23"]);
        assert!(split("dd 'x").is_err() && split("dd \"x").is_err() && split("dd \\").is_err());
        assert_eq!(
            refusal("dd if=/dev/sda | cat"),
            "dd if=/dev/sda | cat: \"|\" means something to a shell; accepted: one command, quoted \
             as for a shell, without expansions"
        );
    }

    #[test]
    fn prefixes_say_how_a_program_runs() {
        let line = "nice -n 5 ionice -c2 -n 0 taskset -c 0,2-3 systemd-run --scope \
                    -p IOWeight=200 --slice=batch -- dd if=/dev/zero of=/dev/sda count=1";
        let command = parse(line).unwrap();
        assert_eq!(command.ioprio, Ioprio::new(IoprioClass::BestEffort, 0));
        assert_eq!(command.nice, Some(5));
        assert_eq!(command.affinity, Some(CoreSet::of([0, 2, 3])));
        assert_eq!(command.cgroup.as_deref(), Some("/batch.slice/run.scope"));
        assert_eq!(command.weight, Some(200));
        assert!(matches!(command.program, Program::Dd(_)));
        let command = parse(&format!("cgexec -g blkio:db nice ionice -c idle {DD}")).unwrap();
        assert_eq!(command.ioprio.unwrap().class, IoprioClass::Idle);
        assert_eq!((command.nice, command.cgroup.as_deref()), (Some(10), Some("db")));
        let command = parse(&format!("taskset d nice -19 {DD}")).unwrap();
        assert_eq!((command.affinity, command.nice), (Some(CoreSet::of([0, 2, 3])), Some(19)));
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        assert_eq!(
            refusal("openssl -a x y"),
            "openssl: this program is not modelled; there are cp, dd, dump, fio, sleep, sync, sysbench"
        );
        assert_eq!(
            refusal("d if=x"),
            "d: this program is not modelled; nearest: \"dd\"; there are cp, dd, dump, fio, sleep, sync, \
             sysbench"
        );
        assert!(refusal("ionice -c 4 dd").starts_with("ionice: class \"4\"; accepted: -c none"));
        assert!(refusal("ionice -n 8 dd").starts_with("ionice: level 8"));
        assert!(refusal("ionice -p 77").starts_with("ionice: option \"-p\""));
        assert!(refusal("nice -n x dd").starts_with("nice: \"x\" is no number"));
        assert!(refusal("taskset -c 3-1 dd").starts_with("taskset: cores \"3-1\""));
        assert!(refusal("taskset -c 1").starts_with("taskset: no command follows"));
        assert!(refusal("systemd-run dd").starts_with("systemd-run: no --scope"));
        assert!(refusal("cgexec dd").starts_with("cgexec: no group"));
        assert_eq!(
            refusal(""),
            "no program: this program is not modelled; there are cp, dd, dump, fio, sleep, sync, sysbench"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_it_panic(
            words in proptest::collection::vec(
                proptest::sample::select(vec![
                    "dd", "ionice", "nice", "taskset", "cgexec", "systemd-run", "-c", "-n", "-g",
                    "-p", "--scope", "--slice=a", "--", "0-2", "ff", "bs=1k", "bs=", "count=9xB",
                    "if=/dev/zero", "of=/dev/sda", "conv=sync,,", "oflag=direct", "seek=7EB", "'",
                    "\"", "\\", "é", "-19", "IOWeight=5", "=", "4294967295", "0-65535",
                ]),
                0..9,
            ),
            any in ".{0,20}",
        ) {
            let _ = parse(&words.join(" "));
            let _ = parse(&any);
            let _ = parse(&format!("dd {any}={any}"));
        }
    }
}
