//! sysbench fileio: threads that read and write a set of files.
//!
//! Command lines are those of 0.4 (`--test=fileio`) and of 1.0 (`fileio`). There is no file system
//! here: the files lie one after the other on the disk, each in one piece, from `--disk-start` on.
//! All threads use the same open files, and so one readahead state for each (addendum A.9).
//!
//! Written after the documentation and addendum A.9. In the random modes all places are equally
//! likely. With `--file-io-mode=mmap` every file is mapped as a whole, nothing is said of how it
//! will be read, and where others call fsync there is one msync of all of it (strace of 1.0.20).
//! `--file-io-mode=async` and `--validate` are not modelled.

mod options;
mod report;

pub use options::Sysbench;

use crate::file::Errno;
use crate::task::{Advice, File, IoContextOf, Mapping, Task};
use base::{Instant, Rng};
use options::{Action, Generation, Mode};
use std::cell::RefCell;
use std::rc::Rc;

/// Exit status when something went wrong.
const FAILED: i32 = 1;

/// What a thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Read { file: usize, offset: u64 },
    Write { file: usize, offset: u64 },
    Sync { file: usize },
}

/// What the threads have in common.
struct Shared {
    options: Sysbench,
    files: Vec<File>,
    /// The same, mapped, if they are.
    maps: Vec<Mapping>,
    started: Instant,
    rng: Rng,
    /// The next place of the sequential modes.
    file: usize,
    offset: u64,
    /// Requests that were handed out, but for syncs.
    requests: u64,
    /// Files that were written to and not synced since.
    dirty: Vec<bool>,
    /// The next file of a round of syncs.
    syncing: Option<usize>,
    counts: Counts,
    complaint: Option<Errno>,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub reads: u64,
    pub writes: u64,
    pub syncs: u64,
}

impl Sysbench {
    /// Runs; the answer is the exit status.
    pub(crate) async fn run(self, task: Task) -> i32 {
        let started = task.now();
        let size = self.total / self.files;
        let open = |number: u64| {
            let start = self.start + number * size;
            task.open_extent(&self.disk, start..start + size, self.flags)
        };
        let files = match (0..self.files).map(open).collect::<Result<Vec<File>, Errno>>() {
            Ok(files) => files,
            Err(errno) => {
                task.print(format!("FATAL: Cannot open file: {errno}"));
                return FAILED;
            }
        };
        let mut maps = Vec::new();
        if self.is_mapped && self.action == Action::Run {
            for (number, file) in (0..).zip(&files) {
                let start = self.start + number * size;
                maps.push(task.map(file, start..start + size, Advice::Normal).await);
            }
        }
        let shared = Rc::new(RefCell::new(Shared::new(self, (files, maps), started, &task)));
        let action = shared.borrow().options.action;
        match action {
            Action::Prepare => prepare(&task, &shared).await,
            Action::Run => run_threads(&task, &shared).await,
            Action::Cleanup => task.print("Removing test files..."),
        }
        let complaint = shared.borrow().complaint;
        if let Some(errno) = complaint {
            task.print(format!("FATAL: {errno}"));
            return FAILED;
        }
        0
    }
}

/// A.9 rule 2: one file after the other, block by block.
async fn prepare(task: &Task, shared: &Rc<RefCell<Shared>>) {
    let (files, options) = {
        let shared = shared.borrow();
        (shared.files.clone(), shared.options.clone())
    };
    let size = options.total / options.files;
    for (number, file) in files.iter().enumerate() {
        for offset in (0..size).step_by(options.block as usize) {
            let at = options.start + number as u64 * size + offset;
            let length = options.block.min(size - offset);
            if let Err(errno) = task.pwrite(file, at, length).await {
                shared.borrow_mut().complaint = Some(errno);
                return;
            }
        }
        if let Err(errno) = task.fsync(file).await {
            shared.borrow_mut().complaint = Some(errno);
            return;
        }
    }
}

async fn run_threads(task: &Task, shared: &Rc<RefCell<Shared>>) {
    let threads = shared.borrow().options.threads;
    // Threads do not pass CLONE_IO: each has an io_context of its own (A.4 rule 2).
    let threads: Vec<_> = (0..threads)
        .map(|_| {
            let shared = shared.clone();
            task.spawn("sysbench", IoContextOf::Itself, |task| work(task, shared))
        })
        .collect();
    for thread in threads {
        task.join(thread).await;
    }
    let (files, syncs_at_end) = {
        let shared = shared.borrow();
        (shared.files.len(), shared.options.syncs_at_end && shared.options.mode.writes())
    };
    if syncs_at_end {
        for number in 0..files {
            if !std::mem::take(&mut shared.borrow_mut().dirty[number]) {
                continue;
            }
            let (file, map) = shared.borrow().file(number);
            if let Err(errno) = sync(task, &file, map.as_ref()).await {
                shared.borrow_mut().complaint = Some(errno);
            }
            shared.borrow_mut().counts.syncs += 1;
        }
    }
    let shared = shared.borrow();
    let elapsed = task.now().since(shared.started);
    for line in report::lines(&shared.options, &shared.counts, elapsed) {
        task.print(line);
    }
}

/// A thread: takes a request, does it, and looks at the time (A.9 rule 4).
async fn work(task: Task, shared: Rc<RefCell<Shared>>) -> i32 {
    loop {
        let Some(request) = shared.borrow_mut().take(task.now()) else { return 0 };
        let done = perform(&task, &shared, request).await;
        if let Err(errno) = done {
            shared.borrow_mut().complaint = Some(errno);
            return FAILED;
        }
    }
}

