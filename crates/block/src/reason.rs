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
    /// A new batch starts with it: its deadline had passed.
    Expired,
    /// It stood in the list that goes before everything else (requeued).
    Requeued,
    /// It is of a lower class and had waited longer than the ageing time.
    Aged,
    /// Another request with the same start sector arrived, and the scheduler's tree holds one.
    SameSector,
    /// The scheduler is being drained.
    Drained,
}

/// Why a dispatch is withheld although requests are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HoldReason {
    /// Requests of a higher priority class are with the device; lower classes wait for them.
    HigherClassInFlight,
}

impl DispatchReason {
    /// The name used in reports and scripts.
    pub const fn name(self) -> &'static str {
        match self {
            DispatchReason::ArrivalOrder => "arrival_order",
            DispatchReason::BatchContinues => "batch_continues",
            DispatchReason::BatchStarts => "batch_starts",
            DispatchReason::NoneAbove => "none_above",
            DispatchReason::Expired => "expired",
            DispatchReason::Requeued => "requeued",
            DispatchReason::Aged => "aged",
            DispatchReason::SameSector => "same_sector",
            DispatchReason::Drained => "drained",
        }
    }
}

impl HoldReason {
    /// The name used in reports and scripts.
    pub const fn name(self) -> &'static str {
        match self {
            HoldReason::HigherClassInFlight => "higher_class_in_flight",
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
