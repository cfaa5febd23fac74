//! What is in memory, and is there no more: pages that somebody had to make room for, or dropped,
//! and pages of a file that somebody else has made dirty.

use crate::explain::account::{Caller, Part};
use crate::explain::case::Case;
use crate::explain::finding::{Change, Finding, Remedy};
use crate::metrics::CallKind;
use base::Duration;
use block::PagesWhy;
use insight::Layer;

/// Who has the disk read for this part of its time would gain by memory.
const READING: f64 = 0.3;
/// So many times the memory is tried.
const MORE: u64 = 4;
/// Of the pages that are read so many are to be one that is read again.
const OF_PAGES: u64 = 4;
/// What is read ahead for all readers may take one of so many parts of memory.
const READ_AHEAD: u64 = 4;

/// Callers whose pages somebody else has to do with.
pub fn detect(case: &Case) -> Vec<Finding> {
    let detectors = [evicted, dropped, of_others];
    let all = case.callers.iter().flat_map(|caller| detectors.map(|it| it(case, caller)));
    all.flatten().collect()
}

/// Pages that a caller had to do with for this reason, and with whom most. What it has dropped or
/// made dirty itself it has chosen.
fn pages(caller: &Caller, why: PagesWhy) -> Option<(u64, String)> {
    let is_own = |by: &String| why != PagesWhy::Evicted && *by == caller.job;
    let its = caller.pages.iter().filter(|it| it.0.0 == why && !is_own(&it.0.1));
    let all = its.clone().map(|it| it.1).sum();
    Some((all, its.max_by_key(|it| it.1)?.0.1.clone()))
}

/// The same of a caller who waits for the disk because pages are not there, if those are many.
fn read_again(
    case: &Case,
    caller: &Caller,
    name: &'static str,
    why: PagesWhy,
) -> Option<(Finding, String)> {
    let (count, by) = pages(caller, why)?;
    let is_read = |it: PagesWhy| it != PagesWhy::Dirtied;
    let all: u64 = caller.pages.iter().filter(|it| is_read(it.0.0)).map(|it| it.1).sum();
    if count * OF_PAGES < all {
        return None;
    }
    let of = |it: &Part| match it.layer {
        Layer::Computing | Layer::Core | Layer::Pause => Duration::ZERO,
        _ if caller.kind == CallKind::Read => it.time,
        _ => it.reading,
    };
    let mut found = case.finding_of(name, caller, of).filter(|it| it.share >= READING)?;
    found
        .evidence
        .push(format!("{count} of {all} pages were read again, most of them because of {by}"));
    found.culprit = Some(by.clone()).filter(|it| *it != caller.job && !case.is_kernel(it));
    Some((found, by))
}

/// Pages had to leave memory for those of somebody, and are read again.
fn evicted(case: &Case, caller: &Caller) -> Option<Finding> {
    let memory = case.row()?.memory.0;
    let (mut found, by) = read_again(case, caller, "evicted", PagesWhy::Evicted)?;
    let more = format!("{} MiB of memory", (memory * MORE) >> 20);
    found.remedies.push(Remedy::tried(more, Change::Memory(memory * MORE)));
    found.remedies.extend(read_ahead_less(case, memory));
    if by == caller.job {
        found.title = format!("{by} pushes out of memory what it reads again itself");
        found.mechanism = "It needs more pages than there is memory. What it needs again, or what \
            was read ahead for it, has left before its turn comes.";
        return Some(found);
    }
    found.title = format!("{by} pushes out of memory what {} reads again", caller.job);
    found.mechanism = "All files share the page cache. Who reads or writes much once takes the \
        place of what others read over and over, and these go to the disk for it.";
    found.remedies.push(Remedy::told(format!(
        "have {by} use O_DIRECT, or posix_fadvise(POSIX_FADV_DONTNEED) behind it"
    )));
    found.remedies.push(Remedy::told(format!(
        "a control group for {} with memory.low, or one for {by} with memory.high",
        caller.job
    )));
    Some(found)
}

/// Windows that fit into memory, where those of all readers do not.
fn read_ahead_less(case: &Case, memory: u64) -> Option<Remedy> {
    let window = u64::try_from(case.value("read_ahead_kb")?).ok()? << 10;
    let readers = case.buffered_readers();
    let fits = memory / READ_AHEAD / readers.max(1);
    if readers < 2 || window <= fits {
        return None;
    }
    let kib = (fits >> 10).checked_ilog2().map_or(4, |it| 1 << it);
    case.setting("read_ahead_kb", kib)
}

/// Somebody had pages dropped that a caller reads again.
fn dropped(case: &Case, caller: &Caller) -> Option<Finding> {
    let (mut found, by) = read_again(case, caller, "dropped", PagesWhy::Dropped)?;
    if case.is_direct(&by) {
        found.title = format!("{by} writes past the page cache what {} reads from it", caller.job);
        found.mechanism = "A direct write drops the pages that it covers from memory, so that \
            nobody reads old data. Whoever reads that file through the page cache goes to the \
            disk for each of them.";
        found.remedies.push(Remedy::told(format!("have {by} write without O_DIRECT")));
        return Some(found);
    }
    found.title = format!("{by} drops from memory what {} reads again", caller.job);
    found.mechanism = "POSIX_FADV_DONTNEED drops the pages of a file for everybody. fio does that \
        with its files before it begins, unless told otherwise.";
    found.remedies.push(Remedy::told(format!(
        "no POSIX_FADV_DONTNEED in {by}, which is invalidate=0 for fio"
    )));
    Some(found)
}

/// How much of a part a request has that writes.
fn writing(it: &Part) -> Duration {
    let is_of_request =
        matches!(it.layer, Layer::Device | Layer::Shared | Layer::Full | Layer::Others)
            || it.layer.is_held();
    let others = it.reading + it.locked;
    if is_of_request { it.time.saturating_sub(others) } else { Duration::ZERO }
}

/// How much of a part goes into writing pages: to find and to submit them takes a core, too.
fn at_work(it: &Part) -> Duration {
    if matches!(it.layer, Layer::Core | Layer::Pause) { Duration::ZERO } else { it.time }
}

/// A caller writes what others have made dirty: of the file that it syncs or reads past the page
/// cache, or of all files.
fn of_others(case: &Case, caller: &Caller) -> Option<Finding> {
    let (count, by) = pages(caller, PagesWhy::Dirtied)?;
    let are_few = count * OF_PAGES < caller.calls;
    if case.is_kernel(&by) || are_few && caller.kind != CallKind::Read {
        return None;
    }
    // Many pages slow down all that the drive does, which has taken them in. Few cost those reads
    // that wait for them.
    let of = |it: &Part| if are_few { writing(it) } else { at_work(it) };
    let mut found = case.finding_of("dirty-pages-of-others", caller, of)?;
    found.culprit = Some(by.clone());
    found.evidence.push(format!("{count} pages were written that others had made dirty"));
    let victim = &caller.job;
    (found.title, found.mechanism) = match caller.kind {
        CallKind::Sync => (
            format!("{victim} syncs what {by} has written"),
            "fsync, fdatasync and msync write all that is dirty of a file, whoever has written it; \
             sync(2) writes all files.",
        ),
        _ => (
            format!("direct {}s of {victim} first write what {by} has written", caller.kind.name()),
            "Who goes around the page cache has to wait until what is dirty there, of the same \
             part of the file, is on the disk.",
        ),
    };
    found.remedies.push(Remedy::told(match caller.kind {
        CallKind::Sync => format!("a file of its own for {victim}, or a sync less often"),
        _ => format!("have {victim} go through the page cache, without O_DIRECT"),
    }));
    Some(found)
}
