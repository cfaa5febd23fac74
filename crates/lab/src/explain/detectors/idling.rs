//! The scheduler withholds requests on purpose, and waits for somebody.

use super::others::busiest_other;
use crate::explain::account::{Caller, Part};
use crate::explain::case::{Case, time, waits};
use crate::explain::finding::{Change, Finding, Remedy, Weight};
use crate::explain::recorded::Turns;
use base::Duration;
use block::HoldReason;
use insight::Layer;

/// It keeps the disk for somebody who has nothing to do at the moment.
const IDLES: [HoldReason; 3] =
    [HoldReason::ProcessIdles, HoldReason::GroupIdles, HoldReason::NobodyChosen];
/// The tunable of mq-deadline that says how old a request of a lower class gets.
const AGING: &str = "prio_aging_expire";
/// The disk works for whoever has the turn.
const TURNS: [HoldReason; 2] = [HoldReason::TurnNotDone, HoldReason::GroupNotDone];
/// The disk works, and gets no more.
const FEW: [HoldReason; 5] = [
    HoldReason::Quantum,
    HoldReason::AsyncDepth,
    HoldReason::AsyncInFlight,
    HoldReason::SyncInFlight,
    HoldReason::BatchDrains,
];

/// The disk idles for this part of the time of turns where they are a waste.
const WASTED: f64 = 0.2;
/// Who has so many calls under way could have them served at once.
const SEVERAL: f64 = 1.5;
/// Who waits for this part of its time has nothing of idling, whatever others have.
const MOST: f64 = 0.5;

pub fn detect(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for caller in case.callers {
        findings.extend(dependent(case, caller));
        findings.extend(writeback(case, caller));
        findings.extend(siblings(case, caller));
        findings.extend(for_another(case, caller));
        findings.extend(turns(case, caller));
        findings.extend(few(case, caller));
        findings.extend(idle_class(case, caller));
        findings.extend(lower_class(case, caller));
    }
    findings
}

/// Whether the disk is kept for somebody who has nothing to do, or for one at a time although it
/// serves many.
fn is_idling(case: &Case, caller: &Caller, part: &Part) -> bool {
    let idles = match part.layer {
        Layer::Held(reason) if TURNS.contains(&reason) => is_wasted(case, caller),
        Layer::Held(reason) => IDLES.contains(&reason),
        Layer::Withheld => true,
        _ => false,
    };
    idles && case.may_idle()
}

/// Whether turns are idling: on a disk that serves many at once, or where the one whose turn it is
/// leaves it idle for long between its requests.
fn is_wasted(case: &Case, caller: &Caller) -> bool {
    let share = |reasons: &[HoldReason]| {
        caller.share(|it| matches!(it.layer, Layer::Held(reason) if reasons.contains(&reason)))
    };
    is_fast(case) || share(&IDLES) > WASTED * share(&TURNS)
}

/// Whether the disk has no seeks to save, and serves several at once.
fn is_fast(case: &Case) -> bool {
    !case.turns() && case.depth() > 1
}

