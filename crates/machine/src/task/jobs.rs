//! What a program may say of itself, beside its system calls: to its job, and of its memory.

use super::Task;
use guest::{Footprint, LeftBehind};
use std::any::Any;
use std::rc::Rc;

impl Task {
    /// The number of its job, from 0 on, if it belongs to one.
    pub fn job(&self) -> Option<usize> {
        self.world().tasks().job(self.id())
    }

    /// What all randomness of the run derives from.
    pub fn seed(&self) -> u64 {
        self.world().seed()
    }

    /// Writes a line to the messages of the job, as a program does to its standard error.
    pub fn print(&self, line: impl Into<String>) {
        self.world().print(self.id(), line.into());
    }

    /// Hands over what the task will count, to be looked at when the run is over: however it ends.
    pub fn keep_account(&self, account: Rc<dyn Any>) {
        self.world().keep_account(self.id(), account);
    }

    /// Says what of a preparation failed, before it ends with another exit status than 0.
    pub fn blame(&self, line: &str) {
        self.world().blame(line);
    }

    /// Says whether what the task does from now on is only a preparation, such as writing the files
    /// that a load will read: its calls are not told to observers.
    pub fn prepares(&self, is_preparing: bool) {
        self.world().tasks().set_preparing(self.id(), is_preparing);
    }

    /// The program begins to use this much memory.
    pub fn take_memory(&self, program: &'static str, footprint: Footprint) {
        self.cache().take_memory(program, footprint);
    }

    /// The program no longer uses this much memory.
    pub fn give_memory_back(&self, program: &'static str, footprint: Footprint) {
        self.cache().give_memory_back(program, footprint);
    }

    /// The task writes to so many pages of its memory for the first time. They are those that were
    /// let go last; how many there are counts in [`Task::take_memory`] only.
    pub fn use_memory(&self, pages: u32) {
        self.cache().take_own(self.id(), pages);
    }

    /// The task gives back so many of the pages that it wrote to last.
    pub fn let_memory_go(&self, pages: u32) {
        self.cache().give_own(self.id(), pages as usize);
    }

    /// The program needed memory for a moment, and these pages are at hand then.
    pub fn leave_pages_behind(&self, left: LeftBehind) {
        self.cache().leave_behind(left);
    }

    /// Starts the program of a job.
    pub(crate) async fn exec(&self) {
        self.compute(self.costs().exec).await;
        self.world().note_exec(self.id());
        let is_disturbed = self.world().guest().habits.shell.is_disturbed;
        if is_disturbed {
            self.be_disturbed().await;
        }
    }
}
