//! A run: programs, cores, block layer and disk in virtual time.
//!
//! [`run`] is the whole of it: let everybody who can go on do so, tell the observer what happened,
//! let time pass until something happens, and begin again. What can happen, and in which order, is
//! written down in `world`; who runs on which core in `cpus`; what programs may do in `task` and
//! `calls`. One run is one thread and depends on nothing but its [`Setup`].

mod assemble;

use crate::filesystem::{ext4, finishing, flusher, unwritten, xfs};
use crate::observe::Observer;
use crate::outcome::Outcome;
use crate::program::{Program, Running};
use crate::setup::{Setup, SetupError};
use crate::task::{Task, gather, release, threads, worker};
use crate::tasks::{Body, KernelTask};
use crate::world::World;
use block::ContextId;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Runs a setup to its end.
pub fn run(setup: Setup, observer: &mut dyn Observer) -> Result<Outcome, SetupError> {
    let mut machine = Machine::new(setup)?;
    loop {
        while let Some(task) = machine.next_to_poll() {
            machine.poll(task);
        }
        if !machine.turn(observer) {
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
        let spawned = self.world.borrow_mut().take_spawned();
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
        let has_spawned = world.has_spawned();
        drop(world);
        if has_spawned {
            self.adopt();
        }
        next
    }

    /// Lets a program go on until it waits for something, or exits. What is left of it then is to
    /// close files that have no name.
    fn poll(&mut self, task: ContextId) {
        let status = loop {
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
            if !self.world.borrow_mut().begin_exit(task) {
                break status;
            }
            *place = Some(Box::pin(Task::new(self.world.clone(), task).close_all(status)));
        };
        self.programs[task.0 as usize] = None;
        self.world.borrow_mut().exit(task, status);
    }

    /// Hands everything that has happened to the observer.
    fn report(&mut self, observer: &mut dyn Observer) {
        self.met = self.world.borrow_mut().report(self.met, observer);
    }

    /// Lets time pass until something happens; false when the run is over.
    fn turn(&mut self, observer: &mut dyn Observer) -> bool {
        let mut world = self.world.borrow_mut();
        if world.is_to_report(self.met) {
            self.met = world.report(self.met, observer);
        }
        world.turn()
    }

    fn end(mut self, observer: &mut dyn Observer) -> Result<Outcome, SetupError> {
        self.world.borrow_mut().note_unfinished();
        self.report(observer);
        self.programs.clear();
        let mut world = self.world.borrow_mut();
        if let Some(job) = world.endless_job() {
            return Err(SetupError::Endless { job: job.to_string() });
        }
        world.outcome().map_err(|(line, why)| SetupError::Preparation { line, why })
    }
}

/// What tasks of the kernel's own do.
fn run_kernel_task(what: KernelTask, task: Task) -> Running {
    match what {
        KernelTask::Queue => Box::pin(worker(task)),
        KernelTask::Releaser => Box::pin(release(task)),
        KernelTask::Unbound => Box::pin(gather(task)),
        KernelTask::Flusher(group, _) => Box::pin(flusher::run(task, group)),
        KernelTask::Converter => Box::pin(unwritten::run(task)),
        KernelTask::Finisher => Box::pin(finishing::run(task)),
        KernelTask::Starter => Box::pin(threads::start(task)),
        KernelTask::Worker => Box::pin(threads::work(task)),
        KernelTask::Manager => Box::pin(threads::manage(task)),
        KernelTask::Rescuer => Box::pin(finishing::rescue(task)),
        KernelTask::Committer => Box::pin(ext4::commit(task)),
        KernelTask::Placer => Box::pin(xfs::place(task)),
        KernelTask::Forcer => Box::pin(xfs::force(task)),
        KernelTask::Inactivator => Box::pin(xfs::take_away(task)),
        KernelTask::Pusher => Box::pin(xfs::push(task)),
    }
}

/// The exit status of a task that was stopped: that of a process killed by SIGTERM.
const KILLED: i32 = 128 + 15;
