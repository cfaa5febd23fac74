//! The flush machinery's state: requests that need a flush wait in a pending list, and one flush
//! command serves all of them.

use crate::request::RequestId;
use alloc::vec::Vec;
use base::{Duration, Instant};

/// A pending flush waits no longer than this for data in flight (rule flush-3).
const PENDING_LIMIT: Duration = Duration::from_secs(5);

/// The state of the machinery: per device (single queue) or per hardware queue (blk-mq).
#[derive(Default)]
pub(super) struct FlushMachine {
    /// Requests that wait for the next flush command.
    pub pending: Vec<RequestId>,
    /// Requests that the flush command under way serves.
    pub running: Vec<RequestId>,
    /// Since when the oldest pending one waits.
    pub pending_since: Option<Instant>,
    /// Requests whose data step is under way.
    pub data_in_flight: u32,
    /// The flush command under way.
    pub command: Option<RequestId>,
}

impl FlushMachine {
    /// Adds a request that needs a flush.
    pub fn wait(&mut self, now: Instant, rq: RequestId) {
        if self.pending.is_empty() {
            self.pending_since = Some(now);
        }
        self.pending.push(rq);
    }

    /// Whether a flush command should be issued now.
    pub fn should_start(&self, now: Instant, waits_for_data: bool) -> bool {
        let Some(since) = self.pending_since else { return false };
        if self.command.is_some() || self.pending.is_empty() {
            return false;
        }
        let overdue = now.saturating_since(since) > PENDING_LIMIT;
        !waits_for_data || self.data_in_flight == 0 || overdue
    }

    /// The pending requests become the running ones, served by `command`.
    pub fn start(&mut self, command: RequestId) {
        assert!(self.running.is_empty(), "one flush command at a time");
        core::mem::swap(&mut self.pending, &mut self.running);
        self.pending_since = None;
        self.command = Some(command);
    }

    /// Keeps the room of a list that is not needed any more.
    pub fn reuse(&mut self, mut served: Vec<RequestId>) {
        served.clear();
        match self.command {
            None => self.running = served,
            Some(_) if self.pending.is_empty() => self.pending = served,
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_waits_for_data_in_flight_but_not_for_ever() {
        let mut machine = FlushMachine { data_in_flight: 1, ..FlushMachine::default() };
        machine.wait(Instant::ZERO, RequestId::from_bits(0));
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        assert!(!machine.should_start(at(5), true));
        assert!(machine.should_start(at(6), true));
        assert!(machine.should_start(at(0), false));
    }
}
