//! Who takes part in a run: sections of jobs by the names that results have for them, and tasks of
//! the kernel.

use crate::experiment::cgroup::absolute;
use crate::plan::{PlannedJob, Row};
use block::{ContextId, Ioprio, IoprioClass};
use machine::TaskInfo;
use std::collections::{BTreeMap, BTreeSet};

/// Who waits, or is waited for.
#[derive(Clone, Debug)]
pub struct Actor {
    /// What it is called in results, or by the kernel.
    pub name: String,
    /// Of a job, and no task of the kernel.
    pub is_job: bool,
    /// Its I/O priority.
    pub ioprio: Ioprio,
    /// The path of its control group.
    pub group: String,
    /// The weight of that.
    pub weight: u32,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Actors {
    list: Vec<Actor>,
    of: BTreeMap<ContextId, usize>,
}

/// What is called when no task is known.
pub const INTERRUPT: &str = "interrupt";
/// What is called that is done before the jobs begin.
const PREPARATION: &str = "preparation";

impl Actors {
    /// Those of a row; `callers` are the tasks that have made calls.
    pub fn of(row: &Row, tasks: &[TaskInfo], callers: &BTreeSet<ContextId>) -> Actors {
        let numbers: Vec<usize> = row.programs().map(|(number, _)| number).collect();
        let sections = Sections::of(row, &numbers, tasks, callers);
        let mut actors = Actors::default();
        for task in tasks {
            let job = task.job.map(|program| numbers.get(program).copied());
            let actor = match job {
                None => Actor::of_kernel(&task.name, task.ioprio),
                Some(None) => Actor::of_kernel(PREPARATION, task.ioprio),
                Some(Some(number)) => {
                    let name = sections.name(number, &row.jobs[number], &task.name);
                    Actor::of_job(row, &row.jobs[number], name, task.ioprio)
                }
            };
            let place = actors.list.iter().position(|it| it.name == actor.name);
            let place = place.unwrap_or_else(|| {
                actors.list.push(actor);
                actors.list.len() - 1
            });
            actors.of.insert(task.context, place);
        }
        actors
    }

    /// What a task is called.
    pub fn name(&self, task: ContextId) -> &str {
        self.of.get(&task).map_or(INTERRUPT, |place| self.list[*place].name.as_str())
    }

    /// Whoever is called so.
    pub fn named(&self, name: &str) -> Option<&Actor> {
        self.list.iter().find(|it| it.name == name)
    }

    /// Those that are jobs or sections of them.
    pub fn jobs(&self) -> impl Iterator<Item = &Actor> {
        self.list.iter().filter(|it| it.is_job)
    }

    /// The tasks of whoever is called so.
    pub fn tasks(&self, name: &str) -> impl Iterator<Item = ContextId> {
        let place = self.list.iter().position(|it| it.name == name);
        self.of.iter().filter(move |(_, its)| Some(**its) == place).map(|(task, _)| *task)
    }
}

impl Actor {
    fn of_kernel(name: &str, ioprio: Ioprio) -> Actor {
        let (name, group) = (name.to_string(), String::new());
        Actor { name, is_job: false, ioprio, group, weight: 0 }
    }

    fn of_job(row: &Row, planned: &PlannedJob, name: String, ioprio: Ioprio) -> Actor {
        let group = absolute(&planned.job.cgroup);
        let of_group = row.cgroups.iter().find(|it| it.is_at(&group));
        let weight = planned.weight.or(of_group.and_then(|it| it.weight));
        let weight = weight.unwrap_or(row.default_weight());
        Actor { name, is_job: true, ioprio, group, weight }
    }

    /// Its priority's place, the most urgent first; none counts as the middle of best effort.
    pub fn rank(&self) -> u32 {
        let class = match self.ioprio.class {
            IoprioClass::RealTime => 0,
            IoprioClass::Idle => 2,
            _ => 1,
        };
        let level = if self.ioprio == Ioprio::NONE { 4 } else { u32::from(self.ioprio.level) };
        class * 8 + if class == 2 { 0 } else { level }
    }
}

/// The sections of each job that make calls.
struct Sections(BTreeMap<usize, BTreeSet<String>>);

impl Sections {
    fn of(
        row: &Row,
        numbers: &[usize],
        tasks: &[TaskInfo],
        callers: &BTreeSet<ContextId>,
    ) -> Sections {
        let mut all: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for task in tasks.iter().filter(|it| callers.contains(&it.context)) {
            let Some(number) = task.job.and_then(|program| numbers.get(program)) else { continue };
            let section = row.jobs[*number].naming.section_of(&task.name);
            all.entry(*number).or_default().insert(section.to_string());
        }
        Sections(all)
    }

    /// What a task of a job counts for. Helpers make no calls, and carry out those of the only one
    /// that does.
    fn name(&self, number: usize, planned: &PlannedJob, task: &str) -> String {
        let sections = self.0.get(&number);
        match sections.map_or(0, BTreeSet::len) {
            0 | 1 => {
                let only = sections.and_then(|it| it.first());
                planned.result_name(only.map_or(task, String::as_str), true)
            }
            _ => planned.result_name(planned.naming.section_of(task), false),
        }
    }
}
