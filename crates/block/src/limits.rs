//! What a request may look like and how many there may be: from the device, the kernel and sysfs.

use crate::command::Facts;
use crate::kernel::{Kernel, ReadAhead, Shape};
use base::{Bytes, Sector, Sectors};

/// The limits of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The device's own statement.
    pub facts: Facts,
    /// Commands that the device is given at a time: as many as it takes, unless somebody has
    /// written less to [`DEVICE_DEPTH`].
    pub device_depth: u32,
    /// Largest request (`max_sectors_kb`).
    pub max_sectors: Sectors,
    /// Most scatter/gather entries.
    pub max_segments: u16,
    /// Requests must not cross multiples of this; zero: no such rule.
    pub chunk_sectors: Sectors,
    /// `nr_requests`: request limit per direction (single queue), scheduler tags per hardware queue
    /// (blk-mq with a scheduler) or usable driver tags (without).
    pub nr_requests: u32,
    /// `nomerges`: 0 all merges, 1 only the one-hit cache, 2 none.
    pub nomerges: u8,
    /// `discard_max_bytes`: the largest discard; only who makes bios asks.
    pub max_discard: Sectors,
    /// `read_ahead_kb`: how far a file may be read ahead; only the page cache asks.
    pub read_ahead_kb: u32,
}

/// The file of a SCSI or SATA disk that says how many commands it is given at a time, below
/// `/sys/block/X`. Requests and tags stay as many as there were when the disk came.
pub const DEVICE_DEPTH: &str = "device/queue_depth";

/// What a discard has at most: its bytes are counted in 32 bits (seen on 6.12).
pub const MOST_DISCARDED: Sectors = Sectors(u32::MAX >> 9);

/// A setting of the queue itself (`/sys/block/X/queue/NAME`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSetting {
    /// File name in sysfs.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// Smallest accepted value.
    pub min: i64,
    /// Largest accepted value.
    pub max: i64,
    /// What it does, in one sentence.
    pub effect: &'static str,
}

/// All settings of the queue.
pub const QUEUE_SETTINGS: [QueueSetting; 7] = [
    QueueSetting {
        name: "nr_requests",
        unit: "requests",
        min: 1,
        max: 65_536,
        effect: "requests that may be allocated (values below 4 become 4)",
    },
    QueueSetting {
        name: "max_sectors_kb",
        unit: "KiB",
        min: 4,
        max: 32_767,
        effect: "largest request; at most what the hardware takes",
    },
    QueueSetting {
        name: "discard_max_bytes",
        unit: "bytes",
        min: Sector::SIZE as i64,
        max: MOST_DISCARDED.0 as i64 * Sector::SIZE as i64,
        effect: "largest discard, rounded down to sectors; longer ones become several",
    },
    QueueSetting {
        name: "nomerges",
        unit: "level",
        min: 0,
        max: 2,
        effect: "0 all merges, 1 only the last request merged into, 2 none",
    },
    QueueSetting {
        name: "read_ahead_kb",
        unit: "KiB",
        min: 0,
        max: 1_048_576,
        effect: "how far buffered reads are read ahead",
    },
    QueueSetting {
        name: "rotational",
        unit: "bool",
        min: 0,
        max: 1,
        effect: "what schedulers and plugging believe the device to be",
    },
    QueueSetting {
        name: "wbt_lat_usec",
        unit: "us",
        min: -1,
        max: i32::MAX as i64,
        effect: "latency of reads that writeback is throttled for (4.10 and later); 0 never, -1 \
                 what Linux has for such a device",
    },
];

impl QueueSetting {
    /// Those that a kernel has.
    pub fn all(kernel: &Kernel) -> impl Iterator<Item = &'static QueueSetting> + use<> {
        let has_wbt = kernel.wbt.is_some();
        QUEUE_SETTINGS.iter().filter(move |it| has_wbt || it.name != "wbt_lat_usec")
    }

    /// The one of this name, if a kernel has it.
    pub fn named(name: &str, kernel: &Kernel) -> Option<&'static QueueSetting> {
        QueueSetting::all(kernel).find(|it| it.name == name)
    }
}

impl Limits {
    /// The limits with which a device is attached.
    pub fn new(facts: Facts, kernel: &Kernel, shape: Shape, has_scheduler: bool) -> Limits {
        let max_sectors = facts.max_hw_sectors.min(kernel.max_sectors_cap);
        Limits {
            device_depth: facts.queue_depth,
            max_sectors,
            max_segments: facts.max_segments,
            chunk_sectors: facts.chunk_sectors,
            nr_requests: Limits::default_requests(&facts, shape, has_scheduler),
            nomerges: 0,
            max_discard: MOST_DISCARDED,
            read_ahead_kb: match kernel.read_ahead {
                ReadAhead::Kib(kib) => kib,
                ReadAhead::Requests(count) => (max_sectors.bytes().0 / 1024) as u32 * count,
            },
            facts,
        }
    }

    /// `nr_requests` after a scheduler was attached (rule allocate-7).
    pub fn default_requests(facts: &Facts, shape: Shape, has_scheduler: bool) -> u32 {
        match shape {
            Shape::Single => 128,
            Shape::Multi if has_scheduler => 2 * facts.queue_depth.min(128),
            Shape::Multi => facts.queue_depth,
        }
    }

    /// Segments of a contiguous piece of data (rule request-10).
    // Divergence: a kernel looks where each page lies; here all pieces of memory are equally long.
    pub fn segments(&self, sectors: Sectors) -> u16 {
        if sectors <= self.facts.segment {
            return u16::from(!sectors.is_zero());
        }
        sectors.0.div_ceil(self.facts.segment.0).min(u32::from(u16::MAX)) as u16
    }

    /// The largest piece that may start at `sector` within one request.
    pub fn largest_at(&self, sector: base::Sector) -> Sectors {
        let by_segments = u32::from(self.max_segments).saturating_mul(self.facts.segment.0);
        let mut largest = self.max_sectors.0.min(by_segments);
        if !self.chunk_sectors.is_zero() {
            let chunk = u64::from(self.chunk_sectors.0);
            largest = largest.min((chunk - sector.0 % chunk) as u32);
        }
        // A power of two, so that nothing has to be divided for each bio.
        let block = (self.facts.logical_block / Sector::SIZE as u32).max(1);
        Sectors((largest & !(block - 1)).max(block))
    }

    /// Whether a contiguous request of this start, length and segment count is allowed.
    pub fn allows(&self, sector: base::Sector, sectors: Sectors, segments: u16) -> bool {
        if sectors > self.max_sectors || segments > self.max_segments {
            return false;
        }
        if self.chunk_sectors.is_zero() {
            return true;
        }
        let chunk = u64::from(self.chunk_sectors.0);
        sector.0 % chunk + u64::from(sectors.0) <= chunk
    }

    /// Size of the disk.
    pub fn capacity(&self) -> Bytes {
        self.facts.capacity
    }
}
