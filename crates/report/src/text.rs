//! Results for a terminal: the first screen.

use crate::grid::{Column, Grid, wrap};
use crate::style::{Paint, Style};
use lab::catalogue;
use lab::fidelity::errors::{self, JobError, Pair};
use lab::figure::{Figure, Layer, Point, What};
use lab::matrix::Report;
use lab::metrics::CallKind;
use lab::metrics::throttling::{Waited, Windows};
use lab::quantity::{Kind, human};
use lab::summary::{Checked, JobColumn, Line, Summary};
use lab::{Axis, World};
use std::time::Duration;

/// More jobs than this are not shown one by one.
const MOST_JOBS: usize = 4;
/// More messages of programs than this are only counted.
const MOST_MESSAGES: usize = 8;
/// Of those who are throttled in a row so many are shown.
const MOST_WAITING: usize = 2;
/// What stands where there is nothing to say.
const NOTHING: &str = "–";

/// Everything that is said about a comparison.
pub fn compare(report: &Report, summary: &Summary, took: Duration, style: &Style) -> String {
    let mut out = String::new();
    let experiment = &report.plan.experiment;
    if !experiment.title.is_empty() {
        out.push_str(&wrap(&experiment.title, style, ""));
    }
    if !experiment.story.is_empty() {
        out.push_str(&wrap(&experiment.story, style, ""));
        out.push('\n');
    }
    out.push_str(&wrap(&header(report, took), style, ""));
    for (_, table) in tables(report, summary) {
        out.push('\n');
        out.push_str(&table.render(style));
    }
    let all = sentences(report, summary);
    if !all.is_empty() {
        out.push('\n');
    }
    all.iter().for_each(|finding| out.push_str(&wrap(finding, style, "  ")));
    out
}

/// The tables that say something, each with what it is about.
pub(crate) fn tables(report: &Report, summary: &Summary) -> Vec<(&'static str, Grid)> {
    let tables = [
        ("Latency and throughput", main_table(report, summary)),
        ("Where the time of requests goes", layer_table(report, summary)),
        ("Who was held back", held_back_table(report, summary)),
        ("Windows of writeback throttling", windows_table(report, summary)),
        ("The simulator against the kernel", error_table(report)),
        ("What was expected", expected_table(report, summary)),
    ];
    tables.into_iter().filter(|(_, it)| !it.is_empty()).collect()
}

/// What differs, what is to be known of the plan, and what programs said.
pub(crate) fn sentences(report: &Report, summary: &Summary) -> Vec<String> {
    let findings = summary.findings.iter().cloned();
    findings.chain(report.plan.notes()).chain(said(report)).collect()
}

/// A table of the catalogue.
pub fn table(table: &catalogue::Table, style: &Style) -> String {
    let mut grid = Grid::new(&table.headings);
    table.rows.iter().for_each(|row| grid.row(row.clone()));
    grid.render(style)
}

/// World, kernel, model, host, seeds and time.
pub(crate) fn header(report: &Report, took: Duration) -> String {
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
        each("kernel", "kernels", &|row| rows[row].spec.kernel_name()) + &tick,
        each("model", "models", &|row| rows[row].model.name().to_string()),
        each("host", "hosts", &|row| rows[row].host.name.clone()),
        seeds,
        format!("{:.1} s", took.as_secs_f64()),
    ]
    .join(" · ")
}

/// Latency and throughput by scheduler.
fn main_table(report: &Report, summary: &Summary) -> Grid {
    let mut columns = row_columns(report, |line: &&Line| line.row);
    let keys = columns.len();
    columns.extend(latency_columns(summary));
    columns.extend(throughput_columns(summary));
    let jobs = &summary.jobs;
    if (2..=MOST_JOBS).contains(&jobs.len()) {
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        columns.push(Column::new("share", &names.join(":"), |line: &&Line| {
            let shares: Vec<String> = line.shares.iter().map(|it| format!("{it:.0}")).collect();
            shares.join(":")
        }));
    }
    // Where no disk stood idle that has nothing to say.
    if summary.lines.iter().any(|line| held(line) != NOTHING) {
        let over = What::Held.metric().heading;
        columns.push(Column::new(over, "with work queued, because", |line: &&Line| held(line)));
    }
    Grid::of(&columns, &summary.lines).keyed(keys)
}

