//! Commands, bios and operations come to their ends.
//!
//! The device's interrupt completes commands; the block layer says which bios that makes done, who is
//! to be woken and what the device gets next; and an operation whose last bio is done lets its task
//! go on.

use crate::clock::AgendaItem;
use crate::cores::Cause;
use crate::world::{Wait, World};
use block::command::Command;
use block::{ContextId, Output};
use cache::PageCache;

impl World {
    pub fn complete_commands(&mut self) {
        let mut completed = std::mem::take(&mut self.completed);
        self.device.advance(self.clock.now(), &mut completed);
        for tag in completed.drain(..) {
            self.mark.completion(self.clock.now(), tag.0);
            // One interrupt for each hardware queue: with several, commands complete where they
            // were issued; a single one is served by the first core.
            let several = self.queue.limits().facts.hardware_queues > 1;
            let core = if several { self.issued_on[tag.0 as usize] } else { 0 };
            self.interrupt(usize::from(core), Cause::Completion(tag));
        }
        self.completed = completed;
    }

    pub fn take_outputs(&mut self, by: ContextId) {
        while let Some(output) = self.queue.pop_output() {
            match output {
                Output::Issue(command) => {
                    let tag = command.tag.0 as usize;
                    if tag >= self.issued_on.len() {
                        self.issued_on.resize(tag + 1, 0);
                    }
                    self.issued_on[tag] = self.context(by).core;
                    self.mark.command(self.clock.now(), &command);
                    self.hand_over(by, command);
                }
                Output::BioDone { token, context } => {
                    let owner = self.context(context).acts_for.unwrap_or(context);
                    self.bio_done(owner, token, by);
                }
                Output::WouldBlock { token, context } => {
                    self.context(context).refused = Some(token);
                }
                Output::Wake(context) => self.wake_by(by, context),
                Output::RunWorker { after } if after.is_zero() => self.notify(self.worker()),
                Output::RunWorker { after } => {
                    self.clock.schedule_after(after, AgendaItem::Worker);
                }
            }
        }
    }

    /// Gives a command to the device, after its data have been moved where the driver does that.
    fn hand_over(&mut self, by: ContextId, command: Command) {
        let cost = self.prices.transfer(command.sectors);
        if cost.is_zero() {
            return self.device.accept(self.clock.now(), command);
        }
        let core = usize::from(self.context(by).core);
        self.cores[core].moves_data = true;
        self.clock.schedule_after(cost, AgendaItem::Moved(core, command));
        self.owe(by, cost);
    }

    /// A bio of an operation is done. (A task that was killed has no operations any more.)
    pub fn bio_done(&mut self, owner: ContextId, token: u64, by: ContextId) {
        if PageCache::owns(token) {
            let is_write = self.fs.as_ref().is_some_and(|fs| fs.files().is_writing(token));
            return match is_write {
                true => self.file_pages_written(token, by),
                false => self.pages_done(token, by),
            };
        }
        let exec = &mut self.contexts[owner.0 as usize];
        let Some(operation) = exec.operations.find(token) else { return };
        operation.bios_left -= 1;
        if operation.bios_left > 0 {
            return;
        }
        let finish = operation.finish.take();
        if self.fs.is_some() {
            self.log_written(owner, by);
            self.log_of_xfs_written(owner, token, by);
        }
        match finish {
            Some(finish) => self.leave_to_finisher(owner, token, finish, by),
            None => self.operation_done(owner, token, by),
        }
    }

    /// Nothing of an operation is under way any more.
    pub fn operation_done(&mut self, owner: ContextId, token: u64, by: ContextId) {
        let now = self.clock.now();
        let exec = &mut self.contexts[owner.0 as usize];
        let Some(operation) = exec.operations.find(token) else { return };
        let is_awaited = match (exec.wait, operation.ring) {
            (wait, None) => wait == Wait::Operation(token),
            (wait, Some((ring, _))) => {
                let done = &mut self.rings[ring].done;
                done.push_back((token, now));
                matches!(wait, Wait::Ring { ring: it, least } if it == ring && done.len() >= least)
            }
        };
        if is_awaited {
            exec.wait = Wait::Nothing;
            self.wake_by(by, owner);
        }
    }
}
