//! The life of every request of a recording.
//!
//! blktrace records positions and lengths and names no request. Here its records are put together
//! to requests: which was allocated when, what was merged into it, when it was inserted, joined
//! with another, issued, given back, completed. Where the kernel traces nothing (a join at
//! insertion, up to 5.10), the size of what was issued tells.

mod disk;
mod driven;
mod driver;
#[cfg(test)]
mod made_up;
mod mend;
mod merges;
mod pairs;
mod steps;
mod tags;

use crate::messages::Said;
use base::{Duration, Instant, Sector, Sectors};
use block::scheduler::Merge;
use block::{Bio, CgroupId, ContextId, Flags, IoContextId, Ioprio, Op, Origin, Shape};
use disk::DiskLog;
use lab::recording::{Recording, Tasks};
use mend::Gaps;
pub use mend::Given;
use merges::Doubt;
use pairs::Pairs;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
pub use steps::{Answer, Call, CallKind, LOOK, Look, RunEvent, Step, What};
use trace::blktrace::{Action, Categories, Payload, Record};

/// Index of a request of a recording.
pub type Traced = usize;

/// The first number of a task's context; those below are for interrupts and workers.
pub const FIRST_TASK: u32 = 2;

/// Everything that happened to requests.
#[derive(Debug, Default)]
pub struct History {
    /// Requests, in the order of their allocation.
    pub requests: Vec<Life>,
    /// What happened to them, in order.
    pub steps: Vec<Step>,
    /// Bios as they were submitted, and ends of plugs.
    pub calls: Vec<Call>,
    /// When which task began to insert what it held.
    pub unplugs: BTreeSet<(ContextId, Instant)>,
    /// Control groups that records name, by the kernel's number.
    pub cgroups: BTreeMap<u64, CgroupId>,
    /// What the scheduler said.
    pub messages: Vec<Said>,
    /// Whether messages tell when the scheduler was asked ([`What::Ask`]).
    pub says_asked: bool,
    /// Tasks, by the kernel's number.
    pub contexts: BTreeMap<u32, ContextId>,
    /// Requests that were issued in what was left out.
    pub issued_before: u32,
    /// Records that fit no request.
    pub unmatched: u64,
    /// The recording begins amid requests that are not known; this much of it was left out, up to
    /// a moment at which nothing was under way.
    pub left_out: Duration,
    /// The recording lacks events, and is followed as far as it goes.
    pub is_torn: bool,
    /// What of it was given back.
    pub given: Given,
    /// Messages tell when the queue was run.
    pub tells_runs: bool,
    /// By how much its times may err.
    pub clock_error: Duration,
    /// What was before is known from elsewhere, and only shown again.
    pub since: Instant,
}

/// What a kernel's scheduler sees of its clock within an event is not recorded (measured: some
/// 200 ns a turn are left over in recordings of CFQ 4.19.79).
const CLOCK_ERROR: Duration = Duration::from_micros(1);

/// A request of a recording.
#[derive(Clone, Debug)]
pub struct Life {
    /// The bio it was allocated for.
    pub bio: Bio,
    /// First sector, after all merges.
    pub sector: Sector,
    /// Length, after all merges and joins.
    pub sectors: Sectors,
    /// It went around the scheduler: flush machinery, or given to the driver directly.
    pub bypasses: bool,
    /// It was appended to this one after it was inserted, or instead.
    pub joined: Option<Traced>,
    /// Its task held it back, and remembers the time.
    pub remembers: bool,
    /// Something of it is not in the recording and was given back.
    pub given: bool,
    /// Between which moments the device had it is not known to the microsecond.
    pub vague: bool,
    /// Nobody knows what became of it.
    taken_out: bool,
    state: State,
    /// When it was issued.
    issued: Instant,
    /// Sectors completed already.
    done: u32,
    /// When its plug was flushed, or that it never was in one.
    flushed: Option<Moment>,
    /// Its place in the order in which queued requests got their ends.
    ended: u64,
}

impl Life {
    /// A request that was just allocated.
    pub fn of(bio: Bio) -> Life {
        Life {
            bio,
            sector: bio.sector,
            sectors: bio.sectors,
            bypasses: false,
            joined: None,
            remembers: false,
            given: false,
            vague: false,
            taken_out: false,
            state: State::Allocated,
            issued: Instant::ZERO,
            done: 0,
            flushed: None,
            ended: 0,
        }
    }
}

