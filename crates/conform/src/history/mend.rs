//! A history of a recording that lacks events: what can be known of them is given back.
//!
//! Something is told of a request as long as any of its events is there. One that was issued was
//! inserted; one that was completed was issued. When it happened has bounds: a task that waits for
//! each of its requests asks for the next one only when the last is done; a place is used again
//! when it was done with; CFQ says how many requests the driver has. Within the bounds a request
//! takes as long as others do. The decisions about requests of which anything was given back are
//! not judged. What was queued and of which nothing tells that it was ever issued is taken out.

use super::driven::InDriver;
use super::pairs::owner;
use super::{Historian, History, Life, Moment, State, Step, Traced, What, op_of, sectors_of};
use crate::history::CallKind;
use base::{Duration, Instant, Sector};
use block::{ContextId, Op};
use std::collections::{BTreeMap, BTreeSet};
use trace::blktrace::{Action, Record};

/// What was given back, and what could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Completions, because the task asked for its next request.
    pub by_next_request: u64,
    /// Of all completions, those that were moved because the scheduler said how many requests the
    /// driver has.
    pub by_activations: u64,
    /// Completions, after the time that others take.
    pub by_usual_time: u64,
    /// Issues.
    pub issues: u64,
    /// Insertions.
    pub insertions: u64,
    /// Requests that were taken out.
    pub taken_out: u64,
}

impl Given {
    /// Completions.
    pub fn completions(&self) -> u64 {
        self.by_next_request + self.by_usual_time
    }

    /// All events.
    pub fn total(&self) -> u64 {
        self.completions() + self.issues + self.insertions
    }
}

/// What a history lacks.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    /// Requests that were issued and have no completion.
    endless: Vec<Traced>,
    /// Requests that were completed and have no issue.
    unissued: Vec<Traced>,
    /// Requests of which there is a completion only.
    unseen: Vec<Traced>,
    /// Requests that were queued for so long that they must have been issued.
    stale: Vec<Traced>,
    /// Requests of which nothing was seen before their issue.
    unasked: Vec<Traced>,
    /// Who asked last for what ends at a place.
    behind: BTreeMap<(Op, Sector), u32>,
    /// Who asked last for what begins there, and when.
    asked: BTreeMap<(Op, Sector), Asked>,
    /// Where the scheduler said that it gives the driver a request, and of which task.
    activated: Option<(u32, u32)>,
}

/// A bio that somebody asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    pid: u32,
    /// When, and before which step, unless the task held it back.
    at: Option<Moment>,
}

/// So many live requests are looked through; older ones are put aside (assumed: more than a
/// kernel allocates).
const MOST_LIVE: usize = 1_500;
/// So many records may be between a completion and the next request of the task (assumed: what is
/// said of the completion).
const MOST_BETWEEN: usize = 32;
/// So many steps are looked back at (assumed: more than pass between two of a task).
const LOOK_BACK: usize = 256;
/// So many places are remembered.
const MOST_PLACES: usize = 4_096;

