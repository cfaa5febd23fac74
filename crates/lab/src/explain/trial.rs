//! Whether what is advised helps: the same load with the change, seed by seed.

use super::account::{Account, Caller, Names};
use super::finding::{Change, Finding, Gain, Remedy, Weight};
use crate::error::Error;
use crate::experiment::{Axis, Setting};
use crate::metrics::CallKind;
use crate::plan::{Plan, Row};
use crate::worlds;
use base::Duration;
use insight::{Call, Calls};
use machine::Several;
use std::collections::BTreeMap;

/// So many causes have their remedies tried.
const MOST_CAUSES: usize = 6;
/// What makes calls shorter by less than this is no remedy.
const LEAST: f64 = 1.25;

/// The mean of calls, by job and kind.
type Means = BTreeMap<Victim, Duration>;
/// A job and a kind of calls.
type Victim = (String, CallKind);

/// Tries the remedies of the first causes with so many seeds, and leaves out those that do not
/// help.
pub fn try_remedies(
    plan: &Plan,
    row: &Row,
    findings: &mut [Finding],
    seeds: usize,
) -> Result<(), Error> {
    let mut known: Vec<(Option<Change>, Vec<Means>)> = Vec::new();
    let is_tried = |it: &&mut Finding| it.is_cause() || it.suspected;
    for finding in findings.iter_mut().filter(is_tried).take(MOST_CAUSES) {
        let victim = (finding.victim.clone(), finding.kind);
        for remedy in &mut finding.remedies {
            let Some(change) = remedy.change.clone() else { continue };
            let before = means(plan, row, None, seeds, &mut known)?;
            let Ok(after) = means(plan, row, Some(change), seeds, &mut known) else { continue };
            remedy.gain = gain(&before, &after, &victim);
        }
        let tried = finding.remedies.iter().filter(|it| it.change.is_some()).count();
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
            finding.evidence.push(format!("{tried} changes were tried, and none helps"));
        }
        let times = |it: &Remedy| it.gain.as_ref().map_or(0.0, |it| it.times[0]);
        finding.remedies.sort_by(|one, other| times(other).total_cmp(&times(one)));
    }
    findings.sort_by_key(|it| (it.weight, std::cmp::Reverse(it.cost)));
    Ok(())
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

fn gain(all_before: &[Means], all_after: &[Means], victim: &Victim) -> Option<Gain> {
    let of = |means: &[Means]| -> Option<Vec<Duration>> {
        means.iter().map(|it| it.get(victim).copied()).collect()
    };
    let (before, after) = (of(all_before)?, of(all_after)?);
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
        price: price(all_before, all_after, victim),
        seeds: times.len(),
    })
}

/// Whose calls become how many times longer, in the mean of seeds.
fn price(before: &[Means], after: &[Means], victim: &Victim) -> Option<(String, f64)> {
    let sum = |all: &[Means], key: &Victim| -> u64 {
        all.iter().filter_map(|it| it.get(key)).map(|it| it.as_nanos()).sum()
    };
    let longer = |key: &Victim| sum(after, key) as f64 / sum(before, key).max(1) as f64;
    let others = before.first()?.keys().filter(|it| it.0 != victim.0);
    let worst = others.map(|it| (it.0.clone(), longer(it))).max_by(|a, b| a.1.total_cmp(&b.1));
    worst.filter(|it| it.1 >= LEAST)
}

/// The means of a row with a change, by seed.
fn means(
    plan: &Plan,
    row: &Row,
    change: Option<Change>,
    seeds: usize,
    known: &mut Vec<(Option<Change>, Vec<Means>)>,
) -> Result<Vec<Means>, Error> {
    if let Some((_, means)) = known.iter().find(|it| it.0 == change) {
        return Ok(means.clone());
    }
    let changed = match &change {
        None => None,
        Some(change) => Some(changed(plan, row, change)?),
    };
    let (plan, row) = changed.as_ref().map_or((plan, row), |it| (it, &it.rows[0]));
    let first = plan.experiment.seeds[0];
    let all = (first..).take(seeds).map(|seed| means_of(plan, row, seed));
    let means = all.collect::<Result<Vec<_>, _>>()?;
    known.push((change, means.clone()));
    Ok(means)
}

fn means_of(plan: &Plan, row: &Row, seed: u64) -> Result<Means, Error> {
    let (mut account, mut names) = (Account::new(0), Names::default());
    let mut calls = Calls::new(Some(row.facts().queue_depth), |call: Call| account.add(call));
    worlds::watch(plan, row, seed, &mut Several(vec![&mut calls, &mut names]))?;
    drop(calls);
    let callers = account.finish(row, &names);
    Ok(callers.iter().map(|it| ((it.job.clone(), it.kind), Caller::mean(it))).collect())
}

/// A plan of one row with a change.
fn changed(plan: &Plan, row: &Row, change: &Change) -> Result<Plan, Error> {
    let mut experiment = plan.experiment.clone();
    let place = "a remedy".to_string();
    let values = row.axes.iter().map(|(name, value)| Axis {
        name: name.clone(),
        values: vec![value.clone()],
        place: place.clone(),
    });
    experiment.axes = values.collect();
    let label = row.spec.label();
    let with = |more: &str| {
        if label.contains(':') { format!("{label},{more}") } else { format!("{label}:{more}") }
    };
    let scheduler = match change {
        Change::Scheduler(name) => format!("{name}@{}", row.spec.kernel_name()),
        Change::Tunables(values) => {
            let values: Vec<_> =
                values.iter().map(|(name, value)| format!("{name}={value}")).collect();
            with(&values.join(","))
        }
        Change::Setting(name, value) => {
            experiment.settings.retain(|it| it.name != *name);
            experiment.axes.retain(|it| it.name != *name);
            let (name, value) = (name.to_string(), value.to_string());
            experiment.settings.push(Setting { name, value, place: place.clone() });
            label
        }
    };
    experiment.schedulers = vec![(scheduler, place)];
    experiment.expect.clear();
    experiment.metric = None;
    Plan::new(experiment)
}
