//! Tasks of the kernel's own: which there are, and what they are called. What they do is said where
//! a run is put together.

use super::TaskSpec;
use block::{CgroupId, Ioprio, IoprioClass};

/// The priority of the task that commits (rule commit-1).
const COMMITTER: Ioprio = Ioprio { class: IoprioClass::BestEffort, level: 3 };

/// A task of the kernel's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelTask {
    /// It runs the queue whenever it is told to.
    Queue,
    /// It submits bios that have waited for limits of control groups.
    Releaser,
    /// It gathers statistics of control groups, and looks for old pages of the root.
    Unbound,
    /// It writes what a group has made dirty: the how many-th of its kind it is.
    Flusher(CgroupId, usize),
    /// It says of blocks that were written that they have their contents.
    Converter,
    /// It finishes asynchronous direct writes.
    Finisher,
    /// It starts kernel threads that others ask for.
    Starter,
    /// A thread for those that have something to do at times.
    Worker,
    /// It has one more of these started.
    Manager,
    /// It is there for the workers that finish when memory lacks, and never has anything to do.
    Rescuer,
    /// It commits transactions of ext4.
    Committer,
    /// It puts metadata of XFS in their places.
    Placer,
    /// It forces the log of XFS from time to time.
    Forcer,
    /// It takes away files of XFS that have no name any more.
    Inactivator,
    /// It puts checkpoints of XFS into log buffers.
    Pusher,
}

impl KernelTask {
    /// What such a task is given on a machine with such a disk and so many cores.
    pub fn spec(self, disk: &str, cores: u16) -> TaskSpec {
        let ioprio = if self == KernelTask::Committer { COMMITTER } else { Ioprio::NONE };
        TaskSpec { ioprio, ..TaskSpec::kernel_task(&self.comm(disk, cores)) }
    }

    /// Whether the threads of one pool do what such tasks have to do, each for whoever comes.
    pub fn is_in_pool(self) -> bool {
        use KernelTask::{Converter, Flusher, Pusher, Unbound};
        matches!(self, Unbound | Flusher(..) | Converter | Pusher)
    }

    /// As `comm` says, with the number of the pool of workers (observed on 6.12).
    fn comm(self, disk: &str, cores: u16) -> String {
        // Each core has four pools of its own; those of no core come behind them.
        let unbound = 4 * cores;
        match self {
            // kblockd's worker of the first core, of high priority; recordings of 4.19 have it too.
            KernelTask::Queue => "kworker/0:1H".to_string(),
            KernelTask::Unbound | KernelTask::Worker | KernelTask::Manager => {
                format!("kworker/u{unbound}:0")
            }
            KernelTask::Flusher(_, number) => format!("kworker/u{unbound}:{number}"),
            KernelTask::Converter | KernelTask::Pusher => format!("kworker/u{unbound}:1"),
            KernelTask::Releaser | KernelTask::Finisher | KernelTask::Inactivator => {
                "kworker/0:1".to_string()
            }
            KernelTask::Starter => "kthreadd".to_string(),
            KernelTask::Rescuer => format!("kworker/R-dio/{disk}"),
            KernelTask::Forcer => "kworker/0:2".to_string(),
            // The journal is the file with this number.
            KernelTask::Committer => format!("jbd2/{disk}-8"),
            KernelTask::Placer => format!("xfsaild/{disk}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_task_that_commits_has_a_priority_of_its_own() {
        let of = |task: KernelTask| task.spec("vda", 1).ioprio;
        let best_effort_3 = Ioprio { class: IoprioClass::BestEffort, level: 3 };
        assert_eq!(of(KernelTask::Committer), best_effort_3);
        let flusher = KernelTask::Flusher(CgroupId::ROOT, 1);
        let others = [KernelTask::Queue, flusher, KernelTask::Placer, KernelTask::Forcer];
        for task in others.into_iter().chain([KernelTask::Inactivator, KernelTask::Pusher]) {
            assert_eq!(of(task), Ioprio::NONE, "{task:?}");
        }
    }

    #[test]
    fn names_follow_the_disk_and_the_number_of_cores() {
        let name = |task: KernelTask, disk, cores| task.spec(disk, cores).name;
        assert_eq!(name(KernelTask::Committer, "vda", 1), "jbd2/vda-8");
        assert_eq!(name(KernelTask::Placer, "sdb", 1), "xfsaild/sdb");
        let flusher = KernelTask::Flusher(CgroupId::ROOT, 2);
        assert_eq!(name(flusher, "vda", 1), "kworker/u4:2");
        assert_eq!(name(flusher, "sdb", 8), "kworker/u32:2");
    }
}
