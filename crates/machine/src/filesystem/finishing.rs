//! Workers that finish asynchronous direct writes, when their data are on the disk.
//!
//! Blocks that were set aside come to say that they have their contents, and what must be durable
//! is made so; only then is the write done. While a worker waits, others go on: of many such writes
//! that are done together, all wait for one commit (observed on 6.12).

use super::FileIo;
use crate::task::Task;
use crate::tasks::{KernelTask, Wait};
use fs::Format;
use fs::files::{Durable, Finish, FirstWorkers};
use std::future::poll_fn;
use std::task::Poll;

/// What such a worker does.
pub(crate) async fn run(task: Task) -> i32 {
    task.notified().await;
    if task.world().worker_started(task.id()) {
        task.notified().await;
    }
    loop {
        task.files().finishing().wakes(task.id());
        while task.world().has_to_finish(task.id()) {
            if task.files().finishing().next_idle().is_none() {
                start_one_more(&task).await;
                continue;
            }
            task.files().finishing().works(task.id());
            while task.world().has_to_finish(task.id()) {
                finish_next(&task).await;
            }
        }
        task.files().finishing().rests(task.id());
        task.notified().await;
    }
}

async fn finish_next(task: &Task) {
    let next = task.files().finishing().take();
    let (owner, number, finish) = next.expect("something is due");
    let file = finish.written.file;
    FileIo::of(task).finish(finish).await;
    let mut world = task.world();
    for waiting in world.files().finishing().end(file) {
        world.wake_for_workers(task.id(), waiting);
    }
    world.operation_done(owner, number, task.id());
}

/// The last worker that had nothing to do waits until there is one more.
async fn start_one_more(task: &Task) {
    if !task.files().rules().starts_direct_workers {
        return task.world().spawn_finishers(1);
    }
    task.files().finishing().want(task.id());
    task.world().want_thread(KernelTask::Finisher);
    let started = poll_fn(|_| {
        let mut world = task.world();
        match world.files().finishing().take_started() {
            Some(started) => Poll::Ready(started),
            None => task.wait(&mut world, Wait::Workers),
        }
    });
    let started = started.await;
    task.files().finishing().rests(started);
    task.notify(started);
}

/// Says that it is there, and later that it has stopped, if it is to.
pub(crate) async fn rescue(task: Task) -> i32 {
    task.world().thread_started(task.id());
    loop {
        task.notified().await;
        task.world().thread_woken(task.id());
    }
}

impl FileIo<'_> {
    /// Before an asynchronous direct request. The first after a mount waits until two other tasks
    /// have run, and so goes behind all that are ready (observed on 6.1, 6.12 and 7.3.4).
    pub(super) async fn start_workers(&self) {
        let starts_them = self.files().rules().starts_direct_workers;
        if !starts_them || self.files().first_workers().are_there() {
            return;
        }
        self.lock_workers().await;
        self.world().want_thread(KernelTask::Rescuer);
        let thread = self.until_workers(|workers| workers.take_thread()).await;
        let is_late = self.files().first_workers().begin();
        let is_spare = is_late && self.files().rules().stops_spare_workers;
        if is_spare {
            self.files().first_workers().stop(thread, self.id());
        }
        self.notify(thread);
        self.unlock_workers();
        if is_spare {
            self.until_workers(|it| (!it.is_stopping(thread)).then_some(())).await;
            self.lock_workers().await;
            self.unlock_workers();
        }
    }

    async fn lock_workers(&self) {
        self.until_workers(|it| it.lock(self.id()).then_some(())).await;
    }

    /// Waits until something can be had of the workers.
    async fn until_workers<T>(&self, have: impl Fn(&mut FirstWorkers) -> Option<T>) -> T {
        poll_fn(|_| {
            let mut world = self.world();
            match have(world.files().first_workers()) {
                Some(it) => Poll::Ready(it),
                None => self.wait(&mut world, Wait::Workers),
            }
        })
        .await
    }

    fn unlock_workers(&self) {
        let mut world = self.world();
        if let Some(next) = world.files().first_workers().unlock() {
            world.wake_for_workers(self.id(), next);
        }
    }

    /// An operation that is being submitted is not done when its data are on the disk.
    pub(super) fn finish_later(&self, number: u64, finish: Finish) {
        let mut world = self.world();
        world.io().get(self.id(), number).is_finished_later = true;
        world.files().finishing().begin(self.id(), number, finish);
        let lacking = world.files().finishing().lacking();
        world.spawn_finishers(lacking);
    }

    /// Waits until no write of a file is left that workers finish.
    // Divergence: writes that they do not finish, and reads, are not waited for.
    pub(super) async fn until_finished(&self, file: usize) {
        poll_fn(|_| {
            let mut world = self.world();
            match world.files().finishing().is_finished(file, self.id()) {
                true => Poll::Ready(()),
                false => self.wait(&mut world, Wait::Workers),
            }
        })
        .await
    }

    async fn finish(&self, finish: Finish) {
        let written = finish.written;
        if finish.converts {
            match self.format() {
                Format::Ext4 => {
                    self.on_ext4().convert_directly(written.file, written.blocks.clone()).await;
                }
                Format::Xfs => {
                    let (blocks, end) = (written.blocks.clone(), written.size);
                    self.on_xfs().finish_write(written.file, blocks, end).await;
                }
            }
        }
        let Some(durable) = finish.durable else { return };
        let number = self.begin_besides();
        let only_data = durable == Durable::Data;
        self.make_durable(number, written.file, written.blocks, only_data).await;
        self.end_besides(number);
    }
}
