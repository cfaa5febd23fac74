//! The journal, jbd2: transactions, and who waits for which.
//!
//! A handle is a change that is made as a whole; it joins the running transaction. A commit closes
//! that one for new handles, waits for those that are open, and writes it while the next one
//! collects (rules journal and commit). What was committed stays in the log until its blocks have
//! been written to their places (rules checkpoint). This file knows numbers of blocks and ticks,
//! and nothing of time, bios or tasks, but for whom to wake.

use block::ContextId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Blocks that a descriptor block describes: with checksums, 16 bytes each (rule commit-2).
const DESCRIBED: u64 = 254;
/// Revoked blocks that fit into a block: 8 bytes each, behind a header (derived).
const REVOKED: u64 = 500;

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalWait {
    /// A transaction is on the disk.
    Committed(u64),
    /// New handles may start.
    Open,
    /// No handle is open in the transaction that is to be committed.
    Quiet,
    /// A block of the transaction that is being committed has been written to the log, so it may
    /// change again.
    Logged(u64),
    /// Nobody makes room in the log.
    Room,
}

/// How far the transaction is that is being committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Its data are awaited and its metadata written.
    Logging,
    /// Its metadata have been written.
    Logged,
    /// Its commit block is being written.
    Sealing,
}

/// The place of a block that the transaction before is still committing: behind all others.
const AFTER_COMMIT: u64 = u64::MAX;

/// A transaction.
#[derive(Clone, Debug, Default)]
pub struct Transaction {
    /// Its number.
    pub id: u64,
    /// Open handles.
    pub handles: u32,
    /// Handles that were ever open, by task.
    pub joined: BTreeMap<ContextId, u32>,
    /// Who asked for it to be committed first.
    pub asked_by: Option<ContextId>,
    /// No new handle may join.
    pub is_locked: bool,
    /// Blocks that open handles may still change.
    credits: u64,
    /// Blocks that it changed, and the place of each in the log.
    pub blocks: BTreeMap<u64, u64>,
    changes: u64,
    /// Blocks that must not be played back from older transactions.
    pub revoked: BTreeSet<u64>,
    /// Files whose data must be on the disk before, by number, each with pages.
    pub ordered: BTreeMap<usize, Range<u64>>,
    /// The tick from which on it is old enough to be committed, and that at which the task that
    /// commits looks at the latest: its timer is coarse.
    pub expires: Expiry,
}

/// When a transaction that begins now is committed at the latest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiry {
    /// The tick from which on the end of a handle asks for it.
    pub due: u64,
    /// The tick at which a timer does.
    pub alarm: u64,
}

/// A transaction in the log whose blocks are not all in their places.
#[derive(Clone, Debug)]
struct Logged {
    id: u64,
    /// In order.
    blocks: Vec<u64>,
    log_blocks: u64,
}

/// The journal.
#[derive(Clone, Debug)]
pub struct Journal {
    area: Range<u64>,
    /// The block of the log that is written next, counted from the journal's superblock.
    head: u64,
    free: u64,
    /// The most that a transaction may have.
    largest: u64,
    /// The transaction that handles join.
    pub running: Option<Transaction>,
    /// The transaction that is being committed, and how far it is.
    pub committing: Option<(Transaction, Phase)>,
    next_id: u64,
    /// The last transaction on the disk.
    pub committed: u64,
    /// The last one that somebody wants there.
    pub requested: u64,
    logged: Vec<Logged>,
    /// The log is marked as empty.
    pub is_empty: bool,
    /// Somebody makes room in the log.
    pub is_checkpointing: bool,
    waiting: Vec<(ContextId, JournalWait)>,
}

/// Whether a handle can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It has started.
    Started(Started),
    /// Not before something else.
    Waits(JournalWait),
    /// Not before there is room in the log.
    NeedsRoom,
}

/// Where a handle has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// The number of its transaction.
    pub transaction: u64,
    /// The transaction begins with it.
    pub is_first: bool,
}

/// The blocks that a commit writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Blocks of the disk for revocations, descriptors and copies, in order.
    pub blocks: Vec<u64>,
    /// Those of them that are no copies.
    pub own: Vec<u64>,
    /// The commit block.
    pub seal: u64,
}

