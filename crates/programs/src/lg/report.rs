//! What lg says of each process at the end, in the columns of the recordings' results.

use super::options::{Job, MODES};
use base::{Duration, Instant};
use machine::file::Errno;

/// What a process has seen.
pub(super) struct Account {
    mode: &'static str,
    block: u64,
    started: Instant,
    pub ended: Instant,
    pub failed: Option<Errno>,
    calls: Vec<Duration>,
    syncs: Vec<Duration>,
}

impl Account {
    pub fn new(job: &Job, started: Instant) -> Account {
        let mode = MODES.iter().find(|(_, mode)| *mode == job.mode).expect("all are listed").0;
        let (calls, syncs) = (Vec::new(), Vec::new());
        Account { mode, block: job.block, started, ended: started, failed: None, calls, syncs }
    }

    /// When the job began, after what it waited.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// How many reads or writes there were.
    pub fn calls(&self) -> u64 {
        self.calls.len() as u64
    }

    pub fn call(&mut self, took: Duration) {
        self.calls.push(took);
    }

    pub fn sync(&mut self, took: Duration) {
        self.syncs.push(took);
    }

    /// Name, mode, size of blocks, calls, calls and megabytes a second; of the latencies mean,
    /// 50th, 90th and 99th percentile and the longest; of fsyncs, if there were any, how many, and
    /// mean, 50th and 99th percentile and the longest. Times are in microseconds.
    pub fn line(&self, name: &str) -> String {
        let elapsed = self.ended.since(self.started);
        let calls = self.calls();
        let iops = per_second(calls, elapsed);
        let rate = per_second(calls * self.block, elapsed);
        let mut line = format!(
            "{name} {} {} {calls} {}.{} {}.{:03} | {}",
            self.mode,
            self.block,
            iops / 10,
            iops % 10,
            rate / 10_000_000,
            rate / 10_000 % 1_000,
            latencies(&self.calls, &[50, 90, 99])
        );
        if !self.syncs.is_empty() {
            let syncs = latencies(&self.syncs, &[50, 99]);
            line += &format!(" | fsync: {} {syncs}", self.syncs.len());
        }
        if let Some(errno) = self.failed {
            line += &format!(" | failed: {errno}");
        }
        line
    }
}

/// Tenths.
fn per_second(amount: u64, elapsed: Duration) -> u64 {
    let tenths = u128::from(amount) * 10_000_000_000;
    (tenths / u128::from(elapsed.as_nanos().max(1))) as u64
}

/// Mean, percentiles and maximum, in microseconds.
fn latencies(all: &[Duration], percentiles: &[usize]) -> String {
    let mut sorted = all.to_vec();
    sorted.sort();
    let sum: Duration = sorted.iter().copied().sum();
    let mut figures = vec![sum / (sorted.len() as u64).max(1)];
    let at = |percent: usize| sorted.get(sorted.len() * percent / 100).copied();
    figures.extend(percentiles.iter().map(|percent| at(*percent).unwrap_or_default()));
    figures.push(sorted.last().copied().unwrap_or_default());
    let figures: Vec<String> = figures.iter().map(|it| it.as_micros().to_string()).collect();
    figures.join(" ")
}
