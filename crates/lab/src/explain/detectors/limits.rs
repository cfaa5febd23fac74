//! Somebody waits for a slot, a limit or memory before there is a request.

use super::others::{bully, busiest_other, busiest_writer, moved};
use crate::explain::account::{Caller, Part};
use crate::explain::actors::Actor;
use crate::explain::case::Case;
use crate::explain::finding::{Change, Finding, Remedy, Weight, possessive};
use crate::metrics::CallKind;
use base::Duration;
use block::throttle::IoMax;
use block::{HoldReason, Shape};
use insight::Layer;

/// Less than this may be dirty where somebody has made the limit small.
const SMALL_LIMIT: i64 = 32 << 20;

/// Who writes so many times its limit is not held by it.
const BYPASSED: f64 = 1.5;
/// A sync that takes so long has a lot to write.
const LONG_SYNC: Duration = Duration::from_millis(500);
/// Kernels have 64 to 256 requests; so few are somebody's setting.
const FEW_REQUESTS: i64 = 32;

/// What is found of them.
pub fn detect(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for caller in case.callers {
        findings.extend(throttled(case, caller));
        findings.extend(limited(case, caller));
        findings.extend(bypassed(case, caller));
        findings.extend(no_request(case, caller));
        findings.extend(no_token(case, caller));
        findings.extend(dirty(case, caller));
        findings.extend(backlog(case, caller));
    }
    findings
}

/// Report 2: writeback throttling lets few writes in, and the scheduler lets readers pass them.
fn throttled(case: &Case, caller: &Caller) -> Option<Finding> {
    let mut found =
        case.finding("throttled-writeback", caller, |it| it.layer == Layer::Throttle)?;
    let throttling = &case.result()?.throttling;
    let depth = throttling.least_depth;
    found.title = format!("writeback throttling holds writes back that {} waits for", caller.job);
    if let Some(depth) = depth {
        found.evidence.push(format!(
            "the depth went down to {depth}; {} windows with late reads, {} without",
            throttling.windows.exceeded, throttling.windows.ok
        ));
    }
    found.culprit = busiest_other(case, caller);
    found.mechanism = "Late reads make throttling let fewer writes in, down to one at a time. A \
        scheduler that prefers reads or idles for readers then serves that one late, too.";
    found.remedies = case.setting("wbt_lat_usec", 0).into_iter().collect();
    found.remedies.extend(case.plain_schedulers());
    Some(found)
}

/// A limit of a control group (io.max, blkio.throttle) is reached: one's own, or that of somebody
/// who is waited for.
fn limited(case: &Case, caller: &Caller) -> Option<Finding> {
    let mut found = case.finding("limit-reached", caller, |it| it.layer == Layer::Limits)?;
    let who = caller.parts.iter().find(|it| it.layer == Layer::Limits)?.who.clone();
    // The flusher writes for somebody whose group is limited.
    let whose = match case.is_kernel(&who) {
        true => busiest_limited(case).unwrap_or(who),
        false => who,
    };
    let own = case.job(&whose).map_or("", |it| it.group.as_str());
    let group = limiting(case, own).unwrap_or(own);
    let other = sharing(case, group, &whose).filter(|_| whose == caller.job);
    found.title = match (whose == caller.job, &other) {
        (true, Some(other)) => {
            format!("{whose} is held back by the limits of {group}, which {other} uses up")
        }
        (true, None) => format!("{whose} is held back by the limits of its control group {group}"),
        (false, _) => format!("{} waits for data of {whose}, which limits hold back", caller.job),
    };
    found.culprit = other.clone().or(Some(whose.clone())).filter(|it| *it != caller.job);
    found.mechanism = "Bios wait in the control group until its limit of bytes or operations a \
        second admits them. Whoever waits for such a bio waits as long, limited or not.";
    let of = match group == own {
        true => format!("{} group", possessive(&whose)),
        false => group.to_string(),
    };
    let raise = format!("raise io.max of {of}, or take it away");
    found.remedies.push(Remedy::tried(raise, Change::Unlimited(group.to_string())));
    if let Some(other) = other {
        found.remedies.push(Remedy::told(format!("a limit of its own for {other}, below {group}")));
    } else if found.culprit.is_some() {
        found.remedies.push(Remedy::told(format!("give {whose} a file system of its own")));
    }
    Some(found)
}

