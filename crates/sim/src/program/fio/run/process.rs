//! What one process does: rounds of requests, pauses, reading back what was written, the end.

use base::{Duration, Instant};
use block::Ioprio;

use super::super::job::{
    CommandPriority, Direction, Directions, Job, Modifier, PriorityShare, SyncMode,
};
use super::super::layout::Ranges;
use super::super::pattern::{Place, Walk};
use super::crew::Crew;
use super::lanes::{Done, Lanes, Request, What};
use super::pace::{Pauses, Rates};
use crate::task::{CoreSet, Errno, File, OpenFlags, Task};

/// Exit status of a process that gives up, as that of fio's own.
const FAILED: i32 = 1;

/// A process at work.
pub(super) struct Process<'a> {
    task: Task,
    job: &'a Job,
    crew: &'a Crew,
    lanes: Lanes,
    walk: Walk,
    /// Behind the walk: what was written and is to be read back.
    written: Option<Written>,
    /// Bytes to transfer in a round.
    amount: u64,
    deadline: Option<Instant>,
    rates: Rates,
    pauses: Option<Pauses>,
    chance: base::Rng,
    issued: u64,
    completed: u64,
    /// Bytes and requests that are done, by direction.
    done: [(u64, u64); 3],
    writes_since_sync: u32,
    /// The file of the last request.
    file: usize,
    failure: Option<i32>,
}

/// Writes that have not been read back.
struct Written {
    walk: Walk,
    blocks: u64,
}

/// What a round has come to.
#[derive(Default)]
struct Round {
    bytes: u64,
    requests: u64,
}

