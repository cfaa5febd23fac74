//! How a task enters the kernel and leaves it, and how it sleeps there.

use super::Task;
use crate::cpus::State;
use crate::file::Transfer;
use crate::io::Operation;
use crate::storage::Effect;
use crate::tasks::Wait;
use crate::world::{Progress, World};
use std::future::poll_fn;
use std::task::Poll;

impl Task {
    /// Enters a system call of any kind. Does not come back if the program is taken to be endless,
    /// or if the task was killed.
    pub async fn enter_kernel(&self) {
        poll_fn(|_| {
            let mut world = self.world();
            if world.must_exit(self.id()) {
                world.cpus().make_ready(self.id());
                return Poll::Pending;
            }
            if world.cpus().is_to_leave(self.id()) {
                world.cpus().make_ready(self.id());
                return Poll::Pending;
            }
            if !world.count_call(self.id()) {
                return self.wait(&mut world, Wait::Nothing);
            }
            world.cpus().set_in_call(self.id(), true);
            Poll::Ready(())
        })
        .await;
    }

    /// A point at which the core may go to somebody else, within a system call or at its end.
    pub async fn may_yield(&self) {
        self.leave_kernel();
        poll_fn(|_| {
            let mut world = self.world();
            if world.cpus().is_to_leave(self.id()) {
                world.cpus().make_ready(self.id());
                return Poll::Pending;
            }
            world.cpus().set_in_call(self.id(), true);
            Poll::Ready(())
        })
        .await;
    }

    /// The same before a request and before a sleep, if tasks yield there.
    pub async fn may_yield_to_disk(&self) {
        if self.storage().rules().yields_between {
            self.may_yield().await;
        }
    }

    /// Counts calls that come to no disk. Does not come back when there have been as many as there
    /// may be.
    pub async fn spend_calls(&self, calls: u64) {
        poll_fn(|_| {
            let mut world = self.world();
            if world.spend_calls(calls) {
                return Poll::Ready(());
            }
            self.wait(&mut world, Wait::Nothing)
        })
        .await;
    }

    /// Leaves a system call of any kind.
    pub fn leave_kernel(&self) {
        self.world().cpus().set_in_call(self.id(), false);
    }

    /// Enters a system call that concerns the disk, and pays for it; the answer is its number.
    pub(crate) async fn enter_call(&self, transfer: Transfer) -> u64 {
        self.enter_kernel().await;
        let number = {
            let mut world = self.world();
            let operation = Operation::new(world.clock().now(), transfer.call(), transfer);
            world.enter(self.id(), operation)
        };
        self.compute(self.costs().system_call).await;
        number
    }

    /// Leaves it.
    pub(crate) fn leave_call(&self, number: u64) {
        self.world().leave(self.id(), number);
    }

    /// Goes to sleep; whoever ends what is waited for wakes the task.
    pub(crate) fn wait<T>(&self, world: &mut World, what: Wait) -> Poll<T> {
        world.tasks().set_wait(self.id, what);
        world.block(self.id);
        Poll::Pending
    }

    /// Does what the task has to do in the block layer; sleeps there for requests if need be.
    pub(crate) fn poll_drive(&self, world: &mut World) -> Poll<()> {
        match world.drive(self.id) {
            Progress::Idle => Poll::Ready(()),
            Progress::Busy => Poll::Pending,
            Progress::Asleep => {
                assert_eq!(world.cpus().state(self.id), State::Running);
                world.block(self.id);
                Poll::Pending
            }
        }
    }

    /// [`Task::poll_drive`], awaited.
    pub(crate) async fn drive(&self) {
        poll_fn(|_| self.poll_drive(&mut self.world())).await;
    }

    /// Sees to what storage wants done with tasks.
    pub(crate) fn apply(&self, effects: Vec<Effect>) {
        self.world().apply(self.id(), effects);
    }
}
