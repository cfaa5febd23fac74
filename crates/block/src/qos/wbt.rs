//! Writeback throttling (rules wbt): few buffered writes are under way, and fewer still while reads
//! come back late.
//!
//! A write that is not exempt takes a slot before it gets a request, and gives it back when the
//! request is freed. How many slots there are depends on who writes and on a step: each window of
//! time in which even the fastest read was late makes them fewer, each other one more.

use super::{Class, Device, Mark, Verdict};
use crate::bio::{Bio, ContextId, Flags, Op};
use crate::event::{WbtEvent, WbtStatus};
use crate::kernel::{EndsDefault, Statistics, WbtRules};
use crate::request::{Request, RequestId};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use base::{Duration, Hz, Instant, TimerWheel};

/// Slots of a device that takes at least as many commands, at step 0 (rule wbt-5).
const DEPTH: u32 = 16;
/// The window at step 0 (rule wbt-10).
const WINDOW: Duration = Duration::from_millis(100);
/// Targets by default, rotational or not (rule wbt-1).
const LATENCY_ROTATIONAL: Duration = Duration::from_millis(75);
const LATENCY_FLASH: Duration = Duration::from_millis(2);
/// Samples of a window that says something (rule wbt-11).
const LEAST_READS: u32 = 1;
const LEAST_WRITES: u32 = 3;
/// Windows that say nothing after which the step goes back towards zero (rule wbt-12).
const UNKNOWN_WINDOWS: u32 = 5;
/// Fixed windows of statistics have 2^27 ns (rule wbt-15).
const ALIGNED_BITS: u32 = 27;

/// Whether throttling is on, and who said so (rule wbt-14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// By default.
    OnDefault,
    /// Somebody wrote a latency.
    OnManual,
    /// It would be on, but for the scheduler.
    OffDefault,
    /// Somebody wrote zero, or the kernel throttles nothing by default.
    OffManual,
}

/// Somebody who sleeps for a slot.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    context: ContextId,
    flags: Flags,
}

/// Slots taken, and who waits for one, in order.
#[derive(Default)]
struct Slots {
    in_flight: u32,
    waiters: VecDeque<Waiter>,
}

/// Latencies of one direction in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    count: u32,
    least: Duration,
    /// Which of the fixed windows these are of.
    aligned: u64,
}

impl Samples {
    fn add(&mut self, latency: Duration) {
        self.least = if self.count == 0 { latency } else { self.least.min(latency) };
        self.count += 1;
    }
}

/// The throttling of one queue.
pub(super) struct Wbt {
    rules: WbtRules,
    wheel: TimerWheel,
    state: State,
    /// The latency that reads are to have.
    target: Duration,
    /// Commands that the device takes at once.
    queue_depth: u32,
    /// The device keeps written data in a cache that loses it.
    volatile_cache: bool,
    /// Above zero there are fewer slots than at first, below zero more.
    step: i32,
    /// There cannot be more.
    scaled_max: bool,
    /// Slots for those that somebody waits for, for others, and for the background.
    max: u32,
    normal: u32,
    background: u32,
    /// The window at step 0; zero for good after what rule wbt-14 says of 4.10.
    base_window: Duration,
    window: Duration,
    /// When the window is over, if one is open.
    due: Option<Instant>,
    /// Windows that said nothing, in a row.
    unknown: u32,
    /// The read that is watched, and when the device got it.
    cookie: Option<(RequestId, Instant)>,
    /// Ticks at which a read came last, one was done last, and a writer paused last.
    read_came: Option<u64>,
    read_done: Option<u64>,
    paused: Option<u64>,
    writes: Slots,
    discards: Slots,
    reads_done: Samples,
    writes_done: Samples,
}

