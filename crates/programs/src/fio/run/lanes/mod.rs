//! The ways in which requests of a process reach the machine, one for each kind of ioengine.
//!
//! Whatever the way, a request is put in, and comes out with its result. System calls, batches and
//! threads are those that fio's engines were seen to use: one `io_submit` for each batch, a
//! `BLKDISCARD` or, with libaio, an `fsync` of the process itself; POSIX AIO with one thread for
//! each file.

mod maps;
mod threads;

use base::{Duration, Instant};
use block::{Ioprio, Op};

use std::rc::Rc;

use self::maps::Maps;
use self::threads::Threads;
use super::super::account::Account;
use super::super::engine::Engine;
use super::super::job::{Caching, Direction, Job, Scsi, ScsiWrite};
use super::super::pattern::{Place, Range};
use super::donor::OpenDonor;
use super::files::Files;
use guest::ProcessHabits;
use machine::calls::RangeSync;
use machine::calls::{AsyncOp, AsyncQueue, Interface, Reaped};
use machine::task::{Errno, File, OpenFlags, Task};

/// So many requests that move no data are computed at once.
const NOTHINGS: u32 = 256;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Moves or trims data.
    Move(Direction),
    /// Makes what was written durable.
    Sync(Sync),
}

/// How what was written is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    /// fsync.
    All,
    /// fdatasync.
    Data,
    /// sync_file_range, of the bytes of the request.
    Range(RangeSync),
}

/// A request of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub what: What,
    /// The position of its file.
    pub file: usize,
    pub offset: u64,
    pub length: u64,
    pub ioprio: Option<Ioprio>,
    /// It reads back what was written.
    pub verifies: bool,
    /// When it was issued.
    pub issued: Instant,
}

/// A request that is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub request: Request,
    pub result: Result<u64, Errno>,
    pub at: Instant,
    /// When it had been submitted, where that is not part of its call.
    pub submitted: Option<Instant>,
}

/// The way of one process.
pub(super) struct Lanes {
    task: Task,
    files: Vec<File>,
    /// Those of a file system.
    named: Files,
    habits: ProcessHabits,
    kind: Kind,
    /// How many requests are under way, and the most that may be.
    under_way: usize,
    depth: usize,
    /// Requests that are handed over together.
    batch: usize,
    /// Requests that count for the batch. Those that are handed over because somebody waits still
    /// do, so the next batch has fewer (rule fio-5).
    counted: usize,
    done: Vec<Done>,
    account: Rc<Account>,
}

enum Kind {
    /// A system call for each request.
    Calls,
    /// The same for SCSI commands.
    Scsi(Scsi),
    /// A system call that changes how long a file is, or what room it has.
    Room(Engine),
    /// Blocks of the files change places with those of a donor.
    Exchange(OpenDonor),
    /// All there is to do is done when the file is opened.
    Names,
    /// Neighbours are collected into one call.
    Vectored(Vec<Request>),
    /// Files in the memory of the process.
    Mapped(Maps),
    /// An asynchronous queue.
    Queue(Queue),
    /// Threads that make system calls.
    Threads(Threads),
    /// Nothing is done; how many times since the last computing.
    Nothing(u32),
}

/// An asynchronous queue and the requests in it.
struct Queue {
    queue: AsyncQueue,
    interface: Interface,
    slots: Vec<Option<Request>>,
    free: Vec<usize>,
    reaped: Vec<Reaped>,
}

