//! The machine: programs, cores, block layer and disk in virtual time.
//!
//! [`run`] is the whole of it: let everybody who can go on do so, tell the observer what happened,
//! let time pass until something happens, and begin again. What can happen, and in which order, is
//! written down in `world.rs`; who runs on which core in `cpus`; what programs may do in
//! `task.rs`. One run is one thread and depends on nothing but its [`Setup`].

use crate::core_set::CoreSet;
use crate::filesystem::Mount;
use crate::guest::Guest;
use crate::host::Host;
use crate::observe::{CoreUse, Observer, TaskInfo};
use crate::program::{Program, Running};
use crate::task::{Body, Task, worker};
use crate::tasks::KernelTask;
use crate::world::World;
use crate::{buffered, filesystem};
use base::{Bytes, Duration, Fingerprint, Instant};
use block::scheduler::Cgroup;
use block::{Attach, ContextId, Input, Ioprio, Kernel, TunableError, Version};
use device::Device;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The memory of a machine when nobody says otherwise. // assumed
pub const DEFAULT_MEMORY: Bytes = Bytes(4 << 30);

/// Everything a run depends on.
pub struct Setup {
    /// Whose rules hold.
    pub kernel: &'static Kernel,
    /// The shape of the block layer and the scheduler.
    pub attach: Attach,
    /// Tunables of the scheduler and settings of the queue, in the order in which they are written.
    pub settings: Vec<(String, i64)>,
    /// The disk.
    pub device: Box<dyn Device>,
    /// Cores and costs.
    pub host: Host,
    /// What was observed of the guest that the machine stands for.
    pub guest: Guest,
    /// Memory, and so how much the page cache can hold.
    pub memory: Bytes,
    /// The file system on the disk, fresh and mounted, if it carries one.
    pub mount: Option<Mount>,
    /// Control groups with weights; those that jobs name are made if they are not here.
    pub cgroups: Vec<ControlGroup>,
    /// There is a controller of block I/O; without it schedulers see all tasks in the root group.
    pub blkio: bool,
    /// Control groups have writeback of their own, on a file system.
    pub cgroup_writeback: bool,
    /// What is done before: unseen, but for the state it leaves.
    pub preparation: Option<Arc<dyn Program>>,
    /// What is run.
    pub jobs: Vec<Job>,
    /// What all randomness derives from.
    pub seed: u64,
    /// When the run ends even if jobs are not done.
    pub until: Option<Instant>,
    /// Whether events are made; without them an observer sees nothing.
    pub events: bool,
    /// Whether messages of the scheduler are among them.
    pub messages: bool,
    /// Whether the inputs of the block layer are recorded.
    pub record_inputs: bool,
    /// Whether the scheduler checks itself after every step.
    pub paranoid: bool,
}

impl Setup {
    /// Jobs on a disk that carries no file system, until they are done; nothing is watched.
    pub fn new(
        kernel: &'static Kernel,
        attach: Attach,
        device: Box<dyn Device>,
        host: Host,
        jobs: Vec<Job>,
    ) -> Setup {
        Setup {
            kernel,
            attach,
            settings: Vec::new(),
            device,
            host,
            guest: Guest::OBSERVED,
            memory: DEFAULT_MEMORY,
            mount: None,
            cgroups: Vec::new(),
            blkio: true,
            cgroup_writeback: kernel.version >= Version::V6_12,
            preparation: None,
            jobs,
            seed: 1,
            until: None,
            events: false,
            messages: false,
            record_inputs: false,
            paranoid: false,
        }
    }
}

/// A program and how it is run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name in results.
    pub name: String,
    /// What runs.
    pub program: Arc<dyn Program>,
    /// The path of its control group.
    pub cgroup: String,
    /// When its tasks go to other control groups.
    pub moves: Vec<Move>,
    /// Its explicit I/O priority.
    pub ioprio: Ioprio,
    /// Its nice value.
    pub nice: i8,
    /// The cores it may use; all if not given.
    pub affinity: Option<CoreSet>,
    /// When it starts.
    pub start: Instant,
    /// When it is stopped, counted from its start.
    pub duration: Option<Duration>,
    /// It is stopped when all jobs that are not in the background have ended.
    pub background: bool,
}

/// A control group and what it weighs, where that is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlGroup {
    /// Its path from the root.
    pub path: String,
    /// Against its siblings.
    pub weight: Option<u32>,
    /// Its own tasks against its children.
    pub leaf_weight: Option<u32>,
}

