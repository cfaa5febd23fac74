//! Asynchronous interfaces: many requests of one task in flight, by libaio or io_uring.
//!
//! A batch is submitted by the task itself under one plug. Under libaio the task sleeps when there
//! is no request to be had; under io_uring such a bio is refused, and a worker of the process
//! submits it again and sleeps instead (rule direct-io-5). Flushes are done by a worker in both.
//!
// Divergence: io_uring waits for buffered reads as libaio does, while a worker should. A durable
// write (O_DSYNC) carries FUA here and is not followed by the flush that a synchronous one has;
// io_uring's submission and completion polling are not modelled.
// On a file of a file system its flushes are done by the task itself.

use crate::file::{Errno, File, Transfer};
use crate::filesystem::{FileIo, intended};
use crate::io::Operation;
use crate::pages::{ALL, pages_of};
use crate::task::Task;
use crate::tasks::Wait;
use crate::world::World;
use base::{Duration, Instant};
use block::{Ioprio, Op, PlugFlush, Syscall};
use std::future::poll_fn;
use std::ops::Range;
use std::task::Poll;

/// The interface of an asynchronous queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// io_submit and io_getevents.
    Libaio,
    /// Submission and completion rings.
    IoUring,
}

/// What an asynchronous request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncOp {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Flush the disk's cache.
    Sync,
    /// Flush it for data, and what finding them needs.
    DataSync,
    /// Discard.
    Discard,
}

/// Requests of one task that are in flight together.
pub struct AsyncQueue {
    task: Task,
    ring: usize,
    interface: Interface,
    prepared: Vec<Prepared>,
    in_flight: usize,
}

/// A request that is not submitted.
struct Prepared {
    call: Syscall,
    /// Of what is made durable.
    only_data: bool,
    /// The file and the offset, unless it is a transfer as it is.
    place: Option<(File, u64)>,
    /// It goes through the page cache, or to the file system.
    is_cached: bool,
    what: Result<(u64, Transfer), (Errno, Transfer)>,
    user: u64,
    ioprio: Option<Ioprio>,
    at: Instant,
}

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reaped {
    /// The caller's mark.
    pub user: u64,
    /// Bytes transferred.
    pub result: Result<u64, Errno>,
    /// When it was prepared.
    pub prepared: Instant,
    /// When it had been submitted.
    pub submitted: Instant,
    /// When it was done.
    pub completed: Instant,
}

impl Task {
    /// What a request on a file of the file system means to move.
    fn intended_on_file(
        &self,
        file: &File,
        op: AsyncOp,
        offset: u64,
        length: u64,
    ) -> (u64, Transfer) {
        let op = if op == AsyncOp::Read { Op::Read } else { Op::Write };
        let bytes = match op {
            Op::Read => length.min(self.size(file).saturating_sub(offset)),
            _ => length,
        };
        (bytes, intended(op, offset, bytes))
    }

    /// Creates an asynchronous queue.
    pub fn async_queue(&self, interface: Interface) -> AsyncQueue {
        let mut world = self.world();
        let ring = world.io().add_ring();
        drop(world);
        AsyncQueue { task: self.clone(), ring, interface, prepared: Vec::new(), in_flight: 0 }
    }
}

impl AsyncQueue {
    /// Requests that were submitted and not reaped.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Requests that were prepared and not submitted.
    pub fn prepared(&self) -> usize {
        self.prepared.len()
    }

    /// Adds a request to the batch that is submitted next. `user` is handed back with the result;
    /// `ioprio` takes precedence over the task's own.
    pub fn prepare(
        &mut self,
        file: &File,
        op: AsyncOp,
        offset: u64,
        length: u64,
        user: u64,
        ioprio: Option<Ioprio>,
    ) {
        let storage = self.task.storage();
        let check = |op| storage.check_async(op, file, offset, length);
        let (call, what) = match op {
            AsyncOp::Read => (Syscall::AsyncRead, check(Op::Read)),
            AsyncOp::Write => (Syscall::AsyncWrite, check(Op::Write)),
            AsyncOp::Discard => (Syscall::Discard, check(Op::Discard)),
            AsyncOp::Sync | AsyncOp::DataSync => (Syscall::Sync, Ok((0, Transfer::FLUSH))),
        };
        drop(storage);
        let at = self.task.now();
        let what = match file.index() {
            Some(_) if call != Syscall::Sync => {
                Ok(self.task.intended_on_file(file, op, offset, length))
            }
            _ => what,
        };
        let is_file = file.index().is_some();
        let is_cached = (file.wants_page_cache() || is_file) && op != AsyncOp::Discard;
        let place = Some((*file, offset));
        let only_data = op == AsyncOp::DataSync;
        self.prepared.push(Prepared { call, only_data, place, is_cached, what, user, ioprio, at });
    }

