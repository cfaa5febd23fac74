//! What the results say: the main figures with their spread over seeds, what differs between
//! schedulers, in words, and how it compares with what was expected.
//!
//! The first job is taken for the one that matters, unless the experiment names a figure: it is
//! judged by the 99th percentile of what it waits for, or by its throughput if it merely copies.
//! The others are shown by throughput.

mod findings;
mod pairs;
pub mod remarks;
pub mod saved;

use crate::experiment::expectation::Expectation;
use crate::figure::{Figure, Layer, Moved, Point, What};
use crate::kernels::Named;
use crate::matrix::Report;
use crate::metrics::{CallKind, Throttling};
use crate::plan::Row;
use crate::result::{CallResult, JobResult, RunResult};
use crate::statistics::Estimate;
use findings::{ALIKE, Findings};
use indexmap::{IndexMap, IndexSet};
pub use pairs::Paired;
use std::collections::{BTreeMap, BTreeSet};

/// What the results say.
#[derive(Clone, Debug)]
pub struct Summary {
    /// A line for each row of the plan.
    pub lines: Vec<Line>,
    /// The jobs in results, the one that matters first.
    pub jobs: Vec<JobColumn>,
    /// The figure by which schedulers are judged.
    pub main: Option<Figure>,
    /// Why, from operations that the best and the worst both have.
    pub pairs: Vec<Paired>,
    /// What differs, in sentences.
    pub findings: Vec<String>,
    /// What was expected, beside what came out.
    pub expected: Vec<Checked>,
}

/// A job in results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobColumn {
    /// Its name.
    pub name: String,
    /// What it mostly does.
    pub main_call: CallKind,
    /// Whether it is judged by throughput rather than by latency.
    pub by_throughput: bool,
}

/// A scheduler at a point of the axes.
#[derive(Clone, Debug)]
pub struct Line {
    /// The index of its row in the plan.
    pub row: usize,
    /// Name and value of each axis.
    pub axes: Vec<(String, String)>,
    /// Every figure that was measured, in a fixed order.
    pub figures: IndexMap<Figure, Estimate>,
    /// The part of the time in which the disk was held, in percent, by reason; the largest first.
    pub held_by_reason: Vec<(&'static str, f64)>,
    /// The same by who waited and for whom, as far as it was a scheduler's decision.
    pub held_for: Vec<(String, f64)>,
    /// Who slept because writeback was throttled, and why; the mean of all runs.
    pub throttling: Throttling,
    /// The part of the throughput of all jobs that each of them has, in percent.
    pub shares: Vec<f64>,
}

/// An expectation, checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What was expected.
    pub expectation: Expectation,
    /// At which point of the axes.
    pub axes: Vec<(String, String)>,
    /// What came out, if it was measured at all.
    pub seen: Option<Estimate>,
    /// Whether it is as expected.
    pub holds: bool,
}

impl Summary {
    /// Sums up results.
    pub fn of(report: &Report) -> Summary {
        let jobs = job_columns(report);
        let asked = report.plan.metric.clone();
        let main = asked.or_else(|| jobs.first().map(JobColumn::main_figure));
        let lines: Vec<Line> = report
            .plan
            .rows
            .iter()
            .enumerate()
            .map(|(index, row)| Line::of(index, row, report.results_of(index), &jobs, &main))
            .collect();
        let expected = check(report, &lines);
        let (pairs, findings) = (Vec::new(), Vec::new());
        let mut summary = Summary { lines, jobs, main, pairs, findings, expected };
        summary.pairs = Findings { report, summary: &summary }.pairs();
        summary.findings = Findings { report, summary: &summary }.all();
        summary
    }
}

impl Report {
    /// The results of a row, one for each seed.
    pub fn results_of(&self, row: usize) -> &[RunResult] {
        let seeds = self.plan.experiment.seeds.len();
        &self.results[row * seeds..(row + 1) * seeds]
    }

    /// Whether every seed led to the same run, because nothing in it is left to chance.
    pub fn is_free_of_chance(&self) -> bool {
        (0..self.plan.rows.len()).all(|row| {
            let results = self.results_of(row);
            results.iter().all(|result| result.fingerprint == results[0].fingerprint)
        })
    }
}

impl JobColumn {
    /// The figure by which schedulers are judged for this job.
    pub fn main_figure(&self) -> Figure {
        let what = match self.by_throughput {
            true => What::Bandwidth(None),
            false => What::Call(self.main_call, Point::Percentile(9900)),
        };
        self.figure(what)
    }

