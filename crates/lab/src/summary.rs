//! What the results say: the main figures with their spread over seeds, what differs between
//! schedulers, in words, and how it compares with what was expected.
//!
//! The first job is taken for the one that matters: it is judged by the 99th percentile of its
//! main calls, or by its throughput if it merely copies. The others are shown by throughput.

use crate::experiment::expectation::Expectation;
use crate::figure::{Figure, Layer, Point, What};
use crate::matrix::Report;
use crate::metrics::{CallKind, disk};
use crate::plan::Row;
use crate::quantity::{Kind, human};
use crate::result::{JobResult, RunResult};
use crate::statistics::Estimate;
use std::collections::BTreeMap;

/// Two means nearer than this part of each other are called alike: two bins of a histogram, which
/// are 1/64 of their value wide.
const ALIKE: f64 = 0.032;
/// Who waits for whom is told of so many.
const MOST_PAIRS: usize = 3;
/// A disk held for less of the time is not worth a word (assumed).
const HELD_WORTH_A_WORD: f64 = 1.0;

/// What the results say.
#[derive(Clone, Debug)]
pub struct Summary {
    /// A line for each row of the plan.
    pub lines: Vec<Line>,
    /// The jobs in results, the one that matters first.
    pub jobs: Vec<JobColumn>,
    /// The figure by which schedulers are judged.
    pub main: Option<Figure>,
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
    pub figures: Vec<(Figure, Estimate)>,
    /// The part of the time in which the disk was held, in percent, by reason; the largest first.
    pub held_by_reason: Vec<(&'static str, f64)>,
    /// The same by who waited and for whom, as far as it was a scheduler's decision.
    pub held_for: Vec<(String, f64)>,
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
        let lines: Vec<Line> = report
            .plan
            .rows
            .iter()
            .enumerate()
            .map(|(index, row)| Line::of(index, row, report.results_of(index), &jobs))
            .collect();
        let main = jobs.first().map(JobColumn::main_figure);
        let expected = check(report, &lines);
        let mut summary = Summary { lines, jobs, main, findings: Vec::new(), expected };
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
        all.extend(
            [What::Bandwidth(None), What::Iops(None), What::Elapsed].map(|it| self.figure(it)),
        );
        all
    }
}

