//! The files of sysbench: pieces of a disk, or `test_file.0`, `test_file.1`, … in a directory.
//!
//! What is done to files in a directory was seen with strace of 1.0.20 (assumed of 0.4): `prepare`
//! writes what is missing of each and syncs it; `run` opens all of them before the threads start,
//! and where it writes in sequence it makes them anew, empty; `cleanup` removes them.

use super::options::{Action, Generation, Mode, Place, Sysbench};
use machine::calls::Creation;
use machine::task::{Errno, File, OpenFlags, Task};
use std::ops::Range;

/// As `open(path, O_RDWR)`.
const EXISTING: Creation = Creation { creates: false, truncates: false, writes: true };
/// As `open(path, O_CREAT | O_EXCL)` of a name that is free.
const NEW: Creation = Creation { creates: true, truncates: false, writes: false };

/// What went wrong, in sysbench's words.
pub(super) type Complaint = Vec<String>;

impl Sysbench {
    /// The size of each file.
    pub(super) fn file_size(&self) -> u64 {
        self.total / self.files
    }

    /// The bytes of a file, where they are read and written.
    pub(super) fn bytes(&self, number: u64) -> Range<u64> {
        let size = self.file_size();
        let start = match &self.place {
            Place::Disk { start, .. } => start + number * size,
            Place::Directory(_) => 0,
        };
        start..start + size
    }

    /// Whether the files lie in a directory.
    pub fn has_files(&self) -> bool {
        matches!(self.place, Place::Directory(_))
    }

    /// Whether it is Debian's: 1.0.
    pub fn is_current(&self) -> bool {
        self.generation == Generation::V1_0
    }

    /// Opens all files.
    pub(super) async fn open_all(&self, task: &Task) -> Result<Vec<File>, Complaint> {
        let mut files = Vec::new();
        for number in 0..self.files {
            files.push(self.open(task, number).await.map_err(|errno| absent(number, errno))?);
        }
        Ok(files)
    }

    async fn open(&self, task: &Task, number: u64) -> Result<File, Errno> {
        let directory = match &self.place {
            Place::Disk { path, .. } => {
                return task.open_extent(path, self.bytes(number), self.flags);
            }
            Place::Directory(directory) => directory,
        };
        let path = path(directory, number);
        if self.action == Action::Run && self.mode == Mode::SeqWrite {
            // That there is none is what was wanted.
            let _ = task.unlink(&path).await;
            let new = task.open_file(&path, OpenFlags::default(), NEW).await?;
            task.close(&new).await;
        }
        task.open_file(&path, self.flags, EXISTING).await
    }

    /// One file after the other, block by block (rule sysbench-2).
    pub(super) async fn prepare(&self, task: &Task) -> Result<(), Complaint> {
        for number in 0..self.files {
            self.prepare_file(task, number).await.map_err(|errno| absent(number, errno))?;
        }
        Ok(())
    }

    async fn prepare_file(&self, task: &Task, number: u64) -> Result<(), Errno> {
        let bytes = self.bytes(number);
        let (file, mut at) = match &self.place {
            Place::Disk { path, .. } => {
                (task.open_extent(path, bytes.clone(), self.flags)?, bytes.start)
            }
            Place::Directory(directory) => {
                let path = path(directory, number);
                let file = task.open_file(&path, self.flags, Creation::WRITE).await?;
                let there = task.status(&path).await?.size;
                task.print(match there {
                    0 => format!("Creating file test_file.{number}"),
                    _ if there >= bytes.end => format!("Reusing existing file test_file.{number}"),
                    _ => format!("Extending existing file test_file.{number}"),
                });
                (file, there)
            }
        };
        while at < bytes.end {
            let length = self.block.min(bytes.end - at);
            task.pwrite(&file, at, length).await?;
            at += length;
        }
        task.fsync(&file).await?;
        if let Place::Directory(_) = self.place {
            task.close(&file).await;
        }
        Ok(())
    }

    /// Removes the files of a directory; those of a disk are only places.
    pub(super) async fn remove(&self, task: &Task) {
        task.print("Removing test files...");
        let Place::Directory(directory) = &self.place else { return };
        for number in 0..self.files {
            // The first that is not there is the last.
            if task.unlink(&path(directory, number)).await.is_err() {
                return;
            }
        }
    }
}

fn path(directory: &str, number: u64) -> String {
    format!("{directory}/test_file.{number}")
}

fn absent(number: u64, errno: Errno) -> Complaint {
    let mut lines = vec![format!("FATAL: Cannot open file 'test_file.{number}': {errno}")];
    if errno == Errno::Enoent {
        lines.push("WARNING: Did you forget to run the prepare step?".to_string());
    }
    lines
}
