//! The logs that jobs of fio ask for (`write_lat_log`, `write_bw_log`, `write_iops_log`), in the
//! format of fio 3.33.
//!
//! fio writes them where it runs. A comparison runs a job many times, so each result has a
//! directory there, which is called as its recording would be. A prefix that begins with `/` has
//! that directory beside it. A file that is there is replaced if it is a regular one; nothing else
//! is, and no directory but that of the result is made.

use crate::error::Error;
use crate::plan::{Plan, Row};
use crate::record::directory_name;
use base::Duration;
use programs::fio::account::{Account, Sample};
use programs::fio::{Direction, Fio, Job, Logs};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The accounts of processes of fio, each with the number of its job.
pub(crate) type Accounts = Vec<(usize, Rc<Account>)>;

/// What a log says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Submission,
    Completion,
    Latency,
    Bandwidth,
    Requests,
}

impl Kind {
    const ALL: [Kind; 5] =
        [Kind::Submission, Kind::Completion, Kind::Latency, Kind::Bandwidth, Kind::Requests];

    fn word(self) -> &'static str {
        match self {
            Kind::Submission => "slat",
            Kind::Completion => "clat",
            Kind::Latency => "lat",
            Kind::Bandwidth => "bw",
            Kind::Requests => "iops",
        }
    }

    fn prefix(self, logs: &Logs) -> Option<&String> {
        match self {
            Kind::Bandwidth => logs.bandwidth.as_ref(),
            Kind::Requests => logs.requests.as_ref(),
            _ => logs.latency.as_ref(),
        }
    }

    /// Of one request: nanoseconds, KiB a second, or one.
    fn value(self, sample: &Sample) -> Option<u64> {
        let nanos = sample.completion.as_nanos();
        match self {
            Kind::Submission => sample.submission.map(Duration::as_nanos),
            Kind::Completion => Some(nanos),
            Kind::Latency => Some(nanos + sample.submission.map_or(0, Duration::as_nanos)),
            Kind::Bandwidth => {
                let rate = u128::from(sample.bytes) * 1_000_000_000 / u128::from(nanos.max(1));
                Some(u64::try_from(rate / 1024).unwrap_or(u64::MAX))
            }
            Kind::Requests => Some(1),
        }
    }

    /// Of all requests of a window.
    fn of_window(self, samples: &[&Sample], logs: &Logs, window: Duration) -> Option<u64> {
        let per_second = |amount: u64| {
            let all = u128::from(amount) * 1_000_000_000 / u128::from(window.as_nanos());
            Some(u64::try_from(all).unwrap_or(u64::MAX))
        };
        match self {
            Kind::Bandwidth => per_second(samples.iter().map(|it| it.bytes).sum::<u64>() / 1024),
            Kind::Requests => per_second(samples.len() as u64),
            _ => {
                let values: Vec<u64> = samples.iter().filter_map(|it| self.value(it)).collect();
                match values.len() as u64 {
                    0 => None,
                    _ if logs.largest => values.iter().copied().max(),
                    count => Some(values.iter().sum::<u64>() / count),
                }
            }
        }
    }
}

/// Looks where the logs of a plan would go, before anything runs.
pub fn check(plan: &Plan, parent: &Path) -> Result<(), Error> {
    for row in &plan.rows {
        for job in fio_jobs(row) {
            for prefix in job.logs.prefixes() {
                let directory = parent.join(prefix);
                let directory = directory.parent().unwrap_or(parent).to_path_buf();
                if !directory.is_dir() {
                    let problem = format!("{} is no directory", directory.display());
                    let accepted = "a name, perhaps below a directory that is there";
                    return Err(Error::bad(job.place.to_string(), problem, accepted));
                }
            }
        }
    }
    Ok(())
}

fn fio_jobs(row: &Row) -> impl Iterator<Item = &Job> {
    let programs = row.jobs.iter().flat_map(|planned| planned.program.parts());
    programs.filter_map(|it| it.downcast::<Fio>()).flat_map(Fio::jobs)
}

