//! Runs the fidelity suite in both worlds and writes how far the simulator is off.
//!
//! `fidelity [--to FILE] EXPERIMENT.toml…`; without experiments, those in `fidelity/`.

use lab::linux_world::errors::{JobError, Pair, errors};
use lab::matrix::{self, Report};
use lab::plan::Plan;
use lab::{Experiment, World};
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const SUITE: &str = "fidelity";
const DEFAULT_TO: &str = "docs/fidelity-linux.md";
const HEAD: &str = "# The simulator against the kernel

The same experiments in the simulator and on an unmodified Linux 6.12 in virtual time, over the same
device models behind virtio, where computing takes no time. Percentages are those by which the
simulator is above the kernel; requests are those that the disk was given.

    cargo run --release -p paternoster-lab --example fidelity

";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut to = PathBuf::from(DEFAULT_TO);
    if arguments.first().is_some_and(|it| it == "--to") {
        to = PathBuf::from(arguments.get(1).ok_or("--to needs a file")?);
        arguments.drain(..2);
    }
    let files = match arguments.is_empty() {
        true => suite(Path::new(SUITE))?,
        false => arguments.into_iter().map(PathBuf::from).collect(),
    };
    let mut text = String::new();
    let mut all: Vec<JobError> = Vec::new();
    for file in &files {
        let mut experiment = Experiment::load(file)?;
        experiment.worlds = vec![World::Sim, World::Linux];
        let plan = Plan::new(experiment)?;
        let runs = plan.runs();
        eprintln!("{}: {runs} runs", file.display());
        let report = matrix::run(plan, None, 2, &|done| eprint!("\r{done}/{runs} "))?;
        eprintln!();
        let found = errors(&report);
        section(&mut text, file, &report, &found)?;
        all.extend(found);
    }
    let text = format!("{HEAD}{}\n{text}", overview(&all)?);
    std::fs::write(&to, &text)?;
    print!("{text}");
    Ok(())
}

fn suite(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "toml"));
    files.sort();
    Ok(files)
}

fn section(
    text: &mut String,
    file: &Path,
    report: &Report,
    errors: &[JobError],
) -> Result<(), std::fmt::Error> {
    writeln!(text, "## {}\n\n`{}`\n", report.plan.experiment.title, file.display())?;
    let axes: Vec<&str> =
        report.plan.experiment.axes.iter().map(|axis| axis.name.as_str()).collect();
    let heads = axes.iter().chain(&["scheduler", "job", "MB/s", "p50", "p99", "requests"]);
    let heads: Vec<&str> = heads.copied().collect();
    writeln!(text, "| {} |\n|{}", heads.join(" | "), "---|".repeat(heads.len()))?;
    for error in errors {
        let row = &report.plan.rows[error.row];
        let mut cells: Vec<String> = row.axes.iter().map(|(_, value)| value.clone()).collect();
        cells.extend([row.spec.short(), error.job.clone()]);
        cells.extend([error.bandwidth, error.p50, error.p99].map(percent));
        let ((ours, _), (theirs, _)) = error.requests;
        cells.push(match error.same_requests {
            true => format!("{ours}"),
            false => format!("{ours}, kernel {theirs}"),
        });
        writeln!(text, "| {} |", cells.join(" | "))?;
    }
    writeln!(text)
}

fn percent(pair: Option<Pair>) -> String {
    pair.map_or("–".to_string(), |it| format!("{:+.2} %", it.percent()))
}

/// Median and worst error of each figure.
fn overview(errors: &[JobError]) -> Result<String, std::fmt::Error> {
    type Of = fn(&JobError) -> Option<Pair>;
    let mut text =
        String::from("| figure | median error | worst error | of |\n|---|---|---|---|\n");
    let figures: [(&str, Of); 3] =
        [("throughput", |it| it.bandwidth), ("p50", |it| it.p50), ("p99", |it| it.p99)];
    for (name, of) in figures {
        let found = errors.iter().filter_map(of).map(|pair| pair.percent().abs());
        let mut found: Vec<f64> = found.collect();
        found.sort_by(f64::total_cmp);
        let median = found.get(found.len() / 2).copied().unwrap_or(0.0);
        let worst = found.last().copied().unwrap_or(0.0);
        writeln!(text, "| {name} | {median:.2} % | {worst:.2} % | {} |", found.len())?;
    }
    let same = errors.iter().filter(|it| it.same_requests).count();
    writeln!(text, "\nRequests and bytes equal in {same} of {}.", errors.len())?;
    Ok(text)
}