/// When, and how many steps there were.
type Moment = (Instant, usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Allocated,
    Offered,
    Inserted,
    Issued,
    Requeued,
    Gone,
}

/// What is said at an exit takes no longer (fitted: six messages of
/// CFQ in the recordings of 4.19.79).
const EXIT: Duration = Duration::from_micros(15);

/// What is remembered of a task between its records.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    plug: bool,
    /// Its bio that no request was allocated for yet, and the call it came with.
    bio: Option<(Op, Sector, Sectors)>,
    call: Option<usize>,
    /// What was split off it and comes behind it.
    rest: Option<(Op, Sector, Sectors)>,
    /// Its bio is such a rest: no record told when it came.
    is_rest: bool,
    /// When it last was awake with its bio: time, number of the record, number of steps before.
    awake: (Instant, u64, usize),
    /// A message told that it sleeps with its bio.
    sleeps: bool,
    /// The first part of a bio that was just split.
    split: Option<Sector>,
    /// Requests it allocated and did not insert.
    held: u32,
    /// It is inserting what it held on purpose, and will run the queue.
    runs: bool,
    /// The last record of it is that of an issue.
    issues: bool,
}

/// A queued request that grew just now, and so may touch another.
#[derive(Clone, Copy, Debug)]
enum Merged {
    /// A bio was appended to it.
    Behind(Traced),
    /// A bio was put before it.
    Before(Traced),
    /// It absorbed a request on its arrival.
    Absorbed(Traced),
}

/// What of a kernel must be known to read its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Era {
    /// Its queue's shape.
    pub shape: Shape,
    /// Requests that join are recorded (5.11 and later).
    pub joins_are_traced: bool,
    /// Of the requests that a task holds back, only the newest is merged into.
    pub merges_into_newest: bool,
    /// Of those that are queued, the newest that touches is merged into (rule merge-6).
    pub scans_lists: bool,
    /// There is no scheduler: what a task held back goes to the driver.
    pub issues_directly: bool,
    /// The newest of it goes first, and no record tells that a plug ends.
    pub issues_newest_first: bool,
    /// It matters when the queue was run, and messages may tell.
    pub heeds_runs: bool,
    /// No request that reads or writes grows beyond this.
    pub largest: Sectors,
    /// And beyond this only if its memory is contiguous.
    pub usual: Sectors,
}

/// Puts records together.
struct Historian<'a> {
    era: Era,
    known: &'a Tasks,
    /// The priority of each insertion, where that was recorded beside.
    priorities: std::slice::Iter<'a, Ioprio>,
    history: History,
    tasks: BTreeMap<u32, Task>,
    /// Requests that were issued so far.
    issues: u32,
    /// When tasks were last seen.
    last_seen: &'a BTreeMap<u32, Instant>,
    /// What the disk did, where that is known.
    disk: DiskLog,
    /// The request that was completed last.
    completed: Option<Traced>,
    live: BTreeSet<Traced>,
    /// Insertions that only became known afterwards, and before which step they belong.
    late: Vec<(usize, Step)>,
    /// How many records there were.
    records: u64,
    /// The queued request that was merged into last, if it is still queued.
    last_merge: Option<Traced>,
    /// Merges into one of several.
    doubts: Vec<Doubt>,
    /// Which candidate is thought to be right, by the number of the record, if not the first.
    second_thoughts: &'a BTreeMap<u64, usize>,
    /// The record of a merge that was into another request than was thought, and into which of
    /// those that it touched.
    wrong: Option<(u64, usize)>,
    /// What was merged just now.
    just_merged: Option<Merged>,
    /// When flushes without data were allocated that are not done.
    flushes: VecDeque<Instant>,
    /// The first moment at which nothing was under way.
    first_quiet: Option<Instant>,
    /// Requests were met before it that had been inserted before the recording began.
    begins_amid: bool,
    /// If the recording lacks events: which issues and completions fit.
    pairs: Option<&'a Pairs>,
    /// What it lacks.
    gaps: Gaps,
    /// The place of the record among all.
    place: usize,
    /// All records.
    all: &'a [Record],
}

