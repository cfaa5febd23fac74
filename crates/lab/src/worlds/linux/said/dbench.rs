//! What dbench says in the end: a table of operations with their numbers, means and longest times.
//! Counts are of the time after the warm-up. How many bytes reads and writes had is said of both
//! together only, as the throughput.

use crate::metrics::{CallKind, Latency};
use crate::plan::PlannedJob;
use crate::result::{CallResult, JobResult};
use crate::told::Told;
use base::Duration;

/// The figures of a job.
pub(super) fn result(planned: &PlannedJob, output: &str) -> JobResult {
    let lines: Vec<String> = output.lines().map(str::to_string).collect();
    let seconds = seconds(output).unwrap_or(0);
    let mut result = JobResult {
        name: planned.job.name.clone(),
        cgroup: planned.job.cgroup.clone(),
        tasks: 1,
        runtime: Duration::from_secs(seconds),
        told: Told::by(&*planned.program, &lines),
        ..JobResult::default()
    };
    let kinds = [(CallKind::Read, "ReadX"), (CallKind::Write, "WriteX"), (CallKind::Sync, "Flush")];
    for (kind, name) in kinds {
        let Some((count, mean, max)) = row(output, name) else { continue };
        let lat = Latency { count, mean, max, ..Latency::default() };
        let iops = count as f64 / seconds.max(1) as f64;
        let (clat, lat) = (lat.clone(), lat);
        result.calls[kind as usize] =
            CallResult { count, iops, clat, lat, ..CallResult::default() };
    }
    result
}

/// `   2  cleanup   5 sec`: the first time, when clients were told to end.
fn seconds(output: &str) -> Option<u64> {
    let line = output.lines().find(|line| line.contains(" cleanup "))?;
    line.split_whitespace().nth(2)?.parse().ok()
}

/// ` Flush           2466     2.162   157.605`: a number, and milliseconds.
fn row(output: &str, name: &str) -> Option<(u64, Duration, Duration)> {
    let of = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [it, count, mean, max] = words[..] else { return None };
        let time = |text: &str| {
            let millis: f64 = text.parse().ok()?;
            Some(Duration::from_nanos((millis * 1e6) as u64))
        };
        (it == name).then_some(())?;
        Some((count.parse().ok()?, time(mean)?, time(max)?))
    };
    output.lines().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_understood() {
        let output = [
            "   2  cleanup   5 sec",
            "   0  cleanup   5 sec",
            " Operation      Count    AvgLat    MaxLat",
            " ReadX          55144     0.004    36.152",
            " Flush           2466     2.162   157.605",
        ]
        .join("\n");
        let planned = PlannedJob::new("load", std::sync::Arc::new(programs::Sync));
        let result = result(&planned, &output);
        assert_eq!(result.runtime, Duration::from_secs(5));
        let counts = [CallKind::Read, CallKind::Write, CallKind::Sync];
        assert_eq!(counts.map(|kind| result.call(kind).count), [55144, 0, 2466]);
        assert_eq!(result.call(CallKind::Sync).lat.max, Duration::from_micros(157_605));
    }
}
