//! Results for a terminal: the first screen.

use crate::grid::{Grid, wrap};
use lab::World;
use lab::catalogue;
use lab::experiment::Experiment;
use lab::fidelity::errors::{self, Pair};
use lab::figure::{Figure, Layer, Point, What};
use lab::matrix::Report;
use lab::quantity::{Kind, digits, human, human_spread};
use lab::summary::{JobColumn, Line, Summary};
use std::time::Duration;

/// Lines are shorter than this.
const WIDTH: usize = 99;
/// More jobs than this are not shown one by one.
const MOST_JOBS: usize = 4;
/// More messages of programs than this are only counted.
const MOST_MESSAGES: usize = 8;
/// What stands where there is nothing to say.
const NOTHING: &str = "–";

/// Everything that is said about a comparison.
pub fn compare(report: &Report, summary: &Summary, took: Duration) -> String {
    let mut out = String::new();
    let experiment = &report.plan.experiment;
    if !experiment.title.is_empty() {
        out.push_str(&wrap(&experiment.title, WIDTH, ""));
    }
    if !experiment.story.is_empty() {
        out.push_str(&wrap(&experiment.story, WIDTH, ""));
        out.push('\n');
    }
    out.push_str(&wrap(&header(report, took), WIDTH, ""));
    out.push('\n');
    out.push_str(&main_table(report, summary));
    let layers = layer_table(report, summary);
    if !layers.is_empty() {
        out.push('\n');
        out.push_str(&layers);
    }
    let errors = error_table(report);
    if !errors.is_empty() {
        out.push('\n');
        out.push_str(&errors);
    }
    if !summary.expected.is_empty() {
        out.push('\n');
        out.push_str(&expected_table(summary));
    }
    let findings = &summary.findings;
    let all = findings.iter().cloned().chain(report.plan.notes()).chain(said(report));
    let all: Vec<String> = all.collect();
    if !all.is_empty() {
        out.push('\n');
    }
    all.iter().for_each(|finding| out.push_str(&wrap(finding, WIDTH, "  ")));
    out
}

/// A table of the catalogue.
pub fn table(table: &catalogue::Table) -> String {
    let mut grid = Grid::new(&table.headings);
    table.rows.iter().for_each(|row| grid.row(row.clone()));
    grid.render()
}

/// A table of experiments.
pub fn experiments(found: &[(String, Experiment)]) -> String {
    let mut grid = Grid::new(&["experiment", "title"]);
    for (path, experiment) in found {
        grid.row(vec![path.clone(), experiment.title.clone()]);
    }
    grid.render()
}

/// World, kernel, model, host, seeds and time.
fn header(report: &Report, took: Duration) -> String {
    let rows = &report.plan.rows;
    let each = |name: &str, plural: &str, of: &dyn Fn(usize) -> String| {
        let mut all: Vec<String> = Vec::new();
        for value in (0..rows.len()).map(of) {
            if !all.contains(&value) {
                all.push(value);
            }
        }
        let word = if all.len() == 1 { name } else { plural };
        format!("{word} {}", all.join(", "))
    };
    // A kernel that was built has one tick of several.
    let built = rows.iter().any(|row| row.world == World::Linux);
    let experiment = &report.plan.experiment;
    let says_tick = experiment.hz.is_some() || experiment.axes.iter().any(|it| it.name == "hz");
    let tick = match built || says_tick {
        true => each(" HZ", " HZ", &|row| rows[row].spec.kernel.hz.get().to_string()),
        false => String::new(),
    };
    let seeds = &report.plan.experiment.seeds;
    let seeds = match seeds.as_slice() {
        [only] => format!("seed {only}"),
        several if report.is_free_of_chance() => {
            format!("{} seeds, all the same", several.len())
        }
        several => format!("{} seeds", several.len()),
    };
    [
        each("world", "worlds", &|row| rows[row].world.to_string()),
        each("kernel", "kernels", &|row| rows[row].spec.kernel.version.to_string()) + &tick,
        each("model", "models", &|row| rows[row].model.name().to_string()),
        each("host", "hosts", &|row| rows[row].host.name.clone()),
        seeds,
        format!("{:.1} s", took.as_secs_f64()),
    ]
    .join(" · ")
}

