//! What is known of every task: whose it is, what it sleeps for, and which groups it belongs to.
//!
//! Tasks here neither compute nor do I/O: who has a core is known to the cores, and what a task has
//! under way to [`crate::io`].

mod cgroups;
mod kernel;

pub(crate) use cgroups::Cgroups;
pub(crate) use kernel::KernelTask;

use crate::core_set::CoreSet;
use crate::observe::TaskInfo;
use block::scheduler::IoContext;
use block::{CgroupId, ContextId, IoContextId, Ioprio, SleepsFor};
use std::future::Future;
use std::pin::Pin;

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
    /// The end of a pause, because too much is dirty.
    DirtyPause,
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
    /// There can be workers that finish direct writes.
    Workers,
    /// Nobody else is changing a file, or where its blocks are.
    Map,
}

impl Wait {
    /// What observers are told of it.
    pub fn told(self) -> SleepsFor {
        match self {
            Wait::Nothing => SleepsFor::Request,
            Wait::Operation(_) => SleepsFor::Operation,
            Wait::Ring { .. } => SleepsFor::Queue,
            Wait::Alarm => SleepsFor::Pause,
            Wait::DirtyPause => SleepsFor::DirtyLimit,
            Wait::Notification | Wait::Exit(_) | Wait::Workers => SleepsFor::Task,
            Wait::Page(_) => SleepsFor::Page,
            Wait::Journal => SleepsFor::Journal,
            Wait::Directory | Wait::Map => SleepsFor::Lock,
        }
    }

    /// Whether a task that is killed waits no longer.
    fn is_interruptible(self) -> bool {
        let until = matches!(self, Wait::Alarm | Wait::DirtyPause);
        until || matches!(self, Wait::Ring { .. } | Wait::Notification | Wait::Exit(_))
    }
}

/// A program at work in its task; in the end there is its exit status.
pub type Running = Pin<Box<dyn Future<Output = i32>>>;

/// What a new task is to do.
pub(crate) enum Body {
    /// The program of a job.
    Job(usize),
    /// What such a task of the kernel's does.
    Kernel(KernelTask),
    /// This.
    Running(Running),
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

impl TaskSpec {
    /// A task of the kernel's own with this name.
    fn kernel_task(name: &str) -> TaskSpec {
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

    /// Whether it runs a program, and does not act for one that does.
    pub fn is_program(&self) -> bool {
        self.job.is_some() && self.acts_for.is_none()
    }
}

/// All tasks there were, by number; the first numbers are the interrupts of cores.
pub(crate) struct Tasks {
    states: Vec<TaskState>,
    infos: Vec<TaskInfo>,
    io_contexts: Vec<IoContext>,
}

/// A task, or the interrupts of a core.
struct TaskState {
    wait: Wait,
    /// A word that came before it was waited for.
    has_permit: bool,
    /// What it does now is no part of the load: its calls are not told.
    is_preparing: bool,
    /// It exits as soon as it is not in a system call.
    is_killed: bool,
    job: Option<usize>,
    io_context: IoContextId,
    cgroup: CgroupId,
    /// The task whose operations it carries out.
    acts_for: Option<ContextId>,
    status: Option<i32>,
    /// Tasks that have begun to wait for its end.
    joiners: Vec<ContextId>,
}

impl Tasks {
    /// No task, and the interrupts of so many cores.
    pub fn new(cores: u16) -> Tasks {
        let interrupts = || {
            let spec = TaskSpec::kernel_task("interrupts");
            TaskState::new(IoContextId(0), Wait::Nothing, &spec)
        };
        Tasks {
            states: (0..cores).map(|_| interrupts()).collect(),
            infos: Vec::new(),
            io_contexts: Vec::new(),
        }
    }

    /// A task comes into being, under the next number. One of the kernel's own sleeps until there
    /// is something for it to do.
    pub fn add(&mut self, context: ContextId, spec: TaskSpec) {
        debug_assert_eq!(context.0 as usize, self.states.len(), "numbers of tasks have no gaps");
        let io_context = spec.io_context.unwrap_or(IoContextId(self.io_contexts.len() as u32));
        if spec.io_context.is_none() {
            let (ioprio, nice) = (spec.ioprio, spec.nice);
            self.io_contexts.push(IoContext { ioprio, nice, ..IoContext::default() });
        }
        let wait = if spec.job.is_some() { Wait::Nothing } else { Wait::Notification };
        self.states.push(TaskState::new(io_context, wait, &spec));
        let shared = &mut self.io_contexts[io_context.0 as usize];
        self.infos.push(TaskInfo {
            context,
            name: spec.name,
            job: spec.job,
            io_context,
            cgroup: spec.cgroup,
            ioprio: shared.ioprio,
        });
        shared.tasks += 1;
    }

    /// A task exits; the io_context that it had, if it was the last one to have it.
    pub fn exit(&mut self, context: ContextId, status: i32) -> Option<IoContextId> {
        self.of_mut(context).status = Some(status);
        let id = self.of(context).io_context;
        let shared = &mut self.io_contexts[id.0 as usize];
        shared.tasks -= 1;
        (shared.tasks == 0).then_some(id)
    }

    /// The exit status of a task, if it has exited.
    pub fn status(&self, context: ContextId) -> Option<i32> {
        self.of(context).status
    }

