//! The state of a machine: everything but the programs themselves.
//!
//! The world holds virtual time, the block layer, the device, the cores and what is known of every
//! task. It never runs a program: [`World::next_to_poll`] names the task whose program has to go
//! on, and programs reach the world through their [`crate::task::Task`].
//!
//! The order within a turn is fixed. At one instant first the device's completions are handled,
//! then the block layer's timer, then what was scheduled, in the order of scheduling. Then contexts
//! go on, first ready, first served, until all of them wait for something. On the single queue a
//! completion is followed by the scheduler and by running the queue, and only then are tasks woken
//! (rule dispatch-list-6). On blk-mq tasks are woken as their bios are delivered, and asynchronous
//! runs of the queue are done by a worker, which is a task on a core like any other.

mod completion;
mod effects;
mod kernel_tasks;
mod kernel_timers;
mod lives;
mod operations;
mod owners;
mod paying;
mod statistics;
mod telling;
mod threads;
mod ticks;
mod watching;

use crate::clock::{AgendaItem, Clock};
use crate::cpus::{Cause, Cpus, State};
use crate::disk::Disk;
use crate::io::Io;
use crate::jobs::JobState;
use crate::observe::Mark;
use crate::preparation::Preparation;
use crate::storage::Storage;
use crate::tasks::{Body, Cgroups, KernelTask, Tasks, Wait};
use base::{Duration, Instant};
use block::{Bio, ContextId, Event, Segments, Shape};
use guest::Profile;
use std::any::Any;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// The state of a machine.
pub(crate) struct World {
    clock: Clock,
    cpus: Cpus,
    tasks: Tasks,
    io: Io,
    storage: Storage,
    disk: Disk,
    cgroups: Cgroups,
    guest: Arc<Profile>,
    shape: Shape,
    seed: u64,
    /// Jobs, and behind them their preparation.
    jobs: Vec<JobState>,
    preparation: Preparation,
    /// How long a program takes to start.
    start_delay: Duration,
    /// By how much sleeps are longer than asked.
    timer_slack: Duration,
    /// Tasks that were created but whose programs have not been taken over.
    spawned: Vec<(ContextId, Body)>,
    mark: Mark,
    /// How many of the events that the observer has not seen had happened when time moved on last.
    past: usize,
    /// How many of these are in the mark.
    marked: usize,
    /// The kernel is to look for late requests of the disk some time.
    will_check: bool,
    /// When the kernel's own timers are due.
    kernel_timers: Vec<Instant>,
    /// The worker that is bound to no core, where the boot leaves it something to do.
    unbound: Option<ContextId>,
    /// The task that starts threads of the kernel, and what it is to start.
    starter: Option<ContextId>,
    wanted_threads: VecDeque<KernelTask>,
    /// The tick at which it gathers statistics of control groups at the earliest, if ever.
    statistics_due: Option<u64>,
    /// The block layer's timer has come and waits for its interrupt.
    timer_raised: bool,
    /// When it was due last.
    timer_came: Instant,
    /// Tasks to wake when the interrupt that runs has run the queue (single queue).
    held_wakes: Vec<ContextId>,
    /// Operations that wrote log buffers of XFS, which the queue's worker is to end, and the
    /// interrupts that told of them.
    log_writes: Vec<(ContextId, u64, ContextId)>,
    /// The job that makes system calls without end.
    endless: Option<usize>,
    /// I/O calls that jobs may still make, if there is a limit.
    calls_left: Option<u64>,
    /// What programs count themselves, by the number of their job.
    accounts: Vec<(usize, Rc<dyn Any>)>,
    /// The task or the interrupt that does something now, if anybody does.
    acting: Option<ContextId>,
    /// Observers are told of tasks.
    tells_tasks: bool,
}

