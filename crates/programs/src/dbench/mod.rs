//! dbench: clients of a file server, each of which repeats what a recorded one did.
//!
//! The program of Debian, 4.00, after its manual, its `--help` and what strace shows of it (rules
//! dbench). The load file is read when the experiment is: it is no file of the simulated disk, and
//! reading it costs nothing.
//!
//! Each second it says how far clients have come. The warm-up lasts until its time is over and
//! every client has moved data; then all is counted anew. When the time is over clients stop after
//! the operation they are at, and each removes its files. `--warmup` is that of 4.1.

mod client;
mod loadfile;
mod options;
mod report;

pub use options::Dbench;

use crate::Program;
use base::{Duration, Instant};
use client::{Client, Failure, Progress};
use machine::program::Running;
use machine::task::{IoContextOf, Task};
use report::Second;
use std::cell::RefCell;
use std::rc::Rc;

/// Exit status when something went wrong.
const FAILED: i32 = 1;
/// How long it waits before it looks whether all clients have been started (strace).
const PAUSE: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);

impl machine::Program for Dbench {
    fn name(&self) -> &str {
        "dbench"
    }

    fn run(&self, task: Task) -> Running {
        Box::pin(Parent::new(self.clone(), task).work())
    }
}

impl Program for Dbench {
    fn files(&self) -> Vec<&str> {
        vec![&self.directory]
    }

    fn typed_files(&mut self) -> Vec<&mut String> {
        vec![&mut self.directory]
    }
}

/// The process that starts clients and says what they do.
struct Parent {
    options: Rc<Dbench>,
    task: Task,
    clients: Vec<Rc<RefCell<Progress>>>,
    /// The end of the warm-up, or the beginning.
    since: Instant,
    rate: u64,
    longest: Duration,
}

impl Parent {
    fn new(options: Dbench, task: Task) -> Parent {
        let clients = (0..options.clients).map(|_| Rc::default()).collect();
        let since = task.now();
        let options = Rc::new(options);
        Parent { options, task, clients, since, rate: 0, longest: Duration::ZERO }
    }

    /// Does it all; the answer is the exit status.
    async fn work(mut self) -> i32 {
        self.greet();
        let mut children = Vec::new();
        for (number, progress) in (0..).zip(self.clients.clone()) {
            let options = self.options.clone();
            let child = self.task.spawn("dbench", IoContextOf::Itself, |task| async move {
                task.notified().await;
                match Client::new(task, options, progress, number).work().await {
                    Ok(()) => 0,
                    Err(Failure) => FAILED,
                }
            });
            children.push(child);
        }
        self.task.sleep(PAUSE).await;
        children.iter().for_each(|child| self.task.notify(*child));
        self.since = self.task.now();
        let ended = self.watch().await;
        let mut failed = false;
        for child in children {
            failed |= self.task.join(child).await != 0;
        }
        if failed {
            self.task.print("Child failed with status 1");
            return FAILED;
        }
        self.task.print(format!("{:4}  cleanup {:3} sec", 0, seconds(ended)));
        self.close();
        0
    }

    fn greet(&self) {
        let (time, warm_up) = (seconds(self.options.time), seconds(self.options.warm_up));
        self.task.print(format!(
            "Running for {time} seconds with load '{}' and minimum warmup {warm_up} secs",
            self.options.load_file()
        ));
    }

    /// Says each second what clients have done, and ends them when the time is over; the answer is
    /// how long that was.
    async fn watch(&mut self) -> Duration {
        let mut is_warm = self.options.warm_up.is_zero();
        // A timer may end a moment early, so seconds are counted.
        let mut passed = Duration::ZERO;
        loop {
            self.task.sleep(SECOND).await;
            passed += SECOND;
            if !is_warm && passed >= self.options.warm_up && self.all_are_active() {
                is_warm = true;
                self.begin_anew();
                passed = Duration::ZERO;
            } else if is_warm && passed >= self.options.time {
                let all = self.clients.len();
                self.task.print(format!("{all:4}  cleanup {:3} sec", seconds(passed)));
                self.clients.iter().for_each(|it| it.borrow_mut().must_end = true);
                return passed;
            } else {
                self.tell(if is_warm { "execute" } else { "warmup" }, passed);
            }
        }
    }

    fn all_are_active(&self) -> bool {
        self.clients.iter().all(|it| it.borrow().is_active)
    }

    /// What was counted while all warmed up is forgotten.
    fn begin_anew(&mut self) {
        self.since = self.task.now();
        for client in &self.clients {
            let mut client = client.borrow_mut();
            let Progress { is_active, lines, .. } = *client;
            *client = Progress { is_active, lines, ..Progress::default() };
        }
    }

    fn tell(&mut self, phase: &'static str, passed: Duration) {
        let (mut active, mut lines, mut bytes, mut longest) = (0, 0, 0, Duration::ZERO);
        for client in &self.clients {
            let mut client = client.borrow_mut();
            active += u64::from(client.is_active);
            lines += client.lines;
            bytes += client.bytes;
            longest = longest.max(std::mem::take(&mut client.longest));
        }
        let nanos = u128::from(self.task.now().since(self.since).as_nanos().max(1));
        let rate = (u128::from(bytes) * 1_000_000_000 / nanos) as u64;
        let lines = lines / self.clients.len() as u64;
        let second = Second { active, lines, rate, phase, seconds: seconds(passed), longest };
        self.task.print(second.line());
        if phase == "execute" {
            self.rate = rate;
            self.longest = self.longest.max(longest);
        }
    }

    /// The table and the last lines.
    fn close(&self) {
        let tallies: Vec<_> = self.clients.iter().map(|it| it.borrow().tallies).collect();
        let passes: Vec<Duration> =
            self.clients.iter().flat_map(|it| it.borrow().passes.clone()).collect();
        for line in report::table(&tallies) {
            self.task.print(line);
        }
        if let Some(line) = report::passes(&passes) {
            self.task.print(line);
        }
        self.task.print(report::throughput(&self.options, self.rate, self.longest));
    }
}

fn seconds(time: Duration) -> u64 {
    time.as_nanos() / 1_000_000_000
}
