//! Why a scheduler did what it did: closed lists, because explanations and reports are made of
//! them.

use core::fmt;

/// A closed list of reasons, each with the name that reports, JSON and scripts use.
macro_rules! reasons {
    (
        $(#[doc = $about:literal])*
        pub enum $list:ident { $($(#[doc = $what:literal])* $reason:ident $name:literal,)* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $list { $($(#[doc = $what])* $reason,)* }

        impl $list {
            /// All of them, each at its number.
            pub const ALL: &[$list] = &[$($list::$reason,)*];

            /// The name used in reports and scripts.
            pub const fn name(self) -> &'static str {
                match self { $($list::$reason => $name,)* }
            }
        }

        impl fmt::Display for $list {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

reasons! {
    /// Why this request and not another was issued.
    pub enum DispatchReason {
        /// It had arrived first.
        ArrivalOrder "arrival_order",
        /// It is the next one by sector in a batch that is not full.
        BatchContinues "batch_continues",
        /// A new batch starts with it: it is the next one by sector.
        BatchStarts "batch_starts",
        /// A new batch starts with it: no request lies above the last one, so the oldest is taken.
        NoneAbove "none_above",
        /// A new batch starts with it: it has waited longest.
        OldestStarts "oldest_starts",
        /// A new batch starts with it: its deadline had passed.
        Expired "expired",
        /// It stood in the list that goes before everything else (requeued).
        Requeued "requeued",
        /// It is of a lower class and had waited longer than the ageing time.
        Aged "aged",
        /// Another request with the same start sector arrived, and the scheduler's tree holds one.
        SameSector "same_sector",
        /// Its queue's turn begins.
        TurnBegins "turn_begins",
        /// Its queue's turn begins, because it ended another's.
        Preempts "preempts",
        /// Its queue's turn begins, because it goes on close to where another stopped.
        Cooperates "cooperates",
        /// Its queue's turn goes on.
        TurnContinues "turn_continues",
        /// Another queue is waited for meanwhile.
        Injected "injected",
        /// A batch of its domain begins.
        DomainBegins "domain_begins",
        /// The batch of its domain goes on.
        DomainContinues "domain_continues",
        /// The scheduler is being drained.
        Drained "drained",
    }
}

reasons! {
    /// Why a dispatch is withheld although requests are queued.
    pub enum HoldReason {
        /// Requests of a higher priority class are with the device; lower classes wait for them.
        HigherClassInFlight "higher_class_in_flight",
        /// The process whose turn it is has run out of requests, and is waited for.
        ProcessIdles "process_idles",
        /// The control group whose turn it is has run out of requests, and is waited for.
        GroupIdles "group_idles",
        /// The queue whose turn it is has requests in flight, and will be waited for then.
        TurnNotDone "turn_not_done",
        /// The last queue of a group has requests in flight, and the group will be waited for.
        GroupNotDone "group_not_done",
        /// A queue that is waited for does not begin before asynchronous requests are done.
        AsyncInFlight "async_in_flight",
        /// Asynchronous requests do not begin before synchronous ones are done.
        SyncInFlight "sync_in_flight",
        /// The queue has as many requests in flight as it may.
        Quantum "quantum",
        /// Synchronous requests were late: asynchronous ones are let go few at a time.
        AsyncDepth "async_depth",
        /// The workload whose turn it is has no queue.
        NobodyChosen "nobody_chosen",
        /// A batch of the other kind begins when what is in flight of the old one is done.
        BatchDrains "batch_drains",
        /// Requests that are on their way have all tokens of their domain.
        NoToken "no_token",
    }
}
