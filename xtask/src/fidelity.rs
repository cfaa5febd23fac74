//! Runs the fidelity suite in both worlds and writes how far the simulator is off.
//!
//! `fidelity [--to FILE] EXPERIMENT.toml…`; without experiments, those in `fidelity/`.

use crate::Outcome;
use lab::fidelity::{Agreed, Figure, JobError, Overview, Pair, Spread, agreed, errors};
use lab::matrix::{self, Report};
use lab::plan::Plan;
use lab::{Experiment, World};
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const SUITE: &str = "fidelity";
const DEFAULT_TO: &str = "fidelity/results/raw.md";
const HEAD: &str = "# The simulator against the kernel

The same experiments in the simulator and on an unmodified Linux 6.12 in virtual time, over the same
device models behind virtio, where computing takes no time but looking at the clock does (host
`guest`). Percentages are those by which the simulator is above the kernel, averaged over seeds. The last
columns say how many commands the disk was given, with the first seed up to which of them both worlds
asked for the same in the same order, what part of the commands, and of what tasks asked the block
layer for, with flags and task, is the same in the same order, what part of the commands is if flags and
task of the bios in them count too, wherever these end (*told*), with the seed where that is least, and
how far the distributions of seek distances are apart (Kolmogorov and Smirnov: the largest difference
between the shares of commands that are at most so far from the one before), with the seed where that
is most. What is in a directory `outcomes` does not count for how much is the same: where its bios are
cut hangs on some dozens of pages of memory, in which one kernel differs from itself.

    cargo xtask fidelity

";

/// Runs the command.
pub fn main(mut arguments: Vec<String>) -> Outcome {
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
    let (mut all, mut all_agreed) = (Vec::new(), Vec::new());
    for file in &files {
        let mut experiment = Experiment::load(file)?;
        experiment.worlds = vec![World::Sim, World::Linux];
        experiment.watches_bios = true;
        let plan = Plan::new(experiment)?;
        let runs = plan.runs();
        eprintln!("{}: {runs} runs", file.display());
        let report = matrix::run(plan, None, 2, &|done| eprint!("\r{done}/{runs} "))?;
        eprintln!();
        let (found, same) = (errors(&report), agreed(&report));
        section(&mut text, file, &report, &found, &same)?;
        all.extend(found);
        if !is_by_outcome(file) {
            all_agreed.extend(same);
        }
    }
    let text = format!("{HEAD}{}\n{text}", overview(&Overview::of(&all, &all_agreed))?);
    std::fs::write(&to, &text)?;
    print!("{text}");
    Ok(ExitCode::SUCCESS)
}

/// Whether only what comes of it is compared: experiments in a directory `outcomes`.
fn is_by_outcome(file: &Path) -> bool {
    file.parent().is_some_and(|directory| directory.ends_with("outcomes"))
}

fn suite(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = std::fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
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
    agreed: &[Agreed],
) -> Result<(), std::fmt::Error> {
    writeln!(text, "## {}\n\n`{}`\n", report.plan.experiment.title, file.display())?;
    let axes: Vec<&str> =
        report.plan.experiment.axes.iter().map(|axis| axis.name.as_str()).collect();
    let heads = axes.iter().chain(&[
        "scheduler",
        "job",
        "MB/s",
        "p50",
        "p99",
        "requests",
        "same up to",
        "commands",
        "bios",
        "told",
        "seeks apart",
    ]);
    let heads: Vec<&str> = heads.copied().collect();
    writeln!(
        text,
        "| {} |\n|{}|",
        heads.join(" | "),
        "---|".repeat(heads.len()).trim_end_matches('|')
    )?;
    for error in errors {
        let row = &report.plan.rows[error.row];
        let mut cells: Vec<String> = row.axes.iter().map(|(_, value)| value.clone()).collect();
        cells.extend([row.spec.short(), error.job.clone()]);
        cells.extend(Figure::ALL.map(|figure| percent(error.figure(figure))));
        let ((ours, _), (theirs, _)) = error.requests;
        cells.push(match error.same_requests {
            true => format!("{ours}"),
            false => format!("{ours}, kernel {theirs}"),
        });
        let same = agreed.iter().find(|it| it.row == error.row).map(|it| it.agreement.first_other);
        cells.push(match same {
            Some(None) => "the end".to_string(),
            Some(Some(place)) => place.to_string(),
            None => "–".to_string(),
        });
        let of_row = || agreed.iter().filter(|it| it.row == error.row);
        for kind in [0, 1, 2] {
            let least = of_row().map(|it| it.share(kind)).fold(1.0, f64::min);
            cells.push(format!("{:.1} %", 100.0 * least));
        }
        let apart = of_row().map(|it| it.seeks_apart).fold(0.0, f64::max);
        cells.push(format!("{:.1} %", 100.0 * apart));
        writeln!(text, "| {} |", cells.join(" | "))?;
    }
    writeln!(text)
}

fn percent(pair: Option<Pair>) -> String {
    pair.map_or("–".to_string(), |it| format!("{:+.2} %", it.percent()))
}

/// Median and worst error of each figure, and how much is the same.
fn overview(all: &Overview) -> Result<String, std::fmt::Error> {
    let mut text = String::from(
        "| figure | median error | nine of ten | worst | of |\n|---|---|---|---|---|\n",
    );
    for (figure, spread) in Figure::ALL.iter().zip(all.figures) {
        let (name, count) = (figure.name(), spread.count);
        let (median, p90, worst) = (spread.median, spread.p90, spread.worst);
        writeln!(text, "| {name} | {median:.2} % | {p90:.2} % | {worst:.2} % | {count} |")?;
    }
    writeln!(
        text,
        "\nRequests equal in number and sizes in {} of {} runs. Every single command the same in \
         {} of them; {} of all {} commands come before the first difference of their run.",
        all.same_requests, all.runs, all.same_commands, all.commands_before, all.commands
    )?;
    for ((name, (same, count)), least) in Overview::COUNTED.iter().zip(all.alike).zip(all.least) {
        writeln!(
            text,
            "\nThe same in the same order: {name} {same} of {count} ({:.2} %), {:.1} % in the worst run.",
            100.0 * same as f64 / count.max(1) as f64,
            100.0 * least
        )?;
    }
    let Spread { median, p90, worst, .. } = all.seeks;
    writeln!(
        text,
        "\nDistributions of seek distances are {median:.2} % apart in the median run, {p90:.2} % in \
         nine of ten, {worst:.1} % in the worst."
    )?;
    Ok(text)
}
