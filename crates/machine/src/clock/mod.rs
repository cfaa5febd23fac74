//! The clock of a machine: what time it is, what is to happen when, and when its timer fires.
//!
//! Equal times happen in the order in which they were scheduled. Time moves on only by
//! [`Clock::advance`], and never past the end of the run.

mod alarms;
mod timer;

use alarms::Alarms;
use base::{Agenda, Duration, Instant, Ticket};
use block::ContextId;
use block::command::Command;
use timer::Timer;

/// System calls that may be made while time stands still; beyond, a program is taken to be endless.
const MOST_CALLS_AT_AN_INSTANT: u64 = 10_000_000;

/// A timer of the kernel's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelTimer {
    /// The kernel looks for late requests of the disk, or of another one.
    Late { own: bool },
    /// It looks for old pages of the root's file system, which is on no disk.
    RootFlush,
}

/// What is scheduled.
pub(crate) enum AgendaItem {
    /// A job starts.
    Start(usize),
    /// A job has run for as long as it may.
    Stop(usize),
    /// The tasks of a job go to another control group: which of its moves that is.
    Move(usize, usize),
    /// A core is done with what it was busy with.
    Charged(usize),
    /// A tick comes while a core is busy.
    Tick(usize),
    /// A look at the clock is over that made interrupts of a core wait.
    Unmasked(usize),
    /// A sleeping task's time is over.
    Alarm(ContextId),
    /// The timer fires that ends a task's sleep.
    Fires(ContextId),
    /// The tick of one of the kernel's own timers has come.
    Kernel(KernelTimer),
    /// It fires.
    KernelFires(KernelTimer),
    /// The block layer's timer fires.
    QueueFires,
    /// A kernel worker is to run the queue.
    Worker,
    /// A core has moved the data of a command, which the device takes now.
    Moved(usize, Command),
}

/// Virtual time, and what is to happen in it.
pub(crate) struct Clock {
    now: Instant,
    agenda: Agenda<AgendaItem>,
    /// Its first core's.
    timer: Timer,
    /// What ends the sleep of each context.
    alarms: Alarms,
    /// System calls since time moved on, with what they moved.
    calls_at_this_instant: u64,
    /// So much later the timer fires again that has fired too early.
    fires_again: Duration,
    /// When the run ends at the latest.
    until: Option<Instant>,
}

impl Clock {
    /// A clock that stands at zero, counts in steps and ticks, and whose timer `fires_again` so
    /// much later when it was too early, or never; the run ends at `until`.
    pub fn new(
        step: Duration,
        tick: Duration,
        fires_again: Duration,
        until: Option<Instant>,
    ) -> Clock {
        Clock {
            now: Instant::ZERO,
            agenda: Agenda::new(),
            timer: Timer::new(step, tick),
            alarms: Alarms::default(),
            calls_at_this_instant: 0,
            fires_again,
            until,
        }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// What the clock says, which may be behind.
    pub fn read(&self) -> Instant {
        self.timer.read(self.now)
    }

    /// Time moves on.
    pub fn advance(&mut self, to: Instant) {
        self.now = to;
        self.calls_at_this_instant = 0;
    }

    /// When the run ends at the latest.
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// The run may last so much longer.
    pub fn prolong(&mut self, by: Duration) {
        self.until = self.until.map(|until| until + by);
    }

    /// Counts a system call; false when so many cannot be but without end.
    pub fn count_call(&mut self) -> bool {
        self.calls_at_this_instant += 1;
        self.calls_at_this_instant <= MOST_CALLS_AT_AN_INSTANT
    }

    /// A system call moves so many pages through memory, each of which counts as another call.
    pub fn count_pages(&mut self, pages: u64) {
        self.calls_at_this_instant += pages;
    }

    /// Something is to happen.
    pub fn schedule(&mut self, at: Instant, item: AgendaItem) -> Ticket {
        self.agenda.schedule(at, item)
    }

    /// The same, so much later than now.
    pub fn schedule_after(&mut self, delay: Duration, item: AgendaItem) -> Ticket {
        self.agenda.schedule(self.now + delay, item)
    }

    /// Something is not to happen after all.
    pub fn cancel(&mut self, ticket: Ticket) {
        self.agenda.cancel(ticket);
    }

    /// When the next thing is to happen.
    pub fn next_at(&self) -> Option<Instant> {
        self.agenda.next_at()
    }

    /// What is to happen now and has not.
    pub fn pop_due(&mut self) -> Option<AgendaItem> {
        self.agenda.pop_due(self.now).map(|(_, item)| item)
    }

    /// Whether the clock counts in steps that are coarser than time.
    pub fn is_coarse(&self) -> bool {
        self.timer.is_coarse()
    }

    /// The time as ticks count it.
    pub fn ticked(&self) -> Instant {
        self.timer.ticked(self.now)
    }

    /// The last tick that has come: at rest one does and no other.
    pub fn last_tick(&self) -> u64 {
        self.timer.last_tick()
    }

    /// When the look at the clock ends that goes on since `begun`, or the next one begins.
    pub fn end_of_look(&self, begun: Instant, is_next: bool) -> Option<Instant> {
        self.timer.end_of_look(begun, self.now, is_next)
    }

    /// The tick that comes until then, while a task works.
    pub fn tick_within(&self, until: Instant) -> Option<Instant> {
        self.timer.tick_within(self.now, until)
    }

    /// A tick comes while a task works; false if it is not the first to say so.
    pub fn is_new_tick(&mut self) -> bool {
        self.timer.is_new_tick(self.now)
    }

    /// The timer has fired, and is set to what comes next.
    pub fn fired(&mut self) {
        self.timer.fired(self.now);
    }

    /// When the timer fires that is set to now.
    pub fn fires(&mut self) -> Instant {
        self.timer.fires(self.now)
    }

    /// The timer has fired so much late for a job that begins.
    pub fn lets_begin(&mut self, delay: Duration) {
        self.timer.lets_begin(self.now, delay);
    }

    /// The tick to come that ends a sleep until `at` early, if there is one in its last part.
    pub fn early(&self, at: Instant) -> Option<Instant> {
        self.timer.early(at).filter(|tick| *tick > self.now)
    }

    /// Time goes on until then, and timers are set to these points in time, besides those that end
    /// sleeps.
    pub fn expect(&mut self, until: Instant, timers: impl Iterator<Item = Instant>) {
        if self.timer.may_tick(self.now, until) {
            self.timer.are_set(timers.chain(self.alarms.ends()));
        }
    }

    /// Whether a task runs.
    pub fn works(&self) -> bool {
        self.timer.works()
    }

    /// A task runs again.
    pub fn work(&mut self) {
        let next = self.next_alarm();
        self.timer.work(self.now, next);
    }

    /// Nothing is left to run.
    pub fn rest(&mut self) {
        self.timer.rest(self.now);
    }
}
