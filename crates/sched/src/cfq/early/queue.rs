//! A queue: the requests of one process (synchronous), or of one priority (asynchronous) (rules
//! cfq-early-bind-1 and cfq-early-choose).

use super::super::queue::Class;
use super::EarlyCfq;
use super::seek::Seeks;
use crate::choice::choose;
use base::{Id, List, SectorSet};
use block::{ContextId, Cx, Request, RequestId};

/// Handle of a queue.
pub(super) type QueueId = Id<Queue>;

/// A queue of requests.
pub(super) struct Queue {
    /// Who made it, or took it over last.
    pub pid: ContextId,
    pub sync: bool,
    pub class: Class,
    pub level: u8,
    /// The priority of its owner changed, or was never looked at.
    pub prio_changed: bool,
    /// Where it stands: rank of its class, and key. It does while it has requests.
    pub place: Option<(u8, i64)>,
    /// Its process is waited for.
    pub wait_request: bool,
    /// Its next request goes although the turn is over (2.6.32).
    pub must_dispatch: bool,
    /// It was allowed one request beyond the limit of allocations in this turn.
    pub must_alloc: bool,
    /// The age of its oldest request was looked at in this turn.
    pub fifo_checked: bool,
    pub idle_window: bool,
    /// None of the turn's requests has completed.
    pub slice_new: bool,
    pub slice_end: i64,
    pub slice_resid: i64,
    /// Requests of the turn.
    pub slice_dispatch: u32,
    pub sorted: SectorSet<Request>,
    pub fifo: List<Request>,
    pub next: Option<RequestId>,
    pub meta_pending: u32,
    /// Requests that left it and are not done.
    pub dispatched: u32,
    /// Requests that were allocated and not freed.
    pub allocated: u32,
    /// Processes, chains of merges, and requests that refer to it.
    pub refs: u32,
    /// Of its requests (2.6.32).
    pub seeks: Seeks,
    /// Several processes share it (2.6.32).
    pub coop: bool,
    /// Since when it is seeky although shared.
    pub seeky_since: Option<i64>,
    /// The queue that its processes will use from now on.
    pub merges_into: Option<QueueId>,
    /// The level among whose queues it stands by where it goes on, if it does.
    pub prio_place: Option<u8>,
}

impl Queue {
    /// A queue that nobody refers to yet.
    pub fn new(pid: ContextId, sync: bool) -> Queue {
        Queue {
            pid,
            sync,
            class: Class::BestEffort,
            level: 4,
            prio_changed: true,
            place: None,
            wait_request: false,
            must_dispatch: false,
            must_alloc: false,
            fifo_checked: false,
            idle_window: false,
            slice_new: false,
            slice_end: 0,
            slice_resid: 0,
            slice_dispatch: 0,
            sorted: SectorSet::default(),
            fifo: List::new(),
            next: None,
            meta_pending: 0,
            dispatched: 0,
            allocated: 0,
            refs: 0,
            seeks: Seeks::default(),
            coop: false,
            seeky_since: None,
            merges_into: None,
            prio_place: None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    /// References that are not those of requests.
    pub fn process_refs(&self) -> u32 {
        self.refs - self.allocated
    }
}

impl EarlyCfq {
    /// Rules cfq-early-choose: the better of two requests, seen from where the driver is.
    pub(super) fn nearer(
        &self,
        cx: &Cx<'_>,
        one: Option<RequestId>,
        two: Option<RequestId>,
    ) -> Option<RequestId> {
        choose(cx, &self.settings.ways, one, two, self.last_position)
    }

    /// Rules cfq-early-choose: what follows when `rq`, which was next, leaves.
    pub(super) fn successor(&self, cx: &Cx<'_>, id: QueueId, rq: RequestId) -> Option<RequestId> {
        let sorted = &self.queues[id].sorted;
        let first = || sorted.first().filter(|it| *it != rq);
        self.nearer(cx, sorted.next(rq).or_else(first), sorted.previous(rq))
    }
}