impl Historian<'_> {
    pub(super) fn mends(&self) -> bool {
        self.pairs.is_some()
    }

    /// The scheduler says whose request goes to the driver.
    pub(super) fn note_activation(&mut self, record: &Record, text: &[u8]) {
        if let Some(pid) = owner(text, "activate rq,") {
            self.gaps.activated = Some((record.cpu, pid));
        }
    }

    /// Remembers who has asked for what ends there.
    pub(super) fn note_place(&mut self, record: &Record) {
        if self.gaps.behind.len() > MOST_PLACES {
            self.gaps.behind.clear();
            self.gaps.asked.clear();
        }
        let (op, end) = (op_of(record), record.sector + sectors_of(record));
        self.gaps.behind.insert((op, end), record.pid);
        let asked = Asked { pid: record.pid, at: self.unheld(record) };
        self.gaps.asked.insert((op, record.sector), asked);
    }

    /// It is known what became of the bio that begins there.
    pub(super) fn forget_place(&mut self, record: &Record) {
        self.gaps.asked.remove(&(op_of(record), record.sector));
    }

    /// This moment, unless the task of a record holds back what it asks for.
    pub(super) fn unheld(&mut self, record: &Record) -> Option<Moment> {
        let now = (record.time, self.history.steps.len());
        Some(now).filter(|_| !self.task(record).plug)
    }

    /// Nobody knows the request that is issued: it is one that was merged into, or a new one.
    pub(super) fn issue_unseen(&mut self, record: &Record) -> Traced {
        let end = record.sector + sectors_of(record);
        let is_part = |life: &Life| {
            matches!(life.state, State::Inserted | State::Allocated)
                && life.bio.op == op_of(record)
                && life.sector >= record.sector
                && life.sector + life.sectors <= end
        };
        let live = self.live.iter().copied();
        let parts: Vec<Traced> = live.filter(|rq| is_part(&self.history.requests[*rq])).collect();
        let Some((first, others)) = parts.split_first() else { return self.issue_new(record) };
        for part in others {
            self.insert_unseen(record, *part);
            self.history.requests[*part].given = true;
            self.step(record, *part, What::Issue);
            self.step(record, *part, What::Complete);
            self.history.requests[*part].state = State::Gone;
            self.live.remove(part);
        }
        let life = &mut self.history.requests[*first];
        (life.sector, life.sectors) = (record.sector, sectors_of(record));
        life.given = true;
        *first
    }

    /// A request of which nothing was seen before its issue, unless its bio was.
    fn issue_new(&mut self, record: &Record) -> Traced {
        let asked = self.gaps.asked.remove(&(op_of(record), record.sector));
        let owned = match asked {
            Some(asked) => Record { pid: asked.pid, ..record.clone() },
            None => self.owned(record),
        };
        let bio = self.bio(&owned);
        let Some(moment) = asked.and_then(|it| it.at).filter(|_| !self.era.issues_directly) else {
            let rq = self.adopt(record, bio, State::Allocated);
            self.gaps.unasked.push(rq);
            return rq;
        };
        let rq = self.enter(bio, State::Inserted);
        self.history.requests[rq].given = true;
        self.history.given.insertions += self.history.counts(record.time);
        self.step_before(moment, rq, What::Allocate);
        self.step_before(moment, rq, What::Insert { joins: false, runs: true });
        rq
    }

    /// Something that happened before, as became known afterwards.
    fn step_before(&mut self, (at, before): Moment, rq: Traced, what: What) {
        let task = self.history.requests[rq].bio.origin.context;
        self.late.push((before, Step { at, task, rq, what }));
    }

    /// A request that was issued was inserted.
    pub(super) fn insert_unseen(&mut self, record: &Record, rq: Traced) {
        let life = &mut self.history.requests[rq];
        let is_queued = life.state != State::Allocated || life.bypasses;
        if is_queued || self.era.issues_directly {
            return;
        }
        life.state = State::Inserted;
        life.given = true;
        let since = life.flushed;
        self.history.given.insertions += self.history.counts(record.time);
        let what = What::Insert { joins: false, runs: true };
        match since {
            Some(moment) => self.step_before(moment, rq, what),
            None => self.step(record, rq, what),
        }
    }

    /// A request was issued; if its completion is missing, nothing more will be heard of it.
    pub(super) fn note_end(&mut self, rq: Traced) {
        if self.pairs.is_some_and(|pairs| pairs.endless.contains(&self.place)) {
            self.history.requests[rq].state = State::Gone;
            self.live.remove(&rq);
            self.gaps.endless.push(rq);
        }
        while self.live.len() > MOST_LIVE {
            let oldest = self.live.pop_first().expect("there are many");
            self.gaps.stale.push(oldest);
        }
    }

    /// What was never issued is completed.
    pub(super) fn complete_unseen(&mut self, record: &Record) {
        let op = op_of(record);
        let is_it = |life: &Life| {
            let waits = matches!(
                life.state,
                State::Inserted | State::Allocated | State::Offered | State::Requeued
            );
            let begins = waits && life.sector == record.sector;
            let holds = life.sector <= record.sector
                && record.sector + sectors_of(record) <= life.sector + life.sectors;
            life.bio.op == op && (begins || life.state == State::Issued && holds)
        };
        let Some(rq) = self.find_oldest(is_it) else {
            let owned = self.owned(record);
            let bio = self.bio(&owned);
            let rq = self.enter(bio, State::Gone);
            self.live.remove(&rq);
            self.history.requests[rq].given = true;
            self.gaps.unseen.push(rq);
            self.step(record, rq, What::Complete);
            return;
        };
        if self.history.requests[rq].state != State::Issued {
            self.insert_unseen(record, rq);
            self.history.requests[rq].given = true;
            self.gaps.unissued.push(rq);
        }
        self.history.requests[rq].state = State::Gone;
        self.live.remove(&rq);
        self.completed = Some(rq);
        self.step(record, rq, What::Complete);
    }

    /// A record of a request of which it is not known who asked for it: whoever the scheduler
    /// named, or asked for what is before it.
    fn owned(&mut self, record: &Record) -> Record {
        let before = self.gaps.behind.get(&(op_of(record), record.sector)).copied();
        let named = match record.action {
            Action::Issue => {
                let activated = self.gaps.activated.take().filter(|it| it.0 == record.cpu);
                let ended = || self.pairs?.named(self.all, self.place);
                activated.map(|it| it.1).or_else(ended).or_else(|| self.waiter(record))
            }
            _ => self.pairs.and_then(|pairs| pairs.beginless.get(&self.place).copied()?),
        };
        Record { pid: named.or(before).unwrap_or(record.pid), ..record.clone() }
    }

    /// Who waits for the request that is issued: a task that has nothing else under way. That is
    /// the one that asks for more as soon as it is done; else the one that runs, if it ever asks;
    /// else the one whose last request was done last.
    fn waiter(&self, record: &Record) -> Option<u32> {
        let context = |pid: u32| self.history.contexts.get(&pid).copied();
        let under_way = |context: ContextId| {
            let is_its = |rq: &Traced| self.history.requests[*rq].bio.origin.context == context;
            self.live.iter().any(is_its)
        };
        // Whoever asks for more before anything can have been done does not wait for this.
        let after = self.all[self.place + 1..].iter().take(MOST_BETWEEN);
        let meanwhile =
            after.take_while(|it| !matches!(it.action, Action::Complete | Action::Issue));
        let asks = |it: &&Record| it.action == Action::Queue;
        let hurried: BTreeSet<u32> = meanwhile.filter(asks).map(|it| it.pid).collect();
        let waits = |pid: &u32| {
            context(*pid).is_some_and(|context| !under_way(context)) && !hurried.contains(pid)
        };
        let completion = self.pairs.and_then(|pairs| pairs.completion(self.place));
        let next = completion.and_then(|completion| {
            let mut after = self.all[completion..].iter().take(MOST_BETWEEN);
            after.find(|record| record.action == Action::Queue).map(|record| record.pid)
        });
        let runs = Some(record.pid).filter(|pid| self.last_seen.contains_key(pid));
        next.filter(waits).or_else(|| runs.filter(waits)).or_else(|| {
            let before = self.history.steps.iter().rev().take(LOOK_BACK);
            let done = before.filter(|step| matches!(step.what, What::Complete));
            let tasks = done.map(|step| self.history.requests[step.rq].bio.origin.context);
            let contexts = &self.history.contexts;
            let pid_of = |task| contexts.iter().find(|it| *it.1 == task).map(|it| *it.0);
            tasks.filter(|task| !under_way(*task)).find_map(|task| pid_of(task).filter(waits))
        })
    }

    /// Gives back what can be.
    pub(super) fn mend(&mut self) {
        let mut gaps = std::mem::take(&mut self.gaps);
        let is_queued = |rq: &&Traced| {
            matches!(self.history.requests[**rq].state, State::Inserted | State::Allocated)
        };
        gaps.stale.extend(self.live.iter().filter(is_queued).copied());
        let has_driver = |rq: &&Traced| {
            matches!(self.history.requests[**rq].state, State::Issued | State::Requeued)
        };
        gaps.endless.extend(self.live.iter().filter(has_driver).copied());
        Mender::new(&mut self.history).mend(&gaps);
    }
}

