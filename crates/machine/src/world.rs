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
//! (spec 9.5). On blk-mq tasks are woken as their bios are delivered, and asynchronous runs of the
//! queue are done by a worker, which is a task on a core like any other.

use crate::clock::{AgendaItem, Clock};
use crate::cores::{Cause, Core, Lock, RunQueue, State};
use crate::file::DirectRules;
use crate::filesystem::{FileSystem, TaskOfFileSystem};
use crate::life::{ExecContext, JobState, TaskSpec};
use crate::observe::{Mark, TaskInfo};
use crate::operations::Operation;
use crate::preparation::Preparation;
use crate::prices::Prices;
use crate::ring::Ring;
use crate::simulation::{Setup, SetupError, check_jobs};
use crate::task::Body;
use base::{Duration, Instant, Rng};
use block::scheduler::{Cgroup, IoContext};
use block::{
    Bio, CgroupId, ContextId, Event, EventLog, RequestQueue, Segments, Shape, Step, Tag, Work,
};
use cache::PageCache;
use cache::memory::Memory;
use device::Device;
use std::collections::BTreeMap;
use std::collections::VecDeque;

/// Seconds for which a machine has been up when jobs begin: so it is in the world linux, later
/// where a file system is mounted before.
const UPTIME: u64 = 4;
const UPTIME_MOUNTED: u64 = 12;
/// The state of a machine.
pub(crate) struct World {
    pub clock: Clock,
    pub seed: u64,
    /// How much longer switches to tasks take.
    pub switches: Rng,
    pub queue: RequestQueue,
    pub shape: Shape,
    pub rules: DirectRules,
    pub cache: PageCache,
    pub prices: Prices,
    pub device: Box<dyn Device>,
    pub cores: Vec<Core>,
    pub lock: Lock,
    pub time_slice: Duration,
    /// Contexts by number: first the interrupts of each core, then tasks.
    pub contexts: Vec<ExecContext>,
    /// Contexts that have something to do.
    pub ready: VecDeque<ContextId>,
    pub run_queue: RunQueue,
    /// What the task that has had least of the core has had.
    pub least_served: Duration,
    pub rings: Vec<Ring>,
    pub cgroups: Vec<Cgroup>,
    /// Schedulers see control groups.
    pub blkio: bool,
    /// What groups weigh that nobody gave a weight, if the scheduler does not know.
    pub default_weight: Option<u32>,
    /// Jobs, and behind them their preparation.
    pub jobs: Vec<JobState>,
    pub preparation: Preparation,
    /// How long a program takes to start.
    pub start_delay: Duration,
    /// By how much sleeps are longer than asked.
    pub timer_slack: Duration,
    /// Tasks that were created but whose programs have not been taken over.
    pub spawned: Vec<(ContextId, Body)>,
    pub task_infos: Vec<TaskInfo>,
    pub mark: Mark,
    /// The block layer's timer has come and waits for its interrupt.
    pub timer_raised: bool,
    pub io_contexts: Vec<IoContext>,
    worker: ContextId,
    pub completed: Vec<Tag>,
    /// On which core a command was issued, by tag.
    pub issued_on: Vec<u16>,
    /// Tasks to wake when the interrupt that runs has run the queue (single queue).
    held_wakes: Vec<ContextId>,
    /// The kernel's tasks that write what is dirty, by group, once it had anything.
    pub flushers: BTreeMap<CgroupId, ContextId>,
    /// The file system on the disk, if it carries one.
    pub fs: Option<FileSystem>,
    /// Tasks of the file system that do not run yet.
    pub fs_tasks: Vec<(ContextId, TaskOfFileSystem)>,
    /// The job that makes system calls without end.
    pub endless: Option<usize>,
}

