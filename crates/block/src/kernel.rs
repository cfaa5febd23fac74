//! The kernel version as a value.
//!
//! A [`Kernel`] states everything about the block layer that changed over the years. Code asks for
//! a named field and never for a version number, so every difference between kernels is visible
//! here, with its source. Schedulers keep their own tables of differences, keyed by [`Version`].

use base::{Duration, Hz, Sectors};
use core::fmt;

/// The modelled versions, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 2.6.28 (December 2008): founding report 3.
    V2_6_28,
    /// 2.6.32 (December 2009): the last one with anticipatory.
    V2_6_32,
    /// 4.10 (February 2017): writeback throttling arrives.
    V4_10,
    /// 4.19 (October 2018): both queue shapes; the recordings; founding report 1.
    V4_19,
    /// 5.1 (May 2019).
    V5_1,
    /// 5.2 (July 2019).
    V5_2,
    /// 6.1 (December 2022): Debian 12; a judge in virtual time.
    V6_1,
    /// 6.12 (November 2024): Debian 13; the first judge in virtual time.
    V6_12,
    /// 6.18 (November 2025).
    V6_18,
    /// 7.3 (October 2026): a judge in virtual time.
    V7_3,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Version::V2_6_28 => "2.6.28",
            Version::V2_6_32 => "2.6.32",
            Version::V4_10 => "4.10",
            Version::V4_19 => "4.19",
            Version::V5_1 => "5.1",
            Version::V5_2 => "5.2",
            Version::V6_1 => "6.1",
            Version::V6_12 => "6.12",
            Version::V6_18 => "6.18",
            Version::V7_3 => "7.3",
        })
    }
}

/// Which of the two designs of the block layer a scheduler lives in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// One request queue under one lock (up to 4.20).
    Single,
    /// blk-mq (from 3.13; schedulers from 4.11).
    Multi,
}

/// How requests are held back before insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugging {
    /// The device is plugged as a whole (up to 2.6.38; rules device-plug).
    Device {
        /// Requests waiting that unplug it.
        threshold: u32,
        /// Milliseconds after which it unplugs itself.
        delay_ms: u64,
        /// Every bio with SYNC unplugs (2.6.27/28).
        sync_unplugs: bool,
        /// Non-rotational devices with queued commands are not plugged.
        skips_nonrotational: bool,
    },
    /// Each task holds its own list.
    Task(TaskPlug),
}

/// The rules of a task's plug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskPlug {
    /// Requests after which the list is flushed before another is added.
    pub max_requests: u32,
    /// Size of the tested request at which the list is flushed before another is added.
    pub flush_bytes: u64,
    /// Which request that size is taken from.
    pub flush_tests: PlugEnd,
    /// Which requests a bio may be merged into.
    pub merges_into: PlugMerge,
    /// Whether the list is sorted by sector when it is flushed.
    pub sorts: bool,
    /// With several hardware queues only one request is held back (blk-mq of 4.19).
    pub holds_one_with_several_queues: bool,
    /// Which request goes to the driver first when the task ends its plug and there is no
    /// scheduler. Observed: on 6.1.192 the newest does, and a virtio disk hears of all at once, of
    /// the oldest first; on 6.12.117 the oldest does. A scheduler gets them in their order on both,
    /// and so do software queues when the task is about to sleep.
    pub issues_first: PlugEnd,
    /// Once the clock has been read under a plug, its time is good for all that the task submits
    /// until it sleeps. Observed on 6.12.117; on 6.1.192 each bio and each request reads it.
    pub remembers_time: bool,
}

/// One end of a plug list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlugEnd {
    /// The request added first.
    Oldest,
    /// The request added last.
    Newest,
}

/// Which requests of a plug are candidates for a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlugMerge {
    /// All of them, newest first, until one merges.
    All,
    /// Only the newest.
    Newest,
}

/// What happens when two pieces of I/O of different priority could be merged (rule merge-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityMerge {
    /// They merge, and the request takes the better priority.
    TakeBetter,
    /// They do not merge.
    MustEqual,
}