/// The distribution by which schedulers are judged, or that of what the first job mostly does.
fn latency_columns<'a>(summary: &Summary) -> Vec<Column<'a, &'a Line>> {
    let Some(first) = summary.jobs.first() else { return Vec::new() };
    let of_first = first.figure(What::Call(first.main_call, Point::Max));
    let judged = summary.main.clone().unwrap_or(of_first.clone());
    let shown = if judged.what.point().is_some() { judged.clone() } else { of_first };
    let mut points = [5000, 9900, 9990].map(Point::Percentile).to_vec();
    points.push(Point::Max);
    if let Some(point) = judged.what.point().filter(|it| !points.contains(it)) {
        points.insert(0, point);
    }
    let owner = |figure: &Figure| figure.job.as_ref().map_or(String::new(), |it| format!("{it} "));
    let mut title = owner(&shown) + shown.what.metric().heading;
    let mut columns = Vec::new();
    // What is no distribution, and no rate that stands in its own column.
    if judged.what.point().is_none() && judged.what != What::Bandwidth(None) {
        let over = owner(&judged) + judged.what.metric().heading;
        columns.push(figure_column(&over, judged.clone(), true));
    }
    for point in points {
        let figure = Figure { what: shown.what.at(point), ..shown.clone() };
        let has_spread = figure == judged;
        columns.push(figure_column(&std::mem::take(&mut title), figure, has_spread));
    }
    columns
}

/// What jobs move: reads and writes of a job apart.
fn throughput_columns<'a>(summary: &Summary) -> Vec<Column<'a, &'a Line>> {
    let mut columns = Vec::new();
    for job in summary.jobs.iter().take(MOST_JOBS) {
        let kinds = [CallKind::Read, CallKind::Write, CallKind::Trim];
        let figure = |kind| job.figure(What::Bandwidth(Some(kind)));
        let moves = |kind: &CallKind| {
            let mut all = summary.lines.iter().filter_map(|line| line.get(&figure(*kind)));
            all.any(|it| it.mean > 0.0)
        };
        let kinds: Vec<CallKind> = kinds.into_iter().filter(moves).collect();
        let mut add = |heading: &str, figure: Figure| {
            let metric = figure.what.metric();
            let group = if columns.is_empty() { metric.heading } else { "" };
            columns.push(Column::new(group, heading, move |line: &&Line| {
                line.get(&figure).map_or(NOTHING.to_string(), |it| metric.cell(it.mean))
            }));
        };
        match kinds.as_slice() {
            [] | [_] => add(&job.name, job.figure(What::Bandwidth(None))),
            several => several
                .iter()
                .for_each(|kind| add(&format!("{} {}", job.name, kind.name()), figure(*kind))),
        }
    }
    columns
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
        let kind = figure.what.kind();
        if spread { estimate.human_spread(kind) } else { estimate.human(kind) }
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
fn layer_table(report: &Report, summary: &Summary) -> Grid {
    type Row<'a> = (&'a Line, &'a JobColumn);
    let mut columns = row_columns(report, |(line, _): &Row| line.row);
    columns.push(Column::new("", "job", |(_, job): &Row| job.name.clone()));
    let keys = columns.len();
    let layers = [Layer::Syscall, Layer::Queue, Layer::Device];
    for layer in layers {
        for point in [Point::Mean, Point::Percentile(9900)] {
            let what = What::Layer(layer, point);
            let over = if point == Point::Mean { what.metric().heading } else { "" };
            columns.push(Column::new(over, &point.to_string(), move |(line, job): &Row| {
                let value = line.get(&job.figure(what));
                value.map_or(NOTHING.to_string(), |it| it.human(what.kind()))
            }));
        }
    }
    let jobs = &summary.jobs[..summary.jobs.len().min(MOST_JOBS)];
    let rows = summary.lines.iter().flat_map(|line| jobs.iter().map(move |job| (line, job)));
    // A guest that is not recorded says nothing of layers.
    let is_known = |(line, job): &Row| {
        let mut all = layers.iter().map(|it| job.figure(What::Layer(*it, Point::Mean)));
        all.any(|figure| line.get(&figure).is_some())
    };
    Grid::of(&columns, rows.filter(is_known)).keyed(keys)
}

