//! Where on the disk a file lies.

use crate::explain::account::{Caller, Part};
use crate::explain::case::Case;
use crate::explain::finding::{Finding, Remedy};
use crate::metrics::CallKind;
use insight::Layer;

/// Who waits for the disk for this part of its time may be waiting for its heads.
const MOST: f64 = 0.6;
/// Calls of others are less than one of so many parts of all commands, if seeks are to be its own.
const OTHERS: u64 = 10;
/// Commands of a file that lies in one piece are longer, in bytes.
const PIECE: u64 = 256 << 10;

pub fn detect(case: &Case) -> Vec<Finding> {
    case.callers.iter().filter_map(|it| fragmented(case, it)).collect()
}

/// Who reads a file in sequence has the disk seek.
fn fragmented(case: &Case, caller: &Caller) -> Option<Finding> {
    let disk = &case.result()?.disk;
    if caller.kind != CallKind::Read || !case.turns() || case.row()?.mount.is_none() {
        return None;
    }
    if case.goes_in_sequence(&caller.job) != Some(true) {
        return None;
    }
    let others = case.callers.iter().filter(|it| it.job != caller.job);
    let others: u64 = others.map(|it| it.calls).sum();
    let mean = disk.read_bytes.0 / disk.reads.max(1);
    let seeks = 2 * disk.sequential < disk.commands && mean < PIECE;
    if !seeks || others * OTHERS > disk.commands || caller.tasks > 1 {
        return None;
    }
    let is_about = |it: &Part| matches!(it.layer, Layer::Device | Layer::Shared | Layer::Full);
    let mut found = case.finding("fragmented", caller, is_about).filter(|it| it.share >= MOST)?;
    found.culprit = None;
    found.title = format!("{} reads in sequence what lies in pieces on the disk", caller.job);
    found.evidence.push(format!(
        "of {} commands {} begin where the one before ended; reads have {} KiB on average",
        disk.commands,
        disk.sequential,
        mean >> 10
    ));
    found.mechanism = "What was written at random places, or by several at once, got its blocks in \
        that order. Who reads it from its beginning to its end seeks from piece to piece.";
    let told = "write it anew in one piece (cp), or have room set aside before (fallocate)";
    found.remedies.push(Remedy::told(told));
    Some(found)
}
