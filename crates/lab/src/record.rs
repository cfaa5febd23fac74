//! Writes the stream of events as blktrace writes it: version 7, one file per core.
//!
//! Each result gets a directory with files `sda.blktrace.N` that `blkparse -i sda` reads. Process
//! numbers are those of tasks in the simulated machine; interrupts are process 0, as on Linux.
//! What blktrace has no record for (a scheduler's choice, a withheld dispatch, system calls) is
//! left out. A `manifest.txt` beside them says what was recorded.

use crate::error::Error;
use crate::plan::{Plan, Row};
use crate::recording::manifest::{self, Manifest};
use crate::world::World;
use block::{Action, CgroupId, Event, Flags, Op};
use machine::{Observer, Outcome, TaskInfo};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use trace::blktrace::{self, Categories, DevT, Payload, Record, Wallclock};

/// The simulated disk: the first SCSI disk; any number would do.
const DEVICE: DevT = DevT::new(8, 0);
/// The name that trace events give it.
const DEVICE_NAME: &str = "8:0";
/// What its files are called.
const NAME: &str = "sda";

/// An observer that writes a recording.
pub struct Recorder {
    files: Option<blktrace::Recorder>,
    /// The first thing that went wrong.
    failure: Option<trace::Error>,
    cores: u16,
    /// Joined requests are recorded as merges (5.11 and later).
    records_joins: bool,
    manifest: String,
    unfinished: PathBuf,
    directory: PathBuf,
}

/// The directory of a result, below the directory of all recordings.
pub fn directory_name(row: &Row, seed: u64) -> String {
    format!("{}-seed{seed}", row.directory)
}

/// The directory of a recording: results of different worlds differ in it.
pub fn recording_name(row: &Row, seed: u64) -> String {
    match row.world {
        World::Sim => directory_name(row, seed),
        World::Linux => format!("{}-linux", directory_name(row, seed)),
    }
}

/// Refuses to overwrite recordings.
pub fn check_directories(plan: &Plan, parent: &Path) -> Result<(), Error> {
    for row in &plan.rows {
        for seed in &plan.experiment.seeds {
            let directory = parent.join(recording_name(row, *seed));
            for there in [&directory, &unfinished(&directory)] {
                // A link that leads nowhere is there, too.
                if there.symlink_metadata().is_ok() {
                    return Err(is_there(there));
                }
            }
        }
    }
    Ok(())
}

/// Where a recording is while it is made. Another comparison may be at it, or have been ended
/// before it was done.
fn unfinished(directory: &Path) -> PathBuf {
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    directory.with_file_name(name)
}

fn is_there(directory: &Path) -> Error {
    let problem = format!("{} exists", directory.display());
    let accepted = "a directory without these recordings, finished or begun";
    Error::bad("--record", problem, accepted)
}

/// Removes what a comparison that failed has recorded, and the directory of all recordings unless
/// it existed before.
pub fn remove_directories(plan: &Plan, parent: &Path, existed: bool) {
    // A directory that is not there need not be removed, and nobody is left to tell of other
    // failures.
    for row in &plan.rows {
        for seed in &plan.experiment.seeds {
            let _ = std::fs::remove_dir_all(parent.join(recording_name(row, *seed)));
        }
    }
    if !existed {
        let _ = std::fs::remove_dir(parent);
    }
}

impl Recorder {
    /// Begins a recording that will be at `directory` when it is finished.
    pub fn create(directory: &Path, row: &Row) -> Result<Recorder, Error> {
        let unfinished = unfinished(directory);
        let unwritable = |cause| Error::unwritable(&unfinished, cause);
        unfinished.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(unwritable)?;
        // What somebody else has there, or left there, is not part of this recording.
        std::fs::create_dir(&unfinished).map_err(|cause| match cause.kind() {
            ErrorKind::AlreadyExists => is_there(&unfinished),
            _ => unwritable(cause),
        })?;
        let cores = row.host.machine.cores;
        let base = unfinished.join(NAME);
        let mut files =
            blktrace::Recorder::create(&base, DEVICE, u32::from(cores), Wallclock::default())
                .map_err(Error::Recording)?;
        files.name_task(0, "swapper/0");
        Ok(Recorder {
            files: Some(files),
            failure: None,
            cores,
            records_joins: row.spec.kernel.traces_joins,
            manifest: Manifest::text_of(row),
            unfinished,
            directory: directory.to_path_buf(),
        })
    }

