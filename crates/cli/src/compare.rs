//! `paternoster compare`: from the command line to an experiment, and from its results to where
//! they are wanted.

use crate::arguments::CompareOptions;
use crate::events;
use crate::load;
use crate::output::{Destination, check_directory, check_that_they_differ, print, write_file};
use crate::progress;
use crate::terminal::style;
use lab::matrix::Report;
use lab::plan::Plan;
use lab::summary::Summary;
use lab::summary::saved::Saved;
use lab::{Error, RunResult, World, fio_logs, matrix, parallel, record};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What came of a comparison.
pub enum Outcome {
    /// Everything ran, and what was to be checked holds.
    Well,
    /// A program failed; or everything ran, and what was to be checked does not hold.
    Failed,
    /// A program failed, so nobody knows whether what was to be checked holds.
    Unknown,
}

/// Runs a comparison.
pub fn compare(options: CompareOptions) -> Result<Outcome, Error> {
    let experiment = load::experiment(&options.load)?;
    let mut plan = Plan::new(experiment)?;
    fio_logs::check(&plan, Path::new("."))?;
    plan.logs_to = Some(PathBuf::from("."));
    if let Some(directory) = &options.record {
        check_directory("--record", directory)?;
        record::check_directories(&plan, directory)?;
    }
    let events_to = events::asked(options.events.as_ref())?;
    events_to.map_or(Ok(()), |it| events::check_plan(&plan, &plan.experiment.seeds, it))?;
    let outputs = Outputs::of(&options)?;
    let saved = saved(&options, &plan)?;
    let began = Instant::now();
    let runs = plan.runs();
    let report = progress::with_bar(|progress| {
        progress(0, runs);
        matrix::run(plan, options.record.as_deref(), parallel::threads(), &|done| {
            progress(done, runs)
        })
    })?;
    let took = began.elapsed();
    let summary = Summary::of(&report);
    outputs.write(&report, &summary, took)?;
    if let Some(file) = events_to {
        events::write(&report.plan, &report.plan.experiment.seeds, file, false)?;
    }
    let ran = report.results.iter().all(RunResult::succeeded);
    if options.check.is_none() {
        return Ok(if ran { Outcome::Well } else { Outcome::Failed });
    }
    let holds = check(&options, saved.as_ref(), &report, &summary)?;
    Ok(match (ran, holds) {
        (false, _) => Outcome::Unknown,
        (true, false) => Outcome::Failed,
        (true, true) => Outcome::Well,
    })
}

/// Where the results are wanted.
struct Outputs {
    json: Option<Destination>,
    csv: Option<Destination>,
    html: Option<Destination>,
    perfetto: Option<Destination>,
    fio_json: Option<PathBuf>,
}

impl Outputs {
    /// Looks at each before anything runs.
    fn of(options: &CompareOptions) -> Result<Outputs, Error> {
        let outputs = Outputs {
            json: Destination::asked("--json", options.json.as_ref())?,
            csv: Destination::asked("--csv", options.csv.as_ref())?,
            html: Destination::asked("--html", options.html.clone().map(Some).as_ref())?,
            perfetto: Destination::asked(
                "--perfetto",
                options.perfetto.clone().map(Some).as_ref(),
            )?,
            fio_json: options.fio_json.clone(),
        };
        let events = options.events.clone().map(Destination::File);
        check_that_they_differ(&[
            ("--json", outputs.json.as_ref()),
            ("--csv", outputs.csv.as_ref()),
            ("--html", outputs.html.as_ref()),
            ("--perfetto", outputs.perfetto.as_ref()),
            ("--events", events.as_ref()),
        ])?;
        if let Some(directory) = &outputs.fio_json {
            check_directory("--fio-json", directory)?;
        }
        Ok(outputs)
    }

    /// Writes what is wanted. What goes to the standard output is not lost if a file fails.
    fn write(&self, report: &Report, summary: &Summary, took: Duration) -> Result<(), Error> {
        let json = || report::json::to_text(&report::json::compare(report, summary));
        let csv = || report::csv::compare(report, summary);
        let text = || report::text::compare(report, summary, took, &style());
        let is_stdout = |it: &Option<Destination>| *it == Some(Destination::Stdout);
        match () {
            () if is_stdout(&self.json) => print(json().as_bytes())?,
            () if is_stdout(&self.csv) => print(csv().as_bytes())?,
            () if is_stdout(&self.html) || is_stdout(&self.perfetto) => {}
            () => print(text().as_bytes())?,
        }
        let others = |it: &Option<Destination>| it.clone().filter(|it| *it != Destination::Stdout);
        if let Some(destination) = others(&self.json) {
            destination.write(&json())?;
        }
        if let Some(destination) = others(&self.csv) {
            destination.write(&csv())?;
        }
        self.write_timelines(report, summary, took)?;
        self.fio_json.as_ref().map_or(Ok(()), |directory| write_fio_json(report, directory))
    }

    /// Writes what shows single requests, for which runs are run again.
    fn write_timelines(
        &self,
        report: &Report,
        summary: &Summary,
        took: Duration,
    ) -> Result<(), Error> {
        if self.html.is_none() && self.perfetto.is_none() {
            return Ok(());
        }
        let recorded = lab::picture::recorded(report, summary)?;
        let page = report::html::compare::page(report, summary, took, recorded);
        if let Some(destination) = &self.html {
            destination.write(&page.to_html())?;
        }
        let destination = self.perfetto.as_ref();
        destination.map_or(Ok(()), |it| it.write(&report::perfetto::to_text(&page.timelines)))
    }
}

/// The results that new ones are to be held against, if there is anything to check.
fn saved(options: &CompareOptions, plan: &Plan) -> Result<Option<Saved>, Error> {
    match &options.check {
        Some(Some(path)) => Saved::load(path).map(Some),
        Some(None) if plan.experiment.expect.is_empty() => {
            let accepted = "--check=RESULT.json, or an experiment with [expect]";
            Err(Error::bad("--check", "nothing is expected", accepted))
        }
        _ => Ok(None),
    }
}

/// Whether everything came out as expected, and nothing worse than it was saved; says what did not.
fn check(
    options: &CompareOptions,
    saved: Option<&Saved>,
    report: &Report,
    summary: &Summary,
) -> Result<bool, Error> {
    let failed = summary.expected.iter().filter(|it| !it.holds).map(|it| {
        let expected = &it.expectation;
        format!("{}: {} is not {}", expected.scheduler, expected.figure, expected.text)
    });
    let mut failed: Vec<String> = failed.collect();
    let mut notes = Vec::new();
    if let Some(saved) = saved {
        let held = saved.hold(report, summary, !options.load.scheduler.is_empty())?;
        failed.extend(held.failures);
        notes = held.notes;
    }
    for line in notes.iter().chain(&failed) {
        eprintln!("paternoster: --check: {}", report::style::printable(line));
    }
    Ok(failed.is_empty())
}

/// A file for each result.
fn write_fio_json(report: &Report, directory: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(directory).map_err(|cause| Error::unwritable(directory, cause))?;
    for (index, row) in report.plan.rows.iter().enumerate() {
        for result in report.results_of(index) {
            let world = if row.world == World::Linux { "-linux" } else { "" };
            let name = format!("{}{world}.json", record::directory_name(row, result.seed));
            let text = report::json::to_text(&report::fio_json::document(result));
            write_file(&directory.join(name), &text)?;
        }
    }
    Ok(())
}
