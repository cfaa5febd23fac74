//! Operations of tasks: how they are entered and left, and what is told of that.

use super::World;
use crate::io::{Asked, Operation};
use block::{Action, ContextId, Event};

impl World {
    /// Takes in an operation of a task and says so; the answer is its number.
    pub fn enter(&mut self, task: ContextId, operation: Operation) -> u64 {
        self.spend_calls(1);
        let asked = operation.asked();
        let number = self.io.begin(task, operation);
        self.log_call(task, number, asked, Action::SyscallEnter(asked.call));
        number
    }

    /// Jobs make so many I/O calls; false when there have been as many as there may be, and the
    /// run is over.
    pub fn spend_calls(&mut self, calls: u64) -> bool {
        if let Some(left) = self.calls_left.as_mut().filter(|_| self.preparation.is_done()) {
            *left = left.saturating_sub(calls);
        }
        self.calls_left != Some(0)
    }

    /// Counts a system call; false when the program is endless and must not go on.
    pub fn count_call(&mut self, context: ContextId) -> bool {
        if !self.clock.count_call() {
            self.endless = self.tasks.job(context).or(Some(0));
        }
        self.endless.is_none()
    }

    /// Writes that the operations of a task did not come to their ends. What the kernel's own tasks
    /// have under way is no call that anybody entered.
    pub fn log_unfinished(&mut self, context: ContextId) {
        for operation in self.io.end_all(context) {
            if self.tasks.job(context).is_some() {
                let action = block::Action::SyscallUnfinished {
                    call: operation.call,
                    entered: operation.entered,
                    submitted: operation.submitted,
                };
                self.log_call(context, operation.number, operation.asked(), action);
            }
        }
    }

    /// Writes an event about an operation with this number.
    fn log_call(&mut self, context: ContextId, token: u64, asked: Asked, action: Action) {
        if !self.storage.queue_mut().log().is_on() || !self.tasks.tells_calls(context) {
            return;
        }
        let (at, cpu) = (self.clock.now(), self.cpus.core_of(context));
        let Asked { call, sector, sectors } = asked;
        let op = match call {
            block::Syscall::Read | block::Syscall::AsyncRead => block::Op::Read,
            block::Syscall::Discard => block::Op::Discard,
            _ => block::Op::Write,
        };
        self.log(|| Event { at, context, cpu, op, sector, sectors, token, ..Event::note(action) });
    }

    /// A task leaves the system call of an operation of its.
    pub fn leave(&mut self, task: ContextId, number: u64) {
        let operation = self.io.end(task, number);
        let (call, entered) = (operation.call, operation.entered);
        let action = Action::SyscallExit { call, entered, submitted: entered };
        self.log_call(task, number, operation.asked(), action);
        self.cpus.set_in_call(task, false);
    }

    /// Takes out an operation of an asynchronous queue that is done, and says so.
    pub fn reap(&mut self, task: ContextId, number: u64) -> Operation {
        let operation = self.io.end(task, number);
        let (call, entered) = (operation.call, operation.entered);
        let submitted = operation.submitted;
        let action = Action::SyscallExit { call, entered, submitted };
        self.log_call(task, number, operation.asked(), action);
        operation
    }
}
