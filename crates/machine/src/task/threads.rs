//! How threads of the kernel come to be: one task starts them all (kthreadd), for whoever asks.

use super::Task;
use crate::cpus::Pool;
use crate::tasks::{KernelTask, Wait};
use std::future::poll_fn;
use std::task::Poll;

/// Starts a thread whenever it is told to.
pub(crate) async fn start(task: Task) -> i32 {
    loop {
        task.notified().await;
        loop {
            // The world is not to be held on to while the thread is being started.
            let Some(what) = task.world().next_wanted_thread() else { break };
            task.compute(task.costs().thread).await;
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
        until(&task, Wait::Notification, |pool| pool.lacks_thread().then_some(())).await;
        task.world().want_thread(KernelTask::Worker);
        let started = until(&task, Wait::Workers, Pool::take_started).await;
        task.notify(started);
    }
}

/// Waits until something can be had of the pool. It gives the manager a core without a word.
async fn until<T>(task: &Task, wait: Wait, have: impl Fn(&mut Pool) -> Option<T>) -> T {
    poll_fn(|_| {
        let mut world = task.world();
        match have(world.cpus().pool()) {
            Some(it) => {
                world.tasks().set_wait(task.id(), Wait::Nothing);
                Poll::Ready(it)
            }
            None => task.wait(&mut world, wait),
        }
    })
    .await
}

/// A thread of the pool: it says that it is there, and belongs to the pool when it is woken again.
pub(crate) async fn work(task: Task) -> i32 {
    task.notified().await;
    task.world().worker_is_there(task.id());
    task.notified().await;
    task.world().cpus().pool().add_running(task.id());
    loop {
        task.notified().await;
    }
}
