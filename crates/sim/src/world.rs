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

use crate::cores::{Cause, Core, CoreSet, Lock, Paid, Prices, State};
use crate::machine::{Job, Setup, SetupError};
use crate::observe::{Mark, Who};
use crate::operations::{Operation, Operations};
use crate::ring::Ring;
use crate::task::Body;
use base::{Agenda, Duration, Instant, Ticket};
use block::scheduler::{Cgroup, IoContext};
use block::{
    Bio, CgroupId, ContextId, Event, EventLog, IoContextId, Ioprio, Output, RequestQueue, Shape,
    Step, Tag, Work,
};
use device::Device;
use std::collections::VecDeque;

/// System calls that may be made while time stands still; beyond, a program is taken to be endless.
const MOST_CALLS_AT_AN_INSTANT: u32 = 10_000_000;

/// The state of a machine.
pub(crate) struct World {
    pub now: Instant,
    pub seed: u64,
    pub queue: RequestQueue,
    pub shape: Shape,
    pub rules: crate::file::DirectRules,
    pub prices: Prices,
    pub device: Box<dyn Device>,
    pub agenda: Agenda<Happening>,
    pub cores: Vec<Core>,
    pub lock: Lock,
    pub time_slice: Duration,
    /// Contexts by number: first the interrupts of each core, then tasks.
    pub strands: Vec<Strand>,
    /// Contexts that have something to do.
    pub ready: VecDeque<ContextId>,
    /// Tasks that wait for a core.
    pub run_queue: VecDeque<ContextId>,
    pub rings: Vec<Ring>,
    pub cgroups: Vec<Cgroup>,
    pub jobs: Vec<JobState>,
    /// Tasks that were created but whose programs have not been taken over.
    pub newborn: Vec<(ContextId, Body)>,
    pub whos: Vec<Who>,
    pub mark: Mark,
    /// The block layer's timer has come and waits for its interrupt.
    pub timer_raised: bool,
    until: Option<Instant>,
    worker: ContextId,
    io_contexts: Vec<IoContext>,
    completed: Vec<Tag>,
    /// On which core a command was issued, by tag.
    issued_on: Vec<u16>,
    /// Tasks to wake when the interrupt that runs has run the queue (single queue).
    held_wakes: Vec<ContextId>,
    calls_at_this_instant: u32,
    /// The job that makes system calls without end.
    pub endless: Option<usize>,
}

/// What is scheduled.
pub(crate) enum Happening {
    /// A job starts.
    Start(usize),
    /// A job has run for as long as it may.
    Stop(usize),
    /// A core is done with what it was busy with.
    Charged(usize),
    /// A sleeping task's time is over.
    Alarm(ContextId),
    /// A kernel worker is to run the queue.
    Worker,
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
    Word,
    /// Another task's end.
    Exit(ContextId),
}

/// A context: a task, or the interrupts of a core.
pub(crate) struct Strand {
    pub core: u16,
    pub state: State,
    pub wait: Wait,
    /// Computing that is not done.
    pub debt: Duration,
    /// How much of the next piece of block-layer work is paid for.
    pub paid: Paid,
    pub spins: bool,
    /// It is in the list of ready contexts.
    pub is_ready: bool,
    pub affinity: Option<CoreSet>,
    pub alarm: Option<Ticket>,
    /// A word that came before it was waited for.
    pub has_word: bool,
    /// It exits before its program goes on.
    pub is_killed: bool,
    pub job: Option<usize>,
    pub io_context: IoContextId,
    pub cgroup: CgroupId,
    pub nice: i8,
    pub operations: Operations,
    /// The task whose operations it carries out.
    pub acts_for: Option<ContextId>,
    /// A bio of this token was not accepted because it would have had to wait.
    pub refused: Option<u64>,
    pub status: Option<i32>,
}

