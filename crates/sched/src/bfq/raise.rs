//! Weight raising: what is interactive, or plays in real time, gets more of the disk for a while
//! (rules bfq-raise and bfq-raise-end).

use super::queue::QueueId;
use super::rules::{MayPlay, TotallySeeky};
use super::{Bfq, LONG_AGO, SRT_MAX_TIME};
use block::{Cx, RequestId};

/// By how much the weight of an interactive queue is raised.
pub(super) const INTERACTIVE: u32 = 30;
/// And that of one that plays in real time.
const REAL_TIME: u32 = 30 * 100;
/// Sectors that an interactive queue may be served while it is raised.
const MOST_SERVICE: u64 = 120_000;
/// A queue is soft real time if it asks for no more than this, in sectors a second.
const MAX_SRT_RATE: u64 = 7_000;
/// Only queues of this weight are raised.
const PLAIN_WEIGHT: u32 = 40;

impl Bfq {
    pub(super) fn coefficient(&self, id: QueueId) -> u32 {
        self.engine[self.queues[id].entity].coefficient
    }

    pub(super) fn is_raised(&self, id: QueueId) -> bool {
        self.coefficient(id) > 1
    }

    /// For how long an interactive queue is raised, in jiffies: as long as a large program takes to
    /// load from this disk.
    pub(super) fn raising_time(&self) -> i64 {
        let (rate, millis) = self.rate.reference();
        let jiffies = self.hz.jiffies_from_millis(millis).0;
        let time = jiffies * rate / self.rate.peak.max(1);
        let bounds = [3_000, 25_000].map(|millis| self.hz.jiffies_from_millis(millis).0);
        time.clamp(bounds[0], bounds[1]) as i64
    }

    fn is_srt(&self, id: QueueId) -> bool {
        self.queues[id].wr_cur_max_time == self.ms(SRT_MAX_TIME)
    }

    pub(super) fn raise_interactively(&mut self, id: QueueId) {
        let time = self.raising_time();
        self.set_coefficient(id, INTERACTIVE);
        self.queues[id].wr_cur_max_time = time;
    }

    /// It was raised for real time, and is interactive again since then.
    fn back_to_interactive(&mut self, id: QueueId) {
        self.raise_interactively(id);
        let queue = &mut self.queues[id];
        queue.last_wr_start_finish = queue.wr_start_at_switch_to_srt;
        let entity = queue.entity;
        self.engine[entity].prio_changed = true;
    }

    pub(super) fn set_coefficient(&mut self, id: QueueId, coefficient: u32) {
        let entity = self.queues[id].entity;
        self.engine[entity].coefficient = coefficient;
    }

    /// Raising ends.
    pub(super) fn end_raising(&mut self, id: QueueId) {
        let (is_srt, now) = (self.is_srt(id), self.jiffies);
        let queue = &mut self.queues[id];
        if !is_srt {
            queue.soft_rt_next_start = now;
        }
        if queue.is_busy {
            self.wr_busy -= 1;
        }
        let queue = &mut self.queues[id];
        queue.wr_cur_max_time = 0;
        queue.last_wr_start_finish = now;
        let entity = queue.entity;
        self.engine[entity].coefficient = 1;
        self.engine[entity].prio_changed = true;
    }

    /// A raised queue has turned out to jump about: it does not play.
    pub(super) fn end_real_time(&mut self, id: QueueId) {
        let started = self.queues[id].wr_start_at_switch_to_srt;
        let ends = self.rules.totally_seeky != TotallySeeky::FallsBack;
        if ends || started + self.raising_time() < self.jiffies {
            self.end_raising(id);
        } else {
            self.back_to_interactive(id);
        }
    }

    /// It has jumped about of late, which tells that it does not play: with all of its last
    /// requests, or with one where that is the rule.
    pub(super) fn only_jumps(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        match self.rules.totally_seeky {
            TotallySeeky::Ignored => false,
            TotallySeeky::EndsRaisingAtOnce => queue.seek_history != 0,
            TotallySeeky::EndsRaising | TotallySeeky::FallsBack => queue.is_totally_seeky(),
        }
    }

    /// Whether it may turn out to play in real time when its service ends, and when its last
    /// request is done.
    pub(super) fn may_play(&self, id: QueueId, at_expiry: bool) -> bool {
        let is_interactive = self.coefficient(id) == INTERACTIVE;
        !is_interactive
            || match self.rules.may_play {
                MayPlay::Always => true,
                MayPlay::Never => false,
                MayPlay::AtExpiry => at_expiry,
            }
    }

    pub(super) fn is_raised_for_real_time(&self, id: QueueId) -> bool {
        self.is_raised(id) && self.is_srt(id)
    }

