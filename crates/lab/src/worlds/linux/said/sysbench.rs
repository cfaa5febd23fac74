//! What sysbench says in the end: rates with two decimals, and the time that they are of. Numbers
//! of calls are the products of both, so they are as exact as what is printed. Latencies are of
//! reads, writes and syncs together and in hundredths of a millisecond, so none are taken.

use crate::metrics::CallKind;
use crate::plan::PlannedJob;
use crate::result::{CallResult, JobResult};
use base::{Bytes, Duration};

const MIB: f64 = 1048576.0;

/// The figures of a job.
pub(super) fn result(planned: &PlannedJob, output: &str) -> JobResult {
    let number = |label: &str| {
        let line = output.lines().find_map(|line| line.trim().strip_prefix(label))?;
        line.trim().trim_end_matches('s').parse::<f64>().ok()
    };
    let seconds = number("total time:").unwrap_or(0.0);
    let mut result = JobResult {
        name: planned.job.name.clone(),
        cgroup: planned.job.cgroup.clone(),
        tasks: 1,
        runtime: Duration::from_nanos((seconds * 1e9) as u64),
        ..JobResult::default()
    };
    let kinds = [
        (CallKind::Read, "reads/s:", Some("read, MiB/s:")),
        (CallKind::Write, "writes/s:", Some("written, MiB/s:")),
        (CallKind::Sync, "fsyncs/s:", None),
    ];
    for (kind, calls, bytes) in kinds {
        let iops = number(calls).unwrap_or(0.0);
        let bandwidth = bytes.and_then(number).unwrap_or(0.0) * MIB;
        result.calls[kind as usize] = CallResult {
            count: (iops * seconds).round() as u64,
            bytes: Bytes((bandwidth * seconds).round() as u64),
            bw_bytes: bandwidth,
            iops,
            ..CallResult::default()
        };
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_lines_are_understood() {
        let line = "sysbench fileio --file-test-mode=seqwr run";
        let mut planned = PlannedJob::new("load", std::sync::Arc::new(programs::Sync));
        planned.line = Some(line.to_string());
        let output = "File operations:\n    reads/s:                      0.00\n    \
                      writes/s:                     2920.00\n    fsyncs/s:                     \
                      120.00\n\nThroughput:\n    read, MiB/s:                  0.00\n    \
                      written, MiB/s:               45.63\n\nGeneral statistics:\n    \
                      total time:                          0.1000s\n";
        let result = result(&planned, output);
        assert_eq!(result.runtime, Duration::from_millis(100));
        let counts = [CallKind::Read, CallKind::Write, CallKind::Sync];
        assert_eq!(counts.map(|kind| result.call(kind).count), [0, 292, 12]);
        assert_eq!(result.call(CallKind::Write).bytes.0 >> 20, 4);
    }
}
