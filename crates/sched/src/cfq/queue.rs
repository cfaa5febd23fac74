//! A queue: the requests of one process (synchronous), or of one priority in a group
//! (asynchronous), and which of them goes next (rules cfq-bind-3 and cfq-choose).

use super::{GroupId, Kind};
use base::{Id, List, Sector, SectorSet};
use block::{ContextId, IoprioClass, Request, RequestId};
use core::fmt;

/// Handle of a queue.
pub(super) type QueueId = Id<Queue>;

/// The class of service, in the order in which the kernel numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    BestEffort = 0,
    RealTime = 1,
    Idle = 2,
}

/// A queue of requests.
#[derive(Clone)]
pub(super) struct Queue {
    /// Who made it, or took it over last.
    pub pid: ContextId,
    pub group: GroupId,
    pub sync: bool,
    pub class: Class,
    pub level: u8,
    /// What they are without a boost.
    pub own: (Class, u8),
    /// It is among the busy queues.
    pub on_rr: bool,
    /// Its process is waited for.
    pub wait_request: bool,
    /// Its next request goes whatever the limits say.
    pub must_dispatch: bool,
    /// It was allowed one request beyond the limit of allocations in this turn.
    pub must_alloc: bool,
    /// The age of its oldest request was looked at in this turn.
    pub fifo_checked: bool,
    pub idle_window: bool,
    /// The priority of its owner changed, or was never looked at.
    pub prio_changed: bool,
    /// None of the turn's requests has completed.
    pub slice_new: bool,
    /// Several processes share it.
    pub coop: bool,
    /// They shall be separated.
    pub split_coop: bool,
    /// It had four requests at once.
    pub deep: bool,
    /// Its group is kept busy until the next request arrives.
    pub wait_busy: bool,
    /// Where it stands: key, class and kind of the tree.
    pub place: Option<(i64, Class, Kind)>,
    /// The level among whose queues it stands by where it goes on, if it does.
    pub prio_place: Option<u8>,
    pub sorted: SectorSet<Request>,
    pub fifo: List<Request>,
    pub next: Option<RequestId>,
    /// Requests that were allocated and not freed.
    pub allocated: u32,
    /// Processes, chains of merges, and requests that refer to it.
    pub refs: u32,
    pub dispatch_start: i64,
    pub slice_start: i64,
    pub slice_end: i64,
    pub allocated_slice: i64,
    pub slice_dispatch: u32,
    pub slice_resid: i64,
    pub sectors: u64,
    pub prio_pending: u32,
    /// Requests that left it and are not done.
    pub dispatched: u32,
    /// A bit for each of its last requests: whether it was far from the one before.
    pub seek_history: u32,
    pub last_request_end: Sector,
    /// Where it stands was wrong once: one behind it had the turn.
    pub unsure: bool,
    /// The queue that its processes will use from now on.
    pub merges_into: Option<QueueId>,
}

impl Queue {
    /// A queue that nobody refers to yet.
    pub fn new(pid: ContextId, group: GroupId, sync: bool) -> Queue {
        Queue {
            pid,
            group,
            sync,
            class: Class::BestEffort,
            level: 4,
            own: (Class::BestEffort, 4),
            on_rr: false,
            wait_request: false,
            must_dispatch: false,
            must_alloc: false,
            fifo_checked: false,
            idle_window: false,
            prio_changed: true,
            slice_new: false,
            coop: false,
            split_coop: false,
            deep: false,
            wait_busy: false,
            place: None,
            prio_place: None,
            sorted: SectorSet::default(),
            fifo: List::new(),
            next: None,
            allocated: 0,
            refs: 0,
            dispatch_start: 0,
            slice_start: 0,
            slice_end: 0,
            allocated_slice: 0,
            slice_dispatch: 0,
            slice_resid: 0,
            sectors: 0,
            prio_pending: 0,
            dispatched: 0,
            seek_history: 0,
            last_request_end: Sector(0),
            unsure: false,
            merges_into: None,
        }
    }

    /// How it is called in messages.
    pub fn name(&self) -> QueueName {
        QueueName { pid: self.pid.0, sync: self.sync, noidle: self.kind() == Kind::SyncNoIdle }
    }

    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    /// Which kind of workload it is.
    pub fn kind(&self) -> Kind {
        match (self.sync, self.idle_window) {
            (false, _) => Kind::Async,
            (true, false) => Kind::SyncNoIdle,
            (true, true) => Kind::Sync,
        }
    }

    /// The tree it stands in, or would.
    pub fn tree(&self) -> (Class, Kind) {
        match self.place {
            Some((_, class, kind)) => (class, kind),
            None => (self.class, self.kind()),
        }
    }

    /// Its turn has lasted as long as it may.
    pub fn is_slice_used(&self, now: i64) -> bool {
        !self.slice_new && now >= self.slice_end
    }

    /// Metadata that others wait for is served no worse than by default.
    pub fn boost(&mut self, on: bool) {
        (self.class, self.level) = self.own;
        if on {
            if self.class == Class::Idle {
                self.class = Class::BestEffort;
            }
            self.level = self.level.min(4);
        }
    }

    /// More than 4 of the last 32 requests were far from the one before.
    pub fn is_seeky(&self) -> bool {
        self.seek_history.count_ones() > 4
    }

    /// References that are not those of requests.
    pub fn process_refs(&self) -> u32 {
        self.refs - self.allocated
    }
}

/// The name of a queue in messages (rule cfq-message-1).
#[derive(Clone, Copy)]
pub(super) struct QueueName {
    pid: u32,
    sync: bool,
    noidle: bool,
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sync = if self.sync { 'S' } else { 'A' };
        let noidle = if self.noidle { 'N' } else { ' ' };
        write!(f, "cfq{}{sync}{noidle}", self.pid)
    }
}

/// The class and level a priority means; one that is not set is derived (rule cfq-bind-6).
pub(super) fn class_of(context: &block::scheduler::IoContext) -> (Class, u8) {
    use block::scheduler::CpuPolicy;
    let derived = block::Ioprio::from_nice(context.nice).level;
    match (context.ioprio.class, context.policy) {
        (IoprioClass::RealTime, _) => (Class::RealTime, context.ioprio.level),
        (IoprioClass::BestEffort, _) => (Class::BestEffort, context.ioprio.level),
        (IoprioClass::Idle, _) => (Class::Idle, 7),
        (IoprioClass::None, CpuPolicy::Normal) => (Class::BestEffort, derived),
        (IoprioClass::None, CpuPolicy::RealTime) => (Class::RealTime, derived),
        (IoprioClass::None, CpuPolicy::Idle) => (Class::Idle, derived),
    }
}
