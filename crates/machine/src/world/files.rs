//! The file system of a machine, as its calls reach it.

use super::World;
use crate::filesystem::ext4::Ext4;
use crate::filesystem::{FileSystem, Files};
use crate::tasks::Wait;
use block::ContextId;

impl World {
    /// What is known of files.
    pub fn files(&mut self) -> &mut Files {
        self.fs.as_mut().expect("a file system is mounted").files_mut()
    }

    /// The ext4 that is mounted.
    pub fn fs(&mut self) -> &mut Ext4 {
        match &mut self.fs {
            Some(FileSystem::Ext4(fs)) => fs,
            _ => panic!("no ext4 is mounted"),
        }
    }

    /// Wakes tasks that waited for the journal or the log.
    pub fn wake_from_journal(&mut self, by: ContextId, tasks: Vec<ContextId>) {
        for task in tasks {
            if self.tasks.end_wait(task, Wait::Journal) {
                self.wake_by(by, task);
            }
        }
    }
}
