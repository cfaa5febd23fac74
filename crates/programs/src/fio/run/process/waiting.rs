//! What a process waits for between its requests: rates, flows, pauses; and ioengine cpuio, which
//! does nothing but compute and wait.

use base::{Duration, Instant};

use super::super::super::job::{Direction, Directions};
use super::Process;

impl Process<'_> {
    /// Waits until a request is due, and says in which direction; `None` if time is over before.
    pub(super) async fn wait_for_its_time(&mut self) -> Option<Direction> {
        let mut direction = self.walk.direction();
        if !self.rates.are_limited() {
            return Some(direction);
        }
        // A direction that has its rate makes room for the other one. Only what was written in
        // the drawn order can be found again.
        if self.written.is_none() && matches!(self.job.pattern.directions, Directions::ReadWrite(_))
        {
            let other = match direction {
                Direction::Read => Direction::Write,
                _ => Direction::Read,
            };
            if self.rates.due(direction) > self.task.now()
                && self.rates.due(other) < self.rates.due(direction)
            {
                direction = other;
            }
        }
        let due = self.rates.due(direction);
        if due > self.task.now() && !self.lanes.is_offloaded() {
            self.collect_all().await;
        }
        self.sleep_until(due.min(self.deadline.unwrap_or(Instant::FAR_FUTURE))).await;
        (!self.must_end()).then_some(direction)
    }

    /// Sleeps until a point in time, or until the process is told to stop.
    async fn sleep_until(&mut self, until: Instant) {
        while self.task.now() < until && !self.crew.must_stop(self.job.number as usize) {
            self.task.notified_until(until).await;
        }
    }

    /// Whether the process had to wait because it is ahead in its flow.
    pub(super) async fn waits_for_its_flow(&mut self) -> bool {
        let Some(flow) = self.job.pace.flow else { return false };
        let number = self.job.number as usize;
        if !self.crew.is_ahead(&self.task, number, flow) {
            self.crew.count_flow(&self.task, number, flow);
            return false;
        }
        self.collect_all().await;
        let deadline = self.deadline.unwrap_or(Instant::FAR_FUTURE);
        if flow.sleep.is_zero() {
            self.task.notified_until(deadline).await;
        } else {
            self.sleep_until(deadline.min(self.task.now() + flow.sleep)).await;
        }
        true
    }

    /// Thinks, if it is time to.
    pub(super) async fn pause_if_due(&mut self) {
        let now = self.task.now();
        let Some(pauses) = &mut self.pauses else { return };
        if !pauses.is_due(self.issued, self.completed, now) {
            return;
        }
        let think = self.job.pace.think.expect("there are pauses only if it thinks");
        self.collect_all().await;
        let begun = self.task.now();
        self.task.compute(think.spin).await;
        self.sleep_until(begun.saturating_add(think.time)).await;
        let now = self.task.now();
        if self.job.pace.rate_ignores_think {
            self.rates.leave_out(now.since(begun));
        }
        if let Some(pauses) = &mut self.pauses {
            pauses.ended(now);
        }
    }

    /// ioengine cpuio: computes and sleeps in turn.
    pub(super) async fn keep_a_core_busy(&mut self) {
        let load = self.job.cpu.expect("the engine is cpuio");
        let percent = u64::from(load.percent.clamp(1, 100));
        let rest = Duration::from_nanos(load.chunk.as_nanos() * (100 - percent) / percent);
        let deadline = self.deadline.unwrap_or(Instant::FAR_FUTURE);
        loop {
            if self.must_end() || (load.exit_on_io_done && self.crew.io_has_ended()) {
                return;
            }
            let left = deadline.saturating_since(self.task.now());
            self.task.compute(load.chunk.min(left)).await;
            let until = deadline.min(self.task.now().saturating_add(rest));
            if !rest.is_zero() {
                self.task.notified_until(until).await;
            }
        }
    }
}
