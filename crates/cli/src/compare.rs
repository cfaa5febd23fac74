//! `paternoster compare`: from the command line to an experiment, and from its results to where
//! they are wanted.

use crate::arguments::CompareOptions;
use crate::output::{Destination, check_directory, print, write_file};
use crate::progress;
use crate::terminal::style;
use base::{Bytes, nearest};
use lab::experiment::Setting;
use lab::experiment::input::{self, TraceOptions};
use lab::matrix::Report;
use lab::plan::{MOST_RUNS, Plan};
use lab::quantity::{self, ACCEPTED_DURATION, ACCEPTED_SIZE};
use lab::summary::Summary;
use lab::summary::saved::Saved;
use lab::{Axis, Error, Experiment, JobSpec, Pace, RunResult, World, fio_logs, matrix, record};
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
    refuse_what_is_not_there(&options)?;
    let experiment = experiment(&options)?;
    let mut plan = Plan::new(experiment)?;
    fio_logs::check(&plan, Path::new("."))?;
    plan.logs_to = Some(PathBuf::from("."));
    if let Some(directory) = &options.record {
        record::check_directories(&plan, directory)?;
    }
    let outputs = Outputs::of(&options)?;
    let saved = saved(&options, &plan)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let began = Instant::now();
    let report = progress::with_bar(plan.runs(), |progress| {
        matrix::run(plan, options.record.as_deref(), threads, progress)
    })?;
    let took = began.elapsed();
    let summary = Summary::of(&report);
    outputs.write(&report, &summary, took)?;
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
        outputs.check_that_they_differ()?;
        if let Some(directory) = &outputs.fio_json {
            check_directory("--fio-json", directory)?;
        }
        Ok(outputs)
    }

    /// Refuses two results in one place.
    fn check_that_they_differ(&self) -> Result<(), Error> {
        let all = [
            ("--json", &self.json),
            ("--csv", &self.csv),
            ("--html", &self.html),
            ("--perfetto", &self.perfetto),
        ];
        for (at, (option, destination)) in all.iter().enumerate().filter(|(_, it)| it.1.is_some()) {
            if let Some((other, _)) = all[..at].iter().find(|it| it.1 == *destination) {
                let problem = format!("it goes where {other} goes");
                return Err(Error::bad(*option, problem, "another file for one of them"));
            }
        }
        Ok(())
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
        let held = saved.hold(report, summary, !options.scheduler.is_empty())?;
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

/// Options that are planned.
fn refuse_what_is_not_there(options: &CompareOptions) -> Result<(), Error> {
    if let Some(dev) = &options.dev {
        let accepted = "--model with a device model";
        return Err(Error::not_yet("--dev", format!("the real device {dev}"), accepted));
    }
    Ok(())
}

/// The experiment that the command line describes.
fn experiment(options: &CompareOptions) -> Result<Experiment, Error> {
    let mut experiment = load(options)?;
    options.keys.apply(&mut experiment)?;
    if let Some(text) = &options.duration {
        let refuse = || Error::bad("--duration", format!("\"{text}\""), ACCEPTED_DURATION);
        let duration = quantity::duration(text).ok_or_else(refuse)?;
        for job in &mut experiment.jobs {
            job.duration.get_or_insert(duration);
        }
    }
    if !options.scheduler.is_empty() {
        let texts = options.scheduler.iter().flat_map(|text| split_schedulers(text));
        experiment.schedulers = texts.map(|text| (text, "--scheduler".to_string())).collect();
        experiment.expect.clear();
    }
    for text in &options.set {
        experiment.settings.extend(Setting::parse_list(text, "--set")?);
    }
    for text in &options.vary {
        let axis = Axis::parse(text)?;
        experiment.axes.retain(|other| other.name != axis.name);
        experiment.axes.push(axis);
    }
    if options.seed.is_some() || options.runs.is_some() {
        let first = options.seed.unwrap_or(experiment.seeds[0]);
        let runs = options.runs.unwrap_or(experiment.seeds.len() as u64);
        if !(1..=MOST_RUNS as u64).contains(&runs) {
            return Err(Error::bad("--runs", format!("{runs} runs"), format!("1 to {MOST_RUNS}")));
        }
        if first.checked_add(runs).is_none() {
            let accepted = format!("at most {} with {runs} runs", u64::MAX - runs);
            return Err(Error::bad("--seed", format!("seed {first}"), accepted));
        }
        experiment.seeds = (first..first + runs).collect();
    }
    experiment.paranoid |= options.paranoid;
    Ok(experiment)
}

/// What is to be run: a file, a command, or jobs; jobs may come on top of a file.
fn load(options: &CompareOptions) -> Result<Experiment, Error> {
    let jobs = jobs(options)?;
    let trace = trace_options(options)?;
    let Some(path) = &options.input else {
        if jobs.is_empty() {
            let accepted = "EXPERIMENT.toml, JOB.fio, TRACE, --job NAME COMMAND, or -- COMMAND";
            return Err(Error::bad("compare", "nothing to run", accepted));
        }
        return Ok(Experiment::of_jobs("", jobs));
    };
    let mut experiment = input::load(path, &trace)?;
    experiment.jobs.extend(jobs);
    if input::kind_of(path)? != input::FileKind::Experiment {
        experiment.title.clear();
    }
    Ok(experiment)
}

fn jobs(options: &CompareOptions) -> Result<Vec<JobSpec>, Error> {
    let pairs = options.job.chunks_exact(2);
    let mut jobs: Vec<JobSpec> =
        pairs.map(|pair| JobSpec::parse(&pair[0], &pair[1])).collect::<Result<_, _>>()?;
    if !options.command.is_empty() {
        let mut job = JobSpec::of_command(line(&options.command), "--");
        job.cgroup = options.cgroup.clone();
        let is_free = |name: &String| jobs.iter().all(|other| other.name != *name);
        let numbered = (2..).map(|number| format!("{}-{number}", job.name));
        let mut names = std::iter::once(job.name.clone()).chain(numbered);
        job.name = names.find(is_free).expect("there are enough numbers");
        jobs.push(job);
    } else if options.cgroup.is_some() {
        let accepted = "--cgroup with -- COMMAND; --job NAME:cgroup=PATH COMMAND";
        return Err(Error::bad("--cgroup", "there is no one command", accepted));
    }
    for (index, job) in jobs.iter().enumerate() {
        if jobs[..index].iter().any(|other| other.name == job.name) {
            let problem = format!("a second job \"{}\"", job.name);
            return Err(Error::bad(&job.place, problem, "another name for each job"));
        }
    }
    Ok(jobs)
}

fn trace_options(options: &CompareOptions) -> Result<TraceOptions, Error> {
    let mut trace = TraceOptions::default();
    if let Some(name) = &options.trace_format {
        let hint = || nearest(name, trace::Format::ALL.map(trace::Format::name));
        let unknown = |_| {
            let problem = format!("unknown format \"{name}\"{}", hint());
            Error::bad("--trace-format", problem, trace::Format::names())
        };
        trace.reading.format = Some(name.parse().map_err(unknown)?);
    }
    if let Some(unit) = &options.time_unit {
        let unknown =
            |_| Error::bad("--time-unit", format!("unknown unit \"{unit}\""), "s, ms, us, ns");
        trace.reading.time_unit = Some(unit.parse().map_err(unknown)?);
    }
    trace.reading.device = options.trace_device.clone();
    let depth = options.depth;
    trace.pace = match options.replay.as_deref() {
        Some("closed") => Some(Pace::BackToBack { depth: depth.unwrap_or(1).max(1) }),
        _ if depth.is_some() => {
            return Err(Error::bad("--depth", "the replay is not closed", "--replay closed"));
        }
        Some("timed") => Some(Pace::Timed),
        Some("thinking") => Some(Pace::Thinking),
        Some(other) => {
            let hint = nearest(other, ["timed", "closed", "thinking"]);
            let problem = format!("unknown pace \"{other}\"{hint}");
            return Err(Error::bad("--replay", problem, "timed, closed, thinking"));
        }
        None => None,
    };
    Ok(trace)
}

/// Splits `none,mq-deadline:fifo_batch=1,front_merges=0,noop` at the commas before schedulers.
fn split_schedulers(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for part in text.split(',') {
        let is_assignment = part.contains('=') && !part.contains(':') && !part.contains('@');
        match all.last_mut().filter(|_| is_assignment) {
            Some(last) => {
                last.push(',');
                last.push_str(part);
            }
            None => all.push(part.to_string()),
        }
    }
    all
}

/// The value of an option that is a size.
pub fn size_of(option: &str, text: &str) -> Result<Bytes, Error> {
    let refuse = || Error::bad(option, format!("\"{text}\""), ACCEPTED_SIZE);
    quantity::size(text).ok_or_else(refuse)
}

/// The line that words of the command line stand for; one word is a line already.
pub fn line(words: &[String]) -> String {
    match words {
        [line] => line.clone(),
        words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

/// A word as it has to be written so that a shell reads it as one.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-+=/.,:@%^{}[]~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_are_split_where_a_scheduler_begins() {
        assert_eq!(
            split_schedulers("none,mq-deadline@5.2:fifo_batch=1,front_merges=0,noop"),
            ["none", "mq-deadline@5.2:fifo_batch=1,front_merges=0", "noop"]
        );
    }

    #[test]
    fn words_are_quoted_for_a_shell_only_if_need_be() {
        assert_eq!(quoted("bs=4k"), "bs=4k");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
