//! The life of tasks and jobs: how they come into being, whose io_context and control group they
//! have, and how they end.

use crate::clock::AgendaItem;
use crate::cores::{CoreSet, Paid, State};
use crate::observe::TaskInfo;
use crate::operations::Operations;
use crate::simulation::{ControlGroup, Job, Move};
use crate::task::Body;
use crate::world::{Wait, World};
use base::{Duration, Instant, Ticket};
use block::scheduler::{Cgroup, IoContext};
use block::{CgroupId, ContextId, IoContextId, Ioprio};

/// What a group weighs in version 2 of control groups that nobody gave a weight; the root twice that.
const DEFAULT_WEIGHT: u32 = 100; // spec 4.1

/// A context: a task, or the interrupts of a core.
pub(crate) struct ExecContext {
    pub core: u16,
    pub state: State,
    pub wait: Wait,
    /// Computing that is not done.
    pub debt: Duration,
    /// How much it has had of its core, for who goes first.
    pub served: Duration,
    /// How much of the next piece of block-layer work is paid for.
    pub paid: Paid,
    pub spins: bool,
    /// It is in the list of ready contexts.
    pub is_ready: bool,
    pub affinity: Option<CoreSet>,
    /// It does not wait until others have had their turn.
    pub is_urgent: bool,
    /// What wakes it, and when at the latest.
    pub alarm: Option<(Ticket, Instant)>,
    /// From when on the timer may end its sleep, if it fires then for somebody else.
    pub may_wake: Instant,
    /// A word that came before it was waited for.
    pub has_permit: bool,
    /// What it does now is no part of the load: its calls are not told.
    pub is_preparing: bool,
    /// It exits as soon as it is not in a system call.
    pub is_killed: bool,
    /// It is in a system call that ends before anything else happens to the task.
    pub in_call: bool,
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
    pub moves: Vec<Move>,
    pub background: bool,
    pub messages: Vec<String>,
}

/// What a new task is given.
pub(crate) struct TaskSpec {
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
    /// Creates a task; its program is yet to come.
    pub fn spawn(&mut self, spec: TaskSpec) -> ContextId {
        let context = ContextId(self.contexts.len() as u32);
        let io_context = spec.io_context.unwrap_or(IoContextId(self.io_contexts.len() as u32));
        if spec.io_context.is_none() {
            self.io_contexts.push(IoContext {
                ioprio: spec.ioprio,
                nice: spec.nice,
                ..IoContext::default()
            });
        }
        self.task_infos.push(TaskInfo {
            context,
            name: spec.name.clone(),
            job: spec.job,
            io_context,
            cgroup: spec.cgroup,
            ioprio: self.io_contexts[io_context.0 as usize].ioprio,
        });
        let core = (context.0 as usize % self.cores.len()) as u16;
        self.contexts.push(ExecContext::task(core, io_context, spec));
        self.io_contexts[io_context.0 as usize].tasks += 1;
        self.define_io_context(context);
        if self.context(context).job.is_some() {
            self.cache.task_started();
            self.wake(context);
        } else {
            // The kernel's own tasks sleep until there is something for them to do.
            self.context(context).wait = Wait::Notification;
        }
        context
    }

    /// A task exits.
    pub fn exit(&mut self, context: ContextId, status: i32) {
        self.cache.task_ended();
        for operation in self.context(context).operations.drain() {
            self.log_unfinished(context, &operation);
        }
        let exec = self.context(context);
        exec.status = Some(status);
        let (io_context, job, alarm) = (exec.io_context, exec.job, exec.alarm.take());
        if let Some((alarm, _)) = alarm {
            self.clock.cancel(alarm);
        }
        self.cache.end_mappings(context);
        for file in self.cache.files_of(context) {
            self.close_file(file);
        }
        self.leave(context);
        self.io_contexts[io_context.0 as usize].tasks -= 1;
        if self.io_contexts[io_context.0 as usize].tasks == 0 {
            self.queue.exit_io_context(self.clock.now(), context, io_context);
            self.take_outputs(context);
        } else {
            self.define_io_context(context);
        }
        for other in 0..self.contexts.len() {
            if self.contexts[other].wait == Wait::Exit(context) {
                self.wake_from(ContextId(other as u32));
            }
        }
        if let Some(job) = job.filter(|job| self.jobs[*job].main == Some(context)) {
            self.jobs[job].ended = Some((self.clock.now(), status));
            self.mark.exit(self.clock.now(), job, status);
            self.kill_job(job);
            self.is_prepared(job);
            self.stop_background();
        }
    }

    /// Jobs in the background go on no longer than the others.
    fn stop_background(&mut self) {
        if self.only_background_is_left() {
            for job in 0..self.jobs.len() {
                self.stop_job(job);
            }
        }
    }

    /// Whether there were jobs that are not in the background, and all of them have ended.
    pub fn only_background_is_left(&self) -> bool {
        let mut in_front = self.jobs.iter().filter(|job| !job.background).peekable();
        in_front.peek().is_some() && in_front.all(|job| job.ended.is_some())
    }

    /// A job is stopped from outside, unless it has ended.
    pub fn stop_job(&mut self, job: usize) {
        self.jobs[job].was_stopped |= self.jobs[job].ended.is_none();
        self.kill_job(job);
    }

    /// The io_context of a task.
    pub fn io_context(&mut self, context: ContextId) -> &mut IoContext {
        let id = self.contexts[context.0 as usize].io_context;
        &mut self.io_contexts[id.0 as usize]
    }

