//! Whether a queue that has run empty is waited for (rules bfq-complete and bfq-idle).

use super::budget::Reason;
use super::queue::QueueId;
use super::rules::{GroupsDiffer, Guarantees};
use super::wf2q::EntityId;
use super::{Bfq, ROOT};
use base::Instant;
use block::Cx;
use block::scheduler::RunQueue;

/// Nanoseconds: so long a queue that jumps about is waited for at most, and a raised one at least.
const SHORT: i64 = 2_000_000;
const LONG: i64 = 20_000_000;

impl Bfq {
    /// Whether to serve all alike would not give each its share.
    pub(super) fn is_asymmetric(&self, id: QueueId) -> bool {
        let classes = self.busy.iter().filter(|busy| **busy > 0).count();
        self.engine.weights_vary(self.queues[id].entity, self.rules.spares_lightest)
            || self.rules.classes_differ && classes > 1
            || self.groups_differ()
    }

    fn groups_differ(&self) -> bool {
        let pending = self.groups_with_pending;
        match self.rules.groups_differ {
            GroupsDiffer::Never => false,
            GroupsDiffer::AnyButRoot => pending > u32::from(self.is_pending(ROOT)),
            GroupsDiffer::Two => pending >= 2,
        }
    }

    /// Processes that refer to it, apart from requests.
    pub(super) fn process_refs(&self, id: QueueId) -> u32 {
        let queue = &self.queues[id];
        let entity = &self.engine[queue.entity];
        let weight = self.rules.weights_refer && self.engine.has_weight(queue.entity);
        let engine = u32::from(entity.is_counted) + u32::from(weight);
        // Observed on 6.12.117: nobody merges into a queue that is only there to be merged into.
        queue.refs.saturating_sub(entity.allocated + engine + queue.stable_refs)
    }

    pub(super) fn idling_boosts(&self, id: QueueId) -> bool {
        let queue = &self.queues[id];
        let is_queueing = self.hw_tag != Some(false);
        let alone = self.is_rotational && !is_queueing;
        let sequential = (self.is_rotational || !is_queueing)
            && !queue.is_seeky()
            && queue.io_bound
            && queue.has_short_think;
        (alone || sequential) && self.wr_busy == 0 && self.may_go_on(id)
    }

    /// A process is there that may send more; older kernels do not ask.
    fn may_go_on(&self, id: QueueId) -> bool {
        self.rules.guarantees != Guarantees::WithInFlight || self.process_refs(id) > 0
    }

    pub(super) fn needs_idling_for_guarantees(&self, id: QueueId) -> bool {
        let (is_raised, is_asymmetric) = (self.is_raised(id), self.is_asymmetric(id));
        let is_among_others = is_raised && self.wr_busy < self.busy_queues();
        match self.rules.guarantees {
            Guarantees::UnlessBurst => {
                (is_raised || is_asymmetric) && !self.queues[id].in_large_burst
            }
            Guarantees::AmongOthers => is_among_others || is_asymmetric,
            Guarantees::WithInFlight => {
                let is_deep = is_raised && self.in_driver >= self.queues[id].dispatched + 4;
                let is_alone = self.busy_queues() == 1;
                self.process_refs(id) > 0
                    && (is_among_others || is_deep || is_asymmetric || is_alone)
            }
        }
    }

    /// Whether it is better to wait for this queue than to serve another one.
    pub(super) fn is_better_to_idle(&self, id: QueueId) -> bool {
        if !self.may_go_on(id) {
            return false;
        }
        if self.settings.strict_guarantees {
            return true;
        }
        let queue = &self.queues[id];
        if self.settings.slice_idle == 0 || !queue.sync || self.is_idle_class(queue.entity) {
            return false;
        }
        self.idling_boosts(id) || self.needs_idling_for_guarantees(id)
    }

    pub(super) fn is_idle_class(&self, entity: EntityId) -> bool {
        self.engine[entity].class == super::Class::Idle
    }

    pub(super) fn must_idle(&self, id: QueueId) -> bool {
        self.queues[id].is_empty() && self.is_better_to_idle(id)
    }

    /// The queue in service is waited for.
    pub(super) fn arm_timer(&mut self, id: QueueId) {
        self.queues[id].wait_request = true;
        let mut time = self.settings.slice_idle;
        let is_raised = self.is_raised(id);
        if self.queues[id].is_seeky() && !is_raised && !self.is_asymmetric(id) {
            time = time.min(SHORT);
        } else if is_raised && self.rules.waits_long_for_raised {
            time = time.max(LONG);
        }
        self.idling_start = self.nanos;
        self.idling_start_jiffies = self.jiffies;
        self.timer = Some(Instant::from_nanos((self.nanos + time) as u64));
    }

    /// It was waited for in vain.
    pub(super) fn timer_fired(&mut self, cx: &mut Cx<'_>) {
        self.timer = None;
        if let Some(id) = self.in_service {
            self.queues[id].wait_request = false;
            if self.is_timed_out(id) {
                self.expire(cx, id, true, Reason::BudgetTimeout);
            } else if self.queues[id].queued == [0; 2] {
                self.expire(cx, id, true, Reason::TooIdle);
            }
        }
        self.schedule(cx);
    }

    /// The queue of the disk shall be run.
    pub(super) fn schedule(&mut self, cx: &mut Cx<'_>) {
        if self.queued > 0 {
            self.message(cx, format_args!("schedule dispatch"));
        }
        cx.run_queue(RunQueue::Async);
    }
}
