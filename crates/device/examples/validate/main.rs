//! Compares the built-in models with their sources and prints the tables of
//! `fidelity/results/devices.md`.
//!
//! `cargo run --release -p paternoster-device --example validate -- --traces DIR`, where `DIR`
//! holds `block_csv/cheetah9LP.trace`; without it the calibration disk is left out.

mod calibration;
mod competition;
mod load;
mod tails;
mod targets;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut traces = std::env::var("PATERNOSTER_TRACES").ok();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.next()) {
            ("--traces", Some(directory)) => traces = Some(directory),
            (other, _) => {
                eprintln!("unknown argument \"{other}\"; accepted: --traces DIR");
                return ExitCode::from(2);
            }
        }
    }
    match traces {
        Some(directory) => {
            if let Err(problem) = calibration::print(&directory) {
                eprintln!("{problem}");
                return ExitCode::from(2);
            }
        }
        None => println!("Calibration disk: skipped, no --traces DIR given.\n"),
    }
    targets::print();
    println!();
    tails::print();
    ExitCode::SUCCESS
}
