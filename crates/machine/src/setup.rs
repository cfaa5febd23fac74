//! What a run depends on: the kernel, the disk, the host, the jobs.

use crate::core_set::CoreSet;
use crate::host::Host;
use crate::jobs::{ControlGroup, JobPlan, Move};
use crate::program::Program;
use crate::rules::Rules;
use base::{Bytes, Duration, Instant};
use block::{Attach, Ioprio, Kernel, TunableError};
use device::Device;
use fs::Mount;
use std::sync::Arc;

/// The memory of a machine when nobody says otherwise (assumed).
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
    /// When the run ends even if jobs are not done, by the I/O calls that jobs have made.
    pub most_calls: Option<u64>,
    /// Whether events are made; without them an observer sees nothing.
    pub events: bool,
    /// Whether messages of the scheduler are among them.
    pub messages: bool,
    /// Whether all is told that only those who ask are told of: tasks that sleep, wake and run, and
    /// what is withheld while the disk is busy. It changes nothing else, and nothing of it is in
    /// the fingerprint.
    pub tells_tasks: bool,
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
            memory: DEFAULT_MEMORY,
            mount: None,
            cgroups: Vec::new(),
            blkio: true,
            cgroup_writeback: Rules::of(kernel).cgroup_writeback,
            preparation: None,
            jobs,
            seed: 1,
            until: None,
            most_calls: None,
            events: false,
            messages: false,
            tells_tasks: false,
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

/// Whether the jobs can run on this host.
pub(crate) fn check_jobs(jobs: &[Job], host: &Host) -> Result<(), SetupError> {
    let homeless = jobs.iter().find(|job| {
        job.affinity.as_ref().is_some_and(|affinity| !affinity.fits(host.machine.cores))
    });
    match homeless {
        None => Ok(()),
        Some(job) => Err(SetupError::Affinity {
            job: job.name.clone(),
            host: host.name.clone(),
            cores: host.machine.cores,
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
    /// How it is run, and what.
    pub(crate) fn into_parts(self) -> (JobPlan, Arc<dyn Program>) {
        let plan = JobPlan {
            name: self.name,
            cgroup: self.cgroup,
            moves: self.moves,
            ioprio: self.ioprio,
            nice: self.nice,
            affinity: self.affinity,
            start: self.start,
            duration: self.duration,
            background: self.background,
        };
        (plan, self.program)
    }

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
