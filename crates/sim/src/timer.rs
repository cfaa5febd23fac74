//! When timers fire on a core whose clock counts in steps.
//!
//! In the world linux time moves in nanoseconds and the clock in steps of 256 ns. The kernel sets its
//! timer a distance ahead of what the clock says, so it fires as much later than asked as the clock
//! was behind when it was set. It is set anew when it has fired, and when ticks begin again: they stop
//! when one comes while nothing runs, and a task that wakes then starts them. A tick near the end of a
//! sleep ends it.
//!
//! // measured in the world linux: hrtimer_start and hrtimer_expire_entry, with a clock for the trace
//! // that costs nothing there

use base::{Duration, Instant};

/// By how much sleeps are longer than asked, so that timers may fire together. // prctl(2), the default
const SLACK: Duration = Duration::from_micros(50);

/// What a core's timer is set to.
pub(crate) struct Timer {
    step: u64,
    tick: u64,
    /// How much the clock was behind when the timer was set.
    late: u64,
    /// Since when the core works, or rests.
    since: Instant,
    works: bool,
}

impl Timer {
    /// A timer beside a clock that counts in steps, with so much from tick to tick.
    pub fn new(step: Duration, tick: Duration) -> Timer {
        let (step, tick) = (step.as_nanos(), tick.as_nanos());
        Timer { step, tick, late: 0, since: Instant::ZERO, works: false }
    }

    /// Whether the clock counts in steps at all.
    pub fn is_coarse(&self) -> bool {
        self.step > 0
    }

    /// What the clock says.
    pub fn read(&self, now: Instant) -> Instant {
        if self.is_coarse() { now - Duration::from_nanos(self.behind(now)) } else { now }
    }

    /// The time as ticks count it: one comes as late as the timer fires.
    pub fn ticked(&self, now: Instant) -> Instant {
        Instant::from_nanos(now.as_nanos().saturating_sub(self.late))
    }

    /// When the look at the clock ends that goes on; what takes time is nothing but looks.
    pub fn end_of_look(&self, begun: Instant, now: Instant) -> Instant {
        if !self.is_coarse() {
            return now;
        }
        begun + Duration::from_nanos(now.since(begun).as_nanos().next_multiple_of(self.step))
    }

    /// When it fires that is set to a time that has come.
    pub fn fires(&mut self, at: Instant) -> Instant {
        self.settle(at);
        at + Duration::from_nanos(self.late)
    }

    /// It has fired, and is set to what comes next.
    pub fn fired(&mut self, now: Instant) {
        self.late = self.behind(now);
    }

    /// The tick that ends a sleep early, if there is one in its last part.
    pub fn early(&self, at: Instant) -> Option<Instant> {
        let tick = at.as_nanos() / self.tick * self.tick;
        let is_near = self.is_coarse() && at.as_nanos() - tick < SLACK.as_nanos();
        is_near.then_some(Instant::from_nanos(tick))
    }

    /// Whether a tick comes at its time: none has stopped them before.
    pub fn ticks(&self, tick: Instant) -> bool {
        self.works || self.ticks_between(self.since, tick - Duration::from_nanos(1)) == 0
    }

    /// Nothing is left to run.
    pub fn rest(&mut self, now: Instant) {
        self.settle(now);
        (self.since, self.works) = (now, false);
    }

    /// A task runs again; the next timer of others is to fire at `next`.
    pub fn work(&mut self, now: Instant, next: Instant) {
        let has_stopped = self.ticks_between(self.since, now) > 0;
        let tick = (now.as_nanos() / self.tick + 1) * self.tick;
        if self.is_coarse() && has_stopped && tick < next.as_nanos() {
            self.late = self.behind(now);
        }
        (self.since, self.works) = (now, true);
    }

    /// A tick that comes while a task works is seen when its look at the clock ends.
    fn settle(&mut self, now: Instant) {
        if self.is_coarse() && self.works && self.ticks_between(self.since, now) > 0 {
            self.late = self.behind(self.since);
        }
    }

    fn ticks_between(&self, from: Instant, to: Instant) -> u64 {
        let before = |it: Instant| it.as_nanos().saturating_sub(self.late) / self.tick;
        before(to) - before(from)
    }

    fn behind(&self, now: Instant) -> u64 {
        now.as_nanos() % self.step.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 4_000_000;

    fn timer() -> Timer {
        Timer::new(Duration::from_nanos(256), Duration::from_nanos(TICK))
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn it_fires_as_much_later_as_the_clock_was_behind_when_it_was_set() {
        let mut timer = timer();
        timer.fired(at(256_100));
        assert_eq!(timer.read(at(256_100)), at(256_000));
        assert_eq!(timer.fires(at(1_000_000)), at(1_000_100));
    }

    #[test]
    fn a_task_that_wakes_after_a_tick_at_rest_has_it_set_anew() {
        let mut timer = timer();
        timer.rest(at(TICK - 10));
        timer.work(at(TICK + 300), Instant::FAR_FUTURE);
        assert_eq!(timer.fires(at(2 * TICK)), at(2 * TICK + (TICK + 300) % 256));
    }

    #[test]
    fn ticks_that_begin_again_behind_a_sleep_do_not_set_it() {
        let mut timer = timer();
        timer.rest(at(TICK - 10));
        timer.work(at(TICK + 300), at(TICK + 1000));
        assert_eq!(timer.fires(at(TICK + 1000)), at(TICK + 1000));
    }

    #[test]
    fn a_tick_is_seen_when_the_look_at_the_clock_ends() {
        let mut timer = timer();
        timer.work(at(TICK - 1100), Instant::FAR_FUTURE);
        assert_eq!(timer.fires(at(TICK + 5000)), at(TICK + 5000 + (TICK - 1100) % 256));
        assert_eq!(timer.end_of_look(at(TICK - 1100), at(TICK)), at(TICK - 1100 + 5 * 256));
    }

    #[test]
    fn a_tick_in_the_last_part_of_a_sleep_ends_it_unless_ticks_have_stopped() {
        let mut timer = timer();
        timer.fired(at(100));
        assert_eq!(timer.early(at(3 * TICK + 49_000)), Some(at(3 * TICK)));
        assert_eq!(timer.early(at(3 * TICK + 51_000)), None);
        timer.rest(at(2 * TICK + 10));
        assert!(timer.ticks(at(3 * TICK)));
        assert!(!timer.ticks(at(4 * TICK)));
    }

    #[test]
    fn a_clock_as_fine_as_time_changes_nothing() {
        let mut timer = Timer::new(Duration::ZERO, Duration::from_nanos(TICK));
        timer.fired(at(777));
        assert_eq!(timer.fires(at(TICK + 7)), at(TICK + 7));
        assert_eq!(timer.end_of_look(at(3), at(77)), at(77));
        assert_eq!(timer.early(at(TICK + 7)), None);
    }
}
