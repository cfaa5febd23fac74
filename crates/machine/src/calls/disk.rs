//! System calls on the raw disk: open, read, write, fsync, discard.
//!
//! Every path below `/dev` is the simulated disk, but for `/dev/zero` and `/dev/null`; there are no
//! other files. A direct call is cut into bios of at most 256 pages, submitted by the caller under
//! a plug, and waited for (rules direct-io). Writes that must be durable carry FUA and are followed
//! by a flush. Without O_DIRECT reads and writes go through the page cache ([`cache`]).

use crate::buffered::ALL;
use crate::file::{Errno, File, Kind, MOST_BYTES, OpenFlags, Transfer};
use crate::io::Operation;
use crate::task::Task;
use crate::tasks::Wait;
use crate::world::World;
use base::Duration;
use block::{Action, Bio, Flags, Op, PlugFlush};
use std::future::poll_fn;
use std::ops::Range;
use std::task::Poll;

const PAGE: u64 = 4096;

impl Task {
    /// Opens a file.
    pub fn open(&self, path: &str, flags: OpenFlags) -> Result<File, Errno> {
        let kind = match path {
            "/dev/zero" => Kind::Zero,
            "/dev/null" => Kind::Null,
            _ if path.starts_with("/dev/") => Kind::Disk,
            _ => return Err(Errno::Enoent),
        };
        let mut world = self.world();
        let device = world.readahead_allowance();
        let number = match kind {
            Kind::Disk => world.cache.open(self.id(), device, 0, true),
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
            self.world().cache.confine(file.number, pages);
        }
        Ok(file)
    }

    /// Reads; the answer is the number of bytes, zero at the end of the disk.
    pub async fn pread(&self, file: &File, offset: u64, length: u64) -> Result<u64, Errno> {
        match file.kind {
            Kind::Disk if !file.flags.direct => self.read_cached(file, offset, length).await,
            Kind::Disk => self.disk_call(Op::Read, file, offset, length).await,
            Kind::File(index) if file.flags.direct => {
                self.read_file_directly(index, offset, length).await
            }
            Kind::File(index) => self.read_file(file, index, offset, length).await,
            Kind::Zero => self.memory_call(length, true).await,
            Kind::Null => self.memory_call(0, false).await,
        }
    }

    /// Writes; the answer is the number of bytes.
    pub async fn pwrite(&self, file: &File, offset: u64, length: u64) -> Result<u64, Errno> {
        match file.kind {
            Kind::Disk if !file.flags.direct => self.write_cached(file, offset, length).await,
            Kind::Disk => self.disk_call(Op::Write, file, offset, length).await,
            Kind::File(index) if file.flags.direct => {
                self.write_file_directly(file, index, offset, length).await
            }
            Kind::File(index) => self.write_file(file, index, offset, length).await,
            Kind::Zero | Kind::Null => self.memory_call(length, false).await,
        }
    }

    /// Makes durable what was written of a file before, but not when, or by whom.
    pub async fn fdatasync(&self, file: &File) -> Result<(), Errno> {
        match file.kind {
            Kind::File(index) => {
                self.sync_file(index, true).await;
                Ok(())
            }
            _ => self.fsync(file).await,
        }
    }

    /// Makes durable what was written before: fsync and fdatasync are the same on a raw disk.
    pub async fn fsync(&self, file: &File) -> Result<(), Errno> {
        if let Kind::File(index) = file.kind {
            self.sync_file(index, false).await;
            return Ok(());
        }
        if !file.is_disk() {
            return Err(Errno::Einval);
        }
        let number = self.enter_call(Transfer::FLUSH).await;
        self.write_and_wait(ALL).await;
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
        self.world().bypassed(&transfer);
        self.run_operation(number, transfer).await;
        self.leave_call(number);
    }

    /// Reads from /dev/zero, and writes to nowhere.
    async fn memory_call(&self, length: u64, copies: bool) -> Result<u64, Errno> {
        let length = length.min(MOST_BYTES);
        self.enter_kernel().await;
        let costs = self.costs();
        let copied = if copies { length } else { 0 };
        self.compute(costs.system_call + copying(copied, costs.copy)).await;
        self.leave_kernel();
        Ok(length)
    }

