//! Writing: into the buffer, back to the platters later, or through to the platters at once.
//!
//! The arm writes in passes, each at most one track. Dirty ranges are chosen like commands, by
//! which the head can reach soonest. A write that finds no room in the buffer waits for the
//! passes to make some.

use base::{Duration, Instant};
use block::command::{Command, Stage};

use super::Parameters;
use super::drive::{Drive, Event, Job, Stalled, range_of};
use super::geometry::Place;
use super::mechanics::Arm;
use super::queue::Waiting;

/// What the arm is writing.
pub(super) enum Pass {
    /// Some sectors of a dirty segment.
    Back { segment: usize, sectors: u64 },
    /// Some sectors of a command, up to this one.
    Through { waiting: Waiting, next: u64 },
}

impl Drive {
    /// A write whose overhead is over, with the write cache on.
    pub(super) fn write_to_buffer(&mut self, now: Instant, command: Command) {
        let from = range_of(&command).start;
        if self.parameters.look_ahead.stopped_by_write
            && matches!(&self.job, Job::Read(run) if run.position(now) >= self.stream.needed)
        {
            self.stop_reading(now);
        }
        self.stages.enter(now, command.tag, Stage::CacheFull);
        self.stalled.push_back(Stalled { command, from, arrived: now });
        if self.stalled.len() == 1 {
            self.take_in_stalled(now);
        }
        self.watch_age(now);
        self.interrupt_for_write_back(now);
    }

    /// A write that must be on the platters when it completes.
    pub(super) fn write_through(&mut self, now: Instant, command: Command) {
        self.link_free = self.link_free.max(now) + self.link_time(command.op, command.sectors.0);
        self.wait_for_arm(now, command, range_of(&command).start);
    }

    /// Whether dirty data must go out even while commands wait.
    pub(super) fn must_write_back(&self) -> bool {
        self.cache.dirty_sectors() > 0
            && (self.flush.is_some_and(|flush| flush.draining)
                || !self.stalled.is_empty()
                || self.cache.fullness() >= self.parameters.write_back.high_water)
            && self
                .cache
                .dirty()
                .iter()
                .any(|(_, index)| self.cache.idle_dirty_place(*index).is_some())
    }

    pub(super) fn start_write(&mut self, now: Instant, waiting: Waiting) {
        let next = waiting.from;
        self.write_through_from(now, waiting, next);
    }

    /// Begins a pass for the dirty range that the head can reach soonest.
    pub(super) fn start_write_back(&mut self, now: Instant) {
        let Some(segment) = self.soonest_dirty(now) else { return };
        let parameters = self.parameters.clone();
        let (dirty, place, ready) = self.cache.dirty_part(segment);
        let sectors = u64::from(place.left).min(dirty.end - dirty.start);
        self.cache.begin_writing(segment, sectors);
        if dirty.start + sectors < dirty.end {
            let place = parameters.geometry.place(dirty.start + sectors);
            self.cache.set_place(segment, place);
        }
        let pass = Pass::Back { segment, sectors };
        self.start_pass(now, dirty.start, &place, sectors as u32, ready, pass);
    }

    pub(super) fn pass_ended(&mut self, now: Instant, pass: Pass) {
        match pass {
            Pass::Back { segment, sectors } => {
                self.cache.written(segment, sectors);
                self.take_in_stalled(now);
                self.finish_flush_if_clean(now);
            }
            Pass::Through { waiting, next } if next < waiting.end() => {
                return self.write_through_from(now, waiting, next);
            }
            Pass::Through { waiting, .. } => self.finish(now, waiting.command.tag),
        }
        if matches!(self.job, Job::Idle) {
            self.next_job(now);
        }
    }

