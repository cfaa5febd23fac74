//! A queue that is led by what a kernel recorded.
//!
//! A [`RequestQueue`] is told of bios and completions and decides the rest. A [`Replica`] of a
//! kernel's queue is told of the rest as well: when a request was allocated, what was merged into
//! it, when it was inserted, when the driver took one, when it came back. Only one thing is left
//! to its own judgement: *which* request the driver gets. So the scheduler can be compared with
//! the kernel's, decision by decision, whatever tags, limits, budgets and processor time made of
//! the moments in between.
//!
//! What the queue would have merged is looked up all the same and compared with what was merged:
//! so a request that was found too full to be merged into is known to be, as in the kernel. Where
//! a recording does not tell which requests were joined (up to 5.10), the queue joins them itself.
//!
//! Left out: requests on their way through the flush machinery that no scheduler sees.

mod pace;

use base::Instant;
use block::queue;
use block::queue::guided::{Absorber, Answer, GuidedQueue};
use block::request::{Request, RequestState};
use block::scheduler::Merge;
use block::{
    Action, Bio, ContextId, DispatchReason, HoldReason, IoContextId, RequestId, RequestQueue,
};
use pace::{Pace, SharedPace};
use std::collections::VecDeque;

/// What the driver gets where a kernel's driver got a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A request that the scheduler let go.
    Chosen(RequestId, DispatchReason),
    /// A request that had left the scheduler before: it was given back or was parked.
    Waiting(RequestId),
    /// Nothing: the scheduler withholds what it has.
    Hold(HoldReason),
    /// Nothing: there is nothing.
    Empty,
}

/// Merges that the queue would have done otherwise than was recorded, by their reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeDifferences {
    /// What was merged has fewer segments than pages: its memory is contiguous, which recordings
    /// do not tell.
    pub contiguous: u64,
    /// Several queued requests start, or end, where the bio does, and another was taken.
    pub equal_positions: u64,
    /// Anything else.
    pub unexplained: u64,
}

impl MergeDifferences {
    /// Those that were not among `known`.
    pub fn since(self, known: MergeDifferences) -> MergeDifferences {
        MergeDifferences {
            contiguous: self.contiguous - known.contiguous,
            equal_positions: self.equal_positions - known.equal_positions,
            unexplained: self.unexplained - known.unexplained,
        }
    }

    /// All of them.
    pub fn total(self) -> u64 {
        self.contiguous + self.equal_positions + self.unexplained
    }
}

/// A state of a [`Replica`] whose scheduler is going to be asked.
pub struct Saved {
    queue: queue::guided::Saved,
    place: usize,
}

/// A queue that follows a recorded one.
pub struct Replica {
    guided: GuidedQueue,
    /// The scheduler's clock within hooks.
    pace: SharedPace,
    leads_joins: bool,
    differences: MergeDifferences,
    /// Where the queue would merge the bio that comes next.
    found: Option<(RequestId, Merge)>,
    /// What would absorb the request that arrives next.
    absorber: Option<Absorber>,
    /// Which requests the queue would join next, in order of their sectors.
    expected: Option<(RequestId, RequestId)>,
    /// That would be because the first of them has absorbed another on its arrival.
    is_chain: bool,
    /// A bio was merged, and whether the request is joined with its neighbour is not known yet.
    unsettled: Option<(RequestId, Bio, Merge)>,
    /// The scheduler asked for a run.
    wants_run: bool,
    /// What a task that flushes its plug, and asks for requests then, takes for the time.
    flush_clock: Option<Instant>,
    /// Without a scheduler: what tasks held and now give to the driver, in this order.
    offered: VecDeque<RequestId>,
}

impl Replica {
    /// Lets `queue`, to which nothing was submitted yet, be led; `leads_joins`: it is told which
    /// requests were joined, with [`Replica::join`].
    pub fn new(queue: RequestQueue, leads_joins: bool) -> Replica {
        Replica {
            guided: GuidedQueue::new(queue),
            pace: SharedPace::default(),
            leads_joins,
            differences: MergeDifferences::default(),
            found: None,
            absorber: None,
            expected: None,
            is_chain: false,
            unsettled: None,
            wants_run: false,
            flush_clock: None,
            offered: VecDeque::new(),
        }
    }

