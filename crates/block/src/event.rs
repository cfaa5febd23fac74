//! What happens in the block layer, in blktrace's vocabulary.
//!
//! One stream of events is the only source of every metric, checker, explanation and export.
//! Events are collected in an [`EventLog`] that the caller drains; when the log is off they cost a
//! branch.

use crate::bio::{BioId, CgroupId, ContextId, Flags, Op};
use crate::command::Stage;
use crate::reason::{DispatchReason, HoldReason};
use crate::request::RequestId;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use base::{Duration, Instant, Sector, Sectors};
use core::fmt;

/// What happened; the letter is blkparse's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Q: a bio entered the block layer.
    Queue,
    /// X: a bio was split; `rest` is where the remainder starts.
    Split {
        /// First sector of the remainder.
        rest: Sector,
    },
    /// M: a bio was appended to a request.
    BackMerge,
    /// F: a bio was prepended to a request.
    FrontMerge,
    /// G: a request was allocated.
    GetRequest,
    /// S: a task goes to sleep for a request. blktrace knows it for the single queue only.
    Sleep,
    /// A task goes to sleep because writeback is throttled, before a request is looked for.
    Throttled {
        /// So many slots there are for a bio of its class, the depth.
        depth: u32,
    },
    /// A bio that had to wait for limits of its control group goes on; the event is its task's.
    Released {
        /// When it came.
        since: Instant,
    },
    /// Writeback throttling tells of itself; what the kernel's trace events of it tell.
    Wbt(WbtEvent),
    /// P: a plug begins to fill.
    Plug,
    /// U: a plug is flushed on purpose.
    Unplug {
        /// Requests released.
        depth: u32,
    },
    /// UT: a plug is flushed by a timer or because its task blocks.
    TimerUnplug {
        /// Requests released.
        depth: u32,
    },
    /// I: a request was given to the scheduler.
    Insert,
    /// A request was absorbed by another one, `into`, when it was inserted or after a bio merge.
    Join {
        /// The survivor.
        into: RequestId,
    },
    /// The scheduler chose a request.
    Dispatch(DispatchReason),
    /// The scheduler withheld its requests.
    Hold {
        /// Why.
        reason: HoldReason,
        /// Whose turn it is, or who is waited for, if it is anybody in particular.
        waits_for: Option<ContextId>,
    },
    /// D: the driver gave a request to the device.
    Issue,
    /// R: the driver gave a request back.
    Requeue,
    /// C: the device finished a request.
    Complete {
        /// When the device got it.
        issued: Instant,
    },
    /// A bio is done as a whole; its submitter (the event's context) is told.
    BioDone {
        /// When it entered the block layer.
        queued: Instant,
        /// When the device got the last of its parts.
        issued: Instant,
    },
    /// A message of the scheduler or the queue ("m" in blkparse).
    Message {
        /// What it says.
        text: String,
        /// The control group it is about.
        cgroup: Option<CgroupId>,
    },
    /// A task entered a system call.
    SyscallEnter(Syscall),
    /// A task left a system call, or reaped an asynchronous one.
    SyscallExit {
        /// Which.
        call: Syscall,
        /// When it was entered (asynchronous: when it was prepared).
        entered: Instant,
        /// When an asynchronous one had been submitted; equal to `entered` for the others.
        submitted: Instant,
    },
    /// The scheduler withholds its requests while the device has others; told to those who ask, as
    /// the next four are.
    HoldsBack {
        /// Why.
        reason: HoldReason,
        /// Whose turn it is, or who is waited for, if it is anybody in particular.
        waits_for: Option<ContextId>,
    },
    /// A task goes to sleep.
    Blocks(SleepsFor),
    /// It can go on (sched_waking): a task or an interrupt has woken it, or its alarm.
    Wakes {
        /// Who, if anybody did.
        by: Option<ContextId>,
    },
    /// It has a core.
    Runs,
    /// It loses its core although it could go on.
    Preempted,
    /// A commit of a journal goes on to a phase; the task is the one that commits. In XFS that is
    /// whoever forces the log.
    Commits {
        /// The number of the transaction.
        transaction: u64,
        /// The phase; none if the commit is over.
        phase: Option<CommitPhase>,
    },
    /// The transaction that is committed takes in nobody any more.
    InCommit(Box<Committed>),
    /// The task has pages of memory read, or those of others written.
    Pages {
        /// Why.
        why: PagesWhy,
        /// Because of whom; perhaps of itself.
        by: ContextId,
        /// How many.
        pages: u32,
    },
    /// What the device did for a command, told when its end is; asked for as well.
    Served(Box<[(Instant, Stage)]>),
    /// The run ended inside this system call; counts with its age.
    SyscallUnfinished {
        /// Which.
        call: Syscall,
        /// When it was entered.
        entered: Instant,
        /// When it had been submitted, if it had.
        submitted: Instant,
    },
}