impl Lanes {
    /// The way of a job whose files are open.
    pub async fn new(
        task: &Task,
        label: &str,
        (job, habits, account): (&Job, ProcessHabits, Rc<Account>),
        mut files: Vec<File>,
        (ranges, mut named): (&[Range], Files),
    ) -> Result<Lanes, Errno> {
        let depth = job.queue.depth as usize;
        let moves_data =
            job.engine.does_block_io() && (files.iter().any(File::is_disk) || job.has_files());
        if job.queue.offload || job.engine == Engine::PosixAio {
            // Threads share what is open when they begin.
            for (number, file) in files.iter_mut().enumerate() {
                if let Some(opened) = named.open(task, job, number).await {
                    *file = opened?;
                }
            }
        }
        let is_free = task.costs().system_call.is_zero();
        let queue = |interface| {
            Kind::Queue(Queue {
                queue: task.async_queue(interface),
                interface,
                slots: vec![None; depth],
                free: (0..depth).rev().collect(),
                reaped: Vec::with_capacity(depth),
            })
        };
        let kind = match job.engine {
            Engine::Null | Engine::CpuIo => Kind::Nothing(0),
            // Where system calls cost nothing either, time would stand still.
            _ if !moves_data && is_free => Kind::Nothing(0),
            _ if job.queue.offload => Kind::Threads(Threads::new(task, label, &files, depth)),
            Engine::Sync => Kind::Calls,
            Engine::Mmap => Kind::Mapped(Maps::new(job, ranges)),
            Engine::Sg => Kind::Scsi(job.scsi),
            Engine::Names(_) => Kind::Names,
            Engine::Ftruncate | Engine::Falloc => Kind::Room(job.engine),
            Engine::Exchange => Kind::Exchange(named.donor().expect("it was opened").clone()),
            Engine::SyncVectored => Kind::Vectored(Vec::with_capacity(depth)),
            Engine::Libaio => queue(Interface::Libaio),
            Engine::IoUring => queue(Interface::IoUring),
            Engine::PosixAio => Kind::Threads(Threads::one_for_each(task, label, &files)),
        };
        let batch = job.queue.batch as usize;
        let done = Vec::with_capacity(depth);
        account.depth.set(depth);
        let (task, under_way, counted) = (task.clone(), 0, 0);
        Ok(Lanes {
            task,
            files,
            named,
            habits,
            kind,
            under_way,
            depth,
            batch,
            counted,
            done,
            account,
        })
    }

    /// Closes the files after a round, and perhaps removes them, and opens them again, as fio does
    /// for the next; those of a file system when the next request goes there.
    pub async fn open_again(&mut self, removes: bool) {
        let is_mapped = matches!(self.kind, Kind::Mapped(_));
        for (number, file) in self.files.iter().enumerate() {
            if !self.named.has(number) {
                // What is mapped stays open besides.
                if !is_mapped {
                    self.task.close(file).await;
                }
                self.task.reopen(file);
            }
        }
        if let Kind::Mapped(maps) = &mut self.kind {
            maps.forget();
        }
        self.named.close(&self.task, &self.files, removes).await;
    }

    /// Closes the files.
    pub async fn close_files(&mut self, job: &Job) {
        for (number, file) in self.files.iter().enumerate() {
            if !self.named.has(number) {
                self.task.close(file).await;
            }
        }
        self.named.close(&self.task, &self.files, job.creation.unlinks).await;
        if let Kind::Exchange(donor) = &self.kind {
            donor.close(&self.task).await;
        }
    }

    /// Closes a file of a file system.
    pub async fn close_file(&mut self, file: usize) {
        self.named.close_one(&self.task, &self.files, file).await;
    }

    /// Whether fio closes its files as soon as it is done with them: what is mapped stays.
    pub fn closes_files(&self) -> bool {
        !matches!(self.kind, Kind::Mapped(_) | Kind::Exchange(_))
    }

    /// Opens a file of a file system if it is not open.
    pub async fn open(&mut self, job: &Job, file: usize) -> Result<(), Errno> {
        if self.named.has(file)
            && let Some(opened) = self.named.open(&self.task, job, file).await
        {
            self.files[file] = opened?;
        }
        Ok(())
    }

    /// What is done about the page cache when the files have been opened.
    /// Observed: fio 3.33 sends `BLKFLSBUF` to a disk and then says how it will read.
    pub async fn prepare_cache(&self, caching: Caching) {
        for (number, file) in self.files.iter().enumerate() {
            if self.named.has(number) {
                continue;
            }
            if caching.invalidate {
                self.task.drop_cached(file).await;
            }
            if let Some(hint) = caching.hint {
                self.task.advise(file, hint);
            }
        }
    }

