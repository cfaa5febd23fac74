//! The journal of ext4 and the log of XFS: who goes on when something of them has come about.

use super::{Effect, Storage};
use block::ContextId;
use fs::FileSystem;
use fs::ext4::journal::Expiry;

impl Storage {
    /// Whether an operation of a task writes a log buffer of XFS.
    pub fn is_log_of_xfs(&self, owner: ContextId, operation: u64) -> bool {
        matches!(&self.fs, Some(FileSystem::Xfs(fs)) if fs.is_log_write(owner, operation))
    }

    /// The bios of an operation of a task are done: if they were those of journal or log, whoever
    /// waits to change metadata that were being logged goes on, even before that task.
    pub fn log_written(&mut self, owner: ContextId, operation: u64) -> Vec<Effect> {
        match &mut self.fs {
            None => Vec::new(),
            Some(FileSystem::Ext4(fs)) => woken(fs.written_by(owner)).collect(),
            Some(FileSystem::Xfs(fs)) => {
                let Some(waiters) = fs.written_by(owner, operation) else { return Vec::new() };
                let first = fs.resting_placer().map(Effect::NotifyAtOnce);
                let mut effects: Vec<Effect> = first.into_iter().chain(woken(waiters)).collect();
                if first.is_none() {
                    effects.extend(self.wake_placer());
                }
                effects
            }
        }
    }

    /// When a transaction of ext4 is committed at the latest that begins now.
    pub fn commit_deadline(&mut self, now: u64) -> Expiry {
        let seconds = self.files().mount().commit_seconds;
        let due = now + seconds * u64::from(self.cache.hz().get());
        Expiry { due, alarm: self.cache.wheel().at_second(now, seconds) }
    }

    /// A handle has changed a block: its place on the disk is not written before the journal.
    pub fn changed(&mut self, block: u64) {
        if !self.cache.holds(block) {
            match self.ext4().is_read_at_mount(block) {
                true => self.cache.admit_known(block),
                false => self.cache.admit_blank(block),
            }
        }
        self.cache.undirty(block);
        self.ext4().change(block);
    }

    /// A handle of so many credits ends.
    pub fn end_handle(&mut self, credits: u64, now: u64) -> Vec<Effect> {
        let fs = self.ext4();
        let mut effects: Vec<Effect> = woken(fs.journal.stop(credits)).collect();
        if fs.journal.is_due(now) {
            effects.push(Effect::Notify(fs.committer()));
        }
        effects
    }

    /// Transactions of ext4 whose blocks are in their places leave the log.
    pub fn clean_log(&mut self) {
        let Some(FileSystem::Ext4(fs)) = &mut self.fs else { panic!("no ext4 is mounted") };
        let cache = &self.cache;
        fs.journal.clean(|block| !cache.is_dirty(block) && !cache.is_written(block));
    }

    /// Wakes the task that writes metadata of XFS to their places, if there is a reason.
    pub fn wake_placer(&mut self) -> Vec<Effect> {
        self.xfs().wanted_placer().map(Effect::NotifyAtOnce).into_iter().collect()
    }
}

/// Who waited for the journal or the log goes on.
fn woken(tasks: Vec<ContextId>) -> impl Iterator<Item = Effect> {
    tasks.into_iter().map(Effect::Journal)
}
