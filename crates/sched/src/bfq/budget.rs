//! Budgets: what a queue is charged, how its service ends, and how much it is given next time
//! (rules bfq-charge, bfq-select and bfq-expire).

use super::queue::QueueId;
use super::rules::Preemption;
use super::{Bfq, SRT_MAX_TIME};
use block::{Cx, RequestId};

/// Budgets until the disk's rate is known, in sectors.
pub(super) const DEFAULT_MAX: u64 = 16 * 1024;
/// So often a queue must have come into service before budgets are kept to what the disk does.
/// (Each time the kernel's counter goes from c to (7c + 256)/8. It asks for 194, and that is what
/// the eleventh time gives.)
const ENOUGH_ASSIGNED: u32 = 11;
/// By how much more what nobody waits for is charged.
const ASYNC_FACTOR: u64 = 3;
/// A service must have lasted so long to tell of a queue's speed, in nanoseconds.
const TOO_SHORT: i64 = 1_000_000;
/// Beyond so many nanoseconds it tells by itself.
const LONG_ENOUGH: i64 = 20_000_000;

/// Why the service of a queue ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    TooIdle = 0,
    BudgetTimeout = 1,
    BudgetExhausted = 2,
    NoMoreRequests = 3,
    Preempted = 4,
}

impl Bfq {
    /// What a request costs its queue, in sectors.
    pub(super) fn charge_of(&self, cx: &Cx<'_>, id: QueueId, rq: RequestId) -> u64 {
        let sectors = u64::from(cx.request(rq).sectors.0);
        let is_plain = self.queues[id].sync
            || self.is_raised(id)
            || self.rules.charges_all_alike && self.is_asymmetric(id);
        if is_plain { sectors } else { ASYNC_FACTOR * sectors }
    }

    pub(super) fn min_budget(&self) -> u64 {
        let is_known = self.budgets_assigned >= ENOUGH_ASSIGNED;
        if is_known { self.max_budget / 32 } else { DEFAULT_MAX / 32 }
    }

    pub(super) fn most_budget(&self) -> u64 {
        if self.budgets_assigned >= ENOUGH_ASSIGNED { self.max_budget } else { DEFAULT_MAX }
    }

    /// What is left of the budget of a queue.
    pub(super) fn budget_left(&self, id: QueueId) -> i64 {
        let entity = &self.engine[self.queues[id].entity];
        entity.budget as i64 - entity.service as i64
    }

    /// A queue was charged so many sectors.
    pub(super) fn serve(&mut self, cx: &mut Cx<'_>, id: QueueId, sectors: u64) {
        let (now, is_raised) = (self.jiffies, self.is_raised(id));
        let queue = &mut self.queues[id];
        if queue.service_from_backlogged == 0 {
            queue.first_io_time = now;
        }
        if is_raised {
            queue.service_from_wr += sectors;
        }
        queue.service_from_backlogged += sectors;
        let entity = queue.entity;
        self.engine.served(entity, sectors);
        self.follow_notes(cx);
        self.say(cx, id, format_args!("bfqq_served {sectors} secs"));
    }

    /// The time for its budget is over.
    pub(super) fn is_timed_out(&self, id: QueueId) -> bool {
        self.jiffies >= self.queues[id].budget_timeout
    }

    /// The time of the queue in service is over, unless somebody would have to wait for it.
    pub(super) fn may_time_out(&mut self, cx: &mut Cx<'_>, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let budget = self.engine[queue.entity].budget as i64;
        let has_left = self.budget_left(id) >= budget / 3;
        let (waits, over) = (queue.wait_request, self.jiffies >= queue.budget_timeout);
        let text = (u8::from(waits), u8::from(has_left), u8::from(over));
        self.say(
            cx,
            id,
            format_args!(
                "may_budget_timeout: wait_request {} left {} timeout {}",
                text.0, text.1, text.2
            ),
        );
        (!waits || has_left) && over
    }