    /// Lets the scheduler's clock within hooks go as the kernel's did, of which it is known what it
    /// said when.
    pub fn follow(&mut self, said: impl IntoIterator<Item = (Instant, String)>) {
        self.pace.replace(Pace::new(said));
        self.guided.queue().log().set_hook_clock(Box::new(self.pace.clone()));
    }

    /// What was said from then on is about something else than what comes now.
    pub fn limit_pace(&mut self, until: Option<Instant>) {
        self.pace.borrow_mut().limit(until);
    }

    /// When the kernel's scheduler began to choose the request that was issued at `now`.
    pub fn beginning(&mut self, last: Instant, now: Instant) -> Option<Instant> {
        self.pace.borrow_mut().beginning(last, now)
    }

    /// When the scheduler began to deal with an event.
    pub fn dealt_with(&self, at: Instant) -> Instant {
        self.pace.borrow().after(at).unwrap_or(at)
    }

    /// When the scheduler was asked next after an event, if it said anything then.
    pub fn asked_after(&self, at: Instant) -> Instant {
        self.pace.borrow().next_after(at).unwrap_or(at)
    }

    /// The last task of an io_context is gone.
    pub fn exit(&mut self, now: Instant, io_context: IoContextId) {
        self.guided.queue().exit_io_context(now, ContextId(0), io_context);
        self.discard_outputs();
    }

    /// The queue, for settings and descriptions.
    pub fn queue(&mut self) -> &mut RequestQueue {
        self.guided.queue()
    }

    /// Merges that the queue would have done otherwise than was recorded.
    pub fn differences(&self) -> MergeDifferences {
        self.differences
    }

    /// Looks for a request that a bio is to be merged into, as the queue itself would. It is then
    /// told what became of the bio.
    pub fn find_merge(&mut self, now: Instant, bio: &Bio) -> Option<(RequestId, Merge)> {
        self.settle(now, None);
        self.found = self.guided.find_merge(now, bio);
        self.found
    }

    /// The bio that was looked up was not merged into any request.
    pub fn keep_apart(&mut self) {
        self.differences.unexplained += u64::from(self.found.take().is_some());
    }

    /// It was asked how many tags a bio's request may use.
    pub fn limit_depth(&mut self, now: Instant, bio: &Bio) {
        if !self.guided.is_single() {
            self.settle(now, None);
            self.guided.limit_depth(now, bio);
        }
    }

    /// A request was allocated for a bio, which was kept apart. Its task plugs, and took `time`
    /// for the time, if that is known.
    pub fn allocate(&mut self, now: Instant, bio: &Bio, time: Option<Instant>) -> RequestId {
        self.settle(now, None);
        self.guided.allocate(now, bio, time)
    }

    /// A bio was merged into a request, which is in a plug or with the scheduler.
    pub fn merge(&mut self, now: Instant, rq: RequestId, bio: &Bio, merge: Merge) {
        self.settle(now, None);
        let is_contiguous = self.guided.learn_of_bio(rq, bio);
        match self.found.take() {
            Some(found) if found == (rq, merge) => {}
            _ if is_contiguous => self.differences.contiguous += 1,
            Some((other, found)) if found == merge && self.are_equal(rq, other, merge) => {
                self.differences.equal_positions += 1;
            }
            _ => self.differences.unexplained += 1,
        }
        self.guided.merge(now, rq, bio, merge);
        if !self.is_queued(rq) || !self.guided.has_scheduler() {
            return;
        }
        if self.leads_joins {
            self.is_chain = false;
            self.expected = self.guided.find_neighbour(now, bio, rq, merge);
            self.unsettled = Some((rq, *bio, merge));
        } else {
            self.guided.join_neighbour(now, bio, rq, merge);
        }
    }