/// What a shallow tag depth means (rules tags-2 and tags-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShallowDepth {
    /// A number of bits in every word of the map.
    PerWord,
    /// A number of tags of the whole map.
    WholeMap,
}

/// How blk-mq takes requests from a scheduler (rules hctx-2 and hctx-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue {
    /// One at a time: the driver has it before the next is asked for.
    One,
    /// As many as there are resources for, then all go to the driver.
    Burst,
}

/// When blk-mq runs a hardware queue again whose scheduler withheld what it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterHold {
    /// When a command completes.
    AtCompletion,
    /// After this many milliseconds, as a timer of the kernel counts them: with the second tick
    /// after they are rounded up to ticks. Completions do not run it.
    AfterMillis(u64),
}

/// Who of those that want a core gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Who has had least of it; one that wakes may stop the one that runs (up to 6.5). Observed on
    /// 6.1.192: a worker that a task wakes runs as soon as the system call of the task is over.
    LeastServed,
    /// Of those that have had no more than their share, the one whose slice would be over first
    /// (6.6 and later). Observed on 6.12.117 and 7.3.4: a task that wakes a worker goes on.
    EarliestDeadline,
}

/// When a driver tells the device of requests that it is given as a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kick {
    /// Of each at once.
    EachRequest,
    /// Of all when it has the last one, where the transport has a queue in memory and a bell to
    /// ring (virtio, NVMe).
    EachList,
}

/// Where the data of a flush sequence go (rule flush-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushData {
    /// Around the elevator, into the dispatch or residual list.
    BypassesElevator,
    /// Through the elevator if there is no flush, neither before nor after; else around it.
    /// Observed on 6.1.192: no insertion of writes with FUA, on a disk without, nor of XFS's log.
    AloneThroughElevator,
    /// Through the elevator: as any other write, task plug included, if no flush comes before, and
    /// else at its head. Observed on 6.12.117 and 7.3.4: plug and insertion of writes with FUA.
    ThroughElevator,
}

/// The single-queue shape of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleQueue {
    /// How requests are held back.
    pub plugging: Plugging,
    /// Request limits are kept per control group (3.6 and later).
    pub limits_per_cgroup: bool,
    /// Request limits count by data direction instead of sync-ness (2.6.27-2.6.29).
    pub limits_by_direction: bool,
    /// Requests may be joined at insertion (2.6.39 and later); repeatedly from 3.10.
    pub insert_merge: bool,
}

/// The blk-mq shape of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiQueue {
    /// How requests are held back.
    pub plug: TaskPlug,
    /// A bio that its task submits without a plug gets one of its own, so the queue is run, or the
    /// request issued, by the task itself. Observed on 6.12 and 6.18: plug and unplug around each
    /// read of dd.
    pub plugs_each_bio: bool,
    /// The completion after a request of the residual list was issued has the queue run in vain
    /// where nothing can go. Observed on 6.1 and 6.12 by what mq-deadline counts; on 7.3.4 also by
    /// workqueue_queue_work at that completion.
    pub reruns_in_vain: bool,
    /// How requests are taken from the scheduler.
    pub dequeue: Dequeue,
    /// When the device hears of a list of requests.
    pub kick: Kick,
    /// A task that runs a hardware queue and is to leave its core to others hands the rest of the
    /// run to a worker, after each list.
    pub hands_runs_over: bool,
    /// What a scheduler that withholds is asked again by.
    pub after_hold: AfterHold,
    /// What a depth limit means.
    pub shallow: ShallowDepth,
    /// A batch of wake-ups goes on to the next wait queue until so many are woken. Observed on
    /// 6.12: with 16 tags and two tasks that sleep, both are woken by every second free, and the
    /// first takes both tags. On 6.1.192 it ends with the queue where it finds anybody.
    pub wakes_on: bool,
    /// Tags count towards a batch that are freed while nobody sleeps. Observed on 6.1.192 and 6.12:
    /// they do not, but those do that are freed before who was woken has gone on.
    pub counts_all_frees: bool,
    /// A freed tag is found again when its word has no other (rule tags-9). Observed on 6.1.192,
    /// 6.12.117 and 7.3.4: `cleared` and `alloc_hint` of `sched_tags` in debugfs.
    pub clears_late: bool,
    /// A flush waits for flush-sequence data in flight, for a while (rule flush-3: not with a
    /// scheduler in 4.19).
    pub flush_waits: bool,
    /// What the flush machinery goes on with waits on the requeue list, and a task that has the
    /// core before the worker issues its request first. Observed on 6.1.192: sched_switch and
    /// block_rq_issue of four writers of a file of XFS; on 6.12.117: four writers on ext4.
    pub requeues_by_worker: bool,
    /// So often the clock is read besides when a bio is split. Observed on 6.1.192: twice, in
    /// reads of 4 MiB; on 6.12.117 not at all.
    pub split_looks: u32,
    /// A bio reads the clock itself, besides its request. Observed: on 6.12 it does; on 7.3.4 a
    /// request that is read, written or flushed alone reaches the disk one look earlier.
    pub bio_reads_clock: bool,
    /// The scheduler's depth hook runs before `nr_requests` has its new value (rule allocate-9:
    /// up to 6.17).
    pub depth_hook_sees_old: bool,
    /// `async_depth` is an attribute of the queue, and no scheduler has one of its own. Observed on
    /// 7.3.4: `queue/async_depth`; on 6.1.192 and 6.12.117: `queue/iosched/async_depth`.
    pub async_depth_is_of_queue: bool,
}

