//! Locks: who calls waits until somebody else has done something that takes long.

use crate::explain::account::{Caller, Part};
use crate::explain::case::Case;
use crate::explain::finding::{Finding, Remedy};
use base::Duration;
use machine::Format;

/// Who waits for this part of its time for locks is held up by them.
const HELD_UP: f64 = 0.2;

/// Callers that wait for locks which other jobs hold.
pub fn detect(case: &Case) -> Vec<Finding> {
    case.callers.iter().filter_map(|it| held(case, it)).collect()
}

fn held(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_other = |it: &Part| it.who != caller.job && case.job(&it.who).is_some();
    let of = |it: &Part| if is_other(it) { it.locked } else { Duration::ZERO };
    let mut found = case.finding_of("lock-held", caller, of).filter(|it| it.share >= HELD_UP)?;
    let most = caller.parts.iter().filter(|it| is_other(it)).max_by_key(|it| it.locked)?;
    let other = most.who.clone();
    let is_xfs = case.row()?.mount.as_ref().is_some_and(|it| it.format == Format::Xfs);
    found.title = format!("{} waits for a lock that {other} holds", caller.job);
    found.mechanism = match is_xfs {
        true => {
            "XFS locks a file for each write, and reads through the page cache wait for that \
            lock, though what they want is in memory. A write that is to be durable holds it \
            until the disk is done."
        }
        false => {
            "Who writes to a file or changes a directory locks it until that is done. Whoever \
            wants the same waits, though it has nothing to do with the disk itself."
        }
    };
    let direct = "read and write with O_DIRECT, which share the lock on XFS";
    found.remedies.extend(is_xfs.then(|| Remedy::told(direct)));
    found.remedies.push(Remedy::told(format!("another file or directory for {other}")));
    found.remedies.push(Remedy::told(format!("shorter or less durable writes in {other}")));
    found.culprit = Some(other);
    Some(found)
}
