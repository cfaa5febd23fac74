//! Which logs a job writes.

use base::Duration;

use super::super::job::Logs;
use super::Builder;

impl Builder<'_, '_> {
    pub(super) fn logs(&self) -> Logs {
        // Observed: without a name they are called as the job is.
        let name = |option: &str| {
            let given = self.settings.get(option).and_then(|_| self.text(option));
            given.map(|name| if name.is_empty() { self.name } else { name }.to_owned())
        };
        let window = self.number("log_avg_msec").filter(|millis| *millis > 0);
        Logs {
            latency: name("write_lat_log"),
            bandwidth: name("write_bw_log"),
            requests: name("write_iops_log"),
            window: window.map(Duration::from_millis),
            largest: self.switch("log_max_value"),
            offsets: self.switch("log_offset"),
            priorities: self.switch("log_prio"),
            per_process: self.switch("per_job_logs"),
        }
    }
}
