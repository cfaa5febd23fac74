//! What differs between the kernels of BFQ, each difference a named field.
//!
//! Sources are sections of the specification: 5.19 has the differences, and A.1 to A.7 of its
//! second addendum those from 4.19 to 5.4. 4.19 is 4.19.79, of which there are recordings. 5.1 is
//! what was there before the changes of March 2019, without what stable releases of it took over
//! in June.

use super::inject::{Injecting, Measuring};
use super::messages::Messages;
use block::{Kernel, Version};

/// The differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// Whether queues merge on flash disks that queue commands (A.3b-2).
    pub on_flash: OnFlash,
    /// That a queue has been served for too long comes before a merge that was planned (5.19.4).
    pub late_queues_part: bool,
    /// Of a chain of queues that merge, the last one is the target (6.9 and later; 5.19.1).
    pub follows_chains: bool,
    /// A queue that is to be merged is nobody's own any more (5.19.1).
    pub plans_disown: bool,
    /// Where the queue in service goes on is forgotten when one comes into service (A.5-4).
    pub forgets_position: bool,
    /// Queues that come into being together merge when they have proved stable (5.9).
    pub merges_stably: bool,
    /// A process that has its own queue again gets the weight it had (5.2 on; A.3b-6).
    pub saves_weight: bool,
    /// And what was known of injection (5.9).
    pub saves_injection: bool,
    /// Raising comes back with it even without `low_latency` (up to 5.4; 5.19.3).
    pub restores_raising_always: bool,
    /// What may go while a queue is waited for.
    pub injecting: Injecting,
    /// How service times tell how much of that.
    pub measuring: Measuring,
    /// Who wakes whom is found out, and may go meanwhile (5.15).
    pub has_wakers: bool,
    /// Queues of the least weight are not waited for because others weigh more (5.2 on; A.3b-1).
    pub spares_lightest: bool,
    /// Queues of several classes make the scenario asymmetric (5.1 on; A.2.2-1).
    pub classes_differ: bool,
    /// Which groups make it asymmetric.
    pub groups_differ: GroupsDiffer,
    /// When a queue is waited for because of what it is promised.
    pub guarantees: Guarantees,
    /// A raised queue is waited for at least 20 ms (5.2, and stable releases of 4.19; A.3b-3).
    pub waits_long_for_raised: bool,
    /// A small request never ends a wait in which there is time left (4.19; A.2.2-9).
    pub small_never_ends_wait: bool,
    /// Where the scenario is asymmetric, nobody is charged more for writing (5.1 on; A.2.2-3).
    pub charges_all_alike: bool,
    /// Requests in the driver beyond which the disk queues commands (A.2.2-4).
    pub deep: u32,
    /// A queue in service that sends one by one tells nothing of that (5.1 on; A.2.2-4).
    pub knows_shallow: bool,
    /// A dispatch is sequential as it is for queues: a long one is, wherever it is (A.2.2-5).
    pub samples_as_queues: bool,
    /// Only queues of the usual weight are raised (5.7).
    pub raises_usual_weight_only: bool,
    /// What it means that a queue has only jumped about of late (A.3b-4).
    pub totally_seeky: TotallySeeky,
    /// When an interactive queue may turn out to play in real time.
    pub may_play: MayPlay,
    /// Queues are part of a burst whoever is busy (up to 5.1; A.3b-5).
    pub bursts_while_busy: bool,
    /// Who stops the queue in service.
    pub preemption: Preemption,
    /// Think times and seeks are taken down after the request has been added, each time, and a
    /// think time is long beyond `slice_idle` (up to 5.2; A.4-4). Else before, if the queue was
    /// idle, and beyond the half of it.
    pub looks_back: bool,
    /// Whether a queue is bound by I/O.
    pub io_bound: IoBound,
    /// What is left of a budget is used if it is more than nothing, and a budget never falls below
    /// what was served (5.1 on; A.2.2-7).
    pub minds_rest: bool,
    /// A queue to which only the engine refers is taken to be gone when its turn ends, and its
    /// groups are charged once more for what they were served (observed on 4.19.79; not on
    /// 6.1.192, 6.12.117 and 7.3.4).
    pub charges_for_gone: bool,
    /// The weight of a queue with requests refers to it (5.1 on; A.2.2-10).
    pub weights_refer: bool,
    /// Whoever has more requests than its share gets no more (5.4; part B of the addendum).
    pub limits_shares: bool,
    /// The depth of what may be limited is derived from the queue's `async_depth` (7.0 and later).
    pub has_async_depth: bool,
    /// There is work as long as a queue is busy, and not only while one has requests (A.7).
    pub busy_is_work: bool,
    /// What it says.
    pub messages: Messages,
}

/// Whether queues merge on flash disks that queue commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnFlash {
    /// As on others (up to 5.1).
    Merge,
    /// Never (5.2).
    Never,
    /// If that was planned before, or they came into being together.
    OnlyPlanned,
}

/// Which groups make a scenario asymmetric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupsDiffer {
    /// None. The kernel means to count their weights and does not (4.19 to 5.0; A.2.1-1).
    Never,
    /// Any with requests but the root (5.1 and 5.2; A.2.2-1; observed on 6.1.192).
    AnyButRoot,
    /// Two with requests (5.13; observed on 6.12.117).
    Two,
}

