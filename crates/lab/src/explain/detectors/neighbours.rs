//! Others were served first: their data, their floods, their weights.

use super::others::{bully, busiest_other, syncer, weight_file};
use crate::explain::account::{Caller, Part};
use crate::explain::actors::Actor;
use crate::explain::case::{Case, time, waits};
use crate::explain::finding::{Change, Finding, Remedy, Weight};
use crate::metrics::CallKind;
use base::Duration;
use block::CommitPhase;
use insight::Layer;

/// Somebody who is passed over for so long starves.
const STARVES: Duration = Duration::from_millis(500);
/// And for so many times the median of its calls.
const TIMES: u64 = 20;

pub fn detect(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for caller in case.callers {
        findings.extend(little_weight(case, caller));
        let weights = without_effect(case, caller);
        let commit = others_data(case, caller);
        let flood = flood(case, caller);
        let starved = starved(case, caller);
        findings.extend(weights.into_iter().chain(commit).chain(flood).chain(starved));
        findings.extend(inverted(case, caller));
        findings.extend(synced(case, caller));
        findings.extend(unweighted(case, caller));
    }
    findings
}

/// Whether somebody else stands behind a part: a job, or what is written back for one.
fn is_by_others(case: &Case, caller: &Caller, it: &Part) -> bool {
    let behind = it.behind.as_deref().is_some_and(|it| it != caller.job && !case.is_journal(it));
    it.layer == Layer::Others && behind && !alone(case, caller)
}

/// Whether nobody else does anything.
fn alone(case: &Case, caller: &Caller) -> bool {
    let works = |it: &&Caller| it.job != caller.job;
    case.callers.iter().filter(works).count() == 0
}

/// The journal's commit waits for data of somebody else, or stands behind requests.
fn others_data(case: &Case, caller: &Caller) -> Option<Finding> {
    if caller.kind == CallKind::Read || alone(case, caller) {
        return None;
    }
    let within = |it: &Part, phase| {
        let is_slow =
            matches!(it.layer, Layer::Device | Layer::Shared | Layer::Full | Layer::Others);
        let is_others = it.who != caller.job && !case.is_journal(&it.who);
        let time = it.commit.get(&phase).filter(|_| is_slow && is_others);
        time.copied().unwrap_or(Duration::ZERO)
    };
    let changes = |it: &Part| within(it, CommitPhase::Locked);
    let data = |it: &Part| within(it, CommitPhase::Flushing);
    let is_behind = |it: &Part| is_by_others(case, caller, it) && case.is_journal(&it.who);
    let of = |it: &Part| if is_behind(it) { it.time } else { changes(it) + data(it) };
    let mut found = case.finding_of("commit-waits-for-others", caller, of)?;
    found.culprit = busiest_other(case, caller);
    let other = found.culprit.as_deref().unwrap_or("others");
    let sum = |time: &dyn Fn(&Part) -> Duration| {
        caller.parts.iter().map(time).fold(Duration::ZERO, |sum, it| sum + it)
    };
    let [for_changes, for_data] = [sum(&changes), sum(&data)];
    let is_for_data = for_data * 2 >= found.cost && case.is_ordered();
    let is_for_changes = for_changes * 2 >= found.cost;
    let (what, mechanism) = why_commit_waits(is_for_data, is_for_changes, other);
    found.title = format!("{} waits for a commit that {what}", caller.job);
    found.mechanism = mechanism;
    found.remedies = case.setting("dirty_bytes", 16 << 20).into_iter().collect();
    found.remedies.extend(case.fair_schedulers());
    found.remedies.extend(case.other_schedulers(&["kyber", "mq-deadline", "deadline"]));
    if is_for_data {
        let writeback = "mount -o data=writeback, if stale data after a crash may be";
        let change = Change::Mount("data=writeback".to_string());
        found.remedies.push(Remedy::tried(writeback.to_string(), change));
    }
    Some(found)
}

/// What a commit waits for, and how that comes about.
fn why_commit_waits(
    is_for_data: bool,
    is_for_changes: bool,
    other: &str,
) -> (String, &'static str) {
    match (is_for_data, is_for_changes) {
        (true, _) => (
            format!("waits for data of {other}"),
            "A commit of the journal waits until data are written whose blocks it names, whoever \
             wrote them. One call of fsync so pays for everybody's data.",
        ),
        (_, true) => (
            format!("waits for changes that {other} makes"),
            "A commit of the journal begins when all changes under way are complete. Who makes \
             one and waits for the disk meanwhile holds it up.",
        ),
        _ => (
            format!("stands behind requests of {other}"),
            "What the commit writes stands in the queue behind what others have there, and \
             whoever needs the commit waits as long.",
        ),
    }
}

