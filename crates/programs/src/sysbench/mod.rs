//! sysbench fileio: threads that read and write a set of files.
//!
//! Command lines are those of 0.4 (`--test=fileio`) and of 1.0 (`fileio`). With a file system the
//! files lie in its directory, `files`; without one they lie one after the other on the disk, each
//! in one piece, from `--disk-start` on. All threads use the same open files, and so one readahead
//! state for each (rules sysbench).
//!
//! Written after the documentation, a description of 0.4 and what strace shows of 1.0.20. Its
//! requests are numbered with its syncs: after `--file-fsync-freq` reads and writes all files are
//! synced, written to or not, by whichever threads come by, and each of these counts as an event.
//! In the end every thread syncs all files once more. `--file-fsync-all` syncs after each write,
//! and then neither of the two. Of 0.4 it is assumed that only files are synced that were written
//! to, and that the main thread does what is left in the end.
//!
//! In the random modes all places are equally likely. With `--file-io-mode=mmap` every file is
//! mapped as a whole, nothing is said of how it will be read, and where others call fsync there is
//! one msync of all of it (strace of 1.0.20). `--file-io-mode=async` and `--validate` are not
//! modelled.

mod files;
mod options;
mod report;

pub use options::Sysbench;

use crate::Program;
use base::{Instant, Rng};
use files::Complaint;
use machine::calls::Mapping;
use machine::file::Errno;
use machine::program::Running;
use machine::task::{Advice, File, IoContextOf, Task};
use options::{Action, Generation, Mode, Place};
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
    /// The same with syncs.
    events: u64,
    /// Files that were written to and not synced since.
    dirty: Vec<bool>,
    /// The next file of a round of syncs.
    syncing: Option<usize>,
    counts: Counts,
    complaint: Option<Complaint>,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub reads: u64,
    pub writes: u64,
    pub syncs: u64,
}

impl machine::Program for Sysbench {
    fn name(&self) -> &str {
        "sysbench"
    }

    fn run(&self, task: Task) -> Running {
        Box::pin(self.clone().work(task))
    }
}

impl Program for Sysbench {
    fn files(&self) -> Vec<&str> {
        match &self.place {
            Place::Disk { path, .. } => vec![path],
            Place::Directory(_) => Vec::new(),
        }
    }
}

impl Sysbench {
    /// Does it all; the answer is the exit status.
    async fn work(self, task: Task) -> i32 {
        let complaint = match self.action {
            Action::Prepare => self.prepare(&task).await.err(),
            Action::Run => self.run_threads(&task).await.err(),
            Action::Cleanup => {
                self.remove(&task).await;
                None
            }
        };
        let Some(complaint) = complaint else { return 0 };
        complaint.into_iter().for_each(|line| task.print(line));
        FAILED
    }

    async fn run_threads(self, task: &Task) -> Result<(), Complaint> {
        let started = task.now();
        let files = self.open_all(task).await?;
        let mut maps = Vec::new();
        if self.is_mapped {
            for (number, file) in (0..).zip(&files) {
                maps.push(task.map(file, self.bytes(number), Advice::Normal).await);
            }
        }
        let threads = self.threads;
        let shared = Rc::new(RefCell::new(Shared::new(self, (files, maps), started, task)));
        // Threads do not pass CLONE_IO: each has an io_context of its own (rule owner-1).
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                let shared = shared.clone();
                task.spawn("sysbench", IoContextOf::Itself, |task| work(task, shared))
            })
            .collect();
        for thread in threads {
            task.join(thread).await;
        }
        let generation = shared.borrow().options.generation;
        if generation == Generation::V0_4 {
            sync_what_is_left(task, &shared).await;
        }
        if let Some(complaint) = shared.borrow_mut().complaint.take() {
            return Err(complaint);
        }
        let shared = shared.borrow();
        let elapsed = task.now().since(shared.started);
        for line in report::lines(&shared.options, &shared.counts, elapsed) {
            task.print(line);
        }
        Ok(())
    }

    /// Whether files are synced when all requests are done.
    fn syncs_in_the_end(&self) -> bool {
        self.syncs_at_end && self.mode.writes()
    }
}

/// Of 0.4: in the end the files that were written to.
async fn sync_what_is_left(task: &Task, shared: &Rc<RefCell<Shared>>) {
    if !shared.borrow().options.syncs_in_the_end() {
        return;
    }
    let files = shared.borrow().files.len();
    for file in 0..files {
        if std::mem::take(&mut shared.borrow_mut().dirty[file]) {
            attempt(task, shared, Request::Sync { file }).await;
        }
    }
}

/// Of 1.0: in the end every file, by every thread.
async fn sync_all(task: &Task, shared: &Rc<RefCell<Shared>>) {
    let (files, wanted) = {
        let shared = shared.borrow();
        let options = &shared.options;
        let wanted = options.generation == Generation::V1_0
            && options.syncs_in_the_end()
            && !options.syncs_each_write;
        (shared.files.len(), wanted)
    };
    for file in (0..files).filter(|_| wanted) {
        attempt(task, shared, Request::Sync { file }).await;
    }
}

