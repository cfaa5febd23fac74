//! Workers that finish asynchronous direct writes, when their data are on the disk.
//!
//! Blocks that were set aside come to say that they have their contents, and what must be durable is
//! made so; only then is the write done. While a worker waits, others go on: of many such writes
//! that are done together, all wait for one commit. // observed on 6.12

use super::{Format, Written};
use crate::task::Task;
use crate::tasks::{KernelTask, Wait};
use crate::world::World;
use block::ContextId;
use std::collections::{BTreeMap, VecDeque};

/// What is left to do for a write whose data are on the disk.
#[derive(Clone, Debug)]
pub(crate) struct Finish {
    pub written: Written,
    /// Its blocks come to say that they have their contents.
    pub converts: bool,
    pub durable: Option<Durable>,
}

/// What must be durable before a write is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durable {
    /// The data, and what finding them needs (O_DSYNC).
    Data,
    /// All that is known of the file as well (O_SYNC).
    All,
}

/// Operations that are to be finished, and who does.
#[derive(Default)]
pub(super) struct Finishing {
    /// What is left to do for operations whose data are not on the disk yet.
    pending: BTreeMap<(ContextId, u64), Finish>,
    due: VecDeque<(ContextId, u64, Finish)>,
    /// Who had something to do last stands last, and is asked first.
    workers: Vec<ContextId>,
    /// Operations that are under way and will be due, or are not finished.
    begun: usize,
}

impl Task {
    /// An operation that is being submitted is not done when its data are on the disk.
    pub(super) fn finish_later(&self, number: u64, finish: Finish) {
        let mut world = self.world();
        world.io.get(self.id(), number).is_finished_later = true;
        let finishing = &mut world.files().finishing;
        finishing.pending.insert((self.id(), number), finish);
        finishing.begun += 1;
        let lacks_worker = finishing.workers.len() < finishing.begun;
        drop(world);
        if lacks_worker {
            let worker = self.world().spawn_kernel_task(KernelTask::Finisher);
            self.world().files().finishing.workers.push(worker);
        }
    }

    async fn finish(&self, finish: Finish) {
        let Written { file, blocks, .. } = finish.written.clone();
        if finish.converts {
            match self.format() {
                Format::Ext4 => self.convert_directly(file, blocks.clone()).await,
                Format::Xfs => self.convert_on_xfs(&finish.written).await,
            }
        }
        let Some(durable) = finish.durable else { return };
        let number = self.begin_besides();
        self.make_durable(number, file, blocks, durable == Durable::Data).await;
        self.end_besides(number);
    }
}

/// What such a worker does.
pub(crate) async fn run(task: Task) -> i32 {
    loop {
        task.notified().await;
        while let Some((owner, number, finish)) = {
            let mut world = task.world();
            world.files().finishing.due.pop_front()
        } {
            task.finish(finish).await;
            let mut world = task.world();
            world.files().finishing.begun -= 1;
            world.operation_done(owner, number, task.id());
        }
        let mut world = task.world();
        let workers = &mut world.files().finishing.workers;
        workers.retain(|it| *it != task.id());
        workers.push(task.id());
    }
}

impl World {
    /// The data of an operation are on the disk: a worker that has nothing to do finishes it.
    pub(crate) fn leave_to_finisher(&mut self, owner: ContextId, number: u64, by: ContextId) {
        let finishing = &mut self.files().finishing;
        let Some(finish) = finishing.pending.remove(&(owner, number)) else { return };
        finishing.due.push_back((owner, number, finish));
        let workers = finishing.workers.clone();
        let idle = workers.into_iter().rev().find(|it| self.tasks.wait(*it) == Wait::Notification);
        if let Some(idle) = idle {
            self.notify_by(by, idle);
        }
    }
}
