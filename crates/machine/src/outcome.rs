//! What came of a run.

use crate::observe::{CoreUse, TaskInfo};
use base::{Duration, Fingerprint, Instant};
use block::Input;
use block::scheduler::Cgroup;
use std::any::Any;
use std::rc::Rc;

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// What came of each job, in the order of the setup.
    pub jobs: Vec<JobOutcome>,
    /// When the last job ended, or the run was cut off.
    pub elapsed: Duration,
    /// When the jobs began, by the clock of the machine, which is what programs see; all other
    /// times count from there.
    pub begins: Instant,
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
    /// What programs counted themselves, and the number of their job.
    pub accounts: Vec<(usize, Rc<dyn Any>)>,
}

impl Outcome {
    /// Whether a job had not ended when the run did.
    pub fn is_cut_off(&self) -> bool {
        self.jobs.iter().any(|job| job.exit == Exit::CutOff)
    }
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
