//! Whether what is advised helps: the same load with the change, seed by seed. All runs of all
//! rows are spread over the cores, and none is run twice.

use super::account::{Account, Caller};
use super::actors::Actors;
use super::finding::{Change, Finding, Gain, Remedy, Weight};
use super::focus::Focus;
use super::{Explained, Options, Runs, added_up, named};
use crate::error::Error;
use crate::metrics::CallKind;
use crate::parallel;
use crate::plan::{Plan, Row};
use base::Duration;
use std::collections::BTreeMap;

/// So many causes have their remedies tried.
const MOST_CAUSES: usize = 6;
/// What makes calls shorter by less than this is no remedy.
const LEAST: f64 = 1.25;

/// The mean of calls, or the figure that was asked for, by job and kind.
pub type Figures = BTreeMap<Victim, Duration>;
/// A job and a kind of calls.
type Victim = (String, CallKind);

/// A row as it is or with a change, and what came of it, seed by seed.
struct Tried {
    row: Row,
    /// What is known of it; nothing where a program failed.
    figures: Vec<Option<Figures>>,
}

/// Which of those that are tried a row and its changes are.
struct Wanted {
    before: usize,
    after: Vec<(Change, usize)>,
}

/// Tries the remedies of the first causes of rows with so many seeds, and leaves out what does not
/// help.
pub fn try_remedies(
    plan: &Plan,
    rows: &[&Row],
    explained: &mut [Explained],
    options: &Options,
    runs: &Runs<'_>,
) -> Result<(), Error> {
    let seeds = options.trials;
    let known = |(row, it): (&&Row, &Explained)| Tried {
        row: (*row).clone(),
        figures: vec![it.figures.clone()],
    };
    let mut tried: Vec<Tried> = rows.iter().zip(explained.iter()).map(known).collect();
    let wanted = explained.iter().enumerate().map(|(row, it)| want(row, it, &mut tried));
    let wanted: Vec<Wanted> = wanted.collect();
    let used =
        |at: usize| wanted.iter().any(|it| !it.after.is_empty() && (it.before == at || it.has(at)));
    let first = plan.experiment.seeds[0];
    let missing = |(at, it): (usize, &Tried)| {
        let from = if used(at) { it.figures.len() } else { seeds };
        (from..seeds).map(move |seed| (at, first.saturating_add(seed as u64))).collect::<Vec<_>>()
    };
    let missing: Vec<(usize, u64)> = tried.iter().enumerate().flat_map(missing).collect();
    runs.more(missing.len());
    let run = |(at, seed): &(usize, u64)| run(plan, &tried[*at].row, *seed, options.focus.as_ref());
    let figures = parallel::each(&missing, parallel::threads(), run, || runs.done())?;
    for ((at, _), figures) in missing.iter().zip(figures) {
        tried[*at].figures.push(figures);
    }
    for (wanted, it) in wanted.iter().zip(explained) {
        let figures = |at: usize| &tried[at].figures[..seeds.min(tried[at].figures.len())];
        let after = |change: &Change| wanted.after.iter().find(|it| it.0 == *change);
        judge(&mut it.findings, |change| {
            after(change).map(|(_, after)| (figures(wanted.before), figures(*after)))
        });
    }
    Ok(())
}

impl Wanted {
    fn has(&self, at: usize) -> bool {
        self.after.iter().any(|it| it.1 == at)
    }
}

/// What has to be tried for a row; rows with a change that nobody has yet are added.
fn want(row: usize, explained: &Explained, tried: &mut Vec<Tried>) -> Wanted {
    let mut wanted = Wanted { before: row, after: Vec::new() };
    let remedies = explained.findings.iter().filter(is_tried).take(MOST_CAUSES);
    for change in remedies.flat_map(|it| &it.remedies).filter_map(|it| it.change.as_ref()) {
        let is_known = wanted.after.iter().any(|it| it.0 == *change);
        let Some(changed) = (!is_known).then(|| changed(&tried[row].row, change).ok()).flatten()
        else {
            continue;
        };
        let there = tried.iter().position(|it| it.row.does_the_same(&changed));
        let at = there.unwrap_or_else(|| {
            tried.push(Tried { row: changed, figures: Vec::new() });
            tried.len() - 1
        });
        wanted.after.push((change.clone(), at));
    }
    wanted
}

fn is_tried(it: &&Finding) -> bool {
    it.is_cause() || it.suspected
}

/// A row with a change.
fn changed(row: &Row, change: &Change) -> Result<Row, Error> {
    match change {
        Change::Scheduler(name) => row.with_scheduler(name),
        Change::Tunables(values) => row.with_values(values),
        Change::Setting(name, value) => row.with_values(&[(*name, *value)]),
    }
}

