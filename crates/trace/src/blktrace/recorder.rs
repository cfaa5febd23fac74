//! Writes a recording as `blktrace` does: one file per CPU, that `blkparse -i NAME` reads.

use super::layout::Layout;
use super::record::{DevT, Record};
use crate::error::{Error, Place};
use base::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Version 7, little-endian files `NAME.blktrace.0`, `.1`, … while they are written.
///
/// It does what the kernel does beside logging events: numbers them per CPU, puts the wall-clock
/// time into the first file, and names each task before its first event.
pub struct Recorder {
    files: Vec<CpuFile>,
    names: BTreeMap<u32, String>,
    named: BTreeSet<u32>,
    buffer: Vec<u8>,
}

struct CpuFile {
    path: PathBuf,
    sink: BufWriter<File>,
    sequence: u32,
}

/// What clock on the wall belongs to an instant of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wallclock {
    /// The instant.
    pub at: Instant,
    /// Seconds since 1970 then.
    pub seconds: u32,
    /// And nanoseconds.
    pub nanoseconds: u32,
}

impl Recorder {
    /// Creates the files of recording `base` of `device` for CPUs 0 to `cpus` - 1. Files of that
    /// name that exist are overwritten.
    pub fn create(
        base: &Path,
        device: DevT,
        cpus: u32,
        wallclock: Wallclock,
    ) -> Result<Recorder, Error> {
        let files = (0..cpus).map(|cpu| CpuFile::create(base, cpu)).collect::<Result<_, _>>()?;
        let mut recorder =
            Recorder { files, names: BTreeMap::new(), named: BTreeSet::new(), buffer: vec![] };
        let Wallclock { at, seconds, nanoseconds } = wallclock;
        let note = Record { device, ..Record::timestamp(at, seconds, nanoseconds) };
        recorder.write(&note)?;
        Ok(recorder)
    }

    /// Task `pid` is called `name`; to be said before its first event.
    pub fn name_task(&mut self, pid: u32, name: &str) {
        self.names.insert(pid, name.to_owned());
        self.named.remove(&pid);
    }

    /// Appends `record` to the file of its CPU; its sequence number is assigned here. A CPU that
    /// has no file is a bug of the caller. Records of one CPU come in order of time.
    pub fn record(&mut self, record: &Record) -> Result<(), Error> {
        let first = !record.action.is_note() && self.named.insert(record.pid);
        if let Some(name) = self.names.get(&record.pid).filter(|_| first) {
            let Record { time, pid, device, cpu, .. } = *record;
            let note = Record { device, cpu, ..Record::process(time, pid, name) };
            self.write(&note)?;
        }
        self.write(record)
    }

    /// Writes out what is still held back, and returns the files.
    pub fn finish(self) -> Result<Vec<PathBuf>, Error> {
        let finished = self.files.into_iter().map(|mut file| match file.sink.flush() {
            Ok(()) => Ok(file.path),
            Err(error) => Err(failure(&file.path, &error)),
        });
        finished.collect()
    }

    fn write(&mut self, record: &Record) -> Result<(), Error> {
        let cpus = self.files.len();
        let Some(file) = self.files.get_mut(record.cpu as usize) else {
            panic!("a record of CPU {} in a recording of {cpus} CPUs", record.cpu);
        };
        let sequence = if record.action.is_note() {
            0
        } else {
            file.sequence = file.sequence.wrapping_add(1);
            file.sequence
        };
        self.buffer.clear();
        Layout::V7_LITTLE.encode(record, &mut self.buffer);
        // The number stands behind the magic number, in every layout.
        self.buffer[4..8].copy_from_slice(&sequence.to_le_bytes());
        file.sink.write_all(&self.buffer).map_err(|error| failure(&file.path, &error))
    }
}

impl CpuFile {
    fn create(base: &Path, cpu: u32) -> Result<CpuFile, Error> {
        let mut name = base.file_name().unwrap_or_default().to_owned();
        name.push(format!(".blktrace.{cpu}"));
        let path = base.with_file_name(name);
        match File::create(&path) {
            Ok(file) => Ok(CpuFile { path, sink: BufWriter::new(file), sequence: 0 }),
            Err(error) => Err(failure(&path, &error)),
        }
    }
}

fn failure(path: &Path, error: &std::io::Error) -> Error {
    Error::new(
        &path.display().to_string(),
        Place::Whole,
        error.to_string(),
        "a directory that can be written to",
    )
}
