//! Where requests spend their time, the simulator against the kernel: by layer, of recordings.
//!
//! `layers [--kernel NAME] [--scheduler NAME] [COUNT [SEED]]`: so many random experiments past the
//! page cache and as many with files run in both worlds and are recorded; the recordings are read
//! alike. A layer counts where it has a twentieth of the kernel's time, btt's phases likewise.

use crate::{Outcome, recorded};
use lab::explain::recorded::{Explained, Options, explain};
use lab::fidelity::{Spread, random};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

/// What of all time a layer has that counts, in percent.
const LEAST: f64 = 5.0;

/// Errors in percent, by layer or phase.
type Errors = BTreeMap<String, Vec<f64>>;

/// Runs the command.
pub fn main(mut arguments: Vec<String>) -> Outcome {
    let judge = crate::judge(&mut arguments)?;
    let scheduler = crate::value_of(&mut arguments, "--scheduler");
    let numbers: Vec<u64> = arguments.iter().map(|it| it.parse()).collect::<Result<_, _>>()?;
    let of = |place: usize, otherwise| numbers.get(place).copied().unwrap_or(otherwise);
    let (count, seed) = (of(0, 20), of(1, 1));
    let (mut errors, mut runs) = (Errors::new(), 0);
    for number in 0..count {
        let raw = random::experiment(seed, number, scheduler.as_deref());
        let files = random::files::experiment(seed, number, scheduler.as_deref());
        for text in [raw, files] {
            match recorded::in_both("random", &text, judge, |it| compare(it, &mut errors)) {
                Ok(found) => runs += found,
                Err(error) => eprintln!("\nexperiment {number}: {error}"),
            }
        }
        eprint!("\r{} of {count} ", number + 1);
    }
    eprintln!();
    println!("{runs} runs in both worlds, kernel {judge}, seed {seed}\n");
    println!("| layer or phase | median | nine of ten | worst | runs |\n|---|---|---|---|---|");
    for (name, errors) in errors {
        let Spread { median, p90, worst, count } = Spread::of(errors);
        println!("| {name} | {median:.2} % | {p90:.2} % | {worst:.1} % | {count} |");
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds how far the layers of a pair are apart.
fn compare(pair: &recorded::Pair, errors: &mut Errors) -> Result<(), Box<dyn Error>> {
    let read = |path: &Path| explain(path, &Options::default(), &mut |_| ());
    let (sim, linux) = (times(&read(&pair.sim)?), times(&read(&pair.linux)?));
    for (name, (there, share)) in &linux {
        if *share >= LEAST {
            let here = sim.get(name).map_or(0.0, |it| it.0);
            let error = 100.0 * (here - there).abs() / there;
            errors.entry(name.clone()).or_default().push(error);
        }
    }
    Ok(())
}

/// Of each layer and each phase: nanoseconds a request, and its share of all time in percent.
fn times(it: &Explained) -> BTreeMap<String, (f64, f64)> {
    let requests = it.requests.max(1) as f64;
    let sum = |times: &base::Histogram| times.sum() as f64 / requests;
    let all: f64 = it.layers.iter().map(|(_, times)| sum(times.histogram())).sum();
    let layers = it.layers.iter().map(|(layer, times)| {
        let time = sum(times.histogram());
        (format!("layer {layer}"), (time, 100.0 * time / all))
    });
    let phases = it.phases.rows().into_iter().filter(|it| it.0 != "Q2Q").map(|(name, spread)| {
        (format!("phase {name}"), (spread.mean(), it.phases.percent(spread)))
    });
    layers.chain(phases).collect()
}
