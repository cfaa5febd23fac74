//! What programs do beside their system calls, as it was seen of one version of each on one guest:
//! how often they look at the clock and for files, how long they sleep, what memory they take.
//!
//! Another version, or another C library, has other habits. So they are values of a profile, and
//! no rules of the programs.

use crate::{Footprint, Left, LeftBehind};
use base::{Bytes, Duration};
use params::Accept::{Flag, Size, Time, Whole, Wholes};
use params::{Accept, Table};

/// Looks at the clock.
const LOOKS: Accept = Whole(0, 10_000, "looks");
/// Files that are looked for by their paths.
const FILES: Accept = Whole(0, 10_000, "files");
const SLEEP: Accept = Time(0.0, 1e10);
/// Pages of a [`Left`], in the order of its fields.
const LEFT: Accept = Wholes(4, 1 << 20, "pages");

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
    pub(crate) fn read(table: &Table) -> Habits {
        Habits {
            fio: FioHabits::read(table),
            shell: ShellHabits::read(table),
            sysbench: SysbenchHabits::read(table),
        }
    }
}

params::section! {
    /// The habits of fio.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FioHabits in "fio" {
        /// Between two looks whether processes have ended while others wait for their turn, and for
        /// processes to get ready.
        look: Duration = SLEEP,
        /// Between two looks of the main process after the others while they work.
        poll: Duration = SLEEP,
        /// How many naps the main process takes when it has measured its clock.
        naps: u32 = Whole(0, 1_000, "naps"),
        /// How long a nap is.
        nap: Duration = SLEEP,
        /// Looks at the clock after each nap.
        looks_per_nap: u32 = LOOKS,
        /// Looks at the clock before the helper is started.
        looks_before_helper: u32 = LOOKS,
        /// Memory of fio and its libraries, in pages.
        footprint: Footprint = Wholes(2, 1 << 30, "pages"),
        /// Pages of its memory that fio has written to and may use for the buffer from which it
        /// makes files.
        heap_room: u32 = Whole(0, 1 << 20, "pages"),
        /// A buffer of this size or more is given back when the file is made.
        heap_keeps_below: Bytes = Size(0.0, 1e12),
        /// Pages of its memory that the main process writes to for each process that it reads of,
        memory_per_process: u32 = Whole(0, 1 << 20, "pages"),
        /// and for each eight but the first ones.
        memory_per_eight_processes: u32 = Whole(0, 1 << 20, "pages"),
        /// Those that it writes to before it starts them,
        memory_before_processes: u32 = Whole(0, 1 << 20, "pages"),
        /// and again for each of them.
        memory_of_main_per_process: u32 = Whole(0, 1 << 20, "pages"),
        /// Pages that a process writes to when it begins, but for its buffers.
        memory_of_process: u32 = Whole(0, 1 << 20, "pages"),
        /// Pages that the core has at hand when fio makes its files.
        left_by_main_little: Left = LEFT,
        /// The same with more memory.
        left_by_main_much: Left = LEFT,
        /// The same when its processes begin to write.
        left_by_processes_little: Left = LEFT,
        /// The same with more memory.
        left_by_processes_much: Left = LEFT,
        /// Looks at the clock after fio has asked for its files, before it sleeps for the first
        /// time.
        looks_at_begin: u32 = LOOKS,
        /// How many more there are with disks alone.
        looks_without_files: u32 = LOOKS,
        /// Looks at the clock for each of the first processes that did not find its files there.
        looks_per_job: u32 = LOOKS,
        /// The same once, if there was one.
        looks_when_made: u32 = LOOKS,
        /// Looks at the clock before the processes are let go.
        looks_before_go: u32 = LOOKS,
        /// The same of a later stage.
        looks_before_stage: u32 = LOOKS,
        /// Looks at the clock for each process of a later stage that is started.
        looks_per_later_process: u32 = LOOKS,
        /// Looks at the clock before the main process sleeps while others wait for their turn, but
        /// for when it has just let some go.
        looks_while_waiting: u32 = LOOKS,
        /// Looks at the clock for each process that ended.
        looks_per_end: u32 = LOOKS,
        /// The kernel puts work off when the main process looks for a file, until so many processes
        /// have ended.
        disturbed_until: u32 = Whole(0, 1_000_000, "processes"),
        /// Looks for another file before each file that is made.
        paths_per_made_file: u32 = FILES,
        /// Looks at the directory for each job with files.
        paths_per_job: u32 = FILES,
        /// The same for each file of a job, before any of them is made.
        paths_per_file: u32 = FILES,
        /// The same for the file of a job that has one, when it is found missing.
        paths_of_only_file: u32 = FILES,
    }
    with {
        /// What the helper does.
        helper: HelperHabits,
        /// What a process does.
        process: ProcessHabits,
    }
}

