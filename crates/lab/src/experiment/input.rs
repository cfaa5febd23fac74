//! What a file is that somebody wants compared: an experiment, a fio job file or a trace.
//!
//! Content decides, because traces have any name; where content alone does not tell, the ending of
//! the name does.

use super::job::{JobSpec, Pace, Recording, Work};
use super::{Experiment, builtin};
use crate::error::Error;
use crate::recording;
use base::nearest;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// As much of a file as is looked at.
const HEAD: u64 = 4096;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A TOML experiment.
    Experiment,
    /// A fio job file.
    JobFile,
    /// A trace of some format.
    Trace,
}

/// How a trace is to be read and replayed.
#[derive(Clone, Debug, Default)]
pub struct TraceOptions {
    /// What the trace itself may not tell.
    pub reading: trace::Options,
    /// When its requests are submitted; as recorded if not given.
    pub pace: Option<Pace>,
}

/// The experiment that a path names that leads to no file.
fn builtin_at(path: &Path) -> Option<Result<Experiment, Error>> {
    path.to_str().filter(|_| !path.exists()).and_then(builtin::load)
}

/// What the file at `path` is. A path that names no file may be a recording of several, or an
/// experiment that comes with the program.
pub fn kind_of(path: &Path) -> Result<FileKind, Error> {
    if builtin_at(path).is_some() {
        return Ok(FileKind::Experiment);
    }
    if path == Path::new("-") {
        let problem = "the standard input is not read";
        let accepted = "the path of an experiment, a job file or a trace, such as /dev/stdin";
        return Err(Error::bad("compare -", problem, accepted));
    }
    match path.extension().and_then(|it| it.to_str()) {
        Some("toml") => return Ok(FileKind::Experiment),
        Some("fio") => return Ok(FileKind::JobFile),
        _ if !path.is_file() => return Ok(FileKind::Trace),
        _ => {}
    }
    let mut head = Vec::new();
    let file = File::open(path).map_err(|cause| Error::unreadable(path, cause))?;
    file.take(HEAD).read_to_end(&mut head).map_err(|cause| Error::unreadable(path, cause))?;
    Ok(kind_of_text(&head))
}

/// What can be named, for messages.
const INPUTS: &str = "an experiment, a job file of fio, a trace, the NAME of NAME.blktrace.0, the \
                      name of one of list experiments, or a command behind --";

/// The experiment that a file stands for.
pub fn load(path: &Path, options: &TraceOptions) -> Result<Experiment, Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_string();
    let stem = name.split('.').next().unwrap_or_default().to_string();
    let place = path.display().to_string();
    let work = match kind_of(path)? {
        FileKind::Experiment => {
            return builtin_at(path).unwrap_or_else(|| Experiment::load(path));
        }
        FileKind::JobFile => {
            params::read_text(path).map_err(|cause| Error::unreadable(path, cause))?;
            Work::JobFile(path.to_path_buf())
        }
        FileKind::Trace => {
            let hint = nearest(&place, builtin::names());
            let is_there = path.exists() || !trace::blktrace::recording_files(path).is_empty();
            let recording = read_recording(path, options).map_err(|error| match is_there {
                false => Error::bad(&place, format!("no such file or experiment{hint}"), INPUTS),
                true => error,
            });
            Work::Trace(recording?)
        }
    };
    let mut experiment = Experiment::of_jobs(&name, vec![JobSpec::new(stem, work, place.clone())]);
    experiment.origin = place;
    Ok(experiment)
}

/// Reads a trace to be replayed; of a directory, the one recording in it.
pub fn read_recording(path: &Path, options: &TraceOptions) -> Result<Recording, Error> {
    let trace = trace::read_trace(&recording::base_of(path)?, &options.reading)?;
    if trace.devices.len() > 1 && options.reading.device.is_none() {
        let names: Vec<&str> = trace.devices.values().map(String::as_str).collect();
        let problem = format!("the trace is of {} devices", names.len());
        let accepted = format!("--trace-device with one of {}", names.join(", "));
        return Err(Error::bad(path.display().to_string(), problem, accepted));
    }
    let thinks = trace.arrivals.iter().any(|arrival| arrival.think.is_some());
    let recorded = if thinks { Pace::Thinking } else { Pace::Timed };
    Ok(Recording {
        path: path.to_path_buf(),
        format: trace.format,
        arrivals: trace.arrivals.into(),
        remarks: trace.remarks,
        pace: options.pace.unwrap_or(recorded),
    })
}