    /// Tells the block layer what the io_context of a task is like now.
    pub fn define_io_context(&mut self, context: ContextId) {
        let exec = &self.contexts[context.0 as usize];
        let value = &mut self.io_contexts[exec.io_context.0 as usize];
        value.nice = exec.nice;
        self.queue.define_io_context(exec.io_context, *value);
    }

    /// In version 2 of control groups weights are others, which kernels tell schedulers.
    pub fn define_root(&mut self, has_version_2: bool) {
        if has_version_2 && self.blkio {
            self.default_weight = Some(DEFAULT_WEIGHT);
            let root = &mut self.cgroups[0];
            root.leaf_weight = Some(2 * DEFAULT_WEIGHT);
            self.queue.define_cgroup(CgroupId::ROOT, root.clone());
        }
    }

    /// A control group, made if need be, gets the weights that are said.
    pub fn weigh_cgroup(&mut self, group: &ControlGroup) {
        let id = self.define_cgroup(&group.path, group.weight);
        let value = &mut self.cgroups[id.0 as usize];
        if self.blkio && group.leaf_weight.is_some() {
            value.leaf_weight = group.leaf_weight;
            self.queue.define_cgroup(id, value.clone());
        }
    }

    /// The control group of a path, which is made, with those above it, if need be. Without a
    /// controller of block I/O that is the root.
    pub fn define_cgroup(&mut self, path: &str, weight: Option<u32>) -> CgroupId {
        if !self.blkio {
            return CgroupId::ROOT;
        }
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
        let value = Cgroup {
            path: path.to_string(),
            parent: Some(parent),
            weight: self.default_weight,
            leaf_weight: self.default_weight,
        };
        self.queue.define_cgroup(group, value.clone());
        self.cgroups.push(value);
        group
    }

    /// Ends what is still under way when the run ends.
    pub fn note_unfinished(&mut self) {
        for number in 0..self.contexts.len() {
            let context = ContextId(number as u32);
            for operation in self.contexts[number].operations.drain() {
                self.log_unfinished(context, &operation);
            }
        }
    }

    /// A job starts.
    pub fn start_job(&mut self, number: usize) {
        if self.only_background_is_left() {
            return;
        }
        let job = self.jobs[number].job.take().expect("a job starts once");
        self.let_begin();
        if let Some(duration) = job.duration {
            self.clock.schedule_after(duration, AgendaItem::Stop(number));
        }
        for (index, to) in job.moves.iter().enumerate() {
            let after = to.at.saturating_since(job.start);
            self.clock.schedule_after(after, AgendaItem::Move(number, index));
        }
        self.jobs[number].moves = job.moves;
        let cgroup = self.define_cgroup(&job.cgroup, None);
        let main = self.spawn(TaskSpec {
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
        self.jobs[number].started = Some(self.clock.now());
        self.spawned.push((main, Body::Program(job.program)));
    }

    /// All tasks of a job go to another control group; what they have submitted stays where it is.
    pub fn move_job(&mut self, job: usize, number: usize) {
        let path = self.jobs[job].moves[number].cgroup.clone();
        let group = self.define_cgroup(&path, None);
        for exec in self.contexts.iter_mut().filter(|exec| exec.job == Some(job)) {
            exec.cgroup = group;
        }
    }

    /// All tasks of a job exit as soon as they can.
    pub fn kill_job(&mut self, job: usize) {
        for number in 0..self.contexts.len() {
            let exec = &mut self.contexts[number];
            if exec.job != Some(job) || exec.state == State::Gone {
                continue;
            }
            exec.is_killed = true;
            let interruptible = matches!(
                exec.wait,
                Wait::Ring { .. } | Wait::Alarm | Wait::Notification | Wait::Exit(_)
            );
            if interruptible {
                self.wake_from(ContextId(number as u32));
            }
        }
    }
}

impl ExecContext {
    pub fn interrupts(core: u16) -> ExecContext {
        let spec = TaskSpec::kernel_task("interrupts");
        let mut exec = ExecContext::task(core, IoContextId(0), spec);
        exec.state = State::Running;
        exec
    }

    fn task(core: u16, io_context: IoContextId, spec: TaskSpec) -> ExecContext {
        ExecContext {
            core,
            state: State::Blocked,
            wait: Wait::Nothing,
            debt: Duration::ZERO,
            served: Duration::ZERO,
            paid: Paid::Nothing,
            spins: false,
            is_ready: false,
            affinity: spec.affinity,
            is_urgent: false,
            alarm: None,
            may_wake: Instant::FAR_FUTURE,
            has_permit: false,
            is_preparing: false,
            is_killed: false,
            in_call: false,
            job: spec.job,
            io_context,
            cgroup: spec.cgroup,
            nice: spec.nice,
            operations: Operations::default(),
            acts_for: spec.acts_for,
            refused: None,
            status: None,
        }
    }

    /// Its nice value as far as computing goes.
    pub fn cpu_nice(&self) -> i8 {
        if self.is_urgent { -20 } else { self.nice }
    }

    /// Whether the task was killed and nothing keeps it from exiting.
    pub fn must_exit(&self) -> bool {
        self.is_killed && !self.in_call
    }
}

impl TaskSpec {
    pub fn kernel_task(name: &str) -> TaskSpec {
        TaskSpec {
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
    pub fn new(job: Job) -> JobState {
        JobState {
            name: job.name.clone(),
            moves: Vec::new(),
            background: job.background,
            job: Some(job),
            main: None,
            started: None,
            ended: None,
            was_stopped: false,
            messages: Vec::new(),
        }
    }
}