impl Line {
    fn of(index: usize, row: &Row, results: &[RunResult], jobs: &[JobColumn]) -> Line {
        let whole = [What::Elapsed, What::Busy, What::Held].map(|what| Figure { job: None, what });
        let figures = jobs.iter().flat_map(JobColumn::figures).chain(whole);
        let estimated = figures.filter_map(|figure| {
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
        let axes = row.axes.clone();
        let mut line =
            Line { row: index, axes, figures, held_by_reason, held_for, shares: Vec::new() };
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
        self.figures.iter().find(|(it, _)| it == figure).map(|(_, estimate)| estimate)
    }
}

/// The estimate of a figure over runs; none unless all of them have it.
fn estimate(figure: &Figure, results: &[RunResult]) -> Option<Estimate> {
    let values: Option<Vec<f64>> = results.iter().map(|result| figure.value(result)).collect();
    Estimate::of(&values?)
}

/// The jobs in the order of the first result that has them.
fn job_columns(report: &Report) -> Vec<JobColumn> {
    let mut columns: Vec<JobColumn> = Vec::new();
    for job in report.results.iter().flat_map(|result| &result.jobs) {
        if columns.iter().any(|it| it.name == job.name) {
            continue;
        }
        let counts = |kind: CallKind| -> u64 {
            let all = report.results.iter().filter_map(|result| result.job(&job.name));
            all.map(|job| job.call(kind).count + job.call(kind).unfinished).sum()
        };
        let [reads, writes, trims, syncs] =
            [CallKind::Read, CallKind::Write, CallKind::Trim, CallKind::Sync].map(counts);
        // Somebody waits for a read more than for a write that a cache takes in. // assumed
        let main_call = match () {
            () if syncs * 10 > reads + writes + trims => CallKind::Sync,
            () if reads * 3 >= writes + trims => CallKind::Read,
            () if writes >= trims => CallKind::Write,
            () => CallKind::Trim,
        };
        columns.push(JobColumn {
            name: job.name.clone(),
            main_call,
            by_throughput: copies(report, job),
        });
    }
    columns
}

fn copies(report: &Report, job: &JobResult) -> bool {
    let planned = report.plan.rows.iter().flat_map(|row| &row.jobs);
    planned.into_iter().any(|it| it.job.name == job.name && it.copies())
}

/// Sets what was expected beside what came out.
fn check(report: &Report, lines: &[Line]) -> Vec<Checked> {
    let mut all = Vec::new();
    for expectation in &report.plan.experiment.expect {
        let place = &expectation.place;
        let kernel = report.plan.experiment.kernel;
        let known = &report.plan.experiment.known;
        let asked = &expectation.scheduler;
        let spec = crate::SchedulerSpec::parse_among(known, asked, place, kernel);
        let Ok(spec) = spec else { continue };
        for line in lines {
            let row = &report.plan.rows[line.row];
            let at_point = expectation.axes.iter().all(|it| line.axes.contains(it));
            if row.spec != spec.with_hz(row.spec.kernel.hz) || !at_point {
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

/// Puts what differs into words.
struct Findings<'a> {
    report: &'a Report,
    summary: &'a Summary,
}

impl Findings<'_> {
    fn all(&self) -> Vec<String> {
        let mut points: Vec<&Vec<(String, String)>> = Vec::new();
        for line in &self.summary.lines {
            if !points.contains(&&line.axes) {
                points.push(&line.axes);
            }
        }
        let mut findings = Vec::new();
        for point in points {
            let at: Vec<String> =
                point.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let prefix = if at.is_empty() { String::new() } else { format!("{}: ", at.join(" ")) };
            let lines: Vec<&Line> = self.lines().filter(|line| line.axes == *point).collect();
            let sentences = self.at_point(&lines);
            if !sentences.is_empty() {
                findings.push(format!("{prefix}{}", sentences.join(" ")));
            }
        }
        findings.extend(self.held());
        findings.extend(self.weights());
        findings
    }

    /// The lines of the first world: another one is there to judge it.
    fn lines(&self) -> impl Iterator<Item = &Line> {
        let rows = &self.report.plan.rows;
        self.summary.lines.iter().filter(|line| rows[line.row].world == rows[0].world)
    }

    /// Which scheduler is best for the main figure, why, and what it costs the others.
    fn at_point(&self, lines: &[&Line]) -> Vec<String> {
        let Some(main) = &self.summary.main else { return Vec::new() };
        let sign = if main.what.less_is_better() { 1.0 } else { -1.0 };
        let mut ranked: Vec<(&Line, &Estimate)> =
            lines.iter().filter_map(|line| Some((*line, line.get(main)?))).collect();
        ranked.sort_by(|a, b| (sign * a.1.mean).total_cmp(&(sign * b.1.mean)));
        let [(best, value), rest @ ..] = ranked.as_slice() else { return Vec::new() };
        let [.., (worst, worst_value)] = rest else { return Vec::new() };
        let alike: Vec<String> = rest
            .iter()
            .take_while(|(line, _)| self.are_alike(main, best, line))
            .map(|(line, _)| self.name(line))
            .collect();
        let name = figure_name(main);
        if alike.len() == rest.len() {
            return self.why_alike(&name, main, lines);
        }
        let (best_name, worst_name) = (self.name(best), self.name(worst));
        let with = if alike.is_empty() {
            String::new()
        } else {
            format!(", and alike {}", alike.join(", "))
        };
        let kind = main.what.kind();
        let mut sentences = vec![format!(
            "Best for {name}: {best_name}{with} ({}; {worst_name} {}).",
            human(value.mean, kind),
            human(worst_value.mean, kind)
        )];
        sentences.extend(self.why(best, worst));
        sentences.extend(self.price(best, lines));
        sentences
    }

    /// Why it makes no difference which scheduler is chosen.
    fn why_alike(&self, name: &str, main: &Figure, lines: &[&Line]) -> Vec<String> {
        let kind = main.what.kind();
        let range = |figure: &Figure| {
            let means = lines.iter().filter_map(|line| Some(line.get(figure)?.mean));
            let all: Vec<f64> = means.collect();
            let least = all.iter().copied().reduce(f64::min)?;
            Some((least, all.into_iter().reduce(f64::max)?))
        };
        let Some((least, most)) = range(main) else { return Vec::new() };
        let (least, most) = (human(least, kind), human(most, kind));
        let values = if least == most { least } else { format!("{least} to {most}") };
        let mut sentences =
            vec![format!("No scheduler is measurably better for {name} ({values}).")];
        let layer = |layer| {
            let job = self.summary.jobs.first()?;
            range(&job.figure(What::Layer(layer, Point::Mean)))
        };
        if let (Some((_, waited)), Some((served, _))) = (layer(Layer::Queue), layer(Layer::Device))
            && waited < served
        {
            sentences.push(format!(
                "They have little to choose from: on average requests wait at most {} in the \
                 queue and are served in {} or more.",
                human(waited, Kind::Time),
                human(served, Kind::Time)
            ));
        }
        sentences
    }

    /// In which layer the difference arises.
    fn why(&self, best: &Line, worst: &Line) -> Option<String> {
        let job = self.summary.jobs.first()?;
        let mean = |line: &Line, layer: Layer| {
            Some(line.get(&job.figure(What::Layer(layer, Point::Mean)))?.mean)
        };
        let queued = (mean(best, Layer::Queue)?, mean(worst, Layer::Queue)?);
        let served = (mean(best, Layer::Device)?, mean(worst, Layer::Device)?);
        let in_queue = (queued.0 - queued.1).abs() > (served.0 - served.1).abs();
        let place = if in_queue { "in the queue, before the device" } else { "in the device" };
        let time = |value: f64| human(value, Kind::Time);
        Some(format!(
            "Why: the difference arises {place}: on average its requests wait {} and are served \
             in {} under {}, {} and {} under {}.",
            time(queued.0),
            time(served.0),
            self.name(best),
            time(queued.1),
            time(served.1),
            self.name(worst)
        ))
    }

    /// What the best for the first job does to the throughput of the others.
    fn price(&self, best: &Line, lines: &[&Line]) -> Vec<String> {
        let mut prices = Vec::new();
        for job in self.summary.jobs.iter().skip(1) {
            let figure = job.figure(What::Bandwidth(None));
            let Some(ours) = best.get(&figure) else { continue };
            let others = lines.iter().filter_map(|line| Some((*line, line.get(&figure)?)));
            let Some((most, theirs)) = others.max_by(|a, b| a.1.mean.total_cmp(&b.1.mean)) else {
                continue;
            };
            if ours.mean < theirs.mean * (1.0 - ALIKE) && !self.are_alike(&figure, best, most) {
                let less = 100.0 * (1.0 - ours.mean / theirs.mean);
                prices.push(format!(
                    "It costs {} {less:.0} % of its throughput ({}; {} under {}).",
                    job.name,
                    human(ours.mean, Kind::Rate),
                    human(theirs.mean, Kind::Rate),
                    self.name(most)
                ));
            }
        }
        prices
    }

    fn held(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for line in self.lines() {
            let total: f64 = line.held_by_reason.iter().map(|(_, share)| share).sum();
            let Some((reason, _)) = line.held_by_reason.first() else { continue };
            // That processors take their time is no decision of anybody.
            let is_decision = *reason != disk::HOST;
            if is_decision && total >= HELD_WORTH_A_WORD {
                findings.push(format!(
                    "Under {} the disk stands idle with work queued {} of the time, mostly \
                     because of: {reason}{}.",
                    self.name(line),
                    human(total, Kind::Percent),
                    who_waits(line)
                ));
            }
        }
        findings
    }

    /// Which schedulers take no notice of weights.
    fn weights(&self) -> Option<String> {
        let rows = &self.report.plan.rows;
        let weights: Vec<String> = rows
            .first()?
            .cgroups
            .iter()
            .filter_map(|it| it.weight)
            .map(|it| it.to_string())
            .collect();
        let ignores = |row: &&Row| !(row.blkio && row.spec.honours_weights());
        let mut names: Vec<&str> = rows.iter().filter(ignores).map(|row| row.spec.name).collect();
        names.dedup();
        let names = names.join(", ");
        (!weights.is_empty() && !names.is_empty())
            .then(|| format!("Weights: {names} do not honour {}.", weights.join(":")))
    }

    /// Whether a figure is the same for two lines as far as the seeds tell.
    fn are_alike(&self, figure: &Figure, one: &Line, other: &Line) -> bool {
        let values = |line: &Line| -> Option<Vec<f64>> {
            self.report.results_of(line.row).iter().map(|result| figure.value(result)).collect()
        };
        let (Some(ours), Some(theirs)) = (values(one), values(other)) else { return true };
        let Some(difference) = Estimate::of_difference(&ours, &theirs) else { return true };
        let scale = Estimate::of(&ours).map_or(0.0, |it| it.mean.abs());
        difference.mean.abs() < ALIKE * scale || !difference.differs_from_zero()
    }

    fn name(&self, line: &Line) -> String {
        self.report.plan.row_name(line.row)
    }
}

/// Who waits for whom, the most important ones.
fn who_waits(line: &Line) -> String {
    let pairs = line.held_for.iter().filter(|(_, share)| *share >= HELD_WORTH_A_WORD);
    let pairs: Vec<String> = pairs
        .take(MOST_PAIRS)
        .map(|(pair, share)| format!("{pair}: {}", human(*share, Kind::Percent)))
        .collect();
    if pairs.is_empty() { String::new() } else { format!(" ({})", pairs.join(", ")) }
}

/// `db read p99`.
fn figure_name(figure: &Figure) -> String {
    let what = figure.what.to_string().replace('_', " ");
    let what = if what == "bw" { "throughput".to_string() } else { what };
    figure.job.as_ref().map_or(what.clone(), |job| format!("{job} {what}"))
}