/// A kernel version and everything that depends on it in the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Which version.
    pub version: Version,
    /// Its tick, as the usual distribution of its time configured it.
    pub hz: Hz,
    /// How tasks share a core.
    pub sharing: Sharing,
    /// The single-queue shape, if this kernel has it.
    pub single: Option<SingleQueue>,
    /// The blk-mq shape with schedulers, if this kernel has it.
    pub multi: Option<MultiQueue>,
    /// Default cap of a request's size (`max_sectors_kb`; rule request-9).
    pub max_sectors_cap: Sectors,
    /// What a disk that states no optimal size is read ahead by at first (`read_ahead_kb`).
    pub read_ahead: ReadAhead,
    /// Bios larger than the limits are split by the block layer (4.3 and later); before, upper
    /// layers built them within the limits.
    pub splits_bios: bool,
    /// What happens to merges across priorities.
    pub priority_merge: PriorityMerge,
    /// Bios of different control groups do not merge (5.x and later).
    pub cgroup_must_match: bool,
    /// O_DIRECT writes carry IDLE (4.10 and later; before, other synchronous writes carried the
    /// opposite).
    pub direct_writes_idle: bool,
    /// Where flush data goes.
    pub flush_data: FlushData,
    /// blktrace tells of requests that are joined (5.11 and later).
    pub traces_joins: bool,
    /// Writeback throttling, if this kernel has it (4.10 and later).
    pub wbt: Option<WbtRules>,
    /// Limits of control groups, if this kernel has them (2.6.37 and later).
    pub throttle: Option<ThrottleRules>,
    /// For which control group a page counts that is written back.
    pub cgroup_writeback: CgroupWriteback,
}

/// What differs between kernels that limit control groups (rules throttle).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleRules {
    /// A bio waits for its bytes first and for its turn as one bio then; slices are settled when
    /// the next one is over, too; and what is carried over to new limits counts as done
    /// (rules throttle-5, throttle-9 and throttle-10: 6.17 and later).
    pub in_stages: bool,
    /// On what does not turn a slice has 20 ms instead of 100 (rule throttle-4: up to 6.18-rc7).
    pub short_on_flash: bool,
    /// Who waits for its turn as one bio does so for the time of one at least, and not only until
    /// the slice is over (rule throttle-5). Observed on 6.12.117 and 7.3.4, and not on 6.1.192.
    pub waits_for_one: bool,
    /// What is carried over to new limits has no sign: what was done too much allows everything
    /// until the slice is settled, where it is more than a slice allows (rule throttle-9). Observed
    /// on 6.1.192: nothing waits after `wiops=9` becomes 7; 4294967295 in messages. Not on 6.12.
    pub carries_unsigned: bool,
    /// The hierarchy in which groups are unless somebody says otherwise.
    pub hierarchy: Hierarchy,
}