impl<'a> Process<'a> {
    /// The process of a job, as whom it is to run; an exit status if it cannot.
    pub fn new(
        task: Task,
        label: &str,
        job: &'a Job,
        crew: &'a Crew,
        ranges: &Ranges,
    ) -> Result<Process<'a>, i32> {
        become_process(&task, job);
        let files = open(&task, job).map_err(|message| {
            task.print(message);
            FAILED
        })?;
        let start = task.now();
        let walk = Walk::new(job, &ranges.files, &|name| super::stream(&task, job, name));
        let trims = job.pattern.directions == Directions::TrimWrite;
        let timing = &job.timing;
        if let Some(flow) = job.pace.flow {
            crew.enter_flow(flow);
        }
        Ok(Process {
            job,
            crew,
            lanes: Lanes::new(&task, label, job, files),
            written: job.verify.map(|_| Written { walk: walk.clone(), blocks: 0 }),
            walk,
            // Each block is trimmed and written.
            amount: if trims { ranges.amount.0.saturating_mul(2) } else { ranges.amount.0 },
            deadline: timing.runtime.map(|time| start.saturating_add(timing.ramp + time)),
            rates: Rates::new(&job.pace, start, super::stream(&task, job, "rate")),
            pauses: job.pace.think.map(|think| Pauses::new(think, start)),
            chance: super::stream(&task, job, "priority"),
            issued: 0,
            completed: 0,
            done: [(0, 0); 3],
            writes_since_sync: 0,
            file: 0,
            failure: None,
            task,
        })
    }

    /// Runs; the answer is the exit status.
    pub async fn run(&mut self) -> i32 {
        if self.job.cpu.is_some() {
            self.keep_a_core_busy().await;
            return 0;
        }
        for round in 0..self.job.extent.loops {
            if self.must_end() {
                break;
            }
            if round > 0 {
                self.walk.restart();
            }
            self.round().await;
        }
        self.lanes.close().await;
        self.failure.unwrap_or(0)
    }

    async fn round(&mut self) {
        if let Some(written) = &mut self.written {
            *written = Written { walk: self.walk.clone(), blocks: 0 };
        }
        self.transfer().await;
        self.collect_all().await;
        if self.job.verify.is_some_and(|verify| verify.after_writes) {
            self.read_back(u64::MAX).await;
            self.collect_all().await;
        }
        let durability = &self.job.durability;
        let syncs = durability.end_fsync || durability.fsync_on_close;
        if syncs && self.done[Direction::Write as usize].1 > 0 {
            for file in 0..self.job.files.list.len() {
                let result = self.lanes.sync_file(file).await;
                if let Err(errno) = result {
                    self.fail(format!("fsync: {errno}"));
                }
            }
        }
    }

    /// The requests of one round.
    async fn transfer(&mut self) {
        let verify = self.job.verify;
        let mut round = Round::default();
        while !self.is_round_over(&round) {
            if self.waits_for_its_flow().await {
                continue;
            }
            let Some(direction) = self.wait_for_its_time().await else { break };
            let Some(place) = self.step(direction) else { break };
            round.bytes += place.length;
            round.requests += 1;
            if let Some(written) = &mut self.written {
                written.blocks += u64::from(direction == Direction::Write);
            }
            if !verify.is_some_and(|verify| verify.only) {
                self.issue(What::Move(direction), place, false).await;
                self.sync_if_due(direction).await;
            }
            if let Some(backlog) = verify.and_then(|verify| verify.backlog)
                && self.written.as_ref().is_some_and(|written| written.blocks >= backlog)
            {
                let batch = verify.and_then(|verify| verify.backlog_batch);
                self.read_back(batch.map_or(backlog, u64::from)).await;
            }
            self.pause_if_due().await;
        }
    }

    /// Whether the round has done what it should, or has to end before.
    fn is_round_over(&mut self, round: &Round) -> bool {
        let all_done = round.bytes >= self.amount && !self.job.timing.time_based;
        let most = self.job.extent.number_ios;
        all_done || most.is_some_and(|most| round.requests >= most) || self.must_end()
    }

    /// Whether time is over, somebody ended the process, or something went wrong.
    fn must_end(&mut self) -> bool {
        self.failure.is_some()
            || self.deadline.is_some_and(|deadline| self.task.now() >= deadline)
            || self.crew.must_stop(self.job.number as usize)
    }

    /// Where the next request goes; begins anew when everything was visited.
    fn step(&mut self, direction: Direction) -> Option<Place> {
        step(self.job, &mut self.walk, direction)
    }

    /// Waits until a request is due, and says in which direction; `None` if time is over before.
    async fn wait_for_its_time(&mut self) -> Option<Direction> {
        let mut direction = self.walk.direction();
        if !self.rates.are_limited() {
            return Some(direction);
        }
        // A direction that has its rate makes room for the other one. Only what was written in
        // the drawn order can be found again.
        if self.written.is_none() && matches!(self.job.pattern.directions, Directions::ReadWrite(_))
        {
            let other = match direction {
                Direction::Read => Direction::Write,
                _ => Direction::Read,
            };
            if self.rates.due(direction) > self.task.now()
                && self.rates.due(other) < self.rates.due(direction)
            {
                direction = other;
            }
        }
        let due = self.rates.due(direction);
        if due > self.task.now() && !self.lanes.is_offloaded() {
            self.collect_all().await;
        }
        self.sleep_until(due.min(self.deadline.unwrap_or(Instant::FAR_FUTURE))).await;
        (!self.must_end()).then_some(direction)
    }

    /// Sleeps until a point in time, or until the process is told to stop.
    async fn sleep_until(&mut self, until: Instant) {
        while self.task.now() < until && !self.crew.must_stop(self.job.number as usize) {
            self.task.listen_until(until).await;
        }
    }

    /// Whether the process had to wait because it is ahead in its flow.
    async fn waits_for_its_flow(&mut self) -> bool {
        let Some(flow) = self.job.pace.flow else { return false };
        let number = self.job.number as usize;
        if !self.crew.is_ahead(&self.task, number, flow) {
            self.crew.count_flow(&self.task, number, flow);
            return false;
        }
        self.collect_all().await;
        let deadline = self.deadline.unwrap_or(Instant::FAR_FUTURE);
        if flow.sleep.is_zero() {
            self.task.listen_until(deadline).await;
        } else {
            self.sleep_until(deadline.min(self.task.now() + flow.sleep)).await;
        }
        true
    }

    /// Hands a request over, and waits for others if there are too many then.
    async fn issue(&mut self, what: What, place: Place, verifies: bool) {
        let Place { file, offset, length } = place;
        if self.job.queue.serialize_overlap || verifies {
            while self.lanes.overlaps(file, offset, length) {
                self.collect(1, 1).await;
            }
        }
        let (ioprio, issued) = (self.priority_of(what, length), self.task.now());
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
                if self.lanes.under_way() <= queue.low as usize {
                    break;
                }
            }
        } else if least == 0 || self.lanes.is_offloaded() {
            self.collect(0, most).await;
        }
    }

    async fn sync_if_due(&mut self, direction: Direction) {
        if direction != Direction::Write {
            return;
        }
        self.writes_since_sync += 1;
        let durability = &self.job.durability;
        let every = durability.fsync.or(durability.fdatasync);
        if every.is_some_and(|every| self.writes_since_sync >= every) {
            self.writes_since_sync = 0;
            let place = Place { file: self.file, offset: 0, length: 0 };
            self.issue(What::Sync, place, false).await;
        }
    }

    /// Reads back at most so many blocks, in the order in which they were written.
    async fn read_back(&mut self, most: u64) {
        for _ in 0..most {
            if self.must_end() {
                return;
            }
            let Some(written) = self.written.as_mut().filter(|it| it.blocks > 0) else { return };
            let Some(place) = written.next(self.job) else { return };
            self.issue(What::Move(Direction::Read), place, true).await;
        }
    }

    async fn pause_if_due(&mut self) {
        let now = self.task.now();
        let Some(pauses) = &mut self.pauses else { return };
        if !pauses.is_due(self.issued, self.completed, now) {
            return;
        }
        let think = self.job.pace.think.expect("there are pauses only if it thinks");
        self.collect_all().await;
        let begun = self.task.now();
        self.task.compute(think.spin).await;
        self.sleep_until(begun.saturating_add(think.time)).await;
        let now = self.task.now();
        if self.job.pace.rate_ignores_think {
            self.rates.leave_out(now.since(begun));
        }
        if let Some(pauses) = &mut self.pauses {
            pauses.ended(now);
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
        if let Some((direction, least, seen)) = self.rates.missed(self.task.now(), &self.done) {
            self.fail(format!("{direction:?}: below {least:?}, got {seen}"));
        }
    }

    fn note(&mut self, done: &Done) {
        let Done { request, result, at } = *done;
        let What::Move(direction) = request.what else { return };
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
        if let Some(most) = self.job.goal.max_latency[direction as usize]
            && took > most
        {
            self.fail(format!("latency of {took} exceeds max_latency {most}"));
        }
    }

    fn fail_request(&mut self, request: &Request, errno: Errno) {
        let name = &self.job.files.list[request.file].name;
        let doing = match request.what {
            What::Move(Direction::Read) => "read",
            What::Move(Direction::Write) => "write",
            What::Move(Direction::Trim) => "trim",
            What::Sync => "sync",
        };
        let (offset, length) = (request.offset, request.length);
        self.fail(format!(
            "io_u error on file {name}: {errno}: {doing} offset={offset}, buflen={length}"
        ));
    }

    fn fail(&mut self, message: String) {
        if self.failure.is_none() {
            self.task.print(format!("fio: {}: {message}", self.job.name));
            self.failure = Some(FAILED);
        }
    }

    /// The priority that the request has beside that of the process.
    fn priority_of(&mut self, what: What, length: u64) -> Option<Ioprio> {
        let What::Move(direction @ (Direction::Read | Direction::Write)) = what else {
            return None;
        };
        let priorities = self.job.process.command_priority.as_ref()?;
        let priority = &priorities[direction as usize];
        let draw = self.chance.below(100) as u8;
        match priority.which {
            PriorityShare::Percent(percent) => {
                (draw < percent).then(|| ioprio(priority.class, priority.level))
            }
            PriorityShare::BySize(_) => by_size(priority, length, draw),
        }
    }

    /// ioengine cpuio: computes and sleeps in turn.
    async fn keep_a_core_busy(&mut self) {
        let load = self.job.cpu.expect("the engine is cpuio");
        let rest = load.chunk * u64::from(100 - load.percent.min(100));
        let rest = Duration::from_nanos(rest.as_nanos() / u64::from(load.percent.max(1)));
        let deadline = self.deadline.unwrap_or(Instant::FAR_FUTURE);
        while !self.must_end() && !(load.exit_on_io_done && self.crew.io_has_ended()) {
            self.task.compute(load.chunk).await;
            let until = deadline.min(self.task.now() + rest);
            if !rest.is_zero() {
                self.task.listen_until(until).await;
            }
        }
    }
}

