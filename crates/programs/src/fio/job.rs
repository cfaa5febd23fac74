//! A job with every setting resolved: what to run, ready for the engine.
//!
//! All amounts are integers with units. What depends on the size of the device stays a [`Share`]
//! until the files are laid out on it. Nothing here draws a random number; generators are built
//! from these descriptions.

use base::{Bytes, Duration};

use super::engine::Engine;
pub use super::engine::{Donor, DonorRoom};
use super::error::{ParseError, Place};
use super::mix::{BlockSizes, Distribution, PrioritySplit};
use super::random::Repeated;
pub use super::settings::{Ignored, Share};
use machine::calls::RangeSync;
use machine::task::Advice;

/// One process of a workload: a section of a job file, or one of its `numjobs` clones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name; clones share it.
    pub name: String,
    /// Where its section begins.
    pub place: Place,
    /// Its position among all processes, from 0.
    pub number: u32,
    /// Its position among the clones of its section, from 0.
    pub clone: u32,
    /// How many clones its section has.
    pub clones: u32,
    /// The reporting group.
    pub group: u32,
    /// The number of stone walls before it: it starts when all jobs of the stage before ended.
    pub stage: u32,
    /// It starts when all processes of the job with this name ended.
    pub wait_for: Option<String>,
    /// What it reads and writes.
    pub files: Files,
    /// How it submits.
    pub engine: Engine,
    /// How deep it keeps its queue.
    pub queue: Queue,
    /// In which directions and order it goes.
    pub pattern: Pattern,
    /// Where it stays and how much it transfers.
    pub extent: Extent,
    /// When it starts and ends.
    pub timing: Timing,
    /// How it paces itself.
    pub pace: Pace,
    /// The latency or the steadiness that it looks for.
    pub goal: Goal,
    /// How durable its writes are.
    pub durability: Durability,
    /// What it does about the page cache.
    pub caching: Caching,
    /// How it makes its files, where there is a file system.
    pub creation: Creation,
    /// Whether it reads back what it wrote.
    pub verify: Option<Verify>,
    /// Its priorities and where it runs.
    pub process: Process,
    /// With whose blocks those of its files change places (ioengine `e4defrag`).
    pub donor: Option<Donor>,
    /// What it asks of SCSI commands (ioengine `sg`).
    pub scsi: Scsi,
    /// How busy it keeps its core (ioengine `cpuio`).
    pub cpu: Option<CpuLoad>,
    /// What ends with it.
    pub exit: Option<ExitWhat>,
    /// Its results are merged with those of its group.
    pub group_reporting: bool,
    /// Its results are reported.
    pub reported: bool,
    /// The logs that it writes.
    pub logs: Logs,
    /// Its options as they were typed.
    pub options: Vec<(String, String)>,
    /// Those of global sections, which hold for others too.
    pub global_options: Vec<(String, String)>,
    /// Options that were given and cannot change anything.
    pub ignored: Vec<Ignored>,
    /// What the user should know about how their job is understood.
    pub notes: Vec<String>,
}

/// Reads, writes, trims: the index of per-direction settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards.
    Trim,
}

/// A setting for each [`Direction`].
pub type PerDirection<T> = [T; 3];

/// The files of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// Each of them; never empty.
    pub list: Vec<File>,
    /// The size of each file that is laid out: from, to.
    pub size: Option<(Bytes, Bytes)>,
    /// How the next file is chosen.
    pub service: Service,
    /// How many are open at a time.
    pub open: u32,
}

/// A file of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct File {
    /// Its full name.
    pub name: String,
    /// What it is in the simulated machine.
    pub kind: FileKind,
}

/// What a file name means in the simulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// The simulated device (any name under /dev).
    Device,
    /// An extent of the device, laid out where no other file lies.
    LaidOut,
    /// A file of the file system that is mounted.
    File,
    /// `/dev/null` and `/dev/zero`: system calls without block I/O.
    Sink,
}

/// How a job chooses the file for its next request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// Each in turn, after this many requests.
    RoundRobin(u32),
    /// Any, after this many requests.
    Random(u32),
    /// One file to its end, then the next.
    Sequential,
    /// Any, by a skewed distribution, for each request.
    Skewed(Distribution),
}

/// How deep a job keeps its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Requests in flight at most; 1 with a synchronous engine.
    pub depth: u32,
    /// Requests handed over at once.
    pub batch: u32,
    /// Completions waited for at once; 0 polls.
    pub complete_min: u32,
    /// Completions taken at once.
    pub complete_max: u32,
    /// The queue is filled again when it has drained to this depth.
    pub low: u32,
    /// Requests that overlap one in flight wait for it.
    pub serialize_overlap: bool,
    /// A thread of its own submits each request (`io_submit_mode=offload`).
    pub offload: bool,
}

