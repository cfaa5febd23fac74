//! What the drive does while it has a request: it flushes, or writes what it had taken in before.

use super::others::{busiest_writer, write_through};
use crate::explain::account::{Caller, Part};
use crate::explain::case::{Case, time};
use crate::explain::finding::{Finding, Remedy};
use base::Duration;
use block::Stage;
use insight::Layer;

/// Who is kept waiting in the drive for this part of its time is held up.
const HELD_UP: f64 = 0.3;

/// A caller's requests wait in the drive for what nobody has under way there any more.
pub fn detect(case: &Case) -> Vec<Finding> {
    let callers = case.callers.iter();
    callers.flat_map(|it| behind_flushes(case, it).into_iter().chain(cached(case, it))).collect()
}

/// How long a part was in some stages.
fn within(part: &Part, stages: &[Stage]) -> Duration {
    let its = stages.iter().filter_map(|it| part.stages.get(it));
    its.fold(Duration::ZERO, |sum, it| sum + *it)
}

/// A finding about the time in some stages, if that is long.
fn waits_in(
    case: &Case,
    caller: &Caller,
    name: &'static str,
    stages: &'static [Stage],
) -> Option<Finding> {
    let mut found = case.finding_of(name, caller, |it| within(it, stages))?;
    if found.share < HELD_UP {
        return None;
    }
    found.suspect();
    let times = stages.iter().map(|stage| {
        let its = caller.parts.iter().filter_map(|it| it.stages.get(stage));
        (stage.name(), its.fold(Duration::ZERO, |sum, it| sum + *it))
    });
    let times = times.filter(|(_, it)| !it.is_zero());
    let words: Vec<String> = times.map(|(name, it)| format!("{name} {}", time(it))).collect();
    found.evidence.push(format!("in the drive: {}", words.join(", ")));
    Some(found)
}

/// The drive flushes its cache for somebody else, and takes nothing meanwhile.
fn behind_flushes(case: &Case, caller: &Caller) -> Option<Finding> {
    let mut found = waits_in(case, caller, "behind-flushes", &[Stage::BehindFlush])?;
    let flushed = |it: &Caller| -> Duration {
        let its = it.parts.iter().filter(|it| it.layer == Layer::Flush);
        its.fold(Duration::ZERO, |sum, it| sum + it.time)
    };
    let others = case.callers.iter().filter(|it| it.job != caller.job);
    let culprit = others.filter(|it| !flushed(it).is_zero()).max_by_key(|it| flushed(it))?;
    found.culprit = Some(culprit.job.clone());
    found.title =
        format!("the drive flushes its cache for {}, and {} waits", culprit.job, caller.job);
    found.mechanism = "While a drive like this flushes its cache it serves nobody. Each fsync of \
        one so stops the reads and writes of all.";
    found.remedies.push(Remedy::told(format!(
        "commit more at once in {}: fewer calls of fsync, fdatasync, O_DSYNC",
        culprit.job
    )));
    found.remedies.push(write_through(case));
    Some(found)
}

/// The drive is busy with writes that it has acknowledged.
fn cached(case: &Case, caller: &Caller) -> Option<Finding> {
    let stages = &[Stage::CacheFull, Stage::DieBusy];
    let mut found = waits_in(case, caller, "behind-cached-writes", stages)?;
    let writer = busiest_writer(case, caller)?;
    found.title = format!("{} waits for the drive to write what {writer} gave it", caller.job);
    found.mechanism = "A drive acknowledges writes that are in its cache. Until they are on the \
        medium, they take the place and the time of whoever comes next, under every scheduler.";
    found.remedies = case.fair_schedulers();
    found.remedies.push(Remedy::told(format!("limit what {writer} writes (wbps of io.max)")));
    found.culprit = Some(writer);
    Some(found)
}
