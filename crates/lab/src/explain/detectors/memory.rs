//! What was in memory is there no more, because somebody else read or wrote much.

use super::others::moved;
use crate::explain::account::Caller;
use crate::explain::case::Case;
use crate::explain::finding::{Change, Finding, Remedy};
use crate::metrics::CallKind;
use base::Duration;
use insight::Layer;

/// Who has the disk read for this part of its time would gain by memory.
const READING: f64 = 0.3;
/// Who moves this part of the memory through it pushes out what is there.
const PART_OF_MEMORY: u64 = 4;
/// So many times the memory is tried.
const MORE: u64 = 4;

/// Readers through the page cache beside somebody who fills it.
pub fn detect(case: &Case) -> Vec<Finding> {
    case.callers.iter().filter_map(|it| evicted(case, it)).collect()
}

fn evicted(case: &Case, caller: &Caller) -> Option<Finding> {
    let memory = case.row()?.memory.0;
    if caller.kind != CallKind::Read || caller.reading() < READING || case.is_direct(&caller.job) {
        return None;
    }
    let through = |it: &str| if case.is_direct(it) { 0 } else { moved(case, it, |_| true) };
    let others = case.jobs().map(|it| &it.name).filter(|it| **it != caller.job);
    let culprit = others.max_by_key(|it| through(it))?.clone();
    if through(&culprit) < memory / PART_OF_MEMORY {
        return None;
    }
    let of = |it: &crate::explain::account::Part| match it.layer {
        Layer::Computing | Layer::Core => Duration::ZERO,
        _ => it.reading,
    };
    let mut found = case.finding_of("evicted", caller, of)?;
    found.suspect();
    found.title = format!("{culprit} pushes out of memory what {} reads again", caller.job);
    found.mechanism = "All files share the page cache. Who reads or writes much once takes the \
        place of what others read over and over, and these go to the disk for it.";
    let more = format!("{} MiB of memory", (memory * MORE) >> 20);
    found.remedies.push(Remedy::tried(more, Change::Memory(memory * MORE)));
    found.remedies.push(Remedy::told(format!(
        "have {culprit} use O_DIRECT, or posix_fadvise(POSIX_FADV_DONTNEED) behind it"
    )));
    found
        .remedies
        .push(Remedy::told(format!("memory.low for the control group of {}", caller.job)));
    found.culprit = Some(culprit);
    Some(found)
}