impl Wbt {
    /// Throttling that is off.
    pub fn new(rules: WbtRules, hz: Hz) -> Wbt {
        Wbt {
            rules,
            // Windows are so short that a timer is late by the same after any uptime.
            wheel: TimerWheel::new(hz, 0),
            state: State::OffManual,
            target: Duration::ZERO,
            queue_depth: DEPTH,
            volatile_cache: false,
            step: 0,
            scaled_max: false,
            max: 0,
            normal: 0,
            background: 0,
            base_window: WINDOW,
            window: WINDOW,
            due: None,
            unknown: 0,
            cookie: None,
            read_came: None,
            read_done: None,
            paused: None,
            writes: Slots::default(),
            discards: Slots::default(),
            reads_done: Samples::default(),
            writes_done: Samples::default(),
        }
    }

    /// Whether anything is throttled.
    pub fn is_on(&self) -> bool {
        matches!(self.state, State::OnDefault | State::OnManual) && self.normal > 0
    }

    /// What `wbt_lat_usec` shows.
    pub fn shown_latency(&self) -> Duration {
        match self.state {
            State::OnDefault | State::OnManual => self.target,
            State::OffDefault | State::OffManual => Duration::ZERO,
        }
    }

    /// Somebody writes `wbt_lat_usec` (rules wbt-1 and wbt-14).
    pub fn set_latency(
        &mut self,
        now: Instant,
        latency: Option<Duration>,
        device: Device,
        woken: &mut Vec<ContextId>,
    ) {
        let latency = latency.unwrap_or_else(|| default_latency(device));
        if latency == self.target {
            return;
        }
        self.state = if latency.is_zero() { State::OffManual } else { State::OnManual };
        self.start(latency, device);
        if latency.is_zero() {
            self.stop_window();
        }
        self.wake_all(now, woken);
    }

    /// The kernel is configured to throttle by default.
    pub fn set_default(&mut self, device: Device) {
        self.state = State::OnDefault;
        self.start(default_latency(device), device);
    }

    /// The device takes another number of commands; steps stay.
    pub fn depth_changed(&mut self, now: Instant, device: Device, woken: &mut Vec<ContextId>) {
        self.queue_depth = device.queue_depth.max(1);
        if self.is_on() {
            self.recompute();
            self.wake_all(now, woken);
        }
    }

    fn start(&mut self, latency: Duration, device: Device) {
        self.target = latency;
        self.queue_depth = device.queue_depth.max(1);
        self.volatile_cache = device.volatile_cache;
        self.step = 0;
        self.scaled_max = false;
        self.unknown = 0;
        self.recompute();
    }

    /// A file system was mounted some seconds before, which writes a little: there was a window
    /// with writes, and many in which nothing happened (rule wbt-12).
    pub fn note_mount(&mut self, now: Instant, woken: &mut Vec<ContextId>) {
        if !self.is_on() {
            return;
        }
        self.scale_up(now, woken, &mut Vec::new());
        if self.step < 0 {
            self.scale_down(false, &mut Vec::new());
        }
        if self.step != 0 {
            self.arm(now);
        }
    }

    /// A scheduler was attached, which may not want writes to be throttled by default
    /// (rule wbt-14).
    pub fn attached(&mut self, now: Instant, disables: bool, woken: &mut Vec<ContextId>) {
        match (self.rules.ends_default, self.state, disables) {
            (EndsDefault::UntilDetached, State::OnDefault, true) => {
                self.state = State::OffDefault;
                self.stop_window();
                self.wake_all(now, woken);
            }
            (EndsDefault::UntilDetached, State::OffDefault, false) => {
                self.state = State::OnDefault;
            }
            (EndsDefault::UntilRecomputed, State::OnDefault, true) => {
                self.normal = 0;
                self.wake_all(now, woken);
            }
            _ => {}
        }
    }

    /// Whether a request of a control group other than the root may end it (rule wbt-14).
    pub fn may_end_for_group(&self) -> bool {
        self.rules.ends_default == EndsDefault::AtRequestOfGroup
            && self.state == State::OnDefault
            && !self.target.is_zero()
    }

