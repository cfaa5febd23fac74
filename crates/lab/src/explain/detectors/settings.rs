//! What somebody has set, and what is lost by it: settings, tunables, priorities and cores. Nothing
//! of a run tells that a value is a bad one, so each is tried as it is by default.

use super::SETTING;
use crate::explain::account::{Caller, Part};
use crate::explain::case::Case;
use crate::explain::finding::{Change, Finding, Remedy};
use crate::plan::Row;
use block::{Ioprio, IoprioClass};
use insight::Layer;

/// A value that is not the default.
struct Deviation {
    /// What is set, in words.
    what: String,
    /// How it becomes as it is by default.
    command: String,
    change: Change,
    /// Whose setting it is; nothing if it is the machine's.
    whose: Option<String>,
}

/// What is suspected: a finding for each caller and each such value. Those that are borne out by
/// no trial are dropped.
pub fn detect(case: &Case) -> Vec<Finding> {
    let Some(row) = case.row() else { return Vec::new() };
    let mut all = settings(case, row);
    all.extend(priorities(case));
    all.extend(cores(row));
    let jobs = case.callers.iter().filter(|it| case.job(&it.job).is_some());
    jobs.flat_map(|caller| all.iter().filter_map(|it| found(case, caller, it))).collect()
}

fn found(case: &Case, caller: &Caller, it: &Deviation) -> Option<Finding> {
    let is_about = |part: &Part| !matches!(part.layer, Layer::Computing | Layer::Pause);
    let mut found = case.finding(SETTING, caller, is_about)?;
    let passes = found.passes;
    found.suspect();
    found.passes = passes;
    found.title = format!("{} is slowed down by {}", caller.job, it.what);
    found.culprit = it.whose.clone().filter(|it| *it != caller.job);
    found.mechanism = "Somebody has set this. The same load with the default was tried, and that \
        is better for whoever waits here.";
    found.remedies.push(Remedy::tried(it.command.clone(), it.change.clone()));
    Some(found)
}

/// Files of the queue, of the scheduler, and of memory.
fn settings(case: &Case, row: &Row) -> Vec<Deviation> {
    let one = |(number, default): (&crate::plan::Number, Option<i64>)| {
        let name = number.name.as_str();
        let own = row.spec.tunable(name).is_some();
        let queue = format!("/sys/block/{}/queue", case.disk());
        let command = match (default, name) {
            (Some(value), _) if own => format!("echo {value} > {queue}/iosched/{name}"),
            (Some(value), _) => format!("echo {value} > {queue}/{name}"),
            (None, "dirty_bytes") => "sysctl vm.dirty_ratio=20".to_string(),
            (None, "dirty_background_bytes") => "sysctl vm.dirty_background_ratio=10".to_string(),
            (None, _) => format!("leave vm.{name} as it is by default"),
        };
        Deviation {
            what: format!("{name}={}", number.value),
            command,
            change: Change::Default(name.to_string()),
            whose: None,
        }
    };
    row.deviations().into_iter().map(one).collect()
}

/// I/O priorities of jobs.
fn priorities(case: &Case) -> Vec<Deviation> {
    let Some(row) = case.row().filter(|it| it.spec.honours_ioprio()) else { return Vec::new() };
    let set = row.jobs.iter().filter(|it| it.job.ioprio != Ioprio::NONE);
    let one = |it: &crate::plan::PlannedJob| {
        let (name, ioprio) = (it.job.name.clone(), it.job.ioprio);
        let what = match ioprio.class {
            IoprioClass::RealTime => format!("the real-time class of {name}"),
            IoprioClass::Idle => format!("the idle class of {name}"),
            _ => format!("the I/O priority {} of {name}", ioprio.level),
        };
        let command = format!("run {name} without ionice");
        let change = Change::Ioprio(name.clone());
        Deviation { what, command, change, whose: Some(name) }
    };
    set.map(one).collect()
}

/// Jobs that are kept on some cores.
fn cores(row: &Row) -> Vec<Deviation> {
    let set = row.jobs.iter().filter(|it| it.job.affinity.is_some());
    let one = |it: &crate::plan::PlannedJob| {
        let name = it.job.name.clone();
        let what = format!("the few cores that {name} is kept on");
        let command = format!("run {name} on all cores, without taskset");
        let change = Change::AllCores(name.clone());
        Deviation { what, command, change, whose: Some(name) }
    };
    set.map(one).collect()
}