/// Who was held back by writeback throttling or by limits.
fn held_back_table(report: &Report, summary: &Summary) -> Grid {
    type Row<'a> = (&'a Line, &'a Waited);
    let mut columns = row_columns(report, |(line, _): &Row| line.row);
    columns.push(Column::new("held back", "task", |(_, it): &Row| it.task.clone()));
    let keys = columns.len();
    let mut add = |heading: &str, of: fn(&Waited) -> String| {
        columns.push(Column::new("", heading, move |(_, it): &Row| of(it)));
    };
    let time = |it: base::Duration| human(it.as_nanos() as f64, Kind::Time);
    add("by", |it| it.by.to_string());
    add("times", |it| it.times.to_string());
    columns.push(Column::new("", "in all", move |(_, it): &Row| time(it.time)));
    columns.push(Column::new("", "longest", move |(_, it): &Row| time(it.longest)));
    columns.push(Column::new("", "depth", |(_, it): &Row| match it.depth {
        None => NOTHING.to_string(),
        Some([fewest, most]) if fewest == most => fewest.to_string(),
        Some([fewest, most]) => format!("{fewest} to {most}"),
    }));
    let rows = summary.lines.iter().flat_map(|line| {
        let waited = line.throttling.waited.iter().take(MOST_WAITING);
        waited.map(move |it| (line, it))
    });
    Grid::of(&columns, rows).keyed(keys)
}

/// Why the depth of throttled writeback was what it was.
fn windows_table(report: &Report, summary: &Summary) -> Grid {
    let mut columns = row_columns(report, |line: &&Line| line.row);
    let keys = columns.len();
    let windows = |group, heading: &str, of: fn(&Windows) -> u64| {
        Column::new(group, heading, move |line: &&Line| of(&line.throttling.windows).to_string())
    };
    columns.push(windows("windows of throttling", "reads late", |it| it.exceeded));
    columns.push(windows("", "few samples", |it| it.unknown_writes));
    columns.push(windows("", "in time", |it| it.ok));
    columns.push(Column::new("", "least depth", |line: &&Line| {
        line.throttling.least_depth.map_or(NOTHING.to_string(), |it| it.to_string())
    }));
    let is_judged = |line: &&Line| line.throttling.windows != Windows::default();
    Grid::of(&columns, summary.lines.iter().filter(is_judged)).keyed(keys)
}

/// How far the simulator is off where the kernel did the same.
fn error_table(report: &Report) -> Grid {
    let rows = &report.plan.rows;
    let mut columns = axis_columns(report, |it: &JobError| it.row);
    columns.push(Column::new("", "scheduler", |it: &JobError| rows[it.row].spec.short()));
    columns.push(Column::new("", "job", |it: &JobError| it.job.clone()));
    columns.push(Column::new("", "call", |it: &JobError| it.call.name().to_string()));
    let keys = columns.len();
    columns.push(Column::new("sim against linux", "MB/s", |it: &JobError| percent(it.bandwidth)));
    columns.push(Column::new("", "p50", |it: &JobError| percent(it.p50)));
    columns.push(Column::new("", "p99", |it: &JobError| percent(it.p99)));
    let all = errors::errors_by_call(report);
    let mut points = all.iter().filter_map(|it| errors::judged_point(report, &it.job, it.call));
    if let Some(point) = points.next() {
        let heading = point.to_string();
        columns.push(Column::new("", &heading, |it: &JobError| percent(it.judged)));
    }
    columns
        .push(Column::new("", "requests", |it: &JobError| requests(it.same_requests, it.requests)));
    Grid::of(&columns, all).keyed(keys)
}

