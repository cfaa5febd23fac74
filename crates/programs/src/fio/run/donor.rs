//! The donor of ioengine `e4defrag`, and its one request: blocks of two files change places.
//!
//! The calls are those that fio 3.33 was seen to make: the donor is opened before the process
//! starts, and gets its blocks then, or for each request, after which it is made empty.

use super::super::job::{Direction, Donor, DonorRoom, Job};
use super::lanes::{Request, What};
use machine::calls::Creation;
use machine::task::{Errno, File, OpenFlags, Task};
use std::ops::Range;

/// A donor that is open.
#[derive(Clone, Debug)]
pub(super) struct OpenDonor {
    file: File,
    room: DonorRoom,
}

impl OpenDonor {
    /// Opens the donor of a job, if it has one; the answer is a message if that cannot be done.
    pub async fn open(task: &Task, job: &Job) -> Result<Option<OpenDonor>, String> {
        let Some(donor) = &job.donor else { return Ok(None) };
        let opened = Self::open_and_fill(task, donor).await;
        opened.map(Some).map_err(|errno| {
            format!("fio: io engine e4defrag init failed: {}: {errno}", donor.name)
        })
    }

    async fn open_and_fill(task: &Task, donor: &Donor) -> Result<OpenDonor, Errno> {
        let file = task.open_file(&donor.name, OpenFlags::default(), Creation::WRITE).await?;
        if let DonorRoom::Whole(bytes) = donor.room {
            task.fallocate(&file, 0..bytes.0, false).await?;
        }
        Ok(OpenDonor { file, room: donor.room })
    }

    /// A request: the blocks of its bytes change places with those at the same place of the donor.
    pub async fn exchange(
        &self,
        task: &Task,
        file: &File,
        request: &Request,
    ) -> Result<u64, Errno> {
        if request.what != What::Move(Direction::Write) {
            return Err(Errno::Einval);
        }
        // Observed: what is left of a request that was done in part is a request of its own.
        let mut done = 0;
        while done < request.length {
            let bytes = request.offset + done..request.offset + request.length;
            done += self.exchange_once(task, file, bytes).await?;
        }
        Ok(done)
    }

    async fn exchange_once(
        &self,
        task: &Task,
        file: &File,
        bytes: Range<u64>,
    ) -> Result<u64, Errno> {
        if self.room == DonorRoom::EachRequest {
            task.fallocate(&self.file, bytes.clone(), false).await?;
        }
        let exchanged = task.exchange_blocks(file, &self.file, bytes).await;
        if self.room == DonorRoom::EachRequest {
            task.truncate(&self.file, 0).await?;
        }
        exchanged
    }

    /// Closes it.
    pub async fn close(&self, task: &Task) {
        task.close(&self.file).await;
    }
}