impl History {
    /// It is a part behind others.
    pub fn is_continued(&self) -> bool {
        self.since > Instant::ZERO
    }

    /// Whether a task began to insert what it held between two moments.
    pub fn has_unplugged(&self, task: ContextId, since: Instant, until: Instant) -> bool {
        self.unplugs.range((task, since)..(task, until)).next().is_some()
    }

    /// What happened at a moment counts once, or was counted before.
    fn counts(&self, at: Instant) -> u64 {
        u64::from(at >= self.since)
    }

    /// Reads records, with what is known of tasks, and the priorities of insertions where they
    /// are; what was before `since` is not new.
    pub fn read(era: Era, recording: &Recording, since: Instant) -> History {
        let Recording { records, tasks: known, priorities, losses, .. } = recording;
        let pairs = Some(Pairs::of(records));
        let mut pairs = pairs.filter(|pairs| losses.leave_gaps() || pairs.are_torn());
        pairs.iter_mut().for_each(|pairs| pairs.part(records));
        let pairs = pairs.as_ref();
        let first = records.first().map_or(Instant::ZERO, |record| record.time);
        let disk = DiskLog::of(&recording.disk, first);
        let mut second_thoughts = BTreeMap::new();
        let mut thoughts = 0;
        let arrivals = records.iter().filter(|record| record.action == Action::Queue);
        let last_seen: BTreeMap<u32, Instant> =
            arrivals.map(|record| (record.pid, record.time)).collect();
        loop {
            let may_err = thoughts < MOST_SECOND_THOUGHTS && pairs.is_none();
            thoughts += 1;
            let mut historian =
                Historian::new(era, known, priorities, &second_thoughts, &last_seen);
            historian.pairs = pairs;
            historian.disk = disk.clone();
            historian.all = records;
            historian.history.since = since;
            historian.history.cgroups = stated_cgroups(recording);
            let mut records = records.iter().enumerate();
            let wrong = loop {
                let Some((place, record)) = records.next() else { return historian.finish() };
                historian.place = place;
                historian.take(record);
                if let Some(wrong) = historian.wrong.take().filter(|_| may_err) {
                    break wrong;
                }
            };
            second_thoughts.insert(wrong.0, wrong.1);
        }
    }
}

/// So often at most a history is read again (assumed: of what needs more, little would be right).
const MOST_SECOND_THOUGHTS: usize = 1_000;