/// What of the main table is shown, from everything to the least.
#[derive(Clone, Copy)]
struct Detail {
    spread_of_all: bool,
    shares: bool,
}

/// Latency and throughput by scheduler, as much of it as fits the width.
fn main_table(report: &Report, summary: &Summary) -> String {
    let details = [(true, true), (false, true), (false, false)]
        .map(|(spread_of_all, shares)| Detail { spread_of_all, shares });
    let grids = details.map(|detail| MainTable { report, summary, detail }.grid());
    let fits = grids.iter().find(|grid| grid.width() <= WIDTH);
    fits.unwrap_or(&grids[2]).render()
}

struct MainTable<'a> {
    report: &'a Report,
    summary: &'a Summary,
    detail: Detail,
}

impl MainTable<'_> {
    fn grid(&self) -> Grid {
        let jobs = &self.summary.jobs;
        let mut grid = Grid::default();
        for axis in &self.report.plan.experiment.axes {
            grid.column("", &axis.name);
        }
        grid.column("", "scheduler");
        if let Some(first) = jobs.first() {
            grid.column(&format!("{} {}", first.name, first.main_call.name()), "p50");
            grid.column("", "p99");
            grid.column("", "MB/s");
        }
        for job in self.others() {
            grid.column(&job.name, "MB/s");
        }
        if self.shows_shares() {
            let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
            grid.column("share", &names.join(":"));
        }
        grid.column("disk held idle", "with work queued, because");
        self.summary.lines.iter().for_each(|line| grid.row(self.row(line)));
        grid
    }

    fn others(&self) -> &[JobColumn] {
        let jobs = &self.summary.jobs;
        let end = jobs.len().min(MOST_JOBS);
        &jobs[end.min(1)..end]
    }

    fn shows_shares(&self) -> bool {
        self.detail.shares && (2..=MOST_JOBS).contains(&self.summary.jobs.len())
    }

    fn row(&self, line: &Line) -> Vec<String> {
        let mut cells: Vec<String> = line.axes.iter().map(|(_, value)| value.clone()).collect();
        cells.push(self.report.plan.row_name(line.row));
        if let Some(first) = self.summary.jobs.first() {
            for (point, is_main) in [(5000, false), (9900, true)] {
                let what = What::Call(first.main_call, Point::Percentile(point));
                cells.push(self.cell(line, &first.figure(what), is_main));
            }
            cells.push(megabytes(line, first));
        }
        cells.extend(self.others().iter().map(|job| megabytes(line, job)));
        if self.shows_shares() {
            let shares: Vec<String> = line.shares.iter().map(|it| format!("{it:.0}")).collect();
            cells.push(shares.join(":"));
        }
        cells.push(held(line));
        cells
    }

    fn cell(&self, line: &Line, figure: &Figure, is_main: bool) -> String {
        let Some(estimate) = line.get(figure) else { return NOTHING.to_string() };
        let spread = is_main || self.detail.spread_of_all;
        let half_width = if spread { estimate.half_width } else { 0.0 };
        human_spread(estimate.mean, half_width, figure.what.kind())
    }
}

fn megabytes(line: &Line, job: &JobColumn) -> String {
    let bandwidth = line.get(&job.figure(What::Bandwidth(None)));
    bandwidth.map_or(NOTHING.to_string(), |it| digits(it.mean / 1e6))
}

fn held(line: &Line) -> String {
    let total = line.get(&Figure { job: None, what: What::Held }).map_or(0.0, |it| it.mean);
    match line.held_by_reason.first() {
        // Less than a printed hundredth is nothing.
        Some((reason, _)) if total >= 0.005 => {
            format!("{}, {reason}", human(total, Kind::Percent))
        }
        _ => NOTHING.to_string(),
    }
}

