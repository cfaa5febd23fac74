//! What can be changed while the queue is in use: tunables, settings and the scheduler itself
//! (rules allocate).
//!
//! Changing the scheduler, or `nr_requests` of blk-mq, freezes the queue: nobody gets a request
//! until all that are allocated are done; then the change is made and everybody goes on.

use super::{Attach, RequestQueue, ShapeState};
use crate::bio::ContextId;
use crate::input::Input;
use crate::kernel::Shape;
use crate::limits::{DEVICE_DEPTH, Limits, QueueSetting};
use crate::scheduler::TunableError;
use alloc::string::String;
use alloc::vec::Vec;
use base::{Instant, Sectors};

/// A change that waits until the queue is empty.
pub(super) enum Change {
    /// Another scheduler.
    Scheduler(Attach),
    /// Another number of tags.
    Requests(u32),
}

impl RequestQueue {
    /// Writes a tunable of the scheduler or a setting of the queue, as sysfs would.
    pub fn set(&mut self, now: Instant, name: &str, value: i64) -> Result<(), TunableError> {
        let about = self.scheduler.as_ref().map(|scheduler| scheduler.about());
        let tunable = about.and_then(|about| about.tunables.iter().find(|t| t.name == name));
        if let Some(tunable) = tunable {
            check_range(value, tunable.min, tunable.max, tunable.unit)?;
            self.with_scheduler(now, ContextId(0), |scheduler, cx| {
                scheduler.set(cx, name, value);
            });
            // It may hang on the tunable.
            self.announce_min_depth(now);
        } else if name == DEVICE_DEPTH {
            let most = i64::from(self.core.seen.limits.facts.queue_depth);
            check_range(value, 1, most, "commands")?;
            self.set_device_depth(now, value as u32);
        } else if let Some(setting) = QueueSetting::named(name, self.kernel()) {
            let max = match name {
                "max_sectors_kb" => i64::from(self.core.seen.limits.facts.max_hw_sectors.0 / 2),
                "nr_requests" => self.most_requests(),
                _ => setting.max,
            };
            check_range(value, setting.min, max, setting.unit)?;
            self.set_queue(now, name, value);
        } else {
            return Err(TunableError::Unknown { known: self.setting_names() });
        }
        self.core.recorder.push(|| Input::Set(now, String::from(name), value));
        Ok(())
    }

    /// Reads a tunable of the scheduler or a setting of the queue.
    pub fn get(&mut self, name: &str) -> Option<i64> {
        let about = self.scheduler.as_ref().map(|scheduler| scheduler.about());
        if about.is_some_and(|about| about.tunables.iter().any(|t| t.name == name)) {
            return self.with_scheduler(Instant::ZERO, ContextId(0), |scheduler, cx| {
                scheduler.get(cx, name)
            });
        }
        let limits = &self.core.seen.limits;
        match name {
            DEVICE_DEPTH => Some(i64::from(limits.device_depth)),
            "nr_requests" => Some(i64::from(limits.nr_requests)),
            "max_sectors_kb" => Some(i64::from(limits.max_sectors.0 / 2)),
            "discard_max_bytes" => Some(limits.max_discard.bytes().0 as i64),
            "nomerges" => Some(i64::from(limits.nomerges)),
            "read_ahead_kb" => Some(i64::from(limits.read_ahead_kb)),
            "rotational" => Some(i64::from(limits.facts.rotational)),
            "wbt_lat_usec" => self.throttled_to(),
            _ => None,
        }
    }

    /// Attaches another scheduler of the same shape, in flight: the old one is drained, everything
    /// under way is waited for, tunables and `nr_requests` get their defaults.
    pub fn switch(&mut self, now: Instant, context: ContextId, attach: Attach) {
        let name = attach.scheduler.as_ref().map_or("", |scheduler| scheduler.about().name);
        self.core.recorder.push(|| Input::Switch(now, context, String::from(name)));
        assert_eq!(attach.shape, self.shape.shape(), "a switch stays within one shape");
        self.core.change = Some(Change::Scheduler(attach));
        self.remove_device_plug();
        self.push_drain(now, context);
    }

    /// Runs the queue, so that what waits goes out, and makes the change if nothing does.
    fn push_drain(&mut self, now: Instant, context: ContextId) {
        match &self.shape {
            ShapeState::Single(_) => {
                self.drain_scheduler(now, context);
                let cpu = self.core.seen.cpu_of(context);
                self.push_hctx_run(context, cpu);
            }
            ShapeState::Multi(_) => self.request_worker(),
        }
        self.finish_change(now);
    }

    /// Makes a waiting change, once nothing is allocated any more.
    pub(super) fn finish_change(&mut self, now: Instant) {
        if self.core.change.is_none() || !self.core.seen.requests.is_empty() {
            return;
        }
        match self.core.change.take() {
            Some(Change::Scheduler(attach)) => self.exchange(now, attach),
            Some(Change::Requests(requests)) => {
                self.core.seen.limits.nr_requests = requests;
                self.resize(requests);
                self.announce_new_depth(now);
            }
            None => {}
        }
        let frozen = core::mem::take(&mut self.core.frozen);
        self.core.woken.extend(frozen);
        self.core.wake_all();
    }

    fn exchange(&mut self, now: Instant, attach: Attach) {
        self.core.guard.assert_balanced();
        self.with_scheduler(now, ContextId(0), |scheduler, cx| scheduler.detached(cx));
        self.scheduler = attach.scheduler;
        let has_scheduler = self.scheduler.is_some();
        self.core.seen.limits.nr_requests =
            Limits::default_requests(&self.core.seen.limits.facts, attach.shape, has_scheduler);
        self.rebuild_shape();
        self.announce_attached(now);
    }