impl<'a> Historian<'a> {
    fn new(
        era: Era,
        known: &'a Tasks,
        priorities: &'a [Ioprio],
        second_thoughts: &'a BTreeMap<u64, usize>,
        last_seen: &'a BTreeMap<u32, Instant>,
    ) -> Historian<'a> {
        Historian {
            era,
            known,
            priorities: priorities.iter(),
            history: History::default(),
            tasks: BTreeMap::new(),
            issues: 0,
            last_seen,
            disk: DiskLog::default(),
            completed: None,
            live: BTreeSet::new(),
            late: Vec::new(),
            records: 0,
            last_merge: None,
            doubts: Vec::new(),
            second_thoughts,
            wrong: None,
            just_merged: None,
            flushes: VecDeque::new(),
            first_quiet: None,
            begins_amid: false,
            pairs: None,
            gaps: Gaps::default(),
            place: 0,
            all: &[],
        }
    }

    /// Takes the next record.
    fn take(&mut self, record: &Record) {
        if record.categories.contains(Categories::PC) {
            return;
        }
        if let Payload::Message(text) = &record.payload {
            match RunEvent::of(text) {
                Some(event) => self.tells_of_run(record, event),
                None => self.said(record, text),
            }
            return;
        }
        let has_issued =
            std::mem::replace(&mut self.task(record).issues, record.action == Action::Issue);
        if has_issued && self.tells_of_list(record) {
            return;
        }
        self.records += 1;
        let joins = matches!(record.action, Action::BackMerge | Action::Complete);
        self.just_merged = self.just_merged.filter(|_| joins);
        match record.action {
            Action::Queue => self.queued(record),
            Action::Split => self.split(record),
            Action::GetRequest => self.allocated(record),
            Action::BackMerge => self.merged(record, Merge::Back),
            Action::FrontMerge => self.merged(record, Merge::Front),
            Action::Plug => self.plugged(record),
            Action::Unplug => self.unplugged(record, false),
            Action::UnplugTimer => self.unplugged(record, true),
            Action::Insert => self.inserted(record),
            Action::Issue => self.issued(record),
            Action::Requeue => self.requeued(record),
            Action::Complete => {
                self.interrupted(record);
                self.completed(record);
            }
            _ => {}
        }
        self.ends_first_part(record);
    }

    /// What came of it.
    fn finish(mut self) -> History {
        self.late.sort_by_key(|(before, step)| (*before, step.rq));
        let mut steps = Vec::with_capacity(self.history.steps.len() + self.late.len());
        let mut late = std::mem::take(&mut self.late).into_iter().peekable();
        for (index, step) in std::mem::take(&mut self.history.steps).into_iter().enumerate() {
            while let Some((_, step)) = late.next_if(|(before, _)| *before <= index) {
                steps.push(step);
            }
            steps.push(step);
        }
        // Of a part that begins amid requests, nothing new is left out.
        let is_first = !self.history.is_continued();
        let quiet = self.first_quiet.filter(|quiet| is_first || *quiet < self.history.since);
        if let (true, Some(quiet)) = (self.begins_amid, quiet) {
            let start = steps.first().map_or(quiet, |step| step.at);
            let left_out = if is_first { quiet.saturating_since(start) } else { Duration::ZERO };
            self.history.left_out = left_out;
            let is_before = |step: &&Step| step.at <= quiet;
            let left_out = steps.iter().filter(is_before);
            let issues = left_out.filter(|step| matches!(step.what, What::Issue)).count() as u32;
            self.history.issued_before = issues;
            self.history.messages.retain(|said| said.issues >= issues);
            steps.retain(|step| step.at > quiet);
            self.history.calls.retain(|call| call.at > quiet);
        }
        if self.era.scans_lists {
            // Tokens that come back decide; whom else it concerns, nobody has looked.
            steps::put_behind_choices(&mut steps);
        }
        self.history.steps = steps;
        self.history.clock_error = CLOCK_ERROR;
        if self.mends() {
            self.history.is_torn = true;
            self.mend();
        }
        self.history
    }

    /// A message that is none of the scheduler.
    fn tells_of_run(&mut self, record: &Record, event: RunEvent) {
        if !self.era.heeds_runs || self.mends() {
            return;
        }
        self.history.tells_runs = true;
        if event == RunEvent::Sleeps {
            self.task(record).sleeps = true;
        }
        self.step(record, 0, What::Run(event));
    }

    /// A message of the scheduler. CFQ tells of a completed write whether more was expected after
    /// it, which events do not.
    fn said(&mut self, record: &Record, text: &[u8]) {
        if self.mends() {
            self.note_activation(record, text);
        }
        let text = String::from_utf8_lossy(text).into_owned();
        if let Some(rq) = self.completed.filter(|_| text.ends_with("complete rqnoidle 0")) {
            let life = &mut self.history.requests[rq];
            if life.bio.op != Op::Read && life.bio.flags.intersects(Flags::SYNC) {
                life.bio.flags = life.bio.flags.with(Flags::IDLE);
            }
        }
        let gone = text.strip_prefix("cfq").and_then(|text| text.strip_suffix(" put_queue"));
        // BFQ says it of each queue of a context that exits, which may be shared.
        let exits = text.strip_prefix("bfq").filter(|text| text.contains(" exit_bfqq: "));
        let gone = gone.or(exits);
        if exits.is_some() && self.last_seen.contains_key(&record.pid) {
            // It is the task itself that says so.
            let owner = self.known.shares.get(&record.pid).copied().unwrap_or(record.pid);
            let task = self.context(owner);
            self.history.steps.push(Step { at: record.time, task, rq: 0, what: What::Exit });
        } else if let Some(pid) = gone.and_then(|it| it.split(['S', 'A']).next()?.parse().ok()) {
            self.may_have_exited(record, pid);
        }
        self.note_asked(record, &text);
        self.history.messages.push(Said { at: record.time, issues: self.issues, text });
    }

    /// A message may tell that the scheduler was asked, or what it answered.
    fn note_asked(&mut self, record: &Record, text: &str) {
        if Answer::is_asked(text) {
            let what = What::Ask(Answer::Refuses);
            self.history.says_asked = true;
            self.history.steps.push(Step { at: record.time, task: ContextId(0), rq: 0, what });
        } else if let Some(answer) = Answer::of(text) {
            // Where messages take time, it is said later.
            let mut asked = self.history.steps.iter_mut().rev();
            if let Some(step) = asked.find(|step| matches!(step.what, What::Ask(_))) {
                step.what = What::Ask(answer);
            }
        }
    }

    /// The queue of a task is gone; if nobody of its io_context does anything afterwards, they have
    /// exited.
    fn may_have_exited(&mut self, record: &Record, pid: u32) {
        let was_seen = self.last_seen.contains_key(&pid);
        let owner = self.known.shares.get(&pid).copied().unwrap_or(pid);
        let sharing = self.known.shares.iter().filter(|(_, other)| **other == owner);
        let all_over = sharing
            .map(|(sharer, _)| sharer)
            .chain([&owner])
            .all(|task| self.last_seen.get(task) < Some(&record.time));
        if was_seen && all_over {
            let task = self.context(owner);
            let at = self.history.messages.iter().rev().map(|said| said.at);
            // All that is said at an exit is said at once.
            let at = at.take_while(|at| *at + EXIT >= record.time).last().unwrap_or(record.time);
            let at = self.history.steps.last().map_or(at, |last| at.max(last.at));
            self.history.steps.push(Step { at, task, rq: 0, what: What::Exit });
        }
    }

    fn queued(&mut self, record: &Record) {
        if self.mends() {
            self.note_place(record);
        }
        let (op, sectors) = (op_of(record), sectors_of(record));
        let bio = self.bio(record);
        let call = self.history.calls.len();
        let what = CallKind::Submit { bio, plugged: false };
        self.history.calls.push(Call { at: record.time, origin: bio.origin, what });
        let task = self.task(record);
        task.bio = Some((op, record.sector, sectors));
        (task.rest, task.is_rest) = (None, false);
        task.call = Some(call);
        task.split = None;
        task.runs = false;
        if task.plug {
            self.mark_plugged(record.pid);
        } else {
            task.held = 0;
        }
        self.is_awake(record);
    }

    fn allocated(&mut self, record: &Record) {
        if record.bytes == 0 && !record.categories.contains(Categories::FLUSH) {
            // A command of the driver's own, allocated without a bio.
            return;
        }
        if record.bytes == 0 {
            self.flushes.push_back(record.time);
        }
        let mut bio = self.bio(record);
        let can_be_held = self.era.shape == Shape::Single || !bio.needs_flush_machinery();
        let slept = self.has_slept(record);
        let task = self.task(record);
        if task.split.take() == Some(record.sector) {
            bio.flags = bio.flags.with(Flags::NOMERGE);
        }
        task.held += u32::from(can_be_held);
        let is_plugged = task.plug;
        let rq = self.history.requests.len();
        if let Some((at, before)) = slept {
            let task = bio.origin.context;
            self.late.push((before, Step { at, task, rq, what: What::Starve }));
            self.step(record, rq, What::Recover);
        }
        let rq = self.adopt(record, bio, State::Allocated);
        self.history.requests[rq].remembers = is_plugged;
        if self.mends() {
            self.forget_place(record);
        }
        if self.minds_unheld() {
            self.history.requests[rq].flushed = self.unheld(record);
        }
        self.takes_up_rest(record);
    }

    /// A request that is met for the first time.
    fn adopt(&mut self, record: &Record, bio: Bio, state: State) -> Traced {
        let rq = self.enter(bio, state);
        self.step(record, rq, What::Allocate);
        rq
    }

    fn enter(&mut self, bio: Bio, state: State) -> Traced {
        let rq = self.history.requests.len();
        let bypasses = self.era.shape == Shape::Single && bio.needs_flush_machinery();
        self.history.requests.push(Life { bypasses, state, ..Life::of(bio) });
        self.live.insert(rq);
        rq
    }

    fn plugged(&mut self, record: &Record) {
        self.task(record).plug = true;
        self.mark_plugged(record.pid);
        let Some(rq) = self.newest_of(record) else { return };
        self.history.requests[rq].remembers = true;
        if self.minds_unheld() {
            self.history.requests[rq].flushed = None;
        }
    }

    /// Whether it matters that a task inserted a request at once, which may have left no record:
    /// it may have been joined to another one.
    fn minds_unheld(&self) -> bool {
        let is_silent = self.era.shape == Shape::Multi && !self.era.joins_are_traced;
        self.mends() || is_silent
    }

    /// What a task allocated just now.
    fn newest_of(&mut self, record: &Record) -> Option<Traced> {
        let context = self.context(record.pid);
        self.find(|life| life.state == State::Allocated && life.bio.origin.context == context)
    }

    fn mark_plugged(&mut self, pid: u32) {
        let call = self.tasks.get(&pid).and_then(|task| task.call);
        let call = call.map(|call| &mut self.history.calls[call].what);
        if let Some(CallKind::Submit { plugged, .. }) = call {
            *plugged = true;
        }
    }

    /// A plug that overflows is flushed while the task holds a request that is not counted: its
    /// plug goes on.
    fn unplugged(&mut self, record: &Record, blocks: bool) {
        let origin = self.bio(record).origin;
        let counted = match record.payload {
            Payload::Unplug(count) => u32::try_from(count).unwrap_or(u32::MAX),
            _ => 0,
        };
        let tells_runs = self.history.tells_runs;
        let task = self.task(record);
        // It is about to sleep for a tag, although one may be free before it does.
        task.sleeps |= tells_runs && blocks && task.bio.is_some();
        let was_plugged = std::mem::take(&mut task.plug);
        task.runs = !blocks;
        let overflows = task.held > counted;
        task.held = task.held.saturating_sub(counted);
        if was_plugged && !overflows {
            let what = CallKind::Flush { blocks };
            self.history.calls.push(Call { at: record.time, origin, what });
        }
        self.history.unplugs.insert((origin.context, record.time));
        let mark = (record.time, self.history.steps.len());
        let is_held = |rq: &Traced| {
            let life = &self.history.requests[*rq];
            life.state == State::Allocated && life.bio.origin.context == origin.context
        };
        let held = self.live.iter().copied().filter(is_held);
        // What makes it overflow comes into the plug after the flush.
        let most = if overflows { counted as usize } else { usize::MAX };
        let held: Vec<Traced> = held.take(most).collect();
        for rq in &held {
            self.history.requests[*rq].flushed = Some(mark);
            if !blocks {
                self.offer(record, *rq, held.len() as u32);
            }
        }
    }

    /// A record of an end of a plug that follows an issue of the same task ends no plug. It says
    /// that a list could not be issued to its end, and how many of it were. (Observed on 6.12.117
    /// and 7.3.4, with tasks that held nothing.)
    fn tells_of_list(&self, record: &Record) -> bool {
        self.era.shape == Shape::Multi && !self.mends() && record.action == Action::Unplug
    }

    /// A request goes to the driver, if there is no scheduler.
    fn offer(&mut self, record: &Record, rq: Traced, of: u32) {
        let life = &mut self.history.requests[rq];
        if self.era.issues_directly && !life.bio.needs_flush_machinery() {
            life.state = State::Offered;
            self.step(record, rq, What::Offer { of });
        }
    }

    fn inserted(&mut self, record: &Record) {
        let ioprio = self.priorities.next().copied();
        let matches = |life: &Life| is_same(life, record);
        if self.find(|life| life.state == State::Requeued && matches(life)).is_some() {
            return;
        }
        let context = self.context(record.pid);
        let waits =
            |life: &Life| matches!(life.state, State::Allocated | State::Offered) && matches(life);
        let own = self.find(|life| life.bio.origin.context == context && waits(life));
        let any = || self.find(waits);
        let rq = match own.or_else(any) {
            Some(rq) => rq,
            None => {
                let bio = self.bio(record);
                self.adopt(record, bio, State::Allocated)
            }
        };
        let life = &mut self.history.requests[rq];
        life.state = State::Inserted;
        life.ended = self.records;
        life.bio.ioprio = ioprio.unwrap_or(life.bio.ioprio);
        self.last_merge.get_or_insert(rq);
        let joins = self.era.shape == Shape::Multi || self.task(record).plug;
        let runs = self.era.shape == Shape::Single || self.task(record).runs;
        self.step(record, rq, What::Insert { joins, runs });
    }

    fn unmatched(&mut self, record: &Record) {
        self.history.unmatched += self.history.counts(record.time);
        if self.mends() {
            return;
        }
        self.begins_amid |= self.first_quiet.is_none();
    }

    /// The newest live request of a kind.
    fn find(&self, is: impl Fn(&Life) -> bool) -> Option<Traced> {
        self.live.iter().rev().copied().find(|rq| is(&self.history.requests[*rq]))
    }

    /// The oldest live request of a kind.
    fn find_oldest(&self, is: impl Fn(&Life) -> bool) -> Option<Traced> {
        self.live.iter().copied().find(|rq| is(&self.history.requests[*rq]))
    }

    fn step(&mut self, record: &Record, rq: Traced, what: What) {
        let task = self.context(record.pid);
        self.issues += u32::from(matches!(what, What::Issue));
        self.history.steps.push(Step { at: record.time, task, rq, what });
    }

    fn task(&mut self, record: &Record) -> &mut Task {
        self.tasks.entry(record.pid).or_default()
    }

    /// Tasks get small numbers: contexts are kept in a list.
    fn context(&mut self, pid: u32) -> ContextId {
        let next = ContextId(FIRST_TASK + self.history.contexts.len() as u32);
        *self.history.contexts.entry(pid).or_insert(next)
    }

    fn bio(&mut self, record: &Record) -> Bio {
        let context = self.context(record.pid);
        let last = self.history.cgroups.values().max();
        let next = CgroupId(last.map_or(0, |last| last.0) + 1);
        let cgroup = match record.cgroup {
            Some(number) => *self.history.cgroups.entry(number).or_insert(next),
            None => {
                let known = self.known.cgroup.get(&record.pid).copied().unwrap_or(0);
                CgroupId(known as u32)
            }
        };
        let owner = self.known.shares.get(&record.pid).map(|owner| self.context(*owner));
        let io_context = IoContextId(owner.unwrap_or(context).0);
        let cpu = u16::try_from(record.cpu).ok().filter(|cpu| *cpu < u16::MAX).unwrap_or(0);
        Bio {
            op: op_of(record),
            flags: flags_of(record),
            sector: record.sector,
            sectors: sectors_of(record),
            ioprio: self.known.ioprio.get(&record.pid).copied().unwrap_or_default(),
            origin: Origin { context, io_context, cgroup, cpu },
            token: 0,
        }
    }
}