/// What has become of a job.
pub(crate) struct JobState {
    pub job: Option<Job>,
    pub name: String,
    pub main: Option<ContextId>,
    pub started: Option<Instant>,
    pub ended: Option<(Instant, i32)>,
    pub was_stopped: bool,
    pub messages: Vec<String>,
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

/// What a new task is given.
pub(crate) struct Birth {
    pub name: String,
    pub job: Option<usize>,
    /// An io_context to share; otherwise it gets its own.
    pub io_context: Option<IoContextId>,
    pub cgroup: CgroupId,
    /// The explicit priority of an io_context of its own.
    pub ioprio: Ioprio,
    pub nice: i8,
    pub affinity: Option<CoreSet>,
    pub acts_for: Option<ContextId>,
}

impl World {
    pub fn new(setup: Setup) -> Result<World, SetupError> {
        let Setup { kernel, attach, device, host, mut jobs, .. } = setup;
        let shape = attach.shape;
        let scheduler = attach.scheduler.as_ref().map_or("none", |it| it.about().name);
        let prices = Prices::new(&host, shape, scheduler);
        let log = if !setup.events {
            EventLog::off()
        } else if setup.messages {
            EventLog::with_messages()
        } else {
            EventLog::on()
        };
        let facts = device.facts().clone();
        let mut queue = RequestQueue::new(kernel, facts, attach, host.cores, log);
        queue.set_paranoid(setup.paranoid);
        if setup.record_inputs {
            queue.record_inputs();
        }
        for (name, value) in &setup.settings {
            let unset = |why| SetupError::setting(name, *value, why);
            queue.set(Instant::ZERO, name, *value).map_err(unset)?;
        }
        crate::machine::check_jobs(&jobs, &host)?;
        let mut world = World {
            now: Instant::ZERO,
            seed: setup.seed,
            queue,
            shape,
            rules: crate::file::DirectRules::of(kernel),
            prices,
            device,
            agenda: Agenda::new(),
            cores: (0..host.cores).map(|_| Core::default()).collect(),
            lock: Lock::default(),
            time_slice: host.time_slice,
            strands: (0..host.cores).map(Strand::interrupts).collect(),
            ready: VecDeque::new(),
            run_queue: VecDeque::new(),
            rings: Vec::new(),
            cgroups: vec![Cgroup { path: "/".to_string(), ..Cgroup::default() }],
            jobs: Vec::new(),
            newborn: Vec::new(),
            whos: Vec::new(),
            mark: Mark::default(),
            timer_raised: false,
            until: setup.until,
            worker: ContextId(0),
            io_contexts: Vec::new(),
            completed: Vec::new(),
            issued_on: Vec::new(),
            held_wakes: Vec::new(),
            calls_at_this_instant: 0,
            endless: None,
        };
        for (path, weight) in &setup.cgroups {
            world.define_cgroup(path, *weight);
        }
        world.worker = world.bear(Birth::kernel_task("kworker/kblockd"));
        for (number, job) in jobs.drain(..).enumerate() {
            world.agenda.schedule(job.start, Happening::Start(number));
            world.jobs.push(JobState::new(job));
        }
        Ok(world)
    }

    /// The kernel worker that runs the queue.
    pub fn worker(&self) -> ContextId {
        self.worker
    }

    /// The state of a context.
    pub fn strand(&mut self, context: ContextId) -> &mut Strand {
        &mut self.strands[context.0 as usize]
    }

    /// The next task whose program has to go on; `None` when everybody waits for something.
    pub fn next_to_poll(&mut self) -> Option<ContextId> {
        while let Some(context) = self.ready.pop_front() {
            if self.advance(context) {
                return Some(context);
            }
        }
        None
    }

    /// Lets time pass until something happens, and makes it happen; false when the run is over.
    pub fn turn(&mut self) -> bool {
        if self.is_over() {
            return false;
        }
        let timer = self.queue.next_timer().filter(|_| !self.timer_raised);
        let sources = [self.device.next_event(), timer, self.agenda.next_at()];
        let Some(next) = sources.into_iter().flatten().min() else { return self.stuck() };
        if self.until.is_some_and(|until| next > until) {
            self.now = self.until.unwrap_or(next);
            return false;
        }
        if next > self.now {
            self.now = next;
            self.calls_at_this_instant = 0;
        }
        if sources[0].is_some_and(|at| at <= self.now) {
            self.complete_commands();
        }
        if timer.is_some_and(|at| at <= self.now) {
            self.timer_raised = true;
            self.interrupt(0, Cause::Timer);
        }
        while let Some((_, happening)) = self.agenda.pop_due(self.now) {
            self.happen(happening);
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
            let step = self.queue.step(self.now, context);
            self.take_outputs(context);
            match step {
                Step::Idle => return Progress::Idle,
                Step::Asleep => return Progress::Asleep,
                Step::Did(_) if self.prices.free => {}
                Step::Did(work) => {
                    let goes_on = self.unlock(context);
                    if work == Work::Allocate && !self.prices.costs.request.is_zero() {
                        self.owe(context, self.prices.costs.request);
                        return Progress::Busy;
                    }
                    if !goes_on {
                        return Progress::Busy;
                    }
                }
            }
        }
    }

