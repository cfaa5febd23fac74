//! A run: programs, cores, block layer and disk in virtual time.
//!
//! [`run`] is the whole of it: let everybody who can go on do so, tell the observer what happened,
//! let time pass until something happens, and begin again. What can happen, and in which order, is
//! written down in `world`; who runs on which core in `cpus`; what programs may do in `task.rs`. One
//! run is one thread and depends on nothing but its [`Setup`].

mod assemble;

use crate::observe::Observer;
use crate::outcome::{Exit, JobOutcome, Outcome};
use crate::program::{Program, Running};
use crate::setup::{Setup, SetupError};
use crate::task::{Task, worker};
use crate::tasks::{Body, KernelTask};
use crate::world::World;
use crate::{buffered, filesystem};
use base::Instant;
use block::ContextId;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Runs a setup to its end.
pub fn run(setup: Setup, observer: &mut dyn Observer) -> Result<Outcome, SetupError> {
    let mut machine = Machine::new(setup)?;
    loop {
        machine.adopt();
        while let Some(task) = machine.next_to_poll() {
            machine.poll(task);
        }
        machine.report(observer);
        if !machine.turn() {
            break;
        }
    }
    machine.end(observer)
}

/// A world and the programs that run in it.
struct Machine {
    world: Rc<RefCell<World>>,
    /// The programs, by number of their task.
    programs: Vec<Option<Running>>,
    /// What jobs run, by number, the preparation last.
    jobs: Vec<Arc<dyn Program>>,
    /// How many tasks the observer has met.
    met: usize,
}

impl Machine {
    fn new(setup: Setup) -> Result<Machine, SetupError> {
        let (world, jobs) = assemble::assemble(setup)?;
        Ok(Machine { world: Rc::new(RefCell::new(world)), programs: Vec::new(), jobs, met: 0 })
    }

    /// Takes over the programs of new tasks.
    fn adopt(&mut self) {
        let spawned = std::mem::take(&mut self.world.borrow_mut().spawned);
        for (id, body) in spawned {
            let running = match body {
                Body::Running(running) => running,
                Body::Kernel(what) => run_kernel_task(what, Task::new(self.world.clone(), id)),
                Body::Job(job) => {
                    let program = self.jobs[job].clone();
                    let task = Task::new(self.world.clone(), id);
                    Box::pin(async move {
                        task.exec().await;
                        program.run(task).await
                    })
                }
            };
            let index = id.0 as usize;
            if index >= self.programs.len() {
                self.programs.resize_with(index + 1, || None);
            }
            self.programs[index] = Some(running);
        }
    }

    fn next_to_poll(&mut self) -> Option<ContextId> {
        let mut world = self.world.borrow_mut();
        let next = world.next_to_poll();
        let has_spawned = !world.spawned.is_empty();
        drop(world);
        if has_spawned {
            self.adopt();
        }
        next
    }

    /// Lets a program go on until it waits for something, or exits.
    fn poll(&mut self, task: ContextId) {
        let place = &mut self.programs[task.0 as usize];
        let program = place.as_mut().expect("a task that runs has a program");
        let status = if self.world.borrow().must_exit(task) {
            KILLED
        } else {
            match program.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Pending => return,
                Poll::Ready(status) => status,
            }
        };
        *place = None;
        self.world.borrow_mut().exit(task, status);
    }

    /// Hands everything that has happened to the observer.
    fn report(&mut self, observer: &mut dyn Observer) {
        let mut world = self.world.borrow_mut();
        let World { queue, mark, tasks, preparation, .. } = &mut *world;
        let task_infos = tasks.infos();
        for who in task_infos[self.met..].iter().filter(|who| !preparation.is_it(who.job)) {
            observer.meet(who);
        }
        self.met = task_infos.len();
        let log = queue.log();
        for event in log.events() {
            mark.event(event);
            match preparation.is_nothing() {
                true => observer.see(event),
                false => preparation.seen(event).iter().for_each(|event| observer.see(event)),
            }
        }
        log.clear();
    }

    fn turn(&mut self) -> bool {
        self.world.borrow_mut().turn()
    }

    fn end(mut self, observer: &mut dyn Observer) -> Result<Outcome, SetupError> {
        self.world.borrow_mut().note_unfinished();
        self.report(observer);
        self.programs.clear();
        let mut world = self.world.borrow_mut();
        if let Some(job) = world.endless {
            return Err(SetupError::Endless { job: world.jobs[job].name.clone() });
        }
        let mut jobs = std::mem::take(&mut world.jobs);
        let blamed = world.preparation.finish(&mut jobs);
        blamed.map_err(|(line, why)| SetupError::Preparation { line, why })?;
        let now = world.clock.now();
        let counted = |at: Instant| world.preparation.counted(at);
        let jobs: Vec<JobOutcome> = jobs
            .into_iter()
            .map(|job| JobOutcome {
                name: job.name,
                exit: match job.ended {
                    Some(_) if job.was_stopped => Exit::Stopped,
                    Some((_, status)) => Exit::Status(status),
                    None => Exit::CutOff,
                },
                started: job.started.map(counted),
                ended: counted(job.ended.map_or(now, |(at, _)| at)),
                messages: job.messages,
            })
            .collect();
        if jobs.iter().all(|job| job.exit != Exit::CutOff) {
            world.queue.assert_drained();
        }
        let last = jobs.iter().map(|job| job.ended).max().unwrap_or(counted(now));
        Ok(Outcome {
            jobs,
            elapsed: last.since(Instant::ZERO),
            fingerprint: std::mem::take(&mut world.mark).finish(),
            tasks: world.tasks.last_infos(),
            cgroups: world.cgroups.all().to_vec(),
            cores: world.cpus.used(),
            inputs: world.queue.take_inputs(),
        })
    }
}

/// What tasks of the kernel's own do.
fn run_kernel_task(what: KernelTask, task: Task) -> Running {
    match what {
        KernelTask::Queue => Box::pin(worker(task)),
        KernelTask::Flusher(group, _) => Box::pin(buffered::flusher::run(task, group)),
        KernelTask::Converter => Box::pin(filesystem::unwritten::run(task)),
        KernelTask::Finisher => Box::pin(filesystem::finishing::run(task)),
        KernelTask::Committer => Box::pin(filesystem::ext4::committer(task)),
        KernelTask::Placer => Box::pin(filesystem::xfs::tasks::place(task)),
        KernelTask::Forcer => Box::pin(filesystem::xfs::tasks::work(task)),
        KernelTask::Inactivator => Box::pin(filesystem::xfs::tasks::take_away(task)),
    }
}

/// The exit status of a task that was stopped: that of a process killed by SIGTERM.
const KILLED: i32 = 128 + 15;
