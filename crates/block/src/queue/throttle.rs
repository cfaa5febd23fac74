//! Where a bio waits before it enters the queue, because of limits of control groups, and how it
//! goes on (rules throttle).

use super::context::Frame;
use super::{Output, RequestQueue};
use crate::bio::{BioId, CgroupId, ContextId, Flags, Op, Origin};
use crate::event::{Action, Event};
use crate::input::Input;
use crate::kernel::Hierarchy;
use crate::throttle::passage::Passage;
use crate::throttle::{Arrival, DISCARD_BYTES, IoMax};
use base::Instant;

impl RequestQueue {
    /// How long the machine had been up at time zero, in seconds, and which hierarchy groups are
    /// in; to be called before any is defined. A kernel without limits does nothing, here and
    /// in what follows.
    pub fn prepare_limits(&mut self, uptime: u64, hierarchy: Hierarchy) {
        self.core.recorder.push(|| Input::PrepareLimits(uptime, hierarchy));
        if let Some(throttle) = &mut self.core.throttle {
            throttle.set_uptime(uptime);
            throttle.set_hierarchy(hierarchy);
        }
    }

    /// Writes `io.max` of a control group that was defined; what it does not name is not limited.
    pub fn limit_cgroup(&mut self, now: Instant, id: CgroupId, limits: IoMax) {
        self.core.recorder.push(|| Input::LimitCgroup(now, id, limits));
        if let Some(throttle) = &mut self.core.throttle {
            throttle.limit(now, id, limits);
            self.tell_of_limits(now, ContextId(0));
        }
    }

    /// A kernel worker comes to the bios that may go on, as [`Output::Release`] asked: those that
    /// come later wait for its next turn.
    pub fn begin_release(&mut self) {
        self.core.recorder.push(|| Input::BeginRelease);
        if let Some(throttle) = &mut self.core.throttle {
            throttle.hand_out();
        }
    }

    /// It submits the next of them, to be driven afterwards; false when there is none. `by` is the
    /// worker; the group stays the bio's own (rule throttle-11).
    pub fn release(&mut self, now: Instant, by: Origin) -> bool {
        let next = self.core.throttle.as_mut().and_then(|throttle| throttle.next_handed_out());
        let Some(id) = next else { return false };
        self.core.recorder.push(|| Input::Release(now, by));
        let record = &mut self.core.bios[id];
        let since = core::mem::replace(&mut record.queued_at, now);
        record.passage = Passage::Through;
        let cgroup = record.bio.origin.cgroup;
        record.bio.origin = Origin { cgroup, ..by };
        let (bio, context) = (record.bio, record.owner);
        let cpu = self.core.seen.cpu_of(context);
        self.core.seen.log.push(|| Event {
            at: now,
            context,
            cpu,
            op: bio.op,
            flags: bio.flags,
            sector: bio.sector,
            sectors: bio.sectors,
            bio: Some(id),
            token: bio.token,
            ..Event::note(Action::Released { since })
        });
        self.enter(by.context, by.cpu, id);
        true
    }

    /// Whether a bio has to wait for limits of its control group, or of one above; its task goes
    /// on.
    #[inline]
    pub(super) fn waits_for_limits(&mut self, now: Instant, context: ContextId, id: BioId) -> bool {
        match &self.core.throttle {
            Some(throttle) if throttle.is_on() => self.is_held_back(now, context, id),
            _ => false,
        }
    }

    #[inline(never)]
    fn is_held_back(&mut self, now: Instant, context: ContextId, id: BioId) -> bool {
        let record = &mut self.core.bios[id];
        if record.passage == Passage::Through {
            return false;
        }
        let bio = &mut record.bio;
        let arrival = Arrival {
            bio: id,
            group: bio.origin.cgroup,
            direction: bio.direction(),
            bytes: if bio.op == Op::Discard { DISCARD_BYTES } else { bio.sectors.bytes().0 },
            is_paid: record.passage == Passage::Paid,
            must_go: bio.flags.intersects(Flags::META),
        };
        let throttle = self.core.throttle.as_mut().expect("it is on");
        let waits = throttle.must_wait(now, arrival);
        if waits {
            // The worker may sleep for it.
            bio.flags = bio.flags.without(Flags::NOWAIT);
            record.queued_at = now;
        }
        self.tell_of_limits(now, context);
        waits
    }

    /// A timer has fired; perhaps it is one of the limits.
    pub(super) fn limits_timer(&mut self, now: Instant, context: ContextId) {
        let Some(throttle) = &mut self.core.throttle else { return };
        if throttle.next_timer().is_none_or(|due| due > now) {
            return;
        }
        if throttle.timer(now) {
            self.core.outputs.push_back(Output::Release);
        }
        self.tell_of_limits(now, context);
    }

    /// Writes what the limits say of themselves. It takes no time that a clock would show: observed
    /// on 6.12.117 and 7.3.4.
    fn tell_of_limits(&mut self, now: Instant, context: ContextId) {
        let throttle = self.core.throttle.as_mut().filter(|it| it.has_messages());
        let Some(throttle) = throttle else { return };
        for (cgroup, text) in throttle.take_messages() {
            self.core.log_note(now, context, Action::Message { text, cgroup });
        }
    }

    /// A bio is to be looked at next in a context.
    pub(super) fn enter(&mut self, context: ContextId, cpu: u16, id: BioId) {
        let context = self.core.context_on(context, cpu);
        if !context.plug.is_active() {
            context.plug.forget_time();
        }
        context.plug.begin_bio();
        context.stack.push(Frame::Submit(id));
    }
}
