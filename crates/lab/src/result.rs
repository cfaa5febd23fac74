//! What a run yields, whatever the world: values only.

use crate::metrics::bios::Asked;
use crate::metrics::calls::DEPTH_LEVELS;
use crate::metrics::commands::Step;
use crate::metrics::operations::Operations;
use crate::metrics::samples::Spread;
use crate::metrics::{CallKind, Disk, Latency, Layers, Throttling};
use crate::scheduler_spec::SchedulerSpec;
use crate::told::Told;
use crate::world::World;
use base::{Bytes, Duration, Instant};
use programs::fio::LatencyTarget;
pub use programs::fio::steady::{Second, Steadiness};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Where it ran.
    pub world: World,
    /// The scheduler as it was asked for.
    pub spec: SchedulerSpec,
    /// Name and value of each axis.
    pub axes: Vec<(String, String)>,
    /// The device model.
    pub model: String,
    /// The file system on its disk.
    pub fs: &'static str,
    /// The host.
    pub host: String,
    /// What randomness derived from.
    pub seed: u64,
    /// Tunables and settings with their values.
    pub tunables: Vec<(&'static str, i64)>,
    /// Two runs with the same fingerprint did the same.
    pub fingerprint: u64,
    /// When the last job ended.
    pub elapsed: Duration,
    /// The limit of I/O calls that ended it, if one did.
    pub cut_off_after: Option<u64>,
    /// What each job did; the clones of a fio job count together.
    pub jobs: Jobs,
    /// What each process did, as fio reports it.
    pub processes: Vec<JobResult>,
    /// Latency by layer, of all jobs together.
    pub layers: Layers,
    /// What the disk did.
    pub disk: Disk,
    /// Who slept because writeback was throttled, and why.
    pub throttling: Throttling,
    /// The same command by command, if the plan has more than one world.
    pub commands: Vec<Step>,
    /// What tasks gave to the block layer, if it was watched.
    pub bios: Vec<Asked>,
    /// How each program ended, and what it said.
    pub exits: Vec<ProgramExit>,
}

/// Jobs in their order, of which there may be thousands, found by name.
#[derive(Clone, Debug, Default)]
pub struct Jobs {
    list: Vec<JobResult>,
    by_name: BTreeMap<String, usize>,
}

impl From<Vec<JobResult>> for Jobs {
    fn from(list: Vec<JobResult>) -> Jobs {
        let mut by_name = BTreeMap::new();
        for (place, job) in list.iter().enumerate() {
            by_name.entry(job.name.clone()).or_insert(place);
        }
        Jobs { list, by_name }
    }
}

impl Deref for Jobs {
    type Target = [JobResult];

    fn deref(&self) -> &[JobResult] {
        &self.list
    }
}

impl<'a> IntoIterator for &'a Jobs {
    type Item = &'a JobResult;
    type IntoIter = std::slice::Iter<'a, JobResult>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

/// What a job, or the tasks of one name within it, did.
#[derive(Clone, Debug, Default)]
pub struct JobResult {
    /// Its name.
    pub name: String,
    /// The path of its control group.
    pub cgroup: String,
    /// How many tasks it had.
    pub tasks: u32,
    /// From its first call to the end of its last.
    pub runtime: Duration,
    /// When its first call began and its last one ended, where that is known.
    pub called: Option<(Instant, Instant)>,
    /// Its calls, by [`CallKind`].
    pub calls: [CallResult; 4],
    /// Latency by layer.
    pub layers: Layers,
    /// How often a call was made at depths up to 1, 2, 4, … 64 and more.
    pub depths: [u64; DEPTH_LEVELS],
    /// What its program stated.
    pub told: Told,
    /// What only fio knows of it.
    pub fio: Option<FioProcess>,
    /// Its single operations, if it is the job by which schedulers are judged.
    pub operations: Arc<Operations>,
}

/// What only fio knows of a process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FioProcess {
    /// Its reporting group.
    pub group: u32,
    /// Its options as they were typed.
    pub options: Vec<(String, String)>,
    /// Those of global sections.
    pub global_options: Vec<(String, String)>,
    /// The percentage of calls that handed over batches of each size.
    pub submitted: Vec<f64>,
    /// The percentage of calls that collected batches of each size.
    pub completed: Vec<f64>,
    /// How deep its queue was at most.
    pub depth: usize,
    /// The latency that it was to keep.
    pub target: Option<LatencyTarget>,
    /// What was seen of the rate that was to become steady.
    pub steady: Option<Steadiness>,
}