/// The group that limits who is in another one: that itself, or the next above it with limits.
fn limiting<'a>(case: &Case<'a>, group: &'a str) -> Option<&'a str> {
    let groups = &case.row()?.cgroups;
    let has_limits = |path: &str| groups.iter().any(|it| it.is_at(path) && !it.limits().is_none());
    let above = std::iter::successors(Some(group), |it| it.rsplit_once('/').map(|it| it.0));
    { above }.find(|path| has_limits(path))
}

/// Who else is in a group or below it, and moves most of those that move more than somebody.
fn sharing(case: &Case, group: &str, whose: &str) -> Option<String> {
    let moved = |name: &str| moved(case, name, |_| true);
    let is_below = |it: &&Actor| {
        it.name != whose
            && it.group.strip_prefix(group).is_some_and(|it| it.is_empty() || it.starts_with('/'))
    };
    let others = case.jobs().filter(is_below).map(|it| it.name.clone());
    others.filter(|it| moved(it) > moved(whose)).max_by_key(|it| moved(it))
}

/// Who writes most of those whose groups have limits.
fn busiest_limited(case: &Case) -> Option<String> {
    let limited = case.jobs().filter(|it| limits_of(case, it).is_some_and(|it| !it.is_none()));
    let written = |name: &str| moved(case, name, |kind| kind == CallKind::Write);
    limited.map(|it| it.name.clone()).max_by_key(|it| written(it))
}

/// The limits of a job's group, if it is described.
fn limits_of(case: &Case, job: &Actor) -> Option<IoMax> {
    let group = case.row()?.cgroups.iter().find(|it| it.is_at(&job.group))?;
    Some(group.limits())
}

/// A limit does not see what the flusher writes for somebody.
fn bypassed(case: &Case, caller: &Caller) -> Option<Finding> {
    let limits = limits_of(case, case.job(&caller.job)?)?;
    let limit = limits.write.bps.filter(|_| caller.kind == CallKind::Write)?;
    let second = case.result()?.elapsed.as_nanos().max(1) as f64 / 1e9;
    let rate = moved(case, &caller.job, |kind| kind == CallKind::Write) as f64 / second;
    if rate < BYPASSED * limit as f64 || case.row()?.cgroup_writeback {
        return None;
    }
    let mut found = case.finding("limit-bypassed", caller, |_| true)?;
    found.weight = Weight::Cause;
    found.title = format!(
        "{} writes {:.0} MB/s under a limit of {:.0} MB/s",
        caller.job,
        rate / 1e6,
        limit as f64 / 1e6
    );
    found.culprit = None;
    found.mechanism = "Buffered writes reach the disk by the flusher, a task of the root group. \
        Limits of version 1 see only what a group's own tasks submit, so direct I/O and reads.";
    found
        .remedies
        .push(Remedy::told("control groups of version 2: systemd.unified_cgroup_hierarchy=1"));
    found.remedies.push(Remedy::told("oflag=direct, O_DIRECT or O_DSYNC in the program"));
    Some(found)
}

/// All requests are taken.
fn no_request(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| it.layer == Layer::Tag;
    let mut found = case.finding("requests-run-out", caller, is_about)?;
    let others = bully(case, caller);
    let number = case.value("nr_requests");
    // Who fills the queue alone waits for itself, and with few requests for what is set.
    let who = caller.parts.iter().find(|it| is_about(it))?.who.clone();
    let is_alone = others.is_none() || fills_it_itself(case, caller);
    if is_alone && number.is_none_or(|it| it >= FEW_REQUESTS) {
        found.suspect();
    }
    let many = number.map_or("the queue's".to_string(), |it| it.to_string());
    found.title = format!("{who} waits for one of {many} requests: all are taken");
    if who != caller.job {
        found.title.push_str(&format!(", and {} waits for it", caller.job));
    }
    found.culprit = others;
    found.mechanism = match sched::shape_of(case.scheduler()) {
        Some(Shape::Single) => {
            "The queue has so many requests for each direction. Whoever finds none sleeps, before \
            a scheduler could prefer it."
        }
        _ => {
            "The queue has so many requests, and all share them. Whoever finds none sleeps, before \
            a scheduler could prefer it."
        }
    };
    found.remedies = case.more_requests(number.unwrap_or(64).max(32) * 4).into_iter().collect();
    found.remedies.extend(case.defaults());
    found.remedies.extend(case.fair_schedulers());
    Some(found)
}

