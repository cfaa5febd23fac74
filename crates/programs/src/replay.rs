//! Trace replay: submits what a recording says was submitted once.
//!
//! Each task of the recording becomes a task here, with its own io_context, and submits its
//! arrivals in their order. *Timed*, it keeps the recorded times and does not wait for completions
//! (open loop). *Back to back*, it keeps a number of arrivals in flight and ignores times.
//! *Thinking*, it waits for each arrival and then for the recorded pause (closed loop).
//!
// Divergence: a task that cannot get a request sleeps and submits its next arrivals late; how many
// and how late is said at the end.

use crate::Program;
use base::{Duration, Instant, Sector, Sectors};
use block::{ContextId, Facts, Flags, Op};
use machine::calls::{AsyncQueue, Interface, Reaped};
use machine::file::Transfer;
use machine::program::Running;
use machine::task::{IoContextOf, Task};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use trace::Arrival;

/// The recorded arrivals and how to submit them.
#[derive(Clone, Debug)]
pub struct Replay {
    /// What to submit, in order of time.
    pub arrivals: Arc<[Arrival]>,
    /// When to submit it.
    pub pace: Pace,
}

/// When an arrival is submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At its recorded time, whatever became of the others.
    Timed,
    /// As soon as fewer than this many arrivals of its task are in flight.
    BackToBack {
        /// Most arrivals in flight, for each task.
        depth: usize,
    },
    /// When the one before it is done and its recorded pause is over.
    Thinking,
}

/// An arrival that is submitted no later than this after its time is on time: a task must wake up
/// and make a system call (assumed).
const ON_TIME: Duration = Duration::from_millis(1);

/// What had to be changed or came late.
#[derive(Default)]
struct Tally {
    late: u64,
    latest: Duration,
    moved: u64,
    widened: u64,
    skipped: u64,
}

impl machine::Program for Replay {
    fn name(&self) -> &str {
        "replay"
    }

    fn run(&self, task: Task) -> Running {
        Box::pin(self.clone().work(task))
    }
}

impl Program for Replay {}

impl Replay {
    /// Does it all; the answer is the exit status.
    async fn work(self, task: Task) -> i32 {
        let mut by_pid: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
        for (index, arrival) in self.arrivals.iter().enumerate() {
            by_pid.entry(arrival.pid).or_default().push(index);
        }
        let tally = Rc::new(RefCell::new(Tally::default()));
        let mut children: Vec<ContextId> = Vec::new();
        for (pid, indices) in by_pid {
            let name = pid.map_or("replay".to_string(), |pid| format!("replay of pid {pid}"));
            let (replay, tally) = (self.clone(), tally.clone());
            let start = task.now();
            let child = task.spawn(&name, IoContextOf::Itself, |task| async move {
                replay.one_task(task, start, indices, tally).await;
                0
            });
            children.push(child);
        }
        for child in children {
            task.join(child).await;
        }
        tally.borrow().report(&task, self.arrivals.len());
        0
    }

    async fn one_task(
        self,
        task: Task,
        start: Instant,
        indices: Vec<usize>,
        tally: Rc<RefCell<Tally>>,
    ) {
        let facts = task.disk();
        let mut queue = task.async_queue(Interface::Libaio);
        let mut reaped = Vec::new();
        let mut previous = Instant::ZERO;
        for index in indices {
            let arrival = &self.arrivals[index];
            match self.pace {
                Pace::Timed => {
                    let due = start + arrival.at.since(Instant::ZERO);
                    wait_until(&task, &mut queue, due, &mut reaped).await;
                    tally.borrow_mut().note_time(task.now().saturating_since(due));
                }
                Pace::BackToBack { depth } => {
                    make_room(&mut queue, depth.max(1), &mut reaped).await;
                }
                Pace::Thinking => {
                    make_room(&mut queue, 1, &mut reaped).await;
                    let pause = arrival.think.unwrap_or(arrival.at.saturating_since(previous));
                    task.sleep(pause).await;
                    previous = arrival.at.saturating_add(arrival.service.unwrap_or_default());
                }
            }
            if let Some(transfer) = tally.borrow_mut().fit(arrival, &facts) {
                queue.prepare_transfer(transfer, index as u64);
            }
            queue.submit().await;
        }
        make_room(&mut queue, 1, &mut reaped).await;
    }
}