    /// Gives a bio of a task to the block layer; to be driven afterwards.
    pub fn submit(&mut self, bio: Bio) {
        self.queue.submit(self.now, bio);
    }

    /// Writes an event of a task.
    pub fn log(&mut self, event: impl FnOnce() -> Event) {
        self.queue.log().push(event);
    }

    /// Counts a system call; false when the program is endless and must not go on.
    pub fn count_call(&mut self, context: ContextId) -> bool {
        self.calls_at_this_instant += 1;
        if self.calls_at_this_instant > MOST_CALLS_AT_AN_INSTANT {
            self.endless = self.strand(context).job.or(Some(0));
        }
        self.endless.is_none()
    }

    /// All bios of an operation have been submitted.
    pub fn all_submitted(&mut self, owner: ContextId, number: u64) {
        self.bio_done(owner, number, owner);
    }

    /// Creates a task; its program is yet to come.
    pub fn bear(&mut self, birth: Birth) -> ContextId {
        let context = ContextId(self.strands.len() as u32);
        let io_context = birth.io_context.unwrap_or(IoContextId(self.io_contexts.len() as u32));
        if birth.io_context.is_none() {
            self.io_contexts.push(IoContext {
                ioprio: birth.ioprio,
                nice: birth.nice,
                ..IoContext::default()
            });
        }
        self.whos.push(Who {
            context,
            name: birth.name.clone(),
            job: birth.job,
            io_context,
            cgroup: birth.cgroup,
        });
        let core = (context.0 as usize % self.cores.len()) as u16;
        self.strands.push(Strand::task(core, io_context, birth));
        self.io_contexts[io_context.0 as usize].tasks += 1;
        self.define_io_context(context);
        if self.strand(context).job.is_some() {
            self.wake(context);
        } else {
            // The kernel's own tasks sleep until there is something for them to do.
            self.strand(context).wait = Wait::Word;
        }
        context
    }

    /// A task exits.
    pub fn exit(&mut self, context: ContextId, status: i32) {
        for operation in self.strand(context).operations.drain() {
            self.log_unfinished(context, &operation);
        }
        let strand = self.strand(context);
        strand.status = Some(status);
        let (io_context, job, alarm) = (strand.io_context, strand.job, strand.alarm.take());
        if let Some(alarm) = alarm {
            self.agenda.cancel(alarm);
        }
        self.leave(context);
        self.io_contexts[io_context.0 as usize].tasks -= 1;
        self.define_io_context(context);
        for other in 0..self.strands.len() {
            if self.strands[other].wait == Wait::Exit(context) {
                self.wake_from(ContextId(other as u32));
            }
        }
        if let Some(job) = job.filter(|job| self.jobs[*job].main == Some(context)) {
            self.jobs[job].ended = Some((self.now, status));
            self.mark.exit(self.now, job, status);
            self.kill_job(job);
        }
    }

    /// The io_context of a task.
    pub fn io_context(&mut self, context: ContextId) -> &mut IoContext {
        let id = self.strands[context.0 as usize].io_context;
        &mut self.io_contexts[id.0 as usize]
    }

    /// Tells the block layer what the io_context of a task is like now.
    pub fn define_io_context(&mut self, context: ContextId) {
        let strand = &self.strands[context.0 as usize];
        let value = &mut self.io_contexts[strand.io_context.0 as usize];
        value.nice = strand.nice;
        self.queue.define_io_context(strand.io_context, *value);
    }

    /// The control group of a path, which is made, with those above it, if need be.
    pub fn define_cgroup(&mut self, path: &str, weight: Option<u32>) -> CgroupId {
        let names = path.split('/').filter(|name| !name.is_empty());
        let mut group = CgroupId::ROOT;
        let mut path = String::new();
        for name in names {
            path = format!("{path}/{name}");
            group = self.child_cgroup(group, &path);
        }
        let value = &mut self.cgroups[group.0 as usize];
        if weight.is_some() && weight != value.weight {
            value.weight = weight;
            self.queue.define_cgroup(group, value.clone());
        }
        group
    }