/// The calls of one kind, summed up.
#[derive(Clone, Debug, Default)]
pub struct CallResult {
    /// How many ended.
    pub count: u64,
    /// How many had not ended when the run did.
    pub unfinished: u64,
    /// What they transferred.
    pub bytes: Bytes,
    /// Bytes per second of the job's runtime; zero if that is zero.
    pub bw_bytes: f64,
    /// Calls per second of the job's runtime.
    pub iops: f64,
    /// From preparing an asynchronous call to its submission.
    pub slat: Latency,
    /// From submission to the end.
    pub clat: Latency,
    /// Both together.
    pub lat: Latency,
    /// Bytes in windows of half a second.
    pub byte_samples: Spread,
    /// Calls in windows of half a second.
    pub call_samples: Spread,
    /// Of fio's decades of latency, the percentage of calls in each; see [`DECADES`].
    pub decades: Vec<f64>,
}

/// Upper limits of fio's decades of latency, in nanoseconds; one more class lies above.
pub const DECADES: [u64; 31] = {
    const STEPS: [u64; 9] = [2, 4, 10, 20, 50, 100, 250, 500, 750];
    let mut limits = [0; 31];
    let mut unit = 1;
    let mut at = 0;
    while at < 31 {
        let step = at % 10;
        limits[at] = unit * if step < 9 { STEPS[step] } else { 1000 };
        if step == 9 {
            unit *= 1000;
        }
        at += 1;
    }
    limits[30] = 2_000_000_000;
    limits
};

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramExit {
    /// The job.
    pub job: String,
    /// Whether it ended as it should have.
    pub failed: bool,
    /// How it ended, in words.
    pub how: String,
    /// What it wrote to its standard error.
    pub messages: Vec<String>,
}

impl RunResult {
    /// A job by its name.
    pub fn job(&self, name: &str) -> Option<&JobResult> {
        Some(&self.jobs[*self.jobs.by_name.get(name)?])
    }

    /// How programs failed, if any did, and what they said.
    pub fn failures(&self) -> impl Iterator<Item = String> + '_ {
        let failed = self.exits.iter().filter(|exit| exit.failed);
        failed.map(|exit| format!("{} {}: {}", exit.job, exit.how, exit.messages.join("; ")))
    }

    /// Whether every program ended as it should have.
    pub fn succeeded(&self) -> bool {
        self.exits.iter().all(|exit| !exit.failed)
    }
}

impl JobResult {
    /// Its calls of one kind.
    pub fn call(&self, kind: CallKind) -> &CallResult {
        &self.calls[kind as usize]
    }

    /// The percentage of calls made at each depth level.
    pub fn depth_shares(&self) -> Vec<f64> {
        let all = self.depths.iter().sum::<u64>().max(1) as f64;
        self.depths.iter().map(|count| 100.0 * *count as f64 / all).collect()
    }

    /// The percentage of all its calls that move data in each decade of latency.
    pub fn decades(&self) -> Vec<f64> {
        let kinds = [CallKind::Read, CallKind::Write, CallKind::Trim].map(|kind| self.call(kind));
        let all = kinds.iter().map(|call| call.lat.count).sum::<u64>().max(1) as f64;
        let share = |decade: usize| {
            let of = |call: &&CallResult| {
                call.decades.get(decade).copied().unwrap_or(0.0) * call.lat.count as f64
            };
            kinds.iter().map(of).sum::<f64>() / all
        };
        (0..=DECADES.len()).map(share).collect()
    }
}

/// The percentage of calls in each of fio's decades of latency, the last one open; from nanoseconds
/// and how many calls took so long.
pub fn decades(bins: impl IntoIterator<Item = (u64, u64)>) -> Vec<f64> {
    let mut counts = [0_u64; DECADES.len() + 1];
    for (nanos, count) in bins {
        counts[DECADES.partition_point(|limit| *limit < nanos)] += count;
    }
    let all = counts.iter().sum::<u64>().max(1) as f64;
    counts.iter().map(|count| 100.0 * *count as f64 / all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_decades_are_those_of_fio() {
        assert_eq!(DECADES[..4], [2, 4, 10, 20]);
        assert_eq!(DECADES[9..12], [1000, 2000, 4000]);
        assert_eq!(DECADES[19..22], [1_000_000, 2_000_000, 4_000_000]);
        assert_eq!(DECADES[29..], [1_000_000_000, 2_000_000_000]);
        assert!(DECADES.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
