//! The control groups of an experiment: what is said of them, in one place each, and where that
//! holds.

use super::{PlannedJob, Planner};
use crate::error::Error;
use crate::experiment::cgroup::{CgroupSpec, absolute};
use crate::world;

impl Planner {
    /// The groups that are described, and those that jobs give a weight.
    pub(super) fn cgroups(&self, jobs: &[PlannedJob]) -> Result<Vec<CgroupSpec>, Error> {
        let mut groups = self.experiment.cgroups.clone();
        for (planned, spec) in jobs.iter().zip(&self.experiment.jobs) {
            let Some(weight) = planned.weight else { continue };
            let path = &planned.job.cgroup;
            let Some(group) = groups.iter_mut().find(|it| absolute(&it.path) == *path) else {
                groups.push(CgroupSpec::of_weight(path, weight, &spec.place));
                continue;
            };
            let known = *group.weight.get_or_insert(weight);
            if known != weight {
                let problem = format!("weight {weight} of {path}, which has {known}");
                return Err(Error::bad(&spec.place, problem, "one weight for each group"));
            }
        }
        Ok(groups)
    }

    /// In the world `linux` no scheduler has leaf weights, and jobs stay where they start.
    pub(super) fn check_groups(
        &self,
        groups: &[CgroupSpec],
        jobs: &[PlannedJob],
    ) -> Result<(), Error> {
        if !self.is_judged() {
            return Ok(());
        }
        if let Some(group) = groups.iter().find(|it| it.needs_version_1()) {
            let problem = format!("leaf_weight of {} in the world linux", absolute(&group.path));
            let accepted = format!("weight with kernels {}, or --world sim", world::judges());
            return Err(Error::bad(&group.place, problem, accepted));
        }
        let several = jobs.iter().zip(&self.experiment.jobs);
        if let Some((_, spec)) = several.into_iter().find(|(planned, _)| !planned.clones.is_empty())
        {
            return Err(Error::bad(&spec.place, "clones in the world linux", "--world sim"));
        }
        let moving = jobs.iter().zip(&self.experiment.jobs);
        match moving.into_iter().find(|(planned, _)| !planned.job.moves.is_empty()) {
            Some((_, spec)) => {
                let problem = "a job that moves in the world linux";
                Err(Error::bad(&spec.place, problem, "--world sim"))
            }
            None => Ok(()),
        }
    }
}
