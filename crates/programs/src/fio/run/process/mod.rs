//! What one process does: rounds of requests, pauses, reading back what was written, the end.

mod unseen;
mod waiting;

use std::rc::Rc;

use base::{Duration, Instant};

use block::Ioprio;

use super::super::account::{Account, MOST_SAMPLES, Sample};
use super::super::engine::Engine;
use super::super::job::{Direction, Directions, Job, LatencyTarget, Verify};
use super::super::layout::Ranges;
use super::super::pattern::{Place, Walk};
use super::crew::Crew;
use super::files::Files;
use super::goal::{Search, Verdict};
use super::identity::{Priorities, become_process, open};
use super::lanes::{Done, Lanes, Request, Sync, What};
use super::memory::{Heap, buffers};
use super::pace::{Pauses, Rates};
use crate::fio::steady::Watch;
use guest::ProcessHabits;
use machine::task::{Errno, Task};

/// Exit status of a process that gives up, as that of fio's own.
const FAILED: i32 = 1;

/// A process at work.
pub(super) struct Process<'a> {
    task: Task,
    job: &'a Job,
    crew: &'a Crew,
    lanes: Lanes,
    account: Rc<Account>,
    walk: Walk,
    verify: Option<Verify>,
    /// Behind the walk: what was written and is to be read back.
    written: Option<Written>,
    /// Bytes to transfer in all rounds.
    amount: u64,
    /// Bytes for which another round begins, and requests after which none does, if the job says.
    more: Option<u64>,
    most: Option<u64>,
    /// Rounds that follow whatever was transferred.
    loops: u32,
    moved: Moved,
    deadline: Option<Instant>,
    rates: Rates,
    pauses: Option<Pauses>,
    search: Option<Search>,
    watch: Option<Rc<Watch>>,
    /// The goal is reached.
    is_content: bool,
    priorities: Priorities,
    issued: u64,
    completed: u64,
    /// Bytes and requests that are done, by direction.
    done: [(u64, u64); 3],
    writes: u64,
    /// The last request that is done was a sync.
    has_synced: bool,
    /// A request was wanted in this round for which no file had a place left.
    has_run_out: bool,
    /// What was written since, from the first byte to the last one.
    unsynced: std::ops::Range<u64>,
    /// The file of the last request.
    file: usize,
    failure: Option<i32>,
    /// Nothing but the number of its requests tells what it does.
    is_unseen: bool,
}

/// Looks at the clock before a request.
fn looks_before(habits: &ProcessHabits, what: What, verifies: bool) -> u32 {
    match what {
        What::Move(_) if !verifies => habits.before_request,
        What::Move(_) | What::Sync(_) => habits.before_others,
    }
}

/// Looks at the clock before the first request.
fn looks_at_start(habits: &ProcessHabits, engine: Engine) -> u32 {
    match engine {
        Engine::Libaio => habits.at_start_of_libaio,
        _ => habits.at_start,
    }
}

/// Looks at the clock after the last request.
fn looks_at_end(habits: &ProcessHabits, engine: Engine) -> u32 {
    match engine {
        Engine::Mmap => habits.at_end_of_mmap,
        _ => habits.at_end,
    }
}

/// Writes that have not been read back.
struct Written {
    walk: Walk,
    blocks: u64,
}

/// What was transferred so far.
#[derive(Default)]
struct Moved {
    bytes: u64,
    /// A trim and the write behind it are one.
    requests: u64,
}