    /// One is made by a scheduler that does not want writes to be throttled by default: it ends for
    /// good.
    pub fn end_for_group(&mut self, now: Instant, woken: &mut Vec<ContextId>) {
        self.stop_window();
        self.target = Duration::ZERO;
        self.base_window = Duration::ZERO;
        self.recompute();
        self.wake_all(now, woken);
    }

    fn stop_window(&mut self) {
        self.due = None;
        self.clear_samples();
    }

    fn clear_samples(&mut self) {
        self.reads_done = Samples::default();
        self.writes_done = Samples::default();
    }

    /// A writer of the page cache begins to pause (rule wbt-6).
    pub fn dirty_pause(&mut self, now: Instant) {
        self.paused = Some(self.tick(now));
    }

    /// A bio wants a request; throttling is on (rules wbt-2 to wbt-4).
    pub fn throttle(&mut self, now: Instant, context: ContextId, bio: &Bio) -> Verdict {
        let mark = self.mark(bio);
        match mark {
            Mark::Nothing => {}
            Mark::Read => self.read_came = Some(self.tick(now)),
            Mark::Slot(class) => {
                let limit = self.limit(now, class, bio.flags);
                let slots = self.slots(class);
                if !slots.waiters.is_empty() || slots.in_flight >= limit {
                    slots.waiters.push_back(Waiter { context, flags: bio.flags });
                    return Verdict::Wait { depth: limit };
                }
                slots.in_flight += 1;
                self.open_window(now);
            }
        }
        Verdict::Go(mark)
    }

    /// Who slept for a slot has it, and runs.
    pub fn granted(&mut self, now: Instant, bio: &Bio) -> Mark {
        if self.is_on() {
            self.open_window(now);
        }
        self.mark(bio)
    }

    fn mark(&self, bio: &Bio) -> Mark {
        let exempt = |flag| bio.flags.intersects(flag);
        match bio.op {
            Op::Read => Mark::Read,
            Op::Write if exempt(Flags::SYNC) && exempt(Flags::IDLE) => Mark::Nothing,
            Op::Write => Mark::Slot(Class::Write),
            Op::Discard if self.rules.throttles_discards => Mark::Slot(Class::Discard),
            Op::Discard => Mark::Nothing,
        }
    }

    fn slots(&mut self, class: Class) -> &mut Slots {
        match class {
            Class::Write => &mut self.writes,
            Class::Discard => &mut self.discards,
        }
    }

    fn in_flight(&self) -> u32 {
        self.writes.in_flight + self.discards.in_flight
    }

    /// How many slots of its class may be taken for this bio to get one (rule wbt-6).
    fn limit(&self, now: Instant, class: Class, flags: Flags) -> u32 {
        let urgent = Flags::SYNC.with(Flags::META).with(Flags::PRIO);
        if !self.is_on() {
            u32::MAX
        } else if class == Class::Discard {
            self.background
        } else if flags.intersects(urgent) || self.paused_lately(now) {
            self.max
        } else if flags.intersects(Flags::BACKGROUND) || self.read_lately(now) {
            self.background
        } else {
            self.normal
        }
    }

    fn tick(&self, now: Instant) -> u64 {
        now.as_nanos() / self.wheel.hz().tick().as_nanos()
    }

    /// Whether a writer of the page cache began to pause less than a second ago.
    fn paused_lately(&self, now: Instant) -> bool {
        let second = u64::from(self.wheel.hz().get());
        self.paused.is_some_and(|at| self.tick(now) < at + second)
    }

    /// Whether a read came or was done less than a tenth of a second ago.
    fn read_lately(&self, now: Instant) -> bool {
        let tenth = u64::from(self.wheel.hz().get()) / 10;
        let lately = |at: Option<u64>| at.is_some_and(|at| self.tick(now) < at + tenth);
        lately(self.read_came) || lately(self.read_done)
    }

    /// The driver takes a read (rule wbt-9).
    pub fn issued(&mut self, now: Instant, rq: RequestId) {
        if self.cookie.is_none() {
            self.cookie = Some((rq, now));
        }
    }

