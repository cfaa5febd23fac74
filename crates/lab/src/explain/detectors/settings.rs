//! What somebody has set, and what is lost by it: settings, tunables, priorities and cores. Nothing
//! of a run tells that a value is a bad one, so each is tried as it is by default.

use super::SETTING;
use super::others::weight_file;
use crate::experiment::cgroup::CgroupSpec;
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
    all.extend(weights(case, row));
    let jobs = case.callers.iter().filter(|it| case.job(&it.job).is_some());
    jobs.flat_map(|caller| all.iter().filter_map(|it| found(case, caller, it))).collect()
}

fn found(case: &Case, caller: &Caller, it: &Choice) -> Option<Finding> {
    let is_about = |part: &Part| !matches!(part.layer, Layer::Computing | Layer::Pause);
    let mut found = case.finding(SETTING, caller, is_about)?;
    found.suspect();
    found.title = format!("{} is slowed down by {}", caller.job, it.what);
    found.culprit = it.whose.clone().filter(|it| *it != caller.job);
    found.mechanism = mechanism(&it.change);
    found.remedies.push(Remedy::tried(it.command.clone(), it.change.clone()));
    Some(found)
}

/// What settings and tunables do that people set, in a sentence or two.
const MECHANISMS: &[(&str, &str)] = &[
    (
        "max_sectors_kb",
        "A request is no longer than this. What is longer is split, and the disk has more commands \
         to serve for the same bytes.",
    ),
    (
        "read_ahead_kb",
        "So much is read ahead of who reads in sequence. Little is many short commands one after \
         the other; much is read in vain by who reads here and there.",
    ),
    (
        "nr_requests",
        "There are so many requests for all. Few leave the scheduler and the disk nothing to \
         choose from, and many are a long queue for who comes last.",
    ),
    ("nomerges", "Requests that lie side by side stay apart, and each is a command of its own."),
    (
        "dirty_background_bytes",
        "From so much dirty memory on the flusher writes. Early it writes what may be overwritten, \
         and its writes are in the way of others; late a sync has much to write.",
    ),
    (
        "dirty_bytes",
        "Who writes pauses when so much memory is dirty. Little has it wait for the disk all the \
         time, and much is what a sync has to write.",
    ),
    (
        "read_lat_nsec",
        "When reads take longer than this, kyber leaves writes and the rest fewer requests with \
         the disk, down to one, and it gives them back when reads are fast.",
    ),
    (
        "write_lat_nsec",
        "When synchronous writes take longer than this, kyber leaves the rest fewer requests with \
         the disk.",
    ),
    ("writes_starved", "So many batches of reads go before a batch of writes that wait."),
    ("write_expire", "Before a write has waited so long the scheduler does not look at its age."),
    ("read_expire", "Before a read has waited so long the scheduler does not look at its age."),
    ("fifo_batch", "So many requests go by their places before the scheduler looks at ages again."),
    (
        "slice_idle",
        "So long the disk is kept for who was served last, in case its next request lies near.",
    ),
    ("wbt_lat_usec", "When reads take longer than this, fewer buffered writes may be under way."),
];

/// What a weight does.
const OF_WEIGHTS: &str = "The scheduler shares the disk out by weight among groups of one parent, \
    and between a group's own tasks (leaf_weight) and its children. Little is a small share of it.";

/// What it does that is set.
fn mechanism(change: &Change) -> &'static str {
    if matches!(change, Change::Weight(..) | Change::LeafWeight(..)) {
        return OF_WEIGHTS;
    }
    let name = if let Change::Defaults(names) = change { names.join(" ") } else { String::new() };
    let known = MECHANISMS.iter().find(|it| it.0 == name);
    known.map_or(
        "Somebody has set this. The same load with the default was tried, and that is better for \
         whoever waits here.",
        |it| it.1,
    )
}

/// Files of the queue, of the scheduler, and of memory.
fn settings(case: &Case, row: &Row) -> Vec<Choice> {
    let one = |it: Deviation| Choice {
        what: format!("{}={}", it.name, it.value),
        command: command(case, row, &it),
        change: Change::Defaults(vec![it.name]),
        whose: None,
    };
    let mut all: Vec<Choice> = row.deviations().into_iter().map(one).collect();
    all.extend(together(&all));
    all
}

/// All of them, where they are several.
fn together(all: &[Choice]) -> Option<Choice> {
    let names = |it: &Choice| match &it.change {
        Change::Defaults(names) => names.clone(),
        _ => Vec::new(),
    };
    let words = |of: fn(&Choice) -> &str, by: &str| all.iter().map(of).collect::<Vec<_>>().join(by);
    (all.len() > 1).then(|| Choice {
        what: words(|it| &it.what, ", "),
        command: words(|it| &it.command, "; "),
        change: Change::Defaults(all.iter().flat_map(names).collect()),
        whose: None,
    })
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
    set.map(one).chain(niceness(row)).collect()
}

/// Nice values, from which such a scheduler takes the priority of who has no other.
fn niceness(row: &Row) -> impl Iterator<Item = Choice> {
    let is_nice = |it: &&PlannedJob| it.job.nice != 0 && it.job.ioprio == Ioprio::NONE;
    let scheduler = row.spec.name;
    row.jobs.iter().filter(is_nice).map(move |it| {
        let (name, nice) = (it.job.name.clone(), it.job.nice);
        Choice {
            what: format!("the nice value {nice} of {name}, by which {scheduler} goes as well"),
            command: format!("run {name} with ionice -c 2 -n 4"),
            change: Change::BestEffort(name.clone()),
            whose: Some(name),
        }
    })
}

/// Weights of control groups, where the scheduler looks at them.
fn weights(case: &Case, row: &Row) -> Vec<Choice> {
    if !row.blkio || !row.spec.honours_weights() {
        return Vec::new();
    }
    let usual = row.default_weight();
    let is_set = |it: &Option<u32>| it.is_some_and(|it| it != usual);
    let choice = |group: &CgroupSpec, file: &str, value: Option<u32>, change: Change| Choice {
        what: format!("{file}={} of {}", value.unwrap_or_default(), group.path),
        command: format!("{usual} in {file} of {}, which is the default", group.path),
        change,
        whose: None,
    };
    let mut all = Vec::new();
    for group in &row.cgroups {
        let (path, file) = (group.path.clone(), weight_file(row));
        if is_set(&group.weight) && !is_compared(case, group) {
            let change = Change::Weight(path.clone(), usual);
            all.push(choice(group, file, group.weight, change));
        }
        if is_set(&group.leaf_weight) {
            let change = Change::LeafWeight(path, usual);
            all.push(choice(group, "blkio.leaf_weight", group.leaf_weight, change));
        }
    }
    all
}

/// Whether more is said of a group's weight: it has a job, and another job weighs more.
fn is_compared(case: &Case, group: &CgroupSpec) -> bool {
    let has_job = case.jobs().any(|it| group.is_at(&it.group));
    has_job && case.jobs().any(|it| it.weight >= 2 * group.weight.unwrap_or_default())
}

/// Jobs that are kept on some cores.
fn cores(row: &Row) -> Vec<Choice> {
    let set = row.jobs.iter().filter(|it| it.job.affinity.is_some());
    let one = |it: &PlannedJob| {
        let name = it.job.name.clone();
        let what = format!("the affinity of {name}, which has few cores");
        let command = format!("run {name} on all cores, without taskset");
        let change = Change::AllCores(name.clone());
        Choice { what, command, change, whose: Some(name) }
    };
    set.map(one).collect()
}
