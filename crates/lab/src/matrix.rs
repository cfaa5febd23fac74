//! Runs a plan: every row with every seed, several runs at a time.
//!
//! A run is one thread and depends on nothing but its row and its seed, so the results and their
//! order are the same whatever the number of threads.

use crate::error::Error;
use crate::plan::{Plan, Row};
use crate::record;
use crate::result::RunResult;
use crate::worlds::Worlds;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed = AtomicBool::new(false);
    let slots: Vec<Mutex<Option<Result<RunResult, Error>>>> =
        runs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((row, seed)) = runs.get(index) else { break };
            let result = worlds.run(row, *seed, record_to);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            *slots[index].lock().expect("nobody panicked with the lock") = Some(result);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, runs.len().max(1)) {
            scope.spawn(work);
        }
    });
    drop(worlds);
    let finished = slots.into_iter().filter_map(|slot| slot.into_inner().expect("as above"));
    match finished.collect::<Result<Vec<_>, _>>() {
        Ok(results) => Ok(Report { plan, results }),
        Err(error) => {
            if let Some(directory) = record_to {
                record::remove_directories(&plan, directory, existed);
            }
            Err(error)
        }
    }
}