/// What a world is put together from.
pub(crate) struct Owners {
    pub clock: Clock,
    pub cpus: Cpus,
    pub storage: Storage,
    pub disk: Disk,
    pub cgroups: Cgroups,
    pub shape: Shape,
    pub guest: Arc<Profile>,
    pub seed: u64,
    pub start_delay: Duration,
    pub timer_slack: Duration,
    /// I/O calls that jobs may make, if there is a limit.
    pub most_calls: Option<u64>,
    /// Observers are told of tasks.
    pub tells_tasks: bool,
}

/// What came of driving a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It has nothing to do in the block layer.
    Idle,
    /// Time must pass, or the lock be free, before it can go on.
    Busy,
    /// It sleeps for a request.
    Asleep,
}

impl World {
    /// A machine on which nothing happens.
    pub fn new(owners: Owners) -> World {
        World {
            clock: owners.clock,
            tasks: Tasks::new(owners.cpus.count()),
            cpus: owners.cpus,
            io: Io::default(),
            storage: owners.storage,
            disk: owners.disk,
            cgroups: owners.cgroups,
            guest: owners.guest,
            shape: owners.shape,
            seed: owners.seed,
            jobs: Vec::new(),
            preparation: Preparation::default(),
            start_delay: owners.start_delay,
            timer_slack: owners.timer_slack,
            spawned: Vec::new(),
            mark: Mark::default(),
            past: 0,
            marked: 0,
            will_check: false,
            kernel_timers: Vec::new(),
            unbound: None,
            starter: None,
            wanted_threads: VecDeque::new(),
            statistics_due: None,
            timer_raised: false,
            timer_came: Instant::FAR_FUTURE,
            held_wakes: Vec::new(),
            log_writes: Vec::new(),
            endless: None,
            calls_left: owners.most_calls,
            accounts: Vec::new(),
            acting: None,
            tells_tasks: owners.tells_tasks,
        }
    }

    /// The next task whose program has to go on; `None` when everybody waits for something.
    pub fn next_to_poll(&mut self) -> Option<ContextId> {
        loop {
            while let Some(context) = self.cpus.next_ready() {
                self.acting = Some(context);
                if self.advance(context) {
                    return Some(context);
                }
            }
            let has_rested = !self.clock.works();
            if !self.cpus.pick_next(&mut self.clock) {
                return None;
            }
            if has_rested {
                self.gathered_at_rest();
            }
        }
    }

    /// Lets time pass until something happens, and makes it happen; false when the run is over.
    pub fn turn(&mut self) -> bool {
        self.acting = None;
        if self.is_over() {
            return false;
        }
        let (timer, end) = (self.next_timer(), self.end());
        let others = earliest(timer, self.clock.next_at());
        let disk = self.next_of_disk(earliest(others, end));
        let Some(next) = earliest(disk, others) else {
            return self.stuck();
        };
        if let Some(until) = end.filter(|until| next > *until) {
            self.clock.advance(until);
            return false;
        }
        if next > self.clock.now() {
            self.cpus.rest(&mut self.clock);
            self.clock.expect(next, self.kernel_timers.iter().copied().chain(timer));
            self.clock.advance(next);
        }
        if disk.is_some_and(|at| at <= self.clock.now()) && !self.cpus.has_looked(&self.clock) {
            self.complete_commands();
        }
        if timer.is_some_and(|at| at <= self.clock.now()) {
            self.timer_raised = true;
            self.timer_came = self.clock.now();
            self.queue_timer_comes();
        }
        while let Some(item) = self.clock.pop_due() {
            self.handle_item(item);
        }
        true
    }

    /// When the disk concerns others next, who do something at `limit`. Where the clock counts in
    /// steps, each instant may begin or end one.
    fn next_of_disk(&mut self, limit: Option<Instant>) -> Option<Instant> {
        match self.clock.is_coarse() {
            true => self.disk.next_event(),
            false => self.disk.next_event_beyond(limit.unwrap_or(Instant::FAR_FUTURE)),
        }
    }