/// Writes the logs of a run, if they are to be written.
pub(crate) fn write(
    parent: &Option<PathBuf>,
    row: &Row,
    seed: u64,
    accounts: &Accounts,
) -> Result<(), Error> {
    let Some(parent) = parent else { return Ok(()) };
    for kind in Kind::ALL {
        for (prefix, files) in by_file(accounts, kind) {
            let whole = parent.join(&prefix);
            let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let directory = whole.with_file_name(directory_name(row, seed));
            for (suffix, text) in files {
                let name = format!("{name}_{}{suffix}.log", kind.word());
                replace(&directory, &name, &text)?;
            }
        }
    }
    Ok(())
}

/// The first part of the names of some files, and of each the rest and the text.
type Files = Vec<(String, Vec<(String, String)>)>;

fn by_file(accounts: &Accounts, kind: Kind) -> Files {
    let mut files: Files = Vec::new();
    for (_, account) in accounts {
        let Some(prefix) = kind.prefix(&account.logs) else { continue };
        let suffix = match account.logs.per_process {
            true => format!(".{}", account.number + 1),
            false => String::new(),
        };
        let text = text(kind, account);
        let at = files.iter().position(|(other, _)| other == prefix).unwrap_or_else(|| {
            files.push((prefix.clone(), Vec::new()));
            files.len() - 1
        });
        match files[at].1.iter_mut().find(|(other, _)| *other == suffix) {
            Some((_, earlier)) => earlier.push_str(&text),
            None => files[at].1.push((suffix, text)),
        }
    }
    files
}

/// A log: milliseconds, value, direction, bytes, perhaps the offset, priority.
fn text(kind: Kind, account: &Account) -> String {
    let (samples, logs) = (account.samples(), &account.logs);
    let mut text = String::new();
    let Some(window) = logs.window else {
        for sample in &samples {
            if let Some(value) = kind.value(sample) {
                line(&mut text, logs, (sample.at, value), Some(sample), sample.direction);
            }
        }
        return text;
    };
    let number = |sample: &Sample| sample.at.as_nanos() / window.as_nanos();
    for samples in samples.chunk_by(|one, other| number(one) == number(other)) {
        let end = window * (number(&samples[0]) + 1);
        for direction in Direction::ALL {
            let its: Vec<&Sample> = samples.iter().filter(|it| it.direction == direction).collect();
            if its.is_empty() {
                continue;
            }
            if let Some(value) = kind.of_window(&its, logs, window) {
                line(&mut text, logs, (end, value), None, direction);
            }
        }
    }
    text
}

fn line(
    text: &mut String,
    logs: &Logs,
    (at, value): (Duration, u64),
    of: Option<&Sample>,
    direction: Direction,
) {
    let (bytes, offset) = of.map_or((0, 0), |sample| (sample.bytes, sample.offset));
    let priority = of.map_or(0, |sample| sample.priority);
    let millis = at.as_nanos() / 1_000_000;
    let mut put = |text_of: std::fmt::Arguments<'_>| {
        text.write_fmt(text_of).expect("a string takes everything");
    };
    put(format_args!("{millis}, {value}, {}, {bytes}, ", direction as usize));
    if logs.offsets {
        put(format_args!("{offset}, "));
    }
    match logs.priorities {
        true => put(format_args!("0x{priority:04x}\n")),
        // Observed: one for the class of real time.
        false => put(format_args!("{}\n", u8::from(priority >> 13 == 1))),
    }
}

/// Writes a file as a whole in the place of a regular one, or where there is none.
fn replace(directory: &Path, name: &str, text: &str) -> Result<(), Error> {
    let path = directory.join(name);
    let write = || {
        if let Err(cause) = std::fs::create_dir(directory)
            && !directory.is_dir()
        {
            return Err(cause);
        }
        if path.symlink_metadata().is_ok_and(|there| !there.is_file()) {
            return Err(std::io::Error::other("it is there and no regular file"));
        }
        let unfinished = directory.join(format!("{name}.{}.partial", std::process::id()));
        let mut file = std::fs::File::create_new(&unfinished)?;
        let written = std::io::Write::write_all(&mut file, text.as_bytes())
            .and_then(|()| std::fs::rename(&unfinished, &path));
        if written.is_err() {
            // What went wrong is told; nothing more can be done about the rest.
            let _ = std::fs::remove_file(&unfinished);
        }
        written
    };
    write().map_err(|cause| Error::unwritable(&path, cause))
}
