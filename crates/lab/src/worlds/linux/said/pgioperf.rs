//! What pgioperf in the guest says: its own lines, and behind them how long it ran and how long the
//! calls of each kind of process took, in bins.

use crate::metrics::{CallKind, Latency};
use crate::plan::PlannedJob;
use crate::result::{CallResult, JobResult, decades};
use crate::told::{self, Told};
use base::{Bytes, Duration, Histogram};
use programs::pgioperf::{self, Pgioperf, READER, WAL};

const LATENCIES: &str = "latencies ";
const TOOK: &str = "took ";

/// Results of its processes, and what else is worth a line.
pub(super) fn results(
    planned: &PlannedJob,
    pgioperf: &Pgioperf,
    output: &str,
) -> (Vec<JobResult>, Vec<String>) {
    let figure = |line: &&str| line.starts_with(LATENCIES) || line.starts_with(TOOK);
    let said = output.lines().filter(|it| !figure(it)).map(str::to_string).collect();
    let took = output.lines().find_map(|it| it.strip_prefix(TOOK)?.parse().ok());
    let runtime = Duration::from_nanos(took.unwrap_or(0));
    let result = |name: &&'static str| {
        let tasks = if *name == READER { pgioperf.readers() } else { 1 };
        let mut result = JobResult {
            name: planned.result_name(name, false),
            cgroup: planned.job.cgroup.clone(),
            tasks: tasks as u32,
            runtime,
            ..JobResult::default()
        };
        for (kind, call) in
            [(CallKind::Read, "read"), (CallKind::Write, "write"), (CallKind::Sync, "sync")]
        {
            result.calls[kind as usize] = calls(&times(output, name, call), kind, runtime);
        }
        if *name == WAL {
            result.told = Told { commits: times(output, WAL, "commit").0, ..Told::default() };
        }
        result
    };
    let results = pgioperf.processes().iter().map(result).collect();
    (results, told::notes(pgioperf, said))
}

/// How long calls of a kind took, and the bins.
fn times(output: &str, process: &str, call: &str) -> (Latency, Histogram) {
    let start = format!("{LATENCIES}{process} {call} ");
    let line = output.lines().find_map(|it| it.strip_prefix(&start)).unwrap_or_default();
    let mut words = line.split(' ');
    let longest = words.next().and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut histogram = Histogram::new();
    for (nanos, count) in words.filter_map(|it| it.split_once(':')) {
        let (nanos, count) = (nanos.parse().unwrap_or(0), count.parse().unwrap_or(0));
        histogram.record_n(Duration::from_nanos(nanos), count);
    }
    // The middle of the last bin is not what was measured.
    let latency = Latency { max: Duration::from_nanos(longest), ..Latency::of(&histogram) };
    (latency, histogram)
}

fn calls(
    (latency, histogram): &(Latency, Histogram),
    kind: CallKind,
    runtime: Duration,
) -> CallResult {
    let rate = |amount: u64| amount as f64 * 1e9 / runtime.as_nanos().max(1) as f64;
    let bytes = if kind == CallKind::Sync { 0 } else { latency.count * pgioperf::BLOCK };
    CallResult {
        count: latency.count,
        bytes: Bytes(bytes),
        bw_bytes: rate(bytes),
        iops: rate(latency.count),
        clat: latency.clone(),
        lat: latency.clone(),
        decades: decades(histogram.bins()),
        ..CallResult::default()
    }
}
