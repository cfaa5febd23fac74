//! The scheduler withholds requests on purpose, and waits for somebody.

use crate::explain::account::{Caller, Part};
use crate::explain::case::{Case, waits};
use crate::explain::finding::{Finding, Remedy, Weight};
use block::{HoldReason, IoprioClass};
use insight::Layer;

/// It keeps the disk for somebody who has nothing to do at the moment.
const IDLES: [HoldReason; 5] = [
    HoldReason::ProcessIdles,
    HoldReason::GroupIdles,
    HoldReason::TurnNotDone,
    HoldReason::GroupNotDone,
    HoldReason::NobodyChosen,
];

/// Who waits for this part of its time has nothing of idling, whatever others have.
const MOST: f64 = 0.5;

pub fn detect(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for caller in case.callers {
        findings.extend(dependent(case, caller));
        findings.extend(siblings(case, caller));
        findings.extend(for_another(case, caller));
        findings.extend(idle_class(case, caller));
        findings.extend(lower_class(case, caller));
    }
    findings
}

fn is_idling(part: &Part) -> bool {
    matches!(part.layer, Layer::Held(reason) if IDLES.contains(&reason))
}

/// Report 1: the disk is kept for somebody who waits for the very request that is withheld.
fn dependent(case: &Case, caller: &Caller) -> Option<Finding> {
    let others: Vec<&str> =
        caller.parts.iter().map(|it| it.who.as_str()).filter(|it| *it != caller.job).collect();
    let depends = |name: &str| case.is_kernel(name) && others.contains(&name);
    let is_about = |it: &Part| {
        let for_whom = it.behind.as_deref().unwrap_or_default();
        let who = it.who.as_str();
        is_idling(it) && who != for_whom && (depends(for_whom) || depends(who))
    };
    let mut found = case.finding("dependent-tasks-apart", caller, is_about)?;
    let other = caller.parts.iter().find(|it| is_about(it))?;
    let mut other = [Some(&other.who), other.behind.as_ref()].into_iter().flatten();
    found.culprit = other.find(|it| **it != caller.job).cloned();
    found.title = format!(
        "{} keeps the disk idle between {} and {}, who wait for each other",
        case.scheduler(),
        caller.job,
        found.culprit.as_deref().unwrap_or("a task of the kernel")
    );
    found.mechanism = "Each has its own queue, so the scheduler waits for the next request of the \
        one whose turn it is. That one waits for the other's request, which is withheld meanwhile.";
    found.remedies = remedies(case);
    Some(found)
}

/// Report 3: processes of one job read what lies together, each from a queue of its own.
fn siblings(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| is_idling(it) && it.behind.as_ref() == Some(&caller.job);
    let tasks = case.result.jobs.iter().find(|it| it.name == caller.job).map_or(1, |it| it.tasks);
    if tasks < 2 && !is_several(case, &caller.job) {
        return None;
    }
    let mut found = case.finding("cooperating-tasks-apart", caller, is_about)?;
    found.title = format!(
        "{} takes the processes of {} for strangers, and idles for each in turn",
        case.scheduler(),
        caller.job
    );
    found.mechanism = "They work on one stream together and share no io_context, so each has a \
        queue. The disk stays idle for one while the next piece is in the queue of another.";
    found.remedies = remedies(case);
    let share = "let the processes share an io_context: clone(2) with CLONE_IO";
    found.remedies.push(Remedy::told(share));
    Some(found)
}

/// Whether a job has more than one task.
fn is_several(case: &Case, job: &str) -> bool {
    case.result.disk.held_for.iter().any(|it| {
        it.waiting == it.waited_for.clone().unwrap_or_default() && it.waiting.contains(job)
    })
}

/// Report 5: a fast disk with a queue of its own is kept idle. On a disk that turns idling may pay.
fn for_another(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| {
        let behind = it.behind.as_deref();
        is_idling(it) && behind.is_some_and(|it| it != caller.job && !case.is_kernel(it))
    };
    let is_fast = !case.turns() && case.row.facts().queue_depth > 1;
    let name = if is_fast { "idling-on-flash" } else { "idling-for-another" };
    let mut found = case.finding(name, caller, is_about)?;
    if !is_fast && found.share < MOST {
        found.suspect();
    }
    found.title = format!(
        "{} keeps the disk idle for {} while {} waits",
        case.scheduler(),
        found.culprit.as_deref().unwrap_or("one job"),
        caller.job
    );
    found.mechanism = match is_fast {
        true => {
            "Idling keeps one job's share or locality. This disk has no seeks to save and room \
            for many requests, so the time is lost for everybody."
        }
        false => {
            "Idling saves seeks between jobs that read in sequence. It costs more than it saves \
            where the one that is waited for comes late or reads elsewhere."
        }
    };
    found.remedies = remedies(case);
    Some(found)
}

/// Who is of the idle class gets what the others leave.
fn idle_class(case: &Case, caller: &Caller) -> Option<Finding> {
    let job = case.row.jobs.iter().find(|it| it.job.name == caller.job)?;
    if job.job.ioprio.class != IoprioClass::Idle || !case.row.spec.honours_ioprio() {
        return None;
    }
    let mut found =
        case.finding("idle-class", caller, |it: &Part| waits(it.layer) || it.layer == Layer::Host)?;
    found.title = format!("{} is of the idle class, and gets what the others leave", caller.job);
    found.culprit = crate::explain::detectors::limits::busiest_other(case, caller);
    found.mechanism = "The scheduler serves the idle class when nobody else has had anything for a \
        while. Beside somebody who always has, that is hardly ever.";
    found.remedies.push(Remedy::told(format!("run {} with ionice -c2 -n7", caller.job)));
    Some(found)
}

/// Requests of a lower class wait until there is nothing else.
fn lower_class(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| it.layer == Layer::Held(HoldReason::HigherClassInFlight);
    let mut found = case.finding("lower-class", caller, is_about)?;
    found.weight = Weight::Note;
    found.title = format!("{} is of a lower class, and waits for the others", caller.job);
    found.mechanism = "The scheduler lets requests of a lower I/O class go when there is nothing \
        of a higher one. Whoever waits for such a request waits as long.";
    found.remedies.push(Remedy::told("ionice -c2 for what others wait for"));
    Some(found)
}

fn remedies(case: &Case) -> Vec<Remedy> {
    case.tunables(&[("slice_idle", 0), ("group_idle", 0)])
        .into_iter()
        .chain(case.plain_schedulers())
        .collect()
}