    /// The queue comes into service.
    pub(super) fn set_in_service(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        let now = self.jiffies;
        self.budgets_assigned = ENOUGH_ASSIGNED.min(self.budgets_assigned + 1);
        let coefficient = self.coefficient(id);
        let queue = &mut self.queues[id];
        queue.fifo_checked = false;
        let is_srt = coefficient > 1 && queue.wr_cur_max_time == SRT_MAX_TIME_OF(self.hz);
        if is_srt && queue.budget_timeout < now {
            if queue.budget_timeout > queue.last_wr_start_finish {
                queue.last_wr_start_finish += now - queue.budget_timeout;
            } else {
                queue.last_wr_start_finish = now;
            }
        }
        let entity = &self.engine[queue.entity];
        let times = match is_srt_time(queue.wr_cur_max_time, self.hz) {
            true => 1,
            false => i64::from(entity.weight / entity.orig_weight),
        };
        let timeout = self.settings.timeout_sync.0 as i64;
        queue.budget_timeout = now + timeout * times;
        self.last_budget_start = self.nanos;
        self.in_service = Some(id);
        let budget = entity.budget;
        self.say(cx, id, format_args!("set_in_service_queue, cur-budget = {budget}"));
        if self.rules.forgets_position {
            self.in_serv_last_pos = base::Sector(0);
        }
    }

    /// The service of the queue in service ends. `compensates`: the time for which it was waited
    /// for in vain does not count.
    pub(super) fn expire(
        &mut self,
        cx: &mut Cx<'_>,
        id: QueueId,
        compensates: bool,
        reason: Reason,
    ) {
        let entity = self.queues[id].entity;
        let (time, is_slow) = self.speed(cx, id, compensates);
        let has_left = self.budget_left(id) >= self.engine[entity].budget as i64 / 3;
        let is_late = reason == Reason::BudgetTimeout && has_left;
        if !self.is_raised(id) && (is_slow || is_late) {
            self.charge_time(cx, id, time);
        }
        if reason == Reason::TooIdle {
            self.note_idleness(id);
        }
        self.note_raising_at_expiry(id);
        let (dispatched, short) = (self.queues[id].dispatched, self.queues[id].has_short_think);
        self.say(
            cx,
            id,
            format_args!(
                "expire ({}, slow {}, num_disp {dispatched}, short_ttime {})",
                reason as u8,
                u8::from(is_slow),
                u8::from(short)
            ),
        );
        self.measured.rqs_injected = false;
        self.measured.wait_dispatch = false;
        self.measured.waited = None;
        self.adapt_budget(cx, id, reason);
        // Such a queue is one whose process has just been given another, though the engine keeps it
        // for a while.
        let is_gone = self.rules.charges_for_gone && self.queues[id].refs == 1;
        self.end_service(cx, id, reason);
        let Some(queue) = self.queues.get_mut(id).filter(|_| !is_gone) else { return };
        let entity = queue.entity;
        queue.injected = 0;
        let keeps =
            !queue.is_busy && reason != Reason::BudgetTimeout && reason != Reason::BudgetExhausted;
        if keeps {
            queue.keeps_budget = true;
        } else {
            self.engine[entity].service = 0;
        }
        let mut at = self.engine.parent(entity);
        while let Some(above) = at {
            self.engine[above].service = 0;
            at = self.engine.parent(above);
        }
    }

    /// For how many milliseconds a queue is charged, and whether it was slow.
    fn speed(&mut self, cx: &mut Cx<'_>, id: QueueId, compensates: bool) -> (u64, bool) {
        if !self.queues[id].sync {
            return (0, false);
        }
        let until = if compensates { self.idling_start } else { self.nanos };
        let lasted = until - self.last_budget_start;
        let is_seeky = self.queues[id].is_seeky();
        if lasted < TOO_SHORT {
            return (if self.is_rotational { 8 } else { 2 }, is_seeky);
        }
        let is_slow = match lasted > LONG_ENOUGH {
            true => self.engine[self.queues[id].entity].service < self.max_budget / 2,
            false => is_seeky,
        };
        self.say(cx, id, format_args!("bfq_bfqq_is_slow: slow {}", u8::from(is_slow)));
        ((lasted / 1_000_000) as u64, is_slow)
    }