    /// The driver gives a request back: it keeps its slot.
    pub fn requeued(&mut self, rq: RequestId) {
        self.forget(rq);
    }

    fn forget(&mut self, rq: RequestId) {
        self.cookie = self.cookie.filter(|(watched, _)| *watched != rq);
    }

    /// Whether latencies are counted now.
    pub fn counts(&self) -> bool {
        self.due.is_some() || self.rules.statistics == Statistics::Aligned && self.is_on()
    }

    /// The device has finished a request (rule wbt-9).
    pub fn completed(&mut self, now: Instant, request: &Request) {
        if request.is_flush_command {
            return;
        }
        let samples = match request.op {
            Op::Read => &mut self.reads_done,
            Op::Write | Op::Discard => &mut self.writes_done,
        };
        let aligned = now.as_nanos() >> ALIGNED_BITS;
        if self.rules.statistics == Statistics::Aligned && samples.aligned != aligned {
            *samples = Samples { aligned, ..Samples::default() };
        }
        samples.add(now.since(request.issued_at));
    }

    /// A request is freed (rules wbt-7 and wbt-8).
    pub fn done(&mut self, now: Instant, rq: RequestId, mark: Mark, woken: &mut Vec<ContextId>) {
        if mark == Mark::Read {
            self.forget(rq);
            self.read_done = Some(self.tick(now));
        }
        self.cleanup(now, mark, woken);
    }

    /// A slot becomes free; perhaps somebody gets it (rule wbt-8).
    pub fn cleanup(&mut self, now: Instant, mark: Mark, woken: &mut Vec<ContextId>) {
        let Mark::Slot(class) = mark else { return };
        let limit = match class {
            Class::Discard => self.background,
            Class::Write if self.volatile_cache && !self.paused_lately(now) => 0,
            Class::Write => self.normal,
        };
        let enough = self.background / 2;
        let slots = self.slots(class);
        slots.in_flight -= 1;
        let left = slots.in_flight;
        if left == 0 || left < limit && limit - left >= enough {
            self.wake(now, class, woken);
        }
    }

    /// Who waits gets a slot, one after the other, until somebody cannot have one.
    fn wake(&mut self, now: Instant, class: Class, woken: &mut Vec<ContextId>) {
        while let Some(&Waiter { context, flags }) = self.slots(class).waiters.front() {
            let limit = self.limit(now, class, flags);
            let slots = self.slots(class);
            if slots.in_flight >= limit {
                return;
            }
            slots.in_flight += 1;
            slots.waiters.pop_front();
            woken.push(context);
        }
    }

    /// The same for everybody, when limits have changed.
    fn wake_all(&mut self, now: Instant, woken: &mut Vec<ContextId>) {
        self.wake(now, Class::Write, woken);
        self.wake(now, Class::Discard, woken);
    }

    /// When a window is over.
    pub fn next_timer(&self) -> Option<Instant> {
        self.due
    }

    fn open_window(&mut self, now: Instant) {
        if self.due.is_none() {
            self.arm(now);
        }
    }

    /// A window begins (rule wbt-10).
    fn arm(&mut self, now: Instant) {
        self.window = self.window_at(self.step);
        let tick = self.wheel.hz().tick().as_nanos();
        let ticks = self.window.as_nanos() / tick;
        self.due = Some(Instant::from_nanos(self.wheel.after(self.tick(now), ticks) * tick));
        if self.rules.statistics == Statistics::PerWindow {
            self.clear_samples();
        }
    }

    fn window_at(&self, step: i32) -> Duration {
        match u64::try_from(step) {
            Ok(step) if step > 0 => {
                let root = ((step + 1) << 8).isqrt();
                Duration::from_nanos((self.base_window.as_nanos() << 4) / root)
            }
            _ => self.base_window,
        }
    }