impl Action {
    /// Whether only those who ask are told of it.
    pub const fn is_asked_for(&self) -> bool {
        use Action::{Blocks, Commits, HoldsBack, InCommit, Pages, Preempted, Runs, Served, Wakes};
        matches!(
            self,
            HoldsBack { .. }
                | Blocks(_)
                | Wakes { .. }
                | Runs
                | Preempted
                | Commits { .. }
                | InCommit(_)
                | Pages { .. }
                | Served(_)
        )
    }
}

/// What a commit of a journal is about; `/proc/fs/jbd2/*/info` has the first three, and those of
/// XFS are as its papers name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommitPhase {
    /// New handles are kept out, and open ones are awaited.
    Locked,
    /// Data of files are written and awaited that must be on the disk first.
    Flushing,
    /// Blocks of metadata are written to the log.
    Logging,
    /// The commit block is written, with the flush before it.
    CommitBlock,
    /// XFS: a worker puts what was changed into a log buffer.
    Push,
    /// XFS: the log buffer before is awaited, so that others may join.
    Joining,
    /// XFS: the log buffer is written, with the flush before it.
    LogWrite,
}

impl CommitPhase {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            CommitPhase::Locked => "transaction locked",
            CommitPhase::Flushing => "flushing data",
            CommitPhase::Logging => "logging",
            CommitPhase::CommitBlock => "commit block",
            CommitPhase::Push => "pushing the CIL",
            CommitPhase::Joining => "waiting for the log buffer before",
            CommitPhase::LogWrite => "log write",
        }
    }
}

/// A transaction that is committed: why, and whose changes are in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its number.
    pub transaction: u64,
    /// Who asked for it first; nobody, if it was old enough.
    pub asked_by: Option<ContextId>,
    /// Who has how many handles in it, most first.
    pub handles: Vec<(ContextId, u32)>,
}

/// Why pages are read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PagesWhy {
    /// They are read, and were not in memory before: on the task's own account.
    Cold,
    /// They were in memory, and had to leave it for pages of somebody (workingset_refault).
    Evicted,
    /// They were in memory until somebody had them dropped: by advice, or by going around the page
    /// cache.
    Dropped,
    /// They are written that somebody has made dirty.
    Dirtied,
}

/// What a task sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SleepsFor {
    /// A request; [`Action::Sleep`] or [`Action::Throttled`] has said which way.
    Request,
    /// An operation of its own with the disk.
    Operation,
    /// Operations of its asynchronous queue.
    Queue,
    /// A time that its program chose.
    Pause,
    /// A pause because too much is dirty.
    DirtyLimit,
    /// Another task's word, or a thread that works for it.
    Task,
    /// A page that is read, written or submitted.
    Page,
    /// The journal of ext4 or the log of XFS.
    Journal,
    /// A lock of a directory, a file or the map of its blocks.
    Lock,
}

