//! Somebody waits for a slot, a limit or memory before there is a request.

use crate::explain::account::{Caller, Part};
use crate::explain::case::Case;
use crate::explain::finding::{Finding, Remedy, Weight};
use block::HoldReason;
use insight::Layer;

/// Less than this may be dirty where somebody has made the limit small.
const SMALL_LIMIT: i64 = 32 << 20;

pub fn detect(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for caller in case.callers {
        findings.extend(throttled(case, caller));
        findings.extend(limited(case, caller));
        findings.extend(no_request(case, caller));
        findings.extend(dirty(case, caller));
    }
    findings
}

/// Report 2: writeback throttling lets few writes in, and the scheduler lets readers pass them.
fn throttled(case: &Case, caller: &Caller) -> Option<Finding> {
    let mut found =
        case.finding("throttled-writeback", caller, |it| it.layer == Layer::Throttle)?;
    let depth = case.result.throttling.least_depth;
    found.title = format!("writeback throttling holds writes back that {} waits for", caller.job);
    if let Some(depth) = depth {
        found.evidence.push(format!(
            "the depth went down to {depth}; {} windows with late reads, {} without",
            case.result.throttling.windows.exceeded, case.result.throttling.windows.ok
        ));
    }
    found.culprit = busiest_other(case, caller);
    found.mechanism = "Late reads make throttling let fewer writes in, down to one at a time. A \
        scheduler that prefers reads or idles for readers then serves that one late, too.";
    found.remedies = case.setting("wbt_lat_usec", 0).into_iter().collect();
    found.remedies.extend(case.plain_schedulers());
    Some(found)
}

/// A limit of the control group (io.max, blkio.throttle) is reached.
fn limited(case: &Case, caller: &Caller) -> Option<Finding> {
    let mut found = case.finding("limit-reached", caller, |it| it.layer == Layer::Limits)?;
    let group = case.result.jobs.iter().find(|it| it.name == caller.job);
    let group = group.map_or("/", |it| it.cgroup.as_str()).to_string();
    found.title = format!("{} waits for the limits of its control group {group}", caller.job);
    found.culprit = None;
    found.mechanism = "Bios wait in the control group until its limit of bytes or operations a second \
        admits them. They are in no scheduler, and no device sees them.";
    found.remedies.push(Remedy::told(format!("raise io.max of {group}, or take it away")));
    Some(found)
}

/// All requests are taken.
fn no_request(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| it.layer == Layer::Tag || is_no_token(it);
    let mut found = case.finding("requests-run-out", caller, is_about)?;
    let others = busiest_other(case, caller);
    // Who fills the queue alone waits for itself.
    if others.is_none() {
        found.weight = Weight::Note;
    }
    let number = case.value("nr_requests").unwrap_or_default();
    found.title = format!("{} waits for one of {number} requests: all are taken", caller.job);
    found.culprit = others;
    found.mechanism = "The queue has so many requests for each direction. Whoever finds none sleeps, \
        before a scheduler could prefer it.";
    found.remedies = case.setting("nr_requests", number.max(16) * 4).into_iter().collect();
    found.remedies.extend(case.fair_schedulers());
    Some(found)
}

fn is_no_token(part: &Part) -> bool {
    part.layer == Layer::Held(HoldReason::NoToken)
}

/// Too much is dirty, so writers pause.
fn dirty(case: &Case, caller: &Caller) -> Option<Finding> {
    let mut found = case.finding("dirty-limit", caller, |it| it.layer == Layer::DirtyLimit)?;
    let limit = case.value("dirty_bytes").filter(|it| *it > 0);
    let is_small = limit.is_some_and(|it| it < SMALL_LIMIT)
        || case.value("dirty_ratio").is_some_and(|it| (1..3).contains(&it));
    let other = busiest_writer(case, caller);
    // Who dirties more than the disk takes has to wait for the disk.
    if !is_small && other.is_none() {
        found.weight = Weight::Note;
    }
    found.title = match &other {
        Some(other) => format!("{} pauses because {other} has made too much dirty", caller.job),
        None => format!("{} makes pages dirty faster than they are written", caller.job),
    };
    found.culprit = other;
    found.mechanism = "A writer pauses when dirty pages near the limit, whoever made them dirty. Then \
        it goes on as fast as the disk writes.";
    match is_small {
        true => found.remedies.extend(case.setting("dirty_ratio", 20)),
        false => found.remedies.push(Remedy::told(
            "give the writer a control group with a memory limit of its own (cgroup v2)",
        )),
    }
    Some(found)
}

/// The other job that used the disk most.
pub fn busiest_other(case: &Case, caller: &Caller) -> Option<String> {
    let moved = |name: &str| -> u64 {
        let job = case.result.jobs.iter().find(|it| it.name == name);
        job.map_or(0, |it| it.calls.iter().map(|call| call.bytes.0).sum())
    };
    let others = case.result.jobs.iter().map(|it| it.name.clone()).filter(|it| *it != caller.job);
    others.filter(|it| moved(it) > moved(&caller.job) / 4).max_by_key(|it| moved(it))
}

/// The other job that wrote more than this one.
fn busiest_writer(case: &Case, caller: &Caller) -> Option<String> {
    let written = |name: &str| -> u64 {
        let job = case.result.jobs.iter().find(|it| it.name == name);
        job.map_or(0, |it| it.calls[1].bytes.0)
    };
    let others = case.result.jobs.iter().map(|it| it.name.clone()).filter(|it| *it != caller.job);
    others.filter(|it| written(it) > 2 * written(&caller.job)).max_by_key(|it| written(it))
}
