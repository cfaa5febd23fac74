//! The task that commits transactions, `jbd2/vda-8`, and room in the log.
//!
//! It writes what a transaction changed to the log under one plug, each block a bio of its own,
//! waits for that, and then writes the commit block, behind and before a flush of the disk's cache
//! (rules commit).

use super::Ext4Io;
use crate::filesystem::FileIo;
use crate::task::Task;
use crate::tasks::Wait;
use block::{Action, CgroupId, CommitPhase, Committed, Flags, Op, PlugFlush};
use fs::ext4::journal::{JournalWait, Record, Transaction};
use fs::key;
use std::future::poll_fn;
use std::task::Poll;

/// Sectors of a block.
const SECTORS: u64 = 8;
/// Buffers that are written to their places together (rule checkpoint-1).
const BATCH: usize = 64;

/// What the task does.
pub(crate) async fn run(task: Task) -> i32 {
    let io = FileIo::of(&task).on_ext4();
    loop {
        io.wait_for_due().await;
        io.commit().await;
    }
}

impl Ext4Io<'_> {
    /// Sleeps until the running transaction is old enough, or somebody wants it on the disk.
    async fn wait_for_due(&self) {
        poll_fn(|_| {
            let mut world = self.world();
            world.clock().cancel_alarm(self.id());
            let now = world.tick();
            if world.ext4().journal.is_due(now) {
                return Poll::Ready(());
            }
            world.tasks().take_permit(self.id());
            world.arm_committer();
            self.wait(&mut world, Wait::Notification)
        })
        .await;
    }

    async fn commit(&self) {
        if std::mem::take(&mut self.ext4().journal.is_empty) {
            let (block, flags) = {
                let fs = self.ext4();
                (fs.journal.superblock(), fs.rules().journal_flags)
            };
            self.write_blocks(&[block], flags).await;
        }
        let transaction = self.ext4().journal.lock();
        let tell = |phase| self.world().tell_commit(self.id(), transaction, phase);
        tell(Some(CommitPhase::Locked));
        // It notes how long transactions take: two looks at the clock. // measured
        self.compute(self.costs().kernel_clock).await;
        self.wait_for_journal(JournalWait::Quiet).await;
        self.clean_log();
        let woken = self.ext4().journal.switch();
        self.tell_committed();
        self.world().wake_from_journal(self.id(), woken);
        self.compute(self.costs().commit).await;
        tell(Some(CommitPhase::Flushing));
        self.submit_ordered().await;
        tell(Some(CommitPhase::Logging));
        self.read_journal_map().await;
        let (record, flags) = {
            let mut fs = self.ext4();
            (fs.journal.record(), fs.rules().journal_flags)
        };
        record.own.iter().for_each(|&block| self.hold_block(block));
        self.write_blocks(&record.blocks, flags).await;
        tell(Some(CommitPhase::Flushing));
        self.wait_for_ordered().await;
        tell(Some(CommitPhase::CommitBlock));
        self.ext4().journal.seals();
        self.hold_block(record.seal);
        self.compute(self.costs().seal).await;
        let barrier = match self.ext4().mount().barrier {
            true => Flags::PREFLUSH.with(Flags::FUA),
            false => Flags::NONE,
        };
        self.write_blocks(&[record.seal], flags.with(barrier)).await;
        self.compute(self.costs().kernel_clock).await;
        self.finish_commit(&record);
        tell(None);
    }

    /// Tells whose changes are in the transaction that is being committed, and who wanted that.
    fn tell_committed(&self) {
        let mut world = self.world();
        let Some((transaction, _)) = world.ext4().journal.committing.as_ref() else { return };
        let mut handles: Vec<_> = transaction.joined.iter().map(|(who, it)| (*who, *it)).collect();
        handles.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let Transaction { id, asked_by, .. } = *transaction;
        world.tell_asked(self.id(), || {
            Action::InCommit(Box::new(Committed { transaction: id, asked_by, handles }))
        });
    }

    /// What was changed may go to its place; who waits goes on.
    fn finish_commit(&self, record: &Record) {
        let (woken, is_first) = {
            let mut world = self.world();
            let now = world.tick();
            let (transaction, woken) = world.ext4().journal.sealed(record);
            let mut is_first = false;
            for &block in transaction.blocks.keys() {
                if !world.ext4().journal.is_held(block) {
                    is_first |= world.cache().dirty(self.id(), block, now);
                    world.ext4().note_dirty(0, now);
                }
            }
            world.ext4().committed(transaction.id);
            (woken, is_first)
        };
        self.clean_log();
        self.world().wake_from_journal(self.id(), woken);
        if is_first {
            self.world().wake_flusher(CgroupId::ROOT);
        }
    }

    /// Transactions whose blocks are in their places leave the log.
    fn clean_log(&self) {
        self.storage().clean_log();
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
        let fs = self.ext4();
        let (transaction, _) = fs.journal.committing.as_ref().expect("being committed");
        transaction.ordered.iter().map(|(file, pages)| (*file, pages.clone())).collect()
    }

    /// A block that only the journal has contents for takes memory when it is first used.
    // observed on 6.12: mm_filemap_add_to_page_cache of jbd2
    fn hold_block(&self, block: u64) {
        if !self.cache().holds(block) {
            self.cache().admit_blank(block);
        }
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
        if self.ext4().journal.is_checkpointing {
            return self.wait_for_journal(JournalWait::Room).await;
        }
        self.ext4().journal.is_checkpointing = true;
        self.checkpoint().await;
        let woken = self.ext4().journal.room_made();
        self.world().wake_from_journal(self.id(), woken);
    }

    async fn checkpoint(&self) {
        self.clean_log();
        let oldest = self.ext4().journal.oldest();
        let Some((id, blocks)) = oldest else {
            // Everything that can leave the log has; the rest is being committed.
            let running = self.ext4().journal.running.as_ref().map(|it| it.id);
            let committing = self.ext4().journal.committing.as_ref().map(|it| it.0.id);
            if let Some(id) = committing.or(running) {
                self.ext4().journal.request(self.id(), id);
                self.wake_committer();
                self.wait_for_journal(JournalWait::Committed(id)).await;
            }
            return;
        };
        let held = blocks.iter().any(|block| self.ext4().journal.is_held(*block));
        if held {
            let running = self.ext4().journal.running.as_ref().map_or(id, |it| it.id);
            self.ext4().journal.request(self.id(), running);
            self.wake_committer();
            self.wait_for_journal(JournalWait::Committed(running)).await;
            return;
        }
        let flags = self.ext4().rules().journal_flags;
        for batch in blocks.chunks(BATCH) {
            self.queue().start_plug(self.id());
            self.write_buffers(batch, flags.with(Flags::META).with(Flags::PRIO)).await;
            self.finish_plug(PlugFlush::Explicit).await;
            for &block in batch {
                self.wait_until_written(block).await;
            }
        }
        self.clean_log();
        if self.ext4().mount().barrier {
            self.flush_besides().await;
        }
        let (superblock, barrier) = {
            let fs = self.ext4();
            (fs.journal.superblock(), fs.mount().barrier)
        };
        let durable = if barrier { Flags::FUA } else { Flags::NONE };
        self.write_blocks(&[superblock], flags.with(durable)).await;
    }

    /// Writes blocks of metadata to their places.
    pub async fn write_buffers(&self, blocks: &[u64], flags: Flags) {
        for &block in blocks {
            self.lock(block).await;
            if self.cache().is_dirty(block) {
                self.wait_until_written(block).await;
                self.write_page(block, flags).await;
            }
        }
    }
}
