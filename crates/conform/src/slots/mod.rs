//! Slot replay: where the kernel issued its k-th request, ours chooses its k-th.
//!
//! Arrivals, merges and completions are the recording's; only the choice is ours. What ours chose
//! instead of the kernel's request is completed when that was, and given back when that was.
//! Records name no requests: where several that look the same wait, which of them was issued is
//! not known, and the kernel's is taken to be ours.

mod asked;
mod before;
mod clocks;
mod heed;
mod lists;
mod moments;
mod said_runs;
#[cfg(test)]
mod tests;
mod unseen;

use crate::history::{History, Look, Step, Traced, What};
use crate::messages::Said;
use crate::replica::{MergeDifferences, Replica, Taken};
use crate::runs::Runs;
use crate::setup::Setup;
use base::{Duration, Instant, Sector, Sectors};
use block::kernel::Sharing;
use block::scheduler::Merge;
use block::{Bio, ContextId, Direction, DispatchReason, HoldReason, IoContextId, Op, RequestId};
use clocks::Core;
use moments::Ahead;
pub use moments::{Assumed, Moment};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// One place at which the kernel's driver took a request from the scheduler.
#[derive(Clone, Debug)]
pub struct Decision {
    /// When.
    pub at: Instant,
    /// What the kernel took.
    pub kernel: Traced,
    /// What ours gave.
    pub ours: Ours,
    /// More than one request could have been chosen, or none.
    pub contested: bool,
    /// Which busy period.
    pub period: u32,
    /// Requests in the kernel's scheduler, this one included.
    pub waiting: u32,
    /// The same by direction: reads and writes.
    pub directions: (u32, u32),
    /// When the kernel's request was inserted.
    pub inserted: Instant,
    /// Whether it was the oldest of its direction.
    pub was_oldest: bool,
    /// Sizes differ although the request is the same.
    pub merged_differently: bool,
    /// All is known that it depends on.
    pub judged: bool,
    /// Ours takes the kernel's request if the clock is moved by less than it may err.
    pub is_close: bool,
    /// The kernel's choice told whether the queue had been run before, which left no trace; so
    /// that both agree says nothing.
    pub told: bool,
}

impl Decision {
    /// Whether both took the same request.
    pub fn agrees(&self) -> bool {
        self.ours.request() == Some(self.kernel)
    }
}

/// What ours gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ours {
    /// A request, and why.
    Chose(Traced, DispatchReason),
    /// A request that had been chosen before and was parked.
    Parked(Traced),
    /// It withheld what it had.
    Held(HoldReason),
    /// It had nothing.
    Nothing,
}

impl Ours {
    /// The request.
    pub fn request(self) -> Option<Traced> {
        match self {
            Ours::Chose(rq, _) | Ours::Parked(rq) => Some(rq),
            Ours::Held(_) | Ours::Nothing => None,
        }
    }
}

/// What came of a replay.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Every decision of the kernel, in order.
    pub decisions: Vec<Decision>,
    /// What ours gave, in order, with the busy period; what was left at the end of one included.
    pub ours: Vec<(u32, Traced)>,
    /// Moments at which the kernel withheld although it could have dispatched, or ours did.
    pub withheld: u64,
    /// Of these, moments at which both did.
    pub both_withheld: u64,
    /// Merges that came too late for ours: it had issued the request already.
    pub too_late: u64,
    /// Bios that ours would have merged elsewhere, or not.
    pub merges_that_differ: MergeDifferences,
    /// Requests that the driver gave back.
    pub requeues: u64,
    /// What ours said.
    pub messages: Vec<Said>,
    /// Where the queue may have been run, and whether it is thought to have been.
    pub moments: Vec<Moment>,
    /// The step at which ours first parts from the kernel, if that was asked for.
    pub parted: Option<usize>,
    /// What was asked for with [`Until::Described`].
    pub described: Option<String>,
}

/// How far a recording is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// To its end.
    End,
    /// Up to this decision, before which the state is described.
    Described(usize),
    /// Up to where ours parts from the kernel, at this step or later.
    Parted(usize),
}