impl Journal {
    /// An empty journal in an area of the disk; the first transaction after mounting has the number
    /// 2. `part` says which part of the log a transaction may fill.
    pub fn new(area: Range<u64>, part: u64) -> Journal {
        let blocks = area.end - area.start;
        Journal {
            head: 1,
            free: blocks - 1,
            largest: blocks / part,
            area,
            running: None,
            committing: None,
            next_id: 2,
            committed: 1,
            requested: 1,
            logged: Vec::new(),
            is_empty: true,
            is_checkpointing: false,
            waiting: Vec::new(),
        }
    }

    /// The journal's superblock.
    pub fn superblock(&self) -> u64 {
        self.area.start
    }

    /// A handle that changes at most so many blocks wants to start. `expires` is when a transaction
    /// is committed at the latest that begins now.
    pub fn start(&mut self, who: ContextId, credits: u64, expires: Expiry) -> Start {
        if let Some(running) = &mut self.running {
            if running.is_locked {
                return Start::Waits(JournalWait::Open);
            }
            if running.size() + credits > self.largest {
                self.requested = self.requested.max(running.id);
                running.asked_by.get_or_insert(who);
                return Start::Waits(JournalWait::Open);
            }
        }
        if self.free < self.largest + self.largest / 8 {
            return Start::NeedsRoom;
        }
        Start::Started(self.join(who, credits, expires))
    }

    /// A handle that was reserved before starts: also in a transaction that is locked.
    pub fn join(&mut self, who: ContextId, credits: u64, expires: Expiry) -> Started {
        let is_first = self.running.is_none();
        let next_id = &mut self.next_id;
        let running = self.running.get_or_insert_with(|| {
            *next_id += 1;
            Transaction { id: *next_id - 1, expires, ..Transaction::default() }
        });
        running.handles += 1;
        *running.joined.entry(who).or_default() += 1;
        running.credits += credits;
        Started { transaction: running.id, is_first }
    }

    /// A handle has changed a block.
    pub fn change(&mut self, block: u64) {
        let is_committing =
            self.committing.as_ref().is_some_and(|(it, _)| it.blocks.contains_key(&block));
        let running = self.running.as_mut().expect("a handle is open");
        running.changes += 1;
        let order = if is_committing { AFTER_COMMIT } else { running.changes };
        running.blocks.entry(block).or_insert(order);
        running.revoked.remove(&block);
    }

    /// A handle frees a block of metadata. Observed on 6.12: it is revoked whether or not an older
    /// transaction has changed it.
    pub fn forget(&mut self, block: u64) {
        let running = self.running.as_mut().expect("a handle is open");
        running.blocks.remove(&block);
        running.revoked.insert(block);
    }

    /// A handle has ended.
    pub fn stop(&mut self, credits: u64) -> Vec<ContextId> {
        let running = self.running.as_mut().expect("a handle is open");
        running.handles -= 1;
        running.credits -= credits;
        match running.handles {
            0 => self.wake(|wait| wait == JournalWait::Quiet),
            _ => Vec::new(),
        }
    }

    /// Whether a block is being written to the log, so that nobody may change it.
    pub fn is_shadowed(&self, block: u64) -> bool {
        let shadowed =
            |it: &(Transaction, Phase)| it.1 == Phase::Logging && it.0.blocks.contains_key(&block);
        self.committing.as_ref().is_some_and(shadowed)
    }

    /// Somebody asks for a transaction to be committed; false if it is under way or done.
    pub fn request(&mut self, who: ContextId, id: u64) -> bool {
        let Some(running) = self.running.as_mut().filter(|running| running.id == id) else {
            return false;
        };
        let is_new = self.requested < id;
        if is_new {
            self.requested = id;
            running.asked_by.get_or_insert(who);
        }
        is_new
    }

    /// Whether waiting for a transaction waits for a flush of the disk's cache too.
    pub fn will_flush(&self, id: u64) -> bool {
        match &self.committing {
            Some((transaction, phase)) if transaction.id == id => *phase < Phase::Sealing,
            _ => id > self.committed,
        }
    }

    /// Whether the running transaction is to be committed at a tick.
    pub fn is_due(&self, now: u64) -> bool {
        let asked = |it: &Transaction| it.id <= self.requested || it.expires.due <= now;
        self.committing.is_none() && self.running.as_ref().is_some_and(asked)
    }

