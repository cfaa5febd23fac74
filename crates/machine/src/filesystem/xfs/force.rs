//! Writing the log, and waiting for it (rules xfs-force).
//!
//! Who wants a change durable has a worker put its checkpoint into the log buffer that is being
//! filled, and submits that buffer itself, unless it goes with somebody else's. While the buffer
//! before is on its way he waits once, so that others may join.
//!
// Divergence: who forces also submits the buffers that become full, which the worker of the list
// does in the kernel; putting a checkpoint into a buffer takes no time.

use super::XfsIo;
use crate::tasks::Wait;
use block::{Action, CommitPhase, Committed, Flags, Op};
use fs::xfs::log::{LogWait, Record, Stage};
use std::future::poll_fn;
use std::task::Poll;

impl XfsIo<'_> {
    /// For fsync: waits until what was last changed of a file is in the log, and the disk's cache
    /// flushed.
    pub async fn force_file(&self, number: u64, index: usize, only_data: bool) {
        let (keeps_map, by_change) = {
            let fs = self.xfs();
            (fs.rules().force_keeps_map, fs.rules().datasync_by_change)
        };
        self.lock_map_shared(index).await;
        let sequence = {
            let mut files = self.files();
            let inode = files.inode(index);
            match only_data && by_change {
                true => Some(inode.data_changed_in),
                false => (inode.is_unsynced || !only_data).then_some(inode.changed_in),
            }
        };
        let mut has_forced = false;
        if let Some(sequence) = sequence {
            if !keeps_map {
                self.unlock_map(index);
            }
            has_forced = self.force(sequence).await;
            // Not before: others who come meanwhile wait for it as well. // observed on 6.12
            self.files().inode(index).is_unsynced = false;
        }
        if keeps_map || sequence.is_none() {
            self.unlock_map(index);
        }
        if !has_forced {
            self.flush(number).await;
        }
    }

    /// For sync: waits until everything that was changed is in the log.
    pub async fn force_all(&self) {
        let sequence = self.xfs().last_changed();
        self.force(sequence).await;
    }

    /// The same for somebody who does something else when it is on its way, and waits for nobody
    /// before.
    pub async fn force_all_and(&self, submitted: &dyn Fn()) {
        let sequence = self.xfs().last_changed();
        self.force_and(sequence, Some(submitted)).await;
    }

    /// Waits until a checkpoint is on the disk; the answer is whether this task had to write it.
    pub(super) async fn force(&self, sequence: u64) -> bool {
        self.force_and(sequence, None).await
    }

    async fn force_and(&self, sequence: u64, submitted: Option<&dyn Fn()>) -> bool {
        let tell = |phase| self.world().tell_commit(self.id(), sequence, phase);
        self.push(sequence).await;
        tell(Some(CommitPhase::LogWrite));
        let has_written = self.write_and(sequence, submitted).await;
        tell(None);
        has_written
    }

    /// Waits until a checkpoint is on the disk that was pushed; the answer is whether this task had
    /// to write it.
    async fn write_and(&self, sequence: u64, submitted: Option<&dyn Fn()>) -> bool {
        let full = self.xfs().log.take_full();
        for (at, record) in full.iter().enumerate() {
            self.write_log(record, at == 0, None, submitted).await;
        }
        let is_alone = full.is_empty();
        let mut has_slept = false;
        loop {
            let stage = self.xfs().log.stage(sequence);
            match stage {
                Stage::Stable => return false,
                // Observed on 6.12.117: xfsaild writes while the log of an fsync is on its way.
                Stage::Writing if submitted.is_some() => return false,
                Stage::Active(Some(before)) if !has_slept && submitted.is_none() => {
                    has_slept = true;
                    let tell = |phase| self.world().tell_commit(self.id(), sequence, Some(phase));
                    tell(CommitPhase::Joining);
                    self.wait_for_log(LogWait::Buffer(before)).await;
                    tell(CommitPhase::LogWrite);
                }
                Stage::Active(_) => {
                    let record = self.xfs().log.switch();
                    self.write_log(&record, is_alone, Some(sequence), submitted).await;
                    return true;
                }
                Stage::Writing => self.wait_for_log(LogWait::Stable(sequence)).await,
            }
        }
    }

    /// Has a checkpoint put into a log buffer, if that was not done.
    async fn push(&self, sequence: u64) {
        if !self.xfs().log.is_collecting(sequence) {
            return;
        }
        self.world().tell_commit(self.id(), sequence, Some(CommitPhase::Push));
        let is_first = self.xfs().log.ask_for_push();
        if is_first {
            let pusher = self.xfs().pusher();
            self.notify(pusher);
        }
        self.wait_for_log(LogWait::Pushed(sequence)).await;
        if is_first {
            self.tell_pushed(sequence);
        }
    }

    /// Tells whose changes are in a checkpoint that was pushed because of this task.
    fn tell_pushed(&self, sequence: u64) {
        let mut world = self.world();
        let Some(joined) = world.xfs().log.joined(sequence) else { return };
        let mut handles: Vec<_> = joined.iter().map(|(who, it)| (*who, *it)).collect();
        handles.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let asked_by = Some(self.id());
        world.tell_asked(self.id(), || {
            Action::InCommit(Box::new(Committed { transaction: sequence, asked_by, handles }))
        });
    }

    /// Writes a log buffer and waits for it, or for a checkpoint of which it is the last. The first
    /// of a checkpoint goes behind everything that is in the disk's cache, the last is durable by
    /// itself.
    async fn write_log(
        &self,
        record: &Record,
        is_first: bool,
        last_of: Option<u64>,
        submitted: Option<&dyn Fn()>,
    ) {
        let flags = {
            let fs = self.xfs();
            let rules = fs.rules();
            let (is_last, all) = (last_of.is_some(), rules.each_is_durable);
            let pre = if is_first || is_last || all { Flags::PREFLUSH } else { Flags::NONE };
            let fua = if is_last || all { Flags::FUA } else { Flags::NONE };
            rules.log_flags.with(pre).with(fua)
        };
        let number = self.begin_metadata(Op::Write, &record.pieces, flags);
        self.xfs().note_log_write(self.id(), number, record.number);
        self.submit_metadata(number, Op::Write, &record.pieces, flags).await;
        submitted.into_iter().for_each(|act| act());
        let what = last_of.map_or(LogWait::Buffer(record.number), LogWait::Stable);
        self.wait_for_log(what).await;
        self.world().io().end(self.id(), number);
    }

    async fn wait_for_log(&self, what: LogWait) {
        poll_fn(|_| {
            let mut world = self.world();
            if !world.xfs().log.must_wait(what) {
                return Poll::Ready(());
            }
            if self.poll_before_sleep(&mut world).is_pending() {
                return Poll::Pending;
            }
            if !world.xfs().log.must_wait(what) {
                return Poll::Ready(());
            }
            world.xfs().log.wait(self.id(), what);
            self.wait(&mut world, Wait::Journal)
        })
        .await;
    }
}