/// The times of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    inserted: Option<Instant>,
    issued: Option<Instant>,
    done: Option<Instant>,
}

/// A completion that was given back.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub rq: Traced,
    pub issued: Instant,
    pub at: Instant,
    /// The task asked for its next request then.
    pub latest: Option<Instant>,
}

struct Mender<'a> {
    history: &'a mut History,
    times: Vec<Times>,
    /// When each task asked for something.
    calls: BTreeMap<ContextId, Vec<Instant>>,
    /// Tasks that are known to ask for more while they wait.
    hurried: BTreeSet<ContextId>,
    /// How long each task takes from the end of a request to its next, and how long most do.
    thinks: BTreeMap<ContextId, Duration>,
    think: Duration,
    /// How long requests take, reads and others.
    usual: [Duration; 2],
    /// How long they wait before.
    waits: Duration,
    end: Instant,
    more: Vec<Step>,
    /// What was asked for earlier than it seems: its arrival is among what was given back.
    moved: BTreeSet<Traced>,
}

/// A task asks for its next request so soon (assumed: a system call).
const SOON: Duration = Duration::from_micros(10);
/// So many times the usual: others in between are missing (assumed).
const LATE: u64 = 4;
/// So long a request takes if no one is known that did (assumed).
const SOME_TIME: Duration = Duration::from_micros(100);