/// All tasks of a job that there are at a time go to another control group, as when somebody writes
/// their numbers to its `cgroup.procs`. Tasks that they start later begin there too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// When, as starts of jobs are counted.
    pub at: Instant,
    /// The path of the group.
    pub cgroup: String,
}

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// What came of each job, in the order of the setup.
    pub jobs: Vec<JobOutcome>,
    /// When the last job ended, or the run was cut off.
    pub elapsed: Duration,
    /// Two runs with the same fingerprint did the same.
    pub fingerprint: Fingerprint,
    /// All tasks there were.
    pub tasks: Vec<TaskInfo>,
    /// All control groups, the root first.
    pub cgroups: Vec<Cgroup>,
    /// What each core did.
    pub cores: Vec<CoreUse>,
    /// The inputs of the block layer, if they were recorded.
    pub inputs: Vec<Input>,
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOutcome {
    /// Its name.
    pub name: String,
    /// How it ended.
    pub exit: Exit,
    /// When it started, if it did.
    pub started: Option<Instant>,
    /// When it ended, or the run was cut off.
    pub ended: Instant,
    /// What it wrote to its standard error, line by line.
    pub messages: Vec<String>,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this status.
    Status(i32),
    /// It was stopped when its time was over.
    Stopped,
    /// It had not ended when the run was cut off.
    CutOff,
}

/// Why a run did not take place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// A setting does not exist, or not with this value.
    #[error("{name}={value}: {why}")]
    Setting {
        /// Its name.
        name: String,
        /// The value asked for.
        value: i64,
        /// What is accepted.
        why: String,
    },
    /// A job may run on no core of the host.
    #[error("job \"{job}\": none of its cores is there; host \"{host}\" has {cores}, from 0 on")]
    Affinity {
        /// The job.
        job: String,
        /// The host.
        host: String,
        /// Its cores.
        cores: u16,
    },
    /// A line of the preparation failed.
    #[error("setup \"{line}\": {why}")]
    Preparation {
        /// As it was written.
        line: String,
        /// What it said.
        why: String,
    },
    /// A program goes on for ever while time stands still.
    #[error(
        "job \"{job}\" makes system calls without end and without time passing; \
         give it a limit (such as count=), or a host on which computing costs something"
    )]
    Endless {
        /// The job.
        job: String,
    },
}

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
    /// How many tasks the observer has met.
    met: usize,
}

impl Machine {
    fn new(setup: Setup) -> Result<Machine, SetupError> {
        let world = Rc::new(RefCell::new(World::new(setup)?));
        Ok(Machine { world, programs: Vec::new(), met: 0 })
    }

    /// Takes over the programs of new tasks.
    fn adopt(&mut self) {
        let spawned = std::mem::take(&mut self.world.borrow_mut().spawned);
        for (id, body) in spawned {
            let running = match body {
                Body::Running(running) => running,
                Body::Kernel(what) => run_kernel_task(what, Task::new(self.world.clone(), id)),
                Body::Program(program) => {
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
        world.preparation.finish(&mut jobs)?;
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

/// Whether the jobs can run on this host.
pub(crate) fn check_jobs(jobs: &[Job], host: &Host) -> Result<(), SetupError> {
    let homeless = jobs
        .iter()
        .find(|job| job.affinity.as_ref().is_some_and(|affinity| !affinity.fits(host.cores)));
    match homeless {
        None => Ok(()),
        Some(job) => Err(SetupError::Affinity {
            job: job.name.clone(),
            host: host.name.clone(),
            cores: host.cores,
        }),
    }
}

impl SetupError {
    pub(crate) fn setting(name: &str, value: i64, error: TunableError) -> SetupError {
        let why = match error {
            TunableError::Unknown { known } => {
                let hint = base::nearest(name, known.iter().copied());
                format!("no such setting{hint}; there are {}", known.join(", "))
            }
            TunableError::OutOfRange { min, max, unit } => {
                format!("accepted are {min} to {max} {unit}")
            }
        };
        SetupError::Setting { name: name.to_string(), value, why }
    }
}

impl Job {
    /// A job that starts at once in the root group, with nothing set.
    pub fn new(name: &str, program: Arc<dyn Program>) -> Job {
        Job {
            name: name.to_string(),
            program,
            cgroup: "/".to_string(),
            moves: Vec::new(),
            ioprio: Ioprio::NONE,
            nice: 0,
            affinity: None,
            start: Instant::ZERO,
            duration: None,
            background: false,
        }
    }
}