/// Which of the kernel's two hierarchies groups are in (rule throttle-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hierarchy {
    /// Version 1: limits of a group do not hold for those below it.
    Separate,
    /// Version 2: they do.
    Unified,
}

/// What differs between kernels that throttle writeback (rules wbt).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WbtRules {
    /// Discards are throttled, in a class of their own (rule wbt-2: not in 4.10).
    pub throttles_discards: bool,
    /// Limits of one or two slots are divided as others are (rule wbt-5: in 4.10).
    pub halves_small_depths: bool,
    /// A step that cannot be taken still counts as one: limits are computed again, sleepers are
    /// woken, and windows that said nothing are forgotten (rule wbt-12: in 4.19).
    pub scales_in_vain: bool,
    /// Which latencies a window is judged by.
    pub statistics: Statistics,
    /// How a scheduler ends what is throttled by default.
    pub ends_default: EndsDefault,
}

/// Which latencies a window of writeback throttling is judged by (rule wbt-15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistics {
    /// Those of a fixed window of 134 ms, be it this one or the last in which any came.
    Aligned,
    /// Those that came in the window.
    PerWindow,
}

/// How CFQ and BFQ end writeback throttling that nobody asked for (rule wbt-14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndsDefault {
    /// With the first request of a control group other than the root, for good.
    AtRequestOfGroup,
    /// When they are attached, until limits are computed again.
    UntilRecomputed,
    /// When they are attached, until they are detached.
    UntilDetached,
}

/// How far a disk is read ahead that nobody has said anything about (rule readahead-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAhead {
    /// So many KiB.
    Kib(u32),
    /// So many of the largest requests that are allowed when the disk is attached.
    Requests(u32),
}

/// Where pages that are written back count for the control group that dirtied them
/// (rule cgroup-writeback-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupWriteback {
    /// On ext4 and on the raw disk, if groups are in the unified hierarchy.
    pub on_ext4: bool,
    /// The same on XFS.
    pub on_xfs: bool,
    /// People use the unified hierarchy. Kernels before 6.12 had two, and those who reported of
    /// them used the other one.
    pub is_usual: bool,
}

const HZ_250: Hz = match Hz::new(250) {
    Some(hz) => hz,
    None => unreachable!(),
};
const HZ_1000: Hz = match Hz::new(1000) {
    Some(hz) => hz,
    None => unreachable!(),
};

/// Task plug of the single queue from 4.x, and of blk-mq up to 5.x with one hardware queue
/// (rules plug).
const PLUG_4_X: TaskPlug = TaskPlug {
    max_requests: 16,
    flush_bytes: 128 * 1024,
    flush_tests: PlugEnd::Newest,
    merges_into: PlugMerge::All,
    sorts: true,
    holds_one_with_several_queues: true,
    issues_first: PlugEnd::Oldest,
    // assumed: as 6.1
    remembers_time: false,
};

/// Task plug of 6.17 and later (rules plug-2 and plug-3). Observed on 6.12.117: it tests the oldest
/// request, too, so that a plug that begins with a small one holds 27 of which the 17th has 128
/// KiB.
const PLUG_6_12: TaskPlug = TaskPlug {
    max_requests: 32,
    flush_bytes: 128 * 1024,
    flush_tests: PlugEnd::Oldest,
    merges_into: PlugMerge::Newest,
    sorts: false,
    holds_one_with_several_queues: false,
    issues_first: PlugEnd::Oldest,
    remembers_time: true,
};

/// Task plug of 6.1. Observed on 6.1.192: fio submits reads of 4 and 128 KiB sixteen by sixteen,
/// and a plug never holds one of 128 KiB that is not its last.
const PLUG_6_1: TaskPlug = TaskPlug {
    flush_tests: PlugEnd::Newest,
    issues_first: PlugEnd::Newest,
    remembers_time: false,
    ..PLUG_6_12
};

/// Device plug of 2.6.28 (rules device-plug).
const DEVICE_PLUG: Plugging =
    Plugging::Device { threshold: 4, delay_ms: 3, sync_unplugs: true, skips_nonrotational: false };

