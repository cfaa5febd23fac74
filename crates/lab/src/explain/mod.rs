//! Where the time went and what to change: a run is watched, its calls are taken apart, and
//! detectors look at what comes of it.

use crate::error::Error;
use crate::plan::{Plan, Row};
use crate::worlds;
use insight::{Call, Calls};

/// Runs a row in the simulator with a seed; `sink` gets each call with its critical path.
pub fn calls_of(
    plan: &Plan,
    row: &Row,
    seed: u64,
    sink: impl FnMut(Call),
) -> Result<crate::RunResult, Error> {
    let mut calls = Calls::new(Some(row.facts().queue_depth), sink);
    worlds::watch(plan, row, seed, &mut calls)
}