async fn perform(task: &Task, shared: &RefCell<Shared>, request: Request) -> Result<(), Errno> {
    let (number, syncs) = {
        let shared = shared.borrow();
        let number = match request {
            Request::Read { file, .. } | Request::Write { file, .. } | Request::Sync { file } => {
                file
            }
        };
        (number, shared.options.syncs_each_write)
    };
    let (file, map) = shared.borrow().file(number);
    let at = shared.borrow().place(number, request);
    let block = shared.borrow().options.block;
    match request {
        Request::Read { .. } => {
            match &map {
                Some(map) => task.read_through(map, at, block).await?,
                None => task.pread(&file, at, block).await?,
            };
            shared.borrow_mut().counts.reads += 1;
        }
        Request::Write { .. } => {
            match &map {
                Some(map) => task.write_through(map, at, block).await?,
                None => task.pwrite(&file, at, block).await?,
            };
            shared.borrow_mut().counts.writes += 1;
            if syncs {
                sync(task, &file, map.as_ref()).await?;
                shared.borrow_mut().counts.syncs += 1;
            }
        }
        Request::Sync { .. } => {
            sync(task, &file, map.as_ref()).await?;
            shared.borrow_mut().counts.syncs += 1;
        }
    }
    Ok(())
}

/// Makes a file durable.
async fn sync(task: &Task, file: &File, map: Option<&Mapping>) -> Result<(), Errno> {
    match map {
        Some(map) => task.msync(map, None).await,
        None => task.fsync(file).await,
    }
}

impl Shared {
    fn new(
        options: Sysbench,
        (files, maps): (Vec<File>, Vec<Mapping>),
        started: Instant,
        task: &Task,
    ) -> Shared {
        Shared {
            dirty: vec![false; files.len()],
            rng: task.rng("program/sysbench/0"),
            maps,
            options,
            files,
            started,
            file: 0,
            offset: 0,
            requests: 0,
            syncing: None,
            counts: Counts::default(),
            complaint: None,
        }
    }

    /// A file, and what it is mapped to if it is.
    fn file(&self, number: usize) -> (File, Option<Mapping>) {
        (self.files[number], self.maps.get(number).cloned())
    }

    /// Where on the disk a request goes.
    fn place(&self, file: usize, request: Request) -> u64 {
        let start = self.options.start + file as u64 * (self.options.total / self.options.files);
        match request {
            Request::Read { offset, .. } | Request::Write { offset, .. } => start + offset,
            Request::Sync { .. } => start,
        }
    }

    /// The next request; `None` when all is done.
    // Divergence: threads of 0.4 on different cores can rarely be handed the same block (A.9 rule
    // 5).
    fn take(&mut self, now: Instant) -> Option<Request> {
        if self.complaint.is_some() {
            return None;
        }
        if let Some(sync) = self.next_sync() {
            return Some(sync);
        }
        let options = &self.options;
        let is_late = options.most_time.is_some_and(|most| now.since(self.started) >= most);
        // The sequential modes of 0.4 pass over all files once, whatever --max-requests says.
        let counts_requests =
            options.generation == Generation::V1_0 || !options.mode.is_sequential();
        let most = options.most_requests.filter(|_| counts_requests);
        if is_late || most.is_some_and(|most| self.requests >= most) {
            return None;
        }
        let (file, offset) =
            if options.mode.is_sequential() { self.next_in_order()? } else { self.anywhere() };
        self.requests += 1;
        let options = &self.options;
        let freq = options.sync_frequency;
        if options.mode.writes() && freq > 0 && self.requests.is_multiple_of(freq) {
            self.syncing = Some(0);
        }
        if self.reads_next() {
            return Some(Request::Read { file, offset });
        }
        self.dirty[file] = true;
        Some(Request::Write { file, offset })
    }

    /// Every so many requests all files that were written to are synced, one by one.
    fn next_sync(&mut self) -> Option<Request> {
        let from = self.syncing?;
        let file = (from..self.files.len()).find(|file| self.dirty[*file]);
        self.syncing = file.map(|file| file + 1);
        let file = file?;
        self.dirty[file] = false;
        Some(Request::Sync { file })
    }

    fn next_in_order(&mut self) -> Option<(usize, u64)> {
        if self.file == self.files.len() {
            if self.options.generation == Generation::V0_4 {
                return None;
            }
            self.file = 0;
        }
        let place = (self.file, self.offset);
        self.offset += self.options.block;
        if self.offset >= self.options.total / self.options.files {
            self.offset = 0;
            self.file += 1;
        }
        Some(place)
    }

    fn anywhere(&mut self) -> (usize, u64) {
        let options = &self.options;
        let blocks = options.total / options.files / options.block;
        let block = self.rng.below(blocks * options.files);
        ((block / blocks) as usize, block % blocks * options.block)
    }

    /// In the mixed mode whichever keeps the ratio of reads to writes.
    fn reads_next(&self) -> bool {
        match self.options.mode {
            Mode::SeqRead | Mode::RandomRead => true,
            Mode::SeqWrite | Mode::SeqRewrite | Mode::RandomWrite => false,
            Mode::RandomMixed => {
                self.counts.reads * 1_000 < self.counts.writes.max(1) * self.options.ratio_millis
            }
        }
    }
}