    /// Closes the running transaction for new handles, and answers with its number.
    pub fn lock(&mut self) -> u64 {
        let running = self.running.as_mut().expect("something is to be committed");
        running.is_locked = true;
        self.requested = self.requested.max(running.id);
        running.id
    }

    /// The transaction that was closed is now being committed; a new one may begin. Answers with
    /// who waits for that.
    pub fn switch(&mut self) -> Vec<ContextId> {
        let running = self.running.take().expect("it was locked");
        debug_assert_eq!(running.handles, 0);
        self.committing = Some((running, Phase::Logging));
        self.wake(|wait| wait == JournalWait::Open)
    }

    /// Whoever made room in the log has. Answers with who waited for him.
    pub fn room_made(&mut self) -> Vec<ContextId> {
        self.is_checkpointing = false;
        self.wake(|wait| wait == JournalWait::Room)
    }

    /// Where the committing transaction is written in the log.
    pub fn record(&mut self) -> Record {
        let (transaction, _) = self.committing.as_ref().expect("it is being committed");
        let changed = transaction.blocks.len() as u64;
        let revoking = (transaction.revoked.len() as u64).div_ceil(REVOKED);
        let count = revoking + changed.div_ceil(DESCRIBED) + changed;
        let blocks: Vec<_> = (0..count).map(|_| self.next_block()).collect();
        let (revocations, rest) = blocks.split_at(revoking as usize);
        let descriptors = rest.iter().step_by(DESCRIBED as usize + 1);
        let own = revocations.iter().chain(descriptors).copied().collect();
        Record { blocks, own, seal: self.next_block() }
    }

    /// The metadata of the committing transaction are in the log. Answers with who waited for that,
    /// in the order in which the blocks became the transaction's (observed on 6.12).
    pub fn logged(&mut self) -> Vec<ContextId> {
        let (_, phase) = self.committing.as_mut().expect("it is being committed");
        *phase = Phase::Logged;
        let mut waits = self.take_waits(|wait| matches!(wait, JournalWait::Logged(_)));
        let blocks = &self.committing.as_ref().expect("as above").0.blocks;
        waits.sort_by_key(|(_, wait)| match wait {
            JournalWait::Logged(block) => blocks.get(block).copied(),
            _ => None,
        });
        waits.into_iter().map(|(task, _)| task).collect()
    }

    /// The commit block is being written.
    pub fn seals(&mut self) {
        let (_, phase) = self.committing.as_mut().expect("it is being committed");
        *phase = Phase::Sealing;
    }

    /// The commit block is on the disk. Answers with the transaction, and who waits for it or for a
    /// later one: they look, and get in line anew (observed on 6.12: the order of four tasks).
    pub fn sealed(&mut self, record: &Record) -> (Transaction, Vec<ContextId>) {
        let (transaction, _) = self.committing.take().expect("it was being committed");
        self.committed = transaction.id;
        self.hand_on(&transaction);
        let log_blocks = record.blocks.len() as u64 + 1;
        for older in &mut self.logged {
            older.blocks.retain(|block| !transaction.blocks.contains_key(block));
        }
        let blocks = transaction.blocks.keys().copied().collect();
        self.logged.push(Logged { id: transaction.id, blocks, log_blocks });
        let woken = self.wake(|wait| matches!(wait, JournalWait::Committed(_)));
        (transaction, woken)
    }

    /// What the running transaction has changed of a committed one becomes its own: what was logged
    /// last comes first.
    // Observed on 6.12.117: the descriptor blocks in the journal of four tasks that write with
    // O_SYNC. After 1063, .., 1062, 1, 1031 comes .., 1031, 1, 1062.
    fn hand_on(&mut self, committed: &Transaction) {
        let Some(running) = &mut self.running else { return };
        let mut blocks: Vec<_> = committed.blocks.iter().collect();
        blocks.sort_by_key(|(_, order)| Reverse(**order));
        for (block, _) in blocks {
            if let Some(order) = running.blocks.get_mut(block).filter(|it| **it == AFTER_COMMIT) {
                running.changes += 1;
                *order = running.changes;
            }
        }
    }

    /// Whether a block is to be written to its place only after a transaction that has not been
    /// committed.
    pub fn is_held(&self, block: u64) -> bool {
        let running = self.running.as_ref().is_some_and(|it| it.blocks.contains_key(&block));
        running || self.committing.as_ref().is_some_and(|it| it.0.blocks.contains_key(&block))
    }