const SINGLE_2_6: SingleQueue = SingleQueue {
    plugging: DEVICE_PLUG,
    limits_per_cgroup: false,
    limits_by_direction: true,
    insert_merge: false,
};

const SINGLE_4: SingleQueue = SingleQueue {
    plugging: Plugging::Task(PLUG_4_X),
    limits_per_cgroup: true,
    limits_by_direction: false,
    insert_merge: true,
};

const MULTI_4_19: MultiQueue = MultiQueue {
    plug: PLUG_4_X,
    plugs_each_bio: false,
    // assumed: not observed
    reruns_in_vain: false,
    wakes_on: false,
    counts_all_frees: true,
    // assumed: not observed
    clears_late: false,
    dequeue: Dequeue::One,
    kick: Kick::EachRequest,
    // assumed: nobody looked
    hands_runs_over: false,
    // assumed: not observed
    after_hold: AfterHold::AtCompletion,
    shallow: ShallowDepth::PerWord,
    flush_waits: false,
    // assumed: nobody looked
    requeues_by_worker: false,
    // assumed: as 6.1
    split_looks: 2,
    bio_reads_clock: true,
    depth_hook_sees_old: true,
    async_depth_is_of_queue: false,
};

// assumed: tags are cleared as on 6.1
const MULTI_5_1: MultiQueue = MultiQueue { clears_late: true, ..MULTI_4_19 };

const KERNEL_2_6_28: Kernel = Kernel {
    version: Version::V2_6_28,
    hz: HZ_1000,
    sharing: Sharing::LeastServed,
    single: Some(SINGLE_2_6),
    multi: None,
    max_sectors_cap: Sectors(1024),
    read_ahead: ReadAhead::Kib(128),
    splits_bios: false,
    priority_merge: PriorityMerge::TakeBetter,
    cgroup_must_match: false,
    direct_writes_idle: false,
    flush_data: FlushData::BypassesElevator,
    traces_joins: false,
    wbt: None,
    throttle: None,
    cgroup_writeback: CgroupWriteback { on_ext4: false, on_xfs: false, is_usual: false },
};

const WBT_4_19: WbtRules = WbtRules {
    throttles_discards: true,
    halves_small_depths: false,
    scales_in_vain: true,
    statistics: Statistics::PerWindow,
    ends_default: EndsDefault::UntilRecomputed,
};

const WBT_4_10: WbtRules = WbtRules {
    throttles_discards: false,
    halves_small_depths: true,
    // assumed: as 4.19
    scales_in_vain: true,
    statistics: Statistics::Aligned,
    ends_default: EndsDefault::AtRequestOfGroup,
};

// assumed where nothing else is said: as 6.1
const THROTTLE_4_10: ThrottleRules = ThrottleRules {
    in_stages: false,
    short_on_flash: true,
    waits_for_one: false,
    carries_unsigned: true,
    hierarchy: Hierarchy::Separate,
};

const THROTTLE_6_1: ThrottleRules =
    ThrottleRules { hierarchy: Hierarchy::Unified, ..THROTTLE_4_10 };

const THROTTLE_6_12: ThrottleRules =
    ThrottleRules { waits_for_one: true, carries_unsigned: false, ..THROTTLE_6_1 };

const THROTTLE_6_18: ThrottleRules =
    ThrottleRules { in_stages: true, short_on_flash: false, ..THROTTLE_6_12 };

const WBT_6_1: WbtRules =
    WbtRules { scales_in_vain: false, ends_default: EndsDefault::UntilDetached, ..WBT_4_19 };

const KERNEL_4_19: Kernel = Kernel {
    version: Version::V4_19,
    hz: HZ_250,
    single: Some(SINGLE_4),
    multi: Some(MULTI_4_19),
    max_sectors_cap: Sectors(2560),
    splits_bios: true,
    direct_writes_idle: true,
    wbt: Some(WBT_4_19),
    throttle: Some(THROTTLE_4_10),
    cgroup_writeback: CgroupWriteback { on_ext4: true, on_xfs: false, is_usual: false },
    ..KERNEL_2_6_28
};

