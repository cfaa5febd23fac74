//! Where the time of system calls went: each call's critical path, whose pieces add up to it.
//!
//! Needs a run that tells of tasks (`machine::Setup::tells_tasks`). Memory is bounded by what has
//! happened since the oldest call began that is not over.

mod bios;
mod holders;
mod path;
mod queue;
mod syncs;
mod tasks;

pub use path::Segment;

use base::{Duration, Instant};
use bios::Bios;
use block::{Action, Committed, ContextId, Event, PagesWhy, SleepsFor, Syscall};
use machine::{Observer, TaskInfo};
use path::Walk;
use std::collections::{BTreeMap, VecDeque};
use syncs::Syncs;
use tasks::{Doing, History, Woken};

/// What is old is forgotten after so many events.
const TIDY_AFTER: u32 = 4096;

/// A call that is over, or was under way when the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Who made it.
    pub task: ContextId,
    /// Which.
    pub call: Syscall,
    /// Its number among those of its task.
    pub token: u64,
    /// When it was entered.
    pub entered: Instant,
    /// When it ended, or the run did.
    pub ended: Instant,
    /// Whether the run ended first.
    pub is_unfinished: bool,
    /// Its critical path; the pieces have no gaps and cover all of it.
    pub path: Vec<Segment>,
    /// The transactions of the journal whose commits are part of that.
    pub commits: Vec<Committed>,
    /// Pages that were read, and those of others that were written: why, because of whom and how
    /// many.
    pub pages: Vec<(PagesWhy, ContextId, u32)>,
}

impl Call {
    /// How long it took.
    pub fn took(&self) -> Duration {
        self.ended.saturating_since(self.entered)
    }
}

/// Follows a run and hands out each call.
pub struct Calls<F> {
    histories: Vec<History>,
    bios: Bios,
    /// The bio that was done last: of all, and of each operation that is under way.
    last_done: Option<u64>,
    of_operation: BTreeMap<(ContextId, u64), u64>,
    /// When calls of sync and fsync were under way.
    syncs: Syncs,
    /// When calls that are not over were entered.
    open: BTreeMap<(ContextId, u64), Instant>,
    /// Tasks that sleep because writeback is throttled.
    throttled: Vec<ContextId>,
    /// Tasks that sleep because all requests are taken, and who has most of them.
    beggars: Vec<(ContextId, Option<ContextId>)>,
    /// Transactions that have been committed, or are, and when.
    commits: VecDeque<(Instant, Committed)>,
    /// Of tasks' calls that are not over.
    pages: BTreeMap<ContextId, Vec<(PagesWhy, ContextId, u32)>>,
    until_tidy: u32,
    /// The oldest call that was not over when things were put in order last.
    horizon: Instant,
    sink: F,
}

impl<F: FnMut(Call)> Calls<F> {
    /// Of a run on a device that takes so many commands, if that is known.
    pub fn new(depth: Option<u32>, sink: F) -> Calls<F> {
        Calls {
            histories: Vec::new(),
            bios: Bios::new(depth),
            last_done: None,
            of_operation: BTreeMap::new(),
            syncs: Syncs::default(),
            open: BTreeMap::new(),
            throttled: Vec::new(),
            beggars: Vec::new(),
            commits: VecDeque::new(),
            pages: BTreeMap::new(),
            until_tidy: TIDY_AFTER,
            horizon: Instant::ZERO,
            sink,
        }
    }

    fn history(&mut self, of: ContextId) -> &mut History {
        let number = of.0 as usize;
        if number >= self.histories.len() {
            self.histories.resize_with(number + 1, || History::new(Doing::Nothing));
        }
        &mut self.histories[number]
    }

    fn sleeps(&mut self, event: &Event, what: SleepsFor) {
        let is_throttled = self.throttled.contains(&event.context);
        let begs = self.beggars.iter().position(|it| it.0 == event.context);
        let holder = begs.and_then(|place| self.beggars.swap_remove(place).1);
        let next = Doing::Sleeps { what, is_throttled, holder, woken: None };
        self.history(event.context).turn(event.at, None, next);
    }

    fn wakes(&mut self, event: &Event, by: Option<ContextId>) {
        self.throttled.retain(|it| *it != event.context);
        let what = match self.history(event.context).now() {
            Doing::Sleeps { what, .. } => Some(what),
            _ => None,
        };
        let woken = match by {
            // Whoever pauses is woken by a timer, whose interrupt may have told of bios as well.
            _ if matches!(what, Some(SleepsFor::Pause | SleepsFor::DirtyLimit)) => Woken::Timer,
            Some(by) if self.is_interrupt(by) => self.woken_by_bio(event.at, what),
            Some(by) => Woken::By(by),
            None => Woken::Timer,
        };
        self.history(event.context).turn(event.at, Some(woken), Doing::Waits);
    }

