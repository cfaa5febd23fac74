//! Commands, bios and operations come to their ends.
//!
//! The device's interrupt completes commands; the block layer says which bios that makes done, who
//! is to be woken and what the device gets next; and an operation whose last bio is done lets its
//! task go on.

use super::World;
use crate::clock::AgendaItem;
use crate::tasks::Wait;
use block::command::Command;
use block::{ContextId, Output};
use cache::PageCache;

impl World {
    pub fn complete_commands(&mut self) {
        self.mark_past();
        let World { disk, cpus, clock, mark, .. } = self;
        disk.complete(clock.now(), mark, |core, cause| cpus.interrupt(clock, core, cause));
    }

    /// Does what the block layer wants done.
    #[inline]
    pub fn take_outputs(&mut self, by: ContextId) {
        if self.storage.queue().has_outputs() {
            self.take_some_outputs(by);
        }
    }

    #[inline(never)]
    fn take_some_outputs(&mut self, by: ContextId) {
        while let Some(output) = self.storage.queue_mut().pop_output() {
            match output {
                Output::Issue(command) => {
                    self.mark_past();
                    let core = self.cpus.core_of(by);
                    self.arm_check();
                    self.disk.issue(self.clock.now(), core, &command, &mut self.mark);
                    self.hand_over(by, command);
                }
                Output::BioDone { token, context } => {
                    let owner = self.tasks.principal(context);
                    self.bio_done(owner, token, by);
                }
                Output::WouldBlock { context, .. } => self.io.refuse(context),
                Output::Wake(context) => self.wake_by(by, context),
                Output::Release => {
                    let releaser = self.storage.releaser();
                    self.notify(releaser.expect("something is limited"));
                }
                Output::RunWorker { after } if after.is_zero() => {
                    self.notify(self.storage.worker())
                }
                Output::RunWorker { after } => {
                    self.clock.schedule_after(after, AgendaItem::Worker);
                }
            }
        }
    }

    /// Gives a command to the device, after its data have been moved where the driver does that.
    fn hand_over(&mut self, by: ContextId, command: Command) {
        let cost = self.cpus.prices().transfer(command.sectors);
        if cost.is_zero() {
            return self.disk.accept(self.clock.now(), command);
        }
        let core = self.cpus.move_data(by, cost);
        self.clock.schedule_after(cost, AgendaItem::Moved(core, command));
    }

    /// A bio of an operation is done. (A task that was killed has no operations any more.)
    pub fn bio_done(&mut self, owner: ContextId, token: u64, by: ContextId) {
        if PageCache::owns(token) {
            let now = self.tick();
            let effects = match self.storage.is_writing(token) {
                true => self.storage.file_pages_written(token, now),
                false => self.storage.pages_done(token, now),
            };
            return self.apply(by, effects);
        }
        let Some(operation) = self.io.bio_done(owner, token) else { return };
        let is_finished_later = std::mem::take(&mut operation.is_finished_later);
        if self.storage.is_log_of_xfs(owner, token) {
            self.log_writes.push((owner, token, by));
            return self.notify_by(by, self.storage.worker());
        }
        let effects = self.storage.log_written(owner, token);
        self.apply(by, effects);
        match is_finished_later {
            true => self.leave_to_finisher(owner, token, by),
            false => self.operation_done(owner, token, by),
        }
    }

    /// The worker sees to log buffers of XFS that are on the disk: who waits for them goes on.
    // Observed on 6.12.117, sched_waking and sched_switch: the interrupt wakes kworker/0:1H, and
    // who waits for the disk's only tag; kworker/0:1H wakes who waits for the log.
    pub fn end_log_writes(&mut self, by: ContextId) {
        let worker = self.acting;
        for (owner, token, interrupt) in std::mem::take(&mut self.log_writes) {
            // The worker passes on what the disk has done: nobody has waited for it.
            self.acting = Some(interrupt);
            let effects = self.storage.log_written(owner, token);
            self.apply(by, effects);
            self.operation_done(owner, token, by);
        }
        self.acting = worker;
    }

    /// Nothing of an operation is under way any more.
    pub fn operation_done(&mut self, owner: ContextId, token: u64, by: ContextId) {
        let (now, wait) = (self.clock.now(), self.tasks.wait(owner));
        if self.io.is_awaited(owner, token, wait, now) {
            self.tasks.set_wait(owner, Wait::Nothing);
            self.wake_by(by, owner);
        }
    }

    /// All bios of an operation have been submitted.
    pub fn all_submitted(&mut self, owner: ContextId, number: u64) {
        self.bio_done(owner, number, owner);
    }
}