    /// Adds a piece of I/O as it is, whatever it came from.
    pub fn prepare_transfer(&mut self, transfer: Transfer, user: u64) {
        let call = match transfer.op {
            Op::Read => Syscall::AsyncRead,
            Op::Discard => Syscall::Discard,
            Op::Write if transfer.sectors.is_zero() => Syscall::Sync,
            Op::Write => Syscall::AsyncWrite,
        };
        let what = Ok((transfer.sectors.bytes().0, transfer));
        let at = self.task.now();
        let (only_data, place, is_cached, ioprio) = (false, None, false, None);
        self.prepared.push(Prepared { call, only_data, place, is_cached, what, user, ioprio, at });
    }

    /// Submits what was prepared, in one system call; the answer is how many requests that were.
    pub async fn submit(&mut self) -> usize {
        let count = self.prepared.len();
        if count == 0 {
            return 0;
        }
        let task = &self.task;
        task.enter_kernel().await;
        task.compute(task.costs().system_call).await;
        let plugs = count > task.storage().rules().unplugged_batch;
        if plugs {
            task.queue().start_plug(task.id());
        }
        for prepared in &self.prepared {
            task.may_yield_to_disk().await;
            self.submit_one(prepared).await;
        }
        if plugs {
            task.finish_plug(PlugFlush::Explicit).await;
        }
        task.leave_kernel();
        self.prepared.clear();
        self.in_flight += count;
        count
    }

    /// Waits until at least `least` requests are done (never more than are in flight) or the time
    /// is over, and appends at most `most` of them to `reaped`. The answer is how many.
    pub async fn reap(
        &mut self,
        least: usize,
        most: usize,
        timeout: Option<Duration>,
        reaped: &mut Vec<Reaped>,
    ) -> usize {
        let task = &self.task;
        let least = least.min(most).min(self.in_flight);
        let done = task.world().io().done(self.ring);
        // A completion ring is memory that can be read without a system call.
        if self.interface == Interface::Libaio || done < least {
            task.enter_kernel().await;
            task.compute(task.costs().system_call).await;
            // A task that waits here can be killed.
            task.leave_kernel();
        }
        let until = timeout.map(|timeout| task.now().saturating_add(timeout));
        poll_fn(|_| self.poll_done(least, until)).await;
        let mut world = task.world();
        world.clock().cancel_alarm(task.id());
        let count = most.min(world.io().done(self.ring));
        for _ in 0..count {
            let (number, completed) =
                world.io().take_done(self.ring).expect("counted a line above");
            let operation = world.reap(task.id(), number);
            let (_, user) = operation.ring.expect("it was submitted by a queue");
            reaped.push(Reaped {
                user,
                result: operation.result,
                prepared: operation.entered,
                submitted: operation.submitted,
                completed,
            });
        }
        drop(world);
        self.in_flight -= count;
        count
    }

