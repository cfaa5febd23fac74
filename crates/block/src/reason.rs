//! Why a scheduler did what it did: closed lists, because explanations and reports are made of
//! them.

use core::fmt;

/// Why this request and not another was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DispatchReason {
    /// It had arrived first.
    ArrivalOrder,
    /// It is the next one by sector in a batch that is not full.
    BatchContinues,
    /// A new batch starts with it: it is the next one by sector.
    BatchStarts,
    /// A new batch starts with it: no request lies above the last one, so the oldest is taken.
    NoneAbove,
    /// A new batch starts with it: it has waited longest.
    OldestStarts,
    /// A new batch starts with it: its deadline had passed.
    Expired,
    /// It stood in the list that goes before everything else (requeued).
    Requeued,
    /// It is of a lower class and had waited longer than the ageing time.
    Aged,
    /// Another request with the same start sector arrived, and the scheduler's tree holds one.
    SameSector,
    /// Its queue's turn begins.
    TurnBegins,
    /// Its queue's turn begins, because it ended another's.
    Preempts,
    /// Its queue's turn begins, because it goes on close to where another stopped.
    Cooperates,
    /// Its queue's turn goes on.
    TurnContinues,
    /// Another queue is waited for meanwhile.
    Injected,
    /// A batch of its domain begins.
    DomainBegins,
    /// The batch of its domain goes on.
    DomainContinues,
    /// The scheduler is being drained.
    Drained,
}

/// Why a dispatch is withheld although requests are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HoldReason {
    /// Requests of a higher priority class are with the device; lower classes wait for them.
    HigherClassInFlight,
    /// The process whose turn it is has run out of requests, and is waited for.
    ProcessIdles,
    /// The control group whose turn it is has run out of requests, and is waited for.
    GroupIdles,
    /// The queue whose turn it is has requests in flight, and will be waited for then.
    TurnNotDone,
    /// The last queue of a control group has requests in flight, and the group will be waited for.
    GroupNotDone,
    /// A queue that is waited for does not begin before asynchronous requests are done.
    AsyncInFlight,
    /// Asynchronous requests do not begin before synchronous ones are done.
    SyncInFlight,
    /// The queue has as many requests in flight as it may.
    Quantum,
    /// Synchronous requests were late: asynchronous ones are let go few at a time.
    AsyncDepth,
    /// The workload whose turn it is has no queue.
    NobodyChosen,
    /// A batch of the other kind begins when what is in flight of the old one is done.
    BatchDrains,
    /// Requests that are on their way have all tokens of their domain.
    NoToken,
}

impl DispatchReason {
    /// The name used in reports and scripts.
    pub const fn name(self) -> &'static str {
        match self {
            DispatchReason::ArrivalOrder => "arrival_order",
            DispatchReason::BatchContinues => "batch_continues",
            DispatchReason::BatchStarts => "batch_starts",
            DispatchReason::NoneAbove => "none_above",
            DispatchReason::OldestStarts => "oldest_starts",
            DispatchReason::Expired => "expired",
            DispatchReason::Requeued => "requeued",
            DispatchReason::Aged => "aged",
            DispatchReason::SameSector => "same_sector",
            DispatchReason::TurnBegins => "turn_begins",
            DispatchReason::Preempts => "preempts",
            DispatchReason::Cooperates => "cooperates",
            DispatchReason::TurnContinues => "turn_continues",
            DispatchReason::Injected => "injected",
            DispatchReason::DomainBegins => "domain_begins",
            DispatchReason::DomainContinues => "domain_continues",
            DispatchReason::Drained => "drained",
        }
    }
}

impl HoldReason {
    /// The name used in reports and scripts.
    pub const fn name(self) -> &'static str {
        match self {
            HoldReason::HigherClassInFlight => "higher_class_in_flight",
            HoldReason::ProcessIdles => "process_idles",
            HoldReason::GroupIdles => "group_idles",
            HoldReason::TurnNotDone => "turn_not_done",
            HoldReason::GroupNotDone => "group_not_done",
            HoldReason::AsyncInFlight => "async_in_flight",
            HoldReason::SyncInFlight => "sync_in_flight",
            HoldReason::Quantum => "quantum",
            HoldReason::AsyncDepth => "async_depth",
            HoldReason::NobodyChosen => "nobody_chosen",
            HoldReason::BatchDrains => "batch_drains",
            HoldReason::NoToken => "no_token",
        }
    }
}

impl fmt::Display for DispatchReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for HoldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