    /// A request was inserted; `joins`: queued ones may absorb it, or might have and did not.
    pub fn insert(&mut self, now: Instant, rq: RequestId, joins: bool) {
        self.settle(now, None);
        self.guided.unplug(rq);
        self.offered.retain(|offered| *offered != rq);
        let has_scheduler = self.guided.has_scheduler();
        let absorbs = joins && !self.leads_joins;
        let is_led = has_scheduler && joins && self.leads_joins;
        if is_led && self.request(rq).is_mergeable() {
            let found = self.guided.find_absorber(now, rq, true);
            self.differences.unexplained += u64::from(found.is_some());
        }
        self.flush_clock = self.guided.remembered_time(rq);
        self.wants_run |= self.guided.insert(now, rq, absorbs);
    }

    /// A task did not have its core all the time.
    pub fn forget_time(&mut self, task: ContextId) {
        self.guided.forget_time(task);
    }

    /// Who asks from now on is not the task that flushes its plug, and knows what time it is.
    pub fn end_flush(&mut self) {
        self.flush_clock = None;
    }

    /// Looks for requests that are to be joined, as the queue itself would: those that touch since
    /// a bio was merged, or the one that is inserted next and that which absorbs it.
    pub fn find_join(&mut self, now: Instant, next: RequestId) -> Option<(RequestId, RequestId)> {
        if self.is_queued(next) {
            return self.expected;
        }
        self.settle(now, None);
        self.guided.unplug(next);
        self.absorber = self.guided.find_absorber(now, next, true);
        self.absorber.map(|it| (it.rq, next))
    }

    /// Requests that touch since a bio was merged, and that the queue itself would join.
    pub fn expected_join(&self) -> Option<(RequestId, RequestId)> {
        self.expected
    }

    /// `next`, which was queued or arrives, was appended to `rq`, which is queued.
    pub fn join(&mut self, now: Instant, rq: RequestId, next: RequestId) {
        let was_queued = self.is_queued(next);
        if self.guided.learn_of_request(rq, next) {
            // Whether they would be joined was not to be known.
            self.differences.contiguous += 1;
            self.expected = Some((rq, next)).filter(|_| was_queued);
            self.absorber = Some(Absorber { rq, is_last: false });
        }
        self.settle(now, Some((rq, next)).filter(|_| was_queued));
        let absorber = self.absorber.take();
        if !was_queued {
            self.guided.bind(now, next);
            self.differences.unexplained += u64::from(absorber.map(|it| it.rq) != Some(rq));
        }
        let is_chain =
            if was_queued { self.is_chain } else { !absorber.is_some_and(|it| it.is_last) };
        self.guided.join(now, rq, next);
        if is_chain {
            let further = self.guided.find_absorber(now, rq, false);
            self.expected = further.map(|it| (it.rq, rq));
        }
        self.is_chain = is_chain;
    }

    /// Without a scheduler: the request's plug was flushed, and its task gives the driver the first
    /// `count` of what was in it, in the order of a plug that is flushed.
    pub fn offer(&mut self, rq: RequestId, count: usize) {
        if self.is_offered(rq) {
            return;
        }
        self.offered.extend(self.guided.flush_plug(rq, count));
    }

    /// Whether a task is giving it to the driver.
    pub fn is_offered(&self, rq: RequestId) -> bool {
        self.offered.contains(&rq)
    }

    /// The driver takes a request from the task that flushes its plug.
    pub fn choose_offered(&mut self, now: Instant) -> Taken {
        let Some(rq) = self.offered.pop_front() else { return Taken::Empty };
        self.guided.start(now, rq);
        Taken::Chosen(rq, DispatchReason::ArrivalOrder)
    }

    /// The driver takes a request.
    pub fn choose(&mut self, now: Instant) -> Taken {
        self.settle(now, None);
        if let Some(rq) = self.guided.take_waiting() {
            self.guided.start(now, rq);
            return Taken::Waiting(rq);
        }
        if self.guided.has_scheduler() {
            let chosen = self.ask(now);
            self.accept(now, chosen);
            return chosen;
        }
        let Some(rq) = self.guided.take_software() else { return Taken::Empty };
        self.guided.start(now, rq);
        Taken::Chosen(rq, DispatchReason::ArrivalOrder)
    }