    /// All numbers of tasks and interrupts.
    pub fn numbers(&self) -> impl Iterator<Item = ContextId> + use<> {
        (0..self.states.len() as u32).map(ContextId)
    }

    /// What observers are told of each task when it comes into being.
    pub fn infos(&self) -> &[TaskInfo] {
        &self.infos
    }

    /// What is known of each task at the end.
    pub fn last_infos(&self) -> Vec<TaskInfo> {
        let mut infos = self.infos.clone();
        for who in &mut infos {
            who.cgroup = self.cgroup(who.context);
            who.ioprio = self.ioprio(who.context);
        }
        infos
    }

    /// The job to which a task belongs; `None` for the kernel's own.
    pub fn job(&self, context: ContextId) -> Option<usize> {
        self.of(context).job
    }

    /// The task for which a task submits bios: another one, or itself.
    pub fn principal(&self, context: ContextId) -> ContextId {
        self.of(context).acts_for.unwrap_or(context)
    }

    /// The io_context of a task, and what it is like but for the nice value.
    pub fn io_context(&self, context: ContextId) -> (IoContextId, IoContext) {
        let id = self.of(context).io_context;
        (id, self.io_contexts[id.0 as usize])
    }

    /// The explicit I/O priority of a task.
    pub fn ioprio(&self, context: ContextId) -> Ioprio {
        self.io_context(context).1.ioprio
    }

    /// Sets the explicit I/O priority of a task, and so of its io_context.
    pub fn set_ioprio(&mut self, context: ContextId, ioprio: Ioprio) {
        let id = self.of(context).io_context;
        self.io_contexts[id.0 as usize].ioprio = ioprio;
    }

    /// The control group of a task.
    pub fn cgroup(&self, context: ContextId) -> CgroupId {
        self.of(context).cgroup
    }

    /// A task goes to a control group.
    pub fn enter_cgroup(&mut self, context: ContextId, cgroup: CgroupId) {
        self.of_mut(context).cgroup = cgroup;
    }

    /// All tasks of a job go to a control group.
    pub fn move_job(&mut self, job: usize, cgroup: CgroupId) {
        self.states.iter_mut().filter(|it| it.job == Some(job)).for_each(|it| it.cgroup = cgroup);
    }

    /// Says whether what a task does is only a preparation, whose calls are not told.
    pub fn set_preparing(&mut self, context: ContextId, is_preparing: bool) {
        self.of_mut(context).is_preparing = is_preparing;
    }

    /// Whether calls of a task are told.
    pub fn tells_calls(&self, context: ContextId) -> bool {
        !self.of(context).is_preparing
    }

    /// A task is to exit as soon as it can; whether what it waits for is not waited for any longer.
    pub fn kill(&mut self, context: ContextId) -> bool {
        let state = self.of_mut(context);
        state.is_killed = true;
        state.wait.is_interruptible()
    }

    /// Whether a task is to exit as soon as it can.
    pub fn is_killed(&self, context: ContextId) -> bool {
        self.of(context).is_killed
    }

    /// What a task waits for.
    pub fn wait(&self, context: ContextId) -> Wait {
        self.of(context).wait
    }

    /// A task waits for something from now on, or for nothing.
    pub fn set_wait(&mut self, context: ContextId, wait: Wait) {
        if let Wait::Exit(other) = wait {
            self.of_mut(other).joiners.push(context);
        }
        self.of_mut(context).wait = wait;
    }

    /// A task has exited; who waited for that, in the order of their numbers. They do no longer.
    pub fn end_joins(&mut self, context: ContextId) -> Vec<ContextId> {
        let mut joiners = std::mem::take(&mut self.of_mut(context).joiners);
        joiners.sort();
        joiners.retain(|joiner| self.end_wait(*joiner, Wait::Exit(context)));
        joiners
    }

    /// Something has come; whether a task waited for it. It does no longer.
    pub fn end_wait(&mut self, context: ContextId, wait: Wait) -> bool {
        let state = self.of_mut(context);
        let has_waited = state.wait == wait;
        if has_waited {
            state.wait = Wait::Nothing;
        }
        has_waited
    }

    /// A task is given a word; whether it waited for one.
    pub fn give_permit(&mut self, context: ContextId) -> bool {
        self.of_mut(context).has_permit = true;
        self.end_wait(context, Wait::Notification)
    }

    /// Takes the word that a task was given, if it was.
    pub fn take_permit(&mut self, context: ContextId) -> bool {
        std::mem::take(&mut self.of_mut(context).has_permit)
    }

    fn of(&self, context: ContextId) -> &TaskState {
        &self.states[context.0 as usize]
    }

    fn of_mut(&mut self, context: ContextId) -> &mut TaskState {
        &mut self.states[context.0 as usize]
    }
}

impl TaskState {
    fn new(io_context: IoContextId, wait: Wait, spec: &TaskSpec) -> TaskState {
        TaskState {
            wait,
            has_permit: false,
            is_preparing: false,
            is_killed: false,
            job: spec.job,
            io_context,
            cgroup: spec.cgroup,
            acts_for: spec.acts_for,
            status: None,
            joiners: Vec::new(),
        }
    }
}