    /// An interrupt has woken somebody: it has just told of a bio, or it is a timer's.
    fn woken_by_bio(&self, at: Instant, what: Option<SleepsFor>) -> Woken {
        let done = self.last_done.and_then(|number| Some((number, self.bios.get(number)?.done)));
        // A worker is given something to do by timers as well.
        let is_worker = what == Some(SleepsFor::Task);
        match done.filter(|(_, done)| !is_worker || *done == at) {
            Some((number, _)) => Woken::Bio(number),
            None => Woken::Timer,
        }
    }

    /// Interrupts are no tasks: nobody has met them, and they neither sleep nor wake.
    fn is_interrupt(&self, context: ContextId) -> bool {
        self.histories.get(context.0 as usize).is_none_or(|it| it.now() == Doing::Nothing)
    }

    fn bio_done(&mut self, event: &Event, number: u64) {
        self.last_done = Some(number);
        let operation = (event.context, event.token);
        if self.open.contains_key(&operation) {
            self.of_operation.insert(operation, number);
        }
    }

    fn ends(&mut self, event: &Event, syscall: Syscall, [entered, submitted]: [Instant; 2]) {
        let (task, token, ended) = (event.context, event.token, event.at);
        self.open.remove(&(task, token));
        let bio = self.of_operation.remove(&(task, token)).and_then(|it| self.bios.get(it));
        let mut walk = Walk::new(&self.histories, &self.bios, &self.syncs, task);
        match bio.filter(|it| is_asynchronous(syscall) && it.done >= submitted) {
            Some(bio) => {
                let done = bio.done.min(ended);
                walk.task(task, entered, submitted);
                walk.bio(bio, task, submitted, done);
                walk.task(task, done, ended);
            }
            None => walk.task(task, entered, ended),
        }
        let (path, met) = walk.finish();
        let is_met = |it: &&(Instant, Committed)| met.contains(&it.1.transaction);
        let commits = self.commits.iter().filter(is_met).map(|it| it.1.clone()).collect();
        let is_unfinished = matches!(event.action, Action::SyscallUnfinished { .. });
        let pages = self.pages.remove(&task).unwrap_or_default();
        let call = Call {
            task,
            call: syscall,
            token,
            entered,
            ended,
            is_unfinished,
            path,
            commits,
            pages,
        };
        (self.sink)(call);
        if syscall == Syscall::Sync {
            self.syncs.ends(ended, self.bios.queue.owner(task));
        }
    }

    fn tidy(&mut self, now: Instant) {
        self.until_tidy = TIDY_AFTER;
        // What is asynchronous was prepared some time before it was entered.
        let oldest = self.open.values().copied().min().unwrap_or(now);
        let before = std::mem::replace(&mut self.horizon, oldest).min(oldest);
        self.histories.iter_mut().for_each(|it| it.forget(before));
        self.bios.forget(before);
        self.syncs.forget(before);
        // The last one of these may have been under way then.
        while self.commits.get(1).is_some_and(|(at, _)| *at < before) {
            self.commits.pop_front();
        }
    }
}

impl<F: FnMut(Call)> Observer for Calls<F> {
    fn meet(&mut self, who: &TaskInfo) {
        let sleeps =
            Doing::Sleeps { what: SleepsFor::Task, is_throttled: false, holder: None, woken: None };
        *self.history(who.context) = History::new(sleeps);
        self.bios.queue.meet(who.context, who.job, &who.name);
    }

    fn see(&mut self, event: &Event) {
        if let Some(number) = self.bios.see(event) {
            self.bio_done(event, number);
        }
        match &event.action {
            Action::Throttled { .. } => self.throttled.push(event.context),
            Action::Sleep => {
                let holder = self.bios.holders.most(block::bio::is_sync(event.op, event.flags));
                let holder = holder.filter(|it| *it != event.context);
                self.beggars.push((event.context, holder));
            }
            Action::Blocks(what) => self.sleeps(event, *what),
            Action::Wakes { by } => self.wakes(event, *by),
            Action::Runs => self.history(event.context).turn(event.at, None, Doing::Computes),
            Action::Commits { transaction, phase } => {
                let commit = phase.map(|phase| (*transaction, phase));
                self.history(event.context).commits(event.at, commit);
            }
            Action::Pages { why, by, pages } => {
                self.pages.entry(event.context).or_default().push((*why, *by, *pages));
            }
            Action::InCommit(commit) => self.commits.push_back((event.at, (**commit).clone())),
            Action::Preempted => self.history(event.context).turn(event.at, None, Doing::Waits),
            Action::SyscallEnter(call) => {
                if *call == Syscall::Sync {
                    let owner = self.bios.queue.owner(event.context);
                    self.syncs.begins(event.at, owner);
                }
                self.pages.remove(&event.context);
                self.open.insert((event.context, event.token), event.at);
            }
            Action::SyscallExit { call, entered, submitted }
            | Action::SyscallUnfinished { call, entered, submitted } => {
                self.ends(event, *call, [*entered, *submitted]);
            }
            _ => {}
        }
        self.until_tidy -= 1;
        if self.until_tidy == 0 {
            self.tidy(event.at);
        }
    }
}

fn is_asynchronous(call: Syscall) -> bool {
    matches!(call, Syscall::AsyncRead | Syscall::AsyncWrite)
}