    async fn disk_call(&self, op: Op, file: &File, at: u64, length: u64) -> Result<u64, Errno> {
        let checked = self.world().check(op, file, at, length);
        let transfer = checked.map_or_else(|(_, intended)| intended, |(_, transfer)| transfer);
        let number = self.enter_call(transfer).await;
        let result = match checked {
            Err((errno, _)) => Err(errno),
            Ok((bytes, transfer)) => {
                if bytes > 0 {
                    self.write_what_is_cached(&transfer).await;
                    self.world().bypassed(&transfer);
                    self.run_operation(number, transfer).await;
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

    /// An empty flush, if the disk has something to flush (rule sync-1).
    pub(crate) async fn flush(&self, number: u64) {
        if self.world().queue.limits().facts.volatile_cache {
            self.run_operation(number, Transfer::FLUSH).await;
        }
    }

    /// Submits the bios of an operation, under a plug if there are several or the kernel always has
    /// one.
    pub(crate) async fn submit_plugged(&self, number: u64, transfer: Transfer, nowait: bool) {
        let plugs = self.world().plugs(&transfer);
        if plugs {
            self.world().queue.start_plug(self.id());
        }
        self.submit_bios(number, transfer, nowait).await;
        if plugs {
            self.finish_plug(PlugFlush::Explicit).await;
        }
    }

    /// Submits the bios of an operation and waits until they are done.
    async fn run_operation(&self, number: u64, transfer: Transfer) {
        self.world().io.get(self.id(), number).bios_left = 1;
        self.submit_plugged(number, transfer, false).await;
        self.wait_for_operation(number).await;
    }

    /// Waits until the bios of an operation are done.
    pub(crate) async fn wait_for_operation(&self, number: u64) {
        poll_fn(|_| {
            let mut world = self.world();
            if world.io.get(self.id(), number).bios_left == 0 {
                return Poll::Ready(());
            }
            if self.poll_before_sleep(&mut world).is_pending() {
                return Poll::Pending;
            }
            if world.io.get(self.id(), number).bios_left == 0 {
                return Poll::Ready(());
            }
            self.wait(&mut world, Wait::Operation(number))
        })
        .await;
    }

    /// Submits the bios of an operation. With `nowait` a bio that would have to wait for a request
    /// is given to the worker of the operation's queue instead.
    pub(crate) async fn submit_bios(&self, number: u64, transfer: Transfer, nowait: bool) {
        self.submit_part(number, transfer, nowait).await;
        self.world().all_submitted(self.id(), number);
    }

    /// Submits the bios of a part of an operation.
    pub(crate) async fn submit_part(&self, number: u64, transfer: Transfer, nowait: bool) {
        let (mut sector, mut left) = (transfer.sector, transfer.sectors);
        loop {
            let length = {
                let mut world = self.world();
                let length = world.bio_length(transfer.op, sector, left);
                let piece = Transfer { sector, sectors: length, ..transfer };
                let bio = self.bio(&mut world, number, piece, nowait);
                world.io.get(self.id(), number).bios_left += 1;
                world.submit(bio);
                length
            };
            self.drive().await;
            if nowait && self.world().io.take_refused(self.id()) {
                self.defer(number, Transfer { sector, sectors: length, ..transfer });
            }
            sector = sector + length;
            left = left - length;
            if left.is_zero() {
                break;
            }
        }
    }

    /// The bio for a piece of an operation, as this task submits it.
    pub(crate) fn bio(&self, world: &mut World, number: u64, it: Transfer, nowait: bool) -> Bio {
        let own = world.tasks.ioprio(self.id());
        let owner = world.tasks.principal(self.id());
        let operation = world.io.find(owner, number);
        let ioprio = operation.and_then(|operation| operation.ioprio).unwrap_or(own);
        // Only a bio that will not be split can be refused as a whole.
        let fits = it.sectors <= world.queue.limits().largest_at(it.sector);
        let nowait = if nowait && fits { Flags::NOWAIT } else { Flags::NONE };
        Bio {
            op: it.op,
            flags: it.flags.with(nowait),
            sector: it.sector,
            sectors: it.sectors,
            ioprio,
            origin: self.origin(world),
            token: number,
        }
    }

    /// Ends the plug and does what comes of it.
    pub(crate) async fn finish_plug(&self, why: PlugFlush) {
        {
            let mut world = self.world();
            let (now, cpu) = (world.clock.now(), world.cpus.core_of(self.id()));
            world.queue.finish_plug(now, self.id(), cpu, why);
        }
        self.drive().await;
    }

    /// What every task does that is about to sleep for I/O: its plug is flushed.
    pub(crate) fn poll_before_sleep(&self, world: &mut World) -> Poll<()> {
        let (now, cpu) = (world.clock.now(), world.cpus.core_of(self.id()));
        world.queue.finish_plug(now, self.id(), cpu, PlugFlush::Blocks);
        self.poll_drive(world)
    }

    /// Enters a system call of any kind. Does not come back if the program is taken to be endless,
    /// or if the task was killed.
    pub async fn enter_kernel(&self) {
        poll_fn(|_| {
            let mut world = self.world();
            if world.must_exit(self.id()) {
                world.cpus.make_ready(self.id());
                return Poll::Pending;
            }
            if world.cpus.is_to_leave(self.id()) {
                world.cpus.make_ready(self.id());
                return Poll::Pending;
            }
            if !world.count_call(self.id()) {
                return self.wait(&mut world, Wait::Nothing);
            }
            world.cpus.set_in_call(self.id(), true);
            Poll::Ready(())
        })
        .await;
    }

    /// Leaves a system call of any kind.
    pub fn leave_kernel(&self) {
        self.world().cpus.set_in_call(self.id(), false);
    }

    /// Enters a system call that concerns the disk, and pays for it; the answer is its number.
    pub(crate) async fn enter_call(&self, transfer: Transfer) -> u64 {
        self.enter_kernel().await;
        let number = {
            let mut world = self.world();
            let operation = Operation::new(world.clock.now(), transfer.call(), transfer);
            world.enter(self.id(), operation)
        };
        self.compute(self.costs().system_call).await;
        number
    }

    pub(crate) fn leave_call(&self, number: u64) {
        let mut world = self.world();
        let operation = world.io.end(self.id(), number);
        let (call, entered) = (operation.call, operation.entered);
        let action = Action::SyscallExit { call, entered, submitted: entered };
        world.log_call(self.id(), &operation, action);
        world.cpus.set_in_call(self.id(), false);
    }
}

/// Copying so many bytes, at a cost for each page.
fn copying(bytes: u64, per_page: Duration) -> Duration {
    per_page * bytes.div_ceil(PAGE)
}
