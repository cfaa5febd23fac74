//! Words before a program that say how it is run: `ionice`, `nice`, `taskset`, `timeout`, `cgexec`
//! and `systemd-run --scope`, and variables that are set. Each takes its own words and leaves the
//! others.

use super::{Command, CommandError};
use crate::Program;
use base::Duration;
use block::{Ioprio, IoprioClass};
use machine::CoreSet;
use std::sync::Arc;

/// What the words before a program say.
#[derive(Default)]
pub(super) struct Prefixes {
    ioprio: Option<Ioprio>,
    nice: Option<i8>,
    affinity: Option<CoreSet>,
    cgroup: Option<String>,
    weight: Option<u32>,
    duration: Option<Duration>,
    /// What is set for the program.
    variables: Vec<(String, String)>,
}

/// The words behind a prefix.
pub(super) type Rest<'a> = Result<&'a [String], CommandError>;

impl Prefixes {
    pub fn with(self, program: Arc<dyn Program>) -> Command {
        let Prefixes { ioprio, nice, affinity, cgroup, weight, duration, .. } = self;
        Command { program, ioprio, nice, affinity, cgroup, weight, duration }
    }

    /// Takes the words of a prefix that is called so; `None` if none is.
    pub fn take<'a>(&mut self, name: &str, words: &'a [String]) -> Option<Rest<'a>> {
        Some(match name {
            "ionice" => self.ionice(words),
            "nice" => self.nice(words),
            "taskset" => self.taskset(words),
            "timeout" => self.timeout(words),
            "cgexec" => self.cgexec(words),
            "systemd-run" => self.systemd_run(words),
            _ => return None,
        })
    }

    /// Whether they change nothing.
    pub fn is_nothing(&self) -> bool {
        let Prefixes { ioprio, nice, affinity, cgroup, weight, duration, variables } = self;
        ioprio.is_none()
            && nice.is_none()
            && affinity.is_none()
            && cgroup.is_none()
            && weight.is_none()
            && duration.is_none()
            && variables.is_empty()
    }

    pub fn ioprio(&self) -> Option<Ioprio> {
        self.ioprio
    }

    pub fn cgroup(&self) -> Option<String> {
        self.cgroup.clone()
    }

    /// A variable that was set.
    pub fn variable(&self, name: &str) -> Option<String> {
        let found = self.variables.iter().rev().find(|(it, _)| it == name);
        found.map(|(_, value)| value.clone())
    }

    /// Whether a word sets a variable, as a shell and `env` take it.
    pub fn sets(&mut self, word: &str) -> bool {
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
        };
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_name(name)) else {
            return false;
        };
        self.variables.push((name.to_string(), value.to_string()));
        true
    }

    fn timeout<'a>(&mut self, words: &'a [String]) -> Rest<'a> {
        let refuse = |problem: String| CommandError::Prefix {
            prefix: "timeout",
            problem,
            accepted: "-k TIME, -s SIGNAL, then a time such as 10, 1.5m or 1h, then a command",
        };
        let valued = ["-k", "--kill-after", "-s", "--signal"];
        let mut options = Options { words };
        let bare = ["--preserve-status", "--foreground", "-v", "--verbose"];
        while let Some((name, value)) = options.next(&valued, &bare) {
            value.ok_or_else(|| refuse(format!("{name} without a value")))?;
        }
        let Some((time, words)) = options.words.split_first() else {
            return Err(refuse("no time".to_string()));
        };
        let time = time_limit(time).ok_or_else(|| refuse(format!("time \"{time}\"")))?;
        self.duration = Some(self.duration.map_or(time, |it| it.min(time)));
        Options { words }.rest("timeout", refuse)
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

/// `10`, `1.5m`; without end is no limit that could be told.
fn time_limit(text: &str) -> Option<Duration> {
    let units = [("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];
    let found = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
    let (number, unit) = found.unwrap_or((text, 1.0));
    let is_number = number.chars().all(|it| it.is_ascii_digit() || it == '.');
    let seconds = number.parse::<f64>().ok().filter(|_| is_number)? * unit;
    (seconds > 0.0 && seconds < 1e9).then(|| Duration::from_nanos((seconds * 1e9) as u64))
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