/// Reads or synchronous writes stand behind a flood of others.
fn flood(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| is_by_others(case, caller, it);
    let mut found = case.finding("behind-a-flood", caller, is_about)?;
    let more = bully(case, caller);
    // That a higher class goes first is what it is for.
    if more.as_ref().is_some_and(|it| is_of_higher_class(case, it, &caller.job)) {
        return None;
    }
    // Whoever does most of the work meets others now and then, and who is idle has asked for it.
    let is_idle = case.is_idle_class(&caller.job) || case.is_in_background(caller);
    if more.is_none() || is_idle {
        found.weight = Weight::Note;
    }
    found.culprit = more.or(found.culprit);
    found.title = format!(
        "{} stands behind requests of {}",
        caller.job,
        found.culprit.as_deref().unwrap_or("others")
    );
    found.mechanism = "Others have more requests in the queue, and the scheduler takes many of \
        them first: by arrival, by position, or because it prefers reads.";
    found.remedies = case.defaults().into_iter().collect();
    found.remedies.extend(case.tunables(&[("fifo_batch", 1)]));
    found.remedies.extend(case.tunables(&[("low_latency", 0)]));
    found.remedies.extend(case.fair_schedulers());
    found.remedies.extend(case.other_schedulers(&["kyber", "mq-deadline", "deadline"]));
    Some(found)
}

/// Requests wait while the flusher and the journal write what somebody else wants on the disk.
fn synced(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_writeback = |who: &str| case.is_flusher(who) || case.is_journal(who);
    let is_about = |it: &Part| {
        let is_in_the_way = waits(it.layer) || matches!(it.layer, Layer::Shared | Layer::Withheld);
        let behind = it.behind.as_deref().is_some_and(is_writeback);
        is_in_the_way && behind && it.who == caller.job
    };
    let syncer = syncer(case, caller)?;
    // What is written while nobody syncs is old, or too much. A recording tells of no calls.
    let beside = case.row().map(|_| caller.while_others_sync());
    let mut found = case.finding("behind-a-sync", beside.as_ref().unwrap_or(caller), is_about)?;
    found.title = format!("{} waits while what {syncer} syncs is written", caller.job);
    found.mechanism = "sync and fsync have the flusher write at once what may have been dirty for \
        long, whoever made it so. The scheduler takes that for as urgent as reads.";
    found.remedies = case.fair_schedulers();
    found.remedies.extend(case.plain_schedulers());
    found.remedies.extend(case.setting("dirty_background_bytes", 4 << 20));
    found.culprit = Some(syncer);
    Some(found)
}

/// Somebody of a lower class or with less weight has what a preferred one waits for.
fn inverted(case: &Case, caller: &Caller) -> Option<Finding> {
    let rank_of = |name: &str| case.job(name).map(Actor::rank);
    let own = rank_of(&caller.job)?;
    let is_lower = |who: &str| rank_of(who).is_some_and(|it| it > own);
    let is_about = |it: &Part| waits(it.layer) && is_lower(&it.who);
    let mut found = case.finding("priority-inversion", caller, is_about)?;
    let whose = caller.parts.iter().find(|it| is_about(it))?.who.clone();
    found.title = format!("{} waits for {whose}, who is of a lower I/O class", caller.job);
    found.mechanism = "What a lower class has begun, a commit with its data or a lock, is \
        finished at that class's pace. Whoever needs it inherits the delay, and nobody the \
        priority.";
    found.remedies.push(Remedy::told(format!("run {whose} as best effort (ionice -c2 -n7)")));
    found.culprit = Some(whose);
    found.remedies.extend(case.plain_schedulers());
    Some(found)
}

/// A group gets what its weight says, and that is little.
fn little_weight(case: &Case, caller: &Caller) -> Option<Finding> {
    let job = case.job(&caller.job)?;
    let own = job.weight;
    let heavier = case.jobs().filter(|it| it.group != job.group).max_by_key(|it| it.weight)?;
    if !case.row()?.spec.honours_weights() || heavier.weight < 2 * own {
        return None;
    }
    let is_about = |it: &Part| waits(it.layer) || it.layer == Layer::Host;
    let mut found = case.finding("little-weight", caller, is_about)?;
    let (weight, name) = (heavier.weight, heavier.name.clone());
    found.title = format!("{} has a weight of {own}, and {name} one of {weight}", caller.job);
    found.mechanism = "The scheduler shares the disk out by weight: more weight is more of it. \
        That is the other way round than nice values.";
    let file = weight_file(case.row()?);
    let more = format!("{weight} in {file} of {}, if it matters as much", caller.job);
    found.remedies.push(Remedy::tried(more, Change::Weight(job.group.clone(), weight)));
    found.culprit = Some(name);
    Some(found)
}

