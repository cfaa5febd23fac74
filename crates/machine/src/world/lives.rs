//! The life of tasks and jobs: how they come into being, whose io_context and control group they
//! have, and how they end.

use std::any::Any;
use std::rc::Rc;

use super::World;
use crate::clock::AgendaItem;
use crate::cpus::{Newcomer, State};
use crate::jobs::{ControlGroup, JobPlan, JobState};
use crate::preparation::Preparation;
use crate::tasks::{Body, KernelTask, TaskSpec};
use base::{Duration, Instant};
use block::scheduler::IoContext;
use block::{CgroupId, ContextId};

impl World {
    /// Creates a task; its program is yet to come.
    pub fn spawn(&mut self, spec: TaskSpec) -> ContextId {
        let context = self.cpus.admit(Newcomer {
            nice: spec.nice,
            affinity: spec.affinity.clone(),
            is_program: spec.is_program(),
        });
        let is_job = spec.job.is_some();
        self.tasks.add(context, spec);
        self.define_io_context(context);
        if is_job {
            self.storage.cache_mut().task_started();
            self.wake(context);
        }
        context
    }

    /// Creates a task of the kernel's own.
    pub fn spawn_kernel_task(&mut self, what: KernelTask) -> ContextId {
        let context = self.spawn(what.spec(self.disk.name(), self.cpus.count()));
        if what.is_in_pool() && self.cpus.has_pool() {
            self.cpus.pool().add(context);
        }
        self.give_body(context, Body::Kernel(what));
        context
    }

    /// A task that was created is to do this.
    pub fn give_body(&mut self, context: ContextId, body: Body) {
        self.spawned.push((context, body));
    }

    /// Whether tasks were created that have not been taken over.
    pub fn has_spawned(&self) -> bool {
        !self.spawned.is_empty()
    }

    /// Tasks that were created, and what they are to do.
    pub fn take_spawned(&mut self) -> Vec<(ContextId, Body)> {
        std::mem::take(&mut self.spawned)
    }

    /// A task is about to exit; the answer is whether it has a file open that has no name. If so it
    /// is in the kernel to close it.
    pub fn begin_exit(&mut self, context: ContextId) -> bool {
        let open = self.storage.cache().files_of(context);
        let holds = open.into_iter().any(|number| self.storage.is_unlinked(number));
        if holds {
            self.cpus.set_in_call(context, true);
        }
        holds
    }