    /// Lets a context do what it can before others have to go on; true when its program is to be
    /// polled.
    fn advance(&mut self, context: ContextId) -> bool {
        if self.cpus.is_interrupt(context) {
            self.advance_interrupt(context.0 as usize);
            return false;
        }
        if !self.goes_on(context) {
            return false;
        }
        match self.drive(context) {
            Progress::Idle => true,
            Progress::Busy => false,
            Progress::Asleep => {
                self.block(context);
                false
            }
        }
    }

    /// Lets the interrupts of a core do what they can before others have to go on.
    fn advance_interrupt(&mut self, core: usize) {
        if !self.cpus.interrupt_is_free(core) {
            return;
        }
        loop {
            if !self.interrupt_goes_on(core) {
                return;
            }
            match self.drive(ContextId(core as u32)) {
                Progress::Busy => return,
                Progress::Asleep => panic!("an interrupt on core {core} went to sleep"),
                Progress::Idle => {}
            }
            self.deliver_held_wakes();
            match self.cpus.next_cause(core) {
                Some(cause) => self.handle_interrupt(core, cause),
                None => return self.leave_interrupt(core),
            }
        }
    }

    fn handle_interrupt(&mut self, core: usize, cause: Cause) {
        let (now, context, cpu) = (self.clock.now(), ContextId(core as u32), core as u16);
        match cause {
            Cause::Completion { tag, .. } => {
                self.tell_served(context, tag);
                self.storage.queue_mut().complete(now, context, cpu, tag)
            }
            Cause::Timer => {
                self.timer_raised = false;
                self.cpus.timer_fires(&mut self.clock);
                self.storage.queue_mut().timer(now, context, cpu);
            }
            Cause::Tick => {
                self.cpus.account_tick(&mut self.clock, core);
                self.wake_gatherer();
            }
            Cause::Alarm(sleeper) => {
                self.cpus.timer_fires(&mut self.clock);
                self.wake_sleeper(sleeper);
                self.wake_gatherer();
            }
            Cause::Kernel(timer) => {
                self.kernel_timer(timer);
                self.wake_gatherer();
            }
        }
    }

    /// Gives a bio of a task to the block layer; to be driven afterwards.
    pub fn submit(&mut self, bio: Bio) {
        self.storage.queue_mut().submit(self.clock.now(), bio);
    }

    /// The same for one whose data are in a program's own memory.
    pub fn submit_of_program(&mut self, bio: Bio) {
        let memory = self.storage.memory_of_program(bio.op, bio.sectors);
        self.submit_scattered(bio, memory);
    }

    /// The same for one whose data lie in these pieces of memory.
    pub fn submit_scattered(&mut self, bio: Bio, memory: Segments) {
        self.storage.queue_mut().submit_scattered(self.clock.now(), bio, memory);
    }

    /// Writes an event of a task.
    pub fn log(&mut self, event: impl FnOnce() -> Event) {
        self.storage.queue_mut().log().push(event);
    }

    /// A sleeping task has to go on.
    pub fn wake(&mut self, context: ContextId) {
        self.tell_waking(context);
        self.cpus.wake(&mut self.clock, context);
    }

    /// A running task goes to sleep.
    pub fn block(&mut self, context: ContextId) {
        self.note_sleep_of_finisher(context);
        self.tell_blocking(context);
        let rests = self.tasks.wait(context) == Wait::Notification;
        self.cpus.block(&mut self.clock, context, rests);
    }

    /// The time of an alarm has come, or that of a tick shortly before.
    fn alarm(&mut self, context: ContextId) {
        if self.clock.alarm_comes(context, self.timer_came == self.clock.now()) {
            self.wake_sleeper(context);
            for sleeper in self.clock.end_other_sleeps() {
                self.wake_sleeper(sleeper);
            }
        }
    }