    /// What the driver would take, if there is a scheduler. It takes it with [`Replica::accept`],
    /// or goes back with [`Replica::restore`].
    pub fn consider(&mut self, now: Instant) -> Taken {
        self.settle(now, None);
        match self.guided.take_waiting() {
            Some(rq) => {
                self.guided.put_back(rq);
                Taken::Waiting(rq)
            }
            None => self.ask(now),
        }
    }

    /// The driver takes what it was found that it would take.
    pub fn accept(&mut self, now: Instant, considered: Taken) {
        if let Taken::Waiting(rq) | Taken::Chosen(rq, _) = considered {
            self.guided.accept(now);
            let next = self.guided.take_waiting();
            assert_eq!(next, Some(rq), "what the scheduler lets go is what the driver takes");
            self.guided.start(now, rq);
        }
    }

    /// The driver asks for a request that it cannot take yet: what is chosen is parked, out of the
    /// scheduler's sight, and goes before everything else. The answer is that of the scheduler.
    pub fn park(&mut self, now: Instant) -> Taken {
        self.settle(now, None);
        if !self.guided.has_scheduler() {
            return Taken::Empty;
        }
        let chosen = self.ask(now);
        if let Taken::Chosen(..) = chosen {
            self.guided.accept(now);
            let first = self.guided.take_waiting();
            first.into_iter().for_each(|rq| self.guided.put_back(rq));
        }
        chosen
    }

    /// The state, if the scheduler can have two.
    pub fn save(&mut self, now: Instant) -> Option<Saved> {
        self.settle(now, None);
        let place = self.pace.borrow().place();
        Some(Saved { queue: self.guided.save()?, place })
    }

    /// Goes back to a state; the scheduler was asked since, and nothing was taken.
    pub fn restore(&mut self, saved: &Saved) {
        self.guided.restore(&saved.queue);
        self.pace.borrow_mut().go_back(saved.place);
    }

    /// The driver takes this request, whatever the scheduler would choose; false if it cannot be
    /// had.
    pub fn take(&mut self, now: Instant, rq: RequestId) -> bool {
        self.park_this(now, rq) && self.take_back(now, rq)
    }

    /// This request is parked, whatever the scheduler would choose; false if it cannot be had.
    pub fn park_this(&mut self, now: Instant, rq: RequestId) -> bool {
        self.settle(now, None);
        let is_queued = self.guided.has_scheduler() && self.is_queued(rq);
        is_queued && self.guided.release(now, rq)
    }

    /// The scheduler hears what the kernel's said.
    pub fn heed(&mut self, now: Instant, said: &str, rq: Option<RequestId>) {
        self.guided.heed(now, said, rq);
    }

    /// Whether the scheduler's last choice hangs on what was wrong when it followed.
    pub fn is_in_doubt(&self) -> bool {
        self.guided.is_in_doubt()
    }

    /// The driver has it now, if it can be had: what is missing has happened.
    pub fn hand_over(&mut self, now: Instant, rq: RequestId) -> bool {
        let has = |it: &mut Replica| {
            it.guided.queue().request(rq).is_some_and(|it| it.state == RequestState::Issued)
        };
        has(self) || self.take_back(now, rq) || self.take(now, rq)
    }

    /// The driver takes all that wait for it: another was issued, so they had been. How many.
    pub fn take_all_back(&mut self, now: Instant) -> u32 {
        let mut count = 0;
        while let Some(rq) = self.guided.take_waiting() {
            self.guided.start(now, rq);
            count += 1;
        }
        count
    }

    /// The driver takes this one of those that wait for it; false if it does not.
    pub fn take_back(&mut self, now: Instant, rq: RequestId) -> bool {
        let mut others = Vec::new();
        let mut is_there = false;
        while let Some(next) = self.guided.take_waiting() {
            is_there = next == rq;
            if is_there {
                self.guided.start(now, rq);
                break;
            }
            others.push(next);
        }
        others.into_iter().rev().for_each(|other| self.guided.put_back(other));
        is_there
    }