    fn charge_time(&mut self, cx: &mut Cx<'_>, id: QueueId, millis: u64) {
        let timeout = self.hz.millis_from_jiffies(base::Jiffies(u64::from(self.hz.get()) / 8));
        let millis = millis.min(timeout);
        let entity = self.queues[id].entity;
        let service = self.engine[entity].service;
        let total = (self.max_budget * millis / timeout).max(service);
        let budget = self.engine[entity].budget.max(total);
        self.engine[entity].budget = budget;
        self.serve(cx, id, total - service);
    }

    /// How much the queue is given next time.
    fn adapt_budget(&mut self, cx: &mut Cx<'_>, id: QueueId, reason: Reason) {
        let entity = self.queues[id].entity;
        let (min, most) = (self.min_budget(), self.max_budget);
        let is_raised = self.is_raised(id);
        let queue = &self.queues[id];
        let mut budget = if is_raised { 2 * min } else { queue.max_budget };
        let (last, left) = (self.engine[entity].budget, self.budget_left(id));
        let sync = queue.sync;
        let seeky = self.in_service.is_some_and(|id| self.queues[id].is_seeky());
        self.say(cx, id, format_args!("recalc_budg: last budg {last}, budg left {left}"));
        self.say(cx, id, format_args!("recalc_budg: last max_budg {budget}, min budg {min}"));
        self.say(
            cx,
            id,
            format_args!("recalc_budg: sync {}, seeky {}", u8::from(sync), u8::from(seeky)),
        );
        let queue = &self.queues[id];
        if sync && !is_raised {
            let is_busy = queue.dispatched > 0;
            budget = match reason {
                Reason::TooIdle if is_busy => (2 * budget).min(most),
                Reason::TooIdle if budget > 5 * min => budget - 4 * min,
                Reason::TooIdle => min,
                Reason::BudgetTimeout => (2 * budget).min(most),
                Reason::BudgetExhausted => (4 * budget).min(most),
                Reason::NoMoreRequests => self.engine[entity].service.max(min),
                Reason::Preempted => return,
            };
        } else if !sync {
            budget = most;
        }
        let is_known = self.budgets_assigned >= ENOUGH_ASSIGNED && self.settings.max_budget == 0;
        if is_known {
            budget = budget.min(most);
        }
        self.queues[id].max_budget = budget;
        let next = self.queues[id].next;
        if let Some(next) = next {
            let charge = self.charge_of(cx, id, next);
            self.engine[entity].budget = budget.max(charge);
        }
        // Observed: it says "head sect", and prints the length.
        let head = next.map_or(0, |rq| cx.request(rq).sectors.0);
        let new = self.engine[entity].budget;
        self.say(cx, id, format_args!("head sect: {head}, new budget {new}"));
    }

    /// It is not in service any more; it waits again, or has nothing to wait for.
    fn end_service(&mut self, cx: &mut Cx<'_>, id: QueueId, reason: Reason) {
        let may_stay = self.rules.preemption == Preemption::ByWeight;
        let stays = may_stay && reason == Reason::Preempted && self.needs_idling_for_guarantees(id);
        let now = self.jiffies;
        let queue = &mut self.queues[id];
        if queue.coop && queue.is_seeky() {
            queue.split_coop = true;
        }
        let entity = queue.entity;
        if queue.is_empty() && !stays {
            if queue.dispatched == 0 {
                queue.budget_timeout = now;
            }
            self.leave_busy(cx, id, true);
        } else {
            self.engine.activate(entity, false, true);
            self.follow_notes(cx);
            if !self.queues[id].is_empty() {
                self.update_place(cx, id);
            }
        }
        self.leave_service(cx, id);
    }

    /// Nobody is in service or waited for any more.
    pub(super) fn leave_service(&mut self, cx: &mut Cx<'_>, id: QueueId) {
        self.in_service = None;
        self.queues[id].wait_request = false;
        self.timer = None;
        self.engine.end_service(self.queues[id].entity);
        self.follow_notes(cx);
    }
}

/// Whether this is how long what plays in real time is raised.
fn is_srt_time(time: i64, hz: base::Hz) -> bool {
    time == SRT_MAX_TIME_OF(hz)
}

#[allow(non_snake_case)]
fn SRT_MAX_TIME_OF(hz: base::Hz) -> i64 {
    hz.jiffies_from_millis(SRT_MAX_TIME).0 as i64
}
