//! lg: the load generator of the recordings of a real 4.19.
//!
//! Each word of its command line is a job, each copy of a job a process: reads or writes one block
//! after the other, one at a time, until its time is over, and may pause after each. Copies may
//! take their blocks from one position that they share, may do so strictly in turn, and may share
//! an io_context.
//!
//! Written after what the recordings' README and manifests say of it and what their traces show:
//! processes begin with the last one, unless an order is given, and each opens its file itself: of
//! two readers who share a position, one touches the mark that the other left, and nothing is read
//! ahead for it (c-hdd-deadline-p2-sep-buf, 8.5 ms after the first bio).

mod options;
mod report;

pub use options::Lg;

use crate::Program;
use base::{Duration, Instant, Rng};
use block::ContextId;
use machine::calls::Creation;
use machine::file::Errno;
use machine::program::Running;
use machine::task::{File, IoContextOf, OpenFlags, Task};
use options::{Job, Mode};
use report::Account;
use std::cell::RefCell;
use std::rc::Rc;

/// Exit status when something went wrong.
const FAILED: i32 = 1;

/// What the copies of a job have in common.
struct Shared {
    /// The next block, where there is one position for all.
    position: u64,
    /// The copies by number, once they exist.
    copies: Vec<ContextId>,
    /// Those that take no further turn.
    have_ended: Vec<bool>,
    /// Whose turn it is.
    turn: usize,
}

/// A process.
struct Worker {
    job: Job,
    number: usize,
    shared: Rc<RefCell<Shared>>,
    rng: Rng,
    position: u64,
}

impl machine::Program for Lg {
    fn name(&self) -> &str {
        "lg"
    }

    fn run(&self, task: Task) -> Running {
        Box::pin(self.clone().work(task))
    }
}

impl Program for Lg {
    fn files(&self) -> Vec<&str> {
        self.jobs.iter().map(|job| job.file.as_str()).collect()
    }

    fn typed_files(&mut self) -> Vec<&mut String> {
        self.jobs.iter_mut().map(|job| &mut job.file).collect()
    }
}

impl Lg {
    /// Does it all; the answer is the exit status.
    async fn work(self, task: Task) -> i32 {
        let mut workers = Vec::new();
        for (index, job) in self.jobs.into_iter().enumerate() {
            workers.extend(prepare(&task, index, job));
        }
        let accounts = Rc::new(RefCell::new(Vec::new()));
        let mut children = Vec::new();
        let begun = task.now();
        for (order, worker) in in_order(workers, &self.order) {
            let accounts = accounts.clone();
            let (shared, number) = (worker.shared.clone(), worker.number);
            let io_context = match worker.job.shares_io_context {
                true => IoContextOf::Parent,
                false => IoContextOf::Itself,
            };
            let name = worker.name();
            let child = task.spawn(&name, io_context, |task| async move {
                let name = worker.name();
                let account = worker.work(&task, begun).await;
                accounts.borrow_mut().push((order, name, account));
                0
            });
            shared.borrow_mut().copies[number] = child;
            children.push(child);
        }
        for child in children {
            task.join(child).await;
        }
        let mut accounts = accounts.take();
        accounts.sort_by_key(|(order, ..)| *order);
        for (_, name, account) in &accounts {
            task.print(account.line(name));
        }
        let failed = accounts.iter().any(|(.., account)| account.failed.is_some());
        if failed { FAILED } else { 0 }
    }
}

/// Processes with their numbers, in the order in which they begin.
fn in_order(workers: Vec<Worker>, order: &[usize]) -> Vec<(usize, Worker)> {
    let mut workers: Vec<(usize, Worker)> = workers.into_iter().enumerate().rev().collect();
    let place = |number: &usize| order.iter().position(|it| it == number);
    workers.sort_by_key(|(number, _)| place(number).unwrap_or(usize::MAX));
    workers
}

/// The processes of a job.
fn prepare(task: &Task, index: usize, job: Job) -> Vec<Worker> {
    let shared = Rc::new(RefCell::new(Shared {
        position: 0,
        copies: vec![task.id(); job.copies],
        have_ended: vec![false; job.copies],
        turn: 0,
    }));
    let worker = |number: usize| Worker {
        rng: task.rng(&format!("program/lg/{index}/{number}")),
        job: job.clone(),
        number,
        shared: shared.clone(),
        position: 0,
    };
    (0..job.copies).map(worker).collect()
}

async fn open(task: &Task, job: &Job) -> Result<File, Errno> {
    let flags = OpenFlags { direct: job.direct, ..OpenFlags::default() };
    let creation = if job.mode.writes() { Creation::WRITE } else { Creation::READ };
    task.open_file(&job.file, flags, creation).await
}