/// Where the time of each job's requests goes.
fn layer_table(report: &Report, summary: &Summary) -> String {
    let mut grid = Grid::default();
    for axis in &report.plan.experiment.axes {
        grid.column("", &axis.name);
    }
    grid.column("", "scheduler");
    grid.column("", "job");
    let layers = [
        (Layer::Syscall, "system call"),
        (Layer::Queue, "queue (Q2D)"),
        (Layer::Device, "device (D2C)"),
    ];
    for (_, name) in layers {
        grid.column(name, "mean");
        grid.column("", "p99");
    }
    let jobs = &summary.jobs[..summary.jobs.len().min(MOST_JOBS)];
    for line in &summary.lines {
        for job in jobs {
            let mut cells: Vec<String> = line.axes.iter().map(|(_, it)| it.clone()).collect();
            cells.push(report.plan.row_name(line.row));
            cells.push(job.name.clone());
            for (layer, _) in layers {
                for point in [Point::Mean, Point::Percentile(9900)] {
                    let figure = job.figure(What::Layer(layer, point));
                    let time = line.get(&figure).map(|it| human(it.mean, Kind::Time));
                    cells.push(time.unwrap_or(NOTHING.to_string()));
                }
            }
            grid.row(cells);
        }
    }
    if jobs.is_empty() { String::new() } else { grid.render() }
}

/// How far the simulator is off where the kernel did the same.
fn error_table(report: &Report) -> String {
    let errors = errors::errors(report);
    let mut grid = Grid::default();
    for axis in &report.plan.experiment.axes {
        grid.column("", &axis.name);
    }
    for name in ["scheduler", "job"] {
        grid.column("", name);
    }
    grid.column("sim against linux", "MB/s");
    for name in ["p50", "p99", "requests"] {
        grid.column("", name);
    }
    let percent = |pair: Option<Pair>| {
        pair.map_or(NOTHING.to_string(), |it| format!("{:+.2} %", it.percent()))
    };
    for error in &errors {
        let row = &report.plan.rows[error.row];
        let mut cells: Vec<String> = row.axes.iter().map(|(_, it)| it.clone()).collect();
        cells.extend([row.spec.short(), error.job.clone()]);
        cells.extend([error.bandwidth, error.p50, error.p99].map(percent));
        let ((ours, _), (theirs, _)) = error.requests;
        cells.push(match error.same_requests {
            true => format!("{ours}, the same"),
            false => format!("{ours}, not {theirs}"),
        });
        grid.row(cells);
    }
    if errors.is_empty() { String::new() } else { grid.render() }
}

/// What was expected beside what came out.
fn expected_table(summary: &Summary) -> String {
    let mut grid = Grid::new(&["expected of", "figure", "expected", "here", ""]);
    for checked in &summary.expected {
        let expectation = &checked.expectation;
        let axes = checked.axes.iter().map(|(name, value)| format!(" {name}={value}"));
        let kind = expectation.figure.what.kind();
        let seen = checked.seen.map(|it| human_spread(it.mean, it.half_width, kind));
        grid.row(vec![
            format!("{}{}", expectation.scheduler, axes.collect::<String>()),
            expectation.figure.to_string(),
            expectation.text.clone(),
            seen.unwrap_or(NOTHING.to_string()),
            if checked.holds { "as expected" } else { "NOT as expected" }.to_string(),
        ]);
    }
    grid.render()
}

/// What programs said, each thing once, and how they failed.
fn said(report: &Report) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut add = |line: String| {
        if !all.contains(&line) {
            all.push(line);
        }
    };
    let failed = report.results.iter().flat_map(|result| &result.exits).filter(|it| it.failed);
    for exit in failed {
        add(format!("{} {}: {}", exit.job, exit.how, exit.messages.join("; ")));
    }
    let first = report.results.iter().take(1).flat_map(|result| &result.exits);
    for exit in first.filter(|exit| !exit.failed) {
        let notes = exit.messages.iter().filter(|message| !is_closing_line(message));
        notes.for_each(|message| add(format!("{}: {message}", exit.job)));
    }
    let more = all.len().saturating_sub(MOST_MESSAGES);
    all.truncate(MOST_MESSAGES);
    if more > 0 {
        all.push(format!("Programs said {more} more things like these."));
    }
    all
}

/// What dd says of itself when all went well stands in the table already.
fn is_closing_line(message: &str) -> bool {
    message.ends_with(" records in")
        || message.ends_with(" records out")
        || message.contains(" copied, ")
}