/// Waits until fewer than `depth` requests are in flight.
async fn make_room(queue: &mut AsyncQueue, depth: usize, reaped: &mut Vec<Reaped>) {
    let most = queue.in_flight();
    if most >= depth {
        reaped.clear();
        queue.reap(most - depth + 1, most, None, reaped).await;
    }
}

/// Waits until a point in time, and collects what is done meanwhile, each when it is done.
async fn wait_until(task: &Task, queue: &mut AsyncQueue, due: Instant, reaped: &mut Vec<Reaped>) {
    while task.now() < due && queue.in_flight() > 0 {
        reaped.clear();
        let left = due.saturating_since(task.now());
        queue.reap(1, usize::MAX, Some(left), reaped).await;
    }
    task.sleep_until(due).await;
}

impl Tally {
    /// The transfer for an arrival, made to fit the disk; `None` when the disk cannot do it.
    fn fit(&mut self, arrival: &Arrival, facts: &Facts) -> Option<Transfer> {
        let op = match arrival.op {
            trace::Op::Read => Op::Read,
            trace::Op::Write => Op::Write,
            trace::Op::Discard if facts.discard => Op::Discard,
            trace::Op::Discard => {
                self.skipped += 1;
                return None;
            }
            trace::Op::Flush => return Some(Transfer::FLUSH),
        };
        let (sector, sectors) = self.place(arrival, facts);
        Some(Transfer { op, flags: flags(arrival), sector, sectors })
    }

    /// Widens a range to whole logical blocks and moves it onto the disk.
    fn place(&mut self, arrival: &Arrival, facts: &Facts) -> (Sector, Sectors) {
        let block = u64::from(facts.logical_block / Sector::SIZE as u32).max(1);
        let end = (arrival.sector.0 + u64::from(arrival.sectors().0)).next_multiple_of(block);
        let first = arrival.sector.0 / block * block;
        let disk = facts.capacity.0 / Sector::SIZE / block * block;
        let length = (end - first).min(disk).min(u64::from(u32::MAX) / block * block);
        self.widened +=
            u64::from(first != arrival.sector.0 || length != u64::from(arrival.sectors().0));
        if first + length <= disk {
            return (Sector(first), Sectors(length as u32));
        }
        self.moved += 1;
        let places = disk - length + block;
        (Sector(first % places / block * block), Sectors(length as u32))
    }

    fn note_time(&mut self, late: Duration) {
        self.late += u64::from(late > ON_TIME);
        self.latest = self.latest.max(late);
    }

    fn report(&self, task: &Task, arrivals: usize) {
        let say = |count: u64, what: &str| {
            if count > 0 {
                task.print(format!("replay: {count} of {arrivals} arrivals {what}"));
            }
        };
        say(self.late, &format!("were submitted late, the latest by {}", self.latest));
        say(self.moved, "lie beyond the end of this disk and were moved onto it");
        say(self.widened, "were widened to whole logical blocks");
        say(self.skipped, "are discards, which this disk does not do, and were skipped");
    }
}

/// The flags of a recorded arrival.
fn flags(arrival: &Arrival) -> Flags {
    let recorded = arrival.flags;
    let set = [
        (recorded.sync, Flags::SYNC),
        (recorded.preflush, Flags::PREFLUSH),
        (recorded.fua, Flags::FUA),
        (recorded.metadata, Flags::META),
        (recorded.readahead, Flags::RAHEAD),
    ];
    set.iter().filter(|(is_set, _)| *is_set).fold(Flags::NONE, |flags, (_, flag)| flags.with(*flag))
}