impl<'a> Mender<'a> {
    fn new(history: &'a mut History) -> Mender<'a> {
        let mut times = vec![Times::default(); history.requests.len()];
        for step in &history.steps {
            let times = &mut times[step.rq];
            match step.what {
                What::Insert { .. } | What::Offer { .. } => times.inserted = Some(step.at),
                What::Issue => times.issued = Some(step.at),
                What::Complete => times.done = Some(step.at),
                _ => {}
            }
        }
        let mut calls: BTreeMap<ContextId, Vec<Instant>> = BTreeMap::new();
        for call in &history.calls {
            if let CallKind::Submit { .. } = call.what {
                calls.entry(call.origin.context).or_default().push(call.at);
            }
        }
        let end = history.steps.last().map_or(Instant::ZERO, |step| step.at);
        let usual = [SOME_TIME; 2];
        let mut mender = Mender {
            history,
            times,
            calls,
            hurried: BTreeSet::new(),
            thinks: BTreeMap::new(),
            think: SOON,
            usual,
            waits: SOON,
            end,
            more: Vec::new(),
            moved: BTreeSet::new(),
        };
        mender.learn();
        mender
    }

    /// What requests of which everything is known tell of the others.
    fn learn(&mut self) {
        let mut took: [Vec<Duration>; 2] = Default::default();
        let mut waited = Vec::new();
        let mut asked: BTreeMap<ContextId, [u32; 2]> = BTreeMap::new();
        let mut thought: BTreeMap<ContextId, Vec<Duration>> = BTreeMap::new();
        for (life, times) in self.history.requests.iter().zip(&self.times) {
            let (Some(issued), Some(done), false) = (times.issued, times.done, life.given) else {
                continue;
            };
            took[usize::from(life.bio.op != Op::Read)].push(done.saturating_since(issued));
            waited.extend(times.inserted.map(|inserted| issued.saturating_since(inserted)));
            let task = life.bio.origin.context;
            let Some(next) = next_after(&self.calls, task, issued) else { continue };
            asked.entry(task).or_default()[usize::from(next < done)] += 1;
            if next >= done {
                thought.entry(task).or_default().push(next.since(done));
            }
        }
        let median = |mut all: Vec<Duration>| {
            all.sort_unstable();
            all.get(all.len() / 2).copied()
        };
        let thinks = thought.into_iter().filter_map(|(task, all)| Some((task, median(all)?)));
        self.thinks = thinks.collect();
        self.think = median(self.thinks.values().copied().collect()).unwrap_or(SOON);
        self.waits = median(waited).unwrap_or(self.waits);
        let until_next = median(self.until_next());
        for (usual, took) in self.usual.iter_mut().zip(took) {
            *usual = median(took).or(until_next).unwrap_or(*usual);
        }
        let hurries = |[waited, hurried]: [u32; 2]| hurried * 20 > waited;
        self.hurried = asked.into_iter().filter(|it| hurries(it.1)).map(|it| it.0).collect();
    }

    /// How long it is from issues without a completion to the next request of the task: of one that
    /// waits that is how long they take.
    fn until_next(&self) -> Vec<Duration> {
        let lives = self.history.requests.iter().zip(&self.times);
        let endless = lives.filter(|(_, times)| times.done.is_none());
        let until = endless.filter_map(|(life, times)| {
            let issued = times.issued?;
            let next = next_after(&self.calls, life.bio.origin.context, issued)?;
            Some(next.since(issued))
        });
        until.collect()
    }

    fn usual(&self, rq: Traced) -> Duration {
        self.usual[usize::from(self.history.requests[rq].bio.op != Op::Read)]
    }

    /// When the task of a request asked for the next one, if it waits for each.
    fn next_request(&self, rq: Traced, since: Instant) -> Option<Instant> {
        let life = &self.history.requests[rq];
        let (task, is_waited_for) = (life.bio.origin.context, life.bio.is_sync());
        let waits = is_waited_for && !self.hurried.contains(&task);
        waits.then(|| next_after(&self.calls, task, since)).flatten()
    }

    /// When a request was done whose task asked for its next one then.
    fn done_before(&self, rq: Traced, next: Instant) -> Instant {
        let task = self.history.requests[rq].bio.origin.context;
        before(next, self.thinks.get(&task).copied().unwrap_or(SOON))
    }

    fn mend(mut self, gaps: &Gaps) {
        for rq in &gaps.unissued {
            self.issue(*rq);
        }
        for rq in &gaps.unseen {
            self.appear(*rq);
        }
        let mut ends: Vec<End> = gaps.endless.iter().filter_map(|rq| self.end_of(*rq)).collect();
        for rq in &gaps.stale {
            ends.extend(self.serve(*rq));
        }
        self.count_activations(&mut ends);
        let usual = self.usual;
        self.history.clock_error = usual[0].max(usual[1]);
        for end in &ends {
            self.times[end.rq].done = Some(end.at);
            self.add(end.at, end.rq, What::Complete);
        }
        self.arrive(&gaps.unasked);
        self.merge_steps();
    }

    /// A task that waits for each of its requests asks for the next when the last is done.
    fn arrive(&mut self, unasked: &[Traced]) {
        let mut issues: BTreeMap<ContextId, Vec<(Instant, Traced)>> = BTreeMap::new();
        for (rq, life) in self.history.requests.iter().enumerate() {
            let issued = self.times[rq].issued.filter(|_| !life.bypasses && !life.taken_out);
            let of_task = issues.entry(life.bio.origin.context).or_default();
            of_task.extend(issued.map(|issued| (issued, rq)));
        }
        issues.values_mut().for_each(|all| all.sort_unstable());
        for rq in unasked.iter().copied() {
            let bio = self.history.requests[rq].bio;
            let task = bio.origin.context;
            let Some(issued) = self.times[rq].issued.filter(|_| bio.is_sync()) else { continue };
            let of_task = &issues[&task];
            let before = of_task.partition_point(|it| *it < (issued, rq)).checked_sub(1);
            let done = before.and_then(|before| self.times[of_task[before].1].done);
            let Some(done) = done.filter(|done| *done < issued) else { continue };
            if self.hurried.contains(&task) {
                continue;
            }
            let think = self.thinks.get(&task).copied().unwrap_or(self.think);
            let at = (done + think).min(issued);
            self.moved.insert(rq);
            self.add(at, rq, What::Allocate);
            self.add(at, rq, What::Insert { joins: false, runs: true });
        }
    }

    fn add(&mut self, at: Instant, rq: Traced, what: What) {
        let task = self.history.requests[rq].bio.origin.context;
        self.more.push(Step { at, task, rq, what });
    }

    /// A request that is done was issued.
    fn issue(&mut self, rq: Traced) {
        let Some(done) = self.times[rq].done else { return };
        let inserted = self.times[rq].inserted.unwrap_or(done);
        let at = before(done, self.usual(rq)).max(inserted).min(done);
        self.history.given.issues += self.history.counts(at);
        let life = &mut self.history.requests[rq];
        (life.given, life.vague) = (true, true);
        self.times[rq].issued = Some(at);
        self.add(at, rq, What::Issue);
    }

    /// A request that is done was asked for.
    fn appear(&mut self, rq: Traced) {
        let Some(done) = self.times[rq].done else { return };
        let at = before(done, self.usual(rq));
        self.history.requests[rq].vague = true;
        self.add(at, rq, What::Allocate);
        self.add(at, rq, What::Insert { joins: false, runs: true });
        self.add(at, rq, What::Issue);
        self.times[rq].issued = Some(at);
        self.history.given.insertions += self.history.counts(at);
        self.history.given.issues += self.history.counts(at);
    }

    /// When the task of a request asked for its next one, unless that is so long afterwards that
    /// others in between must be missing.
    fn soon_next(&self, rq: Traced, since: Instant, usual: Duration) -> Option<Instant> {
        let next = self.next_request(rq, since)?;
        let is_soon = self.done_before(rq, next) <= since + usual * LATE;
        is_soon.then_some(next)
    }

    /// A request that was issued ended some time.
    fn end_of(&mut self, rq: Traced) -> Option<End> {
        let issued = self.times[rq].issued?;
        let usual = self.usual(rq);
        let latest = self.next_request(rq, issued);
        if latest.is_none() && issued + usual * LATE >= self.end {
            return None;
        }
        let at = match self.soon_next(rq, issued, usual) {
            Some(next) => {
                self.history.given.by_next_request += self.history.counts(issued);
                self.done_before(rq, next).max(issued)
            }
            None => {
                self.history.given.by_usual_time += self.history.counts(issued);
                self.history.requests[rq].vague = true;
                issued + usual
            }
        };
        Some(End { rq, issued, at, latest })
    }

    /// A request that was inserted, and of which nothing more is known.
    fn serve(&mut self, rq: Traced) -> Option<End> {
        let inserted = self.times[rq].inserted?;
        let Some(latest) = self.next_request(rq, inserted) else {
            let is_recent = inserted + self.usual(rq) * 100 >= self.end;
            if !is_recent {
                self.history.requests[rq].taken_out = true;
                self.history.given.taken_out += self.history.counts(inserted);
            }
            return None;
        };
        let usual = self.usual(rq) + self.waits;
        let at = match self.soon_next(rq, inserted, usual) {
            Some(next) => self.done_before(rq, next).max(inserted),
            None => inserted + usual,
        };
        let issued = before(at, self.usual(rq)).max(inserted);
        let life = &mut self.history.requests[rq];
        (life.given, life.vague) = (true, true);
        self.history.given.issues += self.history.counts(issued);
        self.history.given.by_next_request += self.history.counts(issued);
        self.times[rq].issued = Some(issued);
        self.add(issued, rq, What::Issue);
        Some(End { rq, issued, at, latest: Some(latest) })
    }

    /// What the scheduler says of the driver bounds when requests ended.
    fn count_activations(&mut self, ends: &mut [End]) {
        let said = self.history.messages.iter().filter_map(|said| {
            let (words, count) = said.text.rsplit_once('=')?;
            words.ends_with(" activate rq, drv").then_some(())?;
            Some((said.at, count.trim().parse().ok()?))
        });
        let said: Vec<(Instant, usize)> = said.collect();
        if said.is_empty() || ends.is_empty() {
            return;
        }
        let lives = self.history.requests.iter().zip(&self.times);
        let seen = lives.filter(|(life, _)| !life.bypasses && !life.taken_out).map(|(_, it)| *it);
        let seen: Vec<Times> = seen.collect();
        let sorted = |time: fn(&Times) -> Option<Instant>| {
            let mut all: Vec<Instant> = seen.iter().filter_map(time).collect();
            all.sort_unstable();
            all
        };
        let (issues, done) = (sorted(|it| it.issued), sorted(|it| it.done));
        let moved = InDriver::new(ends, issues, done).follow(&said);
        self.history.given.by_activations += moved;
    }

    /// Steps in the order of time; those that were given back before others of the same time.
    fn merge_steps(&mut self) {
        let taken_out = |rq: Traced, requests: &[Life]| requests[rq].taken_out;
        let mut more = std::mem::take(&mut self.more);
        more.sort_by_key(|step| step.at);
        let mut more = more.into_iter().peekable();
        let steps = std::mem::take(&mut self.history.steps);
        let mut all = Vec::with_capacity(steps.len() + more.len());
        for step in steps {
            let begins = matches!(step.what, What::Allocate | What::Insert { .. } | What::Issue);
            let is_before =
                |it: &Step| it.at < step.at || it.at == step.at && !(begins && it.rq == step.rq);
            while let Some(before) = more.next_if(is_before) {
                all.push(before);
            }
            let arrives = matches!(step.what, What::Allocate | What::Insert { .. });
            let is_moved = arrives && self.moved.contains(&step.rq);
            if !is_moved && !taken_out(step.rq, &self.history.requests) {
                all.push(step);
            }
        }
        all.extend(more);
        self.history.steps = all;
    }
}

fn before(at: Instant, by: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_sub(by.as_nanos()))
}

