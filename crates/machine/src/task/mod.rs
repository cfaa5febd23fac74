//! A task: what a program sees of the machine.
//!
//! A program is an `async` function over a [`Task`]: straight-line code in virtual time. Between
//! two awaits no time passes. It may await only what a task offers, one thing at a time; programs
//! that want several things at once use an asynchronous queue or spawn tasks, as on Linux.
//!
//! ```
//! # use machine::task::{OpenFlags, Task};
//! async fn read_it_all(task: Task) -> i32 {
//!     let disk = task.open("/dev/sda", OpenFlags::direct()).expect("the disk is there");
//!     let mut offset = 0;
//!     while let Ok(length @ 1..) = task.pread(&disk, offset, 1 << 20).await {
//!         offset += length;
//!     }
//!     task.print("all read");
//!     0
//! }
//! ```
//!
//! * Time: [`Task::now`], [`Task::sleep`], [`Task::sleep_until`], [`Task::compute`].
//! * The disk: [`Task::open`], [`Task::close`]; [`Task::pread`], [`Task::pwrite`],
//!   [`Task::fsync`], [`Task::discard`], one at a time; [`Task::advise`], [`Task::drop_cached`];
//!   [`Task::async_queue`] for many in flight; [`Task::transfer`] for exactly what a trace says.
//! * Randomness: [`Task::rng`].
//! * Other tasks: [`Task::spawn`] and [`Task::join`]; [`Task::notified`] and [`Task::notify`].
//! * Being somebody else: [`Task::set_ioprio`], [`Task::set_nice`], [`Task::enter_cgroup`],
//!   [`Task::set_affinity`].
//! * Saying something: [`Task::print`].

mod jobs;
mod kernel;
mod locks;
mod metadata;
mod operations;
mod owners;
pub(crate) mod threads;

pub use crate::core_set::CoreSet;
pub use crate::file::{Errno, File, OpenFlags, Transfer};
pub use cache::readahead::Advice;
pub(crate) use locks::Lock;

use crate::host::Costs;
use crate::tasks::{Body, TaskSpec, Wait};
use crate::world::World;
use base::{Duration, Instant, Rng};
use block::{CgroupId, ContextId, Facts, Ioprio, Origin, PlugFlush};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

/// A handle of a task, for its program.
#[derive(Clone)]
pub struct Task {
    world: Rc<RefCell<World>>,
    id: ContextId,
}

/// Whose io_context a new task uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoContextOf {
    /// Its own, as after fork and for ordinary threads.
    Itself,
    /// Its parent's, as after clone with CLONE_IO.
    Parent,
}

impl Task {
    pub(crate) fn new(world: Rc<RefCell<World>>, id: ContextId) -> Task {
        Task { world, id }
    }

    /// Its number.
    pub fn id(&self) -> ContextId {
        self.id
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.world().clock().now()
    }

    /// What the disk says of itself.
    pub fn disk(&self) -> Facts {
        self.queue().limits().facts.clone()
    }

    /// A stream of random numbers that depends only on the seed of the run and on the name, such
    /// as `program/dd/0`.
    pub fn rng(&self, name: &str) -> Rng {
        Rng::stream(self.world().seed(), name)
    }

    /// What the clock says, which may be behind.
    pub fn clock(&self) -> Instant {
        let mut world = self.world();
        world.clock().read()
    }

    /// Sleeps for a time.
    pub async fn sleep(&self, time: Duration) {
        let until = self.clock().saturating_add(time);
        self.sleep_until(until).await;
    }

    /// Sleeps for a time and, where timers are waited for together, for as much longer as they may
    /// be late.
    pub async fn sleep_with_slack(&self, time: Duration) {
        let slack = self.world().timer_slack();
        if !slack.is_zero() {
            let from = self.clock().saturating_add(time);
            self.world().clock().may_wake(self.id, from);
        }
        self.sleep(time + slack).await;
        self.world().clock().may_wake(self.id, Instant::FAR_FUTURE);
    }

    /// Sleeps until a point in time; not at all if it is past.
    pub async fn sleep_until(&self, until: Instant) {
        self.sleep_for(Wait::Alarm, until).await;
    }

    /// Pauses until a point in time, because too much is dirty.
    pub(crate) async fn pause_for_dirty(&self, until: Instant) {
        self.sleep_for(Wait::DirtyPause, until).await;
    }