/// What comes of a row with a seed; nothing if a program fails.
fn run(plan: &Plan, row: &Row, seed: u64, focus: Option<&Focus>) -> Result<Option<Figures>, Error> {
    let (result, tasks, account) = added_up(plan, row, seed, Account::new(0))?;
    let actors = Actors::of(row, &tasks, &account.tasks());
    let callers = named(account, &actors);
    Ok(result.succeeded().then(|| figures_of(&callers, focus)))
}

/// The figures of callers.
pub fn figures_of(callers: &[Caller], focus: Option<&Focus>) -> Figures {
    let value = |it: &Caller| focus.map_or(it.mean(), |focus| focus.value(it));
    callers.iter().map(|it| ((it.job.clone(), it.kind), value(it))).collect()
}

/// Says of each remedy what came of it; causes without one that helps are notes.
fn judge<'t>(
    findings: &mut [Finding],
    tried: impl Fn(&Change) -> Option<(&'t [Option<Figures>], &'t [Option<Figures>])>,
) {
    for finding in findings.iter_mut().filter(|it| is_tried(&&**it)).take(MOST_CAUSES) {
        let victim = (finding.victim.clone(), finding.kind);
        for remedy in &mut finding.remedies {
            let tried = remedy.change.as_ref().and_then(&tried);
            remedy.gain = tried.and_then(|(before, after)| gain(before, after, &victim));
        }
        keep_what_helps(finding);
    }
    findings.sort_by_key(|it| (it.weight, std::cmp::Reverse(it.cost)));
}

fn keep_what_helps(finding: &mut Finding) {
    let tried = finding.remedies.iter().filter(|it| it.gain.is_some()).count();
    let suspected = finding.suspected;
    // What helps one as much as it hurts another proves nothing.
    finding.remedies.retain(|it| helps(it) && !(suspected && costs(it)));
    let helpful = finding.remedies.iter().filter(|it| it.gain.is_some()).count();
    if helpful > 0 {
        finding.weight = Weight::Cause;
    }
    // What no change makes better is how things are.
    if tried > 0 && helpful == 0 && finding.is_cause() {
        finding.weight = Weight::Note;
        finding.evidence.push(match tried {
            1 => "one change was tried, and it does not help".to_string(),
            _ => format!("{tried} changes were tried, and none helps"),
        });
    }
    let times = |it: &Remedy| it.gain.as_ref().map_or(0.0, |it| it.times[0]);
    finding.remedies.sort_by(|one, other| times(other).total_cmp(&times(one)));
}

/// Whether a remedy was not tried, or helps with every seed.
fn helps(remedy: &Remedy) -> bool {
    match (&remedy.change, &remedy.gain) {
        (None, _) => true,
        (Some(_), gain) => gain.as_ref().is_some_and(|it| it.times[0] >= LEAST),
    }
}

/// Whether somebody else pays for it.
fn costs(remedy: &Remedy) -> bool {
    remedy.gain.as_ref().is_some_and(|it| it.price.is_some())
}

fn gain(before: &[Option<Figures>], after: &[Option<Figures>], victim: &Victim) -> Option<Gain> {
    let all_before: Vec<&Figures> = before.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let all_after: Vec<&Figures> = after.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let of = |figures: &[&Figures]| -> Option<Vec<Duration>> {
        figures.iter().map(|it| it.get(victim).copied()).collect()
    };
    let (before, after) = (of(&all_before)?, of(&all_after)?);
    let nanos = |it: &Duration| it.as_nanos().max(1) as f64;
    let times: Vec<f64> =
        before.iter().zip(&after).map(|(one, other)| nanos(one) / nanos(other)).collect();
    let mean = |all: &[Duration]| {
        let sum: u64 = all.iter().map(|it| it.as_nanos()).sum();
        Duration::from_nanos(sum / all.len().max(1) as u64)
    };
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = times.iter().copied().fold(0.0, f64::max);
    Some(Gain {
        before: mean(&before),
        after: mean(&after),
        times: [least, most],
        price: price(&all_before, &all_after, victim),
        seeds: times.len(),
    })
}

/// Whose calls become how many times longer, in the mean of seeds.
fn price(before: &[&Figures], after: &[&Figures], victim: &Victim) -> Option<(String, f64)> {
    let sum = |all: &[&Figures], key: &Victim| -> u64 {
        all.iter().filter_map(|it| it.get(key)).map(|it| it.as_nanos()).sum()
    };
    let longer = |key: &Victim| sum(after, key) as f64 / sum(before, key).max(1) as f64;
    let others = before.first()?.keys().filter(|it| it.0 != victim.0);
    let worst = others.map(|it| (it.0.clone(), longer(it))).max_by(|a, b| a.1.total_cmp(&b.1));
    worst.filter(|it| it.1 >= LEAST)
}