/// When a task first asked for something after a moment.
fn next_after(
    calls: &BTreeMap<ContextId, Vec<Instant>>,
    task: ContextId,
    since: Instant,
) -> Option<Instant> {
    let calls = calls.get(&task)?;
    calls.get(calls.partition_point(|at| *at <= since)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Sectors;
    use block::Shape;
    use lab::recording::{Losses, Recording};
    use trace::blktrace::Categories;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// An event of a read of 4 KiB.
    fn event(action: Action, micros: u64, pid: u32, sector: u64) -> Record {
        let event = Record::event(action, at(micros)).with(Categories::READ);
        Record { pid, sector: Sector(sector), bytes: Sectors(8).bytes().0 as u32, ..event }
    }

    /// All events of a read.
    fn life(micros: u64, pid: u32, sector: u64) -> Vec<Record> {
        let begins = [Action::Queue, Action::GetRequest, Action::Insert, Action::Issue];
        let mut all: Vec<Record> =
            begins.into_iter().map(|action| event(action, micros, pid, sector)).collect();
        all.push(event(Action::Complete, micros + 100, pid, sector));
        all
    }

    /// What is known of these, which lack the events of a CPU.
    fn mended(records: Vec<Record>) -> History {
        let losses = Losses { cpus: vec![1], ..Losses::default() };
        let recording = Recording { records, losses, ..Recording::default() };
        let era = super::super::Era {
            shape: Shape::Single,
            joins_are_traced: false,
            merges_into_newest: false,
            scans_lists: false,
            issues_directly: false,
            issues_newest_first: false,
            heeds_runs: false,
            largest: base::Sectors(u32::MAX),
            usual: base::Sectors(u32::MAX),
        };
        History::read(era, &recording, Instant::ZERO)
    }

    /// Two tasks that take 200 us from one read to the next.
    fn two_tasks() -> Vec<Record> {
        let mut records = Vec::new();
        for turn in 0..4 {
            records.extend(life(300 * turn, 7, 100 * turn));
            records.extend(life(300 * turn + 150, 8, 90_000 + 100 * turn));
        }
        records
    }

    /// The request of a sector, and its steps.
    fn request(history: &History, sector: u64) -> (Traced, Vec<(u64, &'static str)>) {
        let is_it = |life: &Life| life.sector == Sector(sector);
        let rq = history.requests.iter().position(is_it).unwrap();
        let name = |what: &What| match what {
            What::Insert { .. } => "insert",
            What::Issue => "issue",
            What::Complete => "complete",
            _ => "other",
        };
        let steps = history.steps.iter().filter(|step| step.rq == rq);
        let steps = steps.map(|step| (step.at.as_nanos() / 1_000, name(&step.what)));
        (rq, steps.filter(|step| step.1 != "other").collect())
    }

    #[test]
    fn who_asks_for_more_does_not_wait_for_what_is_issued() {
        let mut records = two_tasks();
        records.push(event(Action::Issue, 2_000, 7, 500));
        records.push(event(Action::Queue, 2_001, 7, 600));
        records.push(event(Action::Complete, 2_100, 0, 500));
        let history = mended(records);
        let (rq, _) = request(&history, 500);
        assert_eq!(history.requests[rq].bio.origin.context, history.contexts[&8]);
    }

    #[test]
    fn a_request_arrives_when_the_last_of_its_task_is_done() {
        let mut records = two_tasks();
        records.push(event(Action::Issue, 1_500, 7, 500));
        records.push(event(Action::Complete, 1_600, 0, 500));
        records.push(event(Action::Issue, 2_000, 7, 600));
        records.push(event(Action::Complete, 2_100, 0, 600));
        let history = mended(records);
        let steps = [(1_800, "insert"), (2_000, "issue"), (2_100, "complete")];
        assert_eq!(request(&history, 600).1, steps);
    }

    #[test]
    fn what_ends_when_it_is_issued_is_issued_before() {
        let mut records = two_tasks();
        records.extend(life(2_000, 7, 500).into_iter().take(4));
        records.push(event(Action::Queue, 2_010, 7, 600));
        let history = mended(records);
        let steps = [(2_000, "insert"), (2_000, "issue"), (2_000, "complete")];
        assert_eq!(request(&history, 500).1, steps);
    }
}
