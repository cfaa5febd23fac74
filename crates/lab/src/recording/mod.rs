//! Where a recording lies, its records of one device, and what stands in files beside them.
//!
//! * `manifest.txt`: see [`manifest`].
//! * `priorities.txt`: the I/O priority of each insertion (I), a line each, as the kernel encodes
//!   it, in the order of the insertions.
//! * `result.txt`: see [`tasks`].
//! * `disk.txt`: see [`disk`].
//! * `cgroups.txt`: lines of `EVENT CGROUP`, from which event on events belong to which control
//!   group; `blkparse` up to 1.2 does not read records that carry it.

pub mod disk;
pub mod manifest;
mod parts;
pub mod tasks;

pub use disk::DiskCommand;
pub use manifest::Manifest;
use parts::Survey;
pub use parts::{PartSize, Parts};
pub use tasks::Tasks;

use crate::error::Error;
use block::Ioprio;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trace::blktrace::{DevT, Record, cpus_without_file};

/// A recording, with all that is known of it.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// What to call it.
    pub name: String,
    /// The events of one device, in order.
    pub records: Vec<Record>,
    /// Of what they were recorded.
    pub manifest: Manifest,
    /// The priority of each insertion, in their order, if it was recorded.
    pub priorities: Vec<Ioprio>,
    /// What the disk did, if that lies beside.
    pub disk: Vec<DiskCommand>,
    /// Who the tasks are.
    pub tasks: Tasks,
    /// Names of tasks.
    pub names: BTreeMap<u32, String>,
    /// What a reader should know.
    pub remarks: Vec<String>,
    /// Files that should lie beside it.
    pub absent: Vec<Absent>,
    /// What of it is not there.
    pub losses: Losses,
}

/// Events of a recording that are not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// CPUs of which there is no file, although there is one of a higher number.
    pub cpus: Vec<u32>,
    /// Events that are missing between others of their CPU, by their numbers.
    pub events: BTreeMap<u32, u64>,
    /// Files that end within a record.
    pub torn: u64,
}

impl Losses {
    /// Whether events are missing between others. A file that ends early may just be the end.
    pub fn leave_gaps(&self) -> bool {
        !self.cpus.is_empty() || !self.events.is_empty()
    }
}

/// A file that does not lie beside a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// Its name.
    pub file: &'static str,
    /// What it would have told.
    pub tells: String,
}

/// The file with what the command of a manifest printed.
pub const RESULT: &str = "result.txt";
/// The file with a priority for each insertion.
pub const PRIORITIES: &str = "priorities.txt";
/// The file that says which events belong to which control group.
pub const CGROUPS: &str = "cgroups.txt";
/// The file with what the disk did, which lies beside recordings of the linux world.
pub const DISK: &str = "disk.txt";
/// The number of the root group (measured in the linux world: what events of it carry).
pub const ROOT_CGROUP: u64 = 1;

const ACCEPTED: &str = "a blktrace file, NAME where NAME.blktrace.0 exists, or a directory with \
                        one recording";

impl Recording {
    /// Reads the recording that a path means: a file, a name that several files have in common, or
    /// a directory. The manifest lies beside it.
    pub fn read(path: &Path, device: Option<&str>) -> Result<Recording, Error> {
        Parts::open(path, device, PartSize::WHOLE)?.whole()
    }

    /// All that is known of a recording, without its records.
    fn about(
        name: String,
        base: &Path,
        directory: &Path,
        survey: Survey,
    ) -> Result<Recording, Error> {
        let manifest = Manifest::beside(directory)?.unwrap_or_default();
        let result = read_if_there(&directory.join(RESULT))?.unwrap_or_default();
        let Survey { names, owners, remarks, mut losses, .. } = survey;
        losses.cpus = cpus_without_file(base);
        let tasks = Tasks::new(&manifest, &result, &names, &owners);
        let rest = Recording::default();
        let disk = disk::read_disk(&directory.join(DISK))?;
        let mut recording =
            Recording { name, manifest, tasks, names, remarks, losses, disk, ..rest };
        recording.look_for_files(directory);
        Ok(recording)
    }

    /// Which files are missed: only those that would have told something.
    fn look_for_files(&mut self, directory: &Path) {
        let is_there = |name: &str| directory.join(name).is_file();
        let mut miss = |file: &'static str, tells: String| {
            if !is_there(file) {
                self.absent.push(Absent { file, tells });
            }
        };
        let jobs = tasks::jobs_without_tasks(&self.manifest).join(", ");
        if !jobs.is_empty() {
            let what = "which tasks are whose, and so groups, priorities and io_contexts of";
            miss(RESULT, format!("{what} {jobs}"));
        }
        if is_there(DISK) {
            miss(PRIORITIES, "the priority of each request".to_string());
        }
        let what = "kernel, scheduler, its tunables, limits of queue and device, control groups";
        miss(manifest::FILE_NAME, what.to_string());
    }
}

