//! What a device sees: commands, and what it says of itself.
//!
//! A command is a request as it crosses the driver: one direction, one contiguous range, a tag by
//! which its completion is recognised. Nothing above the driver (task, cgroup, priority) is
//! visible here.

use base::{Bytes, Sector, Sectors};

/// A slot in the driver's tag map; identifies a command between issue and completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

/// A hardware queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HctxId(pub u16);

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandOp {
    /// Transfer from the medium.
    Read,
    /// Transfer to the medium (or to a volatile write cache).
    Write,
    /// Make everything that was completed before durable; carries no data.
    Flush,
    /// Tell the device that a range is no longer needed.
    Discard,
}

/// A request as the device sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// By what its completion is recognised; unique among the commands in flight.
    pub tag: Tag,
    /// What to do.
    pub op: CommandOp,
    /// First sector; zero for a flush.
    pub sector: Sector,
    /// Length; zero for a flush.
    pub sectors: Sectors,
    /// The write must be durable when it completes (only sent to devices that offer it).
    pub fua: bool,
}

/// How a device is attached; decides what its driver can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// SATA behind libata: a SCSI disk whose flushes cannot be queued beside other commands.
    Sata,
    /// A SCSI or SAS disk: the driver asks for a budget (commands in the device below its queue
    /// depth) before it asks the scheduler for a request.
    Scsi,
    /// NVMe: tags are the only limit.
    Nvme,
    /// virtio-blk: tags are the only limit.
    Virtio,
    /// The loop driver: tags are the only limit.
    Loop,
}

/// What a device tells the kernel about itself when it is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// How it is attached.
    pub transport: Transport,
    /// Size of the disk.
    pub capacity: Bytes,
    /// The `queue/rotational` flag, which CFQ, BFQ, WBT and plugging look at.
    pub rotational: bool,
    /// A volatile write cache is reported (`queue/write_cache` = write back), so flushes are sent.
    pub volatile_cache: bool,
    /// Forced unit access is offered.
    pub fua: bool,
    /// Commands accepted at once per hardware queue (NCQ depth, virtqueue size, host tags).
    pub queue_depth: u32,
    /// Hardware queues (1 for SATA, SAS, virtio with one queue; per-core for NVMe).
    pub hardware_queues: u32,
    /// Logical block size in bytes, a power of two; commands are aligned to it.
    pub logical_block: u32,
    /// Largest transfer the hardware takes, in sectors (`queue/max_hw_sectors_kb` doubled).
    pub max_hw_sectors: Sectors,
    /// Scatter/gather entries per command (`queue/max_segments`).
    pub max_segments: u16,
    /// A discard command is understood.
    pub discard: bool,
    /// Commands may not cross multiples of this many sectors; zero: no such rule.
    pub chunk_sectors: Sectors,
    /// How much of a bio's data lies in one piece of memory, and so is one scatter/gather entry:
    /// [`Facts::PAGE`] where memory has been in use for a while.
    pub segment: Sectors,
}

impl Facts {
    /// A page of memory.
    pub const PAGE: Sectors = base::page::SECTORS;

    /// Whether the disk is taken for one that turns when it is attached. Those of virtio are, and
    /// `queue/rotational` is written later. Observed on 6.1.192 and 6.12.117.
    pub fn begins_rotational(&self) -> bool {
        self.rotational || self.transport == Transport::Virtio
    }
}

/// What a device does for a command at a time, as far as its model knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The controller deals with it.
    Controller,
    /// It waits until a flush is over.
    BehindFlush,
    /// It waits in the drive for its turn: for the arm, or for a place among those served at once.
    Queue,
    /// It waits for room in the write cache, or behind a write that does.
    CacheFull,
    /// It waits for flash that is busy with something else.
    DieBusy,
    /// It waits because a volume has used up its rate.
    Budget,
    /// The arm moves, and settles.
    Seek,
    /// The sector comes round.
    Rotation,
    /// Data come from the medium or go there.
    Media,
    /// Data cross the link to the host.
    Link,
    /// It is served; the model does not say how.
    Service,
}

impl Stage {
    /// The name used in reports and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Controller => "controller",
            Stage::BehindFlush => "behind a flush",
            Stage::Queue => "queue of the drive",
            Stage::CacheFull => "write cache full",
            Stage::DieBusy => "die busy",
            Stage::Budget => "rate used up",
            Stage::Seek => "seek",
            Stage::Rotation => "rotation",
            Stage::Media => "medium",
            Stage::Link => "link",
            Stage::Service => "service",
        }
    }
}
