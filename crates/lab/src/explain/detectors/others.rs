//! Who else used the disk, and how much.

use crate::explain::account::Caller;
use crate::explain::case::Case;
use crate::explain::finding::Remedy;
use crate::metrics::CallKind;
use crate::plan::Row;

/// The file of a control group that has its weight.
pub fn weight_file(row: &Row) -> &'static str {
    match (row.cgroup_writeback, row.spec.name) {
        (true, "bfq") => "io.bfq.weight",
        (false, "bfq") => "blkio.bfq.weight",
        (true, _) => "io.weight",
        (false, _) => "blkio.weight",
    }
}

/// What ends flushes, where that may be.
pub fn write_through(case: &Case) -> Remedy {
    Remedy::told(format!(
        "with a drive whose cache survives a power failure, and no other: echo 'write through' > \
         /sys/block/{}/queue/write_cache",
        case.disk()
    ))
}

/// The other job that used the disk most, if it used it a good deal.
pub fn busiest_other(case: &Case, caller: &Caller) -> Option<String> {
    let moved = |job: &str| moved(case, job, |_| true);
    let others = other_jobs(case, caller).filter(|it| moved(it) > moved(&caller.job) / 4);
    others.max_by_key(|it| moved(it))
}

/// The same, if it used it more than twice as much as this one: two who are alike share fairly.
pub fn bully(case: &Case, caller: &Caller) -> Option<String> {
    let moved = |job: &str| moved(case, job, |_| true);
    busiest_other(case, caller).filter(|it| moved(it) > 2 * moved(&caller.job))
}

/// The other job that wrote most, if that is more than twice as much as this one.
pub fn busiest_writer(case: &Case, caller: &Caller) -> Option<String> {
    let written = |job: &str| moved(case, job, |kind| kind == CallKind::Write);
    let others = other_jobs(case, caller).filter(|it| written(it) > 2 * written(&caller.job));
    others.max_by_key(|it| written(it))
}

/// The other job whose calls of sync and fsync took longest, if there is one that makes any.
pub fn syncer(case: &Case, caller: &Caller) -> Option<String> {
    let is_it = |it: &&Caller| it.kind == CallKind::Sync && it.job != caller.job;
    let others = case.callers.iter().filter(is_it).filter(|it| !case.is_kernel(&it.job));
    others.max_by_key(|it| it.total).map(|it| it.job.clone())
}

fn other_jobs(case: &Case, caller: &Caller) -> impl Iterator<Item = String> {
    let mut names: Vec<String> = match case.recording() {
        Some(_) => case.callers.iter().map(|it| it.job.clone()).collect(),
        None => case.jobs().map(|it| it.name.clone()).collect(),
    };
    names.retain(|it| *it != caller.job);
    names.into_iter()
}

/// The bytes that a job moved with calls of some kinds.
pub fn moved(case: &Case, job: &str, counts: impl Fn(CallKind) -> bool) -> u64 {
    let Some(result) = case.result() else {
        return case.recording().map_or(0, |it| it.moved(job, counts));
    };
    let its = result.jobs.iter().filter(|it| it.name == job);
    its.flat_map(|it| CallKind::ALL.iter().zip(&it.calls))
        .filter(|(kind, _)| counts(**kind))
        .map(|(_, calls)| calls.bytes.0)
        .sum()
}