/// The directions and the order of a job's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The directions it goes in.
    pub directions: Directions,
    /// Offsets are random rather than sequential.
    pub random: bool,
    /// Percent of a random job's requests that are random, for each direction.
    pub random_percent: PerDirection<u8>,
    /// What `rw=…:N` says.
    pub modifier: Modifier,
    /// Each block is visited once before any is visited again.
    pub random_map: bool,
    /// Random offsets come from a shift register that visits each block once.
    pub shift_register: bool,
    /// Where random offsets fall.
    pub distribution: PerDirection<Distribution>,
    /// The sizes of requests.
    pub sizes: PerDirection<BlockSizes>,
    /// The sizes of reads are for sequential requests, those of writes for random ones.
    pub sizes_by_randomness: bool,
    /// Random offsets are multiples of this.
    pub alignment: PerDirection<Bytes>,
    /// `randseed`: of all random numbers of the job.
    pub seed: Option<u64>,
    /// Which random numbers are the same in every run.
    pub repeated: Repeated,
    /// Offsets, sizes and files are drawn with 64 bits (`random_generator=tausworthe64`).
    pub long_draws: bool,
}

/// The directions of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directions {
    /// One only.
    Only(Direction),
    /// Reads and writes, with this percentage of reads.
    ReadWrite(u8),
    /// Each block is trimmed, then written.
    TrimWrite,
}

/// What `rw=…:N` changes about offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modifier {
    /// Nothing.
    None,
    /// Sequential offsets leave holes of this many bytes, backwards if below zero.
    Skip(i64),
    /// A new random offset after this many requests; sequential in between.
    Run(u32),
    /// A new offset after this many requests at the same one.
    Repeat(u32),
}

/// Where a job stays and how much it transfers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The size of all files together.
    pub size: Option<Share>,
    /// The amount to transfer, if not the size.
    pub io_size: Option<Share>,
    /// The first byte, in every file.
    pub offset: Share,
    /// How much later each clone begins.
    pub offset_increment: Share,
    /// Offsets given in percent are aligned up to this; 0 means the smallest block.
    pub offset_align: Bytes,
    /// Goes on to the end of the device, whatever `size` says.
    pub fill_device: bool,
    /// The number of requests after which the job ends.
    pub number_ios: Option<u64>,
    /// How often the whole is done.
    pub loops: u32,
    /// How the range is divided.
    pub zones: Option<Zones>,
}

/// How the range of a job is divided into zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zones {
    /// `size` bytes are transferred within each `range`, then `skip` bytes are left out.
    Strided {
        /// Bytes to transfer in a zone before the next one.
        size: Bytes,
        /// Bytes that a zone covers.
        range: Bytes,
        /// Bytes between zones.
        skip: Share,
    },
    /// The device is treated as zones that are written from their start to their end, as fio does
    /// on a conventional block device with `zonemode=zbd`.
    Emulated {
        /// Bytes of a zone.
        size: Bytes,
        /// Bytes of a zone that are used.
        capacity: Bytes,
        /// Zones that are being written at a time; 0 for no limit.
        open: u32,
    },
}

/// When a job starts and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// It starts this long after its turn: from, to.
    pub start_delay: (Duration, Duration),
    /// It ends after this time.
    pub runtime: Option<Duration>,
    /// It starts over until `runtime` has passed.
    pub time_based: bool,
    /// It is not measured before this time has passed, and `runtime` begins then.
    pub ramp: Duration,
}

/// How a job paces itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Its pauses.
    pub think: Option<Think>,
    /// At most this rate in each direction.
    pub rate: PerDirection<Option<Rate>>,
    /// It ends when it falls below this rate.
    pub rate_min: PerDirection<Option<Rate>>,
    /// Requests come at random times (a Poisson process) rather than evenly.
    pub poisson: bool,
    /// `rate_min` is judged over this time.
    pub rate_cycle: Duration,
    /// It does not catch up after a pause.
    pub rate_ignores_think: bool,
    /// Its share among the jobs of its flow.
    pub flow: Option<Flow>,
}

/// A rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Bytes in a second.
    Bandwidth(Bytes),
    /// Requests in a second.
    Requests(u64),
}