/// What a sleeping task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: it does not sleep, or sleeps in the block layer for a request.
    Nothing,
    /// An operation of its own.
    Operation(u64),
    /// So many finished operations of an asynchronous queue.
    Ring { ring: usize, least: usize },
    /// A point in time.
    Alarm,
    /// Another task's word.
    Notification,
    /// Another task's end.
    Exit(ContextId),
    /// A page of the disk or of a file.
    Page(u64),
    /// Something of the journal.
    Journal,
    /// Nobody else is changing a directory.
    Directory,
    /// Nobody else is changing where blocks of a file are.
    Map,
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
    /// A machine with its jobs scheduled.
    pub fn new(mut setup: Setup) -> Result<World, SetupError> {
        check_jobs(&setup.jobs, &setup.host)?;
        let jobs = std::mem::take(&mut setup.jobs);
        let lines = std::mem::take(&mut setup.preparation);
        let cgroups = std::mem::take(&mut setup.cgroups);
        let has_version_2 = setup.cgroup_writeback;
        let journal_cgroup = setup.mount.as_ref().map(|it| it.journal_cgroup.clone());
        let mut world = World::idle(setup)?;
        world.define_root(has_version_2);
        for group in &cgroups {
            world.weigh_cgroup(group);
        }
        world.worker = world.spawn(TaskSpec::kernel_task("kworker/kblockd"));
        // It belongs to the high-priority workers (kworker/0:0H). // observed on 6.12
        world.context(world.worker).is_urgent = true;
        world.fs_tasks = world.spawn_file_system_tasks();
        world.move_file_system_tasks(journal_cgroup.as_deref());
        world.prepare(jobs, lines);
        Ok(world)
    }

    /// A machine on which nothing happens.
    fn idle(setup: Setup) -> Result<World, SetupError> {
        let shape = setup.attach.shape;
        let scheduler = setup.attach.scheduler.as_ref().map_or("none", |it| it.about().name);
        let prices = Prices::new(&setup.host, shape, scheduler);
        let cores = setup.host.cores;
        let facts = setup.device.facts().clone();
        let run_queue = RunQueue::of(&setup);
        let tick = Duration::from_nanos(1_000_000_000 / u64::from(setup.kernel.hz.get()));
        let clock = Clock::new(setup.host.clock_step, tick, setup.until);
        let mut cache = PageCache::new(
            setup.kernel.version,
            setup.kernel.hz,
            facts.segment,
            Memory::new(setup.memory),
            if setup.mount.is_some() { UPTIME_MOUNTED } else { UPTIME },
        );
        if let Some(mount) = &setup.mount {
            cache.note_mount(mount.in_memory(facts.capacity.0));
        }
        cache.groups.set_on(setup.cgroup_writeback && setup.mount.is_some());
        let fs = setup.mount.clone().map(|it| FileSystem::new(it, setup.kernel, &facts));
        let log = match (setup.events, setup.messages) {
            (false, _) => EventLog::off(),
            (true, false) => EventLog::on(),
            (true, true) => EventLog::with_messages(),
        };
        let mut queue = RequestQueue::new(setup.kernel, facts.clone(), setup.attach, cores, log);
        if !setup.host.costs.message.is_zero() {
            queue.log().count_messages();
        }
        queue.set_paranoid(setup.paranoid);
        if let Some(mount) = &setup.mount {
            queue.note_waits(mount.waits_for_tags(facts.capacity.0));
        }
        if setup.record_inputs {
            queue.record_inputs();
        }
        for (name, value) in &setup.settings {
            if cache.writeback.settings.set(name, *value) {
                continue;
            }
            let refused = |why| SetupError::setting(name, *value, why);
            queue.set(Instant::ZERO, name, *value).map_err(refused)?;
        }
        Ok(World {
            clock,
            seed: setup.seed,
            switches: Rng::stream(setup.seed, "host/switch"),
            queue,
            shape,
            rules: DirectRules::of(setup.kernel),
            cache,
            prices,
            device: setup.device,
            cores: (0..cores).map(|_| Core::default()).collect(),
            lock: Lock::default(),
            time_slice: setup.host.time_slice,
            contexts: (0..cores).map(ExecContext::interrupts).collect(),
            ready: VecDeque::new(),
            run_queue,
            least_served: Duration::ZERO,
            rings: Vec::new(),
            cgroups: vec![Cgroup { path: "/".to_string(), ..Cgroup::default() }],
            blkio: setup.blkio,
            default_weight: None,
            jobs: Vec::new(),
            preparation: Preparation::default(),
            start_delay: setup.host.start_delay,
            timer_slack: setup.host.timer_slack,
            spawned: Vec::new(),
            task_infos: Vec::new(),
            mark: Mark::default(),
            timer_raised: false,
            worker: ContextId(0),
            io_contexts: Vec::new(),
            completed: Vec::new(),
            issued_on: Vec::new(),
            held_wakes: Vec::new(),
            flushers: BTreeMap::new(),
            fs,
            fs_tasks: Vec::new(),
            endless: None,
        })
    }

    /// The kernel worker that runs the queue.
    pub fn worker(&self) -> ContextId {
        self.worker
    }

    /// The state of a context.
    pub fn context(&mut self, context: ContextId) -> &mut ExecContext {
        &mut self.contexts[context.0 as usize]
    }

    /// The next task whose program has to go on; `None` when everybody waits for something.
    pub fn next_to_poll(&mut self) -> Option<ContextId> {
        loop {
            while let Some(context) = self.ready.pop_front() {
                if self.advance(context) {
                    return Some(context);
                }
            }
            if !self.pick_next() {
                return None;
            }
        }
    }

    /// Lets time pass until something happens, and makes it happen; false when the run is over.
    pub fn turn(&mut self) -> bool {
        if self.is_over() {
            return false;
        }
        let timer = self.queue.next_timer().filter(|_| !self.timer_raised);
        let sources = [self.device.next_event(), timer, self.clock.next_at()];
        let Some(next) = sources.into_iter().flatten().min() else { return self.stuck() };
        if let Some(until) = self.end().filter(|until| next > *until) {
            self.clock.advance(until);
            return false;
        }
        if next > self.clock.now() {
            self.rest();
            self.clock.advance(next);
        }
        if sources[0].is_some_and(|at| at <= self.clock.now()) && !self.has_looked() {
            self.complete_commands();
        }
        if timer.is_some_and(|at| at <= self.clock.now()) {
            self.timer_raised = true;
            self.interrupt(0, Cause::Timer);
        }
        while let Some(item) = self.clock.pop_due() {
            self.handle_item(item);
        }
        true
    }

    /// Does what a context has to do in the block layer, as far as it can without taking time.
    pub fn drive(&mut self, context: ContextId) -> Progress {
        if self.is_suspended(context) {
            return Progress::Busy;
        }
        loop {
            if !self.prices.free {
                let Some(work) = self.queue.next_work(context) else { return Progress::Idle };
                if !self.pay(context, work) {
                    return Progress::Busy;
                }
            }
            let step = self.queue.step(self.clock.now(), context);
            self.take_outputs(context);
            match step {
                Step::Idle => return Progress::Idle,
                Step::Asleep => return Progress::Asleep,
                Step::Did(_) if self.prices.free => {}
                Step::Did(work) => {
                    let goes_on = self.unlock(context);
                    if work == Work::Allocate {
                        let cost = self.allocation_cost(context);
                        if !cost.is_zero() {
                            self.owe(context, cost);
                            return Progress::Busy;
                        }
                    }
                    self.owe_messages(context);
                    if !goes_on || !self.context(context).debt.is_zero() {
                        return Progress::Busy;
                    }
                }
            }
        }
    }

    /// Charges for what the scheduler has written into the trace.
    fn owe_messages(&mut self, context: ContextId) {
        let messages = self.queue.log().take_written();
        let cost = self.prices.costs.message * messages;
        if !cost.is_zero() {
            self.owe(context, cost);
        }
    }

    /// Gives a bio of a task to the block layer; to be driven afterwards.
    pub fn submit(&mut self, bio: Bio) {
        self.queue.submit(self.clock.now(), bio);
    }

    /// The same for one whose data lie in these pieces of memory.
    pub fn submit_scattered(&mut self, bio: Bio, memory: Segments) {
        self.queue.submit_scattered(self.clock.now(), bio, memory);
    }

    /// Writes an event of a task.
    pub fn log(&mut self, event: impl FnOnce() -> Event) {
        self.queue.log().push(event);
    }

    /// Counts a system call; false when the program is endless and must not go on.
    pub fn count_call(&mut self, context: ContextId) -> bool {
        if !self.clock.count_call() {
            self.endless = self.context(context).job.or(Some(0));
        }
        self.endless.is_none()
    }

    /// All bios of an operation have been submitted.
    pub fn all_submitted(&mut self, owner: ContextId, number: u64) {
        self.bio_done(owner, number, owner);
    }

    /// Wakes a task that waits for something; what it waited for has come.
    pub fn wake_from(&mut self, context: ContextId) {
        self.context(context).wait = Wait::Nothing;
        self.wake(context);
    }

    /// Wakes what the interrupt that has just run the queue held back.
    pub fn deliver_held_wakes(&mut self) {
        for n in 0..self.held_wakes.len() {
            self.wake(self.held_wakes[n]);
        }
        self.held_wakes.clear();
    }

    /// Writes that an operation did not come to its end. What the kernel's own tasks have under way
    /// is no call that anybody entered.
    pub fn log_unfinished(&mut self, context: ContextId, operation: &Operation) {
        if self.context(context).job.is_none() {
            return;
        }
        let action = block::Action::SyscallUnfinished {
            call: operation.call,
            entered: operation.entered,
            submitted: operation.submitted,
        };
        self.log_call(context, operation, action);
    }

    /// Writes an event about an operation.
    pub fn log_call(&mut self, context: ContextId, operation: &Operation, action: block::Action) {
        if !self.queue.log().is_on() || self.context(context).is_preparing {
            return;
        }
        let (at, cpu) = (self.clock.now(), self.context(context).core);
        let (sector, sectors, token) = (operation.sector, operation.sectors, operation.number);
        let op = match operation.call {
            block::Syscall::Read | block::Syscall::AsyncRead => block::Op::Read,
            block::Syscall::Discard => block::Op::Discard,
            _ => block::Op::Write,
        };
        self.log(|| Event { at, context, cpu, op, sector, sectors, token, ..Event::note(action) });
    }

    /// When the run ends at the latest, as soon as that is known.
    fn end(&self) -> Option<Instant> {
        self.clock.until().filter(|_| self.preparation.is_done())
    }

    fn is_over(&self) -> bool {
        // A job in the background that has not started when the others end never does.
        let no_more_start = self.only_background_is_left();
        let is_done = |job: &JobState| job.ended.is_some() || (no_more_start && job.main.is_none());
        let done = self.jobs.iter().all(is_done);
        let must_end = self.endless.is_some() || self.preparation.has_failed();
        must_end || (done && self.queue.is_drained())
    }

    /// Nothing will ever happen again although a job is not done: a bug of a program or of us,
    /// unless the run is cut off anyway.
    fn stuck(&mut self) -> bool {
        if let Some(until) = self.end() {
            self.clock.advance(until);
            return false;
        }
        let sleepers: Vec<String> = self
            .contexts
            .iter()
            .enumerate()
            .filter(|(_, exec)| exec.job.is_some() && exec.state != State::Gone)
            .map(|(number, exec)| format!("task {number}: {:?}, {:?}", exec.state, exec.wait))
            .collect();
        panic!("nothing will ever happen again at {}; {}", self.clock.now(), sleepers.join("; "));
    }

    fn handle_item(&mut self, item: AgendaItem) {
        match item {
            AgendaItem::Start(job) => self.start_job(job),
            AgendaItem::Stop(job) => self.stop_job(job),
            AgendaItem::Move(job, number) => self.move_job(job, number),
            AgendaItem::Charged(core) => self.charged(core),
            AgendaItem::Tick(core) => self.tick_comes(core),
            AgendaItem::Unmasked(core) => self.unmasked(core),
            AgendaItem::Alarm(context) => self.alarm(context),
            AgendaItem::Fires(context) => self.alarm_fires(context),
            AgendaItem::Worker => self.notify(self.worker),
            AgendaItem::Moved(core, command) => {
                self.cores[core].moves_data = false;
                self.device.accept(self.clock.now(), command);
                self.unmasked(core);
            }
        }
    }

    /// A task is given a word: it wakes from waiting for one, or does not fall asleep next time.
    pub fn notify(&mut self, context: ContextId) {
        if self.permit_was_awaited(context) {
            self.wake(context);
        }
    }

    /// The same on behalf of a context that still has something to do.
    pub fn notify_by(&mut self, by: ContextId, context: ContextId) {
        if self.permit_was_awaited(context) {
            self.wake_by(by, context);
        }
    }

    /// Gives a task a word; whether it slept until one came.
    fn permit_was_awaited(&mut self, context: ContextId) -> bool {
        let exec = self.context(context);
        exec.has_permit = true;
        let has_waited = exec.wait == Wait::Notification;
        if has_waited {
            exec.wait = Wait::Nothing;
        }
        has_waited
    }

    /// Wakes a task on behalf of a context that still has something to do.
    pub fn wake_by(&mut self, by: ContextId, context: ContextId) {
        match self.shape {
            Shape::Single if self.is_interrupt(by) => self.held_wakes.push(context),
            _ => self.wake(context),
        }
    }
}