    /// Writes out what is held back, and who the tasks were, and gives the directory its name.
    pub fn finish(mut self, outcome: &Outcome) -> Result<(), Error> {
        if let Some(failure) = self.failure.take() {
            return Err(Error::Recording(failure));
        }
        let files = self.files.take().expect("a recording is finished once");
        files.finish().map_err(Error::Recording)?;
        let about = Manifest::text_about(outcome, |context| self.pid(context.0));
        self.manifest.push_str(&about);
        let manifest = self.unfinished.join(manifest::FILE_NAME);
        std::fs::write(&manifest, &self.manifest)
            .map_err(|cause| Error::unwritable(&manifest, cause))?;
        std::fs::rename(&self.unfinished, &self.directory)
            .map_err(|cause| Error::unwritable(&self.directory, cause))
    }

    fn pid(&self, context: u32) -> u32 {
        if context < u32::from(self.cores) { 0 } else { context }
    }

    fn record_of(&self, event: &Event) -> Option<Record> {
        let (action, payload) = translate(&event.action, self.records_joins)?;
        let base = match &event.action {
            Action::Message { text, .. } => Record::message(event.at, text),
            Action::Wbt(said) => {
                let text = format!("{}: {DEVICE_NAME}: {said}", said.name());
                Record::message(event.at, &text)
            }
            _ => Record { payload, ..Record::event(action, event.at) },
        };
        let is_about_data = !matches!(
            event.action,
            Action::Message { .. }
                | Action::Wbt(_)
                | Action::Plug
                | Action::Unplug { .. }
                | Action::TimerUnplug { .. }
        );
        let categories = if is_about_data { categories(event) } else { Categories::NONE };
        let bytes = if is_about_data { event.sectors.bytes().0 as u32 } else { 0 };
        let cgroup = match &event.action {
            // blkparse knows no groups in messages: the root is not named.
            Action::Message { cgroup, .. } => {
                let below = cgroup.filter(|cgroup| *cgroup != CgroupId::ROOT);
                below.map(|cgroup| u64::from(cgroup.0) + 1)
            }
            _ => None,
        };
        let record = Record {
            sector: event.sector,
            bytes,
            pid: self.pid(event.context.0),
            device: DEVICE,
            cpu: u32::from(event.cpu),
            cgroup,
            ..base
        };
        Some(record.with(categories))
    }
}

impl Drop for Recorder {
    /// A run that failed leaves nothing behind.
    fn drop(&mut self) {
        if self.files.is_some() {
            // There is nobody left to tell that cleaning up failed as well.
            let _ = std::fs::remove_dir_all(&self.unfinished);
        }
    }
}

impl Observer for Recorder {
    fn meet(&mut self, who: &TaskInfo) {
        let pid = self.pid(who.context.0);
        if let Some(files) = self.files.as_mut().filter(|_| pid != 0) {
            files.name_task(pid, &who.name);
        }
    }

    fn see(&mut self, event: &Event) {
        let Some(record) = self.record_of(event) else { return };
        if let Some(files) = self.files.as_mut().filter(|_| self.failure.is_none()) {
            self.failure = files.record(&record).err();
        }
    }
}