/// The priorities of so many insertions, where they are.
fn read_priorities(path: &Path, insertions: usize) -> Result<Vec<Ioprio>, Error> {
    let Some(text) = read_if_there(path)? else { return Ok(Vec::new()) };
    let mut priorities = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let bits: u16 = line.trim().parse().map_err(|_| {
            let accepted = "a priority as the kernel encodes it, such as 16388";
            Error::bad(place(path, number), format!("\"{line}\" is no priority"), accepted)
        })?;
        priorities.push(Ioprio::from_bits(bits));
    }
    let known = priorities.len();
    if known < insertions {
        let problem = format!("priorities of {known} insertions, and the recording has more");
        let accepted = format!("{insertions} lines, one for each insertion");
        return Err(Error::bad(path.display().to_string(), problem, accepted));
    }
    Ok(priorities)
}

/// From which event on which control group holds.
fn read_cgroups(path: &Path) -> Result<BTreeMap<u32, u64>, Error> {
    let mut begins = BTreeMap::new();
    let text = read_if_there(path)?.unwrap_or_default();
    for (number, line) in text.lines().enumerate() {
        let parts = line.split_once(' ');
        let parsed = parts.and_then(|(event, cgroup)| {
            Some((event.trim().parse().ok()?, cgroup.trim().parse().ok()?))
        });
        let Some((event, cgroup)) = parsed else {
            let accepted = "EVENT CGROUP, two numbers";
            return Err(Error::bad(place(path, number), format!("\"{line}\""), accepted));
        };
        begins.insert(event, cgroup);
    }
    Ok(begins)
}

fn read_if_there(path: &Path) -> Result<Option<String>, Error> {
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = std::fs::read(path).map_err(|cause| Error::unreadable(path, cause))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn place(path: &Path, line: usize) -> String {
    format!("{}:{}", path.display(), line + 1)
}

/// The file, or the name that several files have in common, that a path means: itself, or the one
/// recording in a directory. A file of one CPU means those of all CPUs.
pub fn base_of(path: &Path) -> Result<PathBuf, Error> {
    if path.is_dir() {
        return only_recording(path);
    }
    let of_cpu = path.file_name().and_then(|it| it.to_str()?.rsplit_once(".blktrace."));
    let base = of_cpu.map(|(base, _)| path.with_file_name(base));
    let several =
        base.filter(|base| path.is_file() && trace::blktrace::recording_files(base).len() > 1);
    Ok(several.unwrap_or_else(|| path.to_path_buf()))
}

/// So many directories are named.
const NAMED: usize = 5;

/// The recording in a directory, if there is exactly one there or in a directory of it.
fn only_recording(directory: &Path) -> Result<PathBuf, Error> {
    let place = || directory.display().to_string();
    let names = recordings_in(directory)?;
    match &names[..] {
        [one] => Ok(directory.join(one)),
        [] => {
            let below = directories_with_recordings(directory)?;
            match &below[..] {
                [] => Err(Error::bad(place(), "no recording in it", ACCEPTED)),
                [one] => only_recording(one),
                several => {
                    let named = several.iter().take(NAMED).map(|it| it.display().to_string());
                    let accepted = named.collect::<Vec<_>>().join(", ");
                    let problem = format!("{} recordings below it", several.len());
                    Err(Error::bad(place(), problem, format!("one of them: {accepted}")))
                }
            }
        }
        several => {
            let problem = format!("recordings of {}", several.join(", "));
            Err(Error::bad(place(), problem, ACCEPTED))
        }
    }
}

/// The names of the recordings in a directory.
fn recordings_in(directory: &Path) -> Result<Vec<String>, Error> {
    let entries =
        std::fs::read_dir(directory).map_err(|cause| Error::unreadable(directory, cause))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.split_once(".blktrace.")?.0.to_string()))
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Directories in a directory that have recordings, as `--record` leaves them.
fn directories_with_recordings(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries =
        std::fs::read_dir(directory).map_err(|cause| Error::unreadable(directory, cause))?;
    let directories = entries.filter_map(|it| Some(it.ok()?.path())).filter(|it| it.is_dir());
    let mut found: Vec<PathBuf> =
        directories.filter(|it| recordings_in(it).is_ok_and(|names| !names.is_empty())).collect();
    found.sort();
    Ok(found)
}

pub(crate) fn check_devices(
    place: &str,
    wanted: Option<&str>,
    devices: &BTreeMap<DevT, u64>,
) -> Result<(), Error> {
    let names: Vec<String> = devices.keys().map(DevT::to_string).collect();
    let accepted = format!("--trace-device with one of {}", names.join(" "));
    match wanted {
        Some(name) if !names.iter().any(|it| it == name) => {
            Err(Error::bad(place, format!("no device {name} in it"), accepted))
        }
        None if names.len() > 1 => {
            Err(Error::bad(place, format!("records of {} devices", names.len()), accepted))
        }
        None if names.is_empty() => {
            Err(Error::bad(place, "no events in it", "a recording with events"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_below_a_directory_are_found_or_named() {
        let root = std::env::temp_dir().join(format!("paternoster-below-{}", std::process::id()));
        for name in ["a", "b"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
            std::fs::write(root.join(name).join("sda.blktrace.0"), b"").unwrap();
        }
        let refused = only_recording(&root).unwrap_err().to_string();
        std::fs::remove_dir_all(root.join("b")).unwrap();
        let found = only_recording(&root);
        std::fs::remove_dir_all(&root).unwrap();
        assert!(refused.contains("2 recordings below it; accepted: one of them:"), "{refused}");
        assert_eq!(found.unwrap(), root.join("a/sda"));
    }
}
