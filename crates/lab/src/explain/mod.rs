//! Where the time went and what to change: a run is watched, its calls are taken apart, and
//! detectors look at what comes of it. What they advise is tried in the simulator.

pub mod account;
mod case;
pub mod detectors;
pub mod finding;
pub mod recorded;
mod trial;

use crate::error::Error;
use crate::parallel;
use crate::plan::{Plan, Row};
use crate::worlds;
use crate::{RunResult, SchedulerSpec, World};
use account::{Account, Caller, Names};
use case::{Case, Of};
use finding::Finding;
use insight::{Call, Calls};
use machine::Several;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// How many runs there are and how many of them are done, told whenever either changes. What has
/// to be tried is known only when rows are explained.
pub struct Runs<'p> {
    tell: &'p (dyn Fn(usize, usize) + Sync),
    all: AtomicUsize,
    done: AtomicUsize,
}

impl<'p> Runs<'p> {
    /// `tell` is given how many are done, and how many there are.
    fn new(tell: &'p (dyn Fn(usize, usize) + Sync)) -> Runs<'p> {
        Runs { tell, all: AtomicUsize::new(0), done: AtomicUsize::new(0) }
    }

    fn more(&self, runs: usize) {
        let all = self.all.fetch_add(runs, Ordering::Relaxed) + runs;
        (self.tell)(self.done.load(Ordering::Relaxed), all);
    }

    fn done(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.tell)(done, self.all.load(Ordering::Relaxed));
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

/// The same, while the names of tasks are written down.
fn watched(
    plan: &Plan,
    row: &Row,
    seed: u64,
    names: &mut Names,
    sink: impl FnMut(Call),
) -> Result<RunResult, Error> {
    let mut calls = Calls::new(Some(row.facts().queue_depth), sink);
    worlds::watch(plan, row, seed, &mut Several(vec![&mut calls, names]))
}

/// Explains each row of a plan with its first seed. `progress` is told how many runs are done, and
/// how many there are as far as it is known.
pub fn explain(
    plan: &Plan,
    options: Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<Explained>, Error> {
    if plan.rows.iter().all(|row| row.world == World::Linux) {
        let accepted = "--world sim; or compare --record, and explain what that recorded";
        return Err(Error::bad("--world", "calls of a guest are not taken apart", accepted));
    }
    let rows: Vec<&Row> = plan.rows.iter().filter(|row| row.world == World::Sim).collect();
    explain_rows(plan, &rows, options, &Runs::new(progress))
}

/// Explains one of them.
pub fn explain_row(plan: &Plan, row: &Row, options: Options) -> Result<Explained, Error> {
    let explained = explain_rows(plan, &[row], options, &Runs::new(&|_, _| ()))?;
    Ok(explained.into_iter().next().expect("there is one for each row"))
}

fn explain_rows(
    plan: &Plan,
    rows: &[&Row],
    options: Options,
    runs: &Runs<'_>,
) -> Result<Vec<Explained>, Error> {
    runs.more(rows.len());
    let examine = |row: &&Row| examine(plan, row, options.slowest);
    let mut explained = parallel::each(rows, parallel::threads(), examine, || runs.done())?;
    if options.trials > 0 {
        trial::try_remedies(plan, rows, &mut explained, options.trials, runs)?;
    }
    Ok(explained)
}

/// Says where the time of a row went; nothing is tried yet.
fn examine(plan: &Plan, row: &Row, slowest: usize) -> Result<Explained, Error> {
    let seed = plan.experiment.seeds[0];
    let (mut account, mut names) = (Account::new(slowest), Names::default());
    let result = watched(plan, row, seed, &mut names, |call| account.add(call))?;
    let callers = account.finish(|task| names.of(row, task));
    let findings =
        detectors::detect(&Case { of: Of::Run { row, result: &result }, callers: &callers });
    let names = names.all(row);
    Ok(Explained { result, callers, findings, names })
}