impl<'a> Process<'a> {
    /// The process of a job, as whom it is to run; an exit status if it cannot.
    pub async fn new(
        task: Task,
        label: &str,
        job: &'a Job,
        crew: &'a Crew,
        (ranges, named): (&Ranges, Files),
    ) -> Result<Process<'a>, i32> {
        become_process(&task, job);
        let failed = |message: String| {
            task.print(message);
            FAILED
        };
        if !job.creation.is_serial {
            let mut heap = Heap::new(&crew.habits);
            named.make(&task, job, &mut heap).await.map_err(failed)?;
        }
        let errno = |errno: Errno| failed(format!("fio: {}: {errno}", job.name));
        named.read_before(&task, job).await.map_err(errno)?;
        task.use_memory(buffers(job));
        let files = open(&task, job).map_err(failed)?;
        let start = task.now();
        let account = Rc::new(Account::new(label, job.number, job.logs.clone(), start));
        task.keep_account(account.clone());
        let of = (job, crew.habits.process, account.clone());
        let lanes =
            Lanes::new(&task, label, of, files, (&ranges.whole, named)).await.map_err(errno)?;
        let start = task.now();
        let walk = Walk::new(job, ranges, &super::seeds(&task, job));
        let directions = job.pattern.directions;
        let trims = directions == Directions::TrimWrite;
        // What a job did not write itself it just reads.
        let verify = job.verify.filter(|_| directions.include(Direction::Write));
        let (timing, loops) = (&job.timing, u64::from(job.extent.loops));
        let amount = ranges.amount.0.saturating_mul(loops);
        if let Some(flow) = job.pace.flow {
            crew.enter_flow(job.number as usize, flow);
        }
        let watch = crew.watch(job, start);
        watch.iter().for_each(|watch| account.watched_by(watch.clone()));
        let first = Place { file: 0, offset: 0, length: 0 };
        let is_unseen = unseen::may_be(job) && lanes.unseen(Direction::Read, first).is_some();
        Ok(Process {
            is_unseen,
            account,
            job,
            crew,
            lanes,
            written: verify.map(|_| Written { walk: walk.clone(), blocks: 0 }),
            verify,
            walk,
            // Each block is trimmed and written.
            amount: if trims { amount.saturating_mul(2) } else { amount },
            more: job.extent.io_size.map(|_| ranges.amount.0),
            most: job.extent.number_ios.map(|most| most.saturating_mul(loops)),
            loops: job.extent.loops - 1,
            moved: Moved::default(),
            deadline: timing.runtime.map(|time| start.saturating_add(timing.ramp + time)),
            rates: Rates::new(&job.pace, start, super::stream(&task, job, "rate")),
            pauses: job.pace.think.map(|think| Pauses::new(think, start)),
            search: job
                .goal
                .latency
                .map(|target| Search::new(target, job.queue.depth as usize, start)),
            watch,
            is_content: false,
            priorities: Priorities::new(job, super::stream(&task, job, "priority")),
            issued: 0,
            completed: 0,
            done: [(0, 0); 3],
            writes: 0,
            has_synced: false,
            has_run_out: false,
            unsynced: 0..0,
            file: 0,
            failure: None,
            task,
        })
    }

    fn habits(&self) -> &ProcessHabits {
        &self.crew.habits.process
    }

    /// Runs; the answer is the exit status.
    pub async fn run(&mut self) -> i32 {
        if self.job.cpu.is_some() {
            self.keep_a_core_busy().await;
            return 0;
        }
        if self.job.creation.only && self.job.has_files() {
            return 0;
        }
        if let Some(search) = &self.search {
            self.lanes.set_depth(search.depth());
        }
        // The length of a line of the processor's cache, which the guest does not say.
        self.task.look_for_files(1).await;
        if self.habits().is_disturbed {
            self.task.be_disturbed().await;
        }
        self.task.look_at_clock(looks_at_start(self.habits(), self.job.engine)).await;
        // Observed: a process that waits there for writes of another one looks no more often after
        // it than before any request.
        self.lanes.prepare_cache(self.job.caching).await;
        // A job that finds no place for a request will not find one in the next round either.
        while !self.must_end() && self.round().await > 0 && self.goes_on() {
            self.lanes.open_again(self.job.creation.unlinks_each_loop).await;
            self.lanes.prepare_cache(self.job.caching).await;
        }
        self.task.look_at_clock(looks_at_end(self.habits(), self.job.engine)).await;
        self.lanes.close().await;
        self.lanes.close_files(self.job).await;
        if let (Some(search), Some(goal)) = (&self.search, self.job.goal.latency) {
            self.account.depth.set(search.depth());
            let LatencyTarget { target, window, percentile, .. } = goal;
            self.task.print(format!(
                "fio: {}: latency: target={target}, window={window}, percentile={}.{:02}%, \
                 depth={}",
                self.job.name,
                percentile / 1_000_000,
                percentile / 10_000 % 100,
                search.depth()
            ));
        }
        self.failure.unwrap_or(0)
    }

    /// Whether another round follows one that has found no place for a request or has transferred
    /// everything. The rules are those that fio 3.33 was seen to follow.
    fn goes_on(&mut self) -> bool {
        if self.job.timing.time_based {
            return true;
        }
        if self.is_done() {
            return false;
        }
        if self.loops > 0 {
            self.loops -= 1;
            return true;
        }
        // Less than a block is left as it is.
        let used = Direction::ALL.into_iter().zip(&self.job.pattern.sizes);
        let used = used.filter(|(direction, _)| self.job.pattern.directions.include(*direction));
        let largest = used.map(|(_, sizes)| sizes.most().0).max().unwrap_or(0);
        self.more.is_some_and(|more| self.moved.bytes.saturating_add(largest) <= more)
    }

    /// Whether everything was transferred, or as many requests as the job says.
    fn is_done(&self) -> bool {
        let all_bytes = self.moved.bytes >= self.amount && !self.job.timing.time_based;
        all_bytes || self.most.is_some_and(|most| self.moved.requests >= most)
    }

    /// One round; the answer is the number of its requests.
    async fn round(&mut self) -> u64 {
        if let Some(written) = &mut self.written {
            *written = Written { walk: self.walk.clone(), blocks: 0 };
        }
        if self.verify.is_some_and(|verify| verify.only) {
            let requests = self.read_back_all().await;
            self.collect_all().await;
            return requests;
        }
        let requests = self.transfer().await;
        self.collect_all().await;
        if self.verify.is_some_and(|verify| verify.after_writes) {
            self.read_back(u64::MAX).await;
            self.collect_all().await;
        }
        let durability = &self.job.durability;
        let syncs = durability.end_fsync || durability.fsync_on_close;
        if syncs && self.done[Direction::Write as usize].1 > 0 {
            self.sync_files().await;
        }
        requests
    }

    /// Syncs all files at the end of a round. Those in which a place was looked for in vain have
    /// been closed, so each is opened, which drops it from the page cache, and closed again.
    // observed of fio 3.33 by strace: 1 and 3 files, size divisible by them and not, io_size
    async fn sync_files(&mut self) {
        let are_closed = self.has_run_out && self.lanes.closes_files();
        if are_closed {
            self.lanes.open_again(false).await;
            self.lanes.prepare_cache(self.job.caching).await;
        }
        for file in 0..self.job.files.list.len() {
            let result = match self.lanes.open(self.job, file).await {
                Ok(()) => self.lanes.sync_file(file).await,
                refused => refused,
            };
            if let Err(errno) = result {
                self.fail(format!("fsync: {errno}"));
            }
            if are_closed {
                self.lanes.close_file(file).await;
            }
        }
    }

    /// The requests of one round; the answer is their number.
    async fn transfer(&mut self) -> u64 {
        if self.is_unseen {
            return self.transfer_unseen().await;
        }
        let verify = self.verify;
        let mut requests = 0;
        // Observed: a round may begin with a sync although the one before ended with one.
        (self.has_synced, self.has_run_out) = (false, false);
        if self.job.pattern.directions == Directions::TrimWrite {
            self.moved.requests = 0;
        }
        while !self.is_done() && !self.must_end() {
            if self.waits_for_its_flow().await {
                continue;
            }
            self.sync_if_due().await;
            let Some(direction) = self.wait_for_its_time().await else { break };
            let Some((direction, place)) = self.walk.next(direction) else {
                self.has_run_out = true;
                break;
            };
            requests += 1;
            self.count(direction, place);
            if let Some(written) = &mut self.written {
                written.blocks += u64::from(direction == Direction::Write);
            }
            if direction == Direction::Write {
                self.writes += 1;
                self.note_unsynced(place);
            }
            self.issue(What::Move(direction), place, false).await;
            if let Some(backlog) = verify.and_then(|verify| verify.backlog)
                && self.written.as_ref().is_some_and(|written| written.blocks >= backlog)
            {
                let batch = verify.and_then(|verify| verify.backlog_batch);
                self.read_back(batch.map_or(backlog, u64::from)).await;
            }
            self.pause_if_due().await;
            self.judge().await;
        }
        requests
    }

    /// Adds to what a sync_file_range covers.
    fn note_unsynced(&mut self, place: Place) {
        let (start, end) = (place.offset, place.offset + place.length);
        let is_first = self.unsynced.is_empty();
        let first = if is_first { start } else { start.min(self.unsynced.start) };
        self.unsynced = first..end.max(if is_first { end } else { self.unsynced.end });
    }

    fn count(&mut self, direction: Direction, place: Place) {
        let is_half =
            self.job.pattern.directions == Directions::TrimWrite && direction == Direction::Trim;
        self.moved.bytes += place.length;
        self.moved.requests += u64::from(!is_half);
    }

    /// Whether time is over, somebody ended the process, or something went wrong.
    fn must_end(&mut self) -> bool {
        self.failure.is_some()
            || self.is_content
            || self.deadline.is_some_and(|deadline| self.task.now() >= deadline)
            || self.crew.must_stop(self.job.number as usize)
    }

    /// Hands a request over, and waits for others if there are too many then.
    async fn issue(&mut self, what: What, place: Place, verifies: bool) {
        let Place { file, offset, length } = place;
        self.task.look_at_clock(looks_before(self.habits(), what, verifies)).await;
        if self.job.queue.serialize_overlap || verifies {
            while self.lanes.overlaps(file, offset, length) {
                self.collect(1, 1).await;
            }
        }
        let ioprio = match what {
            What::Move(direction) => self.priorities.draw(direction, length),
            What::Sync(_) => None,
        };
        if let Err(errno) = self.lanes.open(self.job, file).await {
            return self
                .fail(format!("failed to open {}: {errno}", self.job.files.list[file].name));
        }
        let issued = self.task.now();
        let request = Request { what, file, offset, length, ioprio, verifies, issued };
        if let (What::Move(direction), false) = (what, verifies) {
            self.issued += 1;
            self.rates.count(direction, length);
        }
        self.file = file;
        self.lanes.put(request).await;
        self.settle();
        let queue = self.job.queue;
        let (least, most) = (queue.complete_min as usize, queue.complete_max as usize);
        if self.lanes.is_full() {
            loop {
                self.collect(least.max(1), most).await;
                if !self.lanes.is_full() && self.lanes.under_way() <= queue.low as usize {
                    break;
                }
            }
        } else if least == 0 || self.lanes.is_offloaded() {
            self.collect(0, most).await;
        }
    }

    /// Makes durable what was written, before the next request that follows enough writes, until
    /// that is the last request that is done. As fio was seen to: as long as the number of writes
    /// stays what it is, after each read once more; and where syncs are asynchronous, several.
    async fn sync_if_due(&mut self) {
        let durability = &self.job.durability;
        let all = durability.fsync.map(|every| (Sync::All, every));
        let data = durability.fdatasync.map(|every| (Sync::Data, every));
        let range = durability.range.map(|(how, every)| (Sync::Range(how), every));
        let Some((how, every)) = all.or(data).or(range) else { return };
        let is_due = self.writes > 0 && self.writes.is_multiple_of(u64::from(every));
        while is_due && !self.has_synced && !self.must_end() {
            let place = match how {
                Sync::Range(_) => Place {
                    file: self.file,
                    offset: self.unsynced.start,
                    length: self.unsynced.end - self.unsynced.start,
                },
                _ => Place { file: self.walk.file_for_sync(), offset: 0, length: 0 },
            };
            self.unsynced = 0..0;
            self.issue(What::Sync(how), place, false).await;
        }
    }

    /// Reads back at most so many blocks, in the order in which they were written.
    async fn read_back(&mut self, most: u64) {
        for _ in 0..most {
            if self.must_end() {
                return;
            }
            let Some(written) = self.written.as_mut().filter(|it| it.blocks > 0) else { return };
            let Some(place) = written.next() else { return };
            self.issue(What::Move(Direction::Read), place, true).await;
        }
    }

    /// Reads what an earlier run of the same job has written.
    async fn read_back_all(&mut self) -> u64 {
        let mut requests = 0;
        while !self.is_done() && !self.must_end() {
            let Some(written) = &mut self.written else { break };
            written.blocks = 1;
            let Some(place) = written.next() else { break };
            requests += 1;
            self.count(Direction::Read, place);
            self.issue(What::Move(Direction::Read), place, true).await;
        }
        requests
    }

    /// Looks at the goals of the job.
    async fn judge(&mut self) {
        if self.search.is_none() && self.watch.is_none() {
            return;
        }
        let now = self.task.now();
        let search = self.search.as_mut().map_or(Verdict::GoOn, |search| search.judge(now));
        match search {
            Verdict::GoOn => {}
            Verdict::Depth(depth) => self.lanes.set_depth(depth),
            Verdict::FinalRun => self.collect_all().await,
            Verdict::Reached => self.is_content = true,
        }
        if self.watch.as_ref().is_some_and(|watch| watch.judge(now)) {
            self.task.print(format!("fio: {}: steady state attained", self.job.name));
            self.is_content = true;
        }
    }

    async fn collect(&mut self, least: usize, most: usize) {
        self.lanes.collect(least, most).await;
        self.settle();
    }

    async fn collect_all(&mut self) {
        let all = self.lanes.under_way();
        if all > 0 {
            self.collect(all, all).await;
        }
    }

    /// Takes note of what is done.
    fn settle(&mut self) {
        while let Some(done) = self.lanes.pop() {
            self.note(&done);
        }
        if let Some(missed) = self.rates.missed(self.task.now(), &self.done) {
            self.fail(missed);
        }
    }

    fn note(&mut self, done: &Done) {
        let Done { request, result, at, .. } = *done;
        // Observed: the last that is done counts, not the last that was issued.
        self.has_synced = matches!(request.what, What::Sync(_));
        let What::Move(direction) = request.what else {
            if let Err(errno) = result {
                self.fail_request(&request, errno);
            }
            return;
        };
        match result {
            Ok(bytes) if !request.verifies => {
                self.completed += 1;
                let (all_bytes, requests) = &mut self.done[direction as usize];
                *all_bytes += bytes;
                *requests += 1;
            }
            Ok(_) => {}
            Err(errno) => self.fail_request(&request, errno),
        }
        let took = at.saturating_since(request.issued);
        if self.account.is_logged() && !request.verifies {
            self.log(done, direction);
        }
        if let Some(search) = &mut self.search {
            search.note(request.issued, took);
        }
        if let Some(watch) = &self.watch {
            watch.note(at, request.length);
        }
        if let Some(most) = self.job.goal.max_latency[direction as usize]
            && took > most
        {
            self.fail(format!("latency of {took} exceeds max_latency {most}"));
        }
    }

    /// A line of the logs.
    fn log(&self, done: &Done, direction: Direction) {
        let Done { request, at, .. } = *done;
        let submitted = done.submitted.unwrap_or(request.issued);
        let bits = |(class, level)| u16::from(class) << 13 | u16::from(level);
        let own = self.job.process.ioprio.map_or(0, bits);
        let is_full = self.account.log(
            at,
            Sample {
                at: Duration::ZERO,
                submission: done.submitted.map(|it| it.saturating_since(request.issued)),
                completion: at.saturating_since(submitted),
                direction,
                bytes: request.length,
                offset: request.offset,
                priority: request.ioprio.map_or(own, Ioprio::to_bits),
            },
        );
        if is_full {
            self.task.print(format!(
                "fio: {}: its logs end after {MOST_SAMPLES} requests",
                self.job.name
            ));
        }
    }

    fn fail_request(&mut self, request: &Request, errno: Errno) {
        let name = &self.job.files.list[request.file].name;
        let doing = match request.what {
            What::Move(Direction::Read) => "read",
            What::Move(Direction::Write) => "write",
            What::Move(Direction::Trim) => "trim",
            What::Sync(_) => "sync",
        };
        let (offset, length) = (request.offset, request.length);
        let message =
            format!("io_u error on file {name}: {errno}: {doing} offset={offset}, buflen={length}");
        if self.job.extent.fill_device && errno == Errno::Enospc {
            // That is what it was to come to, but fio says so.
            self.task.print(format!("fio: {message}"));
            self.is_content = true;
            return;
        }
        self.fail(message);
    }

    fn fail(&mut self, message: String) {
        if self.failure.is_none() {
            self.task.print(format!("fio: {}: {message}", self.job.name));
            self.failure = Some(FAILED);
        }
    }
}

impl Written {
    /// The next block that was written: the same walk once more.
    fn next(&mut self) -> Option<Place> {
        loop {
            let direction = self.walk.direction();
            let (direction, place) = self.walk.next(direction)?;
            if direction == Direction::Write {
                self.blocks -= 1;
                return Some(place);
            }
        }
    }
}