/// What writeback throttling says at the end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WbtEvent {
    /// wbt_timer: the window is judged.
    Timer {
        /// What it was like.
        status: WbtStatus,
        /// The step that held in it.
        step: i32,
        /// Slots taken, of all classes.
        in_flight: u32,
    },
    /// wbt_lat: reads were late, by this one at least.
    Latency {
        /// Of the read that is under way, or of the fastest that is done.
        latency: Duration,
    },
    /// wbt_stat: what the window was judged by.
    Statistics {
        /// Latency of the fastest read.
        least_read: Duration,
        /// Reads that were done in it.
        reads: u32,
        /// Writes and discards.
        writes: u32,
    },
    /// wbt_step: another step.
    Step {
        /// Which: above zero there are fewer slots than at first, below zero more.
        step: i32,
        /// The window that is over.
        window: Duration,
        /// Slots for writes that nobody waits for.
        background: u32,
        /// Slots for other writes.
        normal: u32,
        /// Slots for those that somebody waits for.
        max: u32,
    },
}

impl WbtEvent {
    /// The name of the kernel's event.
    pub const fn name(&self) -> &'static str {
        match self {
            WbtEvent::Timer { .. } => "wbt_timer",
            WbtEvent::Latency { .. } => "wbt_lat",
            WbtEvent::Statistics { .. } => "wbt_stat",
            WbtEvent::Step { .. } => "wbt_step",
        }
    }
}

/// What the kernel's event prints behind the name of the device, without the means of wbt_stat.
impl fmt::Display for WbtEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |time: Duration| time.as_nanos() / 1000;
        match *self {
            WbtEvent::Timer { status, step, in_flight } => {
                write!(f, "status={}, step={step}, inflight={in_flight}", status.number())
            }
            WbtEvent::Latency { latency } => write!(f, "latency {}us", micros(latency)),
            // In nanoseconds, other than the rest (observed on 6.12.117).
            WbtEvent::Statistics { least_read, reads, writes } => {
                let rmin = least_read.as_nanos();
                write!(f, "rmin={rmin}, rsamples={reads}, wsamples={writes}")
            }
            WbtEvent::Step { step, window, background, normal, max } => {
                let window = micros(window);
                write!(f, "step={step}, window={window}us, ")?;
                write!(f, "background={background}, normal={normal}, max={max}")
            }
        }
    }
}

/// What a window of writeback throttling was like (rule wbt-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WbtStatus {
    /// Reads were late.
    Exceeded,
    /// They were not.
    Ok,
    /// Too few requests to tell, but there were writes.
    UnknownWrites,
    /// Too few requests to tell.
    Unknown,
}

impl WbtStatus {
    /// Its number in the event wbt_timer (observed on 6.12.117).
    pub const fn number(self) -> u32 {
        match self {
            WbtStatus::Ok => 1,
            WbtStatus::Unknown => 2,
            WbtStatus::UnknownWrites => 3,
            WbtStatus::Exceeded => 4,
        }
    }
}

/// System calls that appear in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Syscall {
    /// read, pread, readv, preadv.
    Read,
    /// write, pwrite, writev, pwritev.
    Write,
    /// sync, fsync and fdatasync.
    Sync,
    /// One read of an asynchronous interface, from its submission until it was reaped.
    AsyncRead,
    /// One write of an asynchronous interface, from its submission until it was reaped.
    AsyncWrite,
    /// A discard.
    Discard,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// What.
    pub action: Action,
    /// In whose context the code ran.
    pub context: ContextId,
    /// On which core.
    pub cpu: u16,
    /// Operation; for plug events and messages it says nothing.
    pub op: Op,
    /// Flags of the bio or request.
    pub flags: Flags,
    /// Position.
    pub sector: Sector,
    /// Length.
    pub sectors: Sectors,
    /// The bio concerned.
    pub bio: Option<BioId>,
    /// The request concerned.
    pub request: Option<RequestId>,
    /// The submitter's mark of the bio, or the number of the system call within its task.
    pub token: u64,
}

