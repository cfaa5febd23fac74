//! What is known of a process: how long it thinks, and how far it seeks (rules as-process).

use super::Anticipatory;
use base::Sector;
use block::IoContextId;

/// Longest think time that is counted: HZ/50 less a tick (rule as-process-1).
const MAX_THINK_MILLIS: u64 = 20;
/// Samples up to which a far seek may weigh much, in units of the exponential mean.
const FEW_SAMPLES: u64 = 60;
/// How much farther than four times the mean a seek may count, in sectors: at first, and later.
const FAR: [u64; 2] = [2 * 1024 * 1024, 2 * 1024 * 64];

/// An io_context with this scheduler.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    /// Its last task is gone.
    pub has_exited: bool,
    /// It had a request inserted; and one completed.
    pub has_started: bool,
    pub is_running: bool,
    /// Requests that are bound to it.
    pub requests: u32,
    /// Those in directions.
    pub queued: u32,
    /// Those that left and that the driver has not looked at.
    pub dispatched: u32,
    pub last_end_request: i64,
    pub last_request_end: Sector,
    pub think: Mean,
    pub seek: Mean,
}

/// An exponential mean with weight 1/8.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    pub samples: u64,
    total: u64,
    pub mean: u64,
}

/// What is known of processes in general, from their first requests.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Newcomers {
    /// In 256ths: that a process exits instead of sending a second request.
    pub exit_probability: u64,
    /// In 256ths: that nobody goes on close by when a process has exited.
    pub no_successor: u64,
    think_total: u64,
    pub think: i64,
    seek_total: u64,
    pub seek: u64,
}

impl Process {
    pub fn since(now: i64) -> Process {
        Process { last_end_request: now, ..Process::default() }
    }
}

impl Mean {
    fn add(&mut self, value: u64, rounding: impl Fn(u64) -> u64) {
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * value) / 8;
        self.mean = (self.total + rounding(self.samples)) / self.samples;
    }
}

impl Newcomers {
    fn note_think(&mut self, think: u64) {
        self.think_total = (7 * self.think_total + 256 * think) / 8;
        self.think = (self.think_total / 256) as i64;
        self.exit_probability = 7 * self.exit_probability / 8;
    }

    fn note_seek(&mut self, distance: u64) {
        self.seek_total = (7 * self.seek_total + 256 * distance) / 8;
        self.seek = self.seek_total / 256;
    }

    /// A process that was waited for after its first request did not come back.
    pub fn note_exit(&mut self) {
        self.exit_probability = (7 * self.exit_probability + 256) / 8;
    }

    /// Whether somebody went on close to where a process had exited.
    pub fn note_succession(&mut self, happened: bool) {
        self.no_successor = (7 * self.no_successor + if happened { 0 } else { 256 }) / 8;
    }
}

impl Anticipatory {
    /// A synchronous request from `sector` to `end` arrives, of this process or in its place.
    pub(super) fn note_arrival(&mut self, now: i64, id: IoContextId, sector: Sector, end: Sector) {
        let most = (self.settings.hz.jiffies_from_millis(MAX_THINK_MILLIS).0 as i64 - 1).max(0);
        let Some(process) = self.processes.get_mut(&id) else { return };
        if process.is_running || process.has_started {
            let thinks = process.is_running && process.queued + process.dispatched == 0;
            let since = (now - process.last_end_request).clamp(0, most);
            let think = if thinks { since as u64 } else { 0 };
            if process.think.samples == 0 {
                self.newcomers.note_think(think);
            }
            process.think.add(think, |_| 128);
            let distance = sector.0.abs_diff(process.last_request_end.0);
            if process.seek.samples == 0 {
                self.newcomers.note_seek(distance);
            }
            let far = FAR[usize::from(process.seek.samples > FEW_SAMPLES)];
            process.seek.add(distance.min(4 * process.seek.mean + far), |samples| samples / 2);
        }
        process.last_request_end = end;
        process.has_started = true;
    }

    /// Nobody needs what is known of a process that is gone.
    pub(super) fn forget_if_gone(&mut self, id: IoContextId) {
        let is_gone = |process: &super::Process| process.has_exited && process.requests == 0;
        if self.wait.awaited != Some(id) && self.processes.get(&id).is_some_and(is_gone) {
            self.processes.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_grow_as_documented() {
        let mut mean = Mean::default();
        let counts: [u64; 8] = core::array::from_fn(|_| {
            mean.add(4, |_| 128);
            mean.samples
        });
        // Rule as-process-2.
        assert_eq!(counts, [32, 60, 84, 105, 123, 139, 153, 165]);
    }

    #[test]
    fn probabilities_approach_their_bounds_by_eighths() {
        let mut newcomers = Newcomers::default();
        newcomers.note_succession(false);
        assert_eq!(newcomers.no_successor, 32);
        newcomers.note_succession(false);
        assert_eq!(newcomers.no_successor, 60);
        newcomers.note_succession(true);
        assert_eq!(newcomers.no_successor, 52);
        let exits: [u64; 6] = core::array::from_fn(|_| {
            newcomers.note_exit();
            newcomers.exit_probability
        });
        assert_eq!(exits, [32, 60, 84, 105, 123, 139]);
        newcomers.note_think(3);
        assert_eq!(newcomers.exit_probability, 121);
    }
}
