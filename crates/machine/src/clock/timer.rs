//! When timers fire on a core whose clock counts in steps.
//!
//! In the world linux time moves in nanoseconds and the clock in steps of 256 ns. The kernel sets
//! its timer a distance ahead of what the clock says, so it fires as much later than asked as the
//! clock was behind when it was set. It is set anew when it has fired, when something is to come
//! before what it was set to, and when ticks begin again: they stop when one comes while nothing
//! runs, unless one of the kernel's timers is due at the next, and a task that wakes then starts
//! them. A tick near the end of a sleep ends it.
//!
//! Measured in the world linux: hrtimer_start and hrtimer_expire_entry, with a clock for the
//! trace that costs nothing there.

use base::{Duration, Instant};

/// By how much sleeps are longer than asked, so that timers may fire together.
// prctl(2), the default; as machine.timer_slack of the host `guest`
const SLACK: Duration = Duration::from_micros(50);

/// What a core's timer is set to.
pub(crate) struct Timer {
    step: u64,
    tick: u64,
    /// How much the clock was behind when the timer was set.
    late: u64,
    /// Ticks that had come when the core began to work or to rest, or when one was seen since.
    seen: u64,
    works: bool,
    /// How many ticks have come, if the last one came while a task worked.
    ticks: u64,
    /// The last tick that came, while a task worked or while none did.
    last: u64,
    /// It rests, and no tick comes any more.
    has_stopped: bool,
    /// The ticks at which timers of the kernel are due that were set when time moved on.
    due: Vec<u64>,
    /// It has fired at a tick, at rest: ticks stop unless a task wakes at that instant.
    stops: Option<Instant>,
}