    /// Whether no further request may be put in.
    pub fn is_full(&self) -> bool {
        self.under_way >= self.depth
    }

    /// Keeps the queue only so deep; no deeper than the job said.
    pub fn set_depth(&mut self, depth: usize) {
        self.depth = depth;
    }

    /// Requests that were put in and have not come out.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Whether requests are done by others while the process does something else.
    pub fn is_offloaded(&self) -> bool {
        matches!(self.kind, Kind::Threads(_))
    }

    /// The next request that is done and was collected.
    pub fn pop(&mut self) -> Option<Done> {
        let done = self.done.pop()?;
        self.under_way -= 1;
        Some(done)
    }

    /// Requests under way that overlap a range of a file.
    pub fn overlaps(&self, file: usize, offset: u64, length: u64) -> bool {
        let overlaps = |it: &Request| {
            it.file == file && it.offset < offset + length && offset < it.offset + it.length
        };
        match &self.kind {
            Kind::Queue(queue) => queue.slots.iter().flatten().any(overlaps),
            Kind::Vectored(requests) => requests.iter().any(overlaps),
            Kind::Threads(threads) => threads.any(overlaps),
            Kind::Calls | Kind::Room(_) | Kind::Exchange(_) | Kind::Mapped(_) => false,
            Kind::Scsi(_) | Kind::Names | Kind::Nothing(_) => false,
        }
    }

    /// What a request moves that is one call to a file without data, and how long that takes.
    /// `None` where it is something else.
    pub fn unseen(&self, direction: Direction, place: Place) -> Option<(u64, Duration)> {
        let op = match (&self.kind, direction) {
            (Kind::Calls, Direction::Read) => Op::Read,
            (Kind::Calls, Direction::Write) => Op::Write,
            _ => return None,
        };
        self.task.memory_call_of(&self.files[place.file], op, place.length)
    }

    /// Hands a request over; it may be done at once.
    pub async fn put(&mut self, request: Request) {
        self.under_way += 1;
        match &mut self.kind {
            Kind::Queue(queue) if !queue.takes(request.what) => {
                self.commit().await;
                self.counted = 0;
                self.call(request, self.habits.after_call_beside_queue).await;
            }
            Kind::Queue(queue) => {
                queue.prepare(&self.files[request.file], request);
                self.counted += 1;
                if self.counted >= self.batch {
                    self.counted = 0;
                    queue.submit(&self.task, &self.habits, &self.account).await;
                }
            }
            Kind::Threads(threads) => {
                self.account.submit(1);
                threads.put(&self.task, request);
            }
            Kind::Calls => self.call(request, self.habits.after_call).await,
            Kind::Mapped(maps) => {
                let result = maps.perform(&self.task, &self.files, request).await;
                self.finish(request, result);
                self.task.look_at_clock(self.habits.after_call).await;
            }
            Kind::Scsi(scsi) => {
                let scsi = *scsi;
                self.command(request, scsi).await;
            }
            Kind::Names => self.finish(request, Ok(request.length)),
            Kind::Room(engine) => {
                let engine = *engine;
                let result = change_room(&self.task, &self.files, request, engine).await;
                self.finish(request, result);
                self.task.look_at_clock(self.habits.after_call).await;
            }
            Kind::Exchange(donor) => {
                let result = donor.exchange(&self.task, &self.files[request.file], &request).await;
                self.finish(request, result);
                self.task.look_at_clock(self.habits.after_call).await;
            }
            Kind::Vectored(requests) => {
                if requests.last().is_some_and(|last| !last.continues(&request)) {
                    self.commit().await;
                }
                self.collect_neighbour(request).await;
            }
            Kind::Nothing(count) => {
                *count += 1;
                if *count == NOTHINGS {
                    *count = 0;
                    self.task.spend_calls(u64::from(NOTHINGS)).await;
                    self.task.compute(self.habits.nothing * u64::from(NOTHINGS)).await;
                }
                self.finish(request, Ok(request.length));
            }
        }
    }

