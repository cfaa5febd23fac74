//! Results for a terminal: the first screen.

use crate::grid::{Column, Grid, wrap};
use lab::catalogue;
use lab::experiment::Experiment;
use lab::fidelity::errors::{self, JobError, Pair};
use lab::figure::{Figure, Layer, Point, What};
use lab::matrix::Report;
use lab::quantity::{Kind, human, human_spread};
use lab::summary::{Checked, JobColumn, Line, Summary};
use lab::{Axis, World};
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
    let columns = [
        Column::new("", "experiment", |(path, _): &&(String, Experiment)| path.clone()),
        Column::new("", "title", |(_, experiment): &&(String, Experiment)| {
            experiment.title.clone()
        }),
    ];
    Grid::of(&columns, found).render()
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

impl<'a> MainTable<'a> {
    fn grid(&self) -> Grid {
        Grid::of(&self.columns(), &self.summary.lines)
    }

    fn columns(&self) -> Vec<Column<'a, &'a Line>> {
        let jobs = &self.summary.jobs;
        let mut columns = row_columns(self.report, |line: &&Line| line.row);
        if let Some(first) = jobs.first() {
            let call = |point| first.figure(What::Call(first.main_call, Point::Percentile(point)));
            let title = format!("{} {}", first.name, first.main_call.name());
            columns.push(figure_column(&title, call(5000), self.detail.spread_of_all));
            columns.push(figure_column("", call(9900), true));
            columns.push(throughput_column("", first));
        }
        columns.extend(self.others().iter().map(|job| throughput_column(&job.name, job)));
        if self.shows_shares() {
            let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
            columns.push(Column::new("share", &names.join(":"), |line: &&Line| {
                let shares: Vec<String> = line.shares.iter().map(|it| format!("{it:.0}")).collect();
                shares.join(":")
            }));
        }
        let over = What::Held.metric().heading;
        columns.push(Column::new(over, "with work queued, because", |line: &&Line| held(line)));
        columns
    }

    fn others(&self) -> &[JobColumn] {
        let jobs = &self.summary.jobs;
        let end = jobs.len().min(MOST_JOBS);
        &jobs[end.min(1)..end]
    }

    fn shows_shares(&self) -> bool {
        self.detail.shares && (2..=MOST_JOBS).contains(&self.summary.jobs.len())
    }
}

/// What a row of the plan is: the values of axes and the scheduler.
fn row_columns<'a, R: 'a>(
    report: &'a Report,
    of: impl Fn(&R) -> usize + Copy + 'a,
) -> Vec<Column<'a, R>> {
    let mut columns = axis_columns(report, of);
    columns.push(Column::new("", "scheduler", move |row| report.plan.row_name(of(row))));
    columns
}

/// The values of axes.
fn axis_columns<'a, R: 'a>(
    report: &'a Report,
    of: impl Fn(&R) -> usize + Copy + 'a,
) -> Vec<Column<'a, R>> {
    let axes = report.plan.experiment.axes.iter().enumerate();
    let column = |(index, axis): (usize, &Axis)| {
        Column::new("", &axis.name, move |row: &R| report.plan.rows[of(row)].axes[index].1.clone())
    };
    axes.map(column).collect()
}

/// A point of a distribution, perhaps with its spread over seeds.
fn figure_column<'a>(group: &str, figure: Figure, spread: bool) -> Column<'a, &'a Line> {
    let heading = figure.what.point().map_or(String::new(), |point| point.to_string());
    Column::new(group, &heading, move |line: &&Line| {
        let Some(estimate) = line.get(&figure) else { return NOTHING.to_string() };
        let half_width = if spread { estimate.half_width } else { 0.0 };
        human_spread(estimate.mean, half_width, figure.what.kind())
    })
}

/// What a job moves.
fn throughput_column<'a>(group: &str, job: &JobColumn) -> Column<'a, &'a Line> {
    let figure = job.figure(What::Bandwidth(None));
    let metric = figure.what.metric();
    Column::new(group, metric.heading, move |line: &&Line| {
        line.get(&figure).map_or(NOTHING.to_string(), |it| metric.cell(it.mean))
    })
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
    type Row<'a> = (&'a Line, &'a JobColumn);
    let mut columns = row_columns(report, |(line, _): &Row| line.row);
    columns.push(Column::new("", "job", |(_, job): &Row| job.name.clone()));
    for layer in [Layer::Syscall, Layer::Queue, Layer::Device] {
        for point in [Point::Mean, Point::Percentile(9900)] {
            let what = What::Layer(layer, point);
            let over = if point == Point::Mean { what.metric().heading } else { "" };
            columns.push(Column::new(over, &point.to_string(), move |(line, job): &Row| {
                let value = line.get(&job.figure(what));
                value.map_or(NOTHING.to_string(), |it| what.metric().cell(it.mean))
            }));
        }
    }
    let jobs = &summary.jobs[..summary.jobs.len().min(MOST_JOBS)];
    let rows = summary.lines.iter().flat_map(|line| jobs.iter().map(move |job| (line, job)));
    rendered(Grid::of(&columns, rows))
}

/// How far the simulator is off where the kernel did the same.
fn error_table(report: &Report) -> String {
    let rows = &report.plan.rows;
    let mut columns = axis_columns(report, |it: &JobError| it.row);
    columns.push(Column::new("", "scheduler", |it: &JobError| rows[it.row].spec.short()));
    columns.push(Column::new("", "job", |it: &JobError| it.job.clone()));
    columns.push(Column::new("sim against linux", "MB/s", |it: &JobError| percent(it.bandwidth)));
    columns.push(Column::new("", "p50", |it: &JobError| percent(it.p50)));
    columns.push(Column::new("", "p99", |it: &JobError| percent(it.p99)));
    columns.push(Column::new("", "requests", |it: &JobError| {
        let ((ours, _), (theirs, _)) = it.requests;
        match it.same_requests {
            true => format!("{ours}, the same"),
            false => format!("{ours}, not {theirs}"),
        }
    }));
    rendered(Grid::of(&columns, errors::errors(report)))
}

fn percent(pair: Option<Pair>) -> String {
    pair.map_or(NOTHING.to_string(), |it| format!("{:+.2} %", it.percent()))
}

/// What was expected beside what came out.
fn expected_table(summary: &Summary) -> String {
    let columns = [
        Column::new("", "expected of", |it: &&Checked| {
            let axes = it.axes.iter().map(|(name, value)| format!(" {name}={value}"));
            format!("{}{}", it.expectation.scheduler, axes.collect::<String>())
        }),
        Column::new("", "figure", |it: &&Checked| it.expectation.figure.to_string()),
        Column::new("", "expected", |it: &&Checked| it.expectation.text.clone()),
        Column::new("", "here", |it: &&Checked| {
            let kind = it.expectation.figure.what.kind();
            let seen = it.seen.map(|it| human_spread(it.mean, it.half_width, kind));
            seen.unwrap_or(NOTHING.to_string())
        }),
        Column::new("", "", |it: &&Checked| {
            if it.holds { "as expected" } else { "NOT as expected" }.to_string()
        }),
    ];
    Grid::of(&columns, &summary.expected).render()
}

/// A table, if it says anything.
fn rendered(grid: Grid) -> String {
    if grid.is_empty() { String::new() } else { grid.render() }
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