impl Outcome {
    /// What was counted so far has been counted before.
    fn forget_counts(&mut self) {
        (self.withheld, self.both_withheld, self.too_late, self.requeues) = (0, 0, 0, 0);
    }
}

/// Whether ours takes what the kernel took, whatever it would choose: events are missing, or what
/// it remembers of the parts before is not known.
pub fn follows(history: &History, setup: &Setup) -> bool {
    history.is_torn || history.is_continued() && setup.remembers_runs()
}

/// Replays a recording; `phase` is added to all its times, so that ticks begin elsewhere.
pub fn replay(
    history: &History,
    setup: &Setup,
    phase: Duration,
    until: Until,
    assumed: &Assumed,
) -> Outcome {
    let says_runs = history.says_asked;
    let runs = Runs::of(setup).filter(|_| !says_runs);
    let mut run = Run {
        history,
        phase,
        behind: Duration::from_nanos(u64::from(setup.ticks_begin_with_clock)),
        looks_at_clock: setup.looks_at_clock(),
        until,
        assumed,
        ahead: runs.as_ref().map(|_| Ahead::of(history)).unwrap_or_default(),
        index: 0,
        is_told: false,
        is_late: false,
        replica: setup.replica(history),
        depth: setup.facts.queue_depth,
        parks: setup.parks(),
        leads_joins: setup.joins_are_traced(),
        remembers: setup.remembers_runs(),
        pids: history.contexts.iter().map(|(pid, context)| (context.0, *pid)).collect(),
        issues: history.issued_before,
        said_until: Instant::ZERO,
        runs,
        ids: vec![None; history.requests.len()],
        traced: BTreeMap::new(),
        waiting: Vec::new(),
        slots: BTreeMap::new(),
        in_flight: 0,
        live: 0,
        names: (0..history.requests.len()).collect(),
        period: 0,
        parked: false,
        issued_parked: false,
        list: VecDeque::new(),
        list_is_over: false,
        next_run_begun: false,
        restarts: false,
        worker_wanted: false,
        worker_goes_first: setup.kernel.sharing == Sharing::LeastServed,
        turns_change: setup.kernel.sharing == Sharing::EarliestDeadline,
        hands_over: setup.kernel.multi.is_some_and(|multi| multi.hands_runs_over),
        flushing: None,
        core: Core::default(),
        sleepers: BTreeSet::new(),
        woken: 0,
        starving: None,
        recovers: false,
        issuer: None,
        last: Instant::ZERO,
        requeued: 0,
        around: 0,
        vague: BTreeSet::new(),
        memory: setup.memory(),
        shadow: 0,
        follows: history.is_torn || history.is_continued(),
        in_doubt: false,
        says_runs,
        asked: VecDeque::new(),
        heard: 0,
        known: MergeDifferences::default(),
        outcome: Outcome::default(),
    };
    run.remembers &= !run.says_runs;
    if run.says_runs {
        run.recall();
    }
    if run.remembers {
        run.recall();
        let said = history.messages.iter();
        run.replica.follow(said.map(|said| (said.at + phase, said.text.clone())));
    }
    let is_old = |step: &Step| step.at < history.since;
    let first_new = history.steps.iter().position(|step| !is_old(step));
    for index in 0..history.steps.len() {
        if first_new == Some(index) {
            run.outcome.forget_counts();
            run.known = run.replica.differences();
            run.follows = follows(history, setup);
        }
        run.replica.limit_pace(history.steps.get(index + 1).map(|next| next.at + phase));
        run.index = index;
        run.pass_time(index);
        run.step(index);
        if !run.says_runs {
            run.settle(index);
            run.heed(index);
        }
        run.note_events();
        if run.outcome.described.is_some() || run.outcome.parted.is_some() {
            // Nothing else was asked for.
            break;
        }
    }
    run.outcome.merges_that_differ = run.replica.differences().since(run.known);
    run.outcome
}

