//! Whether what is advised helps: the same load with the change, seed by seed. All runs of all
//! rows are spread over the cores, and none is run twice.

use super::account::{Account, Caller};
use super::actors::Actors;
use super::case::time;
use super::finding::{Change, Finding, Gain, Metric, Remedy, Weight};
use super::{Explained, Options, Runs, added_up, named};
use crate::error::Error;
use crate::metrics::CallKind;
use crate::parallel;
use crate::plan::{Plan, Row};
use base::{Bytes, Duration};
use block::{Ioprio, IoprioClass};
use std::collections::BTreeMap;

/// So many causes have their remedies tried.
const MOST_CAUSES: usize = 6;
/// What makes calls shorter by less than this is no remedy.
const LEAST: f64 = 1.25;
/// Who has chosen a low priority for itself pays for it, but not so many times.
const CHOSEN: f64 = 4.0;
/// Without whom calls are so many times shorter is to blame.
const BLAME: f64 = 2.0;
/// And so is, of what is only suspected, without whom they are so many times shorter.
const PLAIN: f64 = 3.0;
/// Who loses less than one of so many parts of what another wins pays no price.
const LITTLE: u64 = 50;
/// What is so much of another is about as much.
const ABOUT: f64 = 0.9;
/// Who is to reboot wants so many times as much for it.
const REBOOT: f64 = 2.0;
/// The finding of who has little weight beside another.
const WEIGHED: &str = "little-weight";
/// If it is about this part of their time.
const MOST: f64 = 0.5;

/// What a task has that is not nice to others.
const USUAL: Ioprio = Ioprio { class: IoprioClass::BestEffort, level: 4 };

/// What came of calls.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Their mean, or the figure that was asked for.
    value: Duration,
    /// What all of them took.
    total: Duration,
    /// How many there were.
    calls: u64,
    /// The figure by which the experiment judges, if it is of these.
    metric: Option<Duration>,
}