impl Written {
    /// The next block that was written: the same walk once more.
    fn next(&mut self, job: &Job) -> Option<Place> {
        loop {
            let direction = self.walk.direction();
            let place = step(job, &mut self.walk, direction)?;
            if direction == Direction::Write {
                self.blocks -= 1;
                return Some(place);
            }
        }
    }
}

/// The next place of a walk. A walk that leaves holes ends when it has gone through its range;
/// others begin anew until the amount is transferred.
fn step(job: &Job, walk: &mut Walk, direction: Direction) -> Option<Place> {
    let place = walk.next(direction);
    let goes_once = matches!(job.pattern.modifier, Modifier::Skip(_))
        && job.extent.io_size.is_none()
        && !job.timing.time_based;
    if place.is_some() || goes_once {
        return place;
    }
    walk.restart();
    walk.next(direction)
}

/// Takes on the identity that the job asks for.
fn become_process(task: &Task, job: &Job) {
    let process = &job.process;
    if process.nice != 0 {
        task.set_nice(process.nice);
    }
    if let Some((class, level)) = process.ioprio {
        task.set_ioprio(ioprio(class, level));
    }
    if let Some(cpus) = &process.cpus {
        // The parser has checked them against the cores of the host.
        let cores = cpus.iter().filter_map(|cpu| u16::try_from(*cpu).ok());
        task.set_affinity(CoreSet::of(cores));
    }
    if let Some(cgroup) = &process.cgroup {
        task.enter_cgroup(cgroup, process.cgroup_weight);
    }
}

