//! The layers of every call add up to it, whatever runs: each experiment, each load of the suites
//! that are held against the kernel, each of fio's examples, and whole runs made up at random.

use base::Duration;
use insight::{Call, Layer};
use lab::Experiment;
use lab::explain::calls_of;
use lab::fidelity::random::whole;
use lab::plan::Plan;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A run is cut off after so many calls.
const MOST_CALLS: u64 = 600;

fn check(call: &Call) {
    let mut at = call.entered;
    for piece in &call.path {
        assert_eq!(
            piece.from, at,
            "a gap in {:?} of {:?}, {:?}",
            call.call, call.task, call.entered
        );
        assert!(piece.to > piece.from, "{piece:?}");
        if let (Some(_), true) = (piece.commit, call.commits.is_empty()) {
            panic!("{piece:?} is of a commit, and nobody knows whose");
        }
        if piece.stage.is_some() {
            assert!(matches!(piece.layer, Layer::Device | Layer::Shared), "{piece:?}");
        }
        at = piece.to;
    }
    assert_eq!(at, call.ended, "{:?} of {:?}", call.call, call.task);
}

/// Runs some rows of an experiment, cut short; how many calls it had, and where their time went.
fn layers(experiment: Experiment, most_rows: usize) -> (u64, BTreeMap<Layer, Duration>) {
    let mut plan = Plan::new(experiment).unwrap();
    let step = plan.rows.len().div_ceil(most_rows);
    let (mut count, mut sums) = (0, BTreeMap::new());
    for number in (0..plan.rows.len()).step_by(step.max(1)) {
        let row = &mut plan.rows[number];
        row.most_calls = Some(row.most_calls.unwrap_or(MOST_CALLS).min(MOST_CALLS));
        let row = plan.rows[number].clone();
        let seen = calls_of(&plan, &row, plan.experiment.seeds[0], |call: Call| {
            check(&call);
            count += 1;
            for piece in &call.path {
                *sums.entry(piece.layer).or_insert(Duration::ZERO) += piece.length();
            }
        });
        // What fio refuses, and what a device is too small for, is refused here as elsewhere.
        if let Err(error) = seen {
            assert!(error.is_bad_input(), "{error}");
        }
    }
    (count, sums)
}

fn experiments(below: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(below);
    let entries = std::fs::read_dir(root).unwrap().map(|it| it.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|it| it.extension().is_some_and(|it| it == "toml")).collect();
    files.sort();
    files
}

/// Runs what is in a directory; where all the time went.
fn all_in(directory: &str) -> BTreeMap<Layer, Duration> {
    let mut all = BTreeMap::new();
    for file in experiments(directory) {
        let text = std::fs::read_to_string(&file).unwrap();
        let Ok(experiment) = Experiment::parse(&file.display().to_string(), &text) else {
            continue;
        };
        let (count, sums) = layers(experiment, 1);
        println!("{}: {count} calls, {sums:?}", file.display());
        sums.into_iter().for_each(|(layer, time)| *all.entry(layer).or_default() += time);
    }
    all
}

#[test]
fn layers_add_up_in_every_experiment() {
    let sums = all_in("experiments");
    for layer in [Layer::Computing, Layer::Device, Layer::Others, Layer::Full, Layer::Page] {
        assert!(sums.contains_key(&layer), "{layer} never occurs");
    }
    assert!(sums.keys().any(|it| matches!(it, Layer::Held(_))));
}

#[test]
fn layers_add_up_in_whole_runs_made_up_at_random() {
    let mut count = 0;
    for number in 0..60 {
        let text = whole::experiment(11, number);
        let Ok(experiment) = Experiment::parse("random.toml", &text) else { continue };
        if Plan::new(experiment.clone()).is_err() {
            continue;
        }
        count += layers(experiment, 1).0;
    }
    assert!(count > 5_000, "{count}");
}