/// Performs a request; what goes wrong ends the run.
async fn attempt(task: &Task, shared: &Rc<RefCell<Shared>>, request: Request) {
    if let Err(errno) = perform(task, shared, request).await {
        shared.borrow_mut().complaint = Some(vec![format!("FATAL: {errno}")]);
    }
}

/// A thread: takes a request, does it, and looks at the time (rule sysbench-4).
async fn work(task: Task, shared: Rc<RefCell<Shared>>) -> i32 {
    loop {
        let request = shared.borrow_mut().take(task.now());
        let Some(request) = request else {
            sync_all(&task, &shared).await;
            return 0;
        };
        let looks = shared.borrow().looks_per_event();
        task.look_at_clock(looks / 2).await;
        attempt(&task, &shared, request).await;
        task.look_at_clock(looks - looks / 2).await;
        if shared.borrow().complaint.is_some() {
            return FAILED;
        }
    }
}

async fn perform(task: &Task, shared: &RefCell<Shared>, request: Request) -> Result<(), Errno> {
    let (number, offset) = match request {
        Request::Read { file, offset } | Request::Write { file, offset } => (file, offset),
        Request::Sync { file } => (file, 0),
    };
    let (file, map) = shared.borrow().file(number);
    let (at, block, syncs, data_only) = {
        let shared = shared.borrow();
        let options = &shared.options;
        let at = options.bytes(number as u64).start + offset;
        (at, options.block, options.syncs_each_write, options.syncs_data_only)
    };
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
                sync(task, &file, map.as_ref(), data_only).await?;
                shared.borrow_mut().counts.syncs += 1;
            }
        }
        Request::Sync { .. } => {
            sync(task, &file, map.as_ref(), data_only).await?;
            shared.borrow_mut().counts.syncs += 1;
        }
    }
    Ok(())
}

/// Makes a file durable.
async fn sync(
    task: &Task,
    file: &File,
    map: Option<&Mapping>,
    data_only: bool,
) -> Result<(), Errno> {
    match map {
        Some(map) => task.msync(map, None).await,
        None if data_only => task.fdatasync(file).await,
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
            events: 0,
            syncing: None,
            counts: Counts::default(),
            complaint: None,
        }
    }

    /// A file, and what it is mapped to if it is.
    fn file(&self, number: usize) -> (File, Option<Mapping>) {
        (self.files[number], self.maps.get(number).cloned())
    }

    /// What is known of 0.4 does not tell.
    fn looks_per_event(&self) -> u32 {
        if self.is_old() { 0 } else { self.options.habits.looks_per_event }
    }

    fn is_old(&self) -> bool {
        self.options.generation == Generation::V0_4
    }

    /// The next request; `None` when all is done.
    // Divergence: threads of 0.4 on different cores can rarely be handed the same block (rule
    // sysbench-5).
    fn take(&mut self, now: Instant) -> Option<Request> {
        if self.complaint.is_some() {
            return None;
        }
        // 0.4 ends a round of syncs that it has begun.
        if !self.is_old() && self.is_over(now) {
            return None;
        }
        if let Some(sync) = self.next_sync() {
            self.events += 1;
            return Some(sync);
        }
        if self.is_over(now) {
            return None;
        }
        let options = &self.options;
        let (file, offset) =
            if options.mode.is_sequential() { self.next_in_order()? } else { self.anywhere() };
        self.requests += 1;
        self.events += 1;
        let options = &self.options;
        let freq = options.sync_frequency;
        let in_rounds = freq > 0 && (self.is_old() || !options.syncs_each_write);
        if options.mode.writes() && in_rounds && self.requests.is_multiple_of(freq) {
            self.syncing = Some(0);
        }
        if self.reads_next() {
            return Some(Request::Read { file, offset });
        }
        self.dirty[file] = true;
        Some(Request::Write { file, offset })
    }

    /// Whether nothing more is handed out.
    fn is_over(&self, now: Instant) -> bool {
        let options = &self.options;
        let is_late = options.most_time.is_some_and(|most| now.since(self.started) >= most);
        // The sequential modes of 0.4 pass over all files once, whatever --max-requests says.
        let counted = match options.generation {
            Generation::V1_0 => self.events,
            Generation::V0_4 if options.mode.is_sequential() => 0,
            Generation::V0_4 => self.requests,
        };
        is_late || options.most_requests.is_some_and(|most| counted >= most)
    }

    /// Every so many requests files are synced, one by one: all, or those that were written to.
    fn next_sync(&mut self) -> Option<Request> {
        let from = self.syncing?;
        let every = !self.is_old();
        let file = (from..self.files.len()).find(|file| every || self.dirty[*file]);
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

    /// In the mixed mode a write as soon as there are more reads than the ratio wants.
    // observed: strace of 1.0.20, the first 300 requests
    fn reads_next(&self) -> bool {
        match self.options.mode {
            Mode::SeqRead | Mode::RandomRead => true,
            Mode::SeqWrite | Mode::SeqRewrite | Mode::RandomWrite => false,
            Mode::RandomMixed => {
                self.counts.reads * 1_000 <= self.counts.writes * self.options.ratio_millis
            }
        }
    }
}