    /// The window is over (rules wbt-11 to wbt-13).
    pub fn timer(&mut self, now: Instant, woken: &mut Vec<ContextId>) -> Vec<WbtEvent> {
        let in_flight = self.in_flight();
        self.due = None;
        let mut said = Vec::new();
        let status = self.judge(now, &mut said);
        said.push(WbtEvent::Timer { status, step: self.step, in_flight });
        match status {
            WbtStatus::Exceeded => self.scale_down(true, &mut said),
            WbtStatus::Ok | WbtStatus::UnknownWrites => self.scale_up(now, woken, &mut said),
            WbtStatus::Unknown => self.note_unknown(now, woken, &mut said),
        }
        if self.step != 0 || in_flight > 0 {
            self.arm(now);
        }
        said
    }

    fn judge(&self, now: Instant, said: &mut Vec<WbtEvent>) -> WbtStatus {
        let (reads, writes) = (&self.reads_done, &self.writes_done);
        let age = self.cookie.map_or(Duration::ZERO, |(_, issued)| now.since(issued));
        if age > self.window || age > self.target && reads.count == 0 {
            said.push(WbtEvent::Latency { latency: age });
            return WbtStatus::Exceeded;
        }
        if reads.count < LEAST_READS || writes.count < LEAST_WRITES {
            let is_current = self.rules.statistics == Statistics::PerWindow
                || writes.aligned == now.as_nanos() >> ALIGNED_BITS;
            let has_written = writes.count > 0 && is_current;
            let writes = has_written || self.paused_lately(now) || self.in_flight() > 0;
            return if writes { WbtStatus::UnknownWrites } else { WbtStatus::Unknown };
        }
        let late = reads.least > self.target;
        if late {
            said.push(WbtEvent::Latency { latency: reads.least });
        }
        if late || self.step != 0 {
            let (least_read, reads, writes) = (reads.least, reads.count, writes.count);
            said.push(WbtEvent::Statistics { least_read, reads, writes });
        }
        if late { WbtStatus::Exceeded } else { WbtStatus::Ok }
    }

    fn note_unknown(&mut self, now: Instant, woken: &mut Vec<ContextId>, said: &mut Vec<WbtEvent>) {
        self.unknown += 1;
        if self.unknown < UNKNOWN_WINDOWS {
            return;
        }
        if self.step > 0 {
            self.scale_up(now, woken, said);
        } else if self.step < 0 {
            self.scale_down(false, said);
        }
    }

    /// One step more slots (rule wbt-12).
    fn scale_up(&mut self, now: Instant, woken: &mut Vec<ContextId>, said: &mut Vec<WbtEvent>) {
        if !self.scaled_max {
            self.step -= 1;
        } else if !self.rules.scales_in_vain {
            return;
        }
        self.settle(said);
        self.wake_all(now, woken);
    }

    /// One step fewer; `hard`: whoever is above the first step goes back to it at once
    /// (rule wbt-12).
    fn scale_down(&mut self, hard: bool, said: &mut Vec<WbtEvent>) {
        if self.max != 1 {
            self.step = if hard && self.step < 0 { 0 } else { self.step + 1 };
            self.scaled_max = false;
        } else if !self.rules.scales_in_vain {
            return;
        }
        self.settle(said);
    }

    /// The step is another one.
    fn settle(&mut self, said: &mut Vec<WbtEvent>) {
        self.recompute();
        self.unknown = 0;
        if self.rules.statistics == Statistics::Aligned {
            self.clear_samples();
        }
        said.push(WbtEvent::Step {
            step: self.step,
            window: self.window,
            background: self.background,
            normal: self.normal,
            max: self.max,
        });
    }

    /// Slots by step (rule wbt-5).
    fn recompute(&mut self) {
        let (max, scaled_max) = depth_at(self.queue_depth, self.step);
        self.max = max;
        self.scaled_max |= scaled_max;
        (self.normal, self.background) = if self.target.is_zero() {
            (0, 0)
        } else if max <= 2 && !self.rules.halves_small_depths {
            (max, 1)
        } else {
            (max.div_ceil(2), max.div_ceil(4))
        };
    }
}