    /// Hands over what waits for its batch to become full.
    pub async fn commit(&mut self) {
        match &mut self.kind {
            Kind::Queue(queue) if queue.queue.prepared() > 0 => {
                queue.submit(&self.task, &self.habits, &self.account).await;
            }
            Kind::Vectored(requests) if !requests.is_empty() => {
                let requests = std::mem::take(requests);
                self.call_together(&requests).await;
                self.kind = Kind::Vectored(requests);
                self.clear_neighbours();
            }
            _ => {}
        }
    }

    /// Waits until at least `least` requests are done, and collects at most `most`.
    pub async fn collect(&mut self, least: usize, most: usize) {
        self.commit().await;
        match &mut self.kind {
            Kind::Queue(queue) if queue.queue.in_flight() > 0 => {
                let before = self.done.len();
                queue.collect(least, most, &mut self.done).await;
                self.account.complete(self.done.len() - before);
                self.task.look_at_clock(self.habits.after_collecting).await;
            }
            Kind::Threads(threads) => {
                let before = self.done.len();
                threads.collect(&self.task, least, &mut self.done).await;
                self.account.complete(self.done.len() - before);
            }
            _ => {}
        }
    }

    /// Ends the threads.
    pub async fn close(&mut self) {
        if let Kind::Threads(threads) = &mut self.kind {
            threads.close(&self.task).await;
        }
    }

    /// Makes the data of a file durable, past any queue.
    pub async fn sync_file(&mut self, file: usize) -> Result<(), Errno> {
        match &mut self.kind {
            Kind::Mapped(maps) => maps.sync(&self.task, file).await,
            // Observed: the engine does not know what that is.
            Kind::Exchange(_) => Err(Errno::Einval),
            _ => self.task.fsync(&self.files[file]).await,
        }
    }

    async fn collect_neighbour(&mut self, request: Request) {
        let Kind::Vectored(requests) = &mut self.kind else { unreachable!("asked a line above") };
        requests.push(request);
        if requests.len() >= self.batch {
            self.commit().await;
        }
    }

    fn clear_neighbours(&mut self) {
        if let Kind::Vectored(requests) = &mut self.kind {
            requests.clear();
        }
    }

    /// One system call for neighbouring requests.
    async fn call_together(&mut self, requests: &[Request]) {
        let whole: u64 = requests.iter().map(|request| request.length).sum();
        let result = perform(&self.task, &self.files, Request { length: whole, ..requests[0] });
        let mut left = result.await;
        for request in requests {
            let result = left.map(|left| left.min(request.length));
            left = left.map(|left| left.saturating_sub(request.length));
            self.finish(*request, result);
        }
    }

    /// A system call, and looks at the clock after it.
    async fn call(&mut self, request: Request, looks: u32) {
        let mut left = request;
        let mut result = perform(&self.task, &self.files, left).await;
        // Where room ends a write is cut short; the rest is asked for, and is what fails.
        while let Ok(moved @ 1..) = result
            && moved < left.length
            && request.what == What::Move(Direction::Write)
            && self.files[request.file].index().is_some()
        {
            (left.offset, left.length) = (left.offset + moved, left.length - moved);
            result = perform(&self.task, &self.files, left).await;
        }
        match result {
            Ok(moved) => self.finish(request, Ok(moved + request.length - left.length)),
            Err(errno) => self.finish(left, Err(errno)),
        }
        self.task.look_at_clock(looks).await;
    }

    /// A SCSI command.
    async fn command(&mut self, request: Request, scsi: Scsi) {
        if request.what != What::Move(Direction::Write) {
            return self.call(request, self.habits.after_call).await;
        }
        let mut file = self.files[request.file];
        file.flags = OpenFlags::direct();
        let mut durable = file;
        durable.flags.dsync = scsi.fua;
        let (offset, length) = (request.offset, request.length);
        let result = match scsi.write {
            ScsiWrite::Write => self.task.pwrite(&durable, offset, length).await,
            ScsiWrite::Verify => self.task.pread(&file, offset, length).await,
            ScsiWrite::WriteAndVerify => match self.task.pwrite(&durable, offset, length).await {
                Ok(_) => self.task.pread(&file, offset, length).await,
                error => error,
            },
        };
        self.finish(request, result);
    }

