//! Where the time went and what to change: a run is watched, its calls are taken apart, and
//! detectors look at what comes of it. What they advise is tried in the simulator.

pub mod account;
pub mod actors;
mod case;
pub mod detectors;
pub mod finding;
pub mod focus;
pub mod recorded;
mod trial;

use crate::error::Error;
use crate::parallel;
use crate::plan::{Plan, Row};
use crate::worlds;
use crate::{RunResult, SchedulerSpec, World};
use account::{Account, CallId, Caller};
use actors::Actors;
use case::{Case, Of};
use finding::Finding;
use focus::{Focus, Only};
use insight::{Call, Calls};
use machine::TaskInfo;
use std::sync::atomic::{AtomicUsize, Ordering};
use trial::Figures;

/// How much is asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Calls that are looked at, if not all.
    pub focus: Option<Focus>,
    /// Whether somebody asked for these, who wants to hear of them however rare they are.
    pub is_asked: bool,
    /// Calls that are looked at where nothing was found about all of them.
    pub otherwise: Option<Focus>,
    /// So many of the slowest calls are kept.
    pub slowest: usize,
    /// A call that is kept besides.
    pub call: Option<CallId>,
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
    /// Who took part.
    pub actors: Actors,
    /// The call that was to be kept, if there was such a one.
    pub picked: Option<Call>,
    /// Which calls were looked at, if not all, in a sentence.
    pub looked_at: Option<String>,
    /// The figures that changes are to make better, if no program failed.
    figures: Option<Figures>,
}

impl Explained {
    /// The scheduler as it was asked for, and the values of axes.
    pub fn label(&self) -> String {
        label_of(&self.result.spec, &self.result.axes)
    }

    /// By what its findings are ranked, where that is not the figure by which a plan judges.
    pub fn ranked_otherwise(&self, plan: &Plan) -> Option<String> {
        let focus = plan.metric.as_ref().map(Focus::of)?;
        let is_other = focus.is_of_calls() && !focus.is_of_all() && self.looked_at.is_none();
        let name = focus.name();
        (is_other && !self.findings.is_empty()).then(|| {
            format!(
                "Findings are ranked by the time that they cost all calls; --metric {name} looks \
                 at those calls that {name} is of, and ranks by it"
            )
        })
    }

