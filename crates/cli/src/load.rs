//! From the command line to an experiment: what is run, on what, and under which schedulers.

use crate::arguments::LoadOptions;
use base::{Bytes, nearest};
use lab::experiment::Setting;
use lab::experiment::input::{self, TraceOptions};
use lab::plan::MOST_RUNS;
use lab::quantity::{self, ACCEPTED_SIZE, ACCEPTED_SPAN};
use lab::{Axis, Error, Experiment, JobSpec, Pace};

/// The experiment that the command line describes.
pub fn experiment(options: &LoadOptions) -> Result<Experiment, Error> {
    if let Some(dev) = &options.dev {
        let accepted = "--model with a device model";
        return Err(Error::not_yet("--dev", format!("the real device {dev}"), accepted));
    }
    let mut experiment = load(options)?;
    options.keys.apply(&mut experiment)?;
    if let Some(text) = &options.duration {
        let refuse = || Error::bad("--duration", format!("\"{text}\""), ACCEPTED_SPAN);
        let duration = quantity::span(text).ok_or_else(refuse)?;
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
fn load(options: &LoadOptions) -> Result<Experiment, Error> {
    let jobs = jobs(options)?;
    let trace = trace_options(options)?;
    let Some(path) = &options.input else {
        if jobs.is_empty() {
            let accepted = "EXPERIMENT.toml, JOB.fio, TRACE, --job NAME COMMAND, or -- COMMAND";
            return Err(Error::bad("the command line", "nothing to run", accepted));
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

fn jobs(options: &LoadOptions) -> Result<Vec<JobSpec>, Error> {
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

/// How a trace is to be read.
pub fn trace_options(options: &LoadOptions) -> Result<TraceOptions, Error> {
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