/// The pauses of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// How long it pauses.
    pub time: Duration,
    /// How much of it keeps a core busy.
    pub spin: Duration,
    /// It pauses after this many requests.
    pub blocks: u32,
    /// Requests count when they are issued, not when they complete.
    pub at_issue: bool,
    /// It pauses after this much time of requests.
    pub io_time: Option<Duration>,
}

/// A job's share of what the jobs of a flow do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Which flow.
    pub id: i64,
    /// Its weight in it.
    pub weight: u32,
    /// How long it sleeps when it is ahead.
    pub sleep: Duration,
}

/// The logs of a job: the first part of their names, where they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// Latencies, in three files.
    pub latency: Option<String>,
    /// Bandwidth.
    pub bandwidth: Option<String>,
    /// Requests.
    pub requests: Option<String>,
    /// A line stands for so much time, not for a request.
    pub window: Option<Duration>,
    /// It has the largest latency, not the mean.
    pub largest: bool,
    /// Lines say where a request went.
    pub offsets: bool,
    /// Lines have the whole priority.
    pub priorities: bool,
    /// Each process has files of its own.
    pub per_process: bool,
}

impl Logs {
    /// Whether there are any.
    pub fn are_written(&self) -> bool {
        self.prefixes().next().is_some()
    }

    /// The first parts of their names.
    pub fn prefixes(&self) -> impl Iterator<Item = &String> {
        [&self.latency, &self.bandwidth, &self.requests].into_iter().flatten()
    }
}

/// What a job looks for, and gives up at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// The deepest queue that keeps a latency.
    pub latency: Option<LatencyTarget>,
    /// It ends with an error when a request takes longer.
    pub max_latency: PerDirection<Option<Duration>>,
    /// It ends when its rate is steady.
    pub steady: Option<Steady>,
}

/// `latency_target` and what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyTarget {
    /// The latency to keep.
    pub target: Duration,
    /// How long each depth is tried.
    pub window: Duration,
    /// The percentile that must keep it, in millionths of a percent.
    pub percentile: u32,
    /// It goes on adjusting instead of ending.
    pub run: bool,
}

/// `steadystate` and what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    /// Bandwidth is judged, not requests.
    pub bandwidth: bool,
    /// The slope is judged, not the largest deviation.
    pub slope: bool,
    /// The limit, in millionths of the unit or of a percent of the mean.
    pub limit: u64,
    /// The limit is a percentage.
    pub percent: bool,
    /// The window.
    pub duration: Duration,
    /// Nothing is collected before this time.
    pub ramp: Duration,
}

/// How durable writes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durability {
    /// O_SYNC or O_DSYNC.
    pub sync: SyncMode,
    /// An fsync after this many writes.
    pub fsync: Option<u32>,
    /// An fdatasync after this many writes.
    pub fdatasync: Option<u32>,
    /// An fsync at the end.
    pub end_fsync: bool,
    /// An fsync whenever a file is closed.
    pub fsync_on_close: bool,
    /// The job asked for direct I/O.
    pub direct: bool,
    /// What was written is written back after this many writes (`sync_file_range`).
    pub range: Option<(RangeSync, u32)>,
}

/// How a job makes its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Creation {
    /// How it gets room for them.
    pub room: Room,
    /// The main process makes them, one after the other.
    pub is_serial: bool,
    /// They are made durable.
    pub fsync: bool,
    /// They are not made beforehand.
    pub on_open: bool,
    /// The job does nothing else.
    pub only: bool,
    /// Files that are not there may be made.
    pub is_allowed: bool,
    /// They are read before the job begins.
    pub pre_read: bool,
    /// They are written before they are written.
    pub overwrite: bool,
    /// Writes go behind what is there.
    pub append: bool,
    /// They are removed at the end.
    pub unlinks: bool,
    /// They are removed after each round.
    pub unlinks_each_loop: bool,
}

/// How a job gets room for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Not at all.
    None,
    /// fallocate.
    Reserve,
    /// fallocate that leaves the size as it is.
    KeepSize,
    /// ftruncate.
    Truncate,
}

/// What a job does about the page cache before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// What is cached of its files is dropped.
    pub invalidate: bool,
    /// It says how it will read.
    pub hint: Option<Advice>,
}

/// The flag that files are opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// None.
    None,
    /// O_SYNC.
    Sync,
    /// O_DSYNC.
    DataSync,
}

/// How a job reads back what it wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verify {
    /// It only reads what an earlier run wrote.
    pub only: bool,
    /// It reads back when the writes are done.
    pub after_writes: bool,
    /// It reads back whenever this many blocks are written.
    pub backlog: Option<u64>,
    /// It reads back this many of them.
    pub backlog_batch: Option<u32>,
}

