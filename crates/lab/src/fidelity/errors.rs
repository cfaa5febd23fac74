//! The simulator's results beside those of the real kernel.

use super::Figure;
use super::seeks;
use super::ties::ties;
use super::told::{common, told};
use crate::figure::{Point, What};
use crate::matrix::Report;
use crate::metrics::commands::{Agreement, Step};
use crate::metrics::{CallKind, Disk};
use crate::plan::Row;
use crate::result::{JobResult, RunResult};
use crate::world::World;
use base::Duration;
use programs::fio::{Engine, Fio, Job};

/// How far the simulator is off for a job under a scheduler, averaged over seeds.
#[derive(Clone, Debug)]
pub struct JobError {
    /// The row of the simulator in the plan.
    pub row: usize,
    /// The job.
    pub job: String,
    /// The kind of its calls that is compared.
    pub call: CallKind,
    /// Whether it makes most of that kind.
    pub is_main: bool,
    /// Bytes per second of all calls.
    pub bandwidth: Option<Pair>,
    /// Median latency of those calls.
    pub p50: Option<Pair>,
    /// 99th percentile of the same.
    pub p99: Option<Pair>,
    /// What schedulers are judged by, if that is another point of these calls.
    pub judged: Option<Pair>,
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

/// How far the commands of a run agree.
#[derive(Clone, Copy, Debug)]
pub struct Agreed {
    /// The row of the simulator in the plan.
    pub row: usize,
    /// The seed.
    pub seed: u64,
    /// Command by command.
    pub agreement: Agreement,
    /// Whether there were equally many commands of each kind and length, in whatever order.
    pub same_sizes: bool,
    /// Commands, bios with flags and task, and commands with those of the bios in them, that are
    /// the same in the same order, and how many there are in the world that has more.
    pub alike: [(usize, usize); 3],
    /// Pairs of commands that are a tie ([`super::ties`]); they count as differences all the same.
    pub ties: usize,
    /// How far the distributions of seek distances are apart, from 0 to 1.
    pub seeks_apart: f64,
}

impl Agreed {
    /// The share of commands (0), bios (1) or commands with what they are for (2) that is the same.
    /// None if there are none, or they were not watched.
    pub fn share(&self, kind: usize) -> Option<f64> {
        let (same, all) = self.alike[kind];
        (all > 0).then(|| same as f64 / all as f64)
    }
}

impl JobError {
    /// A figure of the job.
    pub fn figure(&self, figure: Figure) -> Option<Pair> {
        match figure {
            Figure::Throughput => self.bandwidth,
            Figure::P50 => self.p50,
            Figure::P99 => self.p99,
        }
    }
}

impl Pair {
    /// By how much the simulator is above the kernel, in percent of the kernel.
    pub fn percent(self) -> f64 {
        100.0 * (self.sim - self.linux) / self.linux
    }
}

/// The errors of what each job does most, if the plan has rows in both worlds.
pub fn errors(report: &Report) -> Vec<JobError> {
    errors_by_call(report).into_iter().filter(|it| it.is_main).collect()
}

/// The errors of every kind of call of each job.
pub fn errors_by_call(report: &Report) -> Vec<JobError> {
    let mut all = Vec::new();
    for (index, twin) in twins(report) {
        let (sim, linux) = (report.results_of(index), report.results_of(twin));
        let same_requests =
            sim.iter().zip(linux).all(|(one, other)| requests(&one.disk) == requests(&other.disk));
        let requests = (requests(&sim[0].disk), requests(&linux[0].disk));
        for (job, kind, is_main) in sim[0].jobs.iter().flat_map(calls_of) {
            let pair = |of: &dyn Fn(&JobResult) -> Option<f64>| {
                let mean = |results: &[RunResult]| {
                    let values: Option<Vec<f64>> =
                        results.iter().map(|it| it.job(&job).and_then(of)).collect();
                    let values = values?;
                    Some(values.iter().sum::<f64>() / values.len() as f64)
                };
                Some(Pair { sim: mean(sim)?, linux: mean(linux)? }).filter(|it| it.linux > 0.0)
            };
            let point_of = |it: &JobResult, point: Point| {
                let call = it.call(kind);
                // Nobody submits a sync apart from its end.
                let latency = if kind == CallKind::Sync { &call.lat } else { &call.clat };
                point.of(latency)
            };
            // fio's own figure includes what it takes to look at the clock.
            let looks = if is_synchronous(&report.plan.rows[index], &job) { LOOKS } else { 0.0 };
            let latency = |point: Point| {
                let pair = pair(&|it| point_of(it, point))?;
                Some(Pair { sim: pair.sim + looks, ..pair })
            };
            let judged = judged_point(report, &job, kind).and_then(latency);
            all.push(JobError {
                row: index,
                call: kind,
                is_main,
                judged,
                bandwidth: pair(&|it| Some(it.calls.iter().map(|call| call.bw_bytes).sum()))
                    .filter(|_| is_long_enough(linux, &job)),
                p50: latency(Point::Percentile(5000)),
                p99: latency(Point::Percentile(9900)),
                same_requests,
                requests,
                job,
            });
        }
    }
    all
}

/// How far the commands agree, of every row that is in both worlds and with every seed.
pub fn agreed(report: &Report) -> Vec<Agreed> {
    let mut all = Vec::new();
    for (row, twin) in twins(report) {
        for (sim, linux) in report.results_of(row).iter().zip(report.results_of(twin)) {
            let agreement = Agreement::of(&sim.commands, &linux.commands);
            let same_sizes = sizes(&sim.commands) == sizes(&linux.commands);
            let ours: Vec<_> = sim.commands.iter().map(Step::what).collect();
            let theirs: Vec<_> = linux.commands.iter().map(Step::what).collect();
            let for_whom = (told(&sim.commands, &sim.bios), told(&linux.commands, &linux.bios));
            let alike = [
                in_common(&ours, &theirs),
                in_common(&sim.bios, &linux.bios),
                in_common(&for_whom.0, &for_whom.1),
            ];
            let (here, there) = (&sim.commands, &linux.commands);
            let seeks_apart = seeks::apart(&seeks::distances(here), &seeks::distances(there));
            let (seed, ties) = (sim.seed, ties(here, there));
            all.push(Agreed { row, seed, agreement, same_sizes, alike, ties, seeks_apart });
        }
    }
    all
}

/// How many are the same in the same order, and how many there are.
fn in_common<T: PartialEq>(one: &[T], other: &[T]) -> (usize, usize) {
    (common(one, other), one.len().max(other.len()))
}

/// The rows of the simulator, each with that of the kernel.
fn twins(report: &Report) -> Vec<(usize, usize)> {
    let rows = &report.plan.rows;
    let of_sim = rows.iter().enumerate().filter(|(_, row)| row.world == World::Sim);
    of_sim
        .filter_map(|(index, row)| {
            let is_twin =
                |it: &Row| it.world == World::Linux && it.spec == row.spec && it.axes == row.axes;
            Some((index, rows.iter().position(is_twin)?))
        })
        .collect()
}

/// Kinds and lengths of commands, in order of size.
fn sizes(steps: &[Step]) -> Vec<(u8, u32)> {
    let mut sizes: Vec<(u8, u32)> =
        steps.iter().map(|step| (step.op as u8, step.sectors.0)).collect();
    sizes.sort_unstable();
    sizes
}

/// Measured in the world linux: a call of fio's engine psync that takes no time is one of 256 ns.
const LOOKS: f64 = 256.0;

/// fio states how long a job took in milliseconds: the rate of a shorter one is not known to a
/// percent.
const SHORTEST: Duration = Duration::from_millis(50);

fn is_long_enough(results: &[RunResult], job: &str) -> bool {
    results.iter().filter_map(|it| it.job(job)).all(|it| it.runtime >= SHORTEST)
}

/// Whether a job, or a section of one, waits for each of its calls.
fn is_synchronous(row: &Row, name: &str) -> bool {
    let section = name.rsplit('/').next().unwrap_or(name);
    row.jobs.iter().any(|planned| {
        let Some(fio) = planned.program.downcast::<Fio>() else { return false };
        let is_it = |job: &&Job| job.name == section || planned.job.name == section;
        fio.jobs()
            .iter()
            .find(is_it)
            .is_some_and(|job| matches!(job.engine, Engine::Sync | Engine::Mmap))
    })
}

/// The kinds of call that a job makes, what it mostly does first.
fn calls_of(job: &JobResult) -> Vec<(String, CallKind, bool)> {
    // A mixture may have a few more of the one in one world, and of the other in the other.
    let main = main_kind(job);
    let others = CallKind::ALL.into_iter().filter(|it| *it != main && job.call(*it).count > 0);
    let all = std::iter::once(main).chain(others);
    all.map(|kind| (job.name.clone(), kind, kind == main)).collect()
}

/// The point of these calls by which schedulers are judged, if it is a time that
/// is not always told.
pub fn judged_point(report: &Report, job: &str, kind: CallKind) -> Option<Point> {
    let metric = report.plan.metric.as_ref().filter(|it| it.job.as_deref() == Some(job))?;
    let What::Call(call, point) = metric.what else { return None };
    // A percentage stands in the main table, of both worlds: an error of it would be in per cent.
    let is_told = matches!(point, Point::Percentile(5000 | 9900) | Point::Over(_));
    Some(point).filter(|_| call == kind && !is_told)
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