    /// The driver gave a request back.
    pub fn requeue(&mut self, now: Instant, rq: RequestId) {
        self.settle(now, None);
        self.guided.requeue(now, rq);
        self.discard_outputs();
    }

    /// The device finished a request; that may interrupt a merge.
    pub fn complete(&mut self, now: Instant, rq: RequestId) {
        self.guided.complete(now, rq);
        self.discard_outputs();
    }

    /// A flush without data is done, which was allocated at `since`.
    pub fn flushed(&mut self, now: Instant, since: Instant) {
        self.guided.flushed(now, since);
    }

    /// The scheduler is told of its first timer that has passed, if there is one; when that was.
    pub fn pass_time(&mut self, now: Instant) -> Option<Instant> {
        let (at, wants_run) = self.guided.pass_time(now)?;
        self.wants_run |= wants_run;
        Some(at)
    }

    /// Whether the scheduler asked for a run since this was last asked, for another reason than
    /// that a request was completed.
    pub fn take_wants_run(&mut self) -> bool {
        std::mem::take(&mut self.wants_run)
    }

    /// Which requests were absorbed by which others since this was last asked, and what the
    /// scheduler said; events up to now are forgotten.
    pub fn take_events(&mut self) -> (Vec<(RequestId, RequestId)>, Vec<String>) {
        let log = self.guided.queue().log();
        let joins = log.events().iter().filter_map(|event| match event.action {
            Action::Join { into } => Some((event.request?, into)),
            _ => None,
        });
        let messages = log.events().iter().filter_map(|event| match &event.action {
            Action::Message { text, .. } => Some(text.clone()),
            _ => None,
        });
        let taken = (joins.collect(), messages.collect());
        log.clear();
        taken
    }

    /// Whether two requests are at the same place for a merge.
    fn are_equal(&mut self, one: RequestId, other: RequestId, merge: Merge) -> bool {
        let mut place = |rq| match merge {
            Merge::Back => self.request(rq).end(),
            Merge::Front => self.request(rq).sector,
        };
        place(one) == place(other)
    }

    /// Something else happens than what was expected after a merge, or just that.
    fn settle(&mut self, now: Instant, join: Option<(RequestId, RequestId)>) {
        self.differences.unexplained += u64::from(self.expected.take() != join);
        let Some((rq, bio, merge)) = self.unsettled.take() else { return };
        let is_joined = join.is_some_and(|(one, other)| one == rq || other == rq);
        if !is_joined && self.is_queued(rq) {
            self.guided.keep_merged(now, &bio, rq, merge);
        }
    }

    /// Whether there is a scheduler.
    pub fn has_scheduler(&self) -> bool {
        self.guided.has_scheduler()
    }

    /// Whether `next` may be appended to `rq`: the scheduler has that, and they are of one kind.
    pub fn may_join(&mut self, rq: RequestId, next: RequestId) -> bool {
        let kind = |request: &Request| (request.op, request.ioprio);
        let (one, other) = (kind(self.request(rq)), kind(self.request(next)));
        self.is_queued(rq) && one == other
    }

    /// Whether the scheduler has it.
    pub fn is_queued(&self, rq: RequestId) -> bool {
        self.guided.is_queued(rq)
    }

    fn request(&mut self, rq: RequestId) -> &Request {
        self.guided.queue().request(rq).expect("it is alive")
    }

    /// Asks the scheduler once; what it lets go is not taken yet.
    pub fn ask(&mut self, now: Instant) -> Taken {
        let clock = self.flush_clock.unwrap_or(now);
        match self.guided.ask(now, clock) {
            Answer::Issued(rq, reason) => Taken::Chosen(rq, reason),
            Answer::Hold(reason) => Taken::Hold(reason),
            Answer::Empty => Taken::Empty,
        }
    }

    fn discard_outputs(&mut self) {
        while self.guided.queue().pop_output().is_some() {}
    }
}