/// What came of calls, by job and kind.
pub type Figures = BTreeMap<Victim, Figure>;
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
    let run = |(at, seed): &(usize, u64)| run(plan, &tried[*at].row, *seed, options);
    let figures = parallel::each(&missing, parallel::threads(), run, || runs.done())?;
    for ((at, _), figures) in missing.iter().zip(figures) {
        tried[*at].figures.push(figures);
    }
    for (wanted, it) in wanted.iter().zip(explained) {
        let figures = |at: usize| &tried[at].figures[..seeds.min(tried[at].figures.len())];
        let after = |change: &Change| wanted.after.iter().find(|it| it.0 == *change);
        judge(&mut it.findings, options, |change| {
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
    let findings = places_of_tried(&explained.findings).into_iter();
    for change in findings.flat_map(|place| changes(&explained.findings[place])) {
        let own = &tried[row].row;
        let is_known = wanted.after.iter().any(|it| it.0 == change);
        let new = changed(own, &change).filter(|it| !is_known && !it.does_the_same(own));
        let Some(changed) = new else { continue };
        let there = tried.iter().position(|it| it.row.does_the_same(&changed));
        let at = there.unwrap_or_else(|| {
            tried.push(Tried { row: changed, figures: Vec::new() });
            tried.len() - 1
        });
        wanted.after.push((change, at));
    }
    wanted
}

/// The places of findings whose changes are tried: the first causes, and whatever is set.
fn places_of_tried(findings: &[Finding]) -> Vec<usize> {
    let all = || findings.iter().enumerate();
    let settings = all().filter(|(_, it)| it.is_setting());
    let is_tried = |it: &Finding| !it.is_setting() && (it.is_cause() || it.suspected);
    let others = all().filter(|(_, it)| is_tried(it)).take(MOST_CAUSES);
    settings.chain(others).map(|(place, _)| place).collect()
}

/// What is tried for a finding: its remedies, and what comes of it without the culprit or if that
/// is limited.
fn changes(finding: &Finding) -> Vec<Change> {
    let remedies = finding.remedies.iter().chain(&finding.limit);
    let remedies = remedies.filter_map(|it| it.change.clone());
    remedies.chain(without(finding)).collect()
}

fn without(finding: &Finding) -> Option<Change> {
    let culprit = finding.culprit.clone().filter(|_| !finding.is_setting())?;
    Some(Change::Without(culprit))
}

/// A row with a change.
fn changed(row: &Row, change: &Change) -> Option<Row> {
    match change {
        Change::Scheduler(name) => row.with_scheduler(name).ok(),
        Change::Values(values) => row.with_values(values).ok(),
        Change::Memory(bytes) => Some(Row { memory: Bytes(*bytes), ..row.clone() }),
        Change::Mount(option) => row.with_mount_option(option).ok(),
        Change::Ioprio(name) => Some(row.with_job(name, |job| job.ioprio = Ioprio::NONE)),
        Change::BestEffort(name) => Some(row.with_job(name, |job| job.ioprio = USUAL)),
        Change::Written(name) => row.written_before(name),
        Change::Defaults(names) => {
            names.iter().try_fold(row.clone(), |row, name| row.with_default(name)).ok()
        }
        Change::AllCores(name) => Some(row.with_job(name, |job| job.affinity = None)),
        Change::Weight(group, weight) => Some(row.with_weight(group, *weight)),
        Change::LeafWeight(group, weight) => Some(row.with_leaf_weight(group, *weight)),
        Change::Limit(name, limits) => row.with_limits(name, limits),
        Change::Nice(name, nice) => Some(row.with_job(name, |job| job.nice = *nice)),
        Change::Unlimited(group) => Some(row.unlimited(group)),
        Change::Depth(commands) => row.with_depth(*commands).ok(),
        Change::Without(name) => row.without(name),
    }
}

/// What comes of a row with a seed; nothing if a program fails.
fn run(plan: &Plan, row: &Row, seed: u64, options: &Options) -> Result<Option<Figures>, Error> {
    let (result, tasks, account) = added_up(plan, row, seed, Account::new(0))?;
    let actors = Actors::of(row, &tasks, &account.tasks());
    let callers = named(account, &actors);
    Ok(result.succeeded().then(|| figures_of(&callers, options)))
}

/// The figures of callers.
pub fn figures_of(callers: &[Caller], options: &Options) -> Figures {
    let focus = options.focus.as_ref();
    let judges = options.otherwise.as_ref().filter(|it| it.names_a_job());
    let metric = |it: &Caller| {
        judges.filter(|focus| focus.is_about(&it.job, it.kind)).map(|focus| focus.value(it))
    };
    let value = |it: &Caller| focus.map_or(it.mean(), |focus| focus.value(it));
    // Who asks for a figure does not mind what becomes of others.
    let total = |it: &Caller| if focus.is_some() { Duration::ZERO } else { it.total };
    let figure = |it: &Caller| Figure {
        value: value(it),
        total: total(it),
        calls: it.calls,
        metric: metric(it),
    };
    callers.iter().map(|it| ((it.job.clone(), it.kind), figure(it))).collect()
}

/// Says of each remedy what came of it; causes without one that helps are notes.
fn judge<'t>(
    findings: &mut [Finding],
    options: &Options,
    tried: impl Fn(&Change) -> Option<(&'t [Option<Figures>], &'t [Option<Figures>])>,
) {
    for place in places_of_tried(findings) {
        let finding = &mut findings[place];
        let victim = (finding.victim.clone(), finding.kind);
        let gain_of = |change: &Change| {
            let (before, after) = tried(change)?;
            let metric = options.otherwise.as_ref().and_then(|focus| {
                let [before, after] = [before, after].map(|it| metric(it, &victim));
                Some(Metric { name: focus.name(), before: before?, after: after? })
            });
            gain(before, after, &victim).map(|it| Gain { metric, ..it })
        };
        finding.without = without(finding).as_ref().and_then(&gain_of);
        for remedy in finding.remedies.iter_mut().chain(&mut finding.limit) {
            remedy.gain = remedy.change.as_ref().and_then(&gain_of);
        }
        keep_what_helps(finding);
        if finding.without.as_ref().is_some_and(|it| it.times[0] < LEAST) {
            finding.acquit();
        }
    }
    weigh_settings(findings);
}

/// Leaves out that the device has somebody's time where a cause says how to get it back.
pub fn leave_out_the_device(findings: &mut Vec<Finding>) {
    let of = |it: &Finding| (it.victim.clone(), it.kind);
    let causes: Vec<Victim> = findings.iter().filter(|it| it.is_cause()).map(of).collect();
    findings.retain(|it| it.name != "device-bound" || it.is_cause() || !causes.contains(&of(it)));
}

/// Leaves out settings whose default is a remedy of another cause, which says how that comes about.
pub fn leave_out_what_is_said(findings: &mut Vec<Finding>) {
    let sets = |it: &Finding| -> Vec<String> {
        let tried = it.remedies.iter().filter(|it| it.gain.is_some());
        let names = tried.flat_map(|it| match &it.change {
            Some(Change::Values(values)) => values.iter().map(|it| it.0.to_string()).collect(),
            _ => Vec::new(),
        });
        names.collect()
    };
    let causes = findings.iter().filter(|it| it.is_cause() && !it.is_setting() && !it.suspected);
    let said: Vec<(String, CallKind, Vec<String>)> =
        causes.map(|it| (it.victim.clone(), it.kind, sets(it))).collect();
    // Who says that somebody has little beside another has said what the other's weight does.
    let is_weighed = |it: &&Finding| it.is_cause() && it.name == WEIGHED;
    let weighed = findings.iter().filter(is_weighed);
    let weighed: Vec<(String, CallKind)> = weighed.map(|it| (it.victim.clone(), it.kind)).collect();
    let is_said = |it: &Finding| {
        let of = |change: &Change| match change {
            Change::Weight(..) => {
                weighed.iter().any(|(victim, kind)| *victim == it.victim && *kind == it.kind)
            }
            Change::Defaults(own) => said.iter().any(|(victim, kind, names)| {
                let is_said = own.iter().all(|it| names.contains(it));
                *victim == it.victim && *kind == it.kind && is_said
            }),
            _ => false,
        };
        it.remedies.iter().filter_map(|it| it.change.as_ref()).any(of)
    };
    findings.retain(|it| !(it.is_setting() && is_said(it)));
}

/// What a setting costs is what its default spares. It ranks by all that is lost if that is about
/// all that can be spared.
fn weigh_settings(findings: &mut [Finding]) {
    let gain = |it: &Finding| {
        let own = it.remedies.iter().filter(|it| !it.is_limit());
        own.filter_map(|it| it.gain.as_ref().map(|it| it.times[0])).fold(1.0, f64::max)
    };
    let others = findings.iter().filter(|it| !it.is_setting());
    let others: Vec<(String, CallKind, f64)> =
        others.map(|it| (it.victim.clone(), it.kind, gain(it))).collect();
    for it in findings.iter_mut().filter(|it| it.is_setting()) {
        let own = gain(it);
        let better = |(victim, kind, gain): &(String, CallKind, f64)| {
            *victim == it.victim && *kind == it.kind && *gain > 2.0 * own
        };
        let spared = 1.0 - 1.0 / own;
        let part = |all: Duration| Duration::from_nanos((all.as_nanos() as f64 * spared) as u64);
        it.ranks_by = it.of_figure.as_ref().map(|it| it.share);
        it.cost = part(it.cost);
        it.share *= spared;
        if let Some(of_figure) = &mut it.of_figure {
            of_figure.share *= spared;
        }
        if own < 2.0 || others.iter().any(better) {
            it.passes = part(it.passes);
            it.ranks_by = None;
        }
    }
}

/// Leaves out what several settings cost together where one of them costs about as much.
pub fn leave_out_what_one_does(findings: &mut Vec<Finding>) {
    let of = |it: &Finding| -> Option<(Vec<String>, f64)> {
        let found = it.remedies.iter().find_map(|it| match (&it.change, &it.gain) {
            (Some(Change::Defaults(names)), Some(gain)) => Some((names.clone(), gain.times[0])),
            _ => None,
        });
        found.filter(|_| it.is_setting() && it.is_cause())
    };
    let single = |it: &Finding| {
        let (names, gain) = of(it).filter(|it| it.0.len() == 1)?;
        Some((it.victim.clone(), it.kind, names[0].clone(), gain))
    };
    let singles: Vec<_> = findings.iter().filter_map(single).collect();
    findings.retain(|it| {
        let Some((names, all)) = of(it).filter(|it| it.0.len() > 1) else { return true };
        let mut same = singles.iter().filter(|one| (&one.0, one.1) == (&it.victim, it.kind));
        !same.any(|one| names.contains(&one.2) && one.3 >= ABOUT * all)
    });
}

fn keep_what_helps(finding: &mut Finding) {
    // Whether files are written before or not, all else that is said may be so.
    let is_other = |it: &&Remedy| !matches!(it.change, Some(Change::Written(_)));
    let tried = finding.remedies.iter().filter(|it| it.gain.is_some()).filter(is_other).count();
    let suspected = finding.suspected && !finding.is_setting();
    // What helps one as much as it hurts another proves nothing.
    let asked_for = Change::Ioprio(finding.victim.clone());
    let least = |it: &Remedy| if it.change.as_ref() == Some(&asked_for) { CHOSEN } else { LEAST };
    finding.remedies.retain(|it| helps(it, least(it)) && !(suspected && costs_as_much(it)));
    if finding.is_setting() && note_trade_off(finding) {
        return;
    }
    let helpful = finding.remedies.iter().filter(|it| it.gain.is_some()).count();
    if helpful > 0 && !finding.is_rare {
        finding.weight = Weight::Cause;
    }
    // A weight that changes nothing is to blame for nothing, whoever else has the disk.
    let is_of_weight = finding.name == WEIGHED;
    let is_blamed = |it: &Gain| it.times[0] >= BLAME && !is_of_weight;
    let is_culprit_to_blame = finding.without.as_ref().is_some_and(is_blamed);
    // Who takes most of another's time is a cause, though no change helps.
    let is_plain = |it: &Gain| it.times[0] >= PLAIN && finding.share >= MOST;
    if finding.suspected && finding.without.as_ref().is_some_and(is_plain) {
        finding.weight = Weight::Cause;
    }
    // What no change makes better is how things are, unless somebody is to blame.
    if tried > 0 && helpful == 0 && finding.is_cause() && !is_culprit_to_blame {
        finding.weight = Weight::Note;
        finding.evidence.push(match tried {
            1 => "one change was tried, and it does not help".to_string(),
            _ => format!("{tried} changes were tried, and none helps"),
        });
    }
    if let Some((culprit, gain)) = finding.culprit.as_ref().zip(finding.without.as_ref())
        && is_culprit_to_blame
    {
        let [before, after] = [gain.before, gain.after].map(time);
        finding.evidence.push(format!("without {culprit}, {before} becomes {after}: tried"));
        // Who is limited already is not to be limited more.
        let is_said =
            finding.remedies.iter().any(|it| matches!(it.change, Some(Change::Without(_))));
        if finding.name != "limit-reached" && !is_said {
            let limit = finding.limit.take().filter(|it| it.gain.is_some() && helps(it, LEAST));
            let told = match limit {
                Some(_) => format!("run {culprit} at another time"),
                None => format!("limit {culprit}, or run it at another time"),
            };
            finding.remedies.extend(limit.into_iter().chain([Remedy::told(told)]));
        }
    }
    let dear = |it: &Remedy| if it.needs_reboot() { REBOOT } else { 1.0 };
    // What costs another more than it gains comes behind what does not.
    let paid = |it: &Gain| it.price.as_ref().map_or(1.0, |price| (price.1 / it.counts()).max(1.0));
    let worth = |it: &Gain| it.counts() / paid(it);
    // What takes from somebody on purpose comes behind what does not.
    let times = |it: &Remedy| match &it.gain {
        Some(_) if it.is_limit() => LEAST / 2.0,
        Some(gain) => worth(gain) / dear(it),
        None => 0.0,
    };
    finding.remedies.sort_by(|one, other| times(other).total_cmp(&times(one)));
}

/// A default that helps one and costs another more is a matter of choice, which is told.
fn note_trade_off(finding: &mut Finding) -> bool {
    let gain = finding.remedies.iter().find_map(|it| it.gain.as_ref());
    let Some((gain, (job, longer))) = gain.and_then(|it| Some((it, it.price.as_ref()?))) else {
        return false;
    };
    let is_dear = *longer > gain.times[0];
    if is_dear {
        let [before, after] = [gain.before, gain.after].map(time);
        let line = format!(
            "with the default {before} becomes {after}, and {job} become {longer:.1} \
             times longer: tried"
        );
        finding.evidence.push(line);
        finding.suspected = false;
    }
    is_dear
}

/// Whether a remedy was not tried, or helps with every seed.
fn helps(remedy: &Remedy, least: f64) -> bool {
    match (&remedy.change, &remedy.gain) {
        (None, _) => true,
        // What is not asked for does not matter if what is asked for becomes worse.
        (Some(_), gain) => gain
            .as_ref()
            .is_some_and(|it| it.times[0].max(it.counts()) >= least && it.counts() >= 1.0),
    }
}

/// Whether somebody else pays half as much for it, or more.
fn costs_as_much(remedy: &Remedy) -> bool {
    let half = |gain: &Gain| gain.price.as_ref().is_some_and(|it| 2.0 * it.1 > gain.times[0]);
    remedy.gain.as_ref().is_some_and(half)
}

/// The figure by which the experiment judges, in the mean of seeds.
fn metric(of: &[Option<Figures>], victim: &Victim) -> Option<Duration> {
    let one = |it: &Option<Figures>| it.as_ref()?.get(victim)?.metric;
    let all: Vec<Duration> = of.iter().map(one).collect::<Option<_>>()?;
    let sum: u64 = all.iter().map(|it| it.as_nanos()).sum();
    (!all.is_empty()).then(|| Duration::from_nanos(sum / all.len() as u64))
}

fn gain(before: &[Option<Figures>], after: &[Option<Figures>], victim: &Victim) -> Option<Gain> {
    let all_before: Vec<&Figures> = before.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let all_after: Vec<&Figures> = after.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let of = |figures: &[&Figures]| -> Option<Vec<Duration>> {
        figures.iter().map(|it| it.get(victim).map(|it| it.value)).collect()
    };
    let (before, after) = (of(&all_before)?, of(&all_after)?);
    let nanos = |it: &Duration| it.as_nanos().max(1) as f64;
    let is_moved = all_before.iter().zip(&all_after).map(|(one, other)| moved(one, other, victim));
    let times = before.iter().zip(&after).zip(is_moved);
    let times: Vec<f64> = times
        .map(|((one, other), moved)| if moved { 1.0 } else { nanos(one) / nanos(other) })
        .collect();
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
        metric: None,
    })
}