// assumed where nothing else is said: as 6.12
const MULTI_6_1: MultiQueue = MultiQueue {
    plug: PLUG_6_1,
    // Observed on 6.1.192: no plug around the reads of dd.
    plugs_each_bio: false,
    split_looks: 2,
    // Observed on 6.1.192: with async_depth 2, four writes are allocated of 8 and of 64 tags.
    shallow: ShallowDepth::PerWord,
    wakes_on: false,
    ..MULTI_6_12
};

const KERNEL_5_1: Kernel = Kernel {
    version: Version::V5_1,
    single: None,
    multi: Some(MULTI_5_1),
    wbt: Some(WBT_6_1),
    ..KERNEL_4_19
};

const KERNEL_6_1: Kernel = Kernel {
    version: Version::V6_1,
    sharing: Sharing::LeastServed,
    flush_data: FlushData::AloneThroughElevator,
    multi: Some(MULTI_6_1),
    throttle: Some(THROTTLE_6_1),
    ..KERNEL_6_12
};

const MULTI_6_12: MultiQueue = MultiQueue {
    plug: PLUG_6_12,
    plugs_each_bio: true,
    reruns_in_vain: true,
    wakes_on: true,
    counts_all_frees: false,
    clears_late: true,
    dequeue: Dequeue::Burst,
    // Observed on 6.12.117: the disk is given 31 requests that a worker issues at the time of
    // the last.
    kick: Kick::EachList,
    // Observed on 6.12.117 (sched_wakeup, hrtimer_expire_entry): after a tick amid its call a task
    // issues its request and then wakes the worker, although nothing is left. Assumed of others.
    hands_runs_over: true,
    // Observed on 6.12.117: with a best-effort request held back by a real-time one, workers
    // run the queue every second tick (HZ 250), and none at completions.
    after_hold: AfterHold::AfterMillis(3),
    // Observed on 6.12.117: with async_depth k, k writes are allocated, for 8 to 128 requests.
    shallow: ShallowDepth::WholeMap,
    flush_waits: true,
    requeues_by_worker: true,
    split_looks: 0,
    bio_reads_clock: true,
    depth_hook_sees_old: true,
    async_depth_is_of_queue: false,
};

const KERNEL_6_12: Kernel = Kernel {
    version: Version::V6_12,
    hz: HZ_250,
    sharing: Sharing::EarliestDeadline,
    single: None,
    multi: Some(MULTI_6_12),
    priority_merge: PriorityMerge::MustEqual,
    cgroup_must_match: true,
    flush_data: FlushData::ThroughElevator,
    traces_joins: true,
    wbt: Some(WBT_6_1),
    throttle: Some(THROTTLE_6_12),
    // Observed on 6.12 with both file systems.
    cgroup_writeback: CgroupWriteback { on_ext4: true, on_xfs: true, is_usual: true },
    ..KERNEL_4_19
};

// assumed where nothing else is said: as 6.12
const MULTI_6_18: MultiQueue = MultiQueue { depth_hook_sees_old: false, ..MULTI_6_12 };

const KERNEL_6_18: Kernel = Kernel {
    version: Version::V6_18,
    max_sectors_cap: Sectors(8192),
    multi: Some(MULTI_6_18),
    throttle: Some(THROTTLE_6_18),
    ..KERNEL_6_12
};

// assumed where nothing else is said: as 6.18
const KERNEL_7_3: Kernel = Kernel {
    version: Version::V7_3,
    // Observed on 7.3.4: 8192 KiB where max_sectors_kb is 4096, and the same when that is changed.
    read_ahead: ReadAhead::Requests(2),
    multi: Some(MultiQueue {
        // Observed on 7.3.4: of 96 reads that fio submits two by two, none is issued before the
        // task sleeps, and mq-deadline has joined them all. No plug around the reads of dd.
        plugs_each_bio: false,
        bio_reads_clock: false,
        async_depth_is_of_queue: true,
        ..MULTI_6_18
    }),
    ..KERNEL_6_18
};