    fn child_cgroup(&mut self, parent: CgroupId, path: &str) -> CgroupId {
        if let Some(known) = self.cgroups.iter().position(|group| group.path == path) {
            return CgroupId(known as u32);
        }
        let group = CgroupId(self.cgroups.len() as u32);
        let value = Cgroup { path: path.to_string(), parent: Some(parent), ..Cgroup::default() };
        self.queue.define_cgroup(group, value.clone());
        self.cgroups.push(value);
        group
    }

    /// Wakes a task that waits for something; what it waited for has come.
    pub fn wake_from(&mut self, context: ContextId) {
        self.strand(context).wait = Wait::Nothing;
        self.wake(context);
    }

    /// Wakes what the interrupt that has just run the queue held back.
    pub fn deliver_held_wakes(&mut self) {
        for n in 0..self.held_wakes.len() {
            self.wake(self.held_wakes[n]);
        }
        self.held_wakes.clear();
    }

    /// Ends what is still under way when the run ends.
    pub fn note_unfinished(&mut self) {
        for number in 0..self.strands.len() {
            let context = ContextId(number as u32);
            for operation in self.strands[number].operations.drain() {
                self.log_unfinished(context, &operation);
            }
        }
    }

    /// Writes that an operation did not come to its end.
    pub fn log_unfinished(&mut self, context: ContextId, operation: &Operation) {
        let action = block::Action::SyscallUnfinished {
            call: operation.call,
            entered: operation.entered,
            submitted: operation.submitted,
        };
        self.log_call(context, operation, action);
    }

    /// Writes an event about an operation.
    pub fn log_call(&mut self, context: ContextId, operation: &Operation, action: block::Action) {
        let (at, cpu) = (self.now, self.strand(context).core);
        let (sector, sectors, token) = (operation.sector, operation.sectors, operation.number);
        let op = match operation.call {
            block::Syscall::Read | block::Syscall::AsyncRead => block::Op::Read,
            block::Syscall::Discard => block::Op::Discard,
            _ => block::Op::Write,
        };
        self.log(|| Event { at, context, cpu, op, sector, sectors, token, ..Event::note(action) });
    }

    fn is_over(&self) -> bool {
        let done = self.jobs.iter().all(|job| job.ended.is_some());
        self.endless.is_some() || (done && self.queue.allocated() == 0)
    }

    /// Nothing will ever happen again although a job is not done: a bug of a program or of us.
    fn stuck(&self) -> bool {
        let sleepers: Vec<String> = self
            .strands
            .iter()
            .enumerate()
            .filter(|(_, strand)| strand.job.is_some() && strand.state != State::Gone)
            .map(|(number, strand)| format!("task {number}: {:?}, {:?}", strand.state, strand.wait))
            .collect();
        panic!("nothing will ever happen again at {}; {}", self.now, sleepers.join("; "));
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Start(job) => self.start_job(job),
            Happening::Stop(job) => {
                self.jobs[job].was_stopped = self.jobs[job].ended.is_none();
                self.kill_job(job);
            }
            Happening::Charged(core) => self.charged(core),
            Happening::Alarm(context) => {
                self.strand(context).alarm = None;
                if !matches!(self.strand(context).wait, Wait::Nothing) {
                    self.wake_from(context);
                }
            }
            Happening::Worker => self.tell(self.worker),
        }
    }

    /// A task is given a word: it wakes from waiting for one, or does not fall asleep next time.
    pub fn tell(&mut self, context: ContextId) {
        self.strand(context).has_word = true;
        if self.strand(context).wait == Wait::Word {
            self.wake_from(context);
        }
    }

    fn start_job(&mut self, number: usize) {
        let job = self.jobs[number].job.take().expect("a job starts once");
        if let Some(duration) = job.duration {
            self.agenda.schedule(self.now + duration, Happening::Stop(number));
        }
        let cgroup = self.define_cgroup(&job.cgroup, None);
        let main = self.bear(Birth {
            name: job.name.clone(),
            job: Some(number),
            io_context: None,
            cgroup,
            ioprio: job.ioprio,
            nice: job.nice,
            affinity: job.affinity,
            acts_for: None,
        });
        self.jobs[number].main = Some(main);
        self.jobs[number].started = Some(self.now);
        self.newborn.push((main, Body::Program(job.program)));
    }

    /// All tasks of a job exit as soon as they can.
    fn kill_job(&mut self, job: usize) {
        for number in 0..self.strands.len() {
            let strand = &mut self.strands[number];
            if strand.job != Some(job) || strand.state == State::Gone {
                continue;
            }
            strand.is_killed = true;
            let interruptible =
                matches!(strand.wait, Wait::Ring { .. } | Wait::Alarm | Wait::Word | Wait::Exit(_));
            if interruptible {
                self.wake_from(ContextId(number as u32));
            }
        }
    }