    /// A figure of this job.
    pub fn figure(&self, what: What) -> Figure {
        Figure { job: Some(self.name.clone()), what }
    }

    fn figures(&self) -> Vec<Figure> {
        let mut all = Vec::new();
        for kind in CallKind::ALL {
            let points = [5000, 9900, 9990].map(Point::Percentile);
            for point in points.into_iter().chain([Point::Mean, Point::Max]) {
                all.push(self.figure(What::Call(kind, point)));
            }
        }
        for layer in [Layer::Syscall, Layer::Queue, Layer::Device] {
            for point in [Point::Percentile(9900), Point::Mean] {
                all.push(self.figure(What::Layer(layer, point)));
            }
        }
        let kinds = [None, Some(CallKind::Read), Some(CallKind::Write), Some(CallKind::Trim)];
        all.extend(kinds.map(|kind| self.figure(What::Bandwidth(kind))));
        let told = [What::Throughput, What::Pass(Point::Mean), What::Pass(Point::Max)];
        let commits = [Point::Percentile(5000), Point::Percentile(9900), Point::Mean, Point::Max];
        all.extend(commits.map(|point| self.figure(What::Commit(point))));
        all.extend(
            [What::Iops(None), What::Elapsed].into_iter().chain(told).map(|it| self.figure(it)),
        );
        all
    }
}

impl Line {
    fn of(
        index: usize,
        row: &Row,
        results: &[RunResult],
        jobs: &[JobColumn],
        main: &Option<Figure>,
    ) -> Line {
        let whole = [What::Elapsed, What::Busy, What::Held, What::Sequential];
        let whole = whole.into_iter().chain([What::Written, What::AsyncWrites]);
        let moved = [Moved::Both, Moved::Read, Moved::Written].map(What::Moved);
        let whole = whole.chain(moved).map(|what| Figure { job: None, what });
        let mut figures: IndexSet<Figure> =
            jobs.iter().flat_map(JobColumn::figures).chain(whole).collect();
        // Of what is judged all points that are shown.
        let points = [5000, 9900, 9990].map(Point::Percentile).into_iter().chain([Point::Max]);
        let judged = main.iter().flat_map(|it| {
            let what = points.clone().map(|point| it.what.at(point)).chain([it.what]);
            what.map(|what| Figure { what, ..it.clone() }).collect::<Vec<_>>()
        });
        figures.extend(judged);
        let estimated = figures.into_iter().filter_map(|figure| {
            let estimate = estimate(&figure, results)?;
            Some((figure, estimate))
        });
        let mut held: BTreeMap<&'static str, f64> = BTreeMap::new();
        let mut pairs: BTreeMap<String, f64> = BTreeMap::new();
        for result in results {
            let elapsed = result.elapsed.as_nanos().max(1) as f64 * results.len() as f64;
            for (reason, time) in &result.disk.held_by_reason {
                *held.entry(reason).or_default() += 100.0 * time.as_nanos() as f64 / elapsed;
            }
            for it in &result.disk.held_for {
                let Some(waited_for) = &it.waited_for else { continue };
                let pair = format!("{} waits for {waited_for}", it.waiting);
                *pairs.entry(pair).or_default() += 100.0 * it.time.as_nanos() as f64 / elapsed;
            }
        }
        let mut held_by_reason: Vec<_> = held.into_iter().collect();
        held_by_reason.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut held_for: Vec<_> = pairs.into_iter().collect();
        held_for.sort_by(|a, b| b.1.total_cmp(&a.1));
        let figures = estimated.collect();
        let throttling = Throttling::mean(results.iter().map(|it| &it.throttling));
        let axes = row.axes.clone();
        let mut line = Line {
            row: index,
            axes,
            figures,
            held_by_reason,
            held_for,
            throttling,
            shares: Vec::new(),
        };
        line.shares = line.shares_of(jobs);
        line
    }

    fn shares_of(&self, jobs: &[JobColumn]) -> Vec<f64> {
        let bandwidth = |job: &JobColumn| {
            self.get(&job.figure(What::Bandwidth(None))).map_or(0.0, |it| it.mean)
        };
        let each: Vec<f64> = jobs.iter().map(bandwidth).collect();
        let all: f64 = each.iter().sum();
        each.into_iter().map(|it| if all > 0.0 { 100.0 * it / all } else { 0.0 }).collect()
    }

    /// A figure, if it was measured.
    pub fn get(&self, figure: &Figure) -> Option<&Estimate> {
        self.figures.get(figure)
    }
}