/// Whether who is waited for has most of the requests itself when there is none left. A recording
/// does not tell who has them.
fn fills_it_itself(case: &Case, caller: &Caller) -> bool {
    let tags = || caller.parts.iter().filter(|it| it.layer == Layer::Tag);
    let is_others = |it: &&Part| it.behind.as_ref().is_some_and(|behind| *behind != it.who);
    let sum = |sum: Duration, it: &Part| sum + it.time;
    let behind = tags().filter(is_others).fold(Duration::ZERO, sum);
    case.row().is_some() && behind * 2 < tags().fold(Duration::ZERO, sum)
}

/// Kyber's targets leave few tokens.
fn no_token(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| it.layer == Layer::Held(HoldReason::NoToken);
    let mut found = case.finding("no-token", caller, is_about)?;
    found.suspect();
    let kind = caller.kind.name();
    found.title = format!("{} waits for tokens: kyber lets few {kind}s go", caller.job);
    found.culprit = busiest_other(case, caller);
    found.mechanism = "Reads, writes and the rest have tokens, and a request needs one. While \
        reads or writes take longer than their targets, the others have fewer.";
    found.remedies = case.plain_schedulers();
    Some(found)
}

/// Too much is dirty, so writers pause.
fn dirty(case: &Case, caller: &Caller) -> Option<Finding> {
    // Who waits for a lock meanwhile would wait as well if its holder did something else.
    let pauses = |it: &Part| it.layer == Layer::DirtyLimit;
    let of = |it: &Part| if pauses(it) { it.time - it.locked } else { Duration::ZERO };
    let mut found = case.finding_of("dirty-limit", caller, of)?;
    let limit = case.value("dirty_bytes").filter(|it| *it > 0);
    let is_small = limit.is_some_and(|it| it < SMALL_LIMIT)
        || case.value("dirty_ratio").is_some_and(|it| (1..3).contains(&it));
    let other = busiest_writer(case, caller);
    // Who dirties more than the disk takes has to wait for the disk.
    if !is_small && other.is_none() {
        found.weight = Weight::Note;
    }
    let who = caller.parts.iter().filter(|it| !of(it).is_zero()).max_by_key(|it| of(it))?;
    let is_own = who.who == caller.job;
    found.title = match &other {
        _ if !is_own => format!("{} waits for {}, which pauses", caller.job, who.who),
        Some(other) => format!("{} pauses because {other} has made too much dirty", caller.job),
        None => format!("{} makes pages dirty faster than they are written", caller.job),
    };
    found.culprit = other;
    found.mechanism = "A writer pauses when dirty pages near the limit, whoever made them dirty. \
        Then it goes on as fast as the disk writes.";
    match is_small {
        true => found.remedies.extend(case.default_setting("dirty_ratio")),
        false => found.remedies.push(Remedy::told(
            "give the writer a control group with a memory limit of its own (cgroup v2)",
        )),
    }
    Some(found)
}

/// A sync has to write what was made dirty long before.
fn backlog(case: &Case, caller: &Caller) -> Option<Finding> {
    case.row()?;
    let is_own = bully(case, caller).is_none();
    if caller.kind != CallKind::Sync || caller.mean() < LONG_SYNC || !is_own {
        return None;
    }
    let is_write = |layer| {
        matches!(layer, Layer::Device | Layer::Shared | Layer::Full | Layer::Others | Layer::Tag)
    };
    let mut found = case.finding("dirty-backlog", caller, |it| is_write(it.layer))?;
    found.suspect();
    found.title = format!("a sync of {} writes what was made dirty before", caller.job);
    found.culprit = None;
    found.mechanism = "Dirty pages stay in memory until the limits or their age have them \
        written. A sync writes all of its file at once, and may take what a long time has \
        gathered.";
    found.remedies = case.setting("dirty_background_bytes", 4 << 20).into_iter().collect();
    found.remedies.extend(case.setting("dirty_bytes", 16 << 20));
    Some(found)
}