    fn complete_commands(&mut self) {
        let mut completed = std::mem::take(&mut self.completed);
        self.device.advance(self.now, &mut completed);
        for tag in completed.drain(..) {
            self.mark.completion(self.now, tag.0);
            // One interrupt for each hardware queue: with several, commands complete where they
            // were issued; a single one is served by the first core.
            let several = self.queue.limits().facts.hardware_queues > 1;
            let core = if several { self.issued_on[tag.0 as usize] } else { 0 };
            self.interrupt(usize::from(core), Cause::Completion(tag));
        }
        self.completed = completed;
    }

    fn take_outputs(&mut self, by: ContextId) {
        while let Some(output) = self.queue.pop_output() {
            match output {
                Output::Issue(command) => {
                    let tag = command.tag.0 as usize;
                    if tag >= self.issued_on.len() {
                        self.issued_on.resize(tag + 1, 0);
                    }
                    self.issued_on[tag] = self.strand(by).core;
                    self.mark.command(self.now, &command);
                    self.device.accept(self.now, command);
                }
                Output::BioDone { token, context } => {
                    let owner = self.strand(context).acts_for.unwrap_or(context);
                    self.bio_done(owner, token, by);
                }
                Output::WouldBlock { token, context } => {
                    self.strand(context).refused = Some(token);
                }
                Output::Wake(context) => self.wake_by(by, context),
                Output::RunWorker { after } if after.is_zero() => self.tell(self.worker),
                Output::RunWorker { after } => {
                    self.agenda.schedule(self.now + after, Happening::Worker);
                }
            }
        }
    }

    /// A bio of an operation is done. (A task that was killed has no operations any more.)
    fn bio_done(&mut self, owner: ContextId, token: u64, by: ContextId) {
        let now = self.now;
        let strand = &mut self.strands[owner.0 as usize];
        let Some(operation) = strand.operations.find(token) else { return };
        operation.bios_left -= 1;
        if operation.bios_left > 0 {
            return;
        }
        let wait = strand.wait;
        if let Some((ring, _)) = operation.ring {
            let done = &mut self.rings[ring].done;
            done.push_back((token, now));
            if matches!(wait, Wait::Ring { ring: waited, least } if waited == ring && done.len() >= least)
            {
                self.strand(owner).wait = Wait::Nothing;
                self.wake_by(by, owner);
            }
        } else if wait == Wait::Operation(token) {
            self.strand(owner).wait = Wait::Nothing;
            self.wake_by(by, owner);
        }
    }

    /// Wakes a task on behalf of a context that still has something to do.
    fn wake_by(&mut self, by: ContextId, context: ContextId) {
        match self.shape {
            Shape::Single if self.is_interrupt(by) => self.held_wakes.push(context),
            _ => self.wake(context),
        }
    }
}

impl Strand {
    fn interrupts(core: u16) -> Strand {
        let birth = Birth::kernel_task("interrupts");
        let mut strand = Strand::task(core, IoContextId(0), birth);
        strand.state = State::Running;
        strand
    }

    fn task(core: u16, io_context: IoContextId, birth: Birth) -> Strand {
        Strand {
            core,
            state: State::Blocked,
            wait: Wait::Nothing,
            debt: Duration::ZERO,
            paid: Paid::Nothing,
            spins: false,
            is_ready: false,
            affinity: birth.affinity,
            alarm: None,
            has_word: false,
            is_killed: false,
            job: birth.job,
            io_context,
            cgroup: birth.cgroup,
            nice: birth.nice,
            operations: Operations::default(),
            acts_for: birth.acts_for,
            refused: None,
            status: None,
        }
    }
}

impl Birth {
    fn kernel_task(name: &str) -> Birth {
        Birth {
            name: name.to_string(),
            job: None,
            io_context: None,
            cgroup: CgroupId::ROOT,
            ioprio: Ioprio::NONE,
            nice: 0,
            affinity: None,
            acts_for: None,
        }
    }
}

impl JobState {
    fn new(job: Job) -> JobState {
        JobState {
            name: job.name.clone(),
            job: Some(job),
            main: None,
            started: None,
            ended: None,
            was_stopped: false,
            messages: Vec::new(),
        }
    }
}
