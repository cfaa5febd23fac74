//! Operations of a task: their bios are submitted, and waited for.
//!
//! What is submitted under one plug goes to the disk together. A bio for which there is no request
//! may be left to a worker, which waits instead (rule direct-io-5).

use super::{IoContextOf, Task};
use crate::file::{Errno, Transfer};
use crate::io::Operation;
use crate::tasks::Wait;
use crate::world::World;
use block::{Bio, Flags, PlugFlush, Syscall};
use std::future::poll_fn;
use std::task::Poll;

impl Task {
    /// Submits the bios of an operation, under a plug if there are several or the kernel always has
    /// one.
    pub(crate) async fn submit_plugged(&self, number: u64, transfer: Transfer, nowait: bool) {
        let plugs = self.storage().plugs(&transfer);
        if plugs {
            self.queue().start_plug(self.id());
        }
        self.submit_bios(number, transfer, nowait).await;
        if plugs {
            self.finish_plug(PlugFlush::Explicit).await;
        }
    }

    /// Submits the bios of an operation and waits until they are done.
    pub(crate) async fn run_operation(&self, number: u64, transfer: Transfer) {
        self.world().io().get(self.id(), number).bios_left = 1;
        let plugs = self.storage().plugs_as_a_whole(&transfer);
        if plugs {
            self.queue().start_plug(self.id());
        }
        self.submit_plugged(number, transfer, false).await;
        self.may_yield_to_disk().await;
        self.wait_for_operation(number).await;
        if plugs {
            self.finish_plug(PlugFlush::Explicit).await;
        }
    }

    /// Waits until the bios of an operation are done.
    pub(crate) async fn wait_for_operation(&self, number: u64) {
        poll_fn(|_| {
            let mut world = self.world();
            if world.io().get(self.id(), number).bios_left == 0 {
                return Poll::Ready(());
            }
            if self.poll_before_sleep(&mut world).is_pending() {
                return Poll::Pending;
            }
            if world.io().get(self.id(), number).bios_left == 0 {
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
                let length = world.storage().bio_length(transfer.op, sector, left);
                let piece = Transfer { sector, sectors: length, ..transfer };
                let bio = self.bio(&mut world, number, piece, nowait);
                world.io().get(self.id(), number).bios_left += 1;
                world.submit_of_program(bio);
                length
            };
            self.drive().await;
            if nowait && self.world().io().take_refused(self.id()) {
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
        let own = world.tasks().ioprio(self.id());
        let owner = world.tasks().principal(self.id());
        let operation = world.io().find(owner, number);
        let ioprio = operation.and_then(|operation| operation.ioprio).unwrap_or(own);
        // Only a bio that will not be split can be refused as a whole.
        let fits = world.storage().is_one_command(it.op, it.sector, it.sectors);
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
            let (now, cpu) = (world.clock().now(), world.cpus().core_of(self.id()));
            world.queue().finish_plug(now, self.id(), cpu, why);
        }
        self.drive().await;
    }

    /// What every task does that is about to sleep for I/O: its plug is flushed.
    pub(crate) fn poll_before_sleep(&self, world: &mut World) -> Poll<()> {
        let (now, cpu) = (world.clock().now(), world.cpus().core_of(self.id()));
        world.queue().finish_plug(now, self.id(), cpu, PlugFlush::Blocks);
        self.poll_drive(world)
    }

    /// An empty flush, if the disk has something to flush (rule sync-1).
    pub(crate) async fn flush(&self, number: u64) {
        if self.queue().limits().facts.volatile_cache {
            self.run_operation(number, Transfer::FLUSH).await;
        }
    }

    /// A flush as a part of something else.
    pub(crate) async fn flush_besides(&self) {
        let number = self.begin_besides();
        self.flush(number).await;
        self.end_besides(number);
    }

    /// Begins to make something durable that no call asked for; the answer is its number.
    pub(crate) fn begin_besides(&self) -> u64 {
        let mut world = self.world();
        let operation = Operation::new(world.clock().now(), Syscall::Sync, Transfer::FLUSH);
        world.io().begin(self.id(), operation)
    }

    /// Ends that.
    pub(crate) fn end_besides(&self, number: u64) {
        self.world().io().end(self.id(), number);
    }

    /// Makes an operation one of the task itself for a while: what it waits for is not its end.
    pub(crate) fn detach(&self, number: u64) -> Option<(usize, u64)> {
        self.world().io().get(self.id(), number).ring.take()
    }

    /// Gives an operation back to its queue; it is still to be submitted.
    pub(crate) fn attach(&self, number: u64, ring: Option<(usize, u64)>) {
        let mut world = self.world();
        let operation = world.io().get(self.id(), number);
        (operation.ring, operation.bios_left) = (ring, 1);
    }

    /// What came of an operation, which may be less than was asked for.
    pub(crate) fn note_result(&self, number: u64, result: Result<u64, Errno>) {
        let mut world = self.world();
        if let Some(operation) = world.io().find(self.id(), number) {
            operation.result = result;
        }
    }

    /// Leaves a piece of an operation to the worker of its queue.
    pub(crate) fn defer(&self, number: u64, piece: Transfer) {
        let mut world = self.world();
        let operation = world.io().get(self.id(), number);
        let (ring, _) = operation.ring.expect("only asynchronous bios are refused");
        if let Some(worker) = world.io().defer(ring, number, piece) {
            return world.notify(worker);
        }
        drop(world);
        // Divergence: one worker submits everything; io_uring starts more when it sleeps.
        let worker = self.spawn_for("iou-wrk", IoContextOf::Parent, Some(self.id()), |task| {
            submit_deferred(task, ring)
        });
        self.world().io().set_worker(ring, worker);
        self.notify(worker);
    }
}

/// The worker that submits what may have to wait.
async fn submit_deferred(task: Task, ring: usize) -> i32 {
    loop {
        task.notified().await;
        loop {
            let next = task.world().io().next_deferred(ring);
            let Some((number, piece)) = next else { break };
            {
                let mut world = task.world();
                let bio = task.bio(&mut world, number, piece, false);
                world.submit_of_program(bio);
            }
            task.drive().await;
        }
    }
}