    async fn sleep_for(&self, why: Wait, until: Instant) {
        let mut sleeps = false;
        poll_fn(|_| {
            let mut world = self.world();
            // A timer may end it somewhat early.
            let has_slept = sleeps && !world.clock().has_alarm(self.id);
            if has_slept || world.clock().now() >= until {
                return Poll::Ready(());
            }
            sleeps = true;
            let first = world.clock().early(until).unwrap_or(until);
            world.clock().sleep(self.id, first, until);
            self.wait(&mut world, why)
        })
        .await;
    }

    /// Computes: occupies a core for a time, and waits for one before if need be.
    pub async fn compute(&self, time: Duration) {
        if !time.is_zero() {
            self.occupy_core(time).await;
        }
    }

    /// Looks at the clock until so much time has passed, whoever has the core meanwhile.
    pub async fn look_for_as_long_as(&self, time: Duration) {
        let looks = |world: &mut World| {
            world.look_for_as_long_as(self.id, time);
            true
        };
        self.leave_core_if(looks).await;
    }

    async fn occupy_core(&self, time: Duration) {
        self.leave_core_if(|world| !world.compute(self.id, time)).await;
    }

    /// Is stopped for a moment by deferred work of the kernel, so that others may go on before it.
    pub async fn be_disturbed(&self) {
        let puts_off = |world: &mut World| {
            world.disturb(self.id);
            true
        };
        self.leave_core_if(puts_off).await;
    }

    /// Looks, in the middle of a system call, whether others are to have the core, and leaves it to
    /// them. Elsewhere in the kernel a task is not stopped.
    pub async fn give_way(&self) {
        self.leave_core_if(|world| world.gives_way(self.id)).await;
    }

