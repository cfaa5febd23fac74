//! A job of an experiment: what runs, as whom, when.

use super::cgroup::MoveSpec;
use super::keys;
use super::setting::{Setting, is_group_file, split, unquoted};
use crate::error::Error;
use base::Duration;
use block::{Ioprio, IoprioClass};
pub use programs::replay::Pace;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A job as it is described.
#[derive(Clone, Debug)]
pub struct JobSpec {
    /// Its name in results.
    pub name: String,
    /// Whether nobody gave it that name, so that what it runs says a better one.
    pub is_unnamed: bool,
    /// What it does.
    pub work: Work,
    /// How many of it run at once, as it was written; one if not given.
    pub clones: Option<String>,
    /// The path of its control group.
    pub cgroup: Option<String>,
    /// The weight of that group.
    pub weight: Option<u32>,
    /// What is written to files of that group.
    pub files: Vec<Setting>,
    /// When its tasks go to other control groups.
    pub moves: Vec<MoveSpec>,
    /// Its I/O priority.
    pub ioprio: Option<Ioprio>,
    /// When it starts.
    pub start: Duration,
    /// How long it runs at most.
    pub duration: Option<Duration>,
    /// It ends when all jobs that are not in the background have ended.
    pub background: bool,
    /// Where it is described.
    pub place: String,
}

/// What a job does.
#[derive(Clone, Debug)]
pub enum Work {
    /// A command as a person types it.
    Command(String),
    /// A fio job file.
    JobFile(PathBuf),
    /// The requests of a recording.
    Trace(Recording),
}

/// A recording to be replayed.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The path as it was given.
    pub path: PathBuf,
    /// What it was read as.
    pub format: trace::Format,
    /// What it holds.
    pub arrivals: Arc<[trace::Arrival]>,
    /// What a reader of results should know of it.
    pub remarks: Vec<String>,
    /// When its requests are submitted.
    pub pace: Pace,
}

impl JobSpec {
    /// A job that runs at once, as nobody in particular.
    pub fn new(name: impl Into<String>, work: Work, place: impl Into<String>) -> JobSpec {
        JobSpec {
            name: name.into(),
            is_unnamed: false,
            work,
            clones: None,
            cgroup: None,
            weight: None,
            files: Vec::new(),
            moves: Vec::new(),
            ioprio: None,
            start: Duration::ZERO,
            duration: None,
            background: false,
            place: place.into(),
        }
    }

    /// A command that is named by the program it runs.
    pub fn of_command(line: String, place: &str) -> JobSpec {
        let name = programs::program_name(&line);
        JobSpec { is_unnamed: true, ..JobSpec::new(name, Work::Command(line), place) }
    }

    /// Understands `NAME:cgroup=…,weight=…,ioprio=…` with a command.
    pub fn parse(head: &str, command: &str) -> Result<JobSpec, Error> {
        let place = format!("--job '{head}'");
        let (name, options) = head.split_once(':').unwrap_or((head, ""));
        check_name(name, &place, JOB_HEAD)?;
        let mut job = JobSpec::new(name, Work::Command(command.to_string()), place.clone());
        let heads = || keys::JOB.iter().filter(|key| !key.flags.is_empty());
        for option in split(options).iter().filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            if is_group_file(name) {
                job.files.push(Setting::parse(option, &place)?);
                continue;
            }
            let found = heads().find(|key| key.name == name && option != name);
            let Some(set) = found.and_then(|key| key.set) else {
                let names = heads().map(|key| key.name).chain(keys::file_names());
                let hint = base::nearest(name, names);
                let problem = format!("a job has no option \"{option}\"{hint}");
                return Err(Error::bad(place, problem, JOB_HEAD));
            };
            set(&mut job, unquoted(value), &place)?;
        }
        Ok(job)
    }
}

const MOST_CLONES: usize = 1000;
const JOB_HEAD: &str = "NAME[:cgroup=PATH,weight=1 to 10000,ioprio=CLASS/LEVEL,io.max=riops=100 …]";