/// Report 1: the disk is kept for somebody who waits for the very request that is withheld.
fn dependent(case: &Case, caller: &Caller) -> Option<Finding> {
    let others: Vec<&str> =
        caller.parts.iter().map(|it| it.who.as_str()).filter(|it| *it != caller.job).collect();
    let depends = |name: &str| case.is_kernel(name) && others.contains(&name);
    let alternate = |one: &str, other: &str| match case.recording() {
        Some(known) => known.take_turns(one, other) == Some(Turns::OfStrangers),
        None => depends(one) || depends(other),
    };
    let is_about = |it: &Part| {
        let for_whom = it.behind.as_deref().unwrap_or_default();
        let who = it.who.as_str();
        let is_writeback = case.is_flusher(who) || case.is_flusher(for_whom);
        is_idling(case, caller, it) && who != for_whom && !is_writeback && alternate(who, for_whom)
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
        one whose turn it is. That one waits for the other's request, which is withheld \
        meanwhile.";
    if let (Some(known), Some(other)) = (case.recording(), &found.culprit) {
        found.evidence.extend(known.turns_in_words(&caller.job, other));
    }
    found.remedies = remedies(case);
    Some(found)
}

/// Report 2: what the flusher writes waits for readers, and somebody waits for the flusher.
fn writeback(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| {
        let waits = matches!(it.layer, Layer::Held(_) | Layer::Others | Layer::Full);
        waits && case.is_flusher(&it.who) && !case.is_kernel(&caller.job)
    };
    let mut found = case.finding("writeback-starved", caller, is_about)?;
    found.title = format!(
        "{} lets others pass buffered writes that {} waits for",
        case.scheduler(),
        caller.job
    );
    found.mechanism = "The flusher's writes are asynchronous to the scheduler, so reads and \
        synchronous writes go first. A sync or a commit waits for them nevertheless.";
    found.remedies = case.plain_schedulers();
    found.remedies.extend(case.tunables(&[("slice_idle", 0), ("group_idle", 0)]));
    found.remedies.extend(case.fair_schedulers());
    Some(found)
}

/// Report 3: processes of one job read what lies together, each from a queue of its own.
fn siblings(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| {
        is_idling(case, caller, it)
            && match case.recording() {
                Some(known) => it.behind.as_deref().is_some_and(|other| {
                    known.take_turns(&caller.job, other) == Some(Turns::OfOneProgram)
                }),
                None => it.behind.as_ref() == Some(&caller.job),
            }
    };
    if case.recording().is_none() && !is_several(case, &caller.job) {
        return None;
    }
    let mut found = case.finding("cooperating-tasks-apart", caller, is_about)?;
    found.title = format!(
        "{} takes {} for strangers, and idles for each in turn",
        case.scheduler(),
        match &found.culprit {
            Some(other) => format!("{} and {other}", caller.job),
            None => format!("the processes of {}", caller.job),
        }
    );
    found.mechanism = "They work on one stream together and share no io_context, so each has a \
        queue. The disk stays idle for one while the next piece is in the queue of another.";
    if let (Some(known), Some(other)) = (case.recording(), &found.culprit) {
        found.evidence.extend(known.turns_in_words(&caller.job, other));
    }
    found.remedies = remedies(case);
    let share = "let the processes share an io_context: clone(2) with CLONE_IO";
    found.remedies.push(Remedy::told(share));
    Some(found)
}

/// Whether a job has more than one task.
fn is_several(case: &Case, job: &str) -> bool {
    case.callers.iter().any(|it| it.job == job && it.tasks > 1)
}

/// Report 5: a fast disk with a queue of its own is kept idle. On a disk that turns idling may pay.
fn for_another(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| {
        let behind = it.behind.as_deref();
        let turns = |other: &str| case.recording().and_then(|it| it.take_turns(&caller.job, other));
        let is_other = |it: &str| it != caller.job && !case.is_kernel(it) && turns(it).is_none();
        is_idling(case, caller, it) && behind.is_some_and(is_other)
    };
    if case.is_idle_class(&caller.job) {
        return None;
    }
    let is_fast = is_fast(case);
    let name = if is_fast { "idling-on-flash" } else { "idling-for-another" };
    let mut found = case.finding(name, caller, is_about)?;
    if !is_fast && found.share < MOST {
        found.suspect();
    }
    found.title = format!(
        "{} keeps the disk for {} while {} waits",
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

/// Whoever has the turn keeps the disk busy, and the others wait.
fn turns(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| matches!(it.layer, Layer::Held(reason) if TURNS.contains(&reason));
    if is_wasted(case, caller) {
        return None;
    }
    let mut found = case.finding("turns-of-others", caller, is_about)?;
    found.suspect();
    found.title = format!("{} waits while others have their turns", caller.job);
    found.mechanism = "One after the other has the disk for some time, so that each reads in \
        sequence. Whoever asks for little waits for all the turns of those who ask for much.";
    found.remedies = case.plain_schedulers();
    Some(found)
}

/// The scheduler gives the device less than it takes.
fn few(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| matches!(it.layer, Layer::Held(reason) if FEW.contains(&reason));
    if caller.at_once() < SEVERAL {
        return None;
    }
    let mut found = case.finding("few-at-a-time", caller, is_about)?;
    found.suspect();
    found.title = format!("{} lets few requests of {} go at a time", case.scheduler(), caller.job);
    found.mechanism = "The scheduler keeps requests back although the device has room, so that \
        those of others find it nearly empty. A device that serves many at once is not used.";
    found.remedies = case.tunables(&[("quantum", 32)]).into_iter().collect();
    found.remedies.extend(case.plain_schedulers());
    Some(found)
}

/// Who is of the idle class gets what the others leave.
fn idle_class(case: &Case, caller: &Caller) -> Option<Finding> {
    if !case.is_idle_class(&caller.job) || !case.spec()?.honours_ioprio() {
        return None;
    }
    let mut found =
        case.finding("idle-class", caller, |it: &Part| waits(it.layer) || it.layer == Layer::Host)?;
    found.title = format!("{} is of the idle class, and gets what the others leave", caller.job);
    found.culprit = busiest_other(case, caller);
    found.mechanism = "The scheduler serves the idle class when nobody else has had anything for \
        a while. Beside somebody who always has, that is hardly ever.";
    grow_old_sooner(case, &mut found);
    found.remedies.push(match case.is_given_ioprio(&caller.job) {
        true => Remedy::tried(
            format!("run {} without ionice", caller.job),
            Change::Ioprio(caller.job.clone()),
        ),
        false => Remedy::told(format!("let {} ask for another I/O class", caller.job)),
    });
    Some(found)
}

/// Where requests of a lower class go when they are old enough, they can be sooner: after a tenth
/// of that time, or a hundredth.
fn grow_old_sooner(case: &Case, found: &mut Finding) {
    let Some(millis) = case.value(AGING) else { return };
    let age = time(Duration::from_millis(millis.unsigned_abs()));
    found.evidence.push(format!("after {age} a request goes nevertheless ({AGING}={millis})"));
    for part in [10, 100] {
        found.remedies.extend(case.tunables(&[(AGING, (millis / part).max(1))]));
    }
}

/// Requests of a lower class wait until there is nothing else.
fn lower_class(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| it.layer == Layer::Held(HoldReason::HigherClassInFlight);
    let mut found = case.finding("lower-class", caller, is_about)?;
    found.weight = Weight::Note;
    found.title = format!("{} is of a lower class, and waits for the others", caller.job);
    found.mechanism = "The scheduler lets requests of a lower I/O class go when there is nothing \
        of a higher one. Whoever waits for such a request waits as long.";
    // Of the idle class more is said.
    if case.value(AGING).is_some() && !case.is_idle_class(&caller.job) {
        found.suspect();
        grow_old_sooner(case, &mut found);
    }
    found.remedies.push(Remedy::told("ionice -c2 for what others wait for"));
    Some(found)
}

fn remedies(case: &Case) -> Vec<Remedy> {
    case.tunables(&[("slice_idle", 0), ("group_idle", 0), ("antic_expire", 0)])
        .into_iter()
        .chain(case.plain_schedulers())
        .collect()
}