    fn finish(&mut self, request: Request, result: Result<u64, Errno>) {
        self.account.call(1);
        self.done.push(Done { request, result, at: self.task.now(), submitted: None });
    }
}

/// Makes the system call for a request and waits for it.
async fn perform(task: &Task, files: &[File], request: Request) -> Result<u64, Errno> {
    let (file, offset, length) = (&files[request.file], request.offset, request.length);
    match request.what {
        What::Move(Direction::Read) => task.pread(file, offset, length).await,
        What::Move(Direction::Write) => task.pwrite(file, offset, length).await,
        What::Move(Direction::Trim) => task.discard(file, offset, length).await.map(|()| length),
        What::Sync(_) if !file.is_cached() => Ok(0),
        What::Sync(Sync::All) => task.fsync(file).await.map(|()| 0),
        What::Sync(Sync::Data) => task.fdatasync(file).await.map(|()| 0),
        What::Sync(Sync::Range(how)) => {
            task.sync_range(file, offset..offset + length, how).await;
            Ok(0)
        }
    }
}

/// The call of the engines `ftruncate` and `falloc` (fio(1), and strace of fio 3.33).
async fn change_room(
    task: &Task,
    files: &[File],
    request: Request,
    engine: Engine,
) -> Result<u64, Errno> {
    let (file, bytes) = (&files[request.file], request.offset..request.offset + request.length);
    let done = match (engine, request.what) {
        (Engine::Ftruncate, What::Move(Direction::Write)) => task.truncate(file, bytes.start).await,
        (Engine::Falloc, What::Move(Direction::Read)) => task.fallocate(file, bytes, true).await,
        (Engine::Falloc, What::Move(Direction::Write)) => task.fallocate(file, bytes, false).await,
        (Engine::Falloc, What::Move(Direction::Trim)) => task.punch_hole(file, bytes).await,
        _ => Err(Errno::Einval),
    };
    done.map(|()| request.length)
}

impl Request {
    /// Whether `next` can be part of the same call.
    fn continues(&self, next: &Request) -> bool {
        let is_data = |what| matches!(what, What::Move(Direction::Read | Direction::Write));
        self.what == next.what
            && is_data(next.what)
            && self.file == next.file
            && self.offset + self.length == next.offset
    }
}

impl Queue {
    /// Whether the interface can do it; the rest is done by system calls of the process.
    fn takes(&self, what: What) -> bool {
        match what {
            What::Move(Direction::Trim) => false,
            What::Sync(Sync::Range(_)) => false,
            What::Sync(_) => self.interface == Interface::IoUring,
            What::Move(_) => true,
        }
    }

    fn prepare(&mut self, file: &File, request: Request) {
        let op = match request.what {
            What::Move(Direction::Read) => AsyncOp::Read,
            What::Move(_) => AsyncOp::Write,
            What::Sync(Sync::Data) => AsyncOp::DataSync,
            What::Sync(_) => AsyncOp::Sync,
        };
        let slot = self.free.pop().expect("no more requests than the depth");
        self.slots[slot] = Some(request);
        let (offset, length) = (request.offset, request.length);
        self.queue.prepare(file, op, offset, length, slot as u64, request.ioprio);
    }

    /// Hands over what was prepared, if anything was.
    async fn submit(&mut self, task: &Task, habits: &ProcessHabits, account: &Account) {
        let count = self.queue.submit().await;
        if count > 0 {
            account.submit(count);
            task.look_at_clock(habits.after_submitting).await;
        }
    }

    async fn collect(&mut self, least: usize, most: usize, done: &mut Vec<Done>) {
        self.reaped.clear();
        self.queue.reap(least, most, None, &mut self.reaped).await;
        for reaped in &self.reaped {
            let slot = reaped.user as usize;
            let request = self.slots[slot].take().expect("it was under way");
            self.free.push(slot);
            let submitted = Some(reaped.submitted);
            done.push(Done { request, result: reaped.result, at: reaped.completed, submitted });
        }
    }
}