    /// Transactions whose blocks are all in their places leave the log, oldest first. `is_clean`
    /// says it of a block.
    pub fn clean(&mut self, is_clean: impl Fn(u64) -> bool) {
        let Journal { running, committing, logged, .. } = self;
        let transactions = || running.iter().chain(committing.iter().map(|it| &it.0));
        let is_held = |block: u64| transactions().any(|it| it.blocks.contains_key(&block));
        for logged in logged {
            logged.blocks.retain(|block| is_held(*block) || !is_clean(*block));
        }
        let kept = self.logged.iter().position(|it| !it.blocks.is_empty());
        let gone = kept.unwrap_or(self.logged.len());
        self.free += self.logged.drain(..gone).map(|it| it.log_blocks).sum::<u64>();
        // One of which nothing is left goes with the one before it, and need not be asked again.
        self.logged.dedup_by(|it, before| {
            let is_over = it.blocks.is_empty();
            before.log_blocks += if is_over { it.log_blocks } else { 0 };
            is_over
        });
    }

    /// The blocks of the oldest transaction in the log, and its number.
    pub fn oldest(&self) -> Option<(u64, Vec<u64>)> {
        self.logged.first().map(|it| (it.id, it.blocks.clone()))
    }

    /// Whether a task must wait for something.
    pub fn must_wait(&self, wait: JournalWait) -> bool {
        match wait {
            JournalWait::Committed(id) => self.committed < id,
            JournalWait::Open => self
                .running
                .as_ref()
                .is_some_and(|it| it.is_locked || self.requested >= it.id && it.size() > 0),
            JournalWait::Room => self.is_checkpointing,
            JournalWait::Quiet => self.running.as_ref().is_some_and(|it| it.handles > 0),
            JournalWait::Logged(_) => {
                self.committing.as_ref().is_some_and(|it| it.1 == Phase::Logging)
            }
        }
    }

    /// A task falls asleep.
    pub fn wait(&mut self, task: ContextId, what: JournalWait) {
        self.waiting.push((task, what));
    }

    /// Who waits for something of a kind, last come first. Observed on 6.12: of two that wait for a
    /// commit the second goes on first.
    fn wake(&mut self, is_it: impl Fn(JournalWait) -> bool) -> Vec<ContextId> {
        self.take_waits(is_it).into_iter().map(|(task, _)| task).collect()
    }

    fn take_waits(&mut self, is_it: impl Fn(JournalWait) -> bool) -> Vec<(ContextId, JournalWait)> {
        let waits = self.waiting.extract_if(.., |(_, wait)| is_it(*wait));
        let mut waits: Vec<_> = waits.collect();
        waits.reverse();
        waits
    }

    fn next_block(&mut self) -> u64 {
        let block = self.area.start + self.head;
        self.free = self.free.checked_sub(1).expect("room was made before");
        self.head += 1;
        if self.area.start + self.head == self.area.end {
            self.head = 1;
        }
        block
    }
}