/// Groups of which the manifest says the number, which are those of the same place in it.
fn stated_cgroups(recording: &Recording) -> BTreeMap<u64, CgroupId> {
    let groups = recording.manifest.cgroups.iter().enumerate();
    groups.filter_map(|(place, group)| Some((group.id?, CgroupId(place as u32)))).collect()
}

fn is_queued(life: &Life) -> bool {
    life.state == State::Inserted && !life.bypasses
}

fn is_same(life: &Life, record: &Record) -> bool {
    life.bio.op == op_of(record)
        && (life.sector, life.sectors) == (record.sector, sectors_of(record))
}

/// What a record's request does.
pub fn op_of(record: &Record) -> Op {
    if record.categories.contains(Categories::DISCARD) {
        Op::Discard
    } else if record.categories.contains(Categories::WRITE) || record.bytes == 0 {
        // A pure flush carries the bit of a read (rule trace-format-4).
        Op::Write
    } else {
        Op::Read
    }
}

/// A record's length.
pub fn sectors_of(record: &Record) -> Sectors {
    Sectors(record.bytes / Sector::SIZE as u32)
}

fn flags_of(record: &Record) -> Flags {
    let known = [
        (Categories::SYNC, Flags::SYNC),
        (Categories::META, Flags::META),
        (Categories::AHEAD, Flags::RAHEAD),
        (Categories::FLUSH, Flags::PREFLUSH),
        (Categories::FUA, Flags::FUA),
    ];
    let carried = known.iter().filter(|(category, _)| record.categories.contains(*category));
    let flags = carried.fold(Flags::NONE, |all, (_, flag)| all.with(*flag));
    // Others wait for metadata that is read (rule flags-1); events do not tell.
    let has_prio = flags.intersects(Flags::META) && op_of(record) == Op::Read;
    if has_prio { flags.with(Flags::PRIO) } else { flags }
}
