//! Bursts: many queues that come into being at once serve one task together and are not raised
//! (rules bfq-burst).

use super::queue::QueueId;
use super::{Bfq, LONG_AGO};
use alloc::vec::Vec;

/// Queues come in one burst if they are no farther apart, in milliseconds.
const INTERVAL: u64 = 180;
/// So many queues make a burst large.
const LARGE: u32 = 8;

/// The burst that goes on.
#[derive(Clone, Debug)]
pub(super) struct Burst {
    list: Vec<QueueId>,
    pub size: u32,
    is_large: bool,
    /// The group in which it is.
    group: u32,
    last: i64,
}

impl Default for Burst {
    fn default() -> Burst {
        Burst { list: Vec::new(), size: 0, is_large: false, group: 0, last: LONG_AGO }
    }
}

impl Bfq {
    /// A new queue gets its first request.
    pub(super) fn handle_burst(&mut self, id: QueueId) {
        let now = self.jiffies;
        let queue = &self.queues[id];
        let is_in_one = queue.in_burst_list || queue.in_large_burst;
        if is_in_one || queue.split_time + self.ms(10) >= now {
            return;
        }
        let group = self.engine[queue.entity].group;
        let is_over = self.burst.last + self.ms(INTERVAL) < now;
        if is_over || group != self.burst.group {
            self.burst.is_large = false;
            self.clear_burst();
            if self.may_burst() {
                self.join_burst(id);
            }
            self.burst.group = group;
        } else if self.burst.is_large {
            self.queues[id].in_large_burst = true;
        } else if self.burst.size + 1 == LARGE {
            // How many there are matters no more.
            self.burst.is_large = true;
            let list = core::mem::take(&mut self.burst.list);
            for id in list.into_iter().chain([id]) {
                self.queues[id].in_large_burst = true;
                self.queues[id].in_burst_list = false;
            }
        } else {
            self.join_burst(id);
        }
        self.burst.last = now;
    }

    /// Whether a burst may begin.
    pub(super) fn may_burst(&self) -> bool {
        self.rules.bursts_while_busy || self.busy_queues() == 0
    }

    fn join_burst(&mut self, id: QueueId) {
        self.burst.list.push(id);
        self.burst.size += 1;
        self.queues[id].in_burst_list = true;
    }

    fn clear_burst(&mut self) {
        for id in core::mem::take(&mut self.burst.list) {
            self.queues[id].in_burst_list = false;
        }
        self.burst.size = 0;
    }

    /// A process that had shared a queue gets one of its own again.
    pub(super) fn restore_burst(&mut self, id: QueueId, was_listed: bool, was_large: bool) {
        if was_large || was_listed && self.burst.is_large {
            self.queues[id].in_large_burst = true;
        } else if was_listed && !self.queues[id].in_burst_list {
            self.burst.list.push(id);
            self.queues[id].in_burst_list = true;
        }
    }

    /// Whether a queue is in the list.
    pub(super) fn is_listed(&self, id: QueueId) -> bool {
        self.burst.list.contains(&id)
    }

    /// A queue leaves the list.
    pub(super) fn leave_burst(&mut self, id: QueueId) {
        if core::mem::take(&mut self.queues[id].in_burst_list) {
            self.burst.list.retain(|other| *other != id);
        }
    }
}
