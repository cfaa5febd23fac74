//! What somebody has set, and what is lost by it: settings, tunables, priorities and cores. Nothing
//! of a run tells that a value is a bad one, so each is tried as it is by default.

use super::SETTING;
use crate::experiment::filesystem::options;
use crate::explain::account::{Caller, Part};
use crate::explain::case::Case;
use crate::explain::finding::{Change, Finding, Remedy};
use crate::plan::{Deviation, PlannedJob, Row};
use block::{Ioprio, IoprioClass};
use insight::Layer;
use machine::Mount;

/// What somebody has set.
struct Choice {
    /// What is set, in words.
    what: String,
    /// What to type so that it is as by default.
    command: String,
    change: Change,
    /// Whose it is; nothing if it is the machine's.
    whose: Option<String>,
}

/// What is suspected: a finding for each caller and each such value. Those that are borne out by
/// no trial are dropped.
pub fn detect(case: &Case) -> Vec<Finding> {
    let Some(row) = case.row() else { return Vec::new() };
    let mut all = settings(case, row);
    all.extend(mounted(row));
    all.extend(priorities(case));
    all.extend(cores(row));
    let jobs = case.callers.iter().filter(|it| case.job(&it.job).is_some());
    jobs.flat_map(|caller| all.iter().filter_map(|it| found(case, caller, it))).collect()
}

fn found(case: &Case, caller: &Caller, it: &Choice) -> Option<Finding> {
    let is_about = |part: &Part| !matches!(part.layer, Layer::Computing | Layer::Pause);
    let mut found = case.finding(SETTING, caller, is_about)?;
    found.suspect();
    found.title = format!("{} is slowed down by {}", caller.job, it.what);
    found.culprit = it.whose.clone().filter(|it| *it != caller.job);
    found.mechanism = "Somebody has set this. The same load with the default was tried, and that \
        is better for whoever waits here.";
    found.remedies.push(Remedy::tried(it.command.clone(), it.change.clone()));
    Some(found)
}

/// Files of the queue, of the scheduler, and of memory.
fn settings(case: &Case, row: &Row) -> Vec<Choice> {
    let one = |it: Deviation| Choice {
        what: format!("{}={}", it.name, it.value),
        command: command(case, row, &it),
        change: Change::Default(it.name),
        whose: None,
    };
    row.deviations().into_iter().map(one).collect()
}

/// Options with which the file system is mounted, each with its default.
fn mounted(row: &Row) -> Vec<Choice> {
    let Some(mount) = &row.mount else { return Vec::new() };
    let one = |(own, default): (&str, &str)| Choice {
        what: format!("the mount option {own}"),
        command: format!("mount with {default}, which is the default"),
        change: Change::Mount(default.to_string()),
        whose: None,
    };
    let usual = options(&Mount { format: mount.format, ..Mount::default() });
    let own = options(mount);
    let each = own.split(',').zip(usual.split(','));
    each.filter(|(own, default)| own != default).map(one).collect()
}

/// Sets what is by default.
fn command(case: &Case, row: &Row, it: &Deviation) -> String {
    // A number of bytes is gone when a ratio is set in its place.
    let ratio = it.name.strip_suffix("_bytes").map(|it| format!("{it}_ratio"));
    let (name, default) = match ratio.and_then(|it| Some((row.default_of(&it)?, it))) {
        Some((default, ratio)) => (ratio, Some(default)),
        None => (it.name.clone(), it.default),
    };
    let Some(default) = default else { return format!("leave {name} as it is by default") };
    let queue = format!("/sys/block/{}/queue", case.disk());
    match row.spec.has_tunable(&name) {
        _ if name.starts_with("dirty_") => format!("sysctl vm.{name}={default}"),
        true => format!("echo {default} > {queue}/iosched/{name}"),
        false => format!("echo {default} > {queue}/{name}"),
    }
}

/// I/O priorities of jobs.
fn priorities(case: &Case) -> Vec<Choice> {
    let Some(row) = case.row().filter(|it| it.spec.honours_ioprio()) else { return Vec::new() };
    let set = row.jobs.iter().filter(|it| it.job.ioprio != Ioprio::NONE);
    let one = |it: &PlannedJob| {
        let (name, ioprio) = (it.job.name.clone(), it.job.ioprio);
        let what = match ioprio.class {
            IoprioClass::RealTime => format!("the real-time class of {name}"),
            IoprioClass::Idle => format!("the idle class of {name}"),
            _ => format!("the I/O priority {} of {name}", ioprio.level),
        };
        let command = format!("run {name} without ionice");
        let change = Change::Ioprio(name.clone());
        Choice { what, command, change, whose: Some(name) }
    };
    set.map(one).collect()
}

/// Jobs that are kept on some cores.
fn cores(row: &Row) -> Vec<Choice> {
    let set = row.jobs.iter().filter(|it| it.job.affinity.is_some());
    let one = |it: &PlannedJob| {
        let name = it.job.name.clone();
        let what = format!("the few cores that {name} is kept on");
        let command = format!("run {name} on all cores, without taskset");
        let change = Change::AllCores(name.clone());
        Choice { what, command, change, whose: Some(name) }
    };
    set.map(one).collect()
}
