//! The task that commits transactions, `jbd2/vda-8`, and room in the log.
//!
//! It writes what a transaction changed to the log under one plug, each block a bio of its own,
//! waits for that, and then writes the commit block, behind and before a flush of the disk's cache
//! (rules commit).

use crate::filesystem::{FileSystem, key};
use crate::task::Task;
use crate::tasks::KernelTask;
use crate::tasks::Wait;
use crate::world::World;
use block::{CgroupId, ContextId, Flags, Op, PlugFlush};
use fs::ext4::journal::{JournalWait, Phase, Record};
use std::future::poll_fn;
use std::task::Poll;

/// Sectors of a block.
const SECTORS: u64 = 8;
/// Buffers that are written to their places together (rule checkpoint-1).
const BATCH: usize = 64;

/// Creates the task.
pub(crate) fn spawn(world: &mut World) -> ContextId {
    let committer = world.spawn_kernel_task(KernelTask::Committer);
    world.fs().committer = committer;
    committer
}

/// What the task does.
pub(crate) async fn run(task: Task) -> i32 {
    loop {
        task.wait_for_due().await;
        task.commit().await;
    }
}

impl Task {
    /// Sleeps until the running transaction is old enough, or somebody wants it on the disk.
    async fn wait_for_due(&self) {
        poll_fn(|_| {
            let mut world = self.world();
            world.clock.cancel_alarm(self.id());
            let now = world.tick();
            if world.fs().journal.is_due(now) {
                return Poll::Ready(());
            }
            world.tasks.take_permit(self.id());
            world.arm_committer();
            self.wait(&mut world, Wait::Notification)
        })
        .await;
    }

    async fn commit(&self) {
        if std::mem::take(&mut self.world().fs().journal.is_empty) {
            let (block, flags) = {
                let mut world = self.world();
                let fs = world.fs();
                (fs.journal.superblock(), fs.rules.journal_flags)
            };
            self.write_blocks(&[block], flags).await;
        }
        self.world().fs().journal.lock();
        // It notes how long transactions take: two looks at the clock. // measured
        self.compute(self.costs().kernel_clock).await;
        self.wait_for_journal(JournalWait::Quiet).await;
        self.clean_log();
        let woken = self.world().fs().journal.switch();
        self.world().wake_from_journal(self.id(), woken);
        self.compute(self.costs().commit).await;
        self.submit_ordered().await;
        let (record, flags) = {
            let mut world = self.world();
            let fs = world.fs();
            (fs.journal.record(), fs.rules.journal_flags)
        };
        self.write_blocks(&record.blocks, flags).await;
        self.wait_for_ordered().await;
        self.world().fs().journal.seals();
        self.compute(self.costs().seal).await;
        let barrier = match self.world().fs().mount.barrier {
            true => Flags::PREFLUSH.with(Flags::FUA),
            false => Flags::NONE,
        };
        self.write_blocks(&[record.seal], flags.with(barrier)).await;
        self.compute(self.costs().kernel_clock).await;
        self.finish_commit(&record);
    }

    /// What was changed may go to its place; who waits goes on.
    fn finish_commit(&self, record: &Record) {
        let (woken, is_first) = {
            let mut world = self.world();
            let now = world.tick();
            let (transaction, woken) = world.fs().journal.sealed(record);
            let mut is_first = false;
            for &block in transaction.blocks.keys() {
                if !world.fs().journal.is_held(block) {
                    is_first |= world.cache.dirty(self.id(), block, now);
                    world.fs().note_dirty(0, now);
                }
            }
            world.fs().space.committed(transaction.id);
            (woken, is_first)
        };
        self.clean_log();
        self.world().wake_from_journal(self.id(), woken);
        if is_first {
            crate::buffered::wake_flusher(self, CgroupId::ROOT);
        }
    }

    /// Transactions whose blocks are in their places leave the log.
    fn clean_log(&self) {
        let mut world = self.world();
        let world = &mut *world;
        let Some(FileSystem::Ext4(fs)) = &mut world.fs else { panic!("no ext4 is mounted") };
        let cache = &world.cache;
        fs.journal.clean(|block| !cache.is_dirty(block) && !cache.is_written(block));
    }

    /// Data of files that must be on the disk before the commit block: those that are dirty and
    /// have a place are written by this task (rule journal-4).
    async fn submit_ordered(&self) {
        for (file, pages) in self.ordered() {
            self.write_mapped(file, pages, Flags::SYNC).await;
        }
    }

