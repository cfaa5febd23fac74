//! As whom a process runs, what it opens, and which of its requests have a priority of their own.

use base::Rng;
use block::{ContextId, Ioprio};

use super::super::job::{CommandPriority, Direction, FileKind, Job, PriorityShare};
use super::files::flags;
use machine::task::{CoreSet, File, Task};

/// Takes on the identity that the job asks for.
pub(super) fn become_process(task: &Task, job: &Job) {
    let process = &job.process;
    if process.nice != 0 {
        task.set_nice(process.nice);
    }
    if let Some((class, level)) = process.ioprio {
        task.set_ioprio(ioprio(class, level));
    }
    if let Some(cgroup) = &process.cgroup {
        task.enter_cgroup(cgroup, process.cgroup_weight);
    }
}

/// Creates the task of a process on the cores that its job allows. Affinity counts whenever a task
/// is placed, so a child must have it from its spec.
pub(super) fn spawn_confined(
    task: &Task,
    job: &Job,
    spawn: impl FnOnce() -> ContextId,
) -> ContextId {
    let before = task.affinity();
    if let Some(cpus) = &job.process.cpus {
        let cores = cpus.iter().filter_map(|cpu| u16::try_from(*cpu).ok());
        if !task.set_affinity(CoreSet::of(cores)) {
            task.print(format!("fio: {}: the host has none of its cpus_allowed", job.name));
        }
    }
    let child = spawn();
    task.restore_affinity(before);
    child
}

/// Opens the files of a job; those of a file system are opened later, when they are needed.
pub(super) fn open(task: &Task, job: &Job) -> Result<Vec<File>, String> {
    let files = job.files.list.iter().map(|file| {
        let path = match file.kind {
            FileKind::File => "/dev/null",
            // Files that were laid out are extents of the disk.
            FileKind::LaidOut => "/dev/disk",
            FileKind::Device | FileKind::Sink => &file.name,
        };
        task.open(path, flags(job))
            .map_err(|errno| format!("fio: failed to open {}: {errno}", file.name))
    });
    files.collect()
}

/// The priorities that single requests of a process have (`cmdprio`).
pub(super) struct Priorities {
    priorities: Option<[CommandPriority; 2]>,
    chance: Rng,
}

impl Priorities {
    pub fn new(job: &Job, chance: Rng) -> Priorities {
        Priorities { priorities: job.process.command_priority.clone(), chance }
    }

    /// The priority of a request of some length; `None` for that of the process.
    pub fn draw(&mut self, direction: Direction, length: u64) -> Option<Ioprio> {
        let priority = self.priorities.as_ref()?.get(direction as usize)?;
        let draw = self.chance.below(100) as u8;
        match &priority.which {
            PriorityShare::Percent(percent) => {
                (draw < *percent).then(|| ioprio(priority.class, priority.level))
            }
            PriorityShare::BySize(splits) => {
                let mut end = 0;
                let mut of_size = splits.iter().filter(|split| split.size.0 == length);
                let split = of_size.find(|split| {
                    end += split.percent;
                    draw < end
                })?;
                let (class, level) = split.priority.unwrap_or((priority.class, priority.level));
                Some(ioprio(class, level))
            }
        }
    }
}

fn ioprio(class: u8, level: u8) -> Ioprio {
    Ioprio::from_bits(u16::from(class) << 13 | u16::from(level))
}