/// The record for an event, if blktrace has one.
fn translate(action: &Action, records_joins: bool) -> Option<(blktrace::Action, Payload)> {
    use blktrace::Action as To;
    let plain = |action| Some((action, Payload::None));
    match action {
        Action::Queue => plain(To::Queue),
        Action::Split { rest } => Some((To::Split, Payload::Split(*rest))),
        Action::BackMerge => plain(To::BackMerge),
        Action::FrontMerge => plain(To::FrontMerge),
        Action::GetRequest => plain(To::GetRequest),
        Action::Sleep => plain(To::SleepRequest),
        Action::Plug => plain(To::Plug),
        Action::Unplug { depth } => Some((To::Unplug, Payload::Unplug(u64::from(*depth)))),
        Action::TimerUnplug { depth } => {
            Some((To::UnplugTimer, Payload::Unplug(u64::from(*depth))))
        }
        Action::Insert => plain(To::Insert),
        Action::Join { .. } => {
            if records_joins {
                plain(To::BackMerge)
            } else {
                None
            }
        }
        Action::Issue => plain(To::Issue),
        Action::Requeue => plain(To::Requeue),
        Action::Complete { .. } => plain(To::Complete),
        Action::Message { .. } | Action::Wbt(_) => plain(To::NoteMessage),
        Action::Throttled { .. }
        | Action::Released { .. }
        | Action::Dispatch(_)
        | Action::Hold { .. }
        | Action::BioDone { .. }
        | Action::SyscallEnter(_)
        | Action::SyscallExit { .. }
        | Action::SyscallUnfinished { .. }
        | Action::HoldsBack { .. }
        | Action::Blocks(_)
        | Action::Wakes { .. }
        | Action::Runs
        | Action::Preempted
        | Action::Commits { .. }
        | Action::InCommit(_)
        | Action::Pages { .. }
        | Action::Served(_) => None,
    }
}

/// Direction and flags as the kernel states them; a pure flush carries the READ bit.
fn categories(event: &Event) -> Categories {
    let is_pure_flush = event.sectors.is_zero();
    let mut all = match event.op {
        _ if is_pure_flush => Categories::READ,
        Op::Read => Categories::READ,
        Op::Write => Categories::WRITE,
        Op::Discard => Categories::WRITE | Categories::DISCARD,
    };
    let flags = [
        (Flags::SYNC, Categories::SYNC),
        (Flags::META, Categories::META),
        (Flags::RAHEAD, Categories::AHEAD),
        (Flags::PREFLUSH, Categories::FLUSH),
        (Flags::FUA, Categories::FUA),
    ];
    for (flag, category) in flags {
        if event.flags.intersects(flag) {
            all = all | category;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Instant, Sector, Sectors};

    #[test]
    fn a_pure_flush_carries_the_bit_of_a_read() {
        let flush = Event {
            op: Op::Write,
            flags: Flags::PREFLUSH.with(Flags::SYNC),
            ..Event::note(Action::Issue)
        };
        let expected = Categories::READ | Categories::FLUSH | Categories::SYNC;
        assert_eq!(categories(&flush), expected);
        let write = Event { sectors: Sectors(8), sector: Sector(1), ..flush };
        assert!(categories(&write).contains(Categories::WRITE));
    }

    #[test]
    fn what_an_interrupted_comparison_left_is_not_taken_for_ones_own() {
        let text = "[[job]]\nname = \"x\"\nrun = \"dd if=/dev/sda of=/dev/null count=1\"\n";
        let plan = Plan::new(crate::Experiment::parse("x.toml", text).unwrap()).unwrap();
        let parent = linux::Directory::make().unwrap();
        assert!(check_directories(&plan, parent.path()).is_ok());
        let directory = parent.path().join(directory_name(&plan.rows[0], 1));
        let left = unfinished(&directory);
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("sda.blktrace.1"), "of another").unwrap();
        let refused = check_directories(&plan, parent.path()).unwrap_err().to_string();
        assert!(refused.contains("partial exists; accepted: "), "{refused}");
        assert!(Recorder::create(&directory, &plan.rows[0]).is_err());
        assert!(left.join("sda.blktrace.1").exists());
    }

    #[test]
    fn what_blktrace_does_not_know_is_left_out() {
        let issued = Instant::ZERO;
        assert!(translate(&Action::BioDone { queued: issued, issued }, true).is_none());
        let join = Action::Join { into: block::RequestId::from_bits(1 << 32) };
        assert!(translate(&join, false).is_none() && translate(&join, true).is_some());
    }
}