/// The estimate of a figure over runs; none unless all of them have it.
fn estimate(figure: &Figure, results: &[RunResult]) -> Option<Estimate> {
    let values: Option<Vec<f64>> = results.iter().map(|result| figure.value(result)).collect();
    let at_least = results.iter().any(|result| figure.is_cut_off(result));
    Some(Estimate { at_least, ..Estimate::of(&values?)? })
}

/// The jobs in the order of the first result that has them.
fn job_columns(report: &Report) -> Vec<JobColumn> {
    let mut columns: Vec<JobColumn> = Vec::new();
    let (mut names, copying) = (BTreeSet::new(), copying(report));
    for job in report.results.iter().flat_map(|result| &result.jobs) {
        if !names.insert(&job.name) {
            continue;
        }
        let sum = |of: &dyn Fn(&CallResult) -> f64| {
            let all = report.results.iter().filter_map(|result| result.job(&job.name));
            let all: Vec<&JobResult> = all.collect();
            CallKind::ALL.map(|kind| all.iter().map(|job| of(job.call(kind))).sum::<f64>())
        };
        let counts = sum(&|call| (call.count + call.unfinished) as f64);
        let waits = sum(&|call| call.lat.mean.as_nanos() as f64 * call.lat.count as f64);
        let main_call = main_call(counts, waits);
        columns.push(JobColumn {
            name: job.name.clone(),
            main_call,
            by_throughput: copying.contains(job.name.as_str()),
        });
    }
    columns
}

/// What a job waits for: by kind, how many calls it makes and how long it waits in all of them.
fn main_call(
    [reads, writes, syncs, trims]: [f64; 4],
    [reading, writing, syncing, trimming]: [f64; 4],
) -> CallKind {
    // Somebody waits for a read more than for a write that a cache takes in. // assumed
    match () {
        () if syncs * 10.0 > reads + writes + trims => CallKind::Sync,
        () if syncing > reading + writing + trimming => CallKind::Sync,
        () if reads * 3.0 >= writes + trims => CallKind::Read,
        () if writes >= trims => CallKind::Write,
        () => CallKind::Trim,
    }
}

/// The names of jobs that merely move data.
fn copying(report: &Report) -> BTreeSet<&str> {
    let planned = report.plan.rows.iter().flat_map(|row| &row.jobs);
    planned.filter(|it| it.copies()).map(|it| it.job.name.as_str()).collect()
}

/// Sets what was expected beside what came out.
fn check(report: &Report, lines: &[Line]) -> Vec<Checked> {
    let mut all = Vec::new();
    let experiment = &report.plan.experiment;
    let (known, kernels) = (&experiment.known, experiment.kernels());
    if experiment.expect.is_empty() {
        return all;
    }
    // Of a plan that was made every kernel is known.
    let Ok(kernel) = experiment.named_kernel() else { return all };
    for expectation in &experiment.expect {
        let (place, asked) = (&expectation.place, &expectation.scheduler);
        let parse = |pinned: Option<&Named>| {
            crate::SchedulerSpec::parse_among(known, kernels, asked, place, pinned)
        };
        for line in lines {
            let row = &report.plan.rows[line.row];
            let at_point = expectation.axes.iter().all(|it| line.axes.contains(it));
            let is_varied = line.axes.iter().any(|(name, _)| name == "kernel");
            // Of a scheduler that names no kernel it is the row's, where kernels are varied.
            let spec = match is_varied {
                true => parse(Some(&row.spec.named_kernel())),
                false => parse(kernel.as_ref()),
            };
            let is_it = |spec: crate::SchedulerSpec| row.spec == spec.with_hz(row.spec.kernel.hz);
            if !at_point || !spec.is_ok_and(is_it) {
                continue;
            }
            let seen = estimate(&expectation.figure, report.results_of(line.row));
            let holds = seen.is_some_and(|seen| expectation.bound.holds(seen.mean));
            let (expectation, axes) = (expectation.clone(), line.axes.clone());
            all.push(Checked { expectation, axes, seen, holds });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_judged_by_what_it_waits_for() {
        // Reads, writes, syncs, trims: how many, and how long.
        let rare = main_call([0.0, 320.0, 10.0, 0.0], [0.0, 1e6, 9e9, 0.0]);
        assert_eq!(rare, CallKind::Sync);
        assert_eq!(main_call([0.0, 320.0, 10.0, 0.0], [0.0, 9e9, 1e6, 0.0]), CallKind::Write);
        assert_eq!(main_call([100.0, 200.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]), CallKind::Read);
    }
}