    /// After each request that the queue in service let go.
    pub(super) fn update_raising(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let now = self.jiffies;
        if self.is_raised(id) {
            let queue = &self.queues[id];
            let entity = &self.engine[queue.entity];
            let elapsed = self.to_millis(now - queue.last_wr_start_finish);
            let most = self.to_millis(queue.wr_cur_max_time);
            let (coefficient, weight, own) =
                (entity.coefficient, entity.weight, entity.orig_weight);
            self.say(
                cx,
                id,
                format_args!(
                    "raising period dur {elapsed}/{most} msec, old coeff {coefficient}, \
                     w {weight}({own})"
                ),
            );
            if self.engine[self.queues[id].entity].prio_changed {
                self.say(cx, id, format_args!("WARN: pending prio change"));
            }
            let queue = &self.queues[id];
            if queue.in_large_burst {
                self.end_raising(id);
            } else if queue.last_wr_start_finish + queue.wr_cur_max_time < now {
                let since = queue.wr_start_at_switch_to_srt;
                if !self.is_srt(id) || since + self.raising_time() < now {
                    self.end_raising(id);
                } else {
                    self.back_to_interactive(id);
                }
            }
            let served = self.queues[id].service_from_wr;
            if self.is_raised(id) && !self.is_srt(id) && served > MOST_SERVICE {
                self.end_raising(id);
            }
        }
        let entity = self.queues[id].entity;
        let it = &self.engine[entity];
        if (it.weight > it.orig_weight) != self.is_raised(id) {
            self.engine.apply_changes(entity, false);
            self.follow_notes(cx);
        }
    }

    /// Rules of raising when a queue ends its service.
    pub(super) fn note_raising_at_expiry(&mut self, id: QueueId) {
        let now = self.jiffies;
        if self.settings.low_latency && !self.is_raised(id) {
            self.queues[id].last_wr_start_finish = now;
        }
        let queue = &self.queues[id];
        if self.settings.low_latency && queue.is_empty() {
            if queue.dispatched > 0 {
                self.queues[id].softrt_update = true;
            } else if self.may_play(id, true) {
                self.queues[id].soft_rt_next_start = self.next_soft_start(id);
            }
        }
    }

    /// The earliest time of the next request of a queue that plays in real time.
    pub(super) fn next_soft_start(&self, id: QueueId) -> i64 {
        let queue = &self.queues[id];
        let hz = u64::from(self.hz.get());
        let after = (hz * queue.service_from_backlogged / MAX_SRT_RATE) as i64;
        let idle = self.nanos_to_jiffies(self.settings.slice_idle);
        let paced = queue.last_idle_bklogged + after;
        queue.soft_rt_next_start.max(paced).max(self.jiffies + idle + 4)
    }

    /// A queue that was idle gets a request: whether it deserves to be raised, and for what.
    pub(super) fn look_at_arrival(&mut self, id: QueueId, rq: RequestId) {
        let now = self.jiffies;
        let queue = &self.queues[id];
        let entity = queue.entity;
        let is_plain =
            !self.rules.raises_usual_weight_only || self.engine[entity].new_weight == PLAIN_WEIGHT;
        let in_burst = queue.in_large_burst;
        let idle_long = queue.dispatched == 0 && queue.budget_timeout + self.ms(2_000) < now;
        let is_soft = MAX_SRT_RATE > 0
            && !self.only_jumps(id)
            && !in_burst
            && queue.soft_rt_next_start < now
            && queue.dispatched == 0
            && is_plain;
        let is_interactive = !in_burst && idle_long && is_plain;
        let was_raised = self.is_raised(id);
        let owner = self.bound[rq].owner;
        let is_owned = queue.owner.is_some() || self.contexts.is_stably_merged(owner);
        let deserves = was_raised || queue.sync && is_owned && (is_interactive || is_soft);
        let is_deserving = self.settings.low_latency && deserves;
        self.arrival.idle_long = idle_long;
        self.arrival.was_raised = was_raised;
        self.arrival.deserves = is_deserving;
        self.arrival.interactive = is_interactive;
        self.arrival.soft = is_soft;
    }

    /// Weight raising of a queue that becomes busy.
    pub(super) fn update_raising_at_arrival(&mut self, id: QueueId) {
        let now = self.jiffies;
        let super::Arrival { was_raised, deserves, interactive, soft, .. } = self.arrival;
        let srt_time = self.ms(SRT_MAX_TIME);
        if !was_raised && deserves {
            if interactive {
                self.queues[id].service_from_wr = 0;
                self.raise_interactively(id);
            } else {
                self.queues[id].wr_start_at_switch_to_srt = LONG_AGO;
                self.set_coefficient(id, REAL_TIME);
                self.queues[id].wr_cur_max_time = srt_time;
            }
            let most = 2 * self.min_budget();
            let entity = self.queues[id].entity;
            let budget = self.engine[entity].budget.min(most);
            self.engine[entity].budget = budget;
        } else if was_raised {
            if interactive {
                self.raise_interactively(id);
            } else if self.queues[id].in_large_burst {
                self.set_coefficient(id, 1);
            } else if soft {
                if self.queues[id].wr_cur_max_time != srt_time {
                    let queue = &mut self.queues[id];
                    queue.wr_start_at_switch_to_srt = queue.last_wr_start_finish;
                    queue.wr_cur_max_time = srt_time;
                    self.set_coefficient(id, REAL_TIME);
                }
                self.queues[id].last_wr_start_finish = now;
            }
        }
    }
}
