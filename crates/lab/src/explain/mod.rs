//! Where the time went and what to change: a run is watched, its calls are taken apart, and
//! detectors look at what comes of it. What they advise is tried in the simulator.

pub mod account;
mod case;
pub mod detectors;
pub mod finding;
pub mod recorded;
mod trial;

use crate::error::Error;
use crate::plan::{Plan, Row};
use crate::worlds;
use crate::{RunResult, SchedulerSpec, World};
use account::{Account, Caller, Names};
use case::{Case, Of};
use finding::Finding;
use insight::{Call, Calls};
use machine::Several;

/// How much is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// So many of the slowest calls are kept.
    pub slowest: usize,
    /// So many seeds are run for each change that is tried; none, and none is.
    pub trials: usize,
}

/// A row, explained.
#[derive(Debug)]
pub struct Explained {
    /// What came of it.
    pub result: RunResult,
    /// Who called, those who waited longest first.
    pub callers: Vec<Caller>,
    /// What was found, the dearest cause first.
    pub findings: Vec<Finding>,
    /// Names of tasks, for the paths of slow calls.
    pub names: Vec<(block::ContextId, String)>,
}

impl Explained {
    /// The scheduler as it was asked for, and the values of axes.
    pub fn label(&self) -> String {
        label_of(&self.result.spec, &self.result.axes)
    }

    /// So many of the slowest calls of all callers, the slowest first.
    pub fn slowest(&self, most: usize) -> Vec<(&Caller, &Call)> {
        let of = |caller| move |call| (caller, call);
        let all = self.callers.iter().flat_map(|caller| caller.slowest.iter().map(of(caller)));
        let mut all: Vec<(&Caller, &Call)> = all.collect();
        all.sort_by_key(|(_, call)| std::cmp::Reverse(call.took()));
        all.truncate(most);
        all
    }

    /// What a task is called here.
    pub fn name_of(&self, context: block::ContextId) -> &str {
        let found = self.names.iter().find(|(known, _)| *known == context);
        found.map_or("interrupt", |(_, name)| name.as_str())
    }
}

/// What a row is called: its scheduler, and the values of its axes.
pub fn label_of(spec: &SchedulerSpec, axes: &[(String, String)]) -> String {
    let axes: Vec<String> = axes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    match axes.is_empty() {
        true => spec.label(),
        false => format!("{} · {}", spec.label(), axes.join(", ")),
    }
}

/// Runs a row in the simulator with a seed; `sink` gets each call with its critical path.
pub fn calls_of(
    plan: &Plan,
    row: &Row,
    seed: u64,
    sink: impl FnMut(Call),
) -> Result<RunResult, Error> {
    let mut calls = Calls::new(Some(row.facts().queue_depth), sink);
    worlds::watch(plan, row, seed, &mut calls)
}

/// Explains each row of a plan with its first seed.
pub fn explain(plan: &Plan, options: Options) -> Result<Vec<Explained>, Error> {
    if plan.rows.iter().all(|row| row.world == World::Linux) {
        let accepted = "--world sim; or compare --record, and explain what that recorded";
        return Err(Error::bad("--world", "calls of a guest are not taken apart", accepted));
    }
    let simulated = plan.rows.iter().filter(|row| row.world == World::Sim);
    simulated.map(|row| explain_row(plan, row, options)).collect()
}

/// Explains one of them.
pub fn explain_row(plan: &Plan, row: &Row, options: Options) -> Result<Explained, Error> {
    let seed = plan.experiment.seeds[0];
    let mut account = Account::new(options.slowest);
    let mut names = Names::default();
    let mut calls = Calls::new(Some(row.facts().queue_depth), |call: Call| account.add(call));
    let result = worlds::watch(plan, row, seed, &mut Several(vec![&mut calls, &mut names]))?;
    drop(calls);
    let callers = account.finish(|task| names.of(row, task));
    let mut findings =
        detectors::detect(&Case { of: Of::Run { row, result: &result }, callers: &callers });
    if options.trials > 0 {
        trial::try_remedies(plan, row, &mut findings, options.trials)?;
    }
    let names = names.all(row);
    Ok(Explained { result, callers, findings, names })
}
