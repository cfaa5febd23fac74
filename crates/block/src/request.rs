//! The request: what the queue holds and the scheduler orders; one or more merged bios.

use crate::bio::{BioId, Direction, Flags, Op, Origin, is_sync};
use crate::command::{HctxId, Tag};
use crate::flush::FlushSequence;
use crate::ioprio::Ioprio;
use crate::qos::mark::Mark;
use base::{Id, Instant, Sector, Sectors};

/// Handle of a request.
pub type RequestId = Id<Request>;

/// Where a request is; the guard checks every transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// Allocated, perhaps waiting in a plug.
    Allocated,
    /// With the scheduler, which may issue it once.
    Inserted,
    /// Left the scheduler; in the dispatch list, a software queue or the residual list.
    Dispatched,
    /// With the device.
    Issued,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// How; the union of what its bios carry.
    pub flags: Flags,
    /// First sector.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// Its priority field (rule owner-4); merged requests may take the better one.
    pub ioprio: Ioprio,
    /// Who allocated it.
    pub origin: Origin,
    /// When it was allocated.
    pub allocated_at: Instant,
    /// When the driver got it (the last time).
    pub issued_at: Instant,
    /// Where it is.
    pub state: RequestState,
    /// Scatter/gather entries.
    pub(crate) segments: u16,
    /// Its bios, in sector order.
    pub(crate) first_bio: Option<BioId>,
    pub(crate) last_bio: Option<BioId>,
    /// Never to be merged again (rule request-8: something did not fit).
    pub(crate) no_merge: bool,
    /// The driver has seen it (single queue: activated).
    pub(crate) started: bool,
    /// A requeued request: nothing is sorted in front of it (rule dispatch-list-5).
    pub(crate) soft_barrier: bool,
    /// The scheduler has bound this request and was not yet told that it is finished.
    pub(crate) bound: bool,
    /// Its way through the flush machinery, if it has one.
    pub(crate) flush: Option<FlushSequence>,
    /// Its data step counts as flush data in flight.
    pub(crate) in_flush_data: bool,
    /// A flush command of the machinery itself; has no bios.
    pub(crate) is_flush_command: bool,
    /// What it is to the policies before the scheduler.
    pub(crate) qos: Mark,
    /// The scheduler's tag (blk-mq).
    pub(crate) scheduler_tag: Option<u32>,
    /// The driver's tag.
    pub(crate) driver_tag: Option<Tag>,
    /// The hardware queue it belongs to (blk-mq).
    pub(crate) hctx: u16,
}

impl Request {
    /// The first sector behind it.
    pub fn end(&self) -> Sector {
        self.sector + self.sectors
    }

    /// Its data direction.
    pub fn direction(&self) -> Direction {
        self.op.direction()
    }

    /// Whether it is synchronous.
    pub fn is_sync(&self) -> bool {
        is_sync(self.op, self.flags)
    }

    /// The hardware queue it belongs to (blk-mq).
    pub fn hctx(&self) -> HctxId {
        HctxId(self.hctx)
    }

    /// Whether anything may still be merged into it.
    pub fn is_mergeable(&self) -> bool {
        !self.no_merge
            && !self.started
            && !self.soft_barrier
            && self.flush.is_none()
            && !self.is_flush_command
            && !self.flags.intersects(Flags::NOMERGE)
            && self.op != Op::Discard
    }
}