    /// The timer of a core whose clock counts in steps has fired for a task.
    fn alarm_fires(&mut self, context: ContextId) {
        if self.clock.alarm_fires(context) {
            self.cpus.interrupt(&mut self.clock, 0, Cause::Alarm(context));
        }
    }

    /// A task has slept for as long as it wanted to at most.
    pub fn wake_sleeper(&mut self, context: ContextId) {
        if self.tasks.wait(context) != Wait::Nothing {
            self.wake_from(context);
        }
    }

    /// Wakes a task that waits for something; what it waited for has come.
    pub fn wake_from(&mut self, context: ContextId) {
        self.tasks.set_wait(context, Wait::Nothing);
        self.wake(context);
    }

    /// Wakes what the interrupt that has just run the queue held back.
    pub fn deliver_held_wakes(&mut self) {
        for n in 0..self.held_wakes.len() {
            self.wake(self.held_wakes[n]);
        }
        self.held_wakes.clear();
    }

    /// When the run ends at the latest, as soon as that is known.
    fn end(&self) -> Option<Instant> {
        self.clock.until().filter(|_| self.preparation.is_done())
    }

    /// When the block layer's timer comes next.
    fn next_timer(&self) -> Option<Instant> {
        self.storage.queue().next_timer().filter(|_| !self.timer_raised)
    }

    #[inline]
    fn is_over(&self) -> bool {
        let is_cut_off =
            self.endless.is_some() || self.preparation.has_failed() || self.calls_left == Some(0);
        is_cut_off || self.storage.queue().is_drained() && self.are_jobs_done()
    }

    fn are_jobs_done(&self) -> bool {
        // A job in the background that has not started when the others end never does.
        let no_more_start = self.only_background_is_left();
        let is_done = |job: &JobState| job.ended.is_some() || (no_more_start && job.main.is_none());
        self.jobs.iter().all(is_done)
    }

    /// Nothing will ever happen again although a job is not done: a bug of a program or of us,
    /// unless the run is cut off anyway.
    fn stuck(&mut self) -> bool {
        if let Some(until) = self.end() {
            self.clock.advance(until);
            return false;
        }
        let sleepers: Vec<String> = self
            .tasks
            .numbers()
            .filter(|task| self.tasks.job(*task).is_some())
            .map(|task| (task, self.cpus.state(task), self.tasks.wait(task)))
            .filter(|(_, state, _)| *state != State::Gone)
            .map(|(task, state, wait)| format!("task {}: {state:?}, {wait:?}", task.0))
            .collect();
        panic!("nothing will ever happen again at {}; {}", self.clock.now(), sleepers.join("; "));
    }

    fn handle_item(&mut self, item: AgendaItem) {
        match item {
            AgendaItem::Start(job) => self.start_job(job),
            AgendaItem::Stop(job) => self.stop_job(job),
            AgendaItem::Move(job, number) => self.move_job(job, number),
            AgendaItem::Charged(core) => self.cpus.charged(core),
            AgendaItem::Tick(core) => self.cpus.tick_comes(&mut self.clock, core),
            AgendaItem::Unmasked(core) => self.cpus.unmasked(&mut self.clock, core),
            AgendaItem::Alarm(context) => self.alarm(context),
            AgendaItem::Fires(context) => self.alarm_fires(context),
            AgendaItem::Kernel(timer) => self.kernel_timer_comes(timer),
            AgendaItem::KernelFires(timer) => {
                self.cpus.interrupt(&mut self.clock, 0, Cause::Kernel(timer));
            }
            AgendaItem::QueueFires => self.cpus.interrupt(&mut self.clock, 0, Cause::Timer),
            AgendaItem::Worker => self.notify(self.storage.worker()),
            AgendaItem::Moved(core, command) => {
                self.disk.accept(self.clock.now(), command);
                self.cpus.data_moved(&mut self.clock, core);
            }
        }
    }
}

/// The earlier one of two times, if there is any.
fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