    /// Does something once, and does not go on before its turn comes again if the answer is yes.
    async fn leave_core_if(&self, act: impl Fn(&mut World) -> bool) {
        let mut is_done = false;
        poll_fn(|_| {
            if std::mem::replace(&mut is_done, true) || !act(&mut self.world()) {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }

    /// Looks for so many files of the system by their paths.
    pub async fn look_for_files(&self, files: u32) {
        let cost = self.costs().path * u64::from(files);
        self.compute(cost).await;
    }

    /// Looks at the clock so often.
    pub async fn look_at_clock(&self, times: u32) {
        let cost = self.costs().clock * u64::from(times);
        self.compute(cost).await;
    }

    /// Creates a task of the same job, control group, priority and affinity. It starts when its
    /// turn comes.
    pub fn spawn<F>(
        &self,
        name: &str,
        io_context: IoContextOf,
        program: impl FnOnce(Task) -> F,
    ) -> ContextId
    where
        F: Future<Output = i32> + 'static,
    {
        self.spawn_for(name, io_context, None, program)
    }

    /// Waits until a child exits, and returns its exit status.
    pub async fn join(&self, child: ContextId) -> i32 {
        poll_fn(|_| {
            let mut world = self.world();
            match world.tasks().status(child) {
                Some(status) => Poll::Ready(status),
                None => self.wait(&mut world, Wait::Exit(child)),
            }
        })
        .await
    }

    /// Waits until another task calls [`Task::notify`] for this one. A permit given before is
    /// enough; several count as one.
    pub async fn notified(&self) {
        self.notified_until(Instant::FAR_FUTURE).await;
    }

    /// Like [`Task::notified`], but no longer than until a point in time; false when nobody
    /// notified.
    pub async fn notified_until(&self, until: Instant) -> bool {
        poll_fn(|_| {
            let mut world = self.world();
            if world.tasks().take_permit(self.id) {
                world.clock().cancel_alarm(self.id);
                return Poll::Ready(true);
            }
            if world.clock().now() >= until {
                return Poll::Ready(false);
            }
            if until < Instant::FAR_FUTURE {
                world.clock().sleep(self.id, until, until);
            }
            self.wait(&mut world, Wait::Notification)
        })
        .await
    }

    /// Like [`Task::notified_until`], with a timer that has no slack, such as that of `timerfd`.
    pub async fn notified_until_sharp(&self, until: Instant) -> bool {
        self.world().clock().be_sharp(self.id, true);
        let is_notified = self.notified_until(until).await;
        self.world().clock().be_sharp(self.id, false);
        is_notified
    }

    /// Lets another task go on that listens, now or later.
    pub fn notify(&self, other: ContextId) {
        self.world().notify(other);
    }

    /// Sets the explicit I/O priority of the task, and so of its io_context.
    pub fn set_ioprio(&self, ioprio: Ioprio) {
        let mut world = self.world();
        world.tasks().set_ioprio(self.id, ioprio);
        world.define_io_context(self.id);
    }

    /// Sets the nice value, from which schedulers derive a priority where none is set.
    pub fn set_nice(&self, nice: i8) {
        let mut world = self.world();
        world.cpus().set_nice(self.id, nice.clamp(-20, 19));
        world.define_io_context(self.id);
    }

    /// Moves the task to a control group, which is made if need be; sets its weight if one is
    /// given.
    pub fn enter_cgroup(&self, path: &str, weight: Option<u32>) -> CgroupId {
        let mut world = self.world();
        let cgroup = world.define_cgroup(path, weight);
        world.tasks().enter_cgroup(self.id, cgroup);
        cgroup
    }

    /// Confines the task to some cores from the next time it is placed on one; false, and nothing
    /// changes, when the host has none of them.
    pub fn set_affinity(&self, cores: CoreSet) -> bool {
        let mut world = self.world();
        let fits = cores.fits(world.cpus().count());
        if fits {
            world.cpus().set_affinity(self.id, Some(cores));
        }
        fits
    }

    /// The cores that the task may use, if not all.
    pub fn affinity(&self) -> Option<CoreSet> {
        self.world().cpus().affinity(self.id).cloned()
    }

    /// The task may use these cores again, or all.
    pub fn restore_affinity(&self, affinity: Option<CoreSet>) {
        self.world().cpus().set_affinity(self.id, affinity);
    }

    /// What computing costs here.
    pub fn costs(&self) -> Costs {
        self.world().cpus().costs()
    }

    /// As whom the task submits bios now.
    pub(crate) fn origin(&self, world: &mut World) -> Origin {
        let cpu = world.cpus().core_of(self.id);
        let (io_context, _) = world.tasks().io_context(self.id);
        Origin { context: self.id, io_context, cgroup: world.tasks().cgroup(self.id), cpu }
    }

    pub(crate) fn spawn_for<F>(
        &self,
        name: &str,
        io_context: IoContextOf,
        acts_for: Option<ContextId>,
        program: impl FnOnce(Task) -> F,
    ) -> ContextId
    where
        F: Future<Output = i32> + 'static,
    {
        let mut world = self.world();
        let (shared, like) = world.tasks().io_context(self.id);
        let (nice, affinity) =
            (world.cpus().nice(self.id), world.cpus().affinity(self.id).cloned());
        let spec = TaskSpec {
            name: name.to_string(),
            job: world.tasks().job(self.id),
            io_context: (io_context == IoContextOf::Parent).then_some(shared),
            cgroup: world.tasks().cgroup(self.id),
            ioprio: like.ioprio,
            nice,
            affinity,
            acts_for,
        };
        drop(world);
        self.start(spec, program)
    }

    /// Starts a task that is given this.
    pub(crate) fn start<F>(&self, spec: TaskSpec, program: impl FnOnce(Task) -> F) -> ContextId
    where
        F: Future<Output = i32> + 'static,
    {
        let child = self.world().spawn(spec);
        let running = Box::pin(program(Task::new(self.world.clone(), child)));
        self.world().give_body(child, Body::Running(running));
        child
    }
}

/// The kernel worker that ends writes of XFS's log and runs the queue, whenever it is told to
/// (kworker/0:1H).
pub(crate) async fn worker(task: Task) -> i32 {
    loop {
        task.notified().await;
        {
            let mut world = task.world();
            world.end_log_writes(task.id);
            let (now, cpu) = (world.clock().now(), world.cpus().core_of(task.id));
            world.queue().run(now, task.id, cpu);
        }
        task.drive().await;
    }
}

/// The worker that submits what has waited for limits of control groups, under one plug.
pub(crate) async fn release(task: Task) -> i32 {
    loop {
        task.notified().await;
        task.queue().begin_release();
        task.queue().start_plug(task.id);
        while task.release_one() {
            task.drive().await;
        }
        task.finish_plug(PlugFlush::Explicit).await;
    }
}

impl Task {
    fn release_one(&self) -> bool {
        let mut world = self.world();
        let (now, origin) = (world.clock().now(), self.origin(&mut world));
        world.queue().release(now, origin)
    }
}

/// The worker that gathers statistics of control groups (rule timers-6).
pub(crate) async fn gather(task: Task) -> i32 {
    loop {
        task.notified().await;
        let takes = task.world().guest().boot.statistics;
        task.compute(takes).await;
    }
}