impl Transaction {
    /// Blocks that it has or may get.
    fn size(&self) -> u64 {
        self.blocks.len() as u64 + self.credits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: ContextId = ContextId(9);
    const NEVER: Expiry = Expiry { due: u64::MAX, alarm: u64::MAX };

    fn journal() -> Journal {
        Journal::new(1000..1000 + 1024, 4)
    }

    fn change(journal: &mut Journal, blocks: &[u64]) {
        assert!(matches!(journal.start(WHO, 10, NEVER), Start::Started(_)));
        blocks.iter().for_each(|block| journal.change(*block));
        journal.stop(10);
    }

    fn commit(journal: &mut Journal) -> Record {
        journal.lock();
        journal.switch();
        let record = journal.record();
        journal.logged();
        journal.sealed(&record);
        record
    }

    #[test]
    fn a_transaction_knows_who_is_in_it_and_who_wanted_it_first() {
        let mut journal = journal();
        let other = ContextId(4);
        assert!(matches!(journal.start(WHO, 1, NEVER), Start::Started(_)));
        assert!(matches!(journal.start(other, 1, NEVER), Start::Started(_)));
        assert!(matches!(journal.start(WHO, 1, NEVER), Start::Started(_)));
        (0..3).for_each(|_| drop(journal.stop(1)));
        let id = journal.running.as_ref().unwrap().id;
        assert!(journal.request(other, id));
        assert!(!journal.request(WHO, id), "it is asked for already");
        assert_eq!(journal.lock(), id);
        journal.switch();
        let (transaction, _) = journal.committing.as_ref().unwrap();
        assert_eq!(transaction.asked_by, Some(other));
        assert_eq!(transaction.joined, [(other, 1), (WHO, 2)].into());
    }

    #[test]
    fn a_commit_has_a_descriptor_the_changed_blocks_and_a_seal() {
        let mut journal = journal();
        change(&mut journal, &[7, 8]);
        change(&mut journal, &[8]);
        let record = commit(&mut journal);
        assert_eq!(record, Record { blocks: vec![1001, 1002, 1003], own: vec![1001], seal: 1004 });
        change(&mut journal, &[8]);
        assert_eq!(commit(&mut journal).blocks, [1005, 1006]);
    }

    #[test]
    fn who_waits_for_the_log_goes_on_in_the_order_in_which_blocks_were_changed_first() {
        let mut journal = journal();
        change(&mut journal, &[30, 10, 20]);
        change(&mut journal, &[10, 30]);
        journal.lock();
        journal.switch();
        journal.record();
        for (task, block) in [(1, 10), (2, 20), (3, 30), (4, 10)] {
            journal.wait(ContextId(task), JournalWait::Logged(block));
        }
        assert_eq!(journal.logged(), [3, 4, 1, 2].map(ContextId));
    }

    #[test]
    fn blocks_that_are_still_being_committed_come_behind_the_others_the_last_one_first() {
        let mut journal = journal();
        change(&mut journal, &[30, 20]);
        journal.lock();
        journal.switch();
        let record = journal.record();
        journal.logged();
        change(&mut journal, &[30, 10, 20]);
        journal.sealed(&record);
        journal.lock();
        journal.switch();
        journal.record();
        for (task, block) in [(1, 10), (2, 20), (3, 30)] {
            journal.wait(ContextId(task), JournalWait::Logged(block));
        }
        assert_eq!(journal.logged(), [1, 2, 3].map(ContextId));
    }

    #[test]
    fn while_a_transaction_is_locked_no_handle_starts_but_a_reserved_one() {
        let mut journal = journal();
        change(&mut journal, &[7]);
        journal.lock();
        assert_eq!(journal.start(WHO, 1, NEVER), Start::Waits(JournalWait::Open));
        assert_eq!(journal.join(WHO, 1, NEVER).transaction, 2);
        journal.wait(ContextId(5), JournalWait::Quiet);
        assert_eq!(journal.stop(1), [ContextId(5)]);
        journal.switch();
        assert!(journal.is_shadowed(7));
        let third = Started { transaction: 3, is_first: true };
        assert_eq!(journal.start(WHO, 1, NEVER), Start::Started(third));
    }

    #[test]
    fn transactions_leave_the_log_when_their_blocks_are_in_place_or_newer() {
        let mut journal = journal();
        change(&mut journal, &[7]);
        commit(&mut journal);
        let free = journal.free;
        change(&mut journal, &[7, 8]);
        commit(&mut journal);
        journal.clean(|_| false);
        // Three blocks of the first are free again; the second took four.
        assert_eq!(journal.free, free - 4 + 3);
        assert_eq!(journal.oldest().unwrap(), (3, vec![7, 8]));
        journal.clean(|_| true);
        assert_eq!(journal.free, 1023);
    }

    #[test]
    fn what_was_freed_is_revoked_in_a_block_before_the_others() {
        let mut journal = journal();
        change(&mut journal, &[7, 8]);
        assert!(matches!(journal.start(WHO, 10, NEVER), Start::Started(_)));
        journal.forget(8);
        journal.stop(10);
        assert_eq!(commit(&mut journal).blocks, [1001, 1002, 1003]);
    }

    #[test]
    fn a_transaction_that_would_be_too_large_is_committed_first() {
        let mut journal = journal();
        assert!(matches!(journal.start(WHO, 200, NEVER), Start::Started(_)));
        assert_eq!(journal.start(WHO, 100, NEVER), Start::Waits(JournalWait::Open));
        assert_eq!(journal.requested, 2);
    }
}
