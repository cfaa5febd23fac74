//! The bio: one contiguous piece of I/O that a task (or a file system on its behalf) asks for.

use crate::ioprio::Ioprio;
use crate::kernel::MultiQueue;
use crate::limits::Limits;
use crate::qos::mark::Mark;
use crate::segments::Segments;
use crate::throttle::passage::Passage;
use base::{Id, Instant, Sector, Sectors};

/// What a bio or request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Transfer from the device.
    Read,
    /// Transfer to the device. Without data and with [`Flags::PREFLUSH`] it is a pure flush.
    Write,
    /// Tell the device that a range is no longer needed.
    Discard,
}

/// The data direction of an operation; schedulers keep one set of structures for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Reads.
    Read = 0,
    /// Everything that changes the medium.
    Write = 1,
}

impl Op {
    /// Reads read, everything else counts as a write (rule request-1).
    pub const fn direction(self) -> Direction {
        match self {
            Op::Read => Direction::Read,
            Op::Write | Op::Discard => Direction::Write,
        }
    }
}

/// The flags of a bio or request (rules flags).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u16);

impl Flags {
    /// None.
    pub const NONE: Flags = Flags(0);
    /// Somebody waits for it: direct I/O, O_SYNC and fsync writeback, journal commits.
    pub const SYNC: Flags = Flags(1);
    /// A synchronous write after which more may follow (O_DIRECT writes; 4.10 and later).
    pub const IDLE: Flags = Flags(1 << 1);
    /// File-system metadata.
    pub const META: Flags = Flags(1 << 2);
    /// Metadata that others wait for.
    pub const PRIO: Flags = Flags(1 << 3);
    /// Read-ahead.
    pub const RAHEAD: Flags = Flags(1 << 4);
    /// Background writeback.
    pub const BACKGROUND: Flags = Flags(1 << 5);
    /// Flush the device's cache first.
    pub const PREFLUSH: Flags = Flags(1 << 6);
    /// Durable on completion.
    pub const FUA: Flags = Flags(1 << 7);
    /// Not to be merged.
    pub const NOMERGE: Flags = Flags(1 << 8);
    /// Fail instead of sleeping for a request.
    pub const NOWAIT: Flags = Flags(1 << 9);

    /// Both sets together.
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// This set less the other.
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Whether any flag of `other` is set.
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// The raw bits, for fingerprints and recorded inputs.
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// The inverse of [`Flags::to_bits`].
    pub const fn from_bits(bits: u16) -> Flags {
        Flags(bits)
    }
}

/// Whether an operation is synchronous: any read, and whatever carries SYNC, FUA or PREFLUSH
/// (rule request-2).
pub const fn is_sync(op: Op, flags: Flags) -> bool {
    // Without a branch: nobody can foresee what the next request is, and many ask.
    matches!(op, Op::Read) | flags.intersects(Flags::SYNC.with(Flags::FUA).with(Flags::PREFLUSH))
}

/// A context in which block-layer code runs: a task (its number is its pid), or one of the
/// contexts that the machine sets aside for interrupts and kernel workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u32);

/// An io_context: what CFQ, BFQ and anticipatory take for "a process".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoContextId(pub u32);

/// A control group; 0 is the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CgroupId(pub u32);

impl CgroupId {
    /// The root group.
    pub const ROOT: CgroupId = CgroupId(0);
}

/// Who submits: what the schedulers look at when they bind a request to somebody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The submitting task.
    pub context: ContextId,
    /// Its io_context.
    pub io_context: IoContextId,
    /// The control group that is charged.
    pub cgroup: CgroupId,
    /// The core it runs on; selects the software queue of blk-mq.
    pub cpu: u16,
}

/// One contiguous piece of I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// What to do.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector.
    pub sector: Sector,
    /// Length; zero only for a pure flush.
    pub sectors: Sectors,
    /// The priority the bio itself carries (rule owner-4).
    pub ioprio: Ioprio,
    /// Who submits it.
    pub origin: Origin,
    /// The submitter's own mark; comes back when the bio is done.
    pub token: u64,
}

impl Bio {
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

    /// Whether it has to go through the flush machinery.
    pub fn needs_flush_machinery(&self) -> bool {
        self.flags.intersects(Flags::PREFLUSH.with(Flags::FUA))
    }

    /// Whether it may be merged with anything at all.
    pub fn is_mergeable(&self) -> bool {
        !self.needs_flush_machinery()
            && !self.flags.intersects(Flags::NOMERGE)
            && self.op != Op::Discard
    }
}

/// A bio on its way through the block layer; parts of a split bio count for their parent.
#[derive(Clone, Debug)]
pub struct BioRecord {
    /// The bio (for a split one: what is left of it).
    pub bio: Bio,
    /// Where its data lie in memory.
    pub(crate) pieces: Segments,
    /// How many segments these are to the device.
    pub(crate) segments: u16,
    /// When it entered the block layer, or went on after it had waited for limits.
    pub(crate) queued_at: Instant,
    /// When the device got the last of its parts that is done.
    pub(crate) issued_at: Instant,
    /// Who is told when it is done: who submitted it at first.
    pub(crate) owner: ContextId,
    /// How far it has come with limits of control groups.
    pub(crate) passage: Passage,
    /// What it is to the policies before the scheduler.
    pub(crate) qos: Mark,
    /// The next bio of the same request, in sector order.
    pub(crate) next: Option<BioId>,
    /// The whole of which this is a part.
    pub(crate) parent: Option<BioId>,
    /// Parts that are not done, this one included.
    pub(crate) parts_left: u32,
}

impl BioRecord {
    /// How often the clock is read for it, and not only for its request.
    pub(crate) fn looks_at_clock(&self, rules: Option<&MultiQueue>, limits: &Limits) -> u32 {
        let is_asked = self.parent.is_none() && rules.is_none_or(|it| it.bio_reads_clock);
        let is_split = self.bio.op != Op::Discard && self.bio.sectors > self.largest_part(limits);
        let splitting = rules.filter(|_| is_split).map_or(0, |it| it.split_looks);
        u32::from(is_asked) + splitting
    }

    /// How much of it goes into one command.
    pub(crate) fn largest_part(&self, limits: &Limits) -> Sectors {
        let largest = limits.largest_at(self.bio.sector);
        self.pieces.most(limits).map_or(largest, |most| most.min(largest))
    }
}

/// Handle of a bio inside the block layer.
pub type BioId = Id<BioRecord>;
