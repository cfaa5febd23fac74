//! Jobs that run several times at once, such as a program in each of several control groups.

use super::{PlannedJob, Planner};
use crate::error::Error;
use crate::experiment::job::{JobSpec, Work, parse_clones};
use crate::metrics::{Naming, Section};
use base::Duration;
use machine::Host;
use programs::fio::Fio;

/// What stands for the number of a clone, from one on, in its command and group.
const CLONE: &str = "{clone}";

impl Planner {
    /// A job with its clones, which count together in results, as those of a fio section do.
    pub(super) fn with_clones(&self, spec: &JobSpec, host: &Host) -> Result<PlannedJob, Error> {
        let Some(clones) = &spec.clones else { return self.job(spec, host) };
        let text = self.substituted(clones, &spec.place)?;
        let number = parse_clones(&text, &spec.place)?;
        let mut all = Vec::new();
        for clone in 1..=number {
            all.push(self.clone_of(spec, clone, host)?);
        }
        let mut first = all.remove(0);
        first.clones = all.into_iter().map(|planned| planned.job).collect();
        let name = spec.name.clone();
        first.naming = Naming::Sections(vec![Section { name, ramp: Duration::ZERO }]);
        first.named_by_task = true;
        Ok(first)
    }

    fn clone_of(&self, spec: &JobSpec, number: usize, host: &Host) -> Result<PlannedJob, Error> {
        let number = number.to_string();
        let of = |text: &String| text.replace(CLONE, &number);
        let work = match &spec.work {
            Work::Command(line) => Work::Command(of(line)),
            other => other.clone(),
        };
        let cgroup = spec.cgroup.as_ref().map(of);
        let mut planned = self.job(&JobSpec { work, cgroup, ..spec.clone() }, host)?;
        if planned.program.is::<Fio>() {
            let problem = "clones of fio, which has its own";
            return Err(Error::bad(&spec.place, problem, "numjobs"));
        }
        planned.job.name = format!("{}.{number}", spec.name);
        Ok(planned)
    }
}
