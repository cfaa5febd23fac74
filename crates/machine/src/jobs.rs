//! Jobs as the machine knows them: when they run, and as whom. What they run is not its concern.

use crate::core_set::CoreSet;
use base::{Duration, Instant};
use block::throttle::IoMax;
use block::{ContextId, Ioprio};

/// A control group, what it weighs and what it may do, where that is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlGroup {
    /// Its path from the root.
    pub path: String,
    /// Against its siblings.
    pub weight: Option<u32>,
    /// Its own tasks against its children.
    pub leaf_weight: Option<u32>,
    /// What it may do at most.
    pub limits: IoMax,
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

/// How a job is run.
pub(crate) struct JobPlan {
    pub name: String,
    pub cgroup: String,
    pub moves: Vec<Move>,
    pub ioprio: Ioprio,
    pub nice: i8,
    pub affinity: Option<CoreSet>,
    pub start: Instant,
    pub duration: Option<Duration>,
    pub background: bool,
}

/// What has become of a job.
pub(crate) struct JobState {
    pub plan: Option<JobPlan>,
    pub name: String,
    pub main: Option<ContextId>,
    pub started: Option<Instant>,
    pub ended: Option<(Instant, i32)>,
    pub was_stopped: bool,
    pub moves: Vec<Move>,
    pub background: bool,
    pub messages: Vec<String>,
}

impl JobState {
    /// A job that has not started.
    pub fn new(plan: JobPlan) -> JobState {
        JobState {
            name: plan.name.clone(),
            moves: Vec::new(),
            background: plan.background,
            plan: Some(plan),
            main: None,
            started: None,
            ended: None,
            was_stopped: false,
            messages: Vec::new(),
        }
    }
}
