//! What programs do beside their system calls, as it was seen of one version of each on one guest:
//! how often they look at the clock and for files, how long they sleep, what memory they take.
//!
//! Another version, or another C library, has other habits. So they are a value that comes with the
//! surroundings of a command ([`Surroundings`](crate::Surroundings)), not a rule of the programs.

use base::Duration;
use machine::program::{Footprint, Left, LeftBehind};

/// The habits of all programs that have any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// Of fio.
    pub fio: FioHabits,
    /// Of the shell that runs several programs, and of the loader of programs.
    pub shell: ShellHabits,
    /// Of sysbench.
    pub sysbench: SysbenchHabits,
}

impl Habits {
    /// As they were seen in the world linux: Debian 12 on a User-Mode Linux 6.12.
    pub const OBSERVED: Habits = Habits {
        fio: FioHabits::OBSERVED,
        shell: ShellHabits::OBSERVED,
        sysbench: SysbenchHabits::OBSERVED,
    };
}

/// The habits of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FioHabits {
    /// Between two looks whether processes have ended while others wait for their turn, and for
    /// processes to get ready; with the slack of a timer of 50 us. From strace.
    pub look: Duration,
    /// Between two looks of the main process after the others while they work, with that slack.
    pub poll: Duration,
    /// How many naps the main process takes when it has measured its clock.
    pub naps: u32,
    /// How long a nap is: 1 us and the slack.
    pub nap: Duration,
    /// Looks at the clock after each nap.
    pub looks_per_nap: u32,
    /// Looks at the clock before the helper is started.
    pub looks_before_helper: u32,
    /// Memory of fio and its libraries, in pages. From /proc/meminfo, before and while it runs.
    pub footprint: Footprint,
    /// Pages that the core has at hand when fio makes its files. From global_dirty_state in guests
    /// of 192 MiB to 1 GiB.
    pub left_by_main: LeftBehind,
    /// The same when its processes begin to write.
    pub left_by_processes: LeftBehind,
    /// Looks at the clock after fio has asked for its files, before it sleeps for the first time.
    /// From when the first request comes.
    pub looks_at_begin: u32,
    /// How many more there are with disks alone.
    pub looks_without_files: u32,
    /// Looks at the clock for each job that did not find its files there.
    pub looks_per_job: u32,
    /// Looks at the clock before the processes are let go.
    pub looks_before_go: u32,
    /// Looks at the clock for each process that ended.
    pub looks_per_end: u32,
    /// Looks at the clock for each file that is made.
    pub looks_per_file: u32,
    /// Looks at the directory for each job with files.
    pub paths_per_job: u32,
    /// What the helper does.
    pub helper: HelperHabits,
    /// What a process does.
    pub process: ProcessHabits,
}

/// The habits of the thread of fio that keeps its figures, in milliseconds from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelperHabits {
    /// When it wakes for the first time.
    pub first: u64,
    /// When what it does four times a second is due, and how long after that again: a millisecond
    /// is lost once.
    pub often: (u64, u64),
    /// The same for what it does twice a second.
    pub seldom: (u64, u64),
    /// Looks at the clock when it wakes.
    pub looks: u32,
}

/// How often a process of fio looks at the clock, and what a request costs that moves no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessHabits {
    /// Between being let go and the first request.
    pub at_start: u32,
    /// The same with libaio.
    pub at_start_of_libaio: u32,
    /// Before a request: whether time is over, whether rates allow it, when it starts. Calls of the
    /// C library with clocksource clock_gettime, counted between those that do I/O.
    pub before_request: u32,
    /// Before a sync, and before a request that reads back.
    pub before_others: u32,
    /// After a system call that moves data or syncs.
    pub after_call: u32,
    /// After one that submits a batch.
    pub after_submitting: u32,
    /// After one that collects what is done.
    pub after_collecting: u32,
    /// After the last request, beside the look at the end of each.
    pub at_end: u32,
    /// The same with mmap.
    pub at_end_of_mmap: u32,
    /// What a request costs that moves no data: building it and looking at the clock. With ioengine
    /// null it is 0.4 to 1.9 us.
    pub nothing: Duration,
}

impl FioHabits {
    /// fio 3.33.
    pub const OBSERVED: FioHabits = FioHabits {
        look: Duration::from_micros(100_050),
        poll: Duration::from_micros(10_050),
        naps: 10,
        nap: Duration::from_micros(51),
        looks_per_nap: 2,
        looks_before_helper: 4,
        footprint: Footprint { own: 2_000, files: 7_750 },
        left_by_main: LeftBehind {
            little: Left { files: 90, doubled: 5, structures: 436, others: 0 },
            much: Left { files: 460, doubled: 2, structures: 38, others: 0 },
        },
        left_by_processes: LeftBehind {
            little: Left { files: 464, doubled: 5, structures: 436, others: 490 },
            much: Left { files: 460, doubled: 2, structures: 38, others: 480 },
        },
        looks_at_begin: 3,
        looks_without_files: 1,
        looks_per_job: 4,
        looks_before_go: 3,
        looks_per_end: 2,
        looks_per_file: 3,
        paths_per_job: 2,
        helper: HelperHabits::OBSERVED,
        process: ProcessHabits::OBSERVED,
    };
}

impl HelperHabits {
    /// fio 3.33, with jobs that begin at once.
    pub const OBSERVED: HelperHabits =
        HelperHabits { first: 250, often: (249, 250), seldom: (101, 500), looks: 5 };
}

impl ProcessHabits {
    /// fio 3.33.
    pub const OBSERVED: ProcessHabits = ProcessHabits {
        at_start: 3,
        at_start_of_libaio: 2,
        before_request: 3,
        before_others: 2,
        after_call: 2,
        after_submitting: 1,
        after_collecting: 1,
        at_end: 4,
        at_end_of_mmap: 3,
        nothing: Duration::from_micros(1),
    };
}

/// The habits of the shell and of the dynamic linker: what comes between two programs.
///
/// From the time between two direct reads by `dd` with another program in between, where a file that
/// is looked for takes 1 us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShellHabits {
    /// Files that are looked for to start a program that needs none but the C library.
    pub files: u32,
    /// Of these, those that a shell does not look for again when it has found the program before.
    pub directories: u32,
    /// Looks at the clock.
    pub looks: u32,
    /// What single programs look for besides.
    pub own_files: OwnFiles,
}

/// Files that a program looks for when it starts, beside those of every program: its libraries and
/// what it wants to know of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnFiles {
    /// `cp`.
    pub cp: u32,
    /// `ls`.
    pub ls: u32,
    /// `mkdir`.
    pub mkdir: u32,
    /// `mv`.
    pub mv: u32,
    /// `rm`.
    pub rm: u32,
    /// `stat`.
    pub stat: u32,
}

impl ShellHabits {
    /// busybox sh, and coreutils 9.1 with glibc.
    pub const OBSERVED: ShellHabits = ShellHabits {
        files: 26,
        directories: 3,
        looks: 5,
        own_files: OwnFiles { cp: 5, ls: 4, mkdir: 3, mv: 4, rm: 1, stat: 11 },
    };
}

/// The habits of sysbench 1.0; what is known of 0.4 does not tell any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SysbenchHabits {
    /// Looks at the clock for an event: before and behind it. 300 reads of what is cached take
    /// 155.4 us, 607 looks of 256 ns.
    pub looks_per_event: u32,
}

impl SysbenchHabits {
    /// sysbench 1.0.
    pub const OBSERVED: SysbenchHabits = SysbenchHabits { looks_per_event: 2 };
}
