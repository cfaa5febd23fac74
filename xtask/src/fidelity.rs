//! Holds suites of experiments against the kernel and says how far the simulator is off.
//!
//! `fidelity [--kernel NAME] EXPERIMENT.toml…` prints the tables of these experiments.
//! `fidelity --results [NAME…]` writes the tables of whole suites, `raw` and `files`, to
//! `fidelity/results/NAME.md`.

use crate::Outcome;
use block::Version;
use lab::fidelity::{Agreed, Figure, JobError, Overview, Pair, Spread, agreed, errors};
use lab::matrix::{self, Report};
use lab::plan::Plan;
use lab::{Experiment, world};
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Experiments whose tables are one file.
struct Suite {
    name: &'static str,
    title: &'static str,
    directories: &'static [&'static str],
    /// What is to be known beside the legend.
    remark: &'static str,
}

const SUITES: [Suite; 3] = [
    Suite {
        name: "raw",
        title: "direct I/O on the raw disk",
        directories: &["fidelity"],
        remark: "",
    },
    Suite {
        name: "files",
        title: "files and the page cache",
        directories: &["fidelity/files", "fidelity/files/outcomes"],
        remark: "Experiments in a directory `outcomes` do not count for how much is the same. Some \
                 dozens of pages of memory\ndecide where their bios are cut, and one kernel \
                 differs from itself in that.\n\n",
    },
    Suite {
        name: "long",
        title: "files for ten seconds",
        directories: &["fidelity/long"],
        remark: "Runs are compared by their outcome: after thousands of commands the first \
                 difference has moved the others.\n\n",
    },
];

const LEGEND: &str = "\
The worlds share the device models, behind virtio, and the host `guest`. A percentage says how \
far the simulator is above the
kernel, as the mean over seeds. `–` stands for a job of less than 50 ms, whose throughput says \
nothing.

| column | says |
|---|---|
| MB/s, p50, p99 | error of the job's throughput and latencies |
| requests | commands that the disk was given; both numbers where they differ |
| same up to | first command of the first seed at which the worlds part |
| commands | part of the commands that is the same in the same order, with the worst seed |
| bios | the same for what tasks ask of the block layer, with flags and task |
| told | the same for commands, if flags and task of their bios count too, with the worst seed |
| seeks apart | largest difference between the two distributions of seek distances (Kolmogorov and \
Smirnov), with the worst seed |

";

/// Runs the command.
pub fn main(mut arguments: Vec<String>) -> Outcome {
    let judge = crate::judge(&mut arguments)?;
    if arguments.first().is_none_or(|it| it != "--results") {
        let files: Vec<PathBuf> = arguments.into_iter().map(PathBuf::from).collect();
        if files.is_empty() {
            return Err("usage: fidelity EXPERIMENT.toml… | --results [raw|files|long]".into());
        }
        print!("{}", tables(&files, judge)?);
        return Ok(ExitCode::SUCCESS);
    }
    let wanted: Vec<String> = arguments.drain(1..).collect();
    for suite in SUITES.iter().filter(|it| wanted.is_empty() || wanted.iter().any(|w| w == it.name))
    {
        let to = format!("fidelity/results/{}.md", suite.page_of(judge));
        std::fs::write(&to, suite.page(judge)?)?;
        println!("{to}");
    }
    Ok(ExitCode::SUCCESS)
}

impl Suite {
    /// The name of its page: without the kernel where that is the usual judge.
    fn page_of(&self, judge: Version) -> String {
        match judge == world::KERNEL {
            true => self.name.to_string(),
            false => format!("{}-{judge}", self.name),
        }
    }

    /// The whole page: of what, when, of which commit, by which command, and the tables.
    fn page(&self, judge: Version) -> Result<String, Box<dyn Error>> {
        let mut files = Vec::new();
        for directory in self.directories {
            files.extend(experiments(Path::new(directory))?);
        }
        let origin = origin()?;
        let Suite { name, title, remark, .. } = self;
        Ok(format!(
            "# Results: {title}\n\n\
             {origin} · \
             `cargo xtask fidelity --kernel {judge} --results {name}`\n\n\
             Both worlds run the same experiments: the simulator, and an unmodified Linux {judge} \
             in virtual time.\n{LEGEND}{remark}## All of it\n\n{}",
            tables(&files, judge)?
        ))
    }
}

/// When a page was written, and of which commit.
pub fn origin() -> Result<String, Box<dyn Error>> {
    let date = said("date", &["-u", "+%F"])?;
    Ok(format!("{date} · commit {}", said("git", &["rev-parse", "--short", "HEAD"])?))
}

/// What a program prints, without the end of the line.
fn said(program: &str, arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let output = Command::new(program).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_string())
}

/// Runs experiments in both worlds: an overview of all, and a table of each.
fn tables(files: &[PathBuf], judge: Version) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    let (mut all, mut all_agreed) = (Vec::new(), Vec::new());
    for file in files {
        let mut experiment = Experiment::load(file)?;
        crate::in_both(&mut experiment, judge);
        experiment.watches_bios = !is_by_outcome(file);
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
    Ok(format!("{}\n{text}", overview(&Overview::of(&all, &all_agreed))?))
}

/// Whether only what comes of it is compared: experiments in a directory `outcomes`.
fn is_by_outcome(file: &Path) -> bool {
    let directory = file.parent();
    directory.is_some_and(|it| it.ends_with("outcomes") || it.ends_with("fidelity/long"))
}

/// The experiments of a directory, by name.
fn experiments(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
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
            let least = of_row().filter_map(|it| it.share(kind)).reduce(f64::min);
            cells.push(least.map_or("–".to_string(), |it| format!("{:.1} %", 100.0 * it)));
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
    if all.runs == 0 {
        return Ok(text);
    }
    writeln!(
        text,
        "\nRequests are equal in number and sizes in {} of {} runs. Every command is the same in \
         {} of them; {} of all {} commands come before the first difference of their run.",
        all.same_requests, all.runs, all.same_commands, all.commands_before, all.commands
    )?;
    for ((name, (same, count)), least) in Overview::COUNTED.iter().zip(all.alike).zip(all.least) {
        writeln!(
            text,
            "\nThe same in the same order: {name} {same} of {count} ({:.2} %), {:.1} % in the \
             worst run.",
            100.0 * same as f64 / count.max(1) as f64,
            100.0 * least
        )?;
    }
    writeln!(
        text,
        "\nPairs of commands whose order no rule decides, and that differ in it: {}.",
        all.ties
    )?;
    let Spread { median, p90, worst, .. } = all.seeks;
    writeln!(
        text,
        "\nDistributions of seek distances are {median:.2} % apart in the median run, {p90:.2} % \
         in nine of ten, {worst:.1} % in the worst."
    )?;
    Ok(text)
}