    /// Whether something was found that is more than a note, about somebody who is waited for.
    pub fn has_cause(&self) -> bool {
        self.findings.iter().any(|it| it.is_cause() && !it.is_in_background)
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
    worlds::watch(plan, row, seed, &mut calls).map(|(result, _)| result)
}

/// Runs a row in the simulator with a seed, and adds its calls up; all tasks come with it.
fn added_up(
    plan: &Plan,
    row: &Row,
    seed: u64,
    mut account: Account,
) -> Result<(RunResult, Vec<TaskInfo>, Account), Error> {
    let add = |call: Call| account.add(call);
    let mut calls = Calls::new(Some(row.facts().queue_depth), add);
    let (result, tasks) = worlds::watch(plan, row, seed, &mut calls)?;
    drop(calls);
    Ok((result, tasks, account))
}

/// The callers of an account by the names of actors.
fn named(account: Account, actors: &Actors) -> Vec<Caller> {
    let mut callers = account.finish(|task| actors.name(task).to_string());
    for part in callers.iter_mut().flat_map(|it| &mut it.parts) {
        // Requests of interrupts are nobody's.
        part.behind.take_if(|it| it == actors::INTERRUPT);
    }
    callers
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
    look_twice(plan, &rows, &options, &Runs::new(progress))
}

/// Explains one of them.
pub fn explain_row(plan: &Plan, row: &Row, options: Options) -> Result<Explained, Error> {
    let explained = look_twice(plan, &[row], &options, &Runs::new(&|_, _| ()))?;
    Ok(explained.into_iter().next().expect("there is one for each row"))
}

/// Explains rows, and looks once more where nothing was found: at those calls for which that was
/// asked.
fn look_twice(
    plan: &Plan,
    rows: &[&Row],
    options: &Options,
    runs: &Runs<'_>,
) -> Result<Vec<Explained>, Error> {
    let mut explained = explain_rows(plan, rows, options, runs)?;
    let Some(focus) = &options.otherwise else { return Ok(explained) };
    let focused = Options { focus: Some(focus.clone()), otherwise: None, ..options.clone() };
    for (row, it) in rows.iter().zip(&mut explained).filter(|(_, it)| !it.has_cause()) {
        let again = explain_rows(plan, &[row], &focused, runs)?;
        again.into_iter().filter(Explained::has_cause).for_each(|again| *it = again);
    }
    Ok(explained)
}

fn explain_rows(
    plan: &Plan,
    rows: &[&Row],
    options: &Options,
    runs: &Runs<'_>,
) -> Result<Vec<Explained>, Error> {
    // With calls that are to be looked at each runs twice.
    runs.more(rows.len() * if options.focus.is_some() { 2 } else { 1 });
    let examine = |row: &&Row| examine(plan, row, options, runs);
    let mut explained = parallel::each(rows, parallel::threads(), examine, || runs.done())?;
    if options.trials > 0 {
        trial::try_remedies(plan, rows, &mut explained, options, runs)?;
    }
    for it in &mut explained {
        // That something is set is nothing to speak of.
        it.findings.retain(|it| !it.is_setting() || it.is_cause() || !it.suspected);
        trial::leave_out_what_is_said(&mut it.findings);
        trial::leave_out_what_one_does(&mut it.findings);
        trial::leave_out_the_device(&mut it.findings);
        detectors::sort(&mut it.findings);
        // Who is named by the metric is to be helped first.
        if let Some(focus) = options.otherwise.as_ref().filter(|it| it.names_a_job()) {
            it.findings.sort_by_key(|it| (it.weight, !focus.is_about(&it.victim, it.kind)));
        }
        detectors::merge(&mut it.findings);
    }
    Ok(explained)
}

/// Says where the time of a row went; nothing is tried yet.
fn examine(plan: &Plan, row: &Row, options: &Options, runs: &Runs<'_>) -> Result<Explained, Error> {
    let seed = plan.experiment.seeds[0];
    let account = Account::new(options.slowest).picking(options.call);
    let (result, tasks, mut account) = added_up(plan, row, seed, account)?;
    let picked = account.take_picked();
    let actors = Actors::of(row, &tasks, &account.tasks());
    let mut callers = named(account, &actors);
    let figures = trial::figures_of(&callers, options);
    let mut explained = Explained {
        figures: result.succeeded().then_some(figures),
        actors,
        picked,
        looked_at: None,
        callers: Vec::new(),
        findings: Vec::new(),
        result,
    };
    let mut makes = None;
    if let Some(focus) = &options.focus {
        let found = match focus.is_in(&explained.result) {
            true => focused(plan, row, options, &explained.actors, &callers)?,
            false => None,
        };
        runs.done();
        makes = found.as_ref().and_then(|(only, _)| only.makes().cloned());
        explained.look_at(focus, found, &mut callers);
    }
    let of = Of::Run { row, result: &explained.result, actors: &explained.actors };
    let (makes, is_asked) = (makes.as_ref(), options.is_asked);
    explained.findings = detectors::detect(&Case { makes, is_asked, ..Case::of(of, &callers) });
    explained.callers = callers;
    if let Some(focus) = &options.focus {
        explained.callers.retain(|it| focus.is_about(&it.job, it.kind));
        explained.findings.retain(|it| focus.is_about(&it.victim, it.kind));
    }
    Ok(explained)
}

/// The calls that are to be looked at, and who made them; nothing if there is none. The row runs
/// once more, for only now is it known which they are.
fn focused(
    plan: &Plan,
    row: &Row,
    options: &Options,
    actors: &Actors,
    callers: &[Caller],
) -> Result<Option<(Only, Vec<Caller>)>, Error> {
    let only = options.focus.as_ref().and_then(|it| it.only(actors, callers));
    let Some(only) = only else { return Ok(None) };
    let account = Account::new(options.slowest).only(only.clone());
    let (_, _, account) = added_up(plan, row, plan.experiment.seeds[0], account)?;
    Ok(Some((only, named(account, actors))))
}

impl Explained {
    /// Puts those in the place of all calls of their callers.
    fn look_at(
        &mut self,
        focus: &Focus,
        found: Option<(Only, Vec<Caller>)>,
        callers: &mut Vec<Caller>,
    ) {
        let calls = |of: &[Caller]| -> u64 {
            let its = of.iter().filter(|it| focus.is_about(&it.job, it.kind));
            its.map(|it| it.calls).sum()
        };
        let all = calls(callers);
        callers.retain(|it| !focus.is_about(&it.job, it.kind));
        self.looked_at = Some(match found {
            Some((only, few)) => {
                let sentence = focus.sentence(calls(&few), all, &only);
                callers.extend(few);
                callers.sort_by_key(|it| std::cmp::Reverse(it.total));
                sentence
            }
            None => focus.nothing(),
        });
    }
}
