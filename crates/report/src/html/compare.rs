//! The page of a comparison.

use super::{Curves, Distributions, Finding, Page, Table, shown};
use crate::grid::Grid;
use crate::text;
use insight::Timeline;
use insight::timeline::Recorded;
use insight::timeline::spread::{self, Spread};
use lab::matrix::Report;
use lab::quantity::{Kind, human};
use lab::summary::Summary;
use std::time::Duration;

/// What is said of waiting, and of arrows.
const ARROWS: &str = "A request waits for one thing at a time here: while the scheduler withholds \
    requests, it is held. Else, while the device has as many commands as it takes, others go \
    first. Arrows lead from the task whose request was the last under way to the one that asks \
    next.";
/// Values of a curve.
const WINDOWS: usize = 300;

/// Everything that is said of a comparison, with the runs that are shown.
pub fn page(report: &Report, summary: &Summary, took: Duration, recorded: Vec<Recorded>) -> Page {
    let experiment = &report.plan.experiment;
    let sentences = text::sentences(report, summary);
    let title = match experiment.title.as_str() {
        "" => "Comparison of I/O schedulers",
        title => title,
    };
    let finding = |it: String| Finding { title: it, ..Finding::default() };
    let (curves, distributions) = (curves(&recorded), recorded.iter().map(distributions).collect());
    let shown = shown::which(&recorded, experiment.seeds[0]);
    let story = Some(experiment.story.clone()).filter(|it| !it.is_empty());
    Page {
        title: title.to_string(),
        about: text::header(report, took),
        story: story.into_iter().collect(),
        answer: answer(&sentences),
        tables: text::tables(report, summary).into_iter().map(table).collect(),
        curves,
        distributions,
        findings: sentences.into_iter().map(finding).collect(),
        remark: shown::remark(shown, ARROWS),
        timelines: recorded.into_iter().map(Timeline::of).collect(),
        ..Page::default()
    }
}

/// The first sentence of what was found.
fn answer(sentences: &[String]) -> String {
    let Some(first) = sentences.first() else { return "Nothing differs.".to_string() };
    first.split_once(". ").map_or(first.clone(), |(sentence, _)| format!("{sentence}."))
}

fn table((caption, grid): (&str, Grid)) -> Table {
    let owned = |(title, span): (&str, usize)| (title.to_string(), span);
    let row = |cells: Vec<(&str, _)>| {
        cells.into_iter().map(|(cell, paint)| (cell.to_string(), paint)).collect()
    };
    Table {
        caption: caption.to_string(),
        keys: grid.keys(),
        groups: grid.groups().into_iter().map(owned).collect(),
        headings: grid.headings().to_vec(),
        rows: grid.cells().into_iter().map(row).collect(),
    }
}

/// What the runs move, on the same axis.
pub(super) fn curves(recorded: &[Recorded]) -> Vec<Curves> {
    let Some(end) = recorded.iter().map(|it| it.end).max() else { return Vec::new() };
    let mut curves = Curves {
        title: "What the disk moves".to_string(),
        unit: "MB/s".to_string(),
        ..Curves::default()
    };
    for run in recorded {
        let (step, mut bytes) = spread::bytes_over_time(run, end, WINDOWS);
        // A curve ends with its run.
        bytes.truncate((run.end.as_nanos() / step.as_nanos()) as usize + 1);
        curves.step = step.as_nanos() as f64 / 1e9;
        let rate = |bytes: u64| bytes as f64 / 1e6 / curves.step;
        curves.series.push((run.title.clone(), bytes.into_iter().map(rate).collect()));
    }
    vec![curves]
}

/// How long requests of a run spend where.
fn distributions(run: &Recorded) -> Distributions {
    distributions_of(&run.title, "requests", &spread::by_layer(run))
}

/// How long requests or calls spend where.
pub(super) fn distributions_of(whose: &str, of: &str, spreads: &[Spread]) -> Distributions {
    let name = |it: &Spread| it.layer.map_or("whole time", |layer| layer.name()).to_string();
    let series = |it: &Spread| {
        let mut sum = 0;
        let share = |count: &u64| {
            sum += count;
            100.0 * sum as f64 / it.count.max(1) as f64
        };
        (name(it), it.doublings.iter().map(share).collect())
    };
    let caption = format!("{whose}: where the time of {of} goes, first seed");
    let headings = ["layer", "share", of, "mean", "p50", "p99", "longest"];
    let time = |it: base::Duration| human(it.as_nanos() as f64, Kind::Time);
    let row = |it: &Spread| {
        let share = format!("{:.1} %", it.share as f64 / 10.0);
        let times = [it.mean, it.p50, it.p99, it.max].map(time);
        let cells = [name(it), share, it.count.to_string()].into_iter().chain(times);
        cells.map(|cell| (cell, None)).collect()
    };
    Distributions {
        title: format!("{whose}: share of {of} that spend up to so long"),
        of: of.to_string(),
        series: spreads.iter().map(series).collect(),
        medians: spreads.iter().map(|it| it.p50).collect(),
        table: Table {
            caption,
            keys: 1,
            groups: Vec::new(),
            headings: headings.map(String::from).to_vec(),
            rows: spreads.iter().map(row).collect(),
        },
    }
}