/// A call is passed over for a very long time.
fn starved(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_idle = case.is_idle_class(&caller.job) || case.is_in_background(caller);
    let worst = caller.parts.iter().filter(|it| waits(it.layer)).max_by_key(|it| it.longest)?;
    let bound = STARVES.max(caller.median * TIMES);
    if worst.longest < bound || alone(case, caller) {
        return None;
    }
    let is_about = |it: &Part| waits(it.layer) && it.longest >= bound;
    let mut found = case.finding("starved-in-the-scheduler", caller, is_about)?;
    found.weight = if is_idle { Weight::Note } else { Weight::Cause };
    found.title = format!(
        "{} {} of {} wait up to {} while others are served",
        caller.kind.name(),
        case.unit(),
        caller.job,
        time(worst.longest)
    );
    let raises = case.scheduler() == "bfq" && case.value("low_latency") == Some(1);
    found.mechanism = match worst.layer {
        Layer::Tag => {
            "There are only so many requests (nr_requests). Who has all of them under way leaves \
             none to others, and a scheduler orders only what has one."
        }
        _ if raises => {
            "BFQ raises whoever has just begun, or asks for little (low_latency). As long as there \
             are such tasks others wait, for seconds if new ones go on coming."
        }
        _ => {
            "The scheduler has no bound on how long a request is passed over, or one that is \
             longer than this. A few calls pay for all others."
        }
    };
    found.remedies = case.defaults().into_iter().collect();
    found.remedies.extend(case.tunables(&[("low_latency", 0)]));
    found.remedies.extend(case.other_schedulers(&["mq-deadline", "deadline", "bfq", "kyber"]));
    Some(found)
}

/// Weights or priorities that the scheduler does not look at.
fn without_effect(case: &Case, caller: &Caller) -> Option<Finding> {
    let spec = &case.row()?.spec;
    let job = case.job(&caller.job)?;
    let (weights, priorities) = (differing_weights(case), differing_priorities(case));
    let by_weight = weights && !spec.honours_weights();
    let by_priority = priorities && !spec.honours_ioprio();
    if !by_weight && !by_priority || !is_preferred(case, job) {
        return None;
    }
    let is_about = |it: &Part| {
        let other = it.who != caller.job || it.behind.as_ref().is_some_and(|it| *it != caller.job);
        waits(it.layer) || other && matches!(it.layer, Layer::Device | Layer::Shared)
    };
    let mut found = case.finding("weights-without-effect", caller, is_about)?;
    let what = if by_weight { "weights of control groups" } else { "I/O priorities" };
    found.title = format!("{} does not look at {what}", case.scheduler());
    found.culprit = busiest_other(case, caller);
    found.mechanism = "Weights and I/O priorities are read by the scheduler alone. One that does \
        not look at them serves everybody alike.";
    found.remedies = case.fair_schedulers();
    Some(found)
}

/// Weights do not see what the flusher writes for somebody.
fn unweighted(case: &Case, caller: &Caller) -> Option<Finding> {
    let row = case.row()?;
    let weights = differing_weights(case) && row.spec.honours_weights();
    if !weights || row.cgroup_writeback || caller.kind != CallKind::Write {
        return None;
    }
    let mut found =
        case.finding("buffered-unweighted", caller, |it| it.layer == Layer::DirtyLimit)?;
    found.title =
        format!("buffered writes of {} are nobody's: its weight does not count", caller.job);
    found.culprit = None;
    found.mechanism = "The flusher writes what all have made dirty, as one task of the root \
        group. So all who write through the page cache get the same, whatever they weigh.";
    found.remedies.push(Remedy::told(
        "control groups of version 2 with ext4 or btrfs, where writeback is a group's own",
    ));
    Some(found)
}

fn differing_weights(case: &Case) -> bool {
    let groups = case.row().map_or(&[][..], |it| &it.cgroups);
    let mut weights: Vec<u32> = groups.iter().filter_map(|it| it.weight).collect();
    weights.extend(case.jobs().map(|it| it.weight));
    weights.sort_unstable();
    weights.dedup();
    weights.len() > 1
}

fn differing_priorities(case: &Case) -> bool {
    let mut priorities = case.jobs().map(|it| it.ioprio);
    let first = priorities.next();
    priorities.any(|it| Some(it) != first)
}

/// Whether a job was meant to go before another.
fn is_preferred(case: &Case, job: &Actor) -> bool {
    let mut others = case.jobs().filter(|it| it.name != job.name);
    others.any(|it| it.weight < job.weight || it.rank() > job.rank())
}

/// Whether the scheduler serves a job before another because of its I/O class.
fn is_of_higher_class(case: &Case, one: &str, other: &str) -> bool {
    let class = |name: &str| case.job(name).map(|it| it.rank() / 8);
    let honours = case.spec().is_some_and(|it| it.honours_ioprio());
    honours && class(one).zip(class(other)).is_some_and(|(one, other)| one < other)
}