/// Tells texts apart by their first line that says anything: job files begin with a section or an
/// include, experiments with a key or a list of tables.
fn kind_of_text(head: &[u8]) -> FileKind {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The head may end in the middle of a letter.
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return FileKind::Trace,
    };
    let says = |line: &&str| !line.is_empty() && !line.starts_with(['#', ';']);
    let Some(first) = text.lines().map(str::trim).find(says) else { return FileKind::Trace };
    let is_key = |key: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || "_-. \"".contains(c));
    match first.split_once('=') {
        _ if first.starts_with("[[") => FileKind::Experiment,
        _ if first.starts_with('[') || first.starts_with("include ") => FileKind::JobFile,
        Some((key, _)) if is_key(key) => FileKind::Experiment,
        _ => FileKind::Trace,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_tells_experiments_job_files_and_traces_apart() {
        let kind = |text: &str| kind_of_text(text.as_bytes());
        assert_eq!(kind("# a\n\ntitle = \"x\"\n"), FileKind::Experiment);
        assert_eq!(kind("[[job]]\n"), FileKind::Experiment);
        assert_eq!(kind("; c\n[global]\nbs=4k\n"), FileKind::JobFile);
        assert_eq!(kind("include common.fio\n"), FileKind::JobFile);
        assert_eq!(kind("fio version 2 iolog\n"), FileKind::Trace);
        assert_eq!(kind("0,303567,3584,w,0.000000\n"), FileKind::Trace);
        assert_eq!(kind(""), FileKind::Trace);
        assert_eq!(kind_of_text(&[0x07, 0x74, 0x61, 0x65, 0xff]), FileKind::Trace);
    }

    #[test]
    fn what_cannot_be_a_job_file_is_refused_by_its_name() {
        let directory = linux::Directory::make().unwrap();
        std::fs::write(directory.path().join("binary.fio"), [0xff, 0xfe]).unwrap();
        std::fs::create_dir(directory.path().join("tree.fio")).unwrap();
        for name in ["binary.fio", "tree.fio", "missing.fio"] {
            let path = directory.path().join(name);
            let refused = load(&path, &TraceOptions::default()).unwrap_err();
            let expected = format!("{}: cannot be read: ", path.display());
            assert!(refused.is_bad_input() && refused.to_string().starts_with(&expected));
        }
        let empty = directory.path().join("empty.fio");
        std::fs::write(&empty, "").unwrap();
        let experiment = load(&empty, &TraceOptions::default()).unwrap();
        let refused = crate::plan::Plan::new(experiment).unwrap_err().to_string();
        let expected = format!("{}:1: the file defines no jobs; accepted: ", empty.display());
        assert!(refused.starts_with(&expected), "{refused}");
    }

    #[test]
    fn a_directory_stands_for_the_one_recording_in_it() {
        use trace::blktrace::{Action, Categories, DevT, Record, Recorder, Wallclock};
        let directory = linux::Directory::make().unwrap();
        let record = |name: &str| {
            let path = directory.path().join(name);
            let event = Record::event(Action::Queue, base::Instant::from_nanos(1));
            let event = Record { bytes: 4096, ..event }.with(Categories::READ);
            let wallclock = Wallclock::default();
            let mut files = Recorder::create(&path, DevT::new(8, 0), 1, wallclock).unwrap();
            files.record(&event).unwrap();
            files.finish().unwrap();
        };
        let read = || read_recording(directory.path(), &TraceOptions::default());
        let none = read().unwrap_err().to_string();
        assert!(none.contains("no recording in it; accepted: a blktrace file"), "{none}");
        record("sda");
        assert_eq!(read().unwrap().arrivals.len(), 1);
        record("sdb");
        let several = read().unwrap_err().to_string();
        assert!(several.contains("recordings of sda, sdb"), "{several}");
    }
}