impl Event {
    /// An event that concerns no particular bio or request.
    pub fn note(action: Action) -> Event {
        Event {
            at: Instant::ZERO,
            action,
            context: ContextId(0),
            cpu: 0,
            op: Op::Read,
            flags: Flags::NONE,
            sector: Sector(0),
            sectors: Sectors(0),
            bio: None,
            request: None,
            token: 0,
        }
    }
}

/// What becomes of schedulers' messages.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Messages {
    #[default]
    Ignored,
    Counted,
    /// And counted.
    Kept,
}

/// The clock within a hook of a scheduler, by what the scheduler says.
///
/// A hook takes no time. Who follows a kernel whose hooks took some puts such a clock into the log.
pub trait HookClock {
    /// The time after the scheduler has said this; `now` is the time before.
    fn said(&mut self, now: Instant, text: &str) -> Instant;
}

/// Where events go until they are drained.
#[derive(Default)]
pub struct EventLog {
    enabled: bool,
    /// What only those who ask are told of is kept, too.
    asked: bool,
    messages: Messages,
    hook_clock: Option<Box<dyn HookClock>>,
    /// How many schedulers have written since somebody asked.
    written: u64,
    events: Vec<Event>,
}

/// How much was in a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    events: usize,
    written: u64,
}

impl EventLog {
    /// A log that keeps nothing.
    pub fn off() -> EventLog {
        EventLog::default()
    }

    /// A log that keeps everything but messages.
    pub fn on() -> EventLog {
        EventLog { enabled: true, ..EventLog::default() }
    }

    /// A log that keeps everything, messages of schedulers included.
    pub fn with_messages() -> EventLog {
        EventLog { enabled: true, messages: Messages::Kept, ..EventLog::default() }
    }

    /// What only those who ask are told of is kept, too, from now on.
    pub fn tell_all(&mut self) {
        self.asked = true;
    }

    /// Whether it is.
    pub fn tells_all(&self) -> bool {
        self.asked
    }

    /// Whether events are kept.
    pub fn is_on(&self) -> bool {
        self.enabled
    }

    /// Whether messages are kept or counted; a scheduler looks for what they say only then.
    pub fn wants_messages(&self) -> bool {
        self.messages != Messages::Ignored
    }

    /// Whether messages are kept.
    pub(crate) fn keeps_messages(&self) -> bool {
        self.enabled && self.messages == Messages::Kept
    }

    /// From now on messages are counted.
    pub fn count_messages(&mut self) {
        self.messages = self.messages.max(Messages::Counted);
    }

    /// Messages that are kept set the clock of the hook that writes them from now on.
    pub fn set_hook_clock(&mut self, clock: Box<dyn HookClock>) {
        self.hook_clock = Some(clock);
    }

    /// How much is in it.
    pub(crate) fn mark(&self) -> Mark {
        Mark { events: self.events.len(), written: self.written }
    }

    /// Forgets what has come since, but for the clock of hooks, which is not this log's.
    pub(crate) fn go_back(&mut self, mark: Mark) {
        self.events.truncate(mark.events);
        self.written = mark.written;
    }

    /// The time after a message, within the hook that wrote it.
    pub(crate) fn time_after(&mut self, now: Instant, text: &str) -> Instant {
        self.hook_clock.as_mut().map_or(now, |clock| clock.said(now, text))
    }

    /// A scheduler writes a message; false when nobody keeps it.
    pub(crate) fn writes_message(&mut self) -> bool {
        self.written += 1;
        self.messages == Messages::Kept
    }

    /// How many messages schedulers have written since this was last asked, where they are kept or
    /// counted.
    pub fn take_written(&mut self) -> u64 {
        core::mem::take(&mut self.written)
    }

    /// Keeps an event, if the log is on.
    #[inline]
    pub fn push(&mut self, event: impl FnOnce() -> Event) {
        if self.enabled {
            self.events.push(event());
        }
    }

    /// The events since the last drain, oldest first.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Forgets what has been looked at; keeps the memory.
    pub fn clear(&mut self) {
        self.events.clear();
    }
}