    /// The dirty segment that the head can reach soonest, among the oldest of them.
    ///
    /// Looks outward from where the head is, on both sides, until the way alone takes longer than
    /// the best found so far.
    pub(super) fn soonest_dirty(&mut self, now: Instant) -> Option<usize> {
        let youngest = self.youngest_in_window();
        let Parameters { mechanics, band_cylinders, .. } = &*self.parameters;
        let list = self.cache.dirty();
        let middle = list.partition_point(|(start, _)| *start < self.arm_lba);
        let (mut below, mut above) = (middle, middle);
        let least_settle = mechanics.write_settle.min(mechanics.write_settle_track);
        let phase = now.as_nanos() % mechanics.revolution;
        let mut best: Option<(u64, usize)> = None;
        while below > 0 || above < list.len() {
            let take_below = match (below > 0, list.get(above)) {
                (true, Some(next)) => self.arm_lba - list[below - 1].0 < next.0 - self.arm_lba,
                (below, _) => below,
            };
            let index = if take_below { list[below - 1].1 } else { list[above].1 };
            if take_below {
                below -= 1
            } else {
                above += 1
            };
            let Some(place) = self.cache.idle_dirty_place(index) else { continue };
            if self.cache.dirtied(index) > youngest {
                continue;
            }
            // Sectors that follow each other may lie a band's width to and fro.
            let distance = self.arm.cylinder.abs_diff(place.cylinder);
            let way = match distance.saturating_sub(*band_cylinders) {
                0 => 0,
                far => mechanics.seek.time(far) + least_settle,
            };
            if best.is_some_and(|(time, _)| way >= time) {
                if take_below {
                    below = 0
                } else {
                    above = list.len()
                };
                continue;
            }
            let moving = mechanics.moving(self.arm, place, true);
            let time = moving + mechanics.wait(phase + moving, place.angle);
            if best.is_none_or(|best| (time, index) < best) {
                best = Some((time, index));
            }
        }
        best.map(|(_, index)| index)
    }

    /// The age of the youngest dirty segment that may be chosen.
    fn youngest_in_window(&mut self) -> u64 {
        let window = self.parameters.write_back.window;
        let list = self.cache.dirty();
        if list.len() <= window {
            return u64::MAX;
        }
        self.ages.clear();
        self.ages.extend(list.iter().map(|(_, index)| self.cache.dirtied(*index)));
        *self.ages.select_nth_unstable(window - 1).1
    }

    fn write_through_from(&mut self, now: Instant, waiting: Waiting, next: u64) {
        let place = self.parameters.geometry.place(next);
        let sectors = u64::from(place.left).min(waiting.end() - next);
        let pass = Pass::Through { waiting, next: next + sectors };
        self.start_pass(now, next, &place, sectors as u32, waiting.ready, pass);
    }

    /// Sends the arm to write `sectors` on one track; `ready` is when their data is there.
    fn start_pass(
        &mut self,
        now: Instant,
        first: u64,
        place: &Place,
        sectors: u32,
        ready: Instant,
        pass: Pass,
    ) {
        let parameters = &self.parameters;
        let mechanics = &parameters.mechanics;
        let span = parameters.geometry.passing(first, place, sectors);
        let arrived = now + Duration::from_nanos(mechanics.moving(self.arm, place, true));
        // Writing may begin while data still comes in, if the last of it comes in time.
        let data = Instant::from_nanos(ready.as_nanos().saturating_sub(span));
        let from = arrived.max(data);
        let end = if parameters.zero_latency_write
            && from >= ready
            && mechanics.is_inside(from, place.angle, span)
        {
            from + Duration::from_nanos(mechanics.revolution)
        } else {
            mechanics.arrival(from, place.angle) + Duration::from_nanos(span)
        };
        if let Pass::Through { waiting, .. } = &pass {
            let begun = Instant::from_nanos(end.as_nanos().saturating_sub(span));
            let times = [(now, Stage::Seek), (arrived, Stage::Rotation), (begun, Stage::Media)];
            self.stages.enter_all(waiting.command.tag, &times);
        }
        self.arm = Arm { cylinder: place.cylinder, head: place.head };
        self.arm_lba = first + u64::from(sectors);
        self.job = Job::Write(pass);
        self.job_end = Some(self.events.schedule(end, Event::JobEnd));
    }

    /// Takes waiting writes into the buffer as far as there is room. What room there is belongs to
    /// a read that found none and has waited too long.
    pub(super) fn take_in_stalled(&mut self, now: Instant) {
        let order = &self.parameters.order;
        if self.segment_wanted.is_some_and(|arrived| order.is_overdue(now, arrived)) {
            return;
        }
        while let Some(Stalled { command, from, .. }) = self.stalled.front().copied() {
            let (mut next, end) = (from, range_of(&command).end);
            let ready = self.link_free.max(now) + self.link_time(command.op, command.sectors.0);
            while next < end {
                let Some(absorbed) = self.cache.absorb(next..end, ready) else { break };
                if absorbed.moved {
                    let (dirty, ..) = self.cache.dirty_part(absorbed.segment);
                    let place = self.parameters.geometry.place(dirty.start);
                    self.cache.set_place(absorbed.segment, place);
                }
                next += absorbed.sectors;
            }
            if next < end {
                self.stalled[0].from = next;
                return;
            }
            self.stalled.pop_front();
            self.transfer(now, &command);
        }
    }

    fn interrupt_for_write_back(&mut self, now: Instant) {
        if matches!(self.job, Job::Idle) || self.must_write_back() {
            self.interrupt(now);
        }
    }
}
