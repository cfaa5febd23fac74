//! Files in the memory of a process, as ioengine mmap has them.
//!
//! Observed (strace of fio 3.33): a file is mapped as a whole when it is opened, and madvise says
//! again what was said of how it will be read; a round maps it anew and nothing is ever unmapped.
//! Whatever makes writes durable is an msync of all of it; with `direct` there is one of each
//! request's bytes, reads among them.

use super::{Errno, Request, What};
use crate::fio::job::{Direction, Job};
use crate::fio::pattern::Range;
use cache::readahead::Advice;
use machine::calls::Mapping;
use machine::task::{File, Task};

/// The files of a process.
pub(super) struct Maps {
    maps: Vec<Option<Mapping>>,
    whole: Vec<Range>,
    advice: Advice,
    syncs_each: bool,
}

impl Maps {
    /// Files of a job, none of which is mapped yet.
    pub fn new(job: &Job, whole: &[Range]) -> Maps {
        Maps {
            maps: vec![None; whole.len()],
            whole: whole.to_vec(),
            advice: job.caching.hint.unwrap_or(Advice::Normal),
            syncs_each: job.durability.direct,
        }
    }

    /// The files are closed.
    pub fn forget(&mut self) {
        self.maps.fill(None);
    }

    /// Makes all of a file durable.
    pub async fn sync(&self, task: &Task, file: usize) -> Result<(), Errno> {
        match &self.maps[file] {
            Some(map) => task.msync(map, None).await,
            None => Ok(()),
        }
    }

    /// Does a request.
    pub async fn perform(
        &mut self,
        task: &Task,
        files: &[File],
        request: Request,
    ) -> Result<u64, Errno> {
        let (number, offset, length) = (request.file, request.offset, request.length);
        if self.maps[number].is_none() {
            let Range { start, end } = self.whole[number];
            self.maps[number] = Some(task.map(&files[number], start..end, self.advice).await);
        }
        let map = self.maps[number].as_ref().expect("it was mapped a line above");
        let bytes = match request.what {
            What::Move(Direction::Read) => task.read_through(map, offset, length).await?,
            What::Move(Direction::Write) => task.write_through(map, offset, length).await?,
            What::Move(Direction::Trim) => {
                return task.discard(&files[number], offset, length).await.map(|()| length);
            }
            What::Sync(_) if !files[number].is_cached() => 0,
            What::Sync(_) => return task.msync(map, None).await.map(|()| 0),
        };
        if self.syncs_each {
            task.msync(map, Some(offset..offset + length)).await?;
        }
        Ok(bytes)
    }
}