/// When a queue is waited for because of what it is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guarantees {
    /// It is raised, or the scenario is asymmetric; but not in a large burst (4.19; 5.19.4).
    UnlessBurst,
    /// It is raised among others that are not, or the scenario is asymmetric (A.2.2-2).
    AmongOthers,
    /// So, or raised while many requests of others are with the disk, or alone; and a process is
    /// there to send more (5.13).
    WithInFlight,
}

/// What it means that a queue has only jumped about of late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TotallySeeky {
    /// Nothing (up to 5.1).
    Ignored,
    /// It does not play in real time; raising for that ends (5.2).
    EndsRaising,
    /// The same of a queue that has jumped once of late, as every young one has: the change as it
    /// was first merged, and as it was when it was measured (A.3b-4).
    EndsRaisingAtOnce,
    /// It does not play in real time; it may be interactive as before.
    FallsBack,
}

/// When a queue that is raised as interactive may turn out to play in real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MayPlay {
    /// When its service ends, or its last request is done (4.19; A.2.2-8).
    Always,
    /// Never (5.1 to 5.4; A.2.2-8, 5.19.3).
    Never,
    /// When its service ends (5.7b).
    AtExpiry,
}

/// Who stops the queue in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preemption {
    /// Who has budget left, or is raised, if the other one is raised less (up to 5.2; A.3b).
    ByRaising,
    /// Who has budget left, or is of a higher class or weight; anybody where the other one need
    /// not be waited for. A queue that runs empty stays busy if it is waited for (A.4-6, A.4-7).
    ByWeight,
}

/// Whether a queue is bound by I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IoBound {
    /// Not after it was waited for in vain with little served; again after so many arrivals in
    /// time (up to 5.4; 5.19.4-8).
    After(u32),
    /// While it is idle for less than a fifth of the time (5.6).
    ByIntensity,
}

const REFERENCE: Rules = Rules {
    on_flash: OnFlash::OnlyPlanned,
    late_queues_part: false,
    follows_chains: true,
    plans_disown: true,
    forgets_position: true,
    merges_stably: true,
    saves_weight: true,
    saves_injection: true,
    restores_raising_always: false,
    injecting: Injecting::ByServiceTime,
    measuring: Measuring::REFERENCE,
    has_wakers: true,
    spares_lightest: true,
    classes_differ: true,
    groups_differ: GroupsDiffer::Two,
    guarantees: Guarantees::WithInFlight,
    waits_long_for_raised: true,
    small_never_ends_wait: false,
    charges_all_alike: true,
    deep: 3,
    knows_shallow: true,
    samples_as_queues: true,
    raises_usual_weight_only: true,
    totally_seeky: TotallySeeky::FallsBack,
    may_play: MayPlay::AtExpiry,
    bursts_while_busy: false,
    preemption: Preemption::ByWeight,
    looks_back: false,
    io_bound: IoBound::ByIntensity,
    minds_rest: true,
    charges_for_gone: false,
    weights_refer: true,
    limits_shares: true,
    has_async_depth: false,
    busy_is_work: false,
    messages: Messages::REFERENCE,
};

/// After the changes of March 2019.
const OF_5_2: Rules = Rules {
    on_flash: OnFlash::Never,
    late_queues_part: true,
    follows_chains: false,
    plans_disown: false,
    forgets_position: false,
    merges_stably: false,
    saves_injection: false,
    restores_raising_always: true,
    charges_for_gone: true,
    measuring: Measuring::IN_5_2,
    has_wakers: false,
    groups_differ: GroupsDiffer::AnyButRoot,
    guarantees: Guarantees::AmongOthers,
    raises_usual_weight_only: false,
    totally_seeky: TotallySeeky::EndsRaising,
    may_play: MayPlay::Never,
    preemption: Preemption::ByRaising,
    looks_back: true,
    io_bound: IoBound::After(120),
    limits_shares: false,
    busy_is_work: true,
    messages: Messages::IN_5_2,
    ..REFERENCE
};

/// And before.
const OF_5_1: Rules = Rules {
    on_flash: OnFlash::Merge,
    saves_weight: false,
    injecting: Injecting::ByBandwidth,
    spares_lightest: false,
    waits_long_for_raised: false,
    totally_seeky: TotallySeeky::Ignored,
    bursts_while_busy: true,
    messages: Messages::IN_5_1,
    ..OF_5_2
};

const OF_4_19: Rules = Rules {
    injecting: Injecting::Never,
    classes_differ: false,
    groups_differ: GroupsDiffer::Never,
    guarantees: Guarantees::UnlessBurst,
    waits_long_for_raised: true,
    small_never_ends_wait: true,
    charges_all_alike: false,
    deep: 4,
    knows_shallow: false,
    samples_as_queues: false,
    may_play: MayPlay::Always,
    minds_rest: false,
    weights_refer: false,
    messages: Messages::IN_4_19,
    ..OF_5_1
};

impl Rules {
    /// The rules of a kernel that has BFQ.
    pub fn of(kernel: &Kernel) -> Rules {
        match kernel.version {
            Version::V4_19 => OF_4_19,
            Version::V5_1 => OF_5_1,
            Version::V5_2 => OF_5_2,
            Version::V6_1 => Rules {
                follows_chains: false,
                groups_differ: GroupsDiffer::AnyButRoot,
                messages: Messages::IN_6_1,
                ..REFERENCE
            },
            version if version >= Version::V7_3 => Rules { has_async_depth: true, ..REFERENCE },
            _ => REFERENCE,
        }
    }
}
