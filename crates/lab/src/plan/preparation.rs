//! The setup lines of an experiment: what is done before its jobs begin.
//!
//! A line is what a job may run, or `drop_caches`. What lines do is not measured; the state that
//! they leave is what jobs find.

use super::{PlannedJob, Planner};
use crate::error::Error;
use crate::experiment::job::{JobSpec, Work};
use block::Ioprio;
use machine::{Host, Native};

/// Lets clean pages go, as `echo 3 >/proc/sys/vm/drop_caches` does.
pub const DROP_CACHES: &str = "drop_caches";

const ACCEPTED: &str =
    "drop_caches, or a command as in a job, without words that say as whom it runs";

impl Planner {
    /// The lines that do something: before the first program nothing is cached and nothing dirty.
    pub(super) fn preparation(&self, host: &Host) -> Result<Vec<PlannedJob>, Error> {
        let lines = self.experiment.setup.iter();
        let does_nothing =
            |line: &&JobSpec| matches!(&line.work, Work::Command(line) if is_idle(line));
        lines.skip_while(does_nothing).map(|line| self.line(line, host)).collect()
    }

    fn line(&self, spec: &JobSpec, host: &Host) -> Result<PlannedJob, Error> {
        if let Work::Command(line) = &spec.work
            && self.substituted(line, &spec.place)?.trim() == DROP_CACHES
        {
            return Ok(drops_caches());
        }
        let planned = self.job(spec, host)?;
        let job = &planned.job;
        let as_itself = job.ioprio == Ioprio::NONE && job.affinity.is_none() && job.nice == 0;
        if !as_itself || job.duration.is_some() || job.cgroup != "/" {
            let problem = format!("a prefix in setup (\"{}\")", spec.work);
            return Err(Error::bad(&spec.place, problem, ACCEPTED));
        }
        Ok(planned)
    }
}

fn is_idle(line: &str) -> bool {
    matches!(line.trim(), DROP_CACHES | "sync")
}

fn drops_caches() -> PlannedJob {
    let program = Native::new(DROP_CACHES, |task| async move {
        task.drop_caches();
        0
    });
    PlannedJob { line: Some(DROP_CACHES.to_string()), ..PlannedJob::new(DROP_CACHES, program) }
}

impl PlannedJob {
    /// As a machine prepares itself with it.
    pub fn as_line(&self) -> programs::Line {
        let text = self.line.clone().unwrap_or_else(|| self.job.name.clone());
        programs::Line { text, program: self.program.clone() }
    }
}