impl Worker {
    fn name(&self) -> String {
        match self.job.copies {
            1 => self.job.name.clone(),
            _ => format!("{}.{}", self.job.name, self.number),
        }
    }

    /// Does its part, and says what it saw.
    async fn work(mut self, task: &Task, begun: Instant) -> Account {
        if let Some(cgroup) = &self.job.cgroup {
            task.enter_cgroup(cgroup, None);
        }
        if let Some(ioprio) = self.job.ioprio {
            task.set_ioprio(ioprio);
        }
        if !self.job.start.is_zero() {
            task.sleep_until(begun + self.job.start).await;
        }
        let mut account = Account::new(&self.job, task.now());
        let result = self.transfer(task, &mut account).await;
        account.failed = result.err();
        account.ended = task.now();
        account
    }

    async fn transfer(&mut self, task: &Task, account: &mut Account) -> Result<(), Errno> {
        let file = open(task, &self.job).await?;
        let size = match self.job.size {
            Some(size) => size,
            None => task.size(&file) - self.job.offset,
        };
        let blocks = size / self.job.block;
        // It lasts from its own start on: an app that came at 5 s with 12 s to go was seen to go on
        // alone after the 12 s of the others (g-hdd-cfq-lowlat1-interactive).
        let until = account.started() + self.job.duration.unwrap_or(Duration::from_secs(1 << 30));
        let count = self.job.count.unwrap_or(u64::MAX);
        while account.calls() < count && task.now() < until {
            self.take_turn(task).await;
            let Some(block) = self.next_block(blocks) else { break };
            let offset = self.job.offset + block * self.job.block;
            let entered = task.now();
            let done = match self.job.mode.writes() {
                true => task.pwrite(&file, offset, self.job.block).await?,
                false => task.pread(&file, offset, self.job.block).await?,
            };
            if done == 0 {
                break;
            }
            account.call(task.now().since(entered));
            task.look_at_clock(2).await;
            self.pass_turn(task).await;
            self.sync(task, &file, account).await?;
            if !self.job.think.is_zero() {
                task.sleep_with_slack(self.job.think).await;
            }
        }
        self.end_turns(task);
        Ok(())
    }

    /// The block to read or write; none at the end of the region.
    fn next_block(&mut self, blocks: u64) -> Option<u64> {
        if self.job.mode.is_random() {
            return Some(self.rng.below(blocks.max(1)));
        }
        let mut shared = self.shared.borrow_mut();
        let position = match self.job.shares_position {
            true => &mut shared.position,
            false => &mut self.position,
        };
        if *position >= blocks && self.job.loops {
            *position = 0;
        }
        let block = *position;
        *position += self.job.stride;
        (block < blocks).then_some(block)
    }

    async fn sync(&self, task: &Task, file: &File, account: &mut Account) -> Result<(), Errno> {
        let due = self.job.sync_every.is_some_and(|every| account.calls().is_multiple_of(every));
        if due {
            let entered = task.now();
            task.fsync(file).await?;
            account.sync(task.now().since(entered));
        }
        Ok(())
    }

    /// Waits until it is this copy's turn.
    async fn take_turn(&self, task: &Task) {
        while self.job.in_turn && self.shared.borrow().turn != self.number {
            task.notified().await;
        }
    }

    /// Lets the next copy have its turn: a byte goes through a pipe.
    async fn pass_turn(&self, task: &Task) {
        if self.job.in_turn {
            task.enter_kernel().await;
            task.compute(task.costs().system_call).await;
            task.leave_kernel();
            self.shared.borrow_mut().next_turn(task);
        }
    }

    /// Takes part in no further turn.
    fn end_turns(&self, task: &Task) {
        let mut shared = self.shared.borrow_mut();
        shared.have_ended[self.number] = true;
        if shared.turn == self.number {
            shared.next_turn(task);
        }
    }
}

impl Shared {
    fn next_turn(&mut self, task: &Task) {
        let copies = self.copies.len();
        let after = (1..=copies).map(|n| (self.turn + n) % copies);
        if let Some(next) = after.into_iter().find(|copy| !self.have_ended[*copy]) {
            self.turn = next;
            task.notify(self.copies[next]);
        }
    }
}

impl Mode {
    fn writes(self) -> bool {
        matches!(self, Mode::Write | Mode::RandomWrite)
    }

    fn is_random(self) -> bool {
        matches!(self, Mode::RandomRead | Mode::RandomWrite)
    }
}
