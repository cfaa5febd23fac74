//! Holds runs of the simulator against recordings of a real 4.19.
//!
//! `outcomes DIRECTORY [--only NAME] [--seeds N] [--record DIR]`: what each recording below the
//! directory ran is run on the model of its disk and on the host `icount`, with the scheduler,
//! tunables and control groups of its manifest, and what each job saw is put beside what the
//! recording says. The table is `fidelity/results/recorded-4.19.md`. With `--record` the first seed
//! of each is written as text, an event a line.

mod run;
mod table;
mod trace;

use crate::Outcome;
use lab::recordings::Recording;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Figures that need more seeds than this to be called chaotic or not are called neither.
const MOST_SEEDS: u64 = 30;

/// What was asked for.
struct Options {
    directory: PathBuf,
    only: String,
    seeds: u64,
    record: Option<PathBuf>,
}

/// Runs the command.
pub fn main(arguments: Vec<String>) -> Outcome {
    let options = options(arguments.into_iter())?;
    let mut compared = Vec::new();
    for recording in Recording::below(&options.directory)? {
        if !recording.name.starts_with(&options.only) {
            continue;
        }
        match compare(&recording, &options) {
            Ok(found) => compared.push(found),
            Err(left_out) => eprintln!("{}: {left_out}", recording.name),
        }
    }
    print!("{}", table::text(&compared));
    Ok(ExitCode::SUCCESS)
}

/// Runs a recording's load, with as many seeds as say whether its figures are chaotic if that is
/// not too many.
fn compare(recording: &Recording, options: &Options) -> Result<table::Compared, Box<dyn Error>> {
    let mut seeds = options.seeds;
    loop {
        let runs = run::all(recording, seeds, options.record.as_deref())?;
        let found = table::Compared::new(recording, &runs);
        match found.seeds_needed().map(|it| it as u64) {
            Some(needed) if needed > seeds && seeds < MOST_SEEDS => seeds = needed.min(MOST_SEEDS),
            _ => return Ok(found),
        }
    }
}

fn options(words: impl Iterator<Item = String>) -> Result<Options, String> {
    const USAGE: &str = "usage: outcomes DIRECTORY [--only NAME] [--seeds N] [--record DIR]";
    let mut found =
        Options { directory: PathBuf::new(), only: String::new(), seeds: 3, record: None };
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(USAGE);
        match word.as_str() {
            "--only" => found.only = value()?,
            "--seeds" => found.seeds = value()?.parse().map_err(|_| USAGE)?,
            "--record" => found.record = Some(PathBuf::from(value()?)),
            directory => found.directory = PathBuf::from(directory),
        }
    }
    match found.directory == Path::new("") || found.seeds == 0 {
        true => Err(USAGE.to_string()),
        false => Ok(found),
    }
}