/// The priorities of a job's process and where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// `nice`.
    pub nice: i8,
    /// Class (1 to 3; 0 none) and level of its ioprio.
    pub ioprio: Option<(u8, u8)>,
    /// A priority for some of its requests: reads, writes.
    pub command_priority: Option<[CommandPriority; 2]>,
    /// The cores it may run on.
    pub cpus: Option<Vec<u32>>,
    /// The control group it joins.
    pub cgroup: Option<String>,
    /// The weight it sets there.
    pub cgroup_weight: Option<u32>,
}

/// A priority for some of the requests of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPriority {
    /// Class.
    pub class: u8,
    /// Level.
    pub level: u8,
    /// For which requests.
    pub which: PriorityShare,
}

/// Which requests get a priority of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriorityShare {
    /// This many percent.
    Percent(u8),
    /// By size.
    BySize(Vec<PrioritySplit>),
}

/// What ioengine `sg` does with writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scsi {
    /// The command.
    pub write: ScsiWrite,
    /// Writes force unit access.
    pub fua: bool,
}

/// The SCSI command of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScsiWrite {
    /// WRITE, or WRITE SAME, which transfers one sector but writes them all.
    Write,
    /// WRITE AND VERIFY: writes, then reads from the medium.
    WriteAndVerify,
    /// VERIFY: reads from the medium and transfers nothing back.
    Verify,
}

/// How busy ioengine `cpuio` keeps a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuLoad {
    /// Percent of the time.
    pub percent: u8,
    /// The length of one busy stretch.
    pub chunk: Duration,
    /// It ends when all jobs that do I/O have ended.
    pub exit_on_io_done: bool,
}

/// What ends with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitWhat {
    /// The jobs of its group.
    Group,
    /// All jobs that are running.
    Stonewall,
    /// All jobs, also those that wait.
    All,
}

impl Job {
    /// An error about this job as a whole.
    pub fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError::new(&self.place, format!("job '{}': {}", self.name, message.into()))
    }

    /// Whether it writes multiples of so many bytes at multiples of them.
    pub fn writes_whole(&self, bytes: u64) -> bool {
        let write = Direction::Write as usize;
        let (size, at) = (&self.pattern.sizes[write], self.pattern.alignment[write].0);
        size.are_multiples_of(bytes) && at.is_multiple_of(bytes)
    }

    /// Its files on a file system, with how many bytes of each it may use; none if it does not say
    /// how many in bytes.
    pub fn files_of_known_size(&self) -> Vec<(&str, u64)> {
        let files = self.files.list.iter().filter(|it| it.kind == FileKind::File);
        let all = match self.extent.size {
            Some(Share::Bytes(bytes)) => bytes,
            _ => 0,
        };
        let each = all / self.files.list.len().max(1) as u64;
        files.map(|it| (it.name.as_str(), each)).filter(|it| it.1 > 0).collect()
    }

    /// Whether it reports together with another process.
    pub fn reports_with(&self, other: &Job) -> bool {
        self.group_reporting && other.group_reporting && self.group == other.group
    }

    /// Whether it works on files of a file system.
    pub fn has_files(&self) -> bool {
        self.files.list.iter().any(|file| file.kind == FileKind::File)
    }

    /// A file that it reads or writes on a raw disk, where the simulator lays files out.
    pub fn laid_out(&self) -> Option<&str> {
        let mut list = self.files.list.iter().filter(|_| self.engine.does_block_io());
        list.find(|file| file.kind == FileKind::LaidOut).map(|file| file.name.as_str())
    }

    /// Whether it writes or trims.
    pub fn writes(&self) -> bool {
        self.pattern.directions != Directions::Only(Direction::Read)
    }

    /// Whether it reads.
    pub fn reads(&self) -> bool {
        self.pattern.directions.include(Direction::Read)
    }

    /// Whether it reads or writes blocks of the device.
    pub fn does_block_io(&self) -> bool {
        self.engine.does_block_io()
            && self.files.list.iter().any(|file| file.kind != FileKind::Sink)
    }
}

impl Direction {
    /// All directions, in the order of per-direction settings.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];
}

impl Directions {
    /// Whether requests go in `direction`.
    pub fn include(self, direction: Direction) -> bool {
        match self {
            Directions::Only(only) => only == direction,
            Directions::ReadWrite(_) => direction != Direction::Trim,
            Directions::TrimWrite => direction != Direction::Read,
        }
    }
}