impl Timer {
    /// A timer beside a clock that counts in steps, with so much from tick to tick.
    pub fn new(step: Duration, tick: Duration) -> Timer {
        let (step, tick) = (step.as_nanos(), tick.as_nanos());
        Timer {
            step,
            tick,
            late: 0,
            seen: 0,
            works: false,
            ticks: 0,
            last: 0,
            has_stopped: true,
            due: Vec::new(),
            stops: None,
        }
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

    /// When the look at the clock ends that goes on, or the next one begins; what takes time is
    /// nothing but looks.
    pub fn end_of_look(&self, begun: Instant, now: Instant, is_next: bool) -> Option<Instant> {
        let looked = now.since(begun).as_nanos() + u64::from(is_next);
        self.is_coarse().then(|| begun + Duration::from_nanos(looked.next_multiple_of(self.step)))
    }

    /// The tick that comes in a time during which a task works.
    pub fn tick_within(&self, now: Instant, until: Instant) -> Option<Instant> {
        let number = self.ticks.max(self.number(now)) + 1;
        let tick = Instant::from_nanos(number * self.tick + self.late);
        (self.is_coarse() && tick <= until).then_some(tick)
    }

    /// A tick comes while a task works; false if it is not the first to say so.
    pub fn is_new_tick(&mut self, now: Instant) -> bool {
        let number = self.number(now);
        self.last = self.last.max(number);
        number > std::mem::replace(&mut self.ticks, number)
    }

    /// The last tick that has come.
    pub fn last_tick(&self) -> u64 {
        self.last
    }

    /// When it fires that is set to a time that has come.
    pub fn fires(&mut self, at: Instant) -> Instant {
        self.settle(at);
        at + Duration::from_nanos(self.late)
    }

    /// It has fired so much late for a job that waited for its beginning: the tick of that instant,
    /// if there was one, has come with it.
    pub fn lets_begin(&mut self, now: Instant, delay: Duration) {
        self.late = delay.as_nanos();
        self.fired(now);
    }

    /// It has fired, for a tick or something else, and is set to what comes next.
    pub fn fired(&mut self, now: Instant) {
        let number = self.number(now);
        self.ticks = self.ticks.max(number);
        if self.works {
            self.last = self.last.max(number);
        } else if number > self.seen && !self.is_due_at(number + 1) {
            self.stops = Some(now);
        }
        self.seen = self.seen.max(number);
        self.set(now);
    }

    /// Whether time at rest that goes on until then may see a tick.
    pub fn may_tick(&self, now: Instant, until: Instant) -> bool {
        self.is_coarse() && !self.works && self.goes_on() && self.next_tick(now) <= until
    }

    /// Timers are set to these points in time, and no others. Those of the kernel that count ticks
    /// are due at one.
    pub fn are_set(&mut self, times: impl Iterator<Item = Instant>) {
        let tick = |at: Instant| (at.as_nanos() / self.tick, at.as_nanos() % self.tick);
        self.due.clear();
        self.due.extend(times.map(tick).filter(|it| it.1 == 0).map(|it| it.0));
    }

    /// Whether ticks at rest have not stopped, unless a task wakes at this instant.
    fn goes_on(&self) -> bool {
        !self.has_stopped && self.stops.is_none()
    }

    fn is_due_at(&self, tick: u64) -> bool {
        self.due.contains(&tick)
    }

    /// A task that runs wants to sleep until `at`; others until `next` at least. It is set anew if
    /// nothing comes before.
    pub fn sleep(&mut self, now: Instant, at: Instant, next: Instant) {
        self.settle(now);
        if at < next.min(self.next_tick(now)) {
            self.set(now);
        }
    }

    /// The tick that ends a sleep early, if there is one in its last part.
    pub fn early(&self, at: Instant) -> Option<Instant> {
        let tick = at.as_nanos() / self.tick * self.tick;
        let is_near = self.is_coarse() && at.as_nanos() - tick < SLACK.as_nanos();
        is_near.then_some(Instant::from_nanos(tick))
    }

    /// Whether a task runs.
    pub fn works(&self) -> bool {
        self.works
    }

    /// Whether a tick comes at its time: none has stopped them before.
    pub fn ticks(&self, tick: Instant) -> bool {
        let before = tick - Duration::from_nanos(1);
        self.works || self.goes_on() && self.number(before) <= self.seen
    }

    /// Nothing is left to run.
    pub fn rest(&mut self, now: Instant) {
        self.settle(now);
        self.begin(now, false);
    }

    /// A task runs again; the next timer of others is to fire at `next`.
    pub fn work(&mut self, now: Instant, next: Instant) {
        self.stops = self.stops.filter(|at| *at < now);
        self.settle(now);
        if self.has_stopped && self.next_tick(now) < next {
            self.set(now);
        }
        self.begin(now, true);
        self.has_stopped = false;
    }

    /// The core begins to work or to rest. A tick that has been seen is not seen again when the
    /// timer is later than it was then.
    fn begin(&mut self, now: Instant, works: bool) {
        self.seen = self.seen.max(self.number(now));
        self.works = works;
    }

    /// Ticks that came set it anew: at their time, or when the look at the clock ended that a task
    /// had begun.
    // Observed on 6.12.117: tick_stop at the first tick of an idle core behind which no
    // timer_expire_entry comes at the next; sleeps of programs do not count.
    fn settle(&mut self, now: Instant) {
        self.has_stopped |= self.stops.take().is_some();
        let number = self.number(now);
        if !self.is_coarse() || self.has_stopped || number <= self.seen {
            return;
        }
        if self.works {
            self.last = number;
            self.set(now);
        }
        while !self.works && self.seen < number && !self.has_stopped {
            self.seen += 1;
            self.last = self.seen;
            self.set(Instant::from_nanos(self.late));
            self.has_stopped = !self.is_due_at(self.seen + 1);
        }
        self.seen = number;
    }

    /// It is set. The distance is rounded up (measured: 1 ns for up to 100 ms).
    fn set(&mut self, now: Instant) {
        if self.is_coarse() {
            self.late = self.behind(now) + 1;
        }
    }

    fn next_tick(&self, now: Instant) -> Instant {
        Instant::from_nanos((now.as_nanos() / self.tick + 1) * self.tick)
    }

    /// Which tick has come by then, if each one does.
    fn number(&self, now: Instant) -> u64 {
        self.ticked(now).as_nanos() / self.tick
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
        assert_eq!(timer.fires(at(1_000_000)), at(1_000_101));
    }

    #[test]
    fn a_task_that_wakes_after_a_tick_at_rest_has_it_set_anew() {
        let mut timer = timer();
        timer.rest(at(TICK - 10));
        timer.work(at(TICK + 300), Instant::FAR_FUTURE);
        assert_eq!(timer.fires(at(2 * TICK)), at(2 * TICK + (TICK + 300) % 256 + 1));
    }

    #[test]
    fn ticks_that_begin_again_behind_a_sleep_do_not_set_it() {
        let mut timer = timer();
        timer.work(at(TICK - 100), Instant::FAR_FUTURE);
        timer.fired(at(TICK - 6));
        let late = (TICK - 6) % 256 + 1;
        timer.rest(at(TICK - 5));
        timer.work(at(TICK + 300), at(TICK + 1000));
        // The one tick that came at rest set it once more.
        assert_eq!(timer.fires(at(TICK + 1000)), at(TICK + 1000 + late + 1));
    }

    #[test]
    fn who_begins_at_a_tick_does_not_meet_it_again() {
        let mut timer = timer();
        timer.fired(at(200));
        timer.rest(at(300));
        timer.lets_begin(at(2 * TICK + 4), Duration::from_nanos(4));
        timer.work(at(2 * TICK + 4), Instant::FAR_FUTURE);
        assert_eq!(timer.tick_within(at(2 * TICK + 4), at(3 * TICK)), None);
        let tick = timer.tick_within(at(2 * TICK + 4), at(4 * TICK));
        assert_eq!(tick, Some(at(3 * TICK + 5)));
    }

    #[test]
    fn a_tick_is_not_seen_again_when_the_timer_is_later_than_it_was_then() {
        let mut timer = timer();
        timer.work(at(500), Instant::FAR_FUTURE);
        timer.fired(at(192));
        // It comes at the end of a look. Something takes a nanosecond, and a task has the core.
        assert!(timer.is_new_tick(at(TICK + 193)));
        timer.fired(at(TICK + 193));
        timer.rest(at(TICK + 193));
        timer.work(at(TICK + 193), Instant::FAR_FUTURE);
        assert_eq!(timer.fires(at(2 * TICK)), at(2 * TICK + 194));
    }

    #[test]
    fn a_tick_is_seen_when_the_look_at_the_clock_ends() {
        let mut timer = timer();
        timer.work(at(TICK - 1100), Instant::FAR_FUTURE);
        let late = (TICK - 1100) % 256 + 1;
        assert_eq!(timer.tick_within(at(TICK - 1100), at(TICK)), None);
        assert_eq!(timer.tick_within(at(TICK - 1100), at(TICK + 256)), Some(at(TICK + late)));
        assert!(timer.is_new_tick(at(TICK + late)));
        assert!(!timer.is_new_tick(at(TICK + late)));
        let end = timer.end_of_look(at(TICK - 1100), at(TICK), false);
        assert_eq!(end, Some(at(TICK - 1100 + 5 * 256)));
    }

    #[test]
    fn what_the_disk_does_at_the_end_of_a_look_waits_for_the_next_one() {
        let timer = timer();
        assert_eq!(timer.end_of_look(at(1000), at(1512), false), Some(at(1512)));
        assert_eq!(timer.end_of_look(at(1000), at(1512), true), Some(at(1768)));
    }

    #[test]
    fn a_tick_in_the_last_part_of_a_sleep_ends_it_unless_ticks_have_stopped() {
        let mut timer = timer();
        timer.fired(at(100));
        assert_eq!(timer.early(at(3 * TICK + 49_000)), Some(at(3 * TICK)));
        assert_eq!(timer.early(at(3 * TICK + 51_000)), None);
        timer.work(at(2 * TICK + 500), Instant::FAR_FUTURE);
        timer.rest(at(2 * TICK + 800));
        assert!(timer.ticks(at(3 * TICK)));
        assert!(!timer.ticks(at(4 * TICK)));
    }

    #[test]
    fn at_rest_one_tick_comes_and_no_other() {
        let mut timer = timer();
        timer.work(at(500), Instant::FAR_FUTURE);
        assert!(timer.is_new_tick(at(TICK + 300)));
        assert_eq!(timer.last_tick(), 1);
        timer.rest(at(TICK + 900));
        timer.work(at(2 * TICK - 1), Instant::FAR_FUTURE);
        assert_eq!(timer.last_tick(), 1);
        timer.rest(at(2 * TICK - 1));
        timer.work(at(7 * TICK + 20_000), Instant::FAR_FUTURE);
        assert_eq!(timer.last_tick(), 2, "the others did not come");
        assert!(timer.is_new_tick(at(8 * TICK + 300)));
        assert_eq!(timer.last_tick(), 8);
    }

    /// A core at rest since a little after a tick, with timers due at these ticks.
    fn resting(due: &[u64]) -> Timer {
        let mut timer = timer();
        timer.work(at(TICK + 500), Instant::FAR_FUTURE);
        timer.rest(at(TICK + 600));
        assert!(timer.may_tick(at(TICK + 600), at(2 * TICK)));
        assert!(!timer.may_tick(at(TICK + 600), at(2 * TICK - 1)));
        timer.are_set(due.iter().map(|tick| at(tick * TICK)).chain([at(3 * TICK + 1)]));
        timer
    }

    #[test]
    fn ticks_at_rest_go_on_while_a_timer_is_due_with_the_next() {
        for (due, last) in [(&[][..], 2), (&[4], 2), (&[3], 3), (&[3, 4], 4), (&[4, 3, 6], 4)] {
            let mut timer = resting(due);
            timer.work(at(7 * TICK + 20_000), Instant::FAR_FUTURE);
            assert_eq!(timer.last_tick(), last, "{due:?}");
        }
    }

    #[test]
    fn each_tick_at_rest_makes_the_timer_later() {
        let late = |due: &[u64]| {
            let mut timer = resting(due);
            timer.fires(at(7 * TICK)).since(at(7 * TICK)).as_nanos()
        };
        assert_eq!(late(&[3, 4]), late(&[]) + 2);
    }

    #[test]
    fn a_timer_that_fires_at_a_tick_stops_ticks_unless_it_wakes_a_task() {
        for wakes in [false, true] {
            let mut timer = resting(&[2]);
            let fires = timer.fires(at(2 * TICK));
            timer.fired(fires);
            if wakes {
                timer.work(fires, Instant::FAR_FUTURE);
                timer.rest(fires);
            }
            assert_eq!(timer.may_tick(fires, at(3 * TICK)), wakes);
            assert_eq!(timer.ticks(at(3 * TICK)), wakes);
        }
    }

    #[test]
    fn a_clock_as_fine_as_time_changes_nothing() {
        let mut timer = Timer::new(Duration::ZERO, Duration::from_nanos(TICK));
        timer.fired(at(777));
        assert_eq!(timer.fires(at(TICK + 7)), at(TICK + 7));
        assert_eq!(timer.end_of_look(at(3), at(77), false), None);
        assert_eq!(timer.early(at(TICK + 7)), None);
    }
}
