//! How threads of the kernel come to be: one task starts them all (kthreadd), for whoever asks.

use super::Task;
use crate::tasks::{KernelTask, Wait};
use std::future::poll_fn;
use std::task::Poll;

/// How often the kernel reads the clock to start a thread.
// observed on 6.12.117: commands behind the first request of a process of fio with libaio, on ext4
// and XFS, are so much later
const LOOKS_PER_THREAD: u64 = 3;

/// Starts a thread whenever it is told to.
pub(crate) async fn start(task: Task) -> i32 {
    loop {
        task.notified().await;
        loop {
            let Some(what) = task.world().next_wanted_thread() else { break };
            task.compute(task.costs().kernel_clock * LOOKS_PER_THREAD).await;
            let mut world = task.world();
            let thread = world.spawn_kernel_task(what);
            world.cpus().note_started(thread);
            world.notify(thread);
        }
    }
}

/// Has one more thread of the pool of workers started when none of them is idle, and waits for it.
// Observed on 6.12.117, sched_switch: u4:1, woken while the flusher waits as u4:0, wakes kthreadd;
// u4:2 wakes u4:1, which wakes u4:2 and then works.
pub(crate) async fn manage(task: Task) -> i32 {
    loop {
        until(&task, Wait::Notification, || task.world().cpus().lacks_worker()).await;
        task.world().want_thread(KernelTask::Worker);
        until(&task, Wait::Workers, || !task.world().cpus().lacks_worker()).await;
        let started = task.world().take_started_worker();
        started.into_iter().for_each(|thread| task.notify(thread));
    }
}

async fn until(task: &Task, wait: Wait, is_so: impl Fn() -> bool) {
    poll_fn(|_| {
        if is_so() {
            task.world().tasks().set_wait(task.id(), Wait::Nothing);
            return Poll::Ready(());
        }
        let mut world = task.world();
        task.wait(&mut world, wait)
    })
    .await;
}

/// A thread of the pool: it says that it is there, and belongs to the pool when it is woken again.
pub(crate) async fn work(task: Task) -> i32 {
    task.notified().await;
    task.world().worker_is_there(task.id());
    task.notified().await;
    task.world().cpus().worker_begins(task.id());
    loop {
        task.notified().await;
    }
}
