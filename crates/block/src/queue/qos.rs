//! Where a bio waits before it may have a request, and what the policies hear of requests
//! (rules wbt).

use super::context::Frame;
use super::{RequestQueue, Work};
use crate::bio::{Bio, BioId, CgroupId, ContextId, Flags};
use crate::command::Transport;
use crate::event::Action;
use crate::input::Input;
use crate::limits::Limits;
use crate::qos::{Device, Mark, Verdict};
use crate::request::RequestId;
use base::{Duration, Instant};

impl RequestQueue {
    /// Throttles writeback as a kernel does that is configured so, unless the scheduler does not
    /// want it; to be called when the queue is new. A kernel without throttling does nothing.
    pub fn throttle_by_default(&mut self, now: Instant) {
        self.core.recorder.push(|| Input::ThrottleByDefault(now));
        let device = self.throttled_device();
        self.core.qos.set_default(device);
        self.note_attached(now);
    }

    /// A task has made so many pages dirty that it begins to pause.
    pub fn note_dirty_pause(&mut self, now: Instant) {
        self.core.recorder.push(|| Input::DirtyPause(now));
        self.core.qos.dirty_pause(now);
    }

    /// Whether a bio that no request absorbs has to wait; then its task is asleep.
    #[inline]
    pub(super) fn must_wait(
        &mut self,
        now: Instant,
        context: ContextId,
        id: BioId,
        bio: &Bio,
    ) -> bool {
        match self.core.qos.throttle(now, context, bio) {
            Verdict::Go(Mark::Nothing) => false,
            Verdict::Go(mark) => {
                self.core.bios[id].qos = mark;
                false
            }
            Verdict::Wait { depth } => {
                self.wait_for_policy(now, context, id, depth);
                true
            }
        }
    }

    // Divergence: a bio with NOWAIT waits, too. Those that carry it are direct, and exempt.
    #[cold]
    fn wait_for_policy(&mut self, now: Instant, context: ContextId, id: BioId, depth: u32) {
        self.core.log_bio(now, Action::Throttled { depth }, id, None);
        let remembers = self.core.seen.kernel.multi.is_some_and(|it| it.plug.remembers_time);
        let record = &self.core.bios[id];
        let is_cut_off = record.parent.is_some() && record.bio.flags.intersects(Flags::NOMERGE);
        let state = self.core.context(context);
        state.stack.push(Frame::Throttle(id));
        let looks = remembers && is_cut_off && state.plug.looks_at_clock();
        state.looks_for_policy = u32::from(looks);
        self.fall_asleep(context);
    }

    /// Who slept has been let through: no request is looked for again that might absorb its bio
    /// (rule wbt-4).
    #[cold]
    pub(super) fn throttle_step(&mut self, now: Instant, context: ContextId, id: BioId) -> Work {
        self.core.context(context).take_woken();
        let bio = self.core.bios[id].bio;
        self.core.bios[id].qos = self.core.qos.granted(now, &bio);
        self.allocate(now, context, id, &bio, 0)
    }

    /// A request is freed, by which somebody may be let through.
    #[inline]
    pub(super) fn qos_done(&mut self, now: Instant, rq: RequestId) {
        let mark = self.core.seen.requests[rq].qos;
        self.core.qos.done(now, rq, mark, &mut self.core.woken);
    }

    /// A bio that was let through gets no request.
    pub(super) fn qos_cleanup(&mut self, now: Instant, id: BioId) {
        let mark = self.core.bios[id].qos;
        self.core.qos.cleanup(now, mark, &mut self.core.woken);
        self.core.wake_all();
    }

    /// A timer has fired; perhaps it is that of a policy.
    pub(super) fn qos_timer(&mut self, now: Instant, context: ContextId) {
        for said in self.core.qos.timer(now, &mut self.core.woken) {
            self.core.log_note(now, context, Action::Wbt(said));
        }
        self.core.wake_all();
    }

    /// A request was made for a bio.
    #[inline]
    pub(super) fn note_request_for(&mut self, now: Instant, bio: &Bio) {
        let may_end = bio.origin.cgroup != CgroupId::ROOT && self.core.qos.may_end_for_group();
        if may_end && self.disables_wbt() {
            self.core.qos.end_for_group(now, &mut self.core.woken);
            self.core.wake_all();
        }
    }

    fn disables_wbt(&self) -> bool {
        self.scheduler.as_ref().is_some_and(|scheduler| scheduler.disables_wbt())
    }

    /// A scheduler was attached, or none.
    pub(super) fn note_attached(&mut self, now: Instant) {
        let disables = self.disables_wbt();
        self.core.qos.attached(now, disables, &mut self.core.woken);
        self.core.wake_all();
    }

    /// Writes `wbt_lat_usec`; `None`: the default of the device.
    pub(super) fn set_throttling(&mut self, now: Instant, micros: Option<u64>) {
        let latency = micros.map(Duration::from_micros);
        let device = self.throttled_device();
        self.core.qos.set_latency(now, latency, device, &mut self.core.woken);
        self.core.wake_all();
    }

    /// The device is given another number of commands at a time (rule wbt-5).
    pub(super) fn throttle_for_depth(&mut self, now: Instant) {
        let device = self.throttled_device();
        self.core.qos.depth_changed(now, device, &mut self.core.woken);
        self.core.wake_all();
    }

    /// A file system was mounted some seconds before, which writes a little (rule wbt-12).
    pub fn note_mount(&mut self, now: Instant) {
        self.core.recorder.push(|| Input::Mount(now));
        self.core.qos.note_mount(now, &mut self.core.woken);
        self.core.wake_all();
    }

    /// Reads `wbt_lat_usec`.
    pub(super) fn throttled_to(&self) -> Option<i64> {
        self.core.qos.latency().map(|latency| (latency.as_nanos() / 1000) as i64)
    }

    /// A SCSI device says how many commands it takes. Else it is `nr_requests` of the scheduler
    /// that the kernel chose when the device came, whatever became of either since (rule wbt-5).
    fn throttled_device(&self) -> Device {
        let facts = &self.core.seen.limits.facts;
        let queue_depth = match facts.transport {
            Transport::Sata | Transport::Scsi => self.core.seen.limits.device_depth,
            _ => Limits::default_requests(facts, self.shape.shape(), facts.hardware_queues == 1),
        };
        Device { rotational: facts.rotational, volatile_cache: facts.volatile_cache, queue_depth }
    }
}
