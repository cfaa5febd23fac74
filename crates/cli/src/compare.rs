//! `paternoster compare`: from the command line to an experiment, and from its results to where
//! they are wanted.

use crate::arguments::CompareOptions;
use crate::output::{print, write_file};
use crate::progress;
use base::{Bytes, nearest};
use lab::experiment::Setting;
use lab::experiment::input::{self, TraceOptions};
use lab::matrix::Report;
use lab::plan::Plan;
use lab::quantity::{self, ACCEPTED_DURATION, ACCEPTED_SIZE};
use lab::scheduler_spec::parse_assignment;
use lab::summary::Summary;
use lab::{Axis, Error, Experiment, JobSpec, Pace, RunResult, Work, World, matrix, record};
use std::path::Path;
use std::time::Instant;

/// Runs a comparison; false when a program in it failed.
pub fn compare(options: CompareOptions) -> Result<bool, Error> {
    refuse_what_is_not_there(&options)?;
    let experiment = experiment(&options)?;
    let plan = Plan::new(experiment)?;
    if let Some(directory) = &options.record {
        record::check_directories(&plan, directory)?;
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let began = Instant::now();
    let report = progress::with_bar(plan.runs(), |progress| {
        matrix::run(plan, options.record.as_deref(), threads, progress)
    })?;
    let took = began.elapsed();
    let summary = Summary::of(&report);
    if let Some(directory) = &options.fio_json {
        write_fio_json(&report, directory)?;
    }
    let json = || report::json::to_text(&report::json::compare(&report, &summary));
    if let Some(Some(file)) = &options.json {
        write_file(file, &json())?;
    }
    match &options.json {
        Some(None) => print(json().as_bytes())?,
        _ => print(report::text::compare(&report, &summary, took).as_bytes())?,
    }
    Ok(report.results.iter().all(RunResult::succeeded))
}

/// A file for each result.
fn write_fio_json(report: &Report, directory: &Path) -> Result<(), Error> {
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
    if options.html.is_some() {
        return Err(Error::not_yet("--html", "a web page", "--json, --fio-json, --record"));
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
    for text in options.set.iter().flat_map(|text| text.split(',')) {
        let (name, value) = parse_assignment(text, "--set")?;
        experiment.settings.push(Setting { name, value, place: "--set".to_string() });
    }
    for text in &options.vary {
        let axis = Axis::parse(text)?;
        experiment.axes.retain(|other| other.name != axis.name);
        experiment.axes.push(axis);
    }
    if options.seed.is_some() || options.runs.is_some() {
        let first = options.seed.unwrap_or(experiment.seeds[0]);
        let runs = options.runs.unwrap_or(experiment.seeds.len() as u64);
        if runs == 0 || first.checked_add(runs).is_none() {
            return Err(Error::bad("--runs", format!("{runs} runs"), "at least 1"));
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
    if let Some(program) = options.command.first() {
        let line: Vec<String> = options.command.iter().map(|word| quoted(word)).collect();
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        let mut job = JobSpec::new(name, Work::Command(line.join(" ")), "--");
        job.cgroup = options.cgroup.clone();
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

/// The value of `--memory`.
pub fn memory_size(text: &str) -> Result<Bytes, Error> {
    let refuse = || Error::bad("--memory", format!("\"{text}\""), ACCEPTED_SIZE);
    quantity::size(text).ok_or_else(refuse)
}

/// A word as it has to be written so that a shell reads it as one.
pub fn quoted(word: &str) -> String {
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
