//! Prints what the simulator does in every experiment: a line with a fingerprint for each run.
//!
//! `fingerprints --guest|--own EXPERIMENT.toml…`; `--guest`: as beside the world linux, on the host
//! `guest` with the disk behind virtio; `--own`: as the experiment has it.

use crate::Outcome;
use lab::plan::Plan;
use lab::{Experiment, World, matrix};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command.
pub fn main(mut arguments: Vec<String>) -> Outcome {
    let is_guest = match arguments.first().map(String::as_str) {
        Some(word @ ("--guest" | "--own")) => word == "--guest",
        _ => return Err("usage: fingerprints --guest|--own EXPERIMENT.toml…".into()),
    };
    for file in arguments.drain(1..) {
        let result = std::panic::catch_unwind(|| one(&file, is_guest).map_err(|it| it.to_string()));
        match result {
            Ok(Ok(lines)) => print!("{lines}"),
            Ok(Err(error)) => println!("{file}\t{}", error.replace('\n', " ")),
            Err(_) => println!("{file}\tpanicked"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn one(file: &str, is_guest: bool) -> Result<String, Box<dyn Error>> {
    let mut experiment = Experiment::load(Path::new(file))?;
    if is_guest {
        experiment.worlds = vec![World::Sim, World::Linux];
        experiment.watches_bios = true;
    }
    experiment.seeds.truncate(2);
    let mut plan = Plan::new(experiment)?;
    plan.rows.retain(|row| row.world == World::Sim);
    let report = matrix::run(plan, None, 2, &|_| ())?;
    let mut text = String::new();
    let name = Path::new(file).file_name().unwrap().to_string_lossy().to_string();
    for it in &report.results {
        let axes: Vec<String> = it.axes.iter().map(|(k, v)| format!("{k}={v}")).collect();
        text += &format!(
            "{name}\t{}\t{}\t{}\t{}\t{:016x}\t{}\t{}\n",
            it.spec.label(),
            axes.join(" "),
            it.host,
            it.seed,
            it.fingerprint,
            it.elapsed.as_nanos(),
            it.commands.len()
        );
    }
    Ok(text)
}
