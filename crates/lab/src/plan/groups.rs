//! The control groups of an experiment: what is said of them, in one place each, and where that
//! holds.

use super::{PlannedJob, Planner, Row};
use crate::error::Error;
use crate::experiment::cgroup::{CgroupSpec, LIMITS, absolute, check_path};
use crate::experiment::{Setting, keys};
use crate::world;

const ROOT: &str = "/";
/// The file that enables sharing by cost, and that for weights there.
const COST: (&str, &str) = ("io.cost.qos", "io.weight");
/// The scheduler that has weights of its own, and the file for them.
const BFQ: (&str, &str) = ("bfq", "io.bfq.weight");

impl Row {
    /// Whether the guest shares the disk by what requests cost.
    pub fn shares_by_cost(&self) -> bool {
        let files = self.cgroups.iter().flat_map(|group| &group.files);
        let mut costs = files.filter(|it| it.name == COST.0);
        costs.any(|it| it.value.split_whitespace().any(|word| word == "enable=1"))
    }

    /// Whether anybody takes notice of the weights of groups.
    pub fn honours_weights(&self) -> bool {
        self.blkio && (self.spec.honours_weights() || self.shares_by_cost())
    }

    /// Files for weights that are written and that nobody takes notice of, with the reason.
    pub fn idle_weights(&self) -> Vec<(&'static str, &'static str)> {
        let has =
            |name: &str| self.cgroups.iter().flat_map(|it| &it.files).any(|it| it.name == name);
        let by_cost = (COST.1, "it is for sharing by cost (--set io.cost.qos=enable=1)");
        let by_bfq = (BFQ.1, "it is for bfq");
        let idle = [(by_cost, self.shares_by_cost()), (by_bfq, self.spec.name == BFQ.0)];
        let idle = idle.into_iter().filter(|(file, is_used)| has(file.0) && !is_used);
        idle.map(|(file, _)| file).collect()
    }
}

impl Planner {
    /// The groups that are described, and those of which jobs or settings say something.
    pub(super) fn cgroups(
        &self,
        jobs: &[PlannedJob],
        settings: &[Setting],
    ) -> Result<Vec<CgroupSpec>, Error> {
        let mut groups = self.experiment.cgroups.clone();
        for file in groups.iter_mut().flat_map(|group| &mut group.files) {
            file.value = self.substituted(&file.value, &file.place)?;
        }
        for (planned, spec) in jobs.iter().zip(&self.experiment.jobs) {
            let path = &planned.job.cgroup;
            if let Some(weight) = planned.weight {
                let group = group_at(&mut groups, path, &spec.place);
                let known = *group.weight.get_or_insert(weight);
                if known != weight {
                    let problem = format!("weight {weight} of {path}, which has {known}");
                    return Err(Error::bad(&spec.place, problem, "one weight for each group"));
                }
            }
            for file in &spec.files {
                if path == ROOT {
                    let problem =
                        format!("{} of job {}, which is in no group", file.name, spec.name);
                    return Err(Error::bad(&file.place, problem, "cgroup=PATH as well"));
                }
                let file = self.with_values(file)?;
                add_file(group_at(&mut groups, path, &spec.place), file)?;
            }
        }
        for setting in settings {
            let setting = self.with_values(setting)?;
            let (path, name) = self.meant(&setting, &groups, jobs)?;
            let place = setting.place.clone();
            add_file(group_at(&mut groups, &path, &place), Setting { name, ..setting })?;
        }
        groups.iter().try_for_each(|group| self.check_files_of(group))?;
        Ok(groups)
    }

    /// A setting with the values of axes in its own.
    fn with_values(&self, setting: &Setting) -> Result<Setting, Error> {
        let value = self.substituted(&setting.value, &setting.place)?;
        Ok(Setting { value, ..setting.clone() })
    }

