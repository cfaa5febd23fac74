//! What a context (task, interrupt, worker) has still to do in the block layer.

use super::multi::RunMulti;
use super::{PlugFlush, Work};
use crate::bio::BioId;
use crate::command::{Command, Tag};
use crate::plug::Plug;
use crate::request::RequestId;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use base::Instant;

/// One level of a context's stack: an activity that is not finished.
#[derive(Clone, Copy, Debug)]
pub(super) enum Frame {
    /// A bio (or the rest of a split one) enters.
    Submit(BioId),
    /// A bio waits for a policy to let it through.
    Throttle(BioId),
    /// A request is allocated for a bio; `attempt` counts failures since the last sleep.
    Allocate { bio: BioId, attempt: u8 },
    /// A request goes to the task's plug, which may have been flushed to make room for it.
    PlugAdd { rq: RequestId, flushed: bool },
    /// A request goes to the scheduler, without a plug.
    Insert(RequestId),
    /// The plug of a single bio ends.
    EndPlug,
    /// The task's plug is to be flushed.
    FlushPlug(PlugFlush),
    /// The list of a flushed plug is being inserted; `depth` requests in all.
    Flushing { why: PlugFlush, depth: u32 },
    /// The device is unplugged.
    Unplug { by_timer: bool },
    /// The single queue is run.
    RunSingle,
    /// A hardware queue is run.
    RunMulti(RunMulti),
    /// Without a scheduler: a request is offered to the driver directly.
    DirectIssue(RequestId),
    /// A command has finished.
    Complete(Tag),
    /// A command was given back.
    Requeue(Tag),
    /// The worker inserts what was requeued, and runs the queue.
    RunRequeued,
    /// The submitters of what was finished are told.
    Deliver,
    /// A timer has fired.
    Timer,
}

/// Whether a context waits for a request, or for leave to have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sleep {
    #[default]
    Awake,
    Waiting,
    Woken,
}

/// The state of a context.
#[derive(Default)]
pub(super) struct ContextWork {
    /// What it has to do, innermost last.
    pub stack: Vec<Frame>,
    /// Its plug.
    pub plug: Plug,
    /// Requests of a flushed plug that are not inserted yet.
    pub flushing: VecDeque<RequestId>,
    /// Requests taken from the scheduler in the run under way (blk-mq).
    pub collected: VecDeque<RequestId>,
    /// Commands of the list under way that the device has not been told of (blk-mq).
    pub unkicked: Vec<Command>,
    /// Chains of bios that are done and whose submitters are not told yet, with the time at which
    /// the device got them.
    pub done: VecDeque<(BioId, Instant)>,
    /// Single queue: since when it may allocate a batch beyond the limit, and how many are left.
    pub batch: Option<(Instant, u32)>,
    /// blk-mq: what the scheduler said how many tags the request may use that is not allocated yet.
    pub limit: Option<Option<u32>>,
    /// How often it read the clock when it found writeback throttled.
    pub looks_for_policy: u32,
    sleep: Sleep,
}

impl ContextWork {
    /// The context waits from now on.
    pub fn fall_asleep(&mut self) {
        self.sleep = Sleep::Waiting;
        self.plug.forget_time();
    }

    /// Whether it waits and was not woken.
    pub fn is_asleep(&self) -> bool {
        self.sleep == Sleep::Waiting
    }

    /// Somebody woke it.
    pub fn wake(&mut self) {
        if self.sleep == Sleep::Waiting {
            self.sleep = Sleep::Woken;
        }
    }

    /// Whether it was woken since it last asked.
    pub fn take_woken(&mut self) -> bool {
        core::mem::take(&mut self.sleep) == Sleep::Woken
    }
}

impl RunMulti {
    /// What the next step of this run will do.
    pub fn work(self, state: &ContextWork) -> Work {
        if self.is_issuing() && !state.collected.is_empty() { Work::Issue } else { Work::Dispatch }
    }
}
