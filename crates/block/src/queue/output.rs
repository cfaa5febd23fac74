//! What comes out of a queue: what a step did, and what is to be done about it.

use crate::bio::{ContextId, Flags, Op};
use crate::command::{Command, CommandOp};
use crate::request::Request;
use base::{Duration, Sector, Sectors};

/// The kind of an atomic piece of work, for whoever charges processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// A bio enters: it is split, and merged if it can be. A step that turns out to need a request
    /// of its own was [`Work::Allocate`].
    Bio,
    /// A request is allocated and built, for a bio that enters or after a sleep.
    Allocate,
    /// A request is given to the scheduler (or to a software queue).
    Insert,
    /// The scheduler is asked for requests.
    Dispatch,
    /// The driver gives a command to the device.
    Issue,
    /// A command has finished.
    Complete,
    /// Submitters are told.
    Deliver,
    /// Book-keeping that costs nothing worth charging.
    Housekeeping,
}

impl Work {
    /// All kinds.
    pub const ALL: [Work; 8] = [
        Work::Bio,
        Work::Allocate,
        Work::Insert,
        Work::Dispatch,
        Work::Issue,
        Work::Complete,
        Work::Deliver,
        Work::Housekeeping,
    ];

    /// Whether the piece runs under the scheduler's lock (the queue lock of the single queue).
    pub const fn takes_lock(self) -> bool {
        matches!(self, Work::Bio | Work::Insert | Work::Dispatch | Work::Complete)
    }
}

/// Kinds of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Works(u8);

impl Works {
    /// No kind.
    pub const NONE: Works = Works(0);

    /// All kinds.
    pub const ALL: Works = Works(u8::MAX);

    /// These kinds and one more.
    pub const fn with(self, work: Work) -> Works {
        Works(self.0 | 1 << work as u8)
    }

    /// Whether a kind is one of these.
    pub const fn contains(self, work: Work) -> bool {
        self.0 >> work as u8 & 1 == 1
    }
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A piece of work; there may be more.
    Did(Work),
    /// Nothing: the context sleeps until [`Output::Wake`] names it.
    Asleep,
    /// Nothing: the context has nothing left to do.
    Idle,
}

/// What the queue wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Give this command to the device.
    Issue(Command),
    /// Tell the submitter that its bio is done.
    BioDone {
        /// Its mark.
        token: u64,
        /// Who submitted it.
        context: ContextId,
    },
    /// A NOWAIT bio was not accepted, because its submitter would have had to sleep.
    WouldBlock {
        /// Its mark.
        token: u64,
        /// Who submitted it.
        context: ContextId,
    },
    /// This context need not sleep any more.
    Wake(ContextId),
    /// Let a kernel worker submit the bios that need not wait for limits of control groups any more
    /// ([`begin_release`](super::RequestQueue::begin_release)).
    Release,
    /// Let a kernel worker call [`run`](super::RequestQueue::run) after this time.
    RunWorker {
        /// Zero: as soon as a core is free.
        after: Duration,
    },
}

/// A request as the device will see it.
pub(super) fn command_of(request: &Request) -> Command {
    let tag = request.driver_tag.expect("an issued request has a tag");
    if request.is_flush_command {
        let (sector, sectors) = (Sector(0), Sectors(0));
        return Command { tag, op: CommandOp::Flush, sector, sectors, fua: false };
    }
    let op = match request.op {
        Op::Read => CommandOp::Read,
        Op::Write => CommandOp::Write,
        Op::Discard => CommandOp::Discard,
    };
    let fua = request.flags.intersects(Flags::FUA);
    Command { tag, op, sector: request.sector, sectors: request.sectors, fua }
}