params::section! {
    /// The habits of the thread of fio that keeps its figures, in milliseconds from its start.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HelperHabits in "fio-helper" {
        /// When it wakes for the first time.
        first: u64 = Whole(1, 1_000_000, "ms"),
        /// When what it does four times a second is due, and how long after that again: a
        /// millisecond is lost once.
        often: (u64, u64) = Wholes(2, 1_000_000, "ms"),
        /// How often it does something else, from when no process waits for a later stage.
        seldom: u64 = Whole(1, 1_000_000, "ms"),
        /// Looks at the clock when it wakes.
        looks: u32 = LOOKS,
        /// Looks besides for each process, whether it runs, has ended or waits.
        looks_per_process: u32 = LOOKS,
    }
}

params::section! {
    /// How often a process of fio looks at the clock, and what a request costs that moves no data.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ProcessHabits in "fio-process" {
        /// Work that the kernel put off goes before a process that begins.
        is_disturbed: bool = Flag,
        /// Between being let go and the first request.
        at_start: u32 = LOOKS,
        /// The same with libaio.
        at_start_of_libaio: u32 = LOOKS,
        /// Before a request: whether time is over, whether rates allow it, when it starts.
        before_request: u32 = LOOKS,
        /// Before a sync, and before a request that reads back.
        before_others: u32 = LOOKS,
        /// After a system call that moves data or syncs.
        after_call: u32 = LOOKS,
        /// After a system call that an asynchronous engine makes because its queue cannot do it.
        after_call_beside_queue: u32 = LOOKS,
        /// After one that submits a batch.
        after_submitting: u32 = LOOKS,
        /// After one that collects what is done.
        after_collecting: u32 = LOOKS,
        /// After the last request, beside the look at the end of each.
        at_end: u32 = LOOKS,
        /// The same with mmap.
        at_end_of_mmap: u32 = LOOKS,
        /// What a request costs that moves no data: building it and looking at the clock.
        nothing: Duration = SLEEP,
    }
}

params::section! {
    /// The habits of the shell and of the dynamic linker: what comes between two programs.
    ///
    /// From the time between two direct reads by `dd` with another program in between, where a file
    /// that is looked for takes 1 us.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ShellHabits in "shell" {
        /// Files that are looked for to start a program that needs none but the C library.
        files: u32 = FILES,
        /// Of these, those that a shell does not look for again when it has found the program
        /// before.
        directories: u32 = FILES,
        /// Looks at the clock.
        looks: u32 = LOOKS,
        /// The kernel puts work off when it has started a program.
        is_disturbed: bool = Flag,
    }
    with {
        /// What single programs look for besides.
        own_files: OwnFiles,
    }
}

params::section! {
    /// Files that a program looks for when it starts, beside those of every program: its libraries
    /// and what it wants to know of the system.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct OwnFiles in "own-files" {
        /// `cp`.
        cp: u32 = FILES,
        /// `ls`.
        ls: u32 = FILES,
        /// `mkdir`.
        mkdir: u32 = FILES,
        /// `mv`.
        mv: u32 = FILES,
        /// `rm`.
        rm: u32 = FILES,
        /// `stat`.
        stat: u32 = FILES,
    }
}

params::section! {
    /// The habits of sysbench 1.0; what is known of 0.4 does not tell any.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SysbenchHabits in "sysbench" {
        /// Looks at the clock for an event: before and behind it.
        looks_per_event: u32 = LOOKS,
    }
}

impl FioHabits {
    /// Pages on a core's lists when fio makes its files.
    pub fn left_by_main(&self) -> LeftBehind {
        LeftBehind { little: self.left_by_main_little, much: self.left_by_main_much }
    }

    /// Pages on a core's lists when its processes begin to write.
    pub fn left_by_processes(&self) -> LeftBehind {
        LeftBehind { little: self.left_by_processes_little, much: self.left_by_processes_much }
    }
}
