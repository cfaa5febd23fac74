//! Between bios and requests: who may have a request at all (the kernel's rq-qos).
//!
//! A policy is asked before a bio gets a request, and told what becomes of it. [`Qos`] has the
//! hooks, in the kernel's order: `throttle` and `granted`, `issued`, `completed`, `done`,
//! `requeued`, `cleanup`. The only policy so far is writeback throttling, [`wbt`].
//!
//! It is a pure state machine: time comes in with the call, and who may go on comes out as a list.

pub(crate) mod mark;
mod wbt;

use crate::bio::{Bio, ContextId};
use crate::event::WbtEvent;
use crate::kernel::Kernel;
use crate::request::{Request, RequestId};
use alloc::vec::Vec;
use base::{Duration, Instant};
pub(crate) use mark::{Class, Mark};
use wbt::Wbt;

/// What becomes of a bio that wants a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on, and what comes of it carries this mark.
    Go(Mark),
    /// Its task sleeps until it is among those that are woken.
    Wait {
        /// So many slots there are for its class.
        depth: u32,
    },
}

/// The policies of a queue. On a kernel without them nothing is ever held back.
pub(crate) struct Qos {
    wbt: Option<Wbt>,
}

impl Qos {
    /// Of a queue that is attached to this kernel: nothing is throttled.
    pub fn new(kernel: &Kernel) -> Qos {
        Qos { wbt: kernel.wbt.map(|rules| Wbt::new(rules, kernel.hz)) }
    }

    /// A bio wants a request.
    #[inline]
    pub fn throttle(&mut self, now: Instant, context: ContextId, bio: &Bio) -> Verdict {
        match &mut self.wbt {
            Some(wbt) if wbt.is_on() => wbt.throttle(now, context, bio),
            _ => Verdict::Go(Mark::Nothing),
        }
    }

    /// Who slept has been let through, and runs; the mark of its bio.
    pub fn granted(&mut self, now: Instant, bio: &Bio) -> Mark {
        self.wbt.as_mut().map_or(Mark::Nothing, |wbt| wbt.granted(now, bio))
    }

    /// The driver takes a request.
    #[inline]
    pub fn issued(&mut self, now: Instant, rq: RequestId, request: &Request) {
        if request.qos == Mark::Read
            && let Some(wbt) = &mut self.wbt
        {
            wbt.issued(now, rq);
        }
    }

    /// The device has finished a request.
    #[inline]
    pub fn completed(&mut self, now: Instant, request: &Request) {
        if let Some(wbt) = &mut self.wbt
            && wbt.counts()
        {
            wbt.completed(now, request);
        }
    }

    /// The driver gives a request back.
    pub fn requeued(&mut self, rq: RequestId) {
        if let Some(wbt) = &mut self.wbt {
            wbt.requeued(rq);
        }
    }

    /// A request is freed; `woken` is who may go on.
    #[inline]
    pub fn done(&mut self, now: Instant, rq: RequestId, mark: Mark, woken: &mut Vec<ContextId>) {
        if mark != Mark::Nothing
            && let Some(wbt) = &mut self.wbt
        {
            wbt.done(now, rq, mark, woken);
        }
    }

    /// A bio that was let through gets no request after all.
    pub fn cleanup(&mut self, now: Instant, mark: Mark, woken: &mut Vec<ContextId>) {
        if let Some(wbt) = &mut self.wbt {
            wbt.cleanup(now, mark, woken);
        }
    }

    /// When [`Qos::timer`] is to be called, if at all.
    pub fn next_timer(&self) -> Option<Instant> {
        self.wbt.as_ref().and_then(Wbt::next_timer)
    }

    /// A window is over, if one is by now; what is to be said of it.
    pub fn timer(&mut self, now: Instant, woken: &mut Vec<ContextId>) -> Vec<WbtEvent> {
        match &mut self.wbt {
            Some(wbt) if wbt.next_timer().is_some_and(|due| due <= now) => wbt.timer(now, woken),
            _ => Vec::new(),
        }
    }

    /// A writer of the page cache begins to pause.
    pub fn dirty_pause(&mut self, now: Instant) {
        if let Some(wbt) = &mut self.wbt {
            wbt.dirty_pause(now);
        }
    }

    /// `wbt_lat_usec` is written; `None` stands for the default of the device.
    pub fn set_latency(
        &mut self,
        now: Instant,
        latency: Option<Duration>,
        device: Device,
        woken: &mut Vec<ContextId>,
    ) {
        if let Some(wbt) = &mut self.wbt {
            wbt.set_latency(now, latency, device, woken);
        }
    }

    /// A SCSI device is given another number of commands at a time.
    pub fn depth_changed(&mut self, now: Instant, device: Device, woken: &mut Vec<ContextId>) {
        if let Some(wbt) = &mut self.wbt {
            wbt.depth_changed(now, device, woken);
        }
    }

    /// A file system was mounted some seconds before, when `wbt_lat_usec` was what it is.
    pub fn note_mount(&mut self, now: Instant, woken: &mut Vec<ContextId>) {
        if let Some(wbt) = &mut self.wbt {
            wbt.note_mount(now, woken);
        }
    }

    /// What `wbt_lat_usec` shows; zero when it is off, `None` on a kernel that has none.
    pub fn latency(&self) -> Option<Duration> {
        self.wbt.as_ref().map(Wbt::shown_latency)
    }

    /// The kernel is configured to throttle queues that nobody has said anything of.
    pub fn set_default(&mut self, device: Device) {
        if let Some(wbt) = &mut self.wbt {
            wbt.set_default(device);
        }
    }

    /// A scheduler was attached.
    pub fn attached(&mut self, now: Instant, disables: bool, woken: &mut Vec<ContextId>) {
        if let Some(wbt) = &mut self.wbt {
            wbt.attached(now, disables, woken);
        }
    }

    /// Whether a request of a control group other than the root may end anything.
    #[inline]
    pub fn may_end_for_group(&self) -> bool {
        self.wbt.as_ref().is_some_and(Wbt::may_end_for_group)
    }

    /// A scheduler that disables the default makes one.
    pub fn end_for_group(&mut self, now: Instant, woken: &mut Vec<ContextId>) {
        if let Some(wbt) = &mut self.wbt {
            wbt.end_for_group(now, woken);
        }
    }
}

/// What the throttling of a device starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Device {
    /// It turns.
    pub rotational: bool,
    /// It keeps written data in a cache that loses it.
    pub volatile_cache: bool,
    /// How many commands it takes at once.
    pub queue_depth: u32,
}