    /// Tag maps with room for so many requests stay; others are made anew.
    fn resize(&mut self, requests: u32) {
        self.forget_waits();
        let has_room = match &mut self.shape {
            ShapeState::Multi(multi) => multi.resize(requests),
            ShapeState::Single(_) => false,
        };
        if !has_room {
            self.make_shape();
        }
    }

    fn rebuild_shape(&mut self) {
        self.forget_waits();
        self.make_shape();
    }

    /// Whoever sleeps for a tag tries again, and what was said of tags does not hold.
    fn forget_waits(&mut self) {
        if let ShapeState::Multi(multi) = &mut self.shape {
            multi.take_waiters(&mut self.core.woken);
        }
        self.core.contexts.iter_mut().for_each(|context| context.limit = None);
    }

    fn make_shape(&mut self) {
        let has_scheduler = self.scheduler.is_some();
        self.shape = ShapeState::new(&self.core, self.shape.shape(), has_scheduler);
        self.scatter();
    }

    /// Tells a scheduler that it was attached.
    pub(super) fn announce_attached(&mut self, now: Instant) {
        self.with_scheduler(now, ContextId(0), |scheduler, cx| scheduler.attached(cx));
        self.note_attached(now);
        self.announce_depth(now);
    }

    /// Tells the scheduler about `nr_requests`, and the tag maps about its smallest limit.
    fn announce_depth(&mut self, now: Instant) {
        self.note_words(self.core.seen.limits.nr_requests);
        self.with_scheduler(now, ContextId(0), |scheduler, cx| scheduler.depth_changed(cx));
        self.announce_min_depth(now);
    }

    /// The same after a change; kernels with the quirk have called the hook before it.
    fn announce_new_depth(&mut self, now: Instant) {
        let told = matches!(&self.shape, ShapeState::Multi(m) if m.rules().depth_hook_sees_old);
        if told {
            self.announce_min_depth(now);
        } else {
            self.announce_depth(now);
        }
    }

    /// The scheduler can see the words of tag maps for so many requests.
    fn note_words(&mut self, requests: u32) {
        if let ShapeState::Multi(multi) = &self.shape {
            self.core.seen.tags_per_word = multi.tags_per_word(requests);
        }
    }

    fn announce_min_depth(&mut self, now: Instant) {
        let min_depth =
            self.with_scheduler(now, ContextId(0), |scheduler, cx| scheduler.min_depth(cx));
        if let ShapeState::Multi(multi) = &mut self.shape {
            multi.set_min_depth(min_depth.flatten());
        }
    }

    fn set_queue(&mut self, now: Instant, name: &str, value: i64) {
        let limits = &mut self.core.seen.limits;
        match name {
            "max_sectors_kb" => limits.max_sectors = Sectors(value as u32 * 2),
            "discard_max_bytes" => limits.max_discard = Sectors((value as u64 >> 9) as u32),
            "nomerges" => limits.nomerges = value as u8,
            "read_ahead_kb" => limits.read_ahead_kb = value as u32,
            "rotational" => limits.facts.rotational = value != 0,
            "nr_requests" => self.set_requests(now, (value as u32).max(4)),
            "wbt_lat_usec" => self.set_throttling(now, u64::try_from(value).ok()),
            _ => unreachable!("{name} is in the table of settings but not handled"),
        }
    }

    /// Rule allocate-10: nothing is made anew, and what the device has beyond it stays there.
    fn set_device_depth(&mut self, now: Instant, depth: u32) {
        self.core.seen.limits.device_depth = depth;
        match &mut self.shape {
            ShapeState::Single(single) => single.set_device_depth(depth),
            ShapeState::Multi(multi) => multi.set_device_depth(depth),
        }
        self.throttle_for_depth(now);
        self.request_worker();
    }

    fn set_requests(&mut self, now: Instant, requests: u32) {
        if requests == self.core.seen.limits.nr_requests {
            return;
        }
        match &self.shape {
            ShapeState::Single(_) => self.core.seen.limits.nr_requests = requests,
            ShapeState::Multi(multi) => {
                if multi.rules().depth_hook_sees_old {
                    // The maps are there already.
                    self.note_words(requests);
                    self.with_scheduler(now, ContextId(0), |scheduler, cx| {
                        scheduler.depth_changed(cx);
                    });
                }
                self.core.change = Some(Change::Requests(requests));
                self.push_drain(now, ContextId(0));
            }
        }
    }

    /// The largest `nr_requests` that sysfs accepts (rule allocate-6).
    fn most_requests(&self) -> i64 {
        match self.shape.shape() {
            Shape::Single => i64::from(i32::MAX),
            Shape::Multi if self.scheduler.is_some() => 2048,
            Shape::Multi => i64::from(self.core.seen.limits.facts.queue_depth),
        }
    }

    fn setting_names(&self) -> Vec<&'static str> {
        let about = self.scheduler.as_ref().map(|scheduler| scheduler.about());
        let tunables = about.map_or(&[][..], |about| about.tunables).iter().map(|t| t.name);
        tunables.chain(QueueSetting::all(self.kernel()).map(|setting| setting.name)).collect()
    }
}

fn check_range(value: i64, min: i64, max: i64, unit: &'static str) -> Result<(), TunableError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(TunableError::OutOfRange { min, max, unit })
    }
}