/// All modelled kernels, oldest first.
pub const KERNELS: [Kernel; 10] = [
    KERNEL_2_6_28,
    Kernel {
        version: Version::V2_6_32,
        single: Some(SingleQueue {
            plugging: Plugging::Device {
                threshold: 4,
                delay_ms: 3,
                sync_unplugs: false,
                skips_nonrotational: true,
            },
            limits_by_direction: false,
            ..SINGLE_2_6
        }),
        ..KERNEL_2_6_28
    },
    // blk-mq schedulers came with 4.11.
    Kernel { version: Version::V4_10, multi: None, wbt: Some(WBT_4_10), ..KERNEL_4_19 },
    KERNEL_4_19,
    // The single queue went with 5.0. The specification names 5.4 for equal priorities; 5.1 and 5.2
    // are assumed to merge as 4.19 does, and to throttle writeback as 5.4, of which it names
    // nothing that differs from 6.12.
    KERNEL_5_1,
    Kernel { version: Version::V5_2, ..KERNEL_5_1 },
    KERNEL_6_1,
    KERNEL_6_12,
    KERNEL_6_18,
    KERNEL_7_3,
];

/// Every kernel with each tick that Linux can be configured with: rows as in [`KERNELS`], columns
/// as in [`Hz::CHOICES`].
static CONFIGURED: [[Kernel; Hz::CHOICES.len()]; KERNELS.len()] = {
    let mut all = [[KERNEL_2_6_28; Hz::CHOICES.len()]; KERNELS.len()];
    let mut row = 0;
    while row < KERNELS.len() {
        let mut column = 0;
        while column < Hz::CHOICES.len() {
            all[row][column] = KERNELS[row];
            all[row][column].hz = match Hz::new(Hz::CHOICES[column]) {
                Some(hz) => hz,
                None => unreachable!(),
            };
            column += 1;
        }
        row += 1;
    }
    all
};

impl Kernel {
    /// The kernel of a version as it is written (`4.19`).
    pub fn named(name: &str) -> Option<&'static Kernel> {
        use alloc::string::ToString;
        KERNELS.iter().find(|kernel| kernel.version.to_string() == name)
    }

    /// The kernel of a version.
    pub fn of(version: Version) -> &'static Kernel {
        let found = KERNELS.iter().find(|kernel| kernel.version == version);
        found.expect("every version is in the table")
    }

    /// The kernel of this version, configured with another tick.
    pub fn with_hz(&self, hz: Hz) -> &'static Kernel {
        let mut all = CONFIGURED.iter().flatten();
        let found = all.find(|kernel| kernel.version == self.version && kernel.hz == hz);
        found.expect("every version is in the table with every tick")
    }

    /// Whether this kernel has the given shape.
    pub const fn has(&self, shape: Shape) -> bool {
        match shape {
            Shape::Single => self.single.is_some(),
            Shape::Multi => self.multi.is_some(),
        }
    }

    /// The delay of the device plug in time: three milliseconds in whole ticks, at least one
    /// (rule device-plug-3: 3*HZ/1000 rounds down).
    pub fn unplug_delay(&self, delay_ms: u64) -> Duration {
        let ticks = delay_ms * u64::from(self.hz.get()) / 1_000;
        self.hz.tick() * ticks.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_in_the_table_once() {
        for kernel in &KERNELS {
            assert_eq!(Kernel::of(kernel.version), kernel);
        }
        assert!(KERNELS.windows(2).all(|pair| pair[0].version < pair[1].version));
    }

    #[test]
    fn every_kernel_can_be_configured_with_every_tick() {
        for kernel in &KERNELS {
            assert_eq!(kernel.with_hz(kernel.hz), kernel);
            for hz in Hz::CHOICES.map(|hz| Hz::new(hz).unwrap()) {
                assert_eq!(*kernel.with_hz(hz), Kernel { hz, ..*kernel });
            }
        }
    }

    #[test]
    fn shapes_follow_history() {
        assert!(Kernel::named("4.19").unwrap().has(Shape::Single));
        assert!(Kernel::named("4.19").unwrap().has(Shape::Multi));
        assert!(!Kernel::named("5.1").unwrap().has(Shape::Single));
        assert!(!Kernel::named("4.10").unwrap().has(Shape::Multi));
        assert!(Kernel::named("4.20").is_none());
    }
}
