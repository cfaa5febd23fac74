//! The inputs of a queue, recorded so that a run can be replayed exactly.
//!
//! A queue is a function of its inputs. Whoever wants to repeat a run switches recording on, and
//! later applies the inputs in order to a queue that was set up the same way: every event comes out
//! the same.

use crate::bio::{Bio, CgroupId, ContextId, IoContextId, Origin};
use crate::command::Tag;
use crate::kernel::Hierarchy;
use crate::plug::PlugFlush;
use crate::scheduler::{Cgroup, IoContext};
use crate::segments::Segments;
use crate::throttle::IoMax;
use alloc::string::String;
use alloc::vec::Vec;
use base::Instant;

/// One call of a method of [`RequestQueue`](crate::RequestQueue) that changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// [`RequestQueue::define_io_context`](crate::RequestQueue::define_io_context).
    IoContext(IoContextId, IoContext),
    /// [`RequestQueue::exit_io_context`](crate::RequestQueue::exit_io_context).
    Exit(Instant, ContextId, IoContextId),
    /// [`RequestQueue::define_cgroup`](crate::RequestQueue::define_cgroup).
    Cgroup(CgroupId, Cgroup),
    /// [`RequestQueue::remove_cgroup`](crate::RequestQueue::remove_cgroup).
    RemoveCgroup(Instant, ContextId, CgroupId),
    /// [`RequestQueue::prepare_limits`](crate::RequestQueue::prepare_limits).
    PrepareLimits(u64, Hierarchy),
    /// [`RequestQueue::note_mount`](crate::RequestQueue::note_mount).
    Mount(Instant),
    /// [`RequestQueue::limit_cgroup`](crate::RequestQueue::limit_cgroup).
    LimitCgroup(Instant, CgroupId, IoMax),
    /// [`RequestQueue::begin_release`](crate::RequestQueue::begin_release).
    BeginRelease,
    /// [`RequestQueue::release`](crate::RequestQueue::release).
    Release(Instant, Origin),
    /// [`RequestQueue::set`](crate::RequestQueue::set) that was accepted.
    Set(Instant, String, i64),
    /// [`RequestQueue::switch`](crate::RequestQueue::switch), with the name of the scheduler
    /// (empty: none).
    Switch(Instant, ContextId, String),
    /// [`RequestQueue::note_dirty_pause`](crate::RequestQueue::note_dirty_pause).
    DirtyPause(Instant),
    /// [`RequestQueue::throttle_by_default`](crate::RequestQueue::throttle_by_default).
    ThrottleByDefault(Instant),
    /// [`RequestQueue::start_plug`](crate::RequestQueue::start_plug).
    StartPlug(ContextId),
    /// [`RequestQueue::submit_scattered`](crate::RequestQueue::submit_scattered).
    Submit(Instant, Bio, Segments),
    /// [`RequestQueue::finish_plug`](crate::RequestQueue::finish_plug).
    FinishPlug(Instant, ContextId, u16, PlugFlush),
    /// [`RequestQueue::complete`](crate::RequestQueue::complete).
    Complete(Instant, ContextId, u16, Tag),
    /// [`RequestQueue::run`](crate::RequestQueue::run).
    Run(Instant, ContextId, u16),
    /// [`RequestQueue::leave_run`](crate::RequestQueue::leave_run).
    LeaveRun(ContextId),
    /// [`RequestQueue::timer`](crate::RequestQueue::timer).
    Timer(Instant, ContextId, u16),
    /// [`RequestQueue::requeue`](crate::RequestQueue::requeue).
    Requeue(Instant, ContextId, u16, Tag),
    /// [`RequestQueue::step`](crate::RequestQueue::step).
    Step(Instant, ContextId),
}

/// The recorder inside a queue.
#[derive(Default)]
pub(crate) struct Recorder {
    is_on: bool,
    inputs: Vec<Input>,
}

impl Recorder {
    /// Begins to keep inputs.
    pub fn start(&mut self) {
        *self = Recorder { is_on: true, inputs: Vec::new() };
    }

    /// Keeps an input, if recording.
    #[inline]
    pub fn push(&mut self, input: impl FnOnce() -> Input) {
        if self.is_on {
            self.keep(input());
        }
    }

    #[cold]
    fn keep(&mut self, input: Input) {
        self.inputs.push(input);
    }

    /// Ends recording and hands out what was kept.
    pub fn take(&mut self) -> Vec<Input> {
        core::mem::take(self).inputs
    }
}
