//! Rules bfq-raise, bfq-raise-end and bfq-burst: weights that are raised, and bursts.

use super::{NEVER, NaiveBfq};

const INTERACTIVE: i64 = 30;
const SOFT: i64 = 3_000;

/// What an arrival at a queue that is not busy looks like.
pub(super) struct Arrival {
    pub idle_long: bool,
    pub was_raised: bool,
    pub deserves: bool,
    pub interactive: bool,
    pub soft: bool,
}

impl NaiveBfq {
    pub(super) fn wr_duration(&self) -> i64 {
        let (rate, millis) = if self.rotational { (14_000, 7_000) } else { (33_000, 2_500) };
        let time = self.ms(millis) * rate / self.rate.peak.max(1);
        time.clamp(self.ms(3_000), self.ms(25_000))
    }

    pub(super) fn is_soft(&self, q: usize) -> bool {
        self.queues[q].wr_max == self.ms(300)
    }

    pub(super) fn raise(&mut self, q: usize) {
        self.entity_mut(q).raised = INTERACTIVE;
        self.queues[q].wr_max = self.wr_duration();
    }

    fn back_to_interactive(&mut self, q: usize) {
        self.raise(q);
        self.queues[q].wr_last = self.queues[q].wr_switched;
        self.entity_mut(q).changed = true;
    }

    pub(super) fn end_raising(&mut self, q: usize) {
        if !self.is_soft(q) {
            self.queues[q].soft_next = self.jiffies;
        }
        self.entity_mut(q).raised = 1;
        self.entity_mut(q).changed = true;
        self.queues[q].wr_max = 0;
        self.queues[q].wr_last = self.jiffies;
    }

    /// Rule bfq-insert-4, the second sentence.
    pub(super) fn end_soft_of_seeky(&mut self, q: usize) {
        if self.is_raised(q) && self.is_soft(q) && self.totally_seeky(q) {
            if self.queues[q].wr_switched + self.wr_duration() < self.jiffies {
                self.end_raising(q);
            } else {
                self.back_to_interactive(q);
            }
        }
    }

    /// Rule bfq-raise-end, after each dispatch from the queue in service.
    pub(super) fn update_raising(&mut self, q: usize) {
        let now = self.jiffies;
        if self.is_raised(q) {
            let queue = &self.queues[q];
            let is_over = queue.wr_last + queue.wr_max < now;
            let falls_back = self.is_soft(q) && queue.wr_switched + self.wr_duration() >= now;
            match (queue.in_burst, is_over, falls_back) {
                (true, _, _) | (false, true, false) => self.end_raising(q),
                (false, true, true) => self.back_to_interactive(q),
                (false, false, _) => {}
            }
            if self.is_raised(q) && !self.is_soft(q) && self.queues[q].from_wr > 120_000 {
                self.end_raising(q);
            }
        }
        let entity = self.entity(q);
        if (entity.weight > entity.orig) != (entity.raised > 1) {
            self.apply(self.queues[q].e, false);
        }
    }

    pub(super) fn next_soft_start(&self, q: usize) -> i64 {
        let queue = &self.queues[q];
        let paced = queue.last_backlogged + self.hz * queue.backlogged / 7_000;
        let idle = self.slice_idle / (1_000_000_000 / self.hz);
        queue.soft_next.max(paced).max(self.jiffies + idle + 4)
    }

    pub(super) fn look_at_arrival(&self, q: usize) -> Arrival {
        let now = self.jiffies;
        let queue = &self.queues[q];
        let idle_long = queue.dispatched == 0 && queue.budget_timeout + self.ms(2_000) < now;
        let plain = self.entity(q).new_weight == 40 && !queue.in_burst;
        let soft =
            plain && !self.totally_seeky(q) && queue.soft_next < now && queue.dispatched == 0;
        let interactive = plain && idle_long;
        let was_raised = self.is_raised(q);
        let may = queue.sync && queue.owner.is_some() && (interactive || soft);
        let deserves = self.low_latency && (was_raised || may);
        Arrival { idle_long, was_raised, deserves, interactive, soft }
    }

    /// Rule bfq-raise.
    pub(super) fn raise_at_arrival(&mut self, q: usize, arrival: &Arrival) {
        let old = self.entity(q).raised;
        if !arrival.was_raised && arrival.deserves {
            if arrival.interactive {
                self.queues[q].from_wr = 0;
                self.raise(q);
            } else {
                self.queues[q].wr_switched = NEVER;
                self.entity_mut(q).raised = SOFT;
                self.queues[q].wr_max = self.ms(300);
            }
            let most = 2 * self.min_budget();
            self.entity_mut(q).budget = self.entity(q).budget.min(most);
        } else if arrival.was_raised {
            if arrival.interactive {
                self.raise(q);
            } else if self.queues[q].in_burst {
                self.entity_mut(q).raised = 1;
            } else if arrival.soft {
                if !self.is_soft(q) {
                    self.queues[q].wr_switched = self.queues[q].wr_last;
                    self.queues[q].wr_max = self.ms(300);
                    self.entity_mut(q).raised = SOFT;
                }
                self.queues[q].wr_last = self.jiffies;
            }
        }
        if self.entity(q).raised != old {
            self.entity_mut(q).changed = true;
        }
    }

    /// Rule bfq-burst.
    pub(super) fn handle_burst(&mut self, q: usize) {
        if self.burst.contains(&q) || self.queues[q].in_burst {
            return;
        }
        let group = self.entity(q).level;
        if self.burst_last + self.ms(180) < self.jiffies || group != self.burst_group {
            self.burst_is_large = false;
            self.burst.clear();
            self.burst_size = 0;
            if self.busy().is_empty() {
                self.burst.push(q);
                self.burst_size = 1;
            }
            self.burst_group = group;
        } else if self.burst_is_large {
            self.queues[q].in_burst = true;
        } else {
            self.burst_size += 1;
            self.burst.push(q);
            if self.burst_size == 8 {
                self.burst_is_large = true;
                for q in std::mem::take(&mut self.burst) {
                    self.queues[q].in_burst = true;
                }
            }
        }
        self.burst_last = self.jiffies;
    }
}