    /// The group and the file that a setting means: without a group, the root where only that has
    /// such a file, otherwise the only group there is.
    fn meant(
        &self,
        setting: &Setting,
        groups: &[CgroupSpec],
        jobs: &[PlannedJob],
    ) -> Result<(String, String), Error> {
        let (group, file) = Setting::group_file(&setting.name).expect("only such are asked for");
        let mut paths: Vec<String> = groups.iter().map(|it| absolute(&it.path)).collect();
        paths.extend(jobs.iter().map(|it| it.job.cgroup.clone()));
        paths.retain(|path| path != ROOT);
        paths.sort();
        paths.dedup();
        let path = match (group, &paths[..]) {
            (Some(group), _) if absolute(group) == ROOT => ROOT.to_string(),
            (Some(group), paths) if paths.iter().any(|it| is_at_or_below(it, group)) => {
                absolute(group)
            }
            (None, _) if keys::is_of_root(file) => ROOT.to_string(),
            (None, [only]) => only.clone(),
            (_, paths) => {
                let problem = match group {
                    Some(group) => format!("no job is in {} or below it", absolute(group)),
                    None => format!("{file} of which group"),
                };
                let all = paths.iter().map(|path| format!("{}/{file}", &path[1..]));
                let all: Vec<String> = all.collect();
                let accepted = match all.is_empty() {
                    true => "a job in a control group: cgroup=PATH".to_string(),
                    false => all.join(", "),
                };
                return Err(Error::bad(&setting.place, problem, accepted));
            }
        };
        Ok((path, file.to_string()))
    }

    /// Files of groups are written in the world `linux` alone, and some only in the root.
    fn check_files_of(&self, group: &CgroupSpec) -> Result<(), Error> {
        for file in &group.files {
            if file.name != LIMITS {
                let others = "weight, leaf_weight and their _device, and io.max";
                self.refuse_simulated(file, others)?;
            }
            if keys::is_of_root(&file.name) && absolute(&group.path) != ROOT {
                let problem = format!("{} of {}", file.name, absolute(&group.path));
                let accepted =
                    format!("{} of the root, which alone has it: --set {0}=…", file.name);
                return Err(Error::bad(&file.place, problem, accepted));
            }
        }
        Ok(())
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
        let specs = || jobs.iter().zip(&self.experiment.jobs);
        if let Some((_, spec)) = specs().find(|(planned, _)| !planned.clones.is_empty()) {
            return Err(Error::bad(&spec.place, "clones in the world linux", "--world sim"));
        }
        if let Some((_, spec)) = specs().find(|(planned, _)| !planned.job.moves.is_empty()) {
            let problem = "a job that moves in the world linux";
            return Err(Error::bad(&spec.place, problem, "--world sim"));
        }
        let named = specs().map(|(planned, spec)| (&planned.job.cgroup, &spec.place));
        let described = groups.iter().map(|it| (&it.path, &it.place));
        named.chain(described).try_for_each(|(path, place)| check_path(path, place))
    }

    /// In version 2 of control groups, whoever has children with controllers has no tasks.
    pub(super) fn check_tasks(
        &self,
        groups: &[CgroupSpec],
        jobs: &[PlannedJob],
        is_version_2: bool,
    ) -> Result<(), Error> {
        if !(self.is_judged() && is_version_2 && self.experiment.blkio) {
            return Ok(());
        }
        let described = groups.iter().map(|it| absolute(&it.path));
        let all: Vec<String> =
            described.chain(jobs.iter().map(|it| it.job.cgroup.clone())).collect();
        for (planned, spec) in jobs.iter().zip(&self.experiment.jobs) {
            let path = &planned.job.cgroup;
            let is_below = |it: &&String| *it != path && is_at_or_below(it, path);
            if let Some(child) = all.iter().find(is_below).filter(|_| path != ROOT) {
                let problem = format!(
                    "job {} is in {path}, which has {child} below it, and version 2 of control \
                     groups allows that to none but the root",
                    spec.name
                );
                let accepted = format!("a group of its own, such as cgroup={path}/{}", spec.name);
                return Err(Error::bad(&spec.place, problem, accepted));
            }
        }
        Ok(())
    }
}

/// Whether a path leads to a group or into it.
fn is_at_or_below(path: &str, group: &str) -> bool {
    let rest = path.strip_prefix(absolute(group).as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The group at a path, which is there from then on.
fn group_at<'g>(groups: &'g mut Vec<CgroupSpec>, path: &str, place: &str) -> &'g mut CgroupSpec {
    let at = groups.iter().position(|it| absolute(&it.path) == *path).unwrap_or_else(|| {
        groups.push(CgroupSpec::new(path, place));
        groups.len() - 1
    });
    &mut groups[at]
}

/// A file is written once.
fn add_file(group: &mut CgroupSpec, file: Setting) -> Result<(), Error> {
    match group.files.iter().find(|it| it.name == file.name) {
        Some(known) if known.value == file.value => Ok(()),
        Some(known) => {
            let (path, name) = (absolute(&group.path), &file.name);
            let problem = format!("{name}={} of {path}, which has {}", file.value, known.value);
            Err(Error::bad(&file.place, problem, "one value for each file of a group"))
        }
        None => {
            group.files.push(file);
            Ok(())
        }
    }
}