    async fn submit_one(&self, prepared: &Prepared) {
        let task = &self.task;
        let (result, transfer) = match prepared.what {
            Ok((bytes, transfer)) => (Ok(bytes), transfer),
            Err((errno, transfer)) => (Err(errno), transfer),
        };
        let number = {
            let mut world = task.world();
            let operation = Operation {
                entered: prepared.at,
                ring: Some((self.ring, prepared.user)),
                ioprio: prepared.ioprio,
                result,
                ..Operation::new(world.clock().now(), prepared.call, transfer)
            };
            world.enter(task.id(), operation)
        };
        let is_flush = prepared.call == Syscall::Sync;
        let caches = task.queue().limits().facts.volatile_cache;
        if let Some((file, offset)) = prepared.place.filter(|_| prepared.is_cached) {
            self.through_cache(number, prepared, &file, offset).await;
        } else if result.is_err() || (transfer.sectors.is_zero() && !(is_flush && caches)) {
            task.world().all_submitted(task.id(), number);
        } else if is_flush {
            task.world().io().get(task.id(), number).bios_left += 1;
            task.defer(number, transfer);
            task.world().all_submitted(task.id(), number);
        } else {
            FileIo::of(task).write_what_is_cached(&transfer).await;
            let may_bypass = FileIo::of(task).drop_bypassed(&transfer).await;
            match prepared.place.filter(|_| !may_bypass) {
                Some((file, offset)) => {
                    FileIo::of(task).write_by_the_cache(&file, offset, &transfer).await;
                    task.world().all_submitted(task.id(), number);
                }
                None => {
                    let nowait = self.interface == Interface::IoUring;
                    task.submit_plugged(number, transfer, nowait).await;
                }
            }
        }
        let mut world = task.world();
        let now = world.clock().now();
        world.io().get(task.id(), number).submitted = now;
    }

    /// What goes through the page cache is done when it has been submitted.
    async fn through_cache(&self, number: u64, prepared: &Prepared, file: &File, offset: u64) {
        let task = &self.task;
        let bytes = prepared.what.as_ref().map_or(0, |(bytes, _)| *bytes);
        let end = offset + bytes;
        if let Some(index) = file.index() {
            return self.on_file(number, prepared, file, index, offset..end).await;
        }
        match prepared.call {
            Syscall::AsyncRead if bytes > 0 => FileIo::of(task).read_pages(file, offset, end).await,
            Syscall::AsyncWrite if bytes > 0 => {
                FileIo::of(task).write_pages(file, offset, end).await;
                if file.flags.dsync || file.flags.sync {
                    FileIo::of(task).write_and_wait(pages_of(offset, end)).await;
                    task.flush_besides().await;
                }
            }
            Syscall::Sync => {
                FileIo::of(task).write_and_wait(ALL).await;
                task.flush_besides().await;
            }
            _ => {}
        }
        task.world().all_submitted(task.id(), number);
    }

    /// A request on a file of the file system. What goes through the page cache is done when it has
    /// been submitted.
    async fn on_file(
        &self,
        number: u64,
        prepared: &Prepared,
        file: &File,
        index: usize,
        bytes: Range<u64>,
    ) {
        let task = &self.task;
        match prepared.call {
            Syscall::AsyncRead if file.flags.direct && !bytes.is_empty() => {
                return FileIo::of(task).submit_direct_read(number, index, bytes).await;
            }
            Syscall::AsyncWrite if file.flags.direct && !bytes.is_empty() => {
                let length = bytes.end - bytes.start;
                let result = FileIo::of(task).submit_direct_write(number, file, index, bytes).await;
                return task.note_result(number, result.map(|()| length));
            }
            Syscall::AsyncRead => FileIo::of(task).read_part(file, index, bytes).await,
            Syscall::AsyncWrite => {
                let ring = task.detach(number);
                let result = FileIo::of(task).write_part(number, file, index, bytes).await;
                task.attach(number, ring);
                task.note_result(number, result);
            }
            Syscall::Sync => {
                let ring = task.detach(number);
                let all = 0..cache::FILE_PAGES;
                FileIo::of(task).make_durable(number, index, all, prepared.only_data).await;
                task.attach(number, ring);
            }
            _ => {}
        }
        task.world().all_submitted(task.id(), number);
    }

    fn poll_done(&self, least: usize, until: Option<Instant>) -> Poll<()> {
        let task = &self.task;
        let mut world = task.world();
        let is_enough = |world: &mut World| {
            world.io().done(self.ring) >= least
                || until.is_some_and(|until| world.clock().now() >= until)
        };
        if is_enough(&mut world) {
            return Poll::Ready(());
        }
        if task.poll_before_sleep(&mut world).is_pending() {
            return Poll::Pending;
        }
        if is_enough(&mut world) {
            return Poll::Ready(());
        }
        if let Some(until) = until {
            world.clock().sleep(task.id(), until, until);
        }
        task.wait(&mut world, Wait::Ring { ring: self.ring, least })
    }
}