    async fn wait_for_ordered(&self) {
        for (file, pages) in self.ordered() {
            self.wait_for_written(key(file, pages.start)..key(file, pages.end)).await;
        }
    }

    fn ordered(&self) -> Vec<(usize, std::ops::Range<u64>)> {
        let mut world = self.world();
        let (transaction, _) = world.fs().journal.committing.as_ref().expect("being committed");
        transaction.ordered.iter().map(|(file, pages)| (*file, pages.clone())).collect()
    }

    /// Writes blocks of the disk and waits for them.
    async fn write_blocks(&self, blocks: &[u64], flags: Flags) {
        let sectors = |block: &u64| block * SECTORS..(block + 1) * SECTORS;
        let places: Vec<_> = blocks.iter().map(sectors).collect();
        self.move_metadata(Op::Write, &places, flags).await;
    }

    /// Makes room in the log: writes what the oldest transactions changed to its places, and moves
    /// the log's beginning (rules checkpoint). Others wait meanwhile.
    pub(super) async fn make_room_in_log(&self) {
        if self.world().fs().journal.is_checkpointing {
            return self.wait_for_journal(JournalWait::Room).await;
        }
        self.world().fs().journal.is_checkpointing = true;
        self.checkpoint().await;
        let woken = self.world().fs().journal.room_made();
        self.world().wake_from_journal(self.id(), woken);
    }

    async fn checkpoint(&self) {
        self.clean_log();
        let oldest = self.world().fs().journal.oldest();
        let Some((id, blocks)) = oldest else {
            // Everything that can leave the log has; the rest is being committed.
            let running = self.world().fs().journal.running.as_ref().map(|it| it.id);
            let committing = self.world().fs().journal.committing.as_ref().map(|it| it.0.id);
            if let Some(id) = committing.or(running) {
                self.world().fs().journal.request(id);
                self.wake_committer();
                self.wait_for_journal(JournalWait::Committed(id)).await;
            }
            return;
        };
        let held = blocks.iter().any(|block| self.world().fs().journal.is_held(*block));
        if held {
            let running = self.world().fs().journal.running.as_ref().map_or(id, |it| it.id);
            self.world().fs().journal.request(running);
            self.wake_committer();
            self.wait_for_journal(JournalWait::Committed(running)).await;
            return;
        }
        let flags = self.world().fs().rules.journal_flags;
        for batch in blocks.chunks(BATCH) {
            self.world().queue.start_plug(self.id());
            self.write_buffers(batch, flags.with(Flags::META).with(Flags::PRIO)).await;
            self.finish_plug(PlugFlush::Explicit).await;
            for &block in batch {
                self.wait_until_written(block).await;
            }
        }
        self.clean_log();
        if self.world().fs().mount.barrier {
            self.flush_besides().await;
        }
        let (superblock, barrier) = {
            let mut world = self.world();
            let fs = world.fs();
            (fs.journal.superblock(), fs.mount.barrier)
        };
        let durable = if barrier { Flags::FUA } else { Flags::NONE };
        self.write_blocks(&[superblock], flags.with(durable)).await;
    }

    /// Writes blocks of metadata to their places.
    pub(in crate::filesystem) async fn write_buffers(&self, blocks: &[u64], flags: Flags) {
        for &block in blocks {
            self.lock(block).await;
            if self.world().cache.is_dirty(block) {
                self.wait_until_written(block).await;
                self.write_page(block, flags).await;
            }
        }
    }
}

impl World {
    /// Blocks that the task which commits has written are on the disk: whoever waits to change
    /// metadata that were being logged goes on, even before that task.
    pub fn log_written(&mut self, owner: ContextId, by: ContextId) {
        let Some(FileSystem::Ext4(fs)) = &mut self.fs else { return };
        if fs.committer == owner && matches!(fs.journal.committing, Some((_, Phase::Logging))) {
            let woken = fs.journal.logged();
            self.wake_from_journal(by, woken);
        }
    }

    /// The task that commits wakes when the running transaction is old enough.
    pub(super) fn arm_committer(&mut self) {
        let fs = self.fs();
        let Some(expires) = fs.journal.running.as_ref().map(|it| it.expires.alarm) else { return };
        let committer = fs.committer;
        if !self.clock.has_alarm(committer) {
            let at = self.start_of_tick(expires);
            self.clock.set_alarm(committer, at);
        }
    }
}
