//! The simulator's results beside those of the real kernel.

use crate::linux_world::World;
use crate::matrix::{JobResult, Report, RunResult};
use crate::metrics::{CallKind, Disk};

/// How far the simulator is off for a job under a scheduler, averaged over seeds.
#[derive(Clone, Debug)]
pub struct JobError {
    /// The row of the simulator in the plan.
    pub row: usize,
    /// The job.
    pub job: String,
    /// Bytes per second of all calls.
    pub bandwidth: Option<Pair>,
    /// Median latency of the calls that it makes most.
    pub p50: Option<Pair>,
    /// 99th percentile of the same.
    pub p99: Option<Pair>,
    /// Whether the disk was given equally many requests, equally large, with every seed.
    pub same_requests: bool,
    /// Requests and bytes of the disk: simulator and kernel, with the first seed.
    pub requests: ((u64, u64), (u64, u64)),
}

/// A figure in both worlds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// In the simulator.
    pub sim: f64,
    /// On the kernel.
    pub linux: f64,
}

impl Pair {
    /// By how much the simulator is above the kernel, in percent of the kernel.
    pub fn percent(self) -> f64 {
        100.0 * (self.sim - self.linux) / self.linux
    }
}

/// All errors, if the plan has rows in both worlds.
pub fn errors(report: &Report) -> Vec<JobError> {
    let rows = &report.plan.rows;
    let mut all = Vec::new();
    for (index, row) in rows.iter().enumerate().filter(|(_, row)| row.world == World::Sim) {
        let twin = rows
            .iter()
            .position(|it| it.world == World::Linux && it.spec == row.spec && it.axes == row.axes);
        let Some(twin) = twin else { continue };
        let (sim, linux) = (report.results_of(index), report.results_of(twin));
        let same_requests =
            sim.iter().zip(linux).all(|(one, other)| requests(&one.disk) == requests(&other.disk));
        let requests = (requests(&sim[0].disk), requests(&linux[0].disk));
        for job in &sim[0].jobs {
            // A mixture may have a few more of the one in one world, and of the other in the other.
            let kind = main_kind(job);
            let job = job.name.clone();
            let pair = |of: &dyn Fn(&JobResult) -> Option<f64>| {
                let mean = |results: &[RunResult]| {
                    let values: Option<Vec<f64>> =
                        results.iter().map(|it| it.job(&job).and_then(of)).collect();
                    let values = values?;
                    Some(values.iter().sum::<f64>() / values.len() as f64)
                };
                Some(Pair { sim: mean(sim)?, linux: mean(linux)? }).filter(|it| it.linux > 0.0)
            };
            let percentile = |it: &JobResult, point: u64| {
                let latency = &it.call(kind).clat;
                latency.percentile(point).map(|it| it.as_nanos() as f64)
            };
            all.push(JobError {
                row: index,
                bandwidth: pair(&|it| Some(it.calls.iter().map(|call| call.bw_bytes).sum())),
                p50: pair(&|it| percentile(it, 5000)),
                p99: pair(&|it| percentile(it, 9900)),
                same_requests,
                requests,
                job,
            });
        }
    }
    all
}

/// What a job mostly does.
fn main_kind(job: &JobResult) -> CallKind {
    let kinds = [CallKind::Trim, CallKind::Write, CallKind::Read];
    kinds.into_iter().max_by_key(|kind| job.call(*kind).count).expect("there are three")
}

/// How many requests there were, and what they transferred.
fn requests(disk: &Disk) -> (u64, u64) {
    let count = disk.reads + disk.writes + disk.flushes + disk.discards;
    (count, disk.read_bytes.0 + disk.write_bytes.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_part_of_what_the_kernel_does() {
        assert_eq!(Pair { sim: 99.0, linux: 100.0 }.percent(), -1.0);
    }
}
