//! Tasks of the kernel's own that are there from the beginning.

use super::World;
use crate::tasks::KernelTask;
use base::Instant;
use block::ContextId;
use fs::Format;

/// Seconds between two forces of the log of XFS (xfssyncd_centisecs).
const PERIOD: u64 = 30;

impl World {
    /// Creates them; those of the file system are in a control group if somebody moved them there.
    pub fn spawn_kernel_tasks(&mut self, cgroup_of_journal: Option<&str>) {
        let worker = self.spawn_kernel_task(KernelTask::Queue);
        self.storage.set_worker(worker);
        // It belongs to the high-priority workers (kworker/0:0H). // observed on 6.12
        self.cpus.make_urgent(worker);
        self.begin_statistics();
        let flushes_root = self.begin_kernel_timers();
        if flushes_root || self.statistics_due.is_some() {
            self.unbound = Some(self.spawn_kernel_task(KernelTask::Unbound));
        }
        self.begin_pool();
        let Some(format) = self.storage.format() else { return };
        let mut tasks = match format {
            Format::Ext4 => self.spawn_tasks_of_ext4(),
            Format::Xfs => self.spawn_tasks_of_xfs(),
        };
        let converter = self.spawn_kernel_task(KernelTask::Converter);
        self.storage.files().set_converter(converter);
        tasks.push(converter);
        if self.storage.files().rules().starts_direct_workers {
            self.starter();
        }
        let Some(path) = cgroup_of_journal.filter(|path| !path.is_empty()) else { return };
        let cgroup = self.define_cgroup(path, None);
        for task in tasks {
            self.tasks.enter_cgroup(task, cgroup);
        }
    }

    /// There is a task that submits what has waited for limits.
    pub fn need_releaser(&mut self) {
        if self.storage.releaser().is_none() {
            let releaser = self.spawn_kernel_task(KernelTask::Releaser);
            self.storage.set_releaser(releaser);
        }
    }

    fn spawn_tasks_of_ext4(&mut self) -> Vec<ContextId> {
        let committer = self.spawn_kernel_task(KernelTask::Committer);
        self.storage.ext4().set_committer(committer);
        vec![committer]
    }

    fn spawn_tasks_of_xfs(&mut self) -> Vec<ContextId> {
        let placer = self.spawn_kernel_task(KernelTask::Placer);
        let forcer = self.spawn_kernel_task(KernelTask::Forcer);
        let (_, at) = self.next_force(None);
        self.clock.set_alarm(forcer, at);
        let inactivator = self.spawn_kernel_task(KernelTask::Inactivator);
        let pusher = self.spawn_kernel_task(KernelTask::Pusher);
        self.storage.xfs().set_tasks(placer, inactivator, pusher);
        vec![placer, forcer, inactivator, pusher]
    }

    /// The tick in which the log of XFS is forced next, after it was in another or was mounted, and
    /// when that begins.
    pub fn next_force(&self, since: Option<u64>) -> (u64, Instant) {
        let wheel = self.storage.cache().wheel();
        let tick = wheel.of_period(since, self.guest.boot.ticks_to_mount, PERIOD);
        (tick, self.start_of_tick(tick))
    }

    /// The task that commits wakes when the running transaction of ext4 is old enough.
    pub fn arm_committer(&mut self) {
        let fs = self.storage.ext4();
        let Some(expires) = fs.journal.running.as_ref().map(|it| it.expires.alarm) else { return };
        let committer = fs.committer();
        if !self.clock.has_alarm(committer) {
            let at = self.start_of_tick(expires);
            self.clock.set_alarm(committer, at);
        }
    }
}
