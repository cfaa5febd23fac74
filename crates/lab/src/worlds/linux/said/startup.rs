//! What a replayed start-up says: `xterm: 721 reads in 12.345 ms`.

use crate::metrics::CallKind;
use crate::plan::PlannedJob;
use crate::result::{CallResult, JobResult};
use base::Duration;

/// The figures of a job.
pub(super) fn result(planned: &PlannedJob, output: &str) -> JobResult {
    let (count, runtime) = output.lines().find_map(took).unwrap_or_default();
    let seconds = runtime.as_nanos().max(1) as f64 / 1e9;
    let mut result = JobResult {
        name: planned.job.name.clone(),
        cgroup: planned.job.cgroup.clone(),
        tasks: 1,
        runtime,
        ..JobResult::default()
    };
    result.calls[CallKind::Read as usize] =
        CallResult { count, iops: count as f64 / seconds, ..CallResult::default() };
    result
}

fn took(line: &str) -> Option<(u64, Duration)> {
    let (_, rest) = line.split_once(": ")?;
    let (count, time) = rest.strip_suffix(" ms")?.split_once(" reads in ")?;
    let millis: f64 = time.parse().ok()?;
    Some((count.parse().ok()?, Duration::from_nanos((millis * 1e6) as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_understood() {
        assert_eq!(took("a: 721 reads in 12.5 ms"), Some((721, Duration::from_micros(12_500))));
        assert_eq!(took("something else"), None);
    }
}
