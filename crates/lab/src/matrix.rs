//! Runs a plan: every row with every seed, several runs at a time.
//!
//! A run is one thread and depends on nothing but its row and its seed, so the results and their
//! order are the same whatever the number of threads.

use crate::error::Error;
use crate::parallel;
use crate::plan::{Plan, Row};
use crate::record;
use crate::result::RunResult;
use crate::worlds::Worlds;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What came of a plan.
#[derive(Debug)]
pub struct Report {
    /// What was run.
    pub plan: Plan,
    /// A result for each row and seed: rows in the order of the plan, within them seeds.
    pub results: Vec<RunResult>,
}

/// Runs everything. `progress` is told how many runs are done whenever one is.
pub fn run(
    plan: Plan,
    record_to: Option<&Path>,
    threads: usize,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Report, Error> {
    let worlds = Worlds::of(&plan)?;
    let seeds = &plan.experiment.seeds;
    let runs: Vec<(&Row, u64)> =
        plan.rows.iter().flat_map(|row| seeds.iter().map(move |seed| (row, *seed))).collect();
    let existed = record_to.is_some_and(Path::exists);
    let finished = AtomicUsize::new(0);
    let done = || progress(finished.fetch_add(1, Ordering::Relaxed) + 1);
    let run = |(row, seed): &(&Row, u64)| worlds.run(row, *seed, record_to);
    let results = parallel::each(&runs, threads, run, done);
    drop(worlds);
    let results = results.and_then(|it| plan.check_metric(it.iter()).map(|()| it));
    match results {
        Ok(results) => Ok(Report { plan, results }),
        Err(error) => {
            if let Some(directory) = record_to {
                record::remove_directories(&plan, directory, existed);
            }
            Err(error)
        }
    }
}