struct Run<'a> {
    history: &'a History,
    phase: Duration,
    /// What happens behind a record is so much later.
    behind: Duration,
    /// When a task looks at the clock for a request; its plug remembers that time.
    looks_at_clock: Look,
    until: Until,
    /// What is assumed of runs that left no trace.
    assumed: &'a Assumed,
    /// What the recording says later.
    ahead: Ahead,
    /// The step that is dealt with.
    index: usize,
    /// What is issued next tells when the queue was run.
    is_told: bool,
    /// A worker runs later than usual.
    is_late: bool,
    replica: Replica,
    depth: u32,
    parks: bool,
    leads_joins: bool,
    /// Runs that issue nothing count.
    remembers: bool,
    /// The kernel's numbers of tasks.
    pids: BTreeMap<u32, u32>,
    /// Requests that the kernel had issued.
    issues: u32,
    /// When the last request was chosen.
    said_until: Instant,
    /// Where runs that left no trace can be told.
    runs: Option<Runs>,
    /// Our request for each recorded one.
    ids: Vec<Option<RequestId>>,
    /// And back, for those that are alive.
    traced: BTreeMap<RequestId, Traced>,
    /// What the kernel's scheduler holds, in the order of insertion.
    waiting: Vec<(Traced, Instant)>,
    /// What ours gave for each request that is with the kernel's driver.
    slots: BTreeMap<Traced, Option<Traced>>,
    in_flight: u32,
    /// Which request each one of the history is; they were exchanged where nobody can tell.
    names: Vec<Traced>,
    /// Requests of the kernel that were inserted and are not done.
    live: u32,
    period: u32,
    /// Ours has chosen a request that the driver cannot take yet.
    parked: bool,
    /// What was issued just now had been parked.
    issued_parked: bool,
    /// What ours has chosen with a list that is being issued, interrupted.
    list: VecDeque<Ours>,
    /// After that list ours was asked in vain already.
    list_is_over: bool,
    /// What is issued is that of the run before which its task sleeps for a tag.
    next_run_begun: bool,
    /// A completion has a worker run the queue.
    restarts: bool,
    /// Something was inserted, and a worker will run the queue.
    worker_wanted: bool,
    /// It does so before the task goes on that inserted it.
    worker_goes_first: bool,
    /// That may become otherwise.
    turns_change: bool,
    /// A task may leave the rest of its run to a worker.
    hands_over: bool,
    /// The task that inserts what it held, and will run the queue then.
    flushing: Option<ContextId>,
    /// Who has the core, and takes what for the time.
    core: Core,
    /// Tasks that sleep for a tag.
    sleepers: BTreeSet<ContextId>,
    /// How many of them were woken and have not run yet.
    woken: u32,
    /// Who is about to sleep for a tag and runs the queue.
    starving: Option<ContextId>,
    /// The request that is allocated next is that of a task that has slept for a tag.
    recovers: bool,
    /// Who ran the queue, if it issued something just now.
    issuer: Option<ContextId>,
    /// When the last thing happened.
    last: Instant,
    /// Requests that the kernel's driver gave back and did not take again.
    requeued: u32,
    /// Requests on their way through the flush machinery.
    around: u32,
    /// Requests with the driver since a moment, or until one, that is not known well.
    vague: BTreeSet<Traced>,
    /// What was there of them before so many decisions may change what is chosen.
    memory: u32,
    /// For so many decisions one of them may.
    shadow: u32,
    /// Whatever ours would choose, it takes what the kernel took.
    follows: bool,
    /// What ours would choose hangs on what is known to be wrong.
    in_doubt: bool,
    /// The kernel says when it was asked.
    says_runs: bool,
    /// What ours gave where the kernel was asked and gave something, and that is not issued yet.
    asked: VecDeque<Ours>,
    /// How much of what the kernel said it has heard.
    heard: usize,
    /// Merges that differ and were counted before.
    known: MergeDifferences,
    outcome: Outcome,
}