/// Requests of the first seed, with their bytes where only these differ.
fn requests(are_same: bool, both: ((u64, u64), (u64, u64))) -> String {
    let ((ours, our_bytes), (theirs, their_bytes)) = both;
    match are_same {
        true => format!("{ours}, the same"),
        false if ours != theirs => format!("{ours}, not {theirs}"),
        false if our_bytes != their_bytes => format!("{ours} of {our_bytes} B, not {their_bytes}"),
        false => format!("{ours}, other seeds differ"),
    }
}

fn percent(pair: Option<Pair>) -> String {
    pair.map_or(NOTHING.to_string(), |it| format!("{:+.2} %", it.percent()))
}

/// What was expected beside what came out.
fn expected_table(report: &Report, summary: &Summary) -> Grid {
    let axes = report.plan.experiment.axes.iter().map(|axis| {
        Column::new("", &axis.name, move |it: &&Checked| {
            let found = it.axes.iter().find(|(name, _)| *name == axis.name);
            found.map_or(String::new(), |(_, value)| value.clone())
        })
    });
    let mut columns: Vec<Column<'_, &Checked>> = axes.collect();
    columns.extend([
        Column::new("", "expected of", |it: &&Checked| it.expectation.scheduler.clone()),
        Column::new("", "figure", |it: &&Checked| it.expectation.figure.to_string()),
        Column::new("", "expected", |it: &&Checked| it.expectation.text.clone()),
        Column::new("", "here", |it: &&Checked| {
            let kind = it.expectation.figure.what.kind();
            let seen = it.seen.map(|it| it.human_spread(kind));
            seen.unwrap_or(NOTHING.to_string())
        }),
        Column::new("", "", |it: &&Checked| {
            if it.holds { AS_EXPECTED } else { "NOT as expected" }.to_string()
        })
        .painted(|cell| Some(if cell == AS_EXPECTED { Paint::Good } else { Paint::Bad })),
    ]);
    Grid::of(&columns, &summary.expected).keyed(report.plan.experiment.axes.len() + 2)
}

/// What is said of an expectation that is met.
const AS_EXPECTED: &str = "as expected";

/// What programs said, each thing once with the rows that it was said in, and how they failed.
fn said(report: &Report) -> Vec<String> {
    let rows = report.plan.rows.len();
    let mut all: Vec<(String, Vec<usize>)> = Vec::new();
    let mut add = |line: String, row: usize| match all.iter_mut().find(|it| it.0 == line) {
        Some((_, rows)) if rows.contains(&row) => {}
        Some((_, rows)) => rows.push(row),
        None => all.push((line, vec![row])),
    };
    for row in 0..rows {
        let failures = report.results_of(row).iter().flat_map(|result| result.failures());
        failures.for_each(|line| add(line, row));
    }
    for row in 0..rows {
        let first = report.results_of(row).iter().take(1).flat_map(|result| &result.exits);
        for exit in first.filter(|exit| !exit.failed) {
            let notes = exit.messages.iter().filter(|message| !is_closing_line(message));
            notes.for_each(|message| add(format!("{}: {message}", exit.job), row));
        }
    }
    let more = all.len().saturating_sub(MOST_MESSAGES);
    all.truncate(MOST_MESSAGES);
    let of_rows = |(line, of): (String, Vec<usize>)| {
        let names: Vec<String> = of.iter().map(|row| report.plan.row_title(*row)).collect();
        if of.len() == rows { line } else { format!("{line} ({})", names.join(", ")) }
    };
    let mut lines: Vec<String> = all.into_iter().map(of_rows).collect();
    if more > 0 {
        lines.push(format!("Programs said {more} more things like these."));
    }
    lines
}

/// What dd says of itself when all went well stands in the table already.
fn is_closing_line(message: &str) -> bool {
    message.ends_with(" records in")
        || message.ends_with(" records out")
        || message.contains(" copied, ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_not_the_same_differ_in_what_is_said_of_them() {
        assert_eq!(requests(true, ((29, 4096), (29, 4096))), "29, the same");
        assert_eq!(requests(false, ((29, 4096), (30, 4096))), "29, not 30");
        assert_eq!(requests(false, ((29, 4096), (29, 8192))), "29 of 4096 B, not 8192");
        assert_eq!(requests(false, ((29, 4096), (29, 4096))), "29, other seeds differ");
    }
}