/// Whether what some calls win is lost by other calls of the same job, at least by half.
fn moved(before: &Figures, after: &Figures, victim: &Victim) -> bool {
    let others = |all: &Figures| -> Option<f64> {
        let calls = all.get(victim)?.calls.max(1) as f64;
        let its = all.iter().filter(|(key, _)| key.0 == victim.0 && key.1 != victim.1);
        Some(its.map(|(_, it)| it.total.as_nanos() as f64).sum::<f64>() / calls)
    };
    let mean = |all: &Figures| -> Option<f64> {
        let it = all.get(victim)?;
        Some(it.total.as_nanos() as f64 / it.calls.max(1) as f64)
    };
    let difference = |of: &dyn Fn(&Figures) -> Option<f64>| Some(of(before)? - of(after)?);
    let (won, lost) = (difference(&mean), difference(&others).map(|it| -it));
    won.zip(lost).is_some_and(|(won, lost)| lost > 0.0 && 2.0 * lost >= won)
}

/// Whose calls become how many times longer, in the mean of seeds. What is lost with them is no
/// price if it is little beside what the victim wins.
fn price(before: &[&Figures], after: &[&Figures], victim: &Victim) -> Option<(String, f64)> {
    let sum = |all: &[&Figures], key: &Victim| -> u64 {
        all.iter().filter_map(|it| it.get(key)).map(|it| it.value.as_nanos()).sum()
    };
    let longer = |key: &Victim| sum(after, key) as f64 / sum(before, key).max(1) as f64;
    let won = sum(before, victim).saturating_sub(sum(after, victim));
    let is_felt = |it: &&Victim| sum(after, it).saturating_sub(sum(before, it)) * LITTLE >= won;
    let others = before.first()?.keys().filter(|it| it.0 != victim.0).filter(is_felt);
    let worst = others
        .map(|it| (format!("{}s of {}", it.1.name(), it.0), longer(it)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    worst.filter(|it| it.1 >= LEAST)
}