impl Run<'_> {
    fn step(&mut self, index: usize) {
        let Step { at, task, rq: recorded, what } = self.history.steps[index];
        let (now, rq) = (at + self.phase, self.names.get(recorded).copied().unwrap_or(0));
        self.heed_clocks(at, task, what);
        match what {
            What::Exit => {
                self.replica.exit(now, IoContextId(task.0));
                return;
            }
            What::Flushed(since) => {
                self.replica.flushed(now, since + self.phase);
                return;
            }
            What::Run(_) => {
                if !self.says_runs {
                    self.heed_run(now, task, what);
                }
                return;
            }
            What::Ask(answer) => {
                self.ask_as_said(now, answer);
                return;
            }
            _ => {}
        }
        if self.history.requests[rq].bypasses {
            self.pass_by(what);
            self.issues += u32::from(matches!(what, What::Issue));
            return;
        }
        if self.says_runs {
            // Its messages say more.
        } else if self.history.tells_runs {
            self.heed_run(now, task, what);
        } else if self.runs.is_some() {
            self.note_unseen(now, task, what);
        }
        match what {
            What::Starve => {
                // It was looked up before the task slept, and is not afterwards.
                let bio = self.history.requests[rq].bio;
                self.replica.find_merge(now, &bio);
                self.replica.keep_apart();
                self.replica.limit_depth(now, &bio);
            }
            What::Recover => self.recovers = true,
            What::Allocate => {
                let bio = self.history.requests[rq].bio;
                if !std::mem::take(&mut self.recovers) {
                    self.replica.find_merge(now, &bio);
                    self.replica.keep_apart();
                    self.replica.limit_depth(now, &bio);
                }
                let looked = self.looked_at_clock(now, rq);
                let id = self.replica.allocate(now, &bio, looked);
                self.ids[rq] = Some(id);
                self.traced.insert(id, rq);
            }
            What::Merge(bio, merge) => self.merge(now, recorded, &bio, merge),
            What::Insert { joins, .. } => {
                let life = &self.history.requests[recorded];
                if life.vague && life.given {
                    // It may be issued from now on.
                    self.vague.insert(recorded);
                }
                self.heed_arrival(index, rq);
                self.insert(at, rq, joins);
            }
            What::Offer { of } => self.offer(at, rq, of),
            What::Join { into, .. } => self.join(now, into, recorded),
            What::Issue => self.issue(at, recorded),
            What::Requeue => {
                self.in_flight = self.in_flight.saturating_sub(1);
                self.requeued += 1;
                self.outcome.requeues += 1;
                let ours = self.slots.get(&rq).copied().flatten();
                let id = ours.and_then(|ours| self.ids[ours]);
                let follows = self.follows;
                if let Some(id) = id.filter(|id| !follows || self.replica.hand_over(now, *id)) {
                    self.replica.requeue(now, id);
                }
            }
            What::Complete => {
                if self.vague.remove(&recorded) {
                    self.shadow = self.memory;
                }
                self.complete(at, rq);
            }
            What::Exit | What::Flushed(_) | What::Run(_) | What::Ask(_) => {}
        }
        self.note_events();
        self.issues += u32::from(matches!(what, What::Issue));
    }

    /// A request around the scheduler occupies the device all the same.
    fn pass_by(&mut self, what: What) {
        match what {
            What::Allocate => self.around += 1,
            What::Issue => self.in_flight += 1,
            What::Requeue => self.in_flight -= 1,
            What::Complete => {
                self.in_flight = self.in_flight.saturating_sub(1);
                self.around = self.around.saturating_sub(1);
            }
            _ => {}
        }
    }

    /// Our request, if it can still be merged into.
    fn id_in_reach(&mut self, rq: Traced) -> Option<RequestId> {
        let id = self.ids[rq]?;
        let request = self.replica.queue().request(id)?;
        use block::request::RequestState::{Allocated, Inserted};
        matches!(request.state, Allocated | Inserted).then_some(id)
    }

    fn insert(&mut self, at: Instant, rq: Traced, joins: bool) {
        // It may have been absorbed by now.
        let Some(id) = self.ids[rq] else { return };
        // Where joins are not recorded, a request that was joined to another never counts.
        let is_live = self.leads_joins || self.history.requests[rq].joined.is_none();
        if is_live && !self.is_waiting(rq) {
            self.live += 1;
            self.waiting.push((rq, at));
        }
        let now = self.replica.dealt_with(at + self.phase);
        self.replica.insert(now, id, joins);
    }

    /// Without a scheduler a task gives the driver what it held.
    fn offer(&mut self, at: Instant, rq: Traced, of: u32) {
        self.live += 1;
        self.waiting.push((rq, at));
        if let Some(id) = self.ids[rq] {
            self.replica.offer(id, of as usize);
        }
    }

    /// The kernel merged a bio into a request.
    fn merge(&mut self, now: Instant, recorded: Traced, bio: &Bio, merge: Merge) {
        let found = self.replica.find_merge(now, bio).filter(|found| found.1 == merge);
        if let Some((id, _)) = found {
            self.identify(recorded, self.traced[&id]);
        }
        match self.id_in_reach(self.names[recorded]) {
            Some(id) => self.replica.merge(now, id, bio, merge),
            None => self.come_too_late(),
        }
    }

    /// A merge comes after ours has issued.
    fn come_too_late(&mut self) {
        self.outcome.too_late += 1;
        self.part();
    }

    /// Ours does not do here what the kernel did.
    fn part(&mut self) {
        if let Until::Parted(since) = self.until
            && self.index >= since
        {
            self.outcome.parted.get_or_insert(self.index);
        }
    }

    /// The kernel appended a request to another.
    fn join(&mut self, now: Instant, into: Traced, recorded: Traced) {
        let found = match self.id_in_reach(self.names[recorded]) {
            Some(id) => self.replica.find_join(now, id),
            // Another may look the same.
            None => self.replica.expected_join(),
        };
        if let Some((first, second)) = found {
            self.identify(into, self.traced[&first]);
            self.identify(recorded, self.traced[&second]);
        }
        let rq = self.names[recorded];
        let was_queued = self.waiting.iter().position(|(waiting, _)| *waiting == rq);
        if let Some(place) = was_queued {
            self.waiting.remove(place);
            self.live = self.live.saturating_sub(1);
        }
        let Some(id) = self.id_in_reach(rq) else {
            self.come_too_late();
            return;
        };
        let into = self.id_in_reach(self.names[into]);
        match into.filter(|into| self.replica.may_join(*into, id)) {
            Some(into) => self.replica.join(now, into, id),
            None => {
                self.come_too_late();
                if was_queued.is_none() {
                    self.replica.insert(now, id, true);
                }
            }
        }
    }

    fn issue(&mut self, at: Instant, recorded: Traced) {
        self.in_flight += 1;
        let (now, rq) = (at + self.phase, self.names[recorded]);
        if !self.is_waiting(rq) {
            // It comes from the dispatch list, where it was given back: no decision.
            self.requeued = self.requeued.saturating_sub(1);
            match self.slots.get(&rq).copied().flatten().and_then(|rq| self.ids[rq]) {
                Some(id) if self.follows => {
                    self.replica.hand_over(now, id);
                }
                Some(_) => {
                    self.choose(now);
                }
                None => {}
            }
            return;
        }
        let number = self.outcome.decisions.len();
        if self.until == Until::Described(number) {
            self.outcome.described = Some(self.replica.queue().describe_scheduler(now));
        }
        let waiting = self.waiting.len() as u32;
        let reads = self.waiting.iter().filter(|it| self.direction(it.0) == Direction::Read);
        let reads = reads.count() as u32;
        let was_parked = self.parked;
        let is_led = self.follows || waiting >= 2 && self.remembers;
        let (ours, given, is_close) = if let Some(ours) = self.asked.pop_front() {
            if ours.request().is_some() {
                self.choose(now);
            }
            (ours, ours.request(), false)
        } else if is_led && self.replica.has_scheduler() {
            self.follow(now, recorded)
        } else if self.ids[rq].is_some_and(|id| self.replica.is_offered(id)) {
            let offered = self.replica.choose_offered(now);
            let ours = self.understand(offered);
            (ours, ours.request(), false)
        } else {
            let ours = self.next_of_list(now);
            (ours, ours.request(), false)
        };
        self.issued_parked = was_parked;
        self.runs.iter_mut().for_each(|runs| runs.issued(was_parked));
        if let Some(chosen) = ours.request() {
            self.identify(recorded, chosen);
        }
        let rq = self.names[recorded];
        let place = self.waiting.iter().position(|(waiting, _)| *waiting == rq);
        let (_, inserted) = self.waiting.remove(place.expect("it waits"));
        let was_oldest = self.is_oldest(rq, inserted);
        let held = matches!(ours, Ours::Held(_));
        let judged = self.is_judged(recorded, ours, is_close);
        let told = std::mem::take(&mut self.is_told) && ours.request() == Some(rq);
        let decision = Decision {
            at,
            kernel: rq,
            ours,
            contested: (waiting >= 2 || held) && judged && !told,
            period: self.period,
            waiting,
            directions: (reads, waiting - reads),
            inserted,
            was_oldest,
            merged_differently: self.differs_in_size(recorded),
            judged,
            is_close,
            told,
        };
        if !decision.agrees() || decision.merged_differently {
            self.part();
        }
        self.outcome.withheld += u64::from(held);
        self.outcome.decisions.push(decision);
        self.slots.insert(rq, given);
        let ours = ours.request().filter(|_| !is_close);
        self.outcome.ours.extend(ours.map(|rq| (self.period, rq)));
    }

    /// Ours says what it would choose, what it takes, and whether that hangs on the clock: if it is
    /// the kernel's request when the clock is moved a little, it takes that; and in a recording
    /// that lacks events in any case.
    fn follow(&mut self, now: Instant, recorded: Traced) -> (Ours, Option<Traced>, bool) {
        self.parked = false;
        let now = self.replica.beginning(self.said_until, now).unwrap_or(now);
        self.said_until = now;
        if self.follows && self.requeued > 0 {
            self.in_flight += self.replica.take_all_back(now);
            self.requeued = 0;
        }
        let saved = self.replica.save(now);
        let first = self.replica.consider(now);
        self.in_doubt = self.replica.is_in_doubt();
        let ours = self.understand(first);
        if let Some(chosen) = ours.request() {
            self.identify(recorded, chosen);
        }
        let rq = self.names[recorded];
        let Some(saved) = saved.filter(|_| ours.request() != Some(rq)) else {
            self.replica.accept(now, first);
            return (ours, ours.request(), false);
        };
        let error = self.history.clock_error;
        let earlier = Instant::from_nanos(now.as_nanos().saturating_sub(error.as_nanos()));
        for moved in [now + error, earlier] {
            self.replica.restore(&saved);
            let other = self.replica.consider(moved);
            if self.understand(other).request() == Some(rq) {
                self.replica.accept(moved, other);
                return (ours, Some(rq), true);
            }
        }
        self.replica.restore(&saved);
        let id = self.ids[rq].filter(|_| self.follows);
        if id.is_some_and(|id| self.replica.take(now, id)) {
            return (ours, Some(rq), false);
        }
        let again = self.replica.consider(now);
        self.replica.accept(now, again);
        (ours, self.understand(again).request(), false)
    }

    /// Whether all is known that the choice of a request hangs on.
    fn is_judged(&mut self, recorded: Traced, ours: Ours, is_close: bool) -> bool {
        let life = &self.history.requests[recorded];
        if !self.vague.is_empty() || life.given {
            self.shadow = self.memory;
        }
        let is_shadowed = self.shadow > 0 || self.in_doubt;
        self.shadow = self.shadow.saturating_sub(1);
        if life.vague {
            self.vague.insert(recorded);
        }
        // The kernel may have had it no more.
        let is_there = ours.request().is_none_or(|rq| !self.history.requests[rq].given);
        is_there && !is_shadowed && !(is_close && self.history.is_torn)
    }

    fn is_waiting(&self, rq: Traced) -> bool {
        self.waiting.iter().any(|(waiting, _)| *waiting == rq)
    }

    /// Takes the recorded request to be `other`, if nobody can tell which of the two it is: both
    /// wait, and look the same.
    fn identify(&mut self, recorded: Traced, other: Traced) {
        let rq = self.names[recorded];
        if rq == other || !self.is_waiting(rq) || !self.is_waiting(other) {
            return;
        }
        let looks = self.looks(rq);
        if looks.is_some() && looks == self.looks(other) {
            let of_other = self.names.iter().position(|name| *name == other);
            self.names.swap(recorded, of_other.expect("every request has a name"));
        }
    }

    /// How our request of this name looks in a record.
    fn looks(&mut self, rq: Traced) -> Option<(Op, Sector, Sectors)> {
        let request = self.replica.queue().request(self.ids[rq]?)?;
        Some((request.op, request.sector, request.sectors))
    }

    fn is_oldest(&self, rq: Traced, inserted: Instant) -> bool {
        let direction = self.direction(rq);
        self.waiting
            .iter()
            .all(|(other, at)| self.direction(*other) != direction || *at >= inserted)
    }

    fn direction(&self, rq: Traced) -> Direction {
        self.history.requests[rq].bio.direction()
    }

    /// Ours gives a request, or not.
    fn choose(&mut self, now: Instant) -> Ours {
        self.parked = false;
        let now = self.replica.beginning(self.said_until, now).unwrap_or(now);
        self.said_until = now;
        let taken = self.replica.choose(now);
        self.understand(taken)
    }

    fn understand(&self, taken: Taken) -> Ours {
        match taken {
            Taken::Chosen(id, reason) => Ours::Chose(self.traced[&id], reason),
            Taken::Waiting(id) => Ours::Parked(self.traced[&id]),
            Taken::Hold(reason) => Ours::Held(reason),
            Taken::Empty => Ours::Nothing,
        }
    }

    /// Whether our request of this name has another size than the kernel's, or is gone.
    fn differs_in_size(&mut self, recorded: Traced) -> bool {
        let (life, rq) = (&self.history.requests[recorded], self.names[recorded]);
        let Some(id) = self.ids[rq] else { return true };
        match self.replica.queue().request(id) {
            Some(request) => (request.sector, request.sectors) != (life.sector, life.sectors),
            // It may be done already.
            None => self.traced.get(&id) == Some(&rq),
        }
    }

    fn complete(&mut self, at: Instant, rq: Traced) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let ours = self.slots.remove(&rq).flatten();
        if let Some(id) = ours.and_then(|ours| self.ids[ours].take()) {
            self.traced.remove(&id);
            let now = self.replica.dealt_with(at + self.phase);
            if !self.follows || self.replica.hand_over(now, id) {
                self.replica.complete(now, id);
            }
        }
        self.live = self.live.saturating_sub(1);
        if self.live == 0 && self.waiting.is_empty() {
            self.end_period(at);
        }
    }

    /// Nothing is left in the kernel: ours gets rid of what it still has.
    fn end_period(&mut self, at: Instant) {
        // Where the kernel says when it asks, it does not ask here if it has nothing left.
        while !self.says_runs || self.replica.queue().queued() > 0 {
            self.note_events();
            let now = at + self.phase;
            let offered = self.replica.choose_offered(now);
            let offered = self.understand(offered).request();
            let Some(rq) = offered.or_else(|| self.choose(now).request()) else { break };
            self.outcome.ours.push((self.period, rq));
            let Some(id) = self.ids[rq].take() else { break };
            self.traced.remove(&id);
            self.replica.complete(at + self.phase, id);
        }
        self.period += 1;
    }

    /// Requests that ours joined are those they were joined to; what it said is kept.
    fn note_events(&mut self) {
        let (joins, messages) = self.replica.take_events();
        for (gone, _into) in joins {
            if let Some(rq) = self.traced.remove(&gone) {
                self.ids[rq] = None;
            }
        }
        for text in messages {
            self.note_search(&text);
            let text = self.with_pid(text);
            let said = Said { at: self.last, issues: self.issues, text };
            self.outcome.messages.push(said);
        }
    }

    /// A message with the kernel's number of the task in the name of the queue.
    fn with_pid(&self, text: String) -> String {
        let Some((name, rest)) = text.split_at_checked(3) else { return text };
        if !["cfq", "bfq"].contains(&name) {
            return text;
        }
        let digits = rest.len() - rest.trim_start_matches(|it: char| it.is_ascii_digit()).len();
        let pid = rest[..digits].parse().ok().and_then(|context| self.pids.get(&context));
        pid.map_or_else(|| text.clone(), |pid| format!("{name}{pid}{}", &rest[digits..]))
    }
}
