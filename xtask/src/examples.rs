//! Runs fio's own examples on kernels in virtual time, twice: each ends, and is twice the same.
//!
//! `examples [--kernel NAME]… [--calls N] [--only FILE]… [--results]` takes the first files of
//! Debian's `fio-examples` that write blocks, in the order of their names, on three disks and with
//! four schedulers, as somebody types it. `--results` writes `fidelity/results/examples.md`. Exit
//! code 1 if one does not end as expected, or differs from itself.

use crate::Outcome;
use lab::world;
use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode, Output};

/// Where Debian puts them.
const DIRECTORY: &str = "/usr/share/doc/fio/examples";
const MODELS: [&str; 3] = ["hdd-7200-sata", "ssd-sata-m4", "nvme-980pro"];
const SCHEDULERS: &str = "none,mq-deadline,kyber,bfq";
/// Commands of the disk after which a run ends.
const CALLS: &str = "1000";

/// An example, and what somebody adds to run it.
struct Example {
    name: &'static str,
    options: &'static [&'static str],
    /// What fio itself says of it on these disks, where it fails.
    fails: Option<&'static str>,
}

const fn example(name: &'static str, options: &'static [&'static str]) -> Example {
    Example { name, options, fails: None }
}

const EXT4: &[&str] = &["--fs", "ext4"];
const EXT4_SCRATCH: &[&str] = &["--fs", "ext4", "--mount-point", "/scratch"];
const EXT4_TMP: &[&str] = &["--fs", "ext4", "--mount-point", "/tmp"];

/// Those that write blocks, in the order of their names. `falloc` is left out: its ten seconds of
/// calls that reach no disk take minutes.
const EXAMPLES: [Example; 12] = [
    example("basic-verify", &[]),
    example("cmdprio-bssplit", &[]),
    example("cross-stripe-verify", &[]),
    example("dedupe-global", EXT4),
    example("e4defrag", EXT4_SCRATCH),
    example("e4defrag2", EXT4_SCRATCH),
    Example {
        name: "enospc-pressure",
        options: EXT4_SCRATCH,
        fails: Some("it trims a file, which the kernel refuses"),
    },
    example("exitwhat", EXT4_TMP),
    example("fio-rand-RW", EXT4),
    example("fio-rand-write", EXT4),
    example("fio-seq-RW", EXT4),
    example("fio-seq-write", EXT4),
];

/// Runs the command.
pub fn main(arguments: Vec<String>) -> Outcome {
    let (mut kernels, mut calls, mut only) = (Vec::new(), CALLS.to_string(), Vec::new());
    let mut results = false;
    let mut arguments = arguments.into_iter();
    while let Some(word) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{word}: a value is missing"));
        match word.as_str() {
            "--kernel" => kernels.push(value()?),
            "--calls" => calls = value()?,
            "--only" => only.push(value()?),
            "--results" => results = true,
            _ => {
                return Err(
                    format!("{word}: accepted: --kernel, --calls, --only, --results").into()
                );
            }
        }
    }
    if kernels.is_empty() {
        kernels = world::JUDGES.iter().map(ToString::to_string).collect();
    }
    let wanted = |it: &&Example| only.is_empty() || only.iter().any(|name| name == it.name);
    let (mut rows, mut failed) = (String::new(), 0);
    for example in EXAMPLES.iter().filter(wanted) {
        for kernel in &kernels {
            let cells = MODELS.map(|model| cell(example, kernel, model, &calls));
            let cells = cells.into_iter().collect::<Result<Vec<_>, _>>()?;
            failed += cells.iter().filter(|it| !it.is_well).count();
            let texts: Vec<&str> = cells.iter().map(|it| it.text.as_str()).collect();
            let row = format!("| {} | {kernel} | {} |\n", example.name, texts.join(" | "));
            print!("{row}");
            rows.push_str(&row);
        }
    }
    if results {
        std::fs::write("fidelity/results/examples.md", page(&rows, &calls)?)?;
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What has come of an example on one kernel and disk.
struct Cell {
    text: String,
    is_well: bool,
}

fn cell(example: &Example, kernel: &str, model: &str, calls: &str) -> Result<Cell, Box<dyn Error>> {
    let [first, second] =
        [run(example, kernel, model, calls)?, run(example, kernel, model, calls)?];
    let is_same = first.stdout == second.stdout && first.status == second.status;
    let said = String::from_utf8_lossy(&first.stdout);
    let expected = if example.fails.is_some() { 1 } else { 0 };
    let has_ended = first.status.code() == Some(expected);
    let text = match (is_same, has_ended) {
        (false, _) => "differs from itself".to_string(),
        (_, false) => {
            let why = String::from_utf8_lossy(&first.stderr);
            format!("{}: {}", first.status, why.lines().last().unwrap_or_default())
        }
        _ if example.fails.is_some() => "fails twice alike".to_string(),
        _ => rates(&said).join(" · "),
    };
    Ok(Cell { text, is_well: is_same && has_ended })
}

/// As somebody types it, with the program beside this one.
fn run(
    example: &Example,
    kernel: &str,
    model: &str,
    calls: &str,
) -> Result<Output, Box<dyn Error>> {
    let program = std::env::current_exe()?.with_file_name("paternoster");
    let file = Path::new(DIRECTORY).join(format!("{}.fio", example.name));
    let output = Command::new(&program)
        .args(["compare", "--world", "linux", "--kernel", kernel, "-s", SCHEDULERS])
        .args(["--model", model, "--runs", "1", "--calls", calls, "--csv"])
        .args(example.options)
        .arg(file)
        .output();
    Ok(output.map_err(|cause| format!("{}: {cause}", program.display()))?)
}

/// Megabytes per second of each scheduler, all jobs together.
fn rates(csv: &str) -> Vec<String> {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heads = lines.next().unwrap_or_default();
    let column = |name: &str| heads.iter().position(|it| *it == name);
    let columns = [column("scheduler"), column("figure"), column("mean")];
    let [Some(scheduler), Some(figure), Some(mean)] = columns else {
        return vec!["no figures".to_string()];
    };
    let mut found: Vec<(String, f64)> = Vec::new();
    for line in lines.filter(|it| it.len() > mean && it[figure].ends_with(".bw")) {
        let bytes: f64 = line[mean].parse().unwrap_or(0.0);
        match found.last_mut().filter(|it| it.0 == line[scheduler]) {
            Some((_, sum)) => *sum += bytes,
            None => found.push((line[scheduler].to_string(), bytes)),
        }
    }
    let of = |name: &str| found.iter().find(|(scheduler, _)| scheduler.as_str() == name);
    let text =
        |name| of(name).map_or("–".to_string(), |(_, bytes)| format!("{:.3}", bytes / 1e6));
    SCHEDULERS.split(',').map(text).collect()
}

fn page(rows: &str, calls: &str) -> Result<String, Box<dyn Error>> {
    let mut failing = String::new();
    for it in &EXAMPLES {
        if let Some(why) = it.fails {
            failing.push_str(&format!("`{}` fails in fio as well: {why}. ", it.name));
        }
    }
    let typed: Vec<String> = EXAMPLES
        .iter()
        .filter(|it| !it.options.is_empty())
        .map(|it| format!("    {:<16} {}\n", it.name, it.options.join(" ")))
        .collect();
    Ok(format!(
        "# Results: fio's examples on three kernels\n\n\
         {} · `cargo xtask examples --results`\n\n\
         The files of Debian's `fio-examples` that write blocks, from the first in the alphabet \
         on, without `falloc`, \
         most of whose calls reach no disk. Each cell is one \
         command,\n\n    paternoster compare --world linux --kernel KERNEL \
         -s {SCHEDULERS} --model DISK --runs 1 --calls {calls} FILE\n\n\
         which was run twice and said the same both times. Cells have the MB/s of the four \
         schedulers in this order, all jobs\ntogether, up to the {calls}th command of the disk. \
         They tell that the runs ended and what they did; such short runs do\nnot compare \
         schedulers. No figure: no job had ended a request by then, as where fio lays out \
         its 10 GB. {failing}What is added for files:\n\n{}\n\
         | example | kernel | {} |\n|---|---|---|---|---|\n{rows}",
        crate::fidelity::origin()?,
        typed.concat(),
        MODELS.join(" | "),
    ))
}