/// A job is called in results by its name.
pub(super) fn check_name(name: &str, place: &str, accepted: &str) -> Result<(), Error> {
    match name.trim().is_empty() {
        true => Err(Error::bad(place, "the job has no name", accepted)),
        false => Ok(()),
    }
}

/// How many of a job run at once.
pub fn parse_clones(text: &str, place: &str) -> Result<usize, Error> {
    let number = text.parse().ok().filter(|number| (1..=MOST_CLONES).contains(number));
    let accepted = format!("1 to {MOST_CLONES}, or {{AXIS}}");
    number.ok_or_else(|| Error::bad(place, format!("clones \"{text}\""), accepted))
}

/// A weight of a control group.
pub fn parse_weight(text: &str, place: &str) -> Result<u32, Error> {
    let weight = text.parse().ok().filter(|weight| (1..=10_000).contains(weight));
    weight.ok_or_else(|| Error::bad(place, format!("weight \"{text}\""), "1 to 10000"))
}

/// `rt/0`, `be/7`, `idle` or `none`.
pub fn parse_ioprio(text: &str, place: &str) -> Result<Ioprio, Error> {
    let (class, level) = match text.split_once('/') {
        Some((class, level)) => (class, level.parse().ok()),
        None => (text, Some(if matches!(text, "rt" | "be") { 4 } else { 0 })),
    };
    let class = match class {
        "rt" => Some(IoprioClass::RealTime),
        "be" => Some(IoprioClass::BestEffort),
        "idle" => Some(IoprioClass::Idle),
        "none" => Some(IoprioClass::None),
        _ => None,
    };
    let ioprio = class.zip(level).and_then(|(class, level)| Ioprio::new(class, level));
    ioprio.ok_or_else(|| {
        let accepted = "rt/0 to rt/7, be/0 to be/7, idle, none";
        Error::bad(place, format!("ioprio \"{text}\""), accepted)
    })
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Command(line) => f.write_str(line),
            Work::JobFile(path) => write!(f, "fio {}", path.display()),
            Work::Trace(Recording { path, format, arrivals, pace, .. }) => {
                write!(f, "replay {} ({format}, {} requests), ", path.display(), arrivals.len())?;
                match pace {
                    Pace::Timed => f.write_str("timed"),
                    Pace::BackToBack { depth } => write!(f, "closed, depth {depth}"),
                    Pace::Thinking => f.write_str("thinking"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_of_the_command_line_names_group_weight_and_priority() {
        let job = JobSpec::parse("pg:cgroup=db,weight=800,ioprio=rt/2", "dd of=/dev/sda").unwrap();
        assert_eq!((job.name.as_str(), job.cgroup.as_deref()), ("pg", Some("db")));
        assert_eq!((job.weight, job.ioprio), (Some(800), Ioprio::new(IoprioClass::RealTime, 2)));
        assert_eq!(JobSpec::parse("a", "x").unwrap().weight, None);
        let job =
            JobSpec::parse("a:cgroup=db,io.max=rbps=1048576 wiops=100,weight=9", "x").unwrap();
        let files: Vec<(&str, &str)> =
            job.files.iter().map(|it| (it.name.as_str(), it.value.as_str())).collect();
        assert_eq!((files, job.weight), (vec![("io.max", "rbps=1048576 wiops=100")], Some(9)));
    }

    #[test]
    fn a_wrong_option_of_a_job_is_refused() {
        let refusal = |head| JobSpec::parse(head, "dd").unwrap_err().to_string();
        assert!(refusal("pg:wieght=1").contains("nearest: \"weight\""));
        assert!(refusal("pg:oi.max=riops=1").contains("nearest: \"io.max\""));
        assert!(refusal("pg:io.max").contains("\"io.max\" has no value"));
        assert!(refusal("pg:weight=0").ends_with("accepted: 1 to 10000"));
        assert!(refusal("pg:ioprio=rt/8").contains("ioprio \"rt/8\""));
        assert!(refusal(":cgroup=x").contains("no name"));
    }
}