fn ioprio(class: u8, level: u8) -> Ioprio {
    Ioprio::from_bits(u16::from(class) << 13 | u16::from(level))
}

/// The priority of a request of one size, when `draw` percent fall below it.
fn by_size(priority: &CommandPriority, length: u64, draw: u8) -> Option<Ioprio> {
    let PriorityShare::BySize(splits) = &priority.which else { return None };
    let mut left = draw;
    for split in splits.iter().filter(|split| split.size.0 == length) {
        if left < split.percent {
            let (class, level) = split.priority.unwrap_or((priority.class, priority.level));
            return Some(ioprio(class, level));
        }
        left -= split.percent;
    }
    None
}

fn open(task: &Task, job: &Job) -> Result<Vec<File>, String> {
    let durability = &job.durability;
    let flags = OpenFlags {
        direct: durability.direct,
        sync: durability.sync == SyncMode::Sync,
        dsync: durability.sync == SyncMode::DataSync,
    };
    let files = job.files.list.iter().map(|file| {
        // Files that were laid out are extents of the disk.
        let path = if file.name.starts_with("/dev/") { &file.name } else { "/dev/disk" };
        task.open(path, flags)
            .map_err(|errno| format!("fio: failed to open {}: {errno}", file.name))
    });
    files.collect()
}
