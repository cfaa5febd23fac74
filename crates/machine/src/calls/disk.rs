//! System calls on the raw disk: open, read, write, fsync, discard.
//!
//! Every path below `/dev` is the simulated disk, but for `/dev/zero` and `/dev/null`; there are no
//! other files. A direct call is cut into bios of at most 256 pages, submitted by the caller under
//! a plug, and waited for (rules direct-io). Writes that must be durable carry FUA and are followed
//! by a flush. Without O_DIRECT reads and writes go through the page cache ([`cache`]).

use crate::file::{Errno, File, Kind, MOST_BYTES, OpenFlags, Transfer};
use crate::filesystem::FileIo;
use crate::pages::ALL;
use crate::task::Task;
use base::Duration;
use block::Op;
use cache::PAGE;
use std::ops::Range;

impl Task {
    /// Opens a file.
    pub fn open(&self, path: &str, flags: OpenFlags) -> Result<File, Errno> {
        let kind = match path {
            "/dev/zero" => Kind::Zero,
            "/dev/null" => Kind::Null,
            _ if path.starts_with("/dev/") => Kind::Disk,
            _ => return Err(Errno::Enoent),
        };
        let mut storage = self.storage();
        let device = storage.readahead_allowance();
        let number = match kind {
            Kind::Disk => storage.cache_mut().open(self.id(), device, 0, true),
            _ => 0,
        };
        Ok(File { kind, number, flags })
    }

    /// Opens a file of a file system that is known by where it lies: one extent of the disk.
    /// Offsets are still those on the disk.
    pub fn open_extent(
        &self,
        path: &str,
        extent: Range<u64>,
        flags: OpenFlags,
    ) -> Result<File, Errno> {
        let file = self.open(path, flags)?;
        if file.is_disk() {
            let pages = extent.start / PAGE..extent.end.div_ceil(PAGE);
            self.cache().confine(file.number, pages);
        }
        Ok(file)
    }

    /// Reads; the answer is the number of bytes, zero at the end of the disk.
    pub async fn pread(&self, file: &File, offset: u64, length: u64) -> Result<u64, Errno> {
        match file.kind {
            Kind::Disk if !file.flags.direct => {
                FileIo::of(self).read_cached(file, offset, length).await
            }
            Kind::Disk => self.disk_call(Op::Read, file, offset, length).await,
            Kind::File(index) if file.flags.direct => {
                FileIo::of(self).read_file_directly(index, offset, length).await
            }
            Kind::File(index) => FileIo::of(self).read_file(file, index, offset, length).await,
            Kind::Zero | Kind::Null => self.memory_call(file, Op::Read, length).await,
        }
    }

    /// Writes; the answer is the number of bytes.
    pub async fn pwrite(&self, file: &File, offset: u64, length: u64) -> Result<u64, Errno> {
        let offset = match file.is_disk() && file.flags.append {
            true => self.size(file),
            false => offset,
        };
        match file.kind {
            Kind::Disk if !file.flags.direct => {
                FileIo::of(self).write_cached(file, offset, length).await
            }
            Kind::Disk => self.disk_call(Op::Write, file, offset, length).await,
            Kind::File(index) if file.flags.direct => {
                FileIo::of(self).write_file_directly(file, index, offset, length).await
            }
            Kind::File(index) => FileIo::of(self).write_file(file, index, offset, length).await,
            Kind::Zero | Kind::Null => self.memory_call(file, Op::Write, length).await,
        }
    }

    /// Makes durable what was written of a file before, but not when, or by whom.
    pub async fn fdatasync(&self, file: &File) -> Result<(), Errno> {
        match file.kind {
            Kind::File(index) => {
                FileIo::of(self).sync_file(index, true).await;
                Ok(())
            }
            _ => self.fsync(file).await,
        }
    }

    /// Makes durable what was written before: fsync and fdatasync are the same on a raw disk.
    pub async fn fsync(&self, file: &File) -> Result<(), Errno> {
        if let Kind::File(index) = file.kind {
            FileIo::of(self).sync_file(index, false).await;
            return Ok(());
        }
        if !file.is_disk() {
            return Err(Errno::Einval);
        }
        let number = self.enter_call(Transfer::FLUSH).await;
        FileIo::of(self).write_and_wait(ALL).await;
        self.flush(number).await;
        self.leave_call(number);
        Ok(())
    }

    /// Tells the disk that a range is no longer needed.
    pub async fn discard(&self, file: &File, offset: u64, length: u64) -> Result<(), Errno> {
        if let Kind::File(_) = file.kind {
            return Err(Errno::Enotty);
        }
        if !self.disk().discard {
            return Err(Errno::Eopnotsupp);
        }
        self.disk_call(Op::Discard, file, offset, length).await.map(|_| ())
    }

    /// Submits one piece of I/O as it is, whatever system call it came from, and waits for it.
    pub async fn transfer(&self, transfer: Transfer) {
        let number = self.enter_call(transfer).await;
        self.storage().bypassed(self.id(), &transfer);
        self.run_operation(number, transfer).await;
        self.leave_call(number);
    }

    /// What a call would return that reads from /dev/zero or writes to nowhere, and how long it
    /// would take. `None` for other files.
    pub fn memory_call_of(&self, file: &File, op: Op, length: u64) -> Option<(u64, Duration)> {
        let costs = self.costs();
        let length = match (file.kind, op) {
            (Kind::Null, Op::Read) => 0,
            (Kind::Zero | Kind::Null, Op::Read | Op::Write) => length.min(MOST_BYTES),
            _ => return None,
        };
        let copied = if op == Op::Read { length } else { 0 };
        Some((length, costs.system_call + copying(copied, costs.copy)))
    }

    /// Several such calls, one after the other, and what their process does between them.
    pub async fn memory_calls(&self, calls: u64, time: Duration) {
        self.enter_kernel().await;
        self.spend_calls(calls).await;
        self.compute(time).await;
        self.leave_kernel();
    }

    async fn memory_call(&self, file: &File, op: Op, length: u64) -> Result<u64, Errno> {
        let (length, time) = self.memory_call_of(file, op, length).ok_or(Errno::Einval)?;
        self.memory_calls(1, time).await;
        Ok(length)
    }

    async fn disk_call(&self, op: Op, file: &File, at: u64, length: u64) -> Result<u64, Errno> {
        let checked = self.storage().check(op, file, at, length);
        let transfer = checked.map_or_else(|(_, intended)| intended, |(_, transfer)| transfer);
        let number = self.enter_call(transfer).await;
        let result = match checked {
            Err((errno, _)) => Err(errno),
            Ok((bytes, transfer)) => {
                if bytes > 0 {
                    self.past_the_cache(number, file, at, transfer).await;
                }
                if op == Op::Write && (file.flags.dsync || file.flags.sync) {
                    self.flush(number).await;
                }
                Ok(bytes)
            }
        };
        self.leave_call(number);
        result
    }

    /// Moves something past the page cache, unless pages of it cannot go (rule direct-io-9).
    async fn past_the_cache(&self, number: u64, file: &File, at: u64, transfer: Transfer) {
        let io = FileIo::of(self);
        io.write_what_is_cached(&transfer).await;
        if io.drop_bypassed(&transfer).await {
            self.run_operation(number, transfer).await;
            io.drop_bypassed(&transfer).await;
        } else {
            io.write_by_the_cache(file, at, &transfer).await;
        }
    }
}

/// Copying so many bytes, at a cost for each page.
fn copying(bytes: u64, per_page: Duration) -> Duration {
    per_page * bytes.div_ceil(PAGE)
}