    /// A task exits.
    pub fn exit(&mut self, context: ContextId, status: i32) {
        self.storage.cache_mut().task_ended(context);
        self.log_unfinished(context);
        self.clock.cancel_alarm(context);
        self.storage.cache_mut().end_mappings(context);
        for file in self.storage.cache().files_of(context) {
            self.storage.close_file(file);
        }
        self.cpus.leave(&mut self.clock, context);
        match self.tasks.exit(context, status) {
            Some(io_context) => {
                let now = self.clock.now();
                self.storage.queue_mut().exit_io_context(now, context, io_context);
                self.take_outputs(context);
            }
            None => self.define_io_context(context),
        }
        for joiner in self.tasks.end_joins(context) {
            self.wake(joiner);
        }
        let job = self.tasks.job(context);
        if let Some(job) = job.filter(|job| self.jobs[*job].main == Some(context)) {
            self.jobs[job].ended = Some((self.clock.now(), status));
            self.mark_past();
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

    /// Tells the block layer what the io_context of a task is like now.
    pub fn define_io_context(&mut self, context: ContextId) {
        let (id, like) = self.tasks.io_context(context);
        let nice = self.cpus.nice(context);
        self.storage.queue_mut().define_io_context(id, IoContext { nice, ..like });
    }

    /// In version 2 of control groups weights are others, which kernels tell schedulers.
    pub fn define_root(&mut self, has_version_2: bool) {
        if has_version_2 {
            let queue = self.storage.queue_mut();
            self.cgroups.use_version_2(|id, group| queue.define_cgroup(id, group.clone()));
        }
    }

    /// A control group, made if need be, gets the weights and limits that are said.
    pub fn set_up_cgroup(&mut self, group: &ControlGroup) {
        let id = self.define_cgroup(&group.path, group.weight);
        let World { cgroups, storage, .. } = self;
        let queue = storage.queue_mut();
        cgroups.set_leaf_weight(id, group.leaf_weight, |id, group| {
            queue.define_cgroup(id, group.clone());
        });
        if !group.limits.is_none() && cgroups.has_controller() {
            queue.limit_cgroup(Instant::ZERO, id, group.limits);
            self.need_releaser();
        }
    }

    /// The control group of a path, which is made, with those above it, if need be.
    pub fn define_cgroup(&mut self, path: &str, weight: Option<u32>) -> CgroupId {
        let World { cgroups, storage, .. } = self;
        let queue = storage.queue_mut();
        cgroups.define(path, weight, |id, group| queue.define_cgroup(id, group.clone()))
    }

    /// Ends what is still under way when the run ends.
    pub fn note_unfinished(&mut self) {
        for context in self.tasks.numbers() {
            self.log_unfinished(context);
        }
    }

    /// A job starts.
    pub fn start_job(&mut self, number: usize) {
        if self.only_background_is_left() {
            return;
        }
        let job = self.jobs[number].plan.take().expect("a job starts once");
        self.cpus.let_begin(&mut self.clock, self.start_delay);
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
        self.spawned.push((main, Body::Job(number)));
    }

    /// All tasks of a job go to another control group; what they have submitted stays where it is.
    pub fn move_job(&mut self, job: usize, number: usize) {
        let path = self.jobs[job].moves[number].cgroup.clone();
        let group = self.define_cgroup(&path, None);
        self.tasks.move_job(job, group);
    }

    /// All tasks of a job exit as soon as they can.
    pub fn kill_job(&mut self, job: usize) {
        for context in self.tasks.numbers() {
            if self.tasks.job(context) != Some(job) || self.cpus.state(context) == State::Gone {
                continue;
            }
            if self.tasks.kill(context) {
                self.wake_from(context);
            }
        }
    }

    /// Whether the task was killed and nothing keeps it from exiting.
    pub fn must_exit(&self, context: ContextId) -> bool {
        self.tasks.is_killed(context) && !self.cpus.is_in_call(context)
    }

    /// Has the jobs done; if there is a preparation, it is the last one, and goes first.
    pub fn begin(&mut self, plans: Vec<JobPlan>, has_preparation: bool) {
        self.preparation = Preparation::before(plans.len() - usize::from(has_preparation));
        self.jobs.extend(plans.into_iter().map(JobState::new));
        if !has_preparation {
            return self.begin_jobs(Instant::ZERO);
        }
        let at = Instant::ZERO + self.start_delay;
        self.clock.schedule(at, AgendaItem::Start(self.preparation.jobs()));
        self.note_dirty_elsewhere(at);
    }

    /// A job has ended: if it is the preparation, the others are to begin.
    pub fn is_prepared(&mut self, job: usize) {
        if self.preparation.is_it(Some(job)) && !self.preparation.has_failed() {
            let seconds = self.clock.now().since(Instant::ZERO).as_nanos() / 1_000_000_000;
            self.begin_jobs(Instant::ZERO + Duration::from_secs(seconds) + self.guest.boot.pause);
        }
    }

    fn begin_jobs(&mut self, begins: Instant) {
        self.preparation.is_over(begins);
        if self.tells_tasks {
            self.storage.cache_mut().keep_history();
        }
        self.clock.prolong(begins.since(Instant::ZERO));
        self.note_dirty_elsewhere(begins);
        for number in 0..self.preparation.jobs() {
            let start = self.jobs[number].plan.as_ref().expect("it has not started").start;
            let at = begins + start.since(Instant::ZERO) + self.start_delay;
            self.clock.schedule(at, AgendaItem::Start(number));
        }
    }

    /// Who starts the jobs has written to another file system.
    fn note_dirty_elsewhere(&mut self, begins: Instant) {
        let lasts = Duration::from_millis(self.guest.files.dirty_elsewhere);
        if self.storage.has_files() {
            self.storage.files().note_dirty_elsewhere(begins + lasts);
        }
    }

    /// A job starts its program.
    pub fn note_exec(&mut self, context: ContextId) {
        if let Some(job) = self.tasks.job(context) {
            self.jobs[job].started = Some(self.clock.now());
        }
    }

    /// A task writes a line to the messages of its job, if it has one.
    pub fn print(&mut self, context: ContextId, line: String) {
        if let Some(job) = self.tasks.job(context) {
            self.jobs[job].messages.push(line);
        }
    }

    /// A task hands over what it will count, if it belongs to a job that is no preparation.
    pub fn keep_account(&mut self, context: ContextId, account: Rc<dyn Any>) {
        let job = self.tasks.job(context).filter(|job| !self.preparation.is_it(Some(*job)));
        self.accounts.extend(job.map(|job| (job, account)));
    }

    /// Something of the preparation failed, and this line is why.
    pub fn blame(&mut self, line: &str) {
        self.preparation.blame(line);
    }
}