fn default_latency(device: Device) -> Duration {
    if device.rotational { LATENCY_ROTATIONAL } else { LATENCY_FLASH }
}

/// The most slots at a step, and whether there cannot be more (rule wbt-5).
fn depth_at(queue_depth: u32, step: i32) -> (u32, bool) {
    if queue_depth == 1 {
        return if step > 0 { (1, false) } else { (2, true) };
    }
    let depth = queue_depth.min(DEPTH);
    if step >= 0 {
        return (1 + ((depth - 1) >> step.min(31)), false);
    }
    let most = 3 * queue_depth / 4;
    let wanted = 1 + (u64::from(depth - 1) << (-step).min(31));
    match u32::try_from(wanted) {
        Ok(wanted) if wanted <= most => (wanted, false),
        _ => (most, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Origin;
    use crate::ioprio::Ioprio;
    use crate::kernel::Kernel;
    use base::{Sector, Sectors};

    fn flash(queue_depth: u32) -> Device {
        Device { rotational: false, volatile_cache: false, queue_depth }
    }

    fn wbt(kernel: &str, queue_depth: u32) -> Wbt {
        let kernel = Kernel::named(kernel).unwrap();
        let mut wbt = Wbt::new(kernel.wbt.unwrap(), kernel.hz);
        wbt.set_default(flash(queue_depth));
        wbt
    }

    fn at_steps(wbt: &mut Wbt, steps: impl IntoIterator<Item = i32>) -> Vec<(u32, u32, u32)> {
        let at = |step| {
            wbt.step = step;
            wbt.recompute();
            (wbt.max, wbt.normal, wbt.background)
        };
        steps.into_iter().map(at).collect()
    }

    #[test]
    fn each_step_halves_the_slots_of_a_deep_device() {
        let slots = at_steps(&mut wbt("6.12", 32), 0..=5);
        let expected = [(16, 8, 4), (8, 4, 2), (4, 2, 1), (2, 2, 1), (1, 1, 1), (1, 1, 1)];
        assert_eq!(slots, expected);
    }

    #[test]
    fn in_4_10_two_slots_are_halved_as_well() {
        let slots = at_steps(&mut wbt("4.10", 32), 2..=4);
        assert_eq!(slots, [(4, 2, 1), (2, 1, 1), (1, 1, 1)]);
    }

    #[test]
    fn a_device_without_a_queue_has_two_slots_or_one() {
        assert_eq!(at_steps(&mut wbt("6.12", 1), 0..=1), [(2, 2, 1), (1, 1, 1)]);
        assert_eq!(at_steps(&mut wbt("4.10", 1), 0..=1), [(2, 1, 1), (1, 1, 1)]);
    }

    #[test]
    fn below_step_zero_there_are_at_most_three_quarters_of_what_the_device_takes() {
        let most = [(31, 23, true), (32, 24, true), (64, 31, false)];
        for (queue_depth, max, scaled_max) in most {
            assert_eq!(depth_at(queue_depth, -1), (max, scaled_max));
        }
        // As many as wanted is not too many.
        assert_eq!(depth_at(42, -1), (31, false));
        assert_eq!(depth_at(256, -31), (192, true));
        assert_eq!(depth_at(8, 1), (4, false));
    }

    #[test]
    fn windows_get_shorter_with_each_step_above_zero() {
        let wbt = wbt("6.12", 32);
        let windows = [-1, 0, 1, 2, 3, 4].map(|step| wbt.window_at(step).as_nanos());
        let expected = [100_000_000, 100_000_000, 72_727_272, 59_259_259, 50_000_000, 45_714_285];
        assert_eq!(windows, expected);
    }

    #[test]
    fn a_window_ends_with_a_tick_after_its_whole_ticks_are_over() {
        let mut wbt = wbt("6.12", 32);
        wbt.arm(Instant::from_nanos(1_000_000));
        assert_eq!(wbt.due, Some(Instant::from_nanos(104_000_000)));
        wbt.step = 1;
        wbt.arm(Instant::from_nanos(104_000_000));
        // 72.7 ms are 18 ticks of 4 ms, and one that has begun.
        assert_eq!(wbt.due, Some(Instant::from_nanos(180_000_000)));
    }

    #[test]
    fn the_step_goes_back_to_zero_at_once_when_reads_are_late_and_in_small_ones_else() {
        let (mut woken, mut said) = (Vec::new(), Vec::new());
        let mut wbt = wbt("6.12", 256);
        for _ in 0..3 {
            wbt.scale_up(Instant::ZERO, &mut woken, &mut said);
        }
        assert_eq!(wbt.step, -3);
        wbt.scale_down(false, &mut said);
        assert_eq!(wbt.step, -2);
        wbt.scale_down(true, &mut said);
        assert_eq!(wbt.step, 0);
        wbt.scale_down(true, &mut said);
        assert_eq!(wbt.step, 1);
    }

    #[test]
    fn a_mount_leaves_one_slot_of_two_for_good() {
        let limits = |queue_depth| {
            let mut wbt = wbt("6.12", queue_depth);
            wbt.note_mount(Instant::ZERO, &mut Vec::new());
            (wbt.step, wbt.max, wbt.normal, wbt.background, wbt.due.is_some())
        };
        assert_eq!(limits(2), (-1, 1, 1, 1, true));
        assert_eq!(limits(1), (0, 2, 2, 1, false));
        assert_eq!(limits(4), (0, 4, 2, 1, false));
    }

    #[test]
    fn nothing_is_said_of_a_step_that_cannot_be_taken_but_in_old_kernels() {
        for (kernel, says) in [("4.19", true), ("6.1", false), ("6.12", false)] {
            let mut wbt = wbt(kernel, 32);
            let (mut woken, mut said) = (Vec::new(), Vec::new());
            wbt.scale_up(Instant::ZERO, &mut woken, &mut said);
            assert!(wbt.scaled_max);
            said.clear();
            wbt.scale_up(Instant::ZERO, &mut woken, &mut said);
            assert_eq!((wbt.step, !said.is_empty()), (-1, says), "{kernel}");
        }
    }

    #[test]
    fn a_read_that_takes_the_target_or_the_window_is_not_late_yet() {
        let status = |wbt: &Wbt, after| wbt.judge(Instant::ZERO + after, &mut Vec::new());
        let mut wbt = wbt("6.12", 32);
        wbt.cookie = Some((RequestId::from_bits(0), Instant::ZERO));
        assert_ne!(status(&wbt, wbt.target), WbtStatus::Exceeded);
        assert_eq!(status(&wbt, wbt.target + Duration::from_nanos(1)), WbtStatus::Exceeded);
        // Others have ended meanwhile.
        wbt.reads_done.add(wbt.target);
        assert_ne!(status(&wbt, wbt.window), WbtStatus::Exceeded);
        assert_eq!(status(&wbt, wbt.window + Duration::from_nanos(1)), WbtStatus::Exceeded);
    }

    #[test]
    fn what_reads_took_counts_beside_three_writes() {
        let mut wbt = wbt("6.12", 32);
        let judge = |wbt: &Wbt| wbt.judge(Instant::ZERO, &mut Vec::new());
        assert_eq!(judge(&wbt), WbtStatus::Unknown);
        wbt.reads_done.add(wbt.target);
        (0..2).for_each(|_| wbt.writes_done.add(Duration::ZERO));
        assert_eq!(judge(&wbt), WbtStatus::UnknownWrites);
        wbt.writes_done.add(Duration::ZERO);
        assert_eq!(judge(&wbt), WbtStatus::Ok);
        wbt.reads_done = Samples::default();
        wbt.reads_done.add(wbt.target + Duration::from_nanos(1));
        assert_eq!(judge(&wbt), WbtStatus::Exceeded);
    }

    #[test]
    fn windows_that_say_nothing_change_nothing_at_step_zero() {
        let mut wbt = wbt("6.12", 32);
        let mut woken = Vec::new();
        for window in 1..=2 * UNKNOWN_WINDOWS {
            let said = wbt.timer(Instant::from_nanos(u64::from(window)), &mut woken);
            assert!(matches!(said[..], [WbtEvent::Timer { status: WbtStatus::Unknown, .. }]));
        }
        assert_eq!(wbt.step, 0);
        for (step, after) in [(2, 1), (-2, -1)] {
            (wbt.step, wbt.unknown) = (step, UNKNOWN_WINDOWS);
            wbt.timer(Instant::ZERO, &mut woken);
            assert_eq!(wbt.step, after);
        }
    }

    #[test]
    fn without_a_target_there_are_no_slots_to_wait_for() {
        let mut wbt = wbt("6.12", 32);
        wbt.target = Duration::ZERO;
        assert_eq!(at_steps(&mut wbt, [0]), [(16, 0, 0)]);
    }

    #[test]
    fn a_request_of_a_group_ends_only_what_nobody_has_set() {
        let mut off = wbt("4.10", 32);
        off.target = Duration::ZERO;
        assert!(!off.may_end_for_group());
        let mut wbt = wbt("4.10", 32);
        assert!(wbt.may_end_for_group());
        wbt.set_latency(Instant::ZERO, Some(Duration::from_millis(3)), flash(32), &mut Vec::new());
        assert!(!wbt.may_end_for_group());
    }

    #[test]
    fn whoever_waits_goes_on_when_it_ends() {
        let bio = Bio {
            op: Op::Write,
            flags: Flags::NONE,
            sector: Sector(0),
            sectors: Sectors(8),
            ioprio: Ioprio::NONE,
            origin: Origin::default(),
            token: 0,
        };
        for (kernel, forgets) in [("4.10", true), ("4.19", false), ("6.12", true)] {
            let (mut wbt, mut woken) = (wbt(kernel, 32), Vec::new());
            let waits = |task: &u32| {
                let verdict = wbt.throttle(Instant::ZERO, ContextId(*task), &bio);
                matches!(verdict, Verdict::Wait { .. })
            };
            let waiting = (0..100).find(waits).unwrap();
            wbt.reads_done.add(Duration::ZERO);
            match kernel {
                "4.10" => wbt.end_for_group(Instant::ZERO, &mut woken),
                _ => wbt.attached(Instant::ZERO, true, &mut woken),
            }
            assert_eq!(woken, [ContextId(waiting)], "{kernel}");
            assert!(!wbt.is_on());
            assert_eq!(wbt.reads_done.count == 0, forgets, "{kernel}");
        }
    }

    #[test]
    fn a_writer_pauses_lately_for_a_second() {
        let mut wbt = wbt("6.12", 32);
        wbt.dirty_pause(Instant::ZERO);
        assert!(wbt.paused_lately(Instant::from_nanos(999_999_999)));
        assert!(!wbt.paused_lately(Instant::from_nanos(1_000_000_000)));
    }

    #[test]
    fn a_new_target_forgets_windows_that_said_nothing() {
        let mut wbt = wbt("6.12", 32);
        wbt.unknown = UNKNOWN_WINDOWS - 1;
        wbt.set_latency(Instant::ZERO, Some(Duration::from_millis(3)), flash(32), &mut Vec::new());
        assert_eq!(wbt.unknown, 0);
    }

    #[test]
    fn who_ends_it_for_good_leaves_no_window() {
        let mut wbt = wbt("4.10", 32);
        wbt.end_for_group(Instant::ZERO, &mut Vec::new());
        assert_eq!((wbt.window_at(0), wbt.target), (Duration::ZERO, Duration::ZERO));
    }
}
