//! The owners of which a world is put together, for those who need one at a time.

use super::World;
use crate::clock::Clock;
use crate::cpus::Cpus;
use crate::io::Io;
use crate::storage::Storage;
use crate::tasks::Tasks;
use base::Duration;
use block::RequestQueue;
use cache::PageCache;
use fs::{Ext4, Files, Xfs};
use guest::Profile;

impl World {
    /// Time, and what is to happen in it.
    pub fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    /// Who computes.
    pub fn cpus(&mut self) -> &mut Cpus {
        &mut self.cpus
    }

    /// What is known of every task.
    pub fn tasks(&mut self) -> &mut Tasks {
        &mut self.tasks
    }

    /// What tasks have under way.
    pub fn io(&mut self) -> &mut Io {
        &mut self.io
    }

    /// What was observed of the guest.
    pub fn guest(&self) -> &Profile {
        &self.guest
    }

    /// What all randomness derives from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// By how much sleeps are longer than asked.
    pub fn timer_slack(&self) -> Duration {
        self.timer_slack
    }

    /// What is between system calls and the disk.
    pub fn storage(&mut self) -> &mut Storage {
        &mut self.storage
    }

    /// The block layer.
    pub fn queue(&mut self) -> &mut RequestQueue {
        self.storage.queue_mut()
    }

    /// The page cache.
    pub fn cache(&mut self) -> &mut PageCache {
        self.storage.cache_mut()
    }

    /// What is known of files.
    pub fn files(&mut self) -> &mut Files {
        self.storage.files()
    }

    /// The ext4 that is mounted.
    pub fn ext4(&mut self) -> &mut Ext4 {
        self.storage.ext4()
    }

    /// The XFS that is mounted.
    pub fn xfs(&mut self) -> &mut Xfs {
        self.storage.xfs()
    }
}
