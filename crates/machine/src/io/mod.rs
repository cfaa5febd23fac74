//! I/O under way: what tasks have asked for and not been told the end of.
//!
//! An operation is one system call, or one request of an asynchronous queue (a ring). Its bios are
//! counted here; who is woken when the last one is done is said by the world.

mod operations;

pub(crate) use operations::{Asked, Operation};

use crate::file::Transfer;
use crate::tasks::Wait;
use base::Instant;
use block::ContextId;
use operations::Operations;
use std::collections::VecDeque;

/// Operations by task, and asynchronous queues.
#[derive(Default)]
pub(crate) struct Io {
    tasks: Vec<OfTask>,
    rings: Vec<Ring>,
}

/// What one task has under way.
#[derive(Default)]
struct OfTask {
    operations: Operations,
    /// A bio was not accepted because it would have had to wait.
    was_refused: bool,
}

/// The machine's side of an asynchronous queue.
#[derive(Default)]
struct Ring {
    /// Operations that are done, and since when.
    done: VecDeque<(u64, Instant)>,
    /// Pieces of operations that the worker is to submit.
    deferred: VecDeque<(u64, Transfer)>,
    worker: Option<ContextId>,
}

impl Io {
    /// Takes in an operation of a task; the answer is its number.
    pub fn begin(&mut self, task: ContextId, operation: Operation) -> u64 {
        self.of(task).operations.insert(operation)
    }

    /// An operation of a task, which must be under way.
    #[track_caller]
    pub fn get(&mut self, task: ContextId, number: u64) -> &mut Operation {
        self.of(task).operations.get(number)
    }

    /// An operation of a task, if it is under way.
    pub fn find(&mut self, task: ContextId, number: u64) -> Option<&mut Operation> {
        self.of(task).operations.find(number)
    }

    /// Takes an operation of a task out.
    #[track_caller]
    pub fn end(&mut self, task: ContextId, number: u64) -> Operation {
        self.of(task).operations.remove(number)
    }

    /// Takes all operations of a task out, in the order of their numbers.
    pub fn end_all(&mut self, task: ContextId) -> Vec<Operation> {
        self.of(task).operations.drain()
    }

    /// A bio of an operation is done; the operation, if it was the last one. (A task that was
    /// killed has no operations any more.)
    pub fn bio_done(&mut self, task: ContextId, number: u64) -> Option<&mut Operation> {
        let operation = self.find(task, number)?;
        operation.bios_left -= 1;
        (operation.bios_left == 0).then_some(operation)
    }

    /// Nothing of an operation is under way any more; whether that is what its task waits for.
    pub fn is_awaited(&mut self, task: ContextId, number: u64, wait: Wait, now: Instant) -> bool {
        let Some(operation) = self.find(task, number) else { return false };
        match operation.ring {
            None => wait == Wait::Operation(number),
            Some((ring, _)) => {
                let done = &mut self.rings[ring].done;
                done.push_back((number, now));
                matches!(wait, Wait::Ring { ring: it, least } if it == ring && done.len() >= least)
            }
        }
    }

    /// A bio of a task was not accepted because it would have had to wait.
    pub fn refuse(&mut self, task: ContextId) {
        self.of(task).was_refused = true;
    }

    /// Whether a bio of a task was not accepted since this was last asked.
    pub fn take_refused(&mut self, task: ContextId) -> bool {
        std::mem::take(&mut self.of(task).was_refused)
    }

    /// Makes an asynchronous queue; the answer is its number.
    pub fn add_ring(&mut self) -> usize {
        self.rings.push(Ring::default());
        self.rings.len() - 1
    }

    /// How many operations of a queue are done and not reaped.
    pub fn done(&self, ring: usize) -> usize {
        self.rings[ring].done.len()
    }

    /// The operation of a queue that was done first, and when.
    pub fn take_done(&mut self, ring: usize) -> Option<(u64, Instant)> {
        self.rings[ring].done.pop_front()
    }

    /// Leaves a piece of an operation to the worker of its queue, who is to be told if there is
    /// one.
    pub fn defer(&mut self, ring: usize, number: u64, piece: Transfer) -> Option<ContextId> {
        self.rings[ring].deferred.push_back((number, piece));
        self.rings[ring].worker
    }

    /// A queue has a worker from now on.
    pub fn set_worker(&mut self, ring: usize, worker: ContextId) {
        self.rings[ring].worker = Some(worker);
    }

    /// The next piece that the worker of a queue is to submit.
    pub fn next_deferred(&mut self, ring: usize) -> Option<(u64, Transfer)> {
        self.rings[ring].deferred.pop_front()
    }

    fn of(&mut self, task: ContextId) -> &mut OfTask {
        let number = task.0 as usize;
        if number >= self.tasks.len() {
            self.tasks.resize_with(number + 1, OfTask::default);
        }
        &mut self.tasks[number]
    }
}
